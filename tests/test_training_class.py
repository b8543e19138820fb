"""A class submits lessons 11 and 12, whose answers are trained models, and is graded in the sandbox.

Every score must be the deserved one. The trained weights come from this run's solution notebooks. Some submissions
train in the sandbox. tests/lessons tries the metrics on odd answers.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import torch

from helpers import blocks, translator
from helpers.blocks import Transformer
from helpers.grading.batch import grade_lesson
from helpers.grading.folders import load
from helpers.grading.sandbox_files import find_bubblewrap
from helpers.widgets import checkpoint
from tests import sample_class

TRANSLATION, LANGUAGE = "11_translation", "12_language_model"
FILES = {TRANSLATION: "translator.safetensors", LANGUAGE: "language_model.safetensors"}
MEASURED = {TRANSLATION: "translate", LANGUAGE: "language_model_logits"}


@dataclass
class Submission:
    """A submission. answers: exercise -> its answer cell, if not the solution's. cells: text in other cells -> its
    replacement. numbers: its weights file. deserves: exercise -> its points, if not full points.
    mistake, says: the mistake and a part of the message in the measured exercise."""

    answers: dict[str, str] = field(default_factory=dict)
    cells: dict[str, str] = field(default_factory=dict)
    numbers: bytes | None = None
    deserves: dict[str, float] = field(default_factory=dict)
    mistake: str | None = None
    says: str = ""


def numbers_of(model, path: Path) -> bytes:
    """The bytes of a file with the model's weights."""
    checkpoint.write(model, path)
    return path.read_bytes()


def graded(lesson: sample_class.Lesson, folders, config, submissions: dict[str, Submission]) -> dict[str, str]:
    """Submit and grade everything, and require the deserved scores. Returns each learner's output of the measured
    exercise."""

    def change(hand_in):
        def edit(cells):
            left = dict(hand_in.cells)
            for cell in cells:
                for was in [was for was in left if was in sample_class.text(cell) and cell["cell_type"] == "code"]:
                    cell["source"] = sample_class.text(cell).replace(was, left.pop(was))
            assert not left, f"no cell of {lesson.name} holds {list(left)}"
            return cells

        return edit

    for student, hand_in in submissions.items():
        untouched = student == "untouched"
        answers = {} if untouched else {name: lesson.solutions[name] for name in [*lesson.exercises, *lesson.quizzes]}
        sample_class.hand_in(folders, lesson, student, answers | hand_in.answers, change(hand_in))
        if hand_in.numbers is not None:
            (folders.submitted / student / lesson.name / FILES[lesson.name]).write_bytes(hand_in.numbers)
    outcome = grade_lesson(folders, lesson.name, config=config)
    measured, wrong, words = MEASURED[lesson.name], [], {}
    full = {name: float(key.points) for name, key in lesson.keys.items()}
    for result in outcome.results:
        student, hand_in, points = result.student, submissions[result.student], result.points | result.bonus
        notebook = json.loads((folders.autograded / student / lesson.name / f"{lesson.name}.ipynb").read_text())
        words[student] = "".join(
            str(cell["outputs"]) for cell in notebook["cells"] if sample_class.grade_id(cell) == f"check_{measured}"
        )
        for name, deserved in (full | hand_in.deserves).items():
            if points[name] != deserved:
                wrong.append(f"{student}: {name} got {points[name]:g} ({result.mistakes.get(name)})")
        if (result.mistakes.get(measured) or [None])[0] != hand_in.mistake or hand_in.says not in words[student]:
            wrong.append(f"{student}: {measured} is told {result.mistakes.get(measured)}, {words[student][:600]}")
        if result.problem or (result.flags and not hand_in.deserves):
            wrong.append(f"{student}: {result.problem}, {result.flags}")
    assert sorted(words) == sorted(submissions)
    assert not wrong, "\n".join(wrong)
    return words


pytestmark = [pytest.mark.full, pytest.mark.timeout(1800)]


@pytest.fixture
def classroom(executed_solution, executed_folder, tmp_path):
    """classroom(lesson) -> (lesson, folders, config, the weights file that the solution notebook saved)."""
    find_bubblewrap()

    def make(name):
        executed_solution(name)
        folders, config = load(tmp_path / "gradebook")
        weights = executed_folder / f"{name}.kept" / FILES[name]
        return sample_class.Lesson(folders, name), folders, config, weights.read_bytes()

    return make


def nothing(lesson) -> dict[str, float]:
    return dict.fromkeys(lesson.keys, 0.0)


def test_submitted_translators_get_the_deserved_points(classroom, tmp_path):
    lesson, folders, config, trained = classroom(TRANSLATION)
    torch.manual_seed(1)
    sizes = (*translator.SIZES[:2], 16, 2, 32, 1, translator.SIZES[-1])
    small = numbers_of(Transformer(*sizes), tmp_path / "small")
    in_haste = {"5 if quick() else 300": "5"}  # steps of the warm-up on reversed words

    head = "def translate(sentences):\n"
    solution = lesson.solutions["translate"].replace("def translate", "def all_at_once")
    submissions = {
        "solved": Submission(numbers=trained),
        "without-numbers": Submission(cells=in_haste),
        "too-small": Submission(
            numbers=small,
            cells=in_haste | {"Transformer(*translator.SIZES)": f"Transformer(*{sizes})"},
            deserves={"translate": 0.0},
            mistake="not_trained",
            says="0 of 600 unseen sentences exactly right",
        ),
        "untouched": Submission(deserves=nothing(lesson), mistake="not_answered"),
        "three-of-four": Submission(
            {
                "translate": f"{solution}\n\n{head}    said, asked = all_at_once(sentences), len(sentences) // 4\n"
                "    return ['?'] * asked + said[asked:]"
            },
            in_haste,
            trained,
            {"translate": 11.0},
            says="unseen sentences exactly right (the check asks for 99.5%)",
        ),
        "the-grammar": Submission(
            {
                "translate": f"{head}    from helpers.corpus.translation import translate as known\n"
                "    return [known(s).french for s in sentences]"
            },
            in_haste,
            trained,
            {"translate": 0.0},
            "raises",
            "No module named",
        ),
    }
    graded(lesson, folders, config, submissions)


def test_submitted_language_models_get_the_deserved_points(classroom, tmp_path):
    lesson, folders, config, trained = classroom(LANGUAGE)
    torch.manual_seed(1)
    other = numbers_of(blocks.GPT(31, 64, 32, 2, 1), tmp_path / "other")
    model = "or_finished(GPT)(len(symbols), 64"  # start of the expression that creates the model
    in_haste = {"library.train, 200,": "library.train, 5,"}  # steps of the GPT on real text

    def saying(body):
        return {"language_model_logits": f"def language_model_logits(ids):\n    with torch.no_grad():\n{body}"}

    position_by_position = saying(
        "        return torch.cat([model(ids[:, : t + 1])[:, -1:] for t in range(ids.shape[1])], dim=1)"
    )
    blind = lesson.mistakes["GPT"]["not_causal"]
    submissions = {
        "solved": Submission(numbers=trained),
        "without-numbers": Submission(  # trains with the course's loss, as in the learner's notebook
            {"next_token_loss": lesson.mistakes["next_token_loss"]["viewed"]},
            in_haste,
            deserves={"next_token_loss": lesson.deserved("next_token_loss", "viewed")},
        ),
        "other-numbers": Submission(numbers=other, cells=in_haste),
        "too-small": Submission(
            numbers=other,
            cells=in_haste | {f"{model}, 64, 2, 2)": "GPT(len(symbols), 64, 32, 2, 1)"},
            deserves={"language_model_logits": 0.0},
            mistake="not_trained",
            says="the check asks for",
        ),
        "untouched": Submission(deserves=nothing(lesson), mistake="not_answered"),
        "slow": Submission(
            position_by_position | {"ngram_loss": lesson.mistakes["ngram_loss"]["divided_by_the_whole_text"]},
            in_haste,
            trained,
            {"ngram_loss": lesson.deserved("ngram_loss", "divided_by_the_whole_text")},
        ),
        "sees-all": Submission(
            {"GPT": blind},
            in_haste | {model: "GPT(len(symbols), 64"},
            trained,
            {"GPT": lesson.deserved("GPT", "not_causal"), "language_model_logits": 0.0},
            "sees_later_ids",
            "when only its ids from position",
        ),
        "the-source": Submission(
            saying(
                "        from helpers.corpus.source import Source\n"
                "        return torch.stack([Source().next_probabilities(row).log() for row in ids])"
            ),
            in_haste,
            trained,
            {"language_model_logits": 0.0},
            "raises",
            "No module named",
        ),
    }
    graded(lesson, folders, config, submissions)
