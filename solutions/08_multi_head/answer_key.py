"""Cases and known mistakes of lesson 8: splitting and merging heads, multi-head attention, and its variants."""

import functools

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
LARGE = "scores up to ±10⁴"
MORE_QUERIES = "more queries than keys"
VIEW = "tensors that are views of others"
TRANSPOSED = "inputs that are views of others, transposed"
PARTS = ("W_q", "W_k", "W_v", "W_o", "num_heads")
FLOAT64 = torch.float64
SMALL = (ONE_HEAD, NARROW, ONE_SENTENCE, VALUE_ALONE, VIEW)


def cases_split_heads(draw):
    def refused(D, num_heads):
        return Case((draw.normal(2, 5, D), num_heads), part=DIVISIBLE, raises=Raises("ValueError"))

    return [
        Case((draw.normal(3, 5, 24), 4)),
        Case((draw.normal(2, 17, 6), 3)),
        Case((draw.normal(4, 4, 16), 4), note="as many heads as tokens, sentences and channels of a head"),
        Case(((draw.normal(2, 5, 6), 3), (draw.normal(2, 5, 6), 3)), via="called_again", note=ONE_AFTER_THE_OTHER),
        Case((draw.normal(3, 5, 24, dtype=FLOAT64), 4), part=DTYPE),
        Case((draw.normal(2, 5, 12, dtype=FLOAT64), 3), part=GRADIENT, gradient=True),
        Case((draw.normal(1, 5, 24), 4), part=ONE_SENTENCE),
        Case((draw.normal(3, 1, 24), 4), part=ONE_SENTENCE),
        Case((draw.normal(1, 1, 6), 2), part=ONE_SENTENCE),
        Case((draw.normal(3, 5, 7), 1), part=ONE_HEAD),
        Case((draw.normal(3, 5, 7), 7), part=NARROW),
        Case((draw.normal(3, 5, 24), 4), part=VIEW, via="on_views", note=TRANSPOSED),
        refused(10, 4),
        refused(6, 12),
    ]


split_heads = Exercise("split_heads", cases_split_heads, axes=("token", "channel of the head")).with_mistakes("""
    cut_without_moving: the entries split in memory order, so that tokens and heads are mixed
        .view(B, T, num_heads, D // num_heads).transpose(1, 2) -> .reshape(B, num_heads, T, D // num_heads)
        The shape is right, but the rows are not. From which token does row 1 of head 0 come?
    dealt_like_cards: channels given to the heads in turn
        .view(B, T, num_heads, D // num_heads).transpose(1, 2)
        -> .reshape(B, T, D // num_heads, num_heads).permute(0, 3, 1, 2)
        Head 0 has the first D/H channels, which are consecutive.
    heads_behind_tokens: the head axis left after the token axis
        .transpose(1, 2) ->
        Attention works on the last two axes. Which two axes should those be?
    folded_into_the_batch: batch and heads merged into one axis
        .transpose(1, 2) -> .transpose(1, 2).reshape(B * num_heads, T, D // num_heads)
        The result has four axes, one of them for the heads.
    count_and_width_exchanged: num_heads used as the width of a head
        .view(B, T, num_heads, D // num_heads) -> .reshape(B, T, D // num_heads, num_heads)
        How many heads are there, and how wide is each?
    no_check: no ValueError if num_heads does not divide the width
        if D % num_heads: -> if False:
        With 10 channels and 4 heads your code should raise a ValueError itself.
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
    not_glued: heads moved, but still a separate axis
        .reshape(B, T, H * d_head) ->
        The result has three axes. Which two become one?
    channels_for_heads: head axis and channel axis swapped
        x.transpose(1, 2) -> x.transpose(1, 3)
        The head axis should be next to the channel axis. Which axis between them has to move?
""")


CAUSAL = torch.ones(5, 5, dtype=torch.bool).tril()


def padded(*lengths):
    """A padding mask (B, 1, 1, T) for sentences of these lengths. The first sentence has no padding."""
    return (torch.arange(lengths[0]) < torch.tensor(lengths)[:, None])[:, None, None]


def empty(T):
    """A padding mask (2, 1, 1, T) for a sentence without padding and an empty one."""
    return torch.tensor([True, False])[:, None, None, None].repeat(1, 1, 1, T)


def blind(draw, queries=5, keys=5):
    """A mask with one fully masked row."""
    mask = draw.mask(queries, keys)
    mask[draw.integer(1, queries - 1)] = False
    return mask


def attention_state(draw, D, dtype=torch.float32, scale=1.5, bias=0.7):
    """A state dictionary for W_q, W_k, W_v and W_o with biases."""
    state = {}
    for name in ("W_q", "W_k", "W_v", "W_o"):
        state[f"{name}.weight"] = draw.normal(D, D, dtype=dtype, scale=scale * D**-0.5)
        state[f"{name}.bias"] = draw.normal(D, dtype=dtype, scale=bias)
    return state


def cases_multi_head_attention(draw):
    @functools.cache
    def state(D, dtype=torch.float32):
        return attention_state(draw, D, dtype)

    def case(num_heads, *inputs, part="values", gradient=False, note="", via="module", **kwargs):
        D, dtype = inputs[0].shape[-1], inputs[0].dtype
        args = ((D, num_heads), state(D, dtype), inputs, kwargs)
        return Case(args, part=part, gradient=gradient, via=via, note=note)

    def x(*shape, dtype=torch.float32):
        return draw.normal(*shape, dtype=dtype)

    def y(*shape, dtype=torch.float32):
        return draw.normal(*shape, 8, dtype=dtype)

    cross, values = "key given: cross-attention", "key and value given"
    return [
        case(4, y(2, 5)),
        case(3, x(2, 7, 12)),
        case(4, x(4, 4, 16), note="as many heads as tokens, sentences and channels of a head"),
        case(4, y(2, 5, dtype=FLOAT64), part=DTYPE),
        case(2, y(2, 5, dtype=FLOAT64), part=GRADIENT, gradient=True),
        case(4, y(2, 5), y(2, 7), part=cross),
        case(4, y(2, 7), part=cross, key=y(2, 5), note=MORE_QUERIES),
        case(4, y(2, 5), y(2, 5), part=cross, note="as many keys as queries"),
        case(2, y(2, 5, dtype=FLOAT64), y(2, 7, dtype=FLOAT64), part=cross, gradient=True),
        case(4, y(2, 5), y(2, 7), y(2, 7), part=values),
        case(4, y(2, 5), part=values, value=y(2, 7), key=y(2, 7)),
        case(4, y(2, 5), part=VALUE_ALONE, value=y(2, 5), note="a value and no key"),
        case(2, *(y(2, n, dtype=FLOAT64) for n in (5, 7, 7)), part=values, gradient=True),
        case(4, y(2, 5), part=MASK, mask=draw.mask(5, 5)),
        case(4, y(2, 5), None, None, draw.mask(5, 5), part=MASK),
        case(4, y(5, 5), part=MASK, mask=CAUSAL, note="as many sentences as tokens, and a causal mask"),
        case(4, y(2, 5), y(2, 7), y(2, 7), draw.mask(5, 7), part=MASK),
        case(2, y(2, 5, dtype=FLOAT64), part=MASK, mask=draw.mask(5, 5), gradient=True),
        case(4, y(2, 5), y(2, 17), part=BROADCAST, mask=draw.mask(2, 1, 1, 17), note="a padding mask (B, 1, 1, T_k)"),
        case(4, y(2, 6), part=BROADCAST, mask=padded(6, 4), note="a padding mask (B, 1, 1, T), and no key"),
        case(4, y(2, 5), y(2, 7), part=BROADCAST, mask=draw.mask(7), note="a mask (T_k,)"),
        case(4, y(2, 5), y(2, 7), part=BROADCAST, mask=draw.mask(2, 4, 5, 7), note="a mask (B, H, T_q, T_k)"),
        case(4, y(2, 5), y(2, 7), part=BROADCAST, mask=draw.mask(2, 1, 5, 7), note="a mask (B, 1, T_q, T_k)"),
        case(4, y(4, 5), part=BROADCAST, mask=draw.mask(4, 5, 5), note="as many sentences as heads, a mask (H, T, T)"),
        case(4, y(2, 5), part=NOTHING, mask=blind(draw)),
        case(4, y(2, 5), y(2, 7), part=NOTHING, mask=blind(draw, 5, 7), note="a key given, and a fully masked row"),
        case(2, y(2, 5, dtype=FLOAT64), part=NOTHING, mask=blind(draw), gradient=True),
        case(4, y(2, 5), part=NOTHING, mask=torch.tensor([True, False])[:, None, None, None]),
        case(4, y(1, 5), part=NOTHING, mask=empty(5)[1:], note="one sentence, all of it padding"),
        case(1, y(2, 5), part=ONE_HEAD),
        case(4, y(2, 5), y(2, 7), y(2, 7), part=VIEW, via="on_views", note=TRANSPOSED),
        case(7, x(3, 5, 7), part=NARROW),
        case(1, y(1, 17), part=ONE_SENTENCE),
        case(4, y(1, 5), part=BROADCAST, mask=draw.mask(1, 4, 5, 5), note="one sentence, and a mask (1, H, T, T)"),
        case(4, y(2, 1), part=ONE_SENTENCE),
        case(4, y(2, 1), y(2, 7), part=ONE_SENTENCE),
        Case(
            (
                (8, 4),
                state(8),
                (y(2, 5), None, None, draw.mask(5, 5)),
                (y(2, 5),),
                (y(2, 5), y(2, 7), y(2, 7), draw.mask(5, 7)),
            ),
            {"training": True},
            part=AGAIN,
            via="module_called_again",
            note="one module called three times in training mode: with a mask, on other numbers without one, and with "
            "a key, a value and a mask",
        ),
        case(4, y(2, 5, dtype=FLOAT64) * 60, part=LARGE, mask=padded(5, 1)),
        Case(((24, 4), PARTS), part="layers, and num_heads kept", via="parts_made"),
        Case(((10, 4), ()), part=DIVISIBLE, via="parts_made", raises=Raises("ValueError")),
        Case(((6, 12), ()), part=DIVISIBLE, via="parts_made", raises=Raises("ValueError")),
    ]


RUN = "attention(Q, K, V, mask)"
SPLIT_Q = "split_heads(self.W_q(query), self.num_heads)"
MultiHeadAttention = Exercise(
    "MultiHeadAttention",
    cases_multi_head_attention,
    axes=("token", "channel"),
    forbidden=("attention",),
    instead="use your own attention of lesson 7.",
    weights={MASK: 16, "layers, and num_heads kept": 1, DIVISIBLE: 1} | dict.fromkeys(SMALL, 1),
    apart=(MASK, VALUE_ALONE, BROADCAST, NOTHING, LARGE, AGAIN, DIVISIBLE),
    time_limit=8.0,
).with_mistakes(f"""
    scaled_by_model_width: scaled by the width of the model
        {RUN} -> attention(Q / self.num_heads**0.5, K, V, mask)
        How many products are summed in one score of one head?
    divided_by_the_width: the scores divided by the width of a head (or by its square root twice)
        {RUN} -> attention(Q / Q.shape[-1] ** 0.5, K, V, mask)
        Which divisor keeps the standard deviation of a head's scores at 1 (lesson 4)?
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
    memory_order: split and merged without moving an axis
        {SPLIT_Q} -> self.W_q(query).view(len(query), self.num_heads, query.shape[1], -1)
        split_heads(self.W_k(key), self.num_heads) -> self.W_k(key).view(len(key), self.num_heads, key.shape[1], -1)
        split_heads(self.W_v(value), self.num_heads)
        -> self.W_v(value).view(len(value), self.num_heads, value.shape[1], -1)
        merge_heads(heads) -> heads.reshape(query.shape)
        Both shapes are right, but a head gets parts of several tokens. Which axis has to move before and after attention?
    mask_ignored: the mask is not used
        {RUN} -> attention(Q, K, V)
        forward takes a mask. Where does it go from there?
    mask_inverted: the mask inverted, so that visible tokens are masked
        {RUN} -> attention(Q, K, V, None if mask is None else ~mask)
        True means that the query may attend to the key.
    axis_for_masks: an axis added to every mask
        {RUN} -> attention(Q, K, V, mask if mask is None else mask[:, None])
        Masks broadcast from the right. With which axes of the scores does a mask (T_q, T_k) line up?
    blind_rows_even: equal weights in fully masked rows
        {RUN} -> (w := torch.softmax(
        |            (Q @ K.transpose(-2, -1) / Q.shape[-1] ** 0.5).masked_fill(~mask if mask is not None else torch.tensor(False), -1e9),
        |            dim=-1)) @ V, w
        If all scores are equally low, softmax gives equal weights. A fully masked query should get zeros.
    weights_averaged: the weights averaged over the heads
        return self.W_o(merge_heads(heads)), weights -> return self.W_o(merge_heads(heads)), weights.mean(dim=1)
        Each head has its own weights, so the result has four axes.
    key_ignored: the query used as key and value, whatever is given
        key = query if key is None else key -> key = query
        value = key if value is None else value -> value = query
        forward takes key and value separately, so that one sentence can attend to another.
    value_ignored: the key used as the value, whatever is given
        value = key if value is None else value -> value = key
        Keys and values may come from different inputs.
    value_is_query: the query used as the value although a key is given
        value = key if value is None else value -> value = query if value is None else value
        Without a value the key is the value.
    values_by_W_k: the values projected with W_k
        self.W_v(value) -> self.W_k(value)
        One of the four layers is never used.
    residual_inside: the query added to the output
        return self.W_o(merge_heads(heads)), weights -> return query + self.W_o(merge_heads(heads)), weights
        The residual connection follows in lesson 9, around this module.
    no_check: no ValueError if num_heads does not divide the width
        if d_model % num_heads: -> if False:
        With 10 channels and 4 heads, raise the error in __init__, and not in forward.
    not_scaled: the scores are not scaled
        {RUN} -> attention(Q * Q.shape[-1] ** 0.5, K, V, mask)
        By what does lesson 4 divide the scores of one head?
    softmax_over_queries: softmax over the queries
        {RUN} -> (w := torch.softmax(Q @ K.transpose(-2, -1) / Q.shape[-1] ** 0.5, dim=-2)) @ V, w
        The weights of each query sum to 1. Which axis do the keys have?
    mask_added: the boolean mask added to the scores
        {RUN} -> (w := torch.softmax(
        |            Q @ K.transpose(-2, -1) / Q.shape[-1] ** 0.5 + (0 if mask is None else mask), dim=-1)) @ V, w
        True counts as 1 in a sum, so a hidden key still gets a weight. Which score has the weight 0 after softmax?
""")


IN_PLACE = "copied in place, no memory shared"


def cases_load_from_torch(draw):
    def case(D, num_heads, part="values", dtype=torch.float32, bias=0.0, what="numbers", note=""):
        state = {
            "in_proj_weight": draw.normal(3 * D, D, dtype=dtype),
            "in_proj_bias": draw.normal(3 * D, dtype=dtype, scale=bias),
            "out_proj.weight": draw.normal(D, D, dtype=dtype),
            "out_proj.bias": draw.normal(D, dtype=dtype, scale=bias),
        }
        args = (D, num_heads, state, attention_state(draw, D, dtype))
        return Case(args, {"what": what}, part=part, via="transplanted", note=note)

    return [
        case(6, 2, note="biases of zero, as nn.MultiheadAttention starts"),
        case(12, 3, bias=1.0, part="random biases", note="width 12, 3 heads"),
        case(5, 1, bias=1.0, part="random biases", note="width 5, 1 head"),
        case(6, 2, bias=1.0, dtype=FLOAT64, part=DTYPE, note="float64 weights in both"),
        case(6, 2, bias=1.0, part=IN_PLACE, what="apart", note="width 6, 2 heads"),
        case(6, 3, bias=1.0, part="theirs is left as it was", what="theirs", note="width 6, 3 heads"),
    ]


COPIES = "theirs.in_proj_weight.chunk(3)"
load_from_torch = Exercise(
    "load_from_torch", cases_load_from_torch, weights={"random biases": 4, IN_PLACE: 2, "theirs is left as it was": 1}
).with_mistakes(f"""
    queries_and_keys_exchanged: queries and keys swapped
        (mine.W_q, mine.W_k, mine.W_v, mine.W_o) -> (mine.W_k, mine.W_q, mine.W_v, mine.W_o)
        In which order are the three stacked in in_proj_weight?
    keys_and_values_exchanged: keys and values swapped
        (mine.W_q, mine.W_k, mine.W_v, mine.W_o) -> (mine.W_q, mine.W_v, mine.W_k, mine.W_o)
        In which order are the three stacked in in_proj_weight?
    first_third_for_all: the queries' weights for W_k and W_v as well
        *{COPIES} -> *[theirs.in_proj_weight.chunk(3)[0]] * 3
        *theirs.in_proj_bias.chunk(3) -> *[theirs.in_proj_bias.chunk(3)[0]] * 3
        Three matrices are stacked in in_proj_weight. Which rows do your keys get?
    transposed: matrices transposed
        layer.weight.copy_(weight) -> layer.weight.copy_(weight.T)
        Both modules store weights as (out, in), so nothing has to be transposed.
    output_forgotten: everything copied except W_o
        layer.weight.copy_(weight)
        |            layer.bias.copy_(bias) -> if layer is not mine.W_o: layer.weight.copy_(weight), layer.bias.copy_(bias)
        `theirs` has an out_proj. What is it called in your module?
    output_bias_forgotten: all but the bias of W_o copied
        layer.bias.copy_(bias) -> layer.bias.copy_(bias) if layer is not mine.W_o else None
        Their out_proj also has a bias.
    biases_forgotten: the weights without their biases
        layer.bias.copy_(bias) -> pass
        The biases start at zero in nn.MultiheadAttention, but training changes them.
    the_other_way: copied from yours into theirs
        layer.weight.copy_(weight) -> weight.copy_(layer.weight)
        layer.bias.copy_(bias) -> bias.copy_(layer.bias)
        The weights of `theirs` are the trusted ones, and those of `mine` have to change.
    shared_memory: weights that share memory with the other module
        layer.weight.copy_(weight) -> layer.weight = nn.Parameter(weight)
        layer.bias.copy_(bias) -> layer.bias = nn.Parameter(bias)
        If you train `mine` one step, `theirs` changes as well. Which method copies values?
    new_parameters: new Parameters instead of the old ones
        layer.weight.copy_(weight) -> layer.weight = nn.Parameter(weight.clone())
        layer.bias.copy_(bias) -> layer.bias = nn.Parameter(bias.clone())
        The weights are right, but an optimizer created earlier still updates the old Parameters.
""")


def cases_fixed_heads(draw):
    @functools.cache
    def weights(D, dtype):
        return [draw.normal(D, D, dtype=dtype, scale=1.5 * D**-0.5) for _ in range(4)]

    def make(B, T, D, num_heads, dtype=torch.float32):
        return draw.normal(B, T, D, dtype=dtype), *weights(D, dtype), num_heads

    return [
        Case(make(3, 5, 8, 4)),
        Case(make(2, 7, 12, 3)),
        Case(make(4, 4, 16, 4), note="as many heads as tokens, sentences and channels of a head"),
        Case(make(2, 5, 12, 3, FLOAT64), part=DTYPE),
        Case(make(2, 5, 12, 3, FLOAT64), part=GRADIENT, gradient=True),
        Case((*make(5, 5, 8, 4), CAUSAL), part=MASK, note="as many sentences as tokens, and a causal mask"),
        Case((*make(2, 5, 12, 3), draw.mask(3, 5, 5)), part=MASK, note="a mask (H, T, T)"),
        Case((*make(2, 5, 12, 3), draw.mask(5)), part=MASK, note="a mask (T,)"),
        Case(make(2, 17, 12, 3), {"mask": draw.mask(2, 1, 1, 17)}, part=MASK, note="a padding mask (B, 1, 1, T_k)"),
        Case(make(2, 5, 12, 3), {"mask": draw.mask(2, 3, 5, 5)}, part=MASK, note="a mask (B, H, T_q, T_k)"),
        Case((*make(2, 5, 12, 3), blind(draw)), part=NOTHING),
        Case((*make(2, 5, 12, 3), empty(5)), part=NOTHING, note="a mask (B, 1, 1, T), sentence 1 of length 0"),
        Case(make(3, 5, 8, 4), part=VIEW, via="on_views", note=TRANSPOSED),
        Case((*make(1, 5, 8, 4), CAUSAL), part=ONE_SENTENCE, note="one sentence, and a causal mask"),
        Case(make(3, 5, 10, 1), part=ONE_HEAD),
        Case(make(3, 5, 7, 7), part=NARROW),
        Case(make(1, 17, 8, 4), part=ONE_SENTENCE),
        Case(make(3, 1, 8, 4), part=ONE_SENTENCE),
    ]


fixed_heads = Exercise(
    "fixed_heads",
    cases_fixed_heads,
    axes=("token", "channel"),
    forbidden=("attention",),
    instead="use your own attention.",
    weights={MASK: 11},
    apart=(MASK, NOTHING),
).with_mistakes("""
    published: the original version, with its bug
        merge_heads(heads) -> heads.reshape(x.shape)
        The split moves the head axis to the front. Where is it moved back?
    dealt_like_cards: one column of each head in turn
        merge_heads(heads) -> heads.permute(0, 2, 3, 1).reshape(x.shape)
        The tokens are first again. Which head's channels should come first in a row?
    merged_last_axes: the wrong two axes swapped before merging
        merge_heads(heads) -> heads.transpose(-2, -1).reshape(x.shape)
        Swap heads and tokens, as in split_heads.
    never_moved: the head axis is never moved, so that heads attend to heads
        split_heads(x @ W_q.T, num_heads) -> (x @ W_q.T).unflatten(-1, (num_heads, -1))
        split_heads(x @ W_k.T, num_heads) -> (x @ W_k.T).unflatten(-1, (num_heads, -1))
        split_heads(x @ W_v.T, num_heads) -> (x @ W_v.T).unflatten(-1, (num_heads, -1))
        merge_heads(heads) -> heads.reshape(x.shape)
        Attention works on the last two axes. Which two axes are they in your code?
    projections_not_transposed: the matrices of queries, keys and values not transposed
        x @ W_q.T -> x @ W_q
        x @ W_k.T -> x @ W_k
        x @ W_v.T -> x @ W_v
        Weights are (out, in), so transpose these as well.
    split_spoiled: split and merged without moving an axis
        split_heads(x @ W_q.T, num_heads) -> (x @ W_q.T).reshape(len(x), num_heads, x.shape[1], -1)
        split_heads(x @ W_k.T, num_heads) -> (x @ W_k.T).reshape(len(x), num_heads, x.shape[1], -1)
        split_heads(x @ W_v.T, num_heads) -> (x @ W_v.T).reshape(len(x), num_heads, x.shape[1], -1)
        merge_heads(heads) -> heads.reshape(x.shape)
        Only the merge was wrong. Now a head also gets parts of several tokens.
    weights_not_turned: none of the four matrices transposed
        x @ W_q.T -> x @ W_q
        x @ W_k.T -> x @ W_k
        x @ W_v.T -> x @ W_v
        @ W_o.T -> @ W_o
        Weights are (out, in), so transpose them.
    W_o_transposed: W_o not transposed
        @ W_o.T -> @ W_o
        Weights are (out, in), so transpose this one as well.
    no_W_o: W_o is never used
        merge_heads(heads) @ W_o.T -> merge_heads(heads)
        Your function gets five tensors. Which of them is never used?
    divided_by_the_width: the scores divided by the width of a head instead of its square root
        attention(Q, K, V, mask) -> attention(Q / Q.shape[-1] ** 0.5, K, V, mask)
        Which divisor keeps the standard deviation of a head's scores at 1 (lesson 4)?
    mask_ignored: the mask is not used
        attention(Q, K, V, mask) -> attention(Q, K, V)
        Where does your code use the last argument?
    axis_for_masks: an axis added to every mask
        attention(Q, K, V, mask) -> attention(Q, K, V, mask if mask is None else mask.unsqueeze(1))
        Masks broadcast from the right. With which axes of the scores does a mask (H, T, T) line up?
""")


def cases_grouped_query_attention(draw):
    def make(B, H, G, dtype=torch.float32, queries=5, keys=7, d_k=3):
        return (
            draw.normal(B, H, queries, d_k, dtype=dtype, scale=1.5),
            draw.normal(B, G, keys, d_k, dtype=dtype),
            draw.normal(B, G, keys, d_k, dtype=dtype),
        )

    plain, double = make(2, 6, 3), make(2, 6, 3, FLOAT64, d_k=4)
    return [
        Case(plain),
        Case(make(3, 8, 2, d_k=6)),
        Case(make(4, 4, 2, queries=4, keys=4, d_k=4), note="as many heads as queries, keys, sentences and channels"),
        Case(double, part=DTYPE),
        Case(double, part=GRADIENT, gradient=True),
        Case(make(2, 4, 4), part="as many groups as heads"),
        Case(make(2, 4, 1, queries=7, keys=5), part="one group for all heads", note=MORE_QUERIES),
        Case((*make(5, 6, 3), draw.mask(5, 7)), part=MASK, note="as many sentences as queries, and a mask (T_q, T_k)"),
        Case(plain, {"mask": draw.mask(2, 1, 1, 7)}, part=MASK),
        Case((*plain, draw.mask(2, 6, 5, 7)), part=MASK, note="a mask (B, H, T_q, T_k)"),
        Case((*plain, draw.mask(6, 5, 7)), part=MASK, note="a mask (H, T_q, T_k)"),
        Case((*plain, draw.mask(1, 6, 1, 7)), part=MASK, note="a mask (1, H, 1, T_k)"),
        Case((*plain, draw.mask(7)), part=MASK, note="a mask (T_k,)"),
        Case((*make(2, 6, 3, queries=7, keys=5), draw.mask(7, 5)), part=MASK, note=MORE_QUERIES),
        Case((*double, draw.mask(5, 7)), part=MASK, gradient=True),
        Case((*plain, empty(7)), part=NOTHING, note="a mask (B, 1, 1, T_k), sentence 1 of length 0"),
        Case((*double, blind(draw, 5, 7)), part=NOTHING, gradient=True),
        Case(make(2, 6, 3), part=VIEW, via="on_views", note="Q, K and V as split_heads returns them: views"),
        Case(make(1, 6, 3, keys=17), part=ONE_SENTENCE),
        Case(make(2, 6, 3, queries=1, keys=1), part=ONE_SENTENCE),
    ]


grouped_query_attention = Exercise(
    "grouped_query_attention",
    cases_grouped_query_attention,
    axes=("query", "channel"),
    forbidden=("attention",),
    instead="use your own attention.",
    weights={MASK: 15},
    apart=(MASK, NOTHING),
).with_mistakes("""
    groups_in_turn: the groups assigned in turn, so that head h uses group h % G
        K = K.repeat_interleave(group, dim=1) -> K = K.repeat(1, group, 1, 1)
        V = V.repeat_interleave(group, dim=1) -> V = V.repeat(1, group, 1, 1)
        Neighboring heads use the same group. With 6 heads and 3 groups, heads 0 and 1 use group 0.
    groups_of_G: head h uses group h // G
        K = K.repeat_interleave(group, dim=1) -> own = torch.arange(Q.shape[1]) // K.shape[1]; K = K[:, own]
        V = V.repeat_interleave(group, dim=1) -> V = V[:, own]
        How many heads use one group? With 8 heads and 2 groups, which group does head 7 use in your code?
    tokens_repeated: the keys repeated token by token, and then split into heads
        K = K.repeat_interleave(group, dim=1)
        -> shape = *Q.shape[:2], *K.shape[2:]; K = K.repeat_interleave(group, dim=2).reshape(shape)
        V = V.repeat_interleave(group, dim=1) -> V = V.repeat_interleave(group, dim=2).reshape(shape)
        Keys and values are (B, G, T_k, d_k). Which of the four axes should become longer?
    queries_in_turn: the queries assigned to the groups in turn, and their outputs left in that order
        attention(Q, K, V, mask)[0]
        -> attention(Q.unflatten(1, (group, -1)).transpose(1, 2).flatten(1, 2), K, V, mask)[0]
        Query head h belongs at index h of the output. Which group does each query use in your code?
    outputs_in_turn: the right heads in the wrong order
        attention(Q, K, V, mask)[0] -> attention(Q, K, V, mask)[0].unflatten(1, (-1, group)).transpose(1, 2).flatten(1, 2)
        Query head h belongs at index h of the output. At which index is your head 1?
    queries_averaged: the queries of a group averaged
        attention(Q, K, V, mask)[0]
        -> attention(Q.unflatten(1, (-1, group)).mean(dim=2).repeat_interleave(group, dim=1), K, V, mask)[0]
        Each of the H heads keeps its own query and its own output.
    output_averaged: one output for each group instead of one for each head
        attention(Q, K, V, mask)[0] -> attention(Q, K, V, mask)[0].unflatten(1, (-1, group)).mean(dim=2)
        There are H query heads, so the output has H heads as well.
    first_group_only: the first group for every head
        K = K.repeat_interleave(group, dim=1) -> K = K[:, :1]
        V = V.repeat_interleave(group, dim=1) -> V = V[:, :1]
        There are G groups, but you use only one.
    mask_ignored: the mask is not used
        attention(Q, K, V, mask) -> attention(Q, K, V)
        Where does your code use the fourth argument?
    not_scaled: the scores are not scaled
        attention(Q, K, V, mask) -> attention(Q * Q.shape[-1] ** 0.5, K, V, mask)
        By what does lesson 4 divide the scores of one head?
    mask_added: the boolean mask added to the scores
        attention(Q, K, V, mask)[0]
        -> torch.softmax(Q @ K.transpose(-2, -1) / Q.shape[-1] ** 0.5 + (0 if mask is None else mask), dim=-1) @ V
        True counts as 1 in a sum, so a hidden key still gets a weight. Which score has the weight 0 after softmax?
""")


def cases_head_importance(draw):
    def case(B, T, D, num_heads, part="values", dtype=torch.float32, what="importance"):
        args = (D, num_heads, attention_state(draw, D, dtype), draw.normal(B, T, D, dtype=dtype))
        heads = "1 head" if num_heads == 1 else f"{num_heads} heads"
        note = f"mha of width {D} and {heads}, x of shape {(B, T, D)}"
        return Case(args, {"what": what}, part=part, via="importance", note=note)

    return [
        case(2, 5, 12, 4),
        case(3, 4, 10, 5),
        case(2, 5, 12, 4, part=DTYPE, dtype=FLOAT64),
        case(1, 1, 12, 3, part=ONE_SENTENCE),
        case(2, 5, 12, 1, part=ONE_HEAD),
        case(2, 5, 7, 7, part=NARROW),
        case(2, 5, 12, 4, part="mha is left as it was", what="mha"),
    ]


head_importance = Exercise(
    "head_importance", cases_head_importance, axes=("head",), weights={"mha is left as it was": 3}
).with_mistakes("""
    rows_zeroed: rows of W_o zeroed instead of columns
        without.W_o.weight[:, own] = 0 -> without.W_o.weight[own] = 0
        W_o is (out, in), and a head is part of its input.
    rows_of_W_o: the head's output multiplied by rows of W_o instead of columns
        (out - without(x)[0]).norm()
        -> ((mha(x)[1] @ split_heads(mha.W_v(x), mha.num_heads))[:, h] @ mha.W_o.weight[own]).norm()
        W_o is (out, in), and a head is part of its input.
    left_alone: the change without all the other heads
        without.W_o.weight[:, own] = 0
        -> kept = without.W_o.weight[:, own].clone(); without.W_o.weight.zero_(); without.W_o.weight[:, own] = kept
        Set one head to zero and keep the others.
    value_bias_left: the head's values zero, but not their bias
        without.W_o.weight[:, own] = 0 -> without.W_v.weight[own] = 0
        W_v has a bias as well, and it still contributes to the head's output.
    norm_without_head: the norm of the output without the head instead of the change
        (out - without(x)[0]).norm() -> without(x)[0].norm()
        Compare it with the full output.
    difference_of_norms: the difference of two norms
        (out - without(x)[0]).norm() -> (out.norm() - without(x)[0].norm()).abs()
        Subtract the outputs first, and then take the norm.
    squared: the square of the norm
        (out - without(x)[0]).norm() -> (out - without(x)[0]).pow(2).sum()
        The Frobenius norm ends with a square root.
    mean_over_batch: a norm for each sentence, averaged
        (out - without(x)[0]).norm() -> (out - without(x)[0]).norm(dim=(1, 2)).mean()
        Take one norm over all B · T · D entries.
    summed_over_tokens: a norm for each token, summed
        (out - without(x)[0]).norm() -> (out - without(x)[0]).norm(dim=-1).sum()
        Take one norm over all B · T · D entries. The square root comes last.
    heads_pile_up: heads that stay zero while the next ones are tried
        changes = [] -> changes, without = [], copy.deepcopy(mha)
        without = copy.deepcopy(mha) -> pass
        When you measure head 2, heads 0 and 1 are still zero in your code. Restore them first.
    heads_stay_dead: ablated heads stay zero, because their weights are not restored
        without = copy.deepcopy(mha) -> without = mha
        Restore the weights after each measurement, or ablate a copy of the module. A slice, .data and copy.copy share
        memory with mha, so use clone or copy.deepcopy.
    head_before_W_o: the norm of the head's output before W_o
        (out - without(x)[0]).norm() -> (mha(x)[1] @ split_heads(mha.W_v(x), mha.num_heads))[:, h].norm()
        W_o decides how much of a head arrives in the output. Which two outputs should be subtracted?
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
