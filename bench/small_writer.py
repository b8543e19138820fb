"""Train lesson 14's small writer: `python -m bench.small_writer input.txt FOLDER`, about ten minutes.

A decoder of four LlamaBlocks of width 128 (under a million parameters, with tied embeddings) is trained on the first
nine tenths of a text. Its tokens are 256 bytes and 512 merges that `train_bpe` learns from the same part. It is tested
on the rest, in nats per byte, which can be compared with the loss of a character model if the text has one byte per
character. The output is the three files of a published model in Llama's layout, in 16 bits and under 2 MB, in FOLDER;
helpers/lessons/today/published.py reads them. The text is tiny Shakespeare, which is in the public domain, from the
wheel that bench/gpt_against_nanogpt.py names. All random numbers are seeded.
"""

import argparse
import json
import math
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import nn

from helpers.blocks import LlamaBlock, encode_bpe, rename_llama, train_bpe
from helpers.lessons.today.decoder import Decoder
from helpers.lessons.today.figures import OWN_PIECES
from helpers.lessons.today.published import FILES, bytes_of_letters

MERGES, SEED, STEPS, BATCH, CONTEXT, RATE = 512, 14, 3000, 16, 96, 4e-3
SIZES = dict(d_model=128, num_heads=4, num_kv_heads=2, d_ff=344, num_layers=4, base=10000.0, eps=1e-5)
CONFIG = {"d_model": "hidden_size", "num_heads": "num_attention_heads", "num_kv_heads": "num_key_value_heads"}
CONFIG |= {"d_ff": "intermediate_size", "num_layers": "num_hidden_layers", "base": "rope_theta", "eps": "rms_norm_eps"}
PARTS = [f"self_attn.{part}_proj" for part in "qkvo"] + [f"mlp.{part}_proj" for part in ("gate", "up", "down")]
PARTS += ["input_layernorm", "post_attention_layernorm"]


def tokens_of(merges) -> list[bytes]:
    """The tokens in the order of their ids: all bytes, then the distinct results of the merges."""
    return list(dict.fromkeys([*(bytes([byte]) for byte in range(256)), *(first + second for first, second in merges)]))


def ids_of(text: str, merges) -> torch.Tensor:
    """The ids of a long text. Each distinct piece of it is tokenized only once."""
    id_of, piece_ids = {token: i for i, token in enumerate(tokens_of(merges))}, {}
    ids = []
    for piece in OWN_PIECES.findall(text):
        if piece not in piece_ids:
            piece_ids[piece] = [id_of[token] for token in encode_bpe(piece, merges)]
        ids += piece_ids[piece]
    return torch.tensor(ids)


def new_model(vocab_size: int) -> Decoder:
    """A decoder with small initial token vectors, which are tied to the output layer."""
    model = Decoder(LlamaBlock, vocab_size, **SIZES)
    nn.init.normal_(model.tokens.weight, std=0.02)
    model.unembed.weight = model.tokens.weight
    return model


def train(model, ids: torch.Tensor, steps: int) -> None:
    """AdamW on random windows; the learning rate warms up for 100 steps and decays linearly to zero."""
    generator = torch.Generator().manual_seed(SEED)
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, betas=(0.9, 0.98), weight_decay=0.05)
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = RATE * min((step + 1) / 100, 1) * (1 - step / steps)
        starts = torch.randint(len(ids) - CONTEXT, (BATCH,), generator=generator)
        windows = ids[starts[:, None] + torch.arange(CONTEXT + 1)]  # (B, T + 1)
        loss = F.cross_entropy(model(windows[:, :-1]).flatten(0, 1), windows[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 200 == 0:
            print(f"step {step:5}: {loss.item():.3f} nats per token", flush=True)


@torch.no_grad()
def nats_per_byte(model, text: str, merges) -> float:
    """The loss per byte on a text, in adjacent windows. The first token of each window is not counted."""
    ids, tokens = ids_of(text, merges), tokens_of(merges)
    windows = ids[: (len(ids) - 1) // CONTEXT * CONTEXT].view(-1, CONTEXT)
    total = sum(
        F.cross_entropy(model(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten(), reduction="sum").item()
        for rows in windows.split(64)
    )
    return total / sum(len(tokens[number]) for number in windows[:, 1:].flatten().tolist())


def store(folder: Path, model, merges) -> None:
    """Write the three files of a published model in Llama's layout."""
    folder.mkdir(parents=True, exist_ok=True)
    names = ["model.embed_tokens.weight", "model.norm.weight"]
    names += [f"model.layers.{i}.{part}.weight" for i in range(len(model.blocks)) for part in PARTS]
    renamed = rename_llama({name: name for name in names})  # our name -> Llama's name
    state = model.state_dict()
    tensors = {name: state[ours].half().contiguous() for ours, name in renamed.items() if "unembed" not in ours}
    save_file(tensors, folder / FILES[1])
    config = {CONFIG[name]: value for name, value in SIZES.items()} | {"vocab_size": len(tokens_of(merges))}
    config |= {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_act": "silu"}
    config |= {"tie_word_embeddings": True, "max_position_embeddings": CONTEXT, "torch_dtype": "float16"}
    (folder / FILES[0]).write_text(json.dumps(config, indent=1) + "\n", encoding="utf-8")
    letter_of = {byte: letter for letter, byte in bytes_of_letters().items()}

    def in_letters(token: bytes) -> str:
        return "".join(letter_of[byte] for byte in token)

    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    split = {"type": "Split", "pattern": {"Regex": OWN_PIECES.pattern}, "behavior": "Isolated", "invert": False}
    tokenizer = {
        "version": "1.0",
        "added_tokens": [],
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [split, level]},
        "decoder": level,
        "model": {
            "type": "BPE",
            "vocab": {in_letters(token): i for i, token in enumerate(tokens_of(merges))},
            "merges": [f"{in_letters(first)} {in_letters(second)}" for first, second in merges],
        },
    }
    (folder / FILES[2]).write_text(json.dumps(tokenizer, ensure_ascii=False) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("text", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--steps", type=int, default=STEPS)
    options = parser.parse_args()
    torch.manual_seed(SEED)
    text = options.text.read_text(encoding="utf-8")
    learned, tested = text[: len(text) * 9 // 10], text[len(text) * 9 // 10 :]
    merges = train_bpe(learned, MERGES)
    model = new_model(len(tokens_of(merges)))
    print(f"{len(merges)} merges, {sum(p.numel() for p in model.parameters()):,} parameters", flush=True)
    train(model, ids_of(learned, merges), options.steps)
    loss = nats_per_byte(model.eval(), tested, merges)
    print(f"{loss:.3f} nats per byte on the last tenth, {loss / math.log(2):.3f} bits")
    store(options.folder, model, merges)
    print(f"{sum(file.stat().st_size for file in options.folder.iterdir()) / 1e6:.2f} MB in {options.folder.name}")


if __name__ == "__main__":
    main()
