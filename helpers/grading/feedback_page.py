"""The page that a learner gets back: nbconvert's exporter with the course's own template, which loads nothing."""

from __future__ import annotations

import re
from pathlib import Path

from jinja2 import pass_context
from nbconvert.exporters import HTMLExporter
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from traitlets.config import Config

from helpers.grading.formulas import as_mathml
from helpers.grading.record import Result

LEADS_SOMEWHERE = re.compile(r"https?://|#")
FOR_A_TEACHER = re.compile(r"[.;:]? (?:Ask for |[Gg]rade it by hand).*")


class Renderer(IPythonRenderer):
    """Markdown as nbconvert renders it, except for formulas and for links into a course that is not there."""

    def inline_math(self, body: str) -> str:
        return as_mathml(body)

    def block_math(self, body: str) -> str:
        return as_mathml(body, block=True)

    def latex_environment(self, name: str, body: str) -> str:
        return as_mathml(f"\\begin{{{name}}}{body}\\end{{{name}}}", block=True)

    def link(self, text: str, url: str, title: str | None = None) -> str:
        return super().link(text, url, title) if LEADS_SOMEWHERE.match(url) else text


class FeedbackPage(HTMLExporter):
    """A learner's notebook with points, reports and comments. `resources["nbgrader"]` holds what `facts` returns."""

    def __init__(self, config=None, **more):
        ours = Config()
        ours.HTMLExporter.template_name = "classic"  # whose settings color code
        ours.HTMLExporter.extra_template_basedirs = []
        ours.HTMLExporter.extra_template_paths = [str(Path(__file__).parent)]
        ours.HTMLExporter.template_file = "feedback_page.html.jinja"
        ours.NbConvertBase.display_data_priority = [
            "text/html",
            "image/svg+xml",
            "image/png",
            "image/jpeg",
            "text/plain",
        ]
        merged = Config(config or {})
        merged.merge(ours)
        super().__init__(config=merged, **more)

    @pass_context
    def markdown2html(self, context, source):
        attachments = context.get("cell", {}).get("attachments", {})
        renderer = Renderer(escape=False, attachments=attachments, exclude_anchor_links=False, anchor_link_text="")
        # Folds have a look of their own here.
        return MarkdownWithMath(renderer=renderer).render(re.sub(r"<details style=\"[^\"]*\">", "<details>", source))


def facts(recorded, result: Result | None) -> dict:
    """What the page says of points. recorded: nbgrader's SubmittedNotebook.

    cells: grade_id -> (name, points in words, state: full, part, none, unanswered or waits); total: in words, None
    where nothing was graded; seen: what was wrong with a submission, None where it could be graded; yours: whether the
    learner can do something about it.
    """
    cells, by_hand = {}, False
    problem = result.problem if result else None
    for grade in recorded.grades:
        by_hand = by_hand or grade.manual_score is not None
        cells[grade.name] = _told(grade, result)
    score = recorded.score - (recorded.late_submission_penalty or 0.0)
    waiting = sum(state == "waits" for _, _, state in cells.values())
    return {
        "cells": cells,
        "total": None if problem and not by_hand else f"{_points(score)} of {_points(recorded.max_score)} points",
        "waiting": waiting,
        "late": _points(recorded.late_submission_penalty) if recorded.late_submission_penalty else "",
        "seen": FOR_A_TEACHER.sub("", problem).rstrip(".") if problem else None,
        "yours": bool(problem) and not result.again and "by hand" not in problem,
    }


def _told(grade, result: Result | None) -> tuple[str, str, str]:
    name = grade.name.removeprefix("check_")
    score, worth = grade.score, grade.max_score
    if grade.manual_score is None and grade.needs_manual_grade:
        return name, f"waits for your teacher ({_points(worth)} points)" if worth else "waits for your teacher", "waits"
    if grade.manual_score is None and not score and _unanswered(grade, name, result):
        return name, f"not answered ({_points(worth)} points)" if worth else "not answered (bonus)", "unanswered"
    if not worth:
        return name, f"{_points(score)} bonus points", "full" if score else "none"
    state = "full" if score >= worth - 1e-9 else "part" if score > 0 else "none"
    return name, f"{_points(score)} of {_points(worth)}", state


def _unanswered(grade, name: str, result: Result | None) -> bool:
    if not grade.name.startswith("check_"):  # a written question that nobody touched has 0 points at once
        return grade.auto_score == 0
    return result is not None and result.mistakes.get(name, [""])[0] == "not_answered"


def _points(value: float | None) -> str:
    return f"{round(value or 0.0, 2):g}"
