"""Lesson cells that a submission does not need are skipped, and its code reads the same values as if all ran."""

import random
from dataclasses import replace

import pytest

from helpers.grading.folders import load
from helpers.grading.intake import read_submission
from helpers.grading.judge import Judge
from helpers.grading.lesson_release import cells_to_judge, course_release, import_names, names_touched
from helpers.grading.name_bindings import TopLevel
from helpers.grading.submission import Cell, Release
from tests.sample_class import Lesson, hand_in
from tests.sandboxes import SEED, SMALL, need_sandbox

IMPORTS = "import math\nimport torch\nfrom helpers import or_finished"
GIVEN = {
    "imports": IMPORTS,
    "numbers": "x = torch.ones(3)",
    "twice": "doubled = 2 * x",
    "in place": "x.add_(1)",
    "asks": "shown = or_finished(answer)(x)\nprint(sum(shown))",
    "other": "log = []\ndef note(one): log.append(one)",
    "notes": "note(3)",
    "figure": "figures.one(x)",
}


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("x = or_finished(answer)(y)", {"x", "y", "or_finished"}),
        ("at_work(answer=mine)", {"at_work", "mine"}),
        ("def f(q):\n    k = q\n    return k + scale", {"f", "scale"}),
        ("figures.one(x)", set()),
        ("x = answer(y)", None),
        ("tried = [answer, x]", None),
        ("experiments.of(answer, x)", None),
        ("answer = 3", None),
        ("def g():\n    return answer(1)", None),
        ("%time x = 1", None),
        ("x = (", None),
        ("", None),
    ],
)
def test_names_that_a_lesson_cell_touches_are_found(source, names):
    assert names_touched(source, {"answer"}) == names


def run_of(answer: str, *own: str) -> set[str]:
    """The given cells that run for a submission of this answer and these additional cells."""
    code = [(None, source) for source in GIVEN.values()]
    release = Release("04_scaling", {}, {}, {"answer": 1.0}, {}, {*GIVEN.values()}, code=code)
    release.demonstrations = {source: names_touched(source, {"answer"}) for source in GIVEN.values()}
    release.given = import_names(TopLevel(GIVEN.values()))
    cells = [Cell(name, source) for name, source in GIVEN.items()]
    cells += [Cell("answer", answer, "answer", "answer"), Cell("check", "", "check", "answer")]
    cells += [Cell(f"own-{number}", source) for number, source in enumerate(own)]
    handed_in = type("HandIn", (), {"cells": cells})
    selected = {cell.id for cell in cells_to_judge(handed_in, release)}
    assert selected >= {cell.id for cell in cells} - GIVEN.keys()
    return selected & GIVEN.keys()


PLAIN = "def answer(x):\n    return math.sqrt(sum(x))"
TOUCHING_X = {"numbers", "twice", "in place", "asks"}


def test_cells_that_no_code_of_the_learner_needs_are_skipped():
    assert run_of(PLAIN) == set()
    assert run_of(PLAIN, "import torch", "import math\nfrom helpers import or_finished") == set()
    assert run_of("def answer(") == GIVEN.keys() - {"figure"}  # unparsable code may read any name


@pytest.mark.parametrize(
    ("own", "run"),
    [
        ("print(x)", TOUCHING_X),
        ("y = shown + 1", TOUCHING_X),
        ("def again():\n    return log", {"other", "notes"}),
        ("x = 3", TOUCHING_X),  # later cells may read it
        ("class Own:\n    size = x", TOUCHING_X),
        ("math = None", {"imports"}),
        ("import numpy as math", {"imports"}),
        ("def sum(x):\n    return 1", TOUCHING_X),  # a builtin that the cell `asks` uses
    ],
)
def test_all_cells_run_that_touch_a_name_which_the_learner_reads_or_binds(own, run):
    assert run_of(PLAIN, own) == run
    if own != "x = 3":
        assert run_of(PLAIN + "\n" + own) == run


@pytest.mark.parametrize(
    "own", ["eval('x')", "%who", "!ls {x}", "!echo $x", "def f():\n    return globals()['x']", "print(_)", "y = (1,\n"]
)
def test_all_cells_but_figures_run_for_code_that_may_read_any_name(own):
    assert run_of(PLAIN, own) == GIVEN.keys() - {"figure"}


@pytest.mark.parametrize(("own", "runs"), [("print(trained)", True), ("print(answer)", False), ("trained = 1", False)])
def test_an_ungraded_training_runs_only_if_the_learner_reads_its_result(own, runs):
    training = "trained = fit(5)"
    release = Release("50_test", {}, {}, {}, {training}, set(), ungraded={training: {"trained"}})
    cells = [Cell("training", training), Cell("answer", PLAIN, "answer", "answer"), Cell("own", own)]
    selected = cells_to_judge(type("HandIn", (), {"cells": cells}), release)
    assert ("training" in [cell.id for cell in selected]) == runs


MAGICS = ["%%time\ny = 1", "%%capture out\n%%timeit -n 1\ny = 1", "%matplotlib inline\n!pip install -q of_home\ny = 1"]


@pytest.mark.parametrize("own", [*MAGICS, "%time answer(3)", "for i in range(2):\n    %timeit -n 1 answer(3)"])
def test_magics_that_read_no_name_make_no_cell_run(own):
    assert run_of(PLAIN, own) == run_of(PLAIN)
    assert run_of(PLAIN, f"{own}\nprint(x)") == TOUCHING_X


PEEK = """
try:
    print(type({name}).__name__, {name} if isinstance({name}, (int, float, str, list, tuple, torch.Tensor)) else "")
except NameError:  # of a comprehension's own
    print("nothing")
"""


@pytest.mark.full
@pytest.mark.parametrize("lesson", ["04_scaling", "07_value_weighting"])
def test_a_learner_reads_the_same_values_as_if_all_cells_ran(lesson, tmp_path):
    """Random names of the lesson's cells are read. Values that depend on random numbers drawn earlier may differ."""
    need_sandbox()
    folders, _ = load(tmp_path)
    sample, drawn = Lesson(folders, lesson), random.Random(SEED)
    release = course_release(folders.executed(lesson))
    plain = TopLevel(source for source, names in release.demonstrations.items() if names)
    bound = sorted(plain.bound.keys() - release.given.keys())
    hand_in(folders, sample, "ada", {name: sample.solutions[name] for name in sample.exercises})
    handed_in = read_submission(folders.submitted, "ada", release, folders.release)
    spared = 0
    with Judge(lesson, SEED, limits=replace(SMALL, memory_bytes=1 << 30)) as judge:
        for _ in range(3):
            names = drawn.sample(bound, 2)
            cells = [*handed_in.cells, Cell("peek", "".join(PEEK.format(name=name) for name in names))]
            every = [cell for cell in cells if cell.runs]
            selected = cells_to_judge(replace(handed_in, cells=cells), release)
            spared += len(every) - sum(cell.runs for cell in selected)

            def printed(run: list[Cell]) -> str:
                found = judge.judge_cells(run, exercises=[])
                assert "peek" not in found.errors
                return "".join(one["text"] for one in found.outputs["peek"])

            expected = printed(every)
            if printed(selected) != expected:
                assert printed([Cell("stir", "import torch\ntorch.rand(7)"), *every]) != expected, names
    assert spared > 20
