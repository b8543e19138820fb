"""Settings of the web edition for Sphinx. `course book` writes the pages' sources and starts it."""

import re
from importlib.metadata import distribution

from docutils.nodes import Text, inline, math, section

project = html_title = "How a Transformer's attention works"
language = "en"
highlight_language = "none"  # of blocks that name no language; lessons name theirs
extensions = ["myst_nb", "sphinx.ext.mathjax"]

nb_execution_mode = "off"  # the outputs are the stored ones
myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence"]
myst_dmath_double_inline = True  # $$ ... $$ within a paragraph, as notebooks take it
myst_heading_anchors = 3

# One file that holds all its extensions and letters, so that a page asks for nothing else.
mathjax_path = "tex-svg-full.js"
mathjax = distribution("sphinx-mathjax-offline").locate_file(f"sphinx-mathjax-offline/static/mathjax/{mathjax_path}")

html_theme = "furo"
html_favicon = "icon.svg"
html_permalinks_icon = "#"
html_copy_source = html_show_sourcelink = html_use_index = html_show_copyright = False
html_static_path = ["book.css", "book.js", "explorers.js", str(mathjax)]
html_css_files = ["book.css"]
html_js_files = ["book.js", "explorers.js"]


def setup(app):
    app.connect("doctree-read", short_anchors, priority=100)  # before the contents are collected
    app.connect("doctree-read", whole_formulas)


def short_anchors(app, doctree):
    """The link at a heading is its short, stable name, such as exercise-7-4, where it has one."""
    for found in doctree.findall(section):
        found["ids"].sort(key=len)


def whole_formulas(app, doctree):
    """What touches a formula, such as its full stop, stays on its line: browsers may break on both sides of it."""
    for formula in list(doctree.findall(math)):
        line, place = formula.parent, formula.parent.index(formula)
        before, after = (line[i] if 0 <= i < len(line) else "" for i in (place - 1, place + 1))
        left = re.search(r"\S*$", before)[0] if isinstance(before, Text) else ""
        right = re.match(r"\S*", after)[0] if isinstance(after, Text) else ""
        kept = inline("", "", Text(left), formula.deepcopy(), Text(right), classes=["kept"])
        line[place] = kept
        if right:
            line[place + 1] = Text(after[len(right) :])
        if left:
            line[place - 1] = Text(before[: -len(left)])
