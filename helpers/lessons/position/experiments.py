"""Small experiments of lesson 2 with the learner's own functions, and one with the translator's table.

Each prints a few lines. A function that is not answered yet leaves one line instead.
"""

from __future__ import annotations

import torch

from helpers import translator
from helpers.translator import evaluation
from helpers.translator.given import sinusoidal_positions
from helpers.widgets.answered import answered

BLURS = (0.01, 0.1, 0.3, 0.5, 1.0)
DIRECTIONS = 12  # of 64, which the translator's 24 places fill


def share_found(find_position, d_model: int, blur: float) -> float:
    """The share of 128 places, spread over 512, that are found with every entry off by up to `blur`."""
    generator = torch.Generator().manual_seed(0)
    table, positions = sinusoidal_positions(512, d_model), range(0, 512, 4)
    noise = blur * (2 * torch.rand(len(positions), d_model, generator=generator) - 1)
    return sum(find_position(table[t] + n, 512) == t for t, n in zip(positions, noise, strict=True)) / len(positions)


@answered
def blurred_more(find_position):
    """How many of 512 places are still found, for three widths, as the blur grows."""
    print("every entry off by up to", *(f"{blur:>6}" for blur in BLURS))
    for d_model in (4, 16, 64):
        shares = [share_found(find_position, d_model, blur) for blur in BLURS]
        print(f"places found, width {d_model:>3}:", *(f"{100 * share:>4.0f} %" for share in shares))


@answered
def gaps(equivariance_error, mix, add_positions, x, table, perm):
    """The gap of attention on words alone, and on words with their places added."""
    print(f"words alone:        {equivariance_error(mix, x, perm):.4f}")
    print(f"words plus places:  {equivariance_error(lambda words: mix(add_positions(words, table)), x, perm):.4f}")


@answered
def positions_given(layer):
    """Which place each token of two sentences gets from a layer (x, pe)."""
    given = layer(torch.zeros(2, 3, 1), torch.arange(4.0)[:, None, None])[..., 0]  # (2, 3)
    for sentence, positions in enumerate(given.int().tolist()):
        print(f"sentence {sentence}: its tokens get the places", *positions)


@answered
def moved_by(shift_matrix):
    """How far M, applied again and again, leaves the table."""
    table, M = sinusoidal_positions(512, 64), shift_matrix(3, 64)
    row = table[0]
    for steps in range(1, 101):
        row = M @ row
        if steps in (1, 10, 100):
            off = (row - table[3 * steps]).abs().max()
            print(f"M applied {steps:>3} times to row 0: row {3 * steps:>3} of the table, off by {off:.6f} at most")


@answered
def scores_far_out(apply_rope):
    """The score of one query and one key at several places: with rotated pairs, and with sinusoids added."""
    generator = torch.Generator().manual_seed(1)
    q, k = torch.randn(2, 1, 64, generator=generator, dtype=torch.float64)  # (1, D) each
    table = sinusoidal_positions(1002, 64).double()
    print("query at, key at:  ", *(f"{m:>4}, {m + 1:<4}" for m in (0, 5, 50, 1000)))
    turned = [
        float(apply_rope(q, torch.tensor([m])) @ apply_rope(k, torch.tensor([m + 1])).T) for m in (0, 5, 50, 1000)
    ]
    added = [float((q[0] + table[m]) @ (k[0] + table[m + 1])) for m in (0, 5, 50, 1000)]
    print("score, pairs rotated:", *(f"{score:9.3f} " for score in turned))
    print("score, places added: ", *(f"{score:9.3f} " for score in added))


def position_directions() -> torch.Tensor:
    """(12, 64): directions of length 1 that hold the translator's 24 places, the strongest first."""
    return torch.linalg.svd(translator.state()["encoder.positions.weight"]).Vh[:DIRECTIONS]


def share_inside(directions: torch.Tensor) -> float:
    """The share of the squared length of all English word vectors that lies in the given directions (k, 64)."""
    words = translator.state()["encoder.tokens.weight"]
    return float((words @ directions.T).square().sum() / words.square().sum())


def loss_with_words(projection: torch.Tensor) -> float:
    """Nats a word of the translator on 200 unseen sentences, its English word vectors projected first."""

    def embed(ids, table):
        projected = table @ projection if len(table) == len(translator.english) else table
        return projected[ids]

    return evaluation.nats_a_word(translator.machine(embed=embed), evaluation.unseen(evaluation.LOSS_SENTENCES))


def random_directions(seed: int, count: int = DIRECTIONS) -> torch.Tensor:
    """(count, 64): that many random directions of length 1, at right angles to one another."""
    return torch.linalg.qr(torch.randn(64, count, generator=torch.Generator().manual_seed(seed))).Q.T


def words_in_directions():
    """What the translator loses without twelve directions of its word vectors, and with these twelve alone."""
    print("directions               share of the words   loss without them   loss with them alone")
    choices = {"twelve of the places": position_directions()}
    choices |= {f"twelve random, draw {seed}": random_directions(seed) for seed in (0, 1, 2)}
    for name, directions in choices.items():
        inside = directions.T @ directions  # (64, 64)
        without, alone = loss_with_words(torch.eye(64) - inside), loss_with_words(inside)
        print(f"{name:<26}{100 * share_inside(directions):>10.1f} %{without:>20.5f}{alone:>19.2f}")
