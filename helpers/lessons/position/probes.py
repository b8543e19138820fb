"""Lesson 2. Beside learner code: the stubs. Only on numbers: nothing."""

import torch

from helpers.checking.stubs import stub


@stub
def running_mean():
    """f (T, D) -> (T, D): row t is the mean of rows 0 to t. It sees order."""
    return lambda x: x.cumsum(0) / torch.arange(1, len(x) + 1, dtype=x.dtype)[:, None]


@stub
def numbered_rows(width):
    """f (T, D) -> (T, width): row t is (t + 1) times fixed sums of row t's entries. It sees order."""

    def f(x):
        mixing = torch.arange(1, width * x.shape[1] + 1, dtype=x.dtype).sin().reshape(x.shape[1], width)
        return torch.arange(1, len(x) + 1, dtype=x.dtype)[:, None] * (x @ mixing)

    return f


@stub
def tokenwise(width):
    """f (T, D) -> (T, width): each row by itself. It is blind to order."""

    def f(x):
        mixing = torch.arange(1, width * x.shape[1] + 1, dtype=x.dtype).cos().reshape(x.shape[1], width)
        return torch.tanh(x @ mixing)

    return f


@stub
def bare_self_attention():
    """f (T, D) -> (T, D): self-attention with nothing to learn and no positions. It is blind to order."""
    return lambda x: torch.softmax(x @ x.T, dim=-1) @ x
