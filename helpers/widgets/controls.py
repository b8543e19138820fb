"""The controls of explorers: sliders for numbers and for choices, and a box for a text."""

from collections.abc import Iterable

import ipywidgets as widgets


def whole(name: str, value: int, low: int, high: int, **options) -> widgets.IntSlider:
    """A slider for whole numbers."""
    return widgets.IntSlider(value=value, min=low, max=high, description=name, **options)


def decimal(name: str, value: float, low: float, high: float, step: float, **options) -> widgets.FloatSlider:
    """A slider for numbers at equal steps."""
    return widgets.FloatSlider(value=value, min=low, max=high, step=step, description=name, **options)


def powers(name: str, value: float, low: float, high: float, step: float) -> widgets.FloatLogSlider:
    """A slider from 10 to the power `low` to 10 to the power `high`."""
    look = {"description": name, "readout_format": ".2f"}
    return widgets.FloatLogSlider(value=value, base=10, min=low, max=high, step=step, **look)


def choice(name: str, options: Iterable, value=None) -> widgets.SelectionSlider:
    """A slider over options, values or pairs (text, value); `panel` makes buttons of a few words. value: the first."""
    chosen = {} if value is None else {"value": value}
    return widgets.SelectionSlider(options=list(options), description=name, **chosen)


def typed(hint: str) -> widgets.Text:
    """A box for a text of one's own, taken at Enter."""
    return widgets.Text(placeholder=f"{hint}, then Enter", description="your own", continuous_update=False)
