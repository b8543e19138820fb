# %% [markdown]
# # 4. Scaling: why scores are divided by a square root
#
# **In this lesson** you'll find out where the square root in the attention formula comes from, what goes wrong without
# it, and how to spot the most common mistake with it.
#
# **Core:** about 75 minutes.
#
# In lesson 3 you computed a score for every query and key. The attention formula divides these scores before it turns
# them into weights:
#
# $$\text{softmax}\!\left(\frac{QK^\top}{\sqrt{d_k}}\right)V$$
#
# The division by $\sqrt{d_k}$ looks like a detail, but it decides how well a wide attention head can begin to learn.

# %% tags=["setup"]
# (empty: the build puts the set-up cell here)

# %%
import math

import torch
import torch.nn.functional as F
from torch import nn

from helpers import at_work, check, or_finished
from helpers.drawing.transformer_map import transformer_map
from helpers.lessons.scaling import explore, figures

# %%
transformer_map("04_scaling")

# %% [markdown]
# We're inside an attention block, between the scores and the softmax that will turn them into weights.
#
# ## What you need
#
# You need queries, keys and scores from [lesson 3](../03_query_key/03_query_key.ipynb), and Jacobians and the conventions
# from [lesson 0](../00_start_here/00_start_here.ipynb). We also use the variance (the mean squared distance from the
# mean) and its square root, the standard deviation. Variances of independent terms add up. Here are two questions to warm
# up; answer each one before you unfold it.
#
# <details><summary>Lesson 3: Q is (2, 5, 6) and K is (2, 7, 6). What shape do the scores have, and over which axis does
# the product sum?</summary>
#
# The scores have shape `(2, 5, 7)`. The product sums over the last axis, so each score is a sum of six products.
#
# </details>
#
# <details><summary>Lesson 1: make both vectors twice as long. What happens to their dot product, and to their
# cosine?</summary>
#
# The dot product becomes four times as large, whereas the cosine doesn't change.
#
# </details>

# %% [markdown]
# ## Dot products grow with the width
#
# Let's start on paper and suppose that every entry of $q$ and $k$ is $+1$ or $-1$, decided by a coin toss. Then each
# product $q_i k_i$ is also $+1$ or $-1$, so a dot product of width four is a sum of four coin tosses:
#
# | score | −4 | −2 | 0 | 2 | 4 |
# |---|---|---|---|---|---|
# | number of outcomes (of 16) | 1 | 4 | 6 | 4 | 1 |
#
# The mean is zero, so the variance is the average of the squares, $\frac{64}{16} = 4$, and the standard deviation is its
# square root, $2$. Notice that the variance equals the width. To see whether that's a coincidence, let's replace the
# coins by normally distributed entries and try several widths.
#
# **Before you run the cell, make a guess:** if the width grows by a factor of four, by what factor does the standard
# deviation grow?

# %%
torch.manual_seed(0)
for d_k in (4, 16, 64, 256):
    q, k = torch.randn(10_000, d_k), torch.randn(10_000, d_k)  # (pairs, d_k)
    scores = (q * k).sum(dim=-1)  # (pairs,)
    print(f"d_k = {d_k:3d}   standard deviation of the scores {scores.std().item():5.2f}")

# %%
figures.score_distributions()

# %% [markdown]
# We see that the standard deviation doubles each time. A sum of four times as many terms is not four times as large,
# because positive and negative terms partly cancel. In general, if the entries are independent with mean zero and unit
# variance, each of the $d_k$ products has unit variance, and variances of independent terms add up. So
#
# $$\operatorname{Var}(q\cdot k) = d_k, \qquad \text{standard deviation} = \sqrt{d_k}.$$
#
# This is footnote 4 of *Attention Is All You Need*, and it's the whole reason for the square root. However, the
# argument assumes independent entries with mean zero and unit variance, as in a freshly initialized network with
# suitable weights.

# %% [markdown]
# ### Exercise 4.1 `score_variance`
#
# Difficulty 1 of 5 · Importance 3 of 5 · 6 minutes · 12 points
#
# Compute the variance of a whole matrix of scores $S = QK^\top$. If $n$ is the number of *all* entries of $S$,
#
# $$\bar S = \frac1n\sum S, \qquad \text{score\_variance}(Q, K) = \frac1n\sum (S - \bar S)^2 .$$
#
# - **Arguments:** `Q (..., T_q, d_k)` and `K (..., T_k, d_k)`.
# - **Returns:** a scalar, the *population* variance over all leading dimensions together, which divides by $n$, not
#   $n-1$.


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
# Compute all scores, then take their variance with `Tensor.var`.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# By default this method divides by $n-1$. Its argument `correction` says how much is subtracted from $n$.
#
# </details>

# %% [markdown]
# ## Dividing by the standard deviation fixes it
#
# If we divide a random number by a constant $c$, its variance shrinks by a factor of $c^2$, so a score's variance is
# $d_k/c^2$. We want unit variance at every width, so the right constant is $c = \sqrt{d_k}$. Dividing by $d_k$ itself
# would be too much, because the variance would drop to $1/d_k$.

# %% [markdown]
# ### Exercise 4.2 `scaled_scores`
#
# Difficulty 1 of 5 · Importance 5 of 5 · 5 minutes · 16 points
#
# Compute the scaled attention scores $QK^\top/\sqrt{d_k}$.
#
# - **Arguments:** `Q (..., T_q, d_k)` and `K (..., T_k, d_k)`.
# - **Returns:** a tensor of shape `(..., T_q, T_k)`.


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
# Which axis of Q does the product sum over? Count it from the end, and read `d_k` there.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# The width is a Python integer, so Python's power operator gives its square root. Don't modify Q in place.
#
# </details>
#
# Let's compare the variance before and after division.

# %%
torch.manual_seed(0)
for d_k in (4, 16, 64, 256):
    Q, K = torch.randn(100, d_k), torch.randn(100, d_k)  # (T_q, d_k), (T_k, d_k)
    before, after = or_finished(score_variance)(Q, K), or_finished(scaled_scores)(Q, K).var(correction=0)  # scalars
    print(f"width {d_k:3d}   variance {before.item():6.1f} before, {after.item():.2f} after")

# %% [markdown]
# ## Large scores saturate softmax
#
# The size of the scores matters because we feed them into softmax next, which turns them into weights that are positive
# and add up to one. You'll study it in lesson 6; here we use it as a tool, `torch.softmax`. For three scores you can
# compute it by hand:
#
# | score | $e^{\text{score}}$ | weight |
# |---|---|---|
# | 0 | 1.000 | 1.000 / 11.107 = 0.090 |
# | 1 | 2.718 | 2.718 / 11.107 = 0.245 |
# | 2 | 7.389 | 7.389 / 11.107 = 0.665 |
# | sum | 11.107 | 1.000 |
#
# Softmax depends on the *differences* between scores, so if we multiply all scores by three or by ten, the largest score
# gets almost all of the weight:

# %%
figures.three_numbers()

# %% [markdown]
# We call this **saturation**. In a head of width $64$ whose queries and keys have entries of unit variance, the scores
# have standard deviation $8$. Among six keys, the typical winner then has $0.98$ of the weight before anything is
# learned, whereas after division by $\sqrt{64}$ it has $0.39$. Here is what that means for the scores of *is* in *Life is
# short, eat dessert first*, with the same random embeddings and projections as in lesson 3.

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
# Now we divide these scores by four constants. The figure also shows the **effective number of words**, which is one if
# a single word has all the weight and six if all six have the same. (Lesson 6 explains how it's computed.)

# %%
figures.four_divisors(scores_is, tokens)

# %% [markdown]
# Without scaling, *is* attends to *eat* and to nothing else, and division by $100$ gives all words nearly the same
# weight. With $\sqrt{24}$ the preference for *eat* remains, but the other words count as well. (At width $10{,}000$,
# however, $100$ would be exactly right.) A divisor of scores is also called a **temperature**, and the effective number
# of words grows with it:

# %%
explore.temperature(scores_is, tokens, start=math.sqrt(24))

# %% [markdown]
# ## What does this do to the gradients?
#
# Training could correct a head that attends to the wrong token, if the gradient reached it. How much does weight $p_i$
# change if score $s_j$ changes a little? The answer is the Jacobian of softmax. With $Z = \sum_k e^{s_k}$,
#
# $$\ln p_i = s_i - \ln Z, \qquad \frac{\partial \ln Z}{\partial s_j} = \frac{e^{s_j}}{Z} = p_j,$$
#
# $$\frac{\partial p_i}{\partial s_j} = p_i\,\frac{\partial \ln p_i}{\partial s_j} = p_i\,(\delta_{ij} - p_j),
# \qquad\text{in matrix form: } J = \operatorname{diag}(p) - p\,p^\top .$$
#
# Here $\delta_{ij}$ is one if $i = j$ and zero otherwise, so the diagonal is $p_i(1-p_i)$ and all other entries are
# $-p_i p_j$.
#
# **On paper:** with $p = (\frac12, \frac14, \frac14)$ the first row is $(\frac14, -\frac18, -\frac18)$. Now compute the
# matrix for $p = (1, 0, 0)$ yourself.
#
# <details><summary>Answer</summary>
#
# Every entry is zero, so small changes in the scores no longer change the weights.
#
# </details>
#
# Autograd agrees with our example, whose weights we get from the scores $\ln 2, 0, 0$:

# %%
s = torch.tensor([math.log(2), 0.0, 0.0])  # (3,)
torch.autograd.functional.jacobian(lambda s: F.softmax(s, dim=0), s)  # (3 weights, 3 scores)

# %%
figures.two_jacobians()

# %% [markdown]
# The matrix on the right belongs to a head whose softmax is nearly saturated. In training, the gradient is multiplied by
# this Jacobian on its way from the weights to the scores, so almost nothing gets through.

# %% [markdown]
# ### Exercise 4.3 `softmax_jacobian`
#
# Difficulty 3 of 5 · Importance 4 of 5 · 12 minutes · 20 points
#
# Compute the Jacobian of softmax from its output, $J_{ij} = p_i\,(\delta_{ij} - p_j)$.
#
# - **Arguments:** `p (..., N)`, probability vectors, which are already the output of softmax.
# - **Returns:** a tensor of shape `(..., N, N)`.
# - **Edge case:** where probabilities are exactly zero or one, neither values nor gradients may be NaN.


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
# The product of a column and a row is a matrix, so give p a new axis at the end, then one before the last, and let
# broadcasting do the rest.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# `torch.diag` makes a matrix from a single vector only, but `torch.diag_embed` accepts leading dimensions.
#
# </details>

# %% [markdown]
# ### Exercise 4.4 `max_gradient`
#
# Difficulty 2 of 5 · Importance 3 of 5 · 8 minutes · 14 points
#
# As a measure of how much the weights can still change, compute the largest absolute entry of the Jacobian:
#
# $$\text{max\_gradient}(s) = \max_{i,j} \left|\frac{\partial p_i}{\partial s_j}\right|, \qquad p = \text{softmax}(s)$$
#
# You can find it on the diagonal, because $p_j \le 1 - p_i$ and therefore $p_i p_j \le p_i(1 - p_i)$. It's never
# above $\frac14$, its value at $p_i = \frac12$.
#
# - **Arguments:** `scores (..., N)`, which may be as large as $\pm10^4$. You may call `torch.softmax`.
# - **Returns:** a tensor of shape `(...)`, one value for each vector of scores.


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
# You don't need the full Jacobian, only the N entries on its diagonal.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Apply softmax along the last axis, compute the diagonal entries, and take a maximum that reduces only that axis
# (`Tensor.amax`).
#
# </details>
#
# How much gradient is left for a thousand random queries of width $256$?

# %%
wide = figures.random_scores(256, 1000, 6)  # (queries, keys): scores of q and k with entries of variance 1
for name, c in [("not scaled", 1), ("divided by 16", 16)]:
    largest = or_finished(max_gradient)(wide / c)  # (queries,)
    print(f"{name:13}  median {largest.median():.4f}   below 0.01: {100 * (largest < 0.01).float().mean():.0f}%")

# %% [markdown]
# ## How the head's width affects the gradient at the query
#
# We see that without scaling, two thirds of these queries have almost no gradient left. But this is only half of the
# chain rule, because training changes $W_Q$ and $W_K$, which reach the weights through queries and keys. For one query
# $q$ with the scores $s = Kq/c$ the derivative is
#
# $$\underbrace{\frac{\partial p}{\partial q}}_{T \times d_k} = \underbrace{J}_{T \times T}\;
# \underbrace{\frac{\partial s}{\partial q}}_{T \times d_k} = \frac{J K}{c} .$$
#
# A large divisor $c$ helps the first factor, because softmax doesn't saturate, but it hurts the second, because a
# change in $q$ changes the scores less. To find out which effect is stronger, we compute medians over random queries
# for each width. On the left is the largest entry of $J$ alone, and on the right the size of $JK/c$, that is, the
# square root of the sum of its squared entries.

# %%
figures.gradients_against_width()

# %% [markdown]
# In the chart on the right you can see three things.
#
# - **Divided by the square root of the width**, the line is nearly flat from width four on, so the typical gradient at a
#   query doesn't depend on the width of the head. That's why we take the square root.
# - **Without scaling**, the gradient first rises, because the keys become longer while softmax isn't saturated yet.
#   At width $64$ the typical query still has about 85% of the gradient that it has with scaling, and at width $1024$
#   almost nothing.
# - **Divided by the width itself**, the scores don't saturate softmax, but the gradient still shrinks, because the
#   second factor does.
#
# So with $\sqrt{d_k}$ we don't get the *largest* gradient, because a smaller divisor often gives a larger one. Instead, we
# get the same gradient at every width, and therefore one recipe for all heads.

# %% [markdown]
# ### Exercise 4.5 `head_scores`
#
# **Find the bug** · Difficulty 2 of 5 · Importance 5 of 5 · 10 minutes · 18 points
#
# A head reads `x`, whose width is the model's width $D$, and projects it down to the width of the head. The code in the
# next cell has a bug from two well-known repositories (see *Further reading*). It runs and returns the right shapes,
# but since the entries of queries and keys have unit variance, the scores should have a standard deviation of one.


# %%
def buggy_scores(x, W_q, W_k):
    B, T, C = x.shape
    q, k = x @ W_q.T, x @ W_k.T  # (B, T, head width)
    return q @ k.transpose(-2, -1) * C**-0.5  # (B, T, T)


# %%
torch.manual_seed(0)
x_bert_size = torch.randn(1, 64, 768)  # (B, T, D): model width 768
one_of_12 = [torch.randn(64, 768) / 768**0.5 for _ in ("query", "key")]  # (d_head, D): head width 64
print(f"standard deviation {buggy_scores(x_bert_size, *one_of_12).std().item():.2f}")

# %% [markdown]
# The scores are too small by a factor of about $3.5$. Find out where that factor comes from, then write the function
# correctly.
#
# - **Arguments:** `x (..., T, D)`, `W_q (d_head, D)` and `W_k (d_head, D)`, with any leading dimensions.
# - **Returns:** scaled scores of shape `(..., T, T)`, before any softmax.


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
# The factor is about $\sqrt{12}$. Which two widths in the code have a ratio of twelve?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# In the buggy function, `C` is the last axis of x. Count the products that are summed in one score instead. You may call
# your `scaled_scores`.
#
# </details>
#
# With your version we get:

# %%
print(f"standard deviation {or_finished(head_scores)(x_bert_size, *one_of_12).std().item():.2f}")

# %% [markdown]
# This bug is easy to miss, because training can compensate for a factor of $3.5$ by making $W_Q$ larger. **Whenever you
# read attention code, check that the number under the square root is the width of a single query.**

# %% [markdown]
# ## At work
#
# Now we put your `scaled_scores` into our translator, which has width $64$ and heads of width $16$ and was trained with
# the right division. Below the translation you'll also see its loss with other divisors.
#
# **Before you run the cell, make a guess:** which divisor hurts the trained network most, the square root of the model's
# width (the bug that you've just fixed), no scaling, or the head's width without the square root?

# %%
at_work(scaled_scores)

# %% [markdown]
# Let's see whether you would have noticed the bug by reading the translation.


# %%
def by_model_width(Q, K):
    return Q @ K.transpose(-2, -1) / 64**0.5  # (..., T_q, T_k); a head of this translator is 16 wide


at_work(scaled_scores=by_model_width)

# %% [markdown]
# Here is the full comparison on unseen sentences:
#
# | divisor | loss, nats per word | exactly right (100 sentences) |
# |---|---|---|
# | 4, the square root of the head's width | 0.00016 | 100% |
# | 8, the square root of the model's width (the bug) | 0.00062, 4 times | 100% |
# | 1, no scaling | 0.011, 70 times | 97% |
# | 16, the head's width | 0.068, 420 times | 86% |
#
# With the bug every sentence is still translated correctly, so only the loss shows it. Dividing by the head's width
# hurts this network most, and the order was the same in two more training runs. (These weights were trained with the
# right divisor, so we haven't compared *training* with different ones.)

# %% [markdown]
# ### Quiz 4.1
#
# Queries and keys have width $64$; their entries are independent, with mean zero and unit variance. What is the standard
# deviation of a score before scaling?
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
# A head of width $1024$ divides its scores by $1024$ instead of by $32$. What is true before training?
#
# - **a** All its weights are nearly equal, and a small change of a query has little effect on them.
# - **b** Its attention weights don't add up to 1.
# - **c** Its softmax is saturated, so that one weight is nearly 1.

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
# A classmate writes: "We divide by $\sqrt{d_k}$ so that the Euclidean length of the weight vectors stays about the
# same. Any large number would do, for instance 100." Explain to them what the division is really for, why it is a square
# root, and what would happen without it and with far too large a divisor. What is right and what is wrong in their two
# sentences? Name one assumption that your argument needs.

# %% [markdown] nbgrader={"written": "written_1"}
# <details><summary>Model answer and marking scheme</summary>
#
# **Model answer.** A score is a sum of $d_k$ products. If the entries of queries and keys are independent with mean
# zero and unit variance, each product has unit variance and the score has variance $d_k$. Dividing by $c$ divides the
# variance by $c^2$, so $c$ must be the standard deviation $\sqrt{d_k}$; dividing by $d_k$ would overshoot, to $1/d_k$.
# Without the division, softmax saturates in wide heads, its Jacobian is near zero, and most queries get almost no
# gradient. With far too large a divisor all weights are nearly equal, and the gradient at the query, $JK/c$, is tiny as
# well. The first sentence confuses a consequence with the reason. The vector of attention weights does have a similar length at
# all widths, but only because the scores have the same variance. The second sentence is wrong, because
# a fixed divisor doesn't follow the width. For example, $100$ is right at width $10{,}000$ and makes attention almost
# uniform at width $24$.
#
# **Marking scheme (15).** 4: the variance of a sum of $d_k$ products is $d_k$. 3: why the square root and not $d_k$. 4:
# saturated softmax and little gradient, of which 1 for too large a divisor. 2: the sentence on lengths names a
# consequence, or vectors that the division does not change. 1: a fixed divisor does not follow the width. 1: an assumption
# (independence, mean zero, unit variance, or initialization).
#
# </details>

# %% [markdown]
# ## Recap
#
# - A score is a sum of $d_k$ products, so its variance grows like $d_k$ and its standard deviation like $\sqrt{d_k}$.
# - Large scores saturate softmax, so that its Jacobian $\operatorname{diag}(p) - p\,p^\top$ goes to zero.
# - The gradient reaches a query through $JK/c$. Without scaling, $J$ vanishes in wide heads; with too large a divisor,
#   $K/c$ does. The square root keeps the gradient the same at every width.
# - The width that counts is the head's, that is, the length of one query, and not the model's.
# - The argument assumes independent entries of unit variance, so it's about initialization.
#
# **Next:** in [lesson 5](../05_masking/05_masking.ipynb) you decide which scores a query may see at all, before softmax
# turns them into weights.

# %% [markdown]
# ## Going further
#
# What follows is optional. Here you'll compute the gradient at the query yourself, break the assumptions of this
# lesson, and check what is left of them in a trained network.

# %% [markdown]
# ### Exercise 4.6 `weights_jacobian`
#
# **Extra** · Difficulty 3 of 5 · Importance 3 of 5 · 12 minutes · 10 bonus points
#
# How do the weights $p = \text{softmax}(Kq/\text{divisor})$ change with the query?
#
# $$\text{weights\_jacobian}(q, K, \text{divisor}) = \frac{\bigl(\operatorname{diag}(p) - p\,p^\top\bigr) K}
# {\text{divisor}}$$
#
# - **Arguments:** `q (d_k,)` and `K (T, d_k)`, without leading dimensions, and `divisor`, a positive Python number. The
#   divided scores may be as large as $\pm10^4$.
# - **Returns:** a tensor of shape `(T, d_k)`, one row per weight and one column per entry of the query.
# - **Forbidden:** autograd in every form. `torch.softmax` and your `softmax_jacobian` are allowed.
#
# **On paper:** take the weights $p = (\frac12, \frac14, \frac14)$ again, with the keys $(4, 0)$, $(0, 4)$, $(0, 0)$ and
# a divisor of $2$. Written out, a row of $JK$ compares a key with the average key that the head attends to:
#
# $$(JK)_i = p_i\,(k_i - \bar k), \qquad \bar k = \sum_j p_j k_j = (2, 1).$$
#
# | word | $p_i$ | $k_i - \bar k$ | row of $JK/2$ |
# |---|---|---|---|
# | first | 1/2 | (2, −1) | (0.5, −0.25) |
# | second | 1/4 | (−2, 3) | (−0.25, 0.375) |
# | third | 1/4 | (−2, −1) | (−0.25, −0.125) |
#
# The columns add up to zero, because the three weights always add up to one.


# %% nbgrader={"solution": "weights_jacobian"}
def weights_jacobian(q, K, divisor):
    """How the weights softmax(Kq / divisor) of one query change with the query.

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
# First compute the weights that the head really uses, then apply the formula. You can test your function on the table
# above, because the query $(\frac12\ln 2, 0)$ gives these weights.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# The divisor appears twice, once in the scores that go into softmax, and once in the derivative of the scores.
#
# </details>
#
# Let's apply your function to the query of *is* and the four divisors of Figure 4.3.

# %%
for name, c in [("1", 1), ("√24", 24**0.5), ("24", 24), ("100", 100)]:
    J_query = or_finished(weights_jacobian)(query_is, keys, c)  # (6, 24)
    print(f"divided by {name:4} size of ∂p/∂q {J_query.norm().item():.3f}")

# %% [markdown]
# ### Initialization: the other half of the argument
#
# The rule gives scores with unit standard deviation if the entries of $q$ and $k$ have unit variance. Whether they do
# depends on the **initialization** of the weights.
#
# - `nn.Linear` initializes its weights so small that the entries of $q$ and $k$ have variance $\frac13$ if those of $x$
#   have unit variance. The scores are then a third as large, so softmax saturates only at nine times the width.
# - `torch.rand`, which our running example uses, gives weights between zero and one, all positive. The entries of one
#   query then tend to have the same sign, and so do those of one key, so their products don't cancel. All $36$ scores
#   together have standard deviation $54.3$ instead of the expected $4.9$. Even after the division, four of the six
#   words give more than $0.96$ of their weight to a single word.

# %%
figures.initializations_against_width()

# %% [markdown]
# In other words, if you divide, you correct for the width, but not for the initialization. A well-known Stack Exchange
# answer on queries and keys doesn't divide at all. Its code comes from Andrej Karpathy's lecture, from just before the
# factor is introduced. With its sizes (`B, T, C = 4, 8, 32`, head size $16$, seed $1337$) the variance of the scores is
# $1.91$ instead of $16$, because `nn.Linear` initializes its weights so small
# ($16\cdot\frac13\cdot\frac13 \approx 1.8$). At that size the missing factor does no harm, but in a wider head it
# would.
#
# In the explorer, set a width and an initialization, and find the divisor with the largest gradient at the query (blue
# line). How does this divisor move relative to the dotted line if you change the width?

# %%
explore.width_and_divisor()

# %% [markdown]
# <details><summary>Answer</summary>
#
# For entries of unit variance the best divisor is a quarter to a third of the square root, at every width. At the
# square root itself, the gradient is $40$ to $45$% of the largest from width four on. Both fractions stay the same as
# the head grows. With `nn.Linear` everything moves to about a third of these divisors. With all-positive weights the
# best divisor grows like the width itself, because $q \cdot k$ does.
#
# </details>
#
# ### Medians and means
#
# Figure 4.5 shows medians. The *mean* without scaling stays near $1$ from width $64$ on, because in a few rows two keys
# compete closely. So most queries get almost no gradient, and a few get very large ones.
#
# ### What is left after training?
#
# In the trained translator, the standard deviation of a row of divided scores is $0.2$ in one of the eight heads of
# its encoder and $5.5$ in another, so the assumptions no longer hold. A network can also learn any constant factor
# into $W_Q$. The divisor therefore doesn't limit *what* attention can express, but it does set where training starts
# and how large its first steps are. How large is the gradient at the queries of one trained head, for our sentence?

# %%
x_jane, W_q, W_k = figures.first_head("jane visits africa in september")  # (5, 64), (16, 64), (16, 64)
for divisor in (1, 4, 16, 100):
    sizes = [or_finished(weights_jacobian)(q, x_jane @ W_k.T, divisor).norm().item() for q in x_jane @ W_q.T]
    print(f"divided by {divisor:3}   size of ∂p/∂q {sum(sizes) / 5:.3f}")

# %% [markdown]
# This agrees with Figure 4.5 at width $16$, where the gradient is still large without scaling, whereas too large a
# divisor makes it vanish. In this sentence seven of the eight heads behave like this one. The exception attends to the
# previous token, and there the division raises the gradient.
#
# ### How stable are these numbers?
#
# | measurement | in the text | elsewhere |
# |---|---|---|
# | loss with divisor 8, 1, 16, relative to divisor 4 | 4, 70, 420 times | two more training runs on two kinds of processor: 3 to 22, 17 to 80 and 290 to 600 times |
# | gradient at the queries of that first head, divisor 1 and 4 | 0.32, 0.09 | previous-token head: 0.15, 0.20; its median over 200 sentences: 0.04, 0.22; its mean: 0.33, 0.23 |
# | length of the vector of six attention weights, widths 16 and 256 | | divided: 0.53, 0.53; not divided: 0.82, 0.96 |

# %% [markdown]
# ## Further reading
#
# - Vaswani et al., [Attention Is All You Need](https://arxiv.org/abs/1706.03762) (2017), section 3.2.1 and footnote 4: the
#   formula and the variance argument. The authors only *suspect* that large products hurt; Figure 4.5 shows from which
#   width on.
# - Sebastian Raschka,
#   [Self-attention from scratch](https://sebastianraschka.com/blog/2023/self-attention-from-scratch.html): the running
#   example of *Life is short, eat dessert first*.
# - Andrej Karpathy, [Let's build GPT: from scratch, in code, spelled out](https://www.youtube.com/watch?v=kCc8FmEb1nY):
#   the lecture, which inserts the factor and shows its effect on softmax.
# - Pascal Poupart, [CS480/680 lecture 19: Attention and Transformer
#   Networks](https://www.youtube.com/watch?v=OyFJWRnt_AY).
# - The bug of exercise 4.5, found by readers and fixed by the authors:
#   [ng-video-lecture, pull request 6](https://github.com/karpathy/ng-video-lecture/pull/6) and
#   [vit-pytorch, issue 65](https://github.com/lucidrains/vit-pytorch/issues/65).
# - Yang et al., [Tensor Programs V](https://arxiv.org/abs/2203.03466) (2022): very wide networks whose attention divides
#   by $d_k$, because in their training queries and keys align, and then $q\cdot k$ grows like $d_k$ itself.
