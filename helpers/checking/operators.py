"""A look at every operator that runs, without torch's compiler."""

from __future__ import annotations

from torch.utils._python_dispatch import TorchDispatchMode


class OperatorMode(TorchDispatchMode):
    """A dispatch mode that does not ask to be kept from torch.compile.

    Asking imports the compiler and sympy, which takes two seconds, and nothing that is watched here is compiled.
    """

    @classmethod
    def _should_skip_dynamo(cls):
        return False
