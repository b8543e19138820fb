# %% [markdown]
# # 6. Softmax: scores become probabilities
#
# **In this lesson** you'll build the function that turns scores into attention weights, and make it safe for scores of
# any size. Then you'll build the loss with which language models are trained.
#
# **Core:** about 90 minutes. A good moment for a break is after exercise 6.4.
#
# Softmax takes only two lines of code, but in some well-known programs the second line was wrong.

# %% tags=["setup"]
# (empty: the build puts the set-up cell here)

# %%
import math

import torch
import torch.nn.functional as F
from torch import nn

from helpers import at_work, check, or_finished
from helpers.drawing.transformer_map import transformer_map
from helpers.lessons.softmax import explore, figures

# %%
transformer_map("06_softmax")

# %% [markdown]
# Softmax appears twice in a Transformer. Inside attention it turns scores into weights, and at the very end it turns
# the scores of all words in the vocabulary into the probabilities of the next word.

# %% [markdown]
# ## You need
#
# - scores, and why we divide them by $\sqrt{d_k}$ ([lesson 4](../04_scaling/04_scaling.ipynb));
# - masked scores of $-\infty$ ([lesson 5](../05_masking/05_masking.ipynb));
# - two rules of arithmetic, $e^{a+b}=e^a e^b$ and $\ln(ab)=\ln a+\ln b$.
#
# The [conventions](../00_start_here/00_start_here.ipynb) of lesson 0 hold here too.
#
# Here are two questions to warm up:
#
# <details><summary>Lesson 4: what happens to softmax weights if all scores become a hundred times larger?</summary>
#
# Unless two scores are nearly equal, the largest takes almost all the weight. Softmax saturates, that is, its
# derivatives are close to zero.
#
# </details>
#
# <details><summary>Lesson 5: why do we set a masked score to −∞ before softmax, and not its weight to 0 after it?</summary>
#
# The remaining weights must sum to 1, and a weight that is removed after softmax has already reduced all the others.
#
# </details>

# %% [markdown]
# ## From scores to weights
#
# In *jane visits africa*, the query of *visits* has a score for each of the three words. We want to turn these scores
# into **attention weights**, which are positive, sum to 1, and are larger for a larger score. Dividing by the sum isn't
# enough, because the scores `2, 1, -1` would give the weights $1, \frac12, -\frac12$, and a negative weight makes no
# sense. The exponential makes all scores positive and preserves their order, so we take it first and divide by the sum
# afterwards. This is the **softmax** function:
#
# $$\text{softmax}(s)_i = \frac{e^{s_i}}{\sum_j e^{s_j}}$$
#
# With three scores whose exponentials are integers you can follow every step on paper:
#
# | word | score | $e^{\text{score}}$ | weight |
# |---|---|---|---|
# | jane | ln 1 = 0.000 | 1 | 1/8 = 0.125 |
# | visits | ln 2 = 0.693 | 2 | 2/8 = 0.250 |
# | africa | ln 5 = 1.609 | 5 | 5/8 = 0.625 |
# | sum | | 8 | 1.000 |

# %%
figures.from_scores_to_weights()

# %% [markdown]
# Why do we take the exponential and no other increasing function? If we divide one weight by another, the sum cancels:
#
# $$p_i/p_j=e^{s_i}/e^{s_j}=e^{s_i-s_j}$$
#
# In other words, **softmax depends only on differences between scores**. If a score rises by one, its weight grows by
# the factor $e \approx 2.72$ relative to the others, and if you add a constant to all scores, no weight changes.

# %% [markdown]
# ## Where the exponential overflows
#
# **Predict before you run.** We apply the formula as written to two sets of scores with the same differences. *What
# will the second line print?*

# %%
for scores in ([0.0, 1.0, 2.0], [1000.0, 1001.0, 1002.0]):
    e = torch.tensor(scores).exp()  # (3,)
    print(e, "->", e / e.sum())

# %% [markdown]
# The second line prints `nan`, *not a number*, because $e^{1000}$ is far too large for float32. The exponential
# **overflows** to `inf`, and `inf / inf` is `nan`. Very low scores fail as well, because all their exponentials
# **underflow** to 0, and `0 / 0` is `nan`.

# %%
figures.where_exp_works()

# %% [markdown]
# This happens in practice, because in float16, a short format in which large models often run, a score of 12 is enough
# to overflow. But since only differences matter, we can subtract the largest score first:
#
# $$\text{softmax}(s)_i = \frac{e^{s_i - m}}{\sum_j e^{s_j - m}}, \qquad m = \max_j s_j$$
#
# Now the largest exponential is $e^0 = 1$, so nothing overflows. Terms that underflow to zero are harmless, because the
# sum is at least one. This form is called **numerically stable**.

# %% [markdown]
# ### Exercise 6.1 `softmax`
#
# Difficulty 2 of 5 · Importance 5 of 5 · 10 minutes · 16 points
#
# Compute softmax along one dimension by the stable formula above.
#
# - **Arguments:** `x` of any shape, with scores up to $\pm10^4$, and `dim`, any dimension of it, positive or negative.
# - **Returns:** a tensor of the same shape, in which each vector along `dim` sums to 1, without NaN in values or
#   gradients.
# - **Masked scores:** an entry of $-\infty$ gets a weight of exactly 0, and each vector has a finite entry.
# - **Forbidden:** every library softmax, log_softmax, logsumexp, logcumsumexp, logaddexp.


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
# Subtract the maximum of each vector (not that of the whole tensor), exponentiate, and divide by the sum.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Use `amax`, which returns the maximum without indices, and pass `keepdim=True` to it and to `sum`, so that the results
# broadcast.
#
# </details>

# %% [markdown]
# ## Which axis?
#
# Attention scores form a table with one row per query and one column per key. We could apply softmax to each row, to
# each column, or to the whole table. *Which one tells us how the query of* jane *distributes its attention?*

# %%
jane = ["jane", "visits", "africa"]
scores = torch.tensor([[0.0, 3, 0], [0, 0, 3], [0, 2, 0]])  # (T_q, T_k)
figures.three_axes(scores, jane)

# %% [markdown]
# The answer is the table on the left, in which each *row* sums to 1, so each query distributes one unit of attention.
# With softmax over queries each *column* sums to 1, so *jane*'s weights sum to $1.08$ and *africa*'s to $0.64$. None of
# the three raises an error.
#
# With a causal mask the mistake becomes worse, because a column is divided by a sum that includes *later* queries, so
# the future leaks in (see *Going further*).

# %% [markdown]
# ### Exercise 6.2 `fixed_head_weights`
#
# **Find the bug** · Difficulty 2 of 5 · Importance 4 of 5 · 8 minutes · 8 points
#
# The following function is from a diffusion model, which generates images, in a widely read collection of annotated
# papers. In its `einsum`, `i` counts queries, `j` keys and `h` heads. The letter `d` is missing after the arrow, so the
# products are summed over it.


# %%
def published_head_weights(q, k):
    scores = torch.einsum("bihd,bjhd->bijh", q, k)  # (B, T_q, T_k, H)
    scores = scores * q.shape[-1] ** -0.5
    return scores.softmax(dim=1)  # (B, T_q, T_k, H)


# %% [markdown]
# The model generated convincing images all the same. Find the bug, think of a one-line test that reveals it, and write
# the function correctly.
#
# - **Arguments:** `q (..., T_q, H, d_k)` and `k (..., T_k, H, d_k)`, whereas the original requires exactly one batch
#   dimension.
# - **Returns:** attention weights `(..., T_q, T_k, H)` of the scores over $\sqrt{d_k}$, with any softmax you like.


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
# Name the four dimensions of the scores. Along which of them must the weights of one query sum to 1?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Count the dimension from the end, and write `...` instead of the letter `b` in `einsum`.
#
# </details>
#
# The one-line test is a sum over keys, a good habit after every softmax that you write:

# %%
torch.manual_seed(0)
q, k = torch.randn(1, 4, 2, 8), torch.randn(1, 5, 2, 8)  # (B, T_q, H, d_k), (B, T_k, H, d_k)
for head_weights in (published_head_weights, or_finished(fixed_head_weights)):
    print("head 0, sum of each query's weights:", head_weights(q, k).sum(dim=-2)[0, :, 0])

# %% [markdown]
# ## Temperature
#
# In lesson 4 we divided all scores by a **temperature** $\tau$ before softmax, and the scale $\sqrt{d_k}$ is one
# example. (Chat models use one for the scores of the next word.) If two scores differ by one, the quotient of their
# weights is now $e^{1/\tau}$. At $\tau=0.1$ this is $e^{10} \approx 22{,}000$, so the largest score takes almost
# everything, whereas at $\tau=10$ you get only $1.11$, so the weights are nearly equal.

# %% [markdown]
# ### Exercise 6.3 `softmax_with_temperature`
#
# Difficulty 1 of 5 · Importance 3 of 5 · 5 minutes · 8 points
#
# Compute the softmax of `x` divided by a temperature, along the last dimension.
#
# - **Arguments:** `x (..., N)`, and `temperature`, an `int` or `float` from 0.001 to 1000.
# - **Returns:** `(..., N)`, without NaN also where scores are large compared with the temperature.
# - **Errors:** a temperature of 0 or below raises a `ValueError` whose message contains the value.


# %% nbgrader={"solution": "softmax_with_temperature"}
def softmax_with_temperature(x, temperature):
    """Softmax of x divided by a temperature, along the last dimension.

    x (..., N), float32 or float64; temperature from 1e-3 to 1e3. -> (..., N), same dtype.
    A temperature of 0 or below: a ValueError that names it.
    """
    ### BEGIN SOLUTION
    if temperature <= 0:
        raise ValueError(f"temperature must be above 0, got {temperature}")
    return softmax(x / temperature)  # (..., N)
    ### END SOLUTION


# %% nbgrader={"grade": "softmax_with_temperature"}
check(softmax_with_temperature)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# Check the temperature first and compute afterwards, with your own `softmax`, which handles large scores already.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Use `raise ValueError(f"...")`, because an f-string can contain the value.
#
# </details>

# %% [markdown]
# ## Entropy: one number for how concentrated the weights are
#
# Does a query attend to one token or to many? An outcome of probability $p_i$ carries a *surprise* of $-\ln p_i$, which
# is zero for a certain outcome and large for an unlikely one. The **entropy** is the average surprise:
#
# $$H(p) = -\sum_i p_i \ln p_i .$$
#
# **On paper**, for our three weights, $H = \frac18\ln 8 + \frac14\ln 4 + \frac58\ln\frac85 = 0.900$ nats, where *nat*
# is the unit of the natural logarithm. The entropy lies between zero, for one certain outcome, and $\ln N$, for equal
# weights. You can read $e^H$ as the **effective number of words** to which the query attends, here $e^{0.900}=2.46$ of
# three.
#
# A masked token has weight 0 and infinite surprise, but since it never occurs it should add nothing, and indeed $p \ln
# p \to 0$ as $p \to 0$. The computer, however, multiplies 0 by $-\infty$, and the whole sum becomes NaN:

# %%
p = torch.tensor([0.5, 0.5, 0.0])  # (N,)
print(p * p.log())

# %% [markdown]
# ### Exercise 6.4 `entropy`
#
# Difficulty 2 of 5 · Importance 3 of 5 · 6 minutes · 8 points
#
# Compute the entropy of probability vectors along the last dimension, with $0 \ln 0 = 0$.
#
# - **Arguments:** `p (..., N)`.
# - **Returns:** `(...)`, in nats, correct also for hundreds of outcomes of a few millionths each.
# - **Gradients** are judged where $p > 0$.


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
# Change the *argument* of the logarithm where it is 0. A NaN that you replace afterwards comes back in the gradient.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Any finite logarithm will do for a probability of 0. Which tensor method keeps values above a very small bound?
#
# </details>
#
# Let's apply both functions to the scores of *is* in *Life is short, eat dessert first*:

# %%
life = ["Life", "is", "short", "eat", "dessert", "first"]
scores_is = torch.tensor([-7.0847, -4.5398, 3.9887, 10.2379, 2.3206, -10.5434])  # (T,)
figures.temperatures(or_finished(softmax_with_temperature), or_finished(entropy), scores_is, life)

# %% [markdown]
# At the dashed line, where $\tau=\sqrt{24}$, you get the weights from lesson 4. On this logarithmic axis, the entropy
# rises fastest near that line, at a temperature of 3.6.

# %% [markdown]
# ## The logarithm of a probability
#
# If a model gave the correct word the probability $p$, its loss is the surprise $-\ln p$. Why don't we simply compute
# `log(softmax(x))`? If a score is 150 points below the maximum, its probability $e^{-150}$ becomes 0 in float32, and
# the logarithm of 0 is $-\infty$. The true value of $-150$ is a harmless number, which we lost because we took the
# exponential first and the logarithm afterwards. On paper they cancel:
#
# $$\ln\text{softmax}(x)_i=\ln\frac{e^{x_i-m}}{\sum_j e^{x_j-m}}=(x_i-m)-\ln\sum_j e^{x_j-m}$$
#
# Only the exponentials in the last term are left, and they are safe, because their sum lies between 1 and $N$.

# %%
figures.log_of_softmax()

# %% [markdown]
# In green you see a common workaround, a small $\varepsilon$ inside the logarithm. This avoids the infinity, but
# makes the gradient vanish. With $\varepsilon = 10^{-9}$, a score 20 points below the maximum keeps two thirds of its
# gradient, and one 25 points below keeps 1%, so the model can't learn where it is most wrong.

# %% [markdown]
# ### Exercise 6.5 `log_softmax`
#
# Difficulty 2 of 5 · Importance 4 of 5 · 6 minutes · 12 points
#
# Compute the logarithm of softmax along one dimension, without computing softmax.
#
# - **Arguments and returns** are those of `softmax`, with any `dim` and scores up to $\pm10^4$.
# - **Masked scores:** an entry of $-\infty$ stays $-\infty$, and each vector has a finite entry.
# - **Forbidden:** every library softmax, log_softmax, logsumexp, logcumsumexp, logaddexp.


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
# Subtract two numbers from each score, the maximum of its vector and a logarithm, both of them with `keepdim`.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Your function should return the scores `0, -20000` unchanged. If you get −∞, you computed a probability along the
# way.
#
# </details>

# %% [markdown]
# ## Cross-entropy: the loss of every language model
#
# The translator has written *jane* and scores all its French words as candidates for the next one. Such scores at the
# end of a model are called **logits**. Let's keep three words, *est*, *regarde* and *visite*, with our scores $\ln 1$,
# $\ln 2$ and $\ln 5$. The word that really comes next, *visite*, is the **target**, and the **cross-entropy** loss is
# the surprise at it, $-\ln\frac58 = 0.470$. If *est* had been correct, it would be $-\ln\frac18 = 2.079$. In the
# explorer you can move the target's score. *Is there a score at which the loss is 0?*

# %%
explore.surprise()

# %% [markdown]
# There isn't, because a probability of exactly 1 would need a score of $+\infty$. So training pushes up the target's
# score even if the prediction is already correct.
#
# In a batch we take the mean loss over all positions. A model that knows nothing gives each of $V$ words the
# probability $1/V$, so its loss is $\ln V$, which is 5.27 for our translator's French vocabulary of 194 entries. If a
# training run starts far above this value, the initial logits are probably too large.
#
# Padding has no correct next word, so its targets get a number that isn't a word id, usually `-100`, and you have to
# **ignore** them in the sum *and in the count*:

# %%
logits = torch.tensor([[1.0, 2, 5]] * 3).log()  # (positions, V)
targets = torch.tensor([2, 0, -100])  # (positions,): visite, est, padding
print(f"mean of 0.470 and 2.079: {F.cross_entropy(logits, targets).item():.3f}")

# %% [markdown]
# ### Exercise 6.6 `cross_entropy`
#
# Difficulty 3 of 5 · Importance 5 of 5 · 12 minutes · 16 points
#
# Compute the mean of $-\ln\text{softmax}(x_t)_{y_t}$ over all positions $t$ whose target $y_t$ is not `ignore_index`.
#
# - **Arguments:** `logits (..., V)` up to $\pm10^4$, `targets` LongTensor `(...)` of which at least one is kept, and
#   `ignore_index`, which may be any number, even a valid word id.
# - **Returns:** a scalar.
# - **Forbidden:** `F.cross_entropy`, `F.nll_loss`. All other tools are allowed, including your `log_softmax`.


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
# First index both logits and targets with a boolean tensor, which keeps the positions where it is True in one long
# list.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# To pick one entry per row of a `(K, V)` table, index with a list of rows and a list of columns, or use `gather`.
#
# </details>

# %% [markdown]
# ## The gradient of softmax
#
# In training a gradient $g_i = \partial L/\partial p_i$ arrives at the weights, and we need the gradient at the scores.
# By the chain rule it is $g$ times the Jacobian of lesson 4, $\operatorname{diag}(p) - p\,p^\top$:
#
# $$\frac{\partial L}{\partial s_j}=\sum_i g_i\,p_i(\delta_{ij}-p_j)=p_j g_j-p_j\sum_i p_i g_i=p_j\Big(g_j-\sum_i p_i g_i\Big)$$
#
# In words, *the gradient at a score is its weight times the amount by which its $g$ exceeds the average of all $g$*,
# where we take the average with the weights and never build the $N \times N$ Jacobian.
#
# **On paper**, take our weights $p=(\frac18,\frac14,\frac58)$ and $g=(4,0,0)$. The average is $\frac12$, the
# differences from it are $(3\frac12,-\frac12,-\frac12)$, and the gradient at the scores is
# $(\frac7{16},-\frac18,-\frac5{16})$. It sums to 0, as it must, because adding a constant to all scores changes
# nothing. For cross-entropy the same formula gives $p$ with 1 subtracted at the target, **the prediction minus the
# truth** (derived in *Going further*).

# %%
figures.push_and_pull()

# %% [markdown]
# ### Exercise 6.7 `softmax_backward`
#
# Difficulty 3 of 5 · Importance 4 of 5 · 8 minutes · 12 points
#
# Compute the gradient at the scores from the gradient at the weights, with the last formula above.
#
# - **Arguments:** `p (..., N)`, probability vectors in which some entries may be exactly 0 or 1, and `grad (..., N)`,
#   the gradient at p.
# - **Returns:** `(..., N)`, without NaN in values or gradients.
# - **Forbidden:** autograd in every form (`torch.autograd`, `.backward`, `torch.func`), `torch._softmax_backward_data`.


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
# Compute one weighted average per vector. Which shape must it have so that it broadcasts against its own vector only?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Each row of the result sums to 0. If single vectors are right and batches are not, check `keepdim`.
#
# </details>

# %% [markdown]
# ## At work
#
# In the course's translator your `softmax` computes all attention weights and your `cross_entropy` the loss. The
# panel also divides all scores by a temperature, and you can see that the loss is lowest at 1, at which the network
# was trained.

# %%
at_work(softmax, cross_entropy)


# %% [markdown]
# **Predict before you run.** The diffusion model worked with softmax over the queries. *What does the same bug do to
# the translator?*


# %%
def over_queries(x, dim=-1):
    return torch.softmax(x, dim=-2)  # (B, H, T_q, T_k)


at_work(softmax=over_queries)

# %% [markdown]
# The translation is empty. The decoder begins with a single query, and over one query every weight is 1, so attention
# adds up the values of all words instead of averaging them. In a batch the loss is even NaN, because no query may
# attend to padding, so the column of a padding key contains only $-\infty$, and 0 / 0 is NaN. The diffusion model had
# no mask, so there the same bug went unnoticed.

# %% [markdown]
# ### Quiz 6.1
#
# A new model with a vocabulary of 1000 words reports a loss of 6.9 at its first training step. What does this say?
#
# - **a** The initial logits are far too large.
# - **b** Padding was counted as if it were a word.
# - **c** The loss is measured in bits and not in nats.
# - **d** It gives every word about the same probability, as an untrained model should.

# %% nbgrader={"solution": "quiz_1"}
quiz_1 = None  # "a", "b", "c" or "d"
### BEGIN SOLUTION
quiz_1 = "d"
### END SOLUTION

# %% nbgrader={"grade": "quiz_1"}
check(quiz_1=quiz_1)

# %% [markdown]
# ### Quiz 6.2
#
# In float32, why is `torch.log(softmax(x))` a bad start for a loss, even with a perfectly stable softmax?
#
# - **a** A probability can underflow to 0, and its logarithm is then −∞, although the true value is harmless.
# - **b** The logarithm of a number below 1 is negative, and a loss must be positive.
# - **c** The probabilities may sum to slightly more than 1.

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
# A classmate's language model prints `nan` after a few hundred steps. In the code you find
# `p = torch.exp(s) / torch.exp(s).sum(dim=1, keepdim=True)` on scores `s` of shape `(B, T_q, T_k)`, and later
# `loss = -torch.log(p_next + 1e-9).mean()`, over all positions of a padded batch. Name every fault, say what each one
# does to values or to the gradient, how you could *see* it, and how to fix it.

# %% [markdown] nbgrader={"written": "written_1"}
# <details><summary>Model answer and marking scheme</summary>
#
# **Model answer.** First, the code exponentiates the raw scores, so large ones overflow and inf / inf is NaN, as the
# scores `1000, 1001` would show. The fix is to subtract the maximum of each vector, which keeps the weights because
# only differences matter. Second, `dim=1` is the dimension of the queries, so columns sum to 1 instead of rows, and
# with a causal mask the future leaks in. A sum over keys shows it, and `dim=-1` fixes it. Third, the code takes the
# logarithm of a computed probability. The `1e-9` limits the surprise of a small one, so the gradient vanishes exactly
# where the model is most wrong. The fix is log_softmax, which never forms the probability. Fourth, the mean covers
# padding, so ignored targets must leave both the sum and the count. Only the first fault shows itself by a NaN, and the
# other three raise no error, which makes them more dangerous.
#
# | marking scheme | points |
# |---|---|
# | Overflow: names inf / inf or 0 / 0 (2), subtracts the maximum and says why it changes nothing (2) | 4 |
# | Axis: rows don't sum to 1 (2), seen by a sum and fixed by the last dimension (2); leaking may replace a point | 4 |
# | Logarithm: probability 0 or bounded by 1e-9 (2; 1 for only "log 0 is −∞"), lost gradient or log_softmax (2) | 4 |
# | Padding: left out of sum and count | 2 |
# | Says that one must search for faults that raise no error, or an equivalent remark | 1 |
#
# </details>

# %% [markdown]
# ## Recap
#
# - Softmax turns scores into positive weights that sum to 1, and depends only on differences between scores. If you
#   subtract the maximum of each vector, scores of any size are safe.
# - Attention weights sum to 1 over keys, but softmax along the wrong axis raises no error and leaks the future.
# - Temperature divides the scores, and entropy measures how concentrated the weights are.
# - For the loss, you compute the logarithm from the scores with `log_softmax`, and not from a probability.
# - The gradient at the scores is $p\,(g - \text{average of } g)$, and together with the loss this is the prediction
#   minus the truth.
#
# **Next:** [lesson 7](../07_value_weighting/07_value_weighting.ipynb) uses these weights to average the values, which
# completes the first attention head.

# %% [markdown]
# ## Going further
#
# Everything below is optional, and no later lesson needs it.
#
# ### The wrong axis behind a mask
#
# Here are scores with the sizes of Andrej Karpathy's lecture (lesson 3), with a causal mask and softmax along each of
# the two axes.

# %%
torch.manual_seed(1337)
B, T, C, head_size = 4, 8, 32, 16
Wk, Wq, Wv = [nn.Linear(C, head_size, bias=False) for _ in "kqv"]  # Wv is for lesson 7
batch = torch.randn(B, T, C)  # (B, T, C)
masked = (Wq(batch) @ Wk(batch).transpose(-2, -1)).detach()  # (B, T, T), not yet scaled, as in the lecture
masked = masked.masked_fill(~torch.ones(T, T, dtype=torch.bool).tril(), -math.inf)  # (B, T, T)

# %%
right, wrong = or_finished(softmax)(masked, dim=-1), torch.softmax(masked, dim=-2)  # (B, T, T) each
figures.right_and_wrong_axis(right[0], wrong[0])

# %% [markdown]
# On the right we divided each column by a sum that includes *later* queries, so the weight of token 0 depends on
# tokens that come after it. **The wrong axis leaks the future**, although every masked entry is 0, as it should be.

# %% [markdown]
# ### Prediction minus truth
#
# At one position the loss is $-\ln p_y$ for the target $y$, so the gradient at the probabilities is $-1/p_y$ at the
# target and 0 elsewhere. With our three probabilities and the target *visite* it is $g=(0,0,-\frac85)$. Before you read
# on, apply the formula of Exercise 6.7 to it on paper.
#
# The average of $g$ is $\frac58\cdot(-\frac85)=-1$, the differences from it are $(1,1,-\frac35)$, and multiplied by $p$
# they give $(\frac18,\frac14,-\frac38)$. These are the probabilities with 1 subtracted at the target.

# %%
figures.prediction_minus_truth()

# %%
p, g = torch.tensor([1 / 8, 1 / 4, 5 / 8]), torch.tensor([0.0, 0.0, -8 / 5])  # (V,) each
print(or_finished(softmax_backward)(p, g))

# %% [markdown]
# **The gradient at the logits is the prediction minus the truth.** Nothing in it can overflow, because the division by
# $p_y$ has canceled, and every model that you train with cross-entropy learns from this gradient.

# %% [markdown]
# ### Exercise 6.8 `cross_entropy_backward`
#
# **Extra** · Difficulty 3 of 5 · Importance 4 of 5 · 10 minutes · 8 bonus points
#
# Compute the gradient of the mean cross-entropy at the logits. Derive it from *prediction minus truth*, and consider
# what the mean over $N$ targets changes.
#
# - **Arguments:** `logits (..., V)` up to $\pm10^4$, and `targets` LongTensor `(...)`, at least one, none ignored.
# - **Returns:** `(..., V)`. It need not be differentiable itself.
# - **Forbidden:** autograd in every form, `F.cross_entropy`, `nn.CrossEntropyLoss`.


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
# Build a one-hot tensor of the probabilities' shape, with 1 at each target. You made such rows in lesson 1, and
# `F.one_hot` makes them as integers.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# How many targets does the mean cover if `targets` has shape `(2, 3)`, and if it is a single number? In a correct
# result each row sums to 0.
#
# </details>
#
# With your gradient we can train without autograd. Here are eight random positions and six words, and the loss starts
# near $\ln 6 = 1.79$:

# %%
torch.manual_seed(0)
logits, targets = 0.1 * torch.randn(8, 6), torch.randint(6, (8,))  # (positions, V), (positions,)
for step in range(5):
    print(f"step {step}   loss {or_finished(cross_entropy)(logits, targets).item():.3f}")
    logits = logits - 8 * or_finished(cross_entropy_backward)(logits, targets)  # (positions, V)

# %% [markdown]
# ### Exercise 6.9 `online_softmax`
#
# **Extra** · Difficulty 4 of 5 · Importance 3 of 5 · 30 minutes · 10 bonus points
#
# Softmax seems to need all scores at once, because it needs their maximum and their sum. For long texts the table of
# scores doesn't fit into a processor's fast memory. Can we read the scores block by block and forget each block?
#
# **Online softmax** does exactly this. Of the scores read so far, it keeps only the maximum $m$, the sum $\ell = \sum
# e^{s_j - m}$, and the weighted values $o = \sum e^{s_j - m} v_j$. If the next block has a larger maximum $m'$,
# everything that we keep refers to the old one, but a single factor corrects this, because
#
# $$e^{s_j - m'} = e^{s_j - m}\cdot e^{m - m'} .$$
#
# So we multiply $\ell$ and $o$ by $e^{m - m'}$ and continue, and at the end the answer is $o / \ell$. Let's do this on
# paper with our three scores and the values $8, 0, 16$, in two blocks:
#
# | read | $m$ | $\ell$ | $o$ |
# |---|---|---|---|
# | ln 1, ln 2 | ln 2 | 1/2 + 1 = 3/2 | 8 · 1/2 + 0 = 4 |
# | rescale by $e^{\ln 2 - \ln 5} = 2/5$ | ln 5 | 3/5 | 8/5 |
# | ln 5 | ln 5 | 3/5 + 1 = 8/5 | 8/5 + 16 = 88/5 |
#
# The result is $\frac{88}5 / \frac85 = 11$, and directly we get $\frac18\cdot 8 + \frac14\cdot 0 + \frac58\cdot 16 =
# 11$. Below you can step through four blocks of three scores and raise the third block. Does the last point still reach
# the dotted line?

# %%
explore.stream()

# %% [markdown]
# It always does, because we approximate nothing. Even if you raise the third block by 8, so that the earlier results
# are multiplied by less than 0.01, they still count.
#
# Milakov and Gimelshein described this in 2018 for softmax, and Rabe and Staats in 2021 for attention. In 2022 Dao and
# others turned it into **FlashAttention**, an implementation for graphics cards that many large models use today.
# Lesson 7 applies online softmax to all queries at once.
#
# Compute the softmax-weighted sum of the values in one pass over the blocks.
#
# - **Arguments:** `score_blocks` and `value_blocks`, lists of equal length of tensors `(..., n_i)` and `(..., n_i,
#   d_v)`, whose sizes $n_i \ge 1$ may differ. The scores are finite, up to $\pm10^4$.
# - **Returns:** `(..., d_v)`.
# - **One pass:** half of the points require that you use no block of scores again after you have read a later one, and
#   that you keep neither copies of blocks nor a list that grows with their number.
# - **Forbidden:** `cat`, `stack`, `concat`, `hstack`, `vstack`.


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
# Keep three tensors between blocks, and for each of them, first rescale the old value and then add the new block's
# part. Both must refer to the *new* maximum, and each row of a batch has a maximum of its own.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Before the first block, which running maximum is below every possible score? Zero isn't, as a first block of large
# negative scores shows. `torch.maximum` takes the larger of two tensors, entry by entry.
#
# </details>
#
# Here are a thousand scores of one query, in blocks of ten and all at once:

# %%
torch.manual_seed(0)
s, v = 5 * torch.randn(1000), torch.randn(1000, 4)  # (T,), (T, d_v)
print("in blocks  ", or_finished(online_softmax)(s.split(10), v.split(10)))
print("all at once", or_finished(softmax)(s) @ v)

# %% [markdown]
# ### A table that was not a softmax
#
# Some notes on Rowel Atienza's *Transformer in PyTorch* print a table for *I like to eat apples* and call it the result
# of $\text{softmax}(QK^\top/\sqrt{d_k})$. Its rows sum to 1.45 and more, so it can't be a softmax and is probably a
# table of cosines. Let's see what softmax does to it.

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
# The weights are nearly equal, because the exponentials of scores between $0$ and $1$ differ at most by the factor
# $e$. Dividing by $\sqrt{d_k}$ as well would make them even more equal. That division is meant for dot products,
# whose standard deviation grows with the width, and not for cosines. Notice also that the table on the left is
# symmetric and its softmax isn't, since each row is divided by its own sum.
#
# Are attention weights probabilities? They have the same form, because they are positive and sum to 1, but nothing is
# drawn at random. Instead they are the coefficients of an average, which lesson 7 computes. At the end of a language
# model, however, we may really draw a word with these probabilities.

# %% [markdown]
# ### How stable are these numbers?
#
# A mistake in `cross_entropy` can't change the translations of *At work*, because we train nothing there, but it
# changes the loss that we report. If you count padding in the mean but not in the sum, the loss is 0.00009 instead of
# 0.00016, which is a lower loss but not a better model. If padding counts in both, it is 8.09, since this network
# never learned to predict padding. The $\varepsilon$ inside the logarithm changes nothing here, because no target is
# as much as 20 points below the maximum.
#
# A wrong temperature is hard to notice. In this translator, half or twice the temperature raises the loss, but every
# sentence is still translated exactly, so only the loss reveals it. The table shows three training runs with
# different seeds, of which we use the first. The last row comes from a second computer, which rounds
# differently and therefore trains another network from the same seed.
#
# | training run | loss at half the temperature | at twice | wrong sentences of 100 at four times |
# |---|---|---|---|
# | seed 0 | 2.6 times | 3.9 times | 14 |
# | seed 1 | 1.5 times | 2.9 times | 10 |
# | seed 2 | 5.2 times | 22 times | 18 |
# | seed 1, second computer | 2.5 times | 11 times | 7 |

# %% [markdown]
# ## Further reading
#
# - Milakov and Gimelshein, [Online normalizer calculation for softmax](https://arxiv.org/abs/1805.02867) (2018), with
#   the running maximum and sum.
# - Rabe and Staats, [Self-attention Does Not Need O(n²) Memory](https://arxiv.org/abs/2112.05682) (2021), and Dao, Fu,
#   Ermon, Rudra and Ré, [FlashAttention](https://arxiv.org/abs/2205.14135) (2022), algorithm 1.
# - Vaswani et al., [Attention Is All You Need](https://arxiv.org/abs/1706.03762) (2017), section 3.2.1.
# - Guo et al., [On Calibration of Modern Neural Networks](https://arxiv.org/abs/1706.04599) (2017), on temperature as
#   the one parameter that makes a trained model's confidence honest.
# - The bug of exercise 6.2, reported by a reader and confirmed by the author, is
#   [annotated_deep_learning_paper_implementations, issue
#   146](https://github.com/labmlai/annotated_deep_learning_paper_implementations/issues/146). Related bugs are a
#   softmax over the batch in [PyTorch-NLP, issue 2](https://github.com/PetrochukM/PyTorch-NLP/issues/2), and the
#   dimension that `F.softmax` guesses without `dim` in [pytorch, issue
#   1020](https://github.com/pytorch/pytorch/issues/1020).
# - Sebastian Raschka, [Self-attention from
#   scratch](https://sebastianraschka.com/blog/2023/self-attention-from-scratch.html), with the weights of *is*.
# - Andrej Karpathy, [Let's build GPT: from scratch, in code, spelled out](https://www.youtube.com/watch?v=kCc8FmEb1nY),
#   with scores, mask and softmax in three lines.
