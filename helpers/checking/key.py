"""What an answer is compared with: the cases of an exercise, what the reference shows on them, and each mistake.

Made by helpers/checking/make_keys.py from a lesson's answer key. Here is what it is, and how it is kept in a file.
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
from helpers.checking.observe import Error, Facts, Observation, case_from_tree, case_to_tree, keeps_promise
from helpers.checking.sketch import Sketch, can_be_sketched, sketch
from helpers.checking.vocabulary import Case, Stub
from helpers.errors import CourseError

FORMAT = 5
SKETCH = "sketch"  # how a Sketch stands in a file
SKETCHED = ("output", "gradients")
PLAIN = "lesson name points bonus kind instead correct arguments weights explanations".split()  # in a tree as they are
USUAL, EMPTY = Observation().to_tree(), (None, "", [], 0)
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
    """Everything `decide` needs. `arguments` are the parameter names of the reference, for messages."""

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
    metric: str = ""  # then `expected` holds the truths
    apart: tuple[str, ...] = ()


def key_to_tree(key: ExerciseKey):
    """A key as a tree (see codec)."""
    tree = {name: getattr(key, name) for name in PLAIN}
    tree |= {"metric": key.metric} if key.metric else {}
    tree |= {"apart": list(key.apart)} if key.apart else {}
    tree |= {"axes": list(key.axes), "forbidden": list(key.facts.forbidden), "time_limit": key.facts.time_limit}
    tree["cases"] = [case_to_tree(case) for case in key.cases]
    tree["expected"] = _steady(key.cases, key.expected)
    tree["mistakes"] = [
        vars(mistake) | {"observations": _told_apart(key, mistake.observations) if mistake.observations else []}
        for mistake in key.mistakes
    ]
    return tree


def _steady(cases: list[Case], observations: list[Observation]) -> list:
    """Observations without what changes from run to run or names the author's files.

    Of an error's message only the words stay that its case asks for.
    """
    trees = []
    for case, seen in zip(cases, observations, strict=True):
        errors = {name: error and Error(error.type) for name, error in seen.errors().items()}
        if seen.error is not None and keeps_promise(case, seen.error):
            errors["error"] = Error(case.raises.error, case.raises.names)
        trees.append(replace(seen, said="", **errors).to_tree())
    return trees


def _told_apart(key: ExerciseKey, observations: list[Observation]) -> list:
    """What a mistake shows, as far as it is ever looked at: None on a case where it shows what the reference does, and
    sketches of its tensors. Where a sketch would hide a difference, the numbers stay."""
    trees = []
    for case, expected, seen in zip(key.cases, key.expected, observations, strict=True):
        apart = differs(case, expected, seen)
        small = replace(seen, **{name: mapped(getattr(seen, name), _small) for name in SKETCHED})
        (tree,) = _steady([case], [small if differs(case, expected, small) == apart else seen])
        tree |= {name: mapped(tree[name], _written) for name in SKETCHED}
        unusual = {
            name: item for name, item in tree.items() if type(item) is not type(USUAL[name]) or item not in EMPTY
        }
        trees.append(unusual if apart else None)
    return trees


def _told_back(tree, expected: Observation) -> Observation:
    if tree is None:
        return expected
    seen = Observation.from_tree(USUAL | tree | {"gradients": None})
    seen.output, seen.gradients = (mapped(tree.get(name), _read) for name in SKETCHED)
    return seen


def _small(leaf):
    return sketch(leaf) if can_be_sketched(leaf) else leaf


def sketched(leaf):
    """A tensor as it stands in a file where its sketch is enough."""
    return _written(_small(leaf))


def _written(leaf):
    if not isinstance(leaf, Sketch):
        return leaf
    return Stub(SKETCH, (str(leaf.dtype).removeprefix("torch."), list(leaf.shape), leaf.rounded, leaf.sums))


def _read(leaf):
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
            KnownMistake(**mistake | {"observations": list(map(_told_back, mistake["observations"], expected))})
            for mistake in tree["mistakes"]
        ],
        axes=tuple(tree["axes"]),
        metric=tree.get("metric", ""),
        apart=tuple(tree.get("apart", ())),
    )


def save_keys(path: Path, keys: list[ExerciseKey]):
    """Write keys as an .npz of numbers and text: a JSON manifest and the bytes of one flat array a dtype, first bytes
    first, as they shrink so. The same keys give the same bytes."""
    packed, arrays = pack([key_to_tree(key) for key in keys], shared=True)
    manifest = json.dumps({"format": FORMAT, "keys": packed}, ensure_ascii=True, separators=(",", ":"))
    planes = {name: array.view(np.uint8).reshape(-1, array.itemsize).T for name, array in arrays.items()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, array in {"manifest": np.frombuffer(manifest.encode(), np.uint8), **planes}.items():
            with archive.open(f"{name}.npy", "w") as file:
                np.lib.format.write_array(file, array)


def load_keys(lesson: str, path: Path | None = None) -> dict[str, ExerciseKey]:
    """The stored keys of a lesson by exercise name. Raises FileNotFoundError if the lesson has none."""
    path = path or FOLDER / f"{lesson}.npz"
    return _load(str(path), path.stat().st_mtime_ns)


def stored_keys(lesson: str) -> dict[str, ExerciseKey]:
    """The keys that travel with the notebooks; none where the lesson is not built."""
    try:
        return load_keys(lesson)
    except FileNotFoundError:
        return {}


@functools.lru_cache(maxsize=32)
def _load(path: str, _changed_at: int) -> dict[str, ExerciseKey]:
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
    except Exception as error:  # a file that is cut off or overwritten fails in many ways
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
