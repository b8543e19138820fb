"""The weights and the vocabulary of all-MiniLM-L6-v2; if they are missing, random weights and a small vocabulary."""

import functools
import string

from helpers.pretrained import model_files

# A subset of the model's vocabulary, chosen so that lesson 1's words are split as with the full vocabulary.
_SPECIAL = "[PAD] [UNK] [CLS] [SEP] [MASK]"
_WORDS = """life is short eat dessert first jane visits africa i like to apples un token em transform transformers
    visiting revisited une soft pine playing word skip co attention snow apple visit visited happy happiness table
    forget re the a and of in on for by cat dog horse bank river money shortest shorter early later play played player
    lifeless lifetime translators"""
_ENDINGS = """##ha ##pp ##iness ##ization ##izer ##bed ##ding ##s ##er ##atable ##vis ##ited ##able ##max ##apple ##for
    ##get ##table ##ness ##piece ##gram ##sin ##sp ##oon ##boarding ##ve ##ed ##ing ##est ##ly"""
# Words whose position lesson 13 searches for in its sentences, so the small vocabulary needs them as well.
_ASKED_FOR = "it animal street trophy suitcase ball mouse truck bus boat bridge cup box key door"
LAYERS, HEADS = 6, 12


def wordpiece_vocab() -> dict[str, int]:
    """The model's tokens with their ids: 30,522 of them, or about 160 if the model's file is missing.

    This downloads nothing. The small vocabulary has other ids, and contains all letters and digits, so that every
    lower-case English word can be split.
    """
    for folder in model_files.model_folders():
        file = folder / model_files.PIECES
        if file.is_file():
            return numbered(file.read_text(encoding="utf-8").split("\n"))
    letters = [*string.ascii_lowercase, *string.digits]
    pieces = [*_SPECIAL.split(), *letters, *("##" + x for x in letters), *_WORDS.split(), *_ENDINGS.split()]
    return numbered(list(dict.fromkeys(pieces)))


def numbered(pieces: list[str]) -> dict[str, int]:
    """The index of each piece in the list, the first one if there are several; empty pieces are skipped."""
    ids: dict[str, int] = {}
    for index, piece in enumerate(pieces):
        if piece:
            ids.setdefault(piece, index)
    return ids


@functools.cache
def _loaded() -> tuple[dict, dict[str, int], bool]:
    """(weights, vocabulary, whether they are real), loaded once per kernel."""
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
    state.pop("embeddings.position_ids", None)  # 0, 1, 2, ... are not learned
    return state, numbered(pieces.read_text(encoding="utf-8").split("\n")), True


def state_dict() -> dict:
    """The network's weights under BERT's names, float32. Don't change them, because figures use the same tensors."""
    return dict(_loaded()[0])


def vocab() -> dict[str, int]:
    """The tokens that fit state_dict(), with their ids."""
    return _loaded()[1]


def is_real() -> bool:
    return _loaded()[2]


def _made_up(vocab_size: int) -> dict:
    """Random weights under BERT's names, of a small network with as many layers and heads as the real one."""
    import torch

    width, inner, max_len = 48, 96, 512
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
    for i in range(LAYERS):
        prefix = f"encoder.layer.{i}"
        for part in ("query", "key", "value"):
            state |= linear(f"{prefix}.attention.self.{part}", width, width)
        state |= linear(f"{prefix}.attention.output.dense", width, width) | norm(f"{prefix}.attention.output.LayerNorm")
        state |= linear(f"{prefix}.intermediate.dense", inner, width)
        state |= linear(f"{prefix}.output.dense", width, inner) | norm(f"{prefix}.output.LayerNorm")
    return state | linear("pooler.dense", width, width)
