"""The machine on the book's home page: the map as HTML with links, and the numbers that docs/book/live runs it on."""

import base64
import html
import json
import shutil
from collections.abc import Iterable
from importlib import resources
from pathlib import Path

from helpers.corpus import lexicon
from helpers.course import Course
from helpers.drawing.transformer_map import HEAD, PARTS, Part
from helpers.translator import NUM_LAYERS, state
from helpers.translator.evaluation import MAX_WORDS, unseen
from helpers.translator.trained import WEIGHTS
from helpers.translator.word_ids import english_list, french_list

FOLDER = "live"  # of the site
SCRIPTS = ("machine", "mistakes", "views", "drawing", "live")
SENTENCES = 24  # that the page measures its loss on
EXAMPLES = (
    "jane visits africa in september",
    "the black cat sees a red apple",
    "my old neighbor often travels to japan with a broken umbrella",
    "this young actress is always tired in march",
)
KINDS: dict[str, Iterable[str]] = {
    "names": lexicon.NAMES,
    "people and animals": lexicon.PEOPLE | lexicon.ANIMALS,
    "things": lexicon.THINGS,
    "how they are": lexicon.ADJECTIVES,
    "what they do": [*lexicon.VERBS, *lexicon.PLACE_VERBS, *(verb for verb, _ in lexicon.MOVES), "is"],
    "how often": lexicon.ADVERBS,
    "places": lexicon.COUNTRIES,
    "months": lexicon.MONTHS,
    "small words": [*lexicon.DETERMINERS, "an", "in", "to", "with"],
}
PATTERN = (
    "It was trained on sentences like these: the old king often visits kenya with a red umbrella in may; the house is "
    "white. A noun has one adjective at most."
)
SET = {"-\n": "-", "\n": " ", "$QK^T$": "QK<sup>T</sup>", "$d_k$": "d<sub>k</sub>", "$W_O$": "W<sub>O</sub>"}
PART = {part.name: part for part in PARTS}
# A layer with the sum and norm after it, round which its residual runs.
ENCODER = (("attention", "norm1"), ("feed", "norm2"))
DECODER = (("self", "norm3"), ("cross", "norm4"), ("feed2", "norm5"))


def write_live(home: Course, folder: Path) -> None:
    """Write the machine's scripts and numbers into `folder` of the site."""
    shutil.copytree(home.root / "docs" / "book" / "live", folder)
    weights, batch = (resources.files("helpers.translator") / WEIGHTS).read_bytes(), unseen(SENTENCES)
    numbers = {
        "weights": base64.b64encode(weights).decode("ascii"),
        "english": english_list,
        "french": french_list,
        "pairs": list(zip(batch.english, batch.french, strict=True)),
        "examples": EXAMPLES,
        "kinds": {kind: list(dict.fromkeys(entries)) for kind, entries in KINDS.items()},
        "pattern": PATTERN,
        "longest": MAX_WORDS,
    }
    (folder / "numbers.js").write_text(f"const NUMBERS = {json.dumps(numbers)};\n", encoding="utf-8")


def live_machine(home: Course) -> str:
    """Markdown: the machine's map, whose boxes are links to lessons until scripts make them work, and what it is."""
    count = sum(value.numel() for value in state().values())
    description = (
        f"This is the network that you write in lessons 1 to 11, at work in this page: a translator of {count:,} "
        f"numbers, trained before lesson 1. It is small: it knows {len(english_list) - 1} English words, and it was "
        "trained on made-up sentences only. Type one, click a box of the map, put a mistake in. Nothing that you type "
        "leaves the page."
    )

    def boxes(*names: str) -> str:
        return "".join(_box(home, PART[name]) for name in names)

    def layers(pairs: tuple) -> str:
        return "".join(f'<div class="layer">{boxes(*pair)}</div>' for pair in pairs)

    def row(name: str, label: str, inside: str) -> str:
        return f'<div class="row {name}" role="group" aria-label="{label}">{inside}</div>'

    def frame(label: str, inside: str) -> str:
        return f'<div class="frame"><span class="frame-name">{label}</span>{inside}</div>'

    encoder, decoder = (f"{which} block × {NUM_LAYERS}" for which in ("encoder", "decoder"))
    source, target = (
        f'<ul class="words">{"".join(f"<li>{html.escape(word)}</li>" for word in sentence.split())}</ul>'
        for sentence in ("jane visits africa", "<bos> jane visite")
    )
    head = f'<div class="three">{boxes("Q", "K", "V")}</div>{boxes(*HEAD[3:-1])}'
    end = f'<div class="layer end">{boxes("linear", "loss")}</div>'
    rows = (
        row("encoder", "Encoder", source + boxes("embed", "place") + frame(encoder, layers(ENCODER))),
        '<p class="hands-on">the encoder’s vectors, one for each English word, go to cross-attention</p>',
        row("decoder", "Decoder", target + boxes("embed2", "place2") + frame(decoder, layers(DECODER)) + end),
        row("opened", "One head", frame("one head, opened", head) + boxes("heads")),
    )
    still = "<noscript><p>Without scripts the map stands still; each box leads to its lesson.</p></noscript>"
    scripts = "".join(f'<script defer src="{FOLDER}/{name}.js"></script>' for name in SCRIPTS)
    drawn = f'<div class="machine-map">{"".join(rows)}</div>'
    style = f'<link rel="stylesheet" href="{FOLDER}/live.css">'
    page = f'{style}\n<div class="machine" data-folder="{FOLDER}">{still}{drawn}</div>\n{scripts}'
    return f"{page}\n\n{description}\n"


def _box(home: Course, part: Part) -> str:
    lesson = home.lesson(str(part.lesson))
    text = part.text
    for written, shown in SET.items():
        text = text.replace(written, shown)
    title = html.escape(f"lesson {part.lesson}: {lesson.title.partition(':')[0]}")
    return (
        f'<a class="box" data-part="{part.name}" data-lesson="{title}" href="{lesson.name}/{lesson.name}.html">'
        f'<span class="name">{text}</span><span class="machine-aside"> lesson </span>'
        f'<span class="badge">{part.lesson}</span></a>'
    )
