"""The live translator on the book's home page: its map as HTML with links, and the data that docs/book/live needs."""

import base64
import json
import shutil
from collections.abc import Iterable
from importlib import resources
from pathlib import Path

import jinja2

from helpers.corpus import lexicon
from helpers.course import Course
from helpers.drawing.transformer_map import HEAD, PARTS
from helpers.translator import NUM_LAYERS, state
from helpers.translator.evaluation import MAX_WORDS, unseen
from helpers.translator.trained import WEIGHTS
from helpers.translator.word_ids import english_list, french_list

FOLDER = "live"  # in the site
SCRIPTS = ("machine", "mistakes", "views", "drawing", "live")
SENTENCES = 24  # for measuring the loss on the page
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
MAP = Path(__file__).with_name("live.html.jinja")


def write_live(home: Course, folder: Path) -> None:
    """Write the translator's scripts, weights, vocabulary and sentences into `folder` of the site."""
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


def live_translator(home: Course) -> str:
    """The Markdown of the translator's map and its description. Without scripts, the boxes are links to lessons."""
    count = sum(value.numel() for value in state().values())
    description = (
        f"This is the network that you write in lessons 1 to 11, running on this page: a translator with {count:,} "
        f"parameters, trained in advance. It knows only {len(english_list) - 1} English words, because it was trained "
        "on made-up sentences. Type a sentence, click a box of the map, or put in a mistake. Nothing that you type "
        "leaves the page."
    )

    parts = {}
    for part in PARTS:
        lesson, text = home.lesson(str(part.lesson)), part.text
        for written, shown in SET.items():
            text = text.replace(written, shown)
        title, page = lesson.title.partition(":")[0], f"{lesson.name}/{lesson.name}.html"
        parts[part.name] = {"lesson": part.lesson, "title": title, "page": page, "text": text}
    template = jinja2.Template(MAP.read_text(encoding="utf-8"), autoescape=True)
    drawn = template.render(parts=parts, layers=NUM_LAYERS, head=HEAD[3:-1]).replace("\n", "")
    scripts = "".join(f'<script defer src="{FOLDER}/{name}.js"></script>' for name in SCRIPTS)
    style = f'<link rel="stylesheet" href="{FOLDER}/live.css">'
    return f'{style}\n<div class="machine" data-folder="{FOLDER}">{drawn}</div>\n{scripts}\n\n{description}\n'
