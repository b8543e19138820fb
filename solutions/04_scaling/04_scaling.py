# %% [markdown]
# # 4. Scaling: why divide by √d_k
#
# **Goal:** know why attention divides its scores by $\sqrt{d_k}$, what goes wrong without it, and how to notice when
# somebody's code does it wrongly. **Time:** about 75 minutes.
#
# The formula of attention holds one number that looks like an afterthought:
#
# $$\text{softmax}\!\left(\frac{QK^\top}{\sqrt{d_k}}\right)V$$
#
# You made $QK^\top$ in lesson 3. This lesson is about the square root below it.

# %% [markdown]
# ## You need
#
# - queries, keys and their scores: [lesson 3](../03_query_key/03_query_key.ipynb);
# - the dot product as a measure of likeness: [lesson 1](../01_token_embedding/01_token_embedding.ipynb);
# - variance: the mean squared distance from the mean. Its root is the standard deviation. Where terms are independent,
#   their variances add.
#
# Two questions to warm up. Answer before you open them.
#
# <details><summary>Lesson 3: Q is (2, 5, 6), K is (2, 7, 6). Which shape has QKᵀ, and which axis is summed away?</summary>
#
# (2, 5, 7): in each of 2 sequences, 5 queries meet 7 keys. The last axis, of width 6, is summed away. Each score is a
# sum of 6 products.
#
# </details>
#
# <details><summary>Lesson 1: make both vectors twice as long. What happens to their dot product, to their cosine?</summary>
#
# The dot product becomes four times as large. The cosine stays: it has divided the lengths out.
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
# - **Forbidden** lists library calls that would be the whole answer. Using one gets no points and a message that names
#   it. This lesson forbids nothing: `torch.softmax` is a tool here, and lesson 6 builds it.
#
# </details>

# %% tags=["setup"]
# (empty: the build puts the set-up cell here)

# %%
import math

import torch
from torch import nn

from helpers import check, progress
from helpers.explore import scaling as explore
from helpers.figures import scaling as figures

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
# The mean is 0, so the variance is the mean square:
# $\frac{1\cdot16 + 4\cdot4 + 6\cdot0 + 4\cdot4 + 1\cdot16}{16} = \frac{64}{16} = 4$. That is the width.
# The standard deviation is its root, 2.
#
# **Predict before you run.** Now take random vectors from a normal distribution instead. Width 4 is a sum of four small
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
# It doubles. A sum of four times as many terms is not four times as wide, because pluses and minuses cancel: it is
# $\sqrt{4}$ times as wide. In symbols, for independent entries with mean 0 and variance 1,
#
# $$\operatorname{Var}(q\cdot k) = \sum_{i=1}^{d_k}\operatorname{Var}(q_i k_i) = d_k \cdot 1 = d_k,
# \qquad \text{standard deviation } \sqrt{d_k}.$$
#
# One product has variance 1 because $\operatorname{E}[q_i^2 k_i^2] = \operatorname{E}[q_i^2]\operatorname{E}[k_i^2] =
# 1$. This is footnote 4 of the paper, and it is all that the square root says.
#
# Here intuition stops and mathematics begins: *independent*, *mean 0* and *variance 1* are assumptions. They describe a
# fresh network with well chosen starting weights. We come back to what they leave out.

# %% [markdown]
# ## Exercise 4.1 `score_variance`
#
# Difficulty ●○○○○ · Importance ●●●○○ · 5 minutes · 12 points
#
# First an instrument to measure with. With $S = QK^\top$ and $n$ the number of *all* entries of $S$, over all leading
# dimensions together,
#
# $$\bar S = \frac1n\sum S, \qquad \text{score\_variance}(Q, K) = \frac1n\sum (S - \bar S)^2 .$$
#
# `Q (..., T_q, d_k)`, `K (..., T_k, d_k)` → a scalar (0-dim tensor). It is the *population* variance: divide by $n$.
# A single score has variance 0.


# %% nbgrader={"solution": "score_variance"}
def score_variance(Q, K):
    """Population variance of all entries of QKᵀ, over all leading dimensions together.

    Q (..., T_q, d_k), K (..., T_k, d_k), float32 or float64 -> scalar (0-dim), same dtype, differentiable.
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
# Which $c$ makes this 1, whatever the width? On paper, with the coin tosses of width 4: divide the scores −4, −2, 0, 2,
# 4 by 2 and you get −2, −1, 0, 1, 2. Their variance is $\frac{1\cdot4+4\cdot1+0+4\cdot1+1\cdot4}{16} = 1$.
#
# So the divisor is the standard deviation, $c=\sqrt{d_k}$, and not the variance. Nothing is learned and nothing is
# measured: it is a constant that depends on the shape alone.

# %% [markdown]
# ## Exercise 4.2 `scaled_scores`
#
# Difficulty ●○○○○ · Importance ●●●●● · 5 minutes · 20 points
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

# %% [markdown]
# ## Softmax in three numbers
#
# Does spread matter, if only the order of the scores counts? It matters because of what comes next. `torch.softmax`
# turns scores into weights that are positive and add up to 1. Lesson 6 opens it; here it is a tool. By hand, for the
# scores 0, 1, 2:
#
# | score | $e^{\text{score}}$ | weight |
# |---|---|---|
# | 0 | 1.000 | 1.000 / 11.107 = 0.090 |
# | 1 | 2.718 | 2.718 / 11.107 = 0.245 |
# | 2 | 7.389 | 7.389 / 11.107 = 0.665 |
# | sum | 11.107 | 1.000 |
#
# Softmax looks at *differences* of scores, through an exponential. Make all scores ten times larger and the order
# stays, but the winner takes everything:

# %%
scores = torch.tensor([0.0, 1.0, 2.0])
print(torch.softmax(scores, dim=0))
print(torch.softmax(10 * scores, dim=0))

# %%
figures.three_numbers()

# %% [markdown]
# This is **saturation**. The scores of a head of width 64 spread by 8 before anything was learned, so it has decided
# where to look by the accident of its random weights.

# %% [markdown]
# ## The word *is*, with four divisors
#
# The running sentence of lesson 1: *Life is short, eat dessert first*. Embeddings of width 16, queries and keys of
# width 24, all random. The scores of *is* are those that you met in lesson 3.

# %%
torch.manual_seed(123)
tokens = ["Life", "is", "short", "eat", "dessert", "first"]
embedding = nn.Embedding(6, 16)
W_query, W_key, W_value = torch.rand(24, 16), torch.rand(24, 16), torch.rand(28, 16)
x = embedding(torch.tensor([0, 4, 5, 2, 1, 3])).detach()  # (6, 16)

# %%
query_is = W_query @ x[1]  # (24,)
keys = x @ W_key.T  # (6, 24)
scores_is = keys @ query_is  # (6,)
print(" ".join(f"{score:.4f}" for score in scores_is.tolist()))

# %% [markdown]
# Now weights. The notebook that this example is from divides by $\sqrt{24} \approx 4.9$, and carries two other divisors
# in comments: 24 and 100. The comment on the last one is that arbitrary is not good. Let us run all of them.

# %%
for name, divisor in [("1", 1), ("√24", 24**0.5), ("24", 24), ("100", 100)]:
    weights = torch.softmax(scores_is / divisor, dim=0)  # (6,)
    entropy = torch.special.entr(weights).sum()  # ()
    row = " ".join(f"{weight:.4f}" for weight in weights.tolist())
    print(f"/ {name:4}{row}   entropy {entropy:.2f}, {entropy.exp():.1f} tokens in effect")

# %%
figures.four_divisors(scores_is, tokens)

# %% [markdown]
# Undivided, *is* sees *eat* and nothing else. Over 24 or 100 it sees everybody alike, which is no attention at all.
# $\sqrt{24}$ leaves a preference and keeps the others in sight.
#
# So what is wrong with 100? Not that it is arbitrary: at width 10,000 it would be exactly right. It is wrong because it
# **does not move with the width**. A divisor is good when the spread after it is the same for every width, and only
# $\sqrt{d_k}$ (times a constant) does that.
#
# **Entropy in one sentence.** $H = -\sum_i p_i \ln p_i$ measures how undecided a weight vector is. By hand, for $p =
# (\frac12, \frac14, \frac14)$: $H = \frac12\ln 2 + 2\cdot\frac14\ln 4 = 1.04$ nats. Its exponential counts tokens in
# effect: $e^{1.04} = 2.8$, a little less than three. It is 1 when one token has everything and $T$ when all share
# alike.

# %% [markdown]
# ## Temperature
#
# A divisor of scores has an older name, from physics: **temperature**.
#
# $$p = \text{softmax}(s / \tau), \qquad \tau \to 0: \text{the best token takes all}, \qquad
# \tau \to \infty: \text{all tokens alike}.$$
#
# So $1/\sqrt{d_k}$ is a temperature of $\sqrt{d_k}$. It warms wide heads as much as their width cooled them. Move the
# slider from cold to hot. At which temperature does *is* have two tokens in effect? At which five?

# %%
explore.temperature(scores_is, tokens, start=math.sqrt(24))

# %% [markdown]
# ## How a weight answers a score
#
# A saturated head could be mended by training, if training reached it. Whether it does is a question of slopes: if
# score $s_j$ moves a little, how far does weight $p_i$ move? There are $N$ weights and $N$ scores, so the answer is a
# table of $N \times N$ slopes, the **Jacobian**:
#
# $$\frac{\partial p_i}{\partial s_j} = \begin{cases} p_i(1 - p_i) & i = j \\ -p_i\,p_j & i \ne j \end{cases}
# \qquad\text{in one line: } \operatorname{diag}(p) - p\,p^\top .$$
#
# **On paper**, for $p = (\frac12, \frac14, \frac14)$: the first row is $(\frac14, -\frac18, -\frac18)$. It adds up to
# 0, as every row does: raise all scores alike and nothing moves. Now do $p = (1, 0, 0)$. Every entry is 0.

# %%
figures.two_jacobians()

# %% [markdown]
# The right table is a head that has nearly decided. Whatever the loss wants, the message to the scores is multiplied by
# this table on its way back, and so nearly erased. $W_Q$ and $W_K$ hear almost nothing.

# %% [markdown]
# ## Exercise 4.3 `softmax_jacobian`
#
# Difficulty ●●●○○ · Importance ●●●●○ · 10 minutes · 16 points
#
# `p (..., N)`, probability vectors along the last axis → `(..., N, N)`, with entry
#
# $$J_{ij} = p_i\,(\delta_{ij} - p_j), \qquad \delta_{ij} = 1 \text{ if } i = j \text{, else } 0 .$$
#
# The argument holds probabilities already. Some may be exactly 0 or 1.


# %% nbgrader={"solution": "softmax_jacobian"}
def softmax_jacobian(p):
    """Jacobian of softmax, written in terms of its output: diag(p) - p pᵀ.

    p (..., N) probability vectors, float32 or float64 -> (..., N, N), same dtype.
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

# %% [markdown]
# ## Exercise 4.4 `max_gradient`
#
# Difficulty ●●●○○ · Importance ●●●○○ · 10 minutes · 16 points
#
# One number that says how much a row of scores can still learn: the largest absolute entry of its softmax Jacobian.
#
# $$\text{max\_gradient}(s) = \max_{i,j} \left|\frac{\partial p_i}{\partial s_j}\right|, \qquad p = \text{softmax}(s)$$
#
# `scores (..., N)` → `(...)`: one number for each vector of scores, right for scores up to ±10,000. The largest entry
# lies on the diagonal (can you see why $p_i p_j$ is never above $p_i(1-p_i)$?). It is never above $\frac14$.
# `torch.softmax` is allowed.


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

# %% [markdown]
# ## What the width does to the slope
#
# Now all parts meet. For each width: 500 random queries, six keys each, and the median of the largest slope.

# %%
figures.slopes_against_width()

# %% [markdown]
# Read the orange line: at width 64, which real heads have, the typical row has lost nine tenths of its slope. At width
# 1024 it is gone. (The *median* vanishes like that. The *mean* shrinks more slowly, because a few rows are close races
# between two keys, and those can still learn. So a model without scaling is slowed, not stopped.)
#
# The blue line stays near its best at every width. So the chain of reasons is
#
# > width → variance $d_k$ → scores of size $\sqrt{d_k}$ → saturated softmax → slopes near 0 → queries and keys that
# > learn nothing.
#
# Divide by $\sqrt{d_k}$ and the chain breaks at its first link. The paper puts it as a suspicion. You have measured it.
#
# Find the best divisor yourself. Set a width, then move the divisor until the slope is largest. Is it always near the
# dotted line, and on which side?

# %%
explore.width_and_divisor()

# %% [markdown]
# ## Where the argument is loose
#
# **"It keeps the Euclidean length of the weight vectors about the same."** One of this course's sources gives this as
# the reason. Which vectors? The rows of $W_Q$ and $W_K$ are not touched by the division, nor is $q$, whose length is
# about $\sqrt{d_k}$ before and after. What about the attention weights? Measure:

# %%
torch.manual_seed(0)
for d_k in (16, 256):
    q, K = torch.randn(1000, d_k), torch.randn(1000, 6, d_k)
    s = torch.einsum("nd,nkd->nk", q, K)  # (1000, 6)
    lengths = [q, torch.softmax(s, dim=-1), torch.softmax(s / d_k**0.5, dim=-1)]
    q_long, raw, scaled = [vectors.norm(dim=-1).mean().item() for vectors in lengths]
    print(f"width {d_k:3d}: |q| {q_long:5.2f}   |weights| {raw:.2f} undivided, {scaled:.2f} divided")

# %% [markdown]
# Divided, the vector of attention weights does have the same length at both widths (0.53). So the sentence describes
# something true, but it is a *consequence*: the weights look alike because the scores spread alike. The reason is the
# variance, and the damage that it prevents is in the gradient.
#
# **The assumptions.** The running example itself breaks them. `torch.rand` gives weights between 0 and 1, all positive,
# so the 24 entries of one query lean to the same side, and those of one key too. Their products do not cancel.

# %%
Q, K = x @ W_query.T, x @ W_key.T  # (6, 24), (6, 24)
S = Q @ K.T  # (6, 6)
spread = S.std(correction=0).item()
print(f"all 36 scores spread by {spread:.1f}, where the rule promises {24**0.5:.1f}")
print(f"divided by √24 they spread by {spread / 24**0.5:.1f}, not by 1")

# %% [markdown]
# $\sqrt{d_k}$ repairs the width, not the weights. Good starting weights are the other half of the bargain.
#
# **After training** queries and keys are not independent, that is the point of training. A network can also learn any
# constant into $W_Q$, so no divisor changes *what* attention can express. It changes where training starts and how
# large its steps are. For queries and keys that have lined up, $q\cdot k$ grows like $d_k$ itself, and some recipes for
# very wide networks do divide by $d_k$ (μP, see *Further reading*). So $\sqrt{d_k}$ is the right answer to one precise
# question: what keeps the spread at 1 when nothing has been learned yet?

# %% [markdown]
# ## Code without the factor
#
# A popular explanation of Q and K (it is where lesson 3's inquiry system is from) borrows a few lines from a lecture by
# Andrej Karpathy, and stops just before the lecture puts the factor in: the scores go into softmax undivided. Same
# sizes, same seed, and no mask here (masks are lesson 5):

# %%
torch.manual_seed(1337)
B, T, C, head_size = 4, 8, 32, 16
Wk, Wq = nn.Linear(C, head_size, bias=False), nn.Linear(C, head_size, bias=False)
Wv = nn.Linear(C, head_size, bias=False)  # for lesson 7; made here, as it draws random numbers
batch = torch.randn(B, T, C)  # (4, 8, 32)
omitted = (Wq(batch) @ Wk(batch).transpose(-2, -1)).detach()  # (4, 8, 8)

# %%
for name, s in [("as published", omitted), ("over √16    ", omitted / head_size**0.5)]:
    top = torch.softmax(s, dim=-1).amax(dim=-1).mean().item()
    print(f"{name}   variance {s.var(correction=0).item():.2f}   largest of 8 weights {top:.2f}")

# %% [markdown]
# Is it a disaster? No, and it is worth knowing why. The variance is 1.9, not 16: `nn.Linear` starts with weights so
# small that the entries of q and k have variance $\frac13$ here, so a score has $16\cdot\frac13\cdot\frac13 = 1.8$.
# Sixteen channels are few. Keep everything and widen the head:

# %%
for width in (16, 64, 256, 1024):
    torch.manual_seed(1337)
    Wk, Wq = nn.Linear(C, width, bias=False), nn.Linear(C, width, bias=False)
    s = (Wq(batch) @ Wk(batch).transpose(-2, -1)).detach()  # (4, 8, 8)
    both = torch.softmax(torch.stack([s, s / width**0.5]), dim=-1)  # (2, 4, 8, 8)
    raw, divided = both.amax(dim=-1).mean(dim=(1, 2)).tolist()
    spread = s.std().item()
    print(f"width {width:4d}: spread {spread:5.2f}   largest weight {raw:.2f}, divided {divided:.2f}")

# %% [markdown]
# The undivided line gets by on the luck of a small head. With the factor the last column stands still, and that is what a
# good recipe does: it works the same at every size.

# %% [markdown]
# ## Exercise 4.5 `head_scores`
#
# **Find the bug** · Difficulty ●●○○○ · Importance ●●●●● · 10 minutes · 16 points
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

# %% [markdown]
# The bug hides well: a network can learn a factor of 3.5 into $W_Q$, so the loss still falls. Only measuring shows it.
# **Whenever you read attention code, ask of the number below the root: is it the length of one query?**

# %% [markdown]
# ## Quiz 4.1
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
# ## Quiz 4.2
#
# A model with wide heads and no scaling hardly learns where to look in its first thousand steps. What is the best
# explanation?
#
# - **a** Its attention weights do not add up to 1.
# - **b** Its softmax is saturated, so hardly any gradient reaches queries and keys.
# - **c** The rows of its weight matrices grow too long.

# %% nbgrader={"solution": "quiz_2"}
quiz_2 = None  # "a", "b" or "c"
### BEGIN SOLUTION
quiz_2 = "b"
### END SOLUTION

# %% nbgrader={"grade": "quiz_2"}
check(quiz_2=quiz_2)

# %% [markdown]
# ## Quiz 4.3
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
# what would happen without it, and what is right and wrong in their two sentences. Name one assumption that your
# argument needs.

# %% [markdown] nbgrader={"written": "written_1"}
# **Model answer.** A score is a sum of $d_k$ products. If the entries of queries and keys are independent with mean 0
# and variance 1, each product has variance 1, variances add, and the score has variance $d_k$: wide heads have widely
# spread scores. Dividing by $c$ divides the variance by $c^2$, so $c$ must be the standard deviation $\sqrt{d_k}$ to
# bring the variance back to 1; dividing by $d_k$ would overshoot, to $1/d_k$. Without it softmax saturates: one weight
# is near 1, the rest near 0. All entries $p_i(\delta_{ij} - p_j)$ of its Jacobian are then near 0, so almost no
# gradient reaches $W_Q$ and $W_K$, and a choice made by random weights cannot be unlearned. The classmate's first
# sentence takes a consequence for the reason: the vector of attention weights has a similar length at all widths
# because the scores spread alike, while the weight matrices and the lengths of q and k are not changed at all. The
# second is wrong because a fixed divisor does not move with the width: 100 is right at width 10,000 and makes attention
# almost uniform at width 24.
#
# **Marking scheme (15).** 4: variance of a sum of $d_k$ products is $d_k$. 3: why the root, not $d_k$ (standard
# deviation; variance scales with $c^2$). 4: saturated softmax, Jacobian near 0, gradient to queries and keys vanishes
# (2 if only "softmax becomes one-hot"). 2: the sentence on lengths is a consequence or names vectors that the division
# does not touch. 1: a fixed number does not follow the width. 1: an assumption named (independence, mean 0, variance 1,
# or start of training).

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
# - The bug of exercise 4.5, found by readers and repaired by the authors:
#   [ng-video-lecture, pull request 6](https://github.com/karpathy/ng-video-lecture/pull/6) and
#   [vit-pytorch, issue 65](https://github.com/lucidrains/vit-pytorch/issues/65). It happens to the best.
# - Yang et al., [Tensor Programs V](https://arxiv.org/abs/2203.03466) (2022): wide networks whose attention divides by
#   $d_k$, and why.

# %% [markdown]
# ## Recap
#
# - A score is a sum of $d_k$ products. Its variance grows like $d_k$, its spread like $\sqrt{d_k}$.
# - Large spread saturates softmax: one weight takes all, and the Jacobian $\operatorname{diag}(p) - p\,p^\top$ goes to
#   0.
# - Dividing by $\sqrt{d_k}$ keeps the spread at 1 for every width. It is a temperature that follows the width.
# - The width that counts is that of the *head*, as long as one query, not that of the model.
# - The argument assumes independent entries of variance 1. It is about the start of training.
#
# `progress()` in a new cell shows what you have done so far, over all lessons.
#
# **Next:** [lesson 5](../05_masking/05_masking.ipynb) decides which scores may be seen at all, before softmax turns
# them into weights.
