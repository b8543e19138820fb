"""Scenario of lesson 11's checks, which runs next to learner code, and a view and a metric, which see only numbers.

The scenario replaces the learner's trained model by one that predicts prepared ids, a script. So a learner's function
that translates has to generate what the script contains, whatever their model has learned.
"""

from collections import Counter

import torch

from helpers.checking.names import namespace
from helpers.checking.registry import Score, metric, scenario, view
from helpers.checking.retry import put_in

# ---------------------------------------------------------------- next to learner code

PAD, BOS, EOS = 0, 1, 2
SURE = 50.0  # a logit so large that every search considers its word
LONGEST = 22  # words that fit between bos and eos in a row of MAX_LEN ids
NO_END = "<no end>"  # stands for the output where eos never comes and the answer raises because positions run out
BEHIND = 0.3  # how much lower the logit of the second most probable word is; this word, the last id, is in no script


def _vocabularies() -> tuple[dict[str, int], list[str]]:
    """English words to ids, and French words by id, imported only here because most checks don't need them."""
    from helpers.translator.word_ids import english, french_list

    return english, french_list


def script(row: int, sentence: str, turn: int) -> list[int]:
    """The French ids that a scripted model predicts for the sentence in this row.

    Row 0 has three words more than the sentence (with turn 1 as many as fit before eos), row 1 has none, and each other
    row has between two words and as many as its sentence, so that rows end at different times. The first word comes
    twice, and row 0 contains bos once. turn: each turn gives different words; with turn 2 every script is longer than
    the number of positions, so eos never comes.
    """
    length, V = len(sentence.split()), len(_vocabularies()[1])
    words = (LONGEST if turn else length + 3) if row == 0 else 0 if row == 1 else 2 + (row + turn) % (length - 1)
    words = 2 * LONGEST if turn == 2 else words
    ids = [EOS + 1 + (23 * row + 7 * max(1, t) + 91 * turn) % (V - EOS - 2) for t in range(words)]
    return [BOS if (row, t, turn == 2) == (0, 4, False) else word for t, word in enumerate(ids)]


def scripted(sentences: list[str], turn: int) -> list[str]:
    """The texts of the scripts for `sentences`, whose first is the longest, without special tokens."""
    _, french = _vocabularies()
    scripts = (script(row, text, turn)[: LONGEST + 1] for row, text in enumerate(sentences))
    return [" ".join(french[i] for i in ids if i > EOS) for ids in scripts]


class _Scripted(torch.nn.Module):
    """A trained model whose predictions follow a script for each English sentence, and go on after eos.

    After a word that differs from the script, its predictions are almost certain. So beam search, which compares the
    probabilities of whole sentences, leaves the script.
    """

    def __init__(self, model, scripts: dict[tuple[int, ...], list[int]]):
        super().__init__()
        self.model, self.scripts, self.called, self.begun = model, scripts, False, True
        self.other = [ids for ids in scripts.values() if ids][-1][-1:]  # the script of any other sentence

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self.model, name)

    def decode(self, tgt, memory, src):
        self.called, self.begun = True, self.begun and bool((tgt[..., 0] == BOS).all())
        logits = torch.full_like(self.model.decode(tgt, memory, src), -SURE)  # (B, T_t, V)
        rows = []
        for ids in src.tolist():
            words = self.scripts.get(tuple(i for i in ids if i != PAD), self.other)
            rows.append(([*words, EOS] * logits.shape[1])[: logits.shape[1]])
        following = torch.tensor(rows, device=logits.device).expand(logits.shape[:-1])  # (B, T_t)
        left = (tgt[:, 1:] != following[:, :-1]).any(dim=-1, keepdim=True)  # (B, 1), True after another word
        logits[..., -1] = torch.where(left, -SURE, SURE - BEHIND)
        return logits.scatter(-1, following[..., None], SURE)

    def forward(self, src, tgt):
        return self.decode(tgt, self.model.encode(src), src)


@scenario
def with_scripts(answer, args, kwargs):
    """The answer's texts with a scripted model in place of every model that it can reach.

    `said`: the texts for all sentences; `again`: those with another script and the sentences in reverse order, reversed
    back; `endless`: those of two sentences when eos never comes; `asked`: whether a model was called; `begun`: whether
    every decoder input began with bos.
    """
    (sentences,) = args
    names = namespace(answer) or {}
    models, texts, (english, _) = [], [], _vocabularies()
    for turn in range(3):
        sentences = sentences[:2] if turn == 2 else sentences
        rows = enumerate(sentences)
        scripts = {tuple(english[word] for word in text.split()): script(row, text, turn) for row, text in rows}
        modules = {name: value for name, value in names.items() if isinstance(value, torch.nn.Module)}
        trained = {name: m for name, m in modules.items() if hasattr(m, "encode") and hasattr(m, "decode")}
        replaced = {name: _Scripted(model, scripts) for name, model in trained.items()}
        with put_in(names, replaced, watched=True):
            try:
                written = answer(list(sentences)[:: -1 if turn == 1 else 1], **kwargs)
            except (IndexError, RuntimeError):
                if turn < 2:
                    raise
                written = [NO_END] * len(sentences)
            texts.append(written[::-1] if turn == 1 and isinstance(written, list) else written)
        models += replaced.values()
    facts = {"asked": any(m.called for m in models), "begun": all(m.begun for m in models)}
    return dict(zip(("said", "again", "endless"), texts, strict=True)) | facts, []


# ---------------------------------------------------------------- on numbers only


@view
def batch_without_padding(args, kwargs, output):
    """The returned batch, but with padding in tgt_in wherever tgt_out has to be padding, where any ids are allowed."""
    pairs, pad_id = (*args, *kwargs.values())[:2]
    tgt_in = output.get("tgt_in") if isinstance(output, dict) else None
    if not isinstance(tgt_in, torch.Tensor) or tgt_in.dim() != 2 or len(tgt_in) != len(pairs):
        return output
    words = torch.tensor([len(target) for _, target in pairs])  # (B,)
    return output | {"tgt_in": tgt_in.masked_fill(torch.arange(tgt_in.shape[1]) > words[:, None], pad_id)}


FULL, ENOUGH, LEAST = 0.99, 0.995, 0.5  # fraction of exact sentences for all points, to pass the check, for any points
AT_MOST = 0.5  # fraction of the points that remain when a scripted model shows a fault
MARKS = ("<pad>", "<bos>", "<eos>")


@metric
def exact_translations(truths, outputs):
    """The fraction of sentences that are translated exactly: all points from 99%, none below 50%.

    The cases in the middle have single sentences of the first case. The last case has other sentences and scripted
    models. An answer that ignores the script gets no points, and one that writes anything else at most half of them.
    """
    pairs = [(a, _one_space(b)) for a, b in zip(truths[0], outputs[0], strict=True)]
    right, total, in_batch = sum(a == b for a, b in pairs), len(pairs), dict(pairs)
    fraction = min(1.0, max(0.0, (right / total - LEAST) / (FULL - LEAST)))
    singles = zip(truths[1:-1], outputs[1:-1], strict=True)
    alone = [(truth, in_batch[truth], _one_space(text)) for (truth,), (text,) in singles if truth in in_batch]
    passed = right / total >= ENOUGH
    words = f"{right} of {total} unseen sentences exactly right"
    fault, evidence = _fault(truths[-1], outputs[-1])
    if fraction and fault == "model_not_repeated":
        return Score(0.0, False, f"{words}; {evidence}", fault)
    loose = next((b for b in outputs[0] if b != _one_space(b)), "")
    if loose and not evidence:
        fault, evidence = "spaces", f"but there are too many spaces: {loose[:100]!r}"
    worse_alone = ((truth, text) for truth, among, text in alone if among == truth != text)
    if passed and not evidence and (other := next(worse_alone, None)):
        fault = "cut_short" if other[0].startswith(f"{other[1]} ") else "another_alone"
        evidence = f"one of them by itself: {_both(*other)}"
    fraction = min(fraction, AT_MOST) if evidence else fraction
    if passed:
        return Score(fraction, False, f"{words}; {evidence}", fault) if evidence else Score(fraction, True, words)
    if fraction == 1:
        words += f", which is worth all points; the check asks for {100 * ENOUGH:g}%, since the grader uses others"
    else:
        words += f" (the check asks for {100 * ENOUGH:g}%)"
    truth, output = next((a, b) for a, b in pairs if a != b)
    called = isinstance(outputs[-1], dict) and outputs[-1]["asked"]
    right_alone = any(text == truth != among for truth, among, text in alone)
    return Score(
        fraction, False, f"{words}; {_both(truth, output)}", _what_went_wrong(pairs, called, fault, right_alone)
    )


def _both(truth: str, output: str) -> str:
    return f"expected “{truth}”, yours “{_one_space(output)[:100]}”"


def _one_space(text: str) -> str:
    return " ".join(text.split())


def _fault(truth, found) -> tuple[str | None, str]:
    """The mistake that the scripted models reveal, None if it has no name, and the evidence for it in words.

    There is no evidence where no scripted model was called, because the answer may keep its model out of reach.
    """
    if not isinstance(found, dict) or not found["asked"]:
        return None, ""
    second = _vocabularies()[1][-1]
    found = found | {name: [_without_marks(text) for text in found[name]] for name in ("said", "again")}
    begin = [(a.split()[:1], b.split()[:1]) for a, b in zip(found["said"], found["again"], strict=True)]
    if _most(a == b != [second] for a, b in begin):
        name = None if found["said"] == truth["said"] else "model_not_repeated"
        return name, f"with two models that begin differently yours writes the same: “{found['again'][0][:100]}”"
    texts = [*zip(truth["said"], found["said"], strict=True), *zip(truth["again"], found["again"], strict=True)]
    pairs = [(a.split(), b.split()) for a, b in texts]
    wrong = [(expected, words) for expected, words in pairs if expected != words]
    if not wrong:
        if not found["begun"]:
            return "does_not_begin_with_bos", "but the first id that the decoder was given is not bos"
        return _endless(truth["endless"], found["endless"])
    shown = f"with another model {_both(*(' '.join(words) for words in min(wrong, key=lambda pair: len(pair[0]))))}"
    if _most(set(words) == set(expected[:1]) and len(words) > len(expected) for expected, words in wrong):
        return "first_word_again", shown
    if _most(len(words) > len(expected) and words[: len(expected)] == expected for expected, words in wrong):
        if _most(words[len(expected) : len(expected) + 1] == [second] for expected, words in wrong):
            return "eos_put_off", shown
        return "eos_not_heard" if len(wrong) == len(pairs) else "goes_on_after_the_end", shown
    if _most(expected[: len(words)] == words for expected, words in wrong):
        return "cut_short", shown
    first_errors = (next((b for a, b in zip(*pair, strict=False) if a != b), "") for pair in wrong)
    return "not_the_likeliest" if _most(word == second for word in first_errors) else None, shown


def _endless(truth: list[str], written: list[str]) -> tuple[str | None, str]:
    """The fault if words are missing where eos never comes. One more word or an error at the last position is none."""
    for expected, words in zip(truth, map(_without_marks, written), strict=True):
        if words != NO_END and not f"{words} ".startswith(f"{expected} "):
            name = "cut_without_eos" if f"{expected} ".startswith(f"{words} ") else None
            return name, f"with a model that never predicts eos {_both(expected, words)}"
    return None, ""


def _without_marks(text: str) -> str:
    """The text without special tokens, because the answer may write the one in a script or leave it out."""
    return " ".join(word for word in text.split() if word not in MARKS)


def _most(conditions) -> bool:
    conditions = list(conditions)
    return sum(conditions) > len(conditions) / 2


def _what_went_wrong(pairs, called: bool, fault: str | None, right_alone: bool) -> str | None:
    """The name of the mistake that the translations show, if any. called: whether a scripted model was called."""
    sentences = [(truth.split(), output.split()) for truth, output in pairs]
    if _most(any(mark in words for mark in MARKS) for _, words in sentences):
        return "marks_left_in"
    wrong = [(truth, words) for truth, words in sentences if truth != words]
    if _most(words[: len(truth)] == truth for truth, words in wrong):
        if fault in ("eos_not_heard", "eos_put_off", "goes_on_after_the_end"):
            return fault
        return "says_too_much" if called else "goes_on_after_the_end"
    truths, outputs = zip(*pairs, strict=True)
    if _most(words == truth[1:] for truth, words in sentences):
        return "first_word_missing"
    if _most(words == truth[:-1] for truth, words in sentences):
        return "last_word_missing"
    elsewhere = (Counter(truths) & Counter(outputs)).total() - sum(map(str.__eq__, truths, outputs))
    if elsewhere > len(sentences) / 2:
        return "another_order"
    if _most(bool(words) and words == truth[: len(words)] for truth, words in wrong):
        return "cut_short"
    right = sum(a == b for truth, words in sentences for a, b in zip(truth, words, strict=False))
    if right < 0.1 * sum(len(truth) for truth, _ in sentences):
        explained = fault in ("not_the_likeliest", "first_word_again")
        return fault if explained else "right_alone" if right_alone else "not_trained"
    return None if fault == "cut_short" and len(wrong) > len(sentences) / 2 else fault
