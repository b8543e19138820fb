"""What lesson 12 claims, measured again: the sentence stands in the lesson, the measurement and its control agree."""

import math
from collections import Counter, defaultdict

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from helpers import blocks, corpus
from helpers.blocks import EncoderBlock, causal_mask
from helpers.checking.key import load_keys
from helpers.course import course
from helpers.lessons.language_model import figures, watch
from helpers.lessons.language_model.probes import loss_above_the_line
from helpers.lessons.language_model.rotary import RotaryAttention

torch.set_num_threads(1)
LESSON = "12_language_model"


@pytest.fixture(scope="module")
def text():
    """The lesson's text in one line."""
    lines = (course().root / "solutions" / LESSON / f"{LESSON}.py").read_text(encoding="utf-8").split("\n")
    return " ".join(line.removeprefix("#").strip() for line in lines)


def test_a_cleverer_smoothing_helps_a_little(text):
    assert "Witten and Bell's gets to 0.82 at order 4" in text and "stays 0.86 nats above the line" in text
    ids = corpus.language_text().tolist()
    train, test, V = ids[:280_000], ids[280_000:], len(corpus.language_symbols())
    counts = [Counter(zip(*(train[i:] for i in range(n)), strict=False)) for n in range(1, 5)]
    rows = [defaultdict(lambda: [0, 0]) for _ in counts]  # context -> how often, how many different tokens after it
    for table, row in zip(counts, rows, strict=True):
        for gram, count in table.items():
            row[gram[:-1]][0] += count
            row[gram[:-1]][1] += 1

    def p(gram):
        if not gram:
            return 1 / V
        often, kinds = rows[len(gram) - 1].get(gram[:-1], (0, 0))
        return (counts[len(gram) - 1][gram] + kinds * p(gram[1:])) / (often + kinds) if often else p(gram[1:])

    loss = -sum(math.log(p(tuple(test[t - 3 : t + 1]))) for t in range(3, len(test))) / (len(test) - 3)
    assert loss - corpus.entropy_rate() == pytest.approx(0.82, abs=0.01)
    assert min(figures.counted().values()) - corpus.entropy_rate() == pytest.approx(0.86, abs=0.005)


def test_the_lines_of_the_passages(text):
    assert "Figure 12.4 looks at 40 of the 200, whose line is 1.43" in text
    assert "the check has passages of its own, with a line of 1.46" in text
    assert watch.Watch().line == pytest.approx(1.43, abs=0.005)
    key = load_keys(LESSON)["language_model_logits"]
    assert key.expected[0].output["nats"][:, 1:].mean() == pytest.approx(1.46, abs=0.005)
    assert len(corpus.language_unseen()["ids"]) == 200


# ---------------------------------------------------------------- trainings


class PlainGPT(nn.Module):
    """As a learner may write it: other names, nn.Embedding as it comes."""

    def __init__(self, vocab_size, block_size, d_model, num_heads, num_layers):
        super().__init__()
        self.block_size = block_size
        self.tok = nn.Embedding(vocab_size, d_model)
        self.layers = nn.ModuleList()
        for _ in range(num_layers):
            block = EncoderBlock(d_model, num_heads, 4 * d_model, norm_first=True)
            block.attention = RotaryAttention(d_model, num_heads)
            self.layers.append(block)
        self.ln = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, vocab_size)

    def forward(self, ids):
        x = self.tok(ids)
        for layer in self.layers:
            x = layer(x, causal_mask(ids.shape[1]))
        return self.head(self.ln(x))


def trained(model, seed=1, steps=1200, rate=4e-3):
    """The lesson's training."""
    text, generator = corpus.language_text(), torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, betas=(0.9, 0.98), weight_decay=0.01)
    for step in range(steps):
        optimizer.param_groups[0]["lr"] = rate * min((step + 1) / 50, 1) * (1 - step / steps)
        x, y = blocks.get_batch(text, 64, 16, generator)
        loss = blocks.next_token_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return model.eval()


def small_start(model):
    for part in model.modules():
        if isinstance(part, nn.Embedding):
            nn.init.normal_(part.weight, std=0.02)
    return model


@torch.no_grad()
def above(model):
    """Nats above the line on the 200 passages."""
    unseen = corpus.language_unseen()
    ids, line = unseen["ids"], unseen["nats"][:, 1:].mean().item()
    return F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten()).item() - line


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_plain_gpt_reaches_the_goal_from_a_small_start(text, seed):
    """From the usual start the last digit of a machine's sums decides: seed 0 ended at 0.14 on one, 0.34 on another."""
    assert "as it comes the six trainings ended 0.04 to 0.34 nats above the line" in text
    assert "from a small start 0.03 to 0.06." in text
    assert "and with rotations 0.03, 0.05 and 0.06: with a table," in text
    torch.manual_seed(seed)
    assert 0.02 < above(trained(small_start(PlainGPT(31, 64, 64, 2, 2)))) < 0.065
    torch.manual_seed(seed)
    assert 0.03 < above(trained(PlainGPT(31, 64, 64, 2, 2))) < 0.5


@pytest.mark.slow
@pytest.mark.parametrize("start", [small_start, lambda model: model])
def test_with_the_usual_base_the_start_makes_no_difference(text, start):
    assert "0.05, 0.07 and 0.06 as it comes, 0.06, 0.04 and 0.06 from a small start" in text
    torch.manual_seed(0)
    model = PlainGPT(31, 64, 64, 2, 2)
    for layer in model.layers:
        assert layer.attention.base == 10
        layer.attention.base = 10_000.0
    assert 0 < above(trained(start(model))) < 0.09


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_without_its_induction_head_a_gpt_copies_no_more(text, seed):
    assert "to between 1.7 and 3.9" in text
    assert "0.07 to 0.6 above in eight of the trainings, and 1.1 and 2.4 in two" in text
    torch.manual_seed(seed)
    model, look = trained(small_start(blocks.GPT(31, 64, 64, 2, 2))), watch.Watch(passages=200)
    layer, head = look.best_head(model)
    assert "verbs and closing brackets still stand about a tenth above the line, 0.06 to 0.16 in four" in text
    end = look.above(model)
    assert layer == 1 and end[watch.AGAIN] < 0.03 and min(end[watch.VERB], end[watch.CLOSER]) > 0.04 > end[watch.AGAIN]
    assert max(end[watch.VERB], end[watch.CLOSER]) < 0.25
    lost = {}
    for where in watch.heads_of(model):
        with watch.silenced(model, *where):
            lost[where] = look.above(model)[watch.AGAIN]
    # The control: the other head of the layer. These two trainings are of the eight in which it is a clean one.
    assert 1.5 < lost[1, head] < 4.2 and lost[1, 1 - head] < 0.7
    assert min(lost[0, 0], lost[0, 1]) > 1.5  # both heads of the first layer
    with torch.no_grad(), watch.attention_weights(model) as weights:
        model(look.ids)
    assert weights[0].diagonal(-1, dim1=-2, dim2=-1).mean(dim=(0, 2)).max() < 1 / 3  # how far they look one back


# ---------------------------------------------------------------- what the room does for the text


def test_a_silenced_head_hands_on_nothing_and_comes_back():
    torch.manual_seed(0)
    model, ids = blocks.GPT(11, 8, 12, 3, 2), torch.arange(8)[None]
    before = model(ids)
    assert watch.heads_of(model) == [(layer, head) for layer in range(2) for head in range(3)]
    with watch.silenced(model, 1, 2):
        without = model(ids)
    model.blocks[1].attention.W_o.weight.data[:, 8:] = 0
    torch.testing.assert_close(without, model(ids))
    assert not torch.allclose(before, without)


def test_curves_come_back_after_a_restart(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_KEEP_FOLDER", str(tmp_path))
    first = watch.Watch(passages=3)
    first(blocks.GPT(31, 64, 16, 2, 1), 1)
    first.keep("curves.json")
    again = watch.Watch(passages=3)
    again.keep("curves.json")
    assert (again.steps, again.losses, again.whole) == (first.steps, first.losses, first.whole)
    assert "Loss over 1 steps" in figures.training(again).alt
    (tmp_path / "curves.json").write_text("{}")
    empty = watch.Watch(passages=3)
    empty.keep("curves.json")
    assert empty.steps == [] and "No training to show" in figures.training(empty).alt


def test_hand_made_layers_are_drawn_from_their_weights():
    assert "after |qtwz|q it says t" in figures.induction_from_weights(blocks.induction_head).alt

    def unanswered(vocab_size, max_len):
        raise NotImplementedError

    assert "once exercise 12.8 is answered" in figures.induction_from_weights(unanswered).alt


def test_blocks_are_parsed_once():
    assert blocks._contents() is blocks._contents()


def judged(logits_of):
    unseen = corpus.language_unseen()
    ids, nats = unseen["ids"][:60], unseen["nats"][:60]
    changed = ids.clone()
    changed[:, 32:] = unseen["ids"][60:120, 32:]
    truths = [{"ids": x, "nats": nats} for x in (ids, changed)]
    return loss_above_the_line(truths, [logits_of(ids), logits_of(changed)])


def test_probabilities_and_tables_are_called_so():
    table = torch.randn(31, 31, generator=torch.Generator().manual_seed(0))
    assert judged(lambda ids: table[ids]).mistake == "a_table"
    model = blocks.GPT(31, 64, 16, 2, 1)
    assert judged(lambda ids: model(ids).detach().softmax(-1)).mistake == "probabilities"
    assert judged(lambda ids: model(ids).detach()).mistake == "not_trained"
