"""Wrong answers of lesson 7 without a name of their own: each must be refused on every seed."""

INF, LEFT = 'float("-inf")', "weights = weights.masked_fill(~mask, 0.0) -> pass"
RESULT = "return weighted_values(weights, V), weights"

REFUSED = {
    "attention": [
        (f"{INF} -> -10000.0",),
        (f"{INF} -> -1000.0",),
        (f"{INF} -> -10000.0", LEFT),
        (f"{INF} -> -1000.0", LEFT),
        (f"{RESULT} -> return weighted_values(weights, V).squeeze(), weights.squeeze()",),
        (f"{RESULT} -> return weighted_values(weights, V), None",),
        (
            f"{INF} -> -1e9",
            LEFT,
            f"{RESULT} -> return weighted_values(weights if mask is None else weights * mask, V), weights",
        ),
        (f"{RESULT} -> return weights, weighted_values(weights, V)",),
        ("torch.softmax(scores, dim=-1) -> scores.exp() / scores.exp().sum(dim=-1, keepdim=True).clamp_min(1e-30)",),
    ],
    "weighted_values": [("weights @ V -> (weights @ V).squeeze()",), ("weights @ V -> weights @ V.float()",)],
    "AttentionHead": [
        ("return out -> return F.dropout(out, 0.1, self.training)",),
        (
            "self.W_v(x), mask) -> self.W_v(x), torch.ones(256, 256, dtype=torch.bool)[: x.shape[-2], : x.shape[-2]]"
            " & (torch.tensor(True) if mask is None else mask))",
        ),
    ],
    "context_shift": [
        ("lengths.masked_fill(lengths == 0, 1.0) -> (lengths + 1e-2)",),
        ("lengths.masked_fill(lengths == 0, 1.0) -> lengths.clamp(min=1e-2)",),
        ("lengths.masked_fill(lengths == 0, 1.0) -> lengths.clamp(min=1e-5)",),
        ("return 1 - dots / lengths.masked_fill(lengths == 0, 1.0) -> return 1 - (dots / lengths).nan_to_num(0.0)",),
        ("lengths == 0, 1.0) -> lengths == 0, 1.0).squeeze()",),
    ],
    "attention_backward": [
        ("return dS @ K, dS.transpose(-2, -1) @ Q, dV -> return dS @ K, dS.transpose(-2, -1) @ Q, dV.squeeze()",),
        (
            "dV = weights.transpose(-2, -1) @ grad_out"
            " -> dV = (weights if Q.shape[-2] == K.shape[-2] else weights.transpose(-2, -1)) @ grad_out",
        ),
    ],
    "tiled_attention": [
        ("Q.shape[-1] ** 0.5 -> V.shape[-1] ** 0.5",),
        ("total * repair -> total",),
        ("peak = higher -> pass",),
    ],
}
