"""Wrong answers to the exercises of lesson 11 that have no name in its key."""

SPLIT = "text.split() if isinstance(text, str)"

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
    "noam_lr": [("warmup**-1.5 -> warmup**-1",), ("step**-0.5 -> step**0.5",)],
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
        (f"{SPLIT} -> text.lower().{SPLIT.removeprefix('text.')}",),
        (f'{SPLIT} -> text.split(" ") if isinstance(text, str)',),
        ("made[n] += sum(mine.values()) -> made[n] += max(1, sum(mine.values()))",),
    ],
}
