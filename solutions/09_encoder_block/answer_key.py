"""Answer key of lesson 9: layer norm, feed-forward, the encoder block and the encoder."""

import dataclasses

import torch

from helpers.checking.vocabulary import DTYPE, GRADIENT, LEADING, Case, Exercise, Stub, listed_quizzes, tensor_cases

MASK = "masks"
ACTIVATION = "any activation"
PRE_NORM = "norm_first=True"
OPTIONS = "options, if offered, reach the blocks"
AGAIN = "called twice, in training mode"
TRANSPOSED = "an input that was transposed, and does not lie in memory as view needs it"
ELSEWHERE = "inputs that were transposed"
BUILT = "a module built by keywords, and another one with ReLU built after it"
EXACT = 1e-10  # where no constant is rounded, float64 numbers keep this much
NORMS = ("layer_norm", "rms_norm", "batch_norm", "group_norm", "instance_norm")


def cases_layer_norm(draw):
    def make(dtype, *lead):  # every row with a mean and a spread of its own
        x = draw.normal(*lead, 5, 6, dtype=dtype) * draw.uniform(*lead, 5, 1, low=0.5, high=2.0, dtype=dtype)
        return x + draw.normal(*lead, 5, 1, dtype=dtype), draw.normal(6, dtype=dtype), draw.normal(6, dtype=dtype)

    def scaled(factor, dtype=torch.float32, offset=0.0):
        x, gamma, beta = make(dtype)
        return x * factor + offset, gamma, beta

    def sized(case, x):
        return dataclasses.replace(
            case, note=case.note or f"x of shape {tuple(x.shape)}, gamma and beta of shape ({x.shape[-1]},)"
        )

    single = draw.normal(300), draw.normal(300), draw.normal(300)
    flat = torch.tensor([2.0, -3.0, 0.0], dtype=torch.float64)[:, None].expand(3, 6).clone()
    flat = flat, draw.normal(6, dtype=torch.float64), draw.normal(6, dtype=torch.float64)
    narrow = tuple(draw.normal(*shape, dtype=torch.float64) for shape in ((3, 1), (1,), (1,)))
    cases = [
        *tensor_cases(make, leads=((), (3,), (2, 3), (1,), (2, 1))),
        Case((draw.normal(6, 6), draw.normal(6), draw.normal(6)), note="as many tokens as channels: 6"),
        Case(single, part=LEADING, note="a single vector"),
        Case(make(torch.float32, 3), part=LEADING, via="on_views", note=TRANSPOSED),
        Case(make(torch.float64, 2, 3), part=GRADIENT, gradient=True),
        Case(make(torch.float32), {"eps": 0.5}, part="another eps", note="eps = 0.5"),
        Case((*make(torch.float64), 0.25), part="another eps", gradient=True, note="eps = 0.25"),
        Case(scaled(1e-3), part="tiny numbers", note="numbers around 0.001"),
        Case(scaled(1e-6, torch.float64), {"eps": 1e-12}, part="tiny numbers", note="numbers around 1e-6, eps 1e-12"),
        Case(scaled(1e4), part="huge numbers", note="numbers around 10,000"),
        Case(  # a variance from the mean of the squares loses digits here, as it may
            scaled(1.0, torch.float64, 1e4),
            part="huge numbers",
            note="numbers around 10,000 that differ by 1",
            tolerance=1e-5,
        ),
        Case(
            scaled(1.0, offset=1e3), part="huge numbers", note="numbers around 1,000 that differ by 1", tolerance=1e-3
        ),
        Case(flat, part="rows of equal numbers", gradient=True),
        Case(narrow, part="D = 1", gradient=True),
    ]
    cases.append(Case(make(torch.float64, 2), part=DTYPE, tolerance=EXACT))  # where float32 on the way shows first
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
    summed: the sum over the channels where the mean belongs
        x.mean(dim=-1, keepdim=True) -> x.sum(dim=-1, keepdim=True)
        x.var(dim=-1, correction=0, keepdim=True) -> (x - mean).pow(2).sum(dim=-1, keepdim=True)
        Both formulas begin with a fraction. By what do they divide?
    variance_summed: the squares were added up and never divided
        x.var(dim=-1, correction=0, keepdim=True) -> (x - mean).pow(2).sum(dim=-1, keepdim=True)
        The formula of the variance begins with a fraction. By what does it divide?
    eps_left_out_of_the_root: the root of eps was added to the root
        (variance + eps) ** 0.5 -> variance**0.5 + eps**0.5
        The formula has one root. How many things stand under it?
    eps_outside: eps was added after the square root
        (variance + eps) ** 0.5 -> (variance**0.5 + eps)
        Rows with tiny numbers tell the two apart. Read the formula again: what stands under the root?
    eps_beside_the_deviation: eps was added after the square root
        (variance + eps) ** 0.5 -> (x.std(dim=-1, correction=0, keepdim=True) + eps)
        Rows with tiny numbers tell the two apart. Read the formula again: what stands under the root?
    sample_deviation_and_eps_outside: the deviation divided by one channel less, and eps added to it
        (variance + eps) ** 0.5 -> (x.std(dim=-1, keepdim=True) + eps)
        Two things at once, and a well-known blog post has both: by which number do you divide, and where does eps stand?
    sample_root_and_eps_outside: the deviation divided by one channel less, and eps added to it
        (variance + eps) ** 0.5 -> (x.var(dim=-1, keepdim=True) ** 0.5 + eps)
        Two things at once, and a well-known blog post has both: by which number do you divide, and where does eps stand?
    sample_deviation_without_eps: the deviation divided by one channel less, and no eps at all
        (variance + eps) ** 0.5 -> x.std(dim=-1, keepdim=True)
        Two things at once: by which number does the formula divide, and what does yours make of a row of equal numbers?
    square_of_mean: the mean of the squares minus the square of the mean
        x.var(dim=-1, correction=0, keepdim=True) -> x.pow(2).mean(dim=-1, keepdim=True) - mean.pow(2)
        On paper that is the variance. Far from 0 it is the difference of two huge numbers, and few digits are left.
    eps_forgotten: no eps at all
        (variance + eps) ** 0.5 -> variance**0.5
        What does your answer make of a row of equal numbers?
    eps_fixed: eps is always 0.00001
        variance + eps -> variance + 1e-5
        Somebody calls layer_norm with an eps of their own. Where does it go in your code?
    divided_by_variance: divided by the variance, not by its square root
        (variance + eps) ** 0.5 -> (variance + eps)
        In which unit is a variance when x is in meters?
    not_centered: the mean was not subtracted
        (x - mean) / -> x /
        Each row of x̂, the third formula, should have mean 0. What is the mean of yours?
    root_mean_square: RMS norm: divided by the root of the mean square
        (x - mean) / (variance + eps) ** 0.5 -> x / (x.pow(2).mean(dim=-1, keepdim=True) + eps) ** 0.5
        That norm exists, and many models use it. It skips one of the steps asked for here. Which one?
    whole_sentence: one mean and one variance for the whole sentence
        x.mean(dim=-1, -> x.mean(dim=(-2, -1),
        x.var(dim=-1, -> x.var(dim=(-2, -1),
        Then every word depends on all the others. How many means does a sentence of 5 words have?
    everything: one mean and one variance for the whole batch
        x.mean(dim=-1, keepdim=True) -> x.mean()
        x.var(dim=-1, correction=0, keepdim=True) -> x.var(correction=0)
        Then every word depends on all the others, those of other sentences too. How many means does a sentence of 5 words have?
    first_axis: the mean along the first axis
        x.mean(dim=-1, -> x.mean(dim=0,
        x.var(dim=-1, -> x.var(dim=0,
        Each token is normalized by itself. Along which axis do its own numbers lie?
    over_tokens: the mean of each channel over the tokens
        x.mean(dim=-1, -> x.mean(dim=-2,
        x.var(dim=-1, -> x.var(dim=-2,
        Each token is normalized by itself. Along which axis do its own numbers lie?
    batch_norm: batch norm: each channel has its mean over all tokens of all sentences
        x.mean(dim=-1, keepdim=True) -> x.mean(dim=tuple(range(max(x.dim() - 1, 1))), keepdim=True)
        x.var(dim=-1, correction=0, keepdim=True)
        -> x.var(dim=tuple(range(max(x.dim() - 1, 1))), correction=0, keepdim=True)
        In figure 9.2 that is the third table. Whose numbers share a mean with yours?
    gamma_forgotten: gamma is not used
        gamma * normal + beta -> normal + beta
        After the norm every token has the same spread. Which parameter lets one channel be louder than another?
    beta_forgotten: beta is not used
        gamma * normal + beta -> gamma * normal
        A row of equal numbers becomes all zeros in yours. What should be left of it?
    both_forgotten: neither gamma nor beta is used
        return gamma * normal + beta -> return normal
        That is x̂, the third formula. Two parameters are still waiting.
    gamma_and_beta_exchanged: gamma and beta exchanged
        gamma * normal + beta -> beta * normal + gamma
        Which of the two multiplies?
    gamma_times_beta: beta was added before gamma was multiplied
        gamma * normal + beta -> gamma * (normal + beta)
        Which of the two comes first in the formula?
    mean_detached_too: no gradient flows through mean and variance
        x.mean(dim=-1, keepdim=True) -> x.mean(dim=-1, keepdim=True).detach()
        x.var(dim=-1, correction=0, keepdim=True) -> x.var(dim=-1, correction=0, keepdim=True).detach()
        Both depend on x, and the gradient has to know. Did you detach them, or make plain numbers of them on the way?
    statistics_detached: no gradient flows through the variance
        x.var(dim=-1, correction=0, keepdim=True) -> x.var(dim=-1, correction=0, keepdim=True).detach()
        The spread depends on x too, and the gradient has to know. Did you detach it, or make a plain number of it on
        the way?
    one_plus_gamma: 1 was added to gamma
        gamma * normal + beta -> (1 + gamma) * normal + beta
        Some models keep gamma - 1 as their parameter. What does the fourth formula multiply with?
    length_1: each row of x̂ was made of length 1
        (x - mean) / (variance + eps) ** 0.5 -> F.normalize(x - mean, dim=-1)
        How long is a row of D numbers whose mean square is 1?
    length_1_by_norm: each row of x̂ was made of length 1
        (x - mean) / (variance + eps) ** 0.5 -> (x - mean) / (x - mean).norm(dim=-1, keepdim=True)
        How long is a row of D numbers whose mean square is 1? And what becomes of a row of equal numbers?
    mean_deviation: divided by the mean absolute deviation
        (variance + eps) ** 0.5 -> ((x - mean).abs().mean(dim=-1, keepdim=True) + eps)
        The variance does something else than abs to each difference. What, and what undoes it at the end?
    axis_1: the mean along axis 1
        x.mean(dim=-1, -> x.mean(dim=1,
        x.var(dim=-1, -> x.var(dim=1,
        x may have any number of axes. What is axis 1 of (B, T, D), and what of (D,)?
    whole_sentence_but_for_one_vector: one mean and one variance for the whole sentence
        mean = x.mean(dim=-1, -> axes = (-2, -1) if x.dim() > 1 else (-1,)
        |    mean = x.mean(dim=axes,
        x.var(dim=-1, -> x.var(dim=axes,
        Then every word depends on all the others. How many means does a sentence of 5 words have?
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
        case(1, 70, 6, 10, part="a batch of one"),
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
    always_relu: always ReLU, whatever activation was asked for
        self.activation(self.up(x)) -> F.relu(self.up(x))
        Somebody builds the network with another activation. Where does it go in your code?
    activation_last: the activation comes after the second layer
        self.activation(self.up(x)) -> self.up(x)
        self.down(hidden) -> self.activation(self.down(hidden))
        The bend belongs where the vector is widest.
    activation_twice: an activation after the second layer too
        self.down(hidden) -> self.activation(self.down(hidden))
        With ReLU at the end nothing negative ever comes out. Should the output be free to go down?
    activation_first: the activation comes before the first layer
        self.activation(self.up(x)) -> self.up(self.activation(x))
        What does ReLU throw away when it meets x itself?
    with_residual: the input was added to the output
        self.down(hidden) -> x + self.down(hidden)
        That comes in the next exercise. This network knows nothing of a residual.
    with_norm: the input was normalized
        self.up(x) -> self.up(F.layer_norm(x, x.shape[-1:]))
        The norms belong to the block. This network takes x as it comes.
    gelu_by_default: GELU where nothing was asked for
        activation=F.relu -> activation=F.gelu
        BERT and GPT-2 do that. Which default does the signature promise?
    always_gelu: always GELU, whatever activation was asked for
        self.activation(self.up(x)) -> F.gelu(self.up(x))
        Somebody builds the network with another activation. Where does it go in your code?
    gated: the hidden numbers multiplied by their activation
        self.activation(self.up(x)) -> self.up(x) * self.activation(self.up(x))
        Gated networks do such a thing. What alone does the formula hand to the second layer?
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
    def case(B, T, mask=None, order=(), dtype=torch.float32, D=6, H=2, F=10, named=False, **options):
        state = block_state(draw, D, F, dtype)
        x = draw.normal(B, T, D, dtype=dtype) * draw.uniform(B, T, 1, low=0.5, high=2.0, dtype=dtype) + 0.5
        call = ((x,), {} if mask is None else {"mask": mask}) if named or mask is None else ((x, mask), {})
        return Case(((D, H, F, *order), state, *call), **{"via": "module", "tolerance": tolerance(dtype)} | options)

    def by_keyword(T, part=ACTIVATION, note="", **given):
        init = {"d_model": 6, "num_heads": 3, "d_ff": 10, **given}
        args = (init, block_state(draw, 6, 10, torch.float32), (draw.normal(2, T, 6),), {})
        return Case(args, via="module_by_keywords", part=part, tolerance=tolerance(torch.float32), note=note)

    float64, before, after = torch.float64, (True,), (False,)
    gelu, tanh = Stub("activation", ("gelu",)), Stub("activation", ("tanh",))
    nothing, no_words = draw.mask(5, 5), draw.mask(2, 1, 1, 5)
    nothing[draw.integer(1, 4)] = False
    no_words[1] = False

    def again(*order, **options):
        x, state = draw.normal(2, 5, 6), block_state(draw, 6, 10, torch.float32)
        calls = (x, draw.mask(5, 5)), (x.flip(1),)
        return called_twice((6, 2, 10, *order), state, *calls, tolerance=tolerance(torch.float32), **options)

    def masked(B, T, *shape, note):  # in both orders
        kept = torch.ones(T, T, dtype=torch.bool).tril() if shape == CAUSAL else draw.mask(*shape)
        pre = case(B, T, kept, order=before, part=PRE_NORM, note=f"norm_first=True, {note}")
        return case(B, T, kept, part=MASK, note=note), pre

    return [
        case(3, 5),
        case(2, 4, D=12, H=3, F=7, note="three heads of width 4"),
        case(3, 5, draw.mask(5, 5), named=True, part=MASK),  # before norm_first=True, which has masks too
        case(3, 5, order=before, part=PRE_NORM, note="norm_first=True"),
        case(2, 4, order=before, D=12, H=3, F=7, part=PRE_NORM, note="norm_first=True, three heads of width 4"),
        case(1, 70, part="a batch of one"),
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
        case(2, 70, draw.mask(2, 1, 1, 70), part=MASK, note="padding, (B, 1, 1, T), of 70 tokens"),
        case(2, 5, nothing, dtype=float64, part="rows with nothing to see", gradient=True),
        case(2, 5, no_words, order=before, part=PRE_NORM, note="norm_first=True, a sentence of padding alone"),
        case(3, 5, order=(*after, gelu), part=ACTIVATION, note="activation: F.gelu"),
        case(3, 5, order=(*before, tanh), part=PRE_NORM, note="norm_first=True, activation: torch.tanh"),
        by_keyword(5, PRE_NORM, norm_first=True, activation=gelu, note=f"norm_first=True, {BUILT}"),
        by_keyword(4, activation=tanh, note=BUILT),
    ]


def tolerance(dtype):
    """Several layers of float32 sums, in whatever order somebody writes them."""
    return 4e-5 if dtype == torch.float32 else None


PRE_1, PRE_2 = "x = x + self.attention(self.norm1(x), mask=mask)[0]", "return x + self.feed_forward(self.norm2(x))"
POST_1, POST_2 = "x = self.norm1(x + self.attention(x, mask=mask)[0])", "return self.norm2(x + self.feed_forward(x))"
EncoderBlock = Exercise(
    "EncoderBlock",
    cases_encoder_block,
    axes=("token", "channel"),
    forbidden=("transformer",),
    instead="build it from your attention, your FeedForward and two norms.",
    weights={PRE_NORM: 5},
    apart=(PRE_NORM,),
).with_mistakes(f"""
    residual_normalized: with norm_first the residual is taken from the normalized x
        {PRE_1} -> x = self.norm1(x)
        |            x = x + self.attention(x, mask=mask)[0]
        {PRE_2} -> x = self.norm2(x)
        |            return x + self.feed_forward(x)
        The stream should reach the end as it came in. What is added to the sublayer's output in yours?
    first_residual_normalized: with norm_first attention is added to the normalized x
        {PRE_1} -> x = self.norm1(x)
        |            x = x + self.attention(x, mask=mask)[0]
        The stream should reach the end as it came in. What is attention's output added to in yours?
    second_residual_normalized: with norm_first the feed-forward network is added to the normalized x
        {PRE_2} -> x = self.norm2(x)
        |            return x + self.feed_forward(x)
        The stream should reach the end as it came in. What is the network's output added to in yours?
    no_residual: no residual connections
        {PRE_1} -> x = self.attention(self.norm1(x), mask=mask)[0]
        {PRE_2} -> return self.feed_forward(self.norm2(x))
        {POST_1} -> x = self.norm1(self.attention(x, mask=mask)[0])
        {POST_2} -> return self.norm2(self.feed_forward(x))
        If both sublayers gave zeros, what would be left of x?
    first_residual_dropped: no residual around attention
        {PRE_1} -> x = self.attention(self.norm1(x), mask=mask)[0]
        {POST_1} -> x = self.norm1(self.attention(x, mask=mask)[0])
        There has to be one around each sublayer. Look at the first.
    second_residual_dropped: no residual around the feed-forward network
        {PRE_2} -> return self.feed_forward(self.norm2(x))
        {POST_2} -> return self.norm2(self.feed_forward(x))
        There has to be one around each sublayer. Look at the second.
    norm_inside: in post-norm the residual was added after the norm
        {POST_1} -> x = x + self.norm1(self.attention(x, mask=mask)[0])
        {POST_2} -> return x + self.norm2(self.feed_forward(x))
        The box of the paper is called Add & Norm. In which order?
    norm_behind_the_sublayer: with norm_first the norm stands behind the sublayer, before the sum
        {PRE_1} -> x = x + self.norm1(self.attention(x, mask=mask)[0])
        {PRE_2} -> return x + self.norm2(self.feed_forward(x))
        Pre-norm: what is normalized there, the sublayer's input or its output?
    norm_behind_in_both: the norm stands between the sublayer and the sum in both orders
        {PRE_1} -> x = x + self.norm1(self.attention(x, mask=mask)[0])
        {PRE_2} -> return x + self.norm2(self.feed_forward(x))
        {POST_1} -> x = x + self.norm1(self.attention(x, mask=mask)[0])
        {POST_2} -> return x + self.norm2(self.feed_forward(x))
        There are two places for a norm: on the sum, or on what the sublayer reads. Where are yours?
    always_post: norm_first changes nothing: always post-norm
        if self.norm_first: -> if False:
        Build the block with norm_first=True. Which line of yours notices?
    always_pre: pre-norm where post-norm is asked for
        if self.norm_first: -> if True:
        The default is the order of the paper. Where does the norm stand there?
    pre_norm_by_default: pre-norm where nothing was asked for
        norm_first=False -> norm_first=True
        Which default does the signature promise?
    gelu_by_default: GELU where nothing was asked for
        activation=F.relu -> activation=F.gelu
        BERT and GPT-2 do that. Which default does the signature promise?
    orders_exchanged: pre-norm and post-norm exchanged
        if self.norm_first: -> if not self.norm_first:
        With norm_first=True, what does a sublayer get to see: x, or something else?
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
    mask_ignored: the mask is not used
        self.norm1(x), mask=mask) -> self.norm1(x))
        self.attention(x, mask=mask) -> self.attention(x)
        Who needs to know which keys are padding? Does it hear of the mask?
    mask_as_key: calls with a mask raise an error
        self.norm1(x), mask=mask) -> self.norm1(x), mask)
        self.attention(x, mask=mask) -> self.attention(x, mask)
        Attention takes four things, the last of them a boolean mask. What does yours hand on, and in which place?
    mask_inverted: the mask was read the other way round
        if self.norm_first: -> mask = None if mask is None else ~mask
        |        if self.norm_first:
        In this course True means may attend. nn.TransformerEncoderLayer means the opposite.
    activation_ignored: the activation does not reach the feed-forward network
        FeedForward(d_model, d_ff, activation) -> FeedForward(d_model, d_ff)
        The block gets an activation when it is built. Who should be told?
    norms_exchanged: norm1 and norm2 exchanged
        self.attention(self.norm1(x) -> self.attention(self.norm2(x)
        self.feed_forward(self.norm2(x)) -> self.feed_forward(self.norm1(x))
        x = self.norm1(x + -> x = self.norm2(x +
        return self.norm2(x + -> return self.norm1(x +
        Which of the two belongs to attention?
    residual_twice: x is added twice
        {PRE_1} -> x = x + x + self.attention(self.norm1(x), mask=mask)[0]
        {PRE_2} -> return x + x + self.feed_forward(self.norm2(x))
        {POST_1} -> x = self.norm1(x + x + self.attention(x, mask=mask)[0])
        {POST_2} -> return self.norm2(x + x + self.feed_forward(x))
        Let both sublayers give zeros. How often does x come out?
    second_from_the_start: the second residual is the block's input
        if self.norm_first: -> start = x
        |        if self.norm_first:
        {PRE_2} -> return start + self.feed_forward(self.norm2(x))
        {POST_2} -> return self.norm2(start + self.feed_forward(x))
        What attention has added should go on upward. Which x is added at the end in yours?
    side_by_side: both sublayers read the block's input
        if self.norm_first: -> start = x
        |        if self.norm_first:
        {PRE_2} -> return x + self.feed_forward(self.norm2(start))
        {POST_2} -> return self.norm2(x + self.feed_forward(start))
        Some models do run them side by side. In this block, what has the feed-forward network to work on?
    side_by_side_without_norms: both sublayers read the block's input, and nothing is normalized
        {PRE_1} -> return x + self.attention(x, mask=mask)[0] + self.feed_forward(x)
        {POST_1} -> return x + self.attention(x, mask=mask)[0] + self.feed_forward(x)
        The table has two formulas for a block, one below the other. What does the second one begin with, and where are
        the norms?
    one_sum_under_NORM for NORM in norm1, norm2: in post-norm one norm on the sum of x and both sublayers
        {POST_1} -> return self.NORM(x + self.attention(x, mask=mask)[0] + self.feed_forward(x))
        Post-norm goes step by step: two sums, and each has a norm. What has the feed-forward network to work on?
    residual_before_the_norm: in post-norm the second residual is the first sum without its norm
        {POST_1} -> x = x + self.attention(x, mask=mask)[0]
        {POST_2} -> return self.norm2(x + self.feed_forward(self.norm1(x)))
        In post-norm the stream itself goes through each norm. Which x is added at the end in yours?
    one_residual_around_both: one residual around both sublayers together
        {PRE_1} -> out = self.attention(self.norm1(x), mask=mask)[0]
        {PRE_2} -> return x + self.feed_forward(self.norm2(out))
        {POST_1} -> out = self.norm1(self.attention(x, mask=mask)[0])
        {POST_2} -> return self.norm2(x + self.feed_forward(out))
        There has to be one around each sublayer. Where does the one around attention end?
    side_by_side_one_norm: with norm_first both sublayers read norm1 of the block's input
        if self.norm_first: -> start = x
        |        if self.norm_first:
        {PRE_2} -> return x + self.feed_forward(self.norm1(start))
        Some models do run them side by side, behind one norm. This block has two. What does the second one read?
    second_norm_of_attention_alone: the second half works on what attention found, and not on the stream
        {PRE_1} -> out = self.attention(self.norm1(x), mask=mask)[0]
        |            x = x + out
        {PRE_2} -> return x + self.feed_forward(self.norm2(out))
        Attention's output was added to the stream. Which of the two does the second sublayer read?
    norm_before_and_after: with norm_first the sums are normalized as well
        {PRE_1} -> x = self.norm1(x + self.attention(self.norm1(x), mask=mask)[0])
        {PRE_2} -> return self.norm2(x + self.feed_forward(self.norm2(x)))
        In pre-norm each norm stands on a branch. What meets the stream itself, after the addition?
    keys_not_normalized: with norm_first only the queries are normalized
        self.attention(self.norm1(x), mask=mask) -> self.attention(self.norm1(x), x, mask=mask)
        Self-attention has one input, and that is what the norm gives back.
    norm_on_top: with norm_first another norm at the end
        {PRE_2} -> return self.norm2(x + self.feed_forward(self.norm2(x)))
        In pre-norm the stream leaves the block as it is. A norm on top comes once, behind the last block, if at all.
    first_norm_dropped: with norm_first attention sees x without its norm
        {PRE_1} -> x = x + self.attention(x, mask=mask)[0]
        In pre-norm both sublayers get normalized numbers. Does the first one?
    first_norm_dropped_post: in post-norm no norm behind attention
        {POST_1} -> x = x + self.attention(x, mask=mask)[0]
        In post-norm there is a norm on each sum. How many do you call?
    second_norm_dropped_post: in post-norm no norm behind the feed-forward network
        {POST_2} -> return x + self.feed_forward(x)
        In post-norm there is a norm on each sum. How many do you call?
    second_norm_dropped: with norm_first the feed-forward network sees x without its norm
        {PRE_2} -> return x + self.feed_forward(x)
        In pre-norm both sublayers get normalized numbers. Does the second one?
    mask_ignored_pre: with norm_first the mask is not used
        self.norm1(x), mask=mask) -> self.norm1(x))
        Attention stands in your code twice. Does it hear of the mask both times?
    mask_ignored_post: in post-norm the mask is not used
        self.attention(x, mask=mask) -> self.attention(x)
        Attention stands in your code twice. Does it hear of the mask both times?
    feed_forward_first: the feed-forward network comes before attention
        {PRE_1} -> x = x + self.feed_forward(self.norm1(x))
        {PRE_2} -> return x + self.attention(self.norm2(x), mask=mask)[0]
        {POST_1} -> x = self.norm1(x + self.feed_forward(x))
        {POST_2} -> return self.norm2(x + self.attention(x, mask=mask)[0])
        First gather, then digest.
    no_feed_forward: the feed-forward network has no effect
        {PRE_2} -> return x
        {POST_2} -> return x
        A block has two sublayers. What does the second one do in yours?
    feed_forward_first_with_its_norm: the feed-forward network comes before attention
        {PRE_1} -> x = x + self.feed_forward(self.norm2(x))
        {PRE_2} -> return x + self.attention(self.norm1(x), mask=mask)[0]
        {POST_1} -> x = self.norm2(x + self.feed_forward(x))
        {POST_2} -> return self.norm1(x + self.attention(x, mask=mask)[0])
        First gather, then digest.
    mask_transposed: the mask's last two axes exchanged
        if self.norm_first: -> mask = None if mask is None else mask.mT
        |        if self.norm_first:
        Each row of a mask belongs to a query, as each row of the scores does. Whose are the rows of yours?
    another_eps: norms with another eps
        nn.LayerNorm(d_model), nn.LayerNorm(d_model) -> nn.LayerNorm(d_model, eps=1e-6), nn.LayerNorm(d_model, eps=1e-6)
        The contract says how the two norms are made. What does yours say besides?
""")

V, D, H, F, L, LONGEST = 9, 6, 2, 10, 3, 70


def encoder_state(draw, layers, dtype):
    state = {"tokens.weight": draw.normal(V, D, dtype=dtype), "positions.weight": draw.normal(LONGEST, D, dtype=dtype)}
    for layer in range(layers):
        state |= block_state(draw, D, F, dtype, f"blocks.{layer}.")
    return state


def cases_encoder(draw):
    def case(B, T, mask=None, named=False, layers=L, dtype=torch.float32, **options):
        ids = draw.integers(0, V, (B, T))
        if options.get("gradient"):
            ids[0, 0] = 0  # an id like any other: padding_idx would keep its row from learning
        call = ((ids,), {"mask": mask}) if named else ((ids,) if mask is None else (ids, mask), {})
        args = ((V, D, H, F, layers, LONGEST), encoder_state(draw, layers, dtype), *call)
        return Case(args, **{"via": "module", "tolerance": tolerance(dtype)} | options)

    def behavior(T, length):
        numbers = draw.normal(4999, dtype=torch.float64)
        ids = torch.stack([draw.permutation(V)[:T] for _ in range(2)])
        init = (V, D, H, F, 2, LONGEST)
        return Case(
            (init, ids, length, numbers), via="encoder_behavior", part="order and padding, all parameters random"
        )

    float64, no_words = torch.float64, draw.mask(2, 1, 1, 5)
    no_words[1] = False
    ids, init, state = draw.integers(0, V, (2, 5)), (V, D, H, F, 1, LONGEST), encoder_state(draw, 1, torch.float32)
    return [
        case(2, 5),
        case(3, 4, layers=1, note="one layer"),
        called_twice(
            init,
            state,
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
        case(2, 5, dtype=float64, part=DTYPE),
        case(2, 5, dtype=float64, layers=2, part=GRADIENT, gradient=True),
        case(4, 4, draw.mask(4, 4), part=MASK, note="a mask (T, T) for as many sentences as tokens"),
        case(1, 5, draw.mask(5, 5), layers=1, part=MASK, note="a batch of one with a mask (T, T)"),
        case(2, 5, draw.mask(2, 5, 5), layers=1, part=MASK, note="a mask (H, T, T)"),
        case(2, 5, draw.mask(2, 2, 5, 5), layers=2, part=MASK, note="a mask for each head"),
        case(2, 5, no_words, layers=1, part=MASK, note="padding, and a sentence of nothing else"),
        case(2, 70, draw.mask(2, 1, 1, 70), named=True, part=MASK, note="padding, (B, 1, 1, T), of 70 tokens"),
        behavior(6, 4),
        behavior(8, 5),
        Case(
            (
                (V, D, H, F, 2, LONGEST),
                draw.integers(0, V, (2, 5)),
                draw.mask(2, 2, 5, 5),
                draw.normal(2, 5, D, dtype=float64),
                draw.normal(4999, dtype=float64),
            ),
            via="encoder_options",
            part=OPTIONS,
        ),
    ]


Encoder = Exercise(
    "Encoder", cases_encoder, axes=("token", "channel"), forbidden=("transformer",), instead="stack your own blocks."
).with_mistakes("""
    no_positions: no positions: the encoder is blind to order
        self.tokens(ids) + self.positions(positions) -> self.tokens(ids)
        Lesson 2: what tells attention who came first?
    positions_of_ids: positions were looked up by the word's id
        self.positions(positions) -> self.positions(ids)
        A position says where a word stands, not which word it is.
    positions_all_0: the same position for every word
        torch.arange(ids.shape[1], device=ids.device) -> torch.zeros_like(ids[0])
        Exchange two words: does anything in your sum notice?
    positions_of_sentences: positions counted along the batch
        torch.arange(ids.shape[1], -> torch.arange(ids.shape[0],
        A position says where a word stands in its sentence. Which axis of ids do you count along?
    positions_from_one: positions counted from 1
        torch.arange(ids.shape[1], -> torch.arange(1, 1 + ids.shape[1],
        Which row of the table does the first word get, and what does the longest sentence do?
    positions_from_the_end: positions were counted from the end
        torch.arange(ids.shape[1], -> torch.arange(ids.shape[1] - 1, -1, -1,
        The first word has position 0. Which one has the last word of yours?
    positions_kept: positions kept from an earlier call with more words, and their end taken
        positions = torch.arange(ids.shape[1], device=ids.device)
        -> self.longest = max(getattr(self, "longest", 0), ids.shape[1])
        |        positions = torch.arange(self.longest)[-ids.shape[1] :]
        A module may be called with five words and then with three. Which positions do the three get?
    words_scaled: the word vectors were multiplied by the square root of the width
        self.tokens(ids) + -> self.tokens(ids) * self.tokens.embedding_dim**0.5 +
        The paper does that, and in its code embeddings start smaller. This exercise adds the two vectors as they are.
    mask_not_passed: the mask does not reach the blocks
        block(x, mask) -> block(x)
        Every block attends anew. Which of them knows what is padding?
    mask_not_for_the_last: the last block does not see the mask
        block(x, mask) -> block(x, mask if block is not self.blocks[-1] else None)
        Every block attends anew. Which of them knows what is padding?
    mask_first_block_only: only the first block sees the mask
        block(x, mask) -> block(x, mask if block is self.blocks[0] else None)
        Padding is kept out below, and comes in again above. Every block attends anew.
    one_block: only the first block is used
        for block in self.blocks: -> for block in self.blocks[:1]:
        How many blocks does the list hold, and how many does x pass through?
    last_block_only: every block gets the word vectors, and only the last one counts
        for block in self.blocks: -> words = x
        |        for block in self.blocks:
        block(x, mask) -> block(words, mask)
        What does the second block read: the words, or what the first one made of them?
    norm_at_the_end: a norm behind the last block
        return x -> return F.layer_norm(x, x.shape[-1:])
        Post-norm blocks end with a norm of their own. Does the contract ask for one more?
    row_0_never_learns: padding_idx in the table of words
        nn.Embedding(vocab_size, d_model) -> nn.Embedding(vocab_size, d_model, padding_idx=0)
        Nobody said that id 0 is padding, and with padding_idx its row gets no gradient. Here the mask looks after padding.
    blocks_backward: the last block comes first
        for block in self.blocks: -> for block in reversed(self.blocks):
        Which block should the word vectors meet first?
    positions_in_every_block: positions are added again before every block
        block(x, mask) -> block(x + (block is not self.blocks[0]) * self.positions(positions), mask)
        The residual stream carries them upward. Once is enough.
    options_dropped: the options are taken and go nowhere
        d_ff, **options) -> d_ff)
        Build the encoder with norm_first=True. Which of your lines tells the blocks?
    pre_norm: pre-norm blocks
        d_ff, **options) -> d_ff, True)
        The default of your EncoderBlock is the order of the paper. Which one do you build here?
    last_block_left_out: the last block is not used
        for block in self.blocks: -> for block in self.blocks[:-1]:
        How many blocks does the list hold, and how many does x pass through?
    one_block_more: one block more than num_layers
        for _ in range(num_layers) -> for _ in range(num_layers + 1)
        Print len(encoder.blocks). How many were asked for?
    blocks_without_effect: words plus positions, and nothing that the blocks gave
        x = block(x, mask) -> block(x, mask)
        Each block gives a new tensor. Where does it go in yours?
    residual_around_blocks: each block's input is added to what it gives
        x = block(x, mask) -> x = x + block(x, mask)
        A block has its residuals inside. What does x become from block to block?
    mask_inverted: the mask was read the other way round
        block(x, mask) -> block(x, None if mask is None else ~mask)
        True means may attend, for the blocks as for you.
""")


PASSING = "parts that return the tensor that they get"


def cases_fixed_block(draw):
    phase = draw.integer(1, 9) / 10
    parts = (
        Stub("averaging", (phase,)),
        Stub("tokenwise_network", (phase + 1,)),
        Stub("shrinking", (round(phase - 0.5, 2),)),
        Stub("shrinking", (round(phase + 0.25, 2),)),
    )

    def x(*shape, dtype=torch.float32):
        return draw.normal(*shape, dtype=dtype) * 2

    float64 = torch.float64
    return [
        Case((x(3, 5, 6), *parts)),
        Case((x(2, 4, 7), *parts)),
        Case((x(1, 70, 6), *parts), part="a batch of one"),
        Case((x(3, 1, 6), *parts), part="a single token"),
        Case((x(3, 5, 6, dtype=float64), *parts), part=DTYPE, tolerance=EXACT),
        Case((x(3, 5, 6, dtype=float64), *parts), part=GRADIENT, gradient=True),
        Case((x(5, 5, 6), *parts, draw.mask(5, 5)), part=MASK),
        Case((x(2, 5, 6), *parts, draw.mask(2, 5, 5)), part=MASK, note="a mask (H, T, T)"),
        Case((x(1, 5, 6), *parts), {"mask": torch.ones(5, 5, dtype=torch.bool).tril()}, part=MASK),
        Case((x(2, 5, 6), Stub("passing_on", (True,)), *[Stub("passing_on", (False,))] * 3), part=PASSING),
    ]


fixed_block = Exercise("fixed_block", cases_fixed_block, axes=("token", "channel")).with_mistakes("""
    published: still the published version: both residuals are taken from the normalized x
        x = x + out -> x = norm1(x) + out
        return x + feed_forward(norm2(x)) -> return norm2(x) + feed_forward(norm2(x))
        Let both sublayers give zeros. Does x come out as it went in?
    first_half: the second residual is repaired, the first is still taken from the normalized x
        x = x + out -> x = norm1(x) + out
        The bug is in there twice. You found one of them.
    second_half: the first residual is repaired, the second is still taken from the normalized x
        return x + feed_forward(norm2(x)) -> return norm2(x) + feed_forward(norm2(x))
        The bug is in there twice. You found one of them.
    post_norm: post-norm: a repair, but into the other order
        attention(norm1(x), mask=mask) -> attention(x, mask=mask)
        x = x + out -> x = norm1(x + out)
        return x + feed_forward(norm2(x)) -> x = x + feed_forward(x)
        |    return norm2(x)
        In pre-norm a sublayer sees normalized numbers, and nothing is normalized after the addition.
    norms_dropped: the norms are gone
        attention(norm1(x), mask=mask) -> attention(x, mask=mask)
        feed_forward(norm2(x)) -> feed_forward(x)
        They were not the mistake. What should a sublayer get to see?
    first_norm_dropped: attention sees x without its norm
        attention(norm1(x), mask=mask) -> attention(x, mask=mask)
        Both sublayers get normalized numbers. Does the first one?
    second_norm_dropped: the feed-forward network sees x without its norm
        feed_forward(norm2(x)) -> feed_forward(x)
        Both sublayers get normalized numbers. Does the second one?
    side_by_side: both sublayers read the block's input
        x = x + out -> start, x = x, x + out
        feed_forward(norm2(x)) -> feed_forward(norm2(start))
        Some models do run them side by side. In this block, what has the feed-forward network to work on?
    side_by_side_one_norm: both sublayers read norm1 of the block's input
        x = x + out -> start, x = x, x + out
        feed_forward(norm2(x)) -> feed_forward(norm1(start))
        Some models do run them side by side, behind one norm. This block has two. What does the second one read?
    side_by_side_without_norms: both sublayers read the block's input, and the norms are gone
        attention(norm1(x), mask=mask) -> attention(x, mask=mask)
        x = x + out -> start, x = x, x + out
        feed_forward(norm2(x)) -> feed_forward(start)
        The norms were not the mistake, and the sublayers come one after the other. What does each of them read?
    one_residual_around_both: one residual around both sublayers together
        x = x + out -> start, x = x, out
        return x + feed -> return start + feed
        There has to be one around each sublayer. Where does the one around attention end?
    last_residual_from_the_start: x itself is added at the end only; in between the residual is still the normalized x
        x = x + out -> start, x = x, norm2(norm1(x) + out)
        return x + feed_forward(norm2(x)) -> return start + feed_forward(x)
        Zero sublayers give x back now. But what attention finds should be added to the stream as well. Does it get
        there?
    residual_twice: x is added twice
        x = x + out -> start, x = x, x + out
        return x + feed -> return start + x + feed
        Let both sublayers give zeros. How often does x come out?
    first_norm_behind: attention's output is normalized, and not what attention reads
        attention(norm1(x), mask=mask) -> attention(x, mask=mask)
        x = x + out -> x = x + norm1(out)
        In pre-norm it is what the sublayer reads that is normalized. Look at the first one.
    keys_not_normalized: only the queries are normalized
        attention(norm1(x), mask=mask) -> attention(norm1(x), x, mask=mask)
        Self-attention has one input, and that is what the norm gives back.
    residuals_dropped: the residuals are gone
        x = x + out -> x = out
        return x + feed_forward(norm2(x)) -> return feed_forward(norm2(x))
        They were right in one respect: there has to be one around each sublayer.
    second_norm_of_attention_alone: the second half works on what attention found, and not on the stream
        feed_forward(norm2(x)) -> feed_forward(norm2(out))
        Attention's output was added to the stream. Which of the two does the second sublayer read?
    first_residual_dropped: no residual around attention
        x = x + out -> x = out
        There has to be one around each sublayer. Look at the first.
    second_residual_dropped: no residual around the feed-forward network
        return x + feed_forward -> return feed_forward
        There has to be one around each sublayer. Look at the second.
    norms_exchanged: norm1 and norm2 exchanged
        attention(norm1(x) -> attention(norm2(x)
        feed_forward(norm2(x)) -> feed_forward(norm1(x))
        The two norms are not the same function. Which one is the first sublayer's?
    norm_behind_the_sublayer: the norm between the sublayer and the sum
        attention(norm1(x), mask=mask) -> attention(x, mask=mask)
        x = x + out -> x = x + norm1(out)
        feed_forward(norm2(x)) -> norm2(feed_forward(x))
        In pre-norm it is what the sublayer reads that is normalized.
    norm_on_top: another norm at the end
        return x + feed_forward(norm2(x)) -> return norm2(x + feed_forward(norm2(x)))
        In pre-norm nothing is normalized after the addition.
    second_from_the_start: the second residual is the block's input
        x = x + out -> start, x = x, x + out
        return x + feed -> return start + feed
        What attention has added should go on upward. Which x is added at the end in yours?
    one_norm_twice: norm1 is used twice
        feed_forward(norm2(x)) -> feed_forward(norm1(x))
        The two norms are not the same function. Which one is the second sublayer's?
    mask_ignored: the mask is not passed on
        attention(norm1(x), mask=mask) -> attention(norm1(x))
        The published version passes it. Does yours?
    feed_forward_first: the feed-forward network comes before attention
        out, _ = attention(norm1(x), mask=mask) -> out = feed_forward(norm1(x))
        return x + feed_forward(norm2(x)) -> return x + attention(norm2(x), mask=mask)[0]
        The published lines have the two sublayers in the right order. Which comes first there?
    second_half_post_norm: the first half is pre-norm, the second post-norm
        return x + feed_forward(norm2(x)) -> return norm2(x + feed_forward(x))
        In pre-norm nothing is normalized after the addition. Look at the second one.
    first_half_post_norm: the second half is pre-norm, the first post-norm
        attention(norm1(x), mask=mask) -> attention(x, mask=mask)
        x = x + out -> x = norm1(x + out)
        In pre-norm nothing is normalized after the addition. Look at the first one.
""")


def cases_block_macs(draw):
    def sizes():
        T, d_model, d_ff = draw.integer(2, 90), draw.integer(91, 300), draw.integer(301, 999)
        return T, d_model, d_ff

    return [
        *(Case(sizes()) for _ in range(4)),
        Case((draw.integer(2000, 9000), 64, 100), note="a long text"),
        Case((1, draw.integer(5, 99), draw.integer(100, 999)), part="a single token"),
        Case((3_000_017, 1024, 4099), part="exact for a very long text"),
    ]


block_macs = Exercise(
    "block_macs", cases_block_macs, forbidden=("transformer",), instead="count the products of the eight matrices."
).with_mistakes("""
    three_projections: three projections instead of four
        4 * T * d_model**2 -> 3 * T * d_model**2
        Queries, keys, values: and what happens to the heads once they stand side by side?
    scores_only: one of the two products inside attention is missing
        2 * T**2 * d_model -> T**2 * d_model
        The scores are one product. What happens to the weights after the softmax?
    one_layer_of_two: one of the feed-forward network's two layers is missing
        2 * T * d_model * d_ff -> T * d_model * d_ff
        Up, and back down.
    additions_counted_too: each multiplication and each addition counted, twice as many as asked for
        projections + attention + feed_forward -> 2 * (projections + attention + feed_forward)
        A multiply-add is one thing here: a product that is added to a sum.
    no_attention: attention's own two products are missing
        projections + attention + feed_forward -> projections + feed_forward
        The layers with parameters are all there. Which products have no parameters in them?
    no_projections: the four projections are missing
        projections + attention + feed_forward -> attention + feed_forward
        You have counted what happens between queries, keys and values. Which products make them, and what comes behind?
    no_feed_forward: the feed-forward network is missing
        projections + attention + feed_forward -> projections + attention
        You have counted attention. Which other products does a block have?
    width_forgotten: the products inside attention without the width of the model
        2 * T**2 * d_model -> 2 * T**2
        T² scores: how many products are added up in each of them?
    half_for_a_mask: only the half below the diagonal counted
        2 * T**2 * d_model -> T * (T + 1) * d_model
        An encoder has no causal mask. (With one, our attention still computes the whole product before it masks.)
    parameters_counted: parameters instead of multiply-adds
        4 * T * d_model**2 -> 4 * d_model**2
        2 * T * d_model * d_ff -> 2 * d_model * d_ff
        Every token passes through these layers. How many times is one weight used?
    four_times_d_model: the feed-forward network is always four times as wide as the model
        2 * T * d_model * d_ff -> 8 * T * d_model**2
        That is the usual size, not the only one. Which argument says how wide it is?
    biases_counted: the biases are counted too
        projections + attention + feed_forward -> projections + attention + feed_forward + T * (5 * d_model + d_ff)
        Adding a bias multiplies nothing. Only the matrix products count.
    one_projection: one projection instead of four
        4 * T * d_model**2 -> T * d_model**2
        Queries, keys and values each have a matrix. And what happens to the heads once they stand side by side?
    attention_as_projections: T times the width squared for each product inside attention too
        2 * T**2 * d_model -> 2 * T * d_model**2
        Write the shapes of Q and of K transposed. Which number stands on two of the three sides?
    projections_of_one_token: the four projections of a single token
        4 * T * d_model**2 -> 4 * d_model**2
        How many tokens are projected?
    feed_forward_of_one_token: the feed-forward network for a single token
        2 * T * d_model * d_ff -> 2 * d_model * d_ff
        How many tokens pass through it?
""")


def cases_token_influence(draw):
    def case(name, T, D, width, dtype=torch.float32, **options):
        args = (Stub(name, (width,)), draw.normal(T, D, dtype=dtype))
        return Case(args, **{"tolerance": influence(dtype)} | options)

    float64 = torch.float64
    return [
        case("looking_around", 5, 4, 3, note="an attention"),
        case("sliding", 6, 4, 3, note="a convolution"),
        case("running_products", 5, 3, 7, note="a causal function"),
        case("looking_around", 5, 4, 3, dtype=float64, part=DTYPE),
        case("running_products", 5, 3, 4, dtype=float64, part=DTYPE),
        Case(
            (Stub("linear_layer", (6, draw.integer(1, 9) / 10)), draw.normal(5, 4)),
            part="a function of each token alone",
            note="an nn.Linear",
            tolerance=influence(torch.float32),
        ),
        Case(
            (Stub("steps"), draw.normal(4, 3, dtype=float64)),
            part="a function whose derivatives are 0",
            note="x > 0, as numbers",
        ),
        Case(
            (Stub("parameters_alone", (3, 2)), draw.normal(3, 4)),
            part="a function whose derivatives are 0",
            note="a parameter of f, whatever x is",
        ),
        case("looking_around", 5, 4, 1, part="one output channel"),
        case("looking_around", 1, 4, 3, part="a single token"),
        case("running_products", 4, 1, 1, part="one channel in and out"),
        case("looking_around", 4, 3, 2, via="influence_on_x", part="x stays as it was"),
    ]


def influence(dtype):
    return 3e-5 if dtype == torch.float32 else None


token_influence = Exercise(
    "token_influence", cases_token_influence, axes=("output token", "input token")
).with_mistakes("""
    gradient_of_a_sum: the gradient of the sum of each row's outputs
        jacobian.pow(2).sum(dim=(1, 3)).sqrt() -> jacobian.sum(dim=1).pow(2).sum(dim=-1).sqrt()
        Channels that move in opposite directions cancel in a sum. The norm is over all pairs of channels.
    gradient_of_a_sum_by_autograd: the gradient of the sum of each row's outputs
        torch.autograd.functional.jacobian(f, x)
        -> torch.stack([torch.autograd.grad(f(x)[i].sum(), x)[0] for x in [x.detach().clone().requires_grad_()] for i in range(len(x))])
        jacobian.pow(2).sum(dim=(1, 3)).sqrt() -> jacobian.norm(dim=-1)
        Channels that move in opposite directions cancel in a sum. The norm is over all pairs of channels.
    gradient_of_a_sum_by_backward: the gradient of the sum of each row's outputs
        torch.autograd.functional.jacobian(f, x)
        -> torch.stack([copy.grad.norm(dim=-1) for i in range(len(x)) for copy in [x.detach().clone().requires_grad_()] if not f(copy)[i].sum().backward()])
        jacobian.pow(2).sum(dim=(1, 3)).sqrt() -> jacobian
        Channels that move in opposite directions cancel in a sum. The norm is over all pairs of channels.
    sizes_of_a_summed_gradient: the gradient of the sum of each row's outputs, and of that the absolute values added up
        jacobian.pow(2).sum(dim=(1, 3)).sqrt() -> jacobian.sum(dim=1).abs().sum(dim=-1)
        Channels that move in opposite directions cancel in a sum before any size is taken. The norm is over all pairs of
        channels, and it begins with a square.
    unused_not_allowed: an error where f does not respond to x
        torch.autograd.functional.jacobian(f, x)
        -> torch.stack([torch.stack([torch.autograd.grad(out, x, retain_graph=True)[0] for out in row]) for x in [x.detach().clone().requires_grad_()] for row in f(x)])
        Where f does not listen to x the entry is 0. What does autograd say of such an f, and what can you tell it to allow?
    axes_of_the_words_summed: added up over the words, and a table of channels was left
        sum(dim=(1, 3)) -> sum(dim=(0, 2))
        Print the shape of the Jacobian: which of its four axes say which word, and which of them say which channel?
    lengths_added_up: for each output channel a norm, and these added up
        jacobian.pow(2).sum(dim=(1, 3)).sqrt() -> jacobian.norm(dim=3).sum(dim=1)
        The Frobenius norm takes one root, at the end. How many do you take in one block?
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
    spectral_norm: the largest singular value of each block
        jacobian.pow(2).sum(dim=(1, 3)).sqrt() -> torch.linalg.matrix_norm(jacobian.transpose(1, 2), ord=2)
        That is the norm of the direction that moves most. The Frobenius norm counts all directions, not only that one.
    shares: each row was divided by its sum
        return jacobian.pow(2).sum(dim=(1, 3)).sqrt() -> jacobian = jacobian.pow(2).sum(dim=(1, 3)).sqrt()
        |    return jacobian / jacobian.sum(dim=1, keepdim=True)
        Shares are good for a picture. The exercise asks for the norms themselves.
    mean_of_sizes: the mean of the absolute entries
        jacobian.pow(2).sum(dim=(1, 3)).sqrt() -> jacobian.abs().mean(dim=(1, 3))
        The Frobenius norm neither averages nor takes absolute values. What does it do to each entry first?
    averaged: a mean over the block where a sum belongs
        sum(dim=(1, 3)).sqrt() -> mean(dim=(1, 3)).sqrt()
        A block with twice as many entries of the same size has a larger norm.
    gradients_pile_up: gradients of earlier rows still in x.grad
        torch.autograd.functional.jacobian(f, x)
        -> torch.stack([copy.grad.norm(dim=-1) for copy in [x.detach().clone().requires_grad_()] for i in range(len(x)) if not f(copy)[i].sum().backward()])
        jacobian.pow(2).sum(dim=(1, 3)).sqrt() -> jacobian
        backward adds to what x.grad holds. And channels that move in opposite directions cancel in a sum.
    reshaped: the Jacobian reshaped to (T, T, ...) without an axis moved
        jacobian.pow(2).sum(dim=(1, 3)).sqrt() -> jacobian.reshape(len(x), len(x), -1).norm(dim=-1)
        Its axes are output word, output channel, input word, input channel. Which numbers does your second axis count?
""")


exercises = [layer_norm, FeedForward, EncoderBlock, fixed_block, Encoder, block_macs, token_influence]
quizzes = listed_quizzes("""
    quiz_1: c
        a: With its weights given, attention is linear in the values: every output is an average of rows, sent through
           matrices. (The weights themselves depend on x, and through them attention can bend a little, as you saw with
           x·σ(10x).)
        b: The norm gives all channels of a token one shift and one factor. They depend on the token, so a norm is not
           linear, but it bends no channel by itself.
        c: The activation between its two layers bends every hidden channel of every token. Without it, and with given
           weights, values pass through linear maps, averages and norms all the way up.
        d: A residual adds the input to the output. That is as linear as it gets.
    quiz_2: b
        a: In pre-norm the stream itself is never normalized: its norms stand on the branches. Where it is normalized
           often, in post-norm, each norm divides what came in, and little of a clean copy reaches the top.
        b: In pre-norm the stream is only ever added to. The output is the input plus 2 L contributions, and the
           gradient at the top reaches the bottom with a 1 in front.
        c: They do see the same kind of numbers, mean 0 and spread 1. But what they add goes to different streams: one
           is divided again at every step, one never.
    quiz_3: a
        a: Six times the width, from 4TD² + 8TD² = 2T²D. For the width 512 that is 3072 tokens, longer than most
           sentences: for short texts the feed-forward network is where the work is.
        b: The square is in T, and it starts small: at T = D the two products inside attention are only 2 of 14 parts.
        c: At T = 2D the products inside attention cost as much as the four projections, 4TD². The feed-forward
           network still stands beside them with 8TD².
""")
