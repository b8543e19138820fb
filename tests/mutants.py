"""Mutation test of the check: cosmic-ray makes mutants of the lessons' solutions, and the check judges them.

`python -m tests.mutants [LESSON...]` prints a table and every survivor, working on two lessons at a time. A survivor
that is no mistake is listed in equivalent_mutants.toml with the reason.
"""

import ast
import contextlib
import difflib
import itertools
import linecache
import multiprocessing
import resource
import sys
import time
import tomllib
import types
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

from helpers.authoring.blocks import load_blocks
from helpers.checking.key import ExerciseKey
from helpers.checking.make_keys import definition, make_key
from helpers.checking.messages import decide
from helpers.checking.observe import Facts, observe_all
from helpers.course import course
from tests.mutation_score import exercises, lessons

SEED = 303
SECONDS = 1.0
MEMORY = 8 << 30
EQUIVALENT = Path(__file__).with_name("equivalent_mutants.toml")


@dataclass(frozen=True)
class Mutant:
    """A solution with one change: the exercise, the changed lines before and after, and the whole source."""

    exercise: str
    was: str
    became: str
    source: str


@dataclass
class Outcome:
    """The results of all mutants of a lesson's solutions, or of a module."""

    name: str
    killed: int = 0
    listed: int = 0
    survivors: list[Mutant] = field(default_factory=list)
    seconds: float = 0.0  # of processor time


def mutants(exercise: str, source: str, operators: Iterable[str] | None = None) -> list[Mutant]:
    """Return every mutant with one change of a function's or class's source that still compiles, without duplicates."""
    found: dict[str, Mutant] = {}
    for name in operators or operator_names():
        operator = get_operator(name)
        if hasattr(operator, "arguments") and operator.arguments():
            continue
        for occurrence in itertools.count():
            mutated = mutate_code(source, operator(), occurrence)
            if mutated is None or mutated == source:
                break
            if mutated not in found and not _is_doc_change(source, mutated):
                lines = list(difflib.ndiff(source.splitlines(), mutated.splitlines()))
                was, became = (" | ".join(line[2:].strip() for line in lines if line[0] == sign) for sign in "-+")
                found[mutated] = Mutant(exercise, was, became, mutated)
    return list(found.values())


def _is_doc_change(source: str, mutated: str) -> bool:
    """Return whether the mutated source differs only in comments and layout, or does not compile."""
    try:
        return ast.dump(ast.parse(source)) == ast.dump(ast.parse(mutated))
    except SyntaxError:
        return True


def survives(mutant: Mutant, key: ExerciseKey, blocks: types.ModuleType) -> bool:
    """Return whether the check passes the mutant, on each case by itself until one fails, and then on all together."""
    filename = f"<mutant of {mutant.exercise}>"
    linecache.cache[filename] = (len(mutant.source), None, mutant.source.splitlines(True), filename)
    names = dict(vars(blocks)) | {"__name__": "mutant"}
    facts = Facts(key.name, "99_mutants", key.facts.forbidden, SECONDS)
    with contextlib.suppress(Exception):
        exec(compile(mutant.source, filename, "exec"), names)
        answer = names[mutant.exercise]
        alone = (replace(key, cases=[case], expected=[e]) for case, e in zip(key.cases, key.expected, strict=True))
        return all(decide(some, observe_all(answer, some.cases, facts)).passed for some in (*alone, key))
    return False


def outcome(lesson: str) -> Outcome:
    """Judge every mutant of a lesson's solutions."""
    started = time.process_time()
    blocks = load_blocks(course(), course().lesson(lesson))
    text = Path(blocks.__file__).read_text("utf-8")
    known, result = listed(EQUIVALENT, lesson), Outcome(lesson)
    for exercise in exercises(lesson):
        source = definition(text, exercise.name)
        key = make_key(lesson, replace(exercise, mistakes=()), 100, False, getattr(blocks, exercise.name), SEED)
        for mutant in mutants(exercise.name, source):
            if not survives(mutant, key, blocks):
                result.killed += 1
            elif mutant.became in known.get((mutant.exercise, mutant.was), ()):
                result.listed += 1
            else:
                result.survivors.append(mutant)
    result.seconds = time.process_time() - started
    return result


def listed(path: Path, section: str) -> dict[tuple[str, str], set[str]]:
    """Return what each (name, line) may become for a listed reason; an empty set allows anything."""
    entries = (item for item in tomllib.loads(path.read_text("utf-8")).get(section, []) if item["reason"])
    found: dict[tuple[str, str], set[str]] = {}
    for item in entries:
        became = item.get("became", [])
        place = found.setdefault((item.get("exercise") or item["piece"], item["was"]), set())
        place.update([became] if isinstance(became, str) else became)
    return found


def show(outcomes: Iterable[Outcome]) -> int:
    """Print a table row for each outcome and every survivor; return the number of survivors."""
    print(f"{'':<22}{'mutants':>9}{'killed':>9}{'listed':>9}{'survivors':>11}{'seconds':>9}", flush=True)
    alive = 0
    for o in outcomes:
        total = o.killed + o.listed + len(o.survivors)
        print(f"{o.name:<22}{total:>9}{o.killed:>9}{o.listed:>9}{len(o.survivors):>11}{o.seconds:>9.0f}", flush=True)
        for mutant in o.survivors:
            print(f"  {mutant.exercise}:\n    was    {mutant.was}\n    became {mutant.became}", flush=True)
        alive += len(o.survivors)
    return alive


def limit() -> None:
    """Limit each process to one thread and a part of the machine's memory."""
    torch.set_num_threads(1)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def main(names: list[str]) -> int:
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn"), limit) as pool:
        return 1 if show(pool.map(outcome, names or lessons())) else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
