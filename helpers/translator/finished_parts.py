"""The translator's own functions for the names that a learner's answer can replace, with library calls where possible.

Each takes and returns the same as the exercise of its name.
"""

import torch
import torch.nn.functional as F


# Lesson 1
def encode(sentence, vocab):
    return torch.tensor([vocab[token] for token in sentence.translate(str.maketrans("", "", ",.!?;:")).split()])


def embed(ids, table):
    return F.embedding(ids, table)


def one_hot(ids, vocab_size):
    return F.one_hot(ids, vocab_size).float()


def cosine_similarity(a, b):
    return F.cosine_similarity(a[:, None], b[None], dim=-1, eps=1e-30)


def fixed_neighbors(table, k):
    return cosine_similarity(table, table).fill_diagonal_(-torch.inf).topk(k).indices


def negative_sampling_gradients(center, context, negatives):
    others = torch.cat([context[None], negatives])  # (1 + K, D)
    truth = F.one_hot(torch.tensor(0, device=center.device), len(others))  # (1 + K,)
    wrong = F.linear(others, center).sigmoid() - truth  # how far each pair's probability is from the truth
    moves = torch.outer(wrong, center)  # (1 + K, D)
    return F.linear(wrong, others.T), moves[0], moves[1:]


# Lesson 2
def sinusoidal_positions(length, d_model):
    if d_model % 2:
        raise ValueError(f"d_model must be even, got {d_model}")
    frequencies = torch.logspace(0, -4 * (d_model - 2) / d_model, d_model // 2, dtype=torch.float64)  # (D/2,)
    angles = torch.outer(torch.arange(length, dtype=torch.float64), frequencies)  # (length, D/2)
    pairs = torch.polar(torch.ones_like(angles), angles)  # (length, D/2), cosine + i sine
    return torch.view_as_real(pairs).flip(-1).flatten(-2).float()  # (length, D)


def add_positions(x, table):
    if x.shape[-2] > len(table):
        raise ValueError(f"{x.shape[-2]} tokens need {x.shape[-2]} positions, and the table has {len(table)}")
    return torch.add(x, table.narrow(0, 0, x.shape[-2]))


# Lesson 3
def project(x, W):
    return F.linear(x, W)


def attention_scores(Q, K):
    return torch.einsum("...qd,...kd->...qk", Q, K)


# Lesson 4
def scaled_scores(Q, K):
    return torch.einsum("...qd,...kd->...qk", Q, K).mul(Q.shape[-1] ** -0.5)


def softmax_jacobian(p):
    return torch.diag_embed(p) - torch.einsum("...i,...j->...ij", p, p)


def weights_jacobian(q, K, divisor):
    p = F.softmax(F.linear(q, K) / divisor, dim=-1)  # (T,)
    return p.unsqueeze(-1).mul(K - F.linear(p, K.T)).div(divisor)  # every key minus the average key


# Lesson 5
def causal_mask(T_q, T_k=None):
    T_k = T_q if T_k is None else T_k
    return torch.ones(T_q, T_k, dtype=torch.bool).tril(T_k - T_q)


def padding_mask(lengths, T):
    return torch.lt(torch.arange(T, device=lengths.device), lengths.unsqueeze(-1))


def combine_masks(causal, padding):
    return torch.logical_and(causal, padding[:, None, None, :])


def mask_scores(scores, mask):
    return scores.masked_fill(mask.logical_not(), -torch.inf)


def masked_softmax(scores, mask):
    mask = mask.expand_as(scores)
    return torch.masked.softmax(scores, -1, mask=mask).masked_fill(mask.logical_not(), 0.0)


def leaks_future(f, x):
    before = f(x)
    draw = torch.Generator().manual_seed(0)
    step = torch.randn(x.shape, generator=draw, dtype=x.dtype).to(x.device) * x.std().clamp_min(1e-3)
    for t in range(1, x.shape[1]):
        changed = torch.cat([x[:, :t], (x + step)[:, t:]], dim=1)
        if not torch.allclose(f(changed)[:, :t], before[:, :t], rtol=0, atol=1e-5):
            return True
    return False


# Lesson 6
def softmax(x, dim=-1):
    return F.softmax(x, dim=dim)


def log_softmax(x, dim=-1):
    return F.log_softmax(x, dim=dim)


def cross_entropy(logits, targets, ignore_index=-100):
    return F.cross_entropy(logits.flatten(0, -2), targets.flatten(), ignore_index=ignore_index)


def softmax_with_temperature(x, temperature):
    if not temperature > 0:
        raise ValueError(f"temperature must be above 0, got {temperature}")
    return F.softmax(x / temperature, dim=-1)


# Lesson 7
def weighted_values(weights, V):
    return torch.einsum("...qk,...kd->...qd", weights, V)


def attention(Q, K, V, mask=None):
    """Weights from F.scaled_dot_product_attention, which returns them if the values are the unit vectors."""
    units = torch.eye(K.shape[-2], dtype=Q.dtype, device=Q.device).expand(*K.shape[:-1], K.shape[-2])
    if mask is not None:
        mask = mask.expand(*Q.shape[:-1], K.shape[-2])
    weights = F.scaled_dot_product_attention(Q, K, units, attn_mask=mask)
    if mask is not None:
        weights = weights.masked_fill(mask.logical_not(), 0.0)
    return weighted_values(weights, V), weights


def context_shift(before, after):
    return 1 - F.cosine_similarity(before, after, dim=-1, eps=1e-30)


# Lesson 8
def split_heads(x, num_heads):
    if x.shape[-1] % num_heads:
        raise ValueError(f"{num_heads} heads do not divide a width of {x.shape[-1]}")
    return x.unflatten(-1, (num_heads, -1)).movedim(-2, 1)


def merge_heads(x):
    return x.movedim(1, -2).flatten(-2)


def head_importance(mha, x):
    with torch.no_grad():
        complete = mha(x)[0]
        saved, width, sizes = mha.W_o.weight.detach().clone(), x.shape[-1] // mha.num_heads, []
        try:
            for head in range(mha.num_heads):
                mha.W_o.weight[:, head * width : (head + 1) * width] = 0
                sizes.append(torch.dist(complete, mha(x)[0]))
                mha.W_o.weight.copy_(saved)
        finally:
            mha.W_o.weight.copy_(saved)
    return torch.stack(sizes)


# Lesson 9
def layer_norm(x, gamma, beta, eps=1e-5):
    return F.layer_norm(x, x.shape[-1:], gamma, beta, eps)


# Lesson 10
def shift_right(targets, bos_id):
    return F.pad(targets, (1, -1), value=bos_id)


def greedy_decode(step, bos_id, eos_id, max_len):
    ids = torch.tensor([[bos_id]])
    while ids.shape[1] <= max_len and (ids.shape[1] == 1 or ids[0, -1] != eos_id):
        ids = torch.cat([ids, step(ids).argmax(dim=-1, keepdim=True)], dim=1)
    return ids[0].tolist()


def cached_attention(q, k, v, cache):
    if cache is not None:
        k, v = torch.cat([cache[0], k], dim=2), torch.cat([cache[1], v], dim=2)
    mask = causal_mask(q.shape[2], k.shape[2]).to(q.device)  # (T_q, T_k)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask), (k, v)


def filter_logits(logits, top_k=None, top_p=None):
    if top_k is not None:
        logits = logits.masked_fill(logits < logits.topk(top_k, dim=-1).values[..., -1:], -torch.inf)
    if top_p is not None:
        order = logits.argsort(dim=-1, descending=True)
        before = F.softmax(logits, dim=-1).gather(-1, order).cumsum(-1).roll(1, -1)
        before[..., 0] = 0
        cut = torch.zeros_like(logits, dtype=torch.bool).scatter(-1, order, before >= top_p)
        logits = logits.masked_fill(cut, -torch.inf)
    return logits


def beam_search(step, bos_id, eos_id, max_len, beam_size, length_penalty=0.0):
    def score(item):
        return item[1] / max(1, len(item[0]) - 1) ** length_penalty

    beam, finished = [([bos_id], 0.0)], []
    for _ in range(max_len):
        longer = []
        for ids, total in beam:
            gains = F.log_softmax(step(torch.tensor([ids])), dim=-1)[0].tolist()
            longer += [([*ids, i], total + gain) for i, gain in enumerate(gains)]
        best = sorted(longer, key=score, reverse=True)[:beam_size]
        finished += [item for item in best if item[0][-1] == eos_id]
        beam = [item for item in best if item[0][-1] != eos_id]
        if not beam:
            break
    ids, total = max(finished or beam, key=score)
    return ids, score((ids, total))


# Lesson 11
def make_batch(pairs, pad_id, bos_id, eos_id):
    def columns(rows):
        return torch.nn.utils.rnn.pad_sequence([torch.tensor(row) for row in rows], True, pad_id)  # (B, T)

    sources, targets = zip(*pairs, strict=True)
    tgt = columns([[bos_id, *row, eos_id] for row in targets])  # (B, T_t + 1)
    return {
        "src": columns(sources).long(),
        "tgt_in": tgt[:, :-1].masked_fill(tgt[:, 1:] == pad_id, pad_id),
        "tgt_out": tgt[:, 1:],
    }


def label_smoothed_loss(logits, targets, smoothing, pad_id):
    return F.cross_entropy(
        logits.flatten(0, -2), targets.flatten(), ignore_index=pad_id, label_smoothing=float(smoothing)
    )


def noam_lr(step, d_model, warmup):
    return min(1.0, step / warmup) * max(step, warmup) ** -0.5 / d_model**0.5


def token_accuracy(logits, targets, pad_id):
    real = targets.ne(pad_id)
    return (logits.max(dim=-1).indices.eq(targets) & real).sum().div(real.sum()).item()


def alignment(cross_weights):
    return torch.einsum("hts->ts", cross_weights).topk(1).indices.squeeze(-1)
