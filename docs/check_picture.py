"""Make docs/check.webp, the README's picture of a wrong answer in lesson 4 and its check, in JupyterLab.

    python -m docs.check_picture

It opens the built notebook in Chromium, so build lesson 4 first. Run it again if the exercise or its message changes.
"""

import io
import tempfile
from pathlib import Path

import nbformat
from PIL import Image

from tests import lab

NAME = "scaled_scores"
LINES = "    d_k = Q.shape[-1]\n    return Q @ K.transpose(-2, -1) / d_k  # (..., T_q, T_k)"


def main() -> int:
    notebook = nbformat.read("notebooks/04_scaling/04_scaling.ipynb", as_version=4)
    (first,) = (i for i, cell in enumerate(notebook.cells) if f"Exercise 4.2 `{NAME}`" in cell.source)
    setup = [cell for cell in notebook.cells[:first] if cell.cell_type == "code" and "import" in cell.source]
    shown = notebook.cells[first : first + 3]  # the contract, the answer cell and the check cell
    notebook.cells = [*setup, *shown]
    stub = "    raise NotImplementedError"
    assert stub in shown[1].source
    shown[1].source = shown[1].source.replace(stub, LINES)
    with tempfile.TemporaryDirectory() as folder, lab.course_in_lab(Path(folder)) as (url, page):
        nbformat.write(notebook, Path(folder) / "notebooks/04_scaling/picture.ipynb")
        page.set_viewport_size({"width": 1270, "height": 1600})
        lab.open_notebook(page, url, "notebooks/04_scaling/picture.ipynb")
        lab.run_all(page)
        lab.cell(page, shown[2].id, shows="img")
        scroll = "i => window.jupyterapp.shell.currentWidget.content.scrollToItem(i, 'start')"
        page.evaluate(scroll, len(setup))
        page.wait_for_timeout(1000)
        first, _, last = (
            page.locator(f'.jp-Cell[data-windowed-list-index="{len(setup) + i}"]').bounding_box() for i in range(3)
        )
        clip = first | {"height": last["y"] + last["height"] - first["y"]}
        picture = Image.open(io.BytesIO(page.screenshot(clip=clip)))
    picture.save(Path(__file__).with_name("check.webp"), lossless=True, method=6)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
