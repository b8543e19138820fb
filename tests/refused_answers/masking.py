"""Wrong answers of lesson 5 without a name of their own: each must be refused on every seed."""

REAL = "torch.arange(T, device=lengths.device) < lengths[:, None]"
MASKED, UNCUT = "mask_scores(scores, mask)", "torch.where(mask, weights, 0.0) -> weights"
PEAK = "scores.masked_fill(~mask, -1e9).amax(-1, keepdim=True)"
WEIGHTS = "masked_softmax(scores, causal_mask(Q.shape[-2]).to(Q.device))"
FUTURE, COMPARED = "other[:, start:]", "after[:, :start], before[:, :start]"

LAYOUTS = [  # a mask's first axis taken for the sentences
    "mask[:, None, None] if mask.dim() == 2 and scores.dim() == 4 and len(mask) == len(scores) else mask",
    "mask[:, None] if mask.dim() == 3 and scores.dim() == 4 else mask",
]
KEPT = "torch.where(mask, weights, 0.0) -> (weights if mask.dim() == 1 else torch.where(mask, weights, 0.0))"

REFUSED = {
    "causal_mask": [("tril(T_k - T_q) -> tril(T_k - T_q).long()",)],
    "padding_mask": [
        ("lengths[:, None] -> (lengths[:1] if (lengths == T).all() else lengths)[:, None]",),
        (f"{REAL} -> torch.arange(T) < ((lengths - 1) % T)[:, None]",),
    ],
    "combine_masks": [("[:, None, None, :] -> [:, None, None, :] & padding[:, None, -causal.shape[0] :, None]",)],
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
            (f"/ Q.shape[-1] ** 0.5 -> / {root}",)  # roots of four alone
            for root in ("(Q.shape[-1] / 2)", "2", "math.isqrt(Q.shape[-1])", "math.log2(Q.shape[-1])")
        ),
        (f"{WEIGHTS} -> torch.softmax(scores.tril().masked_fill(scores.tril() == 0, -torch.inf), dim=-1)",),
        (f"{WEIGHTS} -> torch.softmax(scores + torch.full_like(scores, -10000.0).triu(1), dim=-1)",),
    ],
}
