"""Trained models with distorted outputs: none passes, and none is told of a mistake that it did not make."""

import pytest
import torch

from helpers.authoring.keys import load_answer_key
from helpers.checking.make_keys import best_outputs, make_key
from helpers.checking.messages import decide
from helpers.checking.observe import observe_all
from helpers.checking.registry import misfit
from helpers.checking.verdict import RESERVED
from helpers.course import course
from tests.clumsy import ALWAYS_WRONG, FORMS, wrapped
from tests.mutation_score import lessons

MEASURED = [
    pytest.param(name, item, id=item.name, marks=pytest.mark.full if item.name == "language_model_logits" else ())
    for name in lessons()
    for item in load_answer_key(course(), course().lesson(name)).exercises
    if item.metric
]


@pytest.mark.parametrize(("lesson", "exercise"), MEASURED)
def test_distorted_outputs_of_trained_models_fail_without_a_named_mistake(lesson, exercise):
    key = make_key(lesson, exercise, 100, False, None, 0)
    best = best_outputs(exercise, key.cases)

    def right(inputs):
        (output,) = (out for case, out in zip(key.cases, best, strict=True) if alike(case.args[0], inputs))
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
