# %% [markdown]
# # 13. A real network in your own blocks
#
# **Goal:** load a network that people use every day into the encoder that you have built, look at all of its 72 heads,
# and find out what an attention map can tell and what it cannot.
#
# **Time:** about 155 minutes, 60 of them for the capstone and 12 for the extra, exercise 13.7. A good place for a break is after
# exercise 13.3, and the capstone may well be another day's.

# %% tags=["setup"]
# (empty: the build puts the set-up cell here)

# %%
import torch
from torch import nn
from torch.nn import functional as F

from helpers import check, or_given, pretrained, progress
from helpers.blocks import Encoder, EncoderBlock, causal_mask, head_importance, token_influence, wordpiece
from helpers.drawing.transformer_map import transformer_map
from helpers.lessons.real_model import explore, figures
from helpers.lessons.real_model import network as real_network

# %%
transformer_map("13_real_model")

# %% [markdown]
# Until today a small translator was the machine of the course. Now the machine is real: **all-MiniLM-L6-v2**, an encoder
# of six blocks with twelve heads each, width 384, that turns sentences into vectors for search (Wang et al., 2020;
# Reimers and Gurevych, 2019). Nothing in it is new to you.

# %% [markdown]
# ## You need
#
# - the encoder: [lesson 9](../09_encoder_block/09_encoder_block.ipynb), and its heads:
#   [lesson 8](../08_multi_head/08_multi_head.ipynb);
# - pieces of words: [lesson 1](../01_token_embedding/01_token_embedding.ipynb), whose `wordpiece` cuts the text today;
# - the search engine: [lesson 7](../07_value_weighting/07_value_weighting.ipynb).
#
# What this lesson calls of them:
#
# | piece | how it is called |
# |---|---|
# | `Encoder(vocab_size, d_model, num_heads, d_ff, num_layers, max_len, **options)` | its `blocks` are `EncoderBlock`s |
# | `EncoderBlock(d_model, num_heads, d_ff, norm_first=False, activation=F.relu)` | `block(x, mask)` → `(B, T, D)` |
# | `block.attention`, a `MultiHeadAttention` | `(x, mask=mask)` → `(out, weights (B, H, T, T))` |
# | `head_importance(mha, x)` | `(H,)`: how far the output moves without each head |
# | `token_influence(f, x)` | `(T, T)`: how much each row of `f(x)` depends on each row of x |
# | `wordpiece(word, vocab)` | a list of pieces |
#
# Two questions to warm up. Answer before you open them.
#
# <details><summary>Lesson 9: a post-norm block gets x. What is the last thing that happens to its output?</summary>
#
# A layer norm: every token leaves with mean 0 and spread 1, times γ, plus β. In pre-norm the last thing is a sum.
#
# </details>
#
# <details><summary>Lesson 3: an <code>nn.Linear(384, 1536)</code> keeps its weight in which shape?</summary>
#
# (1536, 384): out first, then in. It computes `x @ W.T + b`. Somebody else's file may keep the transpose.
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
# In this lesson `L` is the number of layers. Layers and heads are counted from 0.
#
# </details>

# %% [markdown]
# ## A file full of numbers
#
# A trained network is a file: names, and a table of numbers for each. The next cell looks for it on this machine, then
# on the Hugging Face hub (91 MB), and checks that it is the right one, bit by bit. If it cannot be had, a line says what
# to do, and a small network of random numbers stands in, so that all cells run.

# %%
weights = pretrained.numbers()  # BERT's names -> tensors
print(f"{sum(tensor.numel() for tensor in weights.values()):,} numbers in {len(weights)} tensors")
for name, tensor in weights.items():
    if "layer." not in name or "layer.0." in name:
        print(f"{name:<50}{tuple(tensor.shape)}")

# %% [markdown]
# **On paper.** Where do most of its numbers sit: in the six blocks, or in the table of words (30,522 of them)? A block has
# four square matrices of width 384 and a feed-forward network four times as wide.
#
# <details><summary>Answer</summary>
#
# The table: 30,522 · 384 = 11.7 million of 22.7 million. A block has $4 D^2 + 8 D^2 = 12 \cdot 384^2$, about 1.77
# million with its biases and norms, so all six have 10.6 million. Looking up words costs nothing, though: the work
# is in the blocks.
#
# </details>
#
# `layer.0` is a block. Its parts have other names than yours, and they are your parts:
#
# | BERT's name, after `encoder.layer.{i}.` | yours, after `blocks.{i}.` |
# |---|---|
# | `attention.self.query`, `.key`, `.value` | `attention.W_q`, `.W_k`, `.W_v` |
# | `attention.output.dense` | `attention.W_o` |
# | `attention.output.LayerNorm` | `norm1` |
# | `intermediate.dense` | `feed_forward.up` |
# | `output.dense` | `feed_forward.down` |
# | `output.LayerNorm` | `norm2` |

# %% [markdown]
# ### Exercise 13.1 `rename_weights`
#
# Difficulty 2 of 5 · Importance 4 of 5 · 10 minutes · 18 points
#
# Give every tensor of the blocks the name that your `Encoder` has for it:
#
# `encoder.layer.3.attention.self.query.weight` → `blocks.3.attention.W_q.weight`
#
# A dictionary from BERT's names to tensors → a dictionary from your names to the same tensors. It must work for any number
# of layers. What you do with the other entries (embeddings, pooler) is not judged.


# %% nbgrader={"solution": "rename_weights"}
def rename_weights(state_dict):
    """BERT's names to those of lesson 9's Encoder: "blocks.{i}.attention.W_q.weight" and so on, i
    from 0.

    state_dict: dict of str to tensor -> dict of str to tensor. Other entries than the blocks' may
    be left out or kept.
    """
    ### BEGIN SOLUTION
    names = {
        "attention.self.query": "attention.W_q",
        "attention.self.key": "attention.W_k",
        "attention.self.value": "attention.W_v",
        "attention.output.dense": "attention.W_o",
        "attention.output.LayerNorm": "norm1",
        "intermediate.dense": "feed_forward.up",
        "output.dense": "feed_forward.down",
        "output.LayerNorm": "norm2",
    }
    mine = {}
    for name, tensor in state_dict.items():
        if name.startswith("encoder.layer."):
            _, _, i, *part, kind = name.split(".")
            mine[f"blocks.{i}.{names['.'.join(part)]}.{kind}"] = tensor
    return mine
    ### END SOLUTION


# %% nbgrader={"grade": "rename_weights"}
check(rename_weights)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# Cut a name at its dots. The third piece is the number of the layer, the last says weight or bias, and what stands between
# them is a row of the table above.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# If you replace parts of strings instead: `attention.output.dense` holds `output.dense`. Which of the two must go first?
# And a network may have more than ten layers.
#
# </details>

# %% [markdown]
# Now into your encoder. Two settings are BERT's own: the exact GELU as activation, and ε = 10⁻¹² in every norm.
# (`Encoder` is lesson 9's finished one. If you have kept yours, paste its cell in here: it will do.)

# %%
width, inner = (
    weights["embeddings.word_embeddings.weight"].shape[1],
    len(weights["encoder.layer.0.intermediate.dense.bias"]),
)
encoder = Encoder(len(pretrained.vocab()), width, 12, inner, 6, 512, activation=F.gelu)
missing, unexpected = encoder.load_state_dict(or_given(rename_weights)(weights), strict=False)
for block in encoder.blocks:
    block.norm1.eps = block.norm2.eps = 1e-12
print("not filled yet:", ", ".join(missing))

# %% [markdown]
# All blocks are filled. Only the embeddings are missing: BERT adds three vectors where your encoder adds two, and
# normalizes the sum.

# %% [markdown]
# ## From a sentence to numbers
#
# Text comes in as pieces. BERT (this one is *uncased*) turns everything into small letters, takes accents off and sets marks apart;
# `pretrained.words` does that. Then your `wordpiece` of lesson 1 cuts each word. `[CLS]` and `[SEP]` stand around the sentence.

# %%
for sentence in ("Jane visits Africa.", "The Transformer's attention is unaffable: 3.14 crêpes!"):
    print(" ".join(pretrained.pieces(sentence, wordpiece)))

# %%
ids, mask = pretrained.batch(["jane visits africa", "life is short, eat dessert first"], wordpiece)
print(ids, mask, sep="\n")  # (B, T) each; 0 is [PAD]

# %% [markdown]
# The first sentence is padded, and `mask` says where there is a token. Now the vectors. For the token with id $w_t$ at
# place $t$, from 0:
#
# $$x_t = \mathrm{LN}\big(\mathrm{word}[w_t] + \mathrm{position}[t] + \mathrm{type}[0]\big), \qquad \epsilon = 10^{-12}$$
#
# The type says *first or second sentence of a pair*. We have no pairs, so it is row 0 for everybody.

# %% [markdown]
# ### Exercise 13.2 `bert_embeddings`
#
# Difficulty 2 of 5 · Importance 3 of 5 · 10 minutes · 16 points
#
# The formula above. The tensors are in `weights` under BERT's names:
#
# `embeddings.word_embeddings.weight (V, D)`, `embeddings.position_embeddings.weight (places, D)`,
# `embeddings.token_type_embeddings.weight (2, D)`, `embeddings.LayerNorm.weight (D,)`, `embeddings.LayerNorm.bias (D,)`
#
# `ids` LongTensor `(B, T)`, T at most the number of places → `(B, T, D)`. Gradients reach all five tensors.


# %% nbgrader={"solution": "bert_embeddings"}
def bert_embeddings(ids, weights):
    """What enters BERT's first block (Devlin et al. 2019): word + position + type 0, normalized
    with eps 1e-12.

    ids LongTensor (B, T); weights: dict of BERT's names to tensors, float32 or float64 ->
    (B, T, D), same dtype.
    """
    ### BEGIN SOLUTION
    words = weights["embeddings.word_embeddings.weight"][ids]  # (B, T, D)
    positions = weights["embeddings.position_embeddings.weight"][: ids.shape[1]]  # (T, D)
    types = weights["embeddings.token_type_embeddings.weight"][0]  # (D,)
    x = words + positions + types  # (B, T, D)
    gamma, beta = weights["embeddings.LayerNorm.weight"], weights["embeddings.LayerNorm.bias"]  # (D,) each
    return F.layer_norm(x, gamma.shape, gamma, beta, 1e-12)  # (B, T, D)
    ### END SOLUTION


# %% nbgrader={"grade": "bert_embeddings"}
check(bert_embeddings)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# Three lookups and a sum. Only the first of them depends on the ids; the others broadcast. Which shapes do they have?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Lesson 9's `layer_norm` takes γ, β and an ε; so does the library's. The default ε is not BERT's. In the real file the
# vectors are short before the norm, so it matters here.
#
# </details>

# %% [markdown]
# Embeddings, then your blocks. We keep what stands between the layers, and every table of weights:


# %%
@torch.no_grad()
def read(sentences):
    """hidden: the embeddings and each layer's output, (B, T, D) each; attention (L, B, H, T, T);
    mask (B, T)."""
    ids, mask = pretrained.batch(sentences, wordpiece)  # (B, T) each
    seen = mask[:, None, None]  # (B, 1, 1, T)
    hidden, attention = [or_given(bert_embeddings)(ids, weights)], []
    for block in encoder.blocks:
        attention.append(block.attention(hidden[-1], mask=seen)[1])  # (B, H, T, T)
        hidden.append(block(hidden[-1], seen))  # (B, T, D)
    return hidden, torch.stack(attention), mask


hidden, attention, mask = read(["jane visits africa"])
print(hidden[-1].shape, attention.shape)

# %% [markdown]
# Is it the same network? We run torch's own encoder layers with the same file and compare all seven stages:

# %%
sentences = ["jane visits africa", "life is short, eat dessert first"]
mine, _, mask = read(sentences)
theirs = real_network.reading(*sentences).hidden
print("largest difference:", " ".join(f"{(a - b)[mask].abs().max():.4f}" for a, b in zip(mine, theirs, strict=True)))

# %% [markdown]
# Only rounding is left, beyond the fourth digit. What you have written over twelve lessons runs a network that was trained elsewhere, and gives its
# numbers. (The tests of this course compare it with the library that published it, too.)
#
# **How much do the two settings matter?** We exchange each for its neighbor, the ε of lesson 9 and the approximate GELU
# of GPT-2, and look at the largest change in the last layer.


# %%
def changed(**setting):
    """The largest change at the top when every block gets another eps or activation for a
    moment."""
    before = read(["jane visits africa"])[0][-1]  # (1, T, D)
    with real_network.other_setting(encoder, **setting):
        after = read(["jane visits africa"])[0][-1]  # (1, T, D)
    return (after - before).abs().max().item()


print(f"eps 1e-5: {changed(eps=1e-5):.5f}")
print(f"GELU by tanh: {changed(activation=lambda x: F.gelu(x, approximate='tanh')):.5f}")

# %% [markdown]
# 0.00006 and 0.002, where the largest entry is 5.7. Nobody would see it in a search result, and that is why such slips
# live long in published code. A test to four digits sees them.

# %% [markdown]
# ## Where 72 heads look
#
# Before you look: what will a word look at most? Its verb? Its neighbors? Itself?

# %%
figures.where_attention_rests()

# %% [markdown]
# Mostly at `[CLS]`, which is no word at all: 0.61 to 0.67 of all attention in layers 1 to 4, over eight sentences (they are on
# the slider further down), and 27 of the 72 heads give it more than 0.6. A row of weights must sum to 1, so a head that has nothing to say about a word has to put its attention somewhere. Clark et al.
# (2019) found the same in BERT, there with `[SEP]`, and read it as *doing nothing*. Is it? Here are the lengths of the vectors that one
# head, layer 1, head 8, would hand on from each token:

# %%
hidden, attention, _ = read(["jane visits africa"])
values = encoder.blocks[1].attention.W_v(hidden[1]).unflatten(-1, (12, -1))[0, :, 8]  # (T, d_v)
lengths = values.norm(dim=-1).tolist()  # T numbers
for token, length, weight in zip(
    pretrained.pieces("jane visits africa", wordpiece), lengths, attention[1, 0, 8, 2], strict=True
):
    print(f"{token:<8}value of length {length:.2f}, weight from visits {weight:.2f}")

# %% [markdown]
# *visits* gives `[CLS]` a weight of 0.46, and gets next to nothing for it: the value there has length 0.37, those of the
# words 2.7 to 3.1. A large weight on a small value is a pause. And this is no single case: in the 27 heads that give `[CLS]` more
# than 0.6, the value there
# is a thirtieth as long as those of the words, in the median; in the other heads a fifteenth. **Look at weights
# together with values.**
#
# So for the gallery we leave `[CLS]` and `[SEP]` out and let each row sum to 1 again. That makes faint patterns
# visible; keep in mind that it also hides how faint they are.

# %%
figures.gallery()

# %% [markdown]
# In this sentence nine heads have a plain habit: four look at the previous word, two at the next, three at the word itself. The others
# have patterns that nobody has named. Walk through them, with the sentences of the
# slider or with one that you type. Can you find a head in which *it* looks at *animal* (sentence 9)?

# %%
explore.heads()

# %% [markdown]
# <details><summary>Answer</summary>
#
# Layer 3, head 1, for one: 0.76 of its attention among the words. We come back to it.
#
# </details>

# %% [markdown]
# ## The head that finds jane → visits
#
# The notes that this course grew from begin with a table: in *jane visits africa*, *jane* looks at *visits* with 0.94,
# *visits* at *africa* with 0.86, *africa* at *visits* with 0.76. The notes do not say where the numbers come from; they stand there to
# explain what attention does. Does a real network have such a head? With 72 of them one should not search by eye.

# %% [markdown]
# ### Exercise 13.3 `strongest_head`
#
# Difficulty 2 of 5 · Importance 3 of 5 · 8 minutes · 10 points
#
# Of all heads, the one that lets word `query` look at word `key` the most.
#
# `attention (L, H, T, T)`, already cut to the words, rows summing to 1; `query` and `key` are positions, from 0
# → `(layer, head, weight)`, as `int`, `int` and `float`. There are no ties.


# %% nbgrader={"solution": "strongest_head"}
def strongest_head(attention, query, key):
    """The head with the largest weight from one position to another.

    attention (L, H, T, T), rows are queries; query, key: int -> (layer, head, weight): int, int,
    float, from 0.
    """
    ### BEGIN SOLUTION
    table = attention[:, :, query, key]  # (L, H)
    layer, head = divmod(table.argmax().item(), table.shape[1])
    return layer, head, table[layer, head].item()
    ### END SOLUTION


# %% nbgrader={"grade": "strongest_head"}
check(strongest_head)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# First cut a small table out of the large one: a single number for each layer and head.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# `argmax` without an axis counts through the table row by row. How do you get row and column back from that number?
#
# </details>

# %%
words = ["jane", "visits", "africa"]
among = real_network.among_words(attention[:, 0])  # (L, H, 3, 3), without [CLS] and [SEP]
for query, key in ((0, 1), (1, 2), (2, 1)):
    layer, head, weight = or_given(strongest_head)(among, query, key)
    print(f"{words[query]} → {words[key]}: layer {layer}, head {head}, weight {weight:.3f}")

# %% [markdown]
# Layer 1, head 8 gives 0.935 and 0.893, where the notes' table has 0.94 and 0.86. A subject that looks for its
# verb, a verb that looks for its object, as if the author had seen it! And a head of layer 0 has *africa* look at *visits*.
#
# **Predict before you run.** We turn the sentence round: *africa visits jane*. In layer 1, head 8: where will *africa* look?

# %%
figures.drawn_and_found()

# %% [markdown]
# <details><summary>Answer</summary>
#
# At *visits*, 0.96: the next word. *visits* looks at *jane*, the next word. The last word has no next one and looks at
# itself. Layer 0, head 2 looks at the previous word, just as blindly: *visits* at *jane* with 1.00.
#
# </details>
#
# **The head has not found a verb. It looks at the next word**, and in a sentence of three words the next word happens to be
# the one that the story needs. In *jane quickly visits africa*, *jane* gives 0.86 to *quickly*. Over the eight
# sentences above the next word gets 0.91 on average and is the first choice of 38 of 39 words, whatever it is.
#
# There is a second trap: we have searched. **Predict before you run.** Of 72 heads we take, for each of the six pairs of words, the one
# that fits it best. How large is the smallest of these six weights?

# %%
for query, key, layer, head, weight in figures.easiest_story():
    print(f"{query} → {key}: {weight:.3f}   (layer {layer}, head {head})")

# %% [markdown]
# Not one of the six pairs has a best weight below 0.82: in this sentence some head fits every story. (In three other sentences of
# three words the smallest was 0.65, 0.86
# and 0.90. The longer the sentence, the less of that: among six words half of the pairs stay below 0.65 to 0.77, the worst near 0.3; among ten,
# half stay below about 0.5, and for one pair in five there is still a head above 0.82.) Search 72
# heads and you will often find something; so a head that was *found* must
# be tested on sentences that were not searched. What, then, did the notes' table get right? That rows are
# queries, that one weight can take nearly all of a row, and that a word may look to the right as well as to the left. No
# head has its three numbers at once, and the heads that have one of them have it for another reason than the story tells.

# %% [markdown]
# ## Attention is not explanation
#
# In one head *jane* gives *visits* a weight of 0.82 (0.94 without `[CLS]` and `[SEP]`). Does the network *need* that?
# Silence the head
# and see. First within its layer, by lesson 8's `head_importance`:

# %%
importance = head_importance(encoder.blocks[1].attention, hidden[1])  # (H,)
print("layer 1:", " ".join(f"{x:.2f}" for x in importance.tolist()))

# %% [markdown]
# Head 8 is the second loudest of its layer (2.77; head 3 has 3.12). Now to the top: how far does the vector of the whole
# sentence turn when one head of the 72 is silenced?

# %%
figures.without_each_head()

# %% [markdown]
# By 0.0033: a cosine of 0.997. It is number 12 of 72 here, and further back in most other sentences (12 to 43 in the eight of the
# slider further up, number 20 or 21 in the middle of them).
# What a search would show: the cosine of *jane visits africa* with
# *a woman travels to kenya* goes from 0.543 to 0.542, where both are read without it. The head is not idle, and its story is not what carries the meaning.
#
# The other way round: which input *moves* jane's vector? `token_influence` of lesson 9 asks the derivative. (Through 24
# random directions of the output instead of all 384; that is enough for shares.)

# %%
mix = torch.randn(width, 24, generator=torch.Generator().manual_seed(0))  # (D, 24)
table = token_influence(lambda x: encoder.blocks[1](x[None])[0] @ mix, hidden[1][0])  # (T, T)
shares = table / table.sum(dim=1, keepdim=True)  # (T, T), rows sum to 1
print("what moves jane in layer 1:", " ".join(f"{x:.2f}" for x in shares[1].tolist()))

# %%
figures.weight_and_influence()

# %% [markdown]
# The head looks at *visits* with 0.82. What moves jane's vector in that layer is first of all *jane* (the residual carries
# her past the attention: without it her share falls from 0.44 to 0.13), then `[CLS]`, and *visits* with about 0.1. But
# `[CLS]` had next to nothing to give! True, its value is short. But most of the weight rests there, and so the output moves
# as soon as that value does. Over all six layers it is much the same: *jane* first, *visits* about 0.1.
# Jain and Wallace (2019) argued from such differences that attention is not explanation; Wiegreffe and Pinter (2019)
# answered that it depends on what one wants explained. What you can say after this page:
#
# - a weight tells where a head **looks**; its value tells how much it **gets**;
# - silencing tells what the output **needs**, a derivative what it is **sensitive to**;
# - these are four questions, and here they have four answers.

# %% [markdown]
# ## Q and you, K and others
#
# The notes put it this way: you are Q, other people are K, and how you relate to the same person depends on the context: at
# work somebody may be your superior, and elsewhere your pupil. A Markov chain (lesson 3) knows one number
# $P(K \mid Q)$ for each pair, and nothing else. Take two sentences that differ in a single word:
#
# - *the animal did not cross the street because it was too **tired***
# - *the animal did not cross the street because it was too **wide***
#
# The pair (*it*, *animal*) stands at the same places in both. What would a chain say? What should an attention say?

# %%
figures.same_pair()

# %% [markdown]
# In layer 3, head 1, *it* gives *animal* 0.764 in the first sentence and 0.458 in the second, and *street* rises from 0.066
# to 0.237: a single word at the very end changes how two earlier words relate. The chain of lesson 3 has the
# same number in both.
#
# Is it the head that knows what *it* means? Its first choice is *animal* even for the wide street. Here is a
# pair of sentences that was not searched:

# %%
for word in ("big", "small"):
    sentence = f"the trophy does not fit into the suitcase because it is too {word}"
    tokens = pretrained.pieces(sentence, wordpiece)
    among = real_network.among_words(read([sentence])[1][:, 0])  # (L, H, T, T)
    it, trophy, suitcase = (tokens.index(name) - 1 for name in ("it", "trophy", "suitcase"))
    print(f"too {word}: trophy {among[3, 1, it, trophy]:.3f}, suitcase {among[3, 1, it, suitcase]:.3f}")

# %% [markdown]
# For *small* it should be the suitcase, and the head stays with the trophy, even a little more. So: **the relation depends
# on the context**, that much is certain. That it depends on it in the way that we would like is another claim, and
# this head does not bear it out.

# %% [markdown]
# ## How far context moves a word
#
# *bank* has one row in the table of words. We follow it through the network in three sentences: by the river, with money
# in it, and lending cash.

# %%
figures.banks()

# %% [markdown]
# At the bottom all three are one word; the two curves that start at 0.964 differ in the place of the word alone. At the top
# the two banks with money have a cosine of 0.892, river and money 0.827, river and cash 0.787. The order is right, and the
# distances are modest: in this network a *bank* remains mostly a *bank*.
#
# Do higher layers blend identities, as the notes say? Lesson 9 measured untrained blocks: without residuals a word was
# gone after one block, with them it faded slowly. We ask
# the trained network, by the influence of each word's own embedding on its vector:

# %%
figures.own_shares()

# %% [markdown]
# A fifth would mean *completely blended*. In this short sentence each word keeps about a half. **Predict before you run:** what is left in
# longer sentences? And does training blend words, or does it keep them apart, compared with the same network before training?

# %%
figures.blended()

# %% [markdown]
# <details><summary>Answer</summary>
#
# In a sentence of three words a word keeps about half, in one of six three tenths, in one of twelve a good fifth. In
# the sentence of twelve words every layer takes some (0.46, 0.36, 0.27 and 0.22 after 1, 2, 4 and 6 layers). Before
# training it keeps about three quarters,
# whatever the length: 0.77 and 0.74, and nearly the same with two other draws. So **here training blended more, not less**. But how
# much an untrained stack blends is a matter of its first numbers: with those that `nn.Linear` draws, half as large again in most
# matrices, it keeps 0.56 and 0.52. *Training keeps the words apart*, a sentence that one could read out of figure 13.8 alone, would be wrong.
#
# </details>

# %% [markdown]
# ## One vector for a sentence
#
# This network was trained so that the **mean** of its last vectors tells what a sentence is about. The mean of the kept
# tokens, that is: in a batch short sentences are padded, and padding is no word.
#
# **On paper.** Kept rows (1, 0) and (3, 2), padding (9, 9). What is the mean? And if the padding counts?
#
# <details><summary>Answer</summary>
#
# (2, 1). With the padding (13/3, 11/3): it is off, and by how much depends on the longest sentence in the batch.
#
# </details>

# %% [markdown]
# ### Exercise 13.4 `mean_pool`
#
# Difficulty 2 of 5 · Importance 4 of 5 · 8 minutes · 14 points
#
# $$\bar x_b = \frac{\sum_t m_{bt}\, x_{bt}}{\sum_t m_{bt}}$$
#
# `x (B, T, D)`, boolean `mask (B, T)`, True = kept; the kept tokens may stand anywhere → `(B, D)`. A row in which nothing
# is kept gives zeros, and clean gradients.


# %% nbgrader={"solution": "mean_pool"}
def mean_pool(x, mask):
    """The mean of each sentence's kept tokens.

    x (B, T, D), float32 or float64; mask bool (B, T), True = kept -> (B, D), same dtype; zeros
    where nothing is kept.
    """
    ### BEGIN SOLUTION
    expanded = mask.unsqueeze(-1).to(x.dtype)  # (B, T, 1)
    counts = expanded.sum(dim=1).clamp(min=1)  # (B, 1)
    return (x * expanded).sum(dim=1) / counts  # (B, D)
    ### END SOLUTION


# %% nbgrader={"grade": "mean_pool"}
check(mean_pool)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# Make the rest zero, add up, and divide. By what? Not by T.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# 0 divided by 0 is NaN. Where can you step in so that a row without tokens never gets there?
#
# </details>

# %%
sentences = ["jane visits africa", "a woman travels to kenya", "the stock market fell"]
hidden, _, mask = read(sentences)
vectors = or_given(mean_pool)(hidden[-1], mask)  # (3, D)
jane, woman, stock = F.normalize(vectors, dim=-1)  # (D,) each
print(f"{sentences[0]} · {sentences[1]}: {jane @ woman:.3f}")
print(f"{sentences[0]} · {sentences[2]}: {jane @ stock:.3f}")

# %% [markdown]
# The first two share no word, and have a cosine of 0.543. With the third it is −0.049.

# %% [markdown]
# ## A search engine with meaning
#
# In lessons 3 and 7 you searched videos by keys that we had made up: so much cooking, so much music. Now the keys are real:
# the vectors of their titles. The query is the vector of a question.

# %% [markdown]
# ### Exercise 13.5 `search`
#
# Difficulty 2 of 5 · Importance 4 of 5 · 8 minutes · 12 points
#
# The k best values by the cosine of query and key, with their scores.
#
# `query (D,)`, `keys (N, D)`, `values` a list of N things, 1 ≤ k ≤ N → a list of k pairs `(value, score)`, best first,
# the scores as Python floats. A key of zeros scores 0. There are no ties, and lengths lie between 1e-3 and 1e3.


# %% nbgrader={"solution": "search"}
def search(query, keys, values, k):
    """The k values whose keys have the largest cosine with the query.

    query (D,), keys (N, D), float32 or float64; values: list of N; k: int, 1 to N
    -> list of (value, score), best first; score a Python float, 0.0 for a key of zeros.
    """
    ### BEGIN SOLUTION
    lengths = keys.norm(dim=-1) * query.norm()  # (N,)
    scores = keys @ query / lengths.masked_fill(lengths == 0, 1.0)  # (N,)
    best = scores.topk(k)
    return [(values[i], score) for i, score in zip(best.indices.tolist(), best.values.tolist(), strict=True)]
    ### END SOLUTION


# %% nbgrader={"grade": "search"}
check(search)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# All scores at once: one matrix times a vector, then the lengths. Which length can be zero, and what is then 0 divided by 0?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# `topk` or `argsort` gives places. `.tolist()` makes Python numbers of a tensor.
#
# </details>

# %%
titles = list(figures.TITLES)
hidden, _, mask = read(titles)
keys = or_given(mean_pool)(hidden[-1], mask)  # (N, D)
for question in ("my dog chews my fingers", "why is there so much scattered light above us"):
    hidden, _, mask = read([question])
    found = or_given(search)(or_given(mean_pool)(hidden[-1], mask)[0], keys, titles, 2)
    print(question, *(f"   {score:.3f}  {title}" for title, score in found), sep="\n")

# %% [markdown]
# The first question and *Training a puppy not to bite* have no word in common. Try the other questions, and type some of
# your own, such as *how do i get rid of back pain*. Two of the slider's questions have no good answer among the titles.
# Which two, and how would you notice?

# %%
explore.titles()

# %% [markdown]
# <details><summary>Answer</summary>
#
# The last, *jane visits africa*: its best score is 0.11. And *a kite in the wind*, below. A search by cosine always
# returns something, so one would like a threshold:
# below it, *nothing found*. **Which one?** Go through the questions again. *how neural networks read sentences* has its right title at 0.29, and *a
# kite in the wind*, to which no title is an answer, reaches 0.35 with *How airplanes stay in the air*.
# No threshold gets all of them right. The order of scores says which title is nearest; how near is near enough, a cosine does not say.
#
# </details>

# %% [markdown]
# ### Exercise 13.6 `fixed_sentence_vectors`
#
# **Find the bug** · Difficulty 2 of 5 · Importance 5 of 5 · 8 minutes · 10 points
#
# Both halves of this were published: one library for search averaged over padding, another ran the network without a
# mask. For one sentence alone it is right.
#
# ```python
# def published_sentence_vectors(encode, ids, pad_id):
#     x = encode(ids)  # (B, T, D)
#     return x.mean(dim=1)  # (B, D)
# ```
#
# In a batch the vector of a sentence depends on how long its neighbors are. There are two reasons. `encode(ids, mask=None)`
# is a function that runs the network: its mask is as in lessons 8 and 9, boolean, and broadcasts to `(B, H, T, T)`.
#
# `ids` LongTensor `(B, T)`, padded with `pad_id` on the right; every sentence has at least one token → `(B, D)`: for each
# sentence what it would get alone.


# %% nbgrader={"solution": "fixed_sentence_vectors"}
def fixed_sentence_vectors(encode, ids, pad_id):
    """Each sentence's vector, the same in every batch: the mean of its own tokens' last vectors.

    encode(ids (B, T), mask=None) -> (B, T, D), mask bool that broadcasts to (B, H, T, T); ids
    LongTensor (B, T), padded with pad_id (int) on the right -> (B, D).
    """
    ### BEGIN SOLUTION
    mask = ids != pad_id  # (B, T)
    x = encode(ids, mask[:, None, None, :])  # (B, T, D)
    return mean_pool(x, mask)  # (B, D)
    ### END SOLUTION


# %% nbgrader={"grade": "fixed_sentence_vectors"}
check(fixed_sentence_vectors)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# Padding gets in twice: once while the words look at each other, once when the rows are averaged.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Lesson 5 said where the ones have to stand in the shape of a padding mask, so that it blocks keys for every head and every
# query.
#
# </details>

# %% [markdown]
# ## At work
#
# From the first lesson to the tenth, `at_work` put your functions into the course's translator. Today the real network is the machine, and it
# has been running on your parts all along. What does the published bug cost in it? We ask our question once more, in one batch
# with a long sentence:


# %%
@torch.no_grad()
def encode(ids, mask=None):
    x = or_given(bert_embeddings)(ids, weights)  # (B, T, D)
    for block in encoder.blocks:
        x = block(x, mask)  # (B, T, D)
    return x


def published(encode, ids, pad_id):
    return encode(ids).mean(dim=1)  # (B, D)


def best_title(vectors_of):
    """The question's vector alone and beside a long sentence, their cosine, and what the second one
    finds."""
    question = "my dog chews my fingers"
    (alone,) = vectors_of(encode, pretrained.batch([question], wordpiece)[0], 0)  # (D,)
    together = vectors_of(encode, pretrained.batch([question, figures.LONG], wordpiece)[0], 0)[0]  # (D,)
    keys = vectors_of(encode, pretrained.batch([*titles, figures.LONG], wordpiece)[0], 0)[:-1]  # (N, D)
    found = [f"{score:.3f} {title}" for title, score in or_given(search)(together, keys, titles, 3)]
    return f"alone and together: cosine {F.cosine_similarity(alone, together, dim=0):.3f}", *found


print("yours", *best_title(or_given(fixed_sentence_vectors)), sep="\n   ")
print("published", *best_title(published), sep="\n   ")

# %% [markdown]
# With the bug, a sentence of 8 tokens beside one of 66 is mostly padding: its cosine with the vector that it has alone is
# 0.32. And look at the results. The best title is still the best, so nothing looks broken; but the wrong ones have 0.75 to 0.86, mostly because all
# vectors have the same padding in them: the best of the wrong ones has 0.16 with neither fault, 0.42 if only the mask is missing, 0.69
# if only the mean is wrong. A threshold would let everything through.

# %% [markdown]
# ## Somebody else's layout: GPT-2
#
# GPT-2's block is your `EncoderBlock` with `norm_first=True`, a causal mask and the approximate GELU. Its published file
# keeps the numbers differently:
#
# | GPT-2, after `h.{i}.` | shape | yours, after `blocks.{i}.` |
# |---|---|---|
# | `ln_1`, `ln_2` | (D,) | `norm1`, `norm2` |
# | `attn.c_attn` | weight (D, 3D), bias (3D,) | `attention.W_q`, `W_k`, `W_v`, side by side in this order |
# | `attn.c_proj` | weight (D, D) | `attention.W_o` |
# | `mlp.c_fc` | weight (D, 4D) | `feed_forward.up` |
# | `mlp.c_proj` | weight (4D, D) | `feed_forward.down` |
# | `attn.bias` | (1, 1, places, places) | nothing: it is the causal mask, kept as a table |
#
# It computes $xW + b$ with $W$ of shape (in, out): every matrix is the transpose of yours. **Question:** if you forget to
# transpose, where does Python complain, and where not?
#
# <details><summary>Answer</summary>
#
# It complains where a matrix is not square: at the two of the feed-forward network. `attn.c_proj` is square, and so are
# the three that `c_attn` is cut into. All four go in without a word, wrong.
#
# </details>

# %%
state = real_network.made_up_gpt2()  # made-up numbers in GPT-2's layout: two blocks, width 12, three heads
print([f"{name} {tuple(tensor.shape)}" for name, tensor in state.items() if ".0.attn" in name])

# %% [markdown]
# ### Exercise 13.7 `rename_gpt2`
#
# **Extra** · Difficulty 3 of 5 · Importance 3 of 5 · 12 minutes · 10 bonus points
#
# GPT-2's layout to that of your blocks. Some files begin every name with `transformer.`; take both.
#
# A dictionary with GPT-2's names → a dictionary with yours, `blocks.{i}.attention.W_q.weight` and so on, every matrix
# `(out, in)`, for any number of layers. Other entries are not judged.


# %% nbgrader={"solution": "rename_gpt2"}
def rename_gpt2(state_dict):
    """GPT-2's names and layout to those of lesson 9's blocks: fused c_attn cut in three, every
    matrix transposed.

    state_dict: dict of str to tensor, names "h.0.ln_1.weight" or "transformer.h.0.ln_1.weight" ->
    dict of str to tensor.
    """
    ### BEGIN SOLUTION
    names = {
        "ln_1": ("norm1",),
        "attn.c_attn": ("attention.W_q", "attention.W_k", "attention.W_v"),
        "attn.c_proj": ("attention.W_o",),
        "ln_2": ("norm2",),
        "mlp.c_fc": ("feed_forward.up",),
        "mlp.c_proj": ("feed_forward.down",),
    }
    mine = {}
    for name, tensor in state_dict.items():
        _, _, rest = name.removeprefix("transformer.").partition(".")  # without "h."
        i, _, rest = rest.partition(".")
        part, _, kind = rest.rpartition(".")
        if part in names:  # neither embeddings nor the mask
            pieces = tensor.chunk(len(names[part]), dim=-1)  # one, or three for c_attn
            for new, piece in zip(names[part], pieces, strict=True):
                mine[f"blocks.{i}.{new}.{kind}"] = piece.T if piece.dim() == 2 else piece
    return mine
    ### END SOLUTION


# %% nbgrader={"grade": "rename_gpt2"}
check(rename_gpt2)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# Cut `c_attn` along its last axis, weights and biases alike, before you transpose anything.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# There are two kinds of tensors here, vectors and matrices. `h.0.attn.bias` is neither a bias nor wanted: how does your
# code tell it from `h.0.attn.c_attn.bias`?
#
# </details>


# %%
def tanh_gelu(x):
    return F.gelu(x, approximate="tanh")


gpt2 = nn.ModuleList(EncoderBlock(12, 3, 48, norm_first=True, activation=tanh_gelu) for _ in range(2))
gpt2.load_state_dict({name.removeprefix("blocks."): t for name, t in or_given(rename_gpt2)(state).items()})
x = torch.randn(1, 5, 12, generator=torch.Generator().manual_seed(0))  # (B, T, D)
y = x
for block in gpt2:
    y = block(y, causal_mask(5))  # (B, T, D)
expected = real_network.gpt2_blocks(x, state)  # (B, T, D), by the layout of the file
print(f"largest difference: {(y - expected).abs().max():.4f}")

# %% [markdown]
# Renaming, cutting and transposing is what stands between your blocks and a model of that family.

# %% [markdown]
# ### Quiz 13.1
#
# A head of a trained network gives *jane → visits* 0.935. Which experiment tells most about whether it has learned that
# subjects look for their verbs?
#
# - **a** the mean of its weight over a hundred sentences of the form *name – verb – place*
# - **b** sentences in which the verb is not the next word, and others in which the next word is not the verb
# - **c** the same pair in the other 71 heads

# %% nbgrader={"solution": "quiz_1"}
quiz_1 = None  # "a", "b" or "c"
### BEGIN SOLUTION
quiz_1 = "b"
### END SOLUTION

# %% nbgrader={"grade": "quiz_1"}
check(quiz_1=quiz_1)

# %% [markdown]
# ### Quiz 13.2
#
# In a middle layer a word gives `[CLS]` 0.6 of its attention. What follows from this alone?
#
# - **a** `[CLS]` matters more to this word than all words together
# - **b** little: what `[CLS]` hands on may be close to nothing
# - **c** the network was trained badly

# %% nbgrader={"solution": "quiz_2"}
quiz_2 = None  # "a", "b" or "c"
### BEGIN SOLUTION
quiz_2 = "b"
### END SOLUTION

# %% nbgrader={"grade": "quiz_2"}
check(quiz_2=quiz_2)

# %% [markdown]
# ### Quiz 13.3
#
# You load a network from a file that keeps its matrices as (in, out), and forget to transpose. Which layer goes wrong without
# an error?
#
# - **a** the first layer of the feed-forward network
# - **b** the layer that joins the heads
# - **c** the layer norms

# %% nbgrader={"solution": "quiz_3"}
quiz_3 = None  # "a", "b" or "c"
### BEGIN SOLUTION
quiz_3 = "b"
### END SOLUTION

# %% nbgrader={"grade": "quiz_3"}
check(quiz_3=quiz_3)

# %% [markdown]
# ## Silence a head, test a claim
#
# Everything is there for an experiment of your own. `real_network.silenced(encoder, (layer, head), ...)` silences heads as long as
# its block lasts: what they hand on becomes 0. Take the claim of above, *layer 3, head 1 connects it with the animal*. If it holds and if
# the network needs it, *it* should change most when this head is silenced, more than other words do, and more than without another head
# of its layer. **Predict before you run:** will it?


# %%
def turned(sentence, *heads):
    """How far each token's last vector turns, 1 - cosine, when these heads (layer, head) are
    silenced: (T,)."""
    before = read([sentence])[0][-1][0]  # (T, D)
    with real_network.silenced(encoder, *heads):
        after = read([sentence])[0][-1][0]  # (T, D)
    return 1 - F.cosine_similarity(before, after, dim=-1)  # (T,)


sentence, word = figures.TIRED, "it"
tokens = pretrained.pieces(sentence, wordpiece)
index = tokens.index(word)
for head in range(12):
    turns = turned(sentence, (3, head))  # (T,)
    rank = 1 + int((turns[1:-1] > turns[index]).sum())
    print(
        f"without layer 3, head {head:2}: {word} turns by {turns[index]:.4f}, number {rank} of {len(turns) - 2} words"
    )

# %% [markdown]
# <details><summary>Answer</summary>
#
# Almost half of it. Without head 1 *it* turns by 0.0046, more than ten of the other eleven words. But it is not the
# head that *it* needs most:
# without head 9 it turns by 0.0079, but so do the other words. And in the sentence with the trophy and the suitcase, which nobody
# searched for this head, *it* turns less without head 1 than most words do (number 9 of 13). The head does something for *it*, in the
# sentence in which it was found. More is not shown.
#
# </details>
#
# Now change the cell: another head, a sentence of yours, another word, two heads at once. Write your claim down before you run it.

# %% [markdown]
# ## Written question
#
# *15 points, graded by hand, 60 minutes, half a page.* The capstone of the course: **one open question about one head.**
#
# Choose a head of this network that nobody has explained to you: not layer 1, head 8, and not layer 0, head 2. Say in one sentence
# what you think it does. Then try to prove yourself wrong. `read` gives you its weights on any sentence, the explorer
# shows them, `turned` says whether it is needed. Write half a page: your claim; the sentences that it came
# from; at least four new sentences, chosen so that the claim could fail on them, with their numbers; what silencing the head
# changes, beside another head of its layer; what is left of the claim; what you would need to know to be surer. A claim that fell
# is worth as much as one that stood.
#
# <details><summary>For those who learn alone: what a good answer has</summary>
#
# - a claim that could be false, made before the test, and a rival that explains the same maps (position, a mark, frequency);
# - new sentences that tell claim and rival apart, with numbers, and with those that went wrong;
# - a conclusion no stronger than the test, and the difference between where a head looks and what it is needed for.
#
# </details>

# %% [markdown] nbgrader={"written": "written_1"}
# <details><summary>Model answer and marking scheme</summary>
#
# **Model answer (one of many).** *Claim:* layer 3, head 1 connects *it* with the noun that *it* stands for. I got it from "the
# animal did not cross the street because it was too tired" (*it → animal* 0.764, *street* 0.066 among the words). *Rival:* it
# looks from a pronoun to the first noun of the sentence, or to the subject, whatever the sense. *Test sentences:* with "too
# wide" the noun should be *street*: animal 0.458, street 0.237. The weights move the right way and the first choice stays
# the subject. "The trophy does not fit into the suitcase because it is too small": trophy 0.747, suitcase 0.189; with "too big"
# 0.698 and 0.237: they move the wrong way. "The doctor called the nurse because she was late": doctor 0.301, nurse 0.480;
# "… because she could help": doctor 0.580, nurse 0.226, which fits neither "always the subject" nor the sense that I
# expected. *What is left:* the head looks from pronouns at nouns before them, and which noun depends on the rest of the
# sentence; that it finds the right one is refuted. *Needed?* A weight says where it looks. Silenced, the head turns the vector of *it*
# by 0.0046 in the first sentence, more than those of ten of the other eleven words; in the two with the trophy by 0.003, and
# eight of the twelve others turn more. So it is not shown to be needed for *it* either.  I looked at a dozen heads before I chose this one, so the
# first sentence proves nothing, and four more are few.
#
# **Marking scheme (15).** 3: a claim about one head that could turn out false. 3: a rival explanation that fits the first
# maps too. 4: at least four new sentences that could refute it, with numbers, failures included. 3: a conclusion that
# is no stronger than the test. 2: looking is kept apart from being needed (silencing, influence or values), or the search over
# many heads is named as a danger. A refuted claim gets full marks.
#
# </details>

# %% [markdown]
# ## From the notes this course grew from
#
# <details><summary>Claims about attention, and what the real network says</summary>
#
# - **The table** *jane → visit 0.94, visit → africa 0.86, africa → visit 0.76* stands in two of the notes, without a word of where it
#   comes from. One head of this network happens to give 0.935 and 0.893, because it looks at the next word.
# - **"When your eyes see jane, your brain looks for the most related word in the rest of the sentence."** The heads with the
#   sharpest maps here relate places,
#   not meanings; most attention of the middle layers goes to `[CLS]`.
# - **"There is only one static connection from Q to K as P(K|Q) in MC."** Right, and measured: 0.764 and 0.458 for the same pair
#   at the same places. (The counts of a chain can be conditioned on more words; then there are too many of them. Lesson 12.)
# - **"If the layers go up higher, your individual identity as K will be blended into larger parts."** Yes, and more in long sentences: about
#   half is left of a word in a sentence of three, a good fifth in one of twelve. Training did blend more than random
#   numbers of
#   the size that BERT begins with.
# - **The wires come from "the co-occurrences of them in billions of sequences."** This network was trained on a collection of about
#   a billion pairs of sentences. The sharpest of its wires are about places: the next word, the previous one, `[CLS]`.
# - **Layers see "pairs of pairs", like a receptive field.** A convolution's receptive field grows layer by layer. Here every word has some influence
#   on every other after one layer; what grows is how much of it there is.
# - **"Number of tokens to iterate or sequence size (512 for BERT)."** The table of positions of this network has 512 rows too: read it off above.
# - **"A pronounced shift in the embedding indicates that the word's meaning or relevance is being heavily adjusted."** *bank* by
#   the river and *bank* with
#   money end at a cosine of 0.827, two banks with money at 0.892. The order is right; a threshold between the two would
#   be a guess. (The notes speak of the *magnitude* of the change, and we looked at its direction.)
# - **The bug of exercise 13.6** was put together from two published ones, both mended since: the retrieval library LightRAG
#   averaged over padding, and swift-embeddings ran the network on batches without a mask.
#
# </details>

# %% [markdown]
# ## Recap
#
# - A published network is your blocks and a table of names. Loading one means renaming, now and then transposing, and
#   comparing with the original to four digits.
# - Heads rest on a token that has little to hand on. Weights must be read together with values.
# - The sharp heads look at a place. Among 72 heads one often fits the story; test a head on sentences that were not searched.
# - A cosine orders answers. It has no threshold that tells good from bad.
# - Where a head looks, what it gets, what the output needs and what it is sensitive to are four questions.
# - The mean of the kept tokens makes a sentence's vector; padding must stay out twice.
#
# `progress()` shows what you have done in all lessons.

# %%
progress()

# %% [markdown]
# ## Further reading
#
# - Devlin et al., [BERT](https://arxiv.org/abs/1810.04805) (2019).
# - Wang et al., [MiniLM: Deep Self-Attention Distillation](https://arxiv.org/abs/2002.10957) (2020): how a small network learns
#   the attention of a large one.
# - Reimers and Gurevych, [Sentence-BERT](https://arxiv.org/abs/1908.10084) (2019): why the mean, and how to train it.
# - Clark et al., [What Does BERT Look At?](https://arxiv.org/abs/1906.04341) (2019): the gallery of a larger network.
# - Jain and Wallace, [Attention is not Explanation](https://arxiv.org/abs/1902.10186) (2019), and Wiegreffe and Pinter,
#   [Attention is not not Explanation](https://arxiv.org/abs/1908.04626) (2019). Read them together.
# - Radford et al., *Language Models are Unsupervised Multitask Learners* (2019): GPT-2, whose layout you have loaded.
#
# **Looking back.** The course began with a sentence cut at its spaces. Since then you have written every step between a word and a
# trained Transformer: vectors and places for the words, queries, keys and values, the scale, the mask, the softmax and
# its gradient, heads, blocks, a decoder and its cache. You trained a translator and a language model from random numbers,
# and today 22 million numbers that somebody else trained gave the same answers in your code as in theirs. The large models
# that people talk to every day are made of such blocks: many more of them, far more text, and a second training in how to
# answer. You can read how they are built now. And you know what to ask of a beautiful attention map before you
# believe it.
#
# Three good next steps: load GPT-2 itself into your blocks with `rename_gpt2` and let it write; read nanoGPT's `model.py`,
# in which you will know every line; or answer the capstone's question about a second head, with more sentences, and tell
# somebody what you found.
#
# **Next:** [lesson 14](../14_today/14_today.ipynb) turns your block into the one that today's models are made of.
