"""The learner's notebook, made by nbgrader's own release preprocessors; nbgrader_config.py takes its settings here."""

from __future__ import annotations

import re

from nbconvert.exporters import NotebookExporter
from nbgrader.converters import GenerateAssignment
from nbgrader.preprocessors import ClearSolutions, SaveCells
from traitlets.config import Config

from helpers.authoring.text import BuildError


class ClearAnswers(ClearSolutions):
    """nbgrader's ClearSolutions, except that an answer which is a value (`quiz_1 = None`) needs no stub to run."""

    def _replace_solution_region(self, cell, language):
        replaced = super()._replace_solution_region(cell, language)
        name = re.escape(cell.metadata.get("nbgrader", {}).get("grade_id", ""))
        if replaced and cell.cell_type == "code" and re.search(rf"^{name} = None\b", cell.source, re.MULTILINE):
            stub = self.code_stub[language]
            cell.source = "\n".join(line for line in cell.source.split("\n") if line != stub)
        return replaced


def configure(config: Config) -> None:
    """Put the release settings into nbgrader's configuration."""
    config.GenerateAssignment.preprocessors = _preprocessors()
    config.ClearSolutions.code_stub = {"python": "raise NotImplementedError"}
    config.ClearSolutions.text_stub = "*Write your answer here.*"
    config.IncludeHeaderFooter.enabled = False
    config.InstantiateTests.enabled = False


def _preprocessors() -> list[type]:
    steps = GenerateAssignment.class_traits()["preprocessors"].default()
    return [ClearAnswers if step is ClearSolutions else step for step in steps]


def student_notebook(notebook, lesson: str) -> str:
    """The text of the learner's .ipynb: what `nbgrader generate_assignment` makes, without its gradebook."""
    config = Config()
    configure(config)
    config.Exporter.default_preprocessors = []
    exporter = NotebookExporter(config=config)
    for step in config.GenerateAssignment.preprocessors:
        if step is not SaveCells:  # it writes to the gradebook and leaves the notebook as it is
            exporter.register_preprocessor(step)
    try:
        text, _ = exporter.from_notebook_node(notebook, resources={"unique_key": lesson})
    except RuntimeError as error:
        raise BuildError(f"nbgrader could not release {lesson}: {error}.") from None
    return text
