"""Sphinx's settings for the web edition. `course book` writes the sources of the pages and starts Sphinx."""

import re
from importlib.metadata import distribution

from docutils.nodes import Text, inline, math, section

project = html_title = "How a Transformer's attention works"
language = "en"
highlight_language = "none"  # for blocks without a language; those of lessons have one
extensions = ["myst_nb", "sphinx.ext.mathjax"]

nb_execution_mode = "off"  # the stored outputs are shown
myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence"]
myst_dmath_double_inline = True  # $$ ... $$ within a paragraph, as in notebooks
myst_heading_anchors = 3

# A single file with all extensions and glyphs, so that pages load nothing else.
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
    app.connect("doctree-read", short_anchors, priority=100)  # before the table of contents is collected
    app.connect("doctree-read", whole_formulas)


def short_anchors(app, doctree):
    """Use the short, stable anchor of a heading, such as exercise-7-4, for its link, if it has one."""
    for node in doctree.findall(section):
        node["ids"].sort(key=len)


def whole_formulas(app, doctree):
    """Keep a formula and adjacent characters, such as a period, on one line; browsers may break between them."""
    for formula in list(doctree.findall(math)):
        parent, index = formula.parent, formula.parent.index(formula)
        before, after = (parent[i] if 0 <= i < len(parent) else "" for i in (index - 1, index + 1))
        left = re.search(r"\S*$", before)[0] if isinstance(before, Text) else ""
        right = re.match(r"\S*", after)[0] if isinstance(after, Text) else ""
        kept = inline("", "", Text(left), formula.deepcopy(), Text(right), classes=["kept"])
        parent[index] = kept
        if right:
            parent[index + 1] = Text(after[len(right) :])
        if left:
            parent[index - 1] = Text(before[: -len(left)])
