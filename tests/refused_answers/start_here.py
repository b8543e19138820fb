"""Wrong answers to the exercises of lesson 0 that are not among its key's known mistakes."""

import torch

REFUSED = {
    "zero_first_token": [("y[..., 0, :] = 0 -> y = y * (y != y[..., :1, :])",)],
    "fraction_above": [(".to(x.dtype) -> .float()",)],
    "gather_per_row": [
        ("x.gather(-1, index.unsqueeze(-1)).squeeze(-1) -> torch.take(x, index)",),
        (").squeeze(-1) -> ).squeeze()",),
    ],
}

EXPLAINED = {  # their mistake is named although they raise an error on other inputs
    "outer_sum": [
        (lambda a, b: torch.outer(a, b), "table_of_products"),
        (lambda a, b: a + b[:, None], "table_turned", 0),
        (lambda a, b: (a[:, None] + b) ** 2, None),
    ]
}
