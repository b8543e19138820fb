"""The numbers and pieces of all-MiniLM-L6-v2; where they cannot be had, random numbers and a subset of the pieces."""

import functools
import string

from helpers.pretrained import model_files

# A subset of the model's own pieces, chosen so that the lesson's words are cut as the full vocabulary cuts them.
_SPECIAL = "[PAD] [UNK] [CLS] [SEP] [MASK]"
_WORDS = """life is short eat dessert first jane visits africa i like to apples un token em transform transformers
    visiting revisited une soft pine playing word skip co attention snow apple visit visited happy happiness table
    forget re the a and of in on for by cat dog horse bank river money shortest shorter early later play played player
    lifeless lifetime translators"""
_ENDINGS = """##ha ##pp ##iness ##ization ##izer ##bed ##ding ##s ##er ##atable ##vis ##ited ##able ##max ##apple ##for
    ##get ##table ##ness ##piece ##gram ##sin ##sp ##oon ##boarding ##ve ##ed ##ing ##est ##ly"""
# Words that lesson 13 finds by name in its sentences: the stand-in knows them too.
_ASKED_FOR = "it animal street trophy suitcase ball mouse truck bus boat bridge cup box key door"
LAYERS, HEADS = 6, 12


def wordpiece_vocab() -> dict[str, int]:
    """The pieces that the model knows, each with its id: 30,522 of them, or about 160 where the model is not at hand.

    Nothing is downloaded for it. The small vocabulary has ids of its own; it holds all letters and digits, so that
    every lower-case English word can be cut.
    """
    for folder in model_files.model_folders():
        file = folder / model_files.PIECES
        if file.is_file():
            return numbered(file.read_text(encoding="utf-8").split("\n"))
    letters = [*string.ascii_lowercase, *string.digits]
    pieces = [*_SPECIAL.split(), *letters, *("##" + x for x in letters), *_WORDS.split(), *_ENDINGS.split()]
    return numbered(list(dict.fromkeys(pieces)))


def numbered(pieces: list[str]) -> dict[str, int]:
    """Each piece's place in the list, its first one where it stands twice."""
    found: dict[str, int] = {}
    for index, piece in enumerate(pieces):
        if piece:
            found.setdefault(piece, index)
    return found


@functools.cache
def _loaded() -> tuple[dict, dict[str, int], bool]:
    """(numbers, pieces, real): read once in a kernel."""
    pieces = model_files.find(model_files.PIECES)
    file = model_files.find(model_files.NUMBERS) if pieces else None
    if pieces is None or file is None:
        print(
            "The network's weights are not on this machine, and the hub cannot be reached. "
            f"To get them: {model_files.HOW_TO}\nUntil then a small random network takes their place, so every cell "
            "runs, but its output means nothing."
        )
        vocab = numbered([*wordpiece_vocab(), *_ASKED_FOR.split()])
        return _made_up(len(vocab)), vocab, False
    from safetensors.torch import load_file

    state = load_file(file)
    state.pop("embeddings.position_ids", None)  # 0, 1, 2, ...: no number that was learned
    return state, numbered(pieces.read_text(encoding="utf-8").split("\n")), True


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
