"""Every lesson in JupyterLab in headless Chromium: runs to its end, explorers move, the check is a rich display."""

import json
import os
import shutil
from pathlib import Path

import pytest

from tests import lab
from tests.kill_rate import lessons

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    if lab.chromium() is None:
        if os.environ.get("COURSE_CI"):
            pytest.fail("Chromium is missing; .ci/run installs it")
        pytest.skip("no Chromium on this machine")
    folder = tmp_path_factory.mktemp("course")
    for part in ("notebooks", "helpers", "solutions"):
        shutil.copytree(lab.ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(lab.ROOT / "course.toml", folder)
    with lab.lab(folder) as url, lab.browser() as page:
        yield url, page


def errors(cells):
    return [
        (cell["source"][:60], output["ename"], output["evalue"])
        for cell in cells
        for output in cell["outputs"]
        if output["output_type"] == "error"
    ]


def shoot(page, name):
    """Keep pictures of the open notebook where COURSE_SCREENSHOTS says so, for a person to look at."""
    if os.environ.get("COURSE_SCREENSHOTS"):
        lab.screenshots(page, Path(os.environ["COURSE_SCREENSHOTS"]), name)


@pytest.mark.parametrize("lesson", lessons())
def test_an_untouched_notebook_runs_to_its_end(server, lesson):
    url, page = server
    lab.open_notebook(page, url, f"notebooks/{lesson}/{lesson}.ipynb")
    cells = lab.run_all(page)
    kinds = {name for _, name, _ in errors(cells)}
    # Lesson 0 fails one check on purpose, to show how the check talks.
    assert kinds <= {"NotAnswered", "NotImplementedError"} | ({"CheckFailed"} if lesson.startswith("00") else set())
    assert "NotAnswered" in kinds
    text = json.dumps([cell["outputs"] for cell in cells])
    assert "not answered yet" in text
    shoot(page, f"{lesson}_student")


@pytest.mark.parametrize("lesson", lessons())
def test_a_solved_notebook_runs_and_its_explorers_move(server, lesson):
    url, page = server
    lab.open_notebook(page, url, f"solutions/{lesson}/{lesson}.ipynb")
    cells = lab.run_all(page)
    wrong = [error for error in errors(cells) if not (lesson.startswith("00") and error[1] == "CheckFailed")]
    assert not wrong
    assert "points" in json.dumps([cell["outputs"] for cell in cells]) or lesson.startswith("00")
    explorer = next((c for c in cells if "application/vnd.jupyter.widget-view+json" in json.dumps(c["outputs"])), None)
    assert explorer is not None, "the lesson has no explorer"
    index = page.evaluate(
        "id => window.jupyterapp.shell.currentWidget.content.widgets.findIndex(w => w.model.sharedModel.id === id)",
        explorer["id"],
    )
    page.evaluate("i => window.jupyterapp.shell.currentWidget.content.scrollToItem(i)", index)
    cell = page.locator(".jp-Cell").filter(has=page.locator(".widget-slider, .widget-dropdown")).first
    cell.scroll_into_view_if_needed()
    before = cell.locator("img").first.get_attribute("src")
    assert cell.locator("img").first.get_attribute("alt")
    handle = cell.locator(".noUi-handle, .ui-slider-handle").first
    if handle.count():
        handle.focus()
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowRight")
    else:
        cell.locator("select").first.select_option(index=1)
    page.wait_for_function(
        "([old]) => [...document.querySelectorAll('.jp-OutputArea img')].every(img => img.src !== old)", arg=[before]
    )
    shoot(page, f"{lesson}_solved")
