"""What bench/ladder.py measured; made by `python -m bench.ladder --write`."""

LADDER = {
    "line": 1.4,
    "rungs": {
        "bigram": [2.31] * 3,
        "one head": [2.1] * 3,
        "many heads": [2.0] * 3,
        "+ feed-forward": [1.9] * 3,
        "+ residual and norm": [1.5] * 3,
    },
}

COMPUTE = {
    "line": 1.4,
    "widths": {w: {"parameters": w * w * 25, "tokens": [1e4, 1e5], "losses": [2.5, 1.6]} for w in (16, 32, 64)},
}
