"""What it costs the translator to go without a part: `python -m bench.without_parts [--write]`, half a minute.

Each part is taken out of the trained network, or does nothing there; the loss and the exact sentences are those that
`at_work` shows. --write puts them into helpers/translator/without.json, from where `at_work` has them for a right part.
A network that is trained without the part would cost something else: this one is not.
"""

import json
import sys
from pathlib import Path

import torch

from helpers.translator import FINISHED_PARTS, stage

PLACE = Path(__file__).parents[1] / "helpers" / "translator" / "without.json"


def alike(scores: torch.Tensor, dim: int = -1) -> torch.Tensor:
    """The same weight for all that may be seen."""
    return (seen := (scores > -torch.inf).float()) / seen.sum(dim, keepdim=True)


def alike_attention(Q, K, V, mask=None):
    scores = torch.zeros(*Q.shape[:-1], K.shape[-2])
    weights = alike(scores if mask is None else scores.masked_fill(~mask, -torch.inf))
    return weights @ V, weights


def silent(name: str, forward) -> type:
    """The part of that name with its numbers and another forward."""
    return type(name, (FINISHED_PARTS[name],), {"forward": forward})


WITHOUT = {
    "sinusoidal_positions": ("no positions", lambda length, d_model: torch.zeros(length, d_model)),
    "add_positions": ("no positions", lambda x, table: x),
    "scaled_scores": ("scores that nothing divides", lambda Q, K: Q @ K.mT),
    "causal_mask": ("later words seen", lambda T_q, T_k=None: torch.ones(T_q, T_k or T_q, dtype=torch.bool)),
    "padding_mask": ("padding seen as words", lambda lengths, T: torch.ones(len(lengths), T, dtype=torch.bool)),
    "mask_scores": ("no mask", lambda scores, mask: scores),
    "masked_softmax": ("no mask", lambda scores, mask: scores.softmax(-1)),
    "softmax": ("every weight alike", alike),
    "attention": ("every weight alike", alike_attention),
    "MultiHeadAttention": (
        "no attention",
        silent("MultiHeadAttention", lambda self, query, key=None, value=None, mask=None: (0 * query, None)),
    ),
    "layer_norm": ("no layer norm", lambda x, gamma, beta, eps=1e-5: x),
    "FeedForward": ("no feed-forward network", silent("FeedForward", lambda self, x: 0 * x)),
    "EncoderBlock": ("no encoder blocks", silent("EncoderBlock", lambda self, x, mask=None: x)),
    "DecoderBlock": (
        "no decoder blocks",
        silent("DecoderBlock", lambda self, y, memory, self_mask=None, memory_mask=None: (y, None)),
    ),
}


def cost(name: str) -> dict:
    """{"words", "nats", "exact"} of the translator without the part `name`."""
    words, nothing = WITHOUT[name]
    trial = stage.attempt({name: nothing}, "jane visits africa in september", 60.0, shown=False)
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
