"""The page that a learner gets back: nbconvert's exporter with the course's own template, which loads nothing."""

import copy
import re
from collections.abc import Iterable
from pathlib import Path

from jinja2 import pass_context
from nbconvert.exporters import HTMLExporter
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from nbformat import from_dict
from traitlets.config import Config

from helpers.grading.class_scores import is_unanswered, number
from helpers.grading.formulas import as_mathml
from helpers.grading.record import Result

LEADS_SOMEWHERE = re.compile(r"https?://|#")
BOUND = re.compile(r"^(?:(?:async\s+)?def|class)\s+(\w+)|^(\w+)\s*(?::[^=\n]+)?=(?!=)", re.MULTILINE)
NOT_DEFINED = re.compile(r"name '(\w+)' is not defined")
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
        settings = Config()
        settings.HTMLExporter.template_name = "classic"  # whose settings color code
        settings.HTMLExporter.extra_template_basedirs = []
        settings.HTMLExporter.extra_template_paths = [str(Path(__file__).parent)]
        settings.HTMLExporter.template_file = "feedback_page.html.jinja"
        settings.NbConvertBase.display_data_priority = [
            "text/html",
            "image/svg+xml",
            "image/png",
            "image/jpeg",
            "text/plain",
        ]
        merged = Config(config or {})
        merged.merge(settings)
        super().__init__(config=merged, **more)

    def from_notebook_node(self, nb, resources=None, **more):
        nb = copy.copy(nb)
        nb.cells = without_echoes(nb.cells)
        return super().from_notebook_node(nb, resources, **more)

    @pass_context
    def markdown2html(self, context, source):
        # Folds have a look of their own here.
        source = re.sub(r"<details style=\"[^\"]*\">", "<details>", source)
        return as_html(source, context.get("cell", {}).get("attachments", {}), anchors=True)


def as_html(markdown: str, attachments: dict | None = None, anchors: bool = False) -> str:
    """Markdown, which has to be harmless, as HTML. anchors: headings can be linked to, as nbconvert's can."""
    renderer = Renderer(escape=False, attachments=attachments, exclude_anchor_links=not anchors, anchor_link_text="")
    return MarkdownWithMath(renderer=renderer).render(markdown)


def without_echoes(cells: list) -> list:
    """The cells; one error is told once. Where a cell raised, as with a syntax error, whatever uses the names that it
    would have defined says so in one quiet sentence, in place of a NameError of its own."""
    lost: set[str] = set()
    kept = []
    for cell in cells:
        if cell.cell_type == "code":
            names = {defined or assigned for defined, assigned in BOUND.findall(cell.source)}
            failed = any(output.output_type == "error" for output in cell.outputs)
            cell = copy.copy(cell)
            cell.outputs = [_quiet(output, lost) for output in cell.outputs]
            lost = lost | names if failed else lost - names
        kept.append(cell)
    return kept


def _quiet(output, lost: set[str]):
    match = NOT_DEFINED.search(output.evalue) if output.get("ename") == "NameError" else None
    if match is None or match[1] not in lost:
        return output
    sentence = f"This cell did not run: <code>{match[1]}</code> is not defined, because its own cell has an error."
    return from_dict(
        {"output_type": "display_data", "metadata": {}, "data": {"text/html": f'<p class="soft">{sentence}</p>'}}
    )


def facts(grades: Iterable, result: Result | None, student: str, penalty: float = 0.0, late: str = "") -> dict:
    """What the page says of points. grades: nbgrader's, or the class report's. student: as a page calls one. penalty:
    points taken off, late: how late in words.

    cells: grade_id -> (name, points in words, state: full, part, none, unanswered or waits); total: in words, None
    where nothing was graded; seen: what was wrong with a submission, None where it could be graded; yours: whether the
    learner can do something about it.
    """
    grades = list(grades)
    cells = {grade.name: _told(grade, result) for grade in grades}
    by_hand = any(grade.manual_score is not None for grade in grades)
    problem = result.problem if result else None
    score, worth = (sum(values) for values in zip(*((one.score, one.max_score) for one in grades), strict=True))
    return {
        "student": student,
        "cells": cells,
        "total": None if problem and not by_hand else f"{_points(score - penalty)} of {_points(worth)} points",
        "waiting": sum(state == "waits" for _, _, state in cells.values()),
        "late": late,
        "penalty": _points(penalty) if penalty else "",
        "seen": FOR_A_TEACHER.sub("", problem).rstrip(".") if problem else None,
        "yours": bool(problem) and not result.again and "by hand" not in problem,
    }


def _told(grade, result: Result | None) -> tuple[str, str, str]:
    name = grade.name.removeprefix("check_")
    score, worth = grade.score, grade.max_score
    if grade.manual_score is None and grade.needs_manual_grade:
        return name, f"waits for your teacher ({_points(worth)} points)" if worth else "waits for your teacher", "waits"
    if is_unanswered(grade, result):
        return name, f"not answered ({_points(worth)} points)" if worth else "not answered (bonus)", "unanswered"
    if not worth:
        return name, f"{_points(score)} bonus points", "full" if score else "none"
    state = "full" if score >= worth - 1e-9 else "part" if score > 0 else "none"
    return name, f"{_points(score)} of {_points(worth)}", state


def _points(value: float | None) -> str:
    return number(value or 0.0)
