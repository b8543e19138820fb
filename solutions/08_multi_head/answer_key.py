"""Cases and known mistakes of lesson 8: heads split, merged, run side by side, transplanted and counted."""

import torch

from helpers.checking.vocabulary import DTYPE, GRADIENT, Case, Exercise, Raises, listed_quizzes

MASK = "a mask"
ONE_AFTER_THE_OTHER = "two calls, and both outputs compared after the second"
BROADCAST = "masks that broadcast"
NOTHING = "fully masked rows"
ONE_HEAD = "one head"
NARROW = "heads of width 1"
ONE_SENTENCE = "a batch of one, a single token"
VALUE_ALONE = "value given without a key"
DIVISIBLE = "a number of heads that does not divide the width"
AGAIN = "called again, in training mode"
ALL_ONE = "every axis of size 1"
LARGE = "scores up to ±10⁴"
ALL_0 = "a mask, and all scores are 0"
LOW_AND_HIGH = "visible scores near -10000, masked ones near 10000"
BLIND_IN_ONE = "a mask (B, H, T_q, T_k), where one query is fully masked in head 0 and another one in head 1"
MORE_QUERIES = "more queries than keys"
VIEW = "tensors that are views of others"
TRANSPOSED = "inputs that are views of others, transposed"
FLOAT64 = torch.float64


def cases_split_heads(draw):
    def refused(D, num_heads):
        return Case((draw.normal(2, 5, D), num_heads), part=DIVISIBLE, raises=Raises("ValueError"))

    return [
        Case((draw.normal(3, 5, 24), 4)),
        Case((draw.normal(2, 70, 15), 3)),
        Case((draw.normal(4, 4, 16), 4), note="as many heads as tokens, sentences and channels of a head"),
        Case(((draw.normal(2, 5, 6), 3), (draw.normal(2, 5, 6), 3)), via="called_again", note=ONE_AFTER_THE_OTHER),
        Case((draw.normal(3, 5, 24, dtype=FLOAT64), 4), part=DTYPE),
        Case((draw.normal(2, 5, 12, dtype=FLOAT64), 3), part=GRADIENT, gradient=True),
        Case((draw.normal(1, 5, 24), 4), part=ONE_SENTENCE),
        Case((draw.normal(3, 1, 24), 4), part=ONE_SENTENCE),
        Case((draw.normal(1, 1, 6), 2), part=ONE_SENTENCE),
        Case((draw.normal(3, 5, 7), 1), part=ONE_HEAD),
        Case((draw.normal(3, 5, 7), 7), part=NARROW),
        Case((draw.normal(1, 1, 1), 1), part=ONE_SENTENCE, note=ALL_ONE),
        Case((draw.normal(3, 5, 24), 4), part=VIEW, via="on_views", note=TRANSPOSED),
        refused(10, 4),
        refused(6, 12),
    ]


split_heads = Exercise("split_heads", cases_split_heads, axes=("token", "channel of the head")).with_mistakes("""
    cut_without_moving: the entries split in memory order, so that tokens and heads are mixed
        .view(B, T, num_heads, D // num_heads).transpose(1, 2) -> .reshape(B, num_heads, T, D // num_heads)
        The shape is right, but the rows are not. From which token does row 1 of head 0 come?
    viewed_without_moving: the entries split in memory order, so that tokens and heads are mixed
        .view(B, T, num_heads, D // num_heads).transpose(1, 2) -> .view(B, num_heads, T, D // num_heads)
        The shape is right, but the rows are not. From which token does row 1 of head 0 come?
    dealt_like_cards: channels given to the heads in turn
        .view(B, T, num_heads, D // num_heads).transpose(1, 2)
        -> .reshape(B, T, D // num_heads, num_heads).permute(0, 3, 1, 2)
        Head 0 has the first D/H channels, which are consecutive.
    heads_behind_tokens: the head axis left behind the token axis
        .transpose(1, 2) ->
        Attention works on the last two axes. Which two axes should those be?
    tokens_and_channels_swapped: tokens and channels swapped
        .transpose(1, 2) -> .permute(0, 2, 3, 1)
        The last axis should contain the D/H channels of one token.
    heads_first: heads in front of the batch
        .transpose(1, 2) -> .permute(2, 0, 1, 3)
        The batch axis stays first, (B, H, T, D/H).
    folded_into_the_batch: batch and heads merged into one axis
        .transpose(1, 2) -> .transpose(1, 2).reshape(B * num_heads, T, D // num_heads)
        The result has four axes, one of them for the heads.
    count_and_width_exchanged: num_heads used as the width of a head
        .view(B, T, num_heads, D // num_heads) -> .reshape(B, T, D // num_heads, num_heads)
        How many heads are there, and how wide is each?
    no_check: no ValueError if num_heads does not divide the width
        if D % num_heads: -> if False:
        With 10 channels and 4 heads your code should raise a ValueError itself.
    asserted: an assertion instead of a ValueError
        raise ValueError( -> raise AssertionError(
        assert raises AssertionError, and does nothing where Python is started with -O. Raise what the contract names.
    rest_dropped: the remaining channels dropped
        if D % num_heads: -> if False:
        return x.view(B, T, num_heads, D // num_heads)
        -> return x[..., : D // num_heads * num_heads].reshape(B, T, num_heads, D // num_heads)
        With 10 channels and 4 heads, two channels would be lost silently. Raise a ValueError instead.
""")


def cases_merge_heads(draw):
    return [
        Case((draw.normal(3, 4, 5, 6),)),
        Case((draw.normal(7, 3, 2, 5),)),
        Case((draw.normal(4, 4, 4, 4),), note="as many heads as tokens, sentences and channels of a head"),
        Case(((draw.normal(2, 3, 5, 2),), (draw.normal(2, 3, 5, 2),)), via="called_again", note=ONE_AFTER_THE_OTHER),
        Case((draw.normal(3, 4, 5, 6, dtype=FLOAT64),), part=DTYPE),
        Case((draw.normal(2, 3, 5, 4, dtype=FLOAT64),), part=GRADIENT, gradient=True),
        Case((draw.normal(1, 4, 5, 6),), part=ONE_SENTENCE),
        Case((draw.normal(3, 4, 1, 6),), part=ONE_SENTENCE),
        Case((draw.normal(1, 2, 1, 3),), part=ONE_SENTENCE),
        Case((draw.normal(3, 1, 5, 7),), part=ONE_HEAD),
        Case((draw.normal(3, 7, 5, 1),), part=NARROW),
        Case((draw.normal(1, 1, 1, 1),), part=ONE_SENTENCE, note=ALL_ONE),
        Case((draw.normal(3, 4, 5, 6),), part=VIEW, via="on_views", note=TRANSPOSED),
    ]


merge_heads = Exercise("merge_heads", cases_merge_heads, axes=("token", "channel")).with_mistakes("""
    glued_without_moving: the entries merged in memory order, so that tokens and heads are mixed
        x.transpose(1, 2).reshape -> x.reshape
        The shape is right, but the rows are not. From which tokens do the entries of row 0 come?
    shuffled_like_cards: one channel of each head in turn
        x.transpose(1, 2) -> x.permute(0, 2, 3, 1)
        All D/H channels of head 0 come first, as in split_heads.
    channels_moved: tokens and channels swapped before merging
        x.transpose(1, 2) -> x.transpose(2, 3)
        The two axes that become one must be adjacent. Which axis is between them?
    heads_added: the heads summed
        x.transpose(1, 2).reshape(B, T, H * d_head) -> x.sum(dim=1)
        The heads are concatenated and not summed, so the width is H · D/H.
    heads_averaged: the average of the heads
        x.transpose(1, 2).reshape(B, T, H * d_head) -> x.mean(dim=1)
        The heads are concatenated and not averaged, so the width is H · D/H.
    heads_in_reverse: the heads in reverse order
        x.transpose(1, 2) -> x.flip(1).transpose(1, 2)
        Head 0 has the first channels.
    not_glued: heads moved, but still a separate axis
        .reshape(B, T, H * d_head) ->
        The result has three axes. Which two become one?
    tokens_last: tokens in the last axis
        .reshape(B, T, H * d_head) -> .reshape(B, T, H * d_head).transpose(1, 2)
        The result has one row per token, (B, T, D).
    channels_for_heads: head axis and channel axis swapped
        x.transpose(1, 2) -> x.transpose(1, 3)
        The head axis should be next to the channel axis. Which axis between them has to move?
""")


CAUSAL = torch.ones(5, 5, dtype=torch.bool).tril()


def padded(*lengths):
    """A padding mask (B, 1, 1, T) of sentences of these lengths, the first of which has no padding."""
    return (torch.arange(lengths[0]) < torch.tensor(lengths)[:, None])[:, None, None]


def empty(T):
    """A padding mask (2, 1, 1, T) of a whole sentence and an empty one."""
    return torch.tensor([True, False])[:, None, None, None].repeat(1, 1, 1, T)


def blind(draw, queries=5, keys=5):
    """A mask with one row that sees nothing."""
    mask = draw.mask(queries, keys)
    mask[draw.integer(1, queries - 1)] = False
    return mask


def blind_in_one_head(draw, B, H, queries, keys):
    """A mask (B, H, T_q, T_k) with a query that sees nothing in head 0, and another that sees nothing in head 1."""
    mask = draw.mask(B, H, queries, keys)
    mask[0, 0, 1] = mask[1, 1, 3] = False
    return mask


def attention_state(draw, D, dtype=torch.float32, scale=1.5, bias=0.7):
    """Numbers for W_q, W_k, W_v and W_o with biases."""
    state = {}
    for name in ("W_q", "W_k", "W_v", "W_o"):
        state[f"{name}.weight"] = draw.normal(D, D, dtype=dtype, scale=scale * D**-0.5)
        state[f"{name}.bias"] = draw.normal(D, dtype=dtype, scale=bias)
    return state


def low_and_high(draw):
    """x (2, 5, 8), W_q, W_k and a padding mask: four heads whose visible scores lie between -10000 and -9996, and whose
    blocked ones between 9996 and 10000. All queries begin with the same number, and each key with its score's size."""
    mask = padded(5, 3)
    seen = mask[:, 0, 0]
    low, high = (draw.uniform(2, 5, low=a, high=b, dtype=FLOAT64) for a, b in ((-9998.9, -9998.0), (9997.9, 9998.8)))
    x = draw.uniform(2, 5, 8, low=-1.0, dtype=FLOAT64)
    x[..., 0], x[..., 1] = 1.0, torch.where(seen, low, high) / 100
    W_q, W_k = (draw.uniform(8, 8, low=-0.2, high=0.2, dtype=FLOAT64) for _ in range(2))
    W_q[:, :2] = W_k[:, :2] = 0.0
    W_q[::2] = W_k[::2] = 0.0
    W_q[::2, 0], W_k[::2, 1] = 100 * 2**0.5, 1.0
    return x, W_q, W_k, mask


def cases_multi_head_attention(draw):
    def case(num_heads, *inputs, part="values", gradient=False, note="", via="module", **kwargs):
        D, dtype = inputs[0].shape[-1], inputs[0].dtype
        args = ((D, num_heads), attention_state(draw, D, dtype), inputs, kwargs)
        return Case(args, part=part, gradient=gradient, via=via, note=note)

    def x(*shape, dtype=torch.float32):
        return draw.normal(*shape, dtype=dtype)

    def y(*shape, dtype=torch.float32):
        return draw.normal(*shape, 8, dtype=dtype)

    def low_and_high_scores():
        x, W_q, W_k, mask = low_and_high(draw)
        state = attention_state(draw, 8, FLOAT64) | {"W_q.weight": W_q, "W_k.weight": W_k}
        state |= {f"W_{name}.bias": torch.zeros(8, dtype=FLOAT64) for name in "qk"}
        return Case(((8, 4), state, (x,), {"mask": mask}), via="module", part=LARGE, note=LOW_AND_HIGH)

    def scores_of_0():
        state = attention_state(draw, 8) | {"W_q.weight": torch.zeros(8, 8), "W_q.bias": torch.zeros(8)}
        return Case(((8, 4), state, (y(3, 5),), {"mask": draw.mask(5, 5)}), via="module", part=MASK, note=ALL_0)

    cross, values = "key given: cross-attention", "key and value given"
    return [
        case(4, y(3, 5)),
        case(3, x(2, 7, 12)),
        case(4, x(4, 4, 16), note="as many heads as tokens, sentences and channels of a head"),
        case(4, y(3, 5, dtype=FLOAT64), part=DTYPE),
        case(3, x(2, 5, 12, dtype=FLOAT64), part=GRADIENT, gradient=True),
        case(4, y(3, 5), y(3, 7), part=cross),
        case(4, y(3, 7), part=cross, key=y(3, 5), note=MORE_QUERIES),
        case(4, y(3, 5), y(3, 5), part=cross, note="as many keys as queries"),
        case(3, x(2, 5, 12, dtype=FLOAT64), x(2, 7, 12, dtype=FLOAT64), part=cross, gradient=True),
        case(4, y(3, 5), y(3, 7), y(3, 7), part=values),
        case(4, y(3, 5), part=values, value=y(3, 7), key=y(3, 7)),
        case(4, y(3, 5), part=VALUE_ALONE, value=y(3, 5), note="a value and no key"),
        case(4, y(3, 5), part=MASK, value=y(3, 5), mask=draw.mask(5, 5), note="a value and a mask, and no key"),
        case(3, *(x(2, n, 12, dtype=FLOAT64) for n in (5, 7, 7)), part=values, gradient=True),
        case(4, y(3, 5), part=MASK, mask=draw.mask(5, 5)),
        case(4, y(3, 5), None, None, draw.mask(5, 5), part=MASK),
        case(4, y(5, 5), part=MASK, mask=CAUSAL, note="as many sentences as tokens, and a causal mask"),
        case(4, y(3, 5), y(3, 7), y(3, 7), draw.mask(5, 7), part=MASK),
        case(3, x(2, 5, 12, dtype=FLOAT64), part=MASK, mask=draw.mask(5, 5), gradient=True),
        case(4, y(2, 5), y(2, 70), part=BROADCAST, mask=draw.mask(2, 1, 1, 70), note="a padding mask (B, 1, 1, T_k)"),
        case(4, y(2, 6), part=BROADCAST, mask=padded(6, 4), note="a padding mask (B, 1, 1, T), and no key"),
        case(4, y(3, 5), y(3, 7), part=BROADCAST, mask=draw.mask(7), note="a mask (T_k,)"),
        case(4, y(3, 5), y(3, 7), part=BROADCAST, mask=draw.mask(3, 4, 5, 7), note="a mask (B, H, T_q, T_k)"),
        case(4, y(3, 5), y(3, 7), part=BROADCAST, mask=draw.mask(3, 1, 5, 7), note="a mask (B, 1, T_q, T_k)"),
        case(
            4, y(4, 5), part=BROADCAST, mask=draw.mask(4, 5, 5), note="as many sentences as heads, and a mask (H, T, T)"
        ),
        case(4, y(3, 5), part=NOTHING, mask=blind(draw)),
        case(4, y(3, 5), y(3, 7), part=NOTHING, mask=blind(draw, 5, 7), note="a key given, and a fully masked row"),
        case(3, x(2, 5, 12, dtype=FLOAT64), part=NOTHING, mask=blind(draw), gradient=True),
        case(4, y(3, 5), part=NOTHING, mask=torch.tensor([True, False, True])[:, None, None, None]),
        case(4, y(1, 5), part=NOTHING, mask=empty(5)[1:], note="one sentence, all of it padding"),
        case(4, y(2, 5), part=NOTHING, mask=blind_in_one_head(draw, 2, 4, 5, 5), note=BLIND_IN_ONE),
        case(1, y(3, 5), part=ONE_HEAD),
        case(4, y(3, 5), y(3, 7), y(3, 7), part=VIEW, via="on_views", note=TRANSPOSED),
        case(7, x(3, 5, 7), part=NARROW),
        case(4, y(1, 70), part=ONE_SENTENCE),
        case(4, y(1, 5), part=BROADCAST, mask=draw.mask(1, 4, 5, 5), note="one sentence, and a mask (1, H, T, T)"),
        case(4, y(3, 1), part=ONE_SENTENCE),
        case(4, y(3, 1), y(3, 7), part=ONE_SENTENCE),
        case(1, x(1, 1, 1), part=ONE_SENTENCE, note=ALL_ONE),
        Case(
            (
                (8, 4),
                attention_state(draw, 8),
                (y(3, 5), None, None, draw.mask(5, 5)),
                (y(3, 5),),
                (y(3, 5), y(3, 7), y(3, 7), draw.mask(5, 7)),
            ),
            {"training": True},
            part=AGAIN,
            via="module_called_again",
            note="one module called three times in training mode: with a mask, on other numbers without one, and with "
            "a key, a value and a mask",
        ),
        case(4, y(2, 5, dtype=FLOAT64) * 20, part=LARGE),
        low_and_high_scores(),
        Case(((24, 4),), part="layers, and num_heads kept", via="attention_layers"),
        Case(((10, 4),), part=DIVISIBLE, via="attention_made", raises=Raises("ValueError")),
        Case(((6, 12),), part=DIVISIBLE, via="attention_made", raises=Raises("ValueError")),
        scores_of_0(),
    ]


RUN = "attention(Q, K, V, mask)"
SPLIT_Q = "split_heads(self.W_q(query), self.num_heads)"
MultiHeadAttention = Exercise(
    "MultiHeadAttention",
    cases_multi_head_attention,
    axes=("token", "channel"),
    forbidden=("attention",),
    instead="use your own attention of lesson 7.",
    weights={"layers, and num_heads kept": 1, DIVISIBLE: 1},
    apart=(MASK, BROADCAST, NOTHING, LARGE, AGAIN, DIVISIBLE),
    time_limit=8.0,
).with_mistakes(f"""
    one_head_for_all: one head of the full width, never split
        {RUN}  # (B, H, T_q, D/H), (B, H, T_q, T_k)
        -> attention(merge_heads(Q)[:, None], merge_heads(K)[:, None], merge_heads(V)[:, None], mask)
        return self.W_o(merge_heads(heads)), weights
        -> return self.W_o(merge_heads(heads)), weights.expand(-1, self.num_heads, -1, -1)
        num_heads has to change something: your weights are the same for every head.
    scaled_by_model_width: scaled by the width of the model
        {RUN} -> attention(Q / self.num_heads**0.5, K, V, mask)
        How many products are summed in one score of one head?
    not_scaled: the scores were not scaled
        {RUN} -> attention(Q * Q.shape[-1] ** 0.5, K, V, mask)
        Which divisor keeps the standard deviation of a head's scores at 1 (lesson 4)?
    divided_by_the_width: the scores divided by the width of a head instead of its square root
        {RUN} -> attention(Q / Q.shape[-1] ** 0.5, K, V, mask)
        Which divisor keeps the standard deviation of a head's scores at 1 (lesson 4)?
    softmax_over_queries: the softmax taken over the queries
        heads, weights = attention(Q, K, V, mask)
        -> scores = Q @ K.transpose(-2, -1) / Q.shape[-1] ** 0.5
        |        if mask is not None:
        |            scores = scores.masked_fill(~mask, float("-inf"))
        |        weights = torch.softmax(scores, dim=-2)
        |        if mask is not None:
        |            weights = weights.masked_fill(~mask, 0.0)
        |        heads = weights @ V
        The weights of each query sum to 1 over the keys. Along which axis are the keys?
    scores_returned: the scores returned instead of the weights
        return self.W_o(merge_heads(heads)), weights
        -> return self.W_o(merge_heads(heads)), Q @ K.transpose(-2, -1) / Q.shape[-1] ** 0.5
        Sum a row of your second result. What should a query's weights sum to?
    values_without_W_v: W_v never applied to the values
        self.W_v(value) -> value
        One of the four layers is never used. Which layer projects the values?
    merged_last_axes: the wrong two axes swapped before merging
        merge_heads(heads) -> heads.transpose(-2, -1).reshape(query.shape)
        Swap heads and tokens, as in split_heads.
    filled_with_zero: masked scores set to 0 before the softmax
        {RUN} -> (w := torch.softmax(
        |            (Q @ K.transpose(-2, -1) / Q.shape[-1] ** 0.5).masked_fill(~mask if mask is not None else torch.tensor(False), 0.0),
        |            dim=-1)) @ V, w
        A score of 0 still gets weight, because e to the 0 is 1. Which score gets no weight at all?
    blind_rows_even: equal weights in fully masked rows
        {RUN} -> (w := torch.softmax(
        |            (Q @ K.transpose(-2, -1) / Q.shape[-1] ** 0.5).masked_fill(~mask if mask is not None else torch.tensor(False), -1e9),
        |            dim=-1)) @ V, w
        If all scores are equally low, softmax gives equal weights. A fully masked query should get zeros.
    not_low_enough: a constant added to masked scores, or replacing them, that isn't low enough for large scores
        heads, weights = {RUN}  # (B, H, T_q, D/H), (B, H, T_q, T_k)
        -> seen = torch.tensor(True) if mask is None else mask
        |        scores = Q @ K.transpose(-2, -1) / Q.shape[-1] ** 0.5
        |        weights = torch.softmax(scores - 10000.0 * ~seen, dim=-1)
        |        weights = torch.where(seen, weights, 0.0)
        |        heads = weights @ V
        What does your constant make of a masked score of 9998, and is that far below visible scores of -9998?
    minus_20000_added: 20000 subtracted from the masked scores, and their weights set to 0
        heads, weights = {RUN}  # (B, H, T_q, D/H), (B, H, T_q, T_k)
        -> seen = torch.tensor(True) if mask is None else mask
        |        scores = Q @ K.transpose(-2, -1) / Q.shape[-1] ** 0.5
        |        weights = torch.softmax(scores - 20000.0 * ~seen, dim=-1)
        |        weights = torch.where(seen, weights, 0.0)
        |        heads = weights @ V
        What does this make of a masked score of 9998, and is that far below visible scores of -9998?
    blind_in_some_heads: equal weights if a query is fully masked in some heads only
        heads, weights = {RUN}  # (B, H, T_q, D/H), (B, H, T_q, T_k)
        -> seen = torch.ones(Q.shape[-2], K.shape[-2], dtype=torch.bool) if mask is None else mask
        |        seen = seen.expand(*Q.shape[:-1], K.shape[-2])
        |        scores = Q @ K.transpose(-2, -1) / Q.shape[-1] ** 0.5
        |        weights = torch.softmax(scores.masked_fill(~seen, -1e9), dim=-1)
        |        weights = weights * seen.any(-1, keepdim=True).any(1, keepdim=True)
        |        heads = weights @ V
        A mask may differ between heads. A head in which a query is fully masked should give it zeros.
    blind_by_head_0: the mask of head 0 decides for all heads whether a query is fully masked
        heads, weights = {RUN}  # (B, H, T_q, D/H), (B, H, T_q, T_k)
        -> seen = torch.ones(Q.shape[-2], K.shape[-2], dtype=torch.bool) if mask is None else mask
        |        seen = seen.expand(*Q.shape[:-1], K.shape[-2])
        |        scores = Q @ K.transpose(-2, -1) / Q.shape[-1] ** 0.5
        |        weights = torch.softmax(scores.masked_fill(~seen, -1e9), dim=-1)
        |        weights = weights * seen[:, :1].any(-1, keepdim=True)
        |        heads = weights @ V
        A mask may differ between heads. Which mask does head 1 use in your code?
    minus_10000_filled: a fill value of -10000, and masked weights set to 0
        heads, weights = {RUN}  # (B, H, T_q, D/H), (B, H, T_q, T_k)
        -> seen = torch.tensor(True) if mask is None else mask
        |        scores = Q @ K.transpose(-2, -1) / Q.shape[-1] ** 0.5
        |        weights = torch.softmax(scores.masked_fill(~seen, -10000.0), dim=-1)
        |        weights = torch.where(seen, weights, 0.0)
        |        heads = weights @ V
        Visible scores may be -10000 as well. How much weight do the masked keys take from them?
    minus_10000_left: a fill value of -10000 and nothing else
        heads, weights = {RUN}  # (B, H, T_q, D/H), (B, H, T_q, T_k)
        -> seen = torch.tensor(True) if mask is None else mask
        |        scores = Q @ K.transpose(-2, -1) / Q.shape[-1] ** 0.5
        |        weights = torch.softmax(scores.masked_fill(~seen, -10000.0), dim=-1)
        |        heads = weights @ V
        Consider a fully masked row, and a row whose visible scores are all near -10000. What do they give?
    W_o_not_transposed: the weight of W_o used without the transpose
        self.W_o(merge_heads(heads)) -> merge_heads(heads) @ self.W_o.weight + self.W_o.bias
        A layer stores its weight as (out, in) and transposes it. Call the layer, or transpose as well.
    head_axis_added: a head axis added to masks of three axes
        {RUN} -> attention(Q, K, V, mask if mask is None or mask.dim() != 3 else mask[:, None])
        A mask (H, T, T) has a head axis already. Masks broadcast, so pass them on unchanged.
    padding_of_two_axes: a mask of two axes used as a padding mask
        {RUN} -> attention(Q, K, V, mask if mask is None or mask.dim() != 2 else mask[:, None, None])
        Where B and T_q are the same number, nothing raises. Lined up from the right, what is the first axis of a mask
        (T_q, T_k)?
    padded_queries_blocked: padded queries masked as well as padded keys
        {RUN} -> attention(
        |            Q, K, V, mask & mask.mT if mask is not None and key is query and mask.dim() == 4 and mask.shape[2] == 1 else mask)
        A padding mask applies to keys only. Don't mask the queries.
    no_W_o: W_o is never used
        self.W_o(merge_heads(heads)) -> merge_heads(heads)
        One of the four layers is never used. What happens after the heads are merged?
    merged_without_moving: heads merged without moving their axis back
        merge_heads(heads) -> heads.reshape(query.shape)
        The shape is right, but the rows are not, because a token gets values of other tokens.
    split_without_moving: heads split without moving the token axis
        {SPLIT_Q} -> self.W_q(query).view(len(query), self.num_heads, query.shape[1], -1)
        split_heads(self.W_k(key), self.num_heads) -> self.W_k(key).view(len(key), self.num_heads, key.shape[1], -1)
        split_heads(self.W_v(value), self.num_heads)
        -> self.W_v(value).view(len(value), self.num_heads, value.shape[1], -1)
        The shape is right, but the rows are not, because a head gets parts of several tokens.
    mask_ignored: the mask is not used
        {RUN} -> attention(Q, K, V)
        forward takes a mask. Where does it go from there?
    mask_inverted: the mask inverted, so that visible tokens are masked
        {RUN} -> attention(Q, K, V, None if mask is None else ~mask)
        True means that the query may attend to the key.
    weights_averaged: the weights averaged over the heads
        return self.W_o(merge_heads(heads)), weights -> return self.W_o(merge_heads(heads)), weights.mean(dim=1)
        Each head has its own weights, so the result has four axes.
    output_alone: the output without the weights
        return self.W_o(merge_heads(heads)), weights -> return self.W_o(merge_heads(heads))
        Return the tuple (out, weights).
    results_exchanged: the two results swapped
        return self.W_o(merge_heads(heads)), weights -> return weights, self.W_o(merge_heads(heads))
        The output comes first, and then the weights.
    value_is_query: the query used as the value although a key is given
        value = key if value is None else value -> value = query if value is None else value
        Without a value the key is the value.
    queries_and_keys_exchanged: W_q and W_k swapped
        self.W_q(query) -> self.W_k(query)
        self.W_k(key) -> self.W_q(key)
        Which layer projects the query?
    key_projects_query: W_k applied to the query instead of the key
        self.W_k(key) -> self.W_k(query)
        Which input does each of the three projections take?
    values_by_W_k: the values projected with W_k
        self.W_v(value) -> self.W_k(value)
        One of the four layers is never used.
    keys_by_W_q: the keys projected with W_q
        self.W_k(key) -> self.W_q(key)
        One of the four layers is never used.
    masked_after_softmax: the mask applied after the softmax
        heads, weights = {RUN}
        -> weights = attention(Q, K, V)[1] * (True if mask is None else mask); heads = weights @ V
        Sum a row of your weights. The weight of the masked keys is missing.
    axis_for_masks: an axis added to every mask
        {RUN} -> attention(Q, K, V, mask if mask is None else mask[:, None])
        Masks broadcast from the right. With which axes of the scores does a mask (T_q, T_k) line up?
    masked_by_head_0: the mask of head 0 for all heads
        {RUN} -> attention(Q, K, V, mask if mask is None or mask.dim() < 4 else mask[:, :1])
        A mask may differ between heads. Does your code use all of a mask (B, H, T_q, T_k)?
    causal_unless_told: a causal mask where none is given
        {RUN} -> attention(
        |            Q, K, V, torch.ones(Q.shape[-2], K.shape[-2], dtype=torch.bool).tril(K.shape[-2] - Q.shape[-2]) if mask is None else mask)
        Without a mask every token may attend to every token.
    dealt_like_cards: channels given to the heads in turn
        {SPLIT_Q} -> self.W_q(query).unflatten(-1, (-1, self.num_heads)).permute(0, 3, 1, 2)
        split_heads(self.W_k(key), self.num_heads)
        -> self.W_k(key).unflatten(-1, (-1, self.num_heads)).permute(0, 3, 1, 2)
        split_heads(self.W_v(value), self.num_heads)
        -> self.W_v(value).unflatten(-1, (-1, self.num_heads)).permute(0, 3, 1, 2)
        merge_heads(heads) -> heads.permute(0, 2, 3, 1).flatten(2)
        Head 0 has the first D/H channels, which are consecutive.
    value_of_no_key: without a key there is no value either
        key = query if key is None else key -> given, key = key, query if key is None else key
        value = key if value is None else value -> value = given if value is None else value
        The value defaults to the key. What is the key at that moment, if none is given?
    all_blind_opened: the mask ignored where everything is masked
        attention(Q, K, V, mask) -> attention(Q, K, V, mask if mask is not None and mask.any() else None)
        A sentence may consist of padding only. Its queries should get zeros.
    key_ignored: the query used as key and value, whatever is given
        key = query if key is None else key -> key = query
        value = key if value is None else value -> value = query
        forward takes key and value separately, so that one sentence can attend to another.
    value_alone_ignored: a value that comes without a key is not used
        key = query if key is None else key -> key, value = (query, query) if key is None else (key, value)
        Key and value have separate defaults. What does your code do with a value that is given alone?
    key_or_query: an error as soon as a key is given
        key = query if key is None else key -> key = key or query
        A tensor with many entries is neither true nor false. Test whether key is None.
    both_by_or: an error as soon as a key or a value is given
        key = query if key is None else key -> key = key or query
        value = key if value is None else value -> value = value or key
        What does the error say? A tensor of many numbers is neither true nor false: do you ask key and value, or whether
        there are any?
    value_or_key: an error as soon as a value is given
        value = key if value is None else value -> value = value or key
        A tensor with many entries is neither true nor false. Test whether value is None.
    input_split: right for one head, an error with several
        {SPLIT_Q} -> self.W_q(split_heads(query, self.num_heads))
        split_heads(self.W_k(key), self.num_heads) -> self.W_k(split_heads(key, self.num_heads))
        split_heads(self.W_v(value), self.num_heads) -> self.W_v(split_heads(value, self.num_heads))
        Write the shape next to each line, for two heads. A layer takes all D channels. Which of yours gets another number
        of them?
    input_split_small_layers: layers as wide as one head, for a slice of the input
        self.W_q, self.W_k, self.W_v, self.W_o = (nn.Linear(d_model, d_model) for _ in range(4))
        -> self.W_q, self.W_k, self.W_v = (nn.Linear(d_model // num_heads, d_model // num_heads) for _ in range(3))
        |        self.W_o = nn.Linear(d_model, d_model)
        {SPLIT_Q} -> self.W_q(split_heads(query, self.num_heads))
        split_heads(self.W_k(key), self.num_heads) -> self.W_k(split_heads(key, self.num_heads))
        split_heads(self.W_v(value), self.num_heads) -> self.W_v(split_heads(value, self.num_heads))
        Each head reads all channels of a token. How many input and output channels should a layer have?
    output_bias_for_each_head: the bias of W_o is added once for each head
        return self.W_o(merge_heads(heads)), weights
        -> return self.W_o(merge_heads(heads)) + (self.num_heads - 1) * self.W_o.bias, weights
        Sum the parts of the heads first, and then add the bias once.
    value_ignored: the key used as the value, whatever is given
        value = key if value is None else value -> value = key
        Keys and values may come from different inputs.
    keys_and_values_exchanged: W_k and W_v swapped
        self.W_k(key) -> self.W_v(key)
        self.W_v(value) -> self.W_k(value)
        Which of the two is multiplied with the queries?
    without_biases: linear layers without a bias
        nn.Linear(d_model, d_model) for -> nn.Linear(d_model, d_model, bias=False) for
        All four layers have a bias here, unlike in AttentionHead of lesson 7.
    values_added: the query added to the output
        return self.W_o(merge_heads(heads)), weights -> return query + self.W_o(merge_heads(heads)), weights
        The residual connection follows in lesson 9, around this module.
    blind_rows_zero: the bias of W_o missing in fully masked rows
        return self.W_o(merge_heads(heads)), weights
        -> return self.W_o(merge_heads(heads)) * (weights.sum(dim=(1, 3)) > 0)[:, :, None], weights
        A fully masked query passes zeros to W_o. What does a linear layer make of zeros?
    nan_rows_left: NaN in fully masked rows
        heads, weights = {RUN}
        -> heads, weights = attention(Q, K, V, mask); heads = heads / (weights.sum(dim=-1, keepdim=True) > 0); weights = weights / (weights.sum(dim=-1, keepdim=True) > 0)
        Your attention of lesson 7 handles such rows, so call it here.
    no_check: no ValueError if num_heads does not divide the width
        if d_model % num_heads: -> if False:
        With 10 channels and 4 heads, raise the error in __init__, and not in forward.
    asserted: an assertion instead of a ValueError
        raise ValueError( -> raise AssertionError(
        assert raises AssertionError, and does nothing where Python is started with -O. Raise what the contract names.
    keys_by_W_v: the keys projected with W_v
        self.W_k(key) -> self.W_v(key)
        One of the four layers is never used.
""")


IN_PLACE = "copied in place, no memory shared"


def cases_load_from_torch(draw):
    def case(D, num_heads, part="values", dtype=torch.float32, bias=0.0, view=None, note=""):
        state = {
            "in_proj_weight": draw.normal(3 * D, D, dtype=dtype),
            "in_proj_bias": draw.normal(3 * D, dtype=dtype, scale=bias),
            "out_proj.weight": draw.normal(D, D, dtype=dtype),
            "out_proj.bias": draw.normal(D, dtype=dtype, scale=bias),
        }
        args = (D, num_heads, state, attention_state(draw, D, dtype))
        return Case(args, part=part, via="transplanted", view=view, note=note)

    return [
        case(6, 2, note="biases of zero, as nn.MultiheadAttention starts", view="what_was_copied"),
        case(12, 3, bias=1.0, part="random biases", view="what_was_copied", note="width 12, 3 heads"),
        case(5, 1, bias=1.0, part="random biases", view="what_was_copied", note="width 5, 1 head"),
        case(6, 2, bias=1.0, dtype=FLOAT64, part=DTYPE, view="what_was_copied", note="float64 weights in both"),
        case(6, 2, bias=1.0, part=IN_PLACE, view="apart_from_theirs", note="width 6, 2 heads"),
        case(6, 3, bias=1.0, part="theirs is left as it was", view="theirs_is_unchanged", note="width 6, 3 heads"),
    ]


COPIES = "theirs.in_proj_weight.chunk(3)"
load_from_torch = Exercise(
    "load_from_torch", cases_load_from_torch, weights={"random biases": 4, IN_PLACE: 2, "theirs is left as it was": 1}
).with_mistakes(f"""
    nothing_copied: your module as it was before
        zip(layers, weights, biases, strict=True) -> ()
        The weights of the layers of `mine` have to change in place.
    queries_and_keys_exchanged: queries and keys swapped
        (mine.W_q, mine.W_k, mine.W_v, mine.W_o) -> (mine.W_k, mine.W_q, mine.W_v, mine.W_o)
        In which order are the three stacked in in_proj_weight?
    keys_and_values_exchanged: keys and values swapped
        (mine.W_q, mine.W_k, mine.W_v, mine.W_o) -> (mine.W_q, mine.W_v, mine.W_k, mine.W_o)
        In which order are the three stacked in in_proj_weight?
    queries_and_values_exchanged: queries and values swapped
        (mine.W_q, mine.W_k, mine.W_v, mine.W_o) -> (mine.W_v, mine.W_k, mine.W_q, mine.W_o)
        In which order are the three stacked in in_proj_weight?
    first_third_for_all: the queries' weights for W_k and W_v as well
        *{COPIES} -> *[theirs.in_proj_weight.chunk(3)[0]] * 3
        *theirs.in_proj_bias.chunk(3) -> *[theirs.in_proj_bias.chunk(3)[0]] * 3
        Three matrices are stacked in in_proj_weight. Which rows do your keys get?
    transposed_inputs: the three matrices of in_proj_weight transposed
        layer.weight.copy_(weight) -> layer.weight.copy_(weight if layer is mine.W_o else weight.T)
        Both modules store weights as (out, in), so nothing has to be transposed.
    transposed: matrices transposed
        layer.weight.copy_(weight) -> layer.weight.copy_(weight.T)
        Both modules store weights as (out, in), so nothing has to be transposed.
    output_bias_forgotten: all but the bias of W_o copied
        layer.bias.copy_(bias) -> layer.bias.copy_(bias) if layer is not mine.W_o else None
        Their out_proj also has a bias.
    biases_forgotten: the weights without their biases
        layer.bias.copy_(bias) -> pass
        The biases start at zero in nn.MultiheadAttention, but training changes them.
    in_proj_bias_forgotten: only the bias of W_o copied
        layer.bias.copy_(bias) -> layer.bias.copy_(bias) if layer is mine.W_o else None
        `theirs` stacks three more biases on top of each other. In which tensor?
    the_other_way: copied from yours into theirs
        layer.weight.copy_(weight) -> weight.copy_(layer.weight)
        layer.bias.copy_(bias) -> bias.copy_(layer.bias)
        The weights of `theirs` are the trusted ones, and those of `mine` have to change.
    biases_zeroed: zero biases
        layer.bias.copy_(bias) -> layer.bias.zero_()
        The biases start at zero in nn.MultiheadAttention, but training changes them.
    output_forgotten: everything but the layer behind the heads
        layer.weight.copy_(weight)
        |            layer.bias.copy_(bias) -> if layer is not mine.W_o: layer.weight.copy_(weight), layer.bias.copy_(bias)
        `theirs` has an out_proj. What is it called in your module?
    by_heads: the rows of in_proj_weight taken head by head
        *{COPIES} -> *theirs.in_proj_weight.unflatten(0, (mine.num_heads, 3, -1)).transpose(0, 1).flatten(1, 2)
        *theirs.in_proj_bias.chunk(3)
        -> *theirs.in_proj_bias.unflatten(0, (mine.num_heads, 3, -1)).transpose(0, 1).flatten(1)
        First all rows of W_q, then all of W_k, then all of W_v.
    shared_memory: weights that share memory with the other module
        layer.weight.copy_(weight) -> layer.weight = nn.Parameter(weight)
        layer.bias.copy_(bias) -> layer.bias = nn.Parameter(bias)
        If you train `mine` one step, `theirs` changes as well. Which method copies values?
    copied_in_a_computation: the right weights, but as the result of a computation that autograd records
        with torch.no_grad(): -> mine.requires_grad_(False)
        |    with torch.enable_grad():
        Autograd has written the copying down, and passes the gradient on to theirs. Ask mine.W_q.weight.is_leaf, and
        hand your parameters to an optimizer: what does it say?
    shared_data: weights that share memory with the other module
        layer.weight.copy_(weight) -> layer.weight.data = weight.data
        layer.bias.copy_(bias) -> layer.bias.data = bias.data
        If you train `mine` one step, `theirs` changes as well. Which method copies values?
    new_parameters: new Parameters instead of the old ones
        layer.weight.copy_(weight) -> layer.weight = nn.Parameter(weight.clone())
        layer.bias.copy_(bias) -> layer.bias = nn.Parameter(bias.clone())
        The weights are right, but an optimizer created earlier still updates the old Parameters.
""")


def cases_fixed_heads(draw):
    def make(B, T, D, num_heads, dtype=torch.float32):
        x = draw.normal(B, T, D, dtype=dtype)
        return (x, *(draw.normal(D, D, dtype=dtype, scale=1.5 * D**-0.5) for _ in range(4)), num_heads)

    def low_and_high_scores():
        x, W_q, W_k, mask = low_and_high(draw)
        rest = draw.normal(8, 8, dtype=FLOAT64), draw.normal(8, 8, dtype=FLOAT64)
        return Case((x, W_q, W_k, *rest, 4, mask), part=LARGE, note=LOW_AND_HIGH)

    def scores_of_0():
        x, W_q, *rest = make(2, 5, 12, 3)
        return Case((x, torch.zeros_like(W_q), *rest, draw.mask(5, 5)), part=MASK, note=ALL_0)

    return [
        Case(make(3, 5, 8, 4)),
        Case(make(2, 7, 12, 3)),
        Case(make(4, 4, 16, 4), note="as many heads as tokens, sentences and channels of a head"),
        Case(make(2, 5, 12, 3, FLOAT64), part=DTYPE),
        Case(make(2, 5, 12, 3, FLOAT64), part=GRADIENT, gradient=True),
        Case((*make(5, 5, 8, 4), CAUSAL), part=MASK, note="as many sentences as tokens, and a causal mask"),
        Case((*make(2, 5, 12, 3), draw.mask(3, 5, 5)), part=MASK, note="a mask (H, T, T)"),
        Case((*make(2, 5, 12, 3), draw.mask(5)), part=MASK, note="a mask (T,)"),
        Case(make(2, 70, 12, 3), {"mask": draw.mask(2, 1, 1, 70)}, part=MASK, note="a padding mask (B, 1, 1, T_k)"),
        Case(make(2, 5, 12, 3), {"mask": draw.mask(2, 3, 5, 5)}, part=MASK, note="a mask (B, H, T_q, T_k)"),
        Case((*make(2, 5, 12, 3), blind(draw)), part=NOTHING),
        Case((*make(2, 5, 12, 3), blind_in_one_head(draw, 2, 3, 5, 5)), part=NOTHING, note=BLIND_IN_ONE),
        Case((*make(2, 5, 12, 3), empty(5)), part=NOTHING, note="a mask (B, 1, 1, T), sentence 1 of length 0"),
        Case(make(3, 5, 8, 4), part=VIEW, via="on_views", note=TRANSPOSED),
        Case((*make(1, 5, 8, 4), CAUSAL), part=ONE_SENTENCE, note="one sentence, and a causal mask"),
        Case(make(3, 5, 10, 1), part=ONE_HEAD),
        Case(make(3, 5, 7, 7), part=NARROW),
        Case(make(1, 70, 8, 4), part=ONE_SENTENCE),
        Case(make(3, 1, 8, 4), part=ONE_SENTENCE),
        Case(make(1, 1, 1, 1), part=ONE_SENTENCE, note=ALL_ONE),
        low_and_high_scores(),
        scores_of_0(),
    ]


fixed_heads = Exercise(
    "fixed_heads",
    cases_fixed_heads,
    axes=("token", "channel"),
    forbidden=("attention",),
    instead="use your own attention.",
    apart=(MASK, NOTHING, LARGE),
).with_mistakes("""
    published: the original version, with its bug
        merge_heads(heads) -> heads.reshape(x.shape)
        The split moves the head axis to the front. Where is it moved back?
    dealt_like_cards: one column of each head in turn
        merge_heads(heads) -> heads.permute(0, 2, 3, 1).reshape(x.shape)
        The tokens are first again. Which head's channels should come first in a row?
    never_moved: the head axis is never moved, so that heads attend to heads
        split_heads(x @ W_q.T, num_heads) -> (x @ W_q.T).unflatten(-1, (num_heads, -1))
        split_heads(x @ W_k.T, num_heads) -> (x @ W_k.T).unflatten(-1, (num_heads, -1))
        split_heads(x @ W_v.T, num_heads) -> (x @ W_v.T).unflatten(-1, (num_heads, -1))
        merge_heads(heads) -> heads.reshape(x.shape)
        Attention works on the last two axes. Which two axes are they in your code?
    split_alone_spoiled: heads split without moving an axis
        split_heads(x @ W_q.T, num_heads) -> (x @ W_q.T).reshape(len(x), num_heads, x.shape[1], -1)
        split_heads(x @ W_k.T, num_heads) -> (x @ W_k.T).reshape(len(x), num_heads, x.shape[1], -1)
        split_heads(x @ W_v.T, num_heads) -> (x @ W_v.T).reshape(len(x), num_heads, x.shape[1], -1)
        The split is right in the original. Compare it with yours.
    input_split: right for one head, an error with several
        split_heads(x @ W_q.T, num_heads) -> split_heads(x, num_heads) @ W_q.T
        split_heads(x @ W_k.T, num_heads) -> split_heads(x, num_heads) @ W_k.T
        split_heads(x @ W_v.T, num_heads) -> split_heads(x, num_heads) @ W_v.T
        Write the shape next to each line, for two heads. A matrix takes all D channels. Which of yours gets another number
        of them?
    weights_not_turned: none of the four matrices transposed
        x @ W_q.T -> x @ W_q
        x @ W_k.T -> x @ W_k
        x @ W_v.T -> x @ W_v
        @ W_o.T -> @ W_o
        Weights are (out, in), so transpose them.
    projections_not_turned: W_q, W_k and W_v not transposed
        x @ W_q.T -> x @ W_q
        x @ W_k.T -> x @ W_k
        x @ W_v.T -> x @ W_v
        Weights are (out, in), so transpose them, as you did with W_o.
    values_for_keys: keys and values swapped
        attention(Q, K, V, mask) -> attention(Q, V, K, mask)
        Which of the two is multiplied with the queries?
    merged_last_axes: the wrong two axes swapped before merging
        merge_heads(heads) -> heads.transpose(-2, -1).reshape(x.shape)
        Swap heads and tokens, as in split_heads.
    split_spoiled: split and merged without moving an axis
        split_heads(x @ W_q.T, num_heads) -> (x @ W_q.T).reshape(len(x), num_heads, x.shape[1], -1)
        split_heads(x @ W_k.T, num_heads) -> (x @ W_k.T).reshape(len(x), num_heads, x.shape[1], -1)
        split_heads(x @ W_v.T, num_heads) -> (x @ W_v.T).reshape(len(x), num_heads, x.shape[1], -1)
        merge_heads(heads) -> heads.reshape(x.shape)
        Only the merge was wrong. Now a head also gets parts of several tokens.
    mask_ignored: the mask is not used
        attention(Q, K, V, mask) -> attention(Q, K, V)
        Where does your code use the last argument?
    blind_rows_even: equal weights in fully masked rows
        attention(Q, K, V, mask) -> attention(
        |        Q if mask is None else Q * (seen := mask.any(-1, keepdim=True)), K, V, mask if mask is None else mask | ~seen)
        If all scores are equally low, softmax gives equal weights. A fully masked query should get zeros.
    not_low_enough: a constant added to masked scores, or replacing them, that isn't low enough for large scores
        heads, _ = attention(Q, K, V, mask)  # (B, H, T, D/H)
        -> seen = torch.tensor(True) if mask is None else mask
        |    scores = Q @ K.transpose(-2, -1) / Q.shape[-1] ** 0.5
        |    weights = torch.softmax(scores - 10000.0 * ~seen, dim=-1)
        |    heads = torch.where(seen, weights, 0.0) @ V
        What does your constant make of a masked score of 9998, and is that far below visible scores of -9998?
    minus_20000_added: 20000 subtracted from the masked scores, and their weights set to 0
        heads, _ = attention(Q, K, V, mask)  # (B, H, T, D/H)
        -> seen = torch.tensor(True) if mask is None else mask
        |    scores = Q @ K.transpose(-2, -1) / Q.shape[-1] ** 0.5
        |    weights = torch.softmax(scores - 20000.0 * ~seen, dim=-1)
        |    heads = torch.where(seen, weights, 0.0) @ V
        What does this make of a masked score of 9998, and is that far below visible scores of -9998?
    blind_in_some_heads: equal weights if a query is fully masked in some heads only
        heads, _ = attention(Q, K, V, mask)  # (B, H, T, D/H)
        -> seen = torch.ones(Q.shape[-2], K.shape[-2], dtype=torch.bool) if mask is None else mask
        |    seen = seen.expand(*Q.shape[:-1], K.shape[-2])
        |    scores = Q @ K.transpose(-2, -1) / Q.shape[-1] ** 0.5
        |    weights = torch.softmax(scores.masked_fill(~seen, -1e9), dim=-1)
        |    heads = weights * seen.any(-1, keepdim=True).any(1, keepdim=True) @ V
        A mask may differ between heads. A head in which a query is fully masked should give it zeros.
    blind_by_head_0: the mask of head 0 decides for all heads whether a query is fully masked
        heads, _ = attention(Q, K, V, mask)  # (B, H, T, D/H)
        -> seen = torch.ones(Q.shape[-2], K.shape[-2], dtype=torch.bool) if mask is None else mask
        |    seen = seen.expand(*Q.shape[:-1], K.shape[-2])
        |    scores = Q @ K.transpose(-2, -1) / Q.shape[-1] ** 0.5
        |    weights = torch.softmax(scores.masked_fill(~seen, -1e9), dim=-1)
        |    heads = weights * seen[:, :1].any(-1, keepdim=True) @ V
        A mask may differ between heads. Which mask does head 1 use in your code?
    minus_10000_filled: a fill value of -10000, and masked weights set to 0
        heads, _ = attention(Q, K, V, mask)  # (B, H, T, D/H)
        -> seen = torch.tensor(True) if mask is None else mask
        |    scores = Q @ K.transpose(-2, -1) / Q.shape[-1] ** 0.5
        |    weights = torch.softmax(scores.masked_fill(~seen, -10000.0), dim=-1)
        |    heads = torch.where(seen, weights, 0.0) @ V
        Visible scores may be -10000 as well. How much weight do the masked keys take from them?
    minus_10000_left: a fill value of -10000 and nothing else
        heads, _ = attention(Q, K, V, mask)  # (B, H, T, D/H)
        -> seen = torch.tensor(True) if mask is None else mask
        |    scores = Q @ K.transpose(-2, -1) / Q.shape[-1] ** 0.5
        |    weights = torch.softmax(scores.masked_fill(~seen, -10000.0), dim=-1)
        |    heads = weights @ V
        Consider a fully masked row, and a row whose visible scores are all near -10000. What do they give?
    no_W_o: W_o is never used
        merge_heads(heads) @ W_o.T -> merge_heads(heads)
        Your function gets five tensors. Which of them is never used?
    W_o_transposed: W_o not transposed
        @ W_o.T -> @ W_o
        Weights are (out, in), so transpose this one as well.
    scaled_by_model_width: scaled by the width of the model
        attention(Q, K, V, mask) -> attention(Q / num_heads**0.5, K, V, mask)
        How many products are summed in one score of one head?
    not_scaled: the scores were not scaled
        attention(Q, K, V, mask) -> attention(Q * Q.shape[-1] ** 0.5, K, V, mask)
        Which divisor keeps the standard deviation of a head's scores at 1 (lesson 4)?
    divided_by_the_width: the scores divided by the width of a head instead of its square root
        attention(Q, K, V, mask) -> attention(Q / Q.shape[-1] ** 0.5, K, V, mask)
        Which divisor keeps the standard deviation of a head's scores at 1 (lesson 4)?
    mask_inverted: the mask inverted, so that visible tokens are masked
        attention(Q, K, V, mask) -> attention(Q, K, V, None if mask is None else ~mask)
        True means that the query may attend to the key.
    masked_after_softmax: the mask applied after the softmax
        heads, _ = attention(Q, K, V, mask) -> heads = attention(Q, K, V)[1] * (True if mask is None else mask) @ V
        Sum a row of your weights. The weight of the masked keys is missing.
    filled_with_zero: masked scores set to 0 before the softmax
        heads, _ = attention(Q, K, V, mask)
        -> heads = torch.softmax(Q @ K.mT / Q.shape[-1] ** 0.5 * (True if mask is None else mask), dim=-1) @ V
        A score of 0 still gets weight, because e to the 0 is 1. Which score gets no weight at all?
    nan_rows_left: NaN in fully masked rows
        heads, _ = attention(Q, K, V, mask)
        -> heads, weights = attention(Q, K, V, mask); heads = heads / (weights.sum(dim=-1, keepdim=True) > 0)
        Your attention of lesson 7 handles such rows, so call it here.
    weights_returned_too: the weights returned as well
        heads, _ = -> heads, weights =
        return merge_heads(heads) @ W_o.T -> return merge_heads(heads) @ W_o.T, weights
        Return one tensor, the output.
    queries_and_keys_exchanged: queries and keys swapped
        attention(Q, K, V, mask) -> attention(K, Q, V, mask)
        Rows are queries and columns are keys. To which query does your row 0 belong?
    one_head_for_all: one head of the full width, never split
        attention(Q, K, V, mask) -> attention(merge_heads(Q)[:, None], merge_heads(K)[:, None], merge_heads(V)[:, None], mask)
        num_heads has to change something. Where do you use it?
""")


def cases_grouped_query_attention(draw):
    def make(B, H, G, dtype=torch.float32, queries=5, keys=7, d_k=3):
        return (
            draw.normal(B, H, queries, d_k, dtype=dtype, scale=1.5),
            draw.normal(B, G, keys, d_k, dtype=dtype),
            draw.normal(B, G, keys, d_k, dtype=dtype),
        )

    def low_and_high_scores():
        x, W_q, W_k, mask = low_and_high(draw)
        Q, K = ((x @ W.T).unflatten(-1, (4, 2)).transpose(1, 2).contiguous() for W in (W_q, W_k))
        return Case(
            (Q, K[:, :2].contiguous(), draw.normal(2, 2, 5, 2, dtype=FLOAT64), mask), part=LARGE, note=LOW_AND_HIGH
        )

    def scores_of_0():
        Q, K, V = make(2, 6, 3)
        return Case((torch.zeros_like(Q), K, V, draw.mask(5, 7)), part=MASK, note=ALL_0)

    return [
        Case(make(2, 6, 3)),
        Case(make(3, 8, 2, d_k=6)),
        Case(make(4, 4, 2, queries=4, keys=4, d_k=4), note="as many heads as queries, keys, sentences and channels"),
        Case(make(2, 6, 3, FLOAT64, d_k=4), part=DTYPE),
        Case(make(2, 6, 3, FLOAT64, d_k=4), part=GRADIENT, gradient=True),
        Case(make(2, 4, 4), part="as many groups as heads"),
        Case(make(2, 4, 1, queries=7, keys=5), part="one group for all heads", note=MORE_QUERIES),
        Case((*make(5, 6, 3), draw.mask(5, 7)), part=MASK, note="as many sentences as queries, and a mask (T_q, T_k)"),
        Case(make(2, 6, 3), {"mask": draw.mask(2, 1, 1, 7)}, part=MASK),
        Case((*make(2, 6, 3), draw.mask(2, 6, 5, 7)), part=MASK, note="a mask (B, H, T_q, T_k)"),
        Case((*make(2, 6, 3), draw.mask(6, 5, 7)), part=MASK, note="a mask (H, T_q, T_k)"),
        Case((*make(2, 6, 3), draw.mask(1, 6, 1, 7)), part=MASK, note="a mask (1, H, 1, T_k)"),
        Case((*make(2, 6, 3), draw.mask(7)), part=MASK, note="a mask (T_k,)"),
        Case((*make(2, 6, 3, queries=7, keys=5), draw.mask(7, 5)), part=MASK, note=MORE_QUERIES),
        low_and_high_scores(),
        Case((*make(2, 6, 3, FLOAT64, d_k=4), draw.mask(5, 7)), part=MASK, gradient=True),
        Case((*make(2, 6, 3), blind_in_one_head(draw, 2, 6, 5, 7)), part=NOTHING, note=BLIND_IN_ONE),
        Case((*make(2, 6, 3), empty(7)), part=NOTHING, note="a mask (B, 1, 1, T_k), sentence 1 of length 0"),
        Case((*make(2, 6, 3, FLOAT64, d_k=4), blind(draw, 5, 7)), part=NOTHING, gradient=True),
        Case(make(2, 6, 3), part=VIEW, via="on_views", note="Q, K and V as split_heads returns them: views"),
        Case(make(1, 6, 3, keys=70), part=ONE_SENTENCE),
        Case(make(2, 6, 3, queries=1, keys=1), part=ONE_SENTENCE),
        Case(make(1, 1, 1, queries=1, keys=1, d_k=1), part=ONE_SENTENCE, note=ALL_ONE),
        scores_of_0(),
    ]


grouped_query_attention = Exercise(
    "grouped_query_attention",
    cases_grouped_query_attention,
    axes=("query", "channel"),
    forbidden=("attention",),
    instead="use your own attention.",
    apart=(MASK, NOTHING, LARGE),
).with_mistakes("""
    groups_in_turn: the groups assigned in turn, so that head h uses group h % G
        K = K.repeat_interleave(group, dim=1) -> K = K.repeat(1, group, 1, 1)
        V = V.repeat_interleave(group, dim=1) -> V = V.repeat(1, group, 1, 1)
        Neighboring heads use the same group. With 6 heads and 3 groups, heads 0 and 1 use group 0.
    groups_of_G: head h uses group h // G
        K = K.repeat_interleave(group, dim=1) -> own = torch.arange(Q.shape[1]) // K.shape[1]; K = K[:, own]
        V = V.repeat_interleave(group, dim=1) -> V = V[:, own]
        How many heads use one group? With 8 heads and 2 groups, which group does head 7 use in your code?
    values_in_turn: keys of one group, values of another
        V = V.repeat_interleave(group, dim=1) -> V = V.repeat(1, group, 1, 1)
        The keys and values of a head must come from the same group.
    keys_in_turn: values of one group, keys of another
        K = K.repeat_interleave(group, dim=1) -> K = K.repeat(1, group, 1, 1)
        The keys and values of a head must come from the same group.
    tokens_repeated: the keys repeated token by token, and then split into heads
        K = K.repeat_interleave(group, dim=1)
        -> shape = *Q.shape[:2], *K.shape[2:]; K = K.repeat_interleave(group, dim=2).reshape(shape)
        V = V.repeat_interleave(group, dim=1) -> V = V.repeat_interleave(group, dim=2).reshape(shape)
        Keys and values are (B, G, T_k, d_k). Which of the four axes should become longer?
    outputs_in_turn: the right heads in the wrong order
        attention(Q, K, V, mask)[0] -> attention(Q, K, V, mask)[0].unflatten(1, (-1, group)).transpose(1, 2).flatten(1, 2)
        Query head h belongs at index h of the output. At which index is your head 1?
    queries_added: the queries of a group summed
        attention(Q, K, V, mask)[0]
        -> attention(Q.unflatten(1, (-1, group)).sum(dim=2).repeat_interleave(group, dim=1), K, V, mask)[0]
        Each of the H heads keeps its own query and its own output.
    softmax_over_queries: the softmax taken over the queries
        return attention(Q, K, V, mask)[0]
        -> weights = torch.softmax(Q @ K.mT / Q.shape[-1] ** 0.5, dim=-2)
        |    return weights @ V if mask is None else torch.where(mask, weights, 0.0) @ V
        The weights of each query sum to 1 over the keys. Along which axis are the keys?
    divided_by_the_width: the scores divided by the width of a head instead of its square root
        attention(Q, K, V, mask) -> attention(Q / Q.shape[-1] ** 0.5, K, V, mask)
        Which divisor keeps the standard deviation of the scores at 1 (lesson 4)?
    first_group_only: the first group for every head
        K = K.repeat_interleave(group, dim=1) -> K = K[:, :1]
        V = V.repeat_interleave(group, dim=1) -> V = V[:, :1]
        There are G groups, but you use only one.
    groups_averaged: the average of the groups for every head
        K = K.repeat_interleave(group, dim=1) -> K = K.mean(dim=1, keepdim=True)
        V = V.repeat_interleave(group, dim=1) -> V = V.mean(dim=1, keepdim=True)
        Each head uses one group, and not an average of all.
    queries_in_turn: the queries assigned to the groups in turn, and their outputs left in that order
        attention(Q, K, V, mask)[0]
        -> attention(Q.unflatten(1, (group, -1)).transpose(1, 2).flatten(1, 2), K, V, mask)[0]
        Query head h belongs at index h of the output. Which group does each query use in your code?
    output_averaged: one output for each group instead of one for each head
        attention(Q, K, V, mask)[0] -> attention(Q, K, V, mask)[0].unflatten(1, (-1, group)).mean(dim=2)
        There are H query heads, so the output has H heads as well.
    queries_averaged: the queries of a group averaged
        attention(Q, K, V, mask)[0]
        -> attention(Q.unflatten(1, (-1, group)).mean(dim=2).repeat_interleave(group, dim=1), K, V, mask)[0]
        Each of the H heads keeps its own query and its own output.
    not_scaled: the scores were not scaled
        attention(Q, K, V, mask) -> attention(Q * Q.shape[-1] ** 0.5, K, V, mask)
        Which divisor keeps the standard deviation of the scores at 1 (lesson 4)?
    scaled_by_model_width: scaled by the width of the model
        attention(Q, K, V, mask) -> attention(Q / Q.shape[1] ** 0.5, K, V, mask)
        How many products are summed in one score of one head?
    not_low_enough: a constant added to masked scores, or replacing them, that isn't low enough for large scores
        return attention(Q, K, V, mask)[0]
        -> seen = torch.tensor(True) if mask is None else mask
        |    scores = Q @ K.transpose(-2, -1) / Q.shape[-1] ** 0.5
        |    weights = torch.softmax(scores - 10000.0 * ~seen, dim=-1)
        |    return torch.where(seen, weights, 0.0) @ V
        What does your constant make of a masked score of 9998, and is that far below visible scores of -9998?
    minus_20000_added: 20000 subtracted from the masked scores, and their weights set to 0
        return attention(Q, K, V, mask)[0]
        -> seen = torch.tensor(True) if mask is None else mask
        |    scores = Q @ K.transpose(-2, -1) / Q.shape[-1] ** 0.5
        |    weights = torch.softmax(scores - 20000.0 * ~seen, dim=-1)
        |    return torch.where(seen, weights, 0.0) @ V
        What does this make of a masked score of 9998, and is that far below visible scores of -9998?
    blind_rows_even: equal weights in fully masked rows
        return attention(Q, K, V, mask)[0]
        -> seen = torch.tensor(True) if mask is None else mask
        |    scores = Q @ K.transpose(-2, -1) / Q.shape[-1] ** 0.5
        |    weights = torch.softmax(scores.masked_fill(~seen, -1e9), dim=-1)
        |    return weights @ V
        If all scores are equally low, softmax gives equal weights. A fully masked query should get zeros.
    minus_10000_filled: a fill value of -10000, and masked weights set to 0
        return attention(Q, K, V, mask)[0]
        -> seen = torch.tensor(True) if mask is None else mask
        |    scores = Q @ K.transpose(-2, -1) / Q.shape[-1] ** 0.5
        |    weights = torch.softmax(scores.masked_fill(~seen, -10000.0), dim=-1)
        |    return torch.where(seen, weights, 0.0) @ V
        Visible scores may be -10000 as well. How much weight do the masked keys take from them?
    minus_10000_left: a fill value of -10000 and nothing else
        return attention(Q, K, V, mask)[0]
        -> seen = torch.tensor(True) if mask is None else mask
        |    scores = Q @ K.transpose(-2, -1) / Q.shape[-1] ** 0.5
        |    weights = torch.softmax(scores.masked_fill(~seen, -10000.0), dim=-1)
        |    return weights @ V
        Consider a fully masked row, and a row whose visible scores are all near -10000. What do they give?
    mask_ignored: the mask is not used
        attention(Q, K, V, mask) -> attention(Q, K, V)
        Where does your code use the fourth argument?
    mask_inverted: the mask inverted, so that visible tokens are masked
        attention(Q, K, V, mask) -> attention(Q, K, V, None if mask is None else ~mask)
        True means that the query may attend to the key.
    masked_after_softmax: the mask applied after the softmax
        attention(Q, K, V, mask)[0] -> attention(Q, K, V)[1] * (True if mask is None else mask) @ V
        Sum a row of your weights. The weight of the masked keys is missing.
    nan_rows_left: NaN in fully masked rows
        return attention(Q, K, V, mask)[0]
        -> heads, weights = attention(Q, K, V, mask)
        |    return heads / (weights.sum(dim=-1, keepdim=True) > 0)
        Your attention of lesson 7 handles such rows, so call it here.
    weights_returned_too: the weights returned as well
        attention(Q, K, V, mask)[0] -> attention(Q, K, V, mask)
        Return one tensor, the output.
""")


def cases_head_importance(draw):
    def case(B, T, D, num_heads, part="values", dtype=torch.float32, view="importance_alone"):
        args = (D, num_heads, attention_state(draw, D, dtype), draw.normal(B, T, D, dtype=dtype))
        heads = "1 head" if num_heads == 1 else f"{num_heads} heads"
        note = f"mha of width {D} and {heads}, x of shape {(B, T, D)}"
        return Case(args, part=part, via="importance", view=view, note=note)

    return [
        case(2, 5, 12, 4),
        case(3, 4, 10, 5),
        case(2, 5, 12, 4, part=DTYPE, dtype=FLOAT64),
        case(1, 1, 12, 3, part=ONE_SENTENCE),
        case(2, 5, 12, 1, part=ONE_HEAD),
        case(2, 5, 7, 7, part=NARROW),
        case(2, 5, 12, 4, part="mha is left as it was", view="left_as_it_was"),
    ]


head_importance = Exercise(
    "head_importance", cases_head_importance, axes=("head",), weights={"mha is left as it was": 3}
).with_mistakes("""
    rows_zeroed: rows of W_o zeroed instead of columns
        without.W_o.weight[:, own] = 0 -> without.W_o.weight[own] = 0
        W_o is (out, in), and a head is part of its input.
    output_slice_zeroed: the head's slice zeroed after W_o
        without.W_o.weight[:, own] = 0 -> without.W_o.weight[own] = 0; without.W_o.bias[own] = 0
        After W_o a head is spread over all channels. Where does it still have its own channels?
    left_alone: the change without all the other heads
        without.W_o.weight[:, own] = 0
        -> kept = without.W_o.weight[:, own].clone(); without.W_o.weight.zero_(); without.W_o.weight[:, own] = kept
        Set one head to zero and keep the others.
    norm_without_head: the norm of the output without the head instead of the change
        (out - without(x)[0]).norm() -> without(x)[0].norm()
        Compare it with the full output.
    difference_of_norms: the difference of two norms
        (out - without(x)[0]).norm() -> (out.norm() - without(x)[0].norm()).abs()
        Subtract the outputs first, and then take the norm.
    bias_removed_too: the bias of W_o counted with the head
        without.W_o.weight[:, own] = 0 -> without.W_o.weight[:, own] = 0; without.W_o.bias.zero_()
        b_O belongs to no head: it is no part of what a head changes.
    weights_alone: the size of the head's columns of W_o
        (out - without(x)[0]).norm() -> mha.W_o.weight[:, own].norm()
        The size of the weights isn't enough, because the head's output depends on x.
    value_bias_left: the head's values zero, but not their bias
        without.W_o.weight[:, own] = 0 -> without.W_v.weight[own] = 0
        W_v has a bias as well, and it still contributes to the head's output.
    every_Hth_column: every H-th channel used as a head
        without.W_o.weight[:, own] = 0 -> without.W_o.weight[:, h :: mha.num_heads] = 0
        Head 0 has the first D/H channels, which are consecutive.
    squared: the square of the norm
        (out - without(x)[0]).norm() -> (out - without(x)[0]).pow(2).sum()
        The Frobenius norm ends with a square root.
    mean_over_batch: a norm for each sentence, averaged
        (out - without(x)[0]).norm() -> (out - without(x)[0]).norm(dim=(1, 2)).mean()
        Take one norm over all B · T · D entries.
    summed_over_tokens: a norm for each token, summed
        (out - without(x)[0]).norm() -> (out - without(x)[0]).norm(dim=-1).sum()
        Take one norm over all B · T · D entries. The square root comes last.
    mean_over_tokens: a norm for each token, averaged
        (out - without(x)[0]).norm() -> (out - without(x)[0]).norm(dim=-1).mean()
        Take one norm over all B · T · D entries.
    before_W_o: the size of the head before W_o
        (out - without(x)[0]).norm() -> (mha(x)[1] @ split_heads(mha.W_v(x), mha.num_heads))[:, h].norm()
        Measure the head's contribution after W_o.
    weight_replaced: a Parameter of mha replaced by a new one
        without = copy.deepcopy(mha) -> without, kept = mha, mha.W_o.weight
        without.W_o.weight[:, own] = 0 -> without.W_o.weight = torch.nn.Parameter(kept.clone()); without.W_o.weight[:, own] = 0
        changes.append((out - without(x)[0]).norm())
        -> changes.append((out - without(x)[0]).norm())
        |            mha.W_o.weight = torch.nn.Parameter(kept.clone())
        The numbers are back, in a new parameter. An optimizer was made before, with the old one. Which one does it
        move?
    heads_pile_up: heads that stay zero while the next ones are tried
        changes = [] -> changes, without = [], copy.deepcopy(mha)
        without = copy.deepcopy(mha) -> pass
        When you measure head 2, heads 0 and 1 are still zero in your code. Restore them first.
    heads_stay_dead: heads that stay zero, because they are never restored, or restored from zeros
        without = copy.deepcopy(mha) -> without = mha
        Put back what you took, or take it from a copy. Has yours numbers of its own? A slice, .data and copy.copy share
        them with mha.
    mean_of_sizes: the mean of the absolute changes
        (out - without(x)[0]).norm() -> (out - without(x)[0]).abs().mean()
        The Frobenius norm doesn't average or take absolute values. What does it do to each entry first?
    root_mean_square: the mean of the squares instead of their sum
        (out - without(x)[0]).norm() -> (out - without(x)[0]).pow(2).mean().sqrt()
        Over a longer sentence a norm grows. Does yours?
    mean_square: the mean of the squares
        (out - without(x)[0]).norm() -> (out - without(x)[0]).pow(2).mean()
        The Frobenius norm sums the squares. What comes last?
    sum_of_sizes: the sum of the absolute changes
        (out - without(x)[0]).norm() -> (out - without(x)[0]).abs().sum()
        This is another norm. What does the Frobenius norm do to each entry first?
    largest_change: the largest of all changes
        (out - without(x)[0]).norm() -> (out - without(x)[0]).abs().max()
        All B · T · D entries count, and not only the largest.
    queries_zeroed: the head's queries or keys zeroed instead of its output
        without.W_o.weight[:, own] = 0 -> without.W_q.weight[own] = 0; without.W_q.bias[own] = 0
        A head with zero queries still averages the values. Set its output to zero instead.
    queries_zeroed_but_for_the_bias: the head's queries or keys zeroed instead of its output
        without.W_o.weight[:, own] = 0 -> without.W_q.weight[own] = 0
        A head with zero queries still averages the values. Set its output to zero instead.
""")

exercises = [
    split_heads,
    merge_heads,
    MultiHeadAttention,
    load_from_torch,
    fixed_heads,
    grouped_query_attention,
    head_importance,
]

quizzes = listed_quizzes("""
    quiz_1: c
        a: Without a mask heads don't see the order. If you shuffle the words, every head's output is shuffled in the
           same way.
        b: W_o works on each token separately. It can't know in which row a token is.
        c: Nothing in this encoder depends on positions. A head can attend to the previous word if position vectors or
           RoPE tell it where that is. (A causal mask also contains some information, but an encoder has none.)
    quiz_2: b
        a: The heads attend as before, because W_o comes after the weights are computed.
        b: Without W_o each head writes only into its own D/H channels. W_o lets every head write into all channels, so
           that heads can add to or cancel each other.
        c: The merged heads have width D already, and W_o doesn't change that.
""")
