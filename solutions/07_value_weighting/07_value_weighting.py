# %% [markdown]
# # 7. Value weighting: one head
#
# **In this lesson** you'll put the pieces together and build a complete attention head. You'll find out what its output
# accumulates and what it loses, load trained weights into your head, and replace your code with the library call that
# everybody uses.
#
# **Core:** about 80 minutes. A good moment for a break is after exercise 7.4.

# %% tags=["setup"]
# (empty: the build puts the set-up cell here)

# %%
import math
import time

import torch
import torch.nn.functional as F
from torch import nn

from helpers import at_work, check, or_finished
from helpers.drawing.transformer_map import transformer_map
from helpers.lessons.value_weighting import explore, figures

# %%
transformer_map("07_value_weighting")

# %% [markdown]
# In lessons 3 to 6 you computed the attention weights. Now we multiply them by the values, and the formula is
# complete:
#
# $$\text{Attention}(Q, K, V)=\underbrace{\text{softmax}\!\left(\frac{QK^\top}{\sqrt{d_k}}\right)}_{\text{where to
# attend}}\;\underbrace{V}_{\text{what to get}}$$

# %% [markdown]
# ## You need
#
# - scores and their scale ([lesson 3](../03_query_key/03_query_key.ipynb) and [lesson
#   4](../04_scaling/04_scaling.ipynb));
# - masks, and what happens in fully masked rows ([lesson 5](../05_masking/05_masking.ipynb));
# - softmax ([lesson 6](../06_softmax/06_softmax.ipynb)).
#
# The [conventions](../00_start_here/00_start_here.ipynb) of lesson 0 hold here too. In your answers you may import
# finished blocks of those lessons, for example `from helpers.blocks import masked_softmax`. There are `scaled_scores(Q,
# K)`, `softmax(x, dim=-1)` and `masked_softmax(scores, mask)`, which requires a mask and gives zeros in fully masked
# rows.
#
# Here are two questions to warm up:
#
# <details><summary>Lesson 5: what does softmax make of a row whose scores are all −∞, and what do we want instead?</summary>
#
# It divides 0 by 0, which is NaN, but we want zeros, so that no NaN reaches the other tokens.
#
# </details>
#
# <details><summary>Lesson 6: all scores of a row are equal, and there are T keys. What are the weights?</summary>
#
# They are 1/T each, because softmax depends only on differences between scores.
#
# </details>

# %% [markdown]
# ## A weighted bag of words
#
# Suppose that in *jane visits africa* the query of *visits* puts a quarter of its weight on *jane*, a quarter on itself
# and half on *africa*. What does it get in return? Every word has a **value**, a vector with the information that it
# passes on, here with three channels for person, action and location.
#
# | word | weight | value (person, action, location) | weight × value |
# |---|---|---|---|
# | jane | ¼ | (2, 0, 0) | (½, 0, 0) |
# | visits | ¼ | (0, 1, 1) | (0, ¼, ¼) |
# | africa | ½ | (0, 0, 4) | (0, 0, 2) |
# | **sum** | 1 | | **(½, ¼, 2¼)** |
#
# The sum is a bag of words in which each word counts as much as its weight says. We call it the **context vector** of
# *visits*.

# %%
bag_weights = torch.tensor([[0.25, 0.25, 0.5]])  # (T_q=1, T_k=3)
bag_values = torch.tensor([[2.0, 0, 0], [0, 1, 1], [0, 0, 4]])  # (T_k=3, d_v=3)
figures.bag_of_words(bag_weights[0], bag_values, figures.JANE, ["person", "action", "location"])

# %% [markdown]
# ### Exercise 7.1 `weighted_values`
#
# Difficulty 1 of 5 · Importance 5 of 5 · 4 minutes · 8 points
#
# Compute the context vectors of all queries at once, $\text{out}_i=\sum_j w_{ij}\,v_j$.
#
# - **Arguments:** `weights (..., T_q, T_k)`, and `V (..., T_k, d_v)`.
# - **Returns:** `(..., T_q, d_v)`.


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
# Write the two shapes side by side. The sum runs over the axis that appears in both.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# A row vector times a matrix is a weighted sum of the matrix's rows.
#
# </details>

# %% [markdown]
# ## What does the context vector accumulate?
#
# A well-known walk-through of self-attention by Sebastian Raschka takes *Life is short, eat dessert first* as far as
# this step, and one of its readers noted: *"Don't know what it accumulates."* Let's reproduce the numbers and find out.
# The embeddings have width $D=16$, queries and keys $d_k=24$, values $d_v=28$, and all of them are random.

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
# **First, it's an average in each channel.** The weights aren't negative and sum to 1, so every star in Figure 7.2 lies
# on its bar. If one word gets more weight, the others get less.
#
# **Second, the context vector doesn't contain the order of the words.** If we shuffle the other words, their keys and
# values move with them and the sum stays the same, unless the embeddings contain positions ([lesson
# 2](../02_position/02_position.ipynb)).
#
# **Third, it's also the value of an average word.** Let's average the *embeddings* with the same weights and multiply
# this mixture by $W_V$. Predict before you run: *how far is the result from the context vector?*

# %%
mixture = weights_is @ x  # (16,): 64% eat, 18% short, 13% dessert, ...
print(f"largest difference {(W_value @ mixture - context_is).abs().max().item():.1e}")

# %% [markdown]
# The two are identical up to rounding, because we can apply a linear map before the sum or after it:
#
# $$\sum_j w_j\,(W_V x_j)=W_V\Big(\sum_j w_j x_j\Big)$$
#
# So the context vector of *is* is the value of an artificial word, which is 64% *eat* and a little of the others. **In
# other words, it accumulates fractions of words, seen through $W_V$.**
#
# **Fourth, in a long text it doesn't show which words went into it.** At most $d_v$ values can be linearly independent,
# so with a thousand words and a head of width 64, very different weights can give the same context vector. This is one
# reason for having several heads (lesson 8).

# %% [markdown]
# ## The complete formula
#
# Now we have all four steps of attention:
#
# | step | shape | from |
# |---|---|---|
# | $S=QK^\top/\sqrt{d_k}$ | `(..., T_q, T_k)` | lessons 3 and 4 |
# | set masked scores to $-\infty$ | `(..., T_q, T_k)` | lesson 5 |
# | $W=\text{softmax}(S)$ along the keys | `(..., T_q, T_k)` | lesson 6 |
# | $WV$ | `(..., T_q, d_v)` | exercise 7.1 |
#
# Queries and keys decide which tokens a token attends to, and values decide what it gets. For example, if all queries
# are zero vectors, all scores are 0, so every row of the output is the plain average of the values. At the other
# extreme, if one score is far above all others, the output is that key's value, as with the `hard_lookup` of lesson 3.

# %% [markdown]
# ### Exercise 7.2 `attention`
#
# Difficulty 3 of 5 · Importance 5 of 5 · 12 minutes · 22 points
#
# Compute the whole formula, with an optional mask.
#
# - **Arguments:** `Q (..., T_q, d_k)`, `K (..., T_k, d_k)`, `V (..., T_k, d_v)`, and `mask`, which is None or boolean
#   and broadcasts to `(..., T_q, T_k)`, for example `(T_q, T_k)`, `(B, 1, T_k)` or `(T_k,)`.
# - **Returns:** a tuple `(out, weights)` of shapes `(..., T_q, d_v)` and `(..., T_q, T_k)`.
# - **Fully masked rows** have zero weights and zero output, without NaN in values or gradients.
# - **Large scores** up to $\pm10^4$ must give correct results.
# - **Forbidden:** `F.scaled_dot_product_attention`.


# %% nbgrader={"solution": "attention"}
def attention(Q, K, V, mask=None):
    """Scaled dot-product attention, eq. 1 of Vaswani et al. (2017), with a mask.

    Q (..., T_q, d_k), K (..., T_k, d_k), V (..., T_k, d_v), float32 or float64;
    mask None or bool that broadcasts to (..., T_q, T_k), True = may attend
    -> (out (..., T_q, d_v), weights (..., T_q, T_k)), same dtype.
    Scores up to 1e4 in size. A fully masked row is zero in both.
    """
    ### BEGIN SOLUTION
    scores = Q / Q.shape[-1] ** 0.5 @ K.transpose(-2, -1)  # (..., T_q, T_k); fewer numbers are divided
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = torch.softmax(scores, dim=-1)  # (..., T_q, T_k), NaN in fully masked rows
    if mask is not None:
        weights = weights.masked_fill(~mask, 0.0)
    return weighted_values(weights, V), weights
    ### END SOLUTION


# %% nbgrader={"grade": "attention"}
check(attention)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# Follow the four steps of the table. You may import the finished blocks of lessons 4 to 6.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# `masked_softmax` handles fully masked rows. If you use `torch.softmax`, set masked weights to zero once more after it.
#
# </details>

# %% [markdown]
# ## One head
#
# An **attention head** has three linear maps, which compute queries, keys and values of its own width from vectors of
# the model width $D$. Here are the sizes of Andrej Karpathy's lecture, with four sequences of eight tokens, $D=32$
# (the lecture calls it C) and a head of width 16:

# %%
figures.head_shapes(4, 8, 32, 16)

# %%
torch.manual_seed(1337)
B, T, D, d_head = 4, 8, 32, 16
Wk, Wq = nn.Linear(D, d_head, bias=False), nn.Linear(D, d_head, bias=False)
Wv = nn.Linear(D, d_head, bias=False)
batch = torch.randn(B, T, D)  # (4, 8, 32)

# %%
causal = torch.ones(T, T, dtype=torch.bool).tril()  # (8, 8)
scores = Wq(batch) @ Wk(batch).transpose(-2, -1) / d_head**0.5  # (4, 8, 8)
weights = torch.softmax(scores.masked_fill(~causal, float("-inf")), dim=-1)  # (4, 8, 8)
context = weights @ Wv(batch)  # (4, 8, 8) @ (4, 8, 16)
context.shape

# %% [markdown]
# The head has $3\cdot32\cdot16=1536$ parameters, and it would have no more for longer sequences, because no weight
# matrix has an axis for tokens.

# %% [markdown]
# ### Exercise 7.3 `AttentionHead`
#
# Difficulty 2 of 5 · Importance 5 of 5 · 10 minutes · 20 points
#
# Turn this into a module for **self-attention**, in which the same $x$ makes queries, keys and values:
#
# $$\text{AttentionHead}(x)=\text{Attention}(x W_Q^\top,\;x W_K^\top,\;x W_V^\top)$$
#
# - **`AttentionHead(d_model, d_head)`** has three layers `W_q`, `W_k`, `W_v`, each an `nn.Linear` from `d_model` to
#   `d_head` **without bias**, and no dropout.
# - **Arguments of `forward(x, mask=None)`:** `x (..., T, d_model)` with any T, and `mask`, which broadcasts to
#   `(..., T, T)`. Without a mask, every token attends to every token.
# - **Returns:** the output alone, `(..., T, d_head)`, with zeros in fully masked rows.
# - **Forbidden:** `F.scaled_dot_product_attention`.


# %% nbgrader={"solution": "AttentionHead"}
class AttentionHead(nn.Module):
    """One head of self-attention: three linear maps without bias, then attention.

    d_model, d_head: int.
    forward(x (..., T, d_model), mask None or bool that broadcasts to (..., T, T))
    -> (..., T, d_head), same dtype; a fully masked row is zero.
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
# Create the layers in `__init__` as attributes of `self`, with exactly these names and `bias=False`.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# `forward` is one call of your `attention`, which returns a tuple, and you need its first element.
#
# </details>

# %% [markdown]
# ## A trained head reads the sentence
#
# The course's translator contains trained heads of exactly this kind. Let's load one of them into *your*
# `AttentionHead`, namely head 3 of block 1, the encoder's last block (we count both from 0). Its input for the five
# words is the previous block's output.

# %%
jane = "jane visits africa in september".split()
x_jane, parameters = figures.inside_the_translator(" ".join(jane), head=3)  # (T=5, D=64), the three matrices
previous_head = or_finished(AttentionHead)(64, 16)
previous_head.load_state_dict(parameters)
figures.trained_head(parameters, x_jane, previous_head(x_jane).detach(), jane)

# %% [markdown]
# This head attends to the previous token, so we call it a **previous-token head**. For example, *visits* puts 92% of
# its weight on *jane*. In lesson 3 you built such a head by hand, and here training found a similar, less strict one.
# The output of *visits* on the right resembles the value of *jane* in the middle, because that value makes up most of
# it.

# %% [markdown]
# ### Exercise 7.4 `fixed_head`
#
# **Find the bug** · Difficulty 2 of 5 · Importance 4 of 5 · 6 minutes · 8 points
#
# The next function does what a popular tutorial on Vision Transformers (Transformers for images) did until readers
# asked about it. It runs, it trains, and its shapes are right.


# %%
def published_head(x, W_q, W_k, W_v):
    q, k, v = x @ W_q.T, x @ W_k.T, x @ W_v.T  # (..., T, d_k) twice, (..., T, d_v)
    scaling = W_q.shape[0] ** -0.5
    weights = torch.softmax(q @ k.transpose(-2, -1), dim=-1) * scaling  # (..., T, T)
    return weights @ v  # (..., T, d_v)


# %% [markdown]
# Here is a test that works without a reference. We give every token the same value `(1, 1, 1)`, so every output
# should be `(1, 1, 1)`, whatever the weights are. Is it?

# %%
g = torch.Generator().manual_seed(0)
x_test = torch.randn(5, 16, generator=g)  # (T=5, D=16)
x_test[:, -1] = 1.0  # the last channel is 1 in each token
some_W_q, some_W_k = torch.randn(2, 4, 16, generator=g)  # (d_k=4, D=16) each
read_last = torch.zeros(3, 16)  # (d_v=3, D=16), a W_V that reads only the last channel
read_last[:, -1] = 1.0
published_head(x_test, some_W_q, some_W_k, read_last)[0]

# %% [markdown]
# Find the bug, and write the head correctly.
#
# - **Arguments:** `x (..., T, D)`, `W_q` and `W_k (d_k, D)`, `W_v (d_v, D)`, and no mask.
# - **Returns:** `(..., T, d_v)`.
# - **Forbidden:** `F.scaled_dot_product_attention`. You may use earlier exercises of this lesson.


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
# The output is ½ instead of 1 in a head of width 4. Where does the code compute that number?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Softmax gets unscaled scores, and the weights no longer sum to 1, but moving one factor
# fixes both.
#
# </details>
#
# Let's run the same test on your version:

# %%
or_finished(fixed_head)(x_test, some_W_q, some_W_k, read_last)[0]

# %% [markdown]
# Why did this go unnoticed for so long? A layer after the head can learn to multiply by $\sqrt{d_k}$, and a network
# that trains a little worse still trains. **The test that finds it takes one line, because if all values are equal,
# attention must return that value.**

# %% [markdown]
# ## How much does attention change a word's vector?
#
# Does the change from a word's value to its context vector say something about the word? Some notes on attention read a
# large change as a sign of an **ambiguous** word, whose meaning depends on the words around it. Let's measure the
# change, and then test this.
#
# Suppose a value has two channels, water and money, where *bank* has the value $(1,1)$ and *river* $(3,0)$. If *bank*
# attends half to itself and half to *river*, its context vector is $(2,\frac12)$. The cosine of the two vectors is
# $0.857$, so we say that the direction has changed by $1-0.857=0.143$.

# %% [markdown]
# ### Exercise 7.5 `context_shift`
#
# Difficulty 2 of 5 · Importance 3 of 5 · 8 minutes · 10 points
#
# Compute one minus the cosine similarity of each token's vector before and after attention.
#
# - **Arguments:** `before (..., T, D)` and `after (..., T, D)`, vectors with lengths from 0.001 to 1000.
# - **Returns:** `(..., T)`, from 0 for the same direction to 2 for the opposite one.
# - **Zero vectors** have cosine 0 with everything, and a finite gradient.


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
# Each token is compared only with itself, so multiply entry by entry, and sum over the channels.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# For a zero vector the dot product is already 0, so replace the denominator by a harmless number.
#
# </details>
#
# Let's apply it to one of the most ambiguous words of our translator. *The* becomes *le*, *la* or *l'* in French,
# depending on its noun. In *the white dog forgets the green door* it occurs once as *le* and once as *la* (*le chien
# blanc oublie la porte verte*). Here is what head 0 of the encoder's block 1 does with it:

# %%
dog = "the white dog forgets the green door".split()
x_dog, parameters = figures.inside_the_translator(" ".join(dog), head=0)  # (T=7, D=64), the three matrices
noun_head = or_finished(AttentionHead)(64, 16)
noun_head.load_state_dict(parameters)
before, after = noun_head.W_v(x_dog).detach(), noun_head(x_dog).detach()  # (7, 16) each
figures.shifts(or_finished(context_shift)(before, after), parameters, x_dog, dog)

# %% [markdown]
# The nouns and the verb barely change. Articles and adjectives change a lot, because they attend to their noun,
# whose gender they need in French, and take on its value. As a control, we pass the same words through three randomly
# initialized heads. *Could you pick out the trained head from these rows?*

# %%
print(" " * 9, "  ".join(dog))
for name, any_head in {"trained": noun_head, **figures.random_heads(or_finished(AttentionHead), 3)}.items():
    shift = or_finished(context_shift)(any_head.W_v(x_dog), any_head(x_dog)).tolist()  # (7,)
    print(f"{name:9}", "  ".join(f"{s:.2f}".rjust(len(word)) for word, s in zip(dog, shift, strict=True)))

# %% [markdown]
# Random heads change words a lot as well, so the size of a change alone means nothing. What's special about the trained
# head is the pattern, with large changes for articles and adjectives and almost none for nouns. A better test in *Going
# further* shows that this head writes the gender of the noun into the article.

# %% [markdown]
# ## A search engine is attention
#
# In the video search of lesson 3 the query is what you type, the keys come from titles and descriptions, and the values
# are what you get. A search engine returns the best match, whereas attention returns a *blend*:
#
# | title | key (cooking, music, far away) | query (2, 0, 1) · key | weight | value (minutes) |
# |---|---|---|---|---|
# | Rice in one pot | (3, 0, 0) | 6 | 0.2688 | 10 |
# | Jazz for beginners | (0, 4, 0) | 0 | 0.0007 | 60 |
# | Street food of Hanoi | (2, 0, 3) | 7 | 0.7306 | 20 |
#
# The blend of the minutes is $0.2688\cdot10+0.0007\cdot60+0.7306\cdot20=17.34$. No video lasts exactly that long, so
# for a viewer the blend is useless. A network, however, can learn to search with it, because the blend changes a
# little when the query does, so there is a gradient everywhere. A temperature decides how selective the search is.
# Can you find one at which Hanoi has 99% of the weight, and one at which jazz has 20%?

# %%
explore.video_search()

# %% [markdown]
# You need a temperature of about 0.22 for Hanoi, and a much higher one of about 9.4 for jazz.

# %% [markdown]
# ### Exercise 7.6 `soft_lookup`
#
# Difficulty 2 of 5 · Importance 4 of 5 · 6 minutes · 12 points
#
# Write the search engine as a function of one query, $\sum_j w_j v_j$ with $w=\text{softmax}(Kq/\tau)$. The temperature
# $\tau$ is the only divisor, and there is no $\sqrt d$.
#
# - **Arguments:** `query (d,)`, `keys (N, d)`, `values (N, E)`, and `temperature`, a number above 0.
# - **Returns:** `(E,)`.


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
# First compute one score per key, then one weight per key, and then one vector.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# A matrix times a vector gives one entry per row, and a vector times a matrix a weighted sum of its rows.
#
# </details>

# %% [markdown]
# Scaled attention is therefore `soft_lookup` for all queries at once, at temperature $\sqrt{d_k}$, and `hard_lookup` is
# its limit for low temperatures.

# %% [markdown]
# ## At work
#
# Let's put your attention into all heads of the translator:

# %%
at_work(attention, AttentionHead)

# %% [markdown]
# The panel also shows the context shift of each word in the whole encoder and, as a control, the same without
# attention. A large part of the shift comes from the other layers (lesson 9).
#
# What would the bug of Exercise 7.4 cost here? It has two effects: the scores aren't scaled, and in heads of width 16
# the weights sum to ¼.


# %%
def published_attention(Q, K, V, mask=None):
    scores = Q @ K.transpose(-2, -1)  # (..., T_q, T_k)
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    weights = torch.softmax(scores, dim=-1) * Q.shape[-1] ** -0.5  # (..., T_q, T_k)
    return weights @ V, weights  # (..., T_q, d_v), (..., T_q, T_k)


at_work(attention=published_attention)


# %% [markdown]
# The loss rises to 2.6 nats per word. In lesson 4, forgetting the scale alone cost only 0.01 nats, so the damage comes
# from the weights summing to ¼, which shrinks every head's output by a factor of four (*Going further* separates the
# two effects).

# %% [markdown]
# ## The library call
#
# In your own projects you can now use PyTorch's **`F.scaled_dot_product_attention`**. Is it equal to yours, and how
# long does each take?

# %%
long_Q, long_K, long_V = torch.randn(3, 1, 8, 2048, 64, generator=torch.Generator().manual_seed(0))  # (B, H, T, d_k)
calls = {"yours": lambda *qkv: or_finished(attention)(*qkv)[0], "PyTorch": F.scaled_dot_product_attention}
with torch.no_grad():
    for name, call in calls.items():
        call(long_Q, long_K, long_V)  # once before the clock starts
        start = time.perf_counter()
        out = call(long_Q, long_K, long_V)  # (B, H, T, d_v)
        print(f"{name:8} {1000 * (time.perf_counter() - start):5.0f} ms   first entries", out[0, 0, 0, :3])

# %% [markdown]
# The outputs are equal up to rounding. On our computer, the library call takes less than half as long, mainly because
# of what it doesn't store. Your function creates a table of $8\cdot2048^2$ weights, which takes 134 MB. The library's
# fused implementation (**FlashAttention**) works through the keys in blocks and never has the whole table in memory.
# Therefore it can't return the weights, and to see what a head attends to, you need your own version.

# %% [markdown]
# ### Quiz 7.1
#
# In one channel the values of all tokens lie between −1 and 3. What could produce a 5 in this channel of the output?
#
# - **a** a larger weight on the token with 3
# - **b** nothing, because attention can't leave the range of its values
# - **c** larger scores for all tokens
# - **d** a wider head with more channels

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
# You shuffle keys and values together, in the same way, while the queries stay as they are and there is no mask. What
# happens to the output?
#
# - **a** Its rows are shuffled in the same way.
# - **b** Each query gets the values of other words.
# - **c** Nothing changes.

# %% nbgrader={"solution": "quiz_2"}
quiz_2 = None  # "a", "b" or "c"
### BEGIN SOLUTION
quiz_2 = "c"
### END SOLUTION

# %% nbgrader={"grade": "quiz_2"}
check(quiz_2=quiz_2)

# %% [markdown]
# ## Written question
#
# *15 points, graded by hand, 10 minutes, six to ten sentences.*
#
# A classmate writes, "I multiply each value by its weight and sum the columns, but I don't know what it accumulates.
# More related tokens add more information, so a long sentence gives a vector with more information in it." Explain what
# the context vector of a word consists of, what it loses, and what is right and wrong in the second sentence. Use a
# small example with numbers of your own.

# %% [markdown] nbgrader={"written": "written_1"}
# <details><summary>Model answer and marking scheme</summary>
#
# **Model answer.** The context vector is a weighted average of the values. With weights ¼ and ¾ and values (4, 0) and
# (0, 8) we get (1, 6). The weights are not negative and sum to 1, so every channel lies between the smallest and the
# largest value of that channel, and channels don't mix. It accumulates fractions of words, because averaging the
# values is the same as averaging the words' vectors and projecting the average with $W_V$. More related tokens do
# contribute more, but what one token gains the others lose. A longer sentence doesn't add information, because the
# vector has the same $d_v$ channels, and each token gets a smaller weight on average. The order of the words is lost,
# unless positions are in their vectors, and with more tokens than channels the exact weights are lost as well.
# Queries and keys alone decide which tokens count, and the values have no influence on that.
#
# | marking scheme | points |
# |---|---|
# | a weighted average of values, with a correct numerical example | 4 |
# | weights sum to 1, so more of one is less of another, and no channel leaves its range | 3 |
# | fractions of words seen through $W_V$, or an equivalent statement of *what* is accumulated | 3 |
# | a longer sentence has the same number of channels, not more information | 2 |
# | something that is lost, such as the order or the exact weights | 2 |
# | where to attend (Q, K) and what to get (V) are separate | 1 |
#
# </details>

# %% [markdown]
# ## Recap
#
# - The context vector is a weighted average of values, that is, fractions of words seen through $W_V$. It has no order,
#   and it never leaves the range of the values.
# - Queries and keys say where to attend, and values say what to get.
# - We scale before the softmax, and a good test is that attention returns equal values unchanged.
# - The size of a vector's change means little without a control.
# - `F.scaled_dot_product_attention` computes the same output without storing the weights.
#
# **Next:** one head computes one average per query. [Lesson 8](../08_multi_head/08_multi_head.ipynb) runs several heads
# in parallel.

# %% [markdown]
# ## Going further
#
# Everything below is optional, and no later lesson needs it.
#
# ### Can we recover the weights?
#
# Can we compute the attention weights of *is* from its context vector? Here we can, since we have more equations, one
# per channel, than unknowns.

# %%
recovered = torch.linalg.lstsq(values.T, context_is[:, None]).solution[:, 0]  # (6,)
print("recovered:", " ".join(f"{weight:.4f}" for weight in recovered.tolist()))

# %% [markdown]
# We get all six weights back, because the six values are linearly independent. In the explorer three values are the
# corners of a triangle, and you can move the scores and watch where the context vector goes.

# %%
explore.mixing()

# %% [markdown]
# If one score is far above the others, the star moves into that word's corner. It can't leave the triangle, because
# that would take a negative weight, or weights that don't sum to 1.
#
# ### The same word in two contexts
#
# A better test of a head than the size of a change compares the *same* word in *two* contexts. Our sentence contains
# *the* twice, so we measure the cosine of its two vectors, before and after attention. Then we replace *door* by
# *umbrella*, which is masculine (*le parapluie*), like *le chien*.


# %%
def two_articles(sentence):
    x_the, parameters = figures.inside_the_translator(sentence, head=0)
    head = or_finished(AttentionHead)(64, 16)
    head.load_state_dict(parameters)
    positions = [i for i, word in enumerate(sentence.split()) if word == "the"]
    before, after = head.W_v(x_the)[positions], head(x_the)[positions]  # (2, 16) each
    return [torch.cosine_similarity(a, b, dim=0).item() for a, b in (before, after)]


for noun in ("door", "umbrella"):
    print(noun, "before {:.2f}   after {:.2f}".format(*two_articles(f"the white dog forgets the green {noun}")))

# %% [markdown]
# Before attention the two vectors of *the* are about equally similar in both sentences. After it, the two that become
# *le* and *la* point in different directions, and the two that both become *le* point in similar ones. So this head
# writes the gender of the noun into the article. (The head's input already contains part of it, as a table at the end
# shows.)
#
# Judging words by the size of their change has a second problem, even in a trained head. A small change may come from a
# word with one stable meaning, but also from a word that attends to itself, or to words with the same value. A large
# one may come from an ambiguous word, but also from a head with another purpose, such as the previous-token head.
#
# ### Which half of the bug costs more?
#
# The bug of Exercise 7.4 forgets the scale, and its weights sum to ¼. The next call scales correctly, so only its
# weights are too small. Predict before you run: *by how much does the loss improve?*


# %%
def quarter_strength(Q, K, V, mask=None):
    weights = or_finished(attention)(Q, K, V, mask)[1] * Q.shape[-1] ** -0.5  # (..., T_q, T_k)
    return weights @ V, weights  # (..., T_q, d_v), (..., T_q, T_k)


at_work(attention=quarter_strength)

# %% [markdown]
# On the contrary, the loss even rises from 2.6 to 3.0 nats per word. All the damage comes from the weights summing to
# ¼. Forgetting the scale as well sharpens the weights and recovers a little.

# %% [markdown]
# ### Exercise 7.7 `attention_backward`
#
# **Extra** · Difficulty 4 of 5 · Importance 3 of 5 · 30 minutes · 12 bonus points
#
# Autograd computes gradients for you, but doing it once by hand shows what a head learns. We need two rules, in which
# $\partial A$ is short for the gradient of the **loss** at $A$.
#
# - **Matrix product:** if $C=AB$, then $\partial A=\partial C\,B^\top$ and $\partial B=A^\top\partial C$. (Check the
#   shapes, because no other product fits.)
# - **Softmax** (lesson 6): if $w=\text{softmax}(s)$, then $\partial s_j=w_j\,(\partial w_j-\sum_i w_i\,\partial w_i)$.
#
# Let's do an example on paper, with one query, two keys and width 1, where $q=0$, $k=(1,3)$, $v=(0,4)$, and the
# gradient at the output is $g=1$. Both scores are 0, so the weights are ½ and the output is 2.
#
# | | key 1 | key 2 | how |
# |---|---|---|---|
# | $\partial v_j$ | ½ | ½ | $w_j\,g$ |
# | $\partial w_j$ | 0 | 4 | $g\cdot v_j$ |
# | $\partial s_j$ | ½(0 − 2) = −1 | ½(4 − 2) = 1 | weighted mean of $\partial w$ is 2 |
# | $\partial k_j$ | 0 | 0 | $\partial s_j\,q$, and $q=0$ |
#
# Moreover, $\partial q=-1\cdot1+1\cdot3=2$. The third line of the table is $\partial s_j=w_j\,g\cdot(v_j-\text{out})$
# in one formula. **So the gradient pushes a key's score up when $v_j-\text{out}$ points along $-g$, the direction in
# which the output should move.** Whether the score and its weight rise depends on the other keys too, because all of
# them use one query and the weights sum to 1. A key with $w_j=0$ gets no gradient, which is the
# saturation of lesson 4.

# %%
figures.pressure()

# %% [markdown]
# Compute the gradients at all three inputs from the gradient at the output, with scores over $\sqrt{d_k}$ and no mask.
#
# - **Arguments:** `Q (..., T_q, d_k)`, `K (..., T_k, d_k)`, `V (..., T_k, d_v)`, `grad_out (..., T_q, d_v)`, with
#   scores up to $\pm10^4$.
# - **Returns:** a tuple `(dQ, dK, dV)` with the shapes of Q, K and V.
# - **Forbidden:** autograd in every form.


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
# Go back through the four steps of the formula and compute the gradients at V and at the weights, then at the scaled
# scores, then at $QK^\top$, and finally at Q and K.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# The weighted mean in the softmax rule runs along each row of the weights, so use `keepdim`. The division by
# $\sqrt{d_k}$ in the forward pass gives one division in the backward pass, for two of the three gradients.
#
# </details>
#
# Now we can train queries, keys and values with your gradients until the output reaches four random targets. The loss
# is half the squared distance, so its gradient at the output is the output minus the target.

# %%
torch.manual_seed(0)
Q, K, V, target = torch.randn(4, 8), torch.randn(6, 8), torch.randn(6, 3), torch.randn(4, 3)
for step in range(41):
    out = or_finished(attention)(Q, K, V)[0]  # (4, 3)
    if step % 10 == 0:
        print(f"step {step:2}   loss {(out - target).square().sum() / 2:.3f}")
    gradients = or_finished(attention_backward)(Q, K, V, out - target)
    Q, K, V = (tensor - 0.5 * gradient for tensor, gradient in zip((Q, K, V), gradients, strict=True))

# %% [markdown]
# ### Exercise 7.8 `tiled_attention`
#
# **Extra** · Difficulty 4 of 5 · Importance 4 of 5 · 30 minutes · 12 bonus points
#
# For $T$ tokens there are $T^2$ weights per head, but the output has only $T\,d_v$ entries. Must all weights exist at
# the same time? It's easy to split the queries, because the rows of weights don't depend on each other:


# %%
def attention_at_once(Q, K, V):
    return torch.softmax(Q @ K.transpose(-2, -1) / K.shape[-1] ** 0.5, dim=-1) @ V  # (..., T_q, d_v)


def attention_in_rows(Q, K, V, rows=128):
    return torch.cat([attention_at_once(q, K, V) for q in Q.split(rows, dim=-2)], dim=-2)  # the same


# %% [markdown]
# Splitting the keys is harder, because softmax needs the maximum and the sum over *all* keys. Both can be running
# values, however, which we rescale when a later block brings a larger score (online softmax, in *Going further* of
# lesson 6). On paper, with scores `0, 1, 2` and values `10, 20, 30` in blocks of two:
#
# | after | maximum | sum of exponentials | sum of exponentials × values |
# |---|---|---|---|
# | block (0, 1) | 1 | $e^{-1} + e^0 = 1.368$ | $0.368\cdot10 + 1\cdot20 = 23.68$ |
# | rescaled for maximum 2 | 2 | $1.368\, e^{-1} = 0.503$ | $23.68\, e^{-1} = 8.71$ |
# | block (2) | 2 | $0.503 + e^0 = 1.503$ | $8.71 + 1\cdot30 = 38.71$ |
#
# The output is $38.71/1.503=25.75$, exactly as with all scores at once. If you split both sides, a *tile* of scores
# moves over the table. Move the first slider and watch what has to be kept in memory.

# %%
explore.tiles()

# %% [markdown]
# This is the idea of Rabe and Staats (2021) and of FlashAttention (Dao et al., 2022). A tile of queries and a tile of
# keys fit into the small, fast memory of a graphics card, and the large, slow memory never holds a score. This saves
# memory, and also time, because moving the scores takes longer than computing them.
#
# Compute unmasked attention, scaled by $1/\sqrt{d_k}$, `block` keys at a time.
#
# - **Arguments:** `Q (..., T_q, d_k)`, `K (..., T_k, d_k)`, `V (..., T_k, d_v)` with scores up to $\pm10^4$, and
#   `block`, a positive int. The last block may be shorter, and `block` may be larger than $T_k$.
# - **Returns:** `(..., T_q, d_v)`.
# - **Memory** counts for most of the points, and we measure it without autograd. For `block` $<T_k$ no tensor may have
#   $T_q\cdot T_k$ entries per leading index. If the block is much smaller than $T_k$, the same limit holds for all live
#   tensors together, so a list of blocks doesn't help, and no row of scores spans all keys.
# - **Forbidden:** `F.scaled_dot_product_attention`.


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
# Keep three running tensors, the three columns of the table above, with one row per query. A block of scores is needed
# for one iteration of the loop only.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# When the maximum rises, one factor per query rescales both sums. Initialize the running maximum to −∞; then
# $e^{-\infty}=0$ takes care of the first block.
#
# </details>
#
# How large is the largest intermediate tensor as $T$ grows?


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
# If you split one side, the largest tensor grows with $T$ instead of $T^2$. If you split both sides, a tile has 8192
# scores however long the text is, and above 512 tokens the largest tensor is the output itself. There is one more
# reason to split the keys: a model that generates text has *one* query at a time, so there is nothing else to split.
# The number of multiplications does *not* shrink, since we still multiply every query by every key.

# %% [markdown]
# ### How stable are these numbers?
#
# Over 150 unseen sentences, the previous-token head is less strict than on *jane visits africa*, but far from random:
#
# | head | mean weight on the previous token | largest weight on it |
# |---|---|---|
# | trained, head 3 | 0.47 | 57% of the words |
# | three random heads | 0.11 to 0.14 | 5 to 17% |
#
# The mean context shift over the same sentences shows the pattern of head 0 and its control. In the other seven heads
# of the encoder we see no such pattern (there nouns change 0.6 to 1.7 times as much as articles, *this* and *my*
# included).
#
# | head | articles | adjectives | nouns |
# |---|---|---|---|
# | trained, head 0 | 0.95 | 0.80 | 0.02 |
# | three random heads | 0.35 to 0.54 | 0.42 to 0.63 | 0.51 to 0.60 |
#
# How well can a linear map tell *le* from *la* by a head's output for *the*, on sentences to which it wasn't fitted?
#
# | input of the map | correct |
# |---|---|
# | output of head 0 | 100% |
# | output of another head of the block | 65 to 75% |
# | input of the block | about 90% |
#
# Here is what the bug of Exercise 7.4 costs in three translators with different seeds, in nats per word:
#
# | training run | weights sum to ¼ | weights sum to ¼, scores not scaled |
# |---|---|---|
# | the translator of this course | 3.01 | 2.61 |
# | two others, on two kinds of processors | 2.9 to 3.2 | 2.5 to 2.9 |

# %% [markdown]
# ## Further reading
#
# - Vaswani et al., [Attention Is All You Need](https://arxiv.org/abs/1706.03762) (2017), section 3.2.1, with the
#   formula.
# - Sebastian Raschka, [Self-attention from
#   scratch](https://sebastianraschka.com/blog/2023/self-attention-from-scratch.html), with the six words and the
#   context vector of *is*.
# - Andrej Karpathy, [Let's build GPT](https://www.youtube.com/watch?v=kCc8FmEb1nY), with the head of size 16; Pascal
#   Poupart, [CS480/680 lecture 19](https://www.youtube.com/watch?v=OyFJWRnt_AY), on attention as a database; Rowel
#   Atienza, [Transformer](https://www.youtube.com/watch?v=6PmIoCnqcFU).
# - [AI Summer on attention](https://theaisummer.com/attention/), with keys, values and the video search.
# - Elhage et al., [A Mathematical Framework for Transformer
#   Circuits](https://transformer-circuits.pub/2021/framework/index.html) (2021), with "where" and "what" as two
#   circuits.
# - Rabe and Staats, [Self-attention Does Not Need O(n²) Memory](https://arxiv.org/abs/2112.05682) (2021), and Dao et
#   al., [FlashAttention](https://arxiv.org/abs/2205.14135) (2022), on attention in blocks.
# - The bug of exercise 7.4, found by readers: [FrancescoSaverioZuppichini/ViT, issue
#   2](https://github.com/FrancescoSaverioZuppichini/ViT/issues/2).
