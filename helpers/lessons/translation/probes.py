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

EARLY, BOS, EOS = 2, 1, 2  # words that are said before the model stops early; the ids of bos and of eos, the last mark
NEVER = 50.0  # what is below the least logit by so much is said by no search


class _SaysElse(torch.nn.Module):
    """A trained model that begins with another word than it would, and says eos after EARLY words."""

    def __init__(self, model):
        super().__init__()
        self.model, self.asked, self.begun = model, False, True

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self.model, name)

    def decode(self, tgt, memory, src):
        self.asked, self.begun = True, self.begun and bool((tgt[..., 0] == BOS).all())
        logits = self.model.decode(tgt, memory, src).clone()  # (B, T_t, V)
        first, least = logits[:, 0], logits.amin() - NEVER
        first[:, : EOS + 1] = least
        first.scatter_(-1, first.argmax(dim=-1, keepdim=True), least.expand(len(first), 1))
        logits[:, EARLY : EARLY + 1, EOS] = logits.amax() + NEVER
        return logits

    def forward(self, src, tgt):
        return self.decode(tgt, self.model.encode(src), src)


@scenario
def stops_early(answer, args, kwargs):
    """What the answer writes when every model that it knows begins otherwise and says eos after EARLY words, whether
    one was asked, and whether each always read bos first."""
    names = namespace(answer) or {}
    early = {
        name: _SaysElse(thing)
        for name, thing in names.items()
        if isinstance(thing, torch.nn.Module) and hasattr(thing, "encode") and hasattr(thing, "decode")
    }
    with put_in(names, early, watched=True):
        said = answer(*args, **kwargs)
    asked, begun = any(m.asked for m in early.values()), all(m.begun for m in early.values())
    return {"said": said, "asked": asked, "begun": begun}, []


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
    """The share of sentences that come out word for word: all points from 99 %, none below 50 %. The last case has the
    first sentences again, with a model that says something else and stops early: none for whoever does not repeat it,
    half of them for whoever does not hear eos or does not begin with bos."""
    whole = [(t, o) for t, o in zip(truths, outputs, strict=True) if isinstance(t, list)]
    pairs = [(a, b) for truth, output in whole for a, b in zip(truth, output, strict=True)]
    right, total = sum(a == b.strip() for a, b in pairs), len(pairs)
    share = min(1.0, max(0.0, (right / total - LEAST) / (FULL - LEAST)))
    passed = right / total >= ENOUGH
    words = f"{right} of {total} unseen sentences exactly right"
    by_another = _by_another_model(outputs)
    if share and _most(a.split()[:1] == b.split()[:1] for a, b in by_another):
        words += "; with a model that begins with another word yours writes the same: “{1}”".format(*by_another[0])
        return Score(0.0, False, words, "model_not_repeated")
    if passed and _most(len(b.split()) > EARLY for _, b in by_another):
        words += f"; with a model that says eos after {EARLY} words, yours wrote “{by_another[0][1][:100]}”"
        return Score(share / 2, False, words, "eos_not_heard")
    if passed and by_another and not outputs[-1].get("begun", True):
        words += "; but the first id that the decoder was given is not bos"
        return Score(share / 2, False, words, "does_not_begin_with_bos")
    if not passed:
        truth, output = next((a, b) for a, b in pairs if a != b.strip())
        shown = " ".join(output.split())[:100]
        words += f" ({100 * ENOUGH:g} % are asked for); expected “{truth}”, yours “{shown}”"
    return Score(share, passed, words, None if passed else _what_went_wrong(pairs, by_another))


def _by_another_model(outputs) -> list[tuple[str, str]]:
    """What was said with the trained model, and of the same sentence with the one that says something else; nothing
    where that one was not asked: it may be kept where nobody looks."""
    early = outputs[-1]
    if not isinstance(early, dict) or not early["asked"]:
        return []
    return list(zip(outputs[0], early["said"], strict=False))


def _most(which) -> bool:
    which = list(which)
    return sum(which) > len(which) / 2


def _what_went_wrong(pairs, by_another) -> str | None:
    said = [(truth.split(), output.split()) for truth, output in pairs]
    if sum(any(mark in words for mark in MARKS) for _, words in said) > len(said) / 2:
        return "marks_left_in"
    wrong = [(truth, words) for truth, words in said if truth != words]
    if _most(words[: len(truth)] == truth for truth, words in wrong):
        heard = by_another and not _most(len(b.split()) > EARLY for _, b in by_another)
        return "says_too_much" if heard else "goes_on_after_the_end"
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
    if _most(bool(words) and words == truth[: len(words)] for truth, words in wrong):
        return "cut_short"
    right = sum(a == b for truth, words in said for a, b in zip(truth, words, strict=False))
    if right < 0.1 * sum(len(truth) for truth, _ in said):
        return "not_trained"
    return None
