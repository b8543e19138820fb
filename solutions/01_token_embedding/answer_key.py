"""Lesson 1: cases and known mistakes."""

import functools

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
        Case((f"{a}, {b}. {c}! {a}? {d}; {b}: {c}",), note="every mark once"),
        Case((f"{a}, {b}, {c}! {d}!",), note="two commas, two exclamation marks"),
        Case(("pi is 3.14: nearly",), part="marks inside a word"),
        Case((f"at {draw.integer(1, 13)}:30 {a}{mark}{b}{other}{c}",), part="marks inside a word"),
        Case((f"{a} {mark} {b} {other}",), part="a mark alone"),
        Case((f"{mark}{other}",), part="a mark alone"),
        Case((f"  {a}\t{b}\n{c}   {d} ",), part="any white space"),
        Case((f"{a.upper()} {b.title()} I",), part="case is kept"),
        Case((f'don\'t ({a}) {b}-{c} "{d}" a_b #1 caf\u00e9',), part="other characters stay"),
    ]


tokenize = Exercise("tokenize", cases_tokenize).with_mistakes("""
    replaced_by_spaces: marks turned into spaces
        replace(mark, "") -> replace(mark, " ")
        How many tokens should 3.14 give? What happens to the text around a deleted mark?
    lowered: everything in lower case
        sentence.split() -> sentence.lower().split()
        Life with a capital is a token of its own here. Look at the word case in the spec.
    commas_only: only commas deleted
        ",.!?;:" -> ","
        The running sentence has only a comma. The spec lists six marks.
    split_on_single_spaces: split at every single space
        .split() -> .split(" ")
        What comes between two spaces in a row, or around a tab? Does split need an argument?
    all_punctuation: all of string.punctuation deleted
        ",.!?;:" -> '!"#$%&\\'()*+,-./:;<=>?@[]^_`{|}~\\\\\\\\'
        Look at don't and at (brackets): are those marks in the spec's list?
    stripped_at_the_ends: marks stripped at the ends of words only
        sentence = sentence.replace(mark, "") -> pass
        sentence.split() -> [token.strip(",.!?;:") for token in sentence.split()]
        A mark may stand inside a word, or be the whole of it. What does strip do there?
    stripped_and_kept: marks inside a word left in
        sentence = sentence.replace(mark, "") -> pass
        sentence.split() -> [t for t in (x.strip(",.!?;:") for x in sentence.split()) if t]
        What should become of the dot in 3.14?
    split_before_deleting: empty tokens where a mark stood alone
        sentence = sentence.replace(mark, "") -> pass
        sentence.split() -> ["".join(x for x in token if x not in ",.!?;:") for token in sentence.split()]
        A lone mark leaves nothing behind. In which order do you delete and split?
    marks_as_tokens: marks kept as tokens
        replace(mark, "") -> replace(mark, f" {mark} ")
        Many real tokenizers do keep them. This one deletes.
    word_characters: only runs of letters, digits and _ kept
        sentence = sentence.replace(mark, "") -> pass
        sentence.split() -> "".join(x if x.isalnum() or x == "_" else " " for x in sentence).split()
        What does your pattern do with don't, and with 3.14?
    not_split: a list of characters
        sentence.split() -> list(sentence)
        Iterating over a string gives characters. Where does white space come in?
    first_of_each_mark: only the first mark of each kind deleted
        replace(mark, "") -> replace(mark, "", 1)
        Try a sentence with two commas. How many does your replacement reach?
""")


def cases_build_vocab(draw):
    a, b, c, d, e = (draw.word() + tail for tail in ("m", "ka", "z", "b", "ow"))
    return [
        Case(([LIFE],)),
        Case(([f"z{b} {a}, z{d}.", f"a{c} {e}!"],), note="two sentences"),
        Case(([f"the {a} saw the {b}", f"the {b} saw {c}"],), part="repeated words"),
        Case(([f"zebra Zulu {a} {b.title()} I"],), part="capitals first"),
        Case((["\u00e9t\u00e9 zoo 3.14 eat 10 9"],), part="code-point order"),
        Case((["!", f"{d} ? {a}"],), part="marks are no tokens"),
    ]


build_vocab = Exercise("build_vocab", cases_build_vocab).with_mistakes("""
    in_order_of_appearance: ids in order of appearance
        {token for sentence in sentences for token in tokenize(sentence)}
        -> [token for sentence in sentences for token in tokenize(sentence)]
        sorted(tokens) -> dict.fromkeys(tokens)
        Then the ids would depend on which sentence comes first. Which order does the spec ask for?
    repeats_counted: a repeated word takes two numbers, so ids are skipped
        {token for sentence in sentences for token in tokenize(sentence)}
        -> [token for sentence in sentences for token in tokenize(sentence)]
        Print your vocabulary of "the cat saw the dog". Is the largest id one less than its size?
    counted_from_one: ids counted from 1
        enumerate(sorted(tokens)) -> enumerate(sorted(tokens), 1)
        An id is a row of a table. What is the number of the first row?
    alphabetical_without_case: sorted without regard to case
        sorted(tokens) -> sorted(tokens, key=lambda token: (token.lower(), token))
        Code points put the capitals A to Z before the small letters a to z. What does plain sorting of strings do?
    lowered_vocab: everything in lower case
        {token for -> {token.lower() for
        Life and life would be two tokens here.
    split_only: marks left on the words
        tokenize(sentence) -> sentence.split()
        You have just written a function that cuts sentences.
    ids_to_tokens: keys and values swapped
        {token: i for -> {i: token for
        What will you have in hand when you look something up: the token or the id?
    special_tokens_first: special tokens added
        enumerate(sorted(tokens)) -> enumerate(["[PAD]", "[UNK]", *sorted(tokens)])
        Real vocabularies start with those. This one holds only what the sentences hold.
    first_sentence_only: only the first sentence read
        for sentence in sentences -> for sentence in sentences[:1]
        The argument is a list of sentences.
    sorted_within_sentences: each sentence sorted by itself
        {token for sentence in sentences for token in tokenize(sentence)}
        -> [token for sentence in sentences for token in sorted(tokenize(sentence))]
        sorted(tokens) -> dict.fromkeys(tokens)
        Collect first, sort once.
    most_frequent_first: most frequent words first
        {token for sentence in sentences for token in tokenize(sentence)}
        -> [token for sentence in sentences for token in tokenize(sentence)]
        sorted(tokens) -> sorted(set(tokens), key=lambda token: (-tokens.count(token), token))
        That is word2vec's own order. The spec asks for another one.
    characters: one id for each character
        tokenize(sentence) -> "".join(tokenize(sentence))
        Iterating over a sentence gives characters. What gives tokens?
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
        Case((f"{d} : {b}", vocab), part="marks are no tokens"),
        Case((e, vocab), part="one token"),
        named("pizza", f"{a} pizza! {b}", vocab, omits=f"{a} pizza"),
        named("pizza", f"{c} pizza", vocab, omits=f"'{c}', 'pizza'"),
        named("life", "life is short", life, omits="life is"),
    ]


encode = Exercise("encode", cases_encode, axes=("token",)).with_mistakes("""
    unknown_is_zero: unknown words quietly become id 0
        vocab[token] -> vocab.get(token, 0)
        Which word has id 0? A reader could not tell it from pizza.
    unknown_is_minus_one: unknown words quietly become id -1
        vocab[token] -> vocab.get(token, -1)
        Row -1 of a table is its last row. What should happen instead of a guess?
    unknown_left_out: unknown words left out
        in tokenize(sentence) -> in tokenize(sentence) if token in vocab
        Then the sentence says something else. What should happen instead?
    unknown_added: unknown words added to the vocabulary
        vocab[token] -> vocab.setdefault(token, len(vocab))
        The table has no row for them, and the caller's dictionary changes. What should happen instead?
    sentence_named: the whole sentence in the error
        return torch.tensor( -> if not set(tokenize(sentence)) <= set(vocab):
        |        raise KeyError(sentence)
        |    return torch.tensor(
        Which word was it? The reader of a long sentence should not have to look for it.
    own_vocabulary: a vocabulary made from the sentence itself
        vocab[token] -> sorted(set(tokenize(sentence))).index(token)
        Ids must agree between sentences. What is the second argument for?
    place_in_vocabulary: the place in the dictionary instead of the id it holds
        vocab[token] -> list(vocab).index(token)
        A vocabulary read from a file may list its words in any order.
    marks_left_on: marks left on the words
        tokenize(sentence) -> sentence.split()
        Is "short," with its comma a token of the vocabulary? Which of your functions cuts sentences?
    a_batch_of_one: one dimension too many
        torch.tensor([vocab[token] for token in tokenize(sentence)])
        -> torch.tensor([[vocab[token] for token in tokenize(sentence)]])
        The shape is (T,): no batch yet.
    a_list: a Python list
        torch.tensor([vocab[token] for token in tokenize(sentence)])
        -> [vocab[token] for token in tokenize(sentence)]
        The spec asks for a tensor of whole numbers.
    floats: floats instead of whole numbers
        torch.tensor( -> torch.Tensor(
        torch.Tensor with a capital makes floats, and a float cannot pick a row.
    scalar_for_one_token: no dimension left for a single token
        in tokenize(sentence)]) -> in tokenize(sentence)]).squeeze()
        One token is a sentence of length 1. Who removed that dimension?
    sorted_ids: ids in sorted order
        [vocab[token] for token in tokenize(sentence)] -> sorted(vocab[token] for token in tokenize(sentence))
        Order matters from the next lesson on.
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
        Case((torch.zeros(3, dtype=torch.long), 1), part="a vocabulary of one word"),
    ]


one_hot = Exercise(
    "one_hot", cases_one_hot, axes=("token", "word of the vocabulary"), forbidden=("one_hot",)
).with_mistakes("""
    whole_numbers: whole numbers instead of floats
        .float() -> .long()
        The rows are to be multiplied with a matrix of floats. What dtype do they need?
    booleans: True and False instead of floats
        .float() ->
        The rows are to be multiplied with a matrix of floats. What dtype do they need?
    size_from_ids: as many columns as the largest id needs
        arange(vocab_size, -> arange(int(ids.max()) + 1,
        The last word of the vocabulary need not be in the sentence. What is the second argument for?
    counted_from_one: ids counted from 1
        ids[..., None] == -> (ids[..., None] - 1) % vocab_size ==
        Which column belongs to id 0?
    column_before: a first column that belongs to id 1
        arange(vocab_size, -> arange(1, vocab_size + 1,
        Print the row of id 0. Where is its 1?
    bag_of_words: the tokens summed into one row
        .float() -> .float().sum(-2)
        Each token keeps a row of its own.
    vocabulary_first: the vocabulary's axis in front
        .float() -> .float().movedim(-1, 0)
        The new axis comes last: which way does a row lie?
    squeezed: dimensions of size 1 squeezed away
        .float() -> .float().squeeze()
        A batch of one sentence is still a batch. What does squeeze do to it?
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
        Case((draw.integers(0, 7, (2, 4)), draw.normal(7, 1)), part=LEADING, note="a table of one column"),
        Case(make(torch.float32), part="a single id, shape ()"),
        Case(make(torch.float64, 5), part=DTYPE),
        Case((torch.tensor([2, 6, 2, 0, 2]), draw.normal(7, 3, dtype=torch.float64)), part=GRADIENT, gradient=True),
    ]


embed = Exercise("embed", cases_embed, axes=("token", "coordinate")).with_mistakes("""
    row_before: the row before the right one
        table[ids] -> table[ids - 1]
        Is the first word's id 0 or 1? And what does row -1 mean?
    bag_of_vectors: the vectors summed over the tokens
        table[ids] -> table[ids].sum(-2)
        That is a bag of words. Here each token keeps its vector.
    scaled_by_root_of_width: vectors multiplied by the square root of the width
        table[ids] -> table[ids] * table.shape[-1] ** 0.5
        Vaswani et al. do that in their section 3.4. The lookup itself changes nothing.
    rounded_to_float32: rounded to float32 on the way
        table[ids] -> table[ids].float()
        Which dtype do your one-hot rows have, and which has the table?
    one_hot_of_float32: right for a table of float32, an error with one of float64
        table[ids] -> F.one_hot(ids, len(table)).float() @ table
        A product needs two equal dtypes. Which one should win, and is a product needed at all?
    transposed_rows: tokens and coordinates swapped
        table[ids] -> table[ids].mT
        One row for each token: which axis is the token's?
    squeezed: dimensions of size 1 squeezed away
        table[ids] -> table[ids].squeeze()
        A batch of one sentence is still a batch. What does squeeze do to it?
""")


def _rows(draw, n, d, low, high, dtype=torch.float32):
    """n random directions in d dimensions with lengths between low and high."""
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
    # The tolerance leaves room for a guard of 1e-8 on each length; on a product of two lengths it moves 1 percent.
    return [
        Case((a, b)),
        Case((_rows(draw, 3, 6, 1.5, 4), _rows(draw, 5, 6, 1.5, 4)), note="more rows in b than in a"),
        Case((opposed, torch.cat((-2 * opposed, opposed))), note="opposite and equal directions"),
        Case((_rows(draw, 1, 4, 1.5, 4), _rows(draw, 3, 4, 1.5, 4)), part="a single row"),
        Case((_rows(draw, 3, 4, 1.5, 4), _rows(draw, 1, 4, 1.5, 4)), part="a single row", note="a single row in b"),
        Case(make(torch.float64), part=DTYPE),
        Case(make(torch.float64), part=GRADIENT, gradient=True),
        Case(holes, part="a zero row gives 0"),
        Case(holes, part="no NaN in the gradients at a zero row", via="nan_in_gradients"),
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
        A vector twice as long should give the same number. What is missing?
    divided_by_squares: divided by squared lengths
        torch.where(length > 0, length, 1) -> torch.where(length > 0, length**2, 1)
        A sum of squares is not yet a length.
    squared_length_of_one: divided by the squared length of b
        unit(a) @ unit(b).T -> a @ b.T / (b * b).sum(-1).clamp_min(1e-12)
        Double a, and your number doubles; double b, and it halves. How many lengths of each belong below the line?
    only_a_normalized: only a's lengths divided out
        unit(a) @ unit(b).T -> unit(a) @ b.T
        Double b: your number doubles too.
    only_b_normalized: only b's lengths divided out
        unit(a) @ unit(b).T -> a @ unit(b).T
        Double a: your number doubles too.
    columns_normalized: lengths of columns instead of rows
        dim=-1 -> dim=0
        Which axis is summed when a row's length is measured?
    whole_matrix_normalized: one length for the whole matrix
        x.norm(dim=-1, keepdim=True) -> x.norm()
        A norm without a dim is a single number. How many lengths does a with N rows have?
    lengths_side_by_side: lengths of a and of b multiplied pair by pair
        unit(a) @ unit(b).T -> a @ b.T / (a.norm(dim=1) * b.norm(dim=1))
        There are N lengths and M lengths, and N times M cosines. Which shapes make a table when they meet?
    two_columns_of_lengths: two columns of lengths
        unit(a) @ unit(b).T -> a @ b.T / (a.norm(dim=1, keepdim=True) * b.norm(dim=1, keepdim=True))
        A column and a column do not make a table. Which way should the lengths of b lie?
    one_length_for_b: one length for the whole of b
        unit(a) @ unit(b).T -> unit(a) @ (b / b.norm().clamp_min(1e-12)).T
        A norm without a dim is a single number. How many lengths does b with M rows have?
    nan_on_the_way_back: gradients that are NaN at a zero row
        length = x.norm(dim=-1, keepdim=True) -> length = (x * x).sum(dim=-1, keepdim=True).sqrt()
        On the way back 0 meets infinity: in the slope of a root at 0, or in 0 / 0 whose value was mended after. Can you step in before?
    zero_by_zero: 0 / 0 for a zero row
        torch.where(length > 0, length, 1) -> length
        A zero row has length 0. What should stand there instead of nan?
    epsilon_on_the_product: a guard against zero that is felt by short vectors
        unit(a) @ unit(b).T -> a @ b.T / (a.norm(dim=1)[:, None] * b.norm(dim=1) + 1e-8)
        Two vectors of length 0.001 have a product of lengths of 0.000001. How large is what you add?
    epsilon_too_large: a guard against zero that is felt by short vectors
        unit(a) @ unit(b).T -> a @ b.T / (a.norm(dim=1)[:, None] * b.norm(dim=1) + 1e-6)
        Two vectors of length 0.001 have a product of lengths of 0.000001. How large is what you add?
    epsilon_under_the_root: a guard under the root that is felt by short vectors
        torch.where(length > 0, length, 1) -> (length**2 + 1e-8) ** 0.5
        A length of 0.001 has a square of 0.000001. How large is what you add, beside it?
    distance_instead: one minus the cosine
        return unit(a) -> return 1 - unit(a)
        That is a distance: 0 for equal directions. The spec asks for the similarity.
    rows_and_columns_swapped: a and b swapped
        unit(a) @ unit(b).T -> unit(b) @ unit(a).T
        Row i belongs to row i of a, column j to row j of b.
    sums_instead_of_lengths: rows divided by their sums
        x.norm(dim=-1, keepdim=True) -> x.sum(dim=-1, keepdim=True)
        length > 0 -> length != 0
        That makes shares that sum to 1. The length is another number: think of Pythagoras.
    absolute_values: the sign lost
        unit(a) @ unit(b).T -> (unit(a) @ unit(b).T).abs()
        Opposite directions have cosine -1.
""")


def cases_negative_sampling_gradients(draw):
    def make(dtype, width=5, negatives=4):
        return tuple(draw.normal(*n, width, dtype=dtype) for n in ((), (), (negatives,)))

    def hundred(dtype, sign):
        """Dot products of exactly +100 and -100."""
        center = torch.where(draw.mask(4, keep=0.5), 5.0, -5.0).to(dtype)
        if dtype == torch.float64:  # about 100 then, and numbers that no float32 can hold
            center = draw.normal(4, dtype=dtype)
            center = 10 * center / center.norm()
        return center, sign * center, torch.tensor([1.0, -1.0, 1.0], dtype=dtype)[:, None] * center

    paper = torch.tensor([1.0, 0.0]), torch.tensor([0.0, 2.0]), torch.tensor([[2.0, 0.0]])
    center, context, negatives = make(torch.float32)
    large = "dot products of \u00b1100"
    return [
        Case(make(torch.float32)),
        Case(make(torch.float32, 3, 6)),
        Case(paper, note="the numbers on paper"),
        Case(make(torch.float32, 4, 1), part="one stranger"),
        Case(make(torch.float32, 1, 3), part="width 1"),
        Case(make(torch.float32, 1, 1), part="width 1"),
        Case((center, context, torch.stack((context, negatives[0], negatives[0]))), part="a word drawn twice"),
        Case((torch.zeros(4), *make(torch.float32, 4, 3)[1:]), part="a center of zeros"),
        Case(make(torch.float64), part=DTYPE),
        Case(hundred(torch.float32, 1.0), part=large, note="a neighbor at 100, strangers at 100, -100, 100"),
        Case(hundred(torch.float32, -1.0), part=large, note="a neighbor at -100, strangers at 100, -100, 100"),
        Case(hundred(torch.float64, -1.0), part=large),
    ]


negative_sampling_gradients = Exercise(
    "negative_sampling_gradients", cases_negative_sampling_gradients, forbidden=("autograd",)
).with_mistakes("""
    forces_themselves: the forces, which are minus the gradients
        return d_center, lack * center, excess[:, None] * center
        -> return -d_center, -lack * center, -excess[:, None] * center
        Training walks against what you return. Which way should the center go from the paper's example?
    strangers_pulled: strangers pulled like true neighbors
        torch.sigmoid(negatives @ center) -> torch.sigmoid(negatives @ center) - 1
        What is the truth about a stranger, and how far is the probability from it?
    neighbor_pushed: the true neighbor pushed like a stranger
        torch.sigmoid(center @ context) - 1 -> torch.sigmoid(center @ context)
        What is the truth about the neighbor, and how far is the probability from it?
    raw_dot_products: dot products where probabilities should stand
        torch.sigmoid(center @ context) - 1 -> center @ context - 1
        torch.sigmoid(negatives @ center) -> negatives @ center
        A pair that already looks true with 0.99 is hardly moved. What turns a dot product into a probability?
    slope_of_the_sigmoid: the slope of the sigmoid, without the logarithm
        torch.sigmoid(center @ context) - 1 -> -torch.sigmoid(center @ context) * torch.sigmoid(-(center @ context))
        torch.sigmoid(negatives @ center)
        -> torch.sigmoid(negatives @ center) * torch.sigmoid(-(negatives @ center))
        The loss is the surprise, a logarithm. At a dot product of -100 a true pair should be pulled with full strength.
    slope_of_the_sigmoid_in_the_pull: the pull with the slope of the sigmoid, without the logarithm
        torch.sigmoid(center @ context) - 1 -> -torch.sigmoid(center @ context) * torch.sigmoid(-(center @ context))
        The loss is the surprise, a logarithm. At a dot product of -100 a true pair should be pulled with full strength.
    opposite_forces: neighbor and strangers moved along themselves, against what the center feels
        lack * center, -> -lack * context,
        excess[:, None] * center -> -excess[:, None] * negatives
        Are these two bodies that pull on each other with equal force? Write down one dot product: how does it move with its other vector?
    exponential_overflows: an exponential that overflows at 100
        torch.sigmoid(center @ context) - 1 -> (center @ context).exp() / (1 + (center @ context).exp()) - 1
        torch.sigmoid(negatives @ center) -> (negatives @ center).exp() / (1 + (negatives @ center).exp())
        In float32 e to the 100th is infinite, and infinity over infinity is nan. Is there a ready-made function?
    no_push_on_the_center: a center that feels only the pull
        lack * context + excess @ negatives -> lack * context
        In how many of the K + 1 dot products does the center stand?
    mean_of_the_pushes: the mean of the pushes
        excess @ negatives -> excess @ negatives / len(negatives)
        K strangers push K times as hard as one: the loss has a sum there.
    along_themselves: neighbor and strangers moved along themselves
        lack * center, -> lack * context,
        excess[:, None] * center -> excess[:, None] * negatives
        A dot product moves with one of its vectors. In which direction is it steepest: along that vector, or along the other?
    center_along_itself: the center moved along itself
        lack * context + excess @ negatives -> lack * center + excess.sum() * center
        A dot product moves with one of its vectors. In which direction is it steepest: along that vector, or along the other?
    strangers_in_one: all strangers moved alike
        excess[:, None] * center -> excess.sum() * center
        Each stranger has a dot product of its own. How hard is each one pushed?
    strangers_against_context: strangers compared with the neighbor
        torch.sigmoid(negatives @ center) -> torch.sigmoid(negatives @ context)
        Which vector do all terms of the loss share?
    squeezed: a dimension of size 1 squeezed away
        excess[:, None] * center -> (excess[:, None] * center).squeeze()
        One stranger is still a (1, D) matrix. What does squeeze do to it?
    mean_of_all_pushes: strangers that push only a K-th as hard
        torch.sigmoid(negatives @ center) -> torch.sigmoid(negatives @ center) / len(negatives)
        The loss adds up the K strangers. Is it divided by K anywhere?
""")


def _well_apart(draw, size, width, dtype=torch.float32):
    """A table whose rows have very different lengths, and no two nearly equal cosines in a row."""
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
    opposites = torch.cat((twins[:2], -twins[:2]))
    return [
        Case((_well_apart(draw, 7, 5), 3)),
        Case((_well_apart(draw, 9, 4), 2)),
        Case((_well_apart(draw, 6, 6), 2), note="as many rows as columns"),
        Case((_well_apart(draw, 5, 3), 1), part="one neighbor"),
        Case((_well_apart(draw, 5, 4), 4), part="all the others"),
        Case((opposed, 2), part="all the others", note="three vectors that point away from each other"),
        Case((torch.tensor([[2.0, 0.0], [-4.0, 0.0]]), 1), part="all the others", note="two opposite vectors"),
        Case((_well_apart(draw, 7, 5, torch.float64), 3), part="float64"),
        Case((twins, 1), part="two words with the same row", note="each row stands in the table twice"),
        Case((opposites, 1), part="two words with the same row", note="twins and their opposites"),
        Case((_well_apart(draw, 6, 4) * 1e-3, 2), part="short rows", note="rows of length about 0.001"),
    ]


fixed_neighbors = Exercise("fixed_neighbors", cases_fixed_neighbors, axes=("word", "neighbor")).with_mistakes("""
    as_published: the published version's answer
        table.norm(dim=-1, keepdim=True) -> table.norm()
        Print the length of each row of unit. The comment says they are all 1.
    columns_divided: columns made of length 1 instead of rows
        dim=-1 -> dim=0
        dim names the axis that is summed away. Print the lengths of the rows of unit again.
    lengths_in_a_row: lengths that lie along the columns
        , keepdim=True ->
        The lengths should stand beside their rows as a column. What did the reduction do to its axis?
    itself_included: each word is its own nearest neighbor
        similarity.fill_diagonal_(-math.inf) -> pass
        That line of the published version was right.
    itself_at_zero: a word may be its own neighbor when all others point away
        -math.inf -> 0
        A cosine can be smaller than the number you put on the diagonal.
    first_dropped: the best match dropped, as if it were always the word itself
        similarity.fill_diagonal_(-math.inf) -> pass
        topk(k).indices -> topk(k + 1).indices[:, 1:]
        Two words may have the same row. Which of the two comes first?
    farthest_first: the least similar words
        topk(k) -> topk(k, largest=False)
        Does your sorting go up or down?
    by_distance: neighbors by distance instead of direction
        unit @ unit.T -> -torch.cdist(table, table)
        Distance feels length as well. The comment in the code says what was meant.
    sign_ignored: opposite words counted as similar
        unit @ unit.T -> (unit @ unit.T).abs()
        A cosine of -0.9 is far away.
    values_returned: similarities instead of ids
        .indices -> .values
        The caller wants to look words up.
    squeezed: a dimension of size 1 squeezed away
        topk(k).indices -> topk(k).indices.squeeze()
        One neighbor is a list of one. What does squeeze do to it?
    nearest_last: the nearest neighbor last
        topk(k).indices -> topk(k).indices.flip(-1)
        Does your sorting go up or down? The most similar word comes first.
""")


def cases_skipgram_pairs(draw):
    ids = draw.integers(0, 30, (6,))
    a, b, c = draw.sample(range(30), 3)
    return [
        Case(([0, 4, 5, 2, 1, 3], 2)),
        Case((draw.integers(0, 30, (7,)).tolist(), 1)),
        Case((ids, 2), part="a tensor of ids"),
        Case(([a, b, a, a, c, b], 2), part="a word that comes twice"),
        Case(([a, b, c], 5), part="a window wider than the sentence"),
        Case((draw.integers(0, 30, (5,)).tolist(), 0), part="window 0"),
        Case(([a], 2), part="one token"),
        Case((draw.integers(0, 30, (300,)).tolist(), 1), part="a long sentence"),
    ]


skipgram_pairs = Exercise("skipgram_pairs", cases_skipgram_pairs).with_mistakes("""
    last_neighbor_missing: the last neighbor on the right is missing
        t + window + 1 -> t + window
        range leaves out its end. Count the neighbors on both sides.
    equal_words_left_out: a word that comes twice is never its own neighbor
        if s != t -> if ids[s] != center
        The same word at another place is a neighbor. What must differ: the ids or the positions?
    itself_paired: each position paired with itself
        if s != t -> if True
        A position is never its own context.
    context_first: context and center swapped, or ordered by the context's position
        (center, ids[s]) -> (ids[s], center)
        The center comes first in each pair.
    only_to_the_right: only neighbors on the right
        max(0, t - window) -> t
        A window reaches to both sides.
    first_place_of_the_word: the window of a word's first place, for every place it has
        in enumerate(ids) -> in ((ids.index(c), c) for c in ids)
        index finds the first one only. What do you need to count instead?
    negative_places: left neighbors lost near the start
        range(max(0, t - window), min(len(ids), t + window + 1))
        -> [*range(len(ids))[t - window : t], *range(t, min(len(ids), t + window + 1))]
        What does a slice that starts at a negative number give?
    wrapped_around: neighbors from the other end of the sentence
        max(0, t - window) -> t - window
        What does a negative index point at?
    full_windows_only: words near the ends left out
        if s != t -> if s != t and window <= t < len(ids) - window
        Near the ends a window is shorter, not gone.
    near_to_far: neighbors by distance instead of by position
        range(max(0, t - window), min(len(ids), t + window + 1))
        -> sorted(range(max(0, t - window), min(len(ids), t + window + 1)), key=lambda s: (abs(s - t), s))
        All the right pairs, in another order: left to right is asked for.
    near_to_far_right_first: neighbors by distance, the right one first
        range(max(0, t - window), min(len(ids), t + window + 1))
        -> sorted(range(max(0, t - window), min(len(ids), t + window + 1)), key=lambda s: (abs(s - t), -s))
        All the right pairs, in another order: left to right is asked for.
    right_before_left: neighbors on the right before those on the left
        range(max(0, t - window), min(len(ids), t + window + 1))
        -> [*range(t, min(len(ids), t + window + 1)), *range(max(0, t - window), t)]
        All the right pairs, in another order: left to right is asked for.
    sorted_pairs: pairs sorted by their ids
        return pairs -> return sorted(pairs)
        All the right pairs, in another order. By what are they to be ordered: by ids, or by positions in the sentence?
    pairs_as_lists: lists instead of tuples
        (center, ids[s]) -> [center, ids[s]]
        A pair is a tuple here.
    pairs_as_tensor: a tensor instead of a list of pairs
        return pairs -> return torch.tensor(pairs).reshape(-1, 2)
        The spec asks for Python: a list of tuples of ints.
""")


def cases_negative_sampling_loss(draw):
    def make(dtype, batch=3, width=5, negatives=4):
        return tuple(draw.normal(batch, *n, width, dtype=dtype) for n in ((), (), (negatives,)))

    def hundred(dtype):
        """Dot products of exactly +100 and -100, of true and of false pairs."""
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
    negatives_not_negated: negatives pulled closer like true neighbors
        -bad -> bad
        Which sign does the dot product with a stranger have inside the sigmoid?
    mean_over_negatives: the mean over the negatives
        F.logsigmoid(-bad).sum(-1) -> F.logsigmoid(-bad).mean(-1)
        K strangers push K times as hard as one: the formula has a sum there.
    mean_over_all_pairs: the mean over the true pair and its negatives
        return -(F.logsigmoid(good) + F.logsigmoid(-bad).sum(-1)).mean()
        -> return -torch.cat((F.logsigmoid(good)[:, None], F.logsigmoid(-bad)), 1).mean()
        One true pair and K strangers: over what does the formula take a mean, and over what a sum?
    summed_over_batch: the sum over the batch
        .mean() -> .sum()
        A batch twice as large should not cost twice as much.
    not_averaged: one loss for each pair
        .mean() ->
        A loss to be minimized is one number.
    log_of_sigmoid: the logarithm and what stands in it taken in two steps
        F.logsigmoid(good) -> torch.sigmoid(good).log()
        F.logsigmoid(-bad) -> torch.sigmoid(-bad).log()
        At 100 the step inside comes out as 0 or as infinity, and the logarithm cannot mend that. Is there a function that takes both steps at once?
    log_of_one_minus: the log of one minus a sigmoid
        F.logsigmoid(good) -> torch.sigmoid(good).log()
        F.logsigmoid(-bad) -> (1 - torch.sigmoid(bad)).log()
        The sigmoid of 100 is 1 to the last digit, so 1 minus it is 0. Can the sign go somewhere else?
    epsilon_EPS for EPS in 1e-6, 1e-8, 1e-9, 1e-10, 1e-12: a small number added inside the log
        F.logsigmoid(good) -> (torch.sigmoid(good) + EPS).log()
        F.logsigmoid(-bad) -> (torch.sigmoid(-bad) + EPS).log()
        At -100 the loss should be 100. What does the log of your small number give?
    sign_forgotten: the sign of the whole turned around
        return -( -> return (
        Minimizing this pushes true neighbors apart.
    only_the_pull: only the true pairs counted
        + F.logsigmoid(-bad).sum(-1) ->
        Without a push nothing ever says no: in the end nearly every pair looks true.
    negatives_against_context: negatives compared with the neighbor
        center[:, None] -> context[:, None]
        Which vector do both terms of the formula share?
    softmax_over_candidates: a softmax over the neighbor and the negatives
        return -(F.logsigmoid(good) + F.logsigmoid(-bad).sum(-1)).mean()
        -> return -torch.cat((good[:, None], bad), 1).log_softmax(-1)[:, 0].mean()
        That is another loss, used in contrastive learning and in GE2E. Here each pair is judged alone.
    squeezed_away: a dimension of size 1 squeezed away
        (negatives * center[:, None]).sum(-1) -> (negatives @ center[:, :, None]).squeeze()
        What does squeeze without a number do when K or B is 1?
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
        Case((a + b + "0" + c, pieces), part="a cut that gets stuck"),
        Case(("7" + a, pieces), part="a cut that gets stuck"),
        Case(("playing", {"play": 0, "ing": 1, "##in": 2}), part="## for continuations"),
        Case(("play", {"##play": 0, "p": 1, "##lay": 2, "##l": 3}), part="## for continuations"),
        Case(("xyz", {"x": 0, "##y": 1}), {"unk": "<unk>"}, part="your own unk"),
        Case(("xyz", {"x": 0, "##y": 1}, "?"), part="your own unk"),
        Case((a.title(), pieces), part="case is kept"),
        Case((a + b, Stub("set_of_pieces", (a, "##" + b, "##" + b[:1]))), part="a set of pieces"),
        Case((long, letters), part="no length limit"),
    ]


def goes_back(word, vocab, unk="[UNK]"):
    @functools.lru_cache(None)
    def cut(start):
        if start == len(word):
            return []
        for end in range(len(word), start, -1):
            piece = ("##" if start else "") + word[start:end]
            if piece in vocab and (rest := cut(end)) is not None:
                return [piece, *rest]
        return None

    return cut(0) or [unk]


wordpiece = Exercise("wordpiece", cases_wordpiece).with_mistakes(
    """
    shortest_first: the shortest piece taken first
        range(len(word), start, -1) -> range(start + 1, len(word) + 1)
        Greedy means: try the whole rest of the word first.
    without_marks: continuations looked up without ##
        ("##" if start else "") + ->
        table and ##table are two entries of the vocabulary. Which one may follow un?
    marks_everywhere: the first piece looked up with ## too
        ("##" if start else "") -> "##"
        Only a continuation is marked. Does the first piece continue anything?
    marks_taken_off: the ## taken off the pieces
        pieces.append(piece) -> pieces.append(piece.removeprefix("##"))
        Each piece must be an entry of the vocabulary, to have an id.
    rest_is_unknown: the pieces so far, then unknown
        return [unk] -> return [*pieces, unk]
        When the cut gets stuck the whole word is unknown.
    pieces_before_it_got_stuck: the pieces so far
        return [unk] -> return pieces
        When the cut gets stuck the whole word is unknown.
    one_unknown_per_letter: an unknown for each letter that did not fit
        return [unk] -> pieces.append(unk)
        |            start += 1
        |            continue
        When the cut gets stuck the whole word is unknown, once.
    goes_back: another cut tried after the greedy one got stuck
        Cleverer than the original. BERT's own tokenizer never takes back a piece.
    at_most_100_letters: long words given up
        pieces, start = [], 0 -> pieces, start = [], 0
        |    if len(word) > 100:
        |        return [unk]
        BERT's own tokenizer has such a limit; this one has none.
    unk_written_out: [UNK] whatever the caller asked for
        return [unk] -> return ["[UNK]"]
        What is the third argument for?
    unk_without_a_list: unknown returned without its list
        return [unk] -> return unk
        A list of one piece is still a list.
    lowered_word: the word turned to lower case
        word[start:end] -> word[start:end].lower()
        That is a step of its own, done before the cut or not at all.
    whole_words_only: only whole words known
        range(len(word), start, -1) -> [len(word)]
        The point of subwords: a word that is no entry can still be made of entries.
""",
    goes_back=goes_back,
)

exercises = [
    tokenize,
    build_vocab,
    encode,
    one_hot,
    embed,
    cosine_similarity,
    negative_sampling_gradients,
    fixed_neighbors,
    skipgram_pairs,
    negative_sampling_loss,
    wordpiece,
]

quizzes = listed_quizzes("""
    quiz_1: c
        a: (5, 7) is the shape for one sentence of five ids, without the batch of two.
        b: (2, 5) is the shape of the ids themselves. Each id becomes a whole row of numbers.
        c: Each of the 2 x 5 ids becomes a row with one place for each of the 7 words. Times a table with 7 rows of 3
           that gives (2, 5, 3): the 7 is summed away.
        d: (2, 5, 3) is what comes after the multiplication with the table: 7 places have become 3 coordinates.
    quiz_2: b
        a: They never meet: each of our sentences holds one animal. What pulls on cat is the verb (feeds, say), the and in.
        b: The same neighbors pull on both, so both are pulled the same way. What counts is the company they keep, not whether they meet.
        c: No meaning went in. A word spelled cat that keeps company with bread would land among the foods.
        d: The order of the ids says nothing: the table's rows start as random numbers.
    quiz_3: a
        a: The longest first piece is una; from there ##ffa and ##ble fit. That un, ##affable would be kinder to the
           meaning is no concern of a greedy cut.
        b: This is where a reader would cut. The greedy cut takes the longest first piece that is in the vocabulary,
           and una is longer than un.
        c: It is only unknown if the greedy cut gets stuck. Here it comes to the end of the word.
""")
