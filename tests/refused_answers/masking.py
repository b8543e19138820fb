"""Wrong answers of lesson 5 without a name of their own: each must be refused on every seed."""

REAL = "torch.arange(T, device=lengths.device) < lengths[:, None]"
MASKED, UNCUT = "mask_scores(scores, mask)", "torch.where(mask, weights, 0.0) -> weights"
PEAK = "scores.masked_fill(~mask, -1e9).amax(-1, keepdim=True)"
WEIGHTS = "masked_softmax(scores, causal_mask(Q.shape[-2]).to(Q.device))"
FUTURE, COMPARED = "other[:, start:]", "after[:, :start], before[:, :start]"

REFUSED = {
    "causal_mask": [("tril(T_k - T_q) -> tril(T_k - T_q).long()",)],
    "padding_mask": [(f"{REAL} -> torch.arange(T) < ((lengths - 1) % T)[:, None]",)],
    "combine_masks": [("[:, None, None, :] -> [:, None, None, :] & padding[:, None, -causal.shape[0] :, None]",)],
    "mask_scores": [
        ("-math.inf -> -1e4 * scores.abs().max()",),
        ("~mask -> torch.ones(scores.shape[-2:]).triu(1).bool()",),
    ],
    "masked_softmax": [
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
        (f"{WEIGHTS} -> torch.softmax(scores.tril().masked_fill(scores.tril() == 0, -torch.inf), dim=-1)",),
        (f"{WEIGHTS} -> torch.softmax(scores + torch.full_like(scores, -10000.0).triu(1), dim=-1)",),
    ],
}
