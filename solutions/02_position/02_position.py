# %% [markdown]
# # 2. Position: how words know their order
#
# **In this lesson** you'll show that attention alone can't tell *jane visits africa* from *africa visits jane*, and then give it the order in three ways: by adding sinusoids, by a learned table, and by rotating queries and keys (RoPE).
#
# **Core:** about 70 minutes.

# %% tags=["setup"]
# (empty: the build puts the set-up cell here)

# %%
import torch

from helpers import at_work, check, or_finished, translator
from helpers.drawing.transformer_map import transformer_map
from helpers.lessons.position import experiments, explore, figures

# %%
transformer_map("02_position")

# %% [markdown]
# We're at the left edge of the map again, where we now add a position to every word vector.

# %% [markdown]
# ## You need
#
# You need word vectors and the dot product from [lesson 1](../01_token_embedding/01_token_embedding.ipynb), broadcasting and the conventions from [lesson 0](../00_start_here/00_start_here.ipynb), and one line of Python: `raise ValueError("why")` stops with an error that gives the reason.
#
# Here are two questions to warm up; answer each one before you open it.
#
# <details><summary>Lesson 1: two sentences contain the same words in another order. What differs between their matrices of word vectors?</summary>
#
# Only the order of the rows differs, because we look up a row by the word's id.
#
# </details>
#
# <details><summary>Lesson 1: how can the dot product and the cosine of two vectors disagree?</summary>
#
# The dot product also depends on the lengths. If you compare vectors of equal length, however, the two agree on which are most similar.
#
# </details>

# %% [markdown]
# ## Does attention see order?
#
# The next cell computes attention without any learned parts (lessons 3 to 7 add those), for three words of width 4. We compare each word with every word by a dot product. For each word, `softmax` turns its three dot products into positive weights that sum to 1, and the word's new vector is the mean of all three vectors, weighted by them.

# %%
tokens = ["jane", "visits", "africa"]
x = torch.tensor([[1.0, 0, 0, 1], [0, 1, 1, 0], [1, 1, 0, 0]])  # (T, D)


def mix(x):
    weights = torch.softmax(x @ x.T, dim=-1)  # (T, T), each row sums to 1
    return weights @ x  # (T, D)


mix(x)

# %% [markdown]
# You can check the first row on paper. The dot products of *jane* with *jane*, *visits*, *africa* are $2, 0, 1$. The powers $e^2, e^0, e^1$ are $7.389, 1, 2.718$ and sum to $11.107$, so her weights are $0.665, 0.090, 0.245$, and her new vector is
#
# $$0.665\,(1,0,0,1) + 0.090\,(0,1,1,0) + 0.245\,(1,1,0,0) = (0.910,\ 0.335,\ 0.090,\ 0.665).$$
#
# **Predict before you run the cell:** if you read *africa visits jane*, does *jane*, who is last this time, get another vector?

# %%
perm = torch.tensor([2, 1, 0])  # africa visits jane
mix(x)[0], mix(x[perm])[2]  # jane in the first sentence, jane in the second

# %%
figures.two_orders(tokens, x, perm)

# %% [markdown]
# You see that *jane* gets the same vector in both sentences, so her vector can't say who is visiting whom. The table of weights is permuted along with the words, and each weight stays with its *pair* of words.
#
# We call such a function **permutation equivariant**, which means that permuting the input only permutes the output. The learned matrices and the other components of a Transformer layer don't change this, because they act on each row by itself. As long as every word may attend to every word, no training can change this property either, because it holds for *every* choice of weights. (A proof is under *Going further*. The causal mask of lesson 5 does break the symmetry.)

# %% [markdown]
# ### Exercise 2.1 `equivariance_error`
#
# Difficulty 2 of 5 · Importance 4 of 5 · 10 minutes · 20 points
#
# How far is a function from being equivariant, for one input and one permutation?
#
# $$\text{error} = \max_{t,j} \left| f(x[\text{perm}])_{tj} - f(x)[\text{perm}]_{tj} \right|$$
#
# - **Arguments:** `f`, a function from `(T, D)` to `(T, any width)`; `x (T, D)`; `perm`, LongTensor `(T,)`, a permutation of the positions.
# - **Returns:** a Python `float`, not rounded. If `f` is equivariant, the error is 0 up to rounding.


# %% nbgrader={"solution": "equivariance_error"}
def equivariance_error(f, x, perm):
    """Largest absolute difference between f(x[perm]) and f(x)[perm]: 0 if f is equivariant.

    f: function (T, D) -> (T, any width); x (T, D) float32 or float64; perm LongTensor (T,), a
    permutation.
    Returns a Python float.
    """
    ### BEGIN SOLUTION
    difference = f(x[perm]) - f(x)[perm]  # (T, any width)
    return difference.abs().max().item()
    ### END SOLUTION


# %% nbgrader={"grade": "equivariance_error"}
check(equivariance_error)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# `x[perm]` takes row `perm[0]` first, then row `perm[1]`, and so on. You need it before `f` for one of the two results, and after `f` for the other.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Take absolute values before the maximum, and convert the one-element tensor to a Python float.
#
# </details>
#
# As a control, here is a function that does depend on the order, a running mean, in which each row is the mean of all rows up to it:


# %%
def running_mean(x):
    return x.cumsum(0) / torch.arange(1, len(x) + 1)[:, None]  # (T, D)


running_mean(x[perm]), running_mean(x)[perm]

# %% [markdown]
# The largest difference is $2/3$, in the last row, and you can find it with `equivariance_error(running_mean, x, perm)`.

# %% [markdown]
# ### Quiz 2.1
#
# A stack of a hundred attention layers with learned weights, no mask and no positions reads *africa visits jane* and *jane visits africa*. We use the mean of all output rows as the vector of a sentence. What can we say about the two sentence vectors?
#
# - **a** They differ, because the output rows are in another order.
# - **b** They are equal before training, but training can make them differ.
# - **c** They are equal, whatever the weights of the layers are.

# %% nbgrader={"solution": "quiz_1"}
quiz_1 = None  # "a", "b" or "c"
### BEGIN SOLUTION
quiz_1 = "c"
### END SOLUTION

# %% nbgrader={"grade": "quiz_1"}
check(quiz_1=quiz_1)

# %% [markdown]
# ## Sinusoidal positions
#
# A **positional encoding** makes the order visible. We add a vector $P_t$ that depends only on $t$ to the vector of the word at position $t$. The number $t$ itself would grow without bound, so a large $t$ may never have occurred in training. Binary digits are bounded, but four of them flip at once from seven to eight and only one from six to seven, so neighboring positions are sometimes near and sometimes far apart. We therefore take **sinusoids**, which oscillate smoothly where a binary digit flips.

# %%
figures.counting()

# %% [markdown]
# Vaswani et al. (2017) take one sine and one cosine of each of $D/2$ angles:
#
# $$P_{t,\,2i} = \sin\!\left(\frac{t}{10000^{2i/D}}\right), \qquad P_{t,\,2i+1} = \cos\!\left(\frac{t}{10000^{2i/D}}\right), \qquad i = 0, \dots, \tfrac{D}{2} - 1.$$
#
# For our width, $D = 4$, we can work it out on paper. Pair $i = 0$ divides by $10000^0 = 1$, and pair $i = 1$ by $10000^{2/4} = 100$:
#
# | position | sin t | cos t | sin(t/100) | cos(t/100) |
# |---|---|---|---|---|
# | 0 | 0 | 1 | 0 | 1 |
# | 1 | 0.8415 | 0.5403 | 0.0100 | 1.0000 |
# | 2 | 0.9093 | −0.4161 | 0.0200 | 0.9998 |
#
# You can think of the fastest pair as a clock's second hand and of the slowest as its hour hand.

# %%
figures.sinusoid_map(length=60, d_model=32)

# %% [markdown]
# ### Exercise 2.2 `sinusoidal_positions`
#
# Difficulty 3 of 5 · Importance 5 of 5 · 15 minutes · 30 points
#
# - **Arguments:** `length`, the number of positions, and `d_model`, the width.
# - **Returns:** the table of the formula above, float32 `(length, d_model)`. Column $2i$ is $\sin(t / 10000^{2i/D})$ and column $2i+1$ the cosine of *the same* angle, for the positions $t$ from 0 on.
# - If `d_model` is odd, raise `ValueError`.
# - **Equal** means within `1e-5` up to position 64, and within `1e-4` up to position 512.


# %% nbgrader={"solution": "sinusoidal_positions"}
def sinusoidal_positions(length, d_model):
    """Sinusoidal position vectors, section 3.5 of Vaswani et al. (2017).

    length, d_model: int -> (length, d_model) float32. Column 2i is sin(t / 10000^(2i/d_model)),
    column 2i+1 the cosine of the same angle. ValueError if d_model is odd.
    """
    ### BEGIN SOLUTION
    if d_model % 2:
        raise ValueError(f"d_model must be even, got {d_model}")
    t = torch.arange(length, dtype=torch.float64)[:, None]  # (length, 1)
    even = torch.arange(0, d_model, 2, dtype=torch.float64)  # (D/2,): 0, 2, 4, ...
    angles = t / 10000 ** (even / d_model)  # (length, D/2)
    pairs = torch.stack([angles.sin(), angles.cos()], dim=-1)  # (length, D/2, 2)
    return pairs.flatten(1).float()  # (length, D)
    ### END SOLUTION


# %% nbgrader={"grade": "sinusoidal_positions"}
check(sinusoidal_positions)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# Compute the angles first, because a column of positions and a row of D/2 divisors broadcast to `(length, D/2)`.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# To let the columns alternate between sine and cosine, you can fill every second column with a slice that has a step (`[:, 0::2]`), or stack both on a new last axis and flatten it.
#
# </details>

# %% [markdown]
# ## Word plus position
#
# The vector that enters the first layer is *word + position*, $x_t + P_t$. For our three words on paper, *jane* at position 0 becomes $(1, 0, 0, 1) + (0, 1, 0, 1) = (1, 1, 0, 2)$. Let's see whether the order is visible now:

# %%
P = torch.tensor([[0, 1, 0, 1], [0.8415, 0.5403, 0.0100, 1.0000], [0.9093, -0.4161, 0.0200, 0.9998]])  # (T, D)
mix(x + P)[0], mix(x[perm] + P)[2]  # jane who visits, jane who is visited

# %% [markdown]
# It is, because *jane* first and *jane* last now get different vectors. Let's see the same sum in the course's translator of width 64, for *jane visits africa in september*.

# %%
weights, words = translator.state(), "jane visits africa in september".split()
ids = torch.tensor([translator.english[word] for word in words])  # (5,)
rows = weights["encoder.tokens.weight"][ids]  # (5, 64), word vectors
figures.words_and_positions(words, rows, weights["encoder.positions.weight"][:5])

# %% [markdown]
# The position vectors are all $5.66$ long, while a word's vector has a length of about 1, and yet the network can read both (*Going further* explains how). Instead of sinusoids, we can use an `nn.Embedding(max_len, D)`, whose rows are trained like the word vectors, as in BERT and GPT-2. Such **learned positions** have two limits, however, because a row that no training sentence reaches is never trained, and a sentence can't be longer than the table.

# %% [markdown]
# ### Exercise 2.3 `add_positions`
#
# Difficulty 2 of 5 · Importance 5 of 5 · 8 minutes · 16 points
#
# $$\text{out}_{\dots t} = x_{\dots t} + \text{table}_t$$
#
# - **Arguments:** `x (..., T, D)`; `table (max_len, D)`, of the same dtype.
# - **Returns:** `(..., T, D)`, with the first T rows of the table added, the same for every sentence. The gradient reaches `x` and `table`.
# - If T is larger than max_len, raise `ValueError`, also when the table has a single row.


# %% nbgrader={"solution": "add_positions"}
def add_positions(x, table):
    """Add the first T rows of a position table to token vectors.

    x (..., T, D), table (max_len, D) of the same dtype -> (..., T, D). ValueError if T > max_len.
    """
    ### BEGIN SOLUTION
    T = x.shape[-2]
    if T > len(table):
        raise ValueError(f"{T} tokens, but the table has only {len(table)} positions")
    return x + table[:T]  # (..., T, D)
    ### END SOLUTION


# %% nbgrader={"grade": "add_positions"}
check(add_positions)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# Which axis of `x` holds the tokens, if you count from the right, as broadcasting does?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Check the length before you slice, because a slice past the end of a tensor just has fewer rows, and broadcasting repeats a single row silently.
#
# </details>
#
# Now let's repeat the measurement of exercise 2.1, on words alone and on words plus positions:

# %%
experiments.equivariance_errors(equivariance_error, mix, or_finished(add_positions), x, P, perm)

# %% [markdown]
# ### Exercise 2.4 `fixed_position_layer`
#
# **Find the bug** · Difficulty 2 of 5 · Importance 4 of 5 · 8 minutes · 14 points
#
# The layer in the next cell comes from a PyTorch tutorial where tensors are `(T, B, D)`, and there it is right. If someone then sets `batch_first=True`, `x` becomes `(B, T, D)`, and PyTorch raises no error. Let's try the layer on two sentences of three tokens that are all zeros, so that we see only what is added:


# %%
def published_position_layer(x, pe):  # in the tutorial: def forward(self, x): return x + self.pe[:x.size(0)]
    return x + pe[: x.size(0)]


pe = P[:, None]  # (max_len, 1, D), here (3, 1, 4)
published_position_layer(torch.zeros(2, 3, 4), pe)

# %% [markdown]
# All three tokens of the second sentence got the vector for position 1, because their sentence has index 1 in the batch, so the model is as blind to order as before.

# %%
figures.position_per_token()

# %% [markdown]
# Write the layer so that it works with the batch axis first.
#
# - **Arguments:** `x`, exactly `(B, T, D)`; `pe (max_len, 1, D)`, as the layer stores it, with T ≤ max_len.
# - **Returns:** `(B, T, D)`, where token t of *every* sentence gets `pe[t, 0]`. The gradient reaches `x` and `pe`.
# - B may be larger than max_len.


# %% nbgrader={"solution": "fixed_position_layer"}
def fixed_position_layer(x, pe):
    """The published position layer, fixed for batches that come first.

    x (B, T, D), pe (max_len, 1, D) of the same dtype, T <= max_len -> (B, T, D).
    """
    ### BEGIN SOLUTION
    return x + pe.squeeze(1)[: x.size(1)]  # (B, T, D) + (T, D)
    ### END SOLUTION


# %% nbgrader={"grade": "fixed_position_layer"}
check(fixed_position_layer)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# How many rows does the slice take, and where does the axis of size 1 end up when broadcasting aligns the shapes on the right?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# If you only change the size that you slice by, you add `(T, 1, D)` to `(B, T, D)`, so remove the middle axis or move it to the front.
#
# </details>
#
# Let's send the two sentences through your function:

# %%
experiments.added_positions(fixed_position_layer)

# %% [markdown]
# ## Rotate instead of add: RoPE
#
# Most current models don't add position vectors, because of the terms in the dot product of two sums:
#
# $$(x_m + P_m)\cdot(x_n + P_n) = x_m \cdot x_n + x_m \cdot P_n + P_m \cdot x_n + P_m \cdot P_n.$$
#
# The two middle terms depend on the absolute positions $m$ and $n$, although what usually matters is the distance.
#
# In lesson 3, each word gets a **query** $q$ for when it attends and a **key** $k$ for when another word attends to it, and their dot product $q \cdot k$ is the **score**. **Rotary position embedding**, or **RoPE** (Su et al., 2021), leaves the word vectors unchanged and rotates $q$ and $k$. It splits a vector into pairs, treats each pair as an arrow in the plane, and rotates it by an angle proportional to the position (the base is $10000$, as above):
#
# $$\begin{aligned} x'_{2i} &= x_{2i}\cos a - x_{2i+1}\sin a \\ x'_{2i+1} &= x_{2i}\sin a + x_{2i+1}\cos a \end{aligned} \qquad a = \text{position} \cdot \text{base}^{-2i/D}$$
#
# Take $D = 2$ as an example that you can do on paper. The query $q = (1, 0)$ at position 0 stays $(1, 0)$, and the key $k = (1, 0)$ at position 1 becomes $(\cos 1, \sin 1) = (0.5403, 0.8415)$, so their score is $0.5403$. If you move both by five positions, both arrows rotate by another five radians, so the angle between them stays the same, and so does the score. Therefore, **the score depends on the offset from query to key, and on nothing else about their positions**.

# %%
figures.rotated_together()

# %% [markdown]
# If q and k differ, as in the explorer, the score at offset $1$ is usually not the score at offset $-1$, so RoPE can distinguish the previous word from the next one. You can write RoPE yourself under *Going further*, and we'll use it in lessons 12 and 14.

# %%
explore.rotary()

# %% [markdown]
# ### Quiz 2.2
#
# A model applies RoPE to its queries and keys. Which statement is true if a colleague also *adds* the sinusoidal table to the word vectors?
#
# - **a** The score no longer depends on the offset alone.
# - **b** Nothing changes, because both carry the same positions.
# - **c** The rotation cancels the vectors that were added.

# %% nbgrader={"solution": "quiz_2"}
quiz_2 = None  # "a", "b" or "c"
### BEGIN SOLUTION
quiz_2 = "a"
### END SOLUTION

# %% nbgrader={"grade": "quiz_2"}
check(quiz_2=quiz_2)

# %% [markdown]
# ## At work
#
# Now your two functions run inside the course's translator, on two sentences with the same words. (In its training grammar only countries and continents can be visited, so the translator has never seen either sentence.)

# %%
at_work(sinusoidal_positions, add_positions, sentence="the dog visits the cat")

# %%
at_work(sinusoidal_positions, add_positions, sentence="the cat visits the dog")

# %% [markdown]
# The translations are *le chien visite le chat* and *le chat visite le chien*, so the translator knows who is visiting.
#
# **Predict before you run the cells:** what happens to *the dog visits the cat* if you leave the positions out, and what happens with the wrong layer that you've just fixed? (A single sentence is a batch of one.)


# %%
def without_positions(x, table):
    return x


at_work(add_positions=without_positions, sentence="the dog visits the cat")


# %%
long_pe = or_finished(sinusoidal_positions)(5000, 64)[:, None]  # (5000, 1, D), as long as in the tutorial


def published_layer(x, table):
    return x + long_pe[: x.size(0)]


at_work(add_positions=published_layer, sentence="the dog visits the cat")

# %% [markdown]
# | positions | nats per word (200 unseen sentences) | exactly right (the first 100) |
# |---|---|---|
# | yours | 0.00016 | all |
# | yours, but the English words shuffled | 6.04 | – |
# | none | 4.85 | none |
# | the layer of exercise 2.4 | 9.81 | none |
#
# The second row is a control, which shows that the translator really uses the order. (Guessing uniformly among the French words would cost $\ln 194 = 5.3$ nats.) Without positions the translator writes *le chat* for both sentences and stops. With the wrong layer, in which every word of a single sentence gets position 0, it writes *le chat le chat le chat* until it reaches the length limit.

# %% [markdown]
# ## Written question
#
# *15 points, graded by hand, 10 minutes, six to ten sentences.*
#
# A translation model was trained on sentences of at most 32 tokens, and then it gets a sentence of 50 tokens. What happens at positions 32 to 49 with (i) a learned table of 64 rows, (ii) the sinusoidal table, (iii) RoPE? For each of them, say what is computed, what of it occurred in training, and what you would measure to find out whether it works.

# %% [markdown] nbgrader={"written": "written_1"}
# <details><summary>Model answer and marking scheme</summary>
#
# **Model answer.** (i) The learned table has rows for these positions, so you get no error. However, no training sentence reached them, so they still hold their random initialization. Only a sentence longer than the table raises an error. (ii) The sinusoidal rows are defined at every position, with entries between $-1$ and $1$, and the fast pairs have shown all their values. The slow pairs reach angles that never occurred, and the *combination* is new. (iii) Scores with RoPE depend on the offset only. All offsets of the training sentences occurred at some position, so attention to near words *could* work everywhere. Longer offsets are new, and softmax now divides its weight among more keys, so attention may still fail. In all three cases, being defined says little about quality. To measure it, take the loss by position on long sentences, and compare with a model that was trained on long ones.
#
# **Marking scheme (15).** Learned table: rows exist but are untrained (3), error only beyond the last row (1). Sinusoids: defined and bounded everywhere (2), new combinations or new slow angles (2). RoPE: offset only (2), new offsets remain (1). Says that being defined is not the same as working (2). A measurement by position with some comparison (2).
#
# </details>

# %% [markdown]
# ## Recap
#
# - Attention without positions is permutation equivariant, and no training changes that, as long as every word may attend to every word.
# - Sinusoids are a smooth counter that you add to the word vectors.
# - You can also learn the table, but it ends at its last trained row.
# - RoPE rotates queries and keys, so that their score depends on the signed offset alone.
#
# **Next:** in [lesson 3](../03_query_key/03_query_key.ipynb) we take the words, which now know their position, and compute which word attends to which.

# %% [markdown]
# ## Going further

# %% [markdown]
# ### Why attention is permutation equivariant
#
# Let $\Pi$ be the matrix that permutes the rows. The scores become $(\Pi X)(\Pi X)^\top = \Pi\,(XX^\top)\,\Pi^\top$. Softmax works on each row by itself, and the order of a row's entries doesn't matter to it, so we may permute before or after it. Since $\Pi^\top \Pi$ is the identity,
#
# $$f(\Pi X) = \Pi\,\mathrm{softmax}(XX^\top)\,\Pi^\top\,\Pi X = \Pi f(X).$$

# %% [markdown]
# ### Telling positions apart
#
# Let's take $D = 16$, so that we have eight pairs. On the left the explorer shows one pair of columns, with two positions marked, and on the right the distance of the two positions in every pair. *Which pair separates positions $10$ and $11$ best, and which pairs separate $10$ from $54$?*

# %%
explore.sinusoids()

# %% [markdown]
# <details><summary>Answer</summary>
#
# Pair 0 separates the neighbors best, because the slow pairs barely change. For $10$ and $54$, pair 0 is nearly useless, because these $44$ steps are almost exactly seven cycles, but the next three pairs separate them well.
#
# </details>
#
# You can also compute how similar two positions are. By the rule for the cosine of a difference, we get
#
# $$P_s \cdot P_t = \sum_i \left(\sin a_i s\, \sin a_i t + \cos a_i s\, \cos a_i t\right) = \sum_i \cos\left(a_i (s - t)\right), \qquad a_i = 10000^{-2i/D}.$$
#
# The dot product of two position vectors therefore depends only on their *distance*, and it's largest at distance 0. In our small table, for example, $P_0 \cdot P_1$ and $P_1 \cdot P_2$ are both $\cos 1 + \cos 0.01 = 1.5403$.

# %%
figures.position_dots(length=48, d_model=32)

# %% [markdown]
# ### A step is a rotation
#
# Why do we need sine and cosine *of the same angle*? Think of one pair as a point on a circle, at angle $a t$ for position $t$. Three positions later it is at $a t + 3a$. Whatever $t$ was, the point has rotated by $3a$, so *three words further* is one fixed rotation, the same at every position.

# %%
figures.rotation_by_offset(offset=3)

# %% [markdown]
# The rules for sums of angles say the same in a formula. With $b = a \cdot \text{offset}$,
#
# $$\sin(at + b) = \sin(at)\cos b + \cos(at)\sin b, \qquad \cos(at + b) = \cos(at)\cos b - \sin(at)\sin b.$$
#
# Both right-hand sides are *linear* in the pair $(\sin at, \cos at)$, with coefficients that don't contain $t$. So one matrix maps every position vector to the vector `offset` positions later. Vaswani et al. hoped that this would help a model to attend by relative position, although nothing guarantees that it does.
#
# On paper, for $D = 2$ and offset 1, with $\cos 1 = 0.5403$ and $\sin 1 = 0.8415$:
#
# $$M = \begin{pmatrix} 0.5403 & 0.8415 \\ -0.8415 & 0.5403 \end{pmatrix}, \qquad M \begin{pmatrix} 0 \\ 1 \end{pmatrix} = \begin{pmatrix} 0.8415 \\ 0.5403 \end{pmatrix},$$
#
# that is, the first row of the table, $(\sin 0, \cos 0)$, becomes the second, $(\sin 1, \cos 1)$. (This is also the rotation of RoPE by the angle 1. It looks transposed only because the table stores a pair as (sin, cos), which is (y, x), while RoPE's pairs are (x, y).)

# %% [markdown]
# ### Exercise 2.5 `shift_matrix`
#
# **Extra** · Difficulty 4 of 5 · Importance 2 of 5 · 30 minutes · 10 bonus points
#
# Compute the matrix M that moves every position vector by `offset`:
#
# $$P_{t + \text{offset}} = M\,P_t \quad \text{for every } t, \qquad P = \texttt{sinusoidal\_positions}$$
#
# - **Arguments:** `offset`, an int that may be 0 or negative; `d_model`, an int.
# - **Returns:** float32 `(D, D)`. If `d_model` is odd, raise `ValueError`.


# %% nbgrader={"solution": "shift_matrix"}
def shift_matrix(offset, d_model):
    """The matrix M with P[t + offset] = M @ P[t] for every t, where P is sinusoidal_positions.

    offset: int, may be 0 or negative; d_model: even int -> (d_model, d_model) float32. ValueError
    if d_model is odd.
    """
    ### BEGIN SOLUTION
    if d_model % 2:
        raise ValueError(f"d_model must be even, got {d_model}")
    sine, cosine = torch.arange(0, d_model, 2), torch.arange(1, d_model, 2)  # columns, (D/2,) each
    angles = offset / 10000 ** (sine.double() / d_model)  # (D/2,)
    M = torch.zeros(d_model, d_model)
    M[sine, sine] = M[cosine, cosine] = angles.cos().float()
    M[sine, cosine] = angles.sin().float()
    M[cosine, sine] = -angles.sin().float()
    return M
    ### END SOLUTION


# %% nbgrader={"grade": "shift_matrix"}
check(shift_matrix)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# Pairs don't mix, so M has small 2×2 blocks on its diagonal and zeros elsewhere. The block that we computed above is the first one, and the others differ from it only in their angle.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# The first row of a block computes the new sine from (old sine, old cosine), and the second the new cosine. Test whether M for offset 1 maps the first row of the table, `(0, 1, 0, 1, ...)`, to the second.
#
# </details>
#
# If we apply one matrix again and again, we get from the first row to later ones. *How far does your M for offset 3 get before you can see rounding errors?*

# %%
experiments.shift_errors(shift_matrix)

# %% [markdown]
# ### RoPE in code
#
# The next figure compares added position vectors with RoPE, for one query and one key at all pairs of positions. With RoPE all scores on a diagonal are equal, because they have the same offset.

# %%
figures.rotary_scores()

# %% [markdown]
# ### Exercise 2.6 `apply_rope`
#
# **Extra** · Difficulty 4 of 5 · Importance 4 of 5 · 20 minutes · 10 bonus points
#
# Rotate the pairs $(x_{2i}, x_{2i+1})$ as in the formula of RoPE.
#
# - **Arguments:** `x (..., T, D)`, D even; `positions`, LongTensor `(T,)`, any positions in any order; `base`, a float.
# - **Returns:** `(..., T, D)`.
# - **Equal** means within `1e-4` for positions beyond 4.


# %% nbgrader={"solution": "apply_rope"}
def apply_rope(x, positions, base=10000.0):
    """Rotary position embedding over interleaved pairs, eq. 34 of Su et al. (2021).

    x (..., T, D) with D even, positions LongTensor (T,) -> (..., T, D), same dtype. The pair
    (x[2i], x[2i+1]) is rotated by the angle position * base^(-2i/D), from the first axis toward the
    second.
    """
    ### BEGIN SOLUTION
    D = x.shape[-1]
    even = torch.arange(0, D, 2, dtype=torch.float64, device=x.device)  # (D/2,)
    angles = positions[:, None] / base ** (even / D)  # (T, D/2)
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    a, b = x[..., 0::2], x[..., 1::2]  # (..., T, D/2)
    return torch.stack([a * cos - b * sin, a * sin + b * cos], dim=-1).flatten(-2)  # (..., T, D)
    ### END SOLUTION


# %% nbgrader={"grade": "apply_rope"}
check(apply_rope)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# The angles are a `(T, D/2)` table, made like the one of the sinusoids, but for the given positions. The even columns of `x` hold the first entries of all pairs, and the odd columns hold the second entries.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Keep the old pair until both new entries are computed. To interleave the two results, think of the shape `(..., T, D/2, 2)`.
#
# </details>
#
# Let's apply your function to one query and one key that are always one position apart:

# %%
experiments.scores_at_positions(apply_rope)

# %% [markdown]
# RoPE has two **layouts**, of which ours is the *interleaved* one, whereas many models (GPT-NeoX, and LLaMA as Hugging Face stores it) use the *half-split* layout, which pairs column $i$ with column $i + D/2$. If you run code for one layout on weights stored in the other, you get wrong scores and no error, so conversion scripts permute the rows of the weight matrices (lesson 14).

# %% [markdown]
# ### Tables that differ from the paper's
#
# The paper says that the wavelengths "form a geometric progression from $2\pi$ to $10000 \cdot 2\pi$". By its own formula the longest is $2\pi \cdot 10000^{(D-2)/D}$, which is about $9647 \cdot 2\pi$ for $D = 512$ and only $100 \cdot 2\pi$ for our $D = 4$. The authors' library, tensor2tensor, spaces the exponents so that the last divisor is exactly 10000, and it writes all sines first.
#
# Published code differs in more ways. We trained our translator with the paper's table, so its loss is larger with any other table:
#
# | table | nats per word |
# |---|---|
# | the paper's | 0.00016 |
# | all sines first, then all cosines | 12.97 |
# | loop variable 0, 2, 4, ... doubled again in the exponent | 1.21 |
# | cosine with an exponent of its own, $2i + 1$ instead of $2i$ | 0.00045 |
# | the same, $2i + 2$ instead of $2i$ | 0.014 |
#
# In theory the last two are the worst, because such a pair is no longer a point on a circle and its steps are not rotations. In this translator they are the mildest, because the two speeds of a pair differ only by a seventh or a quarter at width 64, and sentences are short. A table of positions is a convention between a network and its code, so a network can only read the one that it was trained with.

# %% [markdown]
# ### What else to know
#
# - **Causal masks break the symmetry.** A word that attends only to earlier words can find out how many precede it. Language models trained without any positions do learn some order in this way (Haviv et al., 2022). An encoder, in which every word attends to every word, cannot.
# - **Vector length.** Since $\sin^2 + \cos^2 = 1$, each pair adds 1 to the squared length of a position vector, so its length is $\sqrt{64/2} = 5.66$. Most of this length belongs to the mean of all position vectors, which has length $4.86$. Only the differences from it, which are at most $3.4$ long, tell positions apart. The slow sinusoids barely move within a sentence, so the positions of this translator use few of its 64 directions. Nine of them contain 99% of the squared length of all position vectors, and a learned matrix can read the words from the others.
# - **One position for all words.** Why does the translator stop early without positions, but not if every word has position 0? To find out, we gave all words of a sentence the same position. At positions 0 and 1 it stops early in at most 4% of the sentences, at 2 and 3 in over half, and from 13 on in over 90%. So late positions seem to say *stop here*.
# - **Sentences in a batch.** On a batch of many sentences the layer of exercise 2.4 is worse than guessing. The translator was trained on only 24 positions, so the first sentences, which get these positions, cost $6.7$ nats per word, and the others cost $10.2$.

# %% [markdown]
# ### How stable are these numbers?
#
# All losses of this lesson come from one trained translator on 200 unseen sentences, without any randomness. The worked examples and everything about RoPE are exact statements.

# %% [markdown]
# ## Further reading
#
# - Vaswani et al., [Attention Is All You Need](https://arxiv.org/abs/1706.03762) (2017), section 3.5 and table 3, row E.
# - Su et al., [RoFormer: Enhanced Transformer with Rotary Position Embedding](https://arxiv.org/abs/2104.09864) (2021), sections 3.2 and 3.4.
# - Shaw, Uszkoreit, Vaswani, [Self-Attention with Relative Position Representations](https://arxiv.org/abs/1803.02155) (2018).
# - Press, Smith, Lewis, [Train Short, Test Long](https://arxiv.org/abs/2108.12409) (2021), which replaces position vectors by a penalty for distance.
# - Haviv et al., [Transformer Language Models without Positional Encodings Still Learn Positional Information](https://arxiv.org/abs/2203.16634) (2022).
# - [The Annotated Transformer](http://nlp.seas.harvard.edu/2018/04/03/attention.html), *Positional Encoding*.
# - Poupart, [CS480/680 Lecture 19: Attention and Transformer Networks](https://www.youtube.com/watch?v=OyFJWRnt_AY).
