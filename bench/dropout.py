"""Dropout for lesson 12: `python -m bench.dropout [--write]`, about five minutes of one core.

The lesson's GPT is trained as in the lesson, but with four times the learning rate, and on a short text, so that it
sees each token about sixty times. As in GPT-2, dropout acts on attention weights, on the outputs of both sublayers, and
on token vectors. There are three seeds for each dropout rate. The losses are measured in evaluation mode, on passages
of the training text and on unseen ones. --write stores them in helpers/lessons/language_model/dropout.json, which the
lesson's figure and its tests read.
"""

import argparse

import torch
import torch.nn.functional as F

from bench.fused_attention import FusedAttention
from bench.ladder import CONTEXT, SEEDS, loss_on, train, unseen
from bench.written import write
from helpers import corpus
from helpers.blocks import GPT, get_batch, merge_heads, split_heads

RATES, LENGTH, STEPS, RATE = (0.0, 0.1, 0.2), 20_000, 1200, 4e-3


class DroppedAttention(FusedAttention):
    """Fused attention with dropout on the attention weights in training mode."""

    dropout = 0.0

    def forward(self, query, key=None, value=None, mask=None):
        Q, K, V = (split_heads(W(query), self.num_heads) for W in (self.W_q, self.W_k, self.W_v))  # (B, H, T, d)
        p = self.dropout if self.training else 0.0
        heads = F.scaled_dot_product_attention(self.rotate(Q), self.rotate(K), V, is_causal=True, dropout_p=p)
        return self.W_o(merge_heads(heads)), None


def with_dropout(model: GPT, p: float) -> GPT:
    """The same model with dropout on all values that are added to the residual stream, in training mode."""

    def drop(module, _given, output):
        return F.dropout(output, p, module.training)

    model.tokens.register_forward_hook(drop)
    for block in model.blocks:
        mha = block.attention
        block.attention = DroppedAttention(mha.W_q.in_features, mha.num_heads, model.block_size)
        block.attention.load_state_dict(mha.state_dict())
        block.attention.dropout = p
        block.attention.W_o.register_forward_hook(drop)
        block.feed_forward.register_forward_hook(drop)
    return model


def losses(p: float, seed: int) -> tuple[float, float]:
    """Nats per token after training on the first LENGTH tokens, on passages of these and on unseen passages."""
    text = corpus.language_text()[:LENGTH]
    torch.manual_seed(seed)
    model = with_dropout(GPT(len(corpus.language_symbols()), CONTEXT, 64, 2, 2), p)
    train(model, seed, STEPS, RATE, text=text).eval()
    seen, _ = get_batch(text, CONTEXT, 200, torch.Generator().manual_seed(99))
    return loss_on(model, seen), loss_on(model, unseen()[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="keep the losses for the lesson's figure")
    options = parser.parse_args()
    torch.set_num_threads(1)
    rates = {}
    for p in RATES:
        seen, new = (
            [round(loss, 4) for loss in column] for column in zip(*(losses(p, seed) for seed in SEEDS), strict=True)
        )
        print(f"dropout {p}: training text {seen}, unseen {new}", flush=True)
        rates[str(p)] = {"seen": seen, "unseen": new}
    if options.write:
        write("language_model", "dropout", {"line": round(unseen()[1], 4), "rates": rates})


if __name__ == "__main__":
    main()
