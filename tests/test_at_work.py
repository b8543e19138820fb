"""`at_work` reports right, wrong, broken and unanswered parts, and never raises an error."""

import json
import re
import subprocess
import sys
from html.parser import HTMLParser

import pytest
import torch

from bench import without_parts
from helpers import at_work, blocks, or_finished
from helpers.translator import FINISHED_PARTS, evaluation, model, stage
from helpers.translator.table import Fact, Row, as_html
from tests import golden_at_work
from tests.conftest import lesson_names

SENTENCE = "jane visits africa in september"
FRENCH = "jane visite l' afrique en septembre"


@pytest.fixture
def output_of(capsys, few_sentences):
    """output_of(...) -> what at_work prints for these arguments."""

    def run(*answers, **named) -> str:
        capsys.readouterr()
        assert at_work(*answers, **named) is None
        return capsys.readouterr().out

    return run


def scaled_scores(Q, K):
    return torch.matmul(Q, K.mT) / Q.size(-1) ** 0.5


def fails(error):
    def part(*args, **kwargs):
        raise error

    return part


def unscaled(Q, K):
    return Q @ K.mT


class Nameless(torch.nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.a = torch.nn.Linear(d_model, d_model)


class NotAModule:
    def __init__(self, d_model, num_heads):
        pass


RIGHT = f"{SENTENCE} → {FRENCH}"
REPORTS = {
    "right": ({"": scaled_scores}, RIGHT, "your scaled_scores", ": the same", "four divisors"),
    "a published bug": ({"scaled_scores": unscaled}, "unscaled as scaled_scores", "times as much"),
    "a mask that leaks": (
        {"causal_mask": lambda T_q, T_k=None: torch.ones(T_q, T_k or T_q, dtype=torch.bool)},
        "the future leaks",
        "times as much",
    ),
    "wrong shape": ({"scaled_scores": lambda Q, K: Q}, "shape", FRENCH),
    "nan": ({"scaled_scores": lambda Q, K: Q @ K.mT * float("nan")}, "NaN"),
    "an error": (
        {"scaled_scores": fails(RuntimeError("oh <b>no</b>"))},
        "Your scaled_scores raised RuntimeError: oh <b>no</b>",
    ),
    "leaving": ({"scaled_scores": fails(SystemExit(1))}, "SystemExit"),
    "None": ({"scaled_scores": lambda Q, K: None}, "returned None"),
    "in place": ({"mask_scores": lambda scores, mask: scores.masked_fill_(~mask, float("-inf"))}, "in place"),
    "other weights": (
        {"MultiHeadAttention": Nameless},
        "no weights called",
        " and others: list(translator.state()) names them",
    ),
    "no module": ({"MultiHeadAttention": NotAModule}, "not an nn.Module"),
    "no part": ({"foo": scaled_scores}, "no part called foo"),
    "a part misspelt": ({"scaled_score": scaled_scores}, "Did you mean scaled_scores"),
    "a number": ({"scaled_scores": 3}, "of the type int"),
    "another name": ({"": unscaled}, "no part called unscaled"),
    "nothing": ({}, RIGHT),
    "another sentence": (
        {"": scaled_scores, "sentence": "the black cat sees a red apple"},
        "le chat noir voit une pomme rouge",
    ),
    "an unknown word": ({"": scaled_scores, "sentence": "jane eats an apple"}, "does not know the word 'eats'"),
    "a word misspelt": ({"": scaled_scores, "sentence": "jane loves aple"}, "Words near it: apple"),
    "no words": ({"": scaled_scores, "sentence": "  "}, "empty"),
    "many words": ({"": scaled_scores, "sentence": "jane " * 30}, "up to"),
}


@pytest.mark.parametrize("what", REPORTS)
def test_at_work_reports_what_each_kind_of_answer_does(output_of, what):
    parts, *words = REPORTS[what]
    text = output_of(*(parts[name] for name in parts if not name), **{name: parts[name] for name in parts if name})
    assert [word for word in words if word not in text] == [], text


def test_several_parts_can_be_passed_at_once(output_of):
    causal_mask, padding_mask = FINISHED_PARTS["causal_mask"], FINISHED_PARTS["padding_mask"]
    text = output_of(causal_mask, padding_mask)
    assert "your causal_mask and your padding_mask" in text and ": the same" in text and "nothing leaks" in text
    assert ": the same" in output_of(mask_scores=FINISHED_PARTS["mask_scores"])  # not the one in place


def test_outputs_of_only_nan_get_no_figure(output_of):
    shown = output_of(softmax=lambda x, dim=-1: x * float("nan"))
    assert "no curve to draw" in shown and "[figure" not in shown
    shown = output_of(attention_scores=lambda Q, K: Q @ K.mT * float("nan"))
    assert "no map to draw" in shown and "[figure" not in shown
    assert "[figure" not in output_of(weighted_values=lambda weights, V: weights @ V * float("nan"))


def test_a_part_that_takes_too_long_is_stopped():
    def endless(Q, K):
        while True:
            pass

    stage.attempt_finished(SENTENCE)
    assert "took more than 0.3 seconds" in stage.attempt({"scaled_scores": endless}, SENTENCE, 0.3).failed


def test_unanswered_functions_and_modules_are_reported_as_such(output_of):
    open_function = fails(NotImplementedError)

    class OpenModule(torch.nn.Module):
        def __init__(self, d_model, num_heads):
            raise NotImplementedError

    class OpenForward(FINISHED_PARTS["MultiHeadAttention"]):
        def forward(self, query, key=None, value=None, mask=None):
            raise NotImplementedError

    assert output_of(scaled_scores=open_function).splitlines() == [
        "scaled_scores is not answered yet; once it is, the translator runs on it here."
    ]
    for part in (OpenModule, OpenForward):
        assert "MultiHeadAttention is not answered yet" in output_of(MultiHeadAttention=part)


def test_the_learners_own_sentence_is_translated():
    page = stage.own_sentence({"scaled_scores": scaled_scores}, "Tom is happy.")
    assert "tom est heureux" in page and "<img" in page


def test_a_notebook_gets_html_text_and_a_box_for_sentences(few_sentences, monkeypatch):
    shown = []
    monkeypatch.setattr(stage, "in_notebook", lambda: True)
    monkeypatch.setattr("IPython.display.display", lambda *things, **_options: shown.append(things[0]))
    monkeypatch.setenv("COURSE_STATIC_PAGE", "1")
    at_work(scaled_scores)
    assert [set(item) for item in shown] == [{"text/plain", "text/html"}]
    assert "<img alt=" in shown[0]["text/html"]
    monkeypatch.delenv("COURSE_STATIC_PAGE")
    at_work(scaled_scores)
    assert len(shown) == 3  # the third is the box
    box, page = shown[2].children
    box.value = "tom is happy"
    assert "tom est heureux" in page.value
    box.value = "tom is hungry"
    assert "does not know the word" in page.value


def test_figures_that_another_cell_shows_are_not_drawn_again(few_sentences, monkeypatch):
    shown = []
    monkeypatch.setattr(stage, "in_notebook", lambda: True)
    monkeypatch.setattr(stage, "SHOWN", {})
    monkeypatch.setattr("IPython.display.display", lambda *things, **_options: shown.append(things[0]["text/html"]))
    monkeypatch.setenv("COURSE_STATIC_PAGE", "1")
    for part in (blocks.EncoderBlock, blocks.DecoderBlock, blocks.EncoderBlock):  # the last is a second run of its cell
        at_work(part)
    assert ["<img" in page for page in shown] == [True, False, True]
    assert "all else is as above, with your EncoderBlock" in shown[1]


def test_or_finished_returns_an_answer_only_once_it_has_passed(capsys, monkeypatch):
    from helpers.progress import PASSED, remember_passed

    monkeypatch.setattr(sys.modules["helpers.or_finished"], "_announced", set())
    PASSED.discard("scaled_scores")
    assert or_finished(scaled_scores) is FINISHED_PARTS["scaled_scores"]
    assert or_finished(scaled_scores) is FINISHED_PARTS["scaled_scores"]
    assert capsys.readouterr().out.count("scaled_scores") == 1
    remember_passed("scaled_scores", True)
    assert or_finished(scaled_scores) is scaled_scores
    remember_passed("scaled_scores", False)
    assert or_finished(scaled_scores) is FINISHED_PARTS["scaled_scores"]
    assert or_finished(fails) is fails


def test_at_work_does_nothing_in_the_sandbox(capsys):
    code = (
        "import helpers; from helpers.grading.inside.cell_runner import make_check_silent; make_check_silent()\n"
        "from helpers import at_work, or_finished\n"
        "import sys\n"
        "def f(): raise ValueError\n"
        "assert at_work(f) is None and 'helpers.translator' not in sys.modules\n"
        "assert or_finished(f) is f"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


NUMBER = re.compile(r"-?\d[\d,]*\.?\d*")


def alike(now: str, then: str) -> bool:
    """Return whether words are equal and numbers within 3% or 0.6 of their last digit, as on other processors."""
    if NUMBER.sub("#", now) != NUMBER.sub("#", then):
        return False
    for one, other in zip(NUMBER.findall(now), NUMBER.findall(then), strict=True):
        digits = len(other.partition(".")[2])
        a, b = (float(number.replace(",", "").rstrip(".")) for number in (one, other))
        if abs(a - b) > max(0.03 * abs(b), 0.6 * 10**-digits):
            return False
    return True


def test_every_part_that_a_lesson_passes_runs():
    """A lesson must not pass a part that the translator never calls."""
    stored = golden_at_work.sections().values()
    assert stored and not any("did not run" in text for text in stored)


@pytest.mark.full
@pytest.mark.parametrize("lesson", lesson_names())
def test_calls_of_the_lessons_print_the_stored_output(lesson):
    kept = {key: text for key, text in golden_at_work.sections().items() if key.startswith(lesson)}
    anew = {
        f"{lesson}: {source}": golden_at_work.printed(source, names) for source, names in golden_at_work.calls(lesson)
    }
    assert list(kept) == list(anew), "rewrite the file: python -m tests.golden_at_work"
    for call, text in anew.items():
        assert len(text.strip().splitlines()) == len(kept[call].splitlines()), text
        for now, then in zip(text.strip().splitlines(), kept[call].splitlines(), strict=True):
            assert alike(now, then), f"{call}\nnow:  {now}\nthen: {then}\nif intended: python -m tests.golden_at_work"


def trial(nats: float, exact: float) -> stage.Trial:
    ran = {"scaled_scores"}
    return stage.Trial(french=FRENCH, nats=nats, exact=exact, in_loss=ran, ran=ran)


@pytest.mark.parametrize("gap", [0.009, 0.001, 0.0001, 0.00002, -0.00002, -0.001])
def test_only_equal_losses_are_called_the_same(gap):
    assert stage.verdict(trial(0.00016 + gap, 1.0), trial(0.00016, 1.0)) != "the same"
    assert stage.verdict(trial(0.00016 + 1e-6, 1.0), trial(0.00016, 1.0)) == "the same"


def test_the_stated_accuracy_is_that_of_the_learners_part():
    facts = stage.facts(trial(0.5, 0.37), trial(0.00016, 0.98), SENTENCE, {"scaled_scores": scaled_scores})
    text = "\n".join(fact.text for fact in facts)
    assert "37% of unseen sentences come out word for word; 98% with the finished block" in text


def test_losses_of_the_four_divisors_are_those_of_the_translator(output_of):
    text, batch = output_of(scaled_scores), evaluation.unseen(evaluation.LOSS_SENTENCES)
    for words, divisor in {
        "nothing": 1,
        "the square root of the head's width": 4,
        "the square root of the model's width": 8,
        "the head's width": 16,
    }.items():
        network = model(scaled_scores=lambda Q, K, divisor=divisor: Q @ K.mT / divisor)
        assert (
            f"divided by {words}: {evaluation.in_nats(evaluation.nats_per_word(network, batch))} nats per word" in text
        )


def test_the_beam_has_the_stated_width(output_of):
    widths = []

    def beam_search(step, bos_id, eos_id, max_len, beam_size, length_penalty=0.0):
        widths.append(beam_size)
        return FINISHED_PARTS["beam_search"](step, bos_id, eos_id, max_len, beam_size, length_penalty)

    assert "beam of 3: " in output_of(beam_search=beam_search) and widths == [3]


def test_outputs_of_encode_and_one_hot_go_into_the_network(output_of):
    for wrong in (
        {"encode": lambda sentence, vocab: FINISHED_PARTS["encode"](sentence, vocab).flip(0)},
        {"one_hot": lambda ids, vocab_size: torch.zeros(*ids.shape, vocab_size)},
    ):
        assert "times as much" in output_of(**wrong)


def test_only_parts_that_ran_are_named(output_of):
    text = output_of(
        embed=FINISHED_PARTS["embed"],
        one_hot=FINISHED_PARTS["one_hot"],
        cosine_similarity=FINISHED_PARTS["cosine_similarity"],
    )
    assert "unseen sentences with your embed; " in text and "your one_hot did not run: nothing" in text
    for name in ("noam_lr", "greedy_decode"):
        assert "nats" not in output_of(**{name: FINISHED_PARTS[name]})


def test_wrong_neighbors_are_shown_above_the_right_ones(output_of):
    text = output_of(cosine_similarity=lambda a, b: a @ b.T)
    assert "nearest to africa: " in text and "\n  with the finished block: germany, asia, crosses" in text
    assert "with the finished block:" not in output_of(cosine_similarity=FINISHED_PARTS["cosine_similarity"])


def test_all_unanswered_parts_are_named(output_of):
    names = dict.fromkeys(("encode", "embed", "cosine_similarity"), fails(NotImplementedError))
    text = output_of(**names, add_positions=FINISHED_PARTS["add_positions"])
    assert text.startswith("encode, embed and cosine_similarity are not answered yet")
    assert output_of(encode=None, embed=...).startswith("encode and embed are not answered yet")


def test_the_advice_for_a_function_of_another_name_works(output_of, monkeypatch):
    monkeypatch.setattr("helpers.setup._lesson", "04_scaling")

    def by_width(Q, K):
        return FINISHED_PARTS["attention_scores"](Q, K) / Q.shape[-1]

    text = output_of(by_width)
    assert "in this lesson: scaled_scores, softmax_jacobian, weights_jacobian" in text
    advised = re.search(r"at_work\((\w+)=by_width\)", text).group(1)
    assert "times as much" in output_of(**{advised: by_width})
    assert "at_work(" not in output_of(test_a_part_that_takes_too_long_is_stopped.__class__)


def test_a_mask_aligned_at_the_first_key_fails_with_a_cache(output_of):
    def from_the_first_key(T_q, T_k=None):
        return torch.ones(T_q, T_k or T_q, dtype=torch.bool).tril()

    text = output_of(causal_mask=from_the_first_key)
    assert "written with a cache" in text and f"→ {FRENCH}" not in text and "\n0% of unseen" in text
    assert f"→ {FRENCH}" in output_of(causal_mask=FINISHED_PARTS["causal_mask"])


def test_a_right_part_shows_the_loss_without_it(capsys):
    kept = json.loads(without_parts.PLACE.read_text("utf-8"))
    assert list(kept) == list(without_parts.WITHOUT)
    measured = without_parts.cost("FeedForward")
    assert measured["nats"] == pytest.approx(kept["FeedForward"]["nats"], rel=0.02)
    at_work(FeedForward=FINISHED_PARTS["FeedForward"])
    without = f"without FeedForward (no feed-forward network): {evaluation.in_nats(measured['nats'])} nats"
    assert without in capsys.readouterr().out
    at_work(FeedForward=without_parts.WITHOUT["FeedForward"][1])
    assert "without FeedForward" not in capsys.readouterr().out


class Table(HTMLParser):
    """The rows of a page's only table, as lists of their cells' texts, and the widths of its bars."""

    def __init__(self, page: str):
        super().__init__()
        self.rows, self.bars = [], []
        self.feed(page)
        assert page.count("<table") == page.count("</table>") == 1

    def handle_starttag(self, tag, attributes):
        style = dict(attributes).get("style", "")
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")
        elif width := re.search(r"width:([\d.]+)%", style):
            self.bars.append(float(width[1]))

    def handle_data(self, words):
        if self.rows:
            self.rows[-1][-1] += words


def page_of(parts) -> Table:
    return Table(
        as_html(stage.facts(stage.attempt(parts, SENTENCE), stage.attempt_finished(SENTENCE), SENTENCE, parts))
    )


def test_a_page_has_one_table_with_a_bar_for_each_loss(output_of):
    def by_width(Q, K):
        return Q @ K.mT / Q.shape[-1]

    table = page_of({"scaled_scores": by_width})
    assert table.rows[0] == [f"{SENTENCE} → {FRENCH}"]
    named = {row[0]: row[1:] for row in table.rows if len(row) == 4}
    assert list(named) == [
        "by_width as scaled_scores",
        "the finished block",
    ]  # the four divisors are shown only for a right answer
    assert all(len(row) in (1, 4) for row in table.rows) and len(table.bars) == len(named)
    text = output_of(scaled_scores=by_width)
    assert all(number in text for _, number, _ in named.values())  # the same numbers as in a script
    nats = [float(number) for _, number, _ in named.values()]
    assert table.bars == pytest.approx([100 * loss / max(nats) for loss in nats], abs=1.0)
    assert "% word for word" in named["by_width as scaled_scores"][2] and "times as much" in text


def test_each_fact_has_one_row_of_the_table(output_of):
    right = page_of({"greedy_decode": FINISHED_PARTS["greedy_decode"]})
    assert [row[2] for row in right.rows if len(row) == 4] == ["100%", "100%"] and right.bars == [100, 100]
    leak = page_of({"causal_mask": lambda T_q, T_k=None: torch.ones(T_q, T_k or T_q, dtype=torch.bool)})
    (moved,) = (row for row in leak.rows if row[0] == "by up to")
    assert moved[3] == "the future leaks; finished block: 0.0000 (nothing leaks)"
    assert any(row[0].startswith("the translation was written with a cache") for row in leak.rows)
    cells = page_of({"scaled_scores": scaled_scores}).rows
    assert [row[0] for row in cells if row[0].startswith("divided by")] == [
        "divided by nothing",
        "divided by the square root of the head's width",
        "divided by the square root of the model's width",
        "divided by the head's width",
    ]


def test_nan_gets_an_empty_bar_and_text_is_escaped():
    row = Row("loss <b>", "mine <b>", float("nan"), "NaN", ("is <b>",))
    page = as_html([Fact("head"), Fact("said", (row, Row("loss <b>", "other", 0.5, "0.5")))])
    table = Table(page)
    assert table.bars == [0, 100] and "<b>" not in page
    assert table.rows == [["head"], ["loss <b>"], ["mine <b>", "", "NaN", "is <b>"], ["other", "", "0.5", ""]]
    assert page.count('role="img" aria-label="a bar, ') == 2
