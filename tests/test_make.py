"""Commands of the README that no other suite runs, and pytest-xdist's grouping of tests."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from helpers.course import course

ROOT = course().root


def test_make_lab_serves_the_whole_course(tmp_path):
    here = f"BIN={Path(sys.executable).parent}"  # nothing is installed
    flags = "LAB_FLAGS=--no-browser --port=0 --ServerApp.port_retries=50"
    command = ["make", "-o", ".venv/learner", here, "lab", flags]
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


def test_tests_of_a_group_run_in_one_worker(request):
    """Some versions of pytest and pytest-xdist silently distribute a group: pytest-dev/pytest-xdist#1386."""
    assert request.node.nodeid.endswith("@test_make") or not getattr(request.config.option, "loadgroup", False)
