# %% [markdown]
# # 3. Query and key: who looks at whom
#
# **Goal:** turn the words of a sentence into questions and answers, and let every word find out which other words
# matter to it. At the end you hold the first matrix product of attention, $QK^\top$, and you know what it can and
# cannot say.
#
# **Time:** about 80 minutes; the core exercises take an hour.

# %% [markdown]
# ## You need
#
# - [Lesson 1](../01_token_embedding/01_token_embedding.ipynb): a word becomes an id, an id becomes a row of numbers.
# - [Lesson 2](../02_position/02_position.ipynb): the order of the words is added to these rows.
#
# <details><summary>Recall 1 (lesson 1): two vectors point the same way, one is twice as long. What are their cosine and
# their dot product?</summary>
#
# The cosine is 1: it sees directions only. The dot product is the product of the two lengths. Keep this difference in
# mind, it comes back below.
# </details>
#
# <details><summary>Recall 2 (lesson 2): you shuffle the tokens and add no position codes. What happens to the outputs of
# self-attention?</summary>
#
# They are shuffled in the same way, and nothing else changes: each token still meets the same other tokens.
# </details>

# %% [markdown]
# <details><summary><b>Conventions</b> (the same in every lesson)</summary>
#
# - Shapes: `B` batch, `H` heads, `T` tokens (`T_q` queries, `T_k` keys), `D` model width, `d_k`, `d_v` head widths, `V`
#   vocabulary. `...` stands for any leading dimensions, none included.
# - Weights follow `nn.Linear`: `W` is `(out, in)` and a projection is `x @ W.T`.
# - Masks are boolean, **True = may attend**.
# - Unless an exercise says otherwise an answer: accepts any `...` (all inputs share the same ones); accepts float32 and
#   float64 and keeps the dtype; leaves its inputs unchanged; is differentiable; gives no NaN in values.
# - Equal means within 1e-5 (relative plus absolute) in float32 and 1e-7 in float64.
# - A `scalar` is a 0-dim differentiable tensor; `float` and `int` are Python numbers. What is made from no float input
#   is float32. Ids are valid ids unless an exercise says otherwise.
# - *Forbidden* lists library calls that would be the whole answer. Using one gets no points and a message that names
#   the call.
# </details>

# %% tags=["setup"]
# (empty: the build puts the set-up cell here)

# %%
import torch
from torch import nn

from helpers import check
from helpers.explore import query_key as explore
from helpers.figures import query_key as figures

# %% [markdown]
# ## A sentence before the wiring
#
# Read *jane visits africa*. When your eyes rest on *jane*, which word do they want next, to know what jane is about?
# Probably *visits*. At *visits* you ask where, and look at *africa*. Draw an arrow for every such look and the sentence
# becomes a **graph**: tokens are its nodes, looks are its edges.

# %%
figures.wiring()

# %% [markdown]
# Every arrow starts at the token that asks, the **query**, and ends at the token that answers, the **key**. The
# numbers come from the table that the sources of this course print:
#
# | query | key | probability |
# |---|---|---|
# | jane | visits | 0.94 |
# | visits | africa | 0.86 |
# | africa | visits | 0.76 |
#
# *How far to trust it.* The table was drawn by hand to show an idea. Nobody measured it. In lesson 13 you will measure
# a real network, and find a head that gives jane → visits 0.935 and visits → africa 0.893. Pretty close, for a guess.
# But you will also see many heads that do nothing of the kind.
#
# A Transformer starts with the left picture, tokens in a row. It draws the right picture itself, anew for every
# sentence. This lesson is about the pen.

# %% [markdown]
# ## An inquiry system
#
# You have used one today. You type a **query** into a video search. The machine compares it with a **key** for every
# video, made of title and description. What you get is the **value**: the video. A database says it in one line:
#
# ```sql
# SELECT value FROM videos WHERE key = query
# ```
#
# A database wants `key = query` exactly. A search engine cannot, so it takes the key that fits best. "Fits" is a number:
# the dot product. Here is one for pencil and paper, with three features (cooking, music, far away):
#
# | title | key | query (2, 0, 1) · key |
# |---|---|---|
# | Rice in one pot | (3, 0, 0) | 2·3 + 0·0 + 1·0 = 6 |
# | Jazz for beginners | (0, 4, 0) | 2·0 + 0·4 + 1·0 = 0 |
# | Street food of Hanoi | (2, 0, 3) | 2·2 + 0·0 + 1·3 = 7 |

# %%
titles = ["Rice in one pot", "Jazz for beginners", "Street food of Hanoi"]
query = torch.tensor([2.0, 0, 1])  # (D,)
keys = torch.tensor([[3.0, 0, 0], [0, 4, 0], [2, 0, 3]])  # (N, D)
figures.video_search(titles, query, keys)

# %% [markdown]
# Notice the right half: by cosine, rice would win. The dot product rewards a long key, the cosine does not. Attention
# uses the dot product.

# %% [markdown]
# ## Exercise 3.1 `select`
#
# Difficulty ●●○○○ · importance ●●●○○ · 6 minutes · 10 points
#
# A SELECT that takes the best match. One query $q$ of shape `(D,)`, keys `(N, D)`, values `(N, E)`:
#
# $$\text{select}(q, K, V) = V_{j^*}, \qquad j^* = \text{the first } j \text{ with the largest } q \cdot k_j$$
#
# The result has shape `(E,)`. On a tie the first key wins. The gradient must reach `values`; nothing is asked of the
# gradients at `query` and `keys` (the explorer below shows why).


# %% nbgrader={"solution": "select"}
def select(query, keys, values):
    """Hard lookup: the value whose key has the largest dot product with the query, the first one on ties.

    query (D,), keys (N, D), values (N, E), float32 or float64 -> (E,), dtype of values.
    The gradient reaches values.
    """
    ### BEGIN SOLUTION
    matches = keys @ query  # (N,)
    return values[matches.argmax()]  # (E,)
    ### END SOLUTION


# %% nbgrader={"grade": "select"}
check(select)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# First make one number for each key. What shape has a matrix `(N, D)` times a vector `(D,)`?
# </details>
#
# <details><summary>Hint 2</summary>
#
# You need the *place* of the largest number, not the number. With the place you can pick a row of `values`.
# </details>

# %% [markdown]
# Now turn the query and watch what comes back.

# %%
explore.search()

# %% [markdown]
# The value is flat, jumps, and is flat again. On a flat piece the derivative is 0: a small change of the query changes
# nothing, so gradient descent gets no advice. Attention therefore does not pick *one* value. It gives every key a
# share, a large one to a good match. How scores become shares is the matter of lessons 4 and 6; what is done with the
# values, of lesson 7. This lesson stays with the scores.

# %% [markdown]
# ## Why not compare the words themselves?
#
# Let the embedding of each word have three features: person, action, place.
#
# $$x_\text{jane} = (1, 0, 0), \quad x_\text{visits} = (0, 1, 0), \quad x_\text{africa} = (0, 0, 1)$$
#
# Compare the embeddings directly and *jane* finds *jane*: the dot products are 1 with itself and 0 with the others. But
# jane did not ask "who is like me?". She asked "what is the action?". What a word **is** and what a word **seeks** are
# two things, so each word gets two vectors, made by two matrices:
#
# $$q_t = W_Q\, x_t \quad \text{(what I seek)}, \qquad k_t = W_K\, x_t \quad \text{(what I offer)}$$
#
# Try these, with two channels, "action" and "place":
#
# $$W_Q = \begin{pmatrix} 3 & 0 & 2 \\ 0 & 3 & 0 \end{pmatrix}, \qquad
#   W_K = \begin{pmatrix} 0 & 1 & 0 \\ 0 & 0 & 1 \end{pmatrix}$$
#
# Column by column: *jane* seeks an action (3, 0), *visits* seeks a place (0, 3), *africa* seeks an action (2, 0).
# *jane* offers nothing here (0, 0), *visits* offers an action (1, 0), *africa* a place (0, 1). Now multiply each query
# with each key, on paper, before you run the cell.

# %%
hand_scores = torch.tensor([[0.0, 3, 0], [0, 0, 3], [0, 2, 0]])  # (T_q, T_k)
figures.score_table(hand_scores, figures.JANE)

# %% [markdown]
# There is the graph of the first figure. Two small matrices drew it.
#
# *Where intuition stops.* We chose the features and named the channels. A trained network has neither: its features
# have no names, and "seeks" and "offers" are our words for two linear maps. The mathematics is only this: two
# projections and a dot product.

# %% [markdown]
# ## Exercise 3.2 `project`
#
# Difficulty ●○○○○ · importance ●●●●● · 5 minutes · 8 points
#
# All words at once. Rows of $X$ are tokens, $W$ is `(d_out, d_in)` as in `nn.Linear`:
#
# $$\text{project}(X, W) = X W^\top, \qquad (\ldots, d_\text{in}) \to (\ldots, d_\text{out})$$
#
# *Think first.* With $X$ of shape `(3, 3)` and the $W_Q$ above, what is the shape of the result? And if somebody hides
# $W$ from you but projects any $X$ that you hand over: which $X$ would you hand over, to read $W$ off?


# %% nbgrader={"solution": "project"}
def project(x, W):
    """A linear map of the last dimension, without bias: y = x Wᵀ.

    x (..., d_in), W (d_out, d_in), float32 or float64 -> (..., d_out), same dtype.
    """
    ### BEGIN SOLUTION
    return x @ W.T  # (..., d_out)
    ### END SOLUTION


# %% nbgrader={"grade": "project"}
check(project)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# Write the two shapes side by side. Which dimension of `W` must meet the last dimension of `x`?
# </details>
#
# <details><summary>Hint 2</summary>
#
# The result has `d_out` numbers for each token, one for each *row* of `W`. A square `W` gives a right shape either way,
# so look at a number, not only at the shape.
# </details>
#
# <details><summary>The two questions</summary>
#
# The shape is `(3, 2)`: three tokens, two channels. And hand over the identity matrix: each row switches one input on,
# so the result is $W^\top$ itself. More generally, from $N \ge d_\text{in}$ inputs with linearly independent rows and
# their outputs, $W$ is the solution of a linear system.
# </details>

# %% [markdown]
# ## One map, three notations
#
# The sources of this course write this map in three ways, and so does the rest of the world:
#
# | written | each token is | shape of the matrix | where |
# |---|---|---|---|
# | $X \cdot W$ | a row | (in, out) | the feed-forward walk-through; the Transformer paper |
# | $X \cdot W^\top$ | a row | (out, in) | Q, K, V as an inquiry system; `nn.Linear`; **this course** |
# | $W \cdot x$ | a column | (out, in) | self-attention from scratch |
#
# Compare them on numbers.

# %%
X = torch.eye(3)  # (T=3, D=3): jane, visits, africa
W_q = torch.tensor([[3.0, 0.0, 2.0], [0.0, 3.0, 0.0]])  # (d_k=2, D=3)
A = torch.tensor([[3.0, 0.0], [0.0, 3.0], [2.0, 0.0]])  # (D=3, d_k=2): stored the other way
layer = nn.Linear(3, 2, bias=False)
layer.load_state_dict({"weight": W_q})
africa = X[2]  # (D,)
print("X·W ", (X @ A)[2], "  X·Wᵀ", layer(X)[2].detach(), "  W·x", W_q.matmul(africa))

# %% [markdown]
# One map. They differ in how the matrix is stored and whether a token stands or lies. The course keeps
# `nn.Linear`'s: $y = xW^\top + b$, here without $b$. (A bias in the queries adds the same vector to each query. You
# will meet biases in lesson 8.)
#
# **Widths.** In every notation one rule holds: the inner width must be the width of a token. So
# $X \in \mathbb{R}^{T \times D}$, $W_Q, W_K \in \mathbb{R}^{d_k \times D}$ and $Q, K \in \mathbb{R}^{T \times d_k}$.
#
# - *I like to eat apples* in the walk-through: $X$ is $N \times M$ with $N = 5$, all matrices are $M \times M$. That is
#   the special case $D = d_k = M$. It hides which side is which: a missing transpose raises no error.
# - Another source writes $X \in \mathbb{R}^{N \times d_k}$ with
#   $W^Q, W^K \in \mathbb{R}^{d_k \times d_{model}}$. Read that strictly and $X \cdot W^\top$ does not exist, while
#   $X \cdot W$ maps *up* to $d_{model}$, although the text wants fewer dimensions. The repair is one symbol:
#   $X \in \mathbb{R}^{N \times d_{model}}$.
# - *Life is short, eat dessert first*: $D = 16$ and $d_k = 24$. Nothing forbids $d_k > D$. What must agree is the width
#   of queries and keys, because a dot product needs two vectors of the same length. Values are free: $d_v = 28$ there.
#
# That last source sees the queries as the output channels of a feed-forward network. Fair: `W.shape[0]` channels out,
# `W.shape[1]` channels in, one layer for each of Q, K, V, the same for every token. But it is one layer without a
# nonlinearity, a *linear* layer. The feed-forward network of lesson 9 is more than that.

# %% [markdown]
# ## One query asks every key
#
# Take *Life is short, eat dessert first* with random embeddings and random weights, as in the source that we follow.
# The second token, *is*, asks; *dessert*, the fifth, answers.

# %%
torch.manual_seed(123)
embedding = nn.Embedding(6, 16)
x = embedding(torch.tensor([0, 4, 5, 2, 1, 3])).detach()  # (T=6, D=16)
W_query, W_key = torch.rand(24, 16), torch.rand(24, 16)  # (d_k=24, D=16) each
W_value = torch.rand(28, 16)  # (d_v=28, D=16)

q_is = W_query.matmul(x[1])  # (24,)
k_dessert = W_key.matmul(x[4])  # (24,)
q_is.dot(k_dessert)

# %% [markdown]
# The score is 2.3206. Five more keys are waiting. The source makes all of them in one go, with tokens as columns, and
# then turns the result:

# %%
all_keys = W_key.matmul(x.T).T  # (T=6, d_k=24)
all_values = W_value.matmul(x.T).T  # (T=6, d_v=28)
q_is.shape, all_keys.shape, all_values.shape

# %% [markdown]
# ## Exercise 3.3 `scores_for_one`
#
# Difficulty ●○○○○ · importance ●●●●○ · 4 minutes · 8 points
#
# One query $q$ `(d_k,)` against all keys $K$ `(T, d_k)`:
#
# $$\omega_j = q \cdot k_j, \qquad \text{shape } (T,)$$
#
# Plain dot products: not divided, not normalized.


# %% nbgrader={"solution": "scores_for_one"}
def scores_for_one(q, K):
    """The dot product of one query with every key.

    q (d_k,), K (T, d_k), float32 or float64 -> (T,), same dtype.
    """
    ### BEGIN SOLUTION
    return K @ q  # (T,)
    ### END SOLUTION


# %% nbgrader={"grade": "scores_for_one"}
check(scores_for_one)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# You did this inside `select`, before you looked for the winner.
# </details>
#
# <details><summary>Hint 2</summary>
#
# If you multiply entry by entry you get `(T, d_k)`. One step is missing: which dimension has to disappear?
# </details>

# %% [markdown]
# ## Does a word look at itself?
#
# **Predict before you run.** *is* asks six keys, its own among them. Nothing has been trained. Which of the six scores
# will be the largest: that of *is* itself, or another? Write your guess down.

# %%
figures.one_row(figures.scores_of_is(), figures.LIFE, "is")

# %% [markdown]
# *eat* wins, with 10.2379; *is* gives itself −4.5398. The source saw this too and blames the missing training: after it,
# one would think, *is* attends most to itself. The observation is right. The reason is not, on both sides.
#
# - **Untrained.** The score of a token with itself is $x^\top W_Q^\top W_K\, x$. With two unrelated matrices this is a
#   random number like any other. It need not be large, and it need not even be positive.
# - **Trained.** Training does not aim at self-similarity. It lowers the loss of the task. If jane must find her
#   verb, then training makes jane → visits large and not jane → jane. Exercise 3.5 asks you for weights with which *no*
#   token looks at itself, and such heads exist in trained models.
#
# When *would* a token look at itself? When $W_Q = W_K$ and all keys are equally long: then $q_t = k_t$, and no vector of
# that length has a larger dot product with $q_t$ than $q_t$ itself (Cauchy and Schwarz). Count it, for 400 random
# sentences of six tokens:

# %%
figures.looks_at_itself()

# %% [markdown]
# Without any $W$ a token nearly always finds itself. With $W_Q$ and $W_K$ independent and drawn around 0, it is chance.
# The source draws its weights with `torch.rand`, between 0 and 1. All are positive, so both projections mostly measure
# one thing, the sum of a token's numbers. Roughly, then, all tokens with a positive sum look at the token with the
# largest sum, and all others at the one with the most negative sum. Two of six tokens find themselves: 0.34. That is a
# fact about `rand`, not about attention.

# %% [markdown]
# ## Exercise 3.4 `dot_scores`
#
# Difficulty ●●○○○ · importance ●●●●● · 6 minutes · 12 points
#
# All queries at once: the *first MatMul* of attention.
#
# $$S = Q K^\top, \qquad S_{ij} = q_i \cdot k_j, \qquad (\ldots, T_q, d_k),\ (\ldots, T_k, d_k) \to (\ldots, T_q, T_k)$$
#
# A row for every query, a column for every key. The number of queries and the number of keys may differ. There may be
# no leading dimension, or one (a batch), or more (a batch of heads).


# %% nbgrader={"solution": "dot_scores"}
def dot_scores(Q, K):
    """Every query against every key, QKᵀ: eq. 1 of Vaswani et al. (2017) before scale and softmax.

    Q (..., T_q, d_k), K (..., T_k, d_k), float32 or float64 -> (..., T_q, T_k), same dtype.
    """
    ### BEGIN SOLUTION
    return Q @ K.transpose(-2, -1)  # (..., T_q, T_k)
    ### END SOLUTION


# %% nbgrader={"grade": "dot_scores"}
check(dot_scores)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# `@` multiplies the last two dimensions and carries all others along. Which shape must the second factor have?
# </details>
#
# <details><summary>Hint 2</summary>
#
# Two dimensions of `K` trade places, and they must be the same two whether `K` has two, three or four dimensions. Count
# them from the end.
# </details>

# %% [markdown]
# Here is the setting of a well-known lecture: a batch of 4 sentences, 8 tokens of width 32, head size 16. *Which shape
# will the scores have?* Below is one of them, worked out alone.

# %%
torch.manual_seed(1337)
B, T, C, head_size = 4, 8, 32, 16
Wk = nn.Linear(C, head_size, bias=False)
Wq = nn.Linear(C, head_size, bias=False)
batch = torch.randn(B, T, C)
k, q = Wk(batch), Wq(batch)  # (4, 8, 16) each
score = q[0, 1].dot(k[0, 6]).item()
print(tuple(q.shape), tuple(k.shape), f"sentence 0, query 1, key 6: {score:.4f}")

# %% [markdown]
# The scores are `(4, 8, 8)`: in each sentence 8 queries meet 8 keys. That is $8 \cdot 8$ numbers however wide the tokens
# are; double the sentence and there are four times as many.

# %% [markdown]
# ## A published table, looked at closely
#
# For *I like to eat apples* one source prints this as the output of $\text{softmax}(QK^\top/\sqrt{d_k})$. A softmax, as
# lesson 4 previews, turns each row into positive shares that add up to 1. And
# $QK^\top$ has $q_i \cdot k_j$ in row $i$, column $j$. Does the table keep these promises?

# %%
table = torch.tensor(
    [
        [1.00, 0.20, 0.10, 0.10, 0.05],
        [0.20, 1.00, 0.40, 0.30, 0.10],
        [0.10, 0.40, 1.00, 0.50, 0.20],
        [0.10, 0.30, 0.50, 1.00, 0.60],
        [0.05, 0.10, 0.20, 0.60, 1.00],
    ]
)
print("row sums", table.sum(-1), " symmetric:", bool((table == table.T).all()))
figures.five_by_five(table)

# %% [markdown]
# It does not.
#
# - **It is no softmax.** The rows add up to 1.45, 2.00, 2.20, 2.50 and 1.95.
# - **It is no general $QK^\top$.** It is symmetric: *I* → *like* equals *like* → *I*. But $q_i \cdot k_j$ and
#   $q_j \cdot k_i$ are different numbers when $W_Q \ne W_K$. Our hand-made scores have jane → visits 3 and
#   visits → jane 0. Looking is not mutual.
# - **So what is it?** A diagonal of exactly 1 and symmetry: that is what *cosines* between the words look like, without
#   any $W_Q$ and $W_K$. It is a similarity table, and a good picture of one.
#
# The source's own note repairs half of this: it says that one would still divide by $\sqrt{d_k}$ and apply softmax. Then
# the table is what goes *in*. Lesson 6 does it, and *I* gets the weights 0.377 0.170 0.153 0.153 0.146.

# %% [markdown]
# ## Is there only one way to relate two vectors?
#
# One source takes the dot product of query and key for a cosine, and supposes that a network has no other way to relate
# two things. Neither holds. $q \cdot k = \lVert q \rVert\, \lVert k \rVert \cos(q, k)$: the dot product
# is the cosine *times both lengths*, so a key can shout. And there are other scores in the literature:
#
# | score | formula | learns | from |
# |---|---|---|---|
# | cosine | $q \cdot k \,/\, (\lVert q \rVert \lVert k \rVert)$ | nothing | search engines |
# | dot | $q \cdot k$ | nothing | Luong et al. 2015; Transformer |
# | bilinear | $q^\top M k$ | $M$ | Luong et al. 2015 ("general") |
# | additive | $v^\top \tanh(W_1 q + W_2 k)$ | $v, W_1, W_2$ | Bahdanau et al. 2014 |
#
# Each panel below colors the plane of keys by their score. The arrow is the query. The two dots are a key and the same
# key twice as long; their scores stand in the title. Change the query's length: which panel does not move at all?

# %%
explore.four_scores()

# %% [markdown]
# Cosine alone ignores length. Dot and bilinear scores are flat sheets, tilted to different sides: for the bilinear one
# the best direction is not the query's own. The additive score bends.
#
# Self-attention is of the bilinear kind, seen from the tokens:
#
# $$q_i \cdot k_j = (W_Q x_i) \cdot (W_K x_j) = x_i^\top \, \underbrace{W_Q^\top W_K}_{M,\ (D, D)} \, x_j$$

# %% [markdown]
# ## What d_k channels can hold
#
# $M = W_Q^\top W_K$ has $D \cdot D$ entries. It is still no free matrix: it is a product through the narrow width
# $d_k$, so **its rank is at most $d_k$**. In the Transformer paper $D = 512$ and $d_k = 64$.

# %%
W_q_small, W_k_small = torch.randn(2, 16), torch.randn(2, 16)  # (d_k=2, D=16)
M = W_q_small.T @ W_k_small  # (16, 16)
print("shape", tuple(M.shape), " rank", int(torch.linalg.matrix_rank(M)))

# %% [markdown]
# What does this cost? Think of users and products, as the source does. Give each user a query, each product a key, and
# let the score be how much this user wants that product. The source concludes that more products need more channels.
# Do they? Choose a table, then find the smallest $d_k$ that misses nothing.

# %%
explore.channels()

# %% [markdown]
# With three tastes, three channels hold all twelve products, and would hold twelve thousand. With a different favorite
# for each user it takes all twelve. So what counts is not the number of products, but **how many independent
# patterns** there are: the rank. (The closest table of rank $d_k$ comes from the singular value decomposition, a theorem
# of Eckart and Young, 1936.)
#
# *A fine point.* This is about the whole table of scores. If only the *winner* of each row matters, far fewer channels
# do. The next exercise lets you find out how few.

# %% [markdown]
# ## Exercise 3.5 `previous_token_weights`
#
# Difficulty ●●●●○ · importance ●●●○○ · 15 minutes · 16 points
#
# A puzzle. Token $t$ is the one-hot vector of its position: `x = torch.eye(max_len)`. Choose by hand $W_q$ and $W_k$,
# both float32 of shape `(d, max_len)` with any `d` you like, such that every query $t \ge 1$ scores the key before it
# strictly higher than every other key:
#
# $$q_t \cdot k_{t-1} > q_t \cdot k_j \quad \text{for all } j \ne t - 1, \qquad t = 1, \ldots, \text{max\_len} - 1$$
#
# Query 0 has nobody before it: it is free. It must work for every `max_len` from 2 up.

# %%
figures.previous_token_target(6)


# %% nbgrader={"solution": "previous_token_weights"}
def previous_token_weights(max_len):
    """Weights of a head that looks one token back when x = torch.eye(max_len).

    max_len: int >= 2 -> (W_q, W_k), float32, each (d, max_len) for any d. Query 0 is free.
    """
    ### BEGIN SOLUTION
    W_k = torch.eye(max_len)  # key j is the one-hot vector of j
    W_q = torch.zeros(max_len, max_len)
    steps = torch.arange(1, max_len)
    W_q[steps - 1, steps] = 1.0  # column t, the query of token t, is the one-hot vector of t - 1
    return W_q, W_k
    ### END SOLUTION


# %% nbgrader={"grade": "previous_token_weights"}
check(previous_token_weights)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# You found out in exercise 3.2 what a projection of the identity is. So the query of token $t$ is a *column* of `W_q`,
# and the key of token $j$ a column of `W_k`. You may choose all columns freely.
# </details>
#
# <details><summary>Hint 2</summary>
#
# Let the keys be as different as can be, each with a direction of its own. Then which direction must the query of
# token $t$ have?
# </details>
#
# <details><summary>Once it passes: what is the smallest d that works?</summary>
#
# With `d = max_len` it is easy. But two channels are enough for *any* length: put the keys on a circle, at different
# angles. On a circle every key is its own best match, so a query that points where the key before it points has the
# right winner. The price is the margin. With $n$ keys it is $1 - \cos(2\pi/n)$: 0.19 for 10 keys, 0.002 for 100,
# 0.00002 for 1000. What you save in channels you pay in precision, or in huge weights.
#
# One channel works for `max_len` 2 and 3 only: a single number times a single number has its largest value at the
# largest or at the smallest key, so at most two keys can ever win.
# </details>

# %% [markdown]
# Such a *previous-token head* is no toy. Trained language models grow them, and lesson 12 builds on yours.

# %% [markdown]
# ## The Markov chain: one edge for ever
#
# There is an older machine that says which word goes with which: count, in a text, how often $b$ comes right after $a$.
# Divide by how often anything comes after $a$. That is a **Markov chain**, $P(\text{next} = b \mid \text{current} = a)$.
#
# By hand, for the text *jane visits africa jane loves visits*. *jane* is followed twice: once by *visits*, once by
# *loves*. So $P(\text{visits} \mid \text{jane}) = 1/2$.

# %%
chain = torch.tensor([[0, 0.5, 0, 0.5], [0, 0, 1, 0], [1, 0, 0, 0], [0, 1, 0, 0]])  # (V, V)
figures.transitions(chain, ["jane", "visits", "africa", "loves"])

# %% [markdown]
# ## Exercise 3.6 `bigram_probabilities`
#
# Difficulty ●●●○○ · importance ●●●○○ · 12 minutes · 14 points
#
# ids is a LongTensor `(T,)` with $T \ge 1$; the result is float32 of shape `(V, V)`, rows are the current token:
#
# $$P_{ab} = \frac{\text{how often } b \text{ comes right after } a}{\text{how often } a \text{ is followed by anything}}$$
#
# A token that is never followed by anything tells us nothing: its row is uniform, $1/V$ everywhere. That goes for tokens
# that do not occur, and for one that occurs only at the very end. For *I like to eat apples* as ids `0 1 2 3 4`, each
# word has one follower with probability 1, and the row of *apples* is 0.2 five times.


# %% nbgrader={"solution": "bigram_probabilities"}
def bigram_probabilities(ids, vocab_size):
    """The Markov chain P(next | current) estimated from the neighbors in ids, without smoothing.

    ids LongTensor (T,), T >= 1; vocab_size V -> (V, V) float32.
    A token that is never followed by anything has a uniform row.
    """
    ### BEGIN SOLUTION
    pairs = ids[:-1] * vocab_size + ids[1:]  # one number for each pair, (T - 1,)
    counts = torch.bincount(pairs, minlength=vocab_size**2).view(vocab_size, vocab_size)
    followed = counts.sum(dim=1, keepdim=True)  # (V, 1)
    return torch.where(followed > 0, counts / followed, 1 / vocab_size)
    ### END SOLUTION


# %% nbgrader={"grade": "bigram_probabilities"}
check(bigram_probabilities)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# A loop over neighbors is fine. If you index with tensors instead, try a text in which the same pair comes twice: is it
# counted twice?
# </details>
#
# <details><summary>Hint 2</summary>
#
# The row sums of your table of counts say how often each token is *followed*. That is not always how often it
# *occurs*. What do you do with a row whose sum is 0?
# </details>

# %% [markdown]
# ## The same pair in two sentences
#
# You and a colleague: at work you are the boss; on the mat, in the evening, they are the master. The same two people,
# two relations. The sources use this picture for what attention can and a Markov chain cannot: the chain has **one**
# edge from *jane* to *visits*, 0.5, wherever the two meet.
#
# Take our $W_Q$ and $W_K$ again, and let *loves* be a strong action, $x_\text{loves} = (0, 2, 0)$.

# %%
africa_trip = (figures.JANE, [(0, 1, 3.0), (0, 2, 0.0)], "jane visits africa")
loves_visits = (("jane", "loves", "visits"), [(0, 1, 6.0), (0, 2, 3.0)], "jane loves visits")
figures.two_sentences(africa_trip, loves_visits, 0.5)

# %% [markdown]
# In the first sentence jane's largest score is at *visits*. In the second it is at *loves*, and *visits*, a noun
# there, comes second. So jane's look depends on the sentence.
#
# *Be exact, though.* The **score** jane → visits is 3 in both. It must be: a score is made of two vectors, and in the
# first layer these are the same two vectors. What changes there is
#
# 1. the **competition**: shares are made from all scores of the row, so *loves* takes attention away from *visits*;
# 2. the **position**, if position codes are added (lesson 2): then the two *visits* are no longer the same vector.
#
# From the second layer on there is a third, the important one: the vectors themselves have been blended with their
# neighbors'. Suppose a first layer has moved *visits* half way towards a noun, to $(0.5, 0.5, 0)$. Its key is then
# $(0.5, 0)$, and the score drops from 3 to 1.5. *That* is the context dependence which the sources call a memory: it
# sits in the weights $W_Q$, $W_K$ and it acts on vectors that know their sentence. Lessons 9 and 13 measure it;
# lesson 12 sets a trained Transformer against a Markov chain.

# %% [markdown]
# ## A graph from a table of weights
#
# Back to the picture of arrows. Suppose scores have become shares. The sources give only the largest one of each row;
# we filled in the rest so that each row adds up to 1. Move the threshold and watch the light edges go. An edge from a
# token to itself is an edge too.

# %%
weights = torch.tensor([[0.04, 0.94, 0.02], [0.10, 0.04, 0.86], [0.14, 0.76, 0.10]])
explore.graph(weights, figures.JANE)

# %% [markdown]
# ## Exercise 3.7 `attention_edges`
#
# Difficulty ●●○○○ · importance ●●○○○ · 10 minutes · 12 points
#
# weights is a float tensor `(T, T)`, rows are queries; tokens is a list of `T` strings, and a word may occur twice.
# Return a list of tuples `(query, key, weight)`: query and key are the token *strings*.
#
# - An edge is in the list if its weight is at least `threshold` (equal counts). Edges from a token to itself too.
# - Heaviest first. Where weights are equal: by the query's position, then by the key's position.
# - The weight is a Python `float`, and it is that float which is compared with `threshold`. (Why say so? A float32
#   0.7 is 0.699999988 as a Python float, which is less than 0.7.)


# %% nbgrader={"solution": "attention_edges"}
def attention_edges(weights, tokens, threshold):
    """The edges of the attention graph whose weight is at least threshold, heaviest first.

    weights (T, T) float32 or float64, tokens: list of T strings, threshold: float
    -> list of (query token, key token, weight as a Python float).
    Ties go by query position, then by key position.
    """
    ### BEGIN SOLUTION
    edges = []
    for i, row in enumerate(weights.tolist()):
        edges += [(tokens[i], tokens[j], weight) for j, weight in enumerate(row)]
    edges = [edge for edge in edges if edge[2] >= threshold]
    return sorted(edges, key=lambda edge: -edge[2])
    ### END SOLUTION


# %% nbgrader={"grade": "attention_edges"}
check(attention_edges)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# Two nested loops visit the edges in the order that ties ask for. `.tolist()` or `.item()` makes Python numbers.
# </details>
#
# <details><summary>Hint 2</summary>
#
# Python's `sorted` keeps the order of equal elements. Sort by the weight alone; a whole tuple as the key would compare
# the strings too.
# </details>

# %% [markdown]
# ## Where do the two matrices come from?
#
# From training, by gradient descent. Start with random $W_Q$ and $W_K$, say which edges you want, measure how far the
# scores are from that (a loss, lesson 6), go a small step downhill, repeat. Move the slider from step 0 on. The squares
# mark the edges we want.

# %%
explore.training()

# %% [markdown]
# After 60 steps jane looks at visits, visits at africa, africa at visits, and nobody looks at itself: this *trained*
# head gives every word a lower score with itself than with its target.
#
# *What is loose here.* We told the machine which edges to draw. No one does that for a real Transformer. It is told
# which *word* comes next, or how the sentence reads in French; billions of words of that, and the edges that help
# to answer are the ones that grow. You will watch it in lessons 11 and 12.

# %% [markdown]
# ## Exercise 3.8 `fixed_self_scores` + extra: find the bug
#
# Difficulty ●●○○○ · importance ●●●○○ · 6 minutes · 6 bonus points
#
# This function takes tokens `(..., T, D)` and weights `(d_k, D)`. It raises no error and its shape is right. Its numbers
# are not:
#
# ```python
# def self_scores(x, W_q, W_k):
#     Q = x @ W_q.T  # (..., T, d_k)
#     K = x @ W_k.T  # (..., T, d_k)
#     K_turned = K.reshape(*K.shape[:-2], K.shape[-1], K.shape[-2])  # (..., d_k, T)
#     return Q @ K_turned  # (..., T, T)
# ```
#
# The same slip was reported in published attention code
# ([Attention-Augmented-Conv2d, issue 21](https://github.com/leaderj1001/Attention-Augmented-Conv2d/issues/21)). Try the
# suspicious line on a small $K$ with the numbers 0 to 5, then write the function right:
# $S = (X W_q^\top)(X W_k^\top)^\top$, shape `(..., T, T)`.

# %%
torch.arange(6).reshape(3, 2), torch.arange(6).reshape(3, 2).reshape(2, 3)


# %% nbgrader={"solution": "fixed_self_scores"}
def fixed_self_scores(x, W_q, W_k):
    """Scores of every token of x against every token of x, unscaled.

    x (..., T, D), W_q and W_k (d_k, D), float32 or float64 -> (..., T, T), same dtype; rows are queries.
    """
    ### BEGIN SOLUTION
    Q = x @ W_q.T  # (..., T, d_k)
    K = x @ W_k.T  # (..., T, d_k)
    return Q @ K.transpose(-2, -1)  # (..., T, T)
    ### END SOLUTION


# %% nbgrader={"grade": "fixed_self_scores"}
check(fixed_self_scores)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# In the small example, is the first *row* of the second table the first *column* of the first table?
# </details>
#
# <details><summary>Hint 2</summary>
#
# Reshaping reads the numbers in their old order into new rows. You want two dimensions to trade places instead.
# </details>

# %% [markdown]
# ## Three questions
#
# Any honest attempt earns the points. The check explains every option, right or wrong.
#
# **quiz_1.** `X` has shape `(6, 16)`: six tokens of width 16. `W` has shape `(24, 16)`. Which one gives six queries?
#
# - a) `X @ W`
# - b) `W @ X`
# - c) `(W @ X.T).T`
# - d) `X @ W`, after making `W` square

# %% nbgrader={"solution": "quiz_1"}
quiz_1 = None  # "a", "b", "c" or "d"
### BEGIN SOLUTION
quiz_1 = "c"
### END SOLUTION

# %% nbgrader={"grade": "quiz_1"}
check(quiz_1=quiz_1)

# %% [markdown]
# **quiz_2.** In the *first* layer, with no position codes: you replace the third word of *jane visits africa* by another
# word. What happens to the score of query *jane* with key *visits*?
#
# - a) It changes, because attention depends on context.
# - b) It stays the same, but the share that *visits* gets of jane's attention may change.
# - c) It stays the same, and so does the share.

# %% nbgrader={"solution": "quiz_2"}
quiz_2 = None  # "a", "b" or "c"
### BEGIN SOLUTION
quiz_2 = "b"
### END SOLUTION

# %% nbgrader={"grade": "quiz_2"}
check(quiz_2=quiz_2)

# %% [markdown]
# **quiz_3.** $D = 512$ and $d_k = 64$. What is the largest rank that $W_Q^\top W_K$ can have?
#
# - a) 64
# - b) 512, its size
# - c) 8, the number of heads

# %% nbgrader={"solution": "quiz_3"}
quiz_3 = None  # "a", "b" or "c"
### BEGIN SOLUTION
quiz_3 = "a"
### END SOLUTION

# %% nbgrader={"grade": "quiz_3"}
check(quiz_3=quiz_3)

# %% [markdown]
# ## In your own words
#
# **Written question, 15 points, about eight sentences.** Choose two words and two sentences in which both occur, such
# that the first word should attend strongly to the second in one sentence and hardly in the other. (Not jane's.) Explain:
#
# 1. what a Markov chain that was counted from both sentences says about the pair;
# 2. what can differ between the two sentences in the *first* layer of a Transformer, and what cannot;
# 3. what earlier layers would have to do to the second word's vector so that the *score* differs, and how $W_Q$ and
#    $W_K$ turn that into a different number.

# %% [markdown] nbgrader={"written": "written_1"}
# **Model answer.** *bank* and *water*: "the bank of the river was under water" and "the bank sold its water shares".
# (1) The chain counts neighbors only. It has one number $P(\text{water} \mid \text{bank})$ for both sentences, here even
# 0, since *water* never comes right after *bank*. (2) In the first layer the score is
# $x_\text{bank}^\top W_Q^\top W_K\, x_\text{water}$. Both vectors are rows of the same embedding table, so without position
# codes the score is the same in both. With position codes it may differ, but for the place, not for the meaning. What
# can differ is the share: the other words of the sentence compete for bank's attention. (3) Earlier layers blend each
# vector with those of its neighbors. In the first sentence *water* takes in something of *river* and *under*, in the
# second something of *sold* and *shares*. $W_K$ can read such a feature, "wet place" say, into a channel of the key,
# and $W_Q$ can make *bank* seek that channel. Then the key, and with it the dot product, is larger in the first
# sentence, with the same two matrices.
#
# **Marking scheme.** A fitting pair and two sentences: 3. One fixed number in the chain, from neighbors only: 3. The
# same score in the first layer, with the reason (the same two vectors, position aside): 4, of which 2 for the reason.
# The shares may differ, by competition: 2. The vector changes by blending, and a channel of $W_K$ reads it while
# $W_Q$ seeks it: 3. No points off for language. The claim "attention recomputes $W_Q$ and $W_K$ for every sentence"
# costs 2: the matrices are fixed after training.

# %% [markdown]
# ## Further reading
#
# - Vaswani et al., [Attention Is All You Need](https://arxiv.org/abs/1706.03762) (2017), section 3.2: queries, keys, dot
#   products.
# - Bahdanau, Cho and Bengio, [Neural Machine Translation by Jointly Learning to Align and
#   Translate](https://arxiv.org/abs/1409.0473) (2014): the additive score.
# - Luong, Pham and Manning, [Effective Approaches to Attention-based Neural Machine
#   Translation](https://arxiv.org/abs/1508.04025) (2015): dot and general scores, section 3.1.
# - Pascal Poupart, [CS480/680 Lecture 19: Attention and Transformer Networks](https://www.youtube.com/watch?v=OyFJWRnt_AY):
#   attention as a database.
# - Andrej Karpathy, [Let's build GPT](https://www.youtube.com/watch?v=kCc8FmEb1nY) and [Introduction to Transformers,
#   Stanford CS25](https://youtu.be/XfpMkf4rD6E?t=1395): a sentence as a graph.
# - Sebastian Raschka, [Self-attention from scratch](https://sebastianraschka.com/blog/2023/self-attention-from-scratch.html):
#   the six tokens and the numbers of *is*.
# - [Transformers Explained Visually, part
#   2](https://towardsdatascience.com/transformers-explained-visually-part-2-how-it-works-step-by-step-b49fa4a64f34),
#   [Illustrated Guide to Transformers](https://www.youtube.com/watch?v=4Bdc55j80l8), [Getting meaning from
#   text](https://peltarion.com/blog/data-science/self-attention-video), [AI Summer on
#   attention](https://theaisummer.com/attention/): the same steps in pictures.
# - [Transformer model for language understanding](https://www.tensorflow.org/text/tutorials/transformer) (TensorFlow), [The
#   Annotated Transformer](http://nlp.seas.harvard.edu/2018/04/03/attention.html) (PyTorch), and Rowel Atienza's
#   [Transformer in PyTorch](https://www.youtube.com/watch?v=6PmIoCnqcFU): the same steps in code.
# - Mikolov et al., [word2vec's negative sampling](https://arxiv.org/abs/1310.4546) (2013), and Wan et al.,
#   [GE2E](https://arxiv.org/abs/1710.10467) (2017): vectors that are pulled together and pushed apart (lesson 1).
# - Olsson et al., [In-context Learning and Induction
#   Heads](https://transformer-circuits.pub/2022/in-context-learning-and-induction-heads/index.html) (2022):
#   previous-token heads in trained models.

# %% [markdown]
# ## Recap
#
# - A sentence is a graph. A token asks with its query, all tokens answer with their keys, and the score is a dot product.
# - $Q = XW_Q^\top$, $K = XW_K^\top$, $S = QK^\top$: a row for each query, a column for each key, in general not symmetric.
# - A hard SELECT has no slope to learn from, so attention gives shares.
# - $W_Q^\top W_K$ has rank at most $d_k$: that many independent patterns, however many words.
# - A Markov chain has one edge for each pair of words. Attention makes its edges anew: by competition in the first
#   layer, by vectors that know their sentence further up.
#
# **Next:** [lesson 4](../04_scaling/04_scaling.ipynb). The scores of *is* ran from −10.5 to 10.2. Is that much? Why does the
# formula divide by $\sqrt{d_k}$, and what goes wrong without it?
