"""Functions and a class that replace unanswered exercises of lesson 12 (helpers/or_finished.py)."""

import torch
import torch.nn.functional as F
from torch import nn


def get_batch(data, block_size, batch_size, generator):
    """Rows of a table of all windows, and the same rows without their first token: (B, T) each."""
    windows = data.unfold(0, block_size + 1, 1)  # (N - block_size, T + 1)
    drawn = windows[torch.randint(len(windows), (batch_size,), generator=generator)]  # (B, T + 1)
    return drawn[:, :-1], drawn[:, 1:]


def next_token_loss(logits, targets):
    """The mean over all positions; the classes are moved to dimension 1, where F.cross_entropy expects them."""
    return F.cross_entropy(logits.movedim(-1, 1), targets)


def ngram_loss(train, test, order, vocab_size, alpha):
    """The same as count_loss of the figures."""
    from helpers.lessons.language_model.figures import count_loss

    return count_loss(torch.as_tensor(train).cpu(), torch.as_tensor(test).cpu(), order, vocab_size, alpha)


class GPT(nn.Module):
    """Lesson 12's rotary blocks under a causal mask, with the names of the exercise, so that weights fit into both."""

    def __init__(self, vocab_size, block_size, d_model, num_heads, num_layers):
        super().__init__()
        from helpers.blocks import RotaryBlock

        self.block_size = block_size
        self.tokens = nn.Embedding.from_pretrained(torch.randn(vocab_size, d_model) * 0.02, freeze=False)
        self.blocks = nn.ModuleList()
        while len(self.blocks) < num_layers:
            self.blocks.append(RotaryBlock(d_model, num_heads, d_ff=4 * d_model))
        self.norm, self.unembed = nn.LayerNorm(d_model), nn.Linear(d_model, vocab_size)

    def forward(self, ids):
        positions = torch.arange(ids.shape[1], device=ids.device)  # (T,)
        x = self.tokens(ids)  # (B, T, D)
        for block in self.blocks:
            x = block(x, positions <= positions[:, None])  # (B, T, D)
        x = self.norm(x)  # (B, T, D)
        return self.unembed(x)  # (B, T, V)


def generate(model, ids, max_new_tokens, temperature=1.0, top_k=None, generator=None):
    """Sample one token after the other; top_k is ignored."""
    rows = ids
    for _ in range(max_new_tokens):
        with torch.no_grad():
            scores = model(rows[..., -model.block_size :]).select(1, -1)  # (B, V)
        p = F.softmax(scores.div(temperature), dim=1)  # (B, V)
        rows = torch.hstack([rows, p.multinomial(1, generator=generator)])  # (B, T + 1)
    return rows
