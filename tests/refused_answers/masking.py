"""Wrong answers to the exercises of lesson 5 that are not among its key's known mistakes."""

import torch

MASKED, UNCUT = "mask_scores(scores, mask)", "torch.where(mask, weights, 0.0) -> weights"
PEAK = "scores.masked_fill(~mask, -1e9).amax(-1, keepdim=True)"
WEIGHTS = "masked_softmax(scores, causal_mask(Q.shape[-2]).to(Q.device))"

LAYOUTS = [  # the first axis of a mask taken for the batch
    "mask[:, None, None] if mask.dim() == 2 and scores.dim() == 4 and len(mask) == len(scores) else mask",
    "mask[:, None] if mask.dim() == 3 and scores.dim() == 4 else mask",
]
KEPT = "torch.where(mask, weights, 0.0) -> (weights if mask.dim() == 1 else torch.where(mask, weights, 0.0))"

REFUSED = {
    "causal_mask": [("tril(T_k - T_q) -> tril(T_k - T_q).long()",)],
    "padding_mask": [("lengths[:, None] -> (lengths[:1] if (lengths == T).all() else lengths)[:, None]",)],
    "mask_scores": [
        *((f"~mask -> ~({layout})",) for layout in LAYOUTS),
        ("-math.inf -> -1e4 * scores.abs().max()",),
        ("~mask -> torch.ones(scores.shape[-2:]).triu(1).bool()",),
    ],
    "masked_softmax": [
        *((f"weights = torch.softmax( -> mask = {layout}\n    weights = torch.softmax(",) for layout in LAYOUTS),
        (f"{MASKED} -> scores.masked_fill(~mask, -1e30)", KEPT),
        (f"{MASKED} -> scores.masked_fill(~mask, -1000.0)",),
        (f"{MASKED} -> (scores * mask).masked_fill(scores * mask == 0, -1e9)",),
        (f"{UNCUT} if mask.any() else torch.zeros_like(scores)",),
        (
            f"torch.softmax({MASKED}, dim=-1) -> (e := (scores - scores.amax()).exp() * mask)"
            " / e.sum(-1, keepdim=True).clamp(min=1e-30)",
        ),
        (
            f"torch.softmax({MASKED}, dim=-1) -> (e := (scores - {PEAK}).clamp(max=0).exp() * mask)"
            " / (e.sum(-1, keepdim=True) + 1e-6)",
        ),
    ],
    "leaks_future": [
        ("range(1, x.shape[1]) -> range(1, x.shape[1] - 1)",),
        ("before, other = f(x), -> before = f(x); torch.manual_seed(0); other =", "while -> while False and"),
    ],
    "fixed_causal_attention": [
        *(
            (f"{WEIGHTS} -> torch.softmax(scores.masked_fill(~causal_mask(Q.shape[-2]), {fill}), dim=-1)",)
            for fill in (-1e4, -1000.0)
        ),
        *(
            (f"/ Q.shape[-1] ** 0.5 -> / {root}",)  # right for d_k = 4 only
            for root in ("(Q.shape[-1] / 2)", "2", "math.isqrt(Q.shape[-1])", "math.log2(Q.shape[-1])")
        ),
        (f"{WEIGHTS} -> torch.softmax(scores.tril().masked_fill(scores.tril() == 0, -torch.inf), dim=-1)",),
        (f"{WEIGHTS} -> torch.softmax(scores + torch.full_like(scores, -10000.0).triu(1), dim=-1)",),
    ],
}

AFTER = "after = f(torch.cat([x[:, :start], other[:, start:]], dim=1))"
REPLACED = "scores.masked_fill(~mask, -math.inf)"
WHERE = f"{REPLACED} -> torch.where(mask, scores, {{}})"
AS_NUMBERS = {
    "causal_mask": ".tril(T_k - T_q) -> .tril(T_k - T_q).{}()",
    "padding_mask": " < lengths[:, None] -> .lt(lengths[:, None]).{}()",
    "combine_masks": "causal & padding[:, None, None, :] -> (causal & padding[:, None, None, :]).{}()",
}


def by_slopes(f, x):
    jacobian = torch.autograd.functional.jacobian(f, x).abs().amax((0, 2, 3, 5))
    return bool((jacobian.triu(1) > 1e-6).any())


EXPLAINED = {
    **{name: [(edit.format(kind), " bool") for kind in ("float", "int", "long")] for name, edit in AS_NUMBERS.items()},
    "mask_scores": [
        (f"{REPLACED} -> scores - 1e9 * ~mask", "large_number_added", 0),
        (f"{REPLACED} -> scores + ~mask * -1e9", "large_number_added"),
        (
            f"{REPLACED} -> scores[mask.expand(scores.shape)]",
            "wrong_shape",
            "scores that may be seen:",
            "expected shape (4, 6)",
        ),
        (
            f"{REPLACED} -> {REPLACED}.float()",
            "scores that may be seen: expected dtype float64, yours is float32",
            "with mask_scores(<float64 (4, 6)>, <bool (4, 6)>)",
        ),
        (WHERE.format("scores.amin(-1, keepdim=True) - 1000"), "softmax turns each into 0 here", "not: plus"),
        (WHERE.format("scores.amin(-1, keepdim=True) - 1e9"), "numbers that differ", "not: plus"),
        (WHERE.format("-1e6 - scores.abs()"), "numbers that differ", "not: plus"),
        (WHERE.format("scores - 1e9"), "the score plus -1e+09"),
    ],
    "leaks_future": [
        (by_slopes,),
        (f"{AFTER} -> after = f(x[:, :start])", "replace the rows after t, do not cut them off"),
        (lambda f, x: bool((f(x) != f(x.roll(1, 1))).any()), None),
        ("after[:, :start], before[:, :start] -> after, before", "later_outputs_compared"),
        ("before, other = f(x) -> x = x.detach().float()\n    before, other = f(x)", " dtype"),
    ],
}
