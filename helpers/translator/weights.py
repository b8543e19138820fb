"""A trained state on disk: safetensors in float16, read and written with nothing but torch."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import torch

KINDS = {"F16": torch.float16, "F32": torch.float32, "F64": torch.float64, "I64": torch.int64}
NAMES = {kind: name for name, kind in KINDS.items()}


def write(state: dict[str, torch.Tensor], path: Path) -> None:
    """Save tensors under their names, each in its own dtype."""
    header, data = {}, b""
    for name, tensor in state.items():
        raw = tensor.detach().contiguous().numpy().tobytes()
        header[name] = {
            "dtype": NAMES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [len(data), len(data) + len(raw)],
        }
        data += raw
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def read(data: bytes) -> dict[str, torch.Tensor]:
    """The tensors of a safetensors file's bytes."""
    (length,) = struct.unpack("<Q", data[:8])
    header, body = json.loads(data[8 : 8 + length]), bytearray(data[8 + length :])
    tensors = {}
    for name, entry in header.items():
        if name != "__metadata__":
            start, end = entry["data_offsets"]
            kind = KINDS[entry["dtype"]]
            tensors[name] = torch.frombuffer(body, dtype=kind, offset=start, count=(end - start) // kind.itemsize)
            tensors[name] = tensors[name].reshape(entry["shape"])
    return tensors
