"""A training run to watch: a progress bar with the latest numbers, and below it their curves, redrawn as they grow.

    live = Live(600, "training the translator")
    for step in live:                      # 1, 2, ..., 600
        ...
        live(loss=loss.item(), accuracy=accuracy)

In a notebook the picture is redrawn in place about every two seconds. A script prints the last state at the end. When
the notebook is executed to a page on disk, only the final picture is drawn.
"""

import html
import time
from collections.abc import Callable, Iterator

from helpers.widgets.progress_bar import WIDTH, in_place, static_page

PAUSE = 2.0  # minimum number of seconds between two pictures
SMOOTH = 15  # number of steps over which a curve is averaged
FRACTIONS = ("accuracy",)  # names of numbers from 0 to 1, which are shown as percentages


class Live:
    """Iterate over the steps 1, 2, ..., and show the numbers that are reported for each of them.

    says: a function without arguments that returns a line of text, such as a translation by the model so far. It is
    called after 10, 15, 20, 30, 40, 60, ... steps and after the last one, and each new line is shown below the curves.
    After the loop, `history` has a list of numbers for every name, and `texts` has (step, line) for each new line.
    """

    def __init__(self, steps: int, label="", caption="", says: Callable[[], str] | None = None):
        self.steps, self.label, self.caption, self.says = steps, label, caption, says
        self.history: dict[str, list[float]] = {}
        self.texts: list[tuple[int, str]] = []
        self.done, self.seconds = 0, 0.0

    def __call__(self, **numbers: float) -> None:
        """Report the numbers of this step."""
        for name, value in numbers.items():
            self.history.setdefault(name, []).append(float(value))

    def __len__(self) -> int:
        return self.steps

    def __iter__(self) -> Iterator[int]:
        start, drawn = time.perf_counter(), 0.0
        show = in_place()
        text_steps = {self.steps, *(first * 2**k for first in (10, 15) for k in range(30))}
        for step in range(1, self.steps + 1):
            now = time.perf_counter()
            if show and now - drawn > PAUSE and not static_page():
                self.seconds = now - start
                self._draw(show)
                drawn = time.perf_counter()
            yield step
            self.done = step
            if self.says and step in text_steps:
                line = self.says() or "(nothing)"
                if not self.texts or line != self.texts[-1][1]:
                    self.texts.append((step, line))
        self.seconds = time.perf_counter() - start
        if show:
            self._draw(show)
        else:
            print("\n".join([self.line(), *self._text_lines()]))

    def _text_lines(self) -> list[str]:
        return [f"step {step:>{len(str(self.steps))}}   {line}" for step, line in self.texts]

    def line(self) -> str:
        """The progress bar, the latest numbers and the time."""
        full = WIDTH * self.done // max(1, self.steps)
        parts = [f"{self.label} {'█' * full}{'░' * (WIDTH - full)} {self.done} of {self.steps}".lstrip()]
        for name, values in self.history.items():
            last = values[-SMOOTH:]
            mean = sum(last) / len(last)
            parts.append(f"{name} {100 * mean:.1f}%" if name in FRACTIONS else f"{name} {mean:.3f}")
        if 0 < self.done < self.steps:
            parts.append(f"{self.seconds * (self.steps - self.done) / self.done:.0f} s left")
        elif self.done:
            parts.append(f"{self.seconds:.0f} s")
        return "   ".join(parts)

    def picture(self):
        from matplotlib.ticker import LogLocator

        from helpers.drawing.colors import BLUE, GREEN_INK
        from helpers.drawing.style import Picture, new_figure

        figure, axes = new_figure(8.2, 2.5, 1, max(1, len(self.history)), squeeze=False)
        ends = []
        for ax, (name, values), color in zip(axes[0], self.history.items(), (BLUE, GREEN_INK) * 9, strict=False):
            percent, smooth = name in FRACTIONS, smoothed(values)
            for curve, look in ((values, {"alpha": 0.25, "lw": 0.8}), (smooth, {"lw": 2})):
                ax.plot(range(1, len(curve) + 1), [100 * x if percent else x for x in curve], color=color, **look)
            ax.set(xlim=(0, self.steps), xlabel="step", title=f"{name}, percent" if percent else name)
            if percent:
                ax.set_ylim(0, 103)
            elif min(values) > 0:
                ax.set_yscale("log")
                low, high = ax.get_ylim()
                ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 20 * low else (1,)))
                ax.yaxis.set_major_formatter("{x:g}")
                ax.yaxis.set_minor_formatter("")
            first, last = values[0], smooth[-1]
            shown = f"{100 * first:.0f}% to {100 * last:.1f}%" if percent else f"{first:.2f} to {last:.3f}"
            ends.append(f"{name} from {shown}")
        return Picture(figure, f"Curves over {self.done} of {self.steps} steps: {', '.join(ends)}.", self.caption)

    def _draw(self, show: Callable[..., None]) -> None:
        """Show the current state with a function that `in_place` returned."""
        line = self.line()
        page = f'<pre style="margin:0 0 0.4em">{html.escape(line)}</pre>'
        if self.history:
            page += self.picture()._repr_html_()
        if texts := "\n".join(self._text_lines()):
            page += f'<pre style="margin:0.4em 0 0;white-space:pre-wrap">{html.escape(texts)}</pre>'
            line += f"\n{texts}"
        show(line, page)


def smoothed(values: list[float], steps: int = SMOOTH) -> list[float]:
    """The average of each value and those before it, of at most `steps` values."""
    return [sum(values[max(0, i + 1 - steps) : i + 1]) / min(i + 1, steps) for i in range(len(values))]
