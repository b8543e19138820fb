"""The web edition: what its pages show and hide, and the full site in a browser, without requests to other hosts."""

import contextlib
import dataclasses
import functools
import html
import http.server
import math
import os
import re
import statistics
import threading
from importlib.util import find_spec
from urllib.parse import unquote, urljoin, urlsplit
from xml.etree import ElementTree

import pytest

from helpers.__main__ import main
from helpers.authoring import frames
from helpers.authoring.book import LEAD, lesson_page, prerequisite_map, with_references, with_terms
from helpers.authoring.explorers import CALL
from helpers.authoring.release import ASKED
from helpers.authoring.text import read_lesson, solution_lines
from helpers.course import course
from tests.conftest import EVERY
from tests.lab import browser, faults
from tests.test_frames import unpacked

LESSON = course().lesson("5")
KNOWN = {"lesson-5": "05_masking", "lesson-7": "07_value_weighting", "exercise-7-4": "07_value_weighting"}
OPENED = "index 03_query_key/03_query_key 07_value_weighting/07_value_weighting docs/glossary docs/teaching".split()

NUMBERED = re.compile(r"(^|/)\d\d")
# 640 px is a screen of 1280 px at 200% zoom.
LOOKS = [(scheme, width) for scheme in ("light", "dark") for width in (1280, 900, 640, 390)]


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """(a lesson's page without answers, its page with answers, the folder of its pictures)."""
    folder = tmp_path_factory.mktemp("pages")
    return (
        lesson_page(course(), LESSON, folder / "out", False),
        lesson_page(course(), LESSON, folder / "in", True),
        folder,
    )


def text_of(notebook) -> str:
    return "\n".join(cell.source for cell in notebook.cells)


def test_only_a_teachers_page_shows_the_answers(pages):
    without, answers, _ = (text_of(page) if index < 2 else page for index, page in enumerate(pages))
    lesson = read_lesson(course(), LESSON)
    lines = {line for source in lesson.answers.values() for line in solution_lines(source) if len(line) > 25}
    shown, folded = re.sub(r"\s", "", without), re.sub(r"\s", "", answers)
    assert lines and not [line for line in lines if line in shown]
    assert all(line in folded for line in lines)
    assert "Model answer" in answers and "Model answer" not in without
    assert "<summary>The answer</summary>" not in without
    assert answers.count("<summary>The answer</summary>\n\n**") == sum(
        name.startswith("quiz") for name in lesson.answers
    )
    assert "BEGIN SOLUTION" not in answers and "### END" not in without


def test_a_page_hides_checks_set_up_and_predicted_outputs(pages):
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
        if ASKED.search(getattr(above, "source", "")) and cell.get("outputs")
    ]
    assert guessed and all("hide-output" in tags for tags in guessed)


def test_figures_are_files_with_anchors_and_alt_texts(pages):
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
    assert "The controls work in the notebook." in shown


def test_a_forks_page_links_to_colab_and_binder_without_badges(tmp_path):
    fork = dataclasses.replace(course(), owner="ada", repository="attention")
    shown = text_of(lesson_page(fork, LESSON, tmp_path / "pictures", False))[:1500]
    assert "colab.research.google.com/github/ada/attention/" in shown and "labpath=notebooks%2F05_masking" in shown
    assert "badge" not in shown and "<img" not in shown and "![" not in shown


def test_references_become_links_if_their_target_exists():
    left = "`` lesson 5 `a` ``: $lesson 5$, [lesson 5](x), Figure 7.4."
    text = f"As lessons 5 and 7 say, see exercise 7.4, exercise 7.9 and {left}"
    assert with_references(text, KNOWN, "../", "07_value_weighting") == (
        'As <a href="../05_masking/05_masking.html">lessons 5</a> and 7 say, see '
        '<a href="#exercise-7-4">exercise 7.4</a>, '
        f"exercise 7.9 and {left}"
    )


def test_the_map_has_a_link_and_arcs_for_each_lesson():
    drawn = prerequisite_map({"00_a": "0. A", "01_b": "1. B & C"}, {"00_a": [], "01_b": ["00_a"]})
    assert drawn.count("<path") == 1 and "1. B &amp; C needs 0. A" in drawn and 'href="01_b/01_b.html"' in drawn


def test_a_list_of_terms_becomes_a_glossary():
    assert with_terms("# G\n\n- **a, b**: One\n  two.\n- **c**: Three.\n") == (
        "# G\n\n::::{glossary}\na, b\n  One\n  two.\n\nc\n  Three.\n::::\n"
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of the site, made by the command; with few pictures for its explorers, which would take minutes."""
    if find_spec("sphinx") is None:
        if os.environ.get("COURSE_CI"):
            pytest.fail("Sphinx is missing; the Makefile installs it with the extra `book`")
        pytest.skip('no Sphinx here: pip install -e ".[author,book]"')
    folder = tmp_path_factory.mktemp("book")
    with pytest.MonkeyPatch.context() as patch:
        if not EVERY:
            patch.setattr(frames, "STATES", 9)
        with contextlib.redirect_stdout((folder / "printed.txt").open("w")) as printed:
            assert main(["book", "--to", str(folder)]) == 0, "Sphinx reported a problem"
        printed.close()
    return folder / "site"


@pytest.mark.full
def test_the_command_reports_its_progress(site):
    """Reading takes minutes, so each lesson is named before it is read, and Sphinx after the last one."""
    lines = (site.parent / "printed.txt").read_text().splitlines()
    lessons = course().lessons
    expected = [f"{number} of {len(lessons)}: {lesson.name}" for number, lesson in enumerate(lessons, 1)]
    assert [line for line in lines if line in expected] == expected
    assert lines.index(expected[-1]) < lines.index("All lessons are read. Now Sphinx makes the pages.")
    assert any(str(site) in line for line in lines)


@pytest.mark.full
def test_all_links_and_anchors_of_the_site_exist(site):
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
        marked = r'<(pre|code|script|style|title)\b.*?</\1>|<(div|span) class="math.*?</\2>|<[^>]*>'
        assert "$" not in re.sub(marked, "", pages[page], flags=re.DOTALL), f"{lesson.name}: a formula is left"
        assert (page.parent / f"{lesson.name}.ipynb").is_file()
        assert f'<a href="{lesson.name}.ipynb" download>' in pages[page]
    size = sum(file.stat().st_size for file in site.rglob("*") if file.is_file())
    assert size < (30e6 if EVERY else 25e6)  # all pictures of its explorers have 4 MB more


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


@contextlib.contextmanager
def watched_page():
    """Yield (page, errors and warnings in its console, addresses that it requested)."""
    with browser() as page:
        errors, requested = [], []
        page.on("console", lambda entry: errors.append(entry.text) if entry.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("request", lambda request: requested.append(request.url))
        yield page, errors, requested


def set_formulas(page) -> None:
    """Wait until MathJax has set every formula of the open page, and require that none has an error."""
    formulas = page.locator(".math").count()
    if formulas:
        page.wait_for_function("window.MathJax?.startup?.promise")
        page.evaluate("MathJax.startup.promise")
        unset = "[...document.querySelectorAll('.math')].filter((one) => !one.querySelector('mjx-container svg'))"
        assert page.evaluate(f"{unset}.map((one) => one.textContent)") == []
        assert page.locator("mjx-merror").count() == 0


@pytest.mark.full
def test_pages_work_in_a_browser_in_light_and_dark_and_at_all_widths(served):
    with watched_page() as (page, errors, requested):
        for scheme, width in (("light", 1280), ("dark", 390)):
            page.emulate_media(color_scheme=scheme)
            page.set_viewport_size({"width": width, "height": 900})
            for name in OPENED:
                page.goto(urljoin(served, f"{name}.html"), wait_until="load")
                if name == "index":
                    page.wait_for_selector(".machine.awake")
                    assert "afrique" in page.locator(".machine-output").inner_text()
                set_formulas(page)
                assert page.evaluate("document.documentElement.scrollWidth") <= width, (name, width)
                cut = "[...document.querySelectorAll('pre')].some(p => p.scrollWidth > p.clientWidth && p.tabIndex < 0)"
                assert not page.evaluate(cut), f"{name}: the end of a line cannot be reached by keyboard"
                assert faults(page) == [], name
                ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
                assert (sum(map(int, re.findall(r"\d+", ground)[:3])) < 200) == (scheme == "dark"), (name, ground)
                for narrow in (320, 350, 370) if width == 390 else ():
                    page.set_viewport_size({"width": narrow, "height": 900})
                    assert page.evaluate(ALONE) == [], f"{name}, {narrow} px: a full stop begins a line"
                page.set_viewport_size({"width": width, "height": 900})
        page.goto(urljoin(served, "03_query_key/03_query_key.html#figure-3-6"))
        figure = page.locator("#figure-3-6 img")
        figure.scroll_into_view_if_needed()
        page.wait_for_function("document.querySelector('#figure-3-6 img').naturalWidth > 0")
        page.goto(urljoin(served, "search.html?q=saturation"))
        page.wait_for_selector("#search-results a[href*='04_scaling']")
    assert errors == []
    assert [address for address in requested if not address.startswith((served, "data:"))] == []


@pytest.mark.full
@pytest.mark.parametrize("width, height", [(1280, 800), (390, 844)])
def test_the_first_screen_introduces_the_course_and_shows_attention(site, width, height):
    with browser(width, height) as page:
        page.goto((site / "index.html").as_uri())
        page.wait_for_selector(".machine.awake")
        start = page.get_by_role("link", name="Start lesson 0")
        for seen in (page.get_by_text(LEAD[:60]), start, page.locator(".machine-glance table")):
            box = seen.bounding_box()
            assert 0 <= box["y"] and box["y"] + box["height"] <= height, seen
        assert page.locator(".machine-glance tbody th").all_inner_texts()[:2] == ["jane", "visite"]
        start.click()
        page.wait_for_url("**/00_start_here/00_start_here.html")
        wide = page.evaluate("[...document.querySelectorAll('figure')].filter(f => f.scrollWidth > f.clientWidth + 2)"
                             ".every(f => f.classList.contains('more'))")  # fmt: skip
        assert wide


# The text around formulas whose next character, such as a full stop, is on another line.
ALONE = r"""() => [...document.querySelectorAll("span.math")].filter((set) => {
  const text = set.nextSibling;
  if (!/^\S/.test(text?.data ?? "")) return false;
  const mark = document.createRange();
  mark.setStart(text, 0);
  mark.setEnd(text, 1);
  return mark.getBoundingClientRect().left < set.getBoundingClientRect().left;
}).map((one) => one.parentElement.textContent)"""


@pytest.mark.full
def test_a_lesson_is_painted_within_a_second_from_disk(site):
    lesson = max(
        (site / one.name / f"{one.name}.html" for one in course().lessons), key=lambda path: path.stat().st_size
    )
    spent = [math.inf]
    with browser() as page:
        while min(spent) >= 1000 and len(spent) < 20:  # a busy machine is sometimes late
            page.goto(lesson.as_uri(), wait_until="load")
            page.wait_for_function("performance.getEntriesByName('first-contentful-paint').length")
            spent.append(page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime"))
    assert min(spent) < 1000, (lesson.name, spent)


@pytest.mark.full
@pytest.mark.timeout(3600 if EVERY else 600)
def test_axe_finds_no_accessibility_problem_on_any_page(site, served):
    """All folds are open. Without COURSE_EVERY, each page has one of the looks. Pages of the test above, lessons, which
    take seconds each, and all but one table of costs are skipped."""
    found = []
    names = sorted(path.relative_to(site).as_posix() for path in site.rglob("*.html"))
    if not EVERY:
        names = [
            name for name in names if name[:-5] not in OPENED and (not NUMBERED.search(name) or "costs/10" in name)
        ]
    with watched_page() as (page, errors, _):
        for number, name in enumerate(names):
            for scheme, width in LOOKS if EVERY else LOOKS[number % len(LOOKS) :][:1]:
                page.emulate_media(color_scheme=scheme)
                page.set_viewport_size({"width": width, "height": 900})
                page.goto(urljoin(served, name), wait_until="load")
                page.add_style_tag(content="* { animation: none !important }")  # folds fade in otherwise
                page.evaluate("document.querySelectorAll('details').forEach((fold) => (fold.open = true))")
                set_formulas(page)
                look = f"{name}, {scheme}, {width} px"
                found += [f"{look}: {fault}" for fault in faults(page)]
                if page.evaluate("document.documentElement.scrollWidth") > width:
                    found.append(f"{look}: it is wider than the screen")
    assert found == [] and errors == []


@pytest.mark.full
def test_printed_pages_are_unfolded_and_complete(served):
    with browser(width=700) as page:  # the width of A4
        for name in ("index", "04_scaling/04_scaling", "docs/glossary"):
            page.goto(urljoin(served, f"{name}.html"), wait_until="load")
            set_formulas(page)
            closed = "document.querySelectorAll('article details:not([open])').length"
            page.evaluate(f"addEventListener('beforeprint', () => (window.closed = {closed}))")
            before = page.evaluate(closed)
            assert len(page.pdf()) > 10_000
            assert page.evaluate("window.closed") == 0 and page.evaluate(closed) == before
            page.emulate_media(media="print")
            page.evaluate("document.querySelectorAll('details').forEach((fold) => (fold.open = true))")
            assert page.evaluate(CUT) == [], name
            for left_out in (".sidebar-drawer", ".toc-drawer", ".skip-to-content", ".controls", ".ways"):
                assert not any(one.is_visible() for one in page.locator(left_out).all()), (name, left_out)


# Elements that extend beyond the right edge or need a scroll bar, except those that only screen readers use.
CUT = """[...document.querySelectorAll("article *")].filter((one) => one.getClientRects().length
  && getComputedStyle(one).clipPath == "none" && !one.closest("mjx-assistive-mml")
  && (one.getBoundingClientRect().right > innerWidth + 1
      || one.scrollWidth > one.clientWidth + 1 && getComputedStyle(one).overflowX != "visible"))
  .map((one) => one.outerHTML.slice(0, 120))"""


def explorers_of(lesson) -> list[str]:
    """Return the ids of the explorers that the lesson calls."""
    cells = [cell.source for cell in read_lesson(course(), lesson).notebook.cells if cell.cell_type == "code"]
    return [f"explorer-{call.replace('_', '-')}" for source in cells for call in CALL.findall(source)]


def pictures_of(site, lesson, name) -> tuple[list[str], list[str]]:
    """Return (all pictures of an explorer, their alt texts)."""
    script = (site / lesson.name / f"{name}.js").read_text(encoding="utf-8")
    return unpacked(re.search(r'= "([^"]+)"', script)[1])


@pytest.mark.full
@pytest.mark.parametrize("lesson", course().lessons, ids=lambda lesson: lesson.name)
def test_explorers_have_a_picture_for_each_state_of_their_controls(site, lesson):
    page = (site / lesson.name / f"{lesson.name}.html").read_text(encoding="utf-8")
    boxes = re.findall(r'(<div class="explorer" id="([\w-]+)".*?<p class="said")', page, re.DOTALL)
    assert [name for _, name in boxes] == explorers_of(lesson) != []
    for box, name in boxes:
        pictures, alts = pictures_of(site, lesson, name)
        states = [int(most) + 1 for most in re.findall(r'<input type="range"[^>]*? max="(\d+)"', box)]
        states += [chosen.count("<option") for chosen in re.findall(r"<select id.*?</select>", box)]
        states += [2] * box.count('<input type="checkbox"')
        assert len(pictures) == math.prod(states), name
        assert len(set(pictures)) > 1 and len(set(alts or pictures)) > 1, name
        for picture, alt in zip(pictures, alts, strict=bool(alts)):
            assert alt and ElementTree.fromstring(picture).tag.endswith("svg"), name


@pytest.mark.full
def test_every_explorer_works_by_keyboard_without_a_server(site):
    """The picture, its alt text and the value that a screen reader reads change, the picture within a frame."""
    with watched_page() as (page, errors, requested):
        page.route("**/tex-svg-full.js*", lambda route: route.fulfill(body=""))  # formulas take seconds
        for lesson in course().lessons:
            page.goto((site / lesson.name / f"{lesson.name}.html").as_uri(), wait_until="load")
            page.evaluate("document.querySelectorAll('details').forEach((fold) => (fold.open = true))")
            for name in explorers_of(lesson):
                move_every_control(page.locator(f"#{name}"), pictures_of(site, lesson, name), name)
            if lesson.name == "03_query_key":  # its pictures are the largest
                box = page.locator("#explorer-four-scores")
                medians = [statistics.median(box.evaluate(TIMES)) for _ in range(3)]  # a busy machine may be late
                assert min(medians) < 16, medians
        page.goto(f"{(site / 'search.html').as_uri()}?q=saturation")
        page.wait_for_selector("#search-results a[href*='04_scaling']")
        page.wait_for_load_state("networkidle")
    assert errors == []
    assert [address for address in requested if not address.startswith(("file:", "data:", "blob:"))] == []


@pytest.mark.full
@pytest.mark.parametrize("by", ["mouse", "touch"])
def test_a_slider_works_by_mouse_and_by_touch(site, by):
    lesson = course().lesson("04_scaling")
    with watched_page() as (page, _, _):
        own = page.context.browser.new_context(has_touch=by == "touch", viewport={"width": 390, "height": 800})
        page = own.new_page()
        page.route("**/tex-svg-full.js*", lambda route: route.fulfill(body=""))
        page.goto((site / lesson.name / f"{lesson.name}.html").as_uri(), wait_until="load")
        box = page.locator(".explorer").first
        slider = box.locator("input[type=range]").first
        slider.scroll_into_view_if_needed()
        for share in (0.98, 0.02):
            before, place = look(box), slider.bounding_box()
            x, y = place["x"] + share * place["width"], place["y"] + place["height"] / 2
            if by == "touch":
                page.touchscreen.tap(x, y)
            else:
                page.mouse.click(x, y)
            page.wait_for_function(
                "([box, words]) => box.querySelector('.shown img').alt != words", arg=[box.element_handle(), before[0]]
            )
            assert slider.input_value() == (slider.get_attribute("max") if share > 0.5 else "0")
            assert look(box)[1] != before[1]
        own.close()


def move_every_control(box, pictures, name):
    """Move every control of an explorer. pictures: the result of `pictures_of`."""
    looks, (pages, alts) = [look(box)], pictures
    for control in box.locator("input:enabled, select:enabled").all():
        kind, read = control.get_attribute("type") or "select", control.get_attribute("aria-valuetext")
        last = kind == "range" and control.input_value() == control.get_attribute("max")
        if kind == "select":
            last = control.evaluate("one => one.selectedIndex == one.length - 1")
        state = box.get_attribute("data-state")
        back, on = ("ArrowUp", "ArrowDown") if kind == "select" else ("ArrowLeft", "ArrowRight")
        control.press("Space" if kind == "checkbox" else back if last else on)
        box.page.wait_for_function("([box, state]) => box.dataset.state != state", arg=[box.element_handle(), state])
        assert kind != "range" or control.get_attribute("aria-valuetext") != read, name
        looks.append(look(box))
        if alts:
            shown = alts[state_of(box)], pages[state_of(box)]
            assert (looks[-1][0], unquote(looks[-1][1].partition(",")[2])) == shown, f"{name}: of another state"
    assert len(set(looks)) > 1 and len({words for words, _ in looks}) > 1, f"{name}: no control changes it"
    settled = "([box, words]) => box.querySelector('.said').textContent === words"
    box.page.wait_for_function(settled, arg=[box.element_handle(), looks[-1][0]])  # once no further change follows


def state_of(box) -> int:
    """Return the index of the picture that an explorer has to show; the last control varies fastest."""
    state = 0
    for control in box.locator("input:enabled, select:enabled").all():
        if control.get_attribute("type") == "range":
            place, size = int(control.input_value()), int(control.get_attribute("max")) + 1
        elif control.get_attribute("type") == "checkbox":
            place, size = int(control.is_checked()), 2
        else:
            place, size = control.evaluate("one => one.selectedIndex"), control.locator("option").count()
        state = state * size + place
    return state


def look(box) -> tuple[str, str]:
    """Return (alt text, source) of an explorer's picture, or (text, "") if it shows only text."""
    image = box.locator(".shown img")
    if not image.count():
        return box.locator(".shown").inner_text(), ""
    return image.get_attribute("alt"), image.get_attribute("src")


# Milliseconds from a slider's event until the new picture is decoded, for twenty steps up and down.
TIMES = """async (box) => {
  const slider = box.querySelector("input"), image = box.querySelector(".shown img"), spent = [];
  for (let i = 0, step = 1; i < 20; i++) {
    if (+slider.value + step < 0 || +slider.value + step > slider.max) step = -step;
    slider.value = +slider.value + step;
    const drawn = new Promise((done) => image.addEventListener("load", done, { once: true }));
    const start = performance.now();
    slider.dispatchEvent(new Event("input", { bubbles: true }));
    await drawn;
    await image.decode();
    spent.push(performance.now() - start);
    await new Promise((done) => setTimeout(done, 60));
  }
  return spent;
}"""
