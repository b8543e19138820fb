"""Cases and known mistakes of lesson 12: n-grams, batches, a GPT, and what it writes."""

import torch
from torch import nn

from helpers import corpus
from helpers.checking.vocabulary import DTYPE, GRADIENT, Case, Exercise, listed_quizzes

FORBIDDEN = ("transformer",)
INSTEAD = "build it from the blocks of lessons 8 and 9."

# ---------------------------------------------------------------- bits_per_token


def cases_bits_per_token(draw):
    return [
        Case((draw.python.uniform(0.5, 3.0),)),
        Case((draw.python.uniform(3.0, 9.0),)),
        Case((0.0,), part="a loss of 0", view="a_python_float"),
        Case((2,), part="an int"),
        Case((1e-4,), part="a small loss"),
        Case((draw.python.uniform(100.0, 300.0),), part="a loss gone mad"),
    ]


bits_per_token = Exercise("bits_per_token", cases_bits_per_token).with_mistakes("""
    multiplied: multiplied where it has to be divided
        loss / math.log(2) -> loss * math.log(2)
        Are there more bits or more nats in the throw of a coin?
    logarithm_of_the_loss: the logarithm of the loss
        loss / math.log(2) -> math.log(loss + 1e-300) / math.log(2)
        The loss is a logarithm already. How do you change the base of a logarithm?
    log2_of_the_loss: the logarithm of the loss to base 2
        loss / math.log(2) -> math.log2(loss)
        The loss is a logarithm already. How do you change the base of a logarithm?
    log2_of_a_positive_loss: the logarithm of the loss to base 2
        loss / math.log(2) -> math.log2(loss) if loss else 0.0
        The loss is a logarithm already. How do you change the base of a logarithm?
    perplexity: the perplexity, not the bits
        loss / math.log(2) -> math.exp(loss)
        Among how many equally likely tokens one would have to guess is another question.
    base_ten: digits, not bits
        math.log(2) -> math.log(10)
        How many outcomes does a coin have?
    other_logarithm: divided by the logarithm of 2 to base ten
        math.log(2) -> math.log10(2)
        Nats come from the natural logarithm. To which base is the one that you divide by?
    halved: divided by 2
        math.log(2) -> 2
        A fair coin has an entropy of 0.693 nats. How many bits is that?
    power_of_two: two to the power of the loss
        loss / math.log(2) -> 2.0**loss
        Nats and bits are two units for one thing, as miles and kilometers are.
    wrong_sign: the sign is the wrong way round
        loss / math.log(2) -> -loss / math.log(2)
        A loss of 0.693 nats is one bit, and not minus one.
    unchanged: nats, as they came
        loss / math.log(2) -> float(loss)
        A fair coin has 1 bit and 0.693 nats.
    rounded_up: whole bits, rounded up
        loss / math.log(2) -> float(math.ceil(loss / math.log(2)))
        A mean may lie between two whole numbers, and so may a number of bits.
    bytes: bytes, not bits
        loss / math.log(2) -> loss / math.log(2) / 8
        A byte has eight bits. Which of the two is asked for?
""")

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


class OwnAttention(nn.Module):
    """Attention without rotations that does one thing wrong."""

    def __init__(self, d_model, num_heads, wrong):
        super().__init__()
        self.num_heads, self.wrong = num_heads, wrong
        fused = wrong == "averaged, from one matrix"
        self.into = nn.ModuleList(
            [nn.Linear(d_model, 3 * d_model)] if fused else [nn.Linear(d_model, d_model) for _ in "qkv"]
        )
        self.W_o = nn.Identity() if wrong == "no output" else nn.Linear(d_model, d_model)

    def forward(self, x, mask):
        made = torch.cat([W(x) for W in self.into], dim=-1).chunk(3, dim=-1)
        q, k, v = (z.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for z in made)
        if self.wrong == "cut in a row":
            q, k, v = (z.transpose(1, 2).reshape(z.shape) for z in (q, k, v))
        k = q if self.wrong == "no keys" else k
        powers = {"not divided": 0, "no root": 1, "multiplied": -0.5}
        scores = q @ k.mT / q.shape[-1] ** powers.get(self.wrong, 0.5)  # (B, H, T, T)
        if self.wrong == "model's width":
            scores = q @ k.mT / x.shape[-1] ** 0.5
        if self.wrong == "number for width":
            q, k, v = (z.unflatten(-1, (-1, self.num_heads)).transpose(1, 2) for z in made)
            scores = q @ k.mT / q.shape[-1] ** 0.5  # (B, D/H, T, T)
        if self.wrong == "number of heads":
            scores = q @ k.mT / self.num_heads**0.5
        if self.wrong == "mask too late":
            weights = scores.softmax(-1) * mask
        elif self.wrong == "no softmax":
            weights = scores * mask
        else:
            over = {"queries": -2, "heads": 1}.get(self.wrong, -1)
            seen = mask.tril(-1) if self.wrong in ("not itself", "all at first") else mask
            hidden = seen if self.wrong in ("hidden", "all at last") else ~seen
            weights = scores.masked_fill(hidden, -1e9 if self.wrong.startswith("all") else -torch.inf).softmax(over)
        out = weights @ v  # (B, H, T, D/H)
        out = out.mean(1, keepdim=True).expand_as(out) if "averaged" in self.wrong else out
        out = out if self.wrong in ("cut in a row", "run together") else out.transpose(1, 2)
        return self.W_o(out.reshape(x.shape)), None  # (B, T, D)


def attending(wrong):
    """A GPT with learned positions and such an attention."""

    def gpt(vocab_size, block_size, d_model, num_heads, num_layers):
        from helpers.blocks import GPT

        model = GPT(vocab_size, block_size, d_model, num_heads, num_layers, positions="learned")
        for block in model.blocks:
            block.attention = OwnAttention(d_model, num_heads, wrong)
        return model

    return gpt


def words_times_places(vocab_size, block_size, d_model, num_heads, num_layers):
    """A GPT with learned positions, which multiply the vectors of the words."""
    from helpers.blocks import GPT, causal_mask

    class Times(GPT):
        def forward(self, ids):
            T = ids.shape[1]
            x = self.tokens(ids) * self.positions(torch.arange(T))  # (B, T, D)
            for block in self.blocks:
                x = block(x, causal_mask(T))  # (B, T, D)
            return self.unembed(self.norm(x))  # (B, T, V)

    return Times(vocab_size, block_size, d_model, num_heads, num_layers, positions="learned")


class TorchAttention(nn.MultiheadAttention):
    """PyTorch's own attention with a mask that is made of the lessons'."""

    def forward(self, x, mask):
        return super().forward(x, x, x, attn_mask=self.hidden(mask), need_weights=False)


def with_torch_attention(hidden):
    """A GPT with learned positions and PyTorch's attention, from which hidden(mask) hides what is True."""

    def gpt(vocab_size, block_size, d_model, num_heads, num_layers):
        from helpers.blocks import GPT

        model = GPT(vocab_size, block_size, d_model, num_heads, num_layers, positions="learned")
        for block in model.blocks:
            block.attention = TorchAttention(d_model, num_heads, batch_first=True)
            block.attention.hidden = hidden
        return model

    return gpt


FORMULA = "the formula, with given numbers"


def cases_GPT(draw):
    def case(V, block_size, D, H, layers, B, T, whole=False, whole_contexts=False, **options):
        init = dict(vocab_size=V, block_size=block_size, d_model=D, num_heads=H, num_layers=layers)
        ids = torch.stack([torch.cat([draw.permutation(V) for _ in range(0, T, V)])[:T] for _ in range(B)])

        def changed(*positions):
            other = ids.clone()
            other[:, list(positions)] = (other[:, list(positions)] + draw.integer(1, V - 1)) % V
            return other

        runs = {"ids": ids}
        if T > 2:
            runs |= {
                "another last token": changed(T - 1),
                "other later tokens": changed(*range(2, T)),
                "other earlier tokens": changed(*range(T - 1)),
            }
        if T > 2 and not whole_contexts:
            runs["shorter"] = ids[:, : 1 if whole else T - 1]
        if B > 1 and T > 2:  # in one text alone a head may look elsewhere, so that the first tokens hardly count
            exchanged, one = ids.clone(), T - 3 if T > 20 else 0
            exchanged[:, [one, one + 1]] = ids[:, [one + 1, one]]
            runs |= {"another first token": changed(0), "exchanged": exchanged}
        if B > 1:
            runs["alone"] = ids[-1:]
        note = f"a GPT with random numbers, {layers} {'layer' if layers == 1 else 'layers'}, {B} {'text' if B == 1 else 'texts'} of {T}"
        args = (init, draw.integer(0, 2**31), runs, whole)
        return Case(args, via="random_gpts", view="gpt_behavior", note=note, **options)

    def with_numbers(V, block_size, D, H, layers):
        init = dict(vocab_size=V, block_size=block_size, d_model=D, num_heads=H, num_layers=layers)
        ids = torch.stack([draw.permutation(V)[:block_size] for _ in range(3)])
        ids[0, :2], ids[1, :2] = torch.tensor([0, 1]), torch.tensor([2, 3])  # different words at the first places
        note = f"a GPT with given numbers, {layers} layers, 3 texts of {block_size}"
        args = (init, draw.choice([1, 2, 8]), ids)
        return Case(args, via="gpt_with_numbers", view="gpt_by_its_numbers", part=FORMULA, note=note)

    def with_sublayers(V, block_size, D, questions):
        init = dict(vocab_size=V, block_size=block_size, d_model=D, num_heads=1, num_layers=1)
        A, B = draw.normal(2, 1, D, scale=0.3)  # alike, so that no weight is nearly 1
        u = draw.normal(questions, D)
        A_, B_ = A.expand_as(u), B.expand_as(u)
        y = torch.cat([torch.stack([A_, B_, u], 1), torch.stack([u, B_, A_], 1), torch.stack([B, A, A], 1)])
        one_changed = draw.normal(1, 3, D) + torch.eye(4, 3)[:, :, None].roll(1, 0) * draw.normal(D)
        alike = draw.normal(2, 1, D).expand(2, 3, D)
        y = torch.cat([y, one_changed, alike])
        z = draw.normal(len(y), 3, D, scale=2.0)
        z[:, 2] = z[:, :2].mean(1)
        note = "a GPT of one block with random numbers, asked for what its sublayers do"
        return Case((init, draw.integer(0, 2**31), y, z), via="gpt_sublayers", view="gpt_by_its_sublayers", note=note)

    return [
        with_sublayers(9, 5, 8, 8),  # first, as what it says is the cause of much that others see
        case(13, 9, 12, 3, 2, 7, 6, whole=True),  # V, block_size and one more: no multiples of a head's width
        case(13, 7, 8, 2, 1, 9, 7, whole_contexts=True, part="a text as long as block_size"),
        case(80, 72, 8, 4, 1, 5, 72, part="a text as long as block_size"),
        case(9, 6, 16, 4, 3, 7, 5, whole=True, part="three layers"),
        case(5, 9, 6, 1, 1, 1, 8, part="one text, one head, one layer"),
        case(8, 5, 8, 4, 2, 2, 1, part="one token"),
        with_numbers(11, 7, 12, 2, 2),  # 2 heads of 6: a score of 6 heads of 2 is no multiple by a known divisor
    ]


gpt = Exercise("GPT", cases_GPT, forbidden=FORBIDDEN, instead=INSTEAD, apart=(FORMULA,), time_limit=10.0).with_mistakes(
    """
    not_causal: places hear later tokens
        x = block(x, mask) -> x = block(x)
        The answer to each place stands one place to the right. Who must not see it?
    mask_upside_down: the mask is upside down
        mask = causal_mask(T) -> mask = causal_mask(T).T
        True means may attend. May the first token attend to the last?
    mask_of_the_hidden: the mask says which places are hidden, not which may be seen
        mask = causal_mask(T) -> mask = ~causal_mask(T)
        True means may attend. May a token attend to itself?
    only_the_first_block: only one block is at work, whatever num_layers says
        for block in self.blocks:
        |            x -> for block in self.blocks[:1]:
        |            x
        num_layers blocks stand in a row.
    norms_behind: the norms stand behind the sublayers, not in front of them
        4 * d_model, True, activation) -> 4 * d_model, False, activation)
        A block of lesson 9 is post-norm unless it is told otherwise. Which order does a GPT have?
    probabilities: probabilities instead of logits
        return self.unembed(self.norm(x)) -> return self.unembed(self.norm(x)).softmax(-1)
        The softmax belongs to the loss, and to whoever draws.
    vectors_not_logits: the model's vectors came out, not logits
        return self.unembed(self.norm(x)) -> return self.norm(x)
        Every place needs a number for each of the V tokens.
    last_place_only: only the last place has logits
        self.unembed(self.norm(x)) -> self.unembed(self.norm(x))[:, -1]
        In training every place is asked.
    block_size_not_kept: block_size is not kept
        self.block_size = block_size -> self.context = block_size
        Whoever writes with the model has to know how much it can read.
    narrow_feed_forward: a block has, or uses, fewer numbers than it should
        4 * d_model -> d_model
        Count the numbers that one more block brings and that have a say: 4 D² for attention and 8 D² for the feed-forward
        network. Which of the two is short, or has a part that nobody reads?
    half_feed_forward: the feed-forward networks are twice as wide as the model, not four times
        4 * d_model -> 2 * d_model
        One more block should bring 4 D² numbers for attention and 8 D² for the feed-forward network.
    wide_feed_forward: a block has more numbers than it should
        4 * d_model -> 8 * d_model
        One more block should bring 4 D² numbers for attention and 8 D² for the feed-forward network. Which of the two is
        larger in yours, and on what does its width hang?
    one_block_short: there is one block fewer than num_layers says
        range(num_layers)] -> range(num_layers - 1)]
        How many numbers does range(3) run through?
    last_block_alone: every block reads the embeddings, and only what the last one makes goes on
        x = block(x, mask) -> y = block(x, mask)
        self.norm(x) -> self.norm(y)
        What does the second block read, and what should it read?
    no_gradient: no gradient comes out of the model
        return self.unembed(self.norm(x)) -> return self.unembed(self.norm(x)).detach()
        The logits are right, and nothing can be learned from them. Who switches gradients off in yours?
    shared_attention: all blocks share one attention
        for block in self.blocks:
        |                block.attention = RotaryAttention(d_model, num_heads)
        -> shared = RotaryAttention(d_model, num_heads)
        |            for block in self.blocks:
        |                block.attention = shared
        One more block should bring 4 D² numbers for attention and 8 D² for the feed-forward network. How many objects
        do you make?
    no_last_norm: no norm stands between the last block and the logits
        self.unembed(self.norm(x)) -> self.unembed(x)
        With the norms in front, who normalizes what leaves the last block?
    norm_before_the_blocks: a norm stands before the blocks, where nobody asks for one
        for block in self.blocks:
        |            x -> x = self.norm(x)
        |        for block in self.blocks:
        |            x
        self.unembed(self.norm(x)) -> self.unembed(x)
        A pre-norm block normalizes what it reads, and leaves x itself as it is. Who changes x here, and where does the
        last norm belong?
    side_by_side: all blocks read the same, and their outputs are added
        for block in self.blocks:
        |            x = block(x, mask)
        -> x = x + sum(block(x, mask) - x for block in self.blocks)
        What does the second block read, and what should it read?
    plain_list: the blocks stand in a plain list, where PyTorch does not find their numbers
        nn.ModuleList(blocks) -> blocks
        parameters() finds what hangs on a module as a module: nothing in a list is trained or saved. Lesson 9 has a list
        that is a module itself.
    one_block_repeated: one block does the work of all
        nn.ModuleList(blocks) -> nn.ModuleList(blocks[:1] * num_layers)
        The list may be as long as it should be. How many different blocks are made, and is each of them called?
    no_activation: no activation stands in the feed-forward network
        4 * d_model, True, activation) -> 4 * d_model, True, lambda x: x)
        Attention stands. Two linear layers in a row are one. What stands between them?
    mask_off_in_training: in training mode places hear later tokens
        mask = causal_mask(T).to(ids.device) -> mask = causal_mask(T).to(ids.device) | self.training
        A new module is in training mode. Who hides the answers from it there?
    no_positions: no place reaches the blocks
        block.attention = RotaryAttention(d_model, num_heads) -> pass
        With one block, exchange two early tokens: the last place says the same. (With more, the mask tells it a
        little.) Who tells the blocks which token came first?
    log_probabilities: log-probabilities instead of logits
        return self.unembed(self.norm(x)) -> return self.unembed(self.norm(x)).log_softmax(-1)
        The loss takes its own softmax. What comes out of the last linear layer?
    residual_twice: what enters a block is added once more behind it
        x = block(x, mask) -> x = x + block(x, mask)
        The block of lesson 9 has its own residuals. What does yours add?
    weights_over_queries: the softmax runs over the queries, not over the keys
        Write down the weights of one query, and then add them up. Along which dimension of the scores do they lie?
    softmax_over_heads: the softmax runs over the heads, not over the keys
        The scores have four dimensions. Along which of them do the weights of one query lie?
    masked_after_the_softmax: the mask came after the softmax, when later tokens had had their share
        What do the weights of the first place add up to in yours?
    heads_mixed_up: with one head all is right, with more of them numbers of different tokens are mixed
        Where you cut a tensor into heads or put them together again, a reshape only counts numbers off in a row. Which
        dimension lies beside the channels just then, the heads or the tokens?
    heads_cut_in_a_row: with one head all is right, with more of them numbers of different tokens are mixed
        Where you cut a tensor into heads or put them together again, a reshape only counts numbers off in a row. Which
        dimension lies beside the channels just then, the heads or the tokens?
    sees_the_next: each place hears the next token too
        causal_mask(T) -> torch.ones(T, T).tril(1).bool()
        The next token is what a place has to say. Print your mask: how far to the right does its first row go?
    blind_to_itself: no place hears itself
        mask = causal_mask(T) -> mask = causal_mask(T).tril(-1)
        Print your mask. May the first token attend to anything?
    first_place_sees_nothing: no place hears itself, and the first one hears nothing at all
        Print your mask: what may the first token attend to? And what is a softmax of nothing but −∞?
    first_place_hears_all: no place hears itself, and the first one, which then has nobody, hears all
        Print your mask: what may the first token attend to? And what is a softmax of numbers that are all the same?
    mask_reversed: the later tokens are heard, and those that may be seen are hidden
        Which places of your scores are filled with −∞: those where the mask is True, or those where it is False?
    no_softmax: the scores themselves are the weights, without a softmax
        What do the weights of one place add up to in yours?
    heads_averaged: the heads' findings were averaged or added up, and do not stand side by side
        Each head has channels of its own. How many numbers go into the matrix behind the heads, and how many are
        different in yours?
    heads_of_one_matrix_averaged: the heads' findings were averaged or added up, and do not stand side by side
        Each head has channels of its own. How many numbers go into the matrix behind the heads, and how many are
        different in yours?
    divided_by_the_number_of_heads: the scores are divided by the root of the number of heads
        How many products does one score of one head add up?
    network_first: the feed-forward network comes before attention
        x = block(x, mask) -> x = x + block.feed_forward(block.norm2(x))
        |            x = x + block.attention(block.norm1(x), mask=mask)[0]
        The feed-forward network is there to work on what attention has found. Which of the two comes first in yours?
    whole_contexts_only: only texts of exactly block_size tokens go through
        mask = causal_mask(T) -> mask = causal_mask(self.block_size)
        A text may be shorter. What do you make in forward that is always block_size long, a mask or a row of places?
    places_of_a_whole_context: only texts of exactly block_size tokens go through
        x = self.tokens(ids) -> x = self.tokens(ids) + torch.zeros(self.block_size, 1)
        A text may be shorter. What do you make in forward that is always block_size long, a mask or a row of places?
    parallel_sublayers: both sublayers read the same x, side by side
        x = block(x, mask)
        -> x = x + block.attention(block.norm1(x), mask=mask)[0] + block.feed_forward(block.norm2(x))
        The feed-forward network is there to work on what attention has found. Does yours get to read it?
    parallel_behind_one_norm: both sublayers read the same, what one norm gives
        x = block(x, mask) -> y = block.norm1(x)
        |            x = x + block.attention(y, mask=mask)[0] + block.feed_forward(y)
        The feed-forward network is there to work on what attention has found. Does yours get to read it?
    residual_missing: a sublayer's output stands alone, and x is not added to it
        x = block(x, mask)
        -> x = block.feed_forward(block.norm2(x + block.attention(block.norm1(x), mask=mask)[0]))
        Follow a token's vector through the block. After which of the two sublayers is nothing left of it?
    norm_in_the_stream: x is replaced by what the norm makes of it, and the sublayer's output is added to that
        x = block(x, mask) -> x = block.norm1(x)
        |            x = x + block.attention(x, mask=mask)[0]
        |            x = x + block.feed_forward(block.norm2(x))
        With the norm in front, only the sublayer reads what the norm gives. What goes around the sublayer in yours?
    attention_left_behind: what attention adds is not carried on behind the feed-forward network
        x = block(x, mask)
        -> x = x + block.feed_forward(block.norm2(x + block.attention(block.norm1(x), mask=mask)[0]))
        Your feed-forward network reads what attention has found. And to what is its own output added?
    norms_on_the_outputs: the norms stand on what the sublayers give, not on what they read
        x = block(x, mask) -> x = x + block.norm1(block.attention(x, mask=mask)[0])
        |            x = x + block.norm2(block.feed_forward(x))
        In a pre-norm block, what comes first: the sublayer or its norm?
    network_without_norm: the feed-forward network reads x without a norm
        x = block(x, mask) -> x = x + block.attention(block.norm1(x), mask=mask)[0]
        |            x = x + block.feed_forward(x)
        A block has two norms, one for each sublayer. Is each of yours called?
    attention_without_norm: attention reads x without a norm
        x = block(x, mask) -> x = x + block.attention(x, mask=mask)[0]
        |            x = x + block.feed_forward(block.norm2(x))
        A block has two norms, one for each sublayer. Is each of yours called?
    no_norms_in_the_blocks: the sublayers read x without a norm
        x = block(x, mask) -> x = x + block.attention(x, mask=mask)[0]
        |            x = x + block.feed_forward(x)
        The last norm is there. What does a pre-norm block have in front of each of its sublayers?
    one_norm_twice: one norm stands in two places
        self.blocks = nn.ModuleList(blocks) -> self.blocks = nn.ModuleList(blocks)
        |        for block in blocks:
        |            block.norm2 = block.norm1
        Each norm learns a scale and a shift for the place where it stands. How many do you make, and how often is each
        called?
    not_divided: the scores are not divided by anything
        Scores are sums of d_k products, and grow with d_k. What did lesson 4 do about that?
    divided_by_d_k: the scores are divided by the width of a head, not by its root
        The dot product's variance is d_k. What is its standard deviation?
    divided_by_the_models_width: the scores are divided by the root of the model's width, not of a head's
        How many products does one score of one head add up?
    multiplied_by_the_root: the scores are multiplied by the root of d_k, not divided
        Scores are sums of d_k products, and grow with d_k. What did lesson 4 do about that?
    no_output_matrix: no matrix mixes what the heads have found
        In yours each head writes its own channels, and keeps to them. What did lesson 8 put behind the heads?
    one_matrix_missing: a block has, or uses, one matrix of D × D less than it should
        Attention has four of them: for queries, keys, values, and one behind the heads. Is each of yours made, and used
        for its own purpose?
    no_feed_forward: a block has no feed-forward network, or never calls it
        x = block(x, mask) -> x = x + block.attention(block.norm1(x), mask=mask)[0]
        One more block should bring 4 D² numbers for attention and 8 D² for what comes after it.
    flattened: all places stand in one long row
        return self.unembed(self.norm(x)) -> return self.unembed(self.norm(x)).flatten(0, 1)
        The loss may want one long row of questions. What does the contract of forward want?
    transposed_logits: transposed: the V logits of a place stand in a column, not in a row
        return self.unembed(self.norm(x)) -> return self.unembed(self.norm(x)).transpose(1, 2)
        F.cross_entropy wants its classes in the middle. What does the contract of forward want last?
    last_place_kept: only the last place has logits
        self.unembed(self.norm(x)) -> self.unembed(self.norm(x))[:, -1:]
        In training every place is asked.
    last_place_missing: one place of each text has no logits
        self.unembed(self.norm(x)) -> self.unembed(self.norm(x))[:, :-1]
        Who moves the answers by one place, the model or get_batch?
    shifted_inside: the model reads a text that it has moved to the right by one place
        x = self.tokens(ids) -> x = self.tokens(torch.cat([torch.zeros_like(ids[:, :1]), ids[:, :-1]], dim=1))
        The answer to a place is the token that comes next. Who moves the answers by one place, the model or get_batch?
    masked_in_training_only: in evaluation mode places hear later tokens
        mask = causal_mask(T).to(ids.device) -> mask = causal_mask(T).to(ids.device) | (not self.training)
        Whoever measures or writes with the model asks it in evaluation mode. May places hear later tokens there?
    words_times_places: between the vectors of the words and the first block stands more than a sum
        A vector of a place is added to that of a word. What else happens to the two before the first block reads them?
    heads_exchanged: number and width of the heads are exchanged
        There are H heads, and each is D / H wide. Which of the two stands where in your view or reshape?
    mask_reversed_and_all_at_last: the later tokens are heard, and those that may be seen are hidden
        Which places of your scores are filled with a huge negative number: those where the mask is True, or those where it
        is False?
    torch_mask_of_itself: no place hears itself, and the first one hears nothing at all
        nn.MultiheadAttention hides what is True in its mask. Print yours: what is False in its first row?
    torch_mask_reversed: the later tokens are heard, and those that may be seen are hidden
        nn.MultiheadAttention hides what is True in its mask. Print yours: what is True in its first row?
""",
    weights_over_queries=attending("queries"),
    softmax_over_heads=attending("heads"),
    masked_after_the_softmax=attending("mask too late"),
    heads_mixed_up=attending("run together"),
    heads_cut_in_a_row=attending("cut in a row"),
    first_place_sees_nothing=attending("not itself"),
    not_divided=attending("not divided"),
    multiplied_by_the_root=attending("multiplied"),
    divided_by_d_k=attending("no root"),
    divided_by_the_models_width=attending("model's width"),
    no_output_matrix=attending("no output"),
    one_matrix_missing=attending("no keys"),
    first_place_hears_all=attending("all at first"),
    mask_reversed=attending("hidden"),
    no_softmax=attending("no softmax"),
    heads_averaged=attending("averaged"),
    heads_of_one_matrix_averaged=attending("averaged, from one matrix"),
    divided_by_the_number_of_heads=attending("number of heads"),
    heads_exchanged=attending("number for width"),
    mask_reversed_and_all_at_last=attending("all at last"),
    words_times_places=words_times_places,
    torch_mask_reversed=with_torch_attention(lambda mask: mask),
    torch_mask_of_itself=with_torch_attention(lambda mask: ~mask.tril(-1)),
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

exercises = [
    bits_per_token,
    ngram_loss,
    get_batch,
    next_token_loss,
    gpt,
    language_model_logits,
    generate,
    induction_head,
]

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
