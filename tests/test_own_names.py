"""Whole models under names of their own: held to the formula by giving all matrices of a kind the same numbers."""

import functools
from dataclasses import replace

import pytest
import torch
from torch import nn

from helpers.authoring.blocks import load_blocks
from helpers.checking.making import make_key
from helpers.checking.messages import decide
from helpers.checking.observe import observe_all
from helpers.checking.rendering import as_text
from helpers.checking.vocabulary import VALUES
from helpers.course import course
from tests.mutation_score import exercises

torch.set_num_threads(1)
LESSONS = {"GPT": "12_language_model"}


class Attention(nn.Module):
    def __init__(self, width, heads, slip):
        super().__init__()
        self.heads, self.slip = heads, slip
        self.asks, self.answers, self.says, self.out = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x, y, mask):
        q, k, v = (layer(z).unflatten(-1, (self.heads, -1)).transpose(1, 2) for layer, z in self._layers(x, y))
        scale = x.shape[-1] if self.slip == "scaled by the model's width" else q.shape[-1]
        scores = (q @ k.mT / scale**0.5).masked_fill(~mask, -1e9)
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))

    def _layers(self, x, y):
        return (self.asks, x), (self.answers, y), (self.says, y)


def places(T, slip):
    """0 to T - 1, or what `slip` makes of it."""
    if slip == "places that come again":
        return torch.arange(T) % 4
    return torch.arange(T).clamp(max=31 if slip == "places as far as 31" else T)


class OwnGPT(nn.Module):
    slip = ""

    def __init__(self, vocab_size, block_size, d_model, num_heads, num_layers):
        super().__init__()
        self.block_size, self.before = block_size, None
        num_layers += self.slip == "a layer too many"
        self.words, self.places = nn.Embedding(vocab_size, d_model), nn.Embedding(block_size, d_model)
        self.looks = nn.ModuleList(Attention(d_model, num_heads, self.slip) for _ in range(num_layers))
        self.thinks = nn.ModuleList(
            nn.Sequential(nn.Linear(d_model, 4 * d_model), nn.GELU(), nn.Linear(4 * d_model, d_model))
            for _ in range(num_layers)
        )
        self.norms = nn.ModuleList(nn.LayerNorm(d_model) for _ in range(2 * num_layers + 1))

    def forward(self, ids):
        T = ids.shape[1]
        x, where = self.words(ids) * 2, self.places(places(T, self.slip))
        x = x + (where.detach() if self.slip == "places cannot learn" else where)
        if self.slip == "remembers" and self.before is not None and self.before.shape == x.shape:
            x = x + 0.1 * self.before
        self.before = x.detach()
        mask = torch.ones(T, T).tril().bool()
        mask = mask.triu(-16) if self.slip == "hears sixteen places" else mask
        norms = [*self.norms]
        if self.slip == "a norm in two places":
            norms[-1] = norms[-2]
        for i, (look, think) in enumerate(zip(self.looks, self.thinks, strict=True)):
            calm = norms[2 * i](x)
            x = x + look(calm, calm, mask)
            x = x + think(norms[2 * i + 1](x))
        x = x[:, -1:] if self.slip == "the last place alone" else x
        logits = norms[-1](x) @ self.words.weight.T
        return logits.log_softmax(-1) if self.slip == "log-probabilities" else logits


class GPTWithALastLayer(OwnGPT):
    def __init__(self, vocab_size, block_size, d_model, num_heads, num_layers):
        super().__init__(vocab_size, block_size, d_model, num_heads, num_layers)
        self.unused = nn.Linear(d_model, vocab_size)


FORMULA = ("the formula, with given numbers",)


@functools.lru_cache
def key_of(name, parts):
    lesson = LESSONS[name]
    exercise = next(item for item in exercises(lesson) if item.name == name)
    whole = exercise.cases

    def of_these_parts(draw):
        return [replace(case, part=VALUES) for case in whole(draw) if case.part in parts]

    one = replace(exercise, mistakes=[], cases=of_these_parts)
    return make_key(lesson, one, 10, False, getattr(load_blocks(course(), course().lesson(lesson)), name), 101)


@functools.lru_cache
def passes(name, answer, slip, parts=FORMULA):
    key = key_of(name, parts)
    return decide(key, observe_all(type(name, (answer,), {"slip": slip}), key.cases, key.facts)).passed


@pytest.mark.parametrize("slip", ["scaled by the model's width", "places that come again", "log-probabilities"])
def test_a_gpt_of_other_names_is_held_to_the_formula_and_a_layer_nobody_uses_is_no_fault(slip):
    assert passes("GPT", OwnGPT, "") and passes("GPT", GPTWithALastLayer, "")
    assert not passes("GPT", GPTWithALastLayer, slip)


@pytest.mark.parametrize(
    ("name", "answer", "slip"),
    [
        ("GPT", GPTWithALastLayer, "a norm in two places"),
        ("GPT", GPTWithALastLayer, "a layer too many"),
        ("GPT", GPTWithALastLayer, "places cannot learn"),
        ("GPT", GPTWithALastLayer, "remembers"),
        ("GPT", GPTWithALastLayer, "hears sixteen places"),
        ("GPT", GPTWithALastLayer, "places as far as 31"),
    ],
)
def test_a_whole_of_other_names_is_judged_by_what_it_does(name, answer, slip):
    parts = ("three layers", "a text as long as block_size")
    assert passes(name, answer, "", parts)
    assert not passes(name, answer, slip, parts)


def test_a_gpt_that_answers_for_the_last_place_only_is_told_of_its_shape_and_not_of_norms():
    key = key_of("GPT", (VALUES,))
    answer = type("GPT", (OwnGPT,), {"slip": "the last place alone"})
    said = as_text(decide(key, observe_all(answer, key.cases, key.facts)))
    assert "logits have the shape" in said and "norm" not in said
