# %% [markdown]
# # 8. Multi-head attention: several looks at once
#
# **Goal:** run several heads side by side, join what they found, and see on a trained network what each of them does.
# **Time:** about 145 minutes, 35 of them for the extras. A good place for a break is after exercise 8.3.

# %% tags=["setup"]
# (empty: the build puts the set-up cell here)

# %%
import copy

import torch
from torch import nn

from helpers import at_work, check, or_given, progress, translator
from helpers.blocks import attention, causal_mask, leaks_future, equivariance_error, apply_rope
from helpers.drawing.transformer_map import transformer_map
from helpers.lessons.multi_head import explore, figures

# %%
transformer_map("08_multi_head")

# %% [markdown]
# One head is finished. Today several of them read the same sentence at the same time, and a fourth matrix, $W_O$, joins
# what they found. From now on the exercises are parts of one network.

# %% [markdown]
# ## You need
#
# - one head, `attention`: [lesson 7](../07_value_weighting/07_value_weighting.ipynb);
# - why scores are divided by the root of the *head's* width: [lesson 4](../04_scaling/04_scaling.ipynb);
# - rotation of queries and keys: [lesson 2](../02_position/02_position.ipynb); a test for leaks:
#   [lesson 5](../05_masking/05_masking.ipynb).
#
# What today's answers may call, all of it from earlier lessons and imported above:
#
# | name | takes | gives |
# |---|---|---|
# | `attention(Q, K, V, mask=None)` | `(..., T_q, d_k)`, `(..., T_k, d_k)`, `(..., T_k, d_v)`, a mask that broadcasts to `(..., T_q, T_k)` | `(out (..., T_q, d_v), weights (..., T_q, T_k))`; scores over $\sqrt{d_k}$; zeros in rows that see nothing |
# | `causal_mask(T_q, T_k=None)` | two ints | `(T_q, T_k)`, True = may attend |
# | `equivariance_error(f, x, perm)` | a function of `(T, D)`, x, a permutation | the largest change, a float |
# | `leaks_future(f, x)` | a function of `(B, T, D)`, x | a bool |
# | `apply_rope(x, positions)` | `(..., T, D)`, `(T,)` | `(..., T, D)` |
#
# Two questions from earlier lessons. Answer before you open them.
#
# <details><summary>Lesson 7: can the output of one head leave the range of its values?</summary>
#
# No. It is a weighted average, channel by channel, so it lies between the smallest and the largest value.
#
# </details>
#
# <details><summary>Lesson 0: what is the difference between <code>view(3, 2)</code> and <code>transpose(0, 1)</code> for
# a tensor of shape (2, 3)?</summary>
#
# Both give shape (3, 2). `transpose` swaps the axes: the number at row i, column j goes to row j, column i. `view` keeps
# the numbers in the order in which they lie in memory and cuts them into rows anew.
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
#   it.
#
# </details>
#
# In this lesson every `x` is exactly `(B, T, D)`, masks broadcast to `(B, H, T_q, T_k)`, and `F.scaled_dot_product_attention`,
# `nn.MultiheadAttention` and `F.multi_head_attention_forward` are forbidden in all answers but that of 8.5, which counts
# numbers and runs nothing.

# %% [markdown]
# ## One average is not enough
#
# In *jane visits africa in september* the word *visits* has two questions: who, and where? Suppose one head answers both
# and gives half of its weight to *jane*, half to *africa*. With two channels, *jane* = (2, 0) and *africa* = (0, 4):
#
# $$\tfrac12\,(2, 0) + \tfrac12\,(0, 4) = (1, 2)$$
#
# **Predict.** What does *visits* get in *africa visits jane*, with the same weights?
#
# <details><summary>Answer</summary>
#
# The same (1, 2). An average does not say who brought what. If *visits* needs to know which of the two is the visitor,
# one head with equal weights cannot tell it.
#
# </details>
#
# Two heads can: one looks at the first name, the other at the second, and each result has channels of its own. The paper
# says it in one sentence: with a single head, averaging inhibits this. Let us put the sentence to a test.
#
# **The task.** Eight tokens, each with four random numbers. Token $t$ has to find out what changed: the numbers of token
# $t-1$ *minus* the numbers of token $t-2$. We train a layer of torch's ready-made attention to do it, and measure the
# share of the variance that it misses: 1 is everything, 0 is nothing.


# %%
def what_changed(n, T=8):
    numbers = torch.randn(n, T, 4)  # (n, T, 4)
    positions = 2 * torch.eye(8)[:T].expand(n, T, 8)  # (n, T, 8): a one-hot vector of the place
    x = torch.cat([numbers, positions, torch.zeros(n, T, 4)], dim=-1)  # (n, T, 16)
    return x, numbers[:, 1:-1] - numbers[:, :-2]  # targets of tokens 2, 3, ...: (n, T - 2, 4)


def missed(layer, n, T=8):
    x, target = what_changed(n, T)
    found = layer(x)[:, 2:, 6:10]  # (n, T - 2, 4): the four channels in the middle
    return (found - target).pow(2).mean() / 2  # the variance of a target is 2


def train(layer, parameters):
    optimizer = torch.optim.Adam(parameters, lr=0.02)
    for _ in range(300):
        loss = missed(layer, 64)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


# %% [markdown]
# **Predict before you run.** Three layers of width 16: one head with $W_O$; two heads without it (they just lie side by
# side); two heads with it. What share will each of them miss? The target is a *difference*, and the four channels in the
# middle belong half to head 0 and half to head 1.


# %%
def share_missed(num_heads, with_W_o):
    torch.manual_seed(0)
    net = nn.MultiheadAttention(16, num_heads, batch_first=True)
    if not with_W_o:
        net.out_proj.weight.data = torch.eye(16)  # heads side by side, nothing more
        net.out_proj.requires_grad_(False)

    def layer(x):
        return net(x, x, x, need_weights=False)[0]  # (n, T, 16)

    train(layer, [p for p in net.parameters() if p.requires_grad])
    with torch.no_grad():
        return missed(layer, 2000).item()


cases = {"1 head, W_O": (1, True), "2 heads, no W_O": (2, False), "2 heads, W_O": (2, True)}
shares = {name: share_missed(*case) for name, case in cases.items()}
figures.two_questions(shares)

# %% [markdown]
# <details><summary>Answer: why exactly one half?</summary>
#
# At token $t$ one head gives weight $w$ to token $t-1$, whose numbers are $a$, and $1-w$ to token $t-2$, whose numbers are
# $b$. Its values can be any linear map of these numbers, but it is the *same* map for both, so all it can know is $w a + (1-w) b$. As long as $w$ does not
# depend on the numbers, the best guess of $a - b$ from that leaves a share of ½ or more: with $w = ½$ it knows only the
# sum, and the difference stays completely open (1); with $w = 1$ it knows $a$ and nothing of $b$ (½).
#
# But *may* $w$ depend on the numbers? It may: queries and keys are made of the same vectors. Here 300 steps bring nothing
# of the kind (0.50 to 0.51 from three starts). With only three tokens and 2,000 steps, five trainings of twelve found a use
# for it and missed 0.40 to 0.43; the other seven stayed near 0.50. So ½ is where a single head stops unless it bends its
# weights to the numbers, and two heads need no such trick.
#
# Two heads without $W_O$ know $a$ and $b$, but each channel belongs to one head alone. A channel that holds $a$ and no
# $b$ misses one half again. $W_O$ may take both with opposite signs: nothing is missed.
#
# </details>
#
# Two things to keep. **Several heads** look at several places. **$W_O$** lets one channel use what several heads found.
# All three layers have the same width; the two with $W_O$ have the same number of parameters.

# %% [markdown]
# ## Cut the channels into heads
#
# Two heads in a model of width 6: should each head have matrices of its own, $3 \times 6$? They may, but one product
# does all of them at once. Stack the heads' matrices on top of each other: one `nn.Linear(6, 6)`, whose first three
# outputs belong to head 0 and whose last three belong to head 1. What is left to do is to cut.
#
# On paper: one sentence with two tokens and six channels, two heads.
#
# | | channels |
# |---|---|
# | token 0 | 0 1 2 · 3 4 5 |
# | token 1 | 6 7 8 · 9 10 11 |
#
# **Predict.** What should head 0 hold, as a table of two rows? What would `x.view(1, 2, 2, 3)` put there?
#
# <details><summary>Answer</summary>
#
# Head 0 is the left half of both tokens: rows (0, 1, 2) and (6, 7, 8). `view` cuts the twelve numbers in the order of
# memory: rows (0, 1, 2) and (3, 4, 5). Its head 0 has never heard of token 1.
#
# </details>

# %%
x = torch.arange(12.0).view(1, 2, 6)  # (B=1, T=2, D=6)
figures.cut(x[0], 2)

# %% [markdown]
# ### Exercise 8.1 `split_heads`
#
# Difficulty 2 of 5 · Importance 5 of 5 · 8 minutes · 12 points
#
# $$\text{out}_{b,h,t,c} = x_{b,\,t,\,h\,D/H + c}$$
#
# `x (B, T, D)`, `num_heads` = H, an int → `(B, H, T, D/H)`. Consecutive columns belong to one head. Heads stand in front
# of the tokens, so that `attention` of lesson 7 takes them for leading dimensions and works on all heads at once.
# `ValueError` if H does not divide D.


# %% nbgrader={"solution": "split_heads"}
def split_heads(x, num_heads):
    """Cut the channels into heads: head h owns the columns h·D/H to (h + 1)·D/H - 1.

    x (B, T, D), num_heads H: int -> (B, H, T, D/H), same dtype. ValueError if H does not divide D.
    """
    ### BEGIN SOLUTION
    B, T, D = x.shape
    if D % num_heads:
        raise ValueError(f"{D} channels do not divide among {num_heads} heads")
    return x.view(B, T, num_heads, D // num_heads).transpose(1, 2)  # (B, H, T, D/H)
    ### END SOLUTION


# %% nbgrader={"grade": "split_heads"}
check(split_heads)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# Two steps. First only the last axis is cut in two, an axis for the heads and one for their channels; nothing moves.
# Then one axis has to change its place.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Try it on the twelve numbers above. Head 0 must hold (0, 1, 2) and (6, 7, 8). The remainder `%` tells whether the
# heads fit.
#
# </details>

# %% [markdown]
# ### Exercise 8.2 `merge_heads`
#
# Difficulty 2 of 5 · Importance 5 of 5 · 5 minutes · 10 points
#
# And back: put the heads side by side again.
#
# `x (B, H, T, D/H)` → `(B, T, D)`, so that `merge_heads(split_heads(x, H))` is `x`.


# %% nbgrader={"solution": "merge_heads"}
def merge_heads(x):
    """Put the heads back side by side: the inverse of split_heads.

    x (B, H, T, D/H) -> (B, T, D), same dtype.
    """
    ### BEGIN SOLUTION
    B, H, T, d_head = x.shape
    return x.transpose(1, 2).reshape(B, T, H * d_head)  # (B, T, D)
    ### END SOLUTION


# %% nbgrader={"grade": "merge_heads"}
check(merge_heads)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# Undo the two steps of `split_heads` in the opposite order. Cutting and gluing alone never move a number in memory.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# After two axes have changed places the numbers no longer lie in memory in the order of the shape, and `view` refuses.
# `reshape` does the same as `view` where it can, and copies the numbers where it must.
#
# </details>

# %% [markdown]
# ## All heads at once
#
# Everything is there. With $x$ as query, key and value, or with other sentences as key and value:
#
# $$\text{MultiHead}(Q, K, V) = \text{merge}(\text{head}_0, \dots, \text{head}_{H-1})\, W_O^\top + b_O, \qquad \text{head}_h =
# \text{Attention}(Q_h, K_h, V_h)$$
#
# where $Q_h$, $K_h$, $V_h$ are the slices of the three projections.

# %%
figures.shapes(B=3, T=5, D=64, H=4)

# %% [markdown]
# Heads do not talk to each other on the way. That is why no loop is needed: for `attention` a head is one more leading
# dimension. Two details follow from the formula.
#
# - **The mask** is the same for all heads if its axis of heads has size 1. A padding mask comes as `(B, 1, 1, T_k)`, a
#   causal one as `(T_q, T_k)`.
# - **A query that sees nothing** gets zeros from every head. $W_O$ turns zeros into its bias $b_O$, and that is the output.

# %% [markdown]
# ### Exercise 8.3 `MultiHeadAttention`
#
# Difficulty 3 of 5 · Importance 5 of 5 · 30 minutes · 26 points
#
# `MultiHeadAttention(d_model, num_heads)` has four layers `W_q`, `W_k`, `W_v`, `W_o`, each an `nn.Linear` from `d_model` to
# `d_model` **with bias**, and keeps `num_heads`. If the heads do not divide `d_model`, making one raises a `ValueError`.
#
# `forward(query, key=None, value=None, mask=None)` returns a tuple `(out, weights)`:
#
# - `query (B, T_q, D)`, `key` and `value (B, T_k, D)` → `out (B, T_q, D)`, `weights (B, H, T_q, T_k)`.
# - Without a key the query is the key (self-attention). Without a value the key is the value. A value that is given is
#   used, with a key beside it or without.
# - `mask` is None or boolean and broadcasts to `(B, H, T_q, T_k)`. Right for scores up to ±10,000, blocked ones too
#   (beyond ±300, what float32 rounds off is no mistake).
# - A row that sees nothing in a head: zero weights there; in every head: output $b_O$. No NaN in values or gradients.
# - The same in training mode: no dropout here.
#
# The `attention` of lesson 7 is imported above, in its finished form.


# %% nbgrader={"solution": "MultiHeadAttention"}
class MultiHeadAttention(nn.Module):
    """Multi-head attention, section 3.2.2 of Vaswani et al. (2017); ValueError if num_heads does
    not divide d_model.
    query (B, T_q, D), key and value (B, T_k, D), mask bool that broadcasts to (B, H, T_q, T_k),
    True = may attend -> (out (B, T_q, D), weights (B, H, T_q, T_k)), same dtype; no dropout.
    """

    def __init__(self, d_model, num_heads):
        super().__init__()
        ### BEGIN SOLUTION
        if d_model % num_heads:
            raise ValueError(f"{d_model} channels do not divide among {num_heads} heads")
        self.num_heads = num_heads
        self.W_q, self.W_k, self.W_v, self.W_o = (nn.Linear(d_model, d_model) for _ in range(4))
        ### END SOLUTION

    def forward(self, query, key=None, value=None, mask=None):
        ### BEGIN SOLUTION
        key = query if key is None else key  # (B, T_k, D)
        value = key if value is None else value  # (B, T_k, D)
        Q = split_heads(self.W_q(query), self.num_heads)  # (B, H, T_q, D/H)
        K = split_heads(self.W_k(key), self.num_heads)  # (B, H, T_k, D/H)
        V = split_heads(self.W_v(value), self.num_heads)  # (B, H, T_k, D/H)
        heads, weights = attention(Q, K, V, mask)  # (B, H, T_q, D/H), (B, H, T_q, T_k)
        return self.W_o(merge_heads(heads)), weights  # (B, T_q, D)
        ### END SOLUTION


# %% nbgrader={"grade": "MultiHeadAttention"}
check(MultiHeadAttention)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# `__init__` is a check and five lines. `forward`: fill in what is missing, project and split three times, attend once,
# merge, project once more. Write the shape beside each line.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Where the key falls back on the query, do it before the value falls back on the key. The mask goes on as it came, and
# rows that see nothing are looked after by `attention` already.
#
# </details>

# %% [markdown]
# Here is what it does. The course's translator is trained already (lesson 11 trains it again, in front of you). Its numbers
# are put into your module, and your module takes the place of every attention in the encoder and in the decoder.

# %%
at_work(MultiHeadAttention)

# %% [markdown]
# ## What the output matrix is for
#
# Cut $W_O$ into the columns that belong to the heads, $W_O = (W_O^0 \mid W_O^1 \mid \dots)$. A row times a matrix is a sum, so
#
# $$\text{merge}(\text{head}_0, \dots, \text{head}_{H-1})\,W_O^\top = \sum_h \text{head}_h\,(W_O^h)^\top$$
#
# **The heads' findings are added up, each sent through a matrix of its own.** Without $W_O$ a head can only write into
# its own $D/H$ columns. Look at *visits* in the first encoder block of the translator. (Pictures count the translator's
# blocks and heads from 1: head 1 is head 0 of the formulas.)

# %%
sentence = "jane visits africa in september"
mha = or_given(MultiHeadAttention)(64, 4)
mha.load_state_dict(translator.part_state("encoder.blocks.0.attention"))
words = figures.embedded(sentence)  # (1, T=5, D=64): word vectors with positions added
figures.what_heads_write(mha, words, token=1)

# %% [markdown]
# **Predict.** In the translator $W_O$ is replaced by the identity in one place, the last attention to the English words.
# Everything else stays trained. The loss was 0.0002 nats a word. Does this harm more or less than switching that attention
# off, so that it adds nothing but its bias?
#
# <details><summary>Answer</summary>
#
# More: 1.6 nats a word against 0.7. The heads find the right words as before, but what they say arrives in the wrong
# channels. This network was *trained* with $W_O$, so the test says that it relies on it, not that no network could do
# without. The small task at the top is the fair test: there the layer without $W_O$ was trained, and it still missed one
# half.
#
# </details>

# %%
figures.without_output_matrix()

# %% [markdown]
# For a **single** head $W_O$ brings nothing new: $W_O W_V$ is one matrix, and $W_V$ could have been that matrix. It starts
# to matter with the second head.

# %% [markdown]
# ### Exercise 8.4 `load_from_torch`
#
# Difficulty 2 of 5 · Importance 3 of 5 · 10 minutes · 14 points
#
# A strong test of a module is a transplant: put the weights of a trusted implementation into yours and compare the
# outputs. `nn.MultiheadAttention` keeps the three projections stacked on top of each other:
#
# | theirs | shape | holds |
# |---|---|---|
# | `in_proj_weight` | `(3D, D)` | queries, keys, values, in this order |
# | `in_proj_bias` | `(3D,)` | the same |
# | `out_proj` | an `nn.Linear(D, D)` | what you call `W_o` |
#
# `load_from_torch(mine, theirs)` copies all numbers of `theirs`, an `nn.MultiheadAttention(D, H, batch_first=True)` with
# biases, into `mine`, a `MultiHeadAttention(D, H)`. In place; what it returns does not matter. The two modules share no
# memory afterwards, and `theirs` is left as it was. Do not rely on the biases being zero. (New parameters in place of the
# old ones would hold the right numbers too. But an optimizer that was made before goes on moving the old ones, and the
# module learns nothing any more. So copy into what is there.)


# %% nbgrader={"solution": "load_from_torch"}
def load_from_torch(mine, theirs):
    """Copy the numbers of an nn.MultiheadAttention into a MultiHeadAttention of the same size, in
    place.

    theirs: batch_first=True, with biases, no dropout. The two share no memory afterwards.
    """
    ### BEGIN SOLUTION
    layers = (mine.W_q, mine.W_k, mine.W_v, mine.W_o)
    weights = (*theirs.in_proj_weight.chunk(3), theirs.out_proj.weight)  # four of (D, D)
    biases = (*theirs.in_proj_bias.chunk(3), theirs.out_proj.bias)  # four of (D,)
    with torch.no_grad():
        for layer, weight, bias in zip(layers, weights, biases, strict=True):
            layer.weight.copy_(weight)
            layer.bias.copy_(bias)
    ### END SOLUTION


# %% nbgrader={"grade": "load_from_torch"}
check(load_from_torch)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# There are eight tensors to fill: four weights, four biases. `chunk` cuts a tensor into equal pieces along its first
# axis.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Every tensor has a method that copies numbers into it where it stands. Autograd does not want a parameter to be
# overwritten; `torch.no_grad()` says that this is not part of a computation. A plain `=` would make both modules point
# at the same numbers.
#
# </details>

# %%
torch.manual_seed(0)
theirs = nn.MultiheadAttention(64, 4, batch_first=True).eval()
mine = or_given(MultiHeadAttention)(64, 4)
print(figures.transplant(load_from_torch, mine, theirs))

# %% [markdown]
# ## What do heads cost?
#
# The base model of the paper has width 512 and 8 heads, so a head is 512 / 8 = 64 wide. Work it out first: what happens
# to these numbers if the same model has one head?
#
# | | 1 head of 512 | 8 heads of 64 |
# |---|---|---|
# | parameters of $W_Q$ (with bias) | 512 · 512 + 512 = 262,656 | the same matrix, cut |
# | products for all scores of T tokens | T² · 512 | 8 · T² · 64: the same |
# | divisor of the scores | √512 = 22.6 | √64 = 8 |
# | weights to keep | T² | **8 T²** |
#
# More heads are free in parameters and in products. They are paid for in tables of weights, and in width: a head of 64
# channels has at most 64 independent directions to tell queries apart by (lesson 3: the rank of $W_Q^\top W_K$ is at
# most $d_k$).

# %%
explore.budget()

# %% [markdown]
# <details><summary>Questions for the explorer: at which number of heads do the weights of a sentence of 512 tokens
# outnumber the parameters? And what is lost at 512 heads?</summary>
#
# 512² = 262,144 weights for each head against 1,050,624 parameters: from 5 heads on (on the
# slider: from 8). At 512 heads each is one channel wide: a query and a key are single numbers, and a head can
# only ask for "larger" or "smaller".
#
# </details>

# %% [markdown]
# ### Exercise 8.5 `attention_parameters`
#
# Difficulty 1 of 5 · Importance 2 of 5 · 3 minutes · 6 points
#
# How many numbers does `MultiHeadAttention(d_model, num_heads)` learn, biases included? Return an int. Think of a formula
# before you count layers.


# %% nbgrader={"solution": "attention_parameters"}
def attention_parameters(d_model, num_heads):
    """The number of parameters of MultiHeadAttention(d_model, num_heads), as a Python int."""
    ### BEGIN SOLUTION
    return 4 * (d_model * d_model + d_model)
    ### END SOLUTION


# %% nbgrader={"grade": "attention_parameters"}
check(attention_parameters)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# One `nn.Linear` has a matrix and a vector. How many layers are there, and which argument does their size not ask for?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# For 512 and 8 the answer is a little over a million. The table above has one of the layers.
#
# </details>

# %%
one, all_of_it = or_given(attention_parameters)(64, 4), sum(number.numel() for number in translator.state().values())
print(f"the translator has six such modules: {6 * one:,} of its {all_of_it:,} numbers")

# %% [markdown]
# ### Exercise 8.6 `fixed_heads`
#
# **Find the bug** · Difficulty 3 of 5 · Importance 5 of 5 · 10 minutes · 12 points
#
# The next function does what a well-read Transformer tutorial did for years (link under *Further reading*). Its shapes
# are right, nothing raises, and the tutorial's own training test passed.


# %%
def published_heads(x, W_q, W_k, W_v, W_o, num_heads, mask=None):
    B, T, D = x.shape
    q, k, v = (x @ W.T for W in (W_q, W_k, W_v))  # (B, T, D) each
    q, k, v = (p.reshape(B, T, num_heads, D // num_heads).permute(0, 2, 1, 3) for p in (q, k, v))
    values, weights = attention(q, k, v, mask)  # (B, H, T, D/H)
    return values.reshape(B, T, D) @ W_o.T  # (B, T, D)


# %% [markdown]
# Two experiments. First your leak test of lesson 5: with a causal mask, does an output change when later tokens do?

# %%
g = torch.Generator().manual_seed(0)
four = torch.randn(4, 16, 16, generator=g) / 4  # W_q, W_k, W_v, W_o: (16, 16) each
tokens = torch.randn(2, 8, 16, generator=g)  # (B=2, T=8, D=16)
print("leaks the future:", leaks_future(lambda x: published_heads(x, *four, 2, causal_mask(8)), tokens))
figures.leak(lambda x: published_heads(x, *four, 2, causal_mask(8)), tokens[0])

# %% [markdown]
# It does. Output 0 is moved by token 1, output 3 by tokens 4 to 7. And output 4 is blind: only tokens 0 and 1 move it.
#
# Second: can it learn? Train it on *what changed*, with eight tokens, no mask. Then give it seven.

# %%
torch.manual_seed(0)
trained = [nn.Parameter(nn.init.xavier_uniform_(torch.empty(16, 16))) for _ in range(4)]


def layer(x):
    return published_heads(x, *trained, 2)  # (n, T, 16)


train(layer, trained)
with torch.no_grad():
    print("share missed:", {T: round(missed(layer, 2000, T).item(), 2) for T in (8, 7)})

# %% [markdown]
# On eight tokens it is perfect. The mixing is always the same for eight tokens, and this layer has learned to undo it. On
# seven it misses 6.4 here, and 0.6 to 4.1 from eleven other starts, where no answer at all would miss 1.00. **It trains, so the loss curve does not show the bug.**
# What shows it is a test of what must *not* change.
#
# Find the bug and write the function as it should be. `x (B, T, D)`, four matrices `(D, D)` without biases, `num_heads` an
# int that divides D, `mask` None or boolean that broadcasts to `(B, H, T, T)` → `(B, T, D)`. A row that sees nothing gives
# zeros. Right for scores up to ±10,000, blocked ones too (beyond ±300, what float32 rounds off is no mistake). You may
# use earlier exercises.


# %% nbgrader={"solution": "fixed_heads"}
def fixed_heads(x, W_q, W_k, W_v, W_o, num_heads, mask=None):
    """Multi-head self-attention from its four matrices, without biases.

    x (B, T, D), W_q, W_k, W_v, W_o (D, D), float32 or float64; num_heads: int that divides D;
    mask None or bool that broadcasts to (B, H, T, T), True = may attend -> (B, T, D), same dtype.
    """
    ### BEGIN SOLUTION
    Q = split_heads(x @ W_q.T, num_heads)  # (B, H, T, D/H)
    K = split_heads(x @ W_k.T, num_heads)  # (B, H, T, D/H)
    V = split_heads(x @ W_v.T, num_heads)  # (B, H, T, D/H)
    heads, _ = attention(Q, K, V, mask)  # (B, H, T, D/H)
    return merge_heads(heads) @ W_o.T  # (B, T, D)
    ### END SOLUTION


# %% nbgrader={"grade": "fixed_heads"}
check(fixed_heads)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# Follow the shapes from line to line. Going in, the axis of heads was cut out and moved. Going out, two axes become one.
# Which two stand next to each other at that moment?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# With the twelve numbers of the first figure: what would the last line make of head 0 with rows (0, 1, 2) and (6, 7, 8),
# and head 1 with rows (3, 4, 5) and (9, 10, 11)? It should be 0 to 11 in order.
#
# </details>

# %% [markdown]
# Now back to the two experiments, with your repair in the place of the published function. **Predict** all three answers.

# %%
mended = or_given(fixed_heads)
print("leaks the future:", leaks_future(lambda x: mended(x, *four, 2, causal_mask(8)), tokens))

torch.manual_seed(0)
trained = [nn.Parameter(nn.init.xavier_uniform_(torch.empty(16, 16))) for _ in range(4)]
train(lambda x: mended(x, *trained, 2), trained)
with torch.no_grad():
    print("share missed:", {T: round(missed(lambda x: mended(x, *trained, 2), 2000, T).item(), 2) for T in (8, 7)})

# %% [markdown]
# No leak, and nothing missed, on seven tokens as on eight, though it was trained on eight only. Same start, same steps,
# and both losses end at 0.00. The difference is that now a head reads tokens and not pieces of memory.

# %% [markdown]
# ## Do heads know where words stand?
#
# With several heads, say the notes, "the model can better capture **positional information**". First test: shuffle the
# tokens. A layer that knows places must answer differently; a blind one gives the same rows, shuffled. `equivariance_error` of
# lesson 2 measures the difference, once without a mask and once, as a control, under a causal mask.

# %%
torch.manual_seed(0)
order = torch.randperm(8)
for num_heads in (1, 2, 4, 8):
    layer, x = or_given(MultiHeadAttention)(16, num_heads), torch.randn(8, 16)
    gap = equivariance_error(lambda x, f=layer: f(x[None])[0][0], x, order)
    masked = equivariance_error(lambda x, f=layer: f(x[None], mask=causal_mask(8))[0][0], x, order)
    print(f"{num_heads} heads: gap {gap:.0e}, under a causal mask {masked:.2f}")

# %% [markdown]
# Without a mask, nothing but rounding, whatever the number of heads: **heads as such know no order.** A causal mask is
# another matter. It lets each token see those before it, so a row depends on who came first, and a decoder can learn
# something about places from the mask alone. An encoder has no such mask. There, places must come in with the vectors
# (sinusoids, lesson 2), or be put into queries and keys themselves: `apply_rope` turns each head's queries and keys by an angle
# that grows with the place, and leaves the values alone.

# %%
split = or_given(split_heads)
bare = figures.embedded(sentence, positions=False)  # (1, 5, 64): words alone
Q, K = split(mha.W_q(bare), 4), split(mha.W_k(bare), 4)  # (1, 4, 5, 16) each


def rotated_scores(start):
    positions = start + torch.arange(5)  # (5,)
    return apply_rope(Q, positions) @ apply_rope(K, positions).transpose(-2, -1) / 16**0.5  # (1, 4, 5, 5)


moved = (rotated_scores(0) - rotated_scores(7)).abs().max().item()
turned = (rotated_scores(0) - Q @ K.transpose(-2, -1) / 16**0.5).abs().max().item()
print(f"rotation changes scores by up to {turned:.2f}; 7 places further on they change by {moved:.0e}")

# %% [markdown]
# These are the queries and keys of trained heads. Rotation moves their scores, but moving the whole sentence does not:
# only the *distance* between two words counts, with its sign. The curves show it for one pair of words, *visits* asking
# *africa*. Look at the scale before you look at the shape.

# %%
figures.by_distance(Q[0, :, 1], K[0, :, 2], "visits", "africa")

# %% [markdown]
# Waves over the signed distance, another one in each head, and so shallow that no softmax would notice: from top to bottom
# a few hundredths of a score. That is no fault of the rotation. The scores of these bare words are that small to begin
# with: this network was trained with place vectors, and without them its first heads find little to tell apart.
# Rotation has to be there while a network learns.

# %% [markdown]
# Second test: what do **trained** heads do? The translator adds sinusoids to its words. Take the four heads of its second
# encoder block, and average over 200 sentences how much weight a query gives to the token 3 places before it, 2 before,
# ... 3 after; once with the places and once with all place vectors set to zero.

# %%
figures.looks_by_distance()

# %% [markdown]
# With the places, head 4 puts 47 % on the token before it and 9 % on the one after: it looks back. Head 1 puts 10 % on the
# token before, 35 % on the next and 27 % on the one after that: it looks ahead. Without the places the four curves fall
# together, near the 10 to 20 % that any word nearby would get. So the sentence in the notes is half right: **these trained
# heads do use positions, and they read them from the vectors.** Having several gives room to look both ways at once.

# %% [markdown]
# ## What do heads specialize in?
#
# In English articles and adjectives come before their noun, and in French their form depends on that noun: *the white
# house* is *la maison blanche*, feminine three times. Somebody has to look ahead. **Predict:** which words should *the* and
# *white* look at? Here is what all eight heads of the encoder see.

# %%
house = "a clever teacher sees the white house"
seen = figures.encoder_weights(house)  # (blocks=2, H=4, T=7, T=7)
figures.eight_heads(seen, house.split())

# %% [markdown]
# Head 1 of block 2 is the one: *a* and *clever* give 0.98 of their weight to *teacher*, *the* and *white* 0.98 and 0.99 to
# *house*. Head 4 of the same block lets *sees* look back at *teacher*, who does it; but it is the head that looks at the
# word before, whatever that word is. The heads of block 1 look everywhere.
#
# But pictures of heads are like clouds: one sees what one looks for. So measure. Which head does the translator miss most if
# it is cut out?

# %%
figures.without_each_head()

# %% [markdown]
# One head in eight, the one that finds the noun, costs 0.058 nats a word, more than three hundred times the loss of the
# whole translator. The others cost two thousandths at most, and for two reasons. The other three of block 2 can go
# together, and the loss goes from 0.00016 to 0.00024: hardly anybody needs what they do. The four of block 1 cost 0.003
# if one adds up what each costs
# alone, and 0.025 if they go together: one stands in for another. That most heads can be spared is common in large networks
# as well (Michel et al., 2019, *Are Sixteen Heads Really Better than One?*).
#
# **Where intuition stops.** "This head finds the noun" is a story about weights. That the translator gets worse without it
# is a measurement, but of this network on these sentences. Three more translators were trained by the same recipe from other
# seeds. Two of them miss no head at all: the worst costs 0.0008 nats a word. The third misses one, by 0.011 or 0.022 on two
# machines, which round differently, and it stands in block 1. And here head 4 of block 2, with a picture just as clear, can be spared.

# %%
explore.heads()

# %% [markdown]
# <details><summary>Questions for the explorer: in <em>jane visits africa in september</em>, what does head 4 of block 2 do, and
# what is left of it without places? Does head 1 of block 2 still find the noun without them?</summary>
#
# Head 4 looks at the word before: 0.92 from *visits* to *jane*, 0.71 from *africa* to *visits*, 0.80 from *in* to *africa*.
# Without places that line is gone. Head 1 loses most of its aim, too. It can no longer tell which of two nouns is the next
# one, but that is not all: over 600 sentences, articles and adjectives give their noun 0.93 of their weight with places and
# 0.21 without where there are two nouns, and 0.91 and 0.43 where there is only one. It has learned with places, and leans on them.
#
# </details>

# %% [markdown]
# ### Exercise 8.7 `head_importance`
#
# **Extra** · Difficulty 3 of 5 · Importance 3 of 5 · 20 minutes · 10 bonus points
#
# A cheap guess of what a head is worth, without any test sentences: how far does the output move if the head's slice is
# zero before $W_O$?
#
# $$\text{importance}_h = \big\lVert\, \text{out} - \text{out without head } h \,\big\rVert$$
#
# the Frobenius norm over the whole `(B, T, D)` output of `mha(x)`: the root of the sum of all squares.
#
# `mha` a `MultiHeadAttention`, `x (B, T, D)` → `(H,)`. Need not be differentiable. `mha` is left as it was: the same
# parameters with the same numbers.


# %% nbgrader={"solution": "head_importance"}
def head_importance(mha, x):
    """How far the output of mha(x) moves without each head: Frobenius norms.

    mha: MultiHeadAttention; x (B, T, D) -> (H,), dtype of x. No gradient is asked for; mha is left
    as it was.
    """
    ### BEGIN SOLUTION
    d_head = x.shape[-1] // mha.num_heads
    changes = []
    with torch.no_grad():
        out = mha(x)[0]  # (B, T, D)
        for h in range(mha.num_heads):
            own = slice(h * d_head, (h + 1) * d_head)
            without = copy.deepcopy(mha)
            without.W_o.weight[:, own] = 0  # (D, D/H): what W_o makes of this head
            changes.append((out - without(x)[0]).norm())
    return torch.stack(changes)  # (H,)
    ### END SOLUTION


# %% nbgrader={"grade": "head_importance"}
check(head_importance)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# Zero before $W_O$, or zero in those numbers of $W_O$ that the head meets: the same. Which are they, rows or columns? `W`
# is `(out, in)`.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Whoever changes a module has to put it back, even if something raises in between. A copy needs no putting back. Or you
# change nothing at all: the formula with the sum over heads above says what one head adds.
#
# </details>

# %%
figures.importance_against_damage(or_given(head_importance))

# %% [markdown]
# Size is a guess, not a verdict. Here, over many sentences, the loudest head is the one that is missed, but head 4 of block 2, nearly as loud, can
# go without anybody noticing. A head may say loudly what nobody needs, or what others say as well.

# %% [markdown]
# ### Exercise 8.8 `grouped_query_attention`
#
# **Extra** · Difficulty 3 of 5 · Importance 3 of 5 · 15 minutes · 10 bonus points
#
# While a model writes, it keeps the keys and values of all earlier tokens (lesson 10). With 32 heads of width 128, 32
# layers and 8192 tokens in 16 bits that is 4 GiB for one conversation. *Grouped queries* (Ainslie et al., 2023): all H heads keep their
# queries, but neighbors share keys and values. With 8 groups it is 1 GiB.
#
# `Q (B, H, T_q, d_k)`, `K` and `V (B, G, T_k, d_k)`, H divisible by G → `(B, H, T_q, d_k)`. Query head $h$ uses group
# $\lfloor h / (H/G) \rfloor$: with 6 heads and 3 groups, heads 0 and 1 use group 0. Scores over $\sqrt{d_k}$. `mask` is
# None or broadcasts to `(B, H, T_q, T_k)`; a row that sees nothing gives zeros. Right for scores up to ±10,000
# (beyond ±300, what float32 rounds off is no mistake).


# %% nbgrader={"solution": "grouped_query_attention"}
def grouped_query_attention(Q, K, V, mask=None):
    """Attention in which H/G neighboring query heads share one head of keys and values
    (Ainslie et al., 2023).

    Q (B, H, T_q, d_k), K and V (B, G, T_k, d_k), H divisible by G, float32 or float64;
    mask None or bool that broadcasts to (B, H, T_q, T_k) -> (B, H, T_q, d_k), same dtype.
    """
    ### BEGIN SOLUTION
    group = Q.shape[1] // K.shape[1]  # H/G
    K = K.repeat_interleave(group, dim=1)  # (B, H, T_k, d_k)
    V = V.repeat_interleave(group, dim=1)  # (B, H, T_k, d_k)
    return attention(Q, K, V, mask)[0]  # (B, H, T_q, d_k)
    ### END SOLUTION


# %% nbgrader={"grade": "grouped_query_attention"}
check(grouped_query_attention)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# If K and V had H heads, it would be plain attention. How often does each group have to stand there, and in which order:
# 0 1 2 0 1 2 or 0 0 1 1 2 2?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# torch has two ways to repeat along an axis: the whole axis again and again, or each entry several times in a row. Only
# one puts neighbors into one group.
#
# </details>

# %% [markdown]
# **Predict before you run.** The translator was trained with four heads of keys and values in every attention. We average
# them into two groups, then into one, without any further training. What happens to the loss of 0.0002 nats a word?

# %%
figures.shared_keys(or_given(grouped_query_attention))

# %% [markdown]
# <details><summary>Answer</summary>
#
# 1.8 nats a word with two groups, and 5.4 with one, a little worse than a blind guess (ln 194 = 5.3). The saving is not
# for free, and not to be had afterwards: Ainslie et al. average the heads of a trained model too, and then train on.
#
# </details>

# %% [markdown]
# ## At work
#
# Your own cutting and gluing in the translator, and then the published way of gluing. It is one line; the greedy translation
# and the loss say what it does to a network that was trained with the right one.

# %%
at_work(split_heads, merge_heads)


# %%
def published_merge(x):
    B, H, T, d_head = x.shape
    return x.reshape(B, T, H * d_head)  # (B, T, D), tokens and heads mixed


at_work(merge_heads=published_merge)

# %% [markdown]
# The loss goes from 0.0002 to 6.7 nats a word; picking one of the 194 entries of the French vocabulary blindly costs ln 194 = 5.3. The missing
# scale of lesson 4 left most translations right. Here every token gets other tokens' numbers, and none is. Note the
# difference: a network *trained* with the bug learned to live with it (exercise 8.6), a network trained without it cannot.

# %% [markdown]
# ### Quiz 8.1
#
# A layer of width 512 gets 8 heads instead of 1. What grows eightfold?
#
# - **a** its parameters
# - **b** the products for its scores
# - **c** the attention weights it keeps

# %% nbgrader={"solution": "quiz_1"}
quiz_1 = None  # "a", "b" or "c"
### BEGIN SOLUTION
quiz_1 = "c"
### END SOLUTION

# %% nbgrader={"grade": "quiz_1"}
check(quiz_1=quiz_1)

# %% [markdown]
# ### Quiz 8.2
#
# An encoder has several heads, no mask and no positions of any kind. Can one of its heads learn to look at the previous word?
#
# - **a** yes, that is what several heads are for
# - **b** no, nothing tells it which word is the previous one
# - **c** yes, if $W_O$ sorts the heads

# %% nbgrader={"solution": "quiz_2"}
quiz_2 = None  # "a", "b" or "c"
### BEGIN SOLUTION
quiz_2 = "b"
### END SOLUTION

# %% nbgrader={"grade": "quiz_2"}
check(quiz_2=quiz_2)

# %% [markdown]
# ### Quiz 8.3
#
# $W_O$ is replaced by the identity. What is lost?
#
# - **a** a head can write into its own columns only
# - **b** all heads get the same weights
# - **c** the output is $D/H$ wide instead of $D$

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
# A classmate wants to save memory and proposes one head of width 512 instead of eight of width 64: "It has the same number
# of parameters, and eight times the room for its queries and keys, so it can only be better." Answer them. Say what stays
# the same, what one head can do better, and what it cannot do at all; use an example with numbers. Then say what
# experiment would decide for a given network.
#
# <details><summary>For those who learn alone: what a good answer has</summary>
#
# - what is equal (parameters, products) and what is not (tables of weights, width of a head);
# - why one average cannot keep two findings apart, with numbers, and that eight heads need $W_O$ to combine theirs;
# - an experiment that could come out either way, and what would be compared.
#
# </details>

# %% [markdown] nbgrader={"written": "written_1"}
# <details><summary>Model answer and marking scheme</summary>
#
# **Model answer.** The number of parameters is the same, four matrices of 512 × 512 with their biases, and so is the number
# of products for the scores. One head keeps one table of T × T weights instead of eight, so memory is saved indeed. It also
# has 512 directions in which queries and keys can differ, where a head of 64 has at most 64. But it makes one weighted
# average for each token. If *visits* gives ½ to *jane* = (2, 0) and ½ to *africa* = (0, 4), it gets (1, 2), the same as in
# *africa visits jane*; of a difference of two words, weights that do not look at the numbers miss half. Two heads take one word each, and $W_O$ can
# add or subtract what they found. So more width does not replace a second look. Which is better for a given network is not
# decided by this: train both with the same data and steps and several seeds, and compare the loss on sentences that
# neither has seen; or remove heads one by one from the trained network and see whether the loss moves.
#
# **Marking scheme (15).** 3: parameters and products are the same. 2: tables of weights, or the width of a head, differ, and
# which way. 4: one head makes one average, with a correct example. 2: the heads' findings are combined by $W_O$. 3: an
# experiment with a fair comparison (same data, unseen sentences). 1: more than one seed, or another remark on chance.
#
# </details>

# %% [markdown]
# ## From the notes this course grew from
#
# <details><summary>Claims of the sources, and what this lesson found</summary>
#
# - *"The model can better capture positional information because each head will attend to different segments of the
#   input."* Without places and without a causal mask, heads know no order: the gap under shuffling is rounding. These
#   trained heads do use positions, each in its way, and read them from the vectors. The reason that the notes give fits the
#   pictures (one head looks back, one ahead); nobody has tested here that it is the cause.
# - *"The combination of them will give us a more robust representation."* In one sense that was measured: seven of the
#   encoder's eight heads can be taken out, one at a time, and hardly a word changes. (All seven at once cost 0.18 nats.)
# - *"Each head will capture different contextual information as well, by correlating words in a unique manner."* Some do.
#   Lesson 9 measures how much of a head can be predicted from its neighbors: in the first block nine tenths.
# - *"Multi-head attention allows the model to jointly attend to information from different representation subspaces at
#   different positions. With a single attention head, averaging inhibits this."* (Vaswani et al., 2017, section 3.2.2,
#   quoted in the notes.) The subspaces are the columns of each head, the positions its table of weights. In numbers: a
#   single head whose weights do not look at the numbers misses one half of a difference of two tokens.
# - *"8 heads parallel"*: they are. No head waits for another, and in code they are one leading dimension. The paper's
#   h = 8 and d_k = 64 cost as much as one head of full width, in parameters and products. The tables of weights are eight
#   times as many.
#
# </details>

# %% [markdown]
# ## Recap
#
# - One head makes one average for each token. Several heads make several, and $W_O$ combines them.
# - `split_heads` cuts, then moves an axis; `merge_heads` moves it back, then glues. Skip the move and the shapes are still
#   right.
# - More heads cost no parameters and no products. They cost tables of weights, and width.
# - Without a causal mask heads know no order of their own. They use the positions in the vectors, or rotated queries and
#   keys.
# - What a head is worth is measured by taking it away.
#
# `progress()` in a new cell shows what you have done so far, over all lessons.

# %% [markdown]
# ## Further reading
#
# - Vaswani et al., [Attention Is All You Need](https://arxiv.org/abs/1706.03762) (2017), section 3.2.2 and table 3 (A), where the
#   number of heads is varied.
# - Michel, Levy and Neubig, [Are Sixteen Heads Really Better than One?](https://arxiv.org/abs/1905.10650) (2019); Voita et
#   al., [Analyzing Multi-Head Self-Attention](https://arxiv.org/abs/1905.09418) (2019): heads that look at neighbors, at
#   grammar, at rare words, and what happens when the rest is cut.
# - Ainslie et al., [GQA](https://arxiv.org/abs/2305.13245) (2023); Su et al.,
#   [RoFormer](https://arxiv.org/abs/2104.09864) (2021): rotation.
# - Elhage et al., [A Mathematical Framework for Transformer
#   Circuits](https://transformer-circuits.pub/2021/framework/index.html) (2021): heads as a sum.
# - Andrej Karpathy, [nanoGPT's model.py](https://github.com/karpathy/nanoGPT/blob/master/model.py).
# - The bug of exercise 8.6, found by a reader and mended:
#   [jsbaan/transformer-from-scratch, pull request 6](https://github.com/jsbaan/transformer-from-scratch/pull/6). The same
#   slip on the way in: [reczoo/FuxiCTR, issue 30](https://github.com/reczoo/FuxiCTR/issues/30).
#
# **Next:** [lesson 9](../09_encoder_block/09_encoder_block.ipynb) puts a feed-forward layer, shortcuts and norms around this
# module: the encoder block.
