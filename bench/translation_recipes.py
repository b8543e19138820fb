"""The effect of single choices in lesson 11's recipe: `python -m bench.translation_recipes`, three minutes of one core.

Trains the whole translator several times, each time with one choice changed, and writes
helpers/lessons/translation/recipes.json. The lesson shows these results, so that learners don't have to wait.
"""

import contextlib
import random
import sys
import time

import torch
import torch.nn.functional as F

from bench.written import write
from helpers import translator
from helpers.blocks import MultiHeadAttention, Transformer, beam_search
from helpers.corpus import training_pairs, unseen_pairs
from helpers.translator.evaluation import as_batch, exact

BATCH, SCALE, BETAS = 32, 0.02, (0.9, 0.98)
PEAK, WARMUP, SMOOTHING = 5e-3, 60, 0.1
EVERY = 10
STARTS = (0, 1)
UNSEEN = 200  # sentences for each evaluation


def new_model(seed: int, scale: float = SCALE) -> Transformer:
    """A translator whose initial embeddings are multiplied by `scale`."""
    torch.manual_seed(seed)
    model = Transformer(*translator.SIZES)
    for part in model.modules():
        if isinstance(part, torch.nn.Embedding):
            part.weight.data.mul_(scale)
    return model


def batches(seed: int, how: str = "right"):
    """Yield batches (src, tgt_in, tgt_out) forever. how: "right", or one of the bugs in `main`."""
    generator, pairs = random.Random(seed), training_pairs()
    while True:
        batch = as_batch(generator.sample(pairs, BATCH))
        yield broken(batch.src, batch.tgt_in, batch.tgt_out, how)


def broken(src, tgt_in, tgt_out, how):
    if how == "not shifted":
        tgt_in = tgt_out
    if how == "sorted apart":  # sources by their own length, targets by theirs
        src = src[(src != 0).sum(dim=1).argsort(stable=True)]
        order = (tgt_out != 0).sum(dim=1).argsort(stable=True)
        tgt_in, tgt_out = tgt_in[order], tgt_out[order]
    return src, tgt_in, tgt_out


@contextlib.contextmanager
def leaking(how):
    """If `how` is "mask leaks", the decoder's causal mask shows one position too many inside the `with` block."""
    attend = MultiHeadAttention.forward

    def forward(self, query, key=None, value=None, mask=None):
        T = query.shape[1]
        if key is None and mask is not None and mask.shape == (T, T):
            mask = torch.ones_like(mask).tril(1)
        return attend(self, query, key, value, mask)

    if how == "mask leaks":
        MultiHeadAttention.forward = forward
    try:
        yield
    finally:
        MultiHeadAttention.forward = attend


def train(model, steps, rate, seed=0, smoothing=0.0, how="right"):
    """Train, and return the mean loss of each EVERY steps."""
    optimizer = torch.optim.Adam(model.parameters(), betas=BETAS, fused=True)
    source, curve, recent = batches(seed, how), [], []
    for step in range(1, steps + 1):
        src, tgt_in, tgt_out = next(source)
        optimizer.param_groups[0]["lr"] = rate(step)
        with leaking(how):
            logits = model(src, tgt_in)
        loss = F.cross_entropy(logits.flatten(0, 1), tgt_out.flatten(), ignore_index=0, label_smoothing=smoothing)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        recent.append(loss.item())
        if step % EVERY == 0:
            curve.append(round(sum(recent) / len(recent), 4))
            recent = []
    return curve


def schedule(peak, warmup, steps=None, cool=200):
    """A learning rate that rises to the peak within `warmup` steps and falls with the inverse square root of the step
    from WARMUP on. With warmup = WARMUP, this is Noam's schedule. steps: if given, the last `cool` of them go to 0."""
    end = (lambda step: min(1.0, (steps - step + 1) / cool)) if steps else (lambda step: 1.0)
    return lambda step: peak * min(step / warmup, 1.0, (WARMUP / step) ** 0.5) * end(step)


@torch.no_grad()
def results(model, how="right"):
    """Evaluate on unseen sentences (with the same bug): loss, accuracy, certainty, exact translations, and a sample."""
    model.eval()
    batch = as_batch(unseen_pairs()[:UNSEEN])
    src, tgt_in, tgt_out = broken(batch.src, batch.tgt_in, batch.tgt_out, "right" if how == "sorted apart" else how)
    with leaking(how):
        logits, mask = model(src, tgt_in), tgt_out != 0
        right, written = exact(model, batch), translator.translate(model, "jane visits africa in september")
    p = torch.softmax(logits, dim=-1)[mask]
    return {
        "nats": round(F.cross_entropy(logits[mask], tgt_out[mask]).item(), 4),
        "accuracy": round((logits.argmax(-1) == tgt_out)[mask].float().mean().item(), 4),
        "certainty": round(p.amax(-1).mean().item(), 4),
        "exact": round(right, 4),
        "writes": written,
    }


@torch.no_grad()
def other_source(model):
    """Nats per word on unseen sentences if the encoder reads another sentence, which shows the value of the source."""
    batch = as_batch(unseen_pairs()[:UNSEEN])
    mask = batch.tgt_out != 0
    logits = model(batch.src.roll(1, 0), batch.tgt_in)
    return round(F.cross_entropy(logits[mask], batch.tgt_out[mask]).item(), 4)


def beams(model, widths=(1, 2, 4, 8), sentences=40):
    """The fraction of exact translations for each beam width."""
    pairs, found = unseen_pairs()[:sentences], {}
    model.eval()
    for width in widths:
        right = 0
        for pair in pairs:
            src = translator.source_batch([pair.english])
            with torch.no_grad():
                memory = model.encode(src)
                step = lambda p: model.decode(p, memory, src)[:, -1]  # noqa: B023, E731
                ids, _ = beam_search(step, translator.BOS, translator.EOS, 18, width)
            words = [FRENCH_WORDS[i] for i in ids[1:] if i != translator.EOS]
            right += " ".join(words) == pair.french
        found[width] = round(right / sentences, 4)
    return found


FRENCH_WORDS = {index: word for word, index in translator.french.items()}


def main():
    torch.set_num_threads(1)
    begun, runs = time.process_time(), {}

    def note(kind, name, value):
        runs.setdefault(kind, {}).setdefault(name, []).append(value)
        print(f"{time.process_time() - begun:5.0f} s  {kind} {name}: {str(value)[-150:]}", file=sys.stderr, flush=True)

    for how in ("right", "not shifted", "mask leaks", "sorted apart"):
        model = new_model(0)
        curve = train(model, 200, schedule(PEAK, WARMUP, 200, 100), 0, how=how)
        note("broken", how, {"curve": curve, **results(model, how), "other source": other_source(model)})
    for seed in STARTS:
        for peak in (5e-3, 2e-2):
            for warmup in (1, 60):
                model = new_model(seed)
                note("warmup", f"{peak}, {warmup}", {"curve": train(model, 150, schedule(peak, warmup), seed)})
    model = new_model(0, 1.0)
    note("start", 1.0, {"curve": train(model, 150, schedule(PEAK, WARMUP), 0)})
    model = new_model(0)
    train(model, 150, schedule(PEAK, WARMUP), 0)
    note("beams", "150 steps", {**results(model), "exact by width": beams(model)})
    for seed in STARTS:
        for smoothing in (0.0, 0.1):
            model = new_model(seed)
            curve = train(model, 400, schedule(PEAK, WARMUP, 400), seed, smoothing)
            note("smoothing", smoothing, {"curve": curve, **results(model)})
            write("translation", "recipes", {"every": EVERY, "runs": runs})


if __name__ == "__main__":
    main()
