"""Lesson 10. Beside learner code: the stubs and scenarios. Only on numbers: the view."""

from __future__ import annotations

import torch

from helpers.checking.behavior import (
    MOVED,
    SAME,
    gap_between,
    parameter_count,
    row_of,
    shape_of,
    with_random_parameters,
)
from helpers.checking.scenarios import scenario
from helpers.checking.stubs import stub
from helpers.checking.views import view

# ---------------------------------------------------------------- beside learner code


@stub
def step_from_table(table):
    """step(prefix (1, t)) -> logits (1, V): a row of `table` (rows, V), chosen by all words of the prefix."""

    def step(prefix):
        _require_ids(prefix, "step wants the prefix as a LongTensor of shape (1, t)", 1)
        places = torch.arange(1, prefix.shape[1] + 1)  # (t,)
        return table[row_of(prefix * places, table)]  # (1, V)

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
def with_model_from_table(answer, args, kwargs):
    """args = (table, src, tgt, pad_id): answer(model, src, tgt, pad_id) for a causal model that reads its logits off
    `table` (rows, V): the row at place t is chosen by src and by the words of tgt up to t."""
    table, *rest = args

    def model(src, tgt):
        _require_ids(src, "the model wants src as a LongTensor of shape (B, T_s)")
        _require_ids(tgt, "the model wants the decoder's ids as a LongTensor of shape (B, T)")
        places = torch.arange(1, tgt.shape[1] + 1)  # (T,)
        heard = (tgt * places).cumsum(-1) + 13 * src.sum(-1, keepdim=True)  # (B, T)
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

    With again=True the last piece is fed twice into the same cache, the first time with other tokens.
    """
    q, k, v, pieces = args
    outs, cache = [], None
    for number, piece in enumerate(zip(*(x.split(pieces, dim=-2) for x in (q, k, v)), strict=True)):
        if kwargs.get("again") and number == len(pieces) - 1:
            answer(*(x.flip(-1) + 1 for x in piece), cache)
        out, cache = answer(*piece, cache)
        outs.append(out)
    return torch.cat(outs, dim=-2), []


@scenario
def random_transformers(answer, args, kwargs):
    """args = (init, seed, runs, layers): build the model, make all its parameters random, and make each of the runs.

    init: dict of the constructor's arguments. runs: name -> (src, tgt). Returns logits and memory of every run, the
    first run's logits by way of decode, and those from another memory; with `layers` also how many numbers one layer
    more brings, how many of the large parameters have no say in the logits, and the attention modules' head counts.
    """
    init, seed, runs, layers = args
    model = with_random_parameters(answer, init, seed)
    src, tgt = next(iter(runs.values()))
    seen = {
        "logits": {name: model(*run) for name, run in runs.items()},
        "memory": {name: model.encode(run[0]) for name, run in runs.items()},
        "decoded": model.decode(tgt=tgt, memory=model.encode(src=src), src=src),
        "decoded from another memory": model.decode(tgt, -model.encode(src), src),
    }
    if layers:
        deeper = answer(**init | {"num_layers": init["num_layers"] + 1})
        large = [p for p in model.parameters() if p.dim() > 1]
        gradients = torch.autograd.grad(model(src=src, tgt=tgt).tanh().square().sum(), large, allow_unused=True)
        heads = {m.num_heads for m in model.modules() if isinstance(getattr(m, "num_heads", None), int)}
        seen["one layer more"] = parameter_count(deeper) - parameter_count(model)
        seen["without a say"] = sum(g is None or not bool(g.any()) for g in gradients)
        seen["heads"] = sorted(heads)
    return seen, []


# ---------------------------------------------------------------- only on numbers


@view
def transformer_behavior(args, kwargs, output):
    """What the logits of several runs say of a Transformer. Names of runs: COMPARISONS, and "alone b" (sentence b
    without its padding)."""
    init, _, runs, layers = args
    if not isinstance(output, dict):
        raise ValueError("expected a model's logits")
    logits, memory, (first, (src, tgt)) = output["logits"], output["memory"], next(iter(runs.items()))
    B, T_t, T_s, D, V = *tgt.shape, src.shape[1], init["d_model"], init["tgt_vocab"]
    found = {
        f"forward gives logits of shape {(B, T_t, V)}": shape_of(logits[first]) == (B, T_t, V),
        f"encode gives a memory of shape {(B, T_s, D)}": shape_of(memory[first]) == (B, T_s, D),
        f"decode gives logits of shape {(B, T_t, V)}": shape_of(output["decoded"]) == (B, T_t, V),
    }
    fits = all(shape_of(x) == (*runs[name][1].shape, V) for name, x in logits.items())
    fits = fits and all(shape_of(x) == (*runs[name][0].shape, D) for name, x in memory.items())
    if not fits or not all(found.values()):  # nothing can be compared, so that nothing holds
        return found | dict.fromkeys(_promises(runs, layers), False)
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
    for name in (name for name in runs if name.startswith("alone ")):
        b, T = int(name.removeprefix("alone ")), runs[name][0].shape[1]
        found[f"sentence {b}: the memory is the same without padding"] = (
            gap_between(memory[first][b, :T], memory[name][0]) <= SAME
        )
        found[f"sentence {b}: the logits are the same without padding"] = gap_between(base[b], logits[name][0]) <= SAME
    return found | (_layers(init, output) if layers else {})


def _promises(runs, layers) -> list[str]:
    """What is said of these runs besides the shapes."""
    names = ["logits are finite", "logits are no probabilities", "forward is decode of encode"]
    names += ["decode reads the memory that it is given"]
    names += [words for name, words, *_ in COMPARISONS if name in runs]
    names += [HEARD] if "another last source word" in runs else []
    for b in (name.removeprefix("alone ") for name in runs if name.startswith("alone ")):
        names += [f"sentence {b}: the {what} without padding" for what in ("memory is the same", "logits are the same")]
    by_layers = ["one layer more brings", "every large parameter has a say in the logits", "num_heads is kept"]
    return names + (by_layers if layers else [])


HEARD = "the memory of the first source word hears the last one"
# run, what is then said, target rows that are compared with the first run's, whether they have to move
COMPARISONS = (
    ("another first source word", "the first source word is heard", slice(0, None), True),
    ("another last source word", "the last source word is heard", slice(0, None), True),
    ("source words exchanged", "the order of the source counts", slice(0, None), True),
    ("target words exchanged", "the order of the target counts", slice(-1, None), True),
    ("another last target word", "no target word hears the last before its turn", slice(0, -1), False),
    ("other later target words", "the first target word hears no later one", slice(0, 1), False),
    ("other words from the third on", "the first target word hears no third one", slice(0, 1), False),
    ("another first target word", "the first target word is heard", slice(0, None), True),
    ("another last target word", "the last target word hears itself", slice(-1, None), True),
)


def _layers(init, output):
    """A block of the encoder costs 4 D² + 2 D F numbers, one of the decoder 8 D² + 2 D F, and both some vectors."""
    D, F, more = init["d_model"], init["d_ff"], output["one layer more"]
    sides = {"nothing": 0, "an encoder block": 4 * D * D + 2 * D * F, "a decoder block": 8 * D * D + 2 * D * F}
    sides["a block on each side"] = sides["an encoder block"] + sides["a decoder block"]
    brings = [name for name, least in sides.items() if least <= more <= least + 40 * D + 4 * F * (least > 0)]
    return {
        "one layer more brings": brings[-1] if brings else "something else",
        "every large parameter has a say in the logits": output["without a say"] == 0,
        "num_heads is kept": output["heads"] in ([], [init["num_heads"]]),
    }
