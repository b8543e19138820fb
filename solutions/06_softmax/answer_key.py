"""Answer key of lesson 6: softmax, its logarithm, its gradient, and softmax in a stream."""

import math

import torch
import torch.nn.functional as F

from helpers.checking.vocabulary import GRADIENT, LEADING, VALUES, Case, Exercise, Mistake, Quiz, Raises, tensor_cases

LARGE = "scores up to ±10,000"
BLOCKED = "entries of −inf"
ANY_DIM = "any dim"


def far_apart(draw, *shape):
    """float32 scores up to ±1e4, all at least 400 apart: softmax of any vector is exact in every right form."""
    n = math.prod(shape)
    return (draw.permutation(n).float() * 400 - 200 * (n - 1)).reshape(shape)


def at_heights(draw, *lead, n=5):
    """float64 scores near 9990, -9990, 0 and 4000: each vector at a height of its own, races in each still close."""
    heights = torch.tensor([9990.0, -9990.0, 0.0, 4000.0], dtype=torch.float64)
    return draw.normal(*lead, 4, n, dtype=torch.float64, scale=2) + heights[:, None]


def with_blocked(draw, *shape, dtype=torch.float64, scale=2.0):
    """Scores with some entries at -inf, and in each vector along the last two dimensions' ends a finite one."""
    x = draw.normal(*shape, dtype=dtype, scale=scale)
    return x.masked_fill(~draw.mask(*shape, keep=0.5), -math.inf)


def along_one_dimension(draw):
    """What softmax and log_softmax share: shapes, dimensions, large scores. Blocked entries are added by each."""

    def make(dtype, *lead):
        return (draw.normal(*lead, 5, dtype=dtype, scale=2),)

    def box(dtype=torch.float32):
        return draw.normal(3, 4, 6, dtype=dtype, scale=2)

    columns = at_heights(draw).T.contiguous()  # (5, 4): the vectors along dim 0 lie at heights of their own
    low = draw.normal(5, dtype=torch.float64) - 9990
    return [
        *tensor_cases(make, leads=((4,), (), (2, 3))),
        Case((box(), 0), part=ANY_DIM),
        Case((box(), 1), part=ANY_DIM),
        Case((box(),), {"dim": -2}, part=ANY_DIM),
        Case((box(torch.float64), -3), part=ANY_DIM, gradient=True),
        Case((box(), 2), part=ANY_DIM),
        Case((draw.normal(4, 6),), {"dim": 0}, part=ANY_DIM),
        Case((draw.normal(6), 0), part=ANY_DIM, note="one vector, dim=0"),
        Case((far_apart(draw, 6, 7),), part=LARGE),
        Case((at_heights(draw),), part=LARGE, gradient=True, note="rows near 9990, -9990, 0 and 4000"),
        Case((columns, 0), part=LARGE, note="columns near 9990, -9990, 0 and 4000"),
        Case((low,), part=LARGE, note="all scores near -9990"),
        Case((torch.tensor([0.0, -20000.0, -10000.0, -150.0]),), part=LARGE),
        # In float64: in float32 the form m + log(sum) has hardly more digits than the tolerance asks for.
        Case((torch.full((2, 3), 1e4, dtype=torch.float64),), part=LARGE, note="all scores 10,000"),
    ]


# ---------------------------------------------------------------- softmax


def cases_softmax(draw):
    lonely = torch.tensor([[-math.inf, 3.0, -math.inf], [0.5, -math.inf, 1.5]])
    far = torch.tensor([[-math.inf, 1e4, -1e4], [-math.inf, -math.inf, -1e4]])
    return [
        *along_one_dimension(draw),
        Case((lonely,), part=BLOCKED),
        Case((far,), part=BLOCKED),
        Case((with_blocked(draw, 2, 4, 5),), part=BLOCKED, gradient=True),
        Case((with_blocked(draw, 4, 6).T.contiguous(), 0), part=BLOCKED, gradient=True),
    ]


def soft_not_shifted(x, dim=-1):
    e = torch.exp(x)
    return e / e.sum(dim=dim, keepdim=True)


def soft_dim_ignored(x, dim=-1):
    e = torch.exp(x - x.amax(dim=-1, keepdim=True))
    return e / e.sum(dim=-1, keepdim=True)


def soft_first_dimension(x, dim=0):
    e = torch.exp(x - x.amax(dim=0, keepdim=True))
    return e / e.sum(dim=0, keepdim=True)


def soft_whole_tensor(x, dim=-1):
    e = torch.exp(x - x.max())
    return e / e.sum()


def soft_one_maximum(x, dim=-1):
    e = torch.exp(x - x.max())
    return e / e.sum(dim=dim, keepdim=True)


def soft_last_maximum(x, dim=-1):
    e = torch.exp(x - x.amax(dim=-1, keepdim=True))
    return e / e.sum(dim=dim, keepdim=True)


def soft_keepdim_forgotten(x, dim=-1):
    e = torch.exp(x - x.amax(dim=dim, keepdim=True))
    return e / e.sum(dim=dim)


def soft_shifted_by_mean(x, dim=-1):
    e = torch.exp(x - x.mean(dim=dim, keepdim=True))
    return e / e.sum(dim=dim, keepdim=True)


def soft_shifted_by_minimum(x, dim=-1):
    e = torch.exp(x - x.amin(dim=dim, keepdim=True))
    return e / e.sum(dim=dim, keepdim=True)


def soft_clamped(x, dim=-1):
    e = torch.exp(x.clamp(-80, 80))
    return e / e.sum(dim=dim, keepdim=True)


def soft_nan_to_zero(x, dim=-1):
    e = torch.exp(x)
    return torch.nan_to_num(e / e.sum(dim=dim, keepdim=True))


def soft_blocked_as_zero(x, dim=-1):
    x = torch.where(x.isinf(), torch.zeros_like(x), x)
    e = torch.exp(x - x.amax(dim=dim, keepdim=True))
    return e / e.sum(dim=dim, keepdim=True)


def soft_no_exponential(x, dim=-1):
    return x / x.sum(dim=dim, keepdim=True)


def soft_not_divided(x, dim=-1):
    return torch.exp(x - x.amax(dim=dim, keepdim=True))


def soft_logarithm(x, dim=-1):
    shifted = x - x.amax(dim=dim, keepdim=True)
    return shifted - shifted.exp().sum(dim=dim, keepdim=True).log()


def soft_sigmoid(x, dim=-1):
    return torch.sigmoid(x)


def soft_in_place(x, dim=-1):
    x -= x.amax(dim=dim, keepdim=True)
    return x.exp() / x.exp().sum(dim=dim, keepdim=True)


def soft_squeezed(x, dim=-1):
    e = torch.exp(x - x.amax(dim=-1, keepdim=True))
    return (e / e.sum(dim=-1, keepdim=True)).flatten(0, -2) if x.dim() > 2 else soft_dim_right(x, dim)


def soft_dim_right(x, dim=-1):
    e = torch.exp(x - x.amax(dim=dim, keepdim=True))
    return e / e.sum(dim=dim, keepdim=True)


def soft_by_max_values(x, dim=-1):
    m = x.max(dim, keepdim=True).values.detach()
    e = (x - m).exp()
    return e.div(e.sum(dim, keepdim=True))


def soft_through_log(x, dim=-1):
    m = torch.max(x, dim=dim, keepdim=True)[0]
    return torch.exp(x - (m + torch.log(torch.sum(torch.exp(x - m), dim=dim, keepdim=True))))


def soft_by_loop(x, dim=-1):
    turned = x.movedim(dim, -1)
    rows = []
    for row in turned.reshape(-1, turned.shape[-1]):
        top = max(row.tolist())
        e = [math.e ** (s - top) for s in row]
        rows.append(torch.stack([value / sum(e) for value in e]))
    return torch.stack(rows).reshape(turned.shape).movedim(-1, dim)


def soft_normalized(x, dim=-1):
    return F.normalize(torch.exp(x - torch.amax(x, dim, True)), p=1, dim=dim)


def soft_powers_of_two(x, dim=-1):
    x = x / math.log(2)
    e = torch.exp2(x - x.amax(dim, keepdim=True))
    return e * e.sum(dim, keepdim=True).reciprocal()


def soft_by_transpose(x, dim=-1):
    x = x.transpose(dim, -1)
    e = torch.exp(x - x.max(-1, keepdim=True)[0])
    return torch.einsum("...i,...->...i", e, 1 / e.sum(-1)).transpose(dim, -1)


def soft_in_double(x, dim=-1):
    wide = x.double()
    e = (wide - wide.max(dim=dim, keepdim=True).values).exp()
    return (e / e.sum(dim=dim, keepdim=True)).to(x.dtype)


def soft_blocked_apart(x, dim=-1):
    blocked = torch.isneginf(x)
    e = torch.exp((x - x.amax(dim, keepdim=True)).masked_fill(blocked, -1e9)).masked_fill(blocked, 0.0)
    return e / e.sum(dim, keepdim=True)


def soft_unbind(x, dim=-1):
    parts = x.unbind(dim)
    top = parts[0]
    for part in parts[1:]:
        top = torch.maximum(top, part)
    e = [torch.exp(part - top) for part in parts]
    return torch.stack([part / sum(e) for part in e], dim=dim)


NOT_SHIFTED_HINT = "Try the scores 1000 and 1001. Only differences count: which number may you take off all of them?"

softmax = Exercise(
    "softmax",
    cases_softmax,
    forbidden=("softmax", "log_softmax"),
    instead="build it from a maximum, exponentials and a sum.",
    mistakes=[
        Mistake("not_shifted", "the exponentials of the raw scores", NOT_SHIFTED_HINT, soft_not_shifted),
        Mistake(
            "dim_ignored",
            "always along the last dimension",
            "The caller may ask for another dimension. Where does `dim` appear in your code?",
            soft_dim_ignored,
        ),
        Mistake(
            "first_dimension",
            "along the first dimension",
            "Without further notice the last dimension is meant. Add up a row of yours.",
            soft_first_dimension,
        ),
        Mistake(
            "whole_tensor",
            "all entries of the tensor share one unit",
            "Add up one vector of yours. Each should have a unit of its own.",
            soft_whole_tensor,
        ),
        Mistake(
            "one_maximum_for_all",
            "one maximum for the whole tensor",
            "A row of -9990s beside a row of 9990s: what is left of it after your shift?",
            soft_one_maximum,
        ),
        Mistake(
            "maximum_of_another_dimension",
            "the maximum along the last dimension, the sum along another",
            "Two numbers belong to each vector, and both go along the same dimension.",
            soft_last_maximum,
        ),
        Mistake(
            "keepdim_forgotten",
            "the sums lost their dimension",
            "Shapes (4, 5) and (4,): which entries does broadcasting bring together?",
            soft_keepdim_forgotten,
        ),
        Mistake(
            "shifted_by_the_mean",
            "shifted by the mean",
            "How far above the mean can the largest score lie? Choose a shift that it cannot pass.",
            soft_shifted_by_mean,
        ),
        Mistake(
            "shifted_by_the_minimum",
            "shifted by the minimum",
            "After your shift all exponents are positive. Which sign should they have?",
            soft_shifted_by_minimum,
        ),
        Mistake(
            "scores_clamped",
            "scores cut off at a bound",
            "9000 and 9001 are cut to the same number. Their difference should survive.",
            soft_clamped,
        ),
        Mistake(
            "nan_made_zero",
            "NaN replaced by 0",
            "Then a vector of large scores gets no weight at all. Keep the overflow from happening.",
            soft_nan_to_zero,
        ),
        Mistake(
            "blocked_scores_count_as_zero",
            "a score of −inf treated like a score of 0",
            "A score of 0 has the exponential 1. What is the exponential of −inf?",
            soft_blocked_as_zero,
        ),
        Mistake(
            "no_exponential",
            "scores divided by their sum",
            "Negative scores give negative shares. What made them positive?",
            soft_no_exponential,
        ),
        Mistake(
            "not_divided",
            "exponentials that do not add up to 1",
            "One step is missing: shares of a whole.",
            soft_not_divided,
        ),
        Mistake(
            "logarithm_returned",
            "the logarithm of the shares",
            "That is a later exercise. Here the shares themselves are asked for.",
            soft_logarithm,
        ),
        Mistake(
            "sigmoid",
            "each score squashed by itself",
            "A sigmoid knows nothing of the other scores. What do yours add up to?",
            soft_sigmoid,
        ),
        Mistake(
            "changed_in_place",
            "the scores are shifted in place",
            "The caller still needs x. Which operator writes into it?",
            soft_in_place,
        ),
        Mistake(
            "leading_dimensions_merged",
            "leading dimensions merged into one",
            "The result has the shape of x.",
            soft_squeezed,
        ),
    ],
    alternatives=[
        soft_by_max_values,
        soft_through_log,
        soft_by_loop,
        soft_normalized,
        soft_powers_of_two,
        soft_by_transpose,
        soft_in_double,
        soft_blocked_apart,
        soft_unbind,
    ],
)

# ---------------------------------------------------------------- log_softmax


def cases_log_softmax(draw):
    lonely = torch.tensor([[-math.inf, 3.0, -math.inf], [0.5, -math.inf, 1.5]])
    far = torch.tensor([[-math.inf, 1e4, -1e4], [-math.inf, -math.inf, -1e4]])
    # No gradient is asked for at the infinite entries: correct forms differ there.
    return [
        *along_one_dimension(draw),
        Case((lonely,), part=BLOCKED),
        Case((far,), part=BLOCKED),
        Case((with_blocked(draw, 2, 4, 5),), part=BLOCKED),
        Case((with_blocked(draw, 4, 6).T.contiguous(), 0), part=BLOCKED),
        Case(
            (with_blocked(draw, 3, 5),),
            part=BLOCKED,
            gradient=True,
            via="finite_entries",
            note="only finite entries count",
        ),
    ]


def log_of_share(x, dim=-1):
    e = torch.exp(x - x.amax(dim=dim, keepdim=True))
    return torch.log(e / e.sum(dim=dim, keepdim=True))


def log_of_raw_share(x, dim=-1):
    return torch.log(torch.exp(x) / torch.exp(x).sum(dim=dim, keepdim=True))


def log_with_epsilon(x, dim=-1):
    e = torch.exp(x - x.amax(dim=dim, keepdim=True))
    return torch.log(e / e.sum(dim=dim, keepdim=True) + 1e-8)


def log_share_clamped(x, dim=-1):
    e = torch.exp(x - x.amax(dim=dim, keepdim=True))
    return torch.log((e / e.sum(dim=dim, keepdim=True)).clamp_min(1e-12))


def log_not_shifted(x, dim=-1):
    return x - x.exp().sum(dim=dim, keepdim=True).log()


def log_shifted_once(x, dim=-1):
    m = x.amax(dim=dim, keepdim=True)
    return x - (x - m).exp().sum(dim=dim, keepdim=True).log()


def log_shift_added(x, dim=-1):
    m = x.amax(dim=dim, keepdim=True)
    return x + m - (x - m).exp().sum(dim=dim, keepdim=True).log()


def log_one_maximum(x, dim=-1):
    shifted = x - x.max()
    return shifted - shifted.exp().sum(dim=dim, keepdim=True).log()


def log_last_maximum(x, dim=-1):
    m = x.amax(dim=-1, keepdim=True)
    return x - m - (x - x.amax(dim=dim, keepdim=True)).exp().sum(dim=dim, keepdim=True).log()


def log_dim_ignored(x, dim=-1):
    return soft_logarithm(x)


def log_first_dimension(x, dim=0):
    return soft_logarithm(x, 0)


def log_whole_tensor(x, dim=-1):
    shifted = x - x.max()
    return shifted - shifted.exp().sum().log()


def log_sign(x, dim=-1):
    return -soft_logarithm(x, dim)


def log_base_two(x, dim=-1):
    return soft_logarithm(x, dim) / math.log(2)


def log_keepdim_forgotten(x, dim=-1):
    shifted = x - x.amax(dim=dim, keepdim=True)
    return shifted - shifted.exp().sum(dim=dim).log()


def log_blocked_made_finite(x, dim=-1):
    return soft_logarithm(x.clamp_min(-1e9), dim)


def log_of_each_exponential(x, dim=-1):
    return x - x.exp().log().sum(dim=dim, keepdim=True)


def log_by_max_values(x, dim=-1):
    m = x.max(dim, keepdim=True).values.detach()
    total = torch.exp(x - m).sum(dim, keepdim=True)
    return x - m - torch.log(total)


def log_minus_whole(x, dim=-1):
    m = torch.amax(x, dim, keepdim=True)
    return x - (m + (x - m).exp().sum(dim, keepdim=True).log())


def log_by_loop(x, dim=-1):
    turned = x.movedim(dim, -1)
    rows = []
    for row in turned.reshape(-1, turned.shape[-1]):
        top = row[row.argmax()]
        total = sum(torch.exp(s - top) for s in row)
        rows.append(torch.stack([s - top - total.log() for s in row]))
    return torch.stack(rows).reshape(turned.shape).movedim(-1, dim)


def log_by_transpose(x, dim=-1):
    x = x.transpose(dim, -1)
    shifted = x - x.max(-1, keepdim=True)[0]
    return (shifted - torch.einsum("...i->...", shifted.exp()).log()[..., None]).transpose(-1, dim)


def log_in_double(x, dim=-1):
    wide = x.double()
    shifted = wide - wide.amax(dim=dim, keepdim=True)
    return (shifted - torch.log(torch.sum(torch.exp(shifted), dim, keepdim=True))).to(x.dtype)


def log_with_log1p(x, dim=-1):
    m = x.amax(dim=dim, keepdim=True)
    return (x - m) - torch.log1p((x - m).exp().sum(dim=dim, keepdim=True) - 1)


log_softmax = Exercise(
    "log_softmax",
    cases_log_softmax,
    forbidden=("softmax", "log_softmax"),
    instead="build it from a maximum, exponentials, a sum and a logarithm.",
    mistakes=[
        Mistake(
            "log_of_a_share",
            "the logarithm of a share that was computed first",
            "A share far behind the winner becomes 0, and its logarithm −inf. Never form the share.",
            log_of_share,
        ),
        Mistake(
            "log_of_a_raw_share",
            "exponentials of raw scores, divided, and then the logarithm",
            "Two repairs are needed: a shift, and no share. What does the formula above do in place of a division?",
            log_of_raw_share,
        ),
        Mistake(
            "epsilon_inside",
            "a small number added inside the logarithm",
            "The true value at a distance of 100 points is -100. What is yours?",
            log_with_epsilon,
        ),
        Mistake(
            "share_clamped",
            "shares kept from falling below a bound",
            "The true value at a distance of 100 points is -100. What is yours?",
            log_share_clamped,
        ),
        Mistake(
            "not_shifted",
            "the exponentials of the raw scores",
            "Try the scores 1000 and 1001, then -1000 and -1001.",
            log_not_shifted,
        ),
        Mistake(
            "shifted_only_inside",
            "the maximum taken off inside the sum only",
            "The sum was made smaller by a factor. Where else must the same shift appear?",
            log_shifted_once,
        ),
        Mistake(
            "maximum_added",
            "the maximum added to the scores",
            "A logarithm of a share is never above 0. Look at the sign of the maximum.",
            log_shift_added,
        ),
        Mistake(
            "one_maximum_for_all",
            "one maximum for the whole tensor",
            "A row of -9990s beside a row of 9990s: what is the sum of its exponentials?",
            log_one_maximum,
        ),
        Mistake(
            "maximum_of_another_dimension",
            "the maximum along the last dimension, the sum along another",
            "Both numbers that are subtracted go along the same dimension.",
            log_last_maximum,
        ),
        Mistake(
            "dim_ignored",
            "always along the last dimension",
            "The caller may ask for another dimension. Where does `dim` appear in your code?",
            log_dim_ignored,
        ),
        Mistake(
            "first_dimension",
            "along the first dimension",
            "Without further notice the last dimension is meant.",
            log_first_dimension,
        ),
        Mistake(
            "whole_tensor",
            "all entries of the tensor share one unit",
            "The exponentials of each vector should add up to 1.",
            log_whole_tensor,
        ),
        Mistake(
            "sign_flipped",
            "the surprise: minus the logarithm",
            "The logarithm of a number below 1 has which sign?",
            log_sign,
        ),
        Mistake("base_two", "a logarithm to base 2", "The natural logarithm is meant.", log_base_two),
        Mistake(
            "keepdim_forgotten",
            "the sums lost their dimension",
            "Shapes (4, 5) and (4,): which entries does broadcasting bring together?",
            log_keepdim_forgotten,
        ),
        Mistake(
            "shares_returned",
            "the shares, without a logarithm",
            "One step is missing. But do not take it after the division.",
            soft_dim_right,
        ),
        Mistake(
            "blocked_made_finite",
            "a large negative number where −inf belongs",
            "A blocked score has probability exactly 0. What is the logarithm of 0?",
            log_blocked_made_finite,
        ),
        Mistake(
            "sum_of_logarithms",
            "the sum and the logarithm in the wrong order",
            "The logarithm of a sum is not the sum of logarithms.",
            log_of_each_exponential,
        ),
    ],
    alternatives=[log_by_max_values, log_minus_whole, log_by_loop, log_by_transpose, log_in_double, log_with_log1p],
)

# ---------------------------------------------------------------- cross_entropy

IGNORED = "ignored targets"
OTHER_INDEX = "another ignore_index"
LARGE_LOGITS = "logits up to ±10,000"


def some_ignored(draw, targets, index, n):
    """A copy of targets with n of them, at random places, replaced by index."""
    flat = targets.flatten().clone()
    flat[draw.permutation(len(flat))[:n]] = index
    return flat.reshape(targets.shape)


def cases_cross_entropy(draw):
    V = 6

    def make(dtype, *lead, scale=2.0):
        return draw.normal(*lead, V, dtype=dtype, scale=scale), draw.integers(0, V, lead)

    def ignoring(dtype, n, *lead, index=-100):
        logits, targets = make(dtype, *lead)
        return logits, some_ignored(draw, targets, index, n)

    logits, targets = make(torch.float64, 3, 5)
    targets[1] = -100  # one sentence is all padding, another half
    targets[2, 2:] = -100
    zero_kept = torch.tensor([1, 3, 0, 2, 5, 0, 4])  # the classes 0 and 2 are real, and ignored when asked for
    tall = at_heights(draw, n=V), torch.tensor([1, -100, 0, 5])
    confident = torch.full((4, V), -1e4, dtype=torch.float64)
    confident[torch.arange(4), torch.tensor([0, 2, 1, 5])] = 1e4
    return [
        *tensor_cases(make, leads=((4,), (), (2, 3)), no_gradient=(1,)),
        Case(make(torch.float64, 2, 3), part=LEADING, gradient=True),
        Case(ignoring(torch.float32, 3, 7), part=IGNORED),
        Case(ignoring(torch.float64, 2, 2, 4), part=IGNORED, gradient=True),
        Case((logits, targets), part=IGNORED, gradient=True, note="one of three sentences is all padding"),
        Case(ignoring(torch.float64, 4, 5), part=IGNORED, gradient=True, note="one target is kept"),
        Case((draw.normal(7, V), zero_kept), {"ignore_index": 0}, part=OTHER_INDEX),
        Case((draw.normal(7, V), zero_kept, 2), part=OTHER_INDEX),
        Case(ignoring(torch.float64, 3, 7, index=-1), {"ignore_index": -1}, part=OTHER_INDEX, gradient=True),
        Case((*ignoring(torch.float32, 5, 2, 4, index=255), 255), part=OTHER_INDEX),
        Case(tall, part=LARGE_LOGITS, gradient=True, note="rows near 9990, -9990, 0 and 4000"),
        Case((far_apart(draw, 5, V), draw.integers(0, V, (5,))), part=LARGE_LOGITS),
        Case(
            (confident, torch.tensor([0, 3, -100, 5])),
            part=LARGE_LOGITS,
            gradient=True,
            note="a confident model, once right and once wrong",
        ),
    ]


def flat_losses(logits, targets, ignore_index):
    """Loss of every place, 0 where ignored, and which are kept; correct and flat."""
    logits, targets = logits.reshape(-1, logits.shape[-1]), targets.reshape(-1)
    kept = targets != ignore_index
    safe = torch.where(kept, targets, torch.zeros_like(targets))
    loss = -torch.log_softmax(logits, dim=-1).gather(1, safe[:, None])[:, 0]
    return loss * kept, kept


def loss_over_all_places(logits, targets, ignore_index=-100):
    loss, _ = flat_losses(logits, targets, ignore_index)
    return loss.mean()


def loss_summed(logits, targets, ignore_index=-100):
    loss, _ = flat_losses(logits, targets, ignore_index)
    return loss.sum()


def loss_of_each_place(logits, targets, ignore_index=-100):
    loss, _ = flat_losses(logits, targets, ignore_index)
    return loss.reshape(targets.shape)


def loss_ignored_as_class_zero(logits, targets, ignore_index=-100):
    logits, targets = logits.reshape(-1, logits.shape[-1]), targets.reshape(-1)
    safe = torch.where(targets == ignore_index, torch.zeros_like(targets), targets)
    return -torch.log_softmax(logits, dim=-1).gather(1, safe[:, None]).mean()


def loss_nothing_ignored(logits, targets, ignore_index=-100):
    log_p = torch.log_softmax(logits.reshape(-1, logits.shape[-1]), dim=-1)
    return -log_p.gather(1, targets.reshape(-1, 1)).mean()


def loss_index_fixed(logits, targets, ignore_index=-100):
    loss, kept = flat_losses(logits, targets, -100)
    return loss.sum() / kept.sum()


def loss_mean_of_sentences(logits, targets, ignore_index=-100):
    loss, kept = flat_losses(logits, targets, ignore_index)
    shape = targets.shape if targets.dim() > 1 else (1, -1)
    loss, kept = loss.reshape(shape), kept.reshape(shape)
    return (loss.sum(-1) / kept.sum(-1)).mean()


def loss_log_of_share(logits, targets, ignore_index=-100):
    logits, targets = logits.reshape(-1, logits.shape[-1]), targets.reshape(-1)
    kept = targets != ignore_index
    p = torch.softmax(logits[kept], dim=-1)
    return -p.gather(1, targets[kept][:, None]).log().mean()


def loss_with_epsilon(logits, targets, ignore_index=-100):
    logits, targets = logits.reshape(-1, logits.shape[-1]), targets.reshape(-1)
    kept = targets != ignore_index
    p = torch.softmax(logits[kept], dim=-1)
    return -(p.gather(1, targets[kept][:, None]) + 1e-8).log().mean()


def loss_not_shifted(logits, targets, ignore_index=-100):
    logits, targets = logits.reshape(-1, logits.shape[-1]), targets.reshape(-1)
    kept = targets != ignore_index
    logits, targets = logits[kept], targets[kept]
    return (logits.exp().sum(-1).log() - logits.gather(1, targets[:, None])[:, 0]).mean()


def loss_softmax_twice(logits, targets, ignore_index=-100):
    return flat_mean(torch.softmax(logits, dim=-1), targets, ignore_index)


def flat_mean(logits, targets, ignore_index):
    loss, kept = flat_losses(logits, targets, ignore_index)
    return loss.sum() / kept.sum()


def loss_sign(logits, targets, ignore_index=-100):
    return -flat_mean(logits, targets, ignore_index)


def loss_no_softmax(logits, targets, ignore_index=-100):
    logits, targets = logits.reshape(-1, logits.shape[-1]), targets.reshape(-1)
    kept = targets != ignore_index
    return -logits[kept].gather(1, targets[kept][:, None]).mean()


def loss_bits(logits, targets, ignore_index=-100):
    return flat_mean(logits, targets, ignore_index) / math.log(2)


def loss_perplexity(logits, targets, ignore_index=-100):
    return flat_mean(logits, targets, ignore_index).exp()


def loss_softmax_over_places(logits, targets, ignore_index=-100):
    logits, targets = logits.reshape(-1, logits.shape[-1]), targets.reshape(-1)
    kept = targets != ignore_index
    log_p = torch.log_softmax(logits, dim=0)[kept]
    return -log_p.gather(1, targets[kept][:, None]).mean()


def loss_divided_by_vocabulary(logits, targets, ignore_index=-100):
    return flat_mean(logits, targets, ignore_index) / logits.shape[-1]


def loss_flat_only(logits, targets, ignore_index=-100):
    kept = targets != ignore_index
    log_p = torch.log_softmax(logits, dim=1)[kept]
    return -log_p[torch.arange(len(log_p)), targets[kept]].mean()


def loss_with_gather(logits, targets, ignore_index=-100):
    kept = targets != ignore_index
    safe = targets.masked_fill(~kept, 0)
    loss = -F.log_softmax(logits, dim=-1).gather(-1, safe.unsqueeze(-1)).squeeze(-1)
    return (loss * kept).sum() / kept.sum()


def loss_by_logsumexp(logits, targets, ignore_index=-100):
    kept = targets != ignore_index
    logits, targets = logits[kept], targets[kept]
    return (torch.logsumexp(logits, dim=-1) - logits.take_along_dim(targets[:, None], -1).squeeze(-1)).mean()


def loss_by_one_hot(logits, targets, ignore_index=-100):
    kept = (targets != ignore_index).to(logits.dtype)
    truth = F.one_hot(targets.where(kept.bool(), 0), logits.shape[-1]).to(logits.dtype)
    return -torch.einsum("...v,...v,...->", truth, logits.log_softmax(-1), kept) / kept.sum()


def loss_by_loop(logits, targets, ignore_index=-100):
    total, count = 0.0, 0
    for row, target in zip(logits.reshape(-1, logits.shape[-1]), targets.flatten().tolist(), strict=True):
        if target != ignore_index:
            m = row.max()
            total = total + (m + (row - m).exp().sum().log() - row[target])
            count += 1
    return total / count


def loss_flat_selected(logits, targets, ignore_index=-100):
    logits, targets = logits.flatten(0, -2) if logits.dim() > 1 else logits[None], targets.reshape(-1)
    kept = (targets != ignore_index).nonzero().squeeze(1)
    log_p = torch.nn.LogSoftmax(dim=1)(logits[kept])
    return log_p[range(len(kept)), targets[kept]].neg().mean()


def loss_by_where(logits, targets, ignore_index=-100):
    kept = targets.ne(ignore_index)
    index = torch.where(kept, targets, 0)[..., None]
    shifted = logits - logits.amax(-1, keepdim=True)
    loss = shifted.exp().sum(-1).log() - torch.gather(shifted, -1, index)[..., 0]
    return torch.masked_select(loss, kept).mean()


cross_entropy = Exercise(
    "cross_entropy",
    cases_cross_entropy,
    forbidden=("cross_entropy",),
    instead="take the logarithms of the shares and pick one in each row.",
    mistakes=[
        Mistake(
            "mean_over_all_places",
            "ignored places counted in the mean",
            "They add nothing to the sum. Do they belong in the count?",
            loss_over_all_places,
        ),
        Mistake("summed", "a sum in place of a mean", "A batch twice as large would have twice the loss.", loss_summed),
        Mistake(
            "one_loss_for_each_place",
            "a loss for each place, not yet averaged",
            "A single number is asked for.",
            loss_of_each_place,
        ),
        Mistake(
            "ignored_as_class_zero",
            "ignored places trained towards class 0",
            "You replaced them by a valid class so that indexing works. What of their losses?",
            loss_ignored_as_class_zero,
        ),
        Mistake(
            "nothing_ignored",
            "ignored targets used as classes",
            "A target that should be ignored is no class. Take it out before you index.",
            loss_nothing_ignored,
        ),
        Mistake(
            "ignore_index_fixed",
            "always −100, whatever the caller says",
            "The third argument is not used.",
            loss_index_fixed,
        ),
        Mistake(
            "mean_of_sentence_means",
            "a mean for each sentence, then the mean of those",
            "A sentence with one kept word would weigh as much as one with ten, and one with none is 0 / 0.",
            loss_mean_of_sentences,
        ),
        Mistake(
            "log_of_a_share",
            "the logarithm of a share that was computed first",
            "A share far behind the winner is 0 to the computer. You have a tool that never forms it.",
            loss_log_of_share,
        ),
        Mistake(
            "epsilon_inside",
            "a small number added inside the logarithm",
            "The loss of a hopeless target gets stuck, and its gradient is lost.",
            loss_with_epsilon,
        ),
        Mistake("not_shifted", "the exponentials of the raw logits", "Try the logits 1000 and 1001.", loss_not_shifted),
        Mistake(
            "softmax_twice",
            "shares treated as logits",
            "The logarithm of a softmax is taken of scores. What did you hand to it?",
            loss_softmax_twice,
        ),
        Mistake("sign_flipped", "a negative loss", "Surprise is never below 0.", loss_sign),
        Mistake(
            "no_softmax",
            "the logit itself, without its rivals",
            "Raise all logits alike and your loss falls. Nothing was learned.",
            loss_no_softmax,
        ),
        Mistake("bits", "measured in bits", "The natural logarithm is meant.", loss_bits),
        Mistake("perplexity", "the perplexity", "Its logarithm is asked for: the mean of the losses.", loss_perplexity),
        Mistake(
            "softmax_over_places",
            "the softmax along the places",
            "Words compete with words, at each place by itself.",
            loss_softmax_over_places,
        ),
        Mistake(
            "divided_by_the_vocabulary",
            "divided by the size of the vocabulary as well",
            "The mean goes over places. How many numbers did you average?",
            loss_divided_by_vocabulary,
        ),
        Mistake(
            "one_leading_dimension_only",
            "made for exactly one leading dimension",
            "Which dimension holds the vocabulary in (2, 3, 6), and in (6,)?",
            loss_flat_only,
        ),
    ],
    alternatives=[
        loss_with_gather,
        loss_by_logsumexp,
        loss_by_one_hot,
        loss_by_loop,
        loss_flat_selected,
        loss_by_where,
    ],
)

# ---------------------------------------------------------------- softmax_with_temperature

WHOLE = "a whole number as temperature"
EXTREME = "scores large beside the temperature"
REFUSED = "temperatures that make no sense"


def cases_softmax_with_temperature(draw):
    def make(dtype, *lead):
        return draw.normal(*lead, 5, dtype=dtype, scale=2), 0.7

    def refused(temperature):
        return Case((draw.normal(5), temperature), part=REFUSED, raises=Raises("ValueError"))

    return [
        *tensor_cases(make, leads=((4,), (), (2, 3))),
        Case((draw.normal(3, 5), 2.5)),
        Case((draw.normal(3, 5), 3), part=WHOLE),
        Case((draw.normal(5), 1), part=WHOLE),
        Case((draw.normal(3, 5), 0.5), part=VALUES),
        Case((draw.normal(3, 5, dtype=torch.float64), 1e5), part=EXTREME, note="a very high temperature"),
        Case((draw.normal(3, 5, dtype=torch.float64, scale=20), 0.01), part=EXTREME, gradient=True),
        Case((at_heights(draw), 0.5), part=EXTREME),
        Case((far_apart(draw, 3, 5), 0.1), part=EXTREME),
        Case((torch.tensor([[1.0, 3.0, 2.0]]), 1e-3), part=EXTREME),
        refused(0),
        refused(0.0),
        refused(-1),
        refused(-0.5),
    ]


def warm_multiplied(x, temperature):
    _above_zero(temperature)
    return torch.softmax(x * temperature, dim=-1)


def _above_zero(temperature):
    if not temperature > 0:
        raise ValueError("the temperature must be above 0")


def warm_after(x, temperature):
    _above_zero(temperature)
    return torch.softmax(x, dim=-1) / temperature


def warm_ignored(x, temperature):
    _above_zero(temperature)
    return torch.softmax(x, dim=-1)


def warm_anything_goes(x, temperature):
    return torch.softmax(x / temperature, dim=-1)


def warm_zero_is_greedy(x, temperature):
    if temperature < 0:
        raise ValueError("negative temperature")
    if temperature == 0:
        return F.one_hot(x.argmax(-1), x.shape[-1]).to(x.dtype)
    return torch.softmax(x / temperature, dim=-1)


def warm_zero_slips_through(x, temperature):
    if temperature < 0:
        raise ValueError("negative temperature")
    return torch.softmax(x / temperature, dim=-1)


def warm_only_zero_refused(x, temperature):
    if temperature == 0:
        raise ValueError("temperature 0")
    return torch.softmax(x / temperature, dim=-1)


def warm_asserted(x, temperature):
    assert temperature > 0, "the temperature must be above 0"
    return torch.softmax(x / temperature, dim=-1)


def warm_kept_above_a_bound(x, temperature):
    return torch.softmax(x / max(temperature, 1e-6), dim=-1)


def warm_floats_only(x, temperature):
    if not isinstance(temperature, float) or temperature <= 0:
        raise ValueError("the temperature must be a float above 0")
    return torch.softmax(x / temperature, dim=-1)


def warm_first_dimension(x, temperature):
    _above_zero(temperature)
    return torch.softmax(x / temperature, dim=0)


def warm_not_shifted(x, temperature):
    _above_zero(temperature)
    e = torch.exp(x / temperature)
    return e / e.sum(dim=-1, keepdim=True)


def warm_powers(x, temperature):
    _above_zero(temperature)
    p = torch.softmax(x, dim=-1) ** (1 / temperature)
    return p / p.sum(dim=-1, keepdim=True)


def warm_whole_part(x, temperature):
    _above_zero(temperature)
    return torch.softmax(x // temperature, dim=-1)


def warm_root(x, temperature):
    _above_zero(temperature)
    return torch.softmax(x / temperature**0.5, dim=-1)


def warm_functional(x, temperature):
    if temperature <= 0:
        raise ValueError(f"temperature {temperature} is not above 0")
    return F.softmax(x / temperature, dim=-1)


def warm_by_hand(x, temperature):
    if temperature <= 0:
        raise ValueError
    z = x / temperature
    e = torch.exp(z - z.amax(-1, keepdim=True))
    return e / e.sum(-1, keepdim=True)


def warm_inverse(x, temperature):
    if not 0 < temperature < math.inf:
        raise ValueError("no temperature")
    return (x * (1 / temperature)).softmax(-1)


def warm_shifted_first(x, temperature):
    _above_zero(temperature)
    e = torch.exp((x - x.max(dim=-1, keepdim=True).values) / temperature)
    return torch.einsum("...i,...->...i", e, 1 / e.sum(-1))


def warm_log(x, temperature):
    _above_zero(temperature)
    return torch.log_softmax(torch.div(x, temperature), dim=-1).exp()


softmax_with_temperature = Exercise(
    "softmax_with_temperature",
    cases_softmax_with_temperature,
    mistakes=[
        Mistake(
            "multiplied",
            "multiplied by the temperature",
            "Hot means undecided. Do your weights grow more alike as it rises?",
            warm_multiplied,
        ),
        Mistake(
            "weights_divided", "the weights divided, not the scores", "Do your weights still add up to 1?", warm_after
        ),
        Mistake("ignored", "the temperature ignored", "The second argument changes nothing.", warm_ignored),
        Mistake(
            "nothing_refused",
            "no error for temperatures that make no sense",
            "What does a division by 0 give, and what does a negative temperature prefer?",
            warm_anything_goes,
        ),
        Mistake(
            "zero_is_greedy",
            "temperature 0 taken as a hard choice",
            "Many programs do that. This contract asks for an error instead.",
            warm_zero_is_greedy,
        ),
        Mistake(
            "zero_slips_through",
            "temperature 0 not refused",
            "0 is not negative. Is it above 0?",
            warm_zero_slips_through,
        ),
        Mistake(
            "negative_slips_through",
            "negative temperatures not refused",
            "A temperature of -1 prefers the worst score. You refuse only 0.",
            warm_only_zero_refused,
        ),
        Mistake(
            "asserted",
            "an assertion in place of the error that was asked for",
            "Which class of error does `assert` raise, and which one does the contract name?",
            warm_asserted,
        ),
        Mistake(
            "kept_above_a_bound",
            "low temperatures silently replaced",
            "The caller made a mistake and never hears of it.",
            warm_kept_above_a_bound,
        ),
        Mistake("floats_only", "whole numbers refused", "The temperature 2 is as good as 2.0.", warm_floats_only),
        Mistake(
            "first_dimension",
            "along the first dimension",
            "Right for one vector. Add up a row of a batch.",
            warm_first_dimension,
        ),
        Mistake(
            "not_shifted",
            "the exponentials of raw scores",
            "A low temperature makes scores large. You have a softmax that can bear it.",
            warm_not_shifted,
        ),
        Mistake(
            "powers_of_weights",
            "powers of weights that were computed first",
            "The same on paper. But a weight that has become 0 stays 0, or all of them do.",
            warm_powers,
        ),
        Mistake("whole_part", "division without a remainder", "Two slashes cut to whole numbers.", warm_whole_part),
        Mistake(
            "root",
            "divided by the root of the temperature",
            "The root belongs to the width of a head. The temperature is the divisor itself.",
            warm_root,
        ),
    ],
    alternatives=[warm_functional, warm_by_hand, warm_inverse, warm_shifted_first, warm_log],
)

# ---------------------------------------------------------------- entropy

ZEROS = "probabilities of 0 and 1"


def cases_entropy(draw):
    def make(dtype, *lead):
        return (draw.probabilities(*lead, 5, dtype=dtype),)

    corners = torch.tensor([[0.0, 1.0, 0.0, 0.0], [0.5, 0.0, 0.5, 0.0], [0.25, 0.25, 0.25, 0.25]])
    masked = torch.softmax(with_blocked(draw, 2, 3, 6), dim=-1)
    unlikely = torch.tensor([1 - 3e-5, 1e-5, 2e-5], dtype=torch.float64)
    scores, batch = draw.normal(5, dtype=torch.float64), draw.normal(2, 3, 5, dtype=torch.float64)
    return [
        *tensor_cases(make, leads=((4,), (), (2, 3)), gradient=False),
        Case((corners,), part=ZEROS),
        Case((masked,), part=ZEROS, note="weights behind a mask"),
        Case((torch.ones(1),), part=ZEROS, note="one outcome, which is certain"),
        Case((unlikely,), part="small probabilities"),
        # Forms that are equal on probability vectors differ beside them, so the gradient is taken at the scores.
        Case((scores,), part=GRADIENT, gradient=True, via="at_softmax", note="p is the softmax of scores"),
        Case((batch,), part=GRADIENT, gradient=True, via="at_softmax", note="p is the softmax of scores"),
    ]


def entropy_right(p):
    return torch.special.entr(p).sum(dim=-1)


def entropy_nan_at_zero(p):
    return -(p * p.log()).sum(dim=-1)


def entropy_in_bits(p):
    return entropy_right(p) / math.log(2)


def entropy_sign(p):
    return -entropy_right(p)


def entropy_mean(p):
    return torch.special.entr(p).mean(dim=-1)


def entropy_zeros_dropped(p):
    p = p[p > 0]
    return -(p * p.log()).sum(dim=-1)


def entropy_first_dimension(p):
    return torch.special.entr(p).sum(dim=0)


def entropy_keepdim(p):
    return torch.special.entr(p).sum(dim=-1, keepdim=True)


def entropy_of_scores(p):
    return entropy_right(torch.softmax(p, dim=-1))


def entropy_not_weighted(p):
    return -p.clamp_min(1e-12).log().sum(dim=-1)


def entropy_outcomes_in_effect(p):
    return entropy_right(p).exp()


def entropy_share_of_most(p):
    return entropy_right(p) / math.log(max(p.shape[-1], 2))


def entropy_large_epsilon(p):
    return -(p * (p + 1e-4).log()).sum(dim=-1)


def entropy_zero_counts_as_one(p):
    return torch.where(p > 0, torch.special.entr(p), torch.ones_like(p)).sum(dim=-1)


def entropy_summed_inside(p):
    return -torch.log((p * p).sum(dim=-1))


def entropy_by_xlogy(p):
    return -torch.xlogy(p, p).sum(-1)


def entropy_by_where(p):
    safe = torch.where(p > 0, p, torch.ones_like(p))
    return -torch.einsum("...i,...i->...", p, safe.log())


def entropy_by_masked_fill(p):
    return -(p * p.masked_fill(p == 0, 1.0).log()).sum(-1)


def entropy_tiny_epsilon(p):
    return -(p * torch.log(p + 1e-12)).sum(dim=-1)


def entropy_by_loop(p):
    flat = p.reshape(-1, p.shape[-1])
    rows = []
    for row in flat:
        total = row.sum() * 0
        for value in row:
            if value > 0:
                total = total - value * value.log()
        rows.append(total)
    return torch.stack(rows).reshape(p.shape[:-1])


def entropy_nan_to_num(p):
    return -(p * p.log()).nan_to_num(0.0).sum(-1)


def entropy_by_distribution(p):
    return torch.distributions.Categorical(probs=p).entropy()


entropy = Exercise(
    "entropy",
    cases_entropy,
    mistakes=[
        Mistake(
            "nan_at_zero",
            "NaN where a probability is 0",
            "0 times −inf is NaN to a computer. What should such an outcome add?",
            entropy_nan_at_zero,
        ),
        Mistake("bits", "measured in bits", "Nats are asked for: the natural logarithm.", entropy_in_bits),
        Mistake(
            "sign_flipped",
            "a negative entropy",
            "Logarithms of probabilities are negative, and surprise is not.",
            entropy_sign,
        ),
        Mistake(
            "mean_of_terms",
            "the mean of the terms, not their sum",
            "The average is taken with the weights p. They are in your terms already.",
            entropy_mean,
        ),
        Mistake(
            "one_number_for_all",
            "one number for the whole batch",
            "Each vector has an entropy of its own. (A boolean mask in square brackets makes one long vector.)",
            entropy_zeros_dropped,
        ),
        Mistake(
            "first_dimension",
            "summed along the first dimension",
            "Right for one vector. Along which dimension do the probabilities add up to 1?",
            entropy_first_dimension,
        ),
        Mistake(
            "dimension_kept",
            "a dimension of size 1 left over",
            "One number for each vector: the last dimension goes.",
            entropy_keepdim,
        ),
        Mistake(
            "softmax_applied",
            "probabilities taken for scores",
            "The argument holds probabilities already.",
            entropy_of_scores,
        ),
        Mistake(
            "not_weighted",
            "surprises added up without their weights",
            "A surprise counts as often as it happens.",
            entropy_not_weighted,
        ),
        Mistake(
            "outcomes_in_effect",
            "the number of outcomes in effect",
            "Its logarithm is asked for.",
            entropy_outcomes_in_effect,
        ),
        Mistake(
            "divided_by_the_most",
            "divided by the largest possible entropy",
            "In nats, not as a share of the most there can be.",
            entropy_share_of_most,
        ),
        Mistake(
            "epsilon_too_large",
            "a number added inside the logarithm that can be seen in the result",
            "Repair the zeros only, and leave all other probabilities exactly as they are.",
            entropy_large_epsilon,
        ),
        Mistake(
            "zero_counts_as_one",
            "an impossible outcome adds 1",
            "What does p ln p tend to as p goes to 0?",
            entropy_zero_counts_as_one,
        ),
        Mistake(
            "logarithm_of_the_sum",
            "the logarithm of an average, not the average of a logarithm",
            "First the surprise of each outcome, then the average.",
            entropy_summed_inside,
        ),
    ],
    alternatives=[
        entropy_right,
        entropy_by_xlogy,
        entropy_by_where,
        entropy_by_masked_fill,
        entropy_tiny_epsilon,
        entropy_by_loop,
        entropy_nan_to_num,
        entropy_by_distribution,
    ],
)

# ---------------------------------------------------------------- softmax_backward


def cases_softmax_backward(draw):
    def make(dtype, *lead):
        return draw.probabilities(*lead, 5, dtype=dtype), draw.normal(*lead, 5, dtype=dtype)

    corners = torch.tensor([[0.0, 1.0, 0.0, 0.0], [0.5, 0.0, 0.5, 0.0]])
    # Forms that are equal on probability vectors differ beside them, so the gradient is taken at the scores.
    plain = draw.normal(5, dtype=torch.float64), draw.normal(5, dtype=torch.float64)
    batch = draw.normal(2, 3, 5, dtype=torch.float64), draw.normal(2, 3, 5, dtype=torch.float64)
    return [
        *tensor_cases(make, leads=((4,), (), (2, 3)), gradient=False),
        Case((corners, draw.normal(2, 4)), part=ZEROS),
        Case((torch.ones(1), draw.normal(1)), part=ZEROS, note="one outcome, which is certain"),
        Case(plain, part=GRADIENT, gradient=True, via="at_softmax", note="p is the softmax of scores"),
        Case(batch, part=GRADIENT, gradient=True, via="at_softmax", note="p is the softmax of scores"),
    ]


def back_elementwise(p, grad):
    return p * grad


def back_diagonal(p, grad):
    return p * (1 - p) * grad


def back_plain_mean(p, grad):
    return p * (grad - grad.mean(dim=-1, keepdim=True))


def back_plain_sum(p, grad):
    return p * (grad - grad.sum(dim=-1, keepdim=True))


def back_outer_p_missing(p, grad):
    return grad - (p * grad).sum(dim=-1, keepdim=True)


def back_average_not_weighted_again(p, grad):
    return p * grad - (p * grad).sum(dim=-1, keepdim=True)


def back_whole_batch(p, grad):
    return p * (grad - (p * grad).sum())


def back_keepdim(p, grad):
    return p * (grad - (p * grad).sum(dim=-1))


def back_sign(p, grad):
    return p * ((p * grad).sum(dim=-1, keepdim=True) - grad)


def back_average_added(p, grad):
    return p * (grad + (p * grad).sum(dim=-1, keepdim=True))


def back_of_log_softmax(p, grad):
    return grad - p * grad.sum(dim=-1, keepdim=True)


def back_softmax_again(p, grad):
    p = torch.softmax(p, dim=-1)
    return p * (grad - (p * grad).sum(dim=-1, keepdim=True))


def back_first_dimension(p, grad):
    return p * (grad - (p * grad).sum(dim=0, keepdim=True))


def back_table(p, grad):
    return (torch.diag_embed(p) - p.unsqueeze(-1) * p.unsqueeze(-2)) * grad.unsqueeze(-1)


def back_by_table(p, grad):
    J = torch.diag_embed(p) - p.unsqueeze(-1) * p.unsqueeze(-2)
    return (J @ grad.unsqueeze(-1)).squeeze(-1)


def back_by_einsum(p, grad):
    return p * grad - p * torch.einsum("...i,...i->...", p, grad)[..., None]


def back_by_loops(p, grad):
    out = []
    for row, g in zip(p.reshape(-1, p.shape[-1]), grad.reshape(-1, p.shape[-1]), strict=True):
        n = len(row)
        slopes = [sum(g[i] * row[i] * (int(i == j) - row[j]) for i in range(n)) for j in range(n)]
        out.append(torch.stack(slopes))
    return torch.stack(out).reshape(p.shape)


def back_by_pairs(p, grad):
    differences = grad.unsqueeze(-1) - grad.unsqueeze(-2)
    return p * (differences * p.unsqueeze(-2)).sum(-1)


def back_by_matmul(p, grad):
    average = p.unsqueeze(-2) @ grad.unsqueeze(-1)
    return p.mul(grad.sub(average.squeeze(-1)))


def back_by_lesson_4(p, grad):
    from helpers.blocks import softmax_jacobian

    return torch.einsum("...i,...ij->...j", grad, softmax_jacobian(p))


softmax_backward = Exercise(
    "softmax_backward",
    cases_softmax_backward,
    forbidden=("autograd", "softmax_backward"),
    instead="write the chain rule out by hand.",
    mistakes=[
        Mistake(
            "elementwise",
            "each weight times its own gradient, and nothing of the others",
            "Add up yours. Raising all scores alike changes nothing, so what should the sum be?",
            back_elementwise,
        ),
        Mistake(
            "diagonal_only",
            "the diagonal of the table only",
            "When one score rises, the other weights fall. Where are they in yours?",
            back_diagonal,
        ),
        Mistake(
            "plain_mean",
            "the mean of the gradients, without weights",
            "The average is taken with the weights p.",
            back_plain_mean,
        ),
        Mistake(
            "plain_sum",
            "the sum of the gradients, without weights",
            "It should be an average of the gradients. With which weights?",
            back_plain_sum,
        ),
        Mistake(
            "outer_weight_missing",
            "the difference from the average, not yet weighted",
            "A token of weight 0 cannot move. Does yours?",
            back_outer_p_missing,
        ),
        Mistake(
            "average_taken_off_unweighted",
            "the average taken off after weighting",
            "Open the brackets of the formula once more: what multiplies the average?",
            back_average_not_weighted_again,
        ),
        Mistake(
            "one_average_for_all",
            "one average for the whole batch",
            "Right for one vector. Each has an average of its own.",
            back_whole_batch,
        ),
        Mistake(
            "keepdim_forgotten",
            "the averages lost their dimension",
            "Shapes (4, 5) and (4,): which entries does broadcasting bring together?",
            back_keepdim,
        ),
        Mistake(
            "sign_flipped",
            "the right numbers with the opposite sign",
            "If the loss rises with a weight, it rises with that weight's score.",
            back_sign,
        ),
        Mistake(
            "average_added",
            "the average added, not taken off",
            "With all gradients equal nothing should move.",
            back_average_added,
        ),
        Mistake(
            "of_log_softmax",
            "the backward pass of the logarithm of softmax",
            "That one starts from gradients at log p. Here they arrive at p.",
            back_of_log_softmax,
        ),
        Mistake(
            "softmax_applied",
            "probabilities taken for scores",
            "The first argument holds probabilities already.",
            back_softmax_again,
        ),
        Mistake(
            "first_dimension",
            "the average along the first dimension",
            "Right for one vector. Along which dimension do the probabilities add up to 1?",
            back_first_dimension,
        ),
        Mistake(
            "table_not_summed",
            "a table of products that was not added up",
            "One number for each score: the sum in the chain rule is missing.",
            back_table,
        ),
    ],
    alternatives=[back_by_table, back_by_einsum, back_by_loops, back_by_pairs, back_by_matmul, back_by_lesson_4],
)

# ---------------------------------------------------------------- fixed_head_weights


def cases_fixed_head_weights(draw):
    def make(dtype, *lead, scale=1.0):
        return draw.normal(*lead, 4, 5, 6, dtype=dtype, scale=scale), draw.normal(*lead, 7, 5, 6, dtype=dtype)

    return [
        *tensor_cases(make, leads=((2,), (), (3, 2))),
        Case(make(torch.float64), part=LEADING, gradient=True),
        Case(make(torch.float64, 2, scale=1000), part="large scores"),
        Case((draw.normal(2, 4, 5, 1), draw.normal(2, 7, 5, 1)), part="heads of width 1"),
    ]


def heads_published(q, k):
    scores = torch.einsum("bihd,bjhd->bijh", q, k)
    scores = scores * q.shape[-1] ** -0.5
    return scores.softmax(dim=1)


def _head_scores(q, k):
    return torch.einsum("...ihd,...jhd->...ijh", q, k) / q.shape[-1] ** 0.5


def heads_over_queries(q, k):
    return torch.softmax(_head_scores(q, k), dim=-3)


def heads_over_heads(q, k):
    return torch.softmax(_head_scores(q, k), dim=-1)


def heads_over_all_pairs(q, k):
    scores = _head_scores(q, k)
    return torch.softmax(scores.flatten(-3, -2), dim=-2).reshape(scores.shape)


def heads_not_scaled(q, k):
    return torch.softmax(torch.einsum("...ihd,...jhd->...ijh", q, k), dim=-2)


def heads_scaled_by_heads(q, k):
    return torch.softmax(torch.einsum("...ihd,...jhd->...ijh", q, k) / q.shape[-2] ** 0.5, dim=-2)


def heads_divided_by_d_k(q, k):
    return torch.softmax(torch.einsum("...ihd,...jhd->...ijh", q, k) / q.shape[-1], dim=-2)


def heads_moved_forward(q, k):
    return torch.softmax(_head_scores(q, k).movedim(-1, -3), dim=-1)


def heads_keys_first(q, k):
    return torch.softmax(_head_scores(q, k), dim=-2).transpose(-2, -3)


def heads_one_batch_only(q, k):
    scores = torch.einsum("bihd,bjhd->bijh", q, k) / q.shape[-1] ** 0.5
    return torch.softmax(scores, dim=2)


def heads_counted_from_the_front(q, k):
    return torch.softmax(_head_scores(q, k), dim=2)


def heads_summed(q, k):
    return torch.softmax(torch.einsum("...ihd,...jhd->...ij", q, k) / q.shape[-1] ** 0.5, dim=-1)


def heads_not_shifted(q, k):
    e = torch.exp(_head_scores(q, k))
    return e / e.sum(dim=-2, keepdim=True)


def heads_scores(q, k):
    return _head_scores(q, k)


def heads_by_matmul(q, k):
    q, k = q.transpose(-3, -2), k.transpose(-3, -2)  # (..., H, T, d_k)
    weights = F.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), dim=-1)
    return weights.movedim(-3, -1)


def heads_by_broadcasting(q, k):
    scores = (q.unsqueeze(-3) * k.unsqueeze(-4)).sum(-1) * k.shape[-1] ** -0.5
    e = (scores - scores.amax(-2, keepdim=True)).exp()
    return e / e.sum(-2, keepdim=True)


def heads_one_by_one(q, k):
    weights = []
    for h in range(q.shape[-2]):
        scores = q[..., h, :] @ k[..., h, :].mT / q.shape[-1] ** 0.5
        weights.append(torch.softmax(scores, -1))
    return torch.stack(weights, dim=-1)


def heads_by_torch(q, k):
    q, k = q.transpose(-3, -2), k.transpose(-3, -2)
    one_of_each = torch.eye(k.shape[-2], dtype=k.dtype).expand(*k.shape[:-1], k.shape[-2])
    return F.scaled_dot_product_attention(q, k, one_of_each).movedim(-3, -1)


def heads_by_log(q, k):
    return torch.log_softmax(torch.einsum("...ihd,...jhd->...ijh", q / q.size(-1) ** 0.5, k), dim=-2).exp()


fixed_head_weights = Exercise(
    "fixed_head_weights",
    cases_fixed_head_weights,
    mistakes=[
        Mistake(
            "published_version",
            "the published version",
            "Sum along the keys, and look. Which dimension is dim=1?",
            heads_published,
        ),
        Mistake(
            "over_queries",
            "queries compete for each key",
            "Add up what one query gives to all keys. Is it 1?",
            heads_over_queries,
        ),
        Mistake(
            "over_heads",
            "heads compete at each pair of tokens",
            "The last dimension is that of the heads here. Heads should not know of one another.",
            heads_over_heads,
        ),
        Mistake(
            "over_all_pairs",
            "all pairs of tokens share one unit",
            "Each query has a unit of its own.",
            heads_over_all_pairs,
        ),
        Mistake(
            "not_scaled",
            "scores that were not divided",
            "The published version had that right. Compare the two lines.",
            heads_not_scaled,
        ),
        Mistake(
            "scaled_by_the_number_of_heads",
            "divided by the root of the number of heads",
            "Which dimension of q is as long as one dot product?",
            heads_scaled_by_heads,
        ),
        Mistake(
            "divided_by_d_k",
            "divided by the width instead of its square root",
            "Lesson 4: the variance is d_k. What is the standard deviation?",
            heads_divided_by_d_k,
        ),
        Mistake(
            "heads_moved_forward",
            "heads before the tokens in the result",
            "The right weights. But here the heads stay the last dimension.",
            heads_moved_forward,
        ),
        Mistake(
            "keys_before_queries",
            "keys before queries in the result",
            "The right weights, turned around. Queries come first.",
            heads_keys_first,
        ),
        Mistake(
            "one_batch_dimension_only",
            "made for exactly one batch dimension",
            "What if there is no batch, or two dimensions of it?",
            heads_one_batch_only,
        ),
        Mistake(
            "counted_from_the_front",
            "the dimension counted from the front",
            "Right with one batch dimension. Where are the keys, counted from the end?",
            heads_counted_from_the_front,
        ),
        Mistake(
            "heads_summed", "the scores of all heads added up", "Each head keeps a table of its own.", heads_summed
        ),
        Mistake(
            "not_shifted",
            "the exponentials of raw scores",
            "Large scores overflow. There is a safe softmax in this lesson.",
            heads_not_shifted,
        ),
        Mistake(
            "scores_returned",
            "scores, without a softmax",
            "Weights are asked for: positive, with sums of 1.",
            heads_scores,
        ),
    ],
    alternatives=[heads_by_matmul, heads_by_broadcasting, heads_one_by_one, heads_by_torch, heads_by_log],
)

# ---------------------------------------------------------------- streaming_softmax

HEIGHTS = "blocks at very different heights"


def cases_streaming_softmax(draw):
    def blocks(dtype, *lead, sizes=(4, 1, 6), heights=(0.0, 0.0, 0.0), d_v=5, scale=2.0):
        scores = [draw.normal(*lead, n, dtype=dtype, scale=scale) + h for n, h in zip(sizes, heights, strict=True)]
        return scores, [draw.normal(*lead, n, d_v, dtype=dtype) for n in sizes]

    def make(dtype, *lead):
        return blocks(dtype, *lead)

    def at(*heights, lead=()):
        return blocks(torch.float64, *lead, sizes=(4, 1, 6, 2)[: len(heights)], heights=heights)

    rows_apart = blocks(torch.float64, 3)
    rows_apart = [s + torch.tensor([[9980.0], [0.0], [-9980.0]]) for s in rows_apart[0]], rows_apart[1]
    return [
        *tensor_cases(make, leads=((), (3,), (2, 3))),
        Case(blocks(torch.float64, 2, 3), part=LEADING, gradient=True),
        Case(blocks(torch.float32, 3, sizes=(7,), heights=(0,)), part="a single block"),
        Case(blocks(torch.float32, sizes=(1, 1, 1, 1), heights=(0, 0, 0, 0)), part="blocks of one score"),
        Case(at(-9980, 0, 9980), part=HEIGHTS, gradient=True, note="rising blocks"),
        Case(at(9980, 0, -9980), part=HEIGHTS, gradient=True, note="falling blocks"),
        Case(at(-9980, -9980, -9980), part=HEIGHTS, note="all scores near -9980"),
        Case(at(9980, 9985, 9980, lead=(2,)), part=HEIGHTS, note="all scores near 9980"),
        Case(at(-9980, 3, 0, 4), part=HEIGHTS, note="a very low block first"),
        Case(rows_apart, part=HEIGHTS, note="rows near 9980, 0 and -9980"),
        Case(blocks(torch.float32, 3, sizes=(5, 4, 3, 5, 6), heights=(0,) * 5, d_v=1), part="one pass", via="one_pass"),
    ]


def _stream(score_blocks, value_blocks, *, start=-math.inf, shrink_sum=True, shrink_out=True, per_row=True):
    """The stream with switches, each of which makes one mistake."""
    top = torch.full_like(score_blocks[0][..., :1], start)
    total, out = torch.zeros_like(top), 0.0
    for scores, values in zip(score_blocks, value_blocks, strict=True):
        best = scores.amax(dim=-1, keepdim=True) if per_row else scores.max()
        new_top = torch.maximum(top, best)
        shrink = torch.exp(top - new_top)
        e = torch.exp(scores - new_top)
        total = total * (shrink if shrink_sum else 1) + e.sum(dim=-1, keepdim=True)
        out = out * (shrink if shrink_out else 1) + (e.unsqueeze(-1) * values).sum(dim=-2)
        top = new_top
    return out / total


def stream_never_shrunk(score_blocks, value_blocks):
    return _stream(score_blocks, value_blocks, shrink_sum=False, shrink_out=False)


def stream_sum_not_shrunk(score_blocks, value_blocks):
    return _stream(score_blocks, value_blocks, shrink_sum=False)


def stream_out_not_shrunk(score_blocks, value_blocks):
    return _stream(score_blocks, value_blocks, shrink_out=False)


def stream_starts_at_zero(score_blocks, value_blocks):
    return _stream(score_blocks, value_blocks, start=0.0)


def stream_one_maximum_for_all_rows(score_blocks, value_blocks):
    return _stream(score_blocks, value_blocks, per_row=False)


def stream_shrink_turned(score_blocks, value_blocks):
    top = score_blocks[0].amax(dim=-1, keepdim=True)
    e = torch.exp(score_blocks[0] - top)
    total, out = e.sum(dim=-1, keepdim=True), (e.unsqueeze(-1) * value_blocks[0]).sum(dim=-2)
    for scores, values in zip(score_blocks[1:], value_blocks[1:], strict=True):
        new_top = torch.maximum(top, scores.amax(dim=-1, keepdim=True))
        e = torch.exp(scores - new_top)
        total = total * torch.exp(new_top - top) + e.sum(dim=-1, keepdim=True)
        out = out * torch.exp(new_top - top) + (e.unsqueeze(-1) * values).sum(dim=-2)
        top = new_top
    return out / total


def stream_no_maximum(score_blocks, value_blocks):
    total, out = 0.0, 0.0
    for scores, values in zip(score_blocks, value_blocks, strict=True):
        e = torch.exp(scores)
        total = total + e.sum(dim=-1, keepdim=True)
        out = out + (e.unsqueeze(-1) * values).sum(dim=-2)
    return out / total


def stream_first_maximum_kept(score_blocks, value_blocks):
    top = score_blocks[0].amax(dim=-1, keepdim=True)
    return stream_no_maximum([s - top for s in score_blocks], value_blocks)


def _block_means(score_blocks, value_blocks):
    return [
        (torch.softmax(s, dim=-1).unsqueeze(-1) * v).sum(-2) for s, v in zip(score_blocks, value_blocks, strict=True)
    ]


def stream_mean_of_blocks(score_blocks, value_blocks):
    return sum(_block_means(score_blocks, value_blocks)) / len(score_blocks)


def stream_sum_of_blocks(score_blocks, value_blocks):
    return sum(_block_means(score_blocks, value_blocks))


def stream_weighted_by_size(score_blocks, value_blocks):
    sizes = [s.shape[-1] for s in score_blocks]
    means = _block_means(score_blocks, value_blocks)
    return sum(n * m for n, m in zip(sizes, means, strict=True)) / sum(sizes)


def stream_last_block_only(score_blocks, value_blocks):
    return _block_means(score_blocks, value_blocks)[-1]


def stream_not_divided(score_blocks, value_blocks):
    top = torch.full_like(score_blocks[0][..., :1], -math.inf)
    out = 0.0
    for scores, values in zip(score_blocks, value_blocks, strict=True):
        new_top = torch.maximum(top, scores.amax(dim=-1, keepdim=True))
        out = out * torch.exp(top - new_top) + (torch.exp(scores - new_top).unsqueeze(-1) * values).sum(dim=-2)
        top = new_top
    return out


def stream_divided_in_each_step(score_blocks, value_blocks):
    top = torch.full_like(score_blocks[0][..., :1], -math.inf)
    total, out = torch.zeros_like(top), 0.0
    for scores, values in zip(score_blocks, value_blocks, strict=True):
        new_top = torch.maximum(top, scores.amax(dim=-1, keepdim=True))
        e = torch.exp(scores - new_top)
        total = total * torch.exp(top - new_top) + e.sum(dim=-1, keepdim=True)
        out = (out * torch.exp(top - new_top) + (e.unsqueeze(-1) * values).sum(dim=-2)) / total
        top = new_top
    return out


def stream_block_maximum_used(score_blocks, value_blocks):
    top = torch.full_like(score_blocks[0][..., :1], -math.inf)
    total, out = torch.zeros_like(top), 0.0
    for scores, values in zip(score_blocks, value_blocks, strict=True):
        best = scores.amax(dim=-1, keepdim=True)
        new_top = torch.maximum(top, best)
        e = torch.exp(scores - best)
        total = total * torch.exp(top - new_top) + e.sum(dim=-1, keepdim=True)
        out = out * torch.exp(top - new_top) + (e.unsqueeze(-1) * values).sum(dim=-2)
        top = new_top
    return out / total


def stream_two_passes(score_blocks, value_blocks):
    top = score_blocks[0].amax(dim=-1, keepdim=True)
    for scores in score_blocks[1:]:
        top = torch.maximum(top, scores.amax(dim=-1, keepdim=True))
    return stream_no_maximum([s - top for s in score_blocks], value_blocks)


def stream_collected(score_blocks, value_blocks):
    n, s, v = sum(block.shape[-1] for block in score_blocks), score_blocks[0], value_blocks[0]
    scores, values, start = s.new_zeros(*s.shape[:-1], n), v.new_zeros(*v.shape[:-2], n, v.shape[-1]), 0
    for s, v in zip(score_blocks, value_blocks, strict=True):
        scores[..., start : start + s.shape[-1]], values[..., start : start + s.shape[-1], :] = s, v
        start += s.shape[-1]
    return (torch.softmax(scores, dim=-1).unsqueeze(-1) * values).sum(dim=-2)


def stream_first_block_sets(score_blocks, value_blocks):
    m = score_blocks[0].max(-1).values
    e = torch.exp(score_blocks[0] - m[..., None])
    l, o = e.sum(-1), torch.einsum("...n,...nd->...d", e, value_blocks[0])
    for i in range(1, len(score_blocks)):
        m_new = torch.maximum(m, score_blocks[i].max(-1).values)
        e = torch.exp(score_blocks[i] - m_new[..., None])
        l = l * torch.exp(m - m_new) + e.sum(-1)
        o = o * torch.exp(m - m_new)[..., None] + torch.einsum("...n,...nd->...d", e, value_blocks[i])
        m = m_new
    return o / l[..., None]


def stream_mean_moved(score_blocks, value_blocks):
    log_total, mean = None, None
    for s, v in zip(score_blocks, value_blocks, strict=True):
        block_log = torch.logsumexp(s, dim=-1, keepdim=True)
        block_mean = (torch.softmax(s, dim=-1).unsqueeze(-2) @ v).squeeze(-2)
        if mean is None:
            log_total, mean = block_log, block_mean
        else:
            share = torch.sigmoid(block_log - log_total)
            mean = mean + share * (block_mean - mean)
            log_total = torch.logaddexp(log_total, block_log)
    return mean


def stream_score_by_score(score_blocks, value_blocks):
    m = l = o = None
    for s, v in zip(score_blocks, value_blocks, strict=True):
        for i in range(s.shape[-1]):
            one, value = s[..., i : i + 1], v[..., i, :]
            if m is None:
                m, l, o = one, torch.ones_like(one), value
                continue
            top = torch.max(m, one)
            l = l * (m - top).exp() + (one - top).exp()
            o = o * (m - top).exp() + (one - top).exp() * value
            m = top
    return o / l


def stream_merged_later(score_blocks, value_blocks):
    parts = []
    for s, v in zip(score_blocks, value_blocks, strict=True):
        m = s.amax(-1, keepdim=True)
        e = torch.exp(s - m)
        parts.append((m, e.sum(-1, keepdim=True), (e.unsqueeze(-1) * v).sum(-2)))
    while len(parts) > 1:
        (m1, l1, o1), (m2, l2, o2) = parts.pop(), parts.pop()
        m = torch.maximum(m1, m2)
        a, b = torch.exp(m1 - m), torch.exp(m2 - m)
        parts.append((m, a * l1 + b * l2, a * o1 + b * o2))
    return parts[0][2] / parts[0][1]


def stream_from_the_end(score_blocks, value_blocks):
    assert all(s.shape[-1] == v.shape[-2] for s, v in zip(score_blocks, value_blocks, strict=True))
    m, l, o = torch.tensor(-1e30, dtype=score_blocks[0].dtype), 0, 0
    for s, v in reversed(list(zip(score_blocks, value_blocks, strict=True))):
        m_new = torch.maximum(m, s.max(dim=-1, keepdim=True)[0])
        p = torch.exp(s - m_new)
        l = torch.exp(m - m_new) * l + p.sum(dim=-1, keepdim=True)
        o = torch.exp(m - m_new) * o + torch.matmul(p.unsqueeze(-2), v).squeeze(-2)
        m = m_new
    return o / l


streaming_softmax = Exercise(
    "streaming_softmax",
    cases_streaming_softmax,
    forbidden=("cat",),
    instead="keep a running maximum and a running sum.",
    mistakes=[
        Mistake(
            "never_shrunk",
            "old results not shrunk when the maximum rises",
            "They were measured against the old maximum. By which factor are they too large now?",
            stream_never_shrunk,
        ),
        Mistake(
            "sum_not_shrunk",
            "the values shrunk, the running sum not",
            "Both were measured against the old maximum.",
            stream_sum_not_shrunk,
        ),
        Mistake(
            "values_not_shrunk",
            "the running sum shrunk, the values not",
            "Both were measured against the old maximum.",
            stream_out_not_shrunk,
        ),
        Mistake(
            "starts_at_zero",
            "a running maximum that starts at 0",
            "A first block of -10,000s: what are its exponentials then?",
            stream_starts_at_zero,
        ),
        Mistake(
            "one_maximum_for_all_rows",
            "one maximum for all leading dimensions",
            "Rows may lie 20,000 apart. Each needs a maximum of its own.",
            stream_one_maximum_for_all_rows,
        ),
        Mistake(
            "shrink_turned_around",
            "the factor turned around",
            "A larger maximum makes old results smaller.",
            stream_shrink_turned,
        ),
        Mistake(
            "no_maximum",
            "the exponentials of raw scores",
            "Scores of 10,000 overflow. What is kept beside the sum?",
            stream_no_maximum,
        ),
        Mistake(
            "first_maximum_kept",
            "the maximum of the first block used for all",
            "A later block may lie 10,000 above it.",
            stream_first_maximum_kept,
        ),
        Mistake(
            "mean_of_block_means",
            "a softmax for each block, then the mean",
            "A block of low scores should hardly count.",
            stream_mean_of_blocks,
        ),
        Mistake(
            "sum_of_block_means",
            "a softmax for each block, then the sum",
            "All weights together should add up to 1. What do yours add up to?",
            stream_sum_of_blocks,
        ),
        Mistake(
            "weighted_by_block_size",
            "blocks weighted by their size",
            "A block counts by its exponentials, not by how many scores it has.",
            stream_weighted_by_size,
        ),
        Mistake(
            "last_block_only", "only the last block", "What is carried from block to block?", stream_last_block_only
        ),
        Mistake(
            "not_divided", "not divided by the running sum", "Which division is left for the end?", stream_not_divided
        ),
        Mistake(
            "divided_in_each_step",
            "divided after each block, and used as if it were not",
            "What is carried on must stay undivided, or be multiplied back first.",
            stream_divided_in_each_step,
        ),
        Mistake(
            "block_maximum_used",
            "each block measured against its own maximum",
            "Old and new are added up. Are they measured against the same maximum?",
            stream_block_maximum_used,
        ),
        Mistake(
            "two_passes",
            "all scores are read before the first value is used",
            "A right result. But could it start before the last block has arrived?",
            stream_two_passes,
        ),
        Mistake(
            "collected_first",
            "all blocks copied into one tensor first",
            "A right result. But that tensor is what does not fit into memory.",
            stream_collected,
        ),
    ],
    alternatives=[
        stream_first_block_sets,
        stream_mean_moved,
        stream_score_by_score,
        stream_merged_later,
        stream_from_the_end,
    ],
)

exercises = [
    softmax,
    fixed_head_weights,
    softmax_with_temperature,
    entropy,
    log_softmax,
    cross_entropy,
    softmax_backward,
    streaming_softmax,
]

quizzes = [
    Quiz(
        "quiz_1",
        "b",
        {
            "a": "Softmax works along any dimension that exists, and says nothing. That is why this mistake is so common.",
            "b": "Dimension 1 holds the heads. With one head every weight is 1, with eight they share. Sums over keys "
            "would show it at once.",
            "c": "That would be dimension 2, counted from 0: (batch, heads, queries, keys). Dimension 1 is another one.",
        },
    ),
    Quiz(
        "quiz_2",
        "a",
        {
            "a": "In float32 that happens about 104 points behind the winner. log_softmax never forms the share.",
            "b": "It is negative, and the loss takes its negative. Nothing is wrong with that.",
            "c": "They may, by rounding, and it does no harm: an error of 1e-7 in a share is one of 1e-7 in the loss.",
        },
    ),
    Quiz(
        "quiz_3",
        "c",
        {
            "a": "The old sum was measured against 3. Against the new maximum 5 it is smaller.",
            "b": "That measures the new score against the old maximum. It is the right number in the wrong units, and "
            "overflows when the step is large.",
            "c": "The old sum shrinks by e to the 3 − 5, and the new score is the maximum itself, so it adds 1.",
        },
    ),
]
