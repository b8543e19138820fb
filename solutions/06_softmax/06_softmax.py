# %% [markdown]
# # 6. Softmax: scores become probabilities
#
# **Goal:** build the function that turns scores into weights, safe for any scores; know its axis, its temperature, its
# logarithm and its gradients, and see how it can be computed in a stream.
#
# **Time:** about 130 minutes, of which 40 are for the two extras. **Take a break after Exercise 6.4**. What comes before makes the weights of attention, what comes after makes the loss and the
# gradients.
#
# Lessons 4 and 5 used `torch.softmax` as a ready-made tool. Today you open it. It is two lines of code, and you will
# meet published programs that got the second one wrong.

# %% tags=["setup"]
# (empty: the build puts the set-up cell here)

# %%
import math

import torch
import torch.nn.functional as F
from torch import nn

from helpers import at_work, check, or_given
from helpers.drawing.transformer_map import transformer_map
from helpers.lessons.softmax import explore, figures

# %%
transformer_map("06_softmax")

# %% [markdown]
# Softmax appears in two places: inside attention, where scores become weights, and at the very end,
# where scores of words become the probabilities that a model is trained on.

# %% [markdown]
# ## You need
#
# - scores, and why they are divided by $\sqrt{d_k}$: [lesson 4](../04_scaling/04_scaling.ipynb);
# - blocked scores of $-\infty$: [lesson 5](../05_masking/05_masking.ipynb);
# - $e^{a+b} = e^a e^b$, and that the logarithm $\ln$ undoes it: $\ln(ab) = \ln a + \ln b$.
#
# Two questions to warm up. Answer before you unfold.
#
# <details><summary>Lesson 4: what happens to softmax weights when all scores are made ten times larger?</summary>
#
# The order stays, but the largest score takes nearly all the weight: softmax saturates. Its slopes go to 0.
#
# </details>
#
# <details><summary>Lesson 5: why set a blocked score to −∞ before softmax, and not its weight to 0 after?</summary>
#
# Because the weights that remain must add up to 1. A weight that is struck out afterwards has already taken its share
# from the others.
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
# ## From scores to shares
#
# In *jane visits africa*, the query of *visits* has scored the three words. How much of each should it take? We want
# *shares*: positive numbers that add up to 1, larger for a larger score. The obvious way is to divide by the sum. Try
# it on the scores 2, 1 and −1, on paper. The shares are
#
# $$\frac{2}{2},\quad \frac{1}{2},\quad \frac{-1}{2},$$
#
# and one of them is negative. With scores 2, 1 and −3 we would divide by 0. So first make every score positive, by a
# function that keeps the order. Squares do not ($-3$ would beat 2). The exponential does:
#
# $$\text{softmax}(s)_i = \frac{e^{s_i}}{\sum_j e^{s_j}}$$
#
# **On paper**, take scores whose exponentials are whole numbers. These three scores stay with us to the end of the lesson:
#
# | word | score | $e^{\text{score}}$ | share |
# |---|---|---|---|
# | jane | ln 1 = 0.000 | 1 | 1/8 = 0.125 |
# | visits | ln 2 = 0.693 | 2 | 2/8 = 0.250 |
# | africa | ln 5 = 1.609 | 5 | 5/8 = 0.625 |
# | sum | | 8 | 1.000 |

# %%
figures.from_scores_to_shares()

# %% [markdown]
# Why *this* positive function? Divide one share by another, and the sum cancels:
#
# $$\frac{p_i}{p_j} = \frac{e^{s_i}}{e^{s_j}} = e^{s_i - s_j}.$$
#
# **Only differences of scores count.** One point more is always a factor of $e \approx 2.72$, whether from 0 to 1 or
# from 100 to 101. So we may add any number to all scores, and no share moves. Keep that in mind: the repair in the next
# section rests on it.

# %% [markdown]
# ## Where the exponential breaks
#
# **Predict before you run.** The formula, as it stands, on two sets of scores with the same differences. *What will
# the second line print?*

# %%
for scores in ([0.0, 1.0, 2.0], [1000.0, 1001.0, 1002.0]):
    e = torch.tensor(scores).exp()  # (3,)
    print(e, "->", e / e.sum())

# %% [markdown]
# <details><summary>Answer</summary>
#
# Three times `nan`, *not a number*. $e^{1000}$ has 435 digits, and float32 ends at 39: it becomes `inf`, and
# `inf / inf` is `nan`. Very low scores fail too: all exponentials become 0, and 0 / 0 is `nan` as well.
#
# </details>

# %%
figures.where_exp_works()

# %% [markdown]
# This does happen. In lesson 4, undivided scores of width 1024 had a spread of 32, and three such spreads are past
# 88.7, where float32 ends. In `float16`, a short format that large models are run in, a score of 12 is enough. (Beyond
# the left end of a bar the exponential is not 0 at once: it loses its digits one by one first, for another 7 points in
# float16 and 16 in float32.)
#
# The repair: subtract the largest score first. No share moves, because only differences count. Now the largest
# exponential is $e^0 = 1$, so nothing overflows; the sum is at least 1, so nothing is divided by 0. What is too small
# for the format becomes 0, and beside a sum of at least 1 it does not matter.
#
# $$\text{softmax}(s)_i = \frac{e^{s_i - m}}{\sum_j e^{s_j - m}}, \qquad m = \max_j s_j$$
#
# By hand, for 1000, 1001, 1002: subtract 1002. The exponentials of −2, −1, 0 are 0.135, 0.368, 1, their sum is 1.503,
# and the shares are 0.090, 0.245, 0.665.

# %% [markdown]
# ### Exercise 6.1 `softmax`
#
# Difficulty 2 of 5 · Importance 5 of 5 · 10 minutes · 16 points
#
# $$\text{softmax}(x)_i = \frac{e^{x_i - m}}{\sum_j e^{x_j - m}}, \qquad m = \max_j x_j,$$
#
# where $i$ and $j$ run along the dimension `dim`: each vector along it becomes shares of its own. `x` of any shape →
# the same shape. Right for scores up to ±10,000, and for blocked scores: an entry of $-\infty$ gets exactly the weight
# 0, and in each vector at least one entry is finite. No NaN, in gradients either. `dim` may be any dimension, counted
# from the front (0, 1, …) or from the back (−1, −2, …).
#
# *Forbidden:* every library softmax, log_softmax, logsumexp, logcumsumexp, logaddexp.


# %% nbgrader={"solution": "softmax"}
def softmax(x, dim=-1):
    """Softmax along one dimension, safe for scores of any size.

    x: any shape, float32 or float64, up to ±1e4 or -inf; each vector along dim has a finite entry.
    -> same shape and dtype; vectors along dim are positive or 0 and add up to 1.
    """
    ### BEGIN SOLUTION
    e = torch.exp(x - x.amax(dim=dim, keepdim=True))  # like x, between 0 and 1
    return e / e.sum(dim=dim, keepdim=True)  # like x
    ### END SOLUTION


# %% nbgrader={"grade": "softmax"}
check(softmax)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# Three steps: shift, exponentials, division. Two of them need one number for each vector: its maximum, and its sum.
# Should a row of −10,000s be shifted by the maximum of another row?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# A maximum or a sum along a dimension takes that dimension away, and then its shape no longer meets that of x. The
# argument `keepdim` leaves a dimension of size 1 in its place. The tensor method for a maximum along a dimension that
# gives values only, without places, is `amax`.
#
# </details>

# %% [markdown]
# ## Which axis?
#
# Attention scores are a table: a row for each query, a column for each key. Lesson 3 wrote one by hand for our
# sentence. Softmax can run along each row, along each column, or over the whole table. All three run without an error,
# and all three give positive numbers below 1. Only one of them says how *jane* divides her attention. *Which one?*

# %%
jane = ["jane", "visits", "africa"]
scores = torch.tensor([[0.0, 3, 0], [0, 0, 3], [0, 2, 0]])  # (T_q, T_k)
figures.three_axes(scores, jane)

# %% [markdown]
# <details><summary>Answer</summary>
#
# The left one, over keys. **Look at the sums beside the tables.** Over keys, each *row* adds up to 1: each query has one unit of
# attention to give. Over queries, each *column* does, and *jane* as a query has 1.08 to give while *africa* has 0.64.
# That sum is the sign to look for: nothing in the program complains.
#
# </details>
#
# Lesson 5 masked the scores of a batch of 4 sentences of 8 tokens, from a lecture by Andrej Karpathy. Here they are
# again, with the softmax opened.

# %%
torch.manual_seed(1337)
B, T, C, head_size = 4, 8, 32, 16
Wk, Wq, Wv = [nn.Linear(C, head_size, bias=False) for _ in "kqv"]  # Wv waits for lesson 7
batch = torch.randn(B, T, C)  # (B, T, C)
masked = (Wq(batch) @ Wk(batch).transpose(-2, -1)).detach()  # (B, T, T), undivided, as published
masked = masked.masked_fill(~torch.ones(T, T, dtype=torch.bool).tril(), -math.inf)  # (B, T, T)

# %%
right, wrong = or_given(softmax)(masked, dim=-1), torch.softmax(masked, dim=-2)  # (B, T, T) each
figures.right_and_wrong_axis(right[0], wrong[0])

# %% [markdown]
# On the left every row adds up to 1, and the first token, which sees only itself, gives itself everything. On the right
# token 0 has 0.03 of a unit to give. There is worse: each column on the right was divided by a sum over *later*
# queries, so token 0's weight depends on what comes after it. **The wrong axis undoes the mask**, although every
# blocked entry is 0, as it should be.

# %% [markdown]
# ### Exercise 6.2 `fixed_head_weights`
#
# **Find the bug** · Difficulty 2 of 5 · Importance 4 of 5 · 8 minutes · 8 points
#
# A widely read collection of annotated papers holds a diffusion model, which draws pictures. Its attention keeps the
# heads as the *last* dimension, and its softmax ran along the wrong one until a reader asked. Here are its three steps
# as a function. In the first, `einsum` names each dimension by a letter: `i` counts queries, `j` keys, `h` heads. The
# letter `d` is missing after the arrow, so the products are summed over it: each $(i, j, h)$ is a dot product.


# %%
def published_head_weights(q, k):
    scores = torch.einsum("bihd,bjhd->bijh", q, k)  # (B, T_q, T_k, H)
    scores = scores * q.shape[-1] ** -0.5
    return scores.softmax(dim=1)  # (B, T_q, T_k, H)


# %% [markdown]
# The model drew fine pictures all the same. The reader trained it both ways, and the usual measure of picture quality
# did not show which of the two was right. In this model, which has no mask, neither a shape nor a picture showed the
# bug. A sum does:

# %%
torch.manual_seed(0)
q, k = torch.randn(1, 4, 2, 8), torch.randn(1, 5, 2, 8)  # (B, T_q, H, d_k), (B, T_k, H, d_k)
print("head 0, what each query has to give:", published_head_weights(q, k).sum(dim=2)[0, :, 0])

# %% [markdown]
# Write it correctly: each query of each head divides one unit among the keys.
#
# `q (..., T_q, H, d_k)`, `k (..., T_k, H, d_k)` → weights `(..., T_q, T_k, H)`, scores over $\sqrt{d_k}$. The published
# version insists on one batch dimension; yours should not. `torch.softmax` is allowed here, and so is your own.


# %% nbgrader={"solution": "fixed_head_weights"}
def fixed_head_weights(q, k):
    """Attention weights, with the heads as the last dimension; each query's weights add up to 1.

    q (..., T_q, H, d_k), k (..., T_k, H, d_k), float32 or float64 -> (..., T_q, T_k, H), same
    dtype.
    """
    ### BEGIN SOLUTION
    scores = torch.einsum("...ihd,...jhd->...ijh", q, k)  # (..., T_q, T_k, H)
    return softmax(scores / q.shape[-1] ** 0.5, dim=-2)  # (..., T_q, T_k, H)
    ### END SOLUTION


# %% nbgrader={"grade": "fixed_head_weights"}
check(fixed_head_weights)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# Name the four dimensions of the scores, one by one. Which of them is summed in "each query's weights add up to 1"?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# With any number of leading dimensions a dimension must be counted from the end. And `einsum` understands `...` in
# place of the letter `b`.
#
# </details>

# %% [markdown]
# The same sums on your repair:

# %%
print("head 0, what each query has to give:", or_given(fixed_head_weights)(q, k).sum(dim=-2)[0, :, 0])

# %% [markdown]
# **A habit worth having:** after every softmax that you write, sum once along the dimension that you mean, and look.

# %% [markdown]
# ## Temperature: how sure?
#
# Lesson 4 divided all scores by a temperature $\tau$ before softmax. Now the quotient of two shares says what it does:
#
# $$p_i = \frac{e^{s_i/\tau}}{\sum_j e^{s_j/\tau}}, \qquad \frac{p_i}{p_j} = e^{(s_i - s_j)/\tau}.$$
#
# At $\tau = 1$ one point more is a factor of 2.72. At $\tau = 0.1$ it is a factor of 22,026: the best takes all. At
# $\tau = 10$ it is 1.11: nearly alike. The scale $\sqrt{d_k}$ of lesson 4 is a temperature, and so is the dial of many a
# chat model, where it divides the scores of the next word.

# %% [markdown]
# ### Exercise 6.3 `softmax_with_temperature`
#
# Difficulty 1 of 5 · Importance 3 of 5 · 5 minutes · 8 points
#
# $$\text{softmax\_with\_temperature}(x, \tau) = \text{softmax}(x / \tau)\ \text{along the last dimension}$$
#
# `x (..., N)`, `temperature` a Python number, `int` or `float`, from 0.001 to 1000 → `(..., N)`. For a temperature that
# is not above 0 (that includes `nan`) raise a `ValueError` whose message names the value that was sent. Scores may be
# large compared with
# the temperature; no NaN. Nothing is forbidden, and your own `softmax` is at hand.


# %% nbgrader={"solution": "softmax_with_temperature"}
def softmax_with_temperature(x, temperature):
    """Softmax of x divided by a temperature, along the last dimension.

    x (..., N), float32 or float64; temperature from 1e-3 to 1e3. -> (..., N), same dtype.
    Any temperature that is not above 0: a ValueError that names it.
    """
    ### BEGIN SOLUTION
    if not temperature > 0:
        raise ValueError(f"temperature must be above 0, got {temperature}")
    return softmax(x / temperature)  # (..., N)
    ### END SOLUTION


# %% nbgrader={"grade": "softmax_with_temperature"}
check(softmax_with_temperature)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# First refuse what makes no sense, then compute. Which numbers, besides the negative ones, are not above 0?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# `raise ValueError(f"...")` with a sentence that a stranger understands, and the value in it. An `assert` raises another kind of error, and
# disappears when Python runs with `-O`.
#
# </details>

# %% [markdown]
# ## Entropy: one number for how sure
#
# A weight $p_i$ carries a *surprise* of $-\ln p_i$: none if it is 1, a lot if it is tiny. The entropy is the average
# surprise:
#
# $$H(p) = -\sum_i p_i \ln p_i .$$
#
# **On paper**, for our three shares, $p = (\frac18, \frac14, \frac58)$:
# $H = \frac18\ln 8 + \frac14\ln 4 + \frac58\ln\frac85 = 0.2599 + 0.3466 + 0.2938 = 0.9003$ nats (natural logarithm;
# with base 2 the unit is the bit). The least is 0, for one certain outcome. The most is $\ln N$, for all alike: here
# $\ln 3 = 1.099$. So $e^H$ counts outcomes in effect: $e^{0.900} = 2.46$, of three.
#
# One trap: a weight of exactly 0, as every mask makes. Its surprise is infinite, but it never happens, so it
# should add nothing: $p \ln p \to 0$ as $p \to 0$. **Predict before you run:** *what does a computer make of it?*

# %%
p = torch.tensor([0.5, 0.5, 0.0])  # (N,)
print(p * p.log())

# %% [markdown]
# <details><summary>Answer</summary>
#
# It multiplies 0 by $-\infty$, and that is `nan`. One such entry makes the whole sum `nan`.
#
# </details>

# %% [markdown]
# ### Exercise 6.4 `entropy`
#
# Difficulty 2 of 5 · Importance 3 of 5 · 6 minutes · 8 points
#
# $$\text{entropy}(p) = -\sum_i p_i \ln p_i, \qquad 0 \ln 0 = 0$$
#
# `p (..., N)`, probability vectors along the last dimension → `(...)`, in nats. Also right for hundreds of outcomes of
# a few millionths each. Gradients are judged where $p > 0$.


# %% nbgrader={"solution": "entropy"}
def entropy(p):
    """Entropy in nats of probability vectors along the last dimension, with 0 log 0 = 0.

    p (..., N), float32 or float64 -> (...), same dtype, between 0 and log N.
    """
    ### BEGIN SOLUTION
    log_p = p.clamp_min(torch.finfo(p.dtype).tiny).log()  # (..., N), finite
    return (p * -log_p).sum(dim=-1)  # (...)
    ### END SOLUTION


# %% nbgrader={"grade": "entropy"}
check(entropy)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# The sum is easy. The work is in the zeros. Repair the logarithm's *argument* before you take it, not the NaN after it.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Anything finite will do as the logarithm at 0, as it is multiplied by 0 afterwards. Which tensor methods keep a number
# from falling below a bound? Leave all other entries exactly as they are. Dropping the zeros with a boolean mask works
# for one vector only.
#
# </details>
#
# Your two functions at work on the scores of *is* in *Life is short, eat dessert first*. At $\tau = \sqrt{24}$ they give
# the weights that lesson 4 printed. The next figure draws weights and entropy at 401 temperatures. **Predict before you
# run:** *a doubling of the temperature moves weight from some words to others. From where does it move most: from 1 to 2,
# from 2.5 to 5, from 5 to 10, or from 20 to 40?*

# %%
life = ["Life", "is", "short", "eat", "dessert", "first"]
scores_is = torch.tensor([-7.0847, -4.5398, 3.9887, 10.2379, 2.3206, -10.5434])  # (T,)
figures.temperatures(or_given(softmax_with_temperature), or_given(entropy), scores_is, life)

# %%
for cold in (1, 2.5, 5, 20):
    before, after = (or_given(softmax_with_temperature)(scores_is, t) for t in (cold, 2 * cold))  # (T,) each
    print(f"from {cold:3} to {2 * cold:4}: {100 * (after - before).abs().sum() / 2:2.0f} % of the weight moves")

# %% [markdown]
# <details><summary>Answer</summary>
#
# From 2.5 to 5: 26 % of the weight changes hands, from 5 to 10 it is 23 %, from 1 to 2 and from 20 to 40 it is 6 and 8 %.
# The curve of the entropy is steepest there too, at 3.6. Far to the left and far to the right hardly anything happens:
# one word has everything, or all are alike. The $\sqrt{24} = 4.9$ of lesson 4 lies on the slope between the two.
#
# </details>

# %% [markdown]
# **Halfway.** You have the weights of attention; this is a good place for a break. What follows is the other end of
# the model: the loss, and the gradients that come back from it.

# %% [markdown]
# ## The logarithm of a share
#
# Training needs $\ln p$: the loss of a model that gave the right word the share $p$ is its surprise, $-\ln p$. So take
# `log(softmax(x))`? Look at a word 150 points behind the winner. Its share is $e^{-150}$, too small for float32, hence
# 0, and its logarithm is $-\infty$. The true answer, −150, is a harmless number. We lost it by taking the exponential and
# then the logarithm. On paper the two cancel:
#
# $$\ln \text{softmax}(x)_i = \ln\frac{e^{x_i - m}}{\sum_j e^{x_j - m}} = (x_i - m) - \ln\sum_j e^{x_j - m}$$
#
# The last term is the only exponential left, and it is safe: the sum lies between 1 and $N$.

# %%
figures.log_of_softmax()

# %% [markdown]
# The green line is what many repositories do about it: add a small $\varepsilon$ inside the logarithm. There is no NaN
# and no infinity, but the number is wrong and its slope fades. With $\varepsilon = 10^{-9}$ and 20 points behind, two
# thirds of the slope are left; at 25 points it is 1 %. The words that most need to be pulled up are hardly pulled.

# %% [markdown]
# ### Exercise 6.5 `log_softmax`
#
# Difficulty 2 of 5 · Importance 4 of 5 · 6 minutes · 12 points
#
# $$\text{log\_softmax}(x)_i = (x_i - m) - \ln\sum_j e^{x_j - m},
# \qquad m = \max_j x_j, \quad \text{along } \texttt{dim}$$
#
# `x` of any shape → the same shape. As before: right for ±10,000, any `dim`; an entry of $-\infty$ stays $-\infty$, and
# in each vector at least one entry is finite.
#
# *Forbidden:* every library softmax, log_softmax, logsumexp, logcumsumexp, logaddexp.


# %% nbgrader={"solution": "log_softmax"}
def log_softmax(x, dim=-1):
    """Logarithm of softmax along one dimension, without computing softmax.

    x: any shape, float32 or float64, up to ±1e4 or -inf; each vector along dim has a finite entry.
    -> same shape and dtype.
    """
    ### BEGIN SOLUTION
    shifted = x - x.amax(dim=dim, keepdim=True)  # like x, at most 0
    return shifted - shifted.exp().sum(dim=dim, keepdim=True).log()  # like x
    ### END SOLUTION


# %% nbgrader={"grade": "log_softmax"}
check(log_softmax)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# Two numbers are subtracted from each score: the maximum of its vector, and a logarithm. Each needs `keepdim`.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Check yours on the scores 0 and −20,000. The answer is 0 and −20,000. If you see −∞, an exponential was taken of
# something whose logarithm you needed later.
#
# </details>

# %% [markdown]
# ## Cross-entropy: the loss of every language model
#
# The translator has written *jane* and scores all its French words for the next place. Keep three of them, *est*,
# *regarde* and *visite*, with our scores $\ln 1$, $\ln 2$, $\ln 5$. The word that really comes, *visite*, is the
# *target*. The loss is the surprise at it, $-\ln p_\text{target} = -\ln\frac58 = 0.470$. Had *est* been right, it would
# be $-\ln\frac18 = 2.079$. Move the target's score, and watch the loss. *At which score is the loss 0?*

# %%
explore.surprise()

# %% [markdown]
# <details><summary>Answer</summary>
#
# At none. The loss falls toward 0 as the score rises (0.0006 at a score of 8.5), but a share of 1 would need a score of
# $+\infty$. So a model that
# is right already still wants to be surer. Its pull on the score, $1 - p$, fades as it gets there.
#
# </details>
#
# A batch has many places, and the loss is the mean over them. A model that knows nothing gives each of $V$ words
# $1/V$, and its loss is $\ln V$: for the 194 entries of our translator's French vocabulary 5.27, for GPT-2's 50,257 tokens 10.82. Look for
# that number at the first step of a training run; a loss that starts far above says that the first scores are too large.
#
# Sentences in a batch have different lengths, and the padding has no right answer. Such targets carry a number that is
# no word, −100 by custom, and are **left out**: of the sum, *and of the count*.

# %%
logits = torch.tensor([[1.0, 2, 5]] * 3).log()  # (places, V)
targets = torch.tensor([2, 0, -100])  # (places,): visite, est, padding
print(f"mean of 0.470 and 2.079: {F.cross_entropy(logits, targets).item():.3f}")

# %% [markdown]
# ### Exercise 6.6 `cross_entropy`
#
# Difficulty 3 of 5 · Importance 5 of 5 · 12 minutes · 16 points
#
# $$\text{cross\_entropy}(x, y) = -\frac{1}{|\text{kept}|}\sum_{t\,\in\,\text{kept}} \ln\text{softmax}(x_t)_{y_t},
# \qquad \text{kept} = \{t : y_t \ne \texttt{ignore\_index}\}$$
#
# `logits (..., V)`, `targets` LongTensor `(...)` → a scalar. At least one target is kept. `ignore_index` is −100 unless
# the caller says otherwise; it may be any number, a valid word id too. Logits up to ±10,000.
#
# *Forbidden:* `F.cross_entropy`, `F.nll_loss`. Every other tool is allowed, your `log_softmax` first of all.


# %% nbgrader={"solution": "cross_entropy"}
def cross_entropy(logits, targets, ignore_index=-100):
    """Mean of -log softmax(logits)[target] over the targets that are not ignore_index.

    logits (..., V), float32 or float64, up to ±1e4; targets LongTensor (...), at least one kept.
    -> scalar (0-dim), dtype of logits, differentiable.
    """
    ### BEGIN SOLUTION
    mask = targets != ignore_index  # (...)
    log_p = log_softmax(logits[mask])  # (K, V), K targets are kept
    picked = log_p[torch.arange(len(log_p)), targets[mask]]  # (K,)
    return -picked.mean()  # ()
    ### END SOLUTION


# %% nbgrader={"grade": "cross_entropy"}
check(cross_entropy)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# A boolean tensor in square brackets keeps the places where it is True, and makes one long list of them, whatever the
# leading dimensions were. Do that to logits and targets, and what is left is an easy case.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# From a `(K, V)` table pick one number in each row: index with two lists of length K, the rows and the columns.
# `gather` does it too. An ignored target is no valid column, so it must be gone (or replaced, and its loss left out)
# before.
#
# </details>

# %% [markdown]
# ## The gradient of softmax
#
# Lesson 4 had the table of all slopes: $J = \operatorname{diag}(p) - p\,p^\top$. Training asks a smaller question. A
# gradient $g_i = \partial L/\partial p_i$ arrives at the weights; which gradient leaves for the scores? By the chain
# rule it is $g$ times the table:
#
# $$\frac{\partial L}{\partial s_j} = \sum_i g_i\,p_i(\delta_{ij} - p_j) = p_j g_j - p_j\sum_i p_i g_i
# = p_j\,\Big(g_j - \sum_i p_i g_i\Big).$$
#
# In words: *a score's gradient is its weight, times how far its $g$ lies above the average of all $g$*, an average
# taken with the weights themselves. The table of $N \times N$ slopes has disappeared. For a sentence of 1000 tokens
# that is 1000 numbers in place of a million, for every query.
#
# **On paper**, $p = (\frac18, \frac14, \frac58)$ and $g = (4, 0, 0)$: the average is $\frac12$, the differences are
# $3\frac12, -\frac12, -\frac12$, and the scores' gradient is $(\frac7{16}, -\frac18, -\frac5{16})$. It adds up to 0,
# and it must: raising all scores alike changes nothing.

# %%
figures.push_and_pull()

# %% [markdown]
# ### Exercise 6.7 `softmax_backward`
#
# Difficulty 3 of 5 · Importance 4 of 5 · 8 minutes · 12 points
#
# $$\text{softmax\_backward}(p, g)_j = p_j\,\Big(g_j - \sum_i p_i g_i\Big)$$
#
# `p (..., N)` probability vectors, `grad (..., N)` the gradient at p → `(..., N)`, the gradient at the scores. Some p may
# be exactly 0 or 1; no NaN there, in gradients either.
#
# *Forbidden:* autograd in every form (`torch.autograd`, `.backward`, `torch.func`), `torch._softmax_backward_data`.


# %% nbgrader={"solution": "softmax_backward"}
def softmax_backward(p, grad):
    """Gradient at the scores from the gradient at p = softmax(scores), by hand.

    p (..., N) probability vectors, grad (..., N), float32 or float64 -> (..., N), same dtype.
    """
    ### BEGIN SOLUTION
    average = (p * grad).sum(dim=-1, keepdim=True)  # (..., 1)
    return p * (grad - average)  # (..., N)
    ### END SOLUTION


# %% nbgrader={"grade": "softmax_backward"}
check(softmax_backward)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# One average for each vector, then an elementwise formula. Which shape lets the average meet all entries of its own
# vector, and of no other?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Test on paper's numbers, then add up your result along the last dimension: 0 in every row. If single rows are right
# and batches are not, look at the dimension that the sum took away.
#
# </details>

# %% [markdown]
# ## Prediction minus truth
#
# Put cross-entropy on top of softmax. At one place, $L = -\ln p_y$ for the target $y$, so the gradient that arrives at
# the shares is $-1/p_y$ at the target and 0 elsewhere. **On paper**, with our three shares and the target *visite*,
# $p_y = \frac58$: $g = (0, 0, -\frac85)$. *What leaves for the scores?* Use the formula of
# Exercise 6.7, before you look at the figure.
#
# <details><summary>Answer</summary>
#
# The average of $g$ is $\frac58\cdot(-\frac85) = -1$. The differences from it are $(1, 1, -\frac35)$, and times $p$ that
# is $(\frac18, \frac14, -\frac38)$. These are the shares themselves, and at the target the share minus 1.
#
# </details>

# %%
figures.prediction_minus_truth()

# %% [markdown]
# Your own function, on the same numbers:

# %%
p, g = torch.tensor([1 / 8, 1 / 4, 5 / 8]), torch.tensor([0.0, 0.0, -8 / 5])  # (V,) each
print(or_given(softmax_backward)(p, g))

# %% [markdown]
# The division by $p_y$ has cancelled. No logarithm is left, nothing can overflow, and no entry exceeds 1. It may be the
# most useful formula of the lesson: whatever is trained with this loss learns by it. **The gradient at the scores is the prediction
# minus the truth.**

# %% [markdown]
# ### Exercise 6.8 `cross_entropy_backward`
#
# **Extra** · Difficulty 3 of 5 · Importance 4 of 5 · 10 minutes · 8 bonus points
#
# $$\text{cross\_entropy\_backward}(x, y)_{t} = \frac{\text{softmax}(x_t) - \text{one-hot}(y_t)}{N}$$
#
# `logits (..., V)`, `targets` LongTensor `(...)`, $N \ge 1$ of them, none ignored → `(..., V)`, the gradient of the
# mean cross-entropy at the logits, which may be as large as ±10,000. It need not be differentiable itself.
#
# *Forbidden:* autograd in every form, `F.cross_entropy`, `nn.CrossEntropyLoss`.


# %% nbgrader={"solution": "cross_entropy_backward"}
def cross_entropy_backward(logits, targets):
    """Gradient of the mean cross-entropy at the logits, by hand.

    logits (..., V), float32 or float64, up to ±1e4; targets LongTensor (...), none ignored.
    -> (..., V), dtype of logits.
    """
    ### BEGIN SOLUTION
    p = softmax(logits)  # (..., V)
    truth = torch.zeros_like(p).scatter(-1, targets.unsqueeze(-1), 1.0)  # (..., V), 1 at each target
    return (p - truth) / targets.numel()  # (..., V)
    ### END SOLUTION


# %% nbgrader={"grade": "cross_entropy_backward"}
check(cross_entropy_backward)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# One tensor of shares, and one like it with a 1 at each target and 0 elsewhere. You made such rows in lesson 1;
# `F.one_hot` makes them too, as whole numbers.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Over how many places does the mean go if the targets are `(2, 3)`, and if they are a single number? Check your result
# by its rows: each adds up to 0.
#
# </details>
#
# Learning without autograd: eight random places, six words, and steps against your gradient. The loss starts near
# $\ln 6 = 1.79$.

# %%
torch.manual_seed(0)
logits, targets = 0.1 * torch.randn(8, 6), torch.randint(6, (8,))  # (places, V), (places,)
for step in range(5):
    print(f"step {step}   loss {or_given(cross_entropy)(logits, targets).item():.3f}")
    logits = logits - 8 * or_given(cross_entropy_backward)(logits, targets)  # (places, V)

# %% [markdown]
# ## Softmax in a stream
#
# Softmax looks like a step that needs all scores at once: the maximum, then the sum, then the shares. For long texts
# the table of scores does not fit into the fast memory of a processor. Can we see the scores once, block by block, and
# throw each block away?
#
# Suppose we have seen some scores. We keep three things: their maximum $m$, the sum $\ell = \sum e^{s_j - m}$, and the
# weighted values so far, $o = \sum e^{s_j - m} v_j$. Then a block with a larger maximum $m'$ comes. All that we have
# was measured against the old $m$. But changing to the new one is a single factor:
#
# $$e^{s_j - m'} = e^{s_j - m}\cdot e^{m - m'} .$$
#
# So shrink $\ell$ and $o$ by $e^{m - m'}$ and go on. At the end the answer is $o / \ell$.
#
# **On paper**: our three scores with the values 8, 0, 16, in two blocks.
#
# | seen | $m$ | $\ell$ | $o$ |
# |---|---|---|---|
# | ln 1, ln 2 | ln 2 | 1/2 + 1 = 3/2 | 8 · 1/2 + 0 = 4 |
# | shrink by $e^{\ln 2 - \ln 5} = 2/5$ | ln 5 | 3/5 | 8/5 |
# | ln 5 | ln 5 | 3/5 + 1 = 8/5 | 8/5 + 16 = 88/5 |
#
# The end: $\frac{88}5 / \frac85 = 11$. Directly: $\frac18\cdot 8 + \frac14\cdot 0 + \frac58\cdot 16 = 11$.
#
# Below are four blocks of three scores. Move through them, then raise the third block. *When does the old sum shrink to
# nearly nothing, and does the end still agree with softmax over all at once?*

# %%
explore.stream()

# %% [markdown]
# <details><summary>Answer</summary>
#
# When a block comes whose maximum lies far above all earlier ones: raised by 3, the third block shrinks what came
# before to less than 1 %. The last point meets the dotted line every time: nothing is approximated.
#
# </details>
#
# Milakov and Gimelshein found this in 2018 for plain softmax, and Rabe and Staats in 2021 for attention, where the
# weighted values ride along. In 2022 Dao and others turned it into a program that fits the fast memory of a graphics card:
# **FlashAttention**, which many large models use today. Lesson 7 does it for all queries at
# once and measures the memory.

# %% [markdown]
# ### Exercise 6.9 `online_softmax`
#
# **Extra** · Difficulty 4 of 5 · Importance 3 of 5 · 30 minutes · 10 bonus points
#
# $$\text{streaming\_softmax} = \sum_j \text{softmax}(s)_j\, v_j, \qquad s, v \text{ cut into blocks, seen once}$$
#
# `score_blocks`, `value_blocks`: two lists of equal length, of tensors `(..., n_i)` and `(..., n_i, d_v)`, each
# $n_i \ge 1$, the sizes may differ → `(..., d_v)`. Scores are finite, up to ±10,000. Go through the blocks once, with a
# running maximum and a running sum, as in the table above. **No block of scores may be used again after a later one**,
# and you keep no copies of blocks, nor a list of results that grows with their number: half of the points are for that.
#
# *Forbidden:* `cat`, `stack` and their kin (`concat`, `hstack`, `vstack`).


# %% nbgrader={"solution": "online_softmax"}
def online_softmax(score_blocks, value_blocks):
    """Softmax-weighted sum of values in one pass over blocks
    (Dao et al. 2022, algorithm 1, for one query).

    score_blocks: list of (..., n_i), value_blocks: list of (..., n_i, d_v), float32 or float64,
    n_i >= 1; scores finite, up to ±1e4. -> (..., d_v), same dtype.
    """
    ### BEGIN SOLUTION
    first, *_ = score_blocks
    top = torch.full_like(first[..., :1], -math.inf)  # (..., 1) running maximum
    total = out = torch.zeros_like(top)  # (..., 1) running sum; out becomes (..., d_v)
    for scores, values in zip(score_blocks, value_blocks, strict=True):
        new_top = torch.maximum(top, scores.amax(dim=-1, keepdim=True))  # (..., 1)
        shrink = torch.exp(top - new_top)  # (..., 1), 0 for the first block
        e = torch.exp(scores - new_top)  # (..., n_i)
        total = total * shrink + e.sum(dim=-1, keepdim=True)  # (..., 1)
        out = out * shrink + (e.unsqueeze(-1) * values).sum(dim=-2)  # (..., d_v)
        top = new_top
    return out / total  # (..., d_v)
    ### END SOLUTION


# %% nbgrader={"grade": "online_softmax"}
check(online_softmax)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# Write down what you keep between blocks: three tensors. Then two lines for each: shrink the old, add the new. Both are
# measured against the *new* maximum.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Before the first block nothing was seen. Which running maximum says "nothing yet", whatever the first scores are?
# Zero does not: try a first block of −10,000s. `torch.maximum` takes the larger of two tensors, entry by entry.
#
# </details>
#
# A thousand scores of one query in blocks of ten, by your stream and all at once:

# %%
torch.manual_seed(0)
s, v = 5 * torch.randn(1000), torch.randn(1000, 4)  # (T,), (T, d_v)
print("streamed   ", or_given(online_softmax)(s.split(10), v.split(10)))
print("all at once", or_given(softmax)(s) @ v)

# %% [markdown]
# ## At work
#
# Your functions in the course's translator. `softmax` makes all weights of its attention; `cross_entropy`
# measures how well it does.

# %%
at_work(softmax, cross_entropy)


# %% [markdown]
# **Predict before you run.** *What does the published bug cost here: softmax over the queries?*


# %%
def over_queries(x, dim=-1):
    return torch.softmax(x, dim=-2)  # (B, H, T_q, T_k)


at_work(softmax=over_queries)

# %% [markdown]
# <details><summary>Answer</summary>
#
# For our sentence it writes nothing at all: the translation ends before its first word. When the decoder begins it has
# a single query, and over one query every weight is 1. And in a batch the loss is NaN: shorter sentences are padded, no
# query may look at a padded word, so the column of that key holds nothing but $-\infty$, and 0 / 0 is NaN. The
# diffusion model had no mask, and there the same bug made no noise.
#
# </details>
#
# And the temperature? The curve under your own functions shows what other temperatures do to a translator that was
# trained at 1. In this training the loss is 2.6 times as large at half the temperature and 3.9 times at twice, and all
# sentences still come out word for word. At 4, beyond the curve, the loss is 0.068 and 14 of 100 sentences go wrong. (Two
# more trainings of the same machine: 1.5 and 5.2 times, 2.9 and 22 times, 10 and 18 sentences.) So a scale that is off, as
# in lesson 4, may go unnoticed.
#
# A mistake in the loss does not show in the translations at all. Leave the padding out of the sum, but not of the count,
# and this loss is 0.00009 instead of 0.00016: a better number, and not a better model. (Leave it in both, as if padding
# were words to guess, and the loss is 8.09: this network never learned to write any.) The $\varepsilon$ in the logarithm changes nothing here,
# because in these 200 sentences every true word has the largest score. It matters for a network that is sure of something wrong: there the
# gradient that could correct it is gone.

# %% [markdown]
# ### Quiz 6.1
#
# Scores are `(B, H, T_q, T_k)`. Somebody writes `scores.softmax(dim=1)`. What happens?
#
# - **a** An error, as softmax works on the last dimension only.
# - **b** No error; at each query and key the heads share one unit of attention.
# - **c** No error; each key shares one unit among the queries.

# %% nbgrader={"solution": "quiz_1"}
quiz_1 = None  # "a", "b" or "c"
### BEGIN SOLUTION
quiz_1 = "b"
### END SOLUTION

# %% nbgrader={"grade": "quiz_1"}
check(quiz_1=quiz_1)

# %% [markdown]
# ### Quiz 6.2
#
# In float32, why is `torch.log(softmax(x))` a bad loss even with a perfectly safe softmax?
#
# - **a** A share can be too small for float32 and become 0; its logarithm is then −∞ although the true one is harmless.
# - **b** The logarithm of a number below 1 is negative, and a loss must be positive.
# - **c** The shares may add up to slightly more than 1.

# %% nbgrader={"solution": "quiz_2"}
quiz_2 = None  # "a", "b" or "c"
### BEGIN SOLUTION
quiz_2 = "a"
### END SOLUTION

# %% nbgrader={"grade": "quiz_2"}
check(quiz_2=quiz_2)

# %% [markdown]
# ### Quiz 6.3
#
# A streaming softmax has seen scores with maximum 3, with running sum 2. The next block holds the single score 5. What
# is the running sum after it?
#
# - **a** 3
# - **b** $2 + e^2 \approx 9.39$
# - **c** $2e^{-2} + 1 \approx 1.27$

# %% nbgrader={"solution": "quiz_3"}
quiz_3 = None  # "a", "b" or "c"
### BEGIN SOLUTION
quiz_3 = "c"
### END SOLUTION

# %% nbgrader={"grade": "quiz_3"}
check(quiz_3=quiz_3)

# %% [markdown]
# ## Written question
#
# *15 points, graded by hand, 10 minutes, six to ten sentences.*
#
# A classmate's language model prints `nan` after some hundred steps. In the code you find
# `p = torch.exp(s) / torch.exp(s).sum(dim=1, keepdim=True)` on scores `s` of shape `(B, T_q, T_k)`, and later
# `loss = -torch.log(p_next + 1e-9).mean()`, over all places of a padded batch. Name every fault, say what each one does
# to values or to the gradient, how one could *see* it, and how to repair it.
#
# <details><summary>For those who learn alone: what a good answer has</summary>
#
# - Four faults are named: the raw exponentials, the axis, the logarithm of a share, the padding in the mean.
# - For each: what it does to values or gradients, and one line of code or one number that would show it.
# - A repair for each, and which of the four leave no trace in what is printed.
#
# </details>

# %% [markdown] nbgrader={"written": "written_1"}
# <details><summary>Model answer and marking scheme</summary>
#
# **Model answer.** There are four faults. (1) The exponentials are taken of the raw scores: above about 88 float32
# overflows, inf / inf is NaN; if all scores of a vector are very low it is 0 / 0. One sees it by printing the largest
# score, or by feeding scores 1000, 1001. Repair: subtract the maximum of each vector first; the shares stay the same,
# because only differences of scores count, and the sum is then at least 1. (2) `dim=1` is the dimension of the queries,
# so columns add up to 1 in place of rows: a query's weights have any sum, and with a causal mask each weight is divided
# by a sum over later queries, so that the future leaks in. One sees it by summing over keys. Repair: `dim=-1`. (3) The
# logarithm of a computed share: a small share becomes 0, and the 1e-9 turns its surprise into a constant of at most
# 20.7. There the loss is wrong, and its gradient at the scores vanishes, just where the model is most wrong. Repair:
# log_softmax, (x − m) − ln Σ exp(x − m), which never forms the share. (4) The mean is over all places, padding
# included: the model is trained to predict padding, or at least the number depends on how much padding a batch has.
# Repair: leave ignored targets out of the sum and of the count. Repairing (1) stops the NaN; (2) to (4) give no error
# message, which makes them the worse ones.
#
# **Marking scheme (15).** Overflow 4: names inf/inf or 0/0 (2), subtract the maximum and why it changes nothing (2).
# Axis 4: rows do not add up to 1 (2), seen by a sum, repaired by the last dimension (2); a remark on leaking may
# replace one of these points. Logarithm 4: share of 0 or bounded by the 1e-9 (2; 1 if only "log 0 is −∞"), gradient
# lost or log_softmax as the repair (2). Padding 2: left out of sum and count. 1: says that faults without an error
# message must be looked for, or an equivalent remark.
#
# </details>

# %% [markdown]
# ## From the notes this course grew from
#
# <details><summary>A table that was no softmax, and whether weights are probabilities</summary>
#
# - Notes on Rowel Atienza's *Transformer in PyTorch* print a five-by-five table for *I like to eat apples* and call it the result of
#   $\text{softmax}(QK^\top/\sqrt{d_k})$. Its rows add up to 1.45 and more, so it is not; it is a table of cosines. A
#   line below asks to scale it and to apply softmax. Its first row, 1.00, 0.20, 0.10, 0.10, 0.05, becomes 0.377, 0.170,
#   0.153, 0.153, 0.146: $e^1 = 2.7183$ over the sum 7.2013. That is flat, as the shares of scores between 0 and 1
#   can differ by a factor of 2.72 at most. Dividing by $\sqrt{16}$ as well would make it flatter still: 0.238, 0.195, 0.190, 0.190,
#   0.188. The division is meant for dot products, whose spread grows with the width, not for cosines. (The code cell
#   below draws the table.)
# - The scores of that table are symmetric, its softmax is not: I → like is 0.170, like → I is 0.155, because each row
#   is divided by its own sum. And on symmetric scores the wrong axis hides: softmax over queries gives exactly the
#   transpose.
# - An answer on Stack Exchange has a table for *jane visits africa* with 0.94, 0.86 and 0.76, as an illustration. Our scores of 3, 3
#   and 2 give 0.91, 0.91 and 0.79, and now you know how: a 3 against two 0s is $e^3/(e^3 + 2)$.
# - The same answer calls the weights probabilities: how likely *visits* is the word that explains *jane*. They have
#   the form of probabilities, positive with a sum of 1, and the mathematics says no more. Nothing is drawn at random.
#   They are the weights of an average, which lesson 7 takes. At the end of a model it is different: there a word may
#   really be drawn with these probabilities.
# - The scores quoted from the lecture (4 sentences, 8 tokens, width 32, head 16, seed 1337) are not divided by the root of
#   the head's width. The lecture divides a few minutes later, as lesson 4 found.
# - The exponential is a choice. Other positive functions would give shares too; it was chosen for $p_i/p_j$, which
#   depends on a difference alone, and for the simple gradients.
# - Cousins of the axis bug have been published too: a softmax over the batch, where with a batch of one every weight is
#   1; over a last dimension of size 1, where every weight is 1 always; and `F.softmax(x)` without `dim`, which guesses
#   dimension 0 for three dimensions and 1 for two or four.
#
# </details>

# %%
tokens = ["I", "like", "to", "eat", "apples"]
table = torch.tensor(
    [
        [1.00, 0.20, 0.10, 0.10, 0.05],
        [0.20, 1.00, 0.40, 0.30, 0.10],
        [0.10, 0.40, 1.00, 0.50, 0.20],
        [0.10, 0.30, 0.50, 1.00, 0.60],
        [0.05, 0.10, 0.20, 0.60, 1.00],
    ]
)
figures.before_and_after(table, tokens)

# %% [markdown]
# ## Recap
#
# - Softmax makes shares from scores. Only differences count: one point more is a factor of $e$.
# - Subtract the maximum of each vector, and no score is too large or too low.
# - The axis is the one that adds up to 1: keys. The wrong one runs silently, and lets the future in.
# - Temperature divides scores; entropy measures the result.
# - Never take the logarithm of a share: `log_softmax` and `cross_entropy` work on scores.
# - Backward: $p\,(g - \text{average of } g)$, no table of slopes. Through the loss: prediction minus truth.
# - A running maximum and sum make softmax a stream.
#
# `progress()` in a new cell shows what you have done so far, over all lessons (`from helpers import progress`).

# %% [markdown]
# ## Further reading
#
# - Milakov and Gimelshein, [Online normalizer calculation for softmax](https://arxiv.org/abs/1805.02867) (2018): the
#   running maximum and sum.
# - Rabe and Staats, [Self-attention Does Not Need O(n²) Memory](https://arxiv.org/abs/2112.05682) (2021), and Dao, Fu,
#   Ermon, Rudra and Ré, [FlashAttention](https://arxiv.org/abs/2205.14135) (2022), algorithm 1.
# - Vaswani et al., [Attention Is All You Need](https://arxiv.org/abs/1706.03762) (2017), section 3.2.1.
# - Guo et al., [On Calibration of Modern Neural Networks](https://arxiv.org/abs/1706.04599) (2017): temperature as the
#   one number that repairs a model's confidence.
# - The bug of exercise 6.2, asked by a reader and confirmed by the author:
#   [annotated_deep_learning_paper_implementations, issue
#   146](https://github.com/labmlai/annotated_deep_learning_paper_implementations/issues/146). The softmax over the
#   batch: [PyTorch-NLP, issue 2](https://github.com/PetrochukM/PyTorch-NLP/issues/2). What `F.softmax` without `dim`
#   guesses: [pytorch, issue 1020](https://github.com/pytorch/pytorch/issues/1020).
# - Sebastian Raschka, [Self-attention from
#   scratch](https://sebastianraschka.com/blog/2023/self-attention-from-scratch.html): the weights of *is*.
# - Andrej Karpathy, [Let's build GPT: from scratch, in code, spelled out](https://www.youtube.com/watch?v=kCc8FmEb1nY):
#   scores, mask, softmax in three lines.
#
# **Next:** [lesson 7](../07_value_weighting/07_value_weighting.ipynb) spends the weights: values, and the first whole
# attention head.
