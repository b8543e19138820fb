"""Other right answers to the exercises of lesson 10, as competent people write them."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from helpers.blocks import Encoder, EncoderBlock, FeedForward, MultiHeadAttention, layer_norm


def shift_by_empty(targets, bos_id):
    out = torch.empty_like(targets)
    out[:, 0] = bos_id
    out[:, 1:] = targets[:, :-1]
    return out


class _Parts(nn.Module):
    """Creates the attributes that the exercise requires."""

    def __init__(self, d_model, num_heads, d_ff, norm_first=False, activation=F.relu):
        super().__init__()
        self.norm_first = norm_first
        self.activation = activation
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff, activation)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.norm3 = nn.LayerNorm(d_model)


class BlockOfIdentities(_Parts):
    """Both orders share their code, because the unused norms are replaced by the identity."""

    def forward(self, y, memory, self_mask=None, memory_mask=None):
        before = [self.norm1, self.norm2, self.norm3] if self.norm_first else [nn.Identity()] * 3
        after = [nn.Identity()] * 3 if self.norm_first else [self.norm1, self.norm2, self.norm3]
        y = after[0](y + self.self_attention(before[0](y), mask=self_mask)[0])
        out, weights = self.cross_attention(before[1](y), key=memory, value=memory, mask=memory_mask)
        y = after[1](y + out)
        return after[2](y + self.feed_forward(before[2](y))), weights


class BlockOfTwoMethods(_Parts):
    def forward(self, y, memory, self_mask=None, memory_mask=None):
        return (self.pre if self.norm_first else self.post)(y, memory, self_mask, memory_mask)

    def post(self, y, memory, self_mask, memory_mask):
        attended, _ = self.self_attention(y, mask=self_mask)
        y = self.norm1(attended + y)
        attended, weights = self.cross_attention(y, memory, mask=memory_mask)
        y = self.norm2(attended + y)
        return self.norm3(self.feed_forward(y) + y), weights

    def pre(self, y, memory, self_mask, memory_mask):
        attended, _ = self.self_attention(self.norm1(y), mask=self_mask)
        y = y + attended
        attended, weights = self.cross_attention(self.norm2(y), memory, mask=memory_mask)
        y = y + attended
        return y + self.feed_forward(self.norm3(y)), weights


class BlockOnAnEncoderBlock(EncoderBlock):
    """The encoder's block with a third sublayer."""

    def __init__(self, d_model, num_heads, d_ff, norm_first=False, activation=F.relu):
        super().__init__(d_model, num_heads, d_ff, norm_first, activation)
        del self.attention
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.norm3 = nn.LayerNorm(d_model)
        self.first = norm_first

    def forward(self, y, memory, self_mask=None, memory_mask=None):
        y = y + self.self_attention(self.norm1(y) if self.first else y, mask=self_mask)[0]
        y = y if self.first else self.norm1(y)
        out, weights = self.cross_attention(self.norm2(y) if self.first else y, memory, mask=memory_mask)
        y = y + out if self.first else self.norm2(y + out)
        out = self.feed_forward(self.norm3(y) if self.first else y)
        return (y + out if self.first else self.norm3(y + out)), weights


class BlockWithFunctionalNorms(_Parts):
    def forward(self, y, memory, self_mask=None, memory_mask=None):
        def norm(x, n):
            return layer_norm(x, n.weight, n.bias, n.eps)

        pre, post = (norm, lambda x, n: x) if self.norm_first else (lambda x, n: x, norm)
        y = post(y + self.self_attention(pre(y, self.norm1), mask=self_mask)[0], self.norm1)
        out, weights = self.cross_attention(pre(y, self.norm2), memory, mask=memory_mask)
        y = post(y + out, self.norm2)
        return post(y + self.feed_forward(pre(y, self.norm3)), self.norm3), weights


class _MyFeedForward(nn.Module):
    def __init__(self, d_model, d_ff, activation):
        super().__init__()
        self.up, self.down, self.act = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model), activation

    def forward(self, x):
        return self.down(self.act(self.up(x)))


class _MyAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.num_heads, self.d_k = num_heads, d_model // num_heads
        self.W_q, self.W_k = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)
        self.W_v, self.W_o = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)

    def forward(self, x, source, mask):
        q, k, v = (
            layer(z).unflatten(-1, (self.num_heads, self.d_k)).transpose(1, 2)
            for layer, z in ((self.W_q, x), (self.W_k, source), (self.W_v, source))
        )
        scores = torch.einsum("bhqd,bhkd->bhqk", q, k) / math.sqrt(self.d_k)
        if mask is not None:
            scores = scores.masked_fill(mask.logical_not(), -math.inf)
        weights = scores.softmax(dim=-1).nan_to_num()  # for fully masked rows
        return self.W_o(torch.einsum("bhqk,bhkd->bqhd", weights, v).flatten(2)), weights


class BlockFromScratch(nn.Module):
    """Uses no modules of lessons 8 and 9."""

    def __init__(self, d_model, num_heads, d_ff, norm_first=False, activation=F.relu):
        super().__init__()
        self.pre = norm_first
        self.self_attention, self.cross_attention = _MyAttention(d_model, num_heads), _MyAttention(d_model, num_heads)
        self.feed_forward = _MyFeedForward(d_model, d_ff, activation)
        self.norm1, self.norm2, self.norm3 = nn.LayerNorm(d_model), nn.LayerNorm(d_model), nn.LayerNorm(d_model)

    def forward(self, y, memory, self_mask=None, memory_mask=None):
        x = self.norm1(y) if self.pre else y
        y = y + self.self_attention(x, x, self_mask)[0]
        y = y if self.pre else self.norm1(y)
        out, weights = self.cross_attention(self.norm2(y) if self.pre else y, memory, memory_mask)
        y = y + out
        y = y if self.pre else self.norm2(y)
        y = y + self.feed_forward(self.norm3(y) if self.pre else y)
        return (y if self.pre else self.norm3(y)), weights


def loss_by_torch(model, src, tgt, pad_id):
    logits = model(src, tgt[:, :-1])
    return F.cross_entropy(logits.transpose(1, 2), tgt[:, 1:], ignore_index=pad_id)


def loss_of_all_but_the_last_row(model, src, tgt, pad_id):
    logits = model(src, tgt)[:, :-1]  # the last position has no target
    return F.cross_entropy(logits.transpose(1, 2), tgt[:, 1:], ignore_index=pad_id)


def loss_by_shift_right(model, src, tgt, pad_id):
    targets = tgt[:, 1:]
    reads = torch.cat([tgt[:, :1], targets[:, :-1]], dim=1)
    log_p = torch.log_softmax(model(src, reads), dim=-1).gather(-1, targets.unsqueeze(-1)).squeeze(-1)
    mask = targets != pad_id
    return -(log_p * mask).sum() / mask.sum()


def _real(ids, pad_id):
    return ids.ne(pad_id)[:, None, None, :]


class _Base(nn.Module):
    """Defines encode, decode and forward. Subclasses replace parts of it."""

    block = BlockOfTwoMethods

    def __init__(self, src_vocab, tgt_vocab, d_model, num_heads, d_ff, num_layers, max_len, pad_id=0):
        super().__init__()
        self.pad = pad_id
        self.encoder = Encoder(src_vocab, d_model, num_heads, d_ff, num_layers, max_len)
        self.tokens, self.positions = nn.Embedding(tgt_vocab, d_model), nn.Embedding(max_len, d_model)
        self.blocks = nn.ModuleList([self.block(d_model, num_heads, d_ff) for _ in range(num_layers)])
        self.unembed = nn.Linear(d_model, tgt_vocab)

    def encode(self, src):
        return self.encoder(src, mask=_real(src, self.pad))

    def target_mask(self, tgt):
        return torch.ones(tgt.shape[1], tgt.shape[1], dtype=torch.bool).tril()

    def decode(self, tgt, memory, src):
        y = self.tokens(tgt) + self.positions.weight[: tgt.shape[1]]
        for block in self.blocks:
            y = block(y, memory, self_mask=self.target_mask(tgt), memory_mask=_real(src, self.pad))[0]
        return self.unembed(y)

    def forward(self, src, tgt):
        return self.decode(tgt, self.encode(src), src)


class WithTargetPadding(_Base):
    """Also masks padding of the target, as the translator does."""

    def target_mask(self, tgt):
        return super().target_mask(tgt) & _real(tgt, self.pad)


class FromScratch(_Base):
    block = BlockFromScratch


class WithABufferedMask(_Base):
    """Causal mask and position indices are created once as buffers and sliced."""

    def __init__(self, src_vocab, tgt_vocab, d_model, num_heads, d_ff, num_layers, max_len, pad_id=0):
        super().__init__(src_vocab, tgt_vocab, d_model, num_heads, d_ff, num_layers, max_len, pad_id)
        self.register_buffer("causal", torch.ones(max_len, max_len).tril().bool(), persistent=False)
        self.register_buffer("indices", torch.arange(max_len), persistent=False)

    def decode(self, tgt, memory, src):
        T = tgt.size(1)
        y = self.tokens(tgt).add(self.positions(self.indices[:T]))
        for block in self.blocks:
            y, _ = block(y, memory, self_mask=self.causal[:T, :T], memory_mask=_real(src, self.pad))
        return self.unembed(y)


class WithPaddingIdx(_Base):
    """Embeddings with padding_idx."""

    def __init__(self, src_vocab, tgt_vocab, d_model, num_heads, d_ff, num_layers, max_len, pad_id=0):
        super().__init__(src_vocab, tgt_vocab, d_model, num_heads, d_ff, num_layers, max_len, pad_id)
        self.encoder.tokens = nn.Embedding(src_vocab, d_model, padding_idx=pad_id)
        self.tokens = nn.Embedding(tgt_vocab, d_model, padding_idx=pad_id)


class WithOwnEncoder(_Base):
    """The encoder is a class of its own with the attribute names of lesson 9. The finished Encoder stays unused."""

    class Reader(nn.Module):
        def __init__(self, vocab, d_model, num_heads, d_ff, num_layers, max_len):
            super().__init__()
            self.tokens, self.positions = nn.Embedding(vocab, d_model), nn.Embedding(max_len, d_model)
            self.blocks = nn.ModuleList(EncoderBlock(d_model, num_heads, d_ff) for _ in range(num_layers))

        def forward(self, ids, mask):
            x = self.tokens.weight[ids] + self.positions.weight[None, : ids.size(1)]
            for block in self.blocks:
                x = block(x, mask=mask)
            return x

    def __init__(self, src_vocab, tgt_vocab, d_model, num_heads, d_ff, num_layers, max_len, pad_id=0):
        super().__init__(src_vocab, tgt_vocab, d_model, num_heads, d_ff, num_layers, max_len, pad_id)
        self.encoder = self.Reader(src_vocab, d_model, num_heads, d_ff, num_layers, max_len)
        self.norm, self.drop = nn.LayerNorm(d_model), nn.Dropout(0.0)


def greedy_tensor(step, bos_id, eos_id, max_len):
    prefix = torch.full((1, 1), bos_id)
    for _ in range(max_len):
        best = torch.argmax(step(prefix), dim=-1, keepdim=True)
        prefix = torch.cat([prefix, best], dim=1)
        if best.item() == eos_id:
            break
    return prefix[0].tolist()


def greedy_recursive(step, bos_id, eos_id, max_len):
    def go(ids):
        if len(ids) > max_len or ids[1:].count(eos_id):
            return ids
        return go([*ids, step(torch.tensor([ids]))[0].max(dim=0).indices.item()])

    return go([bos_id])


@torch.no_grad()
def greedy_softmax(step, bos_id, eos_id, max_len):
    ids = torch.LongTensor([[bos_id]])
    while ids.shape[1] <= max_len:
        p = torch.softmax(step(ids), dim=-1)
        ids = torch.cat((ids, p.topk(1).indices), dim=1)
        if ids[0, -1] == eos_id:
            break
    return [int(i) for i in ids[0]]


def beam_by_tensors(step, bos_id, eos_id, max_len, beam_size, length_penalty=0.0):
    beam, total, done = torch.tensor([[bos_id]]), torch.zeros(1), []
    for n in range(1, max_len + 1):
        rows = torch.cat([torch.log_softmax(step(row[None]), dim=-1) for row in beam])  # (beams, V)
        grown = (total[:, None] + rows).flatten()
        total, best = grown.topk(min(beam_size, len(grown)))
        beam = torch.cat([beam[best // rows.shape[1]], (best % rows.shape[1])[:, None]], dim=1)
        over = beam[:, -1] == eos_id
        done += [(float(s) / n**length_penalty, row.tolist()) for s, row in zip(total[over], beam[over], strict=True)]
        beam, total = beam[~over], total[~over]
        if not len(beam):
            break
    if not done:
        done = [(float(s) / n**length_penalty, row.tolist()) for s, row in zip(total, beam, strict=True)]
    score, ids = max(done)
    return ids, score


def beam_filled_up(step, bos_id, eos_id, max_len, beam_size, length_penalty=0.0):
    """The next best unfinished sentences replace finished ones in the beam."""
    beam, finished = [([bos_id], 0.0)], []
    for _ in range(max_len):
        grown = [
            ([*ids, word], total + more)
            for ids, total in beam
            for word, more in enumerate(step(torch.tensor([ids])).log_softmax(-1)[0].tolist())
        ]
        grown.sort(key=lambda item: -item[1])
        rank = [item for item in grown if item[0][-1] == eos_id]
        finished += [item for item in rank if sum(other[1] > item[1] for other in grown) < beam_size]
        beam = [item for item in grown if item[0][-1] != eos_id][:beam_size]
    length = lambda item: (len(item[0]) - 1) ** length_penalty  # noqa: E731
    best = max(finished or beam, key=lambda item: item[1] / length(item))
    return best[0], best[1] / length(best)


def beam_with_early_end(step, bos_id, eos_id, max_len, beam_size, length_penalty=0.0):
    beam, finished = [([bos_id], 0.0)], []
    norm = lambda item: item[1] / math.pow(len(item[0]) - 1, length_penalty)  # noqa: E731
    while beam and len(beam[0][0]) <= max_len:
        pool = []
        for ids, total in beam:
            p = step(torch.LongTensor([ids])).softmax(-1).squeeze(0)
            pool.extend((ids + [w], total + math.log(p[w])) for w in range(len(p)))
        pool.sort(key=norm, reverse=True)
        beam = []
        for item in pool[:beam_size]:
            (finished if item[0][-1] == eos_id else beam).append(item)
    best = max(finished if finished else beam, key=norm)
    return best[0], float(norm(best))


def filter_by_rank(logits, top_k=None, top_p=None):
    rank = logits.argsort(dim=-1, descending=True).argsort(dim=-1)  # (..., V), 0 for the largest
    if top_k is not None:
        logits = torch.where(rank < top_k, logits, -torch.inf)
    if top_p is not None:
        p = torch.softmax(logits, dim=-1)
        larger = p.unsqueeze(-2) > p.unsqueeze(-1)  # (..., V, V)
        above = (p.unsqueeze(-2) * larger).sum(dim=-1)
        logits = torch.where(above < top_p, logits, -torch.inf)
    return logits


def filter_as_published(logits, top_k=None, top_p=None):
    """As in the transformers library: the mask is shifted by one, so that the first token above top_p stays."""
    out = logits.clone()
    if top_k is not None:
        out[out < torch.topk(out, top_k)[0][..., -1, None]] = float("-inf")
    if top_p is not None:
        ordered, order = torch.sort(out, descending=True)
        remove = F.softmax(ordered, dim=-1).cumsum(dim=-1) > top_p
        remove[..., 1:] = remove[..., :-1].clone()
        remove[..., 0] = False
        out[remove.scatter(-1, order, remove)] = float("-inf")
    return out


def filter_ascending(logits, top_k=None, top_p=None):
    if top_k is not None:
        few = logits.topk(top_k, dim=-1)
        logits = torch.full_like(logits, -math.inf).scatter(-1, few.indices, few.values)
    if top_p is not None:
        ordered, order = logits.sort(dim=-1)
        tail = torch.softmax(ordered, dim=-1).cumsum(dim=-1)  # cumulative probability from the least likely token on
        cut = torch.empty_like(tail, dtype=torch.bool).scatter_(-1, order, tail <= 1 - top_p)
        logits = torch.where(cut, torch.full_like(logits, -math.inf), logits)
    return logits


def _causal(scores, new):
    T = scores.shape[-1]
    positions = torch.arange(T)
    return scores.masked_fill(positions > positions[T - new :, None], -math.inf)


def cache_in_one_tensor(q, k, v, cache):
    new = torch.stack([k, v])  # (2, B, H, T_new, d)
    cache = new if cache is None else torch.cat([cache, new], dim=3)
    K, V = cache
    T = K.shape[2]
    mask = torch.ones(T, T, dtype=torch.bool).tril()[T - q.shape[2] :]
    return F.scaled_dot_product_attention(q, K, V, attn_mask=mask), cache


def cache_of_pieces(q, k, v, cache):
    """The cache is a list of all keys and values so far. Each call returns a new list."""
    cache = [*(cache or []), (k, v)]
    K, V = (torch.cat(pieces, dim=-2) for pieces in zip(*cache, strict=True))
    weights = torch.softmax(_causal(torch.einsum("bhqd,bhkd->bhqk", q, K) * q.shape[-1] ** -0.5, q.shape[-2]), dim=-1)
    return torch.einsum("bhqk,bhkd->bhqd", weights, V), cache


class _Cache:
    def __init__(self, k, v):
        self.k, self.v = k, v

    def grown(self, k, v):
        return _Cache(torch.cat((self.k, k), 2), torch.cat((self.v, v), 2))


def cache_as_object(q, k, v, cache):
    cache = _Cache(k, v) if cache is None else cache.grown(k, v)
    old = cache.k.shape[2] - q.shape[2]
    bias = torch.zeros(q.shape[2], cache.k.shape[2], dtype=q.dtype)
    bias[:, old:] += torch.full((q.shape[2],) * 2, -math.inf, dtype=q.dtype).triu(1)
    return torch.softmax(q @ cache.k.mT / q.shape[3] ** 0.5 + bias, dim=3) @ cache.v, cache


VARIANTS = {
    "shift_right": (
        shift_by_empty,
        lambda targets, bos_id: F.pad(targets, (1, 0), value=bos_id)[:, :-1],
        lambda targets, bos_id: torch.tensor([[bos_id, *row[:-1]] for row in targets.tolist()]),
    ),
    "DecoderBlock": (BlockOfIdentities, BlockOfTwoMethods, BlockOnAnEncoderBlock, BlockWithFunctionalNorms),
    "fixed_loss": (loss_by_torch, loss_of_all_but_the_last_row, loss_by_shift_right),
    "Transformer": (WithTargetPadding, FromScratch, WithABufferedMask, WithPaddingIdx, WithOwnEncoder),
    "greedy_decode": (greedy_tensor, greedy_recursive, greedy_softmax),
    "beam_search": (beam_by_tensors, beam_with_early_end, beam_filled_up),
    "filter_logits": (filter_by_rank, filter_as_published, filter_ascending),
    "cached_attention": (cache_in_one_tensor, cache_of_pieces, cache_as_object),
}
