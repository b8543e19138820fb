"""Explorers for the web edition: which cells they depend on, which are drawn or stored, and their HTML."""

import copy
import json
import re
from html.parser import HTMLParser

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from helpers.authoring import explorers, frames
from helpers.authoring.execute import run_notebook
from helpers.course import course
from tests.test_frames import unpacked

LESSON = course().lesson("4")
CELLS = {
    "imports": "import torch\n\nfrom helpers.lessons.scaling import explore as explore",
    "scores": "scores = torch.tensor([1.0, 2.0])",
    "raised": "scores[0] = 3.0",
    "other": "unused = torch.zeros(3)",
    "drawn": 'explore.temperature(scores, ["a", "b"], start=4.9)',
    "training": "def checkpoint(numbers):\n    return numbers + 1",
    "model": "model = checkpoint(scores)",
    "kept": 'explore.temperature(model, ["a", "b"])',
}


def notebook():
    cells = [new_code_cell(source, id=name) for name, source in CELLS.items()]
    return new_notebook(cells=cells)


def test_a_cell_depends_on_the_cells_that_make_its_names():
    sources = list(CELLS.values())
    assert explorers.rests_on(sources, 4) == [0, 1, 2]
    assert explorers.rests_on(sources, 7) == [0, 1, 2, 5, 6]
    assert explorers.rests_on_training(sources, 7) and not explorers.rests_on_training(sources, 4)
    assert [cell["id"] for cell, _ in explorers.keeping(notebook())] == ["kept"]


def test_last_digits_of_pictures_may_differ_but_not_words():
    assert explorers.alike("loss 0.123, 12 words", "loss 0.124, 12 words")
    assert not explorers.alike("loss 0.123, 12 words", "loss 0.323, 12 words")
    assert not explorers.alike("loss 0.123, 12 words", "loss 0.123, 12 letters")
    assert not explorers.alike("1, 2", "1, 2, 3")


@pytest.fixture(scope="module")
def executed(tmp_path_factory):
    return run_notebook(course(), notebook(), tmp_path_factory.mktemp("lesson"), LESSON.name)


@pytest.mark.full
def test_pictures_of_a_trained_model_are_stored_and_others_drawn(executed, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(frames, "STATES", 6)
    assert [cell["id"] for cell in executed.cells] == list(CELLS)
    holds = [cell["id"] for cell in executed.cells if any(explorers.KIND in o.get("data", {}) for o in cell.outputs)]
    assert holds == ["kept"] and len(executed.cells[-1].outputs) == 1
    notebook = copy.deepcopy(executed)
    found = explorers.moving(course(), LESSON, notebook, tmp_path)
    assert list(found) == ["kept", "drawn"] and capsys.readouterr().err == ""
    assert "a 0.731, b 0.269" in found["kept"]["first"]
    assert len(unpacked(found["kept"]["data"])[0]) == len(found["kept"]["controls"][0]["labels"]) > 10
    assert 3 <= len(unpacked(found["drawn"]["data"])[0]) <= 6  # drawn here, with fewer pictures
    assert not any(explorers.KIND in output.get("data", {}) for output in notebook.cells[-1].outputs)
    monkeypatch.setattr(explorers, "caught", None)  # the second time they come from the folder
    assert explorers.moving(course(), LESSON, notebook, tmp_path)["drawn"] == found["drawn"]


@pytest.mark.full
def test_an_explorer_that_draws_another_picture_than_stored_stays_still(executed, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(frames, "STATES", 3)
    stale = nbformat.from_dict(json.loads(json.dumps(executed).replace("4.90", "7.90")))
    assert "drawn" not in explorers.moving(course(), LESSON, stale, tmp_path)
    assert "explore.temperature does not draw what its notebook shows" in capsys.readouterr().err


class Tags(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.found = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))

    def of(self, kind):
        return [attributes for tag, attributes in self.found if tag == kind]


def test_controls_have_labels_and_read_out_their_values(tmp_path):
    controls = [
        {"name": "angle <°>", "kind": "range", "labels": ["0", "90", "180"], "start": 1},
        {"name": "places", "kind": "select", "labels": ["with", "without"], "start": 1},
        {"name": "a sees b", "kind": "checkbox", "labels": ["no", "yes"], "start": 1},
    ]
    explorer = {"across": 0, "controls": controls, "coarse": True, "typed": False, "data": "xyz"}
    page = explorers.on_page(explorer, "four_scores", "<figure></figure>", tmp_path)
    tags = Tags(page)
    script = (tmp_path / "explorer-four-scores.js").read_text()
    assert script == '(window.explorers ??= {})["explorer-four-scores"] = "xyz";\n'
    named = [label["for"] for label in tags.of("label")]
    assert named == [one["id"] for one in [tags.of("input")[0], *tags.of("select"), tags.of("input")[1]]]
    slider, box = tags.of("input")
    assert slider["max"] == "2" and slider["value"] == "1" and slider["aria-valuetext"] == "90"
    assert json.loads(slider["data-labels"]) == ["0", "90", "180"] and "checked" in box
    assert ["selected" in option for option in tags.of("option")] == [False, True]
    assert "<figure></figure>" in page and "angle &lt;°&gt;" in page and "angle <" not in page
    assert "The notebook has all positions." in page and re.search(r'class="said" role="status"', page)
    assert "a text of your own" not in page and "positions" not in explorers.on_page(
        explorer | {"coarse": False}, "x", "", tmp_path
    )
