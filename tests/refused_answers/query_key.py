"""Wrong answers to the exercises of lesson 3 that have no name in its key."""

REFUSED = {
    "hard_lookup": [
        ("values[matches.argmax()] -> values[matches.argmax()].squeeze()",),
        ("values[matches.argmax()] -> values[matches.argmax()].detach()",),
        ("values[matches.argmax()] -> (matches == matches.max()).to(values.dtype) @ values",),
    ],
    "project": [("x @ W.T -> (x @ W.T).squeeze()",)],
    "attention_scores": [("Q @ K.transpose(-2, -1) -> (Q @ K.transpose(-2, -1)).squeeze()",)],
    "previous_token_weights": [("return W_q, W_k -> return W_q.double(), W_k.double()",)],
    "bigram_probabilities": [
        ("counts / followed, -> counts.double() / followed,",),
        ("followed, 1 / vocab_size -> followed, torch.eye(vocab_size)",),
    ],
    "two_channel_graph": [
        ("return W_k[:, looks_at], W_k -> return W_k[:, looks_at].double(), W_k.double()",),
        ("return W_k[:, looks_at], W_k -> return W_k[:, looks_at].T, W_k.T",),
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
