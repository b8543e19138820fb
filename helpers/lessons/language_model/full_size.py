"""Lesson 12's GPT at the size of nanoGPT's character model (on a CPU a quarter of it), trained on tiny Shakespeare.

The model is the learner's own class. `prepare` switches its blocks to PyTorch's fused attention and adds dropout.
`train` is the lesson's loop with what a longer run needs: mixed precision and torch.compile on a GPU, a validation
split, checkpoints from which an interrupted run continues, and early stopping.
"""

import os
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from helpers.blocks import filter_logits
from helpers.corpus.real_text import Characters
from helpers.drawing.measured import measured
from helpers.lessons.language_model.watch import sampled
from helpers.widgets.progress_bar import bar

EVALUATED = 64  # windows of each split whose mean loss is reported
PROMPT, TOP_P = "\n", 0.95  # of the samples


@dataclass(frozen=True)
class Recipe:
    """Sizes and hyperparameters of a run.

    context, batch: tokens per window, windows per step. rate: the peak learning rate. look_every: steps between two
    evaluations. patience: evaluations without a better validation loss after which the run stops.
    """

    layers: int = 6
    heads: int = 6
    width: int = 384
    context: int = 256
    batch: int = 64
    steps: int = 1500
    rate: float = 2e-3
    dropout: float = 0.2
    look_every: int = 100
    patience: int = 4


FULL = Recipe()
QUARTER = Recipe(width=192, context=128, batch=16, steps=1000, dropout=0.0)


def recipe_for(device: torch.device) -> Recipe:
    """nanoGPT's size on a GPU, a quarter of its parameters on a CPU."""
    return QUARTER if device.type == "cpu" else FULL


@dataclass
class Run:
    """The measurements of a run: nats per character on both splits at some steps, and the model's samples then."""

    recipe: Recipe
    device: str
    parameters: int = 0
    steps: list[int] = field(default_factory=list)
    training: list[float] = field(default_factory=list)
    validation: list[float] = field(default_factory=list)
    samples: list[str] = field(default_factory=list)

    @property
    def best(self) -> int:
        """The index of the evaluation with the lowest validation loss."""
        return min(range(len(self.validation)), key=self.validation.__getitem__)


def stored_run() -> Run:
    """The run that `python -m bench.full_size` measured."""
    figures = measured("language_model", "full_size")
    return Run(Recipe(**figures.pop("recipe")), **figures)


def prepare(model: Any, dropout: float) -> Any:
    """Switch a model, in place, to fused attention, dropout in training mode and an initialization for deep models.

    As in GPT-2, dropout acts on attention weights, on the outputs of both sublayers and on token vectors. The last
    layer of each sublayer starts at zero, so that each block starts as the identity. RoPE gets the usual base of 10,000
    instead of the lesson's 10, because the context is longer.
    """
    nn.init.normal_(model.tokens.weight, std=0.02)

    def drop(module, _inputs, output):
        return F.dropout(output, dropout, module.training)

    model.tokens.register_forward_hook(drop)
    for block in model.blocks:
        block.attention.fused, block.attention.dropout, block.attention.base = True, dropout, 10_000.0
        linears = [module for module in block.feed_forward.modules() if isinstance(module, nn.Linear)]
        for last in (block.attention.W_o, linears[-1]):
            for parameter in last.parameters():
                nn.init.zeros_(parameter)
            last.register_forward_hook(drop)
    return model


def decay_groups(model: nn.Module) -> list[dict[str, Any]]:
    """Parameter groups for AdamW, with weight decay for matrices but not for biases and norms."""
    matrices = [p for p in model.parameters() if p.dim() > 1]
    vectors = [p for p in model.parameters() if p.dim() <= 1]
    return [{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}]


def learning_rate(peak: float, step: int, steps: int) -> float:
    """Linear warm-up over the first twentieth of the steps, then linear decay to zero."""
    return peak * min((step + 1) / (steps / 20), (1 - step / steps) / 0.95, 1.0)


def train(
    gpt: type, text: Characters, recipe: Recipe, device: torch.device, folder: str = ".", seed: int = 0
) -> tuple[nn.Module, Run]:
    """Train a GPT of class `gpt` on a text; returns the model with its best weights, and the run.

    folder: where each evaluation saves the checkpoint `full_size.pt`. If the folder has a checkpoint of the same
    recipe, the run continues from it; in Colab, a folder of Google Drive outlives a lost runtime.
    """
    torch.manual_seed(seed)
    model = gpt(len(text.symbols), recipe.context, recipe.width, recipe.heads, recipe.layers)
    model = prepare(model, recipe.dropout).to(device)
    training = Training(model, text, recipe, device, Path(folder, "full_size.pt"))
    training.resume()
    forward = torch.compile(model) if device.type == "cuda" else model
    for step in bar(range(training.step, recipe.steps), f"training on {device}"):
        forward = training.advance(forward)
        if (step + 1) % recipe.look_every == 0 or step + 1 == recipe.steps:
            training.evaluate()
            if len(training.run.steps) - 1 - training.run.best >= recipe.patience:
                print(f"No better validation loss for {recipe.patience} evaluations: stopped at step {step + 1}.")
                break
    model.load_state_dict(training.best_weights)
    return model.eval(), training.run


class Training:
    """The state of a run: the model, optimizer, generator, measured losses and best weights so far."""

    def __init__(self, model: nn.Module, text: Characters, recipe: Recipe, device: torch.device, file: Path):
        self.model, self.text, self.recipe, self.device, self.file = model, text, recipe, device, file
        betas, fused = (0.9, 0.99), device.type == "cuda"
        self.optimizer = torch.optim.AdamW(decay_groups(model), lr=recipe.rate, betas=betas, fused=fused)
        self.generator = torch.Generator().manual_seed(1)
        # GPUs older than Ampere have no fast bfloat16, and float16 needs loss scaling.
        self.dtype = torch.float32
        if device.type == "cuda":
            self.dtype = torch.bfloat16 if torch.cuda.get_device_capability(device)[0] >= 8 else torch.float16
        self.scaler = torch.amp.GradScaler(device.type, enabled=self.dtype == torch.float16)
        name = torch.cuda.get_device_name(device) if device.type == "cuda" else f"a CPU with {os.cpu_count()} cores"
        self.run = Run(recipe, name, sum(p.numel() for p in model.parameters()))
        self.step = 0
        self.best_weights: dict[str, torch.Tensor] = {}

    def advance(self, forward):
        """Take one step on a random batch; returns `forward`, or the plain model if the compiled one can't run."""
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate(self.recipe.rate, self.step, self.recipe.steps)
        x, y = self.batch(self.text.train, self.recipe.batch, self.generator)  # (B, T) each
        self.optimizer.zero_grad(set_to_none=True)
        try:
            self.scaler.scale(self.loss(forward, x, y)).backward()
        except Exception as error:
            if forward is self.model:
                raise
            print(f"torch.compile does not work here ({type(error).__name__}), so the run continues without it.")
            forward = self.model
            self.optimizer.zero_grad(set_to_none=True)
            self.scaler.scale(self.loss(forward, x, y)).backward()
        self.scaler.unscale_(self.optimizer)
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.step += 1
        return forward

    def batch(self, ids: torch.Tensor, count: int, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
        """`count` random windows and their targets, (B, T) each, on the device."""
        # Always drawn on the CPU, whatever the default device is, so that the batches are the same everywhere.
        starts = torch.randint(len(ids) - self.recipe.context, (count, 1), generator=generator, device="cpu")  # (B, 1)
        offsets = torch.arange(self.recipe.context + 1, device="cpu")  # (T + 1,)
        windows = ids.cpu()[starts + offsets].to(self.device)  # (B, T + 1)
        return windows[:, :-1], windows[:, 1:]

    def loss(self, forward, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """The mean loss in nats per character, in the precision of the run."""
        with torch.autocast(self.device.type, dtype=self.dtype, enabled=self.dtype != torch.float32):
            logits = forward(x)  # (B, T, V)
        return F.cross_entropy(logits.float().flatten(0, 1), y.flatten())

    @torch.no_grad()
    def evaluate(self) -> None:
        """Evaluate on the same windows of both splits each time, generate a sample, and save a checkpoint."""
        self.model.eval()
        generator = torch.Generator().manual_seed(2)
        batches = (self.batch(ids, EVALUATED, generator) for ids in (self.text.train, self.text.test))
        losses = [self.loss(self.model, *batch).item() for batch in batches]
        sample = write(self.model, self.text, PROMPT, 60, torch.Generator(self.device).manual_seed(3))
        self.model.train()
        run = self.run
        run.steps.append(self.step)
        run.training.append(losses[0])
        run.validation.append(losses[1])
        run.samples.append(sample)
        print(f"step {self.step:5}: training {losses[0]:.3f}, validation {losses[1]:.3f}  {sample[1:]!r}")
        if run.best == len(run.steps) - 1:
            self.best_weights = {name: value.clone() for name, value in self.model.state_dict().items()}
        self.save()

    def save(self) -> None:
        """Save everything that the run needs to continue. If the file can't be written, the run goes on without it."""
        state: dict[str, Any] = {"run": asdict(self.run), "step": self.step, "best": self.best_weights}
        for name in ("model", "optimizer", "scaler"):
            state[name] = getattr(self, name).state_dict()
        state["generator"] = self.generator.get_state()
        new_file = self.file.with_suffix(".new")
        try:
            torch.save(state, new_file)
            new_file.replace(self.file)
        except (OSError, RuntimeError) as error:
            print(f"No checkpoint was written to {self.file}: {error}")

    def resume(self) -> None:
        """Load the checkpoint if it exists and has the same recipe."""
        if not self.file.is_file():
            return
        try:
            state = torch.load(self.file, map_location=self.device, weights_only=True)
            if state["run"]["recipe"] != asdict(self.recipe):
                raise ValueError("it belongs to another recipe")
            for name in ("model", "optimizer", "scaler"):
                getattr(self, name).load_state_dict(state[name])
        except Exception as error:  # a damaged file must not prevent a run
            reason = error if isinstance(error, ValueError) else "it is damaged"
            print(f"{self.file} was not used ({reason}), so the run starts at step 0 and replaces it.")
            return
        self.generator.set_state(state["generator"].cpu())
        self.step, self.best_weights = state["step"], state["best"]
        self.run = Run(self.recipe, **{name: value for name, value in state["run"].items() if name != "recipe"})
        print(f"{self.file}: the run continues at step {self.step}. Delete the file to begin again.")


def write(model, text: Characters, prompt: str, length: int, generator=None, temperature=0.8) -> str:
    """Continue a prompt by `length` characters, sampled with temperature and top-p as in lesson 10."""
    device = next(model.parameters()).device
    ids = text.encode(prompt)[None].to(device)  # (1, T)
    ids = sampled(model, ids, length, generator, temperature, partial(filter_logits, top_p=TOP_P))  # (1, T)
    return text.decode(ids[0].tolist())
