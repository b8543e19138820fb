"""Draws docs/attention.png, the picture of the README, from the real network's weights.

    python docs/readme_picture.py FOLDER      (FOLDER holds model.safetensors and vocab.txt of all-MiniLM-L6-v2)

Needs safetensors. The three words are in the vocabulary whole, so that no tokenizer is needed. The weights shown are
those of layer 1, head 8 (from 0), over the three words alone, renormalized; the file's SHA-256 is checked first.
"""

import hashlib
import sys
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import load_file

from helpers.figures.attention import arcs_and_heatmap

SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
LAYER, HEAD, HEADS, EPS = 1, 8, 12, 1e-12
WORDS = ["jane", "visits", "africa"]


def attention_of(weights: dict, ids: torch.Tensor, layer: int) -> torch.Tensor:
    """Attention weights (H, T, T) of one layer of BERT (Devlin et al. 2019) for ids (T,)."""
    e = "embeddings."
    x = weights[e + "word_embeddings.weight"][ids] + weights[e + "position_embeddings.weight"][: len(ids)]
    x = _norm(x + weights[e + "token_type_embeddings.weight"][0], weights, e + "LayerNorm")  # (T, D)
    for number in range(layer + 1):
        name = f"encoder.layer.{number}."
        q, k, v = (_split(_linear(x, weights, f"{name}attention.self.{part}")) for part in ("query", "key", "value"))
        attention = torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, dim=-1)  # (H, T, T)
        mixed = (attention @ v).transpose(0, 1).flatten(1)  # (T, D)
        out = name + "attention.output."
        x = _norm(x + _linear(mixed, weights, out + "dense"), weights, out + "LayerNorm")
        wide = F.gelu(_linear(x, weights, name + "intermediate.dense"))  # (T, 4D)
        x = _norm(x + _linear(wide, weights, name + "output.dense"), weights, name + "output.LayerNorm")
    return attention


def _linear(x, weights, name):
    return F.linear(x, weights[f"{name}.weight"], weights[f"{name}.bias"])


def _norm(x, weights, name):
    return F.layer_norm(x, x.shape[-1:], weights[f"{name}.weight"], weights[f"{name}.bias"], EPS)


def _split(x):
    return x.unflatten(-1, (HEADS, -1)).transpose(0, 1)  # (H, T, D/H)


def main(folder: Path) -> int:
    file = folder / "model.safetensors"
    if hashlib.sha256(file.read_bytes()).hexdigest() != SHA256:
        print(f"{file} is another file than the course was measured with; the picture was not drawn.")
        return 1
    vocab = {word: number for number, word in enumerate((folder / "vocab.txt").read_text("utf-8").split("\n"))}
    ids = torch.tensor([vocab[word] for word in ["[CLS]", *WORDS, "[SEP]"]])
    weights = {name.removeprefix("bert."): value for name, value in load_file(file).items()}
    words = attention_of(weights, ids, LAYER)[HEAD, 1:-1, 1:-1]  # (3, 3)
    words = words / words.sum(-1, keepdim=True)
    picture = arcs_and_heatmap(words, WORDS, "all-MiniLM-L6-v2, layer 1, head 8, over the three words")
    picture.figure.savefig(Path(__file__).with_name("attention.png"), dpi=160, metadata={"Software": None})
    print(words, picture.alt, sep="\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(Path(sys.argv[1])))
