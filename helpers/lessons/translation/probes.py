"""Lesson 11. Beside learner code: the scenario. Only on numbers: the view and the metric."""

from __future__ import annotations

from collections import Counter

import torch

from helpers.checking.earlier import put_in
from helpers.checking.metrics import Score, metric
from helpers.checking.names import namespace
from helpers.checking.scenarios import scenario
from helpers.checking.views import view

# ---------------------------------------------------------------- beside learner code

EARLY, EOS = 2, 2  # words that are said before the model stops early; the id of eos


class _StopsEarly(torch.nn.Module):
    """A trained model whose likeliest word is eos at one place, and what it always was at all others."""

    def __init__(self, model):
        super().__init__()
        self.model, self.asked = model, False

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self.model, name)

    def decode(self, tgt, memory, src):
        self.asked = True
        logits = self.model.decode(tgt, memory, src).clone()  # (B, T_t, V)
        logits[:, EARLY : EARLY + 1, EOS] = logits.amax() + 1
        return logits

    def forward(self, src, tgt):
        return self.decode(tgt, self.model.encode(src), src)


@scenario
def stops_early(answer, args, kwargs):
    """What the answer writes when every model that it knows says eos after EARLY words, and whether one was asked."""
    names = namespace(answer) or {}
    early = {
        name: _StopsEarly(thing)
        for name, thing in names.items()
        if isinstance(thing, torch.nn.Module) and hasattr(thing, "encode") and hasattr(thing, "decode")
    }
    with put_in(names, early, watched=True):
        said = answer(*args, **kwargs)
    return {"said": said, "asked": any(model.asked for model in early.values())}, []


# ---------------------------------------------------------------- only on numbers


@view
def batch_without_padding(args, kwargs, output):
    """A batch as it was returned, but tgt_in is padding wherever tgt_out has to be: nobody hears what stands there."""
    pairs = kwargs["pairs"] if "pairs" in kwargs else args[0]
    pad_id = kwargs["pad_id"] if "pad_id" in kwargs else args[1]
    if not isinstance(output, dict):
        return output
    tgt_in = output.get("tgt_in")
    if not isinstance(tgt_in, torch.Tensor) or tgt_in.dim() != 2 or len(tgt_in) != len(pairs):
        return output
    words = torch.tensor([len(target) for _, target in pairs])  # (B,)
    return output | {"tgt_in": tgt_in.masked_fill(torch.arange(tgt_in.shape[1]) > words[:, None], pad_id)}


FULL, ENOUGH, LEAST = 0.99, 0.995, 0.5  # exact sentences: all points, the check's tick, the first point
MARKS = ("<pad>", "<bos>", "<eos>")


@metric
def exact_translations(truths, outputs):
    """The share of sentences that come out word for word: all points from 99 %, none below 50 %, and half of them for
    whoever does not hear eos: the last case has the first sentences again, with a model that stops early."""
    whole = [(t, o) for t, o in zip(truths, outputs, strict=True) if isinstance(t, list)]
    pairs = [(a, b) for truth, output in whole for a, b in zip(truth, output, strict=True)]
    right, total = sum(a == b.strip() for a, b in pairs), len(pairs)
    share = min(1.0, max(0.0, (right / total - LEAST) / (FULL - LEAST)))
    passed = right / total >= ENOUGH
    words = f"{right} of {total} unseen sentences exactly right"
    deaf = _without_eos(outputs)
    if passed and deaf:
        words += "; with a model that says eos after {} words: expected “{}”, yours “{}”".format(EARLY, *deaf)
        return Score(share / 2, False, words, "eos_not_heard")
    if not passed:
        truth, output = next((a, b) for a, b in pairs if a != b.strip())
        shown = " ".join(output.split())[:100]
        words += f" ({100 * ENOUGH:g} % are asked for); expected “{truth}”, yours “{shown}”"
    return Score(share, passed, words, None if passed else _what_went_wrong(pairs))


def _without_eos(outputs) -> tuple[str, str] | None:
    """Two words and what was said instead, where most sentences go on behind the eos of a model that stops early."""
    early = outputs[-1]
    if not isinstance(early, dict) or not early["asked"]:  # nobody asked that model: nothing can be said
        return None
    pairs = [
        (" ".join(a.split()[:EARLY]), " ".join(b.split())) for a, b in zip(outputs[0], early["said"], strict=False)
    ]
    wrong = [(expected, said[:100]) for expected, said in pairs if said != expected]
    return wrong[0] if len(wrong) > len(pairs) / 2 else None


def _what_went_wrong(pairs) -> str | None:
    said = [(truth.split(), output.split()) for truth, output in pairs]
    if sum(any(mark in words for mark in MARKS) for _, words in said) > len(said) / 2:
        return "marks_left_in"
    longer = [words[: len(truth)] == truth and len(words) > len(truth) for truth, words in said]
    if sum(longer) > len(said) / 4:
        return "goes_on_after_the_end"
    truths, outputs = zip(*pairs, strict=True)
    seen = {
        "first_word_missing": sum(words == truth[1:] for truth, words in said),
        "last_word_missing": sum(words == truth[:-1] for truth, words in said),
        "without_spaces": sum("".join(truth) == "".join(words) and truth != words for truth, words in said),
        "another_order": sum((Counter(truths) & Counter(outputs)).values()) - sum(map(str.__eq__, truths, outputs)),
    }
    for name, times in seen.items():
        if times > len(said) / 2:
            return name
    right = sum(a == b for truth, words in said for a, b in zip(truth, words, strict=False))
    if right < 0.1 * sum(len(truth) for truth, _ in said):
        return "not_trained"
    return None
