# %% [markdown]
# # 7. Value weighting: one head
#
# **Goal:** put the pieces together: a whole attention head of your own, what its output accumulates and what it loses,
# and the head run backward by hand and forward in little memory.
#
# **Time:** about 150 minutes, sixty of them for the two extras. A good place for a break is after exercise 7.4.

# %% tags=["setup"]
# (empty: the build puts the set-up cell here)

# %%
import math

import torch
from torch import nn

from helpers import at_work, check, or_given
from helpers.drawing.transformer_map import transformer_map
from helpers.lessons.value_weighting import explore, figures

# %%
transformer_map("07_value_weighting")

# %% [markdown]
# Lessons 3 to 6 made the weights: scores, their scale, their mask, their softmax. Today they meet the values, and the
# first whole part of the network is done: one head.
#
# $$\text{Attention}(Q, K, V) = \underbrace{\text{softmax}\!\left(\frac{QK^\top}{\sqrt{d_k}}\right)}_{\text{where to
# look}}\;\underbrace{V}_{\text{what to get}}$$

# %% [markdown]
# ## You need
#
# - scores and their scale: [lesson 3](../03_query_key/03_query_key.ipynb), [lesson 4](../04_scaling/04_scaling.ipynb);
# - masks, and rows that see nothing: [lesson 5](../05_masking/05_masking.ipynb);
# - softmax, and its gradient for one of the extras: [lesson 6](../06_softmax/06_softmax.ipynb).
#
# The finished pieces of those lessons, `from helpers.blocks import ...`, may be used in your answers:
#
# | piece | gives |
# |---|---|
# | `scaled_scores(Q, K)` | scores over the root of the width, `(..., T_q, T_k)` |
# | `masked_softmax(scores, mask)` | weights `(..., T_q, T_k)`, zeros where a row sees nothing; the mask is no option |
# | `softmax(x, dim=-1)` | shares along one dimension |
# | `softmax_backward(p, grad)` | the gradient at the scores from the gradient at the shares |
#
# Two questions to warm up. Answer before you unfold.
#
# <details><summary>Lesson 5: one row of a mask is False everywhere. What does softmax make of that row if blocked scores
# become −∞, and what do we want instead?</summary>
#
# NaN: it divides 0 by 0. We want zeros. A query that may see nothing gets nothing, and passes no NaN on to others.
#
# </details>
#
# <details><summary>Lesson 6: all scores of a row are equal, and there are T keys. What are the weights?</summary>
#
# 1/T each. Only differences of scores count.
#
# </details>
#
# <details><summary>Conventions (the same in every lesson)</summary>
#
# - **Shapes:** `B` batch, `H` heads, `T` tokens (`T_q` queries, `T_k` keys), `D` model width, `d_k`, `d_v` head
#   widths, `V` vocabulary. `...` stands for any leading dimensions, none included.
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
#
# In this lesson masks broadcast to `(..., T_q, T_k)`. `F.scaled_dot_product_attention` is forbidden where an exercise
# says so, autograd in the first extra; `torch.softmax` is allowed everywhere.

# %% [markdown]
# ## A bag of words, weighted
#
# Our sentence is *jane visits africa in september*; its first three words are enough for now. Suppose *visits* has
# decided where to look: a quarter at *jane*, a quarter at itself, half at *africa*. What does it get? Every word holds
# out a **value**, a vector with what it has to say. Let it have three channels here: person, action, place.
#
# | word | weight | value (person, action, place) | weight × value |
# |---|---|---|---|
# | jane | ¼ | (2, 0, 0) | (½, 0, 0) |
# | visits | ¼ | (0, 1, 1) | (0, ¼, ¼) |
# | africa | ½ | (0, 0, 4) | (0, 0, 2) |
# | **sum** | 1 | | **(½, ¼, 2¼)** |
#
# It is a bag of words in which each word counts as much as it matters to *visits*. The sum is the **attention value**,
# or **context vector**, of *visits*.

# %%
weights = torch.tensor([[0.25, 0.25, 0.5]])  # (T_q=1, T_k=3)
V = torch.tensor([[2.0, 0, 0], [0, 1, 1], [0, 0, 4]])  # (T_k=3, d_v=3)
figures.bag_of_words(weights[0], V, figures.JANE, ["person", "action", "place"])

# %% [markdown]
# ### Exercise 7.1 `weighted_values`
#
# Difficulty 1 of 5 · Importance 5 of 5 · 4 minutes · 8 points
#
# All queries at once. Row $i$ of the weights belongs to query $i$:
#
# $$\text{out}_i = \sum_j w_{ij}\, v_j$$
#
# `weights (..., T_q, T_k)`, `V (..., T_k, d_v)` → `(..., T_q, d_v)`. Take the weights as they come, even if a row does
# not add up to 1.
#
# <details><summary>Think first: with T_q = 5, T_k = 7 and d_v = 3, which axis is summed away, and what is left?</summary>
#
# The keys, 7 of them: each weight meets the value of its own key. What is left is (5, 3), a row for each query.
#
# </details>


# %% nbgrader={"solution": "weighted_values"}
def weighted_values(weights, V):
    """Every query's weighted sum of the values: the second matrix product of attention.

    weights (..., T_q, T_k), V (..., T_k, d_v), float32 or float64
    -> (..., T_q, d_v), same dtype.
    """
    ### BEGIN SOLUTION
    return weights @ V  # (..., T_q, d_v)
    ### END SOLUTION


# %% nbgrader={"grade": "weighted_values"}
check(weighted_values)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# Write the two shapes side by side. One axis appears in both, in the middle.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# A row of numbers times a table is a weighted sum of the table's rows. Try it on the example above: (¼, ¼, ½) has to
# give (½, ¼, 2¼).
#
# </details>

# %% [markdown]
# ## What does the context vector accumulate?
#
# A well-known walk-through of self-attention takes six words, *Life is short, eat dessert first*, as far as this step.
# One of its readers multiplied each value by its weight, summed the columns, and could not say what they accumulate. Let
# us make the numbers in that reader's notes and find out. Embeddings have width 16, queries and keys 24, values 28; all are random.

# %%
torch.manual_seed(123)
tokens = ["Life", "is", "short", "eat", "dessert", "first"]
embedding = nn.Embedding(6, 16)
W_query, W_key = torch.rand(24, 16), torch.rand(24, 16)  # (d_k, D) each
W_value = torch.rand(28, 16)  # (d_v, D)
x = embedding(torch.tensor([0, 4, 5, 2, 1, 3])).detach()  # (T=6, D=16)

# %%
query_is = W_query @ x[1]  # (24,)
keys, values = x @ W_key.T, x @ W_value.T  # (6, 24), (6, 28)
weights_is = torch.softmax(keys @ query_is / 24**0.5, dim=0)  # (6,)
context_is = weights_is @ values  # (28,)
print("weights", " ".join(f"{number:.4f}" for number in weights_is.tolist()))
torch.set_printoptions(precision=4, linewidth=80)
print("context", context_is)

# %%
figures.context_range(weights_is, values, tokens)

# %% [markdown]
# **First answer: an average, channel by channel.** Above are the six values as they are, below the range that they
# span in each channel, and the context vector in it. Weights are not negative and add up to 1, so the star never
# leaves its bar. No channel ever meets another one.
#
# A word that is more related adds more, but the weights add up to 1: if one word counts more, the others count less.
#
# **Second answer: a bag has no order.** Shuffle the words, keys and values together, and the sum is the same. Who came
# first is not in it, unless positions were added to the embeddings ([lesson 2](../02_position/02_position.ipynb)).

# %%
order = torch.tensor([3, 0, 5, 1, 4, 2])  # (T,)
shuffled = torch.softmax(keys[order] @ query_is / 24**0.5, dim=0) @ values[order]  # (28,)
print(f"largest difference {(shuffled - context_is).abs().max().item():.1e}")

# %% [markdown]
# **Third answer: words, not channels.** Mix the *embeddings* with the same weights and send the one mixture through
# $W_V$:
#
# $$\sum_j w_j\,(W_V x_j) = W_V \Big(\sum_j w_j x_j\Big)$$
#
# **Predict before you run.** How far is that from the context vector?

# %%
mixture = weights_is @ x  # (16,): 64 % eat, 18 % short, 13 % dessert, ...
print(f"largest difference {(W_value @ mixture - context_is).abs().max().item():.1e}")

# %% [markdown]
# <details><summary>Answer</summary>
#
# No distance at all: what is left is rounding. A matrix may be applied before the sum or after it.
#
# </details>
#
# So the context vector of *is* is the value of a word that no dictionary has: 64 % *eat*, 18 % *short*, 13 %
# *dessert*, 3 % *is*, 2 % *Life*, 1 % *first*. **It accumulates shares of words, seen through $W_V$.**
#
# **Fourth answer: what is lost.** Can one read the recipe back from the cake? Here yes: six unknown shares, 28
# equations.

# %%
shares = torch.linalg.lstsq(values.T, context_is[:, None]).solution[:, 0]  # (6,)
print("recovered:", " ".join(f"{share:.4f}" for share in shares.tolist()))

# %% [markdown]
# All six weights come back, because the six values are independent. A head of width $d_v$ has room for at most $d_v$
# independent ones. In a text of 1000 words and a head of width 64, very different recipes give the same cake: a head
# is a summary. That is one reason to have several heads (lesson 8).
#
# Now three values as three points in a plane. The context vector is a point in the triangle between them. Move the
# scores.

# %%
explore.mixing()

# %% [markdown]
# <details><summary>Which scores put the star in a corner? On an edge? Can it ever get out?</summary>
#
# One score far above the others puts it in that word's corner (at +6 against −6 the weight is 0.99999). Two high
# scores and one very low one put it on the edge between the two. It cannot get out: that would take a negative weight,
# or weights that do not add up to 1.
#
# </details>

# %% [markdown]
# ## Where to look, what to get
#
# Keys decide where a query looks, values are what it gets. The whole formula in four steps:
#
# | step | shape | from |
# |---|---|---|
# | $S = QK^\top/\sqrt{d_k}$ | `(..., T_q, T_k)` | lessons 3, 4 |
# | blocked scores to $-\infty$ | `(..., T_q, T_k)` | lesson 5 |
# | $W = \text{softmax}(S)$ along the keys | `(..., T_q, T_k)` | lesson 6 |
# | $WV$ | `(..., T_q, d_v)` | exercise 7.1 |
#
# The two jobs are separate. Double $V$: the weights do not move, the output doubles. Change $Q$: the output moves, but
# only among mixtures of the same values.
#
# **Predict before you run.** Four queries, three keys, values (1, 0), (0, 2), (2, 4). Somebody sets *all queries to
# zero vectors*. What are the four rows of the output? Write them down first.

# %%
Q, K = torch.zeros(4, 6), torch.randn(3, 6)  # (T_q=4, d_k=6), (T_k=3, d_k=6)
V = torch.tensor([[1.0, 0], [0, 2], [2, 4]])  # (T_k=3, d_v=2)
torch.softmax(Q @ K.T / 6**0.5, dim=-1) @ V  # (4, 2)

# %% [markdown]
# <details><summary>Answer</summary>
#
# Four times (1, 2), the plain average, whatever the keys are: all scores are 0, so all weights are ⅓. That is
# attention at its least attentive. The other end is a query that fits one key only: it gets that value alone, and you
# are back at `hard_lookup` of lesson 3.
#
# </details>

# %% [markdown]
# ### Exercise 7.2 `attention`
#
# Difficulty 3 of 5 · Importance 5 of 5 · 15 minutes · 22 points
#
# The whole formula, with a mask. Return the output *and* the weights, as a tuple `(out, weights)`.
#
# - `Q (..., T_q, d_k)`, `K (..., T_k, d_k)`, `V (..., T_k, d_v)` → `out (..., T_q, d_v)`, `weights (..., T_q, T_k)`
# - `mask` is None or boolean, True = may attend, and broadcasts to `(..., T_q, T_k)`: it may be `(T_q, T_k)`, `(B, 1,
#   T_k)`, `(T_k,)` or anything else that does.
# - A row that sees nothing has zero weights and zero output. No NaN, in values or in gradients.
# - Right for scores up to ±10,000, those two numbers included.
#
# Forbidden: `F.scaled_dot_product_attention`.


# %% nbgrader={"solution": "attention"}
def attention(Q, K, V, mask=None):
    """Scaled dot-product attention, eq. 1 of Vaswani et al. (2017), with a mask.

    Q (..., T_q, d_k), K (..., T_k, d_k), V (..., T_k, d_v), float32 or float64;
    mask None or bool that broadcasts to (..., T_q, T_k), True = may attend
    -> (out (..., T_q, d_v), weights (..., T_q, T_k)), same dtype.
    Scores up to 1e4 in size. A row that sees nothing is zero in both.
    """
    ### BEGIN SOLUTION
    scores = Q / Q.shape[-1] ** 0.5 @ K.transpose(-2, -1)  # (..., T_q, T_k); fewer numbers are divided
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = torch.softmax(scores, dim=-1)  # (..., T_q, T_k), NaN where a row sees nothing
    if mask is not None:
        weights = weights.masked_fill(~mask, 0.0)
    return weighted_values(weights, V), weights
    ### END SOLUTION


# %% nbgrader={"grade": "attention"}
check(attention)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# Four steps, in the order of the table above. The mask comes before the softmax, or the blocked keys keep their share
# of the 1. The finished pieces of lessons 4 to 6, which *You need* lists, may be imported.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Rows that see nothing are the same problem as `masked_softmax` in lesson 5. There are two good places to step in:
# after the softmax, set what is blocked to zero once more; or before it, use a very low finite number and clean up
# later. Both keep gradients clean. Adding −∞ to the scores does not.
#
# </details>

# %% [markdown]
# ## One head
#
# A head owns three linear maps. It reads tokens of the model's width $D$ and makes queries, keys and values of its own
# width. Take B = 4 sentences of T = 8 tokens, model width C = 32 and head size 16, the sizes of Andrej
# Karpathy's lecture.
#
# **Predict before you run.** Which shapes do the scores and the output have? How many numbers does the head learn, and how many more
# for sentences twice as long?
#
# <details><summary>Answer</summary>
#
# Scores (4, 8, 8), output (4, 8, 16). It learns 3 · 32 · 16 = 1536 numbers, and not one more for longer sentences: no
# weight matrix has an axis for tokens.
#
# </details>

# %%
figures.head_shapes(4, 8, 32, 16)

# %%
torch.manual_seed(1337)
B, T, C, head_size = 4, 8, 32, 16
Wk, Wq = nn.Linear(C, head_size, bias=False), nn.Linear(C, head_size, bias=False)
Wv = nn.Linear(C, head_size, bias=False)
batch = torch.randn(B, T, C)  # (4, 8, 32)

# %%
causal = torch.ones(T, T, dtype=torch.bool).tril()  # (8, 8)
scores = Wq(batch) @ Wk(batch).transpose(-2, -1) / head_size**0.5  # (4, 8, 8)
similarity = torch.softmax(scores.masked_fill(~causal, float("-inf")), dim=-1)  # (4, 8, 8)
attention_value = similarity @ Wv(batch)  # (4, 8, 8) @ (4, 8, 16)
attention_value.shape

# %% [markdown]
# (4, 8, 16): four sequences, eight tokens, sixteen channels for each. The first token of each sequence sees only
# itself, so its attention value is its own value.
#
# This head is narrower than the model, as heads are. Nothing forces it: in *Life is short* the values were wider (28)
# than the tokens (16).

# %% [markdown]
# ### Exercise 7.3 `AttentionHead`
#
# Difficulty 2 of 5 · Importance 5 of 5 · 10 minutes · 20 points
#
# Make it a module. `AttentionHead(d_model, d_head)` has three layers `W_q`, `W_k`, `W_v`, each an `nn.Linear` from `d_model` to
# `d_head` **without bias**.
#
# $$\text{AttentionHead}(x) = \text{Attention}(x W_Q^\top,\; x W_K^\top,\; x W_V^\top)$$
#
# `forward(x, mask=None)`: `x (..., T, d_model)` → `(..., T, d_head)`. The output alone, not the weights. The mask
# broadcasts to `(..., T, T)`; without one every token sees every token. A row that sees nothing: zeros. Any number of
# tokens T; no dropout.
#
# Forbidden: `F.scaled_dot_product_attention`.


# %% nbgrader={"solution": "AttentionHead"}
class AttentionHead(nn.Module):
    """One head of self-attention: three linear maps without bias, then attention.

    d_model, d_head: int.
    forward(x (..., T, d_model), mask None or bool that broadcasts to (..., T, T))
    -> (..., T, d_head), same dtype; a row that sees nothing is zero.
    """

    def __init__(self, d_model, d_head):
        super().__init__()
        ### BEGIN SOLUTION
        self.W_q = nn.Linear(d_model, d_head, bias=False)
        self.W_k = nn.Linear(d_model, d_head, bias=False)
        self.W_v = nn.Linear(d_model, d_head, bias=False)
        ### END SOLUTION

    def forward(self, x, mask=None):
        ### BEGIN SOLUTION
        out, _ = attention(self.W_q(x), self.W_k(x), self.W_v(x), mask)
        return out  # (..., T, d_head)
        ### END SOLUTION


# %% nbgrader={"grade": "AttentionHead"}
check(AttentionHead)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# A module has two methods. `__init__` makes the layers and keeps them as `self.` something; `forward` uses them. The
# names count: weights are loaded by name. And `nn.Linear` brings a bias along unless it is told not to.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# `forward` is one call of your own `attention`, with three projections of the same x, and the mask handed on. It gives
# you two things; pass on one.
#
# </details>

# %% [markdown]
# ## A trained head reads the sentence
#
# Your head is an empty form until it has numbers. The course's translator has been trained, and it has heads of
# exactly this kind: from model width 64 to head width 16. Take the last one of its encoder, put its numbers into
# *your* `AttentionHead`, and let it read. What comes in, `x`, are the five words as the first block of the encoder leaves them.

# %%
words = "jane visits africa in september".split()
x, numbers = figures.inside_the_translator(" ".join(words), head=3)  # (T=5, D=64), the three matrices
head = or_given(AttentionHead)(64, 16)
head.load_state_dict(numbers)
found = head(x).detach()  # (T=5, d_head=16)
figures.trained_head(numbers, x, found, words)

# %% [markdown]
# <details><summary>Read the left table row by row. What is this head for?</summary>
#
# It looks at the word before: *visits* at *jane* (0.92), *africa* at *visits* (0.71), *in* at *africa* (0.80). *Jane*
# has nobody before it and looks at itself (0.99); *september* is not sure. In lesson 3 you made matrices for that by
# hand. Here training found some, less strict ones: over 150 sentences the word before gets 0.47 of the weight on average,
# and is the first choice of 57 % of the words (in heads of random numbers 0.11 to 0.14, and 5 to 17 %).
#
# </details>
#
# Now compare the two tables of vectors. The row of *visits* on the right looks like the row of *jane* in the middle,
# with a little of its own: 92 % and 8 %.

# %% [markdown]
# ### Exercise 7.4 `fixed_head`
#
# **Find the bug** · Difficulty 2 of 5 · Importance 4 of 5 · 6 minutes · 8 points
#
# The next function does what a popular tutorial on Vision Transformers did, until readers asked (link under *Further
# reading*). It runs, it trains, its shapes are right.


# %%
def published_head(x, W_q, W_k, W_v):
    q, k, v = x @ W_q.T, x @ W_k.T, x @ W_v.T  # (..., T, d_k) twice, (..., T, d_v)
    scaling = W_q.shape[0] ** -0.5
    weights = torch.softmax(q @ k.transpose(-2, -1), dim=-1) * scaling  # (..., T, T)
    return weights @ v  # (..., T, d_v)


# %% [markdown]
# Give every token the same value, (1, 1, 1): a last channel that is 1 in each word, and a $W_V$ that reads nothing
# else. Whatever the weights are, the average of ones is one. Is it?

# %%
g = torch.Generator().manual_seed(0)
words = torch.randn(5, 16, generator=g)  # (T=5, D=16)
words[:, -1] = 1.0
some_W_q, some_W_k = torch.randn(2, 4, 16, generator=g)  # (d_k=4, D=16) each
read_last = torch.zeros(3, 16)  # (d_v=3, D=16)
read_last[:, -1] = 1.0
published_head(words, some_W_q, some_W_k, read_last)[0]

# %% [markdown]
# Find the bug, then write the head correctly, without a mask:
#
# `x (..., T, D)`, `W_q` and `W_k (d_k, D)`, `W_v (d_v, D)` → `(..., T, d_v)`. Forbidden:
# `F.scaled_dot_product_attention`. You may use earlier exercises of this lesson.


# %% nbgrader={"solution": "fixed_head"}
def fixed_head(x, W_q, W_k, W_v):
    """One head of self-attention from its three matrices, without a mask.

    x (..., T, D), W_q and W_k (d_k, D), W_v (d_v, D), float32 or float64
    -> (..., T, d_v), same dtype.
    """
    ### BEGIN SOLUTION
    q, k, v = x @ W_q.T, x @ W_k.T, x @ W_v.T  # (..., T, d_k) twice, (..., T, d_v)
    scores = q @ k.transpose(-2, -1) * W_q.shape[0] ** -0.5  # (..., T, T)
    return torch.softmax(scores, dim=-1) @ v
    ### END SOLUTION


# %% nbgrader={"grade": "fixed_head"}
check(fixed_head)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# One half came out where 1 was due, with a head of width 4. What would a head of width 64 give? What is that number in
# the code?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# The right number in the wrong place does two kinds of damage: the scores are as wide as ever when softmax meets them,
# and the shares no longer add up to 1. One move repairs both.
#
# </details>

# %% [markdown]
# The test again, on your repair:

# %%
or_given(fixed_head)(words, some_W_q, some_W_k, read_last)[0]

# %% [markdown]
# Why did nobody notice? A layer after the head can learn to multiply by √d_k, and a network that trains
# a little worse still looks like a network that trains. **A test that finds it takes one line: with equal values,
# attention must change nothing.**

# %% [markdown]
# ## How far does context move a word?
#
# *Bank* has a value of its own, and comes out of attention as a mixture. One may read the distance between the two: a
# **minimal change** means that the word keeps its meaning, a **significant change** that its meaning depends on the
# words around it, as it does for ambiguous words. Let us make an example, and then test this reading on a trained
# head.
#
# Two channels, water and money. *Bank* could be either, (1, 1); *river* is (3, 0), *loan* is (0, 3). In both phrases
# *bank* looks half at itself and half at its neighbor; the neighbors look 0.9 at themselves.
#
# | phrase | *bank* before | after | cosine | shift |
# |---|---|---|---|---|
# | river bank | (1, 1) | ½(3, 0) + ½(1, 1) = (2, ½) | 2.5 / (1.414 · 2.062) = 0.857 | 0.143 |
# | loan bank | (1, 1) | ½(0, 3) + ½(1, 1) = (½, 2) | 0.857 | 0.143 |

# %%
figures.bank()

# %% [markdown]
# (The notes speak of the *magnitude* of the change. We measure the angle, because a head that doubles all values has told
# no word apart; further down both stand side by side.)
#
# *Bank* moves by 0.143, *river* by 0.0006. And the two *banks*, equal before, now have a cosine of 0.47 with each
# other: the context has told them apart.

# %% [markdown]
# ### Exercise 7.5 `context_shift`
#
# Difficulty 2 of 5 · Importance 3 of 5 · 8 minutes · 10 points
#
# One minus the cosine similarity of each token's vector before and after:
#
# $$\text{context\_shift}(a, b)_t = 1 - \frac{a_t \cdot b_t}{|a_t|\,|b_t|}$$
#
# `before (..., T, D)`, `after (..., T, D)` → `(..., T)`. A zero vector has cosine 0 with everything, and its gradient
# is finite. Vectors may be a thousandth or a thousand long.


# %% nbgrader={"solution": "context_shift"}
def context_shift(before, after):
    """How far context turned each token's vector: one minus the cosine of before and after.

    before, after (..., T, D), float32 or float64 -> (..., T), same dtype.
    From 0 (same direction) to 2 (opposite). A zero vector has cosine 0.
    """
    ### BEGIN SOLUTION
    dots = (before * after).sum(dim=-1)  # (..., T)
    lengths = before.norm(dim=-1) * after.norm(dim=-1)  # (..., T)
    return 1 - dots / lengths.masked_fill(lengths == 0, 1.0)
    ### END SOLUTION


# %% nbgrader={"grade": "context_shift"}
check(context_shift)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# Each token is compared with itself only, so no matrix product is needed: multiply entry by entry, then make the
# channels disappear.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# For a zero vector the dot product is 0 already. Which number in the denominator would spoil that, and what harmless
# number could take its place?
#
# </details>

# %% [markdown]
# ## The ambiguous word of our translator
#
# One of the translator's most ambiguous words is *the*. In French it is *le*, *la* or *l'*. The noun has the gender,
# and *l'* stands
# where the next French word begins with a vowel sound: *l' homme*, but *le vieil homme*. In *the white dog forgets the green door*
# it occurs twice, as *le* and as *la*: *le chien blanc oublie la porte verte*.
# Here is another head of the same block.
#
# **Predict before you run.** Which words will this head turn far, and which hardly at all?

# %%
words = "the white dog forgets the green door".split()
x, numbers = figures.inside_the_translator(" ".join(words), head=0)  # (T=7, D=64), the three matrices
head = or_given(AttentionHead)(64, 16)
head.load_state_dict(numbers)
before, after = head.W_v(x).detach(), head(x).detach()  # (7, 16) twice
moved = or_given(context_shift)(before, after)  # (7,)
figures.shifts(moved, numbers, x, words)

# %% [markdown]
# <details><summary>Answer</summary>
#
# The nouns stay where they are (0.01 and 0.00), and the verb nearly (0.08). Articles and adjectives turn by about a
# right angle (0.62 to 1.19): they look at their noun, and come out with its value.
#
# </details>
#
# So here the reading holds, and it has a purpose: an article and an adjective need the gender of their noun. But a
# picture of one head proves little. Here is its control: the same words through heads of the same shape whose numbers are
# random, and beside the angle the distance in lengths of the value, the notes' *magnitude*. *Which row could you have told
# from the others?*

# %%
for name, any_head in {"trained": head, **figures.random_heads(or_given(AttentionHead), 3)}.items():
    before, after = any_head.W_v(x).detach(), any_head(x).detach()  # (7, 16) twice
    for measure, far in {
        "angle": or_given(context_shift)(before, after),  # (7,)
        "distance": (after - before).norm(dim=-1) / before.norm(dim=-1),  # (7,)
    }.items():
        print(f"{name:9} {measure:9}", "  ".join(f"{w} {m:.2f}" for w, m in zip(words, far.tolist(), strict=True)))

# %% [markdown]
# <details><summary>Answer</summary>
#
# The trained one, by either measure: it turns articles and adjectives far, the verb a little, and the nouns hardly at
# all. Random heads move words by anything from 0.1 to 1.4 (98 of 100 words over 150 sentences). Over these sentences the
# trained head turns articles, adjectives and nouns by 0.95, 0.80 and 0.02; three random ones by 0.35 to 0.54, 0.42 to
# 0.63 and 0.51 to 0.60. It is also the one head of eight in this encoder with such a pattern: in the other seven, nouns
# turn between 0.6 and 1.7 times as far as articles.
#
# </details>
#
# The next test is the *same* word in *two* contexts. The cosine of the two *the*, before and after; then the same with
# *umbrella* in the place of *door*, which is *le parapluie*, as masculine as *le chien*.


# %%
def two_articles(sentence):
    x, numbers = figures.inside_the_translator(sentence, head=0)
    head = or_given(AttentionHead)(64, 16)
    head.load_state_dict(numbers)
    positions = [i for i, word in enumerate(sentence.split()) if word == "the"]
    before, after = head.W_v(x)[positions], head(x)[positions]  # (2, 16) twice
    return [torch.cosine_similarity(a, b, dim=0).item() for a, b in (before, after)]


for noun in ("door", "umbrella"):
    print(noun, "before {:.2f}   after {:.2f}".format(*two_articles(f"the white dog forgets the green {noun}")))

# %% [markdown]
# Before attention, the two vectors of *the* are about equally alike in both sentences. After it, the
# two that will be *le* and *la* point apart (−0.43), and the two that will both be *le* point the same way (0.72).
# One head of this block makes the gender certain: from what it hands on over other sentences, a linear map tells *le*
# from *la* every time. From the vector of *the* as it comes into the block the map is right in about nine of ten cases
# (the block below has mixed already), and from what the three heads beside it hand on in 65 to 75 of 100.
#
# **Where the reading stops.** Take the six random words again. Nothing has been trained, so no word has any meaning:

# %%
weights_all = torch.softmax((embedding.weight[[0, 4, 5, 2, 1, 3]] @ W_query.T) @ keys.T / 24**0.5, dim=-1)  # (6, 6)
moved = or_given(context_shift)(values, weights_all @ values)  # (6,)
print("  ".join(f"{token} {shift:.2f}" for token, shift in zip(tokens, moved.abs().tolist(), strict=True)))

# %% [markdown]
# *Is* moves by more than a right angle, *short* not at all. Is *is* ambiguous and *short* clear? No: *short* happens
# to look at itself (weight 1.00) and *is* at others. A small shift can mean a stable word, or a word that looks at
# itself or at words with the same value. A large one can mean an ambiguous word, or a head that looks elsewhere for
# reasons of its own, as the head of the word before does. What a shift means is a question for a trained network and
# for a comparison.

# %% [markdown]
# ## The search engine is attention
#
# Back to the video search of lesson 3. The query is what you type, keys are made of titles and descriptions, values
# are what you get. A search engine returns the best match. Attention returns a *blend*, and that is the main difference.
#
# | title | key (cooking, music, far away) | query (2, 0, 1) · key | weight | value: minutes |
# |---|---|---|---|---|
# | Rice in one pot | (3, 0, 0) | 6 | 0.2688 | 10 |
# | Jazz for beginners | (0, 4, 0) | 0 | 0.0007 | 60 |
# | Street food of Hanoi | (2, 0, 3) | 7 | 0.7306 | 20 |
#
# By hand: $e^{6-7} = 0.3679$, $e^{0-7} = 0.0009$, $e^{0} = 1$, their sum is 1.3688. The blend of the minutes is
# $0.2688\cdot10 + 0.0007\cdot60 + 0.7306\cdot20 = 17.34$.
#
# No video lasts 17.34 minutes. For a viewer the blend is useless; for a network it is what makes searching learnable.
# The answer moves a little when the query moves a little, so there is a slope everywhere. A divisor, the temperature,
# sets how choosy it is. Find the temperature at which Hanoi has 99 %, and the one at which jazz has 20 %.

# %%
explore.video_search()

# %% [markdown]
# <details><summary>Answer</summary>
#
# Hanoi and rice differ by 1: at temperature 0.22 that is a factor of $e^{1/0.22} \approx 94$, and Hanoi has 98.9 %. Jazz
# needs a hot search, about 9.4. Above that it still gains, but never more than a third.
#
# </details>

# %% [markdown]
# ### Exercise 7.6 `soft_lookup`
#
# Difficulty 2 of 5 · Importance 4 of 5 · 6 minutes · 12 points
#
# The search engine in one function. One query, no $\sqrt d$: the temperature $\tau > 0$ is the only divisor.
#
# $$\text{soft\_lookup}(q, K, V, \tau) = \sum_j w_j v_j, \qquad w = \text{softmax}(Kq / \tau)$$
#
# `query (d,)`, `keys (N, d)`, `values (N, E)`, `temperature` a number, 1.0 by default → `(E,)`.


# %% nbgrader={"solution": "soft_lookup"}
def soft_lookup(query, keys, values, temperature=1.0):
    """A search that returns a blend: values weighted by a softmax of keys · query, without √d.

    query (d,), keys (N, d), values (N, E), float32 or float64, temperature > 0
    -> (E,), same dtype.
    """
    ### BEGIN SOLUTION
    weights = torch.softmax(keys @ query / temperature, dim=0)  # (N,)
    return weights @ values  # (E,)
    ### END SOLUTION


# %% nbgrader={"grade": "soft_lookup"}
check(soft_lookup)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# One number for each key, then one share for each key, then one vector. Which of the three needs the temperature?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# There is one axis only along which the shares can add up to 1. And a row of N shares times a table with N rows gives
# a vector.
#
# </details>

# %% [markdown]
# Put the two side by side. Scaled attention is `soft_lookup` for all queries at once, at temperature $\sqrt{d_k}$.
# `hard_lookup` is its limit at temperature 0. Lesson 13 searches with vectors that mean something.

# %% [markdown]
# ## Backward, by hand
#
# Autograd does this for you. Doing it once by hand shows what a head is taught. Two rules are enough. Below, $\partial
# A$ is short for the gradient of the **loss** at $A$.
#
# - **Matrix product.** If $C = AB$, then $\partial A = \partial C\,B^\top$ and $\partial B = A^\top \partial C$.
#   (Check the shapes: nothing else fits.)
# - **Softmax**, from lesson 6. If $w = \text{softmax}(s)$, then $\partial s_j = w_j\,\big(\partial w_j - \sum_i w_i\,
#   \partial w_i\big)$.
#
# **On paper.** One query, two keys, width 1: $q = 0$, $k = (1, 3)$, $v = (0, 4)$. Both scores are 0, the weights are ½
# and ½, the output is 2. Let the gradient at the output be $g = 1$: a larger output makes the loss larger.
#
# | | key 1 | key 2 | how |
# |---|---|---|---|
# | $\partial v_j$ | ½ | ½ | $w_j\, g$ |
# | $\partial w_j$ | 0 | 4 | $g \cdot v_j$ |
# | $\partial s_j$ | ½(0 − 2) = −1 | ½(4 − 2) = 1 | weighted mean of $\partial w$ is 2 |
# | $\partial k_j$ | 0 | 0 | $\partial s_j\, q$, and $q = 0$ |
#
# and $\partial q = -1\cdot1 + 1\cdot3 = 2$. The third line in one formula: $\partial s_j = w_j\, g\cdot(v_j -
# \text{out})$. A step of training goes *against* the gradient, so here key 1 gains and key 2 loses, and the output
# falls, as the loss wants. **The score of a key is pushed up when its value lies, seen from the mixture, in the direction
# $-g$ in which the output should move.** A push is not yet a gain: all keys share one query, and their weights add up to 1.
# With random numbers of width 8, a small step against the gradients of $q$ and $k$ moves 89 % of the weights the way
# they are pushed if
# there are four keys, and 75 % if there are sixteen. A key that nobody looks at, $w_j = 0$, learns nothing: the saturation
# of lesson 4 again. And $q = 0$ teaches the keys nothing at all.

# %%
figures.pressure()

# %% [markdown]
# ### Exercise 7.7 `attention_backward`
#
# **Extra** · Difficulty 4 of 5 · Importance 3 of 5 · 30 minutes · 12 bonus points
#
# The gradients at all three inputs, from the gradient at the output. No mask, scores over $\sqrt{d_k}$.
#
# `Q (..., T_q, d_k)`, `K (..., T_k, d_k)`, `V (..., T_k, d_v)`, `grad_out (..., T_q, d_v)` → a tuple `(dQ, dK, dV)`,
# shaped like Q, K and V. Right for scores up to ±10,000. Forbidden: autograd in every form.


# %% nbgrader={"solution": "attention_backward"}
def attention_backward(Q, K, V, grad_out):
    """Gradients of attention without a mask at its inputs, from the gradient at its output.

    Q (..., T_q, d_k), K (..., T_k, d_k), V (..., T_k, d_v), grad_out (..., T_q, d_v),
    float32 or float64 -> (dQ, dK, dV), shaped like Q, K, V, same dtype.
    """
    ### BEGIN SOLUTION
    scale = Q.shape[-1] ** -0.5
    weights = torch.softmax(Q @ K.transpose(-2, -1) * scale, dim=-1)  # (..., T_q, T_k)
    dV = weights.transpose(-2, -1) @ grad_out  # (..., T_k, d_v)
    dW = grad_out @ V.transpose(-2, -1)  # (..., T_q, T_k)
    mean = (weights * dW).sum(dim=-1, keepdim=True)  # (..., T_q, 1)
    dS = weights * (dW - mean) * scale  # (..., T_q, T_k), at QKᵀ before the scale
    return dS @ K, dS.transpose(-2, -1) @ Q, dV
    ### END SOLUTION


# %% nbgrader={"grade": "attention_backward"}
check(attention_backward)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# Walk back through the four steps of the formula, one gradient for each: at the weights, at the scaled scores, at
# $QK^\top$, at Q and K. The gradient at V falls off on the first step.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# The mean in the softmax rule runs along a row of the weights, one number for each query; keep that axis, so that it
# broadcasts. And the $\sqrt{d_k}$ of the way out has to come back once, in two of the three gradients.
#
# </details>
#
# Learning by your own gradients: queries, keys and values walk against them until four random outputs are reached. The
# loss is half the squared distance, so the gradient at the output is the output minus the target.

# %%
torch.manual_seed(0)
Q, K, V, target = torch.randn(4, 8), torch.randn(6, 8), torch.randn(6, 3), torch.randn(4, 3)
for step in range(41):
    out = or_given(attention)(Q, K, V)[0]  # (4, 3)
    if step % 10 == 0:
        print(f"step {step:2}   loss {(out - target).square().sum() / 2:.3f}")
    gradients = or_given(attention_backward)(Q, K, V, out - target)
    Q, K, V = (tensor - 0.5 * gradient for tensor, gradient in zip((Q, K, V), gradients, strict=True))

# %% [markdown]
# ## Attention in little memory
#
# For $T$ tokens the weights are $T^2$ numbers: 8 tokens, 64; 8000 tokens, 64 million, for each head and each sequence.
# The output has only $T\,d_v$. Must all weights exist at the same time?
#
# **Queries are easy to divide.** Rows know nothing of each other. Take some queries at a time:


# %%
def attention_at_once(Q, K, V):
    return torch.softmax(Q @ K.transpose(-2, -1) / K.shape[-1] ** 0.5, dim=-1) @ V  # (..., T_q, d_v)


def attention_in_rows(Q, K, V, rows=128):
    return torch.cat([attention_at_once(q, K, V) for q in Q.split(rows, dim=-2)], dim=-2)  # the same


# %% [markdown]
# **Keys are harder.** Softmax divides by a sum over *all* keys, and subtracts a maximum over all keys. But both can be
# kept as running numbers, and repaired when a later block brings a larger score (the streaming softmax of lesson 6).
# On paper, scores 0, 1, 2 with values 10, 20, 30, in blocks of two:
#
# | after | maximum | sum of powers | sum of powers × values |
# |---|---|---|---|
# | block (0, 1) | 1 | $e^{-1} + e^0 = 1.368$ | $0.368\cdot10 + 1\cdot20 = 23.68$ |
# | repaired for maximum 2 | 2 | $1.368\, e^{-1} = 0.503$ | $23.68\, e^{-1} = 8.71$ |
# | block (2) | 2 | $0.503 + e^0 = 1.503$ | $8.71 + 1\cdot30 = 38.71$ |
#
# The output is $38.71 / 1.503 = 25.75$. All at once: $0.090\cdot10 + 0.245\cdot20 + 0.665\cdot30 = 25.75$. It is
# exact, not an approximation.
#
# Cut both, and a *tile* of scores sweeps over the table. Move the first slider and watch what has to be remembered.

# %%
explore.tiles()

# %% [markdown]
# <details><summary>With 24 tokens and a value width of 4: which tile needs the least memory at one time? And why do rows of
# tiles need no memory of each other?</summary>
#
# The smallest, 4 queries by 4 keys: 16 scores, and 6 numbers for each of its 4 queries (a maximum, a sum, and a sum of
# values of width 4), 40 in all; the whole table would be 576. When a row of tiles ends, its output is finished and
# everything but the output is forgotten: no query needs another query's sums.
#
# </details>
#
# This is the idea of Rabe and Staats (2021) and of FlashAttention (Dao et al., 2022). FlashAttention cuts both: a tile of
# queries and a tile of keys and values fit into the small fast memory next to the arithmetic, and the big slow memory
# never sees a score. That saves memory and, because memory traffic was the bottleneck, time.

# %% [markdown]
# ### Exercise 7.8 `tiled_attention`
#
# **Extra** · Difficulty 4 of 5 · Importance 4 of 5 · 30 minutes · 12 bonus points
#
# The output of attention without a mask, scores over $\sqrt{d_k}$, with the keys taken `block` at a time. The last
# block may be shorter, and `block` may be larger than $T_k$.
#
# `Q (..., T_q, d_k)`, `K (..., T_k, d_k)`, `V (..., T_k, d_v)`, `block` an int ≥ 1 → `(..., T_q, d_v)`. Right for
# scores up to ±10,000.
#
# The check also measures memory, and most of the points are for that. For `block` $< T_k$ no tensor may hold $T_q
# \cdot T_k$ numbers for each leading index; where a block is much smaller than $T_k$, neither may all the tensors of
# one moment together (a list of blocks is no less memory than one table), and no row of scores may span all keys.
# Measured without autograd, which would keep every block. Forbidden: `F.scaled_dot_product_attention`.


# %% nbgrader={"solution": "tiled_attention"}
def tiled_attention(Q, K, V, block):
    """Exact attention without a mask, keys in blocks, as in Rabe and Staats (2021).

    Q (..., T_q, d_k), K (..., T_k, d_k), V (..., T_k, d_v), float32 or float64; block >= 1
    -> (..., T_q, d_v), same dtype. Holds T_q · block scores at a time.
    """
    ### BEGIN SOLUTION
    peak = torch.full_like(Q[..., :1], float("-inf"))  # (..., T_q, 1), the largest score so far
    total = torch.zeros_like(peak)  # (..., T_q, 1), the sum of powers below that peak
    out = 0.0  # (..., T_q, d_v), the same sum with values
    blocks = zip(K.split(block, dim=-2), V.split(block, dim=-2), strict=True)
    for keys, values in blocks:
        scores = Q @ keys.transpose(-2, -1) / Q.shape[-1] ** 0.5  # (..., T_q, block)
        higher = torch.maximum(peak, scores.amax(dim=-1, keepdim=True))
        powers, repair = torch.exp(scores - higher), torch.exp(peak - higher)
        total = total * repair + powers.sum(dim=-1, keepdim=True)
        out = out * repair + powers @ values
        peak = higher
    return out / total
    ### END SOLUTION


# %% nbgrader={"grade": "tiled_attention"}
check(tiled_attention)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# Keep three running tensors, the three columns of the table above, one row for each query. A block of scores lives for
# one turn of the loop.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# When the maximum rises, everything summed so far was measured below the old one. One factor for each query repairs
# both sums. Start with a maximum that any score exceeds, and let the arithmetic of infinity help you: what is e to the
# minus infinity?
#
# </details>

# %% [markdown]
# Now measure. For growing $T$, how many numbers does the largest tensor hold that comes into being on
# the way? (Keys and values are 16 wide. While your `tiled_attention` is missing, so are its lines.)


# %%
def attention_in_tiles(Q, K, V):
    return torch.cat([tiled_attention(q, K, V, 64) for q in Q.split(128, dim=-2)], dim=-2)  # (..., T_q, d_v)


figures.memory(
    {
        "all at once": attention_at_once,
        "128 queries at a time": attention_in_rows,
        "64 keys at a time (tiled_attention)": lambda Q, K, V: tiled_attention(Q, K, V, 64),
        "tiles of 128 by 64": attention_in_tiles,
    }
)

# %% [markdown]
# On these axes a slope of 2 is $T^2$ and a slope of 1 is $T$. At 2048 tokens the plain form holds $2048^2$ = 4.2 million
# numbers in one tensor, 128 queries at a time 262,144 and 64 keys at a time 131,072. Cutting one side alone turns $T^2$
# into $T$. Cut both, and a tile is 8192 numbers, however long the text: above 512 tokens the largest tensor is the output
# itself. Blocks of keys have one more reason: a model that writes has *one* query at a time, and nothing to cut on that
# side.
#
# What does *not* shrink is the arithmetic: each query still meets each key. And during training autograd would keep
# all blocks; real implementations compute them a second time on the way back, with the formulas of exercise 7.7.

# %% [markdown]
# ## At work
#
# Your attention in all heads of the translator, and your `AttentionHead` in all its self-attention. One line says how far the whole encoder
# turned each word.

# %%
at_work(attention, context_shift)

# %%
at_work(AttentionHead)

# %% [markdown]
# And the bug of exercise 7.4: the right number, but after the softmax. **Predict before you run:** is
# it as harmless as the forgotten scale of lesson 4, which cost 0.011 nats a word?


# %%
def published_attention(Q, K, V, mask=None):
    scores = Q @ K.transpose(-2, -1)  # (..., T_q, T_k)
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    weights = torch.softmax(scores, dim=-1) * Q.shape[-1] ** -0.5  # (..., T_q, T_k)
    return weights @ V, weights  # (..., T_q, d_v), (..., T_q, T_k)


at_work(attention=published_attention)

# %% [markdown]
# <details><summary>Answer</summary>
#
# No: 2.6 nats a word, and not one of the unseen sentences comes out right. A network that is *trained* with the bug learns
# to make up for it, and looks healthy. This one never had to.
#
# </details>
#
# The bug does two things: scores are not scaled, and the shares of a row add up to ¼ in a head of width 16. **Predict
# before you run:** *which of the two does the damage? Here the scores are scaled as they should be, and only the shares are
# too small. Will the loss be much smaller than 2.6?*


# %%
def quarter_strength(Q, K, V, mask=None):
    weights = or_given(attention)(Q, K, V, mask)[1] * Q.shape[-1] ** -0.5  # (..., T_q, T_k)
    return weights @ V, weights  # (..., T_q, d_v), (..., T_q, T_k)


at_work(attention=quarter_strength)

# %% [markdown]
# <details><summary>Answer</summary>
#
# It is larger: 3.0. All the damage comes from the shares, with which each head speaks at a quarter of its strength;
# forgetting the scale as well makes the weights sharper and even wins some of it back. (So in two other trainings of the
# machine: 2.91 and 2.55, 2.93 and 2.59.)
#
# </details>

# %% [markdown]
# ### Quiz 7.1
#
# In one channel the values of all tokens lie between −1 and 3. Somebody wants a 5 in this channel of the output. What
# could make it happen?
#
# - **a** a larger weight on the token with 3
# - **b** nothing: attention cannot leave the range of its values
# - **c** larger scores
# - **d** a wider head

# %% nbgrader={"solution": "quiz_1"}
quiz_1 = None  # "a", "b", "c" or "d"
### BEGIN SOLUTION
quiz_1 = "b"
### END SOLUTION

# %% nbgrader={"grade": "quiz_1"}
check(quiz_1=quiz_1)

# %% [markdown]
# ### Quiz 7.2
#
# $W_V$ is replaced by $2\,W_V$, all else stays. What happens?
#
# - **a** the weights move toward tokens with large values
# - **b** the head looks at other tokens, as keys and values belong together
# - **c** the weights stay as they were, the output doubles

# %% nbgrader={"solution": "quiz_2"}
quiz_2 = None  # "a", "b" or "c"
### BEGIN SOLUTION
quiz_2 = "c"
### END SOLUTION

# %% nbgrader={"grade": "quiz_2"}
check(quiz_2=quiz_2)

# %% [markdown]
# ### Quiz 7.3
#
# Keys and values are shuffled together, in the same way; the queries stay; no mask. What happens to the output?
#
# - **a** nothing
# - **b** each query gets the values of other words
# - **c** its rows are shuffled in the same way

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
# A classmate has followed the steps up to the context vector and writes: "I multiply each value by its weight and sum
# the columns, but I don't know what it accumulates. More related tokens add more information, so a long sentence gives
# a vector with more information in it." Explain to them what the context vector of a word is made of, what stays out
# of it, and what is right and wrong in their second sentence. Use a small example with numbers of your own.
#
# <details><summary>For those who learn alone: what a good answer has</summary>
#
# - a weighted average of values, with a worked example, and whose shares it holds;
# - that the weights add up to 1, and what follows for a longer sentence and for the range of each channel;
# - something that is lost, such as the order or the exact shares, and that the values have no say in the weights.
#
# </details>

# %% [markdown] nbgrader={"written": "written_1"}
# <details><summary>Model answer and marking scheme</summary>
#
# **Model answer.** The context vector is a weighted average of the values: with weights ¼ and ¾ and values (4, 0) and
# (0, 8) it is (1, 6). The weights are not negative and add up to 1, so every channel of it lies between the smallest
# and the largest value of that channel, and channels do not mix with each other. What it accumulates is shares of
# words: averaging the values is the same as averaging the words' vectors first and projecting the average with $W_V$,
# so (1, 6) is the value of a word that is one quarter the first and three quarters the second. More related tokens do
# contribute more. But the shares add up to 1, so what one token gains the others lose, and a longer sentence does not
# make the vector hold more: it has the same $d_v$ numbers, and each token gets a smaller share on average. Left out
# are the order of the words, unless positions are in their vectors, and, as soon as there are two tokens more than
# channels, the exact shares: several recipes give the same vector. Which tokens count was decided by queries and keys
# alone; the values had no say.
#
# **Marking scheme (15).** 4: a weighted average of values, with a correct numerical example. 3: weights add up to 1,
# so more of one is less of another, and the range of each channel is not left. 3: shares of words seen through $W_V$
# (linear: mixing and projecting may change places), or an equivalent statement of *what* is accumulated. 2: a longer
# sentence has the same number of channels; not more information. 2: something that is lost: order, or the exact
# shares. 1: where (Q, K) and what (V) are separate.
#
# </details>

# %% [markdown]
# ## From the notes this course grew from
#
# <details><summary>Claims of the sources, and what this lesson found</summary>
#
# - “The context vector is the most confusing. […] Don't know what it accumulates.” (Notes on Sebastian Raschka's walk-through, which end at the context vector of *is*; every number
#   in the notes comes out here. The article draws its matrices after one more seed, so it prints others.) It accumulates shares of words, seen through $W_V$.
# - “But more related tokens will have more information added to the context.” Yes, and less related ones have less: the shares add up to 1.
# - “Self-attention, sometimes called intra-attention, is an attention mechanism relating different positions of a single
#   sequence in order to compute a representation of the sequence” (the paper, quoted in the notes). In exercise 7.3: *one*
#   x makes queries, keys and values.
# - *A head with B, T, C = 4, 8, 32 and head size 16* (the Stack Exchange answer of lesson 3, after Andrej Karpathy's
#   lecture): the second matrix product is a weighted bag of words of shape (4, 8, 16). The answer leaves out the division by
#   the square root of 16; the lecture puts it in a few minutes later, and so did we. The shapes are the same
#   either way.
# - *The size of the change tells stable words from ambiguous ones* (notes on Rowel Atienza's walk-through of *I like
#   to eat apples*, which also write the formula as we do). In a trained head it can: articles and adjectives of the
#   translator turn by 0.96 and 0.79 on average over 300 sentences, nouns by 0.02. That is one of its eight heads; in the
#   others, and in random heads, no such line runs between the words. The notes measure the magnitude of the change, this
#   lesson its angle; in that head both say the same.
# - *Where to look and what to get; a video search* (notes on the Transformer's parts). The picture is right in one
#   more way than the notes say: a search engine is this function at a low temperature.
# - *FlashAttention divides the keys.* It divides the queries too. Only the keys need the running maximum.
#
# </details>

# %% [markdown]
# ## Recap
#
# - The context vector is a weighted average of values: shares of words, seen through $W_V$. It has no order, and it
#   never leaves the range of the values.
# - Queries and keys say where to look, values what to get.
# - A head is three linear maps and one formula: (4, 8, 32) becomes (4, 8, 16).
# - Scale before the softmax. With equal values attention must change nothing.
# - A cosine says how far context turned a word. In a trained head that can be meaning: *the* becomes *le* or *la*.
# - A search engine is attention at a low temperature.
# - Backward, the score of a key is pushed up when its value, seen from the mixture, lies in the direction in which the
#   output should move. Forward, tiles and running sums make the table of scores as small as you like.
#
# `progress()` in a new cell shows what you have done so far, over all lessons (`from helpers import progress`).

# %% [markdown]
# ## Further reading
#
# - Vaswani et al., [Attention Is All You Need](https://arxiv.org/abs/1706.03762) (2017), section 3.2.1: the formula.
# - Sebastian Raschka, [Self-attention from
#   scratch](https://sebastianraschka.com/blog/2023/self-attention-from-scratch.html): the six words and the context
#   vector of *is*.
# - Andrej Karpathy, [Let's build GPT](https://www.youtube.com/watch?v=kCc8FmEb1nY): the head with B, T, C and head
#   size 16; Pascal Poupart, [CS480/680 lecture 19](https://www.youtube.com/watch?v=OyFJWRnt_AY): attention as a
#   database; Rowel Atienza, [Transformer](https://www.youtube.com/watch?v=6PmIoCnqcFU): the feed-forward walk-through.
# - [AI Summer on attention](https://theaisummer.com/attention/): keys, values and the video search.
# - Elhage et al., [A Mathematical Framework for Transformer
#   Circuits](https://transformer-circuits.pub/2021/framework/index.html) (2021): "where" and "what" as two circuits.
# - Rabe and Staats, [Self-attention Does Not Need O(n²) Memory](https://arxiv.org/abs/2112.05682) (2021), and Dao et
#   al., [FlashAttention](https://arxiv.org/abs/2205.14135) (2022): attention in blocks.
# - The bug of exercise 7.4, found by readers: [FrancescoSaverioZuppichini/ViT, issue
#   2](https://github.com/FrancescoSaverioZuppichini/ViT/issues/2).
#
# **Next:** one head makes one average. [Lesson 8](../08_multi_head/08_multi_head.ipynb) runs several, side by side.
