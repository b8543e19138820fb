# %% [markdown]
# # 4. Scaling: why scores are divided by a square root
#
# **Goal:** know why attention divides its scores by the square root of the head's width, what goes wrong without it or
# with too much of it, and how to notice when somebody's code gets it wrong.
#
# **Time:** about 90 minutes.
#
# Attention is one formula, and one number in it looks like an afterthought:
#
# $$\text{softmax}\!\left(\frac{QK^\top}{\sqrt{d_k}}\right)V$$
#
# You made $QK^\top$ in lesson 3. This lesson is about the number below it.

# %% tags=["setup"]
# (empty: the build puts the set-up cell here)

# %%
import math

import torch
from torch import nn

from helpers import at_work, check, or_given
from helpers.drawing.transformer_map import transformer_map
from helpers.lessons.scaling import explore, figures

# %%
transformer_map("04_scaling")

# %% [markdown]
# We are inside an attention block, between the scores that you made and the softmax that will turn them into weights.

# %% [markdown]
# ## You need
#
# - queries, keys and their scores: [lesson 3](../03_query_key/03_query_key.ipynb);
# - the dot product as a measure of likeness: [lesson 1](../01_token_embedding/01_token_embedding.ipynb);
# - variance, the mean squared distance from the mean. Its root is the standard deviation, which we also call the
#   *spread*. Where terms are independent, their variances add.
#
# Two questions to warm up. Answer before you unfold.
#
# <details><summary>Lesson 3: Q is (2, 5, 6) and K is (2, 7, 6). What shape do the scores have, and which axis is summed
# away?</summary>
#
# (2, 5, 7): in each of 2 sequences, 5 queries meet 7 keys. The last axis, of width 6, is summed away: each score is a
# sum of 6 products.
#
# </details>
#
# <details><summary>Lesson 1: make both vectors twice as long. What happens to their dot product, and to their
# cosine?</summary>
#
# The dot product becomes four times as large. The cosine stays as it is, because the lengths have been divided out.
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
# ## A dot product spreads as it widens
#
# **On paper first.** Let every entry of $q$ and $k$ be $+1$ or $-1$, by the toss of a coin. Then each product
# $q_i k_i$ is $+1$ or $-1$ too. With width 4 the score is a sum of four tosses, and the 16 outcomes are
#
# | score | −4 | −2 | 0 | 2 | 4 |
# |---|---|---|---|---|---|
# | outcomes | 1 | 4 | 6 | 4 | 1 |
#
# The mean is 0, so the variance is the mean square: $\frac{1\cdot16 + 4\cdot4 + 6\cdot0 + 4\cdot4 + 1\cdot16}{16} =
# \frac{64}{16} = 4$. That is the width. The standard deviation is its root, 2.
#
# **Predict before you run.** Now take the entries from a normal distribution instead. Width 4 is a sum of four small
# products, width 16 a sum of sixteen. *By what factor does the spread grow each time the width grows four times?*
# Write your guess down, then run the cell.

# %%
torch.manual_seed(0)
for d_k in (4, 16, 64, 256):
    q, k = torch.randn(10_000, d_k), torch.randn(10_000, d_k)  # (pairs, d_k)
    scores = (q * k).sum(dim=-1)  # (pairs,)
    print(f"width {d_k:3d}   standard deviation of q·k {scores.std().item():5.2f}")

# %%
figures.spread()

# %% [markdown]
# <details><summary>Answer</summary>
#
# It doubles. A sum of four times as many terms is not four times as wide, because pluses and minuses cancel. It is
# $\sqrt{4}$ times as wide.
#
# </details>
#
# In symbols, for independent entries with mean 0 and variance 1,
#
# $$\operatorname{Var}(q\cdot k) = \sum_{i=1}^{d_k}\operatorname{Var}(q_i k_i) = d_k \cdot 1 = d_k,
# \qquad \text{standard deviation } \sqrt{d_k}.$$
#
# One product has variance 1 because $\operatorname{E}[q_i^2 k_i^2] = \operatorname{E}[q_i^2]\operatorname{E}[k_i^2] =
# 1$. This is footnote 4 of the paper, and it is all that the square root says.
#
# Here intuition stops and assumptions begin: *independent*, *mean 0*, *variance 1*. They describe a fresh network
# with well-chosen starting weights. Below we break them on purpose.

# %% [markdown]
# ### Exercise 4.1 `score_variance`
#
# Difficulty 1 of 5 · Importance 3 of 5 · 6 minutes · 10 points
#
# First an instrument to measure with. With $S = QK^\top$ and $n$ the number of *all* entries of $S$, over all leading
# dimensions together,
#
# $$\bar S = \frac1n\sum S, \qquad \text{score\_variance}(Q, K) = \frac1n\sum (S - \bar S)^2 .$$
#
# `Q (..., T_q, d_k)`, `K (..., T_k, d_k)` → a scalar (0-dim tensor). It is the *population* variance: divide by $n$.
# A single score has variance 0.
#
# (The mean of the squares minus the square of the mean is the same on paper, and no mistake here. It loses its digits
# where all scores lie far from 0: for scores near 10,000 that differ by 1, the two terms differ by 0.25 near
# 100,000,000, where float32 counts in steps of 8.)


# %% nbgrader={"solution": "score_variance"}
def score_variance(Q, K):
    """Population variance of all entries of QKᵀ, over all leading dimensions together.

    Q (..., T_q, d_k), K (..., T_k, d_k), float32 or float64 -> scalar (0-dim), same dtype,
    differentiable.
    """
    ### BEGIN SOLUTION
    scores = Q @ K.transpose(-2, -1)  # (..., T_q, T_k)
    return scores.var(correction=0)  # ()
    ### END SOLUTION


# %% nbgrader={"grade": "score_variance"}
check(score_variance)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# Two steps: all scores, then their variance. Tensors have a method for the second one. Read its signature.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Statisticians divide by n − 1 when they guess at a larger population from a sample, and that is the method's default.
# Look for the argument that says how much is subtracted from n.
#
# </details>

# %% [markdown]
# ## The repair is one division
#
# Divide a random number by $c$ and its variance shrinks by $c^2$:
#
# $$\operatorname{Var}\!\left(\frac{q\cdot k}{c}\right) = \frac{d_k}{c^2}.$$
#
# *Which $c$ makes this 1, whatever the width?*
#
# <details><summary>Answer</summary>
#
# $c = \sqrt{d_k}$, the standard deviation; not $d_k$, the variance. On paper, with the coin tosses of width 4: divide
# the scores −4, −2, 0, 2, 4 by 2 and you get −2, −1, 0, 1, 2. Their variance is
# $\frac{1\cdot4+4\cdot1+0+4\cdot1+1\cdot4}{16} = 1$.
#
# </details>
#
# Nothing is learned here and nothing is measured. The divisor is a constant that depends on the shape alone.

# %% [markdown]
# ### Exercise 4.2 `scaled_scores`
#
# Difficulty 1 of 5 · Importance 5 of 5 · 5 minutes · 16 points
#
# $$\text{scaled\_scores}(Q, K) = \frac{QK^\top}{\sqrt{d_k}}$$
#
# `Q (..., T_q, d_k)`, `K (..., T_k, d_k)` → `(..., T_q, T_k)`. Read $d_k$ from the shapes, so that any number of
# leading dimensions works.


# %% nbgrader={"solution": "scaled_scores"}
def scaled_scores(Q, K):
    """Scaled dot-product scores, eq. 1 of Vaswani et al. (2017) before its softmax.

    Q (..., T_q, d_k), K (..., T_k, d_k), float32 or float64 -> (..., T_q, T_k), same dtype.
    """
    ### BEGIN SOLUTION
    d_k = Q.shape[-1]
    return Q @ K.transpose(-2, -1) / d_k**0.5  # (..., T_q, T_k)
    ### END SOLUTION


# %% nbgrader={"grade": "scaled_scores"}
check(scaled_scores)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# The width is the axis that the product sums away. Count axes from the end, as the number at the front varies.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# The width is a Python number, so Python can take its root: an exponent of one half. You may divide the scores, or the
# queries before they meet the keys. Do not write into Q itself.
#
# </details>
#
# The first cell again, with your two functions: the variance before your division and after it.

# %%
torch.manual_seed(0)
for d_k in (4, 16, 64, 256):
    Q, K = torch.randn(100, d_k), torch.randn(100, d_k)  # (T_q, d_k), (T_k, d_k)
    before, after = or_given(score_variance)(Q, K), or_given(scaled_scores)(Q, K).var(correction=0)  # scalars
    print(f"width {d_k:3d}   variance {before.item():6.1f} before, {after.item():.2f} after")

# %% [markdown]
# ## Softmax in three numbers
#
# Why should spread matter, if only the order of the scores counts? It matters because of what comes next.
# `torch.softmax` turns scores into weights that are positive and add up to 1. Lesson 6 opens it; here it is a tool. By
# hand, for the scores 0, 1, 2:
#
# | score | $e^{\text{score}}$ | weight |
# |---|---|---|
# | 0 | 1.000 | 1.000 / 11.107 = 0.090 |
# | 1 | 2.718 | 2.718 / 11.107 = 0.245 |
# | 2 | 7.389 | 7.389 / 11.107 = 0.665 |
# | sum | 11.107 | 1.000 |
#
# Softmax looks at *differences* of scores, through an exponential. Make all scores three times as large, or ten times:
# the order stays, and the winner takes everything.

# %%
figures.three_numbers()

# %% [markdown]
# This is **saturation**. Let the entries of queries and keys have variance 1. Then the scores of a head of width 64 spread
# by 8, and among six keys the typical winner has 0.98 of the weight before anything is learned. Over $\sqrt{64}$ it has 0.39.

# %% [markdown]
# ## One word, four divisors
#
# The running sentence of lesson 1: *Life is short, eat dessert first*. Embeddings of width 16, queries and keys of
# width 24, all random. The scores of *is* are those that you met in lesson 3.

# %%
torch.manual_seed(123)
tokens = ["Life", "is", "short", "eat", "dessert", "first"]
embedding = nn.Embedding(6, 16)
W_query, W_key = torch.rand(24, 16), torch.rand(24, 16)  # (d_k, D) each
x = embedding(torch.tensor([0, 4, 5, 2, 1, 3])).detach()  # (6, 16)

# %%
query_is = W_query @ x[1]  # (24,)
keys = x @ W_key.T  # (6, 24)
scores_is = keys @ query_is  # (6,)
print(" ".join(f"{score:.4f}" for score in scores_is.tolist()))

# %% [markdown]
# What does *is* see if these scores are divided by 1, by $\sqrt{24} \approx 4.9$, by 24, by 100? To compare, the figure
# counts **words in effect**: 1 when one word has everything, 6 when all six share alike, and something in between
# otherwise. (Lesson 6 shows how it is counted, by the entropy of the weights.)

# %%
figures.four_divisors(scores_is, tokens)

# %% [markdown]
# Undivided, *is* sees *eat* and nothing else. Divided by 24 the preference fades, and divided by 100 it sees all words
# nearly alike, which is hardly attention at all. $\sqrt{24}$ leaves a preference and keeps the others in sight.
#
# *So what is wrong with 100? Is it that the number is arbitrary?*
#
# <details><summary>Answer</summary>
#
# No: at width 10,000 it would be exactly right. It is wrong because it does not move with the width. A divisor is good
# when the spread after it is the same at every width, and only $\sqrt{d_k}$ (times a constant) does that.
#
# </details>

# %% [markdown]
# ## Temperature
#
# A divisor of scores has an older name, from physics: **temperature**.
#
# $$p = \text{softmax}(s / \tau), \qquad \tau \to 0: \text{the best word takes all}, \qquad
# \tau \to \infty: \text{all words alike}.$$
#
# So dividing by $\sqrt{d_k}$ sets a temperature that rises with the width. Move the slider from cold to hot. *At which
# temperature does “is” have two words in effect? At which five?*

# %%
explore.temperature(scores_is, tokens, start=math.sqrt(24))

# %% [markdown]
# <details><summary>Answer</summary>
#
# Two at about 3.3, five at about 11.5. At $\sqrt{24} = 4.9$ it has 2.9.
#
# </details>

# %% [markdown]
# ## How a weight answers a score
#
# Training could mend a head that has decided wrongly, if its message arrived. That is a question of slopes: if
# score $s_j$ moves a little, how far does weight $p_i$ move? There are $N$ weights and $N$ scores, so the answer is a
# table of $N \times N$ slopes, the **Jacobian**. Two lines derive it. With $Z = \sum_k e^{s_k}$,
#
# $$\ln p_i = s_i - \ln Z, \qquad \frac{\partial \ln Z}{\partial s_j} = \frac{e^{s_j}}{Z} = p_j,$$
#
# $$\frac{\partial p_i}{\partial s_j} = p_i\,\frac{\partial \ln p_i}{\partial s_j} = p_i\,(\delta_{ij} - p_j),
# \qquad\text{as one table: } J = \operatorname{diag}(p) - p\,p^\top .$$
#
# ($\delta_{ij}$ is 1 if $i = j$, else 0.) So $p_i(1-p_i)$ is on the diagonal and $-p_i p_j$ off it.
#
# **On paper**, for the three words with $p = (\frac12, \frac14, \frac14)$: the first row is $(\frac14, -\frac18,
# -\frac18)$. It adds up to 0, as every row does: raise all scores alike and nothing moves. Now do $p = (1, 0, 0)$.
#
# <details><summary>Answer</summary>
#
# Every entry is 0. A word that has everything cannot get more, and one that has nothing gets nothing.
#
# </details>
#
# Autograd agrees with the paper. Scores that give these weights are $\ln 2, 0, 0$:

# %%
s = torch.tensor([math.log(2), 0.0, 0.0])  # (3,)
torch.autograd.functional.jacobian(lambda s: torch.softmax(s, dim=0), s)  # (3 weights, 3 scores)

# %%
figures.two_jacobians()

# %% [markdown]
# The right table belongs to a head that has nearly decided. Whatever the loss wants from the weights, its message is
# multiplied by this table on its way to the scores. Little of it arrives.

# %% [markdown]
# ### Exercise 4.3 `softmax_jacobian`
#
# Difficulty 3 of 5 · Importance 4 of 5 · 12 minutes · 14 points
#
# `p (..., N)`, probability vectors along the last axis → `(..., N, N)`, with entry
#
# $$J_{ij} = p_i\,(\delta_{ij} - p_j) .$$
#
# The argument holds probabilities already. Some may be exactly 0 or 1; no NaN there, in gradients either.


# %% nbgrader={"solution": "softmax_jacobian"}
def softmax_jacobian(p):
    """Jacobian of softmax, written in terms of its output: diag(p) - p pᵀ.

    p (..., N) probability vectors, float32 or float64 -> (..., N, N), same dtype; no NaN in
    gradients.
    """
    ### BEGIN SOLUTION
    outer = p.unsqueeze(-1) * p.unsqueeze(-2)  # (..., N, N)
    return torch.diag_embed(p) - outer  # (..., N, N)
    ### END SOLUTION


# %% nbgrader={"grade": "softmax_jacobian"}
check(softmax_jacobian)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# A column times a row is a table. Give p one new axis at the end, then one before the last, and let broadcasting work.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# `torch.diag` knows one vector only. Its relative for batches has *embed* in its name. Or build an identity matrix and
# multiply.
#
# </details>
#
# Your table at the two ends of the lesson's scale. Its rows add up to 0; how much is left of its entries?

# %%
for p in ([0.5, 0.25, 0.25], [0.98, 0.01, 0.01], [1.0, 0.0, 0.0]):
    J = or_given(softmax_jacobian)(torch.tensor(p))  # (3, 3)
    print(f"p = {p}   largest entry {J.abs().max():.4f}   largest sum of a row {J.sum(dim=-1).abs().max():.4f}")

# %% [markdown]
# ### Exercise 4.4 `max_gradient`
#
# Difficulty 2 of 5 · Importance 3 of 5 · 8 minutes · 12 points
#
# One number for how far a row of weights can still be moved by its scores: the largest absolute entry of the Jacobian.
#
# $$\text{max\_gradient}(s) = \max_{i,j} \left|\frac{\partial p_i}{\partial s_j}\right|, \qquad p = \text{softmax}(s)$$
#
# `scores (..., N)` → `(...)`: one number for each vector of scores, right for scores up to ±10,000. The largest entry
# lies on the diagonal, and it is never above $\frac14$. `torch.softmax` is allowed.
#
# <details><summary>Why on the diagonal, and why never above one quarter?</summary>
#
# Off the diagonal the size is $p_i p_j$. All weights add up to 1, so $p_j \le 1 - p_i$, and $p_i p_j \le p_i(1 - p_i)$.
# The product $p(1-p)$ of a number and what it lacks to 1 is largest at one half, where it is $\frac14$.
#
# </details>


# %% nbgrader={"solution": "max_gradient"}
def max_gradient(scores):
    """Largest absolute entry of the softmax Jacobian at these scores, one for each vector.

    scores (..., N), float32 or float64, up to ±1e4 -> (...), same dtype, between 0 and 1/4.
    """
    ### BEGIN SOLUTION
    p = torch.softmax(scores, dim=-1)  # (..., N)
    return (p * (1 - p)).amax(dim=-1)  # (...)
    ### END SOLUTION


# %% nbgrader={"grade": "max_gradient"}
check(max_gradient)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# The whole table is not needed. Which N of its entries can be the largest?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Softmax first, along the axis whose scores compete. Then the slopes on the diagonal. Then a maximum that takes away
# that axis only. If you write the exponentials yourself, think of what happens at 10,000.
#
# </details>
#
# What is left of the slopes in a head of width 256, for 1,000 random queries with six keys each? *Guess before you run:
# which share of the queries has lost nearly all of them, undivided and over the root?*

# %%
wide = figures.random_scores(256, 1000, 6)  # (queries, keys), entries of variance 1
for name, c in [("undivided", 1), ("over the root", 16)]:
    slopes = or_given(max_gradient)(wide / c)  # (queries,)
    print(f"{name:13}  typical slope {slopes.median():.4f}   below 0.01: {100 * (slopes < 0.01).float().mean():.0f} %")

# %% [markdown]
# ## The factor that the usual story leaves out
#
# The usual story ends here: large scores, flat softmax, no learning. It is not wrong, but it is not finished. Training
# does not move scores. It moves $W_Q$ and $W_K$, and they reach the weights through the query and the keys. Follow one
# query, whose scores are $s = Kq/c$:
#
# $$\underbrace{\frac{\partial p}{\partial q}}_{T \times d_k} = \underbrace{J}_{T \times T}\;
# \underbrace{\frac{\partial s}{\partial q}}_{T \times d_k} = \frac{J K}{c} .$$
#
# There are two factors. A large divisor $c$ makes the first one better, for softmax is not saturated. It makes the
# second one worse, for a step of $q$ moves the scores less. So which wins?
#
# **On paper.** Our three words again, $p = (\frac12, \frac14, \frac14)$. Let their keys be $(4, 0)$, $(0, 4)$ and
# $(0, 0)$, and $c = 2$. What a row of $JK$ says is plain once it is written out:
#
# $$(JK)_i = p_i\,(k_i - \bar k), \qquad \bar k = \sum_j p_j k_j = (2, 1).$$
#
# A query that leans toward key $i$, *away from what the head sees on average*, raises weight $i$. The rows of $JK/c$
# are
#
# | word | $p_i$ | $k_i - \bar k$ | row of $JK/2$ |
# |---|---|---|---|
# | first | 1/2 | (2, −1) | (0.5, −0.25) |
# | second | 1/4 | (−2, 3) | (−0.25, 0.375) |
# | third | 1/4 | (−2, −1) | (−0.25, −0.125) |
#
# *What do the columns add up to, and why?*
#
# <details><summary>Answer</summary>
#
# To 0. The three weights always add up to 1, so whatever one of them gains the others lose.
#
# </details>

# %% [markdown]
# ### Exercise 4.5 `weights_jacobian`
#
# Difficulty 3 of 5 · Importance 4 of 5 · 12 minutes · 14 points
#
# How do the weights $p = \text{softmax}(Kq/\text{divisor})$ move with the query?
#
# $$\text{weights\_jacobian}(q, K, \text{divisor}) = \frac{\bigl(\operatorname{diag}(p) - p\,p^\top\bigr) K}
# {\text{divisor}}$$
#
# `q (d_k,)`, `K (T, d_k)`, `divisor` a Python number above 0 → `(T, d_k)`: a row for each weight, a column for each
# entry of the query. Right for scores $Kq/\text{divisor}$ up to ±10,000. No leading dimensions here.
#
# Forbidden: autograd in every form. `torch.softmax` is allowed, and so is your `softmax_jacobian`.


# %% nbgrader={"solution": "weights_jacobian"}
def weights_jacobian(q, K, divisor):
    """How the weights softmax(Kq / divisor) of one query move when the query moves.

    q (d_k,), K (T, d_k), float32 or float64, divisor a Python number > 0 -> (T, d_k), same dtype.
    """
    ### BEGIN SOLUTION
    p = torch.softmax(K @ q / divisor, dim=0)  # (T,)
    return softmax_jacobian(p) @ K / divisor  # (T, T) @ (T, d_k) -> (T, d_k)
    ### END SOLUTION


# %% nbgrader={"grade": "weights_jacobian"}
check(weights_jacobian)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# Two steps: the weights that the head really uses, then the formula. Try the three words of the table above: the query
# $(\frac12\ln 2, 0)$ gives them their weights.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# The divisor comes in twice: once on the way from the query to the weights, and once in the slope of the scores.
#
# </details>
#
# **Predict before you run.** The query of *is*, with the four divisors of Figure 4.3. *With which one does a small step
# of the query move the weights most?* The table of slopes has 6 × 24 entries. Its **size** is one number for all of them,
# the root of the sum of their squares.

# %%
for name, c in [("1", 1), ("√24", 24**0.5), ("24", 24), ("100", 100)]:
    moves = or_given(weights_jacobian)(query_is, keys, c)  # (6, 24)
    print(f"divided by {name:4} size of ∂p/∂q {moves.norm().item():.3f}")

# %% [markdown]
# <details><summary>Answer</summary>
#
# With $\sqrt{24}$: 0.533. Undivided, softmax is nearly shut (0.033). Over 100 it is wide open, but a step of the query
# moves the scores so little that hardly anything arrives either (0.037).
#
# </details>

# %% [markdown]
# ## What the width does to a query's hold
#
# Now for all widths. Each point below stands for 10,000 random queries with six keys each, entries of variance 1. On
# the left is the slope of softmax alone, on the right the whole way from the query to the weights: the size of
# $\partial p/\partial q$, which we call the query's **hold** on its weights.

# %%
figures.slopes_against_width()

# %% [markdown]
# Read the right picture from left to right.
#
# - **Divided by the square root of the width**, the line is flat from width 4 on. A query of any such width can move its
#   weights equally well. That is what the square root is for.
# - **Not divided**, it first rises: keys get longer, and softmax is not shut yet. At width 64, a common width of real
#   heads, the typical query still moves its weights about 85 % as far as with the division. Then the line falls
#   off a cliff: 0.01 at 256, nothing at 1024. The left picture alone would have you believe that width 64 is nearly lost.
# - **Divided by the width itself**, softmax stays open, and the query still loses its hold: 0.01 at width 1024. Too
#   large a divisor takes it away as no divisor does.
#
# The points are *medians*. The *mean* of the undivided line stays near 1 at every width from 64 on, because a few
# queries are close races between two keys, and those move their weights very far. So an undivided wide head is not
# simply stuck: most of its queries can hardly move anything, and a few make it
# jump.
#
# The paper only suspects it ("we suspect that for large values of $d_k$ …"). You can see how large is large: with
# entries of variance 1, somewhere between 64 and 256.

# %% [markdown]
# ## Starting weights: the other half of the bargain
#
# The rule promises a spread of 1 for entries of variance 1. Who promises the entries?
#
# - `nn.Linear` starts with weights so small that the entries of $q$ and $k$ have variance $\frac13$ if those of $x$
#   have variance 1. The scores then spread by a third of $\sqrt{d_k}$, and the trouble comes at nine times the width.
# - `torch.rand`, in the running example, gives weights between 0 and 1, all positive. The 24 entries of one query then
#   lean to the same side, and so do those of one key. Their products do not cancel: all 36 scores spread by 54.3, where
#   the rule promises 4.9. Even over $\sqrt{24}$ four of the six words give more than 0.96 of their weight to one word.
#   *is*, the published example, happens not to be one of them.

# %%
figures.starts_against_width()

# %% [markdown]
# The division repairs the width, not the starting weights. Undivided, an open softmax needs a small width and a small
# start. Divided, each of the two good starts looks the same at all these widths, and that is what a good recipe does.
#
# Now you: set a width and a start, then move the divisor until the query has the best hold on its weights (right
# picture, blue). *Is the best divisor always near the dotted line? On which side of it is the best place for the slope
# of softmax alone (green)?*

# %%
explore.width_and_divisor()

# %% [markdown]
# <details><summary>Answer</summary>
#
# For entries of variance 1 the best divisor is a quarter to a third of the square root, at every width: it moves along
# with the dotted line. The slope of softmax alone is best further to the right, at six to eight tenths of it. At
# the square root itself a query has 40 to 45 % of the best hold from width 4 on (62 % at width 1): neither this share
# nor the place of the best moves as the head grows. With the start of `nn.Linear` all of it sits at about a third of
# that, as the scores are so much smaller. With the all-positive start the best divisor grows like the width itself,
# since products that do not cancel add up like $d_k$: at width 1024 it is about 20 times the root.
#
# </details>
#
# After training the argument no longer holds. In this course's translator, which divides by the root, the scores in a
# row spread by 0.2 in one of the eight heads of its encoder and by 5.5 in another. And a network can learn any constant
# into $W_Q$, so no divisor changes *what* attention can express. It changes where training starts and how large its
# steps are. The square root answers one precise question: what keeps the spread at 1 when nothing has been learned yet?

# %% [markdown]
# ### Exercise 4.6 `head_scores`
#
# **Find the bug** · Difficulty 2 of 5 · Importance 5 of 5 · 10 minutes · 14 points
#
# A head reads `x` of the model's width $D$ and projects it down to its own width. The next cell is code as it was
# published, in several well-known repositories (links under *Further reading*), put into a function. It runs, it
# trains, its shapes are right. Queries and keys below have entries of variance 1, so the scores ought to spread by 1.


# %%
def published_scores(x, W_q, W_k):
    B, T, C = x.shape
    q, k = x @ W_q.T, x @ W_k.T  # (B, T, head width)
    return q @ k.transpose(-2, -1) * C**-0.5  # (B, T, T)


# %%
torch.manual_seed(0)
tokens_of_bert_size = torch.randn(1, 64, 768)  # (B, T, D): model width 768
one_of_12 = [torch.randn(64, 768) / 768**0.5 for _ in ("query", "key")]  # (d_head, D): head width 64
print(f"spread {published_scores(tokens_of_bert_size, *one_of_12).std().item():.2f}")

# %% [markdown]
# Too flat by a factor of about 3.5. Where does that factor come from? Find it, then write the head's scores as they
# should be:
#
# $$\text{head\_scores}(x, W_q, W_k) = \frac{q\,k^\top}{\text{what belongs here?}}, \qquad q = x\,W_q^\top, \quad
# k = x\,W_k^\top$$
#
# `x (..., T, D)`, `W_q` and `W_k (d_head, D)` → `(..., T, T)`: scaled scores, before any softmax. The published version
# also insists on exactly three axes; yours should not.


# %% nbgrader={"solution": "head_scores"}
def head_scores(x, W_q, W_k):
    """Scaled self-attention scores of one head, before any softmax.

    x (..., T, D), W_q and W_k (d_head, D), float32 or float64 -> (..., T, T), same dtype.
    """
    ### BEGIN SOLUTION
    q = x @ W_q.T  # (..., T, d_head)
    k = x @ W_k.T  # (..., T, d_head)
    return scaled_scores(q, k)  # (..., T, T)
    ### END SOLUTION


# %% nbgrader={"grade": "head_scores"}
check(head_scores)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# 3.5 is about √12, and the model has 12 heads of width 64. Which two widths have a ratio of 12?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# In the published function, `C` names an axis of x. Count the products in one score instead: how long is a row of q?
# You have written that division once already in this lesson, and may use it.
#
# </details>
#
# The same measurement on your repair:

# %%
print(f"spread {or_given(head_scores)(tokens_of_bert_size, *one_of_12).std().item():.2f}")

# %% [markdown]
# The bug hides well: shapes are right, and a network can learn a factor of 3.5 into $W_Q$. One line of measuring shows it.
# **Whenever you read attention code, ask of the number under the root: is it the length of one query?**

# %% [markdown]
# ## At work
#
# Your `scaled_scores` in the course's translator: width 64, four heads of width 16, trained with the right division.
# Below the translation, the cell also says what other divisors cost this trained network.
#
# **Predict before you run.** Order four divisors from the smallest loss to the largest: 4, the root of the head's
# width; 8, the root of the model's width (the published bug); 1, no division at all; 16, the head's width without its
# root. And with which of them does *jane visits africa in september* come out right?

# %%
at_work(scaled_scores)

# %% [markdown]
# The losses are in those four lines. Now the three wrong divisors one by one: compare their translations, and what
# becomes of the 0.92 with which *visits* looks at *jane*.


# %%
def by_model_width(Q, K):
    return Q @ K.transpose(-2, -1) / 64**0.5  # (..., T_q, T_k); a head of this translator is 16 wide


at_work(scaled_scores=by_model_width)


# %%
def not_divided(Q, K):
    return Q @ K.transpose(-2, -1)  # (..., T_q, T_k)


at_work(scaled_scores=not_divided)


# %%
def by_width(Q, K):
    return Q @ K.transpose(-2, -1) / Q.shape[-1]  # (..., T_q, T_k)


at_work(scaled_scores=by_width)

# %% [markdown]
# <details><summary>Answer</summary>
#
# | divisor | nats a word | sentences word for word |
# |---|---|---|
# | the root of the head's width, 4 | 0.00016 | 100 of 100 |
# | the root of the model's width, 8 (the published bug) | 0.00062, 4 times as much | 100 |
# | 1 | 0.011, 70 times | 97 |
# | the head's width, 16 | 0.068, 420 times | 86 |
#
# *jane visits africa in september* comes out right every time, and with the published bug so do all hundred sentences
# that were counted: looking at outputs would have shown nothing. The loss sees it. Of the three wrong ones, 16 hurts
# most. It did so in two more trainings of this machine from other seeds as well: 351
# and 595 times the loss over 16, where no division at all cost 17 and 80 times, and the published bug 3 and 22. In the
# order of the table, *visits* gives *jane* 0.92, 0.74, 1.00 and 0.54 of its attention.
#
# </details>
#
# And the learning? Here are the queries and keys of one of the translator's heads for our sentence. How far do its
# weights move with the query, on average over the five words?

# %%
x, W_q, W_k = figures.first_head("jane visits africa in september")  # (5, 64), (16, 64), (16, 64)
for divisor in (1, 4, 16, 100):
    sizes = [or_given(weights_jacobian)(q, x @ W_k.T, divisor).norm().item() for q in x @ W_q.T]
    print(f"divided by {divisor:3}   size of ∂p/∂q {sum(sizes) / 5:.3f}")

# %% [markdown]
# This is what Figure 4.5 says of width 16: undivided, the queries have not lost their hold (0.32 against 0.09). Under too
# large a divisor they have (0.02 and 0.004). In this sentence it is so in seven of the eight heads. In the one that looks at the
# word before, dividing by 4 helps here: from 0.15 to 0.20. Over 200 other sentences it lifts that head's median query, from
# 0.04 to 0.22, and lowers the mean, from 0.33 to 0.23: a few close races hold the mean up, as above. A head of width 256 would tell the other half of the story.

# %% [markdown]
# ### Quiz 4.1
#
# Queries and keys have width 64; their entries are independent, with mean 0 and variance 1. What is the standard
# deviation of an unscaled score?
#
# - **a** 64
# - **b** 32
# - **c** 8
# - **d** 1

# %% nbgrader={"solution": "quiz_1"}
quiz_1 = None  # "a", "b", "c" or "d"
### BEGIN SOLUTION
quiz_1 = "c"
### END SOLUTION

# %% nbgrader={"grade": "quiz_1"}
check(quiz_1=quiz_1)

# %% [markdown]
# ### Quiz 4.2
#
# A head of width 1024 divides its scores by 1024 instead of by 32. What is true of it before training?
#
# - **a** Its attention weights do not add up to 1.
# - **b** All its weights are nearly alike, and a small step of a query hardly moves them.
# - **c** Its softmax is saturated: one weight has nearly everything.

# %% nbgrader={"solution": "quiz_2"}
quiz_2 = None  # "a", "b" or "c"
### BEGIN SOLUTION
quiz_2 = "b"
### END SOLUTION

# %% nbgrader={"grade": "quiz_2"}
check(quiz_2=quiz_2)

# %% [markdown]
# ### Quiz 4.3
#
# Somebody initializes badly: all entries of queries and keys have mean 0 and standard deviation 2. The width is 16.
# Which divisor would give the scores variance 1?
#
# - **a** 4
# - **b** 2
# - **c** 8
# - **d** 16

# %% nbgrader={"solution": "quiz_3"}
quiz_3 = None  # "a", "b", "c" or "d"
### BEGIN SOLUTION
quiz_3 = "d"
### END SOLUTION

# %% nbgrader={"grade": "quiz_3"}
check(quiz_3=quiz_3)

# %% [markdown]
# ## Written question
#
# *15 points, graded by hand, 10 minutes, six to ten sentences.*
#
# A classmate writes: "We divide by $\sqrt{d_k}$ so that the Euclidean length of the weight vectors stays about the
# same. Any large number would do, for instance 100." Explain to them what the division is really for, why it is a root,
# what would happen without it and with far too large a divisor, and what is right and wrong in their two sentences.
# Name one assumption that your argument needs.
#
# <details><summary>For those who learn alone: what a good answer has</summary>
#
# - The variance of a sum of $d_k$ products, and why its *root* is the divisor.
# - Both ways to fail: a saturated softmax without the division, and a query without influence under too large a
#   divisor.
# - A verdict on each of the two sentences (what is a consequence, what does not follow the width), and one assumption.
#
# </details>

# %% [markdown] nbgrader={"written": "written_1"}
# <details><summary>Model answer and marking scheme</summary>
#
# **Model answer.** A score is a sum of $d_k$ products. If the entries of queries and keys are independent with mean 0
# and variance 1, each product has variance 1, variances add, and the score has variance $d_k$: wide heads have widely
# spread scores. Dividing by $c$ divides the variance by $c^2$, so $c$ must be the standard deviation $\sqrt{d_k}$ to
# bring the variance back to 1; dividing by $d_k$ would overshoot, to $1/d_k$. Without it softmax saturates at large
# widths: one weight is near 1, the rest near 0, all entries $p_i(\delta_{ij} - p_j)$ of its Jacobian are near 0, and
# hardly any gradient reaches most queries, so that a choice made by random weights is hard to unlearn. Under far too
# large a divisor softmax is open, but all weights are alike, and the factor $K/c$ on the way back to the query is tiny:
# little gradient arrives there either. The classmate's first sentence takes a consequence for the reason: the vector of
# attention weights has a similar length at all widths because the scores spread alike, while the weight matrices and
# the lengths of q and k are not changed at all. The second is wrong because a fixed divisor does not move with the
# width: 100 is right at width 10,000 and makes attention almost uniform at width 24.
#
# **Marking scheme (15).** 4: variance of a sum of $d_k$ products is $d_k$. 3: why the root, not $d_k$ (standard
# deviation; variance scales with $c^2$). 4: saturated softmax, Jacobian near 0, little gradient to queries and keys (2
# if only "softmax becomes one-hot"); of these, 1 for too large a divisor. 2: the sentence on lengths is a consequence
# or names vectors that the division does not touch. 1: a fixed number does not follow the width. 1: an assumption named
# (independence, mean 0, variance 1, or start of training).
#
# </details>

# %% [markdown]
# ## From the notes this course grew from
#
# <details><summary>What the notes say of the divisor, measured</summary>
#
# **“It ensures that the euclidean length of the weight vectors to be approximately in the same magnitude.”** So say the
# notes, after Sebastian Raschka's [Self-attention from scratch](https://sebastianraschka.com/blog/2023/self-attention-from-scratch.html). The
# rows of $W_Q$ and $W_K$ are not touched by the division, nor is $q$, whose length is about $\sqrt{d_k}$ before and
# after. The vector of *attention weights* does keep its length: over six random keys, divided, it is 0.53 at width 16
# and 0.53 at width 256; undivided 0.82 and 0.96. So the sentence describes something true, but a consequence. The
# reason is the variance.
#
# **Two divisors in comments.** The notes' cell carries two more: 24 under the name *no_scaling*, and 100 with the remark
# “arbitary is not good!” Figure 4.3 runs them. Divided by 24 the scores *are* scaled, more than the paper asks: no scaling
# would be the divisor 1. And the fault of 100 is not that it is arbitrary, but that it does not follow the width.
#
# **“$d_k$: matrix size”** says another of the notes under the formula. It is the length of one query, a width: the
# matrices may have any number of rows.
#
# **Code without the factor.** The Stack Exchange answer on Q and K as an inquiry (lesson 3) borrows a few lines from a
# lecture by Andrej Karpathy and stops just before the lecture puts the factor in: B, T, C = 4, 8, 32, head size 16, seed
# 1337, and the scores go into softmax undivided. Their variance is 1.91, not 16, because of `nn.Linear`'s small start ($16\cdot\frac13\cdot
# \frac13 = 1.8$), so it is no disaster at this size; over $\sqrt{16}$ it would be 0.12. Figure 4.6 shows what becomes
# of it when the head grows.
#
# And some recipes for very wide networks do divide by $d_k$: for queries and keys that have lined up, $q\cdot k$ grows
# like $d_k$ itself (Yang and others, below).
#
# </details>

# %% [markdown]
# ## Recap
#
# - A score is a sum of $d_k$ products. Its variance grows like $d_k$, its spread like $\sqrt{d_k}$.
# - Large spread saturates softmax: one weight takes all, and the Jacobian
#   $\operatorname{diag}(p) - p\,p^\top$ goes to 0.
# - A query reaches its weights through $JK/c$. Without a divisor $J$ vanishes in wide heads; under too large a divisor
#   $K/c$ does. Over the square root of the width the product stays nearly the same from width 4 on.
# - The width that counts is that of the *head*, as long as one query, not that of the model.
# - The argument assumes independent entries of variance 1. It is about the start of training.
#
# `progress()` in a new cell shows what you have done so far, over all lessons (`from helpers import progress`).

# %% [markdown]
# ## Further reading
#
# - Vaswani et al., [Attention Is All You Need](https://arxiv.org/abs/1706.03762) (2017), section 3.2.1 and its footnote
#   4: the formula, the suspicion, the variance argument.
# - Sebastian Raschka,
#   [Self-attention from scratch](https://sebastianraschka.com/blog/2023/self-attention-from-scratch.html): the running
#   example of *Life is short, eat dessert first*.
# - Andrej Karpathy, [Let's build GPT: from scratch, in code, spelled out](https://www.youtube.com/watch?v=kCc8FmEb1nY):
#   the lecture, with the factor put in and its effect on softmax shown.
# - Pascal Poupart, [CS480/680 lecture 19: Attention and Transformer
#   Networks](https://www.youtube.com/watch?v=OyFJWRnt_AY).
# - The bug of exercise 4.6, found by readers and repaired by the authors:
#   [ng-video-lecture, pull request 6](https://github.com/karpathy/ng-video-lecture/pull/6) and
#   [vit-pytorch, issue 65](https://github.com/lucidrains/vit-pytorch/issues/65). It happens to the best.
# - Yang et al., [Tensor Programs V](https://arxiv.org/abs/2203.03466) (2022): wide networks whose attention divides by
#   $d_k$, and why.
#
# **Next:** [lesson 5](../05_masking/05_masking.ipynb) decides which scores may be seen at all, before softmax turns
# them into weights.
