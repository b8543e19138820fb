"""Lesson 12's full-size run: `python -m bench.full_size input.txt [--write]`, on a GPU (or at quarter size on a CPU).

--write stores the curves and samples in helpers/lessons/language_model/full_size.json, because the lesson shows them to
learners who don't train the model themselves.
"""

import argparse
import tempfile
from dataclasses import asdict

import torch

from bench.written import write
from helpers.blocks import GPT
from helpers.corpus import real_text
from helpers.lessons.language_model import full_size


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", help="tiny Shakespeare's input.txt")
    parser.add_argument("--write", action="store_true", help="keep the run for the lesson")
    options = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    text = real_text(options.file)
    with tempfile.TemporaryDirectory() as folder:
        model, run = full_size.train(GPT, text, full_size.recipe_for(device), device, folder)
    generator = torch.Generator(device).manual_seed(5)
    run.samples[-1] = full_size.write(model, text, full_size.PROMPT, 500, generator=generator)
    print(f"best validation loss {run.validation[run.best]:.3f} after {run.steps[run.best]} steps")
    print(run.samples[-1])
    if options.write:
        digits = {name: [round(x, 4) for x in getattr(run, name)] for name in ("training", "validation")}
        write("language_model", "full_size", asdict(run) | digits)


if __name__ == "__main__":
    main()
