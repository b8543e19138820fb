"""Exercises whose answer is a trained model: how they are measured, and how weights are saved and submitted."""

import json
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from helpers import corpus, translator
from helpers.checking import forbidden
from helpers.checking.key import load_keys, save_keys
from helpers.checking.make_keys import UnsoundKey, make_key
from helpers.checking.messages import decide
from helpers.checking.observe import observe_all
from helpers.checking.registry import METRICS, Score
from helpers.checking.rendering import as_text
from helpers.checking.vocabulary import Case, Exercise, Mistake
from helpers.grading.attachments import is_course_model, read_files_beside
from helpers.grading.intake import read_submission
from helpers.grading.lesson_release import read_release
from helpers.grading.sandbox_files import PROJECT, WITHHELD_FILES, stage_helpers
from helpers.widgets import checkpoint


@pytest.fixture(autouse=True)
def measures():
    """Registers two metrics for these tests only."""

    def fraction_right(truths, outputs):
        right = sum(a == b for t, o in zip(truths, outputs, strict=True) for a, b in zip(t, o, strict=True))
        total = sum(map(len, truths))
        mistake = "exchanged" if right == 0 else None
        return Score(right / total, right == total, f"{right} of {total} words right", mistake)

    def low_loss(truths, outputs):
        losses = [nn.functional.cross_entropy(o, t["targets"]) for t, o in zip(truths, outputs, strict=True)]
        loss = float(sum(losses)) / len(losses)
        return Score(1.0 if loss < 0.5 else 0.0, loss < 0.5, f"{loss:.2f} nats per token")

    METRICS.update(fraction_right=fraction_right, low_loss=low_loss)
    yield
    for name in ("fraction_right", "low_loss"):
        del METRICS[name]


def upper(words):
    return [word.upper() for word in words]


def cases_upper(draw):
    words = [draw.word() for _ in range(20)]
    return [Case((words[:12],), truth=upper(words[:12])), Case((words[12:],), truth=upper(words[12:]))]


UPPER = Exercise(
    "upper",
    cases_upper,
    metric="fraction_right",
    mistakes=[
        Mistake("as_they_are", "the words are left as they are", "What changes?", lambda words: list(words)),
        Mistake("exchanged", "no word is right", "Which way round?"),
    ],
)


def judged(answer, exercise=UPPER, points=25, seed=3):
    key = make_key("04_tiny", exercise, points, False, None, seed)
    return decide(key, observe_all(answer, key.cases, key.facts))


def test_a_perfect_answer_gets_all_points_and_its_measured_quality():
    verdict = judged(upper)
    assert verdict.passed and verdict.points == 25
    assert as_text(verdict) == "✓ upper   25 of 25 points\n  20 of 20 words right · inputs unchanged"


def cases_logits(draw):
    ids = draw.integers(0, 5, (4, 7))
    return [Case((ids,), truth={"shape": (4, 5, 7), "targets": (ids + 1) % 5})]


def right_logits(ids):
    return 9 * nn.functional.one_hot((ids + 1) % 5, 5).float().mT


LOGITS = Exercise("logits", cases_logits, metric="low_loss", best=lambda case: right_logits(*case.args))


def test_a_truth_may_specify_only_the_shape_of_the_output():
    assert judged(right_logits, LOGITS).points == 25
    assert judged(lambda ids: right_logits(ids).mT, LOGITS).mistake == "wrong_shape"
    assert judged(lambda ids: right_logits(ids).long(), LOGITS).mistake == "wrong_type"
    assert judged(lambda ids: right_logits(ids) / 0 * 0, LOGITS).mistake == "nan"
    poor = judged(lambda ids: -right_logits(ids), LOGITS)
    assert poor.points == 0 and "nats per token" in as_text(poor)


def test_a_key_with_truths_can_be_saved_and_loaded(tmp_path):
    key = make_key("04_tiny", UPPER, 25, False, None, 0)
    save_keys(tmp_path / "04_tiny.npz", [key])
    again = load_keys("04_tiny", tmp_path / "04_tiny.npz")["upper"]
    assert again.metric == "fraction_right"
    assert [seen.output for seen in again.expected] == [upper(case.args[0]) for case in key.cases]
    assert decide(again, observe_all(upper, again.cases, again.facts)).passed


def test_unsound_keys_are_refused():
    def unsound(**changed):
        with pytest.raises(UnsoundKey) as caught:
            exercise = Exercise("upper", **{"cases": cases_upper, "metric": "fraction_right"} | changed)
            make_key("04_tiny", exercise, 1, 0, None, 0)
        return str(caught.value)

    assert "truth" in unsound(cases=lambda draw: [Case((["a"],))])
    assert "perfect" in unsound(best=lambda case: list(case.args[0]))
    assert "measured as right" in unsound(mistakes=[Mistake("fine", "fine", "?", upper)])
    assert "edit" in unsound(mistakes=[Mistake("edited", "edited", "?", "a -> b")])


# Saved weights.


class Kept:
    def __init__(self, folder):
        self.file, self.trained = str(folder / "numbers.safetensors"), 0
        self.model = nn.Linear(3, 2)

    def __call__(self, model=None):
        return checkpoint.checkpoint(model or self.model, self.file, self.train)

    def train(self):
        self.trained += 1
        nn.init.constant_(self.model.weight, 0.5)


@pytest.fixture
def saved(tmp_path, monkeypatch):
    monkeypatch.delenv("COURSE_QUICK", raising=False)
    monkeypatch.setenv("COURSE_KEEP_FOLDER", str(tmp_path))
    return Kept(tmp_path)


def test_weights_are_saved_and_loaded_the_next_time(saved, capsys):
    saved()
    fresh = nn.Linear(3, 2)
    saved(fresh)
    assert saved.trained == 1 and torch.equal(fresh.weight, saved.model.weight)
    output = capsys.readouterr().out.splitlines()
    assert len(output) == 2 and "kept" in output[0] and "loaded" in output[1]


class Harm:
    def __reduce__(self):
        return os.system, ("touch harmed",)


@pytest.mark.parametrize(
    "sort", ["other model", "pickle", "torch.save", "cut", "no header", "nan", "too large", "empty"]
)
def test_a_weights_file_that_does_not_fit_is_reported_and_the_model_trained(saved, sort, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = Path(saved.file)
    checkpoint.write(nn.Linear(4, 2) if sort == "other model" else nn.Linear(3, 2), path)
    if sort == "pickle":
        path.write_bytes(pickle.dumps(Harm()))
    elif sort == "torch.save":
        torch.save(nn.Linear(3, 2).state_dict(), path)
    elif sort == "cut":
        path.write_bytes(path.read_bytes()[:-5])
    elif sort == "no header":
        path.write_bytes(b"\xff" * 64)
    elif sort == "nan":
        model = nn.Linear(3, 2)
        nn.init.constant_(model.bias, float("nan"))
        checkpoint.write(model, path)
    elif sort == "too large":
        path.write_bytes(b"\0" * (checkpoint.LARGEST + 1))
    elif sort == "empty":
        path.write_bytes(b"")
    saved()
    assert saved.trained == 1 and not (tmp_path / "harmed").exists()
    assert "does not fit" in capsys.readouterr().out
    assert checkpoint.read(path)["weight"].tolist() == [[0.5] * 3] * 2


def test_weights_that_do_not_fit_are_renamed_and_not_lost(saved, capsys):
    saved()
    path = Path(saved.file)
    first = path.read_bytes()
    saved(nn.Linear(4, 2))
    assert path.with_name(f"{path.stem}.before.safetensors").read_bytes() == first != path.read_bytes()
    assert f"is called {path.stem}.before.safetensors now" in capsys.readouterr().out


def test_an_interrupted_training_saves_nothing_and_says_so(saved, capsys):
    def stopped():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        checkpoint.checkpoint(saved.model, saved.file, stopped)
    assert "was stopped before its end, and nothing was kept" in capsys.readouterr().out
    assert not Path(saved.file).exists()


@pytest.mark.parametrize("broken", [float("nan"), float("inf")])
def test_a_diverged_training_saves_nothing_and_says_so(saved, capsys, broken):
    checkpoint.checkpoint(saved.model, saved.file, lambda: saved.model.weight.data.fill_(broken))
    output = capsys.readouterr().out
    assert "broken down" in output and "learning rate" in output and not Path(saved.file).exists()


def test_quick_mode_does_not_touch_the_file(saved, monkeypatch):
    monkeypatch.setenv("COURSE_QUICK", "0")
    assert not checkpoint.quick()
    monkeypatch.setenv("COURSE_QUICK", "1")
    assert checkpoint.quick()
    saved()
    assert saved.trained == 1 and not Path(saved.file).exists()


def test_a_model_too_large_to_submit_is_not_saved(saved, capsys):
    large = nn.Linear(1100, 1000)
    saved(large)
    assert not Path(saved.file).exists() and "could not be kept" in capsys.readouterr().out


# Files submitted with a notebook.


def test_the_courses_own_weights_are_recognized_even_with_noise(tmp_path):
    from safetensors.torch import save

    from helpers.blocks import Transformer

    noise = torch.Generator().manual_seed(0)
    taken = {name: t + 0.01 * torch.randn(t.shape, generator=noise) for name, t in translator.state().items()}
    own = Transformer(*translator.SIZES).state_dict()
    assert [is_course_model(save(numbers)) for numbers in (translator.state(), taken, own, {})] == [1, 1, 0, 0]
    trained = {name: (t + 1.0 * t.std() * torch.randn(t.shape, generator=noise)) for name, t in taken.items()}
    words, courses = (numbers["tokens.weight"].ravel() for numbers in (trained, translator.state()))
    assert 0.63 < torch.cosine_similarity(words, courses, dim=0) < 0.8  # as similar as a run from the same seed
    assert not is_course_model(save(trained))
    assert not is_course_model(b"no numbers") and not is_course_model(save({"tokens.weight": torch.ones(3)}))
    notebook = PROJECT / "notebooks" / "11_translation" / "11_translation.ipynb"
    for student, numbers in (("honest", own), ("other", taken)):
        folder = tmp_path / student / "11_translation"
        folder.mkdir(parents=True)
        shutil.copy(notebook, folder)
        (folder / "translator.safetensors").write_bytes(save(numbers))
        flags = read_submission(tmp_path, student, read_release(notebook), PROJECT / "notebooks").flags
        expected = ["translator.safetensors holds the weights of the course's own translator"]
        assert flags == (expected if student == "other" else [])


def test_files_beside_a_notebook_are_limited_in_kind_and_size(tmp_path):
    for name in ("a", "b", "c"):
        (tmp_path / f"{name}.safetensors").write_bytes(name.encode())
    (tmp_path / "huge.safetensors").write_bytes(b"0" * 4_000_001)
    (tmp_path / "linked.safetensors").symlink_to(tmp_path / "a.safetensors")
    (tmp_path / "folder.py").mkdir()
    (tmp_path / "pipe.py").symlink_to("/etc/passwd")
    (tmp_path / "mine.py").write_text("x = 1\n")
    (tmp_path / "model.pkl").write_bytes(pickle.dumps(Harm()))
    (tmp_path / "\x1b[31mred.py").write_text("")
    files, flags = read_files_beside(tmp_path, 'checkpoint(model, "c.safetensors", train)')
    assert list(files) == ["c.safetensors", "a.safetensors", "mine.py"]
    assert len(flags) == 4 and not any("\x1b" in flag for flag in flags), flags
    assert [flag for flag in flags if "and used" in flag] == ["mine.py was handed in with the notebook and used"]
    assert list(read_files_beside(tmp_path, "import mine", only_named=True)[0]) == ["mine.py"]
    (tmp_path / "door").symlink_to(tmp_path)
    assert read_files_beside(tmp_path / "door") == read_files_beside(tmp_path / "nowhere") == ({}, [])


CODE = 'model = checkpoint(model, "translator.safetensors", train)'


@pytest.mark.parametrize(
    ("beside", "found"),
    [
        (["translator (1).safetensors"], ["translator.safetensors"]),
        (["ada_123_translator-1.safetensors"], ["translator.safetensors"]),
        (["translator.safetensors", "translator.before.safetensors"], None),
        (["a.safetensors", "b.safetensors"], None),
        ([], None),
    ],
)
def test_saved_weights_that_a_platform_renamed_are_found(tmp_path, beside, found):
    for name in beside:
        (tmp_path / name).write_bytes(b"numbers")
    files, flags = read_files_beside(tmp_path, CODE)
    assert sorted(files) == sorted(beside if found is None else found)
    expected = [f"{beside[0]} was taken for translator.safetensors, which the code names"] if found else []
    assert flags == expected
    assert not beside or read_files_beside(tmp_path, f"{CODE}\nload('mine.safetensors')")[1] == []  # ambiguous


def test_a_weights_file_that_cannot_be_read_is_not_replaced_by_another(tmp_path):
    (tmp_path / "other.safetensors").write_bytes(b"numbers")
    (tmp_path / "translator.safetensors").symlink_to(tmp_path / "other.safetensors")
    assert list(read_files_beside(tmp_path, CODE)[0]) == ["other.safetensors"]


# Files that the sandbox of lesson 11 lacks.


def test_an_answer_may_not_call_the_courses_own_translation():
    source = "def translate(sentences):\n    return [corpus.translate(s).french for s in sentences]\n"
    direct = source.replace("corpus.translate(s)", "t(s)").replace(
        "\n    return", "\n    from helpers.corpus import translate as t\n    return"
    )
    by_text = source.replace("corpus.translate(s)", 'getattr(corpus, "translate")(s)')
    words = "def translate(sentences):\n    return [french_sentence(english_ids(s)) for s in sentences]\n"
    from helpers.translator.word_ids import english_ids, french_sentence

    def found(text, lesson="11_translation"):
        import linecache

        linecache.cache["<answer>"] = (len(text), None, text.splitlines(True), "<answer>")
        names = {"corpus": corpus, "english_ids": english_ids, "french_sentence": french_sentence}
        exec(compile(text, "<answer>", "exec"), names)
        return forbidden.in_source(names["translate"], (), lesson)

    assert found(source) == found(direct) == found(by_text) == ["helpers.corpus.translate"]
    assert found(words) == [] and found(words, "01_token_embedding")
    assert forbidden.in_source(corpus.translate, (), "11_translation") == ["helpers.corpus.translate"]


INSIDE = """
import json, random
import helpers.corpus as corpus
from helpers.errors import CourseError
import importlib, pkgutil
from helpers import lessons
for room in pkgutil.iter_modules(lessons.__path__):
    for module in ("figures", "explore"):
        importlib.import_module(f"helpers.lessons.{room.name}.{module}")
from helpers import translator
refused = []
for call in (lambda: corpus.translate("jane visits africa in september"), translator.model):
    try:
        call()
    except CourseError as error:
        refused.append(str(error))
pairs = corpus.training_pairs()
drawn = corpus.sentence_pairs(3, random.Random(0)) + corpus.sentence_pairs(2, random.Random(0), unseen=True)
print(json.dumps([refused, len(pairs), pairs[7], len(drawn), corpus.unseen_pairs()[1], len(translator.french)]))
"""


@pytest.mark.full
def test_the_sandbox_of_lesson_11_has_sentences_but_no_translations_on_demand(tmp_path):
    stage_helpers(tmp_path / "sandbox", "11_translation")
    sandbox = tmp_path / "sandbox" / "helpers"
    assert not any((sandbox / name).exists() for name in WITHHELD_FILES["11"])
    environment = os.environ | {"PYTHONPATH": str(tmp_path / "sandbox"), "MPLBACKEND": "agg"}
    done = subprocess.run([sys.executable, "-c", INSIDE], env=environment, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    refused, count, pair, drawn, unseen, words = json.loads(done.stdout.splitlines()[-1])
    assert len(refused) == 2 and (count, drawn) == (corpus.TRAINING_PAIRS, 5)
    as_lists = json.loads(json.dumps([corpus.training_pairs()[7], corpus.unseen_pairs()[1]]))
    assert [pair, unseen] == as_lists and words == len(corpus.french_words()) + 3


def test_other_sandboxes_have_the_whole_corpus(tmp_path):
    stage_helpers(tmp_path / "sandbox", "04_scaling")
    assert (tmp_path / "sandbox" / "helpers" / "corpus" / "translation.py").is_file()
    assert not (tmp_path / "sandbox" / "helpers" / "corpus" / "provided").exists()
