"""Cases and known mistakes of lesson 7: weighted values, attention, one head, and applications of them."""

import torch

from helpers.checking.vocabulary import DTYPE, GRADIENT, LEADING, MODULE, Case, Exercise, listed_quizzes, tensor_cases

MASK = "a mask"
BROADCAST = "masks that broadcast"
NOTHING = "fully masked rows"
LARGE = "scores up to ±10⁴"
MEMORY = "memory"
SQUARE = "as many queries as keys"
ONES = "leading dimensions of size 1"


def width(dtype):
    """d_k of a case. In float64 it is 4, because its square root is exact even if computed in float32."""
    return 6 if dtype == torch.float32 else 4


def cases_weighted_values(draw):
    def make(dtype, *lead):
        return draw.probabilities(*lead, 5, 7, dtype=dtype), draw.normal(*lead, 7, 3, dtype=dtype)

    f32 = torch.float32
    after_dropout = draw.probabilities(2, 4, 6, dtype=f32) * draw.mask(2, 4, 6) / 0.6
    blind = draw.probabilities(4, 6, dtype=f32)
    blind[1] = 0.0
    return [
        *tensor_cases(make),
        Case(make(torch.float64, 2, 3), part=LEADING, gradient=True),
        Case((after_dropout, draw.normal(2, 6, 5)), part="weights that do not sum to 1"),
        Case((blind, draw.normal(6, 3)), part=NOTHING),
        Case((draw.probabilities(2, 5, 5, dtype=f32), draw.normal(2, 5, 5)), part=SQUARE),
        Case((torch.ones(5, 1), draw.normal(1, 3)), part="a single value"),
    ]


weighted_values = Exercise("weighted_values", cases_weighted_values, axes=("query", "channel")).with_mistakes("""
    softmax_once_more: softmax was applied to the weights once more
        weights @ V -> torch.softmax(weights, dim=-1) @ V
        Your input contains weights already. What does a second softmax make of a weight of 0?
    divided_by_number_of_keys: divided by the number of keys as well
        weights @ V -> weights @ V / V.shape[-2]
        The weights of a row sum to 1 already, so no further division is needed.
    heaviest_value_only: the value with the largest weight, alone
        weights @ V -> torch.take_along_dim(V, weights.argmax(dim=-1).unsqueeze(-1), dim=-2)
        That was hard_lookup in lesson 3. Here every value contributes with its weight.
    rows_divided_by_their_sum: the weights normalized to sum to 1 first
        weights @ V -> weights / weights.sum(dim=-1, keepdim=True).clamp_min(1e-12) @ V
        Use the weights as given, even if a row sums to more or less than 1.
    plain_average: the plain average of all values
        weights @ V -> V.mean(dim=-2, keepdim=True).expand(*weights.shape[:-1], V.shape[-1])
        Every query gets the same output. Where does your code use the weights?
    not_summed: the values weighted but not summed
        weights @ V -> weights.unsqueeze(-1) * V.unsqueeze(-3)
        The result has one row per query. Over which axis must the weighted values still be summed?
    summed_over_queries: summed over the queries instead of the keys
        weights @ V -> (weights.unsqueeze(-1) * V.unsqueeze(-3)).sum(dim=-3)
        The result has one row per query. Which axis must disappear, and over which did you sum?
""")


def one_hot_scores(draw, dtype, queries=5, keys=7):
    """Q, K of width 4 with scores up to ±9600, 3200 apart, so that all correct weights are exactly 0 or 1."""
    Q, K = torch.zeros(queries, 4, dtype=dtype), torch.zeros(keys, 4, dtype=dtype)
    Q[:, 0] = torch.where(draw.integers(0, 2, (queries,)) == 1, 50.0, -50.0)
    K[:, 0] = (draw.permutation(keys) - (keys - 1) / 2) * 128
    return Q, K


def far_scores(draw, *lead, queries=5, keys=7):
    """float64 Q, K of width 4 with arbitrary scores within ±9800."""
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
        """Q, K of width 4 with masked scores near 1e4 and visible ones near -1e4 (for height 100)."""
        mask = draw.mask(7, keep=0.5)
        mask[draw.integer(0, 3)], mask[draw.integer(3, 7)] = False, True
        Q, K = draw.normal(5, 4, dtype=torch.float64), draw.normal(7, 4, dtype=torch.float64)
        Q[:, 0] = 199.0
        K[:, 0] = torch.where(mask, -height, height)
        return Q, K, draw.normal(7, 3, dtype=torch.float64), mask.expand(5, 7).clone()

    def edge():
        """Q, K of width 4 with visible scores of exactly -10,000, the lowest allowed, and arbitrary masked ones."""
        mask = draw.mask(7, keep=0.5)
        mask[draw.integer(0, 3)], mask[draw.integer(3, 7)] = False, True
        Q, K = torch.zeros(5, 4, dtype=torch.float64), draw.normal(7, 4, dtype=torch.float64)
        Q[:, 0] = 200.0
        K[:, 0] = torch.where(mask, -100.0, K[:, 0])
        return Q, K, draw.normal(7, 3, dtype=torch.float64), mask.expand(5, 7).clone()

    pairs = torch.tensor([True, False])[:, None, None]
    float64 = torch.float64
    return [
        *tensor_cases(make),
        Case(make(float64, 2, 3, scale=8.0), part=DTYPE),
        Case(make(float64, 2, 3), part=LEADING, gradient=True),
        Case((*make(torch.float32), draw.mask(5, 7)), part=MASK),
        Case(make(torch.float32), {"mask": draw.mask(5, 7, keep=0.4)}, part=MASK),
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
        Case((*far_scores(draw, 2), draw.normal(2, 7, 3, dtype=float64), draw.mask(5, 7)), part=LARGE),
        Case((*one_hot_scores(draw, torch.float32), draw.normal(7, 3)), part=LARGE),
        Case(hidden_peak(), part=LARGE, gradient=True),
        *(Case(hidden_peak(height), part=LARGE) for height in (30.0, 5.0)),  # less than 10,000 and 1,000 apart
        Case(edge(), part=LARGE, gradient=True, note="scores of -10000 at all visible keys"),
        Case(tuple(draw.normal(2, 5, 5) for _ in range(3)), part=SQUARE),
        Case((*(draw.normal(2, 5, 5) for _ in range(3)), draw.mask(5, 5)), part=SQUARE, note="with a mask"),
        Case((draw.normal(5, 6), draw.normal(1, 6), draw.normal(1, 3)), part="a single key"),
    ]


attention = Exercise(
    "attention",
    cases_attention,
    axes=("query", "channel"),
    forbidden=("attention",),
    instead="build it from two matrix products and a softmax.",
    weights={MASK: 10, NOTHING: 4, LARGE: 8},
).with_mistakes("""
    not_scaled: the scores were not scaled
        / Q.shape[-1] ** 0.5 ->
        Which divisor keeps the standard deviation of the scores at 1 (lesson 4)?
    divided_by_d_k: divided by the width instead of its square root
        / Q.shape[-1] ** 0.5 -> / Q.shape[-1]
        The variance of the dot product is d_k. What is its standard deviation?
    scaled_after_softmax: scaled after the softmax instead of before
        / Q.shape[-1] ** 0.5 ->
        return weighted_values(weights, V), weights -> weights = weights / Q.shape[-1] ** 0.5
        |    return weighted_values(weights, V), weights
        Sum one row of your weights. Is it 1?
    softmax_over_queries: softmax over the queries instead of the keys
        softmax(scores, dim=-1) -> softmax(scores, dim=-2)
        The weights of one query sum to 1. Along which axis is that?
    mask_ignored: the mask is not used
        scores = scores.masked_fill(~mask, float("-inf")) -> pass
        weights = weights.masked_fill(~mask, 0.0) -> pass
        Your function takes a mask. Where does it use it?
    mask_inverted: the mask inverted, so that visible keys are masked
        ~mask, float("-inf") -> mask, float("-inf")
        ~mask, 0.0 -> mask, 0.0
        True means that the query may attend to the key.
    masked_after_softmax: the mask applied after the softmax
        scores = scores.masked_fill(~mask, float("-inf")) -> pass
        The weight that you removed from the masked keys is missing. Sum a row of your weights.
    divided_again: softmax, then the mask, then the rows divided by their sums
        scores = scores.masked_fill(~mask, float("-inf")) -> pass
        weights = weights.masked_fill(~mask, 0.0)
        -> weights = weights * mask / (weights * mask).sum(dim=-1, keepdim=True).clamp_min(1e-12)
        What does softmax leave for the visible keys if a masked score is far above theirs?
    nan_rows_left: NaN left in fully masked rows
        weights = weights.masked_fill(~mask, 0.0) -> pass
        A softmax over only -inf divides 0 by 0. How did masked_softmax handle this in lesson 5?
    uniform_rows: equal weights in fully masked rows
        float("-inf") -> -1e9
        weights = weights.masked_fill(~mask, 0.0) -> pass
        If all scores are equally low, softmax gives equal weights. Which weights should such a row have?
    gradient_is_nan: an added -inf, with NaN hidden in the gradient
        scores = scores.masked_fill(~mask, float("-inf"))
        -> scores = scores + torch.zeros(mask.shape, dtype=Q.dtype).masked_fill(~mask, float("-inf"))
        weights = weights.masked_fill(~mask, 0.0) -> weights = weights.nan_to_num()
        The values are right. Which way of masking a score also gives it gradient 0 (lesson 5)?
    bool_mask_added: the boolean mask itself added to the scores
        scores = scores.masked_fill(~mask, float("-inf")) -> scores = scores + mask
        weights = weights.masked_fill(~mask, 0.0) -> pass
        Adding True adds 1, and adding False adds 0. The mask says where to replace a score, not what to add to it.
""")


def cases_head(draw):
    def module(x, *rest, d_head=None, **kwargs):
        D, dtype = x.shape[-1], x.dtype
        d_head = d_head or width(dtype)
        state = {
            f"W_{name}.weight": draw.normal(d_head, D, dtype=dtype, scale=1.5 * D**-0.5) for name in ("q", "k", "v")
        }
        return ((D, d_head), state, (x, *rest), kwargs)

    def case(x, *rest, part="values", gradient=False, d_head=None, note="", **kwargs):
        return Case(module(x, *rest, d_head=d_head, **kwargs), part=part, gradient=gradient, via=MODULE, note=note)

    def called_again():
        init, state, call, _ = module(draw.normal(2, 5, 10))
        note = "one module called twice in training mode"
        calls = call, (draw.normal(2, 5, 10),)
        return Case((init, state, *calls), {"training": True}, part="no dropout", via="module_called_again", note=note)

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
        case(draw.normal(1, 5, 10), part=LEADING, note=ONES),
        case(draw.normal(2, 1, 5, 10), part=LEADING, note=ONES),
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
        case(draw.normal(3, 1, 10), part="any number of tokens", note="a single token"),
        case(draw.normal(300, 3), d_head=2, part="any number of tokens", note="300 tokens"),
        called_again(),
        Case(((10, 6), ("W_q", "W_k", "W_v")), part="three linear layers without bias", via="parts_made"),
    ]


CALL = "out, _ = attention(self.W_q(x), self.W_k(x), self.W_v(x), mask)"
SCORES = "S = self.W_q(x) @ self.W_k(x).transpose(-2, -1) / self.W_q.out_features ** 0.5"
AttentionHead = Exercise(
    "AttentionHead",
    cases_head,
    axes=("token", "channel"),
    forbidden=("attention",),
    instead="use your own attention.",
    weights={MASK: 8},
).with_mistakes(f"""
    not_scaled: the scores were not scaled
        attention(self.W_q(x) -> attention(self.W_q(x) * self.W_q.out_features ** 0.5
        Which divisor keeps the standard deviation of the scores at 1 (lesson 4)?
    scaled_by_model_width: scaled by the width of the model
        attention(self.W_q(x) -> attention(self.W_q(x) * (self.W_q.out_features / x.shape[-1]) ** 0.5
        How many products are summed in one score? Exercise 4.5 has the same bug.
    keys_and_values_swapped: keys and values swapped
        self.W_k(x), self.W_v(x) -> self.W_v(x), self.W_k(x)
        attention takes Q, K and V in this order. Which of your projections is compared with the queries?
    keys_ask: keys and queries swapped
        self.W_q(x), self.W_k(x) -> self.W_k(x), self.W_q(x)
        Each row of the scores belongs to one query.
    softmax_over_queries: softmax over the queries instead of the keys
        {CALL} -> {SCORES}
        |        S = S if mask is None else S.masked_fill(~mask, float('-inf'))
        |        W = torch.softmax(S, dim=-2)
        |        out, _ = (W if mask is None else W.masked_fill(~mask, 0.0)) @ self.W_v(x), W
        The weights of one query sum to 1. Along which axis is that?
    mask_ignored: the mask is not used
        self.W_v(x), mask -> self.W_v(x)
        forward takes a mask. Where does it go from there?
    mask_inverted: the mask inverted, so that visible tokens are masked
        self.W_v(x), mask -> self.W_v(x), None if mask is None else ~mask
        True means that the query may attend to the key.
    always_causal: a causal mask of its own
        self.W_v(x), mask
        -> self.W_v(x), torch.ones(x.shape[-2], x.shape[-2], dtype=torch.bool).tril() & (True if mask is None else mask)
        Only the caller's mask restricts attention. Without a mask every token attends to every token.
    masked_after_softmax: the mask applied after the softmax
        {CALL} -> {SCORES}
        |        W = torch.softmax(S, dim=-1)
        |        out, _ = (W if mask is None else W * mask) @ self.W_v(x), W
        The weight of the masked tokens is missing. The weights of a row should still sum to 1.
    nan_rows_left: NaN in fully masked rows
        {CALL} -> {SCORES}
        |        S = S if mask is None else S.masked_fill(~mask, float('-inf'))
        |        W = torch.softmax(S, dim=-1)
        |        out, _ = W @ self.W_v(x), W
        Your attention handles such rows, so call it here.
    uniform_rows: the average of all values in fully masked rows
        {CALL} -> {SCORES}
        |        S = S if mask is None else S.masked_fill(~mask, -1e9)
        |        W = torch.softmax(S, dim=-1)
        |        out, _ = W @ self.W_v(x), W
        A token that may attend to nothing should get zeros.
    values_not_projected: the tokens themselves weighted instead of their values
        self.W_v(x), mask -> x, mask
        One of your three layers is never used.
    values_from_keys: the keys used as values
        self.W_v(x), mask -> self.W_k(x), mask
        Keys and values are two different projections of the token.
    values_added: each token's own value added to the output
        return out -> return out + self.W_v(x)
        A residual connection like this follows in lesson 9, around all heads together. A head returns the weighted values only.
""")


def cases_fixed_head(draw):
    def make(dtype, *lead, T=5, D=10, d_k=None, d_v=3):
        x = draw.normal(*lead, T, D, dtype=dtype)
        d_k = d_k or width(dtype)
        W_q, W_k = (draw.normal(d_k, D, dtype=dtype, scale=1.5 * D**-0.5) for _ in range(2))
        return x, W_q, W_k, draw.normal(d_v, D, dtype=dtype)

    return [
        *tensor_cases(make, leads=((4,), (), (2, 3))),
        Case(make(torch.float32, 3, T=4, D=7, d_k=9, d_v=11), note="a head wider than the model"),
        Case(make(torch.float32, 2, T=1), part="a single token"),
    ]


fixed_head = Exercise(
    "fixed_head",
    cases_fixed_head,
    axes=("token", "channel"),
    forbidden=("attention",),
    instead="fix the lines themselves.",
).with_mistakes("""
    scaled_after_softmax: scaled after the softmax, as in the original
        * W_q.shape[0] ** -0.5 ->
        torch.softmax(scores, dim=-1) @ v -> torch.softmax(scores, dim=-1) * W_q.shape[0] ** -0.5 @ v
        Give every token the same value, (1, 1, 1), as above. What comes out of yours, and where does that number come
        from?
    not_scaled: the scores are no longer scaled
        * W_q.shape[0] ** -0.5 ->
        The weights sum to 1 again, but the standard deviation of the scores grows with the width.
    scaled_twice: scaled before and after the softmax
        torch.softmax(scores, dim=-1) @ v -> torch.softmax(scores, dim=-1) * W_q.shape[0] ** -0.5 @ v
        Only one of the two divisions is right.
    divided_by_d_k: the width without its square root
        * W_q.shape[0] ** -0.5 -> / W_q.shape[0]
        Should the scores be divided by their variance, or by their standard deviation?
    multiplied: multiplied instead of divided
        ** -0.5 -> ** 0.5
        The factor in the original is one over a square root. How do you apply it?
    scaled_by_model_width: scaled by the width of the model
        * W_q.shape[0] ** -0.5 -> / x.shape[-1] ** 0.5
        How many entries has one row of q?
    softmax_over_queries: softmax over the queries instead of the keys
        dim=-1) @ v -> dim=-2) @ v
        The original uses the right axis.
""")


def cases_context_shift(draw):
    def make(dtype, *lead):
        lengths = draw.uniform(*lead, 5, 1, low=0.5, high=3.0, dtype=dtype)
        before = draw.normal(*lead, 5, 6, dtype=dtype)
        after = draw.normal(*lead, 5, 6, dtype=dtype) + 0.5 * before
        after[..., 0, :] -= 3 * before[..., 0, :]  # one word always changes its direction
        return before * lengths, after

    before, after = make(torch.float32)
    zero_before, zero_after = before.clone(), after.clone()
    zero_before[1], zero_after[3] = 0.0, 0.0
    zero_before[4], zero_after[4] = 0.0, 0.0
    x = draw.normal(5, 6)
    signs = draw.integers(0, 2, (5, 6)).float() * 2 - 1
    tilted = signs * draw.uniform(5, 6, low=0.2, high=1.0)  # far from orthogonal
    batch = draw.normal(2, 4, 3, dtype=torch.float64)
    lengths, zero = "very short and very long vectors", "a zero vector"
    return [
        *tensor_cases(make),
        Case(make(torch.float64, 2, 3), part=LEADING, gradient=True),
        Case((x, 2.5 * x), part="longer or shorter only", note="the same directions, 2.5 times as long"),
        Case((x, x.clone()), part="longer or shorter only", note="the same vectors before and after"),
        Case((x, -0.5 * x), part="opposite directions"),
        Case((0.001 * signs, 0.001 * tilted), part=lengths, tolerance=1e-4, note="lengths of a thousandth"),
        Case((300 * signs, 0.001 * tilted), part=lengths, note="lengths of hundreds and of a thousandth"),
        Case((zero_before, zero_after), part=zero),
        Case((zero_before, zero_after), part=zero, via="finite_gradients", note="gradients at zero vectors"),
        Case((batch, torch.zeros_like(batch)), part=zero, note="zero vectors after attention"),
    ]


context_shift = Exercise("context_shift", cases_context_shift).with_mistakes("""
    cosine_itself: the cosine instead of one minus it
        return 1 - dots -> return dots
        What should the result be for a word that didn't change?
    distance: the distance between the two vectors
        1 - dots / lengths.masked_fill(lengths == 0, 1.0) -> (after - before).norm(dim=-1)
        A vector twice as long has the same direction, so its shift is 0. Which shift do you get?
    lengths_of_everything: one length for all vectors together
        lengths.masked_fill(lengths == 0, 1.0) -> (before.norm() * after.norm())
        A norm without a dim is a single number. How many lengths do T tokens have?
    dot_products: dot products instead of cosines
        1 - dots / lengths.masked_fill(lengths == 0, 1.0) -> 1 - dots
        Which two lengths does a cosine divide by?
    sign_lost: the sign of the cosine is lost
        1 - dots / lengths.masked_fill(lengths == 0, 1.0)
        -> 1 - (dots / lengths.masked_fill(lengths == 0, 1.0)).abs()
        A reversed vector has the largest shift, 2. Which shift do you get for it?
    over_tokens: compared along the tokens instead of the channels
        (before * after).sum(dim=-1) -> (before * after).sum(dim=-2)
        before.norm(dim=-1) * after.norm(dim=-1) -> before.norm(dim=-2) * after.norm(dim=-2)
        The result has one number per token. Which axis disappears?
    nan_for_zero: NaN for a zero vector
        lengths.masked_fill(lengths == 0, 1.0) -> lengths
        Your code divides 0 by 0. A zero vector has cosine 0.
    zero_vector_unmoved: a zero vector treated as unchanged
        1 - dots / lengths.masked_fill(lengths == 0, 1.0) -> (1 - dots / lengths).nan_to_num(0.0)
        The cosine of a zero vector is 0. What is its shift, then?
    epsilon_on_the_product: 1e-8 added to the product of the lengths
        lengths.masked_fill(lengths == 0, 1.0) -> (lengths + 1e-8)
        For two vectors of length 0.001, compare the product of their lengths with your epsilon.
    one_length_divided: divided by the length before twice, and never by the one after
        before.norm(dim=-1) * after.norm(dim=-1) -> before.norm(dim=-1) ** 2
        There are two vectors and two lengths. Does your second length belong to the right vector?
""")


def cases_soft_lookup(draw):
    def make(dtype):
        return draw.normal(4, dtype=dtype), draw.normal(6, 4, dtype=dtype), draw.normal(6, 3, dtype=dtype)

    def far_apart():
        """The largest |score| is 4, whose exponential at temperature 1/512 overflows float64."""
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


soft_lookup = Exercise("soft_lookup", cases_soft_lookup).with_mistakes("""
    hard: the best match alone
        weights @ values -> values[weights.argmax()]
        That was hard_lookup in lesson 3. Here every value contributes with its weight.
    scaled_by_root: the scores were divided by √d as well
        keys @ query / temperature -> keys @ query / len(query) ** 0.5 / temperature
        Here the temperature is the only divisor.
    temperature_multiplied: multiplied by the temperature
        query / temperature -> query * temperature
        A small temperature should make the search more selective. Does it in your function?
    temperature_ignored: the temperature is not used
        query / temperature -> query
        Your function takes a temperature. Where does it use it?
    temperature_after_softmax: the temperature comes after the softmax
        torch.softmax(keys @ query / temperature, dim=0) -> torch.softmax(keys @ query, dim=0) / temperature
        A blend of equal values is that value. What does your function return at temperature 2?
    scores_as_weights: the scores used as weights
        torch.softmax(keys @ query / temperature, dim=0) -> keys @ query / temperature
        Weights can't be negative. Which function turns scores into weights?
    cosine: cosines instead of dot products
        keys @ query -> torch.nn.functional.normalize(keys, dim=-1) @ torch.nn.functional.normalize(query, dim=0)
        A longer key gets a larger score here, so don't normalize.
    not_divided: exponentials that are not divided by their sum
        weights @ values -> torch.exp((keys @ query - (keys @ query).max()) / temperature) @ values
        One step of softmax is missing. What makes the weights sum to 1?
    weights_returned: the weights instead of the blend
        weights @ values -> weights
        One step is missing. Use the weights to average the values.
    keys_averaged: the keys averaged instead of the values
        weights @ values -> weights @ keys
        Keys are for finding a video. Which tensor holds what the search returns?
    powers_overflow: exponentials taken of the raw scores
        torch.softmax(keys @ query / temperature, dim=0)
        -> (keys @ query / temperature).exp() / (keys @ query / temperature).exp().sum()
        Divide a score of 3 by a temperature of 1/512. What is the exponential of the result?
""")


def cases_attention_backward(draw):
    def make(dtype, *lead, keys=7):
        d_k = width(dtype)
        Q, K = draw.normal(*lead, 5, d_k, dtype=dtype), draw.normal(*lead, keys, d_k, dtype=dtype)
        return Q, K, draw.normal(*lead, keys, 3, dtype=dtype), draw.normal(*lead, 5, 3, dtype=dtype)

    far = far_scores(draw)
    return [
        *tensor_cases(make),
        Case(make(torch.float64, 2, 3), part=LEADING),
        Case(make(torch.float32, keys=5), part=SQUARE),
        Case(make(torch.float64, 2, keys=5), part=SQUARE),
        Case((*far, draw.normal(7, 3, dtype=torch.float64), draw.normal(5, 3, dtype=torch.float64)), part=LARGE),
        Case(make(torch.float32, keys=1), part="a single key"),
    ]


attention_backward = Exercise(
    "attention_backward", cases_attention_backward, forbidden=("autograd",), instead="follow the chain rule by hand."
).with_mistakes("""
    scale_forgotten: √d_k forgotten in the backward pass
        (dW - mean) * scale -> (dW - mean)
        The forward pass divides the scores. What does a division do to the gradient?
    scaled_twice: divided by √d_k twice
        (dW - mean) * scale -> (dW - mean) * scale * scale
        One division in the forward pass gives one division in the backward pass.
    softmax_skipped: the softmax left out in the backward pass
        weights * (dW - mean) -> dW
        One more step leads from the gradient at the weights to the gradient at the scores.
    diagonal_only: only the diagonal of the softmax's Jacobian
        weights * (dW - mean) -> weights * (1 - weights) * dW
        When one weight rises, the others of its row fall. Your code must use them too.
    mean_not_subtracted: the mean was not subtracted
        (dW - mean) -> dW
        Adding a constant to all scores of a row changes nothing. What must a row of dS sum to?
    plain_mean: the plain mean subtracted instead of the weighted one
        (weights * dW).sum( -> dW.mean(
        The mean of a row is weighted by the attention weights.
    summed_over_queries: summed over the queries instead of the keys
        sum(dim=-1 -> sum(dim=-2
        Softmax runs along each row, and so does its Jacobian.
    added: added instead of subtracted
        dW - mean -> dW + mean
        What must a row of dS sum to?
    sign_flipped: dQ and dK with the opposite sign
        dS = weights -> dS = -weights
        Does the loss rise or fall when a key with g·v above the mean gets more weight?
    forward_not_scaled: the scores were never scaled
        K.transpose(-2, -1) * scale -> K.transpose(-2, -1)
        (dW - mean) * scale -> (dW - mean)
        The weights of the backward pass are those of the forward pass, √d_k included.
    weights_left_out: dV without the weights
        weights.transpose(-2, -1) @ grad_out -> grad_out.mean(dim=-2, keepdim=True).expand(V.shape)
        How large should the gradient of a value be to which no query attends?
    key_scale_forgotten: √d_k forgotten for the keys
        dS.transpose(-2, -1) @ Q -> dS.transpose(-2, -1) @ Q / scale
        The division applies to the product of queries and keys, so it affects both gradients.
""")


def cases_tiled_attention(draw):
    def make(dtype, *lead, block=3, queries=5, keys=7):
        d_k = width(dtype)
        Q, K = draw.normal(*lead, queries, d_k, dtype=dtype), draw.normal(*lead, keys, d_k, dtype=dtype)
        return Q, K, draw.normal(*lead, keys, 3, dtype=dtype), block

    def rising(sign):
        """float64 scores that rise from -9600 to 9600 (or fall) from key to key, with a little noise."""
        Q, K = draw.normal(4, 4, dtype=torch.float64), draw.normal(7, 4, dtype=torch.float64)
        Q[:, 0], K[:, 0] = 50.0, torch.arange(-3, 4, dtype=torch.float64) * 128 * sign
        return Q, K, draw.normal(7, 3, dtype=torch.float64), 2

    def low():
        """float64 scores near -9600."""
        Q, K = draw.normal(4, 4, dtype=torch.float64), draw.normal(7, 4, dtype=torch.float64)
        Q[:, 0], K[:, 0] = 50.0, -384.0
        return Q, K, draw.normal(7, 3, dtype=torch.float64), 3

    def long(*lead, queries, keys, block, d_k, d_v=2, together=False):
        Q, K = draw.normal(*lead, queries, d_k), draw.normal(*lead, keys, d_k)
        return Case(
            (Q, K, draw.normal(*lead, keys, d_v), block),
            {"together": together},
            part=MEMORY,
            via="in_little_memory",
            note=f"{queries} queries, {keys} keys, block {block}",
        )

    far = far_scores(draw, 2)
    return [
        *tensor_cases(make),
        Case(make(torch.float32, 2, queries=6, keys=6, block=4), part=SQUARE),
        Case(make(torch.float32, block=2), note="block 2, 7 keys"),
        Case(make(torch.float64, 2, 3, block=4), part=LEADING, gradient=True),
        Case(make(torch.float32, 2, block=1), part="one key at a time"),
        Case(make(torch.float32, keys=6), part="blocks that divide T_k", note="block 3, 6 keys"),
        Case(make(torch.float32, block=7), part="one block for all keys", note="block 7, 7 keys"),
        Case(make(torch.float32, block=10), part="one block for all keys", note="block 10, 7 keys"),
        Case(make(torch.float32, keys=1), part="a single key"),
        Case((*far, draw.normal(2, 7, 3, dtype=torch.float64), 2), part=LARGE),
        Case(rising(1), part=LARGE, note="scores that rise from -9600 to 9600"),
        Case(rising(-1), part=LARGE, note="scores that fall from 9600 to -9600", gradient=True),
        Case(low(), part=LARGE, note="scores near -9600, all of them"),
        long(queries=80, keys=96, block=8, d_k=4),
        long(2, queries=40, keys=90, block=16, d_k=4),
        long(queries=10, keys=200, block=16, d_k=2),  # fewer queries than a block, so tiling them saves nothing
        long(queries=13, keys=22, block=4, d_k=3),  # a fixed block size could cover all keys
        long(queries=12, keys=600, block=16, d_k=2, together=True),
        long(2, queries=12, keys=500, block=16, d_k=2, together=True),
        long(queries=12, keys=600, block=2, d_k=2, d_v=6, together=True),  # the blocks' results exceed all scores
    ]


START = 'peak = torch.full_like(Q[..., :1], float("-inf"))'
EACH = "torch.softmax(Q @ k.transpose(-2, -1) / Q.shape[-1] ** 0.5, dim=-1) @ v"
PARTS = f"parts = [{EACH} for k, v in zip(K.split(block, dim=-2), V.split(block, dim=-2))]"
tiled_attention = Exercise(
    "tiled_attention",
    cases_tiled_attention,
    axes=("query", "channel"),
    forbidden=("attention",),
    instead="walk over the keys block by block.",
    weights={MEMORY: 100, LARGE: 12},
).with_mistakes(f"""
    whole_matrix: the right output, but all scores at once
        {START} -> return torch.softmax(Q @ K.transpose(-2, -1) / Q.shape[-1] ** 0.5, dim=-1) @ V
        Which line creates T_q · T_k scores? Use a block's values before you compute the next block's scores.
    blocks_kept: the right output, but an entry for every score is kept until the end
        {START} -> S = [Q @ k.transpose(-2, -1) / Q.shape[-1] ** 0.5 for k in K.split(block, dim=-2)]
        |    top = torch.stack([s.detach().amax(dim=-1, keepdim=True) for s in S]).amax(dim=0)
        |    pairs = [((s - top).exp(), v) for s, v in zip(S, V.split(block, dim=-2))]
        |    return sum(p @ v for p, v in pairs) / sum(p.sum(dim=-1, keepdim=True) for p, _ in pairs)
        Many small tensors in a list need as much memory as a large one. What must you keep of a block for the next one?
    last_block_dropped: the last, shorter block is left out
        in blocks: -> in list(blocks)[: K.shape[-2] // block]:
        How many blocks of 3 do 7 keys need?
    never_shrunk: what was summed before is not adjusted when the maximum rises
        total * repair -> total
        out * repair -> out
        The earlier exponentials refer to the old maximum. Rescale them when the maximum rises.
    not_divided: the weighted values, not divided by the sum of the exponentials
        return out / total -> return out
        The last row of the table on paper has two sums. What is done with them at the end?
    output_not_shrunk: the running output is not adjusted when the maximum rises
        out * repair -> out
        Numerator and denominator must refer to the same maximum.
    maximum_starts_at_zero: a running maximum that starts at 0
        float("-inf") -> 0.0
        What happens if all scores are -9600?
    average_of_blocks: a softmax for each block, and the plain average of the results
        {START} -> {PARTS}
        |    return sum(parts) / len(parts)
        A block with high scores should count for more than one with low scores.
    powers_overflow: exponentials taken of the raw scores
        torch.exp(scores - higher), torch.exp(peak - higher) -> torch.exp(scores), torch.ones_like(peak)
        e to the power of 9600 overflows. What may you subtract from all scores (lesson 6), and what if it changes at a later block?
    not_scaled: the scores were not scaled
        / Q.shape[-1] ** 0.5 ->
        Which divisor keeps the standard deviation of the scores at 1 (lesson 4)?
    one_maximum_for_all: one maximum for all queries
        scores.amax(dim=-1, keepdim=True) -> scores.max()
        The scores of two queries may lie 20,000 apart, so each query needs its own maximum.
""")

exercises = [
    weighted_values,
    attention,
    AttentionHead,
    fixed_head,
    context_shift,
    soft_lookup,
    attention_backward,
    tiled_attention,
]

quizzes = listed_quizzes("""
    quiz_1: b
        a: A larger weight moves the average toward 3, but a weighted average never leaves the range of what it
           averages.
        b: Weights are not negative and sum to 1, so in every channel the output lies between the smallest and the
           largest value. To reach 5, some value must be at least 5.
        c: Scores only determine the weights. However large the scores are, the weights sum to 1.
        d: The width says how many channels there are, and not how large the values in a channel can be.
    quiz_2: c
        a: The rows of the output belong to the queries, and those stay in their order.
        b: That would be true if only the values were shuffled, and the keys were not.
        c: Keys and values move together, so each weight still belongs to its value, and a sum has no order. The order
           of words must be in the vectors themselves (lesson 2).
""")
