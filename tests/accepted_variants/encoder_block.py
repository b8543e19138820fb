"""Other right answers to the exercises of lesson 9."""

import math

import torch
from torch import nn
from torch.nn import functional as F

from helpers.blocks import MultiHeadAttention, attention, merge_heads, split_heads


def norm_by_hand(x, gamma, beta, eps=1e-5):
    centered = x - x.sum(-1, keepdim=True) / x.shape[-1]
    variance = (centered**2).mean(-1, keepdim=True)
    return centered * torch.rsqrt(variance + eps) * gamma + beta


def norm_with_var_mean(x, gamma, beta, eps=1e-5):
    variance, mean = torch.var_mean(x, -1, unbiased=False, keepdim=True)
    return torch.addcmul(beta, gamma, (x - mean) / torch.sqrt(variance + eps))


def norm_with_moments(x, gamma, beta, eps=1e-5):
    x64 = x.double()
    mean = x64.mean(-1, keepdim=True)
    variance = (x64**2).mean(-1, keepdim=True) - mean**2
    return (gamma * (x64 - mean) / (variance.clamp_min(0) + eps).sqrt() + beta).to(x.dtype)


def norm_by_rows(x, gamma, beta, eps=1e-5):
    def one(row):
        centered = row - row.mean()
        return gamma * centered / math.sqrt(1) / ((centered @ centered) / len(row) + eps).sqrt() + beta

    return torch.stack([one(row) for row in x.reshape(-1, x.shape[-1])]).reshape(x.shape)


class NetworkOfFunctions(nn.Module):
    def __init__(self, d_model, d_ff, activation=F.relu):
        super().__init__()
        self.up, self.down, self.act = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model), activation

    def forward(self, x):
        return F.linear(self.act(F.linear(x, self.up.weight, self.up.bias)), self.down.weight, self.down.bias)


class NetworkByTokens(NetworkOfFunctions):
    def forward(self, x):
        return torch.stack([self.down(self.act(self.up(x[:, t]))) for t in range(x.shape[1])], dim=1)


class NetworkFlattened(NetworkOfFunctions):
    def forward(self, x):
        return self.down(self.act(self.up(x.reshape(-1, x.shape[-1])))).view_as(x)


class NetworkWithNone(nn.Module):
    def __init__(self, d_model, d_ff, activation=None):
        super().__init__()
        self.up, self.down = nn.Linear(d_model, d_ff, bias=True), nn.Linear(d_ff, d_model, bias=True)
        self.dropout, self.activation = nn.Dropout(0.0), activation or torch.relu

    def forward(self, x):
        return self.dropout(self.down(self.activation(self.up(x))))


class _Parts(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, norm_first=False, activation=F.relu):
        super().__init__()
        self.attention = self.make_attention(d_model, num_heads)
        self.feed_forward = NetworkOfFunctions(d_model, d_ff, activation)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.norm_first = norm_first

    make_attention = MultiHeadAttention


class BlockWithIf(_Parts):
    def forward(self, x, mask=None):
        if self.norm_first:
            x = x + self.attention(self.norm1(x), mask=mask)[0]
            return x + self.feed_forward(self.norm2(x))
        x = self.norm1(x + self.attention(x, mask=mask)[0])
        return self.norm2(x + self.feed_forward(x))


class BlockWithArguments(_Parts):
    def forward(self, x, mask=None):
        seen = self.norm1(x) if self.norm_first else x
        out, _ = self.attention(seen, seen, seen, mask)
        x = x + out
        x = x if self.norm_first else self.norm1(x)
        seen = self.norm2(x) if self.norm_first else x
        x = x + self.feed_forward(seen)
        return x if self.norm_first else self.norm2(x)


class BlockWithTwoWays(_Parts):
    def forward(self, x, mask=None):
        return (self._pre if self.norm_first else self._post)(x, mask)

    def _pre(self, x, mask):
        middle = x + self.attention(query=self.norm1(x), mask=mask)[0]
        return middle + self.feed_forward(self.norm2(middle))

    def _post(self, x, mask):
        middle = self.norm1(self.attention(query=x, mask=mask)[0] + x)
        return self.norm2(self.feed_forward(middle) + middle)


class BlockInPlace(_Parts):
    def forward(self, x, mask=None):
        out = self.attention(self.norm1(x) if self.norm_first else x, mask=mask)[0].clone()
        out += x
        x = out
        if not self.norm_first:
            x = self.norm1(x)
        x = x + self.feed_forward(self.norm2(x) if self.norm_first else x)
        return x if self.norm_first else self.norm2(x)


class FusedAttention(MultiHeadAttention):
    """torch's own attention with lesson 8's parameter names. Fully masked rows become zeros."""

    def forward(self, query, key=None, value=None, mask=None):
        weight = torch.cat([self.W_q.weight, self.W_k.weight, self.W_v.weight])
        bias = torch.cat([self.W_q.bias, self.W_k.bias, self.W_v.bias])
        Q, K, W = (split_heads(part, self.num_heads) for part in F.linear(query, weight, bias).chunk(3, dim=-1))
        if mask is None:
            return self.W_o(merge_heads(F.scaled_dot_product_attention(Q, K, W))), None
        sees = mask.any(-1, keepdim=True)
        out = F.scaled_dot_product_attention(Q, K, W, attn_mask=mask | ~sees)
        return self.W_o(merge_heads(out * sees)), None


class BlockWithFusedAttention(BlockWithIf):
    make_attention = FusedAttention


class OwnNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width))

    def forward(self, x):
        return norm_by_hand(x, self.weight, self.bias)


class BlockWithOwnNorms(BlockWithArguments):
    def __init__(self, d_model, num_heads, d_ff, norm_first=False, activation=F.relu):
        super().__init__(d_model, num_heads, d_ff, norm_first, activation)
        self.norm1, self.norm2 = OwnNorm(d_model), OwnNorm(d_model)


class AttentionByHeads(MultiHeadAttention):
    def forward(self, query, key=None, value=None, mask=None):
        size = query.shape[-1] // self.num_heads
        parts = [W(query).split(size, dim=-1) for W in (self.W_q, self.W_k, self.W_v)]
        outs = []
        for head, (q, k, v) in enumerate(zip(*parts, strict=True)):
            own = mask
            if mask is not None and mask.dim() > 2:
                own = mask[..., min(head, mask.shape[-3] - 1), :, :]
            outs.append(attention(q, k, v, own)[0])
        return self.W_o(torch.cat(outs, dim=-1)), None


class BlockHeadByHead(BlockWithTwoWays):
    make_attention = AttentionByHeads


class BlockWithDropout(BlockWithIf):
    def __init__(self, d_model, num_heads, d_ff, norm_first=False, activation=F.relu, dropout=0.0):
        super().__init__(d_model, num_heads, d_ff, norm_first, activation)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, mask=None):
        return self.dropout(super().forward(x, mask=mask))


class StackWithLoop(nn.Module):
    def __init__(self, vocab_size, d_model, num_heads, d_ff, num_layers, max_len):
        super().__init__()
        self.tokens = nn.Embedding(vocab_size, d_model)
        self.positions = nn.Embedding(max_len, d_model)
        self.blocks = nn.ModuleList([self.make(d_model, num_heads, d_ff) for _ in range(num_layers)])

    make = BlockWithIf

    def embed(self, ids):
        B, T = ids.shape
        return self.tokens(ids) + self.positions(torch.arange(T).expand(B, T))

    def forward(self, ids, mask=None):
        x = self.embed(ids)
        for layer in range(len(self.blocks)):
            x = self.blocks[layer](x, mask=mask)
        return x


class StackWithSlices(StackWithLoop):
    def embed(self, ids):
        return self.tokens.weight[ids] + self.positions.weight[: ids.shape[1]]


class StackWithSparseGradients(StackWithLoop):
    def __init__(self, vocab_size, d_model, num_heads, d_ff, num_layers, max_len):
        super().__init__(vocab_size, d_model, num_heads, d_ff, num_layers, max_len)
        self.tokens = nn.Embedding(vocab_size, d_model, sparse=True)


class StackWithOneHot(StackWithLoop):
    def embed(self, ids):
        table = self.tokens.weight
        return F.one_hot(ids, len(table)).to(table.dtype) @ table + self.positions.weight[None, : ids.size(1)]


class StackOfFusedBlocks(StackWithLoop):
    make = BlockWithFusedAttention


class StackOfOwnNorms(StackWithSlices):
    make = BlockWithOwnNorms


class StackWithDropout(StackWithLoop):
    def __init__(self, vocab_size, d_model, num_heads, d_ff, num_layers, max_len, dropout=0.0):
        super().__init__(vocab_size, d_model, num_heads, d_ff, num_layers, max_len)
        self.dropout, self.norm = nn.Dropout(dropout), nn.LayerNorm(d_model)  # the norm is unused

    def embed(self, ids):
        return self.dropout(
            self.positions(torch.arange(ids.shape[1], device=ids.device)).unsqueeze(0) + self.tokens(ids)
        )


def block_in_two_lines(x, attention, feed_forward, norm1, norm2, mask=None):
    x = x + attention(norm1(x), mask=mask)[0]
    return x + feed_forward(norm2(x))


def block_with_a_loop(x, attention, feed_forward, norm1, norm2, mask=None):
    for norm, sublayer in ((norm1, lambda seen: attention(seen, mask=mask)[0]), (norm2, feed_forward)):
        x = sublayer(norm(x)) + x
    return x


def block_with_a_stream(x, attention, feed_forward, norm1, norm2, mask=None):
    stream = x.clone()
    stream += attention(norm1(x), mask=mask)[0]
    return stream + feed_forward(norm2(stream))


def count_products(T, d_model, d_ff):
    products = 4 * [(T, d_model, d_model)] + [(T, d_model, T), (T, T, d_model), (T, d_model, d_ff), (T, d_ff, d_model)]
    return sum(math.prod(product) for product in products)


def influence_with_einsum(f, x):
    J = torch.autograd.functional.jacobian(f, x, create_graph=True)
    return torch.einsum("iejd,iejd->ij", J, J) ** 0.5


VARIANTS = {
    "layer_norm": (norm_with_var_mean, norm_with_moments, norm_by_rows),
    "FeedForward": (NetworkOfFunctions, NetworkByTokens, NetworkFlattened, NetworkWithNone),
    "EncoderBlock": (BlockInPlace, BlockWithFusedAttention, BlockWithOwnNorms, BlockHeadByHead, BlockWithDropout),
    "Encoder": (StackWithSparseGradients, StackWithOneHot, StackOfFusedBlocks, StackOfOwnNorms, StackWithDropout),
    "fixed_block": (block_in_two_lines, block_with_a_loop, block_with_a_stream),
    "block_macs": (
        lambda T, d_model, d_ff: 2 * T * d_model * (2 * d_model + T + d_ff),
        count_products,
        lambda T, d_model, d_ff: sum(4 * d_model**2 + 2 * T * d_model + 2 * d_model * d_ff for _ in range(T)),
    ),
    "token_influence": (
        lambda f, x: torch.func.jacrev(f)(x).square().sum(dim=(1, 3)).sqrt(),
        lambda f, x: torch.linalg.vector_norm(torch.func.jacfwd(f)(x), dim=(1, 3)),
        influence_with_einsum,
    ),
}
