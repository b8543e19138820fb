"""Files that were submitted together with a notebook: trained weights, small modules, and text and CSV files.

They are copied into the folder in which the notebook runs in the sandbox. Only regular files count, no links and
nothing in subfolders, up to the limits below. Weights must be safetensors, because loading these runs no code. Modules
are learner code like the notebook's cells, and each one is flagged.
"""

import os
import re
from pathlib import Path

from helpers.grading.notebook_file import Unreadable, read_regular

LARGEST = {".safetensors": 4 * 10**6, ".py": 200_000, ".txt": 200_000, ".csv": 200_000}  # bytes
MOST = {".safetensors": 2, ".py": 8, ".txt": 4, ".csv": 4}
DATA = (".txt", ".csv")  # copied only if the code names them, because the folder also holds nbgrader's timestamp.txt
TRANSLATOR = Path(__file__).parents[1] / "translator" / "weights.safetensors"
# Weights are a copy of the course's own if the cosine similarity of this parameter is higher than the limit. Training
# as in the lesson gave -0.06 to 0.02 for the seeds 0 to 2, and 0.63 for the seed of the course's own weights.
EMBEDDING, COSINE_OF_A_COPY = "tokens.weight", 0.9
WEIGHTS_NAME = re.compile(r"""["']([\w .-]{1,80}\.safetensors)["']""")  # a file of weights that the code names
NAME = re.compile(r"\w[\w .()+-]{0,80}")


def read_files_beside(folder: Path, text: str = "", only_named: bool = False) -> tuple[dict[str, bytes], list[str]]:
    """Read the files that accompany a notebook in `folder`.

    text: the learner's code; files that it names come first if there are too many, and are the only ones if
    `only_named`. Returns the content of each file by its name, and flags that tell a person what was taken or left out.
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
                flags.append(f"{name} was handed in with the notebook but left out: {problem}")
                continue
            if suffix == ".py":
                flags.append(f"{name} was handed in with the notebook and used")
        if suffix == ".safetensors" and (name_in_code := _name_in_code(folder, files, text)):
            flags.append(f"{next(iter(files))} was taken for {name_in_code}, which the code names")
            files = {name_in_code: files.popitem()[1]}
        if skipped and suffix not in DATA:
            flags.append(f"{skipped} {suffix} files were left out, because at most {MOST[suffix]} are used")
    return files, flags


def _name_in_code(folder: Path, files: dict[str, bytes], text: str) -> str | None:
    """The code's name for the only file of weights, if a browser or platform has renamed the file; else None."""
    named = set(WEIGHTS_NAME.findall(text))
    return named.pop() if len(named) == len(files) == 1 and not named & {*files, *_names_ending(folder, "")} else None


def is_course_model(weights: bytes) -> bool:
    """Whether a safetensors file holds the weights of the course's own translator, or nearly the same ones."""
    import numpy as np
    from safetensors.numpy import load

    try:
        contents = (TRANSLATOR.read_bytes(), weights)
        ours, theirs = (load(content)[EMBEDDING].astype(np.float64).ravel() for content in contents)
        return ours.shape == theirs.shape and bool(
            ours @ theirs > COSINE_OF_A_COPY * np.linalg.norm(ours) * np.linalg.norm(theirs)
        )
    except Exception:  # A file without such a parameter is no copy.
        return False


def _names_ending(folder: Path, suffix: str) -> list[str]:
    """The sorted names in the folder that end in `suffix`, except names with unusual characters."""
    try:
        if folder.is_symlink():
            return []
        with os.scandir(folder) as entries:
            names = [entry.name for _, entry in zip(range(1000), entries, strict=False)]
    except OSError:
        return []
    return sorted(name for name in names if name.endswith(suffix) and NAME.fullmatch(name))
