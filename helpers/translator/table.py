"""The facts that `at_work` shows: lines in plain text, or a table with one bar per row in a notebook."""

import html
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from helpers.drawing.colors import BLUE
from helpers.translator.evaluation import LOSS_SENTENCES

NATS = f"nats per word, on {LOSS_SENTENCES} unseen sentences"
EXACT = "unseen sentences that come out word for word"
LEAST_FULL = 0.001  # the longest bar stands for at least this value, so that two losses of 0.00016 are short bars
GRAY = "#808080"  # contrast 3.9 : 1 on white, 4.7 : 1 on JupyterLab's dark page; the blue has 5.2 and 3.6
CELL = "border:0;text-align:left;padding:2px 12px 2px 0"


@dataclass(frozen=True)
class Row:
    """A measured value, shown as a bar with its number.

    kind: the quantity; rows of one kind have a common heading and scale. shown: the value as text. full: the value of a
    bar of full length, or None for the kind's largest value. yours: whether it was measured with the learner's part.
    """

    kind: str
    label: str
    value: float
    shown: str
    remarks: tuple[str, ...] = ()
    full: float | None = None
    yours: bool = False


@dataclass(frozen=True)
class Fact:
    """One result. text: its line in plain text. rows: its rows in the table; without any, the text is a row.

    in_rows: whether the rows of other facts already show it, so that the table leaves it out.
    """

    text: str
    rows: tuple[Row, ...] = ()
    in_rows: bool = False


def compared(facts: Sequence[Fact], finished: Sequence[Fact], bug: bool = False) -> list[Fact]:
    """Each fact, followed by the finished block's fact if that differs.

    bug: whether the part has another function's name. Then facts with equal bars are left out, and so is a heading
    that would have nothing below it.
    """
    result = []
    for fact, other in itertools.zip_longest(facts, finished if len(finished) == len(facts) else []):
        if other is None or other.text == fact.text:
            if other is None or not bug or not fact.rows:
                result.append(fact)
            continue
        what, _, values = other.text.partition(": ")
        same = fact.text.startswith(f"{what}: ")
        line = f"  with the finished block: {values if same else other.text.strip()}"
        rows, in_rows = list(fact.rows), len(fact.rows) == len(other.rows) > 0
        for i, row in enumerate(other.rows if in_rows else ()):
            remark = f"finished block: {row.shown}" + "".join(f" ({remark})" for remark in row.remarks)
            rows[i] = replace(rows[i], remarks=(*rows[i].remarks, remark), yours=True)
        result += [Fact(fact.text, tuple(rows)), Fact(line, in_rows=in_rows)]
    return result if any(not fact.text.endswith(":") for fact in result) else []


def as_html(facts: Sequence[Fact], pictures: Sequence = ()) -> str:
    """The facts as a table, headed by the first fact, with the pictures below it. It has the page's own colors, so it
    is readable on light and on dark pages."""
    head, *rest = facts
    body, kind = [_across(head.text, "font-size:1.15em;font-weight:600", "th")], None
    full = {}
    for row in itertools.chain.from_iterable(fact.rows for fact in rest):
        if math.isfinite(row.value):
            full[row.kind] = row.full or max(full.get(row.kind, LEAST_FULL), row.value)
    for fact in rest:
        if not fact.rows and not fact.in_rows:
            body.append(_across(fact.text, "white-space:pre-wrap"))
        for row in fact.rows:
            if row.kind != kind:
                kind = row.kind
                body.append(_across(kind, "padding-top:8px;opacity:.8", "th"))
            body.append(_bar(row, full.get(kind, 1.0)))
    # Override Jupyter's fixed layout, stripes and right-aligned cells.
    table = f'<table style="border:0;border-collapse:collapse;table-layout:auto;margin:0">{"".join(body)}</table>'
    drawn = "".join(f'<div style="margin-top:8px">{picture._repr_html_()}</div>' for picture in pictures)
    return f'<div style="border-left:4px solid {BLUE};padding:4px 0 4px 12px;margin:4px 0">{table}{drawn}</div>'


def _across(text: str, style: str, tag: str = "td") -> str:
    style = f"{CELL};font-weight:400;{style}"
    return f'<tr style="background:none"><{tag} colspan="4" style="{style}">{html.escape(text)}</{tag}></tr>'


def _bar(row: Row, full: float) -> str:
    """A table row with its bar. full: the value of a bar of full length."""
    length = min(max(row.value / full, 0.0), 1.0) if math.isfinite(row.value) else 0.0
    color, weight = (BLUE, 600) if row.yours else (GRAY, 400)
    label, shown = html.escape(row.label), html.escape(row.shown)
    remarks = "; ".join(f'<span style="white-space:nowrap">{html.escape(remark)}</span>' for remark in row.remarks)
    # At least 2 pixels, because a loss of 0.00016 is small but not zero.
    least = "min-width:2px;" if length else ""
    drawn = (
        f'<div role="img" aria-label="a bar, {100 * length:.0f}% of its full length" '
        'style="width:120px;height:12px;background:rgba(128,128,128,.3)">'
        f'<div style="width:{100 * length:.1f}%;{least}height:12px;background:{color}"></div></div>'
    )
    number = f"{CELL};font-weight:{weight};font-variant-numeric:tabular-nums;white-space:nowrap"
    return (
        f'<tr style="background:none"><th scope="row" style="{CELL};font-weight:{weight}">{label}</th>'
        f'<td style="{CELL}">{drawn}</td><td style="{number}">{shown}</td><td style="{CELL}">{remarks}</td></tr>'
    )
