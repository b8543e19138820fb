"""Solved lessons in JupyterLab in headless Chromium run to their ends, and their explorers work."""

import json

import pytest

from tests import lab
from tests.conftest import of_these
from tests.mutation_score import lessons

pytestmark = [pytest.mark.full, pytest.mark.xdist_group("browser"), pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def server(tmp_path_factory, executed_folder):
    """(the server's address, a page); weights of executed notebooks are reused instead of trained again."""
    with lab.course_in_lab(tmp_path_factory.mktemp("course"), trained=executed_folder) as found:
        yield found


@pytest.fixture
def console_errors(server):
    """The errors in the browser's console while a test runs."""
    _, page = server
    messages = []

    def listen(message):
        if message.type == "error":
            messages.append(f"{message.text} ({message.location.get('url', '')})")

    page.on("console", listen)
    yield messages
    page.remove_listener("console", listen)


# Errors of JupyterLab's own requests.
HARMLESS = ("favicon", "status of 404", "Failed to fetch", "WebSocket", "net::ERR_")


@pytest.mark.parametrize("lesson", of_these(lessons(), solved=False))
def test_a_solved_notebook_runs_and_its_explorers_work(server, console_errors, lesson):
    url, page = server
    lab.open_notebook(page, url, f"solutions/{lesson}/{lesson}.ipynb")
    cells = lab.run_all(page)
    wrong = [error for error in lab.errors(cells) if not (lesson.startswith("00") and error[1] == "CheckFailed")]
    assert not wrong
    assert "points" in json.dumps([cell["outputs"] for cell in cells]) or lesson.startswith("00")
    widgets = [c for c in cells if "application/vnd.jupyter.widget-view+json" in json.dumps(c["outputs"])]
    explorers = [c["id"] for c in widgets if "at_work(" not in c["source"]]  # at_work has a box for a sentence
    assert explorers, "the lesson has no explorer"
    try:
        for theme, width in (("Light", 1400), ("Dark", 900)):
            page.set_viewport_size({"width": width, "height": 1000})
            lab.choose_theme(page, f"JupyterLab {theme}")
            for explorer in explorers:
                move_every_slider(page, explorer, width)
    finally:
        lab.choose_theme(page, "JupyterLab Light")
        page.set_viewport_size({"width": 1400, "height": 1000})
    assert [error for error in console_errors if not harmless(error)] == []


def move_every_slider(page, cell_id, width):
    """Move each slider by keyboard: it is wide enough, changes its picture, and keeps the height of the cell."""
    cell = lab.cell(page, cell_id)
    handles = cell.locator(".noUi-handle, .ui-slider-handle")
    if not handles.count():  # an explorer with buttons only
        image = cell.locator("img").first
        before = image.get_attribute("src")
        cell.locator("button").first.press("Space")
        page.wait_for_timeout(3000)
        assert image.get_attribute("src") != before, f"{cell_id}: its buttons do not change the picture"
        return
    assert not cell.locator("select").count(), f"{cell_id}: in JupyterLab a dropdown cannot be used by keyboard"
    for number, choice in enumerate(cell.locator(".widget-toggle-buttons").all()):
        picture, height = look(cell), cell.bounding_box()["height"]
        named = choice.locator("button").all_inner_texts()
        assert all(named) and not any(button.evaluate(CUT) for button in choice.locator("button").all()), named
        choice.locator("button:not(.mod-active)").first.press("Space")
        assert lab.wait_until(lambda picture=picture: look(cell) != picture, 5), f"{cell_id}: choice {number} fails"
        assert abs(cell.bounding_box()["height"] - height) <= 12, f"{cell_id}: the height of the cell changes"
    for number in range(handles.count()):
        track = cell.locator(".noUi-target, .ui-slider").nth(number).bounding_box()
        assert track["width"] >= 200, (cell_id, width, track)
        picture, height = look(cell), cell.bounding_box()["height"]
        assert moves(page, handles.nth(number), lambda picture=picture: look(cell) != picture), (
            f"{cell_id}: slider {number} has no effect at {width} px"
        )
        assert abs(cell.bounding_box()["height"] - height) <= 12, f"{cell_id}: the height of the cell changes"
        assert not any(read.evaluate(CUT) for read in cell.locator(".widget-readout").all()), (
            f"{cell_id}: a value is cut"
        )


CUT = "one => one.scrollWidth > one.clientWidth + 1"


def look(cell) -> str:
    """Return what an explorer shows: the source of its picture, or its text if it has none."""
    image = cell.locator("img")
    if not image.count():
        return cell.locator(".widget-html").last.inner_text()
    assert image.first.get_attribute("alt")
    return image.first.get_attribute("src")


def moves(page, handle, moved) -> bool:
    """Return whether a slider changes its picture, after at most two steps up and three down."""
    handle.focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowLeft", "ArrowLeft", "ArrowLeft"):
        page.keyboard.press(key)
        if lab.wait_until(moved, 3):
            return True
    return False


def harmless(error: str) -> bool:
    """Return whether the error comes from JupyterLab itself."""
    return any(word in error for word in HARMLESS)
