"""The translator on the book's home page gives the Python translator's numbers, also with each of its mistakes."""

import base64
import re

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from helpers.authoring.live import EXAMPLES, FOLDER, SENTENCES, live_translator, write_live
from helpers.course import course
from helpers.drawing.transformer_map import PARTS
from helpers.translator import BOS, EOS, PAD, french, model, source_batch, translate
from helpers.translator.evaluation import nats_per_word, unseen
from helpers.translator.network import DecoderBlock, EncoderBlock, FeedForward
from helpers.translator.trained import MAX_LEN
from tests.conftest import ROOT
from tests.lab import browser

pytestmark = pytest.mark.full
FEW = 3  # sentences to try each mistake with
# In the page: translates sentences, padded as a batch; returns ids, and all steps' log-probabilities as float32.
TRANSLATE = """([rows, mistake]) => rows.map(src => {
  const run = machine.translate(numbers, {...machine.PARTS, ...MISTAKES[mistake]?.parts}, src);
  const bytes = new Uint8Array(Float32Array.from(run.steps.flatMap(step => [...step])).buffer);
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return [run.ids, btoa(text)];
})"""
LOSS = """([count, mistake]) => {
  const parts = {...machine.PARTS, ...MISTAKES[mistake]?.parts};
  const pairs = machine.batchOf(NUMBERS.pairs.slice(0, count), NUMBERS.english, NUMBERS.french);
  const found = pairs.map(pair => machine.loss(numbers, parts, pair));
  return found.reduce((sum, one) => sum + one.nats, 0) / found.reduce((sum, one) => sum + one.words, 0);
}"""


OPEN_ALL = """() => [...document.querySelectorAll(".machine .box")].map(box => {
  box.click();
  const open = document.querySelector(".machine-inspector");
  return [open.querySelector("h3").textContent, open.querySelectorAll(":is(table, canvas)").length];
})"""


class NoResidualEncoder(EncoderBlock):
    def forward(self, x, mask=None):
        x = self.normed(self.norm1, self.attention(x, mask=mask)[0])
        return self.normed(self.norm2, self.feed_forward(x))


class NoResidualDecoder(DecoderBlock):
    def forward(self, y, memory, self_mask=None, memory_mask=None):
        y = self.normed(self.norm1, self.self_attention(y, mask=self_mask)[0])
        found, weights = self.cross_attention(y, memory, memory, mask=memory_mask)
        y = self.normed(self.norm2, found)
        return self.normed(self.norm3, self.feed_forward(y)), weights


class DeafDecoder(DecoderBlock):
    def forward(self, y, memory, self_mask=None, memory_mask=None):
        y = self.normed(self.norm1, y + self.self_attention(y, mask=self_mask)[0])
        y = self.normed(self.norm2, y)
        return self.normed(self.norm3, y + self.feed_forward(y)), None


def keys_reshaped(Q, K):
    return Q @ K.reshape(*K.shape[:-2], K.shape[-1], K.shape[-2]) / Q.shape[-1] ** 0.5


def softmax_over_queries(scores, mask):
    return scores.masked_fill(~mask, -torch.inf).softmax(-2).nan_to_num(0)


MISTAKES = {
    "root_of_width": {"embed": lambda ids, table: table[ids] * table.shape[-1] ** 0.5},
    "no_positions": {"add_positions": lambda x, table: x},
    "positions_doubled": {"add_positions": lambda x, table: x + 2 * table[: x.shape[-2]]},
    "keys_reshaped": {"scaled_scores": keys_reshaped},
    "not_scaled": {"scaled_scores": lambda Q, K: Q @ K.mT},
    "divided_by_d_k": {"scaled_scores": lambda Q, K: Q @ K.mT / Q.shape[-1]},
    "no_causal_mask": {"causal_mask": lambda T_q, T_k=None: torch.ones(T_q, T_k or T_q, dtype=torch.bool)},
    "no_padding_mask": {"padding_mask": lambda lengths, T: torch.ones(len(lengths), T, dtype=torch.bool)},
    "mask_after_softmax": {"masked_softmax": lambda scores, mask: scores.softmax(-1) * mask},
    "softmax_over_queries": {"masked_softmax": softmax_over_queries},
    "largest_value_alone": {"weighted_values": lambda w, V: F.one_hot(w.argmax(-1), V.shape[-2]).to(V.dtype) @ V},
    "heads_glued": {"merge_heads": lambda x: x.reshape(x.shape[0], x.shape[2], -1)},
    "no_residual": {"EncoderBlock": NoResidualEncoder, "DecoderBlock": NoResidualDecoder},
    "no_layer_norm": {"layer_norm": lambda x, gamma, beta, eps=1e-5: x},
    "no_activation": {"FeedForward": lambda d_model, d_ff: FeedForward(d_model, d_ff, activation=lambda x: x)},
    "no_cross_attention": {"DecoderBlock": DeafDecoder},
}


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A page with only the translator, opened as a file. page.errors collects its errors and requests."""
    folder = tmp_path_factory.mktemp("live")
    write_live(course(), folder / FOLDER)
    head = '<!doctype html><html lang="en"><meta charset="utf-8"><title>The machine</title><body data-theme="auto">'
    (folder / "index.html").write_text(f"{head}<article><section>{live_translator(course())}", encoding="utf-8")
    with browser() as page:
        page.errors = []
        page.on("console", lambda line: page.errors.append(line.text) if line.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: page.errors.append(str(error)))
        page.on("request", lambda request: None if request.url.startswith("file:") else page.errors.append(request.url))
        page.goto((folder / "index.html").as_uri())
        page.wait_for_selector(".machine.awake")
        page.evaluate("() => { window.numbers = machine.numbersOf(NUMBERS.weights) }")
        yield page


@torch.no_grad()
def steps_of(network, src) -> list[tuple[list[int], np.ndarray]]:
    """For each sentence the ids that the network writes and the log-probabilities of all words at each step."""
    memory, tgt, steps = network.encode(src), torch.full((len(src), 1), BOS), []
    done = torch.zeros(len(src), dtype=torch.bool)
    while not done.all() and len(steps) < MAX_LEN - 1:
        steps.append(network.decode(tgt, memory, src)[:, -1].log_softmax(-1))
        following = steps[-1].argmax(-1).masked_fill(done, PAD)
        tgt = torch.cat([tgt, following[:, None]], dim=1)
        done |= following == EOS
    found = []
    for row, log_probabilities in zip(tgt.tolist(), torch.stack(steps, 1).numpy(), strict=True):
        count = row.index(EOS) if EOS in row else len(steps)
        found.append((row[: count + 1], log_probabilities[:count]))
    return found


def compared(page, network, src, rows, mistake="") -> float:
    """The largest difference between log-probabilities; an AssertionError if the page writes other words.

    rows: the ids of src as given to the page.
    """
    worst = 0.0
    written = page.evaluate(TRANSLATE, [rows, mistake])
    for (ids, coded), (expected, steps) in zip(written, steps_of(network, src), strict=True):
        assert ids == expected, mistake
        found = np.frombuffer(base64.b64decode(coded), dtype=np.float32).reshape(-1, len(french))
        worst = max(worst, float(np.abs(found - steps).max()))
    return worst


def test_the_page_has_the_translators_probabilities_on_200_sentences(page):
    src = source_batch(unseen(200).english)
    typed = [[i for i in row if i != PAD] for row in src.tolist()]  # as one types them: without padding
    assert compared(page, model(), src, typed) < 1e-4


def test_each_mistake_gives_the_same_numbers_as_in_the_course(page):
    assert page.evaluate("() => Object.keys(MISTAKES)") == list(MISTAKES)
    batch = unseen(SENTENCES).first(FEW)
    for mistake, parts in MISTAKES.items():
        network = model(**parts)
        assert compared(page, network, batch.src, batch.src.tolist(), mistake) < 1e-4, mistake


def test_the_pages_loss_equals_that_of_the_python_translator(page):
    for mistake in ("", "no_padding_mask", "softmax_over_queries"):
        batch, found = unseen(8), page.evaluate(LOSS, [8, mistake])
        assert found == pytest.approx(nats_per_word(model(**MISTAKES.get(mistake, {})), batch), rel=2e-3), mistake


def test_mistakes_have_the_same_names_as_in_the_course(page):
    costs = (ROOT / "docs" / "what_a_mistake_costs.md").read_text("utf-8")
    known = set(re.findall(r"^\| (.*?)(?:<br>.*)? \| ", costs, re.MULTILINE))
    names = page.evaluate("() => Object.fromEntries(Object.entries(MISTAKES).map(([key, one]) => [key, one.name]))")
    own = set("no_positions positions_doubled no_causal_mask no_padding_mask no_layer_norm no_cross_attention".split())
    assert {key for key, name in names.items() if name not in known} == own


def written(page) -> str:
    return " ".join(word for word in page.locator(".machine-output span").all_inner_texts() if word != "<eos>")


def test_a_typed_sentence_is_translated_and_shown_in_the_map(page):
    network = model()
    assert written(page) == translate(network, EXAMPLES[0])
    page.get_by_label("An English sentence").fill("The old king loves this blue umbrella.")
    expected = translate(network, "the old king loves this blue umbrella")
    page.wait_for_function("said => document.querySelector('[role=status]').textContent.includes(said)", arg=expected)
    assert written(page) == expected
    assert page.locator(".encoder .words").inner_text().split() == "the old king loves this blue umbrella".split()
    page.get_by_label("An English sentence").fill("“Jane” visits … (AFRICA)\u2009– in September!")
    page.wait_for_function("document.querySelector('[role=status]').textContent.startsWith('jane visits africa in')")
    page.get_by_label("An English sentence").fill("the old king loves this blue umbrella")
    page.wait_for_function("said => document.querySelector('[role=status]').textContent.includes(said)", arg=expected)
    page.get_by_role("button", name="attention lesson 8").click()
    tables = page.locator(".machine-pictures table")
    assert tables.count() == 4
    assert tables.first.locator("thead th").all_inner_texts() == "the old king loves this blue umbrella".split()
    assert page.get_by_role("link", name="You write it in lesson 8").get_attribute("href").startswith("08_multi_head/")
    spent = page.evaluate(
        """sentence => {
          const src = sentence.split(" ").map(word => NUMBERS.english.indexOf(word));
          return Math.min(...[...Array(20)].map(() => {
            const start = performance.now();
            machine.translate(numbers, machine.PARTS, src);
            return performance.now() - start;
          }));
        }""",
        EXAMPLES[2],
    )
    assert spent < 100


def test_unknown_words_are_named_and_similar_ones_offered(page):
    box, hint = page.get_by_label("An English sentence"), page.locator("#machine-hint")
    box.fill("jane vissits africa")
    page.wait_for_function("document.querySelector('#machine-hint').textContent.includes('vissits')")
    label = page.locator(".machine-label")
    assert "still of" in label.inner_text()  # the shown translation belongs to the previous sentence
    hint.get_by_role("button", name="visits").click()
    assert box.input_value() == "jane visits africa" and hint.inner_text() == ""
    assert "still of" not in label.inner_text()
    assert written(page) == translate(model(), "jane visits africa")
    box.fill("the heavy broken dog sees a broken mirror")
    page.wait_for_function("document.querySelector('.machine-untouched').textContent.startsWith('It guesses')")
    box.fill("jane visits africa")
    page.wait_for_function("document.querySelector('.machine-untouched').textContent === ''")
    box.fill("jane vis")
    page.wait_for_function(
        "document.querySelector('#machine-hint').textContent.startsWith('“vis” could become: visits')"
    )
    box.fill("")
    page.wait_for_function("document.querySelector('#machine-hint').textContent.startsWith('Type a sentence')")
    box.fill("jane visits africa " + "in " * 30)
    page.wait_for_function("document.querySelector('#machine-hint').textContent.includes('33 words')")
    assert written(page) == translate(model(), "jane visits africa")


def test_a_mistake_can_be_switched_on_and_off_with_the_keyboard(page):
    page.get_by_role("button", name=EXAMPLES[0], exact=True).click()
    right = written(page)
    page.get_by_role("button", name="position lesson 2").first.focus()
    page.keyboard.press("Enter")
    assert page.locator(".machine-inspector h3").inner_text().startswith("Position")
    assert page.locator(".machine-pictures figcaption").first.inner_text().endswith("±1.00")
    switch = page.locator(".machine-own").get_by_role("button", name="no positions")
    switch.focus()
    page.keyboard.press("Space")
    assert switch.get_attribute("aria-pressed") == "true" and written(page) != right
    assert page.locator(".machine-untouched").inner_text() == f"Without the mistake: {right}"
    assert page.get_by_label("A known mistake in it").input_value() == "no_positions"
    explained = page.locator(".machine-inspector > p").first
    assert explained.inner_text().endswith("Here it has a mistake: no positions.")
    line = page.locator(".machine-meter p.broken b")
    line.wait_for()
    loss = float(line.inner_text().split()[0])
    assert loss == pytest.approx(nats_per_word(model(**MISTAKES["no_positions"]), unseen(SENTENCES)), abs=0.01)
    page.keyboard.press("Space")
    assert written(page) == right and page.locator(".machine-untouched").inner_text() == ""
    assert "mistake" not in explained.inner_text()


def test_every_box_opens_without_an_error(page):
    opened = page.evaluate(OPEN_ALL)
    assert len(opened) == len(PARTS) and len({title for title, _ in opened}) > 15
    assert all(pictures for _, pictures in opened)
    page.set_viewport_size({"width": 390, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.errors == []
