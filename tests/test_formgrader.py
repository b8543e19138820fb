"""Formgrader's own pages in headless Chromium, with a submission in which every text tries to run a script."""

import os
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest

from helpers.grading.batch import grade_lesson
from helpers.grading.folders import ROOT, load
from helpers.grading.submission import ExerciseReport, SubmissionReport
from tests import lab
from tests.ports import free_port
from tests.sample_class import hand_in
from tests.test_grading import LESSON, full_answers
from tests.test_harm import added, at_the_end
from tests.test_regrade import FullPoints

pytestmark = [pytest.mark.full, pytest.mark.timeout(600)]

HOSTILE = r"""
[a](javascript:hit(1)) [b](<javascript:hit(2)>) [c]( java&#115;cript:hit(3) "t")
[d](data:text/html,<script>hit(4)</script>)
![e](javascript:hit(5)) ![f](x" onerror="hit(6)) <javascript:hit(7)> [g][r1] [h] [i][]

[r1]: javascript:hit(8)
[h]: <data:text/html;base64,PHNjcmlwdD5oaXQoOSk8L3NjcmlwdD4=>
[i]:
   javascript:hit(10)

$\href{javascript:hit(11)}{x}$ $$\href{data:text/html,y}{y}$$ \\(\class{a" onclick="hit(12)}{q}\\)
$a<img src=x onerror=hit(13)>b$

<script>hit(14)</script><img src=x onerror="hit(15)"><svg onload=hit(16)><details open ontoggle=hit(17)>x</details>
<iframe srcdoc="<script>parent.hit(18)</script>"></iframe> `<img src=x onerror=hit(19)>`
"""
# Attributes and scripts of the page that could run a learner's code or lead to a dangerous address.
LIVE = r"""() => {
  const live = [...document.scripts].map(s => s.textContent).filter(t => /hit\(/.test(t));
  for (const element of document.querySelectorAll('*')) for (const {name, value} of element.attributes) {
    const place = value.replace(/[\s\u0000-\u001f]/g, '').toLowerCase();
    const leads = /^(javascript|vbscript|data:(?!image\/))/.test(place);
    if (leads || /^on/.test(name) && /hit/.test(value)) live.push(value);
  }
  return live;
}"""
CLICK = """() => {
  for (const link of document.querySelectorAll('#notebook a')) {
    if (!/^(https?:|\\.\\.)/.test(link.getAttribute('href') || '')) link.click();
  }
}"""


class Shows(FullPoints):
    """A pool that finds every answer right. All outputs and reports contain the hostile text."""

    def judge(self, portion, release, on_judged, hurried):
        outputs = [
            {"output_type": "stream", "name": "stdout", "text": HOSTILE},
            {"output_type": "error", "ename": HOSTILE, "evalue": HOSTILE, "traceback": [HOSTILE]},
            {"output_type": "display_data", "data": {"text/html": HOSTILE, "text/latex": HOSTILE}, "metadata": {}},
            {"output_type": "display_data", "data": {"text/markdown": HOSTILE, "text/plain": HOSTILE}, "metadata": {}},
            {"output_type": "display_data", "data": {"application/javascript": "hit(20)"}, "metadata": {}},
        ]
        scores = {
            name: ExerciseReport(name, 0, worth, False, True, None, "", HOSTILE, "")
            for name, worth in release.checks.items()
        }
        return [(one, SubmissionReport(scores, {cell.id: outputs for cell in one.cells})) for one in portion]


@pytest.fixture
def class_of_one(lesson, tmp_path, monkeypatch):
    folders, config = load(tmp_path / "gradebook")
    cells = [added("markdown", HOSTILE), added("raw", HOSTILE), added("code", f"x = {HOSTILE!r}")]
    for student in ("eve", "<img src=x onerror=hit(30)>"):
        hand_in(folders, lesson, student, full_answers(lesson, {"written_1": HOSTILE}), at_the_end(*cells))
    monkeypatch.setattr("helpers.grading.batch.Pool", Shows)
    outcome = grade_lesson(folders, LESSON, config=config)
    assert [bool(result.problem) for result in outcome.results].count(True) == 1
    return folders


@pytest.fixture
def formgrader(class_of_one, tmp_path):
    """The address of a running Formgrader, on the loopback interface."""
    address = f"http://127.0.0.1:{free_port()}"
    environment = os.environ | {
        "COURSE_GRADEBOOK": str(class_of_one.gradebook),
        "JUPYTER_CONFIG_DIR": str(tmp_path / "settings"),
        "JUPYTER_RUNTIME_DIR": str(tmp_path / "runtime"),
    }
    command = [sys.executable, "-m", "jupyter", "server", "--allow-root", "--no-browser", "--ip=127.0.0.1"]
    command += [f"--port={address.rsplit(':', 1)[1]}", "--IdentityProvider.token=open"]
    command += ["--ServerApp.jpserver_extensions={'nbgrader.server_extensions.formgrader': True}"]
    with (tmp_path / "log").open("w") as log:
        server = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=log)
    try:
        assert lab.wait_until(lambda: answers(f"{address}/api"), 120), (tmp_path / "log").read_text()[-2000:]
        yield address
    finally:
        server.terminate()
        server.wait(20)


def answers(address):
    try:
        urllib.request.urlopen(address, timeout=2).close()
    except (urllib.error.URLError, ConnectionError):
        time.sleep(0.2)
        return False
    return True


def test_no_text_of_a_learner_runs_as_a_script_in_formgrader(formgrader, class_of_one):
    from nbgrader.api import Gradebook

    with Gradebook(class_of_one.db_url, class_of_one.course_id) as gradebook:
        handed_in = gradebook.assignment_submissions(LESSON)
        assert [one.student.id for one in handed_in] == ["eve"]
        page_of_eve = f"submissions/{handed_in[0].notebooks[0].id}/"
    with lab.browser() as page:
        hits = []
        page.expose_function("hit", lambda *number: hits.append(number))
        page.route(lambda url: not url.startswith(formgrader), lambda route: route.abort())
        page.goto(f"{formgrader}/formgrader?token=open")
        for path in (f"manage_submissions/{LESSON}", "manage_students", f"gradebook/{LESSON}/{LESSON}", page_of_eve):
            page.goto(f"{formgrader}/formgrader/{path}", wait_until="domcontentloaded")
            page.wait_for_timeout(1500)
            assert page.evaluate(LIVE) == [], path
        assert "javascript:hit(1)" in page.locator("#notebook").first.inner_text().replace(
            "\N{ZERO WIDTH NON-JOINER}", ""
        )
        page.evaluate(CLICK)
        page.wait_for_timeout(500)
        assert hits == []
