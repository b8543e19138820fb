"""Wrong answers to the exercises of lesson 14 that are not among its key's known mistakes."""

from helpers.blocks import LoRA

SEEN = "(behind >= 0) & ((behind < window) | (key < sinks))"
MASK = "mask = causal_mask( -> {}\n        mask = causal_mask("
FINDALL = 're.findall(r" ?\\S+|\\s", text)'
LOWERED = FINDALL.replace("text", "text.lower()")
RUNS = FINDALL.replace("|\\s", "|\\s+")  # a sequence of white space becomes one piece
BEST = "max(pairs, key=lambda pair: (pairs[pair], pair))"
ADDED = "new.weight += self.scale * self.B @ self.A"

REFUSED = {
    "rms_norm": [
        ("(mean_square + eps) ** 0.5 -> mean_square.clamp_min(eps) ** 0.5",),
        ("x.pow(2).mean(dim=-1, keepdim=True) -> x.pow(2).mean(dim=-1, keepdim=True).detach()",),
    ],
    "apply_rope_half_split": [("positions[:, None] -> (positions - positions[:1])[:, None]",)],
    "LlamaBlock": [
        (MASK.format("self.kept = mask = mask if mask is not None else getattr(self, 'kept', None)"),),
        (MASK.format("mask = None if mask is not None and mask.dim() == 2 else mask"),),
        (
            "self.feed_forward = SwiGLU(d_model, d_ff) -> self.feed_forward = SwiGLU(d_model, d_ff)"
            '\n        self.register_buffer("angles", torch.zeros(d_model))',
        ),
        ("if d_model % num_heads or num_heads % num_kv_heads: -> if False:",),
        ("if d_model % num_heads or num_heads % num_kv_heads: -> if d_model % num_heads:",),
        ("eps=1e-6): -> eps=1e-5):",),
    ],
    "rename_llama": [
        (
            'mine.setdefault("unembed.weight", mine["tokens.weight"])'
            ' -> mine.setdefault("unembed.weight", state_dict.get("lm_head.weight"))',
        )
    ],
    "sliding_window_mask": [
        (f"return {SEEN} -> return ({SEEN}).float()",),
        ("behind < window -> behind < window - sinks",),
        ("key < sinks -> key < sinks + T_k - T_q",),
        ("behind < window -> behind < 4",),
    ],
    "train_bpe": [
        (f"{BEST} -> max(pairs, key=lambda pair: (pairs[pair], b''.join(pair)))",),
        ("for pair in pairwise(tokens): -> for pair in set(pairwise(tokens)):",),
        ("while len(merges) < num_merges: -> while len(merges) <= num_merges:",),
        (f"{FINDALL} -> {LOWERED}",),
        (f"{FINDALL} -> {RUNS}",),
    ],
    "encode_bpe": [
        ("for pair in merges: -> for pair in sorted(merges, key=lambda pair: len(pair[0] + pair[1])):",),
        (f"{FINDALL} -> {LOWERED}",),
    ],
    "LoRA": [
        ("self.linear = linear.requires_grad_(False) -> self.linear = linear; linear.weight.requires_grad_(False)",),
        ("W.device) * W.shape[1] ** -0.5 -> W.device)[:1].repeat(rank, 1)",),
        ("self.scale = alpha / rank -> self.scale = alpha // rank",),
        ("return new -> self.linear.weight.data.copy_(new.weight)\n        return new",),
        (f"{ADDED} -> {ADDED}; self.B.zero_()",),
    ],
}

NORMED = "weight * x / (mean_square + eps) ** 0.5"
DIFFERENCE = "self.linear(x) + self.scale * (x @ self.A.T @ self.B.T)"


class LinearInAList(LoRA):
    """torch neither moves nor saves modules that are stored in a list."""

    def __init__(self, linear, rank, alpha=1.0):
        super().__init__(linear, rank, alpha)
        self.kept = [linear]
        del self.linear

    def __getattr__(self, name):
        return self.kept[0] if name == "linear" else super().__getattr__(name)


EXPLAINED = {
    "rms_norm": [
        (f"{NORMED} -> F.rms_norm(x, x.shape[-1:], weight, eps)", "forbidden_call"),
        (f"{NORMED} -> nn.RMSNorm(x.shape[-1], eps, dtype=x.dtype)(x) * weight", "forbidden_call"),
    ],
    "LlamaBlock": [
        (
            "grouped_query_attention(Q, K, V, mask)"
            " -> F.scaled_dot_product_attention(Q, K, V, attn_mask=mask, enable_gqa=True)",
            "forbidden_call",
        ),
        # The exercise does not forbid nn.LayerNorm, but it is the wrong norm with the right parameter names.
        ("(RMSNorm(rms_norm, d_model, eps) for -> (nn.LayerNorm(d_model, eps, bias=False) for", "layer_norms"),
    ],
    "encode_bpe": [(f"{FINDALL} -> [text] if text else []", "across_pieces")],
    "LoRA": [
        ("W.shape[1] ** -0.5) -> W.shape[1] ** -0.5, requires_grad=False)", "your parameter A is frozen"),
        (f"{DIFFERENCE} -> {DIFFERENCE.replace('(x)', '(x.detach())').replace('(x @', '(x.detach() @')}", "reaches x"),
        (
            f"{DIFFERENCE} -> self.linear(x) + (self.scale * (x @ self.A.T @ self.B.T)).detach()",
            "✗ gradient flows",
            "✗ learning",
            "· merged",
        ),
        ("return new -> self.linear = new\n        return new", "✗ merged", "· gradient flows"),
        ("W.device) * W.shape[1] ** -0.5 -> W.device) * 0", "A_zeros", 5),
        (LinearInAList, None, "in a list, where torch does not see it"),
    ],
}
