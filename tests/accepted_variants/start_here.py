"""Other right answers to the exercises of lesson 0."""

import torch


def outer_sum_with_expand(a, b):
    shape = (*a.shape, b.shape[-1])
    return a.unsqueeze(-1).expand(shape) + b.unsqueeze(-2).expand(shape)


def outer_sum_with_loops(a, b):
    rows = [torch.stack([a[..., i] + b[..., j] for j in range(b.shape[-1])], dim=-1) for i in range(a.shape[-1])]
    return torch.stack(rows, dim=-2)


def center_with_matrix(x):
    n = x.shape[-1]
    return x @ (torch.eye(n, dtype=x.dtype) - torch.full((n, n), 1.0 / n, dtype=x.dtype))


def zero_with_product(x):
    keep = torch.ones(x.shape[-2], 1, dtype=x.dtype)
    keep[0] = 0
    return x * keep


def gather_with_one_hot(x, index):
    hot = torch.nn.functional.one_hot(index, x.shape[-1]).to(x.dtype)
    return (x * hot).sum(dim=-1)


def gather_with_loop(x, index):
    rows, indices = x.reshape(-1, x.shape[-1]), index.reshape(-1).tolist()
    return torch.stack([row[i] for row, i in zip(rows, indices, strict=True)]).reshape(index.shape)


def gradient_with_jacobian(x, g):
    one, zero = torch.ones_like(x[..., 0]), 2 * x[..., 0]
    rows = [torch.stack([x[..., 1], x[..., 0]], -1), torch.stack([zero, one], -1)]
    return torch.einsum("...i,...ij->...j", g, torch.stack(rows, -2))


def gradient_column_by_column(x, g):
    out = torch.empty_like(x)
    out[..., 0] = g[..., 0] * x[..., 1] + 2 * g[..., 1] * x[..., 0]
    out[..., 1] = g[..., 0] * x[..., 0] + g[..., 1]
    return out


def gradient_with_loop(x, g):
    rows = [[a * q + 2 * b * p, a * p + b] for (p, q), (a, b) in zip(x.reshape(-1, 2), g.reshape(-1, 2), strict=True)]
    return torch.stack([torch.stack(row) for row in rows]).reshape(x.shape)


VARIANTS = {
    "twice": (lambda x: torch.mul(x, 2.0), lambda x: torch.stack([x, x]).sum(dim=0), lambda x: x - (-x)),
    "outer_sum": (lambda a, b: a[..., :, None] + b[..., None, :], outer_sum_with_expand, outer_sum_with_loops),
    "center_rows": (
        lambda x: x - x.mean(-1).unsqueeze(-1),
        lambda x: x - x.sum(-1, keepdim=True) / x.shape[-1],
        center_with_matrix,
    ),
    "swap_last_two": (
        lambda x: x.movedim(-1, -2),
        lambda x: torch.einsum("...td->...dt", x),
        lambda x: torch.stack(x.unbind(dim=-1), dim=-2),
    ),
    "zero_first_token": (
        lambda x: torch.cat([torch.zeros_like(x[..., :1, :]), x[..., 1:, :]], dim=-2),
        zero_with_product,
        lambda x: x.index_fill(-2, torch.tensor([0]), 0.0),
    ),
    "fraction_above": (
        lambda x, threshold: (x > threshold).sum(-1).to(x.dtype) / x.shape[-1],
        lambda x, threshold: torch.count_nonzero(torch.gt(x, threshold), dim=-1).to(x.dtype).div(x.size(-1)),
        lambda x, threshold: (x > threshold).double().mean(dim=-1).to(x.dtype),
    ),
    "gather_per_row": (
        gather_with_one_hot,
        lambda x, index: torch.take_along_dim(x, index[..., None], dim=-1)[..., 0],
        gather_with_loop,
    ),
    "gradient_by_hand": (gradient_with_jacobian, gradient_column_by_column, gradient_with_loop),
}
