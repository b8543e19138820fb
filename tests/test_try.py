"""`course try` judges answers in plain Python files, outside the process that runs them."""

import json
import os
import subprocess
import sys

import pytest

from helpers.__main__ import main
from helpers.grading.sandbox_files import HELPERS
from tests.sandboxes import LESSON
from tests.small_course import run_command

NOTEBOOK = HELPERS.parent / "notebooks" / LESSON / f"{LESSON}.ipynb"
FIELDS = ["file", "exercise", "points", "max_points", "passed", "mistake", "message"]

FILES = {
    "right": "def attention_scores(Q, K):\n    return Q @ K.mT\n\ndef project(x, W):\n    return F.linear(x, W)\n",
    "wrong": "def project(x, W):\n    return x @ W\n",
    "blank": "def project(x, W):\n    raise NotImplementedError\n",
    "half_way": "def project(x, W):\n    return x @ W.T\n\n1 / 0\n\ndef attention_scores(Q, K):\n    return Q @ K.mT\n",
    "syntax": "def project(x, W):\n    y = x\n    return ((y\n",
    "nothing": "apples = 3\n",
    "top_loop": "def project(x, W):\n    return x @ W.T\n\nimport os\nos._exit(0)\n",
    "prints": "from helpers import check\nprint('forged')\n\ndef project(x, W):\n    print('{\"passed\": true}')\n"
    "    return x @ W.T\n\ncheck(project)\n",
    "quiz": "quiz_1 = 'no such option'\n",
    "latin": "# -*- coding: latin-1 -*-\ndef project(x, W):\n    'caf\xe9'\n    return x @ W.T\n",
}


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    """All FILES in one call: ({name: {exercise: line}}, the completed process, the lines)."""
    return judged_at_once(tmp_path_factory.mktemp("answers"), FILES)


def judged_at_once(folder, files):
    for name, source in files.items():
        (folder / f"{name}.py").write_bytes(source.encode("latin-1"))
    done = run_command(HELPERS.parent, "try", LESSON, "--json", *(f"{folder / name}.py" for name in files))
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    found = {name: {} for name in files}
    for line in lines:
        found[line["file"].rsplit("/", 1)[1].removesuffix(".py")][line["exercise"]] = line
    return found, done, lines


def test_with_json_the_exit_code_is_0_whatever_the_verdicts(judged):
    _, done, lines = judged
    assert done.returncode == 0
    assert all(list(line) == FIELDS for line in lines)
    names = [line["file"].rsplit("/", 1)[1].removesuffix(".py") for line in lines]
    assert list(dict.fromkeys(names)) == list(FILES), "files keep their order"


@pytest.mark.parametrize(
    ("name", "exercise", "passed", "mistake", "message"),
    [
        ("right", "attention_scores", True, None, ""),
        ("right", "project", True, None, ""),
        ("wrong", "project", False, "not_transposed", "This looks like"),
        ("blank", "project", False, "not_answered", ""),
        ("half_way", "project", True, None, ""),
        ("half_way", "attention_scores", False, "raises", "ZeroDivisionError in line 4"),
        ("syntax", None, False, "raises", "SyntaxError in line 3"),
        ("nothing", None, False, "not_answered", "none of the exercises"),
        ("top_loop", "project", False, "raises", "process"),
        ("quiz", "quiz_1", False, "wrong_type", "Answer with one of"),
        ("prints", "project", True, None, ""),
        ("latin", "project", True, None, ""),
    ],
)
def test_each_file_gets_its_verdict(judged, name, exercise, passed, mistake, message):
    found, _, _ = judged
    line = found[name][exercise]
    assert (line["passed"], line["mistake"]) == (passed, mistake)
    assert message in line["message"]
    assert line["points"] == (line["max_points"] if passed else 0)


@pytest.mark.full
def test_an_endless_loop_is_reported_as_one(tmp_path):
    found, _, _ = judged_at_once(tmp_path, {"loop": "def project(x, W):\n    while True:\n        pass\n"})
    line = found["loop"]["project"]
    assert (line["passed"], line["mistake"]) == (False, "too_slow") and "endless loop" in line["message"]


def test_only_exercises_that_a_file_defines_are_judged(judged):
    found, _, _ = judged
    assert set(found["right"]) == {"attention_scores", "project"}
    assert set(found["wrong"]) == {"project"}


def run_try(capsys, *arguments: str):
    code = main(["try", *arguments])
    out, err = capsys.readouterr()
    return code, out, err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["99_nothing", "a.py"], "There is no lesson '99_nothing'."),
        ([LESSON, __file__, "--exercise", "no_such"], "has no exercise 'no_such'. Its exercises: hard_lookup,"),
        ([LESSON, "no_such_file.py"], "no_such_file.py cannot be read: No such file or directory."),
        ([LESSON, "."], ". is a folder; name the files in it."),
        (
            [LESSON, str(NOTEBOOK)],
            f"is a notebook, and `course try` judges Python files; `course grade --ci {NOTEBOOK}`",
        ),
    ],
)
def test_invalid_arguments_of_course_try_are_answered_in_one_sentence(capsys, arguments, message):
    code, out, err = run_try(capsys, *arguments)
    assert code == 2 and out == ""
    assert message in err and err.count("\n") == 1


@pytest.mark.full
def test_an_unreadable_file_does_not_prevent_judging_the_others(capsys, tmp_path):
    good, bad = tmp_path / "good.py", tmp_path / "bad.py"
    good.write_text(FILES["right"])
    bad.write_bytes(b"\xff\xfe\x00\xff def")
    code, out, err = run_try(capsys, LESSON, str(bad), str(good), "--json", "--exercise", "project")
    assert code == 2
    assert [json.loads(line)["passed"] for line in out.splitlines()] == [True]
    assert err == f"{bad} is not text in a known encoding.\n"


@pytest.mark.full
def test_a_chosen_exercise_of_a_broken_or_empty_file_has_a_verdict(capsys, tmp_path):
    broken, empty = tmp_path / "broken.py", tmp_path / "empty.py"
    broken.write_text(FILES["syntax"])
    empty.write_text("")
    code, out, _ = run_try(capsys, LESSON, str(broken), str(empty), "--json", "--exercise", "project")
    first, second = map(json.loads, out.splitlines())
    assert code == 0
    assert (first["exercise"], first["mistake"]) == ("project", "raises")
    assert first["message"].startswith("SyntaxError in line 3")
    assert (second["exercise"], second["mistake"], second["points"]) == ("project", "not_answered", 0)


@pytest.mark.full
def test_without_json_it_prints_the_checks_messages_and_exits_1_on_failure(capsys, tmp_path):
    right, blank = tmp_path / "right.py", tmp_path / "blank.py"
    right.write_text(FILES["right"])
    blank.write_text(FILES["blank"])
    code, out, _ = run_try(capsys, LESSON, str(right), str(blank), "--exercise", "project")
    assert code == 1
    assert "✓ project   14 of 14 points" in out and str(right) in out and str(blank) in out
    assert run_try(capsys, LESSON, str(right), "--exercise", "project")[0] == 0


@pytest.mark.full
def test_without_a_sandbox_files_are_judged_with_one_warning(capsys, tmp_path, monkeypatch):
    """The stand-in behaves like a bubblewrap that may not create namespaces."""
    (tmp_path / "bwrap").write_text("#!/bin/sh\necho bwrap: No permissions to create a new namespace >&2\nexit 1\n")
    (tmp_path / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    good, bad = tmp_path / "good.py", tmp_path / "bad.py"
    good.write_text(FILES["right"])
    bad.write_text(FILES["top_loop"])
    code, out, err = run_try(capsys, LESSON, str(bad), str(good), "--json", "--exercise", "project")
    assert code == 0
    assert [json.loads(line)["passed"] for line in out.splitlines()] == [False, True]
    assert err.count("\n") == 1 and "cannot be isolated here" in err and "plain process" in err


@pytest.mark.full
def test_many_files_at_once_are_all_judged(tmp_path):
    """Parsing in two threads of one process once failed for some of them with `AST constructor recursion`."""
    nested = f"def project(x, W):\n    y = {'+'.join(['0'] * 900)}\n    return x @ W.T + y\n"
    files = [tmp_path / f"answer_{number:02}.py" for number in range(40)]
    for file in files:
        file.write_text(nested)
    command = [sys.executable, "-m", "helpers", "try", LESSON, "--json", "--jobs", "2", *map(str, files)]
    done = subprocess.run(command, cwd=HELPERS.parent, capture_output=True, text=True)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["file"] for line in lines] == list(map(str, files)), done.stderr
    assert [line for line in lines if not line["passed"]] == []


@pytest.mark.full
def test_a_closed_pipe_ends_it_quietly(tmp_path):
    file = tmp_path / "answer.py"
    file.write_text(FILES["right"])
    program = [sys.executable, "-m", "helpers", "try", LESSON, "--exercise", "project", *[str(file)] * 3]
    command = subprocess.Popen(program, cwd=HELPERS.parent, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert command.stdout.readline() == f"{file}\n"
    command.stdout.close()
    assert (command.stderr.read(), command.wait()) == ("", 141)
