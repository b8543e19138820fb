"""Wrong answers to the exercises of lesson 10 that have no name in its key."""

LAST_WORD_TO_PADDING = "targets.masked_fill((targets != 0) & ((targets != 0).flip(1).cumsum(1).flip(1) == 1), 0)"
BY_LAST_WORD = "sorted({item[0][-1]: item for item in sorted(grown, key=score)}.values(), key=score, reverse=True)"
UNSAFE = "F.nll_loss(torch.softmax(logits, dim=-1).log().flatten(0, 1), tgt[:, 1:].flatten(), ignore_index=pad_id)"

REFUSED = {
    "shift_right": [
        (f"targets[:, :-1] -> {LAST_WORD_TO_PADDING}[:, :-1]",),
        ("bos = -> if targets.shape[1] == 1:\n        return targets\n    bos =",),
        ("torch.full_like(targets[:, :1], bos_id) -> torch.full(targets[:, :1].shape, float(bos_id))",),
    ],
    "DecoderBlock": [("norm_first=False -> norm_first=True",)],
    "fixed_loss": [
        (f"cross_entropy(logits, tgt[:, 1:], ignore_index=pad_id) -> {UNSAFE}",),
        ("tgt[:, :-1] -> shift_right(tgt[:, 1:], 1)",),
    ],
    "greedy_decode": [
        ("logits.argmax() -> logits.exp().argmax()",),
        ("logits.argmax() -> logits.abs().argmax()",),
        (
            "logits.argmax() -> logits.index_fill(-1, torch.tensor([eos_id] * (len(ids) == 1), dtype=torch.long), "
            "-torch.inf).argmax()",
        ),
    ],
    "beam_search": [
        (f"sorted(grown, key=score, reverse=True) -> {BY_LAST_WORD}",),
        ("score(winner) -> score(winner) if finished else winner[1]",),
        ("(len(ids) - 1) ** length_penalty -> ((len(ids) - 1) * length_penalty or 1)",),
    ],
    "filter_logits": [
        ("values[..., -1:] -> values.min()",),
        ("torch.softmax(ordered, dim=-1) -> torch.softmax(ordered, dim=0)",),
        ('logits < last, float("-inf") -> logits < last, -1e9', '(cut, float("-inf")) -> (cut, -1e9)'),
    ],
    "cached_attention": [("return out, (k, v) -> return out, (k.detach(), v.detach())",)],
}
