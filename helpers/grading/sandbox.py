"""Starts the worker where learner code can do no harm, and speaks to it. What comes back is only read, never believed.

In bubblewrap a process sees the Python installation, the operating system's programs and a copy of the learner's
wing without this lesson's answers, all read-only; no network, no other process, no file of the teacher's. Each
submission has namespaces of its own inside, so that it meets no trace of the one before it.
"""

from __future__ import annotations

import base64
import contextlib
import importlib.util
import os
import secrets
import shutil
import signal
import site
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

from helpers import corpus
from helpers.checking.codec import loads
from helpers.corpus.provided import lay_down
from helpers.errors import CourseError
from helpers.grading import worker
from helpers.grading.scratch import Scratch
from helpers.grading.words import one_line

HELPERS = Path(__file__).resolve().parents[1]
PROJECT = HELPERS.parent
COURSE = "/course"  # where the learner's wing stands inside
ORDINARY_USER = 65534  # nobody: who learner code runs as when root starts the grader
OTHER_WINGS = ("authoring", "grading")
START_SECONDS = 180
MOST_WORDS = 12 << 20  # bytes of a reply that are no numbers: each may become an object a hundred times its size
MOST_NOTES = 60  # of one exercise


class Withheld(NamedTuple):
    files: tuple[str, ...] = ()
    data: tuple[str, ...] = ()


# What the answers of a lesson shall learn and not look up. files: of the learner's wing, absent in its sandbox. data:
# functions of helpers.corpus that take no arguments, whose results lie there instead (helpers/corpus/provided.py).
WITHHELD = {
    "11": Withheld(
        files=("corpus/translation.py", "corpus/lexicon.py", "translator/weights.safetensors"),
        data=("training_lines", "unseen_lines", "english_words", "french_words"),
    ),
    "12": Withheld(
        files=("corpus/source.py",), data=("language_text", "language_symbols", "language_unseen", "entropy_rate")
    ),
}
TICK = 0.25  # seconds between two looks at memory and processes while waiting
CROWD = 3  # times the processor time of one process that all processes of a submission may take together

DROP_ROOT = (
    f"import os, sys; os.setgroups([]); os.setgid({ORDINARY_USER}); os.setuid({ORDINARY_USER}); "
    "os.execv(sys.argv[1], sys.argv[1:])"
)


class SandboxMissing(CourseError):
    """Learner code cannot be isolated on this machine. The message is for a person."""


class SandboxFailed(CourseError):
    """The sandbox is there but did not start or stopped answering: the grader's trouble, not a learner's."""


class Lost(Exception):
    """A submission or an exercise gave no usable reply. reason: died, too slow, crowd, memory or garbage."""

    def __init__(self, reason: str):
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True)
class Limits:
    """Of one submission. memory_bytes: of one process, beyond what torch itself takes; total_bytes: of all."""

    memory_bytes: int = 2 << 30
    total_bytes: int = 3 << 30
    disk_bytes: int = 64 << 20
    processes: int = 48
    cell_seconds: float = 60.0
    reply_bytes: int = 32 << 20


class Sandbox:
    """One worker with everything imported, which forks a process for each submission. Use as a context manager.

    lesson: blocks and answer keys of this lesson and later ones are left out. notebook: submissions are notebook
    cells (IPython and figures are ready), else loose files. unsafe: a plain process instead of bubblewrap. imports:
    modules of the learner's wing that are loaded once, for all submissions; names that are none do no harm.
    Raises SandboxMissing, SandboxFailed.
    """

    try_nested = True  # else, and where it is refused, every submission has a whole bubblewrap of its own

    def __init__(
        self,
        lesson: str,
        notebook: bool = True,
        unsafe: bool = False,
        limits: Limits | None = None,
        imports: Iterable[str] = (),
    ):
        self.lesson, self.notebook, self.unsafe, self.imports = lesson, notebook, unsafe, list(imports)
        self.limits = limits or Limits()
        self.process: subprocess.Popen | None = None
        self.nested = False
        self.used = False
        self.files: dict[str, bytes] = {}  # what every submission finds in its folder
        self.scratch = Scratch("sandbox")
        self.folder = self.scratch.path
        try:
            if not hasattr(os, "fork"):
                raise SandboxMissing("Judging answers needs Linux or macOS; on Windows use WSL.")
            if not unsafe:
                find_bubblewrap()
            os.chmod(self.folder, 0o755)
            stage_wing(self.folder / "course", lesson, fonts=notebook)
            self._start()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(self, *exc) -> None:
        self.close()

    def close(self) -> None:
        self._stop()
        self.scratch.close()

    def submission(self) -> Submission:
        """A fresh process for one submission. Close it before asking for the next."""
        worn = self.used and not (self.nested or self.unsafe)
        if worn or self.process is None or self.process.poll() is not None:
            self._stop()
            self._start()
        self.used = True
        ours, theirs = socket.socketpair()
        try:
            socket.send_fds(self.control, [worker.FORK], [theirs.fileno()])
        except OSError:
            raise SandboxFailed("the sandbox's worker stopped; start again") from None
        finally:
            theirs.close()
        submission = Submission(self, ours)
        for name, content in self.files.items():
            with contextlib.suppress(Lost):  # whoever asks next meets the same, and has words for it
                submission.ask({"do": "file", "name": name, "content": base64.b64encode(content).decode()}, 20)
        return submission

    def _start(self) -> None:
        self.control, theirs = socket.socketpair()
        request = {
            "fd": theirs.fileno(),
            "boxed": not self.unsafe,
            "nested": not self.unsafe and self.try_nested,
            "notebook": self.notebook,
            "imports": self.imports,
            "limits": asdict(self.limits),
            "places": writable_places(),
        }
        here = self.folder / "course" / "worker.py"
        if self.unsafe:
            program = [sys.executable, "-B", str(here), repr(request)]
            environment = environment_inside(home=str(self.folder)) | {"PATH": os.environ.get("PATH", "")}
        else:
            program = bubblewrap(self.folder / "course", [sys.executable, "-B", f"{COURSE}/worker.py", repr(request)])
            environment = {}
        self.said = open(self.folder / "stderr", "w+b")  # noqa: SIM115, closed in _stop
        self.process = subprocess.Popen(
            program,
            env=environment,
            pass_fds=[theirs.fileno()],
            cwd="/",
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self.said,
        )
        theirs.close()
        try:
            hello = receive(self.control, bytes(worker.TOKEN_BYTES), START_SECONDS, 1 << 20, lambda: None)
        except Lost:
            self._explain()
        self.nested = bool(hello["nested"])
        self.used = False

    def _explain(self) -> None:
        """Raise what the worker's last words mean."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(5)
        self.said.seek(0)
        lines = self.said.read().decode(errors="replace").strip().splitlines() or ["it said nothing"]
        if lines[0].startswith("bwrap: "):
            raise SandboxMissing(
                f"Learner code cannot be isolated here ({lines[0]}). Allow user namespaces on this machine, or use "
                "--unsafe on code that you trust."
            )
        raise SandboxFailed(f"the sandbox could not start: {lines[-1]}")

    def _stop(self) -> None:
        if self.process is None:
            return
        self.control.close()  # the worker ends with its control socket
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(OSError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self.said.close()
        self.process = None

    def end_submission(self) -> None:
        """Kill what is left of the current submission and wait until it is gone."""
        try:
            self.control.settimeout(20)
            self.control.sendall(worker.KILL)
            self.control.recv(1)
        except OSError:
            self._stop()

    def watch(self, seconds: float) -> Callable[[], None]:
        """What to call from time to time: it raises Lost when the submission's processes together take more memory
        than they may, or from now on more processor time than CROWD times `seconds`."""
        try:
            import psutil
        except ImportError:
            return lambda: None
        before = None

        def tick() -> None:
            nonlocal before
            with contextlib.suppress(psutil.Error, OSError):
                children = psutil.Process(self.process.pid).children(recursive=True)
                self._overfull(children)
                now = sum(map(processor_seconds, children))
                before = now if before is None else min(before, now)
                if now - before > CROWD * seconds:
                    raise Lost("crowd")

        return tick

    def _overfull(self, children: list) -> None:
        """Raise Lost when these processes together take more memory than they may."""
        base = max(self.base_bytes(), 1)
        if sum(max(0, private_bytes(child) - base) for child in children) <= self.limits.total_bytes:
            return
        # What a fork shares with its parent was counted twice; to tell that takes a closer look.
        if sum(own_bytes(child) for child in children) > self.limits.total_bytes + base:
            raise Lost("memory")

    def base_bytes(self) -> int:
        """What a process that has imported torch holds, roughly; forks share it."""
        return 200 << 20


def own_bytes(process) -> int:
    """What a process holds, and of what it shares with others its part."""
    import psutil

    try:
        return process.memory_full_info().pss
    except (psutil.Error, OSError, AttributeError):
        return max(0, private_bytes(process))


def processor_seconds(process) -> float:
    """What a process has computed, with those that it started and that have ended."""
    import psutil

    try:
        return sum(process.cpu_times()[:4])
    except psutil.Error:
        return 0.0


def private_bytes(process) -> int:
    import psutil

    try:
        info = process.memory_info()
    except psutil.Error:
        return 0
    return info.rss - getattr(info, "shared", 0)


class Submission:
    """One submission's process, as the judge speaks to it."""

    def __init__(self, sandbox: Sandbox, channel: socket.socket):
        self.sandbox, self.channel = sandbox, channel

    def __enter__(self) -> Submission:
        return self

    def __exit__(self, *exc) -> None:
        self.close()

    def close(self) -> None:
        self.channel.close()
        self.sandbox.end_submission()

    def ask(self, request: dict, seconds: float):
        """Send a request and return the reply, a tree that may hold anything. Raises Lost."""
        token = secrets.token_bytes(worker.TOKEN_BYTES)
        self._send(token, request)
        tick = self.sandbox.watch(request.get("seconds", seconds))
        return receive(self.channel, token, seconds, self.sandbox.limits.reply_bytes, tick)

    def observe(self, request: dict, seconds: float) -> tuple[object, list[str]]:
        """The reply of a fork of the submission, over a socket of its own, and the notes that came before it: what was
        told at once, so that no code after it could take it back. Raises Lost."""
        token = secrets.token_bytes(worker.TOKEN_BYTES)
        self._send(token, {"do": "observe", **request})
        ours, theirs = socket.socketpair()
        with ours:
            try:
                socket.send_fds(self.channel, [worker.FORK], [theirs.fileno()])
            except OSError:
                raise Lost("gone") from None
            finally:
                theirs.close()
            end, notes, tick = time.monotonic() + seconds, [], self.sandbox.watch(request["cpu_seconds"])
            while len(notes) <= MOST_NOTES:
                left = end - time.monotonic()
                reply = receive(ours, token, left, self.sandbox.limits.reply_bytes, tick)
                if not isinstance(reply, dict) or set(reply) != {"note"}:
                    return reply, notes
                notes.append(one_line(str(reply["note"]), 80))
            raise Lost("garbage")

    def alive(self) -> bool:
        """Whether the submission still answers; an exercise's fork, if one still runs, is killed."""
        try:
            self.ask({"do": "nothing"}, 10)
        except Lost:
            return False
        return True

    def _send(self, token: bytes, request: dict) -> None:
        self.channel.settimeout(20)
        try:
            worker.send(self.channel, token, request)
        except OSError:
            raise Lost("gone") from None


def receive(channel: socket.socket, token: bytes, seconds: float, most: int, tick):
    """A reply that starts with `token`, within `seconds` and `most` bytes. Raises Lost, whatever arrives."""
    end = time.monotonic() + seconds
    data, needed = bytearray(), 8 + len(token)
    while len(data) < needed:
        left = end - time.monotonic()
        if left <= 0:
            raise Lost("too slow")
        channel.settimeout(min(left, TICK))
        try:
            chunk = channel.recv(min(needed - len(data), 1 << 20))
        except TimeoutError:
            tick()
            continue
        except OSError:
            raise Lost("died") from None
        if not chunk:
            raise Lost("died")
        data += chunk
        if len(data) == 8 + len(token) and needed == len(data):
            if data[8:] != token or int.from_bytes(data[:8], "little") > most:
                raise Lost("garbage")
            needed += int.from_bytes(data[:8], "little")
    body = bytes(data[8 + len(token) :])
    if int.from_bytes(body[:8], "little") > MOST_WORDS:
        raise Lost("garbage")
    try:
        return loads(body)
    except Exception:  # whatever a hostile process sent, it is no reply
        raise Lost("garbage") from None


def find_bubblewrap() -> str:
    found = shutil.which("bwrap", path=os.environ.get("PATH", "") + ":/usr/bin:/usr/local/bin")
    if found is None:
        raise SandboxMissing(
            "bubblewrap is not installed, so learner code cannot be isolated. Install it (on Debian and Ubuntu: "
            "apt install bubblewrap), or use --unsafe on code that you trust."
        )
    return found


def stage_wing(target: Path, lesson: str, fonts: bool = False) -> None:
    """Copy what learner code may import: the learner's wing, with blocks and keys of earlier lessons only.

    fonts: lend matplotlib's list of this machine's fonts too, which takes it long to make.
    """

    withheld = WITHHELD.get(lesson[:2], Withheld())

    def left_out(folder, names):
        folder = Path(folder)
        hidden = {name for name in names if name == "__pycache__" or name.endswith(".pyc")}
        if folder == HELPERS:
            hidden |= set(OTHER_WINGS)
        if folder == HELPERS / "blocks":
            hidden |= {name for name in names if name[:2].isdigit() and name[:2] >= lesson[:2]}
        if folder == HELPERS / "answer_keys":
            hidden |= {name for name in names if name.endswith(".npz") and name[:2] >= lesson[:2]}
        if folder.is_relative_to(HELPERS):
            hidden |= {name for name in names if (folder / name).relative_to(HELPERS).as_posix() in withheld.files}
        return hidden

    shutil.copytree(HELPERS, target / "helpers", ignore=left_out, copy_function=shutil.copyfile)
    _lend_compiled(target / "helpers")
    for name in withheld.data:
        lay_down(name, getattr(corpus, name)(), target / "helpers" / "corpus" / "provided")
    shutil.copyfile(worker.__file__, target / "worker.py")
    if fonts:
        lent = target / "matplotlib"
        lent.mkdir()
        for file in font_lists():
            with contextlib.suppress(OSError):
                shutil.copyfile(file, lent / file.name)
    toml = PROJECT / "course.toml"
    if toml.is_file():
        shutil.copyfile(toml, target / "course.toml")
    os.chmod(target, 0o755)
    for path in target.rglob("*"):
        os.chmod(path, 0o755 if path.is_dir() else 0o644)


def font_lists() -> list[Path]:
    """What matplotlib has written of this machine's fonts, where it keeps such (importing it to ask takes longer)."""
    home = Path(os.path.expanduser("~"))
    places = [os.environ.get("MPLCONFIGDIR"), home / ".matplotlib"]
    places.append(Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache") / "matplotlib")
    return [file for place in places if place for file in Path(place).glob("fontlist-*.json")]


def _lend_compiled(staged: Path) -> None:
    """Give the staged modules, and no others, what Python has compiled of them: the worker then need not."""
    for path in staged.rglob("*.py"):
        source = HELPERS / path.relative_to(staged)
        compiled = Path(importlib.util.cache_from_source(str(source)))
        with contextlib.suppress(OSError):
            facts = source.stat()
            os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))
            if compiled.stat().st_mtime_ns >= facts.st_mtime_ns:
                place = path.parent / compiled.parent.name
                place.mkdir(exist_ok=True)
                shutil.copyfile(compiled, place / compiled.name)


def environment_inside(home: str = worker.HOME) -> dict[str, str]:
    """All environment variables that learner code sees."""
    variables = {
        "PATH": "/usr/bin:/bin",
        "HOME": home,
        "USER": "learner",
        "LOGNAME": "learner",
        "LANG": "C.UTF-8",
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
        "IPYTHONDIR": f"{home}/.ipython",
        "TMPDIR": home,
        "MPLCONFIGDIR": f"{home}/.matplotlib",
        "PYTHONDONTWRITEBYTECODE": "1",
        "COURSE_STATIC_PAGE": "1",
        "TORCH_COMPILE_DISABLE": "1",  # what is compiled gives the same numbers as what is not, after minutes
    }
    if site.ENABLE_USER_SITE:
        variables["PYTHONUSERBASE"] = site.getuserbase()
    return variables


def runtime_folders() -> list[str]:
    """The folders of this Python and its packages, besides the operating system's."""
    folders = [sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix]
    step = Path(sys.executable)
    while step.is_symlink():
        step = step.parent / os.readlink(step)
        folders.append(os.path.normpath(step.parent.parent))
    folders += [*site.getsitepackages(), site.getusersitepackages()]
    folders = [folder for folder in folders if os.path.isdir(folder)]
    kept = []
    for folder in sorted({os.path.abspath(folder) for folder in folders}, key=len):
        holds_project = folder == "/" or PROJECT.is_relative_to(folder)
        covered = folder.startswith("/usr/") or folder == "/usr" or any(is_within(folder, other) for other in kept)
        if not holds_project and not covered:
            kept.append(folder)
    return kept


def writable_places() -> list[str]:
    """Where learner code may write, each in memory and its own: not /tmp where Python itself is installed there."""
    free = not any(is_within(folder, "/tmp") for folder in runtime_folders())
    return [worker.HOME, "/dev/shm", *(["/tmp"] if free else [])]


def is_within(folder: str, other: str) -> bool:
    return folder == other or folder.startswith(other.rstrip("/") + "/")


def view(course: Path) -> list[str]:
    """bubblewrap's arguments for the files that learner code sees, all read-only."""
    arguments = ["--ro-bind", "/usr", "/usr"]
    for name in ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"):
        if os.path.islink(name):
            arguments += ["--symlink", os.readlink(name), name]
        elif os.path.isdir(name):
            arguments += ["--ro-bind", name, name]
    arguments += ["--perms", "0755", "--dir", "/etc"]
    for name in ("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "fonts", "localtime", "nsswitch.conf"):
        arguments += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    folders = runtime_folders()
    installed = [os.path.join(place, "helpers") for place in [*site.getsitepackages(), site.getusersitepackages()]]
    hidden = [str(PROJECT), *filter(os.path.isdir, installed)]
    places = [(folder, "--ro-bind") for folder in folders]
    places += [(folder, "--tmpfs") for folder in hidden if any(is_within(folder, seen) for seen in [*folders, "/usr"])]
    for folder, how in sorted(places, key=lambda place: len(place[0])):
        arguments += parents(folder)
        arguments += [how, folder, folder] if how == "--ro-bind" else [how, folder]
    return arguments + ["--ro-bind", str(course), COURSE]


def parents(folder: str) -> list[str]:
    """Arguments that make the folders above `folder` open to everyone, as bubblewrap would make them private."""
    above = [str(parent) for parent in reversed(Path(folder).parents) if str(parent) != "/"]
    return [word for parent in above if not is_within(parent, "/usr") for word in ("--perms", "0755", "--dir", parent)]


def bubblewrap(course: Path, program: list[str]) -> list[str]:
    """The command that runs `program` in the sandbox; `course` is the staged copy of the learner's wing.

    Real root first arranges the view, so that an ordinary user can read an installation below /root, and then
    becomes that user, who starts the sandbox proper: limits on processes do not hold for root.
    """
    bwrap = find_bubblewrap()
    files = view(course)
    inside = [
        bwrap,
        "--unshare-all",
        "--die-with-parent",
        "--new-session",
        "--hostname",
        "sandbox",
        "--clearenv",
        *files,
        "--proc",
        "/proc",
        "--dev",
        "/dev",
    ]
    for place in writable_places():
        inside += ["--tmpfs", place]
    for name, value in environment_inside().items():
        inside += ["--setenv", name, value]
    inside += ["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", worker.HOME, "--", *program]
    if os.getuid() != 0:
        return inside
    inner = inside.index(str(course))
    inside[inner] = COURSE
    outside = [bwrap, "--die-with-parent", *files, *parents(bwrap), "--ro-bind", bwrap, bwrap]
    outside += ["--bind", "/proc", "/proc", "--dev-bind", "/dev", "/dev", "--dir", "/tmp"]
    outside += ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID", "--"]
    return [*outside, sys.executable, "-I", "-S", "-c", DROP_ROOT, *inside]
