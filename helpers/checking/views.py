"""Views: what of an output is compared, for exercises that several different outputs satisfy.

A view takes (args, kwargs, output) and returns a tree, usually a dict of named properties. It raises ValueError with
a sentence for the learner when the output cannot be looked at.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import torch

from helpers.checking.codec import Odd, plain
from helpers.checking.observe import Observation
from helpers.checking.vocabulary import Case

VIEWS: dict[str, Callable] = {}


def view(function: Callable) -> Callable:
    """Register `function` as a view under its own name."""
    VIEWS[function.__name__] = function
    return function


def viewed(case: Case, seen: Observation) -> Observation:
    """The observation with the case's view applied to its output; what a view cannot look at becomes Odd."""
    if case.view is None or seen.error is not None:
        return seen
    try:
        output = plain(VIEWS[case.view](case.args, case.kwargs, seen.output))
    except Exception as error:  # a view meets whatever an answer returned
        output = Odd("unusable", str(error))
    return dataclasses.replace(seen, output=output)


def _pair_of_weights(output):
    """The two weight matrices of lesson 3's puzzle, as float64 without gradients."""
    if not isinstance(output, (tuple, list)) or len(output) != 2:
        raise ValueError("expected two weight matrices, (W_q, W_k)")
    if not all(isinstance(w, torch.Tensor) and w.dim() == 2 for w in output):
        raise ValueError("expected two weight matrices, each a tensor of shape (d, max_len)")
    return [w.detach() for w in output]


@view
def previous_token(args, kwargs, output):
    """Lesson 3: where every query t >= 1 looks when x = torch.eye(max_len); query 0 is free.

    Scores are computed in float64 from the weights as given, so that ties are ties and nothing else is.
    """
    max_len = (*args, *kwargs.values())[0]
    W_q, W_k = _pair_of_weights(output)
    fits = W_q.shape == W_k.shape and W_q.shape[1] == max_len
    looks_at = "cannot tell"
    if fits:
        scores = W_q.double().T @ W_k.double()  # (max_len, max_len), because x is the identity
        best = scores.amax(-1, keepdim=True)
        strict = (scores == best).sum(-1) == 1
        winner = torch.where(strict, scores.argmax(-1), -1)
        looks_at = _where_it_looks(winner.tolist())
    return {"W_q and W_k have shape (d, max_len)": fits, "every query from 1 on looks at": looks_at}


def _where_it_looks(winner: list[int]) -> str:
    """winner[t] is the key with the strictly largest score of query t, or -1 where keys tie."""
    n = len(winner)
    patterns = {
        "the token before it": [(t, t - 1) for t in range(1, n)],
        "itself": [(t, t) for t in range(1, n)],
        "the first token": [(t, 0) for t in range(1, n)],
        "the token after it": [(t, t + 1) for t in range(1, n - 1)],
        "the token two before it": [(t, t - 2) for t in range(2, n)],
        "the token before it, the last query excepted": [(t, t - 1) for t in range(1, n - 1)],
    }
    for name, pairs in patterns.items():
        if pairs and all(winner[t] == key for t, key in pairs):
            return name
    return "several tokens at once" if -1 in winner[1:] else "other tokens"


@view
def pair_dtypes(args, kwargs, output):
    """Lesson 3: the dtypes of the two weight matrices."""
    return [str(w.dtype).removeprefix("torch.") for w in _pair_of_weights(output)]


@view
def filled_scores(args, kwargs, output):
    """Lesson 5: kept scores as they are; of the blocked ones only whether one constant of probability 0 stands there.

    The constant must vanish even in a row whose visible scores are all -1e4, in the output's own precision.
    """
    scores, mask = (*args, *kwargs.values())
    if not isinstance(output, torch.Tensor) or not output.is_floating_point():
        raise ValueError("expected a float tensor of masked scores")
    if output.shape != scores.shape:
        return {"scores that may be seen": output}
    blocked = ~mask.expand(scores.shape)
    kept = torch.where(mask, output, torch.zeros_like(output))
    fill = _fill(output.detach()[blocked], scores.detach()[blocked])
    return {"scores that may be seen": kept, "in place of a blocked score": fill}


def _fill(filled, scores) -> str:
    """What stands where `scores` stood, in words."""
    shift = filled.double() - scores.double()
    if filled.isnan().any():
        return "NaN"
    if (filled == filled[:1]).all():
        if ((filled + 1e4).exp() == 0).all():
            return "a constant that softmax turns into 0"
        return f"the constant {filled[0].item() + 0.0:g}, which softmax need not turn into 0"
    if (shift - shift.mean()).abs().max() <= 1e-5 * (1 + shift.mean().abs()):
        return f"the score plus {shift.mean().item() + 0.0:.2g}"
    return "numbers that differ"
