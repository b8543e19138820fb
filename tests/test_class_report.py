"""The class report: its statistics, how it shows blank and wrong answers, and its page in a browser."""

import csv
import io
import re

import pytest
from nbgrader.apps.api import NbGraderAPI

from helpers.checking.verdict import Part, Verdict
from helpers.grading.class_report import _discrimination, _exercise, _mistakes, as_page
from helpers.grading.class_scores import ClassReport, Column, Row
from helpers.grading.due import lateness
from helpers.grading.folders import load
from helpers.grading.nbgrader_insides import open_gradebook
from helpers.grading.pool import rendered
from helpers.grading.record import Result
from tests import lab
from tests.sample_class import enroll, hand_in
from tests.test_regrade import LESSON, FullPoints, answers, by_hand, grade


def dead_links(page: str) -> set[str]:
    ids = set(re.findall(r'\bid="([^"]*)"', page))
    links = set(re.findall(r'\b(?:href|src)="([^"]*)"', page))
    return {link for link in links if not re.match("https?://|data:", link) and link.removeprefix("#") not in ids}


def result(student, mistakes=None, failed=None, problem=None) -> Result:
    return Result(student, "", "", {}, {}, mistakes or {}, [], problem, False, failed=failed or {})


def made(points: dict[str, list[float | None]], mistakes=None, failed=None) -> ClassReport:
    """Return the report of a class with these points by exercise, each worth 4."""
    report = ClassReport("04_tiny", [Column(f"check_{name}", name, "exercise", 4.0) for name in points])
    for number, row in enumerate(zip(*points.values(), strict=True)):
        student = f"student-{number:02d}"
        scores = {f"check_{name}": score for name, score in zip(points, row, strict=True)}
        report.rows.append(Row(student, scores, sum(score or 0 for score in row), 0.0, []))
        report.results[student] = result(student, (mistakes or {}).get(number), (failed or {}).get(number))
    return report


def test_difficulty_is_the_mean_share_of_points_and_counts_accompany_percentages():
    report = made({"a": [4, 4, 4, 4, 0, 2], "b": [0] * 6})
    told = _exercise(report, report.columns[0])
    assert (told["full"], told["share"], told["difficulty"], told["mean"]) == ("4 of 6", "67", "0.75", "3.0")
    assert '4 of 6 <span class="soft">(67%)' in as_page(report)


def test_discrimination_is_the_correlation_with_the_other_exercises():
    strong = [0.0] * 6 + [4.0] * 6
    report = made({"a": strong, "b": strong, "c": strong[::-1]})
    assert _discrimination(report, report.columns[2]) == "−1.00"  # against a and b
    assert _discrimination(report, report.columns[0]) == "–"  # b and c together are the same for everybody
    report = made({"a": strong, "b": strong, "c": [4.0] * 12})
    assert [_discrimination(report, column) for column in report.columns] == ["1.00", "1.00", "–"]
    waiting = made({"a": strong, "b": strong, "c": [None, *strong[1:]]})
    assert _discrimination(waiting, waiting.columns[0]) == "1.00"  # what waits for some counts for nobody
    unread = made({"a": [None, *strong], "b": [4.0, *strong]})  # a person has graded one answer of the first
    unread.results["student-00"] = result("student-00", problem="It cannot be read.")
    assert [_exercise(unread, column)["discrimination"] for column in unread.columns] == ["1.00", "1.00"]
    few = made({"a": strong[4:8], "b": strong[4:8]})
    assert _discrimination(few, few.columns[0]) == "–"


def test_failures_and_full_points_add_up_to_the_number_of_answers():
    failed = {0: {"a": ["values"]}, 1: {"a": ["gradient flows", "dtype kept"]}, 2: {"a": ["gradient flows"]}}
    kinds = (["raises", "syntax error"], ["not_answered", "not answered"], ["too_slow", ""])
    named = {number: {"a": words} for number, words in enumerate(kinds, 3)}
    report = made({"a": [0, 2, 2, 0, 0, 0, 1, 4, 4]}, mistakes=named, failed=failed)
    report.rows[4].unanswered = {"check_a"}
    told = _exercise(report, report.columns[0])
    wrong = "values, gradient flows and dtype kept, gradient flows, syntax error, took too long, graded by hand"
    assert set(told["failed"].split(", ")) == {f"{what} (1)" for what in wrong.split(", ")}
    assert (told["answered"], told["full"]) == ("8 of 9", "2 of 9")


@pytest.mark.parametrize(
    "message, kind",
    [
        ("SyntaxError: '(' was never closed (line 3)", "syntax error"),
        ("your code raised ModuleNotFoundError: No module named 'einops'\nin line 2: import einops", "missing package"),
        ("your code raised RuntimeError: mat1 and mat2 shapes cannot be multiplied", "shapes that do not fit"),
        (
            "expected a KeyError, but your code raised IndexError: too many indices, dimension 2",
            "shapes that do not fit",
        ),
        ("CellTimeout: stopped after 20 s", "took too long"),
        ("your code raised ValueError: SyntaxError: I only say so", "raised ValueError"),
        ("your code raised <b>: no name", "raised an error"),
    ],
)
def test_kinds_of_errors_have_their_own_labels(message, kind):
    verdict = Verdict("a", 0, 4, False, mistake="raises", message=message)
    assert rendered(verdict).label == kind


def test_lateness_in_words():
    expected = "less than a minute, 1 minute, 1 hour, 1 day, 1 hour 7 minutes, 1 day 2 hours".split(", ")
    assert [lateness(one) for one in (20, 60, 3_600, 86_400, 4_000, 93_600 + 60)] == expected


def test_a_rendered_verdict_lists_the_failed_parts():
    def failed(**parts: bool) -> tuple[str, ...]:
        made_of = [Part(name.replace("_", " "), passed) for name, passed in parts.items()]
        return rendered(Verdict("a", 0, 4, False, parts=made_of)).failed

    assert failed(values=True, gradient_flows=False, dtype_kept=False) == ("gradient flows", "dtype kept")
    assert failed(values=False, gradient_flows=False, inputs_unchanged=False) == ("values", "inputs unchanged")
    assert failed(**{"loss 2.31 where 1.9 is asked": False}) == ("the measured goal",)
    assert failed(values=True) == ()


class Parts(FullPoints):
    """Wrong answers fail in their values, blank ones are not answered, and quiz option a is a named mistake."""

    def graded(self, submission, release):
        from dataclasses import replace

        graded = super().graded(submission, release)
        blank = {
            cell.exercise for cell in submission.cells if cell.kind == "answer" and "NotImplemented" in cell.source
        }
        blank |= {name for name in release.checks if f"{name} = None" in submission.code()}
        for name, one in graded.verdicts.items():
            if name in blank:
                graded.verdicts[name] = replace(one, points=0.0, answered=False, mistake="not_answered")
            elif not one.passed:
                graded.verdicts[name] = replace(one, failed=("values",))
            elif name == "quiz_1" and 'quiz_1 = "a"' in submission.code():
                graded.verdicts[name] = replace(one, mistake="option_a")
        return graded


@pytest.fixture
def reported(folders, lesson, monkeypatch):
    """Graded submissions that are right, wrong and blank, with feedback pages."""
    monkeypatch.setattr("helpers.grading.batch.Pool", Parts)
    for student, quiz in (("right", "c"), ("a b", "a")):
        hand_in(folders, lesson, student, answers(lesson, quiz_1=f'quiz_1 = "{quiz}"'))
    wrong = answers(lesson, scaled_scores="# everything is wrong", quiz_1='quiz_1 = "c"')
    hand_in(folders, lesson, "wrong", wrong)
    hand_in(folders, lesson, "blank", {})
    grade(folders, "--feedback")
    return folders


def cells_of(page: str, student: str) -> str:
    return re.search(rf"<tr><th scope=\"row\"[^>]*>(?:<a [^>]*>)?{student}<.*?</tr>", page, re.S)[0]


def test_the_page_shows_blank_wrong_and_waiting_answers_of_each_student(reported):
    page = reported.report(LESSON, "html").read_text(encoding="utf-8")
    blank, wrong = cells_of(page, "blank"), cells_of(page, "wrong")
    assert 'class="n blank" title="not answered">–<' in blank and "none" not in blank
    assert wrong.count('class="n none">0<') == 6 and wrong.count("not answered") == 1  # one of the quizzes
    assert 'title="waits for a person">…<' in cells_of(page, "right")
    assert "values (1)" in page  # of the wrong submission
    assert "a (1), b (0), <b>c ✓ (2)</b>, d (0)" in page  # the blank submission chose nothing
    folder = reported.report(LESSON, "html").parent
    links = re.findall(r'href="([^"]*)"', page)
    assert len(links) == 8 and "../feedback/a%20b/04_scaling/04_scaling.html" in links
    assert all((folder / link.replace("%20", " ")).is_file() for link in links)
    assert all(link.endswith(".html") for link in links)


def test_names_accompany_ids_on_all_pages(folders, lesson, monkeypatch):
    monkeypatch.setattr("helpers.grading.batch.Pool", Parts)
    enroll(folders, zora="Ada Ångström", bo="Bo Zimmer<b>", cyd="Cyd Dorn")
    hand_in(folders, lesson, "zora", answers(lesson))
    hand_in(folders, lesson, "bo", answers(lesson, scaled_scores="# everything is wrong"))
    grade(folders, "--feedback")
    page = folders.report(LESSON, "html").read_text(encoding="utf-8")
    assert re.findall(r'data-key="([^"]*)"', page) == ["angstrom ada zora", "zimmer&lt;b&gt; bo bo"]  # by last name
    assert re.search('Ada Ångström(</a>)? <span class="id">zora</span>', page) and "Bo Zimmer&lt;b&gt;" in page
    assert "Cyd Dorn (cyd)" in page  # without a submission
    table = csv.DictReader(io.StringIO(folders.report(LESSON, "csv").read_text(encoding="utf-8"), newline=""))
    names = {"zora": "Ada Ångström", "bo": "Bo Zimmer<b>", "cyd": "Cyd Dorn"}
    assert {row["student"]: row["name"] for row in table} == names
    feedback = (folders.feedback / "bo" / LESSON / f"{LESSON}.html").read_text(encoding="utf-8")
    assert "Bo Zimmer&lt;b&gt; (bo)" in feedback and "Zimmer" not in feedback.replace("Bo Zimmer&lt;b&gt; (bo)", "")


def test_a_submission_can_be_read_as_a_page(folders, lesson):
    """It shows answers, reports and the learner's own cells, without the lesson's text."""

    def edit(cells):
        own = {"cell_type": "code", "metadata": {}, "source": "my_own = '<b>'", "outputs": [], "execution_count": None}
        return [*cells, {**own, "id": "own"}]

    hand_in(folders, lesson, "ada", answers(lesson, written_1="Because of **ada**."), edit)
    grade(folders)
    page = folders.submission_page(LESSON, "ada")
    text = page.read_text(encoding="utf-8")
    assert "<strong>ada</strong>" in text and "my_own" in text and "&lt;b&gt;" in text
    assert "# mine" in text and 'id="check_scaled_scores"' in text and "16 of 16" in text
    assert "Recap" not in text and "<script" not in text and dead_links(text) == {f"../{LESSON}.html"}
    page.chmod(0o444)
    stamp = page.stat().st_mtime_ns
    grade(folders)
    assert page.stat().st_mtime_ns == stamp  # not written again, because nothing changed
    by_hand(folders, "ada", "written_1", manual_score=12.5)
    grade(folders)
    assert "12.5 of 15" in page.read_text(encoding="utf-8")


def test_one_minute_late_is_shown_as_one_minute(folders, lesson):
    hand_in(folders, lesson, "ada", answers(lesson))
    (folders.submitted / "ada" / LESSON / "timestamp.txt").write_text("2026-11-03 12:01:00 UTC")
    grade(folders)
    with open_gradebook(folders) as gradebook:
        gradebook.update_or_create_assignment(LESSON, duedate="2026-11-03 12:00:00 UTC")
    grade(folders, "--feedback")
    page = folders.report(LESSON, "html").read_text(encoding="utf-8")
    assert "handed in 1 minute late" in page and "day" not in page
    feedback = (folders.feedback / "ada" / LESSON / f"{LESSON}.html").read_text(encoding="utf-8")
    assert "Handed in 1 minute late" in feedback


def test_grading_in_formgrader_also_writes_the_report(folders, lesson, monkeypatch):
    hand_in(folders, lesson, "a", answers(lesson))
    api = NbGraderAPI(config=load(folders.gradebook)[1])
    assert api.autograde(LESSON, "a")["success"]
    page, table = (folders.report(LESSON, kind) for kind in ("html", "csv"))
    assert "85" in table.read_text(encoding="utf-8") and "../feedback" not in page.read_text(encoding="utf-8")
    assert api.generate_feedback(LESSON)["success"]
    assert "../feedback/a/" in page.read_text(encoding="utf-8")


@pytest.mark.full
def test_the_page_sorts_keeps_names_visible_and_uses_no_network(reported):
    with lab.browser(width=700) as page:
        requested = []
        page.on("request", lambda request: requested.append(request.url))
        page.goto(reported.report(LESSON, "html").as_uri())
        names = page.locator("#students tbody th")
        for head, order in (
            ("total", ["blank", "wrong", "a b", "right"]),
            ("student", ["a b", "blank", "right", "wrong"]),
        ):
            page.locator("#students thead button", has_text=head).first.click()
            assert names.all_inner_texts() == order
        page.locator("#students thead button", has_text="student").click()
        assert names.all_inner_texts() == ["wrong", "right", "blank", "a b"]
        box = page.locator(".wide", has=page.locator("#students"))
        assert box.evaluate("e => e.scrollWidth > e.clientWidth")
        hint = page.locator(".hint:visible").last
        assert "right" in hint.inner_text() and names.first.is_visible()
        box.evaluate("e => e.scrollLeft = e.scrollWidth")
        assert names.first.bounding_box()["x"] >= box.bounding_box()["x"]  # still visible
        page.wait_for_function("() => !document.getElementById('students').parentNode.classList.contains('more')")
        assert requested == [reported.report(LESSON, "html").as_uri()]
        assert lab.faults_by_day_and_night(page) == []


def test_the_bar_of_a_quiz_shows_how_many_chose_the_best_option():
    """Its points would not help, because every valid answer earns them."""
    report = made({"quiz_1": [4, 4, 4, 4]}, mistakes={0: {"quiz_1": ("option_a", "")}, 1: {"quiz_1": ("option_a", "")}})
    report.columns[0].kind, report.choices = "quiz", {"quiz_1": (["a", "b"], "b")}
    told = _exercise(report, report.columns[0])
    assert (told["full"], told["share"]) == ("2 of 4", "50")


def test_common_mistakes_are_listed_before_single_ones():
    often, rare = {"a": ("m", "often")}, {"a": ("n", "rare")}
    found = _mistakes(made({"a": [0] * 3}, mistakes={0: often, 1: often, 2: rare}))
    assert [one["label"] for part in ("mistakes", "single") for one in found[part]] == ["often", "rare"]
    assert [one["label"] for one in _mistakes(made({"a": [0]}, mistakes={0: rare}))["mistakes"]] == ["rare"]


def test_each_started_day_counts_as_late():
    assert [Row("a", {}, 0.0, 0.0, [], late=late).days_late for late in (0, 60, 86_400, 86_460)] == [0, 1, 1, 2]


def test_bonus_points_do_not_count_in_the_maximum_of_a_lesson():
    kinds = ("exercise", "quiz", "written", "bonus")
    assert ClassReport(LESSON, [Column(kind, kind, kind, 10.0) for kind in kinds]).worth == 30
