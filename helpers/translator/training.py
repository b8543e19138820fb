"""`course build --weights`: train the translator from its seed and store its weights."""

import random
import time
from collections.abc import Callable
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import save_file

from helpers.corpus import sentence_pairs
from helpers.translator.evaluation import as_batch, exact, nats_per_word, unseen
from helpers.translator.finished_parts import sinusoidal_positions
from helpers.translator.network import Transformer
from helpers.translator.trained import D_MODEL, MAX_LEN, POSITIONS, SIZES, WEIGHTS, model
from helpers.translator.word_ids import PAD
from helpers.widgets.progress_bar import bar

SEED, STEPS, BATCH, RATE, WARMUP = 7, 1100, 64, 3e-3, 60
EMBEDDING_STD = 0.02


def train(
    seed: int = SEED, steps: int = STEPS, after_step: Callable[[int, Transformer], None] | None = None
) -> Transformer:
    """A network trained from scratch, on new sentences at each step, all drawn from the seed.

    after_step: called after each step with the number of steps done and the network.
    """
    generator = random.Random(seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = Transformer(*SIZES)
    for name, parameter in network.named_parameters():
        if name in POSITIONS:
            parameter.data.copy_(sinusoidal_positions(MAX_LEN, D_MODEL))
            parameter.requires_grad_(False)
        elif name.endswith("tokens.weight"):
            parameter.data.mul_(EMBEDDING_STD)  # small, so that a trained row consists mostly of what was learned
        elif name.endswith(("W_q.bias", "W_k.bias", "W_v.bias")):
            parameter.data.zero_()
            parameter.requires_grad_(False)
    learned = [parameter for parameter in network.parameters() if parameter.requires_grad]
    optimizer = torch.optim.Adam(learned, lr=RATE, betas=(0.9, 0.98))

    def rate(step):
        """Linear warm-up, then linear decay."""
        return min((step + 1) / WARMUP, max(0.02, 1 - step / steps))

    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, rate)
    for step in bar(range(steps), "training the translator"):
        batch = as_batch(sentence_pairs(BATCH, generator))
        logits = network(batch.src, batch.tgt_in)
        loss = F.cross_entropy(logits.flatten(0, 1), batch.tgt_out.flatten(), ignore_index=PAD)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(learned, 1.0)
        optimizer.step()
        schedule.step()
        if after_step:
            after_step(step + 1, network)
    return network.eval()


def store(network: Transformer, folder: Path) -> Path:
    """Write the weights in float16 to a file in a folder, and return its path."""
    path = folder / WEIGHTS
    save_file({name: value.half() for name, value in network.state_dict().items() if name not in POSITIONS}, path)
    return path


def build() -> None:
    """Train, store and measure the translator, and print the results in three lines."""
    start, cpu = time.perf_counter(), time.process_time()
    path = store(train(), Path(__file__).parent)
    wall, cpu = time.perf_counter() - start, time.process_time() - cpu
    print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB, {wall:.0f} s ({cpu:.0f} s of processor time)")
    network, batch = model(), unseen(2000)
    print(f"{100 * exact(network, batch):.2f}% of {len(batch.french)} unseen sentences exact")
    print(f"{nats_per_word(network, batch):.5f} nats per word")
