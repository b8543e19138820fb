"""Learners' text in pages that others open: no script runs, no link is dangerous, and nothing takes long."""

import re
import time
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nbconvert.filters.markdown_mistune import markdown2html_mistune as as_page

from helpers.grading.safe_text import one_line
from helpers.grading.sanitize import ATTRIBUTES, TAGS, clean_html, safe_markdown
from tests.growth import grows_as_a_square

LIVE = [
    "[a](javascript:alert(1))",
    "[a](JaVaScRiPt:alert(1))",
    "[a]( javascript:alert(1) )",
    "[a](< javascript:alert(1)>)",
    "[a](<javascript:alert(1)>)",
    "[a](java&#115;cript:alert(1))",
    "[a](javascript&colon;alert(1))",
    "[a](\\javascript:alert(1))",
    "[a](data:text/html;base64,PHNjcmlwdD4=)",
    "[a](vbscript:x)",
    "[a](//evil.example/x)",
    "[a][b]\n\n[b]: javascript:alert(1)",
    "[b]\n\n> [b]: <javascript:alert(1)>",
    "[b]\n\n- [b]:\n  javascript:alert(1)",
    "![x](javascript:alert(1))",
    "![x](data:image/svg+xml;base64,AAAA)",
    '![x](https://a.example/" onerror="alert(1))',
    "<javascript:alert(1)>",
    "<a href='javascript:alert(1)'>x</a>",
    "<img src=x onerror=alert(1)>",
    "`<b>`<script>alert(1)</script>",
    "[![x](javascript:a)](javascript:b)",
    '[a](https://a.example "x" onclick=alert(1))',
]


class Links(HTMLParser):
    def __init__(self, page):
        super().__init__()
        self.targets, self.tags, self.names = [], set(), set()
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.names |= {name for name, _ in attrs}
        self.targets += [value or "" for name, value in attrs if name in ("href", "src")]


def is_harmless(target):
    return target.startswith(("https://", "http://", "#", "data:image/png;", "data:image/jpeg;", "data:image/gif;"))


@pytest.mark.parametrize("text", LIVE)
def test_no_link_in_markdown_runs_a_script(text):
    for markdown in (text, f"so $a<b$ {text} and\n\n{text}"):
        seen = Links(as_page(safe_markdown(markdown)))
        assert all(map(is_harmless, seen.targets)), seen.targets
        assert not {name for name in seen.names if name.startswith("on")} and "script" not in seen.tags


@pytest.mark.parametrize("word", ["href", "url", "style", "class", "cssId", "require", "def", "unicode"])
def test_no_formula_contains_a_link_or_loads_anything(word):
    for cleaned in (
        safe_markdown(f"$\\{word}{{javascript:x}}{{y}}$"),
        clean_html(f"<b>$\\{word}{{javascript:x}}{{y}}$</b>"),
    ):
        assert f"\\{word}" not in cleaned and word in cleaned
    assert safe_markdown("$\\hrefs \\defeat \\frac{1}{2}$") == "$\\hrefs \\defeat \\frac{1}{2}$"


def test_ordinary_markdown_stays_as_it_is():
    text = (
        "The *width* grows: $\\sqrt{d_k}$, see [the paper](https://arxiv.org/abs/1706.03762) and [above](#scaling).\n\n"
        "1. `scores[i](x)` is no link\n2. **bold**\n\n> quoted\n\n```python\nx = a[0]\n```\n"
    )
    assert safe_markdown(text) == text.replace("[i](x)", "[i] (x)")
    assert '<a href="https://arxiv.org/abs/1706.03762">' in as_page(safe_markdown(text))


def test_attached_pictures_stay_and_missing_ones_raise_no_error():
    text = "![mine](attachment:a.png)"
    assert safe_markdown(text, {"a.png"}) == text
    assert "attachment" in as_page(safe_markdown(text))


SLOW = {
    "brackets": "[" * 5000,
    "stars": "*a " * 5000,
    "quotes": "> " * 5000 + "x",
    "nested lists": "\n".join("  " * depth + "- x" for depth in range(500)),
    "nested once": "- " * 5000,
    "headings": "x\n===\n" * 9000,
    "references": "\n".join(f"[a{n}]: https://a.example/{n}" for n in range(3000)),
    "ticks": "".join("`" * n + "a" for n in range(300)),
    "long": "word " * 100_000,
    "pipes": "|a" * 5000 + "\n" + "|-" * 5000,
}


@pytest.mark.parametrize("name", SLOW)
def test_markdown_that_would_take_long_is_shown_as_plain_text(name):
    began = time.process_time()
    page = as_page(safe_markdown(SLOW[name]))
    assert time.process_time() - began < 4
    assert "<pre>" in page


def numbered(count: int, piece: str) -> str:
    return "".join(piece.replace("#", str(number)) for number in range(count))


# size -> HTML for which a parser, or a regular expression that looks for tags, may need quadratic time.
GROWING = {
    "formatting that is opened again": lambda n: numbered(n, "<b a#=1>") + "<p>" * n,
    "closed by another tag": lambda n: numbered(n, "<b a#=1></i>") + "<p>" * n,
    "hidden in a quotation": lambda n: '<p "' + numbered(n, "<b a#=1>") + "<p>" * n + '">',
    "hidden behind an equals sign": lambda n: '<p ="' + numbered(n, "<b a#=1>") + "<p>" * n + '">',
    "hidden in a script": lambda n: numbered(n, "<b a#=1><script></b></script>") + "<p>" * n,
    "open blocks": lambda n: "<div>" * n + "<p>" * n,
    "nested lists": lambda n: "<ul><li>" * n,
    "formatting": lambda n: "<b><i>" * n,
    "brackets in a style": lambda n: "<div style='width:" + "(" * 10 * n + "'>x</div>",
    "open tags": lambda n: "<a " * n,
    "scripts": lambda n: "<script>" * n,
    "end tags": lambda n: "</b>" * n,
    "open quotations": lambda n: '<a href="' * n,
    "entities": lambda n: "&lt" * n,
    "attributes": lambda n: "<p " + numbered(n, " a#") + ">",
    "quoted attributes": lambda n: "<p " + numbered(n, ' a#=""') + ">",
    "a name without an end": lambda n: "<p " + "a" * 8 * n,
    "quotations without an end": lambda n: "<a b='\"" * n,
    "moved out of a table": lambda n: "<table>" + "<b>a</b>" * n,
    "text in a table": lambda n: "<table>" + "a<tr></tr>" * n,
    "comments": lambda n: "<!-- --" * n,
    "ends of a script": lambda n: "<script></script " * n,
    "a character reference": lambda n: "&#" + "1" * 5 * n + ";<p title='&#" + "1" * 5 * n + ";'>",
    "a style": lambda n: "<p style='" + "color: red;" * n + "'>a",
    "an honest table": lambda n: "<table>" + "<tr><td>1</td><td>2</td></tr>" * (n // 4) + "</table>",
}


@pytest.mark.parametrize("name", GROWING)
def test_cleaning_html_does_not_take_quadratic_time(name):
    assert not grows_as_a_square(GROWING[name], clean_html, 2_000)


def test_html_that_would_take_long_is_shown_as_plain_text():
    page = GROWING["formatting that is opened again"](2_000)
    assert clean_html(page) == f"<pre>{page.replace('<', '&lt;').replace('>', '&gt;')}</pre>"
    assert clean_html(GROWING["an honest table"](20_000)).startswith("<table>")
    assert clean_html("<p>one<p>two" * 200).startswith("<p>one</p>")


def test_a_character_reference_with_5000_digits_is_read_as_one_character():
    for digits in ("1" * 5_000, "0" * 5_000 + "65"):
        cleaned = clean_html(f"&#{digits};<b title='&#{digits};'>x</b>")
        assert len(cleaned) < 60 and cleaned.endswith("x</b>")
        as_page(safe_markdown(f"&#{digits}; [a](https://a.example/&#{digits};)"))


def test_tables_and_pictures_of_learners_are_kept():
    page = '<table style="color: red; position: fixed"><tr><td colspan=2>a &amp; b &lt; c<br></td></tr></table>'
    cleaned = '<table style="color:red"><tbody><tr><td colspan="2">a &amp; b &lt; c<br></td></tr></tbody></table>'
    assert clean_html(page) == cleaned
    picture = '<img alt="a &lt; b" src="data:image/png;base64,AAAA">'
    drawing = "<img src=\"data:image/svg+xml,%3Csvg width='2'/%3E\">"
    assert clean_html(picture) == picture and clean_html(drawing) == drawing
    assert clean_html('<img src="data:text/html,%3Cb%3E"><img src="https://x/y.png">') == "<img><img>"
    assert clean_html("<style>.x{}</style><p>a") == "<p>a</p>"
    assert clean_html("a<SCRIPT>b</Script>c") == "ac"
    assert clean_html("1 < 2 & 3 > 2") == "1 &lt; 2 &amp; 3 &gt; 2"


PIECES = st.sampled_from(
    "< > / <b> </b> <script> </script> <a_href= javascript: ' \" <img_src= onerror= <!-- --> <style> style= url( "
    "expression( &lt; &#60; _ = x \n \0 <svg/onload=a>".split(" ")
).map(lambda piece: piece.replace("_", " "))


@given(st.lists(PIECES | st.text(max_size=5), max_size=30).map("".join))
def test_cleaned_html_contains_only_what_is_allowed(page):
    cleaned = clean_html(page)
    seen = Links(cleaned)
    assert seen.tags <= TAGS and seen.names <= ATTRIBUTES | {"href", "src", "style"}
    assert all(map(is_harmless, seen.targets))
    assert clean_html(cleaned) == cleaned
    assert not re.search(r"<(?!/?[a-z0-9]+( [a-z]+=\"[^\"<>]*\")*>)", cleaned)


@given(
    st.lists(
        st.sampled_from(LIVE + ["[", "](", "]:", "(", ")", "\n", "> ", "- ", "`", "\\", "$", "<", "&#"]), max_size=12
    )
)
def test_no_mixture_of_markdown_pieces_runs_a_script(parts):
    seen = Links(as_page(safe_markdown("".join(parts))))
    assert all(map(is_harmless, seen.targets)), seen.targets


@given(st.text(max_size=300) | st.text(st.characters(categories=["Cs", "Cc", "Cf", "Zl"]), max_size=40))
def test_one_line_gives_one_printable_line_of_any_text(text):
    cleaned = one_line(text)
    cleaned.encode("utf-8")
    assert "\n" not in cleaned and "\x1b" not in cleaned and len(cleaned) <= 400


@pytest.mark.parametrize(
    "page",
    [
        '<a href="https://a.example/x y">z</a>',
        '<a href="https://a.example/x`y">z</a>',
        '<a href="#top javascript">z</a>',
        '<img src="data:image/png;base64,AA==%0A">',
        '<img src="data:image/svg+xml,%3Csvg/%3E#x">',
    ],
)
def test_an_address_with_odd_characters_is_removed(page):
    assert "href=" not in clean_html(page) and "src=" not in clean_html(page)
