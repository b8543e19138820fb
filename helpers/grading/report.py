"""The class report: one page of HTML that needs nothing else, and a CSV file for a learning platform."""

from __future__ import annotations

import csv
import html
import io
import statistics
from collections import Counter
from dataclasses import dataclass, field

from helpers.grading.folders import Folders
from helpers.grading.record import Result, read_result, write_atomically

HONEST = (
    "Values and gradients are compared outside the learner's process and cannot be forged there. Forbidden calls, "
    "untouched inputs and memory can only be observed inside it: with effort that can be evaded. Attempts that were "
    "noticed are among the flags; an answer that matters is worth a look."
)


@dataclass
class Column:
    """One graded cell. kind: exercise, bonus, quiz or written."""

    grade_id: str
    name: str
    kind: str
    worth: float


@dataclass
class Row:
    """One student. scores by grade_id, None while a written answer waits for a person."""

    student: str
    scores: dict[str, float | None]
    total: float
    penalty: float
    notes: list[str]


@dataclass
class ClassReport:
    lesson: str
    columns: list[Column] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    results: dict[str, Result] = field(default_factory=dict)
    to_grade: int = 0

    @property
    def totals(self) -> dict[str, float]:
        return {row.student: row.total for row in self.rows}

    @property
    def worth(self) -> float:
        return sum(column.worth for column in self.columns if column.kind != "bonus")


def write_report(folders: Folders, lesson: str) -> ClassReport:
    """Read everybody's scores from the gradebook, hand-given ones included, and write the page and the CSV file."""
    report = read_class(folders, lesson)
    write_atomically(folders.report(lesson, "html"), as_page(report))
    write_atomically(folders.report(lesson, "csv"), as_csv(report))
    return report


def read_class(folders: Folders, lesson: str) -> ClassReport:
    """The scores of everybody who was graded."""
    from nbgrader import api

    report = ClassReport(lesson)
    with api.Gradebook(folders.db_url, folders.course_id) as gradebook:
        for cell in gradebook.find_notebook(lesson, lesson).grade_cells:
            report.columns.append(_column(cell))
        order = _order(folders, lesson)
        report.columns.sort(key=lambda column: order.get(column.grade_id, len(order)))
        found = (
            gradebook.db.query(
                api.Student.id,
                api.GradeCell.name,
                api.Grade.score,
                api.Grade.manual_score,
                api.Grade.needs_manual_grade,
                api.SubmittedNotebook.late_submission_penalty,
            )
            .select_from(api.Grade)
            .join(api.GradeCell, api.GradeCell.id == api.Grade.cell_id)
            .join(api.SubmittedNotebook, api.SubmittedNotebook.id == api.Grade.notebook_id)
            .join(api.SubmittedAssignment, api.SubmittedAssignment.id == api.SubmittedNotebook.assignment_id)
            .join(api.Assignment, api.Assignment.id == api.SubmittedAssignment.assignment_id)
            .join(api.Student, api.Student.id == api.SubmittedAssignment.student_id)
            .filter(api.Assignment.name == lesson)
            .order_by(api.Student.id)
        )
        rows: dict[str, Row] = {}
        for student, grade_id, score, manual, waits, penalty in found:
            if student not in rows:
                result = read_result(folders, lesson, student)
                if result is None:  # its recording was cut short; it is graded again next time
                    continue
                report.results[student] = result
                notes = [text for text in [result.problem, *result.flags] if text]
                rows[student] = Row(student, {}, -(penalty or 0.0), penalty or 0.0, notes)
            row = rows[student]
            waiting = waits and manual is None
            row.scores[grade_id] = None if waiting else score
            row.total += score
            report.to_grade += bool(waiting) and not report.results[student].problem
    report.rows = list(rows.values())
    return report


def _column(cell) -> Column:
    name = cell.name.removeprefix("check_")
    if name.startswith("quiz_"):
        kind = "quiz"
    elif not cell.name.startswith("check_"):
        kind = "written"
    else:
        kind = "exercise" if cell.max_score > 0 else "bonus"
    return Column(cell.name, name, kind, cell.max_score)


def _order(folders: Folders, lesson: str) -> dict[str, int]:
    from helpers.grading.intake import read_release

    return {grade_id: place for place, grade_id in enumerate(read_release(folders.notebook(lesson)).graded)}


def as_csv(report: ClassReport) -> str:
    """One line a student: student, lesson, each exercise, total, flags. No cell can be read as a formula."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\r\n")
    writer.writerow(["student", "lesson", *(_inert(column.name) for column in report.columns), "total", "flags"])
    for row in report.rows:
        scores = [_number(row.scores.get(column.grade_id)) for column in report.columns]
        cells = [row.student, report.lesson, *scores, _number(row.total), "; ".join(row.notes)]
        writer.writerow([_inert(cell) for cell in cells])
    return file.getvalue()


def _inert(cell: str) -> str:
    """Spreadsheets run a cell that begins like a formula; an apostrophe makes it text. Numbers stay numbers."""
    try:
        float(cell)
        return cell if cell[:1].isdigit() or cell[:2].lstrip("-")[:1].isdigit() else "'" + cell
    except ValueError:
        pass
    return "'" + cell if cell.lstrip(" ")[:1] in ("=", "+", "-", "@", "\t", "\r", "\n", "|", "%") else cell


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}" if abs(value) < 1000 else f"{value:g}"


STYLE = """
:root { color-scheme: light; --ink: #1b1f24; --soft: #57606a; --line: #d8dee4; --blue: #0072B2; --tint: #eef5fa; }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 76rem; padding: 2rem 1.5rem 4rem; color: var(--ink); background: #fff;
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif; }
h1 { font-size: 1.7rem; margin: 0 0 .2rem; } h2 { font-size: 1.2rem; margin: 2.4rem 0 .6rem; }
p { max-width: 46rem; } .soft { color: var(--soft); }
.facts { display: flex; flex-wrap: wrap; gap: .8rem; margin: 1.4rem 0; padding: 0; list-style: none; }
.facts li { border: 1px solid var(--line); border-radius: .5rem; padding: .6rem 1rem; min-width: 8rem; }
.facts b { display: block; font-size: 1.5rem; line-height: 1.2; font-variant-numeric: tabular-nums; }
.facts span { color: var(--soft); font-size: .9rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .93rem; min-width: 40rem; }
caption { text-align: left; color: var(--soft); padding-bottom: .4rem; }
th, td { text-align: left; padding: .4rem .6rem; border-bottom: 1px solid var(--line); vertical-align: top; }
thead th { border-bottom: 2px solid var(--ink); vertical-align: bottom; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
th[scope=row] { font-weight: 600; white-space: nowrap; }
.many th, .many td { padding: .3rem .45rem; }
code { font: .93em ui-monospace, "DejaVu Sans Mono", monospace; }
.bar { display: inline-block; width: 7rem; height: .6rem; margin-right: .7rem;
  background: #e6ebf0; border-radius: .3rem; overflow: hidden; }
.bar i { display: block; height: 100%; background: var(--blue); }
td.full { background: #e3f3ec; } td.part { background: #fdf3dc; } td.none { background: #fbe9e2; }
.note { border-left: 4px solid var(--blue); background: var(--tint); padding: .7rem 1rem; margin: 2rem 0; }
figure { margin: 0; } svg text { font: 12px system-ui, sans-serif; fill: var(--soft); }
@media print { body { max-width: none; padding: 0; } }
"""


def as_page(report: ClassReport) -> str:
    """The whole page; everything in it that came from learners is escaped text."""
    parts = [_head(report)]
    if report.rows:
        parts += [_histogram(report), _exercises(report), _mistakes(report), _flags(report), _students(report)]
    parts.append(f'<p class="note"><b>What this report can promise.</b> {html.escape(HONEST)}</p>')
    if any(result.unsafe for result in report.results.values()):
        unsafe = "<b>Graded without a sandbox</b> (--unsafe): learner code ran with your rights."
        parts.append(f'<p class="note">{unsafe}</p>')
    title = html.escape(f"Class report: {report.lesson}")
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<title>{title}</title>\n'
        f"<style>{STYLE}</style>\n</head>\n<body>\n<main>\n" + "\n".join(parts) + "\n</main>\n</body>\n</html>\n"
    )


def _head(report: ClassReport) -> str:
    totals = list(report.totals.values())
    flagged = sum(bool(row.notes) for row in report.rows)
    facts = [(str(len(report.rows)), "submission" if len(report.rows) == 1 else "submissions")]
    if totals:
        facts += [
            (f"{statistics.mean(totals):.1f}", f"mean of {report.worth:g} points"),
            (f"{statistics.median(totals):.4g}", "median"),
            (str(report.to_grade), "answers to grade by hand"),
            (str(flagged), "submissions to look at"),
        ]
    items = "".join(f"<li><b>{value}</b><span>{label}</span></li>" for value, label in facts)
    waiting = " Totals do not yet hold answers that wait for a person." if report.to_grade else ""
    title = html.escape(report.lesson)
    return f'<h1>{title}</h1>\n<p class="soft">Class report.{waiting}</p>\n<ul class="facts">{items}</ul>'


def _histogram(report: ClassReport) -> str:
    """How many students lie in each tenth of the points."""
    step = max(report.worth / 10, 1e-9)
    counts = Counter(min(int(max(total, 0) / step), 10) for total in report.totals.values())
    if not counts[10]:
        counts.pop(10, None)
    groups = max(10, max(counts) + 1)
    labels = [f"{group * step:.0f}" for group in range(groups)]
    most = max(counts.values())
    bars = []
    for group in range(groups):
        height = 110 * counts[group] / most
        x = 10 + group * 56
        bars.append(f'<rect x="{x}" y="{130 - height:.1f}" width="48" height="{height:.1f}" fill="#0072B2" rx="2"/>')
        if counts[group]:
            bars.append(f'<text x="{x + 24}" y="{124 - height:.1f}" text-anchor="middle">{counts[group]}</text>')
        bars.append(f'<text x="{x}" y="146">{labels[group]}</text>')
    told = "; ".join(f"{counts[group]} from {labels[group]} points" for group in range(groups) if counts[group])
    return (
        f'<h2>Totals</h2>\n<figure><svg viewBox="0 0 {20 + groups * 56} 152" width="{20 + groups * 56}" '
        f'style="max-width:100%" role="img" aria-label="Histogram of totals: {told}">{"".join(bars)}</svg></figure>'
    )


def _exercises(report: ClassReport) -> str:
    lines = []
    for column in report.columns:
        scores = [row.scores[column.grade_id] for row in report.rows if row.scores.get(column.grade_id) is not None]
        mean = f"{statistics.mean(scores):.1f}" if scores else "–"
        if column.kind == "bonus":
            full = sum(score > 0 for score in scores)
            worth, told = "bonus", "earned some"
        else:
            full = sum(score >= column.worth - 1e-9 for score in scores)
            worth, told = f"{column.worth:g}", "full points"
        share = 100 * full / len(scores) if scores else 0
        answered = str(sum(_answered(row, report.results[row.student], column) for row in report.rows))
        passed = f'<span class="bar" aria-hidden="true"><i style="width:{share:.0f}%"></i></span>{share:.0f} % {told}'
        if waiting := sum(_waits(row, report, column) for row in report.rows):
            passed, mean = f"{waiting} wait for a person", "–"
        if column.kind == "quiz":
            passed += _choices(report, column.name)
        lines.append(
            f'<tr><th scope="row"><code>{html.escape(column.name)}</code></th><td class="n">{worth}</td>'
            f'<td class="n">{answered}</td><td>{passed}</td><td class="n">{mean}</td></tr>'
        )
    return (
        '<h2>Exercises</h2>\n<div class="wide"><table><thead><tr><th scope="col">exercise</th>'
        '<th scope="col" class="n">worth</th><th scope="col" class="n">answered</th><th scope="col">passed</th>'
        '<th scope="col" class="n">mean points</th></tr></thead><tbody>' + "\n".join(lines) + "</tbody></table></div>"
    )


def _choices(report: ClassReport, quiz: str) -> str:
    """How many chose which wrong option; it costs no points, but a teacher wants to know."""
    chosen = Counter(
        result.mistakes[quiz][0].removeprefix("option_")
        for result in report.results.values()
        if result.mistakes.get(quiz, [""])[0].startswith("option_")
    )
    told = ", ".join(f"{option} ({count})" for option, count in sorted(chosen.items()))
    return f"; not the best: {html.escape(told)}" if told else ""


def _answered(row: Row, result: Result, column: Column) -> bool:
    if result.problem:
        return False
    if column.kind == "written":  # nbgrader gives an untouched one 0 at once
        return row.scores.get(column.grade_id) != 0
    return result.mistakes.get(column.name, ["", ""])[0] != "not_answered"


def _waits(row: Row, report: ClassReport, column: Column) -> bool:
    return row.scores.get(column.grade_id) is None and not report.results[row.student].problem


def _mistakes(report: ClassReport) -> str:
    """Every mistake that was recognised, commonest first."""
    counts: Counter = Counter()
    who: dict[tuple, list[str]] = {}
    for result in report.results.values():
        for exercise, (name, label) in result.mistakes.items():
            if name != "not_answered" and not exercise.startswith("quiz_"):
                label = label.rstrip(".")
                counts[exercise, label] += 1
                who.setdefault((exercise, label), []).append(result.student)
    if not counts:
        return "<h2>Mistakes</h2>\n<p>None was recognised.</p>"
    lines = []
    for (exercise, label), count in counts.most_common():
        students = who[exercise, label]
        names = ", ".join(students[:6]) + (f" and {len(students) - 6} more" if len(students) > 6 else "")
        lines.append(
            f'<tr><td class="n">{count}</td><td>{html.escape(label)}</td><td><code>{html.escape(exercise)}</code></td>'
            f"<td>{html.escape(names)}</td></tr>"
        )
    return (
        '<h2>Commonest mistakes</h2>\n<div class="wide"><table><thead><tr><th scope="col" class="n">students</th>'
        '<th scope="col">mistake</th><th scope="col">exercise</th><th scope="col">who</th></tr></thead><tbody>'
        + "\n".join(lines)
        + "</tbody></table></div>"
    )


def _flags(report: ClassReport) -> str:
    lines = []
    for row in report.rows:
        if row.notes:
            notes = "<br>".join(html.escape(note) for note in row.notes)
            lines.append(f'<tr><th scope="row">{html.escape(row.student)}</th><td>{notes}</td></tr>')
    if not lines:
        return "<h2>Flags</h2>\n<p>Nothing odd was seen.</p>"
    return (
        '<h2>Flags</h2>\n<div class="wide"><table><caption>Odd things that a person should look at.'
        '</caption><thead><tr><th scope="col">student</th><th scope="col">what was seen</th>'
        "</tr></thead><tbody>" + "\n".join(lines) + "</tbody></table></div>"
    )


def _students(report: ClassReport) -> str:
    heads = "".join(f'<th scope="col" class="n">{html.escape(column.name)}</th>' for column in report.columns)
    late = any(row.penalty for row in report.rows)
    lines = []
    for row in report.rows:
        cells = "".join(_cell(row.scores.get(column.grade_id), column) for column in report.columns)
        penalty = f'<td class="n">{_number(-row.penalty) if row.penalty else ""}</td>' if late else ""
        total = f'<td class="n"><b>{row.total:.4g}</b></td>'
        lines.append(f'<tr><th scope="row">{html.escape(row.student)}</th>{total}{cells}{penalty}</tr>')
    penalty = '<th scope="col" class="n">late</th>' if late else ""
    total = '<th scope="col" class="n">total</th>'
    return (
        '<h2>Students</h2>\n<div class="wide"><table class="many">'
        "<caption>Points by exercise. An empty cell waits for a person.</caption>"
        f'<thead><tr><th scope="col">student</th>{total}{heads}{penalty}</tr></thead>'
        "<tbody>" + "\n".join(lines) + "</tbody></table></div>"
    )


def _cell(score: float | None, column: Column) -> str:
    if score is None:
        return '<td class="n"></td>'
    if column.kind == "bonus":
        kind = "full" if score > 0 else ""
    else:
        kind = "full" if score >= column.worth - 1e-9 else "part" if score > 0 else "none"
    return f'<td class="n {kind}">{_number(score)}</td>'
