"""Scenarios of lesson 12's checks, which run next to learner code, and views and a metric, which see only numbers."""

import math
from collections import Counter

import torch
import torch.nn.functional as F
from torch import nn

from helpers.checking.registry import Score, metric, scenario, view
from helpers.checking.scenarios import SAME, WrongParts, causal_logits, gap_between, require_ids, shape_of

# ---------------------------------------------------------------- next to learner code

MANY = 50  # possible windows per window drawn, so that two batches never coincide
TOLERANCE = 7.0  # standard deviations of a count; random starts exceed it less than once in 10⁹ batches
FEW = 50  # rows that are generated twice in a row, enough that they never coincide


@scenario
def drawn_batches(answer, args, kwargs):
    """args = (data, block_size, batch_size, seed): one batch. If few windows are drawn out of many, also a batch from
    the same seed, one from another seed, and the first generator's next one."""
    data, block_size, batch_size, seed = args
    made = {}
    first, again, other = (torch.Generator().manual_seed(start) for start in (seed, seed, seed + 1))
    drawn = [("batch", first), ("same seed", again), ("another seed", other), ("next", first)]
    for name, generator in drawn if len(data) - block_size >= MANY * batch_size else drawn[:1]:
        torch.manual_seed(len(made))  # an answer that ignores the generator draws differently each time
        batch = answer(data, block_size, batch_size, generator)
        two = isinstance(batch, (tuple, list)) and len(batch) == 2
        made[name] = dict(zip("xy", batch if two else (None, None), strict=True))
    return made, []


@scenario
def gpt_promises(answer, args, kwargs):
    """args = (init, seed, ids, changed): a GPT that is initialized from a seed. Returns its block_size, its logits for
    ids twice in evaluation mode, and in training mode those for ids and for `changed` with the same dropout masks."""
    init, seed, ids, changed = args
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = answer(*init).eval()
        seen = {"block_size": getattr(model, "block_size", None), "twice": [model(ids), model(ids)], "training": []}
        model.train()
        for batch in (ids, changed):
            torch.manual_seed(seed)
            seen["training"].append(model(batch))
    return seen, []


class _TableModel(nn.Module):
    """ids (B, T) -> logits (B, T, V), T <= block_size: rows of a table; the ids up to a position determine its row."""

    def __init__(self, table, block_size: int):
        super().__init__()
        self.table, self.block_size = table, block_size

    def forward(self, ids):
        require_ids(ids, "the model expects ids as a LongTensor of shape (B, T)")
        if not 1 <= ids.shape[1] <= self.block_size:
            raise ValueError(f"the model reads 1 to {self.block_size} ids (its block_size); it got {ids.shape[1]}")
        return causal_logits(self.table, ids)  # (B, T, V)


@scenario
def with_table_model(answer, args, kwargs):
    """args = (table, block_size, ids, max_new_tokens): the answer's text with a causal model that takes its logits from
    a table. kwargs: the answer's options."""
    table, block_size, *rest = args
    return answer(_TableModel(table, block_size), *rest, **kwargs), []


@scenario
def without_gradient(answer, args, kwargs):
    """args = (ids,): the answer's logits, after a first call with the last passage alone, so that results cached from
    one call are of no use in the next. Raises WrongParts if the logits require a gradient."""
    (ids,) = args
    answer(ids[-1:].clone())
    logits = answer(ids)
    if isinstance(logits, torch.Tensor) and logits.requires_grad:
        raise WrongParts("the logits still carry a gradient; compute them without one")
    return logits, []


@scenario
def drawn_texts(answer, args, kwargs):
    """Like with_table_model, three times: from the `seed` in kwargs, from the same seed and from another one; if there
    are no other options, once more without a generator. Also a few rows twice in a row, from the first generator and
    without one."""
    table, block_size, ids, max_new_tokens = args
    options = {name: value for name, value in kwargs.items() if name != "seed"}
    seed = kwargs["seed"]

    def write(ids, **generator):
        return answer(_TableModel(table, block_size), ids, max_new_tokens, **generator, **options)

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


# ---------------------------------------------------------------- on numbers only


@view
def batch_behavior(args, kwargs, output):
    """Properties of get_batch that its batches show. The data have no value twice, so a value gives its position."""
    data, block_size, batch_size, _ = args
    batch, index = output["batch"], {int(value): i for i, value in enumerate(data)}
    x, y = batch["x"], batch["y"]
    shape = (batch_size, block_size)
    wanted = f"LongTensors of shape {shape}"
    if (kinds := _kinds(x, y)) != wanted:
        return {"x and y are": kinds}
    rows = [[index.get(value, -1) for value in row] for row in x.tolist()]
    starts = [row[0] for row in rows]
    windows = ((row, list(range(row[0], row[0] + block_size))) for row in rows)
    found = {
        "x and y are": kinds,
        "every row of x is a window of the text": all(row == whole and row[0] >= 0 for row, whole in windows),
        "y is": _relation(rows, [[index.get(value, -1) for value in row] for row in y.tolist()], len(data)),
    }
    possible = len(data) - block_size
    if batch_size >= 40 * possible:
        found["the first position is a start"] = 0 in starts
        found["the last possible start is drawn"] = possible - 1 in starts
        found["a position in the middle is a start"] = 1 in starts
        mean = batch_size / possible
        limit = TOLERANCE * (mean * (1 - 1 / possible)) ** 0.5
        counts = [starts.count(start) for start in range(possible)]
        uniform = max(abs(n - mean) for n in counts) <= limit
        found["how often starts are drawn"] = "about equally often" if uniform else "some more often than others"
    elif possible >= MANY * batch_size:
        found["rows begin at different positions"] = len(set(starts)) > batch_size / 2
        steps = {b - a for a, b in zip(starts, starts[1:], strict=False)}
        found["each row is drawn by itself"] = len(steps) > 1 or batch_size < 5
        found["the generator alone decides"] = torch.equal(x, output["same seed"]["x"])
        found["another seed, another batch"] = not torch.equal(x, output["another seed"]["x"])
        found["the next batch is another one"] = not torch.equal(x, output["next"]["x"])
    return found


def _kinds(x, y) -> str:
    """The types, dtypes and shapes of x and y, in words."""
    if not (isinstance(x, torch.Tensor) and isinstance(y, torch.Tensor)):
        return "no tensors"
    dtypes = ["" if z.dtype == torch.int64 else f" and dtype {str(z.dtype).removeprefix('torch.')}" for z in (x, y)]
    of_x, of_y = (f"of shape {tuple(z.shape)}{dtype}" for z, dtype in zip((x, y), dtypes, strict=True))
    kind = "LongTensors" if x.dtype == y.dtype == torch.int64 else "tensors"
    return f"{kind} {of_x}" if of_x == of_y else f"{kind} {of_x}, and {of_y}"


def _relation(xs, ys, N) -> str:
    """How the rows of y are related to those of x, both as positions in a text of N tokens, -1 for other values."""
    for words, shift in SHIFTS.items():
        if ys == [[min(i + shift, N - 1) if shift > 0 else (i + shift) % N for i in x] for x in xs]:
            return words
    if all(y[:-1] == [i + 1 for i in x[:-1]] for x, y in zip(xs, ys, strict=True)) and len(xs[0]) > 1:
        if all(y[-1] == x[0] for x, y in zip(xs, ys, strict=True)):
            return "x, one position further on, and at its end the first token of the window"
    return "something else"


SHIFTS = {"x, one position further on": 1, "x itself": 0, "x, one position back": -1}


@view
def whole_contexts_only(args, kwargs, output):
    """The n-gram loss. An output that also counts the first tokens of the test, whose contexts are shorter, is replaced
    by the loss without them, so that both are accepted."""
    train, test, order, V, alpha = args
    train, test = [int(i) for i in train], [int(i) for i in test]

    def everywhere(length):
        return [tuple(train[i : i + length]) for i in range(len(train) - length + 1)]

    def short_ones_at_the_start(length):
        return everywhere(length) if length == order else [tuple(train[:length])]

    def loss(first, windows):
        """The mean over the tokens from `first` on, each with as much context as it has, counted in windows(length)."""
        total = 0.0
        for t in range(first, len(test)):
            gram = tuple(test[max(0, t - order + 1) : t + 1])
            seen = windows(len(gram))
            total -= math.log((seen.count(gram) + alpha) / (sum(w[:-1] == gram[:-1] for w in seen) + alpha * V))
        return total / (len(test) - first)

    others = (loss(0, windows) for windows in (everywhere, short_ones_at_the_start))
    short = isinstance(output, float) and any(abs(output - other) < 1e-6 for other in others)
    return loss(order - 1, everywhere) if short else output


@view
def gpt_promises_kept(args, kwargs, output):
    """Whether the results of `gpt_promises` keep a GPT's promises. Other cases judge outputs that are not logits."""
    init, _, ids, changed = args
    tensors = [*output["twice"], *output["training"]]
    if not all(shape_of(x) == (*ids.shape, init[0]) for x in tensors):
        return {"logits have the shape (B, T, V)": False}
    once, again, before, after = tensors
    same = int((ids == changed).all(0).long().cumprod(0).sum())  # how many positions have the same ids
    return {
        "block_size is kept": output["block_size"] == init[1],
        "the same ids have the same logits in evaluation mode": gap_between(once, again) <= SAME,
        "no position sees a later token in training mode": gap_between(before[:, :same], after[:, :same]) <= SAME,
    }


LITTLE = 1e-3  # the largest difference of logits that rounding can cause
CLEAR = 0.1  # nats: by chance alone, the entropy of 600 draws varies much less


@view
def generation_behavior(args, kwargs, output):
    """Properties of `generate`. All prompts are equal, so the first new tokens are draws from one row of the table."""
    table, block_size, ids, max_new_tokens = args
    text = output["text"]
    shape = (ids.shape[0], ids.shape[1] + max_new_tokens)
    found = {f"the result is a LongTensor of shape {shape}": shape_of(text) == shape and text.dtype == torch.int64}
    if not all(found.values()):
        return found
    found["the text begins with the prompt"] = torch.equal(text[:, : ids.shape[1]], ids)
    found["the same seed gives the same text"] = torch.equal(text, output["same seed"])
    found["another seed gives another text"] = not torch.equal(text, output["another seed"])
    twice = [output[name] for name in ("in a row", "in a row without") if name in output]
    found["two calls in a row give different texts"] = not any(torch.equal(*texts) for texts in twice)
    given = kwargs.get("temperature")

    raw = _TableModel(table, block_size)(ids[:1, -block_size:])[0, -1].double()  # (V,), of the first new token
    logits = raw / kwargs.get("temperature", 1.0)
    if kwargs.get("top_k"):
        logits = logits.masked_fill(logits < logits.topk(kwargs["top_k"]).values[-1], -math.inf)
    p = torch.softmax(logits, dim=-1)
    n, V, T = len(ids), len(p), ids.shape[1]

    def drawn(text):
        return torch.bincount(text[:, T].clamp(0, V - 1), minlength=V).double()

    def fits(counts):
        return not bool(((counts - n * p).abs() > 5 * (n * p * (1 - p)).sqrt() + 1).any())

    counts, global_draws = drawn(text), output.get("no generator", text)
    found["tokens are drawn with the probabilities of the softmax"] = as_softmax = fits(counts)
    excess = 0.0 if as_softmax else float(torch.special.entr(counts / n).sum() - torch.special.entr(p).sum())
    words = "more uniform than" if excess > CLEAR else "less uniform than" if excess < -CLEAR else "as uniform as"
    found["the draws are"] = f"{words} the softmax"
    global_fits = shape_of(global_draws) == shape and fits(drawn(global_draws))
    found["without a generator they are drawn with these probabilities too"] = global_fits
    if given and not kwargs.get("top_k"):
        tried = {"the given one": given, "1": 1.0, "one over the given one": 1 / given}
        likely = {name: float((counts * torch.log_softmax(raw / t, dim=0)).sum()) for name, t in tried.items()}
        found["the temperature that fits the draws best"] = max(likely, key=likely.get)
    found["no excluded token is drawn"] = not bool((counts[p == 0] > 0).any())
    return found


@view
def continues_segments(args, kwargs, output):
    """How two layers whose weights were set by hand continue texts in which a segment occurs twice."""
    V, M = args
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
    right: dict[str, list[bool]] = {"a segment at the start of the text": [], "a segment further on": []}
    itself, seen = [], []
    for ids, positions, name in _texts(V, M):
        logits, facts = _two_layers(ids, V, M, layers)
        predicted = logits.argmax(-1)  # (T,)
        seen += [facts[t] for t in positions]
        right[name] += [bool(predicted[t] == ids[t + 1]) for t in positions]
        itself += [bool(predicted[t] == ids[t]) for t in positions]
    all_right = all(map(all, right.values()))
    for i, ordinal in enumerate(("first", "second")):  # layers that work may do so in any way
        found[f"the {ordinal} layer attends to"] = "one position" if all_right else _most(facts[i] for facts in seen)
    found["the previous token is written into its channels"] = all_right or _most(facts[2] for facts in seen)
    for name, correct in right.items():
        found[f"{name} is continued correctly at"] = f"{sum(correct)} of {len(correct)} positions"
    found["mostly the current token is predicted"] = sum(itself) > 0.8 * len(itself)
    return found


def _texts(V, M):
    """Texts of at most M tokens in which a segment of different tokens occurs twice, each with the positions whose next
    token is determined, and the name of its kind."""
    draw = torch.Generator().manual_seed(1000 * V + M)

    def number(low, high):
        return int(torch.randint(low, high + 1, (1,), generator=draw))

    large = V * M > 10_000  # large matrices get only a few texts, those in which a head fails most easily
    for i in range(3 if large else 40 if M < 100 else 20):
        order = torch.randperm(V, generator=draw)
        length = number(2, min(V // 2, (M - 1) // 2, 6))
        segment, others = order[:length], order[length:]
        room = M - 2 * length
        front = 0 if i % 2 else number(1, max(1, room // 2)) if room > 1 else 0
        front = room if i % 4 == 2 else front  # as late as possible
        between = room - front if large else number(0, room - front)
        kinds = 1 if large or i % 5 == 3 else len(others)  # the same token everywhere, or several
        fill = others[torch.randint(kinds, (front + between,), generator=draw)]
        ids = torch.cat([fill[:front], segment, fill[front:], segment])  # (T,), T <= M
        again = front + length + between
        name = "a segment further on" if front else "a segment at the start of the text"
        yield ids, range(again, again + length - 1), name


def _most(values):
    return Counter(values).most_common(1)[0][0]


def _two_layers(ids, V, M, layers):
    """The logits (T, V) of the two layers; and for each position the kind of positions that the first and the second
    layer attend to, and whether the first has written the previous token into its channels."""
    T = len(ids)
    x = torch.zeros(T, 3 * V + M)  # float32, as the weights
    x[torch.arange(T), ids] = 1.0
    x[torch.arange(T), V + torch.arange(T)] = 1.0
    later, attended = torch.ones(T, T).triu(1).bool(), []
    for W_q, W_k, W_v in layers:
        q, k, v = (x @ W.T for W in (W_q, W_k, W_v))
        scores = q @ k.T / W_q.shape[0] ** 0.5
        weights = scores.masked_fill(later, -math.inf).softmax(dim=-1)
        hidden = (scores.softmax(dim=-1) * later).amax(-1)  # the largest weight of a later position without the mask
        attended.append(torch.where(hidden > 0.5, 2, (weights.amax(-1) > 0.5).long()).tolist())
        x = x + weights.matmul(v)
        if len(attended) == 1:
            largest, token = x[:, V + M : 2 * V + M].max(-1)
            written = ((token == ids.roll(1)) & (largest > 0.5)).tolist()
    kinds = ("a mixture of positions", "one position", "a later position, which the mask hides")
    return x[:, -V:], [(kinds[a], kinds[b], ok) for a, b, ok in zip(*attended, written, strict=True)]


# ---------------------------------------------------------------- the trained model

FULL, ENOUGH = 0.10, 0.10  # nats above the line, at most: for all points, to pass the check
NGRAM = 0.86  # nats above the line of the best n-gram (tested); models below it get points
LUCK = 20.0  # nats below the line, summed over a text; an honest model gets there at most once in 485 million texts
STILL = 1e-3  # nats; if log-probabilities change by more when later ids are changed, the model leaks
LEAST = -30.0  # nats: any smaller log-probability counts as this one


@metric
def loss_above_the_line(truths, outputs):
    """The loss of the passages above the source's own. The second case has the same passages with later ids changed."""
    (first, changed), (logits, moved) = truths, outputs
    ids, line = first["ids"], first["nats"][:, 1:].mean().item()
    same = (ids == changed["ids"]).cumprod(1).bool()  # (B, T): positions before the first changed id
    gaps = (_nats(logits) - _nats(moved)).abs().amax(-1).where(same, 0.0)  # (B, T)
    varied = gap_between(logits, logits[:, :1].expand_as(logits)) > LITTLE  # False for a unigram model, which is honest
    if varied and len(logits) > 1 and gap_between(logits, logits[:1].expand_as(logits)) <= LITTLE:
        return Score(0.0, False, "all passages have the same logits, though they hold different tokens")
    if bool((gaps > STILL).any()):
        row, t = divmod(int(gaps.nan_to_num(0.0).argmax()), gaps.shape[1])
        words = f"in one passage, log-probabilities at position {t} moved by {float(gaps[row, t]):.3g} "
        words += f"when only its ids from position {int(same[row].sum())} on were changed"
        rearranged = (logits.roll(1, 1), logits.roll(-1, 1), logits.flip(1))
        elsewhere = any(abs(_loss(x, ids) - line) <= ENOUGH for x in rearranged)
        return Score(0.0, False, words, "at_other_positions" if elsewhere else "sees_later_ids")
    loss = _loss(logits, ids)
    words = f"{loss:.3f} nats per token; the entropy line of these passages is {line:.3f}"
    if not math.isfinite(loss):
        return Score(0.0, False, "a token that occurred has probability 0, so the loss is infinite", "infinite_loss")
    if (line - loss) * ids[:, 1:].numel() > LUCK:
        return Score(0.0, False, f"{words}, and no honest model can be below it", "below_the_line")
    above = loss - line
    fraction = min(1.0, max(0.0, (NGRAM - above) / (NGRAM - FULL)))
    passed = above <= ENOUGH
    if not passed and (half := _loss(logits / 2, ids)) - line <= ENOUGH:
        return Score(
            min(fraction, 0.5), False, f"{words}; with logits half as large it is {half:.3f}", "low_temperature"
        )
    if not passed:
        words += f", and the check asks for {line + ENOUGH:.3f}"
        if above < NGRAM:  # with another learning rate or class, an induction head may not form within 1,200 steps
            words += ". If the repeated letters aren't learned yet, delete the saved weights and take another seed"
    return Score(fraction, passed, words, None if passed else _what_went_wrong(logits, ids, fraction))


def _loss(logits, ids) -> float:
    """Nats per token over all tokens except the first of each passage."""
    return F.cross_entropy(logits[:, :-1].double().flatten(0, 1), ids[:, 1:].flatten()).item()


def _nats(logits):
    """Log-probabilities of logits (..., V), at least LEAST, because a leak has to be measured in probabilities."""
    return torch.log_softmax(logits.double(), dim=-1).clamp(min=LEAST)


def _what_went_wrong(logits, ids, fraction: float) -> str | None:
    """The name of the mistake that the logits of a model with too high a loss show, if any."""
    one_hot = bool(((logits == 0) | (logits == 1)).all())  # one-hot vectors of ids, and not the output of a softmax
    if bool((logits >= 0).all()) and gap_between(logits.sum(-1), torch.ones(ids.shape)) <= LITTLE and not one_hot:
        return "probabilities"
    rows, tokens = logits.flatten(0, 1), ids.flatten()  # (B T, V), (B T,)
    table = torch.zeros(int(tokens.max()) + 1, rows.shape[-1], dtype=rows.dtype)
    table[tokens] = rows  # the logits at one position of each token
    if gap_between(table[tokens], rows) <= LITTLE < gap_between(rows, rows[:1].expand_as(rows)):
        return "a_table"
    return None if fraction else "not_trained"
