"""The key of an exercise: its cases, and the observations of the reference and of each known mistake on them.

helpers/checking/make_keys.py makes keys from a lesson's answer key. This module defines them and stores them in a file.
"""

import functools
import json
import zipfile
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import torch

from helpers.answer_keys import contents
from helpers.checking.codec import mapped, pack, unpack
from helpers.checking.facets import differs
from helpers.checking.observe import Error, Facts, Observation, case_from_tree, case_to_tree, is_required_error
from helpers.checking.sketch import Sketch, can_be_sketched, sketch
from helpers.checking.vocabulary import Case, Stub
from helpers.errors import CourseError

FORMAT = 5
SKETCH = "sketch"  # the name of the Stub that represents a Sketch in a file
SKETCHED = ("output", "gradients")
PLAIN = "lesson name points bonus kind instead correct arguments weights explanations".split()  # stored unchanged
USUAL, EMPTY = Observation().to_tree(), (None, "", [], 0)  # by these, fields without content are recognized
FOLDER = Path(__file__).parents[1] / "answer_keys"


class DamagedKey(CourseError, ValueError):
    """The stored key of a lesson cannot be read."""


@dataclass
class KnownMistake:
    name: str
    label: str
    hint: str
    observations: list[Observation]


@dataclass
class ExerciseKey:
    """Everything that `decide` needs. arguments: the parameter names of the reference, for messages."""

    lesson: str
    name: str
    points: float
    bonus: bool = False
    kind: str = "exercise"
    facts: Facts = Facts("", "")
    cases: list[Case] = field(default_factory=list)
    expected: list[Observation] = field(default_factory=list)
    mistakes: list[KnownMistake] = field(default_factory=list)
    arguments: list[str] = field(default_factory=list)
    axes: tuple[str, ...] = ()
    instead: str = ""
    weights: dict[str, int] = field(default_factory=dict)
    correct: str = ""
    explanations: dict[str, str] = field(default_factory=dict)
    metric: str = ""  # if set, the outputs in `expected` are the truths
    apart: tuple[str, ...] = ()


def key_to_tree(key: ExerciseKey):
    """The key as a tree (see codec)."""
    tree = {name: getattr(key, name) for name in PLAIN}
    tree |= {"metric": key.metric} if key.metric else {}
    tree |= {"apart": list(key.apart)} if key.apart else {}
    tree |= {"axes": list(key.axes), "forbidden": list(key.facts.forbidden), "time_limit": key.facts.time_limit}
    tree["cases"] = [case_to_tree(case) for case in key.cases]
    tree["expected"] = _reproducible(key.cases, key.expected)
    tree["mistakes"] = [
        vars(mistake) | {"observations": _mistake_trees(key, mistake.observations) if mistake.observations else []}
        for mistake in key.mistakes
    ]
    return tree


def _reproducible(cases: list[Case], observations: list[Observation]) -> list:
    """The observations as trees, without what changes from run to run or depends on the author's files.

    An error's message is reduced to the text that its case asks for.
    """
    trees = []
    for case, seen in zip(cases, observations, strict=True):
        errors = {name: error and Error(error.type) for name, error in seen.errors().items()}
        if seen.error is not None and is_required_error(case, seen.error):
            errors["error"] = Error(case.raises.error, case.raises.names)
        trees.append(replace(seen, said="", **errors).to_tree())
    return trees


def _mistake_trees(key: ExerciseKey, observations: list[Observation]) -> list:
    """A mistake's observations as trees, reduced to what is ever compared.

    A case on which the mistake agrees with the reference becomes None, and fields without content are left out.
    Tensors become sketches, unless that would change the facets in which the mistake differs.
    """
    trees = []
    for case, expected, seen in zip(key.cases, key.expected, observations, strict=True):
        facets = differs(case, expected, seen)
        small = replace(seen, **{name: mapped(getattr(seen, name), _sketch_if_large) for name in SKETCHED})
        (tree,) = _reproducible([case], [small if differs(case, expected, small) == facets else seen])
        tree |= {name: mapped(tree[name], _sketch_to_stub) for name in SKETCHED}
        unusual = {
            name: item for name, item in tree.items() if type(item) is not type(USUAL[name]) or item not in EMPTY
        }
        trees.append(unusual if facets else None)
    return trees


def _restored(tree, expected: Observation) -> Observation:
    if tree is None:
        return expected
    seen = Observation.from_tree(USUAL | tree | {"gradients": None})
    seen.output, seen.gradients = (mapped(tree.get(name), _stub_to_sketch) for name in SKETCHED)
    return seen


def _sketch_if_large(leaf):
    return sketch(leaf) if can_be_sketched(leaf) else leaf


def sketched(leaf):
    """The stored form of a leaf whose sketch is enough; small tensors and other values stay as they are."""
    return _sketch_to_stub(_sketch_if_large(leaf))


def _sketch_to_stub(leaf):
    if not isinstance(leaf, Sketch):
        return leaf
    return Stub(SKETCH, (str(leaf.dtype).removeprefix("torch."), list(leaf.shape), leaf.rounded, leaf.sums))


def _stub_to_sketch(leaf):
    if not isinstance(leaf, Stub):
        return leaf
    dtype, shape, was_rounded, sums = leaf.args
    return Sketch(getattr(torch, dtype), tuple(shape), was_rounded, sums)


def key_from_tree(tree) -> ExerciseKey:
    expected = [Observation.from_tree(seen) for seen in tree["expected"]]
    return ExerciseKey(
        **{name: tree[name] for name in PLAIN},
        facts=Facts(tree["name"], tree["lesson"], tuple(tree["forbidden"]), tree["time_limit"]),
        cases=[case_from_tree(case) for case in tree["cases"]],
        expected=expected,
        mistakes=[
            KnownMistake(**mistake | {"observations": list(map(_restored, mistake["observations"], expected))})
            for mistake in tree["mistakes"]
        ],
        axes=tuple(tree["axes"]),
        metric=tree.get("metric", ""),
        apart=tuple(tree.get("apart", ())),
    )


def save_keys(path: Path, keys: list[ExerciseKey]):
    """Write keys as an .npz file: a JSON manifest, and one flat array per dtype. The same keys give the same bytes.

    Of each array, the first byte of every number comes first, then the second, and so on, which compresses better.
    """
    packed, arrays = pack([key_to_tree(key) for key in keys], shared=True)
    manifest = json.dumps({"format": FORMAT, "keys": packed}, ensure_ascii=True, separators=(",", ":"))
    planes = {name: array.view(np.uint8).reshape(-1, array.itemsize).T for name, array in arrays.items()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, array in {"manifest": np.frombuffer(manifest.encode(), np.uint8), **planes}.items():
            with archive.open(f"{name}.npy", "w") as file:
                np.lib.format.write_array(file, array)


def load_keys(lesson: str, path: Path | None = None) -> dict[str, ExerciseKey]:
    """The stored keys of a lesson by exercise name. Raises FileNotFoundError if there are none, or DamagedKey."""
    path = path or FOLDER / f"{lesson}.npz"
    return _load(str(path), path.stat().st_mtime_ns)


def stored_keys(lesson: str) -> dict[str, ExerciseKey]:
    """The keys that are delivered with the notebooks; empty if the lesson is not built."""
    try:
        return load_keys(lesson)
    except FileNotFoundError:
        return {}


@functools.lru_cache(maxsize=32)
def _load(path: str, _modified: int) -> dict[str, ExerciseKey]:
    try:
        with np.load(path, allow_pickle=False) as stored:
            manifest = json.loads(stored["manifest"].tobytes())
            planes = {name: stored[name] for name in stored.files if name != "manifest"}
        if manifest["format"] != FORMAT:
            raise DamagedKey(f"{path} is of another version of the course: build it again with course build")
        arrays = {name: np.ascontiguousarray(item.T).view(name).reshape(-1) for name, item in planes.items()}
        keys = [key_from_tree(tree) for tree in unpack(manifest["keys"], arrays, shared=True)]
    except DamagedKey:
        raise
    except Exception as error:  # a truncated or overwritten file can fail in many ways
        raise DamagedKey(
            f"The answer key {Path(path).name} is damaged ({type(error).__name__}): get the course's files again, or "
            "build it with course build."
        ) from None
    return {key.name: key for key in keys}


def lesson_of(name: str) -> str | None:
    """The lesson that has an exercise of this name, or None. Names of exercises are unique in the course."""
    return _index().get(name)


@functools.lru_cache(maxsize=1)
def _index() -> dict[str, str]:
    rows = [row for rows in contents(FOLDER).values() for row in rows if row.kind == "exercise"]
    return {row.name: row.lesson for row in reversed(rows)}
