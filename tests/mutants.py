"""Mutants of the lesson's solutions, made by cosmic-ray, judged by the check: who survives?

Run as a program it prints the table and every survivor: `python -m tests.mutants [LESSON...]`, two lessons at a time. A
survivor that is no mistake is listed in equivalent_mutants.toml with the reason.
"""

from __future__ import annotations

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
from dataclasses import dataclass, replace
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
    """One changed line of one solution."""

    exercise: str
    was: str
    became: str
    source: str


@dataclass
class Outcome:
    lesson: str
    killed: int
    equivalent: int
    survivors: list[Mutant]
    seconds: float = 0.0  # of processor time


def mutants(exercise: str, source: str, operators: Iterable[str] | None = None) -> list[Mutant]:
    """Every first-order mutant of a function's or class's source that still compiles, each once."""
    found: dict[str, Mutant] = {}
    for name in operators or operator_names():
        operator = get_operator(name)
        arguments = operator.arguments() if hasattr(operator, "arguments") else ()
        if arguments:
            continue
        occurrence = 0
        while (mutated := _mutated(source, operator(), occurrence)) is not None:
            occurrence += 1
            if mutated in found or _is_doc_change(source, mutated):
                continue
            was, became = _changed_lines(source, mutated)
            found[mutated] = Mutant(exercise, was, became, mutated)
    return list(found.values())


def _mutated(source: str, operator, occurrence: int) -> str | None:
    mutated = mutate_code(source, operator, occurrence)
    return mutated if mutated is not None and mutated != source else None


def _is_doc_change(source: str, mutated: str) -> bool:
    """Whether the change cannot be seen when the code runs (it compiles to the same tree), or does not compile."""
    try:
        return ast.dump(ast.parse(source)) == ast.dump(ast.parse(mutated))
    except SyntaxError:
        return True


def _changed_lines(source: str, mutated: str) -> tuple[str, str]:
    lines = list(difflib.ndiff(source.splitlines(), mutated.splitlines()))
    was = " | ".join(line[2:].strip() for line in lines if line.startswith("- "))
    became = " | ".join(line[2:].strip() for line in lines if line.startswith("+ "))
    return was, became


def survives(mutant: Mutant, key: ExerciseKey, blocks: types.ModuleType) -> bool:
    """Whether the check would pay the mutant in full: asked on each case alone, up to one that tells, then on all."""
    filename = f"<mutant of {mutant.exercise}>"
    linecache.cache[filename] = (len(mutant.source), None, mutant.source.splitlines(True), filename)
    names = dict(vars(blocks)) | {"__name__": "mutant"}
    facts = Facts(key.name, "99_mutants", key.facts.forbidden, SECONDS)
    with contextlib.suppress(Exception):
        exec(compile(mutant.source, filename, "exec"), names)
        answer = names[mutant.exercise]
        single = (
            replace(key, cases=[case], expected=[seen]) for case, seen in zip(key.cases, key.expected, strict=True)
        )
        return all(
            decide(some, observe_all(answer, some.cases, facts)).passed for some in itertools.chain(single, [key])
        )
    return False


def outcome(lesson: str) -> Outcome:
    """Judge every mutant of a lesson's solutions."""
    started = time.process_time()
    blocks = load_blocks(course(), course().lesson(lesson))
    text = Path(blocks.__file__).read_text("utf-8")
    listed = known_equivalents(lesson)
    result = Outcome(lesson, 0, 0, [])
    for exercise in exercises(lesson):
        if exercise.metric:
            continue  # judged by how good it is: there is no one solution to change
        source = definition(text, exercise.name)
        key = make_key(lesson, replace(exercise, mistakes=()), 100, False, getattr(blocks, exercise.name), SEED)
        for mutant in mutants(exercise.name, source):
            if not survives(mutant, key, blocks):
                result.killed += 1
            elif (mutant.exercise, mutant.was, mutant.became) in listed:
                result.equivalent += 1
            else:
                result.survivors.append(mutant)
    result.seconds = time.process_time() - started
    return result


def known_equivalents(lesson: str) -> set[tuple[str, str, str]]:
    entries = tomllib.loads(EQUIVALENT.read_text("utf-8")).get(lesson, []) if EQUIVALENT.is_file() else []
    return {
        (entry["exercise"], entry["was"], became)
        for entry in entries
        if entry["reason"]
        for became in ([entry["became"]] if isinstance(entry["became"], str) else entry["became"])
    }


def limit() -> None:
    """What holds in each process: one thread, and not all of the machine's memory."""
    torch.set_num_threads(1)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def main(names: list[str]) -> int:
    head = f"{'lesson':<22}{'mutants':>9}{'killed':>9}{'equivalent':>12}{'survivors':>11}{'seconds':>9}"
    print(head, flush=True)
    alive = 0
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn"), limit) as pool:
        for o in pool.map(outcome, names or lessons()):
            total = o.killed + o.equivalent + len(o.survivors)
            row = f"{o.lesson:<22}{total:>9}{o.killed:>9}{o.equivalent:>12}{len(o.survivors):>11}{o.seconds:>9.0f}"
            print(row, flush=True)
            for mutant in o.survivors:
                print(f"  {mutant.exercise}:\n    was    {mutant.was}\n    became {mutant.became}", flush=True)
            alive += len(o.survivors)
    return 1 if alive else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
