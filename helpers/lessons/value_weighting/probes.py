"""Probes of lesson 7: a scenario, which runs alongside learner code."""

from helpers.checking.registry import scenario
from helpers.checking.tensor_memory import require_in_sight, tensors_alive


@scenario
def in_little_memory(answer, args, kwargs):
    """answer(Q, K, V, block), and whether every intermediate tensor was smaller than the full table of scores.

    together: whether to measure all tensors in memory at the same time as well, and rows of scores over all T_k keys.
    Sizes must be such that blocks are much shorter than rows, and rows much longer than keys and values are wide.
    """
    Q, K = args[:2]
    row = Q.shape[:-2].numel() * K.shape[-2]  # entries of one row of scores, for all leading indices
    scores = Q.shape[-2] * row
    output, memory = tensors_alive(answer, *args, long=row)
    require_in_sight(memory.made, scores, "the memory")
    claims = {"output": output, "every tensor has fewer than T_q · T_k entries": memory.largest < scores}
    if kwargs["together"]:
        claims["at any moment, all tensors together have fewer than T_q · T_k entries"] = memory.most < scores
        claims["no row of scores spans all T_k keys"] = memory.long < scores
    return claims, []
