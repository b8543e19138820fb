"""The first process of the sandbox. The judge trusts no verdict from here and requests raw tensors instead.

Processes, from the outside in:
  fork server  is started once, imports everything, runs no learner code, and forks one submission at a time on request.
  init         is the first process in the namespaces of one submission; when it ends, all other processes there end.
  submission   runs the learner's cells and keeps their namespace.
  exercise     is a fork of the submission, one per exercise, that calls the answer on the judge's inputs.
The judge gives each submission and each exercise its own socket, so that none of them can reply for another.
"""

import contextlib
import gc
import os
import shutil
import signal
import socket
import sys
import tempfile
from dataclasses import replace
from typing import NamedTuple

from .cell_runner import Namespace
from .namespaces import be_dumpable, die_with_parent, isolate, kill, unshare
from .protocol import FORK, HOME, KILL, TOKEN_BYTES, Setting, from_text, send
from .submission_process import become_submission
from .watching import remember_originals, report_stand_in_calls


def fork_server(control: socket.socket, setting: Setting) -> None:
    """Import everything, report readiness, then fork a submission on each request until the judge hangs up."""
    import torch

    import helpers.checking.observe  # noqa: F401
    import helpers.checking.retry  # noqa: F401
    from helpers.checking import registry as lessons
    from helpers.checking.forbidden import warm_up
    from helpers.checking.lazy_imports import import_compiler

    lessons.load()
    import_compiler()  # Otherwise each fork would import it, within its own limit of processor time.
    torch.set_num_threads(1)
    warm_up()
    remember_originals()
    report_stand_in_calls()
    font_lists = os.path.join(sys.path[0], "matplotlib")
    with contextlib.suppress(OSError, KeyError):  # Without these lists, matplotlib would search for fonts.
        shutil.copytree(font_lists, os.environ["MPLCONFIGDIR"], dirs_exist_ok=True)
    if setting.notebook:
        from .shell import make_shell  # This imports IPython, which loose files do not need.
    namespace = Namespace(make_shell() if setting.notebook else None)
    namespace.run_imports(setting.given)
    gc.freeze()  # Otherwise a garbage collection in a fork would copy every memory page that it visits.
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
    """Whether a submission can get its own namespaces here, inside those of the sandbox."""
    pid = os.fork()
    if pid == 0:
        try:
            unshare()
            inner = os.fork()
            if inner == 0:
                isolate(setting.places, setting.limits.disk_bytes)
                os._exit(0)
            os._exit(int(os.waitpid(inner, 0)[1] != 0))
        finally:
            os._exit(1)
    return os.waitpid(pid, 0)[1] == 0


class Child(NamedTuple):
    """A submission: the pid of the process that the server forked, the pid of its init (0 without its own namespaces),
    and its folder (None with its own namespaces, where HOME is private)."""

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
    """Become the parent of the submission's init, which reports the init's pid and waits until it ends."""
    unshare()
    init = os.fork()
    if init == 0:
        os.close(writing)
        isolate(setting.places, setting.limits.disk_bytes)
        _become_init(fd, namespace, setting)
    os.close(fd)
    os.write(writing, str(init).encode())
    os.close(writing)
    os.waitpid(init, 0)
    os._exit(0)


def _become_init(fd: int, namespace: Namespace, setting: Setting) -> None:
    """Become the submission's init: fork the submission, then reap the processes of the namespace until it ends."""
    os.setsid()  # Signals to a process group cross the border of a process namespace, so this needs its own group.
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
    """Kill a submission and all processes that it started, and wait until it has ended."""
    if child.folder is not None:
        with contextlib.suppress(OSError):
            os.killpg(child.pid, signal.SIGKILL)
        with contextlib.suppress(Exception):  # psutil may not be installed, and the process may have ended.
            import psutil

            for process in psutil.Process(child.pid).children(recursive=True):
                kill(process.pid)
    kill(child.init or child.pid)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(child.pid, 0)
    if child.folder is not None:
        shutil.rmtree(child.folder, ignore_errors=True)


def main(argument: str) -> None:
    """Run the program. argument: the file descriptor of the control socket, a space, and Setting.as_text()."""
    number, setting = argument.split(" ", 1)
    control = socket.socket(fileno=int(number))
    control.set_inheritable(False)
    fork_server(control, from_text(setting))
    os._exit(0)  # An ordinary exit would spend seconds on freeing torch's objects.
