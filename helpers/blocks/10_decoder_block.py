# Made by `course build` from solutions/10_decoder_block/10_decoder_block.py; never edited here.
"""The finished blocks of lesson 10: Decoder block: the whole Transformer."""

from torch import nn
import torch
import torch.nn.functional as F

from helpers.blocks import Encoder
from helpers.blocks import FeedForward
from helpers.blocks import MultiHeadAttention
from helpers.blocks import attention
from helpers.blocks import causal_mask
from helpers.blocks import cross_entropy


def shift_right(targets, bos_id):
    """The decoder's input for `targets`: each row starts with bos, and its last id is dropped.

    targets LongTensor (B, T) with T >= 1; bos_id: int -> LongTensor (B, T).
    """
    bos = torch.full_like(targets[:, :1], bos_id)  # (B, 1)
    return torch.cat([bos, targets[:, :-1]], dim=1)  # (B, T)


def fixed_loss(model, src, tgt, pad_id):
    """Teacher forcing: the mean cross-entropy of each next word of tgt, padding left out.

    model(src (B, T_s), ids (B, T)) -> logits (B, T, V); src LongTensor (B, T_s);
    tgt LongTensor (B, T_t), its rows bos, words, eos, padding; pad_id: int -> scalar.
    """
    logits = model(src, tgt[:, :-1])  # (B, T_t - 1, V)
    return cross_entropy(logits, tgt[:, 1:], ignore_index=pad_id)


class DecoderBlock(nn.Module):
    """Masked self-attention, cross-attention, feed-forward; each with residual and norm.

    d_model, num_heads, d_ff: int; norm_first: bool; activation: function.
    forward(y (B, T_t, D), memory (B, T_s, D), self_mask, memory_mask: None or bool that broadcasts
    to (B, H, T_t, T_t) and (B, H, T_t, T_s)) -> (y (B, T_t, D), cross_weights (B, H, T_t, T_s)).
    """

    def __init__(self, d_model, num_heads, d_ff, norm_first=False, activation=F.relu):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff, activation)
        self.norm1, self.norm2, self.norm3 = (nn.LayerNorm(d_model) for _ in range(3))
        self.norm_first = norm_first

    def forward(self, y, memory, self_mask=None, memory_mask=None):
        if self.norm_first:
            y = y + self.self_attention(self.norm1(y), mask=self_mask)[0]  # (B, T_t, D)
            found, cross_weights = self.cross_attention(self.norm2(y), memory, mask=memory_mask)
            y = y + found  # (B, T_t, D)
            return y + self.feed_forward(self.norm3(y)), cross_weights
        y = self.norm1(y + self.self_attention(y, mask=self_mask)[0])  # (B, T_t, D)
        found, cross_weights = self.cross_attention(y, memory, mask=memory_mask)
        y = self.norm2(y + found)  # (B, T_t, D)
        return self.norm3(y + self.feed_forward(y)), cross_weights


class Transformer(nn.Module):
    """The encoder-decoder of Vaswani et al. (2017), with learned positions.

    Parts: encoder (Encoder), tokens and positions (nn.Embedding, of the target), blocks
    (nn.ModuleList of DecoderBlock), unembed (nn.Linear).
    encode(src (B, T_s)) -> memory (B, T_s, D);
    decode(tgt (B, T_t), memory, src) -> logits (B, T_t, tgt_vocab);
    forward(src, tgt) -> logits. Where src is pad_id, there is padding.
    """

    def __init__(self, src_vocab, tgt_vocab, d_model, num_heads, d_ff, num_layers, max_len, pad_id=0):
        super().__init__()
        # self.encoder, self.tokens, self.positions, self.blocks, self.unembed
        self.pad_id = pad_id
        self.encoder = Encoder(src_vocab, d_model, num_heads, d_ff, num_layers, max_len)
        self.tokens, self.positions = nn.Embedding(tgt_vocab, d_model), nn.Embedding(max_len, d_model)
        self.blocks = nn.ModuleList(DecoderBlock(d_model, num_heads, d_ff) for _ in range(num_layers))
        self.unembed = nn.Linear(d_model, tgt_vocab)

    def encode(self, src):
        real = (src != self.pad_id)[:, None, None, :]  # (B, 1, 1, T_s)
        return self.encoder(src, real)  # (B, T_s, D)

    def decode(self, tgt, memory, src):
        T = tgt.shape[1]
        real = (src != self.pad_id)[:, None, None, :]  # (B, 1, 1, T_s)
        causal = causal_mask(T).to(tgt.device)  # (T_t, T_t)
        y = self.tokens(tgt) + self.positions(torch.arange(T, device=tgt.device))  # (B, T_t, D)
        for block in self.blocks:
            y, _ = block(y, memory, causal, real)  # (B, T_t, D)
        return self.unembed(y)  # (B, T_t, V)

    def forward(self, src, tgt):
        return self.decode(tgt, self.encode(src), src)  # (B, T_t, V)


def greedy_decode(step, bos_id, eos_id, max_len):
    """Write one word after the other, always the likeliest.

    step(prefix LongTensor (1, t)) -> logits (1, V); bos_id, eos_id, max_len: int, max_len >= 1
    -> list of int: bos first, then at most max_len ids; eos, if it comes, is the last.
    """
    ids = [bos_id]
    for _ in range(max_len):
        logits = step(torch.tensor([ids]))  # (1, V)
        ids.append(logits.argmax().item())
        if ids[-1] == eos_id:
            break
    return ids


def cached_attention(q, k, v, cache):
    """Causal attention for new tokens only; what came before is in the cache.

    q, k, v (B, H, T_new, d); cache: None at the start, then what the last call returned
    -> (out (B, H, T_new, d), cache). The cache that came in is left as it was.
    """
    if cache is not None:
        k = torch.cat([cache[0], k], dim=-2)  # (B, H, T, d)
        v = torch.cat([cache[1], v], dim=-2)  # (B, H, T, d)
    mask = causal_mask(q.shape[-2], k.shape[-2]).to(q.device)  # (T_new, T)
    out, _ = attention(q, k, v, mask)  # (B, H, T_new, d)
    return out, (k, v)


def filter_logits(logits, top_k=None, top_p=None):
    """Logits without their unlikely tail: -inf for all but the top_k largest, then beyond mass
    top_p.

    logits (..., V), float32 or float64; top_k None or int, 1 to V; top_p None or float,
    0 < top_p < 1 -> (..., V), same dtype. The word that crosses top_p is kept.
    """
    if top_k is not None:
        last = logits.topk(top_k, dim=-1).values[..., -1:]  # (..., 1)
        logits = logits.masked_fill(logits < last, float("-inf"))
    if top_p is not None:
        ordered, order = logits.sort(dim=-1, descending=True)  # (..., V) each
        p = torch.softmax(ordered, dim=-1)  # (..., V)
        above = p.cumsum(dim=-1) - p  # (..., V), the mass of all likelier words
        cut = torch.zeros_like(logits, dtype=torch.bool).scatter(-1, order, above >= top_p)
        logits = logits.masked_fill(cut, float("-inf"))
    return logits


def beam_search(step, bos_id, eos_id, max_len, beam_size, length_penalty=0.0):
    """Keep the beam_size best prefixes at each step; return the best finished one, else the best of
    the beam.

    step(prefix LongTensor (1, t)) -> logits (1, V); length_penalty: number
    -> (list of int, float): ids with bos first, and their score,
    log-probability / (ids after bos)^length_penalty.
    """

    def score(item):
        ids, log_p = item
        return log_p / (len(ids) - 1) ** length_penalty

    beam, finished = [([bos_id], 0.0)], []
    for _ in range(max_len):
        grown = []
        for ids, log_p in beam:
            steps = torch.log_softmax(step(torch.tensor([ids]))[0], dim=-1).tolist()  # V numbers
            grown += [([*ids, i], log_p + more) for i, more in enumerate(steps)]
        best = sorted(grown, key=score, reverse=True)[:beam_size]
        finished += [item for item in best if item[0][-1] == eos_id]
        beam = [item for item in best if item[0][-1] != eos_id]
    winner = max(finished or beam, key=score)
    return winner[0], score(winner)
