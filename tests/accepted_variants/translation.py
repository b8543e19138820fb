"""Other right answers to the exercises of lesson 11, as competent people write them."""

import collections
import itertools
import math

import torch
import torch.nn.functional as F
from torch.nn.utils.rnn import pad_sequence


def batch_by_pad_sequence(pairs, pad_id, bos_id, eos_id):
    def pad(rows):
        return pad_sequence([torch.tensor(r, dtype=torch.long) for r in rows], batch_first=True, padding_value=pad_id)

    return {
        "src": pad([s for s, _ in pairs]),
        "tgt_in": pad([[bos_id] + t for _, t in pairs]),
        "tgt_out": pad([t + [eos_id] for _, t in pairs]),
    }


def batch_by_shift(pairs, pad_id, bos_id, eos_id):
    """Slices one tensor for both targets. Then tgt_in contains eos before padding, which changes no loss."""
    framed = [[bos_id, *t, eos_id] for _, t in pairs]
    width = max(map(len, framed))
    tgt = torch.tensor([row + [pad_id] * (width - len(row)) for row in framed])
    columns = itertools.zip_longest(*(s for s, _ in pairs), fillvalue=pad_id)
    return {"tgt_in": tgt[:, :-1], "tgt_out": tgt[:, 1:], "src": torch.tensor(list(columns)).T}


def batch_by_nested(pairs, pad_id, bos_id, eos_id):
    out = {}
    for name, rows in (
        ("src", [list(p[0]) for p in pairs]),
        ("tgt_in", [[bos_id, *p[1]] for p in pairs]),
        ("tgt_out", [[*p[1], eos_id] for p in pairs]),
    ):
        nested = torch.nested.nested_tensor([torch.tensor(row) for row in rows])
        out[name] = nested.to_padded_tensor(pad_id)
    return out


def accuracy_by_sums(logits, targets, pad_id):
    mask = targets.ne(pad_id)
    return ((logits.argmax(-1) == targets) & mask).sum().item() / mask.sum().item()


def accuracy_by_loops(logits, targets, pad_id):
    right = asked = 0
    for row, target in zip(logits.reshape(-1, logits.shape[-1]), targets.flatten().tolist(), strict=True):
        if target != pad_id:
            asked += 1
            right += int(row.argmax()) == target
    return right / asked


def accuracy_by_view_in_float32(logits, targets, pad_id):
    best, flat = logits.float().view(-1, logits.shape[-1]).topk(1).indices[:, 0], targets.view(-1)
    weights = (flat != pad_id).float()
    return float(((best == flat).float() * weights).sum() / weights.sum())


def rate_by_logs(step, d_model, warmup):
    return math.exp(-0.5 * math.log(d_model) + min(-0.5 * math.log(step), math.log(step) - 1.5 * math.log(warmup)))


def rate_by_peak(step, d_model, warmup):
    peak = (d_model * warmup) ** -0.5
    return peak * min(step / warmup, (warmup / step) ** 0.5)


def rate_in_double_tensors(step, d_model, warmup):
    s = torch.tensor(float(step), dtype=torch.float64)
    return float(d_model**-0.5 * torch.minimum(s.rsqrt(), s * warmup**-1.5))


def loss_by_nll(logits, targets, smoothing, pad_id):
    log_p = logits.log_softmax(-1).flatten(0, -2)
    targets = targets.flatten()
    true = F.nll_loss(log_p, targets, ignore_index=pad_id)
    even = -log_p[targets != pad_id].mean()
    return (1 - smoothing) * true + smoothing * even


def loss_by_logsumexp(logits, targets, smoothing, pad_id):
    mask = targets != pad_id
    z, t = logits[mask], targets[mask]
    norm = torch.logsumexp(z, dim=-1)
    true = z[torch.arange(len(t)), t]
    return (norm - (1 - smoothing) * true - smoothing * z.mean(-1)).mean()


def loss_by_one_hot(logits, targets, smoothing, pad_id):
    V = logits.shape[-1]
    q = F.one_hot(targets, V).to(logits.dtype) * (1 - smoothing) + smoothing / V
    losses = -(q * torch.log_softmax(logits, -1)).sum(-1).reshape(-1)
    return losses[targets.view(-1) != pad_id].mean()


def align_by_view(cross_weights):
    H, T_t, T_s = cross_weights.shape
    return cross_weights.view(H, T_t * T_s).mean(0).view(T_t, T_s).topk(1, dim=-1).indices.squeeze(-1)


def align_by_loops(cross_weights):
    H, T_t, T_s = cross_weights.shape
    rows = [[sum(float(cross_weights[h, t, s]) for h in range(H)) for s in range(T_s)] for t in range(T_t)]
    return torch.tensor([row.index(max(row)) for row in rows])


def _words(text):
    return text.split() if isinstance(text, str) else text


def _grams(words, n):
    return [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]


def bleu_by_lists(candidates, references):
    candidates, references = [_words(c) for c in candidates], [_words(r) for r in references]
    precisions = []
    for n in (1, 2, 3, 4):
        right = total = 0
        for c, r in zip(candidates, references, strict=True):
            left = _grams(r, n)
            for gram in _grams(c, n):
                total += 1
                if gram in left:
                    left.remove(gram)
                    right += 1
        if right == 0:
            return 0.0
        precisions.append(right / total)
    c, r = sum(map(len, candidates)), sum(map(len, references))
    penalty = 1.0 if c > r else math.exp(1 - r / c)
    return 100 * penalty * math.prod(precisions) ** 0.25


def bleu_by_numpy_mean(candidates, references):
    c, r = [_words(x) for x in candidates], [_words(x) for x in references]
    p = []
    for n in range(1, 5):
        pairs = [
            (collections.Counter(_grams(a, n)), collections.Counter(_grams(b, n))) for a, b in zip(c, r, strict=True)
        ]
        made = sum(sum(a.values()) for a, _ in pairs)
        p.append(sum(sum((a & b).values()) for a, b in pairs) / made if made else 0.0)
    if min(p) <= 0:
        return 0.0
    ratio = sum(map(len, c)) / sum(map(len, r))
    return float(100 * torch.tensor(p, dtype=torch.float64).log().mean().exp()) * math.exp(min(0, 1 - 1 / ratio))


def bleu_by_strings(candidates, references):
    joined = [x if isinstance(x, str) else " ".join(x) for x in candidates]
    return bleu_by_lists(joined, [x if isinstance(x, str) else " ".join(x) for x in references])


VARIANTS = {
    "make_batch": (batch_by_pad_sequence, batch_by_shift, batch_by_nested),
    "token_accuracy": (accuracy_by_sums, accuracy_by_loops, accuracy_by_view_in_float32),
    "noam_lr": (rate_by_logs, rate_by_peak, rate_in_double_tensors),
    "label_smoothed_loss": (loss_by_nll, loss_by_logsumexp, loss_by_one_hot),
    "alignment": (
        lambda cross_weights: torch.einsum("hts->ts", cross_weights).argmax(1),
        align_by_loops,
        align_by_view,
    ),
    "corpus_bleu": (bleu_by_lists, bleu_by_numpy_mean, bleu_by_strings),
}
