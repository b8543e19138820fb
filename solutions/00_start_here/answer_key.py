"""Cases and known mistakes of lesson 0. Its exercises are checked but not graded."""

import torch

from helpers.checking.vocabulary import Case, Exercise, listed_quizzes, tensor_cases


def cases_twice(draw):
    def make(dtype, *lead):
        return (draw.normal(*lead, 4, dtype=dtype),)

    return tensor_cases(make)


def cases_outer_sum(draw):
    def make(dtype, *lead, n=4, m=3):
        return draw.normal(*lead, n, dtype=dtype), draw.normal(*lead, m, dtype=dtype)

    return [
        *tensor_cases(make, leads=((), (2,), (1,), (5, 1, 2))),
        Case(make(torch.float32, n=1), part="a single entry in a or b"),
        Case(make(torch.float32, m=1), part="a single entry in a or b"),
        Case(make(torch.float32, n=5, m=5), part="a and b of one length"),
    ]


def cases_center_rows(draw):
    def make(dtype, *lead):
        return (draw.normal(*lead, 4, dtype=dtype) + 1.0,)

    return [
        *tensor_cases(make, leads=((3,), (), (1, 3), (2, 1), (5, 2, 3))),
        Case((draw.normal(4, 4) + 1.0,), part="as many rows as columns"),
        Case((draw.normal(3, 1) + 1.0,), part="rows of one entry"),
    ]


def cases_swap_last_two(draw):
    def make(dtype, *lead):
        return (draw.normal(*lead, 4, 3, dtype=dtype),)

    return [
        *tensor_cases(make, leads=((), (2,), (1,), (2, 1), (2, 5))),
        Case((draw.normal(4, 4),), part="a square table"),
        Case((draw.normal(2, 3, 4).transpose(-2, -1),), part="a tensor that is already transposed"),
    ]


def cases_zero_first_token(draw):
    def make(dtype, *lead):
        return (draw.normal(*lead, 4, 3, dtype=dtype),)

    return [
        *tensor_cases(make, leads=((), (2,), (1,), (2, 1), (2, 5))),
        Case((draw.normal(1, 3),), part="a single token"),
        Case((draw.normal(4, 3)[[0, 1, 0, 2]],), part="a token that comes twice"),
        Case((draw.normal(4, 4),), part="as many tokens as columns"),
    ]


def cases_fraction_above(draw):
    def make(dtype, *lead):
        return draw.normal(*lead, 7, dtype=dtype), draw.choice([-0.5, 0.25, 0.4])

    # Integers from -3 to 3, with at least one entry of every row exactly at the threshold.
    ties = draw.integers(-3, 4, (4, 6)).float()
    ties[:, 2] = 1.0
    above = draw.uniform(3, 5, low=1.0, high=2.0)
    return [
        *tensor_cases(make, leads=((3,), (), (1, 3), (2, 1), (5, 2, 3)), gradient=False),
        Case((ties, 1.0), part="entries equal to the threshold"),
        Case((above, 0.5), part="all of a row, or nothing"),
        Case((above, 2.5), part="all of a row, or nothing"),
    ]


def cases_gather_per_row(draw):
    def make(dtype, *lead):
        return draw.normal(*lead, 7, dtype=dtype), draw.integers(0, 7, lead)

    ends = torch.tensor([0, 6, 0, 6, 3])
    return [
        *tensor_cases(make, leads=((5,), (), (1,), (2, 1), (3, 2, 4))),
        Case((draw.normal(5, 7), ends), part="first and last entry"),
        Case((draw.normal(7, 7), draw.permutation(7)), part="as many rows as columns"),
    ]


def cases_gradient_by_hand(draw):
    def make(dtype, *lead):
        return draw.normal(*lead, 2, dtype=dtype), draw.normal(*lead, 2, dtype=dtype)

    given = torch.tensor([2.0, 3.0]), torch.tensor([1.0, 2.0])
    return [
        *tensor_cases(make, leads=((), (3,), (1,), (2, 1), (4, 3)), gradient=False),
        Case(given, part="the example of the text"),
    ]


exercises = [
    Exercise("twice", cases_twice).with_mistakes("""
    squared: each entry multiplied by itself
        2 * x -> x * x
        Squaring and doubling agree at 0 and at 2 only. Which factor stays the same for every entry?
    added_two: 2 was added
        2 * x -> x + 2
        Twice 10 is 20, and your answer gives 12. What should happen to 10?
    unchanged: x came back as it was
        2 * x -> x.clone()
        Your output is equal to x. What should happen to each entry?
    halved: half of x
        2 * x -> x / 2
        Half of 10 is 5. Which operation turns 10 into 20?
"""),
    Exercise("outer_sum", cases_outer_sum, axes=("entry of a", "entry of b")).with_mistakes("""
    table_turned: the table is transposed: a runs along the columns
        a.unsqueeze(-1) -> a.unsqueeze(-2)
        b.unsqueeze(-2) -> b.unsqueeze(-1)
        The output has one row for each entry of a. Which of the two should be a column before you add?
    table_of_products: a table of products
        ) + b -> ) * b
        A multiplication table is filled by the same broadcasting. Which operation does the formula ask for?
    table_of_differences: a table of differences
        ) + b -> ) - b
        Compare your sign with the one in the formula.
    without_leading_dimensions: right for two vectors, but not with leading dimensions
        a.unsqueeze(-1) -> a[:, None]
        b.unsqueeze(-2) -> b[None, :]
        With a batch in front, axis 0 is the batch. From which end does an axis keep its number?
    added_by_position: a and b added position by position
        a.unsqueeze(-1) + b.unsqueeze(-2) -> a + b
        A plain sum pairs entry 0 with entry 0. Here every entry of a is paired with every entry of b.
"""),
    Exercise("center_rows", cases_center_rows, axes=("row", "column")).with_mistakes("""
    axis_lost: the mean lost its axis, so row means lie along the columns (or do not fit at all)
        , keepdim=True ->
        The means have shape (T,). Set (T, D) and (T,) flush right: which axis is T paired with?
    down_the_columns: the mean was taken down each column
        dim=-1 -> dim=-2
        The mean over an axis makes that axis disappear. Which axis runs along a row?
    over_the_first_axis: the mean was taken over the first axis
        dim=-1 -> dim=0
        Axis 0 changes its meaning with every leading dimension. From which end should you count?
    over_axis_one: the mean was taken over axis 1, which is the last one only in a table
        dim=-1 -> dim=1
        In a batch of tables, what does axis 1 count? From which end should you count?
    one_mean_for_all: one mean of all entries
        dim=-1, keepdim=True ->
        Every row has a mean of its own. Which argument of mean chooses the axis?
    mean_alone: the means, without the rows
        x - x.mean -> x.mean
        What is left to do with the mean?
    standardized: centered, then divided by the standard deviation
        x - x.mean(dim=-1, keepdim=True)
        -> (x - x.mean(dim=-1, keepdim=True)) / x.std(dim=-1, keepdim=True)
        That is most of layer norm, which comes in lesson 9. Here the standard deviation should stay as it is.
    sign_flipped: mean minus row
        x - x.mean(dim=-1, keepdim=True) -> x.mean(dim=-1, keepdim=True) - x
        An entry above its row's mean should come out positive.
"""),
    Exercise("swap_last_two", cases_swap_last_two, axes=("column of x", "row of x")).with_mistakes("""
    recut: the line of memory was cut at other points (view or reshape)
        x.transpose(-2, -1) -> x.reshape(*x.shape[:-2], x.shape[-1], x.shape[-2])
        The shape is right, but the entries are mixed. Which call swaps two axes instead of reinterpreting the memory?
    all_axes_reversed: all axes reversed
        x.transpose(-2, -1) -> x.permute(*reversed(range(x.dim())))
        For a single table that is the same. In a batch, the batch axis should stay in front.
    first_two_axes: the first two axes swapped
        (-2, -1) -> (0, 1)
        Axes 0 and 1 are the last two only in a table. From which end should you count?
    unturned: x came back as it was
        x.transpose(-2, -1) -> x.clone()
        Rows should have become columns.
    quarter_turn: a quarter turn to the left: the columns come out in reversed order
        x.transpose(-2, -1) -> torch.rot90(x, 1, (-2, -1))
        Turn a sheet of paper by 90 degrees, or mirror it along its diagonal: which of the two keeps the first row first?
"""),
    Exercise("zero_first_token", cases_zero_first_token, axes=("token", "column")).with_mistakes("""
    written_into_the_input: the zeros were written into x itself
        x.clone() -> x
        y = x copies nothing, so both names mean one tensor. Which method makes a copy?
    first_column: the first column became zero
        y[..., 0, :] -> y[..., 0]
        After ..., a single index selects on the last axis, which is the width. Where is the token axis?
    first_of_first_axis: index 0 of the first axis became zero
        y[..., 0, :] -> y[0]
        With a batch in front, [0] is a whole sentence. Which notation skips any leading dimensions?
    first_of_axis_one: index 0 of axis 1 became zero
        y[..., 0, :] -> y[:, 0]
        Axis 1 counts tokens only when there is exactly one leading dimension. Count from the other end.
    last_token: the last token became zero
        y[..., 0, :] -> y[..., -1, :]
        The first token is at position 0.
    pushed_along: a zero token in front, and all others moved by one
        return y -> return torch.cat([0 * x[..., :1, :], x[..., :-1, :]], dim=-2)
        Token 1 of the output should be token 1 of x.
    all_the_others: everything but the first token became zero
        return y -> return x - y
        You split the table at the right row. Which of the two parts should be zero?
"""),
    Exercise("fraction_above", cases_fraction_above, axes=("row",)).with_mistakes("""
    counted: a count instead of a fraction
        .mean( -> .sum(
        Two of four is a fraction of one half. What is missing after the count?
    at_or_above: entries equal to the threshold were counted as well
        x > threshold -> x >= threshold
        Is an entry that equals the threshold above it?
    below: the fraction below the threshold
        x > threshold -> x < threshold
        Which comparison does the formula ask for?
    over_everything: one fraction for all rows together
        mean(dim=-1) -> mean()
        Every row has its own fraction. Along which axis do you average?
    mean_of_what_is_above: the entries above the threshold were averaged, not counted
        (x > threshold).to(x.dtype) -> (x * (x > threshold))
        Should an entry above the threshold count as its value, or as one?
"""),
    Exercise("gather_per_row", cases_gather_per_row, axes=("row",)).with_mistakes("""
    every_index_for_every_row: every row gave an entry for every index
        x.gather(-1, index.unsqueeze(-1)).squeeze(-1) -> x[..., index]
        Plain indexing of one axis repeats the whole list of indices in every row. Here each row should be paired with one index.
    off_by_one: the entry before the right one
        index.unsqueeze(-1) -> ((index - 1) % x.shape[-1]).unsqueeze(-1)
        Index 0 is the first entry.
    rows_picked: whole rows were picked
        x.gather(-1, index.unsqueeze(-1)).squeeze(-1) -> x[index]
        The first index selects along axis 0. Along which axis does this exercise select?
    one_leading_dimension_only: right for a table, an error with other leading dimensions
        x.gather(-1, index.unsqueeze(-1)).squeeze(-1) -> x[torch.arange(x.shape[0]), index]
        Without leading dimensions, or with two, there is no single row index. Which function selects along the last axis?
"""),
    Exercise(
        "gradient_by_hand",
        cases_gradient_by_hand,
        axes=("row", "input"),
        forbidden=("autograd",),
        instead="write down the four derivatives yourself.",
    ).with_mistakes("""
    jacobian_times_column: the Jacobian times g as a column, not g as a row times the Jacobian
        g1 * x2 + g2 * 2 * x1 -> g1 * x2 + g2 * x1
        g1 * x1 + g2 -> g1 * 2 * x1 + g2
        Both products have a shape that fits, because the table is square. Which derivatives belong to x1? They form one column.
    weights_ignored: each output counted once, because the weights g are missing
        g1 * x2 + g2 * 2 * x1 -> x2 + 2 * x1
        g1 * x1 + g2 -> x1 + 1 + 0 * g2
        L = g1 f1 + g2 f2. With g = (1, 2), how much does a change of f2 count?
    first_result_only: only the path through the first output
        g1 * x2 + g2 * 2 * x1 -> g1 * x2
        g1 * x1 + g2 -> g1 * x1
        Both x1 and x2 occur in both outputs. How many paths lead from x1 to the loss?
    slope_of_the_square: x1 as the derivative of x1 squared
        g2 * 2 * x1 -> g2 * x1
        If x1 goes from 2 to 2.1, by how much does its square change?
    inputs_exchanged: the two derivatives are exchanged
        [g1 * x2 + g2 * 2 * x1, g1 * x1 + g2] -> [g1 * x1 + g2, g1 * x2 + g2 * 2 * x1]
        The gradient has the shape of x, and its first entry belongs to the first input.
"""),
]

quizzes = listed_quizzes("""
    quiz_1: c
        a: The shapes do fit. Set flush right, 2 is paired with 2, 1 with 4, 1 with 3 and 5 with 5, and 1 fits any size.
        b: A size of 1 stretches; it does not shrink its partner. 1 and 4 give 4.
        c: The two ones stretch to 4 heads and 3 queries, so one mask of keys for each sentence serves them all. Lessons
           5 and 8 use this very pair of shapes.
        d: The axes are paired up, not joined: both shapes have four axes, so the sum has four.
    quiz_2: b
        a: That is its transpose. Rows of a Jacobian count outputs, columns count inputs.
        b: One row for each of the 3 outputs, one column for each of the 5 inputs.
        c: That is the shape of a gradient, which you get if you sum the 3 outputs with weights.
        d: backward needs a single number to start from, but a Jacobian doesn't, because it contains all 15 derivatives.
""")
