"""Answer key of lesson 9: layer norm, feed-forward, the encoder block and the encoder."""

import dataclasses
import functools

import torch

from helpers.checking.vocabulary import (
    DTYPE,
    GRADIENT,
    LEADING,
    VALUES,
    Case,
    Exercise,
    Stub,
    listed_quizzes,
    tensor_cases,
)

MASK = "masks"
ACTIVATION = "any activation"
PRE_NORM = "norm_first=True"
AGAIN = "called twice, in training mode"
TRANSPOSED = "an input that was transposed, and does not lie in memory as view needs it"
ELSEWHERE = "inputs that were transposed"
BUILT = "a module built by keywords, and another one with ReLU built after it"
EXACT = 1e-10  # tolerance in float64 if no constant is rounded
NORMS = ("layer_norm", "rms_norm", "batch_norm", "group_norm", "instance_norm")


def cases_layer_norm(draw):
    def make(dtype, *lead):  # each row has its own mean and standard deviation
        x = draw.normal(*lead, 5, 6, dtype=dtype) * draw.uniform(*lead, 5, 1, low=2.0, high=4.0, dtype=dtype)
        return x + draw.normal(*lead, 5, 1, dtype=dtype), draw.normal(6, dtype=dtype), draw.normal(6, dtype=dtype)

    def scaled(factor, dtype=torch.float32, offset=0.0):
        x, gamma, beta = make(dtype)
        return x * factor + offset, gamma, beta

    def sized(case, x):
        note = case.note or f"x of shape {tuple(x.shape)}, gamma and beta of shape ({x.shape[-1]},)"
        # Only the parts for eps may depend on eps, whatever numbers are drawn.
        near = 1e-4 if case.part in (VALUES, LEADING) else case.tolerance
        return dataclasses.replace(case, note=note, tolerance=near)

    single = draw.normal(300), draw.normal(300), draw.normal(300)
    flat = torch.tensor([2.0, -3.0, 0.0], dtype=torch.float64)[:, None].expand(3, 6).clone()
    flat = flat, draw.normal(6, dtype=torch.float64), draw.normal(6, dtype=torch.float64)
    narrow = tuple(draw.normal(*shape, dtype=torch.float64) for shape in ((3, 1), (1,), (1,)))
    cases = [
        *tensor_cases(make, leads=((), (3,), (2, 3), (1,), (2, 1))),
        Case((3 * draw.normal(6, 6), draw.normal(6), draw.normal(6)), note="as many tokens as channels: 6"),
        Case(single, part=LEADING, note="a single vector"),
        Case(make(torch.float32, 3), part=LEADING, via="on_views", note=TRANSPOSED),
        Case(make(torch.float64, 2, 3), part=GRADIENT, gradient=True),
        Case(make(torch.float32), {"eps": 0.5}, part="another eps", note="eps = 0.5"),
        Case((*make(torch.float64), 0.25), part="another eps", gradient=True, note="eps = 0.25"),
        Case(scaled(1e-3), part="tiny values", note="values around 0.001"),
        Case(scaled(1e-6, torch.float64), {"eps": 1e-12}, part="tiny values", note="values around 1e-6, eps 1e-12"),
        Case(scaled(1e4), part="huge values", note="values around 10,000"),
        Case(  # the variance as a difference of means loses digits here, which is allowed
            scaled(1.0, torch.float64, 1e4),
            part="huge values",
            note="values around 10,000 that differ by 1",
            tolerance=1e-5,
        ),
        Case(scaled(1.0, offset=1e3), part="huge values", note="values around 1,000 that differ by 1", tolerance=1e-3),
        Case(flat, part="rows of equal entries", gradient=True),
        Case(narrow, part="D = 1", gradient=True),
    ]
    cases.append(Case(make(torch.float64, 2), part=DTYPE, tolerance=EXACT))  # shows computations in float32
    return [sized(case, case.args[0]) for case in cases]


layer_norm = Exercise(
    "layer_norm",
    cases_layer_norm,
    axes=("token", "channel"),
    forbidden=NORMS,
    instead="build it from means and squares.",
).with_mistakes("""
    sample_variance: divided by the number of channels minus one
        x.var(dim=-1, correction=0, keepdim=True) -> x.var(dim=-1, keepdim=True)
        The formula divides by the number of channels. By what does yours, and what happens with a single channel?
    sample_deviation_and_eps_outside: the deviation divided by one channel less, and eps added to it
        (variance + eps) ** 0.5 -> (x.std(dim=-1, keepdim=True) + eps)
        A well-known blog post has both. What does the formula divide by, and where is eps in it?
    eps_outside: eps was added after the square root
        (variance + eps) ** 0.5 -> (variance**0.5 + eps)
        Rows with tiny values tell the two apart. Read the formula again: what is under the square root?
    eps_beside_the_deviation: eps was added after the square root
        (variance + eps) ** 0.5 -> (x.std(dim=-1, correction=0, keepdim=True) + eps)
        Rows with tiny values tell the two apart. Read the formula again: what is under the square root?
    eps_forgotten: no eps at all
        (variance + eps) ** 0.5 -> variance**0.5
        What does your answer return for a row of equal entries?
    eps_fixed: eps is always 0.00001
        variance + eps -> variance + 1e-5
        The caller may pass another eps. Where does your code use it?
    divided_by_variance: divided by the variance, not by its square root
        (variance + eps) ** 0.5 -> (variance + eps)
        In which unit is a variance when x is in meters?
    square_of_mean: the mean of the squares minus the square of the mean
        x.var(dim=-1, correction=0, keepdim=True) -> x.pow(2).mean(dim=-1, keepdim=True) - mean.pow(2)
        On paper that is the variance. Far from 0 it is the difference of two huge values, and few digits are left.
    root_mean_square: RMS norm, that is, divided by the root of the mean square
        (x - mean) / (variance + eps) ** 0.5 -> x / (x.pow(2).mean(dim=-1, keepdim=True) + eps) ** 0.5
        Many models use that norm. Which of the steps asked for here does it skip?
    everything: one mean and one variance for the whole batch
        x.mean(dim=-1, keepdim=True) -> x.mean()
        x.var(dim=-1, correction=0, keepdim=True) -> x.var(correction=0)
        Then every word depends on all the others, those of other sentences too. How many means does a sentence of 5 words have?
    over_tokens: the mean of each channel over the tokens
        x.mean(dim=-1, -> x.mean(dim=-2,
        x.var(dim=-1, -> x.var(dim=-2,
        Each token is normalized by itself. Which axis holds the channels of one token?
    beta_multiplied: beta is multiplied by gamma as well
        gamma * normal + beta -> gamma * (normal + beta)
        Read the last of the four formulas again. What does γ multiply?
    gamma_forgotten: gamma is not used
        gamma * normal -> normal
        Which of the four arguments does not occur in your code?
""")


def network_state(draw, D, F, dtype, prefix=""):
    return {
        f"{prefix}up.weight": draw.normal(F, D, dtype=dtype, scale=1.5 * D**-0.5),
        f"{prefix}up.bias": draw.normal(F, dtype=dtype),
        f"{prefix}down.weight": draw.normal(D, F, dtype=dtype, scale=F**-0.5),
        f"{prefix}down.bias": draw.normal(D, dtype=dtype),
    }


def called_twice(init, state, *calls, note="one module called twice", **options):
    options = {"part": AGAIN, "via": "module_called_again", "note": note} | options
    return Case((init, state, *calls), {"training": True}, **options)


def cases_feed_forward(draw):
    def case(B, T, D, F, *rest, dtype=torch.float32, via="module", **options):
        init = {"d_model": D, "d_ff": F} if via == "module_by_keywords" else (D, F)
        state = network_state(draw, D, F, dtype)
        if via == "module_by_keywords" and rest:
            init["activation"] = rest[0]
        elif via == "module":
            init = (D, F, *rest)
        return Case((init, state, (draw.normal(B, T, D, dtype=dtype),), {}), via=via, **options)

    float64 = torch.float64
    once, again = ((draw.normal(2, 5, 6),) for _ in range(2))
    return [
        case(3, 5, 6, 10),
        case(2, 4, 7, 3, note="a network that is narrower inside"),
        case(1, 17, 6, 10, part="a batch of one"),
        case(3, 1, 6, 10, part="a single token"),
        case(3, 5, 6, 10, via="on_views", part=ELSEWHERE, note=TRANSPOSED),
        called_twice((6, 10), network_state(draw, 6, 10, torch.float32), once, again),
        case(3, 5, 6, 10, dtype=float64, part=DTYPE, tolerance=EXACT),
        case(2, 5, 6, 10, dtype=float64, part=GRADIENT, gradient=True),
        case(3, 5, 6, 10, Stub("activation", ("gelu",)), part=ACTIVATION, note="activation: F.gelu"),
        case(3, 5, 6, 10, Stub("activation", ("tanh",)), part=ACTIVATION, note="activation: torch.tanh"),
        case(2, 5, 6, 10, Stub("activation", ("square",)), part=ACTIVATION, note="activation: torch.square"),
        case(3, 5, 6, 10, Stub("activation", ("gelu",)), via="module_by_keywords", part=ACTIVATION, note=BUILT),
    ]


FeedForward = Exercise(
    "FeedForward",
    cases_feed_forward,
    axes=("token", "channel"),
    forbidden=("transformer",),
    instead="use two linear layers.",
).with_mistakes("""
    no_activation: no activation between the two layers
        self.activation(self.up(x)) -> self.up(x)
        Two linear layers in a row are one linear layer. What keeps them apart?
    always_relu: always ReLU, whatever activation was given
        self.activation(self.up(x)) -> F.relu(self.up(x))
        The caller may pass another activation. Where does your code use it?
    activation_last: the activation comes after the second layer
        self.activation(self.up(x)) -> self.up(x)
        self.down(hidden) -> self.activation(self.down(hidden))
        The activation belongs between the two layers, where the vector is widest.
    activation_twice: an activation after the second layer too
        self.down(hidden) -> self.activation(self.down(hidden))
        With ReLU at the end the output is never negative. Where does the formula apply it?
    activation_first: the activation comes before the first layer
        self.activation(self.up(x)) -> self.up(self.activation(x))
        ReLU would delete the negative entries of x itself. Where does the formula apply it?
    with_residual: the input was added to the output
        self.down(hidden) -> x + self.down(hidden)
        The residual connection belongs to the block, in the next exercise.
    with_norm: the input was normalized
        self.up(x) -> self.up(F.layer_norm(x, x.shape[-1:]))
        The norms belong to the block. This network takes x as it is.
    gelu_by_default: GELU where no activation was given
        activation=F.relu -> activation=F.gelu
        BERT and GPT-2 do that. Which default does the signature promise?
""")


def block_state(draw, D, F, dtype, prefix=""):
    state = {}
    for name in ("W_q", "W_k", "W_v", "W_o"):
        state[f"{prefix}attention.{name}.weight"] = draw.normal(D, D, dtype=dtype, scale=1.5 * D**-0.5)
        state[f"{prefix}attention.{name}.bias"] = draw.normal(D, dtype=dtype, scale=0.5)
    state |= network_state(draw, D, F, dtype, f"{prefix}feed_forward.")
    for name in ("norm1", "norm2"):
        state[f"{prefix}{name}.weight"] = draw.uniform(D, low=0.5, high=1.5, dtype=dtype)
        state[f"{prefix}{name}.bias"] = draw.normal(D, dtype=dtype)
    return state


CAUSAL = ("causal",)


def cases_encoder_block(draw):
    @functools.cache
    def weights(D=6, F=10, dtype=torch.float32):
        return block_state(draw, D, F, dtype)

    def case(B, T, mask=None, order=(), dtype=torch.float32, D=6, H=2, F=10, named=False, **options):
        x = draw.normal(B, T, D, dtype=dtype) * draw.uniform(B, T, 1, low=0.5, high=2.0, dtype=dtype) + 0.5
        call = ((x,), {} if mask is None else {"mask": mask}) if named or mask is None else ((x, mask), {})
        return Case(
            ((D, H, F, *order), weights(D, F, dtype), *call),
            **{"via": "module", "tolerance": tolerance(dtype)} | options,
        )

    def by_keyword(T, part=ACTIVATION, note="", **given):
        init = {"d_model": 6, "num_heads": 3, "d_ff": 10, **given}
        args = (init, weights(), (draw.normal(2, T, 6),), {})
        return Case(args, via="module_by_keywords", part=part, tolerance=tolerance(torch.float32), note=note)

    float64, before, after = torch.float64, (True,), (False,)
    gelu, tanh = Stub("activation", ("gelu",)), Stub("activation", ("tanh",))
    nothing, no_words = draw.mask(5, 5), draw.mask(2, 1, 1, 5)
    nothing[draw.integer(1, 4)] = False
    no_words[1] = False

    def again(*order, **options):
        x = draw.normal(2, 5, 6)
        calls = (x, draw.mask(5, 5)), (x.flip(1),)
        return called_twice((6, 2, 10, *order), weights(), *calls, tolerance=tolerance(torch.float32), **options)

    def masked(B, T, *shape, note):  # for both orders of the norm
        kept = torch.ones(T, T, dtype=torch.bool).tril() if shape == CAUSAL else draw.mask(*shape)
        pre = case(B, T, kept, order=before, part=PRE_NORM, note=f"norm_first=True, {note}")
        return case(B, T, kept, part=MASK, note=note), pre

    return [
        case(3, 5),
        case(2, 4, D=12, H=3, F=7, note="three heads of width 4"),
        case(3, 5, draw.mask(5, 5), named=True, part=MASK),  # before the part norm_first=True, which also has masks
        case(3, 5, order=before, part=PRE_NORM, note="norm_first=True"),
        case(2, 4, order=before, D=12, H=3, F=7, part=PRE_NORM, note="norm_first=True, three heads of width 4"),
        case(1, 17, part="a batch of one"),
        case(3, 1, part="a single token"),
        case(2, 1, order=before, part=PRE_NORM, note="norm_first=True, a single token"),
        case(3, 5, via="on_views", part=ELSEWHERE, note=TRANSPOSED),
        again(),
        again(True, part=PRE_NORM, note="norm_first=True, one module called twice in training mode"),
        case(3, 5, dtype=float64, part=DTYPE),
        case(3, 5, dtype=float64, order=before, part=PRE_NORM, tolerance=EXACT),
        case(2, 5, dtype=float64, part=GRADIENT, gradient=True),
        case(2, 5, dtype=float64, order=before, part=PRE_NORM, gradient=True),
        *masked(1, 5, 5, 5, note="a batch of one with a mask (T, T)"),
        *masked(4, 4, *CAUSAL, note="a causal mask for as many sentences as tokens"),
        *masked(2, 5, 2, 5, 5, note="a mask (H, T, T)"),
        *masked(3, 5, 3, 2, 5, 5, note="a mask for each head"),
        case(2, 17, draw.mask(2, 1, 1, 17), part=MASK, note="padding, (B, 1, 1, T), of 17 tokens"),
        case(2, 5, nothing, dtype=float64, part="rows with nothing to see", gradient=True),
        case(2, 5, no_words, order=before, part=PRE_NORM, note="norm_first=True, a sentence of padding alone"),
        case(3, 5, order=(*after, gelu), part=ACTIVATION, note="activation: F.gelu"),
        case(3, 5, order=(*before, tanh), part=PRE_NORM, note="norm_first=True, activation: torch.tanh"),
        by_keyword(5, PRE_NORM, norm_first=True, activation=gelu, note=f"norm_first=True, {BUILT}"),
        by_keyword(4, activation=tanh, note=BUILT),
    ]


def tolerance(dtype):
    """Allows any order of summation in float32 over several layers."""
    return 4e-5 if dtype == torch.float32 else None


PRE_1, PRE_2 = "x = x + self.attention(self.norm1(x), mask=mask)[0]", "return x + self.feed_forward(self.norm2(x))"
POST_1, POST_2 = "x = self.norm1(x + self.attention(x, mask=mask)[0])", "return self.norm2(x + self.feed_forward(x))"
EncoderBlock = Exercise(
    "EncoderBlock",
    cases_encoder_block,
    axes=("token", "channel"),
    forbidden=("transformer",),
    instead="build it from your attention, your FeedForward and two norms.",
    weights={PRE_NORM: 5, MASK: 8},
    apart=(PRE_NORM,),
).with_mistakes(f"""
    residual_normalized: with norm_first the residual is taken from the normalized x
        {PRE_1} -> x = self.norm1(x)
        |            x = x + self.attention(x, mask=mask)[0]
        {PRE_2} -> x = self.norm2(x)
        |            return x + self.feed_forward(x)
        The residual stream itself should not be normalized. What is added to the sublayer's output in yours?
    no_residual: no residual connections
        {PRE_1} -> x = self.attention(self.norm1(x), mask=mask)[0]
        {PRE_2} -> return self.feed_forward(self.norm2(x))
        {POST_1} -> x = self.norm1(self.attention(x, mask=mask)[0])
        {POST_2} -> return self.norm2(self.feed_forward(x))
        If both sublayers returned zeros, what would be left of x?
    first_residual_dropped: no residual around attention
        {PRE_1} -> x = self.attention(self.norm1(x), mask=mask)[0]
        {POST_1} -> x = self.norm1(self.attention(x, mask=mask)[0])
        There has to be one around each sublayer. Check the first.
    second_residual_dropped: no residual around the feed-forward network
        {PRE_2} -> return self.feed_forward(self.norm2(x))
        {POST_2} -> return self.norm2(self.feed_forward(x))
        There has to be one around each sublayer. Check the second.
    norm_inside: in post-norm the residual was added after the norm
        {POST_1} -> x = x + self.norm1(self.attention(x, mask=mask)[0])
        {POST_2} -> return x + self.norm2(self.feed_forward(x))
        The box of the paper is called Add & Norm. In which order?
    norm_behind_the_sublayer: with norm_first the norm comes after the sublayer, before the sum
        {PRE_1} -> x = x + self.norm1(self.attention(x, mask=mask)[0])
        {PRE_2} -> return x + self.norm2(self.feed_forward(x))
        Pre-norm: what is normalized there, the sublayer's input or its output?
    always_post: norm_first changes nothing: always post-norm
        if self.norm_first: -> if False:
        Build the block with norm_first=True. Which line of your code depends on it?
    always_pre: pre-norm where post-norm is asked for
        if self.norm_first: -> if True:
        The default is the order of the paper. Where is the norm in that order?
    no_norm: no layer norms
        {PRE_1} -> x = x + self.attention(x, mask=mask)[0]
        {PRE_2} -> return x + self.feed_forward(x)
        {POST_1} -> x = x + self.attention(x, mask=mask)[0]
        {POST_2} -> return x + self.feed_forward(x)
        There are two norms, and each order uses both of them. Where?
    one_norm_twice: norm1 is used twice
        self.norm2(x)) -> self.norm1(x))
        return self.norm2(x + -> return self.norm1(x +
        Each sublayer has a norm with parameters of its own.
    norm_on_top: with norm_first another norm at the end
        {PRE_2} -> return self.norm2(x + self.feed_forward(self.norm2(x)))
        In pre-norm the block does not normalize its output. A final norm comes once, after the last block.
    second_from_the_start: the second residual is the block's input
        if self.norm_first: -> start = x
        |        if self.norm_first:
        {PRE_2} -> return start + self.feed_forward(self.norm2(x))
        {POST_2} -> return self.norm2(start + self.feed_forward(x))
        The second residual connection starts after attention's output was added. Which x do you add at the end?
    feed_forward_of_the_start: with norm_first the feed-forward network gets the block's input
        if self.norm_first: -> start = x
        |        if self.norm_first:
        {PRE_2} -> return x + self.feed_forward(self.norm2(start))
        Each sublayer reads what the previous one has added. Which x does norm2 get in your code?
    mask_ignored: the mask does not reach attention
        self.norm1(x), mask=mask) -> self.norm1(x))
        self.attention(x, mask=mask) -> self.attention(x)
        Attention needs to know which keys are padding. Which of your calls gets the mask?
    mask_as_key: calls with a mask raise an error
        self.norm1(x), mask=mask) -> self.norm1(x), mask)
        self.attention(x, mask=mask) -> self.attention(x, mask)
        The second argument of attention is the key. How can you pass the mask by name?
    mask_inverted: the mask was read the other way round
        if self.norm_first: -> mask = None if mask is None else ~mask
        |        if self.norm_first:
        In this course True means may attend. nn.TransformerEncoderLayer means the opposite.
    activation_ignored: the activation does not reach the feed-forward network
        FeedForward(d_model, d_ff, activation) -> FeedForward(d_model, d_ff)
        The block gets an activation when it is built. Which part should use it?
""")

V, D, H, F, L, LONGEST = 9, 6, 2, 10, 3, 70


def encoder_state(draw, layers, dtype):
    state = {"tokens.weight": draw.normal(V, D, dtype=dtype), "positions.weight": draw.normal(LONGEST, D, dtype=dtype)}
    for layer in range(layers):
        state |= block_state(draw, D, F, dtype, f"blocks.{layer}.")
    return state


def cases_encoder(draw):
    @functools.cache
    def weights(layers, dtype=torch.float32):
        return encoder_state(draw, layers, dtype)

    def case(B, T, mask=None, named=False, layers=L, dtype=torch.float32, **options):
        ids = draw.integers(0, V, (B, T))
        if options.get("gradient"):
            ids[0, 0] = 0  # an ordinary id, whose row padding_idx would exclude from training
        call = ((ids,), {"mask": mask}) if named else ((ids,) if mask is None else (ids, mask), {})
        args = ((V, D, H, F, layers, LONGEST), weights(layers, dtype), *call)
        return Case(args, **{"via": "module", "tolerance": tolerance(dtype)} | options)

    float64, no_words = torch.float64, draw.mask(2, 1, 1, 5)
    no_words[1] = False
    ids = draw.integers(0, V, (2, 5))
    return [
        case(3, 5),
        case(3, 4, layers=1, note="one layer"),
        called_twice(
            (V, D, H, F, 1, LONGEST),
            weights(1),
            (ids[:, :1],),
            (ids, draw.mask(5, 5)),
            ((ids + 1) % V,),
            (ids[:, :3],),
            tolerance=tolerance(torch.float32),
            note="one module called with a single token, with a mask, without one, and with three tokens after five",
        ),
        case(1, 5, part="a batch of one"),
        case(2, 1, part="a single token"),
        case(2, 5, layers=1, via="on_views", part=ELSEWHERE, note=TRANSPOSED),
        case(2, LONGEST, part="the longest sentence"),
        case(2, 5, dtype=float64, layers=2, part=DTYPE),
        case(2, 5, dtype=float64, layers=2, part=GRADIENT, gradient=True),
        case(4, 4, draw.mask(4, 4), part=MASK, note="a mask (T, T) for as many sentences as tokens"),
        case(1, 5, draw.mask(5, 5), layers=1, part=MASK, note="a batch of one with a mask (T, T)"),
        case(2, 5, draw.mask(2, 5, 5), layers=1, part=MASK, note="a mask (H, T, T)"),
        case(2, 5, draw.mask(2, 2, 5, 5), layers=2, part=MASK, note="a mask for each head"),
        case(2, 5, no_words, layers=1, part=MASK, note="padding, and a sentence of nothing else"),
        case(2, 70, draw.mask(2, 1, 1, 70), named=True, part=MASK, note="padding, (B, 1, 1, T), of 70 tokens"),
    ]


Encoder = Exercise(
    "Encoder",
    cases_encoder,
    axes=("token", "channel"),
    forbidden=("transformer",),
    instead="stack your own blocks.",
    weights={MASK: 15},
).with_mistakes("""
    no_positions: the position vectors are missing
        self.tokens(ids) + self.positions(positions) -> self.tokens(ids)
        Attention alone can't see the order of words (lesson 2). Where do you add the position vectors?
    positions_of_ids: the positions were looked up by the ids of the words
        self.positions(positions) -> self.positions(ids)
        A position says where in the sentence a word is, not which word it is.
    positions_all_0: every word got the same position
        torch.arange(ids.shape[1], device=ids.device) -> torch.zeros_like(ids[0])
        Exchange two words: does anything in your sum change?
    positions_of_sentences: positions counted along the batch axis
        torch.arange(ids.shape[1], -> torch.arange(ids.shape[0],
        Which axis of ids counts the words of a sentence?
    positions_from_one: positions counted from 1
        torch.arange(ids.shape[1], -> torch.arange(1, 1 + ids.shape[1],
        Which row of the table does the first word get, and what happens with a sentence of max_len words?
    words_scaled: the word vectors were multiplied by the square root of the width
        self.tokens(ids) + -> self.tokens(ids) * self.tokens.embedding_dim**0.5 +
        The paper does that, because its embeddings are initialized smaller. This exercise adds the vectors as they are.
    mask_not_passed: the mask does not reach the blocks
        block(x, mask) -> block(x)
        Every block computes attention. Which of them knows what is padding?
    own_padding_mask: id 0 is masked as padding where no mask is given
        x = self.tokens(ids) -> mask = (ids != 0)[:, None, None, :] if mask is None else mask
        |        x = self.tokens(ids)
        The caller passes the mask. Which id does your code take for padding, and why that one?
    mask_inverted: the mask was inverted
        block(x, mask) -> block(x, None if mask is None else ~mask)
        True means may attend, in your encoder and in its blocks.
    one_block: only the first block is used
        for block in self.blocks: -> for block in self.blocks[:1]:
        How many blocks are in the list, and how many does x pass through?
    last_block_only: every block gets the embeddings, and only the last result counts
        for block in self.blocks: -> words = x
        |        for block in self.blocks:
        block(x, mask) -> block(words, mask)
        What is the input of the second block: the embeddings, or the output of the first?
    blocks_without_effect: the outputs of the blocks are not used
        x = block(x, mask) -> block(x, mask)
        Each block returns a new tensor. What does your loop do with it?
    block_unpacked: the output of a block was unpacked as if it were a pair
        x = block(x, mask) -> x, _ = block(x, mask)
        MultiHeadAttention returns a pair. What does an EncoderBlock return?
    residual_around_blocks: the input of each block was added to its output
        x = block(x, mask) -> x = x + block(x, mask)
        A block has its residual connections inside. What does x become from block to block?
    norm_at_the_end: a norm after the last block
        return x -> return F.layer_norm(x, x.shape[-1:])
        Post-norm blocks end with a norm of their own. Does the exercise ask for one more?
    pre_norm: pre-norm blocks
        d_ff, **options) -> d_ff, True)
        The default of your EncoderBlock is the order of the paper. Which one do you build here?
    row_0_never_learns: padding_idx in the embedding of the words
        nn.Embedding(vocab_size, d_model) -> nn.Embedding(vocab_size, d_model, padding_idx=0)
        Nothing says that id 0 is padding, and with padding_idx its row gets no gradient. The mask takes care of padding.
""")


PASSING = "parts that return the tensor that they get"


def cases_fixed_block(draw):
    phase = draw.integer(1, 9) / 10
    parts = Stub("averaging", (phase,)), *(Stub("activation", (name,)) for name in ("gelu", "tanh", "square"))

    def x(*shape, dtype=torch.float32):
        return draw.normal(*shape, dtype=dtype) * 2

    float64 = torch.float64
    return [
        Case((x(3, 5, 6), *parts)),
        Case((x(2, 4, 7), *parts)),
        Case((x(1, 17, 6), *parts), part="a batch of one"),
        Case((x(3, 1, 6), *parts), part="a single token"),
        Case((x(3, 5, 6, dtype=float64), *parts), part=DTYPE, tolerance=EXACT),
        Case((x(3, 5, 6, dtype=float64), *parts), part=GRADIENT, gradient=True),
        Case((x(5, 5, 6), *parts, draw.mask(5, 5)), part=MASK),
        Case((x(2, 5, 6), *parts, draw.mask(2, 5, 5)), part=MASK, note="a mask (H, T, T)"),
        Case((x(1, 5, 6), *parts), {"mask": torch.ones(5, 5, dtype=torch.bool).tril()}, part=MASK),
        Case((x(2, 5, 6), Stub("passing_on"), *[Stub("activation", ("none",))] * 3), part=PASSING),
    ]


fixed_block = Exercise("fixed_block", cases_fixed_block, axes=("token", "channel")).with_mistakes("""
    published: still the version with the bug: both residuals are taken from the normalized x
        x = x + out -> x = norm1(x) + out
        return x + feed_forward(norm2(x)) -> return norm2(x) + feed_forward(norm2(x))
        If both sublayers return zeros, does x come out unchanged?
    first_half: the second residual is fixed, the first is still taken from the normalized x
        x = x + out -> x = norm1(x) + out
        The bug occurs twice, and you found one of the two.
    second_half: the first residual is fixed, the second is still taken from the normalized x
        return x + feed_forward(norm2(x)) -> return norm2(x) + feed_forward(norm2(x))
        The bug occurs twice, and you found one of the two.
    post_norm: post-norm: a fix, but in the other order
        attention(norm1(x), mask=mask) -> attention(x, mask=mask)
        x = x + out -> x = norm1(x + out)
        return x + feed_forward(norm2(x)) -> x = x + feed_forward(x)
        |    return norm2(x)
        In pre-norm a sublayer gets a normalized input, and nothing is normalized after the addition.
    norms_dropped: the norms are gone
        attention(norm1(x), mask=mask) -> attention(x, mask=mask)
        feed_forward(norm2(x)) -> feed_forward(x)
        The norms were not the mistake. What should the input of a sublayer be?
    residuals_dropped: the residuals are gone
        x = x + out -> x = out
        return x + feed_forward(norm2(x)) -> return feed_forward(norm2(x))
        There has to be a residual connection around each sublayer. Only the tensor that it adds was wrong.
    second_from_the_start: the second residual is the block's input
        x = x + out -> start, x = x, x + out
        return x + feed -> return start + feed
        The second residual connection starts after attention's output was added. Which x do you add at the end?
    feed_forward_of_the_start: the feed-forward network gets the block's input
        x = x + out -> start, x = x, x + out
        feed_forward(norm2(x)) -> feed_forward(norm2(start))
        Each sublayer reads what the previous one has added. Which x does norm2 get in your code?
    second_residual_dropped: the feed-forward network replaces x instead of adding to it
        return x + feed_forward(norm2(x)) -> return feed_forward(norm2(x))
        There has to be a residual connection around each sublayer. Check the second.
    norm_behind_the_sublayer: the norm between the sublayer and the sum
        attention(norm1(x), mask=mask) -> attention(x, mask=mask)
        x = x + out -> x = x + norm1(out)
        feed_forward(norm2(x)) -> norm2(feed_forward(x))
        In pre-norm it is what the sublayer reads that is normalized.
    norm_on_top: another norm at the end
        return x + feed_forward(norm2(x)) -> return norm2(x + feed_forward(norm2(x)))
        In pre-norm nothing is normalized after the addition.
    second_norm_dropped: the feed-forward network gets x without its norm
        feed_forward(norm2(x)) -> feed_forward(x)
        Both sublayers get a normalized input. Does the second one?
    mask_ignored: the mask is not passed on
        attention(norm1(x), mask=mask) -> attention(norm1(x))
        The version with the bug passes it. Does yours?
""")


def cases_block_macs(draw):
    def sizes():
        T, d_model, d_ff = draw.integer(2, 90), draw.integer(91, 300), draw.integer(301, 999)
        return T, d_model, d_ff

    return [
        *(Case(sizes()) for _ in range(4)),
        Case((draw.integer(2000, 9000), 64, 100), note="a long text"),
        Case((1, draw.integer(5, 99), draw.integer(100, 999)), part="a single token"),
    ]


block_macs = Exercise(
    "block_macs", cases_block_macs, forbidden=("transformer",), instead="count the products of the eight matrices."
).with_mistakes("""
    three_projections: three projections instead of four
        4 * T * d_model**2 -> 3 * T * d_model**2
        Queries, keys and values need three. What happens to the heads once they are concatenated?
    one_projection: one projection instead of four
        4 * T * d_model**2 -> T * d_model**2
        Queries, keys and values each have a matrix. What happens to the heads once they are concatenated?
    scores_only: one of the two products inside attention is missing
        2 * T**2 * d_model -> T**2 * d_model
        The scores are one product. What happens to the weights after the softmax?
    one_layer_of_two: one of the feed-forward network's two layers is missing
        2 * T * d_model * d_ff -> T * d_model * d_ff
        The network has two layers, `up` and `down`. Count both.
    additions_counted_too: multiplications and additions counted separately, twice as many as asked for
        projections + attention + feed_forward -> 2 * (projections + attention + feed_forward)
        A multiply-accumulate counts once: a product that is added to a sum.
    no_attention: attention's own two products are missing
        projections + attention + feed_forward -> projections + feed_forward
        The layers with parameters are all there. Which products have no parameters in them?
    width_forgotten: the products inside attention without the width of the model
        2 * T**2 * d_model -> 2 * T**2
        T² scores: how many products are added up in each of them?
    attention_as_projections: T times the width squared for each product inside attention too
        2 * T**2 * d_model -> 2 * T * d_model**2
        Write the shapes of Q and of K transposed. Which size occurs twice among n, m and p?
    half_for_a_mask: only the half below the diagonal counted
        2 * T**2 * d_model -> T * (T + 1) * d_model
        An encoder has no causal mask. (With one, our attention still computes the whole product before it masks.)
    parameters_counted: parameters instead of MACs
        4 * T * d_model**2 -> 4 * d_model**2
        2 * T * d_model * d_ff -> 2 * d_model * d_ff
        Every token passes through these layers. How many times is one weight used?
    four_times_d_model: the feed-forward network is always four times as wide as the model
        2 * T * d_model * d_ff -> 8 * T * d_model**2
        That is the usual size, not the only one. Which argument says how wide it is?
    biases_counted: the biases are counted too
        projections + attention + feed_forward -> projections + attention + feed_forward + T * (5 * d_model + d_ff)
        Adding a bias multiplies nothing. Only the matrix products count.
""")


def cases_token_influence(draw):
    def case(T, D, width, dtype=torch.float32, **options):
        args = (Stub("looking_around", (width,)), draw.normal(T, D, dtype=dtype))
        return Case(args, **{"tolerance": influence(dtype)} | options)

    convolution = Stub("mixed_rows", (draw.normal(6, 6).tril(1).triu(-1), 3)), draw.normal(6, 4)
    layer = Stub("linear", (draw.normal(6, 4), draw.normal(6))), draw.normal(5, 4)
    near = influence(torch.float32)
    return [
        case(5, 4, 3, note="an attention layer"),
        Case(convolution, note="a convolution", tolerance=near),
        case(5, 3, 7, note="an attention layer with a wider output"),
        case(5, 4, 3, dtype=torch.float64, part=DTYPE),
        Case(layer, part="a function of each token alone", note="an nn.Linear", tolerance=near),
        case(5, 4, 1, part="one output channel"),
        case(1, 4, 3, part="a single token"),
        case(4, 3, 2, via="influence_on_x", part="an x that requires a gradient"),
    ]


def influence(dtype):
    return 3e-5 if dtype == torch.float32 else None


token_influence = Exercise(
    "token_influence", cases_token_influence, axes=("output token", "input token")
).with_mistakes("""
    gradient_of_a_sum: the gradient of the sum of each row's outputs
        jacobian.pow(2).sum(dim=(1, 3)).sqrt() -> jacobian.sum(dim=1).pow(2).sum(dim=-1).sqrt()
        Channels that move in opposite directions cancel in a sum. The norm is over all pairs of channels.
    sizes_of_a_summed_gradient: the absolute values of the gradient of the sum of each row's outputs, added up
        jacobian.pow(2).sum(dim=(1, 3)).sqrt() -> jacobian.sum(dim=1).abs().sum(dim=-1)
        Channels that move in opposite directions cancel in a sum. The norm squares each entry of a block first.
    lengths_added_up: one norm per output channel, and these were added
        jacobian.pow(2).sum(dim=(1, 3)).sqrt() -> jacobian.norm(dim=3).sum(dim=1)
        The Frobenius norm takes one square root, at the end. How many do you take per block?
    signs_cancel: the entries of each block added up with their signs
        jacobian.pow(2).sum(dim=(1, 3)).sqrt() -> jacobian.sum(dim=(1, 3)).abs()
        Entries of opposite signs cancel in a sum. What does the norm do to each entry first?
    transposed: rows and columns exchanged
        sum(dim=(1, 3)).sqrt() -> sum(dim=(1, 3)).sqrt().T
        Row i belongs to an output. Check with a causal function: which corner should be empty?
    squared: the squares of the norms
        sum(dim=(1, 3)).sqrt() -> sum(dim=(1, 3))
        Double f, and an influence doubles. What does yours do?
    sum_of_sizes: the sum of the absolute entries
        jacobian.pow(2).sum(dim=(1, 3)).sqrt() -> jacobian.abs().sum(dim=(1, 3))
        That is a norm too, but not the Frobenius norm. What does that one do to each entry first?
    largest_entry: the largest entry of each block
        jacobian.pow(2).sum(dim=(1, 3)).sqrt() -> jacobian.abs().amax(dim=(1, 3))
        All entries of a block count, not only its largest.
    averaged: a mean over the block where a sum belongs
        sum(dim=(1, 3)).sqrt() -> mean(dim=(1, 3)).sqrt()
        A block with twice as many entries of the same size has a larger norm.
    reshaped: the Jacobian reshaped to (T, T, ...) without an axis moved
        jacobian.pow(2).sum(dim=(1, 3)).sqrt() -> jacobian.reshape(len(x), len(x), -1).norm(dim=-1)
        Its axes are output word, output channel, input word, input channel. What does your second axis count?
""")


exercises = [layer_norm, FeedForward, EncoderBlock, fixed_block, Encoder, block_macs, token_influence]
quizzes = listed_quizzes("""
    quiz_1: d
        a: With its weights fixed, attention is linear in the values: every output is an average of rows, multiplied by
           matrices.
        b: The norm subtracts one mean from all channels of a token and divides them by one standard deviation. Both
           depend on the token, so a norm is not linear, but it applies no nonlinear function to a single channel.
        c: A residual connection adds the input to the output, which is linear.
        d: The activation between its two layers is applied to every hidden channel of every token. Without it, and with
           fixed attention weights, the block consists of linear maps, averages and norms.
    quiz_2: b
        a: In pre-norm the residual stream itself is never normalized, because its norms are on the branches. In
           post-norm, where it is normalized often, each norm scales down what came in.
        b: In pre-norm the blocks only add to the residual stream. The output is the input plus 2L contributions, and
           the gradient has a path to the bottom that consists of additions.
        c: Its sublayers do receive activations of the same size, mean 0 and standard deviation 1. But what they add
           goes into different residual streams: one is normalized again at every step, the other never.
""")
