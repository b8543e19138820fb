"""Draw all pictures of an explorer in advance, for a page without a kernel, from the arguments of its `panel`.

They are drawn for a grid of the controls' values. It may be coarser than the notebook's: an explorer has at most MANY
pictures, or fewer if they have more than WEIGHT bytes, but at least FEW. The ends and the initial value are always in
the grid. A control with two or three states keeps them all, up to STATES pictures; beyond that, the last controls are
fixed. A text box is left out, unless it has suggestions (`widgets.Combobox`), which become a menu.
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
    """The values that a control can have, their labels, and the index of the initial value.

    kind: how a page shows the control (range, select or checkbox). typed: whether it accepts any text.
    """

    values: list
    labels: list[str]
    start: int
    kind: str = "range"
    typed: bool = False


def drawn(draw: Callable[..., object], controls: dict[str, widgets.Widget], across: int = 0) -> dict:
    """An explorer with all its pictures, as a JSON object. The arguments are those of `panel`.

    first: the alt text of the first picture. across: the columns of controls, 0 if each has its own row. controls:
    name, kind, labels and start of each. coarse: whether the notebook has more positions. typed: whether it accepts
    text. data: the `packed` pictures, where the last control's position changes fastest.
    """
    show, values = Shown(draw), {name: control.value for name, control in controls.items()}
    first = words_of(show(values))
    all_positions = {name: positions(control) for name, control in controls.items()}
    movable = {name: item for name, item in all_positions.items() if len(item.values) > 1}

    @cache
    def page(*indices: int) -> str:
        return show({**values, **{name: movable[name].values[i] for name, i in zip(movable, indices, strict=True)}})

    def pages_of(chosen: dict[str, list[int]]) -> list[str]:
        return [page(*indices) for indices in itertools.product(*chosen.values())]

    chosen = thinned(movable, min(FEW, STATES))
    data = packed(pages_of(chosen))
    affordable = WEIGHT * math.prod(map(len, chosen.values())) // len(data)
    if affordable > FEW and STATES > FEW:
        chosen = thinned(movable, min(affordable, MANY, STATES))
        data = packed(pages_of(chosen))
    shown = []
    for name, indices in chosen.items():
        item, label = movable[name], controls[name].description or name
        labels, start = [item.labels[i] for i in indices], indices.index(item.start)
        shown.append({"name": label, "kind": item.kind, "labels": labels, "start": start})
    return {
        "first": first,
        "across": across,
        "controls": shown,
        "coarse": any(len(indices) < len(movable[name].values) for name, indices in chosen.items()),
        "typed": any(item.typed for item in all_positions.values()),
        "data": data,
    }


def words_of(page: str) -> str:
    """The alt text of the picture that `panel` shows, or the whole HTML if it is not a picture."""
    match = re.match(r'<img alt="([^"]*)"', page)
    return html.unescape(match[1]) if match else page


def positions(control: widgets.Widget) -> Positions:
    """All positions of a control of the notebook. The initial value is among them, even if it is not on the grid."""
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


def thinned(controls: dict[str, Positions], most: int) -> dict[str, list[int]]:
    """Choose the positions of each control that are drawn, as indices: three of each (or both of two), and then more,
    beginning with the control that has the fewest, while there are at most `most` pictures."""
    chosen = {name: spread(len(control.values), 3, control.start) for name, control in controls.items()}
    limits = dict.fromkeys(controls, 3)
    while growing := [name for name in limits if limits[name] < len(controls[name].values)]:
        name = min(growing, key=lambda name: len(chosen[name]))
        limits[name] += 1
        finer = {**chosen, name: spread(len(controls[name].values), limits[name], controls[name].start)}
        if math.prod(map(len, finer.values())) <= most:
            chosen = finer
        else:
            limits[name] = len(controls[name].values)  # this one is done, but another one may still grow
    for name in reversed(chosen):
        if math.prod(map(len, chosen.values())) > STATES:
            chosen[name] = [controls[name].start]
    return chosen


def spread(count: int, most: int, start: int) -> list[int]:
    """Choose at most `most` (3 or more) of the indices below `count`: both ends, `start`, and others at equal steps. If
    possible, the step divides count - 1, and a round step is preferred; otherwise, it is as small as possible."""
    if count <= most:
        return list(range(count))
    spare = int(0 < start < count - 1)  # reserved for the start, which the steps may miss
    least = math.ceil((count - 1) / (most - spare - 1))
    steps = [step for step in range(least, least * 3 // 2 + 1) if (count - 1) % step == 0] or [least]
    step = next((step for step in steps if step in ROUND), steps[0])
    return sorted({*range(0, count, step), count - 1, start})


def packed(pages: list[str]) -> str:
    """What `panel` shows for each state, as base64 of deflated JSON, which docs/book/explorers.js unpacks.

    pieces: each distinct tag of the pictures. frames: for each state, the indices of the pieces of its SVG (or of its
    HTML, if alts is empty), each as the difference from the previous index.
    """
    numbers: dict[str, int] = {}
    frames, alts = [], []
    for page in pages:
        picture = PICTURE.match(page)
        if picture:
            alts.append(html.unescape(picture[1]))
            pieces = [piece for piece in map(_piece, PIECE.findall(_from_data_url(picture[2]))) if piece]
        else:
            pieces = [page]
        indices = [numbers.setdefault(piece, len(numbers)) for piece in pieces]
        frames.append([after - before for before, after in zip([0, *indices], indices, strict=False)])
    data = {"pieces": list(numbers), "frames": frames, "alts": alts}
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()


@lru_cache(maxsize=100_000)
def _piece(text: str) -> str:
    return BITMAP.sub(lambda match: _with_palette(match[0]), tidied(text).strip())


def _with_palette(coded: str) -> str:
    """Compress a PNG in base64 losslessly to about half, with a palette, if it has few colors, as heat maps do."""
    pixels = np.array(Image.open(io.BytesIO(base64.b64decode(coded))).convert("RGBA"))
    colors, indices = np.unique(pixels.view(np.uint32)[..., 0], return_inverse=True)
    palette = colors.view(np.uint8).reshape(-1, 4)
    if len(palette) > 256 or palette[:, 3].min() < 255:
        return coded
    picture = Image.fromarray(indices.reshape(pixels.shape[:2]).astype(np.uint8), "P")
    picture.putpalette(palette[:, :3].tobytes())
    file = io.BytesIO()
    picture.save(file, "PNG", optimize=True)
    return base64.b64encode(file.getvalue()).decode()


def _from_data_url(data: str) -> str:
    """Decode the SVG that `helpers.drawing.style` wrote into a data URL."""
    data = data if "%22" in data else data.replace("'", "%22")
    return unquote(data.replace("&amp;", "&"))
