"""Other accepted variants of lesson 12's exercises: what competent people write instead of the solution."""

import math
from collections import Counter, defaultdict

import torch
import torch.nn.functional as F
from torch import nn

from helpers.blocks import Encoder, EncoderBlock, FeedForward, MultiHeadAttention, causal_mask, sinusoidal_positions
from helpers.lessons.language_model.rotary import RotaryAttention

# ---------------------------------------------------------------- bits_per_token


def bits_by_log2_of_e(loss):
    return loss * math.log2(math.e)


def bits_by_base(loss):
    return math.log(math.exp(loss), 2)


def bits_by_perplexity(loss):
    return math.log2(math.exp(loss))


def bits_by_torch(loss):
    return (torch.tensor(loss, dtype=torch.float64) / torch.log(torch.tensor(2.0, dtype=torch.float64))).item()


# ---------------------------------------------------------------- ngram_loss


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


def ngrams_by_tables(train, test, order, vocab_size, alpha):
    rows = defaultdict(lambda: [0] * vocab_size)
    train, test = list(map(int, train)), list(map(int, test))
    for t in range(order - 1, len(train)):
        rows[tuple(train[t - order + 1 : t])][train[t]] += 1
    logs = []
    for t in range(order - 1, len(test)):
        row = rows[tuple(test[t - order + 1 : t])]
        logs.append(math.log((row[test[t]] + alpha) / sum(n + alpha for n in row)))
    return -sum(logs) / len(logs)


def ngrams_with_short_contexts(train, test, order, vocab_size, alpha):
    """The first few tokens of both texts have shorter contexts."""
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
    """The first few test tokens are predicted by models of lower order, each counted in the whole text."""
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
    same = (asked[:, None] == known[None]).long()  # (places, windows, order)
    seen = same.prod(-1).sum(-1).double()
    row = same[..., :-1].prod(-1).sum(-1).double()
    return -((seen + alpha) / (row + alpha * vocab_size)).log().mean().item()


# ---------------------------------------------------------------- get_batch


def batch_by_stack(data, block_size, batch_size, generator):
    starts = torch.randint(0, len(data) - block_size, (batch_size,), generator=generator)
    x = torch.stack([data[i : i + block_size] for i in starts])
    y = torch.stack([data[i + 1 : i + 1 + block_size] for i in starts])
    return x, y


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


# ---------------------------------------------------------------- next_token_loss


def loss_by_transpose(logits, targets):
    return F.cross_entropy(logits.transpose(1, 2), targets)


def loss_by_view(logits, targets):
    B, T, V = logits.shape
    return F.cross_entropy(logits.reshape(B * T, V), targets.reshape(-1))


def loss_by_two_views(logits, targets):
    return F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))


def loss_by_gather(logits, targets):
    return -torch.log_softmax(logits, dim=-1).gather(-1, targets.unsqueeze(-1)).mean()


def loss_by_rows(logits, targets):
    return torch.stack([nn.functional.cross_entropy(a, b) for a, b in zip(logits, targets, strict=True)]).mean()


# ---------------------------------------------------------------- GPT


class GPTOnTheEncoder(nn.Module):
    def __init__(self, vocab_size, block_size, d_model, num_heads, num_layers):
        super().__init__()
        self.block_size = block_size
        self.body = Encoder(vocab_size, d_model, num_heads, 4 * d_model, num_layers, block_size, norm_first=True)
        self.norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, vocab_size)

    def forward(self, ids):
        return self.head(self.norm(self.body(ids, causal_mask(ids.shape[1]))))


class GPTTied(nn.Module):
    """The embedding serves as the last layer too, as in GPT-2."""

    def __init__(self, vocab_size, block_size, d_model, num_heads, num_layers):
        super().__init__()
        self.block_size = block_size
        self.wte, self.wpe = nn.Embedding(vocab_size, d_model), nn.Embedding(block_size, d_model)
        self.h = nn.ModuleList(
            [
                EncoderBlock(d_model, num_heads, 4 * d_model, norm_first=True, activation=F.gelu)
                for _ in range(num_layers)
            ]
        )
        self.ln_f = nn.LayerNorm(d_model)
        self.lm_head = nn.Linear(d_model, vocab_size, bias=False)
        self.lm_head.weight = self.wte.weight

    def forward(self, ids):
        B, T = ids.shape
        mask = torch.tril(torch.ones(T, T, dtype=torch.bool, device=ids.device))
        x = self.wte(ids) + self.wpe(torch.arange(T, device=ids.device))[None]
        for block in self.h:
            x = block(x, mask)
        return self.lm_head(self.ln_f(x))


class GPTRotary(nn.Module):
    def __init__(self, vocab_size, block_size, d_model, num_heads, num_layers):
        super().__init__()
        self.block_size = block_size
        self.tokens = nn.Embedding(vocab_size, d_model)
        self.attentions = nn.ModuleList(RotaryAttention(d_model, num_heads) for _ in range(num_layers))
        self.networks = nn.ModuleList(FeedForward(d_model, 4 * d_model, F.gelu) for _ in range(num_layers))
        self.norms = nn.ModuleList(nn.LayerNorm(d_model) for _ in range(2 * num_layers + 1))
        self.unembed = nn.Linear(d_model, vocab_size, bias=False)

    def forward(self, ids):
        x, mask = self.tokens(ids), causal_mask(ids.shape[1])
        for i, (attention, network) in enumerate(zip(self.attentions, self.networks, strict=True)):
            x = x + attention(self.norms[2 * i](x), mask=mask)[0]
            x = x + network(self.norms[2 * i + 1](x))
        return self.unembed(self.norms[-1](x))


class GPTWithSinusoids(nn.Module):
    def __init__(self, vocab_size, block_size, d_model, num_heads, num_layers):
        super().__init__()
        self.block_size = block_size
        self.tokens = nn.Embedding(vocab_size, d_model)
        self.register_buffer("table", sinusoidal_positions(block_size, d_model))
        blocks = [EncoderBlock(d_model, num_heads, 4 * d_model, True) for _ in range(num_layers)]
        self.blocks = nn.Sequential(*blocks)
        self.norm, self.out = nn.LayerNorm(d_model), nn.Linear(d_model, vocab_size)

    def forward(self, ids):
        x = self.tokens(ids) + self.table[: ids.size(1)]
        mask = causal_mask(ids.size(1))[None, None]
        for block in self.blocks:
            x = block(x, mask=mask)
        return self.out(self.norm(x))


class GPTWithMaskBuffer(nn.Module):
    """The mask is made once and cut, as in nanoGPT."""

    def __init__(self, vocab_size, block_size, d_model, num_heads, num_layers, positions="learned", activation=F.relu):
        super().__init__()
        self.block_size = block_size
        self.tokens = nn.Embedding(vocab_size, d_model)
        self.positions = nn.Parameter(torch.randn(block_size, d_model) * 0.02)
        self.register_buffer("mask", torch.ones(block_size, block_size).tril().bool())
        self.blocks = nn.ModuleList(
            EncoderBlock(d_model, num_heads, 4 * d_model, norm_first=True, activation=activation)
            for _ in range(num_layers)
        )
        self.norm = nn.LayerNorm(d_model)
        self.unembed = nn.Linear(d_model, vocab_size)

    def forward(self, ids):
        T = ids.shape[1]
        x = self.tokens(ids) + self.positions[:T]
        for block in self.blocks:
            x = block(x, self.mask[:T, :T])
        return self.unembed(self.norm(x))


class _OwnBlock(nn.Module):
    """One matrix for queries, keys and values, no biases, torch's fused attention."""

    def __init__(self, d_model, num_heads):
        super().__init__()
        self.heads = num_heads
        self.ln1, self.ln2 = nn.LayerNorm(d_model, bias=False), nn.LayerNorm(d_model, bias=False)
        self.qkv = nn.Linear(d_model, 3 * d_model, bias=False)
        self.proj = nn.Linear(d_model, d_model, bias=False)
        self.mlp = nn.Sequential(
            nn.Linear(d_model, 4 * d_model, bias=False), nn.GELU(), nn.Linear(4 * d_model, d_model, bias=False)
        )

    def forward(self, x):
        B, T, D = x.shape
        q, k, v = (y.view(B, T, self.heads, -1).transpose(1, 2) for y in self.qkv(self.ln1(x)).chunk(3, dim=-1))
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(out.transpose(1, 2).reshape(B, T, D))
        return x + self.mlp(self.ln2(x))


class GPTLikeNano(nn.Module):
    def __init__(self, vocab_size, block_size, d_model, num_heads, num_layers):
        super().__init__()
        self.block_size = block_size
        self.wte, self.wpe = nn.Embedding(vocab_size, d_model), nn.Embedding(block_size, d_model)
        self.h = nn.Sequential(*(_OwnBlock(d_model, num_heads) for _ in range(num_layers)))
        self.ln_f = nn.LayerNorm(d_model, bias=False)
        self.lm_head = nn.Linear(d_model, vocab_size, bias=False)

    def forward(self, ids):
        x = self.wte(ids) + self.wpe.weight[: ids.shape[1]]
        return self.lm_head(self.ln_f(self.h(x)))


class GPTOfParts(nn.Module):
    """Attention and feed-forward networks of lessons 8 and 9, without the block."""

    def __init__(self, vocab_size, block_size, d_model, num_heads, num_layers):
        super().__init__()
        self.block_size, self.num_layers = block_size, num_layers
        self.tokens = nn.Embedding(vocab_size, d_model)
        self.positions = nn.Embedding(block_size, d_model)
        for i in range(num_layers):
            setattr(self, f"attention{i}", MultiHeadAttention(d_model, num_heads))
            setattr(self, f"network{i}", FeedForward(d_model, 4 * d_model))
            setattr(self, f"before{i}", nn.LayerNorm(d_model))
            setattr(self, f"between{i}", nn.LayerNorm(d_model))
        self.last = nn.LayerNorm(d_model)
        self.logits = nn.Linear(d_model, vocab_size)

    def forward(self, ids):
        T = ids.shape[-1]
        x = self.tokens(ids) + self.positions(torch.arange(T))
        for i in range(self.num_layers):
            out, _ = getattr(self, f"attention{i}")(getattr(self, f"before{i}")(x), mask=causal_mask(T))
            x = x + out
            x = x + getattr(self, f"network{i}")(getattr(self, f"between{i}")(x))
        return self.logits(self.last(x))


class GPTWithFunctionalHead(nn.Module):
    """Logits against a table of its own, and row by row masks of the same kind for every head."""

    def __init__(self, vocab_size, block_size, d_model, num_heads, num_layers):
        super().__init__()
        self.block_size, self.num_heads = block_size, num_heads
        self.tokens, self.position_table = nn.Embedding(vocab_size, d_model), nn.Embedding(block_size, d_model)
        self.blocks = nn.ModuleList()
        for _ in range(num_layers):
            self.blocks.append(EncoderBlock(d_model, num_heads, 4 * d_model, norm_first=True))
        self.norm = nn.LayerNorm(d_model)
        self.table = nn.Parameter(torch.randn(vocab_size, d_model))

    def forward(self, ids):
        B, T = ids.shape
        i = torch.arange(T)
        mask = (i[:, None] >= i).expand(B, self.num_heads, T, T)
        x = self.tokens(ids) + self.position_table(i)
        for block in self.blocks:
            x = block(x, mask)
        return F.linear(self.norm(x), self.table)


class GPTWithAnUnusedTable(nn.Module):
    """Rotations tell the places; a table of positions stands there and nobody reads it."""

    def __init__(self, vocab_size, block_size, d_model, num_heads, num_layers):
        super().__init__()
        self.block_size = block_size
        self.tokens, self.positions = nn.Embedding(vocab_size, d_model), nn.Embedding(block_size, d_model)
        self.blocks = nn.ModuleList(EncoderBlock(d_model, num_heads, 4 * d_model, True) for _ in range(num_layers))
        for block in self.blocks:
            block.attention = RotaryAttention(d_model, num_heads)
        self.norm, self.unembed = nn.LayerNorm(d_model), nn.Linear(d_model, vocab_size)

    def forward(self, ids):
        x, mask = self.tokens(ids), causal_mask(ids.shape[1])
        for block in self.blocks:
            x = block(x, mask)
        return self.unembed(self.norm(x))


class _OwnRotations(RotaryAttention):
    """A class of rotations under another name."""


class GPTWithATableAndRotations(GPTWithAnUnusedTable):
    """Places are added and turned by."""

    def __init__(self, vocab_size, block_size, d_model, num_heads, num_layers):
        super().__init__(vocab_size, block_size, d_model, num_heads, num_layers)
        for block in self.blocks:
            block.attention = _OwnRotations(d_model, num_heads)

    def forward(self, ids):
        T = ids.shape[1]
        x, mask = self.tokens(ids) + self.positions.weight[:T], causal_mask(T)
        for block in self.blocks:
            x = block(x, mask)
        return self.unembed(self.norm(x))


class _FadingAttention(nn.Module):
    """Scores fall with distance, in each head by a slope of its own: learned, or given as in ALiBi."""

    def __init__(self, d_model, num_heads, learned):
        super().__init__()
        self.num_heads = num_heads
        slopes = 2.0 ** (-8 * torch.arange(1, num_heads + 1) / num_heads)
        self.slopes = nn.Parameter(slopes) if learned else slopes
        self.W_q, self.W_k, self.W_v, self.W_o = (nn.Linear(d_model, d_model) for _ in range(4))

    def forward(self, x, mask):
        q, k, v = (W(x).unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for W in (self.W_q, self.W_k, self.W_v))
        place = torch.arange(x.shape[1])
        scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5 + self.slopes[:, None, None] * (place - place[:, None])
        out = scores.masked_fill(~mask, -torch.inf).softmax(-1) @ v
        return self.W_o(out.transpose(1, 2).flatten(2)), None


class GPTThatFades(GPTWithAnUnusedTable):
    """No table and no rotations: far tokens are heard less."""

    def __init__(self, vocab_size, block_size, d_model, num_heads, num_layers, learned=True):
        super().__init__(vocab_size, block_size, d_model, num_heads, num_layers)
        for block in self.blocks:
            block.attention = _FadingAttention(d_model, num_heads, learned)


class GPTWithALiBi(GPTThatFades):
    """Slopes that are not learned (Press et al., 2022)."""

    def __init__(self, vocab_size, block_size, d_model, num_heads, num_layers):
        super().__init__(vocab_size, block_size, d_model, num_heads, num_layers, learned=False)


class GPTWithDropout(GPTWithAnUnusedTable):
    """A dropout in training mode."""

    def __init__(self, vocab_size, block_size, d_model, num_heads, num_layers):
        super().__init__(vocab_size, block_size, d_model, num_heads, num_layers)
        self.drop = nn.Dropout(0.1)

    def forward(self, ids):
        x, mask = self.drop(self.tokens(ids)), causal_mask(ids.shape[1])
        for block in self.blocks:
            x = self.drop(block(x, mask))
        return self.unembed(self.norm(x))


# ---------------------------------------------------------------- generate


def _of(*shape):
    return nn.Parameter(torch.randn(shape) * 0.05)


class GPTOfStacks(nn.Module):
    """All layers' matrices of a kind in one parameter, and bare tables for words and logits."""

    def __init__(self, vocab_size, block_size, d_model, num_heads, num_layers):
        super().__init__()
        D, L, N = d_model, num_layers, 2 * num_layers + 1
        self.block_size, self.heads, self.layers = block_size, num_heads, num_layers
        self.gains, self.shifts = nn.Parameter(torch.ones(N, D)), nn.Parameter(torch.zeros(N, D))
        self.qkv, self.o, self.up, self.down = _of(L, 3 * D, D), _of(L, D, D), _of(L, 4 * D, D), _of(L, D, 4 * D)
        self.E, self.P, self.U = self.tables(vocab_size, D), _of(block_size, D), _of(vocab_size, D)

    def tables(self, V, D):
        return _of(V, D)

    def words(self, ids):
        return F.embedding(ids, self.E)

    def norm(self, x, i):
        return F.layer_norm(x, x.shape[-1:], self.gains[i], self.shifts[i])

    def forward(self, ids):
        x = self.words(ids) + self.P[: ids.shape[1]]
        for i in range(self.layers):
            q, k, v = (self.norm(x, 2 * i) @ self.qkv[i].T).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
            found = F.scaled_dot_product_attention(q, k, v, is_causal=True)  # (B, H, T, D / H)
            x = x + found.transpose(1, 2).flatten(-2) @ self.o[i].T
            x = x + F.gelu(self.norm(x, 2 * i + 1) @ self.up[i].T) @ self.down[i].T
        return self.norm(x, 2 * self.layers) @ self.U.T


class GPTOfStacksAndAnEmbedding(GPTOfStacks):
    def tables(self, V, D):
        return nn.Embedding(V, D)

    def words(self, ids):
        return self.E(ids)


class GPTOfStacksAndOneHotVectors(GPTOfStacks):
    def tables(self, V, D):
        return nn.Linear(V, D, bias=False)

    def words(self, ids):
        return self.E(F.one_hot(ids, self.E.in_features).to(self.U.dtype))


class GPTOfStacksAndOneTable(GPTOfStacks):
    """Words come in and go out by one bare table."""

    def __init__(self, *sizes):
        super().__init__(*sizes)
        self.U = self.E


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


def generate_into_a_table(model, ids, max_new_tokens, temperature=1.0, top_k=None, generator=None):
    B, T = ids.shape
    out = torch.zeros(B, T + max_new_tokens, dtype=ids.dtype)
    out[:, :T] = ids
    for t in range(T, T + max_new_tokens):
        logits = model(out[:, max(0, t - model.block_size) : t])[:, -1]
        top = logits.topk(top_k or logits.shape[-1], dim=-1)
        p = torch.zeros_like(logits).scatter(-1, top.indices, torch.softmax(top.values / temperature, dim=-1))
        out[:, t] = torch.multinomial(p, 1, generator=generator)[:, 0]
    return out


def generate_by_gumbel(model, ids, max_new_tokens, temperature=1.0, top_k=None, generator=None):
    """The largest of logits plus Gumbel noise is a draw from the softmax."""
    for _ in range(max_new_tokens):
        logits = model(ids[:, -model.block_size :])[:, -1] / temperature
        if top_k:
            logits = logits.masked_fill(logits < logits.sort(dim=-1).values[:, -top_k, None], -torch.inf)
        noise = -torch.log(-torch.log(torch.rand(logits.shape, generator=generator).clamp(1e-9, 1 - 1e-7)))
        ids = torch.cat([ids, (logits + noise).argmax(-1, keepdim=True)], dim=1)
    return ids


def generate_by_inverse(model, ids, max_new_tokens, temperature=1.0, top_k=None, generator=None):
    """One uniform number for each row, and the place where the mass passes it."""
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


# ---------------------------------------------------------------- induction_head


def induction_by_big_numbers(vocab_size, max_len):
    """Scores large enough without a root; place 0 gets a key that nobody wants."""
    V, M = vocab_size, max_len
    C = 3 * V + M
    q1, k1, v1 = torch.zeros(M, C), torch.zeros(M, C), torch.zeros(C, C)
    for t in range(1, M):
        q1[t - 1, V + t] = 1000.0
    k1[:, V : V + M] = torch.eye(M)
    v1[V + M : V + M + V, :V] = torch.eye(V)
    q2, k2, v2 = torch.zeros(V + 1, C), torch.zeros(V + 1, C), torch.zeros(C, C)
    q2[:V, :V] = 1000 * torch.eye(V)
    q2[V, :V] = 1000.0
    k2[:V, V + M : V + M + V] = torch.eye(V)
    k2[V, V] = -2.0
    v2[-V:, :V] = torch.eye(V)
    return [(q1, k1, v1), (q2, k2, v2)]


def induction_by_einsum(vocab_size, max_len):
    """Values that read the token from the stream at the matching place; two tuples in a tuple."""
    V, M = vocab_size, max_len
    sizes = (V, M, V, V)
    token, position, before, answer = torch.eye(sum(sizes)).split(sizes)  # (n, C) each
    shift = torch.eye(M).roll(1, dims=1)
    shift[-1] = 0
    first = (400 * shift @ position, position, before.T @ token)
    keys = before - torch.ones(V, 1) * position[:1]
    return (first, (400 * token, keys, answer.T @ token))


def induction_without_place_zero_written(vocab_size, max_len):
    """The first layer takes away at place 0 what its head wrote there: its value reads the place too."""
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
    """The token before by angles on a circle instead of one-hot places."""
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
    "bits_per_token": (bits_by_log2_of_e, bits_by_base, bits_by_perplexity, bits_by_torch),
    "ngram_loss": (
        ngrams_by_counter,
        ngrams_by_tables,
        ngrams_with_short_contexts,
        ngrams_that_back_off_at_the_start,
        ngrams_with_tensors,
    ),
    "get_batch": (batch_by_stack, batch_by_unfold, batch_one_by_one, batch_by_uniform_numbers),
    "next_token_loss": (loss_by_transpose, loss_by_view, loss_by_two_views, loss_by_gather, loss_by_rows),
    "GPT": (
        GPTOnTheEncoder,
        GPTTied,
        GPTRotary,
        GPTWithSinusoids,
        GPTWithMaskBuffer,
        GPTLikeNano,
        GPTOfParts,
        GPTWithFunctionalHead,
        GPTWithAnUnusedTable,
        GPTWithATableAndRotations,
        GPTThatFades,
        GPTWithALiBi,
        GPTWithDropout,
        GPTOfStacks,
        GPTOfStacksAndAnEmbedding,
        GPTOfStacksAndOneHotVectors,
        GPTOfStacksAndOneTable,
    ),
    "generate": (generate_by_cat, generate_into_a_table, generate_by_gumbel, generate_by_inverse),
    "induction_head": (
        induction_by_big_numbers,
        induction_by_einsum,
        induction_without_place_zero_written,
        induction_with_angles,
    ),
}
