"""Lesson 1. Beside learner code: the fixture and the scenario. Only on numbers: nothing."""

from __future__ import annotations

from helpers.checking.fixtures import fixture
from helpers.checking.scenarios import scenario


@fixture
def set_of_pieces(*pieces):
    """A set of pieces."""
    return set(pieces)


@scenario
def named_key_error(answer, args, kwargs):
    """args = (sentence, vocab), with a token that is not in vocab: whom does the KeyError name?"""
    sentence, vocab = args
    tokens = "".join(x for x in sentence if x not in ",.!?;:").split()
    stranger = next(token for token in tokens if token not in vocab)
    try:
        return answer(sentence, vocab, **kwargs), []
    except KeyError as error:
        said = " ".join(map(str, error.args))
    whole = any(text in said for text in (sentence, " ".join(tokens), str(tokens), str(sentence.split())))
    named = "the whole sentence" if whole and len(tokens) > 1 else stranger if stranger in said else "something else"
    return {"the KeyError names": named}, []
