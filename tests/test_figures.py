"""Every figure of every lesson, as its solution notebook draws it: no overlapping or small text, and an alt text."""

import contextlib
import io
import itertools
import re
import shutil
import tempfile
import warnings
from dataclasses import dataclass

import ipywidgets as widgets
import matplotlib
import nbformat
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb, to_rgba
from matplotlib.figure import Figure

import helpers
from bench import redraw_time
from helpers.authoring.keys import measured_exercises
from helpers.course import course
from helpers.drawing import charts, style
from helpers.drawing.transformer_map import transformer_map
from helpers.widgets.panel import Shown, panel
from tests.conftest import ONE, ROOT, lesson_names, one_of

OVERLAP = 0.12  # allowed fraction of the smaller text's box, because boxes are a little larger than their letters

BUILT = [name for name in lesson_names() if (ROOT / "solutions" / name / f"{name}.ipynb").is_file()]


@pytest.fixture(scope="module", params=one_of(BUILT))
def pictures(request):
    """The lesson's pictures. Its cells run here without checks and at_work, and with weights that were saved before."""
    lesson = request.param
    notebook = nbformat.read(ROOT / "solutions" / lesson / f"{lesson}.ipynb", as_version=4)
    pictures, namespace = [], {"__name__": "__main__"}
    original_init = style.Picture.__init__

    def init(self, *args, **kwargs):
        original_init(self, *args, **kwargs)
        pictures.append(self)

    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings(), tempfile.TemporaryDirectory() as scratch:
        warnings.simplefilter("ignore")
        patch.setattr(style.Picture, "__init__", init)
        for name in ("check", "progress", "at_work"):
            patch.setattr(helpers, name, lambda *_answers, **_named: None)
        patch.setattr(helpers, "or_finished", lambda answer: answer)  # as if its check had passed
        patch.setenv("COURSE_STATIC_PAGE", "1")
        if measured_exercises(course(), course().lesson(lesson)):
            request.getfixturevalue("executed_solution")(lesson)
            weights = request.getfixturevalue("executed_folder") / f"{lesson}.kept"
            shutil.copytree(weights, scratch, dirs_exist_ok=True)
        patch.setenv("COURSE_KEEP_FOLDER", scratch)
        for cell in notebook.cells:
            mark = cell.metadata.get("nbgrader", {})
            if cell.cell_type != "code" or mark.get("grade") or mark.get("grade_id") == "setup":
                continue
            # A cell that fails on purpose has the tag. An error in any other cell fails this test.
            fails = contextlib.suppress(Exception if "raises-exception" in cell.metadata.get("tags", ()) else ())
            with contextlib.redirect_stdout(io.StringIO()), fails:
                exec(compile(cell.source, cell["id"], "exec"), namespace)
    assert pictures, lesson
    return [Drawn(picture.figure, picture.alt, texts(picture.figure), picture._repr_html_()) for picture in pictures]


@dataclass
class Drawn:
    """A picture, drawn once for all tests. texts: pairs (text artist, its box in pixels); page: its HTML."""

    figure: Figure
    alt: str
    texts: list[tuple]
    page: str


def texts(figure):
    """The visible texts: pairs (text artist, its box in pixels)."""
    renderer = FigureCanvasAgg(figure).get_renderer()
    with matplotlib.rc_context(style.RC):  # as for a picture, because the number of ticks depends on the font size
        figure.draw(renderer)
        return [(text, text.get_window_extent(renderer)) for text in letters(figure)]


def letters(figure):
    """The visible text artists of a figure that has been drawn."""
    found = [*figure.texts]
    for ax in figure.axes:
        if not ax.get_visible():
            continue
        found += ax.texts
        if ax.get_legend():
            found += ax.get_legend().get_texts()
        for table in ax.tables:
            found += [cell.get_text() for cell in table.get_celld().values()]
        found += [ax.title]
        if ax.axison:
            for axis in (ax.xaxis, ax.yaxis):
                found += [axis.label, *(tick.label1 for tick in drawn_ticks(axis)), axis.get_offset_text()]
                found += [tick.label2 for tick in drawn_ticks(axis) if tick.label2.get_visible()]
    return [text for text in found if text.get_visible() and text.get_text().strip()]


def drawn_ticks(axis):
    """The ticks of a drawn axis that lie within its limits."""
    low, high = sorted(axis.get_view_interval())
    near = 1e-9 * (high - low)
    ticks = [*axis.get_major_ticks(), *axis.get_minor_ticks()]
    return [tick for tick in ticks if low - near <= tick.get_loc() <= high + near]


def clashes(picture):
    """A line for each text that overlaps another one or runs off the picture."""
    shown = picture.texts
    width, height = picture.figure.bbox.width, picture.figure.bbox.height
    for text, box in shown:
        if min(box.x0, box.y0, width - box.x1, height - box.y1) < -2:
            yield f"{text.get_text()!r} runs off: {picture.alt[:70]}"
    level = [(text, box) for text, box in shown if text.get_rotation() % 90 == 0]
    for (one, a), (two, b) in itertools.combinations(level, 2):
        wide = min(a.x1, b.x1) - max(a.x0, b.x0)
        high = min(a.y1, b.y1) - max(a.y0, b.y0)
        smaller = min(a.width * a.height, b.width * b.height)
        if wide > 1 and high > 1 and wide * high > OVERLAP * smaller:
            yield f"{one.get_text()!r} on {two.get_text()!r} in: {picture.alt[:70]}"


def test_no_text_overlaps_another(pictures):
    assert not [clash for picture in pictures for clash in clashes(picture)]


@pytest.mark.parametrize(
    "topic", [name if name == ONE[3:] else pytest.param(name, marks=pytest.mark.full) for name in redraw_time.topics()]
)
def test_no_text_of_an_explorer_overlaps_another_at_any_slider_position(topic):
    found, last = set(), []
    for _, name, draw, controls in redraw_time.explorers([topic]):

        def watched(draw=draw, **values):
            last[:] = [draw(**values)]
            return last[0]

        if hasattr(draw, "figure"):
            watched.figure = draw.figure
        show, start = Shown(watched), {key: control.value for key, control in controls.items()}
        show(start)
        for key, control in controls.items():
            values = redraw_time.values_of(control)
            for value in (values[0], values[len(values) // 2], values[-1]):
                show({**start, key: value})
                if hasattr(last[0], "figure"):
                    drawn = Drawn(last[0].figure, last[0].alt, texts(last[0].figure), "")
                    found |= {f"{name}({key}={value!r}): {clash}" for clash in clashes(drawn)}
    assert not found, "\n".join(sorted(found))


def test_texts_are_large_and_dark_enough(pictures):
    for picture in pictures:
        for text, _ in picture.texts:
            assert text.get_fontsize() >= style.SMALLEST, (text.get_text(), picture.alt[:70])
            assert text.get_color() not in style.INK, (text.get_text(), text.get_color(), picture.alt[:70])


def test_figures_fit_the_page_are_light_and_have_alt_text(pictures):
    for picture in pictures:
        assert picture.figure.get_size_inches()[0] <= style.WIDEST, picture.alt[:70]
        assert len(picture.alt) > 30, picture.alt
        # A figure has its own white background, so that it can be read on a dark page.
        assert 'alt="' in picture.page and "background:#fff" in picture.page
        assert len(picture.page) < 600_000, picture.alt[:70]


@pytest.mark.parametrize("lesson", BUILT)
def test_captions_are_numbered_in_order(lesson):
    """In the built notebook, which also has the curves of live training runs, and in its sources."""
    notebook = nbformat.read(ROOT / "solutions" / lesson / f"{lesson}.ipynb", as_version=4)
    data = [output.get("data", {}) for cell in notebook.cells for output in cell.get("outputs", [])]
    captions = [text for page in data for text in re.findall(r">(Figure [^<]*)</div>", page.get("text/html", ""))]
    found = [re.match(r"Figure (\d+)\.(\d+)\. \S.*[.?)]$", caption) for caption in captions]
    assert captions and all(found), captions
    assert [match.groups() for match in found] == [(str(int(lesson[:2])), str(i + 1)) for i in range(len(found))]
    files = [*(ROOT / "helpers" / "lessons" / lesson[3:]).glob("*.py"), ROOT / "solutions" / lesson / f"{lesson}.py"]
    written = re.findall(rf"Figure {int(lesson[:2])}\.(\d+)\.", "".join(file.read_text("utf-8") for file in files))
    assert set(written) == {match[2] for match in found}


def test_masked_cells_are_hatched(pictures):
    for picture in pictures:
        for ax in picture.figure.axes:
            hatched = [patch for patch in ax.patches if patch.get_hatch() and patch.get_visible()]
            # Where images overlap, a cell is hidden if none of them shows it.
            shown = [np.isfinite(np.ma.filled(np.ma.asarray(image.get_array(), float), np.nan)) for image in ax.images]
            if shown and len({cells.shape for cells in shown}) == 1:
                hidden = int((~np.any(shown, axis=0)).sum())
                assert hidden <= len(hatched), (hidden, len(hatched), picture.alt[:70])
            for text in ax.texts:
                under = any(
                    patch.get_path().get_extents(patch.get_patch_transform()).contains(*text.get_position())
                    for patch in hatched
                    if text.get_transform() == ax.transData
                )
                assert not (under and re.fullmatch(r"-?0\.0+", text.get_text())), (text.get_text(), picture.alt[:70])


HUES = {
    style.Q_COLOR: ("query", "queries", "Q"),
    style.K_COLOR: ("key", "keys", "K"),
    style.V_COLOR: ("value", "values", "V"),
}


def test_queries_keys_and_values_have_their_colors(pictures):
    """A text that names queries, keys or values has their color, or a patch behind it has."""
    wrong = []
    for picture in pictures:
        for text, _ in picture.texts:
            first = text.get_text().split("\n")[0]
            hue = next((hue for hue, names in HUES.items() if first in names), None)
            if hue and to_rgba(text.get_color()) != to_rgba(hue) and not boxed(text, hue):
                wrong.append(f"{first!r} in: {picture.alt[:70]}")
    assert not wrong, "\n".join(wrong)


def boxed(text, hue):
    """Whether the box of the text, or else a patch of its axes, has the hue, whatever its opacity."""
    around = [text.get_bbox_patch()] if text.get_bbox_patch() else text.axes.patches if text.axes else []
    return any(
        to_rgb(patch.get_facecolor()) == to_rgb(hue) or to_rgb(patch.get_edgecolor()) == to_rgb(hue) for patch in around
    )


def test_drawing_a_figure_twice_gives_the_same_bytes():
    assert transformer_map("04_scaling")._repr_html_() == transformer_map("04_scaling")._repr_html_()


# `make test` tries the map without a highlight, a typical lesson, and the two lessons with another model.
MAPS = [number if number in (0, 4, 12, 14) else pytest.param(number, marks=pytest.mark.full) for number in range(15)]


@pytest.mark.parametrize("number", MAPS)
def test_the_map_highlights_the_lesson(number):
    picture = transformer_map(f"{number:02}_topic")
    assert f"lesson {number}" in picture.alt if number else "Nothing is lit" in picture.alt
    assert not [*clashes(Drawn(picture.figure, picture.alt, texts(picture.figure), ""))]


def test_only_one_module_uses_private_names_of_matplotlib():
    allowed = {"__init__", "_repr_html_", "_repr_mimebundle_"}
    for folder in ("drawing", "widgets", "lessons", "translator"):
        for path in sorted((ROOT / "helpers" / folder).rglob("*.py")):
            for name in re.findall(
                r"\b(?:ax|axes|axis|figure|fig|canvas|text|legend|tick)\.(_\w+)", path.read_text("utf-8")
            ):
                assert name in allowed or path.stem == "matplotlib_insides", (path, name)


def test_a_negative_number_has_a_minus_sign_and_a_hyphen_stays():
    figure, ax = style.new_figure(4, 3)
    charts.heatmap(ax, np.array([[-1.5, 2.0]]))
    ax.set(title="from -3 to 4, a well-known 1e-9 with dim=-1")
    style.Picture(figure, "two numbers, of which the first is negative, below a title")
    assert {text.get_text() for text in ax.texts} == {"−1.50", "2.00"}
    assert ax.get_title() == "from −3 to 4, a well-known 1e-9 with dim=-1"


def test_a_choice_among_a_few_words_is_shown_as_buttons(monkeypatch):
    """The readout of a slider truncates long words and hides the other choices."""
    shown = []
    monkeypatch.setattr("helpers.widgets.panel.display", shown.append)
    monkeypatch.delenv("COURSE_STATIC_PAGE", raising=False)
    kinds = widgets.SelectionSlider(options=["three tastes", "each a different favorite"], description="table")
    sizes = widgets.SelectionSlider(options=[1, 64, 1024], description="width")
    panel(lambda table, width: f"<p>{table} {width}</p>", table=kinds, width=sizes)
    words, row, page = shown[0].children
    assert [type(control).__name__ for control in row.children] == ["ToggleButtons", "SelectionSlider"]
    assert "2 controls, in this order: table, width" in words.value and "space bar presses buttons" in words.value
    row.children[0].value = "each a different favorite"
    assert "each a different favorite 1<" in page.value
