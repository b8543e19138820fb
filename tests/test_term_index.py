"""The index of terms in the web edition, and the cheat sheet, which is drawn from a Markdown table."""

import re

from helpers.authoring.term_index import index_page
from helpers.course import course, load_source

GLOSSARY = "# Glossary\n\n- **RoPE (rotary embedding)**: Angles. Lesson 2.\n- **head**: One\n  attention. Lesson 8.\n"
PROSE = {
    "02": "### Exercise 2.5 `apply_rope` **+**\nHere is RoPE.",
    "08": "Each head, ahead of the rest.",
    "14": "Rotary embeddings again, and behead.",
}


def test_the_index_lists_the_lessons_that_use_each_term():
    page = index_page(GLOSSARY, PROSE)
    assert "- RoPE (rotary embedding): **lesson 2**, lesson 14\n" in page
    assert "- head: **lesson 8**\n" in page
    assert "- `apply_rope`: exercise 2.5\n" in page
    assert page.index("`apply_rope`") < page.index("- head") < page.index("- RoPE")


def test_every_formula_of_the_cheat_sheet_can_be_drawn():
    folder = course().root / "docs"
    sheet = load_source(folder / "cheat_sheet.py", "cheat_sheet")
    text = (folder / "cheat_sheet.md").read_text(encoding="utf-8")
    figure = sheet.draw(text)
    figure.canvas.draw()  # an unknown symbol raises
    cells = {artist.get_text() for artist in figure.texts}
    assert {sheet.as_mathtext(cell) for row in sheet.rows(text) for cell in row} <= cells
    assert {int(row[0]) for row in sheet.rows(text)} == set(range(1, len(course().lessons)))


def test_the_cheat_sheet_fits_on_one_page():
    pdf = (course().root / "docs" / "cheat_sheet.pdf").read_bytes()
    assert len(re.findall(rb"/Type /Page\b", pdf)) == 1
