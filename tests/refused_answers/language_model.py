"""Wrong answers to the exercises of lesson 12 that have no name in its key."""

LOSS = "F.cross_entropy(logits.flatten(0, 1), targets.flatten())"
TRAINED, ASKED = "context = tuple(train[t - order + 1 : t])", "context = tuple(test[t - order + 1 : t])"
DRAW, SHORTENED = "torch.multinomial(p, 1, generator=generator)", "ids[:, -model.block_size :]"
CUT = "filter_logits(logits, top_k=top_k)"
STARTS = "torch.randint(len(data) - block_size,"

REFUSED = {
    "ngram_loss": [
        (
            f'{TRAINED} -> context = "".join(map(str, train[t - order + 1 : t]))',
            f'{ASKED} -> context = "".join(map(str, test[t - order + 1 : t]))',
        ),
        (
            f"{TRAINED} -> context = tuple(train[:t][-(order - 1) :])",
            f"{ASKED} -> context = tuple(test[:t][-(order - 1) :])",
        ),
        (f"{ASKED} -> {ASKED}\n        if context not in contexts:\n            continue",),
        ("math.log(seen / -> math.log2(seen /",),
    ],
    "get_batch": [
        ("starts = torch.randint( -> generator.manual_seed(generator.initial_seed())\n    starts = torch.randint(",),
        (f"{STARTS} -> torch.randint(max(1, len(data) - block_size - 1),",),
        (f"{STARTS} -> torch.randint(min(1, len(data) - block_size - 1), len(data) - block_size,",),
        ("data[positions], data[positions + 1] -> data[positions].int(), data[positions + 1].int()",),
    ],
    "next_token_loss": [
        (f"{LOSS} -> -(logits.softmax(-1).gather(-1, targets[..., None]) + 1e-10).log().mean()",),
        (f"{LOSS} -> {LOSS}.item()",),
        (f"{LOSS} -> {LOSS} * targets.shape[0]",),
        ("targets.flatten()) -> targets.flatten()).exp()",),
    ],
    "GPT": [("return self.unembed(self.norm(x)) -> return self.unembed(self.norm(x)).transpose(1, 2)",)],
    "generate": [
        (f"{SHORTENED} -> ids[:, ids.shape[1] - model.block_size :]",),
        ("torch.no_grad(): -> torch.no_grad():\n        generator = generator or torch.Generator().manual_seed(0)",),
        (f"{DRAW} -> torch.multinomial(p[:1], 1, generator=generator).expand(len(ids), 1)",),
        (f"drawn = {DRAW} -> torch.manual_seed(0); drawn = {DRAW.replace('generator=generator', 'generator=None')}",),
        ("return ids -> return ids[:, -max_new_tokens:] if max_new_tokens else ids[:, :0]",),
        (f"drawn = {DRAW} -> drawn = {DRAW} if generator else p.argmax(-1, keepdim=True)",),
        (f"p = torch.softmax({CUT}, dim=-1) -> p = torch.exp({CUT})",),
        *(
            (f"{CUT} -> logits if top_k is None else logits.masked_fill(logits < {least}, -math.inf)",)
            for least in ("logits.topk(top_k).values[-1, -1]", "logits.topk(top_k).values.min()")
        ),
        ("/ temperature -> / max(temperature, 0.1)",),
    ],
    "induction_head": [
        ("sharp = 3 * V + M, 100.0 * (V + M) ** 0.5 -> sharp = 3 * V + M, 10.0",),
        ("return [(sharp * W_q, -> W_k[M // 2 + 1 :] = 0\n    return [(sharp * W_q,",),  # blind to late places
        ("[(sharp * W_q, W_k, copy), (sharp -> [(0.008 * sharp * W_q, W_k, copy), (0.3 * sharp",),
    ],
}
