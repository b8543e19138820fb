"""Wrong answers of lesson 7 without a name of their own: each must be refused on every seed."""

INF, LEFT = 'float("-inf")', "weights = weights.masked_fill(~mask, 0.0) -> pass"
RESULT = "return weighted_values(weights, V), weights"

REFUSED = {
    "attention": [
        (f"{INF} -> -10000.0",),
        (f"{INF} -> -1000.0",),
        (
            f"{INF} -> -1e9",
            LEFT,
            f"{RESULT} -> return weighted_values(weights if mask is None else weights * mask, V), weights",
        ),
        (f"{RESULT} -> return weights, weighted_values(weights, V)",),
        ("torch.softmax(scores, dim=-1) -> scores.exp() / scores.exp().sum(dim=-1, keepdim=True).clamp_min(1e-30)",),
    ],
    "attention_backward": [
        (
            "dV = weights.transpose(-2, -1) @ grad_out"
            " -> dV = (weights if Q.shape[-2] == K.shape[-2] else weights.transpose(-2, -1)) @ grad_out",
        )
    ],
    "tiled_attention": [
        ("Q.shape[-1] ** 0.5 -> V.shape[-1] ** 0.5",),
        ("total * repair -> total",),
        ("peak = higher -> pass",),
    ],
}
