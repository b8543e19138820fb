"""Other right answers to the exercises of lesson 8."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from helpers.blocks import attention, masked_softmax


def refuse(width, num_heads):
    if width % num_heads != 0:
        raise ValueError(f"{num_heads} heads do not fit into {width} channels")


def split_by_chunks(x, num_heads):
    refuse(x.shape[-1], num_heads)
    return torch.stack(x.chunk(num_heads, dim=-1), dim=1)


def split_by_permute(x, num_heads):
    refuse(x.shape[2], num_heads)
    return x.reshape(*x.shape[:2], num_heads, -1).permute(0, 2, 1, 3).contiguous()


def split_by_vmap(x, num_heads):
    refuse(x.shape[-1], num_heads)
    return torch.func.vmap(lambda tokens: tokens.unflatten(-1, (num_heads, -1)).swapaxes(0, 1))(x)


def split_backwards(x, num_heads):
    refuse(x.shape[2], num_heads)
    return x.mT.reshape(len(x), num_heads, -1, x.shape[1]).transpose(-1, -2)


def merge_by_cat(x):
    return torch.cat(x.unbind(1), dim=-1)


def merge_by_flatten(x):
    return x.transpose(1, 2).flatten(2)


class _Four(nn.Module):
    """Defines the constructor and forward, which calls the method `run` of a subclass."""

    def __init__(self, d_model, num_heads):
        super().__init__()
        refuse(d_model, num_heads)
        self.num_heads, self.d_head = num_heads, d_model // num_heads
        self.W_q, self.W_k, self.W_v, self.W_o = (nn.Linear(d_model, d_model) for _ in range(4))

    def forward(self, query, key=None, value=None, mask=None):
        if key is None:
            key = query
        if value is None:
            value = key
        return self.run(query, key, value, mask)


class SumOfHeads(_Four):
    """Applies each head's columns of W_o to its output and adds the results."""

    def run(self, query, key, value, mask):
        Q, K, V = (
            split_by_permute(f(x), self.num_heads) for f, x in zip(self.layers(), (query, key, value), strict=True)
        )
        out, weights = attention(Q, K, V, mask)
        columns = self.W_o.weight.unflatten(1, (self.num_heads, self.d_head))
        return torch.einsum("bhtd,ohd->bto", out, columns) + self.W_o.bias, weights

    def layers(self):
        return self.W_q, self.W_k, self.W_v


class FoldedIntoBatch(_Four):
    def run(self, query, key, value, mask):
        B, T, D = query.shape
        fold = lambda x: split_by_permute(x, self.num_heads).flatten(0, 1)  # noqa: E731
        if mask is not None:
            mask = mask.expand(B, self.num_heads, T, key.shape[1]).flatten(0, 1)
        out, weights = attention(fold(self.W_q(query)), fold(self.W_k(key)), fold(self.W_v(value)), mask)
        out = out.unflatten(0, (B, self.num_heads)).transpose(1, 2).reshape(B, T, D)
        return self.W_o(out), weights.unflatten(0, (B, self.num_heads))


def weights_in_log_space(Q, K, mask):
    """Their error is up to 5e-4 in float32 for scores near 10,000, and negligible in float64."""
    scores = Q @ K.mT / Q.shape[-1] ** 0.5
    if mask is None:
        return scores.log_softmax(-1).exp()
    scores = scores.masked_fill(~mask, -1e9)
    return (scores - scores.logsumexp(-1, keepdim=True)).exp().masked_fill(~mask, 0.0)


class InLogSpace(_Four):
    def run(self, query, key, value, mask):
        Q, K, V = (split_by_chunks(x, self.num_heads) for x in (self.W_q(query), self.W_k(key), self.W_v(value)))
        weights = weights_in_log_space(Q, K, mask)
        return self.W_o(merge_by_cat(weights @ V)), weights


class ScaledQueries(nn.Module):
    """Layers in another order, dropout with probability 0, the scale as a buffer, and F.linear."""

    def __init__(self, d_model, num_heads):
        super().__init__()
        if d_model % num_heads > 0:
            raise ValueError("d_model must be divisible by num_heads")
        self.W_o = nn.Linear(d_model, d_model, bias=True)
        self.W_v = nn.Linear(d_model, d_model, bias=True)
        self.W_k = nn.Linear(d_model, d_model, bias=True)
        self.W_q = nn.Linear(d_model, d_model, bias=True)
        self.dropout = nn.Dropout(0.0)
        self.d_model = d_model
        self.num_heads = num_heads
        self.register_buffer("scale", torch.tensor((d_model // num_heads) ** -0.5), persistent=False)

    def forward(self, query, key=None, value=None, mask=None):
        key = key if key is not None else query
        value = value if value is not None else key
        B, T, _ = query.size()
        q = F.linear(query * self.scale, self.W_q.weight, self.W_q.bias * self.scale)
        q = q.view(B, T, self.num_heads, -1).transpose(1, 2)
        k = self.W_k(key).view(B, -1, self.num_heads, self.d_model // self.num_heads).permute(0, 2, 3, 1)
        v = self.W_v(value).view(B, -1, self.num_heads, self.d_model // self.num_heads).transpose(1, 2)
        scores = q @ k
        if mask is not None:
            scores = torch.where(mask, scores, torch.tensor(-math.inf, dtype=scores.dtype))
        weights = self.dropout(scores.softmax(dim=-1))
        if mask is not None:
            weights = torch.where(mask, weights, torch.zeros_like(weights))
        return self.W_o((weights @ v).transpose(1, 2).contiguous().view(B, T, self.d_model)), weights


def load_by_state_dict(mine, theirs):
    D = theirs.embed_dim
    W, b = theirs.in_proj_weight, theirs.in_proj_bias
    mine.load_state_dict(
        {
            "W_q.weight": W[:D],
            "W_q.bias": b[:D],
            "W_k.weight": W[D : 2 * D],
            "W_k.bias": b[D : 2 * D],
            "W_v.weight": W[2 * D :],
            "W_v.bias": b[2 * D :],
            "W_o.weight": theirs.out_proj.weight,
            "W_o.bias": theirs.out_proj.bias,
        }
    )


def load_by_data(mine, theirs):
    q, k, v = theirs.in_proj_weight.data.split(theirs.embed_dim)
    mine.W_q.weight.data, mine.W_k.weight.data, mine.W_v.weight.data = q.clone(), k.clone(), v.clone()
    q, k, v = theirs.in_proj_bias.data.split(theirs.embed_dim)
    mine.W_q.bias.data, mine.W_k.bias.data, mine.W_v.bias.data = q.clone(), k.clone(), v.clone()
    mine.W_o.weight.data.copy_(theirs.out_proj.weight.data)
    mine.W_o.bias.data.copy_(theirs.out_proj.bias.data)


@torch.no_grad()
def load_in_a_loop(mine, theirs):
    state = theirs.state_dict()
    weights, biases = state["in_proj_weight"].chunk(3), state["in_proj_bias"].chunk(3)
    for layer, w, b in zip((mine.W_q, mine.W_k, mine.W_v), weights, biases, strict=True):
        layer.weight[:] = w
        layer.bias[:] = b
    mine.W_o.load_state_dict(theirs.out_proj.state_dict())


def fixed_by_chunks(x, W_q, W_k, W_v, W_o, num_heads, mask=None):
    Q, K, V = (split_by_chunks(x @ W.T, num_heads) for W in (W_q, W_k, W_v))
    return merge_by_cat(attention(Q, K, V, mask)[0]) @ W_o.T


def fixed_by_einsum(x, W_q, W_k, W_v, W_o, num_heads, mask=None):
    q, k, v = (torch.einsum("btd,hed->bhte", x, W.unflatten(0, (num_heads, -1))) for W in (W_q, W_k, W_v))
    scores = torch.einsum("bhqe,bhke->bhqk", q, k) * q.shape[-1] ** -0.5
    if mask is None:
        mask = torch.ones_like(scores, dtype=torch.bool)
    heads = masked_softmax(scores, mask) @ v
    return torch.einsum("bhte,ohe->bto", heads, W_o.unflatten(1, (num_heads, -1)))


def fixed_in_log_space(x, W_q, W_k, W_v, W_o, num_heads, mask=None):
    Q, K, V = (split_by_permute(x @ W.T, num_heads) for W in (W_q, W_k, W_v))
    return merge_by_flatten(weights_in_log_space(Q, K, mask) @ V) @ W_o.T


def grouped_in_log_space(Q, K, V, mask=None):
    K, V = (x.repeat_interleave(Q.shape[1] // K.shape[1], dim=1) for x in (K, V))
    return weights_in_log_space(Q, K, mask) @ V


def grouped_by_unflatten(Q, K, V, mask=None):
    B, H, T, d = Q.shape
    G = K.shape[1]
    scores = torch.einsum("bgrqd,bgkd->bgrqk", Q.unflatten(1, (G, H // G)), K).flatten(1, 2) / d**0.5
    if mask is None:
        weights = scores.softmax(-1)
    else:
        weights = scores.masked_fill(~mask, -math.inf).softmax(-1).masked_fill(~mask, 0.0)
    return torch.einsum("bgrqk,bgkd->bgrqd", weights.unflatten(1, (G, -1)), V).flatten(1, 2)


def grouped_by_index(Q, K, V, mask=None):
    H, G = Q.shape[1], K.shape[1]
    group = torch.arange(H) // (H // G)
    return attention(Q, K[:, group], V[:, group], mask)[0]


def importance_by_zeroing(mha, x):
    d = x.shape[-1] // mha.num_heads
    changes = []
    with torch.no_grad():
        full, saved = mha(x)[0], mha.W_o.weight.clone()
        for h in range(mha.num_heads):
            mha.W_o.weight[:, h * d : (h + 1) * d] = 0
            changes.append(torch.linalg.norm(full - mha(x)[0]))
            mha.W_o.weight.copy_(saved)
    return torch.stack(changes)


def importance_by_hook(mha, x):
    seen = []
    handle = mha.W_o.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))
    try:
        mha(x)
    finally:
        handle.remove()
    heads = seen[0].chunk(mha.num_heads, dim=-1)
    columns = mha.W_o.weight.chunk(mha.num_heads, dim=1)
    return torch.stack([(head @ column.T).norm() for head, column in zip(heads, columns, strict=True)])


def importance_from_weights(mha, x):
    weights = mha(x)[1]
    heads = weights @ split_by_chunks(mha.W_v(x), mha.num_heads)
    columns = mha.W_o.weight.unflatten(1, (mha.num_heads, -1))
    return torch.einsum("bhtd,ohd->bhto", heads, columns).pow(2).sum(dim=(0, 2, 3)).sqrt().detach()


VARIANTS = {
    "split_heads": (split_by_chunks, split_by_vmap, split_backwards),
    "merge_heads": (merge_by_cat, merge_by_flatten, lambda x: x.transpose(-1, -2).flatten(1, 2).transpose(1, 2)),
    "MultiHeadAttention": (SumOfHeads, FoldedIntoBatch, InLogSpace, ScaledQueries),
    "load_from_torch": (load_by_state_dict, load_by_data, load_in_a_loop),
    "fixed_heads": (fixed_by_chunks, fixed_by_einsum, fixed_in_log_space),
    "grouped_query_attention": (grouped_by_unflatten, grouped_by_index, grouped_in_log_space),
    "head_importance": (importance_by_zeroing, importance_by_hook, importance_from_weights),
}
