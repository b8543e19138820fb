"""Writing with the KV cache: lesson 10's `cached_attention`, for a model with the parts of the lesson's GPT.

Any other model writes without a cache, and a sentence says why.
"""

import torch

from helpers.blocks import apply_rope, merge_heads, split_heads


def write_with_cache(model, ids, max_new_tokens: int, attend):
    """Greedy generation in which each step computes one new row: (B, T) -> (B, T + max_new_tokens).

    attend: `cached_attention` of lesson 10. For a model with `tokens`, `blocks` of RotaryBlock, `norm` and `unembed`.
    A model built otherwise writes without a cache, and a sentence says so. All tokens together at most
    model.block_size.
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
    """The logits (B, T_new, V) of new tokens, from position `first` on, and the caches of all blocks with them in."""
    caches = [None] * len(model.blocks) if caches is None else caches
    positions = torch.arange(first, first + new.shape[1], device=new.device)  # (T_new,)
    x = model.tokens(new)  # (B, T_new, D)
    after = []
    for block, cache in zip(model.blocks, caches, strict=True):
        mha, y = block.attention, block.norm1(x)
        q, k, v = (split_heads(W(y), mha.num_heads) for W in (mha.W_q, mha.W_k, mha.W_v))  # (B, H, T_new, d)
        q, k = apply_rope(q, positions, mha.base), apply_rope(k, positions, mha.base)  # (B, H, T_new, d)
        out, cache = attend(q, k, v, cache)  # (B, H, T_new, d)
        after.append(cache)
        x = x + mha.W_o(merge_heads(out))  # (B, T_new, D)
        x = x + block.feed_forward(block.norm2(x))  # (B, T_new, D)
    return model.unembed(model.norm(x)), after


def _why_no_cache(model, device, attend) -> str:
    """What a model has otherwise than the lesson's GPT, or nothing: eight tokens must come out as from the model."""
    missing = [name for name in ("tokens", "blocks", "norm", "unembed") if not hasattr(model, name)]
    if missing:
        return f"has no part called {missing[0]!r}"
    with torch.no_grad():
        V = model(torch.zeros(1, 1, dtype=torch.long, device=device)).shape[-1]
        ids = torch.arange(min(8, model.block_size), device=device)[None] % V  # (1, T)
        expected = model(ids)  # (1, T, V)
        try:
            found = _new_rows(model, ids, 0, None, attend)[0]  # (1, T, V)
            alike = torch.allclose(found, expected, rtol=1e-3, atol=1e-3)
        except Exception:  # parts of these names can be anything at all
            alike = False
    return "" if alike else "is made of other parts than the lesson's"
