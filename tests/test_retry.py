"""The policy by which notebook and grader try an answer again. The answers here are given by their verdicts."""

import pytest

from helpers.checking.key import ExerciseKey
from helpers.checking.retry import TriedAnswer
from helpers.checking.verdict import Verdict

KEY = ExerciseKey("50_test", "f", 10)


def verdict(points=0, mistake=None, answered=True, message="", name="f"):
    return Verdict(name, points, 10, points == 10, mistake, message=message, answered=answered)


class Tried(TriedAnswer):
    """outcomes: (replaced names, with Python's builtins) -> verdict. calls: the calls so far."""

    def __init__(self, outcomes, earlier=None, hides=False, blocks=("g", "h"), refused=None, rebound=()):
        super().__init__(KEY)
        self.outcomes, self.verdicts, self.hides, self.blocks = outcomes, earlier or {}, hides, blocks
        self.other, self.renamed, self.calls = refused, list(rebound), []

    def observe(self, replaced, builtins):
        self.calls.append((tuple(replaced), builtins))
        return self.outcomes[tuple(replaced), builtins]

    def hides_builtins(self):
        return self.hides

    def earlier(self):
        self.calls.append("earlier")
        return self.verdicts

    def has_block(self, name):
        return name in self.blocks

    def refusal(self, verdict):
        return self.other

    def rebound(self):
        return self.renamed


def trial(*args, **named):
    """(the verdict, the calls)."""
    tried = Tried(*args, **named)
    return tried.verdict(), tried.calls


def test_a_right_answer_is_tried_once():
    found, calls = trial({((), False): verdict(10)}, hides=True)
    assert found.passed and calls == [((), False)]


def test_a_missing_answer_is_not_tried_again():
    found, calls = trial({((), False): verdict(answered=False)}, hides=True)
    assert not found.answered and calls == [((), False)]


def test_the_better_verdict_counts_if_builtins_are_hidden():
    first, with_own = verdict(2), verdict(7)
    assert trial({((), False): first, ((), True): with_own}, hides=True)[0].points == 7
    assert trial({((), False): with_own, ((), True): first}, hides=True)[0].points == 7


def test_a_wrong_earlier_answer_costs_points_only_once():
    outcomes = {((), False): verdict(), (("g",), False): verdict(10)}
    found, calls = trial(outcomes, {"g": verdict(name="g"), "h": verdict(10, name="h")})
    assert found.passed and not found.unassisted
    assert found.message == "Judged with a finished g in place of yours, which is not right yet."
    assert calls == [((), False), "earlier", (("g",), False)]
    missing, _ = trial(outcomes, {"g": verdict(answered=False, name="g")})
    assert missing.message.endswith("which is not there yet.")


def test_a_worse_verdict_with_the_finished_block_does_not_count():
    outcomes = {((), False): verdict(6), (("g",), False): verdict(2)}
    found, _ = trial(outcomes, {"g": verdict(name="g")})
    assert found.points == 6 and found.unassisted and not found.message


def test_without_a_finished_block_the_message_names_the_earlier_answer():
    found, calls = trial({((), False): verdict(mistake="value")}, {"g": verdict(name="g")}, blocks=())
    assert found.mistake is None and "fix g first" in found.message and len(calls) == 2


@pytest.mark.parametrize("earlier_makes_it", [True, False])
def test_a_forbidden_call_is_forgiven_only_if_the_earlier_answer_makes_it(earlier_makes_it):
    outcomes = {((), False): verdict(mistake="forbidden_call"), (("g",), False): verdict(10)}
    earlier = {"g": verdict(mistake="forbidden_call" if earlier_makes_it else None, name="g")}
    assert trial(outcomes, earlier)[0].passed is earlier_makes_it


def test_a_refusal_ends_the_trial():
    other = verdict(mistake="forbidden_call", message="no")
    found, calls = trial({((), False): verdict()}, {"g": verdict(name="g")}, refused=other)
    assert found is other and calls == [((), False)]


@pytest.mark.parametrize("better", [True, False])
def test_a_name_that_was_rebound_is_replaced_too(better):
    outcomes = {((), False): verdict(3), (("h",), False): verdict(10 if better else 3)}
    found, _ = trial(outcomes, {"h": verdict(10, name="h")}, rebound=["h"])
    assert found.passed is better and ("the name now means something else" in found.message) is better
