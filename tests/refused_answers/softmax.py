"""Wrong answers of lesson 6 without a name of their own: each must be refused on every seed."""

SHIFT = "x - x.amax(dim=dim, keepdim=True)"
LOG_P = "log_softmax(logits[mask])"

REFUSED = {
    "softmax": [
        (f"torch.exp({SHIFT}) -> torch.exp({SHIFT}) + 1e-10",),
        (f"{SHIFT} -> ({SHIFT}).clamp_min(-20)",),
        ("e = torch.exp( -> x = torch.where(x.isinf(), torch.zeros_like(x), x)\n    e = torch.exp(",),
    ],
    "log_softmax": [("shifted = -> x = x.clamp_min(-1e9)\n    shifted =",)],
    "cross_entropy": [
        (f"{LOG_P} -> torch.softmax(logits[mask], -1).clamp_min(1e-8).log()",),
        (f"{LOG_P} -> log_softmax(logits, 1)[mask]",),
        ("targets != ignore_index -> targets >= 0",),
    ],
    "softmax_with_temperature": [("temperature <= 0 -> not isinstance(temperature, float) or temperature <= 0",)],
    "entropy": [("torch.finfo(p.dtype).tiny -> 1e-7",)],
}
