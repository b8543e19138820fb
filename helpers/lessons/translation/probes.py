"""Lesson 11. Only on numbers: the views and the metric. Nothing of it runs beside learner code."""

from __future__ import annotations

from collections import Counter

import torch

from helpers.checking.metrics import Score, metric
from helpers.checking.views import view


@view
def batch_without_padding(args, kwargs, output):
    """A batch as it was returned, but tgt_in is 0 wherever tgt_out is padding: nobody hears what stands there."""
    pad_id = kwargs["pad_id"] if "pad_id" in kwargs else args[1]
    if not isinstance(output, dict):
        return output
    tgt_in, tgt_out = output.get("tgt_in"), output.get("tgt_out")
    both = isinstance(tgt_in, torch.Tensor) and isinstance(tgt_out, torch.Tensor)
    if not both or tgt_in.shape != tgt_out.shape:
        return output
    return output | {"tgt_in": tgt_in.masked_fill(tgt_out == pad_id, 0)}


FULL, ENOUGH, LEAST = 0.99, 0.995, 0.5  # exact sentences: all points, the check's tick, the first point
MARKS = ("<pad>", "<bos>", "<eos>")


@metric
def exact_translations(truths, outputs):
    """The share of sentences that come out word for word: all points from 99 %, none below 50 %."""
    pairs = [(a, b) for truth, output in zip(truths, outputs, strict=True) for a, b in zip(truth, output, strict=True)]
    right, total = sum(a == b.strip() for a, b in pairs), len(pairs)
    share = min(1.0, max(0.0, (right / total - LEAST) / (FULL - LEAST)))
    passed = right / total >= ENOUGH
    words = f"{right} of {total} unseen sentences exactly right"
    if not passed:
        truth, output = next((a, b) for a, b in pairs if a != b.strip())
        shown = " ".join(output.split())[:100]
        words += f" ({100 * ENOUGH:g} % are asked for); expected “{truth}”, yours “{shown}”"
    return Score(share, passed, words, None if passed else _what_went_wrong(pairs))


def _what_went_wrong(pairs) -> str | None:
    said = [(truth.split(), output.split()) for truth, output in pairs]
    if sum(any(mark in words for mark in MARKS) for _, words in said) > len(said) / 2:
        return "marks_left_in"
    longer = [words[: len(truth)] == truth and len(words) > len(truth) for truth, words in said]
    if sum(longer) > len(said) / 4:
        return "goes_on_after_the_end"
    truths, outputs = zip(*pairs, strict=True)
    seen = {
        "first_word_missing": sum(words == truth[1:] for truth, words in said),
        "last_word_missing": sum(words == truth[:-1] for truth, words in said),
        "without_spaces": sum("".join(truth) == "".join(words) and truth != words for truth, words in said),
        "another_order": sum((Counter(truths) & Counter(outputs)).values()) - sum(map(str.__eq__, truths, outputs)),
    }
    for name, times in seen.items():
        if times > len(said) / 2:
            return name
    right = sum(a == b for truth, words in said for a, b in zip(truth, words, strict=False))
    if right < 0.1 * sum(len(truth) for truth, _ in said):
        return "not_trained"
    return None
