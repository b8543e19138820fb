"""The decoder of the translator in lesson 5: its first block, and one of its heads with a cache."""

import torch
from torch.nn import functional as F

from helpers import translator


def first_block(mask, **parts):
    """The first block of the decoder as a function (B, T, 64) -> (B, T, 64), with a self-attention mask or None.

    parts: functions or classes to use in the translator. The source sentence is a single zero vector, so that the block
    can attend only to its own words.
    """
    block = translator.model(**parts).blocks[0]

    @torch.no_grad()
    def f(y):
        return block(y, torch.zeros(len(y), 1, y.shape[-1]), self_mask=mask)[0]

    return f


@torch.no_grad()
def cache_errors(causal_mask, cached: int = 3, new: int = 2, head: int = 0) -> torch.Tensor:
    """The relative errors (new,) of the outputs of the last `new` words if the words before them are in a cache.

    A head of the decoder's first block reads cached + new French words, first with all queries at once, and then with
    the last queries alone, cached keys and values, and the mask causal_mask(new, cached + new).
    """
    weights = translator.state()
    words = "jane visite l' afrique en septembre".split()[: cached + new]
    ids = torch.tensor([translator.french[word] for word in words])
    y = weights["tokens.weight"][ids] + weights["positions.weight"][: len(ids)]  # (T, 64)
    rows = slice(16 * head, 16 * head + 16)
    q, k, v = (y @ weights[f"blocks.0.self_attention.W_{name}.weight"][rows].T for name in "qkv")  # (T, 16) each
    without_cache = F.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=True)[0, cached:]
    mask = causal_mask(new, cached + new)
    with_cache = F.scaled_dot_product_attention(q[None, cached:], k[None], v[None], attn_mask=mask)[0]
    return (with_cache - without_cache).norm(dim=-1) / without_cache.norm(dim=-1)
