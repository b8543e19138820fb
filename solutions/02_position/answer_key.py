"""Cases and known mistakes of lesson 2."""

import torch

from helpers.checking.vocabulary import (
    DTYPE,
    GRADIENT,
    LEADING,
    Case,
    Exercise,
    Raises,
    Stub,
    listed_quizzes,
    tensor_cases,
)

ODD = "odd d_model"


def _cycle(draw, length: int) -> torch.Tensor:
    """A permutation that is one cycle of all positions, so it is neither the identity nor its own inverse."""
    order = draw.permutation(length)
    perm = torch.empty_like(order)
    perm[order] = order.roll(-1)
    return perm


def cases_equivariance_error(draw):
    x = draw.normal(6, 4)
    perm = _cycle(draw, 6)
    blind, still, double = "functions blind to order", "a permutation that moves nothing", "float64 inputs"
    far = 1000 + draw.normal(5, 3, dtype=torch.float64)
    tiny = draw.normal(5, 3, dtype=torch.float64, scale=1e-5)

    def so_far(T, width):
        return Stub("mixed_rows", (torch.ones(T, T).tril() / torch.arange(1, T + 1)[:, None], width))

    def numbered(T, width):
        return Stub("mixed_rows", (torch.arange(1.0, T + 1).diag(), width))

    def alone(width):
        return Stub("mixed_rows", (torch.eye(5), width))

    average = "a running mean of the rows"
    return [
        # f(-x) = -f(x), so at -x the largest difference is minus the smallest one at x.
        Case((so_far(6, 4), x, perm), note=average),
        Case((so_far(6, 4), -x, perm), note=average),
        Case((numbered(5, 4), draw.normal(5, 4), _cycle(draw, 5)), note="rows times their position"),
        Case((Stub("looking_around", (3,)), draw.normal(7, 3), _cycle(draw, 7)), part=blind, note="attention"),
        Case((alone(4), draw.normal(5, 4), _cycle(draw, 5)), part=blind, note="a tokenwise map"),
        Case((so_far(5, 4), draw.normal(5, 4), torch.arange(5)), part=still, note=average),
        Case((numbered(5, 7), draw.normal(5, 4), _cycle(draw, 5)), part="output of another width"),
        Case((numbered(6, 1), draw.normal(6, 3), _cycle(draw, 6)), part="output of another width"),
        Case((alone(2), draw.normal(5, 4), _cycle(draw, 5)), part="output of another width"),
        # Rounding to float32 changes values near 1000 by up to 3e-5, and rounding to four digits turns 1e-5 into 0.
        Case((so_far(5, 3), far, _cycle(draw, 5)), part=double, tolerance=1e-9, note="values near 1000"),
        Case((so_far(5, 3), tiny, _cycle(draw, 5)), part=double, tolerance=1e-12, note="tiny values"),
    ]


equivariance_error = Exercise("equivariance_error", cases_equivariance_error).with_mistakes("""
    without_abs: the largest difference with its sign, not the largest in size
        difference.abs() -> difference
        A difference of -3 counts as 3. Which function do you need before the maximum?
    mean_difference: the mean of the differences instead of the largest
        .max() -> .mean()
        If one entry of a thousand is far off, the error should be large. Which reduction returns it?
    output_not_shuffled: f(x[perm]) compared with f(x), which isn't permuted
        f(x)[perm]  # -> f(x)  #
        Row 0 of f(x[perm]) belongs to word perm[0]. Which row of f(x) does that word have?
    inverse_permutation: perm and its inverse mixed up on one side
        f(x)[perm]  # -> f(x)[perm.argsort()]  #
        Row 0 of f(x[perm]) belongs to word perm[0]. In which row of your other side is that word?
    norm_of_difference: the norm of the whole difference
        difference.abs().max() -> difference.norm()
        The error is the difference at the single worst entry. Which reduction returns it?
""")


def cases_sinusoidal_positions(draw):
    # Measured: six correct float32 answers stay five times below these tolerances up to width 16, but not at 64.
    far = "far positions"
    return [
        Case((7, 6)),
        Case((draw.integer(9, 30), draw.choice((8, 12, 14)))),
        Case((65, 10)),
        Case((9, 2), part="d_model = 2"),
        Case((1, 8), part="length = 1"),
        Case((draw.integer(120, 160), 8), part=far, tolerance=1e-4),
        Case((513, 4), part=far, tolerance=1e-4),
        Case((5, 7), part=ODD, raises=Raises("ValueError")),
        Case((5, 1), part=ODD, raises=Raises("ValueError")),
    ]


sinusoidal_positions = Exercise(
    "sinusoidal_positions", cases_sinusoidal_positions, axes=("position", "column")
).with_mistakes("""
    halves_concatenated: all sines first, then all cosines
        torch.stack( -> torch.cat(
        According to the formula, is column 1 a sine or a cosine?
    exponent_i: an exponent that grows half as fast as it should
        even / d_model) -> even / 2 / d_model)
        Pair 1 of a table with D = 4 should divide by 100. By what does yours divide?
    exponent_doubled: an exponent that grows twice as fast as it should
        even / d_model) -> 2 * even / d_model)
        If your loop variable already is 0, 2, 4, ..., the factor 2 of the exponent is in it.
    power_without_parentheses: a power that is taken before its exponent is divided
        (even / d_model) -> even / d_model
        Which of ** and / does Python do first? Try 100 ** 2 / 4 in a cell of its own.
    cosine_has_own_angle_N for N in 1, 2: a cosine with an angle of its own
        angles.cos() -> (t / 10000 ** ((even + N) / d_model)).cos()
        Sine and cosine of a pair belong to the same angle. Which exponent do both have?
    doubled_and_own_angle: a doubled exponent, and a cosine with an angle of its own
        angles.cos() -> (t / 10000 ** (2 * (even + 1) / d_model)).cos()
        (even / d_model) -> (2 * even / d_model)
        There are two problems: the loop variable already counts in twos, and both columns of a pair have the same angle.
    cosine_first: sine and cosine swapped
        [angles.sin(), angles.cos()] -> [angles.cos(), angles.sin()]
        Row 0 should begin with the sine of 0. What is the first entry of yours?
    multiplied_by_power: the position multiplied by the power instead of divided
        t / 10000 ** -> t * 10000 **
        Later pairs should be slower. Do your angles grow or shrink with i?
    counted_from_one: positions counted from 1
        angles = t -> angles = (t + 1)
        At position 0 every angle is 0. What is your row 0?
    last_divisor_is_10000: exponents spaced so that the last divisor is exactly 10000
        even / d_model) -> even / max(d_model - 2, 1))
        That is tensor2tensor's variant. In the paper's formula the last exponent stays below 1.
""")


def cases_add_positions(draw):
    def make(dtype, *lead):
        return draw.normal(*lead, 5, 4, dtype=dtype), draw.normal(9, 4, dtype=dtype)

    def one(lead, T, D, rows):
        return draw.normal(*lead, T, D), draw.normal(rows, D)

    long = "T longer than the table"
    # The sum is small but its terms are large, so a table rounded to float32 has an error of 4e-6 here.
    x, table = draw.normal(5, 4, dtype=torch.float64), draw.normal(9, 4, dtype=torch.float64, scale=100)
    return [
        *tensor_cases(make),
        Case(one((5,), 3, 4, 7), part=LEADING),
        Case(one((11,), 3, 4, 7), part=LEADING),
        Case((x - table[:5], table), part=DTYPE, note="a table of large values, which x nearly cancels"),
        Case(make(torch.float64, 2, 3), part=GRADIENT, gradient=True),
        Case(one((3,), 6, 4, 6), part="T equal to the table's length"),
        Case(one((3,), 1, 4, 6), part="one token"),
        Case(one((), 7, 4, 6), part=long, raises=Raises("ValueError")),
        Case(one((2,), 5, 4, 1), part=long, raises=Raises("ValueError")),
    ]


add_positions = Exercise("add_positions", cases_add_positions, axes=("token", "column")).with_mistakes("""
    first_axis_taken_for_tokens: the first axis taken for the tokens
        x.shape[-2] -> len(x)
        With sentences in front, the tokens are the second axis from the right.
    second_axis_taken_for_tokens: the second axis from the left taken for the tokens
        x.shape[-2] -> x.shape[1]
        A single sentence has two axes and a batch three. Count the axis of the tokens from the end.
    last_rows: the last T rows of the table
        table[:T] -> table[len(table) - T :]
        The first token is at position 0.
    off_by_one: rows 1 to T instead of 0 to T-1
        table[:T] -> table[1 : T + 1]
        The first token is at position 0.
    length_not_checked: no ValueError for a sentence longer than the table
        if T > len(table): -> if False:
        Slicing past the end raises no error, and a single row is repeated silently. Compare the two lengths first.
    words_scaled: the word vectors scaled before the sum
        return x + -> return x * x.shape[-1] ** 0.5 +
        The paper scales embeddings elsewhere, when it looks them up. Here x comes as it is.
""")


def cases_fixed_position_layer(draw):
    def make(dtype, B=3):
        return draw.normal(B, 5, 4, dtype=dtype), draw.normal(9, 1, 4, dtype=dtype)

    def one(B, T, D, max_len):
        return draw.normal(B, T, D), draw.normal(max_len, 1, D)

    x, table = draw.normal(3, 5, 4, dtype=torch.float64), draw.normal(9, 1, 4, dtype=torch.float64, scale=100)
    return [
        Case(make(torch.float32)),
        Case(make(torch.float32, 6)),
        Case(make(torch.float64), part=DTYPE),
        Case(make(torch.float64), part=GRADIENT, gradient=True),
        Case(make(torch.float32, 11), part="more sentences than positions"),
        Case(make(torch.float32, 1), part="a batch of one"),
        Case(one(5, 5, 4, 9), part="B equal to T"),
        Case(one(3, 9, 4, 9), part="T equal to max_len"),
        Case(one(3, 1, 4, 9), part="one token"),
        # The sum is small but its terms are large, so a table rounded to float32 has an error of 4e-6 here.
        Case((x - table[:5, 0], table), part=DTYPE, note="a table of large values, which x nearly cancels"),
    ]


WHOLE = "x + pe.squeeze(1)[: x.size(1)]"

fixed_position_layer = Exercise(
    "fixed_position_layer", cases_fixed_position_layer, axes=("sentence", "token", "column")
).with_mistakes(f"""
    bug_not_fixed: every token of a sentence gets the same position, as in the published layer
        {WHOLE} -> x + pe[: x.size(0)]
        Which axis of x does size(0) measure if sentences come first?
    middle_axis_kept: the right rows, but still with an axis of length 1 in the middle
        pe.squeeze(1) -> pe
        Line up (B, T, D) and (T, 1, D) from the right. T is paired with 1, but with what is B paired?
    as_many_rows_as_sentences: as many rows taken as there are sentences
        x.size(1) -> x.size(0)
        A sentence of T tokens needs T rows. Which axis of x counts its tokens?
    reshaped_not_transposed: reshape used to swap sentences and tokens
        {WHOLE} -> (x.reshape(x.size(1), x.size(0), -1) + pe[: x.size(1)]).reshape(x.shape)
        reshape keeps the order of the entries in memory, so words move to other sentences. Which call swaps axes?
    first_position_for_all: the first position for every token
        pe.squeeze(1)[: x.size(1)] -> pe[0]
        Each token needs a row of its own.
""")


def cases_shift_matrix(draw):
    # Measured: torch's float32 matrix_exp has errors of up to 1e-5, so even small offsets have a tolerance of 1e-4.
    near = {"tolerance": 1e-4}
    return [
        Case((1, 4), **near),
        Case((3, 6), **near),
        Case((draw.choice((2, 4)), 10), **near),
        Case((0, 6), part="offset 0", **near),
        Case((-1, 4), part="negative offset", **near),
        Case((draw.choice((-2, -4)), 8), part="negative offset", **near),
        Case((2, 2), part="d_model = 2", **near),
        Case((110, 8), part="far positions", **near),
        Case((draw.integer(9, 50), 6), part="far positions", **near),
        Case((draw.integer(-50, -9), 8), part="far positions", **near),
        Case((2, 5), part=ODD, raises=Raises("ValueError")),
        Case((0, 3), part=ODD, raises=Raises("ValueError")),
    ]


shift_matrix = Exercise("shift_matrix", cases_shift_matrix, axes=("new column", "old column")).with_mistakes("""
    turned_backwards: the rotation by minus the offset
        offset / 10000 -> -offset / 10000
        Apply your M to row 0 of the table. Is the result row +offset or row -offset?
    reflection: a reflection instead of a rotation
        M[sine, sine] = M[cosine, cosine] = angles.cos().float()
        -> M[sine, sine], M[cosine, cosine] = angles.cos().float(), -angles.cos().float()
        = -angles.sin() -> = angles.sin()
        For offset 0, M should be the identity. What does yours do to the cosine column?
    sign_lost: the minus sign of one block entry lost
        = -angles.sin() -> = angles.sin()
        The two rows of a rotation are at a right angle. Compute their dot product in your block.
    one_speed_for_all: every pair rotated by the same angle
        10000 ** (sine.double() / d_model) -> (1 + 0 * sine.double())
        Later pairs rotate more slowly. Which divisor belongs to each pair?
    exponent_i: speeds whose exponent grows half as fast as it should
        sine.double() / d_model -> sine.double() / 2 / d_model
        Use the angles of sinusoidal_positions, where pair 1 of D = 4 divides by 100.
    exponent_doubled: an exponent that grows twice as fast as it should
        sine.double() / d_model -> 2 * sine.double() / d_model
        If your loop variable already is 0, 2, 4, ..., the factor 2 of the exponent is in it.
    halves_layout: blocks for a table with all sines first
        torch.arange(0, d_model, 2), torch.arange(1, d_model, 2)
        -> torch.arange(d_model // 2), torch.arange(d_model // 2, d_model)
        sine.double() / d_model -> 2 * sine.double() / d_model
        Sine and cosine of a pair are neighboring columns here. In which rows and columns are the four entries of a block?
""")


def cases_apply_rope(draw):
    def make(dtype, *lead, scale=1.0):
        return draw.normal(*lead, 5, 6, dtype=dtype, scale=scale), draw.permutation(5)

    def positions(dtype, high, T=5, D=6):
        return draw.normal(3, T, D, dtype=dtype), draw.integers(0, high, (T,))

    return [
        Case(make(torch.float32)),
        Case((draw.normal(3, 4, 8), torch.arange(4))),
        *(Case(make(torch.float32, *lead), part=LEADING) for lead in ((3,), (2, 3), (1,), (2, 1))),
        # Measured: cosines rounded to float32 change float64 entries near 1 by up to 1e-7, so the inputs are small
        # here. Gradients, which cannot be scaled, have a tolerance of 1e-6.
        Case(make(torch.float64, scale=0.1), part=DTYPE),
        Case(make(torch.float64, 2), part=GRADIENT, gradient=True, tolerance=1e-6),
        Case(positions(torch.float32, 60), part="far positions", tolerance=1e-4),
        Case(positions(torch.float64, 60), part="far positions", tolerance=1e-4),
        Case((draw.normal(3, 5, 6), draw.permutation(5) + 1, 100.0), part="another base"),
        Case((draw.normal(2, 4, 8), draw.permutation(4) + 1), {"base": 500.0}, part="another base"),
        Case((draw.normal(3, 4, 2), draw.permutation(4)), part="D = 2"),
        Case((draw.normal(4, 6), torch.tensor([2, 2, 0, 3])), part="positions in any order"),
        Case((draw.normal(3, 1, 6), torch.tensor([3])), part="positions in any order"),
    ]


TURNED = "torch.stack([a * cos - b * sin, a * sin + b * cos], dim=-1).flatten(-2)"

apply_rope = Exercise("apply_rope", cases_apply_rope, axes=("token", "column")).with_mistakes(f"""
    half_split_pairs: column i paired with column i + D/2
        x[..., 0::2], x[..., 1::2] -> x.chunk(2, dim=-1)
        torch.stack( -> torch.cat(
        .flatten(-2) ->
        That is the half-split layout. Here two neighboring columns form a pair.
    mixed_layouts: interleaved angles on half-split pairs
        {TURNED}
        -> x * cos.repeat_interleave(2, -1) + torch.cat([-x[..., D // 2 :], x[..., : D // 2]], -1) * sin.repeat_interleave(2, -1)
        The angles and the pairs come from different layouts. Which columns form pair 0?
    not_interleaved_again: the new pairs returned as two halves
        torch.stack( -> torch.cat(
        .flatten(-2) ->
        The pairs were taken from neighboring columns. How do you interleave them again?
    turned_backwards: the arrows rotated the other way
        positions[:, None] -> -positions[:, None]
        (1, 0) at position 1 should become (0.5403, 0.8415). What does yours become?
    base_ignored: 10000 in place of the argument base
        / base ** -> / 10000.0 **
        The argument base isn't used in your code.
    exponent_i: an exponent that grows half as fast as it should
        (even / D) -> (even / 2 / D)
        With D = 4 and base 10000, pair 1 rotates by a hundredth of the position.
    exponent_doubled: an exponent that grows twice as fast as it should
        (even / D) -> (2 * even / D)
        If your loop variable already is 0, 2, 4, ..., the factor 2 of the exponent is in it.
    sine_and_cosine_exchanged: sine and cosine exchanged
        cos, sin = angles.cos() -> sin, cos = angles.cos()
        At position 0 nothing should change. What does your function return there?
    positions_ignored: positions 0, 1, 2, ... instead of the argument positions
        positions[:, None] -> torch.arange(x.shape[-2])[:, None]
        The tokens may be at the positions 7, 8 and 9. The argument positions isn't used in your code.
    sign_lost: a minus sign lost
        a * cos - b * sin -> a * cos + b * sin
        A rotation keeps lengths. Compare the norms before and after.
    overwritten_first_column: the second column made from the new first column
        a * sin + b * cos -> (a * cos - b * sin) * sin + b * cos
        Both new columns are computed from the old pair, so keep it until you have both.
""")


exercises = [equivariance_error, sinusoidal_positions, add_positions, fixed_position_layer, shift_matrix, apply_rope]

quizzes = listed_quizzes("""
    quiz_1: c
        a: The rows do come out in another order, but a mean doesn't depend on the order of its terms.
        b: Training changes the weights, but a layer is equivariant whatever its weights are, so training can't find
           any that break it.
        c: Each layer is equivariant, so the whole stack returns the same rows in another order. Their mean is the
           same, for every choice of weights.
    quiz_2: a
        a: Queries and keys are now computed from x + P, so they contain the absolute position before they are rotated,
           and the score depends on it.
        b: They carry the same positions in different ways. RoPE keeps absolute positions out of the score, and added
           vectors bring them back in.
        c: A rotation keeps lengths, so it removes nothing of what was added.
""")
