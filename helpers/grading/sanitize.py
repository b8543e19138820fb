"""What learners wrote, as it may stand in a page that others open: nothing in it runs, loads or poses as the page.

nh3 reads HTML as a browser does and keeps a short list of tags and attributes. Markdown keeps its looks but for tags
and for links that lead elsewhere than to the web. Both take time in proportion to the length, and what is written to
take longer in a parser, a browser or a converter is shown as plain text.
"""

import html
import re
from collections.abc import Collection

import nh3

PICTURES = ("image/png", "image/jpeg", "image/gif")
TAGS = set(
    "a abbr b blockquote br caption code details div em h1 h2 h3 h4 h5 h6 hr i img li ol p pre s small span strong sub "
    "summary sup table tbody td tfoot th thead tr u ul".split()
)
ALONE = {"br", "hr", "img"}
SILENT = {"script", "style", "template", "iframe", "object", "noscript", "textarea", "title", "svg", "math"}
ATTRIBUTES = {"alt", "title", "colspan", "rowspan", "width", "height"}
STYLES = set(
    "background-color border-collapse color font-family font-size font-weight max-width padding text-align "
    "white-space".split()
)
MOST_STEPS, MOST_ATTRIBUTES = 400_000, 100  # of HTML: what a parser does for all of it, and what one tag sets
LONGEST, MOST_BRACKETS, MOST_NESTED, MOST_LINES = 60_000, 2_000, 12, 1_500  # of Markdown

WEB = re.compile(r"https?://[^\s<>\"'`\\]{1,2000}")
# An SVG in an <img> runs nothing and loads nothing.
DATA = re.compile(r"data:image/(?:(?:png|jpeg|gif|svg\+xml);base64,[A-Za-z0-9+/=\s]*+|svg\+xml,[^<>\"#\\]*+)")


def clean_html(page: str) -> str:
    """A learner's HTML without anything that runs, loads or poses as part of the page around it; as plain text where
    reading it would take long."""
    read = UNREAD.sub("<!---->", page)  # so that what stood around it makes no new tag
    if _steps(read) > MOST_STEPS:
        return no_tex_links(f"<pre>{html.escape(page, quote=False)}</pre>")
    return no_tex_links(CLEANER.clean(read))


def _attribute(tag: str, name: str, value: str) -> str | None:
    """The value that an attribute keeps, or None."""
    if name == "src":
        allowed = DATA.fullmatch(value) is not None
    elif name == "href":
        allowed = WEB.fullmatch(value) is not None or re.fullmatch(r"#[\w-]*", value) is not None
    else:
        allowed = len(value) <= 5000
    return value if allowed else None


CLEANER = nh3.Cleaner(
    tags=TAGS,
    clean_content_tags=SILENT,
    attributes={"*": ATTRIBUTES | {"style"}, "a": {"href"}, "img": {"src"}},
    attribute_filter=_attribute,
    url_schemes={"http", "https", "data"},
    link_rel=None,
    filter_style_properties=STYLES,
)
# What a parser reads as no tags though it looks like some; it goes before anything is read.
RAW = "script|style|template|iframe|object|noscript|textarea|title|svg|math|xmp|noembed|noframes|plaintext"
UNREAD = re.compile(rf"(?is)<!--.*?(?:-->|\Z)|<(?:[!?]|/[^a-z])[^>]*+>?|<({RAW})(?=[\s/>]).*?(?:</\1\s*+>?|\Z)")
# An attribute, cut as a parser cuts it.
SET = r"[^\s/>][^\s/>=]*+(?:\s*+=\s*+(?:\"[^\"]*+\"|'[^']*+'|[^\s>\"'][^\s>]*+)?+)?+"
TAG = re.compile(rf"<(/?)([A-Za-z][^\s/>]*+)((?:[\s/]++|{SET})*+)")
ATTRIBUTE = re.compile(SET)
ROWS = {"table", "thead", "tbody", "tfoot", "tr"}
CELLS = ROWS | {"td", "th", "caption"}


def _steps(page: str) -> int:
    """At least what a parser of HTML takes for a page: for each tag, all that stands open there, and all that was
    opened and not closed in its turn, since a browser opens such tags again and again."""
    open_tags: list[str] = []
    steps = untidy = 0
    for tag in TAG.finditer(page):
        closing, name, rest = tag[1], tag[2].lower(), tag[3]
        if len(ATTRIBUTE.findall(rest)) > MOST_ATTRIBUTES:  # a parser compares them in pairs
            return MOST_STEPS + 1
        if not closing:
            if open_tags and open_tags[-1] in ROWS and name not in CELLS:  # a parser moves it out of the table
                untidy += 1
            if name not in ALONE:
                open_tags.append(name)
        elif open_tags and open_tags[-1] == name:
            open_tags.pop()
        else:
            untidy += 1
        steps += len(open_tags) + untidy
        if steps > MOST_STEPS:
            break
    return steps


TEX_LINKS = re.compile(
    r"\\(?=(?:href|url|html\w*|class|cssId|style|require|unicode|csname|Extension|data|mmlToken|def|let|gdef|edef)"
    r"(?![A-Za-z]))"
)


def no_tex_links(text: str) -> str:
    """Text in which no formula can link, load or name anything: a space follows the backslash of what could."""
    return TEX_LINKS.sub(lambda match: match[0] + " ", text)


SCHEME = re.compile(r"(?i)\b(?:javascript|vbscript)(?=\s*+:)|\bdata(?=:\w)")
# Where a link may lead: to the web, to a place in the page, to a picture that is attached.
LINK = re.compile(r"\((?:https?://[\w\-./?#=%~+,@!*;:$]*|#[\w-]*|attachment:([\w.%-]+))(?: \"[^\"\n]*\")?\)")


def safe_markdown(text: str, attached: Collection[str] = ()) -> str:
    """Markdown in which no tag begins and no link leads elsewhere than to the web or to what is attached; what would
    take a converter too long is shown as it was typed."""
    if _takes_long(text):
        return as_code(text)

    def may_link(match: re.Match) -> bool:
        link = LINK.match(match.string, match.end())
        return link is not None and (link[1] is None or link[1] in attached)

    text = re.sub(r"<(?=[^\s=<])|<(?=\s*+(?:[A-Za-z][\w+.-]*+:))", "< ", text)  # reads the same in text and in math
    text = re.sub(r"\](?=\()", lambda match: "]" if may_link(match) else "] ", text)
    text = re.sub(r"\](?=:)", "] ", text)  # a reference's definition: then no reference is one
    return no_tex_links(SCHEME.sub(lambda match: match[0] + "\N{ZERO WIDTH NON-JOINER}", text))


def _takes_long(text: str) -> bool:
    """Whether a converter of Markdown may take a time that grows with the square of this, or be nested too deeply."""
    if len(text) > LONGEST or text.count("\n") > MOST_LINES or sum(map(text.count, "[]*_`!~|$\\&")) > MOST_BRACKETS:
        return True
    steps = re.compile(r"[ \t]*+(?:(?:>|[-+*]|\d{1,9}[.)])[ \t]*+)*+")
    heads = (steps.match(line)[0] for line in text.splitlines())
    marks = re.compile(r">|[-+*]|\d+[.)]")
    return any(len(marks.findall(head)) > MOST_NESTED or len(head.expandtabs()) > 8 * MOST_NESTED for head in heads)


def as_code(text: str) -> str:
    """Markdown that shows a text as it is: indented, so that no line of it can end that."""
    lines = text[: 10 * LONGEST].splitlines() or [""]
    return "\n".join("    " + line for line in ["", *lines])
