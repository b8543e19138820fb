"""Solved lessons in JupyterLab in headless Chromium: they run to their end, their explorers move."""

import json

import pytest

from tests import lab
from tests.conftest import of_these
from tests.mutation_score import lessons

pytestmark = [pytest.mark.full, pytest.mark.xdist_group("browser"), pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def server(tmp_path_factory, executed_folder):
    """(the server's address, a page), where numbers that are trained already need no second training."""
    with lab.course_in_lab(tmp_path_factory.mktemp("course"), trained=executed_folder) as found:
        yield found


@pytest.fixture
def complaints(server):
    """What the browser's console calls an error while a test runs."""
    _, page = server
    heard = []

    def listen(message):
        if message.type == "error":
            heard.append(f"{message.text} ({message.location.get('url', '')})")

    page.on("console", listen)
    yield heard
    page.remove_listener("console", listen)


# JupyterLab's own requests that a lone server does not answer.
HARMLESS = ("favicon", "status of 404", "Failed to fetch", "WebSocket", "net::ERR_")


@pytest.mark.parametrize("lesson", of_these(lessons(), solved=False))
def test_a_solved_notebook_runs_and_its_explorers_move(server, complaints, lesson):
    url, page = server
    lab.open_notebook(page, url, f"solutions/{lesson}/{lesson}.ipynb")
    cells = lab.run_all(page)
    wrong = [error for error in lab.errors(cells) if not (lesson.startswith("00") and error[1] == "CheckFailed")]
    assert not wrong
    assert "points" in json.dumps([cell["outputs"] for cell in cells]) or lesson.startswith("00")
    widgets = [c for c in cells if "application/vnd.jupyter.widget-view+json" in json.dumps(c["outputs"])]
    explorers = [c["id"] for c in widgets if "at_work(" not in c["source"]]  # whose box takes a sentence
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
    assert [said for said in complaints if not harmless(said)] == []


def move_every_slider(page, cell_id, width):
    """By keyboard: each slider has room, moves its picture, and leaves the page below where it was."""
    cell = lab.cell(page, cell_id)
    handles = cell.locator(".noUi-handle, .ui-slider-handle")
    if not handles.count():  # an explorer of buttons: one press changes its picture
        image = cell.locator("img").first
        before = image.get_attribute("src")
        cell.locator("button").first.press("Space")
        page.wait_for_timeout(3000)
        assert image.get_attribute("src") != before, f"{cell_id}: its buttons move nothing"
        return
    assert not cell.locator("select").count(), f"{cell_id}: JupyterLab takes a dropdown's keys away"
    for number, choice in enumerate(cell.locator(".widget-toggle-buttons").all()):
        picture, height = look(cell), cell.bounding_box()["height"]
        named = choice.locator("button").all_inner_texts()
        assert all(named) and not any(button.evaluate(CUT) for button in choice.locator("button").all()), named
        choice.locator("button:not(.mod-active)").first.press("Space")
        assert lab.wait_until(lambda picture=picture: look(cell) != picture, 5), f"{cell_id}: choice {number} is dead"
        assert abs(cell.bounding_box()["height"] - height) <= 12, f"{cell_id}: the page jumps"
    for number in range(handles.count()):
        track = cell.locator(".noUi-target, .ui-slider").nth(number).bounding_box()
        assert track["width"] >= 200, (cell_id, width, track)
        picture, height = look(cell), cell.bounding_box()["height"]
        assert moves(page, handles.nth(number), lambda picture=picture: look(cell) != picture), (
            f"{cell_id}: slider {number} moves nothing at {width} px"
        )
        assert abs(cell.bounding_box()["height"] - height) <= 12, f"{cell_id}: the page jumps"
        assert not any(read.evaluate(CUT) for read in cell.locator(".widget-readout").all()), (
            f"{cell_id}: a value is cut"
        )


CUT = "one => one.scrollWidth > one.clientWidth + 1"


def look(cell) -> str:
    """What an explorer shows: its picture, or its text where it shows none."""
    image = cell.locator("img")
    if not image.count():
        return cell.locator(".widget-html").last.inner_text()
    assert image.first.get_attribute("alt")
    return image.first.get_attribute("src")


def moves(page, handle, moved) -> bool:
    """Up and, where it stands at its end or the picture does not hang on the next value, some more and down again."""
    handle.focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowLeft", "ArrowLeft", "ArrowLeft"):
        page.keyboard.press(key)
        if lab.wait_until(moved, 3):
            return True
    return False


def harmless(said: str) -> bool:
    """What JupyterLab itself complains about, whatever the notebook."""
    return any(word in said for word in HARMLESS)
