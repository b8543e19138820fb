"""Trained weights in a file next to the notebook: saved once, loaded from then on, and handed in with the notebook.

    model = checkpoint(Transformer(...), "translator.safetensors", train)

The file is a safetensors file in float32, that is, named tensors and no code that could run when it is read.
"""

import os
from collections.abc import Callable
from pathlib import Path

LARGEST = 4_000_000  # bytes of a file that a submission may contain


class DoesNotFit(ValueError):
    """A file of weights can't be used, for the reason in the message."""


def quick() -> bool:
    """Whether to train only for a few steps (COURSE_QUICK=1), which is enough to see that everything runs."""
    return os.environ.get("COURSE_QUICK", "") not in ("", "0")


def checkpoint(model, file: str, train: Callable[[], object]):
    """Load the weights of `file` into the model, or train it with `train()` and save them. Returns the model.

    Prints one line that says what was done. model: an nn.Module, which `train` changes in place. file: in the folder of
    the notebook, or in COURSE_KEEP_FOLDER if the environment sets it, so that builds can train again. A file that
    doesn't fit the model is renamed, and the model is trained. In quick mode the file is neither read nor written.
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
        print("The training was stopped before its end, and nothing was kept. Run the cell again to start over.")
        raise
    if not all(bool(weights.isfinite().all()) for weights in model.state_dict().values()):
        print(
            "The training has broken down: some of the model's weights are no longer finite, so nothing was kept. The "
            "usual cause is a learning rate that is far too large. Reduce it and run the cell again."
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
    """Rename a file that doesn't fit, in case its weights are needed later. Returns a sentence that says so."""
    renamed = path.with_name(f"{path.stem}.before{path.suffix}")
    try:
        path.replace(renamed)
    except OSError:
        return ""
    return f" The file is called {renamed.name} now."


def load_into(model, path: Path) -> None:
    """Load a safetensors file into a model. Raises FileNotFoundError or DoesNotFit before it changes anything."""
    import torch

    found, own = read(path), model.state_dict()
    if missing := [name for name in own if name not in found]:
        raise DoesNotFit(f"it has no {missing[0]}")
    if unexpected := [name for name in found if name not in own]:
        raise DoesNotFit(f"it has a tensor {unexpected[0][:80]}, which the model doesn't have")
    for name, tensor in found.items():
        if tensor.shape != own[name].shape:
            shapes = f"{tuple(tensor.shape)}, and the model's is {tuple(own[name].shape)}"
            raise DoesNotFit(f"{name} has the shape {shapes}")
        if not torch.isfinite(tensor).all():
            raise DoesNotFit(f"{name} has entries that are not finite")
    model.load_state_dict(found)


def read(path: Path) -> dict:
    """The tensors of a safetensors file, by name. Raises FileNotFoundError, or DoesNotFit for other kinds of files."""
    from safetensors import SafetensorError
    from safetensors.torch import load

    if path.stat().st_size > LARGEST:
        raise DoesNotFit(f"it is larger than {LARGEST / 1e6:g} MB")
    try:
        return load(path.read_bytes())
    except (SafetensorError, ValueError, KeyError, RuntimeError):
        raise DoesNotFit("it isn't a safetensors file") from None


def write(model, path: Path) -> int:
    """Write a model's tensors, floats as float32, and return the size in bytes. Raises DoesNotFit if too large."""
    import torch
    from safetensors.torch import save

    def stored(tensor):
        dtype = torch.float32 if tensor.is_floating_point() else torch.int64
        return tensor.detach().to("cpu", dtype, copy=True).contiguous()

    data = save({name: stored(tensor) for name, tensor in model.state_dict().items()})
    if len(data) > LARGEST:
        raise DoesNotFit(f"they take {len(data) / 1e6:.1f} MB, and at most {LARGEST / 1e6:g} MB are allowed")
    partial = path.with_name(f"{path.name}.{os.getpid()}")
    partial.write_bytes(data)
    partial.replace(path)
    return len(data)
