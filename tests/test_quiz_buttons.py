"""The buttons below a quiz: which one is marked. tests/test_browser_untouched.py tries a click."""

import re

from helpers.checking.quiz_buttons import buttons


def test_only_the_chosen_option_is_marked():
    marked = dict(re.findall(r'value="(\w)" aria-pressed="(\w+)"', buttons("quiz_1", "abc", "b")))
    assert marked == {"a": "false", "b": "true", "c": "false"}
    assert 'aria-pressed="true"' not in buttons("quiz_1", "abc").replace("[aria-pressed=true]", "")
