"""Make the learner's notebook, exactly as nbgrader's own release does with the settings of nbgrader_config.py.

The pictures that don't depend on an answer are kept, so that the notebook is worth reading before it is run.
"""

import ast
import copy
import re

import nbformat
from nbgrader.converters import GenerateAssignment
from nbgrader.preprocessors import ClearOutput, ClearSolutions
from traitlets.config import Config

from helpers.released import released_cell, without_answer

KEPT = 680_000  # bytes of outputs: a learner's notebook stays under 800 kB
LIVE = {"check", "progress", "at_work", "or_finished"}  # functions that show a learner's own work
ASKED = re.compile(r"\bPredict\b|\b[Bb]efore you\s(run|look)\b")  # the learner should predict the next outputs
# Shown below the picture of an explorer, which does not move until its cell has run.
STILL = "<p><em>Run this cell to use the controls.</em></p>"
FINISHED = "<p><em>Made with finished answers. Run this cell to use the controls, with your own answers.</em></p>"


class ClearAnswers(ClearSolutions):
    """nbgrader's ClearSolutions, with the rules of helpers/released/."""

    def preprocess_cell(self, cell, resources, cell_index):
        if cell.metadata.get("nbgrader", {}).get("solution"):
            cell.source = without_answer(cell.source, cell.cell_type, cell.metadata.nbgrader.grade_id)
        return cell, resources


class ClearOutputs(ClearOutput):
    """nbgrader's ClearOutput, except that it keeps figures that don't depend on answers, and the first pictures of
    explorers, up to KEPT bytes in the notebook's order.

    A figure below words such as *predict before you run* is removed, because it is the answer.
    """

    def preprocess(self, nb, resources):
        self.kept, remaining = {}, KEPT
        for index, below in given_figures(nb).items():
            remaining -= len(str(nb.cells[index].outputs))
            if remaining >= 0:
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
            shown = cell.outputs[-1].data  # drops the other pictures of a trained model's explorer
            page = shown["text/html"] + self.kept[cell_index]
            cell.outputs[-1].data = {"text/html": page, "text/plain": shown["text/plain"]}
        return cell, resources


def given_figures(notebook) -> dict[int, str]:
    """The cells that show a picture without giving an answer away: index -> the HTML to put below the picture.

    A figure must not depend on an answer, directly or through variables, while an explorer may. Pictures below a
    request for a prediction are left out.
    """
    learners, figures, to_predict = set(LIVE), {}, False
    for index, cell in enumerate(notebook.cells):
        if cell.cell_type != "code":
            to_predict = bool(ASKED.search(cell.source))
            continue
        tree = ast.parse(cell.source)
        names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        answer = cell.metadata.get("nbgrader", {})
        if answer.get("solution"):
            learners.add(answer["grade_id"])
        shown = "".join(str(output.get("data", {}).get("text/html", "")) for output in cell.get("outputs", []))
        if shown and "explore" in names and not to_predict:
            figures[index] = FINISHED if names & learners else STILL
        if answer or "explore" in names or names & learners:
            # Whatever such a cell defines or changes depends on an answer as well.
            stored = (node for node in ast.walk(tree) if isinstance(getattr(node, "ctx", None), ast.Store))
            learners |= {node.id for node in stored if isinstance(node, ast.Name)}
            learners |= {node.name for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
        elif not to_predict and "<img " in shown:
            figures[index] = ""
    return figures


def configure(config: Config) -> None:
    """Put the release settings into nbgrader's configuration."""
    steps = GenerateAssignment.class_traits()["preprocessors"].default()
    replaced = {ClearSolutions: ClearAnswers, ClearOutput: ClearOutputs}
    config.GenerateAssignment.preprocessors = [replaced.get(step, step) for step in steps]
    config.IncludeHeaderFooter.enabled = False
    config.InstantiateTests.enabled = False


def student_notebook(solution) -> str:
    """The text of the learner's .ipynb, made from an executed solution as `nbgrader generate_assignment` makes it."""
    notebook = nbformat.from_dict({**solution, "cells": [released_cell(copy.deepcopy(one)) for one in solution.cells]})
    notebook, _ = ClearOutputs().preprocess(notebook, {})
    return nbformat.writes(notebook) + "\n"
