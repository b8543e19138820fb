# %% [markdown]
# # 6. Softmax: scores become probabilities
#
# **Goal:** build the function that turns scores into weights, so that it survives any score; know its axis, its
# temperature, its logarithm and its gradient, and see how it can be computed in a stream. **Time:** about 90 minutes.
#
# Lessons 4 and 5 took `torch.softmax` from the shelf. Today it comes apart. It is two lines of code, and you will meet
# published programs that got each of them wrong.

# %% [markdown]
# ## You need
#
# - scores, and why they are divided by $\sqrt{d_k}$: [lesson 4](../04_scaling/04_scaling.ipynb);
# - blocked scores of $-\infty$: [lesson 5](../05_masking/05_masking.ipynb);
# - $e^{a+b} = e^a e^b$, and that the logarithm $\ln$ undoes it: $\ln(ab) = \ln a + \ln b$.
#
# Two questions to warm up. Answer before you open them.
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
#   accepts float32 and float64 and keeps the dtype; leaves its inputs unchanged; is differentiable; gives no NaN.
# - **Equal** means within 1e-5 (relative plus absolute) in float32 and 1e-7 in float64. A constant rounded to float32
#   inside a float64 answer is no mistake.
# - `scalar` is a 0-dim differentiable tensor, `float` and `int` are Python numbers.
# - **Forbidden** lists library calls that would be the whole answer, under any name and in every form. Using one gets
#   no points and a message that names it. Each exercise says what it forbids.
#
# </details>

# %% tags=["setup"]
# (empty: the build puts the set-up cell here)

# %%
import math

import torch
import torch.nn.functional as F
from torch import nn

from helpers import check, progress
from helpers.explore import softmax as explore
from helpers.figures import softmax as figures

# %% [markdown]
# ## From scores to shares
#
# A query has scored three keys. How much of each should it take? We want *shares*: positive numbers that add up to 1,
# larger for a larger score. The obvious way is to divide by the sum. Try it on the scores 2, 1 and −1, on paper:
#
# $$\frac{2}{2},\quad \frac{1}{2},\quad \frac{-1}{2}$$
#
# They add up to 1, and one of them is negative. With scores 2, 1 and −3 we would divide by 0. So first make every score
# positive, by a function that keeps the order. Squares do not ($-3$ would beat 2). The exponential does:
#
# $$\text{softmax}(s)_i = \frac{e^{s_i}}{\sum_j e^{s_j}}$$
#
# **On paper**, with scores chosen so that the exponentials are whole numbers:
#
# | score | $e^{\text{score}}$ | share |
# |---|---|---|
# | ln 1 = 0.000 | 1 | 1/8 = 0.125 |
# | ln 2 = 0.693 | 2 | 2/8 = 0.250 |
# | ln 5 = 1.609 | 5 | 5/8 = 0.625 |
# | sum | 8 | 1.000 |

# %%
figures.from_scores_to_shares()

# %% [markdown]
# Why *this* positive function? Divide one share by another and the sum cancels:
#
# $$\frac{p_i}{p_j} = \frac{e^{s_i}}{e^{s_j}} = e^{s_i - s_j}.$$
#
# **Only differences of scores count.** One point more is always a factor of $e \approx 2.72$, whether from 0 to 1 or
# from 100 to 101. So we may add any number to all scores and no share moves. Keep that in mind: the repair of the next
# section is made of it. (Other positive functions would give shares too. The exponential is a choice, made for this
# property and for the simple gradient that you will see below.)

# %% [markdown]
# ## Where the exponential breaks
#
# **Predict before you run.** The formula, as it stands, on two sets of scores. Their differences are the same. *What
# will the second line print?*

# %%
for scores in ([0.0, 1.0, 2.0], [1000.0, 1001.0, 1002.0]):
    e = torch.tensor(scores).exp()  # (3,)
    print(e, "->", e / e.sum())

# %% [markdown]
# $e^{1000}$ has 435 digits, and float32 ends at 39. It becomes `inf`, and `inf / inf` is `nan`, *not a number*. Very
# low scores fail too: all exponentials become 0, and 0 / 0 is `nan` as well. Here is how much room there is.

# %%
figures.where_exp_works()

# %% [markdown]
# This is no corner case. In lesson 4 undivided scores of width 1024 spread by 32, and three such spreads are past 89.
# In `float16`, a short format that large models are run in, a score of 12 is enough.
#
# The repair: subtract the largest score first. No share moves, as only differences count. Now the largest exponential
# is $e^0 = 1$, so nothing overflows; the sum is at least 1, so nothing is divided by 0. What is too small becomes 0,
# and beside a sum of 1 or more it is.
#
# $$\text{softmax}(s)_i = \frac{e^{s_i - m}}{\sum_j e^{s_j - m}}, \qquad m = \max_j s_j$$
#
# By hand, for 1000, 1001, 1002: subtract 1002, and the exponentials of −2, −1, 0 are 0.135, 0.368, 1. Their sum is
# 1.503, the shares 0.090, 0.245, 0.665.

# %% [markdown]
# ## Exercise 6.1 `softmax`
#
# Difficulty ●●○○○ · Importance ●●●●● · 10 minutes · 16 points
#
# $$\text{softmax}(x)_i = \frac{e^{x_i - m}}{\sum_j e^{x_j - m}}, \qquad m = \max_j x_j,$$
#
# where $i$ and $j$ run along the dimension `dim`: each vector along it becomes shares of its own. `x` of any shape →
# the same shape. Right for scores up to ±10,000, and for blocked scores: an entry of $-\infty$ gets the weight 0, in
# each vector at least one entry is finite. No NaN, in gradients either. `dim` may be any dimension, counted from the
# front (0, 1, …) or from the back (−1, −2, …).
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
# Attention scores are a table: a row for each query, a column for each key. Lesson 3 wrote one by hand for *jane visits
# africa*. Softmax can run along each row, along each column, or over the whole table. All three run. All three give
# positive numbers below 1. Only one of them answers "how does *jane* divide her attention?".

# %%
jane = ["jane", "visits", "africa"]
scores = torch.tensor([[0.0, 3, 0], [0, 0, 3], [0, 2, 0]])  # (T_q, T_k)
figures.three_axes(scores, jane)

# %% [markdown]
# **Look at the sums beside the tables.** Over keys, each *row* adds up to 1: each query has one unit of attention to
# give. Over queries, each *column* does: each key has one unit to be taken, and *jane* as a query holds 1.08 while
# *africa* gets 0.64. That is a sum you can see, and nothing else in the program will complain.
#
# By the way: one of this course's sources draws a table for this sentence, with 0.94 for jane → visits, 0.86 for visits
# → africa and 0.76 for africa → visits. It is an illustration, not a computation. Ours gives 0.91, 0.91 and 0.79, and
# now you know how: a score of 3 against two 0s is $e^3/(e^3 + 2)$.
#
# *Where intuition stops.* The same source calls the shares probabilities: how likely *visits* is the word that explains
# *jane*. They have the form of probabilities, positive with a sum of 1, and that is all that the mathematics says.
# Nothing is drawn by lot, and nobody asked how likely anything is. They are the weights of an average, which lesson 7
# takes.

# %% [markdown]
# ## The published five by five table
#
# Lesson 3 looked at this table for *I like to eat apples*. Its source says that it is the result of
# $\text{softmax}(QK^\top/\sqrt{d_k})$, and its rows add up to 1.45 and more, so it is not. A note below it then says to
# scale it and to apply softmax. Let us apply softmax.

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

# %%
weights = torch.softmax(table, dim=-1)  # (T_q, T_k)
print("I:", " ".join(f"{w:.3f}" for w in weights[0].tolist()), "  sum", f"{weights[0].sum().item():.3f}")
figures.before_and_after(table, tokens)

# %% [markdown]
# Check the first weight on paper: $e^1 = 2.7183$; the others are $e^{0.2} = 1.2214$, twice $e^{0.1} = 1.1052$, and
# $e^{0.05} = 1.0513$. The sum is 7.2014, and $2.7183 / 7.2014 = 0.377$. Three things to notice:
#
# - **It is flat.** The scores lie between 0.05 and 1, so no weight can be more than $e^{0.95} = 2.6$ times another.
#   Scores that are cosines can never make a sharp choice. Dividing by $\sqrt{d_k}$ as well, as the note asks, makes it
#   flatter still: with $d_k = 16$ the weights of *I* are 0.238, 0.195, 0.190, 0.190, 0.188. The division is for dot
#   products, whose spread grows with the width, not for cosines.
# - **It is no longer symmetric.** I → like is 0.170, like → I is 0.155. The scores were equal, but each row is divided
#   by its own sum.
# - **On symmetric scores the wrong axis hides.** Softmax over queries gives exactly the transpose here, with columns
#   that add up to 1. A textbook example that scores words against themselves, without $W_Q$ and $W_K$, cannot show you
#   which axis is right.

# %% [markdown]
# ## Mask, then softmax
#
# The lines that lesson 3 and lesson 5 took from a lecture, now with their last step: scores of a batch of 4 sentences
# with 8 tokens, future blocked, softmax. (The scores are undivided, as published; lesson 4 said what that costs.)

# %%
torch.manual_seed(1337)
B, T, C, head_size = 4, 8, 32, 16
Wk, Wq, Wv = [nn.Linear(C, head_size, bias=False) for _ in "kqv"]  # Wv waits for lesson 7
batch = torch.randn(B, T, C)  # (B, T, C)
masked = (Wq(batch) @ Wk(batch).transpose(-2, -1)).detach()  # (B, T, T)
masked = masked.masked_fill(~torch.ones(T, T, dtype=torch.bool).tril(), -math.inf)  # (B, T, T)

# %%
right, wrong = torch.softmax(masked, dim=-1), torch.softmax(masked, dim=-2)  # (B, T, T) each
for name, weights in [("right", right), ("wrong", wrong)]:
    print(f"{name} {tuple(weights.shape)}, sums over keys", " ".join(f"{w:.2f}" for w in weights[0].sum(-1).tolist()))
figures.right_and_wrong_axis(right[0], wrong[0])

# %% [markdown]
# On the left every row adds up to 1, and the first token, which sees only itself, gives itself everything. On the right
# token 0 has 0.03 of a unit to give. There is worse: each column on the right was divided by a sum over *later*
# queries. Token 0's weight depends on what comes after it. **The wrong axis undoes the mask**, although every blocked
# entry is 0, as it should be.

# %% [markdown]
# ## Exercise 6.2 `fixed_head_weights`
#
# **Find the bug** · Difficulty ●●○○○ · Importance ●●●●○ · 8 minutes · 8 points
#
# A widely read collection of annotated papers holds a diffusion model, which draws pictures. Its attention keeps the
# heads as the *last* dimension. Its softmax ran along the wrong one, until a reader asked (link under *Further
# reading*). Here are its three steps as a function, where `i` counts queries and `j` counts keys:


# %%
def published_head_weights(q, k):
    scores = torch.einsum("bihd,bjhd->bijh", q, k)  # (B, T_q, T_k, H)
    scores = scores * q.shape[-1] ** -0.5
    return scores.softmax(dim=1)  # (B, T_q, T_k, H)


# %% [markdown]
# The model drew fine pictures. The reader trained it both ways, and the usual measure of picture quality did not tell
# the two apart. No loss showed this bug, no shape shows it. A sum does:

# %%
torch.manual_seed(0)
q, k = torch.randn(1, 4, 2, 8), torch.randn(1, 5, 2, 8)  # (B, T_q, H, d_k), (B, T_k, H, d_k)
print("head 0, what each query has to give:", published_head_weights(q, k).sum(dim=2)[0, :, 0])

# %% [markdown]
# Write it as it should be: each query of each head divides one unit among the keys.
#
# `q (..., T_q, H, d_k)`, `k (..., T_k, H, d_k)` → weights `(..., T_q, T_k, H)`, scores over $\sqrt{d_k}$. The published
# version insists on one batch dimension; yours should not. `torch.softmax` is allowed here, and so is your own.


# %% nbgrader={"solution": "fixed_head_weights"}
def fixed_head_weights(q, k):
    """Attention weights, with the heads as the last dimension; each query's weights add up to 1.

    q (..., T_q, H, d_k), k (..., T_k, H, d_k), float32 or float64 -> (..., T_q, T_k, H), same dtype.
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
# **A habit worth having:** after every softmax that you write, sum along the dimension that you mean, once, and look.
# Its cousins have all been published too: a softmax over the batch, where with a batch of one every weight is 1; over a
# last dimension of size 1, where every weight is 1 always; and `F.softmax(x)` without `dim`, which guesses dimension 0
# for three dimensions and 1 for two or four.

# %% [markdown]
# ## Temperature: how sure?
#
# Divide all scores by a number $\tau$, the temperature, before softmax:
#
# $$p_i = \frac{e^{s_i/\tau}}{\sum_j e^{s_j/\tau}}, \qquad \frac{p_i}{p_j} = e^{(s_i - s_j)/\tau}.$$
#
# At $\tau = 1$ one point more is a factor of 2.72. At $\tau = 0.1$ it is a factor of 22,026: the best takes all. At
# $\tau = 10$ it is 1.11: nearly alike. The scale $\sqrt{d_k}$ of lesson 4 is a temperature, and the same word is on the
# dial of every chat model, where it divides the scores of the next word.
#
# The scores are those of *is* in *Life is short, eat dessert first*. At $\tau = \sqrt{24}$ you find the weights that
# lesson 4 and its source print: 0.0185 0.0312 0.1778 0.6368 0.1265 0.0092. The curve on the right is the entropy, which
# comes after the next exercise. *Where on the curve is the steepest place, and what do the bars do there?*

# %%
life = ["Life", "is", "short", "eat", "dessert", "first"]
scores_is = torch.tensor([-7.0847, -4.5398, 3.9887, 10.2379, 2.3206, -10.5434])  # (T,)
print(" ".join(f"{w:.4f}" for w in torch.softmax(scores_is / math.sqrt(24), dim=0).tolist()))
explore.temperature(scores_is, life)

# %% [markdown]
# ## Exercise 6.3 `softmax_with_temperature`
#
# Difficulty ●○○○○ · Importance ●●●○○ · 5 minutes · 8 points
#
# $$\text{softmax\_with\_temperature}(x, \tau) = \text{softmax}(x / \tau)\ \text{along the last dimension}$$
#
# `x (..., N)`, `temperature` a finite Python number, `int` or `float` → `(..., N)`. Only a temperature above 0 makes
# sense: for any other raise a `ValueError` that says so. Scores may be large compared with the temperature; no NaN.
# Nothing is forbidden, and your own `softmax` is at hand.


# %% nbgrader={"solution": "softmax_with_temperature"}
def softmax_with_temperature(x, temperature):
    """Softmax of x / temperature along the last dimension.

    x (..., N), float32 or float64; temperature a finite number. -> (..., N), same dtype.
    Raises ValueError unless temperature > 0.
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
# `raise ValueError("...")` with a sentence that a stranger understands. An `assert` raises another kind of error, and
# disappears when Python runs with `-O`.
#
# </details>

# %% [markdown]
# ## Entropy: one number for "how sure"
#
# Lesson 4 used it in one sentence. Here it is in full. A weight $p_i$ carries a *surprise* of $-\ln p_i$: none if it
# is 1, a lot if it is tiny. The entropy is the average surprise:
#
# $$H(p) = -\sum_i p_i \ln p_i .$$
#
# **On paper**, for the shares of the first section, $p = (\frac18, \frac14, \frac58)$:
# $H = \frac18\ln 8 + \frac14\ln 4 + \frac58\ln\frac85 = 0.2599 + 0.3466 + 0.2938 = 0.9003$ nats (natural logarithm;
# with base 2 the unit is the bit). The least is 0, for one certain outcome. The most is $\ln N$, for all alike: here
# $\ln 3 = 1.099$. So $e^H$ counts outcomes in effect: $e^{0.900} = 2.46$, of three.
#
# One trap: a weight of exactly 0, as every mask makes them. Its surprise is infinite, but it never happens, so it
# should add nothing: $p \ln p \to 0$ as $p \to 0$. A computer does not know that, and multiplies 0 by $-\infty$.

# %%
p = torch.tensor([0.5, 0.5, 0.0])
print(p * p.log())

# %% [markdown]
# ## Exercise 6.4 `entropy`
#
# Difficulty ●●○○○ · Importance ●●●○○ · 6 minutes · 8 points
#
# $$\text{entropy}(p) = -\sum_i p_i \ln p_i, \qquad 0 \ln 0 = 0$$
#
# `p (..., N)`, probability vectors along the last dimension → `(...)`, in nats. Gradients are judged where $p > 0$.


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

# %% [markdown]
# ## The logarithm of a share
#
# Training needs $\ln p$: the loss of a model that gave the right word the share $p$ is its surprise, $-\ln p$. So take
# `log(softmax(x))`? Look at a token 150 points behind the winner. Its share is $e^{-150}$, too small for float32, hence
# 0, and its logarithm is $-\infty$. The true answer, −150, is a harmless number. We lost it by going up through the
# exponential and down again. On paper the two cancel:
#
# $$\ln \text{softmax}(x)_i = \ln\frac{e^{x_i - m}}{\sum_j e^{x_j - m}} = (x_i - m) - \ln\sum_j e^{x_j - m}$$
#
# The last term is the only exponential left, and it is safe: the sum lies between 1 and $N$.

# %%
figures.log_of_softmax()

# %% [markdown]
# The green line is what many repositories do about it: add a small $\varepsilon$ inside the logarithm. No NaN, no
# infinity, and a *wrong number with no gradient* from 20 points on: the tokens that most need to be pulled up are not
# pulled at all.

# %% [markdown]
# ## Exercise 6.5 `log_softmax`
#
# Difficulty ●●○○○ · Importance ●●●●○ · 8 minutes · 12 points
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
# A model scores all $V$ words for the next place. The word that really came is the *target*. The loss is the surprise
# at it, $-\ln p_\text{target}$, averaged over places. **On paper**: scores $(\ln 1, \ln 2, \ln 5)$ give the shares
# $\frac18, \frac14, \frac58$.
#
# | target | share | loss |
# |---|---|---|
# | 2 | 5/8 | 0.470 |
# | 0 | 1/8 | 2.079 |
# | mean | | 1.275 |
#
# A model that knows nothing gives every word $1/V$. Its loss is $\ln V$: for GPT-2's 50,257 words 10.82. Look for that
# number at the first step of any training run; if the loss starts far above, the scores start too large.
#
# Sentences in a batch have different lengths, and the padding has no right answer. Such targets carry a number that is
# no word, −100 by custom, and are **left out**: of the sum, *and of the count*.

# %%
logits = torch.tensor([[1.0, 2, 5]] * 3).log()  # (places, V)
targets = torch.tensor([2, 0, -100])  # (places,)
loss = F.cross_entropy(logits, targets).item()
print(f"{loss:.3f} over two places; a blind guess {math.log(50257):.2f}")

# %% [markdown]
# ## Exercise 6.6 `cross_entropy`
#
# Difficulty ●●●○○ · Importance ●●●●● · 12 minutes · 16 points
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
    kept = targets != ignore_index  # (...)
    log_p = log_softmax(logits[kept])  # (K, V), K targets are kept
    picked = log_p[torch.arange(len(log_p)), targets[kept]]  # (K,)
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
# gradient $g_i = \partial L/\partial p_i$ arrives at the weights; which gradient leaves to the scores? By the chain
# rule $g$ times the table:
#
# $$\frac{\partial L}{\partial s_j} = \sum_i g_i\,p_i(\delta_{ij} - p_j) = p_j g_j - p_j\sum_i p_i g_i
# = p_j\,\Big(g_j - \sum_i p_i g_i\Big).$$
#
# Read the last form aloud: *each score is moved in proportion to its weight, by how much its $g$ differs from the
# average of all $g$*, where the average is taken with the weights themselves. The table of $N \times N$ slopes has
# disappeared. For a sentence of 1000 tokens that is 1000 numbers in place of a million, for every query.
#
# **On paper**, $p = (\frac18, \frac14, \frac58)$ and $g = (4, 0, 0)$: the average is $\frac12$, the differences are
# $3\frac12, -\frac12, -\frac12$, and the scores' gradient is $(\frac7{16}, -\frac18, -\frac5{16})$. It adds up to 0,
# and it must: raising all scores alike changes nothing.

# %%
figures.push_and_pull()

# %% [markdown]
# With lesson 4's table, to compare. It gives the same numbers, by a longer way:

# %%
from helpers.blocks import softmax_jacobian

p, g = torch.tensor([1 / 8, 1 / 4, 5 / 8]), torch.tensor([4.0, 0, 0])  # (N,) each
print(softmax_jacobian(p) @ g)

# %% [markdown]
# ## Exercise 6.7 `softmax_backward`
#
# Difficulty ●●●○○ · Importance ●●●●○ · 10 minutes · 12 points
#
# $$\text{softmax\_backward}(p, g)_j = p_j\,\Big(g_j - \sum_i p_i g_i\Big)$$
#
# `p (..., N)` probability vectors, `grad (..., N)` the gradient at p → `(..., N)`, the gradient at the scores.
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
# Put cross-entropy on top, where $g$ is $-1/p_y$ at the target $y$ and 0 elsewhere. The average is $-1$, and what
# leaves to the scores is $p_j$ everywhere and $p_y - 1$ at the target: **the prediction minus the truth**. No
# exponential is left, nothing can overflow, and no entry of it exceeds 1. This is why the two are always computed
# together.

# %% [markdown]
# ## Softmax in a stream
#
# Softmax looks like a step that needs all scores at once: the maximum, then the sum, then the shares. For long texts
# the table of scores does not fit into the fast memory of a processor. Can we see the scores once, block by block, and
# throw each block away?
#
# Suppose we have seen some scores. We keep three things: their maximum $m$, the sum $\ell = \sum e^{s_j - m}$, and the
# weighted values so far, $o = \sum e^{s_j - m} v_j$. Then a block with a larger maximum $m'$ comes. All that we have
# was measured against the old $m$. But a shift of the ruler is one factor:
#
# $$e^{s_j - m'} = e^{s_j - m}\cdot e^{m - m'} .$$
#
# So shrink $\ell$ and $o$ by $e^{m - m'}$ and go on. At the end the answer is $o / \ell$.
#
# **On paper**: scores ln 1, ln 2, then ln 5, with values 8, 0, 16, in two blocks.
#
# | seen | $m$ | $\ell$ | $o$ |
# |---|---|---|---|
# | ln 1, ln 2 | ln 2 | 1/2 + 1 = 3/2 | 8 · 1/2 + 0 = 4 |
# | shrink by $e^{\ln 2 - \ln 5} = 2/5$ | ln 5 | 3/5 | 8/5 |
# | ln 5 | ln 5 | 3/5 + 1 = 8/5 | 8/5 + 16 = 88/5 |
#
# The end: $\frac{88}5 / \frac85 = 11$. Directly: $\frac18\cdot 8 + \frac14\cdot 0 + \frac58\cdot 16 = 11$.

# %%
explore.stream()

# %% [markdown]
# Milakov and Gimelshein found this in 2018 for plain softmax. Dao and others saw in 2022 that the weighted values can
# ride along, so that the table of weights is never written down: **FlashAttention**, the way in which nearly every
# large model computes attention today. Nothing is approximated. Lesson 7 does it for all queries at once and measures
# the memory.

# %% [markdown]
# ## Exercise 6.8 `streaming_softmax` + extra
#
# Difficulty ●●●●○ · Importance ●●●○○ · 15 minutes · 10 bonus points
#
# $$\text{streaming\_softmax} = \sum_j \text{softmax}(s)_j\, v_j, \qquad s, v \text{ cut into blocks, seen once}$$
#
# `score_blocks`, `value_blocks`: two lists of equal length, of tensors `(..., n_i)` and `(..., n_i, d_v)`, each
# $n_i \ge 1$ → `(..., d_v)`. Scores are finite, up to ±10,000. Go through the blocks once, with a running maximum and
# a running sum, as in the table above.
#
# *Forbidden:* `cat`, `stack` and their kin (`concat`, `hstack`, `vstack`).


# %% nbgrader={"solution": "streaming_softmax"}
def streaming_softmax(score_blocks, value_blocks):
    """Softmax-weighted sum of values in one pass over blocks (Dao et al. 2022, algorithm 1, for one query).

    score_blocks: list of (..., n_i), value_blocks: list of (..., n_i, d_v), float32 or float64, n_i >= 1;
    scores finite, up to ±1e4. -> (..., d_v), same dtype.
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


# %% nbgrader={"grade": "streaming_softmax"}
check(streaming_softmax)

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
# Zero does not: try a first block of −10,000s.
#
# </details>

# %% [markdown]
# ## Quiz 6.1
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
# ## Quiz 6.2
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
# ## Quiz 6.3
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

# %% [markdown] nbgrader={"written": "written_1"}
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

# %% [markdown]
# ## Further reading
#
# - Milakov and Gimelshein, [Online normalizer calculation for softmax](https://arxiv.org/abs/1805.02867) (2018): the
#   running maximum and sum, in four pages.
# - Dao, Fu, Ermon, Rudra and Ré, [FlashAttention](https://arxiv.org/abs/2205.14135) (2022): algorithm 1.
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

# %% [markdown]
# ## Recap
#
# - Softmax makes shares from scores. Only differences count: one point more is a factor of $e$.
# - Subtract the maximum of each vector, and no score is too large or too low.
# - The axis is the one that adds up to 1: keys. The wrong one runs silently, and lets the future in.
# - Temperature divides scores; entropy measures the result.
# - Never take the logarithm of a share: `log_softmax` and `cross_entropy` work on scores.
# - Backward: $p\,(g - \text{average of } g)$, no table of slopes.
# - A running maximum and sum make softmax a stream.
#
# `progress()` in a new cell shows what you have done so far, over all lessons.
#
# **Next:** [lesson 7](../07_value_weighting/07_value_weighting.ipynb) spends the weights: values, and the first whole
# attention head.
