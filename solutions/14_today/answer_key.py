"""Cases and known mistakes of lesson 14: the parts of Llama's block, sliding windows, byte-pair encoding, and LoRA."""

import torch

from helpers.checking.vocabulary import (
    DTYPE,
    GRADIENT,
    LEADING,
    MODULE,
    Case,
    Exercise,
    Raises,
    Stub,
    listed_quizzes,
    tensor_cases,
)

FLOAT32, FLOAT64 = torch.float32, torch.float64
EXACT = 1e-10  # tolerance in float64 if no constant is rounded
NORMS = ("rms_norm", "layer_norm", "batch_norm", "group_norm", "instance_norm")
STATE = "the names in its state"
AGAIN = "called twice, in training mode"


def called_again(init, state, *calls, **options):
    return Case((init, state, *calls), {"training": True}, part=AGAIN, via="module_called_again", **options)


# ---------------------------------------------------------------- rms_norm


def cases_rms_norm(draw):
    def make(dtype, *lead):  # each row has its own mean and scale
        x = draw.normal(*lead, 5, 6, dtype=dtype) * draw.uniform(*lead, 5, 1, low=0.5, high=1.0, dtype=dtype)
        return x + draw.normal(*lead, 5, 1, dtype=dtype), draw.normal(6, dtype=dtype)

    def scaled(factor, dtype=FLOAT32):
        x, weight = make(dtype)
        return x * factor, weight

    zeros = draw.normal(4, 6, dtype=FLOAT64)
    zeros[draw.integer(0, 4)] = 0.0
    # Only the parts for eps may depend on eps, whatever numbers are drawn.
    cases = tensor_cases(make, leads=((), (3,), (2, 3), (1,), (2, 1)), gradient=False, tolerance=1e-4)
    return [
        *(case for case in cases if case.part != DTYPE),
        Case((draw.normal(300), draw.normal(300)), part=LEADING, note="a single vector"),
        Case(make(FLOAT64), part=DTYPE, tolerance=EXACT),
        Case(make(FLOAT64, 2, 3), part=GRADIENT, gradient=True),
        Case(make(FLOAT32), {"eps": 0.5}, part="another eps", note="eps = 0.5"),
        Case((*make(FLOAT64), 0.25), part="another eps", gradient=True, note="eps = 0.25"),
        Case(scaled(1e-3), part="small values", note="values around 0.001"),
        Case(
            scaled(1e-5, FLOAT64),
            {"eps": 1e-10},
            part="small values",
            tolerance=1e-5,
            note="values around 1e-5, eps 1e-10",
        ),
        Case(scaled(1e4), part="large values", note="values around 10,000"),
        Case((zeros, draw.normal(6, dtype=FLOAT64)), part="a row of zeros", gradient=True),
    ]


ROOT = "(mean_square + eps) ** 0.5"
rms_norm = Exercise(
    "rms_norm",
    cases_rms_norm,
    axes=("token", "channel"),
    forbidden=NORMS,
    instead="build it from a mean of squares.",
    apart=(DTYPE, GRADIENT, "another eps", "small values", "a row of zeros"),  # parts in which eps matters
).with_mistakes(f"""
    centered: a layer norm, which subtracts the mean
        mean_square = -> x = x - x.mean(dim=-1, keepdim=True)
        |    mean_square =
        In the example on paper, the result for (1, 1, 5, 5) has four positive entries. What does your function return?
    variance_instead: divided by the standard deviation
        x.pow(2).mean(dim=-1, keepdim=True) -> x.var(dim=-1, correction=0, keepdim=True)
        A variance is the mean of the squares after the mean was subtracted. RMSNorm subtracts nothing.
    sample_variance: divided by the standard deviation
        x.pow(2).mean(dim=-1, keepdim=True) -> x.var(dim=-1, keepdim=True)
        A variance is the mean of the squares after the mean was subtracted, and torch divides by D − 1 by default.
    eps_outside: eps is added after the square root
        {ROOT} -> (mean_square**0.5 + eps)
        For rows with tiny entries this makes a difference. How many terms are under the square root in the formula?
    eps_forgotten: no eps at all
        {ROOT} -> mean_square**0.5
        What does your function return for a row of zeros?
    eps_fixed: eps is always 0.000001
        mean_square + eps -> mean_square + 1e-6
        rms_norm may be called with another eps. Where do you use the argument?
    unit_length: every row is scaled to length 1
        x.pow(2).mean(dim=-1, keepdim=True) -> x.pow(2).sum(dim=-1, keepdim=True)
        Under the square root is the mean of the squares, not their sum.
    no_root: divided by the mean of the squares instead of its square root
        {ROOT} -> (mean_square + eps)
        If x doubles, the result should stay the same. What happens in your code?
    weight_forgotten: weight is not used
        weight * x / -> x /
        Each channel is multiplied by its own weight. Where do you use the argument weight?
    over_tokens: the mean is taken over the tokens
        x.pow(2).mean(dim=-1, -> x.pow(2).mean(dim=-2,
        Each token is normalized separately. Which axis holds the channels of a token?
    everything: one mean for the whole batch
        x.pow(2).mean(dim=-1, keepdim=True) -> x.pow(2).mean()
        Each token is divided by its own root mean square. Which argument of mean selects the axis?
    in_single_precision: float64 inputs are rounded to float32
        weight * x / {ROOT}
        -> weight * (x.float() * torch.rsqrt(x.float().pow(2).mean(dim=-1, keepdim=True) + eps)).to(x.dtype)
        Published code converts 16-bit values to float32 here, but for float64 inputs this loses precision.
""")

# ---------------------------------------------------------------- SwiGLU


def gated_state(draw, D, F, dtype, prefix=""):
    return {
        f"{prefix}gate.weight": draw.normal(F, D, dtype=dtype, scale=1.5 * D**-0.5),
        f"{prefix}up.weight": draw.normal(F, D, dtype=dtype, scale=1.5 * D**-0.5),
        f"{prefix}down.weight": draw.normal(D, F, dtype=dtype, scale=F**-0.5),
    }


def cases_SwiGLU(draw):
    def case(B, T, D, F, dtype=FLOAT32, **options):
        args = ((D, F), gated_state(draw, D, F, dtype), (draw.normal(B, T, D, dtype=dtype),), {})
        return Case(args, via=MODULE, **options)

    x, names = draw.normal(2, 5, 6), [f"{name}.weight" for name in ("gate", "up", "down")]
    return [
        case(3, 5, 6, 10),
        case(2, 4, 7, 3, note="a network that is narrower inside"),
        case(1, 17, 6, 10, part="a batch of one"),
        case(3, 1, 6, 10, part="a single token"),
        called_again((6, 10), gated_state(draw, 6, 10, FLOAT32), (x,), (x.flip(1),)),
        case(3, 5, 6, 10, FLOAT64, part=DTYPE, tolerance=EXACT),
        case(2, 5, 6, 10, FLOAT64, part=GRADIENT, gradient=True),
        Case(((6, 10), (*names,)), via="entries_of_the_state", part=STATE, note="d_model = 6, d_ff = 10"),
    ]


GATED = "F.silu(self.gate(x)) * self.up(x)"
SwiGLU = Exercise(
    "SwiGLU", cases_SwiGLU, axes=("token", "channel"), forbidden=("transformer",), instead="use three linear layers."
).with_mistakes(f"""
    gate_without_silu: the gate has no activation
        {GATED} -> self.gate(x) * self.up(x)
        Without an activation, a gate of −20 doesn't close but multiplies by −20.
    silu_on_up: the activation is applied to up instead of the gate
        {GATED} -> self.gate(x) * F.silu(self.up(x))
        In the formula, silu is applied to the output of the layer gate.
    silu_on_the_product: the activation is applied to the product instead of the gate
        {GATED} -> F.silu(self.gate(x) * self.up(x))
        Compare the parentheses in the formula. What is the argument of silu?
    added: gate and up are added instead of multiplied
        {GATED} -> F.silu(self.gate(x)) + self.up(x)
        When the gate is closed, nothing should pass. What passes in your code?
    sigmoid_gate: a sigmoid instead of silu
        F.silu(self.gate(x)) -> torch.sigmoid(self.gate(x))
        This is GLU, the first layer of this kind. In SwiGLU the activation is z·σ(z).
    gelu_gate: GELU instead of silu
        F.silu(self.gate(x)) -> F.gelu(self.gate(x))
        This is GEGLU, which other models use. In SwiGLU the activation is z·σ(z).
    relu_gate: ReLU instead of silu
        F.silu(self.gate(x)) -> F.relu(self.gate(x))
        For a gate of −2, silu gives −0.238 and not 0.
    gate_twice: gate is used in place of up
        {GATED} -> F.silu(self.gate(x)) * self.gate(x)
        The product has two different factors. Which of the three layers do you never call?
    no_gate: silu of up, without a gate
        {GATED} -> F.silu(self.up(x))
        Two layers read x. Which of them do you never call?
    with_residual: the input is added to the output
        self.down(hidden) -> x + self.down(hidden)
        The residual connection is part of the block, not of this layer.
""")

# ---------------------------------------------------------------- apply_rope_half_split


def cases_apply_rope_half_split(draw):
    def make(dtype, *lead, scale=1.0):
        return draw.normal(*lead, 5, 6, dtype=dtype, scale=scale), draw.permutation(5)

    def positions(dtype, high, T=5, d=6):
        return draw.normal(3, T, d, dtype=dtype), draw.integers(0, high, (T,))

    return [
        Case(make(FLOAT32)),
        Case((draw.normal(3, 4, 8), torch.arange(4))),
        *(Case(make(FLOAT32, *lead), part=LEADING) for lead in ((3,), (2, 3), (1,), (2, 1))),
        # As for lesson 2's `apply_rope`, cosines may be rounded to float32.
        Case(make(FLOAT64, scale=0.1), part=DTYPE),
        Case(make(FLOAT64, 2), part=GRADIENT, gradient=True, tolerance=1e-6),
        Case(positions(FLOAT32, 60), part="far positions", tolerance=1e-4),
        Case(positions(FLOAT64, 60), part="far positions", tolerance=1e-4),
        Case((draw.normal(2, 3, 6), torch.tensor([-1, -4, 2])), part="positions in any order", note="−1, −4 and 2"),
        Case((draw.normal(3, 5, 6), draw.permutation(5) + 1, 100.0), part="another base"),
        Case((draw.normal(2, 4, 8), draw.permutation(4) + 1), {"base": 500.0}, part="another base"),
        Case((draw.normal(3, 4, 2), draw.permutation(4)), part="d = 2"),
        Case((draw.normal(4, 6), torch.tensor([2, 2, 0, 3])), part="positions in any order"),
        Case((draw.normal(3, 1, 6), torch.tensor([3])), part="positions in any order"),
    ]


TURNED = "torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1)"
apply_rope_half_split = Exercise(
    "apply_rope_half_split", cases_apply_rope_half_split, axes=("token", "channel")
).with_mistakes(f"""
    neighbors_paired: lesson 2's pairs, the interleaved layout
        x[..., :half], x[..., half:] -> x[..., 0::2], x[..., 1::2]
        {TURNED} -> torch.stack([a * cos - b * sin, a * sin + b * cos], dim=-1).flatten(-2)
        In the half-split layout, channel 0 is paired with channel d/2.
    put_back_as_neighbors: the pairs are taken half-split, but put back interleaved
        {TURNED} -> torch.stack([a * cos - b * sin, a * sin + b * cos], dim=-1).flatten(-2)
        You take the pairs from two halves of the channels, so put the results back into two halves.
    angles_of_neighbors: the angles of the interleaved layout on half-split pairs
        {TURNED}
        -> x * cos.repeat_interleave(2, -1) + torch.cat([-b, a], dim=-1) * sin.repeat_interleave(2, -1)
        Channel 0 and its partner d/2 rotate by the same angle, so these two columns of cosines must be equal.
    turned_backwards: the pairs rotate in the opposite direction
        positions[:, None] -> -positions[:, None]
        For d = 4, (1, 0, 0, 0) at position 1 should become (0.540, 0, 0.841, 0). What does your function return?
    base_ignored: 10000 instead of the argument base
        / base ** -> / 10000.0 **
        Llama 3 has a base of 500,000. Where does your code use the argument base?
    exponent_i: an exponent that grows half as fast as it should
        (i / half) -> (i / half / 2)
        With d = 4 and base 10000, pair 1 rotates by a hundredth of the position.
    exponent_twice: an exponent that grows twice as fast as it should
        (i / half) -> (2 * i / half)
        With d = 4 and base 10000, pair 1 rotates by a hundredth of the position.
    positions_ignored: positions 0, 1, 2, ... instead of the argument positions
        positions[:, None] -> torch.arange(x.shape[-2])[:, None]
        With a cache the positions are, for example, 7, 8, 9. Where do you use the argument positions?
    sign_lost: a minus sign is missing
        a * cos - b * sin -> a * cos + b * sin
        A rotation doesn't change the length of a vector. Compare the norms before and after.
    exponent_without_minus: later pairs rotate faster instead of slower
        / base ** -> * base **
        Pair 0 should rotate fastest. Check the sign of the exponent.
    sine_and_cosine_exchanged: sine and cosine exchanged
        angles.cos().to(x.dtype), angles.sin().to(x.dtype) -> angles.sin().to(x.dtype), angles.cos().to(x.dtype)
        At position 0 nothing should change. What are the sine and the cosine of 0?
    put_back_half_split: the pairs are taken interleaved, but put back half-split
        x[..., :half], x[..., half:] -> x[..., 0::2], x[..., 1::2]
        Channels 0 and 1 of x form a pair in your code, and channels 0 and d/2 of the result. Which pairs does the
        exercise ask for?
""")

# ---------------------------------------------------------------- interleaved_to_half_split


def cases_interleaved_to_half_split(draw):
    def case(heads, width, columns, dtype=FLOAT32, **options):
        return Case((draw.normal(heads * width, columns, dtype=dtype), heads), **options)

    return [
        case(2, 6, 5),
        case(2, 10, 20, note="a square matrix, two heads of width 10"),
        case(1, 6, 4, part="one head"),
        case(5, 2, 3, part="heads of width 2"),
        case(2, 6, 5, FLOAT64, part=DTYPE),
        case(2, 6, 5, FLOAT64, part=GRADIENT, gradient=True),
    ]


PAIRS, BACK = "W.unflatten(0, (num_heads, -1, 2))", "pairs.transpose(1, 2).flatten(0, 2)"
interleaved_to_half_split = Exercise(
    "interleaved_to_half_split", cases_interleaved_to_half_split, axes=("row", "column")
).with_mistakes(f"""
    inverse: the inverse, from half-split to interleaved
        {PAIRS} -> W.unflatten(0, (num_heads, 2, -1))
        For a head of width 6 the new order is 0, 2, 4, 1, 3, 5. Which order do you get?
    unchanged: no row was moved
        {BACK} -> pairs.flatten(0, 2)
        In a head of width 6, row 1 of the file becomes row 3.
    whole_matrix: the rows are reordered across the heads
        {PAIRS} -> W.unflatten(0, (1, -1, 2))
        Row 2 of the second head must stay in the second head.
    heads_dealt_in_turn: the head is treated as the innermost axis
        {PAIRS} -> W.unflatten(0, (-1, 2, num_heads)).movedim(2, 0)
        Each head owns neighboring rows. With two heads of width 6, which rows belong to the first?
    width_for_heads: num_heads is used as the width of a head
        {PAIRS} -> W.unflatten(0, (-1, num_heads))
        {BACK} -> torch.cat([pairs[:, 0::2], pairs[:, 1::2]], dim=1).flatten(0, 1)
        The second argument says how many heads there are, not how wide they are.
    columns_moved: the columns are moved instead of the rows
        {BACK} -> torch.cat([W[:, 0::2], W[:, 1::2]], dim=1)
        W is (out, in). Which of the two axes holds the channels of the queries?
    heads_moved: the axes of heads and pairs are exchanged
        {BACK} -> pairs.transpose(0, 1).flatten(0, 2)
        The heads keep their order. Which two of the three axes are exchanged?
""")

# ---------------------------------------------------------------- LlamaBlock

MASK, DEFAULT = "with a mask, the mask alone decides", "causal without a mask"
NOTHING, SETTINGS, REFUSED = "fully masked rows", "base and eps", "heads that do not divide"
ENTRIES = tuple(
    f"{name}.weight"
    for name in ("W_q", "W_k", "W_v", "W_o", "norm1", "norm2", *(f"feed_forward.{p}" for p in ("gate", "up", "down")))
)


def llama_state(draw, D, H, G, F, dtype):
    shared = D // H * G
    sizes = {"W_q": (D, D), "W_k": (shared, D), "W_v": (shared, D), "W_o": (D, D)}
    state = {f"{name}.weight": draw.normal(*size, dtype=dtype, scale=1.5 * D**-0.5) for name, size in sizes.items()}
    for name in ("norm1", "norm2"):
        state[f"{name}.weight"] = draw.uniform(D, low=0.5, high=1.5, dtype=dtype)
    return state | gated_state(draw, D, F, dtype, "feed_forward.")


def cases_LlamaBlock(draw):
    states = {}  # shared by all cases of the same sizes, so that the key stores each once

    def case(B, T, mask=None, D=24, H=4, G=2, F=10, rest=(), named=False, dtype=FLOAT32, size=1.0, **options):
        sizes = (D, H, G, F, dtype)
        if sizes not in states:
            states[sizes] = llama_state(draw, *sizes)
        x = draw.normal(B, T, D, dtype=dtype, scale=size) * draw.uniform(B, T, 1, low=0.5, high=2.0, dtype=dtype)
        x = x + 0.5 * size
        state = states[sizes]
        call = ((x,), {} if mask is None else {"mask": mask}) if named or mask is None else ((x, mask), {})
        # Allows several layers of sums in any order and, in float64, angles rounded to float32.
        near = {"tolerance": 5e-5 if dtype == FLOAT32 else 1e-5}
        return Case(((D, H, G, F, *rest), state, *call), **{"via": MODULE} | near | options)

    small = {"D": 8, "H": 2, "G": 1, "F": 5, "dtype": FLOAT64}
    nothing = draw.mask(5, 5)
    nothing[draw.integer(1, 5)] = False
    x = draw.normal(2, 5, 24)
    ahead = torch.ones(5, 5, dtype=torch.bool)
    return [
        case(3, 5),
        case(2, 4, H=6, F=7, note="six heads of width 4, two of keys"),
        case(1, 12, part="a batch of one"),
        case(3, 1, part="a single token"),
        case(2, 5, D=16, G=4, part="as many heads of keys as of queries"),
        case(2, 5, D=16, G=1, part="one head of keys for all"),
        called_again((24, 4, 2, 10), states[24, 4, 2, 10, FLOAT32], (x, draw.mask(5, 5)), (x.flip(1),), tolerance=5e-5),
        case(3, 5, **small, part=DTYPE),
        case(2, 5, **small, part=GRADIENT, gradient=True),
        case(2, 7, part=DEFAULT),
        case(3, 5, ahead, part=MASK, note="a mask that lets every token see all others"),
        case(3, 5, draw.mask(5, 5), part=MASK),
        case(3, 5, draw.mask(3, 1, 1, 5), named=True, part=MASK, note="a mask (B, 1, 1, T)"),
        case(3, 5, draw.mask(3, 4, 5, 5), part=MASK, note="a mask for each head"),
        case(2, 5, nothing, **small, part=NOTHING, gradient=True),
        case(2, 5, rest=(30.0,), part=SETTINGS, note="base 30"),
        case(2, 5, rest=(10000.0, 0.3), part=SETTINGS, note="eps 0.3"),
        case(2, 5, size=2e-3, part=SETTINGS, note="values around 0.002"),
        Case(((24, 4, 2, 10), ENTRIES), via="entries_of_the_state", part=STATE, note="d_model 24, 4 heads, 2 of keys"),
        Case((26, 4, 2, 10), part=REFUSED, raises=Raises("ValueError"), note="26 channels, 4 heads"),
        Case((24, 4, 3, 10), part=REFUSED, raises=Raises("ValueError"), note="4 heads, 3 of keys"),
    ]


CAUSAL = "mask = causal_mask(x.shape[1]).to(x.device) if mask is None else mask"
FIRST = "x = x + self.W_o(merge_heads(grouped_query_attention(Q, K, V, mask)))"
SECOND = "return x + self.feed_forward(self.norm2(x))"
TURN_Q = "Q = apply_rope_half_split(split_heads(self.W_q(y), self.num_heads), places, self.base)"
TURN_K = "K = apply_rope_half_split(split_heads(self.W_k(y), self.num_kv_heads), places, self.base)"
CUT_V = "V = split_heads(self.W_v(y), self.num_kv_heads)"
LlamaBlock = Exercise(
    "LlamaBlock",
    cases_LlamaBlock,
    apart=(AGAIN, MASK, NOTHING, SETTINGS, STATE, REFUSED),
    axes=("token", "channel"),
    forbidden=("transformer", "attention", "rms_norm"),
    instead="build it from your own parts and the blocks of lesson 8.",
).with_mistakes(f"""
    not_causal: without a mask every token attends to all others
        {CAUSAL} -> pass
        |        mask = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool) if mask is None else mask
        This is a decoder's block. Which tokens may a token attend to when no mask is given?
    always_causal: the given mask is combined with the causal one
        {CAUSAL} -> causal = causal_mask(x.shape[1]).to(x.device)
        |        mask = causal if mask is None else mask & causal
        When a mask is given, the mask alone decides, even if it allows later tokens.
    mask_ignored: always causal, whatever the mask says
        {CAUSAL} -> mask = causal_mask(x.shape[1]).to(x.device)
        Where do you use the argument mask?
    mask_inverted: the mask is inverted
        if mask is None else mask -> if mask is None else ~mask
        In this course True means may attend.
    mean_of_all: a fully masked row gets the mean of all values
        grouped_query_attention(Q, K, V, mask) -> grouped_query_attention(
        |            Q * mask.any(-1, keepdim=True), K, V, mask | ~mask.any(-1, keepdim=True)
        |        )
        If every score of a row becomes −1e9, all scores are equal. What does softmax return for equal scores?
    neighbors_turned: lesson 2's RoPE, the interleaved layout
        {TURN_Q} -> pair = lambda z: z.unflatten(-1, (-1, 2)).transpose(-2, -1).flatten(-2)
        |        Q = apply_rope_half_split(pair(split_heads(self.W_q(y), self.num_heads)), places, self.base)
        {TURN_K} -> K = apply_rope_half_split(pair(split_heads(self.W_k(y), self.num_kv_heads)), places, self.base)
        The files on the hub pair channel i with channel i + d/2 of a head.
    not_turned: queries and keys are not rotated
        {TURN_Q} -> Q = split_heads(self.W_q(y), self.num_heads)
        {TURN_K} -> K = split_heads(self.W_k(y), self.num_kv_heads)
        This block adds no position vectors, so without RoPE the scores don't depend on positions.
    only_queries_turned: the keys are not rotated
        {TURN_K} -> K = split_heads(self.W_k(y), self.num_kv_heads)
        If only the query is rotated, the score doesn't depend on the distance. What else has to be rotated?
    values_turned: the values are also rotated
        {CUT_V} -> V = apply_rope_half_split(split_heads(self.W_v(y), self.num_kv_heads), places, self.base)
        Positions affect the attention weights through queries and keys. Values are not rotated.
    turned_before_the_cut: RoPE is applied before the heads are split
        {TURN_Q} -> Q = split_heads(apply_rope_half_split(self.W_q(y), places, self.base), self.num_heads)
        {TURN_K} -> K = split_heads(apply_rope_half_split(self.W_k(y), places, self.base), self.num_kv_heads)
        Both channels of a pair must belong to the same head, so split the heads first.
    base_ignored: RoPE does not use the argument base
        self.num_heads, self.num_kv_heads, self.base = num_heads, num_kv_heads, base
        -> self.num_heads, self.num_kv_heads, self.base = num_heads, num_kv_heads, 10000.0
        The constructor has an argument base. Where do you pass it on?
    eps_ignored: the norms do not use the argument eps
        RMSNorm(rms_norm, d_model, eps) -> RMSNorm(rms_norm, d_model)
        The constructor has an argument eps. Where do you pass it on?
    groups_in_turn: head h uses key-value head h % G
        {TURN_K} -> {TURN_K}.repeat(1, self.num_heads // self.num_kv_heads, 1, 1)
        {CUT_V} -> {CUT_V}.repeat(1, self.num_heads // self.num_kv_heads, 1, 1)
        Neighboring heads use the same key-value head. With 6 heads and 2 key-value heads, heads 0, 1 and 2 use the
        first.
    layer_norms: the norms are layer norms, which subtract the mean
        y = self.norm1(x) -> y = self.norm1(x - x.mean(-1, keepdim=True))
        self.feed_forward(self.norm2(x)) -> self.feed_forward(self.norm2(x - x.mean(-1, keepdim=True)))
        This block uses the norm of exercise 14.1.
    post_norm: the block is post-norm, with norms after the sums
        y = self.norm1(x) -> y = x
        {FIRST} -> x = self.norm1(x + self.W_o(merge_heads(grouped_query_attention(Q, K, V, mask))))
        {SECOND} -> return self.norm2(x + self.feed_forward(x))
        In pre-norm each sublayer reads a normalized input, and the residual stream itself is not normalized.
    residual_normalized: the residual is taken from the normalized x
        {FIRST} -> x = y + self.W_o(merge_heads(grouped_query_attention(Q, K, V, mask)))
        The residual is x itself, before the norm. To what do you add the output of attention?
    no_residual: there is no residual connection around attention
        {FIRST} -> x = self.W_o(merge_heads(grouped_query_attention(Q, K, V, mask)))
        If both sublayers returned zeros, the block should return x. What does yours return?
    no_last_projection: W_o is not used
        self.W_o(merge_heads(grouped_query_attention(Q, K, V, mask))) -> merge_heads(grouped_query_attention(Q, K, V, mask))
        After the heads are merged, which layer should mix them?
    no_second_residual: there is no residual connection around the feed-forward network
        return x + self.feed_forward -> return self.feed_forward
        If both sublayers returned zeros, the block should return x. What does yours return?
    second_norm_forgotten: the feed-forward network reads x without a norm
        self.feed_forward(self.norm2(x)) -> self.feed_forward(x)
        Each sublayer gets a normalized input. Where do you use norm2?
""")

# ---------------------------------------------------------------- rename_llama


def published_state(draw, layers, D, F, dtype=FLOAT32, tied=False, more=False):
    state = {"model.embed_tokens.weight": draw.normal(7, D, dtype=dtype)}
    sizes = {f"self_attn.{letter}_proj": (D, D) for letter in "qo"}
    sizes |= {f"self_attn.{letter}_proj": (D // 2, D) for letter in "kv"}
    sizes |= {"mlp.gate_proj": (F, D), "mlp.up_proj": (F, D), "mlp.down_proj": (D, F)}
    sizes |= {"input_layernorm": (D,), "post_attention_layernorm": (D,)}
    for i in range(layers):
        for part, size in sizes.items():
            state[f"model.layers.{i}.{part}.weight"] = draw.normal(*size, dtype=dtype)
        if more:
            state[f"model.layers.{i}.self_attn.rotary_emb.inv_freq"] = draw.normal(D // 2, dtype=dtype)
    state["model.norm.weight"] = draw.normal(D, dtype=dtype)
    return state if tied else state | {"lm_head.weight": draw.normal(7, D, dtype=dtype)}


def cases_rename_llama(draw):
    def case(layers, D, F, note=None, part="values", **options):
        state = published_state(draw, layers, D, F, **options)
        return Case((state,), part=part, view="entries_of_a_decoder", note=note or f"a file of {layers} layers")

    return [
        case(2, 4, 6),
        case(1, 6, 5, note="a file of one layer"),
        case(2, 4, 7, tied=True, part="a file without lm_head", note="a file of 2 layers without lm_head"),
        case(12, 2, 3, part="more than ten layers"),
        case(2, 4, 6, more=True, part="other entries in the file"),
        case(2, 4, 6, dtype=FLOAT64, part=DTYPE),
    ]


# Real models have more than ten layers, so this part weighs as much as all others.
rename_llama = Exercise("rename_llama", cases_rename_llama, weights={"more than ten layers": 11}).with_mistakes("""
    norms_exchanged: the two norms are exchanged
        "input_layernorm": "norm1" -> "input_layernorm": "norm2"
        "post_attention_layernorm": "norm2" -> "post_attention_layernorm": "norm1"
        One of the names is misleading, because post_attention_layernorm comes before the feed-forward network.
    gate_and_up_exchanged: gate and up are exchanged
        **{f"mlp.{part}_proj": f"feed_forward.{part}" for part in ("gate", "up", "down")},
        -> "mlp.gate_proj": "feed_forward.up", "mlp.up_proj": "feed_forward.gate", "mlp.down_proj": "feed_forward.down",
        Their shapes are equal, so loading raises no error, but only gate is followed by an activation.
    keys_and_values_exchanged: keys and values are exchanged
        **{f"self_attn.{letter}_proj": f"W_{letter}" for letter in "qkvo"},
        -> **{f"self_attn.{letter}_proj": f"W_{other}" for letter, other in zip("qkvo", "qvko")},
        Their shapes are equal, so loading raises no error.
    not_tied: unembed is missing when the file has no lm_head
        mine.setdefault("unembed.weight", mine["tokens.weight"]) -> pass
        Some small models use weight tying, so unembed.weight is the embedding.
    always_tied: unembed is always the embedding
        mine.setdefault("unembed.weight", mine["tokens.weight"]) -> mine["unembed.weight"] = mine["tokens.weight"]
        If the file has an lm_head, that is the weight of unembed.
    counted_from_one: layers are counted from 1
        mine[f"blocks.{i}. -> mine[f"blocks.{int(i) + 1}.
        Both naming schemes count layers from 0.
    first_digit_only: only the first digit of a layer's number was read
        i, _, inside = part.removeprefix("model.layers.").partition(".")
        -> i, _, inside = part.removeprefix("model.layers.").partition("."); i = i[:1]
        The smallest Llama 2 has 32 layers. Which name does layer 11 get in your code?
""")

# ---------------------------------------------------------------- sliding_window_mask

WITH_CACHE, SINKS, WIDE = "more keys than queries", "sinks", "a window wider than the text"


def cases_sliding_window_mask(draw):
    T = draw.integer(9, 13)
    return [
        Case((T,), {"window": 3}),
        Case((T + 1,), {"window": 5}),
        Case((8,), part="a window of 4 by default"),
        Case((3, 11), {"window": 4}, part=WITH_CACHE),
        Case((2, T), {"window": 3, "sinks": 1}, part=WITH_CACHE),
        Case((1, 9), {"window": 2}, part=WITH_CACHE, note="one new token, as with a cache"),
        Case((6, 9), {"window": 2}, part=WITH_CACHE),
        Case((T,), {"window": 3, "sinks": 2}, part=SINKS),
        Case((10,), {"window": 2, "sinks": 4}, part=SINKS),
        Case((4, 9, 2, 3), part=WITH_CACHE, note="T_q, T_k, window and sinks by position"),
        Case((7,), {"window": 1}, part="a window of one"),
        Case((7,), {"window": 1, "sinks": 1}, part="a window of one"),
        Case((5,), {"window": 9}, part=WIDE),
        Case((6,), {"window": 2, "sinks": 8}, part=WIDE, note="more sinks than keys"),
        Case((1,), {"window": 3}, part="a single token"),
    ]


SEEN = "(behind >= 0) & ((behind < window) | (key < sinks))"
QUERY = "torch.arange(T_k - T_q, T_k)[:, None]"
sliding_window_mask = Exercise(
    "sliding_window_mask", cases_sliding_window_mask, axes=("query", "key"), apart=(WITH_CACHE,)
).with_mistakes(f"""
    one_too_many: the window is one key too wide
        behind < window -> behind <= window
        A window of 1 contains only the query's own position.
    one_too_few: the window is one key too narrow
        behind < window -> behind < window - 1
        Count the True entries in the last row. How many should there be?
    future_seen: the window extends to both sides
        {SEEN} -> (behind.abs() < window) | (key < sinks)
        A query must never attend to later keys.
    future_open: all later keys are visible
        {SEEN} -> (behind < window) | (key < sinks)
        A query must never attend to later keys. What keeps row 0 of your mask from attending to the last key?
    future_without_offset: the causal condition counts queries from 0, but the window doesn't
        behind >= 0 -> torch.arange(T_q)[:, None] >= key
        With more keys than queries, both conditions need the query's position among the keys.
    sinks_from_the_future: a query attends to sinks that come after it
        {SEEN} -> (behind >= 0) & (behind < window) | (key < sinks)
        Which keys may the query at position 0 attend to, with four sinks?
    aligned_at_the_start: the first query is at the first key
        {QUERY} -> torch.arange(T_q)[:, None]
        If three new queries belong to the last three of eleven keys, at which position is the first query?
    no_window: all earlier keys are visible
        {SEEN} -> behind >= 0
        This is the plain causal mask. Which keys are too far back for the last query?
    sinks_ignored: the sinks are masked
        (behind < window) | (key < sinks) -> behind < window
        The first keys, as many as sinks says, stay visible to all later queries.
    sinks_only: a key must be both in the window and a sink
        (behind < window) | (key < sinks) -> (behind < window) & (key < sinks)
        A key is visible if it is in the window or a sink. Which operator means or?
    window_without_offset: the window counts queries from 0, but the causal condition doesn't
        behind < window -> torch.arange(T_q)[:, None] - key < window
        With more keys than queries, both conditions need the query's position among the keys.
    inverted: the mask is True where a key is masked
        return {SEEN} -> return ~({SEEN})
        In this course True means may attend.
""")

# ---------------------------------------------------------------- train_bpe, encode_bpe

TIES, OVERLAP, SPACES, WIDE_SPACES, NOT_ASCII, UNKNOWN = (
    "ties",
    "the same byte in a row",
    "pieces and white space",
    "white space of several bytes",
    "letters of several bytes",
    "what was never learned",
)
ALPHABET = "bcdefghijklmnopqrstuvwxyz"


def in_letters(draw, pattern, letters=None):
    """The pattern with its capitals A, B, C, ... replaced by lowercase letters in alphabetical order."""
    letters = sorted(draw.sample(ALPHABET, 8)) if letters is None else letters
    return "".join(letters["ABCDEFGH".index(c)] if c in "ABCDEFGH" else c for c in pattern)


PLAIN = "AB ABC ABCD ABAB EF EFG AB CAB ABC EF GH AAB EFEF ABH"


def cases_train_bpe(draw):
    def case(text, num_merges, **options):
        return Case((text, num_merges), **options)

    letters = sorted(draw.sample(ALPHABET, 8))
    return [
        case(in_letters(draw, PLAIN), 6),
        case(in_letters(draw, "CAB CAB CABD EAB EABF GH GHGH AB"), 9),
        case(in_letters(draw, "AB CD EF GH BA DC"), 4, part=TIES),
        case(in_letters(draw, "AB AB CD CD EA EA"), 5, part=TIES),
        case(in_letters(draw, "AAAA BCB BCB", letters), 2, part=OVERLAP),
        case(in_letters(draw, "AAAAAAA AAA BB"), 4, part=OVERLAP),
        case(in_letters(draw, "AB AB AB\nAB\tC  C   C\n\nAB"), 7, part=SPACES),
        case(in_letters(draw, "XY XY AB BC AB BC AB BC CD"), 12, part=SPACES),
        case(in_letters(draw, "Aé Aé Bé Cè € € A€"), 7, part=NOT_ASCII),
        case(in_letters(draw, "東京 東 京東 A京"), 8, part=NOT_ASCII),
        case(in_letters(draw, "AB\u3000AB\u3000C"), 4, part=NOT_ASCII, note="a wide space of three bytes"),
        case(in_letters(draw, "ABC"), 9, part="nothing left to merge"),
        case("", 3, part="nothing left to merge", note="an empty text"),
        # (AB, C) and (A, D) both occur twice. The first is larger as a tuple, and the second as a joined string.
        case(in_letters(draw, "AD\nABC\nABC\nAD\nAB"), 2, part=TIES),
        case(" " + in_letters(draw, "AB\n"), 3, part=SPACES, note="a text that begins with a space"),
        case(in_letters(draw, PLAIN), 0, part="no merges"),
    ]


FINDALL = 're.findall(r" ?\\S+|\\s", text)'
BEST = "max(pairs, key=lambda pair: (pairs[pair], pair))"
train_bpe = Exercise("train_bpe", cases_train_bpe, apart=(SPACES, NOT_ASCII)).with_mistakes(f"""
    counted_once: pairs are counted once, before the first merge
        while len(merges) < num_merges: -> for _ in ():
        return merges
        -> pairs = Counter()
        |    for tokens, count in pieces:
        |        for pair in pairwise(tokens):
        |            pairs[pair] += count
        |    return sorted(pairs, key=lambda pair: (pairs[pair], pair), reverse=True)[:num_merges]
        Each merge makes a new token, which forms new pairs, so count again after each merge.
    smaller_of_a_tie: ties are broken in favor of the smaller pair
        {BEST} -> min(pairs, key=lambda pair: (-pairs[pair], pair))
        Which of several equally frequent pairs does the exercise ask for?
    first_of_a_tie: ties are broken in favor of the pair that came first
        {BEST} -> max(pairs, key=pairs.get)
        For equally frequent pairs, their order in the text must not matter.
    across_pieces: merges cross the borders of pieces
        Counter({FINDALL}) -> Counter([text] if text else [])
        Split the text into pieces first. A word and the space after it are never in the same piece.
    spaces_apart: the space is not part of the next word's piece
        {FINDALL} -> text.split()
        In the example ` ab`, the space is merged with the word, so both belong to the same piece.
    every_piece_once: a piece that occurs five times counts once
        pairs[pair] += count -> pairs[pair] += 1
        Each pair of a piece counts as often as the piece occurs.
    overlapping_not_counted: overlapping pairs are counted only once
        for pair in pairwise(tokens): -> for pair in [p for n, p in enumerate(pairwise(tokens))
        |                             if not (n and n % 2 and tokens[n - 1] == tokens[n] == tokens[n + 1])]:
        In this exercise `aaaa` contains (a, a) three times.
    once_is_not_enough: your loop stops when no pair occurs twice
        if not pairs: -> if not pairs or max(pairs.values()) < 2:
        Here even a pair that occurs only once is merged.
    characters: the tokens start as characters instead of bytes
        [bytes([byte]) for byte in piece.encode()] -> [character.encode() for character in piece]
        The letter é is two bytes, so it starts as two tokens.
    tokens_returned: the new tokens instead of the pairs
        merges.append(best) -> merges.append(best[0] + best[1])
        To apply the merges later, you need to know what was merged.
    first_place_only: each merge is applied only once per piece
        (merge_pair(tokens, best), count) for tokens, count in pieces
        -> (tokens[: (k := next((k for k, p in enumerate(pairwise(tokens)) if p == best), len(tokens)))]
        |                   + ([best[0] + best[1]] + tokens[k + 2 :] if k < len(tokens) else []), count)
        |                  for tokens, count in pieces
        The pair becomes one token wherever it occurs, even several times in a piece.
""")


def cases_encode_bpe(draw):
    from helpers.blocks import train_bpe

    def case(text, taught, num_merges, **options):
        return Case((text, train_bpe(taught, num_merges)), **options)

    letters = sorted(draw.sample(ALPHABET, 8))

    def at(pattern):
        return in_letters(draw, pattern, letters)

    # (B, C) is learned first, and then (A, B), which competes with it, so the longest match is not always right.
    rivals = at("BC BC BC BC BCD BCD AB AB AB ABE ABE")
    return [
        case(at("ABC AB CABD ABAB EF GHAB"), at(PLAIN), 7),
        case(at("ABC ABCD ABE BC AB"), rivals, 6),
        case(at("ABC CAB ABCABC"), rivals, 4, part="the order of the merges"),
        case(at("AAAAA AAA BAAAA"), at("AAAA AAAA AA"), 2, part=OVERLAP),
        case(at("AB AB  AB\n\nAB\tC AB "), at("AB AB AB C AB\nAB"), 4, part=SPACES),
        # The white space ends in the same byte as a letter of the training text, so a merge could cross the boundary.
        case(
            at("C\u00a0B AB"),
            at("àB ŠB ĠB"),
            1,
            part=WIDE_SPACES,
            note="a no-break space, of two bytes, between two letters",
        ),
        case(
            at("C\u3000B AB"),
            at("ÀB ĀB ɀB"),
            1,
            part=WIDE_SPACES,
            note="a wide space, of three bytes, between two letters",
        ),
        case(at("Aé é 東京 👋 A€"), at("Aé Aé Bé 東京 東京 € €"), 8, part=NOT_ASCII),
        case(at("GH 👋 XY"), at("AB AB CD"), 3, part=UNKNOWN),
        case(at("AB CD"), "", 0, part="no merges"),
        case(at("ABC\nAB\nBC"), at("BC\nBC\nBC\nBC\nABC\nABC\nABC\nAB\nAB"), 3, part="the order of the merges"),
        # The longer (AB, C) is learned before (C, D).
        case(at("ABCD\nABC\nCD"), at("ABC\nABC\nABC\nABC\nAB\nCD\nCD\nCD"), 3, part="the order of the merges"),
        case("", at(PLAIN), 5, part="an empty text"),
    ]


APPLIED = "tokens = merge_pair(tokens, pair)"
# Tokens without line breaks are useless, so SPACES weighs as much as all other parts. Merges learned inside pieces
# can cross their boundaries only at white space of several bytes, so only WIDE_SPACES tests the splitting.
encode_bpe = Exercise(
    "encode_bpe", cases_encode_bpe, apart=(SPACES, WIDE_SPACES, NOT_ASCII, UNKNOWN), weights={SPACES: 20}
).with_mistakes(f"""
    last_merge_first: the merges are applied in reverse order
        for pair in merges: -> for pair in merges[::-1]:
        A late merge needs the tokens that earlier merges make.
    longest_match: the longest known token comes first, as in lesson 1
        for pair in merges:
        -> known, rest, tokens = {{a + b for a, b in merges}}, b"".join(tokens), []
        |        while rest:
        |            n = next((n for n in range(len(rest), 1, -1) if rest[:n] in known), 1)
        |            tokens.append(rest[:n])
        |            rest = rest[n:]
        |        for pair in []:
        An early merge may use up a letter that a longer token would need.
    first_place_only: each merge is applied only once per piece
        {APPLIED} -> tokens = (tokens[: (k := next((k for k, p in enumerate(pairwise(tokens)) if p == pair), len(tokens)))]
        |                      + ([pair[0] + pair[1]] + tokens[k + 2 :] if k < len(tokens) else []))
        Merge the pair wherever it occurs in the piece.
    leftmost_first: known pairs are merged from left to right, in whatever order they were learned
        for pair in merges:
        -> while (k := next((k for k, p in enumerate(pairwise(tokens)) if p in merges), None)) is not None:
        |            tokens[k : k + 2] = [tokens[k] + tokens[k + 1]]
        |        for pair in []:
        In each piece, apply the merge that was learned first, wherever its pair occurs.
    one_merge_a_piece: only one merge is applied in each piece
        {APPLIED} -> before, tokens = tokens, merge_pair(tokens, pair)
        |            if before != tokens:
        |                break
        A long word can take many merges. When does your loop end?
    last_piece_only: only the tokens of the last piece are returned
        found += tokens -> found = tokens
        What happens to the tokens of the first word when your loop reaches the second word?
    white_space_lost: white space that is not followed by a word is lost
        {FINDALL} -> re.findall(r" ?\\S+", text)
        Joined, the tokens must be the bytes of the text, including double spaces, tabs and line breaks.
    spaces_apart: the space is not part of the next word's piece
        {FINDALL} -> re.findall(r"\\S+|\\s", text)
        The space before a word belongs to the same piece as the word.
    across_pieces: merges cross the borders of pieces
        {FINDALL} -> [text]
        Split the text as in `train_bpe` before you apply merges, because no merge crosses the border of a piece.
    nothing_merged: single bytes, without any merge
        {APPLIED} -> pass
        Start from single bytes and then apply the merges.
    characters: the tokens start as characters instead of bytes
        [bytes([byte]) for byte in piece.encode()] -> [character.encode() for character in piece]
        A character may have several bytes, each of which starts as its own token.
""")

# ---------------------------------------------------------------- LoRA

START, MERGED, LEARNS = "at the start", "merged", "learning"


def cases_LoRA(draw):
    def numbers(fan_in, fan_out, rank, dtype, bias):
        weight = draw.normal(fan_out, fan_in, dtype=dtype, scale=fan_in**-0.5)
        layer = Stub("linear", (weight, draw.normal(fan_out, dtype=dtype) if bias else None))
        A, B = draw.normal(rank, fan_in, dtype=dtype, scale=fan_in**-0.5), draw.normal(fan_out, rank, dtype=dtype)
        return layer, {"A": A, "B": B}

    def case(lead, fan_in=7, fan_out=5, rank=3, alpha=2.0, dtype=FLOAT32, bias=False, via=MODULE, **options):
        layer, thin = numbers(fan_in, fan_out, rank, dtype, bias)
        x = draw.normal(*lead, fan_in, dtype=dtype)
        note = f"a layer from {fan_in} to {fan_out}, rank {rank}, alpha {'not given' if alpha is None else alpha}"
        init = (layer, rank) if alpha is None else (layer, rank, alpha)
        return Case((init, thin, (x,), {}), via=via, **{"note": note} | options)

    def start(dtype, bias, rank=3, via="lora_at_the_start", part=START):
        layer, _ = numbers(7, 5, rank, dtype, bias)
        note = f"a layer from 7 to 5 of {str(dtype).removeprefix('torch.')}, rank {rank}"
        return Case((layer, rank, draw.normal(4, 7, dtype=dtype)), via=via, part=part, note=note)

    return [
        case((4,)),
        case((2, 3), 6, 9, 2, 16.0, bias=True),
        case((4,), rank=4, alpha=None, part="alpha of 1 by default"),
        case((), part=LEADING),
        case((2, 3, 4), part=LEADING),
        case((4,), 6, 6, 2, part="a square layer"),
        case((4,), rank=1, alpha=3, part="rank 1"),
        case((4,), dtype=FLOAT64, part=DTYPE, tolerance=EXACT),
        case((4,), dtype=FLOAT64, bias=True, part=GRADIENT, gradient=True),
        start(FLOAT32, True),
        start(FLOAT64, False, 2),
        start(FLOAT32, True, 2, "lora_after_a_step", LEARNS),
        case((4,), via="lora_merged", part=MERGED),
        case((2, 3), 6, 9, 2, 16.0, bias=True, via="lora_merged", part=MERGED),
        case((4,), 6, 6, 4, None, bias=True, dtype=FLOAT64, via="lora_merged", part=MERGED),
    ]


ADDED, SCALE = "self.scale * (x @ self.A.T @ self.B.T)", "self.scale = alpha / rank"
RANDOM = "torch.randn(rank, W.shape[1], dtype=W.dtype, device=W.device) * W.shape[1] ** -0.5"
ZEROS = "torch.zeros(W.shape[0], rank, dtype=W.dtype, device=W.device)"
# An answer that never learns loses half of the points, so LEARNS and START weigh as much as all other parts.
LORA_WEIGHTS = {LEARNS: 22, START: 4, MERGED: 8}
LoRA = Exercise("LoRA", cases_LoRA, axes=("row", "channel"), weights=LORA_WEIGHTS).with_mistakes(f"""
    rank_forgotten: multiplied by alpha, but not divided by the rank
        {SCALE} -> self.scale = alpha
        A larger rank adds more terms. Which factor in the formula compensates for this?
    alpha_forgotten: divided by the rank, but not multiplied by alpha
        {SCALE} -> self.scale = 1 / rank
        Where do you use alpha?
    not_scaled: the product is not scaled by alpha / rank
        {SCALE} -> self.scale = 1.0
        Which factor is in front of the product in the formula?
    only_the_difference: the given layer is not used
        self.linear(x) + {ADDED} -> {ADDED}
        At the start B is zero, and the outputs should be those of the given layer.
    bias_forgotten: the bias of the given layer is lost
        self.linear(x) + {ADDED} -> x @ self.linear.weight.T + {ADDED}
        The given layer may have a bias.
    old_layer_scaled: the factor also multiplies the output of the given layer
        self.linear(x) + {ADDED} -> self.scale * (self.linear(x) + x @ self.A.T @ self.B.T)
        At the start the outputs should be those of the given layer, whatever alpha is.
    B_random: B is not zero at the start
        {ZEROS} -> torch.randn(W.shape[0], rank, dtype=W.dtype)
        At the start the trained network should be unchanged, so the difference must be zero.
    forward_not_scaled: multiplied by alpha / rank in merged() only
        {ADDED} -> x @ self.A.T @ self.B.T
        Both methods add the difference, so forward must scale it as merged() does.
    A_zeros: A is zero at the start as well
        {RANDOM} -> torch.zeros(rank, W.shape[1], dtype=W.dtype)
        The gradient of B contains A as a factor and vice versa, so if both are zero, neither will ever change.
    zeros_in_A: A is zero at the start, but B isn't
        {RANDOM} -> torch.zeros(rank, W.shape[1], dtype=W.dtype)
        {ZEROS} -> torch.randn(W.shape[0], rank, dtype=W.dtype)
        Either choice would work, but the exercise asks for zeros in B.
    not_frozen: the given layer is still trained
        linear.requires_grad_(False) -> linear
        Which parameters of your module require gradients?
    copied: the module keeps a copy of the given layer
        linear.requires_grad_(False) -> copy.deepcopy(linear).requires_grad_(False)
        Keep the given layer itself, because it may be shared with other parts of a network.
    merged_not_scaled: merged without the factor
        new.weight += self.scale * self.B @ self.A -> new.weight += self.B @ self.A
        The merged layer must give the same outputs as the module.
    merged_old_layer: merged() returns the weights of the given layer
        new.weight += self.scale * self.B @ self.A -> pass
        The new weight must include what A and B have learned.
    merged_difference_alone: the merged layer contains only the difference
        new.weight += self.scale * self.B @ self.A -> new.weight.copy_(self.scale * self.B @ self.A)
        The merged layer must include the given layer as well as the difference.
    merged_in_place: merged() changes the given layer
        new = copy.deepcopy(self.linear) -> new = self.linear
        merged() must not change the module, but in your code the difference now counts twice in forward.
    merged_shares_its_bias: the new layer shares its bias with the given one
        new = copy.deepcopy(self.linear) -> new = copy.deepcopy(self.linear)
        |        new.bias = self.linear.bias
        If the new layer is trained, the given one must not change.
    merged_without_bias: the new layer never has a bias
        new = copy.deepcopy(self.linear) -> new = copy.deepcopy(self.linear)
        |        new.bias = None
        The given layer may have a bias.
""")

# ---------------------------------------------------------------- quizzes

exercises = [
    rms_norm,
    SwiGLU,
    apply_rope_half_split,
    LlamaBlock,
    sliding_window_mask,
    LoRA,
    interleaved_to_half_split,
    rename_llama,
    train_bpe,
    encode_bpe,
]
quizzes = listed_quizzes("""
    quiz_1: b
        a: Both files hold matrices of the same shapes, and names are easily translated. Loading succeeds.
        b: A single token comes out right, and so do shapes, names and lengths. From the second token on the scores are
           wrong. A trained model would write nonsense, which does not tell you why.
        c: In both layouts the scores depend only on distances, but their values differ, because the angles belong to
           other channels.
    quiz_2: d
        a: Each of the 32 query heads still scores every key of its group.
        b: Only W_k and W_v shrink. In the block of Llama 3 they have a twenty-sixth of the parameters.
        c: The feed-forward network has nothing to do with heads. In the block of Llama 3 it has four fifths of the
           parameters.
        d: The cache holds keys and values, and with 8 heads there are four times fewer of them for each token.
""")
