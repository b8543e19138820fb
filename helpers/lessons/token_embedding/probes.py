"""Probes of lesson 1. The stub runs alongside learner code; the view sees only results."""

from helpers.checking.registry import stub, view


@stub
def set_of_pieces(*pieces):
    """A set of pieces."""
    return set(pieces)


@view
def vocabulary(args, kwargs, output):
    """The tokens and ids of a vocabulary, and the order of the ids.

    The order of a set differs between runs, so it is recognized by matching none of the known orders.
    """
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
    by_id = sorted(output, key=lambda x: (str(output[x]).zfill(9), str(x)))
    follow = next((name for name, order in orders.items() if order == by_id), "no order of the text or the alphabet")
    return {
        "the tokens": tokens,
        "the ids": sorted(output.values(), key=lambda x: str(x).zfill(9)),
        "the ids follow": follow,
    }
