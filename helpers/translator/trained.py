"""The trained network: its sizes, its weights, and greedy translation."""

import functools
from collections.abc import Callable
from importlib import resources

import torch
from safetensors.torch import load

from helpers.errors import CourseError
from helpers.translator.finished_parts import sinusoidal_positions
from helpers.translator.network import Parts
from helpers.translator.word_ids import BOS, EOS, PAD, english, english_ids, french, french_sentence

D_MODEL, NUM_HEADS, D_FF, NUM_LAYERS, MAX_LEN = 64, 4, 128, 2, 24
SIZES = (len(english), len(french), D_MODEL, NUM_HEADS, D_FF, NUM_LAYERS, MAX_LEN)
POSITIONS = ("encoder.positions.weight", "positions.weight")  # sinusoids, which are computed and not stored
TABLES = ("encoder.tokens", "encoder.positions", "tokens", "positions")  # nn.Embedding
WEIGHTS = "weights.safetensors"


class WeightMismatch(ValueError):
    """The trained weights don't fit the parameters of a module."""


@functools.lru_cache(maxsize=1)
def _stored() -> dict[str, torch.Tensor]:
    file = resources.files("helpers.translator") / WEIGHTS
    if not file.is_file():
        raise CourseError("The course's own trained weights are not here while a notebook is graded.")
    weights = {name: tensor.float() for name, tensor in load(file.read_bytes()).items()}
    return weights | dict.fromkeys(POSITIONS, sinusoidal_positions(MAX_LEN, D_MODEL))


def state() -> dict[str, torch.Tensor]:
    """The trained weights by name, float32, as a copy."""
    return {name: tensor.clone() for name, tensor in _stored().items()}


def part_state(prefix: str) -> dict[str, torch.Tensor]:
    """The weights of one part, such as "encoder" or "blocks.1.cross_attention", under the part's own names."""
    found = {name[len(prefix) + 1 :]: value for name, value in state().items() if name.startswith(f"{prefix}.")}
    if not found:
        raise KeyError(f"the translator has no part {prefix!r}")
    return found


def model(**replaced) -> torch.nn.Module:
    """A new copy of the trained network, with the given functions or modules in place of the parts of these names.

    The parameters of a module should have the names of `state()`; another name is accepted if only one tensor fits it.
    Raises WeightMismatch if the weights don't fit.
    """
    parts = Parts(replaced)
    with torch.random.fork_rng(devices=[]):
        network = parts.module("Transformer", *SIZES)
    load_into(network, state())
    return network.eval()


def load_into(network: torch.nn.Module, weights: dict[str, torch.Tensor]) -> None:
    """Load weights by name, or, where a name differs, by the kind of layer and the shape if only one tensor fits."""
    own = network.state_dict()
    missing, spare = [n for n in own if n not in weights], sorted(n for n in weights if n not in own)
    renamed = {n: weights[n] for n in own if n in weights}

    def kind(name: str) -> tuple:
        layer = network.get_submodule(name.rpartition(".")[0])
        return tuple(own[name].shape), isinstance(layer, torch.nn.Embedding)

    for name in missing:
        rivals = [n for n in missing if kind(n) == kind(name)]
        fits = [n for n in spare if (tuple(weights[n].shape), n.rpartition(".")[0] in TABLES) == kind(name)]
        if len(fits) != 1 or len(rivals) != 1:
            hint = f"it has {spare[0]} and others: list(translator.state()) names them" if spare else "it needs none"
            raise WeightMismatch(f"the translator has no weights called {name}; {hint}")
        renamed[name] = weights[fits[0]]
    for name, value in renamed.items():
        if value.shape != own[name].shape:
            sizes = f"{tuple(own[name].shape)}, and the translator's weights have {tuple(value.shape)}"
            raise WeightMismatch(f"{name} has the shape {sizes}")
    if left := [n for n in spare if not any(weights[n] is value for value in renamed.values())]:
        raise WeightMismatch(f"there is no {left[0]} in it, for which the translator has weights")
    network.load_state_dict(renamed)


def source_batch(sentences: list[str], encode: Callable | None = None) -> torch.Tensor:
    """English sentences as ids (B, T), padded on the right. Raises KeyError with a word that is not in the vocabulary.

    encode: the learner's function (sentence, vocabulary) -> ids (T,), if any.
    """
    rows = [encode(s, english) if encode else torch.tensor(english_ids(s)) for s in sentences]
    return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=PAD)


@torch.no_grad()
def greedy(network: torch.nn.Module, src: torch.Tensor, max_len: int = MAX_LEN - 1) -> torch.Tensor:
    """Greedy generation: ids (B, up to max_len + 1) that start with BOS and have PAD after EOS."""
    memory = network.encode(src)
    tgt = torch.full((len(src), 1), BOS, device=src.device)
    done = torch.zeros(len(src), dtype=torch.bool, device=src.device)
    for _ in range(max_len):
        following = network.decode(tgt, memory, src)[:, -1].argmax(dim=-1).masked_fill(done, PAD)
        tgt = torch.cat([tgt, following[:, None]], dim=1)
        done |= following == EOS
        if done.all():
            break
    return tgt


def translate(network: torch.nn.Module, sentence: str) -> str:
    """The network's French translation of an English sentence."""
    return french_sentence(greedy(network, source_batch([sentence]))[0].tolist())
