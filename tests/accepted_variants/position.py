"""Other right answers to the exercises of lesson 2."""

import math

import torch


def error_by_matrix(f, x, perm):
    shuffle = torch.eye(len(x), dtype=x.dtype)[perm]
    return float((f(shuffle @ x) - shuffle @ f(x)).abs().max())


def error_by_infinity_norm(f, x, perm):
    with torch.no_grad():
        return float(torch.linalg.vector_norm(f(x[perm]) - f(x)[perm], ord=math.inf))


def error_by_numpy(f, x, perm):
    a, b = f(x[perm]).detach().numpy(), f(x).detach().numpy()[perm.numpy()]
    return float(abs(a - b).max())


def _guard(d_model):
    if d_model % 2:
        raise ValueError("d_model must be even")


def positions_loops(length, d_model):
    _guard(d_model)
    table = torch.zeros(length, d_model)
    for t in range(length):
        for column in range(0, d_model, 2):
            angle = t / 10000 ** (column / d_model)
            table[t, column], table[t, column + 1] = math.sin(angle), math.cos(angle)
    return table


def positions_phase(length, d_model):
    _guard(d_model)
    column = torch.arange(d_model)
    angles = torch.outer(torch.arange(length).float(), 10000.0 ** (-(column - column % 2) / d_model))
    return torch.sin(angles + (column % 2) * (math.pi / 2))


def positions_powers(length, d_model):
    _guard(d_model)
    step = torch.exp(1j * 10000 ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model))
    hands = step ** torch.arange(length, dtype=torch.float64)[:, None]
    return torch.view_as_real(hands).flip(-1).flatten(1).float()


def add_index(x, table):
    T = x.size(-2)
    if T > table.size(0):
        raise ValueError(f"T = {T} > {table.size(0)}")
    return x + torch.nn.functional.embedding(torch.arange(T), table)


def add_rows(x, table):
    if table.shape[0] < x.shape[-2]:
        raise ValueError("too long")
    return torch.stack([x[..., t, :] + table[t] for t in range(x.shape[-2])], dim=-2)


def add_select(x, table):
    T = x.shape[-2]
    if T > len(table):
        raise ValueError("too long")
    choose = torch.eye(len(table), dtype=table.dtype)[:T]
    return x + torch.einsum("tn,nd->td", choose, table)


def _blocks(angles, block):
    return torch.block_diag(*[torch.tensor(block(math.cos(a), math.sin(a))) for a in angles])


def _angles(offset, d_model):
    _guard(d_model)
    return [offset * 10000 ** (-i / d_model) for i in range(0, d_model, 2)]


def _table(length, d_model):
    even = torch.arange(0, d_model, 2, dtype=torch.float64)
    angles = torch.arange(length, dtype=torch.float64)[:, None] * 10000 ** (-even / d_model)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1).float()


def shift_from_table(offset, d_model):
    row = _table(abs(offset) + 1, d_model)[-1] if d_model % 2 == 0 else _guard(d_model)
    sines = row[0::2] * (1 if offset >= 0 else -1)
    M = torch.diag(row[1::2].repeat_interleave(2))
    even = torch.arange(0, d_model, 2)
    return M.index_put((even, even + 1), sines).index_put((even + 1, even), -sines)


def shift_matrix_exp(offset, d_model):
    generators = [torch.tensor([[0.0, a], [-a, 0.0]]) for a in _angles(offset, d_model)]
    return torch.linalg.matrix_exp(torch.block_diag(*generators))


def _rotate(x, positions, base):
    D = x.shape[-1]
    angles = positions[:, None].double() * base ** (-torch.arange(0, D, 2).double() / D)
    return angles.cos().to(x.dtype), angles.sin().to(x.dtype)


def rope_complex(x, positions, base=10000.0):
    c, s = _rotate(x, positions, base)
    z = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2).contiguous())
    return torch.view_as_real(z * torch.complex(c, s)).flatten(-2)


def rope_float32_tables(x, positions, base=10000.0):
    D = x.shape[-1]
    angles = positions[:, None] / base ** (torch.arange(0, D, 2) / D)
    cos, sin = angles.cos().repeat_interleave(2, dim=-1), angles.sin().repeat_interleave(2, dim=-1)
    crossed = torch.stack([-x[..., 1::2], x[..., 0::2]], dim=-1).reshape(x.shape)
    return x * cos + crossed * sin


def rope_matrices(x, positions, base=10000.0):
    c, s = _rotate(x, positions, base)
    R = torch.stack([torch.stack([c, -s], -1), torch.stack([s, c], -1)], -2)  # (T, D/2, 2, 2)
    return torch.einsum("tiab,...tib->...tia", R, x.unflatten(-1, (-1, 2))).flatten(-2)


VARIANTS = {
    "equivariance_error": (error_by_matrix, error_by_infinity_norm, error_by_numpy),
    "sinusoidal_positions": (positions_loops, positions_phase, positions_powers),
    "add_positions": (add_index, add_rows, add_select),
    "fixed_position_layer": (
        lambda x, pe: (x.transpose(0, 1) + pe[: x.size(1)]).transpose(0, 1),
        lambda x, pe: x + pe[: x.shape[1], 0],
        lambda x, pe: torch.stack([sentence + pe[: len(sentence), 0, :] for sentence in x]),
    ),
    "shift_matrix": (
        lambda offset, d_model: _blocks(_angles(offset, d_model), lambda c, s: [[c, s], [-s, c]]),
        shift_from_table,
        shift_matrix_exp,
    ),
    "apply_rope": (rope_complex, rope_float32_tables, rope_matrices),
}
