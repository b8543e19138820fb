"""Lesson 8: its real bug, and the numbers in its text."""

import functools
import math
import random
import re

import pytest
import torch
from torch import nn

from helpers import blocks, translator
from helpers.blocks import causal_mask, equivariance_error, leaks_future
from helpers.corpus import lexicon, sentence_pairs
from helpers.lessons.multi_head import explore, figures
from helpers.translator import evaluation
from tests import other_trainings
from tests.draws import pictures_of
from tests.judged import stored_verdict
from tests.lessons import lesson_text


def test_sizes_of_the_paper():
    numbers = figures.budget_numbers(512, 8, 512)
    assert numbers["parameters"] == 4 * (512**2 + 512) == 1_050_624
    assert numbers["width of a head"] == 64 and 512 * 512 + 512 == 262_656
    says("512 · 512 + 512 = 262,656")
    assert figures.budget_numbers(512, 1, 512)["products for scores"] == numbers["products for scores"]
    assert numbers["attention weights"] == 8 * figures.budget_numbers(512, 1, 512)["attention weights"]
    cache = 2 * 32 * 32 * 128 * 8192 * 2  # keys and values, heads, layers, width, tokens, bytes
    assert cache == 4 * 2**30 and cache * 8 // 32 == 2**30


def published_heads(x, W_q, W_k, W_v, W_o, num_heads, mask=None):
    """The lesson's bug, which merges the heads without moving their axis back."""
    Q, K, V = (blocks.split_heads(x @ W.T, num_heads) for W in (W_q, W_k, W_v))
    return blocks.attention(Q, K, V, mask)[0].reshape(x.shape) @ W_o.T


def test_the_merge_bug_leaks_and_the_fixed_heads_do_not():
    g = torch.Generator().manual_seed(0)
    four, tokens = torch.randn(4, 16, 16, generator=g) / 4, torch.randn(2, 8, 16, generator=g)
    for heads, leaks in ((published_heads, True), (blocks.fixed_heads, False)):
        assert leaks_future(lambda x, heads=heads: heads(x, *four, 2, causal_mask(8)), tokens) is leaks
    moved = figures.influence(lambda x: published_heads(x, *four, 2, causal_mask(8)), tokens[0]) > 1e-6
    assert moved[0].nonzero().flatten().tolist() == [0, 1]
    assert moved[3, 4:].all()
    assert moved[4].nonzero().flatten().tolist() == [0, 1]


def test_a_single_head_explains_at_most_half_of_a_difference():
    best = []
    for w in torch.linspace(0, 1, 21).tolist():  # error of the best linear estimate of a - b from w a + (1 - w) b
        best.append(1 - (2 * w - 1) ** 2 / (2 * (w * w + (1 - w) ** 2)))
    assert min(best) == pytest.approx(0.5) and best[10] == pytest.approx(1.0)


def test_loss_of_the_translator_without_single_heads():
    whole, rows = figures.ablation_losses()
    assert whole < 0.0003
    assert rows[1][0] > 300 * whole and 0.05 < rows[1][0] < 0.07
    assert max(*rows[0], *rows[1][1:]) < 0.002
    whole, side_by_side, off = figures.identity_losses()
    assert side_by_side == pytest.approx(1.6, abs=0.05) and off == pytest.approx(0.7, abs=0.05)
    assert len(translator.french) == 194 and math.log(194) == pytest.approx(5.3, abs=0.05)


def test_attention_weights_of_the_translators_heads():
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


def test_figures_state_their_numbers():
    assert "1 head 0.51" in figures.two_questions({"1 head": 0.51}).alt
    split = figures.split_into_heads(torch.arange(12.0).view(2, 6), 2).alt
    assert "head 0 rows [[0, 1, 2], [6, 7, 8]]" in split and "head 0 rows [[0, 1, 2], [3, 4, 5]]" in split
    assert "weights (3, 4, 5, 5)" in figures.shapes(3, 5, 64, 4).alt
    assert "parameters 1,050,624" in pictures_of(explore.budget)(8, 512).alt

    def unanswered(mine, theirs):
        raise NotImplementedError

    assert "not answered yet" in figures.transplant(unanswered, None, None)


def test_the_check_tries_a_mask_that_an_answer_with_five_axes_handles_wrongly():
    def five_axes(Q, K, V, mask=None):
        B, H, T, d = Q.shape
        if mask is not None and mask.dim() == 4:
            shape = (B, K.shape[1], -1, T, mask.shape[-1])
            mask = mask.reshape(shape) if mask.shape[1] == H else mask[:, :, None]
        Q = Q.reshape(B, K.shape[1], -1, T, d)
        return blocks.attention(Q, K[:, :, None], V[:, :, None], mask)[0].reshape(B, H, T, d)

    verdict = stored_verdict("08_multi_head", "grouped_query_attention", five_axes)
    assert [item.name for item in verdict.parts if not item.passed] == ["a mask"]


# Measured claims. The lesson has to contain each sentence that is quoted here.

says = functools.partial(lesson_text.says, "08_multi_head")


def differences(n, T, generator):
    numbers = torch.randn(n, T, 4, generator=generator)
    positions = 2 * torch.eye(8)[:T].expand(n, T, 8)
    x = torch.cat([numbers, positions, torch.zeros(n, T, 4)], dim=-1)
    return x, numbers[:, 1:-1] - numbers[:, :-2]


def unexplained(layer, n, T, generator):
    x, target = differences(n, T, generator)
    return (layer(x)[:, 2:, 6:10] - target).pow(2).mean() / 2


def trained(layer, parameters, generator, T=8, steps=300):
    optimizer = torch.optim.Adam(parameters, lr=0.02)
    for _ in range(steps):
        loss = unexplained(layer, 64, T, generator)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        return unexplained(layer, 4000, T, generator).item()


def one_head(seed, **options):
    generator = torch.Generator().manual_seed(seed)
    torch.manual_seed(seed)
    net = nn.MultiheadAttention(16, 1, batch_first=True)
    return trained(lambda x: net(x, x, x, need_weights=False)[0], list(net.parameters()), generator, **options)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_single_head_explains_half_after_300_steps(seed):
    says("| *what changed*, one head | 0.51 | 0.50 to 0.51 with three initializations |")
    assert one_head(seed) == pytest.approx(0.505, abs=0.012)


@pytest.mark.slow
def test_after_more_steps_some_heads_depend_on_the_content():
    says("five of twelve runs let $w$ depend on the content and left 0.40 to 0.43")
    found = [one_head(seed, T=3, steps=2000) for seed in (0, 1, 3)]  # three of the twelve
    assert found == pytest.approx([0.40, 0.50, 0.42], abs=0.02)


def test_heads_ignore_the_order_unless_there_is_a_causal_mask():
    says("Without a mask the error is only rounding", "With a causal mask each token sees only earlier tokens")
    torch.manual_seed(0)
    order = torch.randperm(8)
    for num_heads in (1, 2, 4, 8):
        layer, x = blocks.MultiHeadAttention(16, num_heads), torch.randn(8, 16)
        assert equivariance_error(lambda x, f=layer: f(x[None])[0][0], x, order) < 1e-6
        assert equivariance_error(lambda x, f=layer: f(x[None], mask=causal_mask(8))[0][0], x, order) > 0.1


def test_rotations_hardly_change_heads_that_were_trained_without_them():
    says("which hardly changes the attention weights", "so RoPE has to be present during training")
    mha = blocks.MultiHeadAttention(64, 4)
    mha.load_state_dict(translator.part_state("encoder.blocks.0.attention"))
    bare = figures.embedded(figures.SENTENCES[0], positions=False)
    Q, K = blocks.split_heads(mha.W_q(bare), 4), blocks.split_heads(mha.W_k(bare), 4)
    alt = figures.by_distance(Q[0, :, 1], K[0, :, 2], "visits", "africa").alt
    deep = [float(number) for number in re.search(r"measure (.*)\.$", alt)[1].split(", ")]
    assert len(deep) == 4 and all(0 < number < 0.1 for number in deep)
    control = (
        torch.randn(2, 4, 16, generator=torch.Generator().manual_seed(0)) * 1.5
    )  # queries and keys of a usual length
    assert "measure 0.0" not in figures.by_distance(*control, "one", "other").alt
    says("without them the heads of block 0 have tiny scores")
    assert largest_score(mha, bare) < 0.1 < 1 < largest_score(mha, figures.embedded(figures.SENTENCES[0]))


def largest_score(mha, x):
    """Return the largest absolute score of all heads, without rotations."""
    Q, K = blocks.split_heads(mha.W_q(x), 4), blocks.split_heads(mha.W_k(x), 4)  # (B, H, T, d)
    return (Q @ K.mT / 4).abs().max().item()


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_merge_bug_fits_eight_tokens_and_fails_on_seven(seed):
    says(
        "| the merge bug, tested on seven tokens | 6.4 | 0.6 to 4.1 in eleven runs |",
        "its error is larger than if it always answered 0",
    )
    on_eight, on_seven = fitted(published_heads, seed, None)
    assert on_eight < 0.25 and 0.5 < on_seven < 7


def fitted(heads, seed, generator):
    """Return the errors of two trained heads on eight tokens, as in their training, and on seven."""
    torch.manual_seed(seed)
    own = [nn.Parameter(nn.init.xavier_uniform_(torch.empty(16, 16))) for _ in range(4)]

    def layer(x):
        return heads(x, *own, 2)

    on_eight = trained(layer, own, generator)
    with torch.no_grad():
        return on_eight, unexplained(layer, 2000, 7, generator).item()


def test_the_fixed_heads_fit_eight_tokens_and_seven():
    says("There's no leak.", "nothing is left unexplained, on eight tokens or on seven.")
    assert max(fitted(blocks.fixed_heads, 0, torch.Generator().manual_seed(0))) < 0.02


def test_keys_that_were_trained_separately_cannot_be_shared_afterwards():
    says("The loss rises to $1.8$ nats per word with two groups and to $5.4$ with one, slightly worse than a uniform")
    alt = figures.shared_keys(blocks.grouped_query_attention).alt
    losses = [float(number) for number in re.findall(r"(\d+\.\d{4})", alt)]
    assert losses[0] < 0.0003 and losses[1:] == pytest.approx([1.8, 5.4], abs=0.05)


def test_number_of_attention_parameters_of_the_translator():
    names = [name for name in translator.state() if "attention" in name]
    assert sum(translator.state()[name].numel() for name in names) == 6 * 4 * (64**2 + 64) == 99_840


@torch.no_grad()
def test_some_heads_are_needless_and_some_replace_one_another():
    says("| heads 1, 2 and 3 of block 1 | 0.00024 |", "So the three heads of block 1 contribute almost nothing")
    says("| all four of block 0 (their single costs sum to 0.003) | 0.025 |", "| all of these seven | 0.18 |")

    def without(*heads):
        network = translator.model()
        for block, head in heads:
            network.get_submodule(figures.ATTENTIONS[block]).W_o.weight[:, head * 16 : (head + 1) * 16] = 0
        return evaluation.nats_per_word(network, evaluation.unseen(200))

    whole, (first, _) = figures.ablation_losses()
    low, high = [(0, h) for h in range(4)], [(1, h) for h in (1, 2, 3)]
    assert sum(first) - 4 * whole == pytest.approx(0.003, abs=0.0005)
    assert whole == pytest.approx(0.00016, abs=5e-6) and without(*high) == pytest.approx(0.00024, abs=1e-5)
    assert without(*low) == pytest.approx(0.025, abs=0.0006)
    assert without(*low, *high) == pytest.approx(0.18, abs=0.006)


def test_the_head_that_finds_the_noun_needs_positions_even_with_one_noun():
    says(
        "their noun over 90% of their weight with positions", "only 21% if there are two nouns and 43% if there is one"
    )
    pairs, found = sentence_pairs(600, random.Random(3), unseen=True), {}
    src = translator.source_batch([pair.english for pair in pairs])
    for places in (True, False):
        seen = evaluation.attention_of(figures._network(places), src).encoder[1][:, 0]  # (600, T, T)
        for pair, weights in zip(pairs, seen, strict=True):
            words = pair.english.split()
            nouns = [i for i, word in enumerate(words) if word in lexicon.NOUNS]
            for i, word in enumerate(words):
                noun = next((n for n in nouns if n > i), None)
                between = words[i:noun] if word in lexicon.ADJECTIVES else words[i + 1 : noun]
                if (
                    noun
                    and word in {*lexicon.ADJECTIVES, *lexicon.DETERMINERS, "an"}
                    and {*between} <= {*lexicon.ADJECTIVES}
                ):
                    found.setdefault((min(len(nouns), 2), places), []).append(weights[i, noun].item())
    means = [sum(found[key]) / len(found[key]) for key in ((2, True), (2, False), (1, True), (1, False))]
    assert means == pytest.approx([0.93, 0.21, 0.91, 0.43], abs=0.006)


@pytest.mark.slow
def test_in_other_training_runs_other_heads_matter():
    says("| seeds 1 and 2 | none matters | at most 0.0008 |")
    says("| seed 3 | one in block 0 | 0.011 to 0.022 on two computers |")
    batch, worst = evaluation.unseen(100), []
    for seed in (1, 2, 3):
        network, costs = other_trainings.trained(seed), {}
        for name in figures.ATTENTIONS:
            W_o = network.get_submodule(name).W_o.weight
            saved = W_o.detach().clone()
            for h in range(4):
                with torch.no_grad():
                    W_o[:, h * 16 : (h + 1) * 16] = 0
                    costs[name, h] = evaluation.nats_per_word(network, batch)
                    W_o.copy_(saved)
        worst.append((max(costs.values()), max(costs, key=costs.get)[0]))
    costs, heads = zip(*worst, strict=True)
    assert max(costs[:2]) < 0.001 and 0.008 < costs[2] < 0.03
    assert heads[2] == figures.ATTENTIONS[0]
