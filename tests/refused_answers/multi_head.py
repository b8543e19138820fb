"""Wrong answers to the exercises of lesson 8 that have no name in its key."""

OPEN = "mask if mask is None else mask | ~mask.any(-1, keepdim=True)"
FROZEN = "with torch.no_grad(): -> mine.requires_grad_(False)\n    with torch.enable_grad():"

REFUSED = {
    "load_from_torch": [("layer.bias.copy_(bias) -> layer.bias.zero_()",), (FROZEN,)],
    "fixed_heads": [(f"attention(Q, K, V, mask) -> attention(Q, K, V, {OPEN})",)],
    "grouped_query_attention": [(f"attention(Q, K, V, mask) -> attention(Q, K, V, {OPEN})",)],
    "head_importance": [
        (
            "without = copy.deepcopy(mha) -> without, kept = mha, mha.W_o.weight",
            "without.W_o.weight[:, own] = 0 -> without.W_o.weight = torch.nn.Parameter(kept.clone())\n"
            "            without.W_o.weight[:, own] = 0",
            "changes.append((out - without(x)[0]).norm()) -> changes.append((out - without(x)[0]).norm())\n"
            "            mha.W_o.weight = torch.nn.Parameter(kept.clone())",
        )
    ],
}
