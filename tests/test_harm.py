"""If anything goes wrong with one submission, it waits for a person with a sentence, and all others are graded."""

import errno
import json
import os
import time
from types import SimpleNamespace

import pytest

from helpers.__main__ import main
from helpers.checking.codec import BadTree, dumps, loads
from helpers.checking.key import DamagedKey, load_keys
from helpers.grading.batch import GradingOptions, grade_lesson, writer_lock
from helpers.grading.folders import load
from helpers.grading.grade import ProgressBar
from helpers.grading.intake import MOST_NAME, name_problem
from helpers.grading.pool import Batch, GradingStopped, Pool, _reply
from helpers.grading.record import Recorder
from helpers.grading.reference import GraderBroken
from helpers.grading.submission import Submission, SubmissionReport
from tests.sample_class import grade_id, hand_in
from tests.test_grading import LESSON, full_answers, nbgrader, needs_bubblewrap, points, recorded, scores
from tests.test_regrade import FullPoints

pytestmark = needs_bubblewrap


def added(kind, source, **more):
    cell = {"cell_type": kind, "id": "added", "metadata": {}, "source": source} | more
    return cell | ({"outputs": [], "execution_count": None} if kind == "code" else {})


def at_the_end(*cells):
    return lambda old: [*old, *cells]


def below(name, *cells):
    def edit(old):
        index = next(i for i, cell in enumerate(old) if grade_id(cell) == name) + 1
        return [*old[:index], *cells, *old[index:]]

    return edit


def in_a_new_cell_below(old):
    return below("written_1", added("markdown", "Because the variance of a sum of d_k products is d_k."))(old)


def without_metadata(old):
    text = "Because the variance of a sum of d_k products is d_k."
    return [added("markdown", text) if grade_id(c) == "written_1" else c for c in old]


def elsewhere(old):
    return [*old[:3], added("markdown", "My answer: because the variance grows with the width."), *old[3:]]


SURROGATE = "raise type('\\ud800', (ValueError,), {})('\\ud800 \\x1b[31m')"
HUGE = "raise type('X' * 3_000_000, (ValueError,), {})('y' * 3_000_000)"
PATCHED = """
class Meta(type):
    @property
    def __name__(cls):
        return "\\ud800\\x1b[31m<script>" * 200_000
    __qualname__ = __name__
class Odd(Exception, metaclass=Meta):
    __class__ = property(lambda self: int)
    def __str__(self):
        return "\\ud800" * 1_000_000
"""
# Code that tampers with the names of its exceptions, of types and of Python's own functions.
PATCHES = [
    PATCHED + "raise Odd",
    PATCHED + "Odd()",
    "class Mute(Exception):\n    def __str__(self): raise SystemExit\n    __repr__ = __str__\nraise Mute",
    "class Where(SyntaxError):\n    lineno = msg = filename = property(lambda self: self)\nraise Where('x')",
    "__name__ = '\\ud800'\nimport builtins\nbuiltins.len = builtins.str = builtins.type = lambda *a: '\\ud800'\n1 / 0",
]
# Makes every reply of the learner's process report an error of 3 MB.
FORGED = """
import sys
frame = sys._getframe()
while not {"serve", "send"} <= set(frame.f_globals):
    frame = frame.f_back
send, large = frame.f_globals["send"], "\\ud800<script>" * 300_000
def forged(channel, token, reply):
    error = {"output_type": "error", "ename": large, "evalue": large, "traceback": [large, large]}
    send(channel, token, {"outputs": [error], "error": large} if "outputs" in reply else reply)
frame.f_globals["send"] = forged
"""
RAISES_PATCHED = PATCHED + "def head_scores(x, W_q, W_k):\n    raise Odd\nhead_scores.__name__ = '\\ud800' * 1000"
SHOWN = "from IPython.display import HTML, display\ndisplay(HTML({!r}))"
DEEP = "<ul><li>" * 20_000
STYLED = "<div style='width:" + "(" * 5000 + "'>x</div>"
LINKS = "[x](javascript:alert(1)) [y][z] $\\href{javascript:alert(2)}{x}$\n\n[z]: data:text/html;base64,AAAA"
# name -> an edit of an honest submission's cells. None of them costs a point.
ODD = {
    "surrogates": at_the_end(added("code", SURROGATE), added("markdown", "x", attachments={"\ud800.png": {"a": 1}})),
    "huge error": at_the_end(added("code", HUGE)),
    "forged error": at_the_end(added("code", FORGED)),
    "deep lists": at_the_end(added("code", SHOWN.format(DEEP))),
    "patched names": at_the_end(*[added("code", source) for source in PATCHES]),
    "brackets": at_the_end(added("code", SHOWN.format(STYLED)), added("markdown", "[" * 5000)),
    "links": at_the_end(added("markdown", LINKS), added("raw", "<script>alert(3)</script>")),
    "written below": in_a_new_cell_below,
    "written without metadata": without_metadata,
    "written elsewhere": elsewhere,
}


@pytest.fixture(scope="module")
def batch(lesson, tmp_path_factory):
    """Odd submissions with an honest one before and after, graded together: (folders, config, outcome)."""
    folders, config = load(tmp_path_factory.mktemp("odd"))
    hand_in(folders, lesson, "00 honest", full_answers(lesson, {}))
    for name, edit in ODD.items():
        answers = full_answers(lesson, {})
        if name.startswith("written"):
            del answers["written_1"]
        hand_in(folders, lesson, name, answers, edit)
    answer = "from my_dots import dots\ndef scaled_scores(Q, K):\n    return dots(Q, K) / K.shape[-1] ** 0.5"
    hand_in(folders, lesson, "helper beside", full_answers(lesson, {"scaled_scores": answer}))
    beside = folders.submitted / "helper beside" / LESSON / "my_dots.py"
    beside.write_text("def dots(Q, K):\n    return Q @ K.transpose(-2, -1)\n")
    hand_in(folders, lesson, "patched answer", full_answers(lesson, {"head_scores": RAISES_PATCHED}))
    hand_in(folders, lesson, "much code", full_answers(lesson, {}), at_the_end(added("code", "x = 1\n" * 200_000)))
    (folders.submitted / "a folder" / LESSON / f"{LESSON}.ipynb").mkdir(parents=True)
    for name in ("esc\x1b[31mape", "new\nline", "<img src=x>", os.fsdecode(b"latin-\xe9"), "n" * (MOST_NAME + 1)):
        hand_in(folders, lesson, name, full_answers(lesson, {}))
    hand_in(folders, lesson, "zz honest", full_answers(lesson, {}))
    return folders, config, grade_lesson(folders, LESSON, config=config)


@pytest.mark.full
def test_odd_submissions_cost_no_other_answer_a_point(batch, lesson):
    found = scores(batch[0])
    for name in ("00 honest", *ODD, "helper beside", "zz honest"):
        assert found[name] == points(lesson), name
    assert found["patched answer"] == points(lesson, head_scores=0.0)
    for name in ("a folder", "much code"):
        assert all(points is None for points in found[name].values())


@pytest.mark.full
def test_each_unreadable_submission_has_a_short_printable_sentence(batch):
    problems = {result.student: result.problem for result in batch[2].results if result.problem}
    assert len(problems) == 7
    assert "was not read: it is a folder. " in problems["a folder"]
    assert "it has 1,2" in problems["much code"] and "characters of code" in problems["much code"]
    for student, problem in problems.items():
        assert student.isprintable() and problem.isprintable() and len(problem) < 300
        assert student in ("a folder", "much code") or "rename it" in problem
    for result in batch[2].results:
        assert all(flag.isprintable() and len(flag) <= 400 for flag in result.flags), result.flags


@pytest.mark.full
def test_misplaced_written_answers_are_found_or_wait_for_a_person(batch):
    found = recorded(batch[0])
    flags = {result.student: " ".join(result.flags) for result in batch[2].results}
    for name in ODD:
        assert found[name]["written_1"] == (None, None, True), name
    for name in ("written below", "written without metadata"):
        assert "was found in a cell of its own" in flags[name]
        notebook = json.loads(batch[0].autograded_notebook(LESSON, name).read_text())
        cell = next(cell for cell in notebook["cells"] if grade_id(cell) == "written_1")
        assert "variance of a sum" in "".join(cell["source"])
    assert "is empty, but there is other text" in flags["written elsewhere"]
    assert flags["00 honest"] == "" == flags["zz honest"]


@pytest.mark.full
def test_a_learners_own_module_beside_the_notebook_is_used_and_flagged(batch):
    flags = {result.student: result.flags for result in batch[2].results}
    assert flags["helper beside"] == ["my_dots.py was handed in with the notebook and used"]


@pytest.mark.full
def test_no_link_or_script_of_a_learner_is_live_in_the_feedback(batch):
    folders = batch[0]
    assert nbgrader("generate_feedback", LESSON, "--student", "links", gradebook=folders.gradebook).returncode == 0
    page = (folders.feedback / "links" / LESSON / f"{LESSON}.html").read_text()
    assert 'href="javascript' not in page and "data:text/html" not in page and "\\href{" not in page
    assert "<script>alert" not in page and "alert(3)" in page


@pytest.mark.full
def test_autograded_notebooks_stay_small(batch):
    for name in (*ODD, "patched answer"):
        assert batch[0].autograded_notebook(LESSON, name).stat().st_size < 1_500_000, name


def test_ordinary_names_can_be_students_and_patterns_cannot():
    assert [name_problem(name) for name in ("ada", "Zoë O'Neill", "学生 1", "a@b.example")] == [None] * 4
    assert all(name_problem(name) for name in ("a[1]", "a*", "<b>"))  # nbgrader would read the first two as patterns


# The record and the disk.


@pytest.fixture
def class_of_three(lesson, tmp_path):
    folders, config = load(tmp_path)
    for student in ("a", "b", "c"):
        hand_in(folders, lesson, student, full_answers(lesson, {}))
    return folders, config


def test_a_submission_that_cannot_be_recorded_waits_and_the_others_are_graded(class_of_three, lesson, monkeypatch):
    folders, config = class_of_three
    monkeypatch.setattr("helpers.grading.batch.Pool", FullPoints)
    write = Recorder._write_gradebook

    def failing(self, submission, *rest):
        if submission.student == "b" and not submission.problem:
            raise ValueError("no \ud800 place \x1b[31m")
        write(self, submission, *rest)

    monkeypatch.setattr(Recorder, "_write_gradebook", failing)
    outcome = grade_lesson(folders, LESSON, config=config)
    problems = {result.student: result.problem for result in outcome.results}
    assert problems["a"] is problems["c"] is None and "could not be recorded (ValueError" in problems["b"]
    assert set(scores(folders)) == {"a", "b", "c"} and recorded(folders)["b"]["written_1"][2]


def test_a_slow_submission_waits_until_the_others_are_recorded(class_of_three, monkeypatch):
    folders, config = class_of_three
    calls = []

    class Slow(FullPoints):
        def judge(self, submissions, release, on_judged, hurried):
            for submission in submissions:
                calls.append((submission.student, hurried))
                until = time.monotonic() + 20
                while not hurried and "c" not in recorded(folders) and time.monotonic() < until:
                    time.sleep(0.05)  # the main process records the others meanwhile
                assert hurried or "c" in recorded(folders)
                if submission.student == "c" or not hurried:
                    yield submission, self.graded(submission, release)

    monkeypatch.setattr("helpers.grading.batch.Pool", Slow)
    outcome = grade_lesson(folders, LESSON, config=config)
    assert calls == [("a", True), ("b", True), ("c", True), ("a", False), ("b", False)]
    assert (outcome.new, sorted(recorded(folders))) == (3, ["a", "b", "c"])
    calls.clear()
    grade_lesson(folders, LESSON, ["a"], GradingOptions(force=True), config)
    assert [hurried for _, hurried in calls] == [False]  # a single submission has all the time at once


def test_a_slow_submission_counts_only_if_its_judge_is_sound_afterwards(monkeypatch):
    def broken(judge):
        raise GraderBroken("the reference solution scored 0")

    monkeypatch.setattr("helpers.grading.selftest.self_test", broken)
    judge = SimpleNamespace(judge_cells=lambda *_, **options: SubmissionReport())
    assert _reply(judge, ([], {}, True, False), None)[0] == "judged"
    answer = _reply(judge, ([], {}, False, True), None)
    assert answer == ("unsound", "the reference solution scored 0")
    pool = Pool(Batch(LESSON, 0), 1)
    monkeypatch.setattr(pool, "answers", lambda submissions, _: [(submissions[0], *answer)])
    with pytest.raises(GradingStopped, match="failed its own test after a submission .the reference solution scored 0"):
        list(pool.judge([Submission("a", LESSON, [], "")], None, print, hurried=False))


def test_the_gradebook_never_contains_half_a_submission(class_of_three, monkeypatch):
    folders, config = class_of_three
    monkeypatch.setattr("helpers.grading.batch.Pool", FullPoints)
    monkeypatch.setattr("nbgrader.utils.determine_grade", lambda cell: 1 / 0)
    outcome = grade_lesson(folders, LESSON, config=config)
    assert all("could not be recorded" in result.problem for result in outcome.results)
    assert scores(folders) == {}


@pytest.mark.parametrize("count, message", [(1, "1 submission takes long"), (2, "2 submissions take long")])
def test_the_number_of_slow_submissions_is_reported_with_its_plural(capsys, count, message):
    ProgressBar(LESSON).slow(count)
    assert capsys.readouterr().out.startswith(message)


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS])
def test_a_full_or_read_only_disk_is_reported_in_one_sentence_before_judging(class_of_three, monkeypatch, capsys, code):
    def full(*arguments, **named):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr("helpers.grading.batch.tempfile.TemporaryFile", full)
    monkeypatch.setattr("helpers.grading.batch.Pool", None)
    assert main(["grade", LESSON, "--gradebook", str(class_of_three[0].gradebook)]) == 2
    message = capsys.readouterr().err
    assert os.strerror(code) in message and "nothing was graded" in message and len(message.splitlines()) == 1


def test_a_disk_that_fills_up_during_grading_stops_it_with_a_sentence(class_of_three, monkeypatch):
    folders, config = class_of_three
    monkeypatch.setattr("helpers.grading.batch.Pool", FullPoints)
    write, calls = Recorder._write_notebook, []

    def full(self, *rest):
        calls.append(1)
        if len(calls) > 1:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write(self, *rest)

    monkeypatch.setattr(Recorder, "_write_notebook", full)
    with pytest.raises(GradingStopped, match="No space left.*recorded so far stays"):
        grade_lesson(folders, LESSON, config=config)
    assert folders.result(LESSON, "a").is_file() and not folders.result(LESSON, "b").is_file()


def test_a_mistyped_gradebook_is_reported_in_one_sentence_and_not_created(tmp_path, capsys):
    assert main(["grade", LESSON, "--gradebook", str(tmp_path / "gradbook")]) == 2
    message = capsys.readouterr().err
    assert "There is no folder" in message and len(message.splitlines()) == 1 and not (tmp_path / "gradbook").exists()


def test_a_damaged_gradebook_is_reported_in_one_sentence(class_of_three, capsys):
    folders = class_of_three[0]
    (folders.gradebook / "gradebook.db").write_bytes(b"no database at all" * 100)
    assert main(["grade", LESSON, "--gradebook", str(folders.gradebook)]) == 2
    message = capsys.readouterr().err
    assert "cannot be used" in message and len(message.splitlines()) == 1


def test_a_lesson_of_a_gradebook_has_one_grader_at_a_time(class_of_three):
    from nbgrader.apps.api import NbGraderAPI

    folders, config = class_of_three
    with writer_lock(folders, LESSON):
        with pytest.raises(GradingStopped, match="is being graded in this gradebook already"):
            grade_lesson(folders, LESSON, config=config)
        answer = NbGraderAPI(config=config).autograde(LESSON, "a")  # Formgrader's button
        assert not answer["success"] and "is being graded in this gradebook already" in answer["log"]
        with writer_lock(folders, "03_query_key"):
            pass
    with writer_lock(folders, LESSON):
        pass


def test_a_submission_that_the_grader_could_not_judge_is_graded_again_next_time(class_of_three, lesson, monkeypatch):
    folders, config = class_of_three

    class Dying(FullPoints):
        def judge(self, submissions, release, on_judged, hurried):
            for submission, report in super().judge(submissions, release, on_judged, hurried):
                if submission.student == "b":
                    submission.problem, submission.again, report = "The grader could not judge this.", True, None
                yield submission, report

    monkeypatch.setattr("helpers.grading.batch.Pool", Dying)
    grade_lesson(folders, LESSON, config=config)
    assert scores(folders)["b"]["scaled_scores"] is None
    monkeypatch.setattr("helpers.grading.batch.Pool", FullPoints)
    outcome = grade_lesson(folders, LESSON, config=config)
    assert (outcome.new, outcome.unchanged) == (1, 2)
    assert not any(result.problem for result in outcome.results)
    assert scores(folders)["b"] == points(lesson, weights_jacobian=0.0)  # FullPoints gives no bonus


# Replies and files.


@pytest.mark.parametrize(
    "packed",
    [
        {"t": ["float32", 0, [1] * 500_000]},
        [{"t": ["float32", 0, [0] * 60]}] * 9000,
        [[]] * 2_000_000,
        [0] * 3_000_000,
        {"d": [["a", 1]] * 600_000},
    ],
)
def test_a_huge_reply_is_refused_before_it_is_unpacked(packed):
    header = json.dumps([packed, dict.fromkeys(("float32", "float64", "int64", "bool"), 0)]).encode()
    data = len(header).to_bytes(8, "little") + header
    began = time.process_time()
    with pytest.raises(BadTree):
        loads(data)
    assert time.process_time() - began < 2


def test_brackets_inside_a_text_do_not_count_as_structure():
    text = '[{,"\\' * 15_000
    assert loads(dumps({"text": text})) == {"text": text}


def test_lone_surrogates_in_a_reply_are_replaced():
    assert loads(dumps(["a\ud800b", {"\ud800": 1}])) == ["a?b", {"?": 1}]


def test_a_damaged_answer_key_is_reported(tmp_path):
    from helpers.checking.key import FOLDER

    content = (FOLDER / f"{LESSON}.npz").read_bytes()
    for damaged in (b"", content[:1000], content[:-2000], content[:500] + bytes(2000) + content[2500:]):
        path = tmp_path / f"{LESSON}.npz"
        path.write_bytes(damaged)
        os.utime(path, ns=(time.time_ns(), time.time_ns()))
        with pytest.raises(DamagedKey, match=f"answer key {LESSON}.npz is damaged"):
            load_keys(LESSON, path)
