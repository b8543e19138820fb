"""The claims of lesson 12, measured again; the lesson has to contain each sentence that is quoted here."""

import functools
import math
from collections import Counter, defaultdict

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from helpers import blocks, corpus
from helpers.checking.key import load_keys
from helpers.lessons.language_model import figures, watch
from helpers.lessons.language_model.probes import loss_above_the_line
from tests.lessons.lesson_text import says

LESSON = "12_language_model"
says = functools.partial(says, LESSON)


@pytest.mark.full
def test_witten_bell_smoothing_helps_a_little():
    says("0.82 with the smoothing of Witten and Bell", "stays 0.86 nats above the entropy line")
    ids = corpus.language_text().tolist()
    train, test, V = ids[:280_000], ids[280_000:], len(corpus.language_symbols())
    counts = [Counter(zip(*(train[i:] for i in range(n)), strict=False)) for n in range(1, 5)]
    rows = [defaultdict(lambda: [0, 0]) for _ in counts]  # context -> [count, number of different successors]
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


def test_entropy_lines_of_the_three_sets_of_passages():
    says("1.44 for the 200 short passages, 1.43 for the 40 of figure 12.3, 1.46 for those of the check")
    assert watch.Watch().line == pytest.approx(1.43, abs=0.005)
    key = load_keys(LESSON)["language_model_logits"]
    assert key.expected[0].output["nats"][:, 1:].mean() == pytest.approx(1.46, abs=0.005)
    assert len(corpus.language_unseen()["ids"]) == 200


def trained(model, seed=1, steps=1200, rate=1e-3):
    """Train `model` as the lesson does."""
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


def gpt(seed):
    """Return the lesson's GPT, with token vectors drawn as in `initialize`."""
    torch.manual_seed(seed)
    model = blocks.GPT(31, 64, 64, 2, 2)
    nn.init.normal_(model.tokens.weight, std=0.02)
    return model


@torch.no_grad()
def above(model):
    """Return the loss of `model` above the entropy line of the 200 passages, in nats."""
    unseen = corpus.language_unseen()
    ids, line = unseen["ids"], unseen["nats"][:, 1:].mean().item()
    return F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten()).item() - line


@pytest.mark.slow
def test_every_initialization_reaches_the_goal_at_the_lessons_learning_rate():
    """With 0.004, rounding decides which initializations do; seeds 1 and 2 are two that did not."""
    says("20 initializations, with the layers created in five orders")
    says("finish 0.04 to 0.05 nats above the line; with 0.004, four of 17 end more than 0.10 above it")
    assert all(0.03 < above(trained(gpt(seed))) < 0.06 for seed in range(4))


class GPTWithATable(blocks.GPT):
    """A GPT with a learned table of positions, as in GPT-2."""

    def __init__(self, *sizes):
        super().__init__(*sizes)
        self.positions = nn.Embedding(64, 64)
        self.blocks = nn.ModuleList(blocks.EncoderBlock(64, 2, 256, norm_first=True) for _ in range(2))
        for table in (self.tokens, self.positions):
            nn.init.normal_(table.weight, std=0.02)

    def forward(self, ids):
        x = self.tokens(ids) + self.positions(torch.arange(ids.shape[1]))
        for block in self.blocks:
            x = block(x, blocks.causal_mask(ids.shape[1]))
        return self.unembed(self.norm(x))


@pytest.mark.slow
def test_with_a_learned_table_of_positions_few_runs_get_as_far():
    says("with a table and a learning rate of 0.004, one of six runs of 1,200 steps ends 0.07 nats above")
    says("and the others 0.37 to 0.50")
    ends = []
    for seed in range(4):
        torch.manual_seed(seed)
        ends.append(above(trained(GPTWithATable(31, 64, 64, 2, 2), rate=4e-3)))
    assert sum(end > 0.2 for end in ends) >= 2


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_without_its_induction_head_a_gpt_no_longer_copies(seed):
    says("repeated letters 2.8 to 3.1 nats above the line in eight runs")
    says("0.07 to 0.5 in the eight runs")
    model, recorder = trained(gpt(seed)), watch.Watch(passages=200)
    layer, head = recorder.best_head(model)
    says("0.14 to 0.25 in six runs", "about a fifth of a nat above the line")
    end = recorder.above(model)
    assert layer == 1 and end[watch.AGAIN] < 0.03 and min(end[watch.VERB], end[watch.CLOSER]) > 0.1 > end[watch.AGAIN]
    assert max(end[watch.VERB], end[watch.CLOSER]) < 0.3
    lost = {}
    for where in watch.heads_of(model):
        with watch.ablated(model, *where):
            lost[where] = recorder.above(model)[watch.AGAIN]
    assert 2.5 < lost[1, head] < 3.3 and lost[1, 1 - head] < 0.7  # the control: the other head of the layer
    assert min(lost[0, 0], lost[0, 1]) > 1.5  # both heads of the first layer
    with torch.no_grad(), watch.attention_weights(model) as weights:
        model(recorder.ids)
    assert weights[0][1].diagonal(-1, dim1=-2, dim2=-1).mean(dim=(0, 2)).max() < 1 / 4  # on the previous token


def test_an_ablated_head_contributes_nothing_and_is_restored():
    torch.manual_seed(0)
    model, ids = blocks.GPT(11, 8, 12, 3, 2), torch.arange(8)[None]
    before = model(ids)
    assert watch.heads_of(model) == [(layer, head) for layer in range(2) for head in range(3)]
    with watch.ablated(model, 1, 2):
        without = model(ids)
    model.blocks[1].attention.W_o.weight.data[:, 8:] = 0
    torch.testing.assert_close(without, model(ids))
    assert not torch.allclose(before, without)


def test_loss_curves_are_restored_after_a_restart(tmp_path, monkeypatch):
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
    assert empty.steps == [] and "No curves to show" in figures.training(empty).alt


def test_hand_made_induction_head_is_drawn_from_its_weights():
    assert "after |qtwz|q they predict t" in figures.induction_from_weights(blocks.induction_head).alt

    def unanswered(vocab_size, max_len):
        raise NotImplementedError

    assert "once exercise 12.7 is answered" in figures.induction_from_weights(unanswered).alt


def test_the_list_of_blocks_is_read_once():
    assert blocks._contents() is blocks._contents()


def judged(logits_of):
    unseen = corpus.language_unseen()
    ids, nats = unseen["ids"][:60], unseen["nats"][:60]
    changed = ids.clone()
    changed[:, 32:] = unseen["ids"][60:120, 32:]
    truths = [{"ids": x, "nats": nats} for x in (ids, changed)]
    return loss_above_the_line(truths, [logits_of(ids), logits_of(changed)])


def test_probabilities_and_tables_instead_of_logits_are_named():
    table = torch.randn(31, 31, generator=torch.Generator().manual_seed(0))
    assert judged(lambda ids: table[ids]).mistake == "a_table"
    model = blocks.GPT(31, 64, 16, 2, 1)
    assert judged(lambda ids: model(ids).detach().softmax(-1)).mistake == "probabilities"
    assert judged(lambda ids: model(ids).detach()).mistake == "not_trained"
