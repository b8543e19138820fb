# %% [markdown]
# # 3. Query and key: who looks at whom
#
# **Goal:** make two small matrices that turn the words of a sentence into questions and offers, so that every word
# finds the words that matter to it. At the end you will have the first matrix product of attention, $QK^\top$, and you will
# know which tables of scores it can make and which it cannot.
#
# **Time:** about 115 minutes, of which 21 are for the two extras. A good place for a break is after exercise 3.4.

# %% tags=["setup"]
# (empty: the build puts the set-up cell here)

# %%
import torch
from torch import nn

from helpers import at_work, check, or_given
from helpers.drawing.transformer_map import transformer_map
from helpers.lessons.query_key import experiments, explore, figures

# %%
transformer_map("03_query_key")

# %% [markdown]
# Words are vectors now, and they know their places. We are at the door of the attention block: where words find each
# other.

# %% [markdown]
# ## You need
#
# - [Lesson 1](../01_token_embedding/01_token_embedding.ipynb): a word becomes an id, an id becomes a row of numbers.
# - [Lesson 2](../02_position/02_position.ipynb): the order of the words is added to these rows.
#
# Two questions to warm up. Answer before you unfold.
#
# <details><summary>Lesson 1: two vectors point the same way, one is twice as long. What are their cosine and their dot
# product?</summary>
#
# The cosine is 1: it sees directions only. The dot product is the product of the two lengths. Keep this difference in
# mind; it comes back below.
#
# </details>
#
# <details><summary>Lesson 2: you shuffle the tokens and add no position codes. What happens to the outputs of
# attention?</summary>
#
# They are shuffled in the same way, and nothing else changes: each token still meets the same other tokens.
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
# ## A sentence before the wiring
#
# Read *jane visits africa*. When your eyes rest on *jane*, which word do they want next, to know what jane is about?
# Probably *visits*. At *visits* you ask where, and look at *africa*. At *africa* you ask what happened there. Draw an
# arrow for every such look, and the sentence becomes a **graph**: tokens are its nodes, looks are its edges.

# %%
figures.wiring()

# %% [markdown]
# Every arrow starts at the token that asks, the **query**, and ends at the token that answers, the **key**. The
# numbers are those of the notes that this course grew from, which do not say where they come from: take the picture
# as a sketch of an idea.
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
# A database wants `key = query` exactly. A search engine cannot, so it takes the key that fits best, and "fits" is a
# number: the dot product. **On paper**, with three features (cooking, music, far away) and the query (2, 0, 1):
#
# | title | key |
# |---|---|
# | Rice in one pot | (3, 0, 0) |
# | Jazz for beginners | (0, 4, 0) |
# | Street food of Hanoi | (2, 0, 3) |
#
# *Which video wins by the dot product? And which by the cosine?* Work out the three dot products before you run the
# cell.

# %%
titles = ["Rice in one pot", "Jazz for beginners", "Street food of Hanoi"]
query = torch.tensor([2.0, 0, 1])  # (D,)
keys = torch.tensor([[3.0, 0, 0], [0, 4, 0], [2, 0, 3]])  # (N, D)
figures.video_search(titles, query, keys)

# %% [markdown]
# <details><summary>Answer</summary>
#
# The dot products are 2·3 = 6, then 0, then 2·2 + 1·3 = 7: Hanoi. By cosine rice would win, because its key points
# more nearly where the query points. The dot product also rewards a long key. Attention uses the dot product.
#
# </details>

# %% [markdown]
# ### Exercise 3.1 `hard_lookup`
#
# Difficulty 2 of 5 · Importance 3 of 5 · 5 minutes · 8 points
#
# A SELECT that takes the best match. One query $q$ of shape `(D,)`, keys `(N, D)`, values `(N, E)`:
#
# $$\text{hard\_lookup}(q, K, V) = V_{j^*}, \qquad j^* = \text{the first } j \text{ with the largest } q \cdot k_j$$
#
# The result has shape `(E,)`. On a tie the first key wins. The gradient must reach `values`; nothing is asked of the
# gradients at `query` and `keys`.


# %% nbgrader={"solution": "hard_lookup"}
def hard_lookup(query, keys, values):
    """Hard lookup: the value whose key has the largest dot product with the query, the first one on
    ties.

    query (D,), keys (N, D), values (N, E), float32 or float64 -> (E,), dtype of values.
    The gradient reaches values.
    """
    ### BEGIN SOLUTION
    matches = keys @ query  # (N,)
    return values[matches.argmax()]  # (E,)
    ### END SOLUTION


# %% nbgrader={"grade": "hard_lookup"}
check(hard_lookup)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# First make one number for each key. What shape does a matrix `(N, D)` times a vector `(D,)` have?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# You need the *place* of the largest number, not the number. PyTorch has `argmax` for it, which takes the first of equal
# ones. With the place you can pick a row of `values`.
#
# </details>
#
# Now turn a query among three keys and watch what comes back. *Nothing is asked of the gradient at the query. Why not?*

# %%
explore.search()

# %% [markdown]
# <details><summary>Answer</summary>
#
# The value is flat, jumps, and is flat again. On a flat piece the derivative is 0: a small change of the query changes
# nothing, so gradient descent gets no advice.
#
# </details>
#
# Attention therefore does not pick *one* value. It gives every key a share, a large one to a good match. How scores
# become shares is the subject of lessons 4 and 6, and what happens to the values that of lesson 7. This lesson stays
# with the scores.

# %% [markdown]
# ## Why not compare the words themselves?
#
# Let the embedding of each word have three features: person, action, place.
#
# $$x_\text{jane} = (1, 0, 0), \quad x_\text{visits} = (0, 1, 0), \quad x_\text{africa} = (0, 0, 1)$$
#
# Compare the embeddings directly and *jane* finds *jane*: the dot products are 1 with itself and 0 with the others. But
# jane did not ask "who is like me?". She asked "what is the action?". What a word **is** and what a word **seeks** are
# two things. So each word gets two more vectors, made by two matrices:
#
# $$q_t = W_Q\, x_t \quad \text{(what I seek)}, \qquad k_t = W_K\, x_t \quad \text{(what I offer)}$$
#
# Try these, with two channels, "action" and "place":
#
# $$W_Q = \begin{pmatrix} 3 & 0 & 2 \\ 0 & 3 & 0 \end{pmatrix}, \qquad
#   W_K = \begin{pmatrix} 0 & 1 & 0 \\ 0 & 0 & 1 \end{pmatrix}$$
#
# Read them column by column: *jane* seeks an action (3, 0), *visits* seeks a place (0, 3), *africa* seeks an action
# (2, 0). *jane* offers nothing here (0, 0), *visits* offers an action (1, 0), *africa* a place (0, 1).

# %%
X = torch.eye(3)  # (T=3, D=3): jane, visits, africa
W_q = torch.tensor([[3.0, 0, 2], [0, 3, 0]])  # (d_k=2, D=3)
W_k = torch.tensor([[0.0, 1, 0], [0, 0, 1]])  # (d_k=2, D=3)
figures.projections(X, W_q, W_k)

# %% [markdown]
# Tokens are rows, so each product is $X W^\top$. **On paper:** multiply each query with each key, nine dot products,
# before you run the next cell. *Which graph do they draw?*

# %%
figures.scores_of_graph(X, W_q, W_k)

# %% [markdown]
# <details><summary>Answer</summary>
#
# The graph of Figure 3.1: jane → visits 3, visits → africa 3, africa → visits 2. All other scores are 0. Two small
# matrices drew it.
#
# </details>
#
# *Where intuition stops.* We chose the features and named the channels. A trained network has neither: its features
# have no names, and "seeks" and "offers" are our words for two linear maps. The mathematics is only this: two
# projections and a dot product.

# %% [markdown]
# ### Exercise 3.2 `project`
#
# Difficulty 1 of 5 · Importance 5 of 5 · 5 minutes · 10 points
#
# All words at once. Rows of $X$ are tokens, $W$ is `(d_out, d_in)` as in `nn.Linear`:
#
# $$\text{project}(X, W) = X W^\top, \qquad (\ldots, d_\text{in}) \to (\ldots, d_\text{out})$$


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
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# The result has `d_out` numbers for each token, one for each *row* of `W`. A square `W` gives a right shape either way,
# so look at a number, not only at the shape.
#
# </details>
#
# **Think further.** Somebody hides a $W$ of shape `(2, 3)`, but projects any tokens that you hand over. *Which tokens
# would you hand over, to read $W$ off? How many do you need at least, if they are random?*

# %%
generator = torch.Generator().manual_seed(2)
hidden = torch.randint(-9, 10, (2, 3), generator=generator).float()  # (d_out=2, d_in=3)
ask = torch.eye(3)  # (N, d_in): change me
or_given(project)(ask, hidden), hidden

# %% [markdown]
# <details><summary>Answer</summary>
#
# Hand over the identity. Each row switches one input on, so what comes back is $W^\top$ itself. Three are needed: each
# token tells two numbers, and $W$ has six. Any three tokens will do that are linearly independent (none is a sum of
# multiples of the others); then `torch.linalg.solve(ask, answers).T` is $W$. Keep the identity in mind for exercise
# 3.5.
#
# </details>

# %% [markdown]
# ## One map, three notations
#
# Books and code write this map in three ways, and you will meet them all:
#
# | written | each token is | shape of the matrix | where |
# |---|---|---|---|
# | $X \cdot W$ | a row | (in, out) | the Transformer paper |
# | $X \cdot W^\top$ | a row | (out, in) | `nn.Linear`; **this course** |
# | $W \cdot x$ | a column | (out, in) | most textbooks on linear algebra |
#
# The same query of *africa*, three times:

# %%
A = torch.tensor([[3.0, 0], [0, 3], [2, 0]])  # (D=3, d_k=2): W_q stored the other way
layer = nn.Linear(3, 2, bias=False)
layer.load_state_dict({"weight": W_q})
print("X·W ", (X @ A)[2], "  X·Wᵀ", layer(X)[2].detach(), "  W·x", W_q.matmul(X[2]))

# %% [markdown]
# They differ in how the matrix is stored, and in whether a token is a column or a row. `nn.Linear` computes $y = xW^\top + b$;
# here there is no $b$.
#
# In every notation one rule holds: the inner width must be the width of a token. So $X \in \mathbb{R}^{T \times D}$,
# $W_Q, W_K \in \mathbb{R}^{d_k \times D}$ and $Q, K \in \mathbb{R}^{T \times d_k}$. Queries and keys must agree in
# width, because a dot product needs two vectors of the same length.

# %% [markdown]
# ## One query asks every key
#
# Now a sentence whose numbers a reader wrote down: *Life is short, eat dessert first*, with random embeddings of width
# 16 and random weights. The second token, *is*, asks; *dessert*, the fifth, answers.

# %%
torch.manual_seed(123)
embedding = nn.Embedding(6, 16)
x = embedding(torch.tensor([0, 4, 5, 2, 1, 3])).detach()  # (T=6, D=16)
W_query, W_key = torch.rand(24, 16), torch.rand(24, 16)  # (d_k=24, D=16) each
W_value = torch.rand(28, 16)  # (d_v=28, D=16)

# %%
q_is, k_dessert, v_dessert = W_query @ x[1], W_key @ x[4], W_value @ x[4]  # (24,), (24,), (28,)
q_is.dot(k_dessert)

# %% [markdown]
# The score is 2.3206. Values may be as wide as they like, here 28: nobody takes a dot product with them. Five more keys
# are waiting.

# %% [markdown]
# ### Exercise 3.3 `scores_for_one`
#
# Difficulty 1 of 5 · Importance 3 of 5 · 3 minutes · 4 points
#
# One query $q$ `(d_k,)` against all keys $K$ `(T, d_k)`:
#
# $$\omega_j = q \cdot k_j, \qquad \text{shape } (T,)$$
#
# Plain dot products: not divided, not normalized. It is half of `hard_lookup`, and it gets a name of its own.


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
# It is the first half of `hard_lookup`, before you looked for the winner.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# If you multiply entry by entry you get `(T, d_k)`. One step is missing: which dimension has to disappear?
#
# </details>

# %% [markdown]
# ## Does a word look at itself?
#
# **Predict before you run.** *is* asks six keys, its own among them. Nothing has been trained. *Which of the six scores
# will be the largest: that of* is *itself, or another?* Write your guess down.

# %%
figures.one_row(figures.scores_of_is(), figures.LIFE, "is")

# %% [markdown]
# <details><summary>Answer</summary>
#
# *eat* wins, with 10.238; *is* gives itself −4.540. The score of a token with itself is $x^\top W_Q^\top W_K\, x$.
# With two unrelated matrices this is a random number like any other. It need not be large, nor even positive.
#
# </details>
#
# *When would a token look at itself?* Here are five ways to make scores, counted over 400 random sentences of six
# tokens.

# %%
figures.looks_at_itself()

# %% [markdown]
# <details><summary>Answer</summary>
#
# It certainly does when $W_Q = W_K$ and all keys are equally long: then $q_t = k_t$, and no vector of that length has a larger dot
# product with $q_t$ than $q_t$ itself (Cauchy and Schwarz). With $W_Q$ and $W_K$ independent and drawn around 0 it is
# left to chance: one in six.
#
# </details>
#
# **Predict before you run.** And training, which nobody tells to look at itself? The course's translator has eight
# *heads* in its encoder, the part that reads English: eight pairs of $W_Q$ and $W_K$, each with a table of scores of
# its own. *Over 300 sentences, how often is a word's best match the word itself: as often as by chance, twice as often,
# or nearly always? And in a network of the same shape whose numbers are still random?*

# %%
experiments.own_first_choices()

# %% [markdown]
# <details><summary>Answer</summary>
#
# Twice as often: 0.27 of the words in the trained network, 0.12 to 0.13 in the random ones, and 0.13 by chance. So this
# training did change something. All eight heads lie above chance, and five of them above every untrained head that is
# printed here; and still three words of four look mostly at another one. Training lowers the loss of a task, and for
# that a word's own row is one source among others.
#
# </details>

# %% [markdown]
# ### Exercise 3.4 `attention_scores`
#
# Difficulty 2 of 5 · Importance 5 of 5 · 5 minutes · 16 points
#
# All queries at once: the *first MatMul* of attention.
#
# $$S = Q K^\top, \qquad S_{ij} = q_i \cdot k_j, \qquad (\ldots, T_q, d_k),\ (\ldots, T_k, d_k) \to (\ldots, T_q, T_k)$$
#
# A row for every query, a column for every key. The number of queries and the number of keys may differ. There may be
# no leading dimension, or one (a batch), or more (a batch of heads).


# %% nbgrader={"solution": "attention_scores"}
def attention_scores(Q, K):
    """Every query against every key, QKᵀ: eq. 1 of Vaswani et al. (2017) before scale and softmax.

    Q (..., T_q, d_k), K (..., T_k, d_k), float32 or float64 -> (..., T_q, T_k), same dtype.
    """
    ### BEGIN SOLUTION
    return Q @ K.transpose(-2, -1)  # (..., T_q, T_k)
    ### END SOLUTION


# %% nbgrader={"grade": "attention_scores"}
check(attention_scores)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# `@` multiplies the last two dimensions and carries all others along. Which shape must the second factor have?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Two dimensions of `K` trade places, and they must be the same two whether `K` has two, three or four dimensions. Count
# them from the end.
#
# </details>
#
# **Predict before you run.** The setting of Andrej Karpathy's lecture: a batch of 4 sentences, 8 tokens of width 32, a head of
# width 16. *What shape will the scores have? And if the sentences were twice as long?*

# %%
torch.manual_seed(1337)
B, T, C, head_size = 4, 8, 32, 16
Wk, Wq, Wv = (nn.Linear(C, head_size, bias=False) for _ in range(3))  # Wv waits for lesson 7
batch = torch.randn(B, T, C)  # (4, 8, 32)
scores = or_given(attention_scores)(Wq(batch), Wk(batch))  # (B, T_q, T_k)
print(tuple(scores.shape), f"  sentence 0, query 1, key 6: {scores[0, 1, 6].item():.4f}")

# %% [markdown]
# <details><summary>Answer</summary>
#
# `(4, 8, 8)`: in each sentence 8 queries meet 8 keys, however wide the tokens are. Double the sentence and there are
# four times as many scores.
#
# </details>

# %% [markdown]
# ## A word's arcs in a trained network
#
# Time for real queries and keys. The course's translator reads *jane visits africa in september*. Its heads stand in two
# *blocks*, four in each, one after the other. These are the vectors that come into the second block, and $W_Q$ and
# $W_K$ of one head there; your two functions make the scores. Slide
# along the words: *whom does each one look at, and do you see a pattern?*

# %%
tokens = "jane visits africa in september".split()
inside, W_q_head, W_k_head = figures.one_real_head()  # (T=5, D=64), (d_k=16, D=64), (16, 64)
Q, K = or_given(project)(inside, W_q_head), or_given(project)(inside, W_k_head)  # (5, 16) each
head_scores = or_given(attention_scores)(Q, K).detach()  # (5, 5)
explore.arcs(head_scores, tokens)

# %% [markdown]
# <details><summary>Answer</summary>
#
# *visits* looks at *jane*, *africa* at *visits* and *in* at *africa*. *september* wavers: its largest score is at
# *africa*, two back. So mostly this head looks at the word before. Nobody told it to. (Over 300 unseen sentences the
# word before is its first choice for 58 % of the words and gets 0.47 of the weight, where a random network gives 0.13.)
#
# </details>
#
# **Predict before you run.** *visits → jane*: the verb finds its subject. It is tempting to say why: French verbs have
# endings, and the ending depends on the subject. So let us take this head away (its share of the output is set to zero)
# and translate 300 sentences that nobody trained on. *How many will go wrong: none, some fifty, or nearly all?*

# %%
experiments.silence_heads()

# %% [markdown]
# <details><summary>Answer</summary>
#
# None. The loss hardly moves, and all 300 come out word for word. Head 1 of the same block is another matter: without it 53 of
# 300 go wrong. So the story was too good: in this little language every English verb has a single French form, and
# no verb needs its subject. (Adjectives do, as in *jane est fatiguée*, *tom est fatigué*; they too come out right
# without this head.) A head that looks where you would look is not yet a head that is needed. To know that, take
# it away.
#
# </details>
#
# The table is not symmetric: visits → jane is 39.9, jane → visits only 24.6. Looking is not mutual. And the scores run
# from −21 to 44. Whether that is much is a question for lesson 4.

# %% [markdown]
# ## A published table, looked at closely
#
# For *I like to eat apples*, notes on Rowel Atienza's *Transformer in PyTorch* print the table below as the output of
# $\text{softmax}(QK^\top/\sqrt{d_k})$. A softmax, as in lesson 2, turns each row into positive shares that add up
# to 1. And $QK^\top$ has $q_i \cdot k_j$ in row $i$, column $j$. *Does the table keep these two promises? What is it
# really?*

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
figures.five_by_five(table)

# %% [markdown]
# <details><summary>Answer</summary>
#
# - **It is no softmax.** The rows add up to 1.45, 2.00, 2.20, 2.50 and 1.95.
# - **It is no general $QK^\top$.** It is symmetric: *I* → *like* equals *like* → *I*. But $q_i \cdot k_j$ and
#   $q_j \cdot k_i$ are two different numbers, unless $W_Q$ and $W_K$ happen to fit together (as when they are equal).
# - **So what is it?** A diagonal of exactly 1 and symmetry: that is what *cosines* between the words look like, without
#   any $W_Q$ and $W_K$. It is a similarity table, and a good picture of one.
#
# </details>

# %% [markdown]
# ## Is there only one way to relate two vectors?
#
# The dot product is the cosine *times both lengths*, $q \cdot k = \lVert q \rVert\, \lVert k \rVert \cos(q, k)$, so a
# key can shout. And there are other scores in the literature:
#
# | score | formula | learns | from |
# |---|---|---|---|
# | cosine | $q \cdot k \,/\, (\lVert q \rVert \lVert k \rVert)$ | nothing | search engines |
# | dot | $q \cdot k$ | nothing | Luong et al. 2015; Transformer |
# | bilinear | $q^\top M k$ | $M$ | Luong et al. 2015 ("general") |
# | additive | $v^\top \tanh(W_1 q + W_2 k)$ | $v, W_1, W_2$ | Bahdanau et al. 2014 |
#
# Each panel colors the plane of keys by the score that a key there gets. The arrow is the query. The two dots are a
# key and the same key twice as long; their scores are in the title. Change the query's length: *which panel does not
# move at all?*

# %%
explore.four_scores()

# %% [markdown]
# <details><summary>Answer</summary>
#
# Cosine: it ignores length. Dot and bilinear scores are flat sheets, tilted in different directions; for the bilinear one
# the best direction is not the query's own. The additive score bends.
#
# </details>
#
# Seen from the tokens, self-attention is of the bilinear kind:
#
# $$q_i \cdot k_j = (W_Q x_i) \cdot (W_K x_j) = x_i^\top \, \underbrace{W_Q^\top W_K}_{M,\ (D, D)} \, x_j$$

# %% [markdown]
# ## What a few channels can hold
#
# So one matrix $M = W_Q^\top W_K$ decides who looks at whom. For our three words,
#
# $$M = W_Q^\top W_K = \begin{pmatrix} 3 & 0 \\ 0 & 3 \\ 2 & 0 \end{pmatrix}
#   \begin{pmatrix} 0 & 1 & 0 \\ 0 & 0 & 1 \end{pmatrix} =
#   \begin{pmatrix} 0 & 3 & 0 \\ 0 & 0 & 3 \\ 0 & 2 & 0 \end{pmatrix}.$$
#
# Every row of $M$ is a mixture of the two rows of $W_K$: three times the first, three times the second, twice the first.
# The smallest number of rows from which all the others can be mixed is called the **rank** of a matrix. Here it is 2,
# and in
# general **at most** $d_k$, as $W_K$ has no more rows. In the Transformer paper $M$ is 512 by 512 and goes through
# $d_k = 64$; in our translator it is 64 by 64 and $d_k = 16$:

# %%
M = W_q_head.T @ W_k_head  # (D=64, D=64)
torch.linalg.matrix_rank(M), torch.linalg.matrix_rank(W_q.T @ W_k)  # of the translator's head, and of ours by hand

# %% [markdown]
# What does this cost? Give each user of a shop a query and each product a key, and let the score be how much this user
# wants that product. *Do more products need more channels?* Choose a table, then find the smallest $d_k$ that misses
# nothing.

# %%
explore.channels()

# %% [markdown]
# <details><summary>Answer</summary>
#
# With three tastes, three channels hold all twelve products, and would hold twelve thousand. With a different favorite
# for each user it takes all twelve. What counts is not the number of products, but how many independent patterns there
# are: the rank. (The closest table of rank $d_k$ comes from the singular value decomposition, a theorem of Eckart and
# Young, 1936.)
#
# </details>
#
# **From a graph to its matrices.** Turn the question around: you know the scores that you want, and look for $W_Q$ and
# $W_K$. When the tokens are one-hot, $X = I$, the scores *are* $M$. So any table of rank $r$ can be cut into two
# matrices of $r$ rows, and the singular value decomposition does the cutting: it writes
# the table as a sum of patterns, each a column times a row times a size, the largest first. Here for the table above, which had
# jane → visits 3, visits → africa 3, africa → visits 2:

# %%
wanted = torch.tensor([[0.0, 3, 0], [0, 0, 3], [0, 2, 0]])  # (T_q=3, T_k=3)
U, sizes, Vh = torch.linalg.svd(wanted)  # (3, 3), (3,), (3, 3): wanted = U diag(sizes) Vh
found_W_q, found_W_k = (U * sizes)[:, :2].T, Vh[:2]  # (2, 3) each: the two patterns that are there
found_W_q.T @ found_W_k, sizes

# %% [markdown]
# Two patterns, the third size is 0. These are not the matrices that we wrote by hand, and yet they draw
# the same table: only the product $M$ can be seen from outside.
#
# That is about the whole table of scores. But a graph asks for less: that in each row *the right key wins*. How many
# channels does that take? The next two exercises let you find out.

# %% [markdown]
# ### Exercise 3.5 `previous_token_weights`
#
# Difficulty 4 of 5 · Importance 4 of 5 · 15 minutes · 20 points
#
# A puzzle. The head of the translator looked mostly at the word before. Make one that always does. Token $t$ is the
# one-hot vector of its position: `x = torch.eye(max_len)`. Choose by hand $W_q$ and $W_k$, both float32 of shape
# `(d, max_len)` with any `d` you like, such that every query $t \ge 1$ scores the key before it strictly higher than
# every other key:
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
# You found out after exercise 3.2 what a projection of the identity is. So the query of token $t$ is a *column* of
# `W_q`, and the key of token $j$ a column of `W_k`. You may choose all columns freely.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Let the keys be as different as can be, each with a direction of its own. Then which direction must the query of
# token $t$ have?
#
# </details>
#
# Such a *previous-token head* is no toy. Olsson et al. (2022) found them in trained language models, and lesson 12 builds on
# yours.
#
# **Think further.** With one channel for each token this is easy. *What is the smallest number of channels that
# works for three tokens? For a thousand?* Guess; the next exercise and the circle after it tell.

# %% [markdown]
# ### Exercise 3.6 `two_channel_graph`
#
# **Extra** · Difficulty 4 of 5 · Importance 3 of 5 · 15 minutes · 12 bonus points
#
# Any graph, with two channels. `looks_at` is a LongTensor `(T,)` with $2 \le T \le 50$: token $t$ looks at token
# `looks_at[t]`, which may be itself, and several may look at one. For *jane visits africa* it is `[1, 2, 1]`. Give
# float32 weights of exactly shape `(2, T)`, all finite, with which, for `x = torch.eye(T)`,
#
# $$q_t \cdot k_{\text{looks\_at}[t]} > q_t \cdot k_j \quad \text{for all } j \ne \text{looks\_at}[t],
# \qquad t = 0, \ldots, T - 1,$$
#
# strictly, in float32. Any weights that do this are right.
#
# One channel is not enough in general: a number times a number is largest at the largest key or at the smallest, so only
# two keys can ever win. *In the plane, where would you put the keys so that each can win?*


# %% nbgrader={"solution": "two_channel_graph"}
def two_channel_graph(looks_at):
    """Weights of a head with two channels in which, for x = torch.eye(T), token t looks at token
    looks_at[t].

    looks_at LongTensor (T,), 2 <= T <= 50 -> (W_q, W_k), float32, each (2, T), finite.
    """
    ### BEGIN SOLUTION
    angle = 2 * torch.pi * torch.arange(len(looks_at), device=looks_at.device) / len(looks_at)  # (T,)
    W_k = torch.stack((angle.cos(), angle.sin()))  # (2, T): keys on a circle
    return W_k[:, looks_at], W_k
    ### END SOLUTION


# %% nbgrader={"grade": "two_channel_graph"}
check(two_channel_graph)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# Draw some keys as dots on paper, and a query as an arrow. The winner is the dot that lies farthest in the direction of
# the arrow. Which dots can never win, wherever the arrow points?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# A dot between two others can never win. On which curve is no dot between others? Once every key can win, ask for which
# arrow it does; then let each token take the arrow of the key that it wants.
#
# </details>
#
# Your weights for a circle of friends, in which each looks at the next one. *What happens to the margin between the best
# score and the second best as the circle grows?* (All your queries and keys are made at most 1 long, to compare.)

# %%
experiments.margins(two_channel_graph)

# %% [markdown]
# ## Two channels on a circle
#
# *This section shows an answer to exercise 3.6. Try that first.*
#
# On a circle every key is its own best match: all are equally long, so by Cauchy and Schwarz an arrow toward a key
# finds that key. Two channels are enough for **any** graph in which each token looks at one other, over any number of
# tokens, even a thousand, as long as every token has an axis of its own, as here. (One channel is
# enough where only two keys must win: looking one back in three tokens.) *So why do real heads have 64?*
# Add keys and watch the margin, the distance between the best score and the second.

# %%
explore.circle()

# %% [markdown]
# <details><summary>Answer</summary>
#
# The price is the margin: $1 - \cos(2\pi/n)$ with $n$ keys, which is 0.19 for 10 keys, 0.002 for 100, 0.00002 for a
# thousand. What you save in channels you pay in precision or in huge weights. And the graph is only *who wins*: with
# two channels you cannot also choose how much the second best gets. The table of all scores has rank 2 at most.
#
# </details>
#
# So there are two answers to "how many channels?". For the whole table it is the rank. For the winners alone it is two.
# Softmax stands close to the first. Its shares fix a row of scores, but for one number that may be added to the whole
# row: whoever wants exact shares saves one channel at most.

# %% [markdown]
# ## The Markov chain: one fixed edge
#
# There is an older machine that says which word goes with which: count, in a text, how often $b$ comes right after $a$.
# Divide by how often anything comes after $a$. That is a **Markov chain**, $P(\text{next} = b \mid \text{current} = a)$.
#
# **On paper**, for the text *jane visits africa jane loves visits*: *what is* $P(\text{visits} \mid \text{jane})$?
# And the row of *visits*? Work them out before you run the cell.

# %%
chain = torch.tensor([[0, 0.5, 0, 0.5], [0, 0, 1, 0], [1, 0, 0, 0], [0, 1, 0, 0]])  # (V, V)
figures.transitions(chain, ["jane", "visits", "africa", "loves"])

# %% [markdown]
# <details><summary>Answer</summary>
#
# *jane* is followed twice, once by *visits* and once by *loves*: 1/2. *visits* occurs twice, but only once does
# anything come after it: *africa*, with probability 1.
#
# </details>

# %% [markdown]
# ### Exercise 3.7 `bigram_probabilities`
#
# Difficulty 3 of 5 · Importance 3 of 5 · 12 minutes · 14 points
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
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# The row sums of your table of counts say how often each token is *followed*. That is not always how often it
# *occurs*. What do you do with a row whose sum is 0?
#
# </details>
#
# Your chain reads 2,000 sentences of the language that the translator speaks. *What comes after* jane?

# %%
experiments.chain_of_the_course(bigram_probabilities)

# %% [markdown]
# After *visits* a place, after *jane* nothing in particular: one row for each word, and the same in every sentence.

# %% [markdown]
# ## The same pair in two sentences
#
# You and a colleague: at work you are the boss; at the judo club in the evening, your colleague is the master. The same
# two people, two relations. The chain cannot say this: it has **one** edge from *jane* to *visits*, 0.5, wherever the two meet.
#
# Take our $W_Q$ and $W_K$ again, and let *loves* be a strong action, $x_\text{loves} = (0, 2, 0)$. In *jane loves
# visits*, *visits* is a noun. **Predict before you run:** *does the score jane → visits change? Does the winner?*

# %%
figures.two_sentences(W_q, W_k, 0.5)

# %% [markdown]
# <details><summary>Answer</summary>
#
# The **score** jane → visits is 3 in both. It must be: a score is made of two vectors, and in the first layer these are
# the same two. But jane's largest score is now *loves*, 6.
#
# </details>
#
# What differs between the sentences, then?
#
# - In the first layer the **competition**: shares are made from all scores of the row, so *loves* takes attention away
#   from *visits*. And the **position**, if position codes are added: then the two *visits* are not quite the same
#   vector.
# - From the second layer on, and more important, the vectors themselves: they have been blended with their
#   company. Suppose a first layer blends each word half and half with the word before it. Then *visits* is
#   $\frac12(0, 1, 0) + \frac12(1, 0, 0) = (0.5, 0.5, 0)$ in the first sentence, and
#   $\frac12(0, 1, 0) + \frac12(0, 2, 0) = (0, 1.5, 0)$ in the second. *jane* has no word before her, and still asks
#   with $(3, 0)$. Which scores does she give to the two?
#
# <details><summary>Answer</summary>
#
# The keys of *visits* are $W_K\,(0.5, 0.5, 0) = (0.5, 0)$ and $W_K\,(0, 1.5, 0) = (1.5, 0)$, so the scores are 1.5
# and 4.5. The same pair and the same two matrices, but two numbers: the matrices act on a vector that knows its
# sentence. Lessons 9 and 13 measure this; lesson 12 sets a trained Transformer against a Markov chain.
#
# </details>

# %% [markdown]
# ## A graph from a table of weights
#
# Back to the arrows. Suppose scores have become shares. The first figure gave only the largest one of each row; here
# the rest is filled in so that each row adds up to 1. Move the threshold. *From which threshold on is the graph that of
# Figure 3.1?*

# %%
weights = torch.tensor([[0.04, 0.94, 0.02], [0.10, 0.04, 0.86], [0.14, 0.76, 0.10]])  # (T_q, T_k)
explore.graph(weights, figures.JANE)

# %% [markdown]
# <details><summary>Answer</summary>
#
# From just above 0.14, the heaviest edge that is not in it (africa → jane), up to 0.76. An edge from a token to itself
# is an edge too.
#
# </details>

# %% [markdown]
# ### Exercise 3.8 `attention_edges`
#
# Difficulty 2 of 5 · Importance 2 of 5 · 10 minutes · 8 points
#
# weights is a float tensor `(T, T)`, rows are queries; tokens is a list of `T` strings, and a word may occur twice.
# Return a list of tuples `(query, key, weight)`: query and key are the token *strings*, the weight is a Python `float`.
#
# - An edge is in the list if its weight is at least `threshold` (equal counts). Edges from a token to itself too.
# - Heaviest first. Where weights are equal: by the query's position, then by the key's position.
#
# Nothing hangs on the last bit of a weight: you may compare tensors or Python numbers.


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
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Python's `sorted` keeps the order of equal elements; torch's `sort` and `argsort` do so only with `stable=True`. Sort by
# the weight alone; a whole tuple as the key would compare the strings too.
#
# </details>

# %% [markdown]
# ## Where do the two matrices come from?
#
# From training, by gradient descent. Start with random $W_Q$ and $W_K$, say which edges you want, measure how far the
# scores are from that (a loss, lesson 6), go a small step downhill, repeat. The squares mark the edges we want. *After
# how many steps does every word look where it should?*

# %%
explore.training()

# %% [markdown]
# <details><summary>Answer</summary>
#
# After 6 steps already, in this run. The loss goes on falling from there: it wants the right key to win by a wide margin.
# And after 60 steps no word looks at itself.
#
# </details>
#
# *What is loose here.* We told the machine which edges to draw. No one does that for a real Transformer. It is told
# which *word* comes next, or how the sentence reads in French, and edges grow along the way: some that are needed for the
# answer, and some, such as *visits → jane* above, that the network can do without. You will watch it in lessons 11 and 12.

# %% [markdown]
# ### Exercise 3.9 `fixed_self_scores`
#
# **Extra** · **Find the bug** · Difficulty 2 of 5 · Importance 3 of 5 · 6 minutes · 6 bonus points
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

    x (..., T, D), W_q and W_k (d_k, D), float32 or float64 -> (..., T, T), same dtype; rows are
    queries.
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
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Reshaping reads the numbers in their old order into new rows. You want two dimensions to trade places instead.
#
# </details>
#
# The head of the arcs once more, by the published scores and by yours:


# %%
def published_self_scores(x, W_q, W_k):
    Q, K = x @ W_q.T, x @ W_k.T  # (..., T, d_k)
    return Q @ K.reshape(*K.shape[:-2], K.shape[-1], K.shape[-2])  # (..., T, T)


experiments.published_and_repaired(fixed_self_scores, published_self_scores)

# %% [markdown]
# ## At work
#
# Your `project` and `attention_scores` in the course's translator, in all its heads at once.

# %%
at_work(project, attention_scores)

# %% [markdown]
# And here is the graph that the head from before draws, with your `attention_edges`: its scores are divided by 4 (lesson
# 4 says why) and go through a softmax, and every edge of at least a third is kept.

# %%
figures.drawn_by(attention_edges, torch.softmax(head_scores / 4, dim=-1), tokens, 1 / 3)

# %% [markdown]
# **Predict before you run.** The published bug of exercise 3.9 raises no error. *What does it cost the translator? Will
# you see it in one sentence?*


# %%
def published_scores(Q, K):
    return Q @ K.reshape(*K.shape[:-2], K.shape[-1], K.shape[-2])  # (..., T_q, T_k)


at_work(attention_scores=published_scores)

# %% [markdown]
# <details><summary>Answer</summary>
#
# Everything: 5.31 nats a word, where 0.00016 is right, and not one sentence comes out. *jane visits africa in
# september* becomes *l' voyage en septembre*. The keys have been cut into pieces and glued together anew, so no query
# meets a key that it knows.
#
# All this is the cost to a network that was trained without the bug. One that is *trained* with it learns to live with
# it: two trainings ended at 0.016 and 0.015 nats, and 99 and 95 of 100 sentences of a batch came out right. Now the bug
# is much harder to see. But how the keys are cut depends on how far the batch is padded. One at a time, without padding,
# only 40 and 45 of the same hundred came out right, and with the first of the two *jane visits africa in september* ends
# in India. (With the sound network all hundred come out right, in a batch and one at a time.)
#
# </details>

# %% [markdown]
# ### Quiz 3.1
#
# `X` has shape `(6, 16)`: six tokens of width 16. `W` has shape `(24, 16)`. Which one gives six queries?
#
# - **a** `X @ W`
# - **b** `W @ X`
# - **c** `(W @ X.T).T`
# - **d** `X @ W`, after making `W` square

# %% nbgrader={"solution": "quiz_1"}
quiz_1 = None  # "a", "b", "c" or "d"
### BEGIN SOLUTION
quiz_1 = "c"
### END SOLUTION

# %% nbgrader={"grade": "quiz_1"}
check(quiz_1=quiz_1)

# %% [markdown]
# ### Quiz 3.2
#
# In the *first* layer, with no position codes, you replace the third word of *jane visits africa* by another word. What
# happens to the score of query *jane* with key *visits*?
#
# - **a** It changes, because attention depends on context.
# - **b** It stays the same, but the share that *visits* gets of jane's attention may change.
# - **c** It stays the same, and so does the share.

# %% nbgrader={"solution": "quiz_2"}
quiz_2 = None  # "a", "b" or "c"
### BEGIN SOLUTION
quiz_2 = "b"
### END SOLUTION

# %% nbgrader={"grade": "quiz_2"}
check(quiz_2=quiz_2)

# %% [markdown]
# ### Quiz 3.3
#
# $D = 512$ and $d_k = 64$. What is the largest rank that $W_Q^\top W_K$ can have?
#
# - **a** 64
# - **b** 512, its size
# - **c** 8, the number of heads

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
# Choose two words and two sentences in which both occur, such that the first word should attend strongly to the second
# in one sentence and hardly in the other. (Not jane's.) Explain what a Markov chain that was counted from both
# sentences says about the pair; what can differ between the two sentences in the *first* layer of a Transformer, and
# what cannot; and what earlier layers would have to do to the second word's vector so that the *score* differs, and how
# $W_Q$ and $W_K$ turn that into a different number.
#
# <details><summary>For those who learn alone: what a good answer has</summary>
#
# - The chain has one fixed number for the pair, from neighbors only.
# - In the first layer the score is the same, with the reason (the same two vectors, position aside); the share may
#   differ, by competition.
# - Blending changes the vector; a channel of $W_K$ reads the change and $W_Q$ seeks it. The matrices stay the same.
#
# </details>

# %% [markdown] nbgrader={"written": "written_1"}
# <details><summary>Model answer and marking scheme</summary>
#
# **Model answer.** *bank* and *water*: "the bank of the river was under water" and "the bank sold its water shares".
# The chain counts neighbors only. It has one number $P(\text{water} \mid \text{bank})$ for both sentences, here even
# 0, since *water* never comes right after *bank*. In the first layer the score is
# $x_\text{bank}^\top W_Q^\top W_K\, x_\text{water}$. Both vectors are rows of the same embedding table, so without position
# codes the score is the same in both. With position codes it may differ, but for the place, not for the meaning. What
# can differ is the share: the other words of the sentence compete for bank's attention. Earlier layers blend each
# vector with those of its neighbors. In the first sentence *water* takes in something of *river* and *under*, in the
# second something of *sold* and *shares*. $W_K$ can read such a feature, "wet place" say, into a channel of the key,
# and $W_Q$ can make *bank* seek that channel. Then the key, and with it the dot product, is larger in the first
# sentence, with the same two matrices.
#
# **Marking scheme (15).** A fitting pair and two sentences: 3. One fixed number in the chain, from neighbors only: 3.
# The same score in the first layer, with the reason (the same two vectors, position aside): 4, of which 2 for the
# reason. The shares may differ, by competition: 2. The vector changes by blending, and a channel of $W_K$ reads it while
# $W_Q$ seeks it: 3. No points off for language. The claim "attention recomputes $W_Q$ and $W_K$ for every sentence"
# costs 2: the matrices are fixed after training.
#
# </details>

# %% [markdown]
# ## From the notes this course grew from
#
# <details><summary>Claims about queries and keys, looked at</summary>
#
# **The table of three looks.** 0.94, 0.86 and 0.76 come from an answer on Stack Exchange that explains Q and K as an
# inquiry system. It does not say where the numbers are from. Lesson 13 measures a real network and finds a head that
# gives jane → visits 0.935 and visits → africa 0.893, among 72 heads and in a sentence of three words, where some head
# fits almost any story. The answer's picture of the boss and the master is in this lesson; its "memory" of context is
# what Figure 3.10 takes apart: the score cannot know the sentence before the vectors do.
#
# **Connections by "co-occurrences of them in billions of sequences".** That is how the same answer says that a Transformer
# gets its wires. It describes a count, and a count is what the Markov chain of this lesson makes: one edge for a pair of
# words. Training counts nothing. It moves two matrices downhill on a loss, and the wires are made anew in each sentence. (In
# the answer's code T may be "512 for BERT": that is the most tokens that BERT takes, its table of places has 512 rows.)
#
# **Self-attention** is "an attention mechanism relating different positions of a single sequence in order to compute a
# representation of the sequence", in the words of Vaswani et al. that notes on the Transformer's parts quote. The scores
# of this lesson are the relating; lesson 7 computes the representation. The notes compare stacked heads with a receptive
# field, "but in terms of pairs". One layer already sees every position, so what grows with depth is not how far a word
# sees but what it sees there: words that have already seen others.
#
# **Does a word attend to itself?** Notes made from Sebastian Raschka's
# [Self-attention from scratch](https://sebastianraschka.com/blog/2023/self-attention-from-scratch.html), from which the
# numbers of *is* come, say that *is* does not find itself "because our Q and K networks are not trained yet". With
# unrelated $W_Q$ and $W_K$ it is chance. Training changed it in our translator from 0.13 to 0.27: more often than by chance,
# and still mostly another word. Raschka's weights come from `torch.rand`, all positive, so both projections mostly measure
# the sum of a token's numbers, and 0.34 of the tokens find themselves in Figure 3.6. That is a fact about `rand`, not
# about attention. (The scores of *is* in the notes: −7.0847 −4.5398 3.9887 10.2379 2.3206 −10.5434. Your machine may
# differ in the last digit. The article draws its matrices after one more seed, so it prints others.)
#
# **"There is probably only one way to express relationship between elements in NN: cosine similarity."** The same notes. The
# dot product is no cosine, and the explorer of this lesson shows four scores. "The more products we have, the more channels
# we need" is true of ranks, not of products. That users and products are "jointly learned", as the notes go on, is
# right: only the product of the two tables meets the data, so neither can be learned without the other.
#
# **Queries as the output of "an FFN with arbitary output channels"**, again the same notes. Fair: `W.shape[0]` channels out,
# `W.shape[1]` in, the same for every token. But it is one layer without a nonlinearity, a *linear* layer. The feed-forward
# network of lesson 9 is more.
#
# **The widths.** The walk-through of *I like to eat apples* has $X$ of $N \times M$ and all matrices $M \times M$: the
# special case $D = d_k = M$, in which a missing transpose raises no error. Its 5×5 table is Figure 3.7; its own note
# says that one would still divide by $\sqrt{d_k}$ and apply softmax, so the table is what goes *in* (lesson 6: *I* gets
# 0.377 0.170 0.153 0.153 0.146). Notes on the Transformer's parts, after AI Summer (below), write $X \in \mathbb{R}^{N \times d_k}$ with
# $W^Q, W^K \in \mathbb{R}^{d_k \times d_{model}}$. Read strictly, $X \cdot W^\top$ does not exist, and $X \cdot W$ maps
# *up*, although the text wants fewer dimensions. One symbol repairs it: $X \in \mathbb{R}^{N \times d_{model}}$. Their
# legend calls $d_k$ the "matrix size": it is the width of one query or key, one side of $W^Q$. And in *Life is short*
# $d_k = 24$ is wider than $D = 16$. Nothing forbids that.
#
# **Notations.** The walk-through writes $X \cdot W$, the answer $X \cdot W^\top$ (as $y = xW^\top + b$ of `nn.Linear`),
# Raschka $W \cdot x$ with tokens as columns: `W_key.matmul(x.T).T` is `x @ W_key.T`.
#
# </details>

# %% [markdown]
# ## Recap
#
# - A sentence is a graph. A token asks with its query, all tokens answer with their keys, and the score is a dot product.
# - $Q = XW_Q^\top$, $K = XW_K^\top$, $S = QK^\top$: a row for each query, a column for each key, in general not symmetric.
# - A hard SELECT has no slope to learn from, so attention gives shares.
# - $W_Q^\top W_K$ has rank at most $d_k$: that many independent patterns in the table of scores, however many words. For
#   the winners alone two channels are enough, where each token has an axis of its own, at the price of the margin.
# - A Markov chain has one fixed edge for each pair of words. Attention makes its edges anew: by competition in the first
#   layer, by vectors that know their sentence further up.
#
# `progress()` in a new cell shows what you have done so far, over all lessons (`from helpers import progress`).

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
#   [GE2E](https://arxiv.org/abs/1710.10467) (2018): vectors that are pulled together and pushed apart (lesson 1).
# - Olsson et al., [In-context Learning and Induction
#   Heads](https://transformer-circuits.pub/2022/in-context-learning-and-induction-heads/index.html) (2022):
#   previous-token heads in trained models.
#
# **Next:** [lesson 4](../04_scaling/04_scaling.ipynb). The scores of *is* ran from −10.5 to 10.2. Is that much? Why does the
# formula divide by $\sqrt{d_k}$, and what goes wrong without it?
