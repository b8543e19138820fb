"""Probes of lesson 5. Stubs and scenarios run alongside learner code; the view sees only results."""

import torch

from helpers.checking.registry import scenario, stub, view
from helpers.checking.stubs import mixed_rows


def _rms_norm(x):
    return x / ((x**2).mean(-1, keepdim=True) + 1e-12).sqrt()


NORMS = {
    "as it is": lambda x: x,
    "centered": lambda x: x - x.mean(-1, keepdim=True),
    "of one length": _rms_norm,
    "normed": lambda x: _rms_norm(x - x.mean(-1, keepdim=True)),  # a layer norm
    "with a parameter": lambda x: x * torch.nn.Parameter(torch.ones(1, dtype=x.dtype)),  # as in a neural network
    "without the batch's mean": lambda x: x - x.mean(0, keepdim=True),  # as a batch norm does in training
}


@stub
def rows_of_a_text(table, width, before="as it is", behind="as it is"):
    """`mixed_rows` between two of NORMS. f raises ValueError if x doesn't have all tokens of the text."""

    def f(x):
        if x.shape[1] != len(table):
            advice = "replace the rows after t, do not cut them off"
            raise ValueError(f"f was called with {x.shape[1]} of its {len(table)} tokens; {advice}")
        return NORMS[behind](mixed_rows(table, width)(NORMS[before](x)))

    return f


@stub
def peeking_in_one(table, width, entry, source, strength=1.0):
    """`rows_of_a_text`, but one entry (sentence, position, feature) of the output also depends on row `source`."""

    def f(x):
        output = rows_of_a_text(table, width)(x)
        leak = torch.zeros(output.shape, dtype=x.dtype)
        leak[entry] = strength
        return output + leak * x[:, source].sum(-1)[:, None, None]

    return f


@scenario
def drawn_before(answer, args, kwargs):
    """Call answer(f, x) twice; the second x is the last tensor that the first call made and passed to f."""
    f, x = args
    inputs = [x]

    def recorded(y):
        if y.shape == x.shape and not torch.equal(y, x):
            inputs.append(y.detach().clone())
        return f(y)

    answer(recorded, x)
    return answer(f, inputs[-1]), []


@scenario
def kept_entries(answer, args, kwargs):
    """answer(scores, mask) with blocked entries set to 0, so that the gradient ignores what they are filled with."""
    scores, mask = args
    output = answer(scores, mask, **kwargs)
    return torch.where(mask, output, torch.zeros_like(output)), []


@view
def filled_scores(args, kwargs, output):
    """The visible scores, and a description of what replaces the blocked ones.

    A constant is right if softmax turns it into 0 even in a row whose visible scores are all -1e4, in the precision of
    the output.
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
    """What the blocked `scores` were replaced with, in words."""
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
