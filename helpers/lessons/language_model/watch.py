"""Tools of lesson 12: measurements during a training run, and ablation of heads.

`Watch` measures a language model while it trains: its loss on each kind of token of unseen passages, how much the
strongest induction head (Olsson et al., 2022) attends to the token after the previous occurrence of the current one,
and what the model generates. It needs only the model's logits; attention is measured if some module returns its
weights, as MultiHeadAttention does.
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
    """The GPU if there is one and a model of the class `gpt` runs on it, else the CPU.

    A GPT that creates its mask on the CPU works there and fails on a GPU, so a message says how to fix it.
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
    """The kind of each token of a passage that starts at the beginning of a sentence."""
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
    expected_closers = []
    for index, token in enumerate(sentence):
        if token in "([{" and len(expected_closers) < 4 and (expected_closers or index == 0):
            expected_closers.append(")]}"["([{".index(token)])
        elif not expected_closers or token != expected_closers.pop():
            return False
    return bool(sentence) and not expected_closers


def induction_targets(passage: str) -> list[tuple[int, int]]:
    """(t, j) for each repeated letter before another one, j being the position after its previous occurrence."""
    pairs, kind_at = [], kinds(passage)
    for t, token in enumerate(passage[:-1]):
        if kind_at[t] == AGAIN and kind_at[t + 1] == AGAIN:
            pairs.append((t, passage.rindex(token, 0, t) + 1))
    return pairs


def _attentions(model) -> list:
    """The modules whose heads can be ablated: those with W_o and num_heads, such as MultiHeadAttention."""
    modules = model.modules()
    return [module for module in modules if hasattr(module, "W_o") and isinstance(getattr(module, "num_heads", 0), int)]


def heads_of(model) -> list[tuple[int, int]]:
    """(layer, head) of every head that can be ablated, both counted from 0."""
    return [(layer, head) for layer, module in enumerate(_attentions(model)) for head in range(module.num_heads)]


@contextlib.contextmanager
def ablated(model, layer: int, head: int):
    """A context in which the output of one head of the model is 0."""
    attention = _attentions(model)[layer]

    def zero_head(_module, args):
        heads = args[0].unflatten(-1, (attention.num_heads, -1)).clone()  # (B, T, H, d)
        heads[..., head, :] = 0
        return (heads.flatten(-2),)

    hook = attention.W_o.register_forward_pre_hook(zero_head)
    try:
        yield
    finally:
        hook.remove()


def induction_score(weights: list[tuple[str, torch.Tensor]], texts: list[str]) -> tuple[float, int, int]:
    """The strongest induction head: (mean weight on the induction targets of the texts, layer, head).

    weights: as `attention_weights` returns them, layer by layer. Returns (0.0, 0, 0) without weights or targets."""
    targets = [(b, t, j) for b, text in enumerate(texts) for t, j in induction_targets(text)]
    if not weights or not targets:
        return 0.0, 0, 0
    b, t, j = (torch.tensor(column) for column in zip(*targets, strict=True))
    means = [w.cpu()[b, :, t, j].mean(0).tolist() for _, w in weights]  # one value per layer and head
    return max((value, layer, head) for layer, row in enumerate(means) for head, value in enumerate(row))


@dataclass
class Written:
    """A sample after some training steps: one passage, and how many sentences of several passages are correct."""

    step: int
    passage: str
    right: int
    sentences: int


@dataclass
class Watch:
    """Measures a model on unseen passages while it trains. Call it with the model and the number of steps done."""

    passages: int = 40
    steps: list[int] = field(default_factory=list)
    losses: dict[str, list[float]] = field(default_factory=dict)
    whole: list[float] = field(default_factory=list)
    induction: list[float] = field(default_factory=list)
    written: list[Written] = field(default_factory=list)
    show: Callable[..., None] | None = None  # in a notebook, replaces the diary on display by a new one

    def __post_init__(self):
        unseen, symbols = corpus.language_unseen(), corpus.language_symbols()
        self.ids = unseen["ids"][: self.passages]
        self.nats = unseen["nats"][: self.passages, 1:]  # (B, T - 1), -log p under the source itself
        self.line = self.nats.mean().item()
        self.texts = ["".join(symbols[i] for i in row) for row in self.ids.tolist()]
        self.target_kinds = [kinds(text)[1:] for text in self.texts]

    @torch.no_grad()
    def __call__(self, model, step: int) -> None:
        was_training = model.training
        model.eval()
        with attention_weights(model) as weights:
            nats = self._nats(model)  # (B, T - 1)
        model.train(was_training)
        self.steps.append(step)
        self.whole.append(nats.mean().item())
        for kind, loss in self._by_kind(nats).items():
            self.losses.setdefault(kind, []).append(loss)
        self.induction.append(induction_score(weights, self.texts)[0])
        if not self.written or step >= max(40, 1.45 * self.written[-1].step):  # at growing intervals
            self.written.append(write(model, step))
            self.show = self.show or in_place()
            if self.show:
                self.show(self.diary())

    def _nats(self, model) -> torch.Tensor:
        logits = model(self.ids.to(next(model.parameters()).device)).float().cpu()  # (B, T, V)
        return F.cross_entropy(logits[:, :-1].transpose(1, 2), self.ids[:, 1:], reduction="none")  # (B, T - 1)

    def _by_kind(self, nats: torch.Tensor) -> dict[str, float]:
        all_kinds = (FIRST, AGAIN, VERB, CLOSER, REST)
        masks = {kind: torch.tensor([[k == kind for k in row] for row in self.target_kinds]) for kind in all_kinds}
        return {kind: nats[mask].mean().item() for kind, mask in masks.items()}

    @torch.no_grad()
    def above(self, model) -> dict[str, float]:
        """Nats above the entropy line for each kind of token, measured now."""
        return self._by_kind(self._nats(model) - self.nats)

    def keep(self, file: str) -> None:
        """Save the curves next to the notebook after a training run, or load them if the weights came from a file.

        Does nothing in quick mode, or if the file can't be written or read."""
        path = Path(os.environ.get("COURSE_KEEP_FOLDER", "."), Path(file).name)
        curves = ("steps", "losses", "whole", "induction")
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            if self.steps and not quick():
                path.write_text(json.dumps({name: getattr(self, name) for name in curves}), encoding="utf-8")
            elif not self.steps:
                found = json.loads(path.read_text(encoding="utf-8"))
                self.steps, self.losses, self.whole, self.induction = (found[name] for name in curves)

    def diary(self) -> str:
        """The samples that the model generated during training, one line per step."""
        lines = "{0.step:5} steps, {0.right:2} of {0.sentences:2} sentences correct:  {0.passage}"
        return "\n".join(map(lines.format, self.written))

    def best_head(self, model) -> tuple[int, int]:
        """(layer, head) of the model's strongest induction head."""
        with torch.no_grad(), attention_weights(model) as weights:
            model(self.ids.to(next(model.parameters()).device))
        return induction_score(weights, self.texts)[1:]


@torch.no_grad()
def write(model, step: int, passages: int = 8, length: int = 60) -> Written:
    """Generate passages at temperature 1 with a fixed seed. The last, unfinished sentence of each is not judged."""
    symbols, device = corpus.language_symbols(), next(model.parameters()).device
    was_training = model.training
    model.eval()
    ids = torch.full((passages, 1), symbols.index("."), device=device)  # (B, 1)
    ids = sampled(model, ids, length, torch.Generator(device).manual_seed(7))  # (B, T)
    model.train(was_training)
    texts = ["".join(symbols[i] for i in row[1:]) for row in ids.tolist()]
    sentences = [sentence for text in texts for sentence in text.split(".")[:-1]]
    return Written(step, texts[0], sum(map(is_sentence, sentences)), len(sentences))


@torch.no_grad()
def sampled(model, ids, count: int, generator, temperature=1.0, cut=lambda logits: logits):
    """Sample `count` more tokens: (B, T) -> (B, T + count).

    temperature: a float, or a tensor (B, 1). cut: filters the logits, such as filter_logits of lesson 10.
    """
    for _ in range(count):
        logits = model(ids[:, -getattr(model, "block_size", count) :])[:, -1].float() / temperature  # (B, V)
        p = torch.softmax(cut(logits), dim=-1)  # (B, V)
        ids = torch.cat([ids, torch.multinomial(p, 1, generator=generator)], dim=1)  # (B, T + 1)
    return ids
