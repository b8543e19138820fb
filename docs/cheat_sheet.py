"""Draw docs/cheat_sheet.pdf, one landscape page, from the table of docs/cheat_sheet.md.

python docs/cheat_sheet.py
"""

import re
from pathlib import Path

from matplotlib.backends.backend_pdf import FigureCanvasPdf
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

HERE = Path(__file__).parent
PAGE = (11.69, 8.27)  # A4, in inches
COLUMNS = (0.03, 0.065, 0.23, 0.70)  # left edges of lesson, subject, formula and shapes, as fractions of the page
BANDS = ("#F3F6FA", "#FFFFFF")  # background colors, alternating by lesson


def rows(text: str) -> list[list[str]]:
    """The rows of the table as lists of four cells, without the heading and its rule."""
    table = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"]
    return table[2:]


def as_mathtext(cell: str) -> str:
    """Replace LaTeX commands that Matplotlib does not know."""
    return cell.replace("\\Vert", "\\|").replace("\\top", "T").replace("\\ldots", "...")


def draw(text: str) -> Figure:
    """Draw the page: the title, the meaning of the letters, and the table."""
    figure = Figure(PAGE)
    title, introduction = re.match(r"# (.*)\n\n(.*?)\n\n", text, re.DOTALL).groups()
    letters = " ".join(introduction.partition("printing. ")[2].replace("`", "").split())
    figure.text(COLUMNS[0], 0.955, f"How a Transformer's attention works: {title.lower()}", size=15, weight="bold")
    figure.text(COLUMNS[0], 0.915, letters.replace(". Weights", ".\nWeights"), size=8, va="center", linespacing=1.5)
    table = rows(text)
    height = 0.87 / len(table)
    lessons = list(dict.fromkeys(row[0] for row in table))
    for number, row in enumerate(table):
        y = 0.885 - height * (number + 1)
        figure.add_artist(Rectangle((0.02, y), 0.96, height, color=BANDS[lessons.index(row[0]) % 2], lw=0))
        first = number == 0 or table[number - 1][0] != row[0]
        for x, cell, weight in zip(COLUMNS, row, ("bold", "bold", "normal", "normal"), strict=True):
            if x != COLUMNS[0] or first:
                figure.text(x, y + height / 2, as_mathtext(cell), size=8.5, va="center", weight=weight)
    return figure


if __name__ == "__main__":
    drawing = draw((HERE / "cheat_sheet.md").read_text(encoding="utf-8"))
    FigureCanvasPdf(drawing).print_pdf(HERE / "cheat_sheet.pdf", metadata={"CreationDate": None})
    print(f"{HERE / 'cheat_sheet.pdf'}: one page.")
