"""One submission: the learner's cells in a namespace of their own, and what the judge asks about it."""

from __future__ import annotations

import base64
import contextlib
import os
import signal
import socket
import sys

from .answers import describe, observe_answer
from .cell_runner import Namespace
from .channel import receive, send
from .devices import moved
from .learner_modules import OwnModules
from .limits import Setting
from .namespaces import kill, limit_resources
from .patches import patched_names


def become_submission(fd: int, folder: str, namespace: Namespace, setting: Setting) -> None:
    """Serve the judge's requests on `fd` until it hangs up."""
    try:
        os.chdir(folder)
        sys.path.append(folder)  # a module of the learner's own is found there, after all others but for his own code
        sys.meta_path.insert(0, OwnModules(folder))
        null = os.open(os.devnull, os.O_RDWR)
        for standard in (0, 1, 2):
            os.dup2(null, standard)
        limit_resources(setting.limits, setting.boxed)
        channel = socket.socket(fileno=fd)
        channel.set_inheritable(False)
        serve(channel, namespace)
    except (EOFError, ConnectionError):
        pass
    finally:
        os._exit(0)


def serve(channel: socket.socket, namespace: Namespace) -> None:
    exercise = None
    judged_values: dict[str, object] = {}  # what the names of exercises stood for when they were judged
    while True:
        token, request = receive(channel)
        if exercise is not None:
            _end(exercise)
            exercise = None
        if request["do"] == "observe":
            exercise = _fork_exercise(channel, namespace, token, request)
        else:
            send(channel, token, _reply(request, namespace, judged_values))


def _end(exercise: int) -> None:
    with contextlib.suppress(OSError):
        os.killpg(exercise, signal.SIGKILL)
    kill(exercise)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(exercise, 0)


def _fork_exercise(channel: socket.socket, namespace: Namespace, token: bytes, request: dict) -> int:
    """Start a fork that calls an answer and replies on a socket of its own, which the judge sends along."""
    _, fds, _, _ = socket.recv_fds(channel, 1, 1)
    exercise = os.fork()
    if exercise == 0:
        try:
            channel.close()
            os.setsid()
            exercise_channel = socket.socket(fileno=fds[0])
            exercise_channel.set_inheritable(False)
            send(exercise_channel, token, observe_answer(namespace.names, request, exercise_channel, token))
        finally:
            os._exit(0)
    os.close(fds[0])
    return exercise


def _reply(request: dict, namespace: Namespace, judged_values: dict[str, object]) -> dict:
    if request["do"] == "cell":
        resume = request.get("resume", False)
        outputs, error = namespace.run(request["id"], request["source"], request["seconds"], resume)
        return {"outputs": outputs, "error": error}
    if request["do"] == "names":
        bindings = {name: describe(namespace.names, name) for name in request["names"]}
        if request["keep"]:
            judged_values[request["keep"]] = namespace.names.get(request["keep"])
        changed = [name for name, value in judged_values.items() if namespace.names.get(name) is not value]
        return {"found": bindings, "changed": changed, "patched": patched_names(), "moved": moved()}
    if request["do"] == "passed":
        from helpers.progress import remember_passed

        for name in request["names"]:
            remember_passed(name, True)
    elif request["do"] == "file":
        put_file(request["name"], base64.b64decode(request["content"]))
    return {}


def put_file(name: str, content: bytes) -> None:
    with contextlib.suppress(OSError), open(os.path.basename(name), "wb") as file:
        file.write(content)
