"""`course book`: make a static site of the lessons from the stored notebooks, with Sphinx.

Of the lessons' code, only the cells that explorers depend on are executed (helpers/authoring/explorers.py). The sources
of the pages are written into build/book/text, and the site into build/book/site. docs/book has the site's settings.
"""

import argparse
import html
import os
import re
import shutil
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from urllib.parse import unquote_to_bytes

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell

from helpers.authoring.badges import binder_address, colab_address
from helpers.authoring.build import released_text, solution_path
from helpers.authoring.explorers import CALL, moving, on_page
from helpers.authoring.live import FOLDER, live_translator, write_live
from helpers.authoring.release import ASKED
from helpers.authoring.term_index import index_page
from helpers.authoring.text import headings, is_quiz
from helpers.course import Course, Lesson, course
from helpers.drawing.dark import DARK
from helpers.released import without_marks, working_copies, working_copies_note

# A picture in a notebook (helpers/drawing/style.py), with its caption if that has a number.
PICTURE = re.compile(
    r'<img (?P<words>[^>]*?) ?src="data:image/svg\+xml,(?P<data>[^"]*)">'
    r'(?:<div style="[^"]*">(?P<caption>Figure (?P<number>\d+\.\d+)\..*?)</div>)?'
)
NUMBERED = re.compile(r"^### (?P<kind>Exercise|Quiz) (?P<number>\d+\.\d+)\b", re.MULTILINE)
NUMBER = re.compile(r"\d+(?:\.\d+)?")
# Text that stays as it is, or else references such as "lessons 3 and 4", "exercise 7.4", "Figure 5.2".
REFERENCE = re.compile(
    r"(?P<left>(?P<ticks>`+)(?!`).*?(?<!`)(?P=ticks)(?!`)|\$\$.*?\$\$|\$[^$\n]+\$|\[[^\]]*\]\([^)]*\)|^#[^\n]*|<summary>.*?</summary>|<[^>]*>)"
    r"|\b(?P<kind>lesson|exercise|figure|quiz)s?\s+\d+(?:\.\d+)?(?:(?:,\s|\s(?:and|to|or)\s)\d+(?:\.\d+)?)*",
    re.DOTALL | re.MULTILINE | re.IGNORECASE,
)
DRAWN = re.compile(r"(figures\.\w+|explore\.\w+|experiments\.\w+|transformer_map)\(")
GUIDES = (
    "CONTRIBUTING.md",
    *(f"docs/{name}.md" for name in "running teaching measurements architecture authoring sources".split()),
)
COSTS = "docs/what_a_mistake_costs.md"
LEAD = (
    "You write every component of attention yourself, in fifteen notebooks that lead from a word to a Transformer and "
    "a GPT. For people who know some Python."
)
ROW = 34  # pixels per row of the map of prerequisites


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--answers", action="store_true", help="include all answers, folded (for teachers)")
    parser.add_argument("--to", type=Path, metavar="FOLDER", help="the folder to write to (default: build/book)")


def run(args: argparse.Namespace) -> int:
    """Make the site. Returns 0, or 1 if Sphinx reported a problem, such as a broken link."""
    from sphinx.cmd.build import main as sphinx  # takes a second, so it is imported only here

    home = course()
    folder = args.to or home.root / "build" / "book"
    for part in ("text", "extra", "site"):
        shutil.rmtree(folder / part, ignore_errors=True)
    write_pages(home, folder, args.answers)
    settings = ["-q", "-W", "--keep-going", "-c", str(home.root / "docs" / "book"), "-d", str(folder / "cache")]
    settings += ["-D", f"html_extra_path={folder / 'extra'}"]
    print("All lessons are read. Now Sphinx makes the pages.", flush=True)
    code = sphinx([*settings, str(folder / "text"), str(folder / "site")])
    size = sum(file.stat().st_size for file in (folder / "site").rglob("*") if file.is_file())
    print(f"{folder / 'site'}: {size / 1e6:.1f} MB. Open index.html there, or publish the folder as it is.")
    for line in working_copies_note(working_copies(home.root), "shown is"):
        print(line)
    return int(bool(code))


def write_pages(home: Course, folder: Path, answers: bool = False) -> None:
    """Write the sources of all pages into folder/text, and files that the site copies unchanged into folder/extra."""
    text, extra = folder / "text", folder / "extra"
    cache = folder / "cache" / "explorers"
    notebooks = {}
    print("Reading the lessons and drawing their explorers. The first time, this takes minutes.", flush=True)
    with ProcessPoolExecutor(min(os.cpu_count() or 1, 4)) as pool:
        read = partial(lesson_page, home, answers=answers, cache=cache)
        pages = pool.map(read, home.lessons, [extra / lesson.name for lesson in home.lessons])
        for lesson, notebook in zip(home.lessons, pages, strict=True):
            notebooks[lesson.name] = notebook
            print(f"{len(notebooks)} of {len(home.lessons)}: {lesson.name}", flush=True)
    anchors = {anchor: name for name, notebook in notebooks.items() for anchor in _anchors(name, notebook)}
    for name, notebook in notebooks.items():
        for cell in notebook.cells:
            if cell.cell_type == "markdown":
                linked = with_references(cell.source, anchors, "../", name)
                cell.source = NUMBERED.sub(lambda match: f"({_anchor(match)})=\n{match[0]}", linked)
        notebook.cells.append(new_markdown_cell(_made_from(f"solutions/{name}/{name}.py")))
        _write(text / name / f"{name}.ipynb", nbformat.writes(notebook))
        _write(extra / name / f"{name}.ipynb", released_text(home, home.lesson(name)))
    shutil.copytree(home.root / "docs", text / "docs", ignore=shutil.ignore_patterns("book", "*.py"))
    shutil.copy(home.root / "LICENSE", text)
    write_live(home, extra / FOLDER)
    for path, page in _other_pages(home, notebooks).items():
        _write(text / path, f"{with_references(page, anchors, '../' * path.count('/'))}\n\n{_made_from()}\n")


def lesson_page(home: Course, lesson: Lesson, pictures: Path, answers: bool, cache: Path | None = None):
    """The notebook of a lesson's page: the learner's cells with the solution's outputs.

    Set-up, checks and empty answers are left out. pictures: a folder for pictures, which become files. cache: a folder
    for the pictures of explorers; without it, explorers stay still. Raises BuildError if the lesson was not built.
    """
    learners = {cell["id"]: cell.source for cell in nbformat.reads(released_text(home, lesson), as_version=4).cells}
    notebook = nbformat.read(solution_path(home, lesson), as_version=4)
    pictures.mkdir(parents=True)
    explorers = moving(home, lesson, notebook, cache) if cache else {}
    cells, to_predict, quiz = [], False, ""
    for cell in notebook.cells:
        name = cell.metadata.get("nbgrader", {}).get("grade_id", "")
        solved, cell.source = cell.source, learners.get(cell["id"], cell.source)
        if cell.cell_type == "markdown":
            to_predict = bool(ASKED.search(cell.source))
            if name:  # the written question's answer
                cell.source = solved if answers else ""
        elif name.startswith("check_quiz_"):
            cell = new_markdown_cell(_quiz_answer(cell, quiz) if answers else "")
        elif name == "setup" or name.startswith("check_") or solved.strip() == "progress()":
            cell.source = ""
        elif is_quiz(name):
            quiz, cell.source = solved, ""
        else:
            _show(cell, to_predict, pictures, explorers.get(cell["id"]))
        cells.append(cell)
        if cell.cell_type == "code" and name and cell.source and answers:
            folded = {**_folded("An answer"), "tags": ["hide-input"]}
            cells.append(new_code_cell(without_marks(solved), metadata=folded))
    first = next(index for index, cell in enumerate(cells) if headings(cell.source))  # before it there may be badges
    title, _, below = cells[first].source.partition("\n")
    cells[first].source = f"{title}\n\n{_links_to_open(home, lesson)}\n{below}"
    notebook.cells = [cell for cell in cells[first:] if cell.source.strip()]
    return notebook


def _show(cell, to_predict: bool, pictures: Path, explorer: dict | None) -> None:
    """Fold or remove what distracts a reader: calls that only draw, imports, and results to be predicted first."""
    code = cell.source.strip()
    drawn = "\n" not in code and DRAWN.match(code)
    imports = code.startswith(("import ", "from ")) and not cell.outputs
    tags = {"remove-input": drawn, "hide-input": imports, "hide-output": to_predict and cell.outputs}
    pictured = drawn and any("text/html" in output.get("data", {}) for output in cell.outputs)
    folded = _folded("Imports" if imports else "The picture" if pictured else "What comes out")
    cell.metadata = folded | {"tags": [tag for tag in tags if tags[tag]]}
    for output in cell.outputs:
        if "text/html" in output.get("data", {}):
            shown = output.data["text/html"].replace(DARK, "")  # the site has a style sheet
            shown = PICTURE.sub(partial(_picture, folder=pictures), shown)
            call = CALL.search(code)
            if call:
                still = f"{shown}<p><em>The controls work in the notebook.</em></p>"
                shown = on_page(explorer, call[1], shown, pictures) if explorer else still
            output.data["text/html"] = shown


def _picture(match: re.Match, folder: Path) -> str:
    """Write a picture to a file, and return its HTML, with its number as an anchor and a link to the full size."""
    anchor = f"figure-{match['number'].replace('.', '-')}" if match["number"] else ""
    name = f"{anchor or f'picture-{len(list(folder.iterdir())) + 1}'}.svg"
    (folder / name).write_bytes(unquote_to_bytes(html.unescape(match["data"])))
    image = f'<a href="{name}"><img {match["words"]} loading="lazy" src="{name}"></a>'
    if not anchor:
        return f"<figure>{image}</figure>"
    link = f'<a class="headerlink" href="#{anchor}" title="Link to this figure">#</a>'
    return f'<figure id="{anchor}">{image}<figcaption>{match["caption"]}{link}</figcaption></figure>'


def _folded(label: str) -> dict:
    return {"mystnb": {"code_prompt_show": label, "code_prompt_hide": label}}


def _quiz_answer(check, source: str) -> str:
    """The right choice and why, folded. check: the check cell with its output. source: the solved quiz cell."""
    choice = re.findall(r'= "(\w+)"', source)[-1]
    explanation = check.outputs[0].data["text/plain"].partition("\n")[2] if check.outputs else ""
    return f"<details><summary>The answer</summary>\n\n**{choice}**. {' '.join(explanation.split())}\n\n</details>"


def _links_to_open(home: Course, lesson: Lesson) -> str:
    """Links to open the lesson, as text, because badges would load pictures from other sites."""
    links = [f'<a href="{lesson.name}.ipynb" download>Download the notebook</a>']
    if home.url:
        services = ("Colab", colab_address(home, lesson)), ("Lab", binder_address(home, lesson))
        links += [f'<a href="{html.escape(address)}">Open in {service}</a>' for service, address in services]
    links.append('<a href="../docs/running.html">How to run it</a>')
    return f'<p class="ways">{" · ".join(links)}</p>\n'


def with_references(text: str, anchors: dict[str, str], up: str, here: str = "") -> str:
    """Turn *lesson 3*, *exercise 7.4* and *Figure 5.2* in the Markdown into links.

    anchors: the lesson of each anchor. up: the relative path from this page to the top. here: this page's lesson.
    """

    def link(kind: str, text_of_link: str) -> str:
        anchor = f"{kind}-{NUMBER.findall(text_of_link)[0].replace('.', '-')}"
        lesson = anchors.get(anchor)
        if lesson is None or (lesson == here and kind == "lesson"):
            return text_of_link
        page = "" if lesson == here else f"{up}{lesson}/{lesson}.html"
        return f'<a href="{page}{"" if kind == "lesson" else f"#{anchor}"}">{text_of_link}</a>'

    def linked(match: re.Match) -> str:
        if match["left"]:
            return match[0]
        first = next(NUMBER.finditer(match[0])).end()  # "lessons 3" is one link, and the 4 of "lessons 3 and 4" another
        kind, rest = match["kind"].lower(), match[0][first:]
        return link(kind, match[0][:first]) + NUMBER.sub(lambda number: link(kind, number[0]), rest)

    return REFERENCE.sub(linked, text)


def _anchors(name: str, notebook) -> list[str]:
    """The anchors that a lesson's page can be linked by: lesson-7, exercise-7-4, quiz-7-1, figure-7-5."""
    anchors = [f"lesson-{int(name[:2])}"]
    for cell in notebook.cells:
        anchors += [_anchor(match) for match in NUMBERED.finditer(cell.source)]
        for output in cell.get("outputs", []):
            anchors += re.findall(r'<figure id="([^"]+)"', output.get("data", {}).get("text/html", ""))
    return anchors


def _anchor(match: re.Match) -> str:
    return f"{match['kind'].lower()}-{match['number'].replace('.', '-')}"


def _other_pages(home: Course, notebooks: dict) -> dict[str, str]:
    """Path -> Markdown of all pages other than lessons: README, guides, notation card, costs by lesson."""
    readme = re.sub(r"\]\(notebooks/", "](", _read(home, "README.md"))
    front = re.sub(r"<!-- badges.*?end of badges -->|\s\[!\[[^\n|]*", "", readme, flags=re.DOTALL)
    opening, lessons, table = front.partition("\n## The lessons\n")
    card = next(cell.source for cell in notebooks[home.lessons[0].name].cells if "## The notation card" in cell.source)
    card = re.sub(r"</?details[^>]*>|<summary>.*?</summary>", "", card)
    card = re.sub(r"^#+ ", "# ", card, count=1, flags=re.MULTILINE)
    costs, *parts = re.split(r"^## (?=\d\d_)", _read(home, COSTS), flags=re.MULTILINE)
    tables = {part[:2]: part.partition("</summary>\n")[2].partition("</details>")[0] for part in parts}
    names = {lesson.name: f"{int(lesson.number)}. {lesson.title.partition(':')[0]}" for lesson in home.lessons}
    toctree = {
        "Lessons": [f"{title} <{name}/{name}>" for name, title in names.items()],
        "Look up": ["docs/cheat_sheet", "notation", "docs/glossary", "term_index"],
        "Run and teach": ["docs/running", "docs/teaching", "docs/measurements", "docs/what_a_mistake_costs"],
        "Change": ["CONTRIBUTING", "docs/architecture", "docs/authoring", "docs/sources"],
    }
    trees = "\n".join(_toctree(pages, caption) for caption, pages in toctree.items())
    prose = {
        name: "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
        for name, notebook in notebooks.items()
    }
    needs = {name: _needed(home, text) for name, text in prose.items()}
    needed = f"{prerequisite_map(names, needs)}\n\nArcs lead from each lesson to the earlier lessons that it needs."
    glossary, numbered = _read(home, "docs/glossary.md"), {name[:2]: text for name, text in prose.items()}
    page = f"{home.lessons[0].name}/{home.lessons[0].name}"
    begin = f"Begin with <a href='{page}.html'>the first lesson</a>, or in a clone:"
    start = f'{LEAD}\n\n<div class="start">\n\n[Start lesson 0]({page}.ipynb)\n\n</div>'
    title, _, opening = opening.replace("```", f"{begin}\n\n```", 1).partition("\n")
    opening = f"---\nhide-toc: true\n---\n{title}\n\n{start}\n\n{live_translator(home)}\n\n## The course\n{opening}"
    return {
        "index.md": f"{opening}\n{lessons}\n{needed}\n{table}\n{trees}",
        "notation.md": card,
        "docs/glossary.md": with_terms(glossary),
        "term_index.md": index_page(glossary, numbered),
        **{page: _read(home, page) for page in GUIDES if (home.root / page).is_file()},
        COSTS: f"{costs}\n{_toctree([f'costs/{number}' for number in tables])}",
        **{
            f"docs/costs/{number}.md": f"# {names[home.lesson(number).name]}: costs\n{table.replace('### ', '## ')}"
            for number, table in tables.items()
        },
    }


def with_terms(text: str) -> str:
    """Turn a Markdown list of terms into Sphinx's glossary, which gives each of them an anchor."""
    head, _, terms = text.partition("\n- ")
    entries = re.sub(r"^(?:- )?\*\*(.*?)\*\*: ", r"\n\1\n  ", terms, flags=re.MULTILINE)
    return f"{head}\n::::{{glossary}}\n{entries.strip()}\n::::\n"


def _toctree(pages: list[str], caption: str = "") -> str:
    options = f":caption: {caption}\n:hidden:\n" if caption else ""
    return "\n".join(["```{toctree}", f"{options}:maxdepth: 1\n", *pages, "```\n"])


def _needed(home: Course, prose: str) -> list[str]:
    """The lessons that are linked in the section *You need* of a lesson's text."""
    section = re.search(r"^## You need\n(.*?)(?=^## |\Z)", prose, re.DOTALL | re.MULTILINE)
    linked = set(re.findall(r"\]\(\.\./(\w+)/", section[1])) if section else set()
    return [lesson.name for lesson in home.lessons if lesson.name in linked]


def prerequisite_map(names: dict[str, str], needs: dict[str, list[str]]) -> str:
    """An SVG with one row per lesson, which is a link, and arcs at its left from the lessons that it needs."""
    row_centers = {lesson: ROW * row + ROW / 2 for row, lesson in enumerate(names)}
    rows = []
    for lesson, name in names.items():
        y, arcs = row_centers[lesson], ""
        for start in (row_centers[need] for need in needs[lesson]):
            x = 150 if y - start == ROW else 138 - 0.38 * (y - start)  # a straight line between neighbors
            arcs += f'<path d="M150 {start:g}C{x:g} {start:g} {x:g} {y:g} 150 {y:g}"/>'
        title = name + (f" needs {', '.join(names[need] for need in needs[lesson])}" if needs[lesson] else "")
        rows.append(
            f'<a href="{lesson}/{lesson}.html"><title>{html.escape(title)}</title>{arcs}'
            f'<circle cx="150" cy="{y:g}" r="6"/><text x="166" y="{y + 5:g}">{html.escape(name)}</text></a>'
        )
    size = f'viewBox="0 0 460 {ROW * len(names)}" role="group" aria-label="What each lesson needs"'
    return f'<svg class="needs" {size}>{"".join(rows)}</svg>'


def _made_from(source: str = "") -> str:
    return f'<p class="made">Made by <code>make book</code>{f" from <code>{source}</code>" if source else ""}.</p>'


def _read(home: Course, page: str) -> str:
    return (home.root / page).read_text(encoding="utf-8")


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
