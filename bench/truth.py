"""What simpler checks would let pass: `python -m bench.truth [LESSON ...]`, some minutes.

The same wrong answers (every known mistake of every exercise) and the same right ones (the solution and all accepted
variants) before three judges: our check on the stored key; `torch.allclose` with its usual tolerances on the key's
first plain example; and the shape of that example alone. The known mistakes are those that our key was made to catch,
so its own column is no news: the news is what the others miss, and what they refuse that is right.
"""

import sys
from dataclasses import replace

import torch

from bench.written import keep
from helpers.authoring.blocks import load_blocks
from helpers.checking.key import load_keys
from helpers.checking.make_keys import wrong_answer
from helpers.checking.messages import decide
from helpers.checking.observe import observe_all, viewed
from helpers.checking.vocabulary import VALUES
from helpers.course import course
from tests.mutation_score import accepted_variants, exercises, lessons

JUDGES = ("check", "allclose", "shape")


def alike(found, wanted, close: bool) -> bool:
    """Whether two outputs (tensors, numbers, or lists, tuples and dicts of them) have one shape, and numbers too."""
    if isinstance(wanted, torch.Tensor):
        if not isinstance(found, torch.Tensor) or found.shape != wanted.shape:
            return False
        return not close or torch.allclose(found.double(), wanted.double(), equal_nan=True)
    if isinstance(wanted, dict):
        return isinstance(found, dict) and found.keys() == wanted.keys() and _all_alike(found, wanted, wanted, close)
    if isinstance(wanted, (list, tuple)):
        same = isinstance(found, (list, tuple)) and len(found) == len(wanted)
        return same and _all_alike(found, wanted, range(len(wanted)), close)
    if isinstance(wanted, float):
        return isinstance(found, (int, float)) and (not close or abs(found - wanted) <= 1e-8 + 1e-5 * abs(wanted))
    return type(found) is type(wanted) and (not close or found == wanted)


def _all_alike(found, wanted, places, close: bool) -> bool:
    return all(alike(found[place], wanted[place], close) for place in places)


def judged(lesson: str, exercise) -> dict[str, list[int]]:
    """For each judge: wrong answers that it lets pass, wrong ones, right answers that it refuses, right ones."""
    key = load_keys(lesson)[exercise.name]
    reference = getattr(load_blocks(course(), course().lesson(lesson)), exercise.name)
    facts = replace(key.facts, lesson="99_bench")  # a finished block is no answer to its own lesson
    plain = next(case for case in key.cases if case.part == VALUES)
    wanted = key.expected[key.cases.index(plain)].output
    tallies = {judge: [0, len(exercise.mistakes), 0, 0] for judge in JUDGES}

    def passes(answer) -> dict[str, bool]:
        observations = observe_all(answer, key.cases, facts)
        seen = viewed(plain, observations[key.cases.index(plain)])
        simple = {"allclose": seen.error is None and alike(seen.output, wanted, True)}
        simple["shape"] = seen.error is None and alike(seen.output, wanted, False)
        return simple | {"check": decide(key, observations).passed}

    for mistake in exercise.mistakes:
        for judge, passed in passes(wrong_answer(mistake, reference)).items():
            tallies[judge][0] += passed
    for form in (reference, *accepted_variants(lesson).get(exercise.name, ())):
        for judge, passed in passes(form).items():
            tallies[judge][2] += not passed
            tallies[judge][3] += 1
    return tallies


def main(chosen: list[str]) -> None:
    torch.set_num_threads(1)
    rows, whole = {}, {judge: [0, 0, 0, 0] for judge in JUDGES}
    for lesson in chosen or lessons():
        rows[lesson] = {judge: [0, 0, 0, 0] for judge in JUDGES}
        for exercise in exercises(lesson):
            for judge, tally in judged(lesson, exercise).items():
                for total in (rows[lesson][judge], whole[judge]):
                    total[:] = [old + new for old, new in zip(total, tally, strict=True)]
        print(f"{lesson:<20}" + "   ".join(f"{judge} {_said(tally)}" for judge, tally in rows[lesson].items()))
    _, wrong, _, right = whole["check"]
    says = (
        f"Of {wrong:,} known wrong answers, `torch.allclose` on one example accepts "
        f"{_share(whole['allclose'][0], wrong)}, a test of shapes {_share(whole['shape'][0], wrong)}, and our check, "
        f"which was made for them, {_share(whole['check'][0], wrong)}. Of {right} right answers the three refuse "
        f"{whole['allclose'][2]}, {whole['shape'][2]} and {whole['check'][2]}."
    )
    print(says)
    if not chosen:
        keep("truth", says, {"columns": ["passed", "wrong", "refused", "right"], "lessons": rows, "all": whole})


def _said(tally: list[int]) -> str:
    return f"lets {tally[0]} of {tally[1]} pass, refuses {tally[2]} of {tally[3]}"


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f}%" if part else "none"


if __name__ == "__main__":
    main(sys.argv[1:])
