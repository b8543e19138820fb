"""The translator's decoder in lesson 5: its first block on random words, and one of its heads with a cache."""

import torch
from torch.nn import functional as F

from helpers import translator


def first_block(mask, **parts):
    """f (B, T, 64) -> (B, T, 64): the first block of the decoder, with `parts` in the translator, under a mask or None.

    Its source sentence is a single zero vector, so that the block can attend only to its own words.
    """
    block = translator.machine(**parts).blocks[0]

    @torch.no_grad()
    def f(y):
        return block(y, torch.zeros(len(y), 1, y.shape[-1]), self_mask=mask)[0]

    return f


@torch.no_grad()
def in_two_goes(causal_mask, cached: int = 3, new: int = 2, head: int = 0) -> torch.Tensor:
    """How far each of the last `new` words' outputs lies from what it is when all words ask at once, (new,).

    A head of the decoder's first block reads cached + new French words. First all queries ask. Then the last ones ask
    alone, with the keys and values of the earlier words in a cache, under causal_mask(new, cached + new).
    """
    numbers = translator.state()
    words = "jane visite l' afrique en septembre".split()[: cached + new]
    ids = torch.tensor([translator.french[word] for word in words])
    y = numbers["tokens.weight"][ids] + numbers["positions.weight"][: len(ids)]  # (T, 64)
    rows = slice(16 * head, 16 * head + 16)
    q, k, v = (y @ numbers[f"blocks.0.self_attention.W_{name}.weight"][rows].T for name in "qkv")  # (T, 16) each
    at_once = F.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=True)[0, cached:]
    later = F.scaled_dot_product_attention(q[None, cached:], k[None], v[None], attn_mask=causal_mask(new, cached + new))
    return (later[0] - at_once).norm(dim=-1) / at_once.norm(dim=-1)
