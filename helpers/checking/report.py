"""A verdict as a person reads it: as text, and as HTML with a picture of a wrong matrix."""

from __future__ import annotations

import base64
import html
import math

import torch

from helpers.checking.verdict import Picture, Verdict
from helpers.checking.vocabulary import VALUES

GREEN, RED, AMBER = "#00694E", "#B03A00", "#8A5A00"
CELL = 16
LOW, MID, HIGH = (230, 97, 1), (247, 247, 247), (94, 60, 153)  # the ends of PuOr, as in the course's figures


def as_text(verdict: Verdict) -> str:
    """The lines of a check."""
    return "\n".join([_headline(verdict), *("  " + line for line in _body(verdict))])


def as_html(verdict: Verdict) -> str:
    """The same lines for a notebook, with yours, target and difference beside each other for a wrong matrix."""
    color = {"✓": GREEN, "✗": RED, "◐": AMBER, "–": "#444"}[_mark(verdict)]
    head = f'<b style="color:{color}">{html.escape(_headline(verdict))}</b>'
    lines = "".join(f"\n  {_marked(line)}" for line in _body(verdict))
    style = (
        "margin:0;white-space:pre-wrap;word-break:normal;overflow-wrap:break-word;"
        "font-family:var(--jp-code-font-family,monospace);line-height:1.45"
    )
    picture = _picture(verdict.picture) if verdict.picture else ""
    return f'<pre style="{style}">{head}{lines}</pre>{picture}'


def _marked(line: str) -> str:
    text = html.escape(line)
    return f'<span style="color:{RED}">{text}</span>' if line.lstrip().startswith("✗") else text


def _mark(verdict: Verdict) -> str:
    if not verdict.answered:
        return "–"
    if verdict.passed:
        return "✓"
    half = any(part.name == VALUES and part.passed for part in verdict.parts)
    return "◐" if half or (verdict.points and verdict.points == verdict.max_points) else "✗"


def points_text(points: float) -> str:
    return f"{points:g}"


def _headline(verdict: Verdict) -> str:
    kind = "bonus points" if verdict.bonus else "points"
    if not verdict.answered:
        worth = f" ({points_text(verdict.max_points)} {kind})" if verdict.max_points else ""
        return f"– {verdict.exercise}   not answered yet{worth}"
    score = f"   {points_text(verdict.points)} of {points_text(verdict.max_points)} {kind}"
    if verdict.max_points and verdict.points == verdict.max_points and not verdict.passed:
        score += " for an honest attempt"
    score = score if verdict.max_points else ""
    return f"{_mark(verdict)} {verdict.exercise}{score}"


def _body(verdict: Verdict) -> list[str]:
    if not verdict.answered:
        return []
    passed = " · ".join(part.name for part in verdict.parts if part.passed)
    if verdict.passed:
        return [line for line in (passed, *verdict.message.splitlines()) if line]
    lines = [f"✓ {passed}"] if passed and _mark(verdict) == "◐" else []
    message = verdict.message.splitlines()
    for part in verdict.parts:
        if not part.passed and (part.name == VALUES or _mark(verdict) == "◐"):
            detail = f": {part.detail}" if part.detail and part.detail not in message else ""
            lines.append(f"✗ {part.name}{detail}" if not (part.name == VALUES and verdict.label) else f"✗ {part.name}")
    return lines + message


def _picture(picture: Picture) -> str:
    """Three small heat maps as one SVG in an <img>, with alt text."""
    want, got = picture.expected.double(), picture.actual.double()
    gap = got - want
    finite = [x[x.isfinite()].abs() for x in (want, got)]
    scale = max([float(x.max()) for x in finite if x.numel()] + [1e-9])
    gap_finite = gap[gap.isfinite()].abs()
    gap_scale = max(float(gap_finite.max()) if gap_finite.numel() else 0.0, 1e-9)
    rows, columns = want.shape
    width, height = columns * CELL, rows * CELL
    panels, x = [], 0
    for title, values, limit in (("yours", got, scale), ("target", want, scale), ("difference", gap, gap_scale)):
        panels.append(f'<g transform="translate({x},18)">{_cells(values, limit)}</g>')
        panels.append(f'<text x="{x}" y="12" font-size="12" font-family="sans-serif">{title}</text>')
        x += max(width, 64) + 24
    axes = f"rows: {picture.axes[0]}, columns: {picture.axes[1]}; " if picture.axes else ""
    wrong = int((~torch.isclose(got, want, 1e-5, 1e-5)).sum())
    largest = f"{gap_scale:.3g}"
    alt = f"{axes}{wrong} of {want.numel()} numbers differ, by at most {largest}; orange below zero, purple above"
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{x}" height="{height + 22}">'
        f'<rect width="100%" height="100%" fill="white"/>{"".join(panels)}</svg>'
    )
    data = base64.b64encode(svg.encode()).decode()
    return f'<img alt="{html.escape(alt, quote=True)}" src="data:image/svg+xml;base64,{data}">'


def _cells(values: torch.Tensor, limit: float) -> str:
    out = []
    for i, row in enumerate(values.tolist()):
        for j, value in enumerate(row):
            title = f"<title>[{i}, {j}] {value:.4g}</title>"
            box = f'x="{j * CELL}" y="{i * CELL}" width="{CELL - 1}" height="{CELL - 1}"'
            out.append(f'<rect {box} fill="{_color(value, limit)}">{title}</rect>')
    return "".join(out)


def _color(value: float, limit: float) -> str:
    if math.isnan(value):
        return "#000"
    share = max(-1.0, min(1.0, value / limit))
    end = HIGH if share > 0 else LOW
    red, green, blue = (round(mid + abs(share) * (to - mid)) for mid, to in zip(MID, end, strict=True))
    return f"#{red:02x}{green:02x}{blue:02x}"
