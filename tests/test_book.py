"""The web edition: what its pages show and hide, and the whole site in a browser, which asks nothing of anyone else."""

import dataclasses
import functools
import html
import http.server
import os
import re
import threading
from importlib.util import find_spec
from urllib.parse import unquote, urljoin, urlsplit

import pytest

from helpers.__main__ import main
from helpers.authoring.book import costs_by_part, lesson_page, prerequisite_map, with_references, with_terms
from helpers.authoring.text import read_lesson, solution_lines
from helpers.course import course
from tests.lab import browser, chromium

LESSON = course().lesson("5")
KNOWN = {"lesson-5": "05_masking", "lesson-7": "07_value_weighting", "exercise-7-4": "07_value_weighting"}
OPENED = (
    "index",
    "03_query_key/03_query_key",
    "07_value_weighting/07_value_weighting",
    "docs/glossary",
    "docs/teaching",
)


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """(a lesson's page without answers, with them, the folder of its pictures)."""
    folder = tmp_path_factory.mktemp("pages")
    return (
        lesson_page(course(), LESSON, folder / "out", False),
        lesson_page(course(), LESSON, folder / "in", True),
        folder,
    )


def text_of(notebook) -> str:
    return "\n".join(cell.source for cell in notebook.cells)


def test_a_page_gives_no_answer_away_and_one_for_teachers_gives_all(pages):
    without, answers, _ = (text_of(page) if index < 2 else page for index, page in enumerate(pages))
    lesson = read_lesson(course(), LESSON)
    lines = {line for source in lesson.answers.values() for line in solution_lines(source) if len(line) > 25}
    shown, folded = re.sub(r"\s", "", without), re.sub(r"\s", "", answers)
    assert lines and not [line for line in lines if line in shown]
    assert all(line in folded for line in lines)
    assert "Model answer" in answers and "Model answer" not in without
    assert answers.count("<summary>The answer</summary>\n\n**") == sum(
        name.startswith("quiz") for name in lesson.answers
    )
    assert "BEGIN SOLUTION" not in answers and "### END" not in without


def test_a_page_leaves_out_what_is_not_for_reading(pages):
    page = pages[0]
    assert not re.search(r"^(check\(|set_up\(|def set_up|progress\(\)$)", text_of(page), re.MULTILINE)
    assert "quiz_1 =" not in text_of(page) and "- **a**" in text_of(page)
    for cell in page.cells:
        if cell.source.startswith("figures.") and "\n" not in cell.source:
            assert "remove-input" in cell.metadata["tags"]
    first = next(cell for cell in page.cells if cell.cell_type == "code")
    assert first.source.startswith("import") and first.metadata["tags"] == ["hide-input"]
    guessed = [
        cell.metadata["tags"]
        for above, cell in zip(page.cells, page.cells[1:], strict=False)
        if "Predict before you run" in getattr(above, "source", "") and cell.get("outputs")
    ]
    assert guessed and all("hide-output" in tags for tags in guessed)


def test_figures_are_files_with_anchors_and_keep_their_words(pages):
    page, folder = pages[0], pages[2] / "out"
    shown = "".join(
        output.data.get("text/html", "")
        for cell in page.cells
        for output in cell.get("outputs", [])
        if "data" in output
    )
    assert "data:image" not in shown
    images = re.findall(r'<img alt="([^"]*)"[^>]* src="([^"]*)">', shown)
    assert images and shown.count("<img ") == len(images)
    for alt, name in images:
        assert len(alt) > 20 and "<svg" in (folder / name).read_text(encoding="utf-8")
    figures = re.findall(r'<figure id="figure-(\d+)-(\d+)">.*?<figcaption>Figure (\d+\.\d+)\.', shown)
    assert figures and all(f"{a}.{b}" == number for a, b, number in figures)
    assert len(set(figures)) == len(figures) == len(re.findall(r"Figure \d+\.\d+\.", shown))
    assert "It moves in the notebook." in shown


def test_a_forks_page_opens_in_colab_and_lab_and_loads_no_badge(tmp_path):
    fork = dataclasses.replace(course(), owner="ada", repository="attention")
    shown = text_of(lesson_page(fork, LESSON, tmp_path / "pictures", False))[:1500]
    assert "colab.research.google.com/github/ada/attention/" in shown and "labpath=notebooks%2F05_masking" in shown
    assert "badge" not in shown and "<img" not in shown and "![" not in shown


def test_references_are_links_where_they_lead_somewhere():
    left = "`` lesson 5 `a` ``: $lesson 5$, [lesson 5](x), Figure 7.4."
    text = f"As lessons 5 and 7 say, see exercise 7.4, exercise 7.9 and {left}"
    assert with_references(text, KNOWN, "../", "07_value_weighting") == (
        'As <a href="../05_masking/05_masking.html">lessons 5</a> and 7 say, see '
        '<a href="#exercise-7-4">exercise 7.4</a>, '
        f"exercise 7.9 and {left}"
    )


def test_the_map_has_a_link_and_its_arcs_for_each_lesson():
    drawn = prerequisite_map({"00_a": "0. A", "01_b": "1. B & C"}, {"00_a": [], "01_b": ["00_a"]})
    assert drawn.count("<path") == 1 and "1. B &amp; C needs 0. A" in drawn and 'href="01_b/01_b.html"' in drawn


def test_terms_and_costs_read_well():
    assert with_terms("# G\n\n- **a, b**: One\n  two.\n- **c**: Three.\n") == (
        "# G\n\n::::{glossary}\na, b\n  One\n  two.\n\nc\n  Three.\n::::\n"
    )
    table = "| `f` | *right* | 0.1 | 100 % |\n| `f` | wrong | It stopped: T<1> |  |\n| `g` | *right* | 2 | 0 % |"
    assert costs_by_part(table).count("## `") == 2
    assert "| wrong<br><small>It stopped: T&lt;1&gt;</small> | – |  |" in costs_by_part(table)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of the whole site, made by the command."""
    if find_spec("sphinx") is None:
        if os.environ.get("COURSE_CI"):
            pytest.fail("Sphinx is missing; the Makefile installs it with the extra `book`")
        pytest.skip('no Sphinx here: pip install -e ".[author,book]"')
    folder = tmp_path_factory.mktemp("book")
    assert main(["book", "--to", str(folder)]) == 0, "Sphinx found something wrong"
    return folder / "site"


@pytest.mark.browser
def test_links_and_anchors_of_the_site_lead_somewhere(site):
    pages = {path: path.read_text(encoding="utf-8") for path in site.rglob("*.html")}
    anchors = {
        path: {html.unescape(name) for name in re.findall(r'\sid="([^"]+)"', text)} for path, text in pages.items()
    }
    broken, outside = [], []
    for path, text in pages.items():
        for tag, address in set(re.findall(r'<(a|img|script|link|source)\b[^>]*?\s(?:href|src)="([^"]*)"', text)):
            parts = urlsplit(html.unescape(address))
            if parts.scheme or parts.netloc:
                outside += [address] if tag != "a" else []
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.exists() or parts.fragment and unquote(parts.fragment) not in anchors.get(target, ()):
                broken.append(f"{path.relative_to(site)}: {address}")
    assert broken == [] and outside == []
    for lesson in course().lessons:
        text = read_lesson(course(), lesson)
        page = site / lesson.name / f"{lesson.name}.html"
        wanted = re.findall(r"^## (Exercise|Quiz) (\d+)\.(\d+)", text_of(text.notebook), re.MULTILINE)
        assert {f"{kind.lower()}-{a}-{b}" for kind, a, b in wanted} <= anchors[page]
        marked = r'<(pre|code|script|title)\b.*?</\1>|<(div|span) class="math.*?</\2>|<[^>]*>'
        assert "$" not in re.sub(marked, "", pages[page], flags=re.DOTALL), f"{lesson.name}: a formula is not set"
        assert (page.parent / f"{lesson.name}.ipynb").is_file()
        assert f'<a href="{lesson.name}.ipynb" download>' in pages[page]
    assert sum(file.stat().st_size for file in site.rglob("*") if file.is_file()) < 30e6


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


@pytest.fixture(scope="module")
def served(site):
    """The site's address on the loopback interface."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()


@pytest.mark.browser
def test_the_site_in_a_browser(served):
    if chromium() is None:
        if os.environ.get("COURSE_CI"):
            pytest.fail("Chromium is missing; .ci/run installs it")
        pytest.skip("no Chromium on this machine")
    with browser() as page:
        errors, asked = [], []
        page.on("console", lambda said: errors.append(said.text) if said.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        for scheme, width in (("light", 1280), ("dark", 390)):
            page.emulate_media(color_scheme=scheme)
            page.set_viewport_size({"width": width, "height": 900})
            for name in OPENED:
                page.goto(urljoin(served, f"{name}.html"), wait_until="load")
                if name[0] == "0":
                    page.wait_for_selector("mjx-container svg")
                    assert page.locator("mjx-merror").count() == 0
                assert page.evaluate("document.documentElement.scrollWidth") <= width, (name, width)
                cut = "[...document.querySelectorAll('pre')].some(p => p.scrollWidth > p.clientWidth && p.tabIndex < 0)"
                assert not page.evaluate(cut), f"{name}: a keyboard does not reach the end of a line"
                ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
                assert (sum(map(int, re.findall(r"\d+", ground)[:3])) < 200) == (scheme == "dark"), (name, ground)
        page.goto(urljoin(served, "03_query_key/03_query_key.html#figure-3-6"))
        figure = page.locator("#figure-3-6 img")
        figure.scroll_into_view_if_needed()
        page.wait_for_function("document.querySelector('#figure-3-6 img').naturalWidth > 0")
        page.goto(urljoin(served, "search.html?q=saturation"))
        page.wait_for_selector("#search-results a[href*='04_scaling']")
    assert errors == []
    assert [address for address in asked if not address.startswith((served, "data:"))] == []
