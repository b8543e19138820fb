"""Other right answers to the exercises of lesson 1."""

import itertools
import re

import torch
import torch.nn.functional as F

from helpers.blocks import tokenize as _tokens


def _all_tokens(sentences):
    return [token for sentence in sentences for token in _tokens(sentence)]


def _dots(center, context, negatives):
    return (center * context).sum(-1), (negatives @ center[:, :, None])[..., 0]


def tokenize_per_token(sentence):
    tokens = []
    for raw in sentence.split():
        token = "".join(filter(lambda x: x not in ",.!?;:", raw))
        if token:
            tokens.append(token)
    return tokens


def vocab_set(sentences):
    distinct = set()
    for sentence in sentences:
        distinct |= set(_tokens(sentence))
    return {token: number for number, token in enumerate(sorted(distinct))}


def vocab_joined(sentences):
    tokens = sorted(dict.fromkeys(_tokens(" ".join(sentences))))
    return {token: tokens.index(token) for token in tokens}


def encode_loop(sentence, vocab):
    tokens = _tokens(sentence)
    ids = torch.empty(len(tokens), dtype=torch.int64)
    for t, token in enumerate(tokens):
        if token not in vocab:
            raise KeyError(f"{token!r} is not one of {sorted(vocab)}")
        ids[t] = vocab[token]
    return ids


def embed_loop(ids, table):
    rows = [table[i] for i in ids.flatten().tolist()]
    return torch.stack(rows).view(*ids.shape, -1)


def cosine_with_clamp(a, b):
    n = torch.linalg.vector_norm(a, dim=1, keepdim=True).clamp(min=1e-8)
    m = torch.linalg.vector_norm(b, dim=1, keepdim=True).clamp(min=1e-8)
    return (a / n) @ (b / m).T


def cosine_where(a, b):
    lengths = a.norm(dim=-1)[:, None] * b.norm(dim=-1)
    return torch.where(lengths == 0, torch.zeros_like(lengths), (a @ b.T) / lengths.masked_fill(lengths == 0, 1.0))


def gradients_together(center, context, negatives):
    others = torch.cat((context[None], negatives))
    error = torch.sigmoid(others @ center)
    error[0] -= 1
    d_others = torch.outer(error, center)
    return error @ others, d_others[0], d_others[1:]


def gradients_softplus(center, context, negatives):
    """Uses that the sigmoid is the derivative of softplus, and computes it as exp(log sigmoid)."""
    lack = F.logsigmoid(-(center @ context)).exp()
    excess = F.logsigmoid(negatives @ center).exp().unsqueeze(1)
    return (negatives.T @ excess).squeeze(1) - lack * context, -lack * center, excess * center.unsqueeze(0)


def gradients_tanh(center, context, negatives):
    half = torch.tanh((center @ context) / 2) / 2 - 0.5
    push = torch.tanh(negatives @ center / 2) / 2 + 0.5
    return half * context + (push[:, None] * negatives).sum(0), half * center, torch.outer(push, center)


def neighbors_normalize(table, k):
    unit = F.normalize(table)
    return (unit @ unit.T - 9 * torch.eye(len(table), dtype=table.dtype)).argsort(dim=1, descending=True)[:, :k]


def neighbors_library(table, k):
    cosines = F.cosine_similarity(table[:, None], table[None], dim=-1)
    return cosines.masked_fill(torch.eye(len(table), dtype=torch.bool), -2.0).topk(k, dim=1)[1]


def neighbors_loop(table, k):
    rows = []
    for i, x in enumerate(table):
        cosines = [(float(x @ y / y.norm()), j) for j, y in enumerate(table) if j != i]
        rows.append([j for _, j in sorted(cosines, reverse=True)[:k]])
    return torch.tensor(rows)


def pairs_offsets(ids, window):
    ids = [int(x) for x in ids]
    offsets = [o for o in range(-window, window + 1) if o]
    return [(x, ids[i + o]) for i, x in enumerate(ids) for o in offsets if 0 <= i + o < len(ids)]


def pairs_mask(ids, window):
    ids = torch.as_tensor(ids)
    positions = torch.arange(len(ids))
    gap = (positions[:, None] - positions).abs()
    i, j = ((gap > 0) & (gap <= window)).nonzero(as_tuple=True)
    return list(zip(ids[i].tolist(), ids[j].tolist(), strict=True))


def pairs_permutations(ids, window):
    pairs = itertools.permutations(range(len(ids)), 2)
    return [(int(ids[i]), int(ids[j])) for i, j in pairs if abs(i - j) <= window]


def loss_softplus(center, context, negatives):
    good = (center * context).sum(1, keepdim=True)
    bad = (center[:, None, :] * negatives).sum(-1)
    return F.softplus(torch.cat((-good, bad), dim=1)).sum(1).mean()


def loss_with_logits(center, context, negatives):
    others = torch.cat((context[:, None], negatives), 1)  # (B, 1 + K, D)
    logits = torch.bmm(others, center[:, :, None]).squeeze(-1)
    labels = torch.zeros_like(logits)
    labels[:, 0] = 1
    return F.binary_cross_entropy_with_logits(logits, labels, reduction="sum") / len(center)


def loss_logaddexp(center, context, negatives):
    good, bad = _dots(center, context, negatives)
    zero = torch.zeros((), dtype=center.dtype)
    return (torch.logaddexp(zero, -good) + torch.logaddexp(zero, bad).sum(-1)).mean()


def wordpiece_recursive(word, vocab, unk="[UNK]", first=True):
    if not word:
        return []
    for end in range(len(word), 0, -1):
        piece = word[:end] if first else "##" + word[:end]
        if piece in vocab:
            rest = wordpiece_recursive(word[end:], vocab, None, False)
            return [unk] if rest is None or None in rest else [piece, *rest]
    return [unk]


def wordpiece_by_vocabulary(word, vocab, unk="[UNK]"):
    found, rest = [], word
    while rest:
        fits = [p for p in vocab if p.startswith("##") == bool(found) and rest.startswith(p.removeprefix("##"))]
        fits = [p for p in fits if p != "##"]
        if not fits:
            return [unk]
        found.append(max(fits, key=len))
        rest = rest[len(found[-1].removeprefix("##")) :]
    return found


def wordpiece_marked(word, vocab, unk="[UNK]"):
    pieces, rest = [], word
    while rest not in ("", "##"):
        tries = [rest[:n] for n in range(len(rest), 2 if pieces else 0, -1)]
        found = [piece for piece in tries if piece in vocab][:1]
        if not found:
            return [unk]
        pieces += found
        rest = "##" + rest[len(found[0]) :]
    return pieces


VARIANTS = {
    "tokenize": (
        lambda sentence: sentence.translate(str.maketrans("", "", ",.!?;:")).split(),
        lambda sentence: [token for token in re.split(r"\s+", re.sub(r"[,.!?;:]", "", sentence)) if token],
        tokenize_per_token,
    ),
    "build_vocab": (
        vocab_set,
        vocab_joined,
        lambda sentences: {token: i for i, (token, _) in enumerate(itertools.groupby(sorted(_all_tokens(sentences))))},
    ),
    "encode": (
        lambda sentence, vocab: torch.LongTensor([vocab[token] for token in _tokens(sentence)]),
        encode_loop,
        lambda sentence, vocab: torch.stack([torch.tensor(vocab[token]) for token in _tokens(sentence)]),
    ),
    "one_hot": (
        lambda ids, vocab_size: torch.eye(vocab_size)[ids],
        lambda ids, vocab_size: (ids.unsqueeze(-1) == torch.arange(vocab_size)).float(),
        lambda ids, vocab_size: torch.zeros(*ids.shape, vocab_size).scatter_(-1, ids.unsqueeze(-1), 1.0),
    ),
    "embed": (
        lambda ids, table: F.embedding(ids, table),
        lambda ids, table: F.one_hot(ids, table.shape[0]).to(table.dtype) @ table,
        embed_loop,
    ),
    "cosine_similarity": (
        cosine_with_clamp,
        cosine_where,
        lambda a, b: a / (a.norm(dim=1, keepdim=True) + 1e-8) @ (b / (b.norm(dim=1, keepdim=True) + 1e-8)).T,
    ),
    "negative_sampling_gradients": (gradients_together, gradients_softplus, gradients_tanh),
    "fixed_neighbors": (neighbors_normalize, neighbors_library, neighbors_loop),
    "skipgram_pairs": (pairs_offsets, pairs_mask, pairs_permutations),
    "negative_sampling_loss": (loss_softplus, loss_with_logits, loss_logaddexp),
    "wordpiece": (wordpiece_recursive, wordpiece_by_vocabulary, wordpiece_marked),
}
