"""A trained network with thin matrices beside its thick ones: the course's translator, to be adapted."""

from torch import nn

from helpers import translator
from helpers.blocks import Transformer
from helpers.translator import evaluation

ADAPTED = ("W_q", "W_v")  # of every attention, as Hu et al. (2021) chose


def finished_translator() -> nn.Module:
    """Lesson 10's Transformer with the translator's trained weights."""
    network = Transformer(*translator.SIZES)
    network.load_state_dict(translator.state())
    return network


def adapted(network: nn.Module, lora, rank: int, alpha: float = 1.0) -> nn.Module:
    """The same network, frozen, with lora(layer, rank, alpha) in place of W_q and W_v of every attention."""
    network.requires_grad_(False)
    for part in list(network.modules()):
        for name in ADAPTED:
            if isinstance(getattr(part, name, None), nn.Linear):
                setattr(part, name, lora(getattr(part, name), rank, alpha))
    return network


def nats_a_word(network: nn.Module, sentences: int = 200) -> float:
    """The loss of the next French word on sentences that the translator has never seen."""
    return evaluation.nats_a_word(network, evaluation.unseen(sentences))
