"""Untouched lessons in JupyterLab in headless Chromium run to their ends; tests/test_colab.py runs all lessons."""

import json

import pytest

from helpers.checking.key import load_keys
from tests import lab

# The first lesson, a typical one, and one with a training run.
LESSONS = (
    "00_start_here",
    pytest.param("07_value_weighting", marks=pytest.mark.full),
    pytest.param("12_language_model", marks=pytest.mark.full),
)
pytestmark = [pytest.mark.xdist_group("browser_untouched"), pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """(the server's address, a page); training runs take only a few steps."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COURSE_QUICK", "1")
        with lab.course_in_lab(tmp_path_factory.mktemp("course")) as found:
            yield found


@pytest.mark.parametrize("lesson", LESSONS)
def test_an_untouched_notebook_runs_to_its_end(server, lesson):
    url, page = server
    lab.open_notebook(page, url, f"notebooks/{lesson}/{lesson}.ipynb")
    cells = lab.run_all(page)
    kinds = {name for _, name, _ in lab.errors(cells)}
    # Lesson 0 fails one check on purpose, to show a message of the check.
    assert kinds <= {"NotAnswered", "NotImplementedError"} | ({"CheckFailed"} if lesson.startswith("00") else set())
    assert "NotAnswered" in kinds
    text = json.dumps([cell["outputs"] for cell in cells])
    assert "not answered yet" in text
    if lesson.startswith("00"):
        below = page.locator(".jp-OutputArea-child:has(.course-not-right) ~ .jp-OutputArea-child").first
        below.scroll_into_view_if_needed()
        assert lab.wait_until(lambda: "CheckFailed" in below.inner_text(), 20)
        colors = below.locator("*").evaluate_all("all => all.map(one => getComputedStyle(one).backgroundColor)")
        assert set(colors) == {"rgba(0, 0, 0, 0)"}, "a failed check ends in a colored line"
    inside = page.locator(".jp-CodeCell .cm-content").evaluate_all("all => all.map(one => one.className)")
    assert inside and all("cm-lineWrapping" in one for one in inside), "long lines of code are cut"
    if "quiz_1" in load_keys(lesson):
        answer_by_a_click(page, load_keys(lesson)["quiz_1"])


def answer_by_a_click(page, quiz):
    """A button writes the choice into the learner's cell and keeps its comment; the check responds to the choice."""

    def now(name):
        return next(cell for cell in page.evaluate(lab.OUTPUTS) if cell["id"] == name)

    before = now(quiz.name)["source"]
    wrong = next(option for option in quiz.explanations if option != quiz.correct)
    for choice, says in ((wrong, "as often as you like"), (quiz.correct, "Right.")):
        check = lab.cell(page, f"check_{quiz.name}", ".course-choices")
        check.get_by_role("button", name=choice, exact=True).click()
        assert lab.wait_until(lambda says=says: says in str(now(f"check_{quiz.name}")["outputs"]), 20)
        assert now(quiz.name)["source"] == before.replace("None", f'"{choice}"') != before
    assert "course-choices" not in str(now(f"check_{quiz.name}")["outputs"])
