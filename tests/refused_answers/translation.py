"""Wrong answers to the exercises of lesson 11 that are not among its key's known mistakes."""

import math
from collections import Counter

SPLIT = "text.split() if isinstance(text, str)"

GRAMS = [f"Counter(zip(*({side}[i:] for i in range(n + 1)), strict=False))" for side in ("candidate", "reference")]


def clipped_over_all(candidates, references):
    split = [[x.split() if isinstance(x, str) else x for x in texts] for texts in (candidates, references)]
    score = 1
    for n in range(1, 5):
        mine, theirs = (Counter(tuple(x[i : i + n]) for x in s for i in range(len(x) - n + 1)) for s in split)
        if not mine & theirs:
            return 0.0
        score *= sum((mine & theirs).values()) / sum(mine.values())
    length, wanted = (sum(map(len, s)) for s in split)
    return 100 * min(1, math.exp(1 - wanted / length)) * score**0.25


def alike(change):
    """Edits that treat n-grams as equal if `change` maps them to the same value."""
    return tuple(f"{grams} -> Counter(map({change}, {grams.removeprefix('Counter(')})" for grams in GRAMS)


REFUSED = {
    "make_batch": [
        ("[*row, *[pad_id] * -> [*row, *[eos_id] *",),
        (
            "* (longest - len(row))] for row in rows] -> * (longest - len(row))]"
            " if rows.index(row) == i else [pad_id] * longest for i, row in enumerate(rows)]",
        ),
        ("def padded(rows): -> pairs = sorted(pairs, key=lambda pair: len(pair[0]))\n    def padded(rows):",),
    ],
    "token_accuracy": [
        ("mask = targets != pad_id -> mask = targets > pad_id",),
        ("mask = targets != pad_id -> mask = (targets != pad_id) & (targets != 2)",),
        ("mask = targets != pad_id -> mask = (targets != pad_id).long().cumprod(dim=-1).bool()",),
        (".mean().item() -> .mean()",),
    ],
    "noam_lr": [("warmup**-1.5 -> warmup**-1",)],
    "label_smoothed_loss": [
        ("losses[targets != pad_id].mean() -> losses[(targets != pad_id) & (losses != 0)].mean()",),
        ("torch.log_softmax(logits, dim=-1) -> logits - logits.exp().sum(dim=-1, keepdim=True).log()",),
        ("torch.log_softmax(logits, dim=-1) -> (torch.softmax(logits, dim=-1) + 1e-9).log()",),
        ("losses[targets != pad_id].mean() -> losses[targets != pad_id].mean().item()",),
        ("losses[targets != pad_id].mean() -> losses.sum() / (targets != pad_id).sum()",),
    ],
    "alignment": [
        ("argmax(dim=-1) -> argmax(dim=-1 if cross_weights.shape[1] != cross_weights.shape[2] else 0)",),
        ("cross_weights.mean(dim=0) -> cross_weights.prod(dim=0)",),
        (".argmax(dim=-1) -> .argmax(dim=-1).tolist()",),
    ],
    "corpus_bleu": [
        clipped_over_all,
        alike('"".join'),
        alike("lambda gram: tuple(sorted(gram))"),
        alike("lambda gram: tuple(map(str.lower, gram))"),
        (f"{SPLIT} -> text.replace(\"'\", ' ').{SPLIT.removeprefix('text.')}",),
        (f"{SPLIT} -> text.lower().{SPLIT.removeprefix('text.')}",),
        (f'{SPLIT} -> text.split(" ") if isinstance(text, str)',),
        ("made[n] += sum(mine.values()) -> made[n] += max(1, sum(mine.values()))",),
    ],
}

LOSSES = "losses = -(1 - smoothing) * true - smoothing * even"
SPREAD = "-(torch.full_like(log_p, {}).scatter(-1, targets[..., None], 1 - smoothing){} * log_p).sum(-1)"
NOT_PAD = "(torch.arange(log_p.shape[-1]) != pad_id)"
ASKED = "return right[mask].float().mean().item()"

EXPLAINED = {
    "make_batch": [
        ("padded([[bos_id, *tgt] for -> padded([tgt for", "begins_with_the_first_word"),
        (
            "padded([[*tgt, eos_id] for _, tgt in pairs]) -> torch.nn.functional.pad("
            "padded([tgt for _, tgt in pairs]), (0, 1), value=eos_id)",
            "eos_behind_the_padding",
            "tgt_out: ",
            "not: tgt_in: ",
        ),
        ("def padded(rows): -> pairs = [(src[:50], tgt[:50]) for src, tgt in pairs]\n\n    def padded(rows):",),
    ],
    "token_accuracy": [
        (f"{ASKED} -> return right.sum().item() / mask.sum().item()", "padding_among_the_right"),
        ("targets != pad_id -> targets != 0", "padding_is_zero"),
    ],
    "noam_lr": [
        (
            (
                "d_model**-0.5 -> d_model**-1 / 2",
                "min(step**-0.5 -> min(step**-1 / 2",
                "warmup**-1.5 -> warmup**-3 / 2",
            ),
            "minus_a_half_undone",
        )
    ],
    "label_smoothed_loss": [
        (f"{LOSSES} -> losses = {SPREAD.format('smoothing / log_p.shape[-1]', '')}", "true_word_overwritten"),
        (
            f"{LOSSES} -> losses = {SPREAD.format('smoothing / (log_p.shape[-1] - 2)', f' * {NOT_PAD}')}",
            "spread_over_v_minus_2",
        ),
        ("torch.log_softmax(logits, dim=-1) -> torch.softmax(logits, dim=-1).log()", "log_of_softmax"),
    ],
    "alignment": [("mean(dim=0).argmax(dim=-1) -> argmax(dim=-1).float().mean(dim=0).long()", "places_averaged")],
    "corpus_bleu": [("return 0.0 -> return 1e-3 if made[3] else 0.0",)],
}
