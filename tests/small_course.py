"""A course with one tiny lesson in its own folder, for tests of the build and the commands."""

import atexit
import os
import runpy
import shutil
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path
from typing import NoReturn

from helpers.course import course

ROOT = course().root
LESSON = "04_tiny"

COURSE = """\
owner = ""
repository = ""
tag = "v0.1.0"

[[lesson]]
name = "04_tiny"
title = "A tiny lesson"
minutes = 5
[lesson.points]
scaled_scores = 83
quiz_1 = 2
written_1 = 15
[lesson.bonus]
halved = 5
"""

TEXT = '''\
# %% [markdown]
# # A tiny lesson

# %% tags=["setup"]
# (empty: the build puts the set-up cell here)

# %%
import math
import torch
from helpers import check, progress
from helpers.drawing.style import Picture, new_figure

# %% [markdown]
# ## A picture

# %%
figure, axes = new_figure()
axes.plot([1, 2])
Picture(figure, alt="a line from 1 to 2")

# %% [markdown]
# ### Exercise 4.1 `scaled_scores`

# %% nbgrader={"solution": "scaled_scores"}
def scaled_scores(Q, K):
    """Q (..., T_q, d_k), K (..., T_k, d_k) -> (..., T_q, T_k)."""
    ### BEGIN SOLUTION
    width = Q.shape[-1]
    return Q @ K.transpose(-2, -1) / math.sqrt(width)  # (..., T_q, T_k)
    ### END SOLUTION

# %% nbgrader={"grade": "scaled_scores"}
check(scaled_scores)

# %% [markdown]
# <details><summary>Hint 1</summary>
# How does the variance grow?
# </details>
# <details><summary>Hint 2</summary>
# Which function of it has the unit of the scores?
# </details>

# %% [markdown]
# ### Exercise 4.2 `halved` + extra

# %% nbgrader={"solution": "halved"}
def halved(x):
    """x (...) -> (...)."""
    ### BEGIN SOLUTION
    return x / 2
    ### END SOLUTION

# %% nbgrader={"grade": "halved"}
check(halved)

# %% [markdown]
# <details><summary>Hint 1</summary>
# Half of a pizza.
# </details>
# <details><summary>Hint 2</summary>
# Two of them make one.
# </details>

# %% [markdown]
# ### Quiz

# %% nbgrader={"solution": "quiz_1"}
quiz_1 = None  # "a" or "b"
### BEGIN SOLUTION
quiz_1 = "b"
### END SOLUTION

# %% nbgrader={"grade": "quiz_1"}
check(quiz_1=quiz_1)

# %% [markdown]
# ## In your words

# %% [markdown] nbgrader={"written": "written_1"}
# The model answer mentions the variance of a sum.
'''

KEY = """\
from helpers.checking.vocabulary import Exercise, Mistake, listed_quizzes, tensor_cases


def cases_scaled_scores(draw):
    def make(dtype, *lead):
        return draw.normal(*lead, 5, 4, dtype=dtype), draw.normal(*lead, 7, 4, dtype=dtype)
    return tensor_cases(make)


def cases_halved(draw):
    return tensor_cases(lambda dtype, *lead: (draw.normal(*lead, 5, dtype=dtype),))


def divided_by_width(Q, K):
    return Q @ K.transpose(-2, -1) / Q.shape[-1]


exercises = [
    Exercise("scaled_scores", cases_scaled_scores, axes=("query", "key")).with_mistakes('''
        divided_by_width: divided by the width
            What is its standard deviation?
    ''', divided_by_width=divided_by_width),
    Exercise("halved", cases_halved, mistakes=[Mistake("doubled", "doubled", "Which way?", lambda x: x * 2)]),
]
quizzes = listed_quizzes('''
    quiz_1: b
        a: That is the variance.
        b: Yes.
''')
"""


def make_small_course(root: Path) -> Path:
    """Write the course into `root`, with a copy of helpers/ that lacks the built files of our lessons."""
    built = shutil.ignore_patterns("[0-9]*.py", "*.npz")  # compiled files save each process a second
    shutil.copytree(ROOT / "helpers", root / "helpers", ignore=built, symlinks=True)
    shutil.copy(ROOT / "nbgrader_config.py", root)
    folder = root / "solutions" / LESSON
    folder.mkdir(parents=True)
    (root / "course.toml").write_text(COURSE)
    (folder / f"{LESSON}.py").write_text(TEXT, encoding="utf-8")
    (folder / "answer_key.py").write_text(KEY, encoding="utf-8")
    return root


def run_command(root: Path, *arguments: str) -> subprocess.CompletedProcess:
    """Run `course ARGUMENTS` at `root` in a fork, because importing torch again takes seconds."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        pid = os.fork()
        if pid == 0:
            _begin_anew(root, arguments, out.fileno(), err.fileno())
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        printed = []
        for file in (out, err):
            file.seek(0)
            printed.append(file.read().decode())
    return subprocess.CompletedProcess(["course", *arguments], code, *printed)


def _begin_anew(root: Path, arguments: tuple[str, ...], out: int, err: int) -> NoReturn:
    """Act as `python -m helpers ARGUMENTS` at `root`, with the helpers/ of `root`, and exit."""
    code: int | str | None = 1
    try:
        atexit._clear()  # exit handlers of the parent
        os.dup2(out, 1), os.dup2(err, 2)
        sys.stdin, sys.stdout, sys.stderr = open(os.devnull), os.fdopen(1, "w"), os.fdopen(2, "w")
        os.chdir(root)
        os.environ["PYTHONPATH"] = str(root)
        sys.path.insert(0, str(root))
        # A new process would not have the converters that this one has installed in nbgrader's commands.
        for name in [name for name in sys.modules if f"{name}.".startswith(("helpers.", "nbgrader.apps."))]:
            del sys.modules[name]
        sys.argv = ["course", *arguments]
        runpy.run_module("helpers", run_name="__main__", alter_sys=True)
    except SystemExit as end:
        code = end.code
    except BaseException:
        traceback.print_exc()
    finally:
        atexit._run_exitfuncs()
        sys.stdout.flush(), sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 0 if code is None else 1)


def said_by_ruff(path: str, source: str) -> str:
    """Return what `make lint` would report about a file at this path of the course, or "" if nothing."""
    report = ""
    for command in (["check", "--quiet"], ["format", "--diff", "--quiet"]):
        whole = [sys.executable, "-m", "ruff", *command, "--stdin-filename", path, "-"]
        report += subprocess.run(whole, cwd=ROOT, input=source, capture_output=True, text=True).stdout
    return report
