"""Wrong answers to the exercises of lesson 8 that have no name in its key."""

OPEN = "mask if mask is None else mask | ~mask.any(-1, keepdim=True)"
FROZEN = "with torch.no_grad(): -> mine.requires_grad_(False)\n    with torch.enable_grad():"
MASKED = "attention(Q, K, V, mask) -> attention(Q, K, V, {})"
BY_SENTENCE = "mask if mask is None or mask.dim() != 3 else mask[:, None]"
PADDED_QUERIES = (
    "mask & mask.mT if mask is not None and mask.dim() == 4 and key is query and mask.shape[2] == 1 else mask"
)

GIVEN = "mask is not None and mask.dim()"
LAYOUTS = [  # a mask's first axis taken for the sentences, and masks that are left out
    f"mask[:, None, None] if {GIVEN} == 2 and len(mask) == len(Q) else mask",
    BY_SENTENCE,
    f"None if {GIVEN} == 1 else mask",
    f"mask | ~mask.any(-1, keepdim=True) if {GIVEN} == 4 else mask",
]

MERGED = "return x.transpose(1, 2).reshape(B, T, H * d_head) -> return {}"
BY_ROWS = "{0}.view(-1, {0}.shape[-1]).view({0}.shape)"

REFUSED = {
    "split_heads": [
        (
            "return x.view(B, T, num_heads, D // num_heads) -> if T == num_heads:\n"
            "        return x.unflatten(-1, (num_heads, -1))\n    return x.view(B, T, num_heads, D // num_heads)",
        )
    ],
    "merge_heads": [(MERGED.format("(x if H == T else x.transpose(1, 2)).reshape(B, T, H * d_head)"),)],
    "MultiHeadAttention": [
        *((MASKED.format(layout),) for layout in LAYOUTS),
        (MASKED.format("None if len(Q) == 1 else mask"),),
        (MASKED.format(f"mask if key is query else {OPEN}"),),
        (MASKED.format("None if self.training else mask"),),
        (MASKED.format(PADDED_QUERIES),),
        (f"self.W_q(query) -> self.W_q({BY_ROWS.format('query')})",),
        ("value = key if value is None else value -> value = key if value is None or self.training else value",),
        (
            "key = query if key is None else key -> old = self.__dict__.setdefault('old', query)\n"
            "        key = (old if old.shape == query.shape else query) if key is None else key",
        ),
        (MASKED.format("mask if mask is not None and mask.any() else None"),),
        ("key = query if key is None else key -> key, value = (query, query) if key is None else (key, value)",),
    ],
    "load_from_torch": [("layer.bias.copy_(bias) -> layer.bias.zero_()",), (FROZEN,)],
    "fixed_heads": [
        *((MASKED.format(mask),) for mask in (OPEN, *LAYOUTS)),
        (f"x @ W_q.T -> {BY_ROWS.format('x')} @ W_q.T",),
        ("merge_heads(heads) -> (heads.reshape(x.shape) if x.shape[1] == num_heads else merge_heads(heads))",),
    ],
    "grouped_query_attention": [
        *((MASKED.format(mask),) for mask in (OPEN, *LAYOUTS)),
        ("group = Q -> Q = Q.view(len(Q), -1).view(Q.shape)\n    group = Q",),
    ],
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
