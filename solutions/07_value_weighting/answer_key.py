"""Cases and known mistakes of lesson 7: weighted values, attention, one head, and what can be built of them."""

import torch

from helpers.checking.vocabulary import DTYPE, GRADIENT, LEADING, Case, Exercise, listed_quizzes, tensor_cases

MASK = "a mask"
BROADCAST = "masks that broadcast"
NOTHING = "rows with nothing to see"
LARGE = "scores up to ±10⁴"
MEMORY = "memory"
SQUARE = "as many queries as keys"
ONES = "leading dimensions of size 1"


def width(dtype):
    """d_k of a case: 4 in float64, as its root is exact even where it was rounded to float32."""
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
        Case((draw.probabilities(3, 5, 7, dtype=f32), draw.normal(3, 7, 1)), part=LEADING, note="values of width 1"),
        Case((draw.probabilities(2, 5, 5, dtype=f32), draw.normal(2, 5, 5)), part=SQUARE),
        Case((torch.ones(5, 1), draw.normal(1, 3)), part="a single value"),
    ]


weighted_values = Exercise("weighted_values", cases_weighted_values, axes=("query", "channel")).with_mistakes("""
    softmax_once_more: softmax was applied to the weights once more
        weights @ V -> torch.softmax(weights, dim=-1) @ V
        The weights are shares already. What does a second softmax make of a share of 0?
    divided_by_number_of_keys: divided by the number of keys as well
        weights @ V -> weights @ V / V.shape[-2]
        The weights of a row add up to 1. Who has done the dividing already?
    heaviest_value_only: the value with the largest weight, alone
        weights @ V -> torch.take_along_dim(V, weights.argmax(dim=-1).unsqueeze(-1), dim=-2)
        That was hard_lookup, in lesson 3. What do the other weights do here?
    rows_divided_by_their_sum: the weights were made to add up to 1 first
        weights @ V -> weights / weights.sum(dim=-1, keepdim=True).clamp_min(1e-12) @ V
        Take the weights as they come. Somebody may hand you rows that add up to more or less than 1.
    plain_average: the plain average of all values
        weights @ V -> V.mean(dim=-2, keepdim=True).expand(*weights.shape[:-1], V.shape[-1])
        Every query gets the same from you. Where do its weights come in?
    not_summed: the values were weighted but not added up
        weights @ V -> weights.unsqueeze(-1) * V.unsqueeze(-3)
        One row for each query: over which axis do the weighted values still have to be added?
    summed_over_queries: summed over the queries instead of the keys
        weights @ V -> (weights.unsqueeze(-1) * V.unsqueeze(-3)).sum(dim=-3)
        One row for each query: which axis has to disappear, and which did you add up?
    transposed: rows and columns swapped
        weights @ V -> (weights @ V).transpose(-2, -1)
        A row for each query, a column for each channel of the values.
""")


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

    def edge():
        """Visible scores of exactly -10,000, the lowest of the contract, and blocked ones anywhere; Q and K of width 49."""
        mask = draw.mask(7, keep=0.5)
        mask[draw.integer(0, 3)], mask[draw.integer(3, 7)] = False, True
        Q, K = torch.zeros(5, 49, dtype=torch.float64), draw.normal(7, 49, dtype=torch.float64)
        Q[:, 0] = 700.0
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
        *(Case(hidden_peak(height), part=LARGE) for height in (30.0, 5.0)),  # less than 10,000 and than 1,000 apart
        Case(edge(), part=LARGE, gradient=True, note="all that may be seen has a score of -10000"),
        Case(tuple(draw.normal(2, 5, 5) for _ in range(3)), part=SQUARE),
        Case((*(draw.normal(2, 5, 5) for _ in range(3)), draw.mask(5, 5)), part=SQUARE, note="with a mask"),
        Case((*make(torch.float32, 1), draw.mask(1, 5, 7)), part=BROADCAST, note=ONES),
        Case((*make(torch.float32, 2, 1), draw.mask(2, 1, 1, 7)), part=BROADCAST, note=ONES),
        Case((draw.normal(5, 1), draw.normal(7, 1), draw.normal(7, 3)), part="d_k = 1"),
        Case((draw.normal(5, 6), draw.normal(1, 6), draw.normal(1, 3)), part="a single key"),
    ]


attention = Exercise(
    "attention",
    cases_attention,
    axes=("query", "channel"),
    forbidden=("attention",),
    instead="build it from two matrix products and a softmax.",
).with_mistakes("""
    not_scaled: the scores were not scaled
        / Q.shape[-1] ** 0.5 ->
        Lesson 4: which number keeps the spread of the scores at 1?
    divided_by_d_k: divided by the width instead of its square root
        / Q.shape[-1] ** 0.5 -> / Q.shape[-1]
        The dot product's variance is d_k. What is its standard deviation?
    half_by_precedence: divided by the width, and then by 2
        / Q.shape[-1] ** 0.5 -> / Q.shape[-1] ** 1 / 2
        Which of ** and / does Python do first? Try 9 ** 1 / 2 in a cell of its own.
    scaled_by_value_width: scaled by the width of the values
        / Q.shape[-1] ** 0.5 -> / V.shape[-1] ** 0.5
        A score is a sum of products of queries and keys. How many products?
    scaled_after_softmax: scaled after the softmax instead of before
        / Q.shape[-1] ** 0.5 ->
        return weighted_values(weights, V), weights -> weights = weights / Q.shape[-1] ** 0.5
        |    return weighted_values(weights, V), weights
        Add up one row of your weights. Is it 1?
    softmax_over_queries: softmax over the queries instead of the keys
        softmax(scores, dim=-1) -> softmax(scores, dim=-2)
        The weights of one query add up to 1. Along which axis is that?
    keys_reshaped: the keys poured into the right shape instead of transposed
        K.transpose(-2, -1) -> K.reshape(*K.shape[:-2], K.shape[-1], K.shape[-2])
        The shapes fit, but read one column of your reshaped keys: is it still one key?
    mask_ignored: the mask is not used
        scores = scores.masked_fill(~mask, float("-inf")) -> pass
        weights = weights.masked_fill(~mask, 0.0) -> pass
        Your answer takes a mask. What does it do with it?
    mask_inverted: the visible keys blocked and the blocked ones seen
        ~mask, float("-inf") -> mask, float("-inf")
        ~mask, 0.0 -> mask, 0.0
        True means: may attend.
    masked_after_softmax: the mask applied after the softmax
        scores = scores.masked_fill(~mask, float("-inf")) -> pass
        Who got the share that you took away from the blocked keys? Add up a row.
    divided_again: softmax, then the mask, then the rows divided by their sums
        scores = scores.masked_fill(~mask, float("-inf")) -> pass
        weights = weights.masked_fill(~mask, 0.0)
        -> weights = weights * mask / (weights * mask).sum(dim=-1, keepdim=True).clamp_min(1e-12)
        What does softmax leave for the visible keys when a blocked one is far above them?
    nan_rows_left: NaN left in rows with nothing to see
        weights = weights.masked_fill(~mask, 0.0) -> pass
        A softmax over only -inf divides 0 by 0. What did you do about it in lesson 5?
    uniform_rows: equal weights in rows with nothing to see
        float("-inf") -> -1e9
        weights = weights.masked_fill(~mask, 0.0) -> pass
        With one low score everywhere softmax has no preference. Who tells it that nobody may be seen?
    weights_left_behind: the output of a row with nothing to see is zero, its weights are not
        float("-inf") -> -1e9
        weights = weights.masked_fill(~mask, 0.0) -> pass
        return weighted_values(weights, V), weights
        -> return weighted_values(weights if mask is None else weights * mask, V), weights
        You return two things. Mend the row where both come from.
    gradient_is_nan: an added -inf, with NaN hidden in the gradient
        scores = scores.masked_fill(~mask, float("-inf"))
        -> scores = scores + torch.zeros(mask.shape, dtype=Q.dtype).masked_fill(~mask, float("-inf"))
        weights = weights.masked_fill(~mask, 0.0) -> weights = weights.nan_to_num()
        The values look fine. Lesson 5: which way of blocking a score also cuts its gradient?
    minus_10000_added: -10000 added to the blocked scores, as BERT did
        scores.masked_fill(~mask, float("-inf")) -> scores + (~mask) * -10000.0
        What if a blocked score is 9900 and the visible ones are at -9900?
    filled_with_minus_10000: blocked scores set to -10000
        float("-inf") -> -10000.0
        A visible score may itself be -10000. Is your number still far below it?
    filled_with_minus_1000: blocked scores set to a number that a visible one can lie below
        float("-inf") -> -1000.0
        Visible scores go down to -10000. Where does your number stand among them?
    scores_set_to_zero: blocked scores set to 0
        float("-inf") -> 0.0
        weights = weights.masked_fill(~mask, 0.0) -> pass
        A score of 0 is a score like any other: e⁰ is 1, not 0.
    powers_overflow: exponentials taken of the raw scores
        torch.softmax(scores, dim=-1) -> scores.exp() / scores.exp().sum(dim=-1, keepdim=True).clamp_min(1e-30)
        e to the 10000 is infinite in every float. torch.softmax knows a way round.
    swapped_pair: the two results in the other order
        return weighted_values(weights, V), weights -> return weights, weighted_values(weights, V)
        First what the queries get, then where they looked.
    output_alone: the output without the weights
        return weighted_values(weights, V), weights -> return weighted_values(weights, V)
        Two results are asked for. Figures and lesson 8 will want the second one.
    scores_returned: the scores returned where the weights should be
        return weighted_values(weights, V), weights -> return weighted_values(weights, V), scores
        The second result tells what share each key gets.
    through_float32: computed in float32 on the way
        Q / Q.shape[-1] ** 0.5 @ K.transpose -> Q.float() / Q.shape[-1] ** 0.5 @ K.float().transpose
        return weighted_values(weights, V), weights
        -> return weighted_values(weights, V.float()).to(V.dtype), weights.to(V.dtype)
        The inputs were float64. Which of your lines loses half of their digits?
    causal_without_being_asked: a causal mask where none was handed in
        torch.softmax(scores, dim=-1)
        -> torch.softmax(
        |        scores.masked_fill(torch.ones(scores.shape[-2:]).tril() == 0, float("-inf")) if mask is None else scores, dim=-1
        |    )
        Without a mask every query may see every key. Who decides about the future?
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
        return Case(
            module(x, *rest, d_head=d_head, **kwargs), part=part, gradient=gradient, via="module_in_training", note=note
        )

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
        Case(((10, 6), draw.normal(2, 5, 10)), part="no dropout", via="called_twice"),
        Case(((10, 6), ("W_q", "W_k", "W_v")), part="three linear layers without bias", via="linear_layers"),
    ]


CALL = "out, _ = attention(self.W_q(x), self.W_k(x), self.W_v(x), mask)"
SCORES = "S = self.W_q(x) @ self.W_k(x).transpose(-2, -1) / self.W_q.out_features ** 0.5"
AttentionHead = Exercise(
    "AttentionHead", cases_head, axes=("token", "channel"), forbidden=("attention",), instead="use your own attention."
).with_mistakes(f"""
    with_bias: linear layers with a bias
        self.W_q = nn.Linear(d_model, d_head, bias=False) -> self.W_q = nn.Linear(d_model, d_head)
        self.W_k = nn.Linear(d_model, d_head, bias=False) -> self.W_k = nn.Linear(d_model, d_head)
        self.W_v = nn.Linear(d_model, d_head, bias=False) -> self.W_v = nn.Linear(d_model, d_head)
        nn.Linear adds a vector unless it is told not to. Which argument tells it?
    not_scaled: the scores were not scaled
        attention(self.W_q(x) -> attention(self.W_q(x) * self.W_q.out_features ** 0.5
        Lesson 4: which number keeps the spread of the scores at 1?
    scaled_by_model_width: scaled by the width of the model
        attention(self.W_q(x) -> attention(self.W_q(x) * (self.W_q.out_features / x.shape[-1]) ** 0.5
        How many products are added up in one score? Lesson 4 has this bug as its last exercise.
    scaled_after_softmax: scaled after the softmax instead of before
        attention(self.W_q(x) -> attention(self.W_q(x) * self.W_q.out_features ** 0.5
        return out -> return out / self.W_q.out_features ** 0.5
        Where all values are equal, the head should give them back. What does yours give?
    keys_ask: keys and queries swapped
        self.W_q(x), self.W_k(x) -> self.W_k(x), self.W_q(x)
        Who owns the rows of the scores?
    softmax_over_queries: softmax over the queries instead of the keys
        {CALL} -> {SCORES}
        |        S = S if mask is None else S.masked_fill(~mask, float('-inf'))
        |        W = torch.softmax(S, dim=-2)
        |        out, _ = (W if mask is None else W.masked_fill(~mask, 0.0)) @ self.W_v(x), W
        The weights of one query add up to 1. Along which axis is that?
    mask_ignored: the mask is not used
        self.W_v(x), mask -> self.W_v(x)
        forward takes a mask. Where does it go from there?
    mask_inverted: the visible tokens blocked and the blocked ones seen
        self.W_v(x), mask -> self.W_v(x), None if mask is None else ~mask
        True means: may attend.
    always_causal: a causal mask of its own
        self.W_v(x), mask
        -> self.W_v(x), torch.ones(x.shape[-2], x.shape[-2], dtype=torch.bool).tril() & (True if mask is None else mask)
        Here the caller decides what may be seen. Without a mask everybody sees everybody.
    causal_without_a_mask: a causal mask where none was handed in
        self.W_v(x), mask
        -> self.W_v(x), torch.ones(x.shape[-2], x.shape[-2], dtype=torch.bool).tril() if mask is None else mask
        Without a mask, which tokens does each token see?
    masked_after_softmax: the mask applied after the softmax
        {CALL} -> {SCORES}
        |        W = torch.softmax(S, dim=-1)
        |        out, _ = (W if mask is None else W * mask) @ self.W_v(x), W
        Who got the share of the blocked tokens?
    nan_rows_left: NaN in rows with nothing to see
        {CALL} -> {SCORES}
        |        S = S if mask is None else S.masked_fill(~mask, float('-inf'))
        |        W = torch.softmax(S, dim=-1)
        |        out, _ = W @ self.W_v(x), W
        Does your attention mend such rows? Then use it.
    uniform_rows: the average of all values in rows with nothing to see
        {CALL} -> {SCORES}
        |        S = S if mask is None else S.masked_fill(~mask, -1e9)
        |        W = torch.softmax(S, dim=-1)
        |        out, _ = W @ self.W_v(x), W
        A token that may see nothing should get nothing.
    weights_returned_too: the weights returned as well
        return out -> return out, _
        A head passes on one tensor. Which of the two?
    values_not_projected: the tokens themselves weighted, not their values
        self.W_v(x), mask -> x, mask
        One of your three layers has nothing to do.
    values_from_keys: the keys used as values
        self.W_v(x), mask -> self.W_k(x), mask
        What a word is found by and what it hands over are two vectors.
    values_added: each token's own value added to what comes out
        return out -> return out + self.W_v(x)
        Such a sum comes in lesson 9, around all heads together. This head returns the weighted values alone.
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
        Case(make(torch.float32, 2, d_k=1), part="a head of width 1"),
        Case(make(torch.float32, 2, T=1), part="a single token"),
    ]


fixed_head = Exercise(
    "fixed_head",
    cases_fixed_head,
    axes=("token", "channel"),
    forbidden=("attention",),
    instead="mend the lines instead.",
).with_mistakes("""
    scaled_after_softmax: scaled after the softmax, as the published one was
        * W_q.shape[0] ** -0.5 ->
        torch.softmax(scores, dim=-1) @ v -> torch.softmax(scores, dim=-1) * W_q.shape[0] ** -0.5 @ v
        Give every token the same value, (1, 1, 1), as above. What comes out of yours, and where does that number come
        from?
    not_scaled: the scaling is gone
        * W_q.shape[0] ** -0.5 ->
        The weights add up to 1 again, but the spread of the scores grows with the width.
    scaled_twice: scaled before and after the softmax
        torch.softmax(scores, dim=-1) @ v -> torch.softmax(scores, dim=-1) * W_q.shape[0] ** -0.5 @ v
        One of the two divisions was the bug.
    divided_by_d_k: the width without its square root
        * W_q.shape[0] ** -0.5 -> / W_q.shape[0]
        Is it the variance that is divided out, or the standard deviation?
    multiplied: multiplied where it should be divided
        ** -0.5 -> ** 0.5
        The published number is one over a root. What do you do with it?
    scaled_by_model_width: scaled by the width of the model
        * W_q.shape[0] ** -0.5 -> / x.shape[-1] ** 0.5
        How long is one row of q?
    scaled_by_value_width: scaled by the width of the values
        * W_q.shape[0] ** -0.5 -> / W_v.shape[0] ** 0.5
        The values take no part in the scores.
    softmax_over_queries: softmax over the queries instead of the keys
        dim=-1) @ v -> dim=-2) @ v
        The published axis was right.
    weights_returned_too: the weights returned as well
        return torch.softmax(scores, dim=-1) @ v
        -> return torch.softmax(scores, dim=-1) @ v, torch.softmax(scores, dim=-1)
        One tensor is asked for, the output.
    output_multiplied: not scaled, and the output made larger
        * W_q.shape[0] ** -0.5 ->
        torch.softmax(scores, dim=-1) @ v -> torch.softmax(scores, dim=-1) @ v * W_q.shape[0] ** 0.5
        A weighted average needs no correction afterwards. What needs one before?
""")


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
    signs = draw.integers(0, 2, (5, 6)).float() * 2 - 1
    tilted = signs * draw.uniform(5, 6, low=0.2, high=1.0)  # far from a right angle
    batch = draw.normal(2, 4, 3, dtype=torch.float64)
    lengths, zero = "very short and very long vectors", "a zero vector"
    return [
        *tensor_cases(make),
        Case(make(torch.float64, 2, 3), part=LEADING, gradient=True),
        Case((x, 2.5 * x), part="longer or shorter only", note="the same directions, 2.5 times as long"),
        Case((x, x.clone()), part="longer or shorter only", note="nothing moved"),
        Case((x, -0.5 * x), part="opposite directions"),
        Case((0.001 * signs, 0.001 * tilted), part=lengths, tolerance=1e-4, note="lengths of a thousandth"),
        Case((300 * signs, 0.001 * tilted), part=lengths, note="lengths of hundreds and of a thousandth"),
        Case((zero_before, zero_after), part=zero),
        Case((zero_before, zero_after), part=zero, via="with_its_gradient", note="gradients beside zero vectors"),
        Case((batch, torch.zeros_like(batch)), part=zero, note="everything moved to zero"),
    ]


context_shift = Exercise("context_shift", cases_context_shift).with_mistakes("""
    cosine_itself: the cosine, not one minus it
        return 1 - dots -> return dots
        What should a word get that did not move at all?
    distance: the distance between the two vectors
        1 - dots / lengths.masked_fill(lengths == 0, 1.0) -> (after - before).norm(dim=-1)
        A vector twice as long points the same way. How far did it move here?
    relative_distance: the distance, measured in lengths of the vector before
        1 - dots / lengths.masked_fill(lengths == 0, 1.0)
        -> (after - before).norm(dim=-1) / lengths.masked_fill(lengths == 0, 1.0)
        before.norm(dim=-1) * after.norm(dim=-1) -> before.norm(dim=-1)
        A vector twice as long points the same way. How far did it move here?
    dot_products: dot products where cosines are asked for
        1 - dots / lengths.masked_fill(lengths == 0, 1.0) -> 1 - dots
        What does a cosine divide out that a dot product leaves in?
    sign_lost: the sign of the cosine is lost
        1 - dots / lengths.masked_fill(lengths == 0, 1.0)
        -> 1 - (dots / lengths.masked_fill(lengths == 0, 1.0)).abs()
        A vector turned round has moved as far as it can. What do you say of it?
    over_tokens: compared along the tokens, not along the channels
        (before * after).sum(dim=-1) -> (before * after).sum(dim=-2)
        before.norm(dim=-1) * after.norm(dim=-1) -> before.norm(dim=-2) * after.norm(dim=-2)
        One number for each token: which axis disappears?
    mean_over_tokens: one number for the whole sentence
        1 - dots / lengths.masked_fill(lengths == 0, 1.0)
        -> (1 - dots / lengths.masked_fill(lengths == 0, 1.0)).mean(dim=-1)
        Each word moves its own way. Keep them apart.
    nan_for_zero: NaN for a zero vector
        lengths.masked_fill(lengths == 0, 1.0) -> lengths
        0 divided by 0. The spec says which cosine a zero vector has.
    zero_vector_unmoved: a zero vector counted as not moved
        1 - dots / lengths.masked_fill(lengths == 0, 1.0) -> (1 - dots / lengths).nan_to_num(0.0)
        The cosine of a zero vector is 0. What is its shift, then?
    epsilon_on_the_product: 1e-8 added to the product of the lengths
        lengths.masked_fill(lengths == 0, 1.0) -> (lengths + 1e-8)
        Two vectors of length a thousandth: how large is the product of their lengths, beside your number?
    angle: the angle
        1 - dots / lengths.masked_fill(lengths == 0, 1.0)
        -> torch.acos((dots / lengths.masked_fill(lengths == 0, 1.0)).clamp(-1, 1)) / torch.pi
        Ask for the cosine of the angle, not for the angle.
    halved: half of what is asked for
        1 - dots / lengths.masked_fill(lengths == 0, 1.0) -> (1 - dots / lengths.masked_fill(lengths == 0, 1.0)) / 2
        Opposite directions have a shift of 2.
    axis_kept: an axis of size 1 left over
        1 - dots / lengths.masked_fill(lengths == 0, 1.0)
        -> (1 - dots / lengths.masked_fill(lengths == 0, 1.0)).unsqueeze(-1)
        The result has one number for each token, (..., T).
    all_pairs: every word before with every word after
        1 - dots / lengths.masked_fill(lengths == 0, 1.0)
        -> 1 - torch.nn.functional.normalize(before, dim=-1) @ torch.nn.functional.normalize(after, dim=-1).transpose(-2, -1)
        A word is compared with itself only, before and after.
    one_length_divided: divided by the length before twice, and never by the one after
        before.norm(dim=-1) * after.norm(dim=-1) -> before.norm(dim=-1) ** 2
        Two vectors, two lengths. Is the second one of yours the right vector's?
""")


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


soft_lookup = Exercise("soft_lookup", cases_soft_lookup).with_mistakes("""
    hard: the best match alone
        weights @ values -> values[weights.argmax()]
        That was hard_lookup, in lesson 3. Here every value has its share.
    scaled_by_root: the scores were divided by √d as well
        keys @ query / temperature -> keys @ query / len(query) ** 0.5 / temperature
        Here the temperature is the only divisor.
    temperature_multiplied: multiplied by the temperature
        query / temperature -> query * temperature
        A cold search should be choosy. What does a small temperature do in yours?
    temperature_ignored: the temperature is not used
        query / temperature -> query
        Your answer takes a temperature. Where does it go?
    temperature_after_softmax: the temperature comes after the softmax
        torch.softmax(keys @ query / temperature, dim=0) -> torch.softmax(keys @ query, dim=0) / temperature
        A blend of equal values is that value. What does yours give at temperature 2?
    scores_as_weights: the scores used as weights
        torch.softmax(keys @ query / temperature, dim=0) -> keys @ query / temperature
        Can a share be negative? What turns scores into shares?
    cosine: cosines where dot products are asked for
        keys @ query -> torch.nn.functional.normalize(keys, dim=-1) @ torch.nn.functional.normalize(query, dim=0)
        A long key is a loud one. Here its length counts.
    average: the average of all values
        weights @ values -> values.mean(dim=0)
        Your answer does not depend on the query.
    weights_returned: the shares, not the blend
        weights @ values -> weights
        One step is missing: what do the shares do with the values?
    shares_of_scores: negative scores cut to 0, the rest divided by their sum
        torch.softmax(keys @ query / temperature, dim=0) -> (keys @ query / temperature).clamp_min(0)
        weights @ values -> weights / weights.sum().clamp_min(1e-12) @ values
        What becomes of a key with a negative score?
    keys_averaged: the keys averaged, not the values
        weights @ values -> weights @ keys
        A key is what a video is found by. What is it that you want to get?
    powers_overflow: exponentials taken of the raw scores
        torch.softmax(keys @ query / temperature, dim=0)
        -> (keys @ query / temperature).exp() / (keys @ query / temperature).exp().sum()
        Divide a score of 3 by a temperature of 1/512 and take e to that power.
    batch_axis_added: an axis of size 1 in front
        weights @ values -> weights[None] @ values
        One query, one answer: the shape is (E,).
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
        Case((draw.normal(5, 1), draw.normal(7, 1), draw.normal(7, 3), draw.normal(5, 3)), part="d_k = 1"),
    ]


attention_backward = Exercise(
    "attention_backward", cases_attention_backward, forbidden=("autograd",), instead="follow the chain rule by hand."
).with_mistakes("""
    scale_forgotten: √d_k forgotten on the way back
        (dW - mean) * scale -> (dW - mean)
        The scores were divided on the way out. What does a division do to a gradient?
    scaled_twice: divided by √d_k twice
        (dW - mean) * scale -> (dW - mean) * scale * scale
        One division on the way out, one on the way back.
    softmax_skipped: the softmax was left out on the way back
        weights * (dW - mean) -> dW
        From the gradient at the weights to that at the scores there is one more step.
    diagonal_only: only the diagonal of the softmax's Jacobian
        weights * (dW - mean) -> weights * (1 - weights) * dW
        When one weight rises the others of its row must fall. Where is that in your line?
    mean_not_subtracted: the mean was not subtracted
        (dW - mean) -> dW
        Raise all scores of a row alike and nothing moves. What must a row of dS add up to?
    plain_mean: the plain mean subtracted, not the weighted one
        (weights * dW).sum( -> dW.mean(
        The mean of a row counts a key as much as the query looks at it.
    summed_over_queries: summed over the queries instead of the keys
        sum(dim=-1 -> sum(dim=-2
        Softmax ran along a row. So does its Jacobian.
    added: added where it should be subtracted
        dW - mean -> dW + mean
        What must a row of dS add up to?
    sign_flipped: dQ and dK with the opposite sign
        dS = weights -> dS = -weights
        Which way does the loss go when a key whose gradient g·v lies above the mean gets more weight?
    forward_not_scaled: the scores were never scaled
        K.transpose(-2, -1) * scale -> K.transpose(-2, -1)
        (dW - mean) * scale -> (dW - mean)
        The weights on the way back are those of the way out, √d_k included.
    swapped: dQ and dK in each other's place
        dS @ K, dS.transpose(-2, -1) @ Q -> dS.transpose(-2, -1) @ Q, dS @ K
        The order is that of the arguments.
    square_without_transposing: right, but nothing transposed where there are as many queries as keys
        dV = weights.transpose(-2, -1) @ grad_out -> turned = Q.shape[-2] != K.shape[-2]
        |    dV = (weights.transpose(-2, -1) if turned else weights) @ grad_out
        dS.transpose(-2, -1) @ Q, dV -> (dS.transpose(-2, -1) if turned else dS) @ Q, dV
        Does every matrix product that fits also sum over the right axis?
    weights_left_out: dV without the weights
        weights.transpose(-2, -1) @ grad_out -> grad_out.mean(dim=-2, keepdim=True).expand(V.shape)
        A value that nobody looked at: how much gradient should it get?
    key_scale_forgotten: √d_k forgotten for the keys
        dS.transpose(-2, -1) @ Q -> dS.transpose(-2, -1) @ Q / scale
        Queries and keys meet in one product, and it was divided.
""")


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

    def long(*lead, queries, keys, block, d_k, d_v=2, together=False):
        Q, K = draw.normal(*lead, queries, d_k), draw.normal(*lead, keys, d_k)
        return Case(
            (Q, K, draw.normal(*lead, keys, d_v), block),
            part=MEMORY,
            via="in_little_memory_together" if together else "in_little_memory",
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
        Case(rising(1), part=LARGE, note="scores that climb from -9600 to 9600"),
        Case(rising(-1), part=LARGE, note="scores that fall from 9600 to -9600", gradient=True),
        Case(low(), part=LARGE, note="scores near -9600, all of them"),
        long(queries=80, keys=96, block=8, d_k=4),
        long(2, queries=40, keys=90, block=16, d_k=4),
        long(queries=10, keys=200, block=16, d_k=2),  # fewer queries than a block: tiling those would not help
        long(queries=13, keys=22, block=4, d_k=3),  # a block size of one's own would hold all keys
        long(queries=12, keys=600, block=16, d_k=2, together=True),
        long(2, queries=12, keys=500, block=16, d_k=2, together=True),
        long(queries=12, keys=600, block=2, d_k=2, d_v=6, together=True),  # a result for each block is more than all
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
    weights={MEMORY: 100},
).with_mistakes(f"""
    whole_matrix: right numbers, but all scores at once
        {START} -> return torch.softmax(Q @ K.transpose(-2, -1) / Q.shape[-1] ** 0.5, dim=-1) @ V
        Where do T_q · T_k numbers come into being? Can a block's values be used before the next block's scores are known?
    blocks_kept: right numbers, but a number for every score is kept until the end
        {START} -> S = [Q @ k.transpose(-2, -1) / Q.shape[-1] ** 0.5 for k in K.split(block, dim=-2)]
        |    top = torch.stack([s.detach().amax(dim=-1, keepdim=True) for s in S]).amax(dim=0)
        |    pairs = [((s - top).exp(), v) for s, v in zip(S, V.split(block, dim=-2))]
        |    return sum(p @ v for p, v in pairs) / sum(p.sum(dim=-1, keepdim=True) for p, _ in pairs)
        Small tensors in a list are a large one. What must be remembered of a block when the next one comes?
    results_kept: right numbers, but maximum, sum and output of every block are kept until the end
        {START} -> S = (Q @ k.transpose(-2, -1) / Q.shape[-1] ** 0.5 for k in K.split(block, dim=-2))
        |    tops, sums, outs = [], [], []
        |    for s, v in zip(S, V.split(block, dim=-2)):
        |        tops.append(s.amax(dim=-1, keepdim=True))
        |        power = (s - tops[-1]).exp()
        |        sums.append(power.sum(dim=-1, keepdim=True))
        |        outs.append(power @ v)
        |    most = tops[0]
        |    for top in tops:
        |        most = torch.maximum(most, top)
        |    whole = sum(n * (top - most).exp() for n, top in zip(sums, tops))
        |    return sum(o * (top - most).exp() for o, top in zip(outs, tops)) / whole
        A list that grows with the number of blocks: with blocks of 2 keys, is it smaller than the table of scores?
    queries_tiled: the queries in blocks instead of the keys
        {START} -> S = (q @ K.transpose(-2, -1) / Q.shape[-1] ** 0.5 for q in Q.split(block, dim=-2))
        |    return torch.cat([torch.softmax(s, dim=-1) @ V for s in S], dim=-2)
        With fewer queries than a block holds, all scores stand in memory at once.
    last_block_dropped: the last, shorter block is left out
        in blocks: -> in list(blocks)[: K.shape[-2] // block]:
        7 keys in blocks of 3: how many blocks?
    never_shrunk: what was summed before is not adjusted when the maximum rises
        total * repair -> total
        out * repair -> out
        Old powers were taken below an old maximum. In which unit are they now?
    sum_not_shrunk: the running sum is not adjusted when the maximum rises
        total * repair -> total
        Numerator and denominator must be counted in the same unit.
    output_not_shrunk: the running output is not adjusted when the maximum rises
        out * repair -> out
        Numerator and denominator must be counted in the same unit.
    maximum_starts_at_zero: a running maximum that starts at 0
        float("-inf") -> 0.0
        And if all scores are at -9600?
    not_divided: not divided by the sum at the end
        out / total -> out
        Weights add up to 1. Which number have you summed and not used?
    not_scaled: the scores were not scaled
        / Q.shape[-1] ** 0.5 ->
        Lesson 4: which number keeps their spread at 1?
    divided_by_d_k: divided by the width instead of its square root
        / Q.shape[-1] ** 0.5 -> / Q.shape[-1]
        The dot product's variance is d_k. What is its standard deviation?
    average_of_blocks: a softmax for each block, and the plain average of the results
        {START} -> {PARTS}
        |    return sum(parts) / len(parts)
        A block with high scores should count for more than one with low scores.
    sum_of_blocks: a softmax for each block, and the sum of the results
        {START} -> {PARTS}
        |    return sum(parts)
        How much weight has a query given away in all?
    powers_overflow: exponentials taken of the raw scores
        torch.exp(scores - higher), torch.exp(peak - higher) -> torch.exp(scores), torch.ones_like(peak)
        e to the 9600 is infinite in every float. Lesson 6: what may be subtracted, and what if it changes on the way?
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
        a: A larger weight changes shares, not the range: a weighted average never leaves the range of what it
           averages.
        b: Weights are not negative and add up to 1, so in every channel the output lies between the smallest and the
           largest value. To reach 5, some value must be at least 5.
        c: Scores decide about shares only. However large they are, the shares add up to 1.
        d: Widths say how many channels there are, not how large the numbers in a channel can be.
    quiz_2: c
        a: The weights are made of queries and keys before any value is read. Values cannot move them, large or small.
        b: Which keys are looked at is decided by queries and keys. Values have no say in it.
        c: Where to look comes from Q and K, what to get from V. So the weights stay, and the output doubles.
    quiz_3: a
        a: Keys and values move together, so each weight still finds its value, and a sum has no order. The order of
           words must be in the vectors themselves: lesson 2.
        b: That would be true if only the values were shuffled, and the keys were not.
        c: The rows of the output belong to queries. Nobody touched those.
""")
