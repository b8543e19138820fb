"""Cases and known mistakes of lesson 5."""

import torch

from helpers.checking.vocabulary import GRADIENT, LEADING, Case, Exercise, Stub, listed_quizzes, tensor_cases

NOTHING = "fully masked rows"
LARGE = "scores up to ±10⁴"
BROADCAST = "masks that broadcast"
ZEROS = "visible scores of 0"
BATCH_OF_ONE = "leading dimensions of size 1"
VIEW = "tensors that are views of others, transposed"
SQUARE = "as many queries as keys"
BOOLEAN = "The spec asks for a boolean tensor."


def _causal(T_q, T_k=None):
    T_k = T_q if T_k is None else T_k
    return torch.arange(T_k) <= torch.arange(T_q)[:, None] + T_k - T_q


def _real(lengths, T):
    return torch.arange(T) < torch.tensor(lengths)[:, None]


def _spotted(draw, *shape):
    """A mask whose rows all hold both a True and a False."""
    mask = draw.mask(*shape, keep=0.5)
    lone = mask.all(-1, keepdim=True)
    last = torch.arange(shape[-1]) == shape[-1] - 1
    return mask & ~(lone & last)


def _with_zeros(draw):
    """Scores and a mask; the scores of the first row are all exactly 0."""
    scores = draw.normal(4, 6)
    scores[0] = 0.0
    return scores, _spotted(draw, 4, 6)


def _fewer_axes(draw):
    """Scores of four axes with masks of two and three, and what to call them.

    Were the first axis of a mask the batch, these would fit the scores in another way, or not at all.
    """
    return [
        ((draw.normal(4, 3, 4, 6), _spotted(draw, 4, 6)), "as many sentences as queries, and a mask (T_q, T_k)"),
        ((draw.normal(2, 3, 4, 6), _spotted(draw, 3, 4, 6)), "scores (B, H, T_q, T_k) and a mask (H, T_q, T_k)"),
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
        Case((260, 300), part="more keys than queries", note="260 queries, 300 keys"),
        Case((2, 2000), part="more keys than queries", note="2 queries, 2000 keys"),
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
    sees_the_future_at_the_end: the future visible and the past blocked, aligned at the last key
        {TRIANGLE} -> triu(T_k - T_q)
        The alignment is right, but the function keeps the other triangle.
    only_the_future: True where the future is, counted from the first key
        {TRIANGLE} -> triu(1)
        Your mask is True where keys are blocked. Invert it, and align it at the last key.
    transposed: queries and keys swapped
        {TRIANGLE} -> {TRIANGLE}.T
        Rows are queries, columns are keys.
    cache_hidden: the cached keys blocked
        {TRIANGLE} -> {TRIANGLE} & (torch.arange(T_k) >= T_k - T_q)
        The cached keys come before all new tokens, so every query may see them.
    diagonal_turned_round: the triangle is shifted the wrong way
        {TRIANGLE} -> tril(T_q - T_k)
        If five keys are cached and two tokens are new, the first query sees six keys. In which direction must the diagonal move?
    square_whatever_T_k: T_k is not used
        torch.ones(T_q, T_k -> torch.ones(T_q, T_q
        {TRIANGLE} -> tril()
        The mask needs one column for each key, and there may be more keys than queries.
    numbers_not_booleans: ones and zeros instead of True and False
        , dtype=torch.bool ->
        {BOOLEAN} A float mask is added by some libraries.
    whole_numbers: ones and zeros instead of True and False
        {TRIANGLE} -> {TRIANGLE}.long()
        {BOOLEAN}
    short_whole_numbers: ones and zeros instead of True and False
        {TRIANGLE} -> {TRIANGLE}.int()
        {BOOLEAN}
    to_be_added: 0 and minus infinity, to be added to scores
        {TRIANGLE} -> {TRIANGLE}.float().log()
        {BOOLEAN} Minus infinity comes in later.
    everything_open: True everywhere
        .{TRIANGLE} ->
        The first of three queries may see only the first key.
    next_one_seen_at_the_start: the triangle aligned at the first key, and one key of the future is visible
        {TRIANGLE} -> tril(1)
        The first of three queries should see exactly one key, and with a cache the triangle is aligned at the last key.
""")


def cases_padding_mask(draw):
    return [
        Case((torch.tensor([3, 1, 5, 2]), 6)),
        Case((draw.integers(1, 8, (5,)), 8)),
        Case((torch.tensor([2, 5, 1, 3]), 6), note="the first call's lengths in another order"),
        Case((torch.tensor([1, 3, 2]), 3), part="B equal to T"),
        Case((torch.tensor([0, 4]), 5), part="a sentence of length 0"),
        Case((torch.tensor([5, 2, 5]), 5), part="a sentence without padding"),
        Case((torch.tensor([4, 4, 4]), 4), part="a sentence without padding", note="three sentences without padding"),
        Case((torch.tensor([2, 3]), 7), part="T longer than every sentence"),
        Case((torch.tensor([1990, 3]), 2000), part="T longer than every sentence", note="lengths 1990 and 3, T = 2000"),
        Case((torch.tensor([2]), 4), part="a batch of one"),
        Case((torch.tensor([1]), 1), part="a batch of one", note="one sentence of one word"),
    ]


REAL = "torch.arange(T, device=lengths.device) < lengths[:, None]"
padding_mask = Exercise("padding_mask", cases_padding_mask, axes=("sentence", "token")).with_mistakes(f"""
    inverted: True on the padding
        device) < -> device) >=
        True means may attend, and no query may attend to padding.
    one_too_many: one pad is visible
        device) < -> device) <=
        A sentence of length 2 has its tokens at positions 0 and 1.
    one_too_few: one word blocked
        arange(T, -> arange(1, T + 1,
        A sentence of length 2 has its tokens at positions 0 and 1.
    whole_sentences_blocked: every word of a sentence without padding blocked
        return torch.arange(T, device=lengths.device) < lengths[:, None]
        -> return (torch.arange(T, device=lengths.device) < lengths[:, None]) & (lengths < T)[:, None]
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
    transposed: sentences and tokens swapped
        {REAL} -> torch.arange(T)[:, None] < lengths
        The mask needs one row for each sentence.
    numbers_not_booleans: ones and zeros instead of True and False
        {REAL} -> ({REAL}).long()
        {BOOLEAN}
    floats_not_booleans: ones and zeros instead of True and False
        {REAL} -> ({REAL}).float()
        {BOOLEAN}
    short_whole_numbers: ones and zeros instead of True and False
        {REAL} -> ({REAL}).int()
        {BOOLEAN}
    to_be_added: 0 and minus infinity, to be added to scores
        {REAL} -> ({REAL}).float().log()
        {BOOLEAN} Minus infinity comes in later.
    axes_too_early: axes for heads and queries put in already
        {REAL} -> ({REAL})[:, None, None, :]
        Return one row for each sentence. The next exercise adds the axes.
    square_mask: a table of pairs of tokens
        return {REAL} -> real = {REAL}
        |    return real[:, :, None] & real[:, None, :]
        Return one entry for each token of each sentence, not for each pair of tokens.
    everything_open: True everywhere
        {REAL} -> torch.ones(len(lengths), T, dtype=torch.bool)
        The entries of the padding must be False. The lengths say how many there are.
    inverted_past_one: True on the padding, except for its first position
        device) < -> device) >
        True means may attend. And the padding of a sentence of length 2 begins at position 2.
    one_too_few_by_slice: one token blocked, and a sentence of length 0 visible
        {REAL} -> torch.arange(T) < ((lengths - 1) % T)[:, None]
        A slice that ends with n leaves out position n already, and a slice that ends with -1 takes nearly everything.
    last_word_only: True at the last word of each sentence alone
        < lengths[:, None] -> == lengths[:, None] - 1
        Every real token must be True, not only the last one. Compare positions and lengths by <.
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
        Case((_causal(3, 5), _real([5, 5], 5)), part="sentences of one length", note="two sentences without padding"),
        Case((_causal(3, 5), _real([4, 4], 5)), part="sentences of one length"),
        Case((_causal(3, 5), _real([4], 5)), part="a batch of one"),
    ]


PADDED = "padding[:, None, None, :]"
BOTH = f"causal & {PADDED}"
combine_masks = Exercise("combine_masks", cases_combine_masks, axes=("sentence", "head", "query", "key")).with_mistakes(f"""
    sum_above_one: the two masks added, and asked for more than 1
        {BOTH} -> (causal + {PADDED}) > 1
        In Python True + True is 2, but the sum of two boolean tensors is boolean. Use & instead.
    either_is_enough: a key seen if one of the masks says yes
        causal & -> causal |
        Both masks must allow the key.
    queries_blocked_too: padded queries blocked as well as padded keys
        {PADDED} -> {PADDED} & padding[:, None, -causal.shape[0] :, None]
        Padding blocks keys only. Otherwise padded queries would become fully masked rows.
    every_query_blocked_too: padding applied to keys and queries, as if there were equally many
        {PADDED} -> {PADDED} & padding[:, None, :, None]
        Padding blocks keys only, and there may be fewer queries than keys.
    queries_as_many_as_keys: padding applied to the queries, as if there were as many as keys
        {PADDED} -> padding[:, None, :, None]
        Which axis of the result belongs to the keys, counted from the right?
    queries_instead_of_keys: padding applied to the queries
        {PADDED} -> padding[:, None, -causal.shape[0] :, None]
        Which axis of the result belongs to the keys, counted from the right?
    no_axis_for_heads: no axis for the heads
        {PADDED} -> padding[:, None, :]
        The scores have shape (B, H, T_q, T_k), so without an axis for the heads your B is aligned with H.
    heads_axis_misplaced: the axis for the heads at another position
        {BOTH} -> (causal & padding[:, None, :])[:, :, None, :]
        The axis of the heads comes right after that of the batch.
    causal_forgotten: only the padding
        {BOTH} -> {PADDED}.expand(-1, 1, causal.shape[0], -1)
        Your result doesn't depend on the causal mask.
    padding_forgotten: only the causal mask
        {PADDED} -> torch.ones_like({PADDED})
        Your result doesn't depend on the padding mask.
    padding_inverted: the padding visible and the tokens blocked
        {PADDED} -> ~{PADDED}
        In both masks True means may attend, so neither must be inverted.
    causal_inverted: the past blocked and the future visible
        causal & -> ~causal &
        In both masks True means may attend, so neither must be inverted.
    numbers_not_booleans: ones and zeros instead of True and False
        {BOTH} -> causal.float() * {PADDED}.float()
        {BOOLEAN}
    whole_numbers: ones and zeros instead of True and False
        {BOTH} -> causal.long() * {PADDED}
        {BOOLEAN}
    short_whole_numbers: ones and zeros instead of True and False
        {BOTH} -> causal.int() * {PADDED}
        {BOOLEAN}
    one_mask_for_all: one padding for all sentences
        {PADDED} -> padding.all(0).expand(len(padding), 1, 1, -1)
        Each sentence has its own length.
    inverted: True where it should be False
        {BOTH} -> ~({BOTH})
        True means may attend, and a token may attend to itself.
    both_say_the_same: a key visible where both masks are equal
        causal & -> causal ==
        Both masks must be True. Where both are False, your result is True.
    queries_blocked_too_2: padded queries blocked as well as padded keys
        {PADDED} -> {PADDED} & padding[:, None, : causal.shape[0], None]
        Padding blocks keys only. Otherwise padded queries would become fully masked rows.
    batch_and_heads_exchanged: the axes of the sentences and of the heads exchanged
        causal & padding[:, None, None, :] -> (causal & padding[:, None, :])[None]
        The axis of the batch comes first, then that of the heads, which has size 1.
""")


def cases_mask_scores(draw):
    view = {"view": "filled_scores"}

    def make(dtype, *lead):
        return draw.normal(*lead, 4, 6, dtype=dtype), _spotted(draw, 4, 6)

    def large(dtype):
        return draw.uniform(4, 6, low=-1e4, high=1e4, dtype=dtype), _spotted(draw, 4, 6)

    return [
        *tensor_cases(make, leads=((), (3,), (2, 3)), gradient=False, **view),
        Case(make(torch.float64), note="scores in float64", **view),  # where a large number added leaves a trace
        Case(make(torch.float32, 1, 1), part=LEADING, note=BATCH_OF_ONE, **view),
        # The fill itself has no gradient worth a comparison: the scenario takes it out.
        Case(make(torch.float64, 2), part=GRADIENT, gradient=True, via="kept_entries"),
        Case(large(torch.float32), part=LARGE, **view),
        Case(large(torch.float64), part=LARGE, **view),
        Case((draw.normal(2, 3, 4, 6), _spotted(draw, 2, 1, 4, 6)), part=BROADCAST, **view),
        Case((draw.normal(2, 3, 4, 6), _spotted(draw, 2, 1, 1, 6)), part=BROADCAST, **view),
        *[Case(item, part=BROADCAST, note=note, **view) for item, note in _fewer_axes(draw)],
        Case((draw.normal(4, 6), _spotted(draw, 6)), part=BROADCAST, **view),
        Case((draw.normal(4, 6), torch.ones(4, 6, dtype=torch.bool)), part="a mask that blocks nothing", **view),
        Case((draw.normal(2, 5, 5), _causal(5)), part=SQUARE, note="a causal mask", **view),
        Case(_with_zeros(draw), part=ZEROS, **view),
        Case((torch.zeros(4, 6), _spotted(draw, 4, 6)), part=ZEROS, note="all scores are 0", **view),
    ]


FILL = "scores.masked_fill(~mask, -math.inf)"
mask_scores = Exercise("mask_scores", cases_mask_scores, axes=("query", "key")).with_mistakes(f"""
    inverted: the visible scores blocked and the blocked ones kept
        ~mask -> mask
        True means may attend, so the fill belongs where the mask is False.
    set_to_zero: blocked scores set to 0
        {FILL} -> scores * mask
        A score of 0 still gets weight, because e to the power of 0 is 1.
    large_number_added: a large number added instead of a constant filled in
        {FILL} -> scores + (~mask) * -1e9
        After an addition, blocked scores still differ from each other. Replace them instead.
    minus_10000_added: -10000 added, as BERT did
        {FILL} -> scores + (~mask) * -10000.0
        A blocked score of +9000 becomes -1000, which is above visible scores of -5000.
    minus_10000_filled: a fill of -10000
        -math.inf -> -10000.0
        In a row whose visible scores are all -10000, blocked keys would get weight.
    minus_1000_filled: a fill of -1000
        -math.inf -> -1000.0
        Visible scores may be as low as -10000.
    minus_100_filled: a fill of -100
        -math.inf -> -100.0
        Visible scores may be as low as -10000.
    plus_infinity: the wrong infinity
        -math.inf -> math.inf
        Which exponent makes the power 0?
    divided_by_the_mask: the scores divided by the mask, or blocked ones multiplied by infinity
        {FILL} -> scores / mask
        A score divided by 0 becomes plus or minus infinity, depending on its sign. Replace it instead.
    zero_times_infinity: 0 times infinity, which is NaN
        {FILL} -> scores + (1 - mask.to(scores.dtype)) * -math.inf
        0 · (-inf) is NaN. Choose between two values instead of multiplying.
    softmax_too: weights instead of masked scores
        {FILL} -> torch.softmax({FILL}, dim=-1)
        Return masked scores. The softmax comes in the next exercise.
    zeros_blocked: scores of 0 taken for blocked ones
        {FILL} -> (scores * mask).masked_fill(scores * mask == 0, -math.inf)
        A visible score may be 0 as well. Use the mask to find the blocked entries.
    multiple_of_the_largest: a fill that is a multiple of the largest score
        -math.inf -> -1e4 * scores.abs().max()
        Where all scores are 0, your fill is 0 as well.
    mask_not_read: the future blocked, whatever the mask says
        ~mask -> torch.ones(scores.shape[-2:]).triu(1).bool()
        Your result doesn't depend on the argument mask, which need not be causal.
    lowest_of_row: the row's lowest score as fill
        {FILL} -> torch.where(mask, scores, scores.detach().amin(-1, keepdim=True))
        The lowest score still gets some weight, whereas minus infinity gets none.
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

    def planned(visible, blocked):
        """Visible and blocked scores near two numbers."""
        mask = _spotted(draw, 4, 6)
        return torch.where(mask, visible, blocked) + draw.normal(4, 6, dtype=torch.float64), mask

    def at_the_edge():
        """Visible scores from -10000 to -9997, blocked ones anything."""
        mask = _spotted(draw, 4, 6)
        visible = draw.uniform(4, 6, low=-10000.0, high=-9997.0, dtype=torch.float64)
        visible[0] = visible[0].clamp_max(-9999.5)  # the whole row: it is low, and not blind
        return torch.where(mask, visible, draw.uniform(4, 6, low=-1e4, high=1e4, dtype=torch.float64)), mask

    def blind_beside_low():
        """The same with a row that sees nothing: a fill of -10000 does no harm there, but beside it."""
        scores, mask = at_the_edge()
        mask[2] = False
        return scores, mask

    def far_apart():
        """Visible scores so far apart that every float32 form gives exact zeros and ones."""
        order = torch.stack([draw.permutation(6) for _ in range(4)])
        return order.float() * 4000.0 - 10000.0, _spotted(draw, 4, 6)

    def rows_far_apart():
        """Each row has a height of its own, and its blocked scores are no higher than the visible ones."""
        heights = torch.tensor([9990.0, -9990.0, 0.0, 4000.0], dtype=torch.float64)[:, None]
        return heights + draw.normal(4, 6, dtype=torch.float64), _spotted(draw, 4, 6)

    nothing = draw.normal(4, 6, dtype=torch.float64), torch.zeros(4, 6, dtype=torch.bool)
    words = _real([5, 0], 6)[:, None, None]
    return [
        *tensor_cases(make, leads=((), (3,), (2, 3))),
        Case(make(torch.float32, 3), note="three matrices of scores"),
        Case(make(torch.float32, 2, 3), part=LEADING, via="on_views", note=VIEW),
        Case((draw.normal(2, 300), _spotted(draw, 2, 300)), note="300 keys"),
        Case(_with_zeros(draw), part=ZEROS),
        Case(make(torch.float32, 1, 1), part=LEADING, note=BATCH_OF_ONE),
        Case((draw.normal(2, 3, 4, 6), _spotted(draw, 2, 1, 4, 6)), part=BROADCAST),
        Case((draw.normal(2, 3, 4, 6), _spotted(draw, 2, 1, 1, 6)), part=BROADCAST),
        *[Case(item, part=BROADCAST, note=note) for item, note in _fewer_axes(draw)],
        Case((draw.normal(3, 4, 6, dtype=torch.float64), _spotted(draw, 6)), part=BROADCAST, gradient=True),
        Case(blind(torch.float32), part=NOTHING),
        Case((draw.normal(2, 3, 4, 6), words), part=NOTHING, note="a mask (B, 1, 1, T_k), sentence 1 of length 0"),
        Case((draw.normal(4, 6), torch.zeros(6, dtype=torch.bool)), part=NOTHING),
        Case(blind(torch.float32, 3), part=NOTHING),
        Case(blind(torch.float64, 2), part=NOTHING, gradient=True),
        Case(nothing, part=NOTHING, gradient=True),
        Case((draw.normal(2, 4, 6), torch.tensor([True, False])[:, None, None]), part=NOTHING),
        Case((draw.uniform(4, 6, low=-1e4, high=1e4, dtype=torch.float64), _spotted(draw, 4, 6)), part=LARGE),
        Case(planned(-9995.0, 9995.0), part=LARGE, gradient=True),
        Case(planned(0.0, 2000.0), part=LARGE, note="blocked scores near 2000"),
        Case(planned(-3000.0, -3200.0), part=LARGE, note="visible scores near -3000"),
        Case(at_the_edge(), part=LARGE, note="visible scores of -10000 to -9997"),
        Case(blind_beside_low(), part=LARGE, note="visible scores of -10000 to -9997, and a fully masked row"),
        Case(far_apart(), part=LARGE),
        Case(rows_far_apart(), part=LARGE, note="rows near 9990, -9990, 0 and 4000"),
        Case((draw.normal(2, 5, 5), _causal(5)), part=SQUARE, note="a causal mask"),
        Case((torch.zeros(4, 6), _spotted(draw, 4, 6)), part=ZEROS, note="all scores are 0"),
    ]


MASKED = "mask_scores(scores, mask)"
CUT = "torch.where(mask, weights, 0.0)"
UNCUT = f"{CUT} -> weights"
masked_softmax = Exercise("masked_softmax", cases_masked_softmax, axes=("query", "key")).with_mistakes(f"""
    nan_rows_left: NaN left in fully masked rows
        {UNCUT}
        A softmax over only -inf divides 0 by 0. Set the weights of such rows to zero.
    masked_after_softmax: the mask applied after the softmax
        {MASKED} -> scores
        The rows don't add up to 1. Mask the scores before the softmax instead.
    divided_again: exponentials of all scores, then the mask, then rows divided by their sums
        {MASKED} -> scores
        return {CUT} -> weights = weights * mask
        |    return weights / weights.sum(-1, keepdim=True).clamp(min=1e-12)
        That is right on paper, but when a blocked score is far above the visible ones, their exponentials round to zero.
    inverted: the blocked keys kept and the visible ones blocked
        {MASKED} -> mask_scores(scores, ~mask)
        {CUT} -> torch.where(mask, 0.0, weights)
        True means may attend.
    scores_set_to_zero: blocked scores set to 0
        {MASKED} -> scores * mask
        {UNCUT}
        A score of 0 still gets weight, because e to the power of 0 is 1.
    zero_scores_then_mask: blocked scores set to 0, and their weights taken out later
        {MASKED} -> scores * mask
        The blocked keys are still part of the denominator.
    gradient_is_nan: an added -inf, with NaN hidden in the gradient
        {MASKED} -> scores + torch.zeros_like(scores).masked_fill(~mask, -torch.inf)
        {CUT} -> weights.nan_to_num()
        The values are right, but an addition passes a NaN gradient on. Replace the blocked scores instead.
    zeros_blocked: scores of 0 taken for blocked ones
        {MASKED} -> (scores * mask).masked_fill(scores * mask == 0, -1e9)
        A visible score may be 0 as well. Use the mask to find the blocked entries.
    uniform_rows: equal weights in fully masked rows
        {MASKED} -> scores.masked_fill(~mask, -1e9)
        {UNCUT}
        All entries of such a row have the same low score, so softmax gives them equal weights. They must be zero.
    blind_rows_opened: every key visible in fully masked rows
        {MASKED} -> mask_scores(scores, mask | ~mask.any(-1, keepdim=True))
        {UNCUT}
        This avoids NaN, but the weights of such a row must be zero in the end.
    softmax_over_queries: softmax over the queries instead of the keys
        dim=-1 -> dim=-2
        The weights of one query add up to 1, so the softmax runs over the last axis.
    minus_10000_added: -10000 added to the blocked scores, as BERT did
        {MASKED} -> scores + (~mask) * -10000.0
        If a blocked score is 9000 and the visible ones are -5000, the blocked key still wins.
    minus_20000_added: 20000 subtracted from the blocked scores, and their weights set to 0
        {MASKED} -> scores + (~mask) * -20000.0
        A blocked score of 10000 becomes -10000, which is as high as a visible score of -10000.
    minus_10000_filled: a fill of -10000, and blocked weights set to 0
        {MASKED} -> scores.masked_fill(~mask, -10000.0)
        Visible scores may be -10000 as well, and then blocked keys take part in the denominator.
    minus_10000_left: a fill of -10000 and nothing else
        {MASKED} -> scores.masked_fill(~mask, -10000.0)
        {UNCUT}
        The fill is too high if visible scores are -10000, and fully masked rows must be zero.
    minus_1000_filled: a fill of -1000, and blocked weights set to 0
        {MASKED} -> scores.masked_fill(~mask, -1000.0)
        Visible scores may be as low as -10000, and then blocked keys take all the weight.
    minus_1000_left: a fill of -1000 and nothing else
        {MASKED} -> scores.masked_fill(~mask, -1000.0)
        {UNCUT}
        Visible scores may be as low as -10000. And fully masked rows must be zero.
    powers_overflow: exponentials of the raw scores
        torch.softmax({MASKED}, dim=-1)
        -> scores.exp() * mask / (scores.exp() * mask).sum(-1, keepdim=True).clamp(min=1e-30)
        e to the power of 10000 overflows. Subtract the maximum of the row first, or use torch.softmax.
    zero_times_infinity: 0 times infinity, which is NaN
        {MASKED} -> scores + (~mask) * -torch.inf
        {UNCUT}
        Where the mask is True you add 0 times infinity, which is NaN.
    divided_again_and_patched: the softmax of all scores, then the mask, then rows divided by their sums, and NaN replaced
        {MASKED} -> scores
        return {CUT} -> weights = weights * mask
        |    return (weights / weights.sum(-1, keepdim=True)).nan_to_num(0.0)
        If a blocked score is far above the visible ones, their weights round to zero, and the gradient of a fully masked row
        is NaN. Mask before the softmax.
    powers_divided: exponentials of the raw scores
        torch.softmax({MASKED}, dim=-1) -> scores.exp() * mask / ((scores.exp() * mask).sum(-1, keepdim=True) + 1e-12)
        {UNCUT}
        e to the power of 10000 overflows, and infinity times 0 is NaN. Subtract the maximum of the row first.
    powers_of_visible_scores: exponentials of scores that are not shifted, and a division by a sum of 0
        torch.softmax({MASKED}, dim=-1) -> {MASKED}.exp() / {MASKED}.exp().sum(-1, keepdim=True)
        {UNCUT}
        e to the power of 10000 overflows. And the sum of a fully masked row is zero.
    large_number_added: a large number added to blocked scores, and weights left in fully masked rows
        {MASKED} -> scores + (~mask) * -1e9
        {UNCUT}
        In such a row all scores are shifted by the same amount, which doesn't change the softmax. They must be zero.
    blind_table_only: NaN left in fully masked rows, unless the entire mask is False
        {UNCUT} if mask.any() else torch.zeros_like(scores)
        You test whether the mask is True anywhere, but each row has to be tested.
    infinity_added: an added -inf, and NaN left in fully masked rows
        {MASKED} -> scores + torch.zeros_like(scores).masked_fill(~mask, -torch.inf)
        {UNCUT}
        A softmax over only -inf divides 0 by 0. Replace the scores, and set the weights of such rows to zero.
    powers_and_blind_rows: exponentials of the raw scores, and a division by a sum of 0
        torch.softmax({MASKED}, dim=-1) -> scores.exp() * mask / (scores.exp() * mask).sum(-1, keepdim=True)
        {UNCUT}
        e to the power of 10000 overflows. And the sum of a fully masked row is zero.
    added_EPS for EPS in 1e-5, 1e-6: EPS added to the sum that a row is divided by
        torch.softmax({MASKED}, dim=-1)
        -> (e := (scores - scores.masked_fill(~mask, -1e9).amax(-1, keepdim=True)).clamp(max=0).exp() * mask) / (e.sum(-1, keepdim=True) + EPS)
        In float64 the rows don't add up to 1. Only a sum of zero needs a special case.
    one_maximum_for_all: one maximum subtracted from all rows
        torch.softmax({MASKED}, dim=-1)
        -> (scores - scores.amax()).exp() * mask / ((scores - scores.amax()).exp() * mask).sum(-1, keepdim=True).clamp(min=1e-30)
        The largest score may be in another row, or blocked. Then the exponentials of a row far below it round to zero.
    divided_again_by_zero: exponentials of all scores, then the mask, then rows divided by their sums, 0 or not
        {MASKED} -> scores
        return {CUT} -> weights = weights * mask
        |    return weights / weights.sum(-1, keepdim=True)
        The sum of a fully masked row is zero, and so is that of a row in which a blocked score is far above the visible ones.
    not_masked: the mask has no effect
        {MASKED} -> scores
        {UNCUT}
        Blocked keys still get weight. Is the mask used? (masked_fill returns a new tensor.)
    softmax_twice: softmax before and after the mask
        {MASKED} -> mask_scores(torch.softmax(scores, dim=-1), mask)
        One softmax is enough, after the mask.
    zero_scores_and_blind_rows: blocked scores set to 0
        {MASKED} -> scores * mask
        {UNCUT}.masked_fill(~mask.expand(weights.shape).any(dim=-1, keepdim=True), 0.0)
        A score of 0 still gets weight, because e to the power of 0 is 1.
""")


def cases_leaks_future(draw):
    clean, pairs, norms = (
        "functions that do not leak",
        "a leak from any place",
        "rows centered or scaled, before and behind",
    )
    small, one_spot, f64 = "a weak leak", "one sentence or one feature", torch.float64
    replaced = "all rows after t are new"
    no_slope, below = "a leak through a ReLU or a hard choice", "changes below 1e-6"

    def one(name, *args, T=6, B=2, D=4, dtype=torch.float32):
        # Not plain normal numbers: with an unlucky seed an answer would draw the very same ones as its noise.
        return Stub(name, args), draw.normal(B, T, D, dtype=dtype, scale=1.5)

    def between(before, behind, position, source):
        return one("peeking_between", before, behind, position, source, 5, 6, dtype=f64)

    def one_way(height):
        """Row 4 lies so far off that the rows which replace it move row 2 in one direction."""
        f, x = one("peeking_in_one", 2, 4, 1, 2, 4, 6)
        x[:, 4] = height
        return Case((f, x), part=one_spot, note=f"in sentence 1, feature 2 alone; token 4 is {height} throughout")

    def lost_in_a_mean():
        """One output of one row of 1200 changes by about 3e-4, and the mean change of a row is below 1e-6.

        Old rows with added noise change it by less, but rarely by less than 1e-6.
        """
        f, x = one("peeking_in_one", 2, 4, 1, 2, 4, 6, 8e-5, B=400)
        x[:, 4] = 1.0
        return Case((f, x), part=small, note="one feature of one sentence of 400 changes, by about 3e-4")

    def one_among_many():
        """Larger, and the mean change lies below 1e-4: enough for a sum of squares, too little for such a mean."""
        f, x = one("peeking_in_one", 2, 4, 1, 2, 4, 6, 3e-4, B=10)
        x[:, 4] = 4.0
        return Case((f, x), part=small, note="one feature of one sentence of 10 changes, by about 0.005")

    def of_zeros():
        f, x = one("peeking", 0, 3, 1.0, 4, 6)
        x[:, 3] = 0.0
        return Case((f, x), part=replaced, note="token 0 sees token 3, whose numbers are all 0")

    def one_sign(kind, height, spread, note, T=16):
        """Numbers near `height`, so many that new ones have both signs, whichever of them a detector draws."""
        f, x = one("part_averaged", kind, 4, T=T, B=4)
        return Case((f, height + spread * x), part=no_slope, note=note)

    def only_large_ones():
        """Rows that are far smaller than those of x have no effect."""
        f, x = one("turned_round", "those beyond 0.5", T=3, B=8)
        note = "token 0 sees only numbers beyond ±0.5, of token 2; all numbers of x are 0.4375"
        return Case((f, torch.full_like(x, 0.4375)), part=replaced, note=note)

    def all_ones():
        f, x = between("centered", "as it is", 0, 3)
        return Case((f, torch.ones_like(x)), part=norms, note="centered rows; token 0 sees token 3; x is 1 throughout")

    def rows_alike():
        f, x = one("peeking_at_differences", T=4)
        note = "token 0 sees how far the tokens 1, 2 and 3 lie apart; x is 1 throughout"
        return Case((f, torch.ones_like(x)), part=replaced, note=note)

    def by_signs(strength, D):
        f, x = one("turned_round", "signs", strength, T=2, B=1, D=D)
        return Case(
            (f, x), part=small, note=f"token 0 sees the signs of token 1: {D} outputs move by {2 * strength:g} or not"
        )

    def peeking(position, source, T=6, part=pairs):
        return Case(
            one("peeking", position, source, 1.0, 4, T, T=T), part=part, note=f"token {position} sees token {source}"
        )

    alike = draw.normal(2, 1, 4, scale=1.5).repeat(1, 6, 1)
    return [
        Case(one("whole_average", 4), note="a mean over all tokens"),
        Case(one("causal_average", 4), note="a mean over the tokens so far"),
        Case(one("causal_average", 3, T=5, B=3), part=clean, note="a mean over the tokens so far"),
        Case(
            one("causal_average", 1, T=2, B=1, D=1),
            part=clean,
            note="a mean over the tokens so far, of one number each",
        ),
        Case(between("normed", "normed", 0, 0), part=clean, note="layer norms, no leak"),
        Case(one("previous_row", 4), part=clean, note="each token sees the one before it, not itself"),
        Case(
            one("first_row", 4, dtype=f64),
            part=clean,
            note="every token sees the first one alone; x and a parameter of f are float64",
        ),
        Case(one("next_row", 5), part=pairs, note="each token sees the next"),
        Case(one("next_row", 1, T=2, B=1, D=1), part=pairs, note="two tokens of one number each; token 0 sees token 1"),
        Case((Stub("whole_average", (4,)), alike), part=replaced, note="a mean over all tokens, which are all alike"),
        Case(one("part_averaged", "shares", 1, B=1), part=replaced, note="a mean blind to the signs and sizes of rows"),
        Case(
            one("whole_average", 4, T=2),
            part=replaced,
            via="drawn_before",
            note="a mean over all tokens. A second call: token 1 of x holds the numbers that your first call drew for it",
        ),
        of_zeros(),
        only_large_ones(),
        *[peeking(position, source, T=4) for position in range(4) for source in range(position + 1, 4)],
        *[peeking(position, source) for position, source in ((0, 5), (4, 5), (3, 4), (1, 3))],
        *map(one_way, (-8.0, 8.0)),
        Case(between("normed", "normed", 0, 3), part=norms, note="token 0 sees token 3"),
        Case(between("normed", "as it is", 1, 2), part=norms, note="a layer norm before; token 1 sees token 2"),
        Case(between("as it is", "centered", 4, 5), part=norms, note="outputs that sum to 0; token 4 sees token 5"),
        Case(
            between("as it is", "of one length", 0, 5), part=norms, note="outputs of one length; token 0 sees token 5"
        ),
        Case(one("peeking_in_one", 1, 4, 1, 3, 4, 6), part=one_spot, note="in sentence 1, feature 3 alone"),
        Case(one("peeking_in_one", 0, 2, 0, 2, 4, 6), part=one_spot, note="in sentence 0, feature 2 alone"),
        Case(one("peeking_in_one", 2, 3, 2, 0, 4, 6, B=3), part=one_spot, note="in sentence 2, feature 0 alone"),
        *[
            Case(one("peeking_at_one", 1, 4, k, 4, 6), part=one_spot, note=f"token 1 sees feature {k} of token 4")
            for k in range(4)
        ],
        one_sign("positive part", -1.5, 0.05, "a ReLU, all numbers between -2 and -1"),
        one_sign("negative part", 1.5, 0.0, "a ReLU of -x, all numbers 1.5"),
        Case(one("turned_round", "squares"), part=no_slope, note="each token sees only squares, of the token across"),
        Case(one("turned_round", "signs"), part=no_slope, note="each token sees only signs, of the token across"),
        Case(one("peeking", 1, 4, 1e-3, 4, 6), part=small, note="token 1 sees a thousandth of token 4"),
        lost_in_a_mean(),
        by_signs(7e-5, 48),  # too small for a sum of squares above 1e-6, and many enough for a mean
        by_signs(2e-4, 100),  # too small for a threshold of 1e-3, and many enough for a sum of squares
        Case(
            one("turned_round", "as it is", 1e-3, 1e3, dtype=f64),
            part=small,
            note="changes of 0.002 of outputs near 1000",
        ),
        Case(one("peeking", 1, 4, 1e-11, 4, 6, dtype=f64), part=below, note="a change far below 1e-6"),
        Case(one("turned_round", "as it is", 2e-8, dtype=f64), part=below, note="outputs and changes below 1e-6"),
        *[
            Case(
                (Stub("turned_round", ("signs", 1.5e-8, height)), draw.normal(1, 2, 16, dtype=f64)),
                part=below,
                note=f"outputs near {height:g}, changes of 3e-8",
            )
            for height in (5e-5, 5e-6, 5e-7)  # where rounding to 4, 5 or 6 decimals tears neighbors apart
        ],
        Case(
            (Stub("turned_round", ("signs", 2e-7)), draw.normal(1, 2, 100, dtype=f64)),
            part=below,
            note="many changes of 4e-7, which are more than 1e-6 together",
        ),
        Case(one("whole_average", 4, T=1), part="T = 1", note="one token"),
        all_ones(),
        one_among_many(),
        rows_alike(),
    ]


COMPARED = "after[:, :start], before[:, :start]"
SAME = f"torch.allclose({COMPARED}, rtol=0, atol=1e-6)"
POSITIONS = "range(1, x.shape[1])"
FUTURE = "x[:, :start], other[:, start:]"
ENDS = "return True\n|    return False"
leaks_future = Exercise("leaks_future", cases_leaks_future).with_mistakes(f"""
    only_last_token_changed: only what the last token leaks is found
        {POSITIONS} -> range(x.shape[1] - 1, x.shape[1])
        You change only the last token, so a leak from token 1 to token 0 isn't found. Replace all rows after t, for every t.
    only_next_token_changed: only the next token changed, and only the one before it watched
        other[:, start:] -> other[:, start : start + 1], x[:, start + 1 :]
        {COMPARED} -> after[:, start - 1 : start], before[:, start - 1 : start]
        A leak may come from any later token and reach any earlier one.
    middle_only: only one position in the middle is tried
        {POSITIONS} -> range(x.shape[1] // 2, x.shape[1] // 2 + 1)
        A leak between two early or two late tokens isn't found. Try every t.
    first_place_only: only the first position is tried, or only its output is compared
        {POSITIONS} -> range(1, min(2, x.shape[1]))
        Try every t, and compare every output up to t. (A `return False` inside the loop ends it in the first round.)
    last_place_left_out: the last position that has a future is not tried
        {POSITIONS} -> range(1, x.shape[1] - 1)
        With two tokens, t = 0 must be tried. The future may consist of a single row.
    every_second_place: only every second position is tried
        {POSITIONS} -> range(1, x.shape[1], 2)
        Try every t; a leak from token 2 to token 1 shows only at t = 1.
    later_outputs_compared: the outputs after t compared as well
        {COMPARED} -> after, before
        Outputs after t may change, because you changed their inputs.
    present_changed: the token at t changed as well
        {FUTURE} -> x[:, : start - 1], other[:, start - 1 :]
        A token may see itself. Change x only from position t + 1 on.
    present_not_compared: a gap of one position between the compared outputs and the changed inputs
        {COMPARED} -> after[:, : start - 1], before[:, : start - 1]
        Changes begin at t + 1, so the output at t must be compared as well.
    exact_equality: exact equality asked for
        {SAME} -> torch.equal({COMPARED})
        Rounding may change the last digit. Only a change of more than 1e-6 is a leak.
    changes_summed: changes are added up with their signs before their size is compared
        not {SAME} -> (after - before)[:, :start].sum().abs() > 1e-6
        Positive and negative changes cancel, for example behind a layer norm. Take absolute values first.
    lengths_compared: the lengths of the outputs compared instead of the outputs
        {COMPARED} -> after[:, :start].norm(dim=-1), before[:, :start].norm(dim=-1)
        A vector may change its direction and keep its length, for example behind a normalization.
    shifted_by_a_constant: the future moved by a constant instead of replaced
        other[:, start:] -> x[:, start:] + 1
        A layer norm subtracts the mean of each row, so it removes a constant that you add. Use random rows.
    future_set_to_zero: the future set to 0 instead of replaced by random rows
        {FUTURE} -> x[:, :start], torch.zeros_like(x[:, start:])
        A ReLU gives 0 for negative numbers and for 0, so it doesn't notice this change. Use random rows.
    future_shuffled: the rows of the future put in another order instead of replaced
        {FUTURE} -> x[:, :start], x[:, start:].flip(1)
        A mean doesn't depend on the order of rows, and a single row can't be shuffled.
    multiplied_by_noise: the future multiplied by random numbers
        other[:, start:] -> x[:, start:] * other[:, start:]
        A row of zeros remains zero.
    past_repeated: the future replaced by other rows of x
        {FUTURE} -> x[:, :start], x[:, start - 1 : start].expand_as(x[:, start:])
        If all rows of x are equal, nothing changes. Use random rows.
    seed_set: a seed is set before the new rows are drawn, so each call draws the same ones
        before, other = f(x), -> before = f(x); torch.default_generator.manual_seed(0); other =
        while (other == x).all(dim=-1).any(): -> while False:
        If x was drawn after the same seed, the new rows equal the old ones. Don't set a seed.
    future_of_one_sign: the future replaced by positive numbers only
        {FUTURE} -> x[:, :start], torch.rand_like(x[:, start:])
        A ReLU of -x gives 0 for all positive numbers. Draw numbers of both signs.
    future_of_ones: the future replaced by one and the same positive number
        {FUTURE} -> x[:, :start], torch.ones_like(x[:, start:])
        A ReLU of -x gives 0 for positive numbers, and a layer norm makes a constant row zero. Use random rows.
    one_number_a_row: one new number for each row, the same in all its features
        other[:, start:] -> other[:, start:, :1].expand_as(x[:, start:])
        A layer norm makes a constant row zero. Draw a number for each feature.
    one_row_for_all: one new row, the same at all places after t
        other[:, start:] -> other[:, :1].expand_as(x[:, start:])
        A function that compares two future rows sees no difference. Draw a row for each position.
    changed_for_good: rows that were replaced for an earlier t are still replaced
        {FUTURE} -> x[:, :1], other[:, 1:]
        For every t, start from x again, so that the rows up to t are unchanged.
    scaled_by_the_spread: new rows multiplied by the standard deviation of x
        other[:, start:] -> x.std() * other[:, start:]
        If all entries of x are equal, their standard deviation is zero.
    first_feature_replaced: only one feature of the future replaced
        {FUTURE} -> x[:, :start], torch.cat([other[:, start:, :1], x[:, start:, 1:]], -1)
        f may use any feature of a future row. Replace all of them.
    mean_change: the mean of the changes compared with 1e-6
        not {SAME} -> (after - before)[:, :start].abs().mean() > 1e-6
        If only one output of many changes, the mean is tiny. Use the largest change.
    changes_added_up: all changes together compared with 1e-6, added up or as one length
        not {SAME} -> (after - before)[:, :start].abs().sum() > 1e-6
        A thousand changes far below 1e-6 add up to more than 1e-6. Use the largest change.
    squares_added_up: the squares of all changes added up
        not {SAME} -> (after - before)[:, :start].pow(2).sum() > 1e-6
        The square of a change of 1e-4 is 1e-8. Compare the change itself with 1e-6.
    mean_row: a mean over the rows compared with 1e-6
        not {SAME} -> (after - before)[:, :start].norm(dim=-1).mean() > 1e-6
        If only one row of many changes, the mean is tiny. Use the largest change.
    rounded_to_DECIMALS for DECIMALS in 5, 6: outputs rounded to DECIMALS decimals before they are compared
        not {SAME} -> not torch.equal(after[:, :start].round(decimals=DECIMALS), before[:, :start].round(decimals=DECIMALS))
        Two close numbers may be rounded to different values. Compare the difference with 1e-6.
    relative_change: a change below 1e-6 taken for a leak
        torch.allclose({COMPARED}, rtol=0, atol=1e-6) -> torch.allclose({COMPARED})
        Only changes of more than 1e-6 count. (allclose has two tolerances; set rtol=0 and atol=1e-6.)
    too_strict: a change below 1e-6 taken for a leak
        atol=1e-6 -> atol=1e-8
        Only changes of more than 1e-6 count.
    rows_too_large: new rows that are far larger than those of x
        before, other = f(x), torch.randn_like(x) -> before, other = f(x), 1000 * torch.randn_like(x)
        Inputs that are a thousand times larger have larger effects. Draw rows about as large as those of x.
    relative_too: the changes measured relative to the outputs
        rtol=0, atol=1e-6 -> atol=1e-6
        allclose adds two tolerances, and the relative one hides changes of outputs near 1000. Set rtol=0.
    first_sentence_only: only the first sentence of the batch changed or watched
        {COMPARED} -> after[0, :start], before[0, :start]
        Every sentence of the batch counts.
    last_sentence_only: only the last sentence of the batch changed or watched
        {COMPARED} -> after[-1, :start], before[-1, :start]
        Every sentence of the batch counts.
    first_feature_only: only the first feature watched
        {COMPARED} -> after[:, :start, 0], before[:, :start, 0]
        Every feature of an output counts.
    past_changed: the past changed and the future watched
        {FUTURE} -> other[:, :start], x[:, start:]
        {COMPARED} -> after[:, start:], before[:, start:]
        A token may see the past. Change the rows after t and compare the outputs up to t.
    inverted: True for functions that do not leak
        {ENDS} -> return False
        |    return True
        Return True if f leaks.
    too_tolerant: weak leaks let through
        atol=1e-6 -> atol=0.05
        Changes of more than 1e-6 count. Lower the threshold.
    tolerant: weak leaks let through
        atol=1e-6 -> atol=1e-3
        Changes of more than 1e-6 count. Lower the threshold.
    left_as_tensor: a tensor instead of a Python bool
        {ENDS} -> return torch.tensor(True)
        |    return torch.tensor(False)
        Return a Python bool, for example bool(...) or .item().
    present_changed_at_the_end_too: the token at t changed as well
        {POSITIONS} -> range(1, x.shape[1] + 1)
        {FUTURE} -> x[:, : start - 1], other[:, start - 1 :]
        A token may see itself. Change x only from position t + 1 on.
    later_outputs_only: the outputs after t compared instead of those up to t
        {COMPARED} -> after[:, start:], before[:, start:]
        Outputs after t may change, because you changed their inputs. Compare those up to t.
    first_place_left_out: token 1 is never replaced, because the first position is not tried
        {POSITIONS} -> range(2, x.shape[1])
        With two tokens, the second is the future of the first, so it has to be replaced.
    tolerant_in_both_ways: weak leaks let through
        rtol=0, atol=1e-6 -> atol=1e-3
        Changes of more than 1e-6 count. (allclose adds two tolerances.)
    slopes_of_sums: derivatives of sums of outputs instead of changes
        before, other = f(x), torch.randn_like(x)
        -> z = x.detach().clone().requires_grad_()
        |    slopes = [torch.autograd.grad(f(z)[:, t].sum(), z, allow_unused=True)[0] for t in range(x.shape[1])]
        |    return any(bool((s[:, t + 1 :].abs() > 1e-6).any()) for t, s in enumerate(slopes) if s is not None)
        A hard choice such as argmax has zero derivative everywhere. Replace rows and compare outputs.
""")


def cases_fixed_causal_attention(draw):
    def make(dtype, *lead, scale=1.0, d_k=6, d_v=3):
        Q, K = draw.normal(*lead, 5, d_k, dtype=dtype, scale=scale), draw.normal(*lead, 5, d_k, dtype=dtype)
        return Q, K, draw.normal(*lead, 5, d_v, dtype=dtype)

    def planned(visible, blocked):
        """Scores near `visible` for the past and the present, near `blocked` for the future."""
        T = 4  # the width too, for its root
        wanted = torch.where(_causal(T), visible, blocked).double() + draw.uniform(T, T, high=3.0, dtype=torch.float64)
        return wanted * T**0.5, torch.eye(T, dtype=torch.float64), draw.normal(T, 3, dtype=torch.float64)

    zero, *rest = make(torch.float32)
    zero[2] = 0.0
    return [
        *tensor_cases(make, leads=((), (3,), (2, 3))),
        Case(make(torch.float32, 2, d_v=8), note="a batch of two, d_v larger than d_k"),
        Case(tuple(draw.normal(1100, width) for width in (2, 2, 1)), note="1100 tokens"),
        Case(make(torch.float32, 1, 1), part=LEADING, note=BATCH_OF_ONE),
        Case(make(torch.float64, scale=1500.0, d_k=4), part=LARGE),  # a root without digits that float32 would lose
        Case(make(torch.float32, 2, 3), part=LEADING, via="on_views", note=VIEW),
        Case(planned(-9999.0, 9996.0), part=LARGE, gradient=True),
        Case(planned(-10000.0, 0.0), part=LARGE, note="visible scores of -10000 to -9997"),
        Case(planned(-3000.0, 0.0), part=LARGE, note="visible scores of -3000 to -2997"),
        Case(planned(-9000.0, -9000.0), part=LARGE, note="all scores near -9000"),
        Case((draw.normal(2, 1, 4), draw.normal(2, 1, 4), draw.normal(2, 1, 3)), part="one token"),
        Case((zero, *rest), part=ZEROS),
        Case((torch.zeros(5, 6), *rest), part=ZEROS, note="all scores are 0"),
    ]


SEEN = "causal_mask(Q.shape[-2]).to(Q.device)"
WEIGHTS = f"masked_softmax(scores, {SEEN})"
PLAIN = "torch.softmax(scores, dim=-1)"
fixed_causal_attention = Exercise(
    "fixed_causal_attention",
    cases_fixed_causal_attention,
    axes=("token", "column"),
    forbidden=("attention",),
    instead="build it from scores, a mask, softmax and V.",
    time_limit=20.0,  # a loop over a table of 1100 rows and columns is slow and no mistake
).with_mistakes(f"""
    bug_not_fixed: the published version: the mask after the softmax
        {WEIGHTS} -> {PLAIN} * {SEEN}
        Add up the weights of row 0. Who got the rest?
    divided_again: exponentials of all scores, then the mask, then rows divided by their sums
        {WEIGHTS} -> {PLAIN} * {SEEN}
        return weights -> return weights / weights.sum(-1, keepdim=True)
        Put the future at +9000 and the past at -9000. What is left of the past's exponentials?
    softmax_twice: softmax before and after the mask
        {WEIGHTS} -> masked_softmax({PLAIN}, {SEEN})
        One softmax is enough, after the mask.
    future_set_to_zero: the future's scores set to 0
        {WEIGHTS} -> torch.softmax(scores.tril(), dim=-1)
        A score of 0 still gets weight, because e to the power of 0 is 1.
    zeros_blocked: scores of 0 taken for blocked ones
        {WEIGHTS} -> torch.softmax(scores.tril().masked_fill(scores.tril() == 0, -torch.inf), dim=-1)
        A visible score may be 0 as well. Use the mask to find the blocked entries.
    sees_the_future: the past masked and the future left open
        {SEEN} -> {SEEN}.T
        Token 0 may see only itself, so its output is the first row of V.
    inverted: the past and the present masked, the future left open
        {WEIGHTS} -> torch.softmax(mask_scores(scores, ~{SEEN}), dim=-1)
        True means may attend. In your version the last token sees nothing.
    inverted_zeros: the past and the present masked, the future left open, and zeros for the last token
        {SEEN} -> ~{SEEN}
        True means may attend. In your version the last token sees nothing.
    self_excluded: a strict triangle, so that no token sees itself
        {WEIGHTS} -> torch.softmax(mask_scores(scores, {SEEN}.tril(-1)), dim=-1)
        A token may see itself. In your version token 0 sees nothing.
    self_excluded_zeros: a strict triangle, so that no token sees itself, and token 0 gets zeros
        {SEEN} -> {SEEN}.tril(-1)
        A token may see itself. In your version token 0 sees nothing.
    not_masked: no mask, or one that has no effect
        {WEIGHTS} -> {PLAIN}
        The future still gets weight. Where is the mask?
    not_scaled: scores that are not scaled
        / Q.shape[-1] ** 0.5 ->
        Divide the scores by the square root of d_k (lesson 4).
    multiplied: scores multiplied by the square root of the width
        / Q.shape[-1] ** 0.5 -> * Q.shape[-1] ** 0.5
        Divide by the square root of d_k instead of multiplying (lesson 4).
    scaled_by_length: scores divided by the square root of the number of tokens
        Q.shape[-1] ** 0.5 -> Q.shape[-2] ** 0.5
        One score is a sum of d_k products, so its width is the last axis of Q.
    queries_and_keys_exchanged: queries and keys exchanged
        Q @ K.transpose(-2, -1) -> K @ Q.transpose(-2, -1)
        Rows must belong to queries, but yours belong to keys.
    key_reshaped: the keys were reshaped instead of transposed
        K.transpose(-2, -1) -> K.reshape(*K.shape[:-2], K.shape[-1], K.shape[-2])
        The shape is right, but rows and columns have to be swapped. Use transpose.
    divided_twice: scores divided by the width, not by its square root
        Q.shape[-1] ** 0.5 -> Q.shape[-1]
        Divide by the square root of d_k once, either the scores or one of Q and K.
    softmax_over_queries: softmax over the queries instead of the keys
        {WEIGHTS} -> torch.softmax(mask_scores(scores, {SEEN}), dim=-2)
        The weights of one query add up to 1, so the softmax runs over the last axis.
    scaled_by_value_width: scores divided by the square root of the values' width
        Q.shape[-1] ** 0.5 -> V.shape[-1] ** 0.5
        One score is a sum of d_k products, so its width is the last axis of Q.
    minus_10000_added: -10000 added to the future's scores
        {WEIGHTS} -> torch.softmax(scores - 10000.0 * ~{SEEN}, dim=-1)
        A future score of +9000 becomes -1000, which is above a past score of -9000.
    minus_20000_added: 20000 subtracted from the future's scores
        {WEIGHTS} -> torch.softmax(scores - 20000.0 * ~{SEEN}, dim=-1)
        A future score of +10000 becomes -10000, as high as a past score of -10000.
    minus_10000_filled: a fill of -10000
        {WEIGHTS} -> torch.softmax(scores.masked_fill(~{SEEN}, -10000.0), dim=-1)
        If the past scores are -10000, the future gets weight as well.
    minus_1000_filled: a fill of -1000
        {WEIGHTS} -> torch.softmax(scores.masked_fill(~{SEEN}, -1000.0), dim=-1)
        If the past scores are -9000, the future gets all the weight.
    filled_and_divided: a fill of -10000 that is divided by the square root of the width afterwards
        {WEIGHTS} -> torch.softmax(scores.masked_fill(~{SEEN}, -10000.0 / Q.shape[-1] ** 0.5), dim=-1)
        After the division the fill is higher than visible scores of -10000. Fill after scaling, with -inf.
    powers_overflow: exponentials of the raw scores
        {WEIGHTS} -> scores.exp() * {SEEN}
        return weights -> return weights / weights.sum(-1, keepdim=True)
        e to the power of 10000 overflows. Subtract the maximum of the row first, or use torch.softmax.
    one_maximum_for_all: one maximum subtracted from all rows
        {WEIGHTS} -> (scores - scores.amax()).exp() * {SEEN}
        return weights -> return weights / weights.sum(-1, keepdim=True)
        The largest score may be in another row, or in the future. Then the exponentials of a row far below it round to zero.
    divided_again_by_a_little_more: exponentials of all scores, then the mask, then rows divided by their sums
        {WEIGHTS} -> {PLAIN} * {SEEN}
        return weights -> return weights / (weights.sum(-1, keepdim=True) + 1e-9)
        Put the future at +9000 and the past at -9000. What is left of the past's exponentials?
    zero_scores_then_mask: the future's scores set to 0, and their weights taken out later
        {WEIGHTS} -> torch.softmax(scores.tril(), dim=-1).tril()
        The future is still part of the denominator.
    next_one_seen: one token of the future is visible
        {WEIGHTS} -> torch.softmax(mask_scores(scores, torch.ones_like(scores).tril(1).bool()), dim=-1)
        Token 0 may see only itself, but in your version it sees two keys.
    scaled_by_axis_1: scores divided by the square root of axis 1, which is the width only without leading dimensions
        Q.shape[-1] ** 0.5 -> Q.shape[1] ** 0.5
        Axis 1 of (B, T, d_k) isn't the width. Count axes from the end.
    scaled_behind_the_softmax: the weights divided by the square root of the width instead of the scores
        / Q.shape[-1] ** 0.5 ->
        return weights -> return weights / Q.shape[-1] ** 0.5
        The formula divides the scores, before the softmax. The rows of your weights don't add up to 1.
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
        b: Both have the wrong meaning here, so every token attends to the future and to the padding only.
        c: The first mask is right. The second one blocks all real tokens and leaves the padding.
    quiz_2: c
        a: That mask has the wrong shape, because each query has a score for all 8 keys, the cached ones included.
        b: That is a triangle aligned at the first key. The newest token would see the two oldest ones, and not itself.
        c: The new tokens have the positions 6 and 7. Each sees the six cached keys, and the new ones up to itself.
""")
