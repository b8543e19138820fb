"""Wrong answers to the exercises of lesson 10 that are not among its key's known mistakes."""

from concurrent.futures import ThreadPoolExecutor

import torch

from helpers.blocks import attention, causal_mask

LAST_WORD_TO_PADDING = "targets.masked_fill((targets != 0) & ((targets != 0).flip(1).cumsum(1).flip(1) == 1), 0)"
BY_LAST_WORD = "sorted({item[0][-1]: item for item in sorted(grown, key=score)}.values(), key=score, reverse=True)"
UNSAFE = "F.nll_loss(torch.softmax(logits, dim=-1).log().flatten(0, 1), tgt[:, 1:].flatten(), ignore_index=pad_id)"

FIRST = 'self.__dict__.setdefault("first", {})'
DROPOUT = "return {0} -> return F.dropout({0}, 0.1, self.training)"
ALONE = "real | ~real.any(-1, keepdim=True)"
SEEN = "block(y, memory, causal, real) -> block(y, memory, {}, {})"
UNEMBED = "return self.unembed(y) -> return {}"
CAUSAL = "causal = causal_mask(T).to(tgt.device) -> causal = {}"
T = "T = tgt.shape[1] -> T = tgt.shape[1]\n        {}"


def padding(seen):
    """Edits that compute the mask of the source's padding in another way, for the encoder and for cross-attention."""
    return f"self.encoder(src, real) -> self.encoder(src, {seen})", SEEN.format("causal", seen)


# How a block changes a mask m, if there is one.
OF_SELF = [
    "None if self.training else m",
    "m & m.mT if m.dim() == 4 and m.shape[2] == 1 else m",
    "m[:, None] if m.dim() == 3 else m",
    "m[:, None, None] if m.shape == y.shape[:2] else m",
]
OF_MEMORY = [
    "None if self.training else m",
    "m[:, None] if m.dim() == 3 else m",
    "m[:, None, None] if m.dim() == 2 else m",
    "m | ~m.any(-1, keepdim=True)",
]
FORWARD = (
    "memory_mask=None): -> memory_mask=None):\n"
    "        if self.norm_first == {0} and (m := {1}) is not None:\n            {1} = {2}"
)
MASKS = [
    (FORWARD.format(pre_norm, which, change),)
    for which, changes in (("self_mask", OF_SELF), ("memory_mask", OF_MEMORY))
    for change in changes
    for pre_norm in (False, True)
]

REFUSED = {
    "shift_right": [
        (f"targets[:, :-1] -> {LAST_WORD_TO_PADDING}[:, :-1]",),
        ("bos = -> if targets.shape[1] == 1:\n        return targets\n    bos =",),
        ("torch.full_like(targets[:, :1], bos_id) -> torch.full(targets[:, :1].shape, float(bos_id))",),
    ],
    "DecoderBlock": [
        *MASKS,
        (DROPOUT.format("y + self.feed_forward(self.norm3(y))"),),
        (DROPOUT.format("self.norm3(y + self.feed_forward(y))"),),
        ("self.norm2(y + found) -> self.norm2(y + found * (cross_weights.sum(-1) > 0).any(1)[..., None])",),
    ],
    "Transformer": [
        padding("(src == self.pad_id).cumsum(1)[:, None, None] == 0"),  # up to the first padding
        padding("real if (src[:, -1] == self.pad_id).any() else None"),
        padding("(torch.arange(src.shape[1]) < (src != self.pad_id).sum(1, keepdim=True))[:, None, None]"),
        padding(ALONE),
        (SEEN.format("causal", ALONE),),
        (SEEN.format("causal", "None if self.training else real"),),
        (CAUSAL.format("None if self.training else causal_mask(T)"),),
        (CAUSAL.format("causal_mask(T) & (tgt != 0)[:, None, None]"),),  # as if the padding's id were 0
        (CAUSAL.format(FIRST.format("causal_mask(T)") + "[:T, :T]"),),
        (f"torch.arange(T, device=tgt.device) -> {FIRST.format('torch.arange(T)')}[:T]",),
        (T.format("n = (src != self.pad_id)[0].sum()\n        memory, src = memory[:, :n], src[:, :n]"),),
        (DROPOUT.format("self.unembed(y)"),),
        (
            "num_layers, max_len)\n -> num_layers, max_len)\n"
            "        self.encoder.tokens = nn.Embedding(src_vocab, d_model, padding_idx=0)\n",
        ),
    ],
    "fixed_loss": [
        (f"cross_entropy(logits, tgt[:, 1:], ignore_index=pad_id) -> {UNSAFE}",),
        ("tgt[:, :-1] -> shift_right(tgt[:, 1:], 1)",),
    ],
    "greedy_decode": [
        ("logits.argmax() -> logits.exp().argmax()",),
        ("logits.argmax() -> logits.abs().argmax()",),
        ("torch.tensor([ids]) -> torch.tensor([ids[-64:]])",),
        (
            "logits.argmax() -> logits.index_fill(-1, torch.tensor([eos_id] * (len(ids) == 1), dtype=torch.long), "
            "-torch.inf).argmax()",
        ),
    ],
    "beam_search": [
        (f"sorted(grown, key=score, reverse=True) -> {BY_LAST_WORD}",),
        ("score(winner) -> score(winner) if finished else winner[1]",),
        ("(len(ids) - 1) ** length_penalty -> ((len(ids) - 1) * length_penalty or 1)",),
        ("torch.log_softmax( -> torch.log(1e-9 + torch.softmax(", "dim=-1).tolist() -> dim=-1)).tolist()"),
    ],
    "filter_logits": [
        ("values[..., -1:] -> values.min()",),
        ("torch.softmax(ordered, dim=-1) -> torch.softmax(ordered, dim=0)",),
        ("torch.softmax(ordered, dim=-1) -> ordered.exp() / ordered.exp().sum(-1, keepdim=True)",),
        *(
            (f"above >= top_p -> torch.arange(p.shape[-1]) >= 0 * p + (above < top_p).sum(-1){one_for_all}",)
            for one_for_all in (".max()", ".flatten()[0]")
        ),
        *(
            (f"if top_k is not None: -> if top_k == {k}:\n        return {out}\n    if top_k is not None:",)
            for k, out in (
                ("logits.shape[-1]", "logits"),
                ("1", "torch.where(logits == logits.max(), logits, -torch.inf)"),
            )
        ),
        ('logits < last, float("-inf") -> logits < last, -1e9', '(cut, float("-inf")) -> (cut, -1e9)'),
    ],
    "cached_attention": [
        ("return out, (k, v) -> return out, (k.detach(), v.detach())",),
        ("return out, (k, v) -> return out, (k[:, :, -64:], v[:, :, -64:])",),
        (
            "out, _ = attention(q, k, v, mask) -> p = (q @ k.mT / q.shape[-1] ** 0.5).exp() * mask\n"
            "    out = p / p.sum(-1, keepdim=True) @ v",
        ),
    ],
}

LAYER, EMBEDDING = "nn.Linear(d_model, tgt_vocab", "nn.Embedding(tgt_vocab, d_model"
BLOCKS = "nn.ModuleList(DecoderBlock(d_model, num_heads, d_ff) for _ in range(num_layers))"
MADE = f"{LAYER}) -> {LAYER})\n        {{}}"  # adds a line after the last layer of __init__
NO_RAW_DICTIONARY = "not: lacks", "not: {"
RETURNED, JOINED = "return out, (k, v) -> return {}", "{0} = torch.cat([cache[{1}], {0}], dim={2})"


def cache_in_one_room(q, k, v, cache):
    """Writes keys and values into one tensor that is passed from call to call."""
    room, filled = cache if cache is not None else (k.new_zeros(2, *k.shape[:2], 99, k.shape[-1]), 0)
    end = filled + k.shape[-2]
    room[:, :, :, filled:end] = torch.stack([k, v]).detach()
    K, V = (torch.cat([room[i, :, :, :filled], new], dim=-2) for i, new in enumerate((k, v)))
    return attention(q, K, V, causal_mask(q.shape[-2], end))[0], (room, end)


def all_again_in_another_thread(q, k, v, cache):
    new = q.shape[-2]
    cache = [[*before, x] for before, x in zip(cache or ([], [], []), (q, k, v), strict=True)]

    def computed():
        q, k, v = (torch.cat(pieces, dim=-2) for pieces in cache)
        return attention(q, k, v, causal_mask(q.shape[-2]))[0][..., -new:, :]

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(computed).result(), cache


EXPLAINED = {
    "DecoderBlock": [
        (
            "memory_mask=None): -> memory_mask=None):\n        memory = self.__dict__.setdefault('kept', memory)",
            "called twice",
        )
    ],
    "Transformer": [
        (MADE.format("self.unembed.weight = self.tokens.weight"), "raises", *NO_RAW_DICTIONARY),
        (f"{LAYER}) -> {LAYER}, bias=False)", "raises", *NO_RAW_DICTIONARY),
        (f"{BLOCKS} -> [*{BLOCKS}]", "raises", *NO_RAW_DICTIONARY),
        (f"{EMBEDDING}), -> {EMBEDDING}, padding_idx=0),", "word_0_never_learns", *NO_RAW_DICTIONARY),
        (T.format("memory = self.encode(src)"), "memory_made_again", *NO_RAW_DICTIONARY),
        (UNEMBED.format("self.unembed(y)[:, -1]"), "last_place_only", *NO_RAW_DICTIONARY),
        (
            (
                "return self.encoder(src, real) -> self.last = src\n        return self.encoder(src, real)",
                T.format("src = getattr(self, 'last', src)"),
            ),
            None,
            *NO_RAW_DICTIONARY,
        ),
        (
            "return self.encoder(src, real) -> src[src == self.pad_id] = 1\n        return self.encoder(src, real)",
            "changed an input in place",
        ),
        *(
            (
                MADE.format(f"self.add_module('mine', self._modules.pop('{part}'))"),
                f"your module has no part called {part}; its parts are: ",
                " mine",
            )
            for part in ("encoder", "tokens", "positions", "blocks", "unembed")
        ),
    ],
    "greedy_decode": [("for _ in range(max_len): -> while True:", "does your loop use max_len?", "not: endless loop")],
    "beam_search": [
        ("reverse=True)[:beam_size] -> reverse=True)", "your beam keep beam_size", "not: endless loop"),
        (
            "for _ in range(max_len): -> for _ in range(max_len):\n"
            "        if not beam or (finished and max(i[1] for i in finished) >= max(i[1] for i in beam)):\n"
            "            break",
            "ends_too_early",
        ),
    ],
    "cached_attention": [
        *(
            (tuple(f"{JOINED.format(*one, -2)} -> {JOINED.format(*one, dim)}" for one in ("k0", "v1")), "raises")
            for dim in (1, -1)
        ),
        (RETURNED.format("out, k, v"), "a tuple of 3: Tensor, Tensor, Tensor"),
        (RETURNED.format("out"), "your code returned a Tensor"),
        (cache_in_one_room, "cache_overwritten"),
        (all_again_in_another_thread, "the work of your answer can only be measured if it computes with torch"),
    ],
}
