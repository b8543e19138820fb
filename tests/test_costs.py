"""Each accepted variant and each known mistake that fits into the translator is put in, and the page is up to date."""

import re
import sys

import pytest

from bench import costs
from helpers.course import course
from tests.conftest import ROOT, lesson_names, one_of

PAGE = (ROOT / costs.PAGE).read_text(encoding="utf-8")
LESSONS = [name for name in lesson_names() if name in costs.sections_of(PAGE)]


@pytest.mark.parametrize("lesson", one_of(LESSONS))
def test_accepted_variants_cost_nothing_and_every_mistake_says_what_it_costs(few_sentences, lesson):
    rows = [costs.cost(*row) for row in costs.parts_of_lesson(course(), course().lesson(lesson))]
    right = [row for row in rows if row.name == "right"]
    assert {row.part for row in right if row.label == costs.FINISHED} == {row.part for row in rows}
    assert [row for row in right if not costs.is_right(row) and not costs.why_not_measured(row)] == []
    assert sum(costs.is_right(row) for row in right) > 0.7 * len(right)
    assert all(row.failed or row.nats is not None for row in rows)


@pytest.mark.parametrize("lesson", LESSONS)
def test_the_page_has_a_line_for_every_mistake(lesson):
    rows = costs.parts_of_lesson(course(), course().lesson(lesson))
    expected = {(part, costs._cell(label)) for _, part, name, label, *_ in rows if name != "right"}
    tables = re.findall(r"^### `(\w+)`\n(.*?)(?=^#|^<)", costs.sections_of(PAGE)[lesson], re.MULTILINE | re.DOTALL)
    row = re.compile(r"^\| (.*?)(?:<br>.*)? \| ", re.MULTILINE)
    lines = {(part, label) for part, table in tables for label in row.findall(table)}
    assert expected <= lines, f"the page is out of date; run `python -m bench.costs {lesson}`"


def test_the_page_of_costs_is_read_and_written_without_change():
    assert len(LESSONS) == 10 and costs.page(costs.sections_of(PAGE)) == PAGE


def test_each_part_has_a_table_and_a_failure_stands_below_its_mistake(monkeypatch):
    monkeypatch.setattr(costs, "is_right", lambda row: True)
    rows = [
        costs.Cost("00_a", "f", "right", costs.FINISHED, 0.2, 1.0, ""),
        costs.Cost("00_a", "f", "a", "wrong", None, None, "It stopped: T<1>"),
        costs.Cost("00_a", "g", "b", "odd", 2.0, 0.5, ""),
    ]
    made = costs.sections(rows)["00_a"]
    assert made.count("### `") == made.count(costs.TABLE) == 2 and "| odd | 2.00 | 50% |" in made
    assert "| wrong<br><small>It stopped: T&lt;1&gt;</small> | – | |" in made


def test_forms_of_a_mistake_with_one_label_are_one_row_with_a_range(monkeypatch):
    monkeypatch.setattr(costs, "is_right", lambda row: not row.failed)
    failed = "With your f the translator stopped: T: " + "long " * 40
    rows = [
        costs.Cost("00_a", "f", "right", costs.FINISHED, 0.2, 1.0, ""),
        costs.Cost("00_a", "f", "right", "slow", None, None, "Your f took more than 20 seconds in the translator."),
        costs.Cost("00_a", "f", "a_2", "near", 2.0, 0.5, ""),
        costs.Cost("00_a", "f", "b", "far", None, None, failed),
        costs.Cost("00_a", "f", "a_1", "near", -0.2, 0.9, ""),
    ]
    made = costs.sections(rows)["00_a"]
    assert made.count("| near |") == 1 and "| near | -0.20 to 2.00 | 50 to 90% |" in made
    assert re.search(r"\| far<br><small>T: long .{1,120} …</small> \|", made)
    assert made.endswith("Of 2 correct variants that were put in, 1 cost nothing and 1 took more than 20 seconds.")


@pytest.mark.parametrize(
    ("nats", "failed", "code"),
    [(0.2, "", 0), (0.3, "", 1), (None, "The trained weights don't fit your part: size mismatch.", 0)],
)
def test_it_fails_if_a_variant_costs_something_but_not_if_the_weights_do_not_fit(
    monkeypatch, tmp_path, nats, failed, code
):
    monkeypatch.setattr(sys, "argv", ["costs", LESSONS[0]])
    monkeypatch.setattr(costs, "PAGE", str(tmp_path / "page.md"))
    monkeypatch.setattr(costs, "parts_of_lesson", lambda home, lesson: [(lesson.name, "f", "right", "form", None)])
    monkeypatch.setattr(costs, "cost", lambda *row: costs.Cost(*row[:-1], nats, 1.0, failed))
    monkeypatch.setattr(costs.stage, "attempt_finished", lambda sentence: costs.stage.Trial(nats=0.2, exact=1.0))
    assert costs.main() == code
