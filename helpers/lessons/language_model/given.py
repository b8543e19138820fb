"""What stands in for answers of lesson 12 that are not there yet (helpers/or_given.py), by their names."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn


def _windows(data, block_size, batch_size, generator):
    """Rows of a table of all windows, and the same rows without their first token: (B, T) each."""
    windows = data.unfold(0, block_size + 1, 1)  # (N - block_size, T + 1)
    drawn = windows[torch.randint(len(windows), (batch_size,), generator=generator)]  # (B, T + 1)
    return drawn[:, :-1], drawn[:, 1:]


def _loss(logits, targets):
    """The mean loss of all places, classes moved to where torch wants them."""
    return F.cross_entropy(logits.movedim(-1, 1), targets)


def _counted(train, test, order, vocab_size, alpha):
    """The figures' own counting."""
    from helpers.lessons.language_model.figures import count_loss

    return count_loss(torch.as_tensor(train).cpu(), torch.as_tensor(test).cpu(), order, vocab_size, alpha)


def _gpt(vocab_size, block_size, d_model, num_heads, num_layers):
    """Lesson 9's Encoder, its attention rotary, with a norm and a layer of logits on top."""
    from helpers.blocks import Encoder, causal_mask
    from helpers.lessons.language_model.rotary import RotaryAttention

    class Stand(Encoder):
        def __init__(self):
            super().__init__(vocab_size, d_model, num_heads, 4 * d_model, num_layers, block_size, norm_first=True)
            self.block_size = block_size
            self.norm, self.unembed = nn.LayerNorm(d_model), nn.Linear(d_model, vocab_size)
            for block in self.blocks:
                block.attention = RotaryAttention(d_model, num_heads)
            nn.init.normal_(self.tokens.weight, std=0.02)
            nn.init.zeros_(self.positions.weight)  # rotations tell the places

        def forward(self, ids):
            mask = causal_mask(ids.shape[1]).to(ids.device)  # (T, T)
            return self.unembed(self.norm(super().forward(ids, mask)))  # (B, T, V)

    return Stand()


def _written(model, ids, max_new_tokens, temperature=1.0, top_k=None, generator=None):
    """Token after token, drawn; top_k is left to the exercise."""
    rows = ids
    for _ in range(max_new_tokens):
        with torch.no_grad():
            scores = model(rows[..., -model.block_size :]).select(1, -1)  # (B, V)
        chances = F.softmax(scores.div(temperature), dim=1)  # (B, V)
        rows = torch.hstack([rows, chances.multinomial(1, generator=generator)])  # (B, T + 1)
    return rows


GIVEN = {"get_batch": _windows, "next_token_loss": _loss, "ngram_loss": _counted, "GPT": _gpt, "generate": _written}
