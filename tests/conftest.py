"""Shared by all tests: which of them `make test` skips, which ones share a worker, the state of random generators, and
slow fixtures, which are made once for all workers and kept for the next run."""

import contextlib
import dataclasses
import functools
import gc
import hashlib
import json
import os
import random
import shutil
import sys
import time
from pathlib import Path

import nbformat
import numpy as np
import pytest
import torch
from filelock import FileLock
from hypothesis import HealthCheck, settings

from helpers.checking.key import load_keys
from helpers.course import course
from helpers.translator import stage

torch.set_num_threads(1)
gc.disable()  # during collection, because imports leave no garbage and the search for it takes a quarter of the time
ROOT = course().root

# If a test of each lesson takes seconds, `make test` runs it only for lesson 4.
ONE = "04_scaling"
# In a run of all tests, each lesson's untouched notebook runs once, in a plain kernel or in Colab's, and the solved one
# twice: in a plain kernel, and in Colab's kernel or JupyterLab. With COURSE_EVERY=1 all run everywhere.
EVERY = bool(os.environ.get("COURSE_EVERY"))
SOLVED_IN_COLAB = ("00", "02", "04", "08", "10", "11", "12")


def lesson_names() -> list[str]:
    """Return the names of the lessons of course.toml, in order."""
    return [lesson.name for lesson in course().lessons]


def one_of(names) -> list:
    """Return parameters for a slow test of each of these lessons; all but lesson 4 are for `make test-all`."""
    return [name if name == ONE else pytest.param(name, marks=pytest.mark.full) for name in names]


def of_these(names, solved: bool) -> list[str]:
    """Return the lessons that run solved in Colab's kernel, or those that run untouched there."""
    return [name for name in names if EVERY or (name[:2] in SOLVED_IN_COLAB) == solved]


def stored_key(lesson: str, name: str):
    """Return a key as learners have it, with ten points. tests/test_mutation_score.py detects an old one."""
    return dataclasses.replace(load_keys(lesson)[name], points=10, bonus=False)


# The files and groups that take longest, which run first so that no long one is left for the end.
FIRST = "training_class browser browser_untouched colab grading book live cluster honest try delivery".split()


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups
def pytest_collection_modifyitems(items):
    """Mark tests that need an executed notebook as full, give each test its group, and put the longest first."""
    lessons = set(lesson_names())
    for item in items:
        if item.get_closest_marker("slow"):
            item.add_marker(pytest.mark.timeout(3600))  # full training runs
        if "executed_solution" in item.fixturenames:
            item.add_marker("full")
        if not item.get_closest_marker("xdist_group"):
            item.add_marker(pytest.mark.xdist_group(_lesson_of(item, lessons) or item.path.stem))
    first = [*(f"test_{name}" for name in FIRST), ONE, *reversed(lesson_names())]
    place = {name: number for number, name in enumerate(first)}

    def turn(item) -> int:
        group = item.get_closest_marker("xdist_group").args[0]
        return min(place.get(name, len(first)) for name in (item.path.stem, group))

    items.sort(key=turn)


def pytest_collection_finish():
    gc.freeze()
    gc.enable()


def _lesson_of(item, lessons: set[str]) -> str | None:
    """Return the lesson among a test's parameters, because tests of one lesson share fixtures across files."""
    for value in getattr(item, "callspec", None) and item.callspec.params.values() or ():
        name = value[0] if isinstance(value, tuple) and value else value
        if isinstance(name, str) and name in lessons:
            return name
    return None


# Random numbers: every test and every shared fixture starts from its own state, which differs between runs.
SEED = "COURSE_TEST_SEED"


def pytest_configure(config):
    # The same examples in each run, fewer in `make test`, without a time limit because the machine may be busy.
    examples = 20 if "not full" in config.option.markexpr else 150
    careless = {"deadline": None, "suppress_health_check": list(HealthCheck)}
    settings.register_profile("course", derandomize=True, max_examples=examples, **careless)
    settings.load_profile("course")
    os.environ.setdefault(SEED, str(random.SystemRandom().randrange(2**32)))  # workers inherit it
    _begin("import")


def pytest_terminal_summary(terminalreporter):
    terminalreporter.write_line(f"{SEED}={os.environ[SEED]} repeats the random numbers of this run")


def _begin(what: str) -> None:
    """Seed the global generators of Python, NumPy and PyTorch, depending only on the run and on `what`."""
    seed = int.from_bytes(hashlib.sha256(f"{os.environ[SEED]} {what}".encode()).digest()[:4], "big")
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


@pytest.hookimpl(tryfirst=True)
def pytest_fixture_setup(fixturedef, request):
    if fixturedef.scope != "function":
        _begin(f"{request.node.nodeid} {fixturedef.argname} {getattr(request, 'param_index', 0)}")


@pytest.fixture(autouse=True)
def random_state(request):
    """Start each test from its own random state, so that none depends on earlier draws."""
    _begin(request.node.nodeid)


ATTEMPT, VIEW = stage.attempt_finished.__wrapped__, stage.finished_view.__wrapped__


@functools.cache
def attempt_with_few(sentence):
    return ATTEMPT(sentence)


@functools.cache
def view_with_few(sentence, names):
    return VIEW(sentence, names)


@pytest.fixture
def few_sentences(monkeypatch):
    """Compute the translator's losses and accuracies from few sentences, because hundreds take a second each."""
    monkeypatch.setattr(stage.evaluation, "LOSS_SENTENCES", 10)
    monkeypatch.setattr(stage, "EXACT_SENTENCES", 3)
    monkeypatch.setattr(stage, "FEW_SENTENCES", 1)
    monkeypatch.setattr(stage, "attempt_finished", attempt_with_few)
    monkeypatch.setattr(stage, "finished_view", view_with_few)  # results for few sentences are cached separately


@pytest.fixture(scope="session")
def judges():
    """judges(lesson) -> its judge, which test files share because a sandbox takes seconds to start."""
    from helpers.grading.judge import Judge
    from tests.sandboxes import SEED, SMALL, need_sandbox

    with contextlib.ExitStack() as all_of_them:

        @functools.cache
        def judge(lesson: str):
            need_sandbox()
            return all_of_them.enter_context(Judge(lesson, SEED, limits=SMALL))

        yield judge


@pytest.fixture(scope="module")
def judge(judges):
    """Lesson 3's judge. It has to give an honest submission full points before and after the tests of a file."""
    from tests.sandboxes import LESSON, between_honest_ones

    yield from between_honest_ones(judges, LESSON)


@pytest.fixture(scope="module")
def packed(tmp_path_factory) -> Path:
    """The learner edition up to lesson 4 as a zip."""
    from helpers.authoring.pack import NAME, pack

    path = tmp_path_factory.mktemp("packed") / f"{NAME}.zip"
    pack(course(), course().lesson(ONE), path)
    return path


# A class.


@pytest.fixture(scope="session")
def lesson(tmp_path_factory):
    """What the sample students of lesson 4 are made from; making its keys takes a second."""
    from helpers.grading.folders import load
    from tests.sample_class import Lesson

    return Lesson(load(tmp_path_factory.mktemp("unused"))[0], ONE)


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """The folders of a class graded without a sandbox: an answer is right unless it says that it is wrong."""
    from helpers.grading.folders import load
    from tests.test_regrade import FullPoints

    monkeypatch.setattr("helpers.grading.batch.Pool", FullPoints)
    monkeypatch.setattr("helpers.grading.batch._require_bubblewrap", lambda: None)
    return load(tmp_path)[0]


# Executed notebooks.


def depends_on(lesson: str) -> str:
    """Return a digest of what an executed notebook depends on: its text, helpers/, versions, Python."""
    digest = hashlib.sha256(sys.version.encode())
    helpers = (path for path in sorted((ROOT / "helpers").rglob("*")) if "__pycache__" not in path.parts)
    texts = [ROOT / "course.toml", ROOT / "requirements.lock", ROOT / "solutions" / lesson / f"{lesson}.py"]
    for path in [*texts, *helpers]:
        if path.is_file():
            digest.update(f"{path.relative_to(ROOT)}\0".encode() + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


@pytest.fixture(scope="session")
def executed_folder() -> Path:
    """The folder that keeps executed notebooks between runs: COURSE_EXECUTED_DIR, or build/executed."""
    folder = Path(os.environ.get("COURSE_EXECUTED_DIR") or ROOT / "build" / "executed")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def executed_solution(executed_folder):
    """executed_solution(lesson) -> the solution notebook, run from top to bottom; an error in it fails the test.

    It runs again only if something that it depends on has changed. Weights that it trained are stored beside it in
    LESSON.kept, and the seconds that it took in LESSON.json.
    """
    from helpers.authoring.execute import run_notebook
    from helpers.authoring.text import read_lesson

    def execute(lesson: str):
        path = executed_folder / f"{lesson}.ipynb"
        digest, keep = path.with_suffix(".digest"), path.with_suffix(".kept")
        with FileLock(f"{path}.lock"):
            depends = depends_on(lesson)
            if not digest.exists() or digest.read_text() != depends:
                text = read_lesson(course(), course().lesson(lesson))
                start = time.perf_counter()
                digest.unlink(missing_ok=True)
                shutil.rmtree(keep, ignore_errors=True)
                keep.mkdir()
                notebook = run_notebook(course(), text.notebook, ROOT / "solutions" / lesson, lesson, keep=keep)
                seconds = round(time.perf_counter() - start, 1)
                path.with_suffix(".json").write_text(json.dumps({"lesson": lesson, "seconds": seconds}))
                nbformat.write(notebook, path)
                digest.write_text(depends)
        return nbformat.read(path, as_version=4)

    return execute
