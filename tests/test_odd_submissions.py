"""An honest submission with one odd edit from a list gets the points that the edit leaves it.

The list leaves out edits with tests of their own: cells that fail only in the grader (test_honest.py), cells that are
copied, deleted or in another encoding (test_intake.py), switches left on (test_machines.py), cells below a check
(test_judge_order.py), trained models (test_measured.py, test_training_class.py).
"""

import copy
import json
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import pytest

from helpers.grading.folders import ROOT
from helpers.grading.intake import read_submission
from helpers.grading.judge import Judge
from helpers.grading.lesson_release import judge_input, read_release
from tests.sample_class import _in_own_words, grade_id, text
from tests.sandboxes import SEED, SMALL, full_scores, need_sandbox, scores

LESSONS = ("03_query_key", "04_scaling", "07_value_weighting")  # each lesson gets a third of the list


@dataclass
class HandIn:
    """A fully correct notebook, and the name of the exercise that an edit changes."""

    notebook: dict
    name: str  # of the exercise

    @property
    def cells(self) -> list[dict]:
        return self.notebook["cells"]

    def at(self, name: str) -> int:
        return next(index for index, cell in enumerate(self.cells) if grade_id(cell) == name)

    def __getitem__(self, name: str) -> dict:
        return self.cells[self.at(name)]

    @property
    def answer(self) -> dict:
        return self[self.name]

    @property
    def check(self) -> dict:
        return self[f"check_{self.name}"]

    @property
    def imports(self) -> dict:
        return next(cell for cell in self.cells if "import torch" in cell["source"] and not grade_id(cell))

    def put(self, index: int, *cells: dict) -> None:
        self.cells[index:index] = [copy.deepcopy(cell) for cell in cells]

    def drop(self, *names: str) -> list[dict]:
        return [self.cells.pop(self.at(name)) for name in names]


Edit = Callable[[HandIn], None]


def new(source: str, kind: str = "code", **more) -> dict:
    cell = {"cell_type": kind, "metadata": {}, "source": source} | more
    return {"outputs": [], "execution_count": None} | cell if kind == "code" else cell


def scratch(source: str, kind: str = "code", **more) -> Edit:
    """The learner's own cell above the answer."""
    return lambda one: one.put(one.at(one.name), new(source.replace("NAME", one.name), kind, **more))


def imported(line: str) -> Edit:
    """A line on top of the import cell."""
    return lambda one: one.imports.update(source=f"{line}\n{one.imports['source']}")


def answer(change: Callable[[str, str], str]) -> Edit:
    """An edit of the answer's source: change(source, name of the exercise) -> new source."""
    return lambda one: one.answer.update(source=change(one.answer["source"], one.name))


def renamed(source: str, name: str, to: str) -> str:
    return re.sub(rf"\b{name}\b", to, source)


def other(one: HandIn) -> str:
    """The exercise after this one, or the one before the last."""
    names = [grade_id(cell) for cell in one.cells if f"check_{grade_id(cell)}" in map(grade_id, one.cells)]
    index = names.index(one.name)
    return names[index + 1] if index + 1 < len(names) else names[index - 1]


def merged_with_the_next(one: HandIn) -> None:
    after = one[other(one)]
    both = [one.answer["source"], after["source"]]
    one.answer["source"], after["source"] = "\n\n".join(both), ""


def all_in_one_cell(one: HandIn) -> None:
    own = [cell for cell in one.cells if f"check_{grade_id(cell)}" in map(grade_id, one.cells)]
    one.put(one.cells.index(own[0]), new("\n\n".join(cell["source"] for cell in own)))
    for cell in own:
        one.cells.remove(one[grade_id(cell)])


def moved(to: Callable[[HandIn], int]) -> Edit:
    def edit(one: HandIn) -> None:
        cells = one.drop(one.name)
        one.put(to(one), *cells)

    return edit


def upside_down(one: HandIn) -> None:
    graded = [
        cell for cell in one.cells if grade_id(cell) and cell["cell_type"] == "code" and grade_id(cell) != "setup"
    ]
    rest = [cell for cell in one.cells if cell not in graded]
    pairs = [graded[i : i + 2] for i in range(0, len(graded), 2)]
    one.notebook["cells"] = [*rest, *(cell for pair in reversed(pairs) for cell in pair)]


def format_3(one: HandIn) -> None:
    cells = [{**cell, "input": cell["source"], "language": "python"} for cell in one.cells]
    for cell in cells:
        if cell["cell_type"] == "code":
            del cell["source"]
    one.notebook = {"worksheets": [{"cells": cells}], "metadata": {"name": "x"}, "nbformat": 3, "nbformat_minor": 0}


def tabs(source: str, name: str) -> str:
    return re.sub(r"(?m)^(?:    )+", lambda found: "\t" * (len(found[0]) // 4), source)


def helper_at_the_end(one: HandIn) -> None:
    """The answer only calls a helper in a cell of its own."""
    helper = new(renamed(one.answer["source"], one.name, "helper"))
    if re.search(r"(?m)^class helper\b", helper["source"]):
        one.answer["source"] = f"class {one.name}(helper):\n    pass"
        one.put(one.at(one.name), helper)
    else:
        one.answer["source"] = f"def {one.name}(*args, **kwargs):\n    return helper(*args, **kwargs)"
        one.put(len(one.cells), helper)


def quiz(answer: Callable[[str], str]) -> Edit:
    def edit(one: HandIn) -> None:
        cell = one["quiz_1"]
        choice = re.search(r'= "(\w)"', cell["source"])[1]
        cell["source"] = answer(choice)

    return edit


PASSED = {"output_type": "stream", "name": "stdout", "text": "passed\n"}

# Edits that cost nothing; below, edits that cost the points of the exercise (NAME) or of quiz_1.
FULL: dict[str, Edit] = {
    # cells
    "merged with the next answer": merged_with_the_next,
    "all answers in one cell": all_in_one_cell,
    "answer at the end": moved(lambda one: len(one.cells)),
    "answer above the imports": moved(lambda one: 0),
    "exercises upside down": upside_down,
    "all cells twice": lambda one: one.cells.extend(copy.deepcopy(one.cells)),
    "check in the answer cell": answer(lambda source, name: f"{source}\n\ncheck({name})"),
    "answer cell raw": lambda one: one.answer.update(cell_type="raw"),
    "setup cell deleted": lambda one: one.drop("setup") and None,
    "import cell deleted": lambda one: one.cells.remove(one.imports),
    # the file
    "ids all the same": lambda one: [cell.update(id="same") for cell in one.cells] and None,
    "notebook format 3": format_3,
    "no kernel named": lambda one: one.notebook.update(metadata={}),
    "huge outputs": scratch("x = 1", outputs=[{**PASSED, "text": "x" * 10**6}] * 5),
    # cells beside the answers
    "a syntax error": scratch("def NAME(:\n    return"),
    "a debugger": scratch("%pdb on\n1 / 0"),
    "await": scratch("import asyncio\nawait asyncio.sleep(0)"),
    "another folder": scratch("import os\nos.makedirs('deep', exist_ok=True)\nos.chdir('deep')"),
    "a name space cleared first": imported("%reset -f"),
    "a raw cell": scratch("def NAME(:", "raw"),
    "a cell of no kind": scratch("x", "sql"),
    "a thread that stays": scratch(
        "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()"
    ),
    "another folder by magic": scratch("%cd .."),
    "inference mode": scratch("mode = torch.inference_mode()\nmode.__enter__()"),
    "NumPy's errors": scratch("import numpy as np\nnp.seterr(all='raise')"),
    "no garbage collection": scratch("import gc\ngc.disable()\nimport sys\nsys.setrecursionlimit(500)"),
    "extensions": scratch("%load_ext autoreload\n%autoreload 2"),
    "interrupted": scratch("raise KeyboardInterrupt"),
    "a name of the course taken": scratch("check = at_work = print"),
    "settings by magic": scratch("%config InlineBackend.figure_format = 'retina'\n%xmode Verbose\n%who"),
    "debugged": scratch("[][0]\n\n%debug"),
    "a breakpoint": scratch("x = 1\nbreakpoint()\nx = 2"),
    "workers": scratch("from torch.utils.data import DataLoader\nfor one in DataLoader(range(8), num_workers=2): pass"),
    "small numbers flushed": scratch("torch.set_flush_denormal(True)"),
    "tensors shown otherwise": scratch("torch.Tensor.__repr__ = lambda self: 'a tensor'"),
    "memory traced": scratch("import tracemalloc\ntracemalloc.start()"),
    "prints into a file": scratch("import sys\nsys.stdout = open('log.txt', 'w')\nprint('x')"),
    # the answer as it is written
    "tabs": answer(tabs),
    "white space": answer(lambda source, name: "\n\n" + source.replace("\n", "  \n") + "\n\n\n   "),
    "an alias": answer(lambda source, name: f"{renamed(source, name, 'mine')}\n{name} = mine"),
    "in a with": answer(lambda source, name: "with torch.no_grad():\n" + re.sub("(?m)^(?=.)", "    ", source)),
    "letters of all kinds": answer(lambda source, name: f"# √d_k für 學生 🙂\nβ = 'naïve'\n{source}"),
    "in an if": answer(lambda source, name: "if __name__ == '__main__':\n" + re.sub("(?m)^(?=.)", "    ", source)),
    "an alias among others": answer(lambda source, name: f"{renamed(source, name, 'mine')}\n{name}, other = mine, 3"),
    "a helper at the end": helper_at_the_end,
    "something else above": scratch("NAME = 3"),
    # quizzes
    "a quiz with a type": quiz(lambda choice: f"quiz_1: str = '{choice}'; print(quiz_1)"),
    "a quiz in capitals": quiz(lambda choice: f'quiz_1 = " {choice.upper()} "  # I think'),
    "a quiz wrongly": quiz(lambda choice: f'quiz_1 = "{"b" if choice == "a" else "a"}"'),
}
COSTS_THE_ANSWER: dict[str, Edit] = {
    "answer deleted": lambda one: one.drop(one.name) and None,
    "answer renamed": answer(lambda source, name: renamed(source, name, f"my_{name}")),
    "answer commented out": answer(lambda source, name: re.sub("(?m)^", "# ", source)),
    "answer as text elsewhere": lambda one: (one.put(0, new(one.drop(one.name)[0]["source"], "markdown")), None)[1],
}
COSTS_QUIZ_1: dict[str, Edit] = {"a quiz with a number": quiz(lambda choice: "quiz_1 = 2")}
EDITS = FULL | COSTS_THE_ANSWER | COSTS_QUIZ_1


class Bench:
    """A judge of one lesson, and the notebook from which its submissions are made."""

    def __init__(self, lesson: str, folder):
        self.lesson, self.folder = lesson, folder
        self.judge = Judge(lesson, SEED, limits=replace(SMALL, memory_bytes=1 << 30, cell_seconds=2.0))
        self.release = read_release(ROOT / "notebooks" / lesson / f"{lesson}.ipynb")
        keys = self.judge.keys.values()
        self.exercises = [key.name for key in keys if key.kind == "exercise"]
        released = json.loads((ROOT / "notebooks" / lesson / f"{lesson}.ipynb").read_text(encoding="utf-8"))
        solved = json.loads((ROOT / "solutions" / lesson / f"{lesson}.ipynb").read_text(encoding="utf-8"))
        solutions = {grade_id(cell): _in_own_words(text(cell)) for cell in solved["cells"] if grade_id(cell)}
        cells, first = [], True
        for cell in released["cells"]:
            name, cell["source"] = grade_id(cell), text(cell)
            if key := self.judge.keys.get(name):
                cell["source"] = solutions[name] if key.kind == "exercise" else f'{name} = "{key.correct}"'
            imports = first and not name and "import torch" in cell["source"] and cell["cell_type"] == "code"
            first = first and not imports
            if name or imports or cell["cell_type"] == "markdown" and len(cells) < 4:
                cells.append(cell)
        self.notebook = released | {"cells": cells}

    def wrong(self, edit: str, exercise: str) -> str:
        """The differences between the judge's and the deserved scores as text; "" if there are none."""
        one = HandIn(copy.deepcopy(self.notebook), exercise)
        EDITS[edit](one)
        lost = exercise if edit in COSTS_THE_ANSWER else "quiz_1" if edit in COSTS_QUIZ_1 else None
        place = self.folder / "submitted" / "ada" / self.lesson
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        (place / f"{self.lesson}.ipynb").write_bytes(json.dumps(one.notebook).encode())
        handed_in = read_submission(self.folder / "submitted", "ada", self.release, ROOT / "notebooks")
        found = self.judge.judge_cells(judge_input(handed_in, self.release))
        deserved, paid = full_scores(self.judge) | ({lost: 0.0} if lost else {}), scores(found)
        if handed_in.problem or paid != deserved:
            told = {name: found.verdicts[name].message[:150] for name in paid if paid[name] != deserved[name]}
            return f"{self.lesson}, {exercise}, {edit}: {handed_in.problem or told} {handed_in.flags} {found.flags}"
        return ""


@pytest.fixture(scope="module")
def bench(request, tmp_path_factory) -> Iterator[Bench]:
    need_sandbox()
    made = Bench(request.param, tmp_path_factory.mktemp("odd"))
    with made.judge:
        yield made


@pytest.mark.full
@pytest.mark.parametrize("bench", LESSONS, indirect=True)
def test_a_submission_with_one_odd_edit_gets_the_points_it_deserves(bench):
    edits = list(EDITS)[LESSONS.index(bench.lesson) :: len(LESSONS)]
    wrong = [bench.wrong(edit, bench.exercises[i % len(bench.exercises)]) for i, edit in enumerate(edits)]
    assert not any(wrong), "\n".join(filter(None, wrong))
