"""Each lesson's notebook as in Colab: alone in a folder, in a kernel with Colab's versions."""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest

from helpers.authoring.keys import measured_exercises
from helpers.authoring.pack import pack
from helpers.course import course
from tests import colab
from tests.conftest import of_these
from tests.sandboxes import need_sandbox

pytestmark = [pytest.mark.full, pytest.mark.xdist_group("colab"), pytest.mark.timeout(900)]

LESSONS = colab.built_lessons()
ONE = "04_scaling"
GRADED = [name for name in LESSONS if course().lesson(name).points]
TRAINED = [name for name in LESSONS if measured_exercises(course(), course().lesson(name))]
QUICK = {"COURSE_QUICK": "1"}  # training runs take a few steps
# Runs last in each lesson and reports the kernel's versions and whether every slider changes its picture.
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
# LISTED prints all processes started after STARTED; OFFLINE and ONLINE switch git's access to the repository.
STARTED = """\
import os, sys
started = []
def hook(event, arguments):
    if event in ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn"):
        started.append(" ".join(map(str, arguments[1])) if event == "subprocess.Popen" else event)
sys.addaudithook(hook)
"""
OFFLINE = "there, os.environ['GIT_CONFIG_KEY_0'] = os.environ['GIT_CONFIG_KEY_0'], 'url.file:///nowhere/.insteadOf'"
ONLINE = "os.environ['GIT_CONFIG_KEY_0'] = there"
LISTED = "import json; print('LISTED' + json.dumps(started))"


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
    """The course as a fork with its own address builds it."""
    return colab.build_edition(colab.addressed(LESSONS), tmp_path_factory.mktemp("edition"))


@pytest.fixture(scope="module")
def origin(edition, tmp_path_factory):
    return colab.make_origin(edition, tmp_path_factory.mktemp("origin"))


@pytest.fixture
def kernel(overlaid, packages, tmp_path):
    """kernel(notebook, git=None) -> the notebook, run in the empty folder `kernel.content`."""
    content = tmp_path / "content"
    (content / "sample_data").mkdir(parents=True)  # Colab's own

    def run(notebook, git=None, quick=True):
        variables = colab.environment(overlaid, packages, tmp_path, git)
        return colab.run_in_colab(notebook, content, variables | (QUICK if quick else {}))

    run.content = content
    return run


def outputs(notebook) -> list[tuple[object, str]]:
    """Return (cell, text of its outputs) for the code cells."""
    found = []
    for cell in notebook.cells:
        if cell.cell_type == "code":
            parts = [o.get("text") or o.get("data", {}).get("text/plain") or o.get("evalue", "") for o in cell.outputs]
            found.append((cell, "\n".join(parts)))
    return found


def errors(notebook) -> list:
    """Return the unintended errors: (start of the cell, error class, message)."""
    return [
        (cell.source[:80], output.ename, output.evalue)
        for cell in notebook.cells
        if cell.cell_type == "code" and ("nbgrader" in cell.metadata or not cell.metadata.get("tags"))
        for output in cell.outputs
        if output.output_type == "error"
    ]


@pytest.fixture(scope="module")
def solved():
    """Executed solved notebooks, kept so that grading does not run them again."""
    return {}


@pytest.fixture
def run_solved(edition, kernel, solved, executed_solution, executed_folder):
    """run_solved(lesson) -> its solved notebook, run with the zip and trained weights beside it."""

    def run(name):
        lesson = edition.lesson(name)
        pack(edition, lesson, kernel.content / f"attention-course-{name}.zip")
        if name in TRAINED:
            executed_solution(name)
            shutil.copytree(executed_folder / f"{name}.kept", kernel.content, dirs_exist_ok=True)
        notebook = colab.answered(colab.handed_out(course(), lesson), course(), lesson)
        set_up = next(cell.source for cell in notebook.cells if colab.grade_id(cell) == "setup")
        made = kernel(colab.with_cells(notebook, before=[PID, set_up], after=[PROBE]), quick=name not in TRAINED)
        solved[name] = made, sorted(kernel.content.glob("*.safetensors"))
        return solved[name]

    return run


@pytest.mark.parametrize("name", of_these(LESSONS, solved=True))
def test_a_solved_lesson_runs_with_the_zip_beside_it(name, kernel, run_solved):
    notebook, weights = run_solved(name)
    assert {kind for _, kind, _ in errors(notebook)} <= ({"CheckFailed"} if name.startswith("00") else set())
    shown = outputs(notebook)
    ready = [text for cell, text in shown if cell.source.startswith("#@title Set-up")]
    assert ready == [f"Ready: {name}\n"] * 2  # the second run changes nothing
    checks = [text for cell, text in shown if (colab.grade_id(cell) or "").startswith("check_")]
    assert checks and not [text for text in checks if not text.startswith("✓")]
    facts = json.loads(next(text for _, text in shown if text.startswith("PROBE")).removeprefix("PROBE"))
    wanted = dict(line.split("==") for line in colab.VERSIONS.read_text().split("\n") if "==" in line)
    names = ("ipython", "ipykernel", "ipywidgets", "numpy", "matplotlib")
    assert facts["versions"] == [wanted[package] for package in names]
    assert facts["sliders"] and not facts["still"]
    assert facts["colab"] and facts["helpers"].startswith(str(kernel.content))
    assert f"PID {facts['pid']}\n" == shown[0][1]  # the kernel was not restarted
    unpacked = {"attention-course", f"attention-course-{name}.zip", "sample_data", *(path.name for path in weights)}
    unpacked |= {"language_model.curves.json"} if name == "12_language_model" else set()
    assert set(facts["beside"]) - {".progress.json"} == unpacked  # nothing else was installed
    assert bool(weights) == (name in TRAINED)


@pytest.mark.parametrize("name", of_these(LESSONS, solved=False))
def test_an_untouched_notebook_runs_to_its_end_in_a_clone(name, edition, origin, kernel):
    """The first attempt is offline and says so. Then git clones once, and only unanswered exercises raise errors."""
    notebook = colab.handed_out(colab.addressed(LESSONS), edition.lesson(name))
    set_up = next(cell.source for cell in notebook.cells if colab.grade_id(cell) == "setup")
    before = [STARTED, OFFLINE, set_up, ONLINE, set_up, set_up, LISTED]
    notebook = kernel(colab.with_cells(notebook, before=before), git=origin)
    (offline,) = notebook.cells[2].outputs
    says_what_to_do(offline)
    shown = outputs(notebook)
    assert [text for cell, text in shown if cell.source == set_up][1:] == [f"Ready: {name}\n"] * 3
    started = json.loads(shown[6][1].removeprefix("LISTED"))
    assert len(started) == 2 and all(command.startswith("git clone --quiet --depth=1 ") for command in started)
    del notebook.cells[2]
    meant = {"NotAnswered", "NotImplementedError"} | ({"CheckFailed"} if name.startswith("00") else set())
    assert {kind for _, kind, _ in errors(notebook)} <= meant
    checks = [text for cell, text in shown if (colab.grade_id(cell) or "").startswith("check_")]
    assert checks and all("not answered yet" in text for text in checks)


def says_what_to_do(output):
    """Require an error of one sentence, without a stack trace."""
    assert output.output_type == "error" and output.traceback == [output.evalue]
    there = f"(cloning https://github.com/{colab.OWNER}/{colab.REPOSITORY} failed: "
    assert there in output.evalue and re.search(r"such as attention-course-\d\d_\w+\.zip, beside it", output.evalue)


@pytest.mark.parametrize("lesson", of_these(GRADED, solved=True))
def test_a_notebook_saved_by_colab_gets_full_points(lesson, run_solved, solved, tmp_path):
    """Two submissions: one with new cell ids, one without nbgrader's metadata."""
    need_sandbox()
    notebook, weights = solved.pop(lesson, None) or run_solved(lesson)
    notebook.cells = notebook.cells[2:-1]  # without the added cells
    name = f"Copy of {lesson}.ipynb"
    for student, keep in (("new_ids", "nbgrader"), ("old_ids", "id")):
        folder = tmp_path / "class" / "submitted" / student / lesson
        folder.mkdir(parents=True)
        (folder / name).write_text(json.dumps(colab.as_colab_saves(notebook, name, keep)), encoding="utf-8")
        for path in weights:
            shutil.copy(path, folder)
    command = [sys.executable, "-m", "helpers", "grade", lesson, "--gradebook", str(tmp_path / "class")]
    result = subprocess.run(command, cwd=course().root, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    home = course().lesson(lesson)
    points = {name: x for name, x in home.points.items() if not name.startswith("written")}
    for student in ("new_ids", "old_ids"):
        graded = json.loads((tmp_path / "class" / "batches" / lesson / f"{student}.json").read_text())
        assert graded["points"] == points and graded["bonus"] == home.bonus, student
        flags = [flag for flag in graded["flags"] if not flag.startswith("identical to the published")]
        assert flags == [f"the notebook is called {name}, not {lesson}.ipynb"], student
