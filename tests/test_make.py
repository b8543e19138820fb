"""The commands of the README, as far as no other suite runs them."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from helpers.course import course

ROOT = course().root


def test_make_lab_serves_the_whole_course(tmp_path):
    here = f"BIN={Path(sys.executable).parent}"  # nothing is installed
    command = [
        "make",
        "-o",
        ".venv/learner",
        here,
        "lab",
        "LAB_FLAGS=--no-browser --port=0 --ServerApp.port_retries=50",
    ]
    settings = {**os.environ, "JUPYTER_RUNTIME_DIR": str(tmp_path)}
    with subprocess.Popen(
        command, cwd=ROOT, env=settings, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as lab:
        try:
            served = next(line for line in lab.stderr if "Serving notebooks" in line)
            opened = next(line for line in lab.stderr if "is running at" in line)
        finally:
            os.killpg(lab.pid, signal.SIGTERM)
    assert served.rstrip().endswith(f"directory: {ROOT}") and opened


def test_what_one_worker_makes_for_its_tests_no_other_makes_again(request):
    """Some pytests and pytest-xdists spread the tests of a group, silently: pytest-dev/pytest-xdist#1386."""
    assert request.node.nodeid.endswith("@test_make") or not getattr(request.config.option, "loadgroup", False)
