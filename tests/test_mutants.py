"""A mutation tool (cosmic-ray) over the solutions: every survivor is killed or listed as equivalent with a reason."""

import subprocess
import sys

import pytest

from tests.kill_rate import lessons


@pytest.mark.parametrize("lesson", lessons())
def test_no_mutant_survives(lesson):
    # In a process of its own: its memory is limited, and a mutant may do anything to it.
    done = subprocess.run([sys.executable, "-m", "tests.mutants", lesson], capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
