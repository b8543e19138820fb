"""Wrong answers to the exercises of lesson 3 that are not among its key's known mistakes."""

REFUSED = {
    "hard_lookup": [
        ("values[matches.argmax()] -> values[matches.argmax()].squeeze()",),
        ("values[matches.argmax()] -> values[matches.argmax()].detach()",),
        ("values[matches.argmax()] -> (matches == matches.max()).to(values.dtype) @ values",),
    ],
    "project": [("x @ W.T -> (x @ W.T).squeeze()",)],
    "attention_scores": [("Q @ K.transpose(-2, -1) -> (Q @ K.transpose(-2, -1)).squeeze()",)],
    "previous_token_weights": [
        ("return W_q, W_k -> return W_q.double(), W_k.double()",),
        *((f"W_q[steps - 1, steps] = 1.0 -> W_q[steps - 1, steps] = (steps < {n}).float()",) for n in (200, 256, 300)),
        (
            "return W_q, W_k -> angle = torch.arange(max_len, dtype=torch.float64)\n"
            "    W_k = torch.stack((angle.cos(), angle.sin())).float()\n    return W_k.roll(1, dims=1), W_k",
        ),
    ],
    "bigram_probabilities": [
        ("counts / followed, -> counts.double() / followed,",),
        ("followed, 1 / vocab_size -> followed, torch.eye(vocab_size)",),
    ],
    "two_channel_graph": [
        ("return W_k[:, looks_at], W_k -> return W_k[:, looks_at].double(), W_k.double()",),
        ("return W_k[:, looks_at], W_k -> return W_k[:, looks_at].T, W_k.T",),
        ("return W_k[:, looks_at], W_k -> return 0 * W_k, 0 * W_k",),
        ("return W_k[:, looks_at], W_k -> return 1e30 * W_k[:, looks_at], 1e30 * W_k",),
        ("return W_k[:, looks_at], W_k -> return torch.cat((W_k[:, looks_at],) * 2), torch.cat((W_k,) * 2)",),
        ("W_k[:, looks_at], -> W_k[:, (looks_at + 1) % len(looks_at)],",),
    ],
    "attention_edges": [
        (">= threshold -> >= threshold and edge[2] > 0",),
        ("edge: -edge[2] -> edge: (edge[2], edge[0], edge[1]), reverse=True",),
        (
            "return sorted(edges, -> edges = [(*pair, w) for pair, w in {edge[:2]: edge[2] for edge in edges}.items()]"
            "\n    return sorted(edges,",
        ),
    ],
}

DOTS, BOTH = "Q @ K.transpose(-2, -1)", "return W_q, W_k -> return {}"

EXPLAINED = {
    "fixed_self_scores": [
        (f"{DOTS} -> Q @ K.T", "all_axes_reversed"),
        (f"{DOTS} -> Q @ K.transpose(0, 1)", "first_two_axes"),
    ],
    "attention_scores": [(f"{DOTS} -> -torch.cdist(Q, K)", None)],
    "two_channel_graph": [
        ("W_k[:, looks_at] -> W_k[:, (looks_at + 1) % len(looks_at)]", "query 0 attends to:", "yours    token ")
    ],
    "previous_token_weights": [
        (BOTH.format("W_q.long(), W_k.long()"), "the dtype of W_q is:", "yours    int64"),
        (BOTH.format("W_k, W_q"), "looks_ahead"),
        ("W_q[steps - 1, steps] -> W_q[steps, steps - 1]", "looks_ahead"),
    ],
    "attention_edges": [
        ("sorted(edges, key=lambda edge: -edge[2]) -> sorted(edges, reverse=True)",),
        # Like a sort that reorders equal weights. The message must name ties, not repeated words.
        ("enumerate(row)] -> sorted(enumerate(row), key=lambda at: at[0] % 3)]", "✗ ties by position", "✓ values"),
    ],
}
