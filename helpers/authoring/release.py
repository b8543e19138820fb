"""The learner's notebook, as nbgrader's own release makes it too: nbgrader_config.py takes its settings here.

It keeps the pictures that need no answer, so that it is worth looking at before it is run.
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
LIVE = {"check", "progress", "at_work", "or_finished"}  # what shows a learner's own work
ASKED = re.compile(r"\bPredict\b|\b[Bb]efore you\s(run|look)\b")  # the learner shall guess what the next cells show
# Below an explorer's picture, which stands still until it has run.
STILL = "<p><em>Run this cell to use the controls.</em></p>"
FINISHED = "<p><em>Made with finished answers. Run this cell to use the controls, with your own answers.</em></p>"


class ClearAnswers(ClearSolutions):
    """nbgrader's ClearSolutions, as helpers/released/ has it."""

    def preprocess_cell(self, cell, resources, cell_index):
        if cell.metadata.get("nbgrader", {}).get("solution"):
            cell.source = without_answer(cell.source, cell.cell_type, cell.metadata.nbgrader.grade_id)
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
    config.IncludeHeaderFooter.enabled = False
    config.InstantiateTests.enabled = False


def student_notebook(solution) -> str:
    """The text of the learner's .ipynb of a solution notebook, executed: what `nbgrader generate_assignment` makes."""
    notebook = nbformat.from_dict({**solution, "cells": [released_cell(copy.deepcopy(one)) for one in solution.cells]})
    notebook, _ = ClearOutputs().preprocess(notebook, {})
    return nbformat.writes(notebook) + "\n"
