"""Render a verdict as text, and as HTML with a picture of a wrong matrix."""

import base64
import html
import math
from dataclasses import dataclass

import numpy as np
import torch

from helpers.checking.verdict import Picture, Verdict
from helpers.checking.vocabulary import UNCHANGED, VALUES
from helpers.checking.wording import entry_at, two_numbers
from helpers.drawing.dark import DARK

# Mixed with the color of the surrounding text, so that they are darker on a light page and lighter on a dark one.
HUES = {"✓": "#009E73", "✗": "#E0551B", "◐": "#B8860B", "○": "#B8860B"}
HUE_PERCENT = 55
CELL = 16  # pixels
LOW, MID, HIGH = (230, 97, 1), (247, 247, 247), (94, 60, 153)  # the ends of PuOr, as in the course's figures
SHOWN_ONCE = ("in line ", "in your helper ", "where ")  # lines that are not repeated: where it failed, what a stub does
MOST_PRINTED = 8  # lines of an answer's own output
MOST_CASES = 3  # failed parts that are described in full
# If the page supports :has, the error that follows is hidden below an unanswered exercise, and has no background color
# below a wrong one.
ERROR = ':is([data-mime-type$="error"],[data-mime-type$="stderr"])'
QUIET = (
    f"<style>.jp-OutputArea-child:has(.course-not-answered)~.jp-OutputArea-child:has({ERROR}){{display:none}}</style>"
)
CALM = (
    "<style>.jp-OutputArea-child:has(.course-not-right)~.jp-OutputArea-child "
    f"{ERROR}{{background:none!important}}</style>"
)


@dataclass(frozen=True)
class Line:
    """A line of text, its indentation level, and the mark that it begins with."""

    text: str
    depth: int = 1
    mark: str = ""

    def __str__(self):
        return "  " * self.depth + (f"{self.mark} " if self.mark else "") + self.text


def as_text(verdict: Verdict) -> str:
    return "\n".join(map(str, lines(verdict)))


def as_html(verdict: Verdict) -> str:
    """The same lines for a notebook, and for a wrong matrix heat maps of yours, expected and the difference."""
    rows = "".join(map(_row, lines(verdict)))
    style = "margin:0;font-family:var(--jp-code-font-family,monospace);line-height:1.45;overflow-wrap:break-word"
    kind = below = ""
    if not verdict.answered:
        kind, style, below = 'class="course-not-answered" ', f"{style};opacity:.8", QUIET
    elif not verdict.passed:
        kind, below = 'class="course-not-right" ', (_picture(verdict.picture) if verdict.picture else "") + CALM
    return f'<div {kind}style="{style}">{rows}</div>{below}'


def _row(line: Line) -> str:
    hang = 2 * line.depth + 2
    style = f"white-space:pre-wrap;padding-left:{hang}ch;text-indent:-{2 if line.depth else hang}ch"
    mark = f'<span style="{tint(line.mark)}font-weight:bold">{line.mark}</span> ' if line.mark else ""
    text = html.escape(line.text)
    if not line.depth:
        text = f'<b style="{tint(line.mark)}">{text}</b>'
    return f'<div style="{style}">{mark}{text}</div>'


def tint(mark: str) -> str:
    """A mark's color as CSS. Browsers without color-mix use the text's own color."""
    return f"color:inherit;color:color-mix(in srgb,{HUES[mark]} {HUE_PERCENT}%,currentColor);" if mark in HUES else ""


def counted(points: float, bonus: bool = False) -> str:
    """ "20 points", "1 point", "10 bonus points"."""
    return f"{points:g} {'bonus ' if bonus else ''}{'point' if points == 1 else 'points'}"


def _headline(verdict: Verdict) -> Line:
    worth = counted(verdict.max_points, verdict.bonus) if verdict.max_points else ""
    wrong_choice = (verdict.mistake or "").startswith("option_")  # of a quiz
    partial = verdict.points or any(part.name == VALUES and part.passed for part in verdict.parts)
    marks = ((not verdict.answered, "–"), (verdict.passed, "✓"), (wrong_choice, "○"), (partial, "◐"), (True, "✗"))
    result = f"{verdict.points:g} of {worth}" if worth else ""
    if not verdict.answered:
        result = "not answered yet" + (f" ({worth})" if worth else "")
    elif wrong_choice and worth:
        result = f"not the best choice; your attempt keeps its {worth}"
    return Line(f"{verdict.exercise}   {result}".rstrip(), 0, next(mark for holds, mark in marks if holds))


def lines(verdict: Verdict) -> list[Line]:
    """All lines of a verdict: the message, the parts that passed, those that failed, and what the answer printed.

    At most MOST_CASES failed parts are described; the others are only named.
    """
    rows = [_headline(verdict)]
    mark = rows[0].mark
    if not verdict.answered:
        return rows
    failed = [part for part in verdict.parts if not part.passed]
    failed = failed if mark == "◐" else [part for part in failed if part.name in (VALUES, UNCHANGED)]
    names = {part.name for part in failed}  # these get a line of their own below
    rows += [Line(line) for line in map(str.strip, verdict.message.splitlines()) if line and line not in names]
    passed = " · ".join(part.name for part in verdict.parts if part.passed)
    if passed and mark in "✓◐":
        rows.append(Line(passed, 1, "" if verdict.passed else "✓"))
    shown = {row.text for row in rows}
    for part in failed[:MOST_CASES]:
        details = [line.strip() for line in part.detail.splitlines() if line.strip()]
        repeated = shown.issuperset(line for line in details if not line.startswith("with "))
        if mark == "◐" or not repeated or not details:
            rows.append(Line(part.name, 1, "✗"))
        if not repeated:
            rows += [Line(line, 3) for line in details if not (line in shown and line.startswith(SHOWN_ONCE))]
        shown |= {part.name, *details}
    if failed[MOST_CASES:]:
        rows.append(Line(" · ".join(part.name for part in failed[MOST_CASES:]), 1, "✗"))
    if printed := verdict.printed.rstrip().splitlines():
        more = ["…"] if len(printed) > MOST_PRINTED else []
        rows += [Line("your code printed:"), *(Line(line[:200], 3) for line in [*printed[:MOST_PRINTED], *more])]
    return rows


def _picture(picture: Picture) -> str:
    """Three small heat maps in one SVG image with alt text, and below it the numbers of the framed cell."""
    want, got = picture.expected.double(), picture.actual.double()
    gap = got - want

    def size(x: torch.Tensor) -> float:
        return max(map(float, x[x.isfinite()].abs()), default=0.0)

    scale, gap_scale = max(size(want), size(got), 1e-9), max(size(gap), 1e-9)
    rows, columns = want.shape
    names = picture.axes[-2:] if len(picture.axes) >= 2 else ("row", "column")
    i, j = worst = picture.worst
    width, height, left, top = columns * CELL, rows * CELL, 28, 36
    box = f'x="{j * CELL - 1}" y="{i * CELL - 1}" width="{CELL + 1}" height="{CELL + 1}"'
    frame = f'<rect {box} fill="none" stroke="black" stroke-width="2"/>'
    panels, x = [], left
    for title, values, limit in (("yours", got, scale), ("expected", want, scale), ("difference", gap, gap_scale)):
        inside = _cells(values, limit) + frame
        panels.append(f'<text x="{x}" y="12" font-weight="bold">{title}</text>')
        panels.append(f'<text x="{x}" y="{top - 6}">{html.escape(names[1])} →</text>')
        panels.append(f'<g transform="translate({x},{top})">{inside}</g>')
        x += max(width, 10 * len(names[1]) + 20, 80) + 24
    turned = f'<text transform="translate(10,{top}) rotate(90)">{html.escape(names[0])} →</text>'
    tall = top + max(height, 9 * len(names[0]) + 20) + 4
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{x}" height="{tall}" font-size="12" font-family="sans-serif">'
        f'<rect width="100%" height="100%" fill="white"/>{turned}{"".join(panels)}</svg>'
    )
    a, b = two_numbers(picture.expected[worst].item(), picture.actual[worst].item())
    floats = picture.expected.is_floating_point() and size(gap) > 0
    most = "most" if floats else "first"
    where = ", ".join(filter(None, [picture.item, entry_at(list(worst), picture.axes)]))
    wrong = int((~torch.isclose(got, want, 1e-5, 1e-5)).sum())
    alt = (
        f"rows: {names[0]}, columns: {names[1]}; {wrong} of {want.numel()} numbers differ, {most} at {where}: "
        f"yours {b}, expected {a}; orange below zero, purple above"
    )
    data = base64.b64encode(svg.encode()).decode()
    largest = f"; the largest difference is {gap_scale:.2g}, on a color scale of its own" if floats else ""
    below = f"framed: {where}: yours {b}, expected {a}{largest}"
    return (
        f'<img class="on-white" style="display:block;margin:6px 0 2px" alt="{html.escape(alt, quote=True)}" '
        f'src="data:image/svg+xml;base64,{data}"><div>{html.escape(below)}</div>{DARK}'
    )


def _cells(values: torch.Tensor, limit: float) -> str:
    out = ""
    for (i, j), value in np.ndenumerate(values.numpy()):
        box = f'x="{j * CELL}" y="{i * CELL}" width="{CELL - 1}" height="{CELL - 1}"'
        out += f'<rect {box} fill="{_color(value, limit)}"><title>[{i}, {j}] {value:.4g}</title></rect>'
    return out


def _color(value: float, limit: float) -> str:
    if math.isnan(value):
        return "#777"
    fraction = max(-1.0, min(1.0, value / limit))
    end = HIGH if fraction > 0 else LOW
    red, green, blue = (round(mid + abs(fraction) * (to - mid)) for mid, to in zip(MID, end, strict=True))
    return f"#{red:02x}{green:02x}{blue:02x}"
