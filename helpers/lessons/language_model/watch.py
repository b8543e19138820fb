"""What lesson 12 has beside its exercises: watching a training run, and ablating heads.

`Watch` measures a language model while it trains: its loss on each kind of token of passages that it does not learn
from, how far any head attends to the token after the last occurrence of the current one (an induction head, Olsson et
al., 2022), and what it writes by then. It needs nothing of the model but its logits; attention is seen where some
module of the model returns weights, as MultiHeadAttention does.
"""

import contextlib
import json
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import torch
import torch.nn.functional as F

from helpers import corpus
from helpers.translator.evaluation import attention_weights
from helpers.widgets.checkpoint import quick
from helpers.widgets.progress_bar import in_place

GPU = torch.device("cuda")
FIRST, AGAIN, VERB, CLOSER, REST = "a new letter", "a repeated letter", "a verb", "a closing bracket", "the rest"


def best_device(gpt=None) -> torch.device:
    """The GPU where there is one and a model of the class `gpt` runs on it, else the CPU.

    A GPT that makes its mask on the CPU is correct there and fails on a GPU; a sentence says so.
    """
    if not torch.cuda.is_available():
        return torch.device("cpu")
    try:
        if gpt is not None:
            gpt(2, 4, 8, 2, 1).to(GPU)(torch.zeros(1, 4, dtype=torch.long, device=GPU))
    except RuntimeError:
        print(
            "There is a GPU, but your GPT makes a tensor on the CPU (probably its mask), so it trains on the CPU. "
            "To train on the GPU, put that tensor on ids.device and run from its cell on."
        )
        return torch.device("cpu")
    return GPU


# ---------------------------------------------------------------- kinds of tokens


def kinds(passage: str) -> list[str]:
    """The kind of each token of a passage that begins between two sentences."""
    found, bars = [], 0
    for token in passage:
        if token == ".":
            bars = 0
        elif token == "|":
            bars += 1
        if token.islower() and token >= "p":
            found.append(AGAIN if bars == 2 else FIRST)
        else:
            found.append(VERB if token.islower() else CLOSER if token in ")]}" else REST)
    return found


def is_sentence(sentence: str) -> bool:
    """Whether a sentence, without its full stop, follows the rules of the language."""
    if repeated := re.fullmatch(r"\|([p-z]{3,8})\|\1", sentence):
        return len(set(repeated[1])) == len(repeated[1])
    if re.fullmatch(r"[A-F][p-z]{1,29}[a-f]", sentence):
        return sentence[0].lower() == sentence[-1]
    open_now = []  # the closing brackets that are still to come
    for index, token in enumerate(sentence):
        if token in "([{" and len(open_now) < 4 and (open_now or index == 0):
            open_now.append(")]}"["([{".index(token)])
        elif not open_now or token != open_now.pop():
            return False
    return bool(sentence) and not open_now


def induction_targets(passage: str) -> list[tuple[int, int]]:
    """(position, position after the last occurrence of its token) of each repeated letter that another one follows."""
    pairs, what = [], kinds(passage)
    for t, token in enumerate(passage[:-1]):
        if what[t] == AGAIN and what[t + 1] == AGAIN:
            pairs.append((t, passage.rindex(token, 0, t) + 1))
    return pairs


def _attentions(model) -> list:
    """The parts of a model that have heads to ablate: those with W_o and num_heads, as MultiHeadAttention."""
    return [part for part in model.modules() if hasattr(part, "W_o") and isinstance(getattr(part, "num_heads", 0), int)]


def heads_of(model) -> list[tuple[int, int]]:
    """(layer, head), from 0, of every head that can be ablated."""
    return [(layer, head) for layer, part in enumerate(_attentions(model)) for head in range(part.num_heads)]


@contextlib.contextmanager
def ablated(model, layer: int, head: int):
    """Inside, the output of one head of a model is 0."""
    part = _attentions(model)[layer]

    def without(_module, given):
        split = given[0].unflatten(-1, (part.num_heads, -1)).clone()  # (B, T, H, d)
        split[..., head, :] = 0
        return (split.flatten(-2),)

    hook = part.W_o.register_forward_pre_hook(without)
    try:
        yield
    finally:
        hook.remove()


def induction_score(weights: list[tuple[str, torch.Tensor]], texts: list[str]) -> tuple[float, int, int]:
    """The head that attends most to the token after the last occurrence: (mean weight there, layer, head).

    weights: as `attention_weights` gives them, layer by layer."""
    targets = [(b, t, j) for b, text in enumerate(texts) for t, j in induction_targets(text)]
    if not weights or not targets:
        return 0.0, 0, 0
    b, t, j = (torch.tensor(column) for column in zip(*targets, strict=True))
    means = [w.cpu()[b, :, t, j].mean(0).tolist() for _, w in weights]  # a number for each head of each layer
    return max((value, layer, head) for layer, row in enumerate(means) for head, value in enumerate(row))


@dataclass
class Written:
    """What a model wrote after some steps: one passage, and how many sentences of several passages are right."""

    step: int
    passage: str
    right: int
    sentences: int


@dataclass
class Watch:
    """Measures a model now and then while it trains, on passages that it does not learn from."""

    passages: int = 40
    steps: list[int] = field(default_factory=list)
    losses: dict[str, list[float]] = field(default_factory=dict)
    whole: list[float] = field(default_factory=list)
    induction: list[float] = field(default_factory=list)
    written: list[Written] = field(default_factory=list)
    show: Callable[..., None] | None = None  # in a notebook, puts the diary in the place of the diary so far

    def __post_init__(self):
        unseen, symbols = corpus.language_unseen(), corpus.language_symbols()
        self.ids = unseen["ids"][: self.passages]
        self.nats = unseen["nats"][: self.passages, 1:]  # (B, T - 1), of the source itself
        self.line = self.nats.mean().item()
        self.texts = ["".join(symbols[i] for i in row) for row in self.ids.tolist()]
        self.what = [kinds(text)[1:] for text in self.texts]

    @torch.no_grad()
    def __call__(self, model, step: int) -> None:
        was = model.training
        model.eval()
        with attention_weights(model) as weights:
            nats = self._nats(model)  # (B, T - 1)
        model.train(was)
        self.steps.append(step)
        self.whole.append(nats.mean().item())
        for kind, loss in self._by_kind(nats).items():
            self.losses.setdefault(kind, []).append(loss)
        self.induction.append(induction_score(weights, self.texts)[0])
        if not self.written or step >= max(40, 1.45 * self.written[-1].step):  # further and further apart
            self.written.append(write(model, step))
            self.show = self.show or in_place()
            if self.show:
                self.show(self.diary())

    def _nats(self, model) -> torch.Tensor:
        logits = model(self.ids.to(next(model.parameters()).device)).float().cpu()  # (B, T, V)
        return F.cross_entropy(logits[:, :-1].transpose(1, 2), self.ids[:, 1:], reduction="none")  # (B, T - 1)

    def _by_kind(self, nats: torch.Tensor) -> dict[str, float]:
        kinds_of = (FIRST, AGAIN, VERB, CLOSER, REST)
        here = {kind: torch.tensor([[one == kind for one in row] for row in self.what]) for kind in kinds_of}
        return {kind: nats[where].mean().item() for kind, where in here.items()}

    @torch.no_grad()
    def above(self, model) -> dict[str, float]:
        """Nats above the entropy line on each kind of token now."""
        return self._by_kind(self._nats(model) - self.nats)

    def keep(self, file: str) -> None:
        """Write the curves beside the notebook after a training run; read them where the weights came from a file.

        Nothing happens in quick mode, or where nothing can be written or read."""
        path = Path(os.environ.get("COURSE_KEEP_FOLDER", "."), Path(file).name)
        curves = ("steps", "losses", "whole", "induction")
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            if self.steps and not quick():
                path.write_text(json.dumps({name: getattr(self, name) for name in curves}), encoding="utf-8")
            elif not self.steps:
                found = json.loads(path.read_text(encoding="utf-8"))
                self.steps, self.losses, self.whole, self.induction = (found[name] for name in curves)

    def diary(self) -> str:
        """What the model wrote during training, one line for each time."""
        lines = "{0.step:5} steps, {0.right:2} of {0.sentences:2} sentences correct:  {0.passage}"
        return "\n".join(map(lines.format, self.written))

    def best_head(self, model) -> tuple[int, int]:
        """(layer, head) of the strongest induction head now."""
        with torch.no_grad(), attention_weights(model) as weights:
            model(self.ids.to(next(model.parameters()).device))
        return induction_score(weights, self.texts)[1:]


@torch.no_grad()
def write(model, step: int, passages: int = 8, length: int = 60) -> Written:
    """Let a model write at temperature 1, with a generator of its own; the last sentence of a passage is not judged."""
    symbols, device = corpus.language_symbols(), next(model.parameters()).device
    was = model.training
    model.eval()
    ids = torch.full((passages, 1), symbols.index("."), device=device)  # (B, 1)
    ids = sampled(model, ids, length, torch.Generator(device).manual_seed(7))  # (B, T)
    model.train(was)
    texts = ["".join(symbols[i] for i in row[1:]) for row in ids.tolist()]
    sentences = [sentence for text in texts for sentence in text.split(".")[:-1]]
    return Written(step, texts[0], sum(map(is_sentence, sentences)), len(sentences))


@torch.no_grad()
def sampled(model, ids, count: int, generator, temperature=1.0, cut=lambda logits: logits):
    """`count` tokens more, each drawn from what `cut` leaves of the logits: (B, T) -> (B, T + count). temperature: a
    number, or one for each row (B, 1)."""
    for _ in range(count):
        logits = model(ids[:, -getattr(model, "block_size", count) :])[:, -1].float() / temperature  # (B, V)
        p = torch.softmax(cut(logits), dim=-1)  # (B, V)
        ids = torch.cat([ids, torch.multinomial(p, 1, generator=generator)], dim=1)  # (B, T + 1)
    return ids
