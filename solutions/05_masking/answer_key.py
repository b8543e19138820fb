"""Cases and known mistakes of lesson 5."""

import torch

from helpers.checking.vocabulary import GRADIENT, LEADING, Case, Exercise, Stub, listed_quizzes, tensor_cases

NOTHING = "fully masked rows"
LARGE = "scores up to ±10⁴"
BROADCAST = "masks that broadcast"
ZEROS = "visible scores of 0"


def _causal(T_q, T_k=None):
    T_k = T_q if T_k is None else T_k
    return torch.arange(T_k) <= torch.arange(T_q)[:, None] + T_k - T_q


def _real(lengths, T):
    return torch.arange(T) < torch.tensor(lengths)[:, None]


def _spotted(draw, *shape):
    """A mask in which every row contains both True and False."""
    mask = draw.mask(*shape, keep=0.5)
    lone = mask.all(-1, keepdim=True)
    last = torch.arange(shape[-1]) == shape[-1] - 1
    return mask & ~(lone & last)


def _with_zeros(draw):
    """Scores and a mask. The scores of the first row are all exactly 0."""
    scores = draw.normal(4, 6)
    scores[0] = 0.0
    return scores, _spotted(draw, 4, 6)


def _broadcasting(draw, **options):
    """Cases whose masks have fewer axes than the scores (B, H, T_q, T_k), or axes of size 1."""
    masks = {"(B, 1, T_q, T_k)": (2, 1, 4, 6), "(B, 1, 1, T_k)": (2, 1, 1, 6), "(H, T_q, T_k)": (3, 4, 6)}
    cases = [
        Case((draw.normal(2, 3, 4, 6), _spotted(draw, *shape)), part=BROADCAST, note=f"a mask {name}", **options)
        for name, shape in masks.items()
    ]
    square = "as many sentences as queries, and a mask (T_q, T_k)"  # its first axis is not the batch
    return [
        *cases,
        Case((draw.normal(4, 3, 4, 6), _spotted(draw, 4, 6)), part=BROADCAST, note=square, **options),
        Case((draw.normal(4, 6), _spotted(draw, 6)), part=BROADCAST, **options),
    ]


def cases_causal_mask(draw):
    n = draw.integer(6, 9)
    return [
        Case((5,)),
        Case((n,)),
        Case((3, 8), part="more keys than queries"),
        Case((4, n), part="more keys than queries"),
        Case((1, 6), part="one query and a cache"),
        Case((4,), {"T_k": 4}, part="T_k given and equal to T_q"),
        Case((4, None), part="T_k given and equal to T_q"),
        Case((1,), part="one token"),
    ]


TRIANGLE = "tril(T_k - T_q)"
causal_mask = Exercise("causal_mask", cases_causal_mask, axes=("query", "key")).with_mistakes(f"""
    aligned_at_start: the triangle aligned at the first key instead of the last
        {TRIANGLE} -> tril()
        With a cache the last query should see every key. How many does the last row of your mask see?
    inverted: True where it should be False
        return torch.ones -> return ~torch.ones
        True means may attend. The first token may attend to itself, so the first entry must be True.
    self_excluded: a token that cannot see itself
        {TRIANGLE} -> tril(T_k - T_q - 1)
        A token may attend to itself. In your mask, the first query sees nothing.
    next_one_seen: one key of the future is visible
        {TRIANGLE} -> tril(T_k - T_q + 1)
        The first of three queries should see exactly one key.
    sees_the_future: the future visible and the past blocked
        {TRIANGLE} -> triu()
        Rows are queries and columns are keys. On which side of the diagonal is the past?
    only_the_future: True where the future is, counted from the first key
        {TRIANGLE} -> triu(1)
        Your mask is True where keys are blocked, and it begins at the first key. What does True mean in this course?
    transposed: queries and keys swapped
        {TRIANGLE} -> {TRIANGLE}.T
        Rows are queries, columns are keys.
    cache_hidden: the cached keys blocked
        {TRIANGLE} -> {TRIANGLE} & (torch.arange(T_k) >= T_k - T_q)
        The cached keys come before all new tokens, so every query may see them.
    diagonal_turned_round: the triangle is shifted the wrong way
        {TRIANGLE} -> tril(T_q - T_k)
        If five keys are cached and two tokens are new, the first query sees six keys. In which direction must the diagonal move?
""")


def cases_padding_mask(draw):
    return [
        Case((torch.tensor([3, 1, 5, 2]), 6)),
        Case((draw.integers(1, 8, (5,)), 8)),
        Case((torch.tensor([1, 3, 2]), 3), part="B equal to T"),
        Case((torch.tensor([0, 4]), 5), part="a sentence of length 0"),
        Case((torch.tensor([5, 2, 5]), 5), part="a sentence without padding"),
        Case((torch.tensor([4, 4, 4]), 4), part="a sentence without padding", note="three sentences without padding"),
        Case((torch.tensor([2, 3]), 7), part="T longer than every sentence"),
        Case((torch.tensor([2]), 4), part="a batch of one"),
        Case((torch.tensor([1]), 1), part="a batch of one", note="one sentence of one word"),
    ]


REAL = "torch.arange(T, device=lengths.device) < lengths[:, None]"
padding_mask = Exercise("padding_mask", cases_padding_mask, axes=("sentence", "token")).with_mistakes(f"""
    inverted: True on the padding
        device) < -> device) >=
        True means may attend, and no query may attend to padding.
    one_too_many: one padding token is visible
        device) < -> device) <=
        A sentence of length 2 has its tokens at positions 0 and 1.
    one_too_few: one word blocked
        arange(T, -> arange(1, T + 1,
        A sentence of length 2 has its tokens at positions 0 and 1.
    whole_sentences_blocked: every word of a sentence without padding blocked
        return {REAL} -> return ({REAL}) & (lengths < T)[:, None]
        A slice from -n takes the last n entries, but for n = 0 it takes all of them.
    longest_for_all: the longest sentence's length taken for all of them
        < lengths[:, None] -> < lengths.max().expand(len(lengths), 1)
        Each sentence has its own length.
    padding_first: the padding in front
        {REAL} -> torch.arange(T) >= T - lengths[:, None]
        The real tokens come first, and the padding last.
    cut_to_longest: the width taken from the longest sentence
        arange(T, -> arange(int(lengths.max()),
        The argument T says how wide the mask is.
    last_word_only: True at the last word of each sentence alone
        < lengths[:, None] -> == lengths[:, None] - 1
        Every real token must be True, not only the last one. Which positions come before its end?
""")


def cases_combine_masks(draw):
    def random(B, T_q, T_k):
        return draw.mask(T_q, T_k, keep=0.5), draw.mask(B, T_k, keep=0.5)

    return [
        Case((_causal(4, 6), _real([4, 6, 5], 6))),
        Case(random(5, 3, 7)),
        Case((_causal(5), _real([3, 5, 1], 5)), part="T_q equal to T_k"),
        Case((_causal(3), _real([2, 3, 1], 3)), part="B, T_q and T_k equal"),
        Case((_causal(1, 4), _real([4, 2], 4)), part="one query and a cache"),
        Case((_causal(3, 5), _real([0, 4], 5)), part="a sentence of length 0"),
        Case((_causal(3, 5), _real([4], 5)), part="a batch of one"),
    ]


PADDED = "padding[:, None, None, :]"
BOTH = f"causal & {PADDED}"
combine_masks = Exercise("combine_masks", cases_combine_masks, axes=("sentence", "head", "query", "key")).with_mistakes(f"""
    sum_above_one: the two masks added, and asked for more than 1
        {BOTH} -> (causal + {PADDED}) > 1
        In Python True + True is 2, but the sum of two boolean tensors is boolean. Which operator gives True only where both are?
    either_is_enough: a key seen if one of the masks says yes
        causal & -> causal |
        Both masks must allow the key.
    queries_blocked_too: padding applied to queries as well as keys
        {PADDED} -> {PADDED} & padding[:, None, :, None]
        Padding blocks keys only. There may be fewer queries than keys, and padded queries would become fully masked rows.
    queries_instead_of_keys: padding applied to the queries
        {PADDED} -> padding[:, None, :, None]
        Which axis of the result belongs to the keys, counted from the right?
    no_axis_for_heads: no axis for the heads
        {PADDED} -> padding[:, None, :]
        The scores have shape (B, H, T_q, T_k), so without an axis for the heads your B is aligned with H.
    causal_forgotten: only the padding
        {BOTH} -> {PADDED}.expand(-1, 1, causal.shape[0], -1)
        Your result doesn't depend on the causal mask.
    padding_forgotten: only the causal mask
        {PADDED} -> torch.ones_like({PADDED})
        Your result doesn't depend on the padding mask.
    padding_inverted: the padding visible and the tokens blocked
        {PADDED} -> ~{PADDED}
        In both masks True means may attend, so neither must be inverted.
    inverted: True where it should be False
        {BOTH} -> ~({BOTH})
        True means may attend, and a token may attend to itself.
""")


def cases_mask_scores(draw):
    view = {"view": "filled_scores"}

    def make(dtype, *lead):
        return draw.normal(*lead, 4, 6, dtype=dtype), _spotted(draw, 4, 6)

    def large(dtype):
        return draw.uniform(4, 6, low=-1e4, high=1e4, dtype=dtype), _spotted(draw, 4, 6)

    return [
        *tensor_cases(make, leads=((), (3,), (2, 3)), gradient=False, **view),
        Case(make(torch.float64), note="scores in float64", **view),  # where adding a large number changes digits
        # The scenario removes the masked entries, because their gradients are not comparable.
        Case(make(torch.float64, 2), part=GRADIENT, gradient=True, via="kept_entries"),
        Case(large(torch.float32), part=LARGE, **view),
        Case(large(torch.float64), part=LARGE, **view),
        *_broadcasting(draw, **view),
        Case((draw.normal(4, 6), torch.ones(4, 6, dtype=torch.bool)), part="a mask that blocks nothing", **view),
        Case(_with_zeros(draw), part=ZEROS, **view),
        Case((torch.zeros(4, 6), _spotted(draw, 4, 6)), part=ZEROS, note="all scores are 0", **view),
    ]


ADDED_MASK = (
    "Adding True adds 1, and adding False adds 0. The mask says where to replace a score, not what to add to it."
)
ZERO_STILL_WEIGHS = "A score of 0 still gets weight, because e to the power of 0 is 1."
FILL = "scores.masked_fill(~mask, -math.inf)"
mask_scores = Exercise("mask_scores", cases_mask_scores, axes=("query", "key")).with_mistakes(f"""
    inverted: the visible scores blocked and the blocked ones kept
        ~mask -> mask
        True means may attend, so the fill belongs where the mask is False.
    set_to_zero: blocked scores set to 0
        {FILL} -> scores * mask
        {ZERO_STILL_WEIGHS}
    bool_mask_added: the boolean mask itself added to the scores
        {FILL} -> scores + mask
        {ADDED_MASK}
    large_number_added: a large number added instead of a constant filled in
        {FILL} -> scores + (~mask) * -1e9
        After an addition, blocked scores still differ from each other. Replace them instead.
    minus_10000_added: -10000 added, as BERT did
        {FILL} -> scores + (~mask) * -10000.0
        A blocked score of +9000 becomes -1000, which is above visible scores of -5000.
    minus_FILL_filled for FILL in 10000, 1000: a fill of -FILL
        -math.inf -> -FILL.0
        Visible scores may be as low as -10000, and the blocked keys of such a row would get weight.
    plus_infinity: the wrong infinity
        -math.inf -> math.inf
        Which exponent makes the power 0?
    zero_times_infinity: 0 times infinity, which is NaN
        {FILL} -> scores + (~mask) * -math.inf
        0 · (-inf) is NaN. Choose between two values instead of multiplying.
    softmax_too: weights instead of masked scores
        {FILL} -> torch.softmax({FILL}, dim=-1)
        Return masked scores. The softmax comes in the next exercise.
    zeros_blocked: scores of 0 taken for blocked ones
        {FILL} -> (scores * mask).masked_fill(scores * mask == 0, -math.inf)
        A visible score may be 0 as well. Use the mask to find the blocked entries.
    nothing_filled: the scores are unchanged
        {FILL} -> scores
        masked_fill returns a new tensor and leaves the old one unchanged. Return the new one.
""")


def cases_masked_softmax(draw):
    def make(dtype, *lead):
        return draw.normal(*lead, 4, 6, dtype=dtype, scale=2.0), _spotted(draw, *lead, 4, 6)

    def blind(dtype, *lead):
        scores, mask = make(dtype, *lead)
        mask[..., draw.integer(1, 3), :] = False
        return scores, mask

    def blocked_higher():
        """Visible scores near -9995 and masked ones near 9995."""
        mask = _spotted(draw, 4, 6)
        return torch.where(mask, -9995.0, 9995.0) + draw.normal(4, 6, dtype=torch.float64), mask

    def at_the_edge():
        """Visible scores from -10000 to -9997 and arbitrary masked ones."""
        mask = _spotted(draw, 4, 6)
        visible = draw.uniform(4, 6, low=-10000.0, high=-9997.0, dtype=torch.float64)
        return torch.where(mask, visible, draw.uniform(4, 6, low=-1e4, high=1e4, dtype=torch.float64)), mask

    def rows_far_apart():
        """Each row has its own level, and its masked scores are no higher than the visible ones."""
        heights = torch.tensor([9990.0, -9990.0, 0.0, 4000.0], dtype=torch.float64)[:, None]
        return heights + draw.normal(4, 6, dtype=torch.float64), _spotted(draw, 4, 6)

    nothing = draw.normal(4, 6, dtype=torch.float64), torch.zeros(4, 6, dtype=torch.bool)
    words = _real([5, 0], 6)[:, None, None]
    return [
        *tensor_cases(make, leads=((), (3,), (2, 3))),
        *_broadcasting(draw),
        Case(_with_zeros(draw), part=ZEROS),
        Case(blind(torch.float32), part=NOTHING),
        Case((draw.normal(2, 3, 4, 6), words), part=NOTHING, note="a mask (B, 1, 1, T_k), sentence 1 of length 0"),
        Case((draw.normal(4, 6), torch.zeros(6, dtype=torch.bool)), part=NOTHING),
        Case(blind(torch.float64, 2), part=NOTHING, gradient=True),
        Case(nothing, part=NOTHING, gradient=True),
        Case((draw.uniform(4, 6, low=-1e4, high=1e4, dtype=torch.float64), _spotted(draw, 4, 6)), part=LARGE),
        Case(blocked_higher(), part=LARGE, gradient=True),
        Case(at_the_edge(), part=LARGE, note="visible scores of -10000 to -9997"),
        Case(rows_far_apart(), part=LARGE, note="rows near 9990, -9990, 0 and 4000"),
    ]


MASKED = "mask_scores(scores, mask)"
CUT = "torch.where(mask, weights, 0.0)"
UNCUT = f"{CUT} -> weights"
DIVIDED_AGAIN = (
    "That is right on paper, but when a blocked score is far above the visible ones, their exponentials round to zero."
)
masked_softmax = Exercise(
    "masked_softmax", cases_masked_softmax, axes=("query", "key"), weights={NOTHING: 16, LARGE: 6}
).with_mistakes(f"""
    nan_rows_left: NaN left in fully masked rows
        {UNCUT}
        A softmax over only -inf divides 0 by 0. Which weights should such a row have?
    masked_after_softmax: the mask applied after the softmax
        {MASKED} -> scores
        The rows don't add up to 1. Mask the scores before the softmax instead.
    divided_again: exponentials of all scores, then the mask, then rows divided by their sums
        {MASKED} -> scores
        return {CUT} -> weights = weights * mask
        |    return weights / weights.sum(-1, keepdim=True).clamp(min=1e-12)
        {DIVIDED_AGAIN}
    inverted: the blocked keys kept and the visible ones blocked
        {MASKED} -> mask_scores(scores, ~mask)
        {CUT} -> torch.where(mask, 0.0, weights)
        True means may attend.
    scores_set_to_zero: blocked scores set to 0
        {MASKED} -> scores * mask
        {UNCUT}
        {ZERO_STILL_WEIGHS}
    bool_mask_added: the boolean mask itself added to the scores
        {MASKED} -> scores + mask
        {UNCUT}
        {ADDED_MASK}
    gradient_is_nan: an added -inf, with NaN hidden in the gradient
        {MASKED} -> scores + torch.zeros_like(scores).masked_fill(~mask, -torch.inf)
        {CUT} -> weights.nan_to_num()
        The values are right, but an addition passes a NaN gradient on. Replace the blocked scores instead.
    minus_10000_filled: a fill of -10000
        {MASKED} -> scores.masked_fill(~mask, -10000.0)
        In a row whose visible scores are near -10000, blocked keys take part of the weight. Fill in a lower number.
    uniform_rows: equal weights in fully masked rows
        {MASKED} -> scores.masked_fill(~mask, -1e9)
        {UNCUT}
        All entries of such a row have the same low score, so softmax gives them equal weights. They must be zero.
    softmax_over_queries: softmax over the queries instead of the keys
        dim=-1) -> dim=-2)
        The weights of one query add up to 1, so the softmax runs over the last axis.
    powers_overflow: exponentials of the raw scores, and a division by a sum that may be 0
        torch.softmax({MASKED}, dim=-1) -> scores.exp() * mask / (scores.exp() * mask).sum(-1, keepdim=True)
        {UNCUT}
        e to the power of 10000 overflows. And the sum of a fully masked row is zero.
    not_masked: the mask has no effect
        {MASKED} -> scores
        {UNCUT}
        Blocked keys still get weight. Is the mask used? (masked_fill returns a new tensor.)
""")

FROM_ANY = "a leak from any position"


def cases_leaks_future(draw):
    clean, norms = "functions that do not leak", "rows centered or scaled before or after"
    small, one_spot, f64 = "a weak leak", "one sentence or one feature", torch.float64
    replaced = "all rows after t are new"
    below = "changes below 1e-6"

    def one(table, width=4, B=2, D=4, dtype=torch.float32, **norms):
        # Scaled, because an answer with the same seed could draw exactly the same standard normal numbers as noise.
        x = draw.normal(B, len(table), D, dtype=dtype, scale=1.5)
        return Stub("rows_of_a_text", (table.to(dtype), width, *norms.values())), x

    def so_far(T=6):
        return torch.ones(T, T, dtype=f64).tril() / torch.arange(1, T + 1)[:, None]

    def whole(T=6):
        return torch.eye(T) + 1 / T

    def shifted(by, T=6):
        return torch.ones(T - 1).diag(by)

    def peeking(position, source, strength=1.0, T=6):
        """The running mean, except that row `position` also sees row `source` (no leak if they are equal)."""
        table = so_far(T)
        table[position, source] += strength
        return table

    def between(before, behind, position, source):
        return one(peeking(position, source), 5, before=before, behind=behind, dtype=f64)

    def in_one(position, source, sentence, feature, height, part, note, width=4, B=2, strength=1.0):
        """Row `source` is an outlier, so that any replacement moves row `position` in the same direction."""
        x = draw.normal(B, 6, 4, scale=1.5)
        x[:, source] = height
        f = Stub("peeking_in_one", (so_far().float(), width, (sentence, position, feature), source, strength))
        return Case((f, x), part=part, note=note)

    def one_number_each():
        f, x = one(shifted(1, T=2), 1, B=1, D=1)
        x[:, 1] = -4.0
        return Case((f, x), part=FROM_ANY, note="two tokens of one number each, token 0 seeing token 1")

    def of_zeros():
        f, x = one(peeking(0, 3))
        x[:, 3] = 0.0
        return Case((f, x), part=replaced, note="token 0 seeing token 3, whose numbers are all 0")

    def leak(position, source):
        note = f"token {position} seeing token {source}"
        return Case(one(peeking(position, source, T=4)), part=FROM_ANY, note=note)

    alike = draw.normal(2, 1, 4, scale=1.5).repeat(1, 6, 1)
    copies = draw.normal(1, 6, 4, scale=1.5).repeat(3, 1, 1)
    of_copies, _ = one(whole(), before="without the batch's mean")
    first_alone = torch.eye(6)[:1].expand(6, 6)
    again = "a mean over all tokens. A second call: token 1 of x holds the numbers that your first call drew for it"
    return [
        Case(one(whole()), note="a mean over all tokens"),
        Case(one(so_far()), note="a mean over the tokens so far"),
        Case(one(so_far(5), 3, B=3), part=clean, note="a mean over the tokens so far"),
        Case(between("normed", "normed", 0, 0), part=clean, note="layer norms, no leak"),
        Case(one(shifted(-1)), part=clean, note="each token seeing the one before it, not itself"),
        Case(
            one(first_alone, dtype=f64, before="with a parameter"),
            part=clean,
            note="each token seeing the first; x and f are float64",
        ),
        Case(one(shifted(1), 5), part=FROM_ANY, note="each token seeing the next"),
        one_number_each(),
        *[leak(position, source) for position in range(4) for source in range(position + 1, 4)],
        Case((one(whole())[0], alike), part=replaced, note="a mean over all tokens, which are all alike"),
        Case((of_copies, copies), part=replaced, note="the batch's mean subtracted; equal sentences"),
        Case(one(whole(2)), part=replaced, via="drawn_before", note=again),
        of_zeros(),
        Case(between("normed", "normed", 0, 3), part=norms, note="layer norms, token 0 seeing token 3"),
        Case(between("as it is", "centered", 4, 5), part=norms, note="outputs that sum to 0, token 4 seeing token 5"),
        Case(
            between("as it is", "of one length", 0, 5), part=norms, note="outputs of length 1, token 0 seeing token 5"
        ),
        in_one(2, 4, 1, 2, -8.0, one_spot, "a leak in sentence 1, feature 2; token 4 is -8"),
        in_one(2, 4, 1, 2, 8.0, one_spot, "a leak in sentence 1, feature 2; token 4 is 8"),
        in_one(1, 4, 1, 3, -8.0, one_spot, "a leak in sentence 1, feature 3 alone"),
        in_one(2, 3, 0, 0, -8.0, one_spot, "a leak in sentence 0, feature 0 alone", B=3),
        # Here the mean change of the outputs is below 1e-6.
        in_one(2, 4, 1, 2, -4.0, small, "one of 512 features of one sentence changing by 0.008", 512, 10, 5e-4),
        Case(one(peeking(1, 4, 2e-5), dtype=f64), part=small, note="token 1 seeing a little of token 4"),
        Case(one(peeking(1, 4, 1e-11), dtype=f64), part=below, note="a change far below 1e-6"),
        Case(one(whole(1)), part="T = 1", note="one token"),
    ]


COMPARED = "after[:, :start], before[:, :start]"
SAME = f"torch.allclose({COMPARED}, rtol=0, atol=1e-6)"
POSITIONS = "range(1, x.shape[1])"
FUTURE = "x[:, :start], other[:, start:]"
leaks_future = Exercise("leaks_future", cases_leaks_future, weights={FROM_ANY: 22}).with_mistakes(f"""
    only_last_token_changed: only what the last token leaks is found
        {POSITIONS} -> range(x.shape[1] - 1, x.shape[1])
        You change only the last token, so a leak from token 1 to token 0 isn't found. Replace all rows after t, for every t.
    middle_only: only one position in the middle is tried
        {POSITIONS} -> range(x.shape[1] // 2, x.shape[1] // 2 + 1)
        A leak between two early or two late tokens isn't found. Try every t.
    first_place_only: only the first position is tried, or only its output is compared
        {POSITIONS} -> range(1, min(2, x.shape[1]))
        Try every t, and compare every output up to t. (A `return False` inside the loop ends it in the first round.)
    answer_inverted: True where nothing leaks, False where something does
        return True -> return None
        return False -> return True
        return None -> return False
        The result should be True if f leaks. Which of your two returns belongs to a change?
    later_outputs_compared: the outputs after t compared as well
        {COMPARED} -> after, before
        Outputs after t may change, because you changed their inputs.
    present_changed: the token at t changed as well
        {FUTURE} -> x[:, : start - 1], other[:, start - 1 :]
        A token may see itself. Change x only from position t + 1 on.
    present_changed_at_every_t: the token at t changed as well
        {POSITIONS} -> range(1, x.shape[1] + 1)
        {FUTURE} -> x[:, : start - 1], other[:, start - 1 :]
        A token may see itself. Change x only from position t + 1 on.
    present_not_compared: a gap of one position between the compared outputs and the changed inputs
        {COMPARED} -> after[:, : start - 1], before[:, : start - 1]
        Changes begin at t + 1, so the output at t must be compared as well.
    exact_equality: exact equality asked for
        {SAME} -> torch.equal({COMPARED})
        Rounding may change the last digit. Only a change of more than 1e-6 is a leak.
    no_absolute_value: only outputs that become larger are noticed
        not {SAME} -> (after - before)[:, :start].max() > 1e-6
        A leak may also make outputs smaller. What does your comparison do with a negative change?
    changes_summed: changes are added up with their signs before their size is compared
        not {SAME} -> (after - before)[:, :start].sum().abs() > 1e-6
        Positive and negative changes cancel, for example after a layer norm. What must happen to each change before the sum?
    future_set_to_zero: the future set to 0 instead of replaced by random rows
        {FUTURE} -> x[:, :start], torch.zeros_like(x[:, start:])
        A row that holds zeros already doesn't change, and a ReLU often gives 0 before and after. Use random rows.
""")


def cases_fixed_causal_attention(draw):
    def make(dtype, *lead, scale=1.0, d_k=6, d_v=3):
        Q, K = draw.normal(*lead, 5, d_k, dtype=dtype, scale=scale), draw.normal(*lead, 5, d_k, dtype=dtype)
        return Q, K, draw.normal(*lead, 5, d_v, dtype=dtype)

    def planned(visible, blocked):
        """Scores near `visible` for the past and the present, and near `blocked` for the future."""
        T = 4  # also d_k, whose square root is exact
        wanted = torch.where(_causal(T), visible, blocked).double() + draw.uniform(T, T, high=3.0, dtype=torch.float64)
        return wanted * T**0.5, torch.eye(T, dtype=torch.float64), draw.normal(T, 3, dtype=torch.float64)

    zero, *rest = make(torch.float32)
    zero[2] = 0.0
    return [
        *tensor_cases(make, leads=((), (3,), (2, 3))),
        Case(make(torch.float32, 2, d_v=8), note="a batch of two, d_v larger than d_k"),
        Case(make(torch.float32, 2, 3), part=LEADING, via="on_views", note="tensors that are views, transposed"),
        Case(make(torch.float64, scale=1500.0, d_k=4), part=LARGE),  # the square root of 4 is exact in float32
        Case(planned(-9999.0, 9996.0), part=LARGE, gradient=True),
        Case(planned(-10000.0, 0.0), part=LARGE, note="visible scores of -10000 to -9997"),
        Case((draw.normal(2, 1, 4), draw.normal(2, 1, 4), draw.normal(2, 1, 3)), part="one token"),
        Case((zero, *rest), part=ZEROS),
    ]


SEEN = "causal_mask(Q.shape[-2]).to(Q.device)"
WEIGHTS = f"masked_softmax(scores, {SEEN})"
PLAIN = "torch.softmax(scores, dim=-1)"
RENORMALIZED = "return weights -> return weights / weights.sum(-1, keepdim=True)"
fixed_causal_attention = Exercise(
    "fixed_causal_attention",
    cases_fixed_causal_attention,
    axes=("token", "column"),
    forbidden=("attention",),
    instead="build it from scores, a mask, softmax and V.",
    weights={LARGE: 6},
).with_mistakes(f"""
    bug_not_fixed: still the bug, the mask after the softmax
        {WEIGHTS} -> {PLAIN} * {SEEN}
        Add up the weights of row 0. Which keys got the rest?
    divided_again: exponentials of all scores, then the mask, then rows divided by their sums
        {WEIGHTS} -> {PLAIN} * {SEEN}
        {RENORMALIZED}
        Put the future at +9000 and the past at -9000. What is left of the past's exponentials?
    future_set_to_zero: the future's scores set to 0
        {WEIGHTS} -> torch.softmax(scores.tril(), dim=-1)
        {ZERO_STILL_WEIGHS}
    bool_mask_added: the boolean mask itself added to the scores
        {WEIGHTS} -> torch.softmax(scores + {SEEN}, dim=-1)
        {ADDED_MASK}
    inverted: the past and the present masked, the future left open
        {SEEN} -> ~{SEEN}
        True means may attend. In your version the last token sees nothing.
    self_excluded: a strict triangle, so that no token sees itself
        {SEEN} -> {SEEN}.tril(-1)
        A token may see itself. In your version token 0 sees nothing.
    not_masked: no mask, or one that has no effect
        {WEIGHTS} -> {PLAIN}
        The future still gets weight. Where is the mask?
    not_scaled: scores that are not scaled
        / Q.shape[-1] ** 0.5 ->
        By what does lesson 4 divide the scores?
    divided_by_d_k: scores divided by the width, not by its square root
        Q.shape[-1] ** 0.5 -> Q.shape[-1]
        Which divisor keeps the standard deviation of the scores at 1 (lesson 4)?
    softmax_over_queries: softmax over the queries instead of the keys
        {WEIGHTS} -> torch.softmax(mask_scores(scores, {SEEN}), dim=-2)
        The weights of one query add up to 1, so the softmax runs over the last axis.
    zero_times_infinity: 0 times infinity, which is NaN
        {WEIGHTS} -> torch.softmax(scores + ~{SEEN} * -torch.inf, dim=-1)
        0 · (-inf) is NaN. Choose between two values instead of multiplying.
    powers_overflow: exponentials of the raw scores
        {WEIGHTS} -> scores.exp() * {SEEN}
        {RENORMALIZED}
        e to the power of 10000 overflows. Subtract the maximum of the row first, or use torch.softmax.
""")


exercises = [
    causal_mask,
    padding_mask,
    combine_masks,
    mask_scores,
    masked_softmax,
    leaks_future,
    fixed_causal_attention,
]


quizzes = listed_quizzes("""
    quiz_1: a
        a: nn.MultiheadAttention blocks where a mask is True, so both of our masks must be inverted.
        b: Both have the wrong meaning here, so a token can attend only to padding that comes after it.
        c: The first mask is right. The second one blocks all real tokens and leaves the padding.
    quiz_2: c
        a: That mask has the wrong shape, because each query has a score for all 8 keys, the cached ones included.
        b: That is a triangle aligned at the first key. The newest token would see the two oldest ones, and not itself.
        c: The new tokens have the positions 6 and 7. Each sees the six cached keys, and the new ones up to itself.
""")
