"""Other accepted variants of lesson 0's answers: they must pass on every seed."""

import torch


def twice_by_adding(x):
    return x + x


def twice_by_scaling(x):
    return torch.mul(x, 2.0)


def twice_by_stacking(x):
    return torch.stack([x, x]).sum(dim=0)


def twice_by_subtracting(x):
    return x - (-x)


def table_with_none(a, b):
    return a[..., :, None] + b[..., None, :]


def table_with_expand(a, b):
    shape = (*a.shape, b.shape[-1])
    return a.unsqueeze(-1).expand(shape) + b.unsqueeze(-2).expand(shape)


def table_with_loops(a, b):
    rows = [torch.stack([a[..., i] + b[..., j] for j in range(b.shape[-1])], dim=-1) for i in range(a.shape[-1])]
    return torch.stack(rows, dim=-2)


def table_with_reshape(a, b):
    return a.reshape(*a.shape, 1) + b.reshape(*b.shape[:-1], 1, b.shape[-1])


def center_with_unsqueeze(x):
    return x - x.mean(-1).unsqueeze(-1)


def center_with_sum(x):
    return x - x.sum(-1, keepdim=True) / x.shape[-1]


def center_with_matrix(x):
    n = x.shape[-1]
    return x @ (torch.eye(n, dtype=x.dtype) - torch.full((n, n), 1.0 / n, dtype=x.dtype))


def center_with_none(x):
    return x - x.mean(dim=-1)[..., None].expand_as(x)


def swap_with_m_t(x):
    return x.mT


def swap_with_movedim(x):
    return x.movedim(-1, -2)


def swap_with_einsum(x):
    return torch.einsum("...td->...dt", x)


def swap_with_columns(x):
    return torch.stack(x.unbind(dim=-1), dim=-2)


def blank_with_cat(x):
    return torch.cat([torch.zeros_like(x[..., :1, :]), x[..., 1:, :]], dim=-2)


def blank_with_where(x):
    first = torch.arange(x.shape[-2]).unsqueeze(-1) == 0
    return torch.where(first, torch.zeros_like(x), x)


def blank_with_product(x):
    keep = torch.ones(x.shape[-2], 1, dtype=x.dtype)
    keep[0] = 0
    return x * keep


def blank_with_index_fill(x):
    return x.index_fill(-2, torch.tensor([0]), 0.0)


def blank_with_copy(x):
    y = torch.zeros_like(x)
    y[..., 1:, :] = x[..., 1:, :]
    return y


def share_with_sum(x, threshold):
    return (x > threshold).sum(-1).to(x.dtype) / x.shape[-1]


def share_with_where(x, threshold):
    return torch.where(x > threshold, torch.ones_like(x), torch.zeros_like(x)).mean(-1)


def share_with_count(x, threshold):
    return torch.count_nonzero(torch.gt(x, threshold), dim=-1).to(x.dtype).div(x.size(-1))


def share_in_double(x, threshold):
    return (x > threshold).double().mean(dim=-1).to(x.dtype)


def pick_with_one_hot(x, index):
    hot = torch.nn.functional.one_hot(index, x.shape[-1]).to(x.dtype)
    return (x * hot).sum(dim=-1)


def pick_with_rows(x, index):
    rows, indices = x.reshape(-1, x.shape[-1]), index.reshape(-1)
    return rows[torch.arange(len(rows)), indices].reshape(index.shape)


def pick_with_take(x, index):
    return torch.take_along_dim(x, index[..., None], dim=-1)[..., 0]


def pick_with_loop(x, index):
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


def gradient_with_flip(x, g):
    first, second = g.split(1, dim=-1)
    return first * x.flip(-1) + second * torch.cat([2 * x[..., :1], torch.ones_like(x[..., :1])], -1)


def gradient_with_loop(x, g):
    rows = [[a * q + 2 * b * p, a * p + b] for (p, q), (a, b) in zip(x.reshape(-1, 2), g.reshape(-1, 2), strict=True)]
    return torch.stack([torch.stack(row) for row in rows]).reshape(x.shape)


VARIANTS = {
    "twice": (twice_by_adding, twice_by_scaling, twice_by_stacking, twice_by_subtracting),
    "outer_sum": (table_with_none, table_with_expand, table_with_loops, table_with_reshape),
    "center_rows": (center_with_unsqueeze, center_with_sum, center_with_matrix, center_with_none),
    "swap_last_two": (swap_with_m_t, swap_with_movedim, swap_with_einsum, swap_with_columns),
    "zero_first_token": (blank_with_cat, blank_with_where, blank_with_product, blank_with_index_fill, blank_with_copy),
    "fraction_above": (share_with_sum, share_with_where, share_with_count, share_in_double),
    "gather_per_row": (pick_with_one_hot, pick_with_rows, pick_with_take, pick_with_loop),
    "gradient_by_hand": (gradient_with_jacobian, gradient_column_by_column, gradient_with_flip, gradient_with_loop),
}
