"""The check's verdicts on right, wrong and unusual answers to a small exercise."""

import dataclasses

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from helpers.checking import codec
from helpers.checking.codec import Odd, dumps, loads, plain
from helpers.checking.key import key_to_tree, load_keys, save_keys
from helpers.checking.make_keys import UnsoundKey, make_key
from helpers.checking.messages import decide
from helpers.checking.observe import SAID_LINES, Error, Facts, Observation, observe, observe_all
from helpers.checking.rendering import as_html, as_text
from helpers.checking.verdict import Part, Verdict
from helpers.checking.vocabulary import VALUES, Case, Draw, Exercise, Mistake, Raises, tensor_cases

LESSON = "50_test"


def weights_of(Q, K):
    """Attention weights without a library softmax, the reference of these tests."""
    scores = Q @ K.transpose(-2, -1)
    scores = scores - scores.max(-1, keepdim=True).values
    return scores.exp() / scores.exp().sum(-1, keepdim=True)


def over_queries(Q, K):
    scores = Q @ K.transpose(-2, -1)
    return scores.exp() / scores.exp().sum(-2, keepdim=True)


def unstable(Q, K):
    scores = Q @ K.transpose(-2, -1)
    return scores.exp() / scores.exp().sum(-1, keepdim=True)


def cases(draw):
    def make(dtype, *lead):
        return draw.normal(*lead, 5, 4, dtype=dtype), draw.normal(*lead, 7, 4, dtype=dtype)

    large = draw.normal(5, 4) * 100, draw.normal(7, 4) * 100
    return [*tensor_cases(make), Case(large, part="large scores", gradient=False)]


EXERCISE = Exercise(
    "weights_of",
    cases,
    axes=("query", "key"),
    forbidden=("softmax",),
    instead="build it from exp and sum.",
    mistakes=[
        Mistake("over_queries", "a softmax over the queries", "Which sums should be 1?", over_queries),
        Mistake("unstable", "exp of large scores overflows", "What may be taken off every score?", unstable),
    ],
)


@pytest.fixture(scope="module")
def key():
    made = make_key(LESSON, EXERCISE, 20, False, weights_of, 7)
    made.facts = dataclasses.replace(made.facts, time_limit=1.0)
    return made


def verdict(key, answer):
    return decide(key, observe_all(answer, key.cases, key.facts))


def test_a_right_answer_gets_all_points_and_a_list_of_its_parts(key):
    found = verdict(key, weights_of)
    assert (found.passed, found.points, found.mistake) == (True, 20, None)
    line = "values · any leading dimensions · dtype kept · inputs unchanged · gradient flows · large scores"
    assert as_text(found).splitlines() == ["✓ weights_of   20 of 20 points", f"  {line}"]


def test_a_known_mistake_is_named_with_its_hint(key):
    found = verdict(key, over_queries)
    assert (found.points, found.mistake) == (0, "over_queries")
    assert "This looks like: a softmax over the queries." in as_text(found)
    assert "Which sums should be 1?" in as_text(found)
    assert 'alt="rows: query, columns: key; ' in as_html(found)


def test_a_partly_right_answer_is_told_its_mistake_and_its_parts(key):
    found = verdict(key, unstable)
    lines = as_text(found).splitlines()
    assert found.mistake == "unstable" and 0 < found.points < 20
    assert lines[0] == f"◐ weights_of   {found.points} of 20 points"
    assert lines[1].startswith("  This looks like: ")
    assert lines[3].startswith("  ✓ values") and lines[4].startswith("  ✗ large scores")


def in_place(Q, K):
    Q *= 1.0
    Q += 0.5
    return weights_of(Q - 0.5, K)


def endless(Q, K):
    while True:
        try:
            continue
        except:  # noqa: E722
            pass


def flood(Q, K):
    for _ in range(5000):
        print("row", Q.shape)
    return weights_of(Q, K)


def leaves(Q, K):
    raise SystemExit


def unanswered(Q, K):
    raise NotImplementedError


@pytest.mark.parametrize(
    ("answer", "mistake", "says"),
    [
        (lambda Q, K: None, "wrong_type", "is a return missing?"),
        (lambda Q, K: weights_of(Q, K).tolist(), "wrong_type", "got a list of 5 entries"),
        (lambda Q, K: weights_of(Q, K).detach().numpy(), "wrong_type", "numpy.ndarray"),
        (lambda Q, K: (weights_of(Q, K), 1, 2), "wrong_type", "got a tuple of 3 values"),
        (lambda Q, K: object(), "wrong_type", "got an object"),
        (lambda Q, K: weights_of(Q, K).mT, "wrong_shape", "one row for each of the 5 queries"),
        (lambda Q, K: weights_of(Q, K) * float("nan"), "nan", "row 0 (query 0), column 0 (key 0): expected"),
        (lambda Q, K: weights_of(Q, K) + 1j, "wrong_type", "complex64"),
        (lambda Q, K: weights_of(Q.double(), K.double()), "dtype_lost", "expected dtype float32, yours is float64"),
        (lambda Q, K: weights_of(Q.float(), K.float()).to(Q.dtype), "dtype_lost", "rounded"),
        (lambda Q, K: weights_of(Q, K.detach()), "detached", "no gradient reaches K"),
        (lambda Q, K: Q[5] + K, "raises", "your code raised IndexError"),
        (lambda Q: Q, "raises", "TypeError"),
        (lambda Q, K: 3 * weights_of(Q, K), None, "off by a constant factor: every number is 3 times"),
        (lambda Q, K: weights_of(Q, K).flip(-1), None, "the right columns in another order"),
        (lambda Q, K: weights_of(Q, K) + 0.1 * Q[..., :1], None, "each row should sum to 1; row"),
        (in_place, "input_changed", "changed its input Q in place"),
        (endless, "too_slow", "no answer after 1 second;"),
        (leaves, "raises", "SystemExit"),
        (unanswered, "not_answered", "not answered yet"),
    ],
)
def test_unusual_wrong_answers_are_explained(key, answer, mistake, says):
    found = verdict(key, answer)
    assert not found.passed
    assert found.mistake == mistake
    assert says in as_text(found) + as_html(found)


def test_printing_is_allowed_and_hidden(key, capsys):
    assert verdict(key, flood).passed
    assert capsys.readouterr().out == ""


def imported(Q, K):
    from torch import softmax as weighting

    return weighting(Q @ K.mT, -1)


def softmax(scores):
    """A learner's helper may have this name, and torch.softmax in a docstring is not a call."""
    powers = (scores - scores.amax(-1, keepdim=True)).exp()  # like torch.softmax
    return powers / powers.sum(-1, keepdim=True)


def scipys(scores):
    return softmax(scores)


def through_scipy(Q, K):
    return scipys(Q @ K.mT)


scipys.__module__, scipys.__name__ = "scipy.special", "softmax"  # as if SciPy were installed


FORBIDDEN = {
    "hidden in a module": lambda Q, K: nn.Softmax(dim=-1)(Q @ K.mT),
    "through an alias": imported,
    "as an operator": lambda Q, K: torch.ops.aten._softmax(Q @ K.mT, -1, False),
    "through logsumexp": lambda Q, K: (Q @ K.mT - (Q @ K.mT).logsumexp(-1, keepdim=True)).exp(),
    "through attention": lambda Q, K: F.scaled_dot_product_attention(Q, K, torch.eye(K.shape[-2]).to(Q), scale=1.0),
    "through scipy": through_scipy,
    "traced": lambda Q, K: TRACED(Q @ K.mT),
}
TRACED = torch.jit.trace(lambda x: torch.softmax(x, -1), torch.zeros(2, 2), check_trace=False)


@pytest.mark.parametrize("answer", FORBIDDEN.values(), ids=FORBIDDEN)
def test_forbidden_calls_are_detected_in_every_form(key, answer):
    found = verdict(key, answer)
    assert (found.mistake, found.points) == ("forbidden_call", 0)
    assert "is the answer to this exercise; build it from exp and sum." in as_text(found)


def test_a_learners_helper_may_have_a_forbidden_name(key):
    assert verdict(key, lambda Q, K: softmax(Q @ K.mT)).passed


def test_autograd_is_detected_under_any_name_and_vmap_is_allowed():
    def twice(x):
        return 2 * x

    def by_backward(x):
        leaf = x.detach().requires_grad_()
        (leaf**2).sum().backward()
        return leaf.grad

    exercise = Exercise("twice", lambda d: [Case((d.normal(3),), gradient=True)], forbidden=("autograd", "softmax"))
    made = make_key(LESSON, exercise, 5, False, twice, 0)
    assert verdict(made, twice).passed and verdict(made, lambda x: torch.func.vmap(twice)(x)).passed
    for forbidden in (by_backward, lambda x: torch.func.grad(lambda y: (y**2).sum())(x)):
        assert verdict(made, forbidden).mistake == "forbidden_call"


def test_a_required_error_needs_the_right_class_and_message():
    class Unknown(KeyError):
        """A learner's own subclass of the required error."""

    def raising(error):
        def find(word, words):
            if word not in words:
                raise error(word, words)
            return words[word]

        return find

    find = raising(lambda word, _: KeyError(word))
    unknown = Raises("KeyError", "pizza", omits="'a': 3")
    exercise = Exercise(
        "find", lambda d: [Case(("a", {"a": 3})), Case(("pizza", {"a": 3}), part="unknown word", raises=unknown)]
    )
    made = make_key(LESSON, exercise, 10, False, find, 0)
    assert verdict(made, find).passed
    assert verdict(made, raising(lambda word, _: Unknown(word))).passed
    for answer, message in (
        (lambda word, words: words.get(word, 0), "expected a KeyError"),
        (raising(lambda *_: KeyError("unknown word")), "should name 'pizza'\n"),
        (raising(lambda word, words: KeyError(f"{word} is not in {words}")), "should name only 'pizza'"),
    ):
        assert message in as_text(verdict(made, answer))


def test_a_module_is_judged_with_given_weights():
    class Scale(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.W = nn.Linear(width, 2, bias=False)

        def forward(self, x):
            return self.W(x)

    class Frozen(Scale):
        def forward(self, x):
            return x @ self.W.weight.data.mT

    class Other(nn.Module):
        def __init__(self, **parts):
            super().__init__()
            for name, part in parts.items():
                setattr(self, name, part)

    def renamed(width):
        return Other(V=nn.Linear(width, 2, bias=False))

    def listed(width):
        return Other(W=[nn.Linear(width, 2, bias=False)], V=nn.Linear(width, 2))

    def unregistered(width):
        made = Other(W=nn.Module())
        made.W.weight = torch.zeros(2, width)
        return made

    def module_cases(draw):
        state = {"W.weight": draw.normal(2, 3)}
        return [Case(((3,), state, (draw.normal(4, 3),), {}), via="module", gradient=True)]

    made = make_key(LESSON, Exercise("Scale", module_cases), 10, False, Scale, 0)
    assert verdict(made, Scale).passed
    assert "Your W is a plain list, in which PyTorch finds no parameters" in as_text(verdict(made, listed))
    assert "it has none. Your W.weight is a plain tensor, in" in as_text(verdict(made, unregistered))
    assert verdict(made, Frozen).mistake == "detached"
    assert "your module has no part called W; its parts are: V" in as_text(verdict(made, renamed))
    assert "plain" not in as_text(verdict(made, renamed))


def test_keys_survive_saving_and_contain_no_code(key, tmp_path):
    save_keys(tmp_path / "a.npz", [key])
    save_keys(tmp_path / "b.npz", [key])
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    back = load_keys(LESSON, tmp_path / "a.npz")["weights_of"]
    assert dumps(key_to_tree(back)) == dumps(key_to_tree(key))
    with np.load(tmp_path / "a.npz", allow_pickle=False) as stored:
        assert b"def " not in stored["manifest"].tobytes()


def test_a_key_whose_reference_fails_is_refused():
    with pytest.raises(UnsoundKey, match="the reference raised"):
        make_key(LESSON, EXERCISE, 20, False, lambda Q, K: Q[99], 0)
    with pytest.raises(UnsoundKey, match="changed its input"):
        make_key(LESSON, EXERCISE, 20, False, in_place, 0)


def test_cases_are_drawn_again_until_they_show_every_mistake():
    """Half of all draws show the mistake. If no draw shows it, it is not a mistake."""

    def doubled(x):
        return x + x

    def below_zero(x):
        return x + x.abs()

    def exercise(wrong):
        return Exercise(
            "doubled", lambda draw: [Case((draw.normal(1),))], mistakes=[Mistake("signs", "label", "hint", wrong)]
        )

    shown = [make_key(LESSON, exercise(below_zero), 20, False, doubled, seed).cases[0].args[0] for seed in range(8)]
    assert all(x < 0 for x in shown) and len({x.item() for x in shown}) > 1
    with pytest.raises(UnsoundKey, match="signs agrees with the solution on every case"):
        make_key(LESSON, exercise(lambda x: 2 * x), 20, False, doubled, 0)


def test_other_seeds_draw_other_numbers():
    assert not torch.equal(Draw(1).normal(3), Draw(2).normal(3))
    assert torch.equal(Draw(1).normal(3), Draw(1).normal(3))
    assert Facts("a", "b").time_limit > 0


@pytest.mark.parametrize("lesson, name", [("09_encoder_block", "EncoderBlock"), ("12_language_model", "GPT")])
def test_forbidden_calls_are_watched_in_plain_calls_and_the_first_of_each_scenario(lesson, name, monkeypatch):
    key, watched = load_keys(lesson)[name], []

    def noted(answer, case, facts, **more):
        watched.append(bool(facts.forbidden))
        return Observation()

    monkeypatch.setattr("helpers.checking.observe.observe", noted)
    observe_all(None, key.cases, key.facts)
    vias = [case.via for case in key.cases]
    assert watched == [via in (None, "module") or via not in vias[:number] for number, via in enumerate(vias)]
    assert len(watched) > len(set(vias)), "no scenario occurs twice"


def test_three_failed_parts_are_shown_in_full_and_others_by_name():
    parts = [Part(VALUES, True), *(Part(f"part {n}", False, f"seen {n}") for n in range(4))]
    lines = as_text(Verdict("weights_of", 8, 20, False, parts=parts)).splitlines()
    assert lines[2:] == [line for n in range(3) for line in (f"  ✗ part {n}", f"      seen {n}")] + ["  ✗ part 3"]


def test_an_answer_that_draws_random_numbers_is_detected():
    case, facts = Case((torch.ones(2),)), Facts("f", LESSON)
    assert observe(lambda x: x * torch.rand(2), case, facts).drew and not observe(lambda x: x * 2, case, facts).drew


def test_a_mistake_in_only_the_dtype_is_not_named_for_wrong_values_or_errors():
    def cases(d):
        return tensor_cases(lambda dtype, *lead: (d.normal(*lead, 3, 4, dtype=dtype),), gradient=False)

    mistake = Mistake("float32", "float32 whatever comes", "Whose dtype?", lambda x: (x / 2).float())
    key = make_key(LESSON, Exercise("halves", cases, mistakes=[mistake]), 10, False, lambda x: x / 2, 0)
    assert verdict(key, lambda x: (x * 0.5).float()).mistake == "float32"
    for wrong in (lambda x: (x / 3).float(), lambda x: None, lambda x: x.tolist(), lambda x: x.foo, lambda: 1):
        assert verdict(key, wrong).mistake != "float32"


class Masked(nn.Module):
    def forward(self, x, mask=None, key=None):
        return x.masked_fill(~mask, 0.0) * key


def test_module_cases_also_watch_named_inputs():
    class Flips(Masked):
        def forward(self, x, mask=None, key=None):
            mask.logical_not_()
            return x.masked_fill(mask, 0.0) * key

    class Detaches(Masked):
        def forward(self, x, mask=None, key=None):
            return super().forward(x, mask, key.detach())

    def cases(draw):
        inputs = {"mask": draw.mask(3, 4), "key": draw.normal(3, 4)}
        return [Case(((), {}, (draw.normal(3, 4),), inputs), via="module", gradient=True)]

    key = make_key(LESSON, Exercise("Masked", cases), 10, False, Masked, 0)
    assert [verdict(key, one).mistake for one in (Masked, Flips, Detaches)] == [None, "input_changed", "detached"]


@pytest.mark.parametrize(("lines", "width"), [(0, 9), (60, 0), (3, 200), (60, 200)])
def test_printed_output_is_cut(lines, width):
    printed = observe(lambda x: [print("a" * width) for _ in range(lines)], Case((1,)), Facts("f", LESSON)).said
    assert len(printed.splitlines()) <= SAID_LINES + 1 and len(printed) <= 2003


def test_trees_and_observations_survive_encoding():
    dtypes = [getattr(torch, name) for name in "float32 float64 float16 bfloat16 int64 int32 bool uint8".split()]
    tensors = [torch.full(shape, 3).to(dtype) for dtype in dtypes for shape in ((), (0, 2), (2, 3))]
    plain_values = [None, True, -(2**62), 1.5, float("nan"), "ü\n", b"\xff"]
    tree = [*plain_values, (1, [], ()), {"a": {"b": ()}}, Odd("x", "y"), tensors]
    assert repr(loads(dumps(plain(tree)))) == repr(plain(tree))
    error = Error("KeyError", "no", 3, "x = y", ("Exception",), "helper")
    for seen in (
        Observation(plain(tree), changed=["x", 1], said="said"),
        Observation(error=error, gradient_error=error),
    ):
        assert repr(Observation.from_tree(loads(dumps(seen.to_tree())))) == repr(seen)


def test_a_list_that_contains_itself_again_and_again_is_copied_only_in_part(monkeypatch):
    monkeypatch.setattr(codec, "MAX_NODES", 1000)
    nested = [1.0]
    for _ in range(codec.MAX_DEPTH - 1):
        nested = [nested, nested]
    assert any(isinstance(leaf, Odd) for leaf in codec.leaves(plain(nested)))  # 2 ** 39 copies would never end
