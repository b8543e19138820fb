"""An answer that needs a package which the grader lacks waits for a person. All other answers are judged."""

from pathlib import Path

import pytest

from helpers.grading.not_supported import missing_packages
from helpers.grading.submission import Cell
from tests.test_newer_python import RIGHT, read, waiting

NEEDS = {
    "imported with the answer": (
        "scaled_scores",
        "from of_home import scale\ndef scaled_scores(Q, K):\n    return scale(Q @ K.mT)",
    ),
    "inside of it": (
        "scaled_scores",
        "def scaled_scores(Q, K):\n    import of_home.of as oh\n    return oh.scale(Q, K)",
    ),
    "through a helper": (
        "scaled_scores",
        "import of_home as oh\ndef rows(Q):\n    return oh.rows(Q)\ndef scaled_scores(Q, K):\n    return rows(Q)",
    ),
    "in another cell": (
        "score_variance",
        "import of_home\ndef score_variance(Q, K):\n    return of_home.variance(Q, K)",
    ),
}


@pytest.mark.parametrize("exercise, source", NEEDS.values(), ids=NEEDS)
def test_an_answer_that_needs_a_missing_package_waits_and_the_package_is_named(tmp_path, exercise, source):
    submission = read(tmp_path, **{exercise: source})
    assert waiting(submission) == [exercise]
    message = "waits for a person, unless it passes without of_home, which the grader does not have"
    assert submission.flags == [f"{exercise} {message}"]


DOES_NOT = {
    "unused": f"import of_home, google.colab\nfrom of_home import scale\n{RIGHT}",
    "a module that the notebook writes": f"%%writefile of_home.py\ndef scale(x): return x\n{RIGHT}",
    "installed": f"import numpy.linalg as la, __main__\nfrom helpers.blocks import embed\n{RIGHT}",
}


@pytest.mark.parametrize("source", DOES_NOT.values(), ids=DOES_NOT)
def test_an_answer_that_does_not_use_the_package_does_not_wait(tmp_path, source):
    assert waiting(read(tmp_path, scaled_scores=source)) == []


def test_a_module_beside_the_notebook_does_not_count_as_missing(tmp_path):
    (tmp_path / "ada" / "04_scaling").mkdir(parents=True)
    (tmp_path / "ada" / "04_scaling" / "of_home.py").write_text("def scale(x): return x")
    submission = read(tmp_path, scaled_scores=NEEDS["imported with the answer"][1])
    assert waiting(submission) == []


def test_each_package_is_looked_up_only_once(monkeypatch):
    looked_at = []
    monkeypatch.setattr(Path, "is_file", lambda path: looked_at.append(path))
    cells = [Cell("a", "import of_home.a\n" * 100), Cell("b", "def f():\n" + "    import of_home.b, of_work\n" * 100)]
    assert missing_packages(cells, Path()) == {"of_home": "of_home", "f": "of_work"}
    assert looked_at == [Path("of_home.py"), Path("of_work.py")]
