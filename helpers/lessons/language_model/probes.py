"""Lesson 12. Beside learner code: the scenarios. Only on numbers: the views and the metric."""

from __future__ import annotations

import functools
import math
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
    moves_without_gradient,
    numbers_in_blocks,
    numbers_of,
    row_of,
    serves_twice,
    shape_of,
    square_numbers,
    with_random_parameters,
)
from helpers.checking.metrics import Score, metric
from helpers.checking.scenarios import WrongParts, scenario
from helpers.checking.views import view

# ---------------------------------------------------------------- beside learner code

SHIFT = 2.0  # added to each number of an embedding: no layer norm hears it, and a sum carries it on
MANY = 50  # possible windows for each that is drawn: two batches are then never the same
LARGE = 30.0  # times each matrix: scores are then in the thousands, as far apart as no mask but -inf or nearly so is
FAR = 20  # places behind which a bias that fades with distance leaves nothing
ROWS = 200  # of a batch, from which on it is counted where they begin
SPREAD = 7.0  # standard deviations that a count may be off: fair dice go further less often than once in 10⁹ batches
FEW = 50  # rows that are written twice in a row: enough never to come out the same
HUGE = 1e8  # times an embedding: what blocks with a norm in front add to it is then lost in float32


@scenario
def drawn_batches(answer, args, kwargs):
    """args = (data, block_size, batch_size, seed): one batch. Where few windows are drawn of many, one more from the
    same seed, one from another seed, and the first generator's next one too."""
    data, block_size, batch_size, seed = args
    made = {}
    first, again, other = (torch.Generator().manual_seed(start) for start in (seed, seed, seed + 1))
    drawn = [("batch", first), ("same seed", again), ("another seed", other), ("next", first)]
    for name, generator in drawn if len(data) - block_size >= MANY * batch_size else drawn[:1]:
        torch.manual_seed(len(made))  # whoever draws without the generator draws differently each time
        batch = answer(data, block_size, batch_size, generator)
        two = isinstance(batch, (tuple, list)) and len(batch) == 2
        made[name] = dict(zip("xy", batch if two else (None, None), strict=True))
    return made, []


@scenario
def random_gpts(answer, args, kwargs):
    """args = (init, seed, runs, layers): build the model, make all its parameters random, and make each of the runs.

    init: dict of the constructor's arguments. runs: name -> ids. With `layers` also how many numbers the blocks hold
    that have a say in the logits, and how many one layer more brings, whether a norm stands in two places, the logits
    when the ids are asked once more, those of a model that was asked something else before, whether a parameter that
    no gradient reaches moves the logits, what each layer norm reads and what comes out when SHIFT is added to all
    embeddings, and what comes out once these are huge, for the ids and for others with the same last ones. And for
    other later tokens the logits in training mode, with the same throws of the dice, and those with large numbers.
    """
    init, seed, runs, layers = args
    model = with_random_parameters(answer, init, seed)
    ids = next(iter(runs.values()))
    if ids.shape[1] > FAR:
        _slopes_bounded(model, init["num_heads"], ids.shape[1])
    logits = {name: _logits(model, ids) for name, ids in runs.items()}
    seen = {"logits": logits, "block_size": getattr(model, "block_size", None)}
    if layers:
        others, later = runs["other earlier tokens"], runs["another last token"]
        seen["once more"] = model(ids)
        deeper = with_random_parameters(answer, init | {"num_layers": init["num_layers"] + 1}, seed)
        heads = {m.num_heads for m in model.modules() if isinstance(getattr(m, "num_heads", None), int)}
        widths = init["d_model"], init["d_model"] // init["num_heads"]
        seen["gradient"] = logits["ids"].requires_grad
        seen["in blocks"], more = (numbers_in_blocks(m, m(ids), *widths) for m in (model, deeper))
        seen["one layer more"] = seen["with wide ones"] = more - seen["in blocks"]
        if seen["one layer more"] < 12 * init["d_model"] ** 2:  # or are its matrices wider than a block's?
            less, more = (numbers_in_blocks(m, m(ids), *widths, most=math.inf) for m in (model, deeper))
            seen["with wide ones"] = more - less
        norms = 2 * init["num_layers"] + 1
        seen["a norm in two places"] = serves_twice(answer(*init.values()).eval(), lambda m: m(ids), norms)
        again = with_random_parameters(answer, init, seed)
        again(others[:, :1])  # one token first: what is kept of a short text does not do for a longer one
        again(others)
        seen["asked again"] = again(ids)
        seen["cannot learn"] = moves_without_gradient(model, ids)
        seen["heads"] = sorted(heads)
        seen["norms"], _ = _read_by_norms(model, ids)
        tables = _word_tables(model, init, ids[:1, :1])
        _change(tables, lambda weight: weight.add_(SHIFT))
        seen["norms shifted"], seen["shifted"] = _read_by_norms(model, ids)
        _change(tables, lambda weight: weight.sub_(SHIFT))
        _change(tables, lambda weight: weight.mul_(HUGE))
        seen["huge"] = [model(ids)[:, -1], model(others if tables else ids)[:, -1]]
        again = with_random_parameters(answer, init, seed)
        seen["in training"] = [_in_training(again, given) for given in (ids, later)]
        with torch.no_grad():
            for parameter in again.parameters():
                parameter.mul_(LARGE if parameter.dim() > 1 else 1.0)
            seen["large"] = [again(given) for given in (ids, later)]
    return seen, []


def _in_training(model, ids):
    """The logits in training mode, and the same dice each time: a dropout then leaves out the same numbers."""
    torch.default_generator.manual_seed(0)
    try:
        return model.train()(ids)
    finally:
        model.eval()


@torch.no_grad()
def _slopes_bounded(model, num_heads, T) -> None:
    """Numbers of which each head has one, such as a slope by which scores fall with distance, so small that the first
    of T tokens is still heard."""
    for parameter in model.parameters():
        if parameter.numel() == num_heads:
            parameter.div_(T)


@scenario
def gpt_with_numbers(answer, args, kwargs):
    """args = (init, phase, ids): what the first norm reads and the logits, of first tokens alone and of texts, with the
    same numbers in all matrices of a kind and without positions, if these are a table; what the first norm reads with
    that table, and whether the attention tells the order without it. "form": whether the matrices of queries, keys and
    values stand "apart", are "fused" into one, or cut "by heads"; "bias": whether the feed-forward networks have one.
    None where the matrices are not a GPT's or the norms no modules, and of texts where a place hears later tokens."""
    init, phase, ids = args
    model = answer(*init.values()).eval()
    V, D, L = init["vocab_size"], init["d_model"], init["num_layers"]
    found = give_numbers(model, D, 4 * D, phase)
    places, bias = found.pop((nn.Embedding, (init["block_size"], D)), 0), found.pop((nn.Linear, (4 * D,)), 0)
    rest = {(D, D): L, (4 * D, D): L, (D, 4 * D): L, (V, D): 1}
    rest = Counter({(nn.Linear, shape): n for shape, n in rest.items()}) + Counter({(nn.Embedding, (V, D)): 1})
    forms = {"apart": (3 * L, D), "fused": (L, 3 * D), "by heads": (3 * L * init["num_heads"], D // init["num_heads"])}
    words = {id(part.weight) for part in model.modules() if isinstance(part, nn.Embedding)}
    tied = any(isinstance(part, nn.Linear) and id(part.weight) in words for part in model.modules())
    found -= Counter(shared=int(tied))  # who has one table for both gives it the numbers of both
    form = next((k for k, (n, rows) in forms.items() if found == rest + Counter({(nn.Linear, (rows, D)): n})), None)
    if form is None or places > 1 or bias not in (0, L):
        return {"alone": None, "text": None}, []
    if form != "apart":
        _give_equal_rows(model, forms[form][1], D, phase)
    read = _read_first(model, ids)
    _clear_tables(model, init)
    text = _read_first(model, ids)
    if text is not None and not _early_alike(text["logits"], model(_with_other_ends(ids, init))):
        text = None  # who hears later tokens is told so elsewhere
    if text is not None:
        text |= {"with positions": read["x"], "attention knows order": _attention_knows_order(model, ids)}
    alone = _read_first(model, ids[:, :1])
    return {"alone": alone, "text": text, "form": form, "bias": bias > 0}, []


@torch.no_grad()
def _give_equal_rows(model, rows: int, width: int, phase) -> None:
    """Matrices (rows, width) get the same row again and again, so that it does not matter how they are cut."""
    for parameter in model.parameters():
        if tuple(parameter.shape[-2:]) == (rows, width):
            parameter.copy_(numbers_of((width,), phase).expand(parameter.shape))


def _with_other_ends(ids, init):
    return torch.cat([ids[:, :-1], (ids[:, -1:] + 1) % init["vocab_size"]], dim=1)


@torch.no_grad()
def _clear_tables(model, init) -> None:
    for parameter in model.parameters():
        if tuple(parameter.shape[-2:]) == (init["block_size"], init["d_model"]):
            parameter.zero_()


@scenario
def gpt_sublayers(answer, args, kwargs):
    """args = (init, seed, y, z): what the norms of a GPT of one block read, with one head and with two, while they hand
    on given vectors.

    y and z (N, T, D) are handed on by the first norm and by the second one. Of each run: what each norm reads, in the
    order of calls, which norm it is, and the logits. "flipped": the places of z in the other order; "other y": its rows
    in the other order; "other word", "other last word": the first or the last word of each text is another one;
    "once more": nothing is; "alone": the last two rows of y, their first places only; "nothing": all parameters are 0
    but the tables of words; where one norm alone is asked also "shifted": SHIFT is added to each number of a word.
    Learned tables of places are cleared. "batch norms": whether there are any.
    """
    init, seed, y, z = args
    seen = {}
    for heads in (1, 2):
        sizes = init | {"num_heads": heads, "num_layers": 1}
        model = with_random_parameters(answer, sizes, seed)
        _clear_tables(model, sizes)
        ids = torch.arange(y[..., 0].numel()).reshape(y.shape[:2]) % init["vocab_size"]
        first = torch.cat([(ids[:, :1] + 1) % init["vocab_size"], ids[:, 1:]], dim=1)
        runs = {"plain": (ids, y, z), "flipped": (ids, y, z.flip(1)), "other y": (ids, y.flip(0), z)}
        last = torch.cat([ids[:, :-1], (ids[:, -1:] + 1) % init["vocab_size"]], dim=1)
        runs |= {"other word": (first, y, z), "alone": (ids[-2:, :1], y[-2:, :1], z[-2:, :1])}
        runs |= {"other last word": (last, y, z), "once more": (ids, y, z)}
        seen[heads] = {name: _through_norms(model, *given) for name, given in runs.items()}
        if len(seen[heads]["plain"]["read"]) == 1:
            _change(_word_tables(model, sizes, ids[:1, :1]), lambda weight: weight.add_(SHIFT))
            seen[heads]["shifted"] = _through_norms(model, ids, y, z)
        with torch.no_grad():
            for parameter in model.parameters():
                if init["vocab_size"] not in parameter.shape:
                    parameter.zero_()
        seen[heads]["nothing"] = _through_norms(model, ids, y, z)
    batch_norms = any(isinstance(part, nn.modules.batchnorm._BatchNorm) for part in model.modules())
    return {"one head": seen[1], "two heads": seen[2], "batch norms": batch_norms}, []


@torch.no_grad()
def _through_norms(model, ids, y, z):
    """What the norms of a model read, where the first one that is asked hands on y, the second z, and so on, which norm
    each is, and the logits. A norm that reads the same once more hands on the same. Nothing where norms are no modules.
    """
    read, owners = [], []

    def hand_on(norm, given, named, made):
        x = given[0] if given else named["input"]
        if x.shape != y.shape:
            return made
        known = (i for i, one in enumerate(read) if owners[i] == id(norm) and torch.equal(_numbers(x), _numbers(one)))
        number = next(known, len(read))
        if number == len(read):
            read.append(x.clone())
            owners.append(id(norm))
        return (y, z)[number % 2]

    norms = [part for part in model.modules() if isinstance(part, nn.LayerNorm)]
    hooks = [norm.register_forward_hook(hand_on, with_kwargs=True) for norm in norms]
    try:
        logits = _logits(model, ids)
    finally:
        for hook in hooks:
            hook.remove()
    return {"read": read, "norms": [owners.index(owner) for owner in owners], "logits": logits}


def _logits(model, ids):
    """What a model answers; WrongParts where that is no tensor."""
    logits = model(ids)
    if isinstance(logits, torch.Tensor):
        return logits
    kind = type(logits).__name__
    raise WrongParts(f"your forward returned a {kind}, and a tensor of logits alone is asked for")


def _numbers(x):
    """x without nan, which does not equal itself."""
    return x.nan_to_num(37.0)


def _attention_knows_order(model, ids) -> bool:
    """Whether the first attention of a causal model without tables tells the order of the first two tokens."""
    behind = []
    for texts in (ids, torch.cat([ids[:, :2].flip(1), ids[:, 2:]], dim=1)):
        first, *others = _read_by_norms(model, texts)[0] or [None]
        behind.append(
            next((x[:, 2:] for x in others if x.shape == first.shape and gap_between(x, first) > MOVED), None)
        )
    return None not in behind and gap_between(*behind) > MOVED


def _read_first(model, ids):
    read, logits = _read_by_norms(model, ids)
    return {"x": read[0], "logits": logits} if read else None


def _word_tables(model, init, token) -> list:
    """The table that words come in by: an nn.Embedding of V rows, else a parameter of which one token (1, 1) reads one
    row (or column), else all tables, as places may come in anywhere; none where no table is known."""
    V, D = init["vocab_size"], init["d_model"]
    tables = [part.weight for part in model.modules() if isinstance(part, nn.Embedding)]
    fits = [p for p in model.parameters() if sorted(p.shape) == sorted((V, D))]
    rows = [g if g is None or g.shape[0] == V else g.T for g in gradients_of(model(token), fits)]
    read = [p for p, g in zip(fits, rows, strict=True) if g is not None and int(g.any(-1).sum()) == 1]
    return [weight for weight in tables if weight.shape == (V, D)] or read or tables


@torch.no_grad()
def _change(tables, change) -> None:
    for weight in tables:
        change(weight)


@torch.no_grad()
def _read_by_norms(model, ids):
    """What every nn.LayerNorm of a model is given, in the order of calls, and the logits."""
    seen, norms = [], [part for part in model.modules() if isinstance(part, torch.nn.LayerNorm)]

    def keep(_norm, given, named):
        seen.append((given[0] if given else named["input"]).detach().clone())

    hooks = [norm.register_forward_pre_hook(keep, with_kwargs=True) for norm in norms]
    try:
        return seen, model(ids)
    finally:
        for hook in hooks:
            hook.remove()


class _TableModel(nn.Module):
    """ids (B, T) -> logits (B, T, V), T <= block_size: rows of a table, each chosen by the ids up to its place."""

    def __init__(self, table, block_size: int):
        super().__init__()
        self.table, self.block_size = table, block_size

    def forward(self, ids):
        fits = isinstance(ids, torch.Tensor) and ids.dim() == 2 and ids.dtype == torch.int64
        if not fits:
            raise ValueError("the model wants ids as a LongTensor of shape (B, T)")
        if not 1 <= ids.shape[1] <= self.block_size:
            raise ValueError(f"the model reads 1 to {self.block_size} ids (its block_size); it got {ids.shape[1]}")
        positions = torch.arange(1, ids.shape[1] + 1)  # (T,)
        heard = (ids * positions).cumsum(-1)  # (B, T)
        return self.table[row_of(heard[..., None], self.table)]  # (B, T, V)


@scenario
def with_table_model(answer, args, kwargs):
    """args = (table, block_size, ids, max_new_tokens): what the answer writes with a causal model that reads its
    logits off a table; the options of the answer in kwargs, `seed` for its generator."""
    table, block_size, ids, more = args
    options = {name: value for name, value in kwargs.items() if name != "seed"}
    if "seed" in kwargs:
        options["generator"] = torch.Generator().manual_seed(kwargs["seed"])
    return answer(_TableModel(table, block_size), ids, more, **options), []


@scenario
def without_gradient(answer, args, kwargs):
    """args = (ids,): the answer's logits, after it was asked for the last of the passages alone: what is kept of a call
    does no good in the next. WrongParts where a gradient of theirs is still kept."""
    (ids,) = args
    answer(ids[-1:].clone())
    logits = answer(ids)
    if isinstance(logits, torch.Tensor) and logits.requires_grad:
        raise WrongParts("the logits still hold on to a gradient, and are asked for without: nobody learns from them")
    return logits, []


@scenario
def drawn_texts(answer, args, kwargs):
    """As with_table_model, three times: from a seed, from the same one and from another one; where there are no options
    once more without a generator. And a few rows twice in a row: from the first generator, and without one."""
    table, block_size, ids, more = args
    options = {name: value for name, value in kwargs.items() if name != "seed"}
    seed = kwargs["seed"]

    def write(ids, **named):
        return answer(_TableModel(table, block_size), ids, more, **named, **options)

    first, again, other = (torch.Generator().manual_seed(start) for start in (seed, seed, seed + 1))
    made = {}
    for name, generator in (("text", first), ("same seed", again), ("another seed", other)):
        torch.manual_seed(len(made))
        made[name] = write(ids, generator=generator)
    made["in a row"] = [write(ids[:FEW], generator=first) for _ in range(2)]
    if not options:
        torch.manual_seed(seed)
        made["no generator"] = write(ids)
        made["in a row without"] = [write(ids[:FEW]) for _ in range(2)]
    return made, []


# ---------------------------------------------------------------- only on numbers


@view
def a_python_float(args, kwargs, output):
    """A number and whether it is a float: elsewhere an int is taken for one."""
    return {"a float comes back": isinstance(output, float), "the number of bits": output}


@view
def batch_behavior(args, kwargs, output):
    """What three batches say of get_batch. The data are different numbers, so that a window tells where it is from."""
    data, block_size, batch_size, _ = args
    batch, index = output["batch"], {int(value): i for i, value in enumerate(data)}
    x, y = batch["x"], batch["y"]
    shape = (batch_size, block_size)
    wanted = f"LongTensors of shape {shape}"
    found = {"x and y are": _kinds(x, y)}
    if found["x and y are"] != wanted:
        return found
    rows = [[index.get(value, -1) for value in row] for row in x.tolist()]
    starts = [row[0] for row in rows]
    found["every row of x is a window of the text"] = all(
        row == list(range(row[0], row[0] + block_size)) and row[0] >= 0 for row in rows
    )
    found["y is"] = _answers(rows, [[index.get(value, -1) for value in row] for row in y.tolist()], len(data))
    possible = len(data) - block_size
    if batch_size >= 40 * possible:
        found["the first place is a start"] = 0 in starts
        found["the last place that leaves room is a start"] = possible - 1 in starts
        found["a place in the middle is a start"] = 1 in starts
        each = batch_size / possible
        far = SPREAD * (each * (1 - 1 / possible)) ** 0.5
        counts = [starts.count(start) for start in range(possible)]
        alike, leaning = max(abs(n - each) for n in counts) <= far, counts[0] - counts[-1]
        odd = "the first more often than the last" if leaning > far and min(counts) else "some more often than others"
        found["how often starts are drawn:"] = "about equally often" if alike else odd
    elif possible >= MANY * batch_size:
        found["rows begin at different places"] = len(set(starts)) > batch_size / 2
        steps = {b - a for a, b in zip(starts, starts[1:], strict=False)}
        found["each row is drawn by itself"] = len(steps) > 1 or batch_size < 5
        found["the generator alone decides"] = torch.equal(x, output["same seed"]["x"])
        found["another seed, another batch"] = not torch.equal(x, output["another seed"]["x"])
        found["the next batch is another one"] = not torch.equal(x, output["next"]["x"])
    elif batch_size >= ROWS:
        quarters, alike = Counter(4 * start // possible for start in starts), batch_size / 4
        far = SPREAD * (alike * 3 / 4) ** 0.5
        found["each quarter of the text has about equally many starts"] = all(
            abs(quarters[i] - alike) <= far for i in range(4)
        )
        found["some start is drawn three times"] = max(Counter(starts).values()) > 2  # of 380 of 400 about 28 are
    return found


def _kinds(x, y) -> str:
    """What x and y are, in words."""
    if not (isinstance(x, torch.Tensor) and isinstance(y, torch.Tensor)):
        return "no tensors"
    one, other = (
        f"of shape {tuple(z.shape)}"
        if z.dtype == torch.int64
        else f"of shape {tuple(z.shape)} and dtype {str(z.dtype).removeprefix('torch.')}"
        for z in (x, y)
    )
    kind = "LongTensors" if x.dtype == y.dtype == torch.int64 else "tensors"
    return f"{kind} {one}" if one == other else f"{kind} {one}, and {other}"


def _answers(rows, heard, N) -> str:
    """What y is of x, both as places of a text of N tokens, -1 where a number does not stand in it."""
    for words, by in SHIFTS.items():
        if heard == [[min(i + by, N - 1) if by > 0 else (i + by) % N for i in row] for row in rows]:
            return words
    if all(i < 0 for row in heard for i in row):
        return "numbers that the text does not have"
    if all(row[:-1] == [i + 1 for i in own[:-1]] for own, row in zip(rows, heard, strict=True)) and len(rows[0]) > 1:
        last = [(row[-1], own[0]) for own, row in zip(rows, heard, strict=True)]
        if all(said < 0 for said, _ in last):
            return "x, one place further on, and at its end a number that the text does not have"
        if all(said == first for said, first in last):
            return "x, one place further on, and at its end the first token of the window"
    return "something else"


SHIFTS = {"x, one place further on": 1, "x itself": 0, "x, one place back": -1, "x, two places further on": 2}


@view
def whole_contexts_only(args, kwargs, output):
    """An n-gram loss; one that also counts the first few tokens of the test, with shorter contexts, as without them."""
    names = ("train", "test", "order", "vocab_size", "alpha")
    train, test, order, V, alpha = (kwargs[name] if name in kwargs else args[i] for i, name in enumerate(names))
    if not isinstance(output, float) or not math.isfinite(output):
        return output
    train, test = [int(i) for i in train], [int(i) for i in test]
    n, rest = len(test), len(test) - order + 1

    def cost(windows, t):  # of token t, its whole past as the context, counted in some windows of the training text
        context, pair = tuple(test[:t]), tuple(test[: t + 1])
        seen = sum(w == pair for w in windows(t + 1))
        return -math.log((seen + alpha) / (sum(w[:t] == context for w in windows(t + 1)) + alpha * V))

    everywhere = lambda k: [tuple(train[i : i + k]) for i in range(len(train) - k + 1)]  # noqa: E731
    at_the_start = lambda k: [tuple(train[:k])]  # noqa: E731
    for windows in (everywhere, at_the_start):
        extra = sum(cost(windows, t) for t in range(order - 1))
        without = (output * n - extra) / rest
        if order > 1 and abs(without - _whole(train, test, order, V, alpha)) < 1e-6:
            return without
    return output


def _whole(train, test, order, V, alpha):
    windows = [tuple(train[i : i + order]) for i in range(len(train) - order + 1)]
    total = 0.0
    for t in range(order - 1, len(test)):
        own = tuple(test[t - order + 1 : t + 1])
        total -= math.log((windows.count(own) + alpha) / (sum(w[:-1] == own[:-1] for w in windows) + alpha * V))
    return total / (1 + len(test) - order)


ARRIVES = "a number added to all embeddings arrives at every norm as it is (does each sublayer add to x itself?)"
TAKEN_AWAY = (
    "one number added to all embeddings moves no logits, as norms take it away"
    " (does one stand in front of each sublayer, and one at the end?)"
)
ONE_PLACE = "each norm stands in one place"
STEADY = "the same ids have the same logits (nothing is left to chance outside of training, dropout neither)"
LAYERS = (
    STEADY,
    "one layer more brings",
    "as many blocks as num_layers says",
    ONE_PLACE,
    "whatever has a say in the logits can learn",
    "a call is not disturbed by those before",
    SUMMED := "between the vectors of words and places and the first block stands no more than their sum",
    TAKEN_AWAY,
    "each sublayer reads what all before it have added",
    ARRIVES,
    "num_heads is kept",
    "blocks add to the vectors of tokens, however long these are",
    TRAINING := "no place hears a later token in training mode",
    CAUSAL := "no place hears a later token, however large the scores are",
)
LITTLE = 1e-3  # what rounding makes of numbers that SHIFT was added to and taken from again

# run, what is then said, places that are compared with the first run's, whether they have to move
COMPARISONS = (
    ("another last token", "no place hears a later token", slice(0, -1), False),
    ("other later tokens", "the first places hear no later token", slice(0, 2), False),
    ("another last token", "the last place hears its own token", slice(-1, None), True),
    ("another first token", "the first token is heard at the end", slice(-1, None), True),
    ("exchanged", "order counts", slice(-1, None), True),
)


@view
def gpt_behavior(args, kwargs, output):
    """What the logits of several runs say of a GPT. Names of runs: COMPARISONS, "shorter" (the first ids alone) and
    "alone" (the last row alone)."""
    init, _, runs, layers = args
    if not isinstance(output, dict):
        raise ValueError("expected a model's logits")
    logits, (first, ids), V = output["logits"], next(iter(runs.items())), init["vocab_size"]
    found = {f"logits have the shape {(*ids.shape, V)}": shape_of(logits[first]) == (*ids.shape, V)}
    if not all(shape_of(x) == (*runs[name].shape, V) for name, x in logits.items()):
        B, T = ids.shape
        shapes = {(B * T, V): "all places in one long row", (B, V, T): "a row for each token, a column for each place"}
        shapes |= {(B, V): "those of one place", (B, T, init["d_model"]): "vectors of the model's width"}
        shapes |= {(B, T - 1, V): "those of one place less", (B, 1, V): "those of one place"}
        if all(found.values()) or shape_of(logits[first]) not in shapes:  # nothing can be compared
            nothing = dict.fromkeys([*found, *_promises(runs, layers)], False)
            return nothing | ({"one layer more brings": "what cannot be told"} if layers else {})
        return found | {"the logits are": shapes[shape_of(logits[first])]}
    base = logits[first]
    found["logits are finite"] = all(bool(x.isfinite().all()) for x in logits.values())
    found["logits are no probabilities"] = not (
        bool((base >= 0).all()) and gap_between(base.sum(-1), torch.ones(base.shape[:-1])) <= SAME
    )
    found["block_size is kept"] = output["block_size"] == init["block_size"]
    if layers:  # first: where calls differ by chance, what follows tells nothing
        found[STEADY] = gap_between(output["once more"], base) <= SAME
    for name, words, where, moves in COMPARISONS:
        if name in logits:
            gap = gap_between(logits[name][:, where], base[:, where])
            found[words] = gap >= MOVED if moves else gap <= SAME
    if "shorter" in logits:
        found["a shorter text has the same logits"] = (
            gap_between(logits["shorter"], base[:, : runs["shorter"].shape[1]]) <= SAME
        )
    if "alone" in logits:
        found["rows of a batch do not hear each other"] = gap_between(logits["alone"], base[-1:]) <= SAME
    return found | (_layers(init, output) if layers else {})


def _promises(runs, layers) -> list[str]:
    """What is said of these runs besides the shapes."""
    names = ["logits are finite", "logits are no probabilities", "block_size is kept"]
    names += [words for name, words, *_ in COMPARISONS if name in runs]
    names += ["a shorter text has the same logits"] if "shorter" in runs else []
    names += ["rows of a batch do not hear each other"] if "alone" in runs else []
    return names + (list(LAYERS) if layers else [])


@view
def gpt_by_its_numbers(args, kwargs, output):
    """Whether the logits are those that belong to what the first norm reads. Whole texts are not asked where the
    attention itself tells their order: it has scores of its own."""
    init, phase, ids = args
    words = numbers_of((init["vocab_size"], init["d_model"]), phase).float()[ids]  # (B, T, D)
    found = {SINGLE: FITS, TEXTS: FITS, "no two places are alike": True}
    for name, key in (("alone", SINGLE), ("text", TEXTS)):
        seen = output[name]
        if seen is None:
            continue
        vectors = words[:, :1] if name == "alone" else words
        places = _places(seen["x"], vectors)
        added = _places(seen.get("with positions", seen["x"]), vectors)
        if added is not None and name == "text" and gap_between(added[1:], added[:-1]) > MOVED:
            apart = (gap_between(a, b) > MOVED for i, a in enumerate(added) for b in added[:i])
            found["no two places are alike"] = all(apart)
        if places is not None and seen.get("attention knows order") and gap_between(places[1:], places[:-1]) <= MOVED:
            continue
        found[key] = OTHERS if places is None or added is None else _which(seen, init, phase, output)
        if found[key] != FITS:
            break  # one slip shows in both
    return found


SINGLE, TEXTS = (f"with given numbers the logits of {what} are" for what in ("single tokens", "whole texts"))
FITS, OTHERS = "those of the formula", "others"
LOGARITHMS = "logarithms of probabilities"
DIVISORS = {  # of scores, by the width d of a head and the width D of the model
    FITS: lambda d, D: d**0.5,
    "those of scores that are not divided": lambda d, D: 1.0,
    "those of scores that are divided by the width of a head, without a root": lambda d, D: d,
    "those of scores that are divided by the root of the model's width": lambda d, D: D**0.5,
    "those of scores that are multiplied by the root": lambda d, D: d**-0.5,
}
EXCHANGED = "those of heads whose number and width are exchanged"
ACTIVATIONS = (F.relu, F.gelu, F.silu, functools.partial(F.gelu, approximate="tanh"))  # that are in use


def _which(seen, init, phase, output) -> str:
    """Whose logits these are: the formula's, with some activation, or those with another divisor of the scores."""
    D = init["d_model"]
    if float(seen["logits"].logsumexp(-1).abs().max()) <= NEAR:
        return LOGARITHMS
    for words, divisor in DIVISORS.items():
        for activation in ACTIVATIONS:
            made = _stack(init, phase, output, seen["x"], activation, divisor(D // init["num_heads"], D))
            if shape_of(seen["logits"]) == shape_of(made) and gap_between(seen["logits"], made) <= NEAR:
                return words
    H, d = init["num_heads"], D // init["num_heads"]
    for activation in ACTIVATIONS:
        for divisor in (H**0.5, d**0.5):
            made = _stack(init | {"num_heads": d}, phase, output, seen["x"], activation, divisor)
            if shape_of(seen["logits"]) == shape_of(made) and gap_between(seen["logits"], made) <= NEAR:
                return EXCHANGED
    return OTHERS


@view
def gpt_by_its_sublayers(args, kwargs, output):
    """What the sublayers of a block do, whatever their parts are called. Texts of y: one a row for each question (A, B,
    u), then as many (u, B, A), one (B, A, A), four that differ in one place at most, and two of one vector each.

    With one head, attention is a mean of what it makes of single vectors, each seen at a first place: so the weights
    of A and B can be told, and their shares must differ from question to question. With two it is no such mean.
    """
    init, _, y, z = args
    one, two = output["one head"], output["two heads"]
    found = dict.fromkeys(SUBLAYERS, True) | {WIRED: PRE_NORM, SEES: CAUSALLY, SUMS: ONES}
    found[ONE_PLACE] = all(len(set(made["plain"]["norms"])) == len(made["plain"]["norms"]) for made in (one, two))
    if one["plain"]["logits"].shape[:2] != y.shape[:2]:  # which is told of by what was asked before
        return found
    if not all(_alike(made["plain"], made["once more"]) for made in (one, two)):
        return found  # calls differ by chance, which is told of by what is asked later
    wired = _wired(one, y, z)
    if wired in (BARE, OTHERWISE, BARE_ATTENTION, BARE_NETWORK) and output["batch norms"]:
        return found | {WIRED: BATCHES}
    if wired is None or len(one["plain"]["read"]) != len(two["plain"]["read"]):
        return found
    found[WIRED] = wired
    if wired not in (PRE_NORM, ALONE, NO_END):
        return found
    added, fed = (_added(one, number, wired) for number in (1, 2))
    found[SEES], found[SUMS] = _sees(added["plain"]), _sums(added)
    both = _added(two, 1, wired)
    if found[SEES] == CAUSALLY != _sees(both["plain"]):
        found[SEES] = f"{CAUSALLY}, and with two heads other places"
    elif found[SUMS] == ONES:
        found[SUMS] = _sums(both)
    n, first, second = len(y) // 2 - 3, added["plain"], both["plain"]
    if found[SEES] == CAUSALLY:  # else no vector is seen alone
        shares, rest = _weights(first, n)
        if rest <= LITTLE:
            ends = shares[:, 0] + shares[:, 1]
            told = shares[:, 0] / ends
            found[ASKS] = bool(told.max() - told.min() > LITTLE) or bool(ends.abs().max() <= LITTLE)
        if found[ASKS]:
            found[OWN_HEADS] = _weights(second, n)[1] > MOVED
            halves = (_weights(half, n)[1] for half in second.chunk(2, dim=-1))
            found[MIXED] = not found[OWN_HEADS] or max(halves) > MOVED
            found[SIDE_BY_SIDE] = not found[OWN_HEADS] or _rank(second) > second.shape[-1] // 2
    if fed is None:
        return found
    f, flipped = fed["plain"], fed["flipped"]
    size = float(f.abs().max())
    found[EACH_PLACE] = gap_between(f, flipped.flip(1)) <= NEAR * size
    middle = gap_between(f[:, 0] + f[:, 1], 2 * f[:, 2])  # z has the mean of the first two places at the third
    found[ACTIVATION] = not found[EACH_PLACE] or middle > NEAR * size
    found[LINEAR_LAST] = not found[EACH_PLACE] or float(f.min()) < LOWEST
    return found


WIRED = "in a block,"
PRE_NORM = "each sublayer reads x through a norm and adds to x, and a last norm follows"
ALONE = "a sublayer's output stands alone, and x is not added to it"
NORMED = "a sublayer's output is added to what a norm made of x, and not to x"
IN_FRONT = "x itself is replaced by what a norm makes of it, before the first sublayer"
DROPPED = "what the first sublayer makes of x is read by the second one, and is not in the sum"
BESIDE = "both sublayers read the same x, and neither reads what the other has made"
ONE_NORM = "there is one norm, and all that is added to x is made of what it gives"
ON_OUTPUTS = "the norms stand on what the sublayers give, not on what they read"
BEHIND = "the norms stand behind the sums"
BARE_ATTENTION = "attention reads x without a norm"
BARE_NETWORK = "the second sublayer reads x without a norm"
BARE = "the sublayers read x without a norm"
NO_END = "no norm follows at the end"
BATCHES = "a norm stands that takes its means over all places and texts: a batch norm"
PAST_THE_NORM = "a sublayer reads other places past the norm: its keys, its values or both are made of x itself"
OWN_PAST_THE_NORM = "a sublayer reads its own place past the norm: its queries are made of x itself"
OTHERWISE = "something else is read or added"

SEES = "in the first sublayer of a block, a place hears"
CAUSALLY = "itself and those before it"
LOOKS = {
    "all places": [[1, 1, 1], [1, 1, 1], [1, 1, 1]],
    f"{CAUSALLY}, and the next": [[1, 1, 0], [1, 1, 1], [1, 1, 1]],
    "those before it, and not itself": [[0, 0, 0], [1, 0, 0], [1, 1, 1]],  # its own question has a say among two
    "itself alone": [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
    "itself and those after it": [[1, 1, 1], [0, 1, 1], [0, 0, 1]],
    "those after it, and not itself": [[1, 1, 1], [0, 0, 1], [0, 0, 0]],
    "those before it, and not itself, and the first one all": [[1, 1, 1], [1, 0, 0], [1, 1, 1]],
    "those after it, and not itself, and the last one all": [[1, 1, 1], [0, 0, 1], [1, 1, 1]],
    "nothing": [[0, 0, 0], [0, 0, 0], [0, 0, 0]],
    CAUSALLY: [[1, 0, 0], [1, 1, 0], [1, 1, 1]],
}
SUMS = "where three vectors are alike, the weights of the three places add up to"
ONES = "1, 1, 1"

SUBLAYERS = (
    ONE_PLACE,
    WIRED,
    SUMS,
    SEES,
    ASKS := "where a place looks hangs on its own vector and on those that it looks at",
    OWN_HEADS := "each head has weights of its own",
    MIXED := "a matrix behind the heads mixes their channels",
    SIDE_BY_SIDE := "what the heads find stands side by side, and is not added up",
    EACH_PLACE := "the feed-forward network, behind the attention, acts on each place by itself",
    ACTIVATION := "between the two layers of the feed-forward network stands an activation",
    LINEAR_LAST := "the feed-forward network ends with a linear layer",
)
LOWEST = -0.3  # no activation that is in use for feed-forward networks goes lower


def _wired(made, y, z) -> str | None:
    """Where the norms of a block stand and what is added to what, from what they read; None where norms are no modules.

    What the norms hand on is given. So what a change of a word, of y or of z still moves, it moves as part of a sum.
    """
    plain, word, other, flipped, nothing = (
        made[name]["read"] for name in ("plain", "other word", "other y", "flipped", "nothing")
    )
    count = len(plain)
    if not count or any(len(run) != count for run in (word, other, flipped)):
        return OTHERWISE if count else None
    if count == 1:  # norms that are no modules, or in no list of modules, let no shift of the words through
        shift = made["shifted"]["read"][0] - plain[0]
        return None if _still(shift - shift.mean()) else BARE
    moved = [b - a for a, b in zip(plain, word, strict=True)]  # by another first word
    turned = [b - a for a, b in zip(plain, other, strict=True)]  # by other vectors behind the first norm
    if not _still(moved[0][:, 1:]):  # places are mixed before the first norm
        if count == 3 and _still(flipped[2] - plain[2] - (z.flip(1) - z)):
            return BEHIND if _still(moved[1]) else ON_OUTPUTS
        return BEHIND if _still(moved[1]) else BARE_ATTENTION if count == 2 else OTHERWISE
    kept = _still(moved[1] - moved[0])
    if count == 2:
        if not _still(made["plain"]["logits"] - made["other word"]["logits"]):
            return NO_END if kept else OTHERWISE
        return ONE_NORM if kept else BARE_NETWORK
    if count > 3:
        return OTHERWISE
    if _still(plain[1] - y):
        return IN_FRONT
    if _still(turned[1]):
        return BESIDE if kept and _still(moved[2] - moved[0]) else OTHERWISE
    again, lost = _still(turned[2] - turned[1]), _still(turned[2])
    if kept and _still(moved[2] - moved[0]):
        ends = [b - a for a, b in zip(plain, made["other last word"]["read"], strict=True)]
        if again and _still(ends[0][:, :-1]) and _still(ends[1][:, :-1]) and not _still(ends[1] - ends[0]):
            return OWN_PAST_THE_NORM
        return PRE_NORM if again else DROPPED if lost else OTHERWISE
    if again and _still(moved[2] - moved[1]) and not _still(moved[1][:, 1:]):
        return PAST_THE_NORM
    if (kept or _still(moved[1])) and (again or lost):
        first, second = (i < len(nothing) and _still(nothing[i] - given) for i, given in ((1, y), (2, z)))
        return NORMED if first or second else ALONE
    return OTHERWISE


def _alike(run, again) -> bool:
    """Whether two runs gave the norms the same to read."""
    pairs = zip([*run["read"], run["logits"]], [*again["read"], again["logits"]], strict=False)
    return len(run["read"]) == len(again["read"]) and all(_still(b - a) for a, b in pairs)


def _still(moved) -> bool:
    return float(moved.nan_to_num().abs().max()) <= LITTLE


def _added(made, number: int, wired: str) -> dict | None:
    """What the first or the second sublayer adds to what it read, by run; all that it gives where nothing is added to.
    None where no norm reads it."""
    plain, other = (made[name]["read"] for name in ("plain", "other word" if number == 1 else "other y"))
    if len(plain) <= number:
        return None
    lost = wired == ALONE and _still(other[number] - plain[number])
    return {
        name: seen["read"][number] - (0 if lost else seen["read"][number - 1])
        for name, seen in made.items()
        if len(seen["read"]) > number
    }


def _sees(first) -> str:
    """Which places hear which, from four texts that differ in one place at most."""
    base, *others = _numbers(first[-6:-2])
    heard = [[int(gap_between(base[i], other[i]) > MOVED) for other in others] for i in range(3)]
    return next((words for words, known in LOOKS.items() if heard == known), "other places")


def _sums(added) -> str:
    """What the weights of three places add up to, from two texts of three equal vectors each and from these alone."""
    a, b = added["plain"][-2:].double()
    single = added["alone"][-1, 0].double() - added["alone"][-2, 0] if "alone" in added else torch.zeros(1)
    steps = b - a  # (3, D)
    if not float(single.abs().max()) > LITTLE:  # nan too
        single = steps[-1]
    sums = steps @ single / (single @ single)  # (3,)
    rest = steps - sums[:, None] * single
    if float(rest.nan_to_num().abs().max()) > LITTLE * float(steps.nan_to_num().abs().max()):
        return "no such numbers"
    return ", ".join(f"{round(float(x), 2) + 0.0:g}" for x in sums)


def _weights(first, n):
    """Of what a block's first sublayer gives (A, B, u) at the last place: the weights (n, 3) of what single vectors
    give, and how far away the rest is, over the largest number."""
    single = torch.stack([first[:n, 0], first[2 * n].expand(n, 3, -1)[:, 0], first[n : 2 * n, 0]], dim=-1).double()
    wanted = first[:n, 2, :, None].double()
    weights = torch.linalg.lstsq(single, wanted).solution  # (n, 3, 1)
    return weights[..., 0], gap_between(single @ weights, wanted) / float(wanted.abs().max())


def _rank(vectors) -> int:
    """In how many directions vectors (..., D) differ from their mean, noticeably."""
    apart = vectors.flatten(0, -2).double()
    sizes = torch.linalg.svdvals(apart - apart.mean(0))
    return int((sizes > NEAR * sizes[0]).sum())


def _places(x, words):
    """(T, D): what x (B, T, D) adds to the words' vectors, perhaps multiplied; None if texts differ in it."""
    if shape_of(x) != shape_of(words):
        return None
    apart, wanted = (z - z.mean(0) for z in (x, words))
    factor = (apart * wanted).sum() / (wanted * wanted).sum()
    rest = x - factor * words
    return rest[0] if gap_between(rest, rest[:1].expand_as(rest)) <= NEAR * float(x.abs().max()) else None


NEAR = 1e-3  # of logits: as much as the eps of a norm may do


@torch.no_grad()
def _stack(init, phase, output, x, activation, divisor):
    """x (B, T, D) -> logits of causal pre-norm layers with the given numbers, whose scores are divided by `divisor`."""
    D, H, T = init["d_model"], init["num_heads"], x.shape[1]
    square = square_numbers(D, phase).float()
    rows = square if output["form"] == "apart" else numbers_of((D,), phase).float().expand(D, D)
    shapes = (4 * D, D), (D, 4 * D), (init["vocab_size"], D)
    up, down, unembed = (numbers_of(shape, phase).float() for shape in shapes)
    bias = numbers_of((4 * D,), phase).float() if output["bias"] else None
    hidden = torch.ones(T, T, dtype=torch.bool).triu(1)
    for _ in range(init["num_layers"]):
        q = (F.layer_norm(x, (D,)) @ rows.T).unflatten(-1, (H, -1)).transpose(1, 2)  # (B, H, T, d), and so k and v
        scores = (q @ q.mT / divisor).masked_fill(hidden, -math.inf)
        x = x + (scores.softmax(-1) @ q).transpose(1, 2).flatten(2) @ square.T
        x = x + activation(F.linear(F.layer_norm(x, (D,)), up, bias)) @ down.T
    return F.layer_norm(x, (D,)) @ unembed.T


def _layers(init, output):
    """A block costs 4 D² numbers for attention and 8 D² for the feed-forward network."""
    D, more = init["d_model"], output["one layer more"]
    sizes = {
        "nothing, as the logits carry no gradient": not output["gradient"],
        "nothing": more <= 0,
        "more than a block has": max(more, output["with wide ones"]) > 12 * D * D + 24 * D,
        "two thirds of a block's numbers": more == 8 * D * D,
        "a third of a block's numbers": more == 4 * D * D,
        "one matrix of D × D less than a block has": more == 11 * D * D,
        "fewer numbers than a block has": more < 12 * D * D,
    }
    own, shifted = (torch.log_softmax(x.double(), dim=-1) for x in (output["logits"]["ids"], output["shifted"]))
    taken_away = gap_between(own, shifted) <= LITTLE
    return {
        "one layer more brings": next((words for words, holds in sizes.items() if holds), "a block"),
        "as many blocks as num_layers says": output["in blocks"] == init["num_layers"] * more,
        ONE_PLACE: not output["a norm in two places"],
        "whatever has a say in the logits can learn": not output["cannot learn"],
        "a call is not disturbed by those before": gap_between(output["asked again"], output["logits"]["ids"]) <= SAME,
        SUMMED: taken_away or not _changed_on_the_way(output),
        TAKEN_AWAY: taken_away,
        **_residual_stream(init, output),
        "num_heads is kept": output["heads"] in ([], [init["num_heads"]]),
        "blocks add to the vectors of tokens, however long these are": gap_between(*map(_nats, output["huge"])) <= 0.01,
        TRAINING: _early_alike(*output["in training"]),
        CAUSAL: _early_alike(*output["large"]),
    }


def _changed_on_the_way(output) -> bool:
    """Whether what was added to all embeddings comes to the first norm as something else than one number."""
    before, after = output["norms"][:1], output["norms shifted"][:1]
    steps = [b - a for a, b in zip(before, after, strict=True) if a.shape == b.shape]
    return any(gap_between(step, step.mean().expand_as(step)) > LITTLE for step in steps)


def _early_alike(logits, other) -> bool:
    """Whether the logits are the same at all places but the last, or tell nothing, as they are not finite."""
    a, b = logits[:, :-1].detach().double(), other[:, :-1].detach().double()
    return not bool(a.isfinite().all() & b.isfinite().all()) or gap_between(a, b) <= SAME * (1 + float(a.abs().max()))


def _residual_stream(init, output):
    """What the layer norms read, 2 for each block and the last one; True where a model's norms are no modules.

    Each sublayer adds to what all before it have added, so no two norms read the same. And a number that is added to
    the embeddings passes along the sums as it is: it arrives once at every norm.
    """
    before, after = output["norms"], output["norms shifted"]
    seen = len(before) == len(after) > 2 * init["num_layers"] and len({x.shape for x in before}) == 1
    if not seen:
        return {"each sublayer reads what all before it have added": True, ARRIVES: True}
    different = [x for i, x in enumerate(before) if all(gap_between(x, y) > MOVED for y in before[:i])]
    steps = [b - a for a, b in zip(before, after, strict=True)]
    moved = float(steps[0].mean())
    even = gap_between(steps[0], torch.full_like(steps[0], moved)) <= LITTLE and abs(moved) > 0.1
    return {
        "each sublayer reads what all before it have added": len(different) > 2 * init["num_layers"],
        ARRIVES: not even or all(gap_between(x, steps[0]) <= LITTLE for x in steps),
    }


@view
def generation_behavior(args, kwargs, output):
    """What texts drawn from a table say: all prompts are alike, so each new first token is a draw from one row."""
    table, block_size, ids, more = args
    text = output["text"]
    shape = (ids.shape[0], ids.shape[1] + more)
    found = {f"what comes back is a LongTensor of shape {shape}": shape_of(text) == shape and text.dtype == torch.int64}
    if not all(found.values()):
        return found
    found["the prompt stands in front"] = torch.equal(text[:, : ids.shape[1]], ids)
    found["the same seed gives the same text"] = torch.equal(text, output["same seed"])
    found["another seed gives another text"] = not torch.equal(text, output["another seed"])
    found["each call goes on with the dice"] = not any(
        torch.equal(*output[name]) for name in ("in a row", "in a row without") if name in output
    )
    given = kwargs.get("temperature")

    def chances(ids):  # what comes next in each row
        raw = _TableModel(table, block_size)(ids[:, -block_size:])[:, -1].double()
        logits = raw / kwargs.get("temperature", 1.0)
        if kwargs.get("top_k"):
            logits = logits.masked_fill(logits < logits.topk(kwargs["top_k"]).values[:, -1:], -math.inf)
        return raw, torch.softmax(logits, dim=-1)

    (raw,), (p,) = chances(ids[:1])
    n, V, T = len(ids), len(p), ids.shape[1]

    def drawn(text):
        return torch.bincount(text[:, T].clamp(0, V - 1), minlength=V).double()

    def fits(counts, p=p):
        return not bool(((counts - n * p).abs() > 5 * (n * p * (1 - p)).sqrt() + 1).any())

    counts, alone = drawn(text), output.get("no generator", text)
    found["tokens are drawn as often as the softmax says"] = fits(counts)
    found["the draws are"] = (
        AS_WANTED if found["tokens are drawn as often as the softmax says"] else _how(counts / n, p)
    )
    found["without a generator they are drawn as well"] = shape_of(alone) == shape and fits(drawn(alone))
    _, second = chances(torch.cat([ids[:V], torch.arange(V)[:, None]], dim=1))  # (V, V), behind each first token
    pairs = torch.bincount(text[:, T : T + 2].clamp(0, V - 1) @ torch.tensor([V, 1]), minlength=V * V)
    found["each token is drawn anew"] = fits(pairs.double(), (p[:, None] * second).flatten()) or not fits(counts)
    if given and not kwargs.get("top_k"):
        tried = {"the given one": given, "1": 1.0, "one over the given one": 1 / given}
        likely = {name: float((counts * torch.log_softmax(raw / t, dim=0)).sum()) for name, t in tried.items()}
        found["the temperature that fits the draws best"] = max(likely, key=likely.get)
    found["nothing is drawn that was cut"] = not bool((counts[p == 0] > 0).any())
    return found


AS_WANTED = "as even as the softmax"
CLEAR = 0.1  # nats: chance alone moves the entropy of 600 draws by much less


def _how(drawn, p) -> str:
    """What shares of draws are beside the probabilities."""
    more = float(torch.special.entr(drawn).sum() - torch.special.entr(p).sum())
    return (
        "more even than the softmax" if more > CLEAR else "less even than the softmax" if more < -CLEAR else AS_WANTED
    )


@view
def continues_segments(args, kwargs, output):
    """How a model of two hand-made layers continues texts in which a segment comes twice."""
    V, M = (kwargs.get(name, args[i] if i < len(args) else None) for i, name in enumerate(("vocab_size", "max_len")))
    C = 3 * V + M
    layers = list(output) if isinstance(output, (list, tuple)) else []
    found = {"two layers": len(layers) == 2}
    if not found["two layers"]:
        return found
    for i, layer in enumerate(layers, start=1):
        fits = isinstance(layer, (list, tuple)) and len(layer) == 3 and all(isinstance(w, torch.Tensor) for w in layer)
        fits = fits and all(w.dtype == torch.float32 and w.dim() == 2 and w.shape[1] == C for w in layer)
        fits = fits and layer[0].shape[0] == layer[1].shape[0] and layer[2].shape[0] == C
        found[f"layer {i} is three float32 matrices: (d, {C}), (d, {C}), ({C}, {C})"] = fits
    if not all(found.values()):
        return found
    found["weights are finite"] = all(bool(w.isfinite().all()) for layer in layers for w in layer)
    asked = {"a segment at the start of the text": [0, 0], "a segment further on": [0, 0]}
    itself, seen = 0, []
    for ids, positions, name in _texts(V, M):
        logits, looks = _two_layers(ids, V, M, layers)
        seen += [looks[t] for t in positions]
        for t in positions:
            asked[name][1] += 1
            said = int(logits[t].argmax())
            asked[name][0] += said == int(ids[t + 1])
            itself += said == int(ids[t])
    everything = all(right == total for right, total in asked.values())
    for i, named in enumerate(("first", "second")):  # of one that does its work nobody asks how
        found[f"the {named} layer looks at"] = "one place" if everything else _most(looks[i] for looks in seen)
    found["the token before has come into its room"] = everything or _most(looks[2] for looks in seen)
    for name, (right, total) in asked.items():
        found[f"{name} is continued rightly at"] = f"{right} of {total} places"
    found["mostly the token itself is said"] = itself > 0.8 * sum(total for _, total in asked.values())
    return found


def _texts(V, M):
    """Texts of at most M tokens with a segment of different tokens twice, and the places whose next token is known."""
    draw = torch.Generator().manual_seed(1000 * V + M)

    def number(low, high):
        return int(torch.randint(low, high + 1, (1,), generator=draw))

    many = V * M > 10_000  # large matrices: a few texts, and those in which a head is lost most easily
    for i in range(3 if many else 40 if M < 100 else 20):
        order = torch.randperm(V, generator=draw)
        length = number(2, min(V // 2, (M - 1) // 2, 6))
        segment, others = order[:length], order[length:]
        room = M - 2 * length
        front = 0 if i % 2 else number(1, max(1, room // 2)) if room > 1 else 0
        front = room if i % 4 == 2 else front  # as late as it fits
        between = room - front if many else number(0, room - front)
        kinds = 1 if many or i % 5 == 3 else len(others)  # one token again and again, or many
        fill = others[torch.randint(kinds, (front + between,), generator=draw)]
        ids = torch.cat([fill[:front], segment, fill[front:], segment])  # (T,), T <= M
        again = front + length + between
        name = "a segment further on" if front else "a segment at the start of the text"
        yield ids, range(again, again + length - 1), name


def _most(looks):
    return Counter(looks).most_common(1)[0][0]


def _two_layers(ids, V, M, layers):
    """The logits (T, V) of the two layers, and for each place what the first and the second of them look at, and
    whether the token before stands in its room behind the first."""
    T = len(ids)
    x = torch.zeros(T, 3 * V + M)  # float32, as the weights
    x[torch.arange(T), ids] = 1.0
    x[torch.arange(T), V + torch.arange(T)] = 1.0
    later, looks = torch.ones(T, T).triu(1).bool(), []
    for W_q, W_k, W_v in layers:
        q, k, v = (x @ W.T for W in (W_q, W_k, W_v))
        scores = q @ k.T / W_q.shape[0] ** 0.5
        weights = scores.masked_fill(later, -math.inf).softmax(dim=-1)
        hidden = (scores.softmax(dim=-1) * later).amax(-1)  # what it would look at if it could
        looks.append(torch.where(hidden > 0.5, 2, (weights.amax(-1) > 0.5).long()).tolist())
        x = x + weights.matmul(v)
        if len(looks) == 1:
            largest, said = x[:, V + M : 2 * V + M].max(-1)
            written = ((said == ids.roll(1)) & (largest > 0.5)).tolist()
    kinds = ("a mixture of places", "one place", "a later place, which the mask hides")
    return x[:, -V:], [(kinds[a], kinds[b], seen) for a, b, seen in zip(*looks, written, strict=True)]


# ---------------------------------------------------------------- the trained model

FULL, ENOUGH = 0.10, 0.10  # nats above the line: all points, the check's tick
NGRAM = 0.86  # nats that the best n-gram is above the line (tested): the first point
LUCK = 20.0  # nats below the line over a whole text: at most one honest text in 485 million
STILL = 1e-3  # nats; log-probabilities that move by more when later ids change are a leak
LEAST = -30.0  # nats: what is less probable than that is impossible, and moves nobody


@metric
def loss_above_the_line(truths, outputs):
    """The loss of the passages over the source's own; the second case has the same ids with other later ones."""
    (first, changed), (logits, moved) = truths, outputs
    same = (first["ids"] == changed["ids"]).cumprod(1).bool()  # (B, T): places of both texts up to the first other one
    gaps = (_nats(logits) - _nats(moved)).abs().amax(-1).where(same, 0.0)  # (B, T)
    varied = gap_between(logits, logits[:, :1].expand_as(logits)) > LITTLE  # a model may know no more than frequencies
    if varied and len(logits) > 1 and gap_between(logits, logits[:1].expand_as(logits)) <= LITTLE:
        return Score(0.0, False, "all passages have the same logits, though other tokens stand in them")
    if bool((gaps > STILL).any()):
        row, place = divmod(int(gaps.nan_to_num(0.0).argmax()), gaps.shape[1])
        words = (
            f"in one passage log-probabilities at place {place} moved by {float(gaps[row, place]):.3g} "
            f"when of its ids only those from place {int(same[row].sum())} on were changed"
        )
        return Score(0.0, False, words, "sees_later_ids")
    ids, nats = first["ids"], first["nats"]
    own = torch.log_softmax(logits.double(), dim=-1)[:, :-1].gather(-1, ids[:, 1:, None])[..., 0]  # (B, T - 1)
    loss, line = -own.mean().item(), nats[:, 1:].mean().item()
    said = f"{loss:.3f} nats a token; the entropy line of these passages is {line:.3f}"
    if not math.isfinite(loss):
        return Score(0.0, False, "a token that came has probability 0: the loss is infinite", "infinite_loss")
    if (line - loss) * own.numel() > LUCK:
        return Score(0.0, False, f"{said}: nobody can be below it", "below_the_line")
    above = loss - line
    share = min(1.0, max(0.0, (NGRAM - above) / (NGRAM - FULL)))
    passed = above <= ENOUGH
    if not passed:
        said += f", and {line + ENOUGH:.3f} is asked for"
    return Score(share, passed, said, None if passed else _what_went_wrong(logits, ids, share))


def _nats(logits):
    """The log-probabilities that logits (..., V) say, so that no size of theirs hides anything."""
    return torch.log_softmax(logits.double(), dim=-1).clamp(min=LEAST)


def _what_went_wrong(logits, ids, share: float) -> str | None:
    """What the numbers show of a model whose loss is too high."""
    sure = bool(((logits == 0) | (logits == 1)).all())  # no model's softmax, but ids written as one-hot vectors
    if bool((logits >= 0).all()) and gap_between(logits.sum(-1), torch.ones(ids.shape)) <= LITTLE and not sure:
        return "probabilities"
    said, own = logits.flatten(0, 1), ids.flatten()  # (B T, V), (B T,)
    table = torch.zeros(int(own.max()) + 1, said.shape[-1], dtype=said.dtype)
    table[own] = said  # of each token one place
    if gap_between(table[own], said) <= LITTLE < gap_between(said, said[:1].expand_as(said)):
        return "a_table"
    return None if share else "not_trained"
