"""Lesson 12. Beside learner code: the scenarios. Only on numbers: the views and the metric."""

import math
from collections import Counter

import torch
import torch.nn.functional as F
from torch import nn

from helpers.checking.registry import Score, metric, scenario, view
from helpers.checking.scenarios import SAME, WrongParts, causal_logits, gap_between, require_ids, shape_of

# ---------------------------------------------------------------- beside learner code

MANY = 50  # possible windows for each that is drawn: two batches are then never the same
SPREAD = 7.0  # standard deviations that a count may be off: fair dice go further less often than once in 10⁹ batches
FEW = 50  # rows that are written twice in a row: enough never to come out the same


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
def gpt_promises(answer, args, kwargs):
    """args = (init, seed, ids, changed): a GPT as it is made, from a seed. Its block_size, its logits for ids twice in
    evaluation mode, and in training mode those for ids and for `changed`, with the same random numbers for a dropout.
    """
    init, seed, ids, changed = args
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = answer(*init).eval()
        seen = {"block_size": getattr(model, "block_size", None), "twice": [model(ids), model(ids)], "training": []}
        model.train()
        for given in (ids, changed):
            torch.manual_seed(seed)
            seen["training"].append(model(given))
    return seen, []


class _TableModel(nn.Module):
    """ids (B, T) -> logits (B, T, V), T <= block_size: rows of a table, each chosen by the ids up to its place."""

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
    """args = (table, block_size, ids, max_new_tokens): what the answer writes with a causal model that reads its
    logits off a table; the options of the answer in kwargs."""
    table, block_size, *rest = args
    return answer(_TableModel(table, block_size), *rest, **kwargs), []


@scenario
def without_gradient(answer, args, kwargs):
    """args = (ids,): the answer's logits, after it was asked for the last of the passages alone: what is kept of a call
    does no good in the next. WrongParts where a gradient of theirs is still kept."""
    (ids,) = args
    answer(ids[-1:].clone())
    logits = answer(ids)
    if isinstance(logits, torch.Tensor) and logits.requires_grad:
        raise WrongParts("the logits still carry a gradient; compute them without one")
    return logits, []


@scenario
def drawn_texts(answer, args, kwargs):
    """As with_table_model, three times: from the `seed` in kwargs, from the same one and from another one; where there
    are no options once more without a generator. And a few rows twice in a row: from the first generator, and without
    one."""
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
def batch_behavior(args, kwargs, output):
    """What three batches say of get_batch. The data are different numbers, so that a window tells where it is from."""
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
        "y is": _answers(rows, [[index.get(value, -1) for value in row] for row in y.tolist()], len(data)),
    }
    possible = len(data) - block_size
    if batch_size >= 40 * possible:
        found["the first position is a start"] = 0 in starts
        found["the last possible start is drawn"] = possible - 1 in starts
        found["a position in the middle is a start"] = 1 in starts
        each = batch_size / possible
        far = SPREAD * (each * (1 - 1 / possible)) ** 0.5
        counts = [starts.count(start) for start in range(possible)]
        alike = max(abs(n - each) for n in counts) <= far
        found["how often starts are drawn"] = "about equally often" if alike else "some more often than others"
    elif possible >= MANY * batch_size:
        found["rows begin at different positions"] = len(set(starts)) > batch_size / 2
        steps = {b - a for a, b in zip(starts, starts[1:], strict=False)}
        found["each row is drawn by itself"] = len(steps) > 1 or batch_size < 5
        found["the generator alone decides"] = torch.equal(x, output["same seed"]["x"])
        found["another seed, another batch"] = not torch.equal(x, output["another seed"]["x"])
        found["the next batch is another one"] = not torch.equal(x, output["next"]["x"])
    return found


def _kinds(x, y) -> str:
    """What x and y are, in words."""
    if not (isinstance(x, torch.Tensor) and isinstance(y, torch.Tensor)):
        return "no tensors"
    dtypes = ["" if z.dtype == torch.int64 else f" and dtype {str(z.dtype).removeprefix('torch.')}" for z in (x, y)]
    one, other = (f"of shape {tuple(z.shape)}{dtype}" for z, dtype in zip((x, y), dtypes, strict=True))
    kind = "LongTensors" if x.dtype == y.dtype == torch.int64 else "tensors"
    return f"{kind} {one}" if one == other else f"{kind} {one}, and {other}"


def _answers(rows, heard, N) -> str:
    """What y is of x, both as places of a text of N tokens, -1 where a number does not stand in it."""
    for words, by in SHIFTS.items():
        if heard == [[min(i + by, N - 1) if by > 0 else (i + by) % N for i in row] for row in rows]:
            return words
    if all(row[:-1] == [i + 1 for i in own[:-1]] for own, row in zip(rows, heard, strict=True)) and len(rows[0]) > 1:
        if all(row[-1] == own[0] for own, row in zip(rows, heard, strict=True)):
            return "x, one position further on, and at its end the first token of the window"
    return "something else"


SHIFTS = {"x, one position further on": 1, "x itself": 0, "x, one position back": -1}


@view
def whole_contexts_only(args, kwargs, output):
    """An n-gram loss; one that also counts the first few tokens of the test, with shorter contexts, as without them."""
    train, test, order, V, alpha = args
    train, test = [int(i) for i in train], [int(i) for i in test]

    def everywhere(length):
        return [tuple(train[i : i + length]) for i in range(len(train) - length + 1)]

    def short_ones_at_the_start(length):
        return everywhere(length) if length == order else [tuple(train[:length])]

    def loss(first, windows):
        """The mean over the tokens from `first` on, with as much context as each has, counted in these windows."""
        total = 0.0
        for t in range(first, len(test)):
            own = tuple(test[max(0, t - order + 1) : t + 1])
            seen = windows(len(own))
            total -= math.log((seen.count(own) + alpha) / (sum(w[:-1] == own[:-1] for w in seen) + alpha * V))
        return total / (len(test) - first)

    others = (loss(0, windows) for windows in (everywhere, short_ones_at_the_start))
    short = isinstance(output, float) and any(abs(output - other) < 1e-6 for other in others)
    return loss(order - 1, everywhere) if short else output


@view
def gpt_promises_kept(args, kwargs, output):
    """What the numbers of `gpt_promises` say. Whatever is no tensor of logits is judged by other cases."""
    init, _, ids, changed = args
    tensors = [*output["twice"], *output["training"]]
    if not all(shape_of(x) == (*ids.shape, init[0]) for x in tensors):
        return {"logits have the shape (B, T, V)": False}
    once, again, before, after = tensors
    same = int((ids == changed).all(0).long().cumprod(0).sum())  # so many first positions hold the same ids
    return {
        "block_size is kept": output["block_size"] == init[1],
        "the same ids have the same logits in evaluation mode": gap_between(once, again) <= SAME,
        "no position sees a later token in training mode": gap_between(before[:, :same], after[:, :same]) <= SAME,
    }


LITTLE = 1e-3  # of logits: as far apart as rounding takes them
CLEAR = 0.1  # nats: chance alone moves the entropy of 600 draws by much less


@view
def generation_behavior(args, kwargs, output):
    """What texts drawn from a table say: all prompts are alike, so each new first token is a draw from one row."""
    table, block_size, ids, more = args
    text = output["text"]
    shape = (ids.shape[0], ids.shape[1] + more)
    found = {f"the result is a LongTensor of shape {shape}": shape_of(text) == shape and text.dtype == torch.int64}
    if not all(found.values()):
        return found
    found["the text begins with the prompt"] = torch.equal(text[:, : ids.shape[1]], ids)
    found["the same seed gives the same text"] = torch.equal(text, output["same seed"])
    found["another seed gives another text"] = not torch.equal(text, output["another seed"])
    twice = [output[name] for name in ("in a row", "in a row without") if name in output]
    found["two calls in a row give different texts"] = not any(torch.equal(*both) for both in twice)
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

    counts, alone = drawn(text), output.get("no generator", text)
    found["tokens are drawn with the probabilities of the softmax"] = as_wanted = fits(counts)
    more = 0.0 if as_wanted else float(torch.special.entr(counts / n).sum() - torch.special.entr(p).sum())
    words = "more uniform than" if more > CLEAR else "less uniform than" if more < -CLEAR else "as uniform as"
    found["the draws are"] = f"{words} the softmax"
    alike = shape_of(alone) == shape and fits(drawn(alone))
    found["without a generator they are drawn with these probabilities too"] = alike
    if given and not kwargs.get("top_k"):
        tried = {"the given one": given, "1": 1.0, "one over the given one": 1 / given}
        likely = {name: float((counts * torch.log_softmax(raw / t, dim=0)).sum()) for name, t in tried.items()}
        found["the temperature that fits the draws best"] = max(likely, key=likely.get)
    found["no excluded token is drawn"] = not bool((counts[p == 0] > 0).any())
    return found


@view
def continues_segments(args, kwargs, output):
    """How a model of two hand-made layers continues texts in which a segment comes twice."""
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
        logits, looks = _two_layers(ids, V, M, layers)
        said = logits.argmax(-1)  # (T,)
        seen += [looks[t] for t in positions]
        right[name] += [bool(said[t] == ids[t + 1]) for t in positions]
        itself += [bool(said[t] == ids[t]) for t in positions]
    everything = all(map(all, right.values()))
    for i, named in enumerate(("first", "second")):  # of one that does its work nobody asks how
        found[f"the {named} layer attends to"] = "one position" if everything else _most(looks[i] for looks in seen)
    found["the previous token is written into its channels"] = everything or _most(looks[2] for looks in seen)
    for name, held in right.items():
        found[f"{name} is continued correctly at"] = f"{sum(held)} of {len(held)} positions"
    found["mostly the current token is predicted"] = sum(itself) > 0.8 * len(itself)
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
    kinds = ("a mixture of positions", "one position", "a later position, which the mask hides")
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
    ids, line = first["ids"], first["nats"][:, 1:].mean().item()
    same = (ids == changed["ids"]).cumprod(1).bool()  # (B, T): places of both texts up to the first other one
    gaps = (_nats(logits) - _nats(moved)).abs().amax(-1).where(same, 0.0)  # (B, T)
    varied = gap_between(logits, logits[:, :1].expand_as(logits)) > LITTLE  # a model may know no more than frequencies
    if varied and len(logits) > 1 and gap_between(logits, logits[:1].expand_as(logits)) <= LITTLE:
        return Score(0.0, False, "all passages have the same logits, though they hold different tokens")
    if bool((gaps > STILL).any()):
        row, place = divmod(int(gaps.nan_to_num(0.0).argmax()), gaps.shape[1])
        words = f"in one passage, log-probabilities at position {place} moved by {float(gaps[row, place]):.3g} "
        words += f"when only its ids from position {int(same[row].sum())} on were changed"
        others = (logits.roll(1, 1), logits.roll(-1, 1), logits.flip(1))
        elsewhere = any(abs(_loss(turned, ids) - line) <= ENOUGH for turned in others)
        return Score(0.0, False, words, "at_other_positions" if elsewhere else "sees_later_ids")
    loss = _loss(logits, ids)
    said = f"{loss:.3f} nats per token; the entropy line of these passages is {line:.3f}"
    if not math.isfinite(loss):
        return Score(0.0, False, "a token that occurred has probability 0, so the loss is infinite", "infinite_loss")
    if (line - loss) * ids[:, 1:].numel() > LUCK:
        return Score(0.0, False, f"{said}, and no honest model can be below it", "below_the_line")
    above = loss - line
    share = min(1.0, max(0.0, (NGRAM - above) / (NGRAM - FULL)))
    passed = above <= ENOUGH
    if not passed and (half := _loss(logits / 2, ids)) - line <= ENOUGH:
        return Score(min(share, 0.5), False, f"{said}; with logits half as large it is {half:.3f}", "low_temperature")
    if not passed:
        said += f", and the check asks for {line + ENOUGH:.3f}"
        if above < NGRAM:  # a run of the learner's own rate or class may find no induction head within 1,200 steps
            said += ". If the repeated letters aren't learned yet, delete the saved weights and take another seed"
    return Score(share, passed, said, None if passed else _what_went_wrong(logits, ids, share))


def _loss(logits, ids) -> float:
    """Nats per token, of all tokens but each passage's first."""
    return F.cross_entropy(logits[:, :-1].double().flatten(0, 1), ids[:, 1:].flatten()).item()


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
