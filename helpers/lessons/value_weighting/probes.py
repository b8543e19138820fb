"""Lesson 7. Beside learner code: the scenarios. Only on numbers: nothing."""

from helpers.checking.registry import scenario
from helpers.checking.tensor_memory import require_in_sight, tensors_alive


@scenario
def in_little_memory(answer, args, kwargs):
    """answer(Q, K, V, block), and whether every tensor on the way was smaller than all scores together.

    together: the same for all tensors that live at one time; and whether rows of scores over all T_k keys came into
    being. For sizes at which blocks are far smaller than rows, and rows far longer than a key or a value is wide.
    """
    Q, K = args[:2]
    row = Q.shape[:-2].numel() * K.shape[-2]  # numbers in one row of scores for each leading index
    scores = Q.shape[-2] * row
    output, seen = tensors_alive(answer, *args, long=row)
    require_in_sight(seen.made, scores, "the memory")
    claims = {"output": output, "every tensor holds fewer than T_q · T_k numbers": seen.largest < scores}
    if kwargs["together"]:
        claims["all tensors of one moment hold fewer than T_q · T_k numbers together"] = seen.most < scores
        claims["no row of scores spans all T_k keys"] = seen.long < scores
    return claims, []
