"""The course's translator, to be fine-tuned with LoRA."""

from torch import nn

from helpers import translator
from helpers.blocks import Transformer
from helpers.translator import evaluation

ADAPTED = ("W_q", "W_v")  # of every attention layer, as in Hu et al. (2021)


def finished_translator() -> nn.Module:
    """Lesson 10's Transformer with the translator's trained weights."""
    network = Transformer(*translator.SIZES)
    network.load_state_dict(translator.state())
    return network


def adapted(network: nn.Module, lora, rank: int, alpha: float = 1.0) -> nn.Module:
    """Freeze the network, replace W_q and W_v of every attention layer by lora(layer, rank, alpha), and return it."""
    network.requires_grad_(False)
    for part in list(network.modules()):
        for name in ADAPTED:
            if isinstance(getattr(part, name, None), nn.Linear):
                setattr(part, name, lora(getattr(part, name), rank, alpha))
    return network


def nats_per_word(network: nn.Module, sentences: int = 200) -> float:
    """The loss in nats per French word on sentences that the translator has never seen."""
    return evaluation.nats_per_word(network, evaluation.unseen(sentences))
