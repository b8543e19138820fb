"""The list of places of a name, which makes a rename one command."""

import subprocess

import pytest

from tests.name_places import places, rename


@pytest.fixture
def repository(tmp_path):
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    (tmp_path / "a.py").write_text("def scores(Q):\n    return Q\n\n\nscores_of = scores\n")
    (tmp_path / "b.md").write_text("`scores` and raw-scores\n")
    (tmp_path / "c.ipynb").write_text('"scores"')
    subprocess.run(["git", "add", "."], cwd=tmp_path, check=True)
    return tmp_path


def test_whole_words_outside_of_built_files_are_places(repository):
    assert places("scores", repository) == {"a.py": [1, 5], "b.md": [1]}


def test_a_rename_changes_them_all_and_takes_no_name_that_is_known(repository):
    with pytest.raises(ValueError, match="scores_of is already known in a.py"):
        rename("scores", "scores_of", repository)
    assert rename("scores", "products", repository) == 2
    assert (repository / "a.py").read_text() == "def products(Q):\n    return Q\n\n\nscores_of = products\n"
    assert (repository / "b.md").read_text() == "`products` and raw-scores\n"
    assert (repository / "c.ipynb").read_text() == '"scores"'
