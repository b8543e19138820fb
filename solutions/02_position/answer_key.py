"""Cases and known mistakes of lesson 2."""

import math

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


def _table(length, d_model):
    """The rows that find_position is asked about, and a table for the mistakes that need a right one."""
    even = torch.arange(0, d_model, 2, dtype=torch.float64)
    angles = torch.arange(length, dtype=torch.float64)[:, None] * 10000 ** (-even / d_model)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1).float()


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
    blind, still = "functions blind to order", "a permutation that moves nothing"
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
        Case((Fixture("running_mean"), draw.normal(5, 3, dtype=torch.float64), _cycle(draw, 5)), part="float64 inputs"),
    ]


def gap_without_abs(f, x, perm):
    return (f(x[perm]) - f(x)[perm]).max().item()


def gap_mean(f, x, perm):
    return (f(x[perm]) - f(x)[perm]).abs().mean().item()


def gap_not_shuffled_back(f, x, perm):
    return (f(x[perm]) - f(x)).abs().max().item()


def gap_inverse_permutation(f, x, perm):
    return (f(x[perm]) - f(x)[perm.argsort()]).abs().max().item()


def gap_norm(f, x, perm):
    return (f(x[perm]) - f(x)[perm]).norm().item()


def gap_squared(f, x, perm):
    return (f(x[perm]) - f(x)[perm]).square().max().item()


def gap_of_sums(f, x, perm):
    return (f(x[perm]).sum(0) - f(x)[perm].sum(0)).abs().max().item()


def gap_of_inputs(f, x, perm):
    return (f(x[perm]) - x[perm]).abs().max().item() if f(x).shape == x.shape else (f(x[perm])).abs().max().item()


def gap_as_tensor(f, x, perm):
    return (f(x[perm]) - f(x)[perm]).abs().max()


def gap_loop(f, x, perm):
    shuffled, plain = f(x[perm]), f(x)
    gap = 0.0
    for row, source in enumerate(perm.tolist()):
        for a, b in zip(shuffled[row].tolist(), plain[source].tolist(), strict=True):
            gap = max(gap, abs(a - b))
    return gap


def gap_matrix(f, x, perm):
    shuffle = torch.eye(len(x), dtype=x.dtype)[perm]
    return float((f(shuffle @ x) - shuffle @ f(x)).abs().max())


def gap_infinity_norm(f, x, perm):
    with torch.no_grad():
        return float(torch.linalg.vector_norm(f(x[perm]) - f(x)[perm], ord=math.inf))


def gap_unshuffled(f, x, perm):
    back = torch.argsort(perm)
    difference = f(x.index_select(0, perm))[back] - f(x)
    return max(difference.max().item(), -difference.min().item())


def gap_numpy(f, x, perm):
    a, b = f(x[perm]).detach().numpy(), f(x).detach().numpy()[perm.numpy()]
    return float(abs(a - b).max())


permutation_gap = Exercise(
    "permutation_gap",
    cases_permutation_gap,
    mistakes=[
        Mistake(
            "without_abs",
            "the largest difference with its sign, not the largest in size",
            "A difference of -3 is a gap of 3. What does your maximum say about it?",
            gap_without_abs,
        ),
        Mistake(
            "mean_difference",
            "the mean of the differences instead of the largest",
            "One entry far off among a thousand equal ones: should the gap be large or tiny?",
            gap_mean,
        ),
        Mistake(
            "output_not_shuffled",
            "f(x[perm]) compared with f(x) itself",
            "Row 0 of f(x[perm]) belongs to another word than row 0 of f(x). Which one?",
            gap_not_shuffled_back,
        ),
        Mistake(
            "inverse_permutation",
            "the output shuffled by the inverse permutation",
            "Both sides must be shuffled in the same direction.",
            gap_inverse_permutation,
        ),
        Mistake(
            "norm_of_difference",
            "the norm of the whole difference",
            "The gap is about the single worst entry.",
            gap_norm,
        ),
        Mistake(
            "squared_difference",
            "the largest squared difference",
            "A gap in the same units as the output: is a square needed?",
            gap_squared,
        ),
        Mistake(
            "summed_over_tokens",
            "the outputs summed over the tokens before they are compared",
            "A sum over the tokens forgets which token gave what, so it hides part of the gap.",
            gap_of_sums,
        ),
        Mistake(
            "compared_with_input",
            "f's output compared with its input",
            "The question is not how far f moves the words, but whether f and the shuffle commute.",
            gap_of_inputs,
        ),
        Mistake(
            "left_as_tensor",
            "a tensor with one number instead of a Python float",
            "The spec asks for a Python float. Which method takes the one number out of a tensor?",
            gap_as_tensor,
        ),
    ],
    alternatives=[gap_loop, gap_matrix, gap_infinity_norm, gap_unshuffled, gap_numpy],
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


def _guard(d_model):
    if d_model % 2:
        raise ValueError("d_model must be even")


def _interleave(sines, cosines):
    return torch.stack([sines, cosines], dim=-1).flatten(1).float()


def _grid(length, d_model):
    _guard(d_model)
    return torch.arange(length).double()[:, None], torch.arange(d_model // 2).double()


def positions_halves(length, d_model):
    t, i = _grid(length, d_model)
    angles = t / 10000 ** (2 * i / d_model)
    return torch.cat([angles.sin(), angles.cos()], dim=-1).float()


def positions_exponent_i(length, d_model):
    t, i = _grid(length, d_model)
    angles = t / 10000 ** (i / d_model)
    return _interleave(angles.sin(), angles.cos())


def positions_exponent_4i(length, d_model):
    t, i = _grid(length, d_model)
    angles = t / 10000 ** (4 * i / d_model)
    return _interleave(angles.sin(), angles.cos())


def positions_own_cosine(length, d_model):
    t, i = _grid(length, d_model)
    return _interleave((t / 10000 ** (2 * i / d_model)).sin(), (t / 10000 ** ((2 * i + 1) / d_model)).cos())


def positions_doubled_own_cosine(length, d_model):
    t, i = _grid(length, d_model)
    even = 2 * i
    return _interleave((t / 10000 ** (2 * even / d_model)).sin(), (t / 10000 ** (2 * (even + 1) / d_model)).cos())


def positions_cosine_first(length, d_model):
    t, i = _grid(length, d_model)
    angles = t / 10000 ** (2 * i / d_model)
    return _interleave(angles.cos(), angles.sin())


def positions_multiplied(length, d_model):
    t, i = _grid(length, d_model)
    angles = t * 10000 ** (2 * i / d_model)
    return _interleave(angles.sin(), angles.cos())


def positions_from_one(length, d_model):
    t, i = _grid(length, d_model)
    angles = (t + 1) / 10000 ** (2 * i / d_model)
    return _interleave(angles.sin(), angles.cos())


def positions_tensor2tensor(length, d_model):
    t, i = _grid(length, d_model)
    angles = t / 10000 ** (i / max(d_model // 2 - 1, 1))
    return _interleave(angles.sin(), angles.cos())


def positions_base_1000(length, d_model):
    t, i = _grid(length, d_model)
    angles = t / 1000 ** (2 * i / d_model)
    return _interleave(angles.sin(), angles.cos())


def positions_full_turns(length, d_model):
    t, i = _grid(length, d_model)
    angles = 2 * math.pi * t / 10000 ** (2 * i / d_model)
    return _interleave(angles.sin(), angles.cos())


def positions_odd_accepted(length, d_model):
    even = torch.arange(0, d_model, 2).double()
    angles = torch.arange(length).double()[:, None] / 10000 ** (even / d_model)
    return _interleave(angles.sin(), angles.cos())[:, :d_model]


def positions_loops(length, d_model):
    _guard(d_model)
    table = torch.zeros(length, d_model)
    for t in range(length):
        for column in range(0, d_model, 2):
            angle = t / 10000 ** (column / d_model)
            table[t, column], table[t, column + 1] = math.sin(angle), math.cos(angle)
    return table


def positions_exp_log(length, d_model):
    _guard(d_model)
    t = torch.arange(length, dtype=torch.float).unsqueeze(1)
    divisor = torch.exp(torch.arange(0, d_model, 2).float() * (-math.log(10000.0) / d_model))
    table = torch.zeros(length, d_model)
    table[:, 0::2] = torch.sin(t * divisor)
    table[:, 1::2] = torch.cos(t * divisor)
    return table


def positions_parity(length, d_model):
    if d_model % 2 == 1:
        raise ValueError(d_model)
    column = torch.arange(d_model)
    angles = torch.arange(length)[:, None] / 10000 ** (2 * (column // 2) / d_model)
    return torch.where(column % 2 == 0, angles.sin(), angles.cos())


def positions_phase(length, d_model):
    _guard(d_model)
    column = torch.arange(d_model)
    angles = torch.outer(torch.arange(length).float(), 10000.0 ** (-(column - column % 2) / d_model))
    return torch.sin(angles + (column % 2) * (math.pi / 2))


def positions_complex(length, d_model):
    _guard(d_model)
    speeds = torch.pow(10000.0, -torch.arange(0, d_model, 2) / d_model)
    hands = torch.polar(torch.ones(length, d_model // 2), torch.einsum("t,i->ti", torch.arange(length).float(), speeds))
    return torch.stack((hands.imag, hands.real), dim=2).reshape(length, d_model)


def positions_powers(length, d_model):
    _guard(d_model)
    step = torch.exp(1j * 10000 ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model))
    hands = step ** torch.arange(length, dtype=torch.float64)[:, None]
    return torch.view_as_real(hands).flip(-1).flatten(1).float()


sinusoidal_positions = Exercise(
    "sinusoidal_positions",
    cases_sinusoidal_positions,
    axes=("position", "column"),
    mistakes=[
        Mistake(
            "halves_concatenated",
            "all sines first, then all cosines",
            "The formula says what stands in column 1. Is it a sine or a cosine?",
            positions_halves,
        ),
        Mistake(
            "exponent_i",
            "an exponent that grows half as fast as it should",
            "Pair 1 of a table with D = 4 divides by 100. What does yours divide by?",
            positions_exponent_i,
        ),
        Mistake(
            "exponent_doubled",
            "an exponent that grows twice as fast as it should",
            "If your counter already runs 0, 2, 4, ..., what has been doubled?",
            positions_exponent_4i,
        ),
        Mistake(
            "cosine_has_own_angle",
            "a cosine with an angle of its own",
            "Sine and cosine of a pair are one clock hand. At how many angles can it point?",
            positions_own_cosine,
        ),
        Mistake(
            "doubled_and_own_angle",
            "a doubled exponent, and a cosine with an angle of its own",
            "Two things: what the loop counter already is, and what the two columns of a pair share.",
            positions_doubled_own_cosine,
        ),
        Mistake(
            "cosine_first",
            "sine and cosine swapped",
            "What should row 0 begin with: the sine of 0 or the cosine of 0?",
            positions_cosine_first,
        ),
        Mistake(
            "multiplied_by_power",
            "the place multiplied by the power instead of divided",
            "Later pairs are slower hands. Do your angles grow or shrink with i?",
            positions_multiplied,
        ),
        Mistake(
            "counted_from_one",
            "places counted from 1",
            "At place 0 every angle is 0. What is your row 0?",
            positions_from_one,
        ),
        Mistake(
            "last_wave_is_10000",
            "waves spread so that the last divisor is exactly 10000",
            "That is tensor2tensor's variant. In the paper's formula the last exponent stays below 1.",
            positions_tensor2tensor,
        ),
        Mistake("base_1000", "1000 in place of 10000", "Count the zeros.", positions_base_1000),
        Mistake(
            "turns_not_radians",
            "a factor 2 pi in the angles",
            "The place is the angle of the first pair, in radians. It is no count of turns.",
            positions_full_turns,
        ),
        Mistake(
            "odd_width_accepted",
            "an odd width cut off instead of refused",
            "With an odd width one sine has no cosine. The spec says which exception that is.",
            positions_odd_accepted,
        ),
    ],
    alternatives=[
        positions_loops,
        positions_exp_log,
        positions_parity,
        positions_phase,
        positions_complex,
        positions_powers,
    ],
)


# 2.3 find_position


def cases_find_position(draw):
    def one(length, d_model, t, first=None):
        noise = 0.0099 * draw.choice((-1, 1)) * torch.ones(d_model)
        if first is not None:
            noise = draw.uniform(d_model, low=-0.0099, high=0.0099)
            noise[0] = first
        return (_table(length, d_model)[t] + noise, length)

    return [
        # sin 22 is -0.0089: with this noise the first column alone looks like place 0.
        Case(one(41, 6, 22, first=0.0099)),
        Case(one(200, 16, draw.integer(101, 199), first=-0.005)),
        Case(one(23, 4, draw.integer(8, 22))),
        Case(one(400, 4, draw.integer(320, 399)), part="far positions"),
        Case(one(512, 8, draw.integer(400, 511)), part="far positions"),
        Case((_table(120, 12)[draw.integer(50, 119)], 120), part="a row without noise"),
        Case(one(31, 6, 0), part="first and last place"),
        Case(one(31, 6, 30), part="first and last place"),
    ]


def place_of_first_hand(row, length):
    return round(math.atan2(row[0].item(), row[1].item()) % (2 * math.pi)) % length


def place_from_first_column(row, length):
    return (_table(length, len(row))[:, 0] - row[0]).abs().argmin().item()


def place_of_largest_entry(row, length):
    return row.argmax().item()


def place_counted_from_one(row, length):
    return (_table(length, len(row)) @ row).argmax().item() + 1


def place_of_least_like(row, length):
    return (_table(length, len(row)) @ row).argmin().item()


def place_from_sums(row, length):
    return (_table(length, len(row)) - row).sum(-1).abs().argmin().item()


def place_from_arcsine(row, length):
    angle = math.asin(max(-1.0, min(1.0, row[-2].item())))
    return round(angle * 10000 ** ((len(row) - 2) / len(row)))


def place_as_tensor(row, length):
    return (_table(length, len(row)) @ row).argmax()


def place_nearest(row, length):
    return int(torch.cdist(_table(length, len(row)), row[None]).argmin())


def place_loop(row, length):
    best, best_distance = 0, math.inf
    for t, candidate in enumerate(_table(length, row.shape[0])):
        distance = (candidate - row).abs().sum().item()
        if distance < best_distance:
            best, best_distance = t, distance
    return best


def place_cosine(row, length):
    return torch.cosine_similarity(_table(length, len(row)), row[None], dim=-1).argmax().item()


def place_close(row, length):
    same = torch.isclose(_table(length, len(row)), row, rtol=0, atol=0.02).all(-1)
    return same.nonzero()[0].item()


def place_angles(row, length):
    angles = torch.atan2(row[0::2], row[1::2])
    own = _table(length, len(row))
    turned = torch.atan2(own[:, 0::2], own[:, 1::2]) - angles
    return (1 - turned.cos()).sum(-1).argmin().tolist()


find_position = Exercise(
    "find_position",
    cases_find_position,
    mistakes=[
        Mistake(
            "fastest_pair_only",
            "the place read off the fastest pair alone",
            "The second hand shows the second. Which minute it is, it does not know.",
            place_of_first_hand,
        ),
        Mistake(
            "first_column_only",
            "only the first column compared",
            "A sine passes each height twice a turn, and the row is blurred. What do the other columns add?",
            place_from_first_column,
        ),
        Mistake(
            "largest_entry",
            "the column of the row's largest entry",
            "The index of a column is no place. What must the row be compared with?",
            place_of_largest_entry,
        ),
        Mistake(
            "counted_from_one",
            "places counted from 1",
            "The first row of the table is place 0.",
            place_counted_from_one,
        ),
        Mistake(
            "least_alike",
            "the row that is least alike",
            "Is your measure large or small for two equal rows?",
            place_of_least_like,
        ),
        Mistake(
            "signed_differences",
            "differences summed with their signs",
            "Differences of +1 and -1 add up to 0. Are the rows then equal?",
            place_from_sums,
        ),
        Mistake(
            "arcsine_of_slowest",
            "the place read off the slowest sine alone",
            "The slowest hand moves little from place to place. How much does the blur move it?",
            place_from_arcsine,
        ),
        Mistake(
            "left_as_tensor",
            "a tensor with one number instead of a Python int",
            "The spec asks for a Python int.",
            place_as_tensor,
        ),
    ],
    alternatives=[place_nearest, place_loop, place_cosine, place_close, place_angles],
)


# 2.4 add_positions


def cases_add_positions(draw):
    def make(dtype, *lead):
        return draw.normal(*lead, 5, 4, dtype=dtype), draw.normal(9, 4, dtype=dtype)

    def one(lead, T, D, rows):
        return draw.normal(*lead, T, D), draw.normal(rows, D)

    long = "T longer than the table"
    return [
        *tensor_cases(make, leads=((), (3,), (2, 3))),
        Case(one((5,), 3, 4, 7), part=LEADING),
        Case(one((11,), 3, 4, 7), part=LEADING),
        Case(make(torch.float64, 2, 3), part=GRADIENT, gradient=True),
        Case(one((3,), 6, 4, 6), part="T equal to the table's length"),
        Case(one((3,), 1, 4, 6), part="one token"),
        Case(one((), 7, 4, 6), part=long, raises=Raises("ValueError")),
        Case(one((2,), 5, 4, 1), part=long, raises=Raises("ValueError")),
    ]


def _checked(x, table):
    if x.shape[-2] > table.shape[0]:
        raise ValueError("more tokens than positions")
    return x.shape[-2]


def add_by_first_axis(x, table):
    if x.shape[0] > len(table) or x.shape[-2] > len(table):
        raise ValueError("more tokens than positions")
    rows = table[: x.shape[0]]
    return x + rows if x.dim() == 2 else x + rows.reshape(-1, *[1] * (x.dim() - 2), x.shape[-1])


def add_last_rows(x, table):
    T = _checked(x, table)
    return x + table[len(table) - T :]


def add_shifted(x, table):
    T = _checked(x, table)
    return x + table.roll(-1, 0)[:T]


def add_unchecked(x, table):
    return x + table[: x.shape[-2]]


def add_wrapped(x, table):
    return x + table[torch.arange(x.shape[-2]) % len(table)]


def add_detached(x, table):
    return x + table[: _checked(x, table)].detach()


def add_scaled(x, table):
    return x * x.shape[-1] ** 0.5 + table[: _checked(x, table)]


def add_multiplied(x, table):
    return x * table[: _checked(x, table)]


def add_concatenated(x, table):
    rows = table[: _checked(x, table)]
    return torch.cat([x, rows.expand_as(x)], dim=-1)


def add_in_place(x, table):
    x += table[: _checked(x, table)]
    return x


def add_index(x, table):
    T = x.size(-2)
    if T > table.size(0):
        raise ValueError(f"T = {T} > {table.size(0)}")
    return x + torch.nn.functional.embedding(torch.arange(T), table)


def add_expanded(x, table):
    T, D = x.shape[-2:]
    if T > table.shape[0]:
        raise ValueError
    return torch.add(x, table.narrow(0, 0, T).reshape(*[1] * (x.dim() - 2), T, D).expand_as(x))


def add_rows(x, table):
    if table.shape[0] < x.shape[-2]:
        raise ValueError("too long")
    return torch.stack([x[..., t, :] + table[t] for t in range(x.shape[-2])], dim=-2)


def add_select(x, table):
    T = x.shape[-2]
    if T > len(table):
        raise ValueError("too long")
    choose = torch.eye(len(table), dtype=table.dtype)[:T]
    return x + torch.einsum("tn,nd->td", choose, table)


def add_by_hand(x, table):
    T = x.shape[-2]
    if not T <= len(table):
        raise ValueError("too long")
    out = x.clone()
    out += table[:T]
    return out


add_positions = Exercise(
    "add_positions",
    cases_add_positions,
    axes=("token", "column"),
    mistakes=[
        Mistake(
            "first_axis_taken_for_tokens",
            "the first axis taken for the tokens",
            "With sentences in front, the tokens are the second axis from the right.",
            add_by_first_axis,
        ),
        Mistake("last_rows", "the last T rows of the table", "The first token is at place 0.", add_last_rows),
        Mistake("off_by_one", "rows 1 to T instead of 0 to T-1", "The first token is at place 0.", add_shifted),
        Mistake(
            "length_not_checked",
            "a sentence longer than the table is not refused in words",
            "Slicing past the end is no error, and a single row is repeated silently. Who must ask?",
            add_unchecked,
        ),
        Mistake(
            "places_wrap_around",
            "places beyond the table start again at 0",
            "Two words at different places would get the same vector. The spec wants an error.",
            add_wrapped,
        ),
        Mistake(
            "table_detached",
            "the table cut off from the gradient",
            "A learned table learns from the gradient that reaches it.",
            add_detached,
        ),
        Mistake(
            "words_scaled",
            "the word vectors scaled before the sum",
            "The paper scales embeddings elsewhere, when it looks them up. Here x comes as it is.",
            add_scaled,
        ),
        Mistake("multiplied", "multiplied instead of added", "Word plus place.", add_multiplied),
        Mistake("concatenated", "places appended instead of added", "The width stays D.", add_concatenated),
        Mistake(
            "added_in_place",
            "the sum written into x itself",
            "Whoever called you still needs x. Which operators write into their left side?",
            add_in_place,
        ),
    ],
    alternatives=[add_index, add_expanded, add_rows, add_select, add_by_hand],
)


# 2.5 fixed_position_layer


def cases_fixed_position_layer(draw):
    def make(dtype, B=3):
        return draw.normal(B, 5, 4, dtype=dtype), draw.normal(9, 1, 4, dtype=dtype)

    return [
        Case(make(torch.float32)),
        Case(make(torch.float32, 6)),
        Case(make(torch.float64), part=DTYPE),
        Case(make(torch.float64), part=GRADIENT, gradient=True),
        Case(make(torch.float32, 11), part="more sentences than places"),
        Case(make(torch.float32, 1), part="a batch of one"),
        Case((draw.normal(5, 5, 4), draw.normal(9, 1, 4)), part="B equal to T"),
        Case((draw.normal(3, 9, 4), draw.normal(9, 1, 4)), part="T equal to max_len"),
        Case((draw.normal(3, 1, 4), draw.normal(9, 1, 4)), part="one token"),
    ]


def layer_published(x, pe):
    return x + pe[: x.size(0)]


def layer_rows_only(x, pe):
    return x + pe[: x.size(1)]


def layer_not_transposed_back(x, pe):
    return x.transpose(0, 1) + pe[: x.size(1)]


def layer_viewed(x, pe):
    B, T, D = x.shape
    return (x.reshape(T, B, D) + pe[:T]).reshape(B, T, D)


def layer_first_row(x, pe):
    return x + pe[0]


def layer_counted_from_end(x, pe):
    return x + pe[-x.size(1) :, 0]


def layer_transposed(x, pe):
    return (x.transpose(0, 1) + pe[: x.size(1)]).transpose(0, 1)


def layer_table_transposed(x, pe):
    return x + pe.transpose(0, 1)[:, : x.size(1)]


def layer_indexed(x, pe):
    return x + pe[: x.shape[1], 0]


def layer_loop(x, pe):
    return torch.stack([sentence + pe[: len(sentence), 0, :] for sentence in x])


def layer_viewed_right(x, pe):
    T, D = x.shape[1:]
    return x + pe[:T].view(1, T, D)


def layer_permuted(x, pe):
    return torch.einsum("tbd->btd", pe[: x.size(1)].expand(-1, x.size(0), -1)) + x


fixed_position_layer = Exercise(
    "fixed_position_layer",
    cases_fixed_position_layer,
    axes=("sentence", "token", "column"),
    mistakes=[
        Mistake(
            "bug_not_fixed",
            "the published layer: every token of a sentence gets one and the same place",
            "Which axis of x does size(0) measure, now that sentences come first?",
            layer_published,
        ),
        Mistake(
            "middle_axis_kept",
            "the right rows, but still with an axis of length 1 in the middle",
            "Line (B, T, D) and (T, 1, D) up from the right: T meets 1, and what does B meet?",
            layer_rows_only,
        ),
        Mistake(
            "left_tokens_first",
            "the result left with tokens first",
            "Who calls you expects sentences first, as x came.",
            layer_not_transposed_back,
        ),
        Mistake(
            "reshaped_not_transposed",
            "reshape used to swap sentences and tokens",
            "reshape keeps the numbers in their running order. Which word ends up in which sentence?",
            layer_viewed,
        ),
        Mistake(
            "first_place_for_all",
            "the first place for every token",
            "Each token needs a row of its own.",
            layer_first_row,
        ),
        Mistake("last_rows", "the last rows of the table", "The first token is at place 0.", layer_counted_from_end),
    ],
    alternatives=[
        layer_transposed,
        layer_table_transposed,
        layer_indexed,
        layer_loop,
        layer_viewed_right,
        layer_permuted,
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


def _blocks(angles, block):
    return torch.block_diag(*[torch.tensor(block(math.cos(a), math.sin(a))) for a in angles])


def _angles(offset, d_model):
    _guard(d_model)
    return [offset * 10000 ** (-i / d_model) for i in range(0, d_model, 2)]


def shift_transposed(offset, d_model):
    return _blocks(_angles(offset, d_model), lambda c, s: [[c, -s], [s, c]])


def shift_reflection(offset, d_model):
    return _blocks(_angles(offset, d_model), lambda c, s: [[c, s], [s, -c]])


def shift_both_plus(offset, d_model):
    return _blocks(_angles(offset, d_model), lambda c, s: [[c, s], [s, c]])


def shift_one_speed(offset, d_model):
    _guard(d_model)
    return _blocks([offset] * (d_model // 2), lambda c, s: [[c, s], [-s, c]])


def shift_exponent_i(offset, d_model):
    _guard(d_model)
    return _blocks([offset * 10000 ** (-i / d_model) for i in range(d_model // 2)], lambda c, s: [[c, s], [-s, c]])


def shift_absolute(offset, d_model):
    return _blocks(_angles(abs(offset), d_model), lambda c, s: [[c, s], [-s, c]])


def shift_halves(offset, d_model):
    angles = torch.tensor(_angles(offset, d_model))
    c, s = torch.diag(angles.cos()), torch.diag(angles.sin())
    return torch.cat([torch.cat([c, s], 1), torch.cat([-s, c], 1)])


def shift_permutation(offset, d_model):
    _guard(d_model)
    return torch.eye(d_model).roll(offset, 0)


def shift_odd_accepted(offset, d_model):
    angles = [offset * 10000 ** (-i / d_model) for i in range(0, d_model, 2)]
    return _blocks(angles, lambda c, s: [[c, s], [-s, c]])[:d_model, :d_model].contiguous()


def shift_loop(offset, d_model):
    _guard(d_model)
    M = torch.zeros(d_model, d_model)
    for i in range(0, d_model, 2):
        a = offset / 10000 ** (i / d_model)
        M[i, i], M[i, i + 1], M[i + 1, i], M[i + 1, i + 1] = math.cos(a), math.sin(a), -math.sin(a), math.cos(a)
    return M


def shift_block_diag(offset, d_model):
    return _blocks(_angles(offset, d_model), lambda c, s: [[c, s], [-s, c]])


def shift_from_table(offset, d_model):
    row = _table(abs(offset) + 1, d_model)[-1] if d_model % 2 == 0 else _guard(d_model)
    sines = row[0::2] * (1 if offset >= 0 else -1)
    M = torch.diag(row[1::2].repeat_interleave(2))
    even = torch.arange(0, d_model, 2)
    return M.index_put((even, even + 1), sines).index_put((even + 1, even), -sines)


def shift_matrix_power(offset, d_model):
    step = _blocks(_angles(1, d_model), lambda c, s: [[c, s], [-s, c]])
    return torch.linalg.matrix_power(step if offset >= 0 else step.T, abs(offset))


def shift_matrix_exp(offset, d_model):
    generators = [torch.tensor([[0.0, a], [-a, 0.0]]) for a in _angles(offset, d_model)]
    return torch.linalg.matrix_exp(torch.block_diag(*generators))


def shift_solved(offset, d_model):
    _guard(d_model)
    even = torch.arange(0, d_model, 2, dtype=torch.float64)
    t = torch.linspace(-20000, 20000, 4001, dtype=torch.float64)[:, None]

    def rows(places):
        angles = places * 10000 ** (-even / d_model)
        return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)

    return torch.linalg.lstsq(rows(t), rows(t + offset)).solution.T.float().contiguous()


shift_matrix = Exercise(
    "shift_matrix",
    cases_shift_matrix,
    axes=("new column", "old column"),
    mistakes=[
        Mistake(
            "turned_backwards",
            "the rotation by minus the offset",
            "Apply it to row 0 of the table. Do you land at +offset or at -offset?",
            shift_transposed,
        ),
        Mistake(
            "reflection",
            "a reflection instead of a rotation",
            "For offset 0 nothing may move. What does yours do to the cosine column?",
            shift_reflection,
        ),
        Mistake(
            "sign_lost",
            "the minus sign of one block entry lost",
            "A rotation changes no length. Is each row of your block at a right angle to the other?",
            shift_both_plus,
        ),
        Mistake(
            "one_speed_for_all",
            "every pair turned by the same angle",
            "Slow hands move less in the same time.",
            shift_one_speed,
        ),
        Mistake(
            "exponent_i",
            "speeds whose exponent grows half as fast as it should",
            "Use the angles of sinusoidal_positions: pair 1 of D = 4 divides by 100.",
            shift_exponent_i,
        ),
        Mistake(
            "sign_of_offset_lost",
            "a negative offset treated as positive",
            "Three words back is not three words ahead.",
            shift_absolute,
        ),
        Mistake(
            "halves_layout",
            "blocks for a table with all sines first",
            "Sine and cosine of a pair are neighbors here. Where do the four entries of a block stand?",
            shift_halves,
        ),
        Mistake(
            "moved_columns",
            "a matrix that moves columns instead of turning pairs",
            "A step in place turns each pair; the columns stay where they are.",
            shift_permutation,
        ),
        Mistake(
            "odd_width_accepted",
            "an odd width cut off instead of refused",
            "With an odd width one sine has no cosine. The spec says which exception that is.",
            shift_odd_accepted,
        ),
    ],
    alternatives=[shift_loop, shift_block_diag, shift_from_table, shift_matrix_power, shift_matrix_exp, shift_solved],
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
        Case(make(torch.float32, 3), part=LEADING),
        Case(make(torch.float32, 2, 3), part=LEADING),
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


def _turn(x, positions, base=10000.0):
    D = x.shape[-1]
    angles = positions[:, None].double() * base ** (-torch.arange(0, D, 2).double() / D)
    return angles.cos().to(x.dtype), angles.sin().to(x.dtype), x[..., 0::2], x[..., 1::2]


def _pairs(a, b):
    return torch.stack([a, b], dim=-1).flatten(-2)


def rotate_halves(x, positions, base=10000.0):
    c, s, _, _ = _turn(x, positions, base)
    a, b = x.chunk(2, dim=-1)
    return torch.cat([a * c - b * s, a * s + b * c], dim=-1)


def rotate_mixed_dialects(x, positions, base=10000.0):
    c, s, _, _ = _turn(x, positions, base)
    a, b = x.chunk(2, dim=-1)
    turned = torch.cat([-b, a], dim=-1)
    return x * c.repeat_interleave(2, -1) + turned * s.repeat_interleave(2, -1)


def rotate_uninterleaved(x, positions, base=10000.0):
    c, s, a, b = _turn(x, positions, base)
    return torch.cat([a * c - b * s, a * s + b * c], dim=-1)


def rotate_backwards(x, positions, base=10000.0):
    c, s, a, b = _turn(x, positions, base)
    return _pairs(a * c + b * s, b * c - a * s)


def rotate_base_ignored(x, positions, base=10000.0):
    c, s, a, b = _turn(x, positions)
    return _pairs(a * c - b * s, a * s + b * c)


def rotate_exponent_i(x, positions, base=10000.0):
    c, s, a, b = _turn(x, positions, base**0.5)
    return _pairs(a * c - b * s, a * s + b * c)


def rotate_positions_ignored(x, positions, base=10000.0):
    c, s, a, b = _turn(x, torch.arange(x.shape[-2]), base)
    return _pairs(a * c - b * s, a * s + b * c)


def rotate_sign_lost(x, positions, base=10000.0):
    c, s, a, b = _turn(x, positions, base)
    return _pairs(a * c + b * s, a * s + b * c)


def rotate_overwritten(x, positions, base=10000.0):
    c, s, a, b = _turn(x, positions, base)
    first = a * c - b * s
    return _pairs(first, first * s + b * c)


def rotate_added(x, positions, base=10000.0):
    c, s, a, b = _turn(x, positions, base)
    return _pairs(a + s, b + c)


def rotate_one_speed(x, positions, base=10000.0):
    _, _, a, b = _turn(x, positions, base)
    angle = positions[:, None].to(x.dtype)
    return _pairs(a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos())


def rotate_complex(x, positions, base=10000.0):
    c, s, _, _ = _turn(x, positions, base)
    z = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2).contiguous())
    return torch.view_as_real(z * torch.complex(c, s)).flatten(-2)


def rotate_float32_tables(x, positions, base=10000.0):
    D = x.shape[-1]
    angles = positions[:, None] / base ** (torch.arange(0, D, 2) / D)
    cos, sin = angles.cos().repeat_interleave(2, dim=-1), angles.sin().repeat_interleave(2, dim=-1)
    crossed = torch.stack([-x[..., 1::2], x[..., 0::2]], dim=-1).reshape(x.shape)
    return x * cos + crossed * sin


def rotate_filled(x, positions, base=10000.0):
    D = x.size(-1)
    inverse = 1.0 / base ** (torch.arange(0, D, 2).to(x.dtype) / D)
    angles = torch.einsum("t,i->ti", positions.to(x.dtype), inverse)
    out = torch.empty_like(x)
    out[..., ::2] = x[..., ::2] * angles.cos() - x[..., 1::2] * angles.sin()
    out[..., 1::2] = x[..., ::2] * angles.sin() + x[..., 1::2] * angles.cos()
    return out


def rotate_matrices(x, positions, base=10000.0):
    c, s, _, _ = _turn(x, positions, base)
    R = torch.stack([torch.stack([c, -s], -1), torch.stack([s, c], -1)], -2)  # (T, D/2, 2, 2)
    return torch.einsum("tiab,...tib->...tia", R, x.unflatten(-1, (-1, 2))).flatten(-2)


def rotate_loop(x, positions, base=10000.0):
    D = x.shape[-1]
    tokens = []
    for t, place in enumerate(positions.tolist()):
        columns = []
        for i in range(0, D, 2):
            angle = place * base ** (-i / D)
            a, b = x[..., t, i], x[..., t, i + 1]
            columns += [a * math.cos(angle) - b * math.sin(angle), a * math.sin(angle) + b * math.cos(angle)]
        tokens.append(torch.stack(columns, dim=-1))
    return torch.stack(tokens, dim=-2)


rotate = Exercise(
    "rotate",
    cases_rotate,
    axes=("token", "column"),
    mistakes=[
        Mistake(
            "half_split_pairs",
            "column i paired with column i + D/2",
            "That is the other dialect. Here neighbors form a pair.",
            rotate_halves,
        ),
        Mistake(
            "mixed_dialects",
            "neighbors' angles on pairs from the two halves",
            "The angles and the pairs come from different dialects. Which columns form pair 0?",
            rotate_mixed_dialects,
        ),
        Mistake(
            "not_interleaved_again",
            "the new pairs put back as two halves",
            "The pairs were taken from neighboring columns. Where must they go back?",
            rotate_uninterleaved,
        ),
        Mistake(
            "turned_backwards",
            "the arrows turned the other way",
            "(1, 0) at place 1 should become (0.5403, 0.8415). What is yours?",
            rotate_backwards,
        ),
        Mistake(
            "base_ignored", "10000 in place of the argument base", "Who uses base in your code?", rotate_base_ignored
        ),
        Mistake(
            "exponent_i",
            "an exponent that grows half as fast as it should",
            "With D = 4 and base 10000, pair 1 turns by a hundredth of the place.",
            rotate_exponent_i,
        ),
        Mistake(
            "positions_ignored",
            "places 0, 1, 2, ... in place of the argument positions",
            "A cache hands you places 7, 8, 9. Who uses positions in your code?",
            rotate_positions_ignored,
        ),
        Mistake(
            "sign_lost",
            "a minus sign lost",
            "A rotation changes no length. Compare the norms before and after.",
            rotate_sign_lost,
        ),
        Mistake(
            "overwritten_first_column",
            "the second column made from the new first column",
            "Both new columns come from the old pair.",
            rotate_overwritten,
        ),
        Mistake(
            "added_not_rotated",
            "waves added instead of arrows turned",
            "A vector of zeros, rotated, is what?",
            rotate_added,
        ),
        Mistake(
            "one_speed_for_all", "every pair turned by the same angle", "Later pairs turn slower.", rotate_one_speed
        ),
    ],
    alternatives=[rotate_complex, rotate_float32_tables, rotate_filled, rotate_matrices, rotate_loop],
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
