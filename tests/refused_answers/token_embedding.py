"""Wrong answers to the exercises of lesson 1 that are not among its key's known mistakes."""


def goes_back(word, vocab, unk="[UNK]"):
    def split(start):
        if start == len(word):
            return []
        for end in range(len(word), start, -1):
            piece = ("##" if start else "") + word[start:end]
            if piece in vocab and (rest := split(end)) is not None:
                return [piece, *rest]
        return None

    return split(0) or [unk]


UNKNOWN = (
    "return torch.tensor( -> if set(tokenize(sentence)) - set(vocab):\n"
    "        raise KeyError({})\n    return torch.tensor("
)
FORCES = "d_center, lack * center, excess[:, None] * center"
LOSS = "-(F.logsigmoid(good) + F.logsigmoid(-bad).sum(-1)).mean()"
BY_TOKEN = '"".join(x for x in token if x not in ",.!?;:") for token in sentence.split()'

REFUSED = {
    "tokenize": [
        ('sentence = sentence.replace(mark, "") -> pass', f"sentence.split() -> [{BY_TOKEN}]"),
        ('replace(mark, "") -> replace(mark, "", 1)',),
        ("sentence.split() -> sentence.replace('\\n', ' ').replace('\\t', ' ').split(' ')",),
    ],
    "build_vocab": [("for sentence in sentences -> for sentence in sentences[:1]",)],
    "encode": [
        ("torch.tensor( -> torch.Tensor(",),
        (UNKNOWN.format("f'one of {tokenize(sentence)} is unknown'"),),
        ("in tokenize(sentence)]) -> in tokenize(sentence)]).squeeze()",),
        ("[vocab[token] for token in tokenize(sentence)] -> sorted(vocab[token] for token in tokenize(sentence))",),
    ],
    "one_hot": [(".float() -> ",), (".float() -> .float().squeeze()",), (".float() -> .float().mT",)],
    "embed": [("table[ids] -> table[ids].float()",), ("table[ids] -> table[ids].squeeze()",)],
    "cosine_similarity": [
        ("unit(a) @ unit(b).T -> a @ unit(b).T",),
        *(
            (f"unit(a) @ unit(b).T -> a @ b.T / {lengths}",)
            for lengths in (
                "(a.norm(dim=1)[:, None] * b.norm(dim=1)).clamp_min(1e-5)",
                "(a.norm(dim=1) * b.norm(dim=1))",
                "(a.norm(dim=1, keepdim=True) * b.norm(dim=1, keepdim=True))",
            )
        ),
        ("unit(a) @ unit(b).T -> unit(a) @ (b / (b.norm() + 1e-12)).T",),
        ("unit(a) @ unit(b).T -> (unit(a) @ unit(b).T).abs()",),
    ],
    "negative_sampling_gradients": [
        (
            "torch.sigmoid(center @ context) - 1 -> (center @ context).exp() / (1 + (center @ context).exp()) - 1",
            "torch.sigmoid(negatives @ center) -> (negatives @ center).exp() / (1 + (negatives @ center).exp())",
        ),
        ("excess[:, None] * center -> (excess[:, None] * center).squeeze()",),
        (f"return {FORCES} -> return tuple(part.float() for part in ({FORCES}))",),
        ("lack = -> center = center.clamp(-3, 3)\n    lack =",),
        (
            "lack = -> loss = lambda c, o, n: -F.logsigmoid(c @ o) - F.logsigmoid(-(n @ c)).sum()\n"
            "    return torch.func.grad(loss, (0, 1, 2))(center, context, negatives)\n    lack =",
        ),
    ],
    "fixed_neighbors": [
        ("topk(k).indices -> topk(k).indices.squeeze()",),
        ("topk(k).indices -> topk(k).indices.float()",),
    ],
    "skipgram_pairs": [
        ("return pairs -> return sorted(pairs)",),
        (
            "range(max(0, t - window), min(len(ids), t + window + 1)): -> "
            "[*range(t + 1, min(len(ids), t + window + 1)), *range(max(0, t - window), t)]:",
        ),
    ],
    "negative_sampling_loss": [
        ("(negatives * center[:, None]).sum(-1) -> (negatives @ center[:, :, None]).squeeze()",)
    ],
    "wordpiece": [goes_back],
}

EXPLAINED = {
    "encode": [
        (UNKNOWN.format("'unknown token'"), "the KeyError should name 'pizza'", "yours says: 'unknown token'"),
        (
            "vocab[token] for -> vocab.get(token, 0) for",
            "expected a KeyError, but your code returned a value: torch.tensor([",
        ),
    ],
    "cosine_similarity": [
        ("x.norm(dim=-1, keepdim=True) -> x.square().sum(dim=1, keepdim=True).sqrt()", "nan_on_the_way_back"),
        (
            "unit(a) @ unit(b).T -> torch.nan_to_num(a @ b.T / (a.norm(dim=1)[:, None] * b.norm(dim=1)))",
            "nan_on_the_way_back",
        ),
    ],
    "negative_sampling_loss": [
        (f"{LOSS} -> ((1 + (-good).exp()).log() + (1 + bad.exp()).log().sum(-1)).mean()", "log_of_sigmoid"),
        (
            f"{LOSS} -> -((good.sigmoid() + 1e-8).log() + ((-bad).sigmoid() + 1e-8).log().sum(-1)).mean()",
            "epsilon_1e-8",
        ),
    ],
}
