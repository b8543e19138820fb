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
# **Goal:** turn a sentence into numbers that a network can compute with, and see how words that keep the same company
# come to lie close together.
#
# **Time:** about 75 minutes for the core, 30 more for the extras.
#
# ## You need
#
# [Lesson 0](../00_start_here/00_start_here.ipynb): shapes, broadcasting, dtype, gradients, and how the check talks.
# Two questions from there, to warm up:
#
# <details><summary>A tensor of shape (5, 1) is compared with one of shape (7,). What shape has the answer?</summary>
#
# (5, 7). Shapes are lined up from the right; a missing or single dimension is repeated. Each of the 5 meets each of
# the 7.
# </details>
#
# <details><summary>f(x) = x₁² + x₂², at x = (1, 2). What is the gradient, and what does it say?</summary>
#
# (2, 4): move x₂ a little and f grows four times as much. Training walks against the gradient.
# </details>
#
# <details><summary>Conventions (the same in every lesson)</summary>
#
# - Shapes: `B` batch, `H` heads, `T` tokens (`T_q` queries, `T_k` keys), `D` model width, `d_k`, `d_v` head widths,
#   `V` vocabulary. `...` stands for any leading dimensions, none included.
# - Weights follow `nn.Linear`: `W` is `(out, in)` and a projection is `x @ W.T`.
# - Masks are boolean, **True = may attend**.
# - Unless an exercise says otherwise an answer: accepts any `...` (Q and K, or all inputs, share the same ones); accepts
#   float32 and float64 and keeps the dtype; leaves its inputs unchanged; is differentiable; gives no NaN in values (in
#   gradients too where the exercise says so).
# - Equal means within 1e-5 (relative plus absolute) in float32 and 1e-7 in float64.
# - `scalar` is a 0-dim differentiable tensor, `float` and `int` are Python numbers. What is made from no float input
#   (`one_hot`, ...) is float32. Ids are valid ids unless an exercise says otherwise.
# - *Forbidden* lists library calls that would be the whole answer, under any alias or import name and in every form
#   (function, tensor method, `nn` module that wraps it). Using one gets no points and a message that names the call. A
#   learner's own helper of the same name is theirs, and a name in a comment is no call.
# </details>

# %% tags=["setup"]

# %%
import math
import random
import torch
from torch import nn
import torch.nn.functional as F
from helpers import check, corpus, pretrained, word2vec
from helpers.figures import token_embedding as figures
from helpers.explore import token_embedding as explore

# %% [markdown]
# ## A sentence is a list of tokens
#
# A network adds and multiplies. *Life is short, eat dessert first* can be neither added nor multiplied. So the first
# step is to cut it into pieces, **tokens**, and to give each kind of piece a number, its **id**.
#
# The simplest cut: throw the punctuation away and split at white space. That loses something (the comma), and it is good
# enough to start with. At the end of this lesson you meet the cut that real models use.
#
# ## Exercise 1.1 `tokenize`
#
# Difficulty ●○○○○ · importance ●●○○○ · 5 minutes · 10 points
#
# `tokenize(sentence) -> list[str]`
#
# - Delete the characters `, . ! ? ; :`. Deleted is not replaced: `3.14` gives `314`, and a mark that stands alone leaves
#   no token.
# - Split on white space: spaces, tabs, line ends, one or many.
# - Keep the case, and keep every other character.
#
# `"Life is short, eat dessert first"` gives `["Life", "is", "short", "eat", "dessert", "first"]`.


# %% nbgrader={"solution": "tokenize"}
def tokenize(sentence):
    """Tokens of a sentence: the marks , . ! ? ; : deleted, then split on white space. Returns a list of strings."""
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
# Two steps, in this order: marks first, then white space. Strings have a method for each.
# </details>
#
# <details><summary>Hint 2</summary>
#
# `"a-b".replace("-", "")` gives `"ab"`. And a `split` that is told nothing treats any run of white space as one gap.
# </details>

# %% [markdown]
# ## A vocabulary gives each token a number
#
# Collect the distinct tokens, put them in order, count from 0. For the running sentence:
#
# | token | Life | dessert | eat | first | is | short |
# |---|---|---|---|---|---|---|
# | id | 0 | 1 | 2 | 3 | 4 | 5 |
#
# Why is `Life` first? Strings are compared by **code point**, and all capitals (A is 65) come before all small letters
# (a is 97). Any order would do, as long as it is always the same one: an id is the number of a row in a table, and
# yesterday's table must fit today's ids. (Python's `set` has no such order. Programs that number a set as it comes get
# other ids in every run, and a saved model that talks nonsense.)
#
# ## Exercise 1.2 `build_vocab`
#
# Difficulty ●●○○○ · importance ●●●○○ · 8 minutes · 12 points
#
# `build_vocab(sentences) -> dict[str, int]`
#
# Takes a list of sentences and cuts them with your `tokenize`. The ids 0, 1, ... go to the distinct tokens of all
# sentences in code-point order. No special tokens are added.


# %% nbgrader={"solution": "build_vocab"}
def build_vocab(sentences):
    """The vocabulary of a list of sentences: distinct token -> id, ids 0, 1, ... in code-point order."""
    ### BEGIN SOLUTION
    tokens = {token for sentence in sentences for token in tokenize(sentence)}
    return {token: i for i, token in enumerate(sorted(tokens))}
    ### END SOLUTION


# %% nbgrader={"grade": "build_vocab"}
check(build_vocab)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# Collect the tokens of all sentences in something that holds each one only once. Sort when you have them all.
# </details>
#
# <details><summary>Hint 2</summary>
#
# `enumerate` counts from 0 along anything. A dictionary comprehension turns its pairs around.
# </details>

# %% [markdown]
# ## Exercise 1.3 `encode`
#
# Difficulty ●○○○○ · importance ●●●○○ · 5 minutes · 10 points
#
# `encode(sentence, vocab) -> LongTensor (T,)`
#
# The ids of the sentence's tokens, in the sentence's order. The sentence has at least one token. A token that is not in
# the vocabulary raises a `KeyError` that names the token: better a clear stop than a silent guess.


# %% nbgrader={"solution": "encode"}
def encode(sentence, vocab):
    """Ids (T,) of a sentence's tokens, dtype int64. KeyError, with the token in it, for a token not in `vocab`."""
    ### BEGIN SOLUTION
    return torch.tensor([vocab[token] for token in tokenize(sentence)])  # (T,)
    ### END SOLUTION


# %% nbgrader={"grade": "encode"}
check(encode)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# Look each token up. What does a dictionary do by itself when a key is missing?
# </details>
#
# <details><summary>Hint 2</summary>
#
# `torch.tensor` makes whole numbers out of a list of Python ints. `torch.Tensor`, with a capital, makes floats.
# </details>

# %% [markdown]
# ## Predict before you run
#
# One of this course's sources builds its vocabulary in one line. Here it is, on its own sentence and on one of ours.
# *Before you run the cell: which ids will the second sentence get, and how many rows does its table need?*


# %%
def one_line(sentence):
    return {s: i for i, s in enumerate(sorted(sentence.replace(",", "").split()))}


print(one_line("Life is short, eat dessert first"))
print(one_line("the cat saw the dog"))

# %% [markdown]
# <details><summary>What happened</summary>
#
# The first line is the source's own result: Life 0, dessert 1, eat 2, first 3, is 4, short 5. In the second, *the* stands
# twice in the sorted list, takes the numbers 3 and 4, and keeps the last. Four distinct tokens, but the largest id is 4:
# a table with four rows has no row 4. The line is right for every sentence that repeats no word, and an `IndexError`
# (or a wasted row) for every other one.
# </details>
#
# The sentence itself is now six numbers: `[0, 4, 5, 2, 1, 3]`.
#
# ## An id is not a quantity
#
# *short* is 5 and *Life* is 0. Is *short* five more than *Life*? Is *eat* (2) the middle of *dessert* (1) and *first*
# (3)? Of course not: the numbers are names. If we fed them into a network as numbers, it would have to unlearn an order
# that means nothing.
#
# So give every word an axis of its own. A **one-hot** vector is all zeros, with a single 1 at the word's id:
#
# $$\text{one\_hot}(i)_v = \begin{cases}1 & v = i\\ 0 & \text{otherwise}\end{cases}$$
#
# All words are now equally far from one another, at distance √2. No false order is left, and no meaning yet either.
#
# ## Exercise 1.4 `one_hot`
#
# Difficulty ●●○○○ · importance ●●●○○ · 8 minutes · 10 points
#
# `one_hot(ids, vocab_size) -> (..., V)` float32, from ids of any shape `(...)`
#
# The new axis comes last. `ids` of shape `(2, 5)` and 7 words give `(2, 5, 7)`; a single id of shape `()` gives `(7,)`.
#
# Forbidden: `F.one_hot`.


# %% nbgrader={"solution": "one_hot"}
def one_hot(ids, vocab_size):
    """One-hot vectors: ids (...) int64 -> (..., V) float32, with 1 at each id and 0 elsewhere."""
    ### BEGIN SOLUTION
    return (ids[..., None] == torch.arange(vocab_size)).float()  # (..., V)
    ### END SOLUTION


# %% nbgrader={"grade": "one_hot"}
check(one_hot)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# There are several good ways. One: each id asks every number from 0 to V − 1, *are you me?* The first warm-up question
# has the shapes. Another: the identity matrix has all one-hot vectors as its rows.
# </details>
#
# <details><summary>Hint 2</summary>
#
# `None` as the last index adds a dimension of size 1 at the end. A comparison gives booleans; the spec asks for floats.
# </details>

# %% [markdown]
# ## One-hot times a matrix picks a row
#
# Give each word of the vocabulary a row of numbers: a table with V rows and D columns. Take three words and two columns,
# and multiply a one-hot row with it, on paper:
#
# $$\begin{pmatrix}0 & 1 & 0\end{pmatrix}\begin{pmatrix}1 & 2\\ 3 & 4\\ 5 & 6\end{pmatrix}
# = \begin{pmatrix}0{\cdot}1 + 1{\cdot}3 + 0{\cdot}5 & \; 0{\cdot}2 + 1{\cdot}4 + 0{\cdot}6\end{pmatrix}
# = \begin{pmatrix}3 & 4\end{pmatrix}$$
#
# Every product is with a zero, except those of one row. The multiplication **is** a row lookup.

# %%
figures.row_lookup(ids=[1, 2, 1], tokens=["eat", "short", "eat"])

# %% [markdown]
# Why say it in two ways? The lookup is fast: nobody multiplies with tens of thousands of zeros. The multiplication tells us that the
# table is an ordinary weight matrix. It has a gradient, so it can be *learned*. In the backward pass only the rows
# that were picked receive anything, and a word that comes twice receives twice.
#
# ## Exercise 1.5 `embed`
#
# Difficulty ●○○○○ · importance ●●●●● · 5 minutes · 10 points
#
# `embed(ids, table) -> (..., D)` for ids `(...)` and a table `(V, D)`
#
# The row of the table for each id: the same numbers as `one_hot(ids, V) @ table`. The gradient reaches the table.
#
# The code is one line. The thinking is in the shapes: before you run the check, write down for ids `(2, 5)` and a table
# `(7, 3)` which shapes meet in the multiplication, and which comes out. Quiz 1 asks.


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
# A tensor can be indexed with a tensor of whole numbers. What shape comes out?
# </details>
#
# <details><summary>Hint 2</summary>
#
# Indexing the first axis with `(...)` whole numbers puts `(...)` in that axis's place and keeps the axes behind it.
# </details>

# %% [markdown]
# ## Quiz 1
#
# `ids` has shape (2, 5), the vocabulary 7 words, the table shape (7, 3). What is the shape of the one-hot tensor that is
# multiplied with the table?
#
# - a: (5, 7)
# - b: (2, 5)
# - c: (2, 5, 7)
# - d: (2, 5, 3)

# %% nbgrader={"solution": "quiz_1"}
quiz_1 = None  # "a", "b", "c" or "d"
### BEGIN SOLUTION
quiz_1 = "c"
### END SOLUTION

# %% nbgrader={"grade": "quiz_1"}
check(quiz_1=quiz_1)

# %% [markdown]
# ## The running sentence as six vectors
#
# `nn.Embedding(6, 16)` is exactly such a table: 6 rows, 16 columns, a parameter. Nobody has trained it, so its rows are
# random, drawn from a normal distribution. With the seed 123 of one of our sources, *Life is short eat dessert first*
# becomes:

# %%
ids = torch.tensor([0, 4, 5, 2, 1, 3])
torch.manual_seed(123)
table = nn.Embedding(6, 16)
sentence = table(ids).detach()  # (6, 16): T = 6 tokens, D = 16
torch.set_printoptions(linewidth=100)
sentence

# %%
figures.sentence_vectors(sentence, ["Life", "is", "short", "eat", "dessert", "first"])

# %% [markdown]
# These six rows travel on: lesson 3 makes queries and keys of them, lesson 4 their attention weights, lesson 7 the
# vector of *is* in its context. Row 1 of the picture is the word *is*, which is row 4 of the table.
#
# ## Which vectors are alike? Similarity as projection
#
# Two arrows from the origin, **a** = (3, 4) and **b** = (5, 0). How much of **a** goes in **b**'s direction? Let the
# shadow of **a** fall on **b**'s line. Its length is the **projection** of a on b:
#
# $$\frac{a\cdot b}{\lVert b\rVert} = \frac{3\cdot 5 + 4\cdot 0}{5} = 3$$
#
# Three numbers say how alike two vectors are, and each sees something else:
#
# | | formula | here | double b |
# |---|---|---|---|
# | dot product | $a\cdot b=\sum_i a_i b_i$ | 15 | 30 |
# | projection of a on b | $a\cdot b\,/\,\lVert b\rVert$ | 3 | 3 |
# | cosine | $a\cdot b\,/\,(\lVert a\rVert\lVert b\rVert)$ | 15 / (5·5) = 0.6 | 0.6 |
#
# The dot product is the length of the shadow times the length of b. The cosine is the shadow of a vector of length 1. It
# sees direction only and lies between −1 (opposite) and 1 (same direction).

# %%
figures.projection([3.0, 4.0], [5.0, 0.0])

# %% [markdown]
# Turn a and stretch it. Find: a cosine of 0; a dot product that grows while the cosine stays; and two settings with the
# same dot product but different cosines.

# %%
explore.similarity()

# %% [markdown]
# *Where the sources are loose.* One says that "the dot product is a cosine similarity", another writes the cosine as
# 1/s times a·b, as if s were a constant. They are the same number only for vectors of length 1, and the same *ranking*
# only if all the candidates have the same length. Real word vectors have not: in the tables of real models a word's
# length depends strongly on how often it occurred. Attention uses the plain dot product on purpose, as you will see in
# lesson 3: there, length may say *how loudly* a word answers.
#
# ## Exercise 1.6 `cosine_similarity`
#
# Difficulty ●●●○○ · importance ●●●●○ · 12 minutes · 18 points
#
# `cosine_similarity(a, b) -> (N, M)` for a `(N, D)` and b `(M, D)`
#
# $$S_{ij} = \frac{a_i\cdot b_j}{\lVert a_i\rVert\,\lVert b_j\rVert}$$
#
# All pairs: row i of a with row j of b. A zero row gives 0 with everything, not NaN. It must be right for lengths from
# 0.001 to 1000 (a guard against division by zero of up to 1e-8 is no mistake; a larger one is felt by short vectors).
#
# Forbidden: `F.cosine_similarity`, `F.normalize`.


# %% nbgrader={"solution": "cosine_similarity"}
def cosine_similarity(a, b):
    """Cosines of all pairs of rows: a (N, D), b (M, D), float32 or float64 -> (N, M), same dtype. A zero row gives 0."""

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
# A matrix product gives the dot products of all pairs of rows at once. Then divide: either each row by its own length
# before, or each entry by the right two lengths after.
# </details>
#
# <details><summary>Hint 2</summary>
#
# Lengths are `norm` along the last dimension; `keepdim=True` keeps them lined up with their rows. For a zero row: what
# could you divide by, so that 0 divided by it is 0?
# </details>

# %% [markdown]
# ## Dot product against cosine, on the running sentence
#
# The same six vectors as above. Left all dot products, right all cosines. The diagonal tells the story: on the right it
# is 1 everywhere, on the left it is each word's squared length. Then find the row of *eat* and ask which word points
# most against it. By dot product it is *short* (−1.42 against −1.36 for *Life*), by cosine it is *Life* (−0.12 against
# −0.10): *short* is the longer vector, 3.71 against 3.12, and length counts for the dot product.

# %%
figures.dot_and_cosine(sentence, ["Life", "is", "short", "eat", "dessert", "first"])

# %% [markdown]
# These numbers mean nothing yet. The table is random, and the cosines of random directions in 16 dimensions scatter
# around 0 with a spread of 1/√16 = 0.25. Meaning must come from somewhere.
#
# ## Exercise 1.7 `fixed_neighbors` (find the bug)
#
# Difficulty ●●●○○ · importance ●●●○○ · 10 minutes · 10 points
#
# `fixed_neighbors(table, k) -> LongTensor (V, k)`: for each row of a table `(V, D)` the ids of the k other rows with the
# largest cosine, best first; no row is zero and k < V.
#
# The first line of this function stands in many published notebooks and search programs. The function runs, and on
# vectors of equal length it is right. With a trained table, words with long vectors turn up as everybody's neighbors.
#
# ```python
# def neighbors(table, k):
#     unit = table / table.norm()            # every row gets length 1
#     similarity = unit @ unit.T             # (V, V): cosines
#     similarity.fill_diagonal_(-math.inf)   # a word is no neighbor of itself
#     return similarity.topk(k).indices      # (V, k)
# ```
#
# Find the line that does not do what its comment says, and write the function right. Here is its work on four words,
# two pairs that point the same way:

# %%
words = ["eat", "cook", "train", "plane"]
four = torch.tensor([[1.0, 0.1], [9.0, 2.0], [0.2, 1.0], [0.6, 2.0]])  # (4, 2)
unit = four / four.norm()
print("lengths:", unit.norm(dim=1))
similarity = unit @ unit.T - 99 * torch.eye(4)
print({word: words[i] for word, i in zip(words, similarity.argmax(1), strict=True)})


# %% nbgrader={"solution": "fixed_neighbors"}
def fixed_neighbors(table, k):
    """Ids (V, k) of the k rows of table (V, D) with the largest cosine to each row, itself excepted, best first."""
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
# The cell above prints the lengths of the rows of `unit`. Do they agree with the comment?
# </details>
#
# <details><summary>Hint 2</summary>
#
# What is the norm of a whole matrix? Which word of lesson 0 tells a reduction the axis to work along, and which keeps
# the axis for the division?
# </details>

# %% [markdown]
# ## You shall know a word by the company it keeps
#
# That is J. R. Firth, in 1957. Words that stand between the same neighbors are alike: *jane visits ___ by train*. The
# idea of **word2vec** (Mikolov et al., 2013) is to turn this into a game with two moves.
#
# Walk along the text. The word in the middle is the **center** c, each word at most `window` places away a true
# neighbor o. For every true pair draw K words n₁ ... n_K at random: strangers, **negative samples**. Each word has two
# vectors, one as center, one as neighbor. The sigmoid of a dot product, σ(x) = 1 / (1 + e^(−x)), is read as *the
# probability that this pair is a true one*, and the loss is the surprise about the truth:
#
# $$L = -\log\sigma(c\cdot o)\;-\;\sum_{k=1}^{K}\log\sigma(-c\cdot n_k)$$
#
# Its gradient is two forces on c:
#
# $$-\frac{\partial L}{\partial c} \;=\; \underbrace{\bigl(1-\sigma(c\cdot o)\bigr)\,o}_{\text{pull to the neighbor}}
# \;-\;\sum_k \underbrace{\sigma(c\cdot n_k)\,n_k}_{\text{push from a stranger}}$$
#
# On paper, in two dimensions: c = (1, 0), neighbor o = (0, 2), stranger n = (2, 0). Then c·o = 0 and σ(0) = 0.5, so the
# pull is 0.5·(0, 2) = (0, 1). And c·n = 2, σ(2) = 0.881, so the push is −0.881·(2, 0) = (−1.762, 0). The vector c moves up
# and to the left. A pair that is already where it belongs is hardly moved at all.

# %%
c, o, n = torch.tensor([1.0, 0.0]), torch.tensor([0.0, 2.0]), torch.tensor([2.0, 0.0])
pull = (1 - torch.sigmoid(c @ o)) * o  # (2,)
push = -torch.sigmoid(c @ n) * n  # (2,)
pull, push

# %%
figures.pull_and_push()

# %% [markdown]
# On the left, note where the arrows point: along the line from 0 to the neighbor, and against the lines from 0 to the
# strangers. Directions count here, not distances. On the right is another place where the same two forces work: **GE2E** (Wan et al., 2018) trains a network to know
# people by their voice. A recording is pulled towards the *centroid* (the mean) of its own speaker's other recordings,
# and pushed away from the other speakers' centroids, the nearest one most. Two differences: GE2E is told who is
# speaking, word2vec takes its truth from the text for nothing; and GE2E lets the candidates compete in one softmax, where
# word2vec judges each pair by itself.
#
# Without the push, the game has a stupid solution: all vectors in one place, long, every pair "true". Without the pull
# everything flies apart. Meaning is what the two leave standing.
#
# ## Watch it happen
#
# Six hundred sentences from a small grammar. Each is about one place, one food or one animal, so *cat* and *dog* never
# stand in one sentence. Nowhere does it say that they belong together.

# %%
sentences = corpus.company_sentences(600, random.Random(1))
words, sentence_ids = corpus.index_words(sentences)
print(f"{len(words)} different words, in sentences such as", *sentences[:4], sep="\n")

# %% [markdown]
# The training applies those two forces to 128 pairs at a time, with K = 5 strangers, to vectors of width 16: about a
# second. (Its code is `helpers/word2vec.py`. Like the original program it differentiates nothing: it only adds forces.)

# %%
generator = torch.Generator().manual_seed(1)
history = word2vec.train(sentence_ids, len(words), generator, window=2, steps=1000)

# %%
figures.before_and_after(history, words)

# %% [markdown]
# Each dot is a shadow again: a word's direction, an arrow of length 1 in 16 dimensions, falls on the plane in which the
# trained words differ most. Before: random. After: three heaps. The gray dots beside them are verbs and the rest of the
# phrases, the ones in the middle people, who visit, eat and feed alike. Fourteen dimensions are hidden, so trust numbers
# more than the map: the mean cosine between words of one group, and between words of different groups, as training goes
# on.

# %%
figures.company_curve(history, words)

# %% [markdown]
# The red curve rises before it falls: for some forty steps *all* words run the same way. Why? Five of six pairs are
# strangers. So the fastest way to be right is to say no to everything: all center vectors go to one side, all
# neighbor vectors to the other (their mean cosine reaches −0.9). Then the pull has its say, and only words with the same
# neighbors stay together. Drag through it:

# %%
explore.training(history, words)

# %% [markdown]
# *Where the intuition stops.* Near does not mean "same meaning". It means "replaceable in these windows". *Hot* and
# *cold* keep the same company too, and lie close together in real word2vec tables. And each word has one vector, in
# whatever sentence it stands: the *bank* of the river and the *bank* with the money share a row. Mending that is what
# attention is for.
#
# ## Quiz 2
#
# *cat* and *dog* never occur in the same sentence of our text. Why are their vectors close?
#
# - a: Because skip-gram pulls *cat* directly to *dog*.
# - b: Because both are pulled to the same neighbors.
# - c: Because both words mean animals, and the vectors start from the meaning.
# - d: Because their ids are close in the vocabulary.

# %% nbgrader={"solution": "quiz_2"}
quiz_2 = None  # "a", "b", "c" or "d"
### BEGIN SOLUTION
quiz_2 = "b"
### END SOLUTION

# %% nbgrader={"grade": "quiz_2"}
check(quiz_2=quiz_2)

# %% [markdown]
# ## Exercise 1.8 `skipgram_pairs` + extra
#
# Difficulty ●●○○○ · importance ●●○○○ · 10 minutes · 8 bonus points
#
# `skipgram_pairs(ids, window) -> list[(center, context)]`
#
# `ids` is a list or a LongTensor. The pairs are tuples of Python ints, by center position, then by context position. A
# context is at most `window` positions away, on either side. A position is never its own context (an equal id elsewhere
# is). Window 0 gives `[]`.
#
# `skipgram_pairs([7, 8, 9], 1)` gives `[(7, 8), (8, 7), (8, 9), (9, 8)]`.


# %% nbgrader={"solution": "skipgram_pairs"}
def skipgram_pairs(ids, window):
    """True pairs of word2vec: ids, a list or LongTensor (T,) -> list of (center, context) tuples of Python ints."""
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
# Two loops over positions, not over words: the same word may come twice.
# </details>
#
# <details><summary>Hint 2</summary>
#
# Where does the window begin and end near the edges of the sentence? Remember that `range` leaves its end out, and that
# a negative index counts from the back.
# </details>

# %% [markdown]
# ## Exercise 1.9 `negative_sampling_loss` + extra
#
# Difficulty ●●●○○ · importance ●●●○○ · 15 minutes · 10 bonus points
#
# `negative_sampling_loss(center, context, negatives) -> scalar` for `(B, D)`, `(B, D)`, `(B, K, D)`, K ≥ 1
#
# $$\frac1B\sum_{b}\Bigl[-\log\sigma(c_b\cdot o_b)-\sum_{k}\log\sigma(-c_b\cdot n_{bk})\Bigr]$$
#
# Exact, with exact gradients, also for dot products of ±100, in float32 as in float64. There a sigmoid is 0 or 1 as far
# as a computer can tell, but the loss of such a pair is a plain 100 or (almost) 0.


# %% nbgrader={"solution": "negative_sampling_loss"}
def negative_sampling_loss(center, context, negatives):
    """Loss of skip-gram with negative sampling, eq. 4 of Mikolov et al. (2013), negated; mean over the batch.

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
# First all the dot products: (B,) for the neighbors, (B, K) for the strangers. Mind dimensions of size 1.
# </details>
#
# <details><summary>Hint 2</summary>
#
# The log and the sigmoid must be taken in one step. PyTorch has such a function, or write −log σ(x) as log(1 + e^(−x))
# and think about large |x|.
# </details>

# %% [markdown]
# ## Words that are not in the vocabulary: subwords
#
# Your `encode` stops at a word it does not know. The vocabulary of English has no end: names, endings, typing errors.
# One way out is an `[UNK]` token for everything unknown; then *desserts* is as unknown as *xqzt*. Letters as tokens
# would know everything, but make long sequences of pieces that mean nothing. Real models go between: whole words for
# what is frequent, pieces for the rest. A piece that continues a word is written with `##` in front:
#
# | word | pieces |
# |---|---|
# | apples | apples |
# | pineapples | pine ##apple ##s |
# | unforgettable | un ##for ##get ##table |
# | unhappiness | un ##ha ##pp ##iness |
#
# These are the cuts of BERT's **WordPiece** vocabulary, which the model of lesson 13 uses too. The rule is greedy: take
# the longest piece that the word begins with, then the longest that its rest begins with, and so on. It knows nothing of
# grammar. *unforgettable* ends with a `##table`, and *unhappiness* does not contain *happiness*, which is a word of the
# vocabulary but no *continuation* (`##happiness` is missing).

# %%
pieces = pretrained.wordpiece_vocab()
for piece in ["apples", "##apple", "happiness", "##happiness", "dessert", "desserts", "##s"]:
    print(f"{piece:>12}  {'in the vocabulary' if piece in pieces else '-'}")

# %% [markdown]
# (With the real model on your machine this is its full vocabulary of 30,522 pieces, otherwise a small one of the same
# pieces that comes with the course. The words of this lesson are cut alike by both.)
#
# ## Exercise 1.10 `wordpiece` + extra
#
# Difficulty ●●●○○ · importance ●●●○○ · 15 minutes · 10 bonus points
#
# `wordpiece(word, vocab, unk="[UNK]") -> list[str]`
#
# - Greedy, longest match first. The first piece is looked up as it is, each later one with `##` in front.
# - Never goes back: if the greedy cut gets stuck, the answer is `[unk]`, even if another cut would have worked.
# - No length limit; the case is kept; the word is not empty.
# - `vocab` is anything with `in`: a dictionary, a set, a list, an object of your own.
#
# By hand, with `{"un", "##aff", "##affable", "##able"}`: *unaffable* gives `["un", "##affable"]`. Take `##affable` away:
# the longest piece after `un` is now `##aff`, then `##able`.


# %% nbgrader={"solution": "wordpiece"}
def wordpiece(word, vocab, unk="[UNK]"):
    """Greedy longest-match-first pieces of a word, as in BERT (Devlin et al., 2019); [unk] where the cut gets stuck.

    word: a string, not empty. vocab: anything with `in`. Returns a list of strings.
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
# Keep the place where the rest of the word begins. From there try the longest stretch, then one letter less, and so on.
# What if not even one letter fits?
# </details>
#
# <details><summary>Hint 2</summary>
#
# Two loops, one inside the other: the outer one runs until nothing of the word is left, the inner one makes the stretch
# shorter. Python's `for` can have an `else`, which runs when the loop ended without `break`.
# </details>

# %% [markdown]
# ## Quiz 3
#
# BERT's vocabulary holds `un`, `una`, `##ffa`, `##ble` and many more pieces, but neither `unaffable` nor any longer
# beginning of that word. How is *unaffable* cut?
#
# - a: una ##ffa ##ble
# - b: un ##affable
# - c: [UNK]

# %% nbgrader={"solution": "quiz_3"}
quiz_3 = None  # "a", "b" or "c"
### BEGIN SOLUTION
quiz_3 = "a"
### END SOLUTION

# %% nbgrader={"grade": "quiz_3"}
check(quiz_3=quiz_3)

# %% [markdown]
# ## Written question
#
# *15 points, read by a person. About ten lines.*
#
# One of our sources writes, about the scores that attention computes: "the dot product of current token query and some
# other token key is a cosine similarity! So, it's going to attend to tokens which have similar keys". Judge this
# sentence.
#
# 1. When is it true? When do dot product and cosine at least agree on the *order* of the candidates?
# 2. Give one vector a and two candidates b₁, b₂ in the plane for which they disagree, with all four numbers.
# 3. In our word2vec game, what makes a vector long? Which kind of word would turn up as everybody's neighbor if a search
#    engine ranked by dot product, and could that ever be what you want?

# %% [markdown] nbgrader={"written": "written_1"}
# **Model answer.** (1) a·b = ‖a‖‖b‖ cos, so the two numbers are equal exactly when ‖a‖‖b‖ = 1 (or the vectors are at
# right angles), for example when all vectors have length 1. For one fixed query the factor ‖a‖ is shared by all
# candidates, so the order is the same as soon as all candidates have equal length; the query's own length does not
# matter. In general neither holds: the sentence is wrong as it stands, because queries and keys are not normalized.
#
# (2) For example a = (1, 0), b₁ = (1, 0), b₂ = (3, 3). Dot products 1 and 3, so b₂ wins. Cosines 1 and 0.707, so b₁ wins.
#
# (3) Each pull adds a multiple of the neighbor's vector, each push subtracts one. A vector grows long when many forces
# agree: a word that is met often, in the same company. Pulls and pushes that contradict each other cancel, so a word that
# stands in all company stays short in spite of its frequency. (In our table *by* is longest, 4.3, and *she* shortest,
# 2.7, though *she* is met twice as often as *peru*, 3.1.) By dot product, long vectors win against many queries: frequent
# words of a clear kind become everybody's neighbors (hubs). That is what one wants if length carries something useful,
# such as popularity in a shop's search or confidence, and it is what attention uses: a key may answer loudly. It is not
# wanted when "alike" is meant.
#
# **Marking scheme (15).** Part 1: equal only for lengths of product 1 (2), same order if the candidates have equal
# length (2), the query's length is irrelevant for the order or the sentence is clearly judged wrong in general (1). Part
# 2: a valid example (3) with four right numbers (2). Part 3: a reason tied to the pull and push, such as frequency
# or forces that agree (2), names long or frequent words as hubs (2), one case where length is wanted (1). An answer that
# argues otherwise and gives evidence, such as a measurement on `history`, gets full marks for its part.

# %% [markdown]
# ## Recap
#
# - A sentence becomes tokens, tokens become ids by a vocabulary in a fixed order.
# - An id is a name. One-hot gives each name an axis; one-hot times a table **is** a row lookup, and the table is learned.
# - The dot product is shadow times length. The cosine sees direction only. They agree when lengths are equal.
# - word2vec pulls true pairs together and pushes strangers apart: words that share company end up near each other.
# - Real models cut rare words into pieces, greedily.
#
# ## Further reading
#
# - Mikolov et al., [Distributed Representations of Words and Phrases and their Compositionality](https://arxiv.org/abs/1310.4546)
#   (2013): negative sampling, in section 2.2.
# - Wan et al., [Generalized End-to-End Loss for Speaker Verification](https://arxiv.org/abs/1710.10467) (2018): centroids.
# - Devlin et al., [BERT](https://arxiv.org/abs/1810.04805) (2019), and Wu et al.,
#   [Google's Neural Machine Translation System](https://arxiv.org/abs/1609.08144) (2016), section 4.1: WordPiece.
# - Sebastian Raschka, [Understanding and Coding the Self-Attention Mechanism from Scratch](https://sebastianraschka.com/blog/2023/self-attention-from-scratch.html):
#   the walk-through whose six vectors you have seen.
# - Pascal Poupart, [CS480/680 Lecture 19: Attention and Transformer Networks](https://www.youtube.com/watch?v=OyFJWRnt_AY).
#
# ## What comes next
#
# The six vectors have lost something: mix the rows, and each word still has the same vector. *jane visits africa* and
# *africa visits jane* are the same bag. [Lesson 2](../02_position/02_position.ipynb) gives every token its place.
