"""The course's translator trained from other seeds: four minutes of a core each, once for all claims of a run."""

import functools

from helpers.translator.network import Parts
from helpers.translator.trained import SIZES
from helpers.translator.training import train


@functools.cache
def trained(seed: int):
    """The whole network, trained from this seed. Nobody may change it."""
    return train(seed)


def trained_with(seed: int, **parts):
    """The same numbers in a network of other parts."""
    network = Parts(parts).module("Transformer", *SIZES).eval()
    network.load_state_dict(trained(seed).state_dict(), strict=False)
    return network
