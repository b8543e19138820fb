"""The learner's notebook, made by nbgrader's own release preprocessors; nbgrader_config.py takes its settings here.

It keeps the pictures that need no answer, so that it is worth looking at before it is run.
"""

import ast
import copy
import re

from nbconvert.exporters import NotebookExporter
from nbgrader.converters import GenerateAssignment
from nbgrader.preprocessors import ClearOutput, ClearSolutions, SaveCells
from traitlets.config import Config

from helpers.authoring import BuildError
from helpers.released import OPTIONS

KEPT = 680_000  # bytes of outputs: a learner's notebook stays under 800 kB
LIVE = {"check", "progress", "at_work", "or_finished"}  # what shows a learner's own work
ASKED = re.compile(r"\bPredict\b|\b[Bb]efore you\s(run|look)\b")  # the learner shall guess what the next cells show
# Below an explorer's picture, which stands still until it has run.
STILL = "<p><em>Run this cell to use the controls.</em></p>"
FINISHED = "<p><em>Made with finished answers. Run this cell to use the controls, with your own answers.</em></p>"


class ClearAnswers(ClearSolutions):
    """nbgrader's ClearSolutions, with two differences: an answer that is a value (`quiz_1 = None`) needs no stub, and
    `**options`, which a solution may take for the course's own use, is no part of the skeleton."""

    def preprocess_cell(self, cell, resources, cell_index):
        before = cell.source
        cell, resources = super().preprocess_cell(cell, resources, cell_index)
        name = re.escape(cell.metadata.get("nbgrader", {}).get("grade_id", ""))
        if cell.source != before:
            cell.source = cell.source.replace(OPTIONS, "):")
            if re.search(rf"^{name} = None\b", cell.source, re.MULTILINE):
                cell.source = "\n".join(line for line in cell.source.split("\n") if line != self.code_stub["python"])
        return cell, resources


class ClearOutputs(ClearOutput):
    """nbgrader's ClearOutput, except that figures which come from given numbers stay, in the notebook's order, and of
    explorers the picture that they open with.

    A figure below the words *predict before you run* goes: it is the answer.
    """

    def preprocess(self, nb, resources):
        self.kept, room = {}, KEPT
        for index, below in given_figures(nb).items():
            room -= len(str(nb.cells[index].outputs))
            if room >= 0:
                self.kept[index] = below
        return super().preprocess(nb, resources)

    def preprocess_cell(self, cell, resources, cell_index):
        if cell_index not in self.kept:
            return super().preprocess_cell(cell, resources, cell_index)
        cell.execution_count = None
        for output in cell.outputs:
            if output.output_type == "execute_result":
                output.execution_count = None
        if self.kept[cell_index]:
            shown = cell.outputs[-1].data  # a trained model's explorer has its other pictures there too
            page = shown["text/html"] + self.kept[cell_index]
            cell.outputs[-1].data = {"text/html": page, "text/plain": shown["text/plain"]}
        return cell, resources


def given_figures(notebook) -> dict[int, str]:
    """The cells that show a picture and give no answer away, by their indices, with what shall stand below it.

    A figure rests on no answer, directly or by a variable; an explorer may. The text above asks for no prediction.
    """
    learners, figures, asked = set(LIVE), {}, False
    for index, cell in enumerate(notebook.cells):
        if cell.cell_type != "code":
            asked = bool(ASKED.search(cell.source))
            continue
        tree = ast.parse(cell.source)
        names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        answer = cell.metadata.get("nbgrader", {})
        if answer.get("solution"):
            learners.add(answer["grade_id"])
        shown = "".join(str(output.get("data", {}).get("text/html", "")) for output in cell.get("outputs", []))
        if shown and "explore" in names and not asked:
            figures[index] = FINISHED if names & learners else STILL
        if answer or "explore" in names or names & learners:
            # What such a cell makes or changes rests on an answer as well.
            stored = (node for node in ast.walk(tree) if isinstance(getattr(node, "ctx", None), ast.Store))
            learners |= {node.id for node in stored if isinstance(node, ast.Name)}
            learners |= {node.name for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
        elif not asked and "<img " in shown:
            figures[index] = ""
    return figures


def configure(config: Config) -> None:
    """Put the release settings into nbgrader's configuration."""
    steps = GenerateAssignment.class_traits()["preprocessors"].default()
    replaced = {ClearSolutions: ClearAnswers, ClearOutput: ClearOutputs}
    config.GenerateAssignment.preprocessors = [replaced.get(step, step) for step in steps]
    config.ClearSolutions.code_stub = {"python": "raise NotImplementedError"}
    config.ClearSolutions.text_stub = "*Write your answer here.*"
    config.IncludeHeaderFooter.enabled = False
    config.InstantiateTests.enabled = False


def student_notebook(notebook, lesson: str) -> str:
    """The text of the learner's .ipynb: what `nbgrader generate_assignment` makes, without its gradebook.

    notebook: the solution notebook, executed.
    """
    config = Config()
    configure(config)
    config.Exporter.default_preprocessors = []
    exporter = NotebookExporter(config=config)
    for step in config.GenerateAssignment.preprocessors:
        if step is not SaveCells:  # it writes to the gradebook and leaves the notebook as it is
            exporter.register_preprocessor(step)
    try:
        text, _ = exporter.from_notebook_node(copy.deepcopy(notebook), resources={"unique_key": lesson})
    except RuntimeError as error:
        raise BuildError(f"nbgrader could not release {lesson}: {error}.") from None
    return text
