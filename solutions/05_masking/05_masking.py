# %% [markdown]
# # 5. Masking: what may be seen
#
# **In this lesson** you'll decide for every query which keys it may see, remove the others before the softmax, and
# write a test that finds out whether a model looks into the future.
#
# **Core:** about 85 minutes. A good moment for a break is after exercise 5.4.

# %% tags=["setup"]
# (empty: the build puts the set-up cell here)

# %%
import math

import torch
from torch import nn
from torch.nn import functional as F

from helpers import at_work, check, or_finished
from helpers.drawing.transformer_map import transformer_map
from helpers.lessons.masking import explore, figures, trained_decoder

# %%
transformer_map("05_masking")

# %% [markdown]
# We're still inside the attention blocks, between the scaled scores and the softmax.
#
# ## What you need
#
# - the scores of queries and keys, from [lesson 3](../03_query_key/03_query_key.ipynb);
# - scaling and a first use of softmax, from [lesson 4](../04_scaling/04_scaling.ipynb).
#
# The [conventions](../00_start_here/00_start_here.ipynb) of lesson 0 hold here too.
#
# Here are two questions to warm up:
#
# <details><summary>Lesson 3: a matrix of scores has shape (T_q, T_k). What does its first row contain?</summary>
#
# It contains the scores of the first query with every key, because rows belong to queries and columns to keys.
#
# </details>
#
# <details><summary>Lesson 4: which weights does softmax compute from the scores 0, 1, 2?</summary>
#
# The exponentials are $1$, $2.718$ and $7.389$, and their sum is $11.107$, so the weights are $0.090$, $0.245$ and
# $0.665$.
#
# </details>

# %% [markdown]
# ## Why mask anything?
#
# The first reason is **the future**. A translator writes *jane visite l' afrique* word by word, but
# in training it gets the whole sentence at once and learns to predict each next word. The word after *visite* is then
# in the same tensor, one position to the right, and a model that can attend to it learns to copy instead of
# translating.
#
# The second reason is **the padding**. The sentences of a batch have different lengths, so we append a *pad* token to
# the short ones until all fit into one tensor. Because pads carry no meaning, no query should attend to them.
#
# In both cases we need a **mask**, a boolean matrix with one entry for each pair of query and key, which is `True`
# where the query may attend to the key.

# %%
figures.gallery()

# %% [markdown]
# In the **causal mask**, each token sees itself and the earlier tokens. The second mask is for a model that generates
# text and has stored the keys of the first three words in a **cache**, so that it doesn't compute them again. Only the
# two new words have queries, so the mask has only the last two rows of the triangle, and the last query sees every key.
# With *padding*, no query sees the two pads, and with *both*, a key is visible only if both masks allow it.

# %% [markdown]
# ### Exercise 5.1 `causal_mask`
#
# Difficulty 2 of 5 · Importance 5 of 5 · 8 minutes · 12 points
#
# Build the causal mask, also for more keys than queries. Query $i$ may see key $j$ (both counted from zero) if
#
# $$j \le i + (T_k - T_q).$$
#
# - **Arguments:** the integer `T_q`, and `T_k`, an integer of at least `T_q` or `None`, which means `T_q`.
# - **Returns:** a boolean tensor `(T_q, T_k)`, in which the **last** query sees every key.


# %% nbgrader={"solution": "causal_mask"}
def causal_mask(T_q, T_k=None):
    """Which keys each query may see when no query sees the future; True = may attend.

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
# Write down `causal_mask(2, 5)` from the formula, and find a function that keeps the lower triangle of a matrix.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# The argument `diagonal` of `torch.tril` moves the triangle. You can also compare a column of query indices with a row
# of key indices.
#
# </details>

# %% [markdown]
# ### Exercise 5.2 `padding_mask`
#
# Difficulty 2 of 5 · Importance 4 of 5 · 5 minutes · 8 points
#
# Mark the real tokens of each sentence, which come before the padding: $\text{mask}_{bj} = (j < \text{lengths}_b)$.
#
# - **Arguments:** `lengths`, a LongTensor `(B,)` with entries from zero to $T$, and the integer `T`.
# - **Returns:** a boolean tensor `(B, T)` that is True for real tokens.


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
# Compare every position with every length, and write the result down for the lengths 2, 0 and 3.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Compare `torch.arange`, which gives the positions, with the lengths as a column, made by `[:, None]`.
#
# </details>

# %% [markdown]
# ### Exercise 5.3 `combine_masks`
#
# Difficulty 2 of 5 · Importance 5 of 5 · 5 minutes · 10 points
#
# A key is visible if the causal mask *and* the padding mask allow it. With heads, scores have shape `(B, H, T_q, T_k)`,
# and all heads share one mask.
#
# - **Arguments:** `causal`, boolean of shape `(T_q, T_k)`, and `padding`, boolean of shape `(B, T_k)`.
# - **Returns:** a boolean tensor `(B, 1, T_q, T_k)`, in which padding blocks **keys** only, because blocking padded
#   queries as well would only produce rows without a visible key.


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
# Write both shapes below `(B, 1, T_q, T_k)`, aligned at the right. Where does `padding` need axes of length one?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Index with `None` to insert these axes, and combine the masks with a logical *and*.
#
# </details>
#
# In the explorer you choose how many queries are new, how many keys are cached, and how many are padding. Can you
# make a fully masked row?

# %%
explore.masks()

# %% [markdown]
# You need a sentence of length zero, because as long as the first key is real, every row sees at least that key.

# %% [markdown]
# ## From False to minus infinity
#
# How does the mask act on the attention weights? Softmax computes them from $e^{\text{score}}$, and $e^{-\infty} = 0$,
# so we **replace blocked scores by −∞ before the softmax**. Let's take *jane visits africa*, with scores that are
# already scaled:
#
# | query | jane | visits | africa |
# |---|---|---|---|
# | jane | 1 | 2 | 0 |
# | visits | 0 | 1 | 2 |
# | africa | 1 | 0 | 1 |
#
# **On paper:** with a causal mask, the row of *visits* is $(0, 1, -\infty)$. Which weights does softmax give it?
#
# <details><summary>Answer</summary>
#
# The exponentials are $1$, $2.718$ and $0$, and their sum is $3.718$, so the weights are $0.269$, $0.731$ and $0$.
#
# </details>

# %%
tokens = ["jane", "visits", "africa"]
scores = torch.tensor([[1.0, 2, 0], [0, 1, 2], [1, 0, 1]])  # (T_q, T_k)
mask = torch.tensor([[True, False, False], [True, True, False], [True, True, True]])  # (T_q, T_k)
replaced = torch.tensor([[1.0, -math.inf, -math.inf], [0, 1, -math.inf], [1, 0, 1]])  # by hand, where mask is False
torch.softmax(replaced, dim=-1)  # (T_q, T_k)

# %% [markdown]
# ### Exercise 5.4 `mask_scores`
#
# Difficulty 2 of 5 · Importance 4 of 5 · 5 minutes · 10 points
#
# Replace every blocked score by −∞ and leave the others as they are.
#
# - **Arguments:** `scores (..., T_q, T_k)`, up to $\pm10^4$, and `mask`, boolean, which broadcasts to the scores.
# - **Returns:** a new tensor with the shape and dtype of `scores`.
# - **Allowed:** a constant other than −∞, if softmax gives such scores a weight of exactly zero, in float64 as well.
#   Don't *add* a large negative number, because the blocked scores would keep their differences.
# - **Edge case:** rows without a visible key are not judged here.


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
# Choose between a tensor and a number, entry by entry. PyTorch has two functions for this.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# `masked_fill` needs the inverted mask, whereas `torch.where` takes the mask as it is. (`masked_fill_` changes the scores
# in place.)
#
# </details>

# %% [markdown]
# ## Fully masked rows
#
# In a sentence of length zero all scores are −∞, so softmax divides zero by zero. We compare three attempts to handle
# such a **fully masked row**:
#
# - **A:** −∞ *replaces* the blocked scores, followed by softmax;
# - **B:** −∞ is *added* to the blocked scores, followed by softmax, and every NaN becomes zero;
# - **C:** $-10^9$ *replaces* the blocked scores, followed by softmax.
#
# **Before you run the cell, make a guess:** if *africa* is fully masked, which weights does its row get under A, B and
# C, and where is the *gradient* at its scores NaN?

# %%
figures.repairs(tokens, scores)

# %% [markdown]
# With A you notice the failure at once, because the weights are NaN, whereas C gives equal weights to three keys that
# the query may not see. **B is a trap**, because its weights look right, but in the first training step NaN flows from
# these scores into $W_Q$, $W_K$ and the embeddings.
#
# Why is the gradient of A clean, although softmax passes NaN backward there as well? In A we replaced the blocked
# scores (by `masked_fill` or `torch.where`), so they have no effect on the result, and their gradient is zero.
# Addition, however, passes every gradient on. So if you replace the scores and turn NaN into zero after the softmax
# (`nan_to_num`), gradients stay clean, and if you add, they don't.

# %% [markdown]
# ### Exercise 5.5 `masked_softmax`
#
# Difficulty 3 of 5 · Importance 5 of 5 · 10 minutes · 16 points
#
# Compute a softmax over the visible keys, and zeros where there are none. With $m = 1$ where the mask is True and $m =
# 0$ elsewhere,
#
# $$\text{out}_j = \frac{m_j\, e^{s_j}}{\sum_k m_k\, e^{s_k}}, \qquad \text{out} = 0 \text{ in a fully masked row.}$$
#
# - **Arguments:** `scores (..., T_q, T_k)`, up to $\pm10^4$, and `mask`, boolean, which broadcasts to the scores. The
#   softmax runs over the last dimension, and you may call `torch.softmax`.
# - **Returns:** a tensor with the shape and dtype of `scores`.
# - **Edge case:** neither values nor gradients may be NaN, not even in fully masked rows.


# %% nbgrader={"solution": "masked_softmax"}
def masked_softmax(scores, mask):
    """Softmax over the last dimension among the entries that the mask allows; rows with nothing to
    see are zeros.

    scores (..., T_q, T_k) float, up to 1e4 in size; mask bool that broadcasts to it -> like scores,
    without NaN in values or gradients.
    """
    ### BEGIN SOLUTION
    weights = torch.softmax(mask_scores(scores, mask), dim=-1)  # (..., T_q, T_k), NaN in fully masked rows
    return torch.where(mask, weights, 0.0)
    ### END SOLUTION


# %% nbgrader={"grade": "masked_softmax"}
check(masked_softmax)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# The gradients of A and C are clean, so begin with one of them, and then correct the blocked weights.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Leave the exponentials to `torch.softmax`, because $e^s$ overflows. Then `torch.where` can set the blocked entries of
# the *result* to zero.
#
# </details>

# %% [markdown]
# ## One library, two meanings
#
# PyTorch isn't consistent. In `F.scaled_dot_product_attention` True means *may attend*, as in our course, whereas in
# `nn.MultiheadAttention` it means **blocked**, both in `attn_mask` and in `key_padding_mask`. A mask with the wrong
# meaning raises no error.

# %%
torch.manual_seed(0)
mha, x_mha = nn.MultiheadAttention(4, 1, batch_first=True), torch.randn(1, 3, 4)  # x_mha (B, T, D)
right = mha(x_mha, x_mha, x_mha, attn_mask=~mask)[1]  # (B, T_q, T_k)
wrong = mha(x_mha, x_mha, x_mha, attn_mask=mask)[1]  # (B, T_q, T_k)
figures.two_meanings(tokens, right[0], wrong[0])

# %% [markdown]
# In the table on the right each token sees only the future, and the last row is NaN because it sees nothing. In an
# encoder, a wrong padding mask is even harder to notice, since only sentences without padding give NaN.

# %% [markdown]
# ## Too good to be true
#
# How would you notice a missing causal mask? Let's train two tiny models with one attention layer to predict the next
# letter, one with a causal mask and one without. The text is *random*, with eight equally likely letters, so no model
# can predict new letters with an average loss below $\ln 8 \approx 2.079$.

# %%
figures.too_good()

# %% [markdown]
# Without a mask the training loss is far better, because the next letter is in the input at all but the last of twelve
# positions (hence the dotted line at $\frac1{12}\ln 8$). But when such a model *writes*, there is nothing to copy. The
# dashed red line shows its loss then, which is about twice that of uniform guessing. For real text we don't know a
# limit like $\ln 8$ that would warn us, so we test for leaks directly. We **change the future, and see whether the past
# changes.**

# %% [markdown]
# ### Exercise 5.6 `leaks_future`
#
# Difficulty 3 of 5 · Importance 4 of 5 · 12 minutes · 14 points
#
# For every position $t$, replace the rows of `x` after $t$ by new random rows, and check whether any entry of the
# outputs at or before $t$ changes by more than $10^{-6}$.
#
# - **Arguments:** `f`, a deterministic function from `(B, T, D)` to `(B, T, any width)`, and `x (B, T, D)`.
# - **Returns:** a Python `bool`, True if `f` leaks. Every $t$, every sentence of the batch and every feature counts.
# - **New rows:** as `torch.randn_like` draws them, or the old rows plus such noise. Don't cut rows off, because `f` may
#   need all $T$ of them, and leave `x` itself unchanged.
# - **Edge case:** for $T = 1$ there is no future, so the result is False.


# %% nbgrader={"solution": "leaks_future"}
def leaks_future(f, x):
    """Whether some output of f at a position t changes by more than 1e-6 when inputs after t change.

    f: deterministic function (B, T, D) -> (B, T, any width); x (B, T, D). Every t is tried. Returns
    a Python bool.
    """
    ### BEGIN SOLUTION
    before, other = f(x), torch.randn_like(x)  # (B, T, any width), (B, T, D)
    while (other == x).all(dim=-1).any():  # the generator may be in the state from which x was drawn
        other = torch.randn_like(x)
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
# For a single t, make a copy of x with random rows after t, call f on both, and compare the outputs up to t. Then do
# the same for every t.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# `torch.allclose` with `rtol=0` and `atol=1e-6` compares all outputs at once, and you should include the output at t.
#
# </details>

# %% [markdown]
# ### Exercise 5.7 `fixed_causal_attention`
#
# **Find the bug** · Difficulty 3 of 5 · Importance 5 of 5 · 8 minutes · 10 points
#
# The next function is a typical first attempt at causal attention. Its result is a weighted sum of value vectors `V`,
# which you'll study in lesson 7. All weights on the future are zero, but let your `leaks_future` decide whether that's
# enough.


# %%
def buggy_attention(Q, K, V):
    weights = torch.softmax(Q @ K.transpose(-2, -1) / Q.shape[-1] ** 0.5, dim=-1)  # (..., T, T)
    return torch.tril(weights) @ V  # (..., T, d_v)


# %%
x_leak = torch.randn(2, 6, 4, generator=torch.Generator().manual_seed(0))  # (B, T, D)
or_finished(leaks_future)(lambda x: buggy_attention(x, x, x), x_leak)

# %% [markdown]
# It leaks, although every weight on the future is zero. Find out why, and write the function correctly:
#
# $$\text{out} = \mathrm{softmax}\!\left(\frac{QK^\top}{\sqrt{d_k}} \text{ with the future at } {-\infty}\right) V$$
#
# - **Arguments:** `Q` and `K` of shape `(..., T, d_k)` and `V (..., T, d_v)`. The scores go up to $\pm10^4$.
# - **Returns:** a tensor of shape `(..., T, d_v)` without NaN.
# - **Forbidden:** `F.scaled_dot_product_attention`.


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
# Print the row sums of the weights after `torch.tril`, and find out what they depend on.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Let your `masked_softmax` apply your `causal_mask` to the scaled scores.
#
# </details>
#
# The figure shows the weights of our three words in both orders. In the row of *visits* the scores are $0$, $1$, $2$.

# %%
figures.before_or_after(tokens, scores, mask)

# %% [markdown]
# In the wrong order, the denominator of softmax contains all scores, the future included. So the rows no longer add
# up to one, and their sums reveal how large the future scores are. If we gave *africa* the score $0$ instead of $2$,
# the sum would be $0.788$ instead of $0.335$.

# %% [markdown]
# ## At work
#
# Let's put four of your functions into every attention block of our translator. The panel also shows the cost of a
# missing causal mask and of a missing padding mask.

# %%
at_work(causal_mask, padding_mask, combine_masks, masked_softmax)

# %% [markdown]
# **Before you run the next cell, make a guess:** does a mask *after* the softmax hurt the trained translator more
# than a missing causal mask, and more than a missing padding mask?


# %%
def masked_after(scores, mask):
    return torch.softmax(scores, dim=-1).masked_fill(~mask, 0.0)  # (..., T_q, T_k): the bug of exercise 5.7


at_work(masked_softmax=masked_after)

# %% [markdown]
# | what is wrong | loss, nats per word | exactly right (100 sentences) |
# |---|---|---|
# | nothing | 0.00016 | 100% |
# | no causal mask | 0.056, 350 times | 100% |
# | masked after the softmax | 0.41, 2,600 times | 64% |
# | no padding mask | 0.84, 5,300 times | 20% |
#
# The sentence *jane visits africa in september* comes out right every time, so a single sentence doesn't reveal any of
# these bugs. Without a causal mask all hundred sentences still come out right, because when the translator writes, the
# newest word has no future. But we *trained* this network with a mask, and without one it would have learned to copy,
# as in Figure 5.4.

# %% [markdown]
# ### Quiz 5.1
#
# Which call gives `nn.MultiheadAttention` your causal mask and your padding mask `real` of shape `(B, T)`?
#
# - **a** `mha(x, x, x, attn_mask=~causal, key_padding_mask=~real)`
# - **b** `mha(x, x, x, attn_mask=causal, key_padding_mask=real)`
# - **c** `mha(x, x, x, attn_mask=~causal, key_padding_mask=real)`

# %% nbgrader={"solution": "quiz_1"}
quiz_1 = None  # "a", "b" or "c"
### BEGIN SOLUTION
quiz_1 = "a"
### END SOLUTION

# %% nbgrader={"grade": "quiz_1"}
check(quiz_1=quiz_1)

# %% [markdown]
# ### Quiz 5.2
#
# A model has written six tokens, whose keys are cached, and now processes two new ones at once. Which mask do the two
# new queries need?
#
# - **a** a lower triangle of shape `(2, 2)`, since only new tokens can be in the future
# - **b** shape `(2, 8)`, where the first row sees one key and the second row two
# - **c** shape `(2, 8)`, where the first row sees seven keys and the second row eight

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
# *15 points, graded by hand, 10 minutes, about ten sentences.*
#
# A colleague's language model reports a test loss far below all published results for this text. Name three different
# ways in which the future (or the test text) could have leaked into the result. For each, describe a check that would
# find it, and say whether `leaks_future` would.

# %% [markdown] nbgrader={"written": "written_1"}
# <details><summary>Model answer and marking scheme</summary>
#
# **Model answer.** First, the mask is missing, inverted, or applied after the softmax. `leaks_future` finds it, if we
# run it on the full model with random embeddings and the mask that we used in training. Second, something other than
# attention mixes positions, for example a normalization over the T axis, a centered convolution, or the mean of the
# sentence added to each token. `leaks_future` finds this as well, because it doesn't depend on attention. Third, the
# targets are not shifted, so the model predicts its own input. The model is causal and `leaks_future` returns False;
# we find it by printing an input row next to its target row, or by the loss on random tokens, which can't be below
# $\ln V$. Fourth, test sentences are part of the training text. Nothing leaks inside the model, so we have to count
# test sentences or long n-grams that occur in the training data.
#
# **Marking scheme (15).** 6: three ways that differ in kind, 2 points each. 6: a check for each that would find it, 2
# points each. 3: says correctly for each whether `leaks_future` finds it.
#
# </details>

# %% [markdown]
# ## Recap
#
# - A mask is True where a query may attend to a key. We align causal masks at the last key, and padding blocks keys
#   only.
# - Blocked scores become −∞ *before* the softmax. If you mask afterwards, the row sums depend on the future.
# - In a fully masked row softmax divides zero by zero, and the gradient is clean only if we replaced the scores.
# - A model that leaks looks too good in training and fails when it writes, so test whether changing the future
#   changes the past.
#
# **Next:** in [lesson 6](../06_softmax/06_softmax.ipynb) you'll build softmax, the tool that you've used all along.

# %% [markdown]
# ## Going further
#
# Everything below is optional, and no later lesson needs it.
#
# ### Can a model use an indirect leak?
#
# The mask after the softmax leaks only through the sums of the rows. The next figure shows between which pairs of
# positions.

# %%
figures.influence()

# %% [markdown]
# To see whether a model learns to use this leak, we train the small model of Figure 5.4 with both versions.

# %%
for name, attention in {"with the bug": buggy_attention, "fixed": or_finished(fixed_causal_attention)}.items():
    print(f"{name:13} loss on random letters {figures.last_loss(attention):.3f}")

# %% [markdown]
# It does. With the bug the loss falls far below $\ln 8$, which isn't possible without information from the future,
# whereas with the fixed version it stays just above. On paper, dividing each row by its sum would fix this, but if a
# blocked score is far above the visible ones, all visible weights are already rounded to zero.
#
# Does your `leaks_future` find these mistakes in the translator as well? We try it on the first block of its decoder,
# the part that writes French.

# %%
y = torch.randn(2, 6, 64, generator=torch.Generator().manual_seed(1))  # (B, T, D)
causal = or_finished(causal_mask)(6)[None, None]  # (1, 1, T, T)
for name, f in {
    "the translator": trained_decoder.first_block(causal),
    "without the causal mask": trained_decoder.first_block(None),
    "masked after the softmax": trained_decoder.first_block(causal, masked_softmax=masked_after),
}.items():
    print(f"{name:26} leaks: {or_finished(leaks_future)(f, y)}")

# %% [markdown]
# ### What a wrong alignment costs
#
# A single new query should see three cached keys and its own. PyTorch's `is_causal=True` aligns the triangle at the
# first key instead. In the next cell the values are unit vectors, so the output shows the attention weights.

# %%
q, k, v = torch.ones(1, 2), torch.ones(4, 2), torch.eye(4)  # (T_q, d_k), (T_k, d_k), (T_k, d_v)
print(F.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=True))  # (1, T_q, d_v)
F.scaled_dot_product_attention(q[None], k[None], v[None], attn_mask=or_finished(causal_mask)(1, 4))  # (1, T_q, d_v)

# %% [markdown]
# With `is_causal` the newest query silently sees only the oldest key, whereas with your mask it sees all four.
# What does the wrong alignment cost in a trained model?
#
# One head of the translator's decoder reads *jane visite l' afrique en*, first with the queries of all five words at
# once, and then with the keys and values of the first three in a cache and queries for the last two only. With a
# correct mask both ways give the same outputs. The cell prints the relative error of the last two outputs, for your
# mask and for one that is aligned at the first key.


# %%
def aligned_at_first_key(T_q, T_k):
    return torch.ones(T_q, T_k, dtype=torch.bool).tril()  # (T_q, T_k)


for mask_of in (or_finished(causal_mask), aligned_at_first_key):
    errors = trained_decoder.cache_errors(mask_of).tolist()
    print(f"{mask_of.__name__:21}", " ".join(f"{error:.2f}" for error in errors))

# %% [markdown]
# With the wrong alignment both outputs are off by more than half of their length. You can't notice this bug in
# training, where the two masks are equal.
#
# ### Masks that are added
#
# Papers often write the mask as a matrix $M$ that is added to the scores, with $0$ for True and $-\infty$ for False.
# Some formulas add it before the division, and others after it:
#
# $$\mathrm{softmax}\!\left(\frac{QK^\top + M}{\sqrt{d_k}}\right) V \qquad \text{or} \qquad
# \mathrm{softmax}\!\left(\frac{QK^\top}{\sqrt{d_k}} + M\right) V.$$
#
# For $0$ and $-\infty$ they agree, because a division changes neither. For moderate finite numbers they don't:

# %%
raw, root = scores * 2, 2  # scores before they are divided by the square root of d_k = 4
for blocked in (-math.inf, -6.0):
    M = torch.where(mask, 0.0, blocked)  # (T_q, T_k)
    before, after = torch.softmax((raw + M) / root, -1), torch.softmax(raw / root + M, -1)  # (T_q, T_k)
    print(f"M = {blocked}: largest difference {(before - after).abs().max():.3f}")

# %% [markdown]
# Older code such as BERT's *adds* $-10000$ instead of replacing, which has the same effect as long as all scores are
# small. In the explorer you can find scores for which a blocked key wins.

# %%
explore.fill()

# %% [markdown]
# For example, if the blocked scores are $+9000$ and the visible ones $-5000$, the blocked scores are $-1000$ after the
# addition, so they get all the weight.
#
# In the next explorer you can build a mask cell by cell and watch the weights.

# %%
explore.cells(tokens, scores)

# %% [markdown]
# ### The triangle of a lecture
#
# In Andrej Karpathy's lecture, which you know from lesson 3, eight random tokens attend to each other under a causal
# mask. Its code, which is often quoted, doesn't divide by $\sqrt{d_k}$ yet.

# %%
figures.first_matmul()

# %% [markdown]
# Each row is a distribution over the past. In Figure 5.7 the second row puts nearly all its weight on the first key,
# which is an accident of our random draw, not of the lecture's.
#
# ### How stable are these numbers?
#
# | measurement | in the text | elsewhere |
# |---|---|---|
# | loss on random letters with the bug | 1.39 | twelve other seeds: 1.16 to 1.63; ten times the steps: about 0.5 |
# | loss on random letters without a mask | 0.20 | two other seeds: 0.20; while writing, three seeds: 4.2 to 4.8 |
# | no causal mask, translator | 350 times | four other training runs: 480 to 1,600 times |
# | masked after the softmax, and no padding mask | 2,600 and 5,300 times | the same runs: 3,500 to 8,200 times, once in the other order |
# | weight on key 0 in the second row of Figure 5.7 | 0.99 | the other three sentences of the batch: 0.27, 0.20, 0.85 |
# | `nn.MultiheadAttention`, fully masked row | NaN | with `need_weights=False`: the output's bias, which is initialized to zero |

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
#   and [nn.MultiheadAttention](https://pytorch.org/docs/stable/generated/torch.nn.MultiheadAttention.html): what each
#   of them says about its mask.
