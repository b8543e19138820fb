"""Other ways to write a sentence with the translator: a learner's own loop, or with a cache."""

from __future__ import annotations

import torch

from helpers.translator.network import placed
from helpers.translator.trained import MAX_LEN, greedy
from helpers.translator.word_ids import BOS, EOS, PAD

LONGEST = MAX_LEN - 1


@torch.no_grad()
def write(network, src: torch.Tensor, parts: dict) -> list[int]:
    """French ids for one English sentence (1, T_s), by the learner's greedy_decode or attend_with_cache if given."""
    memory = network.encode(src)
    if "greedy_decode" in parts:
        return list(
            parts["greedy_decode"](lambda prefix: network.decode(prefix, memory, src)[:, -1], BOS, EOS, LONGEST)
        )
    if "attend_with_cache" in parts:
        return _with_cache(network, memory, src, parts["attend_with_cache"])
    return greedy(network, src)[0].tolist()


def _with_cache(network, memory, src, attend) -> list[int]:
    """One word at a time, each block's self-attention through its own cache."""
    ids, caches = [BOS], [None] * len(network.blocks)
    mask = (src != PAD)[:, None, None, :]
    for t in range(LONGEST):
        tgt = torch.tensor([ids])
        y = placed(network.parts, tgt, network.tokens, network.positions)[:, t:]  # (1, 1, D)
        for i, block in enumerate(network.blocks):
            own = block.self_attention
            q, k, v = (
                network.parts.split_heads(layer(y), own.num_heads) for layer in (own.W_q, own.W_k, own.W_v)
            )  # (1, H, 1, d_k)
            out, caches[i] = attend(q, k, v, caches[i])
            y = block.normed(block.norm1, y + own.W_o(network.parts.merge_heads(out)))
            y = block.normed(block.norm2, y + block.cross_attention(y, memory, memory, mask=mask)[0])
            y = block.normed(block.norm3, y + block.feed_forward(y))
        ids.append(int(network.unembed(y)[0, -1].argmax()))
        if ids[-1] == EOS:
            break
    return ids
