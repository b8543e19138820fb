"""Ablate each part of the trained translator: `python -m bench.without_parts [--write]`, half a minute.

Each part is removed from the trained network, or replaced by one that does nothing. The loss and the exact translations
are those that `at_work` shows. --write stores them in helpers/translator/without.json, from which `at_work` reads them
when it shows a correct part. A network that was trained without the part would have another loss.
"""

import json
import sys
from pathlib import Path

import torch

from helpers.translator import FINISHED_PARTS, stage

PLACE = Path(__file__).parents[1] / "helpers" / "translator" / "without.json"


def uniform(scores: torch.Tensor, dim: int = -1) -> torch.Tensor:
    """The same weight for all positions that are not masked."""
    return (visible := (scores > -torch.inf).float()) / visible.sum(dim, keepdim=True)


def uniform_attention(Q, K, V, mask=None):
    scores = torch.zeros(*Q.shape[:-1], K.shape[-2])
    weights = uniform(scores if mask is None else scores.masked_fill(~mask, -torch.inf))
    return weights @ V, weights


def replaced(name: str, forward) -> type:
    """The part of that name, with its weights but another forward."""
    return type(name, (FINISHED_PARTS[name],), {"forward": forward})


WITHOUT = {
    "sinusoidal_positions": ("no positions", lambda length, d_model: torch.zeros(length, d_model)),
    "add_positions": ("no positions", lambda x, table: x),
    "scaled_scores": ("scores that nothing divides", lambda Q, K: Q @ K.mT),
    "causal_mask": ("later words seen", lambda T_q, T_k=None: torch.ones(T_q, T_k or T_q, dtype=torch.bool)),
    "padding_mask": ("padding seen as words", lambda lengths, T: torch.ones(len(lengths), T, dtype=torch.bool)),
    "mask_scores": ("no mask", lambda scores, mask: scores),
    "masked_softmax": ("no mask", lambda scores, mask: scores.softmax(-1)),
    "softmax": ("every weight alike", uniform),
    "attention": ("every weight alike", uniform_attention),
    "MultiHeadAttention": (
        "no attention",
        replaced("MultiHeadAttention", lambda self, query, key=None, value=None, mask=None: (0 * query, None)),
    ),
    "layer_norm": ("no layer norm", lambda x, gamma, beta, eps=1e-5: x),
    "FeedForward": ("no feed-forward network", replaced("FeedForward", lambda self, x: 0 * x)),
    "EncoderBlock": ("no encoder blocks", replaced("EncoderBlock", lambda self, x, mask=None: x)),
    "DecoderBlock": (
        "no decoder blocks",
        replaced("DecoderBlock", lambda self, y, memory, self_mask=None, memory_mask=None: (y, None)),
    ),
}


def cost(name: str) -> dict:
    """{"words", "nats", "exact"} of the translator without the part `name`."""
    words, replacement = WITHOUT[name]
    trial = stage.attempt({name: replacement}, "jane visits africa in september", 60.0, shown=False)
    assert trial.nats is not None and not trial.failed, trial.failed
    return {"words": words, "nats": round(trial.nats, 5), "exact": round(trial.exact, 4)}


def main(options: list[str]) -> None:
    costs = {name: cost(name) for name in WITHOUT}
    for name, measured in costs.items():
        print(f"{name:<22}{measured['words']:<30}{measured['nats']:9.5f}{measured['exact']:7.2f}")
    if "--write" in options:
        PLACE.write_text(json.dumps(costs, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
