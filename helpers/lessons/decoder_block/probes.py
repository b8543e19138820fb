"""Lesson 10. Beside learner code: the stubs and scenarios. Only on numbers: the view."""

from __future__ import annotations

import functools
import itertools
from collections import Counter

import torch
from torch import nn
from torch.nn import functional as F

from helpers.checking.behavior import (
    MOVED,
    SAME,
    gap_between,
    give_numbers,
    gradients_of,
    have_a_say,
    moves_without_gradient,
    numbers_in_blocks,
    parameter_count,
    row_of,
    serves_twice,
    shape_of,
    with_random_parameters,
)
from helpers.checking.scenarios import WrongParts, alike, scenario
from helpers.checking.stubs import stub
from helpers.checking.views import view

CALLS = 5  # of greedy_decode, on the same logits

# ---------------------------------------------------------------- beside learner code


@stub
def step_from_table(table):
    """step(prefix (1, t)) -> logits (1, V): a row of `table` (rows, V), chosen by all words of the prefix."""

    def step(prefix):
        _require_ids(prefix, "step wants the prefix as a LongTensor of shape (1, t)", 1)
        positions = torch.arange(1, prefix.shape[1] + 1)  # (t,)
        return table[row_of(prefix * positions, table)]  # (1, V)

    return step


def _require_ids(ids, wish, batch=None):
    if not isinstance(ids, torch.Tensor):
        raise TypeError(f"{wish}; it got a {type(ids).__name__}")
    fits = ids.dim() == 2 and ids.dtype == torch.int64 and batch in (None, ids.shape[0])
    if not fits:
        raise ValueError(f"{wish}; it got {ids.dtype} of shape {tuple(ids.shape)}")


@stub
def gelu():
    """The activation of BERT and GPT-2."""
    return torch.nn.functional.gelu


@scenario
def written_again_and_again(answer, args, kwargs):
    """The answer's list, where CALLS calls give the same one. WrongParts says so where one gives another: no known
    mistake can tell of words that are drawn."""
    first, *others = (answer(*args, **kwargs) for _ in range(CALLS))
    if isinstance(first, list) and any(isinstance(other, list) and first != other for other in others):
        raise WrongParts("your code writes different sentences from the same logits (is a word drawn by chance?)")
    return first, []


@scenario
def with_model_from_table(answer, args, kwargs):
    """args = (table, src, tgt, pad_id): answer(model, src, tgt, pad_id) for a causal model that reads its logits off
    `table` (rows, V): the row at place t is chosen by src and by the words of tgt up to t."""
    table, *rest = args

    def model(src, tgt):
        _require_ids(src, "the model wants src as a LongTensor of shape (B, T_s)")
        _require_ids(tgt, "the model wants the decoder's ids as a LongTensor of shape (B, T)")
        positions = torch.arange(1, tgt.shape[1] + 1)  # (T,)
        heard = (tgt * positions).cumsum(-1) + 13 * src.sum(-1, keepdim=True)  # (B, T)
        return table[row_of(heard[..., None], table)]  # (B, T, V)

    return answer(model, *rest, **kwargs), []


@scenario
def kept_logits(answer, args, kwargs):
    """answer(logits, ...) with what was cut set to 0, so that no gradient is asked for at minus infinity."""
    output = answer(*args, **kwargs)
    return torch.where(output.isfinite(), output, torch.zeros_like(output)), []


@scenario
def in_pieces(answer, args, kwargs):
    """args = (q, k, v, pieces): feed the tokens piece by piece through the cache -> all outputs, (B, H, T, d).

    With again=True each cache is continued in a second direction too, before the first one and after it, whose outputs
    come last.
    """
    q, k, v, pieces = args
    outs, others, cache = [], [], None
    for piece in zip(*(x.split(pieces, dim=-2) for x in (q, k, v)), strict=True):
        other = [x.flip(-1) + 1 for x in piece] if kwargs.get("again") else None
        if other:
            answer(*other, cache)
        out, after = answer(*piece, cache)
        if other:
            others.append(answer(*other, cache)[0])
        outs.append(out)
        cache = after
    return torch.cat([*outs, *others], dim=-2), []


@scenario
def work_of_one_more(answer, args, kwargs):
    """args = (q, k, v): feed the tokens one by one, and count the products of the call for the last one."""
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.utils.flop_counter import FlopCounterMode

    q, k, v = args
    cache = None
    # The plain form of scaled_dot_product_attention, whose products the counter knows.
    with torch.no_grad(), sdpa_kernel(SDPBackend.MATH):
        for t in range(q.shape[-2] - 1):
            _, cache = answer(*(x[..., t : t + 1, :] for x in (q, k, v)), cache)
        with FlopCounterMode(display=False) as counter:
            answer(*(x[..., -1:, :] for x in (q, k, v)), cache)
    return {"products": counter.get_total_flops() // 2}, []


@scenario
def random_transformers(answer, args, kwargs):
    """args = (init, seed, runs, layers): build the model, make all its parameters random, and make each of the runs.

    init: dict of the constructor's arguments. runs: name -> (src, tgt). Returns logits and memory of every run, the
    first run's logits by way of decode, and those from another memory; with `layers` also how many numbers one layer
    more brings, whether a number moves the logits that no gradient reaches, how many numbers the blocks hold that have
    a say in the logits, whether a norm stands in two places, whether any numbers serve both sides, the
    attention modules' head counts and the blocks' orders.
    """
    init, seed, runs, layers = args
    model = with_random_parameters(answer, init, seed)
    src, tgt = next(iter(runs.values()))
    seen = {
        "logits": {name: model(*run) for name, run in runs.items()},
        "memory": _memories(model, runs),
        "decoded": model.decode(tgt=tgt, memory=model.encode(src=src), src=src),
        "decoded from another memory": model.decode(tgt, -model.encode(src), src),
    }
    if not alike(seen["logits"][next(iter(runs))], seen["decoded"]) and not alike(model(src, tgt), model(src, tgt)):
        raise WrongParts(
            "in evaluation mode, your model gives two results for the same words, one call right after the other "
            "(a dropout that is always on?)"
        )
    if "pad_id" in init:
        seen["words that do not learn"] = _not_learning(model, seen["logits"][next(iter(runs))], init, src, tgt)
    if layers:
        deeper = answer(**init | {"num_layers": init["num_layers"] + 1})
        heads = {m.num_heads for m in model.modules() if isinstance(getattr(m, "num_heads", None), int)}
        seen["one layer more"] = parameter_count(deeper) - parameter_count(model)
        seen["in blocks"] = numbers_in_blocks(model, model(src=src, tgt=tgt), init["d_model"])
        norms = 5 * init["num_layers"]
        seen["a norm in two places"] = serves_twice(answer(**init).eval(), lambda m: m(src, tgt), norms)
        seen["heads"] = sorted(heads)
        seen["numbers on both sides"] = _serve_both_sides(model, src, tgt)
        seen["norms first"] = sum(getattr(m, "norm_first", False) is True for m in model.modules())
        seen["cannot learn"] = moves_without_gradient(model, src, tgt)
        seen["places by heart"] = _knows_places_by_heart(model, src, tgt, init)
    return seen, []


def _memories(model, runs) -> dict:
    """The memory of every run's source, made once where it is the first run's."""
    name, (src, _) = next(iter(runs.items()))
    memories = {name: model.encode(src)}
    for other, (ids, _) in runs.items():
        memories[other] = memories[name] if torch.equal(ids, src) else model.encode(ids)
    return memories


def _not_learning(model, logits, init, src, tgt) -> bool:
    """Whether a table of words that counts gets no gradient, or a row of it whose id is read and no padding."""
    vocabularies = {(init["src_vocab"], init["d_model"]): src, (init["tgt_vocab"], init["d_model"]): tgt}
    tables = [p for p in model.parameters() if tuple(p.shape) in vocabularies]
    if not logits.requires_grad:
        return True
    size = logits.detach().abs().amax().clamp(min=1.0)  # of large logits nothing would be heard behind a tanh
    gradients = gradients_of(logits / size, tables)
    read = [ids[ids != init["pad_id"]] for ids in (vocabularies[tuple(p.shape)] for p in tables)]
    if any(g is None and _counts(model, table, src, tgt) for g, table in zip(gradients, tables, strict=True)):
        return True
    return any(g is not None and not bool(g[ids].any(-1).all()) for g, ids in zip(gradients, read, strict=True))


@torch.no_grad()
def _counts(model, table, src, tgt) -> bool:
    """Whether the logits are others with other numbers in this table."""
    before, numbers = model(src, tgt), table.clone()
    table.mul_(-1.0)
    after = model(src, tgt)
    table.copy_(numbers)
    return not torch.allclose(before, after)


def _knows_places_by_heart(model, src, tgt, init) -> bool:
    """Whether places of one word again and again are told apart without any table that learns.

    All tables that a gradient reaches become 0 (and stay so) but those of the blocks and of the last layer, by their
    size.
    """
    D, last = init["d_model"], init["tgt_vocab"] * init["d_model"]
    tables = [p for p in model.parameters() if p.dim() > 1 and p.numel() % (D * D) and p.numel() != last]
    heard = have_a_say(model(src, tgt), tables)
    src, tgt = src[:, :1].expand_as(src), tgt[:, :1].expand_as(tgt)
    with torch.no_grad():
        for table in itertools.compress(tables, heard):
            table.zero_()
        sides = (memory := model.encode(src)), model.decode(tgt, memory, src)
    return any(gap_between(side, side[:, :1]) > SAME for side in sides)


def _serve_both_sides(model, src, tgt) -> bool:
    """Whether any numbers have a say in the memory, and also in the logits of a memory that is there already."""
    parameters, memory = list(model.parameters()), model.encode(src)
    sides = (memory, model.decode(tgt, memory.detach(), src))
    return any(map(all, zip(*(have_a_say(side, parameters) for side in sides), strict=True)))


@scenario
def transformer_hearing(answer, args, kwargs):
    """args = (init, seed, src, tgt, changed, other): how a Transformer with random parameters hears and what it keeps.

    The first call is the longest; then a second model with the same numbers is called with one word first.

    src (B, T_s) without padding; changed: for each source place src with another word there; other: another batch of
    src's shape, partly padding. Returns logits, by what was done.
    """
    init, seed, src, tgt, changed, other = args
    model = _seeded(answer, init, seed)
    B, T = tgt.shape
    order = torch.arange(src.shape[1]).roll(2)
    with torch.no_grad():
        memory = model.encode(src)
        push = torch.zeros_like(memory)
        push[:, 0], push[:, 1] = 1.0, -1.0
        seen = {
            "logits": model(src, tgt),
            "changed": _one_by_one(model(torch.cat(changed), tgt.repeat(len(changed), 1)), B),
            "changed memory": _one_by_one(model.encode(torch.cat(changed)), B),
            "memory": memory,
            "prefixes": [model(src, tgt[:, :t]) for t in range(1, T)],
            "another order": model.decode(tgt, memory[:, order], src[:, order]),
            "another spread": model.decode(tgt, memory + push, src),
        }
        model.encode(other)
        seen["after another encode"] = model.decode(tgt, memory, src)
        model.decode(tgt[:, :1], model.encode(other), other)
        seen["after another decode"] = model(src, tgt)
        young = _seeded(answer, init, seed)
        young(src[:, :1], tgt[:, :1])
        seen["after a shorter call"] = young(src, tgt)
    return seen, []


def _one_by_one(output, B):
    """The output of a batch that holds several batches of B sentences, in the order of these."""
    return list(output.split(B)) if isinstance(output, torch.Tensor) else output


def _seeded(answer, init, seed):
    torch.default_generator.manual_seed(seed)  # numbers that are no parameters are the same each time as well
    return with_random_parameters(answer, init, seed)


@scenario
def transformer_padded(answer, args, kwargs):
    """args = (init, seed, src, tgt, pads, other): the logits of src, its places of -1 filled with each of two padding
    ids; with the last one also of `other`, which has another last word in each row, and of the first row alone.

    The same random parameters each time, so the logits differ as far as the row of the padding id is heard.
    """
    init, seed, src, tgt, pads, other = args
    seen = []
    with torch.no_grad():
        for pad in pads:
            model = _seeded(answer, init | {"pad_id": pad}, seed)
            seen.append(model(src.masked_fill(src < 0, pad), tgt))
        changed = model(other.masked_fill(other < 0, pads[-1]), tgt)
        first = model(src[:1].masked_fill(src[:1] < 0, pads[-1]), tgt[:1])
    return {"logits": seen, "changed": changed, "first": first}, []


@scenario
def transformer_in_training(answer, args, kwargs):
    """args = (init, seed, src, tgt): the logits with random parameters, in evaluation mode and in training mode."""
    init, seed, src, tgt = args
    model = _seeded(answer, init, seed)
    return {"logits": _logits(model, src, tgt), "in training": _logits(model.train(), src, tgt)}, []


@torch.no_grad()
def _tilt_norms(model, width):
    """Scale each channel by a number of its own wherever a norm's weights are 1: behind such a norm one more shows."""
    for parameter in model.parameters():
        if parameter.shape == (width,) and bool((parameter == 1).all()):
            parameter.copy_(torch.linspace(0.5, 1.5, width))


@scenario
def transformer_loaded(answer, args, kwargs):
    """args = (init, state, src, tgt, phase): the logits with given numbers, or None where they do not fit.

    With a state these are its numbers, under the lesson's names. A last layer of the lesson's name may lack its bias,
    or be tied: then the numbers do not fit, and the logits show it. The first number of the lesson's name with another
    shape is told. With None as state all matrices of a kind get the same numbers, whatever their names, if their kinds
    are the formula's."""
    init, state, src, tgt, phase = args
    model = answer(**init).eval()
    if state is None:
        fits = give_numbers(model, init["d_model"], init["d_ff"], phase) == _kinds(**init)
        _tilt_norms(model, init["d_model"])
        return {"logits": _logits(model, src, tgt) if fits else None}, []
    own = dict(model.named_parameters(remove_duplicate=False))
    if not set(state) - set(own) <= {"unembed.bias"}:
        return {"logits": None}, []
    sizes = {name: (tuple(own[name].shape), tuple(state[name].shape)) for name in state if name in own}
    misfits = [name for name, (size, wanted) in sizes.items() if size != wanted]
    if not misfits:
        model.double().load_state_dict(state, strict=False)
        return {"logits": _logits(model, src, tgt)}, []
    if misfits[0] not in dict(model.named_parameters()):  # it is a number of another name too
        return {"logits": None}, []
    size, wanted = sizes[misfits[0]]
    return {"logits": None, "misfit": f"{misfits[0]} is {size}, not {wanted}"}, []


@torch.no_grad()
def _logits(model, src, tgt):
    return model(src, tgt)


def _kinds(src_vocab, tgt_vocab, d_model, num_heads, d_ff, num_layers, max_len):
    """The matrices of a Transformer: 4 for each of its 3 attentions a layer, 2 for each network, and its tables."""
    D, F, L = d_model, d_ff, num_layers
    layers = {(D, D): 12 * L, (F, D): 2 * L, (F,): 2 * L, (D, F): 2 * L, (tgt_vocab, D): 1}
    tables = {(src_vocab, D): 1, (tgt_vocab, D): 1, (max_len, D): 2}
    return Counter({(nn.Linear, shape): n for shape, n in layers.items()}) + Counter(
        {(nn.Embedding, shape): n for shape, n in tables.items()}
    )


# ---------------------------------------------------------------- only on numbers


@view
def work_of_a_row(args, kwargs, output):
    """Two products of T · d numbers for each head; four times as many are generous (none are seen where none are made
    by a matrix product)."""
    B, H, T, d = args[0].shape
    return {"one more token costs about one row of products": output["products"] <= 4 * 2 * B * H * T * d}


@view
def transformer_behavior(args, kwargs, output):
    """What the logits of several runs say of a Transformer. Names of runs: COMPARISONS, and "alone b" (sentence b
    without its padding)."""
    init, _, runs, layers = args
    if not isinstance(output, dict):
        raise ValueError("expected a model's logits")
    logits, memory, (first, (src, tgt)) = output["logits"], output["memory"], next(iter(runs.items()))
    B, T_t, T_s, D, V = *tgt.shape, src.shape[1], init["d_model"], init["tgt_vocab"]
    right = {FORWARD: (B, T_t, V), ENCODE: (B, T_s, D), DECODE: (B, T_t, V)}
    found = {FORWARD: _kind(logits[first]), ENCODE: _kind(memory[first]), DECODE: _kind(output["decoded"])}
    fits = all(found[words] == f"a tensor of shape {shape}" for words, shape in right.items())
    if alone := [name for name in runs if name.startswith("alone ")]:
        found["a single sentence has logits and a memory of 3 axes too"] = all(
            shape_of(logits[name]) == (1, T_t, V) and len(shape_of(memory[name]) or ()) == 3 for name in alone
        )
        fits = fits and found["a single sentence has logits and a memory of 3 axes too"]
    fits = fits and all(shape_of(x) == (*runs[name][1].shape, V) for name, x in logits.items())
    fits = fits and all(shape_of(x) == (*runs[name][0].shape, D) for name, x in memory.items())
    if not fits:  # nothing can be compared, so that nothing holds
        nothing = dict.fromkeys(_promises(runs, layers, init), False)
        unknown = dict.fromkeys(("one layer more brings", WHOLE), "what cannot be told")
        return found | nothing | (unknown if layers else {})
    base = logits[first]
    found["logits are finite"] = all(bool(x.isfinite().all()) for x in logits.values())
    found["logits are no probabilities"] = not (
        bool((base >= 0).all()) and gap_between(base.sum(-1), torch.ones(B, T_t)) <= SAME
    )
    found["forward is decode of encode"] = gap_between(output["decoded"], base) <= SAME
    found["decode reads the memory that it is given"] = (
        gap_between(output["decoded from another memory"], base) >= MOVED
    )
    for name, words, rows, moves in COMPARISONS:
        if name in logits:
            gap = gap_between(logits[name][:, rows], base[:, rows])
            found[words] = gap >= MOVED if moves else gap <= SAME
    if (other := "another last source word") in memory:
        heard = gap_between(memory[other][:, 0], memory[first][:, 0]) >= MOVED
        found[HEARD] = heard
    for name in alone:
        b, T = int(name.removeprefix("alone ")), runs[name][0].shape[1]
        found[f"sentence {b}: the memory is the same without padding"] = (
            gap_between(memory[first][b, :T], memory[name][0]) <= SAME
        )
        found[f"sentence {b}: the logits are the same without padding"] = gap_between(base[b], logits[name][0]) <= SAME
    if "words that do not learn" in output:
        found[LEARNS] = not output["words that do not learn"]
    return found | (_layers(init, output) if layers else {})


@view
def transformer_hears(args, kwargs, output):
    """What the logits of `transformer_hearing` say, in sentences."""
    _, _, src, tgt, changed, _ = args
    base, T = output["logits"], tgt.shape[1]
    heard = [gap_of_rows(logits, base) for logits in output["changed"]]  # (B, T_t) for each source place
    heard_inside = [gap_of_rows(memory, output["memory"]) for memory in output["changed memory"]]
    prefixes = [gap_between(short, base[:, : short.shape[1]]) <= SAME for short in output["prefixes"]]
    return {
        "every target place hears every source place": all(bool((gaps >= MOVED).all()) for gaps in heard),
        "every place of the memory hears every source place": all(bool((gaps >= MOVED).all()) for gaps in heard_inside),
        "words that are added at the end change nothing that was said before": all(prefixes),
        "the order in which the memory lies does not count": gap_between(output["another order"], base) <= SAME,
        "more is heard of the memory than its mean": gap_between(output["another spread"], base) >= MOVED,
        "decode is not disturbed by another encode": gap_between(output["after another encode"], base) <= SAME,
        "a call is not disturbed by the one before": gap_between(output["after another decode"], base) <= SAME,
        "a call is not disturbed by a shorter one before": gap_between(output["after a shorter call"], base) <= SAME,
        "no logit is cut off at 0": not bool((base == 0).any()),
        "logits are no log-probabilities": gap_between(base.logsumexp(-1), torch.zeros(len(base), T)) > SAME,
    }


@view
def transformer_without_padding(args, kwargs, output):
    one, other = output["logits"]
    words = (args[2] >= 0).any(dim=-1)  # (B,), False for a sentence of padding alone
    return {
        "padding is not heard, wherever it stands": gap_between(one[words], other[words]) <= SAME
        and gap_between(output["first"], other[:1]) <= SAME,
        "a sentence of padding alone is not heard": gap_between(one[~words], other[~words]) <= SAME,
        "words behind padding are heard": bool((gap_of_rows(output["changed"], other)[words] >= MOVED).all()),
    }


@view
def transformer_alike(args, kwargs, output):
    return {"the logits are the same in training mode": gap_between(output["in training"], output["logits"]) <= SAME}


@view
def transformer_by_its_numbers(args, kwargs, output):
    """The logits with given numbers: the machine's, where nothing could be given, and without the lesson's names also
    where they are the machine's up to what the paper leaves open: the activation, and words multiplied by √D."""
    init, state, src, tgt, phase = args
    logits, machine = output["logits"], _machine(init)
    if state is not None:
        if logits is None:
            machine.double().load_state_dict(state)
            logits = _logits(machine, src, tgt)
        return {
            "under the lesson's names": output.get("misfit", "all numbers fit"),
            "the logits with given numbers": logits,
        }
    D, wanted = init["d_model"], None
    give_numbers(machine, D, init["d_ff"], phase)
    _tilt_norms(machine, D)
    for words in (1.0, D**0.5):
        for table in (machine.encoder.tokens, machine.tokens):
            table.weight.data.mul_(words)
        for other in _with_activations(machine, src, tgt):
            wanted = other if wanted is None else wanted  # relu, and words as they are
            if logits is None or _fits(logits, other):
                return {"the logits with given numbers": wanted}
    return {"the logits with given numbers": logits}


def _machine(init):
    from helpers.translator.network import Transformer

    return Transformer(**init).eval()


def _with_activations(machine, src, tgt):
    """The machine's logits with each activation that is in use."""
    for activation in (F.relu, F.gelu, F.silu, functools.partial(F.gelu, approximate="tanh")):
        for part in machine.modules():
            if hasattr(part, "activation"):
                part.activation = activation
        yield _logits(machine, src, tgt)


def _fits(logits, expected) -> bool:
    return shape_of(logits) == shape_of(expected) and gap_between(logits, expected) <= NEAR


NEAR = 1e-3  # of logits: the eps of a norm may be that much


FORWARD, ENCODE, DECODE = (f"{method} gives" for method in ("forward", "encode", "decode"))


def _kind(x) -> str:
    return f"a tensor of shape {tuple(x.shape)}" if isinstance(x, torch.Tensor) else f"a {type(x).__name__}"


def _promises(runs, layers, init) -> list[str]:
    """What is said of these runs besides the shapes."""
    names = ["logits are finite", "logits are no probabilities", "forward is decode of encode"]
    names += ["decode reads the memory that it is given"]
    names += [words for name, words, *_ in COMPARISONS if name in runs]
    names += [HEARD] if "another last source word" in runs else []
    names += [LEARNS] if "pad_id" in init else []
    for b in (name.removeprefix("alone ") for name in runs if name.startswith("alone ")):
        names += [f"sentence {b}: the {what} without padding" for what in ("memory is the same", "logits are the same")]
    by_layers = ["one layer more brings", WHOLE, "whatever has a say in the logits can learn", "num_heads is kept"]
    by_layers += [
        "each norm stands in one place",
        "places are told apart by numbers that learn",
        "each side has numbers of its own",
        "the blocks are in the paper's order",
    ]
    return names + (by_layers if layers else [])


def gap_of_rows(a, b):
    """The largest difference in each row: (..., N) -> (...)."""
    return (a.detach().double() - b.detach().double()).abs().amax(dim=-1)


WHOLE = "the whole blocks that gradients reach are"
LEARNS = "every word that is read, padding aside, can learn"
HEARD = "the memory of the first source word hears the last one"
# run, what is then said, target rows that are compared with the first run's, whether they have to move
COMPARISONS = (
    ("another first source word", "the first source word is heard", slice(0, None), True),
    ("another last source word", "the last source word is heard", slice(0, None), True),
    ("source words exchanged", "the order of the source counts", slice(0, None), True),
    ("target words exchanged", "the order of the target counts", slice(-1, None), True),
    ("another last target word", "no target word hears the last before its turn", slice(0, -1), False),
    ("other later target words", "the first target word hears no later one", slice(0, 1), False),
    ("other words from the third on", "the first target word hears none from the third on", slice(0, 1), False),
    ("another first target word", "the first target word is heard", slice(0, None), True),
    ("another last target word", "the last target word hears itself", slice(-1, None), True),
)


def _layers(init, output):
    """A block of the encoder costs 4 D² + 2 D F numbers, one of the decoder 8 D² + 2 D F, and both some vectors."""
    D, F, more = init["d_model"], init["d_ff"], output["one layer more"]
    sides = {"nothing": 0, "an encoder block": 4 * D * D + 2 * D * F, "a decoder block": 8 * D * D + 2 * D * F}
    sides["a block on each side"] = sides["an encoder block"] + sides["a decoder block"]
    reached, wanted = output["in blocks"], init["num_layers"] * sides["a block on each side"]
    brings = [name for name, least in sides.items() if least <= more <= least + 40 * D + 4 * F * (least > 0)]
    size = "more" if more > sides["a block on each side"] else "fewer"
    brings = brings or [f"{size} numbers than blocks with this d_model and d_ff have"]
    return {
        "one layer more brings": brings[-1],
        WHOLE: "num_layers on each side" if reached == wanted else "fewer" if reached < wanted else "more",
        "whatever has a say in the logits can learn": not (output["cannot learn"] or output["places by heart"]),
        "places are told apart by numbers that learn": not output["places by heart"],
        "each norm stands in one place": not output["a norm in two places"],
        "num_heads is kept": output["heads"] in ([], [init["num_heads"]]),
        "each side has numbers of its own": not output["numbers on both sides"],
        "the blocks are in the paper's order": output["norms first"] == 0,
    }
