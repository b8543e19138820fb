"""One exercise: a fork of the submission calls the answer on the judge's inputs."""

import builtins
import contextlib
import errno
import fcntl
import io
import linecache
import os
import socket
import stat
import threading
from dataclasses import replace

from .devices import moved
from .protocol import send
from .watching import patched_names

BLOCK = "<finished block>"
NOT_KEPT = "No file is kept that your code writes while its model is measured"


def observe_answer(names: dict, request: dict, channel: socket.socket, token: bytes) -> dict:
    """Call the answer on every case: {"observations", "patched", "raised", "ran", "moved"}, the last three: of an error
    while it was listened to alone, whether a module was called, and which devices were asked for that are not here.

    request: name, facts, cases, cpu_seconds (for all of them), replace: the source of finished blocks that stand in for
    earlier answers, in this fork alone, and measured: whether it is asked of a trained model; then nothing that is
    written to files is kept. A forbidden call is reported on `channel` as soon as it is seen, so that no code that runs
    later can take that back.
    """
    import resource

    import torch

    from helpers.checking import forbidden
    from helpers.checking.observe import Facts, case_from_tree, listened, observe_all
    from helpers.checking.retry import hidden_builtins

    resource.setrlimit(resource.RLIMIT_CPU, (request["cpu_seconds"], request["cpu_seconds"]))
    patched = patched_names()
    discarded = let_go_of_files(names) if request["measured"] else []
    torch.set_num_threads(1)
    telling = threading.Lock()

    def tell(name: str) -> None:
        with telling:
            send(channel, token, {"note": name})

    forbidden.tell = tell
    if request["facts"]["forbidden"] and _threads() > 1:  # none is left behind a fork but what it starts at once
        tell("a thread that was there before the call")
    if request["builtins"]:
        names.update(hidden_builtins(names))
    if request["replace"]:  # a block's source runs by itself, and the named pieces replace the learner's
        scratch, source = {"__name__": forbidden.FINISHED}, request["replace"]["source"]
        linecache.cache[BLOCK] = (len(source), None, source.splitlines(keepends=True), BLOCK)
        exec(compile(source, BLOCK, "exec"), scratch)
        names.update({name: forbidden.not_watched(scratch[name]) for name in request["replace"]["names"]})
    facts = Facts(**request["facts"])
    cases = [case_from_tree(case) for case in request["cases"]]
    answer = names.get(request["name"])
    calls = []
    with torch.nn.modules.module.register_module_forward_pre_hook(lambda *_: calls.append(1)):
        observations = observe_all(answer, cases, facts, leave=True)
    for observation in observations:
        # Where a call failed that had written a file, or tried to, its error says what became of the file.
        if observation.error is not None and (discarded or os.strerror(errno.EFBIG) in observation.error.message):
            example = f", such as {discarded[0]}" if discarded else ""
            message = f"{observation.error.message} ({NOT_KEPT}{example}.)"
            observation.error = replace(observation.error, message=message)
    lone_error = ""
    if facts.forbidden and not request["replace"]:
        lone_error = listened(answer, cases[0], facts)
    lone_error = lone_error if observations[0].error is None else ""
    trees = [observation.to_tree() for observation in observations]
    return {"observations": trees, "patched": patched, "raised": lone_error, "ran": bool(calls), "moved": moved()}


def _threads() -> int:
    try:
        return len(os.listdir("/proc/self/task"))
    except OSError:
        return threading.active_count()


def describe(names: dict, name: str) -> tuple[str, str | None]:
    """What a name is bound to: missing, none, callable, or its type; and its text where it is one."""
    if name not in names:
        return "missing", None
    value = names[name]
    if type(value).__name__ == name:
        return "instance", None  # of the class that is asked for
    if isinstance(value, str):
        return "str", str(value)[:200]
    return "none" if value is None or value is ... else "callable" if callable(value) else type(value).__name__, None


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
