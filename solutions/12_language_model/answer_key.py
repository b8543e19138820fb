"""Cases and known mistakes of lesson 12: n-grams, batches, a GPT, and generation."""

import torch
from torch import nn

from helpers import corpus
from helpers.checking.vocabulary import DTYPE, GRADIENT, Case, Exercise, listed_quizzes

FORBIDDEN = ("transformer",)
INSTEAD = "build it from the blocks of lessons 8 and 9."

# ---------------------------------------------------------------- ngram_loss

UNSEEN = "unseen contexts"
NEVER = "tokens that never occurred"


def cases_ngram_loss(draw):
    def case(order, V, alpha, N=60, M=23, **options):
        base = draw.integers(0, max(2, V - 1), (7,))
        train = torch.where(draw.uniform(N) < 0.7, base.repeat(N // 7 + 1)[:N], draw.integers(0, V, (N,)))
        test = torch.where(draw.uniform(M) < 0.6, base.repeat(M // 7 + 1)[:M], draw.integers(0, V, (M,)))
        if order == 1:
            train[:V] = torch.arange(V)  # so that the test text has no unknown token
        return Case((train, test, order, V, alpha), view="whole_contexts_only", **options)

    # Contexts with the same digits, such as (1, 12) and (11, 2), which a dictionary key of joined digits confuses.
    a, b = (draw.permutation(17)[:2] + 13).tolist()
    digits = [1, 12, a, 11, 2, b, 12, 0, a, 2, 1, b, 0, 12, a, 1, 2, b, 1, 1, 12]
    lists = (digits * 4, digits[3:] + [11, 1, 2], 3, 31, 0.3)
    train, test, *_ = case(2, 5, 0.5).args
    return [
        case(2, 5, 0.5, note="a bigram model"),
        case(3, 4, 0.1, note="order 3"),
        case(1, 6, 1.0, part="order 1", note="order 1, no context at all"),
        case(4, 5, 0.01, part=UNSEEN, note="order 4, an alpha of 0.01"),
        case(5, 7, 1.0, M=9, part=UNSEEN, note="order 5, an alpha of 1"),
        case(2, 9, 2.0, part="a large alpha", note="order 2, an alpha of 2"),
        Case(lists, view="whole_contexts_only", part="lists of ids", note="order 3, ids of one and two digits"),
        Case((train, test, 2, 9, 0.5), view="whole_contexts_only", part=NEVER, note="only 5 of 9 tokens in train"),
    ]


ngram_loss = Exercise("ngram_loss", cases_ngram_loss).with_mistakes("""
    vocabulary_of_the_text: V is the number of different tokens in the training text
        train, test = [int(i) for i in train], [int(i) for i in test]
        -> train, test = [int(i) for i in train], [int(i) for i in test]
        |    vocab_size = len(set(train))
        A token that never occurred in train can occur in test. Which argument says how many tokens there are?
    tensors_as_keys: no context of the test was found in train
        train, test = [int(i) for i in train], [int(i) for i in test] -> pass
        Are your keys tensors? Two equal tensors are two different keys of a dictionary, because tensors are hashed by
        identity.
    order_is_the_context: order was taken for the number of context tokens
        train, test = [int(i) for i in train], [int(i) for i in test]
        -> train, test = [int(i) for i in train], [int(i) for i in test]
        |    order += 1
        Order 1 has no context at all, and order 2 is the Markov chain of lesson 3. What does order count?
    last_windows_left_out: the last token of each text is left out
        range(order - 1, len(train)): -> range(order - 1, len(train) - 1):
        range(order - 1, len(test)): -> range(order - 1, len(test) - 1):
        (len(test) - order + 1) -> (len(test) - order)
        The end of a range is excluded. How many windows of two tokens does a text of three tokens have?
    alpha_not_in_the_total: the denominator adds alpha only once, so probabilities do not sum to 1
        + alpha * vocab_size -> + alpha
        Each of the V counts of a row grows by alpha. By how much does their sum grow?
    summed: the sum over positions, not their mean
        return total / (len(test) - order + 1) -> return total
        The result is in nats per token. Which step is missing after the sum?
    divided_by_all_places: divided by the number of all tokens, including those without a full context
        (len(test) - order + 1) -> len(test)
        You add up fewer terms than the test text has tokens. Divide by the number of terms.
    wrong_sign: the mean of log p without the minus sign
        total -= -> total +=
        A loss can't be negative, because log p is at most 0.
    divided_by_the_whole_text: each count was divided by the length of train
        contexts.get(context, 0) + alpha * vocab_size) -> len(train) + alpha * vocab_size)
        Your code gives the joint probability of context and token. Which denominator gives the conditional one?
    unseen_skipped: positions with an unseen context are skipped
        context = tuple(test[t - order + 1 : t])
        -> context = tuple(test[t - order + 1 : t])
        |        if context not in contexts:
        |            continue
        return total / (len(test) - order + 1)
        -> known = [t for t in range(order - 1, len(test)) if tuple(test[t - order + 1 : t]) in contexts]
        |    return total / max(1, len(known))
        After an unknown context all V tokens are equally likely. What does such a position cost?
    alpha_in_the_count_only: alpha is added to the counts of pairs, but not to those of contexts
        contexts.get(context, 0) + alpha * vocab_size) -> max(contexts.get(context, 0), 1))
        Each of the V counts of a row grows by alpha. By how much does their sum grow?
    last_context_counted: the contexts were counted up to the end of train, where nothing follows
        total = 0.0 -> last = tuple(train[len(train) - order + 1 :])
        |    contexts[last] = contexts.get(last, 0) + 1
        |    total = 0.0
        A context counts as often as a token follows it. What follows the last tokens of train?
""")

# ---------------------------------------------------------------- get_batch


def cases_get_batch(draw):
    def case(N, block_size, batch_size, **options):
        data = draw.permutation(N) * 3 + 7
        args = (data, block_size, batch_size, draw.integer(0, 10_000))
        note = f"a text of {N} tokens, {batch_size} {'window' if batch_size == 1 else 'windows'} of {block_size}"
        return Case(args, via="drawn_batches", view="batch_behavior", note=note, **options)

    return [
        case(900, 6, 5),
        case(7, 4, 3000, part="every start is drawn"),
        case(11, 6, 400, part="every start is drawn"),
        case(5, 4, 30, part="a text of block_size + 1 tokens"),
        case(400, 1, 4, part="windows of one token"),
        case(40, 3, 1, part="a batch of one"),
    ]


get_batch = Exercise("get_batch", cases_get_batch).with_mistakes("""
    not_shifted: y is x itself
        data[positions + 1] -> data[positions]
        Should a position predict the token that it has just read?
    shifted_backward: y is one position behind x
        return data[positions], data[positions + 1] -> return data[positions + 1], data[positions]
        The target of a position is the token that comes next.
    last_start_left_out: the last possible start is never drawn
        torch.randint(len(data) - block_size, -> torch.randint(len(data) - block_size - 1,
        `torch.randint` excludes its upper bound.
    one_place_beyond: a window may begin too late, so that its last target is missing
        torch.randint(len(data) - block_size, -> torch.randint(len(data) - block_size + 1,
        Which is the last start that leaves enough tokens for a window and its last target?
    one_window_for_all: every row is the same window
        (batch_size,), generator=generator) -> (1,), generator=generator).expand(batch_size)
        You need one start for each row of the batch. How many do you draw?
    generator_not_used: the generator is not used
        , generator=generator) -> )
        With the same generator the batch has to be the same. Which argument of torch.randint takes it?
    own_generator: every batch is the same, whatever the generator
        generator=generator) -> generator=torch.Generator().manual_seed(0))
        Training needs a new batch at each step. Which generator do you use, and when is its seed set?
    rolled_in_the_window: the last target is the first token of its own window
        data[positions + 1] -> data[positions].roll(-1, dims=1)
        The target of the last position is in the text, after the window. Where does your last target come from?
    without_replacement: no start is drawn twice
        torch.randint(len(data) - block_size, (batch_size,), generator=generator)
        -> torch.randperm(len(data) - block_size, generator=generator)[:batch_size]
        With replacement, a batch may contain more windows than there are starts. Does yours?
    drawn_apart: x and y were drawn separately
        return data[positions], data[positions + 1]
        -> others = torch.randint(len(data) - block_size, (batch_size,), generator=generator)[:, None]
        |    return data[positions], data[others + torch.arange(block_size) + 1]
        x and y use the same start in each row, one position apart.
    last_answers_alone: y has only one token per window
        data[positions + 1] -> data[positions[:, -1] + 1]
        Every position of a window predicts its next token. How many targets does a window need?
    windows_side_by_side: starts are multiples of the window's length
        starts[:, None] + -> (starts - starts % block_size)[:, None] +
        Windows may overlap, because every position can be a start.
""")

# ---------------------------------------------------------------- next_token_loss


LARGE = "large logits"


def cases_next_token_loss(draw):
    def case(B, T, V, dtype=torch.float32, scale=2.0, **options):
        return Case((draw.normal(B, T, V, dtype=dtype, scale=scale), draw.integers(0, V, (B, T))), **options)

    def far_apart(**options):
        """Large logits. One target has by far the largest logit, and another one the smallest."""
        logits, targets = draw.normal(3, 2, 6, scale=400.0), draw.integers(0, 6, (3, 2))
        logits[0, 0, targets[0, 0]] += 3000.0
        logits[2, 1, targets[2, 1]] -= 3000.0
        return Case((logits, targets), note="logits in the hundreds and thousands", **options)

    return [
        case(3, 4, 7, note="three texts of four tokens"),
        case(2, 7, 5, note="two texts of seven tokens"),
        case(1, 5, 6, part="one text"),
        case(4, 1, 6, part="one token"),
        far_apart(part=LARGE),
        case(2, 3, 5, torch.float64, part=DTYPE),
        case(2, 3, 5, torch.float64, part=GRADIENT, gradient=True),
    ]


LOSS = "F.cross_entropy(logits.flatten(0, 1), targets.flatten())"
# An infinite or NaN loss ends the training, so large logits weigh as much as all other parts.
next_token_loss = Exercise("next_token_loss", cases_next_token_loss, weights={LARGE: 13}).with_mistakes(f"""
    viewed: still the buggy version, `view` instead of exchanging two dimensions
        {LOSS} -> F.cross_entropy(logits.reshape(logits.shape[0], logits.shape[2], -1), targets)
        `view` keeps the memory order and changes only the shape. Where do the V logits of position 0 end up?
    summed: the sum over positions, not their mean
        targets.flatten()) -> targets.flatten(), reduction='sum')
        The loss should not grow with the length of the text.
    last_place_only: only the last position was used
        {LOSS} -> F.cross_entropy(logits[:, -1], targets[:, -1])
        Every position has a prediction and a target.
    probabilities_first: softmax was applied before the cross-entropy
        logits.flatten(0, 1) -> logits.flatten(0, 1).softmax(-1)
        `F.cross_entropy` takes logits and applies the softmax itself.
    softmax_over_the_places: the softmax runs over positions, not over the vocabulary
        {LOSS} -> -logits.log_softmax(1).gather(-1, targets[..., None]).mean()
        Along which dimension do the probabilities of one prediction sum to 1?
    shifted_again: logits and targets were shifted once more
        {LOSS} -> F.cross_entropy(logits[:, :-1].flatten(0, 1), targets[:, 1:].flatten())
        The targets are already the next tokens, because get_batch has shifted them.
    logarithm_of_zero: for large logits a probability is rounded to 0, and its logarithm is infinite
        {LOSS} -> -logits.softmax(-1).gather(-1, targets[..., None]).log().mean()
        The logarithm of 0 is infinite. Which function computes softmax and logarithm in one step?
    bare_logits: the logits were used as if they were log-probabilities
        {LOSS} -> F.nll_loss(logits.flatten(0, 1), targets.flatten())
        `F.nll_loss` expects log-probabilities. Which function computes them from logits?
    zero_left_out: positions whose target is token 0 are left out
        targets.flatten()) -> targets.flatten(), ignore_index=0)
        There is no padding here, so id 0 is a token like any other.
    exp_over_sum: exp of large logits is infinite, and the quotient is NaN
        {LOSS} -> -(logits.exp() / logits.exp().sum(-1, keepdim=True)).log().gather(-1, targets[..., None]).mean()
        float32 overflows at exp(89). What did lesson 6 subtract before taking exp?
    batch_and_positions_exchanged: the texts and the positions of the logits are exchanged, but not those of the targets
        logits.flatten(0, 1) -> logits.transpose(0, 1).flatten(0, 1)
        Row 1 of your flattened logits and entry 1 of your flattened targets should belong to the same position. Do they?
    transposed_and_flattened: two dimensions are exchanged, and then the result is reshaped into rows of V
        logits.flatten(0, 1) -> logits.transpose(1, 2).reshape(-1, logits.shape[-1])
        After the transpose, V is the middle dimension. Either exchange dimensions or flatten, but not both.
""")

# ---------------------------------------------------------------- GPT

SIZES = "other sizes"
AGAIN = "called twice"
WHOLE = "a text as long as block_size"
PROMISES = "block_size kept, nothing random in evaluation mode, causal in training mode"


def gpt_state(draw, V, D, layers, dtype):
    """A state dictionary for a GPT with the parameter names that the exercise prescribes."""

    def linear(name, rows, columns):
        return {
            f"{name}.weight": draw.normal(rows, columns, dtype=dtype, scale=1.5 * columns**-0.5),
            f"{name}.bias": draw.normal(rows, dtype=dtype, scale=0.5),
        }

    def norm(name):
        return {
            f"{name}.weight": draw.uniform(D, low=0.5, high=1.5, dtype=dtype),
            f"{name}.bias": draw.normal(D, dtype=dtype, scale=0.5),
        }

    state = {"tokens.weight": draw.normal(V, D, dtype=dtype)}
    for layer in (f"blocks.{i}" for i in range(layers)):
        for name in ("W_q", "W_k", "W_v", "W_o"):
            state |= linear(f"{layer}.attention.{name}", D, D)
        state |= linear(f"{layer}.feed_forward.up", 4 * D, D) | linear(f"{layer}.feed_forward.down", D, 4 * D)
        state |= norm(f"{layer}.norm1") | norm(f"{layer}.norm2")
    return state | norm("norm") | linear("unembed", V, D)


def with_encoder_blocks(vocab_size, block_size, d_model, num_heads, num_layers):
    """A GPT without RoPE."""
    from helpers.blocks import GPT, EncoderBlock

    model = GPT(vocab_size, block_size, d_model, num_heads, num_layers)
    model.blocks = nn.ModuleList(EncoderBlock(d_model, num_heads, 4 * d_model, True) for _ in range(num_layers))
    return model


def cases_GPT(draw):
    states = {}  # shared by all cases of the same sizes, so that the key stores each once

    def state_of(*sizes):
        if sizes not in states:
            states[sizes] = gpt_state(draw, *sizes)
        return states[sizes]

    def case(B, T, V=9, block_size=8, D=12, H=3, layers=2, dtype=torch.float32, **options):
        state, ids = state_of(V, D, layers, dtype), draw.integers(0, V, (B, T))
        args = ((V, block_size, D, H, layers), state, (ids,), {})
        tolerance = 4e-5 if dtype == torch.float32 else None  # for several layers with any order of summation
        return Case(args, **{"via": "module", "tolerance": tolerance} | options)

    def again():
        state = state_of(9, 12, 2, torch.float32)
        calls = [(draw.integers(0, 9, (2, T)),) for T in (3, 7, 5)]
        note = "one module called with texts of 3, 7 and 5 tokens"
        args = ((9, 8, 12, 3, 2), state, *calls)
        return Case(args, via="module_called_again", tolerance=4e-5, part=AGAIN, note=note)

    def promises():
        ids = draw.integers(0, 9, (3, 6))
        changed = torch.cat([ids[:, :3], (ids[:, 3:] + 1) % 9], dim=1)
        args = ((9, 8, 12, 3, 2), draw.integer(0, 2**31), ids, changed)
        return Case(args, via="gpt_promises", view="gpt_promises_kept", part=PROMISES, note="a GPT as it is made")

    float64 = torch.float64
    return [
        case(2, 5),
        case(3, 6, V=7, D=8, H=2, layers=1, note="one block"),
        case(2, 4, V=13, D=8, H=4, layers=3, part=SIZES, note="three blocks, four heads"),
        case(1, 7, D=6, H=1, part=SIZES, note="one text, one head"),
        case(3, 1, part=SIZES, note="a single token"),
        case(2, 8, part=WHOLE),
        case(1, 64, V=11, block_size=64, D=8, H=2, layers=1, part=WHOLE, note="a text of 64 tokens"),
        again(),
        case(2, 5, D=6, dtype=float64, part=DTYPE),
        case(2, 5, D=6, dtype=float64, part=GRADIENT, gradient=True),
        promises(),
    ]


gpt = Exercise(
    "GPT", cases_GPT, axes=("token", "logit"), forbidden=FORBIDDEN, instead=INSTEAD, time_limit=10.0
).with_mistakes(
    """
    not_causal: there is no mask, so every position sees later tokens
        x = block(x, mask) -> x = block(x)
        The target of each position is the token to its right. What keeps the position from attending to it?
    mask_upside_down: the mask is transposed, so each position sees itself and later tokens
        mask = causal_mask(ids.shape[1]) -> mask = causal_mask(ids.shape[1]).T
        True means may attend. Print the mask: which keys may the first query attend to?
    mask_of_the_hidden: the mask is inverted: True marks the keys that are hidden
        mask = causal_mask(ids.shape[1]) -> mask = ~causal_mask(ids.shape[1])
        True means may attend. May a token attend to itself?
    sees_the_next: each position also sees the next token
        causal_mask(ids.shape[1]) -> torch.ones(ids.shape[1], ids.shape[1]).tril(1).bool()
        The next token is the target. Print the mask: how far to the right does its first row go?
    whole_contexts_only: the model works only for texts of exactly block_size tokens
        causal_mask(ids.shape[1]) -> causal_mask(self.block_size)
        A text may be shorter than block_size. From which tensor can forward read its length?
    only_the_first_block: only one block is used, whatever num_layers says
        for block in self.blocks: -> for block in self.blocks[:1]:
        How many blocks does the list hold, and how many does x pass through?
    one_block_shared: all blocks of the list are one and the same
        nn.ModuleList(RotaryBlock(d_model, num_heads, 4 * d_model) for _ in range(num_layers))
        -> nn.ModuleList([RotaryBlock(d_model, num_heads, 4 * d_model)] * num_layers)
        Multiplying a list repeats its entries. How many blocks are built?
    residual_twice: the input of each block is added to its output once more
        x = block(x, mask) -> x = x + block(x, mask)
        The block has its own residual connections. What does your loop add to them?
    no_last_norm: there is no layer norm between the last block and the logits
        self.unembed(self.norm(x)) -> self.unembed(x)
        In pre-norm blocks the norms come before the sublayers. What normalizes the output of the last block?
    norm_before_the_blocks: the final layer norm is applied before the blocks
        for block in self.blocks: -> x = self.norm(x)
        |        for block in self.blocks:
        self.unembed(self.norm(x)) -> self.unembed(x)
        A pre-norm block normalizes its own inputs. Where in the forward pass is something still unnormalized?
    no_positions: the blocks have no rotary embedding, so nothing encodes the order
        Which class did you build the blocks from? `RotaryBlock` rotates queries and keys by their positions.
    vectors_not_logits: the output holds vectors of width d_model, not logits
        return self.unembed(self.norm(x)) -> return self.norm(x)
        Every position needs one logit per token of the vocabulary. Which part maps to these?
    probabilities: the output holds probabilities, not logits
        return self.unembed(self.norm(x)) -> return self.unembed(self.norm(x)).softmax(-1)
        The softmax is part of the loss, and of sampling. What does the last linear layer return?
    norm_after_every_block: the final layer norm is applied after every block
        x = block(x, mask) -> x = self.norm(block(x, mask))
        self.unembed(self.norm(x)) -> self.unembed(x)
        Where does the text of the exercise place `norm`? A pre-norm block adds to what it was given.
    not_even_itself: no position may attend to itself
        causal_mask(ids.shape[1]) -> torch.ones(ids.shape[1], ids.shape[1]).tril(-1).bool()
        The token at a position is known there. Print the mask: what does its first row let through?
    last_place_only: only the last position has logits
        self.unembed(self.norm(x)) -> self.unembed(self.norm(x))[:, -1]
        In training every position predicts its next token. How many of them should have logits?
    words_scaled: the token vectors are multiplied by the square root of the width
        x = self.tokens(ids) -> x = self.tokens(ids) * self.tokens.embedding_dim**0.5
        The paper does this, and its embeddings start smaller. What does the text of this exercise say?
    block_size_not_kept: block_size is not kept as an attribute
        self.block_size = block_size -> self.context = block_size
        Code that generates text has to know how many tokens the model can read.
""",
    no_positions=with_encoder_blocks,
)

# ---------------------------------------------------------------- generate

CROP = "a text longer than the context"
DRAWN = "draws follow the softmax"


def cases_generate(draw):
    def rows(V, n=97, spread=4.0, level=10.0):
        """A table of logits without nearly equal entries in a row, and with rows of different levels."""
        table = torch.stack([draw.permutation(V).float() for _ in range(n)]) * (spread / V)
        return table + draw.normal(n, 1, scale=level)

    def sure(V, block_size, B, T, more, **options):
        ids = draw.integers(0, V, (B, T))
        named = {"top_k": 1} | options.pop("named", {})
        note = (
            f"top_k = 1, so that nothing is left to chance; block_size {block_size}, a prompt of {T}, {more} new tokens"
        )
        return Case((rows(V), block_size, ids, more), named, via="with_table_model", note=note, **options)

    def drawn(V, T, named, spread=3.0, level=0.0, **options):
        ids = draw.integers(0, V, (1, T)).expand(600, T).clone()
        note = ", ".join(["600 equal prompts", *(f"{name} {value}" for name, value in named.items())])
        named = {"seed": draw.integer(0, 10_000)} | named
        args = (rows(V, spread=spread, level=0.0) + level, 6, ids, 2)
        return Case(args, named, via="drawn_texts", view="generation_behavior", note=note, **options)

    return [
        sure(7, 20, 2, 3, 5),
        sure(9, 4, 2, 3, 6, part=CROP),
        sure(8, 3, 1, 5, 4, part=CROP),
        sure(6, 1, 2, 2, 3, part=CROP),
        sure(7, 9, 3, 4, 0, part="nothing to write"),
        sure(7, 12, 4, 1, 9, named={"temperature": 3.0}, part="top_k = 1 at a temperature of 3"),
        drawn(6, 3, {}, part=DRAWN),
        drawn(5, 8, {}, part=DRAWN),
        drawn(6, 2, {"temperature": 2.5}, spread=7.0, part="temperature"),
        drawn(6, 3, {"temperature": 0.05}, spread=0.8, level=5.0, part="temperature"),
        drawn(8, 3, {"top_k": 3}, part="top_k"),
        drawn(8, 2, {"top_k": 4, "temperature": 0.5}, part="top_k"),
    ]


# An answer that never samples is a greedy decoder and loses half of the points.
generate = Exercise("generate", cases_generate, time_limit=10.0, weights={DRAWN: 9}).with_mistakes("""
    not_cropped: the model is given more than block_size ids
        ids[:, -model.block_size :] -> ids
        When the text is longer than the context, which ids may the model read?
    cropped_at_the_wrong_end: the model reads the beginning of the text, not its end
        ids[:, -model.block_size :] -> ids[:, : model.block_size]
        The text is continued at its end. Which slice returns its last ids?
    text_cropped: the text itself is cropped, so its beginning is lost
        logits = model(ids[:, -model.block_size :])[:, -1] / temperature
        -> ids = ids[:, -model.block_size :]
        |            logits = model(ids)[:, -1] / temperature
        Only the model's input is cropped. The result contains all ids.
    always_the_likeliest: greedy, the most likely token instead of a random one
        torch.multinomial(p, 1, generator=generator) -> p.argmax(-1, keepdim=True)
        The text asks for a random draw from the softmax. Which function draws?
    generator_not_used: the generator is not used for every draw
        (p, 1, generator=generator) -> (p, 1)
        With the same generator the text has to be the same.
    top_k_of_one: without top_k only the most likely token is left
        top_k=top_k), dim -> top_k=top_k or 1), dim
        When top_k is None every token may be drawn. What does your code put in its place?
    softmax_of_the_softmax: the softmax is applied twice
        top_k=top_k), dim=-1) -> top_k=top_k), dim=-1).softmax(-1)
        Probabilities are between 0 and 1. What does a softmax of such similar values look like?
    cut_to_zero: top_k sets the excluded logits to 0
        filter_logits(logits, top_k=top_k)
        -> logits if top_k is None else logits.masked_fill(logits < logits.topk(top_k).values[:, -1:], 0.0)
        A logit of 0 is an ordinary score. Which logit gives probability 0?
    rank_for_id: with top_k the result is a rank, not an id
        torch.multinomial(p, 1 -> torch.multinomial(p.sort(descending=True).values if top_k else p, 1
        You draw an index among the k tokens. Which id belongs to it?
    temperature_ignored: the temperature has no effect
        [:, -1] / temperature -> [:, -1]
        Do you divide logits or probabilities by it? Dividing all probabilities does not change the draw.
    temperature_multiplied: multiplied by the temperature
        [:, -1] / temperature -> [:, -1] * temperature
        A high temperature makes the distribution more uniform. Should the differences of the logits grow or shrink?
    top_k_ignored: top_k has no effect, or keeps far too many tokens
        top_k=top_k), dim -> top_k=None), dim
        `filter_logits` of lesson 10 excludes the unlikely tokens.
""")

# ---------------------------------------------------------------- language_model_logits

PASSAGES, LENGTH = 100, 64


def cases_language_model_logits(draw):
    from helpers.corpus.source import Source

    source = Source()
    seed = draw.integer(0, 2**31)
    ids = source.passages(PASSAGES, LENGTH, seed)
    later = torch.arange(LENGTH) >= draw.integers(1, LENGTH, (PASSAGES, 1))  # from a random position on in each passage
    changed = torch.where(later, source.passages(PASSAGES, LENGTH, seed + 1), ids)
    shape = (PASSAGES, LENGTH, len(source.symbols))
    nats = source.nats(ids)
    return [
        Case((given,), via="without_gradient", truth={"shape": shape, "ids": given, "nats": nats}, note=note)
        for given, note in ((ids, "passages that nobody has seen"), (changed, "the same with other later ids"))
    ]


def best_logits(case):
    """The best possible answer, computed from the source itself."""
    from helpers.corpus.source import Source

    source = Source()
    return torch.stack([_causal(source, row) for row in case.args[0].tolist()])


def _causal(source, row):
    """The source's log-probabilities along a row, and zeros from the first token on that it cannot generate."""
    V, text = len(source.symbols), source.decode(row)
    good = 1
    while good < len(text):
        try:
            source.nats(source.encode(text[: good + 1]))
        except ValueError:
            break
        good += 1
    known = source.next_probabilities(source.encode(text[:good])).clamp_min(1e-12).log().float()
    return torch.cat([known, torch.zeros(len(text) - good, V)])


language_model_logits = Exercise(
    "language_model_logits",
    cases_language_model_logits,
    metric="loss_above_the_line",
    best=best_logits,
    time_limit=60.0,
).with_mistakes("""
    below_the_line: your loss is below the entropy line, so the model has seen the answers
        No honest model can do that. Was it trained on these passages, or does your function look them up?
    sees_later_ids: logits change when later ids, or other passages, change
        The logits of a position may depend only on its own passage up to there. Which mask does the model use? Does
        anything mix the rows of the batch? Is the model in evaluation mode?
    at_other_positions: the logits are right, but they are at other positions
        The logits of a position predict the token after it, as the model returns them. Does your function move them?
    not_trained: the loss is not better than that of the best n-gram
        Has the training cell run, and do you call the trained model? Does every position predict the next token?
    low_temperature: the logits are too large, as after division by a low temperature
        Logits half as large would pass. Does your function return what the model returns, unchanged?
    probabilities: the answer holds probabilities, not logits
        The loss applies the softmax itself. What does your function return?
    a_table: the logits depend only on the current token, as in a bigram table
        Equal tokens get equal logits at every position. Do you call your trained GPT, and does its attention work?
    infinite_loss: a token that occurred has probability 0
        Finite logits give every token a positive probability. Where does your code make logits infinite?
""")

# ---------------------------------------------------------------- induction_head


def cases_induction_head(draw):
    def case(V, M, **options):
        return Case((V, M), view="continues_segments", **options)

    return [
        case(9, 14),
        case(12, 20),
        case(6, 8, part="a short text"),
        case(16, 11, part="a vocabulary larger than max_len"),
        case(12, 200, part="a long text"),
        case(200, 200, part="a long text of many tokens, and one token again and again"),
        case(31, 64, part="the size of the lesson's language"),
    ]


induction_head = Exercise("induction_head", cases_induction_head).with_mistakes("""
    says_itself: the current token is predicted instead of the one that followed it
        keys[:, before] = torch.eye(V) -> keys[:, token] = torch.eye(V)
        keys[:, V] = -1.0 -> pass
        In the second layer, which channels does the key read, and which ones does W_v copy?
    carries_the_token_before: the right position is found, but the current token is predicted
        say[answer, token] -> say[answer, before]
        In the second layer, which channels of the position that it finds does W_v copy?
    place_zero_matches_itself: a segment at the start of the text is not continued
        keys[:, V] = -1.0 -> pass
        Position 0 has no previous token. What does the first head write there?
    too_soft: the heads attend to a mixture of positions
        100.0 * -> 0.01 *
        One-hot vectors give scores of 0 and 1, and the softmax of these is nearly uniform. Scale the scores.
    not_sharp_enough: sharp enough for small matrices, but too soft for large ones
        sharp = 3 * V + M, 100.0 * (V + M) ** 0.5 -> sharp = 3 * V + M, 50.0
        The scores are divided by the square root of d, and there are M positions. How should the scale grow with V and
        M?
    no_first_layer: the previous token is not written into its channels
        copy[before, token] = torch.eye(V) -> pass
        Which matrix of the first layer has to write it, and into which channels?
    looks_at_the_next: the first layer searches for the next position, not for the previous one
        W_q[:, position], W_k[:, position] = -> W_k[:, position], W_q[:, position] =
        The mask hides later positions. Which position should the query of position t match?
    looks_at_itself: the first layer attends to the current position, not to the previous one
        previous_token_weights(M) -> torch.eye(M), torch.eye(M)
        Which position should the query of position t match?
    answer_elsewhere: the answer is not in the last channels
        say[answer, token] -> say[before, token]
        The logits are the last V channels.
    values_turned_over: W_v is transposed, so it reads where it should write
        copy[before, token] -> copy[token, before]
        say[answer, token] -> say[token, answer]
        The values are `x @ W_v.T`, so the rows of W_v are the channels that it writes, and its columns those that it
        reads.
    second_query_and_key_exchanged: in the second layer query and key are exchanged
        (sharp * match, keys, say) -> (sharp * keys, match, say)
        The current token searches for a position whose previous token is the same. Which of the two is the query?
""")

exercises = [ngram_loss, get_batch, next_token_loss, gpt, language_model_logits, generate, induction_head]

quizzes = listed_quizzes("""
    quiz_1: d
        a: The entropy rate is the loss of the best possible model, so no honest model can have a lower one.
        b: On a short text that happens. On a long one the chance falls exponentially, since a win of 20 nats in total
           occurs for at most one text in 485 million.
        c: A larger vocabulary makes prediction harder, not easier, and the entropy rate of the source already
           includes it.
        d: A missing mask, targets that are not shifted, or test text in the training data gives the answer
           away.
    quiz_2: a
        a: There are 6,652,800 segments of eight different letters out of eleven, and our text contains 2,700
           of them. A row without counts predicts nothing.
        b: An n-gram of order 10 uses nine tokens of context. That would be enough, but its rows are empty.
        c: Smoothing only spreads probability over rows without counts. With perfect smoothing they would still lack
           counts.
""")

__all__ = ["exercises", "quizzes", "corpus"]
