"""Lesson 5. Beside learner code: the stubs and the scenarios. Only on numbers: the view."""

import torch

from helpers.checking.registry import scenario, stub, view
from helpers.checking.stubs import mixed_rows


def _of_one_length(x):
    return x / ((x**2).mean(-1, keepdim=True) + 1e-12).sqrt()


NORMS = {
    "as it is": lambda x: x,
    "centered": lambda x: x - x.mean(-1, keepdim=True),
    "of one length": _of_one_length,
    "normed": lambda x: _of_one_length(x - x.mean(-1, keepdim=True)),  # as a layer norm makes it
    "with a parameter": lambda x: x * torch.nn.Parameter(torch.ones(1, dtype=x.dtype)),  # as in a network
    "without the batch's mean": lambda x: x - x.mean(0, keepdim=True),  # as a batch norm takes it off in training
}


@stub
def rows_of_a_text(table, width, before="as it is", behind="as it is"):
    """`mixed_rows` between two of NORMS. ValueError where the text was cut: f is made for all of its tokens."""

    def f(x):
        if x.shape[1] != len(table):
            asked = "replace the rows after t, do not cut them off"
            raise ValueError(f"f was called with {x.shape[1]} of its {len(table)} tokens; {asked}")
        return NORMS[behind](mixed_rows(table, width)(NORMS[before](x)))

    return f


@stub
def peeking_in_one(table, width, position, source, sentence, feature, strength=1.0):
    """`rows_of_a_text`, but in one sentence and one feature row `position` also sees row `source`."""

    def f(x):
        own = rows_of_a_text(table, width)(x)
        spot = torch.zeros(own.shape, dtype=x.dtype)
        spot[sentence, position, feature] = strength
        return own + spot * x[:, source].sum(-1)[:, None, None]

    return f


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
