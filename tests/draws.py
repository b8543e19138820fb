"""Random tensors, comparison of tensors, and the pictures of explorers, for the tests of the lessons."""

from unittest import mock

import torch
from torch import nn


def random(seed, *shape, dtype=torch.float64):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def close(actual, expected, single=1e-5, double=1e-7):
    """Assert equal shapes, dtypes and, within a tolerance for float32 or float64, values."""
    tolerance = single if expected.dtype == torch.float32 else double
    torch.testing.assert_close(actual, expected, atol=tolerance, rtol=tolerance)


def life_is_short():
    """Return the embedded sentence of one of the sources, and its matrices for queries, keys and values."""
    torch.manual_seed(123)
    x = nn.Embedding(6, 16)(torch.tensor([0, 4, 5, 2, 1, 3])).detach()
    return x, torch.rand(24, 16), torch.rand(24, 16), torch.rand(28, 16)


def lecture():
    """Return the inputs, the key layer and the query layer of the lecture's code, drawn in the same order."""
    torch.manual_seed(1337)
    key, query, _value = (nn.Linear(32, 16, bias=False) for _ in range(3))
    return torch.randn(4, 8, 32), key, query


def pictures_of(explorer, *arguments):
    """Return the function that draws an explorer's pictures, which the explorer passes to `panel`."""
    with mock.patch.dict(explorer.__globals__, panel=mock.Mock()) as module:
        explorer(*arguments)
        return module["panel"].call_args.args[0]
