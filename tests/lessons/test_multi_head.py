"""Lesson 8: its blocks against torch's own attention, and the numbers that its text says."""

import copy
import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from helpers import blocks, translator
from helpers.blocks import apply_rope, causal_mask, equivariance_error, leaks_future
from helpers.checking.messages import decide
from helpers.checking.observe import Facts, observe_all
from helpers.checking.rendering import as_text
from helpers.lessons.multi_head import figures
from tests.conftest import stored_key

torch.set_num_threads(1)
HEADS, WIDTHS, SIZES = st.integers(1, 4), st.integers(1, 5), st.integers(1, 6)
SEEDS = st.integers(0, 10_000)
DTYPES = st.sampled_from([(torch.float32, 1e-6), (torch.float64, 1e-12)])
MASKS = st.sampled_from(["none", "full", "shared", "padding", "causal"])


def random(seed, *shape, dtype=torch.float64):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def random_mask(seed, kind, B, H, t_q, t_k):
    """None or a mask of this kind in which every row sees something."""
    if kind == "none":
        return None
    if kind == "causal":
        return torch.ones(t_q, t_k, dtype=torch.bool).tril()
    shape = {"full": (B, H, t_q, t_k), "shared": (t_q, t_k), "padding": (B, 1, 1, t_k)}[kind]
    mask = random(seed, *shape) > 0
    mask[..., seed % t_k] = True
    return mask


def pair(seed, D, H, dtype):
    """torch's module with random numbers everywhere, and ours with the same."""
    theirs = nn.MultiheadAttention(D, H, batch_first=True, dtype=dtype)
    with torch.no_grad():
        for i, parameter in enumerate(theirs.parameters()):
            parameter.copy_(random(seed + i, *parameter.shape, dtype=dtype) / D**0.5)
    mine = blocks.MultiHeadAttention(D, H).to(dtype)
    blocks.load_from_torch(mine, theirs)
    return mine, theirs.eval()


@given(SEEDS, HEADS, WIDTHS, SIZES, SIZES, SIZES, MASKS, DTYPES, st.sampled_from(["self", "cross", "three"]))
def test_many_heads_are_torchs(seed, H, width, B, t_q, t_k, kind, precision, inputs):
    dtype, tolerance = precision
    D = H * width
    mine, theirs = pair(seed, D, H, dtype)
    query = random(seed, B, t_q, D, dtype=dtype)
    given_inputs = {"self": (query,), "cross": (query, random(seed + 1, B, t_k, D, dtype=dtype))}
    given_inputs["three"] = (*given_inputs["cross"], random(seed + 2, B, t_k, D, dtype=dtype))
    args = given_inputs[inputs]
    key, value = args[min(1, len(args) - 1)], args[-1]
    mask = random_mask(seed, kind, B, H, t_q, key.shape[1])
    blocked = None if mask is None else ~mask.expand(B, H, t_q, key.shape[1]).flatten(0, 1)
    expected, expected_weights = theirs(query, key, value, attn_mask=blocked, average_attn_weights=False)
    out, weights = mine(*args, mask=mask)
    torch.testing.assert_close(out, expected, atol=tolerance, rtol=tolerance)
    torch.testing.assert_close(weights, expected_weights, atol=tolerance, rtol=tolerance)


@given(SEEDS, HEADS, WIDTHS, SIZES, SIZES, DTYPES)
def test_a_row_that_sees_nothing_gives_the_bias_and_no_nan(seed, H, width, B, T, precision):
    dtype, tolerance = precision
    mine, _ = pair(seed, H * width, H, dtype)
    x = random(seed, B, T, H * width, dtype=dtype).requires_grad_()
    mask = random(seed, T, T) > 0
    mask[seed % T] = False
    out, weights = mine(x, mask=mask)
    torch.testing.assert_close(out[:, seed % T], mine.W_o.bias.expand(B, -1), atol=tolerance, rtol=tolerance)
    assert not weights[:, :, seed % T].any()
    (out.sum() + (weights * weights).sum()).backward()
    assert x.grad.isfinite().all() and all(p.grad.isfinite().all() for p in mine.parameters())


@given(SEEDS, HEADS, WIDTHS, SIZES, SIZES)
def test_split_is_the_formula_and_merge_undoes_it(seed, H, width, B, T):
    x = random(seed, B, T, H * width)
    heads = blocks.split_heads(x, H)
    b, t, h, c = seed % B, seed % T, seed % H, seed % width
    assert heads.shape == (B, H, T, width) and heads[b, h, t, c] == x[b, t, h * width + c]
    assert torch.equal(blocks.merge_heads(heads), x)


@pytest.mark.parametrize(
    "make", [lambda: blocks.split_heads(torch.ones(1, 2, 10), 4), lambda: blocks.MultiHeadAttention(10, 4)]
)
def test_heads_that_do_not_fit_are_refused(make):
    with pytest.raises(ValueError, match="10 .* 4"):
        make()


def key_of(name):
    return stored_key("08_multi_head", name)


def verdict_on(name, answer):
    """The verdict on an answer, and the words that a learner reads."""
    key = key_of(name)
    facts = Facts(name, "99_test", key.facts.forbidden, 5.0)
    verdict = decide(key, observe_all(answer, key.cases, facts))
    return verdict, as_text(verdict)


class Late(blocks.MultiHeadAttention):
    """Heads that do not fit are refused by split_heads, when it runs: too late."""

    def __init__(self, d_model, num_heads):
        nn.Module.__init__(self)
        self.num_heads = num_heads
        self.W_q, self.W_k, self.W_v, self.W_o = (nn.Linear(d_model, d_model) for _ in range(4))


class ValueFromQuery(blocks.MultiHeadAttention):
    def forward(self, query, key=None, value=None, mask=None):
        return super().forward(query, key, query if value is None else value, mask)


@pytest.mark.parametrize(("answer", "mistake"), [(Late, "no_check"), (ValueFromQuery, "value_is_query")])
def test_slips_of_many_heads_have_names(answer, mistake):
    verdict, words = verdict_on("MultiHeadAttention", answer)
    assert verdict.mistake == mistake and not verdict.passed
    assert "{" not in words, "no raw dictionary"


class OneLayerFourTimes(blocks.MultiHeadAttention):
    def __init__(self, d_model, num_heads):
        super().__init__(d_model, num_heads)
        self.W_q, self.W_k, self.W_v, self.W_o = [nn.Linear(d_model, d_model)] * 4


def test_a_shared_layer_is_called_one():
    words = verdict_on("MultiHeadAttention", OneLayerFourTimes)[1]
    assert "W_q.weight and W_k.weight of your module are one tensor" in words and "raised" not in words


def test_an_importance_that_leaves_its_module_frozen_is_refused():
    def frozen(mha, x):
        mha.requires_grad_(False)
        return blocks.head_importance(mha, x)

    verdict, words = verdict_on("head_importance", frozen)
    assert not verdict.passed and "mha can still be trained" in words and "{" not in words


def with_new_parameters(mine, theirs):
    mine.W_o = copy.deepcopy(theirs.out_proj)
    blocks.load_from_torch(mine, theirs)


def freezing(mine, theirs):
    blocks.load_from_torch(mine, theirs.requires_grad_(False))


def switching_the_mode(mine, theirs):
    blocks.load_from_torch(mine, theirs.eval())


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (with_new_parameters, "mine has the parameters that it had, and no new ones"),
        (freezing, "theirs can still be trained"),
        (switching_the_mode, "theirs is in training mode, as before"),
    ],
)
def test_a_transplant_keeps_mines_parameters_and_leaves_theirs_alone(answer, words):
    verdict, said = verdict_on("load_from_torch", answer)
    assert not verdict.passed and words in said


def moving_unless_as_many(x, num_heads):
    return x.unflatten(-1, (num_heads, -1)) if x.shape[1] == num_heads else blocks.split_heads(x, num_heads)


def gluing_as_they_are(x):
    return x.flatten(2) if x.shape[1] == x.shape[2] else blocks.merge_heads(x)


def published_where_as_many(x, W_q, W_k, W_v, W_o, num_heads, mask=None):
    right = x.shape[1] != num_heads
    return (blocks.fixed_heads if right else published_heads)(x, W_q, W_k, W_v, W_o, num_heads, mask)


def test_as_many_heads_as_tokens_are_told_apart():
    assert not verdict_on("split_heads", moving_unless_as_many)[0].passed
    assert not verdict_on("merge_heads", gluing_as_they_are)[0].passed
    assert not verdict_on("fixed_heads", published_where_as_many)[0].passed


class OldKeys(blocks.MultiHeadAttention):
    """Keeps the keys of its first call."""

    def forward(self, query, key=None, value=None, mask=None):
        if key is None:
            old = getattr(self, "old", query)
            self.old = old if old.shape == query.shape else query
            key, value = self.old, query if value is None else value
        return super().forward(query, key, value, mask)


class CausalIfLong(blocks.MultiHeadAttention):
    def forward(self, query, key=None, value=None, mask=None):
        long = mask is None and key is None and query.shape[1] > 64
        return super().forward(query, key, value, causal_mask(query.shape[1]) if long else mask)


class MaskIfAny(blocks.MultiHeadAttention):
    def forward(self, query, key=None, value=None, mask=None):
        return super().forward(query, key, value, mask if mask is not None and mask.any() else None)


class MaskOnceTrained(blocks.MultiHeadAttention):
    def forward(self, query, key=None, value=None, mask=None):
        return super().forward(query, key, value, None if self.training else mask)


class ValuesOnceTrained(blocks.MultiHeadAttention):
    def forward(self, query, key=None, value=None, mask=None):
        return super().forward(query, key, key if self.training else value, mask)


class WithDropout(blocks.MultiHeadAttention):
    """Dropout of the outputs while it trains: in lesson 9 it is no part of this module either."""

    def forward(self, query, key=None, value=None, mask=None):
        out, weights = super().forward(query, key, value, mask)
        return F.dropout(out, 0.1, self.training), weights


@pytest.mark.parametrize(
    ("answer", "part"),
    [
        (OldKeys, "called again, in training mode"),
        (MaskOnceTrained, "called again, in training mode"),
        (ValuesOnceTrained, "called again, in training mode"),
        (WithDropout, "called again, in training mode"),
        (CausalIfLong, "a batch of one, a single token"),
        (MaskIfAny, "fully masked rows"),
    ],
)
def test_what_shows_in_one_part_only_is_seen(answer, part):
    parts = verdict_on("MultiHeadAttention", answer)[0].parts
    assert [item.name for item in parts if not item.passed] == [part]


def test_numbers_that_are_drawn_are_told_from_wrong_ones():
    said = "two results for the same numbers"
    assert said in verdict_on("MultiHeadAttention", WithDropout)[1]
    assert said not in verdict_on("MultiHeadAttention", MaskOnceTrained)[1]


def test_outputs_of_two_calls_share_no_memory():
    kept: dict = {}

    def in_one_buffer(x, num_heads):
        heads = blocks.split_heads(x, num_heads)
        return kept.setdefault((heads.shape, heads.dtype), torch.empty_like(heads)).detach().copy_(heads)

    verdict, words = verdict_on("split_heads", in_one_buffer)
    assert not verdict.passed and "compared after the second" in words


def test_blocks_keep_dtype_and_device():
    x = random(0, 2, 5, 12).bfloat16()
    mine = blocks.MultiHeadAttention(12, 3).bfloat16()
    out, weights = mine(x, mask=torch.ones(5, 5, dtype=torch.bool).tril())
    assert out.dtype == weights.dtype == torch.bfloat16
    exact = mine.double()(x.double(), mask=torch.ones(5, 5, dtype=torch.bool).tril())[0]
    torch.testing.assert_close(out.double(), exact, atol=0.05, rtol=0.05)
    devices = ["meta", *(["cuda"] if torch.cuda.is_available() else [])]
    for device in devices:
        moved = blocks.MultiHeadAttention(12, 3).to(device)
        x, mask = torch.ones(2, 5, 12, device=device), torch.ones(5, 5, dtype=torch.bool, device=device)
        out, weights = moved(x, mask=mask)
        assert out.device.type == weights.device.type == device and weights.shape == (2, 3, 5, 5)
        Q, K = torch.ones(2, 6, 5, 4, device=device), torch.ones(2, 3, 5, 4, device=device)
        assert blocks.grouped_query_attention(Q, K, K, mask).device.type == device
        assert blocks.head_importance(moved, x).shape == (3,)


def test_a_transplant_shares_no_memory():
    mine, theirs = pair(3, 12, 3, torch.float32)
    homes = {parameter.untyped_storage().data_ptr() for parameter in theirs.parameters()}
    assert not homes & {parameter.untyped_storage().data_ptr() for parameter in mine.parameters()}
    with torch.no_grad():
        theirs.in_proj_weight.zero_()
    assert mine.W_q.weight.any() and mine.W_v.weight.requires_grad


@given(HEADS, WIDTHS)
def test_the_number_of_parameters(H, width):
    D = H * width
    for module in (blocks.MultiHeadAttention(D, H), nn.MultiheadAttention(D, H)):
        assert sum(parameter.numel() for parameter in module.parameters()) == 4 * (D**2 + D)


def test_numbers_of_the_paper():
    numbers = figures.budget_numbers(512, 8, 512)
    assert numbers["parameters"] == 4 * (512**2 + 512) == 1_050_624
    assert numbers["width of a head"] == 64 and 512 * 512 + 512 == 262_656
    assert figures.budget_numbers(512, 1, 512)["products for scores"] == numbers["products for scores"]
    assert numbers["attention weights"] == 8 * figures.budget_numbers(512, 1, 512)["attention weights"]
    cache = 2 * 32 * 32 * 128 * 8192 * 2  # keys and values, heads, layers, width, tokens, bytes
    assert cache == 4 * 2**30 and cache * 8 // 32 == 2**30


@given(SEEDS, st.integers(1, 3), st.integers(1, 3), SIZES, SIZES, WIDTHS, MASKS)
def test_grouped_queries_are_torchs(seed, G, repeat, t_q, t_k, d, kind):
    H = G * repeat
    Q, K, V = random(seed, 2, H, t_q, d), random(seed + 1, 2, G, t_k, d), random(seed + 2, 2, G, t_k, d)
    mask = random_mask(seed, kind, 2, H, t_q, t_k)
    full = None if mask is None else mask.expand(2, H, t_q, t_k)
    expected = F.scaled_dot_product_attention(Q, K, V, full, enable_gqa=True)
    torch.testing.assert_close(blocks.grouped_query_attention(Q, K, V, mask), expected, atol=1e-12, rtol=1e-12)


@given(SEEDS, HEADS, WIDTHS, SIZES)
def test_importance_is_the_norm_of_what_a_head_adds(seed, H, width, T):
    mine, _ = pair(seed, H * width, H, torch.float64)
    x, before = random(seed, 2, T, H * width), {k: v.clone() for k, v in mine.state_dict().items()}
    found = blocks.head_importance(mine, x)
    heads = mine(x)[1] @ blocks.split_heads(mine.W_v(x), H)
    for h in range(H):
        added = heads[:, h] @ mine.W_o.weight[:, h * width : (h + 1) * width].T
        torch.testing.assert_close(found[h], added.norm(), atol=1e-12, rtol=1e-9)
    assert all(torch.equal(value, before[name]) for name, value in mine.state_dict().items())


@given(SEEDS, HEADS, WIDTHS, SIZES, MASKS)
def test_fixed_heads_are_torchs(seed, H, width, T, kind):
    D = H * width
    _, theirs = pair(seed, D, H, torch.float64)
    with torch.no_grad():
        theirs.in_proj_bias.zero_()
        theirs.out_proj.bias.zero_()
    x, mask = random(seed, 2, T, D), random_mask(seed, kind, 2, H, T, T)
    blocked = None if mask is None else ~mask.expand(2, H, T, T).flatten(0, 1)
    out = blocks.fixed_heads(x, *theirs.in_proj_weight.chunk(3), theirs.out_proj.weight, H, mask)
    torch.testing.assert_close(out, theirs(x, x, x, attn_mask=blocked)[0], atol=1e-12, rtol=1e-12)


def published_heads(x, W_q, W_k, W_v, W_o, num_heads, mask=None):
    """The lesson's bug: heads glued without moving their axis back."""
    Q, K, V = (blocks.split_heads(x @ W.T, num_heads) for W in (W_q, W_k, W_v))
    return blocks.attention(Q, K, V, mask)[0].reshape(x.shape) @ W_o.T


def test_the_published_heads_leak_and_ours_do_not():
    g = torch.Generator().manual_seed(0)
    four, tokens = torch.randn(4, 16, 16, generator=g) / 4, torch.randn(2, 8, 16, generator=g)
    for heads, leaks in ((published_heads, True), (blocks.fixed_heads, False)):
        assert leaks_future(lambda x, heads=heads: heads(x, *four, 2, causal_mask(8)), tokens) is leaks
    moved = figures.influence(lambda x: published_heads(x, *four, 2, causal_mask(8)), tokens[0]) > 1e-6
    assert moved[0].nonzero().flatten().tolist() == [0, 1]
    assert moved[3, 4:].all()
    assert moved[4].nonzero().flatten().tolist() == [0, 1]


def test_one_head_misses_half_of_a_difference():
    best = []
    for w in torch.linspace(0, 1, 21).tolist():  # the best linear guess of a - b from w a + (1 - w) b
        best.append(1 - (2 * w - 1) ** 2 / (2 * (w * w + (1 - w) ** 2)))
    assert min(best) == pytest.approx(0.5) and best[10] == pytest.approx(1.0)


def test_heads_are_blind_to_order_and_rotation_knows_distance():
    for H in (1, 2, 4, 8):
        layer = blocks.MultiHeadAttention(16, H)
        assert equivariance_error(lambda x, f=layer: f(x[None])[0][0], torch.randn(8, 16), torch.randperm(8)) < 1e-6
    Q, K, positions = random(0, 2, 4, 5, 16), random(1, 2, 4, 5, 16), torch.arange(5)
    here, there = ((apply_rope(Q, p) @ apply_rope(K, p).mT) for p in (positions, positions + 7))
    torch.testing.assert_close(here, there, atol=1e-9, rtol=0)
    assert (here - Q @ K.mT).abs().max() > 0.1


def test_what_the_text_says_of_the_translator():
    whole, rows = figures.damage()
    assert whole < 0.0003
    assert rows[1][0] > 300 * whole and 0.05 < rows[1][0] < 0.07
    assert max(*rows[0], *rows[1][1:]) < 0.002
    whole, side_by_side, off = figures.damage_of_identity()
    assert side_by_side == pytest.approx(1.6, abs=0.05) and off == pytest.approx(0.7, abs=0.05)
    assert len(translator.french) == 194 and math.log(194) == pytest.approx(5.3, abs=0.05)


def test_what_the_text_says_of_its_heads():
    with_positions, without = figures.weight_by_distance(True), figures.weight_by_distance(False)
    assert [round(100 * with_positions[3, i].item()) for i in (2, 4)] == [47, 9]
    assert [round(100 * with_positions[0, i].item()) for i in (2, 4, 5)] == [10, 35, 27]
    assert 0.1 <= without.min() + 0.005 and without.max() < 0.2
    house = figures.encoder_weights("a clever teacher sees the white house")[1]
    found = [(0, 2), (1, 2), (4, 6), (5, 6)]
    assert [round(house[0, q, k].item(), 2) for q, k in found] == [0.98, 0.98, 0.98, 0.99]
    assert house[3, 3, 2] > 0.9
    jane = figures.encoder_weights("jane visits africa in september")[1, 3]
    assert [round(jane[i, i - 1].item(), 2) for i in (1, 2, 3)] == [0.92, 0.71, 0.8]


def test_pictures_say_their_numbers():
    assert "1 head 0.51" in figures.two_questions({"1 head": 0.51}).alt
    cut = figures.cut(torch.arange(12.0).view(2, 6), 2).alt
    assert "head 0 rows [[0, 1, 2], [6, 7, 8]]" in cut and "head 0 rows [[0, 1, 2], [3, 4, 5]]" in cut
    assert "weights (3, 4, 5, 5)" in figures.shapes(3, 5, 64, 4).alt
    assert "parameters 1,050,624" in figures.Budget()(8, 512).alt

    def unanswered(mine, theirs):
        raise NotImplementedError

    assert "not answered yet" in figures.transplant(unanswered, None, None)


def by_batch(mask, B, axes):
    """The mask, its first axis taken for that of the batch where it has so many axes."""
    fits = mask is not None and mask.dim() == axes and (axes == 3 or mask.shape[0] == B)
    return mask.reshape(mask.shape[0], *([1] * (4 - axes)), *mask.shape[1:]) if fits else mask


def opened(mask, *, where=True):
    """The mask with everything seen in rows with nothing to see."""
    return mask if mask is None or not where else mask | ~mask.any(-1, keepdim=True)


MASKED = {
    "2 axes": lambda query, key, mask: by_batch(mask, len(query), 2),
    "3 axes": lambda query, key, mask: by_batch(mask, len(query), 3),
    "1 axis": lambda query, key, mask: None if mask is not None and mask.dim() == 1 else mask,
    "one sentence": lambda query, key, mask: None if len(query) == 1 else mask,
    "blind rows": lambda query, key, mask: opened(mask, where=mask is not None and mask.dim() == 4),
    "blind rows of a key": lambda query, key, mask: opened(mask, where=key is not query),
}


@pytest.mark.parametrize("slip", MASKED)
def test_masks_of_every_layout_are_tried(slip):
    change = MASKED[slip]

    class Changed(blocks.MultiHeadAttention):
        def forward(self, query, key=None, value=None, mask=None):
            return super().forward(query, key, value, change(query, query if key is None else key, mask))

    def fixed_heads(x, W_q, W_k, W_v, W_o, num_heads, mask=None):
        return blocks.fixed_heads(x, W_q, W_k, W_v, W_o, num_heads, change(x, x, mask))

    def grouped_query_attention(Q, K, V, mask=None):
        return blocks.grouped_query_attention(Q, K, V, change(Q, K, mask))

    assert not verdict_on("MultiHeadAttention", Changed)[0].passed
    for answer in (fixed_heads, grouped_query_attention):
        right = (slip, answer) in (("one sentence", grouped_query_attention), ("blind rows of a key", fixed_heads))
        assert right or not verdict_on(answer.__name__, answer)[0].passed, answer.__name__


def test_masks_of_queries_split_into_groups_are_tried():
    def five_axes(Q, K, V, mask=None):
        B, H, T, d = Q.shape
        if mask is not None and mask.dim() == 4:
            shape = (B, K.shape[1], -1, T, mask.shape[-1])
            mask = mask.reshape(shape) if mask.shape[1] == H else mask[:, :, None]
        Q = Q.reshape(B, K.shape[1], -1, T, d)
        return blocks.attention(Q, K[:, :, None], V[:, :, None], mask)[0].reshape(B, H, T, d)

    verdict = verdict_on("grouped_query_attention", five_axes)[0]
    assert [item.name for item in verdict.parts if not item.passed] == ["a mask"]


class ByRows(blocks.MultiHeadAttention):
    def forward(self, query, key=None, value=None, mask=None):
        return super().forward(query.view(-1, query.shape[-1]).view(query.shape), key, value, mask)


def test_inputs_that_are_views_are_tried():
    def fixed_heads(x, *others, **given):
        return blocks.fixed_heads(x.view(-1, x.shape[-1]).view(x.shape), *others, **given)

    def grouped_query_attention(Q, *others, **given):
        return blocks.grouped_query_attention(Q.view(len(Q), -1).view(Q.shape), *others, **given)

    answers = {
        "fixed_heads": fixed_heads,
        "grouped_query_attention": grouped_query_attention,
        "MultiHeadAttention": ByRows,
    }
    for name, answer in answers.items():
        parts = verdict_on(name, answer)[0].parts
        assert [item.name for item in parts if not item.passed] == ["tensors that are views of others"], name


class Unnamed(blocks.MultiHeadAttention):
    """Keeps its number of heads under another name, makes heads that do not fit, and never learns W_q's bias."""

    def __init__(self, d_model, num_heads):
        nn.Module.__init__(self)
        self.heads = num_heads
        self.W_q, self.W_k, self.W_v, self.W_o = (nn.Linear(d_model, d_model) for _ in range(4))
        self.W_q.bias.requires_grad_(False)

    def forward(self, query, key=None, value=None, mask=None):
        given = blocks.MultiHeadAttention(query.shape[-1], self.heads)
        given.W_q, given.W_k, given.W_v, given.W_o = self.W_q, self.W_k, self.W_v, self.W_o
        return given(query, key, value, mask)


def test_what_a_module_lacks_is_said_in_its_own_words():
    words = verdict_on("MultiHeadAttention", Unnamed)[1]
    assert "your module has no num_heads" in words and "a string" not in words
    assert "expected a ValueError, but your code made the module" in words
    assert "your parameter W_q.bias is frozen" in words and "differentiated Tensors" not in words


def copied_in_a_computation(mine, theirs):
    mine.requires_grad_(False)
    with torch.enable_grad():
        layers = (mine.W_q, mine.W_k, mine.W_v, mine.W_o)
        for kind, theirs_of_it in (("weight", theirs.in_proj_weight), ("bias", theirs.in_proj_bias)):
            parts = (*theirs_of_it.chunk(3), getattr(theirs.out_proj, kind))
            for layer, part in zip(layers, parts, strict=True):
                getattr(layer, kind).copy_(part)
    mine.requires_grad_(True)


def test_numbers_that_autograd_takes_for_results_are_refused():
    verdict, words = verdict_on("load_from_torch", copied_in_a_computation)
    assert not verdict.passed and "parameters, not results of a computation" in words


def squeezed_if_one(x):
    return x.squeeze() if x.shape[1] == 1 else blocks.merge_heads(x)


def squeezed_if_narrow(x):
    return x.squeeze(-1).mT.squeeze() if x.shape[-1] == 1 else blocks.merge_heads(x)


def one_head_squeezed(x, W_q, W_k, W_v, W_o, num_heads, mask=None):
    if num_heads > 1:
        return blocks.fixed_heads(x, W_q, W_k, W_v, W_o, num_heads, mask)
    return blocks.attention(x @ W_q.T, x @ W_k.T, x @ W_v.T, mask)[0].squeeze() @ W_o.T


@pytest.mark.parametrize(
    ("name", "answer"),
    [("merge_heads", squeezed_if_one), ("merge_heads", squeezed_if_narrow), ("fixed_heads", one_head_squeezed)],
)
def test_axes_of_size_one_are_left_where_they_are(name, answer):
    parts = verdict_on(name, answer)[0].parts
    assert [item.name for item in parts if not item.passed] == ["a batch of one, a single token"]


def test_shared_memory_is_said_as_what_should_hold():
    def taken(mine, theirs):
        mine.W_o.weight.data = theirs.out_proj.weight.data
        blocks.load_from_torch(mine, theirs)

    words = verdict_on("load_from_torch", taken)[1]
    assert "expected: mine holds copies: it shares no memory with theirs; in your answer this is not so" in words


def test_a_padded_item_is_not_called_the_only_one_that_is_right():
    class Opened(blocks.MultiHeadAttention):
        def forward(self, query, key=None, value=None, mask=None):
            return super().forward(query, key, value, opened(mask, where=mask is not None and mask.dim() == 4))

    assert "first item" not in verdict_on("MultiHeadAttention", Opened)[1]


def test_a_view_that_transposed_inputs_refuse_keeps_its_mistakes_name():
    def by_view(x, num_heads):
        B, T, D = x.shape
        if D % num_heads:
            raise ValueError
        return x.view(B, num_heads, T, D // num_heads)

    assert verdict_on("split_heads", by_view)[0].mistake == "cut_without_moving"


@pytest.mark.parametrize(("fill", "passed"), [(-1e4, False), (-1e9, True)])
def test_what_is_added_to_hidden_scores_must_outweigh_all_scores(fill, passed):
    class Added(blocks.MultiHeadAttention):
        def forward(self, query, key=None, value=None, mask=None):
            out, weights = super().forward(query, key, value, mask)
            if mask is None or not mask.any(-1).all():
                return out, weights
            key = query if key is None else key
            value = key if value is None else value
            parts = self.W_q(query), self.W_k(key), self.W_v(value)
            Q, K, V = (blocks.split_heads(part, self.num_heads) for part in parts)
            weights = torch.softmax(Q @ K.mT / Q.shape[-1] ** 0.5 + fill * ~mask, dim=-1)
            return self.W_o(blocks.merge_heads(weights @ V)), weights

    assert verdict_on("MultiHeadAttention", Added)[0].passed == passed
