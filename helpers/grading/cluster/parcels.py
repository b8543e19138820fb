"""What travels between the grader and its workers: JSON in bytes, no longer than it may be, checked on arrival.

No pickle holds anything of a learner's but these bytes, and they are read as JSON only.
"""

import base64
import json
from dataclasses import asdict, fields

from jsonschema import Draft202012Validator

from helpers.grading.reports import ExerciseReport, SubmissionReport
from helpers.grading.safe_text import one_line
from helpers.grading.submission import Cell

LARGEST_HAND_IN = 24 << 20  # bytes: what the intake lets through, files included, as JSON
LARGEST_REQUEST = 64 << 20
LARGEST_REPLY = 128 << 20  # what one submission may show, however it is written, and more
CELL = ("id", "source", "kind", "exercise", "trusted", "gone", "ran")  # all of a cell that the judge looks at


def _record(**fields) -> dict:
    """The schema of an object with exactly these fields."""
    return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}


def _list(of: dict) -> dict:
    return {"type": "array", "items": of}


def _table(of: dict) -> dict:
    return {"type": "object", "additionalProperties": of}


TEXT, YES, POINTS = {"type": "string"}, {"type": "boolean"}, {"type": "number", "minimum": 0, "maximum": 1000}
MAYBE = {"type": ["string", "null"]}
BATCH = _record(lesson=TEXT, seed={"type": "integer"}, cell_seconds={"type": ["number", "null"]})
SCHEMAS: dict[object, dict] = {
    str: TEXT,
    bool: YES,
    float: POINTS,
    str | None: MAYBE,
    bool | None: {"type": ["boolean", "null"]},
    tuple[str, ...]: _list(TEXT),
}


def _record_of(of: type, names: tuple[str, ...] | None = None) -> dict:
    """The schema of a dataclass as JSON, with all of its fields or these."""
    return _record(**{field.name: SCHEMAS[field.type] for field in fields(of) if names is None or field.name in names})


HAND_IN = _record(cells=_list(_record_of(Cell, CELL)), files=_table(TEXT))
VERDICT = _record_of(ExerciseReport)
GRADED = _record(
    verdicts=_table(VERDICT),
    outputs=_table(_list({"type": "object"})),
    flags=_list(TEXT),
    errors=_table(TEXT),
    problem=MAYBE,
)
JUDGED = {
    "oneOf": [
        _record(kind={"const": "judged"}, answer=GRADED),
        _record(kind={"enum": ["died", "odd", "slow"]}, answer=TEXT),
    ]
}

GREETING = Draft202012Validator(_record(lesson=TEXT, version=TEXT))
REQUEST = Draft202012Validator(_record(token=TEXT, version=TEXT, batch=BATCH, hurried=YES, submissions=_list(HAND_IN)))
# ready: a token of the worker's process. refused: nothing was done, and why. failed: it is not to be believed.
REPLY = Draft202012Validator(
    {"oneOf": [_record(ready=TEXT), _record(refused=TEXT), _record(failed=TEXT), _record(judged=_list(JUDGED))]}
)


def pack(parcel: dict) -> bytes:
    return json.dumps(parcel, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


def unpack(data: object, schema: Draft202012Validator, most: int) -> dict:
    """What was packed. Raises ValueError if it is too long, no JSON, or something else than `schema` describes."""
    if not isinstance(data, bytes):
        raise ValueError(f"a {type(data).__name__} came in place of bytes")
    if len(data) > most:
        raise ValueError(f"{len(data):,} bytes came, and {most:,} are the most")
    try:
        parcel = json.loads(data.decode("utf-8", "surrogatepass"), parse_constant=_no_number)
        wrong = next(schema.iter_errors(parcel), None)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if wrong is not None:
        raise ValueError(f"what came is not what was asked for ({one_line(wrong.message, 120)})")
    return parcel


def _no_number(name: str):
    raise ValueError(f"{name} is no number here")


def parcel_of(cells: list[Cell], files: dict[str, bytes]) -> dict:
    return {
        "cells": [{name: getattr(cell, name) for name in CELL} for cell in cells],
        "files": {name: base64.b64encode(content).decode() for name, content in files.items()},
    }


def opened(parcel: dict) -> tuple[list[Cell], dict[str, bytes]]:
    """A submission, as a judge is asked. Raises ValueError."""
    files = {name: base64.b64decode(text, validate=True) for name, text in parcel["files"].items()}
    return [Cell(**cell) for cell in parcel["cells"]], files


def sealed(kind: str, answer) -> dict:
    return {"kind": kind, "answer": asdict(answer) if kind == "judged" else one_line(str(answer), 200)}


def unsealed(parcel: dict) -> tuple[str, SubmissionReport | str]:
    answer = parcel["answer"]
    if parcel["kind"] != "judged":
        return parcel["kind"], answer
    verdicts = {
        name: ExerciseReport(**verdict | {"failed": tuple(verdict["failed"])})
        for name, verdict in answer["verdicts"].items()
    }
    return "judged", SubmissionReport(**answer | {"verdicts": verdicts})
