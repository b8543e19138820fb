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
from textwrap import indent

import pytest

from helpers.grading.folders import ROOT
from helpers.grading.intake import read_submission
from helpers.grading.judge import Judge
from helpers.grading.lesson_release import cells_to_judge, read_release
from tests.sample_class import _in_own_words, grade_id, text
from tests.sandboxes import SEED, SMALL, full_scores, need_sandbox, scores

LESSONS = ("03_query_key", "04_scaling", "07_value_weighting")  # each lesson gets a third of the list


@dataclass
class Submission:
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


Edit = Callable[[Submission], object]  # changes the submission in place


def new(source: str, kind: str = "code", **more) -> dict:
    cell = {"cell_type": kind, "metadata": {}, "source": source} | more
    return {"outputs": [], "execution_count": None} | cell if kind == "code" else cell


def scratch(source: str, kind: str = "code", **more) -> Edit:
    """The learner's own cell above the answer."""
    return lambda work: work.put(work.at(work.name), new(source.replace("NAME", work.name), kind, **more))


def imported(line: str) -> Edit:
    """A line on top of the import cell."""
    return lambda hand_in: hand_in.imports.update(source=f"{line}\n{hand_in.imports['source']}")


def answer(change: Callable[[str, str], str]) -> Edit:
    """An edit of the answer's source: change(source, name of the exercise) -> new source."""
    return lambda hand_in: hand_in.answer.update(source=change(hand_in.answer["source"], hand_in.name))


def renamed(source: str, name: str, to: str) -> str:
    return re.sub(rf"\b{name}\b", to, source)


def other(hand_in: Submission) -> str:
    """The exercise after this one, or the one before the last."""
    names = [grade_id(cell) for cell in hand_in.cells if f"check_{grade_id(cell)}" in map(grade_id, hand_in.cells)]
    index = names.index(hand_in.name)
    return names[index + 1] if index + 1 < len(names) else names[index - 1]


def merged_with_the_next(hand_in: Submission) -> None:
    after = hand_in[other(hand_in)]
    both = [hand_in.answer["source"], after["source"]]
    hand_in.answer["source"], after["source"] = "\n\n".join(both), ""


def all_in_one_cell(hand_in: Submission) -> None:
    own = [cell for cell in hand_in.cells if f"check_{grade_id(cell)}" in map(grade_id, hand_in.cells)]
    hand_in.put(hand_in.cells.index(own[0]), new("\n\n".join(cell["source"] for cell in own)))
    for cell in own:
        hand_in.cells.remove(hand_in[grade_id(cell)])


def moved(to: Callable[[Submission], int]) -> Edit:
    def edit(hand_in: Submission) -> None:
        cells = hand_in.drop(hand_in.name)
        hand_in.put(to(hand_in), *cells)

    return edit


def upside_down(hand_in: Submission) -> None:
    graded = [
        cell for cell in hand_in.cells if grade_id(cell) and cell["cell_type"] == "code" and grade_id(cell) != "setup"
    ]
    rest = [cell for cell in hand_in.cells if cell not in graded]
    pairs = [graded[i : i + 2] for i in range(0, len(graded), 2)]
    hand_in.notebook["cells"] = [*rest, *(cell for pair in reversed(pairs) for cell in pair)]


def format_3(hand_in: Submission) -> None:
    cells = [{**cell, "input": cell["source"], "language": "python"} for cell in hand_in.cells]
    for cell in cells:
        if cell["cell_type"] == "code":
            del cell["source"]
    hand_in.notebook = {"worksheets": [{"cells": cells}], "metadata": {"name": "x"}, "nbformat": 3, "nbformat_minor": 0}


def tabs(source: str, name: str) -> str:
    return re.sub(r"(?m)^(?:    )+", lambda found: "\t" * (len(found[0]) // 4), source)


def helper_at_the_end(hand_in: Submission) -> None:
    """The answer only calls a helper in a cell of its own."""
    helper = new(renamed(hand_in.answer["source"], hand_in.name, "helper"))
    if re.search(r"(?m)^class helper\b", helper["source"]):
        hand_in.answer["source"] = f"class {hand_in.name}(helper):\n    pass"
        hand_in.put(hand_in.at(hand_in.name), helper)
    else:
        hand_in.answer["source"] = f"def {hand_in.name}(*args, **kwargs):\n    return helper(*args, **kwargs)"
        hand_in.put(len(hand_in.cells), helper)


def quiz(answer: Callable[[str], str]) -> Edit:
    def edit(hand_in: Submission) -> None:
        cell = hand_in["quiz_1"]
        choice = re.search(r'= "(\w)"', cell["source"])[1]
        cell["source"] = answer(choice)

    return edit


PASSED = {"output_type": "stream", "name": "stdout", "text": "passed\n"}

# Edits that cost nothing; below, edits that cost the points of the exercise (NAME) or of quiz_1.
FULL: dict[str, Edit] = {
    # cells
    "merged with the next answer": merged_with_the_next,
    "all answers in one cell": all_in_one_cell,
    "answer at the end": moved(lambda hand_in: len(hand_in.cells)),
    "answer above the imports": moved(lambda hand_in: 0),
    "exercises in reverse order": upside_down,
    "all cells twice": lambda hand_in: hand_in.cells.extend(copy.deepcopy(hand_in.cells)),
    "check in the answer cell": answer(lambda source, name: f"{source}\n\ncheck({name})"),
    "answer cell raw": lambda hand_in: hand_in.answer.update(cell_type="raw"),
    "setup cell deleted": lambda hand_in: hand_in.drop("setup"),
    "import cell deleted": lambda hand_in: hand_in.cells.remove(hand_in.imports),
    # the file
    "ids all the same": lambda hand_in: [cell.update(id="same") for cell in hand_in.cells],
    "notebook format 3": format_3,
    "no kernel named": lambda hand_in: hand_in.notebook.update(metadata={}),
    "huge outputs": scratch("x = 1", outputs=[{**PASSED, "text": "x" * 10**6}] * 5),
    # other cells
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
    "a debugger afterwards": scratch("[][0]\n\n%debug"),
    "a breakpoint": scratch("x = 1\nbreakpoint()\nx = 2"),
    "workers": scratch("from torch.utils.data import DataLoader\nfor one in DataLoader(range(8), num_workers=2): pass"),
    "denormal numbers flushed": scratch("torch.set_flush_denormal(True)"),
    "another repr of tensors": scratch("torch.Tensor.__repr__ = lambda self: 'a tensor'"),
    "memory traced": scratch("import tracemalloc\ntracemalloc.start()"),
    "prints into a file": scratch("import sys\nsys.stdout = open('log.txt', 'w')\nprint('x')"),
    # the answer as it is written
    "tabs": answer(tabs),
    "white space": answer(lambda source, name: "\n\n" + source.replace("\n", "  \n") + "\n\n\n   "),
    "an alias": answer(lambda source, name: f"{renamed(source, name, 'mine')}\n{name} = mine"),
    "in a with block": answer(lambda source, name: "with torch.no_grad():\n" + indent(source, "    ")),
    "letters of all kinds": answer(lambda source, name: f"# √d_k für 學生 🙂\nβ = 'naïve'\n{source}"),
    "in an if block": answer(lambda source, name: "if __name__ == '__main__':\n" + indent(source, "    ")),
    "an alias among others": answer(lambda source, name: f"{renamed(source, name, 'mine')}\n{name}, other = mine, 3"),
    "a helper at the end": helper_at_the_end,
    "something else above": scratch("NAME = 3"),
    # quizzes
    "a quiz with a type": quiz(lambda choice: f"quiz_1: str = '{choice}'; print(quiz_1)"),
    "a quiz in capitals": quiz(lambda choice: f'quiz_1 = " {choice.upper()} "  # I think'),
    "a wrong quiz answer": quiz(lambda choice: f'quiz_1 = "{"b" if choice == "a" else "a"}"'),
}
COSTS_THE_ANSWER: dict[str, Edit] = {
    "answer deleted": lambda hand_in: hand_in.drop(hand_in.name),
    "answer renamed": answer(lambda source, name: renamed(source, name, f"my_{name}")),
    "answer commented out": answer(lambda source, name: re.sub("(?m)^", "# ", source)),
    "answer as text elsewhere": lambda work: work.put(0, new(work.drop(work.name)[0]["source"], "markdown")),
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
        hand_in = Submission(copy.deepcopy(self.notebook), exercise)
        EDITS[edit](hand_in)
        lost = exercise if edit in COSTS_THE_ANSWER else "quiz_1" if edit in COSTS_QUIZ_1 else None
        folder = self.folder / "submitted" / "ada" / self.lesson
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        (folder / f"{self.lesson}.ipynb").write_bytes(json.dumps(hand_in.notebook).encode())
        read = read_submission(self.folder / "submitted", "ada", self.release, ROOT / "notebooks")
        found = self.judge.judge_cells(cells_to_judge(read, self.release))
        deserved, paid = full_scores(self.judge) | ({lost: 0.0} if lost else {}), scores(found)
        if read.problem or paid != deserved:
            messages = {name: found.verdicts[name].message[:150] for name in paid if paid[name] != deserved[name]}
            return f"{self.lesson}, {exercise}, {edit}: {read.problem or messages} {read.flags} {found.flags}"
        return ""


@pytest.fixture(scope="module")
def bench(request, tmp_path_factory) -> Iterator[Bench]:
    need_sandbox()
    prepared = Bench(request.param, tmp_path_factory.mktemp("odd"))
    with prepared.judge:
        yield prepared


@pytest.mark.full
@pytest.mark.parametrize("bench", LESSONS, indirect=True)
def test_a_submission_with_one_odd_edit_gets_the_points_it_deserves(bench):
    edits = list(EDITS)[LESSONS.index(bench.lesson) :: len(LESSONS)]
    wrong = [bench.wrong(edit, bench.exercises[i % len(bench.exercises)]) for i, edit in enumerate(edits)]
    assert not any(wrong), "\n".join(filter(None, wrong))
