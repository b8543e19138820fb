"""Other right answers to the exercises of lesson 14."""

import copy
import math
import re
from collections import Counter, defaultdict

import torch
from torch import nn
from torch.nn import functional as F

from helpers.blocks import apply_rope, attention, causal_mask


def norm_by_rsqrt(x, weight, eps=1e-6):
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * weight


def norm_in_double(x, weight, eps=1e-6):
    wide = x.double()
    return (wide * (wide.pow(2).mean(-1, True) + eps).pow(-0.5)).to(x.dtype) * weight


def norm_at_least_float32(x, weight, eps=1e-6):
    kind = torch.promote_types(x.dtype, torch.float32)
    y = x.to(kind)
    return weight * (y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + eps)).to(x.dtype)


class GatedByHand(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.gate, self.up = nn.Linear(d_model, d_ff, bias=False), nn.Linear(d_model, d_ff, bias=False)
        self.down = nn.Linear(d_ff, d_model, bias=False)

    def forward(self, x):
        z = self.gate(x)
        return self.down(z * torch.sigmoid(z) * self.up(x))


class GatedInOneProduct(GatedByHand):
    def forward(self, x):
        gate, up = F.linear(x, torch.cat([self.gate.weight, self.up.weight])).chunk(2, dim=-1)
        return self.down(up * F.silu(gate))


class GatedByExp(GatedByHand):
    def forward(self, x):
        z = self.gate(x)
        return self.down(z / (1 + torch.exp(-z)) * self.up(x))


class GatedByTokens(GatedByHand):
    def forward(self, x):
        return torch.stack([self.down(F.silu(self.gate(row)) * self.up(row)) for row in x.unbind(1)], dim=1)


class GatedWithDropout(GatedByHand):
    def __init__(self, d_model, d_ff, bias=False, dropout=0.0):
        super().__init__(d_model, d_ff)
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        return self.drop(self.down(F.silu(self.gate(x)).mul(self.up(x))))


def _angles(x, positions, base):
    d = x.shape[-1]
    return positions.double()[:, None] * base ** (-torch.arange(0, d, 2).double() / d)  # (T, d/2)


def as_published(x, positions, base=10000.0):
    def rotate_half(z):
        first, second = z[..., : z.shape[-1] // 2], z[..., z.shape[-1] // 2 :]
        return torch.cat((-second, first), dim=-1)

    d = x.shape[-1]
    inv_freq = 1.0 / (base ** (torch.arange(0, d, 2, dtype=torch.int64).float() / d))
    freqs = positions.float()[:, None] * inv_freq
    emb = torch.cat((freqs, freqs), dim=-1)
    return x * emb.cos().to(x.dtype) + rotate_half(x) * emb.sin().to(x.dtype)


def by_complex_numbers(x, positions, base=10000.0):
    a, b = x.double().chunk(2, dim=-1)
    turned = torch.complex(a, b) * torch.exp(1j * _angles(x, positions, base))
    return torch.cat([turned.real, turned.imag], dim=-1).to(x.dtype)


def by_lesson_2(x, positions, base=10000.0):
    together = torch.stack(x.chunk(2, dim=-1), dim=-1).flatten(-2)  # neighbors
    turned = apply_rope(together, positions, base)
    return torch.cat([turned[..., 0::2], turned[..., 1::2]], dim=-1)


def by_tokens(x, positions, base=10000.0):
    half, rows = x.shape[-1] // 2, []
    for t, place in enumerate(positions.tolist()):
        angle = [place / base ** (2 * i / x.shape[-1]) for i in range(half)]
        cos = torch.tensor([math.cos(a) for a in angle], dtype=x.dtype)
        sin = torch.tensor([math.sin(a) for a in angle], dtype=x.dtype)
        a, b = x[..., t, :half], x[..., t, half:]
        rows.append(torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1))
    return torch.stack(rows, dim=-2)


def by_roll(x, positions, base=10000.0):
    half = x.shape[-1] // 2
    angles = _angles(x, positions, base).repeat(1, 2).to(x.dtype)
    sign = torch.ones(x.shape[-1], dtype=x.dtype)
    sign[:half] = -1
    return x * angles.cos() + x.roll(half, -1) * sign * angles.sin()


def by_view(W, num_heads):
    D, D_in = W.shape
    return W.view(num_heads, D // num_heads // 2, 2, D_in).transpose(1, 2).reshape(D, D_in)


def by_index(W, num_heads):
    width = W.shape[0] // num_heads
    head = torch.cat([torch.arange(0, width, 2), torch.arange(1, width, 2)])
    return W[torch.cat([head + h * width for h in range(num_heads)])]


def by_matrix(W, num_heads):
    width = W.shape[0] // num_heads
    order = [h * width + i for h in range(num_heads) for i in (*range(0, width, 2), *range(1, width, 2))]
    return torch.eye(W.shape[0], dtype=W.dtype)[order] @ W


class Norm(nn.Module):
    def __init__(self, d_model, eps):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(d_model)), eps

    def forward(self, x):
        return norm_by_rsqrt(x, self.weight, self.eps)


class Plain(nn.Module):
    """Written out in full, with the attention computed by hand."""

    def __init__(self, d_model, num_heads, num_kv_heads, d_ff, base=10000.0, eps=1e-6):
        super().__init__()
        if d_model % num_heads != 0:
            raise ValueError("d_model must be divisible by num_heads")
        if num_heads % num_kv_heads != 0:
            raise ValueError("num_heads must be divisible by num_kv_heads")
        self.H, self.G, self.d, self.base = num_heads, num_kv_heads, d_model // num_heads, base
        self.W_q = nn.Linear(d_model, num_heads * self.d, bias=False)
        self.W_k = nn.Linear(d_model, num_kv_heads * self.d, bias=False)
        self.W_v = nn.Linear(d_model, num_kv_heads * self.d, bias=False)
        self.W_o = nn.Linear(num_heads * self.d, d_model, bias=False)
        self.norm1 = Norm(d_model, eps)
        self.norm2 = Norm(d_model, eps)
        self.feed_forward = GatedByHand(d_model, d_ff)

    def heads(self, x, mask):
        B, T, _ = x.shape
        positions = torch.arange(T)
        q = self.rotate(self.W_q(x).view(B, T, self.H, self.d).transpose(1, 2), positions)
        k = self.rotate(self.W_k(x).view(B, T, self.G, self.d).transpose(1, 2), positions)
        v = self.W_v(x).view(B, T, self.G, self.d).transpose(1, 2)
        k, v = (z.repeat_interleave(self.H // self.G, dim=1) for z in (k, v))
        return self.attend(q, k, v, mask).transpose(1, 2).reshape(B, T, self.H * self.d)

    def rotate(self, x, positions):
        return as_published(x, positions, self.base)

    def attend(self, q, k, v, mask):
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.d)
        weights = torch.softmax(scores.masked_fill(~mask, -math.inf), dim=-1)
        return torch.where(mask, weights, 0.0) @ v

    def forward(self, x, mask=None):
        if mask is None:
            mask = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()
        x = x + self.W_o(self.heads(self.norm1(x), mask))
        x = x + self.feed_forward(self.norm2(x))
        return x


class WithBlocks(Plain):
    def attend(self, q, k, v, mask):
        return attention(q, k, v, mask)[0]

    def rotate(self, x, positions):
        return by_lesson_2(x, positions, self.base)


class WithLaterPositions(Plain):
    """Positions may start at any number, because scores depend only on distances."""

    def rotate(self, x, positions):
        return by_complex_numbers(x, positions + 1, self.base)


class WithGroupsOfQueries(Plain):
    """The queries of a group have an axis of their own, so that keys and values are not repeated."""

    def heads(self, x, mask):
        B, T, _ = x.shape
        positions = torch.arange(T)
        q = by_roll(self.W_q(x).view(B, T, self.H, self.d).transpose(1, 2), positions, self.base)
        k = by_roll(self.W_k(x).view(B, T, self.G, self.d).transpose(1, 2), positions, self.base)
        v = self.W_v(x).view(B, T, self.G, self.d).transpose(1, 2)
        scores = torch.einsum("bgntd,bgsd->bgnts", q.unflatten(1, (self.G, -1)), k) * self.d**-0.5
        mask = mask.expand(B, self.H, T, T).unflatten(1, (self.G, -1))
        weights = scores.masked_fill(~mask, torch.finfo(x.dtype).min).softmax(-1) * mask
        return torch.einsum("bgnts,bgsd->btgnd", weights, v).flatten(2)


class WithAWeightTable(Plain):
    """The sines and cosines are buffers that are not part of the state dictionary."""

    def __init__(self, d_model, num_heads, num_kv_heads, d_ff, base=10000.0, eps=1e-6, longest=128):
        super().__init__(d_model, num_heads, num_kv_heads, d_ff, base, eps)
        slow = base ** (-torch.arange(0, self.d, 2).double() / self.d)
        angles = (torch.arange(longest)[:, None] * slow).repeat(1, 2)
        self.register_buffer("cos", angles.cos().float(), persistent=False)
        self.register_buffer("sin", angles.sin().float(), persistent=False)

    def rotate(self, x, positions):
        a, b = x.chunk(2, dim=-1)
        cos, sin = self.cos[: len(positions)].to(x.dtype), self.sin[: len(positions)].to(x.dtype)
        return x * cos + torch.cat([-b, a], dim=-1) * sin


class HeadByHead(Plain):
    def heads(self, x, mask):
        T, outs = x.shape[1], []
        mask = mask.expand(len(x), self.H, T, T)
        q, k, v = (W(x).split(self.d, dim=-1) for W in (self.W_q, self.W_k, self.W_v))
        for h in range(self.H):
            g = h // (self.H // self.G)
            q_h, k_h = by_tokens(q[h], torch.arange(T), self.base), by_tokens(k[g], torch.arange(T), self.base)
            outs.append(self.attend(q_h, k_h, v[g], mask[:, h]))
        return torch.cat(outs, dim=-1)


def by_replacing(state_dict):
    table = {
        "model.layers.": "blocks.",
        "self_attn.q_proj": "W_q",
        "self_attn.k_proj": "W_k",
        "self_attn.v_proj": "W_v",
        "self_attn.o_proj": "W_o",
        "post_attention_layernorm": "norm2",
        "input_layernorm": "norm1",
        "mlp.gate_proj": "feed_forward.gate",
        "mlp.up_proj": "feed_forward.up",
        "mlp.down_proj": "feed_forward.down",
        "model.embed_tokens": "tokens",
        "model.norm": "norm",
        "lm_head": "unembed",
    }
    new = {}
    for name, tensor in state_dict.items():
        for old, ours in table.items():
            name = name.replace(old, ours)
        new[name] = tensor
    if "unembed.weight" not in new:
        new["unembed.weight"] = new["tokens.weight"]
    return new


def by_counting(state_dict):
    layers = sum(name.endswith("input_layernorm.weight") for name in state_dict)
    parts = {"norm1": "input_layernorm", "norm2": "post_attention_layernorm"}
    parts |= {f"W_{c}": f"self_attn.{c}_proj" for c in "qkvo"}
    parts |= {f"feed_forward.{part}": f"mlp.{part}_proj" for part in ("gate", "up", "down")}
    mine = {
        f"blocks.{i}.{ours}.weight": state_dict[f"model.layers.{i}.{theirs}.weight"]
        for i in range(layers)
        for ours, theirs in parts.items()
    }
    tokens = state_dict["model.embed_tokens.weight"]
    ends = {"norm.weight": state_dict["model.norm.weight"], "unembed.weight": state_dict.get("lm_head.weight", tokens)}
    return mine | {"tokens.weight": tokens} | ends


def by_parts(state_dict):
    mine, norms = {}, {"input_layernorm": "norm1", "post_attention_layernorm": "norm2"}
    for name, tensor in state_dict.items():
        match name.split("."):
            case ["model", "layers", i, "self_attn", part, "weight"]:
                mine[f"blocks.{i}.W_{part[0]}.weight"] = tensor.clone()
            case ["model", "layers", i, "mlp", part, "weight"]:
                mine[f"blocks.{i}.feed_forward.{part.removesuffix('_proj')}.weight"] = tensor.clone()
            case ["model", "layers", i, part, "weight"]:
                mine[f"blocks.{i}.{norms[part]}.weight"] = tensor.clone()
            case ["model", "embed_tokens", "weight"]:
                mine["tokens.weight"] = tensor
                mine["unembed.weight"] = tensor if "lm_head.weight" not in state_dict else state_dict["lm_head.weight"]
            case ["model", "norm", "weight"]:
                mine["norm.weight"] = tensor
    return mine


def by_triangles(T_q, T_k=None, window=4, sinks=0):
    T_k = T_q if T_k is None else T_k
    past = torch.ones(T_q, T_k, dtype=torch.bool).tril(T_k - T_q)
    near = past.triu(T_k - T_q - window + 1)
    return near | (past & (torch.arange(T_k) < sinks))


def by_causal_mask(T_q, T_k=None, window=4, sinks=0):
    causal = causal_mask(T_q, T_k)
    far = ~torch.triu(torch.ones_like(causal), causal.shape[1] - T_q - window + 1)
    far[:, :sinks] = False
    return causal & ~far


def by_lists(T_q, T_k=None, window=4, sinks=0):
    T_k = T_q if T_k is None else T_k
    shift = T_k - T_q
    return torch.tensor(
        [[k <= q + shift and (k > q + shift - window or k < sinks) for k in range(T_k)] for q in range(T_q)]
    )


def _cut(text):
    return [tuple(bytes((byte,)) for byte in piece.encode("utf-8")) for piece in re.findall(r" ?\S+|\s", text)]


def _merge(tokens, pair):
    out, i = [], 0
    while i < len(tokens):
        if i + 1 < len(tokens) and (tokens[i], tokens[i + 1]) == tuple(pair):
            out.append(tokens[i] + tokens[i + 1])
            i += 2
        else:
            out.append(tokens[i])
            i += 1
    return tuple(out)


def train_without_counting_pieces(text, num_merges):
    pieces, merges = _cut(text), []
    for _ in range(num_merges):
        counts = defaultdict(int)
        for tokens in pieces:
            for i in range(len(tokens) - 1):
                counts[tokens[i], tokens[i + 1]] += 1
        if len(counts) == 0:
            return merges
        most = max(counts.values())
        pair = max(pair for pair, number in counts.items() if number == most)
        merges.append(pair)
        pieces = [_merge(tokens, pair) for tokens in pieces]
    return merges


def train_by_sorting(text, num_merges):
    words, merges = Counter(_cut(text)), []
    while len(merges) < num_merges:
        counts = Counter()
        for word, number in words.items():
            for pair in zip(word, word[1:], strict=False):
                counts[pair] += number
        ranked = sorted(counts.items(), key=lambda item: (item[1], item[0]), reverse=True)
        if not ranked:
            break
        merges.append(ranked[0][0])
        words = Counter({_merge(word, merges[-1]): number for word, number in words.items()})
    return merges


def train_with_numbers(text, num_merges):
    """Tokens are ids, as in many implementations. Tokens with equal bytes share an id."""
    vocab = [bytes([i]) for i in range(256)]
    number_of = {token: i for i, token in enumerate(vocab)}
    pieces = [list(piece.encode()) for piece in re.findall(r" ?\S+|\s", text)]
    merges = []
    for _ in range(num_merges):
        counts = Counter(pair for ids in pieces for pair in zip(ids, ids[1:], strict=False))
        if not counts:
            break
        a, b = max(counts, key=lambda pair: (counts[pair], vocab[pair[0]], vocab[pair[1]]))
        merges.append((vocab[a], vocab[b]))
        joined = vocab[a] + vocab[b]
        if joined not in number_of:
            number_of[joined] = len(vocab)
            vocab.append(joined)
        for ids in pieces:
            i = 0
            while i < len(ids) - 1:
                if (ids[i], ids[i + 1]) == (a, b):
                    ids[i : i + 2] = [number_of[joined]]
                i += 1
    return merges


def encode_by_rank(text, merges):
    """Merges the pair of lowest rank first, as in GPT-2's code."""
    ranks, found = {pair: rank for rank, pair in enumerate(merges)}, []
    for tokens in _cut(text):
        while len(tokens) > 1:
            pair = min(zip(tokens, tokens[1:], strict=False), key=lambda pair: ranks.get(pair, math.inf))
            if pair not in ranks:
                break
            tokens = _merge(tokens, pair)
        found.extend(tokens)
    return found


def encode_with_memory(text, merges):
    known = {}
    for piece in set(_cut(text)):
        tokens = piece
        for pair in merges:
            tokens = _merge(tokens, pair)
        known[piece] = list(tokens)
    return sum((known[piece] for piece in _cut(text)), [])


def encode_in_place(text, merges):
    out = []
    for piece in re.findall(r" ?\S+|\s", text):
        tokens = [bytes([byte]) for byte in piece.encode("utf8")]
        for first, second in merges:
            i = 0
            while i < len(tokens) - 1:
                if tokens[i] == first and tokens[i + 1] == second:
                    tokens[i : i + 2] = [first + second]
                i += 1
        out += tokens
    return out


class MyLoRA(nn.Module):
    def __init__(self, linear, rank, alpha=1.0):
        super().__init__()
        self.linear, self.rank, self.alpha = linear, rank, alpha
        for parameter in linear.parameters():
            parameter.requires_grad = False
        self.A = nn.Parameter(linear.weight.new_empty(rank, linear.in_features))
        self.B = nn.Parameter(linear.weight.new_zeros(linear.out_features, rank))
        self.start()

    def start(self):
        nn.init.kaiming_uniform_(self.A, a=math.sqrt(5))

    def forward(self, x):
        return self.linear(x) + (x @ self.A.T) @ self.B.T * (self.alpha / self.rank)

    def merged(self):
        old = self.linear
        new = nn.Linear(old.in_features, old.out_features, bias=old.bias is not None, dtype=old.weight.dtype)
        new.weight.data = old.weight.data + self.alpha / self.rank * self.B.data @ self.A.data
        if old.bias is not None:
            new.bias.data = old.bias.data.clone()
        return new


class LoRANormal(MyLoRA):
    def start(self):
        nn.init.normal_(self.A, std=0.02)

    def forward(self, x):
        return self.linear(x) + self.alpha / self.rank * F.linear(F.linear(x, self.A), self.B)


class LoRAByWeight(MyLoRA):
    """Computes B @ A as a matrix in every call."""

    def forward(self, x):
        weight = self.linear.weight + self.alpha / self.rank * (self.B @ self.A)
        return F.linear(x, weight, self.linear.bias)


class LoRAByCopy(MyLoRA):
    def merged(self):
        new = copy.deepcopy(self.linear)
        new.weight = nn.Parameter(self.linear.weight + self.alpha / self.rank * self.B.detach() @ self.A.detach())
        return new


class LoRAByState(MyLoRA):
    @torch.no_grad()
    def merged(self):
        state = {name: tensor.clone() for name, tensor in self.linear.state_dict().items()}
        state["weight"] += (self.alpha / self.rank) * (self.B @ self.A)
        new = nn.Linear(*state["weight"].shape[::-1], bias="bias" in state, dtype=state["weight"].dtype)
        new.load_state_dict(state)
        return new


class LoRAByTheIdentity(MyLoRA):
    """Computes the merged weight from the outputs for unit vectors."""

    @torch.no_grad()
    def merged(self):
        new = copy.deepcopy(self.linear)
        eye = torch.eye(self.linear.in_features, dtype=new.weight.dtype)
        bias = 0 if new.bias is None else new.bias
        new.weight.copy_((self(eye) - bias).T)
        return new.requires_grad_(True)


VARIANTS = {
    "rms_norm": (norm_by_rsqrt, norm_in_double, norm_at_least_float32),
    "SwiGLU": (GatedInOneProduct, GatedByExp, GatedByTokens, GatedWithDropout),
    "apply_rope_half_split": (as_published, by_complex_numbers, by_lesson_2),
    "interleaved_to_half_split": (by_view, by_index, by_matrix),
    "LlamaBlock": (WithBlocks, WithLaterPositions, WithGroupsOfQueries, WithAWeightTable, HeadByHead),
    "rename_llama": (by_replacing, by_counting, by_parts),
    "sliding_window_mask": (by_triangles, by_causal_mask, by_lists),
    "train_bpe": (train_without_counting_pieces, train_by_sorting, train_with_numbers),
    "encode_bpe": (encode_by_rank, encode_with_memory, encode_in_place),
    "LoRA": (LoRANormal, LoRAByWeight, LoRAByCopy, LoRAByState, LoRAByTheIdentity),
}
