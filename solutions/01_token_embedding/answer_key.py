"""Lesson 1: cases, known mistakes and other correct forms."""

import functools
import itertools
import math
import re
import string

import torch
import torch.nn.functional as F

from helpers.checking.vocabulary import DTYPE, GRADIENT, LEADING, Case, Exercise, Fixture, Mistake, Quiz, Raises

LIFE = "Life is short, eat dessert first"
MARKS = ",.!?;:"


# tokenize


def cases_tokenize(draw):
    a, b, c, d = (draw.word() for _ in range(4))
    mark, other = draw.sample(MARKS, 2)
    return [
        Case((LIFE,)),
        Case((f"{a}{mark} {b.title()} {c}; {d}!",)),
        Case((f"{a}, {b}. {c}! {a}? {d}; {b}: {c}",), note="every mark once"),
        Case(("pi is 3.14: nearly",), part="marks inside a word"),
        Case((f"at {draw.integer(1, 13)}:30 {a}{mark}{b}{other}{c}",), part="marks inside a word"),
        Case((f"{a} {mark} {b} {other}",), part="a mark alone"),
        Case((f"{mark}{other}",), part="a mark alone"),
        Case((f"  {a}\t{b}\n{c}   {d} ",), part="any white space"),
        Case((f"{a.upper()} {b.title()} I",), part="case is kept"),
        Case((f'don\'t ({a}) {b}-{c} "{d}" a_b #1 caf\u00e9',), part="other characters stay"),
    ]


def replaced_by_spaces(sentence):
    return re.sub("[,.!?;:]", " ", sentence).split()


def lowered(sentence):
    return "".join(x for x in sentence.lower() if x not in MARKS).split()


def commas_only(sentence):
    return sentence.replace(",", "").split()


def split_on_single_spaces(sentence):
    return "".join(x for x in sentence if x not in MARKS).split(" ")


def all_punctuation(sentence):
    return sentence.translate(str.maketrans("", "", string.punctuation)).split()


def stripped_at_the_ends(sentence):
    return [token.strip(MARKS) for token in sentence.split()]


def stripped_and_kept(sentence):
    return [token.strip(MARKS) for token in sentence.split() if token.strip(MARKS)]


def split_before_deleting(sentence):
    return ["".join(x for x in token if x not in MARKS) for token in sentence.split()]


def marks_as_tokens(sentence):
    return re.findall(r"[,.!?;:]|[^\s,.!?;:]+", sentence)


def word_characters(sentence):
    return re.findall(r"\w+", sentence)


def not_split(sentence):
    return list("".join(x for x in sentence if x not in MARKS))


def tokenize_translate(sentence):
    return sentence.translate(str.maketrans("", "", ",.!?;:")).split()


def tokenize_regex(sentence):
    return [token for token in re.split(r"\s+", re.sub(r"[,.!?;:]", "", sentence)) if token]


def tokenize_replace(sentence):
    for mark in ",.!?;:":
        sentence = sentence.replace(mark, "")
    return sentence.split()


def tokenize_per_token(sentence):
    tokens = []
    for raw in sentence.split():
        token = "".join(filter(lambda x: x not in ",.!?;:", raw))
        if token:
            tokens.append(token)
    return tokens


def tokenize_by_character(sentence):
    tokens, current = [], ""
    for character in sentence + " ":
        if character.isspace():
            if current != "":
                tokens.append(current)
            current = ""
        elif character not in set(",.!?;:"):
            current += character
    return tokens


tokenize = Exercise(
    "tokenize",
    cases_tokenize,
    mistakes=[
        Mistake(
            "replaced_by_spaces",
            "marks turned into spaces",
            "How many tokens should 3.14 give? What happens to the text around a deleted mark?",
            replaced_by_spaces,
        ),
        Mistake(
            "lowered",
            "everything in lower case",
            "Life with a capital is a token of its own here. Look at the word case in the spec.",
            lowered,
        ),
        Mistake(
            "commas_only",
            "only commas deleted",
            "The running sentence has only a comma. The spec lists six marks.",
            commas_only,
        ),
        Mistake(
            "split_on_single_spaces",
            "split at every single space",
            "What comes between two spaces in a row, or around a tab? Does split need an argument?",
            split_on_single_spaces,
        ),
        Mistake(
            "all_punctuation",
            "all of string.punctuation deleted",
            "Look at don't and at (brackets): are those marks in the spec's list?",
            all_punctuation,
        ),
        Mistake(
            "stripped_at_the_ends",
            "marks stripped at the ends of words only",
            "A mark may stand inside a word, or be the whole of it. What does strip do there?",
            stripped_at_the_ends,
        ),
        Mistake(
            "stripped_and_kept",
            "marks inside a word left in",
            "What should become of the dot in 3.14?",
            stripped_and_kept,
        ),
        Mistake(
            "split_before_deleting",
            "empty tokens where a mark stood alone",
            "A lone mark leaves nothing behind. In which order do you delete and split?",
            split_before_deleting,
        ),
        Mistake(
            "marks_as_tokens",
            "marks kept as tokens",
            "Many real tokenizers do keep them. This one deletes.",
            marks_as_tokens,
        ),
        Mistake(
            "word_characters",
            "only runs of letters, digits and _ kept",
            "What does your pattern do with don't, and with 3.14?",
            word_characters,
        ),
        Mistake(
            "not_split",
            "a list of characters",
            "Iterating over a string gives characters. Where does white space come in?",
            not_split,
        ),
    ],
    alternatives=[tokenize_translate, tokenize_regex, tokenize_replace, tokenize_per_token, tokenize_by_character],
)


# build_vocab


def _tokens(sentence):
    return sentence.translate(str.maketrans("", "", MARKS)).split()


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


def vocab_of(tokens, start=0):
    return {token: i for i, token in enumerate(tokens, start)}


def _all(sentences):
    return [token for sentence in sentences for token in _tokens(sentence)]


def in_order_of_appearance(sentences):
    return vocab_of(dict.fromkeys(_all(sentences)))


def repeats_counted(sentences):
    return vocab_of(sorted(_all(sentences)))


def counted_from_one(sentences):
    return vocab_of(sorted(set(_all(sentences))), 1)


def alphabetical_without_case(sentences):
    return vocab_of(sorted(set(_all(sentences)), key=lambda token: (token.lower(), token)))


def lowered_vocab(sentences):
    return vocab_of(sorted({token.lower() for token in _all(sentences)}))


def split_only(sentences):
    return vocab_of(sorted({token for sentence in sentences for token in sentence.split()}))


def ids_to_tokens(sentences):
    return dict(enumerate(sorted(set(_all(sentences)))))


def special_tokens_first(sentences):
    return vocab_of(["[PAD]", "[UNK]", *sorted(set(_all(sentences)))])


def first_sentence_only(sentences):
    return vocab_of(sorted(set(_tokens(sentences[0]))))


def sorted_within_sentences(sentences):
    found = []
    for sentence in sentences:
        found += [token for token in sorted(set(_tokens(sentence))) if token not in found]
    return vocab_of(found)


def most_frequent_first(sentences):
    tokens = _all(sentences)
    return vocab_of(sorted(set(tokens), key=lambda token: (-tokens.count(token), token)))


def characters(sentences):
    return vocab_of(sorted({x for sentence in sentences for x in sentence if x not in MARKS + " "}))


def vocab_set(sentences):
    distinct = set()
    for sentence in sentences:
        distinct |= set(_tokens(sentence))
    return {token: number for number, token in enumerate(sorted(distinct))}


def vocab_zip(sentences):
    distinct = sorted(set(itertools.chain.from_iterable(map(_tokens, sentences))))
    return dict(zip(distinct, range(len(distinct)), strict=True))


def vocab_loop(sentences):
    seen = []
    for sentence in sentences:
        for token in _tokens(sentence):
            if token not in seen:
                seen.append(token)
    seen.sort()
    vocab = {}
    for token in seen:
        vocab[token] = len(vocab)
    return vocab


def vocab_joined(sentences):
    tokens = sorted(dict.fromkeys(_tokens(" ".join(sentences))))
    return {token: tokens.index(token) for token in tokens}


def vocab_grouped(sentences):
    return {token: i for i, (token, _) in enumerate(itertools.groupby(sorted(_all(sentences))))}


build_vocab = Exercise(
    "build_vocab",
    cases_build_vocab,
    mistakes=[
        Mistake(
            "in_order_of_appearance",
            "ids in order of appearance",
            "Then the ids would depend on which sentence comes first. Which order does the spec ask for?",
            in_order_of_appearance,
        ),
        Mistake(
            "repeats_counted",
            "a repeated word takes two numbers, so ids are skipped",
            'Print your vocabulary of "the cat saw the dog". Is the largest id one less than its size?',
            repeats_counted,
        ),
        Mistake(
            "counted_from_one",
            "ids counted from 1",
            "An id is a row of a table. What is the number of the first row?",
            counted_from_one,
        ),
        Mistake(
            "alphabetical_without_case",
            "sorted without regard to case",
            "Code points put every capital before every small letter. What does plain sorting of strings do?",
            alphabetical_without_case,
        ),
        Mistake("lowered_vocab", "everything in lower case", "Life and life would be two tokens here.", lowered_vocab),
        Mistake(
            "split_only", "marks left on the words", "You have just written a function that cuts sentences.", split_only
        ),
        Mistake(
            "ids_to_tokens",
            "keys and values swapped",
            "What will you have in hand when you look something up: the token or the id?",
            ids_to_tokens,
        ),
        Mistake(
            "special_tokens_first",
            "special tokens added",
            "Real vocabularies start with those. This one holds only what the sentences hold.",
            special_tokens_first,
        ),
        Mistake(
            "first_sentence_only",
            "only the first sentence read",
            "The argument is a list of sentences.",
            first_sentence_only,
        ),
        Mistake(
            "sorted_within_sentences",
            "each sentence sorted by itself",
            "Collect first, sort once.",
            sorted_within_sentences,
        ),
        Mistake(
            "most_frequent_first",
            "most frequent words first",
            "That is word2vec's own order. The spec asks for another one.",
            most_frequent_first,
        ),
        Mistake(
            "characters",
            "one id for each character",
            "Iterating over a sentence gives characters. What gives tokens?",
            characters,
        ),
    ],
    alternatives=[vocab_set, vocab_zip, vocab_loop, vocab_joined, vocab_grouped],
)


# encode


def cases_encode(draw):
    words = [draw.word() + tail for tail in ("u", "er", "ik", "od", "as")]
    ids = draw.sample(range(50), len(words))
    vocab = dict(zip(words, ids, strict=True))
    a, b, c, d, e = words
    life = {"Life": 0, "dessert": 1, "eat": 2, "first": 3, "is": 4, "short": 5}
    return [
        Case((LIFE, life)),
        Case((f"{c} {a}, {e} {b}! {a}", vocab), note="a vocabulary whose ids are in no order"),
        Case((f"{d} : {b}", vocab), part="marks are no tokens"),
        Case((f"{e}.", vocab), part="one token"),
        Case((f"{a} pizza! {b}", vocab), part="unknown token", raises=Raises("KeyError", "pizza")),
        Case(("life is short", life), part="unknown token", raises=Raises("KeyError", "life")),
    ]


def unknown_is_zero(sentence, vocab):
    return torch.tensor([vocab.get(token, 0) for token in _tokens(sentence)])


def unknown_is_minus_one(sentence, vocab):
    return torch.tensor([vocab.get(token, -1) for token in _tokens(sentence)])


def unknown_left_out(sentence, vocab):
    return torch.tensor([vocab[token] for token in _tokens(sentence) if token in vocab])


def unknown_added(sentence, vocab):
    return torch.tensor([vocab.setdefault(token, len(vocab)) for token in _tokens(sentence)])


def own_vocabulary(sentence, vocab):
    own = sorted(set(_tokens(sentence)))
    return torch.tensor([own.index(token) for token in _tokens(sentence)])


def place_in_vocabulary(sentence, vocab):
    order = list(vocab)
    if not set(_tokens(sentence)) <= vocab.keys():
        raise KeyError(sentence)
    return torch.tensor([order.index(token) for token in _tokens(sentence)])


def a_batch_of_one(sentence, vocab):
    return torch.tensor([[vocab[token] for token in _tokens(sentence)]])


def a_list(sentence, vocab):
    return [vocab[token] for token in _tokens(sentence)]


def floats(sentence, vocab):
    return torch.Tensor([vocab[token] for token in _tokens(sentence)])


def scalar_for_one_token(sentence, vocab):
    return torch.tensor([vocab[token] for token in _tokens(sentence)]).squeeze()


def sorted_ids(sentence, vocab):
    return torch.tensor(sorted(vocab[token] for token in _tokens(sentence)))


def encode_comprehension(sentence, vocab):
    return torch.LongTensor([vocab[token] for token in _tokens(sentence)])


def encode_map(sentence, vocab):
    return torch.tensor(list(map(vocab.__getitem__, _tokens(sentence))), dtype=torch.long)


def encode_loop(sentence, vocab):
    tokens = _tokens(sentence)
    ids = torch.empty(len(tokens), dtype=torch.int64)
    for t, token in enumerate(tokens):
        if token not in vocab:
            raise KeyError(f"unknown token: {token}")
        ids[t] = vocab[token]
    return ids


def encode_stack(sentence, vocab):
    return torch.stack([torch.tensor(vocab[token]) for token in _tokens(sentence)])


def encode_reraised(sentence, vocab):
    ids = []
    for token in _tokens(sentence):
        found = vocab.get(token)
        if found is None:
            raise KeyError(token)
        ids.append(found)
    return torch.as_tensor(ids)


encode = Exercise(
    "encode",
    cases_encode,
    axes=("token",),
    mistakes=[
        Mistake(
            "unknown_is_zero",
            "unknown words quietly become id 0",
            "Which word has id 0? A reader could not tell it from pizza.",
            unknown_is_zero,
        ),
        Mistake(
            "unknown_is_minus_one",
            "unknown words quietly become id -1",
            "Row -1 of a table is its last row. What should happen instead of a guess?",
            unknown_is_minus_one,
        ),
        Mistake(
            "unknown_left_out",
            "unknown words left out",
            "Then the sentence says something else. What should happen instead?",
            unknown_left_out,
        ),
        Mistake(
            "unknown_added",
            "unknown words added to the vocabulary",
            "The table has no row for them, and the caller's dictionary changes. What should happen instead?",
            unknown_added,
        ),
        Mistake(
            "own_vocabulary",
            "a vocabulary made from the sentence itself",
            "Ids must agree between sentences. What is the second argument for?",
            own_vocabulary,
        ),
        Mistake(
            "place_in_vocabulary",
            "the place in the dictionary instead of the id it holds",
            "A vocabulary read from a file may list its words in any order.",
            place_in_vocabulary,
        ),
        Mistake("a_batch_of_one", "one dimension too many", "The shape is (T,): no batch yet.", a_batch_of_one),
        Mistake("a_list", "a Python list", "The spec asks for a tensor of whole numbers.", a_list),
        Mistake(
            "floats",
            "floats instead of whole numbers",
            "torch.Tensor with a capital makes floats, and a float cannot pick a row.",
            floats,
        ),
        Mistake(
            "scalar_for_one_token",
            "no dimension left for a single token",
            "One token is a sentence of length 1. Who removed that dimension?",
            scalar_for_one_token,
        ),
        Mistake("sorted_ids", "ids in sorted order", "Order matters from the next lesson on.", sorted_ids),
    ],
    alternatives=[encode_comprehension, encode_map, encode_loop, encode_stack, encode_reraised],
)


# one_hot


def cases_one_hot(draw):
    def ids(*shape, high=6):
        return draw.integers(1, high, shape)

    return [
        Case((torch.tensor([0, 4, 5, 2, 1, 3]), 6), note="the ids of the running sentence"),
        Case((ids(4, high=5), 7), note="ids that leave out the last word"),
        Case((ids(3, 5), 7), part=LEADING),
        Case((ids(2, 3, 4), 8), part=LEADING),
        Case((torch.tensor(draw.integer(1, 6)), 7), part="a single id, shape ()"),
        Case((torch.zeros(3, dtype=torch.long), 1), part="a vocabulary of one word"),
    ]


def _hot(ids, size):
    return (ids[..., None] == torch.arange(size)).float()


def whole_numbers(ids, vocab_size):
    return _hot(ids, vocab_size).long()


def size_from_ids(ids, vocab_size):
    return _hot(ids, int(ids.max()) + 1)


def counted_from_one_hot(ids, vocab_size):
    return _hot((ids - 1) % vocab_size, vocab_size)


def bag_of_words(ids, vocab_size):
    hot = _hot(ids, vocab_size)
    return hot.sum(-2) if ids.dim() else hot


def vocabulary_first(ids, vocab_size):
    return _hot(ids, vocab_size).movedim(-1, 0)


def one_hot_eye(ids, vocab_size):
    return torch.eye(vocab_size)[ids]


def one_hot_compare(ids, vocab_size):
    return (ids.unsqueeze(-1) == torch.arange(vocab_size)).float()


def one_hot_scatter(ids, vocab_size):
    return torch.zeros(*ids.shape, vocab_size).scatter_(-1, ids.unsqueeze(-1), 1.0)


def one_hot_loop(ids, vocab_size):
    flat = ids.reshape(-1)
    rows = torch.zeros(len(flat), vocab_size)
    for row, i in enumerate(flat.tolist()):
        rows[row, i] = 1
    return rows.reshape(*ids.shape, vocab_size)


def one_hot_where(ids, vocab_size):
    same = ids[..., None].eq(torch.arange(vocab_size))
    return torch.where(same, torch.tensor(1.0), torch.tensor(0.0))


def one_hot_embedding(ids, vocab_size):
    return F.embedding(ids, torch.eye(vocab_size))


one_hot = Exercise(
    "one_hot",
    cases_one_hot,
    axes=("token", "word of the vocabulary"),
    forbidden=("one_hot",),
    mistakes=[
        Mistake(
            "whole_numbers",
            "whole numbers instead of floats",
            "The rows are to be multiplied with a matrix of floats. What dtype do they need?",
            whole_numbers,
        ),
        Mistake(
            "size_from_ids",
            "as many columns as the largest id needs",
            "The last word of the vocabulary need not be in the sentence. What is the second argument for?",
            size_from_ids,
        ),
        Mistake("counted_from_one", "ids counted from 1", "Which column belongs to id 0?", counted_from_one_hot),
        Mistake("bag_of_words", "the tokens summed into one row", "Each token keeps a row of its own.", bag_of_words),
        Mistake(
            "vocabulary_first",
            "the vocabulary's axis in front",
            "The new axis comes last: which way does a row lie?",
            vocabulary_first,
        ),
    ],
    alternatives=[one_hot_eye, one_hot_compare, one_hot_scatter, one_hot_loop, one_hot_where, one_hot_embedding],
)


# embed


def cases_embed(draw):
    def make(dtype, *shape):
        return draw.integers(0, 7, shape), draw.normal(7, 3, dtype=dtype)

    return [
        Case(make(torch.float32, 5)),
        Case(make(torch.float32, 2, 4), part=LEADING),
        Case(make(torch.float32, 2, 5, 4), part=LEADING),
        Case(make(torch.float32), part="a single id, shape ()"),
        Case(make(torch.float64, 5), part=DTYPE),
        Case((torch.tensor([2, 6, 2, 0, 2]), draw.normal(7, 3, dtype=torch.float64)), part=GRADIENT, gradient=True),
    ]


def row_before(ids, table):
    return table[ids - 1]


def bag_of_vectors(ids, table):
    return table[ids].sum(-2) if ids.dim() else table[ids]


def scaled_by_root_of_width(ids, table):
    return table[ids] * table.shape[-1] ** 0.5


def rounded_to_float32(ids, table):
    return (F.one_hot(ids, len(table)).float() @ table.float()).float()


def transposed_rows(ids, table):
    return table[ids].transpose(-1, -2) if ids.dim() else table[ids]


def embed_index(ids, table):
    return table[ids]


def embed_functional(ids, table):
    return F.embedding(ids, table)


def embed_product(ids, table):
    return F.one_hot(ids, table.shape[0]).to(table.dtype) @ table


def embed_select(ids, table):
    return table.index_select(0, ids.flatten()).reshape(*ids.shape, table.shape[1])


def embed_loop(ids, table):
    rows = [table[i] for i in ids.flatten().tolist()]
    return torch.stack(rows).view(*ids.shape, -1)


def embed_gather(ids, table):
    flat = ids.reshape(-1, 1).expand(-1, table.shape[1])
    return torch.gather(table, 0, flat).reshape(ids.shape + table.shape[1:])


def embed_einsum(ids, table):
    hot = (ids[..., None] == torch.arange(len(table))).to(table)
    return torch.einsum("...v,vd->...d", hot, table)


embed = Exercise(
    "embed",
    cases_embed,
    axes=("token", "coordinate"),
    mistakes=[
        Mistake(
            "row_before",
            "the row before the right one",
            "Is the first word's id 0 or 1? And what does row -1 mean?",
            row_before,
        ),
        Mistake(
            "bag_of_vectors",
            "the vectors summed over the tokens",
            "That is a bag of words. Here each token keeps its vector.",
            bag_of_vectors,
        ),
        Mistake(
            "scaled_by_root_of_width",
            "vectors multiplied by the square root of the width",
            "Vaswani et al. do that in their section 3.4. The lookup itself changes nothing.",
            scaled_by_root_of_width,
        ),
        Mistake(
            "rounded_to_float32",
            "rounded to float32 on the way",
            "Which dtype do your one-hot rows have, and which has the table?",
            rounded_to_float32,
        ),
        Mistake(
            "transposed_rows",
            "tokens and coordinates swapped",
            "One row for each token: which axis is the token's?",
            transposed_rows,
        ),
    ],
    alternatives=[embed_index, embed_functional, embed_product, embed_select, embed_loop, embed_gather, embed_einsum],
)


# cosine_similarity


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
    # The tolerances below leave room for an epsilon of 1e-8 wherever it may stand: inside the root of a sum of
    # squares it moves the cosine by 0.5 percent for each short vector.
    return [
        Case((a, b)),
        Case((_rows(draw, 3, 6, 1.5, 4), _rows(draw, 5, 6, 1.5, 4)), note="more rows in b than in a"),
        Case((_rows(draw, 1, 4, 1.5, 4), _rows(draw, 3, 4, 1.5, 4)), part="a single row"),
        Case(make(torch.float64), part=DTYPE),
        Case(make(torch.float64), part=GRADIENT, gradient=True),
        Case(holes, part="a zero row gives 0"),
        Case((torch.zeros(2, 3), torch.cat((torch.zeros(1, 3), _rows(draw, 3, 3, 1.5, 4)))), part="a zero row gives 0"),
        Case((long, _rows(draw, 3, 5, 900, 1000)), part="long vectors"),
        Case((short, along), part="short vectors", tolerance=3.5e-3, note="rows of length 0.001 against long ones"),
        Case((short, shorter), part="short vectors", tolerance=6e-3, note="rows of length 0.001"),
    ]


def _lengths(x):
    return (x * x).sum(-1, keepdim=True).sqrt()


def _guarded(x):
    n = _lengths(x)
    return x / torch.where(n > 0, n, torch.ones_like(n))


def dot_product(a, b):
    return a @ b.T


def squared_lengths(a, b):
    return _guarded(a) @ (b / _lengths(b).clamp_min(1e-12) ** 2).T


def divided_by_squares(a, b):
    return a @ b.T / (_lengths(a) ** 2 * (_lengths(b) ** 2).T).clamp_min(1e-20)


def only_a_normalized(a, b):
    return _guarded(a) @ b.T


def only_b_normalized(a, b):
    return a @ _guarded(b).T


def columns_normalized(a, b):
    n, m = a.norm(dim=0).clamp_min(1e-12), b.norm(dim=0).clamp_min(1e-12)
    return (a / n) @ (b / m).T


def whole_matrix_normalized(a, b):
    return (a / a.norm().clamp_min(1e-12)) @ (b / b.norm().clamp_min(1e-12)).T


def zero_by_zero(a, b):
    return a @ b.T / (_lengths(a) * _lengths(b).T)


def epsilon_too_large(a, b):
    return a @ b.T / (_lengths(a) * _lengths(b).T + 1e-6)


def distance_instead(a, b):
    return 1 - _guarded(a) @ _guarded(b).T


def rows_and_columns_swapped(a, b):
    return _guarded(b) @ _guarded(a).T


def sums_instead_of_lengths(a, b):
    return _clean(a / a.sum(-1, keepdim=True)) @ _clean(b / b.sum(-1, keepdim=True)).T


def _clean(x):
    return torch.nan_to_num(x, nan=0.0, posinf=0.0, neginf=0.0)


def absolute_values(a, b):
    return (_guarded(a) @ _guarded(b).T).abs()


def cosine_with_epsilon(a, b):
    return a @ b.T / (a.norm(dim=1)[:, None] * b.norm(dim=1)[None, :] + 1e-8)


def cosine_with_clamp(a, b):
    n = torch.linalg.vector_norm(a, dim=1, keepdim=True).clamp(min=1e-8)
    m = torch.linalg.vector_norm(b, dim=1, keepdim=True).clamp(min=1e-8)
    return (a / n) @ (b / m).T


def cosine_epsilon_in_root(a, b):
    n = torch.sqrt(torch.sum(a**2, dim=1) + 1e-8)
    m = torch.sqrt(torch.sum(b**2, dim=1) + 1e-8)
    return torch.einsum("nd,md->nm", a, b) / torch.outer(n, m)


def cosine_where(a, b):
    lengths = a.norm(dim=-1)[:, None] * b.norm(dim=-1)
    return torch.where(lengths == 0, torch.zeros_like(lengths), (a @ b.T) / lengths.masked_fill(lengths == 0, 1.0))


def cosine_nan_to_num(a, b):
    return torch.nan_to_num((a @ b.T) / (a.norm(dim=-1, keepdim=True) * b.norm(dim=-1)))


def cosine_loop(a, b):
    rows = []
    for x in a:
        row = []
        for y in b:
            length = (x @ x).sqrt() * (y @ y).sqrt()
            row.append((x @ y) / length if length > 0 else (x @ y) * 0)
        rows.append(torch.stack(row))
    return torch.stack(rows)


def cosine_broadcast(a, b):
    products = (a[:, None, :] * b[None, :, :]).sum(-1)
    squares = a.square().sum(-1)[:, None].sqrt() * b.square().sum(-1).sqrt()
    return products / squares.clamp_min(1e-12)


cosine_similarity = Exercise(
    "cosine_similarity",
    cases_cosine_similarity,
    axes=("row of a", "row of b"),
    forbidden=("cosine_similarity",),
    mistakes=[
        Mistake(
            "dot_product",
            "plain dot products",
            "A vector twice as long should give the same number. What is missing?",
            dot_product,
        ),
        Mistake(
            "squared_lengths",
            "one length too many",
            "Double b: by how much does your number change? It should not change at all.",
            squared_lengths,
        ),
        Mistake(
            "divided_by_squares",
            "divided by squared lengths",
            "A sum of squares is not yet a length.",
            divided_by_squares,
        ),
        Mistake(
            "only_a_normalized", "only a's lengths divided out", "Double b: your number doubles too.", only_a_normalized
        ),
        Mistake(
            "only_b_normalized", "only b's lengths divided out", "Double a: your number doubles too.", only_b_normalized
        ),
        Mistake(
            "columns_normalized",
            "lengths of columns instead of rows",
            "Which axis is summed when a row's length is measured?",
            columns_normalized,
        ),
        Mistake(
            "whole_matrix_normalized",
            "one length for the whole matrix",
            "A norm without a dim is a single number. How many lengths does a with N rows have?",
            whole_matrix_normalized,
        ),
        Mistake(
            "zero_by_zero",
            "0 / 0 for a zero row",
            "A zero row has length 0. What should stand there instead of nan?",
            zero_by_zero,
        ),
        Mistake(
            "epsilon_too_large",
            "a guard against zero that is felt by short vectors",
            "Two vectors of length 0.001 have a product of lengths of 0.000001. How large is what you add?",
            epsilon_too_large,
        ),
        Mistake(
            "distance_instead",
            "one minus the cosine",
            "That is a distance: 0 for equal directions. The spec asks for the similarity.",
            distance_instead,
        ),
        Mistake(
            "rows_and_columns_swapped",
            "a and b swapped",
            "Row i belongs to row i of a, column j to row j of b.",
            rows_and_columns_swapped,
        ),
        Mistake(
            "sums_instead_of_lengths",
            "rows divided by their sums",
            "That makes shares that sum to 1. The length is another number: think of Pythagoras.",
            sums_instead_of_lengths,
        ),
        Mistake("absolute_values", "the sign lost", "Opposite directions have cosine -1.", absolute_values),
    ],
    alternatives=[
        cosine_with_epsilon,
        cosine_with_clamp,
        cosine_epsilon_in_root,
        cosine_where,
        cosine_nan_to_num,
        cosine_loop,
        cosine_broadcast,
    ],
)


# fixed_neighbors


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
    return [
        Case((_well_apart(draw, 7, 5), 3)),
        Case((_well_apart(draw, 9, 4), 2)),
        Case((_well_apart(draw, 6, 6), 2), note="as many rows as columns"),
        Case((_well_apart(draw, 5, 3), 1), part="one neighbor"),
        Case((_well_apart(draw, 5, 4), 4), part="all the others"),
        Case((opposed, 2), part="all the others", note="three vectors that point away from each other"),
        Case((_well_apart(draw, 7, 5, torch.float64), 3), part="float64"),
    ]


def _nearest(scores, k, fill=-math.inf):
    scores = scores.clone()
    scores.fill_diagonal_(fill)
    return scores.topk(k).indices


def as_published(table, k):
    unit = table / table.norm()
    return _nearest(unit @ unit.T, k)


def columns_divided(table, k):
    unit = table / table.norm(dim=0)
    return _nearest(unit @ unit.T, k)


def itself_included(table, k):
    unit = _guarded(table)
    return (unit @ unit.T).topk(k).indices


def itself_at_zero(table, k):
    unit = _guarded(table)
    return _nearest(unit @ unit.T, k, 0.0)


def farthest_first(table, k):
    unit = _guarded(table)
    return (unit @ unit.T).topk(k, largest=False).indices


def by_distance(table, k):
    return _nearest(-((table[:, None] - table).norm(dim=-1)), k)


def sign_ignored(table, k):
    unit = _guarded(table)
    return _nearest((unit @ unit.T).abs(), k)


def values_returned(table, k):
    unit = _guarded(table)
    return (unit @ unit.T).fill_diagonal_(-math.inf).topk(k).values


def neighbors_keepdim(table, k):
    unit = table / table.norm(dim=-1, keepdim=True)
    similarity = unit @ unit.T
    similarity.fill_diagonal_(-math.inf)
    return similarity.topk(k).indices


def neighbors_normalize(table, k):
    unit = F.normalize(table)
    return (unit @ unit.T - 9 * torch.eye(len(table), dtype=table.dtype)).argsort(dim=1, descending=True)[:, :k]


def neighbors_library(table, k):
    cosines = F.cosine_similarity(table[:, None], table[None], dim=-1)
    return cosines.masked_fill(torch.eye(len(table), dtype=torch.bool), -2.0).topk(k, dim=1)[1]


def neighbors_dropped(table, k):
    unit = table / (table**2).sum(1).sqrt()[:, None]
    return (unit @ unit.T).topk(k + 1).indices[:, 1:]


def neighbors_loop(table, k):
    rows = []
    for i, x in enumerate(table):
        cosines = [(float(x @ y / y.norm()), j) for j, y in enumerate(table) if j != i]
        rows.append([j for _, j in sorted(cosines, reverse=True)[:k]])
    return torch.tensor(rows)


fixed_neighbors = Exercise(
    "fixed_neighbors",
    cases_fixed_neighbors,
    axes=("word", "neighbor"),
    mistakes=[
        Mistake(
            "as_published",
            "the published version's answer",
            "Print the length of each row of unit. The comment says they are all 1.",
            as_published,
        ),
        Mistake(
            "columns_divided",
            "columns made of length 1 instead of rows",
            "dim names the axis that is summed away. Print the lengths of the rows of unit again.",
            columns_divided,
        ),
        Mistake(
            "itself_included",
            "each word is its own nearest neighbor",
            "That line of the published version was right.",
            itself_included,
        ),
        Mistake(
            "itself_at_zero",
            "a word may be its own neighbor when all others point away",
            "A cosine can be smaller than the number you put on the diagonal.",
            itself_at_zero,
        ),
        Mistake("farthest_first", "the least similar words", "Does your sorting go up or down?", farthest_first),
        Mistake(
            "by_distance",
            "neighbors by distance instead of direction",
            "Distance feels length as well. The comment in the code says what was meant.",
            by_distance,
        ),
        Mistake("sign_ignored", "opposite words counted as similar", "A cosine of -0.9 is far away.", sign_ignored),
        Mistake(
            "values_returned", "similarities instead of ids", "The caller wants to look words up.", values_returned
        ),
    ],
    alternatives=[neighbors_keepdim, neighbors_normalize, neighbors_library, neighbors_dropped, neighbors_loop],
)


# + skipgram_pairs


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


def _pairs(ids, window):
    ids = [int(i) for i in ids]
    return [(ids[i], ids[j]) for i in range(len(ids)) for j in range(len(ids)) if i != j and abs(i - j) <= window]


def last_neighbor_missing(ids, window):
    ids = [int(i) for i in ids]
    near = [(i, j) for i in range(len(ids)) for j in range(max(0, i - window), min(len(ids), i + window))]
    return [(ids[i], ids[j]) for i, j in near if i != j]


def equal_words_left_out(ids, window):
    return [(a, b) for a, b in _pairs(ids, window) if a != b]


def itself_paired(ids, window):
    ids = [int(i) for i in ids]
    return [(ids[i], ids[j]) for i in range(len(ids)) for j in range(len(ids)) if abs(i - j) <= window]


def context_first(ids, window):
    return [(b, a) for a, b in _pairs(ids, window)]


def only_to_the_right(ids, window):
    ids = [int(i) for i in ids]
    return [(ids[i], ids[j]) for i in range(len(ids)) for j in range(i + 1, min(len(ids), i + window + 1))]


def first_place_of_the_word(ids, window):
    ids = [int(i) for i in ids]
    out = []
    for center in ids:
        i = ids.index(center)
        out += [(center, ids[j]) for j in range(max(0, i - window), min(len(ids), i + window + 1)) if j != i]
    return out


def negative_places(ids, window):
    ids = [int(i) for i in ids]
    out = []
    for i, center in enumerate(ids):
        out += [(center, other) for other in ids[i - window : i] + ids[i + 1 : i + window + 1]]
    return out


def full_windows_only(ids, window):
    ids = [int(i) for i in ids]
    inside = range(window, len(ids) - window)
    return [(ids[i], ids[j]) for i in inside for j in range(i - window, i + window + 1) if i != j]


def near_to_far(ids, window):
    ids = [int(i) for i in ids]
    out = []
    for i in range(len(ids)):
        for distance in range(1, window + 1):
            out += [(ids[i], ids[j]) for j in (i - distance, i + distance) if 0 <= j < len(ids)]
    return out


def pairs_as_lists(ids, window):
    return [list(pair) for pair in _pairs(ids, window)]


def pairs_as_tensor(ids, window):
    return torch.tensor(_pairs(ids, window)).reshape(-1, 2)


def pairs_slices(ids, window):
    ids = torch.as_tensor(ids).tolist()
    pairs = []
    for i, center in enumerate(ids):
        near = ids[max(0, i - window) : i] + ids[i + 1 : i + 1 + window]
        pairs.extend((center, other) for other in near)
    return pairs


def pairs_range(ids, window):
    ids = list(map(int, ids))
    return [
        (ids[i], ids[j])
        for i in range(len(ids))
        for j in range(max(i - window, 0), min(i + window + 1, len(ids)))
        if j != i
    ]


def pairs_offsets(ids, window):
    ids = [int(x) for x in ids]
    offsets = [o for o in range(-window, window + 1) if o]
    return [(x, ids[i + o]) for i, x in enumerate(ids) for o in offsets if 0 <= i + o < len(ids)]


def pairs_mask(ids, window):
    ids = torch.as_tensor(ids)
    place = torch.arange(len(ids))
    gap = (place[:, None] - place).abs()
    i, j = ((gap > 0) & (gap <= window)).nonzero(as_tuple=True)
    return list(zip(ids[i].tolist(), ids[j].tolist(), strict=True))


def pairs_permutations(ids, window):
    places = itertools.permutations(range(len(ids)), 2)
    return [(int(ids[i]), int(ids[j])) for i, j in places if abs(i - j) <= window]


skipgram_pairs = Exercise(
    "skipgram_pairs",
    cases_skipgram_pairs,
    mistakes=[
        Mistake(
            "last_neighbor_missing",
            "the last neighbor on the right is missing",
            "range leaves out its end. Count the neighbors on both sides.",
            last_neighbor_missing,
        ),
        Mistake(
            "equal_words_left_out",
            "a word that comes twice is never its own neighbor",
            "The same word at another place is a neighbor. What must differ: the ids or the positions?",
            equal_words_left_out,
        ),
        Mistake(
            "itself_paired", "each position paired with itself", "A position is never its own context.", itself_paired
        ),
        Mistake("context_first", "context and center swapped", "The center comes first in each pair.", context_first),
        Mistake(
            "only_to_the_right", "only neighbors on the right", "A window reaches to both sides.", only_to_the_right
        ),
        Mistake(
            "first_place_of_the_word",
            "the window of a word's first place, for every place it has",
            "index finds the first one only. What do you need to count instead?",
            first_place_of_the_word,
        ),
        Mistake(
            "negative_places",
            "left neighbors lost near the start",
            "What does a slice that starts at a negative number give?",
            negative_places,
        ),
        Mistake(
            "full_windows_only",
            "words near the ends left out",
            "Near the ends a window is shorter, not gone.",
            full_windows_only,
        ),
        Mistake(
            "near_to_far",
            "neighbors by distance instead of by position",
            "All the right pairs, in another order: left to right is asked for.",
            near_to_far,
        ),
        Mistake("pairs_as_lists", "lists instead of tuples", "A pair is a tuple here.", pairs_as_lists),
        Mistake(
            "pairs_as_tensor",
            "a tensor instead of a list of pairs",
            "The spec asks for Python: a list of tuples of ints.",
            pairs_as_tensor,
        ),
    ],
    alternatives=[pairs_slices, pairs_range, pairs_offsets, pairs_mask, pairs_permutations],
)


# + negative_sampling_loss


def cases_negative_sampling_loss(draw):
    def make(dtype, batch=3, width=5, negatives=4):
        return (
            draw.normal(batch, width, dtype=dtype),
            draw.normal(batch, width, dtype=dtype),
            draw.normal(batch, negatives, width, dtype=dtype),
        )

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


def _dots(center, context, negatives):
    return (center * context).sum(-1), (negatives @ center[:, :, None])[..., 0]  # (B,), (B, K)


def negatives_not_negated(center, context, negatives):
    good, bad = _dots(center, context, negatives)
    return (-F.logsigmoid(good) - F.logsigmoid(bad).sum(-1)).mean()


def mean_over_negatives(center, context, negatives):
    good, bad = _dots(center, context, negatives)
    return (-F.logsigmoid(good) - F.logsigmoid(-bad).mean(-1)).mean()


def summed_over_batch(center, context, negatives):
    good, bad = _dots(center, context, negatives)
    return (-F.logsigmoid(good) - F.logsigmoid(-bad).sum(-1)).sum()


def not_averaged(center, context, negatives):
    good, bad = _dots(center, context, negatives)
    return -F.logsigmoid(good) - F.logsigmoid(-bad).sum(-1)


def log_of_sigmoid(center, context, negatives):
    good, bad = _dots(center, context, negatives)
    return (-torch.sigmoid(good).log() - torch.sigmoid(-bad).log().sum(-1)).mean()


def log_of_one_minus(center, context, negatives):
    good, bad = _dots(center, context, negatives)
    return (-torch.sigmoid(good).log() - (1 - torch.sigmoid(bad)).log().sum(-1)).mean()


def epsilon_in_the_log(center, context, negatives):
    good, bad = _dots(center, context, negatives)
    return (-(torch.sigmoid(good) + 1e-10).log() - (torch.sigmoid(-bad) + 1e-10).log().sum(-1)).mean()


def sign_forgotten(center, context, negatives):
    good, bad = _dots(center, context, negatives)
    return (F.logsigmoid(good) + F.logsigmoid(-bad).sum(-1)).mean()


def only_the_pull(center, context, negatives):
    good, _ = _dots(center, context, negatives)
    return -F.logsigmoid(good).mean()


def negatives_against_context(center, context, negatives):
    good, _ = _dots(center, context, negatives)
    _, bad = _dots(context, center, negatives)
    return (-F.logsigmoid(good) - F.logsigmoid(-bad).sum(-1)).mean()


def softmax_over_candidates(center, context, negatives):
    good, bad = _dots(center, context, negatives)
    return -torch.cat((good[:, None], bad), 1).log_softmax(-1)[:, 0].mean()


def squeezed_away(center, context, negatives):
    good = (center * context).sum(-1)
    bad = torch.bmm(negatives, center.unsqueeze(2)).squeeze()
    return (-F.logsigmoid(good) - F.logsigmoid(-bad).sum(-1)).mean()


def loss_logsigmoid(center, context, negatives):
    good = torch.einsum("bd,bd->b", center, context)
    bad = torch.einsum("bd,bkd->bk", center, negatives)
    return -(F.logsigmoid(good) + F.logsigmoid(-bad).sum(1)).mean()


def loss_softplus(center, context, negatives):
    good = (center * context).sum(1, keepdim=True)
    bad = (center[:, None, :] * negatives).sum(-1)
    return F.softplus(torch.cat((-good, bad), dim=1)).sum(1).mean()


def loss_with_logits(center, context, negatives):
    others = torch.cat((context[:, None], negatives), 1)  # (B, 1 + K, D)
    logits = torch.bmm(others, center[:, :, None]).squeeze(-1)
    labels = torch.zeros_like(logits)
    labels[:, 0] = 1
    return F.binary_cross_entropy_with_logits(logits, labels, reduction="sum") / len(center)


def loss_by_hand(center, context, negatives):
    def cost(x):  # log(1 + exp(-x)) without overflow
        return (-x).clamp_min(0) + torch.log1p(torch.exp(-x.abs()))

    good, bad = _dots(center, context, negatives)
    return (cost(good) + cost(-bad).sum(-1)).mean()


def loss_logaddexp(center, context, negatives):
    good, bad = _dots(center, context, negatives)
    zero = torch.zeros((), dtype=center.dtype)
    return (torch.logaddexp(zero, -good) + torch.logaddexp(zero, bad).sum(-1)).mean()


def loss_loop(center, context, negatives):
    total = 0
    for c, o, strangers in zip(center, context, negatives, strict=True):
        total = total - F.logsigmoid(c @ o)
        for n in strangers:
            total = total - F.logsigmoid(-(c @ n))
    return total / center.shape[0]


negative_sampling_loss = Exercise(
    "negative_sampling_loss",
    cases_negative_sampling_loss,
    mistakes=[
        Mistake(
            "negatives_not_negated",
            "negatives pulled closer like true neighbors",
            "Which sign does the dot product with a stranger have inside the sigmoid?",
            negatives_not_negated,
        ),
        Mistake(
            "mean_over_negatives",
            "the mean over the negatives",
            "K strangers push K times as hard as one: the formula has a sum there.",
            mean_over_negatives,
        ),
        Mistake(
            "summed_over_batch",
            "the sum over the batch",
            "A batch twice as large should not cost twice as much.",
            summed_over_batch,
        ),
        Mistake("not_averaged", "one loss for each pair", "A loss to be minimized is one number.", not_averaged),
        Mistake(
            "log_of_sigmoid",
            "the log of a sigmoid that has become 0",
            "In float32 the sigmoid of -100 has hardly a digit left, and its gradient none. Is there a function "
            "that takes both steps at once?",
            log_of_sigmoid,
        ),
        Mistake(
            "log_of_one_minus",
            "the log of one minus a sigmoid",
            "The sigmoid of 100 is 1 to the last digit, so 1 minus it is 0. Can the sign go somewhere else?",
            log_of_one_minus,
        ),
        Mistake(
            "epsilon_in_the_log",
            "a small number added inside the log",
            "At -100 the loss should be 100. What does the log of your small number give?",
            epsilon_in_the_log,
        ),
        Mistake(
            "sign_forgotten",
            "the sign of the whole turned around",
            "Minimizing this pushes true neighbors apart.",
            sign_forgotten,
        ),
        Mistake(
            "only_the_pull",
            "only the true pairs counted",
            "Without a push all vectors end up in one place.",
            only_the_pull,
        ),
        Mistake(
            "negatives_against_context",
            "negatives compared with the neighbor",
            "Which vector do both terms of the formula share?",
            negatives_against_context,
        ),
        Mistake(
            "softmax_over_candidates",
            "a softmax over the neighbor and the negatives",
            "That is another loss, used in contrastive learning and in GE2E. Here each pair is judged alone.",
            softmax_over_candidates,
        ),
        Mistake(
            "squeezed_away",
            "a dimension of size 1 squeezed away",
            "What does squeeze without a number do when K or B is 1?",
            squeezed_away,
        ),
    ],
    alternatives=[loss_logsigmoid, loss_softplus, loss_with_logits, loss_by_hand, loss_logaddexp, loss_loop],
)


# + wordpiece


def cases_wordpiece(draw):
    a, b, c = draw.word(4, 6), draw.word(3, 5), draw.word(3, 5)
    pieces = [a, a[:2], "##" + b, "##" + b[:1], "##" + c, "##" + c[:1], "[UNK]"]
    numbered = {piece: i for i, piece in enumerate(pieces)}
    greedy = ["un", "unaf", "##affable", "##able", "[UNK]"]
    letters = ["a", "##a", "##b", "##ba"]
    long = "a" + "".join(draw.choice("ab") for _ in range(300))
    return [
        Case((a + b + c, numbered)),
        Case(("desserts", {"dessert": 0, "##s": 1, "des": 2, "##sert": 3, "##serts": 4})),
        Case((a, pieces), part="a whole word"),
        Case(("un" + "affable", greedy), part="never goes back"),
        Case((a + b + "0" + c, pieces), part="a cut that gets stuck"),
        Case(("7" + a, pieces), part="a cut that gets stuck"),
        Case(("playing", ["play", "ing", "##in"]), part="## for continuations"),
        Case(("play", ["##play", "p", "##lay", "##l"]), part="## for continuations"),
        Case(("xyz", ["x", "##y"]), {"unk": "<unk>"}, part="your own unk"),
        Case(("xyz", ["x", "##y"], "?"), part="your own unk"),
        Case((a.title(), pieces), part="case is kept"),
        Case((a + b, Fixture("only_contains", (a, "##" + b, "##" + b[:1]))), part="any vocabulary with in"),
        Case((long, letters), part="no length limit"),
    ]


def _cut(word, vocab, unk="[UNK]", mark="##", shortest=False, give_up=True, limit=None):
    if limit and len(word) > limit:
        return [unk]
    pieces, start = [], 0
    while start < len(word):
        ends = range(start + 1, len(word) + 1)
        for end in ends if shortest else reversed(ends):
            piece = (mark if start else "") + word[start:end]
            if piece in vocab:
                break
        else:
            if give_up:
                return [unk]
            piece, end = unk, len(word)
        pieces.append(piece)
        start = end
    return pieces


def shortest_first(word, vocab, unk="[UNK]"):
    return _cut(word, vocab, unk, shortest=True)


def without_marks(word, vocab, unk="[UNK]"):
    return _cut(word, vocab, unk, mark="")


def marks_taken_off(word, vocab, unk="[UNK]"):
    pieces = _cut(word, vocab, unk)
    return [piece[2:] if piece.startswith("##") else piece for piece in pieces]


def rest_is_unknown(word, vocab, unk="[UNK]"):
    return _cut(word, vocab, unk, give_up=False)


def pieces_before_it_got_stuck(word, vocab, unk="[UNK]"):
    pieces = _cut(word, vocab, unk, give_up=False)
    return pieces[:-1] if len(pieces) > 1 and pieces[-1] == unk else pieces


def one_unknown_per_letter(word, vocab, unk="[UNK]"):
    pieces, start = [], 0
    while start < len(word):
        end = len(word)
        while end > start and ("##" if start else "") + word[start:end] not in vocab:
            end -= 1
        pieces.append(("##" if start else "") + word[start:end] if end > start else unk)
        start = max(end, start + 1)
    return pieces


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


def at_most_100_letters(word, vocab, unk="[UNK]"):
    return _cut(word, vocab, unk, limit=100)


def unk_written_out(word, vocab, unk="[UNK]"):
    return _cut(word, vocab)


def unk_without_a_list(word, vocab, unk="[UNK]"):
    pieces = _cut(word, vocab, unk)
    return unk if pieces == [unk] else pieces


def lowered_word(word, vocab, unk="[UNK]"):
    return _cut(word.lower(), vocab, unk)


def whole_words_only(word, vocab, unk="[UNK]"):
    return [word] if word in vocab else [unk]


def wordpiece_while(word, vocab, unk="[UNK]"):
    pieces, start = [], 0
    while start < len(word):
        end, found = len(word), None
        while start < end:
            piece = word[start:end]
            if start > 0:
                piece = "##" + piece
            if piece in vocab:
                found = piece
                break
            end -= 1
        if found is None:
            return [unk]
        pieces.append(found)
        start = end
    return pieces


def wordpiece_recursive(word, vocab, unk="[UNK]", first=True):
    if not word:
        return []
    for end in range(len(word), 0, -1):
        piece = word[:end] if first else "##" + word[:end]
        if piece in vocab:
            rest = wordpiece_recursive(word[end:], vocab, None, False)
            return [unk] if rest is None or None in rest else [piece, *rest]
    return [unk]


def wordpiece_next(word, vocab, unk="[UNK]"):
    pieces, rest = [], word
    while rest:
        prefix = "##" if pieces else ""
        size = next((n for n in range(len(rest), 0, -1) if prefix + rest[:n] in vocab), 0)
        if size == 0:
            return [unk]
        pieces.append(prefix + rest[:size])
        rest = rest[size:]
    return pieces


def wordpiece_marked(word, vocab, unk="[UNK]"):
    pieces, rest = [], word
    while rest not in ("", "##"):
        tries = [rest[:n] for n in range(len(rest), 2 if pieces else 0, -1)]
        found = [piece for piece in tries if piece in vocab][:1]
        if not found:
            return [unk]
        pieces += found
        rest = "##" + rest[len(found[0]) :]
    return pieces


wordpiece = Exercise(
    "wordpiece",
    cases_wordpiece,
    mistakes=[
        Mistake(
            "shortest_first",
            "the shortest piece taken first",
            "Greedy means: try the whole rest of the word first.",
            shortest_first,
        ),
        Mistake(
            "without_marks",
            "continuations looked up without ##",
            "table and ##table are two entries of the vocabulary. Which one may follow un?",
            without_marks,
        ),
        Mistake(
            "marks_taken_off",
            "the ## taken off the pieces",
            "Each piece must be an entry of the vocabulary, to have an id.",
            marks_taken_off,
        ),
        Mistake(
            "rest_is_unknown",
            "the pieces so far, then unknown",
            "When the cut gets stuck the whole word is unknown.",
            rest_is_unknown,
        ),
        Mistake(
            "pieces_before_it_got_stuck",
            "the pieces so far",
            "When the cut gets stuck the whole word is unknown.",
            pieces_before_it_got_stuck,
        ),
        Mistake(
            "one_unknown_per_letter",
            "an unknown for each letter that did not fit",
            "When the cut gets stuck the whole word is unknown, once.",
            one_unknown_per_letter,
        ),
        Mistake(
            "goes_back",
            "another cut tried after the greedy one got stuck",
            "Cleverer than the original. BERT's own tokenizer never takes back a piece.",
            goes_back,
        ),
        Mistake(
            "at_most_100_letters",
            "long words given up",
            "BERT's own tokenizer has such a limit; this one has none.",
            at_most_100_letters,
        ),
        Mistake(
            "unk_written_out", "[UNK] whatever the caller asked for", "What is the third argument for?", unk_written_out
        ),
        Mistake(
            "unk_without_a_list",
            "unknown returned without its list",
            "A list of one piece is still a list.",
            unk_without_a_list,
        ),
        Mistake(
            "lowered_word",
            "the word turned to lower case",
            "That is a step of its own, done before the cut or not at all.",
            lowered_word,
        ),
        Mistake(
            "whole_words_only",
            "only whole words known",
            "The point of subwords: a word that is no entry can still be made of entries.",
            whole_words_only,
        ),
    ],
    alternatives=[wordpiece_while, wordpiece_recursive, wordpiece_next, wordpiece_marked],
)


exercises = [
    tokenize,
    build_vocab,
    encode,
    one_hot,
    embed,
    cosine_similarity,
    fixed_neighbors,
    skipgram_pairs,
    negative_sampling_loss,
    wordpiece,
]

quizzes = [
    Quiz(
        "quiz_1",
        "c",
        {
            "a": "(5, 7) is the shape for one sentence of five ids, without the batch of two.",
            "b": "(2, 5) is the shape of the ids themselves. Each id becomes a whole row of numbers.",
            "c": "Each of the 2 x 5 ids becomes a row with one place for each of the 7 words. Times a table with 7 "
            "rows of 3 that gives (2, 5, 3): the 7 is summed away.",
            "d": "(2, 5, 3) is what comes after the multiplication with the table: 7 places have become 3 coordinates.",
        },
    ),
    Quiz(
        "quiz_2",
        "b",
        {
            "a": "They never meet: each of our sentences holds one animal. What pulls on cat is feeds, the, in, barn.",
            "b": "The same neighbors pull on both, so both are pulled the same way. Company makes the vector, not "
            "meeting.",
            "c": "No meaning went in. A word spelled cat that keeps company with bread would land among the foods.",
            "d": "The order of the ids says nothing: the table's rows start as random numbers.",
        },
    ),
    Quiz(
        "quiz_3",
        "a",
        {
            "a": "The longest first piece is una; from there ##ffa and ##ble fit. That un, ##affable would be kinder "
            "to the meaning is no concern of a greedy cut.",
            "b": "This is where a reader would cut. The greedy cut takes the longest first piece that is in the "
            "vocabulary, and una is longer than un.",
            "c": "It is only unknown if the greedy cut gets stuck. Here it comes to the end of the word.",
        },
    ),
]
