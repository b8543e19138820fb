"""A published model for the learner's blocks: its sizes, weights and merges, from a folder or the Hugging Face hub.

It must have the architecture of lesson 14's blocks: Llama's layout, one file of weights, and byte-level BPE.
The folder `writer` contains a small model of the course's own, which bench/small_writer.py trained.
"""

import json
from dataclasses import dataclass
from pathlib import Path

import torch

FOLDER = "llama"  # next to the notebook
FILES = ("config.json", "model.safetensors", "tokenizer.json")
REPOSITORY = "HuggingFaceTB/SmolLM2-135M"
WRITER = Path(__file__).with_name("writer")
HOW_TO = (
    f"This is the course's own small model. For a published one put {', '.join(FILES)}, such as those of {REPOSITORY} "
    f"(270 MB), into a folder {FOLDER} beside this notebook, or call published.model(download=True)."
)


@dataclass(frozen=True)
class Published:
    """sizes: the arguments of Decoder. state: the file's names -> float32 tensors. merges: pairs of tokens, in order.
    ids: token -> id. Tokens are bytes objects."""

    sizes: dict[str, float]
    state: dict[str, torch.Tensor]
    merges: list[tuple[bytes, bytes]]
    ids: dict[bytes, int]

    def continued(self, model, tokens: list[bytes], count: int, temperature: float = 0.0, seed: int = 0) -> str:
        """The text of a prompt and of `count` more tokens, the most probable or, at a temperature above 0, sampled.

        model: a Decoder with these weights. tokens: the prompt, split by `encode_bpe`. It splits plain words like the
        tokenizer that the model was trained with.
        """
        start = torch.tensor([[self.ids[token] for token in tokens]])  # (1, T)
        token_of = {i: token for token, i in self.ids.items()}
        ids = model.write(start, count, temperature, torch.Generator().manual_seed(seed))[0].tolist()
        return b"".join(token_of.get(i, b"") for i in ids).decode("utf-8", "replace")


def model(folder: str | Path = FOLDER, download: bool = False) -> Published:
    """The model in a folder, or from the hub if `download`. If neither has it, the course's own, with a message.

    Raises ValueError if the architecture differs from that of the lesson's blocks.
    """
    home = Path(folder)
    if download and not all((home / name).is_file() for name in FILES):
        try:
            from huggingface_hub import snapshot_download

            home = Path(snapshot_download(REPOSITORY, allow_patterns=list(FILES)))
        except Exception as error:  # not installed, offline, or any other error of the hub's client
            print(f"The hub could not be reached ({type(error).__name__}). Its client: pip install huggingface_hub")
    if not all((home / name).is_file() for name in FILES):
        print(HOW_TO)
        home = WRITER
    from safetensors.torch import load_file

    sizes = sizes_of(json.loads((home / FILES[0]).read_text(encoding="utf-8")))
    state = {name: tensor.float() for name, tensor in load_file(home / FILES[1]).items()}
    return Published(sizes, state, *pairs_of(json.loads((home / FILES[2]).read_text(encoding="utf-8"))))


def sizes_of(config: dict) -> dict[str, float]:
    """The arguments of Decoder, from a config.json. Raises ValueError naming any feature that the blocks don't have."""
    rope = config.get("rope_parameters") or config.get("rope_scaling") or {}
    heads, width = config["num_attention_heads"], config["hidden_size"]
    unsupported = {
        "an activation other than silu": config.get("hidden_act", "silu") != "silu",
        "biases": bool(config.get("attention_bias") or config.get("mlp_bias")),
        "scaled RoPE": rope.get("rope_type", rope.get("type", "default")) != "default",
        "heads of a width other than D / H": (config.get("head_dim") or width // heads) * heads != width,
        "a layout other than Llama's": config.get("model_type") not in ("llama", "mistral"),
    }
    if found := [name for name, present in unsupported.items() if present]:
        raise ValueError(f"This model has {' and '.join(found)}, which the blocks of lesson 14 don't support.")
    return dict(
        vocab_size=config["vocab_size"],
        d_model=width,
        num_heads=heads,
        num_kv_heads=config.get("num_key_value_heads") or heads,
        d_ff=config["intermediate_size"],
        num_layers=config["num_hidden_layers"],
        base=float(rope.get("rope_theta") or config.get("rope_theta") or 10000.0),
        eps=config["rms_norm_eps"],
    )


def pairs_of(tokenizer: dict) -> tuple[list[tuple[bytes, bytes]], dict[bytes, int]]:
    """(merges, token -> id) from a tokenizer.json with byte-level BPE; tokens are bytes."""
    byte_of = bytes_of_letters()

    def as_bytes(token: str) -> bytes:
        return bytes(byte_of[letter] for letter in token)

    merges = [pair.split(" ") if isinstance(pair, str) else pair for pair in tokenizer["model"]["merges"]]
    vocab = tokenizer["model"]["vocab"].items()
    ids = {as_bytes(token): i for token, i in vocab if set(token) <= set(byte_of)}
    return [(as_bytes(first), as_bytes(second)) for first, second in merges], ids


def bytes_of_letters() -> dict[str, int]:
    """GPT-2's characters for bytes. A printable byte is its own character, the others are characters from 256 on."""
    visible = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in visible]
    return {chr(byte): byte for byte in visible} | {chr(256 + i): byte for i, byte in enumerate(hidden)}
