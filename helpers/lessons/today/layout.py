"""Random weights in the layout of Llama's published files, and the logits that they should give.

The network here uses PyTorch's norm and attention and the names of the file; the learner's blocks are compared with it.
"""

import torch
from torch.nn import functional as F

SIZES = dict(vocab_size=40, d_model=24, num_heads=4, num_kv_heads=2, d_ff=32, num_layers=2)  # heads of width 6
BASE, EPS = 10000.0, 1e-6


def random_llama(tied: bool = False) -> dict[str, torch.Tensor]:
    """Random weights under the names of Llama's files. tied: without lm_head, because the embedding is used instead."""
    generator = torch.Generator().manual_seed(14)
    D, d_ff, V = SIZES["d_model"], SIZES["d_ff"], SIZES["vocab_size"]
    kv_width = D // SIZES["num_heads"] * SIZES["num_kv_heads"]

    def random(*shape):
        x = torch.randn(*shape, generator=generator)
        return 2 * x * shape[-1] ** -0.5 if len(shape) > 1 else 1 + 0.3 * x  # the scales of a norm are around 1

    layer: dict[str, tuple[int, ...]] = {
        f"self_attn.{part}_proj": (kv_width if part in "kv" else D, D) for part in "qkvo"
    }
    layer |= {"mlp.gate_proj": (d_ff, D), "mlp.up_proj": (d_ff, D), "mlp.down_proj": (D, d_ff)}
    layer |= {"input_layernorm": (D,), "post_attention_layernorm": (D,)}
    state = {"model.embed_tokens.weight": random(V, D)}
    for i in range(SIZES["num_layers"]):
        state |= {f"model.layers.{i}.{name}.weight": random(*shape) for name, shape in layer.items()}
    state["model.norm.weight"] = random(D)
    return state if tied else state | {"lm_head.weight": random(V, D)}


def llama_logits(state: dict, ids):
    """The logits of a network with the weights of a file: ids LongTensor (B, T) -> (B, T, V)."""
    x = state["model.embed_tokens.weight"][ids]  # (B, T, D)
    for i in range(SIZES["num_layers"]):
        layer = f"model.layers.{i}."
        y = F.rms_norm(x, x.shape[-1:], state[f"{layer}input_layernorm.weight"], EPS)
        heads = [F.linear(y, state[f"{layer}self_attn.{part}_proj.weight"]) for part in "qkv"]
        q, k, v = (h.unflatten(-1, (-1, SIZES["d_model"] // SIZES["num_heads"])).transpose(1, 2) for h in heads)
        q, k = (_rotated(h) for h in (q, k))  # (B, H, T, d), (B, G, T, d)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        x = x + F.linear(mixed.transpose(1, 2).flatten(-2), state[f"{layer}self_attn.o_proj.weight"])
        y = F.rms_norm(x, x.shape[-1:], state[f"{layer}post_attention_layernorm.weight"], EPS)
        gate, up = (F.linear(y, state[f"{layer}mlp.{part}_proj.weight"]) for part in ("gate", "up"))
        x = x + F.linear(F.silu(gate) * up, state[f"{layer}mlp.down_proj.weight"])
    x = F.rms_norm(x, x.shape[-1:], state["model.norm.weight"], EPS)
    return F.linear(x, state.get("lm_head.weight", state["model.embed_tokens.weight"]))


def _rotated(x):
    """RoPE in the half-split layout for x (B, H, T, d), computed with complex numbers."""
    T, d = x.shape[-2:]
    angles = torch.arange(T)[:, None] / BASE ** (torch.arange(0, d, 2) / d)  # (T, d/2)
    pairs = x.unflatten(-1, (2, -1)).transpose(-2, -1).contiguous()  # (..., d/2, 2)
    rotated = torch.view_as_complex(pairs) * torch.polar(torch.ones_like(angles), angles)  # (..., d/2)
    return torch.view_as_real(rotated).transpose(-2, -1).flatten(-2)
