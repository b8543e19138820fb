"""Wrong answers to the exercises of lesson 0 that have no name in its key."""

REFUSED = {
    "fraction_above": [
        (".to(x.dtype).mean(dim=-1) -> .to(x.dtype).sum(dim=-1) / 7",),
        ("x > threshold -> x == threshold",),
    ],
}
