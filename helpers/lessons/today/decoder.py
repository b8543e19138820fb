"""A stack of the learner's blocks: a decoder such as Llama's, and how far back a stack depends on its input."""

import torch
from torch import nn


class Decoder(nn.Module):
    """Token vectors, num_layers blocks, a final RMS norm, logits: forward(ids (B, T), mask=None) -> (B, T, V).

    block: LlamaBlock, or a class with the same signatures. mask: bool, broadcastable to (B, H, T, T), for every block;
    None is causal. The names in its state dict are those that `rename_llama` returns.
    """

    def __init__(self, block, vocab_size, d_model, num_heads, num_kv_heads, d_ff, num_layers, base=10000.0, eps=1e-6):
        super().__init__()
        sizes = d_model, num_heads, num_kv_heads, d_ff, base, eps
        self.tokens = nn.Embedding(vocab_size, d_model)
        self.blocks = nn.ModuleList(block(*sizes) for _ in range(num_layers))
        self.norm = nn.RMSNorm(d_model, eps)
        self.unembed = nn.Linear(d_model, vocab_size, bias=False)

    def forward(self, ids, mask=None):
        x = self.tokens(ids)  # (B, T, D)
        for block in self.blocks:
            x = block(x, mask)  # (B, T, D)
        x = self.norm(x)  # (B, T, D)
        return self.unembed(x)  # (B, T, V)

    @torch.no_grad()
    def write(self, ids, count: int, temperature: float = 0.0, generator=None):
        """Append `count` tokens, the most probable or, at a temperature above 0, sampled: (B, T) -> (B, T + count)."""
        for _ in range(count):
            logits = self(ids)[:, -1]  # (B, V)
            if temperature > 0:
                token = torch.softmax(logits / temperature, -1).multinomial(1, generator=generator)  # (B, 1)
            else:
                token = logits.argmax(-1, keepdim=True)  # (B, 1)
            ids = torch.cat([ids, token], dim=1)
        return ids


@torch.no_grad()
def reach(block, mask, layers: int) -> list[int]:
    """The positions that affect the last output of `layers` blocks with random weights under a mask (T, T)."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        stack = [block(8, 2, 1, 16).double() for _ in range(layers)]
        x = torch.randn(1, len(mask), 8, dtype=torch.float64)  # (1, T, 8)
    x = torch.cat([x, x + torch.eye(len(mask), dtype=x.dtype)[..., None]])  # (1 + T, T, 8): unchanged, and T changes
    for layer in stack:
        x = layer(x, mask)
    effect = (x[1:, -1] - x[0, -1]).abs().amax(dim=-1)  # (T,)
    return (effect > 1e-9).nonzero().flatten().tolist()
