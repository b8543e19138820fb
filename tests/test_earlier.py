"""An answer that calls an earlier answer is judged only by its own code, in the notebook and in the grader."""

import functools
import itertools
import linecache

import pytest
import torch

from helpers.authoring.blocks import load_blocks
from helpers.checking import session
from helpers.checking.forbidden import FINISHED, Watch, not_watched
from helpers.checking.key import stored_keys
from helpers.checking.names import used_names
from helpers.checking.retry import finished_block, put_in
from helpers.checking.session import verdict_on
from helpers.course import course
from helpers.grading.name_bindings import TopLevel
from helpers.grading.reference import blocks_source
from helpers.grading.submission import Cell
from helpers.progress import PASSED
from tests.conftest import EVERY, one_of
from tests.mutation_score import exercises, lessons


def pairs_of_exercises() -> list[tuple[str, str, tuple[str, ...]]]:
    """Return (lesson, exercise, earlier exercises that its solution calls) for all exercises that call one."""
    found = []
    for lesson in lessons():
        blocks, names = load_blocks(course(), course().lesson(lesson)), [item.name for item in exercises(lesson)]
        for index, name in enumerate(names):
            used = used_names(getattr(blocks, name))
            earlier = tuple(other for other in names[:index] if other in used)
            found += [(lesson, name, earlier)] if earlier else []
    return found


PAIRS = pairs_of_exercises()
# In `make test` one of each lesson is enough.
ONE_EACH = [
    pytest.param(*pair, marks=() if number == 0 or PAIRS[number - 1][0] != pair[0] else pytest.mark.full)
    for number, pair in enumerate(PAIRS)
]
FORMS = {
    "unanswered": "def {name}(*args, **kwargs):\n    raise NotImplementedError\n",
    "raising": "def {name}(*args, **kwargs):\n    raise ValueError('a slip')\n",
    "wrong": "def {name}(*args, **kwargs):\n    return 12345.678\n",
    "missing": "del {name}\n",
}
# Each exercise with one of the four forms of an earlier answer, or with all of them if COURSE_EVERY is set.
LACKING = [
    pytest.param(*pair, form, id=f"{pair[0]}-{pair[1]}-{form}")
    for number, pair in enumerate(PAIRS)
    for place, form in enumerate(FORMS)
    if EVERY or place == number % len(FORMS)
]


def notebook(lesson: str, *cells: str) -> dict:
    """Return the namespace of a notebook after all solutions and then these cells have run."""
    names = {"__name__": "__main__"}
    for number, source in enumerate((blocks_source(course().lesson(lesson)), *cells)):
        filename = f"<cell {lesson} {number}>"
        linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
        exec(compile(source, filename, "exec"), names)
    return names


@pytest.mark.parametrize(("lesson", "name", "earlier", "form"), LACKING)
def test_an_answer_passes_despite_a_missing_or_wrong_earlier_answer_which_is_named(lesson, name, earlier, form):
    names = notebook(lesson, *(FORMS[form].format(name=other) for other in earlier))
    verdict = verdict_on(stored_keys(lesson)[name], names[name])
    assert verdict.passed and verdict.answered and verdict.points == verdict.max_points
    assert any(other in verdict.message for other in earlier)
    assert "Judged with a finished" in verdict.message
    assert ("not there yet" in verdict.message) == (form in ("unanswered", "missing"))
    assert all(form == "missing" or names[other].__globals__ is names for other in earlier)


@pytest.mark.parametrize(("lesson", "name", "earlier"), ONE_EACH)
def test_without_a_finished_block_the_earlier_answer_is_blamed(lesson, name, earlier, monkeypatch):
    monkeypatch.setattr(session, "finished_block", lambda *_: None)
    names = notebook(lesson, *(FORMS["raising"].format(name=other) for other in earlier))
    verdict = verdict_on(stored_keys(lesson)[name], names[name])
    assert not verdict.passed and verdict.answered and verdict.mistake is None
    assert "fix" in verdict.message and any(other in verdict.message for other in earlier)


def test_an_answer_that_is_wrong_itself_gets_its_own_mistake():
    own = "def head_scores(*args, **kwargs):\n    return 3 * right(*args, **kwargs)\n"
    names = notebook("04_scaling", "right = head_scores\n", FORMS["wrong"].format(name="scaled_scores"), own)
    verdict = verdict_on(stored_keys("04_scaling")["head_scores"], names["head_scores"])
    assert not verdict.passed and verdict.points == 0
    assert "3 times" in verdict.message + " ".join(part.detail for part in verdict.parts)
    assert "Judged with a finished scaled_scores" in verdict.message


WHOLE = """import torch.nn.functional as F
def attention(Q, K, V, mask=None):
    return F.scaled_dot_product_attention(Q, K, V, mask), torch.zeros(())
"""
BOTH = """class AttentionHead(AttentionHead):
    def forward(self, x, mask=None):
        return F.scaled_dot_product_attention(self.W_q(x), self.W_k(x), self.W_v(x), mask)
"""


@pytest.mark.full
def test_a_forbidden_call_in_an_earlier_answer_counts_only_there(judges):
    """It does not count for the caller, in notebook and grader, unless the caller makes one itself."""
    judge = judges("07_value_weighting")
    source = TopLevel([blocks_source(judge.lesson)]).source_of([*judge.blocks.bound])
    cells = [Cell("pieces", source), Cell("attention", WHOLE, "answer", "attention")]
    for own in ([], [BOTH]):
        names = notebook("07_value_weighting", WHOLE, *own)
        here = verdict_on(stored_keys("07_value_weighting")["AttentionHead"], names["AttentionHead"])
        added = [Cell("AttentionHead", body, "answer", "AttentionHead") for body in own]
        graded = judge.judge_cells([*cells, *added], ["attention", "AttentionHead"]).verdicts
        assert graded["attention"].mistake == "forbidden_call"
        for found in (here, graded["AttentionHead"]):
            assert (found.passed, found.mistake) == ((False, "forbidden_call") if own else (True, None))
            assert own or "attention: yours is a finished one too, or calls what is forbidden" in found.message


@pytest.mark.parametrize(("lesson", "name", "earlier"), ONE_EACH)
def test_a_finished_block_is_not_accepted_as_an_answer(lesson, name, earlier):
    found = verdict_on(stored_keys(lesson)[name], finished_block(lesson, name))
    assert (found.passed, found.mistake) == (False, "forbidden_call")
    assert found.message == f"helpers.blocks.{name} is the course's finished answer to this exercise; build your own."


@pytest.mark.parametrize(
    ("lesson", "name"), [("08_multi_head", "MultiHeadAttention"), ("10_decoder_block", "Transformer")]
)
@pytest.mark.parametrize("body", ["pass", "def forward(self, *given):\n        return super().forward(*given)"])
def test_a_subclass_of_a_finished_block_is_not_accepted_as_an_answer(lesson, name, body):
    own = f"from helpers.blocks import {name}\nclass {name}({name}):\n    {body}\n"
    found = verdict_on(stored_keys(lesson)[name], notebook(lesson, own)[name])
    assert (found.passed, found.mistake) == (False, "forbidden_call")


@pytest.mark.parametrize(("lesson", "name", "earlier"), ONE_EACH)
def test_an_answer_may_call_finished_blocks_of_earlier_exercises(lesson, name, earlier):
    names = notebook(lesson, f"from helpers.blocks import {', '.join(earlier)}\n")
    found = verdict_on(stored_keys(lesson)[name], names[name])
    assert found.passed and found.message.endswith("what is forbidden there. Here that does not count.")


def test_a_wrong_later_answer_is_no_excuse():
    own = "def scaled_scores(Q, K):\n    return Q @ K.mT * max_gradient(Q)\n"
    names = notebook("04_scaling", FORMS["wrong"].format(name="max_gradient"), own)
    verdict = verdict_on(stored_keys("04_scaling")["scaled_scores"], names["scaled_scores"])
    assert not verdict.passed and "Judged with" not in verdict.message


def test_a_right_answer_gets_no_message_about_wrong_ones():
    names = notebook("04_scaling", FORMS["wrong"].format(name="score_variance"))
    assert verdict_on(stored_keys("04_scaling")["scaled_scores"], names["scaled_scores"]).message == ""


@pytest.mark.parametrize(("form", "own"), [("unanswered", False), ("wrong", False), (None, True)])
def test_an_answer_counts_as_passed_only_with_the_learners_own_earlier_answers(form, own, monkeypatch):
    names = notebook("08_multi_head", *([FORMS[form].format(name="merge_heads")] if form else []))
    PASSED.discard("MultiHeadAttention")
    monkeypatch.setattr(session, "remember", lambda *_: 0)
    session.check_one("MultiHeadAttention", names["MultiHeadAttention"], names)
    assert ("MultiHeadAttention" in PASSED) == own


def test_put_in_restores_the_namespace():
    names = {"a": 1}
    with put_in(names, {"a": len, "b": len}):
        assert names["a"]("xy") == names["b"]("xy") == 2
    assert names == {"a": 1}


def test_calls_inside_finished_blocks_are_not_watched_but_the_learners_functions_are():
    x, mask = torch.ones(1, 3, 2), torch.ones(3, 2, dtype=torch.bool)
    with Watch(("softmax",)) as watch:
        not_watched(finished_block("05_masking", "masked_softmax"))(x, mask)
        Layer = not_watched(finished_block("07_value_weighting", "AttentionHead"))
        assert Layer(2, 2)(x).shape == x.shape and watch.found == []
        not_watched(finished_block("05_masking", "leaks_future"))(lambda x: torch.softmax(x, -1), x)
        assert watch.found == ["torch.softmax"]
        watch.found.clear()
        not_watched(torch.softmax)(x, -1)
        assert watch.found == ["torch.softmax"], "not a function of the course"
        watch.found.clear()
        forged = functools.partial(torch.softmax)
        forged.__module__ = FINISHED
        not_watched(forged)(x, -1)
        assert watch.found == ["torch.softmax"], "neither, whatever it says of itself"


def test_an_unknown_block_is_none():
    assert finished_block("04_scaling", "nothing_like_it") is None
    assert finished_block("98_none", "nothing_like_it") is None


# Lessons with functions and with modules that call modules; the test of notebooks has all lessons.
IN_THE_GRADER = sorted({lesson for lesson, _, _ in PAIRS if EVERY or lesson[:2] in ("04", "08", "10", "14")})


@pytest.mark.parametrize("lesson", one_of(IN_THE_GRADER))
def test_the_grader_judges_an_answer_apart_from_wrong_earlier_answers(lesson, judges):
    own = [(name, earlier) for at, name, earlier in PAIRS if at == lesson]
    pieces = TopLevel([blocks_source(course().lesson(lesson))])
    forms = itertools.cycle(("unanswered", "raising", "wrong"))  # one of them per exercise
    judge = judges(lesson)
    source = pieces.source_of([*judge.blocks.bound.keys()])
    for (name, earlier), form in zip(own, forms, strict=False):
        cells = [Cell("pieces", source)]
        cells += [Cell(other, FORMS[form].format(name=other), "answer", other) for other in earlier]
        verdict = judge.judge_cells(cells, [name]).verdicts[name]
        assert verdict.passed and verdict.points == verdict.max_points, (name, form, verdict.message)
        assert any(other in verdict.message for other in earlier)
