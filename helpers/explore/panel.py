"""Sliders beside a picture. Works with ipywidgets 7.7 and 8, in JupyterLab and Colab, core widgets only."""

from __future__ import annotations

import os
from collections.abc import Callable

import ipywidgets as widgets
from IPython.display import HTML, display


def panel(draw: Callable[..., object], **controls: widgets.Widget):
    """Show `controls` above the picture that `draw(**values)` returns, and redraw when one of them moves.

    draw: returns a figures.style.Picture (or a string of HTML). Where widgets cannot live, as on a printed page,
    the picture for the first values is shown alone, so it is displayed a single time in either case.
    """

    def picture() -> str:
        result = draw(**{name: control.value for name, control in controls.items()})
        return result if isinstance(result, str) else result._repr_html_()

    page = widgets.HTML(picture())

    def redraw(_change):
        page.value = picture()

    for control in controls.values():
        control.style = {"description_width": "initial"}
        control.observe(redraw, names="value")
    box = widgets.VBox([widgets.HBox(list(controls.values())), page])
    if _static_page():
        display(HTML(page.value))
    else:
        display(box)


def _static_page() -> bool:
    """Whether the notebook is being executed to a page on disk, where a slider would be dead."""
    return os.environ.get("COURSE_STATIC_PAGE") == "1"
