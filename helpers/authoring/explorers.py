"""Find the explorers of the lessons, draw all their states, and write them as HTML for the web edition.

The cells that an explorer's arguments depend on are executed here, without a kernel, and the call of `panel` is
intercepted. Nothing is trained again: if an explorer depends on a training run, `course build` stores its pictures in
the solution notebook, in an output of the MIME type KIND. `course book` draws all others, and caches them.
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
    """The explorers of a solution notebook with all their pictures (helpers/authoring/frames.py), by the ids of cells.

    cache: a folder for drawn explorers. If an explorer draws something else than its notebook shows (because the
    notebook is older than the helpers, or a network is not installed), it is left out, with a warning on stderr.
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
    for outdated in {*cache.glob(f"{lesson.name}-*.json")} - {*paths.values()}:
        outdated.unlink()
    for index, explorer in _draw(sources, missing):
        paths[index].write_text(json.dumps(explorer), encoding="utf-8")
    for index, path in paths.items():
        explorer = json.loads(path.read_text(encoding="utf-8"))
        pages = [output.data["text/html"] for output in cells[index].outputs if "text/html" in output.get("data", {})]
        if pages and alike(explorer["first"], frames.words_of(pages[0])):
            explorers[cells[index]["id"]] = explorer
        else:
            call = f"explore.{CALL.findall(sources[index])[0]}"
            print(f"{lesson.name}: {call} does not draw what its notebook shows, so it stays still.", file=sys.stderr)
    return explorers


def alike(first: str, second: str) -> bool:
    """Whether two texts differ at most in the last digits of their numbers, as they may on other processors."""
    pairs = zip(NUMBER.findall(first), NUMBER.findall(second), strict=False)
    close = all(math.isclose(float(a), float(b), rel_tol=0.02, abs_tol=0.02) for a, b in pairs)
    return close and NUMBER.sub("0", first) == NUMBER.sub("0", second)


def rests_on(sources: list[str], index: int) -> list[int]:
    """The indices of the cells above that define, directly or indirectly, the names that cell `index` uses."""
    wanted, needed = _used_names(sources[index]), list[int]()
    for above in reversed(range(index)):
        if _defined_names(sources[above]) & wanted:
            wanted |= _used_names(sources[above])
            needed.insert(0, above)
    return needed


def rests_on_training(sources: list[str], index: int) -> bool:
    """Whether cell `index` depends on a model that the lesson trains and saves."""
    return any("checkpoint" in _used_names(sources[above]) for above in rests_on(sources, index))


@lru_cache(maxsize=1024)
def _used_names(source: str) -> frozenset[str]:
    walk = ast.walk(ast.parse(source))
    return frozenset(node.id for node in walk if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load))


@lru_cache(maxsize=1024)
def _defined_names(source: str) -> frozenset[str]:
    """The names that a cell defines, and those of objects that it writes into."""
    defined = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            defined |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            defined.add(node.name)
        elif isinstance(getattr(node, "ctx", None), ast.Store):
            while isinstance(node, (ast.Attribute, ast.Subscript, ast.Starred)):
                node = node.value
            if isinstance(node, ast.Name):
                defined.add(node.id)
    return frozenset(defined)


def _fingerprint(home: Course, lesson: Lesson, sources: list[str]) -> str:
    """A hash of everything that the pictures depend on."""
    digest = hashlib.sha256(_helpers(home.root, lesson.topic))
    digest.update("\0".join([matplotlib.__version__, torch.__version__, *sources]).encode())
    return digest.hexdigest()[:32]


@lru_cache(maxsize=64)
def _helpers(root: Path, topic: str) -> bytes:
    """A digest of this drawing code and of the learner's packages, without those of other lessons."""
    digest = hashlib.sha256(Path(frames.__file__).read_bytes())
    for path in sorted((root / "helpers").rglob("*")):
        package, *rest = path.relative_to(root / "helpers").parts
        used = package not in ("authoring", "grading", "answer_keys") and (package != "lessons" or rest[:1] == [topic])
        if used and path.is_file() and path.suffix != ".pyc":
            digest.update(path.read_bytes())
    return digest.digest()


def _draw(sources: list[str], wanted: list[int]) -> Iterator[tuple[int, dict]]:
    """Yield (index, explorer) for each of the cells `wanted`, after executing the cells that they depend on."""
    names: dict = {"__name__": "__main__"}
    for index in sorted({*wanted, *(above for target in wanted for above in rests_on(sources, target))}):
        code = compile(sources[index], "<lesson>", "exec")
        with contextlib.redirect_stdout(io.StringIO()):  # hides what the lesson prints
            if index not in wanted:
                exec(code, names)
                continue
            explorer = caught(names["explore"], partial(exec, code, names))
        yield index, explorer


def caught(explore, call: Callable[[], object]) -> dict:
    """The explorer that call() makes, with all its pictures; nothing is shown. explore: the lesson's module."""
    explorers: list[dict] = []
    panel = explore.panel
    explore.panel = lambda draw, across=0, **controls: explorers.append(frames.drawn(draw, controls, across))
    try:
        call()
    finally:
        explore.panel = panel
    return explorers[0]


def keep(explore, call: Callable[[], object]) -> None:
    """Display the explorer that call() makes, with all its pictures, as an output of the MIME type KIND."""
    from IPython.display import display

    display({KIND: json.dumps(caught(explore, call))}, raw=True)


def keeping(notebook) -> Iterator[tuple]:
    """Yield each cell with an explorer that depends on a training run, and a new cell whose output has its pictures."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    sources = [cell.source for cell in cells]
    for index, cell in enumerate(cells):
        call = CALL.search(cell.source)
        if call and rests_on_training(sources, index):
            line = cell.source[call.start() :].strip()
            source = f"from helpers.authoring.explorers import keep as _keep\n_keep(explore, lambda: {line})"
            yield cell, new_code_cell(source)


def on_page(explorer: dict, name: str, first: str, folder: Path) -> str:
    """The HTML of an explorer: its controls above `first`, the HTML of its first picture. Its other pictures go into a
    script in the page's `folder`, which docs/book/explorers.js loads when the explorer is scrolled near."""
    script, across = f"explorer-{name.replace('_', '-')}", explorer["across"]
    (folder / f"{script}.js").write_text(f'(window.explorers ??= {{}})["{script}"] = "{explorer["data"]}";\n')
    controls = "".join(_control(item, f"{script}-{i}", across) for i, item in enumerate(explorer["controls"]))
    columns = f' style="grid-template-columns:repeat({across},minmax(0,max-content))"' if across else ""
    names = html.escape(", ".join(item["name"] for item in explorer["controls"]))
    notes = ["The notebook has all positions."] if explorer["coarse"] else []
    notes += ["In the notebook you can type a text of your own."] if explorer["typed"] else []
    return (
        f'<div class="explorer" id="{script}" role="group" aria-label="Explorer: {names}">'
        f'<div class="controls"{columns}>{controls}</div><div class="shown">{first}</div>'
        f'<p class="more">{" ".join(notes)}</p><p class="still">The controls need scripts, here or in the notebook.</p>'
        '<p class="said" role="status"></p></div>'
    )


def _control(control: dict, name: str, across: int) -> str:
    """The HTML of a control: its label, itself, and the reading of a slider. With a single position, it is disabled."""
    disabled = "disabled " if len(control["labels"]) == 1 else ""
    label = f'<label for="{name}">{html.escape(control["name"])}</label>'
    start, labels = control["start"], control["labels"]
    if control["kind"] == "checkbox":
        checked = " checked" if labels[start] == "yes" else ""
        box = f'<input {disabled}type="checkbox" id="{name}" autocomplete="off"{checked}>'
        return f"<span>{box} {label}</span>" if across else f"{label}{box}<span></span>"
    if control["kind"] == "select":
        texts = ((" selected" if i == start else "", html.escape(one)) for i, one in enumerate(labels))
        options = "".join(f"<option{selected}>{one}</option>" for selected, one in texts)
        return f'{label}<select {disabled}id="{name}" autocomplete="off">{options}</select><span></span>'
    reading, width = html.escape(labels[start]), max(map(len, labels))
    return (
        f'{label}<input {disabled}type="range" id="{name}" autocomplete="off" max="{len(labels) - 1}" value="{start}" '
        f'aria-valuetext="{reading}" data-labels="{html.escape(json.dumps(labels, ensure_ascii=False))}">'
        f'<span class="read" style="min-width:{width}ch" aria-hidden="true">{reading}</span>'
    )
