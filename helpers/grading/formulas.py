"""Formulas as MathML, which browsers draw by themselves: a page with formulas loads nothing and runs no script."""

import html
import re

import nh3
from latex2mathml.converter import convert

LONGEST = 2_000  # characters; what is longer stands as it was typed
TAGS = set(
    "math mrow mi mn mo ms mtext mspace mfrac msqrt mroot msub msup msubsup munder mover munderover mtable mtr mtd "
    "mstyle mpadded mphantom".split()
)
# latex2mathml writes what stands in \text as it is, tags included, so a sanitizer has the last word.
CLEANER = nh3.Cleaner(
    tags=TAGS,
    clean_content_tags={"script", "style"},
    attributes={
        "math": {"display"},
        "mo": {"stretchy", "fence", "form", "minsize", "maxsize"},
        "mspace": {"width"},
        "mtd": {"columnalign"},
        "mtext": {"mathvariant"},
        "mstyle": {"displaystyle", "scriptlevel"},
    },
    link_rel=None,
)
WORDS = re.compile(r"\\text(?:tt|rm|it|bf)?\{[^{}]*+\}")
BARS = re.compile(r"\\[lr]Vert(?![A-Za-z])")  # latex2mathml does not know them behind \big


def as_mathml(formula: str, block: bool = False) -> str:
    """A formula in TeX, without its dollars, as harmless HTML; as it was typed where it cannot be read."""
    try:
        if len(formula) > LONGEST:
            raise ValueError("too long")
        tex = WORDS.sub(lambda match: match[0].replace("\\_", "_"), BARS.sub("‖ ", formula))
        return CLEANER.clean(convert(tex, display="block" if block else "inline"))
    except Exception:  # whatever a parser of TeX does with what a learner typed
        tag = "pre" if block else "code"
        return f"<{tag}>{html.escape(formula, quote=False)}</{tag}>"
