"""What `at_work` says, fact by fact: a line each where there is plain text, one table with a bar a row on a page."""

import html
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from helpers.drawing.colors import BLUE
from helpers.translator.evaluation import LOSS_SENTENCES

NATS = f"nats per word, on {LOSS_SENTENCES} unseen sentences"
EXACT = "unseen sentences that come out word for word"
LEAST_FULL = 0.001  # a longest bar stands for this much at least: 0.00016 nats beside 0.00016 are two short bars
GRAY = "#808080"  # 3.9 : 1 on white, 4.7 : 1 on JupyterLab's dark page; the blue has 5.2 and 3.6
CELL = "border:0;text-align:left;padding:2px 12px 2px 0"


@dataclass(frozen=True)
class Row:
    """A measured value: a bar, and its number beside it.

    kind: what is measured; rows of a kind stand under one heading and share one scale. shown: the value as it is said.
    full: what the longest bar stands for, the largest value of the kind if None. yours: of the learner's own part.
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
    """One thing that is said. text: its line; rows: its rows in the table, where it has none it is a row of words.

    in_rows: what it says stands in the rows of other facts.
    """

    text: str
    rows: tuple[Row, ...] = ()
    in_rows: bool = False


def beside(facts: Sequence[Fact], usual: Sequence[Fact], bug: bool = False) -> list[Fact]:
    """Each fact, and after it what the finished block says there, where that is something else.

    bug: bars that are as ever are not drawn again, and a line that opens a list stays only above one.
    """
    said = []
    for fact, other in itertools.zip_longest(facts, usual if len(usual) == len(facts) else []):
        if other is None or other.text == fact.text:
            if other is None or not bug or not fact.rows:
                said.append(fact)
            continue
        what, _, numbers = other.text.partition(": ")
        same = fact.text.startswith(f"{what}: ")
        line = f"  with the finished block: {numbers if same else other.text.strip()}"
        rows, compared = list(fact.rows), len(fact.rows) == len(other.rows) > 0
        for i, finished in enumerate(other.rows if compared else ()):
            usual = f"finished block: {finished.shown}" + "".join(f" ({remark})" for remark in finished.remarks)
            rows[i] = replace(rows[i], remarks=(*rows[i].remarks, usual), yours=True)
        said += [Fact(fact.text, tuple(rows)), Fact(line, in_rows=compared)]
    return said if any(not fact.text.endswith(":") for fact in said) else []


def as_html(facts: Sequence[Fact], pictures: Sequence = ()) -> str:
    """The facts as one table and the pictures under it, in the page's own colors: readable on a light and on a dark
    page. The first fact is its heading."""
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
    # Jupyter gives tables a fixed layout, stripes and right-aligned cells.
    table = f'<table style="border:0;border-collapse:collapse;table-layout:auto;margin:0">{"".join(body)}</table>'
    drawn = "".join(f'<div style="margin-top:8px">{picture._repr_html_()}</div>' for picture in pictures)
    return f'<div style="border-left:4px solid {BLUE};padding:4px 0 4px 12px;margin:4px 0">{table}{drawn}</div>'


def _across(text: str, style: str, tag: str = "td") -> str:
    style = f"{CELL};font-weight:400;{style}"
    return f'<tr style="background:none"><{tag} colspan="4" style="{style}">{html.escape(text)}</{tag}></tr>'


def _bar(row: Row, full: float) -> str:
    """A row with its bar. full: what the longest one stands for."""
    share = min(max(row.value / full, 0.0), 1.0) if math.isfinite(row.value) else 0.0
    color, weight = (BLUE, 600) if row.yours else (GRAY, 400)
    label, shown = html.escape(row.label), html.escape(row.shown)
    remarks = "; ".join(f'<span style="white-space:nowrap">{html.escape(remark)}</span>' for remark in row.remarks)
    # The least bar that one sees is 2 pixels wide: a loss of 0.00016 is small and not nothing.
    least = "min-width:2px;" if share else ""
    drawn = (
        f'<div role="img" aria-label="a bar, {100 * share:.0f}% of its full length" '
        'style="width:120px;height:12px;background:rgba(128,128,128,.3)">'
        f'<div style="width:{100 * share:.1f}%;{least}height:12px;background:{color}"></div></div>'
    )
    number = f"{CELL};font-weight:{weight};font-variant-numeric:tabular-nums;white-space:nowrap"
    return (
        f'<tr style="background:none"><th scope="row" style="{CELL};font-weight:{weight}">{label}</th>'
        f'<td style="{CELL}">{drawn}</td><td style="{number}">{shown}</td><td style="{CELL}">{remarks}</td></tr>'
    )
