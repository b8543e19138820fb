"""Other right answers to the exercises of lesson 12, as competent people write them."""

import math
from collections import Counter

import torch
import torch.nn.functional as F
from torch import nn

from helpers.blocks import FeedForward, MultiHeadAttention, RotaryBlock, apply_rope


def ngrams_by_counter(train, test, order, vocab_size, alpha):
    train, test = torch.as_tensor(train).tolist(), torch.as_tensor(test).tolist()
    grams = Counter(zip(*(train[i:] for i in range(order)), strict=False))
    rows = Counter()
    for gram, count in grams.items():
        rows[gram[:-1]] += count
    costs = [
        -math.log((grams[gram] + alpha) / (rows[gram[:-1]] + alpha * vocab_size))
        for gram in zip(*(test[i:] for i in range(order)), strict=False)
    ]
    return sum(costs) / len(costs)


def ngrams_with_short_contexts(train, test, order, vocab_size, alpha):
    """The first tokens of both texts have shorter contexts."""
    pairs, rows = Counter(), Counter()
    train, test = [int(i) for i in train], [int(i) for i in test]
    for t, token in enumerate(train):
        context = tuple(train[max(0, t - order + 1) : t])
        pairs[context, token] += 1
        rows[context] += 1
    total = 0.0
    for t, token in enumerate(test):
        context = tuple(test[max(0, t - order + 1) : t])
        total -= math.log((pairs[context, token] + alpha) / (rows[context] + alpha * vocab_size))
    return total / len(test)


def ngrams_that_back_off_at_the_start(train, test, order, vocab_size, alpha):
    """Models of lower order, counted in the full text, predict the first test tokens."""
    train, test = [int(i) for i in train], [int(i) for i in test]

    def chance(context, token):
        n = len(context) + 1
        windows = Counter(tuple(train[i : i + n]) for i in range(len(train) - n + 1))
        row = sum(count for window, count in windows.items() if window[:-1] == context)
        return (windows[(*context, token)] + alpha) / (row + alpha * vocab_size)

    costs = [-math.log(chance(tuple(test[max(0, t - order + 1) : t]), token)) for t, token in enumerate(test)]
    return sum(costs) / len(costs)


def ngrams_with_tensors(train, test, order, vocab_size, alpha):
    train, test = torch.as_tensor(train), torch.as_tensor(test)
    known, asked = train.unfold(0, order, 1), test.unfold(0, order, 1)
    same = (asked[:, None] == known[None]).long()  # (positions, windows, order)
    seen = same.prod(-1).sum(-1).double()
    row = same[..., :-1].prod(-1).sum(-1).double()
    return -((seen + alpha) / (row + alpha * vocab_size)).log().mean().item()


def batch_by_unfold(data, block_size, batch_size, generator):
    windows = data.unfold(0, block_size + 1, 1)
    rows = windows[torch.randint(len(windows), (batch_size,), generator=generator)]
    return rows[:, :-1], rows[:, 1:]


def batch_one_by_one(data, block_size, batch_size, generator):
    x, y = [], []
    for _ in range(batch_size):
        i = torch.randint(len(data) - block_size, (1,), generator=generator).item()
        x.append(data[i : i + block_size].tolist())
        y.append(data[i + 1 : i + block_size + 1].tolist())
    return torch.tensor(x), torch.tensor(y)


def batch_by_uniform_numbers(data, block_size, batch_size, generator):
    starts = (torch.rand(batch_size, generator=generator) * (len(data) - block_size)).long()
    rows = data[starts.unsqueeze(1) + torch.arange(block_size + 1).unsqueeze(0)]
    return rows[:, :-1].contiguous(), rows[:, 1:].contiguous()


def loss_by_rows(logits, targets):
    return torch.stack([nn.functional.cross_entropy(a, b) for a, b in zip(logits, targets, strict=True)]).mean()


class GPTWithMaskBuffer(nn.Module):
    """The mask is created once and sliced, as in nanoGPT."""

    def __init__(self, vocab_size, block_size, d_model, num_heads, num_layers):
        super().__init__()
        self.block_size = block_size
        self.tokens = nn.Embedding(vocab_size, d_model)
        self.register_buffer("mask", torch.ones(block_size, block_size).tril().bool())
        self.blocks = nn.ModuleList([RotaryBlock(d_model, num_heads, 4 * d_model) for _ in range(num_layers)])
        self.norm = nn.LayerNorm(d_model)
        self.unembed = nn.Linear(d_model, vocab_size)

    def forward(self, ids):
        T = ids.shape[1]
        x = self.tokens(ids)
        for block in self.blocks:
            x = block(x, self.mask[:T, :T])
        return self.unembed(self.norm(x))


class GPTWithDropout(GPTWithMaskBuffer):
    """Dropout on the token vectors in training mode."""

    def __init__(self, *sizes):
        super().__init__(*sizes)
        self.drop = nn.Dropout(0.1)

    def forward(self, ids):
        i = torch.arange(ids.size(-1), device=ids.device)
        x = self.drop(self.tokens(ids))
        for block in self.blocks:
            x = block(x, mask=(i[:, None] >= i)[None, None])
        return F.linear(self.norm(x), self.unembed.weight, self.unembed.bias)


class GPTWithAnUnusedTable(GPTWithMaskBuffer):
    """RoPE encodes the positions. There is also an unused position table, and the initialization of GPT-2."""

    def __init__(self, vocab_size, block_size, d_model, num_heads, num_layers):
        super().__init__(vocab_size, block_size, d_model, num_heads, num_layers)
        self.positions = nn.Embedding(block_size, d_model)
        for parameter in self.parameters():
            nn.init.normal_(parameter, std=0.02)


class _OwnBlock(nn.Module):
    """The learner's own block with lesson 9's attribute names and lesson 2's RoPE."""

    def __init__(self, d_model, num_heads):
        super().__init__()
        self.attention, self.feed_forward = MultiHeadAttention(d_model, num_heads), FeedForward(d_model, 4 * d_model)
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)

    def forward(self, x):
        mha, y, positions = self.attention, self.norm1(x), torch.arange(x.shape[1])
        q, k, v = (W(y).unflatten(-1, (mha.num_heads, -1)).transpose(1, 2) for W in (mha.W_q, mha.W_k, mha.W_v))
        q, k = apply_rope(q, positions, 10.0), apply_rope(k, positions, 10.0)
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)
        x = x + mha.W_o(out)
        return x + self.feed_forward(self.norm2(x))


class GPTOfOwnBlocks(GPTWithMaskBuffer):
    def __init__(self, vocab_size, block_size, d_model, num_heads, num_layers):
        super().__init__(vocab_size, block_size, d_model, num_heads, num_layers)
        self.blocks = nn.Sequential(*(_OwnBlock(d_model, num_heads) for _ in range(num_layers)))

    def forward(self, ids):
        return self.unembed(self.norm(self.blocks(self.tokens(ids))))


class GPTThatChecksItsLength(GPTWithMaskBuffer):
    """A text that is longer than the context raises an error, as in nanoGPT."""

    def forward(self, ids):
        if ids.shape[1] > self.block_size:
            raise ValueError(f"at most {self.block_size} tokens, got {ids.shape[1]}")
        return super().forward(ids)


def generate_by_cat(model, ids, max_new_tokens, temperature=1.0, top_k=None, generator=None):
    """As in nanoGPT."""
    for _ in range(max_new_tokens):
        window = ids if ids.size(1) <= model.block_size else ids[:, -model.block_size :]
        logits = model(window)[:, -1, :] / temperature
        if top_k is not None:
            v, _ = torch.topk(logits, min(top_k, logits.size(-1)))
            logits[logits < v[:, [-1]]] = -float("inf")
        ids = torch.cat((ids, torch.multinomial(F.softmax(logits, dim=-1), num_samples=1, generator=generator)), dim=1)
    return ids


def generate_by_gumbel(model, ids, max_new_tokens, temperature=1.0, top_k=None, generator=None):
    """The argmax of logits plus Gumbel noise is a sample from the softmax."""
    for _ in range(max_new_tokens):
        logits = model(ids[:, -model.block_size :])[:, -1] / temperature
        if top_k:
            logits = logits.masked_fill(logits < logits.sort(dim=-1).values[:, -top_k, None], -torch.inf)
        noise = -torch.log(-torch.log(torch.rand(logits.shape, generator=generator).clamp(1e-9, 1 - 1e-7)))
        ids = torch.cat([ids, (logits + noise).argmax(-1, keepdim=True)], dim=1)
    return ids


def generate_by_inverse(model, ids, max_new_tokens, temperature=1.0, top_k=None, generator=None):
    """One uniform number per row, and the id at which the cumulative probability exceeds it."""
    rows = list(ids.split(1))
    for _ in range(max_new_tokens):
        logits = model(torch.cat(rows)[:, -model.block_size :])[:, -1].double() / temperature
        ordered, order = logits.sort(dim=-1, descending=True)
        p = torch.softmax(ordered[:, :top_k], dim=-1)
        u = torch.rand(len(rows), 1, generator=generator, dtype=torch.float64)
        at = (p.cumsum(-1) < u).sum(-1, keepdim=True).clamp_max(p.shape[-1] - 1)
        new = order.gather(-1, at)
        rows = [torch.cat([row, new[i : i + 1]], dim=1) for i, row in enumerate(rows)]
    return torch.cat(rows)


def induction_by_einsum(vocab_size, max_len):
    """The second layer's values read the token at the matching position. Returns a tuple of two tuples."""
    V, M = vocab_size, max_len
    sizes = (V, M, V, V)
    token, position, before, answer = torch.eye(sum(sizes)).split(sizes)  # (n, C) each
    shift = torch.eye(M).roll(1, dims=1)
    shift[-1] = 0
    first = (400 * shift @ position, position, before.T @ token)
    keys = before - torch.ones(V, 1) * position[:1]
    return (first, (400 * token, keys, answer.T @ token))


def induction_avoiding_position_zero(vocab_size, max_len):
    """The second layer's keys lower the scores of position 0, which has no previous token."""
    V, M = vocab_size, max_len
    C = 3 * V + M
    q1, k1, v1 = torch.zeros(M, C), torch.zeros(M, C), torch.zeros(C, C)
    q1[:, V : V + M] = 500 * torch.diag(torch.ones(M - 1), 1)
    k1[:, V : V + M] = torch.eye(M)
    v1[V + M : V + M + V, :V] = torch.eye(V)
    q2, k2, v2 = torch.zeros(V, C), torch.zeros(V, C), torch.zeros(C, C)
    q2[:, :V] = 500 * torch.eye(V)
    k2[:, V + M : V + M + V] = torch.eye(V)
    k2[:, V : V + 1] = -5.0
    v2[2 * V + M :, :V] = 3 * torch.eye(V)
    return [(q1, k1, v1), (q2, k2, v2)]


def induction_with_angles(vocab_size, max_len):
    """The first layer finds the previous token by angles on a circle instead of one-hot positions."""
    V, M = vocab_size, max_len
    C = 3 * V + M
    angle = 2 * torch.pi * torch.arange(M) / (M + 1)
    step = 2 * torch.pi / (M + 1)
    q1, k1, v1 = torch.zeros(2, C), torch.zeros(2, C), torch.zeros(C, C)
    q1[:, V : V + M] = 1e5 * torch.stack([(angle - step).cos(), (angle - step).sin()])
    k1[:, V : V + M] = torch.stack([angle.cos(), angle.sin()])
    v1[V + M : V + M + V, :V] = torch.eye(V)
    q2, k2, v2 = torch.zeros(V, C), torch.zeros(V, C), torch.zeros(C, C)
    q2[:, :V] = 500 * torch.eye(V)
    k2[:, V + M : V + M + V] = torch.eye(V)
    k2[:, V] = -1.5
    v2[2 * V + M :, :V] = torch.eye(V)
    return [[q1, k1, v1], [q2, k2, v2]]


VARIANTS = {
    "ngram_loss": (
        ngrams_by_counter,
        ngrams_with_short_contexts,
        ngrams_that_back_off_at_the_start,
        ngrams_with_tensors,
    ),
    "get_batch": (batch_by_unfold, batch_one_by_one, batch_by_uniform_numbers),
    "next_token_loss": (
        lambda logits, targets: F.cross_entropy(logits.transpose(1, 2), targets),
        lambda logits, targets: -torch.log_softmax(logits, dim=-1).gather(-1, targets.unsqueeze(-1)).mean(),
        loss_by_rows,
    ),
    "GPT": (GPTWithDropout, GPTWithAnUnusedTable, GPTOfOwnBlocks, GPTThatChecksItsLength),
    "generate": (generate_by_cat, generate_by_gumbel, generate_by_inverse),
    "induction_head": (induction_by_einsum, induction_avoiding_position_zero, induction_with_angles),
}
