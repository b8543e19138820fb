"""Makes learners' HTML and Markdown safe for pages that others open: nothing runs, loads or imitates the page.

nh3 parses HTML as a browser does and keeps a short list of tags and attributes. Markdown keeps its formatting, except
for HTML tags and for links that do not lead to the web. Sanitizing takes linear time. Input that is designed to take
longer in a parser, a browser or a converter is shown as plain text.
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
VOID_TAGS = {"br", "hr", "img"}
REMOVED_TAGS = {"script", "style", "template", "iframe", "object", "noscript", "textarea", "title", "svg", "math"}
ATTRIBUTES = {"alt", "title", "colspan", "rowspan", "width", "height"}
STYLES = set(
    "background-color border-collapse color font-family font-size font-weight max-width padding text-align "
    "white-space".split()
)
MOST_STEPS, MOST_ATTRIBUTES = 400_000, 100  # of HTML: estimated steps of a parser, attributes of one tag
# Of Markdown: characters, special characters, levels of nesting, lines.
LONGEST, MOST_SPECIAL, MOST_NESTED, MOST_LINES = 60_000, 2_000, 12, 1_500

WEB = re.compile(r"https?://[^\s<>\"'`\\]{1,2000}")
# An SVG image in <img> cannot run or load anything.
DATA = re.compile(r"data:image/(?:(?:png|jpeg|gif|svg\+xml);base64,[A-Za-z0-9+/=\s]*+|svg\+xml,[^<>\"#\\]*+)")


def clean_html(page: str) -> str:
    """A learner's HTML without anything that runs, loads or imitates the page around it; as plain text if parsing it
    would take long."""
    parsed = UNPARSED.sub("<!---->", page)  # a comment, so that the text around it does not become a new tag
    if _steps(parsed) > MOST_STEPS:
        return no_tex_links(f"<pre>{html.escape(page, quote=False)}</pre>")
    return no_tex_links(CLEANER.clean(parsed))


def _attribute(tag: str, name: str, value: str) -> str | None:
    """The value of an attribute, or None to remove the attribute."""
    if name == "src":
        allowed = DATA.fullmatch(value) is not None
    elif name == "href":
        allowed = WEB.fullmatch(value) is not None or re.fullmatch(r"#[\w-]*", value) is not None
    else:
        allowed = len(value) <= 5000
    return value if allowed else None


CLEANER = nh3.Cleaner(
    tags=TAGS,
    clean_content_tags=REMOVED_TAGS,
    attributes={"*": ATTRIBUTES | {"style"}, "a": {"href"}, "img": {"src"}},
    attribute_filter=_attribute,
    url_schemes={"http", "https", "data"},
    link_rel=None,
    filter_style_properties=STYLES,
)
# Comments, declarations and elements of raw text, in which a parser finds no tags. They are removed before parsing.
RAW = "script|style|template|iframe|object|noscript|textarea|title|svg|math|xmp|noembed|noframes|plaintext"
UNPARSED = re.compile(rf"(?is)<!--.*?(?:-->|\Z)|<(?:[!?]|/[^a-z])[^>]*+>?|<({RAW})(?=[\s/>]).*?(?:</\1\s*+>?|\Z)")
# An attribute, delimited as in a parser.
SET = r"[^\s/>][^\s/>=]*+(?:\s*+=\s*+(?:\"[^\"]*+\"|'[^']*+'|[^\s>\"'][^\s>]*+)?+)?+"
TAG = re.compile(rf"<(/?)([A-Za-z][^\s/>]*+)((?:[\s/]++|{SET})*+)")
ATTRIBUTE = re.compile(SET)
ROWS = {"table", "thead", "tbody", "tfoot", "tr"}
CELLS = ROWS | {"td", "th", "caption"}


def _steps(page: str) -> int:
    """At least as many steps as a parser takes: for each tag, the number of open tags there plus the number of tags
    that were not closed in order so far, because a browser reopens such tags again and again."""
    open_tags: list[str] = []
    steps = misnested = 0
    for tag in TAG.finditer(page):
        closing, name, rest = tag[1], tag[2].lower(), tag[3]
        if len(ATTRIBUTE.findall(rest)) > MOST_ATTRIBUTES:  # a parser compares each pair of them
            return MOST_STEPS + 1
        if not closing:
            if open_tags and open_tags[-1] in ROWS and name not in CELLS:  # a parser moves it out of the table
                misnested += 1
            if name not in VOID_TAGS:
                open_tags.append(name)
        elif open_tags and open_tags[-1] == name:
            open_tags.pop()
        else:
            misnested += 1
        steps += len(open_tags) + misnested
        if steps > MOST_STEPS:
            break
    return steps


TEX_LINKS = re.compile(
    r"\\(?=(?:href|url|html\w*|class|cssId|style|require|unicode|csname|Extension|data|mmlToken|def|let|gdef|edef)"
    r"(?![A-Za-z]))"
)


def no_tex_links(text: str) -> str:
    """Text in which formulas cannot link, load or define anything: such commands get a space after their backslash."""
    return TEX_LINKS.sub(lambda match: match[0] + " ", text)


SCHEME = re.compile(r"(?i)\b(?:javascript|vbscript)(?=\s*+:)|\bdata(?=:\w)")
# Allowed targets of a link: the web, a heading on the page, an attached picture.
LINK = re.compile(r"\((?:https?://[\w\-./?#=%~+,@!*;:$]*|#[\w-]*|attachment:([\w.%-]+))(?: \"[^\"\n]*\")?\)")


def safe_markdown(text: str, attached: Collection[str] = ()) -> str:
    """Markdown without HTML tags whose links lead only to the web, within the page or to a picture in `attached`; shown
    unformatted if converting it would take long."""
    if _takes_long(text):
        return as_code(text)

    def may_link(match: re.Match) -> bool:
        link = LINK.match(match.string, match.end())
        return link is not None and (link[1] is None or link[1] in attached)

    text = re.sub(r"<(?=[^\s=<])|<(?=\s*+(?:[A-Za-z][\w+.-]*+:))", "< ", text)  # in formulas this changes nothing
    text = re.sub(r"\](?=\()", lambda match: "]" if may_link(match) else "] ", text)
    text = re.sub(r"\](?=:)", "] ", text)  # without their definitions, reference links do not work
    return no_tex_links(SCHEME.sub(lambda match: match[0] + "\N{ZERO WIDTH NON-JOINER}", text))


def _takes_long(text: str) -> bool:
    """Whether a Markdown converter may take quadratic time for the text, or recurse too deeply."""
    if len(text) > LONGEST or text.count("\n") > MOST_LINES or sum(map(text.count, "[]*_`!~|$\\&")) > MOST_SPECIAL:
        return True
    prefix = re.compile(r"[ \t]*+(?:(?:>|[-+*]|\d{1,9}[.)])[ \t]*+)*+")
    heads = (prefix.match(line)[0] for line in text.splitlines())
    markers = re.compile(r">|[-+*]|\d+[.)]")  # of quotations and list items
    return any(len(markers.findall(head)) > MOST_NESTED or len(head.expandtabs()) > 8 * MOST_NESTED for head in heads)


def as_code(text: str) -> str:
    """Markdown that shows a text unformatted, as a code block; indented, so that no line can end the block."""
    lines = text[: 10 * LONGEST].splitlines() or [""]
    return "\n".join("    " + line for line in ["", *lines])
