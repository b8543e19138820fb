"""Views: what of an output is compared, for exercises that several different outputs satisfy.

A view takes (args, kwargs, output) and returns a tree, usually a dict of named properties. It raises ValueError with
a sentence for the learner when the output cannot be looked at. It sees numbers only, never learner code.
A lesson's own views stand in its room, helpers/lessons/TOPIC/probes.py.
"""

import dataclasses

from helpers.checking.codec import Odd, plain
from helpers.checking.observe import Observation
from helpers.checking.registry import Registry
from helpers.checking.vocabulary import Case

VIEWS = Registry()
view = VIEWS.register


def viewed(case: Case, seen: Observation) -> Observation:
    """The observation with the case's view applied to its output; what a view cannot look at becomes Odd."""
    if case.view is None or seen.error is not None:
        return seen
    try:
        output = plain(VIEWS[case.view](case.args, case.kwargs, seen.output))
    except Exception as error:  # a view meets whatever an answer returned
        output = Odd("unusable", str(error))
    return dataclasses.replace(seen, output=output)
