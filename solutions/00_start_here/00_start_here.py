# %% [markdown]
# # 0. Start here
#
# **Goal:** read a line of tensor code and know the shape of what it makes; know what a gradient and a Jacobian are; know
# how this course answers you.
#
# **Time:** about 80 minutes.
#
# Nothing here is graded, and every idea comes back in a later lesson. The first cell of each notebook makes the course's
# helpers importable. Run it first, in every lesson (Shift+Enter runs a cell and moves on).

# %% tags=["setup"]
# (empty: the build puts the set-up cell here)

# %%
import torch

from helpers import at_work, check, progress
from helpers.drawing.transformer_map import transformer_map
from helpers.lessons.start_here import explore, figures

# %%
transformer_map("00_start_here")

# %% [markdown]
# This is a Transformer, and the same map opens every lesson. Today nothing is lit: you look at the tools first. In each
# lesson one part lights up, you write it, and it runs at once in a small translator from English to French that comes
# with the course. By lesson 11 every part is yours. (`<bos>`, the beginning of a sentence, is the mark from which the French
# side starts; with `<eos>` it ends.)

# %% [markdown]
# ## You need
#
# - Python: functions, loops, lists and dictionaries. (Lesson 1 adds sets, sorting and comprehensions, lesson 2 the line
#   `raise ValueError`, each with an example.)
# - The product of two matrices, and the derivative of $x^2$. No PyTorch, and no knowledge of Transformers.
#
# Two questions to warm up. Answer them before you open them.
#
# <details><summary>A matrix of shape (2, 3) times a matrix of shape (3, 4): what shape, and how many multiplications for each entry?</summary>
#
# Shape (2, 4). Each entry is a row of three numbers times a column of three numbers: three multiplications, then a sum.
# </details>
#
# <details><summary>What is the derivative of x² + 5x at x = 2, and what does that number promise about x = 2.01?</summary>
#
# $2x + 5 = 9$. Moving 0.01 to the right raises the value by about $9 \cdot 0.01 = 0.09$. (Exactly: 0.0901.)
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
# This box stands in every lesson, to look things up. You need none of it yet.
# The words *dtype*, *in place* and *differentiable* are explained below.
# </details>

# %% [markdown]
# ## How the check talks
#
# You write functions; `check` runs them on inputs of its own and says what holds. First, show it a function that is wrong on purpose. The task is called `twice`: *return two times x*.


# %%
def squared(x):
    return x * x


# %% tags=["raises-exception"]
check(twice=squared)

# %% [markdown]
# Read it from the top. The cross says that the values are wrong, and shows the call that went wrong. Squaring is a mistake that the check knows, so it names it and asks a question. It knows hundreds of such mistakes, and names one only when your answer behaves like it on every input. Otherwise it says what it saw: a wrong shape, a factor, a lost dtype, an input that you changed.
#
# The cell ends with an error, and it is meant to: a wrong answer should never look like a finished one. Nothing is broken, and *Run All Cells* goes on after it.
#
# Now a right answer, in an unusual form:


# %%
def added_to_itself(x):
    return x + x


# %%
check(twice=added_to_itself)

# %% [markdown]
# Each item in the line is a promise that was tested: right values, any number of leading dimensions, the dtype kept, the inputs unchanged, the gradient flowing. The check never asks *how*. It compares what comes out.
#
# Your turn. An answer cell holds a specification and `raise NotImplementedError`. Replace that line with your own, run the cell, then run the check cell below it. (Run the check cell once *before* you answer, too: it says "not answered yet".)


# %% nbgrader={"solution": "twice"}
def twice(x):
    """Two times x.

    x (...), float32 or float64 -> (...), same dtype.
    """
    ### BEGIN SOLUTION
    return 2 * x
    ### END SOLUTION


# %% nbgrader={"grade": "twice"}
check(twice)

# %% [markdown]
# Every exercise has two hints below its check. They nudge, and never tell.
#
# <details><summary>Hint 1</summary>
#
# What is 5, doubled? Write the same with `x` in place of 5. It works on every number in the tensor at once.
# </details>
# <details><summary>Hint 2</summary>
#
# A function gives back what comes after `return`. Take care that the line is indented like the one it replaces.
# </details>

# %% [markdown]
# ## A sentence is a table
#
# A model reads *jane visits africa* as three rows of numbers, one row for each token. Such a table of numbers, with any
# number of axes, is a **tensor**. Here are three rows of width four, small enough for paper:

# %%
tokens = ["jane", "visits", "africa"]
x = torch.tensor([[1.0, 2.0, 6.0, 3.0], [0.0, 3.0, 3.0, 6.0], [2.0, 2.0, 2.0, -2.0]])  # (T, D) = (3, 4)
x.shape, x.ndim, x.dtype

# %% [markdown]
# **Reading a shape.** `(3, 4)` means *3 tokens, each of width 4*. We write `(T, D)`. Two sentences of the same length make `(B, T, D)`, and with several heads there will be `(B, H, T, D)`. It is best to count axes **from the end**: `-1` is the width and `-2` the tokens, however many axes come before.
#
# That is what `...` is for. In an index it stands for *all the axes that I do not mention*:
#
# | expression | for `(T, D)` | for `(B, T, D)` |
# |---|---|---|
# | `x[0]` | the first token | the whole first sentence |
# | `x[..., 0]` | column 0 of every token | column 0 of every token |
# | `x[..., 0, :]` | the first token | the first token of every sentence |
#
# Only the last two rows mean the same in both columns. So code with `...` and negative axes works for one sentence, a batch, and a batch of heads. In this course `(..., T, D)` in a specification promises that, with `...` possibly empty.

# %%
batch = torch.stack([x, 10 * x])  # (B, T, D) = (2, 3, 4)
print(x[..., 0, :].shape, batch[..., 0, :].shape)
batch[..., 0, :]  # (B, D): jane, twice

# %% [markdown]
# ## Broadcasting: unequal shapes, one sum
#
# What is a column of three numbers plus a row of four?

# %%
column = torch.tensor([[10.0], [20.0], [30.0]])  # (3, 1)
row = torch.tensor([[1.0, 2.0, 3.0, 4.0]])  # (1, 4)
column + row  # (3, 4)

# %%
figures.outer_sum_picture()

# %% [markdown]
# The rule has three steps:
# 1. Set the two shapes **flush right**. Where one is shorter, put ones on its left.
# 2. In each place the two sizes must be equal, or one of them must be 1.
# 3. A size of 1 is stretched: its numbers are repeated (without being copied).
#
# A new axis of size 1 comes from `unsqueeze`: if `a` is `(3,)`, then `a.unsqueeze(-1)` is `(3, 1)`, a column, and `a.unsqueeze(-2)` is `(1, 3)`, a row. `a[..., None]` is another spelling of the first.
#
# Try shapes below. Two pairs are worth a look now, because they return in lessons 5 to 8: `(2, 5, 3, 4)` with `(2, 1, 1, 4)`, and `(2, 3, 4)` with `(2, 4)`. *Which of the two works? Say why, then look.*

# %%
explore.broadcasting()

# %% [markdown]
# <details><summary>Answer</summary>
#
# The first pair: 4 meets 4, then the two ones stretch to 3 and 5, and 2 meets 2. The second pair fails: flush right, 4 meets 4, but then 3 meets 2. It looks like "a batch of 2 with a batch of 2", and broadcasting knows nothing of batches: it counts from the right. `(2, 1, 4)` would work.
# </details>
#
# ### Exercise 0.1 `outer_sum`
#
# Difficulty 1 of 5 · Importance 5 of 5 · 6 minutes
#
# Every entry of `a` plus every entry of `b`, in a table:
# $$\text{out}_{ij} = a_i + b_j$$
# Shapes: `a (..., N)`, `b (..., M)` → `(..., N, M)`. The leading dimensions of `a` and `b` are the same.
#
# *Later:* every query meets every key in just this way.


# %% nbgrader={"solution": "outer_sum"}
def outer_sum(a, b):
    """out[..., i, j] = a[..., i] + b[..., j].

    a (..., N), b (..., M), float32 or float64 -> (..., N, M), same dtype.
    """
    ### BEGIN SOLUTION
    return a.unsqueeze(-1) + b.unsqueeze(-2)  # (..., N, 1) + (..., 1, M)
    ### END SOLUTION


# %% nbgrader={"grade": "outer_sum"}
check(outer_sum)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# Write the two shapes that you want to add flush right, under `(..., N, M)`. Which axis must be 1 in each?
# </details>
# <details><summary>Hint 2</summary>
#
# `a` should become a column in its last two axes and `b` a row. The text above shows the call that makes either, counted from the end.
# </details>

# %% [markdown]
# ## Along the last axis
#
# Most of a Transformer works **along the last axis**: a softmax over the keys, a norm over the width. An operation like `mean(dim=-1)` takes that axis away: `(3, 4)` becomes `(3,)`. With `keepdim=True` it stays, with size 1: `(3, 1)`.
#
# **Predict before you run.** Here are the first three columns of our table. The last row is 2, 2, 2, so its mean is 2. What will the last row be after the line below?

# %%
square = x[:, :3]  # (3, 3): rows 1 2 6 | 0 3 3 | 2 2 2
square - square.mean(dim=-1)  # (3, 3) - (3,)

# %% [markdown]
# <details><summary>What happened</summary>
#
# The row means are 3, 2, 2. Their shape is `(3,)`, and set flush right they lie along the *columns*: every row lost 3, 2, 2. The last row became −1, 0, 0 instead of 0, 0, 0. There was no error, because the table is square. With four columns you would have been luckier: there would have been one.
# </details>

# %% [markdown]
# Attention's score tables are square whenever a sentence looks at itself. So most checks use sizes that are all different, and you should too when you try things out.
#
# ### Exercise 0.2 `center_rows`
#
# Difficulty 1 of 5 · Importance 4 of 5 · 5 minutes
#
# Subtract from every row its own mean:
# $$\text{out}_{j} = x_{j} - \frac{1}{D}\sum_{k=1}^{D} x_{k}$$
# Shapes: `x (..., D)` → `(..., D)`. For our table the rows become −2 −1 3 0, then −3 0 0 3, then 1 1 1 −3.
#
# *Later:* the first half of layer norm (lesson 9).


# %% nbgrader={"solution": "center_rows"}
def center_rows(x):
    """Every row (last axis) minus its mean.

    x (..., D), float32 or float64 -> (..., D), same dtype.
    """
    ### BEGIN SOLUTION
    return x - x.mean(dim=-1, keepdim=True)  # (..., D) - (..., 1)
    ### END SOLUTION


# %% nbgrader={"grade": "center_rows"}
check(center_rows)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# The means should stand beside the rows as a column. What shape is that for an input of `(T, D)`?
# </details>
# <details><summary>Hint 2</summary>
#
# `mean` has an argument that keeps the axis it averages over. The text above names it.
# </details>

# %% [markdown]
# ## `transpose` turns, `view` cuts anew
#
# A tensor's numbers lie in memory as one line, row after row. A shape is only a rule for cutting that line.
# - `x.view(4, 3)` (and `x.reshape(4, 3)`) keeps the line and **cuts** it in other places.
# - `x.transpose(0, 1)` **turns** the table: rows become columns.
#
# For our `x` of shape (3, 4) both give the shape (4, 3). In the figure, a smaller table: each token has a color.

# %%
figures.transpose_against_view()

# %% [markdown]
# After `transpose` each column still has one color: each column is a token. After `view` the columns mix the tokens. The shapes agree and nothing complains, but what follows gets mixtures of tokens where it expects tokens. *For which shapes do the two agree?* Guess, then find out with the sliders.

# %%
explore.memory_order()

# %% [markdown]
# <details><summary>Answer</summary>
#
# Only where one of the two sizes is 1. A single row and a single column lie in memory in the same way, so there is nothing to turn.
# </details>

# %% [markdown]
# ### Exercise 0.3 `swap_last_two`
#
# **Find the bug** · Difficulty 2 of 5 · Importance 5 of 5 · 7 minutes
#
# In 2021 the published code of an attention model, Informer, brought its queries from `(B, L, H, D)` to `(B, H, L, D)` with `queries.view(B, H, L_Q, -1)`. A reader [asked](https://github.com/zhouhaoyi/Informer2020/issues/59) whether that does not mix up the heads. It does; the authors called it an error and promised a fix at once. Here is the same slip on the last two axes:
# ```python
# def swap_last_two(x):
#     *lead, T, D = x.shape
#     return x.view(*lead, D, T)
# ```
#
# Write it without the bug:
# $$\text{out}_{\ldots ji} = x_{\ldots ij}$$
# Shapes: `x (..., T, D)` → `(..., D, T)`.
#
# *Later:* the $K^\top$ in $QK^\top$ is this, for a whole batch of heads at once.


# %% nbgrader={"solution": "swap_last_two"}
def swap_last_two(x):
    """out[..., j, i] = x[..., i, j].

    x (..., T, D), float32 or float64 -> (..., D, T), same dtype.
    """
    ### BEGIN SOLUTION
    return x.transpose(-2, -1)  # (..., D, T)
    ### END SOLUTION


# %% nbgrader={"grade": "swap_last_two"}
check(swap_last_two)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# Cut or turn? Then: which axes, counted from the end? (`x.T` reverses *all* axes, so the batch would end up last.)
# </details>
# <details><summary>Hint 2</summary>
#
# The call in the text above names two axes, 0 and 1. Those are right for a single table. What are they called from the other end?
# </details>
#
# Three more tokens, with the numbers 10 and 11, 20 and 21, 30 and 31: cut anew as published, and turned by you. *Which
# columns are tokens now?*

# %%
figures.turned_by(swap_last_two)

# %% [markdown]
# ## In place: two names, one tensor
#
# `y = x` does not copy a tensor. It gives the same numbers a second name. Neither `view` nor `transpose` copies: they are new ways to look at the same memory. So this changes a tensor that the line never mentions:

# %%
original = torch.zeros(2, 3)  # (2, 3)
turned = original.transpose(0, 1)  # (3, 2), the same memory
turned[0, 1] = 7.0
original

# %% [markdown]
# Writing into existing memory is called *in place*: `y[...] = 7`, `y += 1`, and nearly every method whose name ends in an underscore, such as `y.add_(1)`. By contrast `y + 1` makes a new tensor, and `y.clone()` makes a copy that you may write into.
#
# Writing in place is fine in memory that you made yourself. On an input it is a trap: the caller's numbers change, and a backward pass may need the old ones. That is why every check asks for *inputs unchanged*.

# %% [markdown]
# ### Exercise 0.4 `zero_first_token`
#
# Difficulty 2 of 5 · Importance 4 of 5 · 8 minutes
#
# The same table with the first token's row set to zero, and **x as it was**:
# $$\text{out}_{tj} = \begin{cases} 0 & t = 0 \\ x_{tj} & t > 0 \end{cases}$$
# Shapes: `x (..., T, D)` → `(..., T, D)`.
#
# *Later:* masks and padding overwrite entries all the time, but never in the caller's tensor.


# %% nbgrader={"solution": "zero_first_token"}
def zero_first_token(x):
    """x with the row of its first token set to zero; x itself is left as it is.

    x (..., T, D), T >= 1, float32 or float64 -> (..., T, D), same dtype.
    """
    ### BEGIN SOLUTION
    y = x.clone()
    y[..., 0, :] = 0
    return y
    ### END SOLUTION


# %% nbgrader={"grade": "zero_first_token"}
check(zero_first_token)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# Two questions: which memory do you write into, and which index reaches the first token however many leading dimensions there are? The small table of indices above answers the second.
# </details>
# <details><summary>Hint 2</summary>
#
# Either write into a copy, or write nothing at all: put a row of zeros in front of the other tokens, or multiply by a column of zeros and ones.
# </details>

# %% [markdown]
# ## dtype: what kind of number
#
# Every tensor has one kind of number, its `dtype`. Four matter here: `float32` (about 7 digits, the usual choice for models), `float64` (about 16 digits, for checking formulas), `int64` (ids; such a tensor is called a *LongTensor*) and `bool` (masks).
#
# A comparison gives `bool`. You can sum a bool tensor, True counting 1, but you cannot average it: `mean` wants floats. And careless conversions lose digits without a word:

# %%
third = torch.tensor(1.0, dtype=torch.float64) / 3
print((x > 2.5).dtype, (x > 2.5).sum(dim=-1))  # bool; int64 counts for each token
print(third.item(), third.float().item(), sep="\n")

# %% [markdown]
# The second number agrees with the first in its first seven digits only. `t.float()` always gives float32, `t.to(other.dtype)` gives whatever `other` is. *Keeps the dtype* in a specification means: float32 in, float32 out; float64 in, float64 out.

# %% [markdown]
# ### Exercise 0.5 `fraction_above`
#
# Difficulty 2 of 5 · Importance 3 of 5 · 7 minutes
#
# For each row, the share of its entries that are strictly above a threshold $c$:
# $$\text{out} = \frac{1}{D}\,\bigl|\{\, j : x_j > c \,\}\bigr|$$
# Shapes: `x (..., D)`, `threshold` a Python float → `(...)`, **in x's dtype**. For our table and 2.5: 0.5, 0.75, 0. A share moves in jumps, so there is no gradient to ask for.
#
# *Later:* accuracies are such shares (lesson 11). The comparison alone, without the average, is how masks are made (lesson 5).


# %% nbgrader={"solution": "fraction_above"}
def fraction_above(x, threshold):
    """The share of each row's entries that are strictly above the threshold.

    x (..., D), float32 or float64, threshold float -> (...), dtype of x. No gradient is asked for.
    """
    ### BEGIN SOLUTION
    return (x > threshold).to(x.dtype).mean(dim=-1)  # (..., D) -> (...)
    ### END SOLUTION


# %% nbgrader={"grade": "fraction_above"}
check(fraction_above)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# Three steps: compare, convert, average. Which of the three decides the dtype of the result?
# </details>
# <details><summary>Hint 2</summary>
#
# If only *dtype kept* fails, look for a conversion that names a fixed dtype. Ask x for its own instead.
# </details>

# %% [markdown]
# ## Picking one entry from each row
#
# A language model scores every word of its vocabulary at every position; the loss needs, at each position, the score of the one word that really came: row t, column `index[t]`. Plain indexing gives something else:

# %%
index = torch.tensor([2, 3, 0])  # (T,): 6 for jane, 6 for visits, 2 for africa
x[..., index]  # (3, 3): for every token, columns 2, 3 and 0

# %%
figures.picked_entries(x, index, tokens)

# %% [markdown]
# The numbers that we want are there, on the diagonal (6, 6, 2), among six that we do not want. For a text of 10,000 tokens we would make a hundred million numbers and keep ten thousand.
#
# `gather` does it right. `torch.gather(x, -1, where)` goes through the rows of `x` and `where` together: from each row of `x` it takes the entries that the *same* row of `where` names. Here each row asks for two entries, its first and its largest:

# %%
where = torch.tensor([[0, 2], [0, 3], [0, 0]])  # (3, 2): two columns for each row
torch.gather(x, -1, where)  # (3, 2)

# %% [markdown]
# ### Exercise 0.6 `gather_per_row`
#
# Difficulty 3 of 5 · Importance 4 of 5 · 12 minutes
#
# One entry from each row, chosen by that row's own index:
# $$\text{out}_{t} = x_{t,\,\text{index}_t} \quad\text{for every row } t$$
# Shapes: `x (..., V)`, `index` LongTensor `(...)` with entries 0 to V−1 → `(...)`. Here `...` may be empty: then `x` is one row, `index` one number, and so is the answer. The gradient reaches `x`.
#
# *Later:* this is the heart of `cross_entropy` (lesson 6).


# %% nbgrader={"solution": "gather_per_row"}
def gather_per_row(x, index):
    """out[...] = x[..., index[...]]: one entry from each row.

    x (..., V), float32 or float64, index LongTensor (...), entries 0 to V-1 -> (...), dtype of x.
    """
    ### BEGIN SOLUTION
    return x.gather(-1, index.unsqueeze(-1)).squeeze(-1)  # (..., 1) -> (...)
    ### END SOLUTION


# %% nbgrader={"grade": "gather_per_row"}
check(gather_per_row)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# `where` above has as many axes as `x`. How many does `index` have?
# </details>
# <details><summary>Hint 2</summary>
#
# Give `index` a last axis of size 1 before you gather, and take it away after. (Another way without `gather`: a mask that is True at one entry in each row, and a sum.)
# </details>

# %% [markdown]
# ## Slopes: what is a Jacobian?
#
# Training changes numbers a little and asks what happens to the result. For a function of one number the answer is its derivative. What is it for a function of two numbers with two results? Take
# $$f(x_1, x_2) = \bigl(x_1 x_2,\; x_1^2 + x_2\bigr) \quad\text{at}\quad x = (2, 3), \quad\text{where}\quad f(x) = (6, 7).$$
# Move $x_1$ alone: the first result changes with slope $x_2 = 3$, the second with slope $2x_1 = 4$. Move $x_2$ alone: slopes $x_1 = 2$ and $1$. Four slopes; put them into a table, **one row for each result, one column for each input**:
# $$J = \begin{pmatrix} \partial f_1/\partial x_1 & \partial f_1/\partial x_2 \\ \partial f_2/\partial x_1 & \partial f_2/\partial x_2 \end{pmatrix} = \begin{pmatrix} x_2 & x_1 \\ 2x_1 & 1 \end{pmatrix} = \begin{pmatrix} 3 & 2 \\ 4 & 1 \end{pmatrix}.$$
# That table is the **Jacobian**. From $n$ inputs to $m$ results it has shape $(m, n)$. PyTorch finds the same four numbers, without being told any rule of ours:


# %%
def f(x):
    return torch.stack([x[0] * x[1], x[0] ** 2 + x[1]])  # (2,)


point = torch.tensor([2.0, 3.0])  # (2,)
J = torch.autograd.functional.jacobian(f, point)  # (2, 2)
J

# %% [markdown]
# What does it promise? For a small step $s$ it promises $f(x + s) \approx f(x) + J s$. Take $s = (0.1, 0)$: then the promised change is $Js = (0.3, 0.4)$.

# %%
step = torch.tensor([0.1, 0.0])  # (2,)
print("promised", J @ step)  # @ is the matrix product: here the matrix J times the vector
print("found   ", f(point + step) - f(point))

# %% [markdown]
# Found: $(0.3, 0.41)$. The extra 0.01 is $0.1^2$, from the square in the second result. Here intuition stops: "a small step" is a way of speaking. The exact statement is that the error, divided by the length of the step, goes to 0 as the step does. The figure uses a step of 0.5, so that one can see the error at all.

# %%
figures.jacobian_picture()

# %% [markdown]
# ## From a Jacobian to a gradient
#
# A loss is *one* number. Suppose ours is $L = 1\cdot f_1 + 2\cdot f_2$. How does it change with $x_1$? Through both results: $1\cdot 3 + 2\cdot 4 = 11$. With $x_2$: $1\cdot 2 + 2\cdot 1 = 4$. So
# $$\frac{\partial L}{\partial x} = (1, 2)\begin{pmatrix} 3 & 2 \\ 4 & 1 \end{pmatrix} = (11, 4).$$
# That is the **gradient**: the slopes of one number with respect to every input. It has the **shape of the input**, however large that is. And it came from a row vector times a Jacobian. The row vector $(1, 2)$ is the gradient of $L$ at the *results*; the product is the gradient at the *inputs*. This step, layer after layer from the loss back to the weights, is all that backpropagation is.

# %%
x0 = torch.tensor([2.0, 3.0], requires_grad=True)  # (2,)
loss = (torch.tensor([1.0, 2.0]) * f(x0)).sum()  # one number
loss.backward()
print(x0.grad, torch.tensor([1.0, 2.0]) @ J)  # both (2,), and equal

# %%
figures.row_times_jacobian()

# %% [markdown]
# ### Exercise 0.7 `gradient_by_hand`
#
# Difficulty 2 of 5 · Importance 4 of 5 · 12 minutes
#
# Be `backward()` once yourself. For the same $f(x_1, x_2) = (x_1 x_2,\; x_1^2 + x_2)$ and a loss $L = g_1 f_1 + g_2 f_2$ with any weights $g$, write down the gradient at $x$:
#
# $$\text{out}_j = g_1\,\frac{\partial f_1}{\partial x_j} + g_2\,\frac{\partial f_2}{\partial x_j}$$
#
# Shapes: `x (..., 2)`, `g (..., 2)` → `(..., 2)`. For x = (2, 3) and g = (1, 2) it is (11, 4). Forbidden: autograd in every form.
#
# *Later:* you write the backward pass of softmax (lesson 6) and of attention itself (lesson 7) in just this way.


# %% nbgrader={"solution": "gradient_by_hand"}
def gradient_by_hand(x, g):
    """The gradient at x of g1 f1 + g2 f2, for f(x1, x2) = (x1 x2, x1² + x2).

    x (..., 2), g (..., 2), float32 or float64 -> (..., 2), same dtype. It need not be
    differentiable itself.
    """
    ### BEGIN SOLUTION
    x1, x2 = x[..., 0], x[..., 1]  # (...), (...)
    g1, g2 = g[..., 0], g[..., 1]  # (...), (...)
    return torch.stack([g1 * x2 + g2 * 2 * x1, g1 * x1 + g2], dim=-1)  # (..., 2)
    ### END SOLUTION


# %% nbgrader={"grade": "gradient_by_hand"}
check(gradient_by_hand)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# Put general $x$ and $g$ into the row-times-table product above. The first entry collects what $x_1$ does, through both results.
# </details>
# <details><summary>Hint 2</summary>
#
# Each entry is a sum of two products: a weight times a slope of the first column, or of the second. Put the two entries side by side in a new last axis; `torch.stack` has an argument for its place.
# </details>

# %% [markdown]
# ## What to remember about gradients
#
# - `requires_grad=True` says *remember what is computed from this*. `backward()` walks back and leaves the slopes in `.grad`. A result that gradients flow through in this way is called *differentiable*.
# - `backward()` starts from one number. From two results it needs weights for them: `f(x0).backward(torch.tensor([1.0, 2.0]))` does what we did.
# - `backward()` never forms $J$: it computes the product directly. For a layer with a million inputs and results $J$ would have $10^{12}$ entries.
# - The `backward()` of a second loss **adds** to `.grad`. That is why training loops clear it before each step.
#
# When a check says *gradient flows*, it has compared your gradients with the right ones, for a random row vector in place of $(1, 2)$. What breaks the flow: `.item()`, `.detach()`, `.numpy()`, `.tolist()`, or building a new tensor from numbers.

# %% [markdown]
# ### Quiz 0.1
#
# Scores have shape `(2, 4, 3, 5)`: batch, heads, queries, keys. A mask has shape `(2, 1, 1, 5)`. What is the shape of their sum?
#
# - **a** none, it raises an error
# - **b** `(2, 1, 1, 5)`
# - **c** `(2, 4, 3, 5)`
# - **d** an eight-dimensional tensor

# %% nbgrader={"solution": "quiz_1"}
quiz_1 = None  # "a", "b", "c" or "d"
### BEGIN SOLUTION
quiz_1 = "c"
### END SOLUTION

# %% nbgrader={"grade": "quiz_1"}
check(quiz_1=quiz_1)

# %% [markdown]
# ### Quiz 0.2
#
# A function takes 5 numbers and gives 3. What is the shape of its Jacobian?
#
# - **a** `(5, 3)`
# - **b** `(3, 5)`
# - **c** `(5,)`
# - **d** it has none, as it does not give a single number

# %% nbgrader={"solution": "quiz_2"}
quiz_2 = None  # "a", "b", "c" or "d"
### BEGIN SOLUTION
quiz_2 = "b"
### END SOLUTION

# %% nbgrader={"grade": "quiz_2"}
check(quiz_2=quiz_2)

# %% [markdown]
# ## The notation card
#
# Books, papers and libraries write the same things differently, and sometimes different things alike. You need none of this today. Come back to the card whenever a formula elsewhere does not fit.
#
# <details><summary>Open the card</summary>
#
# | here | meaning | elsewhere |
# |---|---|---|
# | `B` | sentences in a batch | `N` (PyTorch's documentation), `b` |
# | `T` (`T_q`, `T_k`) | tokens (queries, keys) | `N`, `n`; `L` and `S` for target and source (PyTorch's documentation); `seq_len` |
# | `D` | width of a token's vector | $d_{\text{model}}$ (Vaswani et al.), `C` for channels (Karpathy), `M`, `E`, `n_embd`, `hidden_size` |
# | `d_k`, `d_v` | width of one head's queries and keys, of its values | `head_size` (Karpathy), `d_q` (= `d_k` always), `head_dim` |
# | `H` | number of heads | `h`, `n_head`, `nhead` |
# | `V` as a size | words in the vocabulary | `vocab_size`; $\lvert V\rvert$ |
# | `Q`, `K`, `V` as matrices | queries, keys, values, one in each row | in texts with column vectors: one in each column |
# | scores | $QK^\top$, with or without $/\sqrt{d_k}$ | $\omega$, `wei`, "similarities", "energies", "logits" |
# | weights | what softmax makes of the scores; each row sums to 1 | $\alpha$, $A$, "attention matrix", "attention scores", "probabilities" |
#
# Note the two meanings of `V`, and of a raised T: $K^\top$ is a transpose, and has nothing to do with the number of tokens.
#
# **One map, three spellings.** A projection from width `in` to width `out`:
#
# | written | shape of W | where you meet it |
# |---|---|---|
# | $XW^\top$, `x @ W.T` | `(out, in)` | here, `nn.Linear`, "y = xWᵀ + b" |
# | $XW$ | `(in, out)` | Vaswani et al., most papers |
# | $Wx$, `W @ x` | `(out, in)` | texts in which a vector is a column |
#
# **One mask, four spellings.** Which keys may a query see?
#
# | form | may be seen | is blocked | where you meet it |
# |---|---|---|---|
# | boolean, here | `True` | `False` | `F.scaled_dot_product_attention` |
# | boolean, opposite | `False` | `True` | `nn.MultiheadAttention`, `key_padding_mask` |
# | added to the scores, M | 0 | −∞ | formulas such as softmax(QKᵀ/√d_k + M) |
# | zeros and ones | 1 | 0 | `masked_fill(tril == 0, float("-inf"))` |
#
# A *gradient* in this course has the shape of the input, and a *Jacobian* has a row for each result; some books print the transpose of either.
#
# </details>

# %% [markdown]
# ## At work
#
# This is the translator whose parts you will replace, one lesson after the other. Today all of it is the course's own.
# It shows its translation; then how well it does on sentences that it has never seen, in *nats a word*: the average of
# $-\ln p$, where $p$ is the probability that it gave to the right word (a loss of 0 would be perfect); and, as a map,
# which words look at which. Later lessons explain all three. Type a sentence of your own if you like.

# %%
at_work()

# %% [markdown]
# ## How to hand in
#
# 1. **Work** through a lesson in `notebooks/`, in JupyterLab or in Colab. Write in answer cells. You may add cells of your own anywhere.
# 2. **Check** as often as you like. A check cell is locked and holds no secrets, only the call. Deleting or editing it changes nothing: the grader uses its own.
# 3. Before you hand in: **Kernel → Restart Kernel and Run All Cells**. A notebook that works only in the order in which you happened to run it is the most common surprise. Checks that fail do not stop the run.
# 4. **Save** (Ctrl+S, or ⌘S), and hand in the one file `NN_topic.ipynb` under its own name. If your class uses nbgrader's *Assignments* list, press *Submit* there; otherwise upload the file where your teacher says. In Colab: *File → Download → Download .ipynb*.
#
# **Points.** Each of the fourteen lessons has 100: about 80 for the exercises, 15 for a written question that a person reads, 5 for the quiz, where any honest attempt earns them. `progress()` counts 85, as nobody has read your written answer yet. Extras, marked **Extra**, come on top. Points are partial: right values with a lost dtype keep most of them. The grader runs your functions on *new* inputs, so an answer made for the numbers that you see will not do. An error is charged once: if one answer fails only because an earlier one is wrong, it is tried again with a finished one in its place, and the check says so.
#
# **Stuck?** Go on. Where a later part of the lesson needs an answer that you do not have, the course's own part stands
# in and says so. A cell that shows your own answer prints one line instead, until you have one. The next lesson brings
# finished versions of what it needs.
#
# `progress()` shows how far you are, over all lessons:

# %%
progress()

# %% [markdown]
# ## From the notes this course grew from
#
# <details><summary>Words that the sources use loosely</summary>
#
# - Much code calls the tensor `score` before *and* after the softmax. Here *scores* come before it and *weights* after.
# - In notes on the Transformer's parts (after [AI Summer](https://theaisummer.com/transformer/)), $X$ has the width $d_k$ and its projections the shape $d_k \times d_{\text{model}}$, with the two names swapped. Lesson 3 sorts that out.
# - Karpathy's lecture, from which much notation on the card is taken, writes `wei` for the scores and, a line later, for the weights.
#
# </details>

# %% [markdown]
# ## Recap
#
# - A shape is read from the end; `...` stands for the rest.
# - Broadcasting sets shapes flush right and stretches ones. Square tables hide mistakes.
# - `transpose` turns, `view` cuts; both share memory, and writing in place shows through.
# - Comparisons give `bool`; `gather` picks one entry from each row.
# - A Jacobian has a row for each result and a column for each input. A gradient is a row vector times a Jacobian; it has the shape of the input.

# %% [markdown]
# ## Further reading
#
# - Sasha Rush, [Tensor Puzzles](https://github.com/srush/Tensor-Puzzles): twenty-one more of these, each in one line.
# - PyTorch's notes on [broadcasting](https://pytorch.org/docs/stable/notes/broadcasting.html) and on [tensor views](https://pytorch.org/docs/stable/tensor_view.html).
# - Terence Parr and Jeremy Howard, [The Matrix Calculus You Need For Deep Learning](https://arxiv.org/abs/1802.01528) (2018): gradients and Jacobians from school calculus up.
# - Baydin, Pearlmutter, Radul and Siskind, [Automatic Differentiation in Machine Learning: a Survey](https://arxiv.org/abs/1502.05767) (2018).
# - Andrej Karpathy, [Let's build GPT: from scratch, in code, spelled out](https://www.youtube.com/watch?v=kCc8FmEb1nY): the source of much notation on the card (`B, T, C`, `head_size`).
# - Vaswani et al., [Attention Is All You Need](https://arxiv.org/abs/1706.03762) (2017), and [The Annotated Transformer](https://nlp.seas.harvard.edu/annotated-transformer/): where all of this leads.
#
# **Next:** [lesson 1](../01_token_embedding/01_token_embedding.ipynb), where words become vectors.
