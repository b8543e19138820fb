"""Unit tests of the check's own code, each with a few numbers. check_mutants.py finds changes that none notices."""

# ruff: noqa: E501
import dataclasses
import math

import torch

from helpers.checking import messages, verdict, wording
from helpers.checking.codec import Odd
from helpers.checking.compare import Difference, difference, gradient_tolerance, output_difference, rounded, sketch
from helpers.checking.facets import agree, differs
from helpers.checking.key import ExerciseKey, KnownMistake, key_from_tree, key_to_tree
from helpers.checking.messages import decide
from helpers.checking.observe import NOT_TRIED, Error, Facts, Observation
from helpers.checking.registry import METRICS, STUBS, VIEWS, Score
from helpers.checking.verdict import Problem, Verdict, decide_quiz, not_answered, refused
from helpers.checking.vocabulary import DTYPE, GRADIENT, LEADING, UNCHANGED, VALUES, Case, Raises, Stub

NAN, INF = math.nan, math.inf
TYPES, SHAPES = "wrong_type", "wrong_shape"


def t(*numbers, dtype=torch.float32):
    return torch.tensor(numbers[0] if len(numbers) == 1 else numbers, dtype=dtype)


def d(*numbers):
    return t(*numbers, dtype=torch.float64)


def facts_mean(width, start=0):
    """Mean over all seen."""


def facts_widths(*widths):
    """Any widths."""


def facts_wordless(width):
    pass


def facts_long(width):
    """Mean over all.

    With more to say.
    """


STUBS.register(facts_mean)
STUBS.register(facts_long)
STUBS.register(facts_widths)
STUBS.register(facts_wordless)


def facts_view(args, kwargs, output):
    if output is None:
        raise ValueError("nothing to look at")
    return {"the sum is": str(output), "it is small": output < 5}


VIEWS.register(facts_view)


def seen_as(outputs):
    return [item if isinstance(item, Observation) else Observation(item) for item in outputs]


def made_key(cases, expected, mistakes=(), **options):
    known = [KnownMistake(name, f"label of {name}.", f"Hint of {name}?", seen_as(seen)) for name, seen in mistakes]
    facts = Facts("f", "50_test", time_limit=options.pop("time_limit", 5.0))
    return ExerciseKey(
        "50_test",
        "f",
        options.pop("points", 20),
        options.pop("bonus", False),
        facts=facts,
        cases=list(cases),
        expected=seen_as(expected),
        mistakes=known,
        instead="build it.",
        **options,
    )


def judge(key, *seen):
    return decide(key, seen_as(seen))


def kind(*args):
    found = difference(*args)
    return found and found.kind


def problem(kind="value", want=None, got=None, case=None, path=(), where="", part=VALUES, diff="value", **seen):
    return Problem(
        kind, part, case or Case((torch.zeros(9),)), Observation(got, **seen), Difference(diff, path, want, got), where
    )


def says(item, key=None):
    """Return the lines of a problem, without the call of the case, which is the same for all of them here."""
    said = messages.text(item, key or made_key([], [], arguments=["Q", "K"]))
    return said.removesuffix("\nwith f(<float32 (9,)>)")


def value_text(want, got, axes=("query", "key"), **options):
    return says(problem("value", want, got, **options), made_key([], [], arguments=["Q"], axes=axes))


# Differences


def test_tensors_are_compared_within_a_relative_and_an_absolute_tolerance():
    assert kind(t(0.0), t(0.9e-5)) is None and kind(t(0.0), t(1.1e-5)) == "value"
    assert kind(t(100.0), t(100.0009)) is None
    assert kind(t(-100.0), t(-100.0009)) is None
    assert kind(d(0.0), d(0.9e-7)) is None and kind(d(0.0), d(1.1e-7)) == "value"
    assert kind(t(0.0, dtype=torch.float16), t(0.9e-5, dtype=torch.float16)) is None
    assert kind(t(0.0, dtype=torch.float16), t(1.2e-5, dtype=torch.float16)) == "value"
    assert kind(t(1.0), t(1.05), 0.1) is None
    assert kind(t(0.0), t(0.25), 0.25) is None


def test_a_sketch_can_replace_its_tensor_on_either_side():
    x, other = torch.arange(12.0) / 7, torch.arange(12.0).flip(0) / 7
    for mine, theirs in ((sketch(x), x), (x, sketch(x)), (sketch(x), sketch(x))):
        assert difference(mine, theirs) is None
    for mine, theirs in ((sketch(x), other), (x, sketch(other)), (sketch(x), sketch(other))):
        assert difference(mine, theirs).kind == "value"


def test_integers_are_compared_exactly_and_before_their_dtype():
    assert kind(t(1, 2, dtype=torch.int64), t(1.0, 2.0)) == "dtype"
    assert kind(t(1, 2, dtype=torch.int64), t(1.0, 2.5)) == "value"
    assert kind(t(1.0), d(1.0)) == "dtype" and kind(t(1.0), d(2.0)) == "value"


def test_infinity_and_nan_equal_only_themselves():
    assert kind(t(INF), t(-INF)) == "value" and kind(t(NAN), t(NAN)) is None and kind(t(NAN), t(1.0)) == "value"
    assert kind(t(1.0), t(NAN)) == "nan" and kind(t(1.0, NAN), t(NAN, NAN)) == "value"


def test_float64_values_with_float32_precision_count_as_another_dtype():
    third = torch.arange(1, 5, dtype=torch.float64) / 3 + 1e-9
    assert rounded(third.float().double()) and not rounded(third) and not rounded(third.float())
    assert not rounded(third[:3].float().double())
    tenth = d(0.1, 0.2, 0.3, 0.7)
    assert kind(tenth, tenth.float().double()) == "dtype"
    assert not rounded(torch.cat([third[:1], d(1.0, 2.0, 3.0)]))


def test_python_values_keep_their_types():
    assert kind(True, 1) == "type"
    assert kind(1, True) == "type"
    assert kind(None, None) is None and kind("a", "b") == "value"
    assert kind(Odd("set"), Odd("set")) is None and kind(Odd("set"), Odd("map")) == "value"
    assert kind(1.0, 1) is None and kind(1.0, True) == "type"


def test_python_floats_have_a_tolerance_too():
    assert kind(0.0, 1.1e-5) == "value"
    assert kind(0.0, -1.1e-5) == "value"
    assert kind(0.0, 0.25, 0.25) is None
    assert kind(1.0, NAN) == "nan" and kind(NAN, NAN) is None


def test_trees_are_compared_by_leaf_and_the_most_serious_difference_counts():
    assert kind([1, 2], (1, 2)) == "type" and kind((1, 2), [1, 2]) == "type"
    assert kind([1, 2], [1]) == "shape"
    assert kind({"a": 1}, {"b": 1}) == "value"
    found = difference([1, {"a": (t(1.0), t(2.0))}], [1, {"a": (t(1.0), t(3.0))}])
    assert found.path == (1, "a", 1) and torch.equal(found.expected, t(2.0)) and torch.equal(found.actual, t(3.0))
    rising = [(d(1.0), t(1.0)), (t(1.0), t(2.0)), (t(1.0), t(NAN)), (t([1.0]), t(1.0)), (1, "a")]
    for count, name in enumerate(("dtype", "value", "nan", "shape", "type"), 1):
        want, got = zip(*rising[:count], strict=True)
        assert kind(want, got) == name
        assert kind(want[::-1], got[::-1]) == name


def test_python_floats_need_float64_precision_in_cases_of_dtypes():
    case = Case((), part=DTYPE)
    for other in (Case(()), Case((), part=LEADING)):
        assert output_difference(other, 0.1, 0.1 + 1e-6) is None
    assert output_difference(case, 0.1, 0.1 + 1e-9) is None
    assert output_difference(case, 0.1, 0.1 + 1e-6).kind == "value"
    assert output_difference(case, 10.0, 10.0 + 9e-7) is None
    assert output_difference(case, 10.0, 10.0 + 1.2e-6).kind == "value"
    assert output_difference(case, -10.0, -10.0 + 9e-7) is None
    single = t(0.1).item()
    assert output_difference(case, 0.1, single).kind == "value"
    assert output_difference(case, 1.0, 1) is None
    assert output_difference(case, 0.0, 1.2e-7).kind == "value" and output_difference(case, 0.0, 0.8e-7) is None


def test_gradients_have_ten_times_the_tolerance():
    assert gradient_tolerance(Case(()), t(1.0)) == 1e-4 and gradient_tolerance(Case(()), d(1.0)) == 1e-6


# Facets

RAISED = Observation(error=Error("ValueError"))


def test_agreement_of_outputs_and_errors():
    case = Case(())
    assert agree(case, Observation(t(1.0)), Observation(d(1.0)), "output") is True
    assert agree(case, Observation(t(1.0)), Observation(t(2.0)), "output") is False
    assert agree(case, Observation(t(1.0)), RAISED, "output") is False
    assert agree(case, RAISED, Observation(None), "output") is False
    assert agree(case, RAISED, RAISED, "output") is True
    assert agree(case, RAISED, Observation(error=Error("TypeError")), "output") is False


def test_required_errors_agree_if_both_meet_or_both_miss_the_requirement():
    case = Case((), raises=Raises("KeyError", "dessert"))
    kept, broken = Observation(error=Error("KeyError", "dessert")), Observation(error=Error("KeyError", "x"))
    mine = Observation(error=Error("M", "dessert", bases=("KeyError",)))
    assert agree(case, kept, mine, "output") is True and agree(case, kept, broken, "output") is False
    assert agree(case, broken, kept, "output") is False and agree(case, broken, broken, "output") is True


def test_other_facets_are_compared_only_if_both_answers_returned():
    case, fine = Case(()), Observation(t(1.0), gradients=[t(1.0)])
    for facet in ("dtype", "changed", "gradient"):
        assert agree(case, RAISED, fine, facet) is None and agree(case, fine, fine, facet) is True
    assert agree(case, Observation(1, changed=[0]), Observation(1, changed=[1]), "changed") is False
    assert agree(case, Observation(1, changed=[0]), Observation(1, changed=[0]), "changed") is True


def dtypes(one, other):
    return agree(Case(()), Observation(one), Observation(other), "dtype")


def test_dtypes_are_compared_only_between_tensors_at_the_same_place():
    exact = d(0.1, 0.2, 0.3, 0.7)
    assert dtypes(t(1.0), t(2.0)) is True and dtypes(t(1.0), d(1.0)) is False
    assert dtypes(exact, exact.float().double()) is False and dtypes(exact.float().double(), exact) is True
    assert dtypes(1, 2) is None and dtypes([t(1.0)], t(1.0)) is None
    assert dtypes([t(1.0), 1], [t(1.0), 2]) is True and dtypes([t(1.0)], (t(1.0),)) is True
    assert dtypes([t(1.0)] * 2, [t(1.0)]) is None
    assert dtypes({"a": t(1.0)}, {"a": d(1.0)}) is False and dtypes({"a": t(1.0)}, {"b": t(1.0)}) is None
    assert dtypes([t(1.0)], {0: t(1.0)}) is None


def gradients(one, other, case=None):
    return agree(case or Case(()), Observation(1, gradients=one), Observation(1, gradients=other), "gradient")


def test_gradients_are_compared_one_by_one():
    assert gradients([t(1.0)], [t(1.0)]) is True and gradients([t(1.0)], [t(2.0)]) is False
    assert gradients(None, [t(1.0)]) is None
    assert gradients([t(1.0)], [t(1.0)] * 2) is False and gradients([t(1.0)] * 2, [t(1.0), t(2.0)]) is False
    assert gradients([None], [None]) is True and gradients([t(1.0)], [t(1.00005)]) is True
    assert gradients([None], [t(1.0)]) is False and gradients([t(1.0)], [None]) is False
    broken = [Observation(1, gradient_error=Error(name)) for name in ("A", "B")]
    fine = Observation(1, gradients=[t(1.0)])
    assert agree(Case(()), broken[0], broken[0], "gradient") is True
    assert agree(Case(()), broken[0], broken[1], "gradient") is False
    assert agree(Case(()), broken[1], broken[0], "gradient") is False
    assert agree(Case(()), broken[0], fine, "gradient") is False
    assert agree(Case(()), fine, broken[0], "gradient") is False


def test_differs_lists_only_facets_that_do_differ():
    assert differs(Case(()), Observation(t(1.0)), Observation(t(1.0))) == set()
    assert differs(Case(()), Observation(t(1.0)), Observation(d(2.0), changed=[0])) == {"output", "dtype", "changed"}
    assert differs(Case(()), Observation(t(1.0)), RAISED) == {"output"}


# Verdicts


def test_a_refused_answer_earns_nothing():
    key = made_key([], [], bonus=True)
    found = refused(key, "forbidden_call", "no")
    assert (found.points, found.max_points, found.passed, found.mistake) == (0, 20, False, "forbidden_call")
    assert found.message == "no" and found.answered and found.label == ""
    assert not_answered(key).answered is False and not_answered(key).message == "not answered yet"


def test_verdicts_on_quizzes():
    key = made_key([], [], points=3, bonus=True, correct="b", explanations={"a": "No.", "b": "Yes."})
    right, wrong = decide_quiz(key, " B"), decide_quiz(key, "a")
    assert (right.points, right.max_points, right.passed, right.mistake, right.bonus) == (3, 3, True, None, True)
    assert right.message == "Right. Yes." and right.answered
    assert (wrong.points, wrong.max_points, wrong.passed, wrong.mistake) == (3, 3, False, "option_a")
    assert wrong.message == "No.\nChange your answer as often as you like."
    assert decide_quiz(key, None).mistake == "not_answered"
    odd, other = decide_quiz(key, 3), decide_quiz(key, "x" * 30)
    assert odd.message == 'Answer with one of "a", "b", in quotes. Yours is of another type.'
    assert other.message == f'Answer with one of "a", "b". Yours is "{"x" * 20}".'
    assert odd.mistake == other.mistake == TYPES
    key.points = 0
    assert decide_quiz(key, "a").message == "No.\nChange your answer as often as you like."


def small_key(**options):
    """Parts and weights: values 5, leading dimensions 3, dtype 1, gradient 2, zeros 2, unchanged inputs 1."""
    cases = [
        Case((t(1.0, 2.0),)),
        Case((t([[1.0, 2.0]]),), part=LEADING),
        Case((d(1.0, 2.0),), part=DTYPE),
        Case((d(1.0, 2.0),), part=GRADIENT, gradient=True),
        Case((t(0.0, 0.0),), part="zeros"),
    ]
    expected = [
        t(2.0, 4.0),
        t([[2.0, 4.0]]),
        d(2.0, 4.0),
        Observation(d(2.0, 4.0), gradients=[d(2.0, 2.0)]),
        t(0.0, 0.0),
    ]
    return made_key(cases, expected, arguments=["x"], **options)


def right(key):
    return list(key.expected)


def with_one(key, index, seen):
    seen = seen if isinstance(seen, Observation) else Observation(seen)
    return judge(key, *(seen if i == index else item for i, item in enumerate(key.expected)))


def holds(verdict):
    return {part.name for part in verdict.parts if not part.passed}


def test_a_right_answer_passes_in_every_part():
    key = small_key(bonus=True)
    found = judge(key, *key.expected)
    assert (found.passed, found.points, found.max_points, found.mistake, found.bonus) == (True, 20, 20, None, True)
    assert [part.name for part in found.parts] == [VALUES, LEADING, DTYPE, UNCHANGED, GRADIENT, "zeros"]
    assert all(part.passed and part.detail == "" for part in found.parts)
    assert found.message == "" and found.answered and found.picture is None


def test_each_part_has_its_weight():
    key = small_key()
    wrong = {0: (0, VALUES), 1: (15, LEADING), 2: (18, DTYPE), 4: (17, "zeros")}
    for index, (points, part) in wrong.items():
        found = with_one(key, index, key.expected[index].output + 1)
        assert (found.points, holds(found), found.passed, found.mistake) == (points, {part}, False, None)
        assert found.label == ""
    bad = Observation(key.expected[3].output, gradients=[d(2.0, 3.0)])
    assert with_one(key, 3, bad).points == 17
    changed = Observation(key.expected[0].output, changed=[0])
    assert with_one(key, 0, changed).points == 18
    assert with_one(small_key(weights={"zeros": 100}), 4, t(1.0, 1.0)).points == 2
    assert judge(small_key(points=19.5), *key.expected).points == 19.5


def test_which_parts_an_exercise_has():
    names = [part.name for part in judge(made_key([Case((1,))], [2]), 2).parts]
    assert names == [VALUES]
    names = [part.name for part in judge(made_key([Case(([1],), part="one")], [2]), 2).parts]
    assert names == [VALUES, "one", UNCHANGED]
    for args, kwargs in (((({"a": t(1.0)}),), {}), ((), {"x": t(1.0)}), (((1, [2]),), {}), (({"a": [1]},), {})):
        assert UNCHANGED in [part.name for part in judge(made_key([Case(args, kwargs)], [2]), 2).parts]
    for args in ((1,), ("a", 2.0), ((1, "b"),)):
        assert UNCHANGED not in [part.name for part in judge(made_key([Case(args)], [2]), 2).parts]
    for output in ([t(1.0)], {"a": t(1.0)}, (1, [t(1.0)])):
        assert [part.name for part in judge(made_key([Case((1,))], [output]), output).parts] == [VALUES, DTYPE]
    for output in ([1], {"a": 1}, "a", None):
        assert [part.name for part in judge(made_key([Case((1,))], [output]), output).parts] == [VALUES]
    both = made_key([Case((1,)), Case((t(1.0),), gradient=True)], [2, Observation(2, gradients=[None])])
    assert [part.name for part in judge(both, *both.expected).parts] == [VALUES, GRADIENT, UNCHANGED]


def test_an_unanswered_exercise_is_not_called_wrong():
    key, empty = small_key(), Observation(error=Error("NotImplementedError"))
    assert judge(key, *[empty] * 5).answered is False
    found = with_one(key, 0, empty)
    assert found.answered and found.mistake == "not_answered" and found.points == 0
    assert found.message.startswith("part of it is not answered yet")


def test_a_forbidden_call_earns_nothing():
    key = small_key()
    found = with_one(key, 1, Observation(t([[2.0, 4.0]]), forbidden=["torch.softmax", "x"]))
    assert found.mistake == "forbidden_call" and found.points == 0 and not found.passed
    assert found.message == "torch.softmax is the answer to this exercise; build it."
    found = with_one(key, 1, Observation(t([[2.0, 4.0]]), forbidden=["helpers.blocks.f"]))
    assert found.message == "helpers.blocks.f is the course's finished answer to this exercise; build your own."
    for other in "eg":
        found = with_one(key, 1, Observation(t([[2.0, 4.0]]), forbidden=[f"helpers.blocks.{other}"]))
        said = f"helpers.blocks.{other} is the course's finished answer to another exercise; use your own {other}."
        assert found.message == said


def test_a_part_reports_its_most_serious_case():
    cases = [Case((t(1.0),)), *(Case((t(1.0),), part=LEADING) for _ in range(2))]
    key = made_key(cases, [t(2.0)] * 3, arguments=["x"])
    found = judge(key, t(2.0), t(3.0), Observation(error=Error("KeyError", "'a'")))
    assert found.mistake == "raises" and found.message.startswith("your code raised KeyError")
    assert [part.detail for part in found.parts if not part.passed] == [found.message]


def test_each_part_reports_its_own_case():
    cases = [Case((1,), part=part) for part in (VALUES, "corner", "edge", LEADING, "zeros")]
    found = judge(made_key(cases, [1, 2, 3, 4, 5]), 1, 20, 3, 40, 50)
    details = {part.name: part.detail for part in found.parts}
    call = "\nwith f(1)"
    assert details == {
        VALUES: "",
        "corner": f"expected 2\nyours    20{call}",
        "edge": "",
        LEADING: f"expected 4\nyours    40{call}",
        "zeros": f"expected 5\nyours    50{call}",
    }
    assert found.message == details["corner"], "of equal weights the first is reported"


def test_each_kind_of_difference_has_its_name():
    key = small_key()
    assert with_one(key, 0, None).mistake == TYPES and with_one(key, 0, t([[2.0, 4.0]])).mistake == SHAPES
    found = with_one(key, 0, d(2.0, 4.0))
    assert found.mistake == "dtype_lost" and found.unassisted
    assert with_one(key, 0, Observation(error=Error("E"))).mistake == "raises"
    slow = with_one(key, 0, Observation(error=Error("TooSlow")))
    assert slow.mistake == "too_slow" and slow.message.startswith("no answer after 5 seconds")
    slow = judge(key, key.expected[0], key.expected[1], *(Observation(error=Error("TooSlow", NOT_TRIED)),) * 3)
    assert slow.message.startswith("not tried, because another call had no answer after 5 seconds")
    assert with_one(key, 1, Observation(error=Error("E"))).points == 15
    assert with_one(key, 3, Observation(t(1.0, 2.0, 3.0), gradients=[d(9.0, 9.0)])).points == 17


def test_each_kind_of_wrong_gradient_has_its_name():
    key = small_key()
    output = key.expected[3].output

    def shown(gradients, **options):
        return with_one(key, 3, Observation(output, gradients=gradients, **options))

    assert shown(None).mistake == "detached" and shown([None]).mistake == "detached" and shown([]).mistake == "detached"
    assert shown([d(2.0, 2.0)] * 2).mistake == "detached" and shown([d(2.0, NAN)]).mistake == "nan"
    assert not shown([d(2.0, 9.0)]).passed
    assert shown([t(2.0, 2.0)]).passed and shown([d(2.0, 2.000003)]).passed is True
    assert shown(None, gradient_error=Error("E")).mistake == "raises"
    assert "while computing the gradient, your code raised E" in shown(None, gradient_error=Error("E")).message
    assert shown([None]).message.startswith("no gradient reaches x: ")
    assert shown(None).message.startswith("no gradient reaches your inputs: ")
    nan, wrong = shown([d(2.0, NAN)]), shown([d(2.0, 9.0)])
    assert nan.message == "the gradient at x is nan\nwith f(torch.tensor([1., 2.], dtype=torch.float64))"
    assert "the gradient at x is not\n1 of 2 numbers differs, at entry 1: expected 2, yours 9" in wrong.message
    assert next(part for part in wrong.parts if part.name == GRADIENT).detail == wrong.message
    pair = Observation(t(1.0), gradients=[None, d(0.0), d(1.0)])
    two = made_key([Case((d(1.0), d(1.0), d(1.0)), gradient=True)], [pair], arguments=["a", "b", "c"])
    assert judge(two, Observation(t(1.0), gradients=[d(5.0), None, d(1.0)])).passed
    assert judge(two, Observation(t(1.0), gradients=[None, None, d(2.0)])).message.splitlines()[0].count("at c is not")
    assert judge(two, Observation(t(1.0), gradients=[None, d(0.0), None])).mistake == "detached"
    wide = Observation(d(1.0), gradients=[d(2.0, 9.0)])
    loose = made_key(
        [Case((d(1.0, 2.0),), gradient=True, tolerance=0.1)], [Observation(d(1.0), gradients=[d(2.0, 2.0)])]
    )
    assert not judge(loose, wide).passed


def test_a_gradient_counts_only_if_the_output_is_right():
    case = Case((d(1.0),), gradient=True)
    key = made_key([case, case], [Observation(d(0.1), gradients=[d(2.0)])] * 2)
    off = Observation(d(0.5), gradients=[d(9.0)])
    assert holds(judge(key, off, key.expected[1])) == {VALUES}
    assert holds(judge(key, Observation(t(0.1), gradients=[d(9.0)]), key.expected[1])) == {DTYPE, GRADIENT}
    assert holds(judge(key, Observation(None, gradients=[d(9.0)]), key.expected[1])) == {VALUES}
    found = judge(key, off, Observation(d(0.7), gradients=[d(2.0)]))
    assert "yours    0.5" in found.parts[0].detail and not Verdict("f", 1, 1, True).bonus
    wide = made_key([Case((t([[1.0, 2.0]]),), gradient=True)], [Observation(t(1.0), gradients=[t([[1.0, 2.0]])])])
    assert judge(wide, Observation(t(1.0), gradients=[t([[1.0, NAN]])])).picture is None


def test_a_case_that_must_raise_needs_the_right_error_and_message():
    case = Case(("pizza",), part="unknown", raises=Raises("KeyError", "pizza", "vocab"))
    key = made_key([Case((1,)), case], [1, Observation(error=Error("KeyError", "pizza"))])

    def shown(**options):
        return with_one(key, 1, Observation(**options))

    assert shown(error=Error("KeyError", "pizza")).passed
    assert shown(error=Error("M", "pizza", bases=("KeyError",))).passed
    assert shown(output=3).message == 'expected a KeyError, but your code returned a value: 3\nwith f("pizza")'
    assert shown().message == 'expected a KeyError, but your code returned None\nwith f("pizza")'
    assert shown(error=Error("TooSlow")).mistake == "too_slow" and shown(error=Error("ValueError")).mistake == "raises"
    said = shown(error=Error("KeyError", "x\ny"))
    assert said.message == "the KeyError should name 'pizza'\nyours says: x\nwith f(\"pizza\")"
    said = shown(error=Error("KeyError", "no pizza in vocab"))
    assert said.message.startswith("the KeyError should name only 'pizza'\nyours says: no pizza in vocab")
    assert shown(error=Error("KeyError")).message.splitlines()[1] == "yours says: (no message)"
    assert holds(shown(output=3)) == {"unknown"} and shown(output=3, changed=[0]).mistake == "input_changed"


def test_plain_values_are_reported_first_and_then_the_most_serious_problem():
    key = small_key()
    both = judge(key, t(2.0, 5.0), *key.expected[1:4], Observation(error=Error("E")))
    assert both.mistake is None and both.message.startswith("1 of 2 numbers differs")
    both = judge(key, key.expected[0], t([[9.0, 9.0]]), *key.expected[2:4], Observation(error=Error("E")))
    assert both.mistake == "raises"
    both = judge(key, Observation(t(2.0, 5.0), changed=[0]), *key.expected[1:])
    assert both.mistake == "input_changed"
    changed = "your code changed its input x in place; the caller still needs it\nwith f(torch.tensor([1., 2.]))"
    assert both.message == changed
    both = judge(key, Observation(t(2.0, 5.0), changed=[7]), *key.expected[1:])
    assert both.message.startswith("your code changed an input in place")
    order = [Observation(None), Observation(d(2.0, NAN)), Observation(d(2.0, 4.0), changed=[0])]
    for index, name in enumerate((TYPES, "nan", "input_changed")):
        assert judge(key, *key.expected[:2], order[index], *key.expected[3:]).mistake == name
    found = judge(key, *key.expected[:2], Observation(d(2.0, NAN)), key.expected[3], Observation(None))
    assert found.mistake == TYPES


def test_a_known_mistake_is_named_if_it_explains_every_observation():
    wrong = [t(3.0, 6.0), t([[3.0, 6.0]]), d(3.0, 6.0), Observation(d(3.0, 6.0), gradients=[d(3.0, 3.0)]), t(0.0, 0.0)]
    key = small_key(mistakes=[("triple", wrong)])
    found = judge(key, *wrong)
    assert (found.mistake, found.label, found.points) == ("triple", "label of triple", 0)
    assert found.message == "This looks like: label of triple.\nHint of triple?"
    assert judge(key, *wrong[:3], Observation(d(3.0, 6.0), gradients=[d(3.0, 4.0)]), wrong[4]).mistake is None
    assert judge(key, *wrong[:4], t(1.0, 1.0)).mistake is None
    assert judge(key, *wrong[:4], Observation(t(0.0, 0.0), changed=[0])).mistake == "input_changed"


def test_unexpected_random_numbers_are_reported():
    told = "\nyour code draws random numbers, but nothing here is random (dropout? a new layer in each call?)"
    for seen, expected, said in ((True, False, True), (False, False, False), (True, True, False)):
        right = Observation(t(1.0), drew=expected)
        found = dataclasses.replace(problem("value", t(1.0), t(2.0), drew=seen), expected=right)
        assert says(found).endswith(told) == said


def test_a_named_mistake_also_reports_its_error_or_shape():
    case = Case((t(1.0),))
    lost = made_key([case], [t(1.0)], [("kept", [t([1.0])])])
    assert judge(lost, t([1.0])).message == (
        "This looks like: label of kept.\nHint of kept?\nexpected shape ()\nyours    shape (1,)\nwith f(torch.tensor(1.))"
    )
    crash = made_key([case, Case((t(2.0),), part="two")], [t(1.0), t(2.0)], [("crash", [t(1.0), RAISED])])
    found = judge(crash, t(1.0), RAISED)
    assert found.mistake == "crash" and "\nyour code raised ValueError: (no message)\nwith f(" in found.message
    assert judge(crash, t(1.0), Observation(error=Error("TypeError"))).mistake == "raises"
    assert judge(crash, RAISED, RAISED).mistake == "raises"
    always = made_key([case], [t(1.0)], [("crash", [RAISED])])
    assert judge(always, RAISED).mistake == "raises"
    known = made_key([case, Case((t(2.0),), part="two")], [t(1.0), t(2.0)], [("known", [t(5.0), t(6.0)])])
    assert judge(known, t(5.0), RAISED).mistake == "known" and judge(known, RAISED, t(6.0)).mistake == "raises"
    promise = Case((t(2.0),), part="two", raises=Raises("KeyError"))
    known = made_key([case, promise], [t(1.0), Observation(error=Error("KeyError"))], [("known", [t(5.0), RAISED])])
    assert judge(known, t(5.0), t(9.0)).mistake == "known", "required errors are judged separately"


def test_the_mistake_that_explains_more_is_named():
    cases = [Case((t(1.0),)), Case((t(2.0),), part="two")]
    less, more = ("less", [t(5.0), t(2.0)]), ("more", [t(5.0), t(6.0)])
    for order in ([less, more], [more, less]):
        key = made_key(cases, [t(1.0), t(2.0)], order)
        assert judge(key, t(5.0), t(6.0)).mistake == "more" and judge(key, t(5.0), t(2.0)).mistake == "less"
    same = made_key(cases, [t(1.0), t(2.0)], [more, ("again", more[1])])
    assert judge(same, t(5.0), t(6.0)).mistake is None
    told = same.mistakes[0]
    for words, name in (({}, "more"), ({"label": "Another."}, None), ({"hint": "Another?"}, None)):
        other = dataclasses.replace(told, name="again", **words)
        assert judge(dataclasses.replace(same, mistakes=[told, other]), t(5.0), t(6.0)).mistake == name
    dtype = made_key(cases, [t(1.0), t(2.0)], [("single", [d(1.0), d(2.0)]), ("both", [d(5.0), d(2.0)])])
    assert judge(dtype, d(1.0), d(2.0)).mistake == "single" and judge(dtype, d(5.0), d(2.0)).mistake == "both"


def test_separately_judged_parts_do_not_prevent_the_name_of_a_mistake():
    cases = [Case((t(1.0),)), Case((t(2.0),), part="two"), Case((t(3.0),), part="apart"), Case((t(4.0),), part="apart")]
    right = [t(1.0), t(2.0), t(3.0), t(4.0)]
    both, outside, inside = [t(5.0), t(6.0), t(7.0), t(8.0)], [t(5.0), t(6.0), *right[2:]], [*right[:2], t(9.0), t(9.0)]
    key = made_key(cases, right, [("both", both), ("inside", inside)], apart=("apart",))
    assert key_from_tree(key_to_tree(key)).apart == ("apart",)
    assert judge(key, *both).mistake == "both" and judge(key, *inside).mistake == "inside"
    assert judge(key, *both[:2], t(0.0), t(4.0)).mistake == "both"
    assert judge(key, *right[:2], *both[2:]).mistake == "both"
    assert judge(key, *right[:2], t(7.0), t(0.0)).mistake is None
    assert judge(key, t(5.0), t(0.0), *both[2:]).mistake is None, "separate parts are not named while others are wrong"
    assert judge(key, t(5.0), t(2.0), *right[2:]).mistake is None
    assert judge(dataclasses.replace(key, apart=()), *both[:2], t(0.0), t(4.0)).mistake is None
    leading = [*cases[:2], *(dataclasses.replace(case, part=LEADING) for case in cases[2:])]
    assert judge(made_key(leading, right, [("both", both)]), *both[:2], t(0.0), t(4.0)).mistake == "both"
    more = made_key(cases, right, [("both", both), ("outside", outside)], apart=("apart",))
    for order in (more.mistakes, more.mistakes[::-1]):
        more = dataclasses.replace(more, mistakes=list(order))
        assert judge(more, *both[:2], t(0.0), t(4.0)).mistake == "outside" and judge(more, *both).mistake == "both"
    crash = made_key(cases, right, [("crash", [RAISED, RAISED, *right[2:]])], apart=("apart",))
    assert judge(crash, RAISED, RAISED, t(0.0), t(4.0)).mistake == "raises"


def test_a_mistake_is_named_by_plain_cases_alone_if_they_cannot_agree_by_chance():
    cases = [Case((t(1.0),)), Case((t(2.0),), part="two")]
    right, wrong, other = t(0.5, 0.25), t(0.75, 0.125), t(0.3, 0.1)
    key = made_key(cases, [right, right], [("known", [wrong, wrong])])
    assert judge(key, wrong, other).mistake == "known" and judge(key, wrong, RAISED).mistake == "known"
    assert judge(key, right, other).mistake is None and judge(key, other, wrong).mistake is None
    for few in (t(0.5, 2.0), t(1.0, 2.0), torch.tensor([True, False])):
        key = made_key(cases, [few, right], [("known", [~few if few.dtype == torch.bool else few + 1, wrong])])
        assert judge(key, key.mistakes[0].observations[0].output, other).mistake is None, "they may agree by chance"


def test_a_picture_shows_a_wrong_matrix():
    want = torch.arange(6.0).reshape(2, 3)
    got = want + torch.tensor([[0.0, 0.0, 1.0], [0.0, 3.0, 0.0]])

    def picture(want, got, axes=("query", "key"), **options):
        return judge(made_key([Case((1,), **options)], [want], axes=axes), got).picture

    shown = picture(want, got)
    assert torch.equal(shown.expected, want) and torch.equal(shown.actual, got)
    assert picture(want, got, axes=("one",)).axes == () and picture(want, got, axes=("a", "b", "c")).axes == ()
    shown = picture(torch.stack([want, want]), torch.stack([want, got]))
    assert torch.equal(shown.actual, got) and torch.equal(shown.expected, want)
    assert picture(torch.stack([want, want])[None], torch.stack([want, got])[None]) is not None
    assert torch.equal(picture(torch.stack([want] * 3), torch.stack([want, got, want - 1])).actual, got)
    assert picture(want, got.where(got != 7, NAN)) is not None and picture(want[0], got[0]) is None
    assert picture(want, got[:1]) is None and picture(1.0, 2.0) is None and picture([want], [got]) is not None
    assert picture(torch.zeros(20, 20), torch.ones(20, 20)) is not None
    assert picture(torch.zeros(20, 21), torch.ones(20, 21)) is None and picture(t([[1.0]]), t([[2.0]])) is None
    assert picture(t([[1.0, 1.0]]), t([[1.0, 2.0]])) is not None
    shown = picture(torch.stack([want, want + 7, want + 9]), torch.stack([want + 0.5, want + 7, want + 8.5]))
    assert torch.equal(shown.expected, want) and torch.equal(shown.actual, want + 0.5)
    assert picture(torch.zeros(1, 401), torch.ones(1, 401)) is None
    assert picture(want, Odd("set")) is None and picture(want, want.double()) is None


def test_a_picture_shows_the_item_that_the_text_names():
    good, off = torch.arange(6.0).reshape(2, 3), torch.arange(6.0).reshape(2, 3) + t([[0.0] * 3, [0.0, 3.0, 0.0]])

    def shown(*items):
        found = judge(made_key([Case((1,))], [torch.stack([good] * len(items))]), torch.stack(items))
        assert found.message.splitlines()[0].count(f"{found.picture.item}, row {found.picture.worst[0]}") == 1
        return found.picture.item, found.picture.worst

    assert shown(off, good) == ("item 0", (1, 1)) and shown(off - 5, off, good) == ("item 0", (0, 0))
    missing = good.where(good != 2, NAN)
    assert shown(good, missing, missing) == ("item 1", (0, 2)), "the first of two"
    assert shown(good.where(good != 5, INF), missing) == ("item 1", (0, 2)), "nan is reported before inf"


def test_a_case_with_a_view_compares_only_the_view():
    key = made_key([Case((1,), view="facts_view")], [{"the sum is": "3", "it is small": True}])
    assert judge(key, 3).passed
    assert judge(key, 4).message == "the sum is:\nexpected 3\nyours    4\nwith f(1)"
    assert judge(key, None).message == "nothing to look at\nwith f(1)"


# Measured exercises


def facts_measure(truths, outputs):
    """The fraction of right answers, of which four fifths pass; a first answer of 7 or 8 is a named mistake."""
    right = sum(
        a == b for truth, output in zip(truths, outputs, strict=True) for a, b in zip(truth, output, strict=True)
    )
    name = {7: "only_sevens", 8: "stuck_at_eight"}.get(outputs[0][0])
    return Score(right / 5 * (1.5 if name is None else -1), right >= 4, f"{right} of 5 right", name)


METRICS.register(facts_measure)


def measured_key(*cases, expected=([1, 2, 3, 4, 5],), mistakes=(), **options):
    cases = cases or (Case((1,)),)
    return made_key(cases, expected, mistakes, kind="exercise", metric="facts_measure", **options)


def test_a_measured_answer_earns_its_share_of_the_points():
    key = measured_key(points=10)
    assert paid(key, [1, 2, 3, 4, 5]) == (10, True, [("5 of 5 right", True)])
    assert paid(key, [1, 2, 3, 4, 0])[:2] == (10, True)
    assert paid(key, [1, 2, 3, 0, 0]) == (9, False, [("3 of 5 right", False)]) and paid(key, [1, 0, 0, 0, 0])[0] == 3
    assert paid(key, [7, 2, 3, 4, 5])[:2] == (0, True), "a negative share counts as 0"
    assert paid(measured_key(points=7.5), [1, 2, 3, 4, 5])[0] == 7.5, "a share of 1 earns all points"
    seen = judge(key, [1, 2, 0, 0, 0])
    assert (seen.mistake, seen.message, seen.points, seen.passed) == (None, "2 of 5 right", 6, False)


def paid(key, *outputs):
    seen = judge(key, *outputs)
    return seen.points, seen.passed, [(part.name, part.passed) for part in seen.parts]


def test_a_measured_answer_that_changes_its_input_loses_a_tenth():
    key = measured_key(Case((t(1.0),)), points=10)
    right, wrong = [1, 2, 3, 4, 5], [1, 2, 3, 0, 0]
    assert paid(key, right) == (10, True, [("5 of 5 right", True), (UNCHANGED, True)])
    seen = judge(key, Observation(right, changed=[0]))
    assert (seen.points, seen.passed, seen.mistake) == (9, False, "input_changed")
    assert [part.passed for part in seen.parts] == [True, False]
    assert seen.message.startswith("your code changed an input in place")
    assert seen.parts[1].detail == seen.message and not judge(key, right).parts[1].detail
    seen = judge(key, Observation(wrong, changed=[0]))
    assert (seen.points, seen.passed, seen.message) == (8, False, "3 of 5 right"), "0.9 of 0.9"


def test_measured_outputs_need_the_right_type_and_shape():
    key = measured_key(Case((1,)), Case((2,)), expected=([1, 2], [3, 4, 5]))

    def said(*outputs):
        seen = judge(key, *outputs)
        assert seen.points == 0 and not seen.passed and [part.passed for part in seen.parts] == [False]
        return seen.mistake, seen.parts[0].detail

    assert said([1, 2], 5) == ("wrong_type", "expected a list of 3 entries, got a Python int, 5\nwith f(2)")
    assert said([1], 5) == said([1, 2], 5)  # the detail belongs to the problem that the message names
    assert said([1], [3, 4, 5]) == ("wrong_shape", "expected 2 entries: [1, 2]\nyours    1 entry: [1]\nwith f(1)")
    assert said([1, 2], [1])[0] == "wrong_shape" and said([1, 2], None)[0] == "wrong_type"
    slow, broken = Observation(error=Error("TooSlow")), Observation(error=Error("KeyError", "x"))
    assert said(slow, [3, 4, 5])[0] == "too_slow" and said(broken, [3, 4, 5])[0] == "raises"
    assert said(Observation(error=Error("ZeroDivisionError", "x")), [3, 4, 5])[0] == "raises"
    unanswered = Observation(error=Error("NotImplementedError"))
    assert said(unanswered, [3, 4, 5])[0] == "not_answered"


def test_measured_mistakes_are_named_by_the_metric_or_by_their_outputs():
    key = measured_key(mistakes=[("only_sevens", [[7] * 5]), ("copies", [[1, 1, 1, 1, 1]])])
    seen = judge(key, [7] * 5)
    assert (seen.mistake, seen.label) == ("only_sevens", "label of only_sevens")
    assert seen.message == "This looks like: label of only_sevens.\nHint of only_sevens?\n0 of 5 right"
    assert judge(key, [1] * 5).mistake == "copies" and judge(key, [2] * 5).mistake is None
    assert (judge(key, [8] * 5).mistake, judge(key, [8] * 5).label) == ("stuck_at_eight", "stuck at eight")
    assert judge(key, [8] * 5).message == "0 of 5 right" and judge(key, [2] * 5).label == ""
    named = measured_key(mistakes=[("only_sevens", [])])
    assert judge(named, [7] * 5).label == "label of only_sevens" and judge(named, [2] * 5).mistake is None


# Messages


def first_line(want, got):
    return judge(made_key([Case((1,))], [want]), got).message.splitlines()[0]


def test_right_values_in_another_order_or_place_are_recognized():
    a, b, c = t(1.0, 2.5), t([3.0]), d(7.0, 4.0, 9.0)
    order = "the right values, but in another order: [{}] of your answer should come first"
    for want, got, number in (((a, b), (b, a), 1), ((a, b, c), (c, a, b), 1), ((a, a, b), (b, a, a), 1)):
        assert first_line(want, got) == order.format(number)
    for want, number in (((a, b), 1), ((a, c, b), 2), ((a, b, b), 1)):
        assert first_line(want, b) == f"your answer is only [{number}] of the {len(want)} values that are asked for"
    assert first_line((a, b), c) == "expected a tuple of 2 values, got a tensor of shape (3,)"
    assert first_line((a, b, c, a), (c, b, a, a)).startswith("output at [0]:")
    assert first_line((a, b), (a + t(0.0, 1.0), b + 1)).startswith("output at [0]: 1 of 2 numbers differs")
    found = judge(made_key([Case((1,))], [(a, b, c)]), (a, b, c + d(0.0, 1.0, 0.0))).message.splitlines()
    assert found[0].startswith("output at [2]: 1 of 3") and found[1] == "output at [0] and [1]: right"
    assert "right" not in judge(made_key([Case((1,))], [[a, b]]), [a, b + 1]).message
    named = {"first": a, "second": a + 1}
    swapped = {"first": a + 1, "second": a}
    assert first_line(named, swapped) == 'your ["first"] holds what belongs in ["second"]'
    assert first_line(named, named | {"second": a}) == 'your ["second"] holds what belongs in ["first"]'
    assert "belongs" not in first_line(named, named | {"first": a - t(0.3, 0.7)})
    assert "belongs" not in first_line({"first": {"of": a}, "second": 1.0}, {"first": {"of": a + b}, "second": 1.0})
    assert "belongs" not in first_line({"first": 1, "second": 2}, {"first": 2, "second": 1}), "may be chance"


def test_messages_about_lists():
    many = [(i, 1000 + i) for i in range(40)]
    assert first_line([1, 2, 3], [1, 3, 2]) == "the right entries in another order; at [1]: expected 2, yours 3"
    large = torch.zeros(3, 5)
    assert "order" not in first_line([large, large], [large + 1, large]), "large tensors are shown only by their shape"
    same = "x" * 130
    assert first_line([same + "a"], [same + "b"]) == f'expected "{same[:116]}…" at [0]'
    assert first_line(many, many[:-1]) == "40 entries are expected, yours has 39 and lacks (39, 1039)"
    assert first_line(many, [*many, (7, 7)]) == "40 entries are expected, yours has 41 and should not have (7, 7)"
    assert first_line([*range(99)], [*range(4, 99)]) == "99 entries are expected, yours has 95 and lacks 0, 1, 2 …"
    assert first_line([11] * 30, [11] * 29).startswith("expected 30 entries: ["), "a list of 120 characters is shown"


def test_randomness_is_reported_only_with_wrong_values():
    key = made_key([Case(())], [t(1.0)])
    assert "dropout" not in says(problem("wrong_shape", t([1.0]), t(2.0), drew=True), key)
    assert "dropout" not in says(problem("detached", drew=True), key)


def test_errors_where_a_mask_is_false_are_recognized():
    mask = t([[1.0, 0.0, 1.0], [1.0, 1.0, 1.0]]).bool()
    x = t([[0.3, 0.1, 0.7], [0.4, 0.6, 0.2]])

    def told(want, got, mask=mask):
        return value_text(want, got, case=Case((torch.zeros(9), mask))).startswith("where the mask is False, the")

    for blank, words in ((0.0, "0"), (-INF, "-inf")):
        masked = x.masked_fill(~mask, blank)
        line = f"where the mask is False, the result should be {words}, and yours is not\n"
        assert value_text(masked, x, case=Case((mask,))).startswith(line) and not told(masked, masked + 1 * mask)
        assert told(masked[:, :1] * 0 + masked, x, mask) and told(masked[:1].expand(2, 3), x, mask[:1])
        assert told(masked[0].expand(2, 3), x, mask[0]) and not told(masked, x, mask[0])
        assert not told(masked[0], x[0]) and not told(masked, x, mask.repeat(3, 1)[:5]), "the mask has another shape"
    assert not told(mask, mask | True), "boolean values are not described as numbers"


def test_errors_only_in_fully_masked_rows_are_recognized():
    off = t([[0.0, 0.0, 0.3, 0.9], [0.7, 0.1, 0.0, 0.4]])
    want = torch.ones(2, 4)
    told = "only fully masked rows are wrong, those for which the mask is False everywhere"
    mask = t([[1.0, 0.0, 1.0], [0.0, 0.0, 0.0]]).bool()
    row = t([[0.0], [1.0]])
    found = value_text(want, want + row * off, case=Case((mask,))).splitlines()
    assert found[0] == told and found[1].startswith("3 of 8 numbers differ")
    assert told not in value_text(want, want + off, case=Case((mask,)))
    assert told not in value_text(want, want + row * off, case=Case((mask[:1],)))
    assert told not in value_text(want[0], want[0] + off[0], case=Case((torch.zeros(4).bool(),))), "no rows"
    heads = torch.ones(2, 1, 3, 3).bool()
    heads[0, :, 1] = False  # the second row of the first item, for all heads
    batch = torch.ones(2, 3, 4)
    for item, number, is_told in ((0, 1, True), (1, 1, False), (0, 0, False)):
        wrong = batch.clone()
        wrong[item, number, :2] = 2.5
        assert (told in value_text(batch, wrong, case=Case((heads,)))) == is_told
    nan = problem("nan", want, want.where(row == 0, NAN), case=Case((mask,)), diff="nan")
    assert says(nan).splitlines()[1] == told


def test_simple_relations_between_two_numbers_are_recognized():
    def told(want, got):
        return value_text(want, got).partition("expected")[0].strip()

    assert told(0.5, 0.5 / math.log(2)) == "your logarithms are to base 2, and natural ones are asked for"
    for want in (0.5, 99.5):
        assert told(want, math.exp(want)) == "your result is e to the power of what is asked for"
    assert told(100.0, math.exp(100.0)).endswith(" times what it should be")
    assert told(3.0, -3.0) == "the right number with the opposite sign"
    assert told(1.004, 1.004**2) == "your result is the square of what is asked for"
    assert told(0.5, 0.25) == "your result is the square of what is asked for"
    assert told(3.0, math.sqrt(3.0)) == "your result is the square root of what is asked for"
    assert told(2.3, 11.5) == "your result is 5 times what it should be"
    assert told(2.3, 2.3 / 3) == "your result is 1/3 of what it should be"
    for want, got in ((1.0004, 1.0004**2), (1.0, 3), (2.0, 0.0), (0.0, 3.0), (1e-200, 1e200), (2, 4), (1.0, 1.00001)):
        assert told(want, got) == ""


def test_messages_about_values():
    want, got = t([[1.0, 2.0], [3.0, 4.0]]), t([[1.0, 2.0], [3.0, 7.0]])
    assert value_text(want, got) == "1 of 4 numbers differs, at row 1 (query 1), column 1 (key 1): expected 4, yours 7"
    got = t([[1.0, 2.5], [3.5, 7.0]])
    most = "3 of 4 numbers differ, most at row 1 (query 1), column 1 (key 1): expected 4, yours 7"
    assert value_text(want, got) == most
    ints = torch.tensor([1, 2, 3]), torch.tensor([1, 5, 9])
    assert value_text(*ints, axes=()) == "2 of 3 numbers differ, first at entry 1: expected 2, yours 5"
    assert value_text(*ints) == "2 of 3 numbers differ, first at entry 1 (key 1): expected 2, yours 5"
    assert value_text(t(1.0), t(2.0)) == "your result is 2 times what it should be\nexpected 1\nyours    2"
    assert value_text(1.0, 2.0) == "your result is 2 times what it should be\nexpected 1\nyours    2"
    inside = value_text(t([1.0, 2.0, 5.0]), t([1.0, 2.0, 8.0]), path=("a", 1))
    assert inside == 'output at ["a"][1]: 1 of 3 numbers differs, at entry 2: expected 5, yours 8'
    two_lines = value_text(t([1.0, 2.0, 5.0]), t([1.5, 2.5, 5.5]), path=(1,)).splitlines()
    assert two_lines[0] == "output at [1]: every number is about 0.5 too large"
    assert two_lines[1].startswith("3 of 3 numbers differ, most at entry ")
    assert value_text({"a": 1}, {"b": 1}) == 'your dictionary lacks "a"; it should not have "b"'
    assert value_text({"a": 1}, "b") == 'expected {"a": 1}\nyours    "b"'
    assert value_text({}, {"it should": 1}) == 'your dictionary should not have "it should"'
    assert value_text({i: 0 for i in range(5)}, {}) == "your dictionary lacks 0, 1, 2, 3 …"
    assert value_text({i: 0 for i in range(4)}, {}) == "your dictionary lacks 0, 1, 2, 3"
    kept = {"on": True, "off": False, "one": True, "two": True, "said": "so"}
    broken = "this should be so, but it isn't yet: one"
    assert value_text(kept, kept | {"one": False, "two": False, "said": "no"}) == f"{broken}\nin your answer, said no"
    want, extra = {"on": True, "off": False}, 'your dictionary should not have "b"'
    assert value_text(want, want | {"b": 1}) == value_text(want, {"on": True, "off": True, "b": 1}) == extra


def test_messages_about_properties():
    case = Case((torch.zeros(9),), view="facts_view")
    small = "it is small"
    assert value_text(True, False, path=(small,), case=case) == f"this should be so, but it isn't yet: {small}"
    assert value_text(False, True, path=(small,), case=case) == f"this should not be so, but it is: {small}"
    for path in (("sum",), (0, "sum")):
        assert value_text("3", "4", path=path, case=case) == "sum:\nexpected 3\nyours    4"
    assert value_text("3", "4", path=("sum", 0), case=case) == 'expected "3" at ["sum"][0]\nyours    "4"'
    assert value_text(3, 4, path=("sum",), case=case) == 'expected 3 at ["sum"]\nyours    4'
    seen = value_text(t([1.0, 2.0, 5.0]), t([1.0, 2.0, 8.0]), path=("the sums",), case=case)
    assert seen == "the sums: 1 of 3 numbers differs, at entry 2: expected 5, yours 8"
    no_further = value_text({"sum": "3", "it is small": True}, {"sum": "4"}, case=case)
    assert no_further == "sum:\nexpected 3\nyours    4"
    for yours in ("2", "4"):
        seen = value_text(
            {"a": 1, "b": 2, "sum": "3", "mean": "1", "c": 3}, {"a": 0, "sum": yours, "mean": "0"}, case=case
        )
        assert seen == f"sum:\nexpected 3\nyours    {yours}"
    assert value_text({"sum": "3", "b": 1}, {"sum": "4"}) == 'your dictionary lacks "b"'
    via = Case((1,), via="anything", note="a note")
    assert value_text(True, False, path=("it",), case=via) == "this should be so, but it isn't yet: it\nwith a note"


def by_values(want, got, **options):
    return value_text(want, got, **options).splitlines()[0]


def test_mistakes_that_the_values_alone_reveal():
    x = t([[0.1, 0.2, 0.3], [0.5, 0.7, 1.1]])
    times = "off by a constant factor: every number is {} times what it should be{}, and 9 is a size of your inputs"
    sizes = {9: "", 1 / 9: ", which is 1/9", 3: ", which is √9", 1 / 3: ", which is 1/√9"}
    for factor, of_a_size in sizes.items():
        assert by_values(x, x * factor) == times.format(f"{factor:.4g}", of_a_size)
    assert by_values(x, x * 2, case=Case((torch.zeros(2),))).endswith(
        "2 times what it should be, and 2 is a size of your inputs"
    )
    nearly_one = x * (1.0001 + t([[6e-5, -6e-5, 6e-5], [-6e-5, 6e-5, -6e-5]]))
    assert by_values(x, nearly_one, case=Case((torch.zeros(1),))).endswith("1 times what it should be")
    assert by_values(x, x * -0.5).endswith("every number is -0.5 times what it should be")
    assert by_values(x, -x) == "the right numbers with the opposite sign"
    assert by_values(x, x - 0.25) == "every number is about 0.25 too small"
    assert by_values(x, x * 0.99995) == "every number is about 0.005% too close to 0"
    square = t([[0.1, 0.2], [0.5, 0.7]])
    assert by_values(square, square.mT) == "transposed: rows and columns have changed places"
    assert by_values(x, x.flip(0)) == "the right rows in another order"
    for power, told in ((2, "square"), (0.5, "square root")):
        assert by_values(x, x**power) == f"every number is the {told} of what it should be"
        assert by_values(x * (x != 0.1), (x * (x != 0.1)) ** power).endswith(f"the {told} of what it should be")
        assert by_values(-x / 2, (x / 2) ** power).startswith("6 of 6")
    row = t(0.1, -0.2, 0.4)
    for rows in (x, torch.stack([x, x * x])):
        assert by_values(rows, rows + row).startswith("every row is off by the same numbers: is something")
        assert by_values(rows, rows.flatten().roll(1).reshape(rows.shape)).startswith("the right numbers, but at other")
    assert by_values(x[:1], x[:1] + row).startswith("3 of 3 numbers differ"), "a single row"
    for noise, told in ((99.5e-12, "every row is off by the same"), (100.5e-12, "4 of 4 numbers differ")):
        far = d([1.0, 2.5], [3.0, 5.0])
        assert by_values(far, far + d([0.1, -0.2], [0.1 + noise, -0.2])).startswith(told)
    assert by_values(d(0.1, 0.2, 0.4), d(0.4, 0.1, 0.2)) == "the right numbers in another order"
    assert by_values(d(0.1, 0.4), d(0.4, 0.1)).startswith("2 of 2 numbers differ")
    many = torch.arange(1001.0)[:, None].sin().cumsum(0)  # pairs of rows are compared only up to 1,000 rows
    assert by_values(many[1:], many[1:].flip(0)) == "the right rows in another order"
    assert by_values(many, many.flip(0)).startswith("the right numbers, but at other positions")
    batch = torch.stack([x, 2 * x + 1])
    assert by_values(batch, torch.stack([x, x.flip(0)])) == "right for the first item of the batch only"
    masked = t([[0.1, 0.2, 0.3], [0.0, 0.0, 0.0]])
    line = "right, except that row 1 (query 1) should be all zeros"
    assert value_text(masked, t([[0.1, 0.2, 0.3], [0.3, 0.3, 0.4]])) == line
    weights = t([[0.1, 0.2, 0.7], [0.3, 0.3, 0.4]])
    columns = value_text(weights, t([[0.4, 0.4, 0.7], [0.6, 0.6, 0.3]]))
    assert columns == "each row should sum to 1; in your answer each column does"
    for row, total in ((t(0.5, 0.5, 1.0), "2"), (t(0.5, -0.5, 0.0), "0")):
        assert value_text(weights[0], row) == f"each row should sum to 1; yours sums to {total}"
        table = value_text(weights, torch.stack([weights[0], row]))
        assert table == f"each row should sum to 1; row 1 (query 1) sums to {total}"


def test_messages_name_the_only_wrong_rows_columns_or_items():
    x = torch.arange(24.0).reshape(4, 6) * 1.1 + 0.3
    off = t([0.3, -0.7, 0.2, 0.9, -0.4, 0.6])
    assert by_values(x, x + t([[0.0], [1.0], [0.0], [-2.0]]) * off) == "rows 1 and 3 are wrong, and the others right"
    assert by_values(x, x + t([[0.0], [1.0], [0.0], [0.0]]) * off) == "only row 1 (query 1) is wrong"
    columns = x + t(0.0, 0.0, 1.0, 0.0, 0.0, 1.0) * t([[0.3], [-0.7], [0.2], [0.9]])
    assert by_values(x, columns) == "columns 2 and 5 are wrong, and the others right"
    one = x + t(1.0, 1.0, 0.0, 1.0, 1.0, 1.0) * t([[0.3], [-0.7], [0.2], [0.9]]) * off
    assert by_values(x, one) == "only column 2 (key 2) is right"
    rows = t([[0.1, 0.2, 0.3], [0.5, 0.7, 1.1]])
    assert by_values(rows, rows[:, [0, 0, 1]]) == "only column 0 (key 0) is right", "the other columns are wrong"
    batch = torch.stack([x, 2 * x, 3 * x])
    assert by_values(batch, batch + t(1.0, 0.0, 0.0)[:, None, None] * off * x) == "only item 0 is wrong"
    wide = torch.arange(80.0).reshape(4, 20) + 0.3
    for number, words in ((9, "1, 2, 3, 4, 5, 6, 7 and 8"), (10, "1, 2, 3 …")):  # column 0 is right
        many = wide + (torch.arange(20) < number) * t([[0.3], [-0.7], [0.2], [0.9]]) * torch.arange(20)
        assert by_values(wide, many) == f"columns {words} are wrong, and the others right"
    tall = torch.arange(10.0).reshape(5, 2) * 1.3
    most = tall + t([0.0, 1.0]) * t([[0.3], [-0.7], [0.2], [0.9], [0.0]])  # in 80% of the rows
    assert by_values(tall, most).startswith("4 of 10")


def test_values_that_should_or_should_not_be_masked_are_counted():
    x = t([[0.1, 0.2, 0.3], [0.5, 0.7, 1.1]])
    some = t([[0.0, 1.0, 1.0], [1.0, 0.0, 1.0]]).bool()
    for blank, words in ((0.0, "0"), (-INF, "-inf")):
        few = x.where(some, torch.tensor(blank))
        assert by_values(few, x) == f"right, except for 2 numbers that should be {words}"
        assert by_values(x, few) == f"right, except for 2 numbers that should not be {words}"
        one = x.where(x != 0.1, torch.tensor(blank))
        assert by_values(few, one) == f"right, except for 1 number that should be {words}"


def test_messages_about_masks_and_integers():
    want = t([[1.0, 0.0], [1.0, 0.0], [1.0, 1.0]]).bool()
    inverted = "inverted: yours is True wherever it should be False, and False wherever it should be True"
    assert by_values(want, ~want) == inverted
    right = "no entry is wrong the other way round"
    assert by_values(want, want | True) == f"2 entries are True and should be False; {right}"
    one = want & t([[0.0, 1.0], [1.0, 1.0], [1.0, 1.0]]).bool()
    assert by_values(want, one) == f"1 entry is False and should be True; {right}"
    assert by_values(want, want.flip(1)).startswith("4 of 6 numbers differ")
    causal = torch.ones(3, 3).tril().bool()
    assert by_values(causal, causal.mT) == "transposed: rows and columns have changed places"
    assert by_values(want, want + 1) == "expected dtype bool, yours is int64"
    rows = torch.tensor([[3, 1, 2], [2, 0, 1]])
    assert by_values(rows, rows.flip(0)) == "the right rows in another order"
    assert by_values(rows, torch.tensor([[1, 3, 2], [0, 1, 2]])) == "the right numbers in another order"
    assert by_values(torch.tensor([1, 1, 2]), torch.tensor([2, 1, 1])).startswith("2 of 3 numbers differ, first at")
    ids = torch.tensor([3, 1, 2])
    assert by_values(ids, ids - 0.5) == "every number is 0.5 too small"
    assert by_values(ids, ids + 1) == "every number is 1 too large"
    assert by_values(ids, ids - 2) == "every number is 2 too small"
    assert by_values(ids, ids.flip(0)) == "the right numbers in another order"


def test_values_are_not_overinterpreted():
    x = t([[0.1, 0.2, 0.3], [0.5, 0.7, 1.1]])
    square = t([[0.1, 0.2], [0.5, 0.7]])
    assert by_values(square, square.mT + 0.2 * torch.eye(2)).startswith("4 of 4 numbers differ")
    three = torch.stack([x, 2 * x + 1, x])
    assert by_values(three, torch.stack([x, x, x])) == "only item 1 is wrong"  # the third item is right as well
    third = t(0.0, 0.0, 1.0)[:, None, None] * t([[0.3, -0.7, 0.2], [0.9, -0.4, 0.6]])
    assert by_values(three, three + third) == "only item 2 is wrong"
    weights = t([[0.1, 0.2, 0.7], [0.3, 0.3, 0.4]])
    assert by_values(weights, t([[0.3, 0.4, 0.3], [0.5, 0.2, 0.3]])).startswith("6 of 6 numbers differ")


def test_a_shift_is_named_only_if_it_exceeds_rounding():
    far, zigzag = (1000.0, -1000.0, 500.0, -500.0), t(1.0, -1.0, 1.0, -1.0)
    line = "every number is about {} too large"
    assert by_values(t(far), t(far) + 0.1 + 0.0055 * zigzag) == line.format("0.1")
    assert by_values(t(far), t(far) + 0.005) == "close, but not close enough"
    assert by_values(d(far), d(far) + 0.005) == line.format("0.005")
    assert by_values(d(1.0, 2.0, 4.0), d(1.0, 2.0, 4.0) + 2.05e-11) == line.format(
        "2.1e-11"
    )  # 20 times 1e-12 is detected
    assert by_values(d(1.0, 2.0, 4.0), d(1.0, 2.0, 4.0) + 1.95e-11) == "close, but not close enough"


def test_a_constant_factor_is_shown_with_enough_digits():
    x = t([[0.1, 0.2, 0.3], [0.5, 0.7, 1.1]])
    line = "off by a constant factor: every number is {} times what it should be"
    assert by_values(t(1.0, 2.0), t(7.0, 14.0)) == line.format(7)
    assert by_values(d(0.1, 0.2, 0.3), d(0.7, 1.4, 2.1)) == line.format(7)
    assert by_values(x, 1.0003 * x) == line.format("1.0003")
    assert by_values(x, torch.zeros_like(x)).startswith("6 of 6 numbers differ")
    assert by_values(t(1.0, 2.0), t(INF, INF)).startswith("2 of 2 numbers differ")


def test_messages_about_batches():
    x = t([[0.1, 0.2, 0.3], [0.5, 0.7, 1.1]])
    batch = torch.stack([x, 2 * x + 1])
    assert by_values(batch, batch[..., [1, 0, 2]]) == "the right columns in another order"
    squares = torch.stack([x[:, :2], 2 * x[:, 1:]])
    assert by_values(squares, squares.mT) == "transposed: rows and columns have changed places"
    assert by_values(x.mT, x.mT + t([[0.3, 0.0], [0.0, -0.1], [0.2, 0.0]])).startswith("3 of 6 numbers differ")
    first = "right for the first item of the batch only"
    assert by_values(batch[:, None], torch.stack([x, x.flip(0)])[:, None]) == first
    whole_and_padded = t([1.0, 1.0, 1.0, 1.0, 1.0, 0.0]).bool().reshape(2, 1, 3)  # only the mask tells them apart
    of_no_batch = (whole_and_padded[0], whole_and_padded[:, 0], whole_and_padded[1, 0])
    for mask, told in ((whole_and_padded, False), (whole_and_padded.flip(0), True), *((m, True) for m in of_no_batch)):
        for case in (Case((batch, mask)), Case((batch,), {"mask": mask})):
            assert (by_values(batch, torch.stack([x, x.flip(0)]), case=case) == first) == told
    one_off = torch.zeros(2, 3, 4).index_put((t([1]).long(), t([2]).long(), t([3]).long()), t([1.0]))
    many = torch.arange(24.0).reshape(2, 3, 4)
    assert by_values(many, many + one_off).startswith("1 of 24 numbers differs, at item 1, row 2")
    blank = torch.stack([x, torch.zeros_like(x)])
    filled = torch.stack([x, x])
    assert by_values(blank, filled) == "right, except that item 1, row 0 (query 0) should be all zeros"


def test_rows_of_zeros_are_named_only_if_all_else_is_right():
    def differ(want, got):
        return " numbers differ" in value_text(want, got)

    rows = t([[0.1, 0.2, 0.3], [0.0] * 3, [0.0] * 3])
    got = t([[0.1, 0.2, 0.3], [0.3, 0.3, 0.4], [0.3, 0.3, 0.4]])
    assert by_values(rows, got) == "right, except that row 1 (query 1) should be all zeros"
    assert differ(rows[:2], t([[0.15, 0.2, 0.3], [0.3, 0.3, 0.4]]))
    assert differ(t([[-1.0, -2.0], [1.0, 2.5]]), t([[-1.0, -3.0], [1.0, 2.5]]))
    assert differ(torch.zeros(3), t(1.0, 2.0, 4.0))


def test_messages_about_small_differences():
    close, line = "close, but not close enough", "every number is about {}% too far from 0"
    x = d(0.1, 0.2, 0.3, 0.7)
    assert by_values(-x, -x * 1.00005) == line.format(0.005)
    for want in (d(-1.0, -2.0, 3.0), d(0.0, 1.0, 2.0), d(0.0, -1.0, 2.0, 4.0)):
        assert by_values(want, want * 1.00005) == line.format(0.005)
    assert by_values(x, x * (1 + 9.45e-5)) == line.format(0.009)
    assert by_values(x, x * (1 + 9.55e-5)) == line.format(0.01)
    assert by_values(x, x * (1 + 5e-5 * d(1.0, 1.5, 0.5, 1.0))) == close
    assert by_values(torch.zeros(3).double(), d(1e-7, -1e-7, 2e-7)) == close
    assert by_values(d(0.0, 0.0, 1.0), d(0.0, 0.0, 1.00005)) == close
    assert by_values(d(0.0, 1.0, 2.0), d(5e-7, 1.0, 2.0)) == close, "only the zero is wrong"


def test_rounded_answers_are_recognized():
    x = d(0.123456789, 0.987654321, 0.55555555, 0.31415926)
    for digits, words in ((1, "1 decimal place"), (2, "2 decimal places"), (6, "6 decimal places")):
        assert by_values(x, x.round(decimals=digits)) == f"rounded to {words}"
    assert by_values(x, x.half().double()) == "rounded on the way: these are float16 numbers"
    assert by_values(x, x.bfloat16().double()) == "rounded on the way: these are bfloat16 numbers"
    assert "rounded" not in by_values(x[:3], x[:3].round(decimals=2))
    more = torch.cat([x, x / 3])
    assert by_values(more, more.round(decimals=2)) == "rounded to 2 decimal places"
    assert "rounded" not in by_values(x, x.round(decimals=7)) and "rounded" not in by_values(5 * x, (5 * x).round())
    assert "rounded" not in by_values(x, x.round(decimals=1) + d(0.1, 0.0, 0.0, -0.1))


def test_messages_state_how_close_a_number_is():
    def close(want, got):
        return "\n".join(value_text(want, got).splitlines()[2:])

    assert close(1.0, 1.001505) == close(-1.0, -0.998495) == "close: off by 0.2%", "0.1505%"
    assert close(1.0, 1.001495) == close(-1.0, -0.998505) == "close: off by 0.1%", "0.1495%"
    assert close(d(1e6), d(1e6 + 1)) == "close: off by 0.0001%"
    assert close(d(1e6), d(1e6 + 0.9)) == "close: off by less than 0.0001%"
    assert close(0.0, 1e-4) == close(1000, 1001) == close(1.0, INF) == close(1.0, NAN) == close(INF, -INF) == ""
    told = "1 of 3 numbers differs, at entry 2: expected 400, yours 401.6 (close: off by 0.4%)"
    assert value_text(t(1.0, 2.0, 400.0), t(1.0, 2.0, 401.6), ()) == told


def test_positions_in_words():
    words = wording.entry_at
    assert words([3], ("token",)) == "entry 3 (token 3)"
    assert words([4, 5, 1, 2]) == "item [4, 5], row 1, column 2"
    assert words([1, 2], ("row", "a b")) == "row 1, column 2" and words([1, 2], ("query",)) == "row 1, column 2"
    assert words([1, 2], ("head", "query", "key")) == "row 1 (query 1), column 2 (key 2)"
    assert words([3], ("key", "score j")) == "entry 3"


def test_two_numbers_are_shown_with_enough_digits_to_differ():
    assert wording.two_numbers(1, 2) == ("1", "2")
    assert wording.two_numbers(1.0, 1.0 + 2**-52) == ("1", "1.0000000000000002")
    assert wording.two_numbers(3.14159, 2.71828) == ("3.142", "2.718")
    assert wording.two_numbers(True, False) == ("True", "False") and wording.two_numbers(0.5, -0.0) == ("0.5", "0")


def test_values_are_written_as_python_code():
    written = wording.written
    assert written(t(1.0, 0.123456)) == "torch.tensor([1., 0.1235])"
    assert written(torch.tensor([1, 2])) == "torch.tensor([1, 2])"
    assert written(torch.tensor([True])) == "torch.tensor([True])"
    assert written(d(1.5)) == "torch.tensor(1.5, dtype=torch.float64)"
    assert written(torch.zeros(2, 4)) == "torch.tensor([[0., 0., 0., 0.], [0., 0., 0., 0.]])"
    assert written("x" * 120) == f'"{"x" * 120}"'
    assert written("x" * 121) == f'"{"x" * 116}…"'
    assert written((1,)) == "(1,)"
    assert written(()) == "()" and written("é") == '"é"'
    assert written({"a": 1, 2: None}) == '{"a": 1, 2: None}'
    assert written([11] * 30) == f"[{', '.join(['11'] * 30)}]"
    assert written([11] * 31) == f"[{', '.join(['11'] * 30)}…"[:119] + "…" and len(written([11] * 31)) == 120
    assert written(Odd("set", "{1}")) == "a set {1}" and written(Odd("object")) == "an object"
    assert written(Stub("facts_mean", (3,))) == "facts_mean(width=3)"
    assert written(Stub("facts_mean", (3, "a"))) == 'facts_mean(width=3, start="a")'
    assert written(Stub("facts_widths", (3, 4))) == "facts_widths(3, 4)"


def test_how_a_call_is_written():
    key = made_key([], [], arguments=["Q", "K"])
    call = lambda *args, **options: wording.call_text(key, Case(args, **options))  # noqa: E731
    module = ((2, 3), {"W": t(1.0)}, (torch.zeros(9),), {"mask": None})
    assert call(*module, via="module") == "f(2, 3)(<float32 (9,)>, mask=None)"
    assert call((2,), 5, via="built") == "f(2)" and call(2, 5, via="built") == "f(2, 5)" and call(via="built") == "f()"
    lines = wording.call_lines(key, Case((Stub("facts_mean", (2,)), Stub("facts_mean", (2,)))))
    assert lines[1:] == ["where Q is mean over all seen (width=2)", "where K is mean over all seen (width=2)"]
    assert lines[0] == "with f(Q, K)", "named as in the exercise, not as our stub"
    lines = wording.call_lines(key, Case(([Stub("facts_mean", (2,))], 1, Stub("facts_mean", (2,)))))
    assert lines == [
        "with f([facts_mean(width=2)], 1, facts_mean(width=2))",
        "where facts_mean is mean over all seen",
    ], "the exercise has no name for it"
    named = wording.call_lines(key, Case((), {"model": Stub("facts_mean", (2,))}))
    assert named == ["with f(model=model)", "where model is mean over all seen (width=2)"]
    assert wording.call_lines(key, Case((Stub("facts_mean", (2,)),), note="it")) == ["with it"]
    assert len(wording.call_lines(key, Case((Stub("facts_wordless", (2,)),)))) == 1
    assert wording.call_lines(key, Case((Stub("facts_long", (2,)),)))[1:] == ["where Q is mean over all (width=2)"]


def test_the_call_is_always_shown():
    big, small = torch.zeros(9), torch.zeros(8)
    key = made_key([], [], arguments=["Q", "K"])

    def shown(*args, part=VALUES, kind="value", **options):
        found = problem(kind, t(1.0), t(2.0), case=Case(args, **options), part=part, error=Error("E", "m"))
        return next((line for line in messages.text(found, key).splitlines() if line.startswith("with ")), None)

    assert shown(small).startswith("with f(torch.tensor([0., ")
    assert shown((), {"W": small}, (big,), {}, via="module") == "with f()(<float32 (9,)>)"
    assert shown(1, kind="forbidden_call") is None, "it does not belong to a single call"


def test_names_of_inputs_without_a_gradient():
    key = made_key([], [], arguments=["Q", "K", "V"])
    one, whole = t(1.0), torch.tensor(1)
    name = lambda case, number: verdict.leaf_name(key, case, number)  # noqa: E731
    assert [name(Case((one, one)), i) for i in (0, 1)] == ["Q", "K"] and name(Case((whole, one)), 0) == "K"
    assert name(Case((one, one), no_gradient=(0,)), 0) == "K" and name(Case((one,)), 1) == "a parameter"
    assert [name(Case(([one, one], one)), i) for i in (0, 1, 2)] == ["Q", "Q", "K"]
    assert name(Case(({"a": one, "b": whole}, one)), 1) == "K" and name(Case((1, "a", one)), 0) == "V"
    table = Case(({"a": one, "b": one}, one))
    assert [name(table, i) for i in range(3)] == ['Q["a"]', 'Q["b"]', "K"]
    cut_off = lambda *gradients: verdict._cut_off(key, table, 0, list(gradients))  # noqa: E731
    assert cut_off(None, one, one) == 'Q["a"]' and cut_off(None, None, one) == "Q"
    assert name(Case((one,), {"mask": whole, "bias": one}), 1) == "bias"
    module = Case(((3,), {"W.weight": one, "W.bias": one}, (one, whole), {"bias": one}), via="module")
    assert [name(module, i) for i in range(6)] == ["Q", "bias", "W.weight", "W.bias"] + ["a parameter"] * 2
    assert verdict.argument_name(key, 2) == "V" and verdict.argument_name(key, 3) == "argument 4"
    assert verdict.argument_name(key, "mask") == "mask"
    assert verdict.argument_name(key, 4) == "argument 5" and name(Case(([1, one], one)), 0) == "Q"


def test_messages_about_errors():
    def shown(error, where=""):
        seen = {"gradient_error": error} if where else {"error": error}
        return says(problem("raises", where=where, case=Case((1,)), **seen)).removesuffix("\nwith f(1)")

    assert shown(Error("KeyError", "no\nmore")) == "your code raised KeyError: no"
    assert shown(Error("KeyError")) == "your code raised KeyError: (no message)"
    assert shown(Error("E", "m"), "gradient") == "while computing the gradient, your code raised E: m"
    assert says(problem("raises", where="query", error=Error("E", "m"))).startswith("your code raised E: m")
    assert shown(Error("E", "m", 3, "x = y" * 30)) == f"your code raised E: m\nin line 3: {('x = y' * 30)[:90]}"
    helper = Error("E", "m", 3, "x", function="outer.<locals>.weights_of")
    assert shown(helper) == "your code raised E: m\nin your helper weights_of, line 3: x"
    assert shown(Error("E", "m", 3, "x", function="a_b")) == "your code raised E: m\nin your helper a_b, line 3: x"
    for own in ("f", "f.forward", "<lambda>", ""):
        assert shown(Error("E", "m", 3, "x", function=own)) == "your code raised E: m\nin line 3: x"
    assert "your helper for_f, " in shown(Error("E", "m", 3, "x", function="for_f"))
    edge = 200 - len("your code raised E: ")
    assert shown(Error("E", "m" * edge)) == f"your code raised E: {'m' * edge}"
    assert shown(Error("E", "m" * (edge + 1))) == f"your code raised E: {'m' * (edge - 1)}…"


def test_messages_about_types():
    def shown(want, got, path=()):
        return says(problem("wrong_type", want, got, path=path, diff="type")).split("\nwith ")[0]

    assert shown(t(1.0), None) == "your answer returned None; is a return missing?"
    assert shown(t(1.0), None, (1,)) == "your answer returned None at [1]; is a return missing?"
    assert shown(t(1.0), Odd("unusable")) == "your output could not be read"
    assert shown(t([1.0]), Odd("view", "x")) == "expected a tensor of shape (1,), got a view x"
    assert shown(t(1.0), Odd("set")) == "expected a tensor with a single number, shape (), got a set"
    assert shown(t([1.0]), Odd("array", "x")) == "expected a tensor of shape (1,), got an array x"
    assert shown([1, 2], 1.5) == "expected a list of 2 entries, got a Python float, 1.5"
    assert shown((), True).endswith("got a bool, True")
    assert shown(1, "a", ("k",)) == 'expected a Python int, 1 at ["k"], got a string, "a"'
    assert shown({}, 1) == "expected a dict, got a Python int, 1"


def test_messages_about_shapes():
    def shown(want, got, axes=("query", "key"), **options):
        return says(problem("wrong_shape", want, got, diff="shape", **options), made_key([], [], axes=axes))

    a, b = torch.zeros(5, 7), torch.zeros(7, 5)
    words = ": one row for each of the 5 queries, one column for each of the 7 keys"
    order = "\nthe sizes are right, but in another order: are two axes swapped?"
    assert shown(a, b) == f"expected shape (5, 7){words}\nyours    shape (7, 5){order}"
    assert shown(a, b[:6], axes=("query", "key", "head")) == "expected shape (5, 7)\nyours    shape (6, 5)"
    assert "one row for each of the 0 queries, one column for each of the 7 keys" in shown(a[:0], b)
    assert shown(a[0], b) == "expected shape (7,)\nyours    shape (7, 5)"
    assert shown(torch.zeros(2, 1, 3), b, axes=("query", "score j")) == (
        "expected shape (2, 1, 3): one row for the one query, one column for each score j (3)\nyours    shape (7, 5)"
    )
    assert shown(a, b, (), path=(1,)) == f"output at [1]:\nexpected shape (5, 7)\nyours    shape (7, 5){order}"
    assert shown(a, b, path=(1,)) == f"output at [1]:\nexpected shape (5, 7)\nyours    shape (7, 5){order}"
    assert shown(a, b, path=(0,)) == f"output at [0]:\nexpected shape (5, 7){words}\nyours    shape (7, 5){order}"
    assert shown([], [1]) == "expected 0 entries: []\nyours    1 entry: [1]"
    assert shown([1], [1, 2], path=(0,)) == "expected 1 entry: [1] at [0]\nyours    2 entries: [1, 2]"


def test_messages_about_nan():
    def shown(want, got, axes=("query", "key"), **options):
        return says(problem("nan", want, got, diff="nan", **options), made_key([], [], axes=axes))

    assert shown(1.5, NAN) == "expected 1.5, yours is nan" and shown(t(1.5), t(NAN)) == "expected 1.5, yours is nan"
    assert shown(None, None, where="x") == "the gradient at x is nan"
    want = t([[1.0, 2.0], [0.0, 0.0]])
    got = t([[1.0, 2.0], [NAN, NAN]])
    assert shown(want, got) == "expected all zeros in row 1 (query 1), got nan there"
    got = t([[1.0, NAN], [0.0, 0.0]])
    assert shown(want, got) == "1 of 4 numbers are nan; row 0 (query 0), column 1 (key 1): expected 2, got nan"
    blank = shown(torch.zeros(2, 2, 2), torch.full((2, 2, 2), NAN), ())
    assert blank == "expected all zeros in item 0, row 0, got nan there"
    for want, got in ((3.14159, NAN), (t(3.14159), t(NAN))):
        assert shown(want, got, path=(1,)) == "expected 3.142, yours is nan"
    second = "output at [1]: 1 of 2 numbers are nan; entry 0: expected 3, got nan"
    assert shown(t(3.0, 0.0), t(NAN, 0.0), ("query",), path=(1,)) == second
    named = Case((torch.zeros(9),), view="facts_view")
    whole = "sums: 1 of 2 numbers are nan; entry 0: expected 3, got nan"
    assert shown(t(3.0, 0.0), t(NAN, 0.0), (), path=("sums",), case=named) == whole
    blank_row = t([[[0.0, 0.0], [1.0, 1.0]]])
    assert shown(blank_row, t([[[NAN, 0.0], [1.0, 1.0]]]), ()) == ("expected all zeros in item 0, row 0, got nan there")
    assert shown(t(0.0, 0.0), t(NAN, 0.0), ()) == "1 of 2 numbers are nan; entry 0: expected 0, got nan"


def test_other_messages():
    key = made_key([], [], arguments=["Q"], time_limit=1.0)
    assert says(problem("input_changed", changed=["mask", 0])).startswith("your code changed its input mask in place;")
    assert says(problem("dtype_lost", d(1.0), t(1.0), path=(0,))) == "expected dtype float64 at [0], yours is float32"
    assert says(problem("dtype_lost", d(1.0), d(1.0))).startswith("your float64 result is only as precise as float32")
    named = problem("dtype_lost", d(1.0), t(1.0), path=("sums",), case=Case((torch.zeros(9),), view="facts_view"))
    assert says(named) == "sums: expected dtype float64, yours is float32"
    assert says(problem("detached", where="W")).startswith("no gradient reaches W: somewhere")
    for said, words in ((NOT_TRIED, "not tried, because another"), ("zzz", "no answer after 1 second; is")):
        assert says(problem("too_slow", error=Error("TooSlow", said)), key).startswith(words)
    for kind, words in (("WrongParts", "no W"), ("Zero", "your code raised Zero"), ("A", "your code raised A")):
        assert says(problem("raises", error=Error(kind, "no W"))).startswith(words)
    slow = problem("too_slow", error=Error("TooSlow"))
    assert says(slow, made_key([], [], time_limit=0.5)).startswith("no answer after 0.5 seconds; is")
    unnamed = problem("no_name", case=Case((), raises=Raises("KeyError", "pizza")), error=Error("KeyError", "m" * 130))
    assert says(unnamed) == f"the KeyError should name 'pizza'\nyours says: {'m' * 120}\nwith f()"
    assert says(problem("gradient", t(1.0, 2.0), t(1.0, 3.0), where="Q")) == (
        "the output is right, but the gradient at Q is not\n1 of 2 numbers differs, at entry 1: expected 2, yours 3"
    )
