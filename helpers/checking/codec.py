"""Convert trees of tensors and plain Python values to bytes and back, without pickle.

A tree is None, a bool, int, float, str, bytes, tensor, Stub, or a list, tuple or dict of trees. Anything else that an
answer may return becomes Odd, which keeps the type's name for a message. Tensors are stored in one flat array per
dtype, so that a key of many small tensors loads as a handful of arrays.
"""

import itertools
import json
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch

from helpers.checking.vocabulary import Stub

MAX_ELEMENTS = 20_000_000
MAX_DEPTH = 40
MAX_ITEMS = 200_000
MAX_TEXT = 100_000
MAX_RANK = 16  # the most axes of a tensor that is read
MAX_NODES = 1_000_000  # the most nodes of a tree; in a JSON header, the most commas and opening brackets
STORED = {torch.float32: "float32", torch.float64: "float64", torch.int64: "int64", torch.bool: "bool"}
BY_NAME = {name: dtype for dtype, name in STORED.items()}
# Other dtypes are converted to a stored dtype, and back when they are read.
CARRIER = {
    torch.float16: torch.float32,
    torch.bfloat16: torch.float32,
    torch.int32: torch.int64,
    torch.int16: torch.int64,
    torch.int8: torch.int64,
    torch.uint8: torch.int64,
}
ALL_NAMES = {str(dtype).removeprefix("torch."): dtype for dtype in [*STORED, *CARRIER]}


@dataclass(frozen=True)
class Odd:
    """A value that no exercise asks for: the name of its type and a short description."""

    type_name: str
    text: str = ""


class BadTree(ValueError):
    """Bytes or JSON that do not represent a tree."""


def mapped(tree, change: Callable):
    """The tree of lists, tuples and dicts with every leaf replaced by `change(leaf)`."""
    if isinstance(tree, dict):
        return {key: mapped(item, change) for key, item in tree.items()}
    return type(tree)(mapped(item, change) for item in tree) if isinstance(tree, (list, tuple)) else change(tree)


def leaves(tree) -> Iterator:
    if isinstance(tree, (list, tuple, dict)):
        for item in tree.values() if isinstance(tree, dict) else tree:
            yield from leaves(item)
    else:
        yield tree


def plain(value):
    """`value` as a tree. Tensors are detached and copied to the CPU; what a tree cannot contain becomes Odd."""
    return _plain(value, 0, itertools.count(1))


def _plain(value, depth: int, nodes: Iterator[int]):
    if depth > MAX_DEPTH or next(nodes) > MAX_NODES:  # a list that contains itself twice has 2 ** depth nodes
        return Odd("deeply nested value")
    if isinstance(value, torch.Tensor):
        return _plain_tensor(value)
    if isinstance(value, (list, tuple, dict)) and len(value) > MAX_ITEMS:
        return Odd(type(value).__name__, f"{len(value)} items")
    if isinstance(value, (list, tuple)):
        kind = list if isinstance(value, list) else tuple
        return kind(_plain(item, depth + 1, nodes) for item in value)
    if isinstance(value, dict):
        if all(isinstance(key, (str, int, tuple)) for key in value):
            return {key: _plain(item, depth + 1, nodes) for key, item in value.items()}
        return Odd("dict", "with keys that are neither strings nor numbers")
    if value is None or isinstance(value, (bool, Stub, Odd)):
        return value
    if isinstance(value, bytes):
        return _too_large(value) or bytes(value)
    for simple in (int, float, str):  # a value of a subclass is converted to the plain type
        if isinstance(value, simple):
            return _too_large(value) or simple(value)
    name, module = type(value).__name__, getattr(type(value), "__module__", "")
    return Odd(name if module in ("builtins", "__main__") else f"{module}.{name}")


def _too_large(value: int | float | str | bytes) -> Odd | None:
    if isinstance(value, int) and abs(value) >= 2**63:
        return Odd("int", "too large")
    too_long = isinstance(value, (str, bytes)) and len(value) > MAX_TEXT
    return Odd(type(value).__name__, "too long") if too_long else None


def _plain_tensor(tensor: torch.Tensor):
    if tensor.layout != torch.strided or tensor.is_meta:
        return Odd("torch.Tensor", "sparse or without data")
    if tensor.numel() > MAX_ELEMENTS:
        return Odd("torch.Tensor", f"{tensor.numel()} numbers")
    if tensor.dtype not in STORED and tensor.dtype not in CARRIER:
        return Odd("torch.Tensor", f"of dtype {tensor.dtype}")
    tensor = tensor.detach()
    if type(tensor) is not torch.Tensor:  # torch 2.5 refuses as_subclass for a plain tensor in a dispatch mode
        tensor = tensor.as_subclass(torch.Tensor)
    return tensor.cpu().clone()


def pack(tree, shared: bool = False) -> tuple[object, dict[str, np.ndarray]]:
    """The tree as JSON-compatible values and one flat array per stored dtype. shared: store equal tensors once."""
    chunks: dict[str, list[np.ndarray]] = {name: [] for name in BY_NAME}
    sizes = dict.fromkeys(BY_NAME, 0)
    starts: dict[tuple[str, bytes], int] = {}

    def walk(node):
        if isinstance(node, torch.Tensor):
            dtype_name = str(node.dtype).removeprefix("torch.")
            stored = STORED[CARRIER.get(node.dtype, node.dtype)]
            array = node.detach().to(BY_NAME[stored]).contiguous().numpy().reshape(-1)
            start = starts.setdefault((stored, array.tobytes()), sizes[stored]) if shared else sizes[stored]
            if start == sizes[stored]:
                sizes[stored] += array.size
                chunks[stored].append(array)
            return {"t": [dtype_name, start, list(node.shape)]}
        if node is None or isinstance(node, (bool, int, float, str)):
            return node
        if isinstance(node, bytes):
            return {"b": node.decode("latin-1")}
        if isinstance(node, list):
            return [walk(item) for item in node]
        if isinstance(node, tuple):
            return {"u": [walk(item) for item in node]}
        if isinstance(node, dict):
            return {"d": [[walk(key), walk(item)] for key, item in node.items()]}
        if isinstance(node, Stub):
            return {"f": [node.name, walk(list(node.args))]}
        if isinstance(node, Odd):
            return {"o": [node.type_name, node.text]}
        raise BadTree(f"a tree cannot contain a {type(node).__name__}")

    packed = walk(tree)
    arrays = {name: np.concatenate(parts) if parts else np.zeros(0, name) for name, parts in chunks.items()}
    return packed, arrays


def unpack(packed, arrays: dict[str, np.ndarray], shared: bool = False):
    """The tree that `pack` packed. Raises BadTree if there is none or, unless `shared`, if tensors share numbers."""
    flat = {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in arrays.items()}
    unused = {name: math.inf if shared else array.numel() for name, array in flat.items()}

    def tensor(dtype_name, start, shape) -> torch.Tensor:
        dtype = ALL_NAMES[dtype_name]
        stored = STORED[CARRIER.get(dtype, dtype)]
        if not isinstance(shape, list) or len(shape) > MAX_RANK:
            raise BadTree("a shape of too many dimensions")
        if not all(isinstance(n, int) and n >= 0 for n in shape):
            raise BadTree("an invalid shape")
        size = math.prod(shape)
        if not isinstance(start, int) or start < 0 or start + size > flat[stored].numel():
            raise BadTree("a tensor beyond its data")
        unused[stored] -= size
        if unused[stored] < 0:
            raise BadTree("more tensors than data")
        return flat[stored][start : start + size].reshape(shape).to(dtype).clone()

    def tree(node, depth: int):
        if depth > 2 * MAX_DEPTH + 20:
            raise BadTree("too deep")
        if node is None or isinstance(node, (bool, int, float)):
            return node
        if isinstance(node, str):
            return _writable(node)
        if isinstance(node, list):
            return [tree(item, depth + 1) for item in node]
        if not isinstance(node, dict) or len(node) != 1:
            raise BadTree("an unknown node")
        ((kind, body),) = node.items()
        match kind:  # the types that JSON lacks
            case "t":
                return tensor(*body)
            case "b":
                return body.encode("latin-1")
            case "u":
                return tuple(tree(item, depth + 1) for item in body)
            case "d":
                return {tree(key, depth + 1): tree(item, depth + 1) for key, item in body}
            case "f":
                return Stub(body[0], tuple(tree(body[1], depth + 1)))
            case "o":
                return Odd(_writable(str(body[0])), _writable(str(body[1])))
        raise BadTree("an unknown node")

    try:
        return tree(packed, 0)
    except (KeyError, TypeError, IndexError, AttributeError, RuntimeError, UnicodeEncodeError) as error:
        raise BadTree(str(error)) from None


TEXTS = re.compile(rb'"(?:[^"\\]|\\.)*+"', re.DOTALL)


def _writable(text: str) -> str:
    """The text with every lone surrogate replaced by a question mark, so that it can be encoded as UTF-8."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def dumps(tree) -> bytes:
    """The tree as bytes: an 8-byte header length, the JSON header, and raw little-endian numbers."""
    packed, arrays = pack(tree)
    header = json.dumps([packed, {name: int(array.size) for name, array in arrays.items()}]).encode()
    return len(header).to_bytes(8, "little") + header + b"".join(array.tobytes() for array in arrays.values())


def loads(data: bytes):
    """The tree in `data`. Raises BadTree if the bytes do not represent one."""
    try:
        end = 8 + int.from_bytes(data[:8], "little")
        bare = TEXTS.sub(b"", data[8:end])  # commas and brackets inside a string do not count
        if bare.count(b",") + bare.count(b"[") + bare.count(b"{") > MAX_NODES:
            raise BadTree("too many values")
        packed, sizes = json.loads(data[8:end])
        arrays = {}
        for name in BY_NAME:
            dtype = np.dtype(name)
            stop = end + dtype.itemsize * sizes[name]
            arrays[name] = np.frombuffer(data[end:stop], dtype).copy()
            end = stop
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise BadTree(f"no tree in these bytes: {error}") from None
    return unpack(packed, arrays)
