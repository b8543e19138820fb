"""Small experiments of lesson 2 with the learner's functions.

Each prints a few lines, or a single line if the learner's function is not answered yet.
"""

import torch

from helpers.translator.finished_parts import sinusoidal_positions
from helpers.widgets.answered import answered


@answered
def equivariance_errors(equivariance_error, mix, add_positions, x, table, perm):
    """The equivariance error of attention on words without positions and on words with positions added."""
    print(f"words alone:          {equivariance_error(mix, x, perm):.4f}")
    print(f"words plus positions: {equivariance_error(lambda words: mix(add_positions(words, table)), x, perm):.4f}")


@answered
def added_positions(layer):
    """The position that layer(x, pe) adds to each token of two sentences."""
    pe = torch.arange(4.0)[:, None, None].expand(4, 1, 2)  # width 2, because some right answers squeeze away width 1
    added = layer(torch.zeros(2, 3, 2), pe)[..., 0]  # (2, 3)
    for sentence, positions in enumerate(added.int().tolist()):
        print(f"sentence {sentence}: its tokens get the positions", *positions)


@answered
def shift_errors(shift_matrix):
    """How far M, applied repeatedly to row 0, deviates from the rows of the table."""
    table, M = sinusoidal_positions(512, 64), shift_matrix(3, 64)
    row = table[0]
    for steps in range(1, 101):
        row = M @ row
        if steps in (1, 10, 100):
            error = (row - table[3 * steps]).abs().max()
            print(f"M applied {steps:>3} times to row 0: row {3 * steps:>3} of the table, off by {error:.6f} at most")


@answered
def scores_at_positions(apply_rope):
    """The score of one query and one key at several positions, with RoPE and with sinusoids added."""
    generator = torch.Generator().manual_seed(1)
    q, k = torch.randn(2, 1, 64, generator=generator, dtype=torch.float64)  # (1, D) each
    table = sinusoidal_positions(1002, 64).double()
    print("query at, key at:  ", *(f"{m:>4}, {m + 1:<4}" for m in (0, 5, 50, 1000)))
    positions = torch.tensor([[0], [5], [50], [1000]])
    rotated = [float(apply_rope(q, m) @ apply_rope(k, m + 1).T) for m in positions]
    added = [float((q[0] + table[m]) @ (k[0] + table[m + 1])) for m in (0, 5, 50, 1000)]
    print("score, RoPE:         ", *(f"{score:9.3f} " for score in rotated))
    print("score, added:        ", *(f"{score:9.3f} " for score in added))
