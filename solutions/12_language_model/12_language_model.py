# %% [markdown]
# # 12. A language model: a GPT against tables of counts
#
# **In this lesson** you'll build a GPT, train it on a language whose entropy we know exactly, and measure how close
# it comes to the best possible loss. **Core:** about 80 minutes. Take a break after exercise 12.3, before the
# training run.

# %% tags=["setup"]
# (empty: the build puts the set-up cell here)

# %%
import math
import torch
import torch.nn.functional as F
from torch import nn

from helpers import check, corpus, or_finished, progress
from helpers.blocks import RotaryBlock, cached_attention, causal_mask, filter_logits, previous_token_weights
from helpers.drawing.transformer_map import transformer_map
from helpers.lessons.language_model import explore, figures, full_size
from helpers.lessons.language_model.watch import Watch, best_device
from helpers.lessons.language_model.writing import write_with_cache
from helpers.widgets.checkpoint import checkpoint, quick
from helpers.widgets.progress_bar import bar

# %%
transformer_map("12_language_model")

# %% [markdown]
# A GPT is the lower row of this map, without cross-attention, because it has no source sentence. It's autoregressive
# like the decoder of lesson 10, that is, it predicts each token from those before it.

# %% [markdown]
# ## You need
#
# You need the bigrams of [lesson 3](../03_query_key/03_query_key.ipynb), entropy, cross-entropy and temperature
# ([lesson 6](../06_softmax/06_softmax.ipynb)), the pre-norm block ([lesson
# 9](../09_encoder_block/09_encoder_block.ipynb)) and rotary position embedding (RoPE, [lesson
# 2](../02_position/02_position.ipynb)). These components of earlier lessons are imported above:
#
# | component | how it is called |
# |---|---|
# | `RotaryBlock(d_model, num_heads, d_ff)` | `block(x, mask)` → `(B, T, D)`: lesson 9's block with `norm_first=True`, and RoPE on queries and keys |
# | `causal_mask(T)` | boolean `(T, T)`, on the CPU |
# | `filter_logits(logits, top_k=None)` | the logits, with −∞ for all but the `top_k` largest |
#
# The [conventions](../00_start_here/00_start_here.ipynb) of lesson 0 hold here too. Here are two questions to warm
# up.
#
# <details><summary>Lesson 6: what is the lowest expected loss, in nats, for predicting a fair die? And what is the loss of a model that is sure of a six?</summary>
#
# The lowest is $\log 6 = 1.79$ nats, the entropy of the die. A model that is sure of a six has an infinite loss as
# soon as something else comes up.
#
# </details>
#
# <details><summary>Lesson 10: why do we need a causal mask in training, although all words are known?</summary>
#
# Without the mask each position could copy the next word, which it has to predict, so the loss would be excellent,
# but the model couldn't generate.
#
# </details>

# %% [markdown]
# ## A language whose entropy we know exactly
#
# Is a language model with a loss of 1.5 nats per token good? For real text we can't tell, because nobody knows how
# much of it is unpredictable. That's why we use an artificial language. Its tokens are single characters, and it has
# three kinds of sentences:
#
# - **agreement**, `Bqrzqb.`: the verb, a lowercase letter from `a` to `f`, agrees with the capital at the start, up
#   to thirty tokens earlier;
# - **brackets**, `([]{()}).`: each bracket is closed by its own kind, nested up to four deep;
# - **repetition**, `|rwty|rwty.`: a segment of three to eight different letters appears twice.

# %%
text = corpus.language_text()  # (300000,)
symbols = corpus.language_symbols()  # V characters
print(len(symbols), "tokens:", symbols)
print("".join(symbols[i] for i in text[:240].tolist()))

# %% [markdown]
# **On paper:** after `|rwt` the segment continues with probability $3/4$, and the second bar comes with probability
# $1/4$. Suppose it comes, and the sentence ends `|rwt.` If you know the rules, what do these five tokens, `|`, `r`,
# `w`, `t` and `.`, cost in nats?
#
# <details><summary>Answer</summary>
#
# The bar has probability $1/4$ and costs $\log 4 = 1.39$ nats. The other four are certain and cost nothing, because
# you remember the segment.
#
# </details>
#
# In this way we know the probability of each next token exactly. The mean of $-\log p$ is the **entropy rate** of the
# source, and in the long run **no model can have a lower loss**.
#
# Papers report a loss in nats, in bits (one bit is $\log 2$ nats), or as a **perplexity**, the exponential of the
# loss in nats, which is the number of equally likely tokens that would be as hard to predict.

# %%
line = corpus.entropy_rate()  # a float
print(f"{line:.2f} nats = {line / math.log(2):.2f} bits per token, a perplexity of {math.exp(line):.1f}")

# %%
figures.one_text()

# %% [markdown]
# Tall bars show where chance decides, and a token without a bar was certain. The verb of the first sentence, the
# lowercase `b`, costs 2.1 nats although no other verb was possible, because it wasn't certain *when* it would come.
# If you forget the capital, you pay another $\log 6$ nats, because you have to guess among six verbs.

# %% [markdown]
# ## n-gram models
#
# To see what attention is worth, let's first try to do without it. Just as the bigrams of lesson 3 predict a token from
# the previous one, an **n-gram** model of order n predicts a token from the n − 1 tokens before it. A context that was
# never seen has no counts, so we add a small constant $\alpha$ to every count, which is called additive smoothing:
#
# $$p(x \mid c) = \frac{\text{count}(c, x) + \alpha}{\text{count}(c) + \alpha V},$$
#
# where count(c) is the number of times that the context c was followed by any token. For example, let V = 2 and
# $\alpha = 1$. If the context `ab` was followed by `a` three times and by `b` never, the probabilities are $4/5$ and
# $1/5$.

# %% [markdown]
# **Predict before you run:** we count n-grams up to order 6 in one part of the text and measure their loss on another
# (exercise 12.6). Does a longer context always give a lower loss?

# %%
figures.ngram_losses()

# %% [markdown]
# One token of context helps a lot, a second one a little, but from order 4 on the loss rises, and the best n-gram stays
# 0.86 nats above the entropy line. Longer contexts are rarer. For example, half of the five-token contexts in the test
# text were counted at most once, and you can't estimate 31 probabilities from a single count.
#
# So instead of a longer table we need a model that can **find the relevant position**, wherever it is, and use what
# it finds there, as attention does.

# %% [markdown]
# ## Batches of windows
#
# Under a causal mask, a window of T tokens gives us T training examples, because every position predicts its next
# token:
#
# | position | 0 | 1 | 2 | 3 | 4 |
# |---|---|---|---|---|---|
# | reads `x` | `.` | `B` | `q` | `r` | `b` |
# | predicts `y` | `B` | `q` | `r` | `b` | `.` |

# %% [markdown]
# ### Exercise 12.1 `get_batch`
#
# Difficulty 2 of 5 · Importance 5 of 5 · 8 minutes · 14 points
#
# Draw random windows from a text, together with their targets.
#
# - **Arguments:** `data`, a LongTensor of at least `block_size + 1` ids; `block_size` and `batch_size`, ints;
#   `generator`, a `torch.Generator`.
# - **Returns:** `(x, y)`, two LongTensors `(batch_size, block_size)`. The starts are drawn with the generator, with
#   replacement, uniformly from all `len(data) - block_size` positions where a window and its last target fit.


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
# The last window must leave one token for its last target. What is then the largest start?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# A column of starts plus a row that counts from 0 is a table of positions, with which you can index `data`.
#
# </details>

# %% [markdown]
# ### Exercise 12.2 `next_token_loss`
#
# **Find the bug** · Difficulty 2 of 5 · Importance 5 of 5 · 6 minutes · 14 points
#
# `F.cross_entropy` expects the classes in dimension 1, that is, `(B, V, T)` for logits and `(B, T)` for targets, but
# our model returns `(B, T, V)`. You can find the following fix in many forum answers, and it runs without an error.


# %%
def published_loss(logits, targets):
    B, T, V = logits.shape
    return F.cross_entropy(logits.view(B, V, T), targets)


# %% [markdown]
# **On paper:** let $B = 1$, $T = 2$, $V = 3$, with logits `[[a b c], [d e f]]`. Which three numbers does this
# function use as the logits of position 0?
#
# <details><summary>Answer</summary>
#
# `view` keeps the memory order and only changes the shape, to `[[a b], [c d], [e f]]`. Position 0 gets the first
# column, a, c and e, so logits of both positions are mixed.
#
# </details>
#
# Now write the loss correctly.
#
# - **Arguments:** `logits (B, T, V)`; `targets`, LongTensor `(B, T)`.
# - **Returns:** a scalar, the mean cross-entropy over all positions.


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
# For the mean it doesn't matter which window a position belongs to.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Either flatten B and T into one dimension (`flatten`), or exchange the last two dimensions (`transpose`).
#
# </details>

# %% [markdown]
# ### Exercise 12.3 `GPT`
#
# Difficulty 3 of 5 · Importance 5 of 5 · 15 minutes · 26 points
#
# Build a decoder-only Transformer.
#
# - **Arguments:** `vocab_size`, `block_size`, `d_model`, `num_heads`, `num_layers`, all ints. `block_size`, the
#   largest number of tokens that the model reads, is kept as an attribute.
# - **Parts:** `tokens` is an `nn.Embedding`; `blocks` is an `nn.ModuleList` of `num_layers` blocks
#   `RotaryBlock(d_model, num_heads, 4 * d_model)`; `norm` is an `nn.LayerNorm`; `unembed` is an `nn.Linear` from
#   `d_model` to `vocab_size`, with bias.
# - **`forward(ids)`:** takes a LongTensor `(B, T)` with $1 \le T \le$ `block_size`. The token vectors pass through
#   all blocks under a causal mask, then through `norm` and `unembed`.
# - **Returns:** logits `(B, T, V)`.
# - **Judged:** the check loads weights into the parts by their names and compares the logits. Other parts, such as
#   dropout, are allowed if they change nothing in evaluation mode.
# - **Forbidden:** `nn.Transformer*`.
#
# You don't need a table of positions, because each block uses RoPE.


# %% nbgrader={"solution": "GPT"}
class GPT(nn.Module):
    """A decoder without an encoder: ids LongTensor (B, T), T <= block_size -> logits
    (B, T, vocab_size).

    vocab_size, block_size, d_model, num_heads, num_layers: int. Its parts are called tokens,
    blocks, norm and unembed.
    """

    def __init__(self, vocab_size, block_size, d_model, num_heads, num_layers):
        super().__init__()
        self.block_size = block_size
        # self.tokens, self.blocks, self.norm, self.unembed
        ### BEGIN SOLUTION
        self.tokens = nn.Embedding(vocab_size, d_model)
        self.blocks = nn.ModuleList(RotaryBlock(d_model, num_heads, 4 * d_model) for _ in range(num_layers))
        self.norm = nn.LayerNorm(d_model)
        self.unembed = nn.Linear(d_model, vocab_size)
        nn.init.normal_(self.tokens.weight, std=0.02)  # as in GPT-2
        ### END SOLUTION

    def forward(self, ids):
        ### BEGIN SOLUTION
        x = self.tokens(ids)  # (B, T, D)
        mask = causal_mask(ids.shape[1]).to(ids.device)  # (T, T)
        for block in self.blocks:
            x = block(x, mask)  # (B, T, D)
        return self.unembed(self.norm(x))  # (B, T, V)
        ### END SOLUTION


# %% nbgrader={"grade": "GPT"}
check(GPT)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# Start from the `Encoder` of lesson 9. This model adds no positions, but it makes its own mask, and it has two more
# layers at the end.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# `causal_mask` takes the length of the text; on a GPU, move the mask to `ids.device`. In a pre-norm model nothing
# normalizes the output of the last block, so `norm` does it before `unembed`.
#
# </details>

# %% [markdown]
# ## Training
#
# Three ingredients of our training loop are part of nearly every published recipe:
#
# - **Weight decay:** AdamW shrinks all weights a little at every step, so that weights stay small unless the loss
#   needs them.
# - **Gradient clipping:** a gradient longer than 1 is scaled down to that length, so that a single unusual batch
#   can't throw the model far off.
# - **Initialization:** `nn.Embedding` draws its weights with a standard deviation of 1, which is too large for Adam,
#   as lesson 11 explained. GPT-2 starts with 0.02, and so do we.

# %%
device = best_device(or_finished(GPT))  # the GPU where there is one


def train(model, data, steps, rate, look=None):
    """Train a model on random windows of data; look(model, step) every 20 steps."""
    steps = 10 if quick() else steps
    batch_of, loss_of = or_finished(get_batch), or_finished(next_token_loss)
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
def initialize(model):
    """Draw the token vectors of a model with a standard deviation of 0.02."""
    for part in model.modules():
        if isinstance(part, nn.Embedding):
            nn.init.normal_(part.weight, std=0.02)
    return model


# %% [markdown]
# Your GPT has two layers of width 64 with two heads each, about a hundred thousand parameters. On a laptop the training
# run takes one to three minutes, and your weights are saved in `language_model.safetensors`. We test on short passages
# that begin with a new sentence, where the entropy line is a bit higher. **Predict before you run:** which kind of
# sentence does the model learn last?

# %%
torch.manual_seed(0)
model = initialize(or_finished(GPT)(len(symbols), 64, 64, 2, 2)).to(device)
watch = Watch()
model = checkpoint(model, "language_model.safetensors", lambda: train(model, text, 1200, 1e-3, watch))
watch.keep("language_model.curves.json")
model = model.to(device).eval()

# %%
figures.training(watch)

# %% [markdown]
# In the first eighty steps your model learns which characters follow each other, and short brackets close, because
# neighbors are enough for both. Verbs begin to agree after about two hundred steps, since that takes one attention
# layer. Repeated segments come last, because they take two layers in sequence, but in the end they are predicted best,
# while verbs and closing brackets stay about a fifth of a nat above the line.
#
# For two or three hundred steps the model learns almost nothing about repeated letters. Then their curve drops, and at
# the same time one head begins to attend to the token that followed the previous occurrence of the current one
# (dotted). A learning rate of 0.004 instead of 0.001 doesn't make this happen sooner, and in one run of four it happens
# too late for our 1,200 steps.

# %% [markdown]
# ### Exercise 12.4 `language_model_logits`
#
# Difficulty 2 of 5 · Importance 5 of 5 · 6 minutes · 12 points
#
# Return the logits that your trained `model` gives for unseen text.
#
# - **Arguments:** `ids`, LongTensor `(B, 64)`, unseen passages that begin with a period.
# - **Returns:** logits `(B, 64, V)`, floating point, on the CPU, without gradient.
# - **Judged:** by the loss. You get full points within 0.10 nats of the entropy line of these passages, and partial
#   points if you only beat the best n-gram.
# - **Forbidden:** predicting a token from the token itself or from later ones. You get no points if the loss, summed
#   over all tokens, is more than 20 nats below the line, or if logits change when later ids change.


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
# The answer is little more than one call of the model, on the device of its weights and without gradients.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# `torch.no_grad()` and `.cpu()` do the rest. If the loss is too high because repeated letters aren't learned yet,
# delete `language_model.safetensors` and train again from another seed.
#
# </details>
#
# Let's compare the probabilities of your model with those of the source, for example in the second copy of a segment,
# and where a bracket may open or close.

# %%
explore.next_token(model)

# %% [markdown]
# ### Exercise 12.5 `generate`
#
# Difficulty 3 of 5 · Importance 5 of 5 · 12 minutes · 14 points
#
# Generate text one token at a time, simultaneously for all rows of a batch.
#
# - **Arguments:** `model`, which maps ids `(B, T)` to logits `(B, T, V)` and has a `block_size`; `ids`, LongTensor
#   `(B, T)` with T ≥ 1; `max_new_tokens`, an int; `temperature` > 0; `top_k`, `None` or an int; `generator`, `None`
#   or a `torch.Generator`.
# - **Each step:** the model reads at most the last `block_size` ids. Divide the logits of the last position by the
#   temperature, keep the `top_k` largest if `top_k` is given, and draw one token from the softmax with the generator.
# - **Returns:** LongTensor `(B, T + max_new_tokens)`, the prompt included.


# %% nbgrader={"solution": "generate"}
def generate(model, ids, max_new_tokens, temperature=1.0, top_k=None, generator=None):
    """Sample from a model: ids LongTensor (B, T) -> (B, T + max_new_tokens), the prompt included.

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
# The model returns logits for every position, but you draw only from the last. If the text is longer than the model's
# context, which ids may the model read?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# A slice with a negative start keeps the last ids, even if the text is shorter. `filter_logits` implements top-k, and
# `torch.multinomial` draws from rows of probabilities and takes a generator.
#
# </details>

# %%
start = torch.tensor([[symbols.index(".")]], device=device)  # (1, 1)
random = torch.Generator(device).manual_seed(3)
written = or_finished(generate)(model, start, 240, generator=random)  # (1, 241)
print("".join(symbols[i] for i in written[0].tolist()))

# %% [markdown]
# ## The head that copies
#
# When the loss dropped, your model learned to find the previous occurrence of the current token and to predict what
# followed it. A head that does this is called an **induction head**. Olsson et al. found them, with the same drop, in
# all Transformers of two or more layers that they examined. A single layer isn't enough, because the mechanism has
# two steps:
#
# - in the first, a head attends to **the previous token** and writes it into the residual stream of each position;
# - in the second, a head searches for the position *whose previous token is the current token*, and reads the token
#   there.
#
# For example, at the last `q` of `|qtw|q` the second head finds position 2, whose previous token is `q`, and reads
# `t`. The rule works even for a segment that is entirely new.

# %%
figures.induction_by_hand()

# %% [markdown]
# We set these weights by hand, as you can do in exercise 12.7. The next figure shows the strongest induction head
# of your own model beside another one, with a frame around the tokens to which the hand-made head would attend.

# %%
figures.grown_induction_head(model, watch)

# %% [markdown]
# Your strongest head attends to most of the framed cells, though less sharply, and the other head may take the rest.
# The model learned this from predicting the next token alone. (Under *Going further* we test whether the model needs
# this head.)

# %% [markdown]
# ## At work
#
# To see what the bug of exercise 12.2 costs, we train two small GPTs for a short time, one with each loss, and
# measure both with the correct one.

# %%
figures.two_losses(or_finished(next_token_loss), published_loss)

# %% [markdown]
# With the correct loss the model reaches 2.31 nats, about as good as a bigram table, but with the buggy one it ends at
# 3.35, almost as bad as guessing. Nevertheless its own loss (dotted) falls to 3.0, and you get no error. You can still
# detect the bug, because this loss is only slightly lower than that of a unigram model (3.08), which uses no context.

# %% [markdown]
# ### Quiz 12.1
#
# Your model reaches a loss of 1.30 nats on a long unseen text from a source with entropy rate 1.41. Which explanation
# is the most likely one?
#
# - **a** it is a very good model
# - **b** the text was easy by chance
# - **c** the vocabulary is too large
# - **d** it sees the tokens that it has to predict

# %% nbgrader={"solution": "quiz_1"}
quiz_1 = None  # "a", "b", "c" or "d"
### BEGIN SOLUTION
quiz_1 = "d"
### END SOLUTION

# %% nbgrader={"grade": "quiz_1"}
check(quiz_1=quiz_1)

# %% [markdown]
# ### Quiz 12.2
#
# An induction head continues a repeated random segment of eight letters. Why can't an n-gram model of our text do
# this, whatever its order?
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
# ## Written question
#
# *15 points, graded by hand, 10 minutes, six to ten sentences.*
#
# A friend says: "A Transformer is just a big Markov chain. Given the last 64 tokens it has fixed probabilities for
# the next one, so it is a Markov chain of order 64, and nothing new." In which sense is your friend right, and what
# does the argument miss? Use your measurements from this lesson, and say what attention has that a table of counts
# does not have.

# %% [markdown] nbgrader={"written": "written_1"}
# **Model answer.** Formally your friend is right. The states of the chain are windows of 64 tokens, and the transition
# probabilities are fixed. But there are 31⁶⁴ such windows, and hardly any occurs twice, so a table of
# counts would be almost empty. We measured this: from order 4 on, each longer context makes the n-gram worse, and the
# best one stays 0.86 nats above the entropy line, whereas a GPT with about a hundred thousand parameters comes within
# a tenth of a nat. What is new is not the function but how it is represented and learned. Attention computes the row
# of probabilities instead of looking it up, because a query finds the relevant position by its content. The same
# weights do this for every token and every position, so what is learned in one context can be used in others. The
# induction head shows this, since it continues a segment that has never been written before, for which every table of
# counts is empty.
#
# **Marking scheme, 15 points.** What is right: finite context, fixed probabilities, states are windows (3). The table:
# its size, and that contexts do not recur (3). Measured numbers: n-grams against GPT against the line (3). What
# attention does instead: finds by content, shares weights over tokens and positions (4). An example that needs it, such
# as the repeated segment (2).

# %% [markdown]
# ## Recap
#
# - The entropy rate of the source is the lowest possible loss, so if your loss is clearly below it, you have a leak.
# - An n-gram model needs a row for each context, so longer contexts have fewer counts.
# - A GPT is a stack of masked pre-norm blocks, in which a window of T tokens gives T predictions in one pass.
# - An induction head continues text that it has never seen before.
# - To generate text, draw a token from the logits of the last position, append it, and repeat.
#
# **Next:** [lesson 13](../13_real_model/13_real_model.ipynb) runs a real pretrained network in your own blocks.

# %%
progress()

# %% [markdown]
# ## Going further
#
# What follows is optional. You'll write the two models given above, the n-gram model and the induction head set by
# hand, and we'll measure what each component of the GPT contributes, and the effects of dropout, more compute and real
# text.

# %% [markdown]
# ### Exercise 12.6 `ngram_loss`
#
# **Extra** · Difficulty 3 of 5 · Importance 3 of 5 · 15 minutes · 10 bonus points
#
# Count n-grams in one text and measure the loss on another.
#
# - **Arguments:** `train` and `test`, 1-D LongTensors or lists of ids, longer than `order`; `order`, an int that
#   counts the predicted token too (so that order 1 is a unigram); `vocab_size`, an int; `alpha` > 0.
# - **Returns:** a float, the mean of $-\log p$ in nats over positions `order − 1` to the end of `test`. (A mean over
#   all positions, with shorter contexts at the start, is accepted too.)


# %% nbgrader={"solution": "ngram_loss"}
def ngram_loss(train, test, order, vocab_size, alpha):
    """The loss in nats per token of an n-gram model with additive smoothing.

    train, test: 1-D LongTensor or list of int; order: int >= 1, the predicted token included;
    vocab_size: int; alpha: number > 0 -> float, the mean over positions order - 1 to the end of
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
# Use two dictionaries, one for contexts and one for contexts with their next token. A tuple of ids can be a key, and
# the context of order 1 is the empty tuple.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# The context of position t is the slice of `order - 1` tokens that ends before t. `dictionary.get(key, 0)` returns 0
# for a key that is missing. In the end, divide by the number of positions that you have added up.
#
# </details>

# %% [markdown]
# ### From bigrams to a Transformer block
#
# What does each component contribute on the way from bigrams to a GPT? We compare six models on the same text:
#
# - the **bigram** table;
# - **one head** of causal attention, without positions;
# - the same head **with RoPE**, which all later models have as well;
# - **four heads**, with the same number of parameters;
# - **+ feed-forward** network after the attention;
# - **+ residual and norm**, which makes it a block of lesson 9.
#
# All but the table have one layer of width 32 and were trained three times each, because a single run can be lucky.
# (The results are stored.)

# %%
figures.ladder()

# %% [markdown]
# The first head contributes **0.11** nats, because it can find out which kind of sentence this is, and RoPE adds
# **0.14**. Four heads contribute **0.13**, the feed-forward network **0.12**, and the residual connection and norm
# **0.11**, so every component helps.
#
# The dots show the single runs, which differ by up to 0.14 nats for the last two models. The best run without a
# residual is better than the worst run with one, so with one run of each model we might have drawn the opposite
# conclusion.
#
# All of these models stay far above the line, because repeating a segment takes two attention layers in sequence, which
# only your GPT has.

# %% [markdown]
# ### A loss below the line is a leak, not luck
#
# Suppose a model $q$ gives the text a probability $e^{20}$ times as large as the source $p$ does. The mean of $q/p$
# over all texts of the source is at most 1, so for an honest model this happens with at most one text in $e^{20}$,
# which is one in 485 million.
#
# ### One pair, two meanings
#
# In lesson 3 you saw the difference between a fixed P(next | current) and queries and keys, and here we can quantify
# it. The same pair `r`, `z` appears in `Bqrz`, where a verb may follow, and in `|qrz`, where a bar may follow. A
# bigram table has one row for both, and it stays 0.9 nats above the entropy line. An attention head can attend to the
# capital or to the bar at the start of the sentence, so it can tell the two apart. In principle, however, any model
# with a finite context is a Markov chain on windows of that length.
#
# ### Does the model need its induction head?
#
# To find out whether the model copies without this head, we set the output of one head at a time to zero and measure
# how far the loss on repeated letters rises above the line.

# %%
figures.ablated_heads(model, watch)

# %% [markdown]
# Without this head your model copies much worse. The other head of its layer is the control, and in our runs copying
# suffers far less without it. The first layer fits our explanation less well. Both of its heads are needed, but neither
# is a clean previous-token head, since at most about a fifth of the attention weight goes to the previous token.

# %% [markdown]
# ### Dropout
#
# We have trained on 300,000 tokens, each of which was seen about four times (four **epochs**). With less text a model
# begins to memorize it and gets worse on unseen text, which is called **overfitting**. A common remedy is **dropout**
# (Srivastava et al., 2014). In training mode, a random fraction p of the values is set to zero and the rest is scaled
# up, so that the model can't rely on any single value. GPT-2 applies it to the attention weights, to the output of
# both sublayers and to the token vectors, with p = 0.1. In evaluation mode nothing is dropped, so the outputs are
# deterministic. We trained our GPT in the same way with several values of p on the first 20,000 tokens of the text,
# three runs each with a learning rate of 0.004 (program: `bench/dropout.py`).

# %%
figures.dropout()

# %% [markdown]
# Without dropout the model memorizes, so its loss on the training text is 1.28, well below the entropy line, but its
# loss on unseen text is 1.79. With p = 0.1 both are about 1.54, so dropout gains a quarter of a nat. A larger p slows
# the training down too much for 1,200 steps. On the full text our GPT comes within a few hundredths of the line without
# dropout. Dropout couldn't gain more than that, so we left it out.
#
# Another common choice is **weight tying**: `unembed` uses the same matrix as `tokens`, as in GPT-2. This saves a
# matrix, which is a lot for a vocabulary of 50,000 tokens and little for ours.

# %% [markdown]
# ### Exercise 12.7 `induction_head`
#
# **Extra** · Difficulty 4 of 5 · Importance 3 of 5 · 45 minutes · 10 bonus points
#
# Set the weights of a two-layer model by hand, so that it continues repeated segments. Its residual stream has
# $C = 3V + M$ channels (V = `vocab_size`, M = `max_len`), namely the **token** as a one-hot vector (V), its
# **position** as a one-hot vector (M), space for **the previous token** (V) and space for the **answer** (V). The
# last two parts start as zeros. Each layer is one causal head with a residual,
#
# $$x \leftarrow x + \text{attention}(x W_Q^\top,\; x W_K^\top,\; x W_V^\top),$$
#
# with scores over $\sqrt{d}$. After the second layer, the last V channels are the logits. `previous_token_weights(M)`
# returns `(W_q, W_k)` of lesson 3's head, `(M, M)` each.
#
# - **Arguments:** `vocab_size` and `max_len`, ints from 2 to 200.
# - **Returns:** a list of two layers, each a tuple `(W_q, W_k, W_v)` of float32 tensors: `W_q` and `W_k` are `(d, C)`
#   for any d, `W_v` is `(C, C)`.
# - **Judged:** by behavior, on texts of at most `max_len` tokens in which a segment of different tokens appears
#   twice. At its second occurrence, from its first token on, the largest logit must be that of the next token of the
#   segment.


# %% nbgrader={"solution": "induction_head"}
def induction_head(vocab_size, max_len):
    """Weights of two heads that together continue any segment that has been seen before.

    vocab_size V, max_len M: int >= 2 -> [(W_q, W_k, W_v), (W_q, W_k, W_v)], float32, (d, C),
    (d, C), (C, C) with C = 3 V + M channels: token, position, previous token, answer.
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
    keys[:, V] = -1.0  # position 0 has no previous token: it could only attend to itself
    say[answer, token] = torch.eye(V)
    return [(sharp * W_q, W_k, copy), (sharp * match, keys, say)]
    ### END SOLUTION


# %% nbgrader={"grade": "induction_head"}
check(induction_head)

# %% [markdown]
# <details><summary>Hint 1</summary>
#
# `previous_token_weights` gives the queries and keys of the first layer, on the position channels. Scale the scores
# until the softmax is close to one-hot. The values copy the token channels into the space for the previous token.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# In the second layer the query holds the current token and the key holds the previous token. Position 0 is a trap,
# because it can attend only to itself and records its own token as its previous token. Use the key to penalize it.
#
# </details>

# %%
figures.induction_from_weights(or_finished(induction_head))

# %% [markdown]
# ### Temperature
#
# Change the temperature, and watch how many generated sentences follow the rules.

# %%
explore.writing(model, symbols)

# %% [markdown]
# At temperature 2 most sentences break the rules. At 0.3 you see almost no errors, but short sentences of one kind
# dominate, so the text is no longer typical of the language.

# %% [markdown]
# ### Generation with a KV cache
#
# Your `generate` recomputes all positions for every new token. Lesson 10's cache stores keys and values, so that you
# compute one position per step. With RoPE the keys are stored *after* the rotation.

# %%
greedy = start
with torch.no_grad():
    for _ in range(63):
        greedy = torch.cat([greedy, model(greedy)[:, -1:].argmax(-1)], dim=1)  # (1, T + 1)
cached = write_with_cache(model, start, 63, cached_attention)  # (1, 64)
print("the same tokens:", torch.equal(greedy, cached))

# %% [markdown]
# The two agree as long as the text fits into the context. When `generate` crops the text, they differ, because the
# cached keys and values of the second block were computed when the first token was still visible.

# %% [markdown]
# ### Loss against compute
#
# To measure the compute of the training, we count three multiply-adds per parameter and token, one in the forward pass
# and two in the backward pass. The figure shows three GPTs of different widths, trained by our recipe, one run each.

# %%
figures.compute(model, watch)

# %% [markdown]
# With 10 billion multiply-adds the narrowest model is best and the widest has barely begun, but at the end the order is
# reversed. Kaplan et al. (2020) found on real text that the best loss for each budget follows a straight line over
# seven orders of magnitude. However, in each of our runs the learning rate falls to zero at the last step, so a point
# in the middle of a curve is not the best that its budget allows. Hoffmann et al. (2022) corrected the same flaw, and
# found that smaller models, trained longer, do better than had been thought.

# %% [markdown]
# ### Real text
#
# How does your GPT do on real text, such as the source code of Python's standard library? We train a new GPT on its
# characters for 200 steps, and give n-grams the same number of characters. (`corpus.real_text("input.txt")` reads any
# other text, such as tiny Shakespeare.)

# %% tags=["ungraded"]
library = corpus.real_text(length=400_000)
torch.manual_seed(0)
writer = initialize(or_finished(GPT)(len(library.symbols), 64, 64, 2, 2)).to(device)
train(writer, library.train, 200, 5e-3)

# %% tags=["ungraded"]
counted, asked = library.train[:200_000], library.test[: 300 * 64 + 1]
for order in (1, 2, 3):
    loss = or_finished(ngram_loss)(counted, asked, order, len(library.symbols), 0.1)
    print(f"order {order}: {loss:.2f} nats per character")
with torch.no_grad():
    logits = writer(asked[:-1].view(-1, 64).to(device)).cpu()  # (300, 64, V)
print(f"GPT: {or_finished(next_token_loss)(logits, asked[1:].view(-1, 64)):.2f} nats per character")

# %% tags=["ungraded"]
prompt = library.encode("def ")[None].to(device)  # (1, 4)
sample = or_finished(generate)(writer, prompt, 200, temperature=0.8, generator=random)
print(library.decode(sample[0].tolist()))

# %% [markdown]
# Here the table of order 3 wins, because a table learns from every count at once and our training run is too short
# for the GPT. With more training the GPT overtakes it, and a larger run (four layers, a million characters) reached
# 1.50 nats. How far this is from the entropy is unknown. Shannon (1951)
# [estimated](https://doi.org/10.1002/j.1538-7305.1951.tb01366.x) about one bit per character for English.

# %% [markdown]
# ### The same class, a hundred times larger
#
# Many people begin with the character model of Karpathy's [nanoGPT](https://github.com/karpathy/nanoGPT), which has
# six layers of width 384 and about ten million parameters, and learns the million characters of tiny Shakespeare.
# Your class can become such a model, because its size is only a matter of its arguments. However, a longer run needs
# some things that our loop does without:
#
# - **Fused attention:** `F.scaled_dot_product_attention` computes what you wrote in lesson 7 without storing the
#   weights. The blocks use it after `block.attention.fused = True`.
# - **Mixed precision:** on a GPU the matrix products run in bfloat16 (float16 on older GPUs), which is faster. The
#   weights and the optimizer stay in float32.
# - **`torch.compile`:** on a GPU it merges the many small operations of a block into a few large ones.
# - **Dropout:** at full size the model sees each character more than twenty times, so we drop a fifth of the values.
# - **Checkpoints:** after each evaluation the whole state of the run is written to `full_size.pt`. If the run is
#   interrupted, run the cell again, and it continues from there. In Colab, mount Google Drive and pass a folder of it
#   as `folder`, because the disk of a lost runtime is lost as well.
# - **Early stopping:** the run stops when the validation loss hasn't improved for four evaluations, and keeps the
#   best weights.
#
# If you set `train_now = True`, your GPT is trained at full size where there is a GPU. On a CPU it has a quarter of the
# parameters and trains for about ten minutes. If you leave it `False`, the cells below show a run of ours.

# %% tags=["ungraded"]
train_now = False
shakespeare = corpus.shakespeare() if train_now else None
if shakespeare:
    recipe = full_size.recipe_for(device)
    large, run = full_size.train(or_finished(GPT), shakespeare, recipe, device, folder=".")
else:
    run = full_size.stored_run()
figures.full_size(run)

# %% [markdown]
# Compare the two curves. As long as both fall, the model learns rules that also hold for unseen text. In our run on a
# CPU they fall until the end, although the training loss is already 0.3 nats lower. If the validation loss rises while
# the training loss falls, the model overfits. Here is what the model writes after the last step, with temperature 0.8
# and top-p 0.95 from lesson 10:

# %% tags=["ungraded"]
if shakespeare:
    run.samples.append(full_size.write(large, shakespeare, "\n", 500, generator=random))
print(run.samples[-1])

# %% [markdown]
# ### How stable are these numbers?
#
# | statement | other runs |
# |---|---|
# | the learning rate of 0.001 | 20 initializations, with the layers created in five orders, all learn the repeated letters within 600 steps, and the six that were trained to the end finish 0.04 to 0.05 nats above the line; with 0.004, four of 17 end more than 0.10 above it (up to 0.50) |
# | RoPE or a learned table of positions | with a table and a learning rate of 0.004, one of six runs of 1,200 steps ends 0.07 nats above the line, and the others 0.37 to 0.50 |
# | verbs and closing brackets stay 0.2 above the line | 0.14 to 0.25 in six runs |
# | without the induction head | repeated letters 2.8 to 3.1 nats above the line in eight runs |
# | without the other head of its layer | 0.07 to 0.5 in the eight runs |
# | the best n-gram | 0.86 above the line with the best of three $\alpha$, chosen on the test text; 0.82 with the smoothing of Witten and Bell |
# | the entropy line | 1.41 for long texts; 1.44 for the 200 short passages, 1.43 for the 40 of figure 12.3, 1.46 for those of the check |

# %% [markdown]
# ## Further reading
#
# - Shannon (1948), [A mathematical theory of communication](https://doi.org/10.1002/j.1538-7305.1948.tb01338.x):
#   n-grams, entropy rate.
# - Radford et al. (2018), Improving language understanding by generative pre-training; Radford et al. (2019),
#   Language models are unsupervised multitask learners: GPT and GPT-2.
# - Olsson et al. (2022), [In-context learning and induction heads](https://arxiv.org/abs/2209.11895).
# - Srivastava et al. (2014), [Dropout: a simple way to prevent neural networks from
#   overfitting](https://jmlr.org/papers/v15/srivastava14a.html); Press and Wolf (2017), [Using the output embedding
#   to improve language models](https://arxiv.org/abs/1608.05859): weight tying.
# - Kaplan et al. (2020), [Scaling laws for neural language models](https://arxiv.org/abs/2001.08361); Hoffmann et al.
#   (2022), [Training compute-optimal large language models](https://arxiv.org/abs/2203.15556).
# - Su et al. (2021), [RoFormer](https://arxiv.org/abs/2104.09864): rotary position embedding.
# - Karpathy, [nanoGPT](https://github.com/karpathy/nanoGPT): a GPT in one readable file.
