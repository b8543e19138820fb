# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # 1. Token embedding: words become vectors
#
# **In this lesson** you'll turn a sentence into vectors, compare them by dot product and by cosine, and see how a network learns vectors in which similar words are close together.
#
# **Core:** about 80 minutes. A good moment for a break is after exercise 1.6.

# %% tags=["setup"]
# (empty: the build puts the set-up cell here)

# %%
import math
import random

import torch
import torch.nn.functional as F
from torch import nn

from helpers import at_work, check, corpus, or_finished, pretrained, translator
from helpers.drawing.transformer_map import transformer_map
from helpers.lessons.token_embedding import experiments, explore, figures, word2vec

# %%
transformer_map("01_token_embedding")

# %% [markdown]
# We're at the left edge of the map, where words become the vectors that everything to the right works on.

# %% [markdown]
# ## You need
#
# You need shapes, broadcasting, gradients and the conventions from [lesson 0](../00_start_here/00_start_here.ipynb), and three Python tools: `set(names)` holds each thing once, `sorted(names)` makes a sorted list of it, and `{name: len(name) for name in names}` makes a dictionary in one line.
#
# Here are two questions to warm up; answer each one before you open it.
#
# <details><summary>If you compare a tensor of shape (5, 1) with one of shape (7,), what shape does the result have?</summary>
#
# It has shape `(5, 7)`, because each of the five is compared with each of the seven.
#
# </details>
#
# <details><summary>What is the gradient of f(x) = x₁² + x₂² at x = (1, 2), and in which direction does training move x?</summary>
#
# The gradient is $(2, 4)$, and training moves x against it, along $(-2, -4)$.
#
# </details>

# %% [markdown]
# ## A sentence is a list of tokens
#
# A network adds and multiplies, but *Life is short, eat dessert first* can be neither added nor multiplied. Our first step is therefore to split it into pieces, called **tokens**, and to give each distinct token a number, its **id**. We begin with the simplest **tokenizer**, which deletes the punctuation and splits at white space.

# %% [markdown]
# ### Exercise 1.1 `tokenize`
#
# Difficulty 1 of 5 · Importance 2 of 5 · 4 minutes · 8 points
#
# - **Arguments:** `sentence`, a string.
# - **Returns:** the list of its tokens, as strings. For example, `"Life is short, eat dessert first"` gives `["Life", "is", "short", "eat", "dessert", "first"]`.
# - Delete the characters `, . ! ? ; :` and don't replace them by a space, so that `3.14` gives `314` and a lone punctuation mark leaves no token.
# - Then split on white space of every kind and length, that is, spaces, tabs and line ends, and keep the case of the letters and every other character.


# %% nbgrader={"solution": "tokenize"}
def tokenize(sentence):
    """Tokens of a sentence, a list of strings: the characters , . ! ? ; : deleted, then split on
    white space."""
    ### BEGIN SOLUTION
    for mark in ",.!?;:":
        sentence = sentence.replace(mark, "")
    return sentence.split()
    ### END SOLUTION


# %% nbgrader={"grade": "tokenize"}
check(tokenize)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# Delete first and split afterwards, with a string method for each of the two steps.
#
# </details>
# <details><summary>Hint 2</summary>
#
# `"a-b".replace("-", "")` returns `"ab"`. A `split` without an argument treats any run of white space as one gap.
#
# </details>

# %% [markdown]
# ## A vocabulary gives each token an id
#
# Next, we collect the distinct tokens, sort them, and count from 0. The result is the **vocabulary**:
#
# | token | Life | dessert | eat | first | is | short |
# |---|---|---|---|---|---|---|
# | id | 0 | 1 | 2 | 3 | 4 | 5 |
#
# *Life* is first because Python compares strings by **code point**, where the capitals come before the lower-case letters. Any order would do if it's always the same, because an id will be the index of a row in a table.

# %% [markdown]
# ### Exercise 1.2 `build_vocab`
#
# Difficulty 2 of 5 · Importance 3 of 5 · 6 minutes · 10 points
#
# - **Arguments:** `sentences`, a list of strings, which you split with your `tokenize`.
# - **Returns:** a dictionary from token to id. The ids `0, 1, ...` go to the distinct tokens of all sentences in code-point order, and there are no special tokens.


# %% nbgrader={"solution": "build_vocab"}
def build_vocab(sentences):
    """The vocabulary of a list of sentences: distinct token -> id, ids 0, 1, ... in code-point
    order."""
    ### BEGIN SOLUTION
    tokens = {token for sentence in sentences for token in tokenize(sentence)}
    return {token: i for i, token in enumerate(sorted(tokens))}
    ### END SOLUTION


# %% nbgrader={"grade": "build_vocab"}
check(build_vocab)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# Collect the tokens of all sentences in something that holds each only once, and sort when you have them all.
#
# </details>
# <details><summary>Hint 2</summary>
#
# `enumerate` numbers the elements of a sequence from 0, and a dictionary comprehension can swap the two entries of each pair.
#
# </details>

# %% [markdown]
# ### Exercise 1.3 `encode`
#
# Difficulty 1 of 5 · Importance 3 of 5 · 4 minutes · 10 points
#
# - **Arguments:** `sentence`, a string with at least one token, and `vocab`, a dictionary as above.
# - **Returns:** LongTensor `(T,)`, the ids of the tokens in the order of the sentence.
# - If a token isn't in the vocabulary, raise a `KeyError` that names this token, and not the whole sentence.


# %% nbgrader={"solution": "encode"}
def encode(sentence, vocab):
    """Ids (T,), int64, of a sentence's tokens. A token not in `vocab`: KeyError with this token in
    it."""
    ### BEGIN SOLUTION
    return torch.tensor([vocab[token] for token in tokenize(sentence)])  # (T,)
    ### END SOLUTION


# %% nbgrader={"grade": "encode"}
check(encode)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# Look up each token. What does a dictionary do when a key is missing?
#
# </details>
# <details><summary>Hint 2</summary>
#
# `torch.tensor` makes a LongTensor out of a list of Python ints, whereas `torch.Tensor`, with a capital, makes floats.
#
# </details>
#
# To decode, we use the same dictionary with keys and values swapped. (The comma is lost, so the tokenizer of a model that writes text keeps punctuation as tokens.)

# %%
life = {"Life": 0, "dessert": 1, "eat": 2, "first": 3, "is": 4, "short": 5}
# or_finished(encode): your encode once its check has passed, else the finished block
ids = or_finished(encode)("Life is short, eat dessert first", life)  # (6,)
token_of = {i: token for token, i in life.items()}
print(ids.tolist(), " ".join(token_of[i] for i in ids.tolist()))

# %% [markdown]
# ## An id is not a quantity
#
# Our sentence is now a row of six integers, `0 4 5 2 1 3`. However, *short* isn't five more than *Life*, because ids are only names. We can therefore give every word an axis of its own. A **one-hot** vector is all zeros, with a single 1 at the word's id. Now all words are equally far from one another, at distance $\sqrt 2$. This removes the false order, but the vectors have no meaning yet.

# %% [markdown]
# ### Exercise 1.4 `one_hot`
#
# Difficulty 2 of 5 · Importance 3 of 5 · 5 minutes · 10 points
#
# - **Arguments:** `ids`, LongTensor `(...)` (a single id has shape `()`), and `vocab_size`, an int.
# - **Returns:** one-hot vectors, float32 `(..., V)`, with the new axis at the end. For example, ids of shape `(2, 5)` and 7 words give `(2, 5, 7)`.
# - **Forbidden:** `F.one_hot`, where `F` is `torch.nn.functional`.


# %% nbgrader={"solution": "one_hot"}
def one_hot(ids, vocab_size):
    """One-hot vectors: ids (...) int64 -> (..., V) float32, with 1 at each id and 0 elsewhere."""
    ### BEGIN SOLUTION
    return (ids[..., None] == torch.arange(vocab_size, device=ids.device)).float()  # (..., V)
    ### END SOLUTION


# %% nbgrader={"grade": "one_hot"}
check(one_hot)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# Compare each id with all ids of the vocabulary (the first warm-up question has the shapes), or use the identity matrix, because its rows are the one-hot vectors.
#
# </details>
# <details><summary>Hint 2</summary>
#
# `torch.arange(V)` makes all ids, and `torch.eye(V)` an identity matrix. A comparison gives booleans, but the specification asks for floats.
#
# </details>

# %% [markdown]
# ## One-hot times a matrix picks a row
#
# Now we put a vector for each word into a table with V rows and D columns. Take three words and two columns, and multiply a one-hot row by the table on paper:
#
# $$\begin{pmatrix}0 & 1 & 0\end{pmatrix}\begin{pmatrix}1 & 2\\ 3 & 4\\ 5 & 6\end{pmatrix}
# = \begin{pmatrix}0{\cdot}1 + 1{\cdot}3 + 0{\cdot}5 & \; 0{\cdot}2 + 1{\cdot}4 + 0{\cdot}6\end{pmatrix}
# = \begin{pmatrix}3 & 4\end{pmatrix}$$
#
# Every product outside one row has a factor of zero, so the multiplication **is** a row lookup.

# %%
figures.row_lookup(ids=[1, 2, 1], tokens=["eat", "short", "eat"])

# %% [markdown]
# We compute it as a lookup, because multiplying by zeros would be a waste. However, the multiplication tells us that the table is an ordinary weight matrix, which can be *learned*. We call its rows **token embeddings** and the table the **embedding matrix**.

# %% [markdown]
# ### Exercise 1.5 `embed`
#
# Difficulty 1 of 5 · Importance 5 of 5 · 4 minutes · 14 points
#
# Look up the row of each id, with the same result as `one_hot(ids, V) @ table`.
#
# - **Arguments:** `ids`, LongTensor `(...)`, and `table (V, D)`.
# - **Returns:** `(..., D)` in the table's dtype, such that the gradient reaches the table. For example, ids of shape `(2, 5)` and a table of shape `(7, 3)` give `(2, 5, 3)`.


# %% nbgrader={"solution": "embed"}
def embed(ids, table):
    """Embedding lookup: ids (...) int64, table (V, D) float -> (..., D), the table's dtype."""
    ### BEGIN SOLUTION
    return table[ids]  # (..., D)
    ### END SOLUTION


# %% nbgrader={"grade": "embed"}
check(embed)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# A single line is enough, because a tensor can be indexed with a LongTensor.
#
# </details>
# <details><summary>Hint 2</summary>
#
# If you index with a LongTensor of shape `(...)`, the result has the axes `(...)` instead of the first one.
#
# </details>
#
# In the explorer you can follow a sentence from words to rows in the course's translator. If you type a word twice, its two rows are identical, because a row depends on the id alone and not on the word's position or its neighbors. Lesson 2 fixes the first problem (position), and attention fixes the second (context).

# %%
explore.sentence()

# %% [markdown]
# ## The running sentence as six vectors
#
# PyTorch's `nn.Embedding(6, 16)` is such a table, with six rows and sixteen columns. Before training, its entries are drawn at random, which is called **initialization**. With the seed `123`, *Life is short, eat dessert first* becomes:

# %%
torch.manual_seed(123)
table = nn.Embedding(6, 16)
sentence = table(torch.tensor([0, 4, 5, 2, 1, 3])).detach()  # (6, 16): T = 6 tokens, D = 16
torch.set_printoptions(linewidth=100)
sentence[:2]  # (2, 16): Life, is

# %%
figures.sentence_vectors(sentence, ["Life", "is", "short", "eat", "dessert", "first"])

# %% [markdown]
# We'll use these six vectors again in lessons 3, 4 and 7, which compute the vector of *is* in its context.

# %% [markdown]
# ## Comparing vectors: dot product and cosine
#
# To compare two vectors, we take two arrows from the origin, $a = (3, 4)$ and $b = (5, 0)$, and imagine that $a$ casts a shadow on the line of $b$, at a right angle. The length of this shadow is the **projection** of a on b (negative beyond a right angle):
#
# $$\frac{a\cdot b}{\lVert b\rVert} = \frac{3\cdot 5 + 4\cdot 0}{5} = 3$$
#
# Three measures of similarity differ in how they treat lengths:
#
# | | formula | here | with b doubled |
# |---|---|---|---|
# | dot product | $a\cdot b=\sum_i a_i b_i$ | 15 | 30 |
# | projection of a on b | $a\cdot b\,/\,\lVert b\rVert$ | 3 | 3 |
# | cosine | $a\cdot b\,/\,(\lVert a\rVert\lVert b\rVert)$ | 15 / (5·5) = 0.6 | 0.6 |
#
# The dot product is the projection times the length of b. The **cosine similarity** depends on the directions only, and it lies between $-1$ (opposite) and $1$ (same direction). In the explorer you can rotate a and stretch it. *Find two settings with the same dot product but different cosines.*

# %%
explore.similarity()

# %% [markdown]
# <details><summary>Answer</summary>
#
# A length of $3$ at $0°$ and a length of $6$ at $60°$ have the same dot product, $15$, but cosines of $1$ and $0.5$.
#
# </details>

# %% [markdown]
# ### Exercise 1.6 `cosine_similarity`
#
# Difficulty 3 of 5 · Importance 4 of 5 · 15 minutes · 16 points
#
# Compare each row of a with each row of b:
#
# $$S_{ij} = \frac{a_i\cdot b_j}{\lVert a_i\rVert\,\lVert b_j\rVert}$$
#
# - **Arguments:** `a (N, D)` and `b (M, D)`, whose rows have a length from $0.001$ to $1000$, or are zero.
# - **Returns:** the cosines `(N, M)` of all pairs of rows. If a row is zero, all its cosines are 0, and the gradients contain no NaN.
# - To avoid dividing by zero you may clamp a length at `1e-8` or add that much to it. Don't add it to a *product* of two lengths or inside a square root, because short vectors would come out wrong.
# - **Forbidden:** `F.cosine_similarity`, `F.normalize`.


# %% nbgrader={"solution": "cosine_similarity"}
def cosine_similarity(a, b):
    """Cosines of all pairs of rows; a zero row gives 0.

    a (N, D), b (M, D), float32 or float64 -> (N, M), same dtype.
    """

    ### BEGIN SOLUTION
    def unit(x):
        length = x.norm(dim=-1, keepdim=True)  # (N, 1)
        return x / torch.where(length > 0, length, 1)

    return unit(a) @ unit(b).T  # (N, M)
    ### END SOLUTION


# %% nbgrader={"grade": "cosine_similarity"}
check(cosine_similarity)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# A matrix product gives the dot products of all pairs of rows at once. Divide each row by its own length first, or each entry by the right two lengths afterwards.
#
# </details>
# <details><summary>Hint 2</summary>
#
# Use `norm` along the last dimension with `keepdim=True`, and for a zero row choose a divisor that leaves the row at zero.
#
# </details>
#
# Do the two measures agree on which vector is most similar? We take a query $q = (1, 0)$ and two candidates, $b_1 = (1, 0)$ and $b_2 = (3, 3)$. The dot products are $1$ and $3$, so $b_2$ wins, but the cosines are $1$ and $0.71$, so $b_1$ wins. The two measures agree on the order whenever all candidates have the same length, whereas the length of q doesn't matter. Here you see both for the six vectors of our sentence:

# %%
figures.dot_and_cosine(sentence, ["Life", "is", "short", "eat", "dessert", "first"])

# %% [markdown]
# Attention uses the plain dot product, as we'll see in lesson 3, so there the length of a vector counts as well.

# %% [markdown]
# ## Similar words get similar vectors
#
# How can we get meaning into the table? J. R. Firth had the idea in 1957: *You shall know a word by the company it keeps.* Words that occur with the same neighbors are similar.
#
# **word2vec** (Mikolov et al., 2013) turns this into a training task. It takes pairs of neighboring words from a text (here at most two positions apart, `window=2`), the **positive pairs**, and for each of them it draws a few words at random, the **negative samples**. Training pulls the two vectors of a positive pair together, which increases their dot product, and pushes a word and a negative sample apart. (You'll find the loss and its gradient under *Going further*.)
#
# Our training text has three hundred sentences from a small grammar. Each is about one of fifteen nouns (five places, five foods, five animals), so *cat* and *dog* never appear in the same sentence.

# %%
sentences = corpus.company_sentences(300, random.Random(1))
words, sentence_ids = corpus.index_words(sentences)
pairs = word2vec.all_pairs(sentence_ids, window=2)  # (N, 2): every positive pair
print(f"{len(words)} words, {len(pairs)} positive pairs, in sentences such as", *sentences[:4], sep="\n")

# %%
history = word2vec.train(sentence_ids, len(words), torch.Generator().manual_seed(1))
trained = history.centers[-1]  # (V, D) = (42, 16): the word vectors at the end of training
figures.before_and_after(history, words)

# %% [markdown]
# Each dot shows the direction of a word vector, projected on the plane in which the trained words differ most. Before training the directions are random, whereas afterwards places, foods and animals form three clusters, and the mean cosine within a group also rises, from about 0 to 0.98.

# %% [markdown]
# ### Exercise 1.7 `fixed_neighbors`
#
# **Find the bug** · Difficulty 3 of 5 · Importance 3 of 5 · 8 minutes · 12 points
#
# The function in the next cell is meant to find the nearest neighbors of every word in the table that we've just trained. It runs, but one line doesn't do what its comment says. Find this line and write a correct version of the function.
#
# - **Arguments:** `table (V, D)` without zero rows, and `k`, an int with k < V.
# - **Returns:** LongTensor `(V, k)`: for each row the ids of the k *other* rows with the largest cosine, best first. Two different words may have the same row.


# %%
def buggy_neighbors(table, k):
    unit = table / table.norm()  # (V, D): every row gets length 1
    similarity = unit @ unit.T  # (V, V): cosines
    similarity.fill_diagonal_(-math.inf)  # a word isn't a neighbor of itself
    return similarity.topk(k).indices  # (V, k)


some = [words.index(word) for word in ("africa", "dessert", "cat")]
for word, row in zip(some, buggy_neighbors(trained, 3)[some].tolist(), strict=True):
    print(f"{words[word]:8} is near", [words[i] for i in row])


# %% nbgrader={"solution": "fixed_neighbors"}
def fixed_neighbors(table, k):
    """For each row of table (V, D): ids (V, k) of the k other rows with the largest cosine, best
    first."""
    ### BEGIN SOLUTION
    unit = table / table.norm(dim=-1, keepdim=True)  # (V, D)
    similarity = unit @ unit.T  # (V, V)
    similarity.fill_diagonal_(-math.inf)
    return similarity.topk(k).indices  # (V, k)
    ### END SOLUTION


# %% nbgrader={"grade": "fixed_neighbors"}
check(fixed_neighbors)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# Print the lengths of the rows of `unit`, and compare them with the comment.
#
# </details>
# <details><summary>Hint 2</summary>
#
# The norm of a whole matrix is a single number, so which arguments choose the axis of a reduction and keep it for the division?
#
# </details>

# %%
near = or_finished(fixed_neighbors)(trained, 3)  # (V, 3)
for word in some:
    print(f"{words[word]:8} is near", [words[i] for i in near[word].tolist()])
hub = words.index("by")
for name, found in (("fixed", near), ("buggy", buggy_neighbors(trained, 3))):
    print(f"{name}: by is among the neighbors of {int((found == hub).sum())} words")
print(f"length of by: {trained[hub].norm():.1f}, of africa: {trained[some[0]].norm():.1f}")

# %% [markdown]
# With the fixed function, each of the fifteen nouns has a noun of its own group as its nearest neighbor. With the buggy one, only four do, and *by* turns up as a neighbor of twelve words, because it has a long vector and therefore large dot products.
#
# However, *near* only means "interchangeable in these sentences", so *hot* and *cold* would be near as well. Moreover, the *bank* of the river and the *bank* with the money have the same row. Attention will change that.

# %% [markdown]
# ## Words that are not in the vocabulary
#
# Your `encode` stops at a word that it doesn't know, but there are always new names, endings and typos. A single `[UNK]` token for all of them would make *desserts* as unknown as *xqzt*. Real models therefore use **subwords**, that is, whole words for what is frequent and pieces for the rest. In BERT's **WordPiece** vocabulary, a piece that continues a word is written with `##`:

# %%
pieces = ["apples", "pine ##apple ##s", "un ##for ##get ##table", "un ##ha ##pp ##iness"]
figures.word_pieces({"".join(cut.split()).replace("##", ""): cut.split() for cut in pieces})

# %% [markdown]
# You split a word greedily, which means that you take the longest piece that the word begins with, then the longest piece that the rest begins with, and so on. (You can write WordPiece yourself under *Going further*.) Most models of today use **byte-pair encoding** instead, which you can train under *Going further* in lesson 14.

# %% [markdown]
# ## At work
#
# Now your functions run in the course's translator. We also use your `cosine_similarity` to find the nearest neighbors in the table that the translator learned.

# %%
at_work(encode, embed, cosine_similarity)

# %% [markdown]
# Some neighbors are what you would guess, for example *germany* and *asia* for *africa*, whereas near *visits* we find *peru* and *canada*, because these embeddings were trained for translation and not to predict neighboring words.
#
# Now let's put a bug into the translator. It comes from min-char-rnn, a well-known language model in a hundred lines, which numbers its characters by `list(set(data))`. The order of a `set` of strings changes from one run of Python to the next, so a program that loads yesterday's table today looks up the wrong rows.

# %%
today = torch.randperm(len(translator.english), generator=torch.Generator().manual_seed(0))  # (166,)


def shuffled_embed(ids, table):
    return table[today[ids]] if len(table) == len(today) else table[ids]  # (..., D), the wrong English rows


at_work(embed=shuffled_embed)

# %% [markdown]
# Nothing raises an error, but the bug destroys the translation, with $9.25$ nats per word instead of $0.00016$ and not a single correct sentence.

# %% [markdown]
# ### Quiz 1.1
#
# Why are the vectors of *cat* and *dog* close, although the two never occur in the same sentence of our text?
#
# - **a** Their ids are close to each other in the vocabulary, so their rows are similar.
# - **b** The positive pairs of word2vec pull *cat* directly toward *dog*.
# - **c** Both words name animals, and the vectors start from the meaning.
# - **d** Both of them are pulled toward the vectors of the same neighbors.

# %% nbgrader={"solution": "quiz_1"}
quiz_1 = None  # "a", "b", "c" or "d"
### BEGIN SOLUTION
quiz_1 = "d"
### END SOLUTION

# %% nbgrader={"grade": "quiz_1"}
check(quiz_1=quiz_1)

# %% [markdown]
# ### Quiz 1.2
#
# BERT's vocabulary contains `un`, `una`, `##ffa`, `##ble` and many more pieces, but no prefix of *unaffable* longer than `una`. How is *unaffable* split?
#
# - **a** una ##ffa ##ble
# - **b** un ##affable
# - **c** [UNK]

# %% nbgrader={"solution": "quiz_2"}
quiz_2 = None  # "a", "b" or "c"
### BEGIN SOLUTION
quiz_2 = "a"
### END SOLUTION

# %% nbgrader={"grade": "quiz_2"}
check(quiz_2=quiz_2)

# %% [markdown]
# ## Written question
#
# *15 points, graded by hand, 10 minutes, six to ten sentences.*
#
# A notebook on self-attention says: "Interestingly, the dot product of current token query and some other token key is a cosine similarity! So, it's going to attend to tokens which have similar keys …" Judge this sentence. (Query and key are the two vectors that attention compares.)
#
# 1. Under what condition is it true, and when do dot product and cosine at least agree on the *order* of the candidates?
# 2. Give one vector a and two candidates in the plane, other than those of this lesson, for which they disagree. Show all four values.
# 3. A search engine ranks by dot product, and some vectors are much longer than the others. What does this do to its results, and in which case would you want it?

# %% [markdown] nbgrader={"written": "written_1"}
# <details><summary>Model answer and marking scheme</summary>
#
# **Model answer.** First: a·b = ‖a‖‖b‖ cos, so the two numbers are equal exactly when ‖a‖‖b‖ = 1 (or the vectors are at right angles), for example when all vectors have length 1. For one fixed query the factor ‖a‖ is the same for all candidates, so the order agrees as soon as all candidates have equal length; the query's own length doesn't matter. In general neither holds, so the sentence is wrong, because queries and keys aren't normalized.
#
# Second: for example a = (0, 2), b₁ = (0, 1), b₂ = (4, 3). The dot products are 2 and 6, so b₂ wins. The cosines are 1 and 0.6, so b₁ wins.
#
# Third: long vectors have large dot products with many queries, so a few of them turn up in many results (hubs), whether they are similar or not; in the lesson *by* was such a hub. That is welcome if length carries something useful, for example popularity in a shop's search.
#
# **Marking scheme (15).** First part: equal only for lengths of product 1 (2), same order if the candidates have equal length (2), the query's length is irrelevant for the order or the sentence is clearly judged wrong in general (1). Second: a valid example (3) with four right numbers (2). Third: long vectors win against many queries (2), names hubs or another consequence for the results (2), one case where length is wanted (1).
#
# </details>

# %% [markdown]
# ## Recap
#
# - A vocabulary with a fixed order turns tokens into ids.
# - An id is only a name, so one-hot gives each name an axis. One-hot times a table **is** a row lookup, and the table is learned.
# - The dot product is projection times length, whereas the cosine depends on directions only. They agree on the order if all candidates have the same length.
# - Training on neighboring words brings words with the same neighbors close together.
# - Real models split rare words into subwords.
#
# **Next:** your rows of *jane visits africa* and *africa visits jane* are still the same, so in [lesson 2](../02_position/02_position.ipynb) we tell every token its position.

# %% [markdown]
# ## Going further

# %% [markdown]
# ### A vocabulary in one line
#
# **Predict before you run the cell:** many programs build their vocabulary in one line, as below. *Which ids does the second sentence get, and how many rows does its table need?*


# %%
def one_line(sentence):
    return {s: i for i, s in enumerate(sorted(sentence.replace(",", "").split()))}


print(one_line("Life is short, eat dessert first"))
print(one_line("the cat saw the dog"))

# %% [markdown]
# <details><summary>Answer</summary>
#
# In the second sentence the sorted list is *cat dog saw the the*, so *the* takes the ids 3 and 4 and keeps the last one. There are only four distinct tokens, but the table needs five rows, because with four, looking up row `4` raises an `IndexError`.
#
# </details>

# %% [markdown]
# ### The gradients of word2vec
#
# Let's make precise how word2vec works. The word in the middle of a window is the **center** c, and each word at most `window` positions away is a **context** word o. For every positive pair (c, o) we draw K negative samples $n_1, \ldots, n_K$ (five in our training) from the text, frequent words more often. Each word has two vectors, one as a center and one as a context. We read the sigmoid of a dot product as *the probability that this pair is a positive one*, where $\sigma(x) = 1/(1 + e^{-x})$ (in PyTorch `torch.sigmoid(x)`). The loss says how surprised the model is by the true answers:
#
# $$L = -\log\sigma(c\cdot o)\;-\;\sum_{k=1}^{K}\log\sigma(-c\cdot n_k)$$

# %%
figures.surprise()

# %% [markdown]
# How does the loss change if we move c? The derivative of $-\log\sigma(x)$ is $\sigma(x) - 1$, and the derivative of $-\log\sigma(-x)$ is $\sigma(x)$. The size of the first says how far the probability is below 1, and the second says how far it is above 0 (Figure 1.6, right). If we step against the gradient, we therefore move by K + 1 terms:
#
# $$-\frac{\partial L}{\partial c} \;=\; \underbrace{\bigl(1-\sigma(c\cdot o)\bigr)\,o}_{\text{pull along the context}}
# \;-\;\sum_k \underbrace{\sigma(c\cdot n_k)\,n_k}_{\text{push against a negative sample}}$$
#
# Let's do it on paper, in two dimensions, with $c = (1, 0)$, $o = (0, 2)$ and one negative sample $n = (2, 0)$. We get $c\cdot o = 0$ and $\sigma(0) = 0.5$, so the pull is $(0, 1)$. And $c\cdot n = 2$ with $\sigma(2) = 0.881$, so the push is $(-1.762, 0)$. Let's see if autograd agrees:

# %%
c = torch.tensor([1.0, 0.0], requires_grad=True)  # (2,)
o, n = torch.tensor([0.0, 2.0]), torch.tensor([2.0, 0.0])  # (2,), (2,)
loss = -F.logsigmoid(c @ o) - F.logsigmoid(-(c @ n))  # scalar
loss.backward()
print("step against the gradient:", -c.grad)

# %%
figures.negative_sampling_gradients()

# %% [markdown]
# On the left, the arrows point along the line from the origin to the context, and against the lines from the origin to the negative samples. On the right the same two forces teach a network to recognize people by their voice (GE2E, Wan et al., 2018). A recording is pulled toward the *centroid* ★, the mean, of its own speaker's other recordings and pushed away from the other speakers' centroids. There the candidates compete in one softmax, as the keys do in attention.

# %% [markdown]
# ### Exercise 1.8 `negative_sampling_gradients`
#
# **Extra** · Difficulty 3 of 5 · Importance 4 of 5 · 25 minutes · 12 bonus points
#
# Now you can write the core of word2vec, that is, the gradients of the loss above for one pair with respect to all three inputs:
#
# $$\frac{\partial L}{\partial c},\qquad \frac{\partial L}{\partial o},\qquad \frac{\partial L}{\partial n_k}\ \text{for each } k$$
#
# - **Arguments:** `center (D,)`, `context (D,)`, `negatives (K, D)`, K ≥ 1.
# - **Returns:** the tuple `(d_center, d_context, d_negatives)`, with the shapes of the inputs. These are gradients, that is, the negatives of pull and push. In the example above they are $(1.762, -1)$, $(-0.5, 0)$ and $(0.881, 0)$.
# - It must be right for dot products of ±100, even in float32, but it needn't be differentiable itself.
# - **Forbidden:** autograd in every form (`torch.sigmoid` is allowed).


# %% nbgrader={"solution": "negative_sampling_gradients"}
def negative_sampling_gradients(center, context, negatives):
    """Gradients of one pair's skip-gram loss with negative sampling at its three inputs, in their
    shapes.

    center (D,), context (D,), negatives (K, D), float32 or float64 -> a tuple (D,), (D,), (K, D),
    same dtype.
    """
    ### BEGIN SOLUTION
    lack = torch.sigmoid(center @ context) - 1  # scalar, below 0
    excess = torch.sigmoid(negatives @ center)  # (K,)
    d_center = lack * context + excess @ negatives  # (D,)
    return d_center, lack * center, excess[:, None] * center  # (D,), (D,), (K, D)
    ### END SOLUTION


# %% nbgrader={"grade": "negative_sampling_gradients"}
check(negative_sampling_gradients)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# Each pair enters the loss through one number, its dot product. Find the derivative of the loss with respect to these K + 1 numbers first. Then ask how a dot product changes with one of its two vectors.
#
# </details>
# <details><summary>Hint 2</summary>
#
# The center occurs in all K + 1 dot products, so its gradient is a sum of K + 1 terms. The context and each negative sample occur in one. For the negative samples, broadcast a (K, 1) column of derivatives against the (D,) center vector.
#
# </details>
#
# **Predict before you run the cell.** The training loop walks through the pairs once, in random order, and moves the vectors of each pair against your gradients. *What happens to the words with the pull alone, and what happens with the push alone?*


# %%
gradients = or_finished(negative_sampling_gradients)


def only_pull(center, context, negatives):
    d_center, d_context, d_negatives = gradients(center, context, 0 * negatives)
    return d_center, d_context, 0 * d_negatives


def only_push(center, context, negatives):
    d_center, d_context, d_negatives = gradients(center, 0 * context, negatives)
    return d_center, 0 * d_context, d_negatives


tried = {"both": word2vec.train(sentence_ids, len(words), torch.Generator().manual_seed(1), gradients)}
for name, part in (("only the pull", only_pull), ("only the push", only_push)):
    tried[name] = word2vec.train(sentence_ids, len(words), torch.Generator().manual_seed(1), part)
figures.each_part_alone(tried, pairs)

# %% [markdown]
# With the pull alone, nothing ever lowers a dot product. Positive pairs get a probability of 0.95, but even a random pair gets 0.79. With the push alone, you might expect the vectors to scatter, but they don't. The center vectors and the context vectors form two clusters on opposite sides, because that makes every dot product negative. It takes both to tell positive pairs from negative ones. The pull alone does sort the words, but less well, and only twelve of the fifteen nouns have a nearest neighbor of their own group.
#
# The explorer shows how the words move under pull and push together. The curve of different groups rises before it falls, because after 600 pairs *all* word vectors point in nearly the same direction. *Can you explain that?* Drag through the training, think, and then unfold the answer.

# %%
explore.training(history, words)

# %% [markdown]
# <details><summary>Answer</summary>
#
# Five of six pairs are negative, so the fastest way to lower the loss is to call every pair negative. To do so, all center vectors move to one side, and all context vectors to the other. The model then calls the positive pairs unlikely as well, so their gradients become large and separate words that have different neighbors.
#
# </details>

# %% [markdown]
# ### Exercise 1.9 `skipgram_pairs`
#
# **Extra** · Difficulty 2 of 5 · Importance 2 of 5 · 8 minutes · 8 bonus points
#
# So far you have used the course's list of positive pairs. The figure shows how it's made:

# %%
figures.windows("jane visits africa by train".split(), window=2)

# %% [markdown]
# - **Arguments:** `ids`, a list or a LongTensor, and `window`, an int.
# - **Returns:** a list of tuples `(center, context)` of Python ints, ordered by center position, then by context position. For example, `skipgram_pairs([7, 8, 9], 1)` gives `[(7, 8), (8, 7), (8, 9), (9, 8)]`.
# - A context is at most `window` positions away, on either side. A position is never its own context, but another position with the same id can be. A window of 0 gives `[]`.


# %% nbgrader={"solution": "skipgram_pairs"}
def skipgram_pairs(ids, window):
    """Positive pairs of word2vec, as (center, context) tuples of Python ints; ids: a list or LongTensor
    (T,)."""
    ### BEGIN SOLUTION
    ids = [int(i) for i in ids]
    pairs = []
    for t, center in enumerate(ids):
        for s in range(max(0, t - window), min(len(ids), t + window + 1)):
            if s != t:
                pairs.append((center, ids[s]))
    return pairs
    ### END SOLUTION


# %% nbgrader={"grade": "skipgram_pairs"}
check(skipgram_pairs)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# Use two loops over positions and not over words, because the same word may occur twice.
#
# </details>
# <details><summary>Hint 2</summary>
#
# Where does the window begin and end near the edges of the sentence? Remember that `range` excludes its end, and that a negative index counts from the back.
#
# </details>
#
# Let's run your function on the whole text, sentence by sentence:

# %%
experiments.compare_pairs(skipgram_pairs, sentence_ids, 2)

# %% [markdown]
# ### Exercise 1.10 `negative_sampling_loss`
#
# **Extra** · Difficulty 3 of 5 · Importance 3 of 5 · 10 minutes · 10 bonus points
#
# Write the loss whose gradients you computed, for a whole batch:
#
# $$\frac1B\sum_{b}\Bigl[-\log\sigma(c_b\cdot o_b)-\sum_{k}\log\sigma(-c_b\cdot n_{bk})\Bigr]$$
#
# - **Arguments:** `center (B, D)`, `context (B, D)`, `negatives (B, K, D)`, K ≥ 1.
# - **Returns:** `scalar`, exact and with exact gradients also for dot products of ±100. In float32 $\sigma(-100)$ rounds to $0$ and its logarithm to $-\infty$, but the loss of such a pair is a plain $100$ or (almost) $0$.


# %% nbgrader={"solution": "negative_sampling_loss"}
def negative_sampling_loss(center, context, negatives):
    """Loss of skip-gram with negative sampling, eq. 4 of Mikolov et al. (2013), negated; mean over
    the batch.

    center (B, D), context (B, D), negatives (B, K, D), float32 or float64 -> scalar, same dtype.
    """
    ### BEGIN SOLUTION
    good = (center * context).sum(-1)  # (B,)
    bad = (negatives * center[:, None]).sum(-1)  # (B, K)
    return -(F.logsigmoid(good) + F.logsigmoid(-bad).sum(-1)).mean()
    ### END SOLUTION


# %% nbgrader={"grade": "negative_sampling_loss"}
check(negative_sampling_loss)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# First compute all dot products, `(B,)` for the contexts and `(B, K)` for the negative samples, and be careful with dimensions of size 1.
#
# </details>
# <details><summary>Hint 2</summary>
#
# Take the logarithm and the sigmoid in one step. PyTorch has such a function, or you can write −log σ(x) as log(1 + e^(−x)) and think about large |x|.
#
# </details>
#
# The training above never computed a loss, because it only needs the gradients. Now let's see what the loss was along the way. *At the start all context vectors are zero, so each of the six pairs gets a probability of one half. What is the loss there?*

# %%
experiments.loss_during_training(negative_sampling_loss, history, pairs)

# %% [markdown]
# <details><summary>Answer</summary>
#
# It is six times $\ln 2 = 0.693$, that is, $4.159$. It falls to 1.77 here but not to 0, because negative samples are drawn from the same text, and three of ten are neighbors of that very word in some sentence.
#
# </details>

# %% [markdown]
# ### Exercise 1.11 `wordpiece`
#
# **Extra** · Difficulty 3 of 5 · Importance 3 of 5 · 12 minutes · 10 bonus points
#
# Why is *unhappiness* split into `un ##ha ##pp ##iness` and not into *un* and *happiness*? We can find out if we ask the vocabulary:

# %%
known = pretrained.wordpiece_vocab()  # all 30,522 pieces where the model is at hand, else some
for piece in ["apples", "##apple", "happiness", "##happiness", "dessert", "desserts", "##s"]:
    print(f"{piece:>12}  {'in the vocabulary' if piece in known else '-'}")

# %% [markdown]
# `happiness` is in the vocabulary, but `##happiness`, the piece that could *continue* a word, is not. Now you can write the greedy split, longest match first.
#
# - **Arguments:** `word`, a nonempty string; `vocab`, a set or a dictionary; `unk`, a string.
# - **Returns:** the pieces, a list of strings. The first piece is looked up as it is, each later one with `##` in front.
# - It never goes back, so if no piece fits, the answer is `[unk]`, even if another split would have worked.
# - Words may be of any length, and the case is kept.
#
# By hand, with `{"un", "##aff", "##affable", "##able"}`, *unaffable* gives `["un", "##affable"]`. If you remove `##affable`, the longest piece after `un` is `##aff`, and then `##able`.


# %% nbgrader={"solution": "wordpiece"}
def wordpiece(word, vocab, unk="[UNK]"):
    """Greedy longest-match-first pieces of a word, as in BERT; [unk] if the split gets stuck.

    word: a string, not empty. vocab: a set or a dictionary. Returns a list of strings.
    """
    ### BEGIN SOLUTION
    pieces, start = [], 0
    while start < len(word):
        for end in range(len(word), start, -1):
            piece = ("##" if start else "") + word[start:end]
            if piece in vocab:
                break
        else:
            return [unk]
        pieces.append(piece)
        start = end
    return pieces
    ### END SOLUTION


# %% nbgrader={"grade": "wordpiece"}
check(wordpiece)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# Keep an index to the start of the unprocessed part of the word. From there, try the longest substring first, then shorten it one letter at a time. Decide what to do if not even one letter fits.
#
# </details>
# <details><summary>Hint 2</summary>
#
# Use two loops, one inside the other. The outer one runs until nothing of the word is left, and the inner one shortens the substring. Python's `for` can have an `else`, which runs if the loop ended without `break`.
#
# </details>
#
# You can now try your function on words of your choice:

# %%
experiments.word_pieces(wordpiece, known, "unforgettable", "pineapples", "translators", "dessertspoon")

# %% [markdown]
# The tokenizer of the *uncased* BERT does a little more. It first converts the text to lower case, removes accents, and makes every punctuation mark a token. It then splits each word as above and adds two special tokens, so *Life is short, eat dessert first* becomes `[CLS] life is short , eat dessert first [SEP]`.

# %% [markdown]
# ### How stable are these numbers?
#
# | statement | seed 1 (shown) | seed 2 | seed 3 |
# |---|---|---|---|
# | nouns with their own group nearest, fixed function | 15 of 15 | 15 | 15 |
# | the same, buggy function | 4 | 0 | 0 |
# | probability of a positive pair, pull alone | 0.95 | 0.95 | 0.94 |
# | probability of a random pair, pull alone | 0.79 | 0.82 | 0.77 |
# | nouns with their own group nearest, pull alone | 12 | 14 | 12 |
# | two opposite clusters, push alone | yes | yes | yes |
#
# The collapse onto one direction happens in all three runs. With a single negative sample per positive pair it doesn't happen.
#
# The wrong search of exercise 1.7 doesn't change the translation, because nothing in the network searches for neighbors. It changes the nearest neighbor of nearly all words of our table ($37$ of $42$), but only of a quarter in the translator's ($41$ of $165$). Our vectors vary twice as much in length, and they are packed closer together. A typical word's best and second-best cosine are $0.99$ and $0.98$ here, and $0.46$ and $0.43$ in the translator. A small difference in length is then enough to change the ranking.

# %% [markdown]
# ## Further reading
#
# - Mikolov et al., [Distributed Representations of Words and Phrases and their
#   Compositionality](https://arxiv.org/abs/1310.4546) (2013) (negative sampling, in section 2.2).
# - Wan et al., [Generalized End-to-End Loss for Speaker Verification](https://arxiv.org/abs/1710.10467) (2018) (centroids).
# - Devlin et al., [BERT](https://arxiv.org/abs/1810.04805) (2019), and Wu et al.,
#   [Google's Neural Machine Translation System](https://arxiv.org/abs/1609.08144) (2016), section 4.1 (WordPiece).
# - Sennrich, Haddow and Birch, [Neural Machine Translation of Rare Words with Subword
#   Units](https://arxiv.org/abs/1508.07909) (2016) on byte-pair encoding.
# - Andrej Karpathy, [min-char-rnn.py](https://gist.github.com/karpathy/d4dee566867f8291f086), the hundred lines with
#   `list(set(data))`.
# - Sebastian Raschka, [Understanding and Coding the Self-Attention Mechanism from
#   Scratch](https://sebastianraschka.com/blog/2023/self-attention-from-scratch.html), the walk-through whose six vectors
#   you have seen.
# - Pascal Poupart, [CS480/680 Lecture 19: Attention and Transformer
#   Networks](https://www.youtube.com/watch?v=OyFJWRnt_AY).
