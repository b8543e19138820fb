"""For every exercise a battery of clumsy answers: none passes, none is told of a mistake that it did not make."""

import pytest
import torch

from helpers.authoring.blocks import load_blocks
from helpers.authoring.keys import load_answer_key
from helpers.checking.facets import differs
from helpers.checking.making import best_outputs, make_key
from helpers.checking.metrics import misfit
from helpers.checking.observe import Facts, observe_all
from helpers.checking.verdict import RESERVED, decide
from helpers.checking.views import viewed
from helpers.course import course
from tests.clumsy import ALWAYS_WRONG, FORMS, wrapped
from tests.mutation_score import exercises, lessons

torch.set_num_threads(1)
CASES = [(lesson, exercise) for lesson in lessons() for exercise in exercises(lesson)]
IDS = [f"{lesson}-{exercise.name}" for lesson, exercise in CASES]

# Two ways to the same numbers: there the name is true.
THE_SAME = {
    ("previous_token_weights", "transposed", "looks_ahead"),
    ("head_scores", "transposed", "keys_ask"),
    ("merge_heads", "transposed", "tokens_last"),
}
# Judged by what they do to an argument: whatever they return is right.
RETURN_NOTHING = {"load_from_torch"}


def reference(lesson: str, name: str):
    return getattr(load_blocks(course(), course().lesson(lesson)), name)


@pytest.mark.parametrize(("lesson", "exercise"), CASES, ids=IDS)
def test_clumsy_answers_fail_and_none_is_given_a_name_that_is_not_its_own(lesson, exercise):
    right = reference(lesson, exercise.name)
    key = make_key(lesson, exercise, 100, False, right, 0)
    facts = Facts(exercise.name, "99_batteries", (), key.facts.time_limit)
    wrong = []
    for form, (call, may_be_called) in FORMS.items():
        seen = observe_all(wrapped(right, call), key.cases, facts)
        verdict = decide(key, seen)
        shows = any(
            differs(case, expected, viewed(case, one))
            for case, expected, one in zip(key.cases, key.expected, seen, strict=True)
        )
        free = exercise.name in RETURN_NOTHING and form in ("no return", "wrong type")
        if verdict.passed == (shows or (form in ALWAYS_WRONG and not free)):
            wrong.append(f"{form}: {'passes' if shows else 'fails, and nothing differs'}: {verdict.message}")
        if verdict.mistake is None or verdict.mistake in RESERVED:
            continue
        known = next(mistake for mistake in key.mistakes if mistake.name == verdict.mistake)
        if (exercise.name, form, known.name) not in THE_SAME and not any(
            word in f"{known.name} {known.label}".lower() for word in may_be_called
        ):
            wrong.append(f"{form} is called {known.name} ({known.label})")
    assert not wrong, "\n".join(wrong)


MEASURED = [
    (name, item)
    for name in lessons()
    for item in load_answer_key(course(), course().lesson(name)).exercises
    if item.metric
]


@pytest.mark.parametrize(("lesson", "exercise"), MEASURED, ids=[exercise.name for _, exercise in MEASURED])
def test_clumsy_trained_models_fail_for_what_they_return_and_are_given_no_name(lesson, exercise):
    key = make_key(lesson, exercise, 100, False, None, 0)
    best = best_outputs(exercise, key.cases)

    def right(asked):
        (output,) = (out for case, out in zip(key.cases, best, strict=True) if alike(case.args[0], asked))
        return output

    def alike(a, b):
        return torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b

    for form, (call, _) in FORMS.items():
        seen = observe_all(wrapped(right, call), key.cases, key.facts)
        verdict = decide(key, seen)
        fits = [
            one.error is None and misfit(truth.output, one.output) is None
            for truth, one in zip(key.expected, seen, strict=True)
        ]
        assert verdict.passed == all(fits), (form, verdict.message)
        assert not (verdict.passed and form in ALWAYS_WRONG), form
        assert verdict.mistake is None or verdict.mistake in RESERVED, (form, verdict.mistake)
