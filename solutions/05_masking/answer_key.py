"""Cases and known mistakes of lesson 5."""

import math

import torch

from helpers.checking.vocabulary import GRADIENT, Case, Exercise, Fixture, Mistake, Quiz, tensor_cases

NOTHING = "rows with nothing to see"
LARGE = "scores up to ±10⁴"
BROADCAST = "masks that broadcast"


# 5.1 causal_mask


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


def _causal(T_q, T_k=None):
    T_k = T_q if T_k is None else T_k
    return torch.ones(T_q, T_k, dtype=torch.bool).tril(T_k - T_q)


def causal_aligned_at_start(T_q, T_k=None):
    return torch.ones(T_q, T_k or T_q, dtype=torch.bool).tril()


def causal_inverted(T_q, T_k=None):
    return ~_causal(T_q, T_k)


def causal_strict(T_q, T_k=None):
    T_k = T_k or T_q
    return torch.ones(T_q, T_k, dtype=torch.bool).tril(T_k - T_q - 1)


def causal_sees_next(T_q, T_k=None):
    T_k = T_k or T_q
    return torch.ones(T_q, T_k, dtype=torch.bool).tril(T_k - T_q + 1)


def causal_upper(T_q, T_k=None):
    return torch.ones(T_q, T_k or T_q, dtype=torch.bool).triu()


def causal_transposed(T_q, T_k=None):
    return _causal(T_q, T_k).T


def causal_cache_hidden(T_q, T_k=None):
    T_k = T_k or T_q
    return torch.cat([torch.zeros(T_q, T_k - T_q, dtype=torch.bool), _causal(T_q)], dim=1)


def causal_float(T_q, T_k=None):
    return _causal(T_q, T_k).float()


def causal_comparison(T_q, T_k=None):
    T_k = T_q if T_k is None else T_k
    return torch.arange(T_k)[None, :] <= torch.arange(T_q)[:, None] + (T_k - T_q)


def causal_last_rows(T_q, T_k=None):
    T_k = T_k or T_q
    return torch.tril(torch.ones(T_k, T_k)).bool()[-T_q:]


def causal_not_triu(T_q, T_k=None):
    if T_k is None:
        T_k = T_q
    return ~torch.triu(torch.ones((T_q, T_k), dtype=torch.bool), diagonal=T_k - T_q + 1)


def causal_lists(T_q, T_k=None):
    T_k = T_k if T_k is not None else T_q
    return torch.tensor([[j <= i + T_k - T_q for j in range(T_k)] for i in range(T_q)])


def causal_with_past(T_q, T_k=None):
    past = 0 if T_k is None else T_k - T_q
    return torch.cat([torch.ones(T_q, past, dtype=torch.bool), torch.ones(T_q, T_q).tril() == 1], dim=1)


causal_mask = Exercise(
    "causal_mask",
    cases_causal_mask,
    axes=("query", "key"),
    mistakes=[
        Mistake(
            "aligned_at_start",
            "the triangle aligned at the first key instead of the last",
            "With a cache the newest query should see everything. How many keys does your last row see?",
            causal_aligned_at_start,
        ),
        Mistake(
            "inverted",
            "True where it should be False",
            "Here True means: may attend. May word 0 attend to itself?",
            causal_inverted,
        ),
        Mistake(
            "self_excluded",
            "a word that cannot see itself",
            "The present is not the future. What is left for query 0 to see?",
            causal_strict,
        ),
        Mistake(
            "next_one_seen",
            "one key of the future left open",
            "Query 0 of three should see exactly one key.",
            causal_sees_next,
        ),
        Mistake(
            "sees_the_future",
            "the future open and the past closed",
            "Rows are queries. Which side of the diagonal came before?",
            causal_upper,
        ),
        Mistake("transposed", "queries and keys swapped", "Rows are queries, columns are keys.", causal_transposed),
        Mistake(
            "cache_hidden",
            "the cached keys blocked",
            "The cache holds what came before all new words. Who may see it?",
            causal_cache_hidden,
        ),
        Mistake(
            "numbers_not_booleans",
            "ones and zeros instead of True and False",
            "The spec asks for a boolean tensor; a float mask is added by some libraries.",
            causal_float,
        ),
    ],
    alternatives=[causal_comparison, causal_last_rows, causal_not_triu, causal_lists, causal_with_past],
)


# 5.2 padding_mask


def cases_padding_mask(draw):
    def mixed(B, T):
        return draw.integers(1, T, (B,)), T

    return [
        Case((torch.tensor([3, 1, 5, 2]), 6)),
        Case(mixed(5, 8)),
        Case((torch.tensor([1, 3, 2]), 3), part="B equal to T"),
        Case((torch.tensor([0, 4]), 5), part="a sentence of length 0"),
        Case((torch.tensor([5, 2, 5]), 5), part="a sentence without padding"),
        Case((torch.tensor([2, 3]), 7), part="T longer than every sentence"),
        Case((torch.tensor([2]), 4), part="a batch of one"),
    ]


def _real(lengths, T):
    return torch.arange(T) < lengths[:, None]


def padding_inverted(lengths, T):
    return ~_real(lengths, T)


def padding_one_too_many(lengths, T):
    return torch.arange(T) <= lengths[:, None]


def padding_on_the_left(lengths, T):
    return _real(lengths, T).flip(-1)


def padding_to_longest(lengths, T):
    return torch.arange(int(lengths.max())) < lengths[:, None]


def padding_transposed(lengths, T):
    return _real(lengths, T).T


def padding_numbers(lengths, T):
    return _real(lengths, T).long()


def padding_square(lengths, T):
    real = _real(lengths, T)
    return real[:, :, None] & real[:, None, :]


def padding_loop(lengths, T):
    mask = torch.zeros(len(lengths), T, dtype=torch.bool)
    for b, length in enumerate(lengths.tolist()):
        mask[b, :length] = True
    return mask


def padding_lists(lengths, T):
    return torch.tensor([[j < n for j in range(T)] for n in lengths.tolist()])


def padding_expanded(lengths, T):
    places = torch.arange(T).expand(lengths.shape[0], T)
    return places.lt(lengths.unsqueeze(1))


def padding_triangle(lengths, T):
    return torch.ones(T + 1, T).tril(-1).bool()[lengths]


def padding_cumulative(lengths, T):
    return torch.ones(len(lengths), T).cumsum(-1) <= lengths.view(-1, 1)


padding_mask = Exercise(
    "padding_mask",
    cases_padding_mask,
    axes=("sentence", "token"),
    mistakes=[
        Mistake(
            "inverted", "True on the padding", "True means: may attend. May a word attend to padding?", padding_inverted
        ),
        Mistake(
            "one_too_many",
            "one pad left open",
            "A sentence of length 2 has its words at places 0 and 1.",
            padding_one_too_many,
        ),
        Mistake("padding_first", "the padding in front", "The real words come first.", padding_on_the_left),
        Mistake(
            "cut_to_longest",
            "T taken from the longest sentence",
            "The caller says how wide the mask is. Which of your arguments is not used?",
            padding_to_longest,
        ),
        Mistake("transposed", "sentences and tokens swapped", "One row for each sentence.", padding_transposed),
        Mistake(
            "numbers_not_booleans",
            "ones and zeros instead of True and False",
            "The spec asks for a boolean tensor.",
            padding_numbers,
        ),
        Mistake(
            "square_mask",
            "a table of pairs of tokens",
            "Only the keys are asked here: one entry for each token of each sentence.",
            padding_square,
        ),
    ],
    alternatives=[padding_loop, padding_lists, padding_expanded, padding_triangle, padding_cumulative],
)


# 5.3 combine_masks


def cases_combine_masks(draw):
    def random(B, T_q, T_k):
        return draw.mask(T_q, T_k, keep=0.5), draw.mask(B, T_k, keep=0.5)

    return [
        Case((_causal(4, 6), _real(torch.tensor([4, 6, 5]), 6))),
        Case(random(5, 3, 7)),
        Case((_causal(5), _real(torch.tensor([3, 5, 1]), 5)), part="T_q equal to T_k"),
        Case((_causal(3), _real(torch.tensor([2, 3, 1]), 3)), part="B, T_q and T_k equal"),
        Case((_causal(1, 4), _real(torch.tensor([4, 2]), 4)), part="one query and a cache"),
        Case((_causal(3, 5), _real(torch.tensor([0, 4]), 5)), part="a sentence of length 0"),
        Case((_causal(3, 5), _real(torch.tensor([4]), 5)), part="a batch of one"),
    ]


def combine_or(causal, padding):
    return causal | padding[:, None, None, :]


def combine_queries_too(causal, padding):
    queries = padding[:, None, -causal.shape[0] :, None]
    return causal & padding[:, None, None, :] & queries


def combine_queries_only(causal, padding):
    return causal & padding[:, None, -causal.shape[0] :, None]


def combine_without_heads(causal, padding):
    return causal & padding[:, None, :]


def combine_heads_late(causal, padding):
    return (causal & padding[:, None, :])[:, :, None, :]


def combine_padding_only(causal, padding):
    return padding[:, None, None, :].expand(-1, 1, causal.shape[0], -1)


def combine_numbers(causal, padding):
    return causal.float() * padding[:, None, None, :].float()


def combine_without_batch(causal, padding):
    return (causal & padding.all(0))[None, None].expand(padding.shape[0], 1, -1, -1)


def combine_einsum(causal, padding):
    return torch.einsum("qk,bk->bqk", causal.float(), padding.float()).bool().unsqueeze(1)


def combine_product(causal, padding):
    return causal[None, None] * padding.view(padding.shape[0], 1, 1, -1)


def combine_loop(causal, padding):
    return torch.stack([(causal & row)[None] for row in padding])


def combine_blocked(causal, padding):
    blocked = ~causal[None, None] | ~padding[:, None, None]
    return ~blocked


def combine_where(causal, padding):
    T_q, T_k = causal.shape
    keys = padding.unsqueeze(1).unsqueeze(1).expand(-1, 1, T_q, T_k)
    return torch.where(keys, causal, torch.tensor(False))


combine_masks = Exercise(
    "combine_masks",
    cases_combine_masks,
    axes=("sentence", "head", "query", "key"),
    mistakes=[
        Mistake("either_is_enough", "a key seen if one of the masks says yes", "Both must say yes.", combine_or),
        Mistake(
            "queries_blocked_too",
            "padded queries blocked as well as padded keys",
            "Padding blocks keys only. What would softmax make of a row with nothing to see?",
            combine_queries_too,
        ),
        Mistake(
            "queries_instead_of_keys",
            "padding laid along the queries",
            "Which axis of the result holds the keys, counted from the right?",
            combine_queries_only,
        ),
        Mistake(
            "no_axis_for_heads",
            "no axis for the heads",
            "Scores will be (B, H, T_q, T_k). Against which axis would your B be lined up?",
            combine_without_heads,
        ),
        Mistake(
            "heads_axis_misplaced",
            "the axis for the heads in another place",
            "Heads come right after the batch.",
            combine_heads_late,
        ),
        Mistake("causal_forgotten", "only the padding", "What became of the first argument?", combine_padding_only),
        Mistake(
            "numbers_not_booleans",
            "ones and zeros instead of True and False",
            "The spec asks for a boolean tensor.",
            combine_numbers,
        ),
        Mistake(
            "one_mask_for_all",
            "one padding for all sentences",
            "Each sentence has a length of its own.",
            combine_without_batch,
        ),
    ],
    alternatives=[combine_einsum, combine_product, combine_loop, combine_blocked, combine_where],
)


# 5.4 mask_scores


def cases_mask_scores(draw):
    view = {"view": "filled_scores"}

    def make(dtype, *lead, scale=1.0):
        return draw.normal(*lead, 4, 6, dtype=dtype, scale=scale), _spotted(draw, 4, 6)

    def large(dtype):
        return draw.uniform(4, 6, low=-1e4, high=1e4, dtype=dtype), _spotted(draw, 4, 6)

    return [
        *tensor_cases(make, leads=((), (3,), (2, 3)), gradient=False, **view),
        # The fill itself has no gradient worth a comparison: the scenario takes it out.
        Case(make(torch.float64, 2), part=GRADIENT, gradient=True, via="kept_entries"),
        Case(large(torch.float32), part=LARGE, **view),
        Case(large(torch.float64), part=LARGE, **view),
        Case((draw.normal(2, 3, 4, 6), _spotted(draw, 2, 1, 4, 6)), part=BROADCAST, **view),
        Case((draw.normal(2, 3, 4, 6), _spotted(draw, 2, 1, 1, 6)), part=BROADCAST, **view),
        Case((draw.normal(4, 6), _spotted(draw, 6)), part=BROADCAST, **view),
        Case((draw.normal(4, 6), torch.ones(4, 6, dtype=torch.bool)), part="a mask that blocks nothing", **view),
    ]


def _spotted(draw, *shape):
    """A mask whose rows all hold both a True and a False."""
    mask = draw.mask(*shape, keep=0.5)
    lone = mask.all(-1, keepdim=True)
    last = torch.arange(shape[-1]) == shape[-1] - 1
    return mask & ~(lone & last)


def scores_inverted(scores, mask):
    return scores.masked_fill(mask, -math.inf)


def scores_zeroed(scores, mask):
    return scores * mask


def scores_added(scores, mask):
    return scores + (~mask) * -1e9


def scores_added_bert(scores, mask):
    return scores + (~mask) * -10000.0


def scores_filled_bert(scores, mask):
    return scores.masked_fill(~mask, -10000.0)


def scores_minus_100(scores, mask):
    return scores.masked_fill(~mask, -100.0)


def scores_plus_infinity(scores, mask):
    return scores.masked_fill(~mask, math.inf)


def scores_times_infinity(scores, mask):
    return scores + (1 - mask.to(scores.dtype)) * -math.inf


def scores_row_minimum(scores, mask):
    lowest = scores.detach().amin(-1, keepdim=True)
    return torch.where(mask, scores, lowest)


def scores_where(scores, mask):
    return torch.where(mask, scores, float("-inf"))


def scores_finfo(scores, mask):
    return scores.masked_fill(mask.logical_not(), torch.finfo(scores.dtype).min)


def scores_billion(scores, mask):
    return scores.masked_fill(mask == 0, -1e9)


def scores_add_infinity(scores, mask):
    return scores + torch.zeros(mask.shape, dtype=scores.dtype).masked_fill(~mask, -math.inf)


def scores_clone(scores, mask):
    out = scores.clone()
    out[~mask.expand_as(scores)] = -math.inf
    return out


def scores_product(scores, mask):
    keep = mask.to(scores.dtype)
    return scores * keep - 1e9 * (1 - keep)


def scores_log(scores, mask):
    return scores + mask.to(scores.dtype).log()


mask_scores = Exercise(
    "mask_scores",
    cases_mask_scores,
    axes=("query", "key"),
    mistakes=[
        Mistake(
            "inverted",
            "the visible scores blocked and the blocked ones kept",
            "True means: may attend. Where does your fill go?",
            scores_inverted,
        ),
        Mistake(
            "set_to_zero",
            "blocked scores set to 0",
            "The power of 0 is 1. What weight does a score of 0 get beside scores of -1?",
            scores_zeroed,
        ),
        Mistake(
            "large_number_added",
            "a large number added instead of a constant filled in",
            "What is left of the old score after you added your number? Replace, do not shift.",
            scores_added,
        ),
        Mistake(
            "minus_10000_added",
            "-10000 added, as BERT did",
            "A score of +9000 becomes -1000. Is that low enough beside visible scores of -5000?",
            scores_added_bert,
        ),
        Mistake(
            "minus_10000_filled",
            "a fill of -10000",
            "Think of a row whose visible scores are all -10000.",
            scores_filled_bert,
        ),
        Mistake("minus_100_filled", "a fill of -100", "Visible scores may be as low as -10000.", scores_minus_100),
        Mistake("plus_infinity", "the wrong infinity", "Which exponent makes the power 0?", scores_plus_infinity),
        Mistake(
            "zero_times_infinity",
            "0 times infinity, which is NaN",
            "What is 0 · (-inf)? Choose between two values; do not multiply them.",
            scores_times_infinity,
        ),
        Mistake(
            "lowest_of_row",
            "the row's lowest score as fill",
            "The lowest score still gets some weight. Which number gets none?",
            scores_row_minimum,
        ),
    ],
    alternatives=[
        scores_where,
        scores_finfo,
        scores_billion,
        scores_add_infinity,
        scores_clone,
        scores_product,
        scores_log,
    ],
)


# 5.5 masked_softmax


def cases_masked_softmax(draw):
    def make(dtype, *lead):
        return draw.normal(*lead, 4, 6, dtype=dtype, scale=2.0), _spotted(draw, *lead, 4, 6)

    def blind(dtype, *lead):
        scores, mask = make(dtype, *lead)
        mask[..., draw.integer(1, 3), :] = False
        return scores, mask

    def hidden_peak():
        """Blocked scores near 1e4, visible ones near -1e4."""
        mask = _spotted(draw, 4, 6)
        noise = draw.normal(4, 6, dtype=torch.float64)
        return torch.where(mask, noise - 9990.0, 9990.0 + noise), mask

    def far_apart():
        """Visible scores so far apart that every float32 form gives exact zeros and ones."""
        order = torch.stack([draw.permutation(6) for _ in range(4)])
        return order.float() * 4000.0 - 10000.0, _spotted(draw, 4, 6)

    return [
        *tensor_cases(make, leads=((), (3,), (2, 3))),
        Case((draw.normal(2, 3, 4, 6), _spotted(draw, 2, 1, 4, 6)), part=BROADCAST),
        Case((draw.normal(2, 3, 4, 6), _spotted(draw, 2, 1, 1, 6)), part=BROADCAST),
        Case((draw.normal(3, 4, 6, dtype=torch.float64), _spotted(draw, 6)), part=BROADCAST, gradient=True),
        Case(blind(torch.float32), part=NOTHING),
        Case(blind(torch.float32, 3), part=NOTHING),
        Case(blind(torch.float64, 2), part=NOTHING, gradient=True),
        Case(
            (draw.normal(4, 6, dtype=torch.float64), torch.zeros(4, 6, dtype=torch.bool)), part=NOTHING, gradient=True
        ),
        Case((draw.normal(2, 4, 6), torch.tensor([True, False])[:, None, None]), part=NOTHING),
        Case((draw.uniform(4, 6, low=-1e4, high=1e4, dtype=torch.float64), _spotted(draw, 4, 6)), part=LARGE),
        Case(hidden_peak(), part=LARGE, gradient=True),
        Case(far_apart(), part=LARGE),
    ]


def _softmax(scores, mask):
    return torch.softmax(scores.masked_fill(~mask, -math.inf), dim=-1)


def softmax_nan_rows(scores, mask):
    return _softmax(scores, mask)


def softmax_mask_after(scores, mask):
    return torch.softmax(scores, dim=-1).masked_fill(~mask, 0.0)


def softmax_renormalised(scores, mask):
    weights = torch.softmax(scores, dim=-1) * mask
    return weights / weights.sum(-1, keepdim=True).clamp(min=1e-12)


def softmax_inverted(scores, mask):
    return _softmax(scores, ~mask).masked_fill(mask, 0.0)


def softmax_zero_scores(scores, mask):
    return torch.softmax(scores * mask, dim=-1)


def softmax_zero_scores_masked(scores, mask):
    return torch.softmax(scores * mask, dim=-1) * mask


def softmax_nan_gradient(scores, mask):
    added = torch.zeros_like(scores).masked_fill(~mask, -math.inf)
    return torch.softmax(scores + added, dim=-1).nan_to_num()


def softmax_uniform_rows(scores, mask):
    return torch.softmax(scores.masked_fill(~mask, -1e9), dim=-1)


def softmax_over_queries(scores, mask):
    return torch.softmax(scores.masked_fill(~mask, -math.inf), dim=-2).masked_fill(~mask, 0.0)


def softmax_bert(scores, mask):
    return torch.softmax(scores + (~mask) * -10000.0, dim=-1) * mask


def softmax_overflow(scores, mask):
    powers = scores.exp() * mask
    return powers / powers.sum(-1, keepdim=True).clamp(min=1e-30)


def softmax_nan_to_num(scores, mask):
    return _softmax(scores, mask).nan_to_num(0.0)


def softmax_finite_fill(scores, mask):
    return torch.softmax(torch.where(mask, scores, torch.finfo(scores.dtype).min), dim=-1) * mask


def softmax_spared_rows(scores, mask):
    seen = mask.any(-1, keepdim=True)
    weights = torch.softmax(scores.masked_fill(~mask & seen, -math.inf), dim=-1)
    return torch.where(seen, weights, torch.zeros_like(weights)).masked_fill(~mask, 0)


def softmax_by_hand(scores, mask):
    mask = mask.expand_as(scores)
    peak = scores.detach().masked_fill(~mask, -1e30).amax(-1, keepdim=True)
    powers = (scores - peak).masked_fill(~mask, -1e9).exp().masked_fill(~mask, 0.0)
    total = powers.sum(-1, keepdim=True)
    return powers / torch.where(total == 0, torch.ones_like(total), total)


def softmax_rows(scores, mask):
    mask = mask.expand_as(scores)
    rows = []
    for row, allowed in zip(scores.reshape(-1, scores.shape[-1]), mask.reshape(-1, scores.shape[-1]), strict=True):
        out = torch.zeros_like(row)
        if allowed.any():
            places = allowed.nonzero().flatten()
            out = out.index_put((places,), torch.softmax(row[places], dim=0))
        rows.append(out)
    return torch.stack(rows).reshape(scores.shape)


def softmax_log_space(scores, mask):
    filled = scores.masked_fill(~mask, -1e9)
    return (filled - filled.logsumexp(-1, keepdim=True)).exp().masked_fill(~mask, 0.0)


masked_softmax = Exercise(
    "masked_softmax",
    cases_masked_softmax,
    axes=("query", "key"),
    mistakes=[
        Mistake(
            "nan_rows_left",
            "NaN left in rows with nothing to see",
            "A softmax over only -inf divides 0 by 0. Where could you step in?",
            softmax_nan_rows,
        ),
        Mistake(
            "masked_after_softmax",
            "the mask applied after the softmax",
            "Add up a row. Who got the rest of the 1?",
            softmax_mask_after,
        ),
        Mistake(
            "divided_again",
            "softmax, then the mask, then the rows divided by their sums",
            "On paper that is right. What does softmax leave for the visible keys when a blocked one is far above?",
            softmax_renormalised,
        ),
        Mistake(
            "inverted",
            "the blocked keys kept and the visible ones blocked",
            "True means: may attend.",
            softmax_inverted,
        ),
        Mistake("scores_set_to_zero", "blocked scores set to 0", "The power of 0 is 1, not 0.", softmax_zero_scores),
        Mistake(
            "zero_scores_then_mask",
            "blocked scores set to 0, and their weights taken out later",
            "The blocked keys still have their share in the denominator.",
            softmax_zero_scores_masked,
        ),
        Mistake(
            "gradient_is_nan",
            "an added -inf, with NaN hidden in the gradient",
            "The values look fine. Which operation passes a NaN gradient on, and which one cuts it?",
            softmax_nan_gradient,
        ),
        Mistake(
            "uniform_rows",
            "equal weights in rows with nothing to see",
            "All entries of such a row have the same low score. What does softmax make of equal scores?",
            softmax_uniform_rows,
        ),
        Mistake(
            "softmax_over_queries",
            "softmax over the queries instead of the keys",
            "The weights of one query sum to 1. Along which axis is that?",
            softmax_over_queries,
        ),
        Mistake(
            "minus_10000_added",
            "-10000 added to the blocked scores, as BERT did",
            "What if a blocked score is 9000 and the visible ones are at -5000?",
            softmax_bert,
        ),
        Mistake(
            "powers_overflow",
            "exponentials taken of the raw scores",
            "e to the 10000 is infinite in every float. What may be subtracted from a row first?",
            softmax_overflow,
        ),
    ],
    alternatives=[
        softmax_nan_to_num,
        softmax_finite_fill,
        softmax_spared_rows,
        softmax_by_hand,
        softmax_rows,
        softmax_log_space,
    ],
)


# 5.6 leaks_future


def cases_leaks_future(draw):
    clean, near, far = "functions that do not leak", "leaks to the next token", "leaks from far ahead"

    def one(name, *args, T=6, B=2, dtype=torch.float32):
        # Not plain normal numbers: with an unlucky seed an answer would draw the very same ones as its noise.
        return Fixture(name, args), draw.normal(B, T, 4, dtype=dtype, scale=1.5)

    x = draw.normal(2, 6, 4, scale=1.5)
    return [
        Case(one("whole_average", 4), note="a mean over all tokens"),
        Case(one("causal_average", 4), note="a mean over the tokens so far"),
        Case(one("causal_average", 3, T=5, B=3), part=clean, note="a mean over the tokens so far"),
        Case(one("causal_average", 1, T=2), part=clean, note="a mean over the tokens so far"),
        Case(one("next_row", 5), part=near, note="each token sees the next"),
        Case(one("peeking", 0, 1, 1.0, 4), part=near, note="token 0 sees token 1"),
        Case(one("peeking", 4, 5, 1.0, 4), part=near, note="token 4 of 6 sees token 5"),
        Case(one("peeking", 2, 3, 1.0, 4), part=near, note="token 2 sees token 3"),
        Case(one("peeking", 0, 5, 1.0, 4), part=far, note="token 0 sees token 5"),
        Case(one("peeking", 1, 3, 1.0, 4), part=far, note="token 1 sees token 3"),
        # The same leak with both signs: a sum of signed differences misses one of them.
        Case((Fixture("peeking", (0, 2, 1.0, 4)), x), part="leaks of either sign", note="token 0 sees token 2"),
        Case((Fixture("peeking", (0, 2, -1.0, 4)), x), part="leaks of either sign", note="token 0 sees token 2"),
        Case(one("peeking", 1, 4, 1e-3, 4), part="a weak leak", note="token 1 sees a thousandth of token 4"),
        Case(
            one("peeking", 1, 4, 1e-11, 4, dtype=torch.float64),
            part="changes below 1e-6",
            note="a change far below 1e-6",
        ),
        Case(one("whole_average", 4, T=1), part="T = 1", note="one token"),
    ]


def _noise(x):
    return torch.randn(x.shape, generator=torch.Generator().manual_seed(1), dtype=x.dtype)


def _after(f, x, start, stop=None):
    """f's output with x replaced by noise at the places from start to before stop."""
    changed = x.clone()
    changed[:, start:stop] = _noise(x)[:, start:stop]
    return f(changed)


def leaks_last_only(f, x):
    T = x.shape[1]
    return T > 1 and bool((_after(f, x, T - 1) - f(x))[:, : T - 1].abs().max() > 1e-6)


def leaks_next_only(f, x):
    y = f(x)
    return any(bool((_after(f, x, t + 1, t + 2) - y)[:, t].abs().max() > 1e-6) for t in range(x.shape[1] - 1))


def leaks_middle_only(f, x):
    t = x.shape[1] // 2
    return x.shape[1] > 1 and bool((_after(f, x, t) - f(x))[:, :t].abs().max() > 1e-6)


def leaks_all_outputs(f, x):
    y = f(x)
    return any(bool((_after(f, x, t + 1) - y).abs().max() > 1e-6) for t in range(x.shape[1] - 1))


def leaks_present_changed(f, x):
    y = f(x)
    return any(bool((_after(f, x, t) - y)[:, : t + 1].abs().max() > 1e-6) for t in range(x.shape[1]))


def leaks_present_spared(f, x):
    y = f(x)
    return any(bool((_after(f, x, t + 1) - y)[:, :t].abs().max() > 1e-6) for t in range(1, x.shape[1] - 1))


def leaks_exact(f, x):
    y = f(x)
    return any(not torch.equal(_after(f, x, t + 1)[:, : t + 1], y[:, : t + 1]) for t in range(x.shape[1] - 1))


def leaks_signed(f, x):
    y = f(x)
    return any(bool((_after(f, x, t + 1) - y)[:, : t + 1].sum() > 1e-6) for t in range(x.shape[1] - 1))


def leaks_past(f, x):
    y = f(x)
    return any(bool((_after(f, x, 0, t) - y)[:, t:].abs().max() > 1e-6) for t in range(1, x.shape[1]))


def leaks_inverted(f, x):
    return not leaks_zeros(f, x)


def leaks_loose(f, x):
    y = f(x)
    return any(
        not torch.allclose(_after(f, x, t + 1)[:, : t + 1], y[:, : t + 1], rtol=0, atol=0.01)
        for t in range(x.shape[1] - 1)
    )


def leaks_tensor(f, x):
    y, found = f(x), torch.tensor(False)
    for t in range(x.shape[1] - 1):
        found = found | ((_after(f, x, t + 1) - y)[:, : t + 1].abs().max() > 1e-6)
    return found


def leaks_zeros(f, x):
    y = f(x)
    for t in range(x.shape[1]):
        changed = x.clone()
        changed[:, t + 1 :] = 0
        if ((f(changed) - y)[:, : t + 1].abs() > 1e-6).any():
            return True
    return False


def leaks_random(f, x):
    with torch.no_grad():
        y = f(x)
        return any(
            (f(torch.cat([x[:, :t], torch.randn_like(x[:, t:])], dim=1))[:, :t] - y[:, :t]).abs().max().item() > 1e-6
            for t in range(1, x.shape[1])
        )


def leaks_shifted(f, x):
    y = f(x)
    worst = 0.0
    for t in range(x.size(1) - 1):
        later = (torch.arange(x.size(1)) > t).to(x.dtype)[:, None]
        worst = max(worst, float((f(x + later) - y)[:, t].abs().max()))
    return worst > 1e-6


def leaks_one_by_one(f, x):
    y = f(x)
    for source in range(1, x.shape[1]):
        changed = x.clone()
        changed[:, source] = changed[:, source] * -2 + 1
        if torch.max(torch.abs(f(changed)[:, :source] - y[:, :source])).item() > 1e-6:
            return True
    return False


def leaks_jacobian(f, x):
    jacobian = torch.autograd.functional.jacobian(lambda inner: f(inner).sum((0, -1)), x)  # (T_out, B, T_in, D)
    influence = jacobian.abs().amax((1, 3))
    return bool((influence.triu(1) > 1e-6).any())


leaks_future = Exercise(
    "leaks_future",
    cases_leaks_future,
    mistakes=[
        Mistake(
            "only_last_token_changed",
            "only the last token changed",
            "A leak from token 1 to token 0 of six: does your change touch token 1?",
            leaks_last_only,
        ),
        Mistake("only_next_token_changed", "only the next token changed", "A leak may skip tokens.", leaks_next_only),
        Mistake(
            "one_place_tried",
            "one place tried instead of all",
            "For which t does your change lie after t, and the leak's target at or before t?",
            leaks_middle_only,
        ),
        Mistake(
            "later_outputs_compared",
            "the outputs after t compared as well",
            "Outputs after t may change: they see what you changed.",
            leaks_all_outputs,
        ),
        Mistake(
            "present_changed",
            "the token at t changed as well",
            "A word may see itself. From which place on may x change?",
            leaks_present_changed,
        ),
        Mistake(
            "present_not_compared",
            "the output at t left out",
            "Changes begin at t + 1. Which is the last output that must stand still?",
            leaks_present_spared,
        ),
        Mistake(
            "exact_equality",
            "exact equality asked for",
            "Rounding may move the last digit. From which size on is a change a leak?",
            leaks_exact,
        ),
        Mistake("signed_sum", "differences summed with their signs", "A change of -3 is a leak too.", leaks_signed),
        Mistake(
            "past_changed",
            "the past changed and the future watched",
            "That a word sees the past is what we want.",
            leaks_past,
        ),
        Mistake("inverted", "True for functions that do not leak", "The name asks: does it leak?", leaks_inverted),
        Mistake(
            "too_tolerant", "weak leaks let through", "A change of 1e-6 counts. What is your threshold?", leaks_loose
        ),
        Mistake(
            "left_as_tensor", "a tensor instead of a Python bool", "The spec asks for a Python bool.", leaks_tensor
        ),
    ],
    alternatives=[leaks_zeros, leaks_random, leaks_shifted, leaks_one_by_one, leaks_jacobian],
)


# 5.7 fixed_causal_attention


def cases_fixed_causal_attention(draw):
    def make(dtype, *lead, scale=1.0):
        return (
            draw.normal(*lead, 5, 4, dtype=dtype, scale=scale),
            draw.normal(*lead, 5, 4, dtype=dtype),
            draw.normal(*lead, 5, 3, dtype=dtype),
        )

    def hidden_peak():
        """Scores of -9000 for the past and the present, 9000 for the future; d_k = 4."""
        T = 5
        keys = torch.eye(T, dtype=torch.float64)
        wanted = torch.where(_causal(T), -18000.0, 18000.0).double() * T**0.5 / 2
        return wanted + draw.normal(T, T, dtype=torch.float64), keys, draw.normal(T, 3, dtype=torch.float64)

    return [
        *tensor_cases(make, leads=((), (3,), (2, 3))),
        Case(make(torch.float64, scale=1500.0), part=LARGE),
        Case(hidden_peak(), part=LARGE, gradient=True),
        Case((draw.normal(2, 1, 4), draw.normal(2, 1, 4), draw.normal(2, 1, 3)), part="one token"),
    ]


def _scaled(Q, K):
    return Q @ K.transpose(-2, -1) / math.sqrt(Q.shape[-1])


def _mask_of(Q):
    return _causal(Q.shape[-2])


def attention_published(Q, K, V):
    return torch.softmax(_scaled(Q, K), dim=-1).masked_fill(~_mask_of(Q), 0.0) @ V


def attention_renormalised(Q, K, V):
    weights = torch.softmax(_scaled(Q, K), dim=-1) * _mask_of(Q)
    return weights / weights.sum(-1, keepdim=True) @ V


def attention_softmax_twice(Q, K, V):
    weights = torch.softmax(_scaled(Q, K), dim=-1).masked_fill(~_mask_of(Q), -math.inf)
    return torch.softmax(weights, dim=-1) @ V


def attention_zero_scores(Q, K, V):
    return torch.softmax(_scaled(Q, K).tril(), dim=-1) @ V


def attention_sees_future(Q, K, V):
    return torch.softmax(_scaled(Q, K).masked_fill(~_mask_of(Q).T, -math.inf), dim=-1) @ V


def attention_unmasked(Q, K, V):
    return torch.softmax(_scaled(Q, K), dim=-1) @ V


def attention_unscaled(Q, K, V):
    return torch.softmax((Q @ K.transpose(-2, -1)).masked_fill(~_mask_of(Q), -math.inf), dim=-1) @ V


def attention_over_queries(Q, K, V):
    return torch.softmax(_scaled(Q, K).masked_fill(~_mask_of(Q), -math.inf), dim=-2) @ V


def attention_scaled_by_d_v(Q, K, V):
    scores = Q @ K.transpose(-2, -1) / math.sqrt(V.shape[-1])
    return torch.softmax(scores.masked_fill(~_mask_of(Q), -math.inf), dim=-1) @ V


def attention_bert(Q, K, V):
    return torch.softmax(_scaled(Q, K) - 10000.0 * (~_mask_of(Q)), dim=-1) @ V


def attention_fill(Q, K, V):
    return torch.softmax(_scaled(Q, K).masked_fill(~_mask_of(Q), -math.inf), dim=-1) @ V


def attention_added(Q, K, V):
    T = Q.size(-2)
    blocked = torch.triu(torch.full((T, T), -math.inf, dtype=Q.dtype), diagonal=1)
    return torch.matmul((torch.matmul(Q, K.mT) * Q.size(-1) ** -0.5 + blocked).softmax(-1), V)


def attention_einsum(Q, K, V):
    scores = torch.einsum("...qd,...kd->...qk", Q / Q.shape[-1] ** 0.5, K)
    weights = torch.where(_mask_of(Q), scores, -1e9).softmax(-1)
    return torch.einsum("...qk,...kv->...qv", weights, V)


def attention_rows(Q, K, V):
    rows = []
    for t in range(Q.shape[-2]):
        past = K[..., : t + 1, :]
        scores = (past @ Q[..., t, :, None]).squeeze(-1) / Q.shape[-1] ** 0.5
        rows.append((torch.softmax(scores, dim=-1)[..., None] * V[..., : t + 1, :]).sum(-2))
    return torch.stack(rows, dim=-2)


def attention_by_hand(Q, K, V):
    scores = _scaled(Q, K).masked_fill(~_mask_of(Q), -math.inf)
    powers = (scores - scores.amax(-1, keepdim=True)).exp()
    return powers @ V / powers.sum(-1, keepdim=True)


fixed_causal_attention = Exercise(
    "fixed_causal_attention",
    cases_fixed_causal_attention,
    axes=("token", "column"),
    forbidden=("attention",),
    instead="build it from scores, a mask, softmax and V.",
    mistakes=[
        Mistake(
            "bug_not_fixed",
            "the published version: the mask after the softmax",
            "Add up the weights of row 0. Who got the rest?",
            attention_published,
        ),
        Mistake(
            "divided_again",
            "softmax, then the mask, then the rows divided by their sums",
            "Put the future at +9000 and the past at -9000. What has softmax left of the past?",
            attention_renormalised,
        ),
        Mistake(
            "softmax_twice",
            "softmax before and after the mask",
            "One softmax is enough. Which one comes too early?",
            attention_softmax_twice,
        ),
        Mistake(
            "future_set_to_zero", "the future's scores set to 0", "The power of 0 is 1, not 0.", attention_zero_scores
        ),
        Mistake(
            "sees_the_future",
            "the past masked and the future left open",
            "What may token 0 see? What is your row 0?",
            attention_sees_future,
        ),
        Mistake("not_masked", "no mask at all", "Who looks ahead?", attention_unmasked),
        Mistake(
            "not_scaled", "scores that are not scaled", "Lesson 4: what are the scores divided by?", attention_unscaled
        ),
        Mistake(
            "softmax_over_queries",
            "softmax over the queries instead of the keys",
            "The weights of one query sum to 1.",
            attention_over_queries,
        ),
        Mistake(
            "scaled_by_value_width",
            "scores divided by the root of the values' width",
            "The products that are summed in a score: how many are they?",
            attention_scaled_by_d_v,
        ),
        Mistake(
            "minus_10000_added",
            "-10000 added to the future's scores",
            "Put the future at +9000 and the past at -9000.",
            attention_bert,
        ),
    ],
    alternatives=[attention_fill, attention_added, attention_einsum, attention_rows, attention_by_hand],
)


exercises = [
    causal_mask,
    padding_mask,
    combine_masks,
    mask_scores,
    masked_softmax,
    leaks_future,
    fixed_causal_attention,
]

quizzes = [
    Quiz(
        "quiz_1",
        "c",
        {
            "a": "Both are turned round: this lets every word see the future, and the padding of the sentence.",
            "b": "The first is right. The second blocks all real words and leaves the padding.",
            "c": "nn.MultiheadAttention blocks where a mask is True, so both of ours must be inverted.",
        },
    ),
    Quiz(
        "quiz_2",
        "b",
        {
            "a": "That mask does not fit: each query scores all 8 keys, the cached ones included.",
            "b": "The new words stand at places 6 and 7. Each sees the six cached keys, and the new ones up to itself.",
            "c": "That is a triangle aligned at the first key: the newest word would see the two oldest, and not itself.",
        },
    ),
    Quiz(
        "quiz_3",
        "b",
        {
            "a": "The blocked weights are 0, but the others were divided by a sum that contains the future.",
            "b": "The smaller the sum that is left, the larger the future's scores were: a channel that training finds.",
            "c": "Nothing is infinite here, so there is no NaN; that is why the bug lives so long.",
        },
    ),
]
