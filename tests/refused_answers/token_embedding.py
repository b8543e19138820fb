"""Wrong answers to the exercises of lesson 1 that have no name in its key."""


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
        ("in tokenize(sentence)]) -> in tokenize(sentence)]).squeeze()",),
        ("[vocab[token] for token in tokenize(sentence)] -> sorted(vocab[token] for token in tokenize(sentence))",),
    ],
    "one_hot": [(".float() -> ",), (".float() -> .float().squeeze()",)],
    "embed": [("table[ids] -> table[ids].float()",), ("table[ids] -> table[ids].squeeze()",)],
    "cosine_similarity": [
        ("unit(a) @ unit(b).T -> a @ unit(b).T",),
        ("torch.where(length > 0, length, 1) -> (length**2 + 1e-8) ** 0.5",),
        ("unit(a) @ unit(b).T -> (unit(a) @ unit(b).T).abs()",),
    ],
    "negative_sampling_gradients": [
        (
            "torch.sigmoid(center @ context) - 1 -> (center @ context).exp() / (1 + (center @ context).exp()) - 1",
            "torch.sigmoid(negatives @ center) -> (negatives @ center).exp() / (1 + (negatives @ center).exp())",
        ),
        ("excess[:, None] * center -> (excess[:, None] * center).squeeze()",),
    ],
    "fixed_neighbors": [("topk(k).indices -> topk(k).indices.squeeze()",)],
    "skipgram_pairs": [("return pairs -> return sorted(pairs)",)],
    "negative_sampling_loss": [
        ("(negatives * center[:, None]).sum(-1) -> (negatives @ center[:, :, None]).squeeze()",)
    ],
    "wordpiece": [goes_back],
}
