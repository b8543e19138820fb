"""Stub and scenarios of lesson 10's checks, which run next to learner code, and a view, which sees only numbers."""

import itertools

import torch

from helpers.checking.registry import scenario, stub, view
from helpers.checking.scenarios import WrongParts, causal_logits, loaded_module, require_ids
from helpers.checking.tensor_memory import require_in_sight, tensors_alive
from helpers.checking.vocabulary import Call

MOST_STEPS, MOST_WORDS = 500, 200  # calls per search and words per prefix: far more than any correct answer needs

# ---------------------------------------------------------------- next to learner code


@stub
def step_from_table(table):
    """step(prefix (1, t)) -> logits (1, V): a row of `table` (rows, V) that depends on all words of the prefix."""

    calls = itertools.count(1)

    def step(prefix):
        require_ids(prefix, "step wants the prefix as a LongTensor of shape (1, t)", 1)
        if prefix.shape[1] > MOST_WORDS:
            raise WrongParts(f"your code has written {prefix.shape[1]} words and goes on; does your loop use max_len?")
        if next(calls) > MOST_STEPS:
            raise WrongParts(f"your code has called step {MOST_STEPS:,} times; does your beam keep beam_size prefixes?")
        return causal_logits(table, prefix)[:, -1]  # (1, V)

    return step


@scenario
def with_model_from_table(answer, args, kwargs):
    """args = (table, src, tgt, pad_id): answer(model, src, tgt, pad_id) for a causal model that takes its logits from
    `table` (rows, V): src and the words of tgt up to position t determine the row of position t."""
    table, *rest = args

    def model(src, tgt):
        require_ids(src, "the model wants src as a LongTensor of shape (B, T_s)")
        require_ids(tgt, "the model wants the decoder's ids as a LongTensor of shape (B, T)")
        return causal_logits(table, tgt, 13 * src.sum(-1, keepdim=True))  # (B, T, V)

    return answer(model, *rest, **kwargs), []


@scenario
def in_pieces(answer, args, kwargs):
    """args = (q, k, v, pieces): feed the tokens piece by piece through the cache -> all outputs, (B, H, T, d).

    With again=True each cache is also continued with other tokens, once before its own continuation and once after it;
    the outputs of the second time are appended. They are wrong if the answer changes the cache that it is given.
    """
    q, k, v, pieces = args
    outs, others, cache = [], [], None
    for piece in zip(*(x.split(pieces, dim=-2) for x in (q, k, v)), strict=True):
        other = [x.flip(-1) + 1 for x in piece] if kwargs.get("again") else None
        if other:
            _pair(answer(*other, cache))
        out, new_cache = _pair(answer(*piece, cache))
        if other:
            others.append(_pair(answer(*other, cache))[0])
        outs.append(out)
        cache = new_cache
    return torch.cat([*outs, *others], dim=-2), []


def _pair(returned):
    """The result of cached_attention if it is a pair that starts with a tensor; otherwise raises WrongParts."""
    kind = f"a {type(returned).__name__}"
    if isinstance(returned, (tuple, list)):
        if len(returned) == 2 and isinstance(returned[0], torch.Tensor):
            return returned
        kind += f" of {len(returned)}: {', '.join(type(x).__name__ for x in returned)}"
    raise WrongParts(f"return a pair (out, cache), with whatever you like as the cache; your code returned {kind}")


@scenario
def work_of_one_more(answer, args, kwargs):
    """args = (q, k, v): feed the tokens one by one, and count the multiply-adds of the call for the last token."""
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.utils.flop_counter import FlopCounterMode

    q, k, v = args
    cache = None
    # FlopCounterMode counts the matrix products of the MATH backend.
    with torch.no_grad(), sdpa_kernel(SDPBackend.MATH):
        for t in range(q.shape[-2] - 1):
            _, cache = _pair(answer(*(x[..., t : t + 1, :] for x in (q, k, v)), cache))
        with FlopCounterMode(display=False) as counter:
            _, seen = tensors_alive(answer, *(x[..., -1:, :] for x in (q, k, v)), cache)
    require_in_sight(seen.made, q.shape[:-1].numel(), "the work")  # at least one score per key
    return {"products": counter.get_total_flops() // 2}, []


@scenario
def encoded_and_decoded(answer, args, kwargs):
    """args = (init_args, state, src, tgt, other): a Transformer's methods, called one after the other.

    Returns the memory of src (with zeros at padding, where any values are allowed), the logits from that memory after
    `other` was encoded as well, and the logits from a memory that no encoder produced. pad_id is 0.
    """
    init, state, src, tgt, other = args
    model, leaves = loaded_module(False, answer, Call((), {}, init, state))
    memory, _ = model.encode(src), model.encode(other)
    without_padding = memory.masked_fill((src == 0)[..., None], 0.0)
    return [without_padding, model.decode(tgt, memory, src), model.decode(tgt=tgt, memory=-memory, src=src)], leaves


# ---------------------------------------------------------------- on numbers only


@view
def work_of_a_row(args, kwargs, output):
    """Whether one more token costs about 2 · T · d multiply-adds per head. Four times as many are allowed, and only
    those of matrix products are counted."""
    B, H, T, d = args[0].shape
    return {"one more token costs about one row of products": output["products"] <= 4 * 2 * B * H * T * d}
