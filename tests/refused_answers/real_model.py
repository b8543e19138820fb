"""Wrong answers to the exercises of lesson 13 that are not among its key's known mistakes."""

NORM = "return F.layer_norm(x, gamma.shape, gamma, beta, 1e-12)"
BY_VALUE = "[(values[i], score) for i, score in zip(best.indices.tolist(), best.values.tolist(), strict=True)]"

REFUSED = {
    "rename_weights": [
        ('name.startswith("encoder.layer.") -> name.startswith("encoder.layer.") and int(name.split(".")[2]) < 6',)
    ],
    "bert_embeddings": [
        (
            f"{NORM} -> x = x - x.mean(-1, keepdim=True)\n"
            "    return x / (x.square().mean(-1, keepdim=True).sqrt() + 1e-12) * gamma + beta",
        ),
        ("beta, 1e-12) -> beta, 1e-8)",),
        ("beta, 1e-12) -> beta, 0.0)",),
        (f"{NORM} -> return F.layer_norm(x, x.shape[1:], None, None, 1e-12) * gamma + beta",),
    ],
    "strongest_head": [
        ("attention[:, :, query, key] -> attention[:, :, query, key] * (attention[:, :, query].argmax(-1) == key)",)
    ],
    "search": [
        ("scores.topk(k) -> scores.topk(min(k + 1, len(values)))",),
        (
            f"return {BY_VALUE} -> return sorted(dict(zip(values, scores.tolist(), strict=True)).items(), "
            "key=lambda pair: -pair[1])[:k]",
        ),
        ("best.values.tolist(), strict=True)] -> best.values.tolist(), strict=True) if score > 0]",),
    ],
    "fixed_sentence_vectors": [("mean_pool(x, mask) -> mean_pool(x.detach(), mask)",)],
}
