# %% [markdown]
# # 11. Translation: train the full model
#
# **In this lesson** you'll train the translator that you have used in every lesson, starting from random weights,
# with your own batches, loss and learning rate. You'll look inside it, and learn to tell a good training run from one
# that only seems good. **Core:** about 85 minutes.

# %% tags=["setup"]
# (empty: the build puts the set-up cell here)

# %%
import math
import random
from collections import Counter

import torch
from torch import nn

from helpers import check, or_finished, progress, translator
from helpers.blocks import beam_search, cross_entropy, greedy_decode
from helpers.corpus import training_pairs, unseen_pairs
from helpers.drawing.transformer_map import transformer_map
from helpers.lessons.translation import explore, figures, own
from helpers.translator import BOS, EOS, PAD, english, french
from helpers.widgets.checkpoint import checkpoint, quick
from helpers.widgets.live_plot import Live

# %%
transformer_map("11_translation")

# %% [markdown]
# You have built every box of this map, and only the arrow back from the loss, the training, is missing.

# %% [markdown]
# ## You need
#
# You need cross-entropy ([lesson 6](../06_softmax/06_softmax.ipynb)) and the `Transformer`, teacher forcing and
# greedy decoding ([lesson 10](../10_decoder_block/10_decoder_block.ipynb)). You can use these components:
#
# | component | how it is called |
# |---|---|
# | `Transformer(src_vocab, tgt_vocab, d_model, num_heads, d_ff, num_layers, max_len, pad_id=0)` | `model(src, tgt)` → logits `(B, T_t, V)` |
# | `model.encode(src)` | memory `(B, T_s, D)` |
# | `model.decode(tgt, memory, src)` | logits `(B, T_t, V)` |
# | `greedy_decode(step, bos_id, eos_id, max_len)` | a list of ids, bos first; `step(prefix (1, t))` → logits `(1, V)` |
#
# The [conventions](../00_start_here/00_start_here.ipynb) of lesson 0 hold here too. Here are two questions to warm
# up.
#
# <details><summary>Lesson 10: what does the decoder read at position 0, and what does it predict at its last
# position?</summary>
#
# It reads `<bos>` at position 0, and it predicts `<eos>` at its last position.
#
# </details>
#
# <details><summary>Lesson 6: what is the loss, in nats, of a model that gives each of 194 words the same
# probability?</summary>
#
# It's $\log 194 = 5.27$, and an untrained translator starts near this value.
#
# </details>

# %% [markdown]
# ## A language with known alignments
#
# The sentences come from a small grammar with 165 English and 191 French words (194 with `<pad>`, `<bos>` and
# `<eos>`). In French, articles and adjectives agree with their noun, and most adjectives come after it. Because the
# grammar generates both sides, we also know from which English word each French word comes.

# %%
figures.word_by_word()

# %% [markdown]
# We have 20,000 pairs for training and 500 unseen ones, each with an adjective and a noun that never occur together
# in the training data. In a third of them the word order differs from the English at two or three points.

# %%
pairs = training_pairs()
unseen = unseen_pairs()
print(len(pairs), "pairs; one of them:", pairs[0].english, "→", pairs[0].french)
print(len(unseen), "unseen; one of them:", unseen[0].english, "→", unseen[0].french)

# %% [markdown]
# We train on batches of three padded tensors, namely the encoder's input, the decoder's input, and the targets.

# %%
figures.batch_of_three()

# %% [markdown]
# ### Exercise 11.1 `make_batch`
#
# Difficulty 2 of 5 · Importance 5 of 5 · 10 minutes · 12 points
#
# Turn a list of sentence pairs into the three tensors of a batch.
#
# - **Arguments:** `pairs`, a list of (source, target), each a list of ids without special tokens; `pad_id`, `bos_id`
#   and `eos_id`, ints.
# - **Returns:** a dict of three LongTensors: `"src" (B, T_s)` with the sources, `"tgt_in" (B, T_t)` with `<bos>` and
#   then the target, and `"tgt_out" (B, T_t)` with the target and then `<eos>`. Row b belongs to pair b, each tensor
#   is as wide as its longest row, and shorter rows are padded on the right.


# %% nbgrader={"solution": "make_batch"}
def make_batch(pairs, pad_id, bos_id, eos_id):
    """Sentence pairs as the three tensors that a training step needs, padded on the right.

    pairs: list of (source ids, target ids), lists of int without special tokens; pad_id, bos_id, eos_id: int
    -> {"src": LongTensor (B, T_s), "tgt_in": LongTensor (B, T_t), "tgt_out": LongTensor (B, T_t)}.
    """
    ### BEGIN SOLUTION

    def padded(rows):
        longest = max(len(row) for row in rows)
        return torch.tensor([[*row, *[pad_id] * (longest - len(row))] for row in rows])  # (B, T)

    return {
        "src": padded([src for src, _ in pairs]),
        "tgt_in": padded([[bos_id, *tgt] for _, tgt in pairs]),
        "tgt_out": padded([[*tgt, eos_id] for _, tgt in pairs]),
    }
    ### END SOLUTION


# %% nbgrader={"grade": "make_batch"}
check(make_batch)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# Write a function that turns a list of rows into a padded tensor, and use it three times.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Multiplying a list repeats it, so `[7] * 3` is `[7, 7, 7]`. In `tgt_out`, eos comes before the padding.
#
# </details>

# %% [markdown]
# ## One training step
#
# In the **forward** pass we compute logits and loss, in the **backward** pass the gradients, and the optimizer's
# **step** changes the weights a little. Our optimizer is [Adam](https://arxiv.org/abs/1412.6980), which divides each
# gradient by its typical size, so that every weight moves by about the learning rate per step.


# %%
def train(model, draw, rate, loss_of, live):
    """Train `model` in place: draw() -> pairs of ids; rate(step) -> float; loss_of(logits, targets)
    -> scalar."""
    batch_of, accuracy_of = or_finished(make_batch), or_finished(token_accuracy)
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98))
    for step in live:
        batch = batch_of(draw(), PAD, BOS, EOS)
        for group in optimizer.param_groups:
            group["lr"] = rate(step)
        logits = model(batch["src"], batch["tgt_in"])  # (B, T_t, V)
        loss = loss_of(logits, batch["tgt_out"])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # lesson 12 says why
        optimizer.step()
        live(loss=loss.item(), accuracy=accuracy_of(logits, batch["tgt_out"], PAD))


# %% [markdown]
# `live` plots the loss and the token accuracy, whose function you'll write next.

# %% [markdown]
# ### Exercise 11.2 `token_accuracy`
#
# **Find the bug** · Difficulty 2 of 5 · Importance 4 of 5 · 7 minutes · 10 points
#
# Many training loops contain some version of this function:


# %%
def published_accuracy(logits, targets, pad_id):
    return (logits.argmax(dim=-1) == targets).float().mean().item()


# %% [markdown]
# **On paper:** a batch contains two sentences with three and nine positions (eos included). The model gets every word
# right, but at the padded positions it predicts eos. What accuracy does this function report?
#
# <details><summary>Answer</summary>
#
# Two thirds of the positions are real and correct, so the function reports 0.67, and a perfect model looks poor.
#
# </details>
#
# Now fix the function so that it ignores padding:
#
# - **Arguments:** `logits (..., V)`; `targets`, LongTensor `(...)`, of which at least one is not padding (padding may
#   be anywhere); `pad_id`, an int.
# - **Returns:** a Python float, the fraction of targets other than padding where the most likely word is correct.


# %% nbgrader={"solution": "token_accuracy"}
def token_accuracy(logits, targets, pad_id):
    """The fraction of targets other than pad_id where the most likely word is the target.

    logits (..., V), float32 or float64; targets LongTensor (...), at least one is not pad_id ->
    float, 0 to 1.
    """
    ### BEGIN SOLUTION
    mask = targets != pad_id  # (...)
    right = logits.argmax(dim=-1) == targets  # (...)
    return right[mask].float().mean().item()
    ### END SOLUTION


# %% nbgrader={"grade": "token_accuracy"}
check(token_accuracy)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# Compute a boolean tensor for real targets and one for correct predictions.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Indexing with a boolean tensor selects entries. Convert booleans to floats before you average them.
#
# </details>

# %%
targets = torch.tensor([[5, 6, EOS, *[PAD] * 6], [3, 4, 5, 6, 7, 3, 4, 5, EOS]])  # (2, 9)
logits = nn.functional.one_hot(torch.where(targets == PAD, EOS, targets), 8).float()  # (2, 9, 8)
print(f"buggy: {published_accuracy(logits, targets, PAD):.2f}")
print(f"yours: {or_finished(token_accuracy)(logits, targets, PAD):.2f}")

# %% [markdown]
# ## Your own Transformer
#
# To train the `Transformer` that you wrote in lesson 10, paste its class into the next cell. Otherwise, we train the
# course's.

# %%
from helpers.blocks import DecoderBlock, Encoder, EncoderBlock, FeedForward, MultiHeadAttention  # noqa: E402, F401
from helpers.blocks import attention, causal_mask  # noqa: E402, F401
from torch.nn import functional as F  # noqa: E402, F401

# Paste your Transformer of lesson 10 below this line.

# %%
Transformer = own.transformer(globals())

# %% [markdown]
# ## A toy task first: reversing words
#
# Before you train a large model, train a small one on a task whose output you know, such as reversing words
# (*encoder* → *redocne*). If that fails, you know after half a minute that there's a bug.
#
# We also change the initialization. Because Adam moves every weight by about the learning rate per step, the large
# vectors of `nn.Embedding` would need hundreds of steps to change direction, so we shrink them to a fiftieth of their
# size.


# %%
def initialize(model):
    """Shrink the token and position vectors of a model to a fiftieth."""
    for part in model.modules():
        if isinstance(part, nn.Embedding):
            part.weight.data.mul_(0.02)
    return model


generator = random.Random(0)


def draw_words(count=64):
    """Random words of 3 to 8 letters as ids, a is 3; the target is the reversed word."""
    words = [[generator.randrange(3, 29) for _ in range(generator.randint(3, 8))] for _ in range(count)]
    return [(word, word[::-1]) for word in words]


# %% tags=["ungraded"]
torch.manual_seed(0)
turner = initialize(Transformer(29, 29, 32, 4, 64, 1, 16))
live = Live(
    5 if quick() else 300,
    "reversing words",
    "Figure 11.3. The toy task. Thin: each step. Thick: the mean of the last 15.",
)
train(
    turner,
    draw_words,
    rate=lambda step: 6e-3 * (1 - step / (live.steps + 1)),  # linear decay
    loss_of=lambda logits, targets: cross_entropy(logits, targets, PAD),
    live=live,
)

# %% tags=["ungraded"]
words = draw_words(1000)
src = or_finished(make_batch)(words, PAD, BOS, EOS)["src"]  # (1000, T_s)
written = translator.greedy(turner.eval(), src, 10).tolist()  # lists that begin with bos
right = sum(row[1 : len(word) + 2] == [*word[::-1], EOS] for row, (word, _) in zip(written, words, strict=True))
print(f"{right} of 1000 new words are reversed correctly")

# %% [markdown]
# Nearly all words are reversed correctly, and since they are new, the model can't have memorized them. (Under *Going
# further* we try longer words.)

# %% [markdown]
# ## The learning rate
#
# The first gradients say little about the final direction, so large steps can do harm. The schedule of the paper
# (often called *Noam* after one of its authors) rises linearly during the **warm-up** and then falls with the inverse
# square root of the step:
#
# $$\text{rate}(s) = D^{-1/2} \cdot \min\left(s^{-1/2},\; s \cdot w^{-3/2}\right)$$
#
# **On paper:** let the width be $D = 64$ and the warm-up $w = 100$. What is the learning rate at steps 1, 100 and
# 400?
#
# <details><summary>Answer</summary>
#
# At step 1 the rate is $1/8 \cdot 1/1000 = 0.000125$. At step 100 both arguments of the minimum are $1/10$, so the
# rate reaches its maximum, $0.0125$, and at step 400 it's down to $1/8 \cdot 1/20 = 0.00625$.
#
# </details>

# %%
explore.rates()

# %% [markdown]
# ### Exercise 11.3 `noam_lr`
#
# Difficulty 1 of 5 · Importance 3 of 5 · 5 minutes · 10 points
#
# Compute the learning rate of this schedule.
#
# - **Arguments:** `step`, counted from 1, `d_model` and `warmup`, ints of at least 1.
# - **Returns:** a float.


# %% nbgrader={"solution": "noam_lr"}
def noam_lr(step, d_model, warmup):
    """The learning rate of Vaswani et al. (2017), section 5.3: linear warm-up, then decay
    with the inverse square root of the step.

    step (from 1), d_model, warmup: int -> float.
    """
    ### BEGIN SOLUTION
    return d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)
    ### END SOLUTION


# %% nbgrader={"grade": "noam_lr"}
check(noam_lr)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# At step = warmup both arguments of the minimum must be equal.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Python computes powers before divisions, so `4**-1/2` is half of `4**-1`. Write exponents as decimal numbers.
#
# </details>

# %% [markdown]
# ## Label smoothing
#
# Even a correct word with a high probability costs a little, so cross-entropy keeps pushing its logit up. We prevent
# this with **label smoothing**, which gives the correct word slightly less probability in the target. With smoothing
# $\varepsilon$ and $V$ words, target and loss are
#
# $$q_v = (1 - \varepsilon)\,[v = \text{target}] + \frac{\varepsilon}{V}, \qquad
# \text{loss} = -\sum_v q_v \log p_v .$$
#
# **On paper:** suppose $\varepsilon = 0.1$ and $V = 5$. Which values does $q$ have, and can this loss reach 0?
#
# <details><summary>Answer</summary>
#
# The values are 0.92 for the correct word and 0.02 for each of the other four. The loss is lowest for $p = q$, where
# it equals the entropy of $q$, which is 0.39 nats, so it never reaches 0.
#
# </details>

# %%
explore.smoothed_target()

# %% [markdown]
# For 194 words and $\varepsilon = 0.1$ the smallest possible loss is 0.8475, so your training run isn't stuck when it
# gets near this number.

# %% [markdown]
# ### Exercise 11.4 `label_smoothed_loss`
#
# Difficulty 3 of 5 · Importance 4 of 5 · 12 minutes · 16 points
#
# Compute the label-smoothed loss of all targets that are not padding.
#
# - **Arguments:** `logits (..., V)`; `targets`, LongTensor `(...)`, of which at least one is not padding (padding
#   may be anywhere); `smoothing` from 0 to 1; `pad_id`, an int.
# - **Returns:** a scalar, the mean of the loss above over all targets other than `pad_id`.
# - **Forbidden:** `F.cross_entropy`, `nn.CrossEntropyLoss` (`F.nll_loss` is allowed).


# %% nbgrader={"solution": "label_smoothed_loss"}
def label_smoothed_loss(logits, targets, smoothing, pad_id):
    """Cross-entropy against targets that divide `smoothing` among all V words, mean over the targets
    that are not padding.

    logits (..., V), float32 or float64; targets LongTensor (...), padding where they are pad_id;
    smoothing: 0 to 1 -> scalar, same dtype.
    """
    ### BEGIN SOLUTION
    log_p = torch.log_softmax(logits, dim=-1)  # (..., V)
    true = log_p.gather(-1, targets.unsqueeze(-1)).squeeze(-1)  # (...), of the target word
    even = log_p.mean(dim=-1)  # (...), mean over all words
    losses = -(1 - smoothing) * true - smoothing * even  # (...)
    return losses[targets != pad_id].mean()
    ### END SOLUTION


# %% nbgrader={"grade": "label_smoothed_loss"}
check(label_smoothed_loss)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# Split the sum into a term with $1 - \varepsilon$, which needs one log-probability per position, and a term with
# $\varepsilon / V$, which is a mean over all words.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# `gather` selects one entry of the last dimension; its index needs as many dimensions as the tensor.
#
# </details>
#
# Smoothing makes the model less certain, so its cross-entropy without smoothing (its plain loss) on unseen sentences
# is about ten times as high or more, although it gets about as many of them exactly right (figure 11.11 under *Going
# further*).

# %% [markdown]
# ## Training the translator
#
# We found the **hyperparameters**, that is, the settings that training doesn't learn, by trial and error. A factor in
# front of your schedule makes the peak learning rate 0.005, and over the last 200 steps we let the learning rate
# decay to 0, so that the weights can settle (a **cooldown**).
#
# `checkpoint` saves the trained weights in `translator.safetensors` and loads them the next time, so delete the file
# to train again. **Hand in this file together with the notebook**, because otherwise the grader has to repeat the
# training.
#
# During training you'll see how the model translates *the old woman often paints a white house in september*. Watch
# what it learns first, for example the correct words, their order, or their endings.

# %%
STEPS = 10 if quick() else 700
data = [
    ([english[word] for word in pair.english.split()], [french[word] for word in pair.french.split()]) for pair in pairs
]
schedule, smoothed_loss = or_finished(noam_lr), or_finished(label_smoothed_loss)


def rate(step):
    return 0.3 * schedule(step, translator.D_MODEL, 60) * min(1, (STEPS + 1 - step) / 200)


def loss_of(logits, targets):
    return smoothed_loss(logits, targets, 0.1, PAD)


# %%
torch.manual_seed(0)
model = initialize(Transformer(*translator.SIZES))  # 206,146 parameters
live = Live(
    STEPS,
    "training the translator",
    "Figure 11.6. Training the translator. Below: its translation of one sentence.",
    says=lambda: translator.translate(model, "the old woman often paints a white house in september"),
)
model = checkpoint(
    model, "translator.safetensors", lambda: train(model, lambda: generator.sample(data, 64), rate, loss_of, live)
)
model = model.eval()

# %% [markdown]
# In our run the model first predicts only eos, the most frequent token. Then it ignores the English and writes fluent
# French about something else, such as *un cheval regarde un professeur en décembre*. Next the correct words appear,
# as cross-attention learns where to attend. The endings come last. (If your run is different, see *Troubleshooting*
# under *Going further*.)

# %% [markdown]
# ### Exercise 11.5 `translate`
#
# Difficulty 3 of 5 · Importance 5 of 5 · 15 minutes · 22 points
#
# Translate a list of sentences with your trained `model`.
#
# - **Arguments:** `sentences`, a list of English sentences, words separated by spaces.
# - **Returns:** a list of French sentences, words separated by one space, without special tokens. Start with bos and
#   decode greedily until eos, or until a row has `translator.MAX_LEN` ids (bos included).
# - **Given:** `english` and `french` map words to ids, `words_of` maps ids to French words, and `make_batch` makes
#   `src`.
# - **Graded** on unseen sentences, of which at least 99.5% must be exactly right. (The grader gives full points from
#   99%, and partial points from 50%.) The check also replaces your `model` with others, to make sure that your loop
#   returns what the model predicts.
# - **Forbidden:** `translator.greedy`, `translator.source_batch`.

# %%
words_of = {index: word for word, index in french.items()}


# %% nbgrader={"solution": "translate"}
def translate(sentences):
    """English sentences in, the French that `model` writes for them out.

    sentences: list of str, of words in `english` -> list of str, without special tokens.
    """
    ### BEGIN SOLUTION
    ids = [([english[word] for word in sentence.split()], []) for sentence in sentences]
    src = make_batch(ids, PAD, BOS, EOS)["src"]  # (B, T_s)
    tgt = torch.full((len(src), 1), BOS)  # (B, 1)
    with torch.no_grad():
        memory = model.encode(src)  # (B, T_s, D)
        while tgt.shape[1] < translator.MAX_LEN and not (tgt == EOS).any(dim=1).all():
            following = model.decode(tgt, memory, src)[:, -1].argmax(dim=-1)  # (B,)
            tgt = torch.cat([tgt, following[:, None]], dim=1)  # (B, T + 1)
    rows = [[*row[1:], EOS] for row in tgt.tolist()]
    return [" ".join(words_of[i] for i in row[: row.index(EOS)]) for row in rows]
    ### END SOLUTION


# %% nbgrader={"grade": "translate"}
check(translate)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# For one sentence, call `model.encode` once, then `greedy_decode` with a `step` that calls `model.decode` and returns
# the last position's logits.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# For a batch, keep one tensor of ids `(B, t)` that grows by a column per step, and cut each row at its first eos at
# the end.
#
# </details>

# %%
src = translator.source_batch([pair.english for pair in unseen])  # (500, T_s)
rows = translator.greedy(model, src).tolist()  # the course's loop, in case yours does not work yet
written = [" ".join(word for word in map(words_of.get, row) if word[0] != "<") for row in rows]
exact = sum(text == pair.french for text, pair in zip(written, unseen, strict=True))
print(f"{exact} of {len(unseen)} unseen sentences exactly right")
for pair, text in list(zip(unseen, written, strict=True))[:3]:
    print(f"  {pair.english} → {text}")

# %% [markdown]
# ## What cross-attention has learned
#
# In the cross-attention of the last block, is each French word's largest weight on the English word that it
# translates, although the loss never asks for this? (Since `tgt_in` is shifted, row t is the one that predicts word
# t.)

# %% [markdown]
# ### Exercise 11.6 `alignment`
#
# Difficulty 1 of 5 · Importance 3 of 5 · 3 minutes · 10 points
#
# For each target word, find the source word to which the model attends most.
#
# - **Arguments:** `cross_weights (H, T_t, T_s)`, the attention weights of one sentence.
# - **Returns:** LongTensor `(T_t,)`, for each target position the source position with the largest weight, averaged
#   over the heads.


# %% nbgrader={"solution": "alignment"}
def alignment(cross_weights):
    """For each target position the source position with the largest attention weight, averaged over
    the heads.

    cross_weights (H, T_t, T_s), float32 or float64 -> LongTensor (T_t,).
    """
    ### BEGIN SOLUTION
    return cross_weights.mean(dim=0).argmax(dim=-1)  # (T_t,)
    ### END SOLUTION


# %% nbgrader={"grade": "alignment"}
check(alignment)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# One dimension disappears by averaging and another one by choosing the maximum. Which comes first?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# The result has one entry per target position, so `argmax` runs over the source positions.
#
# </details>

# %%
ids = [([english[w] for w in pair.english.split()], [french[w] for w in pair.french.split()]) for pair in unseen]
batch = or_finished(make_batch)(ids, PAD, BOS, EOS)
weights = figures.cross_weights(model, batch["src"], batch["tgt_in"])  # (500, H, T_t, T_s)
hits = total = 0
for pair, one in zip(unseen, weights, strict=True):
    T_t, T_s = len(pair.french.split()), len(pair.english.split())
    found = or_finished(alignment)(one[:, :T_t, :T_s]).tolist()
    hits += sum(a == b for a, b in zip(found, pair.alignment, strict=True))
    total += T_t
print(f"{hits} of {total} French words are aligned with the word that they come from: {100 * hits / total:.1f}%")

# %% [markdown]
# Now move the slider through some unseen sentences, or type one of your own, such as *my young queen often forgets
# the blue door*. An orange line means that the model attends to a different word from the one that the grammar gives.

# %%
explore.cross_attention(model)

# %% [markdown]
# The model has learned word pairs and word order without being given them. But in the figure you see only one of
# several paths. For example, the gender of *ma* in *ma tasse* depends on the noun, but the thick line leads to *my*
# (see *Going further*).

# %% [markdown]
# ## At work: what goes wrong
#
# What do common bugs cost? We compare four training runs with the same initialization and batches, three of them with
# a bug:
#
# - **targets not shifted:** the decoder reads the word that it has to predict;
# - **a leaking mask:** `tril(1)` instead of `tril()`, so that each position sees its target;
# - **sorted separately:** the sources and the targets of each batch are sorted by length independently, so many
#   sentences are paired with the wrong translation.
#
# **Predict before you run:** which of these have a lower loss than the correct run?

# %%
figures.runs_with_bugs()

# %% [markdown]
# Without the shift, the model learns within seventy steps to copy its input, so it repeats one word. The *leaking mask*
# is the most dangerous bug. On unseen sentences it has a sixth of the correct run's loss, but no sentence that it
# writes is correct, because during generation the word that it used to see isn't there yet. In the run *sorted
# separately* the loss stays high, and the model writes good French about something else.
#
# **A loss that you measure with teacher forcing doesn't reveal a leak.** So let the model write, or change a target
# word and test whether the logits that predict it change.

# %% [markdown]
# ### Quiz 11.1
#
# A training run with smoothing 0.1 over 194 words has a loss of 0.86 and an accuracy of 99.9%. What should you do
# next?
#
# - **a** train longer, because the loss should go to 0
# - **b** reduce the learning rate, because the loss is stuck
# - **c** nothing, because the loss is nearly as low as it can get

# %% nbgrader={"solution": "quiz_1"}
quiz_1 = None  # "a", "b" or "c"
### BEGIN SOLUTION
quiz_1 = "c"
### END SOLUTION

# %% nbgrader={"grade": "quiz_1"}
check(quiz_1=quiz_1)

# %% [markdown]
# ### Quiz 11.2
#
# On unseen sentences, with teacher forcing, a model has a loss of 0.01 nats per word. When it writes on its own, no
# sentence is right. What is the most likely reason?
#
# - **a** it has memorized the training sentences
# - **b** each position sees the word that it has to predict
# - **c** sources and targets do not belong together
# - **d** greedy decoding isn't a good enough search

# %% nbgrader={"solution": "quiz_2"}
quiz_2 = None  # "a", "b", "c" or "d"
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
# A colleague shows you two trained translators. Model A has the lower loss on unseen sentences, but model B gets more
# of them exactly right. A was trained without smoothing, B with smoothing 0.1. Explain how both facts can be true at
# once, say which number you would report and why, and name two checks that you would make before you believe either
# of them.

# %% [markdown] nbgrader={"written": "written_1"}
# **Model answer.** The loss measures how probable the target words are, each given the true words before it. Exact match
# measures whether the most likely words, each given the model's own earlier words, form the correct sentence. Smoothing
# teaches B to keep a tenth of the probability for other words, so its plain loss stays high even if its first choice is
# always correct. So A may have the better probabilities and B the better choices. I would report
# exact match, because a translator is there to write. Before that I would change a later target word and check that no
# earlier logit changes, and search for the test sentences in the training data.
#
# **Marking scheme, 15 points.** What the loss measures, teacher forcing included (3). What exact match measures, the
# model's own words included (3). Why smoothing changes one and not the other (4). A number to report, with a reason
# (1). Two checks that could find a real fault, 2 each (4).

# %% [markdown]
# ## Recap
#
# - A batch is three tensors. The decoder's input and its targets differ by one position.
# - Loss and accuracy must ignore padding, and a smoothed loss has a minimum above 0.
# - Initialization, warm-up, peak learning rate and cooldown belong to the recipe.
# - A teacher-forced loss does not reveal a leak, so let the model write before you believe it.
# - Cross-attention learned to attend to the right word although our loss never asked for it.
#
# **Next:** in [lesson 12](../12_language_model/12_language_model.ipynb) we train a GPT and compare it with the lowest
# possible loss.

# %%
progress()

# %% [markdown]
# ## Going further
#
# ### Troubleshooting
#
# - If you stopped the training run, nothing was saved, so run the cell again.
# - If the loss is NaN or stays above 4, the learning rate is too large. The values of `rate(1)`, `rate(60)` and
#   `rate(700)` should be about `0.00008`, `0.005` and `0.000007`. Delete `translator.safetensors` before you train
#   again.
# - If the loss falls below its minimum, you don't smooth it, or you divide it by too many positions.
# - If the accuracy is perfect long before step 100 but the translations are wrong, the model sees its targets.
#   Check the mask, and compare `tgt_in` with `tgt_out`.
# - If the cell ends at once and the model is bad, it has loaded the weights of an earlier run, so delete
#   `translator.safetensors`.
# - If the run stops after ten steps, quick mode is on. Start Jupyter without `COURSE_QUICK`.
#
# ### Longer words
#
# Has the toy model learned to reverse in general? **Predict before you run:** it has seen words of three to eight
# letters. What does it do with shorter and longer words?

# %% tags=["ungraded"]
letters = random.Random(1)
for length in (2, 3, 8, 9, 12):
    words = [[letters.randrange(3, 29) for _ in range(length)] for _ in range(200)]
    src = or_finished(make_batch)([(word, []) for word in words], PAD, BOS, EOS)["src"]  # (200, length)
    written = translator.greedy(turner, src, 14).tolist()
    right = sum(row[1 : length + 2] == [*word[::-1], EOS] for row, word in zip(written, words, strict=True))
    print(f"{length:2} letters: {right / 2:5.1f}% correct")

# %% [markdown]
# With nine letters and more, none is correct, because no training word had a ninth letter. With two letters the
# result varies from run to run, from none to most of the words. So we can rely on the model only for words of the
# lengths that it has seen.
#
# Let's plot the cross-attention of this model for *encoder*.

# %%
figures.reversed_word(turner)

# %% [markdown]
# You see the largest weights on a line from the upper right to the lower left, because the first letter of the output
# is the last one of the input.
#
# ### Does the warm-up matter?
#
# We trained the translator with and without a warm-up, at two peak learning rates and from two seeds each.

# %%
figures.warm_ups()

# %% [markdown]
# At the smaller peak the warm-up makes almost no difference, but at the larger one the loss stays at 4.5 without it.
# So with a warm-up we can use a large learning rate, although in this task the smaller one gives a lower loss.
#
# ### What does smoothing change?
#
# We trained the translator twice with smoothing and twice without, and measured the plain loss of all four.

# %%
figures.with_and_without_smoothing()

# %% [markdown]
# In this language smoothing brings no clear gain, because almost all sentences are exactly right either way. But it
# makes the model less certain, so the plain loss is about ten times as high or more.
#
# ### Where does the gender come from?
#
# To choose *ma* rather than *mon* in *ma tasse* (*my cup*), the model must know that *tasse* is feminine, yet the
# thick line leads from *ma* to *my*, not to *cup*. In the course's translator we tested where this information comes
# from. If the decoder can't attend to the noun in any block at the article's position, the gender stays right in
# about 95% of the cases. If we ablate the encoder's attention, it stays right in about 73%, whereas guessing gives
# 50%. So most of the information about the noun came through the encoder.
#
# ### Same function, other weights
#
# We trained the course's translator with another recipe and from another initialization. Does yours have similar
# weights, or at least similar word vectors?

# %%
figures.two_runs(model)

# %% [markdown]
# The weights themselves are uncorrelated. But the two models partly agree on which English words have similar vectors
# (the correlation is about 0.4).
#
# How can different weights compute the same translations? To find out, we change the course's translator in three
# ways. We exchange two heads of a block, we permute all channels in the same way everywhere, and we rotate all
# vectors of the 64-dimensional space in the same way. **Predict before you run:** which of the three still
# translates?

# %%
figures.same_function()

# %% [markdown]
# The first two changes have no effect except for rounding. So very many weight settings compute exactly the
# same function, and two training runs will almost never end at the same one. The rotation destroys the translation,
# with a loss of 3.3 nats per word instead of 0.0002. The weight matrices aren't the reason, because each of them can
# undo the rotation of its input. But layer norm subtracts the mean over the channels and has a scale for each of
# them, so with layer norm the axes matter. In a pre-norm model with RMSNorm (lesson 14), whose scales can be merged
# into the next matrix, such a rotation would change nothing.

# %% [markdown]
# ### BLEU
#
# Exact match is a strict measure, because in a real language most sentences have many good translations. **BLEU**
# (Papineni et al.) compares a candidate, the system's output, with a human reference. For n = 1 to 4 we count how
# many n-grams (n consecutive words) of the candidates also occur in the references:
#
# $$p_n = \frac{\text{n-grams that the reference has too}}{\text{n-grams of the candidates}}, \qquad
# \text{BLEU} = 100 \cdot \min\left(1, e^{\,1 - r/c}\right) \cdot (p_1 p_2 p_3 p_4)^{1/4}$$
#
# with $c$ and $r$ the number of words in all candidates and all references. We count an n-gram at most as often as it
# occurs in its reference. Otherwise the authors' example of a bad candidate, *the the the the the the the*, would get
# the best possible $p_1$ as soon as the reference contains *the*.
#
# **On paper:** the reference is *une pomme rouge est belle*, the candidate *une pomme rouge est beau*. What is the
# BLEU?
#
# <details><summary>Answer</summary>
#
# The precisions are $4/5$, $3/4$, $2/3$ and $1/2$, and the fourth root of their product is 0.669. Since the lengths
# are equal, BLEU is 66.9, so one wrong ending in five words costs a third of the score.
#
# </details>

# %% [markdown]
# ### Exercise 11.7 `corpus_bleu`
#
# **Extra** · Difficulty 3 of 5 · Importance 3 of 5 · 18 minutes · 10 bonus points
#
# - **Arguments:** `candidates` and `references`, lists of equal length; each sentence is a list of words, or a string
#   that is split at white space.
# - **Returns:** a float from 0 to 100. If one of the four precisions is 0, or there is no n-gram at all, the result
#   is 0.0 (no smoothing). A sentence with fewer than n words adds no n-grams.


# %% nbgrader={"solution": "corpus_bleu"}
def corpus_bleu(candidates, references):
    """BLEU-4 of Papineni et al. (2002), one reference each: counts over all sentences, brevity
    penalty, no smoothing.

    candidates, references: lists of sentences, each a list of str, or a str that is split at white
    space -> float, 0 to 100.
    """
    ### BEGIN SOLUTION
    found, made = [0] * 4, [0] * 4
    length = wanted = 0
    for pair in zip(candidates, references, strict=True):
        candidate, reference = (text.split() if isinstance(text, str) else list(text) for text in pair)
        length, wanted = length + len(candidate), wanted + len(reference)
        for n in range(4):
            mine = Counter(zip(*(candidate[i:] for i in range(n + 1)), strict=False))
            theirs = Counter(zip(*(reference[i:] for i in range(n + 1)), strict=False))
            found[n] += sum((mine & theirs).values())
            made[n] += sum(mine.values())
    if min(found) == 0:
        return 0.0
    precision = math.exp(sum(math.log(f / m) for f, m in zip(found, made, strict=True)) / 4)
    return 100 * min(1.0, math.exp(1 - wanted / length)) * precision
    ### END SOLUTION


# %% nbgrader={"grade": "corpus_bleu"}
check(corpus_bleu)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# A `Counter` of tuples holds the n-grams of a sentence, and `&` of two Counters keeps the smaller count of each. Add
# up the counts over all sentences and divide at the end.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# `zip(words, words[1:], words[2:])` gives the 3-grams. The brevity penalty needs the two total lengths and acts only
# if the candidates are shorter. Handle zeros before you take a logarithm.
#
# </details>

# %% [markdown]
# ### Greedy or beam search
#
# Does your translator need the beam search of lesson 10?

# %%
src = translator.source_batch(["this famous king follows this strange letter with the tired king"])  # (1, 11)
with torch.no_grad():
    memory = model.encode(src)

    def step(prefix):
        return model.decode(prefix, memory, src)[:, -1]  # (1, V)

    for width in (1, 4):
        ids, score = beam_search(step, BOS, EOS, 20, width)
        print(f"beam of {width}: {' '.join(words_of[i] for i in ids[1:-1])}   log-probability {score:.2f}")
    print("greedy equals a beam of 1:", greedy_decode(step, BOS, EOS, 20) == beam_search(step, BOS, EOS, 20, 1)[0])

# %% [markdown]
# For ten unseen sentences, the course's translator writes the same with a beam of 4, so usually it doesn't. A less
# certain translator, trained for fewer steps, gained one more exact sentence of 40 with wider beams. Wider isn't always
# better, because in large systems very wide beams make translations worse (Koehn and Knowles).

# %% [markdown]
# ### How stable are these numbers?
#
# | statement | other runs |
# |---|---|
# | reversed words of two letters | correct in 0, 6, 20, 38, 56, 56, 76 and 86% of the cases, in eight runs |
# | warm-up, loss after 150 steps | peak 0.005: 0.15 and 0.20 with, 0.13 and 0.20 without; peak 0.02: 0.7 and 0.8 with, 4.5 twice without |
# | initialization at a fiftieth | 0.15 instead of 0.49 at step 150, one run each |
# | smoothing, plain loss | ten and seventeen times as high (0.14 and 0.13 instead of 0.014 and 0.0075) |
# | smoothing, exact sentences | 98.5 and 98.5% without, 99 and 98% with |
# | the gender of an article comes mostly through the encoder | in four of five translators |
# | sorted separately, rows still paired correctly | 39% in batches of 32, a fifth in batches of 64 |
# | *sorted separately* still uses the English | with another sentence's English its loss on unseen sentences rises from 1.96 to 3.35 |

# %% [markdown]
# ## Further reading
#
# - Vaswani et al. (2017), [Attention is all you need](https://arxiv.org/abs/1706.03762), sections 5 and 6.
# - Szegedy et al. (2016), [Rethinking the Inception architecture for computer
#   vision](https://arxiv.org/abs/1512.00567), section 7: label smoothing; Müller, Kornblith and Hinton (2019), [When
#   does label smoothing help?](https://arxiv.org/abs/1906.02629)
# - Xiong et al. (2020), [On layer normalization in the Transformer architecture](https://arxiv.org/abs/2002.04745):
#   why post-norm needs a warm-up.
# - Papineni et al. (2002), [BLEU: a method for automatic evaluation of machine
#   translation](https://aclanthology.org/P02-1040/); Post (2018), [A call for clarity in reporting BLEU
#   scores](https://arxiv.org/abs/1804.08771).
# - Bahdanau, Cho and Bengio (2015), [Neural machine translation by jointly learning to align and
#   translate](https://arxiv.org/abs/1409.0473): the first such alignment.
# - Koehn and Knowles (2017), [Six challenges for neural machine translation](https://arxiv.org/abs/1706.03872):
#   alignments that do not align, beams that are too wide.
