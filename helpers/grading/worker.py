"""The program that runs learner code, inside the sandbox. Nothing it says is trusted: the judge asks for raw tensors.

Processes, from the outside in:
  zygote      started once, imports everything, runs no learner code; forks one submission at a time on request.
  init        of one submission: the first process of its namespaces, so that its end is the end of all the others.
  submission  runs the learner's cells and keeps their namespace.
  exercise    a fork of the submission, one for each exercise: calls the answer on the judge's inputs.
The judge hands every submission and every exercise a socket of its own, so none can speak for another.

In the sandbox this file stands beside a copy of the learner's wing, without the other two.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import ctypes
import gc
import importlib
import io
import linecache
import os
import shutil
import signal
import socket
import sys
import tempfile
import threading
import traceback
import types

TOKEN_BYTES = 16
FORK, KILL = b"F", b"K"
HOME = "/learner"  # of the sandbox; not below /home, where Python may be installed

PATIENCE = 1.5  # times the processor time that a cell may take, by the clock, without what it waits for a processor
TEXT_BYTES = 200_000  # of one cell's printed text
RICH_BYTES = 3_000_000  # of one cell's figures and other displays
MAX_OUTPUTS = 100  # of one cell
ERROR_BYTES = 20_000
CUT = "\n[the rest of the output was cut]\n"


# The message channel: 8 bytes length, the request's token, a tree of helpers.checking.codec.


def send(channel: socket.socket, token: bytes, tree) -> None:
    from helpers.checking.codec import dumps

    data = dumps(tree)
    channel.sendall(len(data).to_bytes(8, "little") + token + data)


def receive(channel: socket.socket) -> tuple[bytes, object]:
    """The next request and its token. EOFError when the judge has hung up."""
    from helpers.checking.codec import loads

    size = int.from_bytes(_exactly(channel, 8), "little")
    token = _exactly(channel, TOKEN_BYTES)
    return token, loads(_exactly(channel, size))


def _exactly(channel: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        chunk = channel.recv(min(size - len(data), 1 << 20))
        if not chunk:
            raise EOFError
        data += chunk
    return bytes(data)


# Namespaces and limits of one submission.

CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWIPC = 0x00020000, 0x10000000, 0x20000000, 0x08000000
MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REC, MS_PRIVATE = 2, 4, 8, 0x4000, 1 << 18
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 1, 4, 24, 38
CAPABILITY_VERSION_3 = 0x20080522


def _libc():
    return ctypes.CDLL(None, use_errno=True)


def _must(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)


def die_with_parent() -> None:
    """Let the system kill this process when the one that started it has ended, however that came."""
    if sys.platform == "linux":
        _libc().prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def unshare() -> None:
    """User, mount, process and IPC namespaces of this process's own; its next child is their first process."""
    uid, gid = os.getuid(), os.getgid()
    _must(_libc().unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC), "new namespaces")
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"{uid} {uid} 1")
    _write("/proc/self/gid_map", f"{gid} {gid} 1")


def furnish(places: list[str], disk_bytes: int) -> None:
    """A private /proc and private writable folders; then no capabilities and no way to new namespaces."""
    libc = _libc()
    _must(libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None), "private mounts")
    flags = MS_NOSUID | MS_NODEV
    _must(libc.mount(b"proc", b"/proc", b"proc", flags | MS_NOEXEC, None), "a new /proc")
    options = f"size={disk_bytes},nr_inodes=10000,mode=0700".encode()
    for place in places:
        _must(libc.mount(b"tmpfs", place.encode(), b"tmpfs", flags, options), f"a new {place}")
    with contextlib.suppress(OSError):
        _write("/proc/sys/user/max_user_namespaces", "0")
    for capability in range(64):
        libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION_3, 0)
    _must(libc.capset(header, (ctypes.c_uint32 * 6)()), "dropping capabilities")
    _must(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no new privileges")


def limit(limits: dict, boxed: bool) -> None:
    """Memory, processes and bytes written by one process; the judge watches their sum."""
    import resource

    def lower(kind, value):
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(kind, (value, value))

    lower(resource.RLIMIT_CORE, 0)
    lower(resource.RLIMIT_FSIZE, limits["disk_bytes"])
    lower(resource.RLIMIT_NOFILE, 256)
    if sys.platform == "linux":
        with open("/proc/self/statm") as file:
            in_use = int(file.read().split()[0]) * resource.getpagesize()
        lower(resource.RLIMIT_AS, in_use + limits["memory_bytes"])
        with contextlib.suppress(OSError):
            _write("/proc/self/oom_score_adj", "1000")
    if boxed:  # else all processes of the person at this machine would count
        lower(resource.RLIMIT_NPROC, _processes_allowed(limits["processes"]))


def _processes_allowed(wanted: int) -> int:
    """Before Linux 5.14 the limit counts all processes of the user on the machine, not those of the namespace."""
    release = os.uname().release.split(".")
    if (int(release[0]), int(release[1])) >= (5, 14):
        return wanted
    return 4096


# The zygote.


def zygote(
    control: socket.socket,
    boxed: bool,
    nested: bool,
    notebook: bool,
    imports: list[str],
    limits: dict,
    places: list[str],
) -> None:
    """Import everything, say hello, then fork a submission for each request until the judge hangs up.

    boxed: whether this is inside bubblewrap. nested: whether each submission shall have namespaces of its own.
    imports: modules of the learner's wing that submissions will ask for.
    """
    import torch

    import helpers.checking.earlier  # noqa: F401
    import helpers.checking.observe  # noqa: F401
    from helpers.checking import registry as lessons
    from helpers.checking.forbidden import warm_up

    lessons.load()
    torch.set_num_threads(1)
    warm_up()
    remember_originals()
    _lend_fonts()
    shell = make_shell() if notebook else None
    for name in imports if notebook else ():
        with contextlib.suppress(Exception):  # no module, or one that is withheld: whoever asks for it meets the same
            importlib.import_module(name)
    gc.freeze()  # a collection in a fork would otherwise copy every page it looks at
    gc.enable()
    problem = _nested_problem(limits, places) if nested else None
    hello = {"ready": True, "nested": nested and problem is None, "problem": problem or ""}
    send(control, bytes(TOKEN_BYTES), hello)
    nested = hello["nested"]
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
            child = _fork_submission(control, fds[0], boxed, nested, shell, limits, places)
            os.close(fds[0])


def _lend_fonts() -> None:
    """Spare matplotlib the search for the machine's fonts, where it was made before."""
    found = os.path.join(os.path.dirname(os.path.abspath(__file__)), "matplotlib")
    with contextlib.suppress(OSError, KeyError):
        shutil.copytree(found, os.environ["MPLCONFIGDIR"], dirs_exist_ok=True)


def _nested_problem(limits: dict, places: list[str]) -> str | None:
    """Try the namespaces of a submission once; what went wrong, or None."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            unshare()
            inner = os.fork()
            if inner == 0:
                furnish(places, limits["disk_bytes"])
                os.write(writing, b"ok")
                os._exit(0)
            os.waitpid(inner, 0)
        except OSError as error:
            os.write(writing, str(error).encode())
        finally:
            os._exit(0)
    os.close(writing)
    os.waitpid(pid, 0)
    with open(reading, "rb") as file:
        said = file.read().decode()
    return None if said == "ok" else said or "no answer"


class Child(types.SimpleNamespace):
    """A submission as the zygote sees it: pid of its parent in our namespaces, pid of its init, its folder."""


def _fork_submission(control, fd: int, boxed: bool, nested: bool, shell, limits: dict, places: list[str]) -> Child:
    folder = None if nested else tempfile.mkdtemp(prefix="submission-")
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            control.close()
            os.close(reading)
            if nested:
                _become_outer(writing, fd, shell, limits, places)
            else:
                os.setsid()
                os.write(writing, b"0")
                os.close(writing)
                os.environ["HOME"] = folder
                _become_submission(fd, folder, shell, limits, boxed)
        finally:
            os._exit(1)
    os.close(writing)
    with open(reading, "rb") as file:
        said = file.read()
    return Child(pid=pid, init=int(said) if said.isdigit() else 0, folder=folder)


def _become_outer(writing: int, fd: int, shell, limits: dict, places: list[str]) -> None:
    """Parent of the submission's init: stays outside its process namespace only to report and to reap."""
    unshare()
    init = os.fork()
    if init == 0:
        os.close(writing)
        furnish(places, limits["disk_bytes"])
        _become_init(fd, shell, limits)
    os.close(fd)
    os.write(writing, str(init).encode())
    os.close(writing)
    os.waitpid(init, 0)
    os._exit(0)


def _become_init(fd: int, shell, limits: dict) -> None:
    libc = _libc()
    os.setsid()  # a signal to one's own process group reaches beyond one's own process namespace
    die_with_parent()
    libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    pid = os.fork()
    if pid == 0:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        libc.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)
        _become_submission(fd, HOME, shell, limits, boxed=True)
    os.close(fd)
    while True:
        ended, _ = os.wait()
        if ended == pid:
            os._exit(0)


def _end(child: Child) -> None:
    """Kill a submission with all that it started, and wait until it is gone."""
    if child.init:
        _kill(child.init)
    elif child.folder is not None:
        with contextlib.suppress(OSError):
            os.killpg(child.pid, signal.SIGKILL)
        for pid in _descendants(child.pid):
            _kill(pid)
        _kill(child.pid)
    else:
        _kill(child.pid)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(child.pid, 0)
    if child.folder is not None:
        shutil.rmtree(child.folder, ignore_errors=True)


def _kill(pid: int) -> None:
    with contextlib.suppress(OSError):
        os.kill(pid, signal.SIGKILL)


def _descendants(pid: int) -> list[int]:
    try:
        import psutil

        return [process.pid for process in psutil.Process(pid).children(recursive=True)]
    except Exception:
        return []


# One submission.


def _become_submission(fd: int, folder: str, shell, limits: dict, boxed: bool) -> None:
    """Serve the judge's requests on `fd` until it hangs up."""
    try:
        os.chdir(folder)
        null = os.open(os.devnull, os.O_RDWR)
        for standard in (0, 1, 2):
            os.dup2(null, standard)
        limit(limits, boxed)
        channel = socket.socket(fileno=fd)
        channel.set_inheritable(False)
        serve(channel, Namespace(shell))
    except (EOFError, ConnectionError):
        pass
    finally:
        os._exit(0)


def serve(channel: socket.socket, namespace: Namespace) -> None:
    exercise = None
    kept: dict[str, object] = {}  # what the names of exercises stood for when they were judged
    while True:
        token, request = receive(channel)
        if exercise is not None:
            with contextlib.suppress(OSError):
                os.killpg(exercise, signal.SIGKILL)
            _kill(exercise)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(exercise, 0)
            exercise = None
        if request["do"] == "cell":
            outputs, error = namespace.run(request["id"], request["source"], request["seconds"])
            send(channel, token, {"outputs": outputs, "error": error})
        elif request["do"] == "names":
            found = {name: describe(namespace.names, name) for name in request["names"]}
            if request["keep"]:
                kept[request["keep"]] = namespace.names.get(request["keep"])
            changed = [name for name, thing in kept.items() if namespace.names.get(name) is not thing]
            send(channel, token, {"found": found, "changed": changed, "patched": patched_names()})
        elif request["do"] == "passed":
            from helpers.or_given import remember_passed

            for name in request["names"]:
                remember_passed(name, True)
            send(channel, token, {})
        elif request["do"] == "file":
            put_file(request["name"], base64.b64decode(request["content"]))
            send(channel, token, {})
        elif request["do"] == "observe":
            _, fds, _, _ = socket.recv_fds(channel, 1, 1)
            exercise = os.fork()
            if exercise == 0:
                try:
                    channel.close()
                    os.setsid()
                    own = socket.socket(fileno=fds[0])
                    own.set_inheritable(False)
                    send(own, token, observe_answer(namespace.names, request, own, token))
                finally:
                    os._exit(0)
            os.close(fds[0])
        else:
            send(channel, token, {})


def put_file(name: str, content: bytes) -> None:
    """Lay a file into the submission's folder. A module of the learner's own is found there, after all others."""
    with contextlib.suppress(OSError), open(os.path.basename(name), "wb") as file:
        file.write(content)
    if name.endswith(".py") and os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())


def observe_answer(names: dict, request: dict, own: socket.socket, token: bytes) -> dict:
    """Call the answer on every case: {"observations", "patched"}.

    request: name, facts, cases, cpu_seconds (for all of them), and replace: the source of finished blocks that
    stand in for earlier answers, in this fork alone. A forbidden call is told on `own` as soon as it is seen: no code
    that runs later can take that back.
    """
    import resource

    import torch

    from helpers.checking import forbidden
    from helpers.checking.earlier import hidden_builtins
    from helpers.checking.observe import Facts, case_from_tree, listened, observe_all

    resource.setrlimit(resource.RLIMIT_CPU, (request["cpu_seconds"], request["cpu_seconds"]))
    patched = patched_names()
    torch.set_num_threads(1)
    telling = threading.Lock()

    def tell(name: str) -> None:
        with telling:
            send(own, token, {"note": name})

    forbidden.tell = tell
    if request["builtins"]:
        names.update(hidden_builtins(names))
    if request["replace"]:
        put_in_place(names, request["replace"])
    facts = Facts(**request["facts"])
    cases = [case_from_tree(case) for case in request["cases"]]
    answer = names.get(request["name"])
    seen = observe_all(answer, cases, facts, leave=True)
    if facts.forbidden and not request["replace"] and seen[0].error is None:
        listened(answer, cases[0], facts)
    return {"observations": [observation.to_tree() for observation in seen], "patched": patched}


WATCHED = (
    ("torch", "allclose equal isclose all"),
    ("torch.testing", "assert_close"),
    ("torch.Tensor", "__eq__ __init_subclass__ allclose equal clone numpy detach"),
    ("helpers.checking.observe", "observe observe_all describe Watch in_source plain difference"),
    ("helpers.checking.forbidden", "Watch in_source banned_names _ByName _ByOperator"),
    ("helpers.checking.codec", "dumps loads plain pack"),
    ("helpers.checking.compare", "difference"),
    ("builtins", "isinstance type len sum all any abs print"),
    ("time", "perf_counter monotonic"),
    ("signal", "signal setitimer"),
)
OBSERVERS = ("observe", "forbidden", "torch_insides", "codec", "compare", "scenarios")  # of these, all functions
_originals: dict[tuple[str, str], object] = {}
_codes: dict[tuple[str, str], object] = {}


def remember_originals() -> None:
    """Keep what WATCHED names and what observes, before any learner code runs."""
    for home, names in WATCHED:
        for name in names.split():
            _originals[home, name] = _current(home, name)
    _codes.update(_observers_code())


def patched_names() -> list[str]:
    """What the learner's code replaced of these: for a person to look at, no proof of anything."""
    names = [f"{home}.{name}" for (home, name), before in _originals.items() if _current(home, name) is not before]
    now = _observers_code()
    names += [f"{home}.{name}" for (home, name), code in _codes.items() if now.get((home, name)) is not code]
    return list(dict.fromkeys(names))


def _observers_code() -> dict[tuple[str, str], object]:
    """The code of every function and method in the modules that observe."""
    found = {}
    for short in OBSERVERS:
        home = f"helpers.checking.{short}"
        for name, thing in list(vars(sys.modules[home]).items()):
            if isinstance(thing, types.FunctionType):
                found[home, name] = thing.__code__
            elif isinstance(thing, type) and thing.__module__ == home:
                methods = [(n, m) for n, m in vars(thing).items() if isinstance(m, types.FunctionType)]
                found.update({(home, f"{name}.{inner}"): method.__code__ for inner, method in methods})
    return found


def _current(home: str, name: str):
    owner = sys.modules.get(home)
    if owner is None:
        module, _, owner = home.rpartition(".")
        owner = getattr(sys.modules[module], owner)
    return vars(owner).get(name)


def put_in_place(names: dict, replace: dict) -> None:
    """Run a block's source by itself and let the named pieces replace the learner's."""
    from helpers.checking.forbidden import not_watched

    scratch = {"__name__": "finished_block"}
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
    if isinstance(value, str):
        return "str", str(value)[:200]
    return "none" if value is None or value is ... else "callable" if callable(value) else type(value).__name__, None


def queued_seconds() -> float:
    """How long this process has waited for a processor that others had; 0 where the system does not tell."""
    with contextlib.suppress(OSError, ValueError, IndexError), open("/proc/self/schedstat") as file:
        return int(file.read().split()[1]) / 1e9
    return 0.0


def limit_processor_time(seconds: float) -> None:
    """Let the system end this process once it has computed for so long from now on."""
    import resource

    used = resource.getrusage(resource.RUSAGE_SELF)
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CPU, (int(used.ru_utime + used.ru_stime + seconds) + 1, hard))


class CellTimeout(KeyboardInterrupt):
    """A cell ran for longer than it may."""


class Namespace:
    """Where the learner's cells run: IPython's for a notebook, plain exec for a loose file."""

    def __init__(self, shell):
        self.shell = shell
        if shell is None:
            module = types.ModuleType("__main__")
            module.__dict__["__builtins__"] = __builtins__
            sys.modules["__main__"] = module
            self.names = module.__dict__
        else:
            self.names = shell.user_ns

    def run(self, cell_id: str, source: str, seconds: float) -> tuple[list[dict], str]:
        """Run one cell: its outputs as nbformat dicts, and its error as one line ("" for none).

        seconds: of processor time; a cell that waits has a little longer. While others keep the processor busy, no time
        passes.
        """
        outputs = Outputs()

        queued = queued_seconds()

        def stop(number, _frame):
            nonlocal queued
            more = queued_seconds() - queued
            if number == signal.SIGALRM and more > 1:
                queued += more
                signal.setitimer(signal.ITIMER_REAL, more)
                return
            raise CellTimeout(f"stopped after {seconds:g} s")

        limit_processor_time(seconds + 5)  # for what does not listen to signals
        make_check_silent()
        stdout, stderr = sys.stdout, sys.stderr
        sys.stdout, sys.stderr = Stream(outputs, "stdout"), Stream(outputs, "stderr")
        timers = (
            (signal.SIGPROF, signal.ITIMER_PROF, seconds),
            (signal.SIGALRM, signal.ITIMER_REAL, PATIENCE * seconds),
        )
        for number, timer, limit in timers:
            signal.signal(number, stop)
            signal.setitimer(timer, limit)
        try:
            if self.shell is None:
                error = self._run_plain(cell_id, source)
            else:
                error = self._run_in_shell(cell_id, source, outputs)
        except CellTimeout as late:
            error = f"CellTimeout: {late}"
        finally:
            for number, timer, _ in timers:
                signal.setitimer(timer, 0)
                signal.signal(number, signal.SIG_IGN)
            sys.stdout, sys.stderr = stdout, stderr
        return outputs.items, error[:ERROR_BYTES]

    def _run_plain(self, name: str, source: str) -> str:
        linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
        self.names["__file__"] = name
        try:
            exec(compile(source, name, "exec", dont_inherit=True), self.names)
        except BaseException as error:
            return one_line(error, name)
        return ""

    def _run_in_shell(self, cell_id: str, source: str, outputs: Outputs) -> str:
        self.shell.collect(outputs, f"<cell {cell_id}>")
        result = self.shell.run_cell(source, store_history=False)
        error = result.error_before_exec or result.error_in_exec
        if error is None:
            return ""
        line = one_line(error, f"<cell {cell_id}>")
        # IPython keeps the error for a debugger, and with it copies of what its functions held.
        self.shell.InteractiveTB.tb = None
        for name in ("last_type", "last_value", "last_traceback", "last_exc"):
            vars(sys).pop(name, None)
        del result, error
        gc.collect()
        return line


def make_check_silent() -> None:
    """A check that the learner calls finds no answer key here; the judge decides elsewhere, so it does nothing."""
    import helpers

    def check(*_answers, **_named):
        """Judge one answer. The grader does so outside of this process."""

    def at_work(*_answers, **_named):
        """Show an answer in the translator. Nobody looks here."""

    for silent in (check, at_work):
        setattr(helpers, silent.__name__, silent)
        setattr(sys.modules[f"helpers.{silent.__name__}"], silent.__name__, silent)


def one_line(error: BaseException, place: str) -> str:
    """ "ValueError in line 3: the message", with the last line of the learner's own code that it came from."""
    line = error.lineno if isinstance(error, SyntaxError) else None
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == place:
            line = trace.tb_lineno
        trace = trace.tb_next
    try:
        said = error.msg if isinstance(error, SyntaxError) else str(error)
    except Exception:
        said = ""
    where = f" in line {line}" if line else ""
    first = (said or "").strip().splitlines()[:1]
    traceback.clear_frames(error.__traceback__)  # else what filled the memory stays in it
    return f"{type(error).__name__}{where}" + (f": {first[0][:500]}" if first else "")


class Outputs:
    """The outputs of one cell, bounded in number and in bytes."""

    def __init__(self):
        self.items: list[dict] = []
        self.text_left = TEXT_BYTES
        self.rich_left = RICH_BYTES

    def stream(self, name: str, text: str) -> None:
        if self.text_left <= 0 or not text:
            return
        if len(text) > self.text_left:
            text = text[: self.text_left] + CUT
            self.text_left = 0
        self.text_left -= len(text)
        if self.items and self.items[-1]["output_type"] == "stream" and self.items[-1]["name"] == name:
            self.items[-1]["text"] += text
        elif len(self.items) < MAX_OUTPUTS:
            self.items.append({"output_type": "stream", "name": name, "text": text})

    def rich(self, kind: str, data: dict, metadata: dict | None = None) -> None:
        data = {str(mime): body for mime, body in data.items() if isinstance(body, str)}
        size = sum(map(len, data.values()))
        if size > self.rich_left or len(self.items) >= MAX_OUTPUTS:
            self.stream("stderr", CUT)
            return
        self.rich_left -= size
        item = {"output_type": kind, "data": data, "metadata": {}}
        if kind == "execute_result":
            item["execution_count"] = None
        self.items.append(item)

    def error(self, name: str, value: str, traceback: list[str]) -> None:
        kept = "\n".join(traceback)[-ERROR_BYTES:].split("\n")
        self.items.append({"output_type": "error", "ename": name, "evalue": value[:ERROR_BYTES], "traceback": kept})

    def clear(self) -> None:
        self.items.clear()


class Stream(io.TextIOBase):
    """What learner code sees as stdout or stderr."""

    encoding = "utf-8"
    errors = "replace"

    def __init__(self, outputs: Outputs, name: str):
        self.outputs, self.name = outputs, name

    def writable(self) -> bool:
        return True

    def write(self, text) -> int:
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        self.outputs.stream(self.name, text)
        return len(text)


def make_shell():
    """An IPython shell that writes nothing to disk and hands every output to an Outputs."""
    from IPython.core.displayhook import DisplayHook
    from IPython.core.displaypub import DisplayPublisher
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    class Publisher(DisplayPublisher):
        outputs = None

        def publish(self, data, metadata=None, **_):
            if self.outputs is not None:
                self.outputs.rich("display_data", data, metadata)

        def clear_output(self, wait=False):
            if self.outputs is not None:
                self.outputs.clear()

    class Hook(DisplayHook):
        outputs = None

        def start_displayhook(self):
            pass

        def write_output_prompt(self):
            pass

        def write_format_data(self, format_dict, md_dict=None):
            if self.outputs is not None:
                self.outputs.rich("execute_result", format_dict, md_dict)

        def finish_displayhook(self):
            pass

    class Shell(InteractiveShell):
        display_pub_class = Publisher
        displayhook_class = Hook
        outputs = None

        def collect(self, outputs, name):
            self.outputs = self.display_pub.outputs = self.displayhook.outputs = outputs
            self.compile.get_code_name = lambda *_: name

        def _showtraceback(self, etype, evalue, stb):
            if self.outputs is not None:
                self.outputs.error(etype.__name__, str(evalue), list(stb))

        def enable_gui(self, gui=None):
            pass

    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "NoColor"
    shell = Shell.instance(config=config)
    import matplotlib.pyplot as plt  # the inline backend attaches itself to the shell that exists by now

    import helpers.drawing.style  # noqa: F401
    import helpers.progress  # noqa: F401
    import helpers.widgets.panel  # noqa: F401, what every lesson's import cell would spend its time on

    figure = plt.figure()
    figure.text(0, 0, "warm")
    figure.savefig(io.BytesIO())
    plt.close(figure)
    return shell


def main() -> None:
    gc.disable()  # what is imported stays: to look for what does not takes a tenth of the time
    request = ast.literal_eval(sys.argv[1])
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    control = socket.socket(fileno=request["fd"])
    control.set_inheritable(False)
    del request["fd"]
    zygote(control, **request)
    os._exit(0)  # an interpreter full of torch takes seconds to tidy up what goes away anyway


if __name__ == "__main__":
    main()
