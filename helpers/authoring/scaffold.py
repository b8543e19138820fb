"""`course new LESSON [EXERCISE]`: a lesson, or an exercise of one, that builds at once and waits to be rewritten."""

import argparse
import re
from pathlib import Path

from helpers.course import Course, CourseError, Lesson, course

LESSON = re.compile(r"\d\d_[a-z]\w*")
EXERCISE = re.compile(r"[A-Za-z]\w*")

HEAD = """\
# %% [markdown]
# # {number}. {title}

# %% tags=["setup"]
# (empty: the build puts the set-up cell here)

# %%
import torch
from helpers import check
"""
SECTION = '''\
# %% [markdown]
# ### Exercise {number}.{k} `{name}`
#
# {extra}Difficulty 1 of 5 · Importance 3 of 5 · 5 minutes · {worth}
#
# What it is for, and what it shall return.


# %% nbgrader={{"solution": "{name}"}}
def {name}(x):
    """x (..., n) -> (..., n), the same dtype: twice x."""
    ### BEGIN SOLUTION
    return 2 * x  # (..., n)
    ### END SOLUTION


# %% nbgrader={{"grade": "{name}"}}
check({name})

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# Where should one look?
# </details>
# <details><summary>Hint 2</summary>
#
# What is the next step, in other words?
# </details>
'''
END = """\
# %% [markdown]
# ### Quiz {number}.1
#
# A question.
#
# - **a** one answer
# - **b** another

# %% nbgrader={{"solution": "quiz_1"}}
quiz_1 = None  # "a" or "b"
### BEGIN SOLUTION
quiz_1 = "b"
### END SOLUTION

# %% nbgrader={{"grade": "quiz_1"}}
check(quiz_1=quiz_1)

# %% [markdown]
# ## In your words
#
# A question that a person grades.

# %% [markdown] nbgrader={{"written": "written_1"}}
# The model answer and the marking scheme.
"""
KEY = '''

def cases_{name}(draw):
    return tensor_cases(lambda dtype, *lead: (draw.normal(*lead, 5, dtype=dtype),))


exercises.append(
    Exercise("{name}", cases_{name}).with_mistakes("""
        squared: squared instead of doubled
            2 * x -> x**2
            What does it make of 3?
    """)
)
'''
IMPORT = "from helpers.checking.vocabulary import "
NEW_KEY = '''\
from helpers.checking.vocabulary import Exercise, listed_quizzes, tensor_cases

exercises = []
quizzes = listed_quizzes("""
    quiz_1: b
        a: Why a is wrong.
        b: Why b is right.
""")
'''
TABLE = """
[[lesson]]
name = "{lesson}"
title = "{title}"
minutes = 15
[lesson.points]
{name} = 80
quiz_1 = 5
written_1 = 15
"""
VARIANTS = (
    '"""Other right answers to the exercises of {lesson}, in as many styles as people have."""\n\nVARIANTS = {{}}\n'
)
TEST = '''"""What lesson {lesson} says of numbers, tested."""

from helpers.course import course


def test_the_lesson_has_a_hundred_points():
    assert sum(course().lesson("{lesson}").points.values()) == 100
'''


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("lesson", metavar="LESSON", help="a new one, such as 15_pooling, or one that is there")
    parser.add_argument("exercise", metavar="EXERCISE", nargs="?", help="the name of a new exercise of it")


def run(args: argparse.Namespace) -> int:
    """Write the files, and name each. CourseError, with nothing written, where a name does not do."""
    home = course()
    known = next((item for item in home.lessons if args.lesson in (item.name, item.number)), None)
    written = _new_exercise(home, known, args.exercise) if known else _new_lesson(home, args.lesson, args.exercise)
    for path in written:
        print(path.relative_to(home.root).as_posix())
    lesson, exercise = known.name if known else args.lesson, args.exercise or args.lesson[3:]
    print(f"Rewrite what these hold, and list three other right answers in tests/accepted_variants/{lesson[3:]}.py.")
    print(f"Then: course build {lesson} && pytest tests/test_mutation_score.py -k {lesson}-{exercise}")
    return 0


def _new_lesson(home: Course, lesson: str, exercise: str | None) -> list[Path]:
    if not LESSON.fullmatch(lesson) or any(item.number == lesson[:2] for item in home.lessons):
        rule = "A new lesson is called by a free number and a topic, as 15_pooling is"
        raise CourseError(f"{rule}; {lesson} does not do.")
    topic, name = lesson[3:], exercise or lesson[3:]
    _require_name(home, name)
    facts = {"lesson": lesson, "title": topic.replace("_", " ").capitalize(), "number": int(lesson[:2]), "name": name}
    section = SECTION.format(**facts, k=1, extra="", worth="80 points")
    folder = home.root / "solutions" / lesson
    files = {
        folder / f"{lesson}.py": "\n".join([HEAD.format(**facts), section, END.format(**facts)]),
        folder / "answer_key.py": NEW_KEY + KEY.format(name=name),
        home.root / "helpers" / "lessons" / topic / "__init__.py": "",
        home.root / "tests" / "accepted_variants" / f"{topic}.py": VARIANTS.format(**facts),
        home.root / "tests" / "lessons" / f"test_{topic}.py": TEST.format(**facts),
    }
    if existing := [path for path in files if path.exists()]:
        raise CourseError(f"{existing[0].relative_to(home.root)} is there already, so nothing was written.")
    toml = home.root / "course.toml"
    return _write({**files, toml: toml.read_text("utf-8").rstrip("\n") + "\n" + TABLE.format(**facts)})


def _new_exercise(home: Course, lesson: Lesson, name: str | None) -> list[Path]:
    """A bonus exercise, as the points of the others are a hundred: below the last one, with its key and points."""
    if name is None:
        usage = f"course new {lesson.name} EXERCISE"
        raise CourseError(f"{lesson.name} is there already. Name a new exercise of it: {usage}")
    _require_name(home, name)
    folder, toml = home.root / "solutions" / lesson.name, home.root / "course.toml"
    try:
        text = (folder / f"{lesson.name}.py").read_text("utf-8")
        key = (folder / "answer_key.py").read_text("utf-8")
    except OSError as error:
        raise CourseError(f"{error.filename} cannot be read ({error.strerror}), so nothing was written.") from None
    if lacking := [word for word in ("Exercise", "tensor_cases") if not re.search(rf"\b{word}\b", key)]:
        key = key.replace(IMPORT, f"{IMPORT}{', '.join(lacking)}\n{IMPORT}", 1)
    sections = list(re.finditer(r"^# %% \[markdown\]\n(?:#\n)*# ##+ (.*)$", text, re.MULTILINE))
    exercises = [number for number, heading in enumerate(sections) if heading[1].startswith("Exercise ")]
    after = sections[exercises[-1] + 1 :] if exercises else []
    place = after[0].start() if after else len(text)
    number, k = int(lesson.number), len(exercises) + 1
    section = SECTION.format(number=number, k=k, name=name, extra="**Extra** · ", worth="5 bonus points")
    before = text[:place].rstrip("\n") + "\n\n"
    tables = re.split(r"(?m)^(?=\[\[lesson\]\])", toml.read_text("utf-8"))
    mine = next(index for index, table in enumerate(tables) if f'name = "{lesson.name}"\n' in table)
    table = tables[mine].rstrip("\n")
    tables[mine] = table + ("" if "[lesson.bonus]" in table else "\n[lesson.bonus]") + f"\n{name} = 5\n\n"
    files = {
        folder / f"{lesson.name}.py": f"{before}{section}\n{text[place:]}",
        folder / "answer_key.py": key.rstrip("\n") + "\n" + KEY.format(name=name),
        toml: "".join(tables).rstrip("\n") + "\n",
    }
    return _write(files)


def _require_name(home: Course, name: str) -> None:
    if not EXERCISE.fullmatch(name) or name.startswith(("quiz_", "written_", "check_")):
        raise CourseError(f"{name!r} is no name for an exercise: a Python name that begins with none of our own words.")
    for lesson in home.lessons:
        if name in {**lesson.points, **lesson.bonus}:
            raise CourseError(f"{lesson.name} has an exercise {name} already. Names are unique in the course.")


def _write(files: dict[Path, str]) -> list[Path]:
    for path, content in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8", newline="\n")
    return list(files)
