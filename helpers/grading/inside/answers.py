"""Observe one exercise: a fork of the submission's process calls the answer on the judge's inputs."""

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
    """Call the answer on every case, and report each forbidden call on `channel` as soon as it is seen, so that no
    code that runs later can take the report back.

    request: name, facts and cases of the exercise; cpu_seconds for all cases together; builtins: whether to restore
    built-in functions that a star import replaced; replace: names and source of finished blocks that replace earlier
    answers in this fork; measured: whether a trained model is measured, so that no written file is kept.
    Returns "observations"; "patched": watched functions that learner code replaced; "raised": the error of a further
    call under a profiler, if the first had none; "ran": whether a module was called; "moved": absent devices requested.
    """
    import resource

    import torch

    from helpers.checking import forbidden
    from helpers.checking.observe import Facts, call_profiled, case_from_tree, observe_all
    from helpers.checking.retry import hidden_builtins

    resource.setrlimit(resource.RLIMIT_CPU, (request["cpu_seconds"], request["cpu_seconds"]))
    patched = patched_names()
    discarded = discard_written_files(names) if request["measured"] else []
    torch.set_num_threads(1)
    channel_lock = threading.Lock()

    def report(name: str) -> None:
        with channel_lock:
            send(channel, token, {"note": name})

    forbidden.tell = report
    # A fork begins with one thread, so any other was started by an os.register_at_fork hook of the learner's.
    if request["facts"]["forbidden"] and _count_threads() > 1:
        report("a thread that was there before the call")
    if request["builtins"]:
        names.update(hidden_builtins(names))
    if request["replace"]:  # Blocks run in their own namespace; only the requested names replace the learner's.
        block_names, source = {"__name__": forbidden.FINISHED}, request["replace"]["source"]
        linecache.cache[BLOCK] = (len(source), None, source.splitlines(keepends=True), BLOCK)
        exec(compile(source, BLOCK, "exec"), block_names)
        names.update({name: forbidden.not_watched(block_names[name]) for name in request["replace"]["names"]})
    facts = Facts(**request["facts"])
    cases = [case_from_tree(case) for case in request["cases"]]
    answer = names.get(request["name"])
    module_calls = []
    with torch.nn.modules.module.register_module_forward_pre_hook(lambda *_: module_calls.append(1)):
        observations = observe_all(answer, cases, facts, leave=True)
    for observation in observations:
        # The call may have failed because a file that it wrote was discarded, so its error says what happened to it.
        if observation.error is not None and (discarded or os.strerror(errno.EFBIG) in observation.error.message):
            example = f", such as {discarded[0]}" if discarded else ""
            message = f"{observation.error.message} ({NOT_KEPT}{example}.)"
            observation.error = replace(observation.error, message=message)
    profiled_error = ""
    if facts.forbidden and not request["replace"]:
        profiled_error = call_profiled(answer, cases[0], facts)
    raised = profiled_error if observations[0].error is None else ""
    trees = [observation.to_tree() for observation in observations]
    return {"observations": trees, "patched": patched, "raised": raised, "ran": bool(module_calls), "moved": moved()}


def _count_threads() -> int:
    try:
        return len(os.listdir("/proc/self/task"))
    except OSError:
        return threading.active_count()


def describe(names: dict, name: str) -> tuple[str, str | None]:
    """What a name is bound to ("missing", "none", "instance", "callable" or the type's name), and a string's text."""
    if name not in names:
        return "missing", None
    value = names[name]
    if type(value).__name__ == name:
        return "instance", None  # of the class that the exercise asks for
    if isinstance(value, str):
        return "str", str(value)[:200]
    return "none" if value is None or value is ... else "callable" if callable(value) else type(value).__name__, None


def discard_written_files(names: dict) -> list[str]:
    """Keep this process and its children from writing files. Returns a list that later files are added to by name.

    Anything written to a file that Python has opened, or opens later, is silently discarded; every other way to write
    raises OSError. names: the namespace of the learner's code, where IPython has bound an `open` of its own.
    """
    import resource

    for number in range(3, min(4096, resource.getrlimit(resource.RLIMIT_NOFILE)[0])):
        with contextlib.suppress(OSError):
            if fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE and stat.S_ISREG(os.fstat(number).st_mode):
                null = os.open(os.devnull, os.O_RDWR)
                os.dup2(null, number)
                os.close(null)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    builtin_open, written = builtins.open, []

    def discarding_open(file, mode="r", *args, **kwargs):
        if isinstance(file, int) or not set("wxa") & set(mode):
            return builtin_open(file, mode, *args, **kwargs)
        written.append(os.path.basename(os.fsdecode(file))[:80])
        return builtin_open(os.devnull, mode.replace("x", "w"), *args, **kwargs)

    if getattr(names.get("open"), "__wrapped__", None) is builtin_open:
        names["open"] = discarding_open
    builtins.open = io.open = discarding_open
    return written
