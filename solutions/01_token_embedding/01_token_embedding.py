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
# **Goal:** turn a sentence into numbers that a network can compute with, and bring words that keep the same company close
# together, by two forces that you write yourself.
#
# **Time:** about 130 minutes, of which 30 are for the three extras. A good place for a break is before *You shall know a
# word by the company it keeps*.

# %% tags=["setup"]
# (empty: the build puts the set-up cell here)

# %%
import math
import random

import torch
import torch.nn.functional as F
from torch import nn

from helpers import at_work, check, corpus, or_given, pretrained, translator
from helpers.drawing.transformer_map import transformer_map
from helpers.lessons.token_embedding import experiments, explore, figures, word2vec

# %%
transformer_map("01_token_embedding")

# %% [markdown]
# We are at the bottom, where words go in. Everything above works on the rows of numbers that this lesson makes.

# %% [markdown]
# ## You need
#
# [Lesson 0](../00_start_here/00_start_here.ipynb): shapes, broadcasting, dtype, gradients, and how the check talks. Of
# Python, three tools: `set(names)` holds each thing once, `sorted(names)` makes a sorted list of it, and
# `{name: len(name) for name in names}` makes a dictionary in one line.
#
# Two questions to warm up. Answer before you unfold.
#
# <details><summary>A tensor of shape (5, 1) is compared with one of shape (7,). What shape does the answer have?</summary>
#
# (5, 7). Shapes are lined up from the right; a missing or single dimension is repeated. Each of the 5 meets each of
# the 7.
#
# </details>
#
# <details><summary>f(x) = x₁² + x₂², at x = (1, 2). What is the gradient, and which way does training move x?</summary>
#
# (2, 4): move x₂ a little and f grows four times as much. Training moves x against the gradient, along (−2, −4).
#
# </details>
#
# <details><summary>Conventions (the same in every lesson)</summary>
#
# - **Shapes:** `B` batch, `H` heads, `T` tokens (`T_q` queries, `T_k` keys), `D` model width, `d_k`, `d_v` head widths,
#   `V` vocabulary. `...` stands for any leading dimensions, none included.
# - **Weights** follow `nn.Linear`: `W` is `(out, in)` and a projection is `x @ W.T`.
# - **Masks** are boolean, True = may attend.
# - **Unless an exercise says otherwise an answer** accepts any `...` (Q and K, or all inputs, share the same ones);
#   accepts float32 and float64 and keeps the dtype; leaves its inputs unchanged; is differentiable; gives no NaN in
#   values (in gradients too where the exercise says so).
# - **Equal** means within 1e-5 (relative plus absolute) in float32 and 1e-7 in float64. A constant rounded to float32
#   inside a float64 answer is no mistake.
# - `scalar` is a 0-dim differentiable tensor, `float` and `int` are Python numbers.
# - **Forbidden** lists library calls that would be the whole answer. Using one gets no points and a message that names
#   it.
#
# </details>

# %% [markdown]
# ## A sentence is a list of tokens
#
# A network adds and multiplies. *Life is short, eat dessert first* can be neither added nor multiplied. So the first step
# is to cut it into pieces, **tokens**, and to give each distinct token a number, its **id**.
#
# The simplest cut throws the punctuation away and splits at white space. It loses something (the comma), and it is good
# enough to start with. At the end of this lesson you meet the cut that real models use.
#
# ### Exercise 1.1 `tokenize`
#
# Difficulty 1 of 5 · Importance 2 of 5 · 4 minutes · 6 points
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
    """Tokens of a sentence, a list of strings: the marks , . ! ? ; : deleted, then split on white
    space."""
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
#
# </details>
# <details><summary>Hint 2</summary>
#
# `"a-b".replace("-", "")` gives `"ab"`. A `split` without an argument treats any run of white space as one gap.
#
# </details>

# %% [markdown]
# ## A vocabulary gives each token a number
#
# Collect the distinct tokens, put them in order, count from 0:
#
# | token | Life | dessert | eat | first | is | short |
# |---|---|---|---|---|---|---|
# | id | 0 | 1 | 2 | 3 | 4 | 5 |
#
# Why is *Life* first? Strings are compared by **code point**, and the capitals A to Z (from 65 on) come before the small
# letters a to z (from 97 on). Any order would do, as long as it is always the same one: an id is the number of a row in a table, and
# yesterday's table must fit today's ids. In *At work* you will see what happens otherwise.
#
# ### Exercise 1.2 `build_vocab`
#
# Difficulty 2 of 5 · Importance 3 of 5 · 6 minutes · 8 points
#
# `build_vocab(sentences) -> dict[str, int]`
#
# Takes a list of sentences and cuts them with your `tokenize`. The ids 0, 1, ... go to the distinct tokens of all
# sentences in code-point order. No special tokens are added.


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
# Collect the tokens of all sentences in something that holds each one only once. Sort when you have them all.
#
# </details>
# <details><summary>Hint 2</summary>
#
# `enumerate` counts from 0 along anything. A dictionary comprehension turns its pairs around.
#
# </details>
#
# **Predict before you run.** Much code builds its vocabulary in one line, like this. *Which ids will the second sentence
# get, and how many rows does its table need?*


# %%
def one_line(sentence):
    return {s: i for i, s in enumerate(sorted(sentence.replace(",", "").split()))}


print(one_line("Life is short, eat dessert first"))
print(one_line("the cat saw the dog"))

# %% [markdown]
# <details><summary>Answer</summary>
#
# The first sentence gets the table above. In the second, *the* appears twice in the sorted list, takes the numbers 3
# and 4, and keeps the last one. There are four distinct tokens, but the largest id is 4: a table with four rows has
# no row 4. The line is right for every sentence that repeats no word. For the others it ends in an `IndexError`, or
# wastes a row.
#
# </details>
#
# ### Exercise 1.3 `encode`
#
# Difficulty 1 of 5 · Importance 3 of 5 · 4 minutes · 8 points
#
# `encode(sentence, vocab) -> LongTensor (T,)`
#
# The ids of the sentence's tokens, in the sentence's order. The sentence has at least one token. A token that is not in
# the vocabulary raises a `KeyError` that names this token, and not the whole sentence: better a clear stop than a silent
# guess.


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
# Look each token up. What does a dictionary do by itself when a key is missing?
#
# </details>
# <details><summary>Hint 2</summary>
#
# `torch.tensor` makes whole numbers out of a list of Python ints. `torch.Tensor`, with a capital, makes floats.
#
# </details>
#
# The way back, `decode`, is the same dictionary read from right to left. What does *encode, then decode* lose?

# %%
life = {"Life": 0, "dessert": 1, "eat": 2, "first": 3, "is": 4, "short": 5}
# or_given(encode): your encode once its check has passed, else the course's
ids = or_given(encode)("Life is short, eat dessert first", life)  # (6,)
token_of = {i: token for token, i in life.items()}
print(ids.tolist(), " ".join(token_of[i] for i in ids.tolist()))

# %% [markdown]
# <details><summary>Answer</summary>
#
# The comma, and how many spaces there were. A model that writes text cannot afford that: its tokenizer keeps punctuation
# marks as tokens of their own, and remembers which tokens began with a space.
#
# </details>
#
# ## An id is not a quantity
#
# The sentence is now six numbers, 0 4 5 2 1 3. Is *short* (5) five more than *Life* (0)? Is *eat* (2) halfway between
# *dessert* (1) and *first* (3)? Of course not: the numbers are names. If we fed them into a network as numbers, it would
# have to unlearn an order that means nothing.
#
# So give every word an axis of its own. A **one-hot** vector is all zeros, with a single 1 at the word's id:
#
# $$\text{one\_hot}(i)_v = \begin{cases}1 & v = i\\ 0 & \text{otherwise}\end{cases}$$
#
# Now all words are equally far from one another, at distance √2. No false order is left, and no meaning yet either.
#
# ### Exercise 1.4 `one_hot`
#
# Difficulty 2 of 5 · Importance 3 of 5 · 5 minutes · 8 points
#
# `one_hot(ids, vocab_size) -> (..., V)` float32, from ids of any shape `(...)`
#
# The new axis comes last. `ids` of shape `(2, 5)` and 7 words give `(2, 5, 7)`; a single id of shape `()` gives `(7,)`.
# Forbidden: `F.one_hot`.


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
# There are several good ways. One: each id asks every number from 0 to V − 1, *are you me?* The first warm-up question
# has the shapes. Another: the identity matrix has all one-hot vectors as its rows.
#
# </details>
# <details><summary>Hint 2</summary>
#
# `torch.arange(V)` makes the numbers from 0 to V − 1, `torch.eye(V)` an identity matrix. `None` as the last index adds a
# dimension of size 1 at the end. A comparison gives booleans; the spec asks for floats.
#
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
# Why say it in two ways? The lookup is fast: nobody multiplies with tens of thousands of zeros. The multiplication tells
# us that the table is an ordinary weight matrix. It has a gradient, so it can be *learned*. In the backward pass only the
# rows that were picked receive anything, and a word that comes twice receives twice.
#
# ### Exercise 1.5 `embed`
#
# Difficulty 1 of 5 · Importance 5 of 5 · 4 minutes · 10 points
#
# `embed(ids, table) -> (..., D)` for ids `(...)` and a table `(V, D)`
#
# The row of the table for each id: the same numbers as `one_hot(ids, V) @ table`. The gradient reaches the table, and the
# table's dtype is kept. The code is one line; the thinking is in the shapes, and Quiz 1.1 asks for them.


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
#
# </details>
# <details><summary>Hint 2</summary>
#
# Indexing the first axis with `(...)` whole numbers puts `(...)` in that axis's place and keeps the axes behind it.
#
# </details>
#
# Here is the whole journey of a sentence, from words to rows, in the translator that runs through this course: 165
# English words and the padding, each with a row of 64 numbers. The slider highlights one word. *Type a word twice: what can you say of its rows?
# Then type a word that the translator cannot know.*

# %%
explore.sentence()

# %% [markdown]
# <details><summary>Answer</summary>
#
# The two rows are the same, number for number: the row depends on the id alone, not on the place in the sentence, nor on
# the words around it. Lesson 2 mends the first, attention the second. A word without an id has no row; `encode` stops.
#
# </details>
#
# ## The running sentence as six vectors
#
# `nn.Embedding(6, 16)` is just such a table: 6 rows, 16 columns, a parameter. Nobody has trained it, so its rows are drawn
# at random. With the seed 123, *Life is short, eat dessert first* becomes:

# %%
torch.manual_seed(123)
table = nn.Embedding(6, 16)
sentence = table(torch.tensor([0, 4, 5, 2, 1, 3])).detach()  # (6, 16): T = 6 tokens, D = 16
torch.set_printoptions(linewidth=100)
sentence[:2]  # (2, 16): Life, is

# %%
figures.sentence_vectors(sentence, ["Life", "is", "short", "eat", "dessert", "first"])

# %% [markdown]
# These six rows travel on: lesson 3 makes queries and keys of them, lesson 4 their attention weights, lesson 7 the vector
# of *is* in its context. The second row of the picture is the word *is*, which is row 4 of the table.
#
# ## Which vectors are alike? The dot product as a shadow
#
# Two arrows from the origin, **a** = (3, 4) and **b** = (5, 0). How much of **a** points in **b**'s direction? Let **a**
# cast a shadow on **b**'s line. The length of that shadow is the **projection** of a on b, counted negative when it falls
# on the far side of the origin:
#
# $$\frac{a\cdot b}{\lVert b\rVert} = \frac{3\cdot 5 + 4\cdot 0}{5} = 3$$
#
# Three numbers say how alike two vectors are, and each sees something else:
#
# | | formula | here | with b doubled |
# |---|---|---|---|
# | dot product | $a\cdot b=\sum_i a_i b_i$ | 15 | 30 |
# | projection of a on b | $a\cdot b\,/\,\lVert b\rVert$ | 3 | 3 |
# | cosine | $a\cdot b\,/\,(\lVert a\rVert\lVert b\rVert)$ | 15 / (5·5) = 0.6 | 0.6 |
#
# The dot product is the shadow times the length of b. The cosine is the shadow of a vector of length 1. It sees direction
# only, and lies between −1 (opposite) and 1 (same direction).
#
# Turn a and stretch it. *Find a cosine of 0; a dot product that grows while the cosine stays; and two settings with the
# same dot product but different cosines.*

# %%
explore.similarity()

# %% [markdown]
# <details><summary>Answer</summary>
#
# A cosine of 0: 90°, at any length. Dot product grows, cosine stays: keep the angle below 90° and pull at the length. Same
# dot product, different cosines: length 3 at 0° and length 6 at 60° both have dot product 15, with cosines 1 and 0.5.
#
# </details>
#
# ### Exercise 1.6 `cosine_similarity`
#
# Difficulty 3 of 5 · Importance 4 of 5 · 15 minutes · 14 points
#
# `cosine_similarity(a, b) -> (N, M)` for a `(N, D)` and b `(M, D)`
#
# $$S_{ij} = \frac{a_i\cdot b_j}{\lVert a_i\rVert\,\lVert b_j\rVert}$$
#
# All pairs: row i of a with row j of b. A zero row gives 0 with everything, not NaN. It must be right for lengths from
# 0.001 to 1000. The gradients hold no NaN either, also at a zero row. A guard against division by zero of up to 1e-8, as a floor for a length or added to it, is no mistake;
# added to a *product* of two lengths, or under a root, it is felt by short vectors. Forbidden: `F.cosine_similarity`,
# `F.normalize`.


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
# A matrix product gives the dot products of all pairs of rows at once. Then divide: either each row by its own length
# before, or each entry by the right two lengths after.
#
# </details>
# <details><summary>Hint 2</summary>
#
# Lengths are `norm` along the last dimension; `keepdim=True` keeps them lined up with their rows. For a zero row: what
# could you divide by, so that 0 divided by it is 0?
#
# </details>

# %% [markdown]
# ## Dot product against cosine
#
# Two measures, one query, two candidates: q = (1, 0), b₁ = (1, 0), b₂ = (3, 3). *Which candidate is more like q, by dot
# product, and by cosine?*
#
# <details><summary>Answer</summary>
#
# Dot products 1 and 3: b₂ wins. Cosines 1 and 1/√2 = 0.71: b₁ wins. b₂ points 45° away, but it is long. The two measures
# agree on the order whenever all candidates have the same length; the length of q does not matter.
#
# </details>
#
# On the six vectors of our sentence:

# %%
figures.dot_and_cosine(sentence, ["Life", "is", "short", "eat", "dessert", "first"])

# %% [markdown]
# The diagonal tells the story: on the right it is 1 everywhere, on the left it is each word's squared length. Off the
# diagonal the numbers mean nothing yet. The table is random, and the cosines of random directions in 16 dimensions scatter
# around 0 with a spread of 1/√16 = 0.25. Meaning must come from somewhere.
#
# Attention, by the way, uses the plain dot product on purpose, as you will see in lesson 3: there, length may say *how
# loudly* a word answers.

# %% [markdown]
# ## You shall know a word by the company it keeps
#
# That is J. R. Firth, in 1957. Words that keep the same neighbors are alike: *jane visits ___ by train*. The idea
# of **word2vec** (Mikolov et al., 2013) is to turn this into a game.
#
# Walk along the text. The word in the middle is the **center** c, each word at most `window` places away is a true neighbor
# o. For every true pair draw K words $n_1, \ldots, n_K$ at random from the text, frequent words more often: strangers, or
# **negative samples**. Each word has two vectors, one as a center and one as a neighbor. The sigmoid of a dot product,
# $\sigma(x) = 1/(1 + e^{-x})$ (in PyTorch `torch.sigmoid(x)`), is read as *the probability that this pair is a true one*,
# and the loss is the surprise about the truth:
#
# $$L = -\log\sigma(c\cdot o)\;-\;\sum_{k=1}^{K}\log\sigma(-c\cdot n_k)$$

# %%
figures.surprise()

# %% [markdown]
# How does the loss move with c? The slope of $-\log\sigma(x)$ is $\sigma(x) - 1$, and the slope of $-\log\sigma(-x)$ is
# $\sigma(x)$: what the probability still lacks, and what it has too much of (Figure 1.4, right). So the K + 1 pairs put K +
# 1 forces on c:
#
# $$-\frac{\partial L}{\partial c} \;=\; \underbrace{\bigl(1-\sigma(c\cdot o)\bigr)\,o}_{\text{pull along the neighbor}}
# \;-\;\sum_k \underbrace{\sigma(c\cdot n_k)\,n_k}_{\text{push against a stranger}}$$
#
# On paper, in two dimensions: c = (1, 0), neighbor o = (0, 2), stranger n = (2, 0). Then c·o = 0 and σ(0) = 0.5, so the
# pull is 0.5·(0, 2) = (0, 1). And c·n = 2, σ(2) = 0.881, so the push is −0.881·(2, 0) = (−1.762, 0). Autograd agrees:

# %%
c = torch.tensor([1.0, 0.0], requires_grad=True)  # (2,)
o, n = torch.tensor([0.0, 2.0]), torch.tensor([2.0, 0.0])  # (2,), (2,)
loss = -F.logsigmoid(c @ o) - F.logsigmoid(-(c @ n))  # scalar
loss.backward()
print("force on c:", -c.grad)

# %%
figures.negative_sampling_gradients()

# %% [markdown]
# On the left, note where the arrows point: along the line from 0 to the neighbor, and against the lines from 0 to the
# strangers. Directions count here, not distances. On the right the same two forces teach a network to know people by their
# voice (GE2E, Wan et al., 2018): a recording is pulled to the *centroid* ★, the mean, of its own speaker's other recordings,
# and pushed away from the other speakers' centroids.
#
# The neighbor and the strangers feel forces as well. Now you write the heart of word2vec: all three gradients of one
# true pair and its strangers.
#
# ### Exercise 1.7 `negative_sampling_gradients`
#
# Difficulty 3 of 5 · Importance 5 of 5 · 25 minutes · 16 points
#
# `negative_sampling_gradients(center, context, negatives) -> (d_center, d_context, d_negatives)`
#
# The gradients of the loss above, by hand, at the center $c$ `(D,)`, the true neighbor $o$ `(D,)` and the strangers $n$
# `(K, D)`, K ≥ 1, as a tuple of three tensors of the same shapes:
#
# $$\frac{\partial L}{\partial c},\qquad \frac{\partial L}{\partial o},\qquad \frac{\partial L}{\partial n_k}\ \text{for each } k$$
#
# Gradients, not forces: the training below walks *against* them. On paper, for the numbers above: (1.762, −1) at c,
# (−0.5, 0) at o, (0.881, 0) at n. It must stay right for dot products of ±100, in float32 too. It need not be
# differentiable itself; `torch.sigmoid` is welcome. Forbidden: autograd in every form.


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
# Each pair enters the loss through one number, its dot product. First the slopes of the loss along these K + 1 numbers.
# Then: how does a dot product of two vectors move with one of the two?
#
# </details>
# <details><summary>Hint 2</summary>
#
# The center appears in all K + 1 dot products, so its gradient is a sum of K + 1 terms. The neighbor and each
# stranger appear in one. For the strangers, a column of K slopes meets one row of D numbers.
#
# </details>

# %% [markdown]
# ## Watch your forces work
#
# Three hundred sentences from a small grammar. Each is about one place, one food or one animal, so *cat* and *dog*
# never meet in a sentence. Nothing in the text says that they belong together.

# %%
sentences = corpus.company_sentences(300, random.Random(1))
words, sentence_ids = corpus.index_words(sentences)
pairs = word2vec.all_pairs(sentence_ids, window=2)  # (N, 2): every true pair
print(f"{len(words)} words, {len(pairs)} true pairs, in sentences such as", *sentences[:4], sep="\n")

# %% [markdown]
# Training is now a walk through those pairs, once, in random order. For each it draws five strangers, calls your
# `negative_sampling_gradients`, and moves the seven vectors a little against their gradients. (`word2vec.train` does just that: no
# autograd, no optimizer. The original program works like this too.)

# %%
forces = or_given(negative_sampling_gradients)
history = word2vec.train(sentence_ids, len(words), torch.Generator().manual_seed(1), forces)
trained = history.centers[-1]  # (V, D) = (42, 16)
figures.before_and_after(history, words)

# %% [markdown]
# Each dot is a shadow again: a word's direction, an arrow of length 1 in 16 dimensions, falls on the
# plane in which the trained words differ most. Before: random. After: three heaps. The gray dots are all the other
# words: verbs, the rest of the phrases, and the people, who all visit, eat and feed. Fourteen dimensions are hidden,
# so trust numbers more than the map: the mean cosine between words of one group, and between words of different
# groups. They are the two curves beside the map below.
#
# The orange curve rises before it falls: after 600 pairs *all* words run the same way. *Why?* Drag through the training,
# think, then unfold.

# %%
explore.training(history, words)

# %% [markdown]
# <details><summary>Answer</summary>
#
# Five of six pairs are strangers. So the fastest way to be less surprised is to say no to everything: all center vectors
# go to one side, all neighbor vectors to the other (their mean cosine reaches −0.87). Then each true pair, still judged
# false, pulls hard, and words with different neighbors are drawn apart. (With one stranger for each true pair nothing
# runs to one side.)
#
# </details>
#
# **Predict before you run.** What becomes of the words if only the pull acts? And if only the push does?


# %%
def only_pull(center, context, negatives):
    d_center, d_context, d_negatives = forces(center, context, 0 * negatives)
    return d_center, d_context, 0 * d_negatives


def only_push(center, context, negatives):
    d_center, d_context, d_negatives = forces(center, 0 * context, negatives)
    return d_center, 0 * d_context, d_negatives


tried = {"both": history}
for name, force in (("only the pull", only_pull), ("only the push", only_push)):
    tried[name] = word2vec.train(sentence_ids, len(words), torch.Generator().manual_seed(1), force)
figures.forces_alone(tried, pairs)

# %% [markdown]
# <details><summary>Answer</summary>
#
# With the pull alone nothing ever says no. True pairs look true (0.95), and so does nearly everything else (0.79 for a
# random pair). With the push alone nothing flies apart: center vectors and neighbor vectors form two opposite heaps,
# which is the best way to disagree with everybody. All words are then alike, and every pair looks false. It takes both
# forces to tell true pairs from false ones. The pull alone does sort the words, but less well: with it the nearest word
# of 12 of the 15 nouns is one of their own group, with both forces it is so for all 15. (Two more trainings from other
# random numbers gave 0.95 and 0.82, 0.94 and 0.77, and 14 and 12 nouns, with the pull alone, and the same two heaps with
# the push alone.)
#
# </details>
#
# ### Exercise 1.8 `fixed_neighbors`
#
# **Find the bug** · Difficulty 3 of 5 · Importance 3 of 5 · 8 minutes · 10 points
#
# `fixed_neighbors(table, k) -> LongTensor (V, k)`: for each row of a table `(V, D)` the ids of the k *other* rows with the
# largest cosine, best first; no row is zero and k < V. Two different words may have the same row.
#
# You find this function, or one like it, in many notebooks and search programs. It runs, and on vectors of equal
# length it is right. One line does not do what its comment says. Find it, and write the function correctly.
#
# ```python
# def neighbors(table, k):
#     unit = table / table.norm()            # every row gets length 1
#     similarity = unit @ unit.T             # (V, V): cosines
#     similarity.fill_diagonal_(-math.inf)   # a word is no neighbor of itself
#     return similarity.topk(k).indices      # (V, k)
# ```
#
# Here it is at work on the table that you have just trained:


# %%
def published_neighbors(table, k):
    unit = table / table.norm()  # (V, D)
    similarity = unit @ unit.T  # (V, V)
    similarity.fill_diagonal_(-math.inf)
    return similarity.topk(k).indices  # (V, k)


some = [words.index(word) for word in ("africa", "dessert", "cat")]
for word, row in zip(some, published_neighbors(trained, 3)[some].tolist(), strict=True):
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
# Print the lengths of the rows of `unit`. Do they agree with the comment?
#
# </details>
# <details><summary>Hint 2</summary>
#
# What is the norm of a whole matrix? Which argument from lesson 0 tells a reduction the axis to work along, and which keeps
# that axis for the division?
#
# </details>

# %%
near = or_given(fixed_neighbors)(trained, 3)  # (V, 3)
for word in some:
    print(f"{words[word]:8} is near", [words[i] for i in near[word].tolist()])
hub = words.index("by")
yours, published = (int((found == hub).sum()) for found in (near, published_neighbors(trained, 3)))
print(f"by is a neighbor of {yours} words by your function, of {published} by the published one")
print(f"the length of by is {trained[hub].norm():.1f}, that of africa {trained[some[0]].norm():.1f}")

# %% [markdown]
# By your function, each of the fifteen nouns has a noun of its own group as its nearest neighbor. By the published one, only
# four do in this training (and none in two others), and *by* turns up as a neighbor of twelve words instead of none: it has a
# long vector, so its dot products are large. Nothing raises an error, and the table is the same. Only the reading is
# wrong.
#
# *Where the intuition stops.* Near does not mean "same meaning". It means "replaceable in these windows". *Hot* and
# *cold* keep the same company too. And each word has one vector, whatever sentence it is in: the *bank* of the river
# and the *bank* with the money share a row. Mending that is what attention is for.

# %% [markdown]
# ### Exercise 1.9 `skipgram_pairs`
#
# **Extra** · Difficulty 2 of 5 · Importance 2 of 5 · 8 minutes · 8 bonus points
#
# Which pairs are true pairs? So far you have used the course's list. Here is how it is made:

# %%
figures.windows("jane visits africa by train".split(), window=2)

# %% [markdown]
# `skipgram_pairs(ids, window) -> list[(center, context)]`
#
# `ids` is a list or a LongTensor. The pairs are tuples of Python ints, by center position, then by context position. A
# context is at most `window` positions away, on either side. A position is never its own context (an equal id elsewhere
# is). Window 0 gives `[]`. For example, `skipgram_pairs([7, 8, 9], 1)` gives `[(7, 8), (8, 7), (8, 9), (9, 8)]`.


# %% nbgrader={"solution": "skipgram_pairs"}
def skipgram_pairs(ids, window):
    """True pairs of word2vec, as (center, context) tuples of Python ints; ids: a list or LongTensor
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
# Two loops over positions, not over words: the same word may come twice.
#
# </details>
# <details><summary>Hint 2</summary>
#
# Where does the window begin and end near the edges of the sentence? Remember that `range` leaves its end out, and that
# a negative index counts from the back.
#
# </details>
#
# The whole text through your function, sentence by sentence:

# %%
experiments.pairs_of_the_text(skipgram_pairs, sentence_ids, 2)

# %% [markdown]
# ### Exercise 1.10 `negative_sampling_loss`
#
# **Extra** · Difficulty 3 of 5 · Importance 3 of 5 · 10 minutes · 10 bonus points
#
# The loss whose gradients you wrote, for a whole batch: `negative_sampling_loss(center, context, negatives) -> scalar` for
# `(B, D)`, `(B, D)`, `(B, K, D)`, K ≥ 1
#
# $$\frac1B\sum_{b}\Bigl[-\log\sigma(c_b\cdot o_b)-\sum_{k}\log\sigma(-c_b\cdot n_{bk})\Bigr]$$
#
# Exact, with exact gradients, also for dot products of ±100, in float32 as in float64. In float32 σ(−100) is 0 as far
# as a computer can tell, and its logarithm −∞, but the loss of such a pair is a plain 100 or (almost) 0.


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
# First all the dot products: (B,) for the neighbors, (B, K) for the strangers. Mind dimensions of size 1.
#
# </details>
# <details><summary>Hint 2</summary>
#
# The log and the sigmoid must be taken in one step. PyTorch has such a function, or write −log σ(x) as log(1 + e^(−x))
# and think about large |x|.
#
# </details>
#
# No loss was computed while your forces trained the table: they are its slopes, and slopes are all that is needed. Now
# look back at what it was. *At the start all neighbor vectors are zero, so every one of the six pairs looks true with 1/2.
# What is the loss there?*

# %%
experiments.loss_along_the_way(negative_sampling_loss, history, pairs)

# %% [markdown]
# <details><summary>Answer</summary>
#
# Six times ln 2 = 0.693, which is 4.159. It falls to 1.77 here and not to 0: strangers are drawn from the same text, and
# three of ten are true neighbors of that very word in some sentence.
#
# </details>

# %% [markdown]
# ## Words that are not in the vocabulary: subwords
#
# Your `encode` stops at a word it does not know. The vocabulary of English has no end: names, endings, typos. One
# way out is an `[UNK]` token for everything unknown; but then *desserts* is as unknown as *xqzt*. Letters as tokens would know
# everything, but make long sequences of pieces that mean nothing. Real models take the middle way: whole words for what is frequent,
# pieces for the rest. A piece that continues a word is written with `##` in front:

# %%
pieces = ["apples", "pine ##apple ##s", "un ##for ##get ##table", "un ##ha ##pp ##iness"]
figures.cuts({"".join(cut.split()).replace("##", ""): cut.split() for cut in pieces})

# %% [markdown]
# These are the cuts of BERT's **WordPiece** vocabulary, which the model of lesson 13 uses too. The rule
# is greedy: take the longest piece that the word begins with, then the longest that its rest begins with, and so on.
# It knows nothing of grammar. *unforgettable* ends with a `##table`. And *unhappiness* is not cut into *un* and
# *happiness*: `happiness` is in the vocabulary, but `##happiness`, the piece that could *continue* a word, is not.
#
# <details><summary>What a real tokenizer does around this cut</summary>
#
# The tokenizer of this BERT, the *uncased* one, first puts the text into lower case, takes accents off, and makes every
# punctuation mark a token of its own. Then each word is cut as above, and two special tokens are added: *Life is short, eat dessert first*
# becomes `[CLS] life is short , eat dessert first [SEP]`. Decoding joins pieces wherever there is a `##`; capitals
# and the exact spaces are lost. GPT-2's tokenizer loses nothing: it cuts bytes instead of letters, by merging the
# pairs that were most frequent in its training text (*byte-pair encoding*), and a space belongs to the token after
# it. With the `tokenizers` library (not needed in this course) you can look at both.
#
# </details>

# %%
known = pretrained.wordpiece_vocab()  # all 30,522 pieces where the model is at hand, else some
for piece in ["apples", "##apple", "happiness", "##happiness", "dessert", "desserts", "##s"]:
    print(f"{piece:>12}  {'in the vocabulary' if piece in known else '-'}")

# %% [markdown]
# ### Exercise 1.11 `wordpiece`
#
# **Extra** · Difficulty 3 of 5 · Importance 3 of 5 · 12 minutes · 10 bonus points
#
# `wordpiece(word, vocab, unk="[UNK]") -> list[str]`
#
# - Greedy, longest match first. The first piece is looked up as it is, each later one with `##` in front.
# - Never goes back: if the greedy cut gets stuck, the answer is `[unk]`, even if another cut would have worked.
# - No length limit; the case is kept; the word is not empty. `vocab` is a set or a dictionary.
#
# By hand, with `{"un", "##aff", "##affable", "##able"}`: *unaffable* gives `["un", "##affable"]`. Take `##affable` away:
# the longest piece after `un` is now `##aff`, then `##able`.


# %% nbgrader={"solution": "wordpiece"}
def wordpiece(word, vocab, unk="[UNK]"):
    """Greedy longest-match-first pieces of a word, as in BERT; [unk] where the cut gets stuck.

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
# Keep the place where the rest of the word begins. From there try the longest stretch, then one letter less, and so on.
# What if not even one letter fits?
#
# </details>
# <details><summary>Hint 2</summary>
#
# Two loops, one inside the other: the outer one runs until nothing of the word is left, the inner one makes the stretch
# shorter. Python's `for` can have an `else`, which runs when the loop ended without `break`.
#
# </details>
#
# Your cut on words of your choice:

# %%
experiments.cuts(wordpiece, known, "unforgettable", "pineapples", "translators", "dessertspoon")

# %% [markdown]
# ## At work
#
# Your functions in the course's translator. `embed` takes its place at the entrance, and the loss is measured with it. `encode`
# numbers the sentence below. `cosine_similarity` is no part of the network at all: it reads its table, 166 rows of 64 numbers
# that were learned by translating, and finds the nearest words. Your `fixed_neighbors` then finds them on the same table.

# %%
at_work(encode, embed, cosine_similarity)

# %%
at_work(fixed_neighbors)

# %% [markdown]
# Some of the nearest words are what one would guess: *africa* lies near *germany* and *asia*, *in* near
# *to*. Others are not: *visits* lies near *peru* and *canada*, which can follow it. This table was not trained on
# company but on translation, and the blocks above it can still tell apart what lies close here.
#
# **Predict before you run.** Now two bugs. The first is the one you mended, on this table. The second comes from a
# well-known language model in a hundred lines, min-char-rnn (see *Further reading*), which numbers its characters by
# `list(set(data))`. A `set` of strings has no fixed order; it changes from one run of Python to the next. So a table
# that was trained yesterday meets ids that were given out today. *Which of the two does the translation notice?*

# %%
at_work(fixed_neighbors=published_neighbors)


# %%
today = torch.randperm(len(translator.english), generator=torch.Generator().manual_seed(0))  # (166,)


def other_numbers(ids, table):
    return table[today[ids]] if len(table) == len(today) else table[ids]  # (..., D), the wrong English rows


at_work(embed=other_numbers)

# %% [markdown]
# <details><summary>Answer</summary>
#
# The first bug leaves the translation as it was, because nothing in the network asks for neighbors. It changes the nearest
# neighbor of a quarter of the words: much less than in your table (37 of 42). Your rows differ twice as much in length, and
# they are crowded: a typical word's best cosine is 0.99 and its second 0.98 (in the translator 0.46 and 0.43), so that a
# little length turns the order around. The second destroys everything: 9.25 nats a word instead of 0.00016, and not one sentence right. (Nats measure
# surprise: $-\ln p$ of the right word, on average.) Both run without an error.
#
# </details>

# %% [markdown]
# ### Quiz 1.1
#
# `ids` has shape (2, 5), the vocabulary 7 words, the table shape (7, 3). What is the shape of the one-hot tensor that is
# multiplied with the table?
#
# - **a** (5, 7)
# - **b** (2, 5)
# - **c** (2, 5, 7)
# - **d** (2, 5, 3)

# %% nbgrader={"solution": "quiz_1"}
quiz_1 = None  # "a", "b", "c" or "d"
### BEGIN SOLUTION
quiz_1 = "c"
### END SOLUTION

# %% nbgrader={"grade": "quiz_1"}
check(quiz_1=quiz_1)

# %% [markdown]
# ### Quiz 1.2
#
# *cat* and *dog* never occur in the same sentence of our text. Why are their vectors close?
#
# - **a** Because skip-gram pulls *cat* directly to *dog*.
# - **b** Because both are pulled to the same neighbors.
# - **c** Because both words mean animals, and the vectors start from the meaning.
# - **d** Because their ids are close in the vocabulary.

# %% nbgrader={"solution": "quiz_2"}
quiz_2 = None  # "a", "b", "c" or "d"
### BEGIN SOLUTION
quiz_2 = "b"
### END SOLUTION

# %% nbgrader={"grade": "quiz_2"}
check(quiz_2=quiz_2)

# %% [markdown]
# ### Quiz 1.3
#
# BERT's vocabulary holds `un`, `una`, `##ffa`, `##ble` and many more pieces, but neither `unaffable` nor any longer
# beginning of that word. How is *unaffable* cut?
#
# - **a** una ##ffa ##ble
# - **b** un ##affable
# - **c** [UNK]

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
# *15 points, graded by hand, 10 minutes, six to ten sentences.*
#
# A notebook on self-attention says: "Interestingly, the dot product of current token query and some other token key is a
# cosine similarity! So, it's going to attend to tokens which have similar keys …" Judge this sentence.
#
# First, when is it true, and when do dot product and cosine at least agree on the *order* of the candidates? Second, give
# one vector a and two candidates in the plane, other than those of this lesson, for which they disagree, with all four
# numbers. Third, in our word2vec game, what makes a vector long? Which kind of word would turn up as everybody's neighbor
# if a search engine ranked by dot product, and could that ever be what you want?
#
# <details><summary>For those who learn alone: what a good answer has</summary>
#
# - The condition for the same *number* (product of lengths 1, right angles aside) and the weaker one for the same *order* (candidates of equal
#   length; the query's length does not matter).
# - An example of your own with two dot products and two cosines that you have checked.
# - A reason for length in terms of forces that agree or cancel, and one case where length is welcome.
#
# </details>

# %% [markdown] nbgrader={"written": "written_1"}
# <details><summary>Model answer and marking scheme</summary>
#
# **Model answer.** First: a·b = ‖a‖‖b‖ cos, so the two numbers are equal exactly when ‖a‖‖b‖ = 1 (or the vectors are at
# right angles), for example when all vectors have length 1. For one fixed query the factor ‖a‖ is shared by all
# candidates, so the order is the same as soon as all candidates have equal length; the query's own length does not
# matter. In general neither holds: the sentence is wrong as it stands, because queries and keys are not normalized.
#
# Second: for example a = (0, 2), b₁ = (0, 1), b₂ = (4, 3). Dot products 2 and 6, so b₂ wins. Cosines 1 and 0.6, so b₁
# wins.
#
# Third: each pull adds a multiple of the neighbor's vector, each push subtracts one. A vector grows long when many
# forces agree: a word that is met often, in the same company. Pulls that contradict each other cancel, so a word that
# keeps all sorts of company stays short in spite of its frequency. (In our table *in*, *for* and *by* are longest,
# above 3.1, and *jane* and *she* shortest, below 1.8, though they are met three times as often as *africa*, 1.9.) By
# dot product, long vectors win against many queries: frequent words of a clear kind become everybody's neighbors
# (hubs). That is welcome if length carries something useful, such as popularity in a shop's search or confidence, and
# attention uses it: a key may answer loudly. It is not welcome when "alike" is meant.
#
# **Marking scheme (15).** First part: equal only for lengths of product 1 (2), same order if the candidates have equal
# length (2), the query's length is irrelevant for the order or the sentence is clearly judged wrong in general (1). Second:
# a valid example (3) with four right numbers (2). Third: a reason tied to the pull and push, such as frequency or forces
# that agree (2), names long or frequent words as hubs (2), one case where length is wanted (1). An answer that argues
# otherwise and gives evidence, such as a measurement on `history`, gets full marks for its part.
#
# </details>

# %% [markdown]
# ## From the notes this course grew from
#
# <details><summary>Two loose sentences about similarity, a vocabulary in one line, and where pull and push come from</summary>
#
# - **"The dot product … is a cosine similarity!"**, in a notebook made from Sebastian Raschka's
#   [Self-attention from scratch](https://sebastianraschka.com/blog/2023/self-attention-from-scratch.html): the same number
#   only where the two lengths have product 1 (or at a right angle, where both are 0), and surely the same ranking only
#   among candidates of equal length. The written question is about this sentence.
# - **"The inner vector product is interpreted as a vector projection"**, in notes on the Transformer's parts (after
#   [AI Summer](https://theaisummer.com/attention/)) that go on to write the cosine as 1/s times a·b. The projection is a·b divided by one length, and s is the product of two
#   lengths, so it is another number for every pair and cannot be pulled out as one constant.
# - **The vocabulary in one line** is the same notebook's. It is right for its own sentence, *Life is short, eat dessert
#   first*, whose 6 × 16 numbers for seed 123 you have reproduced.
# - **Pull and push.** An answer on Stack Exchange about where queries and keys come from (lesson 3) points to word2vec's negative sampling and to
#   GE2E's centroids in one breath (Figure 1.5). Two differences: GE2E is told who is speaking, while word2vec gets its
#   truth from the text for free; and the first of GE2E's two losses, the one in the figure, lets the candidates compete in
#   one softmax, where word2vec judges each pair by itself. (The second takes a sigmoid of each pair, and of the strangers
#   only the nearest.) The softmax is the step from here to attention.
# - **What the lesson found.** With the push alone nothing flies apart: the vectors form two opposite heaps.
#
# </details>
#
# ## Recap
#
# - A sentence becomes tokens, tokens become ids by a vocabulary in a fixed order.
# - An id is a name. One-hot gives each name an axis; one-hot times a table **is** a row lookup, and the table is learned.
# - The dot product is shadow times length. The cosine sees direction only. They agree on the order when lengths are equal.
# - word2vec pulls true pairs together and pushes strangers apart, each by what its probability lacks. Words that share
#   company end up near each other. The pull alone makes nearly every pair look true, the push
#   alone every pair false.
# - Real models cut rare words into pieces, greedily.
#
# `progress()` in a new cell shows what you have done so far, over all lessons (`from helpers import progress`).
#
# ## Further reading
#
# - Mikolov et al., [Distributed Representations of Words and Phrases and their
#   Compositionality](https://arxiv.org/abs/1310.4546) (2013): negative sampling, in section 2.2.
# - Wan et al., [Generalized End-to-End Loss for Speaker Verification](https://arxiv.org/abs/1710.10467) (2018): centroids.
# - Devlin et al., [BERT](https://arxiv.org/abs/1810.04805) (2019), and Wu et al.,
#   [Google's Neural Machine Translation System](https://arxiv.org/abs/1609.08144) (2016), section 4.1: WordPiece.
# - Sennrich, Haddow and Birch, [Neural Machine Translation of Rare Words with Subword
#   Units](https://arxiv.org/abs/1508.07909) (2016): byte-pair encoding.
# - Andrej Karpathy, [min-char-rnn.py](https://gist.github.com/karpathy/d4dee566867f8291f086): the hundred lines with
#   `list(set(data))`.
# - Sebastian Raschka, [Understanding and Coding the Self-Attention Mechanism from
#   Scratch](https://sebastianraschka.com/blog/2023/self-attention-from-scratch.html): the walk-through whose six vectors
#   you have seen.
# - Pascal Poupart, [CS480/680 Lecture 19: Attention and Transformer
#   Networks](https://www.youtube.com/watch?v=OyFJWRnt_AY).
#
# The six vectors have lost something. Shuffle the words, and each still has the same vector: *jane visits africa* and
# *africa visits jane* are the same bag of rows.
#
# **Next:** [lesson 2](../02_position/02_position.ipynb) gives every token its place.
