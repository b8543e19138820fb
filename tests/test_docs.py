"""The README and the guides are right: their links, commands, minutes, measurements and example lesson."""

import re
import shlex
import subprocess
import sys

import pytest

from helpers.__main__ import build_parser
from helpers.course import course
from tests.conftest import ROOT
from tests.small_course import make_small_course, run_command, said_by_ruff

PAGES = [
    "README.md",
    "CONTRIBUTING.md",
    *(f"docs/{name}.md" for name in "architecture authoring running teaching".split()),
]


def read(page):
    return (ROOT / page).read_text("utf-8")


@pytest.mark.parametrize("page", PAGES)
def test_linked_files_exist(page):
    targets = re.findall(r"\]\((?!https?:)([^)#]+)\)", read(page), re.DOTALL)
    assert all(((ROOT / page).parent / target).exists() for target in targets), targets


def test_files_linked_in_lessons_exist():
    for lesson in course().lessons:
        found = re.findall(r"\]\((\.\.?/[^)#\s]+)", read(f"solutions/{lesson.name}/{lesson.name}.py"))
        lost = [link for link in found if not (ROOT / "notebooks" / lesson.name / link).exists()]
        assert lost == [], lesson.name


def test_numbered_exercises_and_quizzes_exist():
    pages = [f"solutions/{lesson.name}/{lesson.name}.py" for lesson in course().lessons]
    exist = {
        (kind, n) for page in pages for kind, n in re.findall(r"^# ### (\w+) (\d+\.\d+)", read(page), re.MULTILINE)
    }
    numbers = re.compile(r"\b(exercise|quiz)(?:zes|s)?\s(\d+\.\d+(?:(?:, | and | to | or )\d+\.\d+)*)", re.IGNORECASE)
    for page in [*pages, "README.md", "docs/sources.md", "docs/teaching.md"]:
        found = numbers.findall(re.sub(r"\n(?:# ?)?", " ", read(page)))
        named = {(kind.capitalize(), n) for kind, several in found for n in re.findall(r"\d+\.\d+", several)}
        assert named <= exist, (page, named - exist)


@pytest.mark.parametrize("page", PAGES)
def test_mentioned_commands_exist(page):
    helped = subprocess.run(
        [sys.executable, "-m", "helpers", "--help"], cwd=ROOT, capture_output=True, text=True
    ).stdout
    known = set(re.findall(r"^    ([a-z]+) ", helped, re.MULTILINE))
    rules = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    mentioned = re.findall(r"(?:`|^)(course|make) ([a-z-]+)", read(page), re.MULTILINE)
    assert mentioned
    for program, command in mentioned:
        assert command in (known if program == "course" else rules), f"{program} {command}"


@pytest.mark.parametrize("page", PAGES)
def test_shown_commands_can_be_parsed(page):
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", read(page), re.MULTILINE | re.DOTALL)
    blocks = "\n".join(text for language, text in blocks if not language)
    for line in re.findall(r"^course (.+)$", blocks, re.MULTILINE):
        words = shlex.split(line, comments=True)
        build_parser(words[0]).parse_args(words)  # exits if a word is unknown


def test_the_table_of_lessons_agrees_with_course_toml():
    rows = re.findall(
        r"^\| \[(\d\d)\]\(notebooks/(\S+)/\S+\.ipynb\)(?: \[!\S+ \S+ \S+)? \| .+ \| (\d+) \|$",
        read("README.md"),
        re.MULTILINE,
    )
    assert rows == [(lesson.number, lesson.name, str(lesson.minutes)) for lesson in course().lessons]


def test_costs_of_bugs_in_the_docs_are_those_of_the_lessons():
    rows = re.findall(r"^\| .+ \(lesson (\d)\) \| ([\d.]+) \| (\d+) \|$", read("docs/measurements.md"), re.MULTILINE)
    assert len(rows) == 4
    texts = {lesson.number: lesson.name for lesson in course().lessons}
    for number, nats, share in rows:
        name = texts[f"0{number}"]
        found = re.search(rf"[^\d.]{re.escape(nats)}\b[^|]*(?:\| (\d+) )?", read(f"solutions/{name}/{name}.py"))
        shown = f"{nats} nats per word on 200 unseen sentences" in read(f"solutions/{name}/{name}.ipynb")
        assert found and found[1] in (share, None) or shown, (number, nats)


def test_the_example_lesson_of_the_guide_builds_and_passes_lint(tmp_path):
    lesson, key = re.findall(r"```python\n(.*?)```", read("docs/authoring.md"), re.DOTALL)[:2]
    assert said_by_ruff("solutions/04_tiny/04_tiny.py", lesson) == ""
    assert said_by_ruff("solutions/04_tiny/answer_key.py", key) == ""
    root = make_small_course(tmp_path / "course")
    folder = root / "solutions" / "04_tiny"
    (folder / "04_tiny.py").write_text(lesson, "utf-8")
    (folder / "answer_key.py").write_text(key, "utf-8")
    toml = root / "course.toml"
    toml.write_text(toml.read_text("utf-8").split("[lesson.bonus]")[0], "utf-8")
    result = run_command(root, "build", "--no-run")
    assert result.returncode == 0, result.stderr
    assert "raise NotImplementedError" in (root / "notebooks/04_tiny/04_tiny.ipynb").read_text("utf-8")


def test_files_to_copy_use_existing_commands_and_files():
    """The workflows and the container file of docs/ use existing commands and files."""
    helped = subprocess.run(
        [sys.executable, "-m", "helpers", "grade", "--help"], cwd=ROOT, capture_output=True, text=True
    ).stdout
    workflow = read("docs/github-classroom.yml")
    assert "- run: course grade --ci " in workflow and "--ci FILE.ipynb" in helped
    assert "install --yes bubblewrap" in workflow and "-c requirements.lock" in workflow and "--unsafe" not in workflow
    container = read("docs/Containerfile")
    copied = [name for line in container.splitlines() if line.startswith("COPY") for name in line.split()[1:-1]]
    assert copied and all((ROOT / name).exists() for name in copied)
    assert "bubblewrap" in container and "requirements.lock" in container
    publishing = read("docs/github-pages.yml")
    assert "- run: make book" in publishing and "path: build/book/site" in publishing
    for page in ("github-classroom.yml", "github-pages.yml", "Containerfile"):
        assert f"]({page})" in read("docs/teaching.md"), page
