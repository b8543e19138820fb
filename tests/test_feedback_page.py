"""Feedback pages: exercises by name, no dead links, nothing loaded from outside, formulas, unreadable submissions."""

import re

import nbformat
import pytest
from nbformat import from_dict

from helpers.grading.class_scores import Grade
from helpers.grading.folders import ROOT
from helpers.grading.notebook_page import as_mathml, as_page, facts, without_echoes
from helpers.grading.submission_run import error_output
from tests import lab
from tests.sample_class import hand_in, hand_in_unreadable
from tests.test_class_report import Parts, dead_links
from tests.test_regrade import LESSON, answers, by_hand, grade

NAME = "name 'scaled_scores' is not defined"
FORMULAS = ("03_query_key", "07_value_weighting", "13_real_model")  # the lessons with the most formulas, after 6
LESSONS = ("06_softmax", *(pytest.param(name, marks=pytest.mark.full) for name in FORMULAS))


def page_of(folders, student: str) -> str:
    return (folders.feedback / student / LESSON / f"{LESSON}.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", LESSONS)
def test_a_lessons_page_is_small_and_loads_nothing_from_outside(name):
    notebook = nbformat.read(ROOT / "solutions" / name / f"{name}.ipynb", as_version=4)
    for cell in notebook.cells:
        cell.metadata.pop("nbgrader", None)
    facts = {"cells": {}, "total": "0 of 100 points", "problem": None, "waiting": 0, "late": ""}
    page = as_page(notebook.cells, facts, name)
    assert len(re.sub(r'"data:[^"]*"', "", page)) < 200_000
    assert dead_links(page) == set()
    assert "<script" not in page and "mathjax" not in page.lower() and not re.search(r"\$\$|\\frac|\\text", page)
    assert "<math" in page


def test_a_page_names_the_exercises_and_marks_ungraded_and_blank_answers(folders, lesson, monkeypatch):
    monkeypatch.setattr("helpers.grading.batch.Pool", Parts)
    hand_in(folders, lesson, "a", answers(lesson, scaled_scores="# everything is wrong"))
    hand_in(folders, lesson, "b", {})
    grade(folders, "--feedback")
    page = page_of(folders, "b")
    assert "0 of 100 points" in page and "not answered (16 points)" in page and "No response" not in page
    page = page_of(folders, "a")
    assert "1 answer waits for your teacher" in page and "waits for your teacher (15 points)" in page
    assert re.search(
        r'<li class="none"><a href="#check_scaled_scores"><code>scaled_scores</code></a> <span>0 of 16', page
    )
    assert "Test cell" not in page and "Out[" not in page and "In [" not in page and dead_links(page) == set()
    assert not re.search(r"<pre>\s*\d+\s*</pre>", page)  # only the heading shows the points of a check
    by_hand(folders, "a", "written_1", manual_score=12.5)
    grade(folders)
    assert "12.5 of 15" in page_of(folders, "a") and "waits" not in page_of(folders, "a").split("</style>")[-1]


def test_points_are_marked_as_full_partial_or_none():
    grades = [Grade("a", f"check_{score}", score, 10.0, score, None, False, None) for score in (10.0, 4.0, 0.0)]
    assert [state for _, _, state in facts(grades, None, "a")["cells"].values()] == ["full", "part", "none"]


def test_a_syntax_error_is_reported_once(folders, lesson, monkeypatch):
    """Cells below lack the names that the broken answer would have defined. Their errors are not reported again."""

    class Broken(Parts):
        def graded(self, submission, release):
            graded = super().graded(submission, release)
            for cell in submission.cells:
                if cell.runs and "scaled_scores" in cell.source:
                    error = ("SyntaxError", "bad") if cell.kind == "answer" else ("NameError", NAME)
                    graded.outputs[cell.id] = [error_output(*error)]
                elif cell.source == "mine":
                    graded.outputs[cell.id] = [error_output("NameError", "name 'mine' is not defined")]
            return graded

    monkeypatch.setattr("helpers.grading.batch.Pool", Broken)
    source = "def scaled_scores(Q, K):\n    return (Q @ K.mT\n"
    own = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None}
    sources = ("mine = scaled_scores(1, 2)", "mine")
    below = [{**own, "id": f"own-{number}", "source": code} for number, code in enumerate(sources)]
    hand_in(folders, lesson, "a", answers(lesson, scaled_scores=source), lambda cells: [*cells, *below])
    grade(folders, "--feedback")
    for page in (page_of(folders, "a"), folders.submission_page(LESSON, "a").read_text(encoding="utf-8")):
        assert "SyntaxError: bad" in page and "NameError" not in page
        assert "<code>scaled_scores</code> is not defined, because its own cell has an error" in page
        assert "<code>mine</code> is not defined" in page
    assert without_echoes([from_dict({**below[1], "outputs": [error_output("NameError", NAME)]})])[0].outputs[0].ename


@pytest.mark.full
def test_feedback_on_an_unreadable_submission_says_what_to_do(folders, lesson):
    hand_in(folders, lesson, "a", answers(lesson))
    hand_in_unreadable(folders, LESSON, "c")
    grade(folders, "--feedback")
    page = page_of(folders, "c")
    assert "could not be graded yet" in page and "What to do now" in page and f"{LESSON}.ipynb" in page
    assert "Ask for" not in page and "was not graded automatically" not in page and len(page) < 20_000
    assert not re.search(r"\d of \d", page)
    by_hand(folders, "c", "written_1", manual_score=7.0)
    grade(folders)
    assert "7 of 100 points" in page_of(folders, "c") and "What to do now" not in page_of(folders, "c")


@pytest.mark.parametrize(
    "formula",
    [
        r"\text{<img src=x onerror=hit(1)>}",
        r"\text{</mtext><script>hit(2)</script>}",
        r"\href{javascript:hit(3)}{x}",
        r"\style{background:url(//x)}{x}",
        r"\color{red\" onclick=\"hit(4)}{x}",
        "{" * 1_999,
        r"\frac" * 300,
        "x" * 100_000,
    ],
)
def test_a_hostile_formula_runs_no_code_and_raises_no_error(formula):
    shown = as_mathml(formula)
    tags = re.findall(r"<[^>]*>", shown)
    assert not any(re.search(r"script|img|href|style=|onclick|class", tag) for tag in tags), tags


def test_names_and_norm_bars_in_a_formula_are_rendered():
    assert "<mtext>scaled_scores</mtext>" in as_mathml(r"\text{scaled\_scores}(Q)")
    assert as_mathml(r"\big\lVert x \big\rVert").count("‖") == 2


@pytest.mark.full
def test_a_page_makes_no_network_request_and_marks_its_folds(folders, lesson):
    hand_in(folders, lesson, "a", answers(lesson))
    grade(folders, "--feedback")
    with lab.browser() as page:
        schemes = []
        page.on("request", lambda request: schemes.append(request.url.split(":")[0]))
        page.goto((folders.feedback / "a" / LESSON / f"{LESSON}.html").as_uri())
        fold = page.locator("details", has_text="Hint 1").first
        assert fold.locator("summary").evaluate("e => getComputedStyle(e).display") == "list-item"
        formula = page.locator("math[display=block]").first.bounding_box()
        assert formula["height"] > 25  # a drawn fraction is taller than a line of text
        assert set(schemes) <= {"file", "data"} and schemes.count("file") == 1
        assert lab.faults_by_day_and_night(page) == []
