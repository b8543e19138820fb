"""Lesson 1. Beside learner code: the stub. Only on numbers: the view."""

from helpers.checking.registry import stub, view


@stub
def set_of_pieces(*pieces):
    """A set of pieces."""
    return set(pieces)


@view
def vocabulary(args, kwargs, output):
    """The tokens and the ids of a vocabulary, and the order that the ids follow: that of a set is another one in each
    run, so it's told by not being any other."""
    if not isinstance(output, dict):
        return output
    sentences = (*args, *kwargs.values())[0]
    words = "".join(x for x in " ".join(sentences) if x not in ",.!?;:").split()
    tokens = sorted(output, key=str)
    orders = {
        "code-point order": tokens,
        "the order of appearance": sorted(tokens, key=lambda x: words.index(x) if x in words else len(words)),
        "the alphabet, whatever the case": sorted(tokens, key=lambda x: (str(x).lower(), str(x))),
    }
    own = sorted(output, key=lambda x: (str(output[x]).zfill(9), str(x)))
    follow = next((name for name, order in orders.items() if order == own), "no order of the text or the alphabet")
    return {
        "the tokens": tokens,
        "the ids": sorted(output.values(), key=lambda x: str(x).zfill(9)),
        "the ids follow": follow,
    }
