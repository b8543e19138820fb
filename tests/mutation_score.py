"""How many wrong answers the check catches, and how many right ones it accepts: all known mistakes and variants.

`python -m tests.mutation_score [--seeds 30] [--seconds 30] [LESSON ...]` prints a table, working on two exercises at a
time. An exercise stops early when it has used its seconds of processor time and ten seeds.
"""

import argparse
import functools
import math
import multiprocessing
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch

from helpers.authoring.blocks import load_blocks
from helpers.authoring.keys import load_answer_key
from helpers.checking.make_keys import make_key, wrong_answer
from helpers.checking.messages import decide
from helpers.checking.observe import observe_all
from helpers.checking.vocabulary import Exercise
from helpers.course import course, load_source

SEEDS = 3
LEAST = 10  # seeds that are tried in any case, if thirty are requested
# These have many cases, which take long.
WHOLES = {"MultiHeadAttention", "Encoder", "EncoderBlock", "DecoderBlock", "Transformer", "GPT", "LlamaBlock"}


@dataclass
class Tally:
    """Results for an exercise's mistakes and accepted variants, over all seeds. `wrong` contains sentences."""

    lesson: str
    exercise: str
    mistakes: int = 0
    caught: int = 0
    named: int = 0
    right: int = 0
    accepted: int = 0
    seeds: int = 0
    seconds: float = 0.0  # of processor time
    wrong: list[str] = field(default_factory=list)


def seeds(number: int) -> list[int]:
    """Return so many seeds: 0, that of the stored key, and others for new inputs as the judge draws them."""
    return [101 * i for i in range(number)]


def lessons() -> list[str]:
    """Return the names of the lessons that have both source files."""
    root = course().root / "solutions"
    return [item.name for item in course().lessons if (root / item.name / "answer_key.py").is_file()]


@functools.cache
def exercises(lesson: str) -> list[Exercise]:
    """Return the exercises of a lesson that have a reference; those that measure an answer have none."""
    return [item for item in load_answer_key(course(), course().lesson(lesson)).exercises if not item.metric]


@functools.cache
def accepted_variants(lesson: str) -> dict[str, tuple]:
    """Return other right answers by exercise, from tests/accepted_variants/TOPIC.py."""
    path = Path(__file__).parent / "accepted_variants" / f"{lesson[3:]}.py"
    return load_source(path, f"accepted_variants_{lesson[3:]}").VARIANTS if path.is_file() else {}


def name_of(form) -> str:
    """Return the name of a right answer; a lambda of the table is named by its line."""
    name = getattr(form, "__name__", str(form))
    return f"the form in line {form.__code__.co_firstlineno}" if name == "<lambda>" else name


def tally(
    lesson: str,
    exercise,
    tried: list[int],
    seconds: float = math.inf,
    first=None,
    of_forms: slice = slice(None),
    calls: bool = True,
) -> Tally:
    """Judge every mistake and accepted variant of an exercise on the inputs of the seeds `tried`, for about `seconds`.

    first: the key of seed 0, if it exists already. of_forms: which of the reference and its variants to judge. calls:
    run mistakes again if the exercise forbids calls, because making a key does not look for them.
    """
    started = time.process_time()
    reference = getattr(load_blocks(course(), course().lesson(lesson)), exercise.name)
    forms = (reference, *accepted_variants(lesson).get(exercise.name, ()))[of_forms]
    result = Tally(lesson, exercise.name, len(exercise.mistakes), right=len(forms))
    verdicts = {}
    for seed in tried:
        result.seconds = time.process_time() - started
        if result.seeds >= min(LEAST, len(tried) // 3) and result.seconds > seconds:
            break
        result.seeds += 1
        made = first if seed == 0 else None
        key = made or make_key(lesson, exercise, 100, False, reference, seed)
        # Another lesson's name, because the check refuses a lesson's own blocks as answers.
        facts = type(key.facts)(key.name, "99_mutation_score", key.facts.forbidden, key.facts.time_limit)
        for form in forms:
            verdict = decide(key, observe_all(form, key.cases, facts))
            verdicts.setdefault(("right", form), []).append((seed, verdict))
        again = calls and seed == 0 and bool(exercise.forbidden)
        seen_key = key if again else replace(key, cases=[replace(case, view=None) for case in key.cases])
        for mistake, known in zip(exercise.mistakes, key.mistakes, strict=True):
            own = observe_all(wrong_answer(mistake, reference), key.cases, facts) if again else known.observations
            verdict = decide(seen_key, own)
            verdicts.setdefault(("wrong", mistake.name), []).append((seed, verdict))
    for (kind, which), found in verdicts.items():
        name = which if isinstance(which, str) else name_of(which)
        if kind == "right":
            bad = [(seed, v) for seed, v in found if not v.passed]
            result.accepted += not bad
            result.wrong += [f"{name} is right but failed (seed {s}): {v.mistake}: {v.message}" for s, v in bad[:1]]
        else:
            result.caught += not any(v.passed for _, v in found)
            result.named += all(v.mistake == which for _, v in found)
            bad = [(seed, v) for seed, v in found if v.mistake != which]
            result.wrong += [f"{name} was called {v.mistake!r} (seed {s}): {v.message}" for s, v in bad[:1]]
    return result


def tally_of(place: tuple[str, str], number: int, seconds: float) -> Tally:
    """Return the tally of an exercise, given by (lesson, name); runs in its own process."""
    torch.set_num_threads(1)
    lesson, name = place
    return tally(lesson, next(item for item in exercises(lesson) if item.name == name), seeds(number), seconds)


def table(tallies: list[Tally]) -> str:
    """Return the tallies as a table of text."""
    head = f"{'lesson':<20}{'exercise':<26}{'caught':>12}{'named':>12}{'variants pass':>20}{'seeds':>7}{'seconds':>9}"
    lines = [head, "-" * len(head)]
    for t in tallies:
        caught, named, accepted = f"{t.caught}/{t.mistakes}", f"{t.named}/{t.mistakes}", f"{t.accepted}/{t.right}"
        lines.append(
            f"{t.lesson:<20}{t.exercise:<26}{caught:>12}{named:>12}{accepted:>20}{t.seeds:>7}{t.seconds:>9.0f}"
        )
    total, caught = sum(t.mistakes for t in tallies), sum(t.caught for t in tallies)
    named, right = sum(t.named for t in tallies), sum(t.right for t in tallies)
    accepted = sum(t.accepted for t in tallies)
    lines.append("-" * len(head))
    lines.append(
        f"{'all':<46}{f'{caught}/{total}':>12}{f'{named}/{total}':>12}{f'{accepted}/{right}':>20}"
        f"   ({100 * caught / max(total, 1):.0f}% of wrong answers caught)"
    )
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description="How many wrong answers does the check catch, and name?")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("lessons", nargs="*", default=lessons())
    parser.add_argument("--seconds", type=float, default=math.inf)
    arguments = parser.parse_args()
    places = [(lesson, exercise.name) for lesson in arguments.lessons for exercise in exercises(lesson)]
    judge = functools.partial(tally_of, number=arguments.seeds, seconds=arguments.seconds)
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        tallies = list(pool.map(judge, places))
    print(table(tallies))
    wrong = [f"{t.lesson} {t.exercise}: {line}" for t in tallies for line in t.wrong]
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
