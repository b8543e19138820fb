"""Cases and known mistakes of lesson 12: n-grams, batches, a GPT, and what it writes."""

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
            train[:V] = torch.arange(V)  # so that no token is new
        return Case((train, test, order, V, alpha), view="whole_contexts_only", **options)

    def two_digits(**options):
        """Contexts that differ, though their digits in a row do not, nor the sums of their ids times 1 and 10; and such
        a context with its next token."""
        a, b = (draw.permutation(17)[:2] + 13).tolist()
        text = [1, 12, a, 11, 2, b, 12, 0, a, 2, 1, b, 0, 12, a, 1, 2, b, 1, 1, 12]
        test = text[3:] + [11, 1, 2, 11, 1, 2]
        note = "order 3, and contexts whose digits are the same in a row, as 1, 12 and 11, 2"
        return Case((text * 4, test, 3, 31, 0.3), view="whole_contexts_only", note=note, **options)

    train, test, *_ = case(2, 5, 0.5).args
    return [
        case(2, 5, 0.5, note="a bigram model"),
        case(3, 4, 0.1, note="order 3"),
        case(1, 6, 1.0, part="order 1", note="order 1, no context at all"),
        case(4, 5, 0.01, part=UNSEEN, note="order 4, an alpha of 0.01"),
        case(5, 7, 1.0, M=9, part=UNSEEN, note="order 5, an alpha of 1"),
        case(2, 9, 2.0, part="a large alpha", note="order 2, an alpha of 2"),
        two_digits(part="lists of ids"),
        Case(
            (train, test, 2, 9, 0.5), view="whole_contexts_only", part=NEVER, note="a vocabulary of 9, of which 5 occur"
        ),
    ]


ngram_loss = Exercise("ngram_loss", cases_ngram_loss).with_mistakes("""
    vocabulary_of_the_text: V is the number of different tokens in the training text
        train, test = [int(i) for i in train], [int(i) for i in test]
        -> train, test = [int(i) for i in train], [int(i) for i in test]
        |    vocab_size = len(set(train))
        A token that never occurred in train can occur in test. Which argument says how many tokens there are?
    tensors_as_keys: no context of the test was found in train
        train, test = [int(i) for i in train], [int(i) for i in test] -> pass
        Are your keys tensors? Two equal tensors are two different keys of a dictionary, because tensors are hashed by identity.
    tested_on_the_training_text: tested on the training text
        range(order - 1, len(test)): -> range(order - 1, len(test := train)):
        A model has to be tested on a text in which it did not count.
    order_is_the_context: order was taken for the number of context tokens
        train, test = [int(i) for i in train], [int(i) for i in test]
        -> train, test = [int(i) for i in train], [int(i) for i in test]
        |    order += 1
        Order 1 has no context at all, and order 2 is the Markov chain of lesson 3. What does order count?
    context_sorted: the tokens of a context were sorted
        context = tuple(train[t - order + 1 : t]) -> context = tuple(sorted(train[t - order + 1 : t]))
        context = tuple(test[t - order + 1 : t]) -> context = tuple(sorted(test[t - order + 1 : t]))
        Are `ab` and `ba` the same context?
    mean_of_probabilities: the logarithm of the mean probability, not the mean of the logarithms
        total -= math.log(seen / (contexts.get(context, 0) + alpha * vocab_size))
        -> total += seen / (contexts.get(context, 0) + alpha * vocab_size)
        return total / (len(test) - order + 1) -> return -math.log(total / (len(test) - order + 1))
        Which comes first, the logarithm at each position or the mean over positions?
    counted_once: each pair of context and token was counted once, however often it came
        pairs.get((context, train[t]), 0) + 1 -> 1
        contexts[context] = contexts.get(context, 0) + 1
        -> contexts[context] = sum(known == context for known, _ in pairs)
        If an index occurs several times, `counts[index] += 1` adds 1 only once. How does your code count repetitions?
    order_counts_the_context: one token of context too many
        train[t - order + 1 : t]) -> train[max(t - order, 0) : t])
        test[t - order + 1 : t]) -> test[max(t - order, 0) : t])
        Order 1 has no context at all, and order 2 is the Markov chain of lesson 3.
    one_token_too_few: one token of context too few
        train[t - order + 1 : t]) -> train[t - order + 2 : t])
        test[t - order + 1 : t]) -> test[t - order + 2 : t])
        How many tokens of context does a model of order 3 use?
    alpha_not_in_the_total: the denominator adds alpha only once, so probabilities do not sum to 1
        + alpha * vocab_size -> + alpha
        Each of the V counts of a row grows by alpha. By how much does their sum grow?
    alpha_not_multiplied: the denominator adds V, not alpha times V
        alpha * vocab_size) -> vocab_size)
        Each of the V counts of a row grows by alpha. By how much does their sum grow?
    nothing_below: alpha is added to the count, but not to the denominator
        (contexts.get(context, 0) + alpha * vocab_size) -> max(contexts.get(context, 0), 1)
        What do the V probabilities of one context sum to in your code?
    whole_past: at order 1 the whole past is the context
        context = tuple(train[t - order + 1 : t]) -> context = tuple(train[:t][-(order - 1) :])
        context = tuple(test[t - order + 1 : t]) -> context = tuple(test[:t][-(order - 1) :])
        Which tokens does a slice that starts at -0 contain?
    unseen_only: alpha is added only where the count is 0
        pairs.get((context, test[t]), 0) + alpha -> pairs.get((context, test[t]), alpha)
        In the formula alpha is added to every count, not only to those that are 0.
    places_miscounted: divided by one position too few
        (len(test) - order + 1) -> (len(test) - order)
        A text of three tokens has two positions with one token of context. How many terms did you add up?
    perplexity: the perplexity, not the loss
        return total / (len(test) - order + 1) -> return math.exp(total / (len(test) - order + 1))
        Return the loss in nats per token; the perplexity is its exponential.
    only_numerator_smoothed: only the numerator was smoothed, not the denominator
        (contexts.get(context, 0) + alpha * vocab_size) -> max(contexts.get(context, 0), alpha)
        What do the V probabilities of one context sum to in your code?
    counted_in_the_test: counted in the test text
        range(order - 1, len(train)): -> range(order - 1, len(train := test)):
        A model must not count the text on which it is tested.
    summed: the sum over positions, not their mean
        return total / (len(test) - order + 1) -> return total
        The result is in nats per token. How many positions did you add up?
    divided_by_all_places: divided by the number of all tokens, also those without a full context
        (len(test) - order + 1) -> len(test)
        You added up fewer terms than the test has tokens.
    in_bits: in bits, not in nats
        math.log(seen / -> math.log2(seen /
        Nats use the natural logarithm.
    context_reversed: test contexts are read from right to left
        context = tuple(test[t - order + 1 : t]) -> context = tuple(test[t - order + 1 : t][::-1])
        Is the context in the test the same tuple, in the same order, as in the training text?
    wrong_sign: the mean of log p, with the wrong sign
        total -= -> total +=
        A loss is not negative.
    digits_in_a_row: contexts with the same digits in a row were taken for one
        context = tuple(train[t - order + 1 : t]) -> context = "".join(map(str, train[t - order + 1 : t]))
        context = tuple(test[t - order + 1 : t]) -> context = "".join(map(str, test[t - order + 1 : t]))
        What key do the ids 1 and 12 give in your code, and what key do 11 and 2 give?
    context_at_the_end: the context at the very end of train was counted, though no token comes after it
        total = 0.0 -> context = tuple(train[len(train) - order + 1 :])
        |    contexts[context] = contexts.get(context, 0) + 1
        |    total = 0.0
        What do the V probabilities of that context add up to in yours?
    counted_in_both: counted in train and in test
        train, test = [int(i) for i in train], [int(i) for i in test]
        -> train, test = [int(i) for i in train] + [int(i) for i in test], [int(i) for i in test]
        A model must not count the text on which it is tested.
    always_a_bigram: one token of context, whatever the order
        train, test = [int(i) for i in train], [int(i) for i in test]
        -> train, test = [int(i) for i in train], [int(i) for i in test]
        |    order = 2
        Which argument determines the length of the context?
    unseen_cost_nothing: positions with an unseen context cost nothing
        context = tuple(test[t - order + 1 : t])
        -> context = tuple(test[t - order + 1 : t])
        |        if context not in contexts:
        |            continue
        After an unknown context all V tokens are equally likely. What does such a position cost?
    unseen_tokens_cost_nothing: tokens that were never seen after their context cost nothing
        context = tuple(test[t - order + 1 : t])
        -> context = tuple(test[t - order + 1 : t])
        |        if (context, test[t]) not in pairs:
        |            continue
        Which probability does the formula give to a count of 0?
    unseen_tokens_skipped: positions are skipped if the token was never seen after its context
        context = tuple(test[t - order + 1 : t])
        -> context = tuple(test[t - order + 1 : t])
        |        if (context, test[t]) not in pairs:
        |            continue
        return total / (len(test) - order + 1)
        -> known = [t for t in range(order - 1, len(test)) if (tuple(test[t - order + 1 : t]), test[t]) in pairs]
        |    return total / max(1, len(known))
        Which probability does the formula give to a count of 0?
    not_smoothed: alpha is not used, so unseen tokens have probability 0
        pairs.get((context, test[t]), 0) + alpha -> pairs.get((context, test[t]), 0)
        (contexts.get(context, 0) + alpha * vocab_size)) -> max(contexts.get(context, 0), 1)) if seen else -math.inf
        In the formula alpha appears twice. Where is it in your code?
    not_smoothed_at_all: alpha is not used, and the logarithm of 0 does not exist
        pairs.get((context, test[t]), 0) + alpha -> pairs.get((context, test[t]), 0)
        contexts.get(context, 0) + alpha * vocab_size) -> contexts.get(context, 0))
        In the formula alpha appears twice. Where is it in your code?
    not_smoothed_but_EPS for EPS in 1e-12, 1e-10, 1e-9: a tiny constant is used in place of alpha
        pairs.get((context, test[t]), 0) + alpha -> pairs.get((context, test[t]), 0)
        math.log(seen / (contexts.get(context, 0) + alpha * vocab_size))
        -> math.log(seen / max(contexts.get(context, 0), 1) + EPS)
        In the formula alpha appears twice. Where is it in your code?
    backs_off: an unseen context is replaced by a shorter one
        context = tuple(test[t - order + 1 : t])
        -> n = order
        |        while True:
        |            context = tuple(test[t - n + 1 : t])
        |            windows = [tuple(train[i : i + n]) for i in range(len(train) - n + 1)]
        |            contexts = {context: sum(w[:-1] == context for w in windows)}
        |            pairs = {(context, test[t]): sum(w == (*context, test[t]) for w in windows)}
        |            if contexts[context] or n == 1:
        |                break
        |            n -= 1
        The formula also works for a context of count 0. Which probabilities does it give?
    falls_back_on_a_unigram: after an unseen context the unigram probabilities are used
        context = tuple(test[t - order + 1 : t])
        -> context = tuple(test[t - order + 1 : t])
        |        if context not in contexts:
        |            chance = (train.count(test[t]) + alpha) / (len(train) + alpha * vocab_size)
        |            total -= math.log(chance)
        |            continue
        The formula also works for a context of count 0. Which probabilities does it give?
    divided_by_the_whole_text: each count was divided by the length of train
        contexts.get(context, 0) + alpha * vocab_size) -> len(train) + alpha * vocab_size)
        Your code gives the joint probability of context and token. Which denominator gives the conditional one?
    short_contexts_in_the_test: the first tokens of the test are predicted from short contexts that were never counted
        range(order - 1, len(test)): -> range(len(test)):
        context = tuple(test[t - order + 1 : t]) -> context = tuple(test[max(0, t - order + 1) : t])
        (len(test) - order + 1) -> len(test)
        Which is the first position of the test that has a full context?
    order_less_one: one token of context too few
        train, test = [int(i) for i in train], [int(i) for i in test]
        -> train, test = [int(i) for i in train], [int(i) for i in test]
        |    order = max(order - 1, 1)
        How many tokens of context does a model of order 3 use?
    unseen_skipped: positions with an unseen context are skipped
        context = tuple(test[t - order + 1 : t])
        -> context = tuple(test[t - order + 1 : t])
        |        if context not in contexts:
        |            continue
        return total / (len(test) - order + 1)
        -> known = [t for t in range(order - 1, len(test)) if tuple(test[t - order + 1 : t]) in contexts]
        |    return total / max(1, len(known))
        After an unknown context all V tokens are equally likely. What does such a position cost?
    last_token_of_the_test: the last token of the test is not predicted
        range(order - 1, len(test)): -> range(order - 1, len(test) - 1):
        (len(test) - order + 1) -> (len(test) - order)
        The end of a range is excluded. Which is the last position that has a full context?
    first_place_not_asked: the first position of the test that has a full context is left out
        range(order - 1, len(test)): -> range(order, len(test)):
        (len(test) - order + 1) -> (len(test) - order)
        How many tokens come before position 1, and how many does a context of order 2 need?
    first_places_left_out: the first position of the test that has a full context is left out
        range(order - 1, len(train)): -> range(order, len(train)):
        range(order - 1, len(test)): -> range(order, len(test)):
        (len(test) - order + 1) -> (len(test) - order)
        How many tokens come before position 1, and how many does a context of order 2 need?
    one_for_alpha: 1 was added to each count, whatever alpha is
        train, test = [int(i) for i in train], [int(i) for i in test]
        -> train, test = [int(i) for i in train], [int(i) for i in test]
        |    alpha = 1
        Which argument says what is added to each count?
    alpha_behind_the_division: alpha is added to the probability, not to the counts
        pairs.get((context, test[t]), 0) + alpha -> pairs.get((context, test[t]), 0)
        math.log(seen / (contexts.get(context, 0) + alpha * vocab_size))
        -> math.log(seen / max(contexts.get(context, 0), 1) + alpha)
        What do the V probabilities of one context sum to in your code?
    times_its_probability: each logarithm was multiplied by its probability
        total -= math.log(seen / (contexts.get(context, 0) + alpha * vocab_size))
        -> p = seen / (contexts.get(context, 0) + alpha * vocab_size)
        |        total -= p * math.log(p)
        Likely tokens already occur often in the test. Which weight does each position have in a plain mean?
    last_token_of_the_training_text: the last token of train is not counted
        range(order - 1, len(train)): -> range(order - 1, len(train) - 1):
        The end of a range is excluded. Which is the last position that you count?
    alpha_above_alone: alpha is added to the numerator, but not to the denominator
        (contexts.get(context, 0) + alpha * vocab_size) -> contexts.get(context, 0)
        What do the V probabilities of one context sum to in your code?
    alpha_below_alone: alpha is added to the denominator, but not to the numerator
        pairs.get((context, test[t]), 0) + alpha -> pairs.get((context, test[t]), 0)
        In the formula alpha appears twice. What is the logarithm of a count of 0?
    token_in_its_context: the predicted token is part of its own context
        context = tuple(train[t - order + 1 : t]) -> context = tuple(train[t - order + 1 : t + 1])
        context = tuple(test[t - order + 1 : t]) -> context = tuple(test[t - order + 1 : t + 1])
        A slice excludes its end. Which tokens are known when the next one is predicted?
    first_place_not_counted: the first position of train that has a full context is not counted
        range(order - 1, len(train)): -> range(order, len(train)):
        How many tokens come before position 1, and how many does a context of order 2 need?
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
        case(7, 4, 3000, part="every start is drawn"),  # 7 is no multiple of its 3 starts
        case(11, 6, 400, part="every start is drawn"),  # bit by bit, 11 and 6 differ in 13
        case(5, 4, 30, part="a text of block_size + 1 tokens"),
        case(400, 1, 4, part="windows of one token"),
        case(40, 3, 1, part="a batch of one"),
        case(403, 3, 380, part="uniform starts, with replacement"),  # fewer windows than places
    ]


get_batch = Exercise("get_batch", cases_get_batch).with_mistakes("""
    not_shifted: y is x itself
        data[positions + 1] -> data[positions]
        Should a position predict the token that it has just read?
    shifted_backward: y is one position behind x
        return data[positions], data[positions + 1] -> return data[positions + 1], data[positions]
        The target of a position is the token that comes next.
    last_start_missing: the last possible start is never drawn
        torch.randint(len(data) - block_size, -> torch.randint(max(1, len(data) - block_size - 1),
        `torch.randint` excludes its upper bound.
    last_start_left_out: the last possible start is never drawn
        torch.randint(len(data) - block_size, -> torch.randint(len(data) - block_size - 1,
        `torch.randint` excludes its upper bound.
    one_start_too_many: a window may begin too late, so that its last target is missing
        starts = torch.randint(len(data) - block_size, -> starts = torch.randint(len(data) - block_size + 1,
        return data[positions], data[positions + 1]
        -> return data[positions], torch.stack([data[s + 1 : s + 1 + block_size] for s in starts])
        Which is the last start that leaves enough tokens for a window and its last target?
    one_place_beyond: a window may begin too late, so that its last target is missing
        torch.randint(len(data) - block_size, -> torch.randint(len(data) - block_size + 1,
        Which is the last start that leaves enough tokens for a window and its last target?
    first_ones_preferred: the first starts are drawn more often than the last ones
        torch.randint(len(data) - block_size, (batch_size,), generator=generator)
        -> torch.randint(len(data), (batch_size,), generator=generator) % (len(data) - block_size)
        The starts should be uniform. After taking a remainder, how many random numbers lead to the first start, and how
        many to the last?
    first_start_missing: the first start is never drawn
        torch.randint(len(data) - block_size,
        -> torch.randint(min(1, len(data) - block_size - 1), len(data) - block_size,
        The text begins at position 0.
    first_start_left_out: the first start is never drawn
        torch.randint(len(data) - block_size, -> torch.randint(1, len(data) - block_size,
        The text begins at position 0.
    generator_begins_anew: each call resets the generator to its seed
        starts = torch.randint( -> generator.manual_seed(generator.initial_seed())
        |    starts = torch.randint(
        The second batch of a training run should differ from the first. Only the caller should set the seed.
    one_window_for_all: every row is the same window
        (batch_size,), generator=generator) -> (1,), generator=generator).expand(batch_size)
        How many starts did you draw?
    generator_not_used: the generator is not used
        , generator=generator) -> )
        With the same generator the batch has to be the same. Which argument of torch.randint takes it?
    own_generator: every batch is the same, whatever the generator
        generator=generator) -> generator=torch.Generator().manual_seed(0))
        Training needs a new batch at each step. Which generator do you use, and when is its seed set?
    rolled_around: a window may begin one position too late, so that its last target is not in the text
        torch.randint(len(data) - block_size, -> torch.randint(len(data) - block_size + 1,
        data[positions + 1] -> data.roll(-1)[positions]
        Which token follows the last one of the text? A window needs a token for its last target.
    two_places_on: y is shifted by two positions
        data[positions + 1] -> data[(positions + 2).clamp(max=len(data) - 1)]
        Each position predicts the token that comes next. How far away is it?
    rolled_in_the_window: the last target is the first token of its own window
        data[positions + 1] -> data[positions].roll(-1, dims=1)
        The target of the last position is in the text, after the window. Where does your last target come from?
    filled_up: the last target is filled with an id that is not in the text
        data[positions + 1] -> torch.cat([data[positions[:, 1:]], torch.zeros_like(positions[:, :1])], dim=1)
        The target of the last position is in the text, after the window. Does your code read it there?
    ids_plus_one: 1 was added to the ids, not to their positions
        data[positions + 1] -> data[positions] + 1
        The next token is one position further in the text. To what do you add 1?
    one_place_back: y holds the previous tokens, not the next ones
        data[positions + 1] -> data[positions - 1]
        The target of a position is the token that comes next.
    without_replacement_if_possible: no start is drawn twice, unless there are too few
        torch.randint(len(data) - block_size, (batch_size,), generator=generator)
        -> torch.multinomial(torch.ones(len(data) - block_size), batch_size,
        |        len(data) - block_size < batch_size, generator=generator)
        With replacement, each start is drawn from all positions, independent of the others. Can two of yours be equal?
    without_replacement: no start is drawn twice
        torch.randint(len(data) - block_size, (batch_size,), generator=generator)
        -> torch.randperm(len(data) - block_size, generator=generator)[:batch_size]
        With replacement, a batch may contain more windows than there are starts. Does yours?
    next_window: y is right only where a window holds one token
        data[positions + 1] -> data[(positions + block_size).clamp(max=len(data) - 1)]
        Each position predicts the token that comes next. Which targets do the first and the last position have?
    drawn_apart: x and y were drawn separately
        return data[positions], data[positions + 1]
        -> others = torch.randint(len(data) - block_size, (batch_size,), generator=generator)[:, None]
        |    return data[positions], data[others + torch.arange(block_size) + 1]
        x and y use the same start in each row, one position apart.
    cut_in_two: x and y are one token short
        data[positions], data[positions + 1] -> data[positions[:, 1:] - 1], data[positions[:, 1:]]
        How many tokens of the text do block_size positions and their targets need?
    last_answers_alone: y has only one token per window
        data[positions + 1] -> data[positions[:, -1] + 1]
        Every position of a window predicts its next token. How many targets does a window need?
    columns_for_rows: x and y are transposed
        data[positions], data[positions + 1] -> data[positions].T, data[positions + 1].T
        There is one row per window. How many windows are requested, and how long is each?
    int32_ids: the ids have become int32
        data[positions], data[positions + 1] -> data[positions].int(), data[positions + 1].int()
        The ids of the text are int64. Where does your code change their dtype?
    windows_side_by_side: starts are multiples of the window's length
        starts[:, None] + -> (starts - starts % block_size)[:, None] +
        Windows may overlap, because every position can be a start.
""")

# ---------------------------------------------------------------- next_token_loss


def cases_next_token_loss(draw):
    def case(B, T, V, dtype=torch.float32, scale=2.0, **options):
        return Case((draw.normal(B, T, V, dtype=dtype, scale=scale), draw.integers(0, V, (B, T))), **options)

    def far_apart(**options):
        """Large logits, of which one answer's is by far the largest, and one's the smallest."""
        logits, targets = draw.normal(3, 2, 6, scale=400.0), draw.integers(0, 6, (3, 2))
        logits[0, 0, targets[0, 0]] += 3000.0
        logits[2, 1, targets[2, 1]] -= 3000.0
        return Case((logits, targets), note="logits in the hundreds and thousands", **options)

    return [
        case(3, 4, 7, note="three texts of four tokens"),
        case(2, 7, 5, note="two texts of seven tokens"),
        case(1, 5, 6, part="one text"),
        case(4, 1, 6, part="one token"),
        far_apart(part="large logits"),
        case(2, 3, 5, torch.float64, part=DTYPE),
        case(2, 3, 5, torch.float64, part=GRADIENT, gradient=True),
    ]


LOSS = "F.cross_entropy(logits.flatten(0, 1), targets.flatten())"
next_token_loss = Exercise("next_token_loss", cases_next_token_loss).with_mistakes("""
    viewed: still the buggy version, `view` instead of exchanging two dimensions
        F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        -> F.cross_entropy(logits.reshape(logits.shape[0], logits.shape[2], -1), targets)
        `view` keeps the memory order and changes only the shape. Where do the V logits of position 0 end up?
    summed: the sum over positions, not their mean
        targets.flatten()) -> targets.flatten(), reduction='sum')
        The loss should not grow with the length of the text.
    last_place_only: only the last position was used
        F.cross_entropy(logits.flatten(0, 1), targets.flatten()) -> F.cross_entropy(logits[:, -1], targets[:, -1])
        Every position has a prediction and a target.
    probabilities_first: softmax was applied before the cross-entropy
        logits.flatten(0, 1) -> logits.flatten(0, 1).softmax(-1)
        `F.cross_entropy` takes logits and applies the softmax itself.
    softmax_over_the_places: the softmax runs over positions, not over the vocabulary
        F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        -> -logits.log_softmax(1).gather(-1, targets[..., None]).mean()
        Along which dimension do the probabilities of one prediction sum to 1?
    summed_over_each_text: summed over the positions of a text, and averaged over texts
        F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        -> F.cross_entropy(logits.flatten(0, 1), targets.flatten()) * targets.shape[1]
        A text that is twice as long should not have twice the loss.
    shifted_again: logits and targets were shifted once more
        F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        -> F.cross_entropy(logits[:, :-1].flatten(0, 1), targets[:, 1:].flatten())
        The targets are already the next tokens, because get_batch has shifted them.
    logarithm_of_zero: for large logits a probability is rounded to 0, and its logarithm is infinite
        F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        -> -logits.softmax(-1).gather(-1, targets[..., None]).log().mean()
        The logarithm of 0 is infinite. Which function computes softmax and logarithm in one step?
    bare_logits: the logits were used as if they were log-probabilities
        F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        -> F.nll_loss(logits.flatten(0, 1), targets.flatten())
        `F.nll_loss` expects log-probabilities. Which function computes them from logits?
    zero_left_out: positions whose target is token 0 are left out
        targets.flatten()) -> targets.flatten(), ignore_index=0)
        There is no padding here, so id 0 is a token like any other.
    small_number_added_EPS for EPS in 1e-12, 1e-10, 1e-9, 1e-8: a small constant is added to the probabilities
        F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        -> -(logits.softmax(-1).gather(-1, targets[..., None]) + EPS).log().mean()
        A token may be so unlikely that it costs hundreds of nats. What is the largest loss that your code can return?
    shifted_backward: each position is compared with the token before its target
        F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        -> F.cross_entropy(logits[:, 1:].flatten(0, 1), targets[:, :-1].flatten())
        The targets are already the next tokens, because get_batch has shifted them.
    targets_rolled: the targets were shifted once more, and the first one became the last
        targets.flatten() -> targets.roll(-1, dims=1).flatten()
        The targets are already the next tokens, because get_batch has shifted them.
    mean_over_places_only: averaged over the positions of a text, and summed over texts
        F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        -> F.cross_entropy(logits.flatten(0, 1), targets.flatten()) * targets.shape[0]
        A batch with twice as many texts should not have twice the loss.
    plain_number: a Python number, which has no gradient
        targets.flatten()) -> targets.flatten()).item()
        Return a 0-dim tensor, so that `backward()` can be called on it.
    wrong_sign: the sign is wrong
        F.cross_entropy -> -F.cross_entropy
        A probability is at most 1. Which sign does its logarithm have, and which sign should a loss have?
    in_bits: in bits, not in nats
        targets.flatten()) -> targets.flatten()) / math.log(2)
        `F.cross_entropy` already returns nats.
    perplexity: the perplexity, not the loss
        targets.flatten()) -> targets.flatten()).exp()
        Return the mean cross-entropy, which is the logarithm of the perplexity.
    exp_over_sum: exp of large logits is infinite, and the quotient is NaN
        F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        -> -(logits.exp() / logits.exp().sum(-1, keepdim=True)).log().gather(-1, targets[..., None]).mean()
        float32 overflows at exp(89). What did lesson 6 subtract before taking exp?
    order_of_targets: the targets are flattened in another order than the logits
        targets.flatten() -> targets.T.flatten()
        The logits are flattened text by text. Are the targets?
    order_of_logits: the logits are flattened in another order than the targets
        logits.flatten(0, 1) -> logits.transpose(0, 1).flatten(0, 1)
        The targets are flattened text by text. Are the logits?
    probabilities_averaged: the probabilities were averaged, without a logarithm
        F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        -> F.nll_loss(logits.flatten(0, 1).softmax(-1), targets.flatten())
        `F.nll_loss` expects log-probabilities. Which function computes them?
    logarithm_of_the_mean: the logarithm of the mean probability, not the mean of the logarithms
        F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        -> -logits.softmax(-1).gather(-1, targets[..., None]).mean().log()
        Which comes first, the logarithm at each position or the mean over positions?
    softmax_over_the_texts: the softmax runs over the batch, not over the vocabulary
        F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        -> -logits.log_softmax(0).gather(-1, targets[..., None]).mean()
        Along which dimension do the probabilities of one prediction sum to 1?
    averaged_over_tokens_too: divided by the size of the vocabulary as well
        F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        -> F.cross_entropy(logits.flatten(0, 1), targets.flatten()) / logits.shape[-1]
        Each position has one loss. Over how many values did you take the mean?
    largest_of_all: the maximum over all logits was subtracted, not the maximum of each position
        F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        -> (-logits.gather(-1, targets[..., None]) + logits.max()
        |            + (logits - logits.max()).exp().sum(-1, keepdim=True).log()).mean()
        What is exp of the logits at a position where all of them are far below that maximum?
    transposed_and_flattened: two dimensions are exchanged, and then the result is reshaped into rows of V
        logits.flatten(0, 1) -> logits.transpose(1, 2).reshape(-1, logits.shape[-1])
        After the transpose, V is the middle dimension. Either exchange dimensions or flatten, but not both.
    last_place_left_out: the last position of each text is left out
        F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        -> F.cross_entropy(logits[:, :-1].flatten(0, 1), targets[:, :-1].flatten())
        get_batch returns a target for every position. How many predictions does a window of T tokens give?
""")

# ---------------------------------------------------------------- GPT

SIZES = "other sizes"
AGAIN = "called twice"
WHOLE = "a text as long as block_size"
PROMISES = "block_size kept, nothing random in evaluation mode, causal in training mode"


def gpt_state(draw, V, D, layers, dtype):
    """Weights for all parts of a GPT, under the names that the exercise prescribes."""

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
    """A GPT whose attention does not rotate anything."""
    from helpers.blocks import GPT, EncoderBlock

    model = GPT(vocab_size, block_size, d_model, num_heads, num_layers)
    model.blocks = nn.ModuleList(EncoderBlock(d_model, num_heads, 4 * d_model, True) for _ in range(num_layers))
    return model


def cases_GPT(draw):
    def case(B, T, V=9, block_size=8, D=12, H=3, layers=2, dtype=torch.float32, **options):
        state, ids = gpt_state(draw, V, D, layers, dtype), draw.integers(0, V, (B, T))
        args = ((V, block_size, D, H, layers), state, (ids,), {})
        tolerance = 4e-5 if dtype == torch.float32 else None  # of several layers, in whatever order sums are written
        return Case(args, **{"via": "module", "tolerance": tolerance} | options)

    def again():
        state = gpt_state(draw, 9, 12, 2, torch.float32)
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
        case(2, 4, V=13, D=16, H=4, layers=3, part=SIZES, note="three blocks, four heads"),
        case(1, 7, D=6, H=1, part=SIZES, note="one text, one head"),
        case(3, 1, part=SIZES, note="a single token"),
        case(2, 8, part=WHOLE),
        case(2, 64, V=31, block_size=64, D=8, H=2, layers=1, part=WHOLE, note="a text of 64 tokens"),
        again(),
        case(2, 5, dtype=float64, part=DTYPE),
        case(2, 5, dtype=float64, part=GRADIENT, gradient=True),
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
    blind_to_itself: no position may attend to itself
        mask = causal_mask(ids.shape[1]) -> mask = causal_mask(ids.shape[1]).tril(-1)
        Print the mask. What may the first token attend to?
    whole_contexts_only: the model works only for texts of exactly block_size tokens
        causal_mask(ids.shape[1]) -> causal_mask(self.block_size)
        A text may be shorter than block_size. From which tensor can forward read its length?
    only_the_first_block: only one block is used, whatever num_layers says
        for block in self.blocks: -> for block in self.blocks[:1]:
        How many blocks does the list hold, and how many does x pass through?
    last_block_alone: every block reads the token vectors, and only the output of the last one is used
        x = block(x, mask) -> y = block(x, mask)
        self.norm(x) -> self.norm(y)
        What does the second block read, and what should it read?
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
    log_probabilities: the output holds log-probabilities, not logits
        return self.unembed(self.norm(x)) -> return self.unembed(self.norm(x)).log_softmax(-1)
        The loss applies its own log-softmax. What does the last linear layer return?
    last_place_only: only the last position has logits
        self.unembed(self.norm(x)) -> self.unembed(self.norm(x))[:, -1]
        In training every position predicts its next token. How many of them should have logits?
    last_place_kept: only the last position has logits
        self.unembed(self.norm(x)) -> self.unembed(self.norm(x))[:, -1:]
        In training every position predicts its next token. How many of them should have logits?
    transposed_logits: the last two axes are exchanged, (B, V, T) instead of (B, T, V)
        return self.unembed(self.norm(x)) -> return self.unembed(self.norm(x)).transpose(1, 2)
        F.cross_entropy wants the classes in the middle. Which axis does the contract of forward put last?
    words_scaled: the token vectors are multiplied by the square root of the width
        x = self.tokens(ids) -> x = self.tokens(ids) * self.tokens.embedding_dim**0.5
        The paper does this, and its embeddings start smaller. What does the contract of this exercise say?
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
        """A table of logits, no two of a row close together, and rows of different levels."""
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


generate = Exercise("generate", cases_generate, time_limit=10.0).with_mistakes("""
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
    negative_start: the start of the slice is negative for a short text
        ids[:, -model.block_size :] -> ids[:, ids.shape[1] - model.block_size :]
        With 4 ids and a context of 6, where does your slice begin?
    texts_cropped: the batch was cropped, not the tokens
        ids[:, -model.block_size :] -> ids[-model.block_size :]
        Which dimension of ids runs over the tokens of a text?
    place_of_the_prompts_end: drawn from the logits at the end of the prompt
        with torch.no_grad(): -> place = ids.shape[1] - 1
        |    with torch.no_grad():
        [:, -1] / -> [:, place] /
        The text grows. Which position has seen all of it?
    newest_only: the model reads only the newest id
        ids[:, -model.block_size :] -> ids[:, -1:]
        Without a cache the model knows only the ids of this call.
    first_place: drawn from the logits of the first position
        [:, -1] / -> [:, 0] /
        Which position has seen the full text?
    always_the_likeliest: greedy, the most likely token instead of a random one
        torch.multinomial(p, 1, generator=generator) -> p.argmax(-1, keepdim=True)
        The contract asks for a random draw from the softmax. Which function draws?
    likeliest_without_a_generator: without a generator it is greedy
        torch.multinomial(p, 1, generator=generator)
        -> torch.multinomial(p, 1, generator=generator) if generator else p.argmax(-1, keepdim=True)
        Without a generator, draw with torch's global one.
    generator_not_used: the generator is not used for every draw
        (p, 1, generator=generator) -> (p, 1)
        With the same generator the text has to be the same.
    call_begins_anew: each call resets the generator to its seed
        with torch.no_grad(): -> if generator is not None:
        |        generator.manual_seed(generator.initial_seed())
        |    with torch.no_grad():
        Two calls with the same generator should give different texts. Only the caller should set the seed.
    step_begins_anew: each step resets the generator to its seed
        drawn = torch -> if generator is not None:
        |                generator.manual_seed(generator.initial_seed())
        |            drawn = torch
        Each token needs a new random number. Only the caller should set the seed.
    fixed_dice: without a generator each call draws the same
        torch.no_grad(): -> torch.no_grad():
        |        generator = generator or torch.Generator().manual_seed(0)
        Two calls should give different texts. Only the caller should set the seed.
    one_throw_for_the_text: one random number is used for all tokens of a text
        with torch.no_grad(): -> throw = torch.rand(len(ids), 1, generator=generator)
        |    with torch.no_grad():
        torch.multinomial(p, 1, generator=generator)
        -> torch.searchsorted(p.cumsum(-1), throw).clamp(max=p.shape[-1] - 1)
        Each token needs a new random number. How many do you draw?
    one_more_stays: top_k keeps one token too many
        top_k=top_k), dim -> top_k=top_k and top_k + 1), dim
        With top_k = 1 only one token remains. How many remain in your code?
    softmax_twice: the softmax is applied twice
        torch.softmax(filter -> torch.softmax(torch.softmax(filter
        top_k=top_k), dim=-1) -> top_k=top_k), dim=-1) / temperature, dim=-1)
        [:, -1] / temperature -> [:, -1]
        Probabilities are between 0 and 1. What does a softmax of such similar values look like?
    softmax_of_the_softmax: the softmax is applied twice
        top_k=top_k), dim=-1) -> top_k=top_k), dim=-1).softmax(-1)
        Probabilities are between 0 and 1. What does a softmax of such similar values look like?
    cut_to_zero: top_k sets the excluded logits to 0
        filter_logits(logits, top_k=top_k)
        -> logits if top_k is None else logits.masked_fill(logits < logits.topk(top_k).values[:, -1:], 0.0)
        A logit of 0 is an ordinary score. Which logit gives probability 0?
    all_drawn_at_once: all new tokens are drawn from the prediction for the prompt
        with torch.no_grad(): -> with torch.no_grad():
        |        if max_new_tokens:
        |            p = torch.softmax(filter_logits(model(ids[:, -model.block_size :])[:, -1] / temperature, top_k=top_k), dim=-1)
        |            return torch.cat([ids, torch.multinomial(p, max_new_tokens, True, generator=generator)], dim=1)
        Each new token changes the next prediction. Which tokens has your model read when the third one is drawn?
    one_threshold: top_k uses one threshold for all rows
        filter_logits(logits, top_k=top_k)
        -> logits if top_k is None else logits.masked_fill(logits < logits.topk(top_k).values.min(), -math.inf)
        Each row is a separate text. Does each row use its own k-th largest logit?
    kth_cut_too: top_k keeps only k − 1 tokens
        filter_logits(logits, top_k=top_k)
        -> logits if top_k is None else logits.masked_fill(logits <= logits.topk(top_k).values[:, -1:], -math.inf)
        With top_k = 1 the most likely token remains. How does your comparison treat the k-th logit itself?
    softmax_over_texts: the softmax runs over the batch, not over the vocabulary
        top_k=top_k), dim=-1) -> top_k=top_k), dim=0)
        Along which dimension do the probabilities of one text sum to 1?
    nucleus_left_in: unlikely tokens are excluded although top_k is None
        top_k=top_k), dim -> top_k=top_k, top_p=0.9), dim
        Without top_k every token may be drawn. Which option of filter_logits do you use?
    rank_for_id: with top_k the result is a rank, not an id
        torch.multinomial(p, 1 -> torch.multinomial(p.sort(descending=True).values if top_k else p, 1
        You draw an index among the k tokens. Which id belongs to it?
    one_token_short: one token too few
        range(max_new_tokens) -> range(max_new_tokens - 1)
        How many tokens should follow the prompt?
    temperature_ignored: the temperature has no effect
        [:, -1] / temperature -> [:, -1]
        Do you divide logits or probabilities by it? Dividing all probabilities does not change the draw.
    temperature_multiplied: multiplied by the temperature
        [:, -1] / temperature -> [:, -1] * temperature
        A high temperature makes the distribution more uniform. Should the differences of the logits grow or shrink?
    top_k_ignored: top_k has no effect, or keeps far too many tokens
        top_k=top_k), dim -> top_k=None), dim
        `filter_logits` of lesson 10 excludes the unlikely tokens.
    one_draw_for_all: one token was drawn for all rows
        torch.multinomial(p, 1, generator=generator)
        -> torch.multinomial(p[:1], 1, generator=generator).expand(len(ids), 1)
        Each row is a separate text. How many tokens does each step draw?
    prompt_left_out: the prompt is missing from the result
        return ids -> return ids[:, -max_new_tokens:] if max_new_tokens else ids[:, :0]
        The result begins with the prompt.
    even_among_the_k: with top_k all remaining tokens are equally likely
        torch.multinomial(p, 1 -> torch.multinomial((p > 0).to(p.dtype) if top_k else p, 1
        Among the remaining tokens, the more likely one should still be drawn more often. Which values do you draw
        from?
    even_among_all: all tokens are equally likely
        torch.multinomial(p, 1 -> torch.multinomial((p > 0).to(p.dtype), 1
        The probabilities are the softmax of the logits. Which values do you draw from?
    softmax_before_the_filter: the distribution is too uniform, as after a second softmax
        logits = model(ids[:, -model.block_size :])[:, -1] / temperature
        -> logits = (model(ids[:, -model.block_size :])[:, -1] / temperature).softmax(-1)
        Probabilities are between 0 and 1. What does a softmax of such similar values look like?
    own_seed_at_each_step: each step sets a fixed seed
        drawn = torch -> if generator is not None:
        |                generator.manual_seed(0)
        |            drawn = torch
        Each token needs a new random number. Only the caller should set the seed.
    unlikely_ones_stay: top_k keeps the k least likely tokens
        filter_logits(logits, top_k=top_k) -> -filter_logits(-logits, top_k=top_k).masked_fill(filter_logits(-logits, top_k=top_k) == -math.inf, math.inf)
        Which end of the ranking do you keep?
    one_place_early: drawn from the logits of the second to last position
        [:, -1] / -> [:, -2] /
        Which position has seen the full text?
    temperature_twice: the logits are divided by the temperature twice
        [:, -1] / temperature -> [:, -1] / temperature**2
        At a temperature of 2 a difference of 4 between two logits becomes 2. What does it become in your code?
    put_in_front: the new token is placed before the text
        torch.cat([ids, drawn], dim=1) -> torch.cat([drawn, ids], dim=1)
        At which end does a text continue?
""")

# ---------------------------------------------------------------- language_model_logits

PASSAGES, LENGTH = 100, 64


def cases_language_model_logits(draw):
    from helpers.corpus.source import Source

    source = Source()
    seed = draw.integer(0, 2**31)
    ids = source.passages(PASSAGES, LENGTH, seed)
    later = torch.arange(LENGTH) >= draw.integers(1, LENGTH, (PASSAGES, 1))  # from another place on in each
    changed = torch.where(later, source.passages(PASSAGES, LENGTH, seed + 1), ids)
    shape = (PASSAGES, LENGTH, len(source.symbols))
    nats = source.nats(ids)
    return [
        Case((given,), via="without_gradient", truth={"shape": shape, "ids": given, "nats": nats}, note=note)
        for given, note in ((ids, "passages that nobody has seen"), (changed, "the same with other later ids"))
    ]


def best_logits(case):
    """What somebody who knows the source answers."""
    from helpers.corpus.source import Source

    source = Source()
    return torch.stack([_causal(source, row) for row in case.args[0].tolist()])


def _causal(source, row):
    """The source's log-probabilities along a row; uniform from the first token on that cannot stand where it stands."""
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
    not_trained: worse than counting: no better than the best n-gram
        Has the training cell run, and do you call the trained model? Does every position predict the next token?
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
        case(16, 11, part="more words than places"),
        case(12, 200, part="a long text"),
        case(200, 200, part="a long text of many words, and one word again and again"),
        case(31, 64, part="the size of the lesson's language"),
    ]


induction_head = Exercise("induction_head", cases_induction_head).with_mistakes("""
    says_itself: the current token is predicted, not the one that followed it
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
    not_sharp_enough: sharp enough for small matrices, and too soft for large ones
        sharp = 3 * V + M, 100.0 * (V + M) ** 0.5 -> sharp = 3 * V + M, 50.0
        The scores are divided by the square root of d, and there are M positions. How should the scale grow with V and M?
    first_layer_looks_everywhere: the first layer attends to a mixture of positions
        sharp * W_q -> 0 * W_q
        In the first layer, how far above the others is the score of the previous position?
    second_layer_looks_everywhere: the second layer attends to a mixture of positions
        match[:, token] = torch.eye(V) -> pass
        The first layer is right. In the second one, which channels does the query read?
    no_first_layer: the previous token is not written into its channels
        copy[before, token] = torch.eye(V) -> pass
        Which matrix of which layer has to write it, and into which channels?
    looks_at_the_next: the first layer searches for the next position, not for the previous one
        W_q[:, position], W_k[:, position] = -> W_k[:, position], W_q[:, position] =
        The mask hides later positions. Which position should the query of position t match?
    looks_at_itself: the first layer attends to the current position, not to the previous one
        previous_token_weights(M) -> torch.eye(M), torch.eye(M)
        Which position should the query of position t match?
    answer_elsewhere: the answer is not in the last channels
        say[answer, token] -> say[before, token]
        The logits are the last V channels.
    soft_in_the_first_layer: not sharp enough, the heads attend to a mixture of positions
        sharp = 3 * V + M, 100.0 * (V + M) ** 0.5 -> sharp = 3 * V + M, 10.0
        The scores are divided by the square root of d, and there are M positions. How should the scale grow with V and M?
    values_turned_over: W_v is transposed, so it reads where it should write
        copy[before, token] -> copy[token, before]
        say[answer, token] -> say[token, answer]
        The values are `x @ W_v.T`, so the rows of W_v are the channels that it writes, and its columns those that it reads.
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
        d: Right. A missing mask, targets that are not shifted, or test text in the training data gives the answer
           away.
    quiz_2: a
        a: Right. There are 6,652,800 segments of eight different letters out of eleven, and our text contains 2,700
           of them. A row without counts predicts nothing.
        b: An n-gram of order 10 uses nine tokens of context. That would be enough, but its rows are empty.
        c: Smoothing only spreads probability over rows without counts. With perfect smoothing they would still lack
           counts.
""")

__all__ = ["exercises", "quizzes", "corpus"]
