"""The set-up cell of a notebook: where it finds the course, and its one-sentence errors if it does not."""

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from helpers import __version__, setup
from helpers.authoring.pack import NAME, pack
from helpers.authoring.setup_cell import set_up_source
from helpers.course import course
from helpers.errors import CourseError

LESSON, LATER = "04_scaling", "05_masking"
FOLDER = f"{NAME}-{LESSON}"  # the folder inside the zip


@pytest.fixture(scope="module")
def unpacked(packed) -> Path:
    shutil.unpack_archive(packed, packed.parent)
    return packed.parent / FOLDER


@pytest.fixture
def folder(tmp_path) -> Path:
    """The notebook's empty folder, with spaces and non-ASCII letters in its path. Tests put files into it."""
    path = tmp_path / "Übung 1" / "notebook"
    path.mkdir(parents=True)
    return path


@pytest.fixture(scope="module")
def packages(tmp_path_factory) -> Path:
    """Empty modules with the names of all required packages."""
    path = tmp_path_factory.mktemp("packages")
    for name in setup.NEEDED:
        (path / f"{name}.py").touch()
    return path


@pytest.fixture
def run(folder, packages):
    """run(source, before="", installed=None) runs the cell twice as a script, with only those packages installed."""

    def run(source=None, before="", installed=None):
        source = source or set_up_source(replace(course(), owner="", repository=""), LESSON)
        after = "import helpers, sys\nprint(helpers.__file__)\nprint(len(sys.path) - len(set(sys.path)))\n"
        (folder / "cell.py").write_text(f"{before}\n{source}\n{source}\n{after}", "utf-8")
        paths = os.pathsep.join(map(str, [packages, *([installed] if installed else [])]))
        environment = {"PATH": os.environ["PATH"], "PYTHONPATH": paths, "PYTHONIOENCODING": "utf-8"}
        command = [sys.executable, "-S", "cell.py"]
        return subprocess.run(command, cwd=folder, env=environment, capture_output=True, encoding="utf-8")

    return run


def place_of_helpers(result: subprocess.CompletedProcess) -> Path:
    assert result.returncode == 0, result.stderr
    *lines, place, doubled = result.stdout.splitlines()
    assert lines.count(f"Ready: {LESSON}") == 2 and doubled == "0"
    return Path(place).parents[1]


def error_of(result: subprocess.CompletedProcess) -> str:
    """The error message with which the script ended, which is all that a notebook shows."""
    assert result.returncode == 1 and "Ready" not in result.stdout
    text = result.stderr.strip().splitlines()[-1]
    kind, _, sentence = text.partition(": ")
    assert kind.split(".")[-1] in ("SetUpError", "CourseError") and sentence.rstrip("h").endswith(
        (".", "requirements.txt")
    )
    return sentence


def test_it_finds_the_course_in_a_parent_folder(unpacked, folder, run):
    shutil.move(shutil.copytree(unpacked, folder / "copy") / "helpers", folder.parent)
    shutil.move(folder / "copy" / "course.toml", folder.parent)
    assert place_of_helpers(run()) == folder.parent


@pytest.mark.parametrize(("version", "wins"), [(__version__, "installed"), ("0.0.9", "beside")])
def test_it_prefers_an_installed_course_of_its_own_version_only(unpacked, folder, run, tmp_path, version, wins):
    site, beside = tmp_path / "site", folder / NAME
    shutil.copytree(unpacked, beside)
    shutil.copytree(unpacked / "helpers", site / "helpers")
    shutil.copy(unpacked / "course.toml", site)
    about = site / f"attention_course-{version}.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: attention-course\nVersion: {version}\n")
    assert place_of_helpers(run(installed=site)) == {"installed": site, "beside": beside}[wins]


def test_it_unpacks_the_zip_beside_the_notebook_and_not_again(packed, folder, run):
    shutil.copy(packed, folder / f"{NAME} (1).zip")
    readme = folder / NAME / FOLDER / "README.txt"
    for _ in range(2):
        assert place_of_helpers(run()) == readme.parent and readme.read_text() != "mine"
        readme.write_text("mine")
        assert place_of_helpers(run()) == readme.parent and readme.read_text() == "mine"
        os.utime(folder / NAME, (1, 1))  # older than the zip, which is then unpacked again


@pytest.mark.parametrize("harm", ["cut off", "not a zip", "one byte changed"])
def test_a_damaged_zip_is_named_and_an_intact_one_is_used_afterwards(packed, folder, run, harm):
    target = folder / packed.name
    shutil.copy(packed, target)
    first = place_of_helpers(run())
    before = {path: path.read_bytes() for path in first.rglob("*.*") if path.suffix in (".py", ".npz", ".ipynb")}
    data = packed.read_bytes()
    middle = data.index(b"PK\x03\x04", len(data) // 2) + 200  # inside a file's contents
    changed = data[:middle] + bytes([data[middle] ^ 255]) + data[middle + 1 :]
    target.write_bytes({"cut off": data[: len(data) // 2], "not a zip": b"<html>", "one byte changed": changed}[harm])
    os.utime(target, (2**31, 2**31))  # newer than what was unpacked
    sentence = error_of(run())
    assert f"{packed.name} cannot be unpacked" in sentence and "whole one" in sentence
    shutil.copy(packed, target)
    os.utime(target, (2**31 + 1, 2**31 + 1))
    assert place_of_helpers(run()) == first
    assert before == {path: path.read_bytes() for path in before}


def test_an_unwritable_folder_gives_one_sentence(packed, folder, run):
    shutil.copy(packed, folder)
    (folder / NAME).write_text("a file in the way stands for a folder that is read-only, which root can write in")
    assert "where you can write" in error_of(run())


def test_it_clones_the_tag_if_a_repository_is_configured(unpacked, folder, run, tmp_path):
    origin = shutil.copytree(unpacked, tmp_path / "origin")

    def git(*command):
        name = ["-c", "user.name=test", "-c", "user.email=test@example.org", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", *name, *command], cwd=origin, check=True, capture_output=True)

    git("init"), git("add", "."), git("commit", "-m", "course")
    address, source = origin.as_uri(), set_up_source(replace(course(), owner="", repository=""), LESSON)
    source = source.replace(f"'{__version__}', ''", f"'{__version__}', {address!r}")
    missing = f"(cloning {address} failed: fatal: Remote branch {course().tag} not found in upstream origin). Put"
    assert missing in error_of(run(source))
    git("tag", course().tag)
    assert place_of_helpers(run(source)) == folder / NAME


@pytest.mark.full
def test_the_newer_of_two_zips_is_used(packed, folder, run):
    shutil.copy(packed, folder)
    first = place_of_helpers(run())
    pack(course(), course().lesson(LATER), folder / f"{NAME}-{LATER}.zip")
    os.utime(folder / f"{NAME}-{LATER}.zip", (2**31, 2**31))
    os.utime(first / "README.txt", (1, 1))
    assert place_of_helpers(run()) == folder / NAME / f"{NAME}-{LATER}" and first.is_dir()


@pytest.mark.parametrize("form", ["package", "file", "folder", "with a missing part", "with a set-up of its own"])
def test_another_package_called_helpers_is_named(folder, run, form):
    other = folder / "helpers"
    if form == "file":
        other = folder / "helpers.py"
        other.touch()
    else:
        other.mkdir()
        (other / "things.py").touch()
    if form not in ("file", "folder"):
        (other / "__init__.py").write_text("import no_such_thing" if form == "with a missing part" else "")
    if form == "with a set-up of its own":
        (other / "setup.py").write_text("def start(*anything): print('their set-up')")
    sentence = error_of(run())
    assert "Another package named helpers hides the course," in sentence and str(other) in sentence
    assert "Remove it, restart" in sentence


def test_a_missing_course_gives_one_sentence(run):
    sentence = error_of(run())
    assert sentence.startswith("The course is not here. Put this notebook into")
    assert f"such as {NAME}-{LESSON}.zip, beside it" in sentence  # as `course pack` calls it


def test_its_errors_are_shown_without_a_traceback(tmp_path, monkeypatch):
    from IPython.core.interactiveshell import InteractiveShell

    shown = []
    shell = InteractiveShell()
    shell._showtraceback = lambda kind, value, lines: shown.extend(lines)
    monkeypatch.chdir(tmp_path)
    shell.run_cell(set_up_source(course(), LESSON).replace('find_spec("helpers")', 'find_spec("no_such_course")'))
    assert len(shown) == 1 and shown[0].startswith("The course is not here")


def test_an_older_python_gives_one_sentence(packed, folder, run):
    """Only the version is faked, because the cell stops before anything that an older Python cannot import."""
    shutil.copy(packed, folder)
    fake = "import sys\nsys.version_info, sys.version = (3, 10, 13, 'final', 0), '3.10.13 (main)'"
    sentence = error_of(run(before=fake))
    assert sentence.startswith("The course needs Python 3.11 or newer, and this is Python 3.10.13.")


def test_the_zip_of_an_earlier_lesson_is_refused(packed, folder, run):
    shutil.copy(packed, folder)
    sentence = error_of(run(set_up_source(course(), LATER)))
    assert f"ends with {LESSON}, and this is {LATER}" in sentence and "Put the zip that came with this" in sentence


@pytest.mark.parametrize("version", ["0.0.1", "9.0.0"])
def test_a_notebook_of_another_version_prints_a_warning_and_continues(packed, folder, run, version):
    shutil.copy(packed, folder)
    source = set_up_source(course(), LESSON)
    result = run(source.replace(f"'{__version__}', ", f"'{version}', "))
    assert place_of_helpers(result) == folder / NAME / FOLDER
    line = f"This notebook is of version {version} of the course, and the course beside it of {__version__}"
    assert result.stdout.startswith(line)


@pytest.mark.parametrize("names", [["torch"], ["numpy", "torch"], ["ipywidgets", "matplotlib", "safetensors"]])
def test_missing_packages_are_named(packed, folder, run, names):
    shutil.copy(packed, folder)
    hide = f"find = u.find_spec\nu.find_spec = lambda name: None if name in {names!r} else find(name)"
    sentence = error_of(run(before=f"import importlib.util as u\n{hide}"))
    assert all(name in sentence for name in names) and "pip install -r requirements.txt" in sentence
    assert sentence.split(" not installed")[0].endswith(" are" if names[1:] else " is")


def test_a_broken_ipywidgets_gives_one_sentence(monkeypatch, tmp_path):
    (tmp_path / "ipywidgets.py").write_text("raise ImportError('cannot import name Comm')")
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in [name for name in sys.modules if name.split(".")[0] == "ipywidgets"]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(CourseError, match="ipywidgets is here and does not load .ImportError: cannot import name Comm"):
        setup.start(LESSON, __version__)
