"""Lesson 11. Beside learner code: the scenario. Only on numbers: the view and the metric."""

from collections import Counter

import torch

from helpers.checking.names import namespace
from helpers.checking.registry import Score, metric, scenario, view
from helpers.checking.retry import put_in

# ---------------------------------------------------------------- beside learner code

PAD, BOS, EOS = 0, 1, 2
SURE = 50.0  # a logit that no search passes by
LONGEST = 22  # words that fit between bos and eos into a row of MAX_LEN ids
NO_END = "<no end>"  # what is written where eos never comes and the answer stops with an error, as places run out
BEHIND = 0.3  # the logit of the second likeliest word, the last one everywhere and in no script, is lower by so much


def _words() -> tuple[dict[str, int], list[str]]:
    """The ids of English words, and French words by their ids; every check imports this module, and few need them."""
    from helpers.translator.word_ids import english, french_list

    return english, french_list


def script(row: int, sentence: str, turn: int) -> list[int]:
    """The French ids that a model says for the sentence in this row: in row 0 three words more than it has, or with eos
    as many as there are positions, none in row 1, in the others two words up to as many as it has, so that rows end at
    different times; the first word comes twice, and bos is said once in row 0. turn: with another one everything is
    different, and with turn 2 each sentence has more words than there are positions."""
    length, known = len(sentence.split()), len(_words()[1])
    words = (LONGEST if turn else length + 3) if row == 0 else 0 if row == 1 else 2 + (row + turn) % (length - 1)
    words = 2 * LONGEST if turn == 2 else words
    says = [EOS + 1 + (23 * row + 7 * max(1, place) + 91 * turn) % (known - EOS - 2) for place in range(words)]
    return [BOS if (row, place, turn == 2) == (0, 4, False) else word for place, word in enumerate(says)]


def scripted(sentences: list[str], turn: int) -> list[str]:
    """What a model with scripts says for `sentences`, of which the first is the longest, without marks."""
    _, french = _words()
    said = (script(row, text, turn)[: LONGEST + 1] for row, text in enumerate(sentences))
    return [" ".join(french[i] for i in ids if i > EOS) for ids in said]


class _SaysElse(torch.nn.Module):
    """A trained model that says what its scripts have, each for one English sentence, and more words behind eos. Where
    another word was written it is sure of all that follows, so a search that compares sentences leaves the script."""

    def __init__(self, model, scripts: dict[tuple[int, ...], list[int]]):
        super().__init__()
        self.model, self.scripts, self.asked, self.begun = model, scripts, False, True
        self.other = [says for says in scripts.values() if says][-1][-1:]  # said of what is none of the sentences

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self.model, name)

    def decode(self, tgt, memory, src):
        self.asked, self.begun = True, self.begun and bool((tgt[..., 0] == BOS).all())
        logits = torch.full_like(self.model.decode(tgt, memory, src), -SURE)  # (B, T_t, V)
        rows = []
        for ids in src.tolist():
            says = self.scripts.get(tuple(i for i in ids if i != PAD), self.other)
            rows.append(([*says, EOS] * logits.shape[1])[: logits.shape[1]])
        following = torch.tensor(rows, device=logits.device).expand(logits.shape[:-1])  # (B, T_t)
        left = (tgt[:, 1:] != following[:, :-1]).any(dim=-1, keepdim=True)  # (B, 1), another word was written
        logits[..., -1] = torch.where(left, -SURE, SURE - BEHIND)
        return logits.scatter(-1, following[..., None], SURE)

    def forward(self, src, tgt):
        return self.decode(tgt, self.model.encode(src), src)


@scenario
def with_scripts(answer, args, kwargs):
    """What the answer writes when every model that it knows says what a script has, and once more with another script
    for the sentences turned round (`again`, turned back), what it writes for two of them when eos never comes
    (`endless`), whether a model was asked, and whether each always read bos first."""
    (sentences,) = args
    names = namespace(answer) or {}
    models, said, (english, _) = [], [], _words()
    for turn in range(3):
        sentences = sentences[:2] if turn == 2 else sentences
        rows = enumerate(sentences)
        scripts = {tuple(english[word] for word in text.split()): script(row, text, turn) for row, text in rows}
        modules = {name: thing for name, thing in names.items() if isinstance(thing, torch.nn.Module)}
        known = {n: thing for n, thing in modules.items() if hasattr(thing, "encode") and hasattr(thing, "decode")}
        others = {name: _SaysElse(thing, scripts) for name, thing in known.items()}
        with put_in(names, others, watched=True):
            try:
                written = answer(list(sentences)[:: -1 if turn == 1 else 1], **kwargs)
            except (IndexError, RuntimeError):
                if turn < 2:
                    raise
                written = [NO_END] * len(sentences)
            said.append(written[::-1] if turn == 1 and isinstance(written, list) else written)
        models += others.values()
    seen = {"asked": any(m.asked for m in models), "begun": all(m.begun for m in models)}
    return dict(zip(("said", "again", "endless"), said, strict=True)) | seen, []


# ---------------------------------------------------------------- only on numbers


@view
def batch_without_padding(args, kwargs, output):
    """A batch as it was returned, but tgt_in is padding wherever tgt_out has to be: nobody hears what stands there."""
    pairs, pad_id = (*args, *kwargs.values())[:2]
    tgt_in = output.get("tgt_in") if isinstance(output, dict) else None
    if not isinstance(tgt_in, torch.Tensor) or tgt_in.dim() != 2 or len(tgt_in) != len(pairs):
        return output
    words = torch.tensor([len(target) for _, target in pairs])  # (B,)
    return output | {"tgt_in": tgt_in.masked_fill(torch.arange(tgt_in.shape[1]) > words[:, None], pad_id)}


FULL, ENOUGH, LEAST = 0.99, 0.995, 0.5  # exact sentences: all points, the check's tick, the first point
AT_MOST = 0.5  # of the points, where a model with scripts shows a fault
MARKS = ("<pad>", "<bos>", "<eos>")


@metric
def exact_translations(truths, outputs):
    """The share of sentences that come out word for word: all points from 99%, none below 50%. Then comes one of them
    alone. The last case has other sentences and models that say what a script has: no points for whoever does not
    repeat it, at most half of them for whoever writes something else."""
    pairs = [(a, _one_space(b)) for a, b in zip(truths[0], outputs[0], strict=True)]
    right, total, in_batch = sum(a == b for a, b in pairs), len(pairs), dict(pairs)
    share = min(1.0, max(0.0, (right / total - LEAST) / (FULL - LEAST)))
    singles = zip(truths[1:-1], outputs[1:-1], strict=True)
    alone = [(wanted, in_batch[wanted], _one_space(text)) for (wanted,), (text,) in singles if wanted in in_batch]
    passed = right / total >= ENOUGH
    words = f"{right} of {total} unseen sentences exactly right"
    fault, seen = _fault(truths[-1], outputs[-1])
    if share and fault == "model_not_repeated":
        return Score(0.0, False, f"{words}; {seen}", fault)
    loose = next((b for b in outputs[0] if b != _one_space(b)), "")
    if loose and not seen:
        fault, seen = "spaces", f"but there are spaces too many: {loose[:100]!r}"
    others = ((wanted, text) for wanted, among, text in alone if among == wanted != text)
    if passed and not seen and (other := next(others, None)):
        fault = "cut_short" if other[0].startswith(f"{other[1]} ") else "another_alone"
        seen = f"one of them by itself: {_both(*other)}"
    share = min(share, AT_MOST) if seen else share
    if passed:
        return Score(share, False, f"{words}; {seen}", fault) if seen else Score(share, True, words)
    if share == 1:
        words += f", which is worth all points; the check asks for {100 * ENOUGH:g}%, as the grader's are others"
    else:
        words += f" (the check asks for {100 * ENOUGH:g}%)"
    truth, output = next((a, b) for a, b in pairs if a != b)
    asked = isinstance(outputs[-1], dict) and outputs[-1]["asked"]
    right_alone = any(text == wanted != among for wanted, among, text in alone)
    return Score(share, False, f"{words}; {_both(truth, output)}", _what_went_wrong(pairs, asked, fault, right_alone))


def _both(wanted: str, written: str) -> str:
    return f"expected “{wanted}”, yours “{_one_space(written)[:100]}”"


def _one_space(text: str) -> str:
    return " ".join(text.split())


def _fault(truth, seen) -> tuple[str | None, str]:
    """The mistake that the models with scripts show, where it has a name, and what they show of it; nothing where none
    was asked: the model may be kept where nobody looks."""
    if not isinstance(seen, dict) or not seen["asked"]:
        return None, ""
    second = _words()[1][-1]
    seen = seen | {name: [_without_marks(text) for text in seen[name]] for name in ("said", "again")}
    begin = [(a.split()[:1], b.split()[:1]) for a, b in zip(seen["said"], seen["again"], strict=True)]
    if _most(a == b != [second] for a, b in begin):
        name = None if seen["said"] == truth["said"] else "model_not_repeated"
        return name, f"with two models that begin differently yours writes the same: “{seen['again'][0][:100]}”"
    texts = [*zip(truth["said"], seen["said"], strict=True), *zip(truth["again"], seen["again"], strict=True)]
    pairs = [(a.split(), b.split()) for a, b in texts]
    wrong = [(wanted, words) for wanted, words in pairs if wanted != words]
    if not wrong:
        if not seen["begun"]:
            return "does_not_begin_with_bos", "but the first id that the decoder was given is not bos"
        return _endless(truth["endless"], seen["endless"])
    shown = f"with another model {_both(*(' '.join(words) for words in min(wrong, key=lambda pair: len(pair[0]))))}"
    if _most(set(words) == set(wanted[:1]) and len(words) > len(wanted) for wanted, words in wrong):
        return "first_word_again", shown
    if _most(len(words) > len(wanted) and words[: len(wanted)] == wanted for wanted, words in wrong):
        if _most(words[len(wanted) : len(wanted) + 1] == [second] for wanted, words in wrong):
            return "eos_put_off", shown
        return "eos_not_heard" if len(wrong) == len(pairs) else "goes_on_after_the_end", shown
    if _most(wanted[: len(words)] == words for wanted, words in wrong):
        return "cut_short", shown
    others = (next((b for a, b in zip(wanted, words, strict=False) if a != b), "") for wanted, words in wrong)
    return "not_the_likeliest" if _most(first == second for first in others) else None, shown


def _endless(truth: list[str], written: list[str]) -> tuple[str | None, str]:
    """Whether words are missing where eos never comes. One more, or an error as places run out, is no fault."""
    for wanted, words in zip(truth, map(_without_marks, written), strict=True):
        if words != NO_END and not f"{words} ".startswith(f"{wanted} "):
            name = "cut_without_eos" if f"{wanted} ".startswith(f"{words} ") else None
            return name, f"with a model that never predicts eos {_both(wanted, words)}"
    return None, ""


def _without_marks(text: str) -> str:
    """A script has a mark among its words; whether that is left out or written as it is, is no question here."""
    return " ".join(word for word in text.split() if word not in MARKS)


def _most(which) -> bool:
    which = list(which)
    return sum(which) > len(which) / 2


def _what_went_wrong(pairs, asked: bool, fault: str | None, right_alone: bool) -> str | None:
    said = [(truth.split(), output.split()) for truth, output in pairs]
    if _most(any(mark in words for mark in MARKS) for _, words in said):
        return "marks_left_in"
    wrong = [(truth, words) for truth, words in said if truth != words]
    if _most(words[: len(truth)] == truth for truth, words in wrong):
        if fault in ("eos_not_heard", "eos_put_off", "goes_on_after_the_end"):
            return fault
        return "says_too_much" if asked else "goes_on_after_the_end"
    truths, outputs = zip(*pairs, strict=True)
    if _most(words == truth[1:] for truth, words in said):
        return "first_word_missing"
    if _most(words == truth[:-1] for truth, words in said):
        return "last_word_missing"
    elsewhere = (Counter(truths) & Counter(outputs)).total() - sum(map(str.__eq__, truths, outputs))
    if elsewhere > len(said) / 2:
        return "another_order"
    if _most(bool(words) and words == truth[: len(words)] for truth, words in wrong):
        return "cut_short"
    right = sum(a == b for truth, words in said for a, b in zip(truth, words, strict=False))
    if right < 0.1 * sum(len(truth) for truth, _ in said):
        named = fault in ("not_the_likeliest", "first_word_again")
        return fault if named else "right_alone" if right_alone else "not_trained"
    return None if fault == "cut_short" and len(wrong) > len(said) / 2 else fault
