"""The first process of the sandbox. Nothing it says is trusted: the judge asks for raw tensors.

Processes, from the outside in:
  fork server started once, imports everything, runs no learner code; forks one submission at a time on request.
  init        of one submission: the first process of its namespaces, so that its end is the end of all the others.
  submission  runs the learner's cells and keeps their namespace.
  exercise    a fork of the submission, one for each exercise: calls the answer on the judge's inputs.
The judge hands every submission and every exercise a socket of its own, so none can speak for another.
"""

import contextlib
import gc
import os
import shutil
import signal
import socket
import tempfile
from dataclasses import replace
from typing import NamedTuple

from .cell_runner import Namespace
from .namespaces import be_dumpable, die_with_parent, furnish, kill, unshare
from .protocol import FORK, HOME, KILL, TOKEN_BYTES, Setting, from_text, send
from .submission_process import become_submission
from .watching import remember_originals, report_stand_in_calls


def fork_server(control: socket.socket, setting: Setting) -> None:
    """Import everything, say hello, then fork a submission for each request until the judge hangs up."""
    import torch

    import helpers.checking.observe  # noqa: F401
    import helpers.checking.retry  # noqa: F401
    from helpers.checking import registry as lessons
    from helpers.checking.forbidden import warm_up
    from helpers.checking.lazy_imports import import_compiler

    lessons.load()
    import_compiler()  # else each fork would, within its limit of processor time
    torch.set_num_threads(1)
    warm_up()
    remember_originals()
    report_stand_in_calls()
    lists = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "matplotlib")
    with contextlib.suppress(OSError, KeyError):  # else matplotlib would search for the machine's fonts
        shutil.copytree(lists, os.environ["MPLCONFIGDIR"], dirs_exist_ok=True)
    if setting.notebook:
        from .shell import make_shell  # IPython, which loose files need not
    namespace = Namespace(make_shell() if setting.notebook else None)
    namespace.give(setting.given)
    gc.freeze()  # a collection in a fork would otherwise copy every page it looks at
    gc.enable()
    setting = replace(setting, nested=setting.nested and _can_nest(setting))
    send(control, bytes(TOKEN_BYTES), {"nested": setting.nested})
    child = None
    while True:
        try:
            order, fds, _, _ = socket.recv_fds(control, 1, 1)
        except ConnectionError:
            order = b""
        if child is not None and order in (KILL, b""):
            _end(child)
            child = None
        if not order:
            return
        if order == KILL:
            control.sendall(KILL)
        elif order == FORK and fds:
            child = _fork_submission(control, fds[0], namespace, setting)
            os.close(fds[0])


def _can_nest(setting: Setting) -> bool:
    pid = os.fork()
    if pid == 0:
        try:
            unshare()
            inner = os.fork()
            if inner == 0:
                furnish(setting.places, setting.limits.disk_bytes)
                os._exit(0)
            os._exit(int(os.waitpid(inner, 0)[1] != 0))
        finally:
            os._exit(1)
    return os.waitpid(pid, 0)[1] == 0


class Child(NamedTuple):
    """A submission as the fork server sees it: pid of its parent in our namespaces, pid of its init (0 where there are
    no namespaces of its own), its folder (None where there are)."""

    pid: int
    init: int
    folder: str | None


def _fork_submission(control, fd: int, namespace: Namespace, setting: Setting) -> Child:
    folder = None if setting.nested else tempfile.mkdtemp(prefix="submission-")
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            control.close()
            os.close(reading)
            if setting.nested:
                _become_outer(writing, fd, namespace, setting)
            else:
                os.setsid()
                os.write(writing, b"0")
                os.close(writing)
                os.environ["HOME"] = folder
                become_submission(fd, folder, namespace, setting)
        finally:
            os._exit(1)
    os.close(writing)
    with open(reading, "rb") as file:
        report = file.read()
    return Child(pid, int(report) if report.isdigit() else 0, folder)


def _become_outer(writing: int, fd: int, namespace: Namespace, setting: Setting) -> None:
    """Parent of the submission's init: stays outside its process namespace only to report and to reap."""
    unshare()
    init = os.fork()
    if init == 0:
        os.close(writing)
        furnish(setting.places, setting.limits.disk_bytes)
        _become_init(fd, namespace, setting)
    os.close(fd)
    os.write(writing, str(init).encode())
    os.close(writing)
    os.waitpid(init, 0)
    os._exit(0)


def _become_init(fd: int, namespace: Namespace, setting: Setting) -> None:
    os.setsid()  # a signal to one's own process group reaches beyond one's own process namespace
    die_with_parent()
    be_dumpable(False)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    pid = os.fork()
    if pid == 0:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        be_dumpable(True)
        become_submission(fd, HOME, namespace, setting)
    os.close(fd)
    while True:
        ended, _ = os.wait()
        if ended == pid:
            os._exit(0)


def _end(child: Child) -> None:
    """Kill a submission with all that it started, and wait until it is gone."""
    if child.folder is not None:
        with contextlib.suppress(OSError):
            os.killpg(child.pid, signal.SIGKILL)
        with contextlib.suppress(Exception):  # psutil need not be here, nor the process
            import psutil

            for process in psutil.Process(child.pid).children(recursive=True):
                kill(process.pid)
    kill(child.init or child.pid)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(child.pid, 0)
    if child.folder is not None:
        shutil.rmtree(child.folder, ignore_errors=True)


def main(argument: str) -> None:
    """The whole program; told: the number of the control socket and the setting, one behind the other."""
    number, setting = argument.split(" ", 1)
    control = socket.socket(fileno=int(number))
    control.set_inheritable(False)
    fork_server(control, from_text(setting))
    os._exit(0)  # an interpreter full of torch takes seconds to tidy up what goes away anyway
