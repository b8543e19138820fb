"""Answer key of lesson 4: why attention divides by the square root of the head width."""

import dataclasses
import math

import torch

from helpers.checking.vocabulary import GRADIENT, LEADING, Case, Exercise, listed_quizzes, tensor_cases

CORNERS = "probabilities of 0 and 1"
BATCH_OF_ONE = "leading dimensions of size 1"


def with_rounded_constants(cases):
    """Let float64 cases accept twice the error of constants in float32, but no computation in float32."""
    return [dataclasses.replace(c, tolerance=2.5e-7) if c.args[0].dtype == torch.float64 else c for c in cases]


def cases_score_variance(draw):
    def make(dtype, *lead):  # each matrix has its own mean, so the total variance is not the mean of variances
        Q = draw.normal(*lead, 5, 6, dtype=dtype) + draw.normal(*lead, 1, 1, dtype=dtype)
        K = draw.normal(*lead, 7, 6, dtype=dtype) + draw.normal(*lead, 1, 1, dtype=dtype)
        return Q, K

    one = draw.normal(1, 4), draw.normal(1, 4)
    return [
        *tensor_cases(make),
        Case(make(torch.float64, 2, 3), part=LEADING, gradient=True),
        Case(make(torch.float32, 1, 4), part=LEADING, note=BATCH_OF_ONE),
        Case(one, part="a single score", note="one query and one key"),
    ]


score_variance = Exercise("score_variance", cases_score_variance).with_mistakes("""
    sample_variance: divided by the number of scores minus one
        var(correction=0) -> var()
        That estimates the variance of a larger population from a sample. Here the scores are the whole population. Which argument of the library call decides this?
    standard_deviation: the standard deviation, not the variance
        scores.var( -> scores.std(
        The standard deviation is the square root of the variance. Which of the two does the exercise ask for?
    mean_of_squares: the mean of the squares, measured from 0
        scores.var(correction=0) -> scores.pow(2).mean()
        The variance is the mean squared distance from the mean. Is the mean 0 here?
    variance_of_each_row: a variance for each query, averaged
        scores.var(correction=0) -> scores.var(dim=-1, correction=0).mean()
        Suppose the rows of two queries have different means. Does your result depend on that difference?
    variance_of_each_matrix: a variance for each member of the batch, averaged
        scores.var(correction=0) -> scores.var(dim=(-2, -1), correction=0).mean()
        All scores of the batch together form one population. How many means does your code subtract?
    variance_after_scaling: the scores were scaled before they were measured
        K.transpose(-2, -1) -> K.transpose(-2, -1) / Q.shape[-1] ** 0.5
        This exercise measures the scores before scaling. Scaling comes in the next exercise.
""")


def cases_scaled_scores(draw):
    def make(dtype, *lead):
        return draw.normal(*lead, 5, 6, dtype=dtype), draw.normal(*lead, 7, 6, dtype=dtype)

    wider = draw.normal(4, 10), draw.normal(3, 10)
    one = draw.normal(1, 4, 6), draw.normal(1, 1, 6)
    large = draw.normal(4, 6, dtype=torch.float64, scale=100), draw.normal(5, 6, dtype=torch.float64, scale=100)
    cases = [
        *tensor_cases(make),
        Case(make(torch.float32, 2), note="a batch of two"),
        Case(make(torch.float64, 2, 3), part=LEADING, gradient=True),
        Case(one, part=LEADING, note=BATCH_OF_ONE + ", and one key"),
        Case(wider, note="a head of width 10"),
        Case(large, part="large scores", note="scores in the ten thousands"),
    ]
    return with_rounded_constants(cases)


scaled_scores = Exercise("scaled_scores", cases_scaled_scores, axes=("query", "key")).with_mistakes("""
    divided_by_d_k: divided by the width instead of its square root
        / d_k**0.5 -> / d_k
        The dot product's variance is d_k. What is its standard deviation?
    half_by_precedence: divided by the width, and then by 2
        d_k**0.5 -> d_k ** 1 / 2
        Which of ** and / does Python do first? Try 9 ** 1 / 2 in a cell of its own.
    not_scaled: the plain dot products
        / d_k**0.5 ->
        Their standard deviation still grows with the width. Which division brings it back to 1?
    multiplied_by_root: multiplied by the square root instead of divided
        / d_k**0.5 -> * d_k**0.5
        Do wider heads need their scores made larger, or smaller?
    divided_by_root_of_keys: divided by the square root of the number of keys
        d_k = Q.shape[-1] -> d_k = K.shape[-2]
        Does one score sum over keys, or over the entries of two vectors?
    width_read_from_axis_1: right for a single matrix; with leading dimensions the width is read from the wrong axis
        d_k = Q.shape[-1] -> d_k = Q.shape[1]
        Which axis is the width in (2, 3, 5, 6), and what is its index counted from the end?
    divided_by_half: divided by half the width
        d_k**0.5 -> (d_k ** 1 / 2)
        Which of ** and / does Python do first? Try 9 ** 1 / 2 in a cell of its own.
    keys_reshaped: the keys were reshaped instead of transposed
        K.transpose(-2, -1) -> K.reshape(*K.shape[:-2], K.shape[-1], K.shape[-2])
        The shapes fit, but a column of the reshaped keys is no longer one key. Which method swaps two axes?
    softmax_applied: weights, not scores: softmax was applied as well
        Q @ K.transpose(-2, -1) / d_k**0.5 -> torch.softmax(Q @ K.transpose(-2, -1) / d_k**0.5, dim=-1)
        This exercise ends one step earlier. Masks (lesson 5) go in between.
    keys_and_queries_swapped: keys and queries swapped
        Q @ K.transpose -> K @ Q.transpose
        The result has one row per query. What do the rows of yours belong to?
""")


def cases_softmax_jacobian(draw):
    def make(dtype, *lead):
        return (draw.probabilities(*lead, 5, dtype=dtype),)

    corners = torch.tensor([[0.0, 1.0, 0.0, 0.0], [0.5, 0.0, 0.5, 0.0]])
    scores = draw.normal(5, dtype=torch.float64)
    batch = draw.normal(2, 3, 5, dtype=torch.float64)
    decided = draw.normal(3, 4, dtype=torch.float64)  # their softmax is 0 at -inf, and once exactly 1
    decided[0, 1:] = decided[1, 2] = -math.inf
    return [
        *tensor_cases(make, gradient=False),
        Case(make(torch.float32, 4), note="four probability vectors"),
        Case(make(torch.float32, 1, 1), part=LEADING, note=BATCH_OF_ONE),
        Case((corners,), part=CORNERS),
        Case((torch.ones(1),), part=CORNERS, note="one outcome, which is certain"),
        # Correct answers may differ where p does not sum to 1, so the gradient is taken with respect to the scores.
        Case((scores,), part=GRADIENT, gradient=True, via="at_softmax", note="p is the softmax of scores"),
        Case((batch,), part=LEADING, gradient=True, via="at_softmax", note="p is the softmax of scores"),
        Case((decided,), part=CORNERS, gradient=True, via="at_softmax", note="gradients where some p are 0 or 1"),
    ]


softmax_jacobian = Exercise(
    "softmax_jacobian", cases_softmax_jacobian, axes=("probability i", "score j")
).with_mistakes("""
    diagonal_only: each probability depends only on its own score
        diag_embed(p) - outer -> diag_embed(p * (1 - p))
        The probabilities add up to 1. When one score rises, what must the other probabilities do?
    without_delta: the formula for the diagonal was used for all entries
        torch.diag_embed(p) -> p.unsqueeze(-1)
        Can p_i grow when another token's score grows? Check the sign of the entries off the diagonal.
    sign_flipped: the right values with the opposite sign
        torch.diag_embed(p) - outer -> outer - torch.diag_embed(p)
        If score i rises, does p_i rise or fall?
    plus_outer: p pᵀ was added instead of subtracted
        - outer -> + outer
        Softmax doesn't change when all scores rise by 1. What must each row of the Jacobian add up to?
    inner_product: the inner product of p with itself was subtracted from every entry
        p.unsqueeze(-1) * p.unsqueeze(-2) -> (p * p).sum(-1, keepdim=True).unsqueeze(-1)
        A column times a row is a matrix; a row times a column is a single number. Which one is p pᵀ?
    ones_on_the_diagonal: ones on the diagonal in place of the probabilities
        torch.diag_embed(p) -> torch.eye(p.shape[-1], dtype=p.dtype)
        In the formula δ is multiplied by p_i. What does that leave on the diagonal?
    softmax_again: softmax applied to p, which is a probability vector already
        outer = p -> p = torch.softmax(p, dim=-1)
        |    outer = p
        The argument p is already the output of softmax, not its input.
""")

LARGE = "scores up to ±1e4"


def cases_max_gradient(draw):
    def make(dtype, *lead):
        return (draw.normal(*lead, 6, dtype=dtype),)

    def far(sign):  # an offset of about 10,000, in float64, where all correct answers agree
        return draw.uniform(4, 6, low=-2.0, high=2.0, dtype=torch.float64) + sign * 9998.0

    apart = torch.linspace(-1e4, 1e4, 5)[draw.permutation(5)]
    tie = torch.tensor([[1e4, -1e4, 1e4], [-1e4, -1e4, -1e4]])
    return [
        *tensor_cases(make),
        Case(make(torch.float32, 4), note="four vectors of scores"),
        Case(make(torch.float64, 2, 3), part=LEADING, gradient=True),
        Case((draw.normal(3, 6, scale=3.0),), part=LEADING),
        Case(make(torch.float32, 1, 3), part=LEADING, note=BATCH_OF_ONE),
        Case((apart,), part=LARGE, note="scores from -10000 to 10000"),
        Case((tie,), part=LARGE, note="equal scores of 10000 and of -10000"),
        Case((far(1),), part=LARGE, note="scores near 10000"),
        Case((far(-1),), part=LARGE, note="scores near -10000"),
        Case((draw.normal(2, 1),), part="a single score", note="one key, so nothing to choose"),
    ]


LARGEST = "(p * (1 - p)).amax(dim=-1)"
SOFTMAX = "torch.softmax(scores, dim=-1)"
max_gradient = Exercise("max_gradient", cases_max_gradient, weights={LARGE: 14}).with_mistakes(f"""
    largest_over_the_batch: one value for the whole batch
        amax(dim=-1) -> max()
        Each vector of scores has its own Jacobian. How many answers does a (2, 3, 6) input ask for?
    exponentials_overflow: exponentials of the scores as they are
        {SOFTMAX} -> scores.exp() / scores.exp().sum(dim=-1, keepdim=True)
        What is exp(10000) in float32, and what is inf / inf? Shifting all scores changes nothing.
    largest_probability: the largest probability, not the largest derivative
        (p * (1 - p)) -> p
        If a token has probability 1, how large is the derivative of its probability?
    WHICH_of_the_diagonal for WHICH in mean, sum: the WHICH of the diagonal
        amax(dim=-1) -> WHICH(dim=-1)
        The exercise asks for the largest entry.
    largest_of_each_row: the largest entry of each row of the Jacobian
        {LARGEST} -> softmax_jacobian(p).abs().amax(dim=-1)
        A Jacobian has two axes. Take the maximum over both.
    scores_taken_for_probabilities: scores in place of probabilities
        {LARGEST} -> (scores * (1 - scores)).amax(dim=-1)
        The formula expects the output of softmax. Apply softmax to the scores first.
    softmax_over_first_axis: right for one vector; with leading dimensions softmax runs over the first axis
        softmax(scores, dim=-1) -> softmax(scores, dim=0)
        Which axis holds the scores that compete with each other?
""")


def cases_weights_jacobian(draw):
    def make(dtype, T=5, d_k=3, divisor=2.5, scale=1.0):
        return draw.normal(d_k, dtype=dtype), draw.normal(T, d_k, dtype=dtype, scale=scale), divisor

    def near(sign):  # all scores near ±9,000 and a few units apart
        q, K, divisor = make(torch.float64, d_k=4, divisor=2)
        K[:, 0] = K[:, 0] + sign * 9000.0
        return torch.cat([torch.full((1,), 2.0, dtype=torch.float64), q[1:]]), K, divisor

    whole = draw.integers(-30, 31, (6, 4)).float()  # integers, so that sums are exact in any order
    asked = draw.integers(40, 80, (4,)).float()
    twins = torch.cat([whole, whole])
    return [
        Case(make(torch.float32)),
        Case(make(torch.float32, T=4, d_k=6, divisor=7), note="keys of width 6, divisor 7"),
        Case(make(torch.float64), part="dtype kept"),
        Case(make(torch.float64, T=6, d_k=4), part=GRADIENT, gradient=True),
        Case(make(torch.float64, T=4, divisor=0.05), part="a divisor below 1"),
        Case(make(torch.float64, T=4, d_k=5, divisor=100), part="a divisor of 100", tolerance=1e-10),
        Case(make(torch.float32, T=1), part="a single key"),
        Case(make(torch.float32, T=3, d_k=3), part="as many keys as columns"),
        Case((asked, twins, 1), part=LARGE, note="each key twice, scores up to 9,600"),
        Case(near(1), part=LARGE, note="scores near 9,000"),
        Case(near(-1), part=LARGE, note="scores near -9,000"),
    ]


WEIGHTS = "torch.softmax(K @ q / divisor, dim=0)"
MOVED = "softmax_jacobian(p) @ K / divisor"
weights_jacobian = Exercise(
    "weights_jacobian",
    cases_weights_jacobian,
    axes=("weight", "entry of q"),
    forbidden=("autograd",),
    instead="write it with softmax_jacobian, the keys and the divisor.",
    weights={LARGE: 20},
).with_mistakes(f"""
    keys_left_out: the derivative with respect to the scores, not yet to the query
        softmax_jacobian(p) @ K / divisor -> softmax_jacobian(p) / divisor
        The chain rule has a second factor: the derivative of the scores with respect to q. What is it, and which shape does the result have?
    divisor_left_out: the divisor was used in the scores, but not in their derivative
        @ K / divisor -> @ K
        If the divisor doubles, by what factor does the derivative of a score with respect to q change?
    weights_of_undivided_scores: the weights taken from scores that were not divided
        K @ q / divisor -> K @ q
        Take the derivative at the weights that the head really uses, which come from the divided scores.
    nothing_divided: a divisor that is never used
        p = {WEIGHTS} -> divisor = 1
        |    p = {WEIGHTS}
        Your result doesn't depend on the divisor, but the formula uses it twice. Where?
    average_key_kept: the average key not subtracted
        softmax_jacobian(p) @ K -> p[:, None] * K
        If all scores rise by 1, no weight changes. What must the columns of the result add up to?
    width_for_the_divisor: divided by the square root of the width instead of by the divisor
        p = {WEIGHTS} -> divisor = len(q) ** 0.5
        |    p = {WEIGHTS}
        This function compares divisors, so it must use its argument `divisor`.
    others_forgotten: each weight depends only on its own score
        softmax_jacobian(p) @ K -> (p * (1 - p))[:, None] * K
        A change in q changes the scores of all keys, and the weights have one common denominator.
    root_of_the_divisor: divided by the square root of the divisor
        p = {WEIGHTS} -> divisor = divisor**0.5
        |    p = {WEIGHTS}
        The divisor is given, and may be a square root already. Divide by it as it is.
    finite_differences_EPS for EPS in 1e-3, 1e-4: finite differences instead of the exact derivative
        return {MOVED}
        -> steps = torch.eye(len(q), dtype=q.dtype) * EPS
        |    return torch.stack([(torch.softmax(K @ (q + e) / divisor, dim=0) - p) / EPS for e in steps], dim=1)
        Finite differences are only approximate. Use the formula of the exercise instead.
    exponentials_overflow: exponentials of the scores as they are
        {WEIGHTS} -> (K @ q / divisor).exp() / (K @ q / divisor).exp().sum()
        What is exp(9000) in float32, and what is inf / inf?
""")


def cases_head_scores(draw):
    def make(dtype, *lead, T=5, D=18, d_head=6):
        x = draw.normal(*lead, T, D, dtype=dtype)
        W_q = draw.normal(d_head, D, dtype=dtype, scale=D**-0.5)
        W_k = draw.normal(d_head, D, dtype=dtype, scale=D**-0.5)
        return x, W_q, W_k

    cases = [
        *tensor_cases(make, leads=((4,), (), (2, 3))),  # a batch first, because the buggy version needs three axes
        Case(make(torch.float64, 2, 2), part=LEADING, gradient=True),
        Case(make(torch.float32, 1), part=LEADING, note=BATCH_OF_ONE),
        Case(make(torch.float32, 3, T=4, D=7, d_head=10), note="a head wider than the model"),
        Case(make(torch.float32, 3, T=1), part="a single token"),
    ]
    return with_rounded_constants(cases)


SCALED = "return scaled_scores(q, k)"
RAW = "return q @ k.transpose(-2, -1)"
head_scores = Exercise("head_scores", cases_head_scores, axes=("query", "key")).with_mistakes(f"""
    scaled_by_model_width: still the bug, scaled by the width of the model
        {SCALED} -> {RAW} * x.shape[-1] ** -0.5
        Count the products that are summed in one score. Are there as many as entries in a row of x?
    bug_unchanged: still the bug, scaled by the width of the model, and made for three axes
        {SCALED} -> B, T, C = x.shape
        |    {RAW} * C**-0.5
        Which width is C? Count the products that are summed in one score.
    not_scaled: no scaling at all
        {SCALED} -> {RAW}
        The buggy line does scale, but by the wrong width. Replace the width instead of removing the division.
    divided_by_head_width: the head's width without its square root, or its root twice
        {SCALED} -> {RAW} / len(W_q)
        This is the right width. Do you divide by the variance, or by the standard deviation?
    scaled_by_number_of_tokens: scaled by the number of tokens
        {SCALED} -> {RAW} / x.shape[-2] ** 0.5
        Your scores change if the sentence becomes longer. Should they?
    softmax_applied: weights, not scores: softmax was applied as well
        {SCALED} -> return torch.softmax(scaled_scores(q, k), dim=-1)
        The name says scores, so stop one step earlier.
    keys_ask: queries and keys swapped
        scaled_scores(q, k) -> scaled_scores(k, q)
        The rows of the result belong to the queries, x @ W_q.T.
    one_projection: queries and keys from the same matrix
        x @ W_k.T -> x @ W_q.T
        Your scores are symmetric. Is one of the two weights never used?
    multiplied_by_root: multiplied by the square root instead of divided
        {SCALED} -> {RAW} * len(W_q) ** 0.5
        Check the sign of the exponent in the buggy line.
""")

exercises = [score_variance, scaled_scores, softmax_jacobian, max_gradient, head_scores, weights_jacobian]

quizzes = listed_quizzes("""
    quiz_1: c
        a: 64 is the variance, because there are 64 products of variance 1. The standard deviation is its square root.
        b: 32 is half the width. The standard deviation grows like the square root of the width, not like the width.
        c: 64 variances of 1 add up to 64, and the standard deviation is its square root, 8. So a score of 8 or -8 is
           not unusual before scaling.
        d: 1 is the standard deviation of a single product, or of the score after scaling.
    quiz_2: a
        a: The standard deviation after the division is 1/32, so all weights are nearly 1/T. And a change of the query
           reaches the scores divided by 1024. At first the head computes little more than the mean over all tokens.
        b: Softmax divides by the sum of the exponentials, so the weights add up to 1 whatever the divisor is.
        c: Softmax saturates when scores are too large. Divided by d_k they are too small, because their standard
           deviation is 1/32.
""")
