"""Lesson 5: its blocks against torch's own functions, and the numbers and claims that the lesson states."""

import math
import re

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F

from helpers import blocks, translator
from helpers.blocks import (
    causal_mask,
    combine_masks,
    fixed_causal_attention,
    leaks_future,
    mask_scores,
    masked_softmax,
    padding_mask,
)
from helpers.lessons.masking import explore, figures
from helpers.translator.evaluation import LOSS_SENTENCES, exact, in_nats, nats_a_word, unseen
from tests.judged import verdict_of
from tests.lab import ROOT

SCORES = torch.tensor([[1.0, 2, 0], [0, 1, 2], [1, 0, 1]])  # jane visits africa, already scaled
seeds = st.integers(0, 2**31)
dtypes = st.sampled_from([torch.float32, torch.float64])
leads = st.lists(st.integers(1, 3), max_size=2)


def normal(seed, *shape, dtype=torch.float64):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def test_numbers_of_the_worked_example():
    weights = masked_softmax(SCORES, causal_mask(3))
    assert weights[1].tolist() == pytest.approx([0.269, 0.731, 0], abs=5e-4)
    after = SCORES.softmax(-1) * causal_mask(3)
    assert after[1].tolist() == pytest.approx([0.090, 0.245, 0], abs=5e-4)
    assert after.sum(-1)[1].item() == pytest.approx(0.335, abs=5e-4)
    assert torch.tensor([0.0, 1, 0]).softmax(0)[:2].sum().item() == pytest.approx(0.788, abs=5e-4)


@given(st.integers(1, 7), st.integers(0, 5))
def test_causal_mask_is_the_end_of_a_square_one(T_q, past):
    T_k = T_q + past
    mask = causal_mask(T_q, T_k)
    assert mask.dtype == torch.bool
    assert torch.equal(mask, torch.ones(T_k, T_k).tril().bool()[past:])
    assert torch.equal(causal_mask(T_q), causal_mask(T_q, T_q))


@given(st.lists(st.integers(0, 6), min_size=1, max_size=5), st.integers(0, 3))
def test_padding_mask_counts_the_real_tokens_first(lengths, spare):
    T = max(max(lengths), 1) + spare
    mask = padding_mask(torch.tensor(lengths), T)
    assert mask.tolist() == [[True] * n + [False] * (T - n) for n in lengths]


@given(st.integers(1, 4), st.integers(1, 5), st.integers(0, 3), seeds)
def test_combined_mask_entry_by_entry(B, T_q, past, seed):
    causal, padding = causal_mask(T_q, T_q + past), normal(seed, B, T_q + past) > 0
    both = combine_masks(causal, padding)
    assert both.shape == (B, 1, T_q, T_q + past) and both.dtype == torch.bool
    for b in range(B):
        for i in range(T_q):
            for j in range(T_q + past):
                assert both[b, 0, i, j].item() == (causal[i, j].item() and padding[b, j].item())


@given(leads, st.integers(1, 5), st.integers(1, 6), dtypes, seeds)
def test_masked_softmax_is_softmax_over_the_visible_entries(lead, T_q, T_k, dtype, seed):
    scores = normal(seed, *lead, T_q, T_k, dtype=dtype)
    mask = normal(seed + 1, *lead, T_q, T_k) > 0
    weights = masked_softmax(scores, mask)
    assert weights.dtype == dtype
    rows = zip(scores.reshape(-1, T_k), mask.reshape(-1, T_k), weights.reshape(-1, T_k), strict=True)
    for row, seen, out in rows:
        assert (out[~seen] == 0).all()
        assert torch.allclose(out[seen], torch.softmax(row[seen], 0), atol=1e-6)


@given(st.integers(1, 4), st.integers(1, 5), seeds)
def test_gradients_have_no_nan_where_a_row_sees_nothing(T_q, T_k, seed):
    scores = (normal(seed, T_q, T_k) * 3000).requires_grad_()
    mask = normal(seed + 1, T_q, T_k) > 0
    mask[0] = False
    masked_softmax(scores, mask).square().sum().backward()
    assert scores.grad.isfinite().all()
    assert (scores.grad[~mask] == 0).all()


def test_masked_scores_are_scores_or_minus_infinity():
    out = mask_scores(SCORES, causal_mask(3))
    assert out.tolist() == [[1, -math.inf, -math.inf], [0, 1, -math.inf], [1, 0, 1]]


@given(leads, st.integers(1, 6), st.integers(1, 4), st.integers(1, 4), dtypes, seeds)
def test_repaired_attention_is_torchs_own(lead, T, d_k, d_v, dtype, seed):
    Q, K, V = (normal(seed + i, *lead, T, d, dtype=dtype) for i, d in enumerate((d_k, d_k, d_v)))
    out = fixed_causal_attention(Q, K, V)
    assert out.dtype == dtype
    assert torch.allclose(out, F.scaled_dot_product_attention(Q, K, V, is_causal=True), atol=1e-5)
    assert torch.allclose(out, F.scaled_dot_product_attention(Q, K, V, attn_mask=causal_mask(T)), atol=1e-5)


def test_leaks_are_found_in_attention_masked_after_the_softmax_and_not_before():
    x = normal(3, 2, 6, 4)

    def masked_after(x):
        return ((x @ x.mT / 2).softmax(-1) * causal_mask(6)) @ x

    assert leaks_future(masked_after, x) is True
    assert leaks_future(lambda x: fixed_causal_attention(x, x, x), x) is False
    assert leaks_future(lambda x: x.mean(1, keepdim=True) + x, x[:, :1]) is False


@pytest.mark.parametrize("seed", [0, 3, 1337])
def test_leaks_are_found_with_the_generator_in_the_state_that_made_x(seed):
    torch.manual_seed(seed)
    x = torch.randn(2, 6, 4)
    for width in (1, 6):  # the state that made all of x, and one that made its first rows
        torch.manual_seed(seed)
        assert leaks_future(lambda x: x.mean(1, keepdim=True) + x, x[:, :width].repeat(1, 6 // width, 1)) is True
        torch.manual_seed(seed)
        assert leaks_future(lambda x: x.cumsum(1), x[:, :width].repeat(1, 6 // width, 1)) is False


@pytest.mark.parametrize("size", [0.5, 1.0])
def test_noise_added_to_the_old_rows_is_right(size):
    noisy = compared(lambda x, t: torch.cat([x[:, :t], x[:, t:] + size * torch.randn_like(x[:, t:])], dim=1), largest)
    assert judged(noisy, "leaks_future").passed


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
    cells = explore.Cells(TOKENS, SCORES)
    assert "visits: 0.269, 0.731, 0.000" in cells(causal_mask(3)).alt
    assert "africa: NaN, NaN, NaN" in cells(causal_mask(3) & torch.tensor([[True], [True], [False]])).alt
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


@pytest.mark.parametrize(
    ("change", "look"),
    [
        (lambda x, t: torch.cat([x[:, :t], x[:, t:] + 1], dim=1), largest),
        (replaced, lambda a, b, t: (a - b)[:, :t].sum(-1).abs().max() > 1e-6),
        (replaced, lambda a, b, t: (a - b)[:, :t].mean((0, 2)).abs().max() > 1e-6),
        (replaced, lambda a, b, t: (a - b)[:, :t].max() > 1e-6),
        (replaced, lambda a, b, t: (a - b)[:, :t].min() < -1e-6),
        (replaced, lambda a, b, t: (a - b)[0, :t].abs().max() > 1e-6),
        (replaced, lambda a, b, t: (a - b)[:, :t, 0].abs().max() > 1e-6),
        (replaced, lambda a, b, t: (a - b)[:, :t].abs().max() > 1e-2),
        (replaced, lambda a, b, t: (a.norm(dim=-1) - b.norm(dim=-1))[:, :t].abs().max() > 1e-6),
        (replaced, lambda a, b, t: t % 2 == 1 and largest(a, b, t)),
        (replaced, lambda a, b, t: (a - b)[:, :t].abs().mean() > 1e-6),
        (replaced, lambda a, b, t: not torch.allclose(a[:, :t], b[:, :t])),
        (lambda x, t: torch.cat([x[:, :t], 0 * x[:, t:]], dim=1), largest),
        (lambda x, t: torch.cat([x[:, :t], torch.cat([x[:, t:, :3], 2 - x[:, t:, 3:]], 2)], dim=1), largest),
        (lambda x, t: torch.cat([x[:, :t], torch.ones_like(x[:, t:])], dim=1), largest),
        (lambda x, t: torch.cat([x[:, :t], -x[:, t:]], dim=1), largest),
        (lambda x, t: torch.cat([x[:, :t], torch.randn_like(x[:1, t:]).expand_as(x[:, t:])], dim=1), largest),
    ],
    ids=[
        "+= 1",
        "sums",
        "means",
        "upwards only",
        "downwards only",
        "sentence 0",
        "feature 0",
        "1e-2",
        "norms",
        "every second t",
        "mean size",
        "allclose",
        "zeros",
        "feature 3 replaced",
        "ones",
        "signs turned",
        "the same rows for all sentences",
    ],
)
def test_clumsy_detectors_are_refused_and_a_careful_one_is_not(change, look):
    assert not judged(compared(change, look), "leaks_future").passed
    assert judged(compared(replaced, largest), "leaks_future").passed


def test_a_detector_that_asks_for_slopes_is_refused():
    def slopes(f, x):
        jacobian = torch.autograd.functional.jacobian(f, x).abs().amax((0, 2, 3, 5))
        return bool((jacobian.triu(1) > 1e-6).any())

    assert not judged(slopes, "leaks_future").passed


@pytest.mark.parametrize(
    ("change", "look", "mistake"),
    [
        (replaced, lambda a, b, t: (a - b)[:, :t].max() > 1e-6, "no_absolute_value"),
        (replaced, lambda a, b, t: not torch.allclose(a[:, :t], b[:, :t]), "relative_change"),
        (replaced, lambda a, b, t: (a - b)[:, :t].abs().max() > 1e-3, None),
        (lambda x, t: torch.cat([x[:, :t], torch.rand_like(x[:, t:])], dim=1), largest, None),
    ],
)
def test_detectors_are_not_called_what_they_are_not(change, look, mistake):
    assert judged(compared(change, look), "leaks_future").mistake == mistake


def test_a_visible_score_of_zero_stays_visible():
    def zeros_blocked(scores, mask):
        return (scores * mask).masked_fill(scores * mask == 0, -math.inf)

    def triangle_of_scores(Q, K, V):
        scores = (Q @ K.mT / Q.shape[-1] ** 0.5).tril()
        return torch.softmax(scores.masked_fill(scores == 0, -math.inf), dim=-1) @ V

    wrong = {"mask_scores": zeros_blocked, "fixed_causal_attention": triangle_of_scores}
    wrong |= {"masked_softmax": lambda s, m: torch.softmax(zeros_blocked(s, m).clamp_min(-1e9), dim=-1) * m}
    for name, answer in wrong.items():
        assert not judged(answer, name).passed, name
    assert judged(zeros_blocked, "mask_scores").mistake == "zeros_blocked"


@pytest.mark.parametrize("dtype", [torch.float32, torch.int32, torch.int64])
def test_masks_of_numbers_are_told_of_their_dtype(dtype):
    for name in ("causal_mask", "padding_mask", "combine_masks"):
        answer = getattr(blocks, name)
        verdict = judged(lambda *args, answer=answer, **given: answer(*args, **given).to(dtype), name)
        assert not verdict.passed and "bool" in verdict.message, name


def test_a_root_rounded_to_float32_is_right():
    def fixed_causal_attention(Q, K, V):
        scores = Q @ K.mT / torch.tensor(Q.shape[-1]).sqrt()
        return torch.softmax(scores.masked_fill(~causal_mask(Q.shape[-2]), -math.inf), dim=-1) @ V

    assert judged(fixed_causal_attention, "fixed_causal_attention").passed


def test_a_cut_input_is_told_to_be_replaced():
    cut = judged(compared(lambda x, t: x[:, :t], lambda a, b, t: (a - b[:, :t]).abs().max() > 1e-6), "leaks_future")
    assert not cut.passed and "replace the rows after t, do not cut them off" in cut.message


def test_a_large_number_subtracted_gives_wrong_values():
    verdict = judged(lambda s, m: s - 1e9 * ~m, "mask_scores")
    assert verdict.points == 0 and verdict.mistake == "large_number_added"


def test_rows_rolled_instead_of_replaced_are_not_told_of_later_outputs():
    rolled = judged(lambda f, x: bool((f(x) != f(x.roll(1, 1))).any()), "leaks_future")
    assert not rolled.passed and rolled.mistake is None
    later = judged(compared(replaced, lambda a, b, t: (a - b).abs().max() > 1e-6), "leaks_future")
    assert later.mistake == "later_outputs_compared"


def test_masked_scores_of_another_shape_or_dtype_are_described_as_such():
    cut = judged(lambda s, m: s[m.expand(s.shape)], "mask_scores")
    assert cut.mistake == "wrong_shape" and cut.message.startswith("scores that may be seen:\nexpected shape (4, 6)\n")
    rounded = judged(lambda s, m: s.masked_fill(~m, -math.inf).float(), "mask_scores")
    assert rounded.message.splitlines() == [
        "scores that may be seen: expected dtype float64, yours is float32",
        "with mask_scores(<float64 (4, 6)>, <bool (4, 6)>)",
    ]


@pytest.mark.parametrize("fill", [-1e4, -1000.0])
def test_a_fill_that_a_visible_score_can_reach_is_refused(fill):
    def attention(Q, K, V, before=1.0):
        scores = (Q @ K.mT / before).masked_fill(~causal_mask(Q.shape[-2]), fill) * before / Q.shape[-1] ** 0.5
        return torch.softmax(scores, dim=-1) @ V

    assert not judged(lambda s, m: torch.softmax(s.masked_fill(~m, fill), dim=-1) * m, "masked_softmax").passed
    for before in (lambda Q: 1.0, lambda Q: Q.shape[-1] ** 0.5):
        verdict = judged(lambda Q, K, V, before=before: attention(Q, K, V, before(Q)), "fixed_causal_attention")
        assert not verdict.passed and verdict.mistake is None


def test_any_constant_fill_that_vanishes_is_right():
    for fill in (-1e9, -math.inf, torch.finfo(torch.float32).min):
        assert judged(lambda s, m, fill=fill: s.masked_fill(~m, fill), "mask_scores").passed
    assert judged(lambda s, m: s.masked_fill(~m, -1000.0), "mask_scores").mistake == "minus_1000_filled"
    assert judged(lambda s, m: s + ~m * -1e9, "mask_scores").mistake == "large_number_added"


def by_batch(mask, scores, axes):
    """The mask, its first axis taken for that of the batch where it has so many axes."""
    fits = mask.dim() == axes and scores.dim() == 4 and (axes == 3 or mask.shape[0] == scores.shape[0])
    return mask.reshape(mask.shape[0], *([1] * (4 - axes)), *mask.shape[1:]) if fits else mask


def zeroed_unless(skip):
    """Rows with nothing to see are mended, but for what `skip` says of a mask."""

    def masked_softmax(scores, mask):
        weights = torch.softmax(scores.masked_fill(~mask, -1e30), dim=-1)
        return weights if skip(mask) else weights * mask

    return masked_softmax


@pytest.mark.parametrize(
    ("answer", "name", "part"),
    [
        (lambda s, m: blocks.masked_softmax(s, by_batch(m, s, 2)), "masked_softmax", "masks that broadcast"),
        (lambda s, m: blocks.masked_softmax(s, by_batch(m, s, 3)), "masked_softmax", "masks that broadcast"),
        (lambda s, m: blocks.mask_scores(s, by_batch(m, s, 2)), "mask_scores", "masks that broadcast"),
        (lambda s, m: blocks.mask_scores(s, by_batch(m, s, 3)), "mask_scores", "masks that broadcast"),
        (zeroed_unless(lambda m: m.dim() == 1), "masked_softmax", "fully masked rows"),
        (
            lambda lengths, T: padding_mask(lengths[:1] if (lengths == T).all() else lengths, T),
            "padding_mask",
            "a sentence without padding",
        ),
    ],
)
def test_masks_of_every_layout_are_tried(answer, name, part):
    assert part in [item.name for item in judged(answer, name).parts if not item.passed]


@pytest.mark.parametrize("root", [lambda d: d / 2, lambda d: 2, math.isqrt, math.log2])
def test_what_is_the_root_of_four_alone_is_refused(root):
    def fixed_causal_attention(Q, K, V):
        return blocks.masked_softmax(Q @ K.mT / root(Q.shape[-1]), causal_mask(Q.shape[-2])) @ V

    assert judged(fixed_causal_attention, "fixed_causal_attention").points == 0


def after_a_seed(f, x):
    torch.manual_seed(0)
    new = torch.randn_like(x)
    return compared(lambda x, t: torch.cat([x[:, :t], new[:, t:]], dim=1), largest)(f, x)


def test_a_detector_that_rounds_x_to_float32_is_refused():
    rounding = compared(replaced, largest)
    verdict = judged(lambda f, x: rounding(f, x.detach().float()), "leaks_future")
    assert not verdict.passed and "dtype" in verdict.message


def noisy(x, t):
    return torch.cat([x[:, :t], x[:, t:] * torch.randn_like(x[:, t:])], dim=1)


def doubled(x, t):
    return torch.cat([x[:, :t], -2 * x[:, t:]], dim=1)


@pytest.mark.parametrize(
    ("answer", "mistake"),
    [
        (after_a_seed, None),
        (compared(replaced, lambda a, b, t: not torch.allclose(a[:, :t], b[:, :t], atol=1e-6)), None),
        (compared(replaced, lambda a, b, t: (a - b)[:, :t].abs().max() > 1e-5), None),
        (compared(replaced, lambda a, b, t: abs(a.detach().numpy() - b.numpy())[:, :t].max() > 1e-6), "raises"),
        (compared(doubled, largest), None),
        (compared(replaced, lambda a, b, t: (a.round(decimals=4) != b.round(decimals=4))[:, :t].any()), None),
        (compared(replaced, lambda a, b, t: (a - b)[:, :t, -1].abs().max() > 1e-6), None),
        (compared(lambda x, t: torch.cat([x[:, :t], x[:, t:].roll(1, 1)], dim=1), largest), None),
        (compared(lambda x, t: torch.cat([x[:, :t], x[:, t - 1 : t].expand_as(x[:, t:])], 1), largest), None),
        (compared(noisy, largest), None),
        (compared(replaced, lambda a, b, t: (a - b)[:, :t].abs().sum() > 1e-6), None),
        (compared(replaced, lambda a, b, t: (a - b)[:, :t].pow(2).sum() > 1e-6), None),
        (compared(replaced, lambda a, b, t: (a - b)[:, :t].abs().mean() > 1e-6), None),
    ],
    ids="seed rtol 1e-5 numpy doubled rounded last-feature shuffled past noisy sum squares mean".split(),
)
def test_detectors_that_passed_once_are_refused_and_named_only_where_the_name_is_true(answer, mistake):
    verdict = judged(answer, "leaks_future")
    assert not verdict.passed and verdict.mistake == mistake


@pytest.mark.parametrize(
    ("fill", "words"),
    [
        (lambda s: s.amin(-1, keepdim=True) - 1000, "softmax turns each into 0 here"),
        (lambda s: s.amin(-1, keepdim=True) - 1e9, "numbers that differ"),
        (lambda s: -1e6 - s.abs(), "numbers that differ"),
        (lambda s: s - 1e9, "the score plus -1e+09"),
    ],
)
def test_a_fill_is_called_what_it_is(fill, words):
    verdict = judged(lambda s, m: torch.where(m, s, fill(s)), "mask_scores")
    details = "".join(item.detail for item in verdict.parts)
    assert not verdict.passed
    assert words in details and ("plus" in words or "plus" not in details)
