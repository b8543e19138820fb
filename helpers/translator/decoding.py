"""Other ways to write a sentence with the translator: a learner's own loop, or with a cache."""

import torch

from helpers.translator.network import placed
from helpers.translator.trained import MAX_LEN, greedy
from helpers.translator.word_ids import BOS, EOS, PAD


@torch.no_grad()
def write(network, src: torch.Tensor, parts: dict) -> list[int]:
    """French ids for one English sentence (1, T_s), by the learner's greedy_decode or cached_attention if given.

    With a causal_mask of theirs too, it is written with a cache: then one query sees more keys than there are queries.
    """
    memory = network.encode(src)
    if "greedy_decode" in parts:
        return list(parts["greedy_decode"](lambda ids: network.decode(ids, memory, src)[:, -1], BOS, EOS, MAX_LEN - 1))
    if "cached_attention" in parts:
        return _with_cache(network, memory, src, parts["cached_attention"])
    if "causal_mask" not in parts or not hasattr(network, "parts"):
        return greedy(network, src)[0].tolist()

    def attend_masked(q, k, v, cache):
        """One query against all keys so far, under the mask that the part gives for it: (out, the cache with k, v)."""
        if cache is not None:
            k, v = (torch.cat([old, new], dim=-2) for old, new in zip(cache, (k, v), strict=True))  # (1, H, t + 1, d_k)
        return network.parts.attend(q, k, v, network.parts.causal_mask(1, k.shape[-2]))[0], (k, v)

    return _with_cache(network, memory, src, attend_masked)


def _with_cache(network, memory, src, attend) -> list[int]:
    """One word at a time, each block's self-attention through its own cache."""
    ids, caches = [BOS], [None] * len(network.blocks)
    mask = (src != PAD)[:, None, None, :]
    for t in range(MAX_LEN - 1):
        y = placed(network.parts, torch.tensor([ids]), network.tokens, network.positions)[:, t:]  # (1, 1, D)
        for i, block in enumerate(network.blocks):
            own = block.self_attention
            made = (layer(y) for layer in (own.W_q, own.W_k, own.W_v))
            q, k, v = (network.parts.split_heads(x, own.num_heads) for x in made)  # (1, H, 1, d_k)
            out, caches[i] = attend(q, k, v, caches[i])
            y = block.normed(block.norm1, y + own.W_o(network.parts.merge_heads(out)))
            y = block.normed(block.norm2, y + block.cross_attention(y, memory, memory, mask=mask)[0])
            y = block.normed(block.norm3, y + block.feed_forward(y))
        ids.append(int(network.unembed(y)[0, -1].argmax()))
        if ids[-1] == EOS:
            break
    return ids
