# %% [markdown]
# # 10. The decoder block: the whole Transformer
#
# **In this lesson** you'll build the decoder, join it to the encoder of lesson 9, load trained weights and let the
# Transformer write French.
#
# **Core:** about 90 minutes. A good place for a break is after exercise 10.4, when your Transformer runs.

# %% tags=["setup"]
# (empty: the build puts the set-up cell here)

# %%
import torch
import torch.nn.functional as F
from torch import nn

from helpers import at_work, check, or_finished, progress, translator
from helpers.blocks import Encoder, FeedForward, MultiHeadAttention
from helpers.blocks import attention, causal_mask, cross_entropy
from helpers.drawing.transformer_map import transformer_map
from helpers.lessons.decoder_block import explore, figures

# %%
transformer_map("10_decoder_block")

# %% [markdown]
# By the end of this lesson you will have built every box of this map.

# %% [markdown]
# ## You need
#
# You need the masks of [lesson 5](../05_masking/05_masking.ipynb), the cross-entropy of [lesson
# 6](../06_softmax/06_softmax.ipynb), the heads of [lesson 8](../08_multi_head/08_multi_head.ipynb), and the block and
# the encoder of [lesson 9](../09_encoder_block/09_encoder_block.ipynb). Your answers may call these, which are
# imported above:
#
# | name | takes | gives |
# |---|---|---|
# | `MultiHeadAttention(d_model, num_heads)` | `forward(query, key=None, value=None, mask=None)`; key defaults to query, value to key | `(out (B, T_q, D), weights (B, H, T_q, T_k))` |
# | `FeedForward(d_model, d_ff, activation)` | `(B, T, D)` | the same shape |
# | `Encoder(vocab_size, d_model, num_heads, d_ff, num_layers, max_len)` | `forward(ids (B, T), mask=None)` | `(B, T, D)` |
# | `attention(Q, K, V, mask=None)` | `(..., T_q, d)`, `(..., T_k, d)`, `(..., T_k, d_v)` | `(out, weights)`, scores over $\sqrt d$ |
# | `causal_mask(T_q, T_k=None)` | two ints | `(T_q, T_k)`, True = may attend, aligned at the end |
# | `cross_entropy(logits, targets, ignore_index=-100)` | `(..., V)`, `(...)` | a scalar, the mean over what is not ignored |
#
# The [conventions](../00_start_here/00_start_here.ipynb) of lesson 0 hold here too, and `nn.Transformer*` is
# forbidden. Here is a question to warm up.
#
# <details><summary>Lesson 5: five words are written and two more come at once. What shape does the causal mask for the
# two new ones have, and what do its rows contain?</summary>
#
# Its shape is `(2, 7)`. The first new word may attend to six keys and the second to all seven.
#
# </details>

# %% [markdown]
# ## Teacher forcing
#
# The encoder of lesson 9 turns *jane visits africa in september* into five vectors. The decoder has to turn those
# into *jane visite l' afrique en septembre*. It's **autoregressive**, that is, it writes one word at a time, and each
# word depends on the words before it.
#
# How do we train it? If we let the decoder write and graded the result, one wrong word at the start would spoil
# everything after it. With **teacher forcing** we give it the true words instead, and ask at each position for the
# next one.
#
# | position | 0 | 1 | 2 | 3 | 4 | 5 | 6 |
# |---|---|---|---|---|---|---|---|
# | the decoder reads | `<bos>` | jane | visite | l' | afrique | en | septembre |
# | it has to predict | jane | visite | l' | afrique | en | septembre | `<eos>` |
#
# Two special tokens, `<bos>` (beginning of sentence) and `<eos>` (end of sentence), give the decoder something to read
# at the start and let it finish. All predictions are made in one pass, because the causal mask hides from each position
# the word that it has to predict.

# %%
figures.teacher_forcing()

# %% [markdown]
# ### Exercise 10.1 `shift_right`
#
# Difficulty 1 of 5 · Importance 5 of 5 · 3 minutes · 7 points
#
# Build the decoder's input from its targets. Put bos in front and drop the last id.
#
# - **Arguments:** `targets`, a LongTensor `(B, T)` with $T \ge 1$, and `bos_id`, an int.
# - **Returns:** a LongTensor `(B, T)`.


# %% nbgrader={"solution": "shift_right"}
def shift_right(targets, bos_id):
    """The decoder's input for `targets`: each row starts with bos, and its last id is dropped.

    targets LongTensor (B, T) with T >= 1; bos_id: int -> LongTensor (B, T).
    """
    ### BEGIN SOLUTION
    bos = torch.full_like(targets[:, :1], bos_id)  # (B, 1)
    return torch.cat([bos, targets[:, :-1]], dim=1)  # (B, T)
    ### END SOLUTION


# %% nbgrader={"grade": "shift_right"}
check(shift_right)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# Concatenate a column that is the same in every row with most of the columns of the targets.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# `torch.cat` joins tensors, and `torch.full_like` makes a tensor of one value with the shape and dtype of another.
#
# </details>

# %% [markdown]
# Here is the input that your function makes from our sentence:

# %%
words = "jane visite l' afrique en septembre".split()
targets = torch.tensor([[translator.french[word] for word in words] + [translator.EOS]])  # (B=1, T_t=7)
print("targets", targets.tolist()[0])
print("input  ", or_finished(shift_right)(targets, translator.BOS).tolist()[0])

# %% [markdown]
# ### Exercise 10.2 `fixed_loss`
#
# **Find the bug** · Difficulty 2 of 5 · Importance 5 of 5 · 6 minutes · 10 points
#
# A user of [PyTorch's tutorials](https://github.com/pytorch/tutorials/issues/719) reports that the loss drops to zero
# immediately, but then the model writes the same token over and over. This function has the same effect:


# %%
def loss_with_bug(model, src, tgt, pad_id):
    logits = model(src, tgt)  # (B, T_t, V)
    return cross_entropy(logits, tgt, ignore_index=pad_id)


# %% [markdown]
# After the model has read `<bos>` *jane visite*, which word does this loss ask for? Write the loss correctly.
#
# - **Arguments:** `model(src, ids)`, which takes `(B, T_s)` and `(B, T)` and returns logits `(B, T, V)`; `src`;
#   `tgt`, a LongTensor `(B, T_t)` whose rows are bos, words, eos, padding; `pad_id`.
# - **Returns:** a scalar, the mean cross-entropy over all target tokens of the batch, where eos counts, but bos and
#   padding don't.


# %% nbgrader={"solution": "fixed_loss"}
def fixed_loss(model, src, tgt, pad_id):
    """Teacher forcing: the mean cross-entropy of each next word of tgt, padding left out.

    model(src (B, T_s), ids (B, T)) -> logits (B, T, V); src LongTensor (B, T_s);
    tgt LongTensor (B, T_t), its rows bos, words, eos, padding; pad_id: int -> scalar.
    """
    ### BEGIN SOLUTION
    logits = model(src, tgt[:, :-1])  # (B, T_t - 1, V)
    return cross_entropy(logits, tgt[:, 1:], ignore_index=pad_id)
    ### END SOLUTION


# %% nbgrader={"grade": "fixed_loss"}
check(fixed_loss)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# Both rows of the table above are parts of `tgt`. Which column is missing in each of them?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# The model need not read the last eos and need not predict bos. `ignore_index` leaves out the padding.
#
# </details>

# %% [markdown]
# Now we train two small Transformers with the same initialization on the same 40 sentences, one with each loss, and
# then let each of them write these sentences. **Predict before you run:** whose loss is lower, and how many sentences
# does each get right?

# %%
figures.two_runs(or_finished(fixed_loss))

# %% [markdown]
# The loss with the bug asks for *visite* where the model has just read *visite*, so it's enough to copy the input. That
# model reaches the lower loss, 0.04 compared with 0.11, but it writes only bos, whereas the other one writes all its
# sentences correctly. **If a loss is too good in the first minute, suspect a bug.**

# %% [markdown]
# ## Cross-attention
#
# The decoder's first sublayer is causal self-attention among the words written so far, so it doesn't know the source.
# The second sublayer is the same `MultiHeadAttention`, but with inputs from two sequences:
#
# $$Q = y\,W_Q^\top, \qquad K = m\,W_K^\top, \qquad V = m\,W_V^\top,$$
#
# where $y$ contains the decoder's vectors, one per French word, and $m$ is the **memory**, the encoder's output, one
# vector per English word. We call this **cross-attention**. In terms of lesson 3's search, the French side is the
# query, and the encoder's output is the database.
#
# **On paper:** for 7 French positions, 5 English words, width 64 and 4 heads, what are the shapes of $Q$, $K$ and the
# attention weights of one sentence? And could we pass the encoder's attention weights instead of $m$?
#
# <details><summary>Answer</summary>
#
# Q is `(4, 7, 16)`, K is `(4, 5, 16)` and the weights are `(4, 7, 5)`. The encoder's weights, `(4, 5, 5)`, don't fit
# $W_K$, which expects rows of width 64, so the decoder gets the encoder's **output**.
#
# </details>
#
# On the left you see the cross-attention of the trained translator's last block, averaged over its heads. For the
# chart on the right we hid the source from one position at a time.

# %%
figures.cross_attention()

# %% [markdown]
# The position that reads *jane* attends to *visits* (0.97), because it has to predict *visite*. The position that
# reads *visite* has to predict *l'* and attends to *africa*, because the article depends on the noun. The map looks
# almost like a dictionary, shifted by one position. (*Going further* examines the last row, where the model has to
# predict eos.)
#
# The full source is known from the start, so cross-attention only has to mask padding.

# %% [markdown]
# ### Exercise 10.3 `DecoderBlock`
#
# Difficulty 3 of 5 · Importance 5 of 5 · 15 minutes · 20 points
#
# Write the block. In the paper's order (`norm_first=False`) its three sublayers are
#
# $$y\leftarrow\text{norm}_1(y+\text{self}(y)),\qquad y\leftarrow\text{norm}_2(y+\text{cross}(y,m)),\qquad
# y\leftarrow\text{norm}_3(y+\text{ff}(y)).$$
#
# With `norm_first=True` each norm is on its branch, as in lesson 9, for example $y+\text{cross}(\text{norm}_2(y),m)$.
# The memory itself is not normalized.
#
# - **Parts:** `self_attention`, `cross_attention` (`MultiHeadAttention`), `feed_forward` (`FeedForward` with the
#   given activation), `norm1`, `norm2`, `norm3` (`nn.LayerNorm`).
# - **Arguments of `forward`:** `y (B, T_t, D)`, `memory (B, T_s, D)`, and two masks, `self_mask` and `memory_mask`,
#   that broadcast to `(B, H, T_t, T_t)` and `(B, H, T_t, T_s)`.
# - **Returns:** a pair `(y, cross_weights)` of shapes `(B, T_t, D)` and `(B, H, T_t, T_s)`.


# %% nbgrader={"solution": "DecoderBlock"}
class DecoderBlock(nn.Module):
    """Masked self-attention, cross-attention, feed-forward; each with residual and norm.

    d_model, num_heads, d_ff: int; norm_first: bool; activation: function.
    forward(y (B, T_t, D), memory (B, T_s, D), self_mask, memory_mask: None or bool that broadcasts
    to (B, H, T_t, T_t) and (B, H, T_t, T_s)) -> (y (B, T_t, D), cross_weights (B, H, T_t, T_s)).
    """

    def __init__(self, d_model, num_heads, d_ff, norm_first=False, activation=F.relu):
        super().__init__()
        ### BEGIN SOLUTION
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff, activation)
        self.norm1, self.norm2, self.norm3 = (nn.LayerNorm(d_model) for _ in range(3))
        self.norm_first = norm_first
        ### END SOLUTION

    def forward(self, y, memory, self_mask=None, memory_mask=None):
        ### BEGIN SOLUTION
        if self.norm_first:
            y = y + self.self_attention(self.norm1(y), mask=self_mask)[0]  # (B, T_t, D)
            found, cross_weights = self.cross_attention(self.norm2(y), memory, mask=memory_mask)
            y = y + found  # (B, T_t, D)
            return y + self.feed_forward(self.norm3(y)), cross_weights
        y = self.norm1(y + self.self_attention(y, mask=self_mask)[0])  # (B, T_t, D)
        found, cross_weights = self.cross_attention(y, memory, mask=memory_mask)
        y = self.norm2(y + found)  # (B, T_t, D)
        return self.norm3(y + self.feed_forward(y)), cross_weights
        ### END SOLUTION


# %% nbgrader={"grade": "DecoderBlock"}
check(DecoderBlock)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# Put a third sublayer between the two of lesson 9's `EncoderBlock`. From self-attention you need the first result
# only, from cross-attention both.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Compare your lines with the formulas. In which argument of `MultiHeadAttention` does $m$ go, and is there a norm
# around it?
#
# </details>

# %% [markdown]
# ### Exercise 10.4 `Transformer`
#
# Difficulty 4 of 5 · Importance 5 of 5 · 20 minutes · 23 points
#
# Put everything together, in the paper's order (post-norm). The check loads weights by the names of the parts and
# compares logits.
#
# | method | takes | gives | what happens |
# |---|---|---|---|
# | `encode(src)` | `(B, T_s)` | memory `(B, T_s, D)` | the `Encoder`, with padding masked |
# | `decode(tgt, memory, src)` | `(B, T_t)`, memory, `(B, T_s)` | logits `(B, T_t, tgt_vocab)` | target words plus positions, the decoder blocks, a linear layer |
# | `forward(src, tgt)` | `(B, T_s)`, `(B, T_t)` | logits | `decode` of `encode` |
#
# - **Parts:** `encoder` (an `Encoder`), `tokens` and `positions` (`nn.Embedding`s of the target, with `tgt_vocab` and
#   `max_len` rows), `blocks` (an `nn.ModuleList` of `num_layers` `DecoderBlock`s), `unembed` (an `nn.Linear`).
# - Every `pad_id` in `src` is padding, wherever it is, and a sentence may consist of padding alone.
# - `tgt` starts with bos and needs no padding mask, because the causal mask hides what comes after a sentence.
# - Word and position vectors are added without scaling, and the model stores nothing between calls.


# %% nbgrader={"solution": "Transformer"}
class Transformer(nn.Module):
    """The encoder-decoder of Vaswani et al. (2017), with learned positions.

    Parts: encoder (Encoder), tokens and positions (nn.Embedding, of the target), blocks
    (nn.ModuleList of DecoderBlock), unembed (nn.Linear).
    encode(src (B, T_s)) -> memory (B, T_s, D);
    decode(tgt (B, T_t), memory, src) -> logits (B, T_t, tgt_vocab);
    forward(src, tgt) -> logits. Where src is pad_id, there is padding.
    """

    def __init__(self, src_vocab, tgt_vocab, d_model, num_heads, d_ff, num_layers, max_len, pad_id=0):
        super().__init__()
        # self.encoder, self.tokens, self.positions, self.blocks, self.unembed
        ### BEGIN SOLUTION
        self.pad_id = pad_id
        self.encoder = Encoder(src_vocab, d_model, num_heads, d_ff, num_layers, max_len)
        self.tokens, self.positions = nn.Embedding(tgt_vocab, d_model), nn.Embedding(max_len, d_model)
        self.blocks = nn.ModuleList(DecoderBlock(d_model, num_heads, d_ff) for _ in range(num_layers))
        self.unembed = nn.Linear(d_model, tgt_vocab)
        ### END SOLUTION

    def encode(self, src):
        ### BEGIN SOLUTION
        real = (src != self.pad_id)[:, None, None, :]  # (B, 1, 1, T_s)
        return self.encoder(src, real)  # (B, T_s, D)
        ### END SOLUTION

    def decode(self, tgt, memory, src):
        ### BEGIN SOLUTION
        T = tgt.shape[1]
        real = (src != self.pad_id)[:, None, None, :]  # (B, 1, 1, T_s)
        causal = causal_mask(T).to(tgt.device)  # (T_t, T_t)
        y = self.tokens(tgt) + self.positions(torch.arange(T, device=tgt.device))  # (B, T_t, D)
        for block in self.blocks:
            y, _ = block(y, memory, causal, real)  # (B, T_t, D)
        return self.unembed(y)  # (B, T_t, V)
        ### END SOLUTION

    def forward(self, src, tgt):
        ### BEGIN SOLUTION
        return self.decode(tgt, self.encode(src), src)  # (B, T_t, V)
        ### END SOLUTION


# %% nbgrader={"grade": "Transformer"}
check(Transformer)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# Padding has to be masked in the encoder and in cross-attention, with a mask of shape `(B, 1, 1, T_s)`. That's why
# `decode` also gets `src`.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# `decode` is like the `forward` of lesson 9's `Encoder`, with one more line. The next block needs only the first
# element of the pair that a block returns.
#
# </details>

# %% [markdown]
# Now we fill your class with the 206,146 parameters of the course's trained translator, which have the same names.

# %%
model = or_finished(Transformer)(*translator.SIZES)
model.load_state_dict(translator.state(), strict=False)  # yours may have more parts
src = translator.source_batch(["jane visits africa in september"])  # (B=1, T_s=5)
logits = model(src, or_finished(shift_right)(targets, translator.BOS))  # (1, T_t=7, V=194)
french = {index: word for word, index in translator.french.items()}
print(" ".join(french[index] for index in logits[0].argmax(dim=-1).tolist()))

# %% [markdown]
# That's *jane visite l' afrique en septembre*, from your own code. Take a break here if you like.

# %% [markdown]
# ## Greedy decoding
#
# In training, all positions are predicted at once. At **inference**, that is, when we use the trained model, the
# words to read don't exist yet. So the model predicts a word, we append it to the input, and we repeat this until it
# predicts eos. Taking the most likely word each time is called **greedy decoding**. (You'll see other ways to choose
# below and under *Going further*.)
#
# Your loop gets a function `step` that maps a prefix of ids `(1, t)` to the logits of the next word `(1, V)`.

# %% [markdown]
# ### Exercise 10.5 `greedy_decode`
#
# Difficulty 2 of 5 · Importance 4 of 5 · 6 minutes · 10 points
#
# Write one word after the other, always the most likely one.
#
# - **Arguments:** `step`, which expects a LongTensor `(1, t)` with *all* ids so far; `bos_id`, `eos_id`; `max_len`, an
#   int of at least 1.
# - **Returns:** a list of Python ints that starts with `bos_id`, and ends with `eos_id` or after `max_len` words.


# %% nbgrader={"solution": "greedy_decode"}
def greedy_decode(step, bos_id, eos_id, max_len):
    """Write one word after the other, always the likeliest.

    step(prefix LongTensor (1, t)) -> logits (1, V); bos_id, eos_id, max_len: int, max_len >= 1
    -> list of int: bos first, then at most max_len ids; eos, if it comes, is the last.
    """
    ### BEGIN SOLUTION
    ids = [bos_id]
    for _ in range(max_len):
        logits = step(torch.tensor([ids]))  # (1, V)
        ids.append(logits.argmax().item())
        if ids[-1] == eos_id:
            break
    return ids
    ### END SOLUTION


# %% nbgrader={"grade": "greedy_decode"}
check(greedy_decode)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# Keep a Python list and make a tensor of it for each call.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Check for eos after you append the new id, and convert each id to a Python int.
#
# </details>

# %%
memory = model.encode(src)  # (1, T_s=5, D=64), computed once


def step(prefix):
    return model.decode(prefix, memory, src)[:, -1]  # (1, V)


ids = or_finished(greedy_decode)(step, translator.BOS, translator.EOS, 20)
print(" ".join(french[index] for index in ids))

# %% [markdown]
# Your encoder ran once and your decoder seven times.

# %% [markdown]
# ## The KV cache
#
# To write the seventh word, `step` sends all seven ids through every block, although under a causal mask the vectors
# of the first six don't change. The new query needs the old keys and values, but the old queries are never used
# again, so we store only K and V of every block, in a **KV cache**.

# %%
figures.cache_cells()

# %% [markdown]
# ### Exercise 10.6 `cached_attention`
#
# Difficulty 3 of 5 · Importance 4 of 5 · 8 minutes · 10 points
#
# Compute causal attention for the new tokens only, with the earlier keys and values from a cache.
#
# - **Arguments:** `q`, `k`, `v` of shape `(B, H, T_new, d)`, for the new tokens; `cache`, None at the start and then
#   whatever your last call returned, in any form you like.
# - **Returns:** a pair `(out, cache)`, where `out (B, H, T_new, d)` equals the same rows of full causal attention (scores over
#   $\sqrt d$), for one new token or several at a time.
# - Nothing that is cached is recomputed, so the cost of one new token is linear in the number of earlier tokens.
# - Leave the cache that came in unchanged, and let gradients reach earlier keys and values.


# %% nbgrader={"solution": "cached_attention"}
def cached_attention(q, k, v, cache):
    """Causal attention for new tokens only; what came before is in the cache.

    q, k, v (B, H, T_new, d); cache: None at the start, then what the last call returned
    -> (out (B, H, T_new, d), cache). The cache that came in is left as it was.
    """
    ### BEGIN SOLUTION
    if cache is not None:
        k = torch.cat([cache[0], k], dim=-2)  # (B, H, T, d)
        v = torch.cat([cache[1], v], dim=-2)  # (B, H, T, d)
    mask = causal_mask(q.shape[-2], k.shape[-2]).to(q.device)  # (T_new, T)
    out, _ = attention(q, k, v, mask)  # (B, H, T_new, d)
    return out, (k, v)
    ### END SOLUTION


# %% nbgrader={"grade": "cached_attention"}
check(cached_attention)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# All keys so far are the cached ones followed by the new ones, which `torch.cat` joins without changing its inputs.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# If there are several new tokens, the first must not attend to the second. Lesson 5's causal mask with two different
# lengths is made for this case.
#
# </details>

# %% [markdown]
# Let's count the multiplications of one block while it writes T words.

# %%
figures.cache_saving(or_finished(cached_attention))

# %% [markdown]
# Without a cache the total work grows like T² (and that of attention like T³). With a cache, each word costs about as
# much as the one before, so at 64 words the block needs 33.7 times fewer multiplications. The price is a memory of
# $2D$ values per word and block.

# %% [markdown]
# ## Sampling: temperature, top-k, top-p
#
# A story can continue in many ways, and if we always take the most likely word, it becomes dull. So we **sample** the
# next word from the softmax. To see a distribution with many options, we hide the English sentence and ask for the
# first French word.

# %%
figures.next_words()

# %% [markdown]
# The long tail of this distribution is typical. (It's only an example, because the model never saw such a source in
# training.) Each word in the tail is unlikely, but in a long text you'll sample one now and then, and a single bad word
# derails the rest. There are three common remedies:
#
# - **temperature** divides the logits (lesson 6), and a value below 1 makes likely words more likely;
# - **top-k** keeps the k most likely words;
# - **top-p** (nucleus sampling) keeps the most likely words until their total probability reaches p, so it keeps few
#   words where the model is sure.
#
# **On paper:** for probabilities 0.5, 0.3, 0.15, 0.05 and $p = 0.7$, which words does top-p keep, and with which
# probabilities?
#
# <details><summary>Answer</summary>
#
# The first word alone has a probability below 0.7, so we keep the second one as well, and their sum is 0.8. We remove
# the other two words and divide by this sum, which gives 0.625 and 0.375.
#
# </details>
#
# Move the sliders. Do top-k and top-p still change the bars if the temperature is very low? (No, because one word
# then has almost all of the probability.)

# %%
explore.next_word()

# %% [markdown]
# ## At work
#
# Let's run the translator with your model, your loop and your cache.

# %%
at_work(Transformer)

# %%
at_work(greedy_decode)

# %%
at_work(cached_attention)

# %% [markdown]
# ### Quiz 10.1
#
# If the causal mask is left out, in training and at inference, what do you see first?
#
# - **a** a training loss near 0, and poor sentences
# - **b** an error about shapes
# - **c** a training loss that does not fall

# %% nbgrader={"solution": "quiz_1"}
quiz_1 = None  # "a", "b" or "c"
### BEGIN SOLUTION
quiz_1 = "a"
### END SOLUTION

# %% nbgrader={"grade": "quiz_1"}
check(quiz_1=quiz_1)

# %% [markdown]
# ### Quiz 10.2
#
# Why does the cache store keys and values, and no queries?
#
# - **a** queries are too large
# - **b** queries change when words are added, keys and values do not
# - **c** a query is used once, for its own word; keys and values are used for every later word

# %% nbgrader={"solution": "quiz_2"}
quiz_2 = None  # "a", "b" or "c"
### BEGIN SOLUTION
quiz_2 = "c"
### END SOLUTION

# %% nbgrader={"grade": "quiz_2"}
check(quiz_2=quiz_2)

# %% [markdown]
# ## Written question
#
# *15 points, graded by hand, 10 minutes, six to ten sentences.*
#
# A colleague's translator has a loss of 0.002, on unseen sentences too, but when it writes without the true words, it
# produces nonsense. Name three different causes, each of which explains all of this. Say for each *why the loss stays
# low*, and give a test of a line or two that would confirm or exclude it.

# %% [markdown] nbgrader={"written": "written_1"}
# **Model answer:** First, the decoder's input is not shifted, so at each position it reads the word that it has to predict, and
# copying is enough on new sentences too. To test this, print the first rows of input and target. Second, the causal
# mask is missing or shifted by one, so the answer is visible one position to the right. To test this, change the last
# target word and see whether earlier logits change. Third, generation differs from training, for example the
# loop passes only the newest word, uses the wrong position with a cache, or reads the logits of position 0. The loss never
# runs this code. To test it, feed the true words through the loop and compare its logits with those of one pass.
#
# **Marking scheme (15).** 6: three different causes that fit both low losses, 2 each. 3: for each, why the loss stays low,
# 1 each. 6: for each, a test that would tell it apart from the other two, 2 each.

# %% [markdown]
# ## Recap
#
# - With teacher forcing the decoder reads bos and the true words and predicts each next word in one pass. Without the
#   shift the loss is too good.
# - A decoder block is causal self-attention, cross-attention and a feed-forward network.
# - In cross-attention queries come from the target, keys and values from the encoder's output.
# - Under a causal mask earlier keys and values don't change, so a KV cache computes them once.
# - Temperature, top-k and top-p change the distribution from which the next word is sampled.
#
# **Next:** In [lesson 11](../11_translation/11_translation.ipynb) we train the full model.

# %%
progress()

# %% [markdown]
# ## Going further
#
# Here you implement top-k and top-p and see what they remove. Then we look at what can go wrong, and you write a
# search that does better than greedy decoding.

# %% [markdown]
# ### Exercise 10.7 `filter_logits`
#
# **Extra** · Difficulty 3 of 5 · Importance 3 of 5 · 12 minutes · 10 bonus points
#
# Replace the logits of the removed words by $-\infty$ and leave the others as they are.
#
# - **Arguments:** `logits (..., V)`; `top_k`, None or an int with $1 \le k \le V$; `top_p`, None or a number with
#   $0 < p < 1$.
# - **Returns:** a tensor of the same shape and dtype.
# - The word whose probability makes the sum reach p is kept, so at least one word always is.
# - With both, top-k comes first, and top-p works on the renormalized probabilities of what is left.


# %% nbgrader={"solution": "filter_logits"}
def filter_logits(logits, top_k=None, top_p=None):
    """Logits without their unlikely tail: -inf for all but the top_k largest, then beyond mass
    top_p.

    logits (..., V), float32 or float64; top_k None or int, 1 to V; top_p None or float,
    0 < top_p < 1 -> (..., V), same dtype. The word that crosses top_p is kept.
    """
    ### BEGIN SOLUTION
    if top_k is not None:
        last = logits.topk(top_k, dim=-1).values[..., -1:]  # (..., 1)
        logits = logits.masked_fill(logits < last, float("-inf"))
    if top_p is not None:
        ordered, order = logits.sort(dim=-1, descending=True)  # (..., V) each
        p = torch.softmax(ordered, dim=-1)  # (..., V)
        above = p.cumsum(dim=-1) - p  # (..., V), the mass of all likelier words
        cut = torch.zeros_like(logits, dtype=torch.bool).scatter(-1, order, above >= top_p)
        logits = logits.masked_fill(cut, float("-inf"))
    return logits
    ### END SOLUTION


# %% nbgrader={"grade": "filter_logits"}
check(filter_logits)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# For top-p, sort each row, take the softmax and the cumulative sum. Whether a word is kept depends only on the total
# probability of the words before it.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Your decisions to keep or remove are in sorted order, but the logits are not. `sort` also returns where each entry
# came from, and `scatter` can write to such positions.
#
# </details>

# %% [markdown]
# Let's sample 2,000 first words from the distribution of figure 10.6. How many of them come from the tail, the 180
# least likely words, and what do the filters change?

# %%
first = figures.first_word_logits()  # (V=194,)
tail = first.argsort(descending=True)[14:]  # the ids of the 180 unlikeliest words
for name, options in {"no filter": {}, "top_k=5": {"top_k": 5}, "top_p=0.9": {"top_p": 0.9}}.items():
    p = torch.softmax(or_finished(filter_logits)(first, **options), dim=-1)  # (V,)
    drawn = torch.multinomial(p, 2000, replacement=True, generator=torch.Generator().manual_seed(0))  # (2000,)
    words = " ".join(french[index] for index in drawn[:8].tolist())
    print(f"{name:<10} {torch.isin(drawn, tail).sum():>3} from the tail, {(p > 0).sum():>3} words left: {words}")

# %% [markdown]
# Without a filter about 1% of the words come from the tail, and both filters prevent that. Top-k keeps five words
# however sure the model is. Top-p keeps eight here, but it would keep only one if the most likely word had a
# probability of 0.9.

# %% [markdown]
# ### A trap: cached words and their positions
#
# A cached word needs its own position. Code that passes only the newest id to the model often gives it position 0,
# because it's the first token of that input. Then the model treats every word as the first, and our translator writes
# *jane jane jane* until the loop ends. The right offset is the number of words in the cache.
#
# ### Does the last position need the source?
#
# In figure 10.3, the position that predicts eos attends to *jane*, but when we hide the source from it, eos is still
# certain. Let's repeat our measurement with a shorter sentence.

# %%
for word, seen, hidden in figures.with_source_hidden("jane visits africa", "jane visite l' afrique"):
    print(f"{word:<8} with the source {seen:.3f}   with the source hidden {hidden:.3f}")

# %% [markdown]
# Here the probability of eos falls to 0, because a month might follow. So attention weights alone don't tell you what
# the model needs. To find out, you have to change something and measure, as we'll do again in lesson 13.

# %% [markdown]
# ### The bug of exercise 10.2 in a trained network
#
# What happens if we leave out the shift only now, in the translator that was trained with it?


# %%
def unshifted(targets, bos_id):
    return targets  # (B, T)


at_work(shift_right=unshifted)

# %% [markdown]
# The translation stays perfect, because generation doesn't use the shifted targets. But the loss rises from 0.0002 to
# 8.5 nats per word, because this network was trained to predict the *next* word. In figure 10.2 it was the other way
# round, so always check both, the loss and the translations.

# %% [markdown]
# ### Far outside of the training data
#
# What does the translator write for a sentence unlike anything in its training data?

# %%
src = translator.source_batch(["africa visits jane in september"])  # (1, 5)
memory = model.encode(src)  # (1, 5, 64)
print(" ".join(french[index] for index in or_finished(greedy_decode)(step, translator.BOS, translator.EOS, 20)))

# %% [markdown]
# The translation is about Spain, which our sentence doesn't mention. In the training data no continent ever visits
# anybody, and training doesn't determine what a network does so far from its data. In large models such a fluent
# invention is called a **hallucination**. But is this at least the most likely sentence?
#
# ### Beam search
#
# Choosing the most likely next word can lead to an unlikely sentence. Take a small model of seven words, on paper:
#
# | first word | | second word | | together |
# |---|---|---|---|---|
# | le | 0.6 | chat | 0.4 | **0.24** |
# | | | chien | 0.35 | 0.21 |
# | | | roi | 0.25 | 0.15 |
# | la | 0.4 | reine | 0.9 | **0.36** |
# | | | mer | 0.1 | 0.04 |
#
# Greedy decoding takes *le* and ends with *le chat*, although *la reine* is more likely. **Beam search** keeps the
# best few prefixes at each step instead of one. Because products of many probabilities become tiny, we add
# log-probabilities.

# %%
explore.beams()

# %% [markdown]
# A beam of one is greedy decoding, and a beam of two is enough here. A beam that covers every prefix finds the most
# likely sentence of all, but 194 words and 7 positions allow $194^7 \approx 10^{16}$ sentences.
#
# Every extra word multiplies the probability by a value below 1, so beam search favors short sentences. A **length
# penalty** $\alpha$ divides the log-probability by $n^\alpha$, where n counts the words after bos. With $\alpha = 1$
# that is the mean per word. (Google's translation system divides by $((5 + n)/6)^\alpha$ instead.)

# %% [markdown]
# ### Exercise 10.8 `beam_search`
#
# **Extra** · Difficulty 4 of 5 · Importance 3 of 5 · 25 minutes · 10 bonus points
#
# - **Arguments:** as for `greedy_decode`, and `beam_size` and `length_penalty`.
# - **Returns:** a pair `(ids, score)`, a list of ints that starts with bos, and a float, the log-probability divided by (ids
#   after bos)$^{\text{length\_penalty}}$.
# - In each of at most `max_len` steps, extend every unfinished prefix by every word, and keep the `beam_size` best
#   of all these. Prefixes that end with eos are finished and leave the beam.
# - The answer is the finished sequence with the best score or, if none is finished, the best of the beam.
#
# Implementations differ in when they stop and in whether finished sequences count toward the beam size, so the check
# uses cases where they agree.


# %% nbgrader={"solution": "beam_search"}
def beam_search(step, bos_id, eos_id, max_len, beam_size, length_penalty=0.0):
    """Keep the beam_size best prefixes at each step; return the best finished one, else the best of
    the beam.

    step(prefix LongTensor (1, t)) -> logits (1, V); length_penalty: number
    -> (list of int, float): ids with bos first, and their score,
    log-probability / (ids after bos)^length_penalty.
    """
    ### BEGIN SOLUTION

    def score(item):
        ids, log_p = item
        return log_p / (len(ids) - 1) ** length_penalty

    beam, finished = [([bos_id], 0.0)], []
    for _ in range(max_len):
        grown = []
        for ids, log_p in beam:
            steps = torch.log_softmax(step(torch.tensor([ids]))[0], dim=-1).tolist()  # V numbers
            grown += [([*ids, i], log_p + more) for i, more in enumerate(steps)]
        best = sorted(grown, key=score, reverse=True)[:beam_size]
        finished += [item for item in best if item[0][-1] == eos_id]
        beam = [item for item in best if item[0][-1] != eos_id]
    winner = max(finished or beam, key=score)
    return winner[0], score(winner)
    ### END SOLUTION


# %% nbgrader={"grade": "beam_search"}
check(beam_search)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# Keep pairs of a list of ids and its log-probability, one list of pairs for the beam and another for what is
# finished. In each step, make one long list of extended pairs, sort it, keep the best, and move the finished ones.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Logits of different prefixes become comparable as log-probabilities. Within a step all candidates have the same
# length, so the penalty matters only where you compare sentences of different lengths.
#
# </details>

# %%
for width in (1, 3, 10):
    ids, score = or_finished(beam_search)(step, translator.BOS, translator.EOS, 12, width)
    print(f"a beam of {width:>2}: {score:.2f}  " + " ".join(french[index] for index in ids[1:]))

# %% [markdown]
# A beam of three finds a sentence that greedy decoding missed, *l' visite jane en septembre* (−0.94 instead of −1.51). So the
# sentence about Spain wasn't even the most likely one of this model. Its third word, a second *l'*, looked better than *jane* and
# led to a less likely sentence.

# %% [markdown]
# ### How stable are these numbers?
#
# | statement | other seeds, sentences or details |
# |---|---|
# | greedy decoding writes about Spain | all three translators trained from other seeds write *l' visite jane en septembre* |
# | the position that predicts eos attends to *jane* | over 300 sentences it gives 0.41 to the first English word and 0.28 to the last |
# | with the source hidden, *ma* is the most likely first word (0.54) | in the training sentences *ma* comes first in 5 of 100, and *un* and *mon* in 10 of 100 each, where the model gives less than 0.03 |
# | the translator has 206,146 parameters | 3,072 of them, the two tables of positions, are lesson 2's sinusoids and were not trained; 1,152 biases of $W_Q$, $W_K$ and $W_V$ are 0 |
# | every word at position 0: *jane jane jane* | its loss is 11.8 nats per word, where 0.0002 is right |

# %% [markdown]
# ## Further reading
#
# - Vaswani and others (2017), [Attention is all you need](https://arxiv.org/abs/1706.03762), section 3.
# - Williams and Zipser (1989), A learning algorithm for continually running fully recurrent neural networks, on teacher
#   forcing.
# - Wu and others (2016), [Google's neural machine translation system](https://arxiv.org/abs/1609.08144), on beam search and
#   length.
# - Fan and others (2018), [Hierarchical neural story generation](https://arxiv.org/abs/1805.04833), on top-k.
# - Holtzman and others (2020), [The curious case of neural text degeneration](https://arxiv.org/abs/1904.09751), on top-p.
# - Pope and others (2022), [Efficiently scaling Transformer inference](https://arxiv.org/abs/2211.05102), on what the cache
#   costs.
