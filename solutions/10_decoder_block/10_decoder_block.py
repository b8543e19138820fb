# %% [markdown]
# # 10. The decoder block: the whole Transformer
#
# **Goal:** build the half that writes, join it to the half that reads, load trained numbers into the whole, and let it
# write French. **Time:** about 165 minutes, 25 of them for the extra. That is long: take a break after exercise 10.4, when the
# Transformer runs.

# %% tags=["setup"]
# (empty: the build puts the set-up cell here)

# %%
import torch
import torch.nn.functional as F
from torch import nn

from helpers import at_work, check, or_given, progress, translator
from helpers.blocks import Encoder, FeedForward, MultiHeadAttention
from helpers.blocks import attention, causal_mask, cross_entropy
from helpers.drawing.transformer_map import transformer_map
from helpers.lessons.decoder_block import explore, figures

# %%
transformer_map("10_decoder_block")

# %% [markdown]
# The lower row is today's. At the end of this lesson nothing on this map is a closed box to you.

# %% [markdown]
# ## You need
#
# - causal masks and padding masks: [lesson 5](../05_masking/05_masking.ipynb);
# - logits and cross-entropy: [lesson 6](../06_softmax/06_softmax.ipynb);
# - `MultiHeadAttention`, in which queries and keys may come from two places:
#   [lesson 8](../08_multi_head/08_multi_head.ipynb);
# - residual, norm, feed-forward network and the `Encoder`: [lesson 9](../09_encoder_block/09_encoder_block.ipynb).
#
# What today's answers may call, all of it imported above:
#
# | name | takes | gives |
# |---|---|---|
# | `MultiHeadAttention(d_model, num_heads)` | `forward(query, key=None, value=None, mask=None)`; without a key the query is the key, without a value the key is the value | `(out (B, T_q, D), weights (B, H, T_q, T_k))` |
# | `FeedForward(d_model, d_ff, activation)` | `(B, T, D)` | `(B, T, D)` |
# | `Encoder(vocab_size, d_model, num_heads, d_ff, num_layers, max_len)` | `forward(ids (B, T), mask=None)` | `(B, T, D)` |
# | `attention(Q, K, V, mask=None)` | `(..., T_q, d)`, `(..., T_k, d)`, `(..., T_k, d_v)` | `(out, weights)`, scores over $\sqrt d$ |
# | `causal_mask(T_q, T_k=None)` | two ints | `(T_q, T_k)`, True = may attend, aligned at the end |
# | `cross_entropy(logits, targets, ignore_index=-100)` | `(..., V)`, `(...)` | a scalar, the mean over what is not ignored |
#
# Two questions from earlier lessons. Answer before you open them.
#
# <details><summary>Lesson 5: five words are written and two more come at once. What shape does the causal mask for the
# two new ones have, and what do its rows hold?</summary>
#
# (2, 7). The first new word sees six keys, itself included; the second sees all seven. The mask is aligned at the end.
#
# </details>
#
# <details><summary>Lesson 9: in which order do norm, sublayer and residual come in the paper's block, and in a pre-norm
# block?</summary>
#
# The paper's: norm(x + sublayer(x)). Pre-norm: x + sublayer(norm(x)). In both the residual is the old vector itself.
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
# </details>

# %% [markdown]
# ## Learning to write with the answer in view
#
# The encoder of lesson 9 turns *jane visits africa in september* into five vectors. A second network has to turn those
# into *jane visite l' afrique en septembre*. It writes one word at a time, and each word depends on the words before
# it. So it is a function of two things, the source and what has been written so far, and it returns logits for the next
# word.
#
# How do you train it? Letting it write and grading the result would be slow, and one wrong word at the start would
# spoil everything that follows. Instead you give it the true words, whatever it would have written itself, and
# ask at each place for the next one. This is **teacher forcing**.
#
# | place | 0 | 1 | 2 | 3 | 4 | 5 | 6 |
# |---|---|---|---|---|---|---|---|
# | the decoder reads | `<bos>` | jane | visite | l' | afrique | en | septembre |
# | it has to say | jane | visite | l' | afrique | en | septembre | `<eos>` |
#
# Two marks frame the sentence: `<bos>` (beginning of sentence; bos for short) gives the decoder something to read before
# it has said anything, and with `<eos>` (end of sentence; eos) it says that it has finished. All seven questions are asked at once, in one pass: the
# causal mask keeps place 2 from reading place 3, where its answer stands.

# %%
figures.teacher_forcing()

# %% [markdown]
# ### Exercise 10.1 `shift_right`
#
# Difficulty 1 of 5 · Importance 5 of 5 · 5 minutes · 6 points
#
# Make what the decoder reads out of what it has to say: bos in front, everything one place to the right, the last id dropped.
#
# `targets` LongTensor `(B, T)` with $T \ge 1$, `bos_id` an int → LongTensor `(B, T)`.


# %% nbgrader={"solution": "shift_right"}
def shift_right(targets, bos_id):
    """What the decoder reads while it learns to say `targets`: each row begins with bos and lacks
    its last id.

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
# Two pieces stand side by side: one column that is the same in every row, and most of the targets. How wide is each?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# `torch.cat` joins along a dimension and `torch.full_like` makes a tensor of one number with the shape and dtype of
# another. Rolling is tempting; look at what it puts in front.
#
# </details>

# %% [markdown]
# Here are the machine's ids for our sentence, the ones that you will use all lesson.

# %%
words = "jane visite l' afrique en septembre".split()
targets = torch.tensor([[translator.french[word] for word in words] + [translator.EOS]])  # (B=1, T_t=7)
print("says ", targets.tolist()[0])
print("reads", or_given(shift_right)(targets, translator.BOS).tolist()[0])

# %% [markdown]
# ### Exercise 10.2 `fixed_loss`
#
# **Find the bug** · Difficulty 2 of 5 · Importance 5 of 5 · 8 minutes · 8 points
#
# In data files a target often stands with both marks, `<bos> ... <eos>`, and padding after them. People post the next function
# again and again, and ask why their translator reaches a loss near 0 in the first minutes and then writes nonsense.


# %%
def published_loss(model, src, tgt, pad_id):
    logits = model(src, tgt)  # (B, T_t, V)
    return cross_entropy(logits, tgt, ignore_index=pad_id)


# %% [markdown]
# **Predict before you look.** At place 2 the model has read `<bos>` *jane visite*. Which word does this loss ask for there?
#
# <details><summary>Answer</summary>
#
# *visite*, the word that it has just read. A model that copies its input to its output gets everything right and never
# looks at the English sentence. When it writes alone it repeats its last word: `<bos> <bos> <bos>`.
#
# </details>
#
# Write the loss as it should be. `model(src, ids)` takes `(B, T_s)` and `(B, T)` and gives logits `(B, T, V)`. `tgt`
# is a LongTensor `(B, T_t)` whose rows are bos, words, eos, padding. The result is a scalar: the mean cross-entropy
# over all words that have to be said (eos is one, bos is not) and that are not `pad_id`, all sentences together.


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
# Lay the two rows of the table above under each other and find both of them inside `tgt`. Each lacks one column.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# The model need not read eos: nothing comes after it. And nobody has to say bos. Where a shorter sentence has its eos
# in the middle, padding takes care of the rest.
#
# </details>

# %% [markdown]
# Two small Transformers with the same start, trained for 40 steps on the same 40 sentences, one with the published loss and
# one with yours. Then each writes those 40 sentences alone, sentences that it was trained on. **Predict:** whose loss is
# lower, and how many sentences does each of them get right?

# %%
figures.two_trainings(or_given(fixed_loss))

# %% [markdown]
# The copying one looks like the better student, 0.04 against 0.11, and writes nothing but bos; the other one writes its 40
# sentences word for word. (It has learned them by heart. Lesson 11 trains one that can do more.) **A loss that is too
# good in the first minute is a bug until proven otherwise.** The proof is to let the model write alone.

# %% [markdown]
# ## Looking up in another sentence
#
# The decoder's first sublayer is self-attention under a causal mask: the words written so far, among themselves. It
# knows no English. The second sublayer is new, and it is the same `MultiHeadAttention` with its inputs from two places:
#
# $$Q = y\,W_Q^\top, \qquad K = m\,W_K^\top, \qquad V = m\,W_V^\top,$$
#
# where $y$ are the decoder's vectors, one for each French word, and $m$ is the **memory**, the encoder's output, one
# for each English word. It is the video search of lesson 3 again: the French side asks, and the encoder's output is the
# database, with its keys and its values. This is **cross-attention**.
#
# *On paper:* 7 French places, 5 English words, width 64, 4 heads. What are the shapes of $Q$, $K$ and the weights for one
# sentence? And what happens to them when the encoder's own attention weights, $(4, 5, 5)$, are passed instead of $m$?
#
# <details><summary>Answer</summary>
#
# Q is (4, 7, 16), K is (4, 5, 16), the weights are (4, 7, 5): a row for each French place, a column for each English
# word. The rows add up to 1. Passed instead of $m$, the attention weights would meet $W_K$, which wants rows of 64
# numbers, and torch would complain: they have 5. They hold shares, 5 for each word and head, and not a vector that says
# what the word means. It is the encoder's **output** that is passed on.
#
# </details>
#
# Here is the trained machine's cross-attention in its last block, the mean of four heads.

# %%
figures.cross_attention()

# %% [markdown]
# Read a row: the place that reads *jane* looks at *visits*, 0.97, because *visite* is what it has to say next. The place
# that reads *visite* has to say *l'*, and looks at *africa*, 0.89: which article it has to be hangs on the noun. Is it a
# dictionary? Nearly, and shifted by one place. The last place has to say eos and looks at *jane*. Over 300 sentences that
# place gives 0.41 to the first English word and 0.28 to the last: it has no French word to look for, only whether the English
# has ended, and its row has to add up to 1 all the same.
#
# No mask hides later English words: the source is all there before the first French word is written. But padding must
# be hidden, and that is what `memory_mask` is for.

# %% [markdown]
# ### Exercise 10.3 `DecoderBlock`
#
# Difficulty 3 of 5 · Importance 5 of 5 · 25 minutes · 17 points
#
# Three sublayers, each with residual and norm. In the paper's order (`norm_first=False`):
#
# $$y_1 = \text{norm}_1(y + \text{self}(y)) \qquad y_2 = \text{norm}_2(y_1 + \text{cross}(y_1, m)) \qquad
# y_3 = \text{norm}_3(y_2 + \text{ff}(y_2))$$
#
# and with `norm_first=True`
#
# $$y_1 = y + \text{self}(\text{norm}_1(y)) \qquad y_2 = y_1 + \text{cross}(\text{norm}_2(y_1), m) \qquad
# y_3 = y_2 + \text{ff}(\text{norm}_3(y_2)).$$
#
# - Attributes: `self_attention`, `cross_attention` (`MultiHeadAttention`), `feed_forward` (`FeedForward` with the given
#   activation), `norm1`, `norm2`, `norm3` (`nn.LayerNorm`, which may be torch's own).
# - `forward(y, memory, self_mask=None, memory_mask=None)`: `y (B, T_t, D)`, `memory (B, T_s, D)` → a tuple
#   `(y, cross_weights)` of shapes `(B, T_t, D)` and `(B, H, T_t, T_s)`. The masks broadcast to `(B, H, T_t, T_t)` and
#   `(B, H, T_t, T_s)`. A row of theirs may hide everything: its weights are zeros then, as in lesson 8.
# - The same in training mode: no dropout here.
#
# Forbidden: `nn.Transformer*`.


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
# Start from the `EncoderBlock` of lesson 9 and put a third sublayer between its two. `MultiHeadAttention` returns two
# things each time; you need both of them once, and only the first the other time.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Compare your lines with the six formulas, one after the other. The letter $m$ appears in two of them. What stands in
# front of it, and is there a norm around it?
#
# </details>

# %% [markdown]
# ### Exercise 10.4 `Transformer`
#
# Difficulty 4 of 5 · Importance 5 of 5 · 35 minutes · 19 points
#
# Everything together: `Transformer(src_vocab, tgt_vocab, d_model, num_heads, d_ff, num_layers, max_len, pad_id=0)`.
#
# | method | takes | gives | what happens |
# |---|---|---|---|
# | `encode(src)` | `(B, T_s)` | memory `(B, T_s, D)` | the `Encoder` of lesson 9; nobody looks at padding |
# | `decode(tgt, memory, src)` | `(B, T_t)`, memory, `(B, T_s)` | logits `(B, T_t, tgt_vocab)` | target words and their positions, `num_layers` decoder blocks, a last linear layer |
# | `forward(src, tgt)` | `(B, T_s)`, `(B, T_t)` | logits | `decode` of `encode` |
#
# `src` and `tgt` are LongTensors of ids, at most `max_len` wide; where `src` is `pad_id` there is padding, on whichever side,
# and a sentence may be padding alone. Source and target have embeddings and learned positions of their own, and there are
# `num_layers` blocks on each side, in the paper's order; every decoder block looks at the memory. Word and position vectors
# are added as they are. `tgt` has bos in front and needs no padding mask: it is padded on the right, and the causal mask
# hides what stands there from every real word. Nothing is kept from one call to the next, and there is no dropout.
#
# The check makes all parameters random and looks at what the model *does*. It must know the order of words on both sides; a
# target word must never change what was said before it; padding must not be heard; each target place must hear each source
# word. The attribute names are free. But if you use these, the machine's trained numbers fit below, and the check too loads
# numbers and compares logits: `encoder`, `tokens`, `positions` (`max_len` rows), `blocks`, `unembed` (`nn.Linear`, with
# bias). Forbidden: `nn.Transformer*`.


# %% nbgrader={"solution": "Transformer"}
class Transformer(nn.Module):
    """The encoder-decoder of Vaswani et al. (2017), with learned positions.

    All arguments are int; num_layers blocks on each side.
    encode(src (B, T_s)) -> memory (B, T_s, D);
    decode(tgt (B, T_t), memory, src) -> logits (B, T_t, tgt_vocab);
    forward(src, tgt) -> logits. Where src is pad_id, nobody looks.
    """

    def __init__(self, src_vocab, tgt_vocab, d_model, num_heads, d_ff, num_layers, max_len, pad_id=0):
        super().__init__()
        ### BEGIN SOLUTION
        self.pad_id = pad_id
        self.encoder = Encoder(src_vocab, d_model, num_heads, d_ff, num_layers, max_len)
        self.tokens = nn.Embedding(tgt_vocab, d_model)
        self.positions = nn.Embedding(max_len, d_model)
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
# Padding is looked at in two places: inside the encoder, and by cross-attention. Both want a mask of shape
# `(B, 1, 1, T_s)`. That is why `decode` is given `src` besides the memory.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# `decode` is the `forward` of lesson 9's `Encoder` with other blocks and one line more. If the check says that order is
# not known, print the first line of it. If it says that a block has no say, look at what your loop hands on.
#
# </details>

# %% [markdown]
# Now fill it with trained numbers. The machine of this course was trained before lesson 1, and its 206,146 numbers fit
# your class. (3,072 of them, the two tables of positions, are lesson 2's sinusoids and were not trained. Nor were 1,152
# biases: those of $W_Q$, $W_K$ and $W_V$ are 0.) With
# `strict=False` nothing is said about names that do not fit, so we ask.

# %%
model = or_given(Transformer)(*translator.SIZES)
fit = model.load_state_dict(translator.state(), strict=False)
print("not filled:", fit.missing_keys or "nothing", "· not used:", fit.unexpected_keys or "nothing")
src = translator.source_batch(["jane visits africa in september"])  # (B=1, T_s=5)
logits = model(src, or_given(shift_right)(targets, translator.BOS))  # (1, T_t=7, V=194)
french = {index: word for word, index in translator.french.items()}
print(" ".join(french[index] for index in logits[0].argmax(dim=-1).tolist()))

# %% [markdown]
# *jane visite l' afrique en septembre*, from your own code. (If you chose other names, the first line lists them and you see
# noise: rename and run again.) **Take a break here.** The rest of the lesson is about writing.

# %% [markdown]
# ## Writing: one word at a time
#
# In training all places are asked at once. When the machine writes, the words to read do not exist yet. So: read bos, say
# a word, put it after bos, read both, say a word, and so on until eos. The simplest choice is the likeliest word each
# time: **greedy decoding**.
#
# To keep network and search apart, the search is given a function `step`: a prefix of ids `(1, t)` goes in, the logits
# for the next word `(1, V)` come out.

# %% [markdown]
# ### Exercise 10.5 `greedy_decode`
#
# Difficulty 2 of 5 · Importance 4 of 5 · 8 minutes · 10 points
#
# `greedy_decode(step, bos_id, eos_id, max_len)` → a list of Python ints. It begins with `bos_id`; it ends with `eos_id`,
# or when `max_len` words stand after bos ($\text{max\_len} \ge 1$). The two marks are different ids. `step` wants a
# LongTensor of shape `(1, t)` with *all* ids so far.


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
# Keep a plain Python list and make a tensor of it for each call. Count the calls of `step` and not the length of the
# list, and max_len takes care of itself.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Ask about eos after the new id is in the list: eos belongs to the answer. And a list of 0-dim tensors is no list of
# ints.
#
# </details>

# %%
memory = model.encode(src)  # (1, T_s=5, D=64), computed once


def step(prefix):
    return model.decode(prefix, memory, src)[:, -1]  # (1, V)


ids = or_given(greedy_decode)(step, translator.BOS, translator.EOS, 20)
print(" ".join(french[index] for index in ids))

# %% [markdown]
# The encoder ran once, the decoder seven times. **Predict before you run:** what does the machine make of *africa visits
# jane in september*? A dictionary with word order would say *l' afrique visite jane en septembre*.

# %%
src = translator.source_batch(["africa visits jane in september"])  # (1, 5)
memory = model.encode(src)  # (1, 5, 64)
print(" ".join(french[index] for index in or_given(greedy_decode)(step, translator.BOS, translator.EOS, 20)))

# %% [markdown]
# It writes *l' visite l' espagne en septembre*. That is not French, and nobody spoke of Spain. In its training no continent
# ever visited anybody. Is Spain a habit of its French, then? Three machines of the same recipe, trained from other seeds,
# wrote *l' visite jane en septembre*, all three. So it is an accident of this training: before something so new a network says something, and what, is
# up to chance. In large models a fluent invention of this kind is called hallucination.

# %% [markdown]
# ## Greedy is not the likeliest sentence
#
# The likeliest next word can lead into a poor neighborhood. A small machine of seven words, on paper:
#
# | first word | | second word | | together |
# |---|---|---|---|---|
# | le | 0.6 | chat | 0.4 | **0.24** |
# | | | chien | 0.35 | 0.21 |
# | | | roi | 0.25 | 0.15 |
# | la | 0.4 | reine | 0.9 | **0.36** |
# | | | mer | 0.1 | 0.04 |
#
# Greedy takes *le*, because 0.6 > 0.4, and ends with *le chat*, 0.24. The likeliest sentence is *la reine*, 0.36. **Beam
# search** keeps the best few prefixes at each step instead of one. Products of many probabilities get tiny, so one adds
# log-probabilities.

# %%
explore.beams()

# %% [markdown]
# Width 1 is greedy. Width 2 is enough here to find *la reine*. A width that covers every prefix finds the likeliest
# sentence of all, at a price: 194 words and 7 places are $194^7 \approx 10^{16}$ sentences.
#
# **Length.** Each word multiplies by a number below 1, so short sentences win. A **length penalty** $\alpha$ divides the
# log-probability by (number of words after bos)$^\alpha$: 0 changes nothing, 1 compares means per word. (The translation
# system of Wu et al., 2016, divides by $((5 + n)/6)^\alpha$; same idea.)

# %% [markdown]
# ### Exercise 10.6 `beam_search`
#
# **Extra** · Difficulty 4 of 5 · Importance 3 of 5 · 25 minutes · 10 bonus points
#
# `beam_search(step, bos_id, eos_id, max_len, beam_size, length_penalty=0.0)` → `(ids, score)`, a list of ints that
# begins with bos, and a float.
#
# - At each of at most `max_len` steps every unfinished prefix of the beam is grown by every word, and the `beam_size`
#   best of all these are kept. Those that end with eos are finished and leave the beam.
# - score = log-probability / (ids after bos)$^{\text{length\_penalty}}$.
# - The answer is the best finished sequence; if none has finished, the best of the beam.
#
# Published versions differ in details (when to stop, whether finished ones take up room). The check uses beams of 1,
# beams that cover everything, and a beam of 2 in which no sentence ends, where they agree.


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
# Keep pairs of a list of ids and its log-probability: one list of them for the beam, another for what is finished. A
# step makes one long list of grown pairs, sorts it, cuts it, and sorts out the finished ones.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Logits become comparable across prefixes as log-probabilities. When the beam is cut all candidates have the same length, so
# the penalty changes nothing there. Where are sentences of different lengths compared?
#
# </details>

# %%
src = translator.source_batch(["africa visits jane in september"])  # (1, 5)
memory = model.encode(src)  # (1, 5, 64)
for width in (1, 3, 10):
    ids, score = or_given(beam_search)(step, translator.BOS, translator.EOS, 12, width)
    print(f"a beam of {width:>2}: {score:.2f}  " + " ".join(french[index] for index in ids[1:]))

# %% [markdown]
# Three prefixes at a time are enough to find a sentence that greedy decoding has missed, −0.94 against −1.51: *l' visite jane
# en septembre*, the very words of the three other machines. So the sentence about Spain was not even the likeliest of
# this machine. Its third word, a second *l'*, looked better than *jane*, and led to a poorer sentence.

# %% [markdown]
# ## Choosing by lot: temperature, top-k, top-p
#
# Each sentence of our small language has one right translation. A story can go on in many ways, and the likeliest words
# all the time make a dull one. So one
# draws the next word from the softmax. Now cover the English sentence (call all of it padding) and ask the machine for
# its first French word. Cross-attention finds nothing, and the decoder has to say something without it:

# %%
figures.next_words()

# %% [markdown]
# *Ma* 0.54, *la* 0.14, *une* 0.08, *david* 0.05, and a long tail: the last 180 words share 0.012. Is that what the decoder
# knows of French? No: in its training sentences *ma* comes first in 5 of 100, and *un* and *mon*, 10 of 100 each, get less
# than 0.03 here. A sentence of nothing but padding is something that it has never seen, so this is a distribution to
# practice on and no knowledge. The tail is like any other: each of its words is rare, but in a long text it is hit now and
# then, and one odd word spoils what follows. Three remedies:
#
# - **temperature** divides the logits (lesson 6): below 1 the peak grows, above 1 the tail;
# - **top-k** keeps the k likeliest words;
# - **top-p** (nucleus sampling, Holtzman et al., 2020) keeps the likeliest words until together they have mass p. Where
#   the machine is sure it keeps one word, where it is not it keeps many.
#
# *On paper:* probabilities 0.5, 0.3, 0.15, 0.05 and $p = 0.7$. Which words stay, and with which shares?
#
# <details><summary>Answer</summary>
#
# The first has 0.5, less than 0.7, so the second comes too; with it the mass is 0.8. It is the word that crosses p, and
# it is kept. The other two go. The shares are 0.5/0.8 = 0.625 and 0.375.
#
# </details>

# %%
explore.next_word()

# %% [markdown]
# ### Exercise 10.7 `filter_logits`
#
# Difficulty 3 of 5 · Importance 3 of 5 · 20 minutes · 10 points
#
# `filter_logits(logits, top_k=None, top_p=None)`: `logits (..., V)` → the same shape and dtype. What is cut becomes
# $-\infty$; what is kept stays as it is.
#
# - `top_k`, $1 \le k \le V$: keep the k largest of each row.
# - `top_p`, $0 < p < 1$: keep the likeliest words, in order, until their mass reaches p. The word that crosses p is
#   kept, so at least one always is.
# - With both: top-k first, then top-p on the probabilities of what is left, renormalized.
#
# Ties are not judged.


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
# For top-p, sort each row, take the softmax, and add up. Whether a word stays does not depend on its own probability
# but on the mass of the words before it.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# The verdicts stand in sorted order, the logits do not. Sorting also tells you where each entry came from; `scatter`
# writes to such places. If the words that top-k has cut are $-\infty$ by then, renormalizing costs nothing.
#
# </details>

# %% [markdown]
# Now draw. 2,000 first words from the distribution above, at temperature 1: how many of them come from the tail, the 180
# unlikeliest? **Predict**, then look what the filters make of it.

# %%
first = figures.first_word_logits()  # (V=194,)
tail = first.argsort(descending=True)[14:]  # the ids of the 180 unlikeliest words
for name, options in {"no filter": {}, "top_k=5": {"top_k": 5}, "top_p=0.9": {"top_p": 0.9}}.items():
    p = torch.softmax(or_given(filter_logits)(first, **options), dim=-1)  # (V,)
    drawn = torch.multinomial(p, 2000, replacement=True, generator=torch.Generator().manual_seed(0))  # (2000,)
    words = " ".join(french[index] for index in drawn[:8].tolist())
    print(f"{name:<10} {torch.isin(drawn, tail).sum():>3} from the tail, {(p > 0).sum():>3} words left: {words}")

# %% [markdown]
# 19 draws of 2,000 fall into the tail, about as often as its share of 0.012 says, and both filters close it. Top-k keeps five
# words however sure the machine is; top-p keeps eight here, and would keep one where one has 0.9.

# %% [markdown]
# ## Not computing things twice
#
# Look at what `step` does. To write the seventh word it sends all seven ids through every block, although six of them
# went through at the step before. Under a causal mask an earlier word never sees a later one, so its vectors do not
# change when words are added. Only one row is new.
#
# What does the new row need of the old ones? Its query meets their **keys** and takes their **values**. Old queries are
# never used again. So keep K and V of every block: this is the **KV cache**.

# %%
figures.cache_cells()

# %% [markdown]
# ### Exercise 10.8 `cached_attention`
#
# Difficulty 3 of 5 · Importance 4 of 5 · 12 minutes · 10 points
#
# `cached_attention(q, k, v, cache)` → `(out, cache)`. `q`, `k`, `v` are `(B, H, T_new, d)`, for the new tokens only;
# `out` has the same shape. `cache` is None at the start and then whatever your last call returned: its form is yours to
# choose. What is in it is not computed again: with one new token the work grows with the number of earlier ones, not with
# its square.
#
# The outputs must equal the same rows of full causal attention (scores over $\sqrt d$), for one new token at a time or
# for several. Leave the cache that came in as it was: beam search goes on from one cache in several directions.
# Gradient must reach earlier keys and values.


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
# All keys so far are the old ones and the new ones, in the order in which they were said. `torch.cat` makes a new tensor
# and leaves both pieces alone.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# With one new token no mask is needed. With several, the first new one must not see the second: lesson 5's causal mask
# with two different lengths is aligned at the end for exactly this purpose.
#
# </details>

# %% [markdown]
# How much does it save? Count the multiplications of one block (width 64, as in the machine; self-attention and feed-forward
# network, without cross-attention) while it writes T words, with and without a cache. They are counted while the code runs, and your function is what runs in the cached one.

# %%
figures.cache_saving(or_given(cached_attention))

# %% [markdown]
# Without a cache the work of writing T words grows like T² (and its attention like T³). With it, each word costs about as
# much as the one before. At 64 words such a block needs 33.7 times fewer multiplications. The price is memory: 2 · D
# numbers for each word
# in each block, kept as long as the text is.
#
# **One trap.** A cached word needs its own position. Published loops that feed only the newest id often give it
# position 0, because it is the first of its little batch. *What would our machine do then?*
#
# <details><summary>Answer</summary>
#
# Every word says that it stands at the beginning, and the machine goes on as if it did: it writes *jane jane jane ...*
# until somebody stops it. Nothing crashes, and its loss is 11.8 nats a word instead of
# 0.0002. The right offset is the number of words in the cache.
#
# </details>

# %% [markdown]
# ## At work
#
# Your parts in the machine: first the block, then the whole network, then your loop, then your cache.

# %%
at_work(DecoderBlock)

# %%
at_work(Transformer)

# %%
at_work(greedy_decode)

# %%
at_work(cached_attention)


# %% [markdown]
# And the bug of exercise 10.2: the decoder reads the very words that it has to say. **Predict:** does the translation
# change? Does the loss?


# %%
def unshifted(targets, bos_id):
    return targets  # (B, T)


at_work(shift_right=unshifted)

# %% [markdown]
# The translation stays perfect: writing does not use the shift. The loss rises from 0.0002 to 8.5 nats a word: this
# network was trained to say the *next* word, and the copying loss asks for the same one. In a network trained with the
# bug it is the other way round, as figure 10.2 has shown: a loss near 0, and useless sentences. Either number alone would
# have fooled you.

# %% [markdown]
# ### Quiz 10.1
#
# What does the encoder hand to the decoder?
#
# - **a** its attention weights
# - **b** one vector for the whole sentence
# - **c** one vector for each source word, used as keys and values in every decoder block
# - **d** its keys and values, ready to be used

# %% nbgrader={"solution": "quiz_1"}
quiz_1 = None  # "a", "b", "c" or "d"
### BEGIN SOLUTION
quiz_1 = "c"
### END SOLUTION

# %% nbgrader={"grade": "quiz_1"}
check(quiz_1=quiz_1)

# %% [markdown]
# ### Quiz 10.2
#
# The causal mask is left out, in training and in writing. What do you see first?
#
# - **a** a training loss near 0, and poor sentences
# - **b** an error about shapes
# - **c** a training loss that does not fall

# %% nbgrader={"solution": "quiz_2"}
quiz_2 = None  # "a", "b" or "c"
### BEGIN SOLUTION
quiz_2 = "a"
### END SOLUTION

# %% nbgrader={"grade": "quiz_2"}
check(quiz_2=quiz_2)

# %% [markdown]
# ### Quiz 10.3
#
# Why does the cache hold keys and values, and no queries?
#
# - **a** queries are too large
# - **b** a query is used once, by its own word; keys and values are used by every later word
# - **c** queries change when words are added, keys and values do not

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
# A colleague has trained a translator. After ten minutes the training loss is 0.002, and so is the loss on sentences
# that it has not seen. When it writes alone it produces nonsense. Name three different causes that fit all of this,
# say for each *why the loss stays low*, and for each a test of a line or two that would confirm or exclude it.
#
# <details><summary>For those who learn alone: what a good answer has</summary>
#
# - three causes that are really different, and that let the answer leak into the input or differ between training and
#   writing;
# - for each the reason why teacher forcing does not notice;
# - a test that looks at behavior (change an input, watch an output), not at the loss once more.
#
# </details>

# %% [markdown] nbgrader={"written": "written_1"}
# **Model answer.** (1) The decoder's input is not shifted: at each place it reads the word that it has to say, so copying
# is enough, on new sentences too. Test: print the first row of input and target under each other. (2) The causal mask is
# missing or looks one place ahead: the answer stands one place to the right. Test: change the last target word and see
# whether earlier logits move (`leaks_future` of lesson 5). (3) Writing differs from training: the loop gives `step` only
# the newest word, or with a cache the wrong position, or reads the logits of place 0 instead of the last place. The loss
# never runs this code. Test: feed the true words through the loop and compare its logits with those of one pass. Each
# time, teacher forcing gives the model the true words and never sees what happens when it reads its own.
#
# **Marking scheme, 15 points.** Three different causes that fit both low losses, 2 each (6). For each, why the loss stays
# low, 1 each (3). For each, a test that would tell it apart from the other two, 2 each (6). An overfitted model is no
# such cause: its loss on new sentences would be high.

# %% [markdown]
# ## From the notes this course grew from
#
# <details><summary>Five claims about the decoder, and what this lesson found</summary>
#
# The notes on the Transformer's parts (after a tutorial of the AI Summer site) describe the decoder as a recipe.
#
# - *"The attention matrix generated by the encoder is passed to another attention layer."* No: the encoder's **output**
#   is passed, one vector a word. Two sentences later the notes say so themselves: it "is like our database", and keys and
#   values are made of it. Shapes settle it: the machine's memory is (1, 5, 64), its weights are (1, 4, 5, 5).
# - *"A normalization layer followed by a residual connection"*: the paper adds first and normalizes the sum; pre-norm
#   normalizes what the sublayer reads. Between sublayer and sum neither does. A few later models do (Swin Transformer V2,
#   OLMo 2).
# - *"we simply keep the one with the highest score"*: that is greedy decoding: one choice of several, and not the one
#   that finds the likeliest sentence (*le chat* against *la reine*).
# - *"The encoder-decoder attention is trained to associate the input sentence with the corresponding output word."* It is
#   trained to make the next word likely, like every other part; that its map points at the right words is what came of it.
# - *"This is essentially where the mapping between English and French is happening."* The cross-attention map above looks
#   like a dictionary, shifted by one place. Lesson 11 measures how often the map points at the right word.
#
# </details>

# %% [markdown]
# ## Recap
#
# - Teacher forcing: read bos and the true words, say each next one. The shift is the whole trick, and forgetting it gives
#   a loss that is too good.
# - A decoder block is self-attention under a causal mask, cross-attention into the encoder's output, feed-forward.
# - Queries come from the target, keys and values from the source. The memory is not normalized by the decoder.
# - Greedy, beam, top-k, top-p: the network gives logits, and the search is a separate choice.
# - The KV cache: earlier keys and values do not change under a causal mask, so compute them once.

# %%
progress()

# %% [markdown]
# ## Further reading
#
# - Vaswani et al. (2017), [Attention is all you need](https://arxiv.org/abs/1706.03762), sections 3.1 and 3.2.3.
# - Williams and Zipser (1989), A learning algorithm for continually running fully recurrent neural networks: teacher
#   forcing.
# - Wu et al. (2016), [Google's neural machine translation system](https://arxiv.org/abs/1609.08144), section 7: beam
#   search and length.
# - Holtzman et al. (2020), [The curious case of neural text degeneration](https://arxiv.org/abs/1904.09751): top-p.
# - Fan et al. (2018), [Hierarchical neural story generation](https://arxiv.org/abs/1805.04833): top-k.
# - Pope et al. (2022), [Efficiently scaling Transformer inference](https://arxiv.org/abs/2211.05102): what the cache costs.
#
# **Next:** [lesson 11](../11_translation/11_translation.ipynb) trains the whole machine, in front of you.
