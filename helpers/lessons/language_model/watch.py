"""What lesson 12 has beside its exercises: watching a training, and writing with the KV cache.

`Watch` looks at a language model while it trains: its loss on each kind of token of the passages that nobody has
learned from, how far any head attends to the token after the last occurrence of the one at hand (an induction
head, Olsson et al., 2022), and what it writes by then. It needs nothing of the model but its logits; attention is seen
where some module of the model returns weights, as MultiHeadAttention does.

`write_with_cache` is generation with lesson 10's `attend_with_cache`, for a model with the parts of the lesson's GPT;
any other writes without a cache.

GIVEN holds what stands in for answers that are not there yet (helpers/or_given.py), by their names.
"""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import nn

from helpers import corpus
from helpers.bar import in_notebook

GPU = torch.device("cuda")
FIRST, AGAIN, VERB, CLOSER, REST = "a new letter", "a repeated letter", "a verb", "a closing bracket", "the rest"


def device(gpt=None) -> torch.device:
    """The GPU where there is one and a model of the class `gpt` runs on it, else the CPU.

    A GPT that makes its mask or its places on the CPU is right there and fails on a GPU; a sentence says so.
    """
    if not torch.cuda.is_available():
        return torch.device("cpu")
    try:
        if gpt is not None:
            gpt(2, 4, 8, 2, 1).to(GPU)(torch.zeros(1, 4, dtype=torch.long, device=GPU))
    except RuntimeError:
        print(
            "There is a GPU, but your GPT makes a tensor on the CPU (a mask, or places), so it trains on the CPU. "
            "To train on the GPU, put that tensor on ids.device and run from its cell on."
        )
        return torch.device("cpu")
    return GPU


# ---------------------------------------------------------------- what stands where in a passage


def kinds(passage: str) -> list[str]:
    """The kind of each token of a passage that begins between two sentences."""
    found, bars = [], 0
    for token in passage:
        if token == ".":
            bars = 0
        elif token == "|":
            bars += 1
        letter = token.islower() and token >= "p"
        found.append(
            AGAIN
            if letter and bars == 2
            else FIRST
            if letter
            else VERB
            if token.islower()
            else CLOSER
            if token in ")]}"
            else REST
        )
    return found


def is_sentence(sentence: str) -> bool:
    """Whether a sentence, without its full stop, follows the rules of the language."""
    if repeated := re.fullmatch(r"\|([p-z]{3,8})\|\1", sentence):
        return len(set(repeated[1])) == len(repeated[1])
    if re.fullmatch(r"[A-F][p-z]{1,29}[a-f]", sentence):
        return sentence[0].lower() == sentence[-1]
    open_now = []  # the closing brackets that are still to come
    for place, token in enumerate(sentence):
        if token in "([{" and len(open_now) < 4 and (open_now or place == 0):
            open_now.append(")]}"["([{".index(token)])
        elif not open_now or token != open_now.pop():
            return False
    return bool(sentence) and not open_now


def induction_targets(passage: str) -> list[tuple[int, int]]:
    """(place, place after the last occurrence of its token): for each letter that is said again and goes on."""
    pairs, what = [], kinds(passage)
    for t, token in enumerate(passage[:-1]):
        if what[t] == AGAIN and what[t + 1] == AGAIN:
            pairs.append((t, passage.rindex(token, 0, t) + 1))
    return pairs


@contextlib.contextmanager
def attention_weights(model):
    """Inside: a list of the attention weights (B, H, T, T) of every module that returns some, in the order of calls."""
    seen, hooks = [], []

    def keep(_module, _args, output):
        weights = output[1] if isinstance(output, tuple) and len(output) == 2 else None
        if isinstance(weights, torch.Tensor) and weights.dim() == 4 and weights.shape[-1] == weights.shape[-2]:
            seen.append(weights.detach())

    try:
        for module in model.modules():
            hooks.append(module.register_forward_hook(keep))
        yield seen
    finally:
        for hook in hooks:
            hook.remove()


def induction_score(weights: list[torch.Tensor], texts: list[str]) -> tuple[float, int, int]:
    """The head that attends most to the token after the last occurrence: (mean weight there, layer, head)."""
    places = [(b, t, j) for b, text in enumerate(texts) for t, j in induction_targets(text)]
    if not weights or not places:
        return 0.0, 0, 0
    b, t, j = (torch.tensor(column) for column in zip(*places, strict=True))
    best = [
        (float(value), layer, head)
        for layer, w in enumerate(weights)
        for head, value in enumerate(w.cpu()[b, :, t, j].mean(0))
    ]
    return max(best)


@dataclass
class Written:
    """What a model wrote after some steps: one passage, and how many sentences of several passages are right."""

    step: int
    passage: str
    right: int
    sentences: int


@dataclass
class Watch:
    """Looks at a model now and then while it trains, on passages that it does not learn from."""

    passages: int = 40
    steps: list[int] = field(default_factory=list)
    losses: dict[str, list[float]] = field(default_factory=dict)
    whole: list[float] = field(default_factory=list)
    induction: list[float] = field(default_factory=list)
    written: list[Written] = field(default_factory=list)
    place: object = None  # in a notebook, where the diary is shown

    def __post_init__(self):
        unseen, symbols = corpus.language_unseen(), corpus.language_symbols()
        self.ids = unseen["ids"][: self.passages]
        self.line = unseen["nats"][: self.passages, 1:].mean().item()
        self.texts = ["".join(symbols[i] for i in row) for row in self.ids.tolist()]
        self.what = [kinds(text)[1:] for text in self.texts]

    @torch.no_grad()
    def __call__(self, model, step: int) -> None:
        was = model.training
        model.eval()
        place = next(model.parameters()).device
        with attention_weights(model) as weights:
            logits = model(self.ids.to(place)).float().cpu()  # (B, T, V)
        model.train(was)
        nats = F.cross_entropy(logits[:, :-1].transpose(1, 2), self.ids[:, 1:], reduction="none")  # (B, T - 1)
        self.steps.append(step)
        self.whole.append(nats.mean().item())
        for kind in (FIRST, AGAIN, VERB, CLOSER, REST):
            here = torch.tensor([[one == kind for one in row] for row in self.what])  # (B, T - 1)
            self.losses.setdefault(kind, []).append(nats[here].mean().item())
        self.induction.append(induction_score(weights, self.texts)[0])
        if not self.written or step >= max(40, 1.45 * self.written[-1].step):  # further and further apart
            self.written.append(write(model, step))
            self._show()

    def diary(self) -> str:
        """What the model wrote on its way, a line for each time."""
        return "\n".join(
            f"{w.step:5} steps, {w.right:2} of {w.sentences:2} sentences right:  {w.passage}" for w in self.written
        )

    def _show(self) -> None:
        """The diary so far where it stood before, in a notebook; a script can print it when it likes."""
        if not in_notebook():
            return
        if self.place is None:
            from IPython.display import display

            self.place = display({"text/plain": ""}, raw=True, display_id=True)
        self.place.update({"text/plain": self.diary()}, raw=True)

    def best_head(self, model) -> tuple[int, int]:
        """(layer, head) of the strongest induction head now."""
        with torch.no_grad(), attention_weights(model) as weights:
            model(self.ids.to(next(model.parameters()).device))
        return induction_score(weights, self.texts)[1:]


@torch.no_grad()
def write(model, step: int, passages: int = 8, length: int = 60) -> Written:
    """Let a model write at temperature 1, with a generator of its own; the last sentence of a passage is not judged."""
    symbols, place = corpus.language_symbols(), next(model.parameters()).device
    was = model.training
    model.eval()
    ids = torch.full((passages, 1), symbols.index("."), device=place)  # (B, 1)
    generator = torch.Generator(place).manual_seed(7)
    for _ in range(length):
        p = torch.softmax(model(ids)[:, -1].float(), dim=-1)  # (B, V)
        ids = torch.cat([ids, torch.multinomial(p, 1, generator=generator)], dim=1)  # (B, T + 1)
    model.train(was)
    texts = ["".join(symbols[i] for i in row[1:]) for row in ids.tolist()]
    sentences = [sentence for text in texts for sentence in text.split(".")[:-1]]
    return Written(step, texts[0], sum(map(is_sentence, sentences)), len(sentences))


# ---------------------------------------------------------------- writing with the cache


def write_with_cache(model, ids, max_new_tokens: int, attend):
    """Greedy generation in which each step computes one new row: (B, T) -> (B, T + max_new_tokens).

    attend: `attend_with_cache` of lesson 10. For a model with `tokens`, `positions` (or None), `blocks` of
    EncoderBlock, `norm` and `unembed`. A model built otherwise writes without a cache, and a sentence says so. All
    tokens together at most model.block_size.
    """
    if ids.shape[1] + max_new_tokens > model.block_size:
        raise ValueError(f"{ids.shape[1] + max_new_tokens} tokens are more than the context of {model.block_size}")
    why_not = _why_no_cache(model, ids.device, attend)
    if why_not:
        print(f"Your GPT {why_not}, so it writes without a cache here: all rows are computed again for each token.")
    caches, new = None, ids
    with torch.no_grad():
        for _ in range(max_new_tokens):
            if why_not:
                logits = model(ids)  # (B, T, V)
            else:
                logits, caches = _new_rows(model, new, ids.shape[1] - new.shape[1], caches, attend)  # (B, T_new, V)
            new = logits[:, -1].argmax(-1, keepdim=True)  # (B, 1)
            ids = torch.cat([ids, new], dim=1)
    return ids


def _new_rows(model, new, first: int, caches, attend):
    """The logits (B, T_new, V) of new tokens, from place `first` on, and the caches of all blocks with them in."""
    from helpers.blocks import merge_heads, rotate, split_heads

    caches = [None] * len(model.blocks) if caches is None else caches
    places = torch.arange(first, first + new.shape[1], device=new.device)  # (T_new,)
    x = model.tokens(new)  # (B, T_new, D)
    if getattr(model, "positions", None) is not None:
        x = x + model.positions(places)  # (B, T_new, D)
    after = []
    for block, cache in zip(model.blocks, caches, strict=True):
        mha, y = block.attention, block.norm1(x)
        q, k, v = (split_heads(W(y), mha.num_heads) for W in (mha.W_q, mha.W_k, mha.W_v))  # (B, H, T_new, d)
        if hasattr(mha, "base"):  # rotary
            q, k = rotate(q, places, mha.base), rotate(k, places, mha.base)  # (B, H, T_new, d)
        out, cache = attend(q, k, v, cache)  # (B, H, T_new, d)
        after.append(cache)
        x = x + mha.W_o(merge_heads(out))  # (B, T_new, D)
        x = x + block.feed_forward(block.norm2(x))  # (B, T_new, D)
    return model.unembed(model.norm(x)), after


def _why_no_cache(model, place, attend) -> str:
    """What a model has otherwise than the lesson's GPT, or nothing: eight tokens must come out as from the model."""
    missing = [name for name in ("tokens", "blocks", "norm", "unembed") if not hasattr(model, name)]
    if missing:
        return f"has no part called {missing[0]!r}"
    with torch.no_grad():
        V = model(torch.zeros(1, 1, dtype=torch.long, device=place)).shape[-1]
        ids = torch.arange(min(8, model.block_size), device=place)[None] % V  # (1, T)
        expected = model(ids)  # (1, T, V)
        try:
            found = _new_rows(model, ids, 0, None, attend)[0]  # (1, T, V)
            alike = torch.allclose(found, expected, rtol=1e-3, atol=1e-3)
        except Exception:  # parts of these names can be anything at all
            alike = False
    return "" if alike else "is made of other parts than the lesson's"


# ---------------------------------------------------------------- in place of answers that are not there yet


def _windows(data, block_size, batch_size, generator):
    """Rows of a table of all windows, and the same rows without their first token: (B, T) each."""
    windows = data.unfold(0, block_size + 1, 1)  # (N - block_size, T + 1)
    drawn = windows[torch.randint(len(windows), (batch_size,), generator=generator)]  # (B, T + 1)
    return drawn[:, :-1], drawn[:, 1:]


def _loss(logits, targets):
    """The mean loss of all places, classes moved to where torch wants them."""
    return F.cross_entropy(logits.movedim(-1, 1), targets)


def _counted(train, test, order, vocab_size, alpha):
    """The figures' own counting."""
    from helpers.figures.language_model import count_loss

    return count_loss(torch.as_tensor(train).cpu(), torch.as_tensor(test).cpu(), order, vocab_size, alpha)


def _gpt(vocab_size, block_size, d_model, num_heads, num_layers):
    """Lesson 9's Encoder, its attention rotary, with a norm and a layer of logits on top."""
    from helpers.blocks import Encoder, causal_mask
    from helpers.rotary import RotaryAttention

    class Stand(Encoder):
        def __init__(self):
            super().__init__(vocab_size, d_model, num_heads, 4 * d_model, num_layers, block_size, norm_first=True)
            self.block_size = block_size
            self.norm, self.unembed = nn.LayerNorm(d_model), nn.Linear(d_model, vocab_size)
            for block in self.blocks:
                block.attention = RotaryAttention(d_model, num_heads)
            nn.init.normal_(self.tokens.weight, std=0.02)
            nn.init.zeros_(self.positions.weight)  # rotations tell the places

        def forward(self, ids):
            mask = causal_mask(ids.shape[1]).to(ids.device)  # (T, T)
            return self.unembed(self.norm(super().forward(ids, mask)))  # (B, T, V)

    return Stand()


def _written(model, ids, max_new_tokens, temperature=1.0, top_k=None, generator=None):
    """Token after token, drawn; top_k is left to the exercise."""
    rows = ids
    for _ in range(max_new_tokens):
        with torch.no_grad():
            scores = model(rows[..., -model.block_size :]).select(1, -1)  # (B, V)
        chances = F.softmax(scores.div(temperature), dim=1)  # (B, V)
        rows = torch.hstack([rows, chances.multinomial(1, generator=generator)])  # (B, T + 1)
    return rows


GIVEN = {"get_batch": _windows, "next_token_loss": _loss, "ngram_loss": _counted, "GPT": _gpt, "generate": _written}
