"""Every known mistake is rejected with its own hint, every accepted variant passes, and clumsy answers fail without
the name of a mistake that they did not make."""

import ast
import re
from dataclasses import replace

import pytest
from torch import nn

from helpers.authoring.blocks import blocks_path, load_blocks
from helpers.authoring.keys import key_differs
from helpers.checking.facets import differs
from helpers.checking.key import key_from_tree, key_to_tree, load_keys
from helpers.checking.make_keys import definition, lesson_keys
from helpers.checking.messages import decide
from helpers.checking.observe import Facts, observe_all, viewed
from helpers.checking.verdict import RESERVED
from helpers.course import course
from tests.clumsy import ALWAYS_WRONG, FORMS, wrapped
from tests.conftest import EVERY
from tests.mutation_score import WHOLES, accepted_variants, exercises, lessons, seeds, tally

CASES = [(lesson, exercise) for lesson in lessons() for exercise in exercises(lesson)]
IDS = [f"{lesson}-{exercise.name}" for lesson, exercise in CASES]
FRESH = [number for number, (_, exercise) in enumerate(CASES) if EVERY or exercise.name not in WHOLES]


# (exercise, form, mistake): the form gives the mistake's numbers, so the name is correct.
THE_SAME = {
    ("one_hot", "transposed", "vocabulary_first"),
    ("previous_token_weights", "transposed", "looks_ahead"),
    ("project", "transposed", "tokens_as_columns"),
    ("head_scores", "transposed", "keys_ask"),
}
# Exercises that are judged by the change to an argument, so that any return value passes.
RETURN_NOTHING = {"load_from_torch"}


def fast(case):
    """The case as a parameter. Full models run only in `make test-all`."""
    return pytest.param(case, marks=pytest.mark.full if case[1].name in WHOLES else ())


@pytest.fixture(scope="module", params=map(fast, CASES), ids=IDS)
def example(request):
    """(lesson, exercise, its finished block, its key of seed 0 before sketching)."""
    lesson, exercise = request.param
    blocks = load_blocks(course(), course().lesson(lesson))
    (key,) = lesson_keys(course().lesson(lesson), [exercise], blocks, 0)
    return lesson, exercise, getattr(blocks, exercise.name), key


@pytest.mark.parametrize("rest", [False, pytest.param(True, marks=pytest.mark.full)])
def test_mistakes_are_caught_and_named_and_accepted_variants_pass(example, rest):
    """`make test` tries the reference, every second variant, and the stored observations of mistakes."""
    lesson, exercise, _, key = example
    assert_all_correct(tally(lesson, exercise, seeds(1), first=key, of_forms=slice(int(rest), None, 2), calls=rest))


@pytest.mark.full
@pytest.mark.parametrize(("lesson", "exercise"), [CASES[i] for i in FRESH], ids=[IDS[i] for i in FRESH])
def test_mistakes_and_variants_are_judged_correctly_on_fresh_inputs(lesson, exercise):
    assert_all_correct(tally(lesson, exercise, seeds(3 if EVERY else 2)[1:]))


def assert_all_correct(result):
    assert not result.wrong, "\n".join(result.wrong)
    assert result.caught == result.named == result.mistakes
    assert result.accepted == result.right


def test_a_stored_key_equals_what_its_sources_give(example):
    lesson, exercise, _, key = example
    assert not key_differs(key, load_keys(lesson)[exercise.name]), f"run course build {lesson}"


@pytest.mark.full
def test_clumsy_answers_fail_and_get_no_wrong_name(example):
    _, exercise, right, key = example
    facts = Facts(exercise.name, "99_batteries", (), key.facts.time_limit)
    wrong = []
    for form, (call, may_be_called) in FORMS.items():
        observations = observe_all(wrapped(right, call), key.cases, facts)
        verdict = decide(key, observations)
        shows = any(
            differs(case, expected, viewed(case, observation))
            for case, expected, observation in zip(key.cases, key.expected, observations, strict=True)
        )
        free = exercise.name in RETURN_NOTHING and form in ("no return", "wrong type")
        if verdict.passed == (shows or (form in ALWAYS_WRONG and not free)):
            wrong.append(f"{form}: {'passes' if shows else 'fails, and nothing differs'}: {verdict.message}")
        if verdict.mistake is None or verdict.mistake in RESERVED:
            continue
        mistake = next(item for item in key.mistakes if item.name == verdict.mistake)
        if (exercise.name, form, mistake.name) not in THE_SAME and not any(
            word in f"{mistake.name} {mistake.label}".lower() for word in may_be_called
        ):
            wrong.append(f"{form} is called {mistake.name} ({mistake.label})")
    assert not wrong, "\n".join(wrong)


@pytest.mark.full
def test_a_stored_key_gives_the_same_verdicts_as_the_full_one(example):
    key, stored = example[3], key_from_tree(key_to_tree(example[3]))
    assert any(item is not None for m in key_to_tree(key)["mistakes"] for item in m["observations"])
    for mistake in key.mistakes:
        full, small = _decided(key, mistake.observations), _decided(stored, mistake.observations)
        assert (small.mistake, small.points, small.message) == (full.mistake, full.points, full.message)


def _decided(key, observations):
    """The verdict on observations to which the views have been applied already."""
    plain = replace(key, cases=[replace(case, view=None) for case in key.cases])
    return decide(plain, observations)


@pytest.mark.parametrize(("lesson", "exercise"), CASES, ids=IDS)
def test_there_are_enough_mistakes_and_accepted_variants(lesson, exercise):
    forms = accepted_variants(lesson).get(exercise.name, ())
    module = any(isinstance(form, type) and issubclass(form, nn.Module) for form in forms)
    least = 4 if module else 3
    where = f"tests/accepted_variants/{lesson[3:]}.py"
    message = f"{where} lists {len(forms)} other right answers to {exercise.name}; {least} are the least"
    assert len(forms) >= least, message
    assert len(exercise.mistakes) >= 3
    assert len({mistake.name for mistake in exercise.mistakes}) == len(exercise.mistakes)


@pytest.mark.parametrize(("lesson", "exercise"), CASES, ids=IDS)
def test_hints_do_not_contain_the_solution(lesson, exercise):
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
