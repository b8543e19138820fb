"""What stands in for answers of lesson 12 that are not there yet (helpers/or_finished.py), by their names."""

import torch
import torch.nn.functional as F
from torch import nn


def get_batch(data, block_size, batch_size, generator):
    """Rows of a table of all windows, and the same rows without their first token: (B, T) each."""
    windows = data.unfold(0, block_size + 1, 1)  # (N - block_size, T + 1)
    drawn = windows[torch.randint(len(windows), (batch_size,), generator=generator)]  # (B, T + 1)
    return drawn[:, :-1], drawn[:, 1:]


def next_token_loss(logits, targets):
    """The mean loss of all places, classes moved to where torch wants them."""
    return F.cross_entropy(logits.movedim(-1, 1), targets)


def ngram_loss(train, test, order, vocab_size, alpha):
    """The figures' own counting."""
    from helpers.lessons.language_model.figures import count_loss

    return count_loss(torch.as_tensor(train).cpu(), torch.as_tensor(test).cpu(), order, vocab_size, alpha)


class GPT(nn.Module):
    """A stack of lesson 12's rotary blocks under a causal mask, with the names that the exercise prescribes, so that
    weights fit into both."""

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
    """Token after token, drawn; top_k is left to the exercise."""
    rows = ids
    for _ in range(max_new_tokens):
        with torch.no_grad():
            scores = model(rows[..., -model.block_size :]).select(1, -1)  # (B, V)
        chances = F.softmax(scores.div(temperature), dim=1)  # (B, V)
        rows = torch.hstack([rows, chances.multinomial(1, generator=generator)])  # (B, T + 1)
    return rows
