# %% [markdown]
# # 5. Masking: what may be seen
#
# **Goal:** decide for every query which keys it may see, take the others out before the softmax, and test that nothing
# leaks.
#
# **Time:** about 110 minutes.

# %% tags=["setup"]
# (empty: the build puts the set-up cell here)

# %%
import math

import torch
from torch import nn
from torch.nn import functional as F

from helpers import at_work, check, or_given
from helpers.drawing.transformer_map import transformer_map
from helpers.lessons.masking import explore, figures, machine

# %%
transformer_map("05_masking")

# %% [markdown]
# We are still inside the attention blocks: scaled scores come in, and before softmax may weigh them, some are ruled
# out.

# %% [markdown]
# ## You need
#
# - queries score keys: [lesson 3](../03_query_key/03_query_key.ipynb);
# - the scores are divided by the root of the head's width: [lesson 4](../04_scaling/04_scaling.ipynb).
#
# Two questions to warm up. Answer before you unfold.
#
# <details><summary>Lesson 3: a matrix of scores has shape (T_q, T_k). What does its row 2 hold?</summary>
#
# The scores of one query, the one at place 2, against every key. Each row belongs to a query, each column to a key.
#
# </details>
#
# <details><summary>Lesson 4: scores 0, 1, 2. What weights does softmax make of them?</summary>
#
# $e^0, e^1, e^2$ are 1, 2.718, 7.389 and add up to 11.107. The weights are 0.090, 0.245, 0.665.
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
# ## Why hide anything?
#
# There are two reasons.
#
# **The future.** A translator writes *jane visite l' afrique* word by word, and in training it learns all the words of
# a sentence at once. While it learns what comes after *visite*, the answer is one place to the right, in the same
# tensor. A model that may look there does not learn to translate. It learns to copy.
#
# **The padding.** Sentences of a batch have different lengths. Short ones are filled up with a *pad* token, so that
# they fit into one tensor. Nobody should attend to that.
#
# A **mask** is a table of yes and no, one entry for each pair of query and key: may this query see this key? Yes is
# `True`.

# %%
figures.gallery()

# %% [markdown]
# Read the pictures row by row. *Causal*: each word sees itself and what came before. *Three words cached* is the moment
# when a model writes: the first three words asked earlier, and their keys were kept. Only the two new words ask now,
# and their rows are the last two rows of the same triangle. *Padding*: no row sees the two pads. *Both*: a key is seen
# if both masks say yes.

# %% [markdown]
# ### Exercise 5.1 `causal_mask`
#
# Difficulty 2 of 5 · Importance 5 of 5 · 8 minutes · 10 points
#
# Query $i$ of $T_q$, counted from 0, may see key $j$ of $T_k$ if
#
# $$j \le i + (T_k - T_q).$$
#
# - `T_q`: int; `T_k`: int ≥ T_q, or `None` for T_q
# - returns a boolean tensor `(T_q, T_k)`; the **last** query sees every key
#
# **Predict first:** how many entries of `causal_mask(1, 6)` are True?
#
# <details><summary>Answer</summary>
#
# All six. A single new word is the last one, and it sees the five cached words and itself.
#
# </details>


# %% nbgrader={"solution": "causal_mask"}
def causal_mask(T_q, T_k=None):
    """Which keys each query may see when nobody sees the future; True = may attend.

    T_q: int, T_k: int >= T_q or None (then T_q) -> bool (T_q, T_k). The last query sees every key.
    """
    ### BEGIN SOLUTION
    T_k = T_q if T_k is None else T_k
    return torch.ones(T_q, T_k, dtype=torch.bool).tril(T_k - T_q)  # (T_q, T_k)
    ### END SOLUTION


# %% nbgrader={"grade": "causal_mask"}
check(causal_mask)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# Draw `causal_mask(2, 5)` on paper from the formula. How many keys does query 0 see? Then look for a function that
# keeps the lower triangle of a matrix, and read what its `diagonal` argument does.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Another way needs no triangle: a column of row numbers compared with a row of column numbers is a table of yes and no
# by broadcasting.
#
# </details>
#
# **Aligned where?** PyTorch's own `is_causal=True` aligns the triangle at the *first* key. For as many queries as keys
# that is the same. With a cache it is wrong, and nothing says so. Here one new query may look at three cached keys and its own; the
# values are unit vectors, so the output shows the weights.

# %%
q, k, v = torch.ones(1, 2), torch.ones(4, 2), torch.eye(4)  # (T_q, d_k), (T_k, d_k), (T_k, d_v)
print(F.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=True))  # (1, T_q, d_v)
F.scaled_dot_product_attention(q[None], k[None], v[None], attn_mask=or_given(causal_mask)(1, 4))  # (1, T_q, d_v)

# %% [markdown]
# With `is_causal` the newest word sees only the oldest one. With your mask it sees all four alike.
#
# What does that cost a model that writes? A head of the translator's decoder reads *jane visite l' afrique en*. First all
# five words ask at once. Then the first three wait in a cache, and the last two ask alone. Nothing should change. *Guess the
# two numbers of the second line before you run: by which share of its length is the output off?*


# %%
def aligned_at_first_key(T_q, T_k):
    return torch.ones(T_q, T_k, dtype=torch.bool).tril()  # (T_q, T_k)


for mask_of in (or_given(causal_mask), aligned_at_first_key):
    print(f"{mask_of.__name__:21}", " ".join(f"{off:.2f}" for off in machine.in_two_goes(mask_of).tolist()))

# %% [markdown]
# <details><summary>Answer</summary>
#
# 0.79 and 0.58: both outputs are wrong by more than half of their length, and no error says so. With your mask a cache
# changes nothing. The same two masks cannot be told apart as long as there is no cache.
#
# </details>

# %% [markdown]
# ### Exercise 5.2 `padding_mask`
#
# Difficulty 2 of 5 · Importance 4 of 5 · 6 minutes · 8 points
#
# Which tokens are real? The real ones come first, then the padding.
#
# $$\text{mask}_{bj} = (j < \text{lengths}_b)$$
#
# - `lengths`: LongTensor `(B,)`, each 0 to T; `T`: int
# - returns a boolean tensor `(B, T)`, True for real tokens


# %% nbgrader={"solution": "padding_mask"}
def padding_mask(lengths, T):
    """Which tokens of each sentence are real; the real ones come first. True = may attend.

    lengths LongTensor (B,) with 0 <= lengths <= T; T: int -> bool (B, T).
    """
    ### BEGIN SOLUTION
    return torch.arange(T, device=lengths.device) < lengths[:, None]  # (T,) < (B, 1) -> (B, T)
    ### END SOLUTION


# %% nbgrader={"grade": "padding_mask"}
check(padding_mask)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# On paper: lengths (2, 0, 3) and T = 3. Write the three rows. What about a sentence of length 0?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Places 0 ... T−1 must meet every length. Which of the two needs an extra axis, so that sentences run down and places
# run across?
#
# </details>

# %% [markdown]
# ### Exercise 5.3 `combine_masks`
#
# Difficulty 2 of 5 · Importance 5 of 5 · 8 minutes · 12 points
#
# A key is seen if the causal mask *and* the padding mask say yes. With heads, scores have shape `(B, H, T_q, T_k)`, and
# all heads share one mask.
#
# - `causal`: bool `(T_q, T_k)`; `padding`: bool `(B, T_k)`
# - returns bool `(B, 1, T_q, T_k)`; padding blocks **keys** only
#
# <details><summary>Why not block the padded queries as well?</summary>
#
# Their outputs are thrown away later, so it would gain nothing. And it would make rows with nothing to see, which are
# trouble, as you will find out below.
#
# </details>


# %% nbgrader={"solution": "combine_masks"}
def combine_masks(causal, padding):
    """Both masks as one that broadcasts over heads; padding blocks keys only. True = may attend.

    causal bool (T_q, T_k), padding bool (B, T_k) -> bool (B, 1, T_q, T_k).
    """
    ### BEGIN SOLUTION
    return causal & padding[:, None, None, :]  # (T_q, T_k) & (B, 1, 1, T_k) -> (B, 1, T_q, T_k)
    ### END SOLUTION


# %% nbgrader={"grade": "combine_masks"}
check(combine_masks)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# Write the two shapes below each other, lined up from the right, under `(B, 1, T_q, T_k)`. Which axes of length 1 does
# `padding` need, and where?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Both must say yes. For booleans there is an operator for that; a product of booleans works as well, as long as the
# result is boolean.
#
# </details>

# %% [markdown]
# Three sliders: how many words ask, how many wait in the cache, how many of the keys are padding. *Can you make a row
# that sees nothing?*

# %%
explore.masks()

# %% [markdown]
# <details><summary>Answer</summary>
#
# Make all keys padding, those in the cache too: a sentence of length 0. Then every row is blind. As long as the first key
# is real, no row of a causal mask is.
#
# </details>

# %% [markdown]
# ## From no to minus infinity
#
# How does a *no* get into the weights? Softmax makes weights from $e^{\text{score}}$, and $e^{-\infty} = 0$. So a
# blocked score is **replaced by −∞ before the softmax**. Here is the small world of this lesson, *jane visits africa*,
# with scores that are already scaled:
#
# | query | jane | visits | africa |
# |---|---|---|---|
# | jane | 1 | 2 | 0 |
# | visits | 0 | 1 | 2 |
# | africa | 1 | 0 | 1 |
#
# **On paper:** the causal row of *visits* is $(0, 1, -\infty)$. Which weights does it have?
#
# <details><summary>Answer</summary>
#
# The powers are 1, 2.718 and 0, the sum is 3.718, the weights are 0.269, 0.731, 0. They add up to 1, and *africa* has
# no part in them at all.
#
# </details>

# %%
tokens = ["jane", "visits", "africa"]
scores = torch.tensor([[1.0, 2, 0], [0, 1, 2], [1, 0, 1]])  # (T_q, T_k)
mask = torch.tensor([[True, False, False], [True, True, False], [True, True, True]])  # (T_q, T_k)
replaced = torch.tensor([[1.0, -math.inf, -math.inf], [0, 1, -math.inf], [1, 0, 1]])  # by hand, where mask says no
torch.softmax(replaced, dim=-1)  # (T_q, T_k)

# %% [markdown]
# The mask is yours to click, cell by cell. *What happens to a row when you close its last open cell?*

# %%
explore.cells(tokens, scores)

# %% [markdown]
# <details><summary>Answer</summary>
#
# Its weights become NaN: softmax divides 0 by 0. We come to that soon.
#
# </details>
#
# The same steps on eight random tokens, in Figure 5.2: scores, a triangle, −∞, softmax. Each row is a list of weights
# over the past, however short its past is.

# %%
figures.first_matmul()

# %% [markdown]
# ## How negative is negative enough?
#
# Older code *adds* −10000 to blocked scores (BERT did), so that no infinity is needed. As long as all scores are
# small, that has the same effect. But adding is not replacing. *Find settings of the sliders for which a blocked key wins.*

# %%
explore.fill()

# %% [markdown]
# <details><summary>Answer</summary>
#
# With −10⁴, blocked scores of +9000 and visible ones of −5000: after adding, the blocked scores are −1000, and they
# take everything. Filled in, −10000 is enough here, but not for visible scores of −10000. −∞ is always enough.
#
# </details>

# %% [markdown]
# ### Exercise 5.4 `mask_scores`
#
# Difficulty 2 of 5 · Importance 4 of 5 · 6 minutes · 10 points
#
# $$\text{out} = \begin{cases} \text{score} & \text{where the mask is True} \\ -\infty & \text{where it is False} \end{cases}$$
#
# - `scores`: float `(..., T_q, T_k)`, up to ±10⁴; `mask`: bool, broadcasts to scores
# - returns scores' shape and dtype; scores themselves are left as they are
# - another constant is accepted if blocked entries then get weight exactly 0 for such scores, in float64 as well; adding
#   a finite number to the score does not count
# - rows with nothing to see are not judged here


# %% nbgrader={"solution": "mask_scores"}
def mask_scores(scores, mask):
    """Scores with every blocked entry replaced by minus infinity.

    scores (..., T_q, T_k) float, mask bool that broadcasts to it, True = may attend -> like scores.
    """
    ### BEGIN SOLUTION
    return scores.masked_fill(~mask, -math.inf)  # (..., T_q, T_k)
    ### END SOLUTION


# %% nbgrader={"grade": "mask_scores"}
check(mask_scores)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# Two functions of PyTorch choose between a tensor and a number entry by entry. One fills where its mask is True. Which
# entries should be filled?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# A method whose name ends in an underscore writes into the tensor itself. Whoever gave you the scores may still need
# them.
#
# </details>

# %% [markdown]
# ## An added mask, before or after the division
#
# Papers often write the mask as a matrix M that is added, with 0 for yes and −∞ for no. Some add it before the
# division by the root, some after:
#
# $$\mathrm{softmax}\!\left(\frac{QK^\top + M}{\sqrt{d_k}}\right) V \qquad \text{or} \qquad
# \mathrm{softmax}\!\left(\frac{QK^\top}{\sqrt{d_k}} + M\right) V.$$
#
# *Is one of them wrong?*
#
# <details><summary>Answer</summary>
#
# For 0 and −∞ they agree, since $0/\sqrt{d_k} = 0$ and $-\infty/\sqrt{d_k} = -\infty$. For other numbers they do not:
# with $d_k = 4$ and M = −6, the first subtracts 3 from the scaled score and the second 6. (A hugely negative number
# hides the difference: both weights round to 0.)
#
# </details>

# %%
raw, root = scores * 2, 2  # scores before they are divided by the root of d_k = 4
for no in (-math.inf, -6.0):
    M = torch.where(mask, 0.0, no)  # (T_q, T_k)
    before, after = torch.softmax((raw + M) / root, -1), torch.softmax(raw / root + M, -1)  # (T_q, T_k)
    print(f"no = {no}: largest difference {(before - after).abs().max():.3f}")

# %% [markdown]
# ## A row with nothing to see
#
# In a sentence of length 0 every key is padding, and all scores of a row are −∞. Softmax divides 0 by 0.
#
# **Predict before you run.** Let *africa* be the row that sees nothing. Three ways to treat it:
#
# - **A** −∞ *replaces* the blocked scores; softmax; nothing else
# - **B** −∞ is *added* to the blocked scores; softmax; every NaN is turned into 0
# - **C** −10⁹ *replaces* the blocked scores; softmax; nothing else
#
# What are the weights of the row? And is the *gradient* at its scores a number? Write down six guesses.

# %%
figures.repairs(tokens, scores)

# %% [markdown]
# A fails in plain sight. C has no NaN, but gives equal weights to three keys that may not be seen. **B is the trap:**
# the weights look right, and in the first training step NaN flows from these scores into $W_Q$, $W_K$ and the
# embeddings.
#
# The next exercise asks for a way that is clean in both columns.

# %% [markdown]
# ### Exercise 5.5 `masked_softmax`
#
# Difficulty 3 of 5 · Importance 5 of 5 · 20 minutes · 18 points
#
# Softmax over what may be seen, and zeros where nothing may.
#
# $$\text{out}_j = \frac{m_j\, e^{s_j}}{\sum_k m_k\, e^{s_k}} \quad (m = 1 \text{ where the mask is True, else } 0),
# \qquad \text{out} = 0 \text{ in a row with no } m_j = 1$$
#
# - `scores`: float `(..., T_q, T_k)`, up to ±10⁴; `mask`: bool, broadcasts to scores; over the last dimension
# - no NaN in values, none in gradients, also in rows with nothing to see
# - what float32 rounds off at scores beyond ±300 is no mistake: right forms differ there, and float64 is what counts
# - `torch.softmax` is allowed; lesson 6 opens it


# %% nbgrader={"solution": "masked_softmax"}
def masked_softmax(scores, mask):
    """Softmax over the last dimension among the entries that the mask allows; rows with nothing to
    see are zeros.

    scores (..., T_q, T_k) float, up to 1e4 in size; mask bool that broadcasts to it -> like scores,
    without NaN in values or gradients.
    """
    ### BEGIN SOLUTION
    weights = torch.softmax(mask_scores(scores, mask), dim=-1)  # (..., T_q, T_k), NaN where a row sees nothing
    return torch.where(mask, weights, 0.0)
    ### END SOLUTION


# %% nbgrader={"grade": "masked_softmax"}
check(masked_softmax)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# Look at A and C in Figure 5.3: both have clean gradients. What is left to do about their weights, and which entries
# does it concern?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# With scores of ±10⁴, $e^s$ overflows or underflows: leave the exponentials to `torch.softmax`, and let it see the
# scores only after the blocked ones are out of the way. What must a blocked entry of the *result* be, in any row?
#
# </details>

# %% [markdown]
# ## Why B fails and its twin does not
#
# Turn B's addition into a replacement and leave the rest: −∞ *replaces*, softmax, NaN to 0. Now the gradient is clean.
# Why?
#
# In both, softmax's backward pass multiplies by its own output, which is NaN in that row, so it hands NaN down, whatever
# comes from above. Replacing (`masked_fill`, `torch.where`) then *cuts*: entries that were replaced have no influence,
# so their gradient is set to 0, and the NaN is gone. In a row that sees nothing, all entries were replaced. An addition
# does not cut. Its backward pass hands on what it gets, NaN included.

# %%
for treatment in ("replaced, NaN to 0", "added, NaN to 0"):
    weights, gradient = figures.blind_row(scores, treatment)  # both (T_q, T_k), measured
    print(f"{treatment:20} weights {weights[-1].tolist()}   gradient {gradient[-1].tolist()}")

# %% [markdown]
# So turning NaN into 0 (`nan_to_num`) is not good or bad in itself. What counts is whether something between the NaN and
# the scores cuts the gradient.

# %% [markdown]
# ## One library, two meanings
#
# PyTorch disagrees with itself. `F.scaled_dot_product_attention` takes True = may attend, as this course does.
# `nn.MultiheadAttention` takes True = **blocked**, in `attn_mask` and in `key_padding_mask`. Hand it the wrong one, and
# there is no error.

# %%
torch.manual_seed(0)
mha, x = nn.MultiheadAttention(4, 1, batch_first=True), torch.randn(1, 3, 4)  # x (B, T, D)
right = mha(x, x, x, attn_mask=~mask)[1]  # (B, T_q, T_k)
wrong = mha(x, x, x, attn_mask=mask)[1]
figures.two_meanings(tokens, right[0], wrong[0])

# %% [markdown]
# The wrong one looks only at the future, and its last row sees nothing: NaN. A padding mask the wrong way round gives
# NaN only for a sentence without any padding. All others silently attend to their pads and to nothing else. (Called
# without its weights, torch's layer may not even give NaN: rows that see nothing come out as zeros.)

# %% [markdown]
# ## Too good to be true
#
# Here are two tiny models with one attention layer. Both learn to guess the next letter, one with a causal mask and one
# without. The text is *random*: 8 letters, each equally likely. Nobody can guess such a letter better than by luck, so
# no honest loss stays below $\ln 8 = 2.079$.

# %%
figures.too_good()

# %% [markdown]
# The model without a mask has by far the better loss. It is also worthless: the letter that it copies is not there yet
# when it has to write. (From two other seeds the two losses end at 2.08 and 0.20 as well.) Its loss can fall to $\ln 8 / 12 = 0.173$: it can copy at 11 of 12 places, and
# at the last one the next letter is not in its input.
#
# With real text there is no line at 2.079 to warn you. So test for leaks directly: **change the future, and see whether
# the past moves.**

# %% [markdown]
# ### Exercise 5.6 `leaks_future`
#
# Difficulty 3 of 5 · Importance 4 of 5 · 20 minutes · 12 points
#
# Does any output at a place t change when the inputs *after* t are replaced? (Replace, do not cut: f may be made for
# sentences of this length.)
#
# - `f`: deterministic, `(B, T, D)` to `(B, T, any width)`; `x`: `(B, T, D)`, with numbers between -10 and 10; they may
#   all have one sign, or be the same
# - returns a Python `bool`: True if, for some t, putting new random rows in the places after t changes an
#   output at or before t by more than 1e-6
# - new random rows: of the same shape, with numbers of both signs, as `torch.randn` draws them, or about as large as those
#   of an x that is not 0; they take the place of the old ones, and each call draws others
# - every t, every sentence of the batch and every feature counts, of the inputs and of the outputs; T = 1: False; `x` is
#   left as it is
# - effects between 1e-6 and 1e-4 are not judged; a change below 1e-6 is no leak; new rows once for each t will do,
#   and so will each row by itself, one after the other: a leak that only several new rows together show is not judged
#
# Mind what f may be. Networks often begin by subtracting from each row its mean, and then do not notice a row to which 1
# was added; where they end with that step, the features of a row add up to 0. Where a
# network replaces negative numbers by 0 (a *ReLU*, lesson 9), it does not notice a change among negative numbers.
# And a hard choice, such as `hard_lookup` of lesson 3, has no slope that autograd could find.


# %% nbgrader={"solution": "leaks_future"}
def leaks_future(f, x):
    """Whether some output of f at a place t changes by more than 1e-6 when inputs after t change.

    f: deterministic function (B, T, D) -> (B, T, any width); x (B, T, D). Every t is tried. Returns
    a Python bool.
    """
    ### BEGIN SOLUTION
    before, other = f(x), torch.randn_like(x)  # (B, T, any width), (B, T, D)
    for start in range(1, x.shape[1]):  # the future begins here
        after = f(torch.cat([x[:, :start], other[:, start:]], dim=1))  # (B, T, any width)
        if not torch.allclose(after[:, :start], before[:, :start], rtol=0, atol=1e-6):
            return True
    return False
    ### END SOLUTION


# %% nbgrader={"grade": "leaks_future"}
check(leaks_future)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# For one t: make a copy of x, put other numbers at all places after t, call f on both, and compare the outputs at
# places 0 to t. Then do that for every t.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# A leak may be from one single place to one single place, near or far. Do you change *all* places after t? Is the
# output at t itself among those you compare?
#
# </details>

# %% [markdown]
# ## Find the bug
#
# This order of steps is found in many first implementations, and in published ones:
#
# ```python
# weights = torch.softmax(scores, dim=-1)
# weights = weights.masked_fill(~mask, 0.0)      # nobody looks ahead now, right?
# out = weights @ V
# ```
#
# Take the row of *visits* again, scores (0, 1, 2). Softmax first: 0.090, 0.245, 0.665. Then the mask: 0.090, 0.245 and
# nothing for *africa*.

# %%
figures.before_or_after(tokens, scores, mask)

# %% [markdown]
# *Two things are wrong with the right-hand table. Which?*
#
# <details><summary>Answer</summary>
#
# The weights of a row do not add up to 1, so the output shrinks. And worse, **it leaks**. The row of *visits* adds up
# to 0.335 because *africa* scored 2; had it scored 0, the sum would be 0.788. The weight on *africa* is 0, but the size
# of the others tells how much it *would* have got.
#
# Dividing each row by its sum afterwards repairs the formula on paper. With a blocked score far above the visible ones
# it does not: softmax has already rounded all visible weights to 0, and 0/0 is waiting.
#
# </details>
#
# That no weight above the diagonal is left does not mean that there is no leak. Changing inputs shows it:

# %%
figures.influence()

# %% [markdown]
# **Predict before you run.** Train the small model of Figure 5.5 with this order of steps, on random letters. *Does its
# loss stay at 2.08, fall to 0.17, or end in between?* After all, no weight of the future is left.


# %%
def published_attention(Q, K, V):
    weights = torch.softmax(Q @ K.transpose(-2, -1) / Q.shape[-1] ** 0.5, dim=-1)  # (..., T, T)
    return torch.tril(weights) @ V  # (..., T, d_v)


print(f"mask after the softmax: loss {figures.last_loss(published_attention):.2f}")

# %% [markdown]
# <details><summary>Answer</summary>
#
# In between, and far below what is honest: 1.39 (1.16 to 1.63 from twelve other seeds), and with ten times the steps it
# falls to about 0.5. The sums of the rows are a narrow channel to the future, and training finds it.
#
# </details>

# %% [markdown]
# ### Exercise 5.7 `fixed_causal_attention`
#
# **Find the bug** · Difficulty 3 of 5 · Importance 5 of 5 · 12 minutes · 10 points
#
# $$\text{out} = \mathrm{softmax}\!\left(\frac{QK^\top}{\sqrt{d_k}} \text{ with the future at } {-\infty}\right) V$$
#
# - `Q`, `K`: `(..., T, d_k)`; `V`: `(..., T, d_v)`, d_v may differ from d_k
# - returns `(..., T, d_v)`; right and without NaN for scores up to ±10⁴ (beyond ±300, what float32 rounds off is no
#   mistake)
# - forbidden: `F.scaled_dot_product_attention`


# %% nbgrader={"solution": "fixed_causal_attention"}
def fixed_causal_attention(Q, K, V):
    """Causal attention, eq. 1 of Vaswani et al. (2017) with the future masked before the softmax.

    Q, K (..., T, d_k), V (..., T, d_v), float32 or float64 -> (..., T, d_v), same dtype.
    """
    ### BEGIN SOLUTION
    scores = Q @ K.transpose(-2, -1) / Q.shape[-1] ** 0.5  # (..., T, T)
    weights = masked_softmax(scores, causal_mask(Q.shape[-2]).to(Q.device))  # (..., T, T)
    return weights @ V  # (..., T, d_v)
    ### END SOLUTION


# %% nbgrader={"grade": "fixed_causal_attention"}
check(fixed_causal_attention)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# You have all the pieces from this lesson and the last. In which order do they come: scale, mask, softmax, weigh?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Check your result by its first row: token 0 may see only itself. What must its output be?
#
# </details>
#
# Both experiments again, on the repair: your detector, and the training on random letters.

# %%
x = torch.randn(2, 6, 4)  # (B, T, D)
for name, attention in {"published": published_attention, "repaired": or_given(fixed_causal_attention)}.items():
    leaks = or_given(leaks_future)(lambda x, attention=attention: attention(x, x, x), x)
    print(f"{name:10} leaks: {leaks!s:5}   loss on random letters {figures.last_loss(attention):.3f}")

# %% [markdown]
# The repaired model cannot guess random letters. That is how honesty looks: 2.085, a little above $\ln 8$.

# %% [markdown]
# ## At work
#
# Four of your functions at once, in every attention block of the course's translator. They have to build the mask that its
# attention was trained with:

# %%
at_work(causal_mask, padding_mask, combine_masks, masked_softmax)

# %% [markdown]
# **Predict before you run.** What does each of these cost: the mask after the softmax, no causal mask, no padding mask?


# %%
def masked_after(scores, mask):
    return torch.softmax(scores, dim=-1).masked_fill(~mask, 0.0)  # (..., T_q, T_k): the published bug


at_work(masked_softmax=masked_after)


# %%
def sees_everything(T_q, T_k=None):
    return torch.ones(T_q, T_k or T_q, dtype=torch.bool)  # (T_q, T_k)


at_work(causal_mask=sees_everything)


# %%
def everything_is_real(lengths, T):
    return torch.ones(len(lengths), T, dtype=torch.bool)  # (B, T)


at_work(padding_mask=everything_is_real)

# %% [markdown]
# <details><summary>Answer</summary>
#
# | what is wrong | nats a word | sentences word for word |
# |---|---|---|
# | nothing | 0.00016 | 100 of 100 |
# | no causal mask | 0.056, 350 times as much | 100 |
# | masked after the softmax | 0.41, 2,600 times | 64 |
# | no padding mask | 0.84, 5,300 times | 20 |
#
# *jane visits africa in september* comes out right every time: a single sentence has no padding, and one right sentence
# is no test. Without a causal mask even all hundred come out right: when the machine writes, nothing comes after its
# newest word yet. (For the hundred it reads all words so far anew at each step. There the words before the newest can now
# look ahead, and do: the scores of the next word move by up to 2.5. But with only the words so far in the input the loss
# is 0.00017. With a cache, as your cell above writes its ten sentences, nothing moves.) The 0.056 comes from the true words, which
# are all in the input when a loss is measured. And this network was trained with a mask. One that is trained *without* learns to copy,
# as in Figure 5.5, and its loss looks splendid. (In four other trainings of this machine, from two seeds on two kinds of
# processor, the first row did the least harm too: 480 to 1,600 times. The other two lay between 3,500 and 8,200 times,
# and once in the other order.)
#
# </details>
#
# Does the translator itself leak? Ask your own detector about its first decoder block, and about two damaged ones. (The
# source sentence is a single zero vector, so that the block can only look at its own words.)

# %%
torch.manual_seed(0)
y, causal = torch.randn(2, 6, 64), or_given(causal_mask)(6)[None, None]  # (B, T, D), (1, 1, T, T)
for name, f in {
    "the machine": machine.first_block(causal),
    "without the causal mask": machine.first_block(None),
    "masked after the softmax": machine.first_block(causal, masked_softmax=masked_after),
}.items():
    print(f"{name:26} leaks: {or_given(leaks_future)(f, y)}")

# %% [markdown]
# ### Quiz 5.1
#
# Your masks mean True = may attend. Which call gives `nn.MultiheadAttention` a causal mask and a padding mask `real` of
# shape `(B, T)`?
#
# - **a** `mha(x, x, x, attn_mask=causal, key_padding_mask=real)`
# - **b** `mha(x, x, x, attn_mask=~causal, key_padding_mask=real)`
# - **c** `mha(x, x, x, attn_mask=~causal, key_padding_mask=~real)`

# %% nbgrader={"solution": "quiz_1"}
quiz_1 = None  # "a", "b" or "c"
### BEGIN SOLUTION
quiz_1 = "c"
### END SOLUTION

# %% nbgrader={"grade": "quiz_1"}
check(quiz_1=quiz_1)

# %% [markdown]
# ### Quiz 5.2
#
# A model has written 6 tokens, whose keys are cached, and now takes 2 new ones at once. Which mask do the 2 new queries
# need?
#
# - **a** a lower triangle of shape (2, 2), since only new tokens can be in the future
# - **b** shape (2, 8): row 0 sees 7 keys, row 1 sees 8
# - **c** shape (2, 8): row 0 sees 1 key, row 1 sees 2

# %% nbgrader={"solution": "quiz_2"}
quiz_2 = None  # "a", "b" or "c"
### BEGIN SOLUTION
quiz_2 = "b"
### END SOLUTION

# %% nbgrader={"grade": "quiz_2"}
check(quiz_2=quiz_2)

# %% [markdown]
# ### Quiz 5.3
#
# A model with the bug of exercise 5.7 is trained: the mask after the softmax, and the rows are not divided by their sums
# again. What happens?
#
# - **a** Nothing bad: the blocked weights are exactly 0, so the future has no influence.
# - **b** The sum of each row tells something about the future, and training can use it.
# - **c** The loss becomes NaN at the first step.

# %% nbgrader={"solution": "quiz_3"}
quiz_3 = None  # "a", "b" or "c"
### BEGIN SOLUTION
quiz_3 = "b"
### END SOLUTION

# %% nbgrader={"grade": "quiz_3"}
check(quiz_3=quiz_3)

# %% [markdown]
# ## Written question
#
# *15 points, graded by hand, 10 minutes, about ten sentences.*
#
# A colleague's language model reports a test loss far below everything that was published for this text. Name three
# different ways in which the future (or the test text) could have leaked into the result. For each, describe one check
# that would find it, and say whether `leaks_future` would.
#
# <details><summary>For those who learn alone: what a good answer has</summary>
#
# - Three ways that differ in kind: in attention, elsewhere in the model, in the data.
# - For each a check that would really find it, concrete enough to be programmed.
# - For each the right word on `leaks_future`: it looks into the model only, never at targets or texts.
#
# </details>

# %% [markdown] nbgrader={"written": "written_1"}
# <details><summary>Model answer and marking scheme</summary>
#
# **Model answer.** (1) The mask is missing, inverted, or applied after the softmax: attention looks ahead.
# `leaks_future` on the model with random embeddings finds it, if it is run on the whole model and not on one layer
# alone, and with the mask as used in training. (2) Something else than attention mixes places: a normalization over
# the T axis, a convolution that is centered, the mean over the sentence added to each token. `leaks_future` finds
# this as well, as it asks nothing about attention. (3) The targets are wrong: they are not shifted, so that the model
# predicts its own input. The model is perfectly causal, and `leaks_future` says False; one finds it by printing one
# input row beside its target row, or by the loss on random tokens, which cannot honestly lie below ln V. (4) Test
# sentences are in the training text: again nothing leaks inside the model; count test sentences or long n-grams that
# occur in the training data. A check that catches (1) to (3) together: let the model write, one token at a time, and
# compare the loss computed from those steps with the reported one.
#
# **Marking scheme (15).** Three ways that differ in kind, 2 points each (6). A check for each that would really find
# it, 2 points each (6). Says correctly for each whether `leaks_future` finds it (3).
#
# </details>

# %% [markdown]
# ## From the notes this course grew from
#
# <details><summary>Three loose sentences about masks, and one about NaN</summary>
#
# **“Mask the next word embeddings (by setting them to −inf)”** say the notes, after a widely read walk through the
# Transformer's parts (Adaloglou, below). It is the *scores* that are set to −∞. An embedding of −∞ would turn everything into NaN.
#
# **The mask that is divided too.** The same text writes $\mathrm{softmax}((QK^\top + M)/\sqrt{d_k})$, others add M
# after the division. For 0 and −∞ both are the same, and for no number between.
#
# **A triangle without the root.** Karpathy's lecture, as the Stack Exchange answer of lesson 3 quotes it, shows Figure 5.2
# with B, T, C = 4, 8, 32, head size 16 and seed 1337: scores, lower triangle, −∞, softmax. The quoted lines leave out
# the division by $\sqrt{16}$ (lesson 4). In the sentence of the figure row 1 is nearly all on key 0 (0.99); in the other
# three of the batch key 0 has 0.27, 0.20 and 0.85 of it.
#
# **Is `nan_to_num` to blame?** One reads that it breaks gradients. Measured above: after a replacement they stay
# clean, after an addition they do not.
#
# </details>

# %% [markdown]
# ## Recap
#
# - A mask says for each pair of query and key: yes (True) or no. Causal masks are aligned at the end, padding blocks keys
#   only, and *and* combines the two.
# - Blocked scores become −∞ *before* the softmax. Masking afterwards leaves sums that tell of the future.
# - A row with nothing to see is 0/0. Its gradient is clean only if something between the NaN and the scores cuts it off.
# - A model that leaks may look too good. Change the future and see whether the past moves.
#
# `progress()` in a new cell shows what you have done so far, over all lessons (`from helpers import progress`).

# %% [markdown]
# ## Further reading
#
# - Vaswani et al., [Attention Is All You Need](https://arxiv.org/abs/1706.03762) (2017), section 3.2.3: *masking out
#   (setting to −∞)*.
# - Karpathy, [Let's build GPT: from scratch, in code, spelled out](https://www.youtube.com/watch?v=kCc8FmEb1nY): the
#   lower triangle and `masked_fill`.
# - Adaloglou, [How Attention works in Deep Learning](https://theaisummer.com/attention/) and [How Transformers
#   work](https://theaisummer.com/transformer/).
# - [The Annotated Transformer](http://nlp.seas.harvard.edu/2018/04/03/attention.html), `subsequent_mask`.
# - [F.scaled_dot_product_attention](https://pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html)
#   and [nn.MultiheadAttention](https://pytorch.org/docs/stable/generated/torch.nn.MultiheadAttention.html): read what
#   each says of its mask.
#
# **Next:** [lesson 6](../06_softmax/06_softmax.ipynb) opens the tool that was used here all along: softmax.
