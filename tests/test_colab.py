"""As Colab does it: each lesson's notebook alone in a folder, in a kernel with Colab's versions."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time

import pytest

from helpers.authoring.pack import pack
from helpers.course import course
from tests import colab

pytestmark = [pytest.mark.colab, pytest.mark.timeout(600)]

LESSONS = colab.built_lessons()
ONE = "04_scaling"
GRADED = [name for name in ("01_token_embedding", ONE, "08_multi_head", "10_decoder_block") if name in LESSONS]
QUICK = {"COURSE_QUICK": "1"}  # trainings take a few steps
# Runs last in each lesson: what the kernel is, and whether every slider moves its picture under these widgets.
PROBE = """\
import json, os, sys, IPython, ipykernel, ipywidgets, numpy, matplotlib, helpers
def move(slider, page):
    if not any(hasattr(slider, name) for name in ("options", "base", "min")):
        return True  # a text box or a button
    before, places = page.value, range(len(slider.options)) if hasattr(slider, "options") else None
    for step in (1, 1, -3, 2, 3):
        if places is not None:
            slider.index = max(0, min(slider.index + step, len(places) - 1))
        elif hasattr(slider, "base"):
            slider.value = max(slider.base**slider.min, min(slider.value * 1.5**step, slider.base**slider.max))
        else:
            slider.value = max(slider.min, min(slider.value + step * (slider.step or 1), slider.max))
        if page.value != before:
            return True
    return False
panels = [w for w in list(ipywidgets.Widget.widgets.values()) if isinstance(w, ipywidgets.VBox)]
sliders = [(s, p.children[2]) for p in panels if len(p.children) == 3 for s in p.children[1].children]
print("PROBE" + json.dumps({
    "versions": [IPython.__version__, ipykernel.__version__, ipywidgets.__version__, numpy.__version__,
                 matplotlib.__version__],
    "still": [s.description for s, page in sliders if not move(s, page)], "sliders": len(sliders),
    "helpers": helpers.__file__, "colab": "google.colab" in sys.modules, "pid": os.getpid(),
    "beside": sorted(os.listdir())}))
"""
PID = 'import os; print("PID", os.getpid())'


@pytest.fixture(scope="session")
def overlaid():
    try:
        return colab.overlay()
    except (subprocess.CalledProcessError, OSError) as error:
        if os.environ.get("COURSE_CI"):
            raise
        pytest.skip(f"Colab's versions could not be installed: {error}")


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    return colab.packages_without_the_course(tmp_path_factory.mktemp("packages"))


@pytest.fixture(scope="module")
def edition(tmp_path_factory):
    """The course as a fork with an address builds it."""
    return colab.build_edition(colab.addressed(LESSONS), tmp_path_factory.mktemp("edition"))


@pytest.fixture
def kernel(overlaid, packages, tmp_path):
    """kernel(notebook, git=None) -> the notebook, run in the empty folder `kernel.content`."""
    content = tmp_path / "content"
    (content / "sample_data").mkdir(parents=True)  # Colab's own

    def run(notebook, git=None):
        return colab.run_in_colab(notebook, content, colab.environment(overlaid, packages, tmp_path, git) | QUICK)

    run.content = content
    return run


def outputs(notebook) -> list[tuple[object, str]]:
    """(cell, all that it shows as text) of the code cells."""
    found = []
    for cell in notebook.cells:
        if cell.cell_type == "code":
            parts = [o.get("text") or o.get("data", {}).get("text/plain") or o.get("evalue", "") for o in cell.outputs]
            found.append((cell, "\n".join(parts)))
    return found


def errors(notebook) -> list:
    """Cells that raised, where no author meant it."""
    return [
        (cell.source[:80], output.ename, output.evalue)
        for cell in notebook.cells
        if cell.cell_type == "code" and ("nbgrader" in cell.metadata or not cell.metadata.get("tags"))
        for output in cell.outputs
        if output.output_type == "error"
    ]


@pytest.fixture(scope="module")
def solved():
    """Solved notebooks, as run: the one that is graded need not be run twice."""
    return {}


def run_solved(name, edition, kernel):
    lesson = edition.lesson(name)
    pack(
        edition, lesson, kernel.content / f"attention-course-{name}.zip"
    )  # up to this lesson, as a teacher hands it out
    notebook = colab.answered(colab.handed_out(course(), lesson), course(), lesson)
    set_up = next(cell.source for cell in notebook.cells if colab.grade_id(cell) == "setup")
    return kernel(colab.with_cells(notebook, before=[PID, set_up], after=[PROBE]))


@pytest.mark.parametrize("name", LESSONS)
def test_a_lesson_runs_solved_from_the_zip_beside_it(name, edition, kernel, solved, record_property):
    began = time.perf_counter()
    notebook = run_solved(name, edition, kernel)
    record_property("seconds", round(time.perf_counter() - began, 1))
    print(f"{name} {time.perf_counter() - began:.1f} s")
    assert not [e for e in errors(notebook) if not (name.startswith("00") and e[1] == "CheckFailed")]
    shown = outputs(notebook)
    ready = [text for cell, text in shown if cell.source.startswith("#@title Set-up")]
    assert ready == [f"Ready: {name}\n"] * 2  # run twice, it is as it was
    checks = [(cell, text) for cell, text in shown if (colab.grade_id(cell) or "").startswith("check_")]
    failing = [text for _, text in checks if not text.startswith("✓")]
    assert checks and not failing
    facts = json.loads(next(text for _, text in shown if text.startswith("PROBE")).removeprefix("PROBE"))
    wanted = dict(line.split("==") for line in colab.VERSIONS.read_text().split("\n") if "==" in line)
    names = ("ipython", "ipykernel", "ipywidgets", "numpy", "matplotlib")
    assert facts["versions"] == [wanted[package] for package in names]
    assert facts["sliders"] and not facts["still"]
    assert facts["colab"] and facts["helpers"].startswith(str(kernel.content))
    assert f"PID {facts['pid']}\n" == shown[0][1]  # nothing was restarted
    unpacked = {"attention-course", f"attention-course-{name}.zip", "sample_data"}
    assert set(facts["beside"]) - {".progress.json"} == unpacked  # and nothing was installed
    solved[name] = notebook


@pytest.mark.parametrize("name", LESSONS)
def test_an_untouched_notebook_runs_to_its_end(name, edition, kernel):
    """With the whole course beside it: nothing raises but what is not answered yet."""
    pack(edition, None, kernel.content / "attention-course.zip")
    notebook = kernel(colab.handed_out(colab.addressed(LESSONS), edition.lesson(name)))
    meant = {"NotAnswered", "NotImplementedError"} | ({"CheckFailed"} if name.startswith("00") else set())
    assert {kind for _, kind, _ in errors(notebook)} <= meant
    shown = outputs(notebook)
    assert f"Ready: {name}\n" in [text for _, text in shown]
    checks = [text for cell, text in shown if (colab.grade_id(cell) or "").startswith("check_")]
    assert checks and all("not answered yet" in text for text in checks)


def first_cells(name, edition):
    """The notebook up to its set-up cell, which comes twice."""
    source = colab.addressed(LESSONS)
    notebook = colab.handed_out(source, edition.lesson(name))
    place = next(i for i, cell in enumerate(notebook.cells) if colab.grade_id(cell) == "setup")
    notebook.cells = [*notebook.cells[: place + 1], notebook.cells[place]]
    return notebook


def test_a_newer_zip_takes_the_place_of_the_course_that_is_there(edition, kernel):
    """The zip of lesson 3 was unpacked a week ago; now that of lesson 4 is beside it. Done again, nothing changes."""
    home, week = kernel.content / "attention-course", 7 * 24 * 3600
    earlier = edition.lesson("03_query_key")
    pack(edition, earlier, kernel.content / "attention-course-03_query_key.zip")
    first = outputs(kernel(first_cells(earlier.name, edition)))
    assert [text for _, text in first[:2]] == ["Ready: 03_query_key\n"] * 2
    blocks = home / "attention-course" / "helpers" / "blocks"
    assert not (blocks / "lesson_03.py").exists()
    for path in (kernel.content / "attention-course-03_query_key.zip", home):
        os.utime(path, (time.time() - week,) * 2)
    pack(edition, edition.lesson(ONE), kernel.content / f"attention-course-{ONE}.zip")
    print_time = "import helpers, pathlib; print(pathlib.Path(helpers.__file__).stat().st_mtime_ns)"
    shown = [text for _, text in outputs(kernel(colab.with_cells(first_cells(ONE, edition), after=[print_time])))]
    assert shown[:2] == [f"Ready: {ONE}\n"] * 2 and (blocks / "lesson_03.py").exists()
    again = [text for _, text in outputs(kernel(colab.with_cells(first_cells(ONE, edition), after=[print_time])))]
    assert again == shown  # not unpacked once more


def test_without_a_zip_the_set_up_cell_clones_the_course(edition, kernel, tmp_path):
    git = colab.make_origin(edition, tmp_path / "origin")
    after = ["from helpers import check\ncheck(quiz_1=None)", "import helpers; print(helpers.__file__)"]
    shown = outputs(kernel(colab.with_cells(first_cells(ONE, edition), after=after), git=git))
    assert [text for _, text in shown[:2]] == [f"Ready: {ONE}\n"] * 2
    assert "not answered yet" in shown[2][1]
    assert shown[3][1].strip() == str(kernel.content / "attention-course" / "helpers" / "__init__.py")


def test_offline_without_a_zip_it_says_what_to_do_in_one_sentence(edition, kernel):
    notebook = first_cells(ONE, edition)
    for cell in kernel(notebook).cells[-2:]:
        (output,) = cell.outputs
        assert output.output_type == "error" and output.traceback == [output.evalue]
        assert output.evalue.count(".") <= 2 and "put attention-course.zip beside it" in output.evalue


@pytest.mark.parametrize("lesson", GRADED)
def test_what_colab_saves_is_graded_with_full_points(lesson, edition, kernel, solved, tmp_path):
    """Two hand-ins: one with new ids, one whose cells are known by their ids alone."""
    if shutil.which("bwrap") is None and not os.environ.get("COURSE_CI"):
        pytest.skip("needs bubblewrap")
    notebook = solved[lesson] if lesson in solved else run_solved(lesson, edition, kernel)
    notebook.cells = notebook.cells[2:-1]  # without what was added here
    name = f"Copy of {lesson}.ipynb"
    for student, keep in (("new_ids", "nbgrader"), ("old_ids", "id")):
        folder = tmp_path / "class" / "submitted" / student / lesson
        folder.mkdir(parents=True)
        (folder / name).write_text(json.dumps(colab.as_colab_saves(notebook, name, keep)), encoding="utf-8")
    command = [sys.executable, "-m", "helpers", "grade", lesson, "--gradebook", str(tmp_path / "class")]
    result = subprocess.run(command, cwd=course().root, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    points = {name: x for name, x in course().lesson(lesson).points.items() if not name.startswith("written")}
    for student in ("new_ids", "old_ids"):
        graded = json.loads((tmp_path / "class" / "batches" / lesson / f"{student}.json").read_text())
        assert graded["points"] == points, student
        assert graded["flags"] == [f"the notebook is called {name}, not {lesson}.ipynb"], student
