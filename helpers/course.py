"""The course as course.toml describes it: its repository, its lessons in order, and their points."""

import importlib.util
import sys
import tomllib
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import ModuleType

from helpers.errors import CourseError


@dataclass(frozen=True)
class Lesson:
    """One lesson. points: of core exercises, quizzes and the written question, 100 in total. bonus: points on top.

    seconds, cell_seconds: how long a submission, and one of its cells, may run in the grader.
    """

    name: str
    title: str
    minutes: int
    points: dict[str, float] = field(default_factory=dict)
    bonus: dict[str, float] = field(default_factory=dict)
    seconds: float = 300.0
    cell_seconds: float = 60.0

    @property
    def number(self) -> str:
        """The two digits that the name starts with, such as "04"."""
        return self.name[:2]

    @property
    def topic(self) -> str:
        """The rest of the name, such as "scaling", which is also the name of the package helpers/lessons/TOPIC."""
        return self.name[3:]


@dataclass(frozen=True)
class Course:
    """The course. root: the folder that contains `helpers`, notebooks and solutions."""

    root: Path
    owner: str
    repository: str
    tag: str
    lessons: tuple[Lesson, ...]
    timezone: str = ""  # for due dates; if empty, the computer's time zone

    @property
    def url(self) -> str:
        """The address of the course's repository; "" if course.toml names none."""
        return f"https://github.com/{self.owner}/{self.repository}" if self.owner and self.repository else ""

    def lesson(self, name: str) -> Lesson:
        """The lesson with this name or number ("04", "4"). Raises CourseError, which lists the lessons, if none has."""
        for lesson in self.lessons:
            if name in (lesson.name, lesson.number, lesson.number.removeprefix("0")):
                return lesson
        names = ", ".join(lesson.name for lesson in self.lessons)
        raise CourseError(f"There is no lesson {name!r}. The lessons are: {names}.")


def load_source(path: Path, name: str) -> ModuleType:
    """Run the Python file at `path` as a new module `name`. Raises whatever the file raises."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None  # true for any path that ends in .py
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@cache
def course() -> Course:
    """The course that this `helpers` belongs to. Raises CourseError if course.toml is missing or invalid."""
    package = Path(__file__).resolve().parent
    candidates = [package.parent / "course.toml", package / "course.toml"]  # the second one in an installed package
    path = next((candidate for candidate in candidates if candidate.is_file()), None)
    if path is None:
        raise CourseError(f"course.toml is missing from {package.parent}. Copy it from the course's repository.")
    return read(path, package.parent)


def read(path: Path, root: Path) -> Course:
    """The course that the file at `path` describes. Raises CourseError, which says what is wrong with the file."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
        lessons = []
        for table in data.get("lesson", []):
            seconds = {name: float(table[name]) for name in ("seconds", "cell_seconds") if name in table}
            points, bonus = dict(table.get("points", {})), dict(table.get("bonus", {}))
            lessons.append(Lesson(table["name"], table["title"], int(table["minutes"]), points, bonus, **seconds))
        zone = str(data.get("timezone", ""))
        return Course(root, data["owner"], data["repository"], data["tag"], tuple(lessons), zone)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise CourseError(f"{path} is not valid TOML: {error}.") from None
    except KeyError as error:
        raise CourseError(f"{path} lacks {error.args[0]!r}.") from None
