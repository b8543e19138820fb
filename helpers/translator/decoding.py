"""Generation with a learner's parts: greedy_decode, cached_attention, or causal_mask with a KV cache."""

import torch

from helpers.translator.network import embedded
from helpers.translator.trained import MAX_LEN, greedy
from helpers.translator.word_ids import BOS, EOS, PAD


@torch.no_grad()
def write(network, src: torch.Tensor, parts: dict) -> list[int]:
    """French ids for one English sentence (1, T_s), generated with the learner's parts.

    parts: greedy_decode replaces the loop; cached_attention runs in it. A causal_mask is used with a cache as well,
    because otherwise it would never make a mask for more keys than queries.
    """
    memory = network.encode(src)
    if "greedy_decode" in parts:
        return list(parts["greedy_decode"](lambda ids: network.decode(ids, memory, src)[:, -1], BOS, EOS, MAX_LEN - 1))
    if "cached_attention" in parts:
        return _with_cache(network, memory, src, parts["cached_attention"])
    if "causal_mask" not in parts or not hasattr(network, "parts"):
        return greedy(network, src)[0].tolist()

    def attend_masked(q, k, v, cache):
        """Attention of one query to all keys so far, under the learner's mask: (out, the cache extended by k and v)."""
        if cache is not None:
            k, v = (torch.cat([old, new], dim=-2) for old, new in zip(cache, (k, v), strict=True))  # (1, H, t + 1, d_k)
        return network.parts.attend(q, k, v, network.parts.causal_mask(1, k.shape[-2]))[0], (k, v)

    return _with_cache(network, memory, src, attend_masked)


def _with_cache(network, memory, src, attend) -> list[int]:
    """Generate one word at a time; each block's self-attention has its own cache."""
    ids, caches = [BOS], [None] * len(network.blocks)
    mask = (src != PAD)[:, None, None, :]
    for t in range(MAX_LEN - 1):
        y = embedded(network.parts, torch.tensor([ids]), network.tokens, network.positions)[:, t:]  # (1, 1, D)
        for i, block in enumerate(network.blocks):
            own = block.self_attention
            projected = (layer(y) for layer in (own.W_q, own.W_k, own.W_v))
            q, k, v = (network.parts.split_heads(x, own.num_heads) for x in projected)  # (1, H, 1, d_k)
            out, caches[i] = attend(q, k, v, caches[i])
            y = block.normed(block.norm1, y + own.W_o(network.parts.merge_heads(out)))
            y = block.normed(block.norm2, y + block.cross_attention(y, memory, memory, mask=mask)[0])
            y = block.normed(block.norm3, y + block.feed_forward(y))
        ids.append(int(network.unembed(y)[0, -1].argmax()))
        if ids[-1] == EOS:
            break
    return ids
