"""Wrong answers to the exercises of lesson 8 that are not among its key's known mistakes."""

import torch

from helpers import blocks

OPEN = "mask if mask is None else mask | ~mask.any(-1, keepdim=True)"
FROZEN = "with torch.no_grad(): -> mine.requires_grad_(False)\n    with torch.enable_grad():"
MASKED = "attention(Q, K, V, mask) -> attention(Q, K, V, {})"
BY_SENTENCE = "mask if mask is None or mask.dim() != 3 else mask[:, None]"
PADDED_QUERIES = (
    "mask & mask.mT if mask is not None and mask.dim() == 4 and key is query and mask.shape[2] == 1 else mask"
)

GIVEN = "mask is not None and mask.dim()"
LAYOUTS = [  # the first axis of a mask taken for the batch, and masks that are ignored
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

DRAWN = "two results for the same numbers"
LAYERS = "(nn.Linear(d_model, d_model) for _ in range(4))"
ATTENDED = "heads, weights = attention(Q, K, V, mask)"
COPIED = "layers = (mine -> {}\n    layers = (mine"
KEPT: dict = {}


def in_one_buffer(x, num_heads):
    heads = blocks.split_heads(x, num_heads)
    return KEPT.setdefault((heads.shape, heads.dtype), torch.empty_like(heads)).detach().copy_(heads)


EXPLAINED = {
    "split_heads": [
        (in_one_buffer, "compared after the second"),
        (
            "x.view(B, T, num_heads, D // num_heads).transpose(1, 2) -> x.view(B, num_heads, T, -1)",
            "cut_without_moving",
        ),
    ],
    "MultiHeadAttention": [
        ("if d_model % num_heads: -> if False:", "no_check", "not: {"),
        ("value = key if value is None -> value = query if value is None", "value_is_query", "not: {"),
        (
            f"{LAYERS} -> [*{LAYERS}][:1] * 4",
            "W_q.weight and W_k.weight of your module are one and the same tensor",
            "not: raised",
        ),
        (
            "return self.W_o(merge_heads(heads)) -> return F.dropout(self.W_o(merge_heads(heads)), 0.1, self.training)",
            DRAWN,
        ),
        (MASKED.format("None if self.training else mask"), f"not: {DRAWN}"),
        (MASKED.format(LAYOUTS[-1]), "not: first item"),
        (
            (
                "if d_model % num_heads: -> if False:",
                "self.num_heads = num_heads -> self.heads = num_heads",
                *(f"self.W_{x}, self.num_heads -> self.W_{x}, self.heads" for x in ("q(query)", "k(key)", "v(value)")),
                f"{LAYERS} -> {LAYERS}\n        self.W_q.bias.requires_grad_(False)",
            ),
            "your module has no num_heads",
            "not: a string",
            "expected a ValueError, but your code made the module",
            "your parameter W_q.bias is frozen",
            "not: differentiated Tensors",
        ),
        (
            f"{ATTENDED} -> {ATTENDED}\n        if mask is not None and mask.any(-1).all():\n"
            "            weights = torch.softmax(Q @ K.mT / Q.shape[-1] ** 0.5 - 1e4 * ~mask, dim=-1)\n"
            "            heads = weights @ V",
        ),
    ],
    "load_from_torch": [
        (
            COPIED.format("mine.W_o = copy.deepcopy(theirs.out_proj)"),
            "mine still has its own parameters, and no new ones",
        ),
        (COPIED.format("theirs.requires_grad_(False)"), "theirs can still be trained"),
        (COPIED.format("theirs.eval()"), "theirs is in training mode, as before"),
        (
            COPIED.format("mine.W_o.weight.data = theirs.out_proj.weight.data"),
            "this should be so, but it isn't yet: mine shares no memory with theirs",
        ),
        (
            (FROZEN, "layer.bias.copy_(bias) -> layer.bias.copy_(bias)\n    mine.requires_grad_(True)"),
            "leaf tensors, not results of a computation",
        ),
    ],
    "head_importance": [
        ("d_head = x -> mha.requires_grad_(False)\n    d_head = x", "mha can still be trained", "not: {")
    ],
}
