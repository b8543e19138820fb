"""Folders for a while: of the living they stay, of the killed they go at the next start."""

import os
import subprocess
import sys
import tempfile
import time

import pytest

from helpers.course import course

pytest.importorskip("fcntl", reason="needs locks of POSIX")
from helpers.grading.temporary_folders import LOCK, MAKING, Scratch, tidy  # noqa: E402


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def names(place):
    return sorted(path.name.rpartition("-")[0] for path in place.iterdir())


def test_a_folder_is_there_until_it_is_closed(place):
    one, other = Scratch("sandbox"), Scratch("turns")
    assert names(place) == ["course-sandbox", "course-turns"]
    one.close()
    other.close()
    assert names(place) == []


def test_what_a_killed_process_left_goes_at_the_next_start_and_no_more(place):
    code = """if True:
        from helpers.grading.temporary_folders import Scratch
        import subprocess, sys, time
        folder = Scratch("sandbox")
        (folder.path / "course").mkdir()
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
        print(child.pid, flush=True)
        time.sleep(60)
    """
    environment = os.environ | {"TMPDIR": str(place)}
    living = Scratch("sandbox")
    left = subprocess.Popen([sys.executable, "-c", code], cwd=course().root, env=environment, stdout=subprocess.PIPE)
    child = int(left.stdout.readline())
    try:
        Scratch("turns").close()
        assert len(names(place)) == 2
        left.kill()
        left.wait()  # what it started lives on, as a program that it starts has no part in the lock
        Scratch("turns").close()
        assert [path for path in place.iterdir()] == [living.path]
    finally:
        os.kill(child, 9)
        living.close()


def test_what_is_just_being_made_stays_and_links_are_not_followed(place):
    for name in ("course-sandbox-young", "course-sandbox-old", "course-other-old"):
        (place / name).mkdir()
        (place / name / "x").touch()
    long_ago = time.time() - 2 * MAKING
    for name in ("course-sandbox-old", "course-other-old"):
        os.utime(place / name, (long_ago, long_ago))
    elsewhere = place / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / LOCK).touch()
    (place / "course-sandbox-link").symlink_to(elsewhere)
    tidy()
    found = sorted(path.name for path in place.iterdir())
    assert found == ["course-other-old", "course-sandbox-link", "course-sandbox-young", "elsewhere"]
    assert (elsewhere / LOCK).exists()
