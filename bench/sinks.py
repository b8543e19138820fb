"""The value of attention sinks for lesson 14's small writer: `python -m bench.sinks input.txt [--write]`, a minute.

The model of bench/small_writer.py reads the last tenth of its text, which it was not trained on, in passages of 96
tokens, through sliding windows of 16 tokens with 0, 1 and 4 sinks. The loss is in nats per token from position 16 on,
the first position that a window changes. The control is a window as wide as window and sinks together, which contains
as many tokens, but not the first ones. --write stores the losses in helpers/lessons/today/sinks.json.
"""

import argparse
from pathlib import Path

import torch
import torch.nn.functional as F

from bench.small_writer import CONTEXT, ids_of
from bench.written import write
from helpers.blocks import LlamaBlock, rename_llama, sliding_window_mask
from helpers.lessons.today import published
from helpers.lessons.today.decoder import Decoder

WINDOW, SINKS, PASSAGES = 16, (0, 1, 4), 256


@torch.no_grad()
def loss_behind(model, ids, mask=None) -> float:
    """Nats per token at the positions whose window no longer contains the first token. ids (B, T)."""
    mask = None if mask is None else mask[:-1, :-1]
    total = 0.0
    for rows in ids.split(32):
        logits = model(rows[:, :-1], mask)  # (32, T - 1, V)
        right = rows[:, WINDOW + 1 :].flatten()
        total += F.cross_entropy(logits[:, WINDOW:].flatten(0, 1), right, reduction="sum").item()
    return total / ids[:, WINDOW + 1 :].numel()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("text", type=Path)
    parser.add_argument("--write", action="store_true", help="keep the losses for the lesson's text")
    options = parser.parse_args()
    torch.set_num_threads(1)
    text = options.text.read_text(encoding="utf-8")
    found = published.model(published.WRITER)
    model = Decoder(LlamaBlock, **found.sizes).eval()
    model.load_state_dict(rename_llama(found.state))
    ids = ids_of(text[len(text) * 9 // 10 :], found.merges)
    ids = ids[: len(ids) // CONTEXT * CONTEXT].view(-1, CONTEXT)[:PASSAGES]  # (PASSAGES, T)
    losses = {"all tokens": loss_behind(model, ids)}
    for sinks in SINKS:
        mask = sliding_window_mask(CONTEXT, window=WINDOW, sinks=sinks)
        losses[f"window {WINDOW}, {sinks} sinks"] = loss_behind(model, ids, mask)
        if sinks:
            wider = sliding_window_mask(CONTEXT, window=WINDOW + sinks)
            losses[f"window {WINDOW + sinks}"] = loss_behind(model, ids, wider)
    for name, loss in losses.items():
        print(f"{name:<20}{loss:.4f} nats per token")
    if options.write:
        write("today", "sinks", {name: round(loss, 4) for name, loss in losses.items()})


if __name__ == "__main__":
    main()
