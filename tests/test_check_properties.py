"""Properties of the check: trees and observations travel, modules are watched, vmap is allowed, names are promises."""

import warnings

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from helpers.checking.codec import Odd, dumps, loads, plain
from helpers.checking.facets import differs
from helpers.checking.make_keys import make_key
from helpers.checking.messages import decide
from helpers.checking.observe import SAID_LINES, Error, Facts, Observation, observe, observe_all
from helpers.checking.vocabulary import Case, Exercise, Mistake, tensor_cases

torch.set_num_threads(1)
LESSON = "50_test"
FACTS = Facts("answer", LESSON)
DTYPES = [getattr(torch, name) for name in "float32 float64 float16 bfloat16 int64 int32 bool uint8".split()]


def tensors():
    shapes = st.lists(st.integers(0, 4), max_size=3).map(tuple)
    return st.builds(
        lambda shape, dtype, seed: (
            torch.randn(shape, generator=torch.Generator().manual_seed(seed)).mul(50).to(dtype)
            if dtype is not torch.uint8
            else torch.zeros(shape, dtype=dtype)
        ),
        shapes,
        st.sampled_from(DTYPES),
        st.integers(0, 99),
    )


LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**62), 2**62),
    st.floats(),
    st.text(max_size=20),
    st.binary(max_size=20),
    tensors(),
    st.builds(Odd, st.text(max_size=5), st.text(max_size=5)),
)
TREES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.lists(inner, max_size=3).map(tuple), st.dictionaries(st.text(max_size=4), inner)
    ),
    max_leaves=8,
)


def same(a, b) -> bool:
    if isinstance(a, torch.Tensor):
        return isinstance(b, torch.Tensor) and a.dtype == b.dtype and torch.equal(a.nan_to_num(), b.nan_to_num())
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return type(a) is type(b) and list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    return type(a) is type(b) and (a == b or a != a and b != b)


@given(TREES)
def test_trees_come_back_as_they_were(tree):
    assert same(loads(dumps(plain(tree))), plain(tree))


@given(TREES, st.lists(st.one_of(st.integers(0, 3), st.text(max_size=5)), max_size=2), st.text(max_size=40))
def test_observations_come_back_and_agree_with_themselves(output, changed, said):
    error = Error("KeyError", "no", 3, "x = y", ("Exception",), "helper")
    for seen in (
        Observation(plain(output), changed=changed, said=said),
        Observation(error=error, gradient_error=error),
    ):
        back = Observation.from_tree(loads(dumps(seen.to_tree())))
        assert same(back.output, seen.output) and back.error == seen.error and back.changed == seen.changed
        assert not differs(Case(()), seen, back)


def halves(x):
    return x / 2


def test_a_mistake_in_the_dtype_alone_is_no_name_for_wrong_values_or_errors():
    exercise = Exercise(
        "halves",
        lambda d: tensor_cases(lambda dtype, *lead: (d.normal(*lead, 3, 4, dtype=dtype),), gradient=False),
        mistakes=[Mistake("float32", "float32 whatever comes", "Whose dtype?", lambda x: (x / 2).float())],
    )
    key = make_key(LESSON, exercise, 10, False, halves, 0)
    named = {f: decide(key, observe_all(f, key.cases, key.facts)).mistake for f in (lambda x: (x * 0.5).float(),)}
    assert list(named.values()) == ["float32"]
    for wrong in (lambda x: (x / 3).float(), lambda x: None, lambda x: x.tolist(), lambda x: x.foo, lambda: 1):
        assert decide(key, observe_all(wrong, key.cases, key.facts)).mistake != "float32"


def test_of_two_mistakes_that_look_alike_none_is_named():
    alike = [Mistake(name, name, "Hm?", lambda x: x * 2) for name in ("one", "other")]
    key = make_key(LESSON, Exercise("halves", lambda d: [Case((d.normal(3),))], mistakes=alike), 10, False, halves, 0)
    assert decide(key, observe_all(lambda x: 2 * x, key.cases, key.facts)).mistake is None


def test_errors_on_every_call_are_no_mistakes_name():
    def crash(x):
        raise ValueError

    exercise = Exercise("halves", lambda d: [Case((d.normal(3),))], mistakes=[Mistake("crash", "it", "Hm?", crash)])
    key = make_key(LESSON, exercise, 10, False, halves, 0)
    assert decide(key, observe_all(crash, key.cases, key.facts)).mistake == "raises"


class Masked(nn.Module):
    def forward(self, x, mask=None, key=None):
        return x.masked_fill(~mask, 0.0) * key


def module_key(gradient=True):
    def cases(draw):
        inputs = {"mask": draw.mask(3, 4), "key": draw.normal(3, 4)}
        return [Case(((), {}, (draw.normal(3, 4),), inputs), via="module", gradient=gradient)]

    return make_key(LESSON, Exercise("Masked", cases), 10, False, Masked, 0)


def test_module_cases_watch_named_inputs_too():
    class Flips(Masked):
        def forward(self, x, mask=None, key=None):
            mask.logical_not_()
            return x.masked_fill(mask, 0.0) * key

    class Detaches(Masked):
        def forward(self, x, mask=None, key=None):
            return super().forward(x, mask, key.detach())

    key = module_key()
    assert decide(key, observe_all(Masked, key.cases, key.facts)).passed
    assert decide(key, observe_all(Flips, key.cases, key.facts)).mistake == "input_changed"
    assert decide(key, observe_all(Detaches, key.cases, key.facts)).mistake == "detached"


def by_vmap(x):
    return torch.vmap(lambda row: row / 2)(x)


def by_func_vmap(x):
    from torch.func import vmap

    return vmap(lambda row: row / 2)(x)


def by_grad(x):
    from torch import func

    return func.vmap(func.grad(lambda row: (row**2).sum() / 4))(x)


def test_vmap_is_no_autograd_and_runs_under_every_watch():
    exercise = Exercise("halves", lambda d: [Case((d.normal(3, 4),), gradient=True)], forbidden=("autograd", "softmax"))
    key = make_key(LESSON, exercise, 10, False, halves, 0)
    for right in (halves, by_vmap, by_func_vmap):
        assert decide(key, observe_all(right, key.cases, key.facts)).passed
    assert decide(key, observe_all(by_grad, key.cases, key.facts)).mistake == "forbidden_call"


def test_switches_are_set_for_the_call_and_left_as_they_were():
    seen = []

    def look(x):
        seen.append((torch.get_default_dtype(), torch.is_grad_enabled(), torch.is_anomaly_enabled()))
        warnings.warn("no error", stacklevel=1)
        return x

    torch.set_default_dtype(torch.float64)
    torch.use_deterministic_algorithms(True)
    torch.autograd.set_detect_anomaly(True)
    torch.set_grad_enabled(False)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert observe(look, Case((torch.ones(2),)), FACTS).error is None
        assert seen == [(torch.float32, True, False)]
        assert torch.get_default_dtype() == torch.float64 and torch.are_deterministic_algorithms_enabled()
        assert torch.is_anomaly_enabled() and not torch.is_grad_enabled()
    finally:
        torch.set_default_dtype(torch.float32)
        torch.use_deterministic_algorithms(False)
        torch.autograd.set_detect_anomaly(False)
        torch.set_grad_enabled(True)


@given(st.integers(0, 60), st.integers(0, 200))
def test_what_is_printed_is_kept_within_bounds(lines, width):
    def talks(x):
        for _ in range(lines):
            print("a" * width)
        return x

    said = observe(talks, Case((torch.ones(1),)), FACTS).said
    assert len(said.splitlines()) <= SAID_LINES + 1 and len(said) <= 2003
