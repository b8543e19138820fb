# %% [markdown]
# # 2. Position: how words know their order
#
# **Goal:** see that attention alone cannot tell *jane visits africa* from *africa visits jane*, and teach it order: by
# waves, by a learned table, by rotations.
#
# **Time:** about 130 minutes, of which 50 are for the two extras. A good place for a break is after exercise 2.5.

# %% tags=["setup"]
# (empty: the build puts the set-up cell here)

# %%
import torch

from helpers import at_work, check, or_given, translator
from helpers.drawing.transformer_map import transformer_map
from helpers.lessons.position import experiments, explore, figures

# %%
transformer_map("02_position")

# %% [markdown]
# We are at the entrance. Every word has its vector; now every vector is told its place, before any attention is paid.

# %% [markdown]
# ## You need
#
# - [Lesson 1](../01_token_embedding/01_token_embedding.ipynb): every word has a vector, and a dot product says how
#   alike two vectors are.
# - [Lesson 0](../00_start_here/00_start_here.ipynb): shapes, broadcasting, gradients.
# - One line of Python: `raise ValueError("why")` stops with an error that says why.
#
# Two questions to warm up. Answer before you unfold.
#
# <details><summary>Lesson 1: two sentences contain the same words in another order. What differs between their matrices of word vectors, one row for each token?</summary>
#
# Only the order of the rows. A row is looked up by the word's id, and the id knows nothing of the word's place.
#
# </details>
#
# <details><summary>Lesson 1: what does the dot product of two vectors see that their cosine does not?</summary>
#
# Their lengths: $a \cdot b = |a|\,|b| \cos(a, b)$. Among vectors of equal length the two agree on which are most
# alike. The place vectors of this lesson will all have the same length.
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
# ## Does attention see order?
#
# Here are three words as vectors of width 4, small enough for paper. They will stay with us through the lesson.
#
# | word | vector |
# |---|---|
# | jane | (1, 0, 0, 1) |
# | visits | (0, 1, 1, 0) |
# | africa | (1, 1, 0, 0) |
#
# And here is attention, stripped of everything that can be learned. (Lessons 3 to 7 put the learned parts in.) Each
# word asks every word *how alike are we?* by a dot product; `softmax` turns its three answers into positive weights
# that sum to 1; the word's new vector is the mean of all three vectors under those weights.

# %%
tokens = ["jane", "visits", "africa"]
x = torch.tensor([[1.0, 0, 0, 1], [0, 1, 1, 0], [1, 1, 0, 0]])  # (T, D)


def mix(x):
    weights = torch.softmax(x @ x.T, dim=-1)  # (T, T), each row sums to 1
    return weights @ x  # (T, D)


mix(x)

# %% [markdown]
# Follow *jane* on paper. Her dot products with *jane*, *visits*, *africa* are 2, 0, 1. The powers $e^2, e^0, e^1$ are
# 7.389, 1, 2.718 and sum to 11.107, so her weights are 0.665, 0.090, 0.245. Her new vector is
#
# $$0.665\,(1,0,0,1) + 0.090\,(0,1,1,0) + 0.245\,(1,1,0,0) = (0.910,\ 0.335,\ 0.090,\ 0.665),$$
#
# the first row above.
#
# **Predict before you run.** Now the sentence is *africa visits jane*. Does *jane*, last this time, get another vector?
# Write down yes or no, and a reason, then run the next cell.

# %%
perm = torch.tensor([2, 1, 0])  # africa visits jane
mix(x)[0], mix(x[perm])[2]  # jane in the first sentence, jane in the second

# %%
figures.two_orders(tokens, x, perm)

# %% [markdown]
# <details><summary>Answer</summary>
#
# No: it is the same vector. Who visits whom is gone. The whole table of weights is shuffled along with the words, and
# each weight stays with its *pair* of words.
#
# </details>
#
# In symbols: let $\Pi$ be the matrix that shuffles the rows. The scores become $(\Pi X)(\Pi X)^\top =
# \Pi\,(XX^\top)\,\Pi^\top$. Softmax works on each row by itself, and the order of a row's entries does not matter to
# it. So it makes no difference whether we shuffle before or after. Since $\Pi^\top \Pi$ is the identity,
#
# $$f(\Pi X) = \Pi\,\mathrm{softmax}(XX^\top)\,\Pi^\top\,\Pi X = \Pi f(X).$$
#
# A function with $f(\Pi X) = \Pi f(X)$ is called **permutation equivariant**: shuffle the input, and the output is
# shuffled the same way; nothing else happens. The learned matrices of the next lessons do not change this, as they
# act on each row by itself; nor do more heads, a feed-forward layer, or a hundred layers of all of them. As long as
# every word may look at every word, training cannot repair it: the equation holds for *every* choice of weights.
# (Lesson 5 hides the later words from each word. That does break the symmetry; see the notes at the end.)
#
# Do not just believe this. Measure it.

# %% [markdown]
# ### Exercise 2.1 `equivariance_error`
#
# Difficulty 2 of 5 · Importance 4 of 5 · 10 minutes · 18 points
#
# How far is a function from being equivariant, for one input and one shuffle?
#
# $$\text{gap} = \max_{t,j} \left| f(x[\text{perm}])_{tj} - f(x)[\text{perm}]_{tj} \right|$$
#
# - `f`: a function from `(T, D)` to `(T, any width)`
# - `x`: `(T, D)`, float32 or float64; `perm`: LongTensor `(T,)`, a permutation of 0 ... T−1
# - returns a Python `float`, not rounded; 0 (up to the last bits) when `f` is equivariant


# %% nbgrader={"solution": "equivariance_error"}
def equivariance_error(f, x, perm):
    """Largest absolute difference between f(x[perm]) and f(x)[perm]: 0 where f does not see order.

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
# `x[perm]` takes row `perm[0]` first, then row `perm[1]`, and so on. Two things must be compared: shuffle first and then compute; compute first and then shuffle.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# A difference of −3 is as large as one of 3. And a tensor with one number is not yet a Python float.
#
# </details>
#
# Not everything is blind to order. A running mean, in which each row is the mean of all rows up to it, is not. Here are
# both sides for our sentence. *Which entry differs most, and by how much?*


# %%
def running_mean(x):
    return x.cumsum(0) / torch.arange(1, len(x) + 1)[:, None]  # (T, D)


running_mean(x[perm]), running_mean(x)[perm]

# %% [markdown]
# <details><summary>Answer</summary>
#
# The largest difference is 2/3, and it occurs twice, in the last row: (0.667, 0.667, 0.333, 0.333) against
# (1, 0, 0, 1). Your function says so as well: try `equivariance_error(running_mean, x, perm)` in a new cell.
#
# </details>

# %% [markdown]
# ### Quiz 2.1
#
# A stack of a hundred attention layers with learned weights, no mask, no positions, reads *africa visits jane* and
# *jane visits africa*. We take the mean of all output rows as the sentence's vector. What can we say of the two
# sentence vectors?
#
# - **a** They are equal, whatever the weights.
# - **b** They are equal at random weights; training can make them differ.
# - **c** They differ, because the rows come out in another order.

# %% nbgrader={"solution": "quiz_1"}
quiz_1 = None  # "a", "b" or "c"
### BEGIN SOLUTION
quiz_1 = "a"
### END SOLUTION

# %% nbgrader={"grade": "quiz_1"}
check(quiz_1=quiz_1)

# %% [markdown]
# ## Write the place into the vector
#
# The repair is as old as house numbers: let every token carry its place. Add to the vector of the word at place $t$ a
# vector $P_t$ that depends on $t$ only. Which one?
#
# - **The number $t$ itself.** At place 500 it drowns a word vector whose entries are near 1, and perhaps no training
#   sentence ever had a place 700.
# - **$t / T$, between 0 and 1.** Then the step from one word to the next is different in every sentence length. *Next
#   word* would have no fixed meaning.
# - **Binary digits.** Bounded, and every place is different: 0000, 0001, 0010, ... The last digit flips at every step,
#   the one before it at every second. But from 7 to 8 four digits flip at once, from 6 to 7 only one: neighbors are
#   sometimes near and sometimes far.
#
# Where a binary digit flips every 1, 2, 4 or 8 steps, a wave swings smoothly. With the formula below, in a vector of 16
# channels, the first four waves come round every 6, 20, 63 and 199 steps.

# %%
figures.counting()

# %% [markdown]
# Vaswani et al. (2017, section 3.5) take one sine and one cosine of each of $D/2$ angles:
#
# $$P_{t,\,2i} = \sin\!\left(\frac{t}{10000^{2i/D}}\right), \qquad P_{t,\,2i+1} = \cos\!\left(\frac{t}{10000^{2i/D}}\right), \qquad i = 0, \dots, \tfrac{D}{2} - 1.$$
#
# Work it out for our width, $D = 4$. Pair $i = 0$ divides by $10000^0 = 1$, pair $i = 1$ by $10000^{2/4} = 100$:
#
# | place | sin t | cos t | sin t/100 | cos t/100 |
# |---|---|---|---|---|
# | 0 | 0 | 1 | 0 | 1 |
# | 1 | 0.8415 | 0.5403 | 0.0100 | 1.0000 |
# | 2 | 0.9093 | −0.4161 | 0.0200 | 0.9998 |
#
# The first pair is the second hand of a clock, the last one the hour hand. A sine alone would not do: it passes each
# height twice a turn. Sine *and* cosine together say where on the circle the hand points.

# %%
figures.sinusoid_map(length=60, d_model=32)

# %% [markdown]
# Now take $D = 16$, so eight pairs. The left picture shows one pair as two waves, with two places marked. The right one
# shows how far apart the hands of these two places are, in every pair. *Which pair tells place 10 from place 11 best?
# And which pairs tell 10 from 54?*

# %%
explore.waves()

# %% [markdown]
# <details><summary>Answer</summary>
#
# For 10 and 11 it is pair 0: its hands are 0.96 apart, those of pair 2 only 0.10, those of the slow pairs hardly at
# all. For 10 and 54 pair 0 is nearly blind (0.02), since 44 steps are almost exactly seven rounds. Pairs 1, 2 and 3
# tell them apart well (1.25, 1.62, 1.28). The slowest pair has not moved enough (0.01). Each pair covers for the
# others.
#
# </details>

# %% [markdown]
# ### Exercise 2.2 `sinusoidal_positions`
#
# Difficulty 3 of 5 · Importance 5 of 5 · 15 minutes · 26 points
#
# The table of the formula above.
#
# - `length`: number of places, 0 ... length−1; `d_model`: width
# - returns float32 `(length, d_model)`: column $2i$ is $\sin(t / 10000^{2i/D})$, column $2i+1$ the cosine of *the same*
#   angle
# - `d_model` odd: raise `ValueError`
# - equal means within 1e-5 up to place 64, and within 1e-4 up to place 512


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
# Make the angles first: a column of places against a row of D/2 divisors gives `(length, D/2)` by broadcasting. In the
# small table above, which divisor belongs to which pair?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# The columns alternate sine, cosine, sine, cosine. Slices with a step (`[:, 0::2]`) can fill every second column; so
# can stacking on a new last axis and flattening it.
#
# </details>

# %% [markdown]
# ### Quiz 2.2
#
# In a table with $D = 16$, which pair of columns changes most between place 20 and place 21?
#
# - **a** columns 0 and 1
# - **b** columns 14 and 15
# - **c** all alike, since all rows have the same length

# %% nbgrader={"solution": "quiz_2"}
quiz_2 = None  # "a", "b" or "c"
### BEGIN SOLUTION
quiz_2 = "a"
### END SOLUTION

# %% nbgrader={"grade": "quiz_2"}
check(quiz_2=quiz_2)

# %% [markdown]
# ## Can the place be read back?
#
# A code is only useful if it can be read. Since $\sin^2 + \cos^2 = 1$, each pair adds exactly 1 to a row's squared
# length: **every row has length $\sqrt{D/2}$**. And by the rule for the cosine of a difference,
#
# $$P_s \cdot P_t = \sum_i \left(\sin a_i s\, \sin a_i t + \cos a_i s\, \cos a_i t\right) = \sum_i \cos\left(a_i (s - t)\right), \qquad a_i = 10000^{-2i/D}.$$
#
# The dot product of two places depends on their *distance* only, and is largest, $D/2$, at distance 0.
#
# *On paper:* what is $P_0 \cdot P_1$ in our small table?
#
# <details><summary>Answer</summary>
#
# $0 \cdot 0.8415 + 1 \cdot 0.5403 + 0 \cdot 0.01 + 1 \cdot 1 = 1.5403 = \cos 1 + \cos 0.01$, and $P_1 \cdot P_2$ is the
# same. The largest possible value is $D/2 = 2$.
#
# </details>

# %%
figures.position_dots(length=48, d_model=32)

# %% [markdown]
# ### Exercise 2.3 `find_position`
#
# Difficulty 2 of 5 · Importance 2 of 5 · 8 minutes · 10 points
#
# Somebody hands you one row of the table, slightly blurred. Which place is it?
#
# - `row`: `(D,)` float32, a row of `sinusoidal_positions(length, D)`, D even and at least 4, with every entry off by up
#   to 0.01; `length` at most 512
# - returns the place as a Python `int`
#
# No single pair is enough. The fast hand is exact but comes round again; the slow hand never comes round, but the blur
# can move it by a place, and at a large width by many.


# %% nbgrader={"solution": "find_position"}
def find_position(row, length):
    """The place t, 0 <= t < length, whose row of sinusoidal_positions(length, D) was blurred into
    `row`.

    row (D,) float32, each entry off by at most 0.01; D even, at least 4; length at most 512.
    Returns a Python int.
    """
    ### BEGIN SOLUTION
    table = sinusoidal_positions(length, len(row)).to(row.device)  # (length, D)
    return (table @ row).argmax().item()
    ### END SOLUTION


# %% nbgrader={"grade": "find_position"}
check(find_position)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# No row of the table is equal to yours. But you have the whole table, and you know how to measure which of many vectors
# is most like one given vector.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# All rows have the same length, so two measures work here that in general disagree: the smallest distance, and the one
# of the formula above. `argmax` and `argmin` return tensors.
#
# </details>
#
# **Predict before you run.** At width 4 this code lives on two hands, at width 64 on thirty-two. *Blur each entry by up to
# 0.3, thirty times as much. Which of the two codes can still be read?*

# %%
experiments.blurred_more(find_position)

# %% [markdown]
# <details><summary>Answer</summary>
#
# The wide one: at 0.3 every place is still found at widths 16 and 64, and a quarter of them at width 4. More hands say
# the same thing again, and errors that point in all directions cancel. At a blur of 1, as large as the entries
# themselves, width 64 still finds 73 % of the places (71 to 85 % in other draws).
#
# </details>

# %% [markdown]
# ## Word plus place
#
# The vector that enters the first layer is *word + place*: $x_t + P_t$. For our three words on paper, *jane* at place 0
# becomes $(1, 0, 0, 1) + (0, 1, 0, 1) = (1, 1, 0, 2)$. Is the order visible now?

# %%
P = torch.tensor([[0, 1, 0, 1], [0.8415, 0.5403, 0.0100, 1.0000], [0.9093, -0.4161, 0.0200, 0.9998]])  # (T, D)
mix(x + P)[0], mix(x[perm] + P)[2]  # jane who visits, jane who is visited

# %% [markdown]
# It is: *jane* first and *jane* last now get different vectors. And here is the same sum in a real network, the
# course's translator of width 64, for its sentence *jane visits africa in september*.

# %%
numbers, words = translator.state(), "jane visits africa in september".split()
ids = torch.tensor([translator.english[word] for word in words])  # (5,)
rows = numbers["encoder.tokens.weight"][ids]  # (5, 64), word vectors
figures.words_and_positions(words, rows, numbers["encoder.positions.weight"][:5])

# %% [markdown]
# The places are loud and the words are faint. *How long is a row of places at width 64? The word rows are about 1 long. So how can the
# network still read the words?*
#
# <details><summary>Answer</summary>
#
# A row of places is $\sqrt{64/2} = 5.66$ long, five times as long as a word. But length is not what counts; directions
# are. The slow waves hardly move within a sentence, so the 24 places that this translator knows fill few of its 64
# directions: nine of them hold 99 % of the places' squared length, and twelve hold all but
# some billionths of it. A learned
# matrix can look along the others and never see the places.
#
# </details>
#
# Added, not appended: the width stays $D$, and a learned layer can pull both apart as long as words and places do not
# fill the same directions. This is a bet, not a theorem. Did it pay off here?
#
# **Predict before you run.** Take the twelve directions of the places out of every English word vector (subtract its
# shadow on each of them), and translate. *How much worse does it get: hardly, or hopeless? And with nothing but these twelve?* As
# a control, the same with twelve directions drawn at random. Loss is in *nats a word*, the surprise at the right word:
# 0.00016 for the whole vectors, 5.3 for pure guessing.

# %%
experiments.words_in_directions()

# %% [markdown]
# <details><summary>Answer</summary>
#
# Hardly, and hopeless. Without the twelve directions of the places the loss is 0.00030; without twelve random ones
# 0.0014 to 0.0025 in these three draws. With the twelve alone it is 4.41, and with twelve random ones alone 2.63 to 3.14.
# So this translator reads its words mostly where the places are not.
#
# *The words have moved out of the way, but only a little.* Of their squared length 14.5 % lies in those twelve
# directions; vectors that point anywhere at all would have 12 of 64 there, 18.75 %, and the three draws have 18 to 19.
# Space is plentiful in 64 dimensions. What training has chosen is above all where to *look*. (One translator, one
# training.)
#
# </details>
#
# The table need not be made of waves. An `nn.Embedding(max_len, D)` whose rows are trained like words works as well:
# Vaswani et al. tried both and report nearly the same quality (their table 3, row E). BERT and GPT-2 learn theirs. A
# learned table has two limits: a row that no training sentence was long enough to reach is never trained, and beyond
# the last row there is nothing.

# %% [markdown]
# ### Exercise 2.4 `add_positions`
#
# Difficulty 2 of 5 · Importance 5 of 5 · 8 minutes · 14 points
#
# $$\text{out}_{\dots t} = x_{\dots t} + \text{table}_t$$
#
# - `x`: `(..., T, D)`, any leading dimensions; `table`: `(max_len, D)` of the same dtype
# - returns `(..., T, D)`: the first T rows of the table added, the same for every sentence
# - the gradient reaches `x` and `table`; neither is changed
# - T longer than the table: raise `ValueError`, also when the table has a single row
#
# *Predict the shape first:* for `x` of shape `(2, 3, 5, 8)` and a table of `(9, 8)`, what is the shape of the slice
# that you add, and along which axes is it repeated?
#
# <details><summary>Answer</summary>
#
# The slice is (5, 8): five tokens, eight columns. Broadcasting repeats it along the first two axes, so that all 2 · 3
# sentences get the same places.
#
# </details>


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
# Broadcasting lines shapes up from the right. Which axis of `x`, counted from the right, holds the tokens?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Slicing past the end of a tensor is no error in PyTorch: you get fewer rows. With one row left, broadcasting repeats
# it silently. So ask about the length before you slice.
#
# </details>
#
# Now measure again what the first exercise measured, on *jane visits africa*: attention without places, and with them.
# *Which of the two numbers will be 0?*

# %%
experiments.gaps(equivariance_error, mix, or_given(add_positions), x, P, perm)

# %% [markdown]
# ## Tokens first or sentences first?
#
# This layer is in many repositories. It comes from a tutorial where tensors are `(T, B, D)`, tokens first, and there it
# is right:
#
# ```python
# pe = pe.unsqueeze(1)                # (max_len, 1, D)
# ...
# def forward(self, x):
#     return x + self.pe[:x.size(0)]
# ```
#
# Then somebody sets `batch_first=True`, `x` becomes `(B, T, D)`, and nothing complains. Here it is as a function, on
# two sentences of three tokens, all zeros, so that one sees only what is added:


# %%
def published_position_layer(x, pe):
    return x + pe[: x.size(0)]


pe = P[:, None]  # (3, 1, 4)
published_position_layer(torch.zeros(2, 3, 4), pe)

# %% [markdown]
# *What do the three tokens of the second sentence have in common? Is a model with this layer still blind to order
# inside a sentence?*

# %%
figures.whose_position()

# %% [markdown]
# <details><summary>Answer</summary>
#
# All three got place 1, because theirs is sentence 1 of the batch. Inside a sentence every token gets the same vector, so
# nothing in the sum tells them apart by order: the model is as blind as before. Worse, a sentence's vectors now depend
# on where it happens to be in the batch. And there is no error message.
#
# </details>

# %% [markdown]
# ### Exercise 2.5 `fixed_position_layer`
#
# **Find the bug** · Difficulty 2 of 5 · Importance 4 of 5 · 8 minutes · 12 points
#
# Repair the layer for sentences first.
#
# - `x`: exactly `(B, T, D)`; `pe`: `(max_len, 1, D)`, as the layer stores it, with T ≤ max_len
# - returns `(B, T, D)`: token t of *every* sentence gets `pe[t, 0]`
# - B is any size, also larger than max_len; D may be 1; the gradient reaches `x` and `pe`; neither is changed


# %% nbgrader={"solution": "fixed_position_layer"}
def fixed_position_layer(x, pe):
    """The published position layer, repaired for batches that come first.

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
# Two things are wrong at once: how many rows are taken, and where the axis of length 1 ends up when shapes are lined up
# from the right.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# If you only change which size of `x` you slice by, you add `(T, 1, D)` to `(B, T, D)`. What shape does that sum have
# when B is 1? Get rid of the middle axis, or move it to the front.
#
# </details>
#
# Once more the two sentences that the published layer got wrong, through your repair:

# %%
experiments.positions_given(fixed_position_layer)

# %% [markdown]
# This was the core of the lesson, and a good place for a break. What follows is what made sines and cosines famous, and
# what most models use today instead.

# %% [markdown]
# ## A step is a rotation
#
# Why sine and cosine *of the same angle*? Look at one pair as a point on a circle: at place $t$ the hand is at angle
# $a t$. Three places later it is at $a t + 3a$. Whatever $t$ was, the hand turned by $3a$. So *three words further*
# is one fixed rotation, the same at place 2 and at place 200.

# %%
figures.one_turn(offset=3)

# %% [markdown]
# The rules for sums of angles say it in numbers. With $b = a \cdot \text{offset}$,
#
# $$\sin(at + b) = \sin(at)\cos b + \cos(at)\sin b, \qquad \cos(at + b) = \cos(at)\cos b - \sin(at)\sin b.$$
#
# Both right-hand sides are *linear* in the pair $(\sin at, \cos at)$, with coefficients that do not contain $t$. So one
# matrix carries every place to the place `offset` further on. A linear layer *can* compute such a shift, and Vaswani et
# al. hoped that this would help a model to attend by relative position. Nothing guarantees that it does.
#
# **On paper**, for $D = 2$ (so $a = 1$) and offset 1, with $\cos 1 = 0.5403$ and $\sin 1 = 0.8415$:
#
# $$M = \begin{pmatrix} 0.5403 & 0.8415 \\ -0.8415 & 0.5403 \end{pmatrix}, \qquad M \begin{pmatrix} 0 \\ 1 \end{pmatrix} = \begin{pmatrix} 0.8415 \\ 0.5403 \end{pmatrix}:$$
#
# row 0 of the table, $(\sin 0, \cos 0)$, became row 1, $(\sin 1, \cos 1)$.

# %% [markdown]
# ### Exercise 2.6 `shift_matrix`
#
# **Extra** · Difficulty 4 of 5 · Importance 2 of 5 · 30 minutes · 10 bonus points
#
# Write down the matrix M that moves every place by `offset`:
#
# $$P_{t + \text{offset}} = M\,P_t \quad \text{for every } t, \qquad P = \texttt{sinusoidal\_positions}$$
#
# - `offset`: int, may be 0 or negative; `d_model`: int
# - returns float32 `(D, D)`; `d_model` odd: raise `ValueError`


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
# Pairs do not mix: M has D/2 little 2×2 blocks on its diagonal and zeros elsewhere. The block on paper above is the
# first one. What changes in the others?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# The first row of a block makes the new sine from (old sine, old cosine); the second makes the new cosine. Try it: does
# M for offset 1 carry row 0 of the table, (0, 1, 0, 1, ...), to row 1?
#
# </details>
#
# One matrix, and all places from the first row. *How far does your M for offset 3 get before the rounding shows?*

# %%
experiments.moved_by(shift_matrix)

# %% [markdown]
# ## Rotate instead of add: rotary positions
#
# If a step is a rotation, why add waves first and hope? When *word plus place* meets *word plus place*, their dot
# product has four terms,
#
# $$(x_m + P_m)\cdot(x_n + P_n) = x_m \cdot x_n + x_m \cdot P_n + P_m \cdot x_n + P_m \cdot P_n,$$
#
# and the two in the middle depend on the absolute places $m$ and $n$.
#
# Two names from lesson 3 before we go on. When one word asks another *how alike are we?*, the word that asks uses one
# vector, its **query** $q$, and the word that is asked another, its **key** $k$. (In `mix` above both were simply the
# word's own vector.) Their dot product $q \cdot k$ is the **score**.
#
# Su et al. (2021) leave the word vectors alone and turn $q$ and $k$. Cut a vector into pairs, see each pair as an arrow
# in the plane, and turn it by an angle proportional to its place:
#
# $$\begin{aligned} x'_{2i} &= x_{2i}\cos a - x_{2i+1}\sin a \\ x'_{2i+1} &= x_{2i}\sin a + x_{2i+1}\cos a \end{aligned} \qquad a = \text{position} \cdot \text{base}^{-2i/D}$$
#
# **On paper**, $D = 2$. Put $q = (1, 0)$ at place 0; it stays $(1, 0)$. Put $k = (1, 0)$ at place 1; it becomes
# $(\cos 1, \sin 1) = (0.5403, 0.8415)$. Their score is 0.5403. Put them at places 5 and 6 instead: both arrows turn
# by 5 more, the angle between them stays 1, and the score stays 0.5403. A rotation changes no length, and no angle
# between two arrows that turn together. So **the score depends on the offset from query to key, and on nothing else
# about their places**. Here this *is* a theorem, for every q and k.

# %%
figures.turned_together()

# %% [markdown]
# *Does it depend on the distance alone, whichever of the two comes first?* Try $q = (1, 0)$ and $k = (0, 1)$, with the
# key one place after the query, and one place before.
#
# <details><summary>Answer</summary>
#
# It depends on the sign too. One place after, $k$ becomes $(-\sin 1, \cos 1)$ and the score is −0.8415; one place
# before, $(\sin 1, \cos 1)$ and the score is +0.8415. That is what we want: *the word before me* and *the word after
# me* are different questions. The dot products of Figure 2.4 could not tell them apart.
#
# </details>
#
# **Is this the matrix M of exercise 2.6?** Nearly. Turning by 1 is
#
# $$R = \begin{pmatrix} 0.5403 & -0.8415 \\ 0.8415 & 0.5403 \end{pmatrix} = M^\top, \qquad R \begin{pmatrix} 1 \\ 0 \end{pmatrix} = \begin{pmatrix} 0.5403 \\ 0.8415 \end{pmatrix}.$$
#
# Both turn the hand the same way, from angle 0 to angle 1. But the table of sinusoids writes a hand as (sine, cosine),
# height first, while a rotary pair is (across, up). Exchange the two numbers of a pair, and one matrix becomes the
# other.

# %%
figures.rotary_scores()

# %% [markdown]
# Try it. *Move "query at" alone: what happens to the score? Now move both places by the same step. And which is larger,
# the score at offset 1 or at offset −1?*

# %%
explore.rotary()

# %% [markdown]
# <details><summary>Answer</summary>
#
# Alone, the score runs along the gray curve. Moved together, the two arrows turn together and the score does not change.
# The curve is not symmetric: this query and this key score 7.08 at offset 1 and 5.84 at offset −1.
#
# </details>

# %% [markdown]
# ### Exercise 2.7 `apply_rope`
#
# **Extra** · Difficulty 4 of 5 · Importance 4 of 5 · 20 minutes · 10 bonus points
#
# - `x`: `(..., T, D)`, D even; `positions`: LongTensor `(T,)`, any places in any order; `base`: float
# - returns `(..., T, D)`, same dtype: the pairs $(x_{2i}, x_{2i+1})$ turned as in the formula above
# - equal means within 1e-4 for places beyond 4


# %% nbgrader={"solution": "apply_rope"}
def apply_rope(x, positions, base=10000.0):
    """Rotary position embedding over interleaved pairs, eq. 34 of Su et al. (2021).

    x (..., T, D) with D even, positions LongTensor (T,) -> (..., T, D), same dtype. The pair
    (x[2i], x[2i+1]) is turned by the angle position * base^(-2i/D), from the first axis toward the
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
# The angles are a `(T, D/2)` table, made like the one of exercise 2.2, but for the given places. Every second column of
# `x`, from 0 and from 1, gives the two halves of all pairs.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Keep the old pair until both new numbers are made. To interleave the two results, think of the shape `(..., T, D/2,
# 2)`.
#
# </details>
#
# Your rotations at work on one query and one key, always one place apart:

# %%
experiments.scores_far_out(apply_rope)

# %% [markdown]
# **Two dialects.** Many models (GPT-NeoX, and LLaMA as Hugging Face stores it) pair column $i$ with column $i + D/2$
# instead of its neighbor. It is the same idea with the columns in another order. Code of one dialect with weights of
# the other runs without an error and gives nonsense, so converters permute the rows of the weights.

# %% [markdown]
# ### Quiz 2.3
#
# Rotary positions are applied to queries and keys. A colleague also *adds* the sinusoidal table to the word vectors.
# Which statement holds?
#
# - **a** Nothing changes: both carry the same places.
# - **b** The score no longer depends on the offset alone.
# - **c** The rotation cancels what was added.

# %% nbgrader={"solution": "quiz_3"}
quiz_3 = None  # "a", "b" or "c"
### BEGIN SOLUTION
quiz_3 = "b"
### END SOLUTION

# %% nbgrader={"grade": "quiz_3"}
check(quiz_3=quiz_3)

# %% [markdown]
# ## At work
#
# Your two functions in the course's translator: your table, added by your function, to every sentence that it reads and
# writes. The map shows where one of its heads and its decoder look; later lessons say how. For order, take a pair of
# sentences with the same words. (The sentences that it learned from come from a small grammar. There a dog may paint a
# cat, but only countries are visited: it has never read these two.)

# %%
at_work(sinusoidal_positions, add_positions, sentence="the dog visits the cat")

# %%
at_work(sinusoidal_positions, add_positions, sentence="the cat visits the dog")

# %% [markdown]
# *le chien visite le chat*, *le chat visite le chien*: it knows who visits whom.
#
# **Predict before you run.** The translator was trained with places. What happens to *the dog visits the cat* when they
# are left out? And with the published layer, which knows only sentence numbers? (A single sentence is a batch of one.)


# %%
def without_positions(x, table):
    return x


at_work(add_positions=without_positions, sentence="the dog visits the cat")


# %%
long_pe = or_given(sinusoidal_positions)(5000, 64)[:, None]  # (5000, 1, D), as long as in the tutorial


def published_layer(x, table):
    return x + long_pe[: x.size(0)]


at_work(add_positions=published_layer, sentence="the dog visits the cat")

# %% [markdown]
# <details><summary>Answer</summary>
#
# | positions | nats a word | of 200 unseen sentences word for word |
# |---|---|---|
# | yours | 0.00016 | all |
# | yours, but the English words shuffled | 6.04 | – |
# | none | 4.85 | none |
# | the published layer | 9.81 | none |
#
# Somebody who only guesses among the 194 entries of the French vocabulary is at $\ln 194 = 5.3$. Without places the translator writes *le
# chat* and stops, whoever visits whom. With the published layer it writes *le chat le chat le chat* until it is cut off: in
# a batch of one every word is at place 0, even those that it has written itself, so nothing tells the network how far it
# has come. (It is not that place 0 looks like the beginning: with every word at place 5, or at place 10, it does not
# stop either.) On a batch of 200 sentences it does worse than guessing: all words of a sentence get one place, and
# most of
# these places the translator has never seen. (It knows 24. The first 24 sentences of the batch cost 6.7 nats a word,
# the other 176 cost 10.2.)
#
# </details>
#
# And the order of the columns? The next cell writes all sines first, then all cosines. The same numbers, in other
# columns.


# %%
def sines_first(length, d_model):
    table = or_given(sinusoidal_positions)(length, d_model)  # (length, D)
    return torch.cat([table[:, 0::2], table[:, 1::2]], dim=-1)  # (length, D)


at_work(sinusoidal_positions=sines_first)

# %% [markdown]
# It stops before the first word, at 12.97 nats. A table of places is a convention between a network and its code: the
# numbers that a network was trained with are the ones that it can read.

# %% [markdown]
# ## Written question
#
# *15 points, graded by hand, 10 minutes, six to ten sentences.*
#
# A translation model was trained on sentences of at most 32 tokens. It is then given one of 50. What happens at places
# 32 to 49 with (i) a learned table of 64 rows, (ii) the sinusoidal table, (iii) rotary positions? For each: what is
# computed, what did training see of it, and what would you measure to find out whether it works?
#
# <details><summary>For those who learn alone: what a good answer has</summary>
#
# - For each of the three, what is computed at places 32 to 49, and where an error would be raised.
# - What is new there for the network: rows, angles, combinations or offsets that training never showed; and that being
#   defined is not the same as working.
# - A measurement by place in the sentence, and something to compare it with.
#
# </details>

# %% [markdown] nbgrader={"written": "written_1"}
# <details><summary>Model answer and marking scheme</summary>
#
# **Model answer.** (i) Rows 32 to 63 of the learned table exist, so nothing raises; but no training sentence reached
# them, their gradient was always zero (apart from weight decay), and they still hold their random start. The tokens
# there get noise that the model never saw. Only a sentence longer than 64 raises an error. (ii) The sinusoidal rows are
# defined at every place. Their entries lie between −1 and 1 as ever, and the fast pairs have shown all their values;
# the slow pairs reach angles never seen, and the *combination* is new. A step of one is still the same rotation, but
# whether the model's layers used that is an empirical question. (iii) Rotary scores depend on the offset only. All
# offsets up to 31 in size were seen at some place, so attention to near words *could* work at place 49 as at place 9;
# offsets of 32 to 49 are new, and softmax now shares its weight among more keys, so it may well not. In all three, the definition of a code outside
# its range says little about the quality there. To measure: the loss (or exact match) by position in the sentence, on
# long sentences, against a model that was trained on long ones; and as a control the same long sentences cut to 32.
#
# **Marking scheme (15).** Learned table: rows exist but are untrained (3), error only beyond the last row (1).
# Sinusoids: defined and bounded everywhere (2), new combinations or new slow angles (2). Rotary: offset only (2), new
# offsets remain (1). Says that being defined is not the same as working (2). A measurement by position with some
# comparison (2). Other true remarks (masks, more keys share the weight) may make up for one lost point.
#
# </details>

# %% [markdown]
# ## From the notes this course grew from
#
# <details><summary>A hyphen, a loose sentence, and four tables that are not the paper's</summary>
#
# **"A sequence of position-encoded word embedding vectors."** That is what the notes on queries and keys call the input of
# attention, in passing. The word *position-encoded* is what this lesson was about: without it, the graph that attention draws among
# the words is the same for every order of them.
#
# **"The wavelengths form a geometric progression from 2π to 10000 · 2π"**, says the paper. By its own formula the longest is $2\pi \cdot
# 10000^{(D-2)/D}$: 9647 · 2π for $D = 512$, and only 100 · 2π for our $D = 4$. The authors' library, tensor2tensor,
# spreads the exponents so that the last divisor is exactly 10000, and writes all sines first. Its table is not the
# paper's.
#
# **Three more in published code.** (1) All sines first, then all cosines, under a comment that cites the formula. (2) A
# loop variable that already counts 0, 2, 4, ... and is doubled again in the exponent. (3) A cosine with an exponent of
# its own, so that the two columns of a pair turn at different speeds. On paper (3) is the worst: such a pair is no
# longer a clock hand, and its steps are not rotations. In our translator it is the mildest: (1) costs 12.97 nats a
# word, (2) 1.21, (3) 0.00045 instead of 0.00016 where the cosine's exponent has $2i + 1$ for $2i$, and 0.014 where it
# has $2i + 2$. At width 64 the two speeds of a pair then differ by a seventh or a quarter, and a short sentence hardly
# shows it.
#
# **That attention cannot see order** needs a footnote. The causal mask of lesson 5 does break the symmetry: a word that
# sees only what came before can count how much that is. Language models without any positions were trained and did
# learn some order that way (Haviv et al., 2022). An encoder, which sees everything, cannot.
#
# </details>

# %% [markdown]
# ## Recap
#
# - Attention without positions is permutation equivariant: shuffle the words, and the answers are shuffled the same
#   way. No training changes that, as long as every word may look at every word.
# - Sinusoids are a smooth counter: fast pairs tell neighbors apart, slow pairs tell far places apart. All rows have the
#   same length, and $P_s \cdot P_t$ depends on the distance.
# - Places are added to the words. A network can pull both apart by looking along the directions that the places leave
#   free, however long the places are.
# - A learned table is the other common choice. It ends at its last trained row.
# - A step is a rotation of every pair. Rotary positions rotate queries and keys, and their score depends on the signed
#   offset alone.
#
# `progress()` in a new cell shows what you have done so far, over all lessons (`from helpers import progress`).

# %% [markdown]
# ## Further reading
#
# - Vaswani et al., [Attention Is All You Need](https://arxiv.org/abs/1706.03762) (2017), section 3.5 and table 3, row
#   E.
# - Su et al., [RoFormer: Enhanced Transformer with Rotary Position Embedding](https://arxiv.org/abs/2104.09864) (2021),
#   sections 3.2 and 3.4.
# - Shaw, Uszkoreit, Vaswani, [Self-Attention with Relative Position Representations](https://arxiv.org/abs/1803.02155)
#   (2018).
# - Press, Smith, Lewis, [Train Short, Test Long](https://arxiv.org/abs/2108.12409) (2021): no position vectors, but a
#   penalty for distance.
# - Haviv et al., [Transformer Language Models without Positional Encodings Still Learn Positional
#   Information](https://arxiv.org/abs/2203.16634) (2022).
# - [The Annotated Transformer](http://nlp.seas.harvard.edu/2018/04/03/attention.html), *Positional Encoding*.
# - Poupart, [CS480/680 Lecture 19: Attention and Transformer Networks](https://www.youtube.com/watch?v=OyFJWRnt_AY).
#
# **Next:** [lesson 3](../03_query_key/03_query_key.ipynb) takes the words, which now know their place, and asks who
# looks at whom.
