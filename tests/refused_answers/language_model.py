"""Wrong answers to the exercises of lesson 12 that are not among its key's known mistakes."""

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
    ],
    "get_batch": [
        ("starts = torch.randint( -> generator.manual_seed(generator.initial_seed())\n    starts = torch.randint(",),
        (f"{STARTS} -> torch.randint(max(1, len(data) - block_size - 1),",),
        (f"{STARTS} -> torch.randint(min(1, len(data) - block_size - 1), len(data) - block_size,",),
        ("data[positions], data[positions + 1] -> data[positions].int(), data[positions + 1].int()",),
    ],
    "next_token_loss": [(f"{LOSS} -> -(logits.softmax(-1).gather(-1, targets[..., None]) + 1e-10).log().mean()",)],
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
    "induction_head": [("[(sharp * W_q, W_k, copy), (sharp -> [(0.008 * sharp * W_q, W_k, copy), (0.3 * sharp",)],
}

START = "torch.randint(len(data) - block_size, (batch_size,), generator=generator)"
BATCH = "data[positions], data[positions + 1]"
EQUALLY = "expected about equally often"
BLOCKS = "nn.ModuleList(RotaryBlock(d_model, num_heads, 4 * d_model) for _ in range(num_layers))"
MASK = "causal_mask(ids.shape[1]).to(ids.device)"
UNEMBED = "nn.Linear(d_model, vocab_size)"

EXPLAINED = {
    "get_batch": [
        (
            f"{BATCH} -> data[positions].float(), data[positions + 1]",
            "yours    tensors of shape (5, 6) and dtype float32, and of shape (5, 6)",
        ),
        (
            f"{BATCH} -> data[positions], data[positions].flatten().roll(-1).view(-1, block_size)",
            None,
            "something else",
        ),
        (
            f"{START} -> (torch.randint(len(data) - block_size, (1,), generator=generator)"
            " + torch.arange(batch_size)) % (len(data) - block_size)",
            "each row is drawn by itself",
        ),
        (
            f"{START} -> (torch.rand(batch_size, generator=generator) * (len(data) - block_size - 1)).round().long()",
            EQUALLY,
        ),
        (
            f"{START} -> (torch.randn(batch_size, generator=generator).abs() * (len(data) - block_size) / 4).long()"
            ".clamp(max=len(data) - block_size - 1)",
            EQUALLY,
        ),
        (f"{START} -> {START.replace('block_size, (', 'block_size + 5, (')} % (len(data) - block_size)", EQUALLY),
    ],
    "GPT": [
        (
            f'{MASK} -> self.__dict__.setdefault("mask", causal_mask(ids.shape[1]))[: len(x[0]), : len(x[0])]',
            "called twice",
        ),
        (f"{MASK} -> {MASK} | self.training", "no position sees a later token in training mode"),
        ("self.unembed(self.norm(x)) -> self.unembed(self.norm(x)), None", "expected a tensor of shape"),
        (f"{BLOCKS} -> [*{BLOCKS}]", "Your blocks is a plain list"),
        (f"{BLOCKS} -> {BLOCKS.replace('4 * ', '')}", "blocks.0.feed_forward.up.weight has shape"),
        (f"{BLOCKS} -> nn.ModuleList([*{BLOCKS}][:1] * num_layers)", "of your module are one and the same tensor"),
        (
            f"{UNEMBED} -> {UNEMBED}\n        self.unembed.weight = self.tokens.weight",
            "tokens.weight and unembed.weight of your module are one and the same tensor",
        ),
        (
            (
                "nn.init.normal_(self.tokens.weight, std=0.02) -> self.wte, self.h = self.tokens, self.blocks; "
                "del self.tokens, self.blocks",
                "x = self.tokens(ids) -> x = self.wte(ids)",
                "in self.blocks: -> in self.h:",
            ),
            "your module has no part called tokens; its parts are: norm, unembed, wte, h",
        ),
    ],
    "generate": [("return ids -> return ids.float()", "a LongTensor of shape (600, 5)")],
    "induction_head": [
        ("say[answer, token] -> say[answer, before]", "but the current token is predicted", "yours    0 of "),
        ("(sharp * W_q, -> (1e-3 * sharp * W_q,", "the first layer attends to:", "yours    a mixture"),
        ("(sharp * match, -> (1e-3 * sharp * match,", "the second layer attends to:", "yours    a mixture"),
        ("(sharp * match, -> (50.0 * match,", "✗ a long text of many tokens", "✓ values"),
    ],
}
