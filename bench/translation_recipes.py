"""What single choices of lesson 11's recipe are worth: `python -m bench.translation_recipes`.

Trains the whole translator again and again, each time with one choice changed, for three minutes of one processor
core, and writes helpers/lessons/translation/recipes.json. The lesson shows them, so that no reader waits.
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

BATCH, SMALL, BETAS = 32, 0.02, (0.9, 0.98)
PEAK, WARMUP, SMOOTHING = 5e-3, 60, 0.1
EVERY = 10
STARTS = (0, 1)
LOOKS = 200  # unseen sentences for a loss, and for a beam


def start(seed: int, small: float = SMALL) -> Transformer:
    torch.manual_seed(seed)
    model = Transformer(*translator.SIZES)
    for part in model.modules():
        if isinstance(part, torch.nn.Embedding):
            part.weight.data.mul_(small)
    return model


def batches(seed: int, how: str = "right"):
    """Endless batches (src, tgt_in, tgt_out); how: one of BREAKS."""
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
    """While it is on, the decoder's causal mask shows one place too many, if that is how it is broken."""
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
    """The loss of every EVERY steps (mean over them)."""
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


def shaped(peak, warmup, steps=None, cool=200):
    """Up to the peak within `warmup` steps, from WARMUP on down with the square root of the step, and to 0 over the
    last `cool` of `steps`. With warmup = WARMUP this is Noam's form; with 1 it is the same without a warm-up."""
    end = (lambda step: min(1.0, (steps - step + 1) / cool)) if steps else (lambda step: 1.0)
    return lambda step: peak * min(step / warmup, 1.0, (WARMUP / step) ** 0.5) * end(step)


@torch.no_grad()
def told(model, how="right"):
    """Unseen sentences: loss with the true words given (by the same broken code), share exact, accuracy, certainty."""
    model.eval()
    batch = as_batch(unseen_pairs()[:LOOKS])
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
    """Nats a word of unseen sentences that the encoder reads another sentence for: what the source is worth."""
    batch = as_batch(unseen_pairs()[:LOOKS])
    mask = batch.tgt_out != 0
    logits = model(batch.src.roll(1, 0), batch.tgt_in)
    return round(F.cross_entropy(logits[mask], batch.tgt_out[mask]).item(), 4)


def beams(model, widths=(1, 2, 4, 8), sentences=40):
    """The share of exact sentences by the width of the beam."""
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
            words = [translator_words[i] for i in ids[1:] if i != translator.EOS]
            right += " ".join(words) == pair.french
        found[width] = round(right / sentences, 4)
    return found


translator_words = {index: word for word, index in translator.french.items()}


def main():
    torch.set_num_threads(1)
    begun, runs = time.process_time(), {}

    def note(kind, name, value):
        runs.setdefault(kind, {}).setdefault(name, []).append(value)
        print(f"{time.process_time() - begun:5.0f} s  {kind} {name}: {str(value)[-150:]}", file=sys.stderr, flush=True)

    for how in ("right", "not shifted", "mask leaks", "sorted apart"):
        model = start(0)
        curve = train(model, 200, shaped(PEAK, WARMUP, 200, 100), 0, how=how)
        note("broken", how, {"curve": curve, **told(model, how), "other source": other_source(model)})
    for seed in STARTS:
        for peak in (5e-3, 2e-2):
            for warmup in (1, 60):
                model = start(seed)
                note("warmup", f"{peak}, {warmup}", {"curve": train(model, 150, shaped(peak, warmup), seed)})
    model = start(0, 1.0)
    note("start", 1.0, {"curve": train(model, 150, shaped(PEAK, WARMUP), 0)})
    model = start(0)
    train(model, 150, shaped(PEAK, WARMUP), 0)
    note("beams", "150 steps", {**told(model), "exact by width": beams(model)})
    for seed in STARTS:
        for smoothing in (0.0, 0.1):
            model = start(seed)
            curve = train(model, 400, shaped(PEAK, WARMUP, 400), seed, smoothing)
            note("smoothing", smoothing, {"curve": curve, **told(model)})
            write("translation", "recipes", {"every": EVERY, "runs": runs})


if __name__ == "__main__":
    main()
