"""Grading on several machines: a real scheduler, workers that fail, and a gradebook in PostgreSQL."""

import contextlib
import copy
import csv
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import dask
import psutil
import pytest
import yaml

from helpers.classroom.export import as_csv as export_csv
from helpers.classroom.export import read_totals
from helpers.errors import CourseError
from helpers.grading.batch import GradingOptions, grade_lesson
from helpers.grading.class_report import as_csv, as_page
from helpers.grading.class_scores import read_class
from helpers.grading.cluster import client, worker
from helpers.grading.course_version import version_of
from helpers.grading.folders import ROOT, load
from helpers.grading.intake import read_submission
from helpers.grading.lesson_release import read_release
from helpers.grading.nbgrader_insides import open_gradebook
from helpers.grading.pool import Batch, GradingStopped
from helpers.grading.record import Recorder
from helpers.grading.submission import ExerciseReport, SubmissionReport
from tests import slow_worker
from tests.ports import free_port
from tests.sample_class import _in_own_words, grade_id, hand_in, text
from tests.sandboxes import need_sandbox
from tests.test_collect import Class, notebook
from tests.test_export import give_points, record, written

LESSON = "04_scaling"


# Workers that refuse.


def test_a_worker_that_must_not_judge_says_why(monkeypatch):
    here = version_of(LESSON)
    assert worker.why_not(LESSON, here) == ""
    assert "another version of 04_scaling" in worker.why_not(LESSON, "of yesterday")
    assert "There is no lesson '99_none'" in worker.why_not("99_none", here)
    monkeypatch.setattr(shutil, "which", lambda *name, **where: None)
    assert "bubblewrap is not installed" in worker.why_not(LESSON, here)


def test_any_changed_byte_of_the_sources_is_another_version(tmp_path, monkeypatch):
    shutil.copytree(ROOT / "helpers", tmp_path / "helpers", ignore=shutil.ignore_patterns("__pycache__", "*.npz"))
    monkeypatch.setattr("helpers.grading.course_version.HELPERS", tmp_path / "helpers")
    before = version_of(LESSON)
    (tmp_path / "helpers" / "grading" / "__pycache__").mkdir()
    (tmp_path / "helpers" / "grading" / "__pycache__" / "judge.pyc").write_bytes(b"x")
    assert version_of(LESSON) == before
    with open(tmp_path / "helpers" / "grading" / "judge.py", "a") as file:
        file.write("\n")
    assert version_of(LESSON) != before != version_of("03_query_key")


# Batches of submissions, with workers in this process whose judges are replaced.


GOOD = SubmissionReport(
    {"scaled_scores": ExerciseReport("scaled_scores", 16.0, 16.0, True, True, None, "", "right", "<p>right</p>")}
)
SEEN: list[list[str]] = []


def all_right(request: worker.Request) -> tuple:
    SEEN.append([re.search(r"# (s\d)", str(cells))[1] for cells, _ in request.submissions])
    return "judged", [("judged", replace(GOOD)) for _ in request.submissions]


def slow_where_hurried(request: worker.Request) -> tuple:
    """Submissions 0 and 3 take long."""
    kind, answers = all_right(request)
    late = ("s0", "s3") if request.hurried else ()
    return kind, [("slow", "") if who in late else answer for who, answer in zip(SEEN[-1], answers, strict=True)]


def poisoned(request: worker.Request) -> tuple:
    """A worker that judges submission 3 can no longer be trusted."""
    return ("failed", "it leaks") if "# s3" in str(request.submissions) else all_right(request)


def raising(request: worker.Request) -> tuple:
    raise EOFError("its judge is gone")


@pytest.fixture
def submissions(tmp_path, monkeypatch):
    monkeypatch.setattr(client, "WORTH_A_JUDGE", 2)
    monkeypatch.setattr(client, "PORTION", 2)
    monkeypatch.setattr(client, "WAIT", 1.0)
    SEEN.clear()
    folders, _ = load(tmp_path)
    return folders


def graded_by(monkeypatch, folders, judge, workers: int, count: int = 6):
    """Grade `count` submissions by workers of this process that run `judge`; return each student's problem."""
    monkeypatch.setattr(worker, "judge", judge)
    release = read_release(folders.notebook(LESSON))
    for number in range(count):
        place = folders.submitted / f"s{number}" / LESSON
        place.mkdir(parents=True)
        (place / f"{LESSON}.ipynb").write_bytes(notebook(f"s{number}"))
    read = (read_submission(folders.submitted, f"s{n}", release, folders.release) for n in range(count))
    problems: dict[str, str | None] = {}
    with client.Cluster(Batch(LESSON, 1), f"local:{workers}") as cluster:
        for judged in cluster.portions(read, count, release, lambda student: None):
            for one, report in judged:
                assert one.student not in problems and (report is None) == bool(one.problem)
                problems[one.student] = one.problem
    assert len(problems) == count
    return problems


def test_each_submission_is_judged_once_and_large_ones_are_sent_alone(submissions, monkeypatch):
    assert set(graded_by(monkeypatch, submissions, all_right, 2).values()) == {None}
    assert sorted(SEEN) == [["s0", "s1"], ["s2", "s3"], ["s4", "s5"]]
    SEEN.clear()
    shutil.rmtree(submissions.submitted)
    monkeypatch.setattr(client, "LARGEST", 1)
    graded_by(monkeypatch, submissions, all_right, 2)
    assert sorted(SEEN) == [[f"s{number}"] for number in range(6)]


def test_slow_submissions_are_judged_after_all_others(submissions, monkeypatch):
    assert set(graded_by(monkeypatch, submissions, slow_where_hurried, 1).values()) == {None}
    assert SEEN == [["s0", "s1"], ["s2", "s3"], ["s4", "s5"], ["s0", "s3"]]


def test_after_two_lost_workers_a_portion_is_left_for_grading_by_hand(submissions, monkeypatch, capsys):
    problems = graded_by(monkeypatch, submissions, poisoned, 3)
    lost = {student: problem for student, problem in problems.items() if problem}
    assert set(lost) == {"s2", "s3"} and len(set(lost.values())) == 1
    assert "could not judge this notebook (2 workers were lost" in lost["s3"] and "grade it by hand" in lost["s3"]
    assert capsys.readouterr().err.count("takes no work: it leaks") == 2


def test_without_any_usable_worker_grading_stops_with_the_reason(submissions, monkeypatch, capsys):
    with pytest.raises(GradingStopped, match="no worker of local:2 took work(.|\n)*:(.|\n)*EOFError(.|\n)*EOFError"):
        graded_by(monkeypatch, submissions, raising, 2, 3)
    monkeypatch.setattr(client, "version_of", lambda lesson: "of tomorrow")
    with pytest.raises(GradingStopped, match="took work(.|\n)*another version of 04_scaling"):
        shutil.rmtree(submissions.submitted)
        graded_by(monkeypatch, submissions, slow_worker.really, 1, 1)
    with pytest.raises(GradingStopped, match="--unsafe"):
        client.Cluster(Batch(LESSON, 1, unsafe=True), "local:1")
    assert SEEN == []


# A gradebook in PostgreSQL.


@pytest.fixture(scope="module")
def postgres():
    """postgres("name") -> the address of a new database on its own server, with an English sort order."""
    import psycopg

    found = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    if not found:
        assert os.environ.get("COURSE_CI") != "1", "CI must have PostgreSQL"
        pytest.skip("needs PostgreSQL's server: apt install postgresql")
    place, port = tempfile.mkdtemp(prefix="course-test-"), free_port()
    somebody = []
    if os.getuid() == 0:  # PostgreSQL refuses to run as root
        shutil.chown(place, "postgres")
        somebody = ["runuser", "-u", "postgres", "--"]

    def run(program: str, *arguments: str) -> None:
        command = [*somebody, str(found[-1] / program), "-D", f"{place}/data", *arguments]
        subprocess.run(command, check=True, cwd="/", stdout=subprocess.DEVNULL, timeout=60)

    def make(name: str) -> str:
        server = f"postgresql://grader@127.0.0.1:{port}"
        with psycopg.connect(f"{server}/postgres", autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return server.replace("postgresql", "postgresql+psycopg") + f"/{name}"

    try:
        alphabet = ["--locale-provider=icu", "--icu-locale=en", "--locale=C", "--encoding=UTF8"]
        run("initdb", "-U", "grader", "-A", "trust", "--no-sync", "--no-instructions", *alphabet)
        run("pg_ctl", "start", "-w", "-l", f"{place}/log", "-o", f"-F -p {port} -h 127.0.0.1 -k {place}")
        yield make
        run("pg_ctl", "stop", "-m", "immediate")
    finally:
        shutil.rmtree(place, ignore_errors=True)


ROSTER = f"""id,first_name,last_name,email
Zoe,Zoe,{"von " * 40}Zett,zoe@x.org
ada,Ada,Lovelace,{"a" * 200}@x.org
Ben,Ben,Busch,ben@x.org
dan,Dan,Dorn,dan@x.org
"""


def collect_and_grade(group: Class) -> tuple[str, str, str, str]:
    """Collect, grade, collect and grade again; return the report, its CSV file, the export and the notes."""
    files = {f"{name}_{LESSON}.ipynb": written(f"because of {name}") for name in ("Zoe", "ada", "Ben")}
    outcome, notes = group.take(files, roster=ROSTER)
    record(group)
    give_points(group, "ada", "Ben")
    with open_gradebook(group.folders) as gradebook:
        gradebook.update_or_create_assignment(LESSON, duedate="2001-01-01 00:00 UTC")
    group.take({f"Ben_{LESSON}.ipynb": written("another reason")}, name="again.zip")
    record(group)
    report = read_class(group.folders, LESSON)
    notices = json.dumps([outcome.missing, notes, sorted(report.changed), report.to_grade])
    return as_page(report), as_csv(report), export_csv(read_totals(group.folders, [LESSON])), notices


@pytest.mark.full
def test_a_gradebook_in_postgresql_gives_the_same_results(postgres, tmp_path):
    ways = []
    for name in ("sqlite", "postgresql"):
        one = Class(tmp_path / name)
        if name == "postgresql":
            one.folders = replace(one.folders, db_url=postgres("collect_and_grade"))
        ways.append(collect_and_grade(one))
    assert not (tmp_path / "postgresql" / "class" / "gradebook.db").exists()
    assert ways[0] == ways[1] and "because of" not in ways[0][1]
    assert [row["student"] for row in csv.DictReader(ways[1][1].splitlines())] == ["Ben", "ada", "Zoe", "dan"]


def test_a_missing_database_is_reported_without_its_password(tmp_path, postgres):
    url = postgres("unused").replace("grader@", "grader:secret@").replace("unused", "nowhere")
    folders = replace(load(tmp_path)[0], db_url=url)
    for way in (lambda: read_class(folders, LESSON), lambda: read_totals(folders, [LESSON])):
        with pytest.raises(CourseError, match="^The gradebook 127.0.0.1:.*nowhere.* cannot be used ") as raised:
            way()
        assert "secret" not in str(raised.value)


# Machines that fail.


class Proxy:
    """A connection to a port of this machine that can be cut."""

    def __init__(self, port: int):
        self.target, self.server, self.open = port, socket.create_server(("127.0.0.1", 0)), []
        self.port = self.server.getsockname()[1]
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                here = self.server.accept()[0]
                try:
                    there = socket.create_connection(("127.0.0.1", self.target))
                except OSError:  # the scheduler does not listen yet, so the client tries again
                    here.close()
                    continue
                self.open += [here, there]
                for one, other in ((here, there), (there, here)):
                    threading.Thread(target=self._carry, args=(one, other), daemon=True).start()

    def _carry(self, one: socket.socket, other: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := one.recv(1 << 16):
                other.sendall(data)
        self._end(one, other)

    def _end(self, *sockets: socket.socket) -> None:
        for one in sockets:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def cut(self) -> None:
        self._end(self.server, *self.open)


class Machines:
    """A scheduler and workers, each a process started as in docs/teaching.md."""

    def __init__(self):
        self.port, self.started, self.seen = free_port(), [], {}
        self.environment = os.environ | {
            "PYTHONPATH": str(ROOT),
            "DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": "5s",
            "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
        }

    def start(self, *words: str) -> psutil.Process:
        command = [sys.executable, "-m", "dask", *words]
        quiet = subprocess.DEVNULL
        process = psutil.Popen(command, cwd="/", env=self.environment, stdout=quiet, stderr=quiet)
        self.started.append(process)
        return process

    def scheduler(self, *more: str) -> psutil.Process:
        return self.start("scheduler", "--host", "127.0.0.1", "--port", str(self.port), "--no-dashboard", *more)

    def worker(self, name: str, port: int = 0, protocol: str = "tcp") -> psutil.Process:
        where = f"{protocol}://127.0.0.1:{port or self.port}"
        plain = ["--no-nanny", "--no-dashboard", "--nthreads", "1"]
        return self.start("worker", where, *plain, "--name", name, "--host", "127.0.0.1")

    def judging(self, process: psutil.Process) -> bool:
        """Return whether a worker's judge has started its sandbox."""
        with contextlib.suppress(psutil.Error):
            family = process.children(recursive=True)
            self.seen |= {one.pid: one for one in family}
            return sum(one.name() == "bwrap" for one in family) >= 2
        return False

    def left(self) -> list[psutil.Process]:
        family = [*self.started, *self.seen.values()]
        return [one for one in family if one.is_running() and one.status() != psutil.STATUS_ZOMBIE]

    @contextlib.contextmanager
    def while_grading(self):
        """End all machines if an assertion fails, so that the grader does not wait for them."""
        try:
            yield
        except BaseException:
            self.end()
            raise

    def end(self) -> None:
        for one in self.left():
            with contextlib.suppress(psutil.Error):
                one.kill()


def until(what, seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)


@pytest.fixture
def machines():
    need_sandbox()
    made = Machines()
    yield made
    made.end()


@pytest.mark.full
def test_tls_works_as_described_in_the_guide(machines, tmp_path, monkeypatch):
    guide = (ROOT / "docs" / "teaching.md").read_text(encoding="utf-8")
    make_key = next(line for line in guide.splitlines() if line.startswith("openssl req "))
    subprocess.run(make_key.split(), cwd=tmp_path, check=True, capture_output=True)
    settings = guide.split("```yaml\n")[1].split("```")[0].replace("/etc/course", str(tmp_path))
    (tmp_path / "course.yaml").write_text(settings)
    machines.environment["DASK_CONFIG"] = str(tmp_path)
    machines.scheduler("--protocol", "tls")
    machines.worker("safe", protocol="tls")
    where, batch = f"127.0.0.1:{machines.port}", Batch(LESSON, 1)
    soon = {"distributed.comm.timeouts.connect": "5s"}

    def not_reached(place):
        with dask.config.set(soon), pytest.raises(GradingStopped, match="cannot be reached"):
            client.Cluster(batch, place).__enter__()

    not_reached(f"tls://{where}")
    with dask.config.set(dask.config.merge(copy.deepcopy(dask.config.config), yaml.safe_load(settings))):
        not_reached(f"tcp://{where}")
        with client.Cluster(batch, f"tls://{where}") as cluster:

            def seen():
                cluster._update_workers()
                return cluster.workers

            until(seen)
            [safe] = cluster.workers.values()
            told = cluster._ask(safe, worker.why_not, LESSON, cluster.version)
            assert safe.address.startswith("tls://") and told.result(timeout=60) == ""


def make_class(folders, students: int) -> None:
    """Submit right and wrong answers that sleep a moment, so that workers can be interrupted while they judge."""
    solved = json.loads(folders.executed(LESSON).read_text(encoding="utf-8"))["cells"]
    cells = {name: text(cell) for cell in solved if (name := grade_id(cell) or "setup") != "setup"}
    solutions = {name: _in_own_words(source) for name, source in cells.items() if not name.startswith("check_")}
    lesson = SimpleNamespace(name=LESSON, release=json.loads(folders.notebook(LESSON).read_text(encoding="utf-8")))
    for number in range(students):
        wrong = {"scaled_scores": "def scaled_scores(Q, K):\n    return Q @ K.mT"} if number % 2 else {}
        answers = solutions | {"written_1": f"number {number}"} | wrong
        answers["scaled_scores"] = f"import time\ntime.sleep(0.3)\n{answers['scaled_scores']}"
        hand_in(folders, lesson, f"student-{number}", answers)


@pytest.mark.full
def test_when_machines_fail_each_submission_is_still_graded_once(machines, postgres, tmp_path, monkeypatch):
    given, recorded = set(), []
    give, write = client.Cluster._give, Recorder.record

    def note_give(self, to, *rest):
        give(self, to, *rest)
        if to.portion:
            given.add(to.address)

    def note_record(self, submission, graded):
        recorded.append(submission.student)
        return write(self, submission, graded)

    for name in ("WORTH_A_JUDGE", "PORTION"):
        monkeypatch.setattr(client, name, 2)
    monkeypatch.setattr(worker, "judge", slow_worker.judge)
    monkeypatch.setattr(client.Cluster, "_give", note_give)
    monkeypatch.setattr(Recorder, "record", note_record)
    (folders, config), (here, _) = load(tmp_path / "many"), load(tmp_path / "one")
    make_class(folders, 5)
    shutil.copytree(folders.submitted, here.submitted)
    config.CourseDirectory.db_url = postgres("machines")
    folders = replace(folders, db_url=config.CourseDirectory.db_url)
    before = machines.scheduler()
    with ThreadPoolExecutor(1) as threads, machines.while_grading():
        where = f"tcp://127.0.0.1:{machines.port}"
        grading = threads.submit(grade_lesson, folders, LESSON, None, GradingOptions(scheduler=where), config)

        def came(what):
            until(lambda: grading.done() or what())
            assert not grading.done(), grading.result()

        first = machines.worker("slow, first")
        came(lambda: len(given) == 1)
        before.kill()
        before.wait()
        scheduler, proxy = machines.scheduler(), Proxy(machines.port)
        paused, cut = machines.worker("slow, paused"), machines.worker("slow, cut", proxy.port)
        came(lambda: len(given) == 3)
        killed = machines.worker("killed")
        came(lambda: len(given) == 4)
        paused.suspend()
        proxy.cut()
        came(lambda: machines.judging(killed))
        killed.kill()
        killed.wait()
        last = machines.worker("last")
        outcome = grading.result(timeout=200)
    assert paused.poll() is None and cut.poll() is not None and first.poll() is not None
    paused.resume()
    until(lambda: {one.pid for one in machines.left()} == {scheduler.pid, last.pid})
    assert outcome.new == 5 and not any(one.problem or one.flags for one in outcome.results)
    assert sorted(recorded) == [f"student-{number}" for number in range(5)]
    here.batch(LESSON).parent.mkdir()
    shutil.copy(folders.batch(LESSON), here.batch(LESSON))
    grade_lesson(here, LESSON)
    assert as_csv(read_class(folders, LESSON)) == as_csv(read_class(here, LESSON))
    assert len({row.total for row in read_class(here, LESSON).rows}) == 2
