# %% [markdown]
# # 3. Query and key: which token attends to which
#
# **In this lesson** you'll compute the first matrix product of attention, $QK^\top$. Two small matrices turn every word
# of a sentence into a query and a key, and the dot products of queries and keys determine which words attend to which.
#
# **Core:** about 75 minutes. A good moment for a break is after exercise 3.3.

# %% tags=["setup"]
# (empty: the build puts the set-up cell here)

# %%
import torch
from torch import nn

from helpers import at_work, check, or_finished
from helpers.drawing.transformer_map import transformer_map
from helpers.lessons.query_key import experiments, explore, figures

# %%
transformer_map("03_query_key")

# %% [markdown]
# We've reached the attention block, where the words exchange information.
#
# ## What you need
#
# You need word vectors and the dot product from [lesson 1](../01_token_embedding/01_token_embedding.ipynb), positions from [lesson 2](../02_position/02_position.ipynb), and the conventions of [lesson 0](../00_start_here/00_start_here.ipynb). Here are two questions to warm up; answer each one before you unfold it.
#
# <details><summary>Lesson 1: two vectors have the same direction, but one is twice as long. What are their cosine and
# their dot product?</summary>
#
# The cosine is one, whereas the dot product is the product of the two lengths.
#
# </details>
#
# <details><summary>Lesson 2: you shuffle the tokens and add no position vectors. What happens to the outputs of
# attention?</summary>
#
# They are shuffled in the same way, and nothing else changes.
#
# </details>

# %% [markdown]
# ## A sentence as a graph
#
# To understand *jane* in *jane visits africa*, you probably want to know what she does, so you look for *visits*. At
# *visits* you ask *where* and find *africa*, and at *africa* you ask what happens there. If we draw an arrow for each
# of these questions, the sentence becomes a **graph**, whose nodes are the tokens and whose edges are the arrows.

# %%
figures.wiring()

# %% [markdown]
# Each arrow starts at the token that asks (the **query**) and ends at the token that answers (the **key**). The number
# on each arrow is an attention weight, made up for an example on the web. A Transformer starts with the upper picture,
# an unconnected row of tokens, and computes the lower one separately for every sentence. Let's see how.

# %% [markdown]
# ## Attention as a soft search
#
# When you type a **query** into a video search, the search engine compares it with the **key** of every video, that is,
# its title and description, and returns a **value**, the video itself. A database, with
# `SELECT value FROM videos WHERE key = query`, requires an exact match, whereas a search engine takes the key that fits
# best, measured for example by a dot product. **On paper:** with three features (cooking, music, far away), the query
# is $(2, 0, 1)$ and the keys are
#
# | title | key |
# |---|---|
# | Rice in one pot | (3, 0, 0) |
# | Jazz for beginners | (0, 4, 0) |
# | Street food of Hanoi | (2, 0, 3) |
#
# Which video wins by the dot product, and which one would win by the cosine?

# %%
titles = ["Rice in one pot", "Jazz for beginners", "Street food of Hanoi"]
query = torch.tensor([2.0, 0, 1])  # (D,)
keys = torch.tensor([[3.0, 0, 0], [0, 4, 0], [2, 0, 3]])  # (N, D)
figures.video_search(titles, query, keys)

# %% [markdown]
# The dot products are $6$, $0$ and $7$, so Hanoi wins. By the cosine, rice would win, because only the dot product,
# which attention uses, rewards a long key.

# %% [markdown]
# ### Exercise 3.1 `hard_lookup`
#
# Difficulty 2 of 5 · Importance 3 of 5 · 5 minutes · 12 points
#
# Return the value of the best match:
#
# $$\text{hard\_lookup}(q, K, V) = V_{j^*}, \qquad j^* = \text{the first } j \text{ with the largest } q \cdot k_j$$
#
# - **Arguments:** `query (D,)`, `keys (N, D)` and `values (N, E)`.
# - **Returns:** a tensor of shape `(E,)`. The gradient must reach `values`, but we don't check it at `query` and `keys`.


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
# Compute one score for each key, as a product of the matrix `(N, D)` and the vector `(D,)`.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# With `argmax`, which gives the first index of the largest entry, you can select a row of `values`.
#
# </details>
#
# Now rotate the query in the explorer and watch which of the three values the search returns.

# %%
explore.search()

# %% [markdown]
# Between its jumps the returned value is constant, so its derivative with respect to the query is zero, and gradient
# descent can't improve the query. That's why attention is a soft search, which gives every key a weight instead of
# selecting a *single* value. We'll turn scores into weights in lessons 4 and 6 and apply them to the values in lesson 7.
# Here we compute the scores.

# %% [markdown]
# ## Why not compare the words themselves?
#
# Suppose the vector of each word has three features, namely person, action and location:
#
# $$x_\text{jane} = (1, 0, 0), \quad x_\text{visits} = (0, 1, 0), \quad x_\text{africa} = (0, 0, 1)$$
#
# If we compared these vectors directly, *jane* would find *jane*, but we want to know what she does. Since what a word
# **is** and what it **looks for** are two different things, each word gets two more vectors, computed by two matrices:
#
# $$q_t = W_Q\, x_t \quad \text{(what the token looks for)}, \qquad k_t = W_K\, x_t \quad \text{(what it offers)}$$
#
# Let's choose these two matrices by hand. Each query and key has two entries, or **channels**, "action" and "location":
#
# $$W_Q = \begin{pmatrix} 3 & 0 & 2 \\ 0 & 3 & 0 \end{pmatrix}, \qquad
#   W_K = \begin{pmatrix} 0 & 1 & 0 \\ 0 & 0 & 1 \end{pmatrix}$$
#
# The columns of $W_Q$ say that *jane* and *africa* look for an action, with $(3, 0)$ and $(2, 0)$, whereas *visits* looks
# for a location, $(0, 3)$. As keys, *visits* offers an action, $(1, 0)$, and *africa* a location, $(0, 1)$.

# %%
X = torch.eye(3)  # (T=3, D=3): jane, visits, africa
W_q = torch.tensor([[3.0, 0, 2], [0, 3, 0]])  # (d_k=2, D=3)
W_k = torch.tensor([[0.0, 1, 0], [0, 0, 1]])  # (d_k=2, D=3)
figures.projections(X, W_q, W_k)

# %% [markdown]
# **On paper:** compute the dot product of each query with each key, nine in all, and draw the graph that we get.

# %%
figures.scores_of_graph(X, W_q, W_k)

# %% [markdown]
# It's the graph of Figure 3.1, computed by two small matrices. The features of a trained network have no names, however,
# and "looks for" and "offers" are only our words for two linear maps.

# %% [markdown]
# ### Exercise 3.2 `project`
#
# Difficulty 1 of 5 · Importance 5 of 5 · 5 minutes · 14 points
#
# Project all tokens at once with the same matrix, that is, compute $\text{project}(X, W) = X W^\top$.
#
# - **Arguments:** `x (..., d_in)`, whose rows are tokens, and `W (d_out, d_in)` as in `nn.Linear`.
# - **Returns:** a tensor of shape `(..., d_out)`.


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
# Which dimension of `W` has to match the last dimension of `x`?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# The result has one entry for each *row* of `W`, so `W` has to be transposed.
#
# </details>
#
# The Transformer paper writes this map as $X W$ with a matrix `(in, out)`, and textbooks on linear algebra write $W x$,
# where a token is a column. We follow PyTorch's linear layer `nn.Linear`, which computes $xW^\top + b$ with a matrix
# `(out, in)`, and leave out the bias $b$. So $W_Q$ and $W_K$ have shape `(d_k, D)`, and $Q$ and $K$ have shape
# `(T, d_k)`, where `d_k` is the width of a query. Keys must have the same width, because a dot product multiplies their
# entries in pairs, but that width may be smaller or larger than $D$.

# %% [markdown]
# ## One query against all keys
#
# Now we return to *Life is short, eat dessert first* and its random embeddings of width $16$, draw random weights, and
# compute the score of the second token, *is*, with every key.

# %%
torch.manual_seed(123)
embedding = nn.Embedding(6, 16)
x = embedding(torch.tensor([0, 4, 5, 2, 1, 3])).detach()  # (T=6, D=16)
W_query, W_key = torch.rand(24, 16), torch.rand(24, 16)  # (d_k=24, D=16) each

# %%
query_is = W_query @ x[1]  # (24,)
keys_life = x @ W_key.T  # (6, 24)
scores_is = keys_life @ query_is  # (6,)

# %% [markdown]
# **Before you run the next cell, make a guess:** which of these scores is the largest, that of *is* with itself, or
# another one?

# %%
figures.one_row(figures.scores_of_is(), figures.LIFE, "is")

# %% [markdown]
# We find that the largest score is the one with *eat*, whereas that of *is* with itself is negative. Nothing makes a
# token attend to itself, because its query and its key come from two different matrices.

# %% [markdown]
# ### Exercise 3.3 `attention_scores`
#
# Difficulty 2 of 5 · Importance 5 of 5 · 5 minutes · 22 points
#
# Compute the scores of all queries with all keys at once:
#
# $$S = Q K^\top, \qquad S_{ij} = q_i \cdot k_j .$$
#
# - **Arguments:** `Q (..., T_q, d_k)` and `K (..., T_k, d_k)`. The number of queries and the number of keys may differ.
# - **Returns:** a tensor of shape `(..., T_q, T_k)`, with one row per query and one column per key.


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
# `@` multiplies the last two dimensions and treats all others as batch dimensions, so the second factor needs the shape
# `(..., d_k, T_k)`.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# `transpose` swaps two dimensions of `K`, which must be the last two, so count them from the end.
#
# </details>
#
# Let's try it with the sizes of Andrej Karpathy's lecture, four sentences of eight tokens.

# %%
torch.manual_seed(1337)
B, T, C, head_size = 4, 8, 32, 16
Wk, Wq = (nn.Linear(C, head_size, bias=False) for _ in range(2))
batch = torch.randn(B, T, C)  # (4, 8, 32)
scores = or_finished(attention_scores)(Wq(batch), Wk(batch))  # (B, T_q, T_k)
scores.shape

# %% [markdown]
# In each sentence, eight queries and eight keys give $8 \times 8$ scores. If the sentences were twice as long, there
# would be four times as many, so the cost of attention is quadratic. In other people's code you'll often find
# **einsum** instead of the matrix product. You name the axes of inputs and output, and every axis that the output lacks
# is summed over:

# %%
by_einsum = torch.einsum("bqd,bkd->bqk", Wq(batch), Wk(batch))  # (B, T_q, T_k): the sum runs over d
torch.allclose(by_einsum, scores, atol=1e-5)

# %% [markdown]
# ## The scores of a trained head
#
# The encoder of our translator, which reads the English sentence, has two blocks with four **heads** each. A head is a
# pair of $W_Q$ and $W_K$ with a table of scores of its own (and more, as lesson 8 explains). We take block 1, head 3, and
# let your two functions compute its scores.

# %%
tokens = "jane visits africa in september".split()
x_head, W_q_head, W_k_head = figures.one_real_head()  # (T=5, D=64), (d_k=16, D=64), (16, 64)
Q, K = or_finished(project)(x_head, W_q_head), or_finished(project)(x_head, W_k_head)  # (5, 16) each
head_scores = or_finished(attention_scores)(Q, K).detach()  # (5, 5)
explore.arcs(head_scores, tokens)

# %% [markdown]
# As you move the slider along the words, you see that *visits* attends mostly to *jane*, *africa* to *visits*, and *in*
# to *africa*, so this head attends mostly to the **previous token**. (Over 300 unseen sentences, the previous token has
# the largest score for 58% of the words.)
#
# The arrow from *visits* to *jane* invites an explanation, namely that French verbs have endings, which depend on the
# subject. To test such a story we **ablate** the head, that is, we set its output to zero, and translate 300 sentences
# that the translator wasn't trained on.
#
# **Before you run the cell, make a guess:** with all heads every translation is right, so how many will be wrong without
# this one?

# %%
experiments.ablate(heads=[(1, 3)])  # (block, head), both counted from 0

# %% [markdown]
# None of them is wrong, so the story doesn't hold. In this small language every English verb has a single French form, so
# no verb needs its subject. A pattern that you can explain doesn't prove that the network needs the head, and a single
# ablation doesn't prove that it's useless, because other heads may do the same work (see *Going further*).

# %% [markdown]
# ### Exercise 3.4 `previous_token_weights`
#
# Difficulty 4 of 5 · Importance 4 of 5 · 15 minutes · 18 points
#
# Now construct a head that always attends to the previous token, for tokens that are the one-hot vectors of their
# positions, that is, for `x = torch.eye(max_len)`. Choose $W_q$ and $W_k$ by hand such that the previous key always
# wins:
#
# $$q_t \cdot k_{t-1} > q_t \cdot k_j \quad \text{for all } j \ne t - 1, \qquad t = 1, \ldots, \text{max\_len} - 1 .$$
#
# - **Arguments:** `max_len`, an integer of at least 2.
# - **Returns:** the tuple `(W_q, W_k)`, both float32 of shape `(d, max_len)`, for any `d` you like.
# - **Edge case:** the first query has no previous token, so it may attend to anything.

# %%
figures.previous_token_target(6)


# %% nbgrader={"solution": "previous_token_weights"}
def previous_token_weights(max_len):
    """Weights of a head that attends to the previous token when x = torch.eye(max_len).

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
# If you project the identity, you get the transposed weights, so the query of token $t$ is *column* $t$ of `W_q`, and the
# key of token $j$ is column $j$ of `W_k`.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Make the keys one-hot vectors with `torch.eye`. The query of token $t$ then needs the direction of one of these keys.
#
# </details>
#
# Such *previous-token heads* exist in trained language models (Olsson et al., 2022), and you can use one in lesson
# 12.

# %% [markdown]
# ## The Markov chain: one fixed edge
#
# There is a much older model of which word follows which. If we count in a text how often $b$ comes right after $a$, and
# divide by how often anything comes after $a$, the result is a **Markov chain**, $P(\text{next} = b \mid \text{current} =
# a)$. **On paper:** if the text is *jane visits africa jane loves visits*, what is $P(\text{visits} \mid \text{jane})$,
# and what is the row of *visits*?

# %%
chain = torch.tensor([[0, 0.5, 0, 0.5], [0, 0, 1, 0], [1, 0, 0, 0], [0, 1, 0, 0]])  # (V, V)
figures.transitions(chain, ["jane", "visits", "africa", "loves"])

# %% [markdown]
# The word *jane* is followed once by *visits* and once by *loves*, so the probability is $\frac12$. The only word that
# follows *visits* is *africa*, with probability one.

# %% [markdown]
# ### Exercise 3.5 `bigram_probabilities`
#
# Difficulty 3 of 5 · Importance 3 of 5 · 12 minutes · 14 points
#
# Estimate the Markov chain of a text by counting:
#
# $$P_{ab} = \frac{\text{how often } b \text{ comes right after } a}{\text{how often } a \text{ is followed by anything}} .$$
#
# - **Arguments:** `ids`, a LongTensor `(T,)` of at least one token, and `vocab_size`, which we call $V$.
# - **Returns:** a float32 tensor of shape `(V, V)`, whose rows belong to the current token.
# - **Edge case:** the row of a token that is never followed by anything is uniform, $1/V$ everywhere. For *I like to eat
#   apples* as ids `0 1 2 3 4`, every entry in the row of *apples* is $0.2$.


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
# First fill a table of counts, for which a loop over neighbors is fine.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# The row sums of the counts say how often each token is *followed*. Divide by them with `keepdim=True`, and use
# `torch.where` for the rows whose sum is zero.
#
# </details>
#
# Let's estimate your chain from 2,000 sentences of the translator's language.

# %%
experiments.corpus_chain(bigram_probabilities)

# %% [markdown]
# After *visits* the four most likely words are all countries, whereas after *jane* they are of several kinds.

# %% [markdown]
# ## The same pair in two sentences
#
# A colleague whose boss you are at work may be your teacher at the judo club in the evening. A Markov chain, which has
# a fixed probability for each word to follow another, can't express that the same two are related in different ways,
# because it has only **one** edge from *jane* to *visits*. To see whether attention can, we use our $W_Q$ and $W_K$
# again and let *loves* be a strong action, $x_\text{loves} = (0, 2, 0)$. In *jane loves visits*, *visits* is a noun.
#
# **Before you run the cell, make a guess:** does the score of *jane* with *visits* change, and does another key win?

# %%
figures.two_sentences(W_q, W_k, 0.5)

# %% [markdown]
# The **score** of *jane* with *visits* is $3$ in both sentences, because a score depends on two vectors only, and in the
# first layer these are the same two (if no positions are added). What changes is the **competition**. The largest score
# of *jane* is now the one with *loves*, and since the attention weights are computed from the whole row, *visits* gets a
# smaller weight.
#
# From the second layer on, the vectors themselves differ, because each has been mixed with its context. If we suppose
# that the first layer averages each word with the previous one, *visits* becomes
# $\frac12(0, 1, 0) + \frac12(1, 0, 0) = (0.5, 0.5, 0)$ in the first sentence and
# $\frac12(0, 1, 0) + \frac12(0, 2, 0) = (0, 1.5, 0)$ in the second. So its key is $(0.5, 0)$ or $(1.5, 0)$, and with
# the unchanged query $(3, 0)$ of *jane* the scores are $1.5$ and $4.5$. The two matrices are the same, but the score
# now depends on the sentence.

# %% [markdown]
# ## At work
#
# We chose the two matrices by hand, whereas a Transformer learns them by gradient descent (an explorer under *Going
# further* shows how). Now your `project` and `attention_scores` run in all heads of the trained translator.

# %%
at_work(project, attention_scores)

# %% [markdown]
# ### Quiz 3.1
#
# `X` has shape `(6, 16)`, six tokens of width $16$, and `W` has shape `(24, 16)`. Which expression gives six queries
# of width $24$?
#
# - **a** `X @ W`
# - **b** `W @ X`
# - **c** `X @ W`, after making `W` square
# - **d** `(W @ X.T).T`

# %% nbgrader={"solution": "quiz_1"}
quiz_1 = None  # "a", "b", "c" or "d"
### BEGIN SOLUTION
quiz_1 = "d"
### END SOLUTION

# %% nbgrader={"grade": "quiz_1"}
check(quiz_1=quiz_1)

# %% [markdown]
# ### Quiz 3.2
#
# In the *first* layer, without position vectors, you replace the third word of *jane visits africa* by another word. What
# happens to the score of query *jane* with key *visits*?
#
# - **a** It changes, because attention depends on the context.
# - **b** It stays the same, but the attention weight of *visits* may change.
# - **c** It stays the same, and so does the attention weight.

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
# Choose two words and two sentences in which both occur, such that the first word should attend strongly to the
# second in one sentence but not in the other. (Don't use *jane*.) Explain what a Markov chain estimated from both
# sentences says about the pair. What can differ between the two sentences in the *first* layer of a Transformer, and
# what can't? What would earlier layers have to do to the second word's vector so that the *score* differs, and how do
# $W_Q$ and $W_K$ turn that into a different score?

# %% [markdown] nbgrader={"written": "written_1"}
# <details><summary>Model answer and marking scheme</summary>
#
# **Model answer.** *bank* and *water*: "the bank of the river was under water" and "the bank sold its water works".
# The chain counts neighbors only, so it has one probability $P(\text{water} \mid \text{bank})$ for both sentences,
# here zero. In the first layer the score is $x_\text{bank}^\top W_Q^\top W_K\, x_\text{water}$. Both vectors are rows
# of the same embedding table, so without positions the score is the same in both sentences. The attention weight may
# differ, because the other words compete for bank's attention. Earlier layers mix each vector with its context, so in
# the first sentence the vector of *water* contains a part of *river*, and in the second a part of *sold* and *works*.
# A channel of $W_K$ can read such a feature from the vector, and the same channel of $W_Q$ can look for it, so the
# dot product is larger in the first sentence, although the two matrices are the same.
#
# **Marking scheme (15).** 3: a fitting pair and two sentences. 3: one fixed probability in the chain, from neighbors
# only. 4: the same score in the first layer, of which 2 for the reason (the same two vectors, position aside). 2: the
# weights may differ, by competition. 3: the vector changes by mixing, and $W_K$ reads the change while $W_Q$ looks for
# it. The claim "attention recomputes $W_Q$ and $W_K$ for every sentence" costs 2, because the matrices are fixed after
# training.
#
# </details>

# %% [markdown]
# ## Recap
#
# - Each token has a query and a key, and the score of an edge between two tokens is a dot product.
# - $Q = XW_Q^\top$, $K = XW_K^\top$, $S = QK^\top$, with one row per query and one column per key.
# - A hard lookup has zero gradient with respect to the query, so attention gives weights to all keys instead.
# - An attention pattern suggests what a head does, but to find out whether the network needs it, ablate it.
# - A Markov chain has one fixed edge for each pair of words, whereas attention computes its edges for every sentence.
#
# **Next:** the scores of *is* ranged from $-10.5$ to $10.2$. Is that large? In
# [lesson 4](../04_scaling/04_scaling.ipynb) you'll see why attention divides them by $\sqrt{d_k}$.

# %% [markdown]
# ## Going further
#
# What follows is optional, with three more exercises and measurements of what this lesson only mentioned.

# %% [markdown]
# ### Where do the two matrices come from?
#
# We start with random $W_Q$ and $W_K$, measure by a loss how far the scores are from what we want, change the weights a
# little so that the loss falls, and repeat. In the explorer, squares mark the edges that we want.

# %%
explore.training()

# %% [markdown]
# In this run the right keys win after only six steps. However, we told this model which edges to learn, and for a real
# Transformer we don't. It's trained to predict the next word or the French translation, and attention patterns emerge
# if they help, as you'll see in lessons 11 and 12.

# %% [markdown]
# ### More ablations
#
# To see whether any head of the translator matters, let's ablate another one, and then the seven others together.

# %%
experiments.ablate(heads=[(1, 0)])

# %%
experiments.ablate(heads=[(0, 0), (0, 1), (0, 2), (0, 3), (1, 1), (1, 2), (1, 3)])  # change me

# %% [markdown]
# Only head 0 of block 1 matters by itself. You can ablate each of the other seven alone without a single error, but
# without all seven a third of the translations are wrong.

# %% [markdown]
# ### How many different patterns can a head have?
#
# Written in terms of the tokens, a score is
#
# $$q_i \cdot k_j = (W_Q x_i) \cdot (W_K x_j) = x_i^\top \, \underbrace{W_Q^\top W_K}_{M,\ (D, D)} \, x_j .$$
#
# So a single matrix $M$ decides which token attends to which. For our three words it is
#
# $$M = W_Q^\top W_K = \begin{pmatrix} 3 & 0 \\ 0 & 3 \\ 2 & 0 \end{pmatrix}
#   \begin{pmatrix} 0 & 1 & 0 \\ 0 & 0 & 1 \end{pmatrix} =
#   \begin{pmatrix} 0 & 3 & 0 \\ 0 & 0 & 3 \\ 0 & 2 & 0 \end{pmatrix}.$$
#
# Every row of $M$ is a combination of the two rows of $W_K$. The smallest number of rows from which all others can be
# combined is the **rank** of a matrix, and since $W_K$ has $d_k$ rows, the rank of $M$ is at most $d_k$. For example, in
# the Transformer paper $M$ would be a $512 \times 512$ matrix, but with $d_k = 64$ its rank is at most $64$. Let's check
# the head of the translator, and ours:

# %%
M = W_q_head.T @ W_k_head  # (D=64, D=64)
torch.linalg.matrix_rank(M), torch.linalg.matrix_rank(W_q.T @ W_k)

# %% [markdown]
# To see what this limits, imagine that each user of a shop has a query, each product has a key, and the score says how
# much the user likes the product. Choose a table in the explorer and find the smallest $d_k$ with which the error is
# zero.

# %%
explore.channels()

# %% [markdown]
# With three tastes, three channels are enough for all twelve products, and would be enough for twelve thousand. If
# each user has a different favorite, the exact table needs all twelve. So what counts isn't the number of products
# but the rank of the table.

# %% [markdown]
# ### Exercise 3.6 `two_channel_graph`
#
# **Extra** · Difficulty 4 of 5 · Importance 3 of 5 · 15 minutes · 12 bonus points
#
# In exercise 3.4 you used many channels, and now you can construct *any* graph with only two. Token $t$ should attend to the token
# `looks_at[t]`, which may be itself, and several tokens may attend to the same one. For *jane visits africa*, `looks_at`
# is `[1, 2, 1]`. With `x = torch.eye(T)`,
#
# $$q_t \cdot k_{\text{looks\_at}[t]} > q_t \cdot k_j \quad \text{for all } j \ne \text{looks\_at}[t],
# \qquad t = 0, \ldots, T - 1 .$$
#
# - **Arguments:** `looks_at`, a LongTensor `(T,)` with $2 \le T \le 50$.
# - **Returns:** `(W_q, W_k)`, float32 and finite, both of shape `(2, T)`. The inequality must hold strictly in float32.
#
# With a single channel only two keys can ever win, the largest and the smallest, but in a plane there is more room.


# %% nbgrader={"solution": "two_channel_graph"}
def two_channel_graph(looks_at):
    """Weights of a head with two channels in which, for x = torch.eye(T), token t attends most to
    token looks_at[t].

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
# Draw keys as dots and a query as an arrow. The winner is the dot that is farthest in the direction of the arrow. A dot
# between two others can never win, so find a curve on which no dot is between others.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Place the keys with `torch.cos` and `torch.sin`. Once every key can win, find the arrow for which it does, and select
# for each token the arrow of its key by indexing with `looks_at`.
#
# </details>
#
# Two channels have a price, though. The next cell uses your weights for a ring in which each token attends to the next
# one, and prints the margin between the best score and the second best. The explorer shows the keys of such a solution.

# %%
experiments.margins(two_channel_graph)

# %%
explore.circle()

# %% [markdown]
# Two channels are enough for any graph in which each token attends to a single one, as long as every token has an axis
# of its own. The price is the margin, which shrinks like $1 - \cos(2\pi/n)$ with $n$ keys, so you need higher precision
# or larger weights.

# %% [markdown]
# ### How often does a token attend to itself?
#
# Figure 3.9 shows how often a token's largest score is the one with itself, for five ways to compute scores.

# %%
figures.self_scores_by_kind()

# %% [markdown]
# If $W_Q = W_K$ and all keys have the same length, a token always finds itself, because no vector of that length has a
# larger dot product with $q_t$ than $q_t$ itself. With independent matrices of mean zero it happens by chance, once in
# six. The example of *is* uses `torch.rand`, whose weights are positive. Both projections then mostly measure the sum of a
# token's entries, so self-scores are usually positive and win more often. The next cell compares our trained translator
# with untrained networks of the same shape.

# %%
experiments.largest_weight_on_itself()

# %% [markdown]
# Training has doubled the fraction, from $0.13$ to $0.27$, but most words still attend mostly to another word.
#
# ### Other scores
#
# The dot product isn't the cosine, since $q \cdot k = \lVert q \rVert\, \lVert k \rVert \cos(q, k)$ grows with the lengths.
# Other scores are also in use:
#
# | score | formula | learned | used in |
# |---|---|---|---|
# | cosine | $q \cdot k \,/\, (\lVert q \rVert \lVert k \rVert)$ | nothing | search engines |
# | dot | $q \cdot k$ | nothing | Luong et al. 2015; Transformer |
# | bilinear | $q^\top M k$ | $M$ | Luong et al. 2015 ("general") |
# | additive | $v^\top \tanh(W_1 q + W_2 k)$ | $v, W_1, W_2$ | Bahdanau et al. 2014 |
#
# Each panel colors the plane of keys by the score that a key there would get. Which panel doesn't change if you change
# the length of the query?

# %%
explore.four_scores()

# %% [markdown]
# Only the cosine ignores the length. Self-attention is bilinear in the tokens, with $M = W_Q^\top W_K$.
#
# ### A published table
#
# For *I like to eat apples*, some notes on the web print the following table as the output of
# $\text{softmax}(QK^\top/\sqrt{d_k})$, which it can't be.

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
# It isn't the output of a softmax, because the rows don't add up to one, and it isn't a general $QK^\top$, because it's
# symmetric, whereas $q_i \cdot k_j$ and $q_j \cdot k_i$ usually differ. With ones on the diagonal it looks like a table of
# *cosines*, without any $W_Q$ and $W_K$. Lesson 6 applies softmax to it.

# %% [markdown]
# ### Exercise 3.7 `attention_edges`
#
# **Extra** · Difficulty 2 of 5 · Importance 2 of 5 · 10 minutes · 8 bonus points
#
# In the explorer, move the threshold until the table of attention weights gives the graph of Figure 3.1.

# %%
weights = torch.tensor([[0.04, 0.94, 0.02], [0.10, 0.04, 0.86], [0.14, 0.76, 0.10]])  # (T_q, T_k)
explore.graph(weights, figures.JANE)

# %% [markdown]
# Your function lists the edges of such a graph.
#
# - **Arguments:** `weights (T, T)`, whose rows are queries; `tokens`, a list of `T` strings, in which a word may occur
#   twice; and `threshold`, a float.
# - **Returns:** a list of tuples `(query, key, weight)` with the two token *strings* and the weight as a Python float, for
#   every edge whose weight is at least `threshold`. An edge from a token to itself counts too.
# - **Order:** the heaviest edge first. Edges of equal weight are ordered by the query's position, then by the key's
#   position.


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
# Two nested loops visit the edges in the right order for ties, and `.tolist()` gives Python numbers.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Python's `sorted` keeps the order of equal elements, whereas `torch.sort` does so only with `stable=True`. Use only the
# weight as the sorting key.
#
# </details>
#
# Here is the graph of the translator's head with your function. Its scores are divided by four (lesson 4 explains why) and
# go through a softmax, and we keep every edge of at least one third.

# %%
figures.graph_of_edges(attention_edges, torch.softmax(head_scores / 4, dim=-1), tokens, 1 / 3)

# %% [markdown]
# ### Exercise 3.8 `fixed_self_scores`
#
# **Extra** · **Find the bug** · Difficulty 2 of 5 · Importance 3 of 5 · 6 minutes · 6 bonus points
#
# The function in the next cell has the right shapes and raises no error, but its values are wrong. The same mistake was
# reported in a public repository
# ([Attention-Augmented-Conv2d, issue 21](https://github.com/leaderj1001/Attention-Augmented-Conv2d/issues/21)). Try the
# suspicious operation on a small tensor, then write the function correctly.
#
# - **Arguments:** `x (..., T, D)`, `W_q (d_k, D)` and `W_k (d_k, D)`.
# - **Returns:** the scores $(X W_q^\top)(X W_k^\top)^\top$ of shape `(..., T, T)`.


# %%
def buggy_self_scores(x, W_q, W_k):
    Q, K = x @ W_q.T, x @ W_k.T  # (..., T, d_k)
    return Q @ K.reshape(*K.shape[:-2], K.shape[-1], K.shape[-2])  # (..., T, T)


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
# Compare `torch.arange(6).reshape(3, 2)` with its own `.reshape(2, 3)`. Is the first row of the second table the first
# column of the first one?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# `reshape` keeps the entries in their order and only cuts the rows elsewhere. You want `transpose`, which swaps two
# dimensions.
#
# </details>
#
# What does this bug cost the translator?


# %%
def buggy_scores(Q, K):
    return Q @ K.reshape(*K.shape[:-2], K.shape[-1], K.shape[-2])  # (..., T_q, T_k)


at_work(attention_scores=buggy_scores)

# %% [markdown]
# Not one translation is right, because each column of the reshaped table mixes entries of several keys. A network that
# is *trained* with the bug learns to compensate for it (second table below), and then it's much harder to notice. Its
# translations depend on the padding (lesson 5), so they are worse for single sentences.
#
# ### How stable are these numbers?
#
# | measurement | in the text | elsewhere |
# |---|---|---|
# | translations right of 300 without some heads | 300 for each of seven heads alone | all of block 0: 286; all of block 1: 251 |
# | weight on the previous token, block 1 head 3 | | trained: 0.47; three untrained networks: 0.13 |
# | words that attend most to themselves | 0.27 | three untrained networks: 0.12 to 0.13; by chance: 0.13 |
#
# | networks trained with the bug | loss | right of 100, in one batch | right of 100, one at a time |
# |---|---|---|---|
# | lowest and highest of four | 0.015 to 0.03 | 93 to 99 | 40 to 47 |

# %% [markdown]
# ## Further reading
#
# - Vaswani et al., [Attention Is All You Need](https://arxiv.org/abs/1706.03762) (2017), section 3.2: queries, keys and dot
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
#   the six tokens and the scores of *is*.
# - [Transformers Explained Visually, part
#   2](https://towardsdatascience.com/transformers-explained-visually-part-2-how-it-works-step-by-step-b49fa4a64f34),
#   [Illustrated Guide to Transformers](https://www.youtube.com/watch?v=4Bdc55j80l8), [Getting meaning from
#   text](https://peltarion.com/blog/data-science/self-attention-video), [AI Summer on
#   attention](https://theaisummer.com/attention/): the same steps in pictures.
# - [Transformer model for language understanding](https://www.tensorflow.org/text/tutorials/transformer) (TensorFlow), [The
#   Annotated Transformer](http://nlp.seas.harvard.edu/2018/04/03/attention.html) (PyTorch), and Rowel Atienza's
#   [Transformer in PyTorch](https://www.youtube.com/watch?v=6PmIoCnqcFU): the same steps in code.
# - Mikolov et al., [word2vec's negative sampling](https://arxiv.org/abs/1310.4546) (2013), and Wan et al.,
#   [GE2E](https://arxiv.org/abs/1710.10467) (2018): training with positive and negative pairs (lesson 1).
# - Olsson et al., [In-context Learning and Induction
#   Heads](https://transformer-circuits.pub/2022/in-context-learning-and-induction-heads/index.html) (2022):
#   previous-token heads in trained models.
