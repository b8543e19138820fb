"""The ladder as it was measured: one training each, width 64, 600 steps of 16 windows, on texts of their own seeds.

`python -m bench.ladder --write` puts three trainings of each rung here instead.
"""

LADDER = {
    "line": 1.3969,
    "rungs": {
        "bigram": [2.3306],
        "one head": [2.109],
        "many heads": [1.964],
        "+ feed-forward": [1.954],
        "+ residual and norm": [1.879],
        "two such blocks": [1.724],
    },
}

COMPUTE = {}
