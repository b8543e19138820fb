"""Lesson 5. Beside learner code: the stubs and the scenarios. Only on numbers: the view."""

import torch

from helpers.checking.scenarios import scenario
from helpers.checking.stubs import stub
from helpers.checking.views import view


def _whole(x, T):
    """ValueError where the input was cut: f is made for T tokens."""
    if x.shape[1] != T:
        asked = "replace the rows after t, do not cut them off"
        raise ValueError(f"f was called with {x.shape[1]} of its {T} tokens; {asked}")


def _mixed(x, width):
    """Fixed sums of the entries of each row, (..., D) -> (..., width)."""
    numbers = torch.arange(1, width * x.shape[-1] + 1, dtype=x.dtype).sin()
    return x @ numbers.reshape(x.shape[-1], width)


@stub
def causal_average(width):
    """f (B, T, D) -> (B, T, width) in which row t sees the rows 0 to t."""
    return lambda x: _mixed(x.cumsum(1) / torch.arange(1, x.shape[1] + 1, dtype=x.dtype)[:, None], width)


@stub
def peeking(position, source, strength, width, T):
    """The causal average, but row `position` also sees row `source`, times `strength`."""

    def f(x):
        _whole(x, T)
        own = causal_average(width)(x)
        seen = torch.zeros(x.shape[1], x.shape[1], dtype=x.dtype)
        seen[position, source] = strength
        return own + _mixed(seen @ x, width)

    return f


def _centered(x):
    return x - x.mean(-1, keepdim=True)


def _of_one_length(x):
    return x / ((x**2).mean(-1, keepdim=True) + 1e-12).sqrt()


NORMS = {
    "as it is": lambda x: x,
    "centered": _centered,
    "of one length": _of_one_length,
    "normed": lambda x: _of_one_length(_centered(x)),  # mean 0 and variance 1, as a layer norm makes it
}


@stub
def peeking_between(before, behind, position, source, width, T):
    """Two of NORMS, and between them the causal average; row `position` also sees row `source` (no leak if equal)."""
    return lambda x: NORMS[behind](peeking(position, source, 1.0, width, T)(NORMS[before](x)))


@stub
def previous_row(width):
    """f (B, T, D) -> (B, T, width) in which row t sees row t - 1 and not itself."""
    return lambda x: _mixed(torch.cat([torch.zeros_like(x[:, :1]), x[:, :-1]], dim=1), width)


@stub
def first_row(width):
    """f (B, T, D) -> (B, T, width) in which every row sees row 0 and nothing else, a network with a float64 matrix."""
    matrix = torch.nn.Parameter(torch.eye(width, dtype=torch.float64))
    return lambda x: _mixed(x[:, :1].expand_as(x), width) @ matrix


@stub
def peeking_in_one(position, source, sentence, feature, width, T, strength=1.0):
    """The causal average, but in one sentence and one feature row `position` also sees row `source`."""

    def f(x):
        _whole(x, T)
        own = causal_average(width)(x)
        spot = torch.zeros(own.shape, dtype=x.dtype)
        spot[sentence, position, feature] = strength
        return own + spot * x[:, source].sum(-1)[:, None, None]

    return f


@stub
def peeking_at_one(position, source, feature, width, T):
    """The causal average, but row `position` also sees one feature of row `source`."""

    def f(x):
        _whole(x, T)
        seen = torch.zeros_like(x)
        seen[:, position, feature] = x[:, source, feature]
        return causal_average(width)(x) + _mixed(seen, width)

    return f


@stub
def whole_average(width):
    """f (B, T, D) -> (B, T, width) in which every row sees the mean of all rows."""
    return lambda x: _mixed(x + x.mean(1, keepdim=True), width)


@stub
def batch_centered(width):
    """The whole average of rows from which the mean over the batch is subtracted, as a batch norm does in training."""
    return lambda x: whole_average(width)(x - x.mean(0, keepdim=True))


@stub
def next_row(width):
    """f (B, T, D) -> (B, T, width) in which row t sees row t + 1, and the last row nothing."""
    return lambda x: _mixed(torch.cat([x[:, 1:], torch.zeros_like(x[:, :1])], dim=1), width)


@scenario
def drawn_before(answer, args, kwargs):
    """answer(f, x) is called twice; the second x is the last one that the first call made and handed to f."""
    f, x = args
    made = [x]

    def noting(tried):
        if tried.shape == x.shape and not torch.equal(tried, x):
            made.append(tried.detach().clone())
        return f(tried)

    answer(noting, x)
    return answer(f, made[-1]), []


@scenario
def kept_entries(answer, args, kwargs):
    """answer(scores, mask) with blocked entries set to 0, so that no gradient is asked for at a fill."""
    scores, mask = args
    output = answer(scores, mask, **kwargs)
    return torch.where(mask, output, torch.zeros_like(output)), []


@view
def filled_scores(args, kwargs, output):
    """Kept scores as they are; of the blocked ones only whether one constant of probability 0 stands there.

    The constant must vanish even in a row whose visible scores are all -1e4, in the output's own precision.
    """
    scores, mask = (*args, *kwargs.values())
    if not isinstance(output, torch.Tensor) or not output.is_floating_point():
        raise ValueError("expected a float tensor of masked scores")
    if output.shape != scores.shape:
        return {"scores that may be seen": output, "in place of a blocked score": "cannot tell"}
    blocked = ~mask.expand(scores.shape)
    visible = torch.where(mask, output, torch.zeros_like(output))
    fill = _fill(output.detach()[blocked], scores.detach()[blocked])
    if fill == DIFFER and (output.detach().softmax(-1)[blocked] == 0).all():
        fill += ", though softmax turns each into 0 here"
    return {"scores that may be seen": visible, "in place of a blocked score": fill}


DIFFER = "numbers that differ, and no constant"


def _fill(filled, scores) -> str:
    """What stands where `scores` stood, in words."""
    shift = filled.double() - scores.double()
    if filled.isnan().any():
        return "NaN"
    if (filled == filled[:1]).all():
        if ((filled + 1e4).exp() == 0).all():
            return "a constant that softmax turns into 0"
        return f"the constant {filled[0].item() + 0.0:g}, which softmax need not turn into 0"
    if (shift - shift.mean()).abs().max() <= 4 * torch.finfo(filled.dtype).eps * (1 + filled.abs().max()):
        return f"the score plus {shift.mean().item() + 0.0:.2g}"
    return DIFFER
