"""The text format in which an answer key lists mistakes and quizzes (helpers/checking/mistake_lists.py)."""

import pytest

from helpers.checking.key import load_keys
from helpers.checking.mistake_lists import Mistake, Quiz, UnreadableList, listed_quizzes, mistakes
from helpers.checking.vocabulary import Exercise
from tests.conftest import lesson_names

WIDTH = "d_k**0.5"


def wrong(x):
    return x


def test_a_mistake_consists_of_name_label_edit_and_hint():
    [mistake] = mistakes(f"""
        divided_by_d_k: divided by the width: not by its root
            {WIDTH} -> d_k
            The dot product's variance is d_k.
            What is its standard deviation?
    """)
    hint = "The dot product's variance is d_k. What is its standard deviation?"
    assert mistake == Mistake("divided_by_d_k", "divided by the width: not by its root", hint, "d_k**0.5 -> d_k")


@pytest.mark.parametrize(
    ("lines", "edits"),
    [
        (["a -> b", "c -> d"], ("a -> b", "c -> d")),
        ([".float() ->"], (".float() -> ",)),
        ([" * 2 -> "], ("* 2 -> ",)),
        (["a long old text", "-> a long new one"], ("a long old text -> a long new one",)),
        (["a long old text", "->"], ("a long old text -> ",)),
        (["a -> b", "|    c", "|        d"], ("a -> b\n    c\n        d",)),
        (["a", "|    b -> c", "d -> e"], ("a\n    b -> c", "d -> e")),
        (["return x - -> return x +"], ("return x - -> return x +",)),
    ],
)
def test_edits_may_delete_continue_or_span_several_lines_of_code(lines, edits):
    [mistake] = mistakes("\n".join(["name: label", *(f"    {line}" for line in lines), "    Hint?"]))
    assert mistake.edits == edits and mistake.hint == "Hint?"
    assert isinstance(mistake.wrong, str) == (len(edits) == 1)


def test_a_mistake_can_be_listed_once_for_several_values():
    found = mistakes("""
        added_EPS for EPS in 1e-8, 1e-9: EPS was added
            log(p) -> log(p + EPS)
            What becomes of a 0?
        other: another
            a -> b
            Why?
    """)
    assert [item.name for item in found] == ["added_1e-8", "added_1e-9", "other"]
    assert [item.label for item in found] == ["1e-8 was added", "1e-9 was added", "another"]
    assert [item.wrong for item in found] == ["log(p) -> log(p + 1e-8)", "log(p) -> log(p + 1e-9)", "a -> b"]


def test_a_mistake_without_an_edit_uses_the_function_of_its_name():
    [first, second] = mistakes("one: label\n  Hint?\ntwo: label\n  a -> b\n  Hint?", one=wrong)
    assert first == Mistake("one", "label", "Hint?", wrong) and second.wrong == "a -> b"


@pytest.mark.parametrize(
    ("text", "functions", "message"),
    [
        ("halved, divided by two", {}, "'halved, divided by two' should be \"name: label\", because a mistake"),
        ("halved: by two\n  x -> x / 2", {}, "halved has no hint"),
        ("halved: by two\n  Why?", {}, "halved needs an edit, or a function given under its name"),
        ("halved: by two\n  x -> y\n  Why?", {"halved": wrong}, "halved has both an edit and a function of that name"),
        (
            "halved: by two\n  Why?",
            {"halved": wrong, "third": wrong},
            "the text lists no mistake for the function third",
        ),
        ("a: b\n  x -> y\n  Why?\na: c\n  x -> z\n  Why?", {}, "two mistakes are called a"),
        ("a: b\n  | c\n  Why?", {}, "'| c' has no edit above it to continue"),
        ("-> c", {}, "'-> c' has no edit above it to continue"),
    ],
)
def test_an_invalid_list_of_mistakes_is_refused_in_a_sentence(text, functions, message):
    with pytest.raises(UnreadableList) as caught:
        Exercise("scaled", list).with_mistakes(text, **functions)
    assert str(caught.value).startswith(f"scaled: {message}")


def test_mistakes_of_a_measured_exercise_need_no_edit():
    [mistake] = Exercise("translate", list, metric="exact").with_mistakes("copies: it copies\n  Why?").mistakes
    assert mistake == Mistake("copies", "it copies", "Why?")


def test_with_mistakes_changes_nothing_else_of_an_exercise():
    exercise = Exercise("scaled", list, axes=("query", "key"), weights={"values": 7})
    listed = exercise.with_mistakes("a: b\n  x -> y\n  Why?")
    assert (listed.name, listed.axes, listed.weights) == ("scaled", ("query", "key"), {"values": 7})
    assert listed.mistakes == [Mistake("a", "b", "Why?", "x -> y")]


def test_a_quiz_consists_of_name_right_option_and_explanations():
    found = listed_quizzes("""
        quiz_1: b
            a: That is the variance: not
               its root.
            b: Yes.
        quiz_2: a
            a: So it is.
            b: No.
    """)
    assert found[0] == Quiz("quiz_1", "b", {"a": "That is the variance: not its root.", "b": "Yes."})
    assert found[1].correct == "a"


@pytest.mark.parametrize("text", ["quiz_1: c\n  a: No.\n  b: Yes.", "quiz_1\n  a: No.", "quiz_1: a\n  so it is"])
def test_an_invalid_quiz_is_refused_in_a_sentence(text):
    with pytest.raises(UnreadableList, match='should be "name: right option", with an explanation of that option'):
        listed_quizzes(text)


@pytest.mark.parametrize("lesson", lesson_names())
def test_no_quiz_explanation_begins_with_right(lesson):
    quizzes = [key for key in load_keys(lesson).values() if key.kind == "quiz"]
    assert quizzes or lesson == "00_start_here"
    assert not [text for key in quizzes for text in key.explanations.values() if text.startswith("Right")]
