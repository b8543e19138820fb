# %% [markdown]
# # 14. From 2017 to today: the block of Llama, Mistral and Qwen
#
# **Goal:** turn the block of lesson 9 into the block of today's open models, one change at a time, load numbers in
# their layout into it, and adapt a trained network with a few percent of its numbers.
#
# **Time:** about 180 minutes, 40 of them for the extras, exercises 14.6, 14.8 and 14.9. Good places for a break are
# after exercise 14.5, when the block stands, and before the bytes.

# %% tags=["setup"]
# (empty: the build puts the set-up cell here)

# %%
import copy
import re
from collections import Counter
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import nn

from helpers import check, corpus, or_given, progress, translator
from helpers.blocks import causal_mask, grouped_query_attention, layer_norm, merge_heads, apply_rope, split_heads
from helpers.drawing.transformer_map import transformer_map
from helpers.lessons.today import explore, figures, layout, published
from helpers.lessons.today.adapting import adapted, finished_translator, nats_a_word
from helpers.lessons.today.decoder import Decoder, reach
from helpers.lessons.today.handed import RMSNorm, merge_pair

# %%
transformer_map("14_today")

# %% [markdown]
# In lesson 12 you built a GPT, in lesson 13 you loaded a published encoder. *And a model of today?* Six changes lead
# there, and each of them was prepared in an earlier lesson.
#
# | | 2017 | today | prepared in |
# |---|---|---|---|
# | norm | mean and spread | root mean square alone | [lesson 9](../09_encoder_block/09_encoder_block.ipynb) |
# | feed-forward | one bend | a gate | [lesson 9](../09_encoder_block/09_encoder_block.ipynb) |
# | positions | added once | rotations in every block | [lesson 2](../02_position/02_position.ipynb) |
# | keys and values | one head for each head of queries | one for several | [lesson 8](../08_multi_head/08_multi_head.ipynb) |
# | biases | in every layer | none | [lesson 8](../08_multi_head/08_multi_head.ipynb) |
# | order | post-norm | pre-norm, with one last norm | [lesson 12](../12_language_model/12_language_model.ipynb) |

# %% [markdown]
# ## You need
#
# - layer norm, the feed-forward network and pre-norm: [lesson 9](../09_encoder_block/09_encoder_block.ipynb);
# - rotations: [lesson 2](../02_position/02_position.ipynb); many heads, and queries in groups:
#   [lesson 8](../08_multi_head/08_multi_head.ipynb);
# - masks: [lesson 5](../05_masking/05_masking.ipynb); the cache: [lesson 10](../10_decoder_block/10_decoder_block.ipynb).
#
# What the import cell brings, finished:
#
# | piece | how it is called |
# |---|---|
# | `grouped_query_attention(Q, K, V, mask)` | `(B, H, T, d)`, `(B, G, T, d)` twice, a mask → `(B, H, T, d)`; a row that sees nothing gives zeros |
# | `split_heads(x, H)`, `merge_heads(x)` | `(B, T, H·d)` → `(B, H, T, d)` and back |
# | `apply_rope(x, positions, base=10000.0)` | lesson 2's rotations, neighbors in pairs |
# | `causal_mask(T)` | boolean `(T, T)`, on the CPU |
# | `layer_norm(x, gamma, beta, eps=1e-5)` | lesson 9's norm |
# | `RMSNorm(norm, d_model, eps=1e-6)` | a module with a `weight (D,)`: `forward(x)` is `norm(x, weight, eps)` |
# | `merge_pair(tokens, pair)` | a list of `bytes` → a list in which the two of the pair are one |
# | `Decoder(block, ...)` | token vectors, a stack of your blocks, one last norm, logits; `write(ids, count)` adds the likeliest tokens |
#
# Two questions to warm up. Answer before you open them.
#
# <details><summary>Lesson 2: q stands at place 5 and k at place 6. Both move 100 places on. What happens to the score
# of their rotated vectors?</summary>
#
# Nothing. Both arrows turn on together, and the angle between them stays.
#
# </details>
#
# <details><summary>Lesson 9: in a pre-norm stack, who normalizes what leaves the last block?</summary>
#
# No block does. So one more norm stands behind the last one.
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
# In this lesson no layer has a bias, G is the number of heads of keys and values, and d = D / H is the width of a head.
#
# </details>

# %% [markdown]
# ## A norm without a mean
#
# Layer norm takes two things away from a token: its mean and its size. *Does it have to take both?*
#
# **On paper.** A token has the vector (1, 1, 5, 5). Divide it by the root of the mean of its squares, and subtract
# nothing. What do you get? And for which tokens do this norm and layer norm give the same?
#
# <details><summary>Answer</summary>
#
# The mean of the squares is (1 + 1 + 25 + 25) / 4 = 13, its root 3.606. So (0.277, 0.277, 1.387, 1.387). The signs
# stay: layer norm made (−1, −1, 1, 1) of it. The two agree for every token whose mean is 0, because then the mean of
# the squares *is* the variance.
#
# </details>
#
# $$\mathrm{RMS}(x) = \sqrt{\frac1D\sum_{k=1}^{D}x_k^2 + \epsilon} \qquad \mathrm{RMSNorm}(x)_k = \gamma_k\,\frac{x_k}{\mathrm{RMS}(x)}$$
#
# One average instead of two, and one vector of parameters instead of two: no β (Zhang and Sennrich, 2019).

# %% [markdown]
# ### Exercise 14.1 `rms_norm`
#
# Difficulty 1 of 5 · Importance 5 of 5 · 8 minutes · 8 points
#
# The formula above, for every row by itself.
#
# `x (..., D)`, `weight (D,)`, `eps` a number → `(..., D)`. A row of zeros gives zeros, with finite gradients.
#
# Forbidden: `F.rms_norm`, `nn.RMSNorm`, and the other norms of the library. `mean` is allowed.


# %% nbgrader={"solution": "rms_norm"}
def rms_norm(x, weight, eps=1e-6):
    """RMS norm of every row by itself (Zhang and Sennrich, 2019): no mean is taken away.

    x (..., D), weight (D,), float32 or float64; eps a number > 0 -> (..., D), same dtype.
    """
    ### BEGIN SOLUTION
    mean_square = x.pow(2).mean(dim=-1, keepdim=True)  # (..., 1)
    return weight * x / (mean_square + eps) ** 0.5  # (..., D)
    ### END SOLUTION


# %% nbgrader={"grade": "rms_norm"}
check(rms_norm)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# Your layer norm of lesson 9 has four lines. Two of them go.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Square first, then the mean over the last axis, kept as an axis of size 1. Where does ε stand in the formula, and what
# would a row of zeros give if it stood elsewhere?
#
# </details>
#
# **Predict before you run.** The word vectors of our translator have 64 channels. How much of a word's squared length
# lies in its mean? (If the channels were independent chance, it would be about 1/64, 1.6 percent.) And how far apart
# are the two norms then?

# %%
words = translator.state()["encoder.tokens.weight"][1:]  # (165, 64), without padding
share = words.mean(-1) ** 2 / words.pow(2).mean(-1)  # (165,)
one, zero = torch.ones(64), torch.zeros(64)
apart = or_given(rms_norm)(words, one) - layer_norm(words, one, zero)  # (165, 64)
print(f"in the mean: {share.mean():.2%} of the squared length, at most {share.max():.2%}")
print(f"the two norms differ by {apart.norm(dim=-1).mean() / 8:.3f} of a token's length")

# %% [markdown]
# <details><summary>Answer</summary>
#
# A quarter of a percent on average, less than chance would give, and at most 2.3 percent. So the two norms differ by
# about 4 percent of a token's length. In 64 dimensions the mean is one direction among 64, and the norm of 2017 pays
# a second average to clear it away. One caution: this network was trained *with* layer norms, which had no use for
# that direction. Zhang and Sennrich trained networks both ways and found the same quality in less time.
#
# </details>

# %% [markdown]
# ## A gate in the feed-forward network
#
# ReLU bends each hidden channel by itself: what is below 0 is cut. A **gate** lets one vector decide how much of
# *another* comes through. Take two layers instead of one, and multiply what they give, channel by channel:
#
# $$\mathrm{SwiGLU}(x) = W_\text{down}\,\big(\mathrm{silu}(W_\text{gate}\,x) \odot W_\text{up}\,x\big) \qquad \mathrm{silu}(z) = z\,\sigma(z) = \frac{z}{1+e^{-z}}$$
#
# **On paper.** A hidden channel has up = 3. What comes out of the product if its gate is 2, 0, −2, or −20? (σ(2) =
# 0.881.)
#
# <details><summary>Answer</summary>
#
# silu(2) = 1.762, so 5.28; silu(0) = 0, so 0; silu(−2) = −0.238, so −0.72; silu(−20) is about −0.00000004, so nearly
# nothing. An open gate multiplies by about its own size, a closed one lets nothing through.
#
# </details>

# %%
figures.gates()

# %% [markdown]
# *What does the third matrix cost?* Lesson 9's network holds 8D² weights, with F = 4D. **On paper:** how wide may
# SwiGLU be to hold as many? And what is that for D = 4096?
#
# <details><summary>Answer</summary>
#
# Three matrices of D · F weights: 3DF = 8D² gives F = 8D/3. For D = 4096 that is 10,922.7. Llama 2 with 7 billion
# parameters has 11,008: the next multiple of 256.
#
# </details>

# %% [markdown]
# ### Exercise 14.2 `SwiGLU`
#
# Difficulty 2 of 5 · Importance 4 of 5 · 8 minutes · 8 points
#
# A module with three layers `gate`, `up` (from `d_model` to `d_ff`) and `down` (back), all `nn.Linear` without bias.
#
# `forward`: `x (B, T, d_model)` → `(B, T, d_model)`. `F.silu` is yours to use.


# %% nbgrader={"solution": "SwiGLU"}
class SwiGLU(nn.Module):
    """The gated feed-forward network of Shazeer (2020), without biases: gate, up and down.

    forward(x (B, T, d_model)) -> (B, T, d_model), same dtype.
    """

    def __init__(self, d_model, d_ff):
        super().__init__()
        ### BEGIN SOLUTION
        self.gate = nn.Linear(d_model, d_ff, bias=False)
        self.up = nn.Linear(d_model, d_ff, bias=False)
        self.down = nn.Linear(d_ff, d_model, bias=False)
        ### END SOLUTION

    def forward(self, x):
        ### BEGIN SOLUTION
        hidden = F.silu(self.gate(x)) * self.up(x)  # (B, T, F)
        return self.down(hidden)  # (B, T, D)
        ### END SOLUTION


# %% nbgrader={"grade": "SwiGLU"}
check(SwiGLU)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# Two of the three layers read x. The third reads their product.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Only one of the two factors is bent. Its layer has the name of what it does.
#
# </details>
#
# Your network beside lesson 9's, of about the same size for D = 64:

# %%
network = or_given(SwiGLU)(64, 171)  # 171 is 8/3 of 64, rounded
print(f"SwiGLU(64, 171): {sum(p.numel() for p in network.parameters()):,} numbers; 8 D² = {8 * 64**2:,}")

# %% [markdown]
# Why should a gate be better? Shazeer measured that it is, at equal size, and ended his paper: "We offer no
# explanation as to why these architectures seem to work; we attribute their success, as all else, to divine
# benevolence." That is rare honesty, and still the state of things.

# %% [markdown]
# ## The other pairs
#
# Lesson 2 turned pairs of neighbors: channels 0 and 1, 2 and 3, and so on. The files of Llama, Mistral and Qwen on the
# Hugging Face hub pair channel $i$ with channel $i + d/2$: **halves**. The angles are the same.
#
# $$x'_i = x_i\cos a_i - x_{i+d/2}\sin a_i \qquad x'_{i+d/2} = x_i\sin a_i + x_{i+d/2}\cos a_i \qquad a_i = \text{position}\cdot\text{base}^{-2i/d},\quad i < d/2$$

# %%
figures.two_pairings()

# %% [markdown]
# **On paper**, d = 4: the vector (1, 0, 0, 0) at place 1. What does lesson 2's `apply_rope` make of it, and what does the
# formula above?
#
# <details><summary>Answer</summary>
#
# Channel 0 turns by 1 in both. With neighbors its partner is channel 1: (0.540, 0.841, 0, 0). With halves it is
# channel 2: (0.540, 0, 0.841, 0).
#
# </details>
#
# *Why two dialects?* With halves, one needs no interleaving: cut the vector in the middle, and everything is done by
# two contiguous pieces. Nothing else is gained.

# %% [markdown]
# ### Exercise 14.3 `apply_rope_half_split`
#
# Difficulty 2 of 5 · Importance 5 of 5 · 12 minutes · 10 points
#
# - `x`: `(..., T, d)`, d even; `positions`: LongTensor `(T,)`, any integers in any order; `base`: float
# - returns `(..., T, d)`, same dtype, the pairs $(x_i, x_{i+d/2})$ turned as in the formula
# - equal means within 1e-4 for places beyond 4


# %% nbgrader={"solution": "apply_rope_half_split"}
def apply_rope_half_split(x, positions, base=10000.0):
    """Rotary positions (Su et al., 2021) that pair channel i with channel i + d/2, as files on the
    hub do.

    x (..., T, d) with d even, positions LongTensor (T,) -> (..., T, d), same dtype.
    """
    ### BEGIN SOLUTION
    half = x.shape[-1] // 2
    i = torch.arange(half, dtype=torch.float64, device=x.device)  # (d/2,)
    angles = positions[:, None] / base ** (i / half)  # (T, d/2)
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    a, b = x[..., :half], x[..., half:]  # (..., T, d/2)
    return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1)  # (..., T, d)
    ### END SOLUTION


# %% nbgrader={"grade": "apply_rope_half_split"}
check(apply_rope_half_split)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# Take your `apply_rope` of lesson 2, or begin with its formulas if you left that extra out. The angles stay as they are.
# Two places change: how the pairs are taken out, and how they are put back.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# If you write −2i/d: i counts the pairs, from 0 to d/2 − 1. There are as many angles as pairs.
#
# </details>
#
# One query and one key, turned in both dialects, at three pairs of places. **Predict:** which of the six scores are
# equal?

# %%
q, k = (torch.randn(1, 6, generator=torch.Generator().manual_seed(seed)) for seed in (1, 2))  # (1, 6) each
for at, other in ((5, 5), (5, 7), (105, 107)):
    here, there = torch.tensor([at]), torch.tensor([other])
    pairs = (apply_rope(q, here) * apply_rope(k, there)).sum()
    halves = (or_given(apply_rope_half_split)(q, here) * or_given(apply_rope_half_split)(k, there)).sum()
    print(f"places {at:>3} and {other:>3}: neighbors {pairs:+.4f}, halves {halves:+.4f}")

# %% [markdown]
# <details><summary>Answer</summary>
#
# In each dialect the score depends on the distance alone, so the second and third rows are equal, each in its own
# column. In the first row the *two dialects* agree: at equal places both arrows turn alike, and the score is that of
# the plain vectors. At any distance they give different numbers: these are two different networks.
#
# </details>

# %% [markdown]
# ## Between the dialects
#
# Here is a trap that people fall into. Meta's own files of Llama are made for neighbors, those on the hub for halves.
# The shapes are the same, and a table translates the names. Load one into code for the other: **nothing complains**,
# and nothing is right. So the converter moves rows of $W_Q$ and $W_K$, once, and the same network comes out.
#
# **On paper.** A head of width 4. Its four query channels are rows 0, 1, 2, 3 of $W_Q$, made for neighbors. In which
# order must they stand, so that halves pair the same two? And width 6?
#
# <details><summary>Answer</summary>
#
# For width 4, neighbors are (0, 1) and (2, 3). Halves pair places 0 and 2, 1 and 3. So 0, 2, 1, 3: the first of each
# pair, then the second of each. For width 6: 0, 2, 4, 1, 3, 5. Note that for width 4 going back is the same
# move. Whoever tests with heads of that width does not see which way they went.
#
# </details>

# %% [markdown]
# ### Exercise 14.4 `interleaved_to_half_split`
#
# Difficulty 3 of 5 · Importance 4 of 5 · 15 minutes · 12 points
#
# `W (D, D_in)`, the matrix of all query heads, or of all key heads, as an `nn.Linear` keeps it; `num_heads` divides
# D, and each head has an even width → `(D, D_in)`, the rows of each head in the new order, so that `apply_rope_half_split` on
# the new queries and keys gives the scores that `apply_rope` gave on the old ones. (Here D is the number of rows: H · d for
# queries, G · d for keys.)


# %% nbgrader={"solution": "interleaved_to_half_split"}
def interleaved_to_half_split(W, num_heads):
    """The rows of a projection, head by head, from pairs of neighbors (2i, 2i+1) to pairs of halves
    (i, i + d/2).

    W (D, D_in), num_heads: int, of queries, or of keys for a matrix of keys -> (D, D_in), same
    dtype.
    """
    ### BEGIN SOLUTION
    pairs = W.unflatten(0, (num_heads, -1, 2))  # (H, d/2, 2, D_in): first and second of each pair
    return pairs.transpose(1, 2).flatten(0, 2)  # (D, D_in)
    ### END SOLUTION


# %% nbgrader={"grade": "interleaved_to_half_split"}
check(interleaved_to_half_split)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# Which axis of W counts the query's channels, and which one counts the channels of x? A head owns d neighboring rows,
# as in lesson 8.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# See the rows as a table: heads, pairs, and two in each pair. Two of these three axes change places. Write down the order
# for two heads of width 6 first, and compare.
#
# </details>
#
# **Predict before you run.** Two heads of width 6. We compute the scores of five tokens three times: as the file meant
# them, with your permutation and halves, and with halves but *without* the permutation. Which scores of the third table
# are right all the same?

# %%
W_q, W_k = (torch.randn(12, 8, generator=torch.Generator().manual_seed(seed)) for seed in (3, 4))  # (12, 8) each
x, places = torch.randn(5, 8, generator=torch.Generator().manual_seed(5)), torch.arange(5)


def scores(turn, W_q, W_k):
    Q, K = (turn((x @ W.T).view(5, 2, 6).transpose(0, 1), places) for W in (W_q, W_k))  # (2, 5, 6) each
    return (Q @ K.transpose(-2, -1))[0]  # (5, 5), of the first head


meant = scores(apply_rope, W_q, W_k)
moved = scores(or_given(apply_rope_half_split), *(or_given(interleaved_to_half_split)(W, 2) for W in (W_q, W_k)))
forgotten = scores(or_given(apply_rope_half_split), W_q, W_k)
figures.three_scores(meant, moved, forgotten)

# %% [markdown]
# <details><summary>Answer</summary>
#
# The diagonal, where query and key stand at the same place: there both turn alike and no dialect matters. Everything
# else is wrong. A test with one token passes. So does a test of shapes, of names, and of the length of each query.
#
# </details>

# %% [markdown]
# ## Fewer keys and values
#
# In lesson 8 several heads of queries shared one head of keys and values. *What for?* A model that writes keeps the keys
# and values of all tokens so far (lesson 10). Let us count.
#
# **On paper.** Llama 2 with 7 billion parameters has 32 layers with 32 heads of width 128, and 16 bits, that is 2
# bytes, for each number. How many bytes does one token put into the cache? How many do 4096 tokens take? Llama 3 with
# 8 billion has the same sizes, but 8 heads of keys and values.
#
# <details><summary>Answer</summary>
#
# Keys and values, 2 · 32 layers · 32 heads · 128 · 2 bytes = 524,288 bytes, half a MiB for *one token*. 4096 tokens
# take 2 GiB: a sixth of what all its parameters take. With 8 heads, a quarter of that: 128 KiB a token.
#
# </details>

# %%
figures.cache_bytes()

# %% [markdown]
# Try it. *Which slider helps at 4,000 tokens, and which only at 100,000?*

# %%
explore.cache()

# %% [markdown]
# <details><summary>Answer</summary>
#
# Fewer heads of keys and values help at every length, in the same ratio. A window does nothing until the text is
# longer than the window; from there on the cache stops growing. (Windows come further down.)
#
# </details>
#
# Two changes are left. **No biases:** each layer is a matrix and nothing else. And the order is **pre-norm with one
# last norm**, as in your GPT. (Families differ in small things: Qwen 2.5 has kept a bias for queries, keys and
# values; Qwen 3 has none, and normalizes queries and keys. A loader has to look.) Now they are all together.

# %% [markdown]
# ### Exercise 14.5 `LlamaBlock`
#
# Difficulty 4 of 5 · Importance 5 of 5 · 30 minutes · 18 points
#
# `LlamaBlock(d_model, num_heads, num_kv_heads, d_ff, base=10000.0, eps=1e-6)`:
#
# - `W_q`, `W_k`, `W_v`, `W_o`: `nn.Linear` without bias; `W_k` and `W_v` lead to `num_kv_heads` heads;
# - `norm1`, `norm2`: modules with a `weight`, such as `RMSNorm(rms_norm, d_model, eps)`, which calls your function;
# - `feed_forward`: your `SwiGLU`. Nothing else stands in its `state_dict`;
# - queries and keys are turned by `apply_rope_half_split` at places 0 to T − 1, head by head; scores over √d;
# - pre-norm, with a residual around each of the two sublayers;
# - `ValueError` unless `num_heads` divides `d_model` and `num_kv_heads` divides `num_heads`.
#
# `forward(x, mask=None)`: `x (B, T, D)` → `(B, T, D)`. Without a mask it is causal. **With a mask, the mask alone
# decides**; it broadcasts to `(B, H, T, T)`, and a row that sees nothing gets zeros from attention.
#
# Forbidden: `F.scaled_dot_product_attention`, `F.rms_norm`, `nn.RMSNorm`, the transformers library.


# %% nbgrader={"solution": "LlamaBlock"}
class LlamaBlock(nn.Module):
    """The block of Llama (Touvron et al., 2023) with grouped queries; ValueError where heads do not
    divide.

    forward(x (B, T, D), mask None (then causal) or bool that broadcasts to (B, H, T, T)) ->
    (B, T, D), same dtype.
    """

    def __init__(self, d_model, num_heads, num_kv_heads, d_ff, base=10000.0, eps=1e-6):
        super().__init__()
        ### BEGIN SOLUTION
        if d_model % num_heads or num_heads % num_kv_heads:
            raise ValueError(f"{d_model} channels, {num_heads} heads and {num_kv_heads} of keys do not divide")
        self.num_heads, self.num_kv_heads, self.base = num_heads, num_kv_heads, base
        shared = d_model // num_heads * num_kv_heads  # G · d
        self.W_q, self.W_o = (nn.Linear(d_model, d_model, bias=False) for _ in range(2))
        self.W_k, self.W_v = (nn.Linear(d_model, shared, bias=False) for _ in range(2))
        self.norm1, self.norm2 = (RMSNorm(rms_norm, d_model, eps) for _ in range(2))
        self.feed_forward = SwiGLU(d_model, d_ff)
        ### END SOLUTION

    def forward(self, x, mask=None):
        ### BEGIN SOLUTION
        places = torch.arange(x.shape[1], device=x.device)  # (T,)
        mask = causal_mask(x.shape[1]).to(x.device) if mask is None else mask
        y = self.norm1(x)  # (B, T, D)
        Q = apply_rope_half_split(split_heads(self.W_q(y), self.num_heads), places, self.base)  # (B, H, T, d)
        K = apply_rope_half_split(split_heads(self.W_k(y), self.num_kv_heads), places, self.base)  # (B, G, T, d)
        V = split_heads(self.W_v(y), self.num_kv_heads)  # (B, G, T, d)
        x = x + self.W_o(merge_heads(grouped_query_attention(Q, K, V, mask)))  # (B, T, D)
        return x + self.feed_forward(self.norm2(x))  # (B, T, D)
        ### END SOLUTION


# %% nbgrader={"grade": "LlamaBlock"}
check(LlamaBlock)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# Write lesson 9's pre-norm block first, two lines. Then replace the attention: three projections, cut into heads, two
# of the three turned, one call for the grouped attention, glued and projected.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# The rotations work on heads: their last axis is d, not D. Values are not asked *where?*, so which of the three stays
# as it is? And `split_heads` cuts a matrix of G · d columns into as many heads as you tell it.
#
# </details>
#
# *Is it the block that people use?* Count. Llama 3 with 8 billion parameters has 32 blocks of width 4096, 32 heads, 8
# of keys and values, F = 14,336, and 128,256 tokens whose table is not shared with the output. On torch's device
# `meta` tensors have shapes and no numbers, so your block of that size takes no memory:

# %%
with torch.device("meta"):
    block = or_given(LlamaBlock)(4096, 32, 8, 14336)
numbers = sum(p.numel() for p in block.parameters())
print(f"a block: {numbers:,}; all of it: {32 * numbers + 2 * 128256 * 4096 + 4096:,}")

# %% [markdown]
# 8,030,261,248: that is the *8B* on the box. **On paper:** which share of a block is its feed-forward network? (3 ·
# 4096 · 14,336 of 218,112,000, four fifths. Lesson 9 had two thirds.)

# %% [markdown]
# ## Each change alone
#
# *Which of the six does the work?* A GPT of two blocks of width 64 learns lesson 12's language by that lesson's recipe,
# for 400 steps, a third of what it had there. First with the block of 2017, then with one change at a time, then with
# all six; each with three seeds. With the block of 2017 it ends 0.60 nats above the entropy line. **Predict before you
# look:** which changes end lower than any of the three trainings of 2017?

# %%
figures.six_changes()

# %% [markdown]
# <details><summary>Answer</summary>
#
# The rotations, alone, and all six together: 0.52 and 0.53 nats above the line. Every training with rotations ends below
# every one of 2017: with them no table of places has to be learned. The other five buy **nothing** that three seeds
# could show: their dots overlap with those of 2017, and another seed does as much as a change.
#
# So why does everybody make them? Some promise to *cost* less at the same quality, and that is what one sees: with RMS
# norm, without biases, with one head of keys and values a model has fewer numbers and ends about where it was. All six
# together have 94,528 numbers instead of 108,063. Pre-norm is for stacks of many layers, and this one has two. The
# gate's gain was measured in far larger networks. What a short training of a small model shows, it shows of such
# models.
#
# </details>

# %% [markdown]
# ## Numbers in the published layout
#
# The stack around the blocks is the one of lesson 12 without a table of places: `Decoder(block, vocab_size, d_model,
# num_heads, num_kv_heads, d_ff, num_layers)` has `tokens`, `blocks`, a last `norm` and `unembed`. What is still
# missing is a file. A published one has these names:
#
# | in the file, after `model.layers.{i}.` | yours, after `blocks.{i}.` |
# |---|---|
# | `self_attn.q_proj`, `k_proj`, `v_proj`, `o_proj` | `W_q`, `W_k`, `W_v`, `W_o` |
# | `input_layernorm` | `norm1` |
# | `post_attention_layernorm` | `norm2` |
# | `mlp.gate_proj`, `up_proj`, `down_proj` | `feed_forward.gate`, `up`, `down` |
#
# Outside the blocks: `model.embed_tokens` is `tokens`, `model.norm` is `norm`, `lm_head` is `unembed`. Matrices are
# `(out, in)`, as yours. Some small models use one table for both ends: then the file has no `lm_head`, and `unembed` is
# **tied** to `tokens`. **Question:** which of these names misleads?
#
# <details><summary>Answer</summary>
#
# `post_attention_layernorm` sounds like post-norm. It comes after the attention, and *before* the feed-forward
# network: it is the second pre-norm. And neither of the two is a layer norm.
#
# </details>

# %%
state = layout.made_up_llama()  # random numbers in Llama's layout: two blocks, width 24, four heads, two of keys
for name, tensor in state.items():
    if "layers.1" not in name:
        print(f"{name:48} {tuple(tensor.shape)}")

# %% [markdown]
# ### Exercise 14.6 `rename_llama`
#
# **Extra** · Difficulty 2 of 5 · Importance 3 of 5 · 10 minutes · 10 bonus points
#
# A dictionary with the file's names → a dictionary with yours: `blocks.{i}.W_q.weight`, `blocks.{i}.norm1.weight`,
# `blocks.{i}.feed_forward.gate.weight` and so on, for any number of blocks; `tokens.weight`, `norm.weight` and
# `unembed.weight`, which is the table of tokens where the file has no `lm_head`. Other entries are not judged.


# %% nbgrader={"solution": "rename_llama"}
def rename_llama(state_dict):
    """The names of Llama's published files to those of a Decoder of LlamaBlocks.

    state_dict: dict of str to tensor -> dict of str to tensor, "blocks.{i}.W_q.weight" and so on, i
    from 0.
    """
    ### BEGIN SOLUTION
    names = {
        "input_layernorm": "norm1",
        "post_attention_layernorm": "norm2",
        **{f"self_attn.{letter}_proj": f"W_{letter}" for letter in "qkvo"},
        **{f"mlp.{part}_proj": f"feed_forward.{part}" for part in ("gate", "up", "down")},
    }
    outside = {"model.embed_tokens": "tokens", "model.norm": "norm", "lm_head": "unembed"}
    mine = {}
    for name, tensor in state_dict.items():
        part, _, kind = name.rpartition(".")
        i, _, inside = part.removeprefix("model.layers.").partition(".")
        if part in outside:
            mine[f"{outside[part]}.{kind}"] = tensor
        elif inside in names:
            mine[f"blocks.{i}.{names[inside]}.{kind}"] = tensor
    mine.setdefault("unembed.weight", mine["tokens.weight"])  # one table for both ends
    return mine
    ### END SOLUTION


# %% nbgrader={"grade": "rename_llama"}
check(rename_llama)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# A dictionary from their parts to yours does most of it. Take a name apart at its dots: what stands in front of the
# number, the number, the part, and `weight` at the end.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# If you replace pieces of text one after the other, print what comes out: `model.norm` and `input_layernorm` both contain
# *norm*. And what does your dictionary hold when the file has no `lm_head`?
#
# </details>
#
# Your names, your blocks, numbers of the file. What should come out is computed beside it, by the names of the file:

# %%
model = Decoder(or_given(LlamaBlock), **layout.SIZES)
model.load_state_dict(or_given(rename_llama)(state))
ids = torch.tensor([[3, 1, 4, 1, 5, 9, 2, 6]])  # (1, T)
with torch.no_grad():
    logits = model(ids)  # (1, T, V)
print(f"largest difference: {(logits - layout.llama_logits(state, ids)).abs().max():.6f}")
print("it writes:", model.write(ids, 8)[0, 8:].tolist(), "and it should:", layout.llama_writes(state, ids, 8))

# %% [markdown]
# Random numbers write nonsense, and yours is *the same nonsense*. With the numbers of a trained file it would be the
# same sense.

# %% [markdown]
# ## A window over the text
#
# Fewer heads make each token cheaper, but the cache still grows with the text. A **sliding window** stops that: each
# query sees the last $w$ keys, its own place included, and older ones may be forgotten. Mistral 7B has a window of
# 4096.
#
# **On paper.** A window of 3. Which keys does the query at place 5 see? And from how far back can a token reach it
# through two layers, through L layers?
#
# <details><summary>Answer</summary>
#
# Places 3, 4 and 5. Each of these saw two places further back in the layer below: 1 to 5. Each layer adds w − 1, so L
# layers reach L(w − 1) places back, like the receptive field of lesson 9. Mistral's 32 layers of 4096 reach 131,040
# tokens back, in principle: whether anything of a far word is left is another question.
#
# </details>
#
# There is a catch. Lesson 13's heads rested on `[CLS]` when they had nothing to say: the weights of a row must sum to
# 1, and the first token is always there. When it leaves the window, they lose their place of rest. Xiao et al. (2023)
# found that language models break at that moment, and that they go on well if the first few tokens stay visible for
# good. They called them **attention sinks**.

# %% [markdown]
# ### Exercise 14.7 `sliding_window_mask`
#
# Difficulty 2 of 5 · Importance 4 of 5 · 10 minutes · 10 points
#
# `sliding_window_mask(T_q, T_k=None, window=4, sinks=0)` → boolean `(T_q, T_k)`. A query may see
#
# - the last `window` keys up to and including its own place, `window` ≥ 1;
# - the first `sinks` keys of the text (there may be fewer than `sinks`);
# - and never the future.
#
# `T_k` defaults to `T_q`, and T_k ≥ T_q: as in lesson 5, the last query stands at the place of the last key.


# %% nbgrader={"solution": "sliding_window_mask"}
def sliding_window_mask(T_q, T_k=None, window=4, sinks=0):
    """Causal, and of the past only the last `window` keys and the first `sinks`; True = may attend.

    T_q: int, T_k: int >= T_q or None (then T_q), window: int >= 1, own place included,
    sinks: int >= 0 -> bool (T_q, T_k). The last query stands at the last key.
    """
    ### BEGIN SOLUTION
    T_k = T_q if T_k is None else T_k
    key = torch.arange(T_k)  # (T_k,)
    behind = torch.arange(T_k - T_q, T_k)[:, None] - key  # (T_q, T_k): how far back each key stands
    return (behind >= 0) & ((behind < window) | (key < sinks))
    ### END SOLUTION


# %% nbgrader={"grade": "sliding_window_mask"}
check(sliding_window_mask)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# Make a table of distances: the query's place minus the key's place. At which place does the first query stand, if
# there are more keys than queries?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Three conditions on this table and on the key's place. Which of them must hold always, and which two are alternatives?
#
# </details>

# %%
figures.windows(or_given(sliding_window_mask))

# %% [markdown]
# Your block with your mask. **Predict before you run:** twelve tokens, a window of 3. On how many tokens does the
# last one depend after one, two, three layers? And with one sink?

# %%
for sinks in (0, 1):
    mask = or_given(sliding_window_mask)(12, window=3, sinks=sinks)
    heard = [reach(or_given(LlamaBlock), mask, layers) for layers in (1, 2, 3)]
    print(f"{sinks} sinks: the last token hears places {heard}")

# %% [markdown]
# <details><summary>Answer</summary>
#
# Three, five, seven: 1 + L(w − 1). With a sink the first place comes on top, in every layer, and nothing between.
# (`reach` changes one token after the other and looks whether the last output moves.)
#
# </details>
#
# *How far does a stack see, and what does it keep?* The sliders change window, sinks and layers.

# %%
explore.windows()

# %% [markdown]
# ## Tokens from bytes
#
# Lesson 1 cut words into known pieces, and what it did not know became `[UNK]`. GPT-2 and most models since lose
# nothing: they begin with the 256 **bytes**, of which every text of every script is made, and merge what often stands
# side by side (**byte-pair encoding**; Sennrich et al., 2016).
#
# The text is first cut into pieces that no merge may cross. Here a piece is a run of visible characters with the
# space in front of it, if there is one, or a single white space: `re.findall(r" ?\S+|\s", text)`. Then, again and
# again:
#
# 1. count every pair of neighboring tokens within the pieces;
# 2. the most frequent pair becomes one token, everywhere.
#
# **On paper.** The text is `ab ab abc`. Its pieces are `ab`, `␣ab` and `␣abc`. Which pair is merged first, and which
# second?
#
# <details><summary>Answer</summary>
#
# (a, b) stands there three times: first. Now the pieces are `ab`, `␣`+`ab`, `␣`+`ab`+`c`. The pair (␣, ab) stands there
# twice, (ab, c) once: `␣ab` is the second.
#
# </details>

# %%
figures.merges()

# %% [markdown]
# ### Exercise 14.8 `train_bpe`
#
# **Extra** · Difficulty 4 of 5 · Importance 3 of 5 · 20 minutes · 10 bonus points
#
# `train_bpe(text, num_merges)` → the merges in their order, a list of pairs of `bytes`, such as `[(b"a", b"b"), (b"
# ", b"ab")]`.
#
# - Pieces as above, each as UTF-8 bytes; a piece that occurs five times counts five times.
# - All neighbors count, overlapping ones too: `aaaa` has (a, a) three times.
# - Where several pairs are equally frequent, the one that is larger as a tuple of bytes, as Python compares them.
# - A pair that occurs once is merged too. When no pair is left, the list is shorter.
#
# `merge_pair(tokens, pair)` is given: a list of tokens → the list with the pair joined wherever it stands, from left to
# right.


# %% nbgrader={"solution": "train_bpe"}
def train_bpe(text, num_merges):
    """Byte-pair encoding (Sennrich et al., 2016) of UTF-8 bytes: the merges in the order in which
    they are learned.

    text: str, num_merges: int >= 0 -> list of tuples (bytes, bytes), at most num_merges.
    """
    ### BEGIN SOLUTION
    counts = Counter(re.findall(r" ?\S+|\s", text))
    pieces = [([bytes([byte]) for byte in piece.encode()], count) for piece, count in counts.items()]
    merges = []
    while len(merges) < num_merges:
        pairs = Counter()
        for tokens, count in pieces:
            for pair in pairwise(tokens):
                pairs[pair] += count
        if not pairs:
            break
        best = max(pairs, key=lambda pair: (pairs[pair], pair))
        merges.append(best)
        pieces = [(merge_pair(tokens, best), count) for tokens, count in pieces]
    return merges
    ### END SOLUTION


# %% nbgrader={"grade": "train_bpe"}
check(train_bpe)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# Keep each different piece once, as a list of one-byte tokens, with its number. `b"ab"[0]` is the number 97, and
# `bytes([97])` is `b"a"`.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# `pairwise` of itertools gives all neighbors of a list. `max` can be told by what to compare: a tuple of two
# things is compared by the first, and where that is equal by the second.
#
# </details>

# %% [markdown]
# ### Exercise 14.9 `encode_bpe`
#
# **Extra** · Difficulty 2 of 5 · Importance 3 of 5 · 10 minutes · 10 bonus points
#
# `encode_bpe(text, merges)` → the list of tokens, `bytes` each: the same pieces, and in each the merges in the order
# in which they were learned. Joined, the tokens are the text's bytes. An empty text gives `[]`.


# %% nbgrader={"solution": "encode_bpe"}
def encode_bpe(text, merges):
    """The tokens of a text: its pieces as bytes, with all merges applied in their order.

    text: str, merges: list of tuples (bytes, bytes) from train_bpe -> list of bytes, which joined
    are the text's.
    """
    ### BEGIN SOLUTION
    found = []
    for piece in re.findall(r" ?\S+|\s", text):
        tokens = [bytes([byte]) for byte in piece.encode()]
        for pair in merges:
            tokens = merge_pair(tokens, pair)
        found += tokens
    return found
    ### END SOLUTION


# %% nbgrader={"grade": "encode_bpe"}
check(encode_bpe)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# It is the inner half of `train_bpe`: nothing is counted any more.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# A longest match, as in lesson 1, would find other tokens: an early merge may have taken away a neighbor that a later one
# needs. Which loop is outside, and which is inside?
#
# </details>
#
# Learn 700 merges from 2,000 sentences of the translator's two languages. **Predict before you run:** how many tokens
# do these four texts take? All words of the first are known; the others hold things that the text never had.

# %%
sentences = corpus.training_pairs()[:2000]
learned = or_given(train_bpe)("\n".join(f"{pair.english}\n{pair.french}" for pair in sentences), 700)
for text in ("jane visits africa in september", "jane visite l' antarctique", "東京", "👋"):
    tokens = or_given(encode_bpe)(text, learned)
    print(f"{len(text.encode()):>2} bytes, {len(tokens):>2} tokens: {tokens}")

# %% [markdown]
# <details><summary>Answer</summary>
#
# Five tokens for the five known words: each has become a token of its own. *antarctique* falls into six: four pieces
# that were learned from other words, and two single bytes. The two Japanese characters are six bytes and six tokens, the waving hand four:
# nothing is unknown, but what the text did not have costs more. A model's bill is counted in tokens, so a language
# that its tokenizer saw little of is dearer.
#
# </details>
#
# **Other pieces.** GPT-2 cuts the text more finely before it counts: letters, digits and other signs never stand in
# one piece, and `'s` and its like are cut off. Of several spaces the last one goes to the word, as here, and the others
# stand in one piece, not each in its own.

# %%
figures.pieces()

# %% [markdown]
# With our pieces `dog.` and `dog,` and `dog` have to be learned apart; with GPT-2's the word is learned once. The
# merging is the same.

# %% [markdown]
# ## A published model writes
#
# Names, blocks and tokens are all that it takes. The course brings a small model in that layout, with the three files
# that Llama's kin come in: sizes, numbers, merges. It has four blocks of width 128, 768 tokens and 824,448 numbers, and
# has read the first million characters of a collection of Shakespeare, some ten times. Your block takes its numbers,
# your `rename_llama` finds their places, your `encode_bpe` cuts the text. **Predict before you run:** will it write
# words? Lines? Sense?

# %%
found = published.model()
model = Decoder(or_given(LlamaBlock), **found.sizes)
model.load_state_dict(or_given(rename_llama)(found.state))
print(found.continued(model, "ROMEO:\n", 60, or_given(encode_bpe)))

# %% [markdown]
# That was the likeliest token each time. At a temperature of 0.8, as in lesson 10:

# %%
print(found.continued(model, "ROMEO:\n", 60, or_given(encode_bpe), temperature=0.8, seed=1))

# %% [markdown]
# <details><summary>Answer</summary>
#
# Words, nearly always; lines of a verse's length; a name with a colon where somebody else begins to speak. Sense for
# half a line. On the last tenth of that text, which it has not read, it needs 1.51 nats a byte. Its training took a
# quarter of an hour of one processor core (`bench/small_writer.py`), and no part of it is unknown to you.
#
# </details>
#
# **Does it miss its first token?** A window of 16 takes that token away from it, a sink gives it back. Measured on 256
# unseen passages of 96 tokens, from place 16 on, where the window begins to hide something:
#
# | what a query sees | nats a token |
# |---|---|
# | all tokens so far | 3.042 |
# | the last 16 | 3.061 |
# | the last 16 and the first | 3.060 |
# | the last 16 and the first 4 | 3.060 |
# | as many, and no sinks: the last 17 | 3.056 |
# | the last 20 | 3.047 |
#
# *Does it break, as Xiao et al. saw it?*
#
# <details><summary>Answer</summary>
#
# No. The window costs 0.02 nats, and four sinks give back a twentieth of them; four keys more in the window, the
# control, give back nearly three quarters. This model gets along without its first token. What Xiao et al. saw, they saw
# in models of billions of numbers, and on texts of thousands of tokens. This one never saw more than 96, and its
# passages began anywhere. (One training. `bench/sinks.py` measures it.)
#
# </details>
#
# **A larger one.** Put the three files of a published model of this kind into a folder `llama` beside this notebook (the
# cell above says which). The same cell then writes with it, and with tens of thousands of merges that others have learned.

# %% [markdown]
# ## A thin matrix beside a thick one
#
# You have a trained network and want to teach it something small. Training all its numbers needs room for each of
# them, several times, and every new skill is a new copy of the whole. Hu et al. (2021) freeze the matrix $W$ and
# learn a **difference** that is the product of two thin matrices, $A$ with $r$ rows and $B$ with $r$ columns:
#
# $$y = xW^\top + \frac{\alpha}{r}\,x A^\top B^\top$$
#
# **On paper.** W is 4096 × 4096, r = 8. How many numbers are learned, and which share is that? And why does B begin
# with zeros, and A with random numbers, not both with zeros?
#
# <details><summary>Answer</summary>
#
# 2 · 8 · 4096 = 65,536 of 16,777,216: 0.39 percent. With B = 0 the difference is 0, so the network begins exactly as it
# was. The gradient at B holds A as a factor, and the gradient at A holds B. With both at zero neither would ever move.
#
# </details>
#
# Afterwards the two are multiplied and added to W: the network has its old shape, and costs nothing more.

# %% [markdown]
# ### Exercise 14.10 `LoRA`
#
# Difficulty 3 of 5 · Importance 4 of 5 · 20 minutes · 14 points
#
# `LoRA(linear, rank, alpha=1.0)`, a module around an `nn.Linear`:
#
# - keeps the very `linear` that it was given, and freezes its parameters;
# - `A (rank, in)` random and `B (out, rank)` zeros, both `nn.Parameter` of the dtype of its weight;
# - `forward(x)`: the formula above, plus the bias if `linear` has one;
# - `merged()`: a new `nn.Linear` with the same outputs, with a bias only where `linear` has one. It shares no memory
#   with the old one, and leaves the module as it was.


# %% nbgrader={"solution": "LoRA"}
class LoRA(nn.Module):
    """A frozen linear layer with a learned difference of low rank beside it (Hu et al., 2021).

    linear: nn.Linear, kept; rank: int >= 1; alpha: number. forward(x (..., in)) -> (..., out), same
    dtype.
    """

    def __init__(self, linear, rank, alpha=1.0):
        super().__init__()
        ### BEGIN SOLUTION
        self.linear = linear.requires_grad_(False)
        self.scale = alpha / rank
        W = linear.weight  # (out, in)
        self.A = nn.Parameter(torch.randn(rank, W.shape[1], dtype=W.dtype, device=W.device) * W.shape[1] ** -0.5)
        self.B = nn.Parameter(torch.zeros(W.shape[0], rank, dtype=W.dtype, device=W.device))
        ### END SOLUTION

    def forward(self, x):
        ### BEGIN SOLUTION
        return self.linear(x) + self.scale * (x @ self.A.T @ self.B.T)  # (..., out)
        ### END SOLUTION

    def merged(self):
        """A new nn.Linear with the same outputs; self stays as it was."""
        ### BEGIN SOLUTION
        new = copy.deepcopy(self.linear)
        with torch.no_grad():
            new.weight += self.scale * self.B @ self.A  # (out, in)
        return new
        ### END SOLUTION


# %% nbgrader={"grade": "LoRA"}
check(LoRA)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# `requires_grad_(False)` freezes all parameters of a module. The shape and the dtype of A and B can be read off
# `linear.weight`, which is `(out, in)`.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Which product of A and B has the shape of the weight? For the new layer, `copy.deepcopy` makes one that shares
# nothing, bias or not; `torch.no_grad()` lets you change a parameter by hand.
#
# </details>
#
# *What can a difference of rank r say?* Take two matrices whose true difference has rank 2, and give A and B the best
# numbers there are, from the singular values of that difference. **Predict:** what is left of the error with rank 1,
# 2 and 3?

# %%
old, difference = figures.two_matrices()  # (48, 32) each; the difference has rank 2
for rank in (1, 2, 3):
    linear = nn.Linear(32, 48, bias=False)
    linear.weight.data = old.clone()
    lora = or_given(LoRA)(linear, rank, alpha=rank)
    U, S, Vh = torch.linalg.svd(difference)
    lora.B.data, lora.A.data = U[:, :rank] * S[:rank], Vh[:rank].clone()
    left = (lora.merged().weight - old - difference).norm() / difference.norm()
    print(f"rank {rank}: {left:.4f} of the difference is missing")

# %% [markdown]
# <details><summary>Answer</summary>
#
# With rank 1 a little more than a half, with rank 2 nothing, and with rank 3 nothing either: its third row has a
# singular value of 0. The bet of LoRA is that what a trained network has to learn anew is of low rank. It is a bet on
# the task, not a theorem.
#
# </details>

# %% [markdown]
# ## At work
#
# Your LoRA in the course's translator: `adapted` puts it around `W_q` and `W_v` of all six attentions of lesson 10's
# `Transformer`, with the trained numbers. **Predict:** how many percent of its numbers can now learn, with rank 4?
# And what has happened to its loss, before any training?

# %%
network = adapted(finished_translator(), or_given(LoRA), rank=4)
learn = sum(p.numel() for p in network.parameters() if p.requires_grad)
total = sum(p.numel() for p in network.parameters())
print(f"{learn:,} of {total:,} numbers learn: {learn / total:.2%}")
print(f"nats a word: {nats_a_word(finished_translator()):.4f} before, {nats_a_word(network):.4f} with LoRA around it")

# %% [markdown]
# <details><summary>Answer</summary>
#
# Under 3 percent. And nothing has happened: B is zero, so the translator is exactly what it was.
#
# </details>
#
# **A dialect.** Now let it learn: a French whose adjectives all stand in front of their nouns, *le noir chat*. From 300
# such sentences, in 300 steps, we trained these 6,144 numbers, and for comparison all numbers of the translator, three
# times each. Each sentence of the dialect's test holds an adjective that moves, so the translator had none of
# them right before. **Predict:** who learns the dialect better? And what becomes of French as it was?

# %%
figures.dialect()

# %% [markdown]
# <details><summary>Answer</summary>
#
# Both learn it: some 96 percent of the unseen sentences come out word for word, with 2.89 percent of the numbers as with
# all of them. And both *forget*: of 100 percent in French, 33 are left. These are the sentences without such an
# adjective, which are the same in both. Nothing in an English sentence says which French is meant, and nobody showed
# the old one again.
#
# So thin matrices do not protect what was known. What they give is a way back: W is frozen, so without them the
# old French is there, all of it, and every further dialect costs 6,144 numbers instead of 206,146. Merged, the
# translator has its old shape and translates the same sentences.
#
# </details>
#
# **And a permutation that was forgotten?** Back to the two pairings. We take the file with the made-up numbers for one of
# neighbors, and load it into your decoder, whose blocks pair halves, as it is, without `interleaved_to_half_split`. How many of
# its next tokens stay the same?

# %%
figures.forgotten_permutation(or_given(LlamaBlock), or_given(rename_llama), or_given(interleaved_to_half_split))

# %% [markdown]
# The first token of each text is right, always: it sees only itself. From the second on the logits are off, and all
# in all the likeliest next token is the right one at 36 percent of the places. Nothing crashed, and no shape was
# wrong. Only a comparison with numbers that somebody else computed tells.

# %% [markdown]
# ### Quiz 14.1
#
# A file made for neighbors is loaded into code for halves, without the permutation. What do you see first?
#
# - **a** an error: the shapes do not fit
# - **b** no error: it shows in what the model says, and only a comparison over several tokens tells why
# - **c** nothing, and rightly so: the scores depend on distances alone

# %% nbgrader={"solution": "quiz_1"}
quiz_1 = None  # "a", "b" or "c"
### BEGIN SOLUTION
quiz_1 = "b"
### END SOLUTION

# %% nbgrader={"grade": "quiz_1"}
check(quiz_1=quiz_1)

# %% [markdown]
# ### Quiz 14.2
#
# A model has 32 heads of queries. Instead of 32 heads of keys and values it gets 8. What becomes four times smaller?
#
# - **a** the cache
# - **b** the number of scores that are computed
# - **c** the whole block

# %% nbgrader={"solution": "quiz_2"}
quiz_2 = None  # "a", "b" or "c"
### BEGIN SOLUTION
quiz_2 = "a"
### END SOLUTION

# %% nbgrader={"grade": "quiz_2"}
check(quiz_2=quiz_2)

# %% [markdown]
# ### Quiz 14.3
#
# LoRA begins with B = 0 and a random A. What would happen with A = 0 as well?
#
# - **a** the network would begin with other outputs
# - **b** the two could never learn: each one's gradient holds the other as a factor
# - **c** nothing else: the difference is 0 in both cases

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
# *15 points, graded by hand, 10 minutes, six to ten sentences.*
#
# Somebody says: "The Transformer of 2017 is history. Norm, activation, positions, heads, all of it has been
# replaced." Take three of the six changes. Say for each what it changes in the formula, what it saves or makes
# possible, and what stayed the same. Use a number that you have worked out or measured in this lesson for each of the
# three. What would have to change before you would call it another architecture?
#
# <details><summary>For those who learn alone: what a good answer has</summary>
#
# - three changes, each with what it does to the formula and a number of this lesson;
# - a distinction between what saves memory or time and what is only said to be better;
# - what has not changed: scores, softmax, mixture, residual stream, a network for each token;
# - an own criterion in the last sentence.
#
# </details>

# %% [markdown] nbgrader={"written": "written_1"}
# <details><summary>Model answer and marking scheme</summary>
#
# **Model answer.** RMS norm drops the mean: one average instead of two, and no β. In our translator only a quarter of
# a percent of a word's squared length lay in the mean, so little is lost. Grouped queries let several heads of
# queries share keys and values. With 8 heads instead of 32 the cache of one token falls from 512 to 128 KiB; the
# queries and the scores stay as many as they were. Rotations replace the table of places: scores then depend on
# distances, no table sets a largest length, and the two dialects of pairs differ in nothing but the order of rows,
# which is why forgetting the permutation raises no error. Of the six changes they alone brought a small GPT nearer to
# its entropy line in 400 steps, 0.52 instead of 0.60 nats above it. The gate of SwiGLU is different: at equal size
# (F = 8D/3) it saves nothing, it is said to be better, and its author offers no explanation. What stayed is the
# machine itself:
# a residual stream, to which attention adds what it gathers by softmax of scaled scores, and a network that works on
# each token alone; a block of 2017 and one of today differ by a few lines of code. I would call it another
# architecture if tokens met in another way than by comparing every query with every key, or if there were no stream
# to add to.
#
# **Marking scheme (15).** Three changes, 3 points each (9): the change in the formula (1), what it saves or makes
# possible (1), a number of the lesson (1). 3: what stayed the same, named precisely. 2: savings are kept apart from
# claims of quality. 1: a criterion of one's own.
#
# </details>

# %% [markdown]
# ## From the notes this course grew from
#
# <details><summary>Where the notes stop, and what has become of it</summary>
#
# - The notes describe the block of 2017: layer norm behind each sum, a ReLU, waves added to the words. All six changes of this
#   lesson came later, and none of them touches the one idea that the notes are about: queries that meet keys, and values
#   that are mixed.
# - **"Number of tokens to iterate or sequence size (512 for BERT)."** A table of positions sets such a limit. Rotations have no table;
#   what limits a model of today is the lengths it was trained on, and its cache.
# - **Layers see "pairs of pairs", like a receptive field.** With full attention every word is seen after one layer (lesson 9).
#   With a sliding window the picture of the receptive field is exact: 1 + L(w − 1) places.
#
# </details>

# %% [markdown]
# ## Recap
#
# - RMS norm: the size of a token is taken away, its mean stays. A gate: one vector says how much of another comes through.
# - Rotations come in two dialects that differ by the order of rows. Mixing them up raises no error.
# - Grouped queries make the cache smaller at any length, a window stops its growth, sinks keep the first tokens in sight.
# - The block of Llama, Mistral and Qwen is the block of lesson 9 with six changes. A published file is a table of names.
# - Byte pairs: nothing is unknown, and what is rare costs more tokens.
# - LoRA learns a difference of low rank beside a frozen matrix; merged, it costs nothing. It forgets as full training does,
#   and can be taken away again.

# %%
progress()

# %% [markdown]
# ## Further reading
#
# - Zhang and Sennrich, [Root Mean Square Layer Normalization](https://arxiv.org/abs/1910.07467) (2019).
# - Shazeer, [GLU Variants Improve Transformer](https://arxiv.org/abs/2002.05202) (2020).
# - Su et al., [RoFormer](https://arxiv.org/abs/2104.09864) (2021): rotary positions.
# - Ainslie et al., [GQA](https://arxiv.org/abs/2305.13245) (2023); Shazeer, [Fast Transformer Decoding](https://arxiv.org/abs/1911.02150)
#   (2019): one head of keys and values for all.
# - Touvron et al., [LLaMA](https://arxiv.org/abs/2302.13971) (2023); Jiang et al., [Mistral 7B](https://arxiv.org/abs/2310.06825) (2023).
# - Xiao et al., [Efficient Streaming Language Models with Attention Sinks](https://arxiv.org/abs/2309.17453) (2023).
# - Sennrich, Haddow and Birch, [Neural Machine Translation of Rare Words with Subword Units](https://arxiv.org/abs/1508.07909) (2016).
# - Hu et al., [LoRA](https://arxiv.org/abs/2106.09685) (2021).
#
# **After the course.** You can open the file of a model that people talk to every day and say of each of its tensors
# what it is for, because you have written the code that it runs in.
