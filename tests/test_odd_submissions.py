"""One odd edit out of a list, in an honest submission of any lesson: the judge pays what the edit leaves of it.

What has tests of its own is not in the list: cells that fail here alone (test_honest.py), cells that are copied,
deleted or encoded otherwise (test_intake.py), switches that are left on (test_machines.py). CI draws a few.
COURSE_ODD=all tries the whole list in every lesson, COURSE_ODD=04,09 in some: the exercise that is edited then goes
round.
"""

import copy
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import pytest
import torch
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from safetensors.torch import save as numbers_as_bytes

from helpers import translator
from helpers.grading.attachments import read_files_beside
from helpers.grading.folders import ROOT
from helpers.grading.intake import read_submission
from helpers.grading.judge import Judge
from helpers.grading.lesson_release import read_release
from helpers.grading.name_bindings import TopLevel
from helpers.grading.skippable_cells import judge_input
from helpers.progress import remember_passed
from tests.conftest import lesson_names
from tests.sample_class import _in_own_words, grade_id, text
from tests.sandboxes import SEED, SMALL, need_sandbox

DRAWN = {"03_query_key": 9, "04_scaling": 8, "07_value_weighting": 7}  # in CI: how many submissions of which lesson
DRAWN_MEASURED = {"11_translation": 3}
MEASURED_EXERCISE = {"11_translation": "translate", "12_language_model": "language_model_logits"}
IN_HASTE = {
    "5 if quick() else 300": "2",
    "10 if quick() else 700": "2",
    "train(model, text, 1200,": "train(model, text, 2,",
}
ODD = os.environ.get("COURSE_ODD", "")
WHOLE = [name for name in lesson_names()[1:] if ODD == "all" or name[:2] in ODD.split(",")]


@dataclass
class HandIn:
    """A notebook that is right in everything, and the exercise of it that an edit is about."""

    notebook: dict
    name: str  # of the exercise
    files: dict[str, bytes] = field(default_factory=dict)  # beside the notebook

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

    @property
    def training(self) -> dict:
        return next(cell for cell in self.cells if re.search(r"= checkpoint\(", cell["source"]))

    def put(self, index: int, *cells: dict) -> None:
        self.cells[index:index] = [copy.deepcopy(cell) for cell in cells]

    def drop(self, *names: str) -> list[dict]:
        return [self.cells.pop(self.at(name)) for name in names]


Edit = Callable[[HandIn], None]


def new(source: str, kind: str = "code", **more) -> dict:
    cell = {"cell_type": kind, "metadata": {}, "source": source} | more
    return {"outputs": [], "execution_count": None} | cell if kind == "code" else cell


def scratch(source: str, kind: str = "code", **more) -> Edit:
    """A cell of one's own above the answer."""
    return lambda one: one.put(one.at(one.name), new(source.replace("NAME", one.name), kind, **more))


def below(source: str) -> Edit:
    """A cell of one's own below the check."""
    return lambda one: one.put(one.at(f"check_{one.name}") + 1, new(source.replace("NAME", one.name)))


def imported(line: str) -> Edit:
    """A line on top of the import cell."""
    return lambda one: one.imports.update(source=f"{line}\n{one.imports['source']}")


def answer(change: Callable[[str, str], str]) -> Edit:
    """The source of the answer changed; the change is told the exercise's name too."""
    return lambda one: one.answer.update(source=change(one.answer["source"], one.name))


def renamed(source: str, name: str, to: str) -> str:
    return re.sub(rf"\b{name}\b", to, source)


def notebook(change: Callable[[dict], object]) -> Edit:
    return lambda one: (change(one.notebook), None)[1]


def every_cell(change: Callable[[dict], object]) -> Edit:
    return lambda one: [change(cell) for cell in one.cells] and None


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


def without_docstring(source: str, name: str) -> str:
    return re.sub(r'(?s)"""(?:(?!""").)*"""', '""', source)


def split_helper(place: Callable[[HandIn], int]) -> Edit:
    """The work is done by a helper in a cell of its own."""

    def edit(one: HandIn) -> None:
        helper = new(renamed(one.answer["source"], one.name, "helper"))
        if "class " in helper["source"] and re.search(r"(?m)^class helper\b", helper["source"]):
            one.answer["source"] = f"class {one.name}(helper):\n    pass"
            one.put(one.at(one.name), helper)
            return
        one.answer["source"] = f"def {one.name}(*args, **kwargs):\n    return helper(*args, **kwargs)"
        one.put(place(one), helper)

    return edit


def quiz(answer: Callable[[str], str]) -> Edit:
    def edit(one: HandIn) -> None:
        cell = one["quiz_1"]
        choice = re.search(r'= "(\w)"', cell["source"])[1]
        cell["source"] = answer(choice)

    return edit


IMAGE = {"image/png": "iVBORw0KGgo="}
PASSED = {"output_type": "stream", "name": "stdout", "text": "passed\n"}
RAISED = {"output_type": "error", "ename": "ValueError", "evalue": "x", "traceback": ["x"]}

# What an edit leaves: all points but those of NAME (the exercise) or of quiz_1.
FULL: dict[str, Edit] = {
    "nothing at all": lambda one: None,
    # cells
    "merged with the next answer": merged_with_the_next,
    "all answers in one cell": all_in_one_cell,
    "answer below its check": moved(lambda one: one.at(f"check_{one.name}") + 1),
    "answer at the end": moved(lambda one: len(one.cells)),
    "answer above the imports": moved(lambda one: 0),
    "exercises upside down": upside_down,
    "all cells twice": lambda one: one.cells.extend(copy.deepcopy(one.cells)),
    "check called twice": lambda one: one.check.update(source=one.check["source"] + "\n" + one.check["source"]),
    "check in the answer cell": answer(lambda source, name: f"{source}\n\ncheck({name})"),
    "check cell a text": lambda one: one.check.update(cell_type="markdown"),
    "answer cell raw": lambda one: one.answer.update(cell_type="raw"),
    "setup cell deleted": lambda one: one.drop("setup") and None,
    "import cell deleted": lambda one: one.cells.remove(one.imports),
    "no text cells": lambda one: one.notebook.update(cells=[c for c in one.cells if c["cell_type"] == "code"]),
    # the file
    "ids lost": every_cell(lambda cell: cell.pop("id", None)),
    "ids all the same": every_cell(lambda cell: cell.update(id="same")),
    "ids new": lambda one: [cell.update(id=f"new-{i}") for i, cell in enumerate(one.cells)] and None,
    "collapsed and tagged": every_cell(lambda cell: cell["metadata"].update(collapsed=True, tags=["x"], trusted=0)),
    "notebook format 3": format_3,
    "no kernel named": notebook(lambda whole: whole.update(metadata={})),
    "another kernel": notebook(lambda whole: whole["metadata"].update(kernelspec={"name": "conda-env-x-py"})),
    "state of widgets": notebook(lambda whole: whole["metadata"].update(widgets={"state": {"x": "y" * 10**6}})),
    "attachments": scratch("![x](attachment:x.png)", "markdown", attachments={"x.png": IMAGE}),
    "huge outputs": scratch("x = 1", outputs=[{**PASSED, "text": "x" * 10**6}] * 5),
    "outputs of another run": every_cell(
        lambda cell: cell["cell_type"] == "code" and cell.update(outputs=[PASSED], execution_count=99)
    ),
    "an error shown": scratch("1 / 0", outputs=[RAISED], execution_count=3),
    "a raw cell": scratch("def NAME(:", "raw"),
    "a cell of no kind": scratch("x", "sql"),
    # what stands beside the answers
    "a syntax error": scratch("def NAME(:\n    return"),
    "an exception": scratch("[][0]"),
    "exit": scratch("import sys\nsys.exit()"),
    "a debugger": scratch("%pdb on\n1 / 0"),
    "await": scratch("import asyncio\nawait asyncio.sleep(0)"),
    "a thread that stays": scratch(
        "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()"
    ),
    "a file written": scratch("open('notes.txt', 'w').write('x')"),
    "another folder": scratch("import os\nos.makedirs('deep', exist_ok=True)\nos.chdir('deep')"),
    "another folder by magic": scratch("%cd .."),
    "gradients of one's own": scratch("w = torch.ones(3, requires_grad=True)\n(w * w).sum().backward()"),
    "other names for modules": imported("import torch as th, numpy as np, torch.nn as nn2"),
    "inference mode": scratch("mode = torch.inference_mode()\nmode.__enter__()"),
    "anomalies": scratch("torch.autograd.set_detect_anomaly(True)"),
    "NumPy's errors": scratch("import numpy as np\nnp.seterr(all='raise')"),
    "no garbage collection": scratch("import gc\ngc.disable()\nimport sys\nsys.setrecursionlimit(500)"),
    "magics": scratch("%matplotlib inline\n%time x = 1\n!ls > /dev/null\nfiles = %ls\nx?"),
    "extensions": scratch("%load_ext autoreload\n%autoreload 2"),
    "a page": scratch("%%html\n<b>x</b>"),
    "a shell script": scratch("%%bash\necho x"),
    "a hidden cell": scratch("%%capture out\nprint('x')"),
    "a name space cleared first": imported("%reset -f"),
    "interrupted": scratch("raise KeyboardInterrupt"),
    "a name of the course taken": scratch("check = at_work = print"),
    "outputs cleared": scratch("from IPython.display import clear_output\nprint(1)\nclear_output()"),
    "Colab or not": imported(
        "import sys\nif 'google.colab' in sys.modules:\n    raise OSError\nsys.path.append('/content')"
    ),
    "settings by magic": scratch("%config InlineBackend.figure_format = 'retina'\n%xmode Verbose\n%who"),
    "called where it is shown": below("at_work(NAME)\ncheck(NAME)"),
    "debugged": scratch("[][0]\n\n%debug"),
    "a breakpoint": scratch("x = 1\nbreakpoint()\nx = 2"),
    "workers": scratch("from torch.utils.data import DataLoader\nfor one in DataLoader(range(8), num_workers=2): pass"),
    "small numbers flushed": scratch("torch.set_flush_denormal(True)"),
    "tensors shown otherwise": scratch("torch.Tensor.__repr__ = lambda self: 'a tensor'"),
    "prints into a file": scratch("import sys\nsys.stdout = open('log.txt', 'w')\nprint('x')"),
    "memory traced": scratch("import tracemalloc\ntracemalloc.start()"),
    # the answer as it is written
    "tabs": answer(tabs),
    "letters of all kinds": answer(lambda source, name: f"# √d_k für 學生 🙂\nβ = 'naïve'\n{source}"),
    "white space": answer(lambda source, name: "\n\n" + source.replace("\n", "  \n") + "\n\n\n   "),
    "no docstring": answer(without_docstring),
    "the stub above it": answer(lambda source, name: f"def {name}(*a):\n    raise NotImplementedError\n\n{source}"),
    "in an if": answer(lambda source, name: "if __name__ == '__main__':\n" + re.sub("(?m)^(?=.)", "    ", source)),
    "in a try": answer(
        lambda source, name: "try:\n" + re.sub("(?m)^(?=.)", "    ", source) + "\nexcept Exception:\n    raise"
    ),
    "an alias": answer(lambda source, name: f"{renamed(source, name, 'mine')}\n{name} = mine"),
    "an alias with a type": answer(lambda source, name: f"{renamed(source, name, 'mine')}\n{name}: object = mine"),
    "an alias among others": answer(lambda source, name: f"{renamed(source, name, 'mine')}\n{name}, other = mine, 3"),
    "in a with": answer(lambda source, name: "with torch.no_grad():\n" + re.sub("(?m)^(?=.)", "    ", source)),
    "tried out below it": answer(lambda source, name: f"{source}\nprint({name})\nhelp({name})"),
    "tried out wrongly": below("NAME(1, 2, 3, 4, 5, 6, 7, 8, 9)"),
    "a helper above": split_helper(lambda one: one.at(one.name)),
    "a helper below": split_helper(lambda one: one.at(one.name) + 1),
    "a helper at the end": split_helper(lambda one: len(one.cells)),
    "redefined below": below("def NAME(*inputs):\n    return None"),
    "a result of that name below": below("NAME = 3"),
    "deleted below": below("del NAME"),
    "something else above": scratch("NAME = 3"),
    # quizzes
    "a quiz in capitals": quiz(lambda choice: f'quiz_1 = " {choice.upper()} "  # I think'),
    "a quiz with a type": quiz(lambda choice: f"quiz_1: str = '{choice}'; print(quiz_1)"),
    "a quiz wrongly": quiz(lambda choice: f'quiz_1 = "{"b" if choice == "a" else "a"}"'),
}
COSTS_THE_ANSWER: dict[str, Edit] = {
    "answer deleted": lambda one: one.drop(one.name) and None,
    "answer commented out": answer(lambda source, name: re.sub("(?m)^", "# ", source)),
    "answer renamed": answer(lambda source, name: renamed(source, name, f"my_{name}")),
    "answer as text elsewhere": lambda one: (one.put(0, new(one.drop(one.name)[0]["source"], "markdown")), None)[1],
    "answer never ends": answer(lambda source, name: f"while True:\n    pass\n{source}"),
}
COSTS_QUIZ_1: dict[str, Edit] = {
    "a quiz unanswered": quiz(lambda choice: "quiz_1 = None"),
    "a quiz with a number": quiz(lambda choice: "quiz_1 = 2"),
}
EDITS = FULL | COSTS_THE_ANSWER | COSTS_QUIZ_1


# What is odd about a trained model, and what it leaves: all points but those of the measured answer.


def wrapped(body: str, above: str = "") -> Edit:
    """The answer is called `mine` and asked by another, of which this is the body."""
    return answer(lambda source, name: f"{renamed(source, name, 'mine')}\n{above}def {name}(inputs):\n    {body}")


def training(change: Callable[[str], str]) -> Edit:
    return lambda one: one.training.update(source=change(one.training["source"]))


def beside(change: Callable[[str, bytes], dict[str, bytes]]) -> Edit:
    """Other files beside the notebook; the change is told the name and the bytes of the kept numbers."""
    return lambda one: setattr(one, "files", change(*next(iter(one.files.items()))))


def given_cells_dropped(one: HandIn) -> None:
    for cell in [cell for cell in one.cells if cell["cell_type"] == "code" and not grade_id(cell)]:
        one.cells.remove(cell)


def model_renamed(one: HandIn) -> None:
    one.answer["source"] = renamed(one.answer["source"], "model", "net")
    one.put(one.at(one.name), new("net = model\ndel model"))


NUMBERS_OF_ANOTHER = numbers_as_bytes({"tokens.weight": torch.ones(3, 2)})
LOG = "with open('log.txt', 'a') as log:\n        log.write(str(inputs))\n    return mine(inputs)"
MEASURED: dict[str, Edit] = {
    "kept numbers": lambda one: None,
    "numbers under a browser's name": beside(
        lambda name, data: {name.replace(".safetensors", " (1).safetensors"): data}
    ),
    "numbers put aside too": beside(
        lambda name, data: {name: data, name.replace(".", ".before.", 1): NUMBERS_OF_ANOTHER}
    ),
    "numbers of another lesson too": beside(lambda name, data: {"a_model.safetensors": NUMBERS_OF_ANOTHER, name: data}),
    "training cell deleted": lambda one: one.cells.remove(one.training),
    "all of the lesson's cells deleted": given_cells_dropped,
    "training cell raises first": training(lambda source: f"[][0]\n{source}"),
    "training cell raises at its end": training(lambda source: f"{source}\n[][0]"),
    "training cell interrupted once": lambda one: one.put(
        one.cells.index(one.training), new("raise KeyboardInterrupt", outputs=[RAISED])
    ),
    "training cell twice": lambda one: one.put(one.cells.index(one.training), one.training),
    "model thrown away below": below("model = None"),
    "model made anew below": below("for number in model.parameters():\n    number.data.zero_()"),
    "model under another name": model_renamed,
    "a log": wrapped(LOG),
    "a log in an open file": wrapped(
        "print(inputs, file=log, flush=True)\n    return mine(inputs)", "log = open('log.txt', 'w')\n"
    ),
    "a text by its path": wrapped(
        "Path('log.txt').write_text(str(inputs))\n    return mine(inputs)", "from pathlib import Path\n"
    ),
    "gradients all the way": answer(lambda source, name: source.replace("torch.no_grad()", "torch.enable_grad()")),
    "a count of calls": wrapped("global calls\n    calls += 1\n    return mine(inputs)", "calls = 0\n"),
    "tried out below": below("NAME"),
}
MEASURED_COSTS: dict[str, Edit] = {  # the model is then trained for two steps
    "no numbers": beside(lambda name, data: {}),
    "numbers cut off": beside(lambda name, data: {name: data[:-100]}),
    "numbers of another lesson": beside(lambda name, data: {name: NUMBERS_OF_ANOTHER}),
    "a model that is not trained": training(lambda source: source.replace("checkpoint(", "(lambda model, *_: model)(")),
    "an answer that raises": wrapped("raise ValueError('no')"),
}


class Bench:
    """A judge of one lesson, with what submissions of it are made from."""

    def __init__(self, lesson: str, folder, seconds: float = 2.0):
        self.lesson, self.folder = lesson, folder
        self.judge = Judge(lesson, SEED, limits=replace(SMALL, memory_bytes=1 << 30, cell_seconds=seconds))
        self.release = read_release(ROOT / "notebooks" / lesson / f"{lesson}.ipynb")
        keys = self.judge.keys.values()
        self.judged = [key.name for key in keys if not key.metric]  # a measured one needs a training first
        self.exercises = [key.name for key in keys if key.kind == "exercise" and not key.metric]
        released = json.loads((ROOT / "notebooks" / lesson / f"{lesson}.ipynb").read_text(encoding="utf-8"))
        solved = json.loads((ROOT / "solutions" / lesson / f"{lesson}.ipynb").read_text(encoding="utf-8"))
        solutions = {grade_id(cell): _in_own_words(text(cell)) for cell in solved["cells"] if grade_id(cell)}
        cells, first, needed = [], True, self.needed([text(cell) for cell in released["cells"]], solutions)
        for cell in released["cells"]:
            name, cell["source"] = grade_id(cell), text(cell)
            if key := self.judge.keys.get(name):
                cell["source"] = solutions[name] if key.kind == "exercise" else f'{name} = "{key.correct}"'
            imports = first and not name and "import torch" in cell["source"] and cell["cell_type"] == "code"
            first = first and not imports
            if name or imports or cell["source"] in needed or cell["cell_type"] == "markdown" and len(cells) < 4:
                cells.append(cell)
        self.notebook = released | {"cells": cells}
        self.files: dict[str, bytes] = {}

    def needed(self, released: list[str], solutions: dict[str, str]) -> set[str]:
        """The lesson's own code that a submission of this bench holds, besides its first imports."""
        return set()

    def wrong(self, edit: str, exercise: str) -> str:
        """What the judge pays other than the edit deserves; "" where it is right."""
        one = HandIn(copy.deepcopy(self.notebook), exercise, files=self.files)
        (EDITS | MEASURED | MEASURED_COSTS)[edit](one)
        costs = edit in COSTS_THE_ANSWER or edit in MEASURED_COSTS
        lost = exercise if costs else "quiz_1" if edit in COSTS_QUIZ_1 else None
        place = self.folder / "submitted" / "ada" / self.lesson
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        for name, content in one.files.items():
            (place / name).write_bytes(content)
        (place / f"{self.lesson}.ipynb").write_bytes(json.dumps(one.notebook).encode())
        handed_in = read_submission(self.folder / "submitted", "ada", self.release, ROOT / "notebooks")
        files = read_files_beside(place, handed_in.code())[0]
        found = self.judge.judge_cells(judge_input(handed_in, self.release), self.judged, files)
        deserved = {name: 0.0 if name == lost else self.judge.keys[name].points for name in self.judged}
        paid = {name: verdict.points for name, verdict in found.verdicts.items()}
        if handed_in.problem or paid != deserved:
            told = {name: found.verdicts[name].message[:150] for name in paid if paid[name] != deserved[name]}
            return f"{self.lesson}, {exercise}, {edit}: {handed_in.problem or told} {handed_in.flags} {found.flags}"
        return ""


class MeasuredBench(Bench):
    """The same with the exercise whose answer is a trained model, trained beforehand. A submission that trains it
    again takes two steps."""

    def __init__(self, lesson: str, folder):
        super().__init__(lesson, folder, seconds=20.0)
        self.judged = [*self.judge.keys]
        self.exercises = [MEASURED_EXERCISE[lesson]]
        source = "\n".join(cell["source"] for cell in self.notebook["cells"])
        file = re.search(r'"(\w+\.safetensors)"', source)[1]
        self.files = {file: self.numbers(folder / file)}
        for cell in self.notebook["cells"]:
            for many, few in IN_HASTE.items():
                cell["source"] = cell["source"].replace(many, few)

    def needed(self, released, solutions):
        name = MEASURED_EXERCISE[self.lesson]
        names = TopLevel([*released, *solutions.values()]).closure(name)
        return {source for source in released if names & TopLevel([source]).uses.keys()}

    def numbers(self, path) -> bytes:
        """Lesson 11's are the course's own; others are trained as a learner would."""
        if self.lesson.startswith("11"):
            return numbers_as_bytes(dict(translator.state()))
        names: dict = {"__name__": "__main__"}
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("COURSE_KEEP_FOLDER", str(path.parent))
            patch.chdir(path.parent)
            for name in self.judge.keys:
                remember_passed(name, True)  # so that `or_finished` hands on the answers
            for cell in self.notebook["cells"]:
                if cell["cell_type"] == "code" and grade_id(cell) != "setup" and not self.is_check(cell):
                    exec(compile(cell["source"], "<cell>", "exec"), names)
        for name in self.judge.keys:
            remember_passed(name, False)
        return path.read_bytes()

    @staticmethod
    def is_check(cell) -> bool:
        return (grade_id(cell) or "").startswith("check_")


@pytest.fixture(scope="module")
def bench(request, tmp_path_factory) -> Iterator[Bench]:
    need_sandbox()
    lesson, kind = request.param if isinstance(request.param, tuple) else (request.param, Bench)
    made = kind(lesson, tmp_path_factory.mktemp("odd"))
    with made.judge:
        yield made


@pytest.mark.full
@pytest.mark.parametrize("bench", [*DRAWN, *((lesson, MeasuredBench) for lesson in DRAWN_MEASURED)], indirect=True)
def test_a_hand_in_with_one_odd_edit_is_paid_what_it_deserves(bench):
    if isinstance(bench, MeasuredBench):
        edits, many = sorted(MEASURED | MEASURED_COSTS), DRAWN_MEASURED[bench.lesson]
    else:  # the same numbers are drawn in each lesson: each has a part of the list
        edits, many = sorted(EDITS)[list(DRAWN).index(bench.lesson) :: len(DRAWN)], DRAWN[bench.lesson]

    @settings(max_examples=many, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(st.sampled_from(edits), st.sampled_from(bench.exercises))
    def drawn(edit, exercise):
        assert not bench.wrong(edit, exercise)

    drawn()


if WHOLE:

    @pytest.mark.timeout(3600)
    @pytest.mark.parametrize("bench", WHOLE, indirect=True)
    def test_every_edit_by_name(bench):
        wrong = [bench.wrong(edit, bench.exercises[i % len(bench.exercises)]) for i, edit in enumerate(EDITS)]
        assert not any(wrong), "\n".join(filter(None, wrong))

    @pytest.mark.timeout(3600)
    @pytest.mark.parametrize(
        "bench", [(name, MeasuredBench) for name in WHOLE if name in MEASURED_EXERCISE], indirect=True
    )
    def test_every_edit_of_a_trained_model_by_name(bench):
        edits = [*MEASURED, *MEASURED_COSTS, *EDITS]
        wrong = [bench.wrong(edit, bench.exercises[0]) for edit in edits]
        assert not any(wrong), "\n".join(filter(None, wrong))
