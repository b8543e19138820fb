# %% [markdown]
# # 0. Start here
#
# **In this lesson** you'll see the problem that attention was invented for, learn to read a line of tensor code and predict the shape of its result, and find out what a gradient and a Jacobian are. You'll also get to know the check, which tests your answers in all lessons.
#
# **Core:** about 45 minutes, without a grade.
#
# The first cell of each notebook makes the course's helpers importable, so run it first in every lesson (Shift+Enter runs a cell and moves on).

# %% tags=["setup"]
# (empty: the build puts the set-up cell here)

# %%
import torch

from helpers import at_work, check, progress
from helpers.drawing.transformer_map import transformer_map
from helpers.lessons.start_here import explore, figures

# %% [markdown]
# ## Why attention?
#
# Suppose you want to translate *jane visits africa in september* into French. In 2014, the neural network of choice for this was a **recurrent network**, which reads one word at a time and keeps a **hidden state**, a vector that it updates with each word. After the last word, that one vector has to represent the whole sentence. A second recurrent network, the decoder, then writes the French from it, word by word (Cho et al., 2014; Sutskever et al., 2014).
#
# This vector has the same width for three words and for thirty, so more words have to share the same space. This limit is called the **bottleneck** of the encoder-decoder network.
#
# **Attention**, by Bahdanau, Cho and Bengio (2015), removes the bottleneck. The encoder keeps the vectors of *all* its words. For each French word that it writes, the decoder computes one weight per English word and takes the weighted mean of their vectors. As a result, the decoder can concentrate on *september* when it is about to write *septembre*, and on *jane* at the beginning.
#
# To see how much this helps, we trained two small recurrent translators on the sentences of this course. They have the same layers and the same training, but at each step the decoder of the first reads the single vector, and the decoder of the second reads the weighted mean.
#
# **Before you run the cell, make a guess:** which of the two suffers more as sentences get longer, and how much?

# %%
figures.why_attention()

# %% [markdown]
# With one vector, accuracy falls to 75% at eight words and to 8% at twelve, whereas with attention the mean never falls below 97%. (The thin lines show three training runs of each translator.) So a single vector is enough for short sentences, and attention helps with the longer ones, because the decoder can go back to every word.
#
# In 2017, Vaswani et al. asked whether attention needs the recurrent network at all. Their answer, the **Transformer**, consists mostly of attention and small feed-forward networks, and almost every language model of today is one. Without recurrence, all words of a sentence can be processed in parallel, which made training on very large texts practical.

# %%
transformer_map("00_start_here")

# %% [markdown]
# This is a Transformer, and the same map opens every lesson. Today no component is lit, because we start with the tools. In each of lessons 1 to 10 one or more components light up, you write them, and they run right away in a small translator from English to French that comes with the course. (The French side starts with a special token, `<bos>` for *beginning of sentence*, and ends with another one, `<eos>`.)
#
# The core of all fifteen lessons takes about 20 hours. Optional parts follow each lesson's recap, under *Going further*. There is a shorter path if you want attention only:
#
# | path | lessons | core hours |
# |---|---|---|
# | core | 0 to 14 | 20 |
# | attention only | 0, 1, and 3 to 8 | 8 |
#
# On the shorter path you leave out the written questions and two parts that its lessons don't need: in lesson 1 the sections *Similar words get similar vectors* through *Words that are not in the vocabulary*, and in lesson 3 everything from exercise 3.4 through exercise 3.5. Also leave out the quizzes of lesson 1 and every question about lesson 2.

# %% [markdown]
# ## You need
#
# You need Python with functions, loops, lists and dictionaries, the product of two matrices, and the derivative of $x^2$. You don't need to know PyTorch or anything about Transformers. Here are two questions to warm up; answer each one before you open it.
#
# <details><summary>If you multiply a matrix of shape (2, 3) by one of shape (3, 4), which shape does the product have, and how many multiplications does each entry take?</summary>
#
# The product has shape `(2, 4)`, and each entry takes three multiplications, because it's a row of three numbers times a column of three.
# </details>
#
# <details><summary>What is the derivative of x² + 5x at x = 2, and what does it tell you about x = 2.01?</summary>
#
# It is $2x + 5 = 9$, so if x grows by $0.01$, the value grows by about $9 \cdot 0.01 = 0.09$.
# </details>

# %% [markdown]
# ## How the check talks
#
# You write functions, and `check` runs them on inputs of its own and tells you which properties hold. First, let's show it a function that is wrong on purpose. The task is called `twice`, and it says *return two times x*.


# %%
def squared(x):
    return x * x


# %% tags=["raises-exception"]
check(twice=squared)

# %% [markdown]
# Squaring is a mistake that the check knows, so it names the mistake and asks you a question. It does so only if your answer behaves like that mistake on every input. Otherwise it describes what it saw, for example a wrong shape or an input that you changed.
#
# The cell ends with an error on purpose, because a wrong answer should never look like a finished one. (*Run All Cells* continues after such an error.) Now let's try a right answer, in an unusual form:


# %%
def added_to_itself(x):
    return x + x


# %%
check(twice=added_to_itself)

# %% [markdown]
# Each item in the line is a property that was tested. Unless an exercise forbids a call, we don't check *how* you computed something, only what comes out.
#
# Now it's your turn. Each answer cell has a specification and the line `raise NotImplementedError`, which you replace with your own code. Then run the cell and the check cell below it. (Here `(...)` means a tensor of any shape, and *dtype* is the type of its numbers; see below. *Conventions*, under *Going further*, lists what holds for all specifications.)


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
# <details><summary>Hint 1</summary>
#
# How would you double the number 5 in Python? PyTorch computes the same for all entries of `x` at once.
# </details>
# <details><summary>Hint 2</summary>
#
# A function returns what comes after `return`, and the line must be indented like the one that it replaces.
# </details>

# %% [markdown]
# ## A sentence is a table
#
# A model reads *jane visits africa* as three rows of numbers, one row for each token, which here is a word. Such a table, with any number of axes, is a **tensor**:

# %%
tokens = ["jane", "visits", "africa"]
x = torch.tensor([[1.0, 2.0, 6.0, 3.0], [0.0, 3.0, 3.0, 6.0], [2.0, 2.0, 2.0, -2.0]])  # (T, D) = (3, 4)
x.shape, x.ndim, x.dtype

# %% [markdown]
# How do you read a shape? `(3, 4)` means *three tokens, each of width four*, and we write it as `(T, D)`. Two sentences of the same length make `(B, T, D)`, and with several attention heads (lesson 8) there will be `(B, H, T, D)`. We count axes **from the end**, because then `-1` is the width and `-2` the tokens, however many axes come before. In an index, the symbol `...` means *all the axes that I don't mention*:
#
# | expression | for `(T, D)` | for `(B, T, D)` |
# |---|---|---|
# | `x[0]` | the first token | the whole first sentence |
# | `x[..., 0]` | column 0 of every token | column 0 of every token |
# | `x[..., 0, :]` | the first token | the first token of every sentence |
#
# Only the last two rows mean the same in both columns. Code with `...` and negative axes therefore works for one sentence as well as for a batch.

# %%
batch = torch.stack([x, 10 * x])  # (B, T, D) = (2, 3, 4)
print(x[..., 0, :].shape, batch[..., 0, :].shape)
batch[..., 0, :]  # (B, D): jane, twice

# %% [markdown]
# ## Broadcasting: unequal shapes, one sum
#
# What do we get if we add a column of three numbers to a row of four?

# %%
column = torch.tensor([[10.0], [20.0], [30.0]])  # (3, 1)
row = torch.tensor([[1.0, 2.0, 3.0, 4.0]])  # (1, 4)
column + row  # (3, 4)

# %%
figures.outer_sum_picture()

# %% [markdown]
# PyTorch's rule, called **broadcasting**, has three steps:
# 1. Write the two shapes **flush right**, and put ones in front of the shorter one.
# 2. On each axis the two sizes must be equal, or one of them must be 1.
# 3. A size of 1 is stretched, that is, its entries are repeated (without being copied).
#
# We can make a new axis of size 1 with `unsqueeze`. If `a` has shape `(3,)`, then `a.unsqueeze(-1)` has shape `(3, 1)`, a column, and `a.unsqueeze(-2)` has shape `(1, 3)`, a row. `a[..., None]` is another way to write the first.
#
# *Which of these two pairs of shapes works, `(2, 5, 3, 4)` with `(2, 1, 1, 4)`, or `(2, 3, 4)` with `(2, 4)`? Decide first, and then check it below.*

# %%
explore.broadcasting()

# %% [markdown]
# <details><summary>Answer</summary>
#
# The first pair works, because all sizes agree or are 1. The second pair fails, because flush right, `4` is paired with `4`, but then `3` is paired with `2`. With `(2, 1, 4)` it would work.
# </details>

# %% [markdown]
# ### Exercise 0.1 `outer_sum`
#
# Difficulty 1 of 5 · Importance 5 of 5 · 6 minutes
#
# Add every entry of `a` to every entry of `b`, and return all these sums as a table:
# $$\text{out}_{ij} = a_i + b_j$$
#
# - **Arguments:** `a (..., N)`, `b (..., M)`, with the same leading dimensions.
# - **Returns:** `(..., N, M)`.
#
# In lesson 3 we'll pair every query with every key in just this way.


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
# Which axis must have size 1 in each of the two shapes, if you write them flush right under `(..., N, M)`?
# </details>
# <details><summary>Hint 2</summary>
#
# With `unsqueeze`, `a` should become a column in its last two axes, and `b` a row.
# </details>

# %% [markdown]
# ## Along the last axis
#
# Most of a Transformer works **along the last axis**. An operation such as `mean(dim=-1)` removes that axis, so `(3, 4)` becomes `(3,)`. With `keepdim=True` the axis stays, with size 1, and the result is `(3, 1)`.
#
# **Predict before you run the cell:** here are the first three columns of our table. The mean of the last row, `2 2 2`, is 2, so what will that row be after the line below?

# %%
square = x[:, :3]  # (3, 3): rows 1 2 6 | 0 3 3 | 2 2 2
square - square.mean(dim=-1)  # (3, 3) - (3,)

# %% [markdown]
# <details><summary>What happened</summary>
#
# The row means `3, 2, 2` have the shape `(3,)`. Set flush right, this axis is paired with the *columns*, so all three means were subtracted from every row, and the last row became `-1 0 0` instead of zeros. PyTorch raised no error, because the table is square. With four columns you would have been luckier, because PyTorch would have raised an error.
# </details>
#
# Attention's score tables are square whenever a sentence attends to itself, so try your code on sizes that are all different, as most checks do.

# %% [markdown]
# ### Exercise 0.2 `center_rows`
#
# Difficulty 1 of 5 · Importance 4 of 5 · 5 minutes
#
# Subtract from every row of a table the mean of that row:
# $$\text{out}_{j} = x_{j} - \frac{1}{D}\sum_{k=1}^{D} x_{k}$$
#
# - **Arguments:** `x (..., D)`.
# - **Returns:** `(..., D)`. For our table the rows become `-2 -1 3 0`, `-3 0 0 3` and `1 1 1 -3`.
#
# It is the first half of layer norm (lesson 9).


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
# The means should form a column next to the rows. What shape does that column have for an input of `(T, D)`?
# </details>
# <details><summary>Hint 2</summary>
#
# `mean` has an argument that keeps the axis it averages over, and the text above names it.
# </details>

# %% [markdown]
# ## Transpose swaps axes, `view` reinterprets memory
#
# The entries of a tensor lie in memory as one line, row after row, and a shape is only a rule for cutting that line.
# - `x.view(4, 3)` (and `x.reshape(4, 3)`) keeps the line and **cuts** it at other points.
# - `x.transpose(0, 1)` **swaps** the two axes, so rows become columns.
#
# For our `x` of shape `(3, 4)` both give the shape `(4, 3)`. The figure shows a smaller table with a color for each token.

# %%
figures.transpose_against_view()

# %% [markdown]
# After `transpose` each column is still one token, whereas after `view` the columns mix the tokens. PyTorch raises no error, because the shapes agree. They give the same table only if one of the two sizes is 1, as you can see with the sliders.

# %%
explore.memory_order()

# %% [markdown]
# ### Exercise 0.3 `swap_last_two`
#
# **Find the bug** · Difficulty 2 of 5 · Importance 5 of 5 · 7 minutes
#
# In 2021 the code of an attention model, Informer, brought its queries from `(B, L, H, D)` to `(B, H, L, D)` with `queries.view(B, H, L_Q, -1)`. A reader [asked](https://github.com/zhouhaoyi/Informer2020/issues/59) whether that mixes up the heads, and the authors confirmed it. Here is the same bug on the last two axes:
# ```python
# def swap_last_two(x):
#     *lead, T, D = x.shape
#     return x.view(*lead, D, T)
# ```
#
# Write the function without the bug, so that
# $$\text{out}_{\ldots ji} = x_{\ldots ij}$$
#
# - **Arguments:** `x (..., T, D)`.
# - **Returns:** `(..., D, T)`.
#


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
# First decide whether you want to cut or to swap, and which axes you need, counted from the end. (`x.T` reverses *all* axes, so the batch would end up last.)
# </details>
# <details><summary>Hint 2</summary>
#
# The call in the text above counts the axes from the front. What are the two called if you count from the end?
# </details>
#
# Here are three more tokens, `(10, 11)`, `(20, 21)` and `(30, 31)`, reshaped as in Informer and transposed by your function. *Which of the columns are tokens now?*

# %%
figures.compare_columns(swap_last_two)

# %% [markdown]
# ## In place: two names, one tensor
#
# The line `y = x` copies nothing, because it only gives the same tensor a second name. Neither `view` nor `transpose` copies anything, because their results share the memory of `x`. So the assignment in the next cell changes a tensor that it doesn't mention:

# %%
original = torch.zeros(2, 3)  # (2, 3)
swapped = original.transpose(0, 1)  # (3, 2), the same memory
swapped[0, 1] = 7.0
original

# %% [markdown]
# Writing into existing memory, for example by `y[...] = 7`, `y += 1` or `y.add_(1)`, is called **in place**. In contrast, `y + 1` makes a new tensor, and `y.clone()` makes a copy that you may write into. Never write into an input, because then the caller's tensor changes, and the computation of gradients (below) may need the old values. That is why the checks of functions on tensors test for *inputs unchanged*.

# %% [markdown]
# ## dtype: the type of the entries
#
# All entries of a tensor have the same type, its **dtype**. We need four of them: `float32` (about 7 digits, the usual choice for models), `float64` (about 16 digits, for checking formulas), `int64` (ids; such a tensor is called a *LongTensor*) and `bool` (masks).
#
# A comparison gives a `bool` tensor. You can sum a bool tensor, where True counts as 1, but you can't average it, because `mean` accepts only floats. If a specification says *keeps the dtype*, float64 inputs must give float64 outputs. Note that `t.float()` always gives float32, whereas `t.to(other.dtype)` gives the dtype of `other`.

# %%
third = torch.tensor(1.0, dtype=torch.float64) / 3
print((x > 2.5).sum(dim=-1))  # one count for each token
print(third.item(), third.float().item(), sep="\n")  # the second is right in its first seven digits only

# %% [markdown]
# ## What is a Jacobian?
#
# In training we change the weights a little, so we need to know how the result changes. For a function of one variable the answer is its derivative, but what is it for two variables and two outputs? As an example, let's take the function
# $$f(x_1, x_2) = \bigl(x_1 x_2,\; x_1^2 + x_2\bigr) \quad\text{at}\quad x = (2, 3).$$
# If you move $x_1$ alone, the first output changes at the rate $x_2 = 3$ and the second at the rate $2x_1 = 4$. If you move $x_2$ alone, the rates are $x_1 = 2$ and $1$. We put these four derivatives into a table with **one row for each output and one column for each input**:
# $$J = \begin{pmatrix} \partial f_1/\partial x_1 & \partial f_1/\partial x_2 \\ \partial f_2/\partial x_1 & \partial f_2/\partial x_2 \end{pmatrix} = \begin{pmatrix} x_2 & x_1 \\ 2x_1 & 1 \end{pmatrix} = \begin{pmatrix} 3 & 2 \\ 4 & 1 \end{pmatrix}.$$
# We call this table the **Jacobian**, and for $n$ inputs and $m$ outputs it has shape $(m, n)$. PyTorch finds the same four values from the code alone:


# %%
def f(x):
    return torch.stack([x[0] * x[1], x[0] ** 2 + x[1]])  # (2,)


point = torch.tensor([2.0, 3.0])  # (2,)
J = torch.autograd.functional.jacobian(f, point)  # (2, 2)
J

# %% [markdown]
# If we take a small step $s$, the Jacobian predicts that $f(x + s) \approx f(x) + J s$. For example, with $s = (0.1, 0)$ the predicted change is $Js = (0.3, 0.4)$, and the actual change is $(0.3, 0.41)$. (A figure under *Going further* shows a larger step.)

# %% [markdown]
# ## From a Jacobian to a gradient
#
# A loss is a *single* number that training makes smaller, by moving the weights against its gradient (**gradient descent**). Let's suppose that ours is $L = 1\cdot f_1 + 2\cdot f_2$. If we move $x_1$, the change acts through both outputs, so the derivative is $1\cdot 3 + 2\cdot 4 = 11$. For $x_2$ it is $1\cdot 2 + 2\cdot 1 = 4$. We can write both in matrix form:
# $$\frac{\partial L}{\partial x} = (1, 2)\begin{pmatrix} 3 & 2 \\ 4 & 1 \end{pmatrix} = (11, 4).$$
# That is the **gradient**, which consists of the derivatives of one number with respect to every input and has the **shape of the input**. The row vector $(1, 2)$ is the gradient of $L$ with respect to the *outputs*, and its product with the Jacobian is the gradient with respect to the *inputs*. **Backpropagation** is nothing more than this step, repeated layer by layer from the loss back to the weights.

# %%
x0 = torch.tensor([2.0, 3.0], requires_grad=True)  # (2,)
loss = (torch.tensor([1.0, 2.0]) * f(x0)).sum()  # one number
loss.backward()
print(x0.grad, torch.tensor([1.0, 2.0]) @ J)  # both (2,), and equal; @ is the matrix product

# %%
figures.row_times_jacobian()

# %% [markdown]
# Because of `requires_grad=True`, PyTorch remembers what is computed from `x0`. Then `backward()` runs the computation in reverse and stores the gradients in `.grad`. A result that gradients can flow through in this way is called **differentiable**. The `backward()` of a second loss **adds** to `.grad`, which is why training loops clear it before each step.
#
# When a check says *gradient flows*, it has compared your gradients with the right ones, for a random row vector in place of $(1, 2)$. The flow is broken by `.item()`, `.detach()`, `.numpy()`, `.tolist()`, and by building a new tensor from numbers.

# %% [markdown]
# ### Quiz 0.1
#
# If scores of shape `(2, 4, 3, 5)` (batch, heads, queries, keys) are added to a mask of shape `(2, 1, 1, 5)`, what is the shape of the sum?
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
# If a function takes five numbers and returns three, what is the shape of its Jacobian?
#
# - **a** `(5, 3)`
# - **b** `(3, 5)`
# - **c** `(5,)`
# - **d** it has none, because it doesn't return a single number

# %% nbgrader={"solution": "quiz_2"}
quiz_2 = None  # "a", "b", "c" or "d"
### BEGIN SOLUTION
quiz_2 = "b"
### END SOLUTION

# %% nbgrader={"grade": "quiz_2"}
check(quiz_2=quiz_2)

# %% [markdown]
# ## At work
#
# This is the translator whose components you'll replace, lesson by lesson. The panel shows its translation, its loss on unseen sentences in *nats per word* (the average of $-\ln p$, where $p$ is the probability of the right word), and, as a map, which words attend to which. Type a sentence of your own if you like.

# %%
at_work()

# %% [markdown]
# ## Points, and what to do if you are stuck
#
# Each of lessons 1 to 14 gives 100 points, 80 for the core exercises, 15 for a written answer that a person grades, and 5 for an honest attempt at the quiz. Exercises marked **Extra** give bonus points. (If you learn in a class, *How to hand in* is under *Going further*.)
#
# If you are stuck on one exercise, continue with the next. Where a later part of the lesson needs an answer that you don't have, we use the course's own version, called the **finished block**, and print a line that says so. We do the same if an answer fails only because an earlier one is wrong.
#
# To see how far you are in each lesson, call `progress()`. It counts the 85 points that the checks give.

# %%
progress()

# %% [markdown]
# ## Recap
#
# - A single vector for a whole sentence is a bottleneck, whereas with attention, the decoder takes a new weighted mean of all word vectors at each step.
# - We count axes from the end, because broadcasting aligns shapes on the right and stretches axes of size 1. Square tables hide mistakes.
# - `transpose` swaps axes; `view` reinterprets the memory. Neither copies, so writing in place changes the input as well.
# - A Jacobian has a row for each output and a column for each input. A gradient is a row vector times a Jacobian, and it has the shape of the input.
#
# **Next:** in [lesson 1](../01_token_embedding/01_token_embedding.ipynb), we turn words into vectors.

# %% [markdown]
# ## Going further
#
# Here are the conventions of all lessons and four extras of about 40 minutes, which are about in-place changes, dtypes, `gather` and gradients. If tensors are new to you, do the extras before lesson 1, because we'll use all four topics later.

# %% [markdown]
# ### Conventions
#
# These hold in every lesson, so come back to this list when a specification leaves something open.
#
# - **Shapes:** `B` batch, `H` heads, `T` tokens (`T_q` queries, `T_k` keys), `D` model width, `d_k` and `d_v` head widths, `V` vocabulary, and `...` for any leading dimensions, including none.
# - **Counting:** we count positions, heads and layers from 0.
# - **Weights** follow `nn.Linear`: `W` is `(out, in)`, and a projection is `x @ W.T`.
# - **Masks** are boolean, and True means *may attend*.
# - **Unless an exercise says otherwise,** your answer accepts any leading dimensions (inputs with `...` share the same ones), accepts float32 and float64, keeps the dtype, leaves its inputs unchanged, is differentiable, and returns no NaN (in gradients too where the exercise says so).
# - **Equal** means within `1e-5` (relative plus absolute) in float32 and `1e-7` in float64. You may round a constant to float32 inside a float64 answer.
# - **Types:** `scalar` is a 0-dim differentiable tensor, `float` and `int` are Python numbers.
# - **Forbidden** lists library calls that would be the whole answer. If you use one, the exercise gets no points and a message names the call.

# %% [markdown]
# ### Exercise 0.4 `zero_first_token`
#
# **Extra** · Difficulty 2 of 5 · Importance 4 of 5 · 8 minutes
#
# Return the same table with the first token's row set to zero, and leave **x unchanged**:
# $$\text{out}_{tj} = \begin{cases} 0 & t = 0 \\ x_{tj} & t > 0 \end{cases}$$
#
# - **Arguments:** `x (..., T, D)`.
# - **Returns:** `(..., T, D)`.
#
# Masking overwrites entries all the time (lesson 5), but it must never do so in the caller's tensor.


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
# Ask yourself which tensor you are writing into, and which index selects the first token, no matter how many leading dimensions there are. The table of indices in *A sentence is a table* answers the second question.
# </details>
# <details><summary>Hint 2</summary>
#
# Either write into a copy, or write nothing at all. For example, put a row of zeros in front of the other tokens, or multiply the table by a column of zeros and ones.
# </details>

# %% [markdown]
# ### Exercise 0.5 `fraction_above`
#
# **Extra** · Difficulty 2 of 5 · Importance 3 of 5 · 7 minutes
#
# For each row, return the fraction of its entries that are strictly above a threshold $c$:
# $$\text{out} = \frac{1}{D}\,\bigl|\{\, j : x_j > c \,\}\bigr|$$
#
# - **Arguments:** `x (..., D)`, `threshold` a Python float.
# - **Returns:** `(...)`, **in x's dtype**. For our table and a threshold of 2.5 it's `0.5, 0.75, 0`.
# - It needn't be differentiable, because a fraction is a step function of x, and its gradient is zero almost everywhere.
#
# Accuracies are such fractions (lesson 11), and the comparison alone gives a mask (lesson 5).


# %% nbgrader={"solution": "fraction_above"}
def fraction_above(x, threshold):
    """The fraction of each row's entries that are strictly above the threshold.

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
# You need three steps: compare, convert and average. Which of the three decides the dtype of the result?
# </details>
# <details><summary>Hint 2</summary>
#
# If only *dtype kept* fails, find the conversion that names a fixed dtype, and use the dtype of x instead.
# </details>

# %% [markdown]
# ### Picking one entry from each row
#
# In lesson 6 we'll compute the loss of a language model, which gives every word of its vocabulary a score at every position. The loss needs only one of these scores per position. If the word that really came next after position t has the index `index[t]`, it's column `index[t]` of row t. Let's see what plain indexing gives:

# %%
index = torch.tensor([2, 3, 0])  # (T,): 6 for jane, 6 for visits, 2 for africa
x[..., index]  # (3, 3): for every token, columns 2, 3 and 0

# %%
figures.picked_entries(x, index, tokens)

# %% [markdown]
# The three entries that we want are there, on the diagonal, among six that we don't want. For a text of 10,000 tokens we would compute a hundred million entries and keep ten thousand.
#
# It's better to use `gather`. The call `torch.gather(x, -1, where)` goes through the rows of `x` and `where` together, and from each row of `x` it takes the entries that the *same* row of `where` names. Here we take two entries from each row, the first and the largest:

# %%
where = torch.tensor([[0, 2], [0, 3], [0, 0]])  # (3, 2): two columns for each row
torch.gather(x, -1, where)  # (3, 2)

# %% [markdown]
# ### Exercise 0.6 `gather_per_row`
#
# **Extra** · Difficulty 3 of 5 · Importance 4 of 5 · 12 minutes
#
# Return one entry from each row, chosen by that row's own index:
# $$\text{out}_{t} = x_{t,\,\text{index}_t} \quad\text{for every row } t$$
#
# - **Arguments:** `x (..., V)`, `index` LongTensor `(...)` with entries 0 to V−1.
# - **Returns:** `(...)`. If `...` is empty, `x` is one row, `index` a single number, and so is the result.
#
# The loss of a language model, `cross_entropy`, does this with the log-probabilities (lesson 6).


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
# In the section above, `where` has as many axes as `x`. How many axes does `index` have?
# </details>
# <details><summary>Hint 2</summary>
#
# Give `index` a last axis of size 1 before you gather, and remove it afterwards. (There is another way without `gather`: multiply by a mask that is True at one entry in each row, and sum.)
# </details>

# %% [markdown]
# ### What a Jacobian predicts
#
# Let's compare the change that the Jacobian predicts for a small step with the actual change.

# %%
step = torch.tensor([0.1, 0.0])  # (2,)
print("predicted", J @ step)  # @ is the matrix product: here the matrix J times the vector
print("actual   ", f(point + step) - f(point))

# %% [markdown]
# The difference of $0.01$ is $0.1^2$ and comes from the square in the second output. The exact statement about small steps is that the error, divided by the length of the step, goes to 0 as the step does. In the figure we use a step of $0.5$, so that the error is large enough to see.

# %%
figures.jacobian_picture()

# %% [markdown]
# What does `backward()` do with $J$? It starts from one number, so if there are two outputs, it needs a weight for each: `f(x0).backward(torch.tensor([1.0, 2.0]))` does what we did above. It never forms $J$, because it computes the product directly. For a layer with a million inputs and outputs, $J$ would have $10^{12}$ entries.

# %% [markdown]
# ### Exercise 0.7 `gradient_by_hand`
#
# **Extra** · Difficulty 2 of 5 · Importance 4 of 5 · 12 minutes
#
# Now you can do by hand what `backward()` does. For the same $f(x_1, x_2) = (x_1 x_2,\; x_1^2 + x_2)$ and a loss $L = g_1 f_1 + g_2 f_2$ with any weights $g$, return the gradient at $x$:
#
# $$\text{out}_j = g_1\,\frac{\partial f_1}{\partial x_j} + g_2\,\frac{\partial f_2}{\partial x_j}$$
#
# - **Arguments:** `x (..., 2)`, `g (..., 2)`.
# - **Returns:** `(..., 2)`. For $x = (2, 3)$ and $g = (1, 2)$ it is $(11, 4)$, as above. It needn't be differentiable itself.
# - **Forbidden:** autograd in every form.
#
# You'll write the backward pass of softmax (lesson 6) and, if you like, of attention itself (lesson 7) in just this way.


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
# Redo the row vector times Jacobian above with the symbols $x$ and $g$ instead of numbers. The first entry adds up the effect of $x_1$ on both outputs.
# </details>
# <details><summary>Hint 2</summary>
#
# Each entry is a sum of two products of a weight and a derivative. The first entry takes its derivatives from the first column, the second from the second. Put the two entries next to each other in a new last axis; `torch.stack` takes a `dim` argument.
# </details>

# %% [markdown]
# ### How to hand in
#
# 1. Add cells of your own wherever you like, and check as often as you like. The grader uses check cells of its own, and it runs your functions on *new* inputs.
# 2. Before you hand in, choose **Kernel → Restart Kernel and Run All Cells**, because a notebook may work only in the order in which you happened to run it. The run continues after checks that fail.
# 3. **Save** (Ctrl+S, or ⌘S), and hand in the one file `NN_topic.ipynb` under its own name. If your class uses nbgrader's *Assignments* list, press *Submit* there; otherwise upload the file where your teacher says. In Colab, use *File → Download → Download .ipynb*.

# %% [markdown]
# ### The notation card
#
# Books, papers and libraries use different notation for the same thing, and sometimes the same notation for different things. You can come back to this card whenever a formula elsewhere doesn't fit ours.
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
# A projection from width `in` to width `out` is one map that you will see in three notations:
#
# | written | shape of W | where you meet it |
# |---|---|---|
# | $XW^\top$, `x @ W.T` | `(out, in)` | here, `nn.Linear`, "y = xWᵀ + b" |
# | $XW$ | `(in, out)` | Vaswani et al., most papers |
# | $Wx$, `W @ x` | `(out, in)` | texts in which a vector is a column |
#
# A mask says which keys a query may attend to, and there are four ways to write it:
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
# ### How stable are these numbers?
#
# Figure 0.1 comes from `bench/why_attention.py`, which trains each of the two translators with three seeds and tests it on 200 unseen sentences of each length.
#
# | translated exactly (%), seeds 0, 1, 2 | 4 words | 8 words | 12 words |
# |---|---|---|---|
# | one vector | 100, 99, 98.5 | 71, 75.5, 77.5 | 9.5, 7, 8.5 |
# | attention | 100, 100, 100 | 100, 99.5, 99 | 99.5, 97.5, 96.5 |
#
# Both networks have the same number of parameters, 169,826, because this attention uses plain dot products, which have no parameters.

# %% [markdown]
# ## Further reading
#
# - Cho et al., [Learning Phrase Representations using RNN Encoder-Decoder](https://arxiv.org/abs/1406.1078) (2014), and Sutskever, Vinyals and Le, [Sequence to Sequence Learning with Neural Networks](https://arxiv.org/abs/1409.3215) (2014), on translation with one vector for a sentence.
# - Bahdanau, Cho and Bengio, [Neural Machine Translation by Jointly Learning to Align and Translate](https://arxiv.org/abs/1409.0473) (2015), the paper that introduced attention. Their figure 2 shows the same comparison on real text.
# - Vaswani et al., [Attention Is All You Need](https://arxiv.org/abs/1706.03762) (2017), and [The Annotated Transformer](https://nlp.seas.harvard.edu/annotated-transformer/).
# - Sasha Rush, [Tensor Puzzles](https://github.com/srush/Tensor-Puzzles), twenty-one more of these, each in one line.
# - PyTorch's notes on [broadcasting](https://pytorch.org/docs/stable/notes/broadcasting.html) and on [tensor views](https://pytorch.org/docs/stable/tensor_view.html).
# - Terence Parr and Jeremy Howard, [The Matrix Calculus You Need For Deep Learning](https://arxiv.org/abs/1802.01528) (2018), on gradients and Jacobians from school calculus up.
# - Baydin, Pearlmutter, Radul and Siskind, [Automatic Differentiation in Machine Learning: a Survey](https://arxiv.org/abs/1502.05767) (2018).
# - Andrej Karpathy, [Let's build GPT: from scratch, in code, spelled out](https://www.youtube.com/watch?v=kCc8FmEb1nY), the source of some notation on the card (`B, T, C`, `head_size`).
