"""What `at_work` does: run the translator with some parts replaced, and say and draw what changed."""

from __future__ import annotations

import difflib
import functools
import html
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import torch
from torch import nn

from helpers.checking.observe import TooSlow, _time_limit
from helpers.translator import measures
from helpers.translator.network import GIVEN
from helpers.translator.trained import greedy, machine, source_batch
from helpers.translator.words import english, french_sentence

TIME_LIMIT = 2.0  # seconds of processor time for one trial
LOSS_SENTENCES, EXACT_SENTENCES = 200, 100


class PartFailed(Exception):
    """A replaced part did not do its work; the text says how."""


class Unanswered(PartFailed):
    """A replaced part is an exercise that is still open."""


@dataclass
class Trial:
    """One run of the translator: what it wrote, how well it does, and the network itself with its weights seen."""

    french: str = ""
    nats: float | None = None
    exact: float | None = None
    network: nn.Module | None = None
    notes: list[str] = field(default_factory=list)
    failed: str = ""
    unanswered: bool = False


def show_at_work(answers: tuple, named: dict, sentence: str, names: Mapping[str, object]) -> None:
    """Everything that `at_work` shows."""
    parts, problem = parts_of(answers, named, names)
    if problem:
        return _show_line(problem)
    problem = unknown_words(sentence)
    if problem:
        return _show_line(problem)
    yours = attempt(parts, sentence)
    if yours.unanswered:
        return _show_line(yours.failed)
    finished = attempt_finished(sentence)
    from helpers.figures import at_work as figures

    pictures = [] if yours.failed else figures.pictures(yours, finished, sentence, parts)
    _show(lines(yours, finished, sentence, list(parts)), pictures)
    _show_box(parts)


def parts_of(answers: tuple, named: dict, names: Mapping[str, object]) -> tuple[dict[str, Callable], str]:
    """The replaced parts by name, and a sentence where they cannot be told."""
    parts = {}
    for answer in answers:
        own = [name for name, value in names.items() if value is answer and answer is not None]
        name = next((n for n in [*own, getattr(answer, "__name__", "")] if n in GIVEN), None)
        if name is None:
            shown = (own or [getattr(answer, "__name__", type(answer).__name__)])[0]
            return (
                {},
                f"The translator has no part called {shown}; at_work(scaled_scores={shown}) says whose place it takes.",
            )
        parts[name] = answer
    for name, answer in named.items():
        if name not in GIVEN:
            near = difflib.get_close_matches(name, GIVEN, n=1)
            hint = f" Did you mean {near[0]}?" if near else ""
            return {}, f"The translator has no part called {name}.{hint}"
        parts[name] = answer
    for name, answer in parts.items():
        if answer is None or answer is Ellipsis:
            return {}, f"{name} is not answered yet; once it is, the translator runs on it here."
        if not callable(answer):
            return {}, f"{name} is a {type(answer).__name__} here, not a function or class."
    if not parts:
        return {}, "at_work needs one of your functions, such as at_work(scaled_scores)."
    return parts, ""


def unknown_words(sentence: str) -> str:
    """A sentence about the words that the translator does not know, "" where it knows all."""
    words = sentence.split()
    strange = [word for word in words if word not in english or word.startswith("<")]
    if not words:
        return "The sentence is empty."
    if len(words) > measures.MAX_WORDS:
        return f"The sentence has {len(words)} words; the translator takes up to {measures.MAX_WORDS}."
    if not strange:
        return ""
    word = strange[0]
    near = [w for w in difflib.get_close_matches(word.lower(), english, n=3, cutoff=0.5) if not w.startswith("<")]
    like = f" Words near it: {', '.join(near)}." if near else " It knows words such as jane, visits, red, apple, kenya."
    return f"The translator does not know the word {word!r}.{like}"


@functools.lru_cache(maxsize=32)
def attempt_finished(sentence: str) -> Trial:
    """The trial with nothing replaced."""
    return attempt({}, sentence)


def attempt(parts: Mapping[str, Callable], sentence: str, limit: float = TIME_LIMIT) -> Trial:
    """Run the translator with `parts` in place. Never raises: what went wrong stands in the trial."""
    trial = Trial()
    guards = {name: guard(name, part, trial.notes) for name, part in parts.items()}
    who = " and ".join(parts) or "the machine"
    try:
        with _time_limit(limit), torch.no_grad(), torch.random.fork_rng(devices=[]):
            network = machine(**guards)
            batch = measures.unseen(LOSS_SENTENCES)
            trial.nats = measures.nats_a_word(network, batch)
            trial.exact = measures.exact(network, batch.first(EXACT_SENTENCES))
            src = source_batch([sentence])
            trial.french = french_sentence(greedy(network, src)[0].tolist())
            trial.network = network
    except Unanswered as error:
        trial.failed, trial.unanswered = str(error), True
    except PartFailed as error:
        trial.failed = str(error)
    except TooSlow:
        trial.failed = f"Your {who} took more than {limit:g} seconds in the translator, and was stopped."
    except NotImplementedError:
        trial.failed, trial.unanswered = unanswered_line(who), True
    except Exception as error:
        trial.failed = f"With your {who} the translator stopped: {type(error).__name__}: {short(error)}"
    return trial


def unanswered_line(name: str) -> str:
    return f"{name} is not answered yet; once it is, the translator runs on it here."


def guard(name: str, part: Callable, notes: list[str]) -> Callable:
    """The part, with its errors turned into PartFailed and its first result compared with the given part's shape."""
    if isinstance(part, type):
        return part
    first = True

    def guarded(*args, **kwargs):
        nonlocal first
        kept = [a.clone() if first and isinstance(a, torch.Tensor) else a for a in args]
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
            if any(not _same(a, b) for a, b in zip(args, kept, strict=True) if isinstance(a, torch.Tensor)):
                notes.append(f"Your {name} changes its input in place; the translator still needs that input.")
            _compare_shapes(name, result, GIVEN[name](*kept, **kwargs))
        return result

    return guarded


def _same(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one.shape == other.shape and torch.equal(one.nan_to_num(), other.nan_to_num())


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


def _kind(thing) -> str:
    name = type(thing).__name__
    return f"an {name}" if name[0] in "aeiou" else f"a {name}"


def short(error: BaseException) -> str:
    try:
        first = (str(error).strip().splitlines() or [""])[0]
    except Exception:
        first = ""
    return first[:160]


def lines(yours: Trial, finished: Trial, sentence: str, names: list[str]) -> list[str]:
    """What is said, one line for each fact."""
    who = " and ".join(names)
    if yours.failed:
        return [yours.failed, f"With the finished part: {sentence} → {finished.french}"]
    said = [f"{sentence} → {yours.french or '(nothing)'}"]
    if yours.french != finished.french:
        said.append(f"with the finished part: {finished.french}")
    said.append(
        f"{nats(yours.nats)} nats a word with your {who}, {nats(finished.nats)} with the finished part"
        f" ({LOSS_SENTENCES} unseen sentences); {verdict(yours, finished)}"
    )
    said.append(
        f"{100 * yours.exact:.0f} of 100 unseen sentences come out word for word; {100 * finished.exact:.0f} with the"
        " finished part"
    )
    return said + yours.notes


def nats(value: float) -> str:
    """A loss with the digits that matter."""
    if value != value:
        return "NaN"
    return f"{value:.4f}" if value < 0.1 else f"{value:.2f}"


def verdict(yours: Trial, finished: Trial) -> str:
    """How the two losses compare, in words."""
    if yours.nats != yours.nats:
        return "a NaN in it spoils everything after it"
    gap, ratio = yours.nats - finished.nats, yours.nats / finished.nats
    if abs(gap) <= 1e-5 + 1e-3 * finished.nats:
        return "as the finished part"
    if gap < 0:
        return "less than the finished part: does it see what it should not?"
    return f"{ratio:.1f} times as much" if ratio < 10 else f"{ratio:,.0f} times as much"


def _show(said: list[str], pictures: list) -> None:
    text = "\n".join([*said, *(repr(picture) for picture in pictures)])
    if not in_notebook():
        print(text)
        return
    from IPython.display import display

    display({"text/plain": text, "text/html": as_html(said, pictures)}, raw=True)


def as_html(said: list[str], pictures: list) -> str:
    """The lines and pictures, in the page's own colors: readable on a light and on a dark page."""
    head, *rest = [html.escape(line) for line in said]
    body = f'<div style="font-size:1.15em;font-weight:600">{head}</div>' + "".join(
        f"<div>{line}</div>" for line in rest
    )
    drawn = "".join(f'<div style="margin-top:8px">{picture._repr_html_()}</div>' for picture in pictures)
    return f'<div style="border-left:4px solid #0072B2;padding:4px 0 4px 12px;margin:4px 0">{body}{drawn}</div>'


def _show_line(line: str) -> None:
    _show([line], [])


def in_notebook() -> bool:
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return shell is not None and hasattr(shell, "kernel")


def _show_box(parts: Mapping[str, Callable]) -> None:
    """A box for a sentence of one's own, where widgets can live."""
    if not in_notebook() or os.environ.get("COURSE_STATIC_PAGE") == "1":
        return
    try:
        import ipywidgets as widgets
        from IPython.display import display
    except ImportError:
        return
    box = widgets.Text(
        description="Your own sentence:",
        placeholder="the black cat sees a red apple",
        continuous_update=False,
        style={"description_width": "initial"},
        layout={"width": "480px", "max_width": "100%"},
    )
    page = widgets.HTML()

    def translate(_change):
        try:
            page.value = own_sentence(parts, box.value)
        except Exception as error:
            page.value = html.escape(f"{type(error).__name__}: {short(error)}")

    box.observe(translate, names="value")
    display(widgets.VBox([box, page]))


def own_sentence(parts: Mapping[str, Callable], sentence: str) -> str:
    """The page for a sentence that the learner typed."""
    from helpers.figures import at_work as figures

    sentence = " ".join(sentence.lower().replace(".", " ").split())
    problem = unknown_words(sentence)
    if problem:
        return as_html([problem], [])
    yours, finished = attempt(parts, sentence), attempt_finished(sentence)
    pictures = [] if yours.failed else figures.pictures(yours, finished, sentence, dict(parts))
    return as_html(lines(yours, finished, sentence, list(parts))[:2], pictures)
