"""`course build`: what it writes, what it refuses, and that solutions do not leak into learners' files."""

import ast
import copy
import functools
import os
import re
import shutil
import subprocess
import sys
import textwrap
import time
from dataclasses import replace
from pathlib import Path

import nbformat
import numpy as np
import pytest
import torch
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

import helpers
from helpers.__main__ import main
from helpers.authoring import BuildError
from helpers.authoring.badges import with_badges
from helpers.authoring.blocks import blocks_source, load_blocks
from helpers.authoring.build import build, must_run, out_of_date, strays
from helpers.authoring.execute import run_notebook
from helpers.authoring.explorers import CALL, KIND
from helpers.authoring.keys import MISTAKES, SAME_INPUTS, key_differs, load_answer_key, same
from helpers.authoring.lesson_rules import template_problems
from helpers.authoring.release import FINISHED, STILL, given_figures, student_notebook
from helpers.authoring.text import LessonText, headings, is_answer, is_quiz, read_lesson
from helpers.blocks import defined_names
from helpers.checking.key import load_keys, sketched
from helpers.checking.make_keys import lesson_keys
from helpers.checking.vocabulary import Stub
from helpers.course import CourseError, Lesson, course, read
from tests.conftest import ROOT, lesson_names, of_these, one_of
from tests.small_course import COURSE, LESSON, TEXT, make_small_course, run_command

LESSONS = lesson_names()
each_lesson = pytest.mark.parametrize("lesson", LESSONS)


def student(lesson: str):
    return nbformat.read(ROOT / "notebooks" / lesson / f"{lesson}.ipynb", as_version=4)


def solution(lesson: str):
    return nbformat.read(ROOT / "solutions" / lesson / f"{lesson}.ipynb", as_version=4)


@pytest.fixture(scope="module")
def small(tmp_path_factory) -> Path:
    """The small course, built once, which tests only read."""
    root = make_small_course(tmp_path_factory.mktemp("small") / "course")
    result = run_command(root, "build")
    assert result.returncode == 0, result.stderr
    return root


@pytest.fixture
def root(small, tmp_path) -> Path:
    """A copy of the built small course, which a test may change."""
    return shutil.copytree(small, tmp_path / "course", symlinks=True)


def built_files(root: Path) -> dict[str, bytes]:
    places = ["notebooks/*/*.ipynb", "solutions/*/*.ipynb", "helpers/answer_keys/*.npz", "helpers/blocks/[0-9]*.py"]
    paths = [path for place in places for path in root.glob(place)]
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in paths}


# What the build writes


@each_lesson
def test_built_files_are_up_to_date(lesson, monkeypatch):
    """Without the keys of exercises, which take longest and are made again in tests/test_mutation_score.py."""
    home, own = course(), course().lesson(lesson)
    stored, listed = load_keys(lesson), load_answer_key(home, own)
    others = [item for item in (*listed.exercises, *getattr(listed, "quizzes", ())) if getattr(item, "metric", True)]
    for key in lesson_keys(own, others, load_blocks(home, own), 0):
        assert not key_differs(key, stored[key.name]), key.name
    assert list(stored) == list(read_lesson(home, own).answers)
    monkeypatch.setattr("helpers.authoring.build.make_keys", lambda *_: [])
    monkeypatch.setattr("helpers.authoring.build.keys_differ", lambda *_: False)
    assert out_of_date(home, own) == []


def test_every_built_file_belongs_to_a_lesson():
    assert strays(course()) == []


# One process for all lessons, because nbgrader takes seconds to start.
GENERATE = """
import sys
from nbgrader.apps import GenerateAssignmentApp
for lesson in sys.argv[1:]:
    app = GenerateAssignmentApp()
    app.initialize([lesson, "--force"])
    app.start()
"""


@pytest.fixture(scope="module")
def released_by_nbgrader(tmp_path_factory):
    """The folder into which nbgrader has released all lessons."""
    folder = tmp_path_factory.mktemp("released")
    shutil.copy(ROOT / "nbgrader_config.py", folder)
    (folder / "helpers").symlink_to(ROOT / "helpers")
    for lesson in LESSONS:
        source = folder / "solutions" / lesson
        source.mkdir(parents=True)
        for name in (f"{lesson}.ipynb", f"{lesson}.py", "answer_key.py"):
            shutil.copy(ROOT / "solutions" / lesson / name, source)
    command = [sys.executable, "-c", GENERATE, *LESSONS]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return folder / "notebooks"


@pytest.mark.full
@pytest.mark.xdist_group("released by nbgrader")
@each_lesson
def test_nbgrader_releases_the_same_bytes_as_the_build(lesson, released_by_nbgrader):
    released = released_by_nbgrader / lesson
    assert [path.name for path in released.iterdir()] == [f"{lesson}.ipynb"]
    ours = ROOT / "notebooks" / lesson / f"{lesson}.ipynb"
    assert (released / f"{lesson}.ipynb").read_bytes() == ours.read_bytes()


@pytest.mark.full
def test_building_again_gives_the_same_bytes(small, tmp_path):
    other = make_small_course(tmp_path / "elsewhere")
    assert run_command(other, "build").returncode == 0
    first, second = built_files(small), built_files(other)
    assert len(first) == 4 and first == second


def test_building_without_execution_keeps_outputs_of_unchanged_cells(root):
    path = root / "solutions" / LESSON / f"{LESSON}.py"
    text = TEXT.replace("## A picture", "## A picture\n# One more line.")
    path.write_text(text.replace("check(halved)", "check(halved)  # now"), encoding="utf-8")
    before = nbformat.read(path.with_suffix(".ipynb"), as_version=4)
    build(*home_and_lesson(root), execute=False)
    after = nbformat.read(path.with_suffix(".ipynb"), as_version=4)
    assert "One more line." in after.cells[3].source
    for old, new in zip(before.cells, after.cells, strict=True):
        assert new.get("outputs") == ([] if new["id"] == "check_halved" else old.get("outputs"))
    assert next(cell for cell in before.cells if cell["id"] == "check_halved").outputs


@each_lesson
def test_cells_have_unique_ids_and_notebooks_a_current_format(lesson):
    notebook = student(lesson)
    ids = [cell["id"] for cell in notebook.cells]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", cell_id) for cell_id in ids)
    assert (notebook.nbformat, notebook.nbformat_minor) == (4, 5)
    assert notebook.metadata.kernelspec.name == "python3" and notebook.metadata.language_info == {"name": "python"}


@each_lesson
def test_points_in_notebooks_are_those_of_course_toml(lesson):
    about = course().lesson(lesson)
    marked = [cell.metadata.get("nbgrader", {}) for cell in student(lesson).cells]
    points = {mark["grade_id"].removeprefix("check_"): mark["points"] for mark in marked if mark.get("grade")}
    assert points == about.points | dict.fromkeys(about.bonus, 0)


@each_lesson
def test_each_quiz_of_the_solution_has_the_answer_of_its_key(lesson):
    answers = read_lesson(course(), course().lesson(lesson)).answers
    for name, key in load_keys(lesson).items():
        assert key.kind != "quiz" or f'{name} = "{key.correct}"' in answers[name], name


@each_lesson
def test_answer_cells_may_raise_and_checks_are_locked(lesson):
    for cell in student(lesson).cells:
        mark = cell.metadata.get("nbgrader", {})
        if mark and cell.cell_type == "code" and mark["grade_id"] != "setup":
            assert "raises-exception" in cell.metadata.tags, cell["id"]
            assert mark["locked"] == cell["id"].startswith("check_") == (not mark["solution"]), cell["id"]


# The executed solution


@each_lesson
def test_the_solution_runs_to_its_end_and_is_stored_executed(lesson, executed_solution):
    ran = executed_solution(lesson)
    stored = solution(lesson)
    assert [cell.source for cell in ran.cells] == [cell.source for cell in stored.cells]
    for cell in stored.cells:
        if cell.cell_type == "code":
            assert cell.execution_count is not None, f"{cell['id']} was not executed: run course build {lesson}"


@each_lesson
def test_every_figure_of_the_solution_has_alt_text(lesson):
    figures = 0
    for cell in solution(lesson).cells:
        for output in cell.get("outputs", []):
            assert "image/png" not in output.get("data", {}), cell["id"]
            for image in re.findall(r"<img[^>]*>", output.get("data", {}).get("text/html", "")):
                figures += 1
                assert len(re.search(r'alt="([^"]*)"', image)[1]) > 20, cell["id"]
    assert figures > 0


@pytest.mark.parametrize("lesson", one_of(of_these(LESSONS, solved=True)))
def test_the_untouched_notebook_runs_to_its_end(lesson, monkeypatch):
    monkeypatch.setenv("COURSE_QUICK", "1")  # training runs take a few steps
    ran = run_notebook(course(), student(lesson), ROOT / "notebooks" / lesson, lesson, allow_errors=True)
    for cell in ran.cells:
        if cell.cell_type != "code":
            continue
        assert cell.execution_count is not None
        errors = [output for output in cell.outputs if output.output_type == "error"]
        if cell["id"].startswith("check_"):
            assert [error.ename for error in errors] == ["NotAnswered"], cell["id"]
            assert "not answered yet" in str(cell.outputs), cell["id"]
        elif "raises-exception" not in cell.metadata.get("tags", []) or is_answer(cell):
            assert not errors, f"{cell['id']}: {errors}"


def errors_of(cell) -> list[str]:
    return [output.ename for output in cell.outputs if output.output_type == "error"]


@pytest.mark.full
@pytest.mark.parametrize("lesson", one_of(of_these(LESSONS, solved=True)))
def test_sections_can_be_run_again_in_reverse_order(lesson, monkeypatch):
    """A reader may run an earlier cell again, because no name has another meaning by then."""
    monkeypatch.setenv("COURSE_QUICK", "1")
    notebook = copy.deepcopy(solution(lesson))
    sections = [[]]
    for cell in notebook.cells:
        if cell.cell_type == "markdown" and cell.source.startswith("## "):
            sections.append([])
        if cell.cell_type == "code":
            sections[-1].append(cell)
    once = [cell for section in sections for cell in section]
    again = [copy.deepcopy(cell) for section in reversed(sections) for cell in section]
    for cell in again:
        cell["id"] = f"again-{cell['id']}"[:64]
    notebook.cells = [*once, *again]
    ran = run_notebook(course(), notebook, ROOT / "solutions" / lesson, lesson, allow_errors=True).cells
    first = {cell.source: errors_of(cell) for cell in ran[: len(once)]}  # a short training run may fail a check
    assert [cell["id"] for cell in ran[len(once) :] if errors_of(cell) != first[cell.source]] == []


@pytest.mark.full
@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "axes.plot([1, 2])",
            'raise OSError("no ink")',
            "cell a-picture--2 of the solution notebook raised OSError: no ink",
        ),
        (
            "check(scaled_scores)",
            "scaled_scores = lambda Q, K: Q @ K.transpose(-2, -1)\ncheck(scaled_scores)",
            "cell check_scaled_scores of the solution notebook raised CheckFailed",
        ),
        (
            'Picture(figure, alt="a line from 1 to 2")',
            "import matplotlib.pyplot as plt\nplt.plot([1, 2]);",
            "a-picture--2 shows a figure without alt text",
        ),
    ],
    ids=["a cell that raises", "a check that fails", "a figure without alt text"],
)
def test_a_failure_in_the_solution_stops_the_build(root, old, new, message):
    (root / "solutions" / LESSON / f"{LESSON}.py").write_text(TEXT.replace(old, new), encoding="utf-8")
    result = run_command(root, "build")
    assert result.returncode == 2 and message in result.stderr and "Traceback" not in result.stderr


# The template of lessons, and the figures of a learner's notebook


def text_of(*cells, exercises=(), points=None):
    """Return a lesson's text with these Markdown cells after its map."""
    lesson = Lesson("04_tiny", "Tiny", 10, points or {})
    made = [new_code_cell('transformer_map("04_tiny")'), *(new_markdown_cell(cell) for cell in cells)]
    return LessonText(lesson, new_notebook(cells=made), dict.fromkeys(exercises, ""))


ENDS = "## Recap\n\n## Going further\n\n## Further reading"
TIME = "# 4. Tiny\n\n**Core:** about 10 minutes"
EXERCISE = "### Exercise 4.1 `twice`\n\nDifficulty 1 of 5 · Importance 2 of 5 · 10 minutes · 8 points"


def test_a_lesson_that_follows_the_template_passes():
    assert list(template_problems(text_of(TIME, EXERCISE, ENDS, exercises=["twice"], points={"twice": 8}))) == []


@pytest.mark.parametrize(
    ("cells", "says"),
    [
        ((TIME, EXERCISE.replace("8 points", "9 points"), ENDS), "other points"),
        ((TIME, EXERCISE.replace("Importance", "importance"), ENDS), "needs a line like"),
        ((TIME, EXERCISE.replace("4.1", "4.2"), ENDS), "exercises must be"),
        ((TIME, EXERCISE, "## Why √d_k", ENDS), "raw notation"),
        ((TIME, EXERCISE, ENDS.replace("Recap", "Summary")), "in this order"),
        ((TIME.replace("10", "30"), EXERCISE, ENDS), "gives 04_tiny 30 minutes"),
        ((TIME.replace("10", "12"), EXERCISE, ENDS), "gives 04_tiny 12 minutes"),  # only 10% more is allowed
        ((TIME.replace("10", "130"), EXERCISE, ENDS), "at most 100 minutes"),
        ((TIME, EXERCISE, "The sum is\n0. It stays there.", ENDS), "would begin a list"),
        ((TIME, EXERCISE, "## Quiz 4.2", ENDS), "its quizzes"),
    ],
)
def test_a_lesson_that_deviates_from_the_template_is_refused(cells, says):
    problems = list(template_problems(text_of(*cells, exercises=["twice"], points={"twice": 8})))
    assert any(says in sentence for sentence in problems), problems


BONUS = EXERCISE.replace("Difficulty", "**Extra** · Difficulty").replace("points", "bonus points")
QUIZ = "## Quiz 4.1\n\n- **a** one\n- **b** two"


@pytest.mark.parametrize(
    ("bonus", "quiz", "says"),
    [
        (BONUS.replace("**Extra** · ", ""), QUIZ, "must begin with **Extra**"),
        (BONUS, QUIZ, "belongs under the heading Going further"),
        (BONUS, QUIZ.replace("\n- **b** two", ""), "needs its options as a list"),
        (BONUS, QUIZ.replace("**b**", "**c**"), "needs its options as a list"),
    ],
)
def test_the_template_for_bonus_exercises_and_quizzes(bonus, quiz, says):
    text = text_of(TIME, bonus, quiz, ENDS, exercises=["twice", "quiz_1"])
    problems = list(template_problems(replace(text, lesson=replace(text.lesson, bonus={"twice": 8}))))
    assert [sentence for sentence in problems if says in sentence], problems


def test_a_learners_notebook_keeps_figures_that_need_no_answer():
    shown = {"output_type": "display_data", "data": {"text/html": '<img alt="a" src="b">'}, "metadata": {}}
    sources = {
        "figures.spread()": "",
        "scores = scaled_scores(Q, K)": None,
        "figures.one_row(scores)": None,
        "explore.temperature()": STILL,
        "explore.temperature(scores)": FINISHED,
        "numbers = [1, 2]\nfigures.one_row(numbers)": "",
    }
    cells = [new_code_cell("def scaled_scores(Q, K): ...", metadata={"nbgrader": NBGRADER})]
    cells += [new_code_cell(source, outputs=[shown]) for source in sources]
    kept = given_figures(new_notebook(cells=cells))
    assert kept == {index: below for index, below in enumerate(sources.values(), 1) if below is not None}


def test_a_learners_notebook_keeps_the_first_picture_of_an_explorer():
    """It does not keep the further pictures that the web edition needs."""
    page = '<img alt="words" src="b">'
    data = {"text/html": page, "text/plain": "<IPython.core.display.HTML object>", KIND: "{}"}
    shown = new_output("display_data", data)
    cells = [new_code_cell("from helpers.lessons.scaling import explore as explore")]
    cells += [new_code_cell("explore.temperature()", outputs=[shown], execution_count=3)]
    explorer = nbformat.reads(student_notebook(new_notebook(cells=cells)), as_version=4).cells[1]
    assert explorer.execution_count is None
    assert set(explorer.outputs[0].data) == {"text/html", "text/plain"}
    assert explorer.outputs[0].data["text/html"] == page + STILL


@each_lesson
def test_each_explorer_shows_a_picture_before_it_runs(lesson):
    """It is the solution's picture with its alt text."""
    solved = {cell["id"]: cell for cell in solution(lesson).cells}
    explorers = [cell for cell in student(lesson).cells if cell.cell_type == "code" and CALL.search(cell.source)]
    assert explorers
    for cell in explorers:
        (shown,) = [output.data["text/html"] for output in cell.outputs]
        picture = solved[cell["id"]].outputs[-1].data["text/html"]
        assert shown in (picture + STILL, picture + FINISHED), cell["id"]
        assert "<img alt=" in shown or "<div" in shown


@pytest.mark.parametrize(
    ("question", "answer", "kept"),
    [
        ("**Predict before you run.** Which wins?", "Read it row by row.", {3: ""}),
        ("Work it out before you\nrun the cell.", "It is the third.", {3: ""}),
        ("The model predicts a word.", "Here is another.", {1: "", 3: ""}),
    ],
)
def test_a_learners_notebook_omits_figures_that_answer_a_prediction(question, answer, kept):
    shown = {"output_type": "display_data", "data": {"text/html": '<img alt="a" src="b">'}, "metadata": {}}
    cells = []
    for text in (question, answer):
        cells += [new_markdown_cell(text), new_code_cell("figures.spread()", outputs=[shown])]
    assert given_figures(new_notebook(cells=cells)) == kept


NBGRADER = {"grade_id": "scaled_scores", "solution": True, "grade": False}


@each_lesson
def test_a_learners_notebook_is_small(lesson):
    assert (ROOT / "notebooks" / lesson / f"{lesson}.ipynb").stat().st_size < 800_000


# --check

PLACES = ("blocks", "answer_keys", "notebooks", "solutions")


def home_and_lesson(root: Path):
    home = read(root / "course.toml", root)
    return home, home.lessons[0]


def test_check_passes_right_after_a_build(root):
    before = built_files(root)
    result = run_command(root, "build", "--check")
    assert (result.returncode, result.stdout) == (0, "1 lesson is up to date.\n"), result.stdout + result.stderr
    assert built_files(root) == before


@pytest.mark.parametrize(
    ("change", "stale"),
    [
        ((f"solutions/{LESSON}/{LESSON}.py", "# ## A picture", "# ## Another picture"), ["notebooks", "solutions"]),
        ((f"solutions/{LESSON}/{LESSON}.py", "return x / 2", "return x * 0.5"), ["blocks", "solutions"]),
        ((f"solutions/{LESSON}/answer_key.py", "Which way?", "Up or down?"), ["answer_keys"]),
        ((f"solutions/{LESSON}/answer_key.py", "5, 4, dtype", "6, 4, dtype"), ["answer_keys"]),
        ((f"helpers/blocks/{LESSON}.py", "x / 2", "x / 3"), ["blocks"]),
        ((f"notebooks/{LESSON}/{LESSON}.ipynb", "A tiny lesson", "A small lesson"), ["notebooks"]),
        ((f"solutions/{LESSON}/{LESSON}.ipynb", "x / 2", "x / 3"), ["solutions"]),
        (("course.toml", "= 83\nquiz_1 = 2", "= 82\nquiz_1 = 3"), ["answer_keys", "notebooks", "solutions"]),
    ],
    ids=["text", "solution", "hint", "case", "blocks", "student notebook", "solution notebook", "points"],
)
def test_check_lists_what_is_out_of_date(root, change, stale):
    file, old, new = change
    path = root / file
    content = path.read_text(encoding="utf-8")
    assert old in content
    path.write_text(content.replace(old, new), encoding="utf-8")
    before = built_files(root)
    listed = out_of_date(*home_and_lesson(root))
    assert sorted(name for name in PLACES if any(f"{name}/" in item for item in listed)) == sorted(stale), listed
    assert built_files(root) == before


def test_check_exits_with_1_and_lists_outdated_and_superfluous_files(root):
    (root / "helpers" / "blocks" / f"{LESSON}.py").unlink()
    (root / "helpers" / "blocks" / "09_encoder_block.py").write_text("")
    (root / "helpers" / "answer_keys" / "09_encoder_block.npz").write_text("")
    result = run_command(root, "build", "--check")
    assert result.returncode == 1
    assert sorted(result.stdout.splitlines()[1:]) == [
        "  helpers/answer_keys/09_encoder_block.npz (belongs to no lesson)",
        f"  helpers/blocks/{LESSON}.py",
        "  helpers/blocks/09_encoder_block.py (belongs to no lesson)",
    ]


@pytest.mark.parametrize(
    ("a", "b", "equal"),
    [
        (torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.000001]), True),
        (torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.00001]), False),
        (torch.tensor([1.0], dtype=torch.float64), torch.tensor([1.0 + 1e-11], dtype=torch.float64), True),
        (torch.tensor([1.0], dtype=torch.float64), torch.tensor([1.0 + 1e-9], dtype=torch.float64), False),
        (torch.tensor([1.0]), torch.tensor([1.0], dtype=torch.float64), False),
        (torch.tensor([float("nan"), float("-inf")]), torch.tensor([float("nan"), float("-inf")]), True),
        (torch.tensor([float("nan"), float("-inf")]), torch.tensor([float("-inf"), float("nan")]), False),
        (torch.tensor([float("inf")]), torch.tensor([float("-inf")]), False),
        (torch.tensor([3, 4]), torch.tensor([3, 5]), False),
        (torch.zeros(0), torch.zeros(0), True),
        (torch.zeros(2, 3), torch.zeros(3, 2), False),
        ([1, 2.0, "a"], [1, 2.0, "b"], False),
        ([1], [True], False),
        ({"a": 1.0, "b": None}, {"a": 1.0000000001, "b": None}, True),
        ({"a": 1.0}, {"b": 1.0}, False),
        ({"a": 1.0}, {"a": 1.0001}, False),
        (2.4e-7, 4.8e-7, True),  # the largest difference of two float32 results that are equal on paper
    ],
)
def test_keys_are_equal_up_to_rounding(a, b, equal):
    assert same(a, b, SAME_INPUTS) is equal


NOISE = torch.linspace(1, 2, 64)
WRITTEN = sketched(NOISE)
TINY = torch.full((64,), 2.0**-60, dtype=torch.float64)


@pytest.mark.parametrize(
    ("a", "b", "equal"),
    [
        (NOISE, NOISE * (1 + 2e-4), True),
        (NOISE, NOISE * 1.01, False),
        (NOISE.double(), NOISE.double() * (1 + 2e-4), False),
        (WRITTEN, sketched(NOISE * (1 + 2e-4)), True),
        (WRITTEN, NOISE, True),
        (NOISE * (1 + 2e-4), WRITTEN, True),
        (WRITTEN, NOISE * 3, False),
        (WRITTEN, NOISE.double(), False),
        (sketched(TINY), sketched(TINY * 1.1), True),  # float32 holds only the first exactly
    ],
)
def test_outputs_of_mistakes_may_differ_more_between_processors(a, b, equal):
    assert isinstance(WRITTEN, Stub) and same(a, b, SAME_INPUTS | MISTAKES) is equal


@pytest.mark.full
def test_on_another_processor_nothing_is_out_of_date(root):
    before = built_files(root)
    environment = os.environ | {"PYTHONPATH": str(root), "ATEN_CPU_CAPABILITY": "default"}
    for arguments in (["--check"], ["--no-run"]):
        command = [sys.executable, "-m", "helpers", "build", *arguments]
        result = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True)
        assert result.returncode == 0, result.stdout
    assert built_files(root) == before


# Solutions do not leak


class Solution:
    """What would give an answer away: its return values, and all pairs of successive statements, in a normal form."""

    def __init__(self, source: str):
        tree = ast.parse(source)
        returned = [ast.unparse(node.value) for node in ast.walk(tree) if isinstance(node, ast.Return) and node.value]
        self.expressions = {text for text in returned if len(text) > 25}
        self.pairs = {pair for pair in pairs_of_statements(tree) if len("".join(pair)) > 40}


def pairs_of_statements(tree: ast.AST) -> set[tuple[str, str]]:
    pairs = set()
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        simple = [ast.unparse(part) if not hasattr(part, "body") else "" for part in body] if type(body) is list else []
        pairs |= {pair for pair in zip(simple, simple[1:], strict=False) if all(pair)}
    return {pair for pair in pairs if not pair[0].startswith(("'", '"', "super()"))}


@functools.cache  # three tests of each lesson use it
def solutions_of(lesson: str) -> dict[str, Solution]:
    text = read_lesson(course(), course().lesson(lesson))
    return {name: Solution(source) for name, source in text.answers.items() if not is_quiz(name)}


@functools.cache  # the same files are searched for all answers
def expressions_and_pairs(source: str) -> tuple[set[str], set[tuple[str, str]]]:
    tree = ast.parse(source)
    return {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.expr)}, pairs_of_statements(tree)


def found_in_code(answer: Solution, source: str) -> list[str]:
    expressions, pairs = expressions_and_pairs(source)
    return sorted(answer.expressions & expressions) + [" / ".join(pair) for pair in sorted(answer.pairs & pairs)]


def found_in_prose(answer: Solution, prose: str) -> list[str]:
    squeezed = re.sub(r"\s+", "", prose)
    whole = answer.expressions | {"".join(pair) for pair in answer.pairs}
    return sorted(text for text in whole if re.sub(r"\s+", "", text) in squeezed)


def test_the_search_finds_solutions_in_code_and_prose():
    answer = Solution(TEXT.split('"solution": "scaled_scores"}\n')[1].split("\n# %%")[0])
    assert found_in_code(answer, "def f(Q, K, width):\n    return Q @ K.transpose(-2,-1)  /  math.sqrt(width)")
    assert found_in_code(answer, "width = Q.shape[-1]\nreturn_value = 1") == []
    assert found_in_prose(answer, "Try `Q @ K.transpose(-2, -1) / math.sqrt(width)`.")


@each_lesson
def test_learners_notebooks_contain_no_solution(lesson):
    notebook = student(lesson)
    answers = solutions_of(lesson)
    leaks, bug_hunt = [], False
    for cell in notebook.cells:
        assert "BEGIN SOLUTION" not in cell.source and "END SOLUTION" not in cell.source
        if cell.cell_type == "markdown" and headings(cell.source):
            bug_hunt = "find the bug" in cell.source.lower()  # shows published code, which is right except for one line
        if is_answer(cell):
            assert re.search(r"raise NotImplementedError|^\w+ = None\b", cell.source, re.MULTILINE), cell["id"]
        look = found_in_code if cell.cell_type == "code" else found_in_prose
        for name, answer in answers.items():
            leaks += [(cell["id"], name, text) for text in look(answer, cell.source) if not bug_hunt]
    assert leaks == []
    model_answers = [
        cell.source
        for cell in solution(lesson).cells
        if cell.metadata.get("nbgrader", {}).get("solution") and cell.cell_type == "markdown"
    ]
    released = "\n".join(cell.source for cell in notebook.cells)
    assert all(text not in released for text in model_answers)


@pytest.mark.xdist_group("learner's sources")  # one worker reads the files
@each_lesson
def test_helpers_for_learners_contain_no_solution(lesson):
    answers = solutions_of(lesson)
    leaks = []
    for path in learners_sources():
        if "translator" in path.parts:  # an answer that is or calls one of these parts is refused
            continue
        source = path.read_text(encoding="utf-8")
        for name, answer in answers.items():
            leaks += [(path.name, name, text) for text in found_in_code(answer, source)]
    assert leaks == []


@each_lesson
def test_answer_keys_contain_no_code(lesson):
    answers = solutions_of(lesson)
    with np.load(ROOT / "helpers" / "answer_keys" / f"{lesson}.npz", allow_pickle=False) as stored:
        assert all(stored[name].dtype.kind in "biufc" for name in stored.files)
        manifest = stored["manifest"].tobytes().decode()
    assert "lambda" not in manifest and "def " not in manifest
    assert [text for answer in answers.values() for text in found_in_prose(answer, manifest)] == []


def test_the_notebooks_folder_contains_only_notebooks():
    paths = [path for path in (ROOT / "notebooks").rglob("*") if ".ipynb_checkpoints" not in path.parts]
    files = [path for path in paths if path.is_file()]
    assert files and all(path.suffix == ".ipynb" for path in files)


SEPARATE = ("authoring", "grading", "classroom")


def learners_sources() -> list[Path]:
    """Return the sources that learners have, without the blocks of finished lessons."""
    paths = [path for path in (ROOT / "helpers").rglob("*.py") if not set(SEPARATE) & set(path.parts)]
    return [path for path in paths if not path.name[0].isdigit()]


# Blocks


def test_blocks_name_their_source_and_import_only_what_they_need(small):
    source = (small / "helpers" / "blocks" / f"{LESSON}.py").read_text()
    assert source.startswith(f"# Made by `course build` from solutions/{LESSON}/{LESSON}.py; never edited here.\n")
    assert "import math" in source and "import torch" not in source and "SOLUTION" not in source
    assert defined_names(source) == {"scaled_scores", "halved"}


def test_importing_a_block_loads_only_its_lesson(root):
    (root / "helpers" / "blocks" / "05_later.py").write_text("raise RuntimeError('imported')\ndef later(): pass\n")
    program = textwrap.dedent("""
        import sys
        from helpers.blocks import halved
        print(halved(3), "helpers.blocks.05_later" in sys.modules, "later" in dir(sys.modules["helpers.blocks"]))
        try:
            from helpers.blocks import unheard_of
        except ImportError as error:
            print(error)
    """)
    result = subprocess.run([sys.executable, "-c", program], cwd=root, capture_output=True, text=True)
    assert result.stdout.startswith("1.5 False True\n") and "unheard_of" in result.stdout, result.stderr


def test_importing_helpers_does_not_import_torch():
    program = (
        "import sys, helpers\nfrom helpers import at_work, check, or_finished, progress\n"
        "print(all(map(callable, (at_work, check, or_finished, progress))), 'torch' in sys.modules)\n"
        "import helpers.checking.codec\nprint(callable(helpers.check))"
    )
    result = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert result.stdout == "True False\nTrue\n", result.stderr


def test_package_course_and_tag_have_the_same_version():
    import tomllib

    packaged = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert packaged == helpers.__version__
    assert course().url or course().tag == f"v{packaged}"  # a fork has its own tags


# Badges


def test_a_fork_needs_only_its_owner_and_repository_in_the_course_file(root, monkeypatch):
    """Once built, it stays up to date whatever the environment says; without them all badges disappear."""
    readme = root / "README.md"
    row = f"| [04](notebooks/{LESSON}/{LESSON}.ipynb) |"
    bare = "<!-- badges: made by `course build` -->\n<!-- end of badges -->\ngit clone <this repository> course\n"
    bare += f"{row} A tiny lesson | 5 |\n"
    named = COURSE.replace('owner = ""', 'owner = "someone"').replace('repository = ""', 'repository = "fork"')
    (root / "course.toml").write_text(named.replace("v0.1.0", "v9"))
    monkeypatch.setenv("COURSE_OWNER", "nobody")
    home, lesson = home_and_lesson(root)
    build(home, lesson, execute=False)
    readme.write_text(with_badges(bare, home))
    assert out_of_date(*home_and_lesson(root)) == [] and with_badges(readme.read_text(), home) == readme.read_text()
    assert "git clone https://github.com/someone/fork course\n" in readme.read_text()
    assert readme.read_text().count("colab.research.google.com/github/someone/fork/blob/v9/notebooks") == 2
    assert re.search(
        r"\.ipynb\) \[!\[Open in Colab\]\(\S+/blob/v9/notebooks/\S+\) \| A tiny lesson \| 5 \|", readme.read_text()
    )
    cells = read_lesson(home, lesson).notebook.cells
    page = f"https://colab.research.google.com/github/someone/fork/blob/v9/notebooks/{LESSON}/{LESSON}.ipynb"
    assert page in cells[0].source
    assert f"https://mybinder.org/v2/gh/someone/fork/v9?labpath=notebooks%2F{LESSON}%2F" in cells[0].source
    set_up = next(cell.source for cell in cells if cell["id"] == "setup")
    # The tag is the fork's but the version the course's, or every notebook would say that it belongs to another one.
    assert set_up.endswith(f", '{helpers.__version__}', 'https://github.com/someone/fork', 'v9')")
    (root / "course.toml").write_text(COURSE)
    home, lesson = home_and_lesson(root)
    assert with_badges(readme.read_text(), home) == bare
    assert "colab.research" not in read_lesson(home, lesson).notebook.cells[0].source


# What it refuses


def refusal(root: Path, old: str, new: str, file: str = f"solutions/{LESSON}/{LESSON}.py") -> str:
    """Return the message with which the changed lesson is refused."""
    path = root / file
    content = path.read_text(encoding="utf-8")
    assert old in content
    path.write_text(content.replace(old, new), encoding="utf-8")
    with pytest.raises(BuildError) as refused:
        build(*home_and_lesson(root), execute=False)
    return str(refused.value)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("def halved(x):", "def halved(x:", "04_tiny.py line 47: "),
        ('"solution": "halved"', '"answer": "halved"', "must be solution, grade or written"),
        ("check(halved)", "check(halved)" + "\n# more" * 30, "cell check_halved has 31 lines, but the limit is 25"),
        ('# %% nbgrader={"grade": "halved"}\ncheck(halved)\n', "", "halved has an answer cell and no check cell"),
        ("    return x / 2\n    ### END SOLUTION", "    return x / 2", "halved needs one ### BEGIN SOLUTION"),
        ("<details><summary>Hint 2</summary>\n# Two of them", "# Two of them", "halved needs two hints"),
        ("# How does the variance grow?", "# Q@K.transpose(-2, -1)/math.sqrt(width)", "hint of scaled_scores gives"),
        ("## Quiz", "## A picture", "are too similar"),
        ("return x / 2", "return np.divide(x, 2)", "a solution uses np"),
        ('"grade": "halved"', '"grade": "scaled_scores"', "scaled_scores has two check cells"),
        ("def halved(x):", "def half(x):", "the answer cell of halved does not define halved"),
        ("def halved(x):", "class halved:", "halved has a solution region between its methods"),
        ('# %% tags=["setup"]', "# %%", "exactly one set-up cell"),
        ("\nquiz_1 = None", "\nhalf = 0  ### BEGIN SOLUTION\nquiz_1 = None", "quiz_1 needs one ### BEGIN SOLUTION"),
        ("axes.plot([1, 2])", "### BEGIN SOLUTION", "a solution is outside an answer cell"),
    ],
)
def test_a_lesson_that_breaks_a_rule_is_refused_with_a_message(tmp_path, old, new, message):
    assert old in TEXT
    with pytest.raises(BuildError, match=re.escape(message)):
        blocks_source(read_lesson(*written(tmp_path / "course", COURSE, TEXT.replace(old, new))))


def written(root: Path, toml: str, text: str):
    """Write a course of these two files."""
    (root / "solutions" / LESSON).mkdir(parents=True)
    (root / "course.toml").write_text(toml)
    (root / "solutions" / LESSON / f"{LESSON}.py").write_text(text, encoding="utf-8")
    return home_and_lesson(root)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("scaled_scores = 83", "scaled_scores = 80", "add up to 97, not to 100"),
        ("quiz_1 = 2", "quiz_2 = 2", "course.toml gives points for quiz_2"),
        ("halved = 5", "", "gives no points for halved"),
        ("halved = 5", "halved = 5\nquiz_1 = 2", "is under points and under bonus"),
    ],
)
def test_points_that_do_not_fit_are_refused_with_a_message(tmp_path, old, new, message):
    with pytest.raises(BuildError, match=re.escape(message)):
        read_lesson(*written(tmp_path / "course", COURSE.replace(old, new), TEXT))


def test_all_problems_of_a_lesson_are_reported_at_once(root):
    refusal(root, "check(halved)\n", "check(halved)" + "\n# more" * 30 + "\n")
    (root / "course.toml").write_text(COURSE.replace("quiz_1 = 2", "quiz_2 = 2"))
    problems = refusal(root, "Hint 2</summary>\n# Two", "Two</summary>\n# Two").splitlines()
    for words in ("31 lines", "halved needs two hints", "points for quiz_2", "no points for quiz_1"):
        assert sum(words in sentence for sentence in problems) == 1, problems
    assert len(problems) == 4


def test_all_problems_of_an_answer_key_are_reported_at_once(root):
    """A mistake that is right, and an exercise without a part that earns points."""
    key = f"solutions/{LESSON}/answer_key.py"
    refusal(root, "/ Q.shape[-1]\n", "/ Q.shape[-1] ** 0.5\n", key)
    refusal(root, "import Exercise", "import Case, Exercise", key)
    halved = "tensor_cases(lambda dtype, *lead: (draw.normal(*lead, 5, dtype=dtype),))"
    first, second = refusal(root, halved, "[Case((draw.normal(5),), part='d = 5')]", key).splitlines()
    assert "scaled_scores: the mistake divided_by_width agrees with the solution on every case" in first
    assert "halved: no case is of part 'values'" in second
    twice = refusal(root, "quizzes =", "exercises.append(exercises[-1])\nquizzes =", key)
    assert twice == f"{key} describes halved twice. Keep one of them."


def test_all_edits_that_do_not_fit_and_unexplained_quiz_options_are_reported_at_once(root):
    quiz = "# ### Quiz 4.1\n#\n# - **a** one\n# - **b** two\n# - **c** three\n"
    problems = refusal(root, "# ### Quiz\n", quiz)
    key = f"solutions/{LESSON}/answer_key.py"
    assert problems == f"{key}: quiz_1 has the options ['a', 'b', 'c'] in the lesson, and explains ['a', 'b']."
    edits = "Q -> K\n            Why?\n        other: other\n            elsewhere -> here\n            Why?\n"
    old = "What is its standard deviation?\n    ''', divided_by_width=divided_by_width"
    problems = refusal(root, old, f"{edits}    '''", key).splitlines()
    assert len(problems) == 3 and problems[0].endswith("explains ['a', 'b'].")
    assert "'Q' of divided_by_width occurs 4 times in the solution with its docstring, not once." in problems[1]
    assert "'elsewhere' of other occurs 0 times" in problems[2]


def test_a_solution_is_executed_again_only_if_its_code_changed(root):
    """Its own code, or code of helpers that it uses."""
    home, lesson = home_and_lesson(root)
    path, style = root / "solutions" / LESSON / f"{LESSON}.py", root / "helpers" / "drawing" / "style.py"
    notebook = path.with_suffix(".ipynb")
    first, later = notebook.stat().st_mtime, time.time() + 60
    assert not must_run(home, read_lesson(home, lesson).notebook, notebook)
    os.utime(style, (later, later))
    assert must_run(home, read_lesson(home, lesson).notebook, notebook)
    os.utime(style, (first - 1, first - 1))
    path.write_text(TEXT.replace("## A picture", "## A drawing"), encoding="utf-8")
    assert not must_run(home, read_lesson(home, lesson).notebook, notebook)
    path.write_text(TEXT.replace("axes.plot([1, 2])", "axes.plot([1, 3])"), encoding="utf-8")
    assert must_run(home, read_lesson(home, lesson).notebook, notebook)


def test_a_broken_course_file_is_refused_with_a_message(tmp_path):
    path = tmp_path / "course.toml"
    path.write_text('owner = "')
    with pytest.raises(CourseError, match="is not valid TOML"):
        read(path, tmp_path)
    path.write_text(COURSE.replace('owner = ""', ""))
    with pytest.raises(CourseError, match="lacks 'owner'"):
        read(path, tmp_path)


def test_an_unknown_lesson_is_refused_with_a_list_of_lessons(capsys):
    assert main(["build", "99_magic"]) == 2
    assert capsys.readouterr().err == f"There is no lesson '99_magic'. The lessons are: {', '.join(LESSONS)}.\n"


def test_a_lesson_without_its_files_is_refused_with_a_message(root):
    for name in ("answer_key.py", f"{LESSON}.py"):
        (root / "solutions" / LESSON / name).unlink()
        result = run_command(root, "build", "--no-run")
        assert result.returncode == 2 and result.stderr.startswith(f"solutions/{LESSON}/{name} is missing.")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("exercises = [", "exercises = [[", "answer_key.py line "),
        (
            "divided_by_width: divided",
            "divided_by_width, divided",
            "answer_key.py, scaled_scores: 'divided_by_width, d",
        ),
        ("import Exercise, Mistake", "import Exercises, Mistake", "answer_key.py line 1 does not run: ImportError"),
        ("draw.normal(*lead, 5, 4, dtype=dtype), draw", "draw.norm(*lead, 5), draw", "line 6, scaled_scores: Attr"),
        ("quiz_1: b", "quiz_7: b", "describes quiz_7, which has no answer cell"),
        ('Exercise("halved"', 'Exercise("scaled_scores"', "does not describe halved"),
        ("draw.normal(*lead, 5, dtype=dtype),)", "draw.word(),)", "the reference raised TypeError"),
    ],
)
def test_an_answer_key_that_does_not_fit_is_refused_with_a_message(root, old, new, message):
    assert message in refusal(root, old, new, f"solutions/{LESSON}/answer_key.py")
