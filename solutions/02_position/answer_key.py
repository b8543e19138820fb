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


# 2.1 equivariance_error


def _cycle(draw, length: int) -> torch.Tensor:
    """A permutation that is one cycle through all places, so it is neither the identity nor its own inverse."""
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
    return [
        # An odd function at x and at -x: the largest difference is the smallest one with its sign changed.
        Case((Stub("running_mean"), x, perm), note="running_mean"),
        Case((Stub("running_mean"), -x, perm), note="running_mean"),
        Case((Stub("numbered_rows", (4,)), draw.normal(5, 4), _cycle(draw, 5)), note="rows times their place"),
        Case((Stub("bare_self_attention"), draw.normal(7, 3), _cycle(draw, 7)), part=blind, note="attention"),
        Case((Stub("tokenwise", (4,)), draw.normal(5, 4), _cycle(draw, 5)), part=blind, note="a tokenwise map"),
        Case((Stub("running_mean"), draw.normal(5, 4), torch.arange(5)), part=still, note="running_mean"),
        Case((Stub("numbered_rows", (7,)), draw.normal(5, 4), _cycle(draw, 5)), part="output of another width"),
        Case((Stub("numbered_rows", (1,)), draw.normal(6, 3), _cycle(draw, 6)), part="output of another width"),
        Case((Stub("tokenwise", (2,)), draw.normal(5, 4), _cycle(draw, 5)), part="output of another width"),
        # Rounded to float32, numbers near 1000 are off by up to 3e-5; rounded to four digits, a gap of 1e-5 is 0.
        Case((Stub("running_mean"), far, _cycle(draw, 5)), part=double, tolerance=1e-9, note="numbers near 1000"),
        Case((Stub("running_mean"), tiny, _cycle(draw, 5)), part=double, tolerance=1e-12, note="tiny numbers"),
    ]


equivariance_error = Exercise("equivariance_error", cases_equivariance_error).with_mistakes("""
    without_abs: the largest difference with its sign, not the largest in size
        difference.abs() -> difference
        A difference of -3 is a gap of 3. What does your maximum say about it?
    mean_difference: the mean of the differences instead of the largest
        .max() -> .mean()
        One entry far off among a thousand equal ones: should the gap be large or tiny?
    output_not_shuffled: f(x[perm]) compared with f(x) itself
        f(x)[perm]  # -> f(x)  #
        Row 0 of f(x[perm]) belongs to another word than row 0 of f(x). Which one?
    inverse_permutation: the output shuffled by the inverse permutation
        f(x)[perm]  # -> f(x)[perm.argsort()]  #
        Both sides must be shuffled in the same direction.
    norm_of_difference: the norm of the whole difference
        difference.abs().max() -> difference.norm()
        The gap is about the single worst entry.
    squared_difference: the largest squared difference
        difference.abs() -> difference.square()
        A gap in the same units as the output: is a square needed?
    summed_over_tokens: the outputs summed over the tokens before they are compared
        difference.abs() -> difference.sum(0).abs()
        A sum over the tokens forgets which token gave what, so it hides part of the gap.
    compared_with_input: f's output compared with its input
        - f(x)[perm]  # -> - x[perm]  #
        The question is not how far f moves the words, but whether f and the shuffle commute.
    left_as_tensor: a tensor with one number instead of a Python float
        .max().item() -> .max()
        The spec asks for a Python float. Which method takes the one number out of a tensor?
""")


# 2.2 sinusoidal_positions


def cases_sinusoidal_positions(draw):
    # Measured: six correct float32 forms keep a five-fold margin at these tolerances up to width 16, not at 64.
    far = "far positions"
    return [
        Case((7, 6)),
        Case((draw.integer(9, 30), draw.choice((8, 12, 14)))),
        Case((65, 10)),
        Case((9, 2), part="d_model = 2"),
        Case((1, 8), part="length = 1"),
        Case((draw.integer(120, 160), 16), part=far, tolerance=1e-4),
        Case((513, 6), part=far, tolerance=1e-4),
        Case((5, 7), part=ODD, raises=Raises("ValueError")),
        Case((5, 1), part=ODD, raises=Raises("ValueError")),
    ]


sinusoidal_positions = Exercise(
    "sinusoidal_positions", cases_sinusoidal_positions, axes=("position", "column")
).with_mistakes("""
    halves_concatenated: all sines first, then all cosines
        torch.stack( -> torch.cat(
        The formula says what stands in column 1. Is it a sine or a cosine?
    exponent_i: an exponent that grows half as fast as it should
        even / d_model) -> even / 2 / d_model)
        Pair 1 of a table with D = 4 divides by 100. What does yours divide by?
    exponent_doubled: an exponent that grows twice as fast as it should
        even / d_model) -> 2 * even / d_model)
        If your counter already runs 0, 2, 4, ..., what has been doubled?
    power_without_parentheses: a power that is taken before its exponent is divided
        (even / d_model) -> even / d_model
        Which of ** and / does Python do first? Try 100 ** 2 / 4 in a cell of its own.
    cosine_has_own_angle: a cosine with an angle of its own
        angles.cos() -> (t / 10000 ** ((even + 1) / d_model)).cos()
        Sine and cosine of a pair are one clock hand. At how many angles can it point?
    doubled_and_own_angle: a doubled exponent, and a cosine with an angle of its own
        angles.cos() -> (t / 10000 ** (2 * (even + 1) / d_model)).cos()
        (even / d_model) -> (2 * even / d_model)
        Two things: what the loop counter already is, and what the two columns of a pair share.
    cosine_first: sine and cosine swapped
        [angles.sin(), angles.cos()] -> [angles.cos(), angles.sin()]
        What should row 0 begin with: the sine of 0 or the cosine of 0?
    multiplied_by_power: the place multiplied by the power instead of divided
        t / 10000 ** -> t * 10000 **
        Later pairs are slower hands. Do your angles grow or shrink with i?
    counted_from_one: places counted from 1
        angles = t -> angles = (t + 1)
        At place 0 every angle is 0. What is your row 0?
    last_wave_is_10000: waves spread so that the last divisor is exactly 10000
        even / d_model) -> even / max(d_model - 2, 1))
        That is tensor2tensor's variant. In the paper's formula the last exponent stays below 1.
    base_1000: 1000 in place of 10000
        t / 10000 ** -> t / 1000 **
        Count the zeros.
    turns_not_radians: a factor 2 pi in the angles
        angles = t -> angles = 2 * math.pi * t
        The place is the angle of the first pair, in radians. It is no count of turns.
    asserted: an assertion where a ValueError is asked for
        raise ValueError( -> raise AssertionError(
        An assert can be switched off, and it raises another error. Which one does the spec name?
    odd_width_accepted: an odd width cut off instead of refused
        if d_model % 2: -> if False:
        pairs.flatten(1) -> pairs.flatten(1)[:, :d_model]
        With an odd width one sine has no cosine. The spec says which exception that is.
""")


# 2.3 find_position

BLUR = 0.01


def _table(length, d_model):
    """The rows that find_position is asked about."""
    even = torch.arange(0, d_model, 2, dtype=torch.float64)
    angles = torch.arange(length, dtype=torch.float64)[:, None] * 10000 ** (-even / d_model)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)


def _blurred(draw, length, d_model, t):
    """Row t, every entry off by the largest blur, up or down."""
    signs = 2.0 * draw.integers(0, 2, (d_model,)) - 1
    return (_table(length, d_model)[t] + BLUR * signs).float(), length


def _lookalike(draw, length, d_model, columns):
    """A row whose blur makes `columns` those of another place: who reads nothing else is wrong."""
    table = _table(length, d_model)
    chosen = table[:, columns]
    alike = ((chosen[:, None] - chosen[None]).abs().amax(-1) < BLUR).triu(1).nonzero().tolist()
    other, t = draw.choice(alike)  # t is the later one: the first of two best places is the other one
    noise = draw.uniform(d_model, low=-BLUR, high=BLUR, dtype=torch.float64)
    noise[columns] = chosen[other] - chosen[t]
    return (table[t] + noise).float(), length


def cases_find_position(draw):
    far, ends = "far positions", "first and last place"
    first_pair, sines, cosines = slice(0, 2), slice(0, None, 2), slice(1, None, 2)
    return [
        Case(_lookalike(draw, 41, 6, slice(0, 1))),  # sin 22 is -0.0089: the first column looks like place 0
        Case(_blurred(draw, 200, 16, draw.integer(101, 199))),
        Case(_blurred(draw, 23, 4, draw.integer(8, 22))),
        Case(_lookalike(draw, 512, 4, first_pair), part=far),
        Case(_lookalike(draw, 512, 8, slice(0, 4)), part=far),
        Case(_lookalike(draw, 512, 8, slice(4, 8)), part=far),
        Case(_lookalike(draw, 512, 12, first_pair), part=far),
        Case(_lookalike(draw, 512, 4, sines), part=far),
        Case(_lookalike(draw, 512, 4, cosines), part=far),
        Case(_blurred(draw, 31, 6, 0), part=ends),
        Case(_blurred(draw, 31, 6, 30), part=ends),
    ]


find_position = Exercise("find_position", cases_find_position).with_mistakes("""
    fastest_pair_only: the place read off the fastest pair alone
        (table @ row) -> (table[:, :2] @ row[:2])
        The second hand shows the second. Which minute it is, it does not know.
    first_pairs_only: the place read off the faster half of the pairs
        (table @ row) -> (table[:, : len(row) // 4 * 2] @ row[: len(row) // 4 * 2])
        Among 512 places, fast pairs meet again somewhere far away. Who tells those two apart?
    sines_only: only the sines compared
        (table @ row).argmax() -> (table[:, 0::2] - row[0::2]).square().sum(-1).argmin()
        A sine passes each height twice a turn. What do the other columns add?
    first_column_only: only the first column compared
        (table @ row).argmax() -> (table[:, 0] - row[0]).abs().argmin()
        A sine passes each height twice a turn, and the row is blurred. What do the other columns add?
    exact_equality: a row looked for that is exactly equal
        (table @ row).argmax() -> (table == row).all(-1).float().argmax()
        The row is blurred, so it stands nowhere in the table. What is near it?
    largest_entry: the column of the row's largest entry
        (table @ row).argmax() -> row.argmax()
        The index of a column is no place. What must the row be compared with?
    counted_from_one: places counted from 1
        .item() -> .item() + 1
        The first row of the table is place 0.
    within_the_blur: a row looked for whose every entry is at most 0.01 away
        (table @ row).argmax() -> ((table - row).abs() <= 0.01).all(-1).float().argmax()
        A blur of exactly 0.01, rounded to float32, may come out a hair larger. Which row is nearest, however far that is?
    least_alike: the row that is least alike
        argmax -> argmin
        Is your measure large or small for two equal rows?
    signed_differences: differences summed with their signs
        (table @ row).argmax() -> (table - row).sum(-1).abs().argmin()
        Differences of +1 and -1 add up to 0. Are the rows then equal?
    left_as_tensor: a tensor with one number instead of a Python int
        .argmax().item() -> .argmax()
        The spec asks for a Python int.
""")


# 2.4 add_positions


def cases_add_positions(draw):
    def make(dtype, *lead):
        return draw.normal(*lead, 5, 4, dtype=dtype), draw.normal(9, 4, dtype=dtype)

    def one(lead, T, D, rows):
        return draw.normal(*lead, T, D), draw.normal(rows, D)

    long = "T longer than the table"
    # The sum is small and its terms are not: a table rounded to float32 is off by 4e-6 here.
    x, table = draw.normal(5, 4, dtype=torch.float64), draw.normal(9, 4, dtype=torch.float64, scale=100)
    return [
        *tensor_cases(make),
        Case(one((5,), 3, 4, 7), part=LEADING),
        Case(one((11,), 3, 4, 7), part=LEADING),
        Case((x - table[:5], table), part=DTYPE, note="a table of large numbers, which x nearly cancels"),
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
        A single sentence has two axes, a batch three. From which side is the axis of the tokens always the same?
    last_rows: the last T rows of the table
        table[:T] -> table[len(table) - T :]
        The first token is at place 0.
    off_by_one: rows 1 to T instead of 0 to T-1
        table[:T] -> table[1 : T + 1]
        The first token is at place 0.
    length_not_checked: a sentence longer than the table is not refused in words
        if T > len(table): -> if False:
        Slicing past the end is no error, and a single row is repeated silently. Who must ask?
    assertion: an assertion where a ValueError is asked for
        raise ValueError( -> raise AssertionError(
        An assert can be switched off, and it raises another error. Which one does the spec name?
    places_wrap_around: places beyond the table start again at 0
        if T > len(table): -> if False:
        table[:T] -> table[torch.arange(T) % len(table)]
        Two words at different places would get the same vector. The spec wants an error.
    table_detached: the table cut off from the gradient
        table[:T] -> table[:T].detach()
        A learned table learns from the gradient that reaches it.
    table_rounded: the table rounded to float32 before the sum
        table[:T] -> table[:T].float()
        The sum is float64, as it should be. Are all the digits of its second term?
    words_scaled: the word vectors scaled before the sum
        return x + -> return x * x.shape[-1] ** 0.5 +
        The paper scales embeddings elsewhere, when it looks them up. Here x comes as it is.
    multiplied: multiplied instead of added
        x + table[:T] -> x * table[:T]
        Word plus place.
    concatenated: places appended instead of added
        x + table[:T] -> torch.cat([x, table[:T].expand_as(x)], dim=-1)
        The width stays D.
    added_in_place: the sum written into x itself
        x + table[:T] -> x.add_(table[:T])
        Whoever called you still needs x. Which operators write into their left side?
""")


# 2.5 fixed_position_layer


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
        Case(make(torch.float32, 11), part="more sentences than places"),
        Case(make(torch.float32, 1), part="a batch of one"),
        Case(one(5, 5, 4, 9), part="B equal to T"),
        Case(one(3, 9, 4, 9), part="T equal to max_len"),
        Case(one(3, 1, 4, 9), part="one token"),
        Case(one(3, 1, 4, 1), part="one token"),
        Case(one(3, 5, 1, 9), part="D = 1"),
        # The sum is small and its terms are not: a table rounded to float32 is off by 4e-6 here.
        Case((x - table[:5, 0], table), part=DTYPE, note="a table of large numbers, which x nearly cancels"),
    ]


WHOLE = "x + pe.squeeze(1)[: x.size(1)]"

fixed_position_layer = Exercise(
    "fixed_position_layer", cases_fixed_position_layer, axes=("sentence", "token", "column")
).with_mistakes(f"""
    bug_not_fixed: the published layer: every token of a sentence gets one and the same place
        {WHOLE} -> x + pe[: x.size(0)]
        Which axis of x does size(0) measure, now that sentences come first?
    middle_axis_kept: the right rows, but still with an axis of length 1 in the middle
        pe.squeeze(1) -> pe
        Line (B, T, D) and (T, 1, D) up from the right: T meets 1, and what does B meet?
    as_many_rows_as_sentences: as many rows taken as there are sentences
        x.size(1) -> x.size(0)
        A sentence of T tokens needs T rows. Which axis of x counts its tokens?
    all_axes_squeezed: every axis of length 1 squeezed away, not only the middle one
        pe.squeeze(1) -> pe.squeeze()
        What becomes of a table with a single column?
    left_tokens_first: the result left with tokens first
        {WHOLE} -> x.transpose(0, 1) + pe[: x.size(1)]
        Who calls you expects sentences first, as x came.
    reshaped_not_transposed: reshape used to swap sentences and tokens
        {WHOLE} -> (x.reshape(x.size(1), x.size(0), -1) + pe[: x.size(1)]).reshape(x.shape)
        reshape keeps the numbers in their running order. Which word ends up in which sentence?
    first_place_for_all: the first place for every token
        pe.squeeze(1)[: x.size(1)] -> pe[0]
        Each token needs a row of its own.
    last_rows: the last rows of the table
        [: x.size(1)] -> [-x.size(1) :]
        The first token is at place 0.
""")


# 2.6 shift_matrix


def cases_shift_matrix(draw):
    # Measured: torch's float32 matrix_exp is itself off by up to 1e-5, so even small offsets are judged at 1e-4.
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
        Apply it to row 0 of the table. Do you land at +offset or at -offset?
    reflection: a reflection instead of a rotation
        M[sine, sine] = M[cosine, cosine] = angles.cos().float()
        -> M[sine, sine], M[cosine, cosine] = angles.cos().float(), -angles.cos().float()
        = -angles.sin() -> = angles.sin()
        For offset 0 nothing may move. What does yours do to the cosine column?
    sign_lost: the minus sign of one block entry lost
        = -angles.sin() -> = angles.sin()
        A rotation changes no length. Is each row of your block at a right angle to the other?
    one_speed_for_all: every pair turned by the same angle
        10000 ** (sine.double() / d_model) -> (1 + 0 * sine.double())
        Slow hands move less in the same time.
    exponent_i: speeds whose exponent grows half as fast as it should
        sine.double() / d_model -> sine.double() / 2 / d_model
        Use the angles of sinusoidal_positions: pair 1 of D = 4 divides by 100.
    sign_of_offset_lost: a negative offset treated as positive
        offset / 10000 -> abs(offset) / 10000
        Three words back is not three words ahead.
    halves_layout: blocks for a table with all sines first
        torch.arange(0, d_model, 2), torch.arange(1, d_model, 2)
        -> torch.arange(d_model // 2), torch.arange(d_model // 2, d_model)
        sine.double() / d_model -> 2 * sine.double() / d_model
        Sine and cosine of a pair are neighbors here. Where do the four entries of a block stand?
    moved_columns: a matrix that moves columns instead of turning pairs
        return M -> return torch.eye(d_model).roll(offset, 0)
        A step in place turns each pair; the columns stay where they are.
    asserted: an assertion where a ValueError is asked for
        raise ValueError( -> raise AssertionError(
        An assert can be switched off, and it raises another error. Which one does the spec name?
    odd_width_accepted: an odd width cut off instead of refused
        if d_model % 2: -> if False:
        torch.zeros(d_model, d_model) -> torch.zeros(d_model + 1, d_model + 1)
        torch.arange(1, d_model, 2) -> torch.arange(1, d_model + 1, 2)
        return M -> return M[:d_model, :d_model]
        With an odd width one sine has no cosine. The spec says which exception that is.
""")


# 2.7 apply_rope


def cases_apply_rope(draw):
    def make(dtype, *lead, scale=1.0):
        return draw.normal(*lead, 5, 6, dtype=dtype, scale=scale), draw.permutation(5)

    def positions(dtype, high, T=5, D=6):
        return draw.normal(3, T, D, dtype=dtype), draw.integers(0, high, (T,))

    return [
        Case(make(torch.float32)),
        Case((draw.normal(3, 4, 8), torch.arange(4))),
        *(Case(make(torch.float32, *lead), part=LEADING) for lead in ((3,), (2, 3), (1,), (2, 1))),
        # Measured: with cosines rounded to float32, entries near 1 are off by up to 1e-7 in float64, so the inputs
        # are small here, and gradients, which cannot be scaled, are judged at 1e-6.
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
        That is the other dialect. Here neighbors form a pair.
    mixed_dialects: neighbors' angles on pairs from the two halves
        {TURNED}
        -> x * cos.repeat_interleave(2, -1) + torch.cat([-x[..., D // 2 :], x[..., : D // 2]], -1) * sin.repeat_interleave(2, -1)
        The angles and the pairs come from different dialects. Which columns form pair 0?
    not_interleaved_again: the new pairs put back as two halves
        torch.stack( -> torch.cat(
        .flatten(-2) ->
        The pairs were taken from neighboring columns. Where must they go back?
    turned_backwards: the arrows turned the other way
        positions[:, None] -> -positions[:, None]
        (1, 0) at place 1 should become (0.5403, 0.8415). What is yours?
    base_ignored: 10000 in place of the argument base
        / base ** -> / 10000.0 **
        Who uses base in your code?
    exponent_i: an exponent that grows half as fast as it should
        (even / D) -> (even / 2 / D)
        With D = 4 and base 10000, pair 1 turns by a hundredth of the place.
    positions_ignored: places 0, 1, 2, ... in place of the argument positions
        positions[:, None] -> torch.arange(x.shape[-2])[:, None]
        A cache hands you places 7, 8, 9. Who uses positions in your code?
    places_from_the_first: places counted from the first one in positions
        positions[:, None] -> (positions - positions[:1])[:, None]
        A score sees offsets only, but a rotated vector has a place of its own. Where does a single token at place 3 stand?
    sign_lost: a minus sign lost
        a * cos - b * sin -> a * cos + b * sin
        A rotation changes no length. Compare the norms before and after.
    overwritten_first_column: the second column made from the new first column
        a * sin + b * cos -> (a * cos - b * sin) * sin + b * cos
        Both new columns come from the old pair.
    added_not_rotated: waves added instead of arrows turned
        a * cos - b * sin, a * sin + b * cos -> a + sin, b + cos
        A vector of zeros, rotated, is what?
    one_speed_for_all: every pair turned by the same angle
        base ** (even / D) -> base ** (0 * even)
        Later pairs turn slower.
""")


exercises = [
    equivariance_error,
    sinusoidal_positions,
    find_position,
    add_positions,
    fixed_position_layer,
    shift_matrix,
    apply_rope,
]

quizzes = listed_quizzes("""
    quiz_1: a
        a: Each layer is equivariant, so the whole stack is: the same rows in another order. Their mean is the same,
           for every choice of weights.
        b: Training changes the weights, and the equation f(ΠX) = Πf(X) holds for all weights. There is nothing that
           training could find.
        c: The rows do come out in another order, but a mean does not see in which order its terms stand.
    quiz_2: a
        a: Pair 0 turns by a whole radian at each step; the last pair of D = 16 turns by 10000^(-14/16), about 0.0003.
        b: Those are the hour hand: in one step they turn by about 0.0003 radians and hardly move.
        c: All rows have the same length, and still they point in different directions. The fast columns do most of
           the moving.
    quiz_3: b
        a: They carry the same places in different ways: rotations keep absolute places out of the score, and added
           vectors bring them back in.
        b: Queries and keys are now made from x + P, so they contain the absolute place before they are turned; the
           score then depends on it too.
        c: A rotation keeps lengths, so it removes nothing of what was added.
""")
