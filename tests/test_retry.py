"""The one policy of how an answer is tried, asked by notebook and grader alike: with answers that are only verdicts."""

import pytest

from helpers.checking.key import ExerciseKey
from helpers.checking.retry import TriedAnswer
from helpers.checking.verdict import Verdict

KEY = ExerciseKey("50_test", "f", 10)


def verdict(points=0, mistake=None, answered=True, message="", name="f"):
    return Verdict(name, points, 10, points == 10, mistake, message=message, answered=answered)


class Tried(TriedAnswer):
    """Observations by (replaced, with Python's own functions); keeps what was asked."""

    def __init__(self, outcomes, earlier=None, hides=False, blocks=("g", "h"), refused=None, rebound=()):
        super().__init__(KEY)
        self.outcomes, self.verdicts, self.hides, self.blocks = outcomes, earlier or {}, hides, blocks
        self.other, self.renamed, self.asked = refused, list(rebound), []

    def observe(self, replaced, builtins):
        self.asked.append((tuple(replaced), builtins))
        return self.outcomes[tuple(replaced), builtins]

    def hides_builtins(self):
        return self.hides

    def earlier(self):
        self.asked.append("earlier")
        return self.verdicts

    def has_block(self, name):
        return name in self.blocks

    def refusal(self, verdict):
        return self.other

    def rebound(self):
        return self.renamed


def trial(*args, **named):
    """(the verdict, what was asked)."""
    tried = Tried(*args, **named)
    return tried.verdict(), tried.asked


def test_of_a_right_answer_nothing_else_is_asked():
    found, asked = trial({((), False): verdict(10)}, hides=True)
    assert found.passed and asked == [((), False)]


def test_one_that_is_not_answered_is_not_tried_again():
    found, asked = trial({((), False): verdict(answered=False)}, hides=True)
    assert not found.answered and asked == [((), False)]


def test_the_better_one_counts_where_pythons_own_functions_are_hidden():
    first, with_own = verdict(2), verdict(7)
    assert trial({((), False): first, ((), True): with_own}, hides=True)[0].points == 7
    assert trial({((), False): with_own, ((), True): first}, hides=True)[0].points == 7


def test_an_earlier_answer_that_is_wrong_is_charged_once():
    outcomes = {((), False): verdict(), (("g",), False): verdict(10)}
    found, asked = trial(outcomes, {"g": verdict(name="g"), "h": verdict(10, name="h")})
    assert found.passed and not found.unassisted
    assert found.message == "Judged with a finished g in place of yours, which is not right yet."
    assert asked == [((), False), "earlier", (("g",), False)]
    missing, _ = trial(outcomes, {"g": verdict(answered=False, name="g")})
    assert missing.message.endswith("which is not there yet.")


def test_an_answer_that_does_worse_with_the_finished_block_is_not_paid_less():
    outcomes = {((), False): verdict(6), (("g",), False): verdict(2)}
    found, _ = trial(outcomes, {"g": verdict(name="g")})
    assert found.points == 6 and found.unassisted and not found.message


def test_where_no_piece_is_at_hand_the_earlier_one_comes_first():
    found, asked = trial({((), False): verdict(mistake="value")}, {"g": verdict(name="g")}, blocks=())
    assert found.mistake is None and "fix g first" in found.message and len(asked) == 2


@pytest.mark.parametrize("theirs", [True, False])
def test_a_forbidden_call_is_forgiven_only_where_it_is_the_earlier_answers(theirs):
    outcomes = {((), False): verdict(mistake="forbidden_call"), (("g",), False): verdict(10)}
    earlier = {"g": verdict(mistake="forbidden_call" if theirs else None, name="g")}
    assert trial(outcomes, earlier)[0].passed is theirs


def test_another_verdict_ends_it():
    other = verdict(mistake="forbidden_call", message="no")
    found, asked = trial({((), False): verdict()}, {"g": verdict(name="g")}, refused=other)
    assert found is other and asked == [((), False)]


@pytest.mark.parametrize("better", [True, False])
def test_a_name_that_stands_for_something_else_by_now_is_replaced_too(better):
    outcomes = {((), False): verdict(3), (("h",), False): verdict(10 if better else 3)}
    found, _ = trial(outcomes, {"h": verdict(10, name="h")}, rebound=["h"])
    assert found.passed is better and ("the name now means something else" in found.message) is better
