"""The course's translator is small, nearly perfect, and made of parts that the exercises can replace."""

import runpy
import types
from pathlib import Path

import pytest
import torch
from safetensors.torch import load

from helpers import blocks, translator
from helpers.checking.forbidden import block_lesson
from helpers.checking.key import lesson_of
from helpers.translator import FINISHED_PARTS, evaluation, finished_parts, pictures, trained, training
from helpers.translator.parts import PARTS
from helpers.translator.word_ids import BOS, EOS, PAD, french, french_sentence
from tests.judged import differing_parts

PATH = Path(trained.__file__).with_name(trained.WEIGHTS)


@pytest.fixture(scope="module")
def network():
    return translator.model()


def test_the_weights_are_small():
    assert PATH.stat().st_size < 600_000
    assert all(tensor.dtype == torch.float16 for tensor in load(PATH.read_bytes()).values())
    assert sum(tensor.numel() for tensor in translator.state().values()) < 250_000


def test_it_translates_unseen_sentences(network):
    batch = evaluation.unseen(500)
    assert evaluation.exact(network, batch) >= 0.995
    assert 0.00003 < evaluation.nats_per_word(network, batch) < 0.005  # at almost zero, bugs would show no effect
    assert translator.translate(network, "jane visits africa in september") == "jane visite l' afrique en septembre"


def test_a_sentence_ends_at_its_first_eos():
    le, chat = french["le"], french["chat"]
    assert french_sentence([BOS, le, PAD, chat, EOS, le]) == "le chat"


def test_all_parts_of_a_lesson_have_the_same_view():
    for number in range(2, 10):
        assert len({part.view for part in PARTS if part.lesson == number}) == 1, number


def test_the_strongest_heads_attend_to_their_words_most(network):
    """Over 300 sentences they have the largest mean weight on the related word, in the order of STRONGEST_HEAD."""
    sums, batch = {relation: [] for relation in evaluation.STRONGEST_HEAD}, evaluation.unseen(300)
    seen = torch.stack(evaluation.attention_of(network, batch.src).encoder)  # (L, B, H, T, T)
    for i, english in enumerate(batch.english):
        for relation, words in evaluation.relation_pairs(english).items():
            sums[relation] += [seen[:, i, :, query, key] for query, key in words]
    means = {relation: torch.stack(items).mean(dim=0) for relation, items in sums.items()}  # (L, H) each
    assert {relation: divmod(int(mean.argmax()), 4) for relation, mean in means.items()} == evaluation.STRONGEST_HEAD
    strength = [float(mean.max()) for mean in means.values()]
    assert strength == sorted(strength, reverse=True) and strength[0] > 0.6


def test_the_head_shown_for_a_verb_attends_to_the_previous_word_and_not_the_subject(network):
    layer, head, relation = evaluation.head_for("jane visits africa in september")
    assert relation == "verb to the previous word"
    apart = "jane often visits africa", "the old woman often paints a white house"
    for sentence, subject, verb in zip(apart, (0, 2), (2, 4), strict=True):
        weights = evaluation.attention_of(network, translator.source_batch([sentence])).encoder[layer][
            0, head, verb
        ]  # (T,)
        assert weights[verb - 1] > 0.5 > 0.25 > weights[subject], sentence


def test_weights_load_into_the_exercises_modules_by_name(network):
    sizes = {"MultiHeadAttention": (64, 4), "EncoderBlock": (64, 4, 128), "DecoderBlock": (64, 4, 128)}
    sizes["Encoder"] = (len(translator.english), 64, 4, 128, 2, 24)
    names = {
        "MultiHeadAttention": "encoder.blocks.0.attention",
        "EncoderBlock": "encoder.blocks.1",
        "DecoderBlock": "blocks.1",
        "Encoder": "encoder",
    }
    for name, prefix in names.items():
        module = FINISHED_PARTS[name](*sizes[name])
        module.load_state_dict(translator.part_state(prefix))
        if name in dir(blocks):
            getattr(blocks, name)(*sizes[name]).load_state_dict(translator.part_state(prefix))
    with pytest.raises(KeyError):
        translator.part_state("encoder.blocks.7")


def test_a_module_with_other_names_loads_if_only_one_tensor_fits():
    class Renamed(FINISHED_PARTS["Transformer"]):
        def __init__(self, *sizes):
            super().__init__(*sizes)
            self.target_embedding, self.target_positions, self.to_words = self.tokens, self.positions, self.unembed
            del self.tokens, self.positions, self.unembed

        def decode(self, tgt, memory, src):
            self.__dict__ |= {"tokens": self.target_embedding, "positions": self.target_positions}
            self.__dict__["unembed"] = self.to_words
            return super().decode(tgt, memory, src)

    network = translator.model(Transformer=Renamed)
    assert translator.translate(network, "tom is happy") == "tom est heureux"

    class Lacking(FINISHED_PARTS["Transformer"]):
        def __init__(self, *sizes):
            super().__init__(*sizes)
            self.unembed = torch.nn.Linear(64, 7)

    with pytest.raises(ValueError, match="unembed"):
        translator.model(Transformer=Lacking)


# Cases of exercises that the translator's own parts need not pass.
LACKS = {
    "cross_entropy": {"any leading dimensions"},
    "EncoderBlock": {"norm_first=True", "any activation"},
    "DecoderBlock": {"norm before the sublayers", "another activation"},
    "Transformer": {"padding has no effect"},
}


@pytest.mark.parametrize("name", FINISHED_PARTS)
def test_finished_parts_pass_the_cases_of_their_exercises(name):
    assert differing_parts(lesson_of(name), name, FINISHED_PARTS[name]) == LACKS.get(name, set())


@pytest.mark.parametrize("name", [name for name in FINISHED_PARTS if name not in ("leaks_future", "head_importance")])
def test_every_finished_block_works_inside_the_translator(name, network):
    batch = evaluation.unseen(50)
    replaced = translator.model(**{name: getattr(blocks, name)})
    assert evaluation.nats_per_word(replaced, batch) == pytest.approx(
        evaluation.nats_per_word(network, batch), rel=1e-3
    )


def test_finished_parts_do_not_count_as_blocks():
    assert not any(block_lesson(part) for part in FINISHED_PARTS.values())


def test_a_short_training_is_reproducible(capsys):
    first, second = training.train(steps=3).state_dict(), training.train(steps=3).state_dict()
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert training.train(seed=8, steps=3).state_dict()["unembed.weight"].ne(first["unembed.weight"]).any()


@pytest.mark.slow
@pytest.mark.timeout(3600)  # two minutes if nothing else runs
def test_a_new_training_gives_an_equally_good_translator():
    network, batch = training.train(), evaluation.unseen(2000)
    assert evaluation.exact(network, batch) >= 0.995
    assert evaluation.nats_per_word(network, batch) < 0.005


def test_an_answer_that_calls_a_part_of_the_translator_is_refused():
    from helpers import or_finished
    from helpers.checking.forbidden import in_source

    finished_scores = FINISHED_PARTS["scaled_scores"]

    def by_name(Q, K):
        return finished_scores(Q, K)

    def by_table(Q, K):
        return FINISHED_PARTS["scaled_scores"](Q, K)

    def by_detour(Q, K):
        return or_finished(by_name)(Q, K)

    def by_import(Q, K):
        from helpers.translator.finished_parts import scaled_scores

        return scaled_scores(Q, K)

    def honest(Q, K):
        return Q @ K.mT / len(translator.english)

    class Mine(FINISHED_PARTS["AttentionHead"]):
        pass

    by_code = types.FunctionType(finished_scores.__code__, {}, "scaled_scores")
    by_file = runpy.run_path(finished_parts.__file__)["scaled_scores"]
    for answer in (
        finished_scores,
        by_name,
        by_table,
        by_detour,
        by_import,
        FINISHED_PARTS["AttentionHead"],
        Mine,
        by_code,
        by_file,
    ):
        assert in_source(answer, (), "04_scaling")
    assert not in_source(honest, (), "04_scaling")


def test_an_answer_that_calls_code_of_figures_or_explorers_is_refused():
    from helpers.checking.forbidden import in_source
    from helpers.checking.messages import forbidden_text
    from helpers.lessons.encoder_block import figures
    from helpers.lessons.encoder_block.explore import streams
    from helpers.lessons.scaling import figures as scaling
    from helpers.lessons.token_embedding.word2vec import all_pairs

    def by_module(p):
        return scaling.largest_derivative(p)

    def by_recipe(x, attention, feed_forward, norm1, norm2, mask=None):
        x = figures.recipe("pre-norm", x, norm1, lambda z: attention(z, mask=mask)[0])
        return figures.recipe("pre-norm", x, norm2, feed_forward)

    def by_import(kind, pairs, x):
        from helpers.lessons.encoder_block.figures import climb

        return climb(kind, pairs, x)

    def honest(x):
        return x * figures.WIDTH * len(figures.WORDS)

    def last_picture(x):
        return sum(x for _ in range(3)), [_ for _ in range(3)], (lambda _: _)(x)

    last_picture.__globals__["_"] = figures.absolute_value  # as IPython stores a cell's last output
    assert not in_source(last_picture, (), "09_encoder_block")
    del last_picture.__globals__["_"]

    for answer, name in (
        (scaling.largest_derivative, "scaling.figures.largest_derivative"),
        (by_module, "scaling.figures.largest_derivative"),
        (by_recipe, "encoder_block.figures.recipe"),
        (by_import, "encoder_block.figures.climb"),
    ):
        assert in_source(answer, (), "09_encoder_block") == [f"helpers.lessons.{name}"]
    assert in_source(streams, (), "09_encoder_block") and in_source(all_pairs, (), "01_token_embedding")
    assert "course's own code" in forbidden_text("helpers.lessons.scaling.figures.largest_derivative", None)
    assert not in_source(honest, (), "09_encoder_block")


def test_no_weight_is_called_the_largest_if_all_are_nearly_equal():
    words = ["jane", "visits", "africa"]
    weights = torch.tensor([[0.3334, 0.3333, 0.3333], [0.2, 0.5, 0.3], [0.336, 0.332, 0.332]])
    alt = pictures.all_heads(weights[None, None], [[0.0]], words).alt
    assert "jane attends equally to all, 0.33; visits attends most to visits, 0.50; " in alt
    assert "africa attends equally to all, 0.34" in alt
    weights[2, 0] = 0.338
    assert "africa attends most to jane, 0.34" in pictures.all_heads(weights[None, None], [[0.0]], words).alt
    assert "jane attends most to jane, 1.00" in pictures.all_heads(torch.ones(1, 1, 1, 1), [[0.0]], words[:1]).alt
