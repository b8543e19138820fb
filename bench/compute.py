"""Loss against compute, for lesson 12: `python -m bench.compute [--write]`, about a minute of one core.

Three of the lesson's GPTs, with two blocks and two heads each, differ only in their width. They are trained with the
lesson's recipe on the same windows, and evaluated on the unseen passages at growing intervals. Compute is counted as
three multiply-adds per parameter and token. --write stores the curves in helpers/lessons/language_model/compute.json,
in nats above the entropy of those passages.
"""

import argparse

import torch

from bench.fused_attention import fused
from bench.ladder import BATCH, CONTEXT, loss_on, train, unseen
from bench.written import write
from helpers import corpus
from helpers.blocks import GPT

WIDTHS, STEPS, RATE = (16, 32, 64), 1200, 1e-3
POINTS = [10, 14, 20, 28, 40, 56, 80, 110, 160, 220, 300, 370, 450, 550, 630, 700, 800, 900, 1000, 1100, STEPS]


def curve(width: int) -> dict:
    """Train a GPT of this width. Returns its parameters, its multiply-adds (in billions) and nats above the entropy."""
    ids, line = unseen()
    torch.manual_seed(0)
    model = fused(GPT(len(corpus.language_symbols()), CONTEXT, width, 2, 2))
    parameters = sum(p.numel() for p in model.parameters())
    spent, above = [], []

    def evaluate(step: int) -> None:
        if step in POINTS:
            spent.append(round(3 * parameters * step * BATCH * CONTEXT / 1e9, 3))
            above.append(round(loss_on(model, ids) - line, 4))

    train(model, 1, STEPS, RATE, evaluate)
    return {"parameters": parameters, "spent": spent, "above": above}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="keep the curves for the lesson's figure")
    options = parser.parse_args()
    torch.set_num_threads(1)
    curves = {}
    for width in WIDTHS:
        curves[width] = curve(width)
        ends = f"{curves[width]['above'][-1]} nats above the entropy after {curves[width]['spent'][-1]} billion"
        print(f"width {width}: {curves[width]['parameters']:,} parameters, {ends} multiply-adds", flush=True)
    if options.write:
        write("language_model", "compute", curves)


if __name__ == "__main__":
    main()
