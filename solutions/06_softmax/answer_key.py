"""Answer key of lesson 6: softmax, its logarithm, its gradient, and online softmax."""

import math

import torch

from helpers.checking.vocabulary import GRADIENT, LEADING, Case, Exercise, Raises, listed_quizzes, tensor_cases

LARGE = "scores up to ±10,000"
BLOCKED = "entries of −inf"
ANY_DIM = "any dim"
EXACT = 1e-30  # for inputs with bitwise identical outputs of all accepted variants
LEADS = ((4,), (), (1,), (2, 1), (2, 3))


def far_apart(draw, *shape):
    """float32 scores up to ±1e4, at least 400 apart, so that every accepted variant computes the exact softmax."""
    n = math.prod(shape)
    return (draw.permutation(n).float() * 400 - 200 * (n - 1)).reshape(shape)


def at_heights(draw, *lead, n=5):
    """float64 vectors of scores near 9990, -9990, 0 and 4000 whose softmax is not one-hot."""
    heights = torch.tensor([9990.0, -9990.0, 0.0, 4000.0], dtype=torch.float64)
    return draw.normal(*lead, 4, n, dtype=torch.float64, scale=2) + heights[:, None]


def with_blocked(draw, *shape, dtype=torch.float64, scale=2.0):
    """Scores with some entries of -inf, but at least one finite entry along the last dimension."""
    x = draw.normal(*shape, dtype=dtype, scale=scale)
    return x.masked_fill(~draw.mask(*shape, keep=0.5), -math.inf)


def blocked_and_far():
    return torch.tensor([[-math.inf, 1e4, -1e4], [-math.inf, -math.inf, -1e4], [-math.inf, 3.0, -math.inf]])


def along_one_dimension(draw):
    """Cases for both softmax and log_softmax: shapes, dimensions, large scores. Each adds masked entries itself."""

    def make(dtype, *lead):
        return (draw.normal(*lead, 5, dtype=dtype, scale=2),)

    def box(dtype=torch.float32):
        return draw.normal(3, 4, 6, dtype=dtype, scale=2)

    columns = at_heights(draw).T.contiguous()  # (5, 4): each vector along dim 0 has its own level
    low = draw.normal(5, dtype=torch.float64) - 9990
    return [
        *tensor_cases(make, leads=LEADS),
        Case((box(), 0), part=ANY_DIM),
        Case((box(),), {"dim": -2}, part=ANY_DIM),
        Case((box(torch.float64), -3), part=ANY_DIM, gradient=True),
        Case((draw.normal(4, 6),), {"dim": 0}, part=ANY_DIM),
        Case((far_apart(draw, 6, 7),), part=LARGE),
        Case((at_heights(draw),), part=LARGE, gradient=True, note="rows near 9990, -9990, 0 and 4000"),
        Case((columns, 0), part=LARGE, note="columns near 9990, -9990, 0 and 4000"),
        Case((low,), part=LARGE, note="all scores near -9990"),
    ]


def cases_softmax(draw):
    lonely = torch.tensor([[-math.inf, 3.0, -math.inf], [0.5, -math.inf, 1.5]])
    return [
        *along_one_dimension(draw),
        Case((lonely,), part=BLOCKED),
        Case((blocked_and_far(),), part=BLOCKED, tolerance=EXACT),
        Case((with_blocked(draw, 2, 4, 5),), part=BLOCKED, gradient=True),
    ]


SHIFT, SUM = "x - x.amax(dim=dim, keepdim=True)", "e.sum(dim=dim, keepdim=True)"
NOT_SHIFTED = """exponentials that overflow, because the largest score was not subtracted first"""
SHIFT_HINT = (
    "Try the scores 1000 and 1001. Only differences matter, so which number can you subtract from all scores? "
    "(argmax returns a position, and amax a value.)"
)
KEEPDIM_HINT = "If the shapes are (4, 5) and (4,), which entries does broadcasting combine? Keep the dimension."
ONE_MAXIMUM = "Take a row of -9990s and a row of 9990s. What is left of the first after your shift?"

softmax = Exercise(
    "softmax",
    cases_softmax,
    forbidden=("softmax", "log_softmax"),
    instead="build it from a maximum, exponentials and a sum.",
    weights={LARGE: 16},
    apart=(LARGE, BLOCKED),
).with_mistakes(f"""
    not_shifted: {NOT_SHIFTED}
        {SHIFT} -> x
        {SHIFT_HINT}
    dim_ignored: always along the last dimension
        x.amax(dim=dim -> x.amax(dim=-1
        e.sum(dim=dim -> e.sum(dim=-1
        The caller may ask for another dimension. Where does `dim` appear in your code?
    whole_tensor: all entries of the tensor sum to 1 together
        x.amax(dim=dim, keepdim=True) -> x.max()
        {SUM} -> e.sum()
        Sum one of your vectors. Each should sum to 1 by itself.
    one_sum_for_all: one sum for the whole tensor
        {SUM} -> e.sum()
        Sum one of your vectors. Each should be divided by its own sum.
    one_maximum_for_all: one maximum for the whole tensor
        x.amax(dim=dim, keepdim=True) -> x.max()
        {ONE_MAXIMUM}
    maximum_without_keepdim: the maxima lost their dimension
        x.amax(dim=dim, keepdim=True) -> x.amax(dim=dim)
        {KEEPDIM_HINT}
    keepdim_forgotten: the sums lost their dimension
        {SUM} -> e.sum(dim=dim)
        {KEEPDIM_HINT}
    shifted_by_the_mean: shifted by the mean
        x.amax( -> x.mean(
        How far above the mean can the largest score lie? Choose a shift that no score exceeds.
    scores_clamped: scores clamped to a bound
        {SHIFT} -> x.clamp(-80, 80)
        9000 and 9001 are clamped to the same value, but their difference matters.
    nan_made_zero: NaN replaced by 0
        {SHIFT} -> x
        e / {SUM} -> torch.nan_to_num(e / {SUM})
        A vector of large scores then gets no weight at all. Prevent the overflow instead.
    not_divided: exponentials that do not add up to 1
        e / {SUM} -> e
        One step is missing. What makes the weights sum to 1?
""")


def cases_log_softmax(draw):
    lonely = torch.tensor([[-math.inf, 3.0, -math.inf], [0.5, -math.inf, 1.5]])
    # Gradients at infinite entries are not compared, because correct answers differ there.
    finite = {"via": "finite_entries", "note": "gradients compared at the finite entries only"}
    return [
        *along_one_dimension(draw),
        Case((lonely,), part=BLOCKED),
        Case((blocked_and_far(),), part=BLOCKED),
        Case((with_blocked(draw, 2, 4, 5),), part=BLOCKED),
        Case((with_blocked(draw, 3, 5),), part=BLOCKED, gradient=True, **finite),
    ]


LOG_SUM = "shifted.exp().sum(dim=dim, keepdim=True).log()"
QUOTIENT = "(shifted.exp() / shifted.exp().sum(dim=dim, keepdim=True)"

log_softmax = Exercise(
    "log_softmax",
    cases_log_softmax,
    forbidden=("softmax", "log_softmax"),
    instead="build it from a maximum, exponentials, a sum and a logarithm.",
    weights={LARGE: 16},
    apart=(LARGE, BLOCKED),
).with_mistakes(f"""
    sum_without_logarithm: the sum subtracted without its logarithm
        return shifted - {LOG_SUM} -> return shifted - shifted.exp().sum(dim=dim, keepdim=True)
        What is the logarithm of a quotient? Both of its terms are logarithms.
    log_of_a_probability: the logarithm of a probability that was computed first
        return shifted - {LOG_SUM} -> return {QUOTIENT}).log()
        A small probability becomes 0, and its logarithm −inf. Compute the logarithm from the scores.
    added_EPS for EPS in 1e-8, 1e-9, 1e-12: a small number inside the logarithm, added to the probability or as its lower bound
        return shifted - {LOG_SUM} -> return {QUOTIENT} + EPS).log()
        The correct value 100 points below the maximum is -100. Which value do you get?
    not_shifted: {NOT_SHIFTED}
        x - x.amax(dim=dim, keepdim=True) -> x
        {SHIFT_HINT}
    shifted_only_inside: the maximum subtracted inside the sum only
        return shifted - -> return x -
        The shift made the sum smaller by a factor. Where else must the same shift appear?
    shifted_only_outside: the maximum subtracted from the scores, but not inside the sum
        return shifted - {LOG_SUM} -> return shifted - x.exp().sum(dim=dim, keepdim=True).log()
        Subtracting the maximum must not change the result. In which sum does the same shift have to appear?
    not_a_logarithm: probabilities, not their logarithms
        return shifted - {LOG_SUM} -> return {QUOTIENT})
        Those are the weights of softmax. Which function is still missing, and can it come before the division?
    one_maximum_for_all: one maximum for the whole tensor
        x.amax(dim=dim, keepdim=True) -> x.max()
        {ONE_MAXIMUM}
    dim_ignored: always along the last dimension
        x.amax(dim=dim -> x.amax(dim=-1
        sum(dim=dim -> sum(dim=-1
        The caller may ask for another dimension. Where does `dim` appear in your code?
    maximum_without_keepdim: the maxima lost their dimension
        x.amax(dim=dim, keepdim=True) -> x.amax(dim=dim)
        {KEEPDIM_HINT}
    keepdim_forgotten: the sums lost their dimension
        sum(dim=dim, keepdim=True) -> sum(dim=dim)
        {KEEPDIM_HINT}
""")

IGNORED = "ignored targets"
OTHER_INDEX = "another ignore_index"
LARGE_LOGITS = "logits up to ±10,000"


def some_ignored(draw, targets, index, n):
    """A copy of targets with n of them, at random positions, replaced by index."""
    flat = targets.flatten().clone()
    flat[draw.permutation(len(flat))[:n]] = index
    return flat.reshape(targets.shape)


def confident(*targets, V=6):
    """float64 logits of -1e4, with 1e4 for one word per row."""
    logits = torch.full((len(targets), V), -1e4, dtype=torch.float64)
    logits[torch.arange(len(targets)), torch.tensor(targets)] = 1e4
    return logits


def cases_cross_entropy(draw):
    V = 6

    def make(dtype, *lead, scale=2.0):
        return draw.normal(*lead, V, dtype=dtype, scale=scale), draw.integers(0, V, lead)

    def ignoring(dtype, n, *lead, index=-100):
        logits, targets = make(dtype, *lead)
        return logits, some_ignored(draw, targets, index, n)

    logits, targets = make(torch.float64, 3, 5)
    targets[1] = -100  # one sentence is only padding, another partly
    targets[2, 2:] = -100
    zero_kept = torch.tensor([1, 3, 0, 2, 5, 0, 4])  # 0 and 2 are ordinary classes unless ignore_index
    tall = at_heights(draw, n=V), torch.tensor([1, -100, 0, 5])
    once_wrong = confident(0, 2, 1, 5), torch.tensor([0, 3, -100, 5])
    return [
        *tensor_cases(make, leads=LEADS, no_gradient=(1,)),
        Case(ignoring(torch.float32, 3, 7), part=IGNORED),
        Case(ignoring(torch.float64, 2, 2, 4), part=IGNORED, gradient=True),
        Case((logits, targets), part=IGNORED, gradient=True, note="three sentences, one of them all padding"),
        Case(ignoring(torch.float64, 4, 5), part=IGNORED, gradient=True, note="a single kept target"),
        Case((draw.normal(7, V), zero_kept), {"ignore_index": 0}, part=OTHER_INDEX),
        Case((draw.normal(7, V), zero_kept, 2), part=OTHER_INDEX),
        Case(ignoring(torch.float64, 3, 7, index=-1), {"ignore_index": -1}, part=OTHER_INDEX, gradient=True),
        Case(tall, part=LARGE_LOGITS, gradient=True, note="rows near 9990, -9990, 0 and 4000"),
        Case((far_apart(draw, 5, V), draw.integers(0, V, (5,))), part=LARGE_LOGITS),
        Case(once_wrong, part=LARGE_LOGITS, gradient=True, note="a confident model, once right and once wrong"),
    ]


LOG_P = "log_softmax(logits[mask])"
ALL_LOGITS = "logits[mask] -> logits.reshape(-1, logits.shape[-1])"
LOSSES = "loss = torch.zeros(targets.shape, dtype=logits.dtype).masked_scatter(mask, -picked)"

cross_entropy = Exercise(
    "cross_entropy",
    cases_cross_entropy,
    forbidden=("cross_entropy",),
    instead="take the logarithms of the probabilities and pick one in each row.",
    weights={LARGE_LOGITS: 20, IGNORED: 6},
    apart=(OTHER_INDEX,),
).with_mistakes(f"""
    ignore_index_fixed: always −100, whatever the caller says
        targets != ignore_index -> targets != -100
        Your code doesn't use the third argument.
    mean_over_all_positions: ignored positions counted in the mean
        picked.mean() -> picked.sum() / targets.numel()
        Ignored targets add nothing to the sum. Should they be part of the count?
    summed: a sum instead of a mean
        picked.mean() -> picked.sum()
        A batch twice as large would have twice the loss.
    ignored_as_class_zero: ignored positions trained towards class 0
        {ALL_LOGITS}
        targets[mask] -> targets.masked_fill(~mask, 0).reshape(-1)
        You replaced ignored targets by a valid class so that indexing works. Their losses must not be part of the mean.
    nothing_ignored: ignored targets used as classes
        {ALL_LOGITS}
        targets[mask] -> targets.reshape(-1)
        An ignored target isn't a class. Remove it before you index.
    mean_of_sentence_means: a mean for each sentence, then the mean of those
        return -picked.mean() -> {LOSSES}
        |    return (loss.sum(-1) / mask.sum(-1)).mean()
        A sentence with one kept word would then weigh as much as one with ten, and one with none gives 0 / 0.
    every_target_in_every_row: each row has a loss for the targets of all rows
        log_p[torch.arange(len(log_p)), targets[mask]] -> log_p[:, targets[mask]]
        K rows and K targets give a table of K · K entries. How many losses should there be?
    log_of_a_probability: the logarithm of a probability that was computed first
        {LOG_P} -> torch.softmax(logits[mask], -1).log()
        A small probability underflows to 0. Your log_softmax never computes it.
    not_a_logarithm: probabilities, not their logarithms
        {LOG_P} -> torch.softmax(logits[mask], -1)
        If the model is certain of the correct word, its loss should be 0. What do you get?
    added_1e_9: a small number inside the logarithm, added to the probability
        {LOG_P} -> (torch.softmax(logits[mask], -1) + 1e-9).log()
        The loss of a very unlikely target is then bounded, and its gradient vanishes.
    not_shifted: {NOT_SHIFTED}
        {LOG_P} -> logits[mask] - logits[mask].exp().sum(-1, keepdim=True).log()
        {SHIFT_HINT}
    softmax_twice: probabilities treated as logits
        {LOG_P} -> log_softmax(torch.softmax(logits[mask], -1))
        log_softmax expects scores. What did you pass to it?
    sign_flipped: a negative loss
        -picked -> picked
        A surprise is never below 0.
""")

WHOLE = "a whole number as temperature"
EXTREME = "temperatures from 0.001 to 1000"
REFUSED = "temperatures that make no sense"


def cases_softmax_with_temperature(draw):
    def make(dtype, *lead):
        return draw.normal(*lead, 5, dtype=dtype, scale=2), 0.7

    def refused(temperature):
        # For temperature 0 any ValueError counts, because a message such as "must be > 0" contains a 0 anyway.
        raises = Raises("ValueError", f"{temperature:g}" if temperature else "")
        return Case((draw.normal(5), temperature), part=REFUSED, raises=raises)

    cold = draw.normal(3, 5, dtype=torch.float64, scale=2e-3)
    return [
        *tensor_cases(make, leads=LEADS),
        Case((draw.normal(3, 5), 2.5)),
        Case((draw.normal(3, 5), 3), part=WHOLE),
        Case((draw.normal(5), 1), part=WHOLE),
        Case((draw.normal(3, 5, dtype=torch.float64, scale=300), 1000), part=EXTREME, note="a very high temperature"),
        Case((cold, 1e-3), part=EXTREME, gradient=True, note="a very low temperature, and scores close together"),
        Case((draw.normal(3, 5, dtype=torch.float64, scale=20), 0.01), part=EXTREME, gradient=True),
        Case((far_apart(draw, 3, 5), 0.1), part=EXTREME),
        *map(refused, (0, -3, -0.5)),
    ]


SCALED = "softmax(x / temperature)"

softmax_with_temperature = Exercise(
    "softmax_with_temperature", cases_softmax_with_temperature, weights={EXTREME: 6}
).with_mistakes(f"""
    multiplied: multiplied by the temperature
        {SCALED} -> softmax(x * temperature)
        A higher temperature should make the weights more equal. Does it in your function?
    weights_divided: the weights divided instead of the scores
        {SCALED} -> softmax(x) / temperature
        Do your weights still sum to 1?
    ignored: a temperature that changes nothing, because it is not used, added or subtracted
        {SCALED} -> softmax(x)
        Only differences of scores matter. What does your code do to the difference of two scores?
    nothing_refused: no error for temperatures that make no sense
        temperature <= 0 -> False
        What does a division by 0 give, and what does a negative temperature prefer?
    zero_is_greedy: temperature 0 taken as a hard choice
        temperature <= 0 -> temperature < 0
        return {SCALED} -> return {SCALED} if temperature else (x == x.amax(-1, keepdim=True)).to(x.dtype)
        Many programs do that, but this exercise asks for an error.
    zero_slips_through: temperature 0 not refused
        temperature <= 0 -> temperature < 0
        0 is not negative. Is it above 0?
    negative_slips_through: negative temperatures not refused
        temperature <= 0 -> temperature == 0
        A temperature of -1 prefers the lowest score, but you refuse only 0.
    small_number_added: a small number added to the temperature
        temperature <= 0 -> False
        {SCALED} -> softmax(x / (temperature + 1e-8))
        At a temperature of 0.001 the difference is visible. A temperature of 0 should raise an error instead.
    not_shifted: {NOT_SHIFTED}
        return {SCALED} -> e = torch.exp(x / temperature)
        |    return e / e.sum(dim=-1, keepdim=True)
        A low temperature makes scores large. Your own softmax handles that.
""")

ZEROS = "probabilities of 0 and 1"
SMALL = "small probabilities"


def long_tail(draw):
    """float64 probabilities: three likely outcomes, and 400 between 2e-8 and 8e-6."""
    tail = 10 ** draw.uniform(400, low=-7.7, high=-5.1, dtype=torch.float64)
    head = draw.probabilities(3) * (1 - tail.sum())
    p = torch.zeros(403, dtype=torch.float64)
    p[:3], p[3:] = head, tail
    return p


def cases_entropy(draw):
    def make(dtype, *lead):
        return (draw.probabilities(*lead, 5, dtype=dtype),)

    corners = torch.tensor([[0.0, 1.0, 0.0, 0.0], [0.5, 0.0, 0.5, 0.0], [0.25, 0.25, 0.25, 0.25]])
    masked = torch.softmax(with_blocked(draw, 2, 3, 6), dim=-1)
    unlikely = torch.tensor([1 - 3e-5, 1e-5, 2e-5], dtype=torch.float64)
    scores, batch = draw.normal(5, dtype=torch.float64), draw.normal(2, 3, 5, dtype=torch.float64)
    return [
        *tensor_cases(make, leads=LEADS, gradient=False),
        Case((corners,), part=ZEROS),
        Case((masked,), part=ZEROS, note="weights behind a mask"),
        Case((torch.ones(1),), part=ZEROS, note="one outcome, which is certain"),
        Case((unlikely,), part=SMALL),
        Case((long_tail(draw),), part=SMALL, note="three likely outcomes and 400 very unlikely ones"),
        # Correct answers may differ where p does not sum to 1, so the gradient is taken with respect to the scores.
        Case((scores,), part=GRADIENT, gradient=True, via="at_softmax", note="p as the softmax of scores"),
        Case((batch,), part=GRADIENT, gradient=True, via="at_softmax", note="p as the softmax of scores"),
    ]


SAFE, TERMS = "p.clamp_min(torch.finfo(p.dtype).tiny)", "(p * -log_p).sum(dim=-1)"
SEEN_HINT = "Change the zeros only, and leave all other probabilities exactly as they are."

entropy = Exercise("entropy", cases_entropy, weights={ZEROS: 14}).with_mistakes(f"""
    nan_at_zero: NaN where a probability is 0
        {SAFE} -> p
        For a computer 0 times −inf is NaN. What should such an outcome add?
    nan_replaced_at_the_end: NaN replaced by 0 at the end
        {SAFE} -> p
        {TERMS} -> {TERMS}.nan_to_num(0.0)
        A vector that contains one 0 then has entropy 0, whatever its other entries are.
    bits: measured in bits
        .log() -> .log2()
        The unit is the nat, so use the natural logarithm.
    sign_flipped: a negative entropy
        -log_p -> log_p
        Logarithms of probabilities are negative, but a surprise is not.
    mean_of_terms: the mean of the terms instead of their sum
        .sum(dim=-1) -> .mean(dim=-1)
        The average is weighted by p, and your terms contain p already.
    one_number_for_all: one number for the whole batch
        .sum(dim=-1) -> .sum()
        Each vector has its own entropy. (Indexing with a boolean mask makes one long vector.)
    first_dimension: summed along the first dimension
        .sum(dim=-1) -> .sum(dim=0)
        This is right for one vector. Along which dimension do the probabilities sum to 1?
    softmax_applied: probabilities taken for scores
        log_p = p -> p = torch.softmax(p, dim=-1)
        |    log_p = p
        The argument contains probabilities already.
    small_number_EPS for EPS in 1e-6, 1e-8, 1e-9: a small number added inside the logarithm, which a long list of small probabilities shows
        {SAFE} -> (p + EPS)
        {SEEN_HINT}
    bound_too_high: probabilities kept from falling below a bound that is too high
        torch.finfo(p.dtype).tiny -> 1e-6
        {SEEN_HINT}
""")


def cases_softmax_backward(draw):
    def make(dtype, *lead):
        return draw.probabilities(*lead, 5, dtype=dtype), draw.normal(*lead, 5, dtype=dtype)

    corners = torch.tensor([[0.0, 1.0, 0.0, 0.0], [0.5, 0.0, 0.5, 0.0]])
    # Correct answers may differ where p does not sum to 1, so the gradient is taken with respect to the scores.
    plain = draw.normal(5, dtype=torch.float64), draw.normal(5, dtype=torch.float64)
    decided = draw.normal(3, 4, dtype=torch.float64), draw.normal(3, 4, dtype=torch.float64)
    decided[0][0, 1:] = decided[0][1, 2] = -math.inf
    batch = draw.normal(2, 3, 5, dtype=torch.float64), draw.normal(2, 3, 5, dtype=torch.float64)
    return [
        *tensor_cases(make, leads=LEADS, gradient=False),
        Case((corners, draw.normal(2, 4)), part=ZEROS),
        Case((torch.ones(1), draw.normal(1)), part=ZEROS, note="one outcome, which is certain"),
        Case(plain, part=GRADIENT, gradient=True, via="at_softmax", note="p as the softmax of scores"),
        Case(batch, part=GRADIENT, gradient=True, via="at_softmax", note="p as the softmax of scores"),
        Case(decided, part=ZEROS, gradient=True, via="at_softmax", note="gradients where some p are 0 or 1"),
    ]


AVERAGE, MOVED = "(p * grad).sum(dim=-1, keepdim=True)", "return p * (grad - average)"

softmax_backward = Exercise(
    "softmax_backward",
    cases_softmax_backward,
    forbidden=("autograd", "softmax_backward"),
    instead="write the chain rule out by hand.",
).with_mistakes(f"""
    elementwise: each weight times its own gradient, without the other weights
        p * (grad - average) -> p * grad
        Sum your result. Adding a constant to all scores changes nothing, so what should the sum be?
    diagonal_only: the diagonal of the Jacobian only
        p * (grad - average) -> p * (1 - p) * grad
        When one score rises, the other weights fall. Where does your code use them?
    plain_WHICH for WHICH in mean, sum: the WHICH of the gradients, without weights
        {AVERAGE} -> grad.WHICH(dim=-1, keepdim=True)
        You need an average of the gradients. Weighted by what?
    mean_of_products: the mean of the products instead of their sum
        {AVERAGE} -> (p * grad).mean(dim=-1, keepdim=True)
        The weights p sum to 1 already, so no further division is needed.
    outer_weight_missing: the difference from the average, not yet weighted
        {MOVED} -> return grad - average
        A token of weight 0 has gradient 0. Does yours?
    average_taken_off_unweighted: the average subtracted after weighting
        {MOVED} -> return p * grad - average
        Expand the formula. What multiplies the average?
    one_average_for_all: one average for the whole batch
        {AVERAGE} -> (p * grad).sum()
        This is right for one vector. Each vector has its own average.
    keepdim_forgotten: the averages lost their dimension
        {AVERAGE} -> (p * grad).sum(dim=-1)
        {KEEPDIM_HINT}
    sign_flipped: the right values with the opposite sign
        {MOVED} -> return p * (average - grad)
        If the loss rises with one weight alone, it rises with that weight's score.
    of_log_softmax: the backward pass of the logarithm of softmax
        {MOVED} -> return grad - p * grad.sum(dim=-1, keepdim=True)
        That one starts from the gradient at log p. This one starts from the gradient at p.
    softmax_applied: probabilities taken for scores
        average = (p -> p = torch.softmax(p, dim=-1)
        |    average = (p
        The first argument contains probabilities already.
""")


def cases_cross_entropy_backward(draw):
    V = 6

    def make(dtype, *lead):
        return draw.normal(*lead, V, dtype=dtype, scale=2), draw.integers(0, V, lead)

    apart = far_apart(draw, 5, V).double()
    return [
        *tensor_cases(make, leads=LEADS, gradient=False),
        Case((torch.tensor([1.0, 2.0, 5.0]).log(), torch.tensor(2)), part=LEADING, note="the three scores of the text"),
        Case((draw.normal(3, V, scale=40), draw.integers(0, V, (3,))), part="scores far apart"),
        Case((at_heights(draw, n=V), torch.tensor([1, 3, 0, 5])), part=LARGE_LOGITS, note="rows near ±9990, 0, 4000"),
        Case((apart, draw.integers(0, V, (5,))), part=LARGE_LOGITS),
        Case((confident(0, 2, 1), torch.tensor([0, 3, 1])), part=LARGE_LOGITS, note="a confident model, once wrong"),
    ]


MINUS, COUNT = "(p - truth)", "/ targets.numel()"

cross_entropy_backward = Exercise(
    "cross_entropy_backward",
    cases_cross_entropy_backward,
    forbidden=("autograd", "cross_entropy"),
    instead="use prediction minus truth.",
    weights={LARGE_LOGITS: 8},
).with_mistakes(f"""
    not_averaged: the gradient of the sum of losses
        {COUNT} ->
        The loss is a mean over all positions. What does that do to each position's gradient?
    divided_by_the_first_size: divided by the first size only
        {COUNT} -> / (targets.shape[0] if targets.dim() else 1)
        With targets of shape (2, 3), over how many positions does the mean run?
    divided_by_all_logits: divided by the number of logits
        {COUNT} -> / logits.numel()
        The mean runs over positions, and not over words.
    sign_flipped: truth minus prediction
        {MINUS} -> (truth - p)
        That is the direction of a training step. The gradient points the other way.
    truth_forgotten: the prediction alone
        {MINUS} -> p
        Sum one of your rows. Adding a constant to all logits changes no loss, so what should the sum be?
    every_target_in_every_row: 1 subtracted at the targets of all rows, in every row
        truth = torch.zeros_like(p).scatter(-1, targets.unsqueeze(-1), 1.0)
        -> truth = torch.zeros_like(p).index_fill(-1, targets.flatten(), 1.0)
        Sum one of your rows. How many targets does one position have?
    at_the_target_only: only the target's logit has a gradient
        {MINUS} -> (p - truth) * truth
        The other logits also have a gradient, in proportion to their probabilities.
    scores_minus_truth: logits taken for probabilities
        softmax(logits) -> logits
        The truth sums to 1. What should it be subtracted from?
    logarithms_minus_truth: log-probabilities taken for probabilities
        softmax(logits) -> torch.log_softmax(logits, dim=-1)
        The loss needs the logarithm, but its gradient needs the probability itself.
    not_shifted: {NOT_SHIFTED}
        softmax(logits) -> logits.exp() / logits.exp().sum(dim=-1, keepdim=True)
        Try the logits 1000 and 1001. Your own softmax handles them.
    through_the_probability: a division by the target's probability
        return {MINUS} {COUNT} -> g = truth * (-1 / p)
        |    return p * (g - (p * g).sum(dim=-1, keepdim=True)) {COUNT}
        The probability may underflow to 0. On paper it cancels, so cancel it before you compute.
    divided_by_the_vocabulary: divided by the size of the vocabulary
        {COUNT} -> / logits.shape[-1]
        The mean runs over positions, and not over words.
""")


def cases_fixed_head_weights(draw):
    def make(dtype, *lead, scale=1.0):
        return draw.normal(*lead, 4, 5, 6, dtype=dtype, scale=scale), draw.normal(*lead, 7, 5, 6, dtype=dtype)

    return [
        *tensor_cases(make, leads=((2,), (), (1,), (2, 1), (3, 2))),
        Case(make(torch.float64), part=LEADING, gradient=True),
        Case(make(torch.float64, 2, scale=1000), part="large scores"),
        Case((draw.normal(2, 1, 1, 3), draw.normal(2, 7, 1, 3)), part="a single query and head"),
    ]


BY_ROOT, PRODUCTS = "scores / q.shape[-1] ** 0.5", '"...ihd,...jhd->...ijh"'

fixed_head_weights = Exercise("fixed_head_weights", cases_fixed_head_weights).with_mistakes(f"""
    published_version: the original version
        {PRODUCTS} -> "bihd,bjhd->bijh"
        dim=-2 -> dim=1
        Sum your weights along the keys. Which dimension is dim=1?
    over_queries: softmax over queries
        dim=-2 -> dim=-3
        Sum the weights of one query over all keys. Is it 1?
    over_heads: softmax over heads
        dim=-2 -> dim=-1
        Here the last dimension holds the heads, and heads must not influence each other.
    not_scaled: scores that were not divided
        {BY_ROOT} -> scores
        The original scales correctly. Compare its second line with yours.
    scaled_by_the_number_of_heads: divided by the square root of the number of heads
        q.shape[-1] -> q.shape[-2]
        Over which dimension of q does a dot product sum?
    scaled_after_softmax: scaled after the softmax instead of before
        {BY_ROOT}, dim=-2) -> scores, dim=-2) / q.shape[-1] ** 0.5
        Sum the weights of one query over all keys. Is it 1?
    divided_by_d_k: divided by the width instead of its square root
        ** 0.5 ->
        In lesson 4 the variance was d_k. What is the standard deviation?
    heads_moved_forward: heads before the tokens in the result
        dim=-2) -> dim=-2).movedim(-1, -3)
        The weights are right, but the heads should stay the last dimension.
    one_batch_dimension_only: made for exactly one batch dimension
        {PRODUCTS} -> "bihd,bjhd->bijh"
        Your function should also work without a batch dimension, and with two of them.
    counted_from_the_front: the dimension counted from the front
        dim=-2 -> dim=2
        This is right with one batch dimension. Which dimension holds the keys, counted from the end?
""")

HEIGHTS = "blocks at very different heights"
ONE_PASS = "one pass, and nothing large kept"


def cases_online_softmax(draw):
    def blocks(dtype, *lead, sizes=(4, 1, 6), heights=(0.0, 0.0, 0.0), d_v=5, scale=2.0):
        scores = [draw.normal(*lead, n, dtype=dtype, scale=scale) + h for n, h in zip(sizes, heights, strict=True)]
        return scores, [draw.normal(*lead, n, d_v, dtype=dtype) for n in sizes]

    def make(dtype, *lead):
        return blocks(dtype, *lead)

    def at(*heights, lead=()):
        return blocks(torch.float64, *lead, sizes=(4, 1, 6, 2)[: len(heights)], heights=heights)

    def even(sizes, **options):
        return blocks(torch.float32, 3, sizes=sizes, heights=(0,) * len(sizes), **options)

    rows_apart = blocks(torch.float64, 3)
    rows_apart = [s + torch.tensor([[9980.0], [0.0], [-9980.0]]) for s in rows_apart[0]], rows_apart[1]
    crossing = torch.tensor([[-4.0, 0.0, 4.0], [4.0, 0.0, -4.0], [0.0, 4.0, -4.0]]) * 2000
    rows_cross = blocks(torch.float64, 3)
    rows_cross = [s + h[:, None] for s, h in zip(rows_cross[0], crossing.T, strict=True)], rows_cross[1]
    return [
        *tensor_cases(make, leads=((), (3,), (1,), (2, 1), (2, 3))),
        # Here a maximum always rises, so that an answer which does not rescale earlier results gets no points.
        Case(blocks(torch.float32, 3, heights=(0.0, 3.0, 6.0)), note="scores that rise from block to block"),
        Case(blocks(torch.float64, 2, 3), part=LEADING, gradient=True),
        Case(even((7,)), part="a single block"),
        Case(even((1, 1, 1, 1)), part="blocks of one score"),
        Case(even((4, 4, 2)), part="a short block at the end"),
        Case(at(-9980, 0, 9980), part=HEIGHTS, gradient=True, note="rising blocks"),
        Case(at(9980, 0, -9980), part=HEIGHTS, gradient=True, note="falling blocks"),
        Case(at(-9980, -9980, -9980), part=HEIGHTS, note="all scores near -9980"),
        Case(at(9980, 9985, 9980, lead=(2,)), part=HEIGHTS, note="all scores near 9980"),
        Case(rows_apart, part=HEIGHTS, note="rows near 9980, 0 and -9980"),
        Case(rows_cross, part=HEIGHTS, gradient=True, note="a maximum that rises in one row and falls in another"),
        # Each block has at least two scores, so that a kept maximum cannot be a view of the block.
        Case(even((30,) * 15 + (7,), d_v=1), part=ONE_PASS, via="one_pass", note="sixteen blocks of scores"),
        # Here maximum, sum and values of all blocks take more memory than all scores together.
        Case(even((2,) * 60, d_v=6), part=ONE_PASS, via="one_pass", note="sixty blocks of two scores"),
    ]


SUM_SHRINK, OUT_SHRINK = "total * shrink", "out * shrink"
RISING = "torch.maximum(top, scores.amax(dim=-1, keepdim=True))"
MEANS = "[(torch.softmax(s, dim=-1).unsqueeze(-1) * v).sum(-2) for s, v in zip(score_blocks, value_blocks)]"

online_softmax = Exercise(
    "online_softmax",
    cases_online_softmax,
    forbidden=("cat",),
    instead="keep a running maximum and a running sum.",
    weights={ONE_PASS: 60, HEIGHTS: 60},  # about half of the points each, because they are the purpose
).with_mistakes(f"""
    never_shrunk: old results not rescaled when the maximum rises
        {SUM_SHRINK} -> total
        {OUT_SHRINK} -> out
        They refer to the old maximum. By which factor are they too large now?
    sum_not_shrunk: the values rescaled, but not the running sum
        {SUM_SHRINK} -> total
        Both refer to the old maximum.
    values_not_shrunk: the running sum rescaled, but not the values
        {OUT_SHRINK} -> out
        Both refer to the old maximum.
    shrink_turned_around: the rescaling factor inverted
        torch.exp(top - new_top) -> torch.exp(new_top - torch.where(top > -math.inf, top, new_top))
        A larger maximum makes old results smaller.
    starts_too_high: a running maximum that starts at a number, such as 0
        -math.inf -> 0.0
        Take a first block of -10,000s. What are its exponentials then?
    one_maximum_for_all_rows: one maximum for all leading dimensions
        scores.amax(dim=-1, keepdim=True) -> scores.max()
        Rows may lie 20,000 apart, so each needs its own maximum.
    maximum_of_the_block: everything shifted by the latest block's maximum
        {RISING} -> scores.amax(dim=-1, keepdim=True)
        After a block of low scores, how large is exp(top - new_top)? The running maximum can only rise, separately in each row.
    maximum_not_kept: the new maximum is not kept for the next block
        top = new_top -> pass
        The next block rescales by exp(old maximum - new maximum). Which maximum is the old one then?
    no_maximum: the exponentials of raw scores
        {RISING} -> torch.zeros_like(top)
        Scores of 10,000 overflow. What do you need besides the running sum?
    mean_of_block_means: a softmax for each block, then the mean
        first, *_ = score_blocks -> means = {MEANS}
        |    return sum(means) / len(means)
        A block of low scores should contribute very little.
    two_passes: scores are read a second time
        for scores, values in zip( -> for s in score_blocks:
        |        top = torch.maximum(top, s.amax(dim=-1, keepdim=True))
        |    for scores, values in zip(
        The result is right, but once a later block has been read the earlier ones are gone.
""")

exercises = [
    softmax,
    fixed_head_weights,
    softmax_with_temperature,
    entropy,
    log_softmax,
    cross_entropy,
    softmax_backward,
    cross_entropy_backward,
    online_softmax,
]

quizzes = listed_quizzes("""
    quiz_1: d
        a: Large random logits give a much larger loss, because some wrong words then seem almost certain.
        b: The model hasn't learned anything yet, so padding is no harder to predict than any word. This number
           doesn't show it.
        c: In bits the untrained model's loss would be log2 of 1000, about 10.
        d: ln 1000 is 6.9. With equal probabilities each word has probability 1/1000 and surprise ln 1000.
    quiz_2: a
        a: In float32 that happens about 104 points below the maximum. log_softmax never computes the probability.
        b: The logarithm is negative, and the loss is its negative. Nothing is wrong with that.
        c: They may, because of rounding, but it does no harm. An error of 1e-7 in a probability is one of 1e-7 in the
           loss.
""")
