"""Outputs of notebooks on a page like Colab's, light and dark, wide and narrow: text is readable and nothing overflows.

The page approximates Colab's style sheet: its colors and fonts, and none of JupyterLab's variables.
"""

import json

import pytest
import torch

from helpers.checking.key import load_keys
from helpers.checking.rendering import as_html
from helpers.checking.session import verdict_on
from helpers.course import course
from helpers.drawing.style import Picture, new_figure

pytestmark = [pytest.mark.full, pytest.mark.timeout(300)]
ROOT = course().root
STORED = [ROOT / "solutions" / x.name / f"{x.name}.ipynb" for x in course().lessons]
SHOWN = [path.stem for path in STORED if path.is_file() and "<img " in path.read_text("utf-8")]
THEMES = {"light": ("#ffffff", "#1f1f1f"), "dark": ("#383838", "#d5d5d5")}  # background, text
LEAST = 4.5
PAGE = """<!doctype html><meta charset="utf-8"><style>
body {{ background: {0}; color: {1}; font: 14px/20px Roboto, "Noto Sans", sans-serif; margin: 8px; }}
pre, code {{ font: 14px/19px monospace; white-space: pre-wrap; }}
.output {{ overflow-x: auto; }}
table {{ border-collapse: collapse; }} td, th {{ padding: 4px 8px; text-align: right; }}
</style>{2}"""
# Each text with too little contrast, as [text, contrast], with the backgrounds and opacities of all its ancestors.
FAINT = """least => {
  const parse = text => {
    const n = text.match(/[\\d.]+(e-?\\d+)?/g).map(Number), unit = text.startsWith('color(') ? 255 : 1;
    return [n[0] * unit, n[1] * unit, n[2] * unit, n.length > 3 ? n[3] : 1];
  };
  const over = (top, below, share) => top.slice(0, 3).map((v, i) => v * share + below[i] * (1 - share));
  const linear = v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4;
  const light = c => { const [r, g, b] = c.map(v => linear(v / 255));
    return .2126 * r + .7152 * g + .0722 * b; };
  const around = e => e ? [...around(e.parentElement), e] : [];
  const found = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode, e = node.parentElement, box = e.getBoundingClientRect();
    if (!node.textContent.trim() || !box.width || ['STYLE', 'SCRIPT'].includes(e.tagName)) continue;
    let ground = [255, 255, 255], opacity = 1;
    for (const one of around(e)) {
      const style = getComputedStyle(one), back = parse(style.backgroundColor);
      ground = over(back, ground, back[3]);
      opacity *= Number(style.opacity);
    }
    const color = parse(getComputedStyle(e).color);
    const [a, b] = [light(over(color, ground, color[3] * opacity)), light(ground)].sort((x, y) => y - x);
    const contrast = (a + .05) / (b + .05);
    if (contrast < least) found.push([node.textContent.trim().slice(0, 60), Math.round(contrast * 100) / 100]);
  }
  return found;
}"""
# Outputs scroll, so that a picture may be 640 px wide, because its text would be too small otherwise.
WIDE = """() => [...document.body.querySelectorAll('*')].filter(e => e.getBoundingClientRect().right > innerWidth + 1)
  .filter(e => e.tagName !== 'IMG' || !e.closest('.output') || e.getBoundingClientRect().width > 641)
  .map(e => [e.tagName, (e.alt || e.textContent || '').slice(0, 60), Math.round(e.getBoundingClientRect().right)])"""


@pytest.fixture(scope="module")
def page():
    from tests import lab

    with lab.browser() as opened:
        yield opened


def shown_by(lesson: str) -> str:
    """Return the HTML that the solution notebook shows, except messages of the check, which have their own test."""
    cells = json.loads((ROOT / "solutions" / lesson / f"{lesson}.ipynb").read_text("utf-8"))["cells"]
    data = [output.get("data", {}) for cell in cells for output in cell.get("outputs", [])]
    data = [item for item in data if not "".join(item.get("text/plain", "")).startswith(tuple("✓✗◐–"))]
    pages = ("".join(item["text/html"]) for item in data if "text/html" in item)
    return "".join(f'<div class="output">{page}</div><hr>' for page in pages)


def by_width(Q, K):
    print("a line that is printed")
    return Q @ K.transpose(-2, -1) / Q.shape[-1]


def loses_float64(Q, K):
    return (Q @ K.transpose(-2, -1) / Q.shape[-1] ** 0.5).float()


def flat(Q, K):
    return torch.ones(3)


def raises(Q, K):
    return Q @ K


def unanswered(Q, K):
    raise NotImplementedError


def reports() -> str:
    """Return the check's messages for answers that are wrong in different ways."""
    keys = load_keys("04_scaling")
    answers = (by_width, loses_float64, flat, raises, unanswered)
    quiz = [as_html(verdict_on(keys["quiz_1"], option)) for option in ("a", "b", "c", None)]
    return "<hr>".join([*(as_html(verdict_on(keys["scaled_scores"], answer)) for answer in answers), *quiz])


def look(page, html: str) -> list[str]:
    """Return what is unreadable or overflows in any theme and width."""
    found = []
    for theme, colors in THEMES.items():
        for width in (1100, 600):
            page.set_viewport_size({"width": width, "height": 900})
            page.set_content(PAGE.format(*colors, html))
            found += [f"{theme}: {text!r} has {contrast} : 1" for text, contrast in page.evaluate(FAINT, LEAST)]
            found += [f"{width} px: {tag} {text!r} ends at {right}" for tag, text, right in page.evaluate(WIDE)]
    return list(dict.fromkeys(found))


@pytest.mark.parametrize("lesson", SHOWN)
def test_a_lesson_is_readable_in_colab(page, lesson):
    html = shown_by(lesson)
    assert "<img" in html
    assert look(page, html) == []


def test_messages_of_the_check_are_readable_in_colab(page):
    assert look(page, reports()) == []


def test_faint_text_and_wide_elements_are_detected(page):
    html = '<p style="color:#888;background:#fff">faint</p><div style="width:900px">wide</div>'
    found = look(page, html)
    assert any("faint" in line for line in found) and any("wide" in line for line in found)


@pytest.mark.parametrize("theme", ["data-jp-theme-light=false", "theme=dark", "class=vscode-dark", "", "theme=light"])
def test_figures_are_inverted_only_on_dark_pages(page, theme):
    figure, ax = new_figure(2, 2)
    wrong = as_html(verdict_on(load_keys("04_scaling")["scaled_scores"], by_width))
    page.set_content(f"<!doctype html><body {theme}>{Picture(figure, 'a').html()}{wrong}</body>")
    filters = page.evaluate("() => [...document.images].map(image => getComputedStyle(image).filter)")
    dark = theme not in ("", "theme=light")
    assert filters == ["invert(0.93) hue-rotate(180deg)" if dark else "none"] * 2
