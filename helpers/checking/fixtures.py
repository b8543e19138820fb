"""Public objects that cases pass as arguments, by name. None of them is a solution of an exercise."""

from __future__ import annotations

from collections.abc import Callable

import torch

from helpers.checking.vocabulary import Fixture

FIXTURES: dict[str, Callable] = {}


def fixture(make: Callable) -> Callable:
    """Register `make` under its own name: Fixture(name, args) becomes make(*args)."""
    FIXTURES[make.__name__] = make
    return make


def resolve(tree):
    """The tree with every Fixture replaced by the object that it names."""
    if isinstance(tree, Fixture):
        return FIXTURES[tree.name](*tree.args)
    if isinstance(tree, (list, tuple)):
        return type(tree)(resolve(item) for item in tree)
    if isinstance(tree, dict):
        return {key: resolve(item) for key, item in tree.items()}
    return tree


class _OnlyContains:
    """Tokens of which one can only ask whether a token is `in` them."""

    def __init__(self, tokens):
        self._tokens = frozenset(tokens)

    def __contains__(self, token):
        return token in self._tokens

    def __repr__(self):
        return f"a vocabulary of {len(self._tokens)} tokens that only knows `in`"


@fixture
def only_contains(*tokens):
    """Lesson 1: the poorest object that may be called a vocabulary."""
    return _OnlyContains(tokens)


@fixture
def running_mean():
    """f (T, D) -> (T, D): row t is the mean of rows 0 to t. It sees order."""
    return lambda x: x.cumsum(0) / torch.arange(1, len(x) + 1, dtype=x.dtype)[:, None]


@fixture
def numbered_rows(width):
    """f (T, D) -> (T, width): row t is (t + 1) times fixed sums of row t's entries. It sees order."""

    def f(x):
        mixing = torch.arange(1, width * x.shape[1] + 1, dtype=x.dtype).sin().reshape(x.shape[1], width)
        return torch.arange(1, len(x) + 1, dtype=x.dtype)[:, None] * (x @ mixing)

    return f


@fixture
def tokenwise(width):
    """f (T, D) -> (T, width): each row by itself. It is blind to order."""

    def f(x):
        mixing = torch.arange(1, width * x.shape[1] + 1, dtype=x.dtype).cos().reshape(x.shape[1], width)
        return torch.tanh(x @ mixing)

    return f


@fixture
def bare_self_attention():
    """f (T, D) -> (T, D): self-attention with nothing to learn and no positions. It is blind to order."""
    return lambda x: torch.softmax(x @ x.T, dim=-1) @ x


def _mixed(x, width):
    """Lesson 5: fixed sums of the entries of each row, (..., D) -> (..., width)."""
    numbers = torch.arange(1, width * x.shape[-1] + 1, dtype=x.dtype).sin()
    return x @ numbers.reshape(x.shape[-1], width)


@fixture
def causal_average(width):
    """f (B, T, D) -> (B, T, width) in which row t sees the rows 0 to t."""
    return lambda x: _mixed(x.cumsum(1) / torch.arange(1, x.shape[1] + 1, dtype=x.dtype)[:, None], width)


@fixture
def peeking(place, source, strength, width):
    """The causal average, but row `place` also sees row `source`, times `strength`."""

    def f(x):
        own = causal_average(width)(x)
        seen = torch.zeros(x.shape[1], x.shape[1], dtype=x.dtype)
        seen[place, source] = strength
        return own + _mixed(seen @ x, width)

    return f


@fixture
def whole_average(width):
    """f (B, T, D) -> (B, T, width) in which every row sees the mean of all rows."""
    return lambda x: _mixed(x + x.mean(1, keepdim=True), width)


@fixture
def next_row(width):
    """f (B, T, D) -> (B, T, width) in which row t sees row t + 1, and the last row nothing."""
    return lambda x: _mixed(torch.cat([x[:, 1:], torch.zeros_like(x[:, :1])], dim=1), width)
