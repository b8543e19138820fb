"""A published model in the learner's blocks: its sizes, numbers and merges, from a folder or from the Hugging Face hub.

It has to be built as lesson 14's blocks are: Llama's layout, in one file of numbers, with byte-level pairs of bytes.
The folder `writer` has a small one of the course's own, which bench/small_writer.py trained.
"""

import json
from dataclasses import dataclass
from pathlib import Path

import torch

BESIDE = "llama"  # a folder beside the notebook
FILES = ("config.json", "model.safetensors", "tokenizer.json")
REPOSITORY = "HuggingFaceTB/SmolLM2-135M"
WRITER = Path(__file__).with_name("writer")
HOW_TO = (
    f"This is the course's own small model. For a published one put {', '.join(FILES)}, such as those of {REPOSITORY} "
    f"(270 MB), into a folder {BESIDE} beside this notebook, or call published.model(download=True)."
)


@dataclass(frozen=True)
class Published:
    """sizes: what Decoder takes; state: the file's names to float32 tensors; merges, ids: of byte pairs, as bytes."""

    sizes: dict[str, float]
    state: dict[str, torch.Tensor]
    merges: list[tuple[bytes, bytes]]
    ids: dict[bytes, int]

    def continued(self, model, text: str, count: int, encode, temperature: float = 0.0, seed: int = 0) -> str:
        """The text and `count` tokens after it: the likeliest, or drawn at a temperature above 0.

        encode: `encode_bpe`; model: a Decoder with the numbers.

        Pieces are those of lesson 14: for plain words they are the ones that the model was trained with.
        """
        start = torch.tensor([[self.ids[token] for token in encode(text, self.merges)]])  # (1, T)
        token_of = {number: token for token, number in self.ids.items()}
        written = model.write(start, count, temperature, torch.Generator().manual_seed(seed))[0].tolist()
        return b"".join(token_of.get(number, b"") for number in written).decode("utf-8", "replace")


def model(folder: str | Path = BESIDE, download: bool = False) -> Published:
    """The model in a folder, or from the hub if `download`; without it the course's own, and a sentence that says so.

    ValueError where the model is built otherwise than the lesson's blocks.
    """
    home = Path(folder)
    if download and not all((home / name).is_file() for name in FILES):
        try:
            from huggingface_hub import snapshot_download

            home = Path(snapshot_download(REPOSITORY, allow_patterns=list(FILES)))
        except Exception as error:  # not installed, offline, or whatever else the hub's tool meets
            print(f"The hub could not be asked ({type(error).__name__}). pip install huggingface_hub brings its tool.")
    if not all((home / name).is_file() for name in FILES):
        print(HOW_TO)
        home = WRITER
    from safetensors.torch import load_file

    sizes = sizes_of(json.loads((home / FILES[0]).read_text(encoding="utf-8")))
    state = {name: tensor.float() for name, tensor in load_file(home / FILES[1]).items()}
    return Published(sizes, state, *pairs_of(json.loads((home / FILES[2]).read_text(encoding="utf-8"))))


def sizes_of(config: dict) -> dict[str, float]:
    """What Decoder takes, from a config.json. ValueError that names what the lesson's blocks do not have."""
    rope = config.get("rope_parameters") or config.get("rope_scaling") or {}
    heads, width = config["num_attention_heads"], config["hidden_size"]
    strange = {
        "another activation than silu": config.get("hidden_act", "silu") != "silu",
        "biases": bool(config.get("attention_bias") or config.get("mlp_bias")),
        "scaled rotations": rope.get("rope_type", rope.get("type", "default")) != "default",
        "heads of another width than D / H": (config.get("head_dim") or width // heads) * heads != width,
        "another layout than Llama's": config.get("model_type") not in ("llama", "mistral"),
    }
    if found := [name for name, there in strange.items() if there]:
        raise ValueError(f"This model has {' and '.join(found)}: the blocks of lesson 14 are built otherwise.")
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
    """The merges and the tokens' ids, as bytes, from a tokenizer.json of byte-level pairs."""
    byte_of = bytes_of_letters()

    def as_bytes(token: str) -> bytes:
        return bytes(byte_of[letter] for letter in token)

    merges = [pair.split(" ") if isinstance(pair, str) else pair for pair in tokenizer["model"]["merges"]]
    vocab = tokenizer["model"]["vocab"].items()
    ids = {as_bytes(token): number for token, number in vocab if set(token) <= set(byte_of)}
    return [(as_bytes(first), as_bytes(second)) for first, second in merges], ids


def bytes_of_letters() -> dict[str, int]:
    """How GPT-2's files write bytes: visible ones as themselves, the others as the letters from 256 on."""
    visible = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in visible]
    return {chr(byte): byte for byte in visible} | {chr(256 + i): byte for i, byte in enumerate(hidden)}
