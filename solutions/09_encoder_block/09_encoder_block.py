# %% [markdown]
# # 9. The encoder block: attention is half of it
#
# **Goal:** build a whole encoder, know what each of its parts is for because you have measured it, and let the course's
# translator run on yours.
#
# **Time:** about 135 minutes, 20 of them for the extra. A good place for a break is after exercise 9.3, when the block stands.

# %% tags=["setup"]
# (empty: the build puts the set-up cell here)

# %%
import torch
from torch import nn
from torch.nn import functional as F

from helpers import at_work, check, or_given, progress, translator
from helpers.blocks import MultiHeadAttention
from helpers.drawing.transformer_map import transformer_map
from helpers.lessons.encoder_block import explore, figures

# %%
transformer_map("09_encoder_block")

# %% [markdown]
# You have the attention. Today come the boxes around it: *add, norm* and *feed forward*, and the stack that they make.

# %% [markdown]
# ## You need
#
# - many heads: [lesson 8](../08_multi_head/08_multi_head.ipynb), whose `MultiHeadAttention` is a part of today's block;
# - what a weighted average can and cannot do: [lesson 7](../07_value_weighting/07_value_weighting.ipynb);
# - masks: [lesson 5](../05_masking/05_masking.ipynb); positions: [lesson 2](../02_position/02_position.ipynb).
#
# What today's answers may call, all of it imported above:
#
# | name | takes | gives |
# |---|---|---|
# | `MultiHeadAttention(d_model, num_heads)` | `forward(query, key=None, value=None, mask=None)`: `(B, T_q, D)`, `(B, T_k, D)` twice, a mask that broadcasts to `(B, H, T_q, T_k)`; without a key the query is the key, without a value the key is the value | `(out (B, T_q, D), weights (B, H, T_q, T_k))` |
#
# Two questions from earlier lessons. Answer before you open them.
#
# <details><summary>Lesson 7: in one channel, the values of a sentence lie between −1 and 3. Can attention put a 5 into
# that channel of its output?</summary>
#
# No. It averages, and an average stays between the smallest and the largest value.
#
# </details>
#
# <details><summary>Lesson 8: what does <code>MultiHeadAttention(64, 4)</code> return for x of shape (2, 5, 64)?</summary>
#
# A pair: the output (2, 5, 64) and the weights (2, 4, 5, 5), one table for each head.
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
#   it. In lessons 9 to 12: `nn.Transformer`, `nn.TransformerEncoder`, `nn.TransformerEncoderLayer` and their like.
#
# In this lesson layers are `nn.Linear` with bias, norms are `nn.LayerNorm`, there is no dropout, x is `(B, T, D)`, F is
# the width of the feed-forward network, and masks broadcast to `(B, H, T_q, T_k)`.
#
# </details>

# %% [markdown]
# ## What attention leaves undone
#
# Feed *jane visits africa in september* through attention, then through attention again, and so on. Each output row is
# an average of rows, sent through matrices. Three things go wrong, and each has its remedy in the block.
#
# | trouble | remedy |
# |---|---|
# | numbers grow or shrink from layer to layer | layer norm |
# | averages of averages: after a few layers all words look alike | residual connections |
# | hardly anything bends: for given weights, what comes out is linear in what went in | the feed-forward network |
#
# You will see each trouble in numbers, with the remedy and without. First the norm.

# %% [markdown]
# ## Layer norm
#
# **On paper.** A token has the vector (1, 1, 5, 5). Move it so that its mean is 0, then scale it so that its standard
# deviation is 1 (divide by the number of channels, not by one less). What do you get?
#
# <details><summary>Answer</summary>
#
# The mean is 3, the differences are (−2, −2, 2, 2), the variance is 4, the standard deviation 2. So (−1, −1, 1, 1).
# The token (10, 10, 50, 50) gives the same: ten times as loud, the same word.
#
# </details>
#
# The words that enter the translator's first block have different means and spreads. Afterwards they do not:

# %%
figures.normed_words()

# %% [markdown]
# In formulas, for one token $x \in \mathbb{R}^D$ (Ba, Kiros and Hinton, 2016):
#
# $$\mu = \frac1D\sum_{k=1}^{D} x_k \qquad \sigma^2 = \frac1D\sum_{k=1}^{D}(x_k-\mu)^2 \qquad
# \hat x_k = \frac{x_k-\mu}{\sqrt{\sigma^2+\epsilon}} \qquad \mathrm{LN}(x)_k = \gamma_k\,\hat x_k + \beta_k$$
#
# The small ε keeps a row of equal numbers from dividing 0 by 0. The norm takes two numbers away from every token, its
# mean and its size; γ and β, one pair for each channel and the same for all tokens, let the network choose new ones.

# %% [markdown]
# ## Which numbers share one mean
#
# For pictures, one often reads that mean and variance are computed "across channels and spatial dimensions". Put tokens
# in the place of pixels, and that is another norm: all words of the sentence share one mean.

# %%
figures.shared_statistics()

# %% [markdown]
# **Predict before you run.** We exchange the last word, *september*, for *may*. How far does the normalized vector of
# *jane*, the first word, move under each of the two norms?

# %%
one = figures.word_vectors("jane visits africa in september")  # (T, D)
other = figures.word_vectors("jane visits africa in may")  # (T, D)
by_token = F.layer_norm(one, (64,)) - F.layer_norm(other, (64,))  # (T, D)
by_sentence = F.layer_norm(one, (5, 64)) - F.layer_norm(other, (5, 64))  # (T, D)
print(f"jane moves by {by_token[0].norm():.4f} and by {by_sentence[0].norm():.4f}")

# %% [markdown]
# <details><summary>Answer</summary>
#
# By exactly 0 under layer norm, and by 0.0322 when the sentence shares its mean. Under the second norm every word hears
# of every other one, past all masks: padding would change kept words, and in a decoder the future would leak
# (lesson 5). Transformers use the first.
#
# </details>

# %% [markdown]
# ### Exercise 9.1 `layer_norm`
#
# Difficulty 2 of 5 · Importance 5 of 5 · 10 minutes · 16 points
#
# The formulas above, for every row by itself.
#
# `x (..., D)`, `gamma (D,)`, `beta (D,)`, `eps` a number → `(..., D)`. Right for tiny numbers, for huge ones (as long as the
# dtype can hold their squares), for numbers far from 0, for rows of equal numbers, and for D = 1; no NaN in values or
# gradients there either.
#
# Forbidden: `F.layer_norm`, `nn.LayerNorm`, and group, batch, instance and RMS norms. `mean` and `var` are allowed.


# %% nbgrader={"solution": "layer_norm"}
def layer_norm(x, gamma, beta, eps=1e-5):
    """Layer norm of every row by itself (Ba et al. 2016), as nn.LayerNorm.

    x (..., D), gamma and beta (D,), float32 or float64; eps a number > 0 -> (..., D), same dtype.
    """
    ### BEGIN SOLUTION
    mean = x.mean(dim=-1, keepdim=True)  # (..., 1)
    variance = x.var(dim=-1, correction=0, keepdim=True)  # (..., 1)
    normal = (x - mean) / (variance + eps) ** 0.5  # (..., D), mean 0 and variance 1
    return gamma * normal + beta  # (..., D)
    ### END SOLUTION


# %% nbgrader={"grade": "layer_norm"}
check(layer_norm)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# Four lines, one for each formula. Keep the last axis as 1 where you average, so that the result broadcasts.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Look up how the library's variance decides between dividing by D and by one less. And look where ε stands in the formula:
# inside the root or outside?
#
# </details>

# %% [markdown]
# ## Feed-forward: every word for itself
#
# **On paper.** One channel in, two hidden channels, one out. The first layer makes (x, −x), ReLU sets negative numbers to
# 0, the second layer adds the two. What comes out for x = 2, for x = −3, and in general?
#
# <details><summary>Answer</summary>
#
# 2, 3, and |x| in general. No linear map can do that: it would have to send −3 to minus what it sends 3 to.
#
# </details>

# %%
figures.bend()

# %% [markdown]
# That is the feed-forward network of a block, with more channels: widen, bend, narrow (eq. 2 of the paper).
#
# $$\mathrm{FFN}(x) = W_\text{down}\;\mathrm{ReLU}(W_\text{up}\,x + b_\text{up}) + b_\text{down}$$
#
# *Linear layer*, *dense layer*, *fully connected layer*, and in old books *feed-forward layer*: four names for one
# $y = xW^\top + b$. The network in the block is two of them and an activation, and the same two for every token. Words
# do not meet here. So a block has a clear division of labor: **attention gathers from other words, the feed-forward
# network works on what was gathered, word by word.** (Attention can bend a little too, by its weights: a single head of
# width 1 whose query has a bias of 10 turns two tokens, whose only channel holds x and 0, into x · sigmoid(10x), nearly
# a ReLU. Exercise 9.2 does it for every channel, at will.)

# %% [markdown]
# ### Exercise 9.2 `FeedForward`
#
# Difficulty 1 of 5 · Importance 4 of 5 · 6 minutes · 10 points
#
# A module with two layers: `up`, an `nn.Linear` from `d_model` to `d_ff`, and `down`, one that leads back. Between them
# stands `activation`, a function such as `F.relu` or `F.gelu`.
#
# `forward`: `x (B, T, d_model)` → `(B, T, d_model)`.


# %% nbgrader={"solution": "FeedForward"}
class FeedForward(nn.Module):
    """The position-wise network, eq. 2 of Vaswani et al. (2017): up, activation, down, for every
    token alone.

    forward(x (B, T, d_model)) -> (B, T, d_model), same dtype.
    """

    def __init__(self, d_model, d_ff, activation=F.relu):
        super().__init__()
        ### BEGIN SOLUTION
        self.up = nn.Linear(d_model, d_ff)
        self.down = nn.Linear(d_ff, d_model)
        self.activation = activation
        ### END SOLUTION

    def forward(self, x):
        ### BEGIN SOLUTION
        hidden = self.activation(self.up(x))  # (B, T, F)
        return self.down(hidden)  # (B, T, D)
        ### END SOLUTION


# %% nbgrader={"grade": "FeedForward"}
check(FeedForward)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# An `nn.Linear` works on the last axis, whatever stands before it. You need no loop over tokens.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Whoever builds the network may ask for another activation. Keep it when the module is made, and use it where the
# vector is widest.
#
# </details>

# %% [markdown]
# ## Residual connections
#
# A sublayer does not replace $x$, it adds to it: $x + f(x)$. Think of a **stream** that runs through all blocks. Each
# sublayer reads it and adds its contribution.
#
# **On paper.** Let f(x) = 0.1 x, thirty times in a row. What is the derivative of the last output with respect to the
# first input, without the residual and with it?
#
# <details><summary>Answer</summary>
#
# $0.1^{30} = 10^{-30}$ without, $1.1^{30} \approx 17$ with it. The 1 in $1 + f'$ is a path on which the gradient meets no
# matrix at all. But note the 17: if each layer adds, things can also grow. That is what the norms are for.
#
# </details>
#
# So norm and residual go together, and there are two orders in which to do it.

# %%
figures.two_orders()

# %% [markdown]
# | | first half | second half |
# |---|---|---|
# | **post-norm**, the paper's *Add & Norm* | $x \leftarrow \mathrm{LN}_1(x + \mathrm{Attention}(x))$ | $x \leftarrow \mathrm{LN}_2(x + \mathrm{FFN}(x))$ |
# | **pre-norm**, GPT-2 and most models since | $x \leftarrow x + \mathrm{Attention}(\mathrm{LN}_1(x))$ | $x \leftarrow x + \mathrm{FFN}(\mathrm{LN}_2(x))$ |

# %% [markdown]
# ### Exercise 9.3 `EncoderBlock`
#
# Difficulty 3 of 5 · Importance 5 of 5 · 25 minutes · 20 points
#
# A module with `attention` (a `MultiHeadAttention`), `feed_forward` (a `FeedForward`), `norm1` and `norm2` (two
# `nn.LayerNorm(d_model)`). With `norm_first=False` it is the first row of the table, with `norm_first=True` the second.
#
# `forward`: `x (B, T, D)`, `mask` None or boolean → `(B, T, D)`.
#
# With the same weights it equals `nn.TransformerEncoderLayer` without dropout, which is forbidden here. The check looks at
# the two orders apart: each of them earns its share.


# %% nbgrader={"solution": "EncoderBlock"}
class EncoderBlock(nn.Module):
    """Attention, then a feed-forward network, each with a residual and a norm
    (Vaswani et al. 2017, 3.1).

    forward(x (B, T, D), mask None or bool that broadcasts to (B, H, T, T)) -> (B, T, D), same
    dtype.
    """

    def __init__(self, d_model, num_heads, d_ff, norm_first=False, activation=F.relu):
        super().__init__()
        ### BEGIN SOLUTION
        self.attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff, activation)
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.norm_first = norm_first
        ### END SOLUTION

    def forward(self, x, mask=None):
        ### BEGIN SOLUTION
        if self.norm_first:
            x = x + self.attention(self.norm1(x), mask=mask)[0]  # (B, T, D)
            return x + self.feed_forward(self.norm2(x))  # (B, T, D)
        x = self.norm1(x + self.attention(x, mask=mask)[0])  # (B, T, D)
        return self.norm2(x + self.feed_forward(x))  # (B, T, D)
        ### END SOLUTION


# %% nbgrader={"grade": "EncoderBlock"}
check(EncoderBlock)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# Write the two formulas of the first row as two lines of code. With them the check's line *values* holds. Then add the
# second row.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Your attention returns a pair; only one of the two belongs into the stream. And it is the only part that wants to
# know about the mask.
#
# </details>

# %% [markdown]
# The block is the unit of every Transformer. Yours has these parameters, and most of them are not in the attention:

# %%
block = or_given(EncoderBlock)(64, 4, 256)
for name, part in block.named_children():
    print(f"{name:<13}{sum(p.numel() for p in part.parameters()):>7,}")

# %% [markdown]
# For d_ff = 4D, its usual size, the two layers of the feed-forward network hold 8D² weights and attention 4D².

# %% [markdown]
# ## Before the norm or after it
#
# What do the two orders do to gradients? We take untrained blocks of width 32, send random words through 24 of them, and
# send a gradient back from the output. A post-norm stack ends with a norm. A stack without norms at its end, such as
# pre-norm, has a stream that may have any size, so **one last norm** is usually put on top of it, as we do here. The
# chart on
# the left shows how large the gradient is at each height of the stream. On the right: how large it is at the *last* block's
# weights, for stacks of 1 to 32 blocks; there you see pre-norm without its last norm too. (The line *published* is the block
# of exercise 9.4. Leave it until then.)

# %%
figures.slopes_over_depth()

# %% [markdown]
# Read it line by line.
#
# - **Residual, no norm:** 499 at the bottom, 0.00034 at the top. No single learning rate of plain gradient descent suits
#   both. (Adam of lesson 11 divides each gradient by its usual size.) The bottom hangs on the draw: 15 starts gave 32 to
#   94,000.
# - **All with norms** stay between 1 and 20 over 24 blocks. The norm alone, without a residual, does that too, so the
#   length of a gradient does not yet tell why one needs residuals. Wait for the next figure.
# - **On the right** is the difference between the orders. In post-norm the last block's gradient stays where it is, 76
#   for one block and 70 for thirty-two. In pre-norm with a last norm it falls from 70 to 14, as one over the square root of
#   the depth. Without the last norm it does not fall: 88 and 82. So it is the last norm that divides by the size of the
#   stream, to which every block has added its share. Xiong et al. (2020) prove it for untrained networks, pre-norm with
#   that last norm. They conclude that post-norm takes too large steps at the top in the beginning, which is why it wants a
#   warm-up (small learning rates first; lesson 11), and pre-norm trains without.
#
# The start matters as much. Move it: at which size does the stream without a norm behave? Which lines hardly care?
# (Every stack in the explorer has a last norm.)

# %%
explore.stack()

# %% [markdown]
# <details><summary>Answer</summary>
#
# At 0.5 and below, all five lie close together. Where there is a residual, small matrices add little to the stream: at
# 0.25 the twelve blocks do almost nothing. Without a residual there is nothing to add to. Its norms keep the size, but
# hardly anything of what went in is left. At 2 the line without a norm leaves the chart. Post-norm and the line without a
# residual hardly care at the output: their last step is a norm, so their stream has size 1 whatever the matrices do.
#
# </details>

# %% [markdown]
# ## What is left of a word
#
# Now to the residual. We send 1,000 random sentences through twelve untrained blocks and ask, after each block: can a
# *linear* map read the word's own vector back from the stream? (1: all of it, 0: no better than guessing the mean.) And
# how different are the tokens of a sentence still?

# %%
figures.traces_of_words()

# %% [markdown]
# Without residuals 5 percent of the word are left after **one** of these untrained blocks. The plain mean of the sentence's
# six vectors would tell more, 17 percent. After three blocks all words of a sentence have the same vector. Attention averages,
# and averages of averages are alike (Dong et al., 2021). With residuals, identities **blend** slowly: higher rows are less
# and less one word and more and more the sentence. In pre-norm, 80 percent can be read back after one block and 37 percent
# after twelve. In post-norm, every norm turns the older contributions down, so at this size of start it is 74 percent after
# one block, 8 after nine and 3 after twelve. Training changes that, and so does a smaller start. In the trained translator,
# with its two post-norm blocks, the word is alive and well:

# %%
machine = translator.machine()
sentences = ["jane visits africa in september", "jane visits africa in may"]
one, other = machine.encode(translator.source_batch(sentences)).split(1)  # (1, T, D) each
cosines = F.cosine_similarity(one, other, dim=-1)[0]  # (T,)
for word, cosine in zip(figures.WORDS, cosines.tolist(), strict=True):
    print(f"{word:<10}{cosine:.4f}")

# %% [markdown]
# The month itself is another word, so its vector turns far. The four words that stayed the same have heard of the
# change and turned a little: each keeps a cosine above 0.998.

# %% [markdown]
# ### Exercise 9.4 `fixed_block`
#
# **Find the bug** · Difficulty 2 of 5 · Importance 4 of 5 · 10 minutes · 10 points
#
# This pre-norm block was published, and its like can be found in many repositories. It trains, and its loss falls.
#
# ```python
# def published_block(x, attention, feed_forward, norm1, norm2, mask=None):
#     x = norm1(x)  # (B, T, D)
#     out, _ = attention(x, mask=mask)  # (B, T, D)
#     x = norm2(x + out)  # (B, T, D)
#     return x + feed_forward(x)  # (B, T, D)
# ```
#
# It is meant to be pre-norm. Set both sublayers to zero in your mind: what should come out, and what does? Write it
# right. The four parts are functions; `attention(x, mask=mask)` returns `(out, weights)`, and it takes
# keys and values too, as lesson 8's does.
#
# `x (B, T, D)` → `(B, T, D)`.


# %% nbgrader={"solution": "fixed_block"}
def fixed_block(x, attention, feed_forward, norm1, norm2, mask=None):
    """A pre-norm block (Xiong et al. 2020) from its four parts.

    x (B, T, D), float32 or float64; attention(x, mask=mask) -> (out (B, T, D), weights);
    feed_forward, norm1, norm2: (B, T, D) -> (B, T, D); mask None or bool -> (B, T, D), same dtype.
    """
    ### BEGIN SOLUTION
    out, _ = attention(norm1(x), mask=mask)  # (B, T, D)
    x = x + out  # (B, T, D)
    return x + feed_forward(norm2(x))  # (B, T, D)
    ### END SOLUTION


# %% nbgrader={"grade": "fixed_block"}
check(fixed_block)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# The published lines give one name to two different things: what the sublayer sees, and what its output is added to.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Draw the lower half of figure 9.4 for the published block. Where does the norm stand: on the branch, or on the stream?
# It happens twice.
#
# </details>

# %% [markdown]
# Look at figure 9.6 again: the line *published* runs on top of *post-norm*, not of *pre-norm*. Whoever wrote it wanted the
# open stream and got its opposite, and nothing crashed. Now the same measurement with your repair in its place:

# %%
figures.traces_of_words(or_given(fixed_block))

# %% [markdown]
# The repaired block keeps of a word what pre-norm keeps, number for number. And the test in your mind, in one line: with two
# sublayers that give zeros, the repair gives x back, exactly.

# %% [markdown]
# ## The encoder
#
# Word vectors plus position vectors go in, a stack of blocks works on them, and out comes one vector for each word, in
# its context. The recipe, with the shapes of our sentence:
#
# | step | shape |
# |---|---|
# | ids of *jane visits africa in september* | (1, 5) |
# | word vectors, rows of a table | (1, 5, 64) |
# | plus the vectors of positions 0 to 4 | (1, 5, 64) |
# | block after block | (1, 5, 64) |
#
# The shape never changes, and that is why blocks can be stacked.

# %% [markdown]
# ### Exercise 9.5 `Encoder`
#
# Difficulty 3 of 5 · Importance 5 of 5 · 18 minutes · 16 points
#
# A module with `tokens` (an `nn.Embedding` with `vocab_size` rows), `positions` (an `nn.Embedding` with `max_len` rows)
# and `blocks` (an `nn.ModuleList` of `num_layers` of your blocks). The two vectors are added as they are; every block
# gets the mask.
#
# `**options` is an offer: what else is given by name, `norm_first` or `activation`, goes on to every block. If you do not want
# it, delete it; if you keep it, it has to arrive. Nothing stands on top of the last block, so whoever asks for pre-norm adds
# the last norm outside.
#
# `forward`: `ids` LongTensor `(B, T)`, `mask` None or boolean → `(B, T, D)`.
#
# Besides values, the check fills all parameters with random numbers and asks: does order matter? Does what stands in
# the padding leave the kept words alone?


# %% nbgrader={"solution": "Encoder"}
class Encoder(nn.Module):
    """Word vectors plus learned positions, then a stack of encoder blocks. `options` go to every
    block.

    forward(ids LongTensor (B, T), T <= max_len, mask None or bool that broadcasts to (B, H, T, T))
    -> (B, T, D).
    """

    def __init__(self, vocab_size, d_model, num_heads, d_ff, num_layers, max_len, **options):
        super().__init__()
        ### BEGIN SOLUTION
        self.tokens = nn.Embedding(vocab_size, d_model)
        self.positions = nn.Embedding(max_len, d_model)
        blocks = [EncoderBlock(d_model, num_heads, d_ff, **options) for _ in range(num_layers)]
        self.blocks = nn.ModuleList(blocks)
        ### END SOLUTION

    def forward(self, ids, mask=None):
        ### BEGIN SOLUTION
        positions = torch.arange(ids.shape[1], device=ids.device)  # (T,)
        x = self.tokens(ids) + self.positions(positions)  # (B, T, D) + (T, D)
        for block in self.blocks:
            x = block(x, mask)  # (B, T, D)
        return x  # (B, T, D)
        ### END SOLUTION


# %% nbgrader={"grade": "Encoder"}
check(Encoder)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# The first word of every sentence has position 0. Which numbers do you look up in `positions` for a sentence of T words?
# They do not depend on the ids.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# A plain Python list of modules hides their parameters from PyTorch; an `nn.ModuleList` does not. And make a new block
# for every layer, or all layers will share their numbers.
#
# </details>

# %% [markdown]
# Since the names agree, the translator's trained numbers load into your encoder. Then it understands the sentence as
# the translator does:

# %%
encoder = or_given(Encoder)(len(translator.english), 64, 4, 128, num_layers=2, max_len=24)
encoder.load_state_dict(translator.part_state("encoder"))
ids = translator.source_batch([figures.SENTENCE])  # (B=1, T=5)
difference = (encoder(ids) - translator.machine().encode(ids)).abs().max().item()
print(f"{tuple(encoder(ids).shape)}, largest difference from the translator's encoder {difference:.0e}")

# %% [markdown]
# ## What a block costs
#
# **On paper.** A matrix product of `(n, m)` and `(m, p)` takes n·m·p multiply-adds. How many does one projection of T
# tokens take, from D to D? How many do the scores of all heads take together?
#
# <details><summary>Answer</summary>
#
# A projection takes T·D·D. For the scores, each of the H heads multiplies (T, D/H) by (D/H, T), which is T²·D/H, and all
# of them together T²·D. The number of heads cancels.
#
# </details>

# %% [markdown]
# ### Exercise 9.6 `block_macs`
#
# Difficulty 2 of 5 · Importance 3 of 5 · 6 minutes · 8 points
#
# The multiply-adds in all matrix products of one block, for one sequence of T tokens: the four projections, the two
# products inside attention, the two layers of the feed-forward network. Biases, norms, softmax and activation do not
# count.
#
# Three Python ints → a Python int.


# %% nbgrader={"solution": "block_macs"}
def block_macs(T, d_model, d_ff):
    """Multiply-adds in the matrix products of one encoder block, for one sequence of T tokens.

    T, d_model, d_ff: int -> int.
    """
    ### BEGIN SOLUTION
    projections = 4 * T * d_model**2  # W_q, W_k, W_v, W_o
    attention = 2 * T**2 * d_model  # scores, and weights times values
    feed_forward = 2 * T * d_model * d_ff  # up, down
    return projections + attention + feed_forward
    ### END SOLUTION


# %% nbgrader={"grade": "block_macs"}
check(block_macs)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# Eight products. Write the shapes of both factors of each; three kinds of terms come out.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Inside attention both products have T on two of their three sides. In the layers with weights T stands on one side only.
#
# </details>

# %%
ours, paper = or_given(block_macs)(5, 64, 128), or_given(block_macs)(512, 512, 2048)
print(f"the translator's block, five words: {ours:,}; the paper's, 512 tokens: {paper:,}")
figures.costs(or_given(block_macs))

# %% [markdown]
# At the paper's width of 512 the famous square overtakes the four projections at 1024 tokens, and everything else
# together at 3072. For our five words it is nothing.

# %% [markdown]
# ## Attention, a linear layer, a convolution
#
# "Doesn't a linear layer do the same to its input as attention? Both multiply and add." Let us look at *who depends on
# whom*. For each output word and each input word: how strongly does the one move when the other does?

# %%
figures.three_influences()

# %% [markdown]
# - A **linear layer** moves each word by itself. It can mix words only if it is built for a fixed number of them, with
#   one weight for each pair of places.
# - A **convolution** sees its neighbors. How far they reach is fixed by the size of its kernel, and so is what it does
#   with them: the same numbers at every place, in every sentence.
# - **Attention** reaches every word in one step, and the numbers in its table are *not parameters*. They are made anew
#   for each sentence, from the sentence.
#
# That is what the old words **slow** and **fast weights** mean. Slow weights move with training, a little at each step.
# Fast weights are computed on the fly, from the data. Take *Hello, I love you* and *Bonjour, je t'aime*: *Bonjour* has to
# look at the first English word, and *t'* at the last, though it stands before *aime*. In another sentence the same
# places hold other words, and a fixed table of places would look at the wrong ones. Take head 1
# of our translator's second block, which finds nouns in lesson 8. What does *visits* look at in two sentences?

# %%
for sentence in ("jane visits africa in september", "paul visits france in september"):
    first, second = machine.encoder.blocks
    x = first(figures.word_vectors(sentence)[None])  # (B=1, T, D)
    _, weights = second.attention(x)  # (B, H, T, T); head 1 has index 0
    looks = zip(sentence.split(), weights[0, 0, 1].tolist(), strict=True)
    print("  ".join(f"{word} {weight:.2f}" for word, weight in looks))

# %% [markdown]
# The place is the same, the word is the same, all parameters are the same. Still *visits* looks most at *jane* in the
# first sentence, 0.49, and most at *france* in the second, 0.53. A convolution would have used the same weights for both.
#
# How far can layers see? That is a layer's **receptive field**, a name from pictures that the notes use for attention too.
# One convolution with kernel 3 sees 3 words, and each further layer adds one on either side.
# How many layers do you need until the middle word sees all 15? With kernel 7?

# %%
explore.reach()

# %% [markdown]
# <details><summary>Answer</summary>
#
# Seven layers with kernel 3, three with kernel 7 (3 words on either side in each layer). Attention needs one.
#
# </details>

# %% [markdown]
# ### Exercise 9.7 `token_influence`
#
# **Extra** · Difficulty 3 of 5 · Importance 3 of 5 · 20 minutes · 10 bonus points
#
# Make such a table for any function. f takes `(T, D)` to `(T, E)`, for some E. Entry (i, j) is the Frobenius norm of the
# block of the Jacobian that says how row i of the output moves with row j of the input:
#
# $$I_{ij} = \Big\lVert \frac{\partial f(x)_i}{\partial x_j} \Big\rVert_F =
# \sqrt{\sum_{e=1}^{E}\sum_{d=1}^{D}\Big(\frac{\partial f(x)_{ie}}{\partial x_{jd}}\Big)^2}$$
#
# Autograd is allowed. The gradient of a *sum* of outputs is not enough: opposite signs cancel in it.
#
# A function f, `x (T, D)` → `(T, T)`. The result need not be differentiable. Where f does not respond to x, the entry is 0, and
# autograd may know nothing of such an f: `x > 0` as numbers is one. Leave x as it came, `requires_grad` included.


# %% nbgrader={"solution": "token_influence"}
def token_influence(f, x):
    """How strongly each row of f(x) depends on each row of x: Frobenius norms of the blocks of the
    Jacobian.

    f: function (T, D) -> (T, any width); x (T, D), float32 or float64
    -> (T, T), same dtype; row i, column j: output row i, input row j.
    """
    ### BEGIN SOLUTION
    jacobian = torch.autograd.functional.jacobian(f, x)  # (T, E, T, D)
    return jacobian.pow(2).sum(dim=(1, 3)).sqrt()  # (T, T)
    ### END SOLUTION


# %% nbgrader={"grade": "token_influence"}
check(token_influence)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# `torch.autograd.functional` has a function that gives all derivatives at once. Print the shape of its result for a small
# f: which two of its four axes say *which word*?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Square every entry, add up over the two axes that do not say which word, take the root.
#
# </details>

# %% [markdown]
# With it you can look at what no single table shows: the whole trained encoder, two blocks with everything in them. Who moves
# *visits*, and who is moved by it?

# %%
figures.encoder_influence(or_given(token_influence))

# %% [markdown]
# ## Why does it work so well? Four intuitions, four experiments
#
# A popular explanation of the Transformer ends with four reasons for its success. Each sounds right. Let us measure.
#
# **1. "Distributed and independent representations at each block"**, like the feature maps of a convolution. Then a head's
# output should not be predictable from the other heads'. We try with the best linear map, on 200 sentences that the
# translator has never seen (1: predictable, 0: not at all), in the trained encoder and, as a control, in encoders whose
# blocks have not learned anything. **Predict before you run:** does training make heads more alike, or less?

# %%
for name, encoder in figures.encoders_to_compare().items():
    rows = figures.predictable(encoder)  # one number a head, block by block
    print(f"{name:<36}" + "    ".join(" ".join(f"{share:.2f}" for share in row) for row in rows))

# %% [markdown]
# Look at the second line before the first. Untrained heads, reading the same words, can be predicted almost completely, 0.91
# to 0.98 in both blocks, from three starts alike. In the trained encoder it is 0.87 to 0.91 in the first block and 0.30 to
# 0.54 in the second: **training made these heads more independent.** The third line says how much hangs on the words
# themselves: when they are random too, untrained heads have more to tell apart, 0.46 to 0.73 over three starts.
# **Verdict:** *independent* is too strong for the first block, and in the second it is something that was learned.
#
# **2. "The meaning heavily depends on the context"**, and there is "no notion of locality". You have seen both: fast weights, and a table
# of influences without a zero. Is far as good as near? We exchange a word far from *jane*, and then one beside her, and
# see how far her vector turns:


# %%
def moved(sentence, other):
    """How far the first word's vector turns (one minus the cosine) when the sentence changes."""
    a, b = machine.encode(translator.source_batch([sentence, other]))[:, 0]  # (D,), (D,)
    return 1 - F.cosine_similarity(a, b, dim=0).item()


print(f"a far word:  {moved('jane visits africa in september', 'jane visits africa in may'):.4f}")
print(f"a near word: {moved('jane visits africa in september', 'jane leaves africa in september'):.4f}")

# %% [markdown]
# **Verdict:** nothing in the formula prefers near words. What a network has *learned* may: positions are in the vectors,
# and this translator's *jane* turns by 0.0009 for the month and by 0.0019 for the verb. (A month and a verb differ in
# more than their distance. What would a fair test look like?)
#
# <details><summary>Answer</summary>
#
# Exchange the same word for the same other word, once near and once far, in many sentences, and average. We did it with
# people and animals in 300 sentences like *jane sees the dog with the cat*. The exchange at the fourth word turns the name
# three to four times as far as the same exchange at the seventh; with blocks that have not learned anything, 1.2 times.
# Has this translator learned to listen more to what is near? Look at the names one by one before you say so: for *jane* it is
# 1.3 times, as without learning, and for *omar* more than ten times. The mean rests on a few masculine names, which
# turn far when the noun beside them changes its gender. And if things are exchanged, the whole effect is gone: 1.2 times,
# learned or not. (And the fourth word is the one that is seen, the seventh is not.)
#
# </details>
#
# **3. "The first block associates word-vector pairs, the second pairs of pairs, the third of pairs of pairs of pairs, and so
# on."** That can be counted. If an output needs n words *together*, then changing them one by one misses something; the
# mixed difference of order n measures it: change the n words in all $2^n$ ways, and add the outputs with alternating
# signs. What needs fewer than n words cancels. **Predict before you look:** up to how many words does one output relate
# after one, two, three
# layers, if attention had no softmax?

# %%
figures.interactions()

# %% [markdown]
# <details><summary>Answer</summary>
#
# Two, then **five**, then all eight that there are (14 would be the most). One layer computes
# $\sum_j (q_i \cdot k_j)\,v_j$: each term holds word i and word j, a pair. In the second layer $q_i$, $k_j$ and $v_j$
# are rows that hold a pair each: i with a second word, j with a second word, j with yet another. Five. So "pairs of pairs"
# is a good picture and undercounts. With the softmax even one layer relates all words, because they share the
# denominator, but what needs many words at once is small: 4.4, 1.1, 0.17, 0.21, 0.089 and 0.0049 for one to six words.
#
# </details>
#
# **Verdict:** true in spirit. Depth makes relations of more words cheap; the number is not a power of two.
#
# **4. "Combination of high and low-level information: with skip-connections of course!"** That was figure 9.6: with them, in
# pre-norm, a linear map reads a good part of the word's own vector at every height up to twelve; without them 5 percent
# are left after one block. **Verdict:** true, and not tiny. And going down, figure 9.5: many paths carry the gradient, the shortest
# meets no matrix.

# %% [markdown]
# ## At work
#
# Your parts in the translator. Its encoder blocks are post-norm, and with your `EncoderBlock` in their place it should
# translate as before:

# %%
at_work(EncoderBlock)

# %%
at_work(layer_norm, Encoder)

# %% [markdown]
# And the feed-forward network, half of the block? **Predict:** what does the translator lose when its encoder goes without,
# and what when no feed-forward network, encoder or decoder, has its ReLU?

# %%
figures.without_feed_forward()

# %% [markdown]
# Cut from the encoder, 0.17 nats a word, and 146 of the 200 sentences still come out word for word: attention and norms alone
# carry this small encoder far. Kept, but without the ReLU, 4.95 nats and not one sentence right: two linear layers do not say
# half of what they were trained to say, they say something else.
#
# What does the published bug cost here? The translator is post-norm, so we compare three wirings with its numbers: the
# right pre-norm, the published one, and none at all. (`figures.rewired` takes the block apart and wires its parts anew.)

# %%
at_work(EncoderBlock=figures.rewired("published"))

# %%
at_work(EncoderBlock=figures.rewired("pre-norm"))

# %%
at_work(EncoderBlock=figures.rewired("no residual"))

# %% [markdown]
# In nats a word on unseen sentences: 0.0002 as trained, 0.06 with the published wiring, 2.76 with the right pre-norm, 8.42
# without residuals. So this test does *not* convict the published block, which even does much better: the
# numbers were trained for post-norm, and its wiring is nearer to that. A trained network is bound to the wiring that it was
# trained with. The bug shows up where you looked before: in an identity test (zero sublayers must give x back) and in what
# is left of a word after twelve blocks.

# %% [markdown]
# ### Quiz 9.1
#
# Suppose that a sentence's attention weights are given. Where in an encoder block is each channel bent *by itself*,
# whatever the other channels hold?
#
# - **a** in attention
# - **b** in the layer norm
# - **c** in the feed-forward network
# - **d** in the residual connection

# %% nbgrader={"solution": "quiz_1"}
quiz_1 = None  # "a", "b", "c" or "d"
### BEGIN SOLUTION
quiz_1 = "c"
### END SOLUTION

# %% nbgrader={"grade": "quiz_1"}
check(quiz_1=quiz_1)

# %% [markdown]
# ### Quiz 9.2
#
# Which is true of a deep pre-norm stack, and not of a post-norm stack?
#
# - **a** a clean copy of the word vector reaches the top because it is normalized often
# - **b** its output is its input plus the contributions of all sublayers
# - **c** its sublayers see numbers of the same size in every block, so the order makes no difference

# %% nbgrader={"solution": "quiz_2"}
quiz_2 = None  # "a", "b" or "c"
### BEGIN SOLUTION
quiz_2 = "b"
### END SOLUTION

# %% nbgrader={"grade": "quiz_2"}
check(quiz_2=quiz_2)

# %% [markdown]
# ### Quiz 9.3
#
# With d_ff = 4D, at which length of text do the two products inside attention cost as much as everything else in the
# block together?
#
# - **a** T = 6D
# - **b** T = D
# - **c** T = 2D

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
# A classmate wants to save memory and builds encoder blocks without residual connections: "Attention lets every word see
# every other word, so all information is there anyway. And I keep the layer norms, so the gradients will be fine."
# Explain what is right in this and what will go wrong. Use what you have measured in this lesson, and say which
# measurement would convince your classmate.
#
# <details><summary>For those who learn alone: what a good answer has</summary>
#
# - what is right: norms do keep the length of gradients in bounds, and every word is seen by every other one;
# - what goes wrong: averages of averages make all words alike, and hardly anything of a word's own vector is left after one block;
# - a measurement with its outcome, and a sentence on why seeing everything is not the same as keeping it apart.
#
# </details>

# %% [markdown] nbgrader={"written": "written_1"}
# <details><summary>Model answer and marking scheme</summary>
#
# **Model answer.** It is right that every output depends on every word, and that norms keep gradients in bounds: over 24
# untrained blocks with norms and without residuals they stayed between 1 and 20. But a gradient of good length is no
# sign that it carries good news. Attention gives each word an average of all words. The words of a sentence get similar
# averages, and averages of those are more similar still: in the measurement, the share that differs between words fell
# from 0.29 after the first block to 0.00 after the third. After that there is one vector for the whole sentence,
# repeated, and no later block can tell *jane* from *africa* again. Even after one block a linear map read back only 5
# percent of the word's own vector. With a residual the block adds to the word's vector and does not replace it, so even
# after twelve pre-norm blocks more than a third could be read back. The convincing test takes a minute: send a sentence through the
# untrained stack and print the distances between its words after each block. In the translator the loss went from 0.0002
# to 8.4 nats a word, though it was trained with residuals, so that number alone proves less.
#
# **Marking scheme (15).** 3: norms do bound the gradients, or every word is reachable (what is right). 5: averaging makes
# tokens alike, with the mechanism. 3: the residual keeps the word's own vector, $x + f(x)$. 3: a measurement with its
# outcome. 1: a limit is named (untrained networks, or a translator trained with residuals).
#
# </details>

# %% [markdown]
# ## From the notes this course grew from
#
# <details><summary>Claims that were loose, and what this lesson found</summary>
#
# - **"Mean and variance are computed across channels and spatial dimensions"** (AI Summer's article on Transformers,
#   beside formulas that average over one vector). The formulas are layer norm as Transformers use it; the sentence
#   describes the norm of a whole image. Figure 9.2 and the cell below it show the difference.
# - **The recipe of an encoder block** is given there as attention, normalization, a residual around the previous two, a
#   linear layer, a second normalization, a second residual. Taken literally that is $x + \mathrm{LN}(f(x))$, with one
#   linear layer. The paper's is $\mathrm{LN}(x + f(x))$, with two layers and an activation. In our translator, which was
#   trained in the paper's order, that other order costs 8.0 nats a word, where 0.0002 is right.
# - *"skip connections give a transformer a tiny ability to allow the representations of different levels of processing to
#   interact"* (a remark of Felix Hill's, quoted there). Measured, it is not tiny: after one untrained block 80 percent of
#   the word can be read back with it, and 5 percent without.
# - *"They enable top-down understanding to flow back with the multiple gradient paths that flow backward"*: gradients flow backward during training only. When a
#   trained encoder reads a sentence, nothing flows from top to bottom.
# - **Identities blend in higher layers**: yes, and how fast depends on the order of norm and residual (figure 9.6).
# - *"With more layers, the model makes more abstract representations."* The sentence gives pairs of pairs as its reason, and
#   that was counted above. Whether they are *abstract* nobody has measured here.
# - *"This is analogous to the receptive field but in terms of pairs"*: the explorer shows the ordinary one.
#
# </details>

# %% [markdown]
# ## Recap
#
# - Layer norm takes mean and size away from each token, by itself. Norms that share their mean among tokens leak.
# - A residual adds. It keeps words apart and gives the gradient a path without matrices.
# - Attention gathers, the feed-forward network works on it word by word and bends each channel at will. For given weights,
#   attention is linear in its values.
# - Post-norm keeps the stream at size 1. Pre-norm leaves it open and wants one last norm on top; with it, the last block's
#   gradient falls with the root of the depth.
# - A block costs 4TD² + 2T²D + 2TDF multiply-adds, F for the width of its feed-forward network. The square matters for
#   long texts.
# - Linear layers and convolutions have slow weights, attention makes fast ones.
# - After one, two, three layers without softmax an output relates up to 2, 5, 14 words at once.
#
# `progress()` in a new cell shows what you have done so far, over all lessons.

# %% [markdown]
# ## Further reading
#
# - Vaswani et al., [Attention Is All You Need](https://arxiv.org/abs/1706.03762) (2017), sections 3.1 and 3.3.
# - Ba, Kiros and Hinton, [Layer Normalization](https://arxiv.org/abs/1607.06450) (2016).
# - He et al., [Deep Residual Learning](https://arxiv.org/abs/1512.03385) (2015): where residuals come from.
# - Xiong et al., [On Layer Normalization in the Transformer Architecture](https://arxiv.org/abs/2002.04745) (2020): the
#   two orders, and why one of them needs a warm-up.
# - Dong, Cordonnier and Loukas, [Attention is not all you need](https://arxiv.org/abs/2103.03404) (2021): without
#   residuals and feed-forward networks, rank collapses.
# - Schmidhuber, *Learning to Control Fast-Weight Memories* (1992), and Schlag, Irie and Schmidhuber,
#   [Linear Transformers Are Secretly Fast Weight Programmers](https://arxiv.org/abs/2102.11174) (2021).
# - [AI Summer on Transformers](https://theaisummer.com/transformer/): the four intuitions.
#
# **Next:** an encoder reads. [Lesson 10](../10_decoder_block/10_decoder_block.ipynb) adds the decoder, which writes.
