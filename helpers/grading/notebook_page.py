"""A graded notebook as a self-contained HTML page, for the learner as feedback or for the teacher."""

import base64
import copy
import functools
import html
import re
from collections.abc import Iterable

import nh3
from latex2mathml.converter import convert
from nbconvert.filters import ansi2html
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from nbformat import from_dict
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from helpers.grading.class_scores import is_unanswered, number
from helpers.grading.record import Result, joined
from helpers.grading.safe_text import template
from helpers.grading.sanitize import PICTURES

FORMATTER = HtmlFormatter(nowrap=True)
LEADS_SOMEWHERE = re.compile(r"https?://|#")
BOUND = re.compile(r"^(?:(?:async\s+)?def|class)\s+(\w+)|^(\w+)\s*(?::[^=\n]+)?=(?!=)", re.MULTILINE)
NOT_DEFINED = re.compile(r"name '(\w+)' is not defined")
FOR_A_TEACHER = re.compile(r"[.;:]? (?:Ask for |[Gg]rade it by hand).*")
LONGEST_FORMULA = 2_000  # characters; a longer one is shown as its source
TAGS = set(
    "math mrow mi mn mo ms mtext mspace mfrac msqrt mroot msub msup msubsup munder mover munderover mtable mtr mtd "
    "mstyle mpadded mphantom".split()
)
# latex2mathml copies the argument of \text unchanged, including HTML tags, so its output is sanitized.
MATHML = nh3.Cleaner(
    tags=TAGS,
    clean_content_tags={"script", "style"},
    attributes={
        "math": {"display"},
        "mo": {"stretchy", "fence", "form", "minsize", "maxsize"},
        "mspace": {"width"},
        "mtd": {"columnalign"},
        "mtext": {"mathvariant"},
        "mstyle": {"displaystyle", "scriptlevel"},
    },
    link_rel=None,
)
WORDS = re.compile(r"\\text(?:tt|rm|it|bf)?\{[^{}]*+\}")
BARS = re.compile(r"\\[lr]Vert(?![A-Za-z])")  # latex2mathml does not know them after \big


def as_mathml(formula: str, block: bool = False) -> str:
    """A TeX formula, without its dollar signs, as safe MathML; its source as code if it cannot be converted."""
    try:
        if len(formula) > LONGEST_FORMULA:
            raise ValueError("too long")
        tex = WORDS.sub(lambda match: match[0].replace("\\_", "_"), BARS.sub("‖ ", formula))
        return MATHML.clean(convert(tex, display="block" if block else "inline"))
    except Exception:  # a TeX parser may raise anything for what a learner typed
        tag = "pre" if block else "code"
        return f"<{tag}>{html.escape(formula, quote=False)}</{tag}>"


class Renderer(IPythonRenderer):
    """Renders Markdown as nbconvert does, except that formulas become MathML and relative links become plain text."""

    def inline_math(self, body: str) -> str:
        return as_mathml(body)

    def block_math(self, body: str) -> str:
        return as_mathml(body, block=True)

    def latex_environment(self, name: str, body: str) -> str:
        return as_mathml(f"\\begin{{{name}}}{body}\\end{{{name}}}", block=True)

    def link(self, text: str, url: str, title: str | None = None) -> str:
        return super().link(text, url, title) if LEADS_SOMEWHERE.match(url) else text


def as_page(cells: list, facts: dict, lesson: str, **teacher) -> str:
    """The page for a notebook's cells, which the recorder has sanitized. facts: the result of `facts`. teacher: title,
    notes and the address of the class report, which only a teacher's page has."""
    styles = FORMATTER.get_style_defs(".code")
    return _template().render(cells=without_echoes(cells), facts=facts, lesson=lesson, styles=styles, **teacher)


@functools.cache
def _template():
    def highlighted(source: str) -> str:
        return highlight(source, PythonLexer(), FORMATTER)

    filters = {"ansi": ansi2html, "joined": joined, "picture": _picture, "markdown": _markdown}
    return template("notebook_page.html.jinja", highlighted=highlighted, **filters)


def _markdown(source: str, attachments=None) -> str:
    # This page has its own style for folded sections.
    return as_html(re.sub(r"<details style=\"[^\"]*\">", "<details>", source), attachments or {}, anchors=True)


def _picture(output) -> str:
    """An output's picture as a data URL; "" if it has none."""
    if svg := output.data.get("image/svg+xml"):
        return f"data:image/svg+xml;base64,{base64.b64encode(joined(svg).encode()).decode()}"
    return next((f"data:{mime};base64,{joined(output.data[mime])}" for mime in PICTURES if mime in output.data), "")


def as_html(markdown: str, attachments: dict | None = None, anchors: bool = False) -> str:
    """Markdown, which must be sanitized already, as HTML. anchors: give headings links, as nbconvert does."""
    renderer = Renderer(escape=False, attachments=attachments, exclude_anchor_links=not anchors, anchor_link_text="¶")
    return MarkdownWithMath(renderer=renderer).render(markdown)


def without_echoes(cells: list) -> list:
    """The cells, without the errors that follow from another one. A cell that raised, for example a SyntaxError, leaves
    its names undefined; in each later cell that uses these, an inconspicuous sentence replaces the NameError."""
    undefined: set[str] = set()
    shown = []
    for cell in cells:
        if cell.cell_type == "code":
            names = {defined or assigned for defined, assigned in BOUND.findall(cell.source)}
            failed = any(output.output_type == "error" for output in cell.outputs)
            cell = copy.copy(cell)
            cell.outputs = [_quiet(output, undefined) for output in cell.outputs]
            undefined = undefined | names if failed else undefined - names
        shown.append(cell)
    return shown


def _quiet(output, undefined: set[str]):
    match = NOT_DEFINED.search(output.evalue) if output.get("ename") == "NameError" else None
    if match is None or match[1] not in undefined:
        return output
    sentence = f"This cell did not run: <code>{match[1]}</code> is not defined, because its own cell has an error."
    return from_dict(
        {"output_type": "display_data", "metadata": {}, "data": {"text/html": f'<p class="soft">{sentence}</p>'}}
    )


def facts(grades: Iterable, result: Result | None, student: str, penalty: float = 0.0, late: str = "") -> dict:
    """What the page says about points.

    grades: nbgrader's or the class report's, one per graded cell. student: the name that the page shows. penalty:
    points deducted. late: how late the submission was, in words.

    Returns a dict with student, late, and
    - cells: grade_id -> (name, points in words, state: full, part, none, unanswered or waits)
    - total, penalty: in words; total is None if nothing was graded
    - waiting: the number of cells that wait for the teacher
    - problem: what was wrong with the submission, None if it could be graded; fixable: whether the learner can fix it
    """
    grades = list(grades)
    cells = {grade.name: _outcome(grade, result) for grade in grades}
    by_hand = any(grade.manual_score is not None for grade in grades)
    problem = result.problem if result else None
    score, worth = sum(grade.score for grade in grades), sum(grade.max_score for grade in grades)
    return {
        "student": student,
        "cells": cells,
        "total": None if problem and not by_hand else f"{number(score - penalty)} of {number(worth)} points",
        "waiting": sum(state == "waits" for _, _, state in cells.values()),
        "late": late,
        "penalty": number(penalty) if penalty else "",
        "problem": FOR_A_TEACHER.sub("", problem).rstrip(".") if problem else None,
        "fixable": bool(problem) and not result.again and "by hand" not in problem,
    }


def _outcome(grade, result: Result | None) -> tuple[str, str, str]:
    """The name of a graded cell, its points in words and its state, as in `facts`."""
    name = grade.name.removeprefix("check_")
    score, worth = grade.score, grade.max_score
    if grade.manual_score is None and grade.needs_manual_grade:
        return name, f"waits for your teacher ({number(worth)} points)" if worth else "waits for your teacher", "waits"
    if is_unanswered(grade, result):
        return name, f"not answered ({number(worth)} points)" if worth else "not answered (bonus)", "unanswered"
    if not worth:
        return name, f"{number(score)} bonus points", "full" if score else "none"
    state = "full" if score >= worth - 1e-9 else "part" if score > 0 else "none"
    return name, f"{number(score)} of {number(worth)}", state
