"""Cases and known mistakes of lesson 12: n-grams, batches, a GPT, and what it writes."""

import torch
from torch import nn

from helpers import corpus
from helpers.checking.vocabulary import DTYPE, GRADIENT, Case, Exercise, listed_quizzes

FORBIDDEN = ("transformer",)
INSTEAD = "build it from the blocks of lessons 8 and 9."

# ---------------------------------------------------------------- ngram_loss

UNSEEN = "contexts that the training text never had"
NEVER = "tokens that never came"


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
        note = "order 3, and contexts that look alike when their digits stand in a row, as 1, 12 and 11, 2 do"
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
            (train, test, 2, 9, 0.5), view="whole_contexts_only", part=NEVER, note="a vocabulary of 9, of which 5 came"
        ),
    ]


ngram_loss = Exercise("ngram_loss", cases_ngram_loss).with_mistakes("""
    vocabulary_of_the_text: V is the number of different tokens that were seen
        train, test = [int(i) for i in train], [int(i) for i in test]
        -> train, test = [int(i) for i in train], [int(i) for i in test]
        |    vocab_size = len(set(train))
        A token that never came can still come. Which argument says how many there are?
    tensors_as_keys: no context was found again
        train, test = [int(i) for i in train], [int(i) for i in test] -> pass
        Are your keys tensors? Two tensors with equal numbers are two different keys of a dictionary.
    tested_on_the_training_text: tested on the training text
        range(order - 1, len(test)): -> range(order - 1, len(test := train)):
        A model is tested on a text that it has not counted.
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
        Which comes first, the logarithm of each place or the mean over places?
    counted_once: each pair of context and token was counted once, however often it came
        pairs.get((context, train[t]), 0) + 1 -> 1
        contexts[context] = contexts.get(context, 0) + 1
        -> contexts[context] = sum(known == context for known, _ in pairs)
        A tensor that is indexed with the same place several times and added 1 to grows by 1. What does your count do?
    order_counts_the_context: one token of context too many
        train[t - order + 1 : t]) -> train[max(t - order, 0) : t])
        test[t - order + 1 : t]) -> test[max(t - order, 0) : t])
        Order 1 has no context at all, and order 2 is the Markov chain of lesson 3.
    one_token_too_few: one token of context too few
        train[t - order + 1 : t]) -> train[t - order + 2 : t])
        test[t - order + 1 : t]) -> test[t - order + 2 : t])
        How many tokens stand before the predicted one in a model of order 3?
    alpha_not_in_the_total: the probabilities of a row do not add up to 1
        + alpha * vocab_size -> + alpha
        Every one of the V counts of a row gets its alpha. By how much does the row's sum grow?
    alpha_not_multiplied: the row's sum grew by V, not by alpha times V
        alpha * vocab_size) -> vocab_size)
        Every one of the V counts of a row gets its alpha. By how much does the row's sum grow?
    nothing_below: alpha was given to the counts, and not to the row's sum
        (contexts.get(context, 0) + alpha * vocab_size) -> max(contexts.get(context, 0), 1)
        What do the V probabilities of a context add up to in yours?
    whole_past: at order 1 the whole past is the context
        context = tuple(train[t - order + 1 : t]) -> context = tuple(train[:t][-(order - 1) :])
        context = tuple(test[t - order + 1 : t]) -> context = tuple(test[:t][-(order - 1) :])
        Which tokens does a slice from -0 on hold?
    unseen_only: alpha was given to the unseen alone
        pairs.get((context, test[t]), 0) + alpha -> pairs.get((context, test[t]), alpha)
        By the formula every count gets its alpha, also one that is not 0.
    places_miscounted: divided by one place too few
        (len(test) - order + 1) -> (len(test) - order)
        A text of three tokens has two with one token before them. How many places did you add up?
    perplexity: the perplexity, not the loss
        return total / (len(test) - order + 1) -> return math.exp(total / (len(test) - order + 1))
        The loss is asked for in nats a token.
    only_numerator_smoothed: only the count was smoothed, not the row's sum
        (contexts.get(context, 0) + alpha * vocab_size) -> max(contexts.get(context, 0), alpha)
        What do the V probabilities of a context add up to in yours?
    counted_in_the_test: counted in the test text
        range(order - 1, len(train)): -> range(order - 1, len(train := test)):
        A model may not count what it is tested on.
    summed: the sum over the places, not their mean
        return total / (len(test) - order + 1) -> return total
        Nats a token: how many places did you add up?
    divided_by_all_places: divided by all tokens, those without a context too
        (len(test) - order + 1) -> len(test)
        You added up fewer places than the test has tokens.
    in_bits: in bits, not in nats
        math.log(seen / -> math.log2(seen /
        Nats come from the natural logarithm.
    context_reversed: test contexts are read from right to left
        context = tuple(test[t - order + 1 : t]) -> context = tuple(test[t - order + 1 : t][::-1])
        Is the context of a test token the same tuple as in the training text?
    wrong_sign: the mean of log p, with the wrong sign
        total -= -> total +=
        A loss is not negative.
    digits_in_a_row: contexts with the same digits in a row were taken for one
        context = tuple(train[t - order + 1 : t]) -> context = "".join(map(str, train[t - order + 1 : t]))
        context = tuple(test[t - order + 1 : t]) -> context = "".join(map(str, test[t - order + 1 : t]))
        The ids 1 and 12, one behind the other, and 11 and 2: what does your key make of them?
    context_at_the_end: the context at the very end of train was counted, though no token comes after it
        total = 0.0 -> context = tuple(train[len(train) - order + 1 :])
        |    contexts[context] = contexts.get(context, 0) + 1
        |    total = 0.0
        What do the V probabilities of that context add up to in yours?
    counted_in_both: counted in train and in test
        train, test = [int(i) for i in train], [int(i) for i in test]
        -> train, test = [int(i) for i in train] + [int(i) for i in test], [int(i) for i in test]
        A model may not count what it is tested on.
    always_a_bigram: one token of context, whatever the order
        train, test = [int(i) for i in train], [int(i) for i in test]
        -> train, test = [int(i) for i in train], [int(i) for i in test]
        |    order = 2
        Which argument says how many tokens a context has?
    unseen_cost_nothing: places with a context that train never had cost nothing
        context = tuple(test[t - order + 1 : t])
        -> context = tuple(test[t - order + 1 : t])
        |        if context not in contexts:
        |            continue
        After an unknown context all V tokens are equally likely. What does such a place cost?
    unseen_tokens_cost_nothing: tokens that never came after their context cost nothing
        context = tuple(test[t - order + 1 : t])
        -> context = tuple(test[t - order + 1 : t])
        |        if (context, test[t]) not in pairs:
        |            continue
        What is a count of 0 worth by the formula, and what does that cost?
    unseen_tokens_skipped: places were left out whose token never came after its context
        context = tuple(test[t - order + 1 : t])
        -> context = tuple(test[t - order + 1 : t])
        |        if (context, test[t]) not in pairs:
        |            continue
        return total / (len(test) - order + 1)
        -> known = [t for t in range(order - 1, len(test)) if (tuple(test[t - order + 1 : t]), test[t]) in pairs]
        |    return total / max(1, len(known))
        What is a count of 0 worth by the formula, and what does that cost?
    not_smoothed: alpha plays no part, and what was never counted is impossible
        pairs.get((context, test[t]), 0) + alpha -> pairs.get((context, test[t]), 0)
        (contexts.get(context, 0) + alpha * vocab_size)) -> max(contexts.get(context, 0), 1)) if seen else -math.inf
        In the formula alpha stands twice. Where is it in yours?
    not_smoothed_at_all: alpha plays no part, and what was never counted has no logarithm
        pairs.get((context, test[t]), 0) + alpha -> pairs.get((context, test[t]), 0)
        contexts.get(context, 0) + alpha * vocab_size) -> contexts.get(context, 0))
        In the formula alpha stands twice. Where is it in yours?
    not_smoothed_but_EPS for EPS in 1e-12, 1e-10, 1e-9: a tiny number of your own stands where alpha should
        pairs.get((context, test[t]), 0) + alpha -> pairs.get((context, test[t]), 0)
        math.log(seen / (contexts.get(context, 0) + alpha * vocab_size))
        -> math.log(seen / max(contexts.get(context, 0), 1) + EPS)
        In the formula alpha stands twice. Where is it in yours?
    backs_off: after a context that train never had, shorter ones were asked
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
        The formula gives an answer for a context of count 0 as well. Which one?
    falls_back_on_a_unigram: after a context that train never had, tokens were counted without any context
        context = tuple(test[t - order + 1 : t])
        -> context = tuple(test[t - order + 1 : t])
        |        if context not in contexts:
        |            chance = (train.count(test[t]) + alpha) / (len(train) + alpha * vocab_size)
        |            total -= math.log(chance)
        |            continue
        The formula gives an answer for a context of count 0 as well. Which one?
    divided_by_the_whole_text: each count was divided by the length of train
        contexts.get(context, 0) + alpha * vocab_size) -> len(train) + alpha * vocab_size)
        Yours says how often context and token come together. How often does the token come once the context is there?
    short_contexts_in_the_test: the first tokens of the test were asked with contexts that nobody counted
        range(order - 1, len(test)): -> range(len(test)):
        context = tuple(test[t - order + 1 : t]) -> context = tuple(test[max(0, t - order + 1) : t])
        (len(test) - order + 1) -> len(test)
        Which is the first place of the test that has a whole context?
    order_less_one: one token of context too few
        train, test = [int(i) for i in train], [int(i) for i in test]
        -> train, test = [int(i) for i in train], [int(i) for i in test]
        |    order = max(order - 1, 1)
        How many tokens stand before the predicted one in a model of order 3?
    unseen_skipped: places with a context that train never had were left out
        context = tuple(test[t - order + 1 : t])
        -> context = tuple(test[t - order + 1 : t])
        |        if context not in contexts:
        |            continue
        return total / (len(test) - order + 1)
        -> known = [t for t in range(order - 1, len(test)) if tuple(test[t - order + 1 : t]) in contexts]
        |    return total / max(1, len(known))
        After an unknown context all V tokens are equally likely. What does such a place cost?
    last_token_of_the_test: the last token of the test is not asked
        range(order - 1, len(test)): -> range(order - 1, len(test) - 1):
        (len(test) - order + 1) -> (len(test) - order)
        Which is the last place that has a whole context?
    first_place_not_asked: the first place of the test that has a whole context is left out
        range(order - 1, len(test)): -> range(order, len(test)):
        (len(test) - order + 1) -> (len(test) - order)
        How many tokens stand before place 1, and how many does a context of order 2 have?
    first_places_left_out: the first place of the test that has a whole context is left out
        range(order - 1, len(train)): -> range(order, len(train)):
        range(order - 1, len(test)): -> range(order, len(test)):
        (len(test) - order + 1) -> (len(test) - order)
        How many tokens stand before place 1, and how many does a context of order 2 have?
    one_for_alpha: 1 was added to each count, whatever alpha is
        train, test = [int(i) for i in train], [int(i) for i in test]
        -> train, test = [int(i) for i in train], [int(i) for i in test]
        |    alpha = 1
        Which argument says what each count gets?
    alpha_behind_the_division: alpha was added to the probability, not to the counts
        pairs.get((context, test[t]), 0) + alpha -> pairs.get((context, test[t]), 0)
        math.log(seen / (contexts.get(context, 0) + alpha * vocab_size))
        -> math.log(seen / max(contexts.get(context, 0), 1) + alpha)
        What do the V probabilities of a context add up to in yours?
    times_its_probability: each logarithm was multiplied by its probability
        total -= math.log(seen / (contexts.get(context, 0) + alpha * vocab_size))
        -> p = seen / (contexts.get(context, 0) + alpha * vocab_size)
        |        total -= p * math.log(p)
        Likely tokens come often by themselves. How much does each place of the test count in a mean over places?
    last_token_of_the_training_text: the last token of train is not counted
        range(order - 1, len(train)): -> range(order - 1, len(train) - 1):
        The end of a range is not included. Which is the last place that you count?
    alpha_above_alone: alpha was given to the counts, and nothing to the row's sum
        (contexts.get(context, 0) + alpha * vocab_size) -> contexts.get(context, 0)
        What do the V probabilities of a context add up to in yours?
    alpha_below_alone: alpha was given to the row's sum, and not to the counts
        pairs.get((context, test[t]), 0) + alpha -> pairs.get((context, test[t]), 0)
        In the formula alpha stands twice. What is the logarithm of a count of 0?
    token_in_its_context: the predicted token is part of its own context
        context = tuple(train[t - order + 1 : t]) -> context = tuple(train[t - order + 1 : t + 1])
        context = tuple(test[t - order + 1 : t]) -> context = tuple(test[t - order + 1 : t + 1])
        A slice ends before its second number. Which tokens are known when the next one is asked for?
    first_place_not_counted: the first place of train that has a whole context is not counted
        range(order - 1, len(train)): -> range(order, len(train)):
        How many tokens stand before place 1, and how many does a context of order 2 have?
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
        case(403, 3, 380, part="all places alike, with replacement"),  # fewer windows than places
    ]


get_batch = Exercise("get_batch", cases_get_batch).with_mistakes("""
    not_shifted: y is x itself
        data[positions + 1] -> data[positions]
        What does each place have to say: the token that it has just read?
    shifted_backward: y is one place behind x
        return data[positions], data[positions + 1] -> return data[positions + 1], data[positions]
        The answer to a place is the token that comes next.
    last_start_missing: the last possible start is never drawn
        torch.randint(len(data) - block_size, -> torch.randint(max(1, len(data) - block_size - 1),
        The upper end of torch.randint is not included.
    last_start_left_out: the last possible start is never drawn
        torch.randint(len(data) - block_size, -> torch.randint(len(data) - block_size - 1,
        The upper end of torch.randint is not included.
    one_start_too_many: a window may begin too late, where its last answer is missing
        starts = torch.randint(len(data) - block_size, -> starts = torch.randint(len(data) - block_size + 1,
        return data[positions], data[positions + 1]
        -> return data[positions], torch.stack([data[s + 1 : s + 1 + block_size] for s in starts])
        Which place is the last one that leaves room for a window and its last answer?
    one_place_beyond: a window may begin too late, where its last answer is missing
        torch.randint(len(data) - block_size, -> torch.randint(len(data) - block_size + 1,
        Which place is the last one that leaves room for a window and its last answer?
    first_ones_preferred: the first starts are drawn more often than the last ones
        torch.randint(len(data) - block_size, (batch_size,), generator=generator)
        -> torch.randint(len(data), (batch_size,), generator=generator) % (len(data) - block_size)
        All places alike: after a division with remainder, how many numbers lead to the first place, and how many to the
        last?
    first_start_missing: the first start is never drawn
        torch.randint(len(data) - block_size,
        -> torch.randint(min(1, len(data) - block_size - 1), len(data) - block_size,
        The text begins at place 0.
    first_start_left_out: the first start is never drawn
        torch.randint(len(data) - block_size, -> torch.randint(1, len(data) - block_size,
        The text begins at place 0.
    generator_begins_anew: each call begins anew with the generator's seed
        starts = torch.randint( -> generator.manual_seed(generator.initial_seed())
        |    starts = torch.randint(
        The second batch of a training should not be the first one again. Who else may set the seed?
    one_window_for_all: every row is the same window
        (batch_size,), generator=generator) -> (1,), generator=generator).expand(batch_size)
        How many starts did you draw?
    generator_not_used: the generator has no say
        , generator=generator) -> )
        With the same generator the batch has to be the same. Which argument tells torch.randint?
    own_generator: every batch is the same, whatever the generator
        generator=generator) -> generator=torch.Generator().manual_seed(0))
        A training needs a new batch at each step. Whose dice do you throw, and who sets their seed?
    rolled_around: a window may begin one place too late, so that its last answer is not in the text
        torch.randint(len(data) - block_size, -> torch.randint(len(data) - block_size + 1,
        data[positions + 1] -> data.roll(-1)[positions]
        Which token comes after the last one of the text? A window needs room for its last answer.
    two_places_on: y is two places further on
        data[positions + 1] -> data[(positions + 2).clamp(max=len(data) - 1)]
        Each place has to say the token that comes next. How far away is that?
    rolled_in_the_window: the last place of y says the first token of its window
        data[positions + 1] -> data[positions].roll(-1, dims=1)
        The answer to the last place stands in the text, behind the window. Where does yours come from?
    filled_up: the last place of y is filled up with an id that the text does not have
        data[positions + 1] -> torch.cat([data[positions[:, 1:]], torch.zeros_like(positions[:, :1])], dim=1)
        The answer to the last place stands in the text, behind the window. Does yours look there?
    ids_plus_one: 1 was added to the ids, not to their places
        data[positions + 1] -> data[positions] + 1
        The token that comes next stands one place further on in the text. What do you add 1 to?
    one_place_back: y says the token before each place, not the one after it
        data[positions + 1] -> data[positions - 1]
        The answer to a place is the token that comes next.
    without_replacement_if_possible: no start is drawn twice, unless there are too few
        torch.randint(len(data) - block_size, (batch_size,), generator=generator)
        -> torch.multinomial(torch.ones(len(data) - block_size), batch_size,
        |        len(data) - block_size < batch_size, generator=generator)
        With replacement: each row is drawn from all places, whatever the others have drawn. May two of yours be the same?
    without_replacement: no start is drawn twice
        torch.randint(len(data) - block_size, (batch_size,), generator=generator)
        -> torch.randperm(len(data) - block_size, generator=generator)[:batch_size]
        With replacement: a batch may hold more windows than there are places. Does yours?
    next_window: y is right only where a window holds one token
        data[positions + 1] -> data[(positions + block_size).clamp(max=len(data) - 1)]
        Each place has to say the token that comes next. Which tokens do the first and the last place of yours say?
    drawn_apart: x and y were drawn separately
        return data[positions], data[positions + 1]
        -> others = torch.randint(len(data) - block_size, (batch_size,), generator=generator)[:, None]
        |    return data[positions], data[others + torch.arange(block_size) + 1]
        One start for each row: x and y are the same window, one place apart.
    cut_in_two: x and y are one token short
        data[positions], data[positions + 1] -> data[positions[:, 1:] - 1], data[positions[:, 1:]]
        From how many tokens of the text do block_size questions and their answers come?
    last_answers_alone: y has one token for each window
        data[positions + 1] -> data[positions[:, -1] + 1]
        Every place of a window is asked what comes next. How many answers does that take?
    columns_for_rows: x and y are transposed
        data[positions], data[positions + 1] -> data[positions].T, data[positions + 1].T
        One row for each window: how many windows are asked for, and how long is each?
    int32_ids: the ids have become int32
        data[positions], data[positions + 1] -> data[positions].int(), data[positions + 1].int()
        The text's ids are int64. Where does yours make others of them?
    windows_side_by_side: starts are multiples of the window's length
        starts[:, None] + -> (starts - starts % block_size)[:, None] +
        Windows may overlap: every place is a start.
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
    viewed: the published version: view instead of an exchange of dimensions
        F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        -> F.cross_entropy(logits.reshape(logits.shape[0], logits.shape[2], -1), targets)
        view deals the same row of numbers into another shape. Where do the V logits of place 0 end up?
    summed: the sum over the places, not their mean
        targets.flatten()) -> targets.flatten(), reduction='sum')
        The number should not grow with the text.
    last_place_only: only the last place was asked
        F.cross_entropy(logits.flatten(0, 1), targets.flatten()) -> F.cross_entropy(logits[:, -1], targets[:, -1])
        Every place has a question and an answer.
    probabilities_first: softmax was applied before the cross-entropy
        logits.flatten(0, 1) -> logits.flatten(0, 1).softmax(-1)
        Cross-entropy takes logits and makes the softmax itself.
    softmax_over_the_places: the probabilities of a token add up over the places, not over the tokens
        F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        -> -logits.log_softmax(1).gather(-1, targets[..., None]).mean()
        What has to add up to 1 at each place: the tokens, or the places?
    summed_over_each_text: summed over the places of a text, and averaged over the texts
        F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        -> F.cross_entropy(logits.flatten(0, 1), targets.flatten()) * targets.shape[1]
        A text twice as long should not have twice the loss.
    shifted_again: logits and targets were shifted once more
        F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        -> F.cross_entropy(logits[:, :-1].flatten(0, 1), targets[:, 1:].flatten())
        The targets are already the next tokens: get_batch has moved them.
    logarithm_of_zero: between large logits exp is rounded to 0 or infinite, and so is what becomes of it
        F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        -> -logits.softmax(-1).gather(-1, targets[..., None]).log().mean()
        The logarithm of 0 is infinite. Which function takes softmax and logarithm in one?
    bare_logits: the logits themselves were taken for logarithms of probabilities
        F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        -> F.nll_loss(logits.flatten(0, 1), targets.flatten())
        nll_loss wants logarithms of probabilities that add up to 1. Which function makes these of logits?
    zero_left_out: places whose answer is token 0 are left out
        targets.flatten()) -> targets.flatten(), ignore_index=0)
        Nothing is filled up here. Which token has the id 0?
    small_number_added_EPS for EPS in 1e-12, 1e-10, 1e-9, 1e-8: a small number keeps the probability from 0
        F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        -> -(logits.softmax(-1).gather(-1, targets[..., None]) + EPS).log().mean()
        A token may be so unlikely that it costs hundreds of nats. What is the largest loss that yours can have?
    shifted_backward: each place was asked for the token that stands before its answer
        F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        -> F.cross_entropy(logits[:, 1:].flatten(0, 1), targets[:, :-1].flatten())
        The targets are already the next tokens: get_batch has moved them.
    targets_rolled: the targets were moved once more, and the first one stands last
        targets.flatten() -> targets.roll(-1, dims=1).flatten()
        The targets are already the next tokens: get_batch has moved them.
    mean_over_places_only: averaged over the places of a text, and summed over the texts
        F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        -> F.cross_entropy(logits.flatten(0, 1), targets.flatten()) * targets.shape[0]
        A batch of twice as many texts should not have twice the loss.
    plain_number: a plain number, from which nothing can be learned
        targets.flatten()) -> targets.flatten()).item()
        A loss is a 0-dim tensor, so that gradients can start from it.
    wrong_sign: the sign is the wrong way round
        F.cross_entropy -> -F.cross_entropy
        A probability is at most 1. Which sign does its logarithm have?
    in_bits: in bits, not in nats
        targets.flatten()) -> targets.flatten()) / math.log(2)
        F.cross_entropy itself counts in nats.
    perplexity: the perplexity, not the loss
        targets.flatten()) -> targets.flatten()).exp()
        The mean cross-entropy is asked for, the logarithm of a perplexity.
    exp_over_sum: exp of large logits is infinite, and infinite over infinite is no number
        F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        -> -(logits.exp() / logits.exp().sum(-1, keepdim=True)).log().gather(-1, targets[..., None]).mean()
        How large may a number be, so that float32 can still hold its exp? Lesson 3 took something away first.
    order_of_targets: the targets stand in another order than the logits
        targets.flatten() -> targets.T.flatten()
        The logits run text by text. Do the targets?
    order_of_logits: the logits stand in another order than the targets
        logits.flatten(0, 1) -> logits.transpose(0, 1).flatten(0, 1)
        The targets run text by text. Do the logits?
    probabilities_averaged: the probabilities were averaged, without a logarithm
        F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        -> F.nll_loss(logits.flatten(0, 1).softmax(-1), targets.flatten())
        nll_loss wants logarithms of probabilities. Which function gives these?
    logarithm_of_the_mean: the logarithm of the mean probability, not the mean of the logarithms
        F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        -> -logits.softmax(-1).gather(-1, targets[..., None]).mean().log()
        Which comes first, the logarithm of each place or the mean over places?
    softmax_over_the_texts: the probabilities of a token add up over the texts, not over the tokens
        F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        -> -logits.log_softmax(0).gather(-1, targets[..., None]).mean()
        What has to add up to 1 at each place: the tokens, or the texts?
    averaged_over_tokens_too: divided by the size of the vocabulary as well
        F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        -> F.cross_entropy(logits.flatten(0, 1), targets.flatten()) / logits.shape[-1]
        Each place has one right token. How many numbers did you take the mean of?
    largest_of_all: the largest of all logits was taken away, not the largest of each place
        F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        -> (-logits.gather(-1, targets[..., None]) + logits.max()
        |            + (logits - logits.max()).exp().sum(-1, keepdim=True).log()).mean()
        At a place whose logits are all far below that, what is left of exp?
    transposed_and_flattened: two dimensions change places, and then the numbers are dealt anew into rows of V
        logits.flatten(0, 1) -> logits.transpose(1, 2).reshape(-1, logits.shape[-1])
        Once V stands in the middle, which numbers lie side by side? Do the one or the other.
    last_place_left_out: the last place of each text is left out
        F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        -> F.cross_entropy(logits[:, :-1].flatten(0, 1), targets[:, :-1].flatten())
        get_batch has an answer for every place. How many questions does a window of T tokens ask?
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
        When the text has grown longer than the context, which ids does the model still read?
    cropped_at_the_wrong_end: the model reads the beginning of the text, not its end
        ids[:, -model.block_size :] -> ids[:, : model.block_size]
        The text goes on at its end. Which ids stand there?
    text_cropped: the text itself was cropped, and its beginning is gone
        logits = model(ids[:, -model.block_size :])[:, -1] / temperature
        -> ids = ids[:, -model.block_size :]
        |            logits = model(ids)[:, -1] / temperature
        The model reads the last ids only. What comes back holds all of them.
    negative_start: of a text shorter than the context the model reads the end alone
        ids[:, -model.block_size :] -> ids[:, ids.shape[1] - model.block_size :]
        With 4 ids and a context of 6, at which place does your slice begin?
    texts_cropped: the texts were counted, not their tokens
        ids[:, -model.block_size :] -> ids[-model.block_size :]
        Which dimension of ids are the tokens of a text?
    place_of_the_prompts_end: drawn from the logits of the place where the prompt ended
        with torch.no_grad(): -> place = ids.shape[1] - 1
        |    with torch.no_grad():
        [:, -1] / -> [:, place] /
        The text grows. Which place has read all of it?
    newest_only: the model reads the newest id alone
        ids[:, -model.block_size :] -> ids[:, -1:]
        Without a cache the model knows only what you give it.
    first_place: drawn from the logits of the first place
        [:, -1] / -> [:, 0] /
        Which place has read the whole text?
    always_the_likeliest: always the likeliest token, nothing is drawn
        torch.multinomial(p, 1, generator=generator) -> p.argmax(-1, keepdim=True)
        One token is drawn from the softmax; argmax is another way of writing.
    likeliest_without_a_generator: without a generator always the likeliest token, nothing is drawn
        torch.multinomial(p, 1, generator=generator)
        -> torch.multinomial(p, 1, generator=generator) if generator else p.argmax(-1, keepdim=True)
        Without a generator the dice are torch's own. They are thrown all the same.
    generator_not_used: the generator has no say, or not at every throw
        (p, 1, generator=generator) -> (p, 1)
        With the same generator the text has to be the same.
    call_begins_anew: each call begins anew with the generator's seed
        with torch.no_grad(): -> if generator is not None:
        |        generator.manual_seed(generator.initial_seed())
        |    with torch.no_grad():
        Two texts in a row from one generator should not be the same. Who may set the seed?
    step_begins_anew: each step begins anew with the generator's seed
        drawn = torch -> if generator is not None:
        |                generator.manual_seed(generator.initial_seed())
        |            drawn = torch
        A token is drawn anew, whatever the dice said before. Who may set the seed?
    fixed_dice: without a generator each call throws the same
        torch.no_grad(): -> torch.no_grad():
        |        generator = generator or torch.Generator().manual_seed(0)
        Two texts in a row should not be the same. Who may set the seed?
    one_throw_for_the_text: one throw of the dice stands for a whole text
        with torch.no_grad(): -> throw = torch.rand(len(ids), 1, generator=generator)
        |    with torch.no_grad():
        torch.multinomial(p, 1, generator=generator)
        -> torch.searchsorted(p.cumsum(-1), throw).clamp(max=p.shape[-1] - 1)
        Each token is drawn anew, whatever the dice said before. How often are they thrown?
    one_more_stays: with top_k one token too many stays
        top_k=top_k), dim -> top_k=top_k and top_k + 1), dim
        With top_k = 1 nothing is left to chance. How many stay in yours?
    softmax_twice: the softmax was taken twice
        torch.softmax(filter -> torch.softmax(torch.softmax(filter
        top_k=top_k), dim=-1) -> top_k=top_k), dim=-1) / temperature, dim=-1)
        [:, -1] / temperature -> [:, -1]
        Probabilities lie between 0 and 1. What does a softmax make of numbers that are so close together?
    softmax_of_the_softmax: the softmax was taken twice
        top_k=top_k), dim=-1) -> top_k=top_k), dim=-1).softmax(-1)
        Probabilities lie between 0 and 1. What does a softmax make of numbers that are so close together?
    cut_to_zero: with top_k the logits that are cut became 0
        filter_logits(logits, top_k=top_k)
        -> logits if top_k is None else logits.masked_fill(logits < logits.topk(top_k).values[:, -1:], 0.0)
        A logit of 0 is like any other. Which one leaves a token no probability at all?
    all_drawn_at_once: all new tokens were drawn from what the model says of the prompt
        with torch.no_grad(): -> with torch.no_grad():
        |        if max_new_tokens:
        |            p = torch.softmax(filter_logits(model(ids[:, -model.block_size :])[:, -1] / temperature, top_k=top_k), dim=-1)
        |            return torch.cat([ids, torch.multinomial(p, max_new_tokens, True, generator=generator)], dim=1)
        Each new token changes what comes after it. Which tokens does the model of yours read before it gives the third one?
    one_threshold: with top_k all rows are cut at one threshold
        filter_logits(logits, top_k=top_k)
        -> logits if top_k is None else logits.masked_fill(logits < logits.topk(top_k).values.min(), -math.inf)
        Each row is a text of its own, and the k-th largest logit of one says nothing of another.
    kth_cut_too: with top_k only k − 1 tokens stay
        filter_logits(logits, top_k=top_k)
        -> logits if top_k is None else logits.masked_fill(logits <= logits.topk(top_k).values[:, -1:], -math.inf)
        With top_k = 1 the likeliest token stays. How does your comparison treat the k-th itself?
    softmax_over_texts: the probabilities of a token add up over the texts, not those of a text over the tokens
        top_k=top_k), dim=-1) -> top_k=top_k), dim=0)
        Each row is a text of its own. What has to add up to 1 in it?
    nucleus_left_in: unlikely tokens are cut off, though nobody asked for it
        top_k=top_k), dim -> top_k=top_k, top_p=0.9), dim
        Without top_k every token may come. Which option of lesson 10's function do you use?
    rank_for_id: with top_k a token's rank comes out, not its id
        torch.multinomial(p, 1 -> torch.multinomial(p.sort(descending=True).values if top_k else p, 1
        What is drawn is a place among the k. Which id stands there?
    one_token_short: one token too few
        range(max_new_tokens) -> range(max_new_tokens - 1)
        How many tokens come behind the prompt?
    temperature_ignored: the temperature has no say, or comes behind the softmax, where it makes no difference
        [:, -1] / temperature -> [:, -1]
        What does your code divide by it, logits or probabilities? A draw asks only for the ratios of probabilities.
    temperature_multiplied: multiplied by the temperature
        [:, -1] / temperature -> [:, -1] * temperature
        A high temperature makes the choice more even. What does that do to the differences of the logits?
    top_k_ignored: with top_k far too many tokens stay, or all of them
        top_k=top_k), dim -> top_k=None), dim
        Lesson 10 has a function that cuts the unlikely tokens off.
    one_draw_for_all: one token was drawn for all rows
        torch.multinomial(p, 1, generator=generator)
        -> torch.multinomial(p[:1], 1, generator=generator).expand(len(ids), 1)
        Each row is a text of its own. How many tokens are drawn at each step?
    prompt_left_out: the prompt is not in front
        return ids -> return ids[:, -max_new_tokens:] if max_new_tokens else ids[:, :0]
        What comes back begins with what came in.
    even_among_the_k: with top_k the chances of the tokens that stay are too even
        torch.multinomial(p, 1 -> torch.multinomial((p > 0).to(p.dtype) if top_k else p, 1
        Among those that stay the likelier one still comes more often. Which numbers go into your filter, and which ones do
        you draw from?
    even_among_all: the chances of the tokens that may come are too even
        torch.multinomial(p, 1 -> torch.multinomial((p > 0).to(p.dtype), 1
        A likelier token comes more often, as the softmax of the logits says. Which numbers do you draw from?
    softmax_before_the_filter: the chances are too even, as after a second softmax
        logits = model(ids[:, -model.block_size :])[:, -1] / temperature
        -> logits = (model(ids[:, -model.block_size :])[:, -1] / temperature).softmax(-1)
        Probabilities lie between 0 and 1. What does a softmax make of numbers that are so close together?
    own_seed_at_each_step: a seed of your own is set at each step, so that the given one has no say
        drawn = torch -> if generator is not None:
        |                generator.manual_seed(0)
        |            drawn = torch
        A token is drawn anew, whatever the dice said before. Who may set the seed?
    unlikely_ones_stay: with top_k the k least likely tokens stay
        filter_logits(logits, top_k=top_k) -> -filter_logits(-logits, top_k=top_k).masked_fill(filter_logits(-logits, top_k=top_k) == -math.inf, math.inf)
        Which end of the order does topk give you, and what do you keep?
    one_place_early: drawn from the logits of the last place but one
        [:, -1] / -> [:, -2] /
        Which place has read the whole text?
    temperature_twice: the temperature acts too strongly, as if it divided twice
        [:, -1] / temperature -> [:, -1] / temperature**2
        At a temperature of 2 a difference of 4 between two logits becomes 2. What does it become in yours?
    put_in_front: the new token is put in front of the text
        torch.cat([ids, drawn], dim=1) -> torch.cat([drawn, ids], dim=1)
        Where does a text go on?
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
    below_the_line: your loss is below the entropy line, so the answers were known before
        No honest model can do that, and later ids do not move yours. Which passages has it been trained on, or where
        does your function look them up?
    sees_later_ids: logits move when ids change that stand behind them, or in other passages
        What a place says hangs on its own passage up to there, and on nothing else. Which mask did the model run with,
        and does anything mix the rows of the batch? (And does the same question get the same answer twice?)
    not_trained: worse than counting: no better than the best n-gram
        Has the training cell run, is it this model that you ask, and all of it? And is each place asked what comes next?
    probabilities: the answer holds probabilities, and logits are asked for
        Whoever takes the softmax of a softmax gets a nearly even choice. Who makes the softmax here, you or the loss?
    a_table: what a place says hangs on its own token alone, as in a bigram table
        Equal tokens get equal logits wherever they stand. Is it your trained GPT that you ask, and does it look back?
    infinite_loss: a token that came was called impossible
        Finite logits call no token impossible. Which of yours are infinite, and who made them so?
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
    says_itself: mostly the token itself is said, not what came after it
        keys[:, before] = torch.eye(V) -> keys[:, token] = torch.eye(V)
        keys[:, V] = -1.0 -> pass
        In the second layer: what is written in the channels that a key reads, and in those that W_v carries on?
    carries_the_token_before: mostly the token itself is said, though the right place is found
        say[answer, token] -> say[answer, before]
        In the second layer: which channels of the place that it finds does W_v carry on?
    place_zero_matches_itself: a segment at the very start of the text is not continued
        keys[:, V] = -1.0 -> pass
        At place 0 there is no token before. What did the first head write there?
    too_soft: the heads look at a mixture of places
        100.0 * -> 0.01 *
        One-hot vectors give scores of 0 and 1, and a softmax of those is nearly even.
    not_sharp_enough: sharp enough for small matrices, and too soft for large ones
        sharp = 3 * V + M, 100.0 * (V + M) ** 0.5 -> sharp = 3 * V + M, 50.0
        The scores are divided by the root of d, and a place is one among M. How do both grow with V and M?
    first_layer_looks_everywhere: the first layer looks at a mixture of places, not at one
        sharp * W_q -> 0 * W_q
        In the first layer, how far above the others is the score of the place before? Which query makes it so?
    second_layer_looks_everywhere: the second layer looks at a mixture of places, not at one
        match[:, token] = torch.eye(V) -> pass
        What the first layer has written stands in its room. In the second one, what does a query ask for, and in which
        channels?
    no_first_layer: the second layer does not find, beside each token, the one before it
        copy[before, token] = torch.eye(V) -> pass
        Who has to write it there, into which channels, and in which layer?
    looks_at_the_next: the first layer looks for the token after each one, not for the one before it
        W_q[:, position], W_k[:, position] = -> W_k[:, position], W_q[:, position] =
        A later token is hidden by the mask. Which place does the query of place t have to ask for?
    looks_at_itself: the first layer looks for the token's own place, not for the one before it
        previous_token_weights(M) -> torch.eye(M), torch.eye(M)
        The room beside a token is for the one before. Which place does the query of place t have to ask for?
    answer_elsewhere: the answer does not stand in the last channels
        say[answer, token] -> say[before, token]
        The logits are read from the last V channels.
    soft_in_the_first_layer: not quite sharp enough: the heads look at a mixture of places
        sharp = 3 * V + M, 100.0 * (V + M) ** 0.5 -> sharp = 3 * V + M, 10.0
        The scores are divided by the root of d, and a place is one among M. How do both grow with V and M?
    values_turned_over: what the layers carry on is read and written the wrong way round
        copy[before, token] -> copy[token, before]
        say[answer, token] -> say[token, answer]
        W_v stands on the left of a vector: its rows are the channels that it writes, and its columns those that it reads.
    second_query_and_key_exchanged: in the second layer query and key are exchanged
        (sharp * match, keys, say) -> (sharp * keys, match, say)
        The token that is here asks for a place with the same token beside it. Which of the two is the query?
""")

exercises = [ngram_loss, get_batch, next_token_loss, gpt, language_model_logits, generate, induction_head]

quizzes = listed_quizzes("""
    quiz_1: b
        a: The entropy rate is what the best of all models has. A better one than that does not exist.
        b: A missing mask, targets that are not shifted, a test text among the training text: each lets the answer in.
        c: On a short text that happens. On a long one the chance falls exponentially: a win of 20 nats in all comes
           at most once in 485 million texts.
    quiz_2: a
        a: There are 6,652,800 segments of eight different letters out of eleven, and our text holds 2,700 of them. A
           row that was never counted says nothing.
        b: An n-gram of order 10 looks back nine tokens. That is far enough; the trouble is that its rows are empty.
        c: Smoothing is a repair for empty rows. With perfect smoothing they would still be empty.
    quiz_3: b
        a: Counting helps a unigram model. An induction head copies what it has seen once.
        b: Then the second layer's keys can say: the token before me is q. A query that holds q finds the place.
        c: That is the second layer's work, and it finds the place after it. It could not without the first layer's
           note.
""")

__all__ = ["exercises", "quizzes", "corpus"]
