"""Lesson 5: its blocks against torch's own functions, and the numbers and claims that the lesson states."""

import math
import re

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from helpers import translator
from helpers.blocks import causal_mask, leaks_future, masked_softmax, padding_mask
from helpers.lessons.masking import explore, figures
from helpers.translator import finished_parts
from helpers.translator.evaluation import LOSS_SENTENCES, exact, in_nats, nats_a_word, unseen
from tests.judged import verdict_of
from tests.lab import ROOT

SCORES = torch.tensor([[1.0, 2, 0], [0, 1, 2], [1, 0, 1]])  # jane visits africa, already scaled


def test_numbers_of_the_worked_example():
    weights = masked_softmax(SCORES, causal_mask(3))
    assert weights[1].tolist() == pytest.approx([0.269, 0.731, 0], abs=5e-4)
    after = SCORES.softmax(-1) * causal_mask(3)
    assert after[1].tolist() == pytest.approx([0.090, 0.245, 0], abs=5e-4)
    assert after.sum(-1)[1].item() == pytest.approx(0.335, abs=5e-4)
    assert torch.tensor([0.0, 1, 0]).softmax(0)[:2].sum().item() == pytest.approx(0.788, abs=5e-4)


@pytest.mark.parametrize("finds", [leaks_future, finished_parts.leaks_future], ids=["block", "part of the machine"])
@pytest.mark.parametrize("seed", [0, 3, 1337])
def test_leaks_are_found_with_the_generator_in_the_state_that_made_x(seed, finds):
    torch.manual_seed(seed)
    x = torch.randn(2, 6, 4)
    torch.manual_seed(seed)
    before = torch.get_rng_state()
    for width in (1, 6):  # the state that made all of x, and one that made its first rows
        rows = x[:, :width].repeat(1, 6 // width, 1)
        for f, leaks in ((lambda x: x.mean(1, keepdim=True) + x, True), (lambda x: x.cumsum(1), False)):
            torch.manual_seed(seed)
            assert finds(f, rows) is leaks
            assert finds is leaks_future or torch.get_rng_state().equal(before)  # a part of the machine leaves it


def test_multihead_attention_means_the_opposite():
    torch.manual_seed(0)
    mha, x = nn.MultiheadAttention(4, 1, batch_first=True), torch.randn(1, 3, 4)
    assert (mha(x, x, x, attn_mask=~causal_mask(3))[1].triu(1) == 0).all()
    assert mha(x, x, x, attn_mask=causal_mask(3))[1][0, -1].isnan().all()


def test_is_causal_is_aligned_at_the_first_key():
    out = F.scaled_dot_product_attention(torch.ones(1, 1, 2), torch.ones(1, 4, 2), torch.eye(4)[None], is_causal=True)
    assert out.tolist() == [[[1, 0, 0, 0]]]


def test_masks_added_before_and_after_the_division_agree_for_infinity_only():
    raw, root, mask = SCORES * 2, 2, causal_mask(3)
    for no, equal in ((-math.inf, True), (-6.0, False)):
        M = torch.where(mask, 0.0, no)
        assert torch.allclose(((raw + M) / root).softmax(-1), (raw / root + M).softmax(-1)) is equal


@pytest.mark.parametrize(
    ("block", "clean"),
    [
        (lambda s, seen: s.masked_fill(~seen, -math.inf), True),
        (lambda s, seen: torch.where(seen, s, -math.inf), True),
        (lambda s, seen: s + torch.where(seen, 0.0, -math.inf), False),
    ],
)
def test_nan_to_num_keeps_gradients_clean_only_behind_a_replacement(block, clean):
    seen = causal_mask(3)
    seen[2] = False
    s = SCORES.clone().requires_grad_()
    block(s, seen).softmax(-1).nan_to_num().square().sum().backward()
    assert bool(s.grad.isfinite().all()) is clean


TOKENS = ["jane", "visits", "africa"]


def test_figures_say_their_numbers():
    mask = causal_mask(3)
    assert "rows sum to 0.245, 0.335, 1.000" in figures.before_or_after(TOKENS, SCORES, mask).alt
    assert "0.269, 0.731" in figures.before_or_after(TOKENS, SCORES, mask).alt
    said = figures.repairs(TOKENS, SCORES).alt
    assert "A: weights NaN, NaN, NaN, gradient 0.00, 0.00, 0.00" in said
    assert "B: weights 0.00, 0.00, 0.00, gradient NaN, NaN, NaN" in said
    assert "C: weights 0.33, 0.33, 0.33, gradient 0.00, 0.00, 0.00" in said
    assert "before the softmax: 0 leaks. Masked after it: 15 of 15" in figures.influence().alt
    assert "15 of 25" in figures.gallery().alt and seen(figures.seen_by(5, 5)) == 15
    assert seen(figures.seen_by(5, 5, 2)) == 12


def seen(mask):
    return int(mask.sum())


@pytest.mark.full
def test_losses_on_random_letters():
    honest, leaking = map(float, re.findall(r"ends at (\d\.\d\d)", figures.too_good().alt))
    assert honest == pytest.approx(math.log(8), abs=0.03) and leaking == pytest.approx(math.log(8) / 12, abs=0.04)


def test_the_explorers_say_what_the_lesson_says():
    cells, causal = explore.Cells(TOKENS, SCORES), causal_mask(3).flatten().tolist()
    seen = {f"cell {i}": allowed for i, allowed in enumerate(causal)}
    assert "visits: 0.269, 0.731, 0.000" in cells(**seen).alt
    assert "africa: NaN, NaN, NaN" in cells(**seen | dict.fromkeys(("cell 6", "cell 7", "cell 8"), False)).alt
    fill = explore.Fill()(4, -5000, 9000).alt
    assert "filled in, the blocked keys get 0;" in fill and "added they get 1." in fill
    masks = explore.Masks()
    assert "3 rows see nothing" in masks(3, 0, 3).alt and "0 rows see nothing" in masks(3, 2, 4).alt
    assert "3 rows see nothing" in masks(3, 2, 5).alt  # a cache does not help where all keys are padding


def test_a_padding_mask_the_wrong_way_round_gives_nan_only_without_padding():
    torch.manual_seed(0)
    mha, x = nn.MultiheadAttention(4, 1, batch_first=True), torch.randn(2, 3, 4)
    out, weights = mha(x, x, x, key_padding_mask=padding_mask(torch.tensor([2, 3]), 3))
    assert out[0].isfinite().all() and (weights[0, :, :2] == 0).all() and out[1].isnan().all()


def masked_after(scores, mask):
    return torch.softmax(scores, dim=-1).masked_fill(~mask, 0.0)


def sees_everything(T_q, T_k=None):
    return torch.ones(T_q, T_k or T_q, dtype=torch.bool)


def everything_is_real(lengths, T):
    return torch.ones(len(lengths), T, dtype=torch.bool)


@pytest.mark.parametrize(
    ("parts", "nats", "times", "percent"),
    [
        ({}, "0.00016", "", 100),
        ({"causal_mask": sees_everything}, "0.056", "350", 100),
        ({"masked_softmax": masked_after}, "0.41", "2,600", 64),
        ({"padding_mask": everything_is_real}, "0.84", "5,300", 20),
    ],
    ids=["nothing", "no causal mask", "masked after", "no padding mask"],
)
def test_what_each_mistake_costs_the_translator(parts, nats, times, percent):
    machine, right = translator.machine(**parts), translator.machine()
    loss = nats_a_word(machine, unseen(LOSS_SENTENCES))
    assert in_nats(loss) == nats
    assert exact(machine, unseen(LOSS_SENTENCES).first(100)) == pytest.approx(percent / 100, abs=0.005)
    assert translator.translate(machine, "jane visits africa in september") == "jane visite l' afrique en septembre"
    if times:
        assert loss / nats_a_word(right, unseen(LOSS_SENTENCES)) == pytest.approx(
            float(times.replace(",", "")), rel=0.03
        )
    text = (ROOT / "solutions/05_masking/05_masking.py").read_text("utf-8")
    assert re.search(rf"\| {nats}(, {times} times)? \| {percent}% \|", text)


def judged(answer, name):
    return verdict_of("05_masking", name, answer, seed=78)


def compared(change, look):
    """A detector that changes the future by `change(x, start)` and compares with `look(after, before, start)`."""

    def leaks_future(f, x):
        before = f(x)
        return any(bool(look(f(change(x, start)), before, start)) for start in range(1, x.shape[1]))

    return leaks_future


def replaced(x, start):
    return torch.cat([x[:, :start], torch.randn_like(x[:, start:])], dim=1)


def largest(after, before, start):
    return (after - before)[:, :start].abs().max() > 1e-6


def then(rows):
    """The change that keeps the rows before `start` and puts rows(the others, those before) in place of the others."""
    return lambda x, start: torch.cat([x[:, :start], rows(x[:, start:], x[:, :start])], dim=1)


def after_a_seed(f, x):
    torch.manual_seed(0)
    new = torch.randn_like(x)
    return compared(lambda x, t: torch.cat([x[:, :t], new[:, t:]], dim=1), largest)(f, x)


CHANGES = {
    "+= 1": lambda later, old: later + 1,
    "zeros": lambda later, old: 0 * later,
    "feature 3 replaced": lambda later, old: torch.cat([later[:, :, :3], 2 - later[:, :, 3:]], 2),
    "ones": lambda later, old: torch.ones_like(later),
    "signs turned": lambda later, old: -later,
    "doubled": lambda later, old: -2 * later,
    "the same rows for all sentences": lambda later, old: torch.randn_like(later[:1]).expand_as(later),
    "shuffled": lambda later, old: later.roll(1, 1),
    "the row before": lambda later, old: old[:, -1:].expand_as(later),
    "noisy": lambda later, old: later * torch.randn_like(later),
}
LOOKS = {
    "sums": lambda a, b, t: (a - b)[:, :t].sum(-1).abs().max() > 1e-6,
    "means": lambda a, b, t: (a - b)[:, :t].mean((0, 2)).abs().max() > 1e-6,
    "upwards only": lambda a, b, t: (a - b)[:, :t].max() > 1e-6,
    "downwards only": lambda a, b, t: (a - b)[:, :t].min() < -1e-6,
    "sentence 0": lambda a, b, t: (a - b)[0, :t].abs().max() > 1e-6,
    "feature 0": lambda a, b, t: (a - b)[:, :t, 0].abs().max() > 1e-6,
    "the last feature": lambda a, b, t: (a - b)[:, :t, -1].abs().max() > 1e-6,
    "1e-2": lambda a, b, t: (a - b)[:, :t].abs().max() > 1e-2,
    "1e-3": lambda a, b, t: (a - b)[:, :t].abs().max() > 1e-3,
    "norms": lambda a, b, t: (a.norm(dim=-1) - b.norm(dim=-1))[:, :t].abs().max() > 1e-6,
    "every second t": lambda a, b, t: t % 2 == 1 and largest(a, b, t),
    "mean size": lambda a, b, t: (a - b)[:, :t].abs().mean() > 1e-6,
    "squares": lambda a, b, t: (a - b)[:, :t].pow(2).sum() > 1e-6,
    "numpy": lambda a, b, t: abs(a.detach().numpy() - b.numpy())[:, :t].max() > 1e-6,
}
DETECTORS = {name: compared(then(rows), largest) for name, rows in CHANGES.items()}
DETECTORS |= {name: compared(replaced, look) for name, look in LOOKS.items()} | {"a seed": after_a_seed}
# What is told of those for which a name is true, or could be taken for true.
TOLD = {"upwards only": "no_absolute_value", "numpy": "raises"}
TOLD |= dict.fromkeys(
    ["1e-3", "a seed", "doubled", "shuffled", "noisy", "the last feature", "the row before", "mean size"]
)


@pytest.mark.parametrize("how", DETECTORS)
def test_clumsy_detectors_are_refused_and_named_only_where_the_name_is_true(how):
    verdict = judged(DETECTORS[how], "leaks_future")
    assert not verdict.passed and (how not in TOLD or verdict.mistake == TOLD[how])


@pytest.mark.parametrize(
    ("change", "look"),
    [
        (replaced, largest),
        (replaced, lambda a, b, t: not torch.allclose(a[:, :t], b[:, :t], atol=1e-6)),
        (replaced, lambda a, b, t: (a - b)[:, :t].abs().sum() > 1e-6),
        (lambda x, t: torch.cat([x[:, :t], torch.rand_like(x[:, t:])], dim=1), largest),
        *(
            (lambda x, t, size=size: torch.cat([x[:, :t], x[:, t:] + size * torch.randn_like(x[:, t:])], 1), largest)
            for size in (0.3, 0.5, 1.0)
        ),
    ],
)
def test_detectors_that_find_every_leak_of_a_model_pass(change, look):
    assert judged(compared(change, look), "leaks_future").passed
