"""Grading by hand on a page in the browser: what it shows, what it saves, and which requests it serves."""

import http.client
import json
import re
import threading

import pytest

from helpers.__main__ import main
from helpers.classroom import grade_by_hand
from helpers.classroom.grade_by_hand import Refused, as_page, read_question, save, scheme_items, serving
from helpers.grading.nbgrader_insides import open_gradebook
from tests import lab
from tests.sample_class import hand_in, hand_in_unreadable
from tests.test_formgrader import HOSTILE, LIVE
from tests.test_regrade import LESSON, answers, grade, recorded, table

SAID = "names no assumption"


@pytest.fixture
def handed_in(folders, lesson):
    """A graded class: two written answers, a blank one, and an unreadable submission."""
    for student in ("ada", "ben"):
        hand_in(folders, lesson, student, answers(lesson, written_1=f"Because of **{student}** and $d_k$."))
    hand_in(folders, lesson, "cem", {})
    hand_in_unreadable(folders, LESSON, "dan")
    grade(folders)
    return folders


def change(folders, student: str, points, comment: str = "") -> None:
    question = read_question(folders, LESSON)
    digest = next((one.digest for one in question.answers if one.student == student), "")
    save(folders, LESSON, "written_1", {"student": student, "points": points, "comment": comment, "digest": digest})


def test_the_question_has_all_its_answers_and_the_marking_scheme(handed_in):
    question = read_question(handed_in, LESSON)
    assert [one.student for one in question.answers] == ["ada", "ben"]
    assert (question.worth, question.blank, question.unread) == (15, 1, 1)
    assert "<strong>ada</strong>" in question.answers[0].html and "<math" in question.answers[0].html
    assert "Marking scheme (15)" in question.scheme and "classmate" in question.text


@pytest.mark.parametrize("path", sorted(lab.ROOT.glob("solutions/*/[01]?_*.py")), ids=lambda path: path.stem)
def test_the_items_of_every_marking_scheme_add_up_to_its_points(path):
    cells = re.split(r"\n# %%", path.read_text(encoding="utf-8"))
    for cell in (cell for cell in cells if 'nbgrader={"written":' in cell.partition("\n")[0]):
        items = scheme_items(re.sub("(?m)^# ?", "", cell), 15)
        assert len(items) >= 3 and sum(item.worth for item in items) == 15
        assert all(8 < len(item.text) < 250 for item in items), items


def test_an_empty_answer_gets_no_points_and_needs_no_grading(folders, lesson):
    for student, text in (("ada", " \n"), ("ben", "Because.")):
        hand_in(folders, lesson, student, answers(lesson, written_1=text))
    grade(folders)
    question = read_question(folders, LESSON)
    assert [one.student for one in question.answers] == ["ben"] and question.blank == 1
    assert table(folders)["ada"]["status"] == "graded" and table(folders)["ada"]["written_1"] == "0"


def test_a_page_shows_names_or_hides_both_names_and_ids(handed_in):
    with open_gradebook(handed_in) as gradebook:
        gradebook.update_or_create_student("ada", first_name="Grace", last_name="Zuse")
    question = read_question(handed_in, LESSON)
    assert [one.called for one in question.answers] == ["ben", "Grace Zuse (ada)"]  # sorted by last name
    assert "Grace Zuse (ada)" in as_page(question)[0]
    with serving(handed_in, LESSON, anonymous=True) as (server, address):
        page, _ = server.page()
        shown = re.sub("<strong>(ada|ben)</strong>", "", page)  # without the answers' own text
        assert "Answer 1" in shown and not re.search(r"Grace|Zuse|\b(ada|ben)\b", shown)
        data = json.loads(re.search(r'id="data">(.*?)</script>', page)[1])
        for one in data["answers"]:
            body = json.dumps({"student": one["student"], "points": 7, "comment": "", "digest": one["digest"]})
            assert status_of(server, "POST", f"/{server.token}/written_1", body) == 200
        assert status_of(server, "POST", f"/{server.token}/written_1", body.replace(one["student"], "ada")) == 400
    assert recorded(handed_in, "ada", "written_1")[0] == recorded(handed_in, "ben", "written_1")[0] == 7


def test_points_and_comments_are_stored_in_nbgraders_gradebook(handed_in):
    change(handed_in, "ada", 12.5, f"{SAID}\nwell said")
    assert recorded(handed_in, "ada", "written_1") == (12.5, None, False)
    question = read_question(handed_in, LESSON)
    assert question.answers[0].comment == f"{SAID}\nwell said" and question.reasons == [SAID, "well said"]
    grade(handed_in, "--feedback")
    assert table(handed_in)["ada"]["written_1"] == "12.5" and table(handed_in)["ada"]["status"] == "graded"
    page = (handed_in.feedback / "ada" / LESSON / f"{LESSON}.html").read_text(encoding="utf-8")
    assert SAID in page and "12.5 of 15" in page
    change(handed_in, "ada", None)  # withdrawn, so the answer waits again
    assert recorded(handed_in, "ada", "written_1") == (None, None, True)


def test_invalid_points_and_unknown_students_are_refused(handed_in):
    for points in (-1, 15.5, float("nan"), True, "12", [1]):
        with pytest.raises(Refused, match="from 0 to 15"):
            change(handed_in, "ada", points)
    for student in ("nobody", "../ada", None, "dan"):
        with pytest.raises(Refused):
            save(handed_in, LESSON, "written_1", {"student": student, "points": 3, "comment": "", "digest": "x"})
    assert recorded(handed_in, "ada", "written_1") == (None, None, True)


def test_a_changed_answer_is_marked_and_points_for_its_old_version_are_refused(handed_in, lesson):
    read = read_question(handed_in, LESSON).answers[0]
    change(handed_in, "ada", 9, SAID)
    hand_in(handed_in, lesson, "ada", answers(lesson, written_1="Something else."))
    grade(handed_in)
    now = read_question(handed_in, LESSON).answers[0]
    assert (now.points, now.was, now.comment) == (None, 9, SAID)
    assert "it had 9" in as_page(read_question(handed_in, LESSON))[0]
    with pytest.raises(Refused, match="submitted again"):
        save(handed_in, LESSON, "written_1", {"student": "ada", "points": 3, "comment": "", "digest": read.digest})
    change(handed_in, "ada", 11)
    grade(handed_in)
    assert read_question(handed_in, LESSON).answers[0].was is None and recorded(handed_in, "ada", "written_1")[0] == 11


def test_a_lesson_that_cannot_be_graded_by_hand_gives_one_clear_sentence(folders, capsys):
    for name, sentence in ((LESSON, "course grade"), ("00_start_here", "no written question"), ("99", "no lesson")):
        assert main(["hand", name, "--no-browser", "--gradebook", str(folders.gradebook)]) == 2
        assert sentence in capsys.readouterr().err


def status_of(server, method: str, path: str, body: str = "", host: str | None = None) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    connection.request(method, path, body, {"Host": host or server.host})
    return connection.getresponse().status


def test_only_requests_with_the_token_are_served(handed_in):
    with serving(handed_in, LESSON) as (server, address):
        assert server.server_address[0] == "127.0.0.1" and server.token in address
        good = json.dumps({"student": "ada", "points": 3, "comment": "", "digest": ""})
        for path in ("/", "/written_1", "/x/written_1", f"/{server.token[:-1]}/", "//", "/%C3%A9"):
            assert status_of(server, "GET", path) == status_of(server, "POST", path, good) == 404
        assert status_of(server, "GET", f"/{server.token}/", host="evil.example") == 404  # another host name
        assert status_of(server, "GET", f"/{server.token}/") == 200
        for body in ("", "[]", "{", "x" * 200_000):
            assert status_of(server, "POST", f"/{server.token}/written_1", body) == 400
        assert not server.done.is_set() and recorded(handed_in, "ada", "written_1")[0] is None


@pytest.mark.full
def test_items_and_reasons_set_the_points_of_an_answer(handed_in):
    first = read_question(handed_in, LESSON).items[0]
    with serving(handed_in, LESSON) as (server, address), lab.browser() as page:
        page.goto(address)
        points, items = page.locator(".now .points"), page.locator(".now .items input")
        page.keyboard.press("i")
        page.keyboard.type("3")
        page.keyboard.press("Tab")
        page.keyboard.type("2.5")
        page.keyboard.press("c")
        page.keyboard.type("−1: too long")
        page.keyboard.press("Escape")
        assert points.input_value() == "4.5"
        page.keyboard.press("Enter")
        page.locator("#reasons", has_text="too long").wait_for()
        items.nth(0).fill("9")
        page.keyboard.press("Enter")
        assert "item 1 goes from 0 to 4" in page.locator(".now .said").inner_text()
        items.nth(0).fill("")
        page.keyboard.press("Escape")
        page.keyboard.press("Control+a")
        page.keyboard.press("Delete")
        page.keyboard.press("a")  # the reason of the first answer, subtracted from full points
        assert points.input_value() == "14"
        page.keyboard.press("Enter")
        page.locator("#all").wait_for()
        assert "All answers are graded. Press Done." in page.locator("header").inner_text()
        page.keyboard.type("12")  # no answer is selected any more
        assert [box.input_value() for box in page.locator(".points").all()] == ["4.5", "14"]
        page.keyboard.press("ArrowUp")
        page.keyboard.type("5")
        assert page.locator(".points").nth(1).input_value() == "5"  # replaces 14 and is not appended to it
        page.reload()
        assert items.count() == 0 and page.locator(".items input").nth(0).input_value() == "3"
        assert page.locator("textarea").nth(0).input_value() == "−1: too long"
        assert lab.faults(page) == []
    ada = read_question(handed_in, LESSON).answers[0]
    assert (ada.points, ada.comment.splitlines()[0]) == (4.5, f"3 of 4: {first.text}")
    assert read_question(handed_in, LESSON).reasons == ["−1: too long"]


@pytest.mark.full
def test_a_class_can_be_graded_with_the_keyboard(handed_in, lesson, monkeypatch, capsys):
    hand_in(handed_in, lesson, "eve", answers(lesson, written_1=HOSTILE))
    grade(handed_in)
    opened, there = [], threading.Event()
    monkeypatch.setattr(grade_by_hand.webbrowser, "open", lambda address: (opened.append(address), there.set()))
    arguments = ["hand", LESSON, "--gradebook", str(handed_in.gradebook)]
    course = threading.Thread(target=main, args=(arguments,), daemon=True)
    course.start()
    assert there.wait(60)
    with lab.browser() as page:
        wrong, hits, requests = [], [], []
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.expose_function("hit", lambda *number: hits.append(number))
        page.goto(opened[0])
        assert page.locator("#count").inner_text() == "0 of 3 graded"
        page.keyboard.type("12.5")  # the first ungraded answer has the focus
        page.keyboard.press("c")
        page.keyboard.type(SAID)
        page.keyboard.press("Escape")
        page.keyboard.press("Enter")
        page.locator("#reasons", has_text=SAID).wait_for()
        page.keyboard.type("99")
        page.keyboard.press("Enter")
        assert "from 0 to 15" in page.locator(".now .said").inner_text()
        page.keyboard.press("Backspace")
        page.keyboard.press("a")  # the reason of the first answer, without typing it again
        page.keyboard.press("Enter")
        page.wait_for_function("() => document.getElementById('count').textContent.startsWith('2')")
        assert page.evaluate(LIVE) == [] and hits == []
        page.keyboard.press("ArrowUp")
        page.locator(".now", has_text="ben").wait_for()
        page.locator("#done").click()
        page.locator("main", has_text="Saved").wait_for()
        assert wrong == [] and all(url.startswith(opened[0].rsplit("/", 2)[0]) for url in requests)
    course.join(60)
    assert not course.is_alive() and "1 still waits" in capsys.readouterr().out
    points = {one.student: (one.points, one.comment) for one in read_question(handed_in, LESSON).answers}
    assert points == {"ada": (12.5, SAID), "ben": (9, SAID), "eve": (None, "")}
    assert table(handed_in)["ben"]["written_1"] == "9"
    assert "97.5" in handed_in.report(LESSON, "csv").read_text(encoding="utf-8")  # the report is rewritten at the end
