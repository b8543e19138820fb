"""`at_work`: run the translator with some parts replaced, and show in words and pictures what changed."""

import contextlib
import difflib
import functools
import html
import inspect
import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources

import torch
from torch import nn

from helpers.running.global_switches import switches_set
from helpers.running.time_limit import TooSlow, time_limit
from helpers.setup import current_lesson
from helpers.translator import evaluation
from helpers.translator.decoding import write
from helpers.translator.guard import PartFailed, Unanswered, guard, listed, short, unanswered_line
from helpers.translator.network import FINISHED_PARTS
from helpers.translator.part_views import view_of
from helpers.translator.parts import PART, PARTS
from helpers.translator.table import EXACT, NATS, Fact, Row, as_html, compared
from helpers.translator.trained import WeightMismatch, greedy, model, source_batch
from helpers.translator.word_ids import english, french_sentence
from helpers.widgets.progress_bar import in_notebook, static_page

TIME_LIMIT = 4.0  # seconds of processor time for one trial
EXACT_SENTENCES, FEW_SENTENCES = 100, 10
WRITING = {"greedy_decode", "cached_attention", "causal_mask"}  # these generate one sentence at a time (decoding.py)
SHOWN: dict[tuple, str] = {}  # facts and pictures that this kernel has shown -> the parts that they belong to


@dataclass
class Trial:
    """One run of the translator: its translation, its loss and accuracy, the network, and what its view shows."""

    french: str = ""
    nats: float | None = None
    exact: float | None = None
    network: nn.Module | None = None
    in_loss: set[str] = field(default_factory=set)  # the replaced parts that ran while the loss was measured
    ran: set[str] = field(default_factory=set)  # and those that ran at all
    notes: list[str] = field(default_factory=list)
    facts: list[Fact] = field(default_factory=list)
    pictures: list = field(default_factory=list)
    failed: str = ""
    unanswered: bool = False


@switches_set()
def show_at_work(answers: tuple, named: dict, sentence: str, names: Mapping[str, object]) -> None:
    """Show everything that `at_work` shows. named: parts passed by keyword. names: the notebook's globals."""
    parts, problem = parts_of(answers, named, names)
    problem = problem or unknown_words(sentence)
    if problem:
        return _show([Fact(problem)])
    finished = attempt_finished(sentence)
    yours = attempt(parts, sentence)
    if yours.unanswered:
        unanswered = [name for name, part in parts.items() if attempt({name: part}, sentence).unanswered]
        return _show([Fact(unanswered_line(*(unanswered or parts)))])
    view, who = (*yours.facts, *map(repr, yours.pictures)), listed([called(*part) for part in parts.items()])
    if in_notebook() and parts and view and SHOWN.setdefault(view, who) != who:  # another cell has shown the same
        yours.facts, yours.pictures = [Fact(f"all else is as above, with {SHOWN[view]}")], []
    _show(facts(yours, finished, sentence, parts), yours.pictures)
    _show_box(parts)


def parts_of(answers: tuple, named: dict, names: Mapping[str, object]) -> tuple[dict[str, Callable], str]:
    """The replaced parts by name, and a sentence about the problem if they can't be determined."""
    parts = {}
    for answer in answers:
        own = [name for name, value in names.items() if value is answer and answer is not None]
        name = next((name for name in [*own, getattr(answer, "__name__", "")] if name in FINISHED_PARTS), None)
        if name is None:
            shown = [*own, getattr(answer, "__name__", type(answer).__name__)][0]
            return {}, f"The translator has no part called {shown}. {_advice(answer, shown)}"
        parts[name] = answer
    for name in named:
        if name not in FINISHED_PARTS:
            near = difflib.get_close_matches(name, FINISHED_PARTS, n=1)
            hint = f" Did you mean {near[0]}?" if near else ""
            return {}, f"The translator has no part called {name}.{hint}"
    parts |= named
    if unanswered := [name for name, answer in parts.items() if answer is None or answer is Ellipsis]:
        return {}, unanswered_line(*unanswered)
    for name, answer in parts.items():
        if not callable(answer):
            return {}, f"{name} is not a function or class here, but a value of the type {type(answer).__name__}."
    return parts, ""


def _advice(answer: object, shown: str) -> str:
    """Advice about a function that is not a part: the lesson's parts, and one that the function could replace."""
    lesson = current_lesson()
    own = [part.name for part in PARTS if lesson and part.lesson == int(lesson[:2])]
    if not own:
        return f"Some of its parts: {', '.join(list(FINISHED_PARTS)[:8])}."
    advice = f"Its parts in this lesson: {', '.join(own[:8])}."
    fits = [name for name in own if _takes_the_same(answer, FINISHED_PARTS[name])]
    if fits and shown.isidentifier():
        advice += f" To put yours in the place of one, name that one: at_work({fits[0]}={shown})."
    return advice


def _takes_the_same(answer: object, part: Callable) -> bool:
    """Whether both are classes or both functions, with the same number of required parameters."""
    try:
        parameters = (inspect.signature(item).parameters.values() for item in (answer, part))
        counts = [sum(item.default is item.empty for item in items) for items in parameters]
    except (TypeError, ValueError):
        return False
    return counts[0] == counts[1] and isinstance(answer, type) == isinstance(part, type)


def unknown_words(sentence: str) -> str:
    """A message if the translator can't take a sentence: it is empty, too long, or has an unknown word. Else ""."""
    words = sentence.split()
    unknown = [word for word in words if word not in english or word.startswith("<")]
    if not words:
        return "The sentence is empty."
    if len(words) > evaluation.MAX_WORDS:
        return f"The sentence has {len(words)} words; the translator takes up to {evaluation.MAX_WORDS}."
    if not unknown:
        return ""
    word = unknown[0]
    near = [w for w in difflib.get_close_matches(word.lower(), english, n=3, cutoff=0.5) if not w.startswith("<")]
    like = f" Words near it: {', '.join(near)}." if near else " It knows words such as jane, visits, red, apple, kenya."
    return f"The translator does not know the word {word!r}.{like}"


@functools.lru_cache(maxsize=32)
def attempt_finished(sentence: str) -> Trial:
    """The trial in which no part is replaced."""
    return attempt({}, sentence, 60.0, shown=False)


def attempt(parts: Mapping[str, Callable], sentence: str, limit: float | None = None, shown: bool = True) -> Trial:
    """Run the translator with `parts` replaced. Never raises, because the trial records what went wrong.

    limit: seconds of processor time, TIME_LIMIT if None. shown: whether to make the view's facts and pictures.
    """
    limit = limit or TIME_LIMIT
    trial = Trial()
    guards = {name: guard(name, part, trial.notes, trial.ran) for name, part in parts.items()}
    who = listed(list(parts)) or "network"
    inside = {name: part for name, part in guards.items() if PART[name].runs == "network"}
    try:
        printed = contextlib.redirect_stdout(io.StringIO())  # because parts are called a thousand times
        with switches_set(), time_limit(limit), torch.no_grad(), torch.random.fork_rng(devices=[]), printed:
            network = model(**inside)
            batch, encode = evaluation.unseen(evaluation.LOSS_SENTENCES), guards.get("encode")
            if encode:
                batch = batch._replace(src=source_batch(batch.english, encode))
            trial.nats = evaluation.nats_per_word(network, batch, guards.get("shift_right"), inside)
            trial.in_loss = set(trial.ran)
            src = source_batch([sentence], encode)
            if WRITING & set(guards):
                trial.french = french_sentence(write(network, src, guards))
                few = batch.first(FEW_SENTENCES)
                written = [french_sentence(write(network, source_batch([s], encode), guards)) for s in few.english]
                trial.exact = sum(a == b for a, b in zip(written, few.french, strict=True)) / FEW_SENTENCES
            else:
                trial.french = french_sentence(greedy(network, src)[0].tolist())
                trial.exact = evaluation.exact(network, batch.first(EXACT_SENTENCES))
            trial.network = network
            if shown:
                trial.facts, trial.pictures = view_of(trial, sentence, guards)
                if parts:
                    usual, usual_pictures = finished_view(sentence, tuple(parts))
                    bug = any(getattr(part, "__name__", name) != name for name, part in parts.items())
                    trial.facts = compared(trial.facts, usual, bug)
                    if bug:
                        usual_alts = set(map(repr, usual_pictures))
                        trial.pictures = [picture for picture in trial.pictures if repr(picture) not in usual_alts]
    except PartFailed as error:
        trial.failed, trial.unanswered = str(error), isinstance(error, Unanswered)
    except WeightMismatch as error:
        trial.failed = f"The trained weights don't fit your {who}: {error}."
    except TooSlow:
        trial.failed = f"Your {who} took more than {limit:g} seconds in the translator, and was stopped."
    except NotImplementedError:
        trial.failed, trial.unanswered = unanswered_line(who), True
    except (Exception, SystemExit) as error:
        trial.failed = f"With your {who} the translator stopped: {type(error).__name__}: {short(error)}"
    return trial


@functools.lru_cache(maxsize=64)
def finished_view(sentence: str, names: tuple[str, ...]) -> tuple[list[Fact], list]:
    """The facts and pictures of the finished blocks of these names."""
    return view_of(attempt_finished(sentence), sentence, {name: FINISHED_PARTS[name] for name in names})


def facts(yours: Trial, finished: Trial, sentence: str, parts: Mapping[str, Callable]) -> list[Fact]:
    """All facts of a trial, with the finished block's for comparison; the first is the heading."""
    if parts and yours.failed:
        return [Fact(yours.failed), Fact(f"With the finished block: {sentence} → {finished.french}")]
    usual, usual_exact = evaluation.in_nats(finished.nats), f"{100 * finished.exact:.0f}%"
    if not parts:
        counted = f"{usual} nats per word on {evaluation.LOSS_SENTENCES} unseen sentences"
        row = _loss_row("the translator", finished.nats, finished.exact)
        line = f"{counted}; {usual_exact} come out word for word"
        return [Fact(f"{sentence} → {finished.french}"), Fact(line, (row,))]
    result = [Fact(f"{sentence} → {yours.french or '(nothing)'}")]
    if yours.french != finished.french:
        result.append(Fact(f"with the finished block: {finished.french}"))
    names = {name: called(name, part) for name, part in parts.items()}
    if yours.in_loss:
        who, so = [names[name] for name in parts if name in yours.in_loss], verdict(yours, finished)
        line = f"{evaluation.in_nats(yours.nats)} nats per word on {evaluation.LOSS_SENTENCES} unseen sentences "
        line += f"with {' and '.join(who)}; {usual} with the finished block: {so}"
        own = _loss_row(listed(who), yours.nats, yours.exact, (so,), True)
        result.append(Fact(line, (own, _loss_row("the finished block", finished.nats, finished.exact))))
    if yours.in_loss or WRITING & yours.ran:
        exact = f"{100 * yours.exact:.0f}%"
        line = f"{exact} of unseen sentences come out word for word; {usual_exact} with the finished block"
        if yours.in_loss:
            result.append(Fact(line, in_rows=True))
        else:
            who = listed([names[name] for name in parts if name in yours.ran])
            own = Row(EXACT, who, yours.exact, exact, full=1.0, yours=True)
            result.append(Fact(line, (own, Row(EXACT, "the finished block", finished.exact, usual_exact, full=1.0))))
        if verdict(yours, finished) == "the same":
            result += without(parts)
    if idle := [names[name] for name in parts if name not in yours.ran]:
        those = "it" if len(idle) == 1 else "them"
        result.append(Fact(f"{listed(idle)} did not run: nothing shown here is about {those}"))
    return result + yours.facts + [Fact(note) for note in yours.notes]


def _loss_row(label: str, nats: float, exact: float, remarks: tuple[str, ...] = (), yours: bool = False) -> Row:
    words = f"{100 * exact:.0f}% word for word"
    return Row(NATS, label, nats, evaluation.in_nats(nats), (words, *remarks), yours=yours)


def without(parts: Mapping[str, Callable]) -> list[Fact]:
    """The loss of the finished translator without these parts, as far as bench/without_parts.py has measured it."""
    measured = json.loads((resources.files("helpers.translator") / "without.json").read_text(encoding="utf-8"))
    result = []
    for name in parts:
        if name in measured and getattr(parts[name], "__name__", name) == name:
            words, nats, exact = measured[name].values()
            if any(f"({words})" in fact.text for fact in result):
                continue  # two parts with the same replacement
            line = f"without {name} ({words}): {evaluation.in_nats(nats)} nats per word, {100 * exact:.0f}% exact"
            result.append(Fact(line, (_loss_row(f"without {name} ({words})", nats, exact),)))
    return result


def called(name: str, part: Callable) -> str:
    """A part in a sentence: "your scaled_scores", or "unscaled as scaled_scores" for a function under another name."""
    own = getattr(part, "__name__", name)
    return f"your {name}" if own in (name, "<lambda>") else f"{own} as {name}"


def verdict(yours: Trial, finished: Trial) -> str:
    """A comparison of the two losses in words."""
    if yours.nats != yours.nats:
        return "one NaN makes everything after it NaN"
    gap, ratio = yours.nats - finished.nats, yours.nats / finished.nats
    if abs(gap) <= 1e-5 + 1e-3 * finished.nats:
        return "the same"
    if gap < 0:
        return "less than the finished block; does information leak?"
    return f"{ratio:.1f} times as much" if ratio < 10 else f"{ratio:,.0f} times as much"


def _show(facts: list[Fact], pictures: Sequence = ()) -> None:
    text = "\n".join([*(fact.text for fact in facts), *(repr(picture) for picture in pictures)])
    if not in_notebook():
        print(text)
        return
    from IPython.display import display

    display({"text/plain": text, "text/html": as_html(facts, pictures)}, raw=True)


def _show_box(parts: Mapping[str, Callable]) -> None:
    """Show a text box for the learner's own sentence, if widgets work here."""
    if not in_notebook() or static_page():
        return
    try:
        import ipywidgets as widgets
        from IPython.display import display
    except ImportError:
        return
    style = {"style": {"description_width": "initial"}, "layout": {"width": "480px", "max_width": "100%"}}
    hint = "the black cat sees a red apple"
    box = widgets.Text(description="Your own sentence:", placeholder=hint, continuous_update=False, **style)
    page = widgets.HTML()

    def translate(_change):
        try:
            page.value = own_sentence(parts, box.value)
        except Exception as error:
            page.value = html.escape(f"{type(error).__name__}: {short(error)}")

    box.observe(translate, names="value")
    display(widgets.VBox([box, page]))


def own_sentence(parts: Mapping[str, Callable], sentence: str) -> str:
    """The HTML for a sentence that the learner typed."""
    sentence = " ".join(sentence.lower().replace(".", " ").split())
    if problem := unknown_words(sentence):
        return as_html([Fact(problem)])
    finished, yours = attempt_finished(sentence), attempt(parts, sentence)
    return as_html(facts(yours, finished, sentence, parts), yours.pictures)
