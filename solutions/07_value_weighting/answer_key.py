"""Cases and known mistakes of lesson 7: weighted values, attention, one head, and what can be built of them."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from helpers.checking.vocabulary import DTYPE, GRADIENT, LEADING, Case, Exercise, Mistake, Quiz, tensor_cases

MASK = "a mask"
BROADCAST = "masks that broadcast"
NOTHING = "rows with nothing to see"
LARGE = "scores up to ±10⁴"
MEMORY = "memory"


def width(dtype):
    """d_k of a case: 4 in float64, as its root is exact even where it was rounded to float32."""
    return 6 if dtype == torch.float32 else 4


# ---------------------------------------------------------------- weighted_values


def cases_weighted_values(draw):
    def make(dtype, *lead):
        return draw.probabilities(*lead, 5, 7, dtype=dtype), draw.normal(*lead, 7, 3, dtype=dtype)

    after_dropout = draw.probabilities(2, 4, 6, dtype=torch.float32) * draw.mask(2, 4, 6) / 0.6
    blind = draw.probabilities(4, 6, dtype=torch.float32)
    blind[1] = 0.0
    return [
        *tensor_cases(make),
        Case(make(torch.float64, 2, 3), part=LEADING, gradient=True),
        Case((after_dropout, draw.normal(2, 6, 5)), part="weights that do not sum to 1"),
        Case((blind, draw.normal(6, 3)), part=NOTHING),
        Case((torch.ones(5, 1), draw.normal(1, 3)), part="a single value"),
    ]


def softmax_once_more(weights, V):
    return torch.softmax(weights, dim=-1) @ V


def divided_by_number_of_keys(weights, V):
    return weights @ V / V.shape[-2]


def heaviest_value_only(weights, V):
    best = weights.argmax(dim=-1)
    return torch.take_along_dim(V, best.unsqueeze(-1), dim=-2)


def rows_divided_by_their_sum(weights, V):
    return weights / weights.sum(dim=-1, keepdim=True).clamp_min(1e-12) @ V


def plain_average(weights, V):
    return V.mean(dim=-2, keepdim=True).expand(*weights.shape[:-1], V.shape[-1])


def not_summed(weights, V):
    return weights.unsqueeze(-1) * V.unsqueeze(-3)


def summed_over_queries(weights, V):
    return (weights.unsqueeze(-1) * V.unsqueeze(-3)).sum(dim=-3)


def output_transposed(weights, V):
    return (weights @ V).transpose(-2, -1)


def values_by_einsum(weights, V):
    return torch.einsum("...qk,...kd->...qd", weights, V)


def values_by_broadcasting(weights, V):
    return (weights[..., :, :, None] * V[..., None, :, :]).sum(dim=-2)


def values_from_the_right(weights, V):
    return (V.transpose(-2, -1) @ weights.transpose(-2, -1)).transpose(-2, -1)


def values_added_up(weights, V):
    total = torch.zeros(*weights.shape[:-1], V.shape[-1], dtype=V.dtype)
    for j in range(V.shape[-2]):
        total = total + weights[..., j : j + 1] * V[..., j : j + 1, :]
    return total


def values_by_loops(weights, V):
    blocks = []
    for w_rows, v_rows in zip(weights.reshape(-1, *weights.shape[-2:]), V.reshape(-1, *V.shape[-2:]), strict=True):
        blocks.append(torch.stack([sum(w * v for w, v in zip(row, v_rows, strict=True)) for row in w_rows]))
    return torch.stack(blocks).reshape(*weights.shape[:-1], V.shape[-1])


weighted_values = Exercise(
    "weighted_values",
    cases_weighted_values,
    axes=("query", "channel"),
    mistakes=[
        Mistake(
            "softmax_once_more",
            "softmax was applied to the weights once more",
            "The weights are shares already. What does a second softmax make of a share of 0?",
            softmax_once_more,
        ),
        Mistake(
            "divided_by_number_of_keys",
            "divided by the number of keys as well",
            "The weights of a row add up to 1. Who has done the dividing already?",
            divided_by_number_of_keys,
        ),
        Mistake(
            "heaviest_value_only",
            "the value with the largest weight, alone",
            "That was select, in lesson 3. What do the other weights do here?",
            heaviest_value_only,
        ),
        Mistake(
            "rows_divided_by_their_sum",
            "the weights were made to add up to 1 first",
            "Take the weights as they come: after dropout they may add up to more or less.",
            rows_divided_by_their_sum,
        ),
        Mistake(
            "plain_average",
            "the plain average of all values",
            "Every query gets the same from you. Where do its weights come in?",
            plain_average,
        ),
        Mistake(
            "not_summed",
            "the values were weighted but not added up",
            "One row for each query: over which axis do the weighted values still have to be added?",
            not_summed,
        ),
        Mistake(
            "summed_over_queries",
            "summed over the queries instead of the keys",
            "Which two things meet in one product: a weight and a value of the same what?",
            summed_over_queries,
        ),
        Mistake(
            "transposed",
            "rows and columns swapped",
            "A row for each query, a column for each channel of the values.",
            output_transposed,
        ),
    ],
    alternatives=[values_by_einsum, values_by_broadcasting, values_from_the_right, values_added_up, values_by_loops],
)


# ---------------------------------------------------------------- attention


def one_hot_scores(draw, dtype, queries=5, keys=7):
    """Q, K of width 4 whose scores lie up to ±9600 and 3200 apart: every form gives weights of exactly 0 and 1."""
    Q, K = torch.zeros(queries, 4, dtype=dtype), torch.zeros(keys, 4, dtype=dtype)
    Q[:, 0] = torch.where(draw.integers(0, 2, (queries,)) == 1, 50.0, -50.0)
    K[:, 0] = (draw.permutation(keys) - (keys - 1) / 2) * 128
    return Q, K


def far_scores(draw, *lead, queries=5, keys=7):
    """float64 Q, K of width 4 with scores anywhere in ±9800."""
    Q = draw.uniform(*lead, queries, 4, low=-70, high=70, dtype=torch.float64)
    return Q, draw.uniform(*lead, keys, 4, low=-70, high=70, dtype=torch.float64)


def cases_attention(draw):
    def make(dtype, *lead, scale=1.0):
        d_k = width(dtype)
        Q = draw.normal(*lead, 5, d_k, dtype=dtype, scale=scale)
        return Q, draw.normal(*lead, 7, d_k, dtype=dtype), draw.normal(*lead, 7, 3, dtype=dtype)

    def blind():
        mask = draw.mask(5, 7)
        mask[draw.integer(1, 4)] = False
        return mask

    def hidden_peak(height=100.0):
        """Blocked scores near +1e4 (for height 100), visible ones near -1e4; Q and K of width 4."""
        mask = draw.mask(7, keep=0.5)
        mask[draw.integer(0, 3)], mask[draw.integer(3, 7)] = False, True
        Q, K = draw.normal(5, 4, dtype=torch.float64), draw.normal(7, 4, dtype=torch.float64)
        Q[:, 0] = 199.0
        K[:, 0] = torch.where(mask, -height, height)
        return Q, K, draw.normal(7, 3, dtype=torch.float64), mask.expand(5, 7).clone()

    pairs = torch.tensor([True, False])[:, None, None]
    float64 = torch.float64
    return [
        *tensor_cases(make),
        Case(make(float64, 2, 3, scale=8.0), part=DTYPE),
        Case(make(float64, 2, 3), part=LEADING, gradient=True),
        Case((*make(torch.float32), draw.mask(5, 7)), part=MASK),
        Case(make(torch.float32), {"mask": draw.mask(5, 7, keep=0.4)}, part=MASK),
        Case((*make(torch.float32), torch.ones(5, 7, dtype=torch.bool)), part=MASK, note="a mask that blocks nothing"),
        Case((*make(float64), draw.mask(5, 7)), part=MASK, gradient=True),
        Case((*make(torch.float32, 3), draw.mask(5, 7)), part=BROADCAST),
        Case((*make(torch.float32, 3), draw.mask(3, 1, 7)), part=BROADCAST),
        Case((*make(torch.float32, 2, 3), draw.mask(2, 1, 1, 7)), part=BROADCAST),
        Case((*make(torch.float32, 2, 3), draw.mask(2, 3, 5, 7)), part=BROADCAST),
        Case((*make(float64, 2), draw.mask(7)), part=BROADCAST, gradient=True),
        Case((*make(torch.float32), blind()), part=NOTHING),
        Case((*make(torch.float32, 2, 3), blind()), part=NOTHING),
        Case((*make(float64, 2), blind()), part=NOTHING, gradient=True),
        Case((*make(float64), torch.zeros(5, 7, dtype=torch.bool)), part=NOTHING, gradient=True),
        Case((*make(torch.float32, 2), pairs), part=NOTHING),
        Case((*far_scores(draw), draw.normal(7, 3, dtype=float64)), part=LARGE),
        Case((*far_scores(draw, 2), draw.normal(2, 7, 3, dtype=float64), draw.mask(5, 7)), part=LARGE),
        Case((*one_hot_scores(draw, torch.float32), draw.normal(7, 3)), part=LARGE),
        Case(hidden_peak(), part=LARGE, gradient=True),
        Case(hidden_peak(30.0), part=LARGE),  # less than 10,000 apart
        Case((draw.normal(5, 1), draw.normal(7, 1), draw.normal(7, 3)), part="d_k = 1"),
        Case((draw.normal(5, 6), draw.normal(1, 6), draw.normal(1, 3)), part="a single key"),
    ]


def plain_scores(Q, K):
    return Q @ K.transpose(-2, -1)


def blocked(scores, mask, fill=-math.inf):
    return scores if mask is None else scores.masked_fill(~mask, fill)


def cleaned(weights, mask):
    return weights if mask is None else weights.masked_fill(~mask, 0.0)


def finished(scores, mask, V):
    """The right ending, on any scores."""
    weights = cleaned(torch.softmax(blocked(scores, mask), dim=-1), mask)
    return weights @ V, weights


def attention_not_scaled(Q, K, V, mask=None):
    return finished(plain_scores(Q, K), mask, V)


def attention_divided_by_d_k(Q, K, V, mask=None):
    return finished(plain_scores(Q, K) / Q.shape[-1], mask, V)


def attention_scaled_by_value_width(Q, K, V, mask=None):
    return finished(plain_scores(Q, K) / V.shape[-1] ** 0.5, mask, V)


def attention_scaled_after_softmax(Q, K, V, mask=None):
    weights = cleaned(torch.softmax(blocked(plain_scores(Q, K), mask), dim=-1), mask) / Q.shape[-1] ** 0.5
    return weights @ V, weights


def attention_softmax_over_queries(Q, K, V, mask=None):
    scores = blocked(plain_scores(Q, K) / Q.shape[-1] ** 0.5, mask)
    weights = cleaned(torch.softmax(scores, dim=-2), mask)
    return weights @ V, weights


def attention_mask_ignored(Q, K, V, mask=None):
    return finished(plain_scores(Q, K) / Q.shape[-1] ** 0.5, None, V)


def attention_mask_inverted(Q, K, V, mask=None):
    return finished(plain_scores(Q, K) / Q.shape[-1] ** 0.5, None if mask is None else ~mask, V)


def attention_mask_after_softmax(Q, K, V, mask=None):
    weights = cleaned(torch.softmax(plain_scores(Q, K) / Q.shape[-1] ** 0.5, dim=-1), mask)
    return weights @ V, weights


def attention_divided_again(Q, K, V, mask=None):
    weights = cleaned(torch.softmax(plain_scores(Q, K) / Q.shape[-1] ** 0.5, dim=-1), mask)
    weights = weights / weights.sum(dim=-1, keepdim=True).clamp_min(1e-12)
    return weights @ V, weights


def attention_nan_rows(Q, K, V, mask=None):
    weights = torch.softmax(blocked(plain_scores(Q, K) / Q.shape[-1] ** 0.5, mask), dim=-1)
    return weights @ V, weights


def attention_uniform_rows(Q, K, V, mask=None):
    weights = torch.softmax(blocked(plain_scores(Q, K) / Q.shape[-1] ** 0.5, mask, -1e9), dim=-1)
    return weights @ V, weights


def attention_weights_left_behind(Q, K, V, mask=None):
    out, weights = attention_uniform_rows(Q, K, V, mask)
    if mask is not None:
        out = out.masked_fill(~mask.any(dim=-1, keepdim=True), 0.0)
    return out, weights


def attention_nan_gradient(Q, K, V, mask=None):
    scores = plain_scores(Q, K) / Q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores + torch.zeros(mask.shape, dtype=Q.dtype).masked_fill(~mask, -math.inf)
    weights = torch.softmax(scores, dim=-1).nan_to_num()
    return weights @ V, weights


def attention_minus_10000(Q, K, V, mask=None):
    scores = plain_scores(Q, K) / Q.shape[-1] ** 0.5
    weights = cleaned(torch.softmax(scores if mask is None else scores + (~mask) * -10000.0, dim=-1), mask)
    return weights @ V, weights


def attention_zero_scores(Q, K, V, mask=None):
    scores = plain_scores(Q, K) / Q.shape[-1] ** 0.5
    weights = torch.softmax(scores if mask is None else scores * mask, dim=-1)
    return weights @ V, weights


def attention_powers_overflow(Q, K, V, mask=None):
    powers = cleaned((plain_scores(Q, K) / Q.shape[-1] ** 0.5).exp(), mask)
    weights = powers / powers.sum(dim=-1, keepdim=True).clamp_min(1e-30)
    return weights @ V, weights


def attention_swapped_pair(Q, K, V, mask=None):
    out, weights = finished(plain_scores(Q, K) / Q.shape[-1] ** 0.5, mask, V)
    return weights, out


def attention_output_alone(Q, K, V, mask=None):
    return finished(plain_scores(Q, K) / Q.shape[-1] ** 0.5, mask, V)[0]


def attention_scores_returned(Q, K, V, mask=None):
    scores = plain_scores(Q, K) / Q.shape[-1] ** 0.5
    return finished(scores, mask, V)[0], blocked(scores, mask)


def attention_through_float32(Q, K, V, mask=None):
    out, weights = finished(plain_scores(Q.float(), K.float()) / Q.shape[-1] ** 0.5, mask, V.float())
    return out.to(Q.dtype), weights.to(Q.dtype)


def attention_with_nan_to_num(Q, K, V, mask=None):
    scores = torch.matmul(Q, K.mT) * Q.size(-1) ** -0.5
    if mask is not None:
        scores = scores.masked_fill(mask.logical_not(), float("-inf"))
    weights = F.softmax(scores, dim=-1).nan_to_num(0.0)
    return torch.matmul(weights, V), weights


def attention_with_finite_fill(Q, K, V, mask=None):
    scores = (Q / math.sqrt(K.shape[-1])) @ K.transpose(-1, -2)
    if mask is None:
        mask = torch.ones(scores.shape, dtype=torch.bool)
    weights = torch.softmax(torch.where(mask, scores, torch.finfo(scores.dtype).min), dim=-1) * mask
    return weights @ V, weights


def attention_with_spared_rows(Q, K, V, mask=None):
    scores = torch.einsum("...id,...jd->...ij", Q, K) / K.shape[-1] ** 0.5
    if mask is None:
        weights = scores.softmax(-1)
    else:
        seen = mask.any(dim=-1, keepdim=True)
        weights = torch.softmax(scores.masked_fill(~mask & seen, -math.inf), dim=-1)
        weights = torch.where(seen, weights, torch.zeros_like(weights))
    return torch.einsum("...ij,...jd->...id", weights, V), weights


def attention_by_hand(Q, K, V, mask=None):
    scores = plain_scores(Q, K) / math.sqrt(Q.shape[-1])
    mask = torch.ones_like(scores, dtype=torch.bool) if mask is None else mask.expand_as(scores)
    peak = scores.detach().masked_fill(~mask, -1e30).amax(dim=-1, keepdim=True)
    powers = (scores - peak).masked_fill(~mask, -1e9).exp().masked_fill(~mask, 0.0)
    total = powers.sum(dim=-1, keepdim=True)
    weights = powers / total.masked_fill(total == 0, 1.0)
    return weights @ V, weights


def attention_with_added_bias(Q, K, V, mask=None):
    scores = plain_scores(Q, K) / Q.shape[-1] ** 0.5
    keep = None if mask is None else mask.to(Q.dtype)
    weights = torch.softmax(scores if keep is None else scores + (1 - keep) * -1e9, dim=-1)
    weights = weights if keep is None else weights * keep
    return weights @ V, weights


def attention_by_rows(Q, K, V, mask=None):
    lead = Q.shape[:-2]
    shape = (*lead, Q.shape[-2], K.shape[-2])
    mask = torch.ones(shape, dtype=torch.bool) if mask is None else mask.expand(shape)
    outs, shares = [], []
    for q_rows, k_rows, v_rows, m_rows in zip(
        Q.reshape(-1, *Q.shape[-2:]),
        K.reshape(-1, *K.shape[-2:]),
        V.reshape(-1, *V.shape[-2:]),
        mask.reshape(-1, *shape[-2:]),
        strict=True,
    ):
        for q, allowed in zip(q_rows, m_rows, strict=True):
            weights = torch.zeros(len(k_rows), dtype=Q.dtype)
            if allowed.any():
                places = allowed.nonzero().flatten()
                scores = k_rows[places] @ q / len(q) ** 0.5
                weights = weights.index_put((places,), scores.softmax(dim=0))
            shares.append(weights)
            outs.append(weights @ v_rows)
    return torch.stack(outs).reshape(*lead, Q.shape[-2], V.shape[-1]), torch.stack(shares).reshape(shape)


attention = Exercise(
    "attention",
    cases_attention,
    axes=("query", "key"),
    forbidden=("attention",),
    instead="build it from two matrix products and a softmax.",
    mistakes=[
        Mistake(
            "not_scaled",
            "the scores were not scaled",
            "Lesson 4: which number keeps the spread of the scores at 1?",
            attention_not_scaled,
        ),
        Mistake(
            "divided_by_d_k",
            "divided by the width instead of its square root",
            "The dot product's variance is d_k. What is its standard deviation?",
            attention_divided_by_d_k,
        ),
        Mistake(
            "scaled_by_value_width",
            "scaled by the width of the values",
            "A score is a sum of products of queries and keys. How many products?",
            attention_scaled_by_value_width,
        ),
        Mistake(
            "scaled_after_softmax",
            "scaled after the softmax instead of before",
            "Add up one row of your weights. Is it 1?",
            attention_scaled_after_softmax,
        ),
        Mistake(
            "softmax_over_queries",
            "softmax over the queries instead of the keys",
            "The weights of one query add up to 1. Along which axis is that?",
            attention_softmax_over_queries,
        ),
        Mistake(
            "mask_ignored",
            "the mask is not used",
            "Your answer takes a mask. What does it do with it?",
            attention_mask_ignored,
        ),
        Mistake(
            "mask_inverted",
            "the visible keys blocked and the blocked ones seen",
            "True means: may attend.",
            attention_mask_inverted,
        ),
        Mistake(
            "masked_after_softmax",
            "the mask applied after the softmax",
            "Who got the share that you took away from the blocked keys? Add up a row.",
            attention_mask_after_softmax,
        ),
        Mistake(
            "divided_again",
            "softmax, then the mask, then the rows divided by their sums",
            "What does softmax leave for the visible keys when a blocked one is far above them?",
            attention_divided_again,
        ),
        Mistake(
            "nan_rows_left",
            "NaN left in rows with nothing to see",
            "A softmax over only -inf divides 0 by 0. What did you do about it in lesson 5?",
            attention_nan_rows,
        ),
        Mistake(
            "uniform_rows",
            "equal weights in rows with nothing to see",
            "With one low score everywhere softmax has no preference. Who tells it that nobody may be seen?",
            attention_uniform_rows,
        ),
        Mistake(
            "weights_left_behind",
            "the output of a row with nothing to see is zero, its weights are not",
            "You return two things. Mend the row where both come from.",
            attention_weights_left_behind,
        ),
        Mistake(
            "gradient_is_nan",
            "an added -inf, with NaN hidden in the gradient",
            "The values look fine. Lesson 5: which way of blocking a score also cuts its gradient?",
            attention_nan_gradient,
        ),
        Mistake(
            "minus_10000_added",
            "-10000 added to the blocked scores, as BERT did",
            "What if a blocked score is 9900 and the visible ones are at -9900?",
            attention_minus_10000,
        ),
        Mistake("scores_set_to_zero", "blocked scores set to 0", "The power of 0 is 1, not 0.", attention_zero_scores),
        Mistake(
            "powers_overflow",
            "exponentials taken of the raw scores",
            "e to the 10000 is infinite in every float. torch.softmax knows a way round.",
            attention_powers_overflow,
        ),
        Mistake(
            "swapped_pair",
            "the two results in the other order",
            "First what the queries get, then where they looked.",
            attention_swapped_pair,
        ),
        Mistake(
            "output_alone",
            "the output without the weights",
            "Two results are asked for. Figures and lesson 8 will want the second one.",
            attention_output_alone,
        ),
        Mistake(
            "scores_returned",
            "the scores returned where the weights should be",
            "The second result tells what share each key gets.",
            attention_scores_returned,
        ),
        Mistake(
            "through_float32",
            "computed in float32 on the way",
            "The inputs were float64. Which of your lines loses half of their digits?",
            attention_through_float32,
        ),
    ],
    alternatives=[
        attention_with_nan_to_num,
        attention_with_finite_fill,
        attention_with_spared_rows,
        attention_by_hand,
        attention_with_added_bias,
        attention_by_rows,
    ],
)


# ---------------------------------------------------------------- Head


def cases_head(draw):
    def module(x, *rest, d_head=None, **kwargs):
        D, dtype = x.shape[-1], x.dtype
        d_head = d_head or width(dtype)
        state = {
            f"W_{name}.weight": draw.normal(d_head, D, dtype=dtype, scale=1.5 * D**-0.5) for name in ("q", "k", "v")
        }
        return ((D, d_head), state, (x, *rest), kwargs)

    def case(x, *rest, part="values", gradient=False, d_head=None, note="", **kwargs):
        return Case(module(x, *rest, d_head=d_head, **kwargs), part=part, gradient=gradient, via="module", note=note)

    def blind():
        mask = draw.mask(5, 5)
        mask[draw.integer(1, 4)] = False
        return mask

    float64 = torch.float64
    return [
        case(draw.normal(3, 5, 10)),
        case(draw.normal(3, 4, 7), d_head=9, note="a head wider than the model"),
        case(draw.normal(5, 10), part=LEADING),
        case(draw.normal(2, 3, 5, 10), part=LEADING),
        case(draw.normal(3, 5, 10, dtype=float64), part=DTYPE),
        case(draw.normal(2, 5, 10, dtype=float64), part=GRADIENT, gradient=True),
        case(draw.normal(3, 5, 10), draw.mask(5, 5), part=MASK),
        case(draw.normal(3, 5, 10), part=MASK, mask=draw.mask(5, 5)),
        case(draw.normal(3, 5, 10), torch.ones(5, 5, dtype=torch.bool).tril(), part=MASK, note="a causal mask"),
        case(draw.normal(3, 5, 10, dtype=float64), draw.mask(5, 5), part=MASK, gradient=True),
        case(draw.normal(3, 5, 10), draw.mask(3, 1, 5), part=BROADCAST),
        case(draw.normal(2, 3, 5, 10), draw.mask(2, 1, 1, 5), part=BROADCAST),
        case(draw.normal(5, 10), draw.mask(5), part=BROADCAST),
        case(draw.normal(3, 5, 10), blind(), part=NOTHING),
        case(draw.normal(2, 5, 10, dtype=float64), blind(), part=NOTHING, gradient=True),
        case(draw.normal(2, 5, 10, dtype=float64, scale=40.0), part="large scores"),
        case(draw.normal(3, 1, 10), part="a single token"),
        Case(((10, 6), ("W_q", "W_k", "W_v")), part="three linear layers without bias", via="linear_layers"),
    ]


class _Head(nn.Module):
    """A right head with a hook for one mistake."""

    bias = False

    def __init__(self, d_model, d_head):
        super().__init__()
        self.W_q = nn.Linear(d_model, d_head, bias=self.bias)
        self.W_k = nn.Linear(d_model, d_head, bias=self.bias)
        self.W_v = nn.Linear(d_model, d_head, bias=self.bias)

    def forward(self, x, mask=None):
        return self.attend(self.W_q(x), self.W_k(x), self.W_v(x), mask)

    def attend(self, q, k, v, mask):
        return finished(plain_scores(q, k) / q.shape[-1] ** 0.5, mask, v)[0]


class HeadWithBias(_Head):
    bias = True


class HeadNotScaled(_Head):
    def attend(self, q, k, v, mask):
        return attention_not_scaled(q, k, v, mask)[0]


class HeadScaledByModelWidth(_Head):
    def forward(self, x, mask=None):
        scores = plain_scores(self.W_q(x), self.W_k(x)) / x.shape[-1] ** 0.5
        return finished(scores, mask, self.W_v(x))[0]


class HeadScaledAfterSoftmax(_Head):
    def attend(self, q, k, v, mask):
        return attention_scaled_after_softmax(q, k, v, mask)[0]


class HeadKeysAsk(_Head):
    def attend(self, q, k, v, mask):
        return finished(plain_scores(k, q) / q.shape[-1] ** 0.5, mask, v)[0]


class HeadSoftmaxOverQueries(_Head):
    def attend(self, q, k, v, mask):
        return attention_softmax_over_queries(q, k, v, mask)[0]


class HeadMaskIgnored(_Head):
    def forward(self, x, mask=None):
        return super().forward(x)


class HeadMaskInverted(_Head):
    def attend(self, q, k, v, mask):
        return attention_mask_inverted(q, k, v, mask)[0]


class HeadAlwaysCausal(_Head):
    def attend(self, q, k, v, mask):
        causal = torch.ones(q.shape[-2], q.shape[-2], dtype=torch.bool).tril()
        return super().attend(q, k, v, causal if mask is None else mask & causal)


class HeadMaskAfterSoftmax(_Head):
    def attend(self, q, k, v, mask):
        return attention_mask_after_softmax(q, k, v, mask)[0]


class HeadNanRows(_Head):
    def attend(self, q, k, v, mask):
        return attention_nan_rows(q, k, v, mask)[0]


class HeadUniformRows(_Head):
    def attend(self, q, k, v, mask):
        return attention_uniform_rows(q, k, v, mask)[0]


class HeadReturnsWeights(_Head):
    def attend(self, q, k, v, mask):
        return finished(plain_scores(q, k) / q.shape[-1] ** 0.5, mask, v)


class HeadValuesNotProjected(_Head):
    def forward(self, x, mask=None):
        return self.attend(self.W_q(x), self.W_k(x), x, mask)


class HeadValuesFromKeys(_Head):
    def forward(self, x, mask=None):
        k = self.W_k(x)
        return self.attend(self.W_q(x), k, k, mask)


class HeadWithResidual(_Head):
    def attend(self, q, k, v, mask):
        return v + super().attend(q, k, v, mask)


class HeadWithNanToNum(nn.Module):
    def __init__(self, d_model, d_head):
        super().__init__()
        for name in ("W_q", "W_k", "W_v"):
            setattr(self, name, nn.Linear(d_model, d_head, bias=False))

    def forward(self, x, mask=None):
        return attention_with_nan_to_num(self.W_q(x), self.W_k(x), self.W_v(x), mask)[0]


class HeadWithFiniteFill(_Head):
    def attend(self, q, k, v, mask):
        return attention_with_finite_fill(q, k, v, mask)[0]


class HeadWithSparedRows(_Head):
    def attend(self, q, k, v, mask):
        return attention_with_spared_rows(q, k, v, mask)[0]


class HeadByHand(_Head):
    def attend(self, q, k, v, mask):
        return attention_by_hand(q, k, v, mask)[0]


class HeadWithAddedBias(_Head):
    def attend(self, q, k, v, mask):
        return attention_with_added_bias(q, k, v, mask)[0]


class HeadByRows(_Head):
    def attend(self, q, k, v, mask):
        return attention_by_rows(q, k, v, mask)[0]


class HeadWithOneProduct(_Head):
    def forward(self, x, mask=None):
        weights = torch.cat([self.W_q.weight, self.W_k.weight, self.W_v.weight])
        q, k, v = F.linear(x, weights).chunk(3, dim=-1)
        return self.attend(q, k, v, mask)


class HeadThatMixesFirst(_Head):
    def forward(self, x, mask=None):
        mixed = self.attend(self.W_q(x), self.W_k(x), x, mask)
        return self.W_v(mixed)


class HeadWithAScaleBuffer(nn.Module):
    def __init__(self, d_model, d_head):
        super().__init__()
        self.W_v = nn.Linear(d_model, d_head, False)
        self.W_k = nn.Linear(d_model, d_head, False)
        self.W_q = nn.Linear(d_model, d_head, False)
        self.d_head = d_head
        self.register_buffer("scale", torch.tensor(float(d_head)).sqrt(), persistent=False)

    def forward(self, x, mask=None):
        scores = self.W_q(x) @ self.W_k(x).mT / self.scale
        if mask is not None:
            scores = torch.where(mask, scores, -math.inf)
        weights = F.softmax(scores, dim=-1)
        if mask is not None:
            weights = torch.where(mask, weights, 0.0)
        return weights @ self.W_v(x)


Head = Exercise(
    "Head",
    cases_head,
    axes=("token", "channel"),
    forbidden=("attention",),
    instead="use your own attention.",
    mistakes=[
        Mistake(
            "with_bias",
            "linear layers with a bias",
            "nn.Linear adds a vector unless it is told not to. Which argument tells it?",
            HeadWithBias,
        ),
        Mistake(
            "not_scaled",
            "the scores were not scaled",
            "Lesson 4: which number keeps the spread of the scores at 1?",
            HeadNotScaled,
        ),
        Mistake(
            "scaled_by_model_width",
            "scaled by the width of the model",
            "How many products are added up in one score? Lesson 4 has this bug as its last exercise.",
            HeadScaledByModelWidth,
        ),
        Mistake(
            "scaled_after_softmax",
            "scaled after the softmax instead of before",
            "Then the weights of a query do not add up to 1.",
            HeadScaledAfterSoftmax,
        ),
        Mistake("keys_ask", "keys and queries swapped", "Who owns the rows of the scores?", HeadKeysAsk),
        Mistake(
            "softmax_over_queries",
            "softmax over the queries instead of the keys",
            "The weights of one query add up to 1. Along which axis is that?",
            HeadSoftmaxOverQueries,
        ),
        Mistake(
            "mask_ignored",
            "the mask is not used",
            "forward takes a mask. Where does it go from there?",
            HeadMaskIgnored,
        ),
        Mistake(
            "mask_inverted",
            "the visible tokens blocked and the blocked ones seen",
            "True means: may attend.",
            HeadMaskInverted,
        ),
        Mistake(
            "always_causal",
            "a causal mask of its own",
            "Here the caller decides what may be seen. Without a mask everybody sees everybody.",
            HeadAlwaysCausal,
        ),
        Mistake(
            "masked_after_softmax",
            "the mask applied after the softmax",
            "Who got the share of the blocked tokens?",
            HeadMaskAfterSoftmax,
        ),
        Mistake(
            "nan_rows_left",
            "NaN in rows with nothing to see",
            "Does your attention mend such rows? Then use it.",
            HeadNanRows,
        ),
        Mistake(
            "uniform_rows",
            "the average of all values in rows with nothing to see",
            "A token that may see nothing should get nothing.",
            HeadUniformRows,
        ),
        Mistake(
            "weights_returned_too",
            "the weights returned as well",
            "A head passes on one tensor. Which of the two?",
            HeadReturnsWeights,
        ),
        Mistake(
            "values_not_projected",
            "the tokens themselves weighted, not their values",
            "One of your three layers has nothing to do.",
            HeadValuesNotProjected,
        ),
        Mistake(
            "values_from_keys",
            "the keys used as values",
            "What a word is found by and what it hands over are two vectors.",
            HeadValuesFromKeys,
        ),
        Mistake(
            "values_added",
            "a skip connection added",
            "Those come in lesson 9, and around the head. This one returns the weighted values alone.",
            HeadWithResidual,
        ),
    ],
    alternatives=[
        HeadWithNanToNum,
        HeadWithFiniteFill,
        HeadWithSparedRows,
        HeadByHand,
        HeadWithAddedBias,
        HeadByRows,
        HeadWithOneProduct,
        HeadThatMixesFirst,
        HeadWithAScaleBuffer,
    ],
)


# ---------------------------------------------------------------- fixed_head


def cases_fixed_head(draw):
    def make(dtype, *lead, T=5, D=10, d_k=None, d_v=3):
        x = draw.normal(*lead, T, D, dtype=dtype)
        d_k = d_k or width(dtype)
        W_q, W_k = (draw.normal(d_k, D, dtype=dtype, scale=1.5 * D**-0.5) for _ in range(2))
        return x, W_q, W_k, draw.normal(d_v, D, dtype=dtype)

    return [
        *tensor_cases(make, leads=((4,), (), (2, 3))),
        Case(make(torch.float32, 3, T=4, D=7, d_k=9, d_v=11), note="a head wider than the model"),
        Case(make(torch.float32, 2, d_k=1), part="a head of width 1"),
        Case(make(torch.float32, 2, T=1), part="a single token"),
    ]


def _qkv(x, W_q, W_k, W_v):
    return x @ W_q.T, x @ W_k.T, x @ W_v.T


def head_scaled_after(x, W_q, W_k, W_v):
    return attention_scaled_after_softmax(*_qkv(x, W_q, W_k, W_v))[0]


def head_not_scaled(x, W_q, W_k, W_v):
    return attention_not_scaled(*_qkv(x, W_q, W_k, W_v))[0]


def head_scaled_twice(x, W_q, W_k, W_v):
    return finished(plain_scores(x @ W_q.T, x @ W_k.T) / len(W_q) ** 0.5, None, x @ W_v.T)[0] / len(W_q) ** 0.5


def head_divided_by_d_k(x, W_q, W_k, W_v):
    return attention_divided_by_d_k(*_qkv(x, W_q, W_k, W_v))[0]


def head_multiplied_inside(x, W_q, W_k, W_v):
    return finished(plain_scores(x @ W_q.T, x @ W_k.T) * len(W_q) ** 0.5, None, x @ W_v.T)[0]


def head_scaled_by_model_width(x, W_q, W_k, W_v):
    return finished(plain_scores(x @ W_q.T, x @ W_k.T) / x.shape[-1] ** 0.5, None, x @ W_v.T)[0]


def head_scaled_by_value_width(x, W_q, W_k, W_v):
    return attention_scaled_by_value_width(*_qkv(x, W_q, W_k, W_v))[0]


def head_scaled_after_and_before_multiplied(x, W_q, W_k, W_v):
    return attention_not_scaled(*_qkv(x, W_q, W_k, W_v))[0] * len(W_q) ** 0.5


def head_softmax_over_queries(x, W_q, W_k, W_v):
    return attention_softmax_over_queries(*_qkv(x, W_q, W_k, W_v))[0]


def head_pair_returned(x, W_q, W_k, W_v):
    return finished(plain_scores(x @ W_q.T, x @ W_k.T) / len(W_q) ** 0.5, None, x @ W_v.T)


def fixed_by_linear(x, W_q, W_k, W_v):
    return attention_with_nan_to_num(F.linear(x, W_q), F.linear(x, W_k), F.linear(x, W_v))[0]


def fixed_by_einsum(x, W_q, W_k, W_v):
    q, k, v = (torch.einsum("...td,hd->...th", x, W) for W in (W_q, W_k, W_v))
    weights = (torch.einsum("...ih,...jh->...ij", q, k) * W_q.size(0) ** -0.5).softmax(-1)
    return torch.einsum("...ij,...jh->...ih", weights, v)


def fixed_by_one_form(x, W_q, W_k, W_v):
    scores = x @ (W_q.T @ W_k / math.sqrt(len(W_k))) @ x.mT
    return (torch.softmax(scores, dim=-1) @ x) @ W_v.T


def fixed_by_rows(x, W_q, W_k, W_v):
    return attention_by_rows(*_qkv(x, W_q, W_k, W_v))[0]


def fixed_by_hand(x, W_q, W_k, W_v):
    return attention_by_hand(*_qkv(x, W_q, W_k, W_v))[0]


fixed_head = Exercise(
    "fixed_head",
    cases_fixed_head,
    axes=("token", "channel"),
    forbidden=("attention",),
    instead="mend the lines instead.",
    mistakes=[
        Mistake(
            "scaled_after_softmax",
            "the published bug: scaled after the softmax",
            "Add up a row of the weights. What do you get, and where does that number come from?",
            head_scaled_after,
        ),
        Mistake(
            "not_scaled",
            "the scaling is gone",
            "The weights add up to 1 again, but the spread of the scores grows with the width.",
            head_not_scaled,
        ),
        Mistake(
            "scaled_twice",
            "scaled before and after the softmax",
            "One of the two divisions was the bug.",
            head_scaled_twice,
        ),
        Mistake(
            "divided_by_d_k",
            "the width without its square root",
            "Is it the variance that is divided out, or the standard deviation?",
            head_divided_by_d_k,
        ),
        Mistake(
            "multiplied",
            "multiplied where it should be divided",
            "The published number is one over a root. What do you do with it?",
            head_multiplied_inside,
        ),
        Mistake(
            "scaled_by_model_width",
            "scaled by the width of the model",
            "How long is one row of q?",
            head_scaled_by_model_width,
        ),
        Mistake(
            "scaled_by_value_width",
            "scaled by the width of the values",
            "The values take no part in the scores.",
            head_scaled_by_value_width,
        ),
        Mistake(
            "softmax_over_queries",
            "softmax over the queries instead of the keys",
            "The published axis was right.",
            head_softmax_over_queries,
        ),
        Mistake(
            "weights_returned_too",
            "the weights returned as well",
            "One tensor is asked for, the output.",
            head_pair_returned,
        ),
        Mistake(
            "output_multiplied",
            "not scaled, and the output made larger",
            "A weighted average needs no correction afterwards. What needs one before?",
            head_scaled_after_and_before_multiplied,
        ),
    ],
    alternatives=[fixed_by_linear, fixed_by_einsum, fixed_by_one_form, fixed_by_rows, fixed_by_hand],
)


# ---------------------------------------------------------------- context_shift


def cases_context_shift(draw):
    def make(dtype, *lead):
        lengths = draw.uniform(*lead, 5, 1, low=0.5, high=3.0, dtype=dtype)
        before = draw.normal(*lead, 5, 6, dtype=dtype)
        return before * lengths, draw.normal(*lead, 5, 6, dtype=dtype) + 0.5 * before

    before, after = make(torch.float32)
    zero_before, zero_after = before.clone(), after.clone()
    zero_before[1], zero_after[3] = 0.0, 0.0
    zero_before[4], zero_after[4] = 0.0, 0.0
    x = draw.normal(5, 6)
    batch = draw.normal(2, 4, 3, dtype=torch.float64)
    blind = torch.zeros_like(batch)
    return [
        *tensor_cases(make),
        Case(make(torch.float64, 2, 3), part=LEADING, gradient=True),
        Case((x, 2.5 * x), part="longer or shorter only", note="the same directions, 2.5 times as long"),
        Case((x, x.clone()), part="longer or shorter only", note="nothing moved"),
        Case((x, -0.5 * x), part="opposite directions"),
        Case((zero_before, zero_after), part="a zero vector"),
        Case((batch, blind), part="a zero vector", note="everything moved to zero"),
    ]


def _cosine(before, after):
    product = before.norm(dim=-1) * after.norm(dim=-1)
    return (before * after).sum(dim=-1) / product.masked_fill(product == 0, 1.0)


def shift_cosine_itself(before, after):
    return _cosine(before, after)


def shift_distance(before, after):
    return (after - before).norm(dim=-1)


def shift_relative_distance(before, after):
    lengths = before.norm(dim=-1)
    return (after - before).norm(dim=-1) / lengths.masked_fill(lengths == 0, 1.0)


def shift_of_dot_products(before, after):
    return 1 - (before * after).sum(dim=-1)


def shift_absolute(before, after):
    return 1 - _cosine(before, after).abs()


def shift_over_tokens(before, after):
    return 1 - _cosine(before.transpose(-2, -1), after.transpose(-2, -1))


def shift_mean_over_tokens(before, after):
    return (1 - _cosine(before, after)).mean(dim=-1)


def shift_nan(before, after):
    return 1 - (before * after).sum(dim=-1) / (before.norm(dim=-1) * after.norm(dim=-1))


def shift_zero_for_zero(before, after):
    return shift_nan(before, after).nan_to_num(0.0)


def shift_angle(before, after):
    return torch.acos(_cosine(before, after).clamp(-1, 1)) / math.pi


def shift_halved(before, after):
    return (1 - _cosine(before, after)) / 2


def shift_axis_kept(before, after):
    return 1 - _cosine(before, after).unsqueeze(-1)


def shift_all_pairs(before, after):
    return 1 - F.normalize(before, dim=-1) @ F.normalize(after, dim=-1).transpose(-2, -1)


def shift_one_length_divided(before, after):
    squares = (before * before).sum(dim=-1)
    return 1 - (before * after).sum(dim=-1) / squares.masked_fill(squares == 0, 1.0)


def shift_by_library(before, after):
    return 1 - F.cosine_similarity(before, after, dim=-1)


def shift_by_directions(before, after):
    return 1 - (F.normalize(before, dim=-1) * F.normalize(after, dim=-1)).sum(dim=-1)


def shift_by_where(before, after):
    dots = torch.einsum("...d,...d->...", before, after)
    lengths = (before.square().sum(-1) * after.square().sum(-1)).sqrt()
    return 1 - torch.where(lengths > 0, dots / lengths, torch.zeros_like(dots))


def shift_by_clamp(before, after):
    a, b = torch.linalg.vector_norm(before, dim=-1), torch.linalg.vector_norm(after, dim=-1)
    return 1 - (before * after).sum(dim=-1) / (a * b).clamp(min=1e-12)


def shift_by_nan_to_num(before, after):
    return 1 - (1 - shift_nan(before, after)).nan_to_num(0.0)


def shift_by_loops(before, after):
    shifts = []
    for b, a in zip(before.reshape(-1, before.shape[-1]), after.reshape(-1, after.shape[-1]), strict=True):
        length = b.norm() * a.norm()
        shifts.append(1 - (b @ a) / length if length > 0 else 1 + 0 * (b @ a))
    return torch.stack(shifts).reshape(before.shape[:-1])


context_shift = Exercise(
    "context_shift",
    cases_context_shift,
    mistakes=[
        Mistake(
            "cosine_itself",
            "the cosine, not one minus it",
            "What should a word get that did not move at all?",
            shift_cosine_itself,
        ),
        Mistake(
            "distance",
            "the distance between the two vectors",
            "A vector twice as long points the same way. How far did it move here?",
            shift_distance,
        ),
        Mistake(
            "relative_distance",
            "the distance, measured in lengths of the vector before",
            "A vector twice as long points the same way. How far did it move here?",
            shift_relative_distance,
        ),
        Mistake(
            "dot_products",
            "dot products where cosines are asked for",
            "What does a cosine divide out that a dot product leaves in?",
            shift_of_dot_products,
        ),
        Mistake(
            "sign_lost",
            "the sign of the cosine is lost",
            "A vector turned round has moved as far as it can. What do you say of it?",
            shift_absolute,
        ),
        Mistake(
            "over_tokens",
            "compared along the tokens, not along the channels",
            "One number for each token: which axis disappears?",
            shift_over_tokens,
        ),
        Mistake(
            "mean_over_tokens",
            "one number for the whole sentence",
            "Each word moves its own way. Keep them apart.",
            shift_mean_over_tokens,
        ),
        Mistake(
            "nan_for_zero",
            "NaN for a zero vector",
            "0 divided by 0. The spec says which cosine a zero vector has.",
            shift_nan,
        ),
        Mistake(
            "zero_vector_unmoved",
            "a zero vector counted as not moved",
            "The cosine of a zero vector is 0. What is its shift, then?",
            shift_zero_for_zero,
        ),
        Mistake("angle", "the angle", "Ask for the cosine of the angle, not for the angle.", shift_angle),
        Mistake("halved", "half of it, to stay below 1", "Opposite directions have a shift of 2.", shift_halved),
        Mistake(
            "axis_kept",
            "an axis of size 1 left over",
            "The result has one number for each token, (..., T).",
            shift_axis_kept,
        ),
        Mistake(
            "all_pairs",
            "every word before with every word after",
            "A word is compared with itself only, before and after.",
            shift_all_pairs,
        ),
        Mistake(
            "one_length_divided",
            "only one of the two lengths divided out",
            "Two vectors, two lengths. Is the second one of yours the right vector's?",
            shift_one_length_divided,
        ),
    ],
    alternatives=[
        shift_by_library,
        shift_by_directions,
        shift_by_where,
        shift_by_clamp,
        shift_by_nan_to_num,
        shift_by_loops,
    ],
)


# ---------------------------------------------------------------- soft_lookup


def cases_soft_lookup(draw):
    def make(dtype):
        return draw.normal(4, dtype=dtype), draw.normal(6, 4, dtype=dtype), draw.normal(6, 3, dtype=dtype)

    def far_apart():
        """The largest score is 4, whose power at temperature 1/512 is beyond float64."""
        query, keys, values = (draw.normal(*shape, dtype=float64) for shape in ((5,), (7, 5), (7, 2)))
        scores = keys @ query
        return query * 4 / scores[scores.abs().argmax()], keys, values

    float64 = torch.float64
    cold = far_apart()
    return [
        *tensor_cases(make, leads=((),)),
        Case((draw.normal(9), draw.normal(5, 9), draw.normal(5, 9)), note="keys of width 9"),
        Case((*make(torch.float32), 0.5), part="temperature"),
        Case(make(torch.float32), {"temperature": 4.0}, part="temperature"),
        Case(make(float64), {"temperature": 0.25}, part="temperature", gradient=True),
        Case((*cold, 2.0**-9), part="almost a hard lookup", note="temperature 1/512"),
        Case((*make(float64), 2.0**12), part="almost an average", note="temperature 4096"),
        Case((draw.normal(4), draw.normal(1, 4), draw.normal(1, 3)), part="a single key"),
    ]


def lookup_hard(query, keys, values, temperature=1.0):
    return values[(keys @ query).argmax()]


def lookup_scaled_by_root(query, keys, values, temperature=1.0):
    return torch.softmax(keys @ query / len(query) ** 0.5 / temperature, dim=0) @ values


def lookup_temperature_multiplied(query, keys, values, temperature=1.0):
    return torch.softmax(keys @ query * temperature, dim=0) @ values


def lookup_temperature_ignored(query, keys, values, temperature=1.0):
    return torch.softmax(keys @ query, dim=0) @ values


def lookup_temperature_after(query, keys, values, temperature=1.0):
    return torch.softmax(keys @ query, dim=0) / temperature @ values


def lookup_scores_as_weights(query, keys, values, temperature=1.0):
    return keys @ query / temperature @ values


def lookup_by_cosine(query, keys, values, temperature=1.0):
    return torch.softmax(F.normalize(keys, dim=-1) @ F.normalize(query, dim=0) / temperature, dim=0) @ values


def lookup_average(query, keys, values, temperature=1.0):
    return values.mean(dim=0)


def lookup_weights_returned(query, keys, values, temperature=1.0):
    return torch.softmax(keys @ query / temperature, dim=0)


def lookup_shares_of_scores(query, keys, values, temperature=1.0):
    scores = (keys @ query / temperature).clamp_min(0)
    return scores / scores.sum().clamp_min(1e-12) @ values


def lookup_of_keys(query, keys, values, temperature=1.0):
    return torch.softmax(keys @ query / temperature, dim=0) @ keys


def lookup_overflow(query, keys, values, temperature=1.0):
    powers = (keys @ query / temperature).exp()
    return powers / powers.sum() @ values


def lookup_in_a_batch(query, keys, values, temperature=1.0):
    return torch.softmax(query[None] @ keys.T / temperature, dim=-1) @ values


def lookup_query_first(query, keys, values, temperature=1.0):
    weights = F.softmax(keys.matmul(query / temperature), dim=-1)
    return weights.matmul(values)


def lookup_by_einsum(query, keys, values, temperature=1.0):
    scores = torch.einsum("nd,d->n", keys, query) / torch.tensor(temperature)
    return torch.einsum("n,ne->e", scores.softmax(dim=0), values)


def lookup_by_hand(query, keys, values, temperature=1.0):
    scores = (keys * query).sum(dim=-1) / temperature
    powers = torch.exp(scores - scores.max())
    return (powers[:, None] * values).sum(dim=0) / powers.sum()


def lookup_by_loops(query, keys, values, temperature=1.0):
    scores = torch.stack([torch.dot(key, query) / temperature for key in keys])
    shares = torch.softmax(scores, dim=0)
    return sum(share * value for share, value in zip(shares, values, strict=True))


def lookup_by_logs(query, keys, values, temperature=1.0):
    scores = keys @ query / temperature
    return values.T @ (scores - scores.logsumexp(dim=0)).exp()


def lookup_by_library(query, keys, values, temperature=1.0):
    return F.scaled_dot_product_attention(query[None], keys, values, scale=1 / temperature)[0]


soft_lookup = Exercise(
    "soft_lookup",
    cases_soft_lookup,
    mistakes=[
        Mistake(
            "hard", "the best match alone", "That was select, in lesson 3. Here every value has its share.", lookup_hard
        ),
        Mistake(
            "scaled_by_root",
            "the scores were divided by √d as well",
            "Here the temperature is the only divisor.",
            lookup_scaled_by_root,
        ),
        Mistake(
            "temperature_multiplied",
            "multiplied by the temperature",
            "A cold search should be choosy. What does a small temperature do in yours?",
            lookup_temperature_multiplied,
        ),
        Mistake(
            "temperature_ignored",
            "the temperature is not used",
            "Your answer takes a temperature. Where does it go?",
            lookup_temperature_ignored,
        ),
        Mistake(
            "temperature_after_softmax",
            "the temperature comes after the softmax",
            "Your shares add up to 1 at temperature 1 only.",
            lookup_temperature_after,
        ),
        Mistake(
            "scores_as_weights",
            "the scores used as weights",
            "Can a share be negative? What turns scores into shares?",
            lookup_scores_as_weights,
        ),
        Mistake(
            "cosine",
            "cosines where dot products are asked for",
            "A long key is a loud one. Here its length counts.",
            lookup_by_cosine,
        ),
        Mistake("average", "the average of all values", "Your answer does not depend on the query.", lookup_average),
        Mistake(
            "weights_returned",
            "the shares, not what they buy",
            "One step is missing: what do the shares do with the values?",
            lookup_weights_returned,
        ),
        Mistake(
            "shares_of_scores",
            "scores divided by their sum",
            "What becomes of a key with a negative score?",
            lookup_shares_of_scores,
        ),
        Mistake(
            "keys_averaged",
            "the keys averaged, not the values",
            "A key is what a video is found by. What is it that you want to get?",
            lookup_of_keys,
        ),
        Mistake(
            "powers_overflow",
            "exponentials taken of the raw scores",
            "Divide a score of 3 by a temperature of 1/512 and take the power of it.",
            lookup_overflow,
        ),
        Mistake(
            "batch_axis_added",
            "an axis of size 1 in front",
            "One query, one answer: the shape is (E,).",
            lookup_in_a_batch,
        ),
    ],
    alternatives=[
        lookup_query_first,
        lookup_by_einsum,
        lookup_by_hand,
        lookup_by_loops,
        lookup_by_logs,
        lookup_by_library,
    ],
)


# ---------------------------------------------------------------- attention_backward


def cases_attention_backward(draw):
    def make(dtype, *lead, keys=7):
        d_k = width(dtype)
        Q, K = draw.normal(*lead, 5, d_k, dtype=dtype), draw.normal(*lead, keys, d_k, dtype=dtype)
        return Q, K, draw.normal(*lead, keys, 3, dtype=dtype), draw.normal(*lead, 5, 3, dtype=dtype)

    far = far_scores(draw)
    return [
        *tensor_cases(make),
        Case(make(torch.float64, 2, 3), part=LEADING),
        Case((*far, draw.normal(7, 3, dtype=torch.float64), draw.normal(5, 3, dtype=torch.float64)), part=LARGE),
        Case(make(torch.float32, keys=1), part="a single key"),
        Case((draw.normal(5, 1), draw.normal(7, 1), draw.normal(7, 3), draw.normal(5, 3)), part="d_k = 1"),
    ]


def _weights(Q, K):
    return torch.softmax(plain_scores(Q, K) / Q.shape[-1] ** 0.5, dim=-1)


def _through(Q, K, V, grad_out, dS, scale=None):
    """The three gradients from that at the scores, with the right ending."""
    scale = Q.shape[-1] ** -0.5 if scale is None else scale
    dV = _weights(Q, K).transpose(-2, -1) @ grad_out
    return dS @ K * scale, dS.transpose(-2, -1) @ Q * scale, dV


def _right_dS(Q, K, V, grad_out):
    W, dW = _weights(Q, K), grad_out @ V.transpose(-2, -1)
    return W * (dW - (W * dW).sum(dim=-1, keepdim=True))


def backward_scale_forgotten(Q, K, V, grad_out):
    return _through(Q, K, V, grad_out, _right_dS(Q, K, V, grad_out), 1.0)


def backward_scaled_twice(Q, K, V, grad_out):
    return _through(Q, K, V, grad_out, _right_dS(Q, K, V, grad_out), 1 / Q.shape[-1])


def backward_softmax_skipped(Q, K, V, grad_out):
    return _through(Q, K, V, grad_out, grad_out @ V.transpose(-2, -1))


def backward_diagonal_only(Q, K, V, grad_out):
    W = _weights(Q, K)
    return _through(Q, K, V, grad_out, W * (1 - W) * (grad_out @ V.transpose(-2, -1)))


def backward_mean_not_subtracted(Q, K, V, grad_out):
    return _through(Q, K, V, grad_out, _weights(Q, K) * (grad_out @ V.transpose(-2, -1)))


def backward_plain_mean(Q, K, V, grad_out):
    W, dW = _weights(Q, K), grad_out @ V.transpose(-2, -1)
    return _through(Q, K, V, grad_out, W * (dW - dW.mean(dim=-1, keepdim=True)))


def backward_summed_over_queries(Q, K, V, grad_out):
    W, dW = _weights(Q, K), grad_out @ V.transpose(-2, -1)
    return _through(Q, K, V, grad_out, W * (dW - (W * dW).sum(dim=-2, keepdim=True)))


def backward_added(Q, K, V, grad_out):
    W, dW = _weights(Q, K), grad_out @ V.transpose(-2, -1)
    return _through(Q, K, V, grad_out, W * (dW + (W * dW).sum(dim=-1, keepdim=True)))


def backward_sign_flipped(Q, K, V, grad_out):
    return _through(Q, K, V, grad_out, -_right_dS(Q, K, V, grad_out))


def backward_forward_not_scaled(Q, K, V, grad_out):
    W, dW = torch.softmax(plain_scores(Q, K), dim=-1), grad_out @ V.transpose(-2, -1)
    dS = W * (dW - (W * dW).sum(dim=-1, keepdim=True))
    return dS @ K, dS.transpose(-2, -1) @ Q, W.transpose(-2, -1) @ grad_out


def backward_swapped(Q, K, V, grad_out):
    dQ, dK, dV = _through(Q, K, V, grad_out, _right_dS(Q, K, V, grad_out))
    return dK, dQ, dV


def backward_uniform_values(Q, K, V, grad_out):
    dQ, dK, _ = _through(Q, K, V, grad_out, _right_dS(Q, K, V, grad_out))
    return dQ, dK, grad_out.mean(dim=-2, keepdim=True).expand(V.shape)


def backward_key_scale_forgotten(Q, K, V, grad_out):
    dQ, dK, dV = _through(Q, K, V, grad_out, _right_dS(Q, K, V, grad_out))
    return dQ, dK * Q.shape[-1] ** 0.5, dV


def backward_by_einsum(Q, K, V, grad_out):
    c = Q.shape[-1] ** -0.5
    W = torch.einsum("...id,...jd->...ij", Q * c, K).softmax(-1)
    dW = torch.einsum("...ie,...je->...ij", grad_out, V)
    dS = W * dW - W * torch.einsum("...ij,...ij->...i", W, dW)[..., None]
    dQ = torch.einsum("...ij,...jd->...id", dS, K) * c
    return dQ, torch.einsum("...ij,...id->...jd", dS, Q) * c, torch.einsum("...ij,...ie->...je", W, grad_out)


def backward_from_the_output(Q, K, V, grad_out):
    W = _weights(Q, K)
    mixed = (grad_out * (W @ V)).sum(dim=-1, keepdim=True)
    return _through(Q, K, V, grad_out, W * (grad_out @ V.mT - mixed))


def backward_from_jacobians(Q, K, V, grad_out):
    W = _weights(Q, K)
    J = torch.diag_embed(W) - W.unsqueeze(-1) * W.unsqueeze(-2)
    dW = grad_out @ V.transpose(-2, -1)
    return _through(Q, K, V, grad_out, (J @ dW.unsqueeze(-1)).squeeze(-1))


def backward_scaled_scores(Q, K, V, grad_out):
    root = math.sqrt(K.shape[-1])
    dS = _right_dS(Q, K, V, grad_out) / root
    return torch.matmul(dS, K), torch.matmul(dS.mT, Q), torch.matmul(_weights(Q, K).mT, grad_out)


def backward_by_loops(Q, K, V, grad_out):
    scale = Q.shape[-1] ** -0.5
    found = []
    flat = [t.reshape(-1, *t.shape[-2:]) for t in (Q, K, V, grad_out)]
    for q_rows, k, v, g_rows in zip(*flat, strict=True):
        dQ, dK, dV = [], torch.zeros_like(k), torch.zeros_like(v)
        for q, g in zip(q_rows, g_rows, strict=True):
            w = torch.softmax(k @ q * scale, dim=0)
            better = v @ g - w @ v @ g
            dQ.append((w * better) @ k * scale)
            dK = dK + torch.outer(w * better, q) * scale
            dV = dV + torch.outer(w, g)
        found.append((torch.stack(dQ), dK, dV))
    dQ, dK, dV = (torch.stack(parts) for parts in zip(*found, strict=True))
    return dQ.reshape(Q.shape), dK.reshape(K.shape), dV.reshape(V.shape)


attention_backward = Exercise(
    "attention_backward",
    cases_attention_backward,
    forbidden=("autograd",),
    instead="follow the chain rule by hand.",
    mistakes=[
        Mistake(
            "scale_forgotten",
            "√d_k forgotten on the way back",
            "The scores were divided on the way out. What does a division do to a gradient?",
            backward_scale_forgotten,
        ),
        Mistake(
            "scaled_twice",
            "divided by √d_k twice",
            "One division on the way out, one on the way back.",
            backward_scaled_twice,
        ),
        Mistake(
            "softmax_skipped",
            "the softmax was left out on the way back",
            "From the gradient at the weights to that at the scores there is one more step.",
            backward_softmax_skipped,
        ),
        Mistake(
            "diagonal_only",
            "only the diagonal of the softmax's Jacobian",
            "When one weight rises the others of its row must fall. Where is that in your line?",
            backward_diagonal_only,
        ),
        Mistake(
            "mean_not_subtracted",
            "the mean was not subtracted",
            "Raise all scores of a row alike and nothing moves. What must a row of dS add up to?",
            backward_mean_not_subtracted,
        ),
        Mistake(
            "plain_mean",
            "the plain mean subtracted, not the weighted one",
            "The mean of a row counts a key as much as the query looks at it.",
            backward_plain_mean,
        ),
        Mistake(
            "summed_over_queries",
            "summed over the queries instead of the keys",
            "Softmax ran along a row. So does its Jacobian.",
            backward_summed_over_queries,
        ),
        Mistake("added", "added where it should be subtracted", "What must a row of dS add up to?", backward_added),
        Mistake(
            "sign_flipped",
            "dQ and dK with the opposite sign",
            "A key whose value is wanted more than the average should gain.",
            backward_sign_flipped,
        ),
        Mistake(
            "forward_not_scaled",
            "the scores were never scaled",
            "The weights on the way back are those of the way out, √d_k included.",
            backward_forward_not_scaled,
        ),
        Mistake("swapped", "dQ and dK in each other's place", "The order is that of the arguments.", backward_swapped),
        Mistake(
            "weights_left_out",
            "dV without the weights",
            "A value that nobody looked at: how much gradient should it get?",
            backward_uniform_values,
        ),
        Mistake(
            "key_scale_forgotten",
            "√d_k forgotten for the keys",
            "Queries and keys meet in one product, and it was divided.",
            backward_key_scale_forgotten,
        ),
    ],
    alternatives=[
        backward_by_einsum,
        backward_from_the_output,
        backward_from_jacobians,
        backward_scaled_scores,
        backward_by_loops,
    ],
)


# ---------------------------------------------------------------- tiled_attention


def cases_tiled_attention(draw):
    def make(dtype, *lead, block=3, queries=5, keys=7):
        d_k = width(dtype)
        Q, K = draw.normal(*lead, queries, d_k, dtype=dtype), draw.normal(*lead, keys, d_k, dtype=dtype)
        return Q, K, draw.normal(*lead, keys, 3, dtype=dtype), block

    def rising(sign):
        """float64 scores that climb from -9600 to 9600 (or fall), key by key, with a little noise."""
        Q, K = draw.normal(4, 4, dtype=torch.float64), draw.normal(7, 4, dtype=torch.float64)
        Q[:, 0], K[:, 0] = 50.0, torch.arange(-3, 4, dtype=torch.float64) * 128 * sign
        return Q, K, draw.normal(7, 3, dtype=torch.float64), 2

    def low():
        """float64 scores that are all near -9600."""
        Q, K = draw.normal(4, 4, dtype=torch.float64), draw.normal(7, 4, dtype=torch.float64)
        Q[:, 0], K[:, 0] = 50.0, -384.0
        return Q, K, draw.normal(7, 3, dtype=torch.float64), 3

    def long(*lead, queries, keys, block, d_k):
        Q, K = draw.normal(*lead, queries, d_k), draw.normal(*lead, keys, d_k)
        return Case(
            (Q, K, draw.normal(*lead, keys, 3), block),
            part=MEMORY,
            via="in_little_memory",
            note=f"{queries} queries, {keys} keys, block {block}",
        )

    far = far_scores(draw, 2)
    return [
        *tensor_cases(make),
        Case(make(torch.float32, block=2), note="block 2, 7 keys"),
        Case(make(torch.float64, 2, 3, block=4), part=LEADING, gradient=True),
        Case(make(torch.float32, 2, block=1), part="one key at a time"),
        Case(make(torch.float32, keys=6), part="blocks that divide T_k", note="block 3, 6 keys"),
        Case(make(torch.float32, block=7), part="one block for all keys", note="block 7, 7 keys"),
        Case(make(torch.float32, block=10), part="one block for all keys", note="block 10, 7 keys"),
        Case(make(torch.float32, keys=1), part="a single key"),
        Case((*far, draw.normal(2, 7, 3, dtype=torch.float64), 2), part=LARGE),
        Case(rising(1), part=LARGE, note="scores that climb from -9600 to 9600"),
        Case(rising(-1), part=LARGE, note="scores that fall from 9600 to -9600", gradient=True),
        Case(low(), part=LARGE, note="scores near -9600, all of them"),
        long(queries=80, keys=96, block=8, d_k=4),
        long(2, queries=40, keys=90, block=16, d_k=4),
        long(queries=10, keys=200, block=16, d_k=2),  # fewer queries than a block: tiling those would not help
    ]


def tiled_scores_collected(Q, K, V, block):
    blocks = [plain_scores(Q, part) / Q.shape[-1] ** 0.5 for part in K.split(block, dim=-2)]
    return torch.softmax(torch.cat(blocks, dim=-1), dim=-1) @ V


def tiled_queries(Q, K, V, block):
    return torch.cat([_weights(part, K) @ V for part in Q.split(block, dim=-2)], dim=-2)


def _streamed(Q, K, V, block, *, scale=None, shrink_sum=True, shrink_out=True, start=-math.inf, divide=True, keys=None):
    """Tiled attention with switches for what people forget."""
    scale = Q.shape[-1] ** -0.5 if scale is None else scale
    peak = torch.full_like(Q[..., :1], start)
    total, out = torch.zeros_like(peak), torch.zeros(*Q.shape[:-1], V.shape[-1], dtype=Q.dtype)
    for first in range(0, K.shape[-2] if keys is None else keys, block):
        scores = Q @ K[..., first : first + block, :].transpose(-2, -1) * scale
        higher = torch.maximum(peak, scores.detach().amax(dim=-1, keepdim=True))
        shrink = (peak - higher).exp()
        powers = (scores - higher).exp()
        total = (total * shrink if shrink_sum else total) + powers.sum(dim=-1, keepdim=True)
        out = (out * shrink if shrink_out else out) + powers @ V[..., first : first + block, :]
        peak = higher
    return out / total if divide else out


def tiled_last_block_dropped(Q, K, V, block):
    whole = K.shape[-2] // block * block
    return _streamed(Q, K, V, block, keys=whole) if whole else torch.zeros(*Q.shape[:-1], V.shape[-1], dtype=Q.dtype)


def tiled_never_shrunk(Q, K, V, block):
    return _streamed(Q, K, V, block, shrink_sum=False, shrink_out=False)


def tiled_sum_not_shrunk(Q, K, V, block):
    return _streamed(Q, K, V, block, shrink_sum=False)


def tiled_output_not_shrunk(Q, K, V, block):
    return _streamed(Q, K, V, block, shrink_out=False)


def tiled_starts_at_zero(Q, K, V, block):
    return _streamed(Q, K, V, block, start=0.0)


def tiled_not_divided(Q, K, V, block):
    return _streamed(Q, K, V, block, divide=False)


def tiled_not_scaled(Q, K, V, block):
    return _streamed(Q, K, V, block, scale=1.0)


def tiled_divided_by_d_k(Q, K, V, block):
    return _streamed(Q, K, V, block, scale=1 / Q.shape[-1])


def tiled_average_of_blocks(Q, K, V, block):
    parts = [_weights(Q, k) @ v for k, v in zip(K.split(block, dim=-2), V.split(block, dim=-2), strict=True)]
    return sum(parts) / len(parts)


def tiled_sum_of_blocks(Q, K, V, block):
    return sum(_weights(Q, k) @ v for k, v in zip(K.split(block, dim=-2), V.split(block, dim=-2), strict=True))


def tiled_powers_overflow(Q, K, V, block):
    total = out = 0
    for k, v in zip(K.split(block, dim=-2), V.split(block, dim=-2), strict=True):
        powers = (plain_scores(Q, k) / Q.shape[-1] ** 0.5).exp()
        total, out = total + powers.sum(dim=-1, keepdim=True), out + powers @ v
    return out / total


def tiled_by_slices(Q, K, V, block):
    return _streamed(Q, K, V, block)


def tiled_in_two_passes(Q, K, V, block):
    scale = Q.shape[-1] ** -0.5
    pairs = list(zip(K.split(block, dim=-2), V.split(block, dim=-2), strict=True))
    peaks = torch.stack([(Q @ k.mT * scale).amax(dim=-1) for k, _ in pairs])
    peak = peaks.amax(dim=0).unsqueeze(-1)
    powers = [torch.exp(Q @ k.mT * scale - peak) for k, _ in pairs]
    out = sum(p @ v for p, (_, v) in zip(powers, pairs, strict=True))
    return out / sum(p.sum(dim=-1, keepdim=True) for p in powers)


def tiled_by_logsumexp(Q, K, V, block):
    outs, logs = [], []
    for k, v in zip(K.split(block, dim=-2), V.split(block, dim=-2), strict=True):
        scores = plain_scores(Q, k) / math.sqrt(Q.shape[-1])
        outs.append(scores.softmax(dim=-1) @ v)
        logs.append(scores.logsumexp(dim=-1))
    shares = torch.stack(logs).softmax(dim=0)
    return (shares.unsqueeze(-1) * torch.stack(outs)).sum(dim=0)


def tiled_by_pairs(Q, K, V, block):
    out, log = None, None
    for first in range(0, K.shape[-2], block):
        scores = Q @ K[..., first : first + block, :].transpose(-1, -2) / Q.shape[-1] ** 0.5
        part, part_log = scores.softmax(-1) @ V[..., first : first + block, :], scores.logsumexp(-1, keepdim=True)
        if out is None:
            out, log = part, part_log
        else:
            both = torch.logaddexp(log, part_log)
            out, log = out * (log - both).exp() + part * (part_log - both).exp(), both
    return out


def tiled_on_both_sides(Q, K, V, block):
    return torch.cat([_streamed(part, K, V, block) for part in Q.split(block, dim=-2)], dim=-2)


def tiled_by_broadcasting(Q, K, V, block):
    peak, total, out = None, None, None
    for k, v in zip(K.split(block, dim=-2), V.split(block, dim=-2), strict=True):
        scores = (Q.unsqueeze(-2) * k.unsqueeze(-3)).sum(dim=-1) / Q.shape[-1] ** 0.5
        top = scores.max(dim=-1).values
        higher = top if peak is None else torch.maximum(peak, top)
        powers = torch.exp(scores - higher.unsqueeze(-1))
        sums, mixed = powers.sum(dim=-1), (powers.unsqueeze(-1) * v.unsqueeze(-3)).sum(dim=-2)
        if peak is not None:
            shrink = torch.exp(peak - higher)
            sums, mixed = sums + total * shrink, mixed + out * shrink.unsqueeze(-1)
        peak, total, out = higher, sums, mixed
    return out / total.unsqueeze(-1)


tiled_attention = Exercise(
    "tiled_attention",
    cases_tiled_attention,
    axes=("query", "channel"),
    forbidden=("attention",),
    instead="walk over the keys block by block.",
    mistakes=[
        Mistake(
            "whole_matrix",
            "right numbers, but all scores at once",
            "Where do T_q · T_k numbers come into being? Can a block's values be used before the next block's "
            "scores are known?",
            tiled_scores_collected,
        ),
        Mistake(
            "queries_tiled",
            "the queries in blocks instead of the keys",
            "With fewer queries than a block holds, all scores stand in memory at once.",
            tiled_queries,
        ),
        Mistake(
            "last_block_dropped",
            "the last, shorter block is left out",
            "7 keys in blocks of 3: how many blocks?",
            tiled_last_block_dropped,
        ),
        Mistake(
            "never_shrunk",
            "what was summed before is not adjusted when the maximum rises",
            "Old powers were taken below an old maximum. In which unit are they now?",
            tiled_never_shrunk,
        ),
        Mistake(
            "sum_not_shrunk",
            "the running sum is not adjusted when the maximum rises",
            "Numerator and denominator must be counted in the same unit.",
            tiled_sum_not_shrunk,
        ),
        Mistake(
            "output_not_shrunk",
            "the running output is not adjusted when the maximum rises",
            "Numerator and denominator must be counted in the same unit.",
            tiled_output_not_shrunk,
        ),
        Mistake(
            "maximum_starts_at_zero",
            "a running maximum that starts at 0",
            "And if all scores are at -9600?",
            tiled_starts_at_zero,
        ),
        Mistake(
            "not_divided",
            "not divided by the sum at the end",
            "Weights add up to 1. Which number have you summed and not used?",
            tiled_not_divided,
        ),
        Mistake(
            "not_scaled",
            "the scores were not scaled",
            "Lesson 4: which number keeps their spread at 1?",
            tiled_not_scaled,
        ),
        Mistake(
            "divided_by_d_k",
            "divided by the width instead of its square root",
            "The dot product's variance is d_k. What is its standard deviation?",
            tiled_divided_by_d_k,
        ),
        Mistake(
            "average_of_blocks",
            "a softmax for each block, and the plain average of the results",
            "A block with high scores should count for more than one with low scores.",
            tiled_average_of_blocks,
        ),
        Mistake(
            "sum_of_blocks",
            "a softmax for each block, and the sum of the results",
            "How much weight has a query given away in all?",
            tiled_sum_of_blocks,
        ),
        Mistake(
            "powers_overflow",
            "exponentials taken of the raw scores",
            "e to the 9600 is infinite. Lesson 6: what may be subtracted, and what if it changes on the way?",
            tiled_powers_overflow,
        ),
    ],
    alternatives=[
        tiled_by_slices,
        tiled_in_two_passes,
        tiled_by_logsumexp,
        tiled_by_pairs,
        tiled_on_both_sides,
        tiled_by_broadcasting,
    ],
)

exercises = [
    weighted_values,
    attention,
    Head,
    fixed_head,
    context_shift,
    soft_lookup,
    attention_backward,
    tiled_attention,
]

# ---------------------------------------------------------------- quizzes

quizzes = [
    Quiz(
        "quiz_1",
        "b",
        {
            "a": "A larger weight changes shares, not the range: a weighted average never leaves the range of what it "
            "averages.",
            "b": "Weights are not negative and add up to 1, so in every channel the output lies between the smallest "
            "and the largest value. To reach 5, some value must be at least 5.",
            "c": "Scores decide about shares only. However large they are, the shares add up to 1.",
            "d": "Widths say how many channels there are, not how large the numbers in a channel can be.",
        },
    ),
    Quiz(
        "quiz_2",
        "c",
        {
            "a": "A zero vector among the values would be mixed in with its share. The weights are not moved by it.",
            "b": "Which keys are looked at is decided by queries and keys. Values have no say in it.",
            "c": "Where to look comes from Q and K, what to get from V. So the weights stay, and the output doubles.",
        },
    ),
    Quiz(
        "quiz_3",
        "a",
        {
            "a": "Keys and values move together, so each weight still finds its value, and a sum has no order. The "
            "order of words must be in the vectors themselves: lesson 2.",
            "b": "That would be true if only the values were shuffled, and the keys were not.",
            "c": "The rows of the output belong to queries. Nobody touched those.",
        },
    ),
]
