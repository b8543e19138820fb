"""Sliders above a picture. Works with ipywidgets 7.7 and 8 in JupyterLab and Colab, and uses only core widgets.

For authors. The short way is a function that draws a new figure each time, such as `similarity` in lesson 1's
explore.py. It is fast enough if a redraw takes under 100 ms; its first picture needs room for longer texts, because
later ones keep its margins. The fast way keeps the figure and changes only what moves, such as `temperature` in
lesson 4's explore.py; this halves the time.

- The web edition draws the same pictures in advance (helpers/authoring/frames.py), so a picture must depend only on
  the values of the controls. There a text box needs suggestions, so use a `Combobox`.
- Choose each slider's range to fit. If it depends on another slider, let `draw` cap the value and say so.
- A figure that is kept is laid out once, with the texts that it contains before the first redraw. Therefore write the
  longest texts, ticks and labels first, and set the limits of the axes by hand. Never change the size of the figure,
  because the page below it would jump.
- `bench/redraw_time.py` prints how long the redraw of each explorer takes.
"""

import html
from collections.abc import Callable, Iterable, Sequence
from functools import partial

import ipywidgets as widgets
from IPython.display import HTML, display

from helpers.drawing.dark import DARK
from helpers.drawing.matplotlib_insides import keep_title
from helpers.drawing.style import lay_out
from helpers.widgets.progress_bar import static_page

TRACK = 230  # minimum width in pixels of the part of a slider that can be dragged
READOUT = 90  # width in pixels of the number next to the track and the gaps
HIDDEN = "position:absolute;width:1px;height:1px;overflow:hidden;clip:rect(0 0 0 0);white-space:nowrap"


def panel(draw: Callable[..., object], across: int = 0, **controls: widgets.Widget) -> None:
    """Show `controls` above the picture that `draw(**values)` returns, and redraw when one of them moves.

    draw: a callable that returns a Picture or a string of HTML. The picture with its alt text is in a live region, so
    that a screen reader announces changes. across: the number of columns of a grid, if the controls are buttons. On a
    static page, where widgets don't work, only the picture for the initial values is shown.
    """
    controls = {name: _ready(control) for name, control in controls.items()}
    values = {name: control.value for name, control in controls.items()}
    show = Shown(draw)
    if static_page():
        display(HTML(_html(draw(**values))))
        return
    page = widgets.HTML(_live(show(values)))

    def redraw(change, name):
        values[name] = change["new"]
        page.value = _live(show(values))

    for name, control in controls.items():
        control.observe(partial(redraw, name=name), names="value")
    row = list(controls.values())
    if across:  # screen readers read the buttons' own names
        columns = f"repeat({across}, minmax(110px, 190px))"
        above = [widgets.GridBox(row, layout=widgets.Layout(grid_template_columns=columns, grid_gap="4px"))]
    else:
        flow = widgets.Layout(flex_flow="row wrap", width="100%")
        above = [widgets.HTML(_spoken(controls)), widgets.HBox(row, layout=flow)]
    display(widgets.VBox([*above, page]))


def keeping(figure, draw):
    """Mark `draw` as a function that only changes `figure`, so that `panel` lays the figure out once."""
    draw.figure = figure
    return draw


def _ready(control: widgets.Widget) -> widgets.Widget:
    """The control with enough room for its track, or buttons if it is a slider over a few words."""
    if isinstance(control, widgets.ToggleButton):
        control.layout = widgets.Layout(width="auto", min_width="110px")
        return control
    if isinstance(control, widgets.SelectionSlider) and few_words(control._options_labels):
        control = widgets.ToggleButtons(options=control.options, value=control.value, description=control.description)
        control.style = {"description_width": "initial", "button_width": "auto"}
        control.layout = widgets.Layout(width="auto", max_width="100%")
        return control
    control.style = {"description_width": "initial"}
    min_width = TRACK + READOUT + 8 * len(control.description)
    size = {"min_width": f"min({min_width}px, 100%)", "flex": f"1 1 {min_width}px", "max_width": "560px"}
    control.layout = widgets.Layout(width="auto", **size)
    return control


def few_words(names: Sequence[str]) -> bool:
    """Whether there are at most three options, all words: a slider would hide the others and truncate long ones."""
    return len(names) <= 3 and not any(name[:1].isdigit() for name in names)


class Shown:
    """Redraw a picture with the margins of the first one, which is faster and keeps everything in place."""

    def __init__(self, draw: Callable[..., object]):
        self.draw, self.positions = draw, []
        figure = getattr(draw, "figure", None)
        if figure and all(ax.has_data() or ax.texts for ax in figure.axes):
            lay_out(figure)  # its initial texts leave enough room for all later ones
            _pin_names(figure)

    def __call__(self, values: dict) -> str:
        """The picture for these values, as HTML."""
        picture = self.draw(**values)
        figure = getattr(picture, "figure", None)
        if figure is None:
            return _html(picture)
        if self.positions and figure.get_layout_engine() is not None:
            figure.set_layout_engine("none")
            for ax, position in zip(figure.axes, self.positions, strict=True):
                ax.set_position(position, which="original")
        shown = picture.html(live=True)
        self.positions = self.positions or [ax.get_position(original=True) for ax in figure.axes]
        return shown


def _pin_names(figure) -> None:
    """Fix the titles and axis labels at the positions of the first drawing.

    Otherwise matplotlib measures all neighboring text in each redraw to find them again, a third of the time.
    """
    width, height = 72 * figure.get_size_inches()  # in points, the unit of an SVG
    for ax in figure.axes:
        keep_title(ax)
        box = ax.get_position()
        (x_across, x_y), (y_x, y_up) = ax.xaxis.label.get_position(), ax.yaxis.label.get_position()
        ax.xaxis.set_label_coords(box.x0 + x_across * box.width, x_y / height, transform=figure.transFigure)
        ax.yaxis.set_label_coords(y_x / width, box.y0 + y_up * box.height, transform=figure.transFigure)


def _html(picture: object) -> str:
    return picture if isinstance(picture, str) else picture._repr_html_()


def _live(picture: str) -> str:
    """The picture in a live region, whose changes a screen reader announces."""
    return f'<div role="group" aria-label="picture" aria-live="polite">{picture}</div>{DARK}'


def _spoken(controls: dict) -> str:
    """The text that a screen reader reads before the controls, because these widgets give them no accessible names."""
    boxes = any(isinstance(control, widgets.Text) for control in controls.values())
    buttons = any(isinstance(control, widgets.ToggleButtons) for control in controls.values())
    names = ", ".join(control.description or name for name, control in controls.items())
    kind = "controls" if boxes or buttons else "sliders"
    listed = f"{len(controls)} {kind}, in this order: {names}" if len(controls) > 1 else f"One slider: {names}"
    how = "The arrow keys move sliders" if boxes or buttons else "The arrow keys move them"
    how += (", the space bar presses buttons" if buttons else "") + (", and Enter takes a text" if boxes else "")
    return f'<div style="{HIDDEN}">{html.escape(listed)}. {how}; the picture follows.</div>'


# ---------------------------------------------------------------- controls


def whole(name: str, value: int, low: int, high: int, **options) -> widgets.IntSlider:
    """A slider for whole numbers."""
    return widgets.IntSlider(value=value, min=low, max=high, description=name, **options)


def decimal(name: str, value: float, low: float, high: float, step: float, **options) -> widgets.FloatSlider:
    """A slider for numbers in equal steps."""
    return widgets.FloatSlider(value=value, min=low, max=high, step=step, description=name, **options)


def powers(name: str, value: float, low: float, high: float, step: float) -> widgets.FloatLogSlider:
    """A slider from 10 to the power `low` to 10 to the power `high`."""
    look = {"description": name, "readout_format": ".2f"}
    return widgets.FloatLogSlider(value=value, base=10, min=low, max=high, step=step, **look)


def choice(name: str, options: Iterable, value=None) -> widgets.SelectionSlider:
    """A slider over options, which are values or pairs (text, value); `panel` turns one over a few words into buttons.

    value: the initial one, by default the first option.
    """
    initial = {} if value is None else {"value": value}
    return widgets.SelectionSlider(options=list(options), description=name, **initial)


def typed(hint: str) -> widgets.Text:
    """A text box for the learner's own input, which Enter submits."""
    return widgets.Text(placeholder=f"{hint}, then Enter", description="your own", continuous_update=False)
