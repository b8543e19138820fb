"""Sliders above a picture. Works with ipywidgets 7.7 and 8, in JupyterLab and Colab, core widgets only.

For authors. The short way is a function that draws anew each time, as for `similarity` in lesson 1's explore.py. It
will do where a redraw takes under 100 ms; its first picture needs room for longer texts, as its margins are kept.
The quick way keeps its figure and changes what moves, as `temperature` in lesson 4's explore.py; it halves the time.

- The web edition draws the same pictures (helpers/authoring/frames.py), so that a picture has to follow from the values
  alone. A box for a text needs suggestions there: a `Combobox` has some.
- Give sliders the range that fits; where one slider's range depends on another, let `draw` cap the value and say so.
- A figure that is kept is laid out once, with the texts that stand in it before the first redraw: write the longest
  there, ticks and labels too, and set limits of axes by hand. Its size is always the same, or the page below it jumps.
- `bench/redraw_time.py` prints what each explorer's redraw takes.
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

TRACK = 230  # pixels of a slider that are there to be dragged, at least
READOUT = 90  # pixels beside the track: the number, and the gaps
HIDDEN = "position:absolute;width:1px;height:1px;overflow:hidden;clip:rect(0 0 0 0);white-space:nowrap"


def panel(draw: Callable[..., object], across: int = 0, **controls: widgets.Widget) -> None:
    """Show `controls` above the picture that `draw(**values)` returns, and redraw when one of them moves.

    draw: a function or an object with `__call__` that returns a Picture (or a string of HTML). The picture with its
    alt text stands in a live region, so that a screen reader says what changed. across: columns of a table of buttons,
    where the controls are these and no sliders. Where widgets cannot live, as on a printed page, the picture for the
    first values is shown alone, so it is displayed a single time in either case.
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
    if across:  # buttons have names of their own
        columns = f"repeat({across}, minmax(110px, 190px))"
        above = [widgets.GridBox(row, layout=widgets.Layout(grid_template_columns=columns, grid_gap="4px"))]
    else:
        flow = widgets.Layout(flex_flow="row wrap", width="100%")
        above = [widgets.HTML(_spoken(controls)), widgets.HBox(row, layout=flow)]
    display(widgets.VBox([*above, page]))


def keeping(figure, draw):
    """`draw`, a function that changes what stands in `figure`: `panel` lays the figure out but once."""
    draw.figure = figure
    return draw


def _ready(control: widgets.Widget) -> widgets.Widget:
    """The control with room for its track; buttons in the place of a slider over a few words."""
    if isinstance(control, widgets.ToggleButton):
        control.layout = widgets.Layout(width="auto", min_width="110px")
        return control
    if isinstance(control, widgets.SelectionSlider) and few_words(control._options_labels):
        control = widgets.ToggleButtons(options=control.options, value=control.value, description=control.description)
        control.style = {"description_width": "initial", "button_width": "auto"}
        control.layout = widgets.Layout(width="auto", max_width="100%")
        return control
    control.style = {"description_width": "initial"}
    least = TRACK + READOUT + 8 * len(control.description)
    size = {"min_width": f"min({least}px, 100%)", "flex": f"1 1 {least}px", "max_width": "560px"}
    control.layout = widgets.Layout(width="auto", **size)
    return control


def few_words(names: Sequence[str]) -> bool:
    """Whether all that one can choose is two or three words, which a slider would hide, or cut where they are long."""
    return len(names) <= 3 and not any(name[:1].isdigit() for name in names)


class Shown:
    """Draws again and again, in the margins that the first picture was laid out with: quicker, and nothing wobbles."""

    def __init__(self, draw: Callable[..., object]):
        self.draw, self.positions = draw, []
        figure = getattr(draw, "figure", None)
        if figure and all(ax.has_data() or ax.texts for ax in figure.axes):
            lay_out(figure)  # with the texts that it was made with: they make the room for all that follow
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
    """Titles and names of axes stay where the first drawing put them.

    To look for their places anew, matplotlib measures all letters beside them in each redraw: a third of its time.
    """
    width, height = 72 * figure.get_size_inches()  # points, in which an SVG is drawn
    for ax in figure.axes:
        keep_title(ax)
        box = ax.get_position()
        (along, below), (beside, up) = ax.xaxis.label.get_position(), ax.yaxis.label.get_position()
        ax.xaxis.set_label_coords(box.x0 + along * box.width, below / height, transform=figure.transFigure)
        ax.yaxis.set_label_coords(beside / width, box.y0 + up * box.height, transform=figure.transFigure)


def _html(picture: object) -> str:
    return picture if isinstance(picture, str) else picture._repr_html_()


def _live(picture: str) -> str:
    """The picture where a screen reader hears it change."""
    return f'<div role="group" aria-label="picture" aria-live="polite">{picture}</div>{DARK}'


def _spoken(controls: dict) -> str:
    """What a screen reader says before the controls, which have no names of their own in these widgets."""
    boxes = any(isinstance(control, widgets.Text) for control in controls.values())
    buttons = any(isinstance(control, widgets.ToggleButtons) for control in controls.values())
    names = ", ".join(control.description or name for name, control in controls.items())
    kind = "controls" if boxes or buttons else "sliders"
    many = f"{len(controls)} {kind}, in this order: {names}" if len(controls) > 1 else f"One slider: {names}"
    how = "The arrow keys move sliders" if boxes or buttons else "The arrow keys move them"
    how += (", the space bar presses buttons" if buttons else "") + (", and Enter takes a text" if boxes else "")
    return f'<div style="{HIDDEN}">{html.escape(many)}. {how}; the picture follows.</div>'


# ---------------------------------------------------------------- controls


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
