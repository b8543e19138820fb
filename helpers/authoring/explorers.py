"""Explorers of the lessons on the pages of the web edition: found, drawn for all their states, and written out.

The cells that an explorer's arguments come from are run here, without a kernel, and `panel` is caught where it would be
shown. What a lesson trains is not trained again: where an explorer rests on that, `course build` keeps its pictures in
the solution notebook, as an output of the kind KIND. All others are drawn by `course book` and kept in its cache.
"""

import ast
import contextlib
import hashlib
import html
import io
import json
import math
import re
import sys
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from pathlib import Path

import matplotlib
import torch
from nbformat.v4 import new_code_cell

from helpers.authoring import frames
from helpers.course import Course, Lesson

KIND = "application/vnd.course.explorer"
CALL = re.compile(r"^explore\.(\w+)\(", re.MULTILINE)
NUMBER = re.compile(r"\d+(?:\.\d+)?")


def moving(home: Course, lesson: Lesson, notebook, cache: Path) -> dict[str, dict]:
    """The explorers of a solution notebook with all their pictures (helpers/authoring/frames.py), by their cells' ids.

    cache: a folder for what was drawn. An explorer that draws something else than its notebook shows is left out, and a
    line on stderr says so: the notebook is older than the helpers, or a network that it shows is not installed.
    """
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    sources = [cell.source for cell in cells]
    explorers: dict[str, dict] = {}
    paths = {}
    for index, cell in enumerate(cells):
        kept = [output.data.pop(KIND) for output in cell.outputs if KIND in output.get("data", {})]
        if kept:
            explorers[cell["id"]] = json.loads(kept[0])
        elif CALL.search(cell.source) and not rests_on_training(sources, index):
            needed = [sources[above] for above in rests_on(sources, index)]
            paths[index] = cache / f"{lesson.name}-{_fingerprint(home, lesson, [*needed, cell.source])}.json"
    missing = [index for index, path in paths.items() if not path.is_file()]
    cache.mkdir(parents=True, exist_ok=True)
    for old in {*cache.glob(f"{lesson.name}-*.json")} - {*paths.values()}:
        old.unlink()
    for index, explorer in _drawn_anew(sources, missing):
        paths[index].write_text(json.dumps(explorer), encoding="utf-8")
    for index, path in paths.items():
        explorer = json.loads(path.read_text(encoding="utf-8"))
        pages = [output.data["text/html"] for output in cells[index].outputs if "text/html" in output.get("data", {})]
        if pages and alike(explorer["first"], frames.words_of(pages[0])):
            explorers[cells[index]["id"]] = explorer
        else:
            name = CALL.findall(sources[index])[0]
            print(f"{lesson.name}: explore.{name} draws not what its notebook shows; it stays still.", file=sys.stderr)
    return explorers


def alike(first: str, second: str) -> bool:
    """Whether two texts differ at most in the last digits of their numbers, as they do from processor to processor."""
    pairs = zip(NUMBER.findall(first), NUMBER.findall(second), strict=False)
    close = all(math.isclose(float(a), float(b), rel_tol=0.02, abs_tol=0.02) for a, b in pairs)
    return close and NUMBER.sub("0", first) == NUMBER.sub("0", second)


def rests_on(sources: list[str], index: int) -> list[int]:
    """Which of the cells above cell `index` make, directly or indirectly, the names that it uses."""
    wanted, needed = _used(sources[index]), list[int]()
    for above in reversed(range(index)):
        if _made(sources[above]) & wanted:
            wanted |= _used(sources[above])
            needed.insert(0, above)
    return needed


def rests_on_training(sources: list[str], index: int) -> bool:
    """Whether cell `index` shows a model that the lesson trains and keeps."""
    return any("checkpoint" in _used(sources[above]) for above in rests_on(sources, index))


@lru_cache(maxsize=1024)
def _used(source: str) -> frozenset[str]:
    walk = ast.walk(ast.parse(source))
    return frozenset(node.id for node in walk if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load))


@lru_cache(maxsize=1024)
def _made(source: str) -> frozenset[str]:
    """The names that a cell gives, or into whose objects it writes."""
    made = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            made |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            made.add(node.name)
        elif isinstance(getattr(node, "ctx", None), ast.Store):
            while isinstance(node, (ast.Attribute, ast.Subscript, ast.Starred)):
                node = node.value
            if isinstance(node, ast.Name):
                made.add(node.id)
    return frozenset(made)


def _fingerprint(home: Course, lesson: Lesson, sources: list[str]) -> str:
    """A name that changes with whatever the pictures are made from."""
    digest = hashlib.sha256(_helpers(home.root, lesson.topic))
    digest.update("\0".join([matplotlib.__version__, torch.__version__, *sources]).encode())
    return digest.hexdigest()[:32]


@lru_cache(maxsize=64)
def _helpers(root: Path, topic: str) -> bytes:
    """A digest of the learner's wing without the rooms of other lessons, and of what draws here."""
    digest = hashlib.sha256(Path(frames.__file__).read_bytes())
    for path in sorted((root / "helpers").rglob("*")):
        wing, *rest = path.relative_to(root / "helpers").parts
        used = wing not in ("authoring", "grading", "answer_keys") and (wing != "lessons" or rest[:1] == [topic])
        if used and path.is_file() and path.suffix != ".pyc":
            digest.update(path.read_bytes())
    return digest.digest()


def _drawn_anew(sources: list[str], wanted: list[int]) -> Iterator[tuple[int, dict]]:
    """(index, explorer) for each of the cells `wanted`, which are run with those that they rest on."""
    names: dict = {"__name__": "__main__"}
    for index in sorted({*wanted, *(above for target in wanted for above in rests_on(sources, target))}):
        code = compile(sources[index], "<lesson>", "exec")
        with contextlib.redirect_stdout(io.StringIO()):  # what the lesson prints
            if index not in wanted:
                exec(code, names)
                continue
            explorer = caught(names["explore"], partial(exec, code, names))
        yield index, explorer


def caught(explore, call: Callable[[], object]) -> dict:
    """The explorer that call() makes, by the lesson's module `explore`, with all its pictures; nothing is shown."""
    kept: list[dict] = []
    panel = explore.panel
    explore.panel = lambda draw, across=0, **controls: kept.append(frames.drawn(draw, controls, across))
    try:
        call()
    finally:
        explore.panel = panel
    return kept[0]


def keep(explore, call: Callable[[], object]) -> None:
    """Show the explorer that call() makes with all its pictures, as an output of the kind KIND."""
    from IPython.display import display

    display({KIND: json.dumps(caught(explore, call))}, raw=True)


def keeping(notebook) -> Iterator[tuple]:
    """(cell of an explorer that rests on a training, a cell that keeps its pictures in its output) of a notebook."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    sources = [cell.source for cell in cells]
    for index, cell in enumerate(cells):
        call = CALL.search(cell.source)
        if call and rests_on_training(sources, index):
            line = cell.source[call.start() :].strip()
            source = f"from helpers.authoring.explorers import keep as _keep\n_keep(explore, lambda: {line})"
            yield cell, new_code_cell(source)


def on_page(explorer: dict, name: str, first: str, folder: Path) -> str:
    """The HTML of an explorer: its controls above `first`, the HTML of its first picture. Its other pictures are a
    script in `folder`, the page's, which docs/book/explorers.js asks for when the explorer comes near."""
    script, across = f"explorer-{name.replace('_', '-')}", explorer["across"]
    (folder / f"{script}.js").write_text(f'(window.explorers ??= {{}})["{script}"] = "{explorer["data"]}";\n')
    controls = "".join(_control(item, f"{script}-{i}", across) for i, item in enumerate(explorer["controls"]))
    columns = f' style="grid-template-columns:repeat({across},minmax(0,max-content))"' if across else ""
    names = html.escape(", ".join(item["name"] for item in explorer["controls"]))
    more = ["The notebook has all positions."] if explorer["coarse"] else []
    more += ["In the notebook you can type a text of your own."] if explorer["typed"] else []
    return (
        f'<div class="explorer" id="{script}" role="group" aria-label="Explorer: {names}">'
        f'<div class="controls"{columns}>{controls}</div><div class="shown">{first}</div>'
        f'<p class="more">{" ".join(more)}</p><p class="still">The controls need scripts, here or in the notebook.</p>'
        '<p class="said" role="status"></p></div>'
    )


def _control(control: dict, name: str, across: int) -> str:
    """The HTML of a control: its label, itself, and what is read out beside a slider. One with one position is dead."""
    dead = "disabled " if len(control["labels"]) == 1 else ""
    label = f'<label for="{name}">{html.escape(control["name"])}</label>'
    start, labels = control["start"], control["labels"]
    if control["kind"] == "checkbox":
        checked = " checked" if labels[start] == "yes" else ""
        box = f'<input {dead}type="checkbox" id="{name}" autocomplete="off"{checked}>'
        return f"<span>{box} {label}</span>" if across else f"{label}{box}<span></span>"
    if control["kind"] == "select":
        texts = ((" selected" if i == start else "", html.escape(one)) for i, one in enumerate(labels))
        options = "".join(f"<option{selected}>{one}</option>" for selected, one in texts)
        return f'{label}<select {dead}id="{name}" autocomplete="off">{options}</select><span></span>'
    reading, width = html.escape(labels[start]), max(map(len, labels))
    return (
        f'{label}<input {dead}type="range" id="{name}" autocomplete="off" max="{len(labels) - 1}" value="{start}" '
        f'aria-valuetext="{reading}" data-labels="{html.escape(json.dumps(labels, ensure_ascii=False))}">'
        f'<span class="read" style="min-width:{width}ch" aria-hidden="true">{reading}</span>'
    )
