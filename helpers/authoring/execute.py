"""Run a solution notebook from top to bottom, with outputs that don't depend on the computer."""

import copy
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from ipykernel.kernelspec import get_kernel_dict
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellTimeoutError, DeadKernelError

from helpers.authoring import BuildError
from helpers.authoring.explorers import keeping
from helpers.authoring.text import require_none
from helpers.course import Course

CELL_TIMEOUT = 300  # seconds


class ThisPython(AsyncKernelManager):
    """Starts kernels with the current Python, whatever kernels are registered on the computer."""

    @property
    def kernel_spec(self) -> KernelSpec:
        return KernelSpec(**get_kernel_dict(extra_arguments=["--log-level=ERROR"]))


def run_notebook(
    course: Course, notebook, folder: Path, lesson: str, allow_errors: bool = False, keep: Path | None = None
):
    """Execute a copy of `notebook` in `folder`, and return it with normalized outputs.

    Unless `allow_errors`: BuildError names the cells that raised (only ordinary cells that the author tagged
    `raises-exception` may raise), and the outputs of explorers of trained models include all their pictures. keep: a
    folder for the weights of the training runs; if None, they are discarded.
    """
    executed = copy.deepcopy(notebook)
    kept = [] if allow_errors else list(keeping(executed))
    for cell, keeper in kept:
        executed.cells.insert(executed.cells.index(cell) + 1, keeper)
    with tempfile.TemporaryDirectory() as scratch:
        environment = os.environ | {
            "COURSE_STATIC_PAGE": "1",
            "COURSE_KEEP_FOLDER": str(keep or scratch),
            "COURSE_PROGRESS_FILE": str(Path(scratch) / "progress.json"),
            "PYTHONPATH": str(course.root),
            "PYTHONHASHSEED": "0",
            "OMP_NUM_THREADS": "1",
            "IPYTHONDIR": scratch,
        }
        client = NotebookClient(
            executed,
            timeout=CELL_TIMEOUT,
            allow_errors=True,
            store_widget_state=False,
            shutdown_kernel="immediate",  # saves a second
            coalesce_streams=True,
            record_timing=False,
            kernel_manager_class=ThisPython,
            resources={"metadata": {"path": str(folder)}},
        )
        try:
            client.execute(env=environment)
        except CellTimeoutError:
            raise BuildError(f"{lesson}: a cell ran longer than {CELL_TIMEOUT} s. Make it smaller.") from None
        except DeadKernelError:
            raise BuildError(f"{lesson}: the kernel died. Run it in JupyterLab to see where.") from None
    for cell, keeper in kept:
        executed.cells.remove(keeper)
        for output in keeper.outputs:
            if output.output_type == "display_data":
                cell.outputs[-1].get("data", {}).update(output.data)  # in addition to the first picture
            else:
                cell.outputs.append(output)
    code = [cell for cell in executed.cells if cell.cell_type == "code"]
    for output in (output for cell in code for output in cell.outputs):
        for holder in (output, output.get("data", {})):
            for key, value in holder.items():
                if isinstance(value, str) and key in ("text", "text/plain", "text/html"):
                    holder[key] = re.sub(r"\bat 0x[0-9a-f]{6,}", "at 0x…", value)
    if not allow_errors:
        require_none([problem for cell in code for problem in _problems(cell, course, lesson)])
    executed.metadata = copy.deepcopy(notebook.metadata)
    return executed


def _problems(cell, course: Course, lesson: str) -> Iterator[str]:
    """Yield a sentence for each output that an executed cell must not have."""
    own_error = "raises-exception" in cell.metadata.get("tags", []) and "nbgrader" not in cell.metadata
    for output in cell.outputs:
        if output.output_type == "error" and not own_error:
            reason = output.evalue.strip().split("\n")[0]
            yield (
                f"{lesson}: cell {cell['id']} of the solution notebook raised {output.ename}: {reason}\n"
                f"Its first line is: {cell.source.splitlines()[0]}"
            )
        data = output.get("data", {})
        result = data.get("text/plain", "")
        if "nbgrader" in cell.metadata and result.startswith(("◐", "○")):  # a wrong option of a quiz does not raise
            first = result.split("\n")[0]
            yield f"{lesson}: a check of the solution notebook is not passed: {first}"
        if "image/png" in data or re.search(r"<img(?![^>]*\balt=\"[^\"]+\")", data.get("text/html", "")):
            yield f"{lesson}: cell {cell['id']} shows a figure without alt text. Use Picture(figure, alt)."
        text = str(output)
        for path in (str(course.root), sys.prefix):
            if path in text:
                advice = "Show no paths and no warnings."
                yield f"{lesson}: cell {cell['id']} shows a path of this computer ({path}). {advice}"
