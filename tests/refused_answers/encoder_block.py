"""Wrong answers to the exercises of lesson 9 that have no name in its key."""

REFUSED = {
    "layer_norm": [
        ("correction=0, keepdim=True) -> correction=0, keepdim=True).detach()",),
        ("x.mean(dim=-1, -> x.mean(dim=1,", "x.var(dim=-1, -> x.var(dim=1,"),
    ]
}
