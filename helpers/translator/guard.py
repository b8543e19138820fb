"""A wrapper around a replaced part that turns its errors, wrong shapes and changed inputs into sentences."""

from collections.abc import Callable, Sequence

import torch
from torch import nn

from helpers.translator.network import FINISHED_PARTS
from helpers.translator.parts import NOT_COMPARED


class PartFailed(Exception):
    """A replaced part failed; the message says how."""


class Unanswered(PartFailed):
    """A replaced part is an unanswered exercise."""


def unanswered_line(*names: str) -> str:
    if len(names) == 1:
        return f"{names[0]} is not answered yet; once it is, the translator runs on it here."
    return f"{listed(names)} are not answered yet; once they are, the translator runs on them here."


def listed(names: Sequence[str]) -> str:
    """Names as a sentence lists them: "a", "a and b", "a, b and c"."""
    return " and ".join([*([", ".join(names[:-1])] if names[1:] else []), *names[-1:]])


def guard(name: str, part: Callable, notes: list[str], ran: set[str]) -> Callable:
    """The part, with its errors turned into PartFailed and the shapes of its first result compared with the finished
    part's.

    notes: a list that gets a sentence if the part changes its inputs. ran: a set that gets the name when the part runs.
    """
    if isinstance(part, type):
        return lambda *sizes, **options: _built(name, part, sizes, options, ran)
    first = True

    def guarded(*args, **kwargs):
        nonlocal first
        ran.add(name)
        before = [a.clone() if first and isinstance(a, torch.Tensor) else a for a in args]
        try:
            result = part(*args, **kwargs)
        except NotImplementedError as error:
            if str(error):
                raise PartFailed(f"Your {name} raised NotImplementedError: {short(error)}") from error
            raise Unanswered(unanswered_line(name)) from error
        except Exception as error:
            raise PartFailed(f"Your {name} raised {type(error).__name__}: {short(error)}") from error
        if result is None:
            raise PartFailed(f"Your {name} returned None. Is there a return?")
        if first:
            first = False
            tensors = [(a, b) for a, b in zip(args, before, strict=True) if isinstance(a, torch.Tensor)]
            if not all(a.shape == b.shape and torch.equal(a.nan_to_num(), b.nan_to_num()) for a, b in tensors):
                notes.append(f"Your {name} changes its input in place; the translator still needs that input.")
            if name not in NOT_COMPARED:
                _compare_shapes(name, result, FINISHED_PARTS[name](*before, **kwargs))
        return result

    return guarded


def _compare_shapes(name: str, result, expected) -> None:
    pairs = list(zip(result, expected, strict=False)) if isinstance(expected, tuple) else [(result, expected)]
    if isinstance(expected, tuple) and (not isinstance(result, tuple) or len(result) != len(expected)):
        raise PartFailed(f"Your {name} returned {_kind(result)}; the translator needs {len(expected)} results there.")
    for got, needed in pairs:
        if isinstance(needed, torch.Tensor):
            if not isinstance(got, torch.Tensor):
                raise PartFailed(f"Your {name} returned {_kind(got)}; the translator needs a tensor there.")
            if got.shape != needed.shape:
                shapes = f"{tuple(got.shape)}, and the translator needs {tuple(needed.shape)} there"
                raise PartFailed(f"Your {name} returned the shape {shapes}.")


def _kind(value) -> str:
    """The type of a value with its article, for a sentence."""
    name = type(value).__name__
    return f"an {name}" if name[0] in "aeiou" else f"a {name}"


def short(error: BaseException) -> str:
    """The first line of an error's message, at most 160 characters; empty if the error's own __str__ fails."""
    try:
        return (str(error).strip().splitlines() or [""])[0][:160]
    except Exception:
        return ""


def _built(name: str, part: type, sizes: tuple, options: dict, ran: set[str]) -> nn.Module:
    try:
        module = part(*sizes, **options)
    except NotImplementedError as error:
        raise Unanswered(unanswered_line(name)) from error
    except Exception as error:
        raise PartFailed(f"Your {name} could not be made: {type(error).__name__}: {short(error)}") from error
    if not isinstance(module, nn.Module):
        raise PartFailed(f"Your {name} makes {_kind(module)}, not an nn.Module.")
    module.register_forward_pre_hook(lambda *_: ran.add(name))
    return module
