"""What simpler checks would accept: `python -m bench.truth [LESSON ...]`, some minutes.

Three judges get the same wrong answers (every known mistake of every exercise) and the same right ones (the solution
and all accepted variants): our check with the stored key; `torch.allclose` with its default tolerances on the key's
first ordinary example; and the shape of that example alone. Our key was made to catch the known mistakes, so its own
column is not surprising. Of interest is what the others miss, and which right answers they refuse.
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
    """Whether two outputs (tensors, numbers, or containers of them) have the same shapes and, if `close`, values."""
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


def _all_alike(found, wanted, keys, close: bool) -> bool:
    return all(alike(found[key], wanted[key], close) for key in keys)


def judged(lesson: str, exercise) -> dict[str, list[int]]:
    """For each judge: accepted wrong answers, all wrong answers, refused right answers, all right answers."""
    key = load_keys(lesson)[exercise.name]
    reference = getattr(load_blocks(course(), course().lesson(lesson)), exercise.name)
    facts = replace(key.facts, lesson="99_bench")  # a finished block is not accepted in its own lesson
    plain = next(case for case in key.cases if case.part == VALUES)
    wanted = key.expected[key.cases.index(plain)].output
    tallies = {judge: [0, len(exercise.mistakes), 0, 0] for judge in JUDGES}

    def passes(answer) -> dict[str, bool]:
        observations = observe_all(answer, key.cases, facts)
        observed = viewed(plain, observations[key.cases.index(plain)])
        verdicts = {"allclose": observed.error is None and alike(observed.output, wanted, True)}
        verdicts["shape"] = observed.error is None and alike(observed.output, wanted, False)
        return verdicts | {"check": decide(key, observations).passed}

    for mistake in exercise.mistakes:
        for judge, passed in passes(wrong_answer(mistake, reference)).items():
            tallies[judge][0] += passed
    for variant in (reference, *accepted_variants(lesson).get(exercise.name, ())):
        for judge, passed in passes(variant).items():
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
        print(f"{lesson:<20}" + "   ".join(f"{judge} {_as_text(tally)}" for judge, tally in rows[lesson].items()))
    _, wrong, _, right = whole["check"]
    says = (
        f"Of {wrong:,} known wrong answers, `torch.allclose` on one example accepts "
        f"{_percent(whole['allclose'][0], wrong)}, a test of shapes {_percent(whole['shape'][0], wrong)}, and our "
        f"check, which was made for them, {_percent(whole['check'][0], wrong)}. Of {right} right answers the three "
        f"refuse {whole['allclose'][2]}, {whole['shape'][2]} and {whole['check'][2]}."
    )
    print(says)
    if not chosen:
        keep("truth", says, {"columns": ["passed", "wrong", "refused", "right"], "lessons": rows, "all": whole})


def _as_text(tally: list[int]) -> str:
    return f"accepts {tally[0]} of {tally[1]}, refuses {tally[2]} of {tally[3]}"


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f}%" if part else "none"


if __name__ == "__main__":
    main(sys.argv[1:])
