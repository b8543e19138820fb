"""All pictures of an explorer, for a page that has no kernel: drawn by what the notebook's `panel` is given.

They are drawn for a grid of the controls' values. It is coarser than the notebook's where that has too many: at most
MANY pictures of an explorer, fewer where they weigh more than WEIGHT bytes, but then still FEW; the ends and the
first value are among them. What has two or three states keeps them all, up to STATES pictures; beyond that the last
controls stand still. A box for a text is left out, unless it has suggestions (`widgets.Combobox`), which become a
choice.
"""

import base64
import html
import io
import itertools
import json
import math
import re
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache
from urllib.parse import unquote

import ipywidgets as widgets
import numpy as np
from PIL import Image

from helpers.drawing.style import tidied
from helpers.widgets.panel import Shown, few_words

FEW, MANY, STATES, WEIGHT = 100, 512, 1440, 1_300_000
ROUND = (1, 2, 5, 10, 20, 25, 50)
PICTURE = re.compile(r'<img alt="([^"]*)" [^>]*? src="data:image/svg\+xml,([^"]*)"')
BITMAP = re.compile(r"(?<=data:image/png;base64,)[^\"]+")
PIECE = re.compile(r"<!--.*?-->|<[^>]*>|[^<]+", re.DOTALL)


@dataclass(frozen=True)
class Positions:
    """What a control can be set to: values with what is read out for each, and the index of the first one.

    kind: how a page shows it (range, select or checkbox). typed: it takes any text too.
    """

    values: list
    labels: list[str]
    start: int
    kind: str = "range"
    typed: bool = False


def drawn(draw: Callable[..., object], controls: dict[str, widgets.Widget], across: int = 0) -> dict:
    """An explorer with all its pictures, as JSON takes it; the arguments are those of `panel`.

    first: the words of the first picture. across: columns of the controls, 0 where each has a row. controls: name,
    kind, labels, start. coarse: whether the notebook has more positions. typed: whether it takes a text. data:
    `packed` pictures; the last control's position changes fastest.
    """
    show, values = Shown(draw), {name: control.value for name, control in controls.items()}
    first = words_of(show(values))
    ways = {name: positions(control) for name, control in controls.items()}
    many = {name: way for name, way in ways.items() if len(way.values) > 1}

    @cache
    def page(*at: int) -> str:
        return show({**values, **{name: ways[name].values[i] for name, i in zip(many, at, strict=True)}})

    def pages_of(chosen: dict[str, list[int]]) -> list[str]:
        return [page(*at) for at in itertools.product(*chosen.values())]

    chosen = thinned(many, min(FEW, STATES))
    data = packed(pages_of(chosen))
    room = WEIGHT * math.prod(map(len, chosen.values())) // len(data)
    if room > FEW and STATES > FEW:
        chosen = thinned(many, min(room, MANY, STATES))
        data = packed(pages_of(chosen))
    shown = []
    for name, among in chosen.items():
        way, label = ways[name], controls[name].description or name
        labels, start = [way.labels[i] for i in among], among.index(way.start)
        shown.append({"name": label, "kind": way.kind, "labels": labels, "start": start})
    return {
        "first": first,
        "across": across,
        "controls": shown,
        "coarse": any(len(among) < len(ways[name].values) for name, among in chosen.items()),
        "typed": any(way.typed for way in ways.values()),
        "data": data,
    }


def words_of(page: str) -> str:
    """The alt text of what `panel` shows, or all of it where it is no picture."""
    match = re.match(r'<img alt="([^"]*)"', page)
    return html.unescape(match[1]) if match else page


def positions(control: widgets.Widget) -> Positions:
    """All that a control of the notebook can be set to, its first value as it is."""
    if isinstance(control, widgets.ToggleButton):
        return Positions([False, True], ["no", "yes"], int(control.value), "checkbox")
    if isinstance(control, widgets.Combobox):
        values = list(control.options)
        return Positions(values, values, values.index(control.value), "select", typed=True)
    if isinstance(control, widgets.Text):
        return Positions([control.value], [""], 0, typed=True)
    if hasattr(control, "options"):
        pairs = [one if isinstance(one, tuple) and len(one) == 2 else (one, one) for one in control.options]
        values = [value for _, value in pairs]
        labels = [str(label) for label, _ in pairs]
        kind = "select" if len(values) == 2 or few_words(labels) else "range"
        return Positions(values, labels, values.index(control.value), kind)
    count = round((control.max - control.min) / control.step) + 1
    values = [round(control.min + i * control.step, 9) for i in range(count)]
    if isinstance(control, widgets.FloatLogSlider):
        values = [control.base**power for power in values]
    start = min(range(count), key=lambda i: abs(values[i] - control.value))
    values[start] = control.value
    labels = [format(value, control.readout_format).replace("-", "−") for value in values]
    return Positions(values, labels, start)


def thinned(ways: dict[str, Positions], most: int) -> dict[str, list[int]]:
    """Which positions of each control are drawn: three of each (or both of two), and more while the pictures are at
    most `most`, of the control with the fewest first."""
    chosen = {name: spread(len(way.values), 3, way.start) for name, way in ways.items()}
    room = dict.fromkeys(ways, 3)
    while growing := [name for name in room if room[name] < len(ways[name].values)]:
        name = min(growing, key=lambda name: len(chosen[name]))
        room[name] += 1
        finer = {**chosen, name: spread(len(ways[name].values), room[name], ways[name].start)}
        if math.prod(map(len, finer.values())) <= most:
            chosen = finer
        else:
            room[name] = len(ways[name].values)  # another may still grow
    for name in reversed(chosen):
        if math.prod(map(len, chosen.values())) > STATES:
            chosen[name] = [ways[name].start]
    return chosen


def spread(count: int, room: int, start: int) -> list[int]:
    """At most `room` (3 or more) of the indices below `count`: both ends, `start`, and others in even steps that reach
    the end, round ones if there are such, or else in the smallest ones."""
    if count <= room:
        return list(range(count))
    spare = int(0 < start < count - 1)  # a place for the start, which the steps may miss
    least = math.ceil((count - 1) / (room - spare - 1))
    steps = [step for step in range(least, least * 3 // 2 + 1) if (count - 1) % step == 0] or [least]
    step = next((step for step in steps if step in ROUND), steps[0])
    return sorted({*range(0, count, step), count - 1, start})


def packed(pages: list[str]) -> str:
    """What `panel` shows for each state, as base64 of deflated JSON, which docs/book/explorers.js takes apart.

    pieces: each tag that occurs in the pictures, once. frames: for each state the steps from piece to piece that make
    its SVG, or its HTML where alts is empty.
    """
    numbers: dict[str, int] = {}
    frames, alts = [], []
    for page in pages:
        picture = PICTURE.match(page)
        if picture:
            alts.append(html.unescape(picture[1]))
            pieces = [piece for piece in map(_piece, PIECE.findall(_from_address(picture[2]))) if piece]
        else:
            pieces = [page]
        indices = [numbers.setdefault(piece, len(numbers)) for piece in pieces]
        frames.append([after - before for before, after in zip([0, *indices], indices, strict=False)])
    data = {"pieces": list(numbers), "frames": frames, "alts": alts}
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()


@lru_cache(maxsize=100_000)
def _piece(text: str) -> str:
    return BITMAP.sub(lambda match: _lighter(match[0]), tidied(text).strip())


def _lighter(coded: str) -> str:
    """A PNG in base64 with the same pixels in half the bytes, if it has few colors, as a heat map has."""
    pixels = np.array(Image.open(io.BytesIO(base64.b64decode(coded))).convert("RGBA"))
    colors, places = np.unique(pixels.view(np.uint32)[..., 0], return_inverse=True)
    palette = colors.view(np.uint8).reshape(-1, 4)
    if len(palette) > 256 or palette[:, 3].min() < 255:
        return coded
    picture = Image.fromarray(places.reshape(pixels.shape[:2]).astype(np.uint8), "P")
    picture.putpalette(palette[:, :3].tobytes())
    file = io.BytesIO()
    picture.save(file, "PNG", optimize=True)
    return base64.b64encode(file.getvalue()).decode()


def _from_address(data: str) -> str:
    """The SVG that `helpers.drawing.style` has written into an address."""
    data = data if "%22" in data else data.replace("'", "%22")
    return unquote(data.replace("&amp;", "&"))
