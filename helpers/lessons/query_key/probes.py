"""Probes of lesson 3: views, which see only results of learner code."""

import torch

from helpers.checking.registry import view


def _pair_of_weights(output):
    """The two weight matrices that an answer returned, detached. Raises ValueError for anything else."""
    if not isinstance(output, (tuple, list)) or len(output) != 2:
        raise ValueError("expected two weight matrices, (W_q, W_k)")
    if not all(isinstance(w, torch.Tensor) and w.dim() == 2 for w in output):
        raise ValueError("expected two weight matrices, each a tensor of shape (d, max_len)")
    return [w.detach() for w in output]


@view
def previous_token(args, kwargs, output):
    """What all queries t >= 1 attend to when x = torch.eye(max_len); query 0 may attend to anything.

    Scores are computed in float64 from the given weights, so that rounding doesn't create ties.
    """
    max_len = (*args, *kwargs.values())[0]
    W_q, W_k = _pair_of_weights(output)
    shape, attended = "(d, max_len)", "cannot tell"
    if not W_q.shape == W_k.shape or W_q.shape[1] != max_len:
        transposed = W_q.shape == W_k.shape and len(W_q) == max_len
        shape = "(max_len, d)" if transposed else f"{tuple(W_q.shape)} and {tuple(W_k.shape)}"
    else:
        scores = W_q.double().T @ W_k.double()  # (max_len, max_len), because x is the identity
        best = scores == scores.amax(-1, keepdim=True)
        attended = _attended([row.nonzero().flatten().tolist() for row in best])
    return {"the shape of W_q and W_k is": shape, "every query from 1 on attends to": attended}


def _attended(best: list[list[int]]) -> str:
    """What the queries from 1 on have in common, in words. best[t]: the keys with the largest score of query t."""
    n = len(best)
    patterns = {
        "the token before it": [(t, [t - 1]) for t in range(1, n)],
        "itself": [(t, [t]) for t in range(1, n)],
        "the first token": [(t, [0]) for t in range(1, n)],
        "the token after it": [(t, [t + 1]) for t in range(1, n - 1)],
        "all tokens before it equally": [(t, list(range(t))) for t in range(1, n)],
        "the token before it, except the last query, whose scores are all equal": [
            *((t, [t - 1]) for t in range(1, n - 1)),
            (n - 1, list(range(n))),
        ],
    }
    for name, pairs in patterns.items():
        if pairs and all(best[t] == keys for t, keys in pairs):
            return name
    t = next(t for t in range(1, n) if best[t] != [t - 1])
    keys = " and ".join(map(str, best[t][:3])) + (" and others" if len(best[t]) > 3 else "")
    return f"other tokens: query {t} attends to {keys or 'none'}"


@view
def graph_of_weights(args, kwargs, output):
    """The token that each query attends to when x = torch.eye(T), unless its best keys tie or a score isn't finite.

    Scores are in float32, as the exercise says. A matrix product and a sum of two rounded products may differ in the
    last bit, so it is enough if one of them gives the expected graph.
    """
    expected = (*args, *kwargs.values())[0].tolist()
    W_q, W_k = _pair_of_weights(output)
    fits = W_q.shape == W_k.shape == (2, len(expected))
    winners = []
    if fits:
        W_q, W_k = W_q.float(), W_k.float()
        winners = _winners((W_q[:, :, None] * W_k[:, None, :]).sum(0))
        if winners != expected and _winners(W_q.T @ W_k) == expected:
            winners = expected
    finite = all(bool(w.isfinite().all()) for w in (W_q, W_k))
    attended = {f"query {t} attends to": "no single token" if w < 0 else f"token {w}" for t, w in enumerate(winners)}
    return {"W_q and W_k have shape (2, T)": fits, "every weight is finite": finite, **attended}


def _winners(scores) -> list[int]:
    """The index of the largest score in each row, or -1 if there is no single one."""
    best = scores.amax(-1, keepdim=True)
    strict = ((scores == best).sum(-1) == 1) & scores.isfinite().all(-1)
    return torch.where(strict, scores.argmax(-1), -1).tolist()


@view
def pair_dtypes(args, kwargs, output):
    """The dtypes of the two weight matrices."""
    names = ("the dtype of W_q is", "the dtype of W_k is")
    return {name: str(w.dtype).removeprefix("torch.") for name, w in zip(names, _pair_of_weights(output), strict=True)}
