"""Generation with a KV cache: lesson 10's `cached_attention` in a model with the modules of the lesson's GPT."""

import torch

from helpers.blocks import apply_rope, merge_heads, split_heads


def write_with_cache(model, ids, max_new_tokens: int, attend):
    """Greedy generation in which each step computes one new row: (B, T) -> (B, T + max_new_tokens).

    model: a GPT with `tokens`, `blocks` of RotaryBlock, `norm` and `unembed`. Any other model generates without a
    cache, and a message says why. attend: `cached_attention` of lesson 10. Raises ValueError if the result would have
    more than model.block_size tokens.
    """
    if ids.shape[1] + max_new_tokens > model.block_size:
        raise ValueError(f"{ids.shape[1] + max_new_tokens} tokens are more than the context of {model.block_size}")
    why_not = _why_no_cache(model, ids.device, attend)
    if why_not:
        print(f"Your GPT {why_not}, so it writes without a cache here: all rows are computed again for each token.")
    caches, new = None, ids
    with torch.no_grad():
        for _ in range(max_new_tokens):
            if why_not:
                logits = model(ids)  # (B, T, V)
            else:
                logits, caches = _new_rows(model, new, ids.shape[1] - new.shape[1], caches, attend)  # (B, T_new, V)
            new = logits[:, -1].argmax(-1, keepdim=True)  # (B, 1)
            ids = torch.cat([ids, new], dim=1)
    return ids


def _new_rows(model, new, first: int, caches, attend):
    """The logits (B, T_new, V) of new tokens, from position `first` on, and the extended caches of all blocks."""
    caches = [None] * len(model.blocks) if caches is None else caches
    positions = torch.arange(first, first + new.shape[1], device=new.device)  # (T_new,)
    x = model.tokens(new)  # (B, T_new, D)
    new_caches = []
    for block, cache in zip(model.blocks, caches, strict=True):
        mha, y = block.attention, block.norm1(x)
        q, k, v = (split_heads(W(y), mha.num_heads) for W in (mha.W_q, mha.W_k, mha.W_v))  # (B, H, T_new, d)
        q, k = apply_rope(q, positions, mha.base), apply_rope(k, positions, mha.base)  # (B, H, T_new, d)
        out, cache = attend(q, k, v, cache)  # (B, H, T_new, d)
        new_caches.append(cache)
        x = x + mha.W_o(merge_heads(out))  # (B, T_new, D)
        x = x + block.feed_forward(block.norm2(x))  # (B, T_new, D)
    return model.unembed(model.norm(x)), new_caches


def _why_no_cache(model, device, attend) -> str:
    """Why a model can't use the cache, as the end of a sentence; empty if eight tokens get equal logits with it."""
    missing = [name for name in ("tokens", "blocks", "norm", "unembed") if not hasattr(model, name)]
    if missing:
        return f"has no part called {missing[0]!r}"
    with torch.no_grad():
        V = model(torch.zeros(1, 1, dtype=torch.long, device=device)).shape[-1]
        ids = torch.arange(min(8, model.block_size), device=device)[None] % V  # (1, T)
        expected = model(ids)  # (1, T, V)
        try:
            found = _new_rows(model, ids, 0, None, attend)[0]  # (1, T, V)
            same = torch.allclose(found, expected, rtol=1e-3, atol=1e-3)
        except Exception:  # modules with these names can be anything
            same = False
    return "" if same else "is made of other parts than the lesson's"
