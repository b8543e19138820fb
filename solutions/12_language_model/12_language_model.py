# %% [markdown]
# # 12. A language model: a GPT, and why it beats every table of counts
#
# **Goal:** build a GPT, train it on a language of which everything is known, and measure how close it comes to the best
# that is possible. **Time:** about 170 minutes, 45 of them for the extra, exercise 12.8. That is long: take a break after
# exercise 12.5, before the training.

# %% tags=["setup"]
# (empty: the build puts the set-up cell here)

# %%
import math
import torch
import torch.nn.functional as F
from torch import nn

from helpers import check, corpus, or_given, progress
from helpers.blocks import EncoderBlock, cached_attention, causal_mask, filter_logits, previous_token_weights
from helpers.drawing.transformer_map import transformer_map
from helpers.lessons.language_model import explore, figures
from helpers.lessons.language_model.rotary import RotaryAttention
from helpers.lessons.language_model.watch import Watch, best_device
from helpers.lessons.language_model.writing import write_with_cache
from helpers.widgets.checkpoint import checkpoint, quick
from helpers.widgets.progress_bar import bar

# %%
transformer_map("12_language_model")

# %% [markdown]
# A GPT is the lower row alone: no source, no cross-attention, nothing to translate. It reads a text and says what comes
# next.

# %% [markdown]
# ## You need
#
# - the Markov chain of neighbors, and the head that looks one token back:
#   [lesson 3](../03_query_key/03_query_key.ipynb);
# - entropy, cross-entropy and temperature: [lesson 6](../06_softmax/06_softmax.ipynb);
# - rotary positions: [lesson 2](../02_position/02_position.ipynb), and the block with its norm in front:
#   [lesson 9](../09_encoder_block/09_encoder_block.ipynb);
# - `filter_logits` and the cache: [lesson 10](../10_decoder_block/10_decoder_block.ipynb).
#
# What the import cell brings, finished:
#
# | piece | how it is called |
# |---|---|
# | `EncoderBlock(d_model, num_heads, d_ff, norm_first=False, activation=F.relu)` | `block(x, mask)` → `(B, T, D)`; its attention is `block.attention` |
# | `RotaryAttention(d_model, num_heads)` | as lesson 8's attention: `(x, mask=mask)` → `(out, weights)` |
# | `causal_mask(T)` | boolean `(T, T)`, on the CPU |
# | `filter_logits(logits, top_k=None, top_p=None)` | the logits, with −∞ where a token is cut |
# | `cached_attention(q, k, v, cache)` | `(out, cache)` |
# | `previous_token_weights(max_len)` | `(W_q, W_k)` of lesson 3's head, `(max_len, max_len)` each |
#
# Two questions to warm up. Answer before you open them.
#
# <details><summary>Lesson 6: a die is fair. What loss in nats does the best possible guesser of its throws have, and what
# loss does a guesser have who is sure of a six?</summary>
#
# log 6 = 1.79 nats, the entropy of the die. The other one has an infinite loss as soon as something else comes: no
# guesser beats the entropy in the long run, but one can do much worse.
#
# </details>
#
# <details><summary>Lesson 10: why is there a causal mask in training, where all the words are known?</summary>
#
# Because every place is asked for the word that comes next, and that word stands one place to the right. Without the
# mask the answer is read off, the loss is wonderful, and the model cannot write.
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
# ## A language of which everything is known
#
# How good is a language model with a loss of 1.5 nats a token? On real text nobody can say, because nobody knows how much
# of the text is chance. So this lesson has a language of its own. Its tokens are single characters, and its sentences
# are of three kinds, each closed by a full stop:
#
# - **agreement**, `Bqrzqb.`: the verb, a small letter from `a` to `f`, agrees with the capital, 2 to 30 tokens back;
# - **brackets**, `([]{()}).`: each is closed by its own kind, and they stand in one another up to four deep;
# - **repetition**, `|rwty|rwty.`: a segment of three to eight different letters, said twice.

# %%
text = corpus.language_text()  # (300000,)
symbols = corpus.language_symbols()  # V characters
print(len(symbols), "tokens:", symbols)
print("".join(symbols[i] for i in text[:240].tolist()))

# %% [markdown]
# *On paper:* after `|rwt` the segment goes on with probability 3/4, and the second bar comes with probability 1/4. Say it
# comes, and the sentence ends `|rwt.` To somebody who knows the rules, what are the probabilities of these five tokens,
# `|`, `r`, `w`, `t` and `.`, and what do they cost in nats?
#
# <details><summary>Answer</summary>
#
# 1/4, then 1, 1, 1 and 1. The bar costs log 4 = 1.39 nats, everything after it nothing: who remembers the segment knows
# the rest. Somebody who sees only the token before has to guess each letter.
#
# </details>
#
# Everything that the next token depends on stands in the sentence so far. So the probability of each next token is known
# exactly, and the mean of $-\log p$ is a line that **no model can beat in the long run**. It is called the **entropy
# rate** of the source:

# %%
print(f"entropy rate: {corpus.entropy_rate():.4f} nats a token")

# %%
figures.one_text()

# %% [markdown]
# Tall bars are chance: which letter, which bracket, when a sentence ends. Where there is no bar, the token was certain to
# somebody who remembers. **Look at the verb**, the small `b` of the first sentence: it costs 2.1 nats, and yet it had to be
# that very letter. Why?
#
# <details><summary>Answer</summary>
#
# Which verb is certain, *when* it comes is not: any other letter could have come once more. So a bar shows the chance
# alone: what memory saves is not in it. A guesser who forgets the capital pays for six verbs instead of one: log 6 =
# 1.79 nats on top.
#
# </details>

# %% [markdown]
# ### Exercise 12.1 `bits_per_token`
#
# Difficulty 1 of 5 · Importance 3 of 5 · 3 minutes · 4 points
#
# Papers give losses in nats, in bits, or as a perplexity, e to the loss in nats: the number of equally likely tokens that
# would be as hard to guess. A bit is what one fair coin tells: log 2 nats. From a loss in
# nats a token, a Python float or int from 0 to 300, the bits a token as a Python float.


# %% nbgrader={"solution": "bits_per_token"}
def bits_per_token(loss):
    """Bits a token from nats a token: both Python numbers; returns a float."""
    ### BEGIN SOLUTION
    return loss / math.log(2)
    ### END SOLUTION


# %% nbgrader={"grade": "bits_per_token"}
check(bits_per_token)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# A fair coin has an entropy of 0.693 nats and of 1 bit. A loss of 1.386 nats is how many coins?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# The number of bits is larger than the number of nats. `math` has the logarithm that you need.
#
# </details>
#
# The source has 2.03 bits a token. A perfect compressor would store its text in about a quarter of a byte for each
# character: Shannon's source coding theorem says that entropy is also the limit of compression.

# %% [markdown]
# ## Markov chains of any order
#
# Lesson 3 counted neighbors: P(next | current), a table of V × V numbers. That is a **bigram** model. Nothing stops us
# from looking at two tokens before, or five: the **n-gram** model of order n predicts a token from the n − 1 tokens before
# it. Shannon did this by hand with books in 1948.
#
# A context that was never seen has no counts. The simplest remedy adds a little $\alpha$ to every count:
#
# $$p(x \mid c) = \frac{\text{count}(c, x) + \alpha}{\text{count}(c) + \alpha V}.$$
#
# Here count(c) says how often the context c was seen *with a next token*: at the very end of the text it does not count.
#
# *On paper:* V = 2 tokens, $\alpha = 1$, and after the context `ab` the text had `a` three times and `b` never. What are
# the two probabilities? And after a context that it never had?
#
# <details><summary>Answer</summary>
#
# (3 + 1) / (3 + 2) = 0.8 and 0.2. After an unknown context, 1/2 each.
#
# </details>

# %% [markdown]
# ### Exercise 12.2 `ngram_loss`
#
# Difficulty 3 of 5 · Importance 3 of 5 · 15 minutes · 14 points
#
# `ngram_loss(train, test, order, vocab_size, alpha)` → float. Count in `train`, then the mean of $-\log p$ in nats over the
# tokens of `test` that have a whole context: places `order − 1` to the end. (A mean over all of `test` is accepted too, if
# each of its first tokens has all those before it for its context.) `order` counts the predicted token: 1 is a unigram model
# without context, 2 the Markov chain of lesson 3.
# `train` and `test` are 1-D LongTensors or lists, longer than `order`; $\alpha > 0$.


# %% nbgrader={"solution": "ngram_loss"}
def ngram_loss(train, test, order, vocab_size, alpha):
    """Nats a token of an n-gram model with additive smoothing, counted in train and measured on
    test.

    train, test: 1-D LongTensor or list of int; order: int >= 1, the predicted token included;
    vocab_size: int; alpha: number > 0 -> float, the mean over the places order - 1 to the end of
    test.
    """
    ### BEGIN SOLUTION
    train, test = [int(i) for i in train], [int(i) for i in test]
    pairs, contexts = {}, {}
    for t in range(order - 1, len(train)):
        context = tuple(train[t - order + 1 : t])  # order - 1 tokens
        pairs[context, train[t]] = pairs.get((context, train[t]), 0) + 1
        contexts[context] = contexts.get(context, 0) + 1
    total = 0.0
    for t in range(order - 1, len(test)):
        context = tuple(test[t - order + 1 : t])  # order - 1 tokens
        seen = pairs.get((context, test[t]), 0) + alpha
        total -= math.log(seen / (contexts.get(context, 0) + alpha * vocab_size))
    return total / (len(test) - order + 1)
    ### END SOLUTION


# %% nbgrader={"grade": "ngram_loss"}
check(ngram_loss)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# Two dictionaries: how often each context was seen, and how often each context with its next token. A tuple of ids can be
# a key; the context of order 1 is the empty tuple.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Slicing gives the context of place t: it ends before t and has `order - 1` tokens. Ask dictionaries with `.get(key, 0)`,
# so that what was never seen counts 0. Divide by the number of places that you have added up.
#
# </details>

# %% [markdown]
# **Predict before you run.** Orders 1 to 6, each counted in 280,000 tokens and tested on 20,000 others. Does a longer memory
# help?

# %%
figures.ngram_losses()

# %% [markdown]
# <details><summary>Answer</summary>
#
# One token of memory helps much, 0.77 nats, and a second one a little; a third brings nothing, and after that it hurts.
# The best n-gram stays 0.86 nats above the line. (For each order the figure has the best of
# three values of $\alpha$, chosen on the test text itself: a little flattery for the tables. A cleverer smoothing than adding
# $\alpha$ helps a little more: Witten and Bell's gets to 0.82 at order 4.) A longer context is a rarer one.
# Half of the contexts of two tokens in the test were counted more than 1,000 times; of those of four tokens, half were
# counted at most 11 times, and of those of five, at most once (more than a third never). Nobody can learn 31 probabilities
# from a single count: a longer memory *by table* needs more text than there is. And what matters stands up to 30 tokens
# back. A segment of eight random letters has almost surely never been seen before.
#
# </details>
#
# That is why a language model needs something other than a longer table: it has to **look back at the right place**,
# wherever that is, and use what it finds there. Looking back is what attention does.

# %% [markdown]
# ## Questions in batches
#
# One window of text is many questions at once. Under a causal mask a window of T tokens asks T of them: what comes after
# the first token, after the first two, and so on.
#
# | place | 0 | 1 | 2 | 3 | 4 |
# |---|---|---|---|---|---|
# | reads `x` | `.` | `B` | `q` | `r` | `b` |
# | has to say `y` | `B` | `q` | `r` | `b` | `.` |
#
# So `y` is `x` one place further on in the text.

# %% [markdown]
# ### Exercise 12.3 `get_batch`
#
# Difficulty 2 of 5 · Importance 5 of 5 · 8 minutes · 10 points
#
# `get_batch(data, block_size, batch_size, generator)` → `(x, y)`, two LongTensors `(batch_size, block_size)`. Draw
# `batch_size` starts with the generator, with replacement, all places alike from which a window and its next token fit:
# that is `len(data) - block_size` places. `y` is `x`, one place further on.


# %% nbgrader={"solution": "get_batch"}
def get_batch(data, block_size, batch_size, generator):
    """Random windows of a text and, for each of their tokens, the token that comes next.

    data LongTensor (N,), N >= block_size + 1; generator: torch.Generator
    -> x, y LongTensors (batch_size, block_size).
    """
    ### BEGIN SOLUTION
    starts = torch.randint(len(data) - block_size, (batch_size,), generator=generator)  # (B,)
    positions = starts[:, None] + torch.arange(block_size)  # (B, T)
    return data[positions], data[positions + 1]
    ### END SOLUTION


# %% nbgrader={"grade": "get_batch"}
check(get_batch)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# The last window must leave one token over for its last answer. Which is the largest start, and does `torch.randint`
# include its upper end?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# A column of starts plus a row of 0, 1, 2, ... is a whole table of places. One indexing reads all of them.
#
# </details>

# %% [markdown]
# ### Exercise 12.4 `next_token_loss`
#
# **Find the bug** · Difficulty 2 of 5 · Importance 5 of 5 · 8 minutes · 8 points
#
# `F.cross_entropy` wants the classes in dimension 1: `(B, V, T)` for logits, `(B, T)` for targets. A model gives
# `(B, T, V)`. This is a repair that is found in many forums and repositories. It runs, and the loss is a number.


# %%
def published_loss(logits, targets):
    B, T, V = logits.shape
    return F.cross_entropy(logits.view(B, V, T), targets)


# %% [markdown]
# **Predict before you look.** B = 1, T = 2, V = 3, logits `[[a b c], [d e f]]`. Which three numbers does this take for the
# logits of place 0?
#
# <details><summary>Answer</summary>
#
# `view` deals the same row of numbers anew: `[[a b], [c d], [e f]]`. Place 0 gets the first column, a, c and e: logits of
# both places, and of wrong tokens. `view` never moves a number; exchanging two dimensions does. The model can still learn
# something (which tokens are common), so the loss falls a little, and then it stays where it is.
#
# </details>
#
# Write it as it should be: `logits (B, T, V)`, `targets` LongTensor `(B, T)` → scalar, the mean over all places.


# %% nbgrader={"solution": "next_token_loss"}
def next_token_loss(logits, targets):
    """The mean cross-entropy of each next token: logits (B, T, V), targets LongTensor (B, T) ->
    scalar."""
    ### BEGIN SOLUTION
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten())
    ### END SOLUTION


# %% nbgrader={"grade": "next_token_loss"}
check(next_token_loss)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# All B · T questions are alike: nobody needs to know which sentence a question comes from.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Either one long list of questions with V logits each, or two dimensions that change places. Which of `flatten` and
# `transpose` does which?
#
# </details>

# %% [markdown]
# ## The ladder
#
# What has to be added to a Markov chain until it is a GPT? Five models on the same text:
#
# 1. the **bigram** table: the token at hand, nothing else;
# 2. **one head** of attention: it may look back at one place, or at a mixture of places;
# 3. **many heads**: four looks at once, as in lesson 8, with the same number of parameters;
# 4. **+ feed-forward** after the attention: what was found is worked on;
# 5. **+ residual and norm**: now it is a block of lesson 9, and what was there is kept beside what was found.
#
# The bigram is counted in the whole text. The other four have one layer of width 32 and are trained by one recipe, 3,000 steps
# of 16 windows. Each was trained three times, with other first numbers and other windows, because one training can be luck.
# (That takes some minutes, so the losses are kept with the figure.)
#
# The entropy line stands at 1.44 here, and not at 1.41, for an honest reason. The models are tested on 200 short passages, each
# of which begins with a new sentence, and beginnings are less certain than what follows. So every figure from
# here on draws the line of its own passages: that is what nobody can beat *there*. Figure 12.4 looks at 40 of the 200, whose line is
# 1.43, and the check has passages of its own, with a line of 1.46: short texts differ by chance.
#
# **Predict before you run.** Which step brings the most?

# %%
figures.ladder()

# %% [markdown]
# <details><summary>Answer</summary>
#
# The first look back brings **0.25** nats: which kind of sentence is this, and which capital began it? Four looks know more than
# one, **0.13**. The feed-forward network brings **0.12**. (A guess at the reason, which nobody tested here: what comes next depends
# on several things together, on the kind of sentence *and* on this letter, and what attention hands on is a weighted sum.) Residual and norm, which let the token
# itself through beside what was found, bring another **0.11**.
#
# These are means. Look at the dots: the three trainings of the last two rungs lie up to 0.14 nats apart, and the luckiest
# one without a residual is better than the unluckiest one with it. From a single training of each you could have concluded
# the opposite.
#
# </details>
#
# All of them are far above the line. What is still missing needs two looks, one after the other, and time to learn
# them:
# *which letter came after this one the first time?*

# %% [markdown]
# ### Exercise 12.5 `GPT`
#
# Difficulty 4 of 5 · Importance 5 of 5 · 35 minutes · 22 points
#
# `GPT(vocab_size, block_size, d_model, num_heads, num_layers)`: token vectors, positions, `num_layers` pre-norm blocks
# under a causal mask with a feed-forward network four times as wide as the model, one last layer norm, and a linear layer to
# V logits. `forward(ids)`: LongTensor `(B, T)`, $1 \le T \le$ `block_size` → logits `(B, T, V)`. `block_size` is kept as an
# attribute. Judged by behavior, with random numbers in all its parameters and in evaluation mode: causal (in training mode
# too), knows order, every token so far is heard, the norms stand in front and one more at the end, each sublayer reads what all
# before it have added, one layer more is one block more. A part that stands there unused is no fault.
#
# The `EncoderBlock` of lesson 9 is the block of a GPT as soon as its mask is causal. **Positions** are your choice.
# A learned table that is added, as in lesson 9, is simplest. With it the model has to learn "the token before" for each of 63
# places; with the rotations of lesson 2 it is one thing. In three trials of the training below, 1,200 steps from a small start,
# GPTs with a table ended 0.11, 0.30 and 0.51 nats above the entropy line, and with rotations 0.03, 0.05 and 0.06: with a table,
# plan for more steps (3,600 brought the one that ended at 0.30 to 0.05).
# `RotaryAttention(d_model, num_heads)` is your attention of lesson 8, with `apply_rope` on queries and keys, and may stand in a
# block's `attention`. The names `tokens`, `positions`, `blocks`, `norm` and `unembed` serve one experiment with the cache
# further down; the check does not need them. (`positions` and `activation` among the arguments are options of the finished
# GPT alone: nothing asks for them, and you may take them out.) Where there is a GPU, the model trains on it if the tensors that you
# make (a mask, places) are on `ids.device`.
#
# Forbidden: `nn.Transformer*`.


# %% nbgrader={"solution": "GPT"}
class GPT(nn.Module):
    """A decoder without an encoder: ids LongTensor (B, T), T <= block_size -> logits
    (B, T, vocab_size).

    vocab_size, block_size, d_model, num_heads, num_layers: int; positions: "learned" or "rotary";
    activation: function, of the feed-forward networks.
    """

    def __init__(self, vocab_size, block_size, d_model, num_heads, num_layers, positions="rotary", activation=F.relu):
        super().__init__()
        ### BEGIN SOLUTION
        self.block_size = block_size
        self.tokens = nn.Embedding(vocab_size, d_model)
        self.positions = nn.Embedding(block_size, d_model) if positions == "learned" else None
        for table in filter(None, (self.tokens, self.positions)):
            nn.init.normal_(table.weight, std=0.02)  # small at the start, as in GPT-2
        blocks = [EncoderBlock(d_model, num_heads, 4 * d_model, True, activation) for _ in range(num_layers)]
        self.blocks = nn.ModuleList(blocks)
        if positions == "rotary":
            for block in self.blocks:
                block.attention = RotaryAttention(d_model, num_heads)
        self.norm = nn.LayerNorm(d_model)
        self.unembed = nn.Linear(d_model, vocab_size)
        ### END SOLUTION

    def forward(self, ids):
        ### BEGIN SOLUTION
        T = ids.shape[1]
        x = self.tokens(ids)  # (B, T, D)
        if self.positions is not None:
            x = x + self.positions(torch.arange(T, device=ids.device))  # (B, T, D)
        mask = causal_mask(T).to(ids.device)  # (T, T)
        for block in self.blocks:
            x = block(x, mask)  # (B, T, D)
        return self.unembed(self.norm(x))  # (B, T, V)
        ### END SOLUTION


# %% nbgrader={"grade": "GPT"}
check(GPT)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# The `Encoder` of lesson 9 has almost everything. It lacks the norm after the last block, the layer that makes logits,
# and the mask: who makes that, and for which length?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# With the norms in front of the sublayers, nobody normalizes what leaves the last block. So one more norm stands there. The
# mask depends on T, which may be smaller than `block_size`.
#
# </details>

# %% [markdown]
# ## Training it
#
# Here is all of it, with your functions. The optimizer is lesson 11's Adam, which here also shrinks all weights a little at
# each step (AdamW). Its rate goes up for 50 steps and then down to zero, and gradients longer than 1 are shortened.
#
# **The small start** is lesson 11's, and here it often helps. `nn.Embedding` begins with numbers around 1. Adam moves each number
# by about the learning rate at a step, however large the number is, so a row of numbers around 0.02 can turn anywhere within a
# few steps, and a row of numbers around 1 takes hundreds. A plain GPT with rotations was trained as below, from three seeds and
# on two machines, which round differently. With `nn.Embedding` as it comes the six trainings ended 0.04 to 0.34 nats above the
# line; from a small start 0.03 to 0.06. (That was with `RotaryAttention`, whose rotations have the base 10. With lesson 2's base of 10,000 the start made no difference:
# 0.05, 0.07 and 0.06 as it comes, 0.06, 0.04 and 0.06 from a small start.) GPT-2 began with 0.02 as well. `small_start` gives it to any GPT, also to one that has set its first numbers by itself.

# %%
device = best_device(or_given(GPT))  # the GPU where there is one


def train(model, data, steps, rate, look=None):
    """Train a model on random windows of data; look(model, step) every 20 steps."""
    steps = 10 if quick() else steps
    batch_of, loss_of = or_given(get_batch), or_given(next_token_loss)
    generator = torch.Generator().manual_seed(1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, betas=(0.9, 0.98), weight_decay=0.01)
    for step in bar(range(steps), f"training on {device}"):
        for group in optimizer.param_groups:
            group["lr"] = rate * min((step + 1) / 50, 1) * (1 - step / steps)
        x, y = (ids.to(device).contiguous() for ids in batch_of(data, 64, 16, generator))  # (B, T) each
        loss = loss_of(model(x), y)  # scalar
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if look and (step % 20 == 0 or step == steps - 1):
            look(model, step + 1)


# %%
def small_start(model):
    """Let every embedding of a model begin with numbers around 0.02."""
    for part in model.modules():
        if isinstance(part, nn.Embedding):
            nn.init.normal_(part.weight, std=0.02)
    return model


# %% [markdown]
# Your GPT gets two layers of width 64 with two heads each: about a hundred thousand numbers. While it trains, `watch` looks
# at it, on passages that it does not learn from, and lets it write a little now and then, each time with the same throws of
# the dice. Its curves are kept in a file beside the numbers, so that they are there after a restart. On a laptop this takes about a
# minute, and it is worth watching.
#
# **Predict before you run.** Agreement, brackets, repetition: which kind of sentence will it master first, and which last?

# %%
torch.manual_seed(0)
model = small_start(or_given(GPT)(len(symbols), 64, 64, 2, 2)).to(device)
watch = Watch()
model = checkpoint(model, "language_model.safetensors", lambda: train(model, text, 1200, 4e-3, watch))
watch.keep("language_model.curves.json")
model = model.to(device).eval()

# %% [markdown]
# <details><summary>Answer</summary>
#
# At the first step it writes soup. After forty steps it knows which characters are common and which stand side by side, and that is
# all. Then short brackets close: two neighbors are enough for that. Verbs begin to agree with their capitals some
# hundred steps later, for that takes one look back. The segments said twice start last, for they take two looks, one after the other.
# But what starts last is not what stays worst: at the end of this training the repeated letters are known best of all, to a hundredth of a nat, while
# verbs and closing brackets still stand about a tenth above the line, 0.06 to 0.16 in four trainings. (So it was in all but
# one of the trainings that we looked at; the steps depend on the random start.)
#
# </details>
#
# **Predict before you run:** does the loss fall evenly?

# %%
figures.training(watch)

# %% [markdown]
# <details><summary>Answer</summary>
#
# No. First the model learns what a bigram knows, and for some hundred steps hardly anything of repeated letters. Then it finds out
# how to copy: the red curve on the right loses most of its height in a fraction of the training, and the whole loss makes the
# bend on the left. At the same time one head begins to attend to the token that followed the previous occurrence of the
# same token (dotted; further down such a head is called an induction head).
#
# </details>

# %% [markdown]
# ### Exercise 12.6 `language_model_logits`
#
# Difficulty 2 of 5 · Importance 5 of 5 · 10 minutes · 12 points
#
# `language_model_logits(ids)`: LongTensor `(B, 64)` of passages that nobody has seen, each beginning with a full stop →
# your trained model's logits `(B, 64, V)`, of any float type, on the CPU, without gradient.
#
# It is judged by the loss. Full points within 0.10 nats of the entropy line **of these very passages**, partial points down to
# the best n-gram. And it is judged by honesty: whoever comes out clearly below the line (by 20 nats over all passages
# together) has seen the answers. So has a model
# whose logits move when later ids are changed. Both get nothing, and the check says why.


# %% nbgrader={"solution": "language_model_logits"}
def language_model_logits(ids):
    """The trained model's logits for each next token: ids LongTensor (B, T) -> (B, T, V), float, on
    the CPU."""
    ### BEGIN SOLUTION
    with torch.no_grad():
        return model(ids.to(device)).float().cpu()  # (B, T, V)
    ### END SOLUTION


# %% nbgrader={"grade": "language_model_logits"}
check(language_model_logits)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# One call of the model is nearly all of the answer. What else has to be true: where do its numbers live, and do you need gradients?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# If the loss is too high, look at the curves above: is it still falling? More steps help, and so does a smaller step at the end.
# `language_model.safetensors` must be deleted before you train again.
#
# </details>
#
# Here is what the model says beside what the source knows, place by place. Move the slider into the second half of a
# repetition, and to the places where a bracket may open or close.

# %%
explore.next_token(model)

# %% [markdown]
# Why may we call a loss below the line a leak, and not luck? Suppose a model $q$ gave the text a probability $e^{20}$ times that
# of the source $p$. The mean of $q/p$ over all texts of the source is at most 1. So at most one text in $e^{20}$, one in 485
# million, lets an honest model win by 20 nats. Lucky texts exist. They do not come to class.

# %% [markdown]
# ### Exercise 12.7 `generate`
#
# Difficulty 3 of 5 · Importance 5 of 5 · 12 minutes · 10 points
#
# `generate(model, ids, max_new_tokens, temperature=1.0, top_k=None, generator=None)`: LongTensor `(B, T)` with $T \ge 1$ →
# `(B, T + max_new_tokens)`, the prompt included. One token at a time for all rows: the model reads at most the last
# `model.block_size` ids; the logits of the last place are divided by the temperature ($> 0$); with `top_k` only the k
# likeliest tokens stay; one is drawn from the softmax with the generator, or, without one, with torch's own dice.


# %% nbgrader={"solution": "generate"}
def generate(model, ids, max_new_tokens, temperature=1.0, top_k=None, generator=None):
    """Let a model write: ids LongTensor (B, T) -> (B, T + max_new_tokens), the prompt included.

    model: ids (B, T <= model.block_size) -> logits (B, T, V); temperature: number > 0; top_k: None
    or int, 1 to V; generator: None or torch.Generator.
    """
    ### BEGIN SOLUTION
    with torch.no_grad():
        for _ in range(max_new_tokens):
            logits = model(ids[:, -model.block_size :])[:, -1] / temperature  # (B, V)
            p = torch.softmax(filter_logits(logits, top_k=top_k), dim=-1)  # (B, V)
            drawn = torch.multinomial(p, 1, generator=generator)  # (B, 1)
            ids = torch.cat([ids, drawn], dim=1)  # (B, T + 1)
    return ids
    ### END SOLUTION


# %% nbgrader={"grade": "generate"}
check(generate)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# The model gives logits for every place. Which place's do you draw from, and which ids may the model read when the text has grown
# longer than its context?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Lesson 10 has the filter. `torch.multinomial` draws from rows of probabilities and takes a generator; its answer has
# the shape of one more column.
#
# </details>

# %%
start = torch.tensor([[symbols.index(".")]], device=device)  # (1, 1)
random = torch.Generator(device).manual_seed(3)
written = or_given(generate)(model, start, 240, generator=random)  # (1, 241)
print("".join(symbols[i] for i in written[0].tolist()))

# %% [markdown]
# Check it by eye: do capitals and verbs agree, do brackets close, are segments repeated? Then turn the temperature:
# the explorer counts the sentences that keep the rules.

# %%
explore.writing(model, symbols)

# %% [markdown]
# At temperature 2 the sentences fall apart, and not all alike: between a capital and its verb any of the letters p to z will
# do, and in the second half of a repetition each letter has to be the right one. At 0.3 the text has almost no errors, and it is no longer the language: one kind of sentence and short ones prevail.
# At 1 the model speaks with the frequencies that it has learned.

# %% [markdown]
# ## The same with a cache
#
# `generate` computes all rows again for each new token. Lesson 10's cache keeps keys and values, so that each step
# computes one row. With rotary positions the keys are kept *after* they were turned, each by its own place.

# %%
greedy = start
with torch.no_grad():
    for _ in range(63):
        greedy = torch.cat([greedy, model(greedy)[:, -1:].argmax(-1)], dim=1)  # (1, T + 1)
cached = write_with_cache(model, start, 63, cached_attention)  # (1, 64)
print("the same tokens:", torch.equal(greedy, cached))
print("".join(symbols[i] for i in cached[0].tolist()))

# %% [markdown]
# Token for token the same, as far as the context reaches. When `generate` crops, it forgets the first token. But the
# keys and values that the second block has cached were computed with that token in sight: they are no longer what the
# model would compute now. And learned positions change for every token that is left. Real systems have contexts of many
# thousand tokens, or are trained with such a window from the start.

# %% [markdown]
# ## The head that continues what it has seen
#
# The fall in the middle of the training is one thing learned: *find where this token stood before, and say what
# came after it*. Anthropic's interpretability team (Olsson et al., 2022) found such **induction heads** in the Transformers of
# two and more layers that they looked at, and the same bump in the loss when they form. Two layers do it:
#
# - in the first, a head looks at **the token before** (the puzzle of lesson 3) and writes it down beside each token;
# - in the second, a head asks: *which place has my token as its token before?* and reads the token that stands there.
#
# *On paper:* the text is `|qtw|q`. At the last `q`, which place does the second head look for, and what does it read?
#
# <details><summary>Answer</summary>
#
# The place whose token before is `q`: that is place 2, which holds `t`. It says `t`. Nothing of this needs to know what
# `q` and `t` are: the segment may be one that nobody has ever written.
#
# </details>

# %%
figures.induction_by_hand()

# %% [markdown]
# ### Exercise 12.8 `induction_head`
#
# **Extra** · Difficulty 4 of 5 · Importance 3 of 5 · 45 minutes · 10 bonus points
#
# Set the weights of this two-layer model by hand. Its stream has $C = 3V + M$ channels (V = `vocab_size`, M = `max_len`), in this
# order: the **token** as a one-hot vector (V), its **place** as a one-hot vector (M), room for **the token before** (V), room
# for the **answer** (V); the last two begin as zeros. Each layer is one causal head with a residual,
#
# $$x \leftarrow x + \text{attention}(x W_Q^\top,\; x W_K^\top,\; x W_V^\top),$$
#
# with scores over $\sqrt{d}$, and the last V channels at the end are the logits.
#
# `induction_head(vocab_size, max_len)` → a list of two layers, each a tuple `(W_q, W_k, W_v)` of float32 tensors: `W_q` and
# `W_k` are `(d, C)` for any d, `W_v` is `(C, C)`. Judged by behavior, in float32 and for V and M of at most 200, on texts of at
# most `max_len` tokens in which a segment of different tokens comes twice, wherever it stands: from its first token on, the
# second time, the largest logit must be that of the next token of the segment.


# %% nbgrader={"solution": "induction_head"}
def induction_head(vocab_size, max_len):
    """Weights of two heads that together continue any segment that has been seen before.

    vocab_size V, max_len M: int >= 2 -> [(W_q, W_k, W_v), (W_q, W_k, W_v)], float32, (d, C),
    (d, C), (C, C) with C = 3 V + M channels: token, place, token before, answer.
    """
    ### BEGIN SOLUTION
    V, M = vocab_size, max_len
    C, sharp = 3 * V + M, 100.0 * (V + M) ** 0.5
    token, position = slice(0, V), slice(V, V + M)
    before, answer = slice(V + M, 2 * V + M), slice(2 * V + M, C)
    W_q, W_k, copy = torch.zeros(M, C), torch.zeros(M, C), torch.zeros(C, C)
    W_q[:, position], W_k[:, position] = previous_token_weights(M)  # (M, M) each
    copy[before, token] = torch.eye(V)
    match, keys, say = torch.zeros(V, C), torch.zeros(V, C), torch.zeros(C, C)
    match[:, token] = torch.eye(V)
    keys[:, before] = torch.eye(V)
    keys[:, V] = -1.0  # place 0 has no token before: its head could only look at itself
    say[answer, token] = torch.eye(V)
    return [(sharp * W_q, W_k, copy), (sharp * match, keys, say)]
    ### END SOLUTION


# %% nbgrader={"grade": "induction_head"}
check(induction_head)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# Lesson 3's puzzle gives the first layer's query and key, on the channels of the place. A softmax is soft: how do you make
# it look at one place only? Its values carry the token's channels into the room for the token before.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# In the second layer the query holds this token and the key holds the token before. There is one trap: at place 0 the first
# head can see nothing but itself, so place 0 believes that its own token came before it. A key may hold something against that place.
#
# </details>

# %% [markdown]
# Do your weights do it? The same text once more, read by the two layers that you have set:

# %%
figures.induction_from_weights(or_given(induction_head))

# %% [markdown]
# And the heads that grew by themselves? Take a passage with a repetition, and look at the head of your model that attends
# most to the token that followed the previous occurrence, with another head of its layer beside it.

# %%
figures.grown_induction_head(model, watch)

# %% [markdown]
# In the frames are the cells that the hand-made head would fill. The strongest head, on the left, finds them, and not as
# sharply as the hand-made one. The other one does something else. And yet the right letter gets nearly
# all the probability, each time (the line on top). Nobody told it to do this at all. Predicting the next token was enough.
#
# **Predict before you run.** Is this head needed for the copying, or do the weights only look as if? We silence heads, one at a
# time (what a head hands on becomes 0), and measure how far repeated letters then are above the line.

# %%
figures.silenced_heads(model, watch)

# %% [markdown]
# <details><summary>Answer</summary>
#
# It is needed. Without it the copying is gone: in ten trainings that we looked at, repeated letters went to between 1.7
# and 3.9 nats above the line. The other head of its layer is the control, and not always a clean one: without it they were
# 0.07 to 0.6 above in eight of the trainings, and 1.1 and 2.4 in two. (It has another job: in one training the verbs, 2.4 nats
# above the line without it.) So far the story of the two layers
# holds. What does not fit it is the first layer: there *both* heads are needed, and neither looks at the token before as cleanly as ours
# does, with at most a third of its weight. The network has found a way of its own to tell its second layer what came before.
#
# </details>

# %% [markdown]
# ## Loss against compute
#
# What has the training cost? Compute is counted, not timed: three multiply-adds for each parameter and each token, one on
# the way forward and two on the way back (Kaplan et al., 2020, count six operations, as an addition is one too).
#
# Here are three GPTs that differ in their width alone, each trained by the recipe above, and your own training, dotted.
# Both axes are logarithmic, and the loss is counted from the entropy line: 0.1 means a tenth of a nat above what is possible.
#
# **Predict before you run.** You may spend 10 billion multiply-adds. Do you train a narrow GPT for many steps, or a wide one for
# a few?

# %%
figures.compute(model, watch)

# %% [markdown]
# <details><summary>Answer</summary>
#
# With 10 billion, the narrow one: by then it is 0.59 nats above the line, the middle one 0.69 and the wide one 1.13,
# which has hardly begun. Later they change places. At the end of its training the narrow one is still 0.38 above the
# line, the middle one 0.06, the wide one 0.04 (one training each). A wide model pays more for each step, and here it learns more from
# it.
#
# </details>
#
# So each budget has a size that suits it, and the lowest points of all curves together are what compute can buy. On real
# text Kaplan et al. (2020) found that this lower edge is a straight line over seven orders of magnitude. Two cautions.
# They drew the loss itself, as nobody knows the entropy of real text. On their axes the edge must bend one day, for nobody
# gets below that entropy; here the entropy line lies infinitely far down. And each training lets its rate fall to zero at its own last step, so
# a point in the middle of a curve is not the best that so much compute can buy. Hoffmann et al. (2022) gave each length of
# training a schedule of its own, and found that smaller models, trained longer, do better than had been thought.

# %% [markdown]
# ## Real text
#
# What does your GPT make of text that nobody made for it? Every machine with Python has some: the sources of Python's own
# standard library. Here is a new GPT on its characters, trained by the function above for 200 steps. (With a file,
# `corpus.real_text("input.txt")`, it is any other text: tiny Shakespeare, for example.)

# %% tags=["ungraded"]
library = corpus.real_text(length=400_000)
torch.manual_seed(0)
writer = small_start(or_given(GPT)(len(library.symbols), 64, 64, 2, 2)).to(device)
train(writer, library.train, 200, 5e-3)

# %% [markdown]
# Two hundred steps are about 200,000 characters. So the n-grams count in as many, and all are tested on the same text:

# %% tags=["ungraded"]
counted, asked = library.train[:200_000], library.test[: 300 * 64 + 1]
for order in (1, 2, 3):
    loss = or_given(ngram_loss)(counted, asked, order, len(library.symbols), 0.1)
    print(f"order {order}: {loss:.2f} nats a character")
with torch.no_grad():
    logits = writer(asked[:-1].view(-1, 64).to(device)).cpu()  # (300, 64, V)
print(f"GPT: {or_given(next_token_loss)(logits, asked[1:].view(-1, 64)):.2f} nats a character")

# %% tags=["ungraded"]
prompt = library.encode("def ")[None].to(device)  # (1, 4)
sample = or_given(generate)(writer, prompt, 200, temperature=0.8, generator=random)
print(library.decode(sample[0].tolist()))

# %% [markdown]
# It is not Python, but it has lines, indentation and something like words. After so little text the model of order 3 is
# still ahead: counting learns at once what it can learn. The GPT goes on when the table has nothing more to give: with
# four layers of width 128 and 1,000 steps on a million characters one came to 1.50 nats. Nobody knows the entropy rate
# of this text, so nobody can say how far there is to go. Shannon (1951) had people guess the next letter and
# estimated English at about one bit a character.

# %% [markdown]
# ## At work
#
# In this lesson the machine at work is your own. What does the bug of exercise 12.4 cost it? Train two small GPTs for 120 steps,
# one with your loss and one with the published one, and measure both with the right one.

# %%
figures.two_losses(or_given(next_token_loss), published_loss)

# %% [markdown]
# With the right loss 2.31 nats after 120 steps: all that a bigram knows. With the published one 3.35, hardly better than guessing.
# Yet its *own* number, the dotted curve, falls from 3.5 to 3.0 as a loss should. Nothing crashed, and no shape was wrong. The
# sign to look for is where it stops: 3.0 is about what the unigram has (3.08, figure 12.2), a model without any context.

# %% [markdown]
# ### Quiz 12.1
#
# Your model reaches a loss of 1.30 nats on a long unseen text of a source with entropy rate 1.41. What is the likeliest
# explanation?
#
# - **a** it is a very good model
# - **b** it sees the tokens that it has to predict
# - **c** the text was easy by chance

# %% nbgrader={"solution": "quiz_1"}
quiz_1 = None  # "a", "b" or "c"
### BEGIN SOLUTION
quiz_1 = "b"
### END SOLUTION

# %% nbgrader={"grade": "quiz_1"}
check(quiz_1=quiz_1)

# %% [markdown]
# ### Quiz 12.2
#
# An induction head continues a repeated random segment of eight letters. Why can no n-gram model that was counted in our
# text do it as well, whatever its order?
#
# - **a** its table has a row for each context, and this context has never occurred before
# - **b** it cannot look further back than two tokens
# - **c** smoothing takes too much probability away

# %% nbgrader={"solution": "quiz_2"}
quiz_2 = None  # "a", "b" or "c"
### BEGIN SOLUTION
quiz_2 = "a"
### END SOLUTION

# %% nbgrader={"grade": "quiz_2"}
check(quiz_2=quiz_2)

# %% [markdown]
# ### Quiz 12.3
#
# The induction head of this lesson has two layers. What does the first one do for the second?
#
# - **a** it counts how often each token has occurred
# - **b** it writes beside each token which token came before it
# - **c** it finds the previous occurrence of the token

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
# A friend says: "A Transformer is just a big Markov chain. Given the last 64 tokens it has fixed probabilities for the next one, so
# it is a Markov chain of order 64, and nothing new." In which sense is the friend right? Why does the sentence miss the point all the
# same? Use the measured numbers of this lesson, and say what attention has that a table of counts has not.
#
# <details><summary>For those who learn alone: what a good answer has</summary>
#
# - it grants what is true: a finite context with fixed probabilities *is* a Markov chain on windows of 64 tokens;
# - it counts: how large that table would be, and what the n-gram losses do as the order grows;
# - it says what is shared between contexts (weights that act on any token, at any place), with the repeated segment as the example.
#
# </details>

# %% [markdown] nbgrader={"written": "written_1"}
# **Model answer.** Formally the friend is right: with a context of 64 tokens the next one depends on these alone, so the states of
# the chain are windows of 64 tokens, and the transition probabilities are fixed. But there are 31⁶⁴ such windows, and a chain that
# keeps a row of counts for each never sees a window twice. Measured here: from order 3 on, each longer memory makes the
# n-gram worse, and the best of them stays 0.86 nats above the entropy line, while a GPT of about a hundred thousand numbers, learning from the
# same text, comes within a tenth, often within a few hundredths. What is new is not the function but how it is written down and
# learned. Attention computes the
# row instead of looking it up: a query finds the place that matters by what stands there, and the value found there is used.
# The same weights do this for every token and every place, so what is learned in one context can hold in others. The induction head shows
# it: it continues a segment that has never been written before, for which every table of counts is empty. In the words of the
# first lessons: a Markov chain has one fixed P(next | current), while a query relates the same pair of tokens differently in
# different sentences.
#
# **Marking scheme, 15 points.** What is right: finite context, fixed probabilities, states are windows (3). The table: its size, and
# that contexts do not recur (3). Measured numbers, n-grams against GPT against the line (3). What attention does instead: finds by
# content, shares weights over places and tokens (4). An example that needs it, such as the repeated segment (2).

# %% [markdown]
# ## From the notes this course grew from
#
# <details><summary>One table, or a question for each sentence?</summary>
#
# One of the notes says how a fixed P(K|Q) of a Markov chain differs from queries and keys, where the same pair of words is
# related differently in two sentences. This lesson can answer with numbers. The chain gives one row for each current token: 2.31 nats here, with
# an entropy line of 1.41. In `Bqrz` and `|qrz` the same pair `r`, `z` stands: after the first a verb may come, after the
# second a bar. The chain has one row for both. A head asks for the capital or the bar at the front of the
# sentence, and gets two.
#
# Is this a difference in kind? It is not: any model with a finite context is a Markov chain on windows of that length. The
# difference is in what can be learned from a text that fits on a disk.
#
# </details>

# %% [markdown]
# ## Recap
#
# - A loss means something beside a line: the entropy rate is what no model can beat, and a loss clearly below it is a
#   leak.
# - n-grams look back by table. Longer tables are emptier tables.
# - A GPT is a stack of masked pre-norm blocks: one pass, T questions, T losses.
# - A look back, several looks, a feed-forward network, residual and norm: each lowered the loss, in the mean of three trainings.
# - Small first numbers in the embeddings are a part of the recipe.
# - Each budget of compute has a size of model that suits it.
# - An induction head finds what came after, in text that nobody has seen. It forms quite suddenly, the loss shows it, and
#   without it the copying is gone.
# - Generation draws, appends and crops; the cache computes each row once.

# %%
progress()

# %% [markdown]
# ## Further reading
#
# - Shannon (1948), [A mathematical theory of communication](https://doi.org/10.1002/j.1538-7305.1948.tb01338.x): n-grams,
#   entropy rate; and (1951), [Prediction and entropy of printed English](https://doi.org/10.1002/j.1538-7305.1951.tb01366.x).
# - Radford et al. (2018), Improving language understanding by generative pre-training; Radford et al. (2019), Language
#   models are unsupervised multitask learners: GPT and GPT-2.
# - Olsson et al. (2022), [In-context learning and induction heads](https://arxiv.org/abs/2209.11895).
# - Kaplan et al. (2020), [Scaling laws for neural language models](https://arxiv.org/abs/2001.08361); Hoffmann et al. (2022),
#   [Training compute-optimal large language models](https://arxiv.org/abs/2203.15556).
# - Su et al. (2021), [RoFormer](https://arxiv.org/abs/2104.09864): rotary positions.
# - Karpathy, [nanoGPT](https://github.com/karpathy/nanoGPT): a GPT in one readable file.
#
# **Next:** [lesson 13](../13_real_model/13_real_model.ipynb) runs a real network in your blocks.
