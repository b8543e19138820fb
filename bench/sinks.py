"""What a model loses when its first token leaves the window: `python -m bench.sinks [--write]`, some minutes.

A decoder of lesson 14's blocks (two layers of width 64, two heads) is trained on lesson 12's language with full causal
attention, three seeds. Then it reads unseen texts of 64 tokens through a window of 16, with 0, 1, 2 and 4 sinks.
Measured in nats a token, at the places that a window changes (16 to the end), against full attention. The control is a
window as wide as window and sinks together: it sees as many tokens, and not the first ones. --write puts the losses
into helpers/lessons/today/sinks.json.
"""

from __future__ import annotations

import argparse

import torch
import torch.nn.functional as F
from torch import nn

from bench.ladder import SEEDS, train, unseen
from bench.written import write
from helpers import corpus
from helpers.blocks import LlamaBlock, sliding_window_mask
from helpers.lessons.today.decoder import Decoder

STEPS, RATE, WINDOW, SINKS = 1200, 4e-3, 16, (0, 1, 2, 4)


@torch.no_grad()
def loss_behind(model, ids, mask=None) -> float:
    """Nats a token at the places whose query has lost the first token to the window."""
    logits = model(ids[:, :-1], None if mask is None else mask[:-1, :-1])  # (B, T - 1, V)
    return F.cross_entropy(logits[:, WINDOW:].flatten(0, 1), ids[:, WINDOW + 1 :].flatten()).item()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="keep the losses for the lesson's figure")
    parser.add_argument("--steps", type=int, default=STEPS)
    options = parser.parse_args()
    torch.set_num_threads(1)
    ids, found = unseen()[0], {}
    T = ids.shape[1]
    for seed in SEEDS:
        torch.manual_seed(seed)
        model = Decoder(LlamaBlock, len(corpus.language_symbols()), 64, 2, 1, 171, 2, base=10.0)
        nn.init.normal_(model.tokens.weight, std=0.02)
        train(model, seed, options.steps, RATE)
        losses = {"full attention": loss_behind(model, ids)}
        for sinks in SINKS:
            losses[f"window {WINDOW}, {sinks} sinks"] = loss_behind(
                model, ids, sliding_window_mask(T, T, WINDOW, sinks)
            )
            losses[f"window {WINDOW + sinks}"] = loss_behind(model, ids, sliding_window_mask(T, T, WINDOW + sinks))
        for name, loss in losses.items():
            found.setdefault(name, []).append(round(loss, 4))
        print(f"seed {seed}: " + ", ".join(f"{name} {loss:.3f}" for name, loss in losses.items()), flush=True)
    if options.write:
        write("today", "sinks", found)


if __name__ == "__main__":
    main()
