"""Trained numbers in a file beside the notebook: trained once, loaded from then on, handed in with the notebook.

    model = checkpoint(Transformer(...), "translator.safetensors", train)

The file is safetensors in float32: numbers under their names and nothing that runs when it is read.
"""

import os
from collections.abc import Callable
from pathlib import Path

LARGEST = 4_000_000  # bytes: what travels with a submission


class DoesNotFit(ValueError):
    """A file of numbers that a model cannot take; the text says why."""


def quick() -> bool:
    """Whether trainings shall do a few steps only (COURSE_QUICK=1): enough to see that everything is connected."""
    return os.environ.get("COURSE_QUICK", "") not in ("", "0")


def checkpoint(model, file: str, train: Callable[[], object]):
    """The model, with the numbers of `file` where it lies beside the notebook and fits; else `train()` trains it, and
    its numbers are written there. Says in one line which.

    model: an nn.Module, which `train` changes in place. A file that does not fit the model is no error: it says so,
    and the model is trained. In quick mode the file is neither read nor written. COURSE_KEEP_FOLDER in the environment
    names another folder than the notebook's: builds train anew each time.
    """
    if quick():
        train()
        print("Quick mode (COURSE_QUICK=1): a few steps only, and nothing was kept. Start Jupyter without it to train.")
        return model
    path = Path(os.environ.get("COURSE_KEEP_FOLDER", "."), Path(file).name)
    try:
        load_into(model, path)
        print(f"{path.name}: trained weights loaded. Delete the file to train again.")
        return model
    except FileNotFoundError:
        pass
    except (DoesNotFit, OSError) as error:
        print(f"{path.name} does not fit and was not used: {error}. Training again.{_put_aside(path)}")
    try:
        train()
    except KeyboardInterrupt:
        print("The training was stopped before its end, and nothing was kept. Run the cell again: it begins anew.")
        raise
    if not all(bool(numbers.isfinite().all()) for numbers in model.state_dict().values()):
        print(
            "The training has broken down: some of the model's numbers are no finite numbers any more, so nothing was "
            "kept. A learning rate that is far too large does that. Mend it and run the cell again."
        )
        return model
    try:
        size = write(model, path)
    except (DoesNotFit, OSError) as error:
        print(f"The trained weights could not be kept in {path.name}: {error}.")
    else:
        print(f"{path.name}: the trained weights are kept ({size / 1e6:.1f} MB). Hand the file in with the notebook.")
    return model


def _put_aside(path: Path) -> str:
    """Give a file that does not fit another name, as somebody may want its numbers back; a sentence that says so."""
    old = path.with_name(f"{path.stem}.before{path.suffix}")
    try:
        path.replace(old)
    except OSError:
        return ""
    return f" The file is called {old.name} now."


def load_into(model, path: Path) -> None:
    """Load the numbers of a safetensors file into a model. FileNotFoundError; DoesNotFit, and nothing is changed."""
    import torch

    found, own = read(path), model.state_dict()
    if missing := [name for name in own if name not in found]:
        raise DoesNotFit(f"it has no {missing[0]}")
    if spare := [name for name in found if name not in own]:
        raise DoesNotFit(f"it has numbers called {spare[0][:80]}, and the model has none")
    for name, numbers in found.items():
        if numbers.shape != own[name].shape:
            shapes = f"{tuple(numbers.shape)}, and the model's is {tuple(own[name].shape)}"
            raise DoesNotFit(f"{name} has the shape {shapes}")
        if not torch.isfinite(numbers).all():
            raise DoesNotFit(f"{name} has entries that are no finite numbers")
    model.load_state_dict(found)


def read(path: Path) -> dict:
    """The tensors of a safetensors file, by name. FileNotFoundError; DoesNotFit where the file is something else."""
    from safetensors import SafetensorError
    from safetensors.torch import load

    if path.stat().st_size > LARGEST:
        raise DoesNotFit(f"it is larger than {LARGEST / 1e6:g} MB")
    try:
        return load(path.read_bytes())
    except (SafetensorError, ValueError, KeyError, RuntimeError):
        raise DoesNotFit("it is no safetensors file") from None


def write(model, path: Path) -> int:
    """Write a model's numbers in float32, and return the file's bytes. Raises DoesNotFit if they would be too many."""
    import torch
    from safetensors.torch import save

    def plain(numbers):
        kind = torch.float32 if numbers.is_floating_point() else torch.int64
        return numbers.detach().to("cpu", kind, copy=True).contiguous()

    data = save({name: plain(numbers) for name, numbers in model.state_dict().items()})
    if len(data) > LARGEST:
        raise DoesNotFit(f"they take {len(data) / 1e6:.1f} MB, and {LARGEST / 1e6:g} are the most")
    fresh = path.with_name(f"{path.name}.{os.getpid()}")
    fresh.write_bytes(data)
    fresh.replace(path)
    return len(data)
