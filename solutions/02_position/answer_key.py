"""Cases and known mistakes of lesson 2."""

import torch

from helpers.checking.vocabulary import (
    DTYPE,
    GRADIENT,
    LEADING,
    Case,
    Draw,
    Exercise,
    Fixture,
    Mistake,
    Quiz,
    Raises,
    tensor_cases,
)

ODD = "odd d_model"


# 2.1 permutation_gap


def _cycle(draw: Draw, length: int) -> torch.Tensor:
    """A permutation that is one cycle through all places, so it is neither the identity nor its own inverse."""
    order = draw.permutation(length)
    perm = torch.empty_like(order)
    perm[order] = order.roll(-1)
    return perm


def cases_permutation_gap(draw):
    x = draw.normal(6, 4)
    perm = _cycle(draw, 6)
    blind, still, double = "functions blind to order", "a permutation that moves nothing", "float64 inputs"
    far = 1000 + draw.normal(5, 3, dtype=torch.float64)
    tiny = draw.normal(5, 3, dtype=torch.float64, scale=1e-5)
    return [
        # An odd function at x and at -x: the largest difference is the smallest one with its sign changed.
        Case((Fixture("running_mean"), x, perm), note="running_mean"),
        Case((Fixture("running_mean"), -x, perm), note="running_mean"),
        Case((Fixture("numbered_rows", (4,)), draw.normal(5, 4), _cycle(draw, 5)), note="rows times their place"),
        Case((Fixture("bare_self_attention"), draw.normal(7, 3), _cycle(draw, 7)), part=blind, note="attention"),
        Case((Fixture("tokenwise", (4,)), draw.normal(5, 4), _cycle(draw, 5)), part=blind, note="a tokenwise map"),
        Case((Fixture("running_mean"), draw.normal(5, 4), torch.arange(5)), part=still, note="running_mean"),
        Case((Fixture("numbered_rows", (7,)), draw.normal(5, 4), _cycle(draw, 5)), part="output of another width"),
        Case((Fixture("numbered_rows", (1,)), draw.normal(6, 3), _cycle(draw, 6)), part="output of another width"),
        Case((Fixture("tokenwise", (2,)), draw.normal(5, 4), _cycle(draw, 5)), part="output of another width"),
        # Rounded to float32, numbers near 1000 are off by up to 3e-5; rounded to four digits, a gap of 1e-5 is 0.
        Case((Fixture("running_mean"), far, _cycle(draw, 5)), part=double, tolerance=1e-9, note="numbers near 1000"),
        Case((Fixture("running_mean"), tiny, _cycle(draw, 5)), part=double, tolerance=1e-12, note="tiny numbers"),
    ]


permutation_gap = Exercise(
    "permutation_gap",
    cases_permutation_gap,
    mistakes=[
        Mistake(
            "without_abs",
            "the largest difference with its sign, not the largest in size",
            "A difference of -3 is a gap of 3. What does your maximum say about it?",
            "difference.abs() -> difference",
        ),
        Mistake(
            "mean_difference",
            "the mean of the differences instead of the largest",
            "One entry far off among a thousand equal ones: should the gap be large or tiny?",
            ".max() -> .mean()",
        ),
        Mistake(
            "output_not_shuffled",
            "f(x[perm]) compared with f(x) itself",
            "Row 0 of f(x[perm]) belongs to another word than row 0 of f(x). Which one?",
            "f(x)[perm]  # -> f(x)  #",
        ),
        Mistake(
            "inverse_permutation",
            "the output shuffled by the inverse permutation",
            "Both sides must be shuffled in the same direction.",
            "f(x)[perm]  # -> f(x)[perm.argsort()]  #",
        ),
        Mistake(
            "norm_of_difference",
            "the norm of the whole difference",
            "The gap is about the single worst entry.",
            "difference.abs().max() -> difference.norm()",
        ),
        Mistake(
            "squared_difference",
            "the largest squared difference",
            "A gap in the same units as the output: is a square needed?",
            "difference.abs() -> difference.square()",
        ),
        Mistake(
            "summed_over_tokens",
            "the outputs summed over the tokens before they are compared",
            "A sum over the tokens forgets which token gave what, so it hides part of the gap.",
            "difference.abs() -> difference.sum(0).abs()",
        ),
        Mistake(
            "compared_with_input",
            "f's output compared with its input",
            "The question is not how far f moves the words, but whether f and the shuffle commute.",
            "- f(x)[perm]  # -> - x[perm]  #",
        ),
        Mistake(
            "left_as_tensor",
            "a tensor with one number instead of a Python float",
            "The spec asks for a Python float. Which method takes the one number out of a tensor?",
            ".max().item() -> .max()",
        ),
    ],
)


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
    "sinusoidal_positions",
    cases_sinusoidal_positions,
    axes=("position", "column"),
    mistakes=[
        Mistake(
            "halves_concatenated",
            "all sines first, then all cosines",
            "The formula says what stands in column 1. Is it a sine or a cosine?",
            "torch.stack( -> torch.cat(",
        ),
        Mistake(
            "exponent_i",
            "an exponent that grows half as fast as it should",
            "Pair 1 of a table with D = 4 divides by 100. What does yours divide by?",
            "even / d_model) -> even / 2 / d_model)",
        ),
        Mistake(
            "exponent_doubled",
            "an exponent that grows twice as fast as it should",
            "If your counter already runs 0, 2, 4, ..., what has been doubled?",
            "even / d_model) -> 2 * even / d_model)",
        ),
        Mistake(
            "power_without_parentheses",
            "a power that is taken before its exponent is divided",
            "Which of ** and / does Python do first? Try 100 ** 2 / 4 in a cell of its own.",
            "(even / d_model) -> even / d_model",
        ),
        Mistake(
            "cosine_has_own_angle",
            "a cosine with an angle of its own",
            "Sine and cosine of a pair are one clock hand. At how many angles can it point?",
            "angles.cos() -> (t / 10000 ** ((even + 1) / d_model)).cos()",
        ),
        Mistake(
            "doubled_and_own_angle",
            "a doubled exponent, and a cosine with an angle of its own",
            "Two things: what the loop counter already is, and what the two columns of a pair share.",
            (
                "angles.cos() -> (t / 10000 ** (2 * (even + 1) / d_model)).cos()",
                "(even / d_model) -> (2 * even / d_model)",
            ),
        ),
        Mistake(
            "cosine_first",
            "sine and cosine swapped",
            "What should row 0 begin with: the sine of 0 or the cosine of 0?",
            "[angles.sin(), angles.cos()] -> [angles.cos(), angles.sin()]",
        ),
        Mistake(
            "multiplied_by_power",
            "the place multiplied by the power instead of divided",
            "Later pairs are slower hands. Do your angles grow or shrink with i?",
            "t / 10000 ** -> t * 10000 **",
        ),
        Mistake(
            "counted_from_one",
            "places counted from 1",
            "At place 0 every angle is 0. What is your row 0?",
            "angles = t -> angles = (t + 1)",
        ),
        Mistake(
            "last_wave_is_10000",
            "waves spread so that the last divisor is exactly 10000",
            "That is tensor2tensor's variant. In the paper's formula the last exponent stays below 1.",
            "even / d_model) -> even / max(d_model - 2, 1))",
        ),
        Mistake("base_1000", "1000 in place of 10000", "Count the zeros.", "t / 10000 ** -> t / 1000 **"),
        Mistake(
            "turns_not_radians",
            "a factor 2 pi in the angles",
            "The place is the angle of the first pair, in radians. It is no count of turns.",
            "angles = t -> angles = 2 * math.pi * t",
        ),
        Mistake(
            "odd_width_accepted",
            "an odd width cut off instead of refused",
            "With an odd width one sine has no cosine. The spec says which exception that is.",
            ("if d_model % 2: -> if False:", "pairs.flatten(1) -> pairs.flatten(1)[:, :d_model]"),
        ),
    ],
)


# 2.3 find_position

BLUR = 0.0099


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
        # sin 22 is -0.0089: the first column alone looks like place 0.
        Case(_lookalike(draw, 41, 6, slice(0, 1))),
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


find_position = Exercise(
    "find_position",
    cases_find_position,
    mistakes=[
        Mistake(
            "fastest_pair_only",
            "the place read off the fastest pair alone",
            "The second hand shows the second. Which minute it is, it does not know.",
            "(table @ row) -> (table[:, :2] @ row[:2])",
        ),
        Mistake(
            "first_pairs_only",
            "the place read off the faster half of the pairs",
            "Among 512 places, fast pairs meet again somewhere far away. Who tells those two apart?",
            "(table @ row) -> (table[:, : len(row) // 4 * 2] @ row[: len(row) // 4 * 2])",
        ),
        Mistake(
            "sines_only",
            "only the sines compared",
            "A sine passes each height twice a turn. What do the other columns add?",
            "(table @ row).argmax() -> (table[:, 0::2] - row[0::2]).square().sum(-1).argmin()",
        ),
        Mistake(
            "first_column_only",
            "only the first column compared",
            "A sine passes each height twice a turn, and the row is blurred. What do the other columns add?",
            "(table @ row).argmax() -> (table[:, 0] - row[0]).abs().argmin()",
        ),
        Mistake(
            "exact_equality",
            "a row looked for that is exactly equal",
            "The row is blurred, so it stands nowhere in the table. What is near it?",
            "(table @ row).argmax() -> (table == row).all(-1).float().argmax()",
        ),
        Mistake(
            "largest_entry",
            "the column of the row's largest entry",
            "The index of a column is no place. What must the row be compared with?",
            "(table @ row).argmax() -> row.argmax()",
        ),
        Mistake(
            "counted_from_one",
            "places counted from 1",
            "The first row of the table is place 0.",
            ".item() -> .item() + 1",
        ),
        Mistake(
            "least_alike",
            "the row that is least alike",
            "Is your measure large or small for two equal rows?",
            "argmax -> argmin",
        ),
        Mistake(
            "signed_differences",
            "differences summed with their signs",
            "Differences of +1 and -1 add up to 0. Are the rows then equal?",
            "(table @ row).argmax() -> (table - row).sum(-1).abs().argmin()",
        ),
        Mistake(
            "left_as_tensor",
            "a tensor with one number instead of a Python int",
            "The spec asks for a Python int.",
            ".argmax().item() -> .argmax()",
        ),
    ],
)


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


add_positions = Exercise(
    "add_positions",
    cases_add_positions,
    axes=("token", "column"),
    mistakes=[
        Mistake(
            "first_axis_taken_for_tokens",
            "the first axis taken for the tokens",
            "With sentences in front, the tokens are the second axis from the right.",
            "x.shape[-2] -> len(x)",
        ),
        Mistake(
            "second_axis_taken_for_tokens",
            "the second axis from the left taken for the tokens",
            "A single sentence has two axes, a batch three. From which side is the axis of the tokens always the same?",
            "x.shape[-2] -> x.shape[1]",
        ),
        Mistake(
            "last_rows",
            "the last T rows of the table",
            "The first token is at place 0.",
            "table[:T] -> table[len(table) - T :]",
        ),
        Mistake(
            "off_by_one",
            "rows 1 to T instead of 0 to T-1",
            "The first token is at place 0.",
            "table[:T] -> table[1 : T + 1]",
        ),
        Mistake(
            "length_not_checked",
            "a sentence longer than the table is not refused in words",
            "Slicing past the end is no error, and a single row is repeated silently. Who must ask?",
            "if T > len(table): -> if False:",
        ),
        Mistake(
            "assertion",
            "an assertion where a ValueError is asked for",
            "An assert can be switched off, and it raises another error. Which one does the spec name?",
            "raise ValueError( -> raise AssertionError(",
        ),
        Mistake(
            "places_wrap_around",
            "places beyond the table start again at 0",
            "Two words at different places would get the same vector. The spec wants an error.",
            ("if T > len(table): -> if False:", "table[:T] -> table[torch.arange(T) % len(table)]"),
        ),
        Mistake(
            "table_detached",
            "the table cut off from the gradient",
            "A learned table learns from the gradient that reaches it.",
            "table[:T] -> table[:T].detach()",
        ),
        Mistake(
            "table_rounded",
            "the table rounded to float32 before the sum",
            "The sum is float64, as it should be. Are all the digits of its second term?",
            "table[:T] -> table[:T].float()",
        ),
        Mistake(
            "words_scaled",
            "the word vectors scaled before the sum",
            "The paper scales embeddings elsewhere, when it looks them up. Here x comes as it is.",
            "return x + -> return x * x.shape[-1] ** 0.5 +",
        ),
        Mistake("multiplied", "multiplied instead of added", "Word plus place.", "x + table[:T] -> x * table[:T]"),
        Mistake(
            "concatenated",
            "places appended instead of added",
            "The width stays D.",
            "x + table[:T] -> torch.cat([x, table[:T].expand_as(x)], dim=-1)",
        ),
        Mistake(
            "added_in_place",
            "the sum written into x itself",
            "Whoever called you still needs x. Which operators write into their left side?",
            "x + table[:T] -> x.add_(table[:T])",
        ),
    ],
)


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
    "fixed_position_layer",
    cases_fixed_position_layer,
    axes=("sentence", "token", "column"),
    mistakes=[
        Mistake(
            "bug_not_fixed",
            "the published layer: every token of a sentence gets one and the same place",
            "Which axis of x does size(0) measure, now that sentences come first?",
            f"{WHOLE} -> x + pe[: x.size(0)]",
        ),
        Mistake(
            "middle_axis_kept",
            "the right rows, but still with an axis of length 1 in the middle",
            "Line (B, T, D) and (T, 1, D) up from the right: T meets 1, and what does B meet?",
            "pe.squeeze(1) -> pe",
        ),
        Mistake(
            "as_many_rows_as_sentences",
            "as many rows taken as there are sentences",
            "The middle axis is gone, and well so. How many rows does a sentence of T tokens need?",
            "x.size(1) -> x.size(0)",
        ),
        Mistake(
            "all_axes_squeezed",
            "every axis of length 1 squeezed away, not only the middle one",
            "What becomes of a table with a single column?",
            "pe.squeeze(1) -> pe.squeeze()",
        ),
        Mistake(
            "left_tokens_first",
            "the result left with tokens first",
            "Who calls you expects sentences first, as x came.",
            f"{WHOLE} -> x.transpose(0, 1) + pe[: x.size(1)]",
        ),
        Mistake(
            "reshaped_not_transposed",
            "reshape used to swap sentences and tokens",
            "reshape keeps the numbers in their running order. Which word ends up in which sentence?",
            f"{WHOLE} -> (x.reshape(x.size(1), x.size(0), -1) + pe[: x.size(1)]).reshape(x.shape)",
        ),
        Mistake(
            "first_place_for_all",
            "the first place for every token",
            "Each token needs a row of its own.",
            "pe.squeeze(1)[: x.size(1)] -> pe[0]",
        ),
        Mistake(
            "last_rows",
            "the last rows of the table",
            "The first token is at place 0.",
            "[: x.size(1)] -> [-x.size(1) :]",
        ),
    ],
)


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


shift_matrix = Exercise(
    "shift_matrix",
    cases_shift_matrix,
    axes=("new column", "old column"),
    mistakes=[
        Mistake(
            "turned_backwards",
            "the rotation by minus the offset",
            "Apply it to row 0 of the table. Do you land at +offset or at -offset?",
            "offset / 10000 -> -offset / 10000",
        ),
        Mistake(
            "reflection",
            "a reflection instead of a rotation",
            "For offset 0 nothing may move. What does yours do to the cosine column?",
            (
                "M[sine, sine] = M[cosine, cosine] = angles.cos().float() -> "
                "M[sine, sine], M[cosine, cosine] = angles.cos().float(), -angles.cos().float()",
                "= -angles.sin() -> = angles.sin()",
            ),
        ),
        Mistake(
            "sign_lost",
            "the minus sign of one block entry lost",
            "A rotation changes no length. Is each row of your block at a right angle to the other?",
            "= -angles.sin() -> = angles.sin()",
        ),
        Mistake(
            "one_speed_for_all",
            "every pair turned by the same angle",
            "Slow hands move less in the same time.",
            "10000 ** (sine.double() / d_model) -> (1 + 0 * sine.double())",
        ),
        Mistake(
            "exponent_i",
            "speeds whose exponent grows half as fast as it should",
            "Use the angles of sinusoidal_positions: pair 1 of D = 4 divides by 100.",
            "sine.double() / d_model -> sine.double() / 2 / d_model",
        ),
        Mistake(
            "sign_of_offset_lost",
            "a negative offset treated as positive",
            "Three words back is not three words ahead.",
            "offset / 10000 -> abs(offset) / 10000",
        ),
        Mistake(
            "halves_layout",
            "blocks for a table with all sines first",
            "Sine and cosine of a pair are neighbors here. Where do the four entries of a block stand?",
            (
                "torch.arange(0, d_model, 2), torch.arange(1, d_model, 2) -> "
                "torch.arange(d_model // 2), torch.arange(d_model // 2, d_model)",
                "sine.double() / d_model -> 2 * sine.double() / d_model",
            ),
        ),
        Mistake(
            "moved_columns",
            "a matrix that moves columns instead of turning pairs",
            "A step in place turns each pair; the columns stay where they are.",
            "return M -> return torch.eye(d_model).roll(offset, 0)",
        ),
        Mistake(
            "odd_width_accepted",
            "an odd width cut off instead of refused",
            "With an odd width one sine has no cosine. The spec says which exception that is.",
            (
                "if d_model % 2: -> if False:",
                "torch.zeros(d_model, d_model) -> torch.zeros(d_model + 1, d_model + 1)",
                "torch.arange(1, d_model, 2) -> torch.arange(1, d_model + 1, 2)",
                "return M -> return M[:d_model, :d_model]",
            ),
        ),
    ],
)


# 2.7 rotate


def cases_rotate(draw):
    def make(dtype, *lead, scale=1.0):
        return draw.normal(*lead, 5, 6, dtype=dtype, scale=scale), draw.permutation(5)

    def places(dtype, high, T=5, D=6):
        return draw.normal(3, T, D, dtype=dtype), draw.integers(0, high, (T,))

    return [
        Case(make(torch.float32)),
        Case((draw.normal(3, 4, 8), torch.arange(4))),
        *(Case(make(torch.float32, *lead), part=LEADING) for lead in ((3,), (2, 3), (1,), (2, 1))),
        # Measured: with cosines rounded to float32, entries near 1 are off by up to 1e-7 in float64, so the inputs
        # are small here, and gradients, which cannot be scaled, are judged at 1e-6.
        Case(make(torch.float64, scale=0.1), part=DTYPE),
        Case(make(torch.float64, 2), part=GRADIENT, gradient=True, tolerance=1e-6),
        Case(places(torch.float32, 60), part="far positions", tolerance=1e-4),
        Case(places(torch.float64, 60), part="far positions", tolerance=1e-4),
        Case((draw.normal(3, 5, 6), draw.permutation(5) + 1, 100.0), part="another base"),
        Case((draw.normal(2, 4, 8), draw.permutation(4) + 1), {"base": 500.0}, part="another base"),
        Case((draw.normal(3, 4, 2), draw.permutation(4)), part="D = 2"),
        Case((draw.normal(4, 6), torch.tensor([2, 2, 0, 3])), part="positions in any order"),
        Case((draw.normal(3, 1, 6), torch.tensor([3])), part="positions in any order"),
    ]


TURNED = "torch.stack([a * cos - b * sin, a * sin + b * cos], dim=-1).flatten(-2)"

rotate = Exercise(
    "rotate",
    cases_rotate,
    axes=("token", "column"),
    mistakes=[
        Mistake(
            "half_split_pairs",
            "column i paired with column i + D/2",
            "That is the other dialect. Here neighbors form a pair.",
            ("x[..., 0::2], x[..., 1::2] -> x.chunk(2, dim=-1)", "torch.stack( -> torch.cat(", ".flatten(-2) -> "),
        ),
        Mistake(
            "mixed_dialects",
            "neighbors' angles on pairs from the two halves",
            "The angles and the pairs come from different dialects. Which columns form pair 0?",
            (
                f"{TURNED} -> x * cos.repeat_interleave(2, -1) + "
                "torch.cat([-x[..., D // 2 :], x[..., : D // 2]], -1) * sin.repeat_interleave(2, -1)",
            ),
        ),
        Mistake(
            "not_interleaved_again",
            "the new pairs put back as two halves",
            "The pairs were taken from neighboring columns. Where must they go back?",
            ("torch.stack( -> torch.cat(", ".flatten(-2) -> "),
        ),
        Mistake(
            "turned_backwards",
            "the arrows turned the other way",
            "(1, 0) at place 1 should become (0.5403, 0.8415). What is yours?",
            "positions[:, None] -> -positions[:, None]",
        ),
        Mistake(
            "base_ignored",
            "10000 in place of the argument base",
            "Who uses base in your code?",
            "/ base ** -> / 10000.0 **",
        ),
        Mistake(
            "exponent_i",
            "an exponent that grows half as fast as it should",
            "With D = 4 and base 10000, pair 1 turns by a hundredth of the place.",
            "(even / D) -> (even / 2 / D)",
        ),
        Mistake(
            "positions_ignored",
            "places 0, 1, 2, ... in place of the argument positions",
            "A cache hands you places 7, 8, 9. Who uses positions in your code?",
            "positions[:, None] -> torch.arange(x.shape[-2])[:, None]",
        ),
        Mistake(
            "sign_lost",
            "a minus sign lost",
            "A rotation changes no length. Compare the norms before and after.",
            "a * cos - b * sin -> a * cos + b * sin",
        ),
        Mistake(
            "overwritten_first_column",
            "the second column made from the new first column",
            "Both new columns come from the old pair.",
            "a * sin + b * cos -> (a * cos - b * sin) * sin + b * cos",
        ),
        Mistake(
            "added_not_rotated",
            "waves added instead of arrows turned",
            "A vector of zeros, rotated, is what?",
            "a * cos - b * sin, a * sin + b * cos -> a + sin, b + cos",
        ),
        Mistake(
            "one_speed_for_all",
            "every pair turned by the same angle",
            "Later pairs turn slower.",
            "base ** (even / D) -> base ** (0 * even)",
        ),
    ],
)


exercises = [
    permutation_gap,
    sinusoidal_positions,
    find_position,
    add_positions,
    fixed_position_layer,
    shift_matrix,
    rotate,
]

quizzes = [
    Quiz(
        "quiz_1",
        "a",
        {
            "a": "Each layer is equivariant, so the whole stack is: the same rows in another order. Their mean is "
            "the same, for every choice of weights.",
            "b": "Training changes the weights, and the equation f(ΠX) = Πf(X) holds for all weights. There is nothing "
            "that training could find.",
            "c": "The rows do come out in another order, but a mean does not see in which order its terms stand.",
        },
    ),
    Quiz(
        "quiz_2",
        "a",
        {
            "a": "Pair 0 turns by a whole radian at each step; the last pair of D = 16 turns by 10000^(-14/16), "
            "about 0.0003.",
            "b": "Those are the hour hand: in one step they turn by about 0.0003 radians and hardly move.",
            "c": "All rows have the same length, and still they point in different directions. The fast columns do most "
            "of the moving.",
        },
    ),
    Quiz(
        "quiz_3",
        "b",
        {
            "a": "They carry the same places in different ways: rotations keep absolute places out of the score, and "
            "added vectors bring them back in.",
            "b": "Queries and keys are now made from x + P, so they contain the absolute place before they are "
            "turned; the score then depends on it too.",
            "c": "A rotation keeps lengths, so it removes nothing of what was added.",
        },
    ),
]
