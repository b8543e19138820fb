"""`course new LESSON EXERCISE`: add a bonus exercise to a lesson, which builds at once and is meant to be rewritten."""

import argparse
import re
from pathlib import Path

from helpers.course import Course, CourseError, Lesson, course

EXERCISE = re.compile(r"(?!quiz_|written_|check_)[A-Za-z]\w*")

SECTION = '''\
# %% [markdown]
# ### Exercise {number}.{k} `{name}`
#
# **Extra** · Difficulty 1 of 5 · Importance 3 of 5 · 5 minutes · 5 bonus points
#
# What the exercise is for, and what the function returns.


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
# Which operation do you need?
# </details>
# <details><summary>Hint 2</summary>
#
# Which function does that?
# </details>
'''
KEY = '''

def cases_{name}(draw):
    return tensor_cases(lambda dtype, *lead: (draw.normal(*lead, 5, dtype=dtype),))


exercises.append(
    Exercise("{name}", cases_{name}).with_mistakes("""
        squared: squared instead of doubled
            2 * x -> x**2
            What does your function return for 3?
    """)
)
'''
IMPORT = "from helpers.checking.vocabulary import "


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("lesson", metavar="LESSON", help="such as 04_scaling")
    parser.add_argument("exercise", metavar="EXERCISE", help="the name of the new exercise")


def run(args: argparse.Namespace) -> int:
    """Write the exercise, and print each file's name. Raises CourseError if a name is not allowed."""
    home = course()
    lesson, name = home.lesson(args.lesson), args.exercise
    if not EXERCISE.fullmatch(name):
        rule = "Use a Python name that does not begin with quiz_, written_ or check_."
        raise CourseError(f"{name!r} cannot name an exercise. {rule}")
    for other in home.lessons:
        if name in {**other.points, **other.bonus}:
            raise CourseError(f"{other.name} has an exercise {name} already. Names are unique in the course.")
    for path, content in _with_exercise(home, lesson, name).items():
        path.write_text(content, encoding="utf-8", newline="\n")
        print(path.relative_to(home.root).as_posix())
    print(f"Rewrite these, and add three other correct answers to tests/accepted_variants/{lesson.topic}.py.")
    print(f"Then: course build {lesson.name} && pytest tests/test_mutation_score.py -k {lesson.name}-{name}")
    return 0


def _with_exercise(home: Course, lesson: Lesson, name: str) -> dict[Path, str]:
    """Add the exercise to text, key and course.toml, as a bonus, because the other points must stay 100 in total."""
    folder, toml = home.root / "solutions" / lesson.name, home.root / "course.toml"
    paths = folder / f"{lesson.name}.py", folder / "answer_key.py", toml
    try:
        text, key, tables = (path.read_text("utf-8") for path in paths)
    except OSError as error:
        raise CourseError(f"{error.filename} cannot be read ({error.strerror}), so nothing was written.") from None
    if missing := [word for word in ("Exercise", "tensor_cases") if not re.search(rf"\b{word}\b", key)]:
        key = key.replace(IMPORT, f"{IMPORT}{', '.join(missing)}\n{IMPORT}", 1)
    sections = list(re.finditer(r"^# %% \[markdown\]\n(?:#\n)*# ##+ (.*)$", text, re.MULTILINE))
    exercises = [number for number, heading in enumerate(sections) if heading[1].startswith("Exercise ")]
    after = sections[exercises[-1] + 1 :] if exercises else []
    position = after[0].start() if after else len(text)
    section = SECTION.format(number=int(lesson.number), k=len(exercises) + 1, name=name)
    pattern = rf'(^name = "{lesson.name}"\n(?:(?!\[\[lesson).*\n)*)'
    before, table, rest = re.split(pattern, tables, maxsplit=1, flags=re.MULTILINE)
    table = table.rstrip("\n") + ("" if "[lesson.bonus]" in table else "\n[lesson.bonus]") + f"\n{name} = 5\n\n"
    texts = f"{text[:position].rstrip()}\n\n{section}\n{text[position:]}", f"{key.rstrip()}\n{KEY.format(name=name)}"
    return dict(zip(paths, (*texts, (before + table + rest).rstrip("\n") + "\n"), strict=True))
