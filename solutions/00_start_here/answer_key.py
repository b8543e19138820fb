"""Cases and known mistakes of lesson 0. Nothing here is graded; the check judges it all the same."""

import torch

from helpers.checking.vocabulary import Case, Exercise, Mistake, Quiz, tensor_cases

# ---- twice


def cases_twice(draw):
    def make(dtype, *lead):
        return (draw.normal(*lead, 4, dtype=dtype),)

    return tensor_cases(make)


def squared(x):
    return x * x


def added_two(x):
    return x + 2


def unchanged(x):
    return x.clone()


def halved(x):
    return x / 2


def twice_by_adding(x):
    return x + x


def twice_by_scaling(x):
    return torch.mul(x, 2.0)


def twice_by_stacking(x):
    return torch.stack([x, x]).sum(dim=0)


def twice_by_subtracting(x):
    return x - (-x)


# ---- sum_table


def cases_sum_table(draw):
    def make(dtype, *lead):
        return draw.normal(*lead, 4, dtype=dtype), draw.normal(*lead, 3, dtype=dtype)

    def lengths(n, m):
        return draw.normal(n), draw.normal(m)

    return [
        *tensor_cases(make, leads=((), (2,), (5, 2))),
        Case(lengths(1, 3), part="a single number in a or b"),
        Case(lengths(4, 1), part="a single number in a or b"),
        Case(lengths(5, 5), part="a and b of one length"),
    ]


def table_turned(a, b):
    return a.unsqueeze(-2) + b.unsqueeze(-1)


def table_of_products(a, b):
    return a.unsqueeze(-1) * b.unsqueeze(-2)


def table_of_differences(a, b):
    return a.unsqueeze(-1) - b.unsqueeze(-2)


def table_without_leading(a, b):
    return a[:, None] + b[None, :]


def table_flattened(a, b):
    return (a.unsqueeze(-1) + b.unsqueeze(-2)).flatten(-2)


def table_by_position(a, b):
    return a + b


def table_with_none(a, b):
    return a[..., :, None] + b[..., None, :]


def table_with_expand(a, b):
    shape = (*a.shape, b.shape[-1])
    return a.unsqueeze(-1).expand(shape) + b.unsqueeze(-2).expand(shape)


def table_with_loops(a, b):
    rows = [torch.stack([a[..., i] + b[..., j] for j in range(b.shape[-1])], dim=-1) for i in range(a.shape[-1])]
    return torch.stack(rows, dim=-2)


def table_with_einsum(a, b):
    left = torch.einsum("...n,...m->...nm", a, torch.ones_like(b))
    return left + torch.einsum("...n,...m->...nm", torch.ones_like(a), b)


def table_with_reshape(a, b):
    return a.reshape(*a.shape, 1) + b.reshape(*b.shape[:-1], 1, b.shape[-1])


# ---- center_rows


def cases_center_rows(draw):
    def make(dtype, *lead):
        return (draw.normal(*lead, 4, dtype=dtype) + 1.0,)

    return [
        *tensor_cases(make, leads=((3,), (), (2, 3), (5, 2, 3))),
        Case((draw.normal(4, 4) + 1.0,), part="as many rows as columns"),
        Case((draw.normal(3, 1) + 1.0,), part="rows of one number"),
    ]


def centered_without_keepdim(x):
    return x - x.mean(-1)


def centered_down_the_columns(x):
    return x - x.mean(dim=-2, keepdim=True)


def centered_over_first_axis(x):
    return x - x.mean(dim=0, keepdim=True)


def centered_over_axis_one(x):
    return x - x.mean(dim=1, keepdim=True)


def centered_by_one_mean(x):
    return x - x.mean()


def mean_alone(x):
    return x.mean(dim=-1, keepdim=True)


def standardized(x):
    return (x - x.mean(dim=-1, keepdim=True)) / x.std(dim=-1, keepdim=True, unbiased=False)


def centered_by_sum(x):
    return x - x.sum(dim=-1, keepdim=True)


def mean_minus_row(x):
    return x.mean(dim=-1, keepdim=True) - x


def center_with_unsqueeze(x):
    return x - x.mean(-1).unsqueeze(-1)


def center_with_sum(x):
    return x - x.sum(-1, keepdim=True) / x.shape[-1]


def center_with_matrix(x):
    n = x.shape[-1]
    return x @ (torch.eye(n, dtype=x.dtype) - torch.full((n, n), 1.0 / n, dtype=x.dtype))


def center_with_loop(x):
    rows = x.reshape(-1, x.shape[-1])
    return torch.stack([row - row.mean() for row in rows]).reshape(x.shape)


def center_with_none(x):
    return x - x.mean(dim=-1)[..., None].expand_as(x)


def center_with_einsum(x):
    return x - torch.einsum("...d->...", x)[..., None] / x.size(-1)


# ---- swap_last_two


def cases_swap_last_two(draw):
    def make(dtype, *lead):
        return (draw.normal(*lead, 4, 3, dtype=dtype),)

    return [
        *tensor_cases(make, leads=((), (2,), (2, 5))),
        Case((draw.normal(4, 4),), part="a square table"),
        Case((draw.normal(2, 3, 4).transpose(-2, -1),), part="a tensor that was turned before"),
    ]


def recut(x):
    return x.reshape(*x.shape[:-2], x.shape[-1], x.shape[-2])


def all_axes_reversed(x):
    return x.permute(*reversed(range(x.dim())))


def first_two_axes(x):
    return x.transpose(0, 1)


def unturned(x):
    return x.clone()


def turned_and_flipped(x):
    return x.transpose(-2, -1).flip(-1)


def swap_with_m_t(x):
    return x.mT


def swap_with_movedim(x):
    return x.movedim(-1, -2)


def swap_with_einsum(x):
    return torch.einsum("...td->...dt", x)


def swap_with_permute(x):
    axes = list(range(x.dim()))
    axes[-1], axes[-2] = axes[-2], axes[-1]
    return x.permute(axes).contiguous()


def swap_with_columns(x):
    return torch.stack(x.unbind(dim=-1), dim=-2)


# ---- blank_first_token


def cases_blank_first_token(draw):
    def make(dtype, *lead):
        return (draw.normal(*lead, 4, 3, dtype=dtype),)

    return [
        *tensor_cases(make, leads=((), (2,), (2, 5))),
        Case((draw.normal(1, 3),), part="a single token"),
        Case((draw.normal(4, 4),), part="as many tokens as columns"),
    ]


def blanked_in_the_original(x):
    x[..., 0, :] = 0
    return x


def blanked_first_column(x):
    y = x.clone()
    y[..., 0] = 0
    return y


def blanked_first_of_first_axis(x):
    y = x.clone()
    y[0] = 0
    return y


def blanked_axis_one(x):
    y = x.clone()
    y[:, 0] = 0
    return y


def blanked_last_token(x):
    y = x.clone()
    y[..., -1, :] = 0
    return y


def dropped_first_token(x):
    return x[..., 1:, :]


def pushed_along(x):
    return torch.cat([torch.zeros_like(x[..., :1, :]), x[..., :-1, :]], dim=-2)


def blanked_all_others(x):
    y = torch.zeros_like(x)
    y[..., 0, :] = x[..., 0, :]
    return y


def blank_with_cat(x):
    return torch.cat([torch.zeros_like(x[..., :1, :]), x[..., 1:, :]], dim=-2)


def blank_with_where(x):
    first = torch.arange(x.shape[-2]).unsqueeze(-1) == 0
    return torch.where(first, torch.zeros_like(x), x)


def blank_with_product(x):
    keep = torch.ones(x.shape[-2], 1, dtype=x.dtype)
    keep[0] = 0
    return x * keep


def blank_with_index_fill(x):
    return x.index_fill(-2, torch.tensor([0]), 0.0)


def blank_with_copy(x):
    y = torch.zeros_like(x)
    y[..., 1:, :] = x[..., 1:, :]
    return y


def blank_with_masked_fill(x):
    mask = torch.zeros(x.shape[-2], 1, dtype=torch.bool)
    mask[0] = True
    return x.masked_fill(mask, 0.0)


# ---- share_above


def cases_share_above(draw):
    def make(dtype, *lead):
        return draw.normal(*lead, 7, dtype=dtype), draw.choice([-0.5, 0.25, 0.4])

    # Whole numbers from -3 to 3, with at least one entry of every row exactly at the threshold.
    ties = draw.integers(-3, 4, (4, 6)).float()
    ties[:, 2] = 1.0
    above = draw.uniform(3, 5, low=1.0, high=2.0)
    return [
        *tensor_cases(make, leads=((3,), (), (2, 3), (5, 2, 3)), gradient=False),
        Case((ties, 1.0), part="entries equal to the threshold"),
        Case((above, 0.5), part="all of a row, or nothing"),
        Case((above, 2.5), part="all of a row, or nothing"),
    ]


def counted(x, threshold):
    return (x > threshold).sum(dim=-1).to(x.dtype)


def at_or_above(x, threshold):
    return (x >= threshold).to(x.dtype).mean(dim=-1)


def share_below(x, threshold):
    return (x < threshold).to(x.dtype).mean(dim=-1)


def share_of_everything(x, threshold):
    return (x > threshold).to(x.dtype).mean()


def share_over_first_axis(x, threshold):
    return (x > threshold).to(x.dtype).mean(dim=0)


def share_with_axis_kept(x, threshold):
    return (x > threshold).to(x.dtype).mean(dim=-1, keepdim=True)


def mean_of_what_is_above(x, threshold):
    return (x * (x > threshold)).mean(dim=-1)


def mean_above(x, threshold):
    return (x.mean(dim=-1) > threshold).to(x.dtype)


def share_in_float32(x, threshold):
    return (x > threshold).float().mean(dim=-1)


def share_with_sum(x, threshold):
    return (x > threshold).sum(-1).to(x.dtype) / x.shape[-1]


def share_with_where(x, threshold):
    return torch.where(x > threshold, torch.ones_like(x), torch.zeros_like(x)).mean(-1)


def share_with_count(x, threshold):
    return torch.count_nonzero(torch.gt(x, threshold), dim=-1).to(x.dtype).div(x.size(-1))


def share_in_double(x, threshold):
    return (x > threshold).double().mean(dim=-1).to(x.dtype)


def share_with_type_as(x, threshold):
    return (x > threshold).type_as(x).mean(-1)


def share_with_loop(x, threshold):
    rows = x.reshape(-1, x.shape[-1]).tolist()
    shares = [sum(value > threshold for value in row) / len(row) for row in rows]
    return torch.tensor(shares, dtype=x.dtype).reshape(x.shape[:-1])


# ---- pick_per_row


def cases_pick_per_row(draw):
    def make(dtype, *lead):
        return draw.normal(*lead, 7, dtype=dtype), draw.integers(0, 7, lead)

    ends = torch.tensor([0, 6, 0, 6, 3])
    return [
        *tensor_cases(make, leads=((5,), (), (2, 3), (3, 2, 4))),
        Case((draw.normal(5, 7), ends), part="first and last entry"),
        Case((draw.normal(7, 7), draw.permutation(7)), part="as many rows as columns"),
    ]


def picked_for_every_row(x, index):
    return x[..., index]


def picked_with_axis_kept(x, index):
    return x.gather(-1, index.unsqueeze(-1))


def picked_off_by_one(x, index):
    return x.gather(-1, ((index - 1) % x.shape[-1]).unsqueeze(-1)).squeeze(-1)


def picked_rows(x, index):
    return x[index]


def picked_largest(x, index):
    return x.max(dim=-1).values


def picked_for_two_axes(x, index):
    return x[torch.arange(x.shape[0]), index]


def picked_same_entry(x, index):
    return x[..., index.reshape(-1)[0]]


def picked_from_the_end(x, index):
    return x.gather(-1, (x.shape[-1] - 1 - index).unsqueeze(-1)).squeeze(-1)


def pick_with_one_hot(x, index):
    hot = torch.nn.functional.one_hot(index, x.shape[-1]).to(x.dtype)
    return (x * hot).sum(dim=-1)


def pick_with_rows(x, index):
    rows, places = x.reshape(-1, x.shape[-1]), index.reshape(-1)
    return rows[torch.arange(len(rows)), places].reshape(index.shape)


def pick_with_take(x, index):
    return torch.take_along_dim(x, index[..., None], dim=-1)[..., 0]


def pick_with_loop(x, index):
    rows, places = x.reshape(-1, x.shape[-1]), index.reshape(-1).tolist()
    return torch.stack([row[place] for row, place in zip(rows, places, strict=True)]).reshape(index.shape)


def pick_with_mask(x, index):
    mask = torch.arange(x.shape[-1]) == index.unsqueeze(-1)
    return x.masked_fill(~mask, 0.0).sum(-1)


exercises = [
    Exercise(
        "twice",
        cases_twice,
        mistakes=[
            Mistake(
                "squared",
                "each number multiplied by itself",
                "Squaring and doubling agree at 0 and at 2 only. Which factor stays the same for every entry?",
                squared,
            ),
            Mistake(
                "added_two",
                "2 was added",
                "Twice 10 is 20, and your answer gives 12. What should happen to 10?",
                added_two,
            ),
            Mistake("unchanged", "x came back as it was", "Nothing has happened to the numbers yet.", unchanged),
            Mistake("halved", "half of x", "You went the other way.", halved),
        ],
        alternatives=[twice_by_adding, twice_by_scaling, twice_by_stacking, twice_by_subtracting],
    ),
    Exercise(
        "sum_table",
        cases_sum_table,
        axes=("entry of a", "entry of b"),
        mistakes=[
            Mistake(
                "table_turned",
                "the table stands on its side: a runs along the columns",
                "The output has one row for each entry of a. Which of the two should be the tall one, before you add?",
                table_turned,
            ),
            Mistake(
                "table_of_products",
                "a table of products",
                "Multiplication tables are filled by the same stretching. Which operation fills this one?",
                table_of_products,
            ),
            Mistake(
                "table_of_differences",
                "a table of differences",
                "Look at the sign in the formula once more.",
                table_of_differences,
            ),
            Mistake(
                "without_leading_dimensions",
                "new axes counted from the front, which is right only without leading dimensions",
                "With a batch in front, axis 0 is the batch. From which end does an axis keep its number?",
                table_without_leading,
            ),
            Mistake(
                "flattened",
                "all sums in one line",
                "The sums are right. They should form a table: keep two axes instead of one.",
                table_flattened,
            ),
            Mistake(
                "added_by_position",
                "a and b added position by position",
                "A plain sum pairs entry 0 with entry 0. Here every entry of a meets every entry of b.",
                table_by_position,
            ),
        ],
        alternatives=[table_with_none, table_with_expand, table_with_loops, table_with_einsum, table_with_reshape],
    ),
    Exercise(
        "center_rows",
        cases_center_rows,
        axes=("row", "column"),
        mistakes=[
            Mistake(
                "axis_lost",
                "the mean lost its axis, so row means lie along the columns (or do not fit at all)",
                "The means have shape (T,). Set (T, D) and (T,) flush right: what does T meet?",
                centered_without_keepdim,
            ),
            Mistake(
                "down_the_columns",
                "the mean was taken down each column",
                "The mean over an axis makes that axis disappear. Which axis runs along a row?",
                centered_down_the_columns,
            ),
            Mistake(
                "over_the_first_axis",
                "the mean was taken over the first axis",
                "Axis 0 changes its meaning with every leading dimension. From which end should you count?",
                centered_over_first_axis,
            ),
            Mistake(
                "over_axis_one",
                "the mean was taken over axis 1, which is the last one only in a table",
                "In a batch of tables, what does axis 1 count? From which end should you count?",
                centered_over_axis_one,
            ),
            Mistake(
                "one_mean_for_all",
                "one mean of all the numbers",
                "Every row has a mean of its own. Which argument of mean says along what to average?",
                centered_by_one_mean,
            ),
            Mistake("mean_alone", "the means, without the rows", "What is left to do with the mean?", mean_alone),
            Mistake(
                "standardized",
                "centered, then divided by the spread",
                "That is most of layer norm, and comes in lesson 9. Here the spread stays as it is.",
                standardized,
            ),
            Mistake(
                "sum_subtracted",
                "the sum was subtracted",
                "A row of 5, 5, 5 should become 0, 0, 0. What does yours make of it?",
                centered_by_sum,
            ),
            Mistake(
                "sign_flipped",
                "mean minus row",
                "A number above its row's mean should come out positive.",
                mean_minus_row,
            ),
        ],
        alternatives=[
            center_with_unsqueeze,
            center_with_sum,
            center_with_matrix,
            center_with_loop,
            center_with_none,
            center_with_einsum,
        ],
    ),
    Exercise(
        "swap_last_two",
        cases_swap_last_two,
        axes=("column of x", "row of x"),
        mistakes=[
            Mistake(
                "recut",
                "the line of memory was cut anew (view or reshape)",
                "The shape is right and the numbers are mixed. Which call turns a table, instead of cutting it anew?",
                recut,
            ),
            Mistake(
                "all_axes_reversed",
                "all axes reversed",
                "In a table that is the same thing. In a batch, the batch axis should stay in front.",
                all_axes_reversed,
            ),
            Mistake(
                "first_two_axes",
                "the first two axes swapped",
                "Axes 0 and 1 are the last two only in a table. From which end should you count?",
                first_two_axes,
            ),
            Mistake("unturned", "x came back as it was", "Rows should have become columns.", unturned),
            Mistake(
                "turned_and_flipped",
                "a quarter turn: the order of the rows is reversed as well",
                "The first row of x should become the first column.",
                turned_and_flipped,
            ),
        ],
        alternatives=[swap_with_m_t, swap_with_movedim, swap_with_einsum, swap_with_permute, swap_with_columns],
    ),
    Exercise(
        "blank_first_token",
        cases_blank_first_token,
        axes=("token", "column"),
        mistakes=[
            Mistake(
                "written_into_the_input",
                "the zeros were written into x itself",
                "A second name is not a second tensor: y = x copies nothing. How do you get numbers of your own?",
                blanked_in_the_original,
            ),
            Mistake(
                "first_column",
                "the first column became zero",
                "After ..., one index meets the last axis, and that is the width. Where is the token axis?",
                blanked_first_column,
            ),
            Mistake(
                "first_of_first_axis",
                "index 0 of the first axis became zero",
                "With a batch in front, [0] is a whole sentence. Which notation skips any leading dimensions?",
                blanked_first_of_first_axis,
            ),
            Mistake(
                "first_of_axis_one",
                "index 0 of axis 1 became zero",
                "Axis 1 counts tokens only when there is exactly one leading dimension. Count from the other end.",
                blanked_axis_one,
            ),
            Mistake("last_token", "the last token became zero", "Positions count from 0.", blanked_last_token),
            Mistake(
                "dropped",
                "the first token is gone",
                "The output has as many tokens as x. The first one is still there; it is all zeros.",
                dropped_first_token,
            ),
            Mistake(
                "pushed_along",
                "a zero token in front, and all others moved by one",
                "Token 1 of the output should be token 1 of x.",
                pushed_along,
            ),
            Mistake(
                "all_the_others",
                "everything but the first token became zero",
                "The right cut, the wrong side of it.",
                blanked_all_others,
            ),
        ],
        alternatives=[
            blank_with_cat,
            blank_with_where,
            blank_with_product,
            blank_with_index_fill,
            blank_with_copy,
            blank_with_masked_fill,
        ],
    ),
    Exercise(
        "share_above",
        cases_share_above,
        axes=("row",),
        mistakes=[
            Mistake(
                "counted",
                "a count, not a share",
                "Two of four is a share of one half. What is missing after the count?",
                counted,
            ),
            Mistake(
                "at_or_above",
                "entries equal to the threshold were counted too",
                "Above means strictly above.",
                at_or_above,
            ),
            Mistake("below", "the share below the threshold", "Which way should the comparison open?", share_below),
            Mistake(
                "over_everything",
                "one share over all rows",
                "Every row has a share of its own. Along which axis do you average?",
                share_of_everything,
            ),
            Mistake(
                "over_the_first_axis",
                "the share was taken down the first axis",
                "A share belongs to a row. Which axis runs along a row, however many come before it?",
                share_over_first_axis,
            ),
            Mistake(
                "axis_kept",
                "an axis of size 1 is left at the end",
                "Here the last axis should go. (In center_rows it had to stay.)",
                share_with_axis_kept,
            ),
            Mistake(
                "mean_of_what_is_above",
                "the entries above the threshold were averaged, not counted",
                "What should an entry above the threshold count for: its value, or one?",
                mean_of_what_is_above,
            ),
            Mistake(
                "mean_compared",
                "the row's mean was compared with the threshold",
                "Compare first, entry by entry. Average after that.",
                mean_above,
            ),
            Mistake(
                "always_float32",
                "the answer is float32 whatever x is",
                "The numbers are right. True and False have no float dtype of their own: whose should they take?",
                share_in_float32,
            ),
        ],
        alternatives=[
            share_with_sum,
            share_with_where,
            share_with_count,
            share_in_double,
            share_with_type_as,
            share_with_loop,
        ],
    ),
    Exercise(
        "pick_per_row",
        cases_pick_per_row,
        axes=("row",),
        mistakes=[
            Mistake(
                "every_index_for_every_row",
                "every row gave an entry for every index",
                "Plain indexing of one axis repeats the whole list of indices in every row. You want them paired.",
                picked_for_every_row,
            ),
            Mistake(
                "axis_kept",
                "an axis of size 1 is left at the end",
                "The numbers are right; the last axis should be gone.",
                picked_with_axis_kept,
            ),
            Mistake("off_by_one", "the entry before the right one", "Index 0 is the first entry.", picked_off_by_one),
            Mistake(
                "rows_picked",
                "whole rows were picked",
                "An index in first place chooses along axis 0. Along which axis do the indices of this puzzle run?",
                picked_rows,
            ),
            Mistake(
                "largest",
                "the largest entry of each row",
                "The index says which entry is meant. It need not be the largest.",
                picked_largest,
            ),
            Mistake(
                "one_leading_dimension_only",
                "right only for a table: rows were numbered along axis 0",
                "With none or two leading dimensions there is no single row number. What chooses along the last axis?",
                picked_for_two_axes,
            ),
            Mistake(
                "same_entry_everywhere",
                "every row gave the entry that only the first row should give",
                "Each row has an index of its own.",
                picked_same_entry,
            ),
            Mistake(
                "counted_from_the_end",
                "the index was counted from the end",
                "Index 0 is the first entry of a row, not the last.",
                picked_from_the_end,
            ),
        ],
        alternatives=[pick_with_one_hot, pick_with_rows, pick_with_take, pick_with_loop, pick_with_mask],
    ),
]

quizzes = [
    Quiz(
        "quiz_1",
        "c",
        {
            "a": "They do fit. Set flush right, 2 meets 2, 1 meets 4, 1 meets 3 and 5 meets 5; 1 fits any size.",
            "b": "A size of 1 stretches; it does not shrink its partner. 1 beside 4 gives 4.",
            "c": "The two ones stretch to 4 heads and 3 queries: one mask of keys for each sentence serves them "
            "all. Lessons 5 and 8 use this very pair of shapes.",
            "d": "The axes are paired up, not joined: both shapes have four axes, so the sum has four.",
        },
    ),
    Quiz(
        "quiz_2",
        "b",
        {
            "a": "That is its transpose. Rows of a Jacobian count outputs, columns count inputs.",
            "b": "One row for each of the 3 outputs, one column for each of the 5 inputs.",
            "c": "That is the shape of a gradient: what is left when the 3 outputs are summed with weights.",
            "d": "Backward needs a single number to start from. A Jacobian exists without it: it holds all 15 slopes.",
        },
    ),
]
