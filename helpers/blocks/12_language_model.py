# Made by `course build` from solutions/12_language_model/12_language_model.py; never edited here.
"""The finished blocks of lesson 12: A language model: a GPT against tables of counts."""

import math

from torch import nn
import torch
import torch.nn.functional as F

from helpers.blocks import RotaryBlock
from helpers.blocks import causal_mask
from helpers.blocks import filter_logits
from helpers.blocks import previous_token_weights


def get_batch(data, block_size, batch_size, generator):
    """Random windows of a text and, for each of their tokens, the token that comes next.

    data LongTensor (N,), N >= block_size + 1; generator: torch.Generator
    -> x, y LongTensors (batch_size, block_size).
    """
    starts = torch.randint(len(data) - block_size, (batch_size,), generator=generator)  # (B,)
    positions = starts[:, None] + torch.arange(block_size)  # (B, T)
    return data[positions], data[positions + 1]


def next_token_loss(logits, targets):
    """The mean cross-entropy of each next token: logits (B, T, V), targets LongTensor (B, T) ->
    scalar."""
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


class GPT(nn.Module):
    """A decoder without an encoder: ids LongTensor (B, T), T <= block_size -> logits
    (B, T, vocab_size).

    vocab_size, block_size, d_model, num_heads, num_layers: int. Its parts are called tokens,
    blocks, norm and unembed.
    """

    def __init__(self, vocab_size, block_size, d_model, num_heads, num_layers):
        super().__init__()
        self.block_size = block_size
        # self.tokens, self.blocks, self.norm, self.unembed
        self.tokens = nn.Embedding(vocab_size, d_model)
        self.blocks = nn.ModuleList(RotaryBlock(d_model, num_heads, 4 * d_model) for _ in range(num_layers))
        self.norm = nn.LayerNorm(d_model)
        self.unembed = nn.Linear(d_model, vocab_size)
        nn.init.normal_(self.tokens.weight, std=0.02)  # as in GPT-2

    def forward(self, ids):
        x = self.tokens(ids)  # (B, T, D)
        mask = causal_mask(ids.shape[1]).to(ids.device)  # (T, T)
        for block in self.blocks:
            x = block(x, mask)  # (B, T, D)
        return self.unembed(self.norm(x))  # (B, T, V)


def generate(model, ids, max_new_tokens, temperature=1.0, top_k=None, generator=None):
    """Sample from a model: ids LongTensor (B, T) -> (B, T + max_new_tokens), the prompt included.

    model: ids (B, T <= model.block_size) -> logits (B, T, V); temperature: number > 0; top_k: None
    or int, 1 to V; generator: None or torch.Generator.
    """
    with torch.no_grad():
        for _ in range(max_new_tokens):
            logits = model(ids[:, -model.block_size :])[:, -1] / temperature  # (B, V)
            p = torch.softmax(filter_logits(logits, top_k=top_k), dim=-1)  # (B, V)
            drawn = torch.multinomial(p, 1, generator=generator)  # (B, 1)
            ids = torch.cat([ids, drawn], dim=1)  # (B, T + 1)
    return ids


def ngram_loss(train, test, order, vocab_size, alpha):
    """The loss in nats per token of an n-gram model with additive smoothing.

    train, test: 1-D LongTensor or list of int; order: int >= 1, the predicted token included;
    vocab_size: int; alpha: number > 0 -> float, the mean over positions order - 1 to the end of
    test.
    """
    train, test = [int(i) for i in train], [int(i) for i in test]
    pairs, contexts = {}, {}
    for t in range(order - 1, len(train)):
        context = tuple(train[t - order + 1 : t])  # order - 1 tokens
        pairs[context, train[t]] = pairs.get((context, train[t]), 0) + 1
        contexts[context] = contexts.get(context, 0) + 1
    total = 0.0
    for t in range(order - 1, len(test)):
        context = tuple(test[t - order + 1 : t])  # order - 1 tokens
        seen = pairs.get((context, test[t]), 0) + alpha
        total -= math.log(seen / (contexts.get(context, 0) + alpha * vocab_size))
    return total / (len(test) - order + 1)


def induction_head(vocab_size, max_len):
    """Weights of two heads that together continue any segment that has been seen before.

    vocab_size V, max_len M: int >= 2 -> [(W_q, W_k, W_v), (W_q, W_k, W_v)], float32, (d, C),
    (d, C), (C, C) with C = 3 V + M channels: token, position, previous token, answer.
    """
    V, M = vocab_size, max_len
    C, sharp = 3 * V + M, 100.0 * (V + M) ** 0.5
    token, position = slice(0, V), slice(V, V + M)
    before, answer = slice(V + M, 2 * V + M), slice(2 * V + M, C)
    W_q, W_k, copy = torch.zeros(M, C), torch.zeros(M, C), torch.zeros(C, C)
    W_q[:, position], W_k[:, position] = previous_token_weights(M)  # (M, M) each
    copy[before, token] = torch.eye(V)
    match, keys, say = torch.zeros(V, C), torch.zeros(V, C), torch.zeros(C, C)
    match[:, token] = torch.eye(V)
    keys[:, before] = torch.eye(V)
    keys[:, V] = -1.0  # position 0 has no previous token: it could only attend to itself
    say[answer, token] = torch.eye(V)
    return [(sharp * W_q, W_k, copy), (sharp * match, keys, say)]
