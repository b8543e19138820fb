"""Cases and known mistakes of lesson 1."""

import torch

from helpers.checking.vocabulary import DTYPE, GRADIENT, LEADING, Case, Exercise, Raises, Stub, listed_quizzes

LIFE = "Life is short, eat dessert first"
MARKS = ",.!?;:"


def cases_tokenize(draw):
    a, b, c, d = (draw.word() for _ in range(4))
    mark, other = draw.sample(MARKS, 2)
    return [
        Case((LIFE,)),
        Case((f"{a}{mark} {b.title()} {c}; {d}!",)),
        Case((f"{a}, {b}. {c}! {a}? {d}; {b}: {c}",), note="every punctuation mark once"),
        Case((f"{a}, {b}, {c}! {d}!",), note="two commas, two exclamation marks"),
        Case(("pi is 3.14: nearly",), part="punctuation inside a word"),
        Case((f"at {draw.integer(1, 13)}:30 {a}{mark}{b}{other}{c}",), part="punctuation inside a word"),
        Case((f"{a} {mark} {b} {other}",), part="a punctuation mark alone"),
        Case((f"{mark}{other}",), part="a punctuation mark alone"),
        Case((f"  {a}\t{b}\n{c}   {d} ",), part="any white space"),
        Case((f"{a} {b}\r\n{c}\r{d}\r\n",), part="any white space", note="line ends of Windows"),
        Case((f"{a.upper()} {b.title()} I",), part="case is kept"),
        Case((f'don\'t ({a}) {b}-{c} "{d}" a_b #1 caf\u00e9',), part="other characters stay"),
    ]


tokenize = Exercise("tokenize", cases_tokenize).with_mistakes("""
    replaced_by_spaces: punctuation replaced by spaces
        replace(mark, "") -> replace(mark, " ")
        How many tokens should 3.14 give? Replace each mark by nothing at all.
    replacement_dropped: the result of replace was not kept
        sentence = sentence.replace -> sentence.replace
        A Python string never changes. What does replace return, and where do you keep it?
    lowered: everything in lower case
        sentence.split() -> sentence.lower().split()
        Life with a capital is a token of its own here. What does the specification say about case?
    commas_only: only commas deleted
        ",.!?;:" -> ","
        The running sentence has only a comma, but the specification lists six characters. Does your code reach all of them?
    split_on_single_spaces: split at every single space
        .split() -> .split(" ")
        Two spaces in a row give an empty token, and a tab isn't split at all. What does split do without an argument?
    all_punctuation: all of string.punctuation deleted
        ",.!?;:" -> '!"#$%&\\'()*+,-./:;<=>?@[]^_`{|}~\\\\\\\\'
        The apostrophe in don't and the brackets in (brackets) should stay. Which six characters does the specification list?
    stripped_at_the_ends: punctuation stripped at the ends of words only
        sentence = sentence.replace(mark, "") -> pass
        sentence.split() -> [token.strip(",.!?;:") for token in sentence.split()]
        A mark may occur inside a word, or be the whole token. Which method deletes it everywhere?
    marks_as_tokens: punctuation kept as tokens
        replace(mark, "") -> replace(mark, f" {mark} ")
        Many real tokenizers keep punctuation as tokens, but this one deletes it.
    word_characters: only runs of letters, digits and _ kept
        sentence = sentence.replace(mark, "") -> pass
        sentence.split() -> "".join(x if x.isalnum() or x == "_" else " " for x in sentence).split()
        Your pattern also splits don't and 3.14. Which characters may be deleted?
""")


def cases_build_vocab(draw):
    def case(*sentences, **options):  # six or more tokens, so that no order is right by chance
        return Case((list(sentences),), view="vocabulary", **options)

    a, b, c, d, e = (draw.word() + tail for tail in ("m", "ka", "z", "b", "ow"))
    return [
        case(LIFE),
        case(f"z{b} {a}, z{d}.", f"a{c} {e} {a}d!", note="two sentences"),
        case(f"the {a} saw the {b} and", f"the {b} saw {c}", part="repeated words"),
        case(f"zebra Zulu {a} {b.title()} I {c}", part="capitals first"),
        case("\u00e9t\u00e9 zoo 3.14 eat 10 9", part="code-point order"),
        case("!", f"{d} ? {a} {e} : {b}", f"{c} the ;", part="punctuation is not a token"),
    ]


build_vocab = Exercise("build_vocab", cases_build_vocab, weights={"repeated words": 12}).with_mistakes("""
    in_order_of_appearance: ids in order of appearance
        {token for sentence in sentences for token in tokenize(sentence)}
        -> [token for sentence in sentences for token in tokenize(sentence)]
        sorted(tokens) -> dict.fromkeys(tokens)
        The ids then depend on which sentence comes first. Which order does the specification ask for?
    order_of_a_set: ids in an order of neither the text nor the alphabet, as that of a set
        sorted(tokens) -> sorted(tokens, key=lambda token: token[::-1])
        If you number a set, the ids change from run to run. Which function puts strings in code-point order?
    repeats_counted: a repeated word takes two ids, so ids are skipped
        {token for sentence in sentences for token in tokenize(sentence)}
        -> [token for sentence in sentences for token in tokenize(sentence)]
        Print your vocabulary of "the cat saw the dog". Is the largest id one less than its size?
    counted_from_one: ids counted from 1
        enumerate(sorted(tokens)) -> enumerate(sorted(tokens), 1)
        An id is the index of a row in a table. What is the index of the first row?
    alphabetical_without_case: sorted without regard to case
        sorted(tokens) -> sorted(tokens, key=lambda token: (token.lower(), token))
        In code-point order the capitals A to Z come before a to z. What does sorted do with strings if you give it no key?
    lowered_vocab: everything in lower case
        {token for -> {token.lower() for
        Life and life are two different tokens. Keep the case of each.
    split_only: punctuation left on the words
        tokenize(sentence) -> sentence.split()
        You have just written a function that splits sentences. Call it here.
    ids_to_tokens: keys and values swapped
        {token: i for -> {i: token for
        When you encode a sentence you have the tokens and want the ids. Which of the two must be the key?
""")


def cases_encode(draw):
    words = [draw.word() + tail for tail in ("u", "er", "ik", "od", "as")]
    ids = draw.sample(range(50), len(words))
    vocab = dict(zip(words, ids, strict=True))
    a, b, c, d, e = words
    life = {"Life": 0, "dessert": 1, "eat": 2, "first": 3, "is": 4, "short": 5}

    def named(token, sentence, vocab, omits):
        return Case((sentence, vocab), part="unknown token", raises=Raises("KeyError", token, omits))

    return [
        Case((LIFE, life)),
        Case((f"{c} {a}, {e} {b}! {a}", vocab), note="a vocabulary whose ids are in no order"),
        Case((f"{d} : {b}", vocab), part="punctuation is not a token"),
        Case((e, vocab), part="one token"),
        named("pizza", f"{a} pizza! {b}", vocab, omits=f"{a} pizza"),
        named("pizza", f"{c} pizza", vocab, omits=f"'{c}', 'pizza'"),
        named("life", "life is short", life, omits="life is"),
    ]


encode = Exercise("encode", cases_encode, axes=("token",)).with_mistakes("""
    unknown_is_zero: unknown words quietly become id 0
        vocab[token] -> vocab.get(token, 0)
        Some word of the vocabulary has id 0, so you can't tell the two apart. Which exception does the specification ask for?
    unknown_left_out: unknown words left out
        in tokenize(sentence) -> in tokenize(sentence) if token in vocab
        The sentence then has another meaning. Which exception does the specification ask for?
    unknown_added: unknown words added to the vocabulary
        vocab[token] -> vocab.setdefault(token, len(vocab))
        The table has no row for them, and the caller's dictionary changes. Which exception does the specification ask for?
    sentence_named: the whole sentence in the error
        return torch.tensor( -> if not set(tokenize(sentence)) <= set(vocab):
        |        raise KeyError(sentence)
        |    return torch.tensor(
        Which word was unknown? Name this one token in the error.
    marks_left_on: punctuation left on the words
        tokenize(sentence) -> sentence.split()
        Is "short," with its comma a token of the vocabulary? Which of your functions splits sentences?
""")


def cases_one_hot(draw):
    def ids(*shape, high=6):
        return draw.integers(1, high, shape)

    return [
        Case((torch.tensor([0, 4, 5, 2, 1, 3]), 6), note="the ids of the running sentence"),
        Case((ids(4, high=5), 7), note="ids that leave out the last word"),
        Case((ids(3, 5), 7), part=LEADING),
        Case((ids(2, 3, 4), 8), part=LEADING),
        Case((ids(1, 5), 7), part=LEADING, note="a batch of one sentence"),
        Case((ids(4, 1), 7), part=LEADING, note="sentences of one token"),
        Case((torch.tensor(draw.integer(1, 6)), 7), part="a single id, shape ()"),
    ]


one_hot = Exercise(
    "one_hot", cases_one_hot, axes=("token", "word of the vocabulary"), forbidden=("one_hot",)
).with_mistakes("""
    whole_numbers: integers instead of floats
        .float() -> .long()
        The rows will be multiplied by a matrix of floats. Which dtype do they need?
    size_from_ids: as many columns as the largest id needs
        arange(vocab_size, -> arange(int(ids.max()) + 1,
        The last word of the vocabulary need not occur in the sentence. What is the second argument for?
    counted_from_one: ids counted from 1
        ids[..., None] == -> (ids[..., None] - 1) % vocab_size ==
        Which column belongs to id 0?
    bag_of_words: the tokens summed into one row
        .float() -> .float().sum(-2)
        Each token keeps a row of its own.
    vocabulary_first: the vocabulary's axis in front
        .float() -> .float().movedim(-1, 0)
        The new axis comes last. From which end do you count it?
""")


def cases_embed(draw):
    def make(dtype, *shape):
        return draw.integers(0, 7, shape), draw.normal(7, 3, dtype=dtype)

    return [
        Case(make(torch.float32, 5)),
        Case(make(torch.float32, 2, 4), part=LEADING),
        Case(make(torch.float32, 2, 5, 4), part=LEADING),
        Case(make(torch.float32, 1, 5), part=LEADING, note="a batch of one sentence"),
        Case(make(torch.float32, 4, 1), part=LEADING, note="sentences of one token"),
        Case(make(torch.float32), part="a single id, shape ()"),
        Case(make(torch.float64, 5), part=DTYPE),
        Case((torch.tensor([2, 6, 2, 0, 2]), draw.normal(7, 3, dtype=torch.float64)), part=GRADIENT, gradient=True),
    ]


embed = Exercise("embed", cases_embed, axes=("token", "coordinate"), weights={GRADIENT: 12}).with_mistakes("""
    row_before: the row before the right one
        table[ids] -> table[ids - 1]
        Is the first word's id 0 or 1? And what does row -1 mean?
    bag_of_vectors: the vectors summed over the tokens
        table[ids] -> table[ids].sum(-2)
        That is a bag of words. Here each token keeps its vector.
    scaled_by_root_of_width: vectors multiplied by the square root of the width
        table[ids] -> table[ids] * table.shape[-1] ** 0.5
        Vaswani et al. do that in their section 3.4, but the lookup itself returns the row as it is.
    one_hot_of_float32: right for a table of float32, an error with one of float64
        table[ids] -> F.one_hot(ids, len(table)).float() @ table
        A product needs two equal dtypes. Can you look up the rows without a product?
""")


def _rows(draw, n, d, low, high, dtype=torch.float32):
    """n vectors in d dimensions with random directions and lengths between low and high."""
    x = draw.normal(n, d, dtype=torch.float64)
    return (x / x.norm(dim=1, keepdim=True) * draw.uniform(n, 1, low=low, high=high)).to(dtype)


def cases_cosine_similarity(draw):
    def make(dtype, n=4, m=3, d=5):
        return _rows(draw, n, d, 1.5, 4, dtype), _rows(draw, m, d, 1.5, 4, dtype)

    a, b = make(torch.float32)
    holes = a.clone(), b.clone()
    holes[0][1], holes[1][2] = 0, 0
    long = _rows(draw, 4, 5, 900, 1000)
    short, shorter = _rows(draw, 4, 5, 0.00100001, 0.001001), _rows(draw, 3, 5, 0.00100001, 0.001001)
    along = torch.cat((short[:2] * 1e6, long[:1]))  # cosine 1 with rows of `short`
    shorter[0] = short[3] * 1.0001
    opposed = _rows(draw, 3, 4, 1.5, 4)
    # The tolerance allows a guard of 1e-8 on each length. On a product of two lengths, it would change 1%.
    return [
        Case((a, b)),
        Case((_rows(draw, 3, 6, 1.5, 4), _rows(draw, 5, 6, 1.5, 4)), note="more rows in b than in a"),
        Case((opposed, torch.cat((-2 * opposed, opposed))), note="opposite and equal directions"),
        Case((_rows(draw, 1, 4, 1.5, 4), _rows(draw, 3, 4, 1.5, 4)), part="a single row"),
        Case((_rows(draw, 3, 4, 1.5, 4), _rows(draw, 1, 4, 1.5, 4)), part="a single row", note="a single row in b"),
        Case(make(torch.float64), part=DTYPE),
        Case(make(torch.float64), part=GRADIENT, gradient=True),
        Case(holes, part="a zero row gives 0"),
        Case(holes, part="no NaN in the gradients at a zero row", via="finite_gradients"),
        Case((torch.zeros(2, 3), torch.cat((torch.zeros(1, 3), _rows(draw, 3, 3, 1.5, 4)))), part="a zero row gives 0"),
        Case((long, _rows(draw, 3, 5, 900, 1000)), part="long vectors"),
        Case((short, along), part="short vectors", tolerance=1e-4, note="rows of length 0.001 against long ones"),
        Case((short, shorter), part="short vectors", tolerance=1e-4, note="rows of length 0.001"),
    ]


cosine_similarity = Exercise(
    "cosine_similarity", cases_cosine_similarity, axes=("row of a", "row of b"), forbidden=("cosine_similarity",)
).with_mistakes("""
    dot_product: plain dot products
        unit(a) @ unit(b).T -> a @ b.T
        A vector twice as long should have the same cosine. By what do you have to divide?
    divided_by_squares: divided by squared lengths
        torch.where(length > 0, length, 1) -> torch.where(length > 0, length**2, 1)
        A sum of squares is a squared length. Which function is missing?
    only_a_normalized: only a's lengths divided out
        unit(a) @ unit(b).T -> unit(a) @ b.T
        If you double b, your result doubles as well, but the cosine doesn't.
    columns_normalized: lengths of columns instead of rows
        dim=-1 -> dim=0
        Which axis is summed when a row's length is measured?
    whole_matrix_normalized: one length for the whole matrix
        x.norm(dim=-1, keepdim=True) -> x.norm()
        torch.where(length > 0, length, 1) -> length
        A norm without a dim is a single number. How many lengths does a with N rows have?
    nan_on_the_way_back: gradients that are NaN at a zero row
        length = x.norm(dim=-1, keepdim=True) -> length = (x * x).sum(dim=-1, keepdim=True).sqrt()
        In the backward pass 0 is multiplied by infinity: the derivative of a square root at 0, or of 0 / 0 that was replaced afterwards. Can you change the input of that operation instead?
    zero_by_zero: 0 / 0 for a zero row
        torch.where(length > 0, length, 1) -> length
        A zero row has length 0, and 0 / 0 is NaN. By what could you divide instead?
    epsilon_on_the_product: an epsilon that changes the cosine of short vectors
        unit(a) @ unit(b).T -> a @ b.T / (a.norm(dim=1)[:, None] * b.norm(dim=1) + 1e-8)
        Two vectors of length 0.001 have a product of lengths of 0.000001. How large is what you add?
    epsilon_in_the_root: a small number added inside the square root
        length = x.norm(dim=-1, keepdim=True) -> length = ((x * x).sum(dim=-1, keepdim=True) + 1e-8).sqrt()
        The squared length of a short vector is 0.000001. How large is what you add?
    sums_instead_of_lengths: rows divided by their sums
        x.norm(dim=-1, keepdim=True) -> x.sum(dim=-1, keepdim=True)
        length > 0 -> length != 0
        That makes entries that sum to 1. The length is the square root of a sum of squares.
""")


def cases_negative_sampling_gradients(draw):
    def make(dtype, width=5, negatives=4):
        return tuple(draw.normal(*n, width, dtype=dtype) for n in ((), (), (negatives,)))

    def hundred(dtype, sign):
        """Dot products of exactly +100 and -100."""
        center = torch.where(draw.mask(4, keep=0.5), 5.0, -5.0).to(dtype)
        if dtype == torch.float64:  # here about 100, from numbers that float32 cannot represent
            center = draw.normal(4, dtype=dtype)
            center = 10 * center / center.norm()
        return center, sign * center, torch.tensor([1.0, -1.0, 1.0], dtype=dtype)[:, None] * center

    paper = torch.tensor([1.0, 0.0]), torch.tensor([0.0, 2.0]), torch.tensor([[2.0, 0.0]])
    center, context, negatives = make(torch.float32)
    large = "dot products of \u00b1100"
    return [
        Case(make(torch.float32)),
        Case(make(torch.float32, 3, 6)),
        Case(paper, note="the example on paper"),
        Case(make(torch.float32, 4, 1), part="one negative sample"),
        Case((center, context, torch.stack((context, negatives[0], negatives[0]))), part="a word drawn twice"),
        Case((torch.zeros(4), *make(torch.float32, 4, 3)[1:]), part="a center of zeros"),
        Case(make(torch.float64), part=DTYPE),
        Case(hundred(torch.float32, 1.0), part=large, note="a context at 100, negative samples at 100, -100, 100"),
        Case(hundred(torch.float32, -1.0), part=large, note="a context at -100, negative samples at 100, -100, 100"),
        Case(hundred(torch.float64, -1.0), part=large),
    ]


negative_sampling_gradients = Exercise(
    "negative_sampling_gradients", cases_negative_sampling_gradients, forbidden=("autograd",)
).with_mistakes("""
    all_negated: pull and push, which are minus the gradients
        return d_center, lack * center, excess[:, None] * center
        -> return -d_center, -lack * center, -excess[:, None] * center
        Training moves against what you return. In which direction should the center move in the example?
    negatives_pulled: negative samples pulled like a positive pair
        torch.sigmoid(negatives @ center) -> torch.sigmoid(negatives @ center) - 1
        The target of a negative sample is 0. How far is its probability from the target?
    context_pushed: the context pushed like a negative sample
        torch.sigmoid(center @ context) - 1 -> torch.sigmoid(center @ context)
        The target of the positive pair is 1. How far is its probability from the target?
    raw_dot_products: dot products in place of probabilities
        torch.sigmoid(center @ context) - 1 -> center @ context - 1
        torch.sigmoid(negatives @ center) -> negatives @ center
        A positive pair with a probability of 0.99 is almost not moved. Which function turns a dot product into a probability?
    derivative_of_the_sigmoid: the derivative of the sigmoid, without the logarithm
        torch.sigmoid(center @ context) - 1 -> -torch.sigmoid(center @ context) * torch.sigmoid(-(center @ context))
        torch.sigmoid(negatives @ center)
        -> torch.sigmoid(negatives @ center) * torch.sigmoid(-(negatives @ center))
        The loss is a logarithm of the probability, so at a dot product of -100 a positive pair is pulled with a factor of 1.
    push_on_the_center_negated: the push of the negative samples has the wrong sign in the center's gradient
        lack * context + excess -> lack * context - excess
        Both terms of the loss add to the center's gradient. Which sign does the derivative of the second one have?
    gradient_of_the_context_negated: the context's gradient has the wrong sign
        d_center, lack * center -> d_center, -lack * center
        The context is pulled toward the center by a step against the gradient. Which sign does the gradient then have?
    gradient_of_the_negatives_negated: the gradients of the negative samples have the wrong sign
        excess[:, None] * center -> -excess[:, None] * center
        A negative sample is pushed away by a step against its gradient. Which sign does the gradient then have?
    no_push_on_the_center: the negative samples are missing in the center's gradient
        lack * context + excess @ negatives -> lack * context
        In how many of the K + 1 dot products does the center occur?
    along_themselves: context and negative samples moved along themselves
        lack * center, -> lack * context,
        excess[:, None] * center -> excess[:, None] * negatives
        The derivative of a dot product with respect to one vector is a vector. Is it that vector itself, or the other one?
    mean_of_the_pushes: the mean over the negative samples in the center's gradient
        excess @ negatives -> excess @ negatives / len(negatives)
        The loss has a sum over the K negative samples. What does the gradient of a sum have?
""")


def _well_apart(draw, size, width, dtype=torch.float32):
    """A table of rows with very different lengths; no row of its cosine matrix has two nearly equal entries."""
    while True:
        table = _rows(draw, size, width, 0.2, 1.0, torch.float64)
        table = table * torch.tensor([4.0 ** (i % 3) for i in range(size)], dtype=torch.float64)[:, None]
        unit = table / table.norm(dim=1, keepdim=True)
        cosines = unit @ unit.T
        pairs = cosines[~torch.eye(size, dtype=torch.bool)].reshape(size, size - 1)
        if pairs.sort(-1).values.diff().min() > 1e-3 and pairs.abs().sort(-1).values.diff().min() > 1e-3:
            return table.to(dtype)


def cases_fixed_neighbors(draw):
    opposed = torch.tensor([[3.0, 0.1], [-0.2, 0.5], [-1.0, -2.0]]) * draw.uniform(1, low=1, high=2)
    twins = _well_apart(draw, 3, 4).repeat_interleave(2, dim=0)
    return [
        Case((_well_apart(draw, 7, 5), 3)),
        Case((_well_apart(draw, 9, 4), 2)),
        Case((_well_apart(draw, 6, 6), 2), note="as many rows as columns"),
        Case((_well_apart(draw, 5, 3), 1), part="one neighbor"),
        Case((_well_apart(draw, 5, 4), 4), part="all the others"),
        Case((opposed, 2), part="all the others", note="three vectors that point away from each other"),
        Case((_well_apart(draw, 7, 5, torch.float64), 3), part="float64"),
        Case((twins, 1), part="two words with the same row", note="a table in which each row occurs twice"),
        Case((_well_apart(draw, 6, 4) * 1e-3, 2), part="short rows", note="rows of length about 0.001"),
    ]


fixed_neighbors = Exercise("fixed_neighbors", cases_fixed_neighbors, axes=("word", "neighbor")).with_mistakes("""
    as_published: still the bug, ordered by dot products
        table.norm(dim=-1, keepdim=True) -> table.norm()
        A cosine is a product of two vectors of length 1. Print the lengths of the rows that you multiply.
    columns_divided: columns of length 1 instead of rows
        dim=-1 -> dim=0
        dim names the axis that is reduced. Print the lengths of the rows of unit again.
    lengths_in_a_row: lengths that lie along the columns
        , keepdim=True ->
        The lengths should form a column next to their rows. What did the reduction do to its axis?
    itself_included: each word is its own nearest neighbor
        similarity.fill_diagonal_(-math.inf) -> pass
        Which line of the given function keeps a word from being its own neighbor?
    itself_at_zero: a word may be its own neighbor when all others point away
        -math.inf -> 0
        A cosine can be smaller than the value you put on the diagonal. Which value is below all cosines?
    first_dropped: the best match dropped, as if it were always the word itself
        similarity.fill_diagonal_(-math.inf) -> pass
        topk(k).indices -> topk(k + 1).indices[:, 1:]
        Two words may have the same row. Which of the two comes first?
    farthest_first: the least similar words
        topk(k) -> topk(k, largest=False)
        Does your sorting go up or down?
    by_distance: neighbors by distance instead of direction
        unit @ unit.T -> -torch.cdist(table, table)
        A distance depends on lengths as well. The comment in the code says that cosines were meant.
    values_returned: similarities instead of ids
        .indices -> .values
        The caller wants to look up words, so return their ids.
""")


def cases_skipgram_pairs(draw):
    ids = draw.integers(0, 30, (6,))
    a, b, c = draw.sample(range(30), 3)
    return [
        Case(([0, 4, 5, 2, 1, 3], 2)),
        Case((draw.integers(0, 30, (7,)).tolist(), 1)),
        Case((ids, 2), part="a tensor of ids"),
        Case(([a, b, a, a, c, b], 2), part="a word that occurs twice"),
        Case(([a, b, c], 5), part="a window wider than the sentence"),
        Case((draw.integers(0, 30, (5,)).tolist(), 0), part="window 0"),
        Case(([a], 2), part="one token"),
        Case((draw.permutation(300).tolist(), 1), part="a long sentence"),  # without repeated words
    ]


skipgram_pairs = Exercise("skipgram_pairs", cases_skipgram_pairs).with_mistakes("""
    last_neighbor_missing: the last context on the right is missing
        t + window + 1 -> t + window
        range excludes its end. Count the context words on both sides.
    equal_words_left_out: a word that occurs twice is never its own context
        if s != t -> if ids[s] != center
        The same word at another position is a context. What must differ, the ids or the positions?
    itself_paired: each position paired with itself
        if s != t -> if True
        A position is never its own context.
    context_first: context and center swapped, or ordered by the context's position
        (center, ids[s]) -> (ids[s], center)
        The center comes first in each pair.
    only_to_the_right: only context words on the right
        max(0, t - window) -> t
        A window reaches to both sides.
    first_position_of_the_word: the window of a word's first occurrence, for every occurrence
        in enumerate(ids) -> in ((ids.index(c), c) for c in ids)
        index finds only the first occurrence. Which function gives positions along with the ids?
    negative_positions: context words on the left are lost near the start
        range(max(0, t - window), min(len(ids), t + window + 1))
        -> [*range(len(ids))[t - window : t], *range(t, min(len(ids), t + window + 1))]
        A slice that starts at a negative index counts from the end. Which is the smallest index that you want?
    wrapped_around: context words from the other end of the sentence
        max(0, t - window) -> t - window
        A negative index counts from the end of the list. Which is the smallest index that you want?
""")


def cases_negative_sampling_loss(draw):
    def make(dtype, batch=3, width=5, negatives=4):
        return tuple(draw.normal(batch, *n, width, dtype=dtype) for n in ((), (), (negatives,)))

    def hundred(dtype):
        """Positive and negative pairs with dot products of exactly +100 and -100."""
        center = torch.where(draw.mask(4, 4, keep=0.5), 5.0, -5.0).to(dtype)
        good = torch.tensor([1.0, -1.0, -1.0, 1.0], dtype=dtype)
        bad = torch.tensor([[1, -1, 1], [-1, 1, -1], [1, 1, -1], [-1, -1, 1]], dtype=dtype)
        return center, center * good[:, None], center[:, None] * bad[..., None]

    large = "dot products of \u00b1100"
    return [
        Case(make(torch.float32)),
        Case(make(torch.float32, 2, 6, 3)),
        Case(make(torch.float32, 4, 3, 1), part="one negative"),
        Case(make(torch.float32, 1, 3, 2), part="a batch of one"),
        Case(make(torch.float64), part=DTYPE),
        Case(make(torch.float64), part=GRADIENT, gradient=True),
        Case(hundred(torch.float32), part=large, gradient=True),
        Case(hundred(torch.float64), part=large, gradient=True),
    ]


negative_sampling_loss = Exercise("negative_sampling_loss", cases_negative_sampling_loss).with_mistakes("""
    negatives_not_negated: negative samples treated like positive pairs
        -bad -> bad
        Which sign does the dot product with a negative sample have inside the sigmoid?
    mean_over_negatives: the mean over the negative samples
        F.logsigmoid(-bad).sum(-1) -> F.logsigmoid(-bad).mean(-1)
        The formula has a sum over the K negative samples.
    mean_over_all_pairs: the mean over the positive pair and its negative samples
        return -(F.logsigmoid(good) + F.logsigmoid(-bad).sum(-1)).mean()
        -> return -torch.cat((F.logsigmoid(good)[:, None], F.logsigmoid(-bad)), 1).mean()
        There are one positive pair and K negative samples. Over which axis does the formula take a mean, and over which a sum?
    summed_over_batch: the sum over the batch
        .mean() -> .sum()
        A batch twice as large should not cost twice as much.
    log_of_sigmoid: sigmoid and logarithm taken in two steps
        F.logsigmoid(good) -> torch.sigmoid(good).log()
        F.logsigmoid(-bad) -> torch.sigmoid(-bad).log()
        At 100 the inner step rounds to 0 or overflows, so the logarithm comes too late. Which PyTorch function takes both steps at once?
    log_of_one_minus: the log of one minus a sigmoid
        F.logsigmoid(good) -> torch.sigmoid(good).log()
        F.logsigmoid(-bad) -> (1 - torch.sigmoid(bad)).log()
        The sigmoid of 100 rounds to 1, so 1 minus it is 0. Can you change the sign of x instead?
    epsilon_EPS for EPS in 1e-8, 1e-9, 1e-10: a small number added inside the log
        F.logsigmoid(good) -> (torch.sigmoid(good) + EPS).log()
        F.logsigmoid(-bad) -> (torch.sigmoid(-bad) + EPS).log()
        At -100 the loss should be 100. What is the logarithm of your small number?
    sign_forgotten: the sign of the whole loss is wrong
        return -( -> return (
        If you minimize this, the dot products of positive pairs get smaller.
    only_the_pull: only the positive pairs counted
        + F.logsigmoid(-bad).sum(-1) ->
        Without the negative samples nothing lowers a dot product, so in the end nearly every pair has a high probability.
""")


def cases_wordpiece(draw):
    a, b, c = draw.word(4, 6), draw.word(3, 5), draw.word(3, 5)
    names = [a, a[:2], "##" + b, "##" + b[:1], "##" + c, "##" + c[:1], "[UNK]"]
    numbered = {piece: i for i, piece in enumerate(names)}
    pieces = Stub("set_of_pieces", tuple(names))
    greedy = {"un": 0, "unaf": 1, "##affable": 2, "##able": 3, "[UNK]": 4}
    letters = {"a": 0, "##a": 1, "##b": 2, "##ba": 3}
    long = "a" + "".join(draw.choice("ab") for _ in range(300))
    return [
        Case((a + b + c, numbered)),
        Case(("desserts", {"dessert": 0, "##s": 1, "des": 2, "##sert": 3, "##serts": 4})),
        Case((a, pieces), part="a whole word"),
        Case(("un" + "affable", greedy), part="never goes back"),
        Case((a + b + "0" + c, pieces), part="a split that gets stuck"),
        Case(("7" + a, pieces), part="a split that gets stuck"),
        Case(("playing", {"play": 0, "ing": 1, "##in": 2}), part="## for continuations"),
        Case(("play", {"##play": 0, "p": 1, "##lay": 2, "##l": 3}), part="## for continuations"),
        Case(("xyz", {"x": 0, "##y": 1}), {"unk": "<unk>"}, part="your own unk"),
        Case(("xyz", {"x": 0, "##y": 1}, "?"), part="your own unk"),
        Case((a.title(), pieces), part="case is kept"),
        Case((a + b, Stub("set_of_pieces", (a, "##" + b, "##" + b[:1]))), part="a set of pieces"),
        Case((long, letters), part="no length limit"),
    ]


wordpiece = Exercise("wordpiece", cases_wordpiece).with_mistakes("""
    shortest_first: the shortest piece taken first
        range(len(word), start, -1) -> range(start + 1, len(word) + 1)
        Greedy means that you try the whole rest of the word first.
    without_marks: later pieces looked up without ##
        ("##" if start else "") + ->
        table and ##table are two entries of the vocabulary. Which one may follow un?
    marks_everywhere: the first piece looked up with ## as well
        ("##" if start else "") -> "##"
        Only a piece that continues a word is written with ##. Does the first piece continue anything?
    rest_is_unknown: the pieces so far, then unknown
        return [unk] -> return [*pieces, unk]
        If the split gets stuck, the whole word is unknown.
    pieces_before_it_got_stuck: the pieces so far
        return [unk] -> return pieces
        If the split gets stuck, the whole word is unknown.
    at_most_100_letters: long words return unknown
        pieces, start = [], 0 -> pieces, start = [], 0
        |    if len(word) > 100:
        |        return [unk]
        BERT's own tokenizer has such a limit, but this one has none.
    unk_written_out: [UNK] whatever the caller asked for
        return [unk] -> return ["[UNK]"]
        What is the third argument for?
    lowered_word: the word turned to lower case
        word[start:end] -> word[start:end].lower()
        Lower case is a step of its own. Here the case is kept.
""")

exercises = [
    tokenize,
    build_vocab,
    encode,
    one_hot,
    embed,
    cosine_similarity,
    fixed_neighbors,
    negative_sampling_gradients,
    skipgram_pairs,
    negative_sampling_loss,
    wordpiece,
]

quizzes = listed_quizzes("""
    quiz_1: d
        a: The order of the ids has no effect, because the rows of the table start as random vectors.
        b: They never occur together, because each of our sentences is about one animal. What pulls on cat are its neighbors, that is, "the", "in" and a verb such as "feeds".
        c: No meaning went in. A word spelled cat that occurs with bread would end up among the foods.
        d: The same neighbors pull on both, so both move in the same direction.
    quiz_2: a
        a: The longest first piece is una, and from there ##ffa and ##ble fit. A greedy split doesn't care that un and
           ##affable would be closer to the meaning.
        b: This is how a reader would split the word. The greedy rule takes the longest first piece that is in the
           vocabulary, and una is longer than un.
        c: It is only unknown if the greedy split gets stuck. Here it reaches the end of the word.
""")
