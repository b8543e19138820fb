"""One submission: run the learner's cells in their own namespace, and answer the judge's requests about it."""

import base64
import contextlib
import importlib.abc
import importlib.util
import os
import signal
import socket
import sys
import types

from .answers import describe, observe_answer
from .cell_runner import Namespace
from .devices import moved
from .namespaces import kill, limit_resources
from .protocol import Setting, receive, send
from .watching import patched_names


def become_submission(fd: int, folder: str, namespace: Namespace, setting: Setting) -> None:
    """Serve the judge's requests on the socket `fd` until the judge hangs up, then end this process."""
    try:
        os.chdir(folder)
        sys.path.append(folder)  # The learner's modules come last here, and first for the learner's code: OwnModules.
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
    exercise = None  # the pid of the fork that observes one, which the next request ends
    judged_values: dict[str, object] = {}  # name of an exercise -> what it was bound to when it was judged
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
    """Fork a process that observes an exercise and replies on its own socket, which comes with the request."""
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
        with contextlib.suppress(OSError), open(os.path.basename(request["name"]), "wb") as file:
            file.write(base64.b64decode(request["content"]))
    return {}


class OwnModules(importlib.abc.MetaPathFinder):
    """For imports in the learner's code, finds NAME.py in `folder` before a standard module of that name, say test."""

    def __init__(self, folder: str):
        self.folder = folder

    def find_spec(self, name, path=None, target=None):
        path_of_module = os.path.join(self.folder, f"{name}.py")
        if "." in name or not os.path.isfile(path_of_module) or not self._is_learners_import():
            return None
        return importlib.util.spec_from_file_location(name, path_of_module)

    def _is_learners_import(self) -> bool:
        """Whether the import statement, below the frames of the import machinery, is in the learner's code."""
        frame: types.FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename.startswith(("<frozen importlib", __file__)):
            frame = frame.f_back
        while frame is not None and frame.f_code.co_filename.endswith("helpers/running/time_limit.py"):
            frame = frame.f_back
        while frame is not None and frame.f_code.co_filename.startswith("<frozen importlib"):
            frame = frame.f_back
        return frame is not None and frame.f_code.co_filename.startswith(("<cell ", self.folder))
