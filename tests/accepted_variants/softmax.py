"""Other right answers to the exercises of lesson 6."""

import math

import torch
import torch.nn.functional as F


def softmax_through_log(x, dim=-1):
    m = torch.max(x, dim=dim, keepdim=True)[0]
    return torch.exp(x - (m + torch.log(torch.sum(torch.exp(x - m), dim=dim, keepdim=True))))


def softmax_by_loop(x, dim=-1):
    turned = x.movedim(dim, -1)
    rows = []
    for row in turned.reshape(-1, turned.shape[-1]):
        top = max(row.tolist())
        e = [math.e ** (s - top) for s in row]
        rows.append(torch.stack([value / sum(e) for value in e]))
    return torch.stack(rows).reshape(turned.shape).movedim(-1, dim)


def softmax_in_double(x, dim=-1):
    wide = x.double()
    e = (wide - wide.max(dim=dim, keepdim=True).values).exp()
    return (e / e.sum(dim=dim, keepdim=True)).to(x.dtype)


def heads_by_broadcasting(q, k):
    scores = (q.unsqueeze(-3) * k.unsqueeze(-4)).sum(-1) * k.shape[-1] ** -0.5
    e = (scores - scores.amax(-2, keepdim=True)).exp()
    return e / e.sum(-2, keepdim=True)


def heads_by_torch(q, k):
    q, k = q.transpose(-3, -2), k.transpose(-3, -2)
    one_of_each = torch.eye(k.shape[-2], dtype=k.dtype).expand(*k.shape[:-1], k.shape[-2])
    return F.scaled_dot_product_attention(q, k, one_of_each).movedim(-3, -1)


def above_zero(temperature):
    if not temperature > 0:
        raise ValueError(f"{temperature} is no temperature")


def temperature_inverse(x, temperature):
    if not 0 < temperature < math.inf:
        raise ValueError("no temperature", temperature)
    return (x * (1 / temperature)).softmax(-1)


def temperature_after_shift(x, temperature):
    above_zero(temperature)
    e = torch.exp((x - x.max(dim=-1, keepdim=True).values) / temperature)
    return torch.einsum("...i,...->...i", e, 1 / e.sum(-1))


def temperature_through_log(x, temperature):
    above_zero(temperature)
    return torch.log_softmax(torch.div(x, temperature), dim=-1).exp()


def log_softmax_by_max_values(x, dim=-1):
    m = x.max(dim, keepdim=True).values.detach()
    total = torch.exp(x - m).sum(dim, keepdim=True)
    return x - m - torch.log(total)


def log_softmax_by_loop(x, dim=-1):
    turned = x.movedim(dim, -1)
    rows = []
    for row in turned.reshape(-1, turned.shape[-1]):
        top = row[row.argmax()]
        total = sum(torch.exp(s - top) for s in row)
        rows.append(torch.stack([s - top - total.log() for s in row]))
    return torch.stack(rows).reshape(turned.shape).movedim(-1, dim)


def log_softmax_with_log1p(x, dim=-1):
    m = x.amax(dim=dim, keepdim=True)
    return (x - m) - torch.log1p((x - m).exp().sum(dim=dim, keepdim=True) - 1)


def loss_by_logsumexp(logits, targets, ignore_index=-100):
    mask = targets != ignore_index
    logits, targets = logits[mask], targets[mask]
    return (torch.logsumexp(logits, dim=-1) - logits.take_along_dim(targets[:, None], -1).squeeze(-1)).mean()


def loss_by_one_hot(logits, targets, ignore_index=-100):
    weight = (targets != ignore_index).to(logits.dtype)
    truth = F.one_hot(targets.where(weight.bool(), 0), logits.shape[-1]).to(logits.dtype)
    return -torch.einsum("...v,...v,...->", truth, logits.log_softmax(-1), weight) / weight.sum()


def loss_flat_selected(logits, targets, ignore_index=-100):
    logits, targets = logits.flatten(0, -2) if logits.dim() > 1 else logits[None], targets.reshape(-1)
    index = (targets != ignore_index).nonzero().squeeze(1)
    log_p = torch.nn.LogSoftmax(dim=1)(logits[index])
    return log_p[range(len(index)), targets[index]].neg().mean()


def backward_by_table(p, grad):
    J = torch.diag_embed(p) - p.unsqueeze(-1) * p.unsqueeze(-2)
    return (J @ grad.unsqueeze(-1)).squeeze(-1)


def backward_by_loops(p, grad):
    out = []
    for row, g in zip(p.reshape(-1, p.shape[-1]), grad.reshape(-1, p.shape[-1]), strict=True):
        n = len(row)
        slopes = [sum(g[i] * row[i] * (int(i == j) - row[j]) for i in range(n)) for j in range(n)]
        out.append(torch.stack(slopes))
    return torch.stack(out).reshape(p.shape)


def backward_by_pairs(p, grad):
    differences = grad.unsqueeze(-1) - grad.unsqueeze(-2)
    return p * (differences * p.unsqueeze(-2)).sum(-1)


def loss_backward_by_one_hot(logits, targets):
    truth = F.one_hot(targets, logits.shape[-1]).to(logits.dtype)
    return (torch.softmax(logits, -1) - truth) / targets.numel()


def loss_backward_flat(logits, targets):
    p = torch.log_softmax(logits.reshape(-1, logits.shape[-1]), dim=-1).exp()
    p[torch.arange(len(p)), targets.reshape(-1)] -= 1
    return (p / len(p)).reshape(logits.shape)


def loss_backward_by_eye(logits, targets):
    count = math.prod(targets.shape)
    return (logits.softmax(-1) - torch.eye(logits.shape[-1], dtype=logits.dtype)[targets]).div(count)


def online_with_running_mean(score_blocks, value_blocks):
    log_total, mean = None, None
    for s, v in zip(score_blocks, value_blocks, strict=True):
        block_log = torch.logsumexp(s, dim=-1, keepdim=True)
        block_mean = (torch.softmax(s, dim=-1).unsqueeze(-2) @ v).squeeze(-2)
        if mean is None:
            log_total, mean = block_log, block_mean
        else:
            share = torch.sigmoid(block_log - log_total)
            mean = mean + share * (block_mean - mean)
            log_total = torch.logaddexp(log_total, block_log)
    return mean


def online_score_by_score(score_blocks, value_blocks):
    m = l = o = None
    for s, v in zip(score_blocks, value_blocks, strict=True):
        for i in range(s.shape[-1]):
            one, value = s[..., i : i + 1], v[..., i, :]
            if m is None:
                m, l, o = one, torch.ones_like(one), value
                continue
            top = torch.max(m, one)
            l = l * (m - top).exp() + (one - top).exp()
            o = o * (m - top).exp() + (one - top).exp() * value
            m = top
    return o / l


def online_from_the_end(score_blocks, value_blocks):
    assert all(s.shape[-1] == v.shape[-2] for s, v in zip(score_blocks, value_blocks, strict=True))
    m, l, o = torch.tensor(-1e30, dtype=score_blocks[0].dtype), 0, 0
    for s, v in reversed(list(zip(score_blocks, value_blocks, strict=True))):
        m_new = torch.maximum(m, s.max(dim=-1, keepdim=True)[0])
        p = torch.exp(s - m_new)
        l = torch.exp(m - m_new) * l + p.sum(dim=-1, keepdim=True)
        o = torch.exp(m - m_new) * o + torch.matmul(p.unsqueeze(-2), v).squeeze(-2)
        m = m_new
    return o / l


VARIANTS = {
    "softmax": (
        softmax_through_log,
        softmax_by_loop,
        lambda x, dim=-1: F.normalize(torch.exp(x - torch.amax(x, dim, True)), p=1, dim=dim),
        softmax_in_double,
    ),
    "fixed_head_weights": (
        heads_by_broadcasting,
        heads_by_torch,
        lambda q, k: torch.log_softmax(torch.einsum("...ihd,...jhd->...ijh", q / q.size(-1) ** 0.5, k), dim=-2).exp(),
    ),
    "softmax_with_temperature": (temperature_inverse, temperature_after_shift, temperature_through_log),
    "entropy": (
        lambda p: -(p * torch.log(p + 1e-12)).sum(dim=-1),
        lambda p: -(p * p.log()).nan_to_num(0.0).sum(-1),
        lambda p: torch.distributions.Categorical(probs=p).entropy(),
    ),
    "log_softmax": (log_softmax_by_max_values, log_softmax_by_loop, log_softmax_with_log1p),
    "cross_entropy": (loss_by_logsumexp, loss_by_one_hot, loss_flat_selected),
    "softmax_backward": (
        backward_by_table,
        backward_by_loops,
        backward_by_pairs,
        lambda p, grad: p * (grad - torch.einsum("...i,...i->...", p, grad)[..., None]),  # einsum does not use autograd
    ),
    "cross_entropy_backward": (loss_backward_by_one_hot, loss_backward_flat, loss_backward_by_eye),
    "online_softmax": (online_with_running_mean, online_score_by_score, online_from_the_end),
}
