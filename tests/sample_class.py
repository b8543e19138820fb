"""A made-up class of thirty, with which `make grade` shows a teacher how grading works from beginning to end.

Its submissions consist of solutions and known mistakes, so that the right scores are known. Two students are late, and
one leaves after the first lesson.
"""

import argparse
import ast
import copy
import dataclasses
import inspect
import json
import os
import random
import re
import shutil
import sys
import textwrap
from dataclasses import dataclass, field
from pathlib import Path

from helpers.course import course
from helpers.errors import CourseError
from helpers.grading.batch import batch_seed
from helpers.grading.folders import ROOT, Folders, load, shown
from helpers.grading.lesson_release import read_release
from helpers.grading.pool import GradingStopped

STUDENTS = 30
SEED = 2017
MARKER = ".sample-class"
NAMES = (
    "Amara Okafor, Ben Åkesson, Chiara Rossi, Dmitri Volkov, Elif Yılmaz, Finn O'Brien, Grace Nakamura, Hugo "
    "van den Berg, Inês Carvalho, Jonas Weiß, Khadija El Amrani, Liam Murphy, Mei Lin, Noah Goldberg, Olga "
    "Petrova, Pedro Álvarez, Quynh Nguyen, Rania Haddad, Sven Lindqvist, Tomoko Sato, Uma Krishnan, Viktor "
    "Novák, Wanjiru Kamau, Xavier Dupont, Yara Mansour, Zoe Papadaki, Abel Tesfaye, Beatriz Lima, Cem Demir, "
    "Dagny Holm"
).split(", ")
DUE = "2026-11-03 12:00:00 UTC"
LATE = {"student-04": "2026-11-03 12:01:00 UTC", "student-11": "2026-11-04 15:30:00 UTC"}
DROPPED = "student-16"  # after the first lesson
WRITTEN = "The scores grow with the width, so the softmax would put nearly all of its weight on one key."


@dataclass
class Made:
    """A student of the sample class. deserves: exercise -> points, also bonus ones. odd: what is unusual."""

    student: str
    odd: str
    deserves: dict[str, float]
    mistakes: dict[str, str] = field(default_factory=dict)


# Imports that the edited source of a mistake may need.
IMPORTS = "import math\nimport torch\nimport torch.nn.functional as F\nfrom torch import nn\n\n"


class Lesson:
    """What the submissions of a lesson are made from: its release, solutions, keys and mistakes."""

    def __init__(self, folders: Folders, name: str):
        from helpers.checking.make_keys import wrong_answer
        from helpers.grading.reference import answer_key, blocks_module, fresh_keys

        self.name = name
        self.release = json.loads(folders.notebook(name).read_text(encoding="utf-8"))
        self.written = set(read_release(folders.notebook(name)).written)
        solved = json.loads(folders.executed(name).read_text(encoding="utf-8"))
        self.solutions = {grade_id(cell): _in_own_words(text(cell)) for cell in solved["cells"] if grade_id(cell)}
        self.keys = fresh_keys(course().lesson(name), batch_seed(folders, name))
        self.exercises = [name for name, key in self.keys.items() if key.kind == "exercise"]
        self.quizzes = [name for name, key in self.keys.items() if key.kind != "exercise"]
        self.functions, self.mistakes = {}, {}
        blocks = blocks_module(course().lesson(name))
        for exercise in answer_key(course().lesson(name)).values():
            self.mistakes[exercise.name] = {}
            reference = getattr(blocks, exercise.name, None)  # None for an answer that is measured
            for mistake in getattr(exercise, "mistakes", ()):
                if mistake.wrong is None:
                    continue
                if source := mistake_source(mistake, reference):
                    self.mistakes[exercise.name][mistake.name] = source
                    self.functions[exercise.name, mistake.name] = wrong_answer(mistake, reference)

    def deserved(self, exercise: str, mistake: str) -> float:
        """Return the points of a known mistake, on the inputs that the grader will draw.

        It is judged under another lesson's name, because the check refuses answers that call the lesson's own blocks.
        """
        from helpers.checking.messages import decide
        from helpers.checking.observe import observe_all

        key = self.keys[exercise]
        facts = dataclasses.replace(key.facts, lesson="99_test")
        return float(decide(key, observe_all(self.functions[exercise, mistake], key.cases, facts)).points)


def grade_id(cell: dict) -> str | None:
    return cell["metadata"].get("nbgrader", {}).get("grade_id")


def text(cell: dict) -> str:
    return cell["source"] if isinstance(cell["source"], str) else "".join(cell["source"])


def _in_own_words(source: str) -> str:
    """Return a solution with a new comment instead of its own, so that it differs from the published text."""
    plain = re.sub(r"(?m)  # .*$", "", source)
    return re.sub(r" *### BEGIN SOLUTION\n(.*)", r"\1  # mine", plain).replace("### END SOLUTION", "").rstrip()


def mistake_source(mistake, reference) -> str | None:
    """Return the source of a mistake for a student's answer cell, or None if it has no source of its own."""
    from helpers.checking.make_keys import edited

    return IMPORTS + edited(mistake, reference) if mistake.edits else as_answer(mistake.wrong, reference.__name__)


def as_answer(answer, name: str) -> str | None:
    """Return the source of a function or class of the answer key under the exercise's name, with the imports and
    helpers that it uses, or None if it has no source of its own."""
    if not (inspect.isfunction(answer) or inspect.isclass(answer)) or "<" in answer.__qualname__:
        return None
    module = ast.parse(Path(inspect.getsourcefile(answer)).read_text(encoding="utf-8"))
    defined = {}
    for node in module.body:
        defined |= dict.fromkeys(names_bound(node), node)
    if answer.__name__ not in defined:
        return None
    body = copy.deepcopy(defined[answer.__name__])
    needed, queue = [], [body]
    while queue:
        for used in {n.id for n in ast.walk(queue.pop()) if isinstance(n, ast.Name)} - {answer.__name__}:
            node = defined.get(used)
            if node is not None and node not in needed:
                needed.append(node)
                queue.append(node)
    for node in ast.walk(body):
        if isinstance(node, ast.Name) and node.id == answer.__name__:
            node.id = name
    body.name = name
    parts = [ast.unparse(node) for node in module.body if node in needed] + [ast.unparse(body)]
    return "\n\n".join(parts)


def names_bound(node: ast.stmt) -> list[str]:
    """Return the names that a definition, import or assignment binds."""
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return [node.name]
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return [(alias.asname or alias.name).split(".")[0] for alias in node.names]
    if isinstance(node, ast.Assign):
        names = [name for target in node.targets for name in ast.walk(target) if isinstance(name, ast.Name)]
        return [name.id for name in names if isinstance(name.ctx, ast.Store)]
    return []


def hand_in(folders: Folders, lesson: Lesson, student: str, answers: dict[str, str], edit=None, encoding="utf-8"):
    """Submit a student's notebook: the release with `answers` in its answer cells. edit: changes the list of cells."""
    notebook = copy.deepcopy(lesson.release)
    for cell in notebook["cells"]:
        if grade_id(cell) in answers:
            cell["source"] = answers[grade_id(cell)]
    if edit:
        notebook["cells"] = edit(notebook["cells"])
    folder = folders.submitted / student / lesson.name
    folder.mkdir(parents=True, exist_ok=True)
    content = json.dumps(notebook, ensure_ascii=False).encode(encoding, "replace")
    (folder / f"{lesson.name}.ipynb").write_bytes(content)


def hand_in_unreadable(folders: Folders, lesson: str, student: str, content: str = "{") -> None:
    """Submit a broken notebook file."""
    folder = folders.submitted / student / lesson
    folder.mkdir(parents=True)
    (folder / f"{lesson}.ipynb").write_text(content)


def make_class(folders: Folders, lesson: Lesson, size: int = STUDENTS) -> list[Made]:
    """Submit notebooks for `size` students: right ones, ones with known mistakes, unfinished and odd ones."""
    generator = random.Random(SEED)
    made = []
    odd = dict(zip(range(size - len(ODD), size), ODD, strict=True)) if size > len(ODD) else {}
    for number in range(size):
        student = f"student-{number + 1:02d}"
        answers = {name: lesson.solutions[name] for name in lesson.exercises}
        for name in lesson.quizzes:  # any valid answer to a quiz earns its points
            answers[name] = f"{name} = {generator.choice(sorted(lesson.keys[name].explanations))!r}"
        answers |= dict.fromkeys(lesson.written, WRITTEN)
        names = [*lesson.exercises, *lesson.quizzes]
        one = Made(student, "", {name: float(lesson.keys[name].points) for name in names})
        edit, encoding = None, "utf-8"
        if number in odd:
            one.odd, change = odd[number]
            edit, encoding = change(lesson, generator, answers, one) or (None, "utf-8")
        elif number >= size // 4:
            _make_mistakes(lesson, generator, answers, one)
        if number % 7 == 6 and not one.odd:
            _leave_unfinished(lesson, generator, answers, one)
        hand_in(folders, lesson, student, answers, edit, encoding)
        made.append(one)
    return made


def enroll(folders: Folders, **names: str) -> None:
    """Put students into the gradebook as a roster does: id="First Last"."""
    from helpers.grading.nbgrader_insides import open_gradebook

    with open_gradebook(folders) as gradebook:
        for student, name in names.items():
            first, last = name.split(" ", 1)
            gradebook.update_or_create_student(student, first_name=first, last_name=last)


def hurry(folders: Folders, lesson: str, first: bool) -> None:
    """Set a due date that some students miss."""
    from helpers.grading.nbgrader_insides import open_gradebook

    with open_gradebook(folders) as gradebook:
        gradebook.update_or_create_assignment(lesson, duedate=DUE)
    for student, time in LATE.items():
        if (home := folders.submitted / student / lesson).is_dir():
            (home / "timestamp.txt").write_text(time)
    if not first:
        shutil.rmtree(folders.submitted / DROPPED / lesson, ignore_errors=True)


def _make_mistakes(lesson: Lesson, generator, answers: dict, one: Made) -> None:
    able = [name for name in lesson.exercises if lesson.mistakes[name]]
    for exercise in generator.sample(able, min(len(able), generator.choice((1, 1, 2, 3)))):
        mistake = sorted(lesson.mistakes[exercise])[int(len(lesson.mistakes[exercise]) * generator.random() ** 2)]
        answers[exercise] = lesson.mistakes[exercise][mistake]
        one.mistakes[exercise] = mistake
        one.deserves[exercise] = lesson.deserved(exercise, mistake)


def _blank(answers: dict, one: Made, names: list[str]) -> None:
    for name in names:
        answers.pop(name)
        one.mistakes.pop(name, None)
        one.deserves[name] = 0.0


def _leave_unfinished(lesson: Lesson, generator, answers: dict, one: Made) -> None:
    first = generator.randrange(1, len(lesson.exercises))
    _blank(answers, one, lesson.exercises[first:])


def _all_blank(lesson, generator, answers, one):
    _blank(answers, one, [*lesson.exercises, *lesson.quizzes])
    answers.clear()


def _syntax_error(lesson, generator, answers, one):
    name = lesson.exercises[0]
    answers[name] += "\n)"
    one.deserves[name] = 0.0


def _endless_loop(lesson, generator, answers, one):
    name = lesson.exercises[-1]
    answers[name] = "while True:\n    pass\n" + answers[name]
    one.deserves[name] = 0.0


def _no_checks(lesson, generator, answers, one):
    def edit(cells):
        return [cell for cell in cells if not (grade_id(cell) or "").startswith("check_")]

    return edit, "utf-8"


def _copied_answer(lesson, generator, answers, one):
    """A copied answer cell: the first copy is wrong, and the last definition counts."""
    name = lesson.exercises[0]

    def edit(cells):
        index = next(i for i, cell in enumerate(cells) if grade_id(cell) == name)
        first = copy.deepcopy(cells[index]) | {"source": f"def {name}(*inputs):\n    return None", "id": "first-try"}
        return [*cells[:index], first, *cells[index:]]

    return edit, "utf-8"


def _old_encoding(lesson, generator, answers, one):
    name = lesson.exercises[0]
    answers[name] += "\n# une réponse déjà vérifiée"
    return (lambda cells: [_without_wide_letters(cell) for cell in cells]), "latin-1"


def _without_wide_letters(cell: dict) -> dict:
    return cell | {"source": text(cell).encode("latin-1", "replace").decode("latin-1")}


def _raises(lesson, generator, answers, one):
    name = lesson.exercises[0]
    answers[name] = f"def {name}(*inputs):\n    raise ValueError('I am stuck here')"
    one.deserves[name] = 0.0


def _warns(lesson, generator, answers, one):
    for name in lesson.exercises:
        answers[name] = f"import warnings\nwarnings.warn('nothing is wrong with {name}')\n" + answers[name]


# Unusual submissions of honest students, one student each.
ODD = [
    ("blank", _all_blank),
    ("a syntax error", _syntax_error),
    ("an endless loop", _endless_loop),
    ("check cells deleted", _no_checks),
    ("an answer cell copied", _copied_answer),
    ("Latin-1", _old_encoding),
    ("raises", _raises),
    ("warnings on stderr", _warns),
]


def prepare(gradebook: Path) -> Folders:
    """Return an empty folder for the sample class; raise GradingStopped if something else is in it."""
    gradebook = gradebook.resolve()
    if gradebook.exists() and any(gradebook.iterdir()):
        if not (gradebook / MARKER).is_file():
            raise GradingStopped(
                f"{shown(gradebook)} is not a sample class; nothing was changed. Choose another folder."
            )
        shutil.rmtree(gradebook)
    gradebook.mkdir(parents=True, exist_ok=True)
    (gradebook / MARKER).write_text("Made by `make grade`; removed when it runs again.\n")
    return load(gradebook)[0]


def main(argv: list[str] | None = None) -> int:
    """Make the class, grade it, write feedback and report, and print where they are."""
    parser = argparse.ArgumentParser(prog="make grade", description=__doc__.splitlines()[0])
    parser.add_argument("lesson", nargs="*", default=["03_query_key", "04_scaling"])
    parser.add_argument("--folder", type=Path, default=ROOT / "gradebook" / "sample")
    parser.add_argument("--students", type=int, default=STUDENTS)
    parser.add_argument("--cell-seconds", default="20", help="time limit of a cell; one student has an endless loop")
    parser.add_argument("--unsafe", action="store_true", help="grade without a sandbox, if bubblewrap is missing")
    args = parser.parse_args(argv)
    from helpers.grading import grade

    try:
        folders = prepare(args.folder)
        lessons = [course().lesson(name).name for name in args.lesson]
        enroll(folders, **{f"student-{number:02d}": name for number, name in enumerate(NAMES, 1)})
        for name in lessons:
            made = make_class(folders, Lesson(folders, name), args.students)
            hurry(folders, name, first=name == lessons[0])
            made = [one for one in made if (folders.submitted / one.student / name).is_dir()]
            print(f"{name}: a sample class of {len(made)} in {shown(folders.submitted)}")
            choices = ["--gradebook", str(folders.gradebook), "--feedback"]
            choices += ["--cell-seconds", args.cell_seconds, *(["--unsafe"] if args.unsafe else [])]
            chosen = argparse.ArgumentParser()
            grade.add_arguments(chosen)
            _, config = load(folders.gradebook)
            results = grade.grade_and_print(folders, config, chosen.parse_args([name, *choices]))
            _tell_differences(made, results)
    except CourseError as stopped:
        print(stopped, file=sys.stderr)
        return 2
    where = os.path.relpath(folders.gradebook, ROOT)
    print(
        textwrap.dedent(f"""
        Look around:
          all lessons      course report --gradebook {where}
          feedback pages   {shown(folders.feedback)}/student-01/{lessons[0]}/{lessons[0]}.html
          Formgrader       COURSE_GRADEBOOK={where} jupyter lab, then Nbgrader > Formgrader
    """).rstrip()
    )
    return 0


def differences(made: list[Made], results) -> list[str]:
    """Return a line for each score that differs from what the student deserves."""
    found = {result.student: {**result.points, **result.bonus} for result in results}
    wrong = []
    for one in made:
        for exercise, points in one.deserves.items():
            got = found[one.student].get(exercise, -1.0)
            if abs(got - points) > 1e-9:
                wrong.append(f"{one.student} ({one.odd or 'ordinary'}): {exercise} got {got:g}, deserves {points:g}")
    return wrong


def _tell_differences(made: list[Made], results) -> None:
    wrong = differences(made, results)
    print(f"  {len(made) * len(made[0].deserves)} scores, {len(wrong) or 'none'} other than deserved")
    for line in wrong:
        print("    " + line)


if __name__ == "__main__":
    sys.exit(main())
