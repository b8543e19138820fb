# Made by `course build` from solutions/11_translation/11_translation.py; never edited here.
"""The finished blocks of lesson 11: Translation: train the full model."""

from collections import Counter
import math

import torch


def make_batch(pairs, pad_id, bos_id, eos_id):
    """Sentence pairs as the three tensors that a training step needs, padded on the right.

    pairs: list of (source ids, target ids), lists of int without special tokens; pad_id, bos_id, eos_id: int
    -> {"src": LongTensor (B, T_s), "tgt_in": LongTensor (B, T_t), "tgt_out": LongTensor (B, T_t)}.
    """

    def padded(rows):
        longest = max(len(row) for row in rows)
        return torch.tensor([[*row, *[pad_id] * (longest - len(row))] for row in rows])  # (B, T)

    return {
        "src": padded([src for src, _ in pairs]),
        "tgt_in": padded([[bos_id, *tgt] for _, tgt in pairs]),
        "tgt_out": padded([[*tgt, eos_id] for _, tgt in pairs]),
    }


def token_accuracy(logits, targets, pad_id):
    """The fraction of targets other than pad_id where the most likely word is the target.

    logits (..., V), float32 or float64; targets LongTensor (...), at least one is not pad_id ->
    float, 0 to 1.
    """
    mask = targets != pad_id  # (...)
    right = logits.argmax(dim=-1) == targets  # (...)
    return right[mask].float().mean().item()


def noam_lr(step, d_model, warmup):
    """The learning rate of Vaswani et al. (2017), section 5.3: linear warm-up, then decay
    with the inverse square root of the step.

    step (from 1), d_model, warmup: int -> float.
    """
    return d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)


def label_smoothed_loss(logits, targets, smoothing, pad_id):
    """Cross-entropy against targets that divide `smoothing` among all V words, mean over the targets
    that are not padding.

    logits (..., V), float32 or float64; targets LongTensor (...), padding where they are pad_id;
    smoothing: 0 to 1 -> scalar, same dtype.
    """
    log_p = torch.log_softmax(logits, dim=-1)  # (..., V)
    true = log_p.gather(-1, targets.unsqueeze(-1)).squeeze(-1)  # (...), of the target word
    even = log_p.mean(dim=-1)  # (...), mean over all words
    losses = -(1 - smoothing) * true - smoothing * even  # (...)
    return losses[targets != pad_id].mean()


def alignment(cross_weights):
    """For each target position the source position with the largest attention weight, averaged over
    the heads.

    cross_weights (H, T_t, T_s), float32 or float64 -> LongTensor (T_t,).
    """
    return cross_weights.mean(dim=0).argmax(dim=-1)  # (T_t,)


def corpus_bleu(candidates, references):
    """BLEU-4 of Papineni et al. (2002), one reference each: counts over all sentences, brevity
    penalty, no smoothing.

    candidates, references: lists of sentences, each a list of str, or a str that is split at white
    space -> float, 0 to 100.
    """
    found, made = [0] * 4, [0] * 4
    length = wanted = 0
    for pair in zip(candidates, references, strict=True):
        candidate, reference = (text.split() if isinstance(text, str) else list(text) for text in pair)
        length, wanted = length + len(candidate), wanted + len(reference)
        for n in range(4):
            mine = Counter(zip(*(candidate[i:] for i in range(n + 1)), strict=False))
            theirs = Counter(zip(*(reference[i:] for i in range(n + 1)), strict=False))
            found[n] += sum((mine & theirs).values())
            made[n] += sum(mine.values())
    if min(found) == 0:
        return 0.0
    precision = math.exp(sum(math.log(f / m) for f, m in zip(found, made, strict=True)) / 4)
    return 100 * min(1.0, math.exp(1 - wanted / length)) * precision
