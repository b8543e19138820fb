"""Lesson 13: the blocks compared with BERT of transformers, the files of weights, and the numbers in the text."""

import hashlib
import io
import os
import urllib.error
import urllib.request
from pathlib import Path
from unittest import mock

import nbformat
import pytest
import torch
from torch.nn import functional as F

from helpers import blocks, pretrained
from helpers.authoring.text import read_lesson
from helpers.blocks import Encoder, head_importance, wordpiece
from helpers.course import course
from helpers.lessons.real_model import explore, figures
from helpers.lessons.real_model import network as real_network
from helpers.pretrained import model_files, weights
from tests.draws import pictures_of
from tests.judged import verdict_of

os.environ.setdefault("HF_HUB_OFFLINE", "1")
LESSON = "13_real_model"
SENTENCES = [  # twenty, with 1 to about 40 tokens
    "jane visits africa",
    "Jane visits Africa in September.",
    "a woman travels to kenya",
    "the stock market fell",
    "she sat on the river bank",
    "he put money in the bank",
    "the bank lent him cash",
    "Life is short, eat dessert first",
    "I like to eat apples",
    "unaffable crêpes, 3.14 and C3PO!",
    "Why?",
    "no",
    "The animal did not cross the street because it was too tired.",
    "the trophy does not fit into the suitcase because it is too small",
    "Attention is all you need; is it?",
    "如何 学习",
    "It's a dog-eat-dog world (they say) ... isn't it?",
    "email me at someone@example.com or call +1-555-0100",
    "supercalifragilisticexpialidocious antidisestablishmentarianism",
    " ".join(["the quick brown fox jumps over the lazy dog"] * 4),
]


@pytest.fixture(scope="module")
def real():
    """The network's weights. Without them tests are skipped, or fail in CI, where nothing may be skipped."""
    if not pretrained.is_real():
        (pytest.fail if os.environ.get("COURSE_CI") == "1" else pytest.skip)(f"no numbers here: {pretrained.HOW_TO}")
    return pretrained.state_dict()


@pytest.fixture
def fresh_caches():
    """Clear everything that a kernel caches about the network, before and after the test."""
    cached = (weights._loaded, real_network.network, real_network.reading, figures.shifts_without, figures.influences)
    for function in cached:
        function.cache_clear()
    yield
    for function in cached:
        function.cache_clear()


def folder_of_the_model() -> Path:
    return model_files.find(model_files.NUMBERS).parent


def filled(weights) -> Encoder:
    """Return lesson 9's Encoder with the network's weights, as the lesson loads them."""
    width, inner = 384, 1536
    encoder = Encoder(30_522, width, 12, inner, 6, 512, activation=F.gelu)
    missing, unexpected = encoder.load_state_dict(blocks.rename_weights(weights), strict=False)
    assert missing == ["tokens.weight", "positions.weight"] and not unexpected
    for block in encoder.blocks:
        block.norm1.eps = block.norm2.eps = 1e-12
    return encoder.requires_grad_(False)


def read(encoder, weights, sentences):
    ids, mask = pretrained.batch(sentences, wordpiece)
    hidden = [blocks.bert_embeddings(ids, weights)]
    for block in encoder.blocks:
        hidden.append(block(hidden[-1], mask[:, None, None]))
    return ids, mask, hidden


# ---------------------------------------------------------------- the network is the published one


@pytest.mark.full
def test_hidden_states_and_sentence_vectors_equal_those_of_transformers(real):
    import transformers

    bert = transformers.BertModel.from_pretrained(folder_of_the_model(), attn_implementation="eager").eval()
    ids, mask, mine = read(filled(real), real, SENTENCES)
    assert len(ids) == 20 and not mask.all()
    with torch.no_grad():
        theirs = bert(ids, attention_mask=mask.long(), output_hidden_states=True, output_attentions=True)
    for ours, expected in zip(mine, theirs.hidden_states, strict=True):
        assert (ours - expected)[mask].abs().max() < 1e-4
    shares = mask[..., None].float()
    expected = (theirs.hidden_states[-1] * shares).sum(1) / shares.sum(1)
    assert (blocks.mean_pool(mine[-1], mask) - expected).abs().max() < 1e-4
    finished = real_network.reading(*SENTENCES)
    assert (finished.hidden[-1] - theirs.hidden_states[-1])[mask].abs().max() < 1e-4
    for ours, expected in zip(finished.attention, theirs.attentions, strict=True):
        rows = mask[:, None, :, None] & mask[:, None, None, :]
        assert ((ours - expected) * rows).abs().max() < 1e-4


def test_strongest_heads_and_similarities_to_three_decimals(real):
    with torch.no_grad():
        encoder = filled(real)
        _, _, hidden = read(encoder, real, ["jane visits africa"])
        looks = [block.attention(x)[1] for block, x in zip(encoder.blocks, hidden, strict=False)]
        among = real_network.among_words(torch.stack(looks)[:, 0])
        _, mask, top = read(encoder, real, ["jane visits africa", "a woman travels to kenya", "the stock market fell"])
        vectors = F.normalize(blocks.mean_pool(top[-1], mask), dim=-1)
    for query, key, expected in ((0, 1, (1, 8, 0.935)), (1, 2, (1, 8, 0.893)), (2, 1, (0, 2, 0.999))):
        layer, head, weight = blocks.strongest_head(among, query, key)
        assert (layer, head, round(weight, 3)) == expected
    assert [round(float(vectors[0] @ vectors[i]), 3) for i in (1, 2)] == [0.543, -0.049]


def test_the_file_of_weights_has_the_published_checksum(real):
    assert model_files.SHA256[model_files.NUMBERS] == "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
    assert model_files.sha256(folder_of_the_model() / model_files.NUMBERS) == model_files.SHA256[model_files.NUMBERS]


# ---------------------------------------------------------------- tokenization


@pytest.fixture(scope="module")
def tokenizer(real):
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder_of_the_model() / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


MORE = [
    "Voilà : l'été, à Zürich — naïve façade!",
    "x+y=z, a<b, $5 ~ 5£ ^_^ `code` |pipe|",
    "tabs\tand\nlines\r\nand  spaces  ",
    "zero\u200bwidth, soft\u00adhyphen, nbsp\u00a0here",
    "ＦＵＬＬ width and ﬁ ligature",
    "日本語のテキスト and 한국어",
    "emoji 🙂 here",
    "a" * 100 + " " + "a" * 101,
    "İstanbul ẞ",
    "",
]


@pytest.mark.parametrize("sentence", [*SENTENCES, *MORE, *figures.TITLES, *figures.SENTENCES])
def test_pieces_equal_those_of_the_tokenizers_library(tokenizer, sentence):
    expected = tokenizer.encode(sentence).tokens
    assert pretrained.pieces(sentence, wordpiece) == expected
    assert pretrained.pieces(sentence, blocks.wordpiece) == expected


def test_batch_pads_on_the_right(real):
    ids, mask = pretrained.batch(["no", "jane visits africa"], wordpiece)
    assert ids.tolist() == [[101, 2053, 102, 0, 0], [101, 4869, 7879, 3088, 102]]
    assert mask.tolist() == [[True] * 3 + [False] * 2, [True] * 5]


# ---------------------------------------------------------------- where the weights come from


@pytest.fixture
def put_file(monkeypatch, tmp_path, fresh_caches):
    """put_file(folder, contents) writes a made-up vocab.txt into one of the searched folders, which are empty here."""
    good = b"[PAD]\njane\n"
    folders = {
        "beside": tmp_path / "here" / model_files.FOLDER,
        "cache": tmp_path / "cache" / model_files.FOLDER,
        "package": tmp_path / "package" / "model",
        "hub": tmp_path / "hub" / model_files.HUB_NAME / "snapshots" / "abc",
    }
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("COURSE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setitem(model_files.SHA256, model_files.PIECES, hashlib.sha256(good).hexdigest())
    original = model_files.importlib.util.find_spec

    class Spec:
        submodule_search_locations = [str(tmp_path / "package")]

    def find_spec(name):
        return Spec if name == model_files.PACKAGE else original(name)

    monkeypatch.setattr(model_files.importlib.util, "find_spec", find_spec)
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setattr(urllib.request, "urlopen", mock.Mock(side_effect=urllib.error.URLError("no network here")))

    def put(folder, contents=good):
        folders[folder].mkdir(parents=True, exist_ok=True)
        (folders[folder] / model_files.PIECES).write_bytes(contents)
        return folders[folder] / model_files.PIECES

    put.folders, put.good = folders, good
    return put


def test_the_nearest_folder_is_searched_first(put_file):
    for folder in ("hub", "package", "cache", "beside"):
        expected = put_file(folder)
        assert model_files.find(model_files.PIECES).absolute() == expected


def test_a_file_with_another_checksum_is_ignored(put_file):
    messages = []
    wrong, right = put_file("beside", b"[PAD]\njan\n"), put_file("package")
    assert model_files.find(model_files.PIECES, messages.append) == right
    assert len(messages) == 1 and wrong.name in messages[0] and "SHA-256" in messages[0]
    assert str(Path.home()) not in messages[0]
    right.write_bytes(put_file.good + b"x")
    assert model_files.find(model_files.PIECES, messages.append) is None


def test_the_hub_is_asked_last_and_its_answer_is_cached(put_file, monkeypatch):
    requests = []

    def answer(request, timeout=None):
        assert timeout is not None and timeout <= 10
        requests.append(request)
        return io.BytesIO(put_file.good)

    monkeypatch.setattr(urllib.request, "urlopen", answer)
    found = model_files.find(model_files.PIECES)
    assert found == put_file.folders["cache"] / model_files.PIECES and found.read_bytes() == put_file.good
    assert requests == [model_files.ADDRESS + model_files.PIECES]
    model_files.find(model_files.PIECES)
    assert len(requests) == 1, "a cached file is not downloaded again"


def test_a_download_with_another_checksum_is_ignored(put_file, monkeypatch):
    messages = []
    monkeypatch.setattr(urllib.request, "urlopen", lambda *a, **k: io.BytesIO(b"something else"))
    assert model_files.find(model_files.PIECES, messages.append) is None
    assert "not used" in messages[0] and not (put_file.folders["cache"] / model_files.PIECES).exists()


def test_offline_mode_uses_no_network(put_file, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr(urllib.request, "urlopen", lambda *a, **k: pytest.fail("used the network"))
    assert model_files.find(model_files.PIECES) is None


def test_without_the_file_replacement_weights_say_what_to_do(put_file, capsys):
    state = pretrained.state_dict()
    printed = capsys.readouterr().out
    assert pretrained.HOW_TO in printed and "means nothing" in printed and printed.count("\n") == 2
    assert not pretrained.is_real()
    assert len(blocks.rename_weights(state)) == 6 * 16
    assert isinstance(figures.gallery(), figures.MissingWeights) and pretrained.HOW_TO in repr(figures.gallery())


# ---------------------------------------------------------------- the lesson runs everywhere


def code_cells(notebook):
    return [
        cell
        for cell in notebook.cells
        if cell.cell_type == "code" and "setup" not in cell.metadata.get("tags", []) and "def set_up" not in cell.source
    ]


@pytest.mark.full
@pytest.mark.parametrize("pieces", ["all pieces", "few pieces"])
@pytest.mark.parametrize("edition", ["solution", "blank"])
def test_all_cells_run_without_the_weights(edition, pieces, fresh_caches, monkeypatch, capsys):
    """With answers and without them, only the checks of unanswered exercises may raise an error."""
    monkeypatch.setattr(model_files, "find", lambda name, say=print: None)
    if pieces == "few pieces":
        monkeypatch.setattr(model_files, "model_folders", list)
    monkeypatch.setenv("COURSE_STATIC_PAGE", "1")
    if edition == "solution":
        notebook = read_lesson(course(), course().lesson(LESSON)).notebook
    else:
        notebook = nbformat.read(course().root / "notebooks" / LESSON / f"{LESSON}.ipynb", as_version=4)
    namespace = {"__name__": "__main__"}
    for cell in code_cells(notebook):
        if cell.source.startswith(("check(", "progress(")):
            continue
        exec(compile(cell.source, cell["id"], "exec"), namespace)
    assert "takes their place" in capsys.readouterr().out


@pytest.mark.full
@pytest.mark.parametrize("numbers", ["with the package", "without"])
def test_the_lesson_runs_in_the_graders_sandbox(numbers, monkeypatch):
    """The submitted solution gets full points and no cell fails, without access to a network."""
    from helpers.grading.judge import Cell, Judge
    from tests.sandboxes import full_scores, need_sandbox, scores

    need_sandbox()
    cells = []
    if numbers == "without":
        cells.append(Cell("hide", "from helpers import pretrained\npretrained.PACKAGE = 'not_installed'", "learner"))
    for cell in code_cells(read_lesson(course(), course().lesson(LESSON)).notebook):
        mark = cell.metadata.get("nbgrader", {})
        name = mark.get("grade_id", "").removeprefix("check_")
        if mark.get("grade"):
            cells.append(Cell(cell["id"], "", "check", name))
        else:
            cells.append(Cell(cell["id"], cell.source, "learner", name or None))
    with Judge(LESSON, seed=3) as judge:
        result = judge.judge_cells(cells)
        assert scores(result) == full_scores(judge)
    assert not result.errors and not result.flags


@pytest.mark.parametrize(("guard", "right"), [(lambda x: x + 1e-11, False), (lambda x: x.clamp(min=1e-8), True)])
def test_the_check_detects_too_small_an_epsilon_in_search(guard, right):
    def search(query, keys, values, k):
        best = (keys @ query / guard(keys.norm(dim=-1) * query.norm())).topk(k)
        return [(values[i], score) for i, score in zip(best.indices.tolist(), best.values.tolist(), strict=True)]

    verdict = verdict_of(LESSON, "search", search, time_limit=5.0)
    failed = [part.name for part in verdict.parts if not part.passed]
    assert verdict.passed == right and (right or "short and long keys" in failed)


def test_parameter_counts(real):
    assert sum(t.numel() for t in real.values()) == 22_713_216 and len(real) == 103
    assert 30_522 * 384 == pytest.approx(11.7e6, rel=0.01)
    block = sum(t.numel() for name, t in real.items() if name.startswith("encoder.layer.0."))
    assert block == pytest.approx(1.77e6, rel=0.01) and 6 * block == pytest.approx(10.6e6, rel=0.01)


def test_value_vectors_and_importance_of_head_8(real):
    with torch.no_grad():
        encoder = filled(real)
        x = read(encoder, real, ["jane visits africa"])[2][1]
        lengths = encoder.blocks[1].attention.W_v(x).unflatten(-1, (12, -1))[0, :, 8].norm(dim=-1).tolist()
        weight = encoder.blocks[1].attention(x)[1][0, 8, 2, 0].item()
        importance = head_importance(encoder.blocks[1].attention, x).tolist()
    assert [round(v, 2) for v in lengths] == [0.37, 2.71, 3.09, 3.09, 2.61] and round(weight, 2) == 0.46
    assert sorted(importance)[-2:] == [importance[8], importance[3]]
    assert [round(importance[h], 2) for h in (3, 8)] == [3.12, 2.77]


def test_patterns_of_heads(real):
    share, kind = figures.habits(figures.weights_of(figures.SENTENCE)).max(dim=-1)
    assert [int(((share > 0.6) & (kind == k)).sum()) for k in range(3)] == [4, 2, 3]
    assert pair_in("jane quickly visits africa", "jane", "quickly", 1, 8) == pytest.approx(0.86, abs=0.005)
    turned = figures.weights_of("africa visits jane")[1, 8]
    assert turned[0, 1] == pytest.approx(0.96, abs=0.005) and turned[1, 2] == pytest.approx(0.92, abs=0.005)
    assert figures.weights_of("africa is visited by jane")[1, 8].argmax(dim=-1).tolist()[:4] == [1, 2, 3, 4]


def test_effect_of_ablating_a_head(real):
    shifts = figures.shifts_without()
    order = sorted(shifts, key=lambda head: -shifts[head][0])
    assert order.index((1, 8)) == 11 and round(shifts[1, 8][0], 4) == 0.0033
    assert {(5, 5), (5, 3)} == set(order[:2]) and shifts[order[0]][0] == pytest.approx(0.103, abs=0.001)
    silent = dict(real)
    name = "encoder.layer.1.attention.output.dense.weight"
    silent[name] = real[name].clone()
    silent[name][:, 8 * 32 : 9 * 32] = 0
    two = ["jane visits africa", "a woman travels to kenya"]
    vectors = F.normalize(real_network.Network(silent).vectors(two), dim=-1)
    assert round(float(vectors[0] @ vectors[1]), 3) == 0.542


def test_influence_of_words_on_one_another(real):
    final = figures.influences()[-1]
    assert final[1, 1] == pytest.approx(0.5, abs=0.03) and final[1, 2] == pytest.approx(0.12, abs=0.03)
    own = figures.influences().diagonal(0, 1, 2)[:, 1:-1]
    assert 0.38 < own.min() and own.max() < 0.6
    x = real_network.reading("jane visits africa").hidden[1][0]
    table = figures.influence(lambda x: real_network.network().up(x[None], slice(1, 2))[0], x, 64)[1]
    shares = (table / table.sum()).tolist()
    assert shares == pytest.approx([0.38, 0.44, 0.11, 0.03, 0.04], abs=0.02)


def pair_in(sentence, query, key, layer, head):
    """Return the weight of a head from the word `query` to the word `key` of a sentence."""
    words = figures.words_of(sentence)
    return figures.weights_of(sentence)[layer, head, words.index(query), words.index(key)].item()


def test_weights_of_the_same_pair_in_two_sentences(real):
    found = [pair_in(s, "it", key, 3, 1) for s in (figures.TIRED, figures.WIDE) for key in ("animal", "street")]
    assert [round(x, 3) for x in found] == [0.764, 0.066, 0.458, 0.237]
    for word, expected in (("big", [0.698, 0.237]), ("small", [0.747, 0.189])):
        sentence = f"the trophy does not fit into the suitcase because it is too {word}"
        assert [round(pair_in(sentence, "it", key, 3, 1), 3) for key in ("trophy", "suitcase")] == expected
    doctor = "the doctor called the nurse because she "
    for end, expected in (("was late", [0.301, 0.480]), ("could help", [0.580, 0.226])):
        assert [round(pair_in(doctor + end, "she", k, 3, 1), 3) for k in ("doctor", "nurse")] == expected


def test_similarity_of_bank_in_three_sentences(real):
    banks = ("she sat on the river bank", "he put money in the bank", "the bank lent him cash")
    reading = real_network.reading(*banks)
    at = [tokens.index("bank") for tokens in reading.tokens]
    for layer, expected in ((-1, [0.892, 0.827, 0.787]), (0, [0.964, 1.0, 0.964])):
        x = [reading.hidden[layer][i, position] for i, position in enumerate(at)]
        pairs = ((1, 2), (0, 1), (0, 2))
        assert [round(F.cosine_similarity(x[a], x[b], dim=0).item(), 3) for a, b in pairs] == expected


def test_effects_of_epsilon_gelu_and_the_padding_bug(real):
    def top(eps=1e-12, **gelu):
        encoder = filled(real)
        for block in encoder.blocks:
            block.norm1.eps = block.norm2.eps = eps
            block.feed_forward.activation = lambda x: F.gelu(x, **gelu)
        return read(encoder, real, ["jane visits africa"])[2][-1]

    right = top()
    assert right.abs().max() == pytest.approx(5.74, abs=0.01)
    assert (top(1e-5) - right).abs().max() == pytest.approx(6e-5, abs=1e-5)
    assert (top(approximate="tanh") - right).abs().max() == pytest.approx(0.002, abs=2e-4)
    question = "my dog chews my fingers"
    ids, mask = pretrained.batch([question, figures.LONG], wordpiece)
    assert mask.sum(1).tolist() == [8, 66]
    network = real_network.network()
    published = network.up(network.embed(ids)).mean(1)[0]
    assert F.cosine_similarity(published, network.vectors([question])[0], dim=0) == pytest.approx(0.32, abs=0.005)


@pytest.mark.full
def test_explorers_draw_every_setting(real):
    for sentence in explore.CHOICES:
        for layer, head, ends in ((0, 0, False), (5, 11, True)):
            picture = explore.draw_head(sentence, layer, head, ends)
            assert sentence.split()[0] in picture.alt.lower() and len(picture.figure.axes) == 1
    draw = pictures_of(explore.titles)
    assert all(question in draw(question).alt for question in explore.QUESTIONS)
    typed = "how do i get rid of back pain"
    assert "Yoga for a sore back" in draw(explore.QUESTIONS[0], typed).alt
    assert explore.QUESTIONS[1] in draw(explore.QUESTIONS[1], typed).alt  # the menu was changed afterwards


@pytest.mark.full
def test_a_typed_sentence_is_shown_until_another_is_chosen(real):
    draw, (first, second, *_) = pictures_of(explore.heads), explore.CHOICES
    assert first in draw(first, "", 1, 8, False).alt
    assert "a river bank" in draw(first, "a river bank", 1, 8, False).alt
    assert "a river bank" in draw(first, "a river bank", 2, 3, True).alt
    assert second in draw(second, "a river bank", 2, 3, True).alt
    assert first in draw(first, "", 2, 3, True).alt
