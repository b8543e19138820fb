"""Global switches of torch and Python that a notebook may have changed.

While an answer is judged, they have fixed values; afterwards they are restored.
"""

import contextlib
import random
import sys
import warnings
from collections.abc import Iterator

import numpy as np
import torch

from helpers.running.torch_insides import default_device, exact_products, plain_printing

COMPILER = "torch._dynamo"
AUTOCAST = ("cpu", "cuda", "mps", "xpu")


@contextlib.contextmanager
def switches_set() -> Iterator[None]:
    """While active, switches have their defaults, except that torch runs uncompiled in one thread without warnings.

    Python's and NumPy's random generators are seeded with 0.
    """
    deterministic = torch.are_deterministic_algorithms_enabled()
    warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
    anomaly, check_nan = torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()
    dtype, grad, threads = torch.get_default_dtype(), torch.is_grad_enabled(), torch.get_num_threads()
    python_state, numpy_state = random.getstate(), np.random.get_state()
    with contextlib.ExitStack() as stack:
        stack.enter_context(torch.inference_mode(False))
        stack.enter_context(warnings.catch_warnings())
        stack.enter_context(plain_printing())
        stack.enter_context(exact_products())
        if default_device() != "cpu":
            stack.enter_context(torch.device("cpu"))
        # Compiled code computes the same, but compiling takes seconds. Torch 2.5 has no switch for this.
        if COMPILER in sys.modules and hasattr(torch.compiler, "set_stance"):
            stack.enter_context(torch.compiler.set_stance("force_eager"))
        for device in filter(_is_autocast, AUTOCAST):
            stack.enter_context(torch.autocast(device, enabled=False))
        warnings.simplefilter("ignore")
        if deterministic:  # not set needlessly, because setting it imports torch's compiler, which takes seconds
            torch.use_deterministic_algorithms(False)
        torch.autograd.set_detect_anomaly(False)
        torch.set_default_dtype(torch.float32)
        torch.set_num_threads(1)  # inputs are small, and on a busy computer several threads wait for one another
        torch.set_grad_enabled(True)
        random.seed(0)
        np.random.seed(0)
        try:
            yield
        finally:
            random.setstate(python_state)
            np.random.set_state(numpy_state)
            torch.set_num_threads(threads)
            now = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
            if now != (deterministic, warn_only):
                torch.use_deterministic_algorithms(deterministic, warn_only=warn_only)
            torch.autograd.set_detect_anomaly(anomaly, check_nan)
            torch.set_default_dtype(dtype)
            torch.set_grad_enabled(grad)


def _is_autocast(device: str) -> bool:
    try:
        return torch.is_autocast_enabled(device)
    except (TypeError, RuntimeError):  # raised by an older torch, or for a device that this build does not know
        return False
