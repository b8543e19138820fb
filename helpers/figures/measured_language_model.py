"""What `python -m bench.ladder --write` and `python -m bench.compute --write` have measured."""

LADDER = {
    "line": 1.4444,
    "rungs": {
        "bigram": [2.3307],
        "one head": [2.1038, 2.0642, 2.0687],
        "many heads": [1.9733, 1.9427, 1.9362],
        "+ feed-forward": [1.8609, 1.8934, 1.7507],
        "+ residual and norm": [1.6763, 1.7348, 1.7759],
    },
}

COMPUTE = {}
