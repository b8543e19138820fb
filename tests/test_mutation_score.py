"""Every known mistake is rejected with its own hint and no other's; every accepted variant is accepted."""

import ast
import re

import pytest
import torch
from torch import nn

from helpers.authoring.blocks import blocks_path
from helpers.checking.making import definition
from helpers.course import course
from tests.conftest import EVERY
from tests.mutation_score import accepted_variants, exercises, lessons, tally

torch.set_num_threads(1)
CASES = [(lesson, exercise) for lesson in lessons() for exercise in exercises(lesson)]
IDS = [f"{lesson}-{exercise.name}" for lesson, exercise in CASES]


@pytest.mark.parametrize(("lesson", "exercise"), CASES, ids=IDS)
def test_mistakes_are_caught_and_named_and_accepted_variants_pass(lesson, exercise):
    result = tally(lesson, exercise, 3 if EVERY else 2, seconds=15)  # one seed of whole models
    assert not result.wrong, "\n".join(result.wrong)
    assert result.caught == result.named == result.mistakes
    assert result.accepted == result.right


@pytest.mark.parametrize(("lesson", "exercise"), CASES, ids=IDS)
def test_there_are_enough_mistakes_and_accepted_variants(lesson, exercise):
    forms = accepted_variants(lesson).get(exercise.name, ())
    module = any(isinstance(form, type) and issubclass(form, nn.Module) for form in forms)
    least = 8 if module else 4
    where = f"tests/accepted_variants/{lesson[3:]}.py"
    assert len(forms) >= least, (
        f"{where} lists {len(forms)} other right answers to {exercise.name}; {least} are the least"
    )
    assert len(exercise.mistakes) >= 3
    assert len({mistake.name for mistake in exercise.mistakes}) == len(exercise.mistakes)


@pytest.mark.parametrize(("lesson", "exercise"), CASES, ids=IDS)
def test_hints_do_not_hold_the_solution(lesson, exercise):
    text = blocks_path(course(), course().lesson(lesson)).read_text("utf-8")
    tree = ast.parse(definition(text, exercise.name))
    expressions = {
        re.sub(r"\s", "", ast.unparse(node))
        for node in ast.walk(tree)
        if isinstance(node, (ast.BinOp, ast.Call, ast.Subscript, ast.Compare))
    }
    expressions = {text for text in expressions if len(text) >= 12}
    for mistake in exercise.mistakes:
        words = re.sub(r"\s", "", f"{mistake.label} {mistake.hint}")
        assert not [text for text in expressions if text in words], f"{mistake.name} gives the answer away"
