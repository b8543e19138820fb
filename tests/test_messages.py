"""The messages of a check: what it shows of a wrong answer, line by line, readable on light and dark pages."""

import base64
import json
import math
import re
import subprocess
import sys

import pytest
import torch

from helpers import progress
from helpers.answer_keys import contents
from helpers.check import CheckFailed, NotAnswered
from helpers.checking import session
from helpers.checking.diagnosis import by_values
from helpers.checking.make_keys import make_key
from helpers.checking.messages import decide
from helpers.checking.observe import HELPERS, observe_all
from helpers.checking.registry import SCENARIOS, STUBS, VIEWS, Registry, scenario, stub
from helpers.checking.rendering import HUE_PERCENT, HUES, as_html, as_text, tint
from helpers.checking.verdict import decide_quiz
from helpers.checking.vocabulary import Case, Exercise, Quiz, tensor_cases
from helpers.checking.wording import written
from helpers.course import CourseError
from helpers.drawing import colors
from helpers.progress import remember
from tests.lab import ROOT

LESSON = "50_test"
AXES = ("query", "key")


def weights(Q, K):
    return torch.softmax(Q @ K.mT, -1)


def matrix_cases(draw):
    def make(dtype, *lead):
        return draw.normal(*lead, 5, 4, dtype=dtype), draw.normal(*lead, 7, 4, dtype=dtype)

    return [
        *tensor_cases(make),
        Case((torch.tensor([[1.0, 2.0]]), torch.tensor([[0.5, 0.25]])), part="one row"),
        Case((torch.zeros(2, 3), torch.zeros(3, 3)), part="zeros"),
    ]


def judge(exercise, reference, answer, points=20):
    key = make_key(LESSON, exercise, points, False, reference, 7)
    return decide(key, observe_all(answer, key.cases, key.facts))


def text_of(answer, exercise=None, reference=weights):
    return as_text(judge(exercise or Exercise("weights", matrix_cases, axes=AXES), reference, answer))


def one_case(*args, reference, answer, **options):
    return text_of(answer, Exercise("f", lambda d: [Case(args, **options)], axes=()), reference)


def test_each_detail_stands_below_the_line_of_its_part():
    def wrong(Q, K):
        found = weights(Q, K)
        return torch.full_like(found, 2.0) if len(Q) == 1 else found.squeeze(0) + 0.5 * (Q == 0).all()

    lines = text_of(wrong).splitlines()
    first, second = lines.index("  ✗ one row"), lines.index("  ✗ zeros")
    assert lines[first + 1].startswith("      ") and second - first >= 3
    assert lines[second - 1] == "      with weights(torch.tensor([[1., 2.]]), torch.tensor([[0.5, 0.25]]))"
    assert "every number is about 0.5 too large" in lines[second + 1]
    assert "with weights(torch.tensor([[0., 0., 0.], [0., 0., 0.]]), <float32 (3, 3)>)" in lines[-1]
    assert len(set(lines)) == len(lines), "no line stands twice"


def test_values_stand_at_each_part_and_the_failing_line_stands_once():
    cases = [Case((1,)), Case((2,), part="two"), Case((3,), part="three")]
    halved = judge(Exercise("f", lambda d: cases), lambda x: x, lambda x: 1)
    assert as_text(halved).count("  yours    1") == 2

    def fails(x):
        return x if x == 1 else x.no_such_thing

    text = as_text(judge(Exercise("f", lambda d: cases), lambda x: x, fails))
    assert text.count("AttributeError") == 1 and text.count("in line ") == 1


def _unanswered(*_):
    raise NotImplementedError


def helper_of(x):
    return x.no_such_thing


def test_a_failing_helper_function_is_named():
    text = one_case(torch.ones(3), reference=lambda x: x.clone(), answer=lambda x: helper_of(x))
    assert re.search(r"in your helper helper_of, line \d+: return x.no_such_thing", text)

    class f(torch.nn.Module):
        def forward(self, x):
            return x.nothing

    case = Case(((), {}, (torch.ones(3),), {}), via="module")
    text = as_text(judge(Exercise("f", lambda d: [case]), torch.nn.Identity, f))
    assert re.search(r"in line \d+: return x.nothing", text), "a method of the answer is no helper"


def test_the_picture_names_its_axes_and_its_worst_entry():
    """Of a batch, text and picture show the worst item and say which one it is."""

    def off(Q, K):
        found = weights(Q, K).clone()
        found[1, 0, 0] += 0.1
        found[2, 3, 6] += 0.4
        return found

    exercise = Exercise("weights", lambda draw: [Case((draw.normal(4, 5, 3), draw.normal(4, 7, 3)))], axes=AXES)
    verdict, row = judge(exercise, weights, off), "item 2, row 3 (query 3)"
    page = as_html(verdict)
    alt = re.search(r'alt="([^"]+)"', page).group(1)
    assert alt.startswith(f"rows: query, columns: key; 1 of 35 numbers differ, most at {row}, column 6 (key 6)")
    assert f"framed: {row}, column 6 (key 6)" in page and row in as_text(verdict)


@pytest.fixture
def unpacking():
    source = "def sum_of_two(answer, args, kwargs):\n    first, second = answer(*args)\n    return first + second, []\n"
    namespace: dict = {}
    exec(compile(source, f"{HELPERS}/lessons/some/probes.py", "exec"), namespace)
    scenario(namespace["sum_of_two"])
    yield "sum_of_two"
    del SCENARIOS["sum_of_two"]


@pytest.mark.parametrize("answer", [lambda x: (x, x, x), lambda x: None])
def test_an_error_in_the_checks_own_code_is_not_blamed_on_the_learner(unpacking, answer):
    text = one_case(torch.ones(3), reference=lambda x: (x, x), answer=answer, via=unpacking)
    assert "your answer did not return what the exercise asks for (" in text and "raised" not in text
    wrong_call = one_case(torch.ones(3), reference=lambda x: (x, x), answer=lambda: 1, via=unpacking)
    assert "your code raised TypeError" in wrong_call


def test_a_superfluous_bias_is_named():
    class Map(torch.nn.Module):
        def __init__(self, bias):
            super().__init__()
            self.W = torch.nn.Linear(2, 2, bias=bias)

        def forward(self, x):
            return self.W(x)

    case = Case(((), {"W.weight": torch.eye(2)}, (torch.ones(3, 2),), {}), via="module")
    exercise = Exercise("f", lambda d: [case])
    text = as_text(judge(exercise, lambda: Map(False), lambda: Map(True)))
    assert "your module has a parameter W.bias; the exercise asks for W without a bias" in text

    def zeroed():
        module = Map(True)
        torch.nn.init.zeros_(module.W.bias)
        return module

    assert judge(exercise, lambda: Map(False), zeroed).passed


def test_shown_calls_can_be_pasted_into_a_notebook():
    text = one_case('a "b"', -0.0, reference=lambda t, x: 1.0, answer=lambda t, x: -0.0)
    assert 'f("a \\"b\\"", ' in text and "yours    0" in text
    assert "b'ab'" in one_case(1, reference=lambda x: "b'ab'", answer=lambda x: "b'c'") and "with with" not in text
    noted = one_case(torch.ones(3), reference=lambda x: x, answer=lambda x: x + 1, note="with a mask")
    assert "  with a mask" in noted and "with with" not in noted


def test_a_deeply_nested_value_is_written_in_one_pass():
    calls = []

    class Number(int):
        def __repr__(self):
            calls.append(self)
            return "1"

    nested = Number(1)
    for _ in range(12):
        nested = [nested]
    assert written(nested) == "[" * 12 + "1" + "]" * 12 and len(calls) == 1


# quizzes, progress, errors


def test_a_wrong_quiz_answer_is_explained_without_an_error(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("COURSE_PROGRESS_FILE", str(tmp_path / "progress.json"))
    quiz = make_key(LESSON, Quiz("quiz_1", "b", {"a": "No: sums.", "b": "Yes: roots."}), 2, False, None, 0)
    lines = as_text(decide_quiz(quiz, "a")).splitlines()
    assert lines[0] == "○ quiz_1   not the best choice; your attempt keeps its 2 points"
    assert lines[1:] == ["  No: sums.", "  Change your answer as often as you like."]
    monkeypatch.setattr(session, "find_key", lambda *_: quiz)
    session.check_one("quiz_1", "a", {})
    assert "No: sums." in capsys.readouterr().out
    for value, error in ((None, NotAnswered), ("z", CheckFailed), (2, CheckFailed)):
        with pytest.raises(error):
            session.check_one("quiz_1", value, {})


def test_progress_never_shows_more_than_the_full_points(monkeypatch, capsys, tmp_path):
    from helpers.checking.key import FOLDER, load_keys

    keys = load_keys("06_softmax").values()
    file = tmp_path / "progress.json"
    full = {key.name: {"points": key.points + 1, "of": key.points, "passed": True} for key in keys}
    file.write_text(json.dumps({"06_softmax": full}), "utf-8")
    monkeypatch.setenv("COURSE_PROGRESS_FILE", str(file))
    progress()
    line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("06_softmax"))
    total = sum(key.points for key in keys if not key.bonus)
    bonus = sum(key.points for key in keys if key.bonus)
    assert f"{total:g} of {total:g} + {bonus:g} bonus" in line and FOLDER.is_dir()
    half = {key.name: {"points": key.points / 2, "of": key.points, "passed": False} for key in keys}
    file.write_text(json.dumps({"06_softmax": half}), "utf-8")
    progress()
    assert "██████······" in capsys.readouterr().out  # half of the points, although nothing has passed


def test_errors_are_printed_once_and_in_one_line(tmp_path):
    for error in (CheckFailed, NotAnswered):
        assert issubclass(error, (CourseError, AssertionError))
        assert len(error("no")._render_traceback_()) == 1
    assert "CheckFailed" in CheckFailed("no")._render_traceback_()[0]
    script = tmp_path / "mine.py"
    script.write_text("from helpers import check\ndef no_such_exercise(): pass\ncheck(no_such_exercise)\n")
    done = subprocess.run(
        [sys.executable, script], env={"PYTHONPATH": str(ROOT)}, cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert done.stderr.startswith("CheckFailed: No exercise is called no_such_exercise.")
    assert len(done.stderr.splitlines()) == 1


def test_the_output_of_an_answer_is_shown_and_truncated():
    found = judge(Exercise("f", lambda d: [Case((1,))]), lambda x: x, lambda x: x)
    found.printed = "\n".join(f"row {i}" for i in range(100))
    lines = as_text(found).splitlines()
    assert "  your code printed:" in lines and "      row 0" in lines and lines[-1] == "      …" and len(lines) < 15


# readable on light and dark


def luminance(color):
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in color]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def rgb(text):
    return [int(text[i : i + 2], 16) / 255 for i in (1, 3, 5)]


# (text color of the page, its background): JupyterLab light and dark, Colab light and dark, a book's page
PAGES = [("#212121", "#ffffff"), ("#ffffff", "#111111"), ("#1f1f1f", "#ffffff"), ("#e3e3e3", "#111111")]
PAGES += [("#e3e3e3", "#1f1f1f"), ("#d5d5d5", "#383838"), ("#323232", "#ffffff"), ("#ced6dd", "#14181e")]


@pytest.mark.parametrize("mark", HUES)
@pytest.mark.parametrize(("text", "background"), PAGES)
def test_colors_of_a_check_are_readable_on_light_and_dark_pages(mark, text, background):
    hue, own, page = rgb(HUES[mark]), rgb(text), rgb(background)
    mixed = [HUE_PERCENT / 100 * a + (1 - HUE_PERCENT / 100) * b for a, b in zip(hue, own, strict=True)]
    assert contrast(mixed, page) >= 4.5
    assert f"{HUES[mark]} {HUE_PERCENT}%,currentColor" in tint(mark)


@pytest.mark.parametrize("name", [name for name in vars(colors) if name.endswith(("_INK", "_COLOR"))])
def test_text_colors_in_figures_are_readable(name):
    assert contrast(rgb(getattr(colors, name)), rgb("#ffffff")) >= 4.5


def test_a_check_uses_only_colors_that_are_readable_everywhere():
    found = judge(Exercise("weights", matrix_cases, axes=AXES), weights, lambda Q, K: weights(Q, K) * 2)
    page = re.sub(r'src="[^"]+"', "", as_html(found))
    assert set(re.findall(r"#[0-9A-Fa-f]{6}", page)) <= set(HUES.values())
    assert "text-indent:-2ch" in page, "wrapped lines hang"


def test_a_missing_answer_is_one_line_and_a_single_point_is_singular():
    exercise = Exercise("f", lambda d: [Case((1,))])
    assert as_text(judge(exercise, lambda x: x, lambda x: x, 1)).startswith("✓ f   1 of 1 point\n")
    unanswered = judge(exercise, lambda x: x, _unanswered, 1)
    assert as_text(unanswered) == "– f   not answered yet (1 point)"
    page = as_html(unanswered)
    assert 'class="course-not-answered"' in page and not set(re.findall("#[0-9A-F]{6}", page))


# lesson files


def test_names_that_lessons_register_are_found_on_demand():
    assert SCENARIOS["one_pass"].__module__ == "helpers.lessons.softmax.probes"
    assert VIEWS["previous_token"] and STUBS["averaging"]
    with pytest.raises(KeyError):
        VIEWS["no such view"]
    registry = Registry()
    registry.register(helper_of)

    def other():
        pass

    other.__name__, other.__module__ = "helper_of", "elsewhere"
    with pytest.raises(ValueError, match="helper_of is registered in"):
        registry.register(other)
    assert stub(STUBS["averaging"]) is STUBS["averaging"], "a file that runs again may register again"


def test_each_lessons_probes_say_in_which_process_they_run():
    files = [*(ROOT / "helpers/lessons").glob("*/probes.py")]
    assert files
    for path in files:
        opening = path.read_text("utf-8").split('"""')[1]
        assert re.search("(next to|alongside|results of) learner code", opening), path.parent.name


TEXT_FOR_POINTS = '{"04_scaling": {"scaled_scores": {"points": "ten"}}}'


@pytest.mark.parametrize("damaged", ['{"04_scaling": {', "[1, 2]", '{"04_scaling": 3}', TEXT_FOR_POINTS, "\x00"])
def test_a_damaged_progress_file_is_reported_once_and_kept(monkeypatch, capsys, tmp_path, damaged):
    file = tmp_path / "progress.json"
    file.write_text(damaged)
    monkeypatch.setenv("COURSE_PROGRESS_FILE", str(file))
    progress()
    assert "progress.json.damaged is damaged" in capsys.readouterr().out
    assert (tmp_path / "progress.json.damaged").read_text() == damaged
    progress()
    assert "damaged" not in capsys.readouterr().out


def test_the_picture_uses_the_same_words_as_the_text():
    page = as_html(judge(Exercise("weights", matrix_cases, axes=AXES), weights, lambda Q, K: weights(Q, K) + 2e-4))
    svg = base64.b64decode(re.search(r"base64,([^\"]+)", page).group(1)).decode()
    assert "expected" in svg and "target" not in svg + page
    assert "the largest difference is 0.0002, on a color scale of its own" in page
    left = min(float(x) for x in re.findall(r'<g transform="translate\((\d+),', svg))
    turned = float(re.search(r"translate\((\d+),\d+\) rotate\(90\)", svg).group(1))
    assert turned + 0.9 * 12 < left, "the axis word ends before the first column begins"
    assert "#5e3c99" in svg.split(">difference<")[1], "the difference is drawn at full strength, however small"


def test_progress_keeps_the_best_result_and_says_so(monkeypatch, capsys, tmp_path):
    file = tmp_path / "progress.json"
    monkeypatch.setenv("COURSE_PROGRESS_FILE", str(file))
    key = make_key(LESSON, Exercise("weights", matrix_cases), 20, False, weights, 0)
    monkeypatch.setattr(session, "find_key", lambda *_: key)
    session.check_one("weights", weights, {})
    assert "best" not in capsys.readouterr().out
    with pytest.raises(CheckFailed):
        session.check_one("weights", lambda Q, K: 2 * weights(Q, K), {})
    assert "Your best check so far stays in progress(): 20 points." in capsys.readouterr().out
    with pytest.raises(NotAnswered):
        session.check_one("weights", None, {})
    assert "best" not in capsys.readouterr().out
    assert json.loads(file.read_text("utf-8"))[LESSON]["weights"] == {"points": 20, "of": 20, "passed": True}
    progress()
    assert "The best of your checks counts here" in capsys.readouterr().out


def test_a_run_in_solutions_is_not_recorded_as_progress(monkeypatch, tmp_path):
    monkeypatch.setenv("COURSE_PROGRESS_FILE", str(tmp_path / "progress.json"))
    monkeypatch.chdir(ROOT / "solutions/04_scaling")
    remember("04_scaling", "scaled_scores", 20, 20, True)
    assert not (tmp_path / "progress.json").exists()
    monkeypatch.chdir(ROOT / "notebooks/04_scaling")
    remember("04_scaling", "scaled_scores", 20, 20, True)
    assert (tmp_path / "progress.json").exists()


def test_progress_does_not_load_the_answer_keys(monkeypatch, capsys, tmp_path):
    from helpers.checking import key

    monkeypatch.setenv("COURSE_PROGRESS_FILE", str(tmp_path / "progress.json"))
    listed = {
        lesson: [(row.name, row.points, row.bonus, row.kind) for row in rows]
        for lesson, rows in contents(key.FOLDER).items()
    }
    for lesson in ("00_start_here", "04_scaling"):
        assert listed[lesson] == [(k.name, k.points, k.bonus, k.kind) for k in key.load_keys(lesson).values()]
    monkeypatch.setattr(key, "_load", None)
    progress()
    assert "04_scaling" in capsys.readouterr().out
    assert key.lesson_of("scaled_scores") == "04_scaling" and key.lesson_of("quiz_1") is None


def test_a_forbidden_call_inside_another_torch_function_names_both():
    def drawn(Q, K):
        return torch.distributions.Categorical(logits=Q @ K.mT).probs

    exercise = Exercise("weights", matrix_cases, forbidden=("softmax",))
    text = as_text(judge(exercise, weights, drawn))
    assert "torch.Tensor.logsumexp, called inside Categorical, is the answer to this exercise;" in text
    plain = as_text(judge(exercise, weights, lambda Q, K: torch.nn.Softmax(-1)(Q @ K.mT)))
    assert "F.softmax is the answer to this exercise;" in plain and "inside" not in plain


def test_a_forbidden_method_is_not_called_inside_itself():
    def by_autograd(Q, K):
        leaf = Q.detach().clone().requires_grad_()
        (leaf @ K.mT).sum().backward()
        return leaf.grad

    exercise = Exercise("weights", matrix_cases, forbidden=("autograd",))
    assert "torch.Tensor.backward is the answer to this exercise;" in as_text(judge(exercise, weights, by_autograd))


def test_turning_on_requires_grad_for_an_input_counts_as_a_change():
    def with_grad(x):
        return 2 * x.requires_grad_().detach()

    def exercise(draw):
        return [Case((draw.normal(3, 4),))]

    verdict = judge(Exercise("f", exercise), lambda x: 2 * x, with_grad)
    assert not verdict.passed and verdict.mistake == "input_changed"
    assert "your code turned requires_grad on for its input x; the caller still needs it as it was" in as_text(verdict)
    assert judge(Exercise("f", exercise), lambda x: 2 * x, lambda x: 2 * x.detach().clone().requires_grad_()).passed


DTYPES = (torch.bool, torch.uint8, torch.int64, torch.bfloat16, torch.float32, torch.float64, torch.complex64)


@pytest.mark.parametrize("got_type", DTYPES)
@pytest.mark.parametrize("want_type", [torch.bool, torch.int64, torch.float32, torch.float64])
def test_tensors_of_any_dtype_can_be_compared_with_the_expected_ones(want_type, got_type):
    """The comparison itself must never raise an error."""
    for shape in ((2,), (3, 3), (2, 3, 4), (0, 2), (7, 3)):
        want = (3 * torch.randn(shape)).to(want_type)
        for got in (3 * torch.randn(shape), want.flip(0), want.double() + 0.5, torch.full(shape, math.nan)):
            text, _ = by_values(want, got.to(got_type))
            assert isinstance(text, str)
    assert by_values(torch.tensor([1, 2]), torch.tensor([1.5, 2.5]))[0] == "every number is 0.5 too large"
