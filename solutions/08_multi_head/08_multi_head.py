# %% [markdown]
# # 8. Multi-head attention: attending to several positions at once
#
# **In this lesson** you'll run several heads in parallel, combine their outputs, and find out which heads a trained
# network needs.
#
# **Core:** about 75 minutes, with a good moment for a break after Exercise 8.3.

# %% tags=["setup"]
# (empty: the build puts the set-up cell here)

# %%
import copy

import torch
from torch import nn

from helpers import at_work, check, or_finished, translator
from helpers.blocks import apply_rope, attention, causal_mask, equivariance_error, leaks_future
from helpers.drawing.transformer_map import transformer_map
from helpers.lessons.multi_head import explore, figures

# %%
transformer_map("08_multi_head")

# %% [markdown]
# In **multi-head attention** several heads read the same sentence at the same time, and a fourth matrix, $W_O$,
# combines their outputs.

# %% [markdown]
# ## You need
#
# - one head, with the function `attention` ([lesson 7](../07_value_weighting/07_value_weighting.ipynb)), which is
#   imported above and returns `(out (..., T_q, d_v), weights (..., T_q, T_k))`;
# - masks, and a test for leaks ([lesson 5](../05_masking/05_masking.ipynb)).
#
# The [conventions](../00_start_here/00_start_here.ipynb) of lesson 0 hold here too. In this lesson every `x` has shape
# `(B, T, D)`, masks broadcast to `(B, H, T_q, T_k)`, and all answers must do without `F.scaled_dot_product_attention`,
# `nn.MultiheadAttention` and `F.multi_head_attention_forward`.
#
# Here are two questions to warm up:
#
# <details><summary>Lesson 7: can the output of one head leave the range of its values?</summary>
#
# No, because it is a weighted average in each channel.
#
# </details>
#
# <details><summary>Lesson 0: how do <code>view</code> and <code>transpose</code> differ, if both turn two rows of three entries into three rows of two?</summary>
#
# `transpose` swaps the axes, so rows become columns, whereas `view` keeps the entries in memory order and splits them
# into new rows.
#
# </details>

# %% [markdown]
# ## One average is not enough
#
# In *jane visits africa* the word *visits* needs to know who visits and what is visited. Suppose one head has to find
# both, and gives half of its weight to *jane* and half to *africa*, with the values $(2,0)$ and $(0,4)$:
#
# $$\tfrac12\,(2,0)+\tfrac12\,(0,4)=(1,2)$$
#
# In *africa visits jane* you get the same $(1,2)$, because an average doesn't tell you which token contributed what.
# In the words of the Transformer paper, *averaging inhibits* attending to several positions with a single head. Let's
# test this.
#
# Our task has eight tokens with four random channels each. Token $t$ has to find out **what changed**, that is, the
# channels of token $t-1$ *minus* those of token $t-2$. We train PyTorch's ready-made attention for 300 steps and
# measure the fraction of variance that it leaves unexplained, where 0 is perfect and 1 means that it explains nothing.


# %%
def what_changed(n, T=8):
    numbers = torch.randn(n, T, 4)  # (n, T, 4)
    positions = 2 * torch.eye(8)[:T].expand(n, T, 8)  # (n, T, 8), one-hot positions
    x = torch.cat([numbers, positions, torch.zeros(n, T, 4)], dim=-1)  # (n, T, 16)
    return x, numbers[:, 1:-1] - numbers[:, :-2]  # targets of tokens 2, 3, ...: (n, T - 2, 4)


def unexplained(layer, n, T=8):
    x, target = what_changed(n, T)
    found = layer(x)[:, 2:, 6:10]  # (n, T - 2, 4), the four channels in the middle
    return (found - target).pow(2).mean() / 2  # the variance of a target is 2


def train(layer, parameters):
    optimizer = torch.optim.Adam(parameters, lr=0.02)
    for _ in range(300):
        loss = unexplained(layer, 64)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


# %% [markdown]
# We compare one head with $W_O$, two heads without it (we only concatenate their outputs), and two heads with it.
# Predict before you run: *what fraction will each of them leave unexplained?* We read the answer from the four
# channels in the middle of the output, so without $W_O$ two of them belong to each head.


# %%
def after_training(num_heads, with_W_o):
    torch.manual_seed(0)
    net = nn.MultiheadAttention(16, num_heads, batch_first=True)
    if not with_W_o:
        net.out_proj.weight.data = torch.eye(16)  # only concatenated
        net.out_proj.requires_grad_(False)

    def layer(x):
        return net(x, x, x, need_weights=False)[0]  # (n, T, 16)

    train(layer, [p for p in net.parameters() if p.requires_grad])
    with torch.no_grad():
        return unexplained(layer, 2000).item()


cases = {"1 head, W_O": (1, True), "2 heads, no W_O": (2, False), "2 heads, W_O": (2, True)}
figures.two_questions({name: after_training(*case) for name, case in cases.items()})

# %% [markdown]
# You get ½, ½ and 0. Why exactly one half? Let $a$ be the channels of token $t-1$ and $b$ those of token $t-2$. One
# head gives them the weights $w$ and $1-w$ and applies the *same* linear map to both, so its output depends only on
# $wa+(1-w)b$. As long as $w$ doesn't depend on the content, any guess of $a-b$ from this leaves at least ½ unexplained.
# (In principle $w$ could depend on the content, but our short training doesn't find such a solution.)
#
# With two heads you have both $a$ and $b$, but without $W_O$ each output channel belongs to one head alone, so half
# of the variance is missing again. With $W_O$ a channel can combine both heads with opposite signs. In other words,
# **several heads attend to several positions, and $W_O$ lets one channel use what several heads found.**

# %% [markdown]
# ## Split the channels into heads
#
# We could give each head its own matrices, but a single product can compute all heads at once. We stack the matrices
# of two heads of width 3 into one `nn.Linear(6, 6)`, so that the first half of its output channels belongs to head 0
# and the second half to head 1. Then we split the result into heads, for example with two tokens:
#
# | | channels |
# |---|---|
# | token 0 | 0 1 2 · 3 4 5 |
# | token 1 | 6 7 8 · 9 10 11 |
#
# Head 0 should contain the left half of both tokens, that is, the rows `0, 1, 2` and `6, 7, 8`. If we only call
# `view(1, 2, 2, 3)`, the shape is right, but the entries are split in memory order, so head 0 contains nothing of token
# 1.

# %%
twelve = torch.arange(12.0).view(1, 2, 6)  # (B=1, T=2, D=6)
figures.split_into_heads(twelve[0], 2)

# %% [markdown]
# ### Exercise 8.1 `split_heads`
#
# Difficulty 2 of 5 · Importance 5 of 5 · 8 minutes · 14 points
#
# Split the channels into heads, $\text{out}_{b,h,t,c}=x_{b,t,\,h\,D/H+c}$. Because the head axis comes before the
# tokens, `attention` treats it as one more leading dimension and computes all heads at once.
#
# - **Arguments:** `x (B, T, D)`, and `num_heads`, an int H. If H doesn't divide D, raise `ValueError`.
# - **Returns:** `(B, H, T, D/H)`, where each head has D/H consecutive channels.


# %% nbgrader={"solution": "split_heads"}
def split_heads(x, num_heads):
    """Split the channels into heads: head h has the columns h·D/H to (h + 1)·D/H - 1.

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
# First split the last axis in two, one for the heads and one for their channels, and then move one axis.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Use `view` and then `transpose`, and try it on the twelve entries above.
#
# </details>

# %% [markdown]
# ### Exercise 8.2 `merge_heads`
#
# Difficulty 2 of 5 · Importance 5 of 5 · 5 minutes · 12 points
#
# Concatenate the heads again, so that `merge_heads(split_heads(x, H))` equals `x`.
#
# - **Arguments:** `x (B, H, T, D/H)`.
# - **Returns:** `(B, T, D)`.


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
# Undo the two steps of `split_heads` in reverse order, because reshaping alone never moves an entry in memory.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# After a `transpose` the tensor isn't contiguous, so `view` refuses, whereas `reshape` copies where it must.
#
# </details>

# %% [markdown]
# ## All heads at once
#
# Now we can write down multi-head attention, where $Q_h$, $K_h$ and $V_h$ are the heads' slices of the projections:
#
# $$\text{MultiHead}(Q,K,V)=\text{merge}(\text{head}_0,\dots,\text{head}_{H-1})\,W_O^\top+b_O,\qquad
# \text{head}_h=\text{Attention}(Q_h,K_h,V_h)$$

# %%
figures.shapes(B=3, T=5, D=64, H=4)

# %% [markdown]
# The heads don't interact until we merge them, so you don't need a loop. A mask whose head axis has size 1 is the
# same for all heads, for example a padding mask `(B, 1, 1, T_k)`.

# %% [markdown]
# ### Exercise 8.3 `MultiHeadAttention`
#
# Difficulty 3 of 5 · Importance 5 of 5 · 25 minutes · 36 points
#
# - **`MultiHeadAttention(d_model, num_heads)`** has four layers `W_q`, `W_k`, `W_v`, `W_o`, each an `nn.Linear` from
#   `d_model` to `d_model` **with bias**, and no dropout. It keeps `num_heads`, and raises `ValueError` if that doesn't
#   divide `d_model`.
# - **Arguments of `forward(query, key=None, value=None, mask=None)`:** `query (B, T_q, D)`, `key` and
#   `value (B, T_k, D)`, and a `mask` that is None or boolean and broadcasts to `(B, H, T_q, T_k)`. Without a key the
#   query is the key (self-attention), and without a value the key is the value, but a given value is always used.
# - **Returns:** a tuple `(out, weights)` of shapes `(B, T_q, D)` and `(B, H, T_q, T_k)`.
# - **Fully masked rows** have zero weights, and $b_O$ as output, without NaN in values or gradients.
# - **Large scores** up to $\pm10^4$ must give correct results (above $\pm300$, float32 rounding errors are tolerated).


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
# In `forward`, replace missing arguments, project and split three times, attend once, merge, and project once more.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Replace a missing key before a missing value, and pass the mask on unchanged.
#
# </details>

# %% [markdown]
# ## What the output matrix is for
#
# If we split $W_O$ into the columns that belong to the heads, $W_O=(W_O^0\mid W_O^1\mid\dots)$, then
#
# $$\text{merge}(\text{head}_0,\dots,\text{head}_{H-1})\,W_O^\top=\sum_h\text{head}_h\,(W_O^h)^\top$$
#
# **The output is the sum of the head outputs, each multiplied by its own matrix.** Without $W_O$ each head could write
# only into its own $D/H$ channels. The figure shows both in block 0 of the translator's encoder. (We count blocks and
# heads from 0.)

# %%
sentence = "jane visits africa in september"
mha = or_finished(MultiHeadAttention)(64, 4)
mha.load_state_dict(translator.part_state("encoder.blocks.0.attention"))
x_jane = figures.embedded(sentence)  # (1, T=5, D=64), word vectors with positions added
figures.what_heads_write(mha, x_jane, token=1)

# %% [markdown]
# ## What do heads cost?
#
# The base model of the paper has width 512 and eight heads. How would the costs change if we used a single head?
#
# | | 1 head of 512 | 8 heads of 64 |
# |---|---|---|
# | parameters of $W_Q$ (with bias) | 512 · 512 + 512 = 262,656 | the same matrix, split |
# | multiplications for all scores of T tokens | T² · 512 | 8 · T² · 64, the same |
# | divisor of the scores | √512 = 22.6 | √64 = 8 |
# | attention weights | T² | **8 T²** |
#
# So extra heads cost neither parameters nor multiplications. They do cost memory for the attention weights, and each
# head is narrower, so its queries can differ in fewer independent directions, at most as many as the head has
# channels.

# %%
explore.budget()

# %% [markdown]
# With four `nn.Linear` layers, your module has $4(D^2+D)$ parameters, whatever the number of heads:

# %%
in_attention = 6 * sum(p.numel() for p in mha.parameters())
in_all = sum(p.numel() for p in translator.state().values())
print(f"the translator has six such modules: {in_attention:,} of its {in_all:,} parameters")

# %% [markdown]
# ### Exercise 8.4 `fixed_heads`
#
# **Find the bug** · Difficulty 3 of 5 · Importance 5 of 5 · 10 minutes · 18 points
#
# The next function does what a widely read Transformer tutorial did for years (see *Further reading*). Its shapes are
# right, it raises no error, and it trains.


# %%
def published_heads(x, W_q, W_k, W_v, W_o, num_heads, mask=None):
    B, T, D = x.shape
    q, k, v = (x @ W.T for W in (W_q, W_k, W_v))  # (B, T, D) each
    q, k, v = (p.reshape(B, T, num_heads, D // num_heads).permute(0, 2, 1, 3) for p in (q, k, v))
    values, weights = attention(q, k, v, mask)  # (B, H, T, D/H)
    return values.reshape(B, T, D) @ W_o.T  # (B, T, D)


# %% [markdown]
# Does an output change when later tokens do, although there is a causal mask? You wrote the test for this in lesson 5.

# %%
g = torch.Generator().manual_seed(0)
four = torch.randn(4, 16, 16, generator=g) / 4  # W_q, W_k, W_v, W_o, (16, 16) each
tokens = torch.randn(2, 8, 16, generator=g)  # (B=2, T=8, D=16)
print("leaks the future:", leaks_future(lambda x: published_heads(x, *four, 2, causal_mask(8)), tokens))
figures.leak(lambda x: published_heads(x, *four, 2, causal_mask(8)), tokens[0])

# %% [markdown]
# It does, because output 0 changes when you replace token 1. **The function trains all the same, so the loss curve
# doesn't reveal the bug** (*Going further* shows how), but a test of what must *not* change does. Now find the bug, and
# write the function correctly.
#
# - **Arguments:** `x (B, T, D)`, four matrices `(D, D)` without biases, `num_heads`, an int that divides D, and `mask`,
#   None or boolean, which broadcasts to `(B, H, T, T)`.
# - **Returns:** `(B, T, D)`, with zeros in fully masked rows.
# - **Large scores** are judged as in Exercise 8.3, and you may use earlier exercises.


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
# The last line merges two adjacent axes into one. Which two are adjacent at that moment?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Suppose head 0 contains the rows `0, 1, 2` and `6, 7, 8`, and head 1 the rows `3, 4, 5` and `9, 10, 11`. Does the last
# line put them back in order?
#
# </details>
#
# Let's repeat the test with your version:

# %%
fixed = or_finished(fixed_heads)
print("leaks the future:", leaks_future(lambda x: fixed(x, *four, 2, causal_mask(8)), tokens))

# %% [markdown]
# There's no leak. In the original the split was right, but the merge mixed tokens.

# %% [markdown]
# ## What do heads specialize in?
#
# In French, the form of articles and adjectives depends on their noun. For example, *the white house* is *la maison
# blanche*, where *la* and *blanche* are feminine because *maison* is. So we may expect a **noun head**, that is, a head
# in which English articles and adjectives attend to the noun that follows. Can you find it among the eight heads of the
# encoder?

# %%
house = "a clever teacher sees the white house"
figures.eight_heads(figures.encoder_weights(house), house.split())  # (blocks=2, H=4, T=7, T=7)

# %% [markdown]
# You've probably chosen head 0 of block 1. Head 3 of the same block is the previous-token head of lesson 7. However,
# such pictures are easy to overinterpret, so let's measure. We **ablate** each head, that is, we set its output to
# zero, and compute the loss without it.

# %%
figures.without_each_head()

# %% [markdown]
# If we ablate the noun head, the loss rises by $0.058$ nats per word, more than three hundred times the loss of the
# complete translator. You can ablate any of the other seven alone at very little cost, which is common in large
# networks as well (Michel et al.). This includes the previous-token head, whose pattern is just as clear. **An
# attention pattern shows what a head does, but only an ablation shows whether the model needs it.**

# %% [markdown]
# ## At work
#
# Let's put your module into every attention layer of the translator, and then the buggy merge of Exercise 8.4.
# The panel also says how far the output of each attention layer moves in this sentence if one head is missing.

# %%
at_work(MultiHeadAttention)


# %%
def published_merge(x):
    B, H, T, d_head = x.shape
    return x.reshape(B, T, H * d_head)  # (B, T, D), tokens and heads mixed


at_work(merge_heads=published_merge)

# %% [markdown]
# The loss rises to $6.7$ nats per word, although a uniform guess over the French vocabulary would cost only
# $\ln194=5.3$, and not one sentence is translated correctly. We trained this network without the bug, so it can't
# compensate for it.

# %% [markdown]
# ### Quiz 8.1
#
# An encoder has several heads, no mask and no positions of any kind. Can one of its heads learn to attend to the
# previous word?
#
# - **a** Yes, that is what several heads are for.
# - **b** Yes, if $W_O$ sorts the heads afterwards.
# - **c** No, because nothing tells it which word is the previous one.

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
# You replace $W_O$ by the identity matrix. What does the layer lose?
#
# - **a** All heads get the same weights.
# - **b** A head can write only into its own channels.
# - **c** The output has width $D/H$ instead of $D$.

# %% nbgrader={"solution": "quiz_2"}
quiz_2 = None  # "a", "b" or "c"
### BEGIN SOLUTION
quiz_2 = "b"
### END SOLUTION

# %% nbgrader={"grade": "quiz_2"}
check(quiz_2=quiz_2)

# %% [markdown]
# ## Written question
#
# *15 points, graded by hand, 10 minutes, six to ten sentences.*
#
# A classmate wants to save memory and proposes one head of width 512 instead of eight of width 64. "It has the same
# number of parameters, and eight times the room for its queries and keys, so it can only be better." Say what stays
# the same, what one head can do better, and what it cannot do at all, with an example in numbers. What experiment
# would settle it for one network?

# %% [markdown] nbgrader={"written": "written_1"}
# <details><summary>Model answer and marking scheme</summary>
#
# **Model answer.** The number of parameters is the same, four matrices of 512 × 512 with their biases, and so is the
# number of products for the scores. One head needs one table of weights instead of eight, so you do save memory, and
# its queries and keys can differ in 512 directions instead of 64. However, it computes only one weighted average per
# token. If *visits* gives ½ to *jane* $=(2,0)$ and ½ to *africa* $=(0,4)$, it gets $(1,2)$, the same as in *africa
# visits jane*. Two heads can take one word each, and $W_O$ can add or subtract what they found. To settle it for one
# network, train both with the same data and steps and several seeds, and compare the loss on unseen sentences.
#
# | marking scheme | points |
# |---|---|
# | parameters and products are the same | 3 |
# | tables of weights, or the width of a head, differ, and which way | 2 |
# | one head makes one average, with a correct example | 4 |
# | $W_O$ combines the outputs of the heads | 2 |
# | an experiment with a fair comparison (same data, unseen sentences) | 3 |
# | more than one seed, or another remark on chance | 1 |
#
# </details>

# %% [markdown]
# ## Recap
#
# - One head computes one average per token, whereas several heads compute several, which $W_O$ combines.
# - `split_heads` splits and then moves an axis, and `merge_heads` does the reverse. Without the move, the shapes are
#   right, but you mix tokens.
# - More heads cost no parameters and no multiplications, but they cost memory for the attention weights, and each head
#   is narrower.
# - A picture shows what a head attends to, and an ablation shows whether the model needs the head.
#
# **Next:** [lesson 9](../09_encoder_block/09_encoder_block.ipynb) adds a feed-forward layer, residual connections and
# norms to this module, which completes the encoder block.

# %% [markdown]
# ## Going further
# Everything below is optional, and later lessons explain briefly whatever they use.

# %% [markdown]
# ### How training hides the bug
#
# Let's train the function of Exercise 8.4 on *what changed* with eight tokens and without a mask, and then test it on
# seven.


# %%
def trained_on_eight(heads):
    torch.manual_seed(0)
    matrices = [nn.Parameter(nn.init.xavier_uniform_(torch.empty(16, 16))) for _ in range(4)]
    train(lambda x: heads(x, *matrices, 2), matrices)
    with torch.no_grad():
        return {T: round(unexplained(lambda x: heads(x, *matrices, 2), 2000, T).item(), 2) for T in (8, 7)}


print("unexplained, by the number of tokens:", trained_on_eight(published_heads))
print("the same with your version:", trained_on_eight(fixed))

# %% [markdown]
# On eight tokens the original is perfect, because the bug mixes eight tokens in the same way each time, and the layer
# has learned to undo that. On seven tokens its error is larger than if it always answered 0. With your version nothing
# is left unexplained, on eight tokens or on seven.

# %% [markdown]
# ### Exercise 8.5 `load_from_torch`
#
# **Extra** · Difficulty 2 of 5 · Importance 3 of 5 · 10 minutes · 10 bonus points
#
# If you want to test a module, load the weights of a trusted implementation and compare the outputs.
# `nn.MultiheadAttention` keeps its three projections stacked on top of each other:
#
# | theirs | shape | contains |
# |---|---|---|
# | `in_proj_weight` | `(3D, D)` | queries, keys, values, in this order |
# | `in_proj_bias` | `(3D,)` | the same |
# | `out_proj` | an `nn.Linear(D, D)` | your `W_o` |
#
# Copy all weights and biases of `theirs` into `mine`.
#
# - **Arguments:** `mine`, a `MultiHeadAttention(D, H)`, and `theirs`, an `nn.MultiheadAttention(D, H,
#   batch_first=True)` with arbitrary biases.
# - **In place:** `mine` keeps its Parameters, because an optimizer that was created earlier would continue to update
#   the old ones. Afterwards the modules share no memory, and `theirs` is unchanged.


# %% nbgrader={"solution": "load_from_torch"}
def load_from_torch(mine, theirs):
    """Copy the weights of an nn.MultiheadAttention into a MultiHeadAttention of the same size, in
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
# You have to fill eight tensors, and `chunk` splits a tensor into equal parts along its first axis.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# The tensor method `copy_` copies values into an existing tensor, inside `torch.no_grad()`. A plain `=` would make both
# modules use the same memory.
#
# </details>

# %%
torch.manual_seed(0)
theirs = nn.MultiheadAttention(64, 4, batch_first=True).eval()
mine = or_finished(MultiHeadAttention)(64, 4)
print(figures.transplant(load_from_torch, mine, theirs))

# %% [markdown]
# ### Do heads use positions?
#
# Some introductions say that with several heads "the model can better capture **positional information**". We can
# test this in two ways. First, does the output change, apart from its order, when we shuffle the tokens?
# `equivariance_error` of lesson 2 measures it, without a mask and, as a control, with a causal mask.

# %%
torch.manual_seed(0)
order = torch.randperm(8)
for num_heads in (1, 2, 4, 8):
    module, x_random = or_finished(MultiHeadAttention)(16, num_heads), torch.randn(8, 16)
    error = equivariance_error(lambda x, f=module: f(x[None])[0][0], x_random, order)
    masked = equivariance_error(lambda x, f=module: f(x[None], mask=causal_mask(8))[0][0], x_random, order)
    print(f"heads: {num_heads}   error {error:.0e}   with a causal mask {masked:.2f}")

# %% [markdown]
# Without a mask the error is only rounding, whatever the number of heads, so **heads alone ignore order.** With a
# causal mask each token sees only earlier tokens, so a decoder can learn something about positions from the mask
# alone. In an encoder, we must put them into the vectors (lesson 2) or into queries and keys (RoPE). Let's try RoPE on
# the queries and keys of trained heads.

# %%
split = or_finished(split_heads)
bare = figures.embedded(sentence, positions=False)  # (1, 5, 64), words alone
Q, K = split(mha.W_q(bare), 4), split(mha.W_k(bare), 4)  # (1, 4, 5, 16) each


def rotated_scores(start):
    positions = start + torch.arange(5)  # (5,)
    return apply_rope(Q, positions) @ apply_rope(K, positions).transpose(-2, -1) / 16**0.5  # (1, 4, 5, 5)


moved = (rotated_scores(0) - rotated_scores(7)).abs().max().item()
turned = (rotated_scores(0) - Q @ K.transpose(-2, -1) / 16**0.5).abs().max().item()
print(f"RoPE changes scores by up to {turned:.2f}; shifting the sentence by 7 changes them by {moved:.0e}")

# %%
figures.by_distance(Q[0, :, 1], K[0, :, 2], "visits", "africa")

# %% [markdown]
# You can see that only the signed *distance* between two words matters, and each head has a curve of its own. However,
# the curves vary by only a few hundredths, which hardly changes the attention weights. We trained this network with
# position vectors, and without them the heads of block 0 have tiny scores, so RoPE has to be present during training.
#
# Second, do **trained** heads use positions? Let's measure how much weight the queries of block 1 give to the tokens
# around them, averaged over 200 sentences, with the position vectors and with all of them set to zero.

# %%
figures.weights_by_distance()

# %% [markdown]
# With positions, the previous-token head attends backward and the noun head forward, but without them the four curves
# almost coincide. So the statement is half right. **These trained heads do use positions, and they read them from the
# vectors.** Having several heads allows the model to attend in both directions at once.

# %%
explore.heads()

# %% [markdown]
# If you switch positions off, the previous-token head loses its pattern, and the noun head rarely finds its noun.
# Over many sentences, articles and adjectives give their noun over 90% of their weight with positions, but without
# them only 21% if there are two nouns and 43% if there is one.

# %% [markdown]
# ### Redundant heads
#
# If most heads can be ablated alone at so little cost, are they useless, or do others take over? To find out, we
# ablate several together:
#
# | ablated heads | loss, nats per word |
# |---|---|
# | none | 0.00016 |
# | heads 1, 2 and 3 of block 1 | 0.00024 |
# | all four of block 0 (their single costs sum to 0.003) | 0.025 |
# | all of these seven | 0.18 |
#
# So the three heads of block 1 contribute almost nothing while block 0 is there, but partly take over without it. The
# heads of block 0 are partly redundant as well.
#
# In a similar experiment we replace $W_O$ by the identity in the translator's last cross-attention, from the French
# words to the English ones (lesson 10):

# %%
figures.without_output_matrix()

# %% [markdown]
# Head outputs in the wrong channels hurt more than no outputs at all. This only shows that a network trained with
# $W_O$ relies on it. The experiment *what changed* is the fair one, because there we trained the layer without $W_O$.

# %% [markdown]
# ### Exercise 8.6 `head_importance`
#
# **Extra** · Difficulty 3 of 5 · Importance 3 of 5 · 20 minutes · 10 bonus points
#
# You can estimate cheaply what a head is worth, without any translations. How much does the output change if you set
# the head's slice to zero before $W_O$?
#
# $$\text{importance}_h=\big\lVert\,\text{out}-\text{out without head }h\,\big\rVert$$
#
# - **Arguments:** `mha`, a `MultiHeadAttention`, and `x (B, T, D)`.
# - **Returns:** `(H,)`, Frobenius norms (roots of the sum of all squared entries) over the whole `(B, T, D)` output
#   of `mha(x)`, which need not be differentiable.
# - **Unchanged:** afterwards `mha` still has the same Parameters with the same values.


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
# Setting a head's slice to zero before $W_O$ has the same effect as setting its part of $W_O$ to zero. Are these rows
# or columns, given that `W` is `(out, in)`?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# If you modify a module, restore it, even if an error occurs in between. It's easier to modify a copy, or to use the
# sum over heads, which tells you what one head adds.
#
# </details>

# %%
figures.importance_against_damage(or_finished(head_importance))

# %% [markdown]
# The size of a head's output gives you only a hint. Over these 40 sentences the noun head has the largest output, but
# that of the previous-token head is more than 80% as large, although the model doesn't need it.

# %% [markdown]
# ### Exercise 8.7 `grouped_query_attention`
#
# **Extra** · Difficulty 3 of 5 · Importance 3 of 5 · 15 minutes · 10 bonus points
#
# While a model generates text, it keeps the keys and values of all earlier tokens (lesson 10). With $32$ layers of
# $32$ heads, a width of $128$ per head and two bytes per entry, a text of $8192$ tokens needs 4 GiB. In
# **grouped-query attention** (Ainslie et al., 2023) all H heads keep their queries, but neighboring heads share keys
# and values. With eight groups, you need only a quarter of the memory.
#
# - **Arguments:** `Q (B, H, T_q, d_k)`, `K` and `V (B, G, T_k, d_k)`, H divisible by G, and `mask`, None or boolean,
#   which broadcasts to `(B, H, T_q, T_k)`.
# - **Returns:** `(B, H, T_q, d_k)`, with scores over $\sqrt{d_k}$. Query head $h$ uses group $\lfloor
#   h/(H/G)\rfloor$. For example, with six heads and three groups, the first two heads use the first group.
# - **Fully masked rows** give zeros, and large scores are judged as in Exercise 8.3.


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
# If K and V had H heads, this would be plain attention. In which order must the groups be repeated, `0 1 2 0 1 2` or
# `0 0 1 1 2 2`?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# PyTorch has two functions for repeating along an axis. `repeat` repeats the whole axis, and `repeat_interleave`
# repeats each entry.
#
# </details>
#
# What happens if we average the translator's four heads of keys and values into two groups, or into one, without
# further training?

# %%
figures.shared_keys(or_finished(grouped_query_attention))

# %% [markdown]
# The loss rises to $1.8$ nats per word with two groups and to $5.4$ with one, slightly worse than a uniform guess. So
# you can't simply average heads that learned keys and values of their own. Ainslie et al. do average the heads of a
# trained model, but then continue training.

# %% [markdown]
# ### How stable are these numbers?
#
# | experiment | our run | other runs |
# |---|---|---|
# | *what changed*, one head | 0.51 | 0.50 to 0.51 with three initializations |
# | the same with three tokens and 2,000 steps | | five of twelve runs let $w$ depend on the content and left 0.40 to 0.43 |
# | the merge bug, tested on seven tokens | 6.4 | 0.6 to 4.1 in eleven runs |
#
# Which head matters depends on the training run, as three more translators with other seeds show:
#
# | training run | most expensive head | cost, nats per word |
# |---|---|---|
# | ours | head 0 of block 1 | 0.058 |
# | seeds 1 and 2 | none matters | at most 0.0008 |
# | seed 3 | one in block 0 | 0.011 to 0.022 on two computers |

# %% [markdown]
# ## Further reading
#
# - Vaswani et al., [Attention Is All You Need](https://arxiv.org/abs/1706.03762) (2017), section 3.2.2, and table 3
#   (A), where the number of heads is varied.
# - Michel, Levy and Neubig, [Are Sixteen Heads Really Better than One?](https://arxiv.org/abs/1905.10650) (2019), and
#   Voita et al., [Analyzing Multi-Head Self-Attention](https://arxiv.org/abs/1905.09418) (2019), on heads for
#   neighbors, syntax and rare words, and on pruning the rest.
# - Ainslie et al., [GQA](https://arxiv.org/abs/2305.13245) (2023); Su et al.,
#   [RoFormer](https://arxiv.org/abs/2104.09864) (2021), on RoPE.
# - Elhage et al., [A Mathematical Framework for Transformer
#   Circuits](https://transformer-circuits.pub/2021/framework/index.html) (2021), on heads as a sum.
# - Andrej Karpathy, [nanoGPT's model.py](https://github.com/karpathy/nanoGPT/blob/master/model.py).
# - The bug of exercise 8.4, found by a reader and fixed: [jsbaan/transformer-from-scratch, pull request
#   6](https://github.com/jsbaan/transformer-from-scratch/pull/6). The same mistake in the split: [reczoo/FuxiCTR, issue
#   30](https://github.com/reczoo/FuxiCTR/issues/30).
