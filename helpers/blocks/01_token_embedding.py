# Made by `course build` from solutions/01_token_embedding/01_token_embedding.py; never edited here.
"""The finished blocks of lesson 01: Token embedding: words become vectors."""

import math

import torch
import torch.nn.functional as F


def tokenize(sentence):
    """Tokens of a sentence, a list of strings: the characters , . ! ? ; : deleted, then split on
    white space."""
    for mark in ",.!?;:":
        sentence = sentence.replace(mark, "")
    return sentence.split()


def build_vocab(sentences):
    """The vocabulary of a list of sentences: distinct token -> id, ids 0, 1, ... in code-point
    order."""
    tokens = {token for sentence in sentences for token in tokenize(sentence)}
    return {token: i for i, token in enumerate(sorted(tokens))}


def encode(sentence, vocab):
    """Ids (T,), int64, of a sentence's tokens. A token not in `vocab`: KeyError with this token in
    it."""
    return torch.tensor([vocab[token] for token in tokenize(sentence)])  # (T,)


def one_hot(ids, vocab_size):
    """One-hot vectors: ids (...) int64 -> (..., V) float32, with 1 at each id and 0 elsewhere."""
    return (ids[..., None] == torch.arange(vocab_size, device=ids.device)).float()  # (..., V)


def embed(ids, table):
    """Embedding lookup: ids (...) int64, table (V, D) float -> (..., D), the table's dtype."""
    return table[ids]  # (..., D)


def cosine_similarity(a, b):
    """Cosines of all pairs of rows; a zero row gives 0.

    a (N, D), b (M, D), float32 or float64 -> (N, M), same dtype.
    """

    def unit(x):
        length = x.norm(dim=-1, keepdim=True)  # (N, 1)
        return x / torch.where(length > 0, length, 1)

    return unit(a) @ unit(b).T  # (N, M)


def fixed_neighbors(table, k):
    """For each row of table (V, D): ids (V, k) of the k other rows with the largest cosine, best
    first."""
    unit = table / table.norm(dim=-1, keepdim=True)  # (V, D)
    similarity = unit @ unit.T  # (V, V)
    similarity.fill_diagonal_(-math.inf)
    return similarity.topk(k).indices  # (V, k)


def negative_sampling_gradients(center, context, negatives):
    """Gradients of one pair's skip-gram loss with negative sampling at its three inputs, in their
    shapes.

    center (D,), context (D,), negatives (K, D), float32 or float64 -> a tuple (D,), (D,), (K, D),
    same dtype.
    """
    lack = torch.sigmoid(center @ context) - 1  # scalar, below 0
    excess = torch.sigmoid(negatives @ center)  # (K,)
    d_center = lack * context + excess @ negatives  # (D,)
    return d_center, lack * center, excess[:, None] * center  # (D,), (D,), (K, D)


def skipgram_pairs(ids, window):
    """Positive pairs of word2vec, as (center, context) tuples of Python ints; ids: a list or LongTensor
    (T,)."""
    ids = [int(i) for i in ids]
    pairs = []
    for t, center in enumerate(ids):
        for s in range(max(0, t - window), min(len(ids), t + window + 1)):
            if s != t:
                pairs.append((center, ids[s]))
    return pairs


def negative_sampling_loss(center, context, negatives):
    """Loss of skip-gram with negative sampling, eq. 4 of Mikolov et al. (2013), negated; mean over
    the batch.

    center (B, D), context (B, D), negatives (B, K, D), float32 or float64 -> scalar, same dtype.
    """
    good = (center * context).sum(-1)  # (B,)
    bad = (negatives * center[:, None]).sum(-1)  # (B, K)
    return -(F.logsigmoid(good) + F.logsigmoid(-bad).sum(-1)).mean()


def wordpiece(word, vocab, unk="[UNK]"):
    """Greedy longest-match-first pieces of a word, as in BERT; [unk] if the split gets stuck.

    word: a string, not empty. vocab: a set or a dictionary. Returns a list of strings.
    """
    pieces, start = [], 0
    while start < len(word):
        for end in range(len(word), start, -1):
            piece = ("##" if start else "") + word[start:end]
            if piece in vocab:
                break
        else:
            return [unk]
        pieces.append(piece)
        start = end
    return pieces
