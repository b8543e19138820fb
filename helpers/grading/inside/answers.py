"""One exercise: a fork of the submission calls the answer on the judge's inputs."""

import linecache
import os
import socket
import threading

from .channel import send
from .devices import moved
from .discarded_writes import let_go_of_files, say_what_was_let_go
from .patches import patched_names


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
    if request["replace"]:
        put_in_place(names, request["replace"])
    facts = Facts(**request["facts"])
    cases = [case_from_tree(case) for case in request["cases"]]
    answer = names.get(request["name"])
    calls = []
    with torch.nn.modules.module.register_module_forward_pre_hook(lambda *_: calls.append(1)):
        observations = observe_all(answer, cases, facts, leave=True)
    say_what_was_let_go(observations, discarded)
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


def put_in_place(names: dict, replace: dict) -> None:
    """Run a block's source by itself and let the named pieces replace the learner's."""
    from helpers.checking.forbidden import FINISHED, not_watched

    scratch = {"__name__": FINISHED}
    source = replace["source"]
    linecache.cache["<finished block>"] = (len(source), None, source.splitlines(keepends=True), "<finished block>")
    exec(compile(source, "<finished block>", "exec"), scratch)
    for name in replace["names"]:
        names[name] = not_watched(scratch[name])


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
