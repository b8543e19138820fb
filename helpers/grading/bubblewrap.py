"""bubblewrap's command line: what a process sees in the sandbox, and who it is there.

A process sees the Python installation, the operating system's programs and a staged copy of the learner's wing, all
read-only; no network, no other process, no file of the teacher's.
"""

import os
import shutil
import site
import sys
from pathlib import Path

from helpers.errors import CourseError
from helpers.grading.inside.limits import HOME
from helpers.grading.sandbox_files import PROJECT

COURSE = "/course"  # where the staged copy stands inside
ORDINARY_USER = 65534  # nobody: who learner code runs as when root starts the grader
DROP_ROOT = (
    f"import os, sys; os.setgroups([]); os.setgid({ORDINARY_USER}); os.setuid({ORDINARY_USER}); "
    "os.execv(sys.argv[1], sys.argv[1:])"
)


class SandboxMissing(CourseError):
    """Learner code cannot be isolated on this machine. The message is for a person."""


def find_bubblewrap() -> str:
    program = shutil.which("bwrap", path=os.environ.get("PATH", "") + ":/usr/bin:/usr/local/bin")
    if program is None:
        raise SandboxMissing(
            "bubblewrap is not installed, so learner code cannot be isolated. Install it (on Debian and Ubuntu: "
            "apt install bubblewrap), or use --unsafe on code that you trust."
        )
    return program


def environment_inside(home: str = HOME) -> dict[str, str]:
    """All environment variables that learner code sees."""
    variables = {
        "PATH": "/usr/bin:/bin",
        "HOME": home,
        "USER": "learner",
        "LOGNAME": "learner",
        "LANG": "C.UTF-8",
        **dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"),
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
    executable = Path(sys.executable)
    while executable.is_symlink():
        executable = executable.parent / os.readlink(executable)
        folders.append(os.path.normpath(executable.parent.parent))
    folders += [*site.getsitepackages(), site.getusersitepackages()]
    folders = [folder for folder in folders if os.path.isdir(folder)]
    outermost: list[str] = []
    for folder in sorted({os.path.abspath(folder) for folder in folders}, key=len):
        holds_project = folder == "/" or PROJECT.is_relative_to(folder)
        covered = (
            folder.startswith("/usr/") or folder == "/usr" or any(is_within(folder, parent) for parent in outermost)
        )
        if not holds_project and not covered:
            outermost.append(folder)
    return outermost


def writable_places() -> list[str]:
    """Where learner code may write, each in memory and its own: not /tmp where Python itself is installed there."""
    free = not any(is_within(folder, "/tmp") for folder in runtime_folders())
    return [HOME, "/dev/shm", *(["/tmp"] if free else [])]


def is_within(folder: str, parent: str) -> bool:
    return folder == parent or folder.startswith(parent.rstrip("/") + "/")


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
    mounts = [(folder, "--ro-bind") for folder in folders]
    mounts += [
        (folder, "--tmpfs") for folder in hidden if any(is_within(folder, mounted) for mounted in [*folders, "/usr"])
    ]
    for folder, option in sorted(mounts, key=lambda place: len(place[0])):
        arguments += parents(folder)
        arguments += [option, folder, folder] if option == "--ro-bind" else [option, folder]
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
    inside = [bwrap, "--unshare-all", "--die-with-parent", "--new-session", "--hostname", "sandbox", "--clearenv"]
    inside += [*files, "--proc", "/proc", "--dev", "/dev"]
    for place in writable_places():
        inside += ["--tmpfs", place]
    for name, value in environment_inside().items():
        inside += ["--setenv", name, value]
    inside += ["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", HOME, "--", *program]
    if os.getuid() != 0:
        return inside
    inner = inside.index(str(course))
    inside[inner] = COURSE
    outside = [bwrap, "--die-with-parent", *files, *parents(bwrap), "--ro-bind", bwrap, bwrap]
    outside += ["--bind", "/proc", "/proc", "--dev-bind", "/dev", "/dev", "--dir", "/tmp"]
    outside += ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID", "--"]
    return [*outside, sys.executable, "-I", "-S", "-c", DROP_ROOT, *inside]
