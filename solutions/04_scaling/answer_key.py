"""Answer key of lesson 4: why attention divides by the square root of the head width."""

import dataclasses
import math

import torch
import torch.nn.functional as F

from helpers.checking.vocabulary import GRADIENT, LEADING, Case, Exercise, Mistake, Quiz, tensor_cases


def with_rounded_constants(cases):
    """float64 cases that also accept constants rounded to float32, twice over, but no computation in float32."""
    return [dataclasses.replace(c, tolerance=2.5e-7) if c.args[0].dtype == torch.float64 else c for c in cases]


# ---------------------------------------------------------------- score_variance


def cases_score_variance(draw):
    def make(dtype, *lead):  # an own mean for every matrix: the variance of all is not the mean of the variances
        Q = draw.normal(*lead, 5, 6, dtype=dtype) + draw.normal(*lead, 1, 1, dtype=dtype)
        K = draw.normal(*lead, 7, 6, dtype=dtype) + draw.normal(*lead, 1, 1, dtype=dtype)
        return Q, K

    one = draw.normal(1, 4), draw.normal(1, 4)
    return [
        *tensor_cases(make),
        Case(make(torch.float64, 2, 3), part=LEADING, gradient=True),
        Case(one, part="a single score", note="one query and one key"),
    ]


def sample_variance(Q, K):
    return (Q @ K.transpose(-2, -1)).var()


def standard_deviation(Q, K):
    return (Q @ K.transpose(-2, -1)).std(correction=0)


def mean_of_squares(Q, K):
    return (Q @ K.transpose(-2, -1)).pow(2).mean()


def variance_of_each_row(Q, K):
    return (Q @ K.transpose(-2, -1)).var(dim=-1, correction=0).mean()


def variance_of_each_matrix(Q, K):
    return (Q @ K.transpose(-2, -1)).var(dim=(-2, -1), correction=0).mean()


def variance_after_scaling(Q, K):
    return (Q @ K.transpose(-2, -1) / Q.shape[-1] ** 0.5).var(correction=0)


def matching_pairs_only(Q, K):
    n = min(Q.shape[-2], K.shape[-2])
    return (Q[..., :n, :] * K[..., :n, :]).sum(dim=-1).var(correction=0)


def width_itself(Q, K):
    return torch.tensor(float(Q.shape[-1]), dtype=Q.dtype)


def variance_from_deviations(Q, K):
    scores = Q @ K.transpose(-2, -1)
    return ((scores - scores.mean()) ** 2).mean()


def variance_from_moments(Q, K):
    scores = torch.einsum("...id,...jd->...ij", Q, K)
    return (scores**2).mean() - scores.mean() ** 2


def variance_from_loops(Q, K):
    scores = []
    for q_rows, k_rows in zip(Q.reshape(-1, *Q.shape[-2:]), K.reshape(-1, *K.shape[-2:]), strict=True):
        for q in q_rows:
            for k in k_rows:
                scores.append(torch.dot(q, k))
    mean = sum(scores) / len(scores)
    return sum((s - mean) ** 2 for s in scores) / len(scores)


def variance_from_broadcasting(Q, K):
    scores = (Q.unsqueeze(-2) * K.unsqueeze(-3)).sum(-1).flatten()
    return torch.var(scores, unbiased=False)


def variance_from_standard_deviation(Q, K):
    return torch.std(torch.matmul(Q, K.mT), correction=0) ** 2


score_variance = Exercise(
    "score_variance",
    cases_score_variance,
    mistakes=[
        Mistake(
            "sample_variance",
            "divided by the number of scores minus one",
            "That estimates the spread of a population you have not seen. Here the scores are the population. "
            "Which argument of the library call decides this?",
            sample_variance,
        ),
        Mistake(
            "standard_deviation",
            "the standard deviation, not the variance",
            "In which unit is your number: that of a score, or that of a score times a score?",
            standard_deviation,
        ),
        Mistake(
            "mean_of_squares",
            "the mean of the squares, measured from 0",
            "Spread is measured from where the scores lie on average. Is that 0 here?",
            mean_of_squares,
        ),
        Mistake(
            "variance_of_each_row",
            "a variance for each query, averaged",
            "Two queries whose rows lie at different heights: does your number notice?",
            variance_of_each_row,
        ),
        Mistake(
            "variance_of_each_matrix",
            "a variance for each member of the batch, averaged",
            "All scores of the batch are one heap. How many means are subtracted in yours?",
            variance_of_each_matrix,
        ),
        Mistake(
            "variance_after_scaling",
            "the scores were scaled before they were measured",
            "This exercise measures the illness. The cure comes in the next one.",
            variance_after_scaling,
        ),
        Mistake(
            "matching_pairs_only",
            "only query i with key i",
            "How many scores does a matrix of 5 queries and 7 keys hold, and how many did you use?",
            matching_pairs_only,
        ),
        Mistake(
            "width_itself",
            "the width d_k, which theory promises for other numbers",
            "Theory speaks of independent entries of variance 1. Measure these scores.",
            width_itself,
        ),
    ],
    alternatives=[
        variance_from_deviations,
        variance_from_moments,
        variance_from_loops,
        variance_from_broadcasting,
        variance_from_standard_deviation,
    ],
)

# ---------------------------------------------------------------- scaled_scores


def cases_scaled_scores(draw):
    def make(dtype, *lead):
        return draw.normal(*lead, 5, 6, dtype=dtype), draw.normal(*lead, 7, 6, dtype=dtype)

    wider = draw.normal(4, 10), draw.normal(3, 10)
    narrow = draw.normal(3, 1), draw.normal(2, 1)
    large = draw.normal(4, 6, dtype=torch.float64, scale=100), draw.normal(5, 6, dtype=torch.float64, scale=100)
    cases = [
        *tensor_cases(make),
        Case(make(torch.float64, 2, 3), part=LEADING, gradient=True),
        Case(wider, note="a head of width 10"),
        Case(large, part="large scores", note="scores in the ten thousands"),
        Case(narrow, part="d_k = 1"),
    ]
    return with_rounded_constants(cases)


def divided_by_d_k(Q, K):
    return Q @ K.transpose(-2, -1) / Q.shape[-1]


def not_scaled(Q, K):
    return Q @ K.transpose(-2, -1)


def multiplied_by_root(Q, K):
    return Q @ K.transpose(-2, -1) * Q.shape[-1] ** 0.5


def divided_by_root_of_keys(Q, K):
    return Q @ K.transpose(-2, -1) / K.shape[-2] ** 0.5


def divided_by_root_of_queries(Q, K):
    return Q @ K.transpose(-2, -1) / Q.shape[-2] ** 0.5


def width_read_from_axis_1(Q, K):
    return Q @ K.transpose(-2, -1) / Q.shape[1] ** 0.5


def root_cut_to_an_integer(Q, K):
    return Q @ K.transpose(-2, -1) / int(Q.shape[-1] ** 0.5)


def softmax_applied(Q, K):
    return torch.softmax(Q @ K.transpose(-2, -1) / Q.shape[-1] ** 0.5, dim=-1)


def keys_and_queries_swapped(Q, K):
    return K @ Q.transpose(-2, -1) / Q.shape[-1] ** 0.5


def divided_by_lengths(Q, K):
    return F.normalize(Q, dim=-1) @ F.normalize(K, dim=-1).transpose(-2, -1)


def divided_by_measured_spread(Q, K):
    scores = Q @ K.transpose(-2, -1)
    return scores / scores.std()


def scores_by_einsum(Q, K):
    return torch.einsum("...id,...jd->...ij", Q, K) * Q.size(-1) ** -0.5


def scores_queries_first(Q, K):
    return torch.matmul(Q / math.sqrt(K.shape[-1]), K.mT)


def scores_both_by_fourth_root(Q, K):
    c = Q.shape[-1] ** 0.25
    return (Q / c) @ (K / c).transpose(-1, -2)


def scores_by_broadcasting(Q, K):
    return (Q[..., :, None, :] * K[..., None, :, :]).sum(dim=-1) / torch.tensor(Q.shape[-1]).sqrt()


def scores_by_loops(Q, K):
    d_k = Q.shape[-1]
    lead = Q.shape[:-2]
    blocks = []
    for q_rows, k_rows in zip(Q.reshape(-1, *Q.shape[-2:]), K.reshape(-1, *K.shape[-2:]), strict=True):
        rows = [torch.stack([torch.dot(q, k) / math.sqrt(d_k) for k in k_rows]) for q in q_rows]
        blocks.append(torch.stack(rows))
    return torch.stack(blocks).reshape(*lead, Q.shape[-2], K.shape[-2])


scaled_scores = Exercise(
    "scaled_scores",
    cases_scaled_scores,
    axes=("query", "key"),
    mistakes=[
        Mistake(
            "divided_by_d_k",
            "divided by the width instead of its square root",
            "The dot product's variance is d_k. What is its standard deviation?",
            divided_by_d_k,
        ),
        Mistake(
            "not_scaled",
            "the plain dot products",
            "Their spread still grows with the width. What brings it back to 1?",
            not_scaled,
        ),
        Mistake(
            "multiplied_by_root",
            "multiplied where it should be divided",
            "Do wider heads need their scores made larger, or smaller?",
            multiplied_by_root,
        ),
        Mistake(
            "divided_by_root_of_keys",
            "divided by the root of the number of keys",
            "A score is a sum over something. Over keys, or over the entries of two vectors?",
            divided_by_root_of_keys,
        ),
        Mistake(
            "divided_by_root_of_queries",
            "divided by the root of the number of queries",
            "How many products are added up in one score? Which axis of Q holds them?",
            divided_by_root_of_queries,
        ),
        Mistake(
            "width_read_from_axis_1",
            "right for a single matrix; with leading dimensions the width is read from the wrong axis",
            "Which axis is the width in (2, 3, 5, 6), and how does one count from the end?",
            width_read_from_axis_1,
        ),
        Mistake(
            "root_cut_to_an_integer",
            "the square root was cut to an integer",
            "What is the square root of 6 in your code?",
            root_cut_to_an_integer,
        ),
        Mistake(
            "softmax_applied",
            "weights, not scores: softmax was applied as well",
            "This exercise ends one step earlier. Masks (lesson 5) go in between.",
            softmax_applied,
        ),
        Mistake(
            "keys_and_queries_swapped",
            "keys and queries swapped",
            "Each query should own a row. Who owns the rows in yours?",
            keys_and_queries_swapped,
        ),
        Mistake(
            "divided_by_lengths",
            "cosine similarity: every vector was divided by its own length",
            "One divisor serves all pairs, and it knows nothing of the numbers in Q and K.",
            divided_by_lengths,
        ),
        Mistake(
            "divided_by_measured_spread",
            "divided by the spread measured on these scores",
            "Then the score of one pair depends on all others. The divisor should depend on the shape alone.",
            divided_by_measured_spread,
        ),
    ],
    alternatives=[
        scores_by_einsum,
        scores_queries_first,
        scores_both_by_fourth_root,
        scores_by_broadcasting,
        scores_by_loops,
    ],
)

# ---------------------------------------------------------------- softmax_jacobian


def cases_softmax_jacobian(draw):
    def make(dtype, *lead):
        return (draw.probabilities(*lead, 5, dtype=dtype),)

    corners = torch.tensor([[0.0, 1.0, 0.0, 0.0], [0.5, 0.0, 0.5, 0.0]])
    scores = draw.normal(5, dtype=torch.float64)
    batch = draw.normal(2, 3, 5, dtype=torch.float64)
    return [
        *tensor_cases(make, gradient=False),
        Case((corners,), part="probabilities of 0 and 1"),
        Case((torch.ones(1),), part="probabilities of 0 and 1", note="one outcome, which is certain"),
        # Forms that are equal on probability vectors differ beside them, so the gradient is taken at the scores.
        Case((scores,), part=GRADIENT, gradient=True, via="at_softmax", note="p is the softmax of scores"),
        Case((batch,), part=LEADING, gradient=True, via="at_softmax", note="p is the softmax of scores"),
    ]


def jacobian_diagonal_only(p):
    return torch.diag_embed(p * (1 - p))


def jacobian_without_delta(p):
    return p.unsqueeze(-1) * (1 - p).unsqueeze(-2)


def jacobian_sign_flipped(p):
    return p.unsqueeze(-1) * p.unsqueeze(-2) - torch.diag_embed(p)


def jacobian_plus_outer(p):
    return torch.diag_embed(p) + p.unsqueeze(-1) * p.unsqueeze(-2)


def jacobian_inner_product(p):
    return torch.diag_embed(p) - (p * p).sum(-1, keepdim=True).unsqueeze(-1)


def jacobian_of_log_softmax(p):
    return torch.eye(p.shape[-1], dtype=p.dtype) - p.unsqueeze(-2)


def jacobian_softmax_again(p):
    p = torch.softmax(p, dim=-1)
    return torch.diag_embed(p) - p.unsqueeze(-1) * p.unsqueeze(-2)


def jacobian_slopes_in_a_row(p):
    return p * (1 - p)


def jacobian_identity_minus_outer(p):
    return torch.eye(p.shape[-1], dtype=p.dtype) - p.unsqueeze(-1) * p.unsqueeze(-2)


def jacobian_with_eye(p):
    eye = torch.eye(p.shape[-1], dtype=p.dtype, device=p.device)
    return p[..., :, None] * (eye - p[..., None, :])


def jacobian_by_einsum(p):
    return torch.diag_embed(p) - torch.einsum("...i,...j->...ij", p, p)


def jacobian_by_loops(p):
    n = p.shape[-1]
    rows = []
    for i in range(n):
        row = []
        for j in range(n):
            row.append(p[..., i] * (1 - p[..., i]) if i == j else -p[..., i] * p[..., j])
        rows.append(torch.stack(row, dim=-1))
    return torch.stack(rows, dim=-2)


def jacobian_rows_sum_to_zero(p):
    outer = p.unsqueeze(-1) @ p.unsqueeze(-2)
    off = outer * (1 - torch.eye(p.shape[-1], dtype=p.dtype))
    return torch.diag_embed(off.sum(-1)) - off


def jacobian_by_autograd(p):
    def soft(s):
        return torch.softmax(s, dim=-1)

    flat = p.reshape(-1, p.shape[-1])
    blocks = [torch.func.jacrev(soft)(row.log()) for row in flat]
    return torch.stack(blocks).reshape(*p.shape, p.shape[-1])


softmax_jacobian = Exercise(
    "softmax_jacobian",
    cases_softmax_jacobian,
    axes=("probability i", "score j"),
    mistakes=[
        Mistake(
            "diagonal_only",
            "each probability answers only to its own score",
            "The probabilities add up to 1. When one score rises, what must the other probabilities do?",
            jacobian_diagonal_only,
        ),
        Mistake(
            "without_delta",
            "the rule for the diagonal, used everywhere",
            "Can p_i grow when another token's score grows? Look at the sign beside the diagonal.",
            jacobian_without_delta,
        ),
        Mistake(
            "sign_flipped",
            "the right numbers with the opposite sign",
            "If score i rises, does p_i rise or fall?",
            jacobian_sign_flipped,
        ),
        Mistake(
            "plus_outer",
            "added where it should be subtracted",
            "Add up a row of yours. Shifting all scores by one changes nothing: what should the sum be?",
            jacobian_plus_outer,
        ),
        Mistake(
            "inner_product",
            "one number (p times p, summed) subtracted from every entry",
            "A column times a row is a table; a row times a column is a number. Which one is p pᵀ?",
            jacobian_inner_product,
        ),
        Mistake(
            "log_softmax_jacobian",
            "the Jacobian of log p",
            "How much can a probability of nearly 0 still move? Which factor would say that?",
            jacobian_of_log_softmax,
        ),
        Mistake(
            "softmax_again",
            "softmax applied to p, which is a probability vector already",
            "The argument is what softmax returned, not what went into it.",
            jacobian_softmax_again,
        ),
        Mistake(
            "slopes_in_a_row",
            "the diagonal as a vector",
            "N probabilities, each with a slope for each of N scores: how many numbers is that?",
            jacobian_slopes_in_a_row,
        ),
        Mistake(
            "identity_minus_outer",
            "the identity in place of diag(p)",
            "If p_i is 0.01, can its own slope be close to 1?",
            jacobian_identity_minus_outer,
        ),
    ],
    alternatives=[
        jacobian_with_eye,
        jacobian_by_einsum,
        jacobian_by_loops,
        jacobian_rows_sum_to_zero,
        jacobian_by_autograd,
    ],
)

# ---------------------------------------------------------------- max_gradient

LARGE = "scores up to ±1e4"


def cases_max_gradient(draw):
    def make(dtype, *lead):
        return (draw.normal(*lead, 6, dtype=dtype),)

    def far(sign):  # an offset of ten thousand: judged in float64, where every correct form agrees
        return draw.uniform(4, 6, low=-2.0, high=2.0, dtype=torch.float64) + sign * 9998.0

    apart = torch.linspace(-1e4, 1e4, 5)[draw.permutation(5)]
    tie = torch.tensor([[1e4, -1e4, 1e4], [-1e4, -1e4, -1e4]])
    return [
        *tensor_cases(make),
        Case(make(torch.float64, 2, 3), part=LEADING, gradient=True),
        Case((draw.normal(3, 6, scale=3.0),), part=LEADING),
        Case((apart,), part=LARGE, note="scores from -10000 to 10000"),
        Case((tie,), part=LARGE, note="equal scores of 10000 and of -10000"),
        Case((far(1),), part=LARGE, note="scores near 10000"),
        Case((far(-1),), part=LARGE, note="scores near -10000"),
        Case((draw.normal(2, 1),), part="a single score", note="one key, so nothing to choose"),
    ]


def largest_over_the_batch(scores):
    p = torch.softmax(scores, dim=-1)
    return (p * (1 - p)).max()


def exponentials_overflow(scores):
    e = scores.exp()
    p = e / e.sum(dim=-1, keepdim=True)
    return (p * (1 - p)).amax(dim=-1)


def scores_clamped(scores):
    e = scores.clamp(-80, 80).exp()
    p = e / e.sum(dim=-1, keepdim=True)
    return (p * (1 - p)).amax(dim=-1)


def largest_probability(scores):
    return torch.softmax(scores, dim=-1).amax(dim=-1)


def mean_slope(scores):
    p = torch.softmax(scores, dim=-1)
    return (p * (1 - p)).mean(dim=-1)


def summed_slopes(scores):
    p = torch.softmax(scores, dim=-1)
    return (p * (1 - p)).sum(dim=-1)


def smallest_slope(scores):
    p = torch.softmax(scores, dim=-1)
    return (p * (1 - p)).amin(dim=-1)


def largest_of_each_row(scores):
    p = torch.softmax(scores, dim=-1)
    return (torch.diag_embed(p) - p.unsqueeze(-1) * p.unsqueeze(-2)).abs().amax(dim=-1)


def smallest_signed_entry(scores):
    p = torch.softmax(scores, dim=-1)
    return (torch.diag_embed(p) - p.unsqueeze(-1) * p.unsqueeze(-2)).amin(dim=(-2, -1))


def scores_taken_for_probabilities(scores):
    return (torch.diag_embed(scores) - scores.unsqueeze(-1) * scores.unsqueeze(-2)).abs().amax(dim=(-2, -1))


def softmax_over_first_axis(scores):
    p = torch.softmax(scores, dim=0)
    return (p * (1 - p)).amax(dim=-1)


def sigmoid_slope(scores):
    p = torch.sigmoid(scores)
    return (p * (1 - p)).amax(dim=-1)


def gradient_from_jacobian(scores):
    p = torch.softmax(scores, dim=-1)
    J = torch.diag_embed(p) - p.unsqueeze(-1) * p.unsqueeze(-2)
    return J.abs().flatten(-2).max(dim=-1).values


def gradient_from_largest_probability(scores):
    top = F.softmax(scores, dim=-1).max(dim=-1).values
    return top - top**2


def gradient_from_shifted_exponentials(scores):
    e = torch.exp(scores - scores.amax(dim=-1, keepdim=True))
    p = e / e.sum(dim=-1, keepdim=True)
    return (p * (1 - p)).amax(-1)


def gradient_from_log_softmax(scores):
    p = torch.log_softmax(scores, dim=-1).exp()
    return torch.amax(p - p * p, dim=-1)


def gradient_from_loops(scores):
    rows = []
    for row in scores.reshape(-1, scores.shape[-1]):
        p = torch.softmax(row, dim=0)
        J = torch.diag(p) - torch.outer(p, p)
        rows.append(J.abs().max())
    return torch.stack(rows).reshape(scores.shape[:-1])


max_gradient = Exercise(
    "max_gradient",
    cases_max_gradient,
    mistakes=[
        Mistake(
            "largest_over_the_batch",
            "one number for the whole batch",
            "Each vector of scores has its own Jacobian. How many answers does a (2, 3, 6) input ask for?",
            largest_over_the_batch,
        ),
        Mistake(
            "exponentials_overflow",
            "exponentials of the scores as they are",
            "What is exp(10000) in float32, and what is inf / inf? Shifting all scores changes nothing.",
            exponentials_overflow,
        ),
        Mistake(
            "scores_clamped",
            "scores cut to a range that exp can bear",
            "After your cut, 9999 and 9997 are the same score. Should they be?",
            scores_clamped,
        ),
        Mistake(
            "largest_probability",
            "the largest probability, not the largest slope",
            "A token with probability 1: how much does its probability still move?",
            largest_probability,
        ),
        Mistake(
            "mean_slope", "the mean of the diagonal", "The exercise asks for the entry that stands out.", mean_slope
        ),
        Mistake(
            "summed_slopes",
            "the sum of the diagonal",
            "No entry of a softmax Jacobian is above 1/4. Is yours?",
            summed_slopes,
        ),
        Mistake("smallest_slope", "the smallest entry of the diagonal", "Which end did you take?", smallest_slope),
        Mistake(
            "largest_of_each_row",
            "the largest entry of each row of the Jacobian",
            "A Jacobian has two axes. Over how many of them did you take the maximum?",
            largest_of_each_row,
        ),
        Mistake(
            "smallest_signed_entry",
            "the most negative entry",
            "Largest in absolute value: which entries of the Jacobian are positive?",
            smallest_signed_entry,
        ),
        Mistake(
            "scores_taken_for_probabilities",
            "the Jacobian's formula with scores in place of probabilities",
            "The formula wants what softmax returns. What did you put into it?",
            scores_taken_for_probabilities,
        ),
        Mistake(
            "softmax_over_first_axis",
            "right for one vector; with leading dimensions softmax runs over the first axis",
            "Which axis holds the scores that compete with each other?",
            softmax_over_first_axis,
        ),
        Mistake(
            "sigmoid_slope",
            "the slope of a sigmoid",
            "A sigmoid looks at one score. Softmax lets all of them compete.",
            sigmoid_slope,
        ),
    ],
    alternatives=[
        gradient_from_jacobian,
        gradient_from_largest_probability,
        gradient_from_shifted_exponentials,
        gradient_from_log_softmax,
        gradient_from_loops,
    ],
)

# ---------------------------------------------------------------- head_scores


def cases_head_scores(draw):
    def make(dtype, *lead, T=5, D=18, d_head=6):
        x = draw.normal(*lead, T, D, dtype=dtype)
        W_q = draw.normal(d_head, D, dtype=dtype, scale=D**-0.5)
        W_k = draw.normal(d_head, D, dtype=dtype, scale=D**-0.5)
        return x, W_q, W_k

    cases = [
        *tensor_cases(make, leads=((4,), (), (2, 4))),  # a batch first: the published version unpacks three axes
        Case(make(torch.float64, 2, 4), part=LEADING, gradient=True),
        Case(make(torch.float32, 3, T=4, D=7, d_head=10), note="a head wider than the model"),
        Case(make(torch.float32, 3, d_head=1), part="a head of width 1"),
        Case(make(torch.float32, 3, T=1), part="a single token"),
    ]
    return with_rounded_constants(cases)


def scaled_by_model_width(x, W_q, W_k):
    q, k = x @ W_q.T, x @ W_k.T
    return q @ k.transpose(-2, -1) * x.shape[-1] ** -0.5


def head_not_scaled(x, W_q, W_k):
    return (x @ W_q.T) @ (x @ W_k.T).transpose(-2, -1)


def head_divided_by_width(x, W_q, W_k):
    return (x @ W_q.T) @ (x @ W_k.T).transpose(-2, -1) / W_q.shape[0]


def scaled_by_number_of_tokens(x, W_q, W_k):
    return (x @ W_q.T) @ (x @ W_k.T).transpose(-2, -1) / x.shape[-2] ** 0.5


def scaled_by_number_of_heads(x, W_q, W_k):
    heads = x.shape[-1] / W_q.shape[0]
    return (x @ W_q.T) @ (x @ W_k.T).transpose(-2, -1) / heads**0.5


def head_softmax_applied(x, W_q, W_k):
    scores = (x @ W_q.T) @ (x @ W_k.T).transpose(-2, -1) / W_q.shape[0] ** 0.5
    return torch.softmax(scores, dim=-1)


def head_keys_ask(x, W_q, W_k):
    return (x @ W_k.T) @ (x @ W_q.T).transpose(-2, -1) / W_q.shape[0] ** 0.5


def head_one_projection(x, W_q, W_k):
    q = x @ W_q.T
    return q @ q.transpose(-2, -1) / W_q.shape[0] ** 0.5


def head_multiplied(x, W_q, W_k):
    return (x @ W_q.T) @ (x @ W_k.T).transpose(-2, -1) * W_q.shape[0] ** 0.5


def head_future_hidden(x, W_q, W_k):
    scores = (x @ W_q.T) @ (x @ W_k.T).transpose(-2, -1) / W_q.shape[0] ** 0.5
    tril = torch.tril(torch.ones(scores.shape[-2:], dtype=torch.bool))
    return scores.masked_fill(~tril, float("-inf"))


def head_by_linear(x, W_q, W_k):
    q, k = F.linear(x, W_q), F.linear(x, W_k)
    return q @ k.mT / math.sqrt(k.shape[-1])


def head_by_einsum(x, W_q, W_k):
    q = torch.einsum("...td,hd->...th", x, W_q)
    k = torch.einsum("...td,hd->...th", x, W_k)
    return torch.einsum("...ih,...jh->...ij", q, k) * W_q.size(0) ** -0.5


def head_by_one_form(x, W_q, W_k):
    M = W_q.T @ W_k / W_k.shape[0] ** 0.5
    return x @ M @ x.transpose(-2, -1)


def head_queries_first(x, W_q, W_k):
    q = x.matmul(W_q.t()).div(len(W_q) ** 0.5)
    return q.matmul(x.matmul(W_k.t()).transpose(-1, -2))


def head_by_loops(x, W_q, W_k):
    d_head = W_q.shape[0]
    blocks = []
    for rows in x.reshape(-1, *x.shape[-2:]):
        q, k = [W_q @ row for row in rows], [W_k @ row for row in rows]
        blocks.append(torch.stack([torch.stack([(a * b).sum() / d_head**0.5 for b in k]) for a in q]))
    return torch.stack(blocks).reshape(*x.shape[:-1], x.shape[-2])


head_scores = Exercise(
    "head_scores",
    cases_head_scores,
    axes=("query", "key"),
    mistakes=[
        Mistake(
            "scaled_by_model_width",
            "the published bug: scaled by the width of the model",
            "Count the products that are added up in one score. Are there as many as entries in a row of x?",
            scaled_by_model_width,
        ),
        Mistake(
            "not_scaled",
            "no scaling at all",
            "The published line does scale, by the wrong number. Keep the habit, change the number.",
            head_not_scaled,
        ),
        Mistake(
            "divided_by_head_width",
            "the head's width without its square root",
            "The right number, but is it the variance that is divided out, or the standard deviation?",
            head_divided_by_width,
        ),
        Mistake(
            "scaled_by_number_of_tokens",
            "scaled by the number of tokens",
            "Would one score change if the sentence were longer? Should it?",
            scaled_by_number_of_tokens,
        ),
        Mistake(
            "scaled_by_number_of_heads",
            "scaled by the number of heads, model width over head width",
            "How many entries do q and k have? That is the only count that matters here.",
            scaled_by_number_of_heads,
        ),
        Mistake(
            "softmax_applied",
            "weights, not scores: softmax was applied as well",
            "The name says scores, so stop one step earlier.",
            head_softmax_applied,
        ),
        Mistake(
            "keys_ask",
            "queries made with the key's weights, and the other way round",
            "Who owns the rows of the result, and which matrix made them?",
            head_keys_ask,
        ),
        Mistake(
            "one_projection",
            "queries and keys from the same matrix",
            "Your scores are symmetric. Is one of the two weights never used?",
            head_one_projection,
        ),
        Mistake(
            "multiplied_by_root",
            "multiplied where it should be divided",
            "Look at the sign of the exponent in the published line.",
            head_multiplied,
        ),
        Mistake(
            "future_hidden",
            "a causal mask was added",
            "Masks come in lesson 5. Here every token may see every other.",
            head_future_hidden,
        ),
    ],
    alternatives=[head_by_linear, head_by_einsum, head_by_one_form, head_queries_first, head_by_loops],
)

exercises = [score_variance, scaled_scores, softmax_jacobian, max_gradient, head_scores]

# ---------------------------------------------------------------- quizzes

quizzes = [
    Quiz(
        "quiz_1",
        "c",
        {
            "a": "64 is the variance: 64 products, each of variance 1. A standard deviation is the root of it.",
            "b": "32 would be half the width. Spread does not grow like that: take the root of the variance.",
            "c": "64 variances of 1 add up to 64, and the standard deviation is its root, 8. "
            "So a score of 8 or -8 is nothing unusual before scaling.",
            "d": "1 is the spread of a single product, or of the score after scaling.",
        },
    ),
    Quiz(
        "quiz_2",
        "b",
        {
            "a": "Softmax divides by the sum of the exponentials, so weights add up to 1 however large the scores are.",
            "b": "One weight is close to 1, the others close to 0, every p(1 - p) is close to 0, and hardly any "
            "gradient passes back to the queries and keys.",
            "c": "Dividing scores does nothing to the lengths of the weight matrices. What it changes is the spread "
            "of the scores.",
        },
    ),
    Quiz(
        "quiz_3",
        "d",
        {
            "a": "4 is √16. It is right when entries have variance 1. These have standard deviation 2.",
            "b": "2 is the standard deviation of one entry. A score is a sum of 16 products of two such entries.",
            "c": "8 accounts for one of the two vectors. Both q and k have entries of standard deviation 2.",
            "d": "One product has variance 4 · 4 = 16, sixteen of them have 256, and its root is 16. "
            "√d_k is right for entries of variance 1: the formula assumes them, initialization should supply them.",
        },
    ),
]
