"""What learners wrote, as it may stand in a page that others open: nothing in it runs, loads or poses as the page.

HTML is written anew from a short list of tags and attributes, in one pass; whatever is no such tag is text. Markdown
keeps its looks but for tags and for links that lead elsewhere than to the web. Both take time in proportion to the
length, and what is written to take longer in a browser or a converter is shown as plain text.
"""

from __future__ import annotations

import html
import re
from collections.abc import Collection

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
DEEPEST, MOST_TAGS = 60, 20_000  # of HTML
LONGEST, MOST_BRACKETS, MOST_NESTED, MOST_LINES = 60_000, 2_000, 12, 1_500  # of Markdown

TAG = re.compile(
    r"<(/?)([A-Za-z][A-Za-z0-9]{0,20}+)((?:[^<>\"']++|\"[^\"<]*+\"|'[^'<]*+')*+)>|<!--.*?(?:-->|\Z)", re.DOTALL
)
ATTRIBUTE = re.compile(r"([A-Za-z-]++)\s*+=\s*+(\"[^\"]*+\"|'[^']*+'|[^\s\"'>]++)")
STYLE_VALUE = re.compile(r"[\w\s#.,%'-]{1,100}|rgba?\([\d\s.,%]{1,40}\)")
WEB = re.compile(r"https?://[^\s<>\"'`\\]{1,2000}")
# An SVG in an <img> runs nothing and loads nothing.
DATA = re.compile(r"data:image/(?:(?:png|jpeg|gif|svg\+xml);base64,[A-Za-z0-9+/=\s]*+|svg\+xml,[^<>\"#\\]*+)")


def clean_html(page: str) -> str:
    """A learner's HTML without anything that runs, loads or poses as part of the page around it."""
    made: list[str] = []
    open_tags: list[str] = []
    place = count = 0
    while place < len(page):
        found = TAG.search(page, place)
        if found is None:
            break
        made.append(_text(page[place : found.start()]))
        place = found.end()
        closing, name, rest = found[1], (found[2] or "").lower(), found[3]
        count += 1
        if name in SILENT and not closing:
            end = re.compile(rf"</{name}\b[^>]*+>?", re.IGNORECASE).search(page, place)
            place = end.end() if end else len(page)
        elif name not in TAGS or count > MOST_TAGS:
            continue
        elif closing:
            if name in open_tags:
                while (last := open_tags.pop()) != name:
                    made.append(f"</{last}>")
                made.append(f"</{name}>")
        elif name in ALONE or len(open_tags) < DEEPEST:
            made.append(f"<{name}{_attributes(name, rest)}>")
            if name not in ALONE:
                open_tags.append(name)
    made.append(_text(page[place:]))
    made += [f"</{name}>" for name in reversed(open_tags)]
    return "".join(made)


def _text(text: str) -> str:
    return no_tex_links(html.escape(html.unescape(text), quote=False))


def _attributes(tag: str, rest: str) -> str:
    kept: dict[str, str] = {}
    for name, value in ATTRIBUTE.findall(rest)[:20]:
        name = name.lower()
        value = html.unescape(value[1:-1] if value[:1] in "\"'" else value)
        if name == "style":
            value = _style(value)
            allowed = bool(value)
        elif tag == "img" and name == "src":
            allowed = DATA.fullmatch(value) is not None
        elif tag == "a" and name == "href":
            allowed = WEB.fullmatch(value) is not None or re.fullmatch(r"#[\w-]*", value) is not None
        else:
            allowed = name in ATTRIBUTES and len(value) <= 5000
        if allowed:
            kept.setdefault(name, value)
    return "".join(f' {name}="{html.escape(value)}"' for name, value in kept.items())


def _style(value: str) -> str:
    kept = []
    for rule in value[:2000].split(";"):
        name, _, wanted = rule.partition(":")
        name, wanted = name.strip().lower(), wanted.strip()
        if name in STYLES and STYLE_VALUE.fullmatch(wanted):
            kept.append(f"{name}: {wanted};")
    return " ".join(kept)


TEX_LINKS = re.compile(
    r"\\(?=(?:href|url|html\w*|class|cssId|style|require|unicode|csname|Extension|data|mmlToken|def|let|gdef|edef)"
    r"(?![A-Za-z]))"
)


def no_tex_links(text: str) -> str:
    """Text in which no formula can link, load or name anything: a space follows the backslash of what could."""
    return TEX_LINKS.sub(lambda found: found[0] + " ", text)


SCHEME = re.compile(r"(?i)\b(?:javascript|vbscript)(?=\s*+:)|\bdata(?=:\w)")
# Where a link may lead: to the web, to a place in the page, to a picture that is attached.
LINK = re.compile(r"\((?:https?://[\w\-./?#=%~+,@!*;:$]*|#[\w-]*|attachment:([\w.%-]+))(?: \"[^\"\n]*\")?\)")


def safe_markdown(text: str, attached: Collection[str] = ()) -> str:
    """Markdown in which no tag begins and no link leads elsewhere than to the web or to what is attached; what would
    take a converter too long is shown as it was typed."""
    if _takes_long(text):
        return as_code(text)

    def may_link(found: re.Match) -> bool:
        link = LINK.match(found.string, found.end())
        return link is not None and (link[1] is None or link[1] in attached)

    text = re.sub(r"<(?=[^\s=<])|<(?=\s*+(?:[A-Za-z][\w+.-]*+:))", "< ", text)  # reads the same in text and in math
    text = re.sub(r"\](?=\()", lambda found: "]" if may_link(found) else "] ", text)
    text = re.sub(r"\](?=:)", "] ", text)  # a reference's definition: then no reference is one
    return no_tex_links(SCHEME.sub(lambda found: found[0] + "\N{ZERO WIDTH NON-JOINER}", text))


def _takes_long(text: str) -> bool:
    """Whether a converter of Markdown may take a time that grows with the square of this, or be nested too deeply."""
    if len(text) > LONGEST or text.count("\n") > MOST_LINES or sum(map(text.count, "[]*_`!~|$\\&")) > MOST_BRACKETS:
        return True
    steps = re.compile(r"[ \t]*+(?:(?:>|[-+*]|\d{1,9}[.)])[ \t]*+)*+")
    for line in text.splitlines():
        head = steps.match(line)[0]
        if len(re.findall(r">|[-+*]|\d+[.)]", head)) > MOST_NESTED or len(head.expandtabs()) > 8 * MOST_NESTED:
            return True
    return False


def as_code(text: str) -> str:
    """Markdown that shows a text as it is: indented, so that no line of it can end that."""
    lines = text[: 10 * LONGEST].splitlines() or [""]
    return "\n".join("    " + line for line in ["", *lines])
