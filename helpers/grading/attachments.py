"""What lies beside a notebook that was handed in and belongs to it: kept numbers of a training, small modules of one's
own, texts and tables that the code names. All go into the sandbox's folder, where the notebook finds them as it did at
home.

Only regular files, no links, nothing in subfolders, and no more than the limits below. Kept numbers are safetensors,
so that reading them runs nothing; a module is the learner's code like the notebook's cells, and is flagged.
"""

import os
import re
from pathlib import Path

from helpers.grading.notebook_file import Unreadable, read_regular

LARGEST = {".safetensors": 4 * 10**6, ".py": 200_000, ".txt": 200_000, ".csv": 200_000}  # bytes
MOST = {".safetensors": 2, ".py": 8, ".txt": 4, ".csv": 4}
DATA = (".txt", ".csv")  # taken along only where the code names them: nbgrader's timestamp.txt lies there too
TRANSLATOR = Path(__file__).parents[1] / "translator" / "weights.safetensors"
# A table in it, and the cosine from which two such tables are no two trainings. By the lesson's recipe with the seeds 0
# to 2 it ended between -0.06 and 0.02, and with the seed of the course's own training at 0.63.
TABLE, COSINE_OF_A_COPY = "tokens.weight", 0.9
WEIGHTS_NAME = re.compile(r"""["']([\w .-]{1,80}\.safetensors)["']""")  # kept numbers that code names
NAME = re.compile(r"\w[\w .()+-]{0,80}")


def read_files_beside(folder: Path, text: str = "", only_named: bool = False) -> tuple[dict[str, bytes], list[str]]:
    """The files that go along, by name, and flags for a person: what is there and how much of it was taken.

    text: the learner's code. What it names comes first where there is too much; with `only_named` nothing else comes.
    """
    files: dict[str, bytes] = {}
    flags: list[str] = []
    for suffix in LARGEST:
        names = _names_ending(folder, suffix)
        named = [name for name in names if re.search(rf"\b{re.escape(name.removesuffix(suffix))}\b", text)]
        unnamed = [] if only_named or suffix in DATA else [name for name in names if name not in named]
        skipped = 0
        for name in named + unnamed:
            if sum(taken.endswith(suffix) for taken in files) >= MOST[suffix]:
                skipped += 1
                continue
            try:
                files[name] = read_regular(folder / name, LARGEST[suffix])
            except Unreadable as problem:
                flags.append(f"{name} beside the notebook was left out: {problem}")
                continue
            if suffix == ".py":
                flags.append(f"{name} was handed in beside the notebook and taken along")
        if suffix == ".safetensors" and (called := _name_in_code(folder, files, text)):
            flags.append(f"{next(iter(files))} was taken for {called}, which the code names")
            files = {called: files.popitem()[1]}
        if skipped and suffix not in DATA:
            left_out = f"{skipped} more {suffix} files beside the notebook were left out"
            flags.append(f"{left_out}: {MOST[suffix]} are the most")
    return files, flags


def _name_in_code(folder: Path, files: dict[str, bytes], text: str) -> str | None:
    """The name that the code has for the only kept numbers, where a browser or platform gave them another."""
    named = set(WEIGHTS_NAME.findall(text))
    return named.pop() if len(named) == len(files) == 1 and not named & {*files, *_names_ending(folder, "")} else None


def is_course_model(weights: bytes) -> bool:
    """Whether kept numbers are those of the course's own translator, or next to them: these were not trained."""
    import numpy as np
    from safetensors.numpy import load

    try:
        both = (load(content)[TABLE].astype(np.float64).ravel() for content in (TRANSLATOR.read_bytes(), weights))
        course_table, table = both
        return course_table.shape == table.shape and bool(
            course_table @ table > COSINE_OF_A_COPY * np.linalg.norm(course_table) * np.linalg.norm(table)
        )
    except Exception:  # whatever lies there: nothing that could be compared
        return False


def _names_ending(folder: Path, suffix: str) -> list[str]:
    """Names in the folder that end so, sorted; odd ones are left out."""
    try:
        if folder.is_symlink():
            return []
        with os.scandir(folder) as entries:
            names = [entry.name for _, entry in zip(range(1000), entries, strict=False)]
    except OSError:
        return []
    return sorted(name for name in names if name.endswith(suffix) and NAME.fullmatch(name))
