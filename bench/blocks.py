"""The speed of the finished blocks compared with torch's modules: `python -m bench.blocks`, about a minute.

attention is compared with scaled_dot_product_attention, MultiHeadAttention with nn.MultiheadAttention, and EncoderBlock
and DecoderBlock with nn.TransformerEncoderLayer and nn.TransformerDecoderLayer, forward and backward. Torch's attention
uses its math backend here, because a fused kernel works differently; the ratio to the fused kernel is stored too. On
one core, with width 256, 8 heads and batches of 2, the two alternate, and the ratio is that of the medians. Also
measured are the peak memory of tiled and of plain attention, and what a cache saves when 256 tokens are generated.
"""

import statistics
import time
from contextlib import nullcontext

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from bench.written import keep
from helpers.blocks import (
    DecoderBlock,
    EncoderBlock,
    MultiHeadAttention,
    attention,
    cached_attention,
    causal_mask,
    tiled_attention,
)

LENGTHS, WIDTH, HEADS, BATCH, TURNS = (128, 256, 512, 1024), 256, 8, 2, 7


def pairs() -> dict:
    """name -> (the course's, torch's), both functions of x (B, T, D)."""
    mha, theirs = MultiHeadAttention(WIDTH, HEADS), nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
    options = dict(dim_feedforward=4 * WIDTH, dropout=0.0, batch_first=True)
    encoder, decoder = EncoderBlock(WIDTH, HEADS, 4 * WIDTH), DecoderBlock(WIDTH, HEADS, 4 * WIDTH)
    their_encoder = nn.TransformerEncoderLayer(WIDTH, HEADS, **options)
    their_decoder = nn.TransformerDecoderLayer(WIDTH, HEADS, **options)

    def heads(x):
        return x.unflatten(-1, (HEADS, -1)).transpose(1, 2)  # (B, H, T, d)

    return {
        "attention": (
            lambda x: attention(heads(x), heads(x), heads(x))[0],
            lambda x: F.scaled_dot_product_attention(heads(x), heads(x), heads(x)),
        ),
        "MultiHeadAttention": (lambda x: mha(x)[0], lambda x: theirs(x, x, x, average_attn_weights=False)[0]),
        "EncoderBlock": (encoder, their_encoder),
        "DecoderBlock": (lambda x: decoder(x, x)[0], lambda x: their_decoder(x, x)),
    }


def seconds(run, x) -> float:
    """Processor seconds of a forward and a backward pass."""
    began = time.process_time()
    run(x).sum().backward()
    return time.process_time() - began


def ratio(ours, theirs, x, fused: bool = False) -> float:
    """The ratio of medians of our time and theirs, in alternating turns. The first turn is a warm-up."""
    turns = []
    with nullcontext() if fused else sdpa_kernel(SDPBackend.MATH):
        for _ in range(TURNS + 1):
            turns.append((seconds(ours, x), seconds(theirs, x)))
    mine, other = zip(*turns[1:], strict=True)
    return statistics.median(mine) / statistics.median(other)


def peak_bytes(run) -> int:
    """The peak memory of a call in bytes of tensors, without its inputs."""
    from torch.profiler import ProfilerActivity, profile

    with torch.no_grad(), profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
        run()
    allocated = peak = 0
    for event in seen.profiler.kineto_results.events():
        if event.name() == "[memory]":
            allocated += event.nbytes()
            peak = max(peak, allocated)
    return peak


def cache_saves(length: int = 256) -> float:
    """The ratio of the times to attend from `length` tokens, one by one, without and with a cache."""
    q, k, v = (torch.randn(1, HEADS, length, WIDTH // HEADS) for _ in range(3))

    def plain():
        for t in range(1, length + 1):
            attention(q[:, :, :t], k[:, :, :t], v[:, :, :t], causal_mask(t))

    def cached():
        cache = None
        for t in range(length):
            _, cache = cached_attention(q[:, :, t : t + 1], k[:, :, t : t + 1], v[:, :, t : t + 1], cache)

    def timed(run) -> float:
        began = time.process_time()
        run()
        return time.process_time() - began

    turns = [(timed(plain), timed(cached)) for _ in range(4)][1:]
    return statistics.median(a for a, _ in turns) / statistics.median(b for _, b in turns)


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    found = {}
    for name, (ours, theirs) in pairs().items():
        found[name] = {}
        for length in LENGTHS:
            x = torch.randn(BATCH, length, WIDTH, requires_grad=True)  # (B, T, D)
            found[name][length] = round(ratio(ours, theirs, x), 2)
            found[name][f"{length} fused"] = round(ratio(ours, theirs, x, fused=True), 2)
        print(f"{name:<20}" + "   ".join(f"{length}: {value:.2f}" for length, value in found[name].items()), flush=True)
    Q, K, V = (torch.randn(1, 1, 4096, 64) for _ in range(3))
    held = peak_bytes(lambda: tiled_attention(Q, K, V, 256)) / peak_bytes(lambda: attention(Q, K, V))
    saved = cache_saves()
    worst = max(value for row in found.values() for length, value in row.items() if isinstance(length, int))
    says = (
        f"Forward and backward, for 128 to 1,024 tokens, a finished block takes at most {worst:.2f} times as long as "
        f"torch's own module without its fast path. Tiled attention over 4,096 tokens needs {100 * held:.0f}% of the "
        f"memory, and a cache makes the attention of 256 generated tokens {saved:.0f} times as fast."
    )
    print(says)
    keep("blocks", says, {"ours over torch's": found, "tiled over plain bytes": held, "without over with cache": saved})


if __name__ == "__main__":
    main()
