# %% [markdown]
# # 11. Translation: train the whole machine
#
# **Goal:** train the translator that has worked in every lesson, from random numbers, with your own batches, loss and
# learning rate; then measure it, look inside it, and learn to tell a good training from one that only looks good.
# **Time:** about 120 minutes, 18 of them for the extra, exercise 11.7. That is long: take a break while the translator
# trains, after exercise 11.4.

# %% tags=["setup"]
# (empty: the build puts the set-up cell here)

# %%
import math
import random
from collections import Counter

import torch
from torch import nn

from helpers import check, or_given, progress, translator
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
# Every box is behind us. Today's work is the arrow back from the loss: it turns random numbers into a translator.

# %% [markdown]
# ## You need
#
# - cross-entropy of logits: [lesson 6](../06_softmax/06_softmax.ipynb);
# - the `Transformer`, teacher forcing and greedy decoding: [lesson 10](../10_decoder_block/10_decoder_block.ipynb).
#
# What this lesson calls, all of it from lessons 6 and 10:
#
# | piece | how it is called |
# |---|---|
# | `Transformer(src_vocab, tgt_vocab, d_model, num_heads, d_ff, num_layers, max_len, pad_id=0)` | `model(src, tgt)` → logits `(B, T_t, V)` |
# | `model.encode(src)` | memory `(B, T_s, D)` |
# | `model.decode(tgt, memory, src)` | logits `(B, T_t, V)` |
# | `cross_entropy(logits, targets, ignore_index)` | the mean over targets that are not `ignore_index` |
# | `greedy_decode(step, bos_id, eos_id, max_len)` | a list of ids, bos first; `step(prefix (1, t))` → logits `(1, V)` |
# | `beam_search(step, bos_id, eos_id, max_len, beam_size)` | `(ids, log-probability)` |
#
# Two questions to warm up. Answer before you open them.
#
# <details><summary>Lesson 10: what does the decoder read at place 0, and what does it have to say at its last
# place?</summary>
#
# It reads `<bos>` and has to say the first word. At its last place it has read the last word and has to say `<eos>`.
#
# </details>
#
# <details><summary>Lesson 6: a model gives every one of 194 words the same probability. What is its loss, in
# nats?</summary>
#
# The logarithm of 194, which is 5.27. An untrained translator begins near there.
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
# ## A language that we know everything about
#
# The sentences come from a small grammar with 165 English and 191 French words (194 with `<pad>`, `<bos>` and `<eos>`). In French,
# articles and adjectives agree with their noun, most adjectives come after it, adverbs come after the verb, and *africa* is
# *l' afrique*. Because the grammar makes both sides, it also knows which English word each French word comes from. Real
# corpora hardly ever tell you that.

# %%
figures.word_by_word()

# %% [markdown]
# You have 20,000 pairs to learn from, and 500 to look at that nobody learns from. Each of those 500 holds an adjective
# and a noun that never stand together in the 20,000: *a white dog* asks for somebody who knows what
# *white* does in general. In a third of them words change places two or three times over (*the old woman often paints* needs it
# once, for *often*; every adjective behind its noun is one more).

# %%
pairs = training_pairs()
unseen = unseen_pairs()
print(len(pairs), "pairs; one of them:", pairs[0].english, "→", pairs[0].french)
print(len(unseen), "unseen; one of them:", unseen[0].english, "→", unseen[0].french)

# %% [markdown]
# A network reads ids, many sentences at a time. Sentences differ in length and a tensor has no ragged edge, so the
# short ones are padded. A batch needs three tensors: what the encoder reads, what the decoder reads, and what it has
# to say.

# %%
figures.batch_of_three()

# %% [markdown]
# ### Exercise 11.1 `make_batch`
#
# Difficulty 2 of 5 · Importance 5 of 5 · 12 minutes · 12 points
#
# `make_batch(pairs, pad_id, bos_id, eos_id)`: `pairs` is a list of pairs (source, target), each a list of ids without
# marks. The result is a dict of three LongTensors:
#
# - `"src"` `(B, T_s)`: the sources, without any mark;
# - `"tgt_in"` `(B, T_t)`: `<bos>`, then the target;
# - `"tgt_out"` `(B, T_t)`: the target, then `<eos>`.
#
# Row b belongs to pair b. Each tensor is as wide as its own longest row, and shorter rows are filled with `pad_id` on
# the right. (What stands in `tgt_in` where `tgt_out` is padding is not judged: nobody hears it.)


# %% nbgrader={"solution": "make_batch"}
def make_batch(pairs, pad_id, bos_id, eos_id):
    """Sentence pairs as the three tensors that a training step needs, padded on the right.

    pairs: list of (source ids, target ids), lists of int without marks; pad_id, bos_id, eos_id: int
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
# Padding is the same job three times. Write a small function that takes a list of rows and returns a tensor, and give
# it three different lists of rows.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# A list times a number repeats it: `[7] * 3` is `[7, 7, 7]`, and `[7] * 0` is empty. eos belongs to the sentence, so it
# comes before the padding, whatever the row's length.
#
# </details>

# %% [markdown]
# ## One step of training
#
# One step is five lines, and they are the same for the networks of this course and most others: **forward**
# (logits), **loss**, **backward** (a gradient for each number), **step** (the optimizer moves each number a little
# against its gradient), and before the next one the old gradients are set to zero. The optimizer here is Adam (Kingma
# and Ba, 2015): it divides each gradient by its usual size, so that all numbers move at about the same pace, the
# learning rate.


# %%
def train(model, draw, rate, loss_of, live):
    """Train `model` in place: draw() -> pairs of ids; rate(step) -> float; loss_of(logits, targets)
    -> scalar."""
    batch_of, accuracy_of = or_given(make_batch), or_given(token_accuracy)
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98))
    for step in live:
        batch = batch_of(draw(), PAD, BOS, EOS)
        for group in optimizer.param_groups:
            group["lr"] = rate(step)
        logits = model(batch["src"], batch["tgt_in"])  # (B, T_t, V)
        loss = loss_of(logits, batch["tgt_out"])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # no step on a gradient that is far too long
        optimizer.step()
        live(loss=loss.item(), accuracy=accuracy_of(logits, batch["tgt_out"], PAD))


# %% [markdown]
# `live` is a counter that draws: it shows a bar, and the curves of whatever it is told. It is told the loss, and the
# share of words that come first among the logits. That share is the next exercise.

# %% [markdown]
# ### Exercise 11.2 `token_accuracy`
#
# **Find the bug** · Difficulty 2 of 5 · Importance 4 of 5 · 8 minutes · 10 points
#
# The next function stands, in one form or another, under many published training loops.


# %%
def published_accuracy(logits, targets, pad_id):
    return (logits.argmax(dim=-1) == targets).float().mean().item()


# %% [markdown]
# **Predict before you look.** Two sentences of 3 and 9 places (eos included) stand in one batch, and the model gets
# every word right. It was never asked anything about padding, and says eos there. What does this function report?
#
# <details><summary>Answer</summary>
#
# The batch has 2 · 9 = 18 places, of which 12 are real and right: 0.67. A perfect model looks poor. And if the loss
# asks for padding too, a model that has learned to say *pad* there, and knows no French, is right in 0.33.
#
# </details>
#
# Write it as it should be: of all places where the target is a word (or eos), the share where the likeliest word is the
# right one. `logits (..., V)`, `targets` LongTensor `(...)`, `pad_id` an int → a Python float. At least one target is
# not padding, which may stand anywhere.


# %% nbgrader={"solution": "token_accuracy"}
def token_accuracy(logits, targets, pad_id):
    """The share of the kept targets that are the likeliest word; where the target is pad_id,
    nothing is asked.

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
# Two questions about each place: is somebody asked there, and is the answer right? Each is a boolean tensor with the
# shape of `targets`.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# A boolean tensor picks entries out of another one. Booleans have no mean, floats do, and a 0-dim tensor becomes a
# number with `.item()`.
#
# </details>

# %% [markdown]
# The two sentences of the question once more, every word right and eos said at all padded places:

# %%
targets = torch.tensor([[5, 6, EOS, *[PAD] * 6], [3, 4, 5, 6, 7, 3, 4, 5, EOS]])  # (2, 9)
logits = nn.functional.one_hot(torch.where(targets == PAD, EOS, targets), 8).float()  # (2, 9, 8)
print(f"published: {published_accuracy(logits, targets, PAD):.2f}")
print(f"yours: {or_given(token_accuracy)(logits, targets, PAD):.2f}")

# %% [markdown]
# ## Whose Transformer?
#
# What is trained from here on is the `Transformer` that **you** wrote in lesson 10, if you paste its cell into the next one.
# What it calls is there, finished; paste your own `DecoderBlock` and what you like of the others in front of it. The cell
# after it looks whether yours passes lesson 10's check, and says which one is trained. Without yours it is the course's.

# %%
from helpers.blocks import DecoderBlock, Encoder, EncoderBlock, FeedForward, MultiHeadAttention  # noqa: E402, F401
from helpers.blocks import attention, causal_mask  # noqa: E402, F401
from torch.nn import functional as F  # noqa: E402, F401

# Paste your Transformer of lesson 10 below this line.

# %%
Transformer = own.transformer(globals())

# %% [markdown]
# ## A small task first: turning words round
#
# Before you train something large, train something small whose right answer you can see with your own eyes. Here:
# *machine* → *enihcam*, letter by letter. If that fails, the bug is in the code, and you know it after five seconds.
#
# The model is a Transformer of width 32 with one block on each side. **Small start:** `nn.Embedding` begins with numbers
# around 1. Adam moves each number by about the learning rate at a step, whatever its size: a row of numbers around 1 takes
# hundreds of steps to turn, one of numbers around 0.02 a few. So we let the tables begin at a fiftieth of their size, and they
# learn in far fewer steps.


# %%
def small_start(model):
    for part in model.modules():
        if isinstance(part, nn.Embedding):
            part.weight.data.mul_(0.02)
    return model


generator = random.Random(0)


def draw_words(count=64):
    """Random words of 3 to 8 letters as ids, a is 3; the target is the word turned round."""
    words = [[generator.randrange(3, 29) for _ in range(generator.randint(3, 8))] for _ in range(count)]
    return [(word, word[::-1]) for word in words]


# %% tags=["ungraded"]
torch.manual_seed(0)
turner = small_start(Transformer(29, 29, 32, 4, 64, 1, 16))
live = Live(
    5 if quick() else 300, "turning words round", "Figure 11.3. Thin: each step. Thick: the mean of the last 15."
)
train(
    turner,
    draw_words,
    rate=lambda step: 6e-3 * (1 - step / (live.steps + 1)),  # falls in a line
    loss_of=lambda logits, targets: cross_entropy(logits, targets, PAD),
    live=live,
)

# %% tags=["ungraded"]
words = draw_words(1000)
src = or_given(make_batch)(words, PAD, BOS, EOS)["src"]  # (1000, T_s)
written = translator.greedy(turner.eval(), src, 10).tolist()  # lists that begin with bos
right = sum(row[1 : len(word) + 2] == [*word[::-1], EOS] for row, (word, _) in zip(written, words, strict=True))
print(f"{right} of 1000 new words come out right")

# %% [markdown]
# All of them, or nearly. There are more than 200 billion words of eight letters, and it has seen 19,200 words: it has not
# learned words by heart. Has it learned *turning round*? **Predict before you run:** it has seen words of 3 to 8 letters. What does
# it make of words of 2, 9 and 12?

# %% tags=["ungraded"]
letters = random.Random(1)
for length in (2, 3, 8, 9, 12):
    words = [[letters.randrange(3, 29) for _ in range(length)] for _ in range(200)]
    src = or_given(make_batch)([(word, []) for word in words], PAD, BOS, EOS)["src"]  # (200, length)
    written = translator.greedy(turner, src, 14).tolist()
    right = sum(row[1 : length + 2] == [*word[::-1], EOS] for row, word in zip(written, words, strict=True))
    print(f"{length:2} letters: {right / 2:5.1f} % come out right")

# %% [markdown]
# <details><summary>Answer</summary>
#
# Of nine letters and more, none: no word of the training had a ninth place. Of two letters few: 0, 1 and 28 % in three trainings. So it has learned to turn round words *as long as those it has seen*, which is less than it looked like.
#
# </details>
#
# **Predict before you run:** what does its cross-attention look like for *machine*?

# %%
figures.turned_round(turner)

# %% [markdown]
# A line from the upper right to the lower left: to say the first letter it looks at the last one. Nobody told it where
# to look. The loss asked for the right letter, and looking there was a way to get it.

# %% [markdown]
# ## How fast to learn
#
# At the start all numbers are random, and the first gradients say little about where to go in the end. A large step
# now may lead somewhere from which it takes long to come back. Later large steps save time; at
# the end small ones are needed to settle. The paper's rate (Vaswani et al., 2017, section 5.3; often called *Noam*,
# after one of its authors) rises in a line during the **warm-up** and then falls with the square root of the step:
#
# $$\text{rate}(s) = D^{-1/2} \cdot \min\left(s^{-1/2},\; s \cdot w^{-3/2}\right)$$
#
# *On paper:* width $D = 64$, warm-up $w = 100$. What is the rate at steps 1, 100 and 400?
#
# <details><summary>Answer</summary>
#
# $D^{-1/2} = 1/8$. Step 1: $1/8 \cdot 1/1000 = 0.000125$. Step 100: both arms are 1/10, so 0.0125, the largest of all.
# Step 400: $1/8 \cdot 1/20 = 0.00625$.
#
# </details>

# %%
explore.rates()

# %% [markdown]
# A longer warm-up does two things at once: it starts more gently, *and* it lowers the largest rate, $1/\sqrt{D\,w}$.
# If you want only one of the two, multiply the whole by a factor.

# %% [markdown]
# ### Exercise 11.3 `noam_lr`
#
# Difficulty 1 of 5 · Importance 3 of 5 · 6 minutes · 10 points
#
# The formula above: `noam_lr(step, d_model, warmup)` → float. `step` counts from 1; all three are ints of at least 1.


# %% nbgrader={"solution": "noam_lr"}
def noam_lr(step, d_model, warmup):
    """The learning rate of Vaswani et al. (2017), section 5.3: up in a line, then down with the
    square root of the step.

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
# At step = warmup both arms of the minimum have to agree. Check your powers with the numbers of the question on paper.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Python takes powers before it divides: `4**-1/2` is a half of `4**-1`. Write the powers as decimal numbers. For the
# product in the second arm no division is needed.
#
# </details>

# %% [markdown]
# Does the warm-up matter? Here the translator was trained for 150 steps, with and without one. All else is the same:
# the same peak, and the same fall from step 60 on. (Eighteen short trainings, with batches of 32, stand behind figures
# 11.6, 11.8 and 11.11 and two sentences beside them. They take some minutes, so they were made once.)

# %%
figures.warm_ups()

# %% [markdown]
# At a largest rate of 0.005 the warm-up hardly matters: the losses end at 0.15 and 0.20 with it, at 0.13 and 0.20
# without. At 0.02 it decides everything: 0.7 and 0.8 with it, and 4.5 twice without, and at step 150 these trainings
# show no sign of recovering. So a warm-up buys the freedom to use a large rate. It does not make the large rate the better one:
# here 0.005 wins.
#
# The *small start* matters too: with tables of the usual size the loss at step 150 was 0.49 instead of 0.15, in one training
# each.

# %% [markdown]
# ## Not too sure of yourself
#
# Cross-entropy is never satisfied. A word with probability 0.999 still costs a thousandth of a nat, so the logit of the
# right word is pushed up and up. Szegedy et al. (2016) put a stop to it: **label smoothing** gives the right word a
# little less than all. With smoothing $\varepsilon$ and $V$ words the target of a place is
#
# $$q_v = (1 - \varepsilon)\,[v = \text{target}] + \frac{\varepsilon}{V}, \qquad
# \text{loss} = -\sum_v q_v \log p_v .$$
#
# All $V$ words share in $\varepsilon$, the right one too.
#
# *On paper:* $\varepsilon = 0.1$, $V = 5$. What does $q$ hold? And can this loss reach 0?
#
# <details><summary>Answer</summary>
#
# 0.92 for the right word, 0.02 for each of the four others. The best a model can do is $p = q$, and then the loss is
# the entropy of $q$: 0.39 nats. It never reaches 0.
#
# </details>

# %%
explore.smoothed_target()

# %% [markdown]
# With 194 words and 0.1 the smallest possible loss is 0.85. Remember this number when your training seems to get stuck.

# %% [markdown]
# ### Exercise 11.4 `label_smoothed_loss`
#
# Difficulty 3 of 5 · Importance 4 of 5 · 15 minutes · 16 points
#
# `label_smoothed_loss(logits, targets, smoothing, pad_id)`: `logits (..., V)`, `targets` LongTensor `(...)`,
# `smoothing` from 0 to 1 → a scalar: the mean of the loss above over all targets that are not `pad_id` (at least one
# is not; padding may stand anywhere). With smoothing 0 it is the plain cross-entropy. Forbidden: `F.cross_entropy`,
# `nn.CrossEntropyLoss`. (`F.nll_loss` is allowed: it only picks.)


# %% nbgrader={"solution": "label_smoothed_loss"}
def label_smoothed_loss(logits, targets, smoothing, pad_id):
    """Cross-entropy against targets that share `smoothing` among all V words, mean over the targets
    that are kept.

    logits (..., V), float32 or float64; targets LongTensor (...), padding where they are pad_id;
    smoothing: 0 to 1 -> scalar, same dtype.
    """
    ### BEGIN SOLUTION
    log_p = torch.log_softmax(logits, dim=-1)  # (..., V)
    true = log_p.gather(-1, targets.unsqueeze(-1)).squeeze(-1)  # (...), of the right word
    even = log_p.mean(dim=-1)  # (...), of all words alike
    losses = -(1 - smoothing) * true - smoothing * even  # (...)
    return losses[targets != pad_id].mean()
    ### END SOLUTION


# %% nbgrader={"grade": "label_smoothed_loss"}
check(label_smoothed_loss)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# You need no tensor $q$. Sort the sum into a part with $1 - \varepsilon$ and a part with $\varepsilon / V$: the first
# asks for one log-probability at each place, the second for a mean over words.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# `gather` picks one entry of the last dimension; its index needs as many dimensions as the tensor it picks from.
# Compute a loss for every place first, padding included, and choose afterwards over which ones the mean runs.
#
# </details>

# %%
figures.with_and_without_smoothing()

# %% [markdown]
# In this language smoothing buys nothing that one could be sure of: 98.5 and 98.5 % of the sentences are exact
# without it, 99 and 98 % with it. What it promises, it does: the model is less certain, 0.88 instead of 0.99 in the
# mean. And the plain loss on unseen sentences is ten and seventeen times as high (0.14 and 0.13 instead of 0.014 and 0.0075), though
# the choices are as good. Vaswani et al.
# saw both sides too: worse perplexity, better BLEU. In a grammar with one right translation for each sentence there
# is little to be unsure of. We train with it all the same, so that you meet a loss that stops above 0.

# %% [markdown]
# ## Training the translator
#
# You have written every part of this by now: the network, the batches, the loss, the rate, and what is shown. Two things in the recipe
# come from trying. The factor 0.3 brings the largest rate to 0.005. And over the last 200 steps the rate is led to 0:
# while it is large, the numbers keep jumping around and do not settle. Such a *cooldown* ends most
# trainings today.
#
# `checkpoint` trains at the first run and writes the 0.8 MB of numbers into `translator.safetensors` beside this notebook.
# At the next run it loads them; to train anew, delete the file first. **Hand the file in together with the notebook**;
# without it the grader trains once more.
#
# Below the curves you will see what the machine writes, in the middle of its training, for *the old woman often paints a
# white house in september*. **Predict before you run:** what will it learn first: the right words, their order and their
# endings, or to write French at all?

# %%
STEPS = 10 if quick() else 700
data = [
    ([english[word] for word in pair.english.split()], [french[word] for word in pair.french.split()]) for pair in pairs
]
schedule, smoothed_loss = or_given(noam_lr), or_given(label_smoothed_loss)


def rate(step):
    return 0.3 * schedule(step, translator.D_MODEL, 60) * min(1, (STEPS + 1 - step) / 200)


def loss_of(logits, targets):
    return smoothed_loss(logits, targets, 0.1, PAD)


# %%
torch.manual_seed(0)
model = small_start(Transformer(*translator.SIZES))  # 206,146 random numbers
live = Live(
    STEPS,
    "training the translator",
    "Figure 11.9. The translator learns. Below: what it writes for one sentence.",
    says=lambda: translator.translate(model, "the old woman often paints a white house in september"),
)
model = checkpoint(
    model, "translator.safetensors", lambda: train(model, lambda: generator.sample(data, 64), rate, loss_of, live)
)
model = model.eval()

# %% [markdown]
# <details><summary>Answer</summary>
#
# In the training that stands behind this page: at first it writes nothing at all, as eos is the commonest word. Next comes French
# about something else, such as *un cheval
# regarde un professeur en décembre* after forty steps. It has become a language model and does not listen to the English
# yet. Then the right words appear, as cross-attention finds out where to look. The endings come last: *un maison
# blanche* before *une maison blanche*. All this takes little more than a hundred of the 700 steps; the rest is for the last few
# mistakes. (The sentences depend on the random start, and a little on the machine.)
#
# </details>
#
# The loss stops a little above 0.85, the number that you remember: it is the entropy of the smoothed target, and no
# fault. The accuracy tells you what the loss cannot. **Take a break here, or while it runs.**
#
# <details><summary>If yours looks different</summary>
#
# - *You stopped it.* Nothing was kept. Run the cell again: it begins anew.
# - *The loss is NaN, runs away, or stays above 4.* The rate is far too large. Check `rate(1)`, `rate(60)` and
#   `rate(700)`: about 0.00008, 0.005 and 0.000007. Delete `translator.safetensors` before you train again.
# - *The loss falls below 0.85.* Nothing can do that with smoothing 0.1. The loss is not smoothed, or it is divided by
#   too many places.
# - *The accuracy shoots up to 100 % long before step 100, and nothing that the model writes is right.* It sees what it
#   has to say. Look at the mask, and lay `tgt_in` beside `tgt_out`; more in *What goes wrong* below.
# - *The cell ends at once, and the model is bad.* It has loaded the numbers of an earlier training. Delete
#   `translator.safetensors` and run the cell again. Numbers that do not fit a model that you have changed are put
#   aside, never thrown away.
# - *Ten steps only.* Quick mode is on: start Jupyter without `COURSE_QUICK`.
#
# </details>

# %% [markdown]
# ### Exercise 11.5 `translate`
#
# Difficulty 3 of 5 · Importance 5 of 5 · 20 minutes · 22 points
#
# `translate(sentences)`: a list of English sentences, words separated by spaces → the list of French sentences that
# your `model` writes, words separated by one space, without bos, eos and padding. Begin with bos and write greedily, the
# likeliest word each time, until eos. (A model that never says eos may be stopped when its row is `translator.MAX_LEN`
# ids long, bos included: it has no more positions.)
#
# The check reads 600 sentences that nobody has trained on, and asks for 99.5 % that are right word for word. (In the
# grader 99 % of other such sentences are worth all points, and points begin above 50 %.) It also gives you one of them
# alone, and puts models in the place of your `model` that say other words, more or fewer, and go on behind eos: your loop
# writes what the model says, up to eos. `english` and `french` map words to ids, `words_of` maps ids back, and
# `make_batch` makes `src` of ids. A sentence at a time is fine and takes a while; all rows of a batch at once is quicker.
# (Write this loop yourself: the course's `translator.greedy` and `translator.source_batch`, which have served you so
# far, are no answer.)

# %%
words_of = {index: word for word, index in french.items()}


# %% nbgrader={"solution": "translate"}
def translate(sentences):
    """English sentences in, the French that `model` writes for them out.

    sentences: list of str, of words in `english` -> list of str, without marks.
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
# For one sentence you have everything from lesson 10: `model.encode` once, then `greedy_decode` with a `step` that asks
# `model.decode` for the logits of the last place. Then a loop over sentences, and words for ids.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# For a batch keep one tensor of ids, `(B, t)`, that grows by a column at each turn. Rows end at different times: let
# them go on, and cut each row at its first eos when all are done. Gradients are not needed, and `torch.no_grad()` saves
# half of the time.
#
# </details>

# %%
src = translator.source_batch([pair.english for pair in unseen])  # (500, T_s)
rows = translator.greedy(model, src).tolist()
written = [" ".join(word for word in map(words_of.get, row) if word[0] != "<") for row in rows]
exact = sum(text == pair.french for text, pair in zip(written, unseen, strict=True))
print(f"{exact} of {len(unseen)} unseen sentences exactly right")
for pair, text in list(zip(unseen, written, strict=True))[:3]:
    print(f"  {pair.english} → {text}")

# %% [markdown]
# ## Where it looks
#
# The cross-attention of the last block has a row for each French word and a column for each English one. The loss never
# mentions it. Does it point at the word that the grammar had in mind?
#
# One thing to be careful about: the row that *says* a word is the one that has read the word before it. `tgt_in` is
# shifted, so row t of the weights already belongs to word t of the target.

# %% [markdown]
# ### Exercise 11.6 `alignment`
#
# Difficulty 1 of 5 · Importance 3 of 5 · 6 minutes · 10 points
#
# `alignment(cross_weights)`: weights `(H, T_t, T_s)` of one sentence → LongTensor `(T_t,)`: for each target place the
# source place with the largest weight, in the mean over the heads.


# %% nbgrader={"solution": "alignment"}
def alignment(cross_weights):
    """For each target place the source place that the heads look at most, in their mean.

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
# Two steps: one dimension goes away by averaging, another by choosing. Which of the three goes first?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# What is left has one number for each target place. Let that tell you along which dimension the choice is made.
#
# </details>

# %%
ids = [([english[w] for w in pair.english.split()], [french[w] for w in pair.french.split()]) for pair in unseen]
batch = or_given(make_batch)(ids, PAD, BOS, EOS)
weights = figures.cross_weights(model, batch["src"], batch["tgt_in"])  # (500, H, T_t, T_s)
hits = total = 0
for pair, one in zip(unseen, weights, strict=True):
    T_t, T_s = len(pair.french.split()), len(pair.english.split())
    found = or_given(alignment)(one[:, :T_t, :T_s]).tolist()
    hits += sum(a == b for a, b in zip(found, pair.alignment, strict=True))
    total += T_t
print(f"{hits} of {total} French words look at the word that they come from: {100 * hits / total:.1f} %")

# %% [markdown]
# Move the slider through sentences that nobody trained on. Where a line is orange, the model looks at another word than
# the grammar did. Then type a sentence of your own (in words that it knows, such as *my young queen often forgets the blue
# door*) and press Enter: this is your translator. What does it make of a sentence that the grammar would never make?

# %%
explore.looks(model)

# %% [markdown]
# It found the dictionary and the word order by itself. But be careful with the conclusion. Take *ma tasse* in *my
# strange cow touches my strange cup*: to choose *ma* and
# not *mon* the model must know that *tasse* is feminine, and the thick line leads to *my*, not to *cup*. Some of that
# knowledge may come along a thin orange line. The rest came another way: through the encoder, where *my* can look at its
# noun, or through the first block, which is not drawn here. In the course's own machine, *le* or *la*, *un* or *une*, *mon* or *ma*
# stay right in about 95 of 100 places if that place may not look at the noun in any block; if the encoder does without its attention, in
# about 73 (a coin: 50). (In three others trained as here it was mostly the encoder too; in a fifth it was not.) The picture shows one
# road out of several.

# %% [markdown]
# ## How good is good?
#
# Exact or not is a harsh measure. In a real language most sentences have many good translations, and a
# system may match none of them word for word. **BLEU** (Papineni et al., 2002) compares a candidate, what the
# system wrote, with a reference, what a human wrote. It counts how many **n-grams** (n words in a row) of the candidate
# stand in the reference, for n = 1 to 4, over all sentences together:
#
# $$p_n = \frac{\text{n-grams that the reference has too}}{\text{n-grams of the candidates}}, \qquad
# \text{BLEU} = 100 \cdot \min\left(1, e^{\,1 - r/c}\right) \cdot (p_1 p_2 p_3 p_4)^{1/4}$$
#
# with $c$ and $r$ the words of all candidates and of all references. An n-gram counts at most as often as it stands in
# its reference: the authors' example is a candidate *the the the the the the the*.
#
# *On paper:* the reference is *une pomme rouge est belle*, the candidate *une pomme rouge est beau*. What are the four
# precisions, and the BLEU?
#
# <details><summary>Answer</summary>
#
# 4 of 5 words, 3 of 4 pairs, 2 of 3 triples, 1 of 2 fours: the product is 0.2, its fourth root 0.669. Lengths are
# equal, so BLEU is 66.9. One wrong ending in five words costs a third.
#
# </details>

# %% [markdown]
# ### Exercise 11.7 `corpus_bleu`
#
# **Extra** · Difficulty 3 of 5 · Importance 3 of 5 · 18 minutes · 10 bonus points
#
# `corpus_bleu(candidates, references)`: two lists of equal length; each sentence is a list of words, or a string that
# is split at white space → float from 0 to 100. No smoothing: where one of the four precisions is 0 (or there is no
# n-gram at all), the result is 0.0 (a plain 0 will do). A sentence of fewer than n words adds no n-grams.


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
# up four pairs of numbers over all sentences and divide at the very end.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# `zip(words, words[1:], words[2:])` gives the triples. For the penalty you need two sums of lengths; it acts only
# where the candidates are shorter. Think of the zeros before you take a logarithm.
#
# </details>

# %% [markdown]
# ## Greedy or beam
#
# Lesson 10 built a search that looks wider than one word. Does your translator need it?

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
# Does a wider beam find more? We measured it with the course's machine, which is sure of each word: ten unseen
# sentences come out right greedily, and with a beam of 4 they are the same. A translator that is less sure gained next
# to nothing in the one training that we looked at: after 150 steps greedy writing gets 62.5 % of 40 unseen sentences
# exactly right, and beams of 2, 4 and 8 get 65 %, one
# sentence more. Wider is not always better: in large systems very wide beams make translations worse (Koehn and Knowles, 2017).

# %% [markdown]
# ## What goes wrong
#
# Four trainings of 200 steps, from the same start and with the same batches. Three of them have one mistake each, of
# the kind that forums are full of:
#
# - **targets not shifted:** the decoder reads the word that it has to say (exercise 10.2);
# - **the mask shows one word too many:** `tril(1)` for `tril()`, so that each place sees its answer;
# - **sorted apart:** somebody sorts each batch by length, as recurrent layers like to have it, the sources for themselves
#   and the targets for themselves. Now many a sentence stands beside another's translation.
#
# **Predict before you look:** which of the three have a better loss than the right training? What will each of them
# write for *jane visits africa in september*?

# %%
figures.broken_trainings()

# %% [markdown]
# - *Not shifted* has learned to copy after seventy steps. Alone it repeats one word.
# - *The leaking mask* is the dangerous one: on 200 unseen sentences 0.016 nats a word and 99.9 % of the words, a
#   sixth of the right training's loss. When it writes, no sentence is right (it says *le* again and again), because the
#   word that it used to peek at is not there yet.
# - *Sorted apart* stops near 2.2, and what it writes is good French about something else (*jane aime le maroc en septembre*).
#   Has it stopped listening to the English, then? Not at all: on unseen sentences it has 1.96 nats a word, and 3.35 with
#   another sentence's English. Both sides of a batch are sorted by length, and sentences of one length keep their order, so
#   in batches of 32, as these were, 39 % of the rows still stand beside their own translation (in batches of 64, a fifth). It
#   has learned what such data teach: *jane* and *september* more often than not, and a guess at the rest.
#
# The right training has 0.10 nats at this point, and 88 % of the sentences are exact. **A number that is measured with the
# true words given does not show a leak,** unless one knows how low an honest loss can be (lesson 12 has a language in which
# one knows). Let the model write, or change a later word and see whether an earlier logit moves.

# %% [markdown]
# ## At work
#
# Your numbers beside the course's, which were trained before lesson 1, by another recipe and from another start. Both
# write the same French. **Predict:** are the numbers alike?

# %%
figures.beside(model)

# %% [markdown]
# Number by number they have nothing in common: the correlation of the two matrices is about 0. What they share stands in the
# relations: which English words have similar vectors agrees between the two, if only in part: the correlation is about 0.4.
#
# How can different numbers do the same? **Predict before you run.** We change the course's machine in three ways: two
# heads of a block change places (their rows in $W_Q$, $W_K$ and $W_V$, and their columns in $W_O$); all channels are
# dealt anew, in the same order everywhere; all vectors are turned in the same
# way, by a rotation of the 64-dimensional space. Which of the three still translates?

# %%
figures.same_machine()

# %% [markdown]
# <details><summary>Answer</summary>
#
# The first two, to the last digit that rounding leaves. So there are astronomically many tables of numbers that are one machine, and
# two trainings that end at the same table would be a wonder. The third does not: 3.3 nats a word instead of 0.0002, and none of
# 200 sentences right. The matrices do
# not mind the turn, as the next one undoes it. But a layer norm has a factor for each *channel*, and takes its mean over them. In
# a Transformer the axes mean something.
#
# </details>

# %% [markdown]
# ### Quiz 11.1
#
# A training with smoothing 0.1 over 194 words stands at a loss of 0.86 and an accuracy of 99.9 %. What now?
#
# - **a** train longer, the loss should go to 0
# - **b** nothing: it is nearly as low as it can get
# - **c** the learning rate is too large, the loss is stuck

# %% nbgrader={"solution": "quiz_1"}
quiz_1 = None  # "a", "b" or "c"
### BEGIN SOLUTION
quiz_1 = "b"
### END SOLUTION

# %% nbgrader={"grade": "quiz_1"}
check(quiz_1=quiz_1)

# %% [markdown]
# ### Quiz 11.2
#
# On unseen sentences, with the true words given, a model has a loss of 0.01 nats a word. When it writes alone, no
# sentence is right. Which of these fits?
#
# - **a** it has learned the training sentences by heart
# - **b** sources and targets do not belong together
# - **c** each place sees the word that it has to say
# - **d** the beam is too narrow

# %% nbgrader={"solution": "quiz_2"}
quiz_2 = None  # "a", "b", "c" or "d"
### BEGIN SOLUTION
quiz_2 = "c"
### END SOLUTION

# %% nbgrader={"grade": "quiz_2"}
check(quiz_2=quiz_2)

# %% [markdown]
# ### Quiz 11.3
#
# Every sentence of a system has one wrong word among eight, none is exactly right. Its BLEU is
#
# - **a** 0
# - **b** 12.5
# - **c** somewhere between 50 and 85
# - **d** 87.5

# %% nbgrader={"solution": "quiz_3"}
quiz_3 = None  # "a", "b", "c" or "d"
### BEGIN SOLUTION
quiz_3 = "c"
### END SOLUTION

# %% nbgrader={"grade": "quiz_3"}
check(quiz_3=quiz_3)

# %% [markdown]
# ## Written question
#
# *15 points, graded by hand, 10 minutes, six to ten sentences.*
#
# A colleague shows you two trained translators. Model A has the lower loss on unseen sentences, model B gets more of
# them exactly right. A was trained without smoothing, B with smoothing 0.1. Explain how both facts can be true at
# once, say which number you would report and why, and name two checks that you would make before you believe either
# of them.
#
# <details><summary>For those who learn alone: what a good answer has</summary>
#
# - what the two numbers measure: probabilities with the true words given, and whole sentences written alone;
# - why smoothing raises the plain loss without changing which word comes first;
# - two checks that could really show something wrong: that no place sees its answer, that no test sentence was in
#   training, that padding is left out, that there is more than one start.
#
# </details>

# %% [markdown] nbgrader={"written": "written_1"}
# **Model answer.** The loss asks how probable the true words are, each with the true words before it. Exactness asks
# whether the likeliest words, each after the model's own, make the whole sentence. Smoothing teaches B to keep a
# tenth of its certainty back, so the plain loss of B cannot fall much below 0.1 nats even where its first choice is
# always right. So A may have the better probabilities and B the better choices. I would report exactness (or BLEU,
# where many translations are good), because a translator is there to write, and name the loss only among models with
# the same smoothing. Before that I would change a later target word and see that no earlier logit moves, and look for
# the test sentences among the training pairs. And I would train each from three starts: a difference smaller than
# that between two starts says nothing.
#
# **Marking scheme, 15 points.** What the loss measures, teacher forcing included (3). What exactness measures, own
# words included (3). Why smoothing moves one and not the other (4). A number to report, with a reason (1). Two checks
# that could find a real fault, 2 each (4).

# %% [markdown]
# ## From the notes this course grew from
#
# <details><summary>Two claims about translation, and what this lesson found</summary>
#
# - *"This is essentially where the mapping between English and French is happening"* (of cross-attention). Measured
#   here: the last block's mean cross-attention points at the word that a French word comes from nearly always. That
#   does not make it the only place where anything is mapped: the gender of an article came mostly through the encoder, in
#   four of five machines.
# - *"The encoder-decoder attention is trained to associate the input sentence with the corresponding output word."* Nobody trains
#   it for that: the loss asks for words, at the very end, and never mentions attention. It came to associate them all the same.
#
# </details>

# %% [markdown]
# ## Recap
#
# - A batch is three tensors; target in and target out differ by one place, and padding stands on the right.
# - Loss and accuracy count words, not padding. A smoothed loss has a floor that is not 0.
# - Warm-up, a largest rate, a cooldown: the rate is half of a recipe.
# - Train something tiny first whose answer you can see.
# - Teacher-forced numbers do not show a leak, unless one knows how low they can honestly be. Let the model write before you
#   believe a loss.
# - A model that is right on all words like those it has seen may fail on longer ones.
# - Cross-attention pointed at the right word without being asked to. It is one road of several.

# %%
progress()

# %% [markdown]
# ## Further reading
#
# - Vaswani et al. (2017), [Attention is all you need](https://arxiv.org/abs/1706.03762), sections 5 and 6.
# - Kingma and Ba (2015), [Adam: a method for stochastic optimization](https://arxiv.org/abs/1412.6980).
# - Szegedy et al. (2016), [Rethinking the Inception architecture for computer
#   vision](https://arxiv.org/abs/1512.00567), section 7: label smoothing.
# - Müller, Kornblith and Hinton (2019), [When does label smoothing help?](https://arxiv.org/abs/1906.02629)
# - Xiong et al. (2020), [On layer normalization in the Transformer architecture](https://arxiv.org/abs/2002.04745):
#   why post-norm needs a warm-up.
# - Papineni et al. (2002), [BLEU: a method for automatic evaluation of machine
#   translation](https://aclanthology.org/P02-1040/).
# - Post (2018), [A call for clarity in reporting BLEU scores](https://arxiv.org/abs/1804.08771).
# - Bahdanau, Cho and Bengio (2015), [Neural machine translation by jointly learning to align and
#   translate](https://arxiv.org/abs/1409.0473): the first such alignment.
# - Koehn and Knowles (2017), [Six challenges for neural machine translation](https://arxiv.org/abs/1706.03872):
#   alignments that do not align, beams that are too wide.
#
# **Next:** [lesson 12](../12_language_model/12_language_model.ipynb) trains a GPT, beside a line that no model can beat.
