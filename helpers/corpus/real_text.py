"""Real text that every machine has: the sources of Python's own standard library. And any other text, from a file."""

import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import torch

LENGTH = 1_100_000  # characters, as many as tiny Shakespeare has


class Characters(NamedTuple):
    """A text as ids of its characters, cut in two: the first nine tenths to learn from, the rest to be tested on."""

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

    The text differs a little from one version of Python to the next. Files with characters beyond ASCII are left out.
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
    """The standard library's sources, or the text of a file (tiny Shakespeare, say), as characters.

    length: no more than so many. Unless told, a file is read whole, and of the library as much as LENGTH says.
    """
    import torch

    text = Path(file).read_text(encoding="utf-8")[:length] if file else library_text(length or LENGTH)
    symbols = "".join(sorted(set(text)))
    table = torch.zeros(max(map(ord, symbols)) + 1, dtype=torch.long)
    table[[ord(symbol) for symbol in symbols]] = torch.arange(len(symbols))
    ids = table[torch.frombuffer(bytearray(text.encode("utf-32-le")), dtype=torch.int32).long()]
    cut = len(ids) * 9 // 10
    return Characters(symbols, ids[:cut], ids[cut:])
