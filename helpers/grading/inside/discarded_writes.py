"""What an answer writes while its trained model is measured goes nowhere, so that nothing is remembered in it."""

import builtins
import contextlib
import errno
import fcntl
import io
import os
import stat
from dataclasses import replace

NOT_KEPT = "No file is kept that your code writes while its model is measured"


def let_go_of_files(names: dict) -> list[str]:
    """From now on this process and its children write no file: what is written to one that Python opens, or has open,
    is lost without a word, and every other way to write raises OSError. Returns a list that will name those files.

    names: where the learner's code looks its names up; IPython has an `open` of its own there.
    """
    import resource

    for number in range(3, min(4096, resource.getrlimit(resource.RLIMIT_NOFILE)[0])):
        with contextlib.suppress(OSError):
            if fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE and stat.S_ISREG(os.fstat(number).st_mode):
                null = os.open(os.devnull, os.O_RDWR)
                os.dup2(null, number)
                os.close(null)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    real, written = builtins.open, []

    def opened(file, mode="r", *args, **kwargs):
        if isinstance(file, int) or not set("wxa") & set(mode):
            return real(file, mode, *args, **kwargs)
        written.append(os.path.basename(os.fsdecode(file))[:80])
        return real(os.devnull, mode.replace("x", "w"), *args, **kwargs)

    if getattr(names.get("open"), "__wrapped__", None) is real:
        names["open"] = opened
    builtins.open = io.open = opened
    return written


def say_what_was_let_go(observations: list, discarded: list[str]) -> None:
    """Where a call failed that had written a file, or tried to, its error says what became of the file."""
    for observation in observations:
        if observation.error is not None and (discarded or os.strerror(errno.EFBIG) in observation.error.message):
            example = f", such as {discarded[0]}" if discarded else ""
            observation.error = replace(
                observation.error, message=f"{observation.error.message} ({NOT_KEPT}{example}.)"
            )
