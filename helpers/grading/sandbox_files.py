"""What learner code finds in the sandbox: its files, environment and user."""

import contextlib
import os
import shutil
import site
import sys
from pathlib import Path

from helpers import corpus
from helpers.corpus.provided import lay_down
from helpers.errors import CourseError
from helpers.grading import inside
from helpers.grading.inside.protocol import HOME

HELPERS = Path(__file__).resolve().parents[1]
PROJECT = HELPERS.parent
INSIDE = Path(inside.__file__).parent
OTHER_PACKAGES = ("authoring", "grading", "classroom")

# A lesson's answers must learn these data, not look them up. Its sandbox lacks these files of the learners' part of the
# course, and instead holds the results of these functions of helpers.corpus (helpers/corpus/provided.py).
WITHHELD_FILES = {
    "11": ("corpus/translation.py", "corpus/lexicon.py", "translator/weights.safetensors"),
    "12": ("corpus/source.py",),
}
WITHHELD_DATA = {
    "11": ("training_lines", "unseen_lines", "english_words", "french_words"),
    "12": ("language_text", "language_symbols", "language_unseen", "entropy_rate"),
}
COURSE = "/course"  # the staged copy inside the sandbox
ORDINARY_USER = 65534  # the user nobody, who runs learner code if root starts the grader
DROP_ROOT = (
    f"import os, sys; os.setgroups([]); os.setgid({ORDINARY_USER}); os.setuid({ORDINARY_USER}); "
    "os.execv(sys.argv[1], sys.argv[1:])"
)


def stage_helpers(target: Path, lesson: str, fonts: bool = False) -> None:
    """Copy the program that runs in the sandbox and the part of the course that learner code may import, with finished
    blocks and answer keys of earlier lessons only, to the new folder `target`. fonts: also copy matplotlib's list of
    installed fonts, which takes long to create."""
    number = lesson[:2]
    hidden = {HELPERS / file for file in (*OTHER_PACKAGES, *WITHHELD_FILES.get(number, ()))}

    def left_out(folder: str, names: list[str]) -> set[str]:
        parent = Path(folder)
        if parent.name == "__pycache__":  # the worker need not compile modules that are compiled here
            sources = {name: name.partition(".")[0] + ".py" for name in names}
            existing = {source for source in sources.values() if (parent.parent / source).is_file()}
            copied = existing - left_out(str(parent.parent), list(existing))
            return {name for name, source in sources.items() if source not in copied}
        by_lesson = parent in (HELPERS / "blocks", HELPERS / "answer_keys")
        later = {name for name in names if by_lesson and name[:2].isdigit() and name[:2] >= number}
        return later | {name for name in names if parent / name in hidden}

    shutil.copytree(HELPERS, target / "helpers", ignore=left_out)
    shutil.copytree(INSIDE, target / "helpers" / "inside", ignore=left_out)
    for name in WITHHELD_DATA.get(number, ()):
        lay_down(name, getattr(corpus, name)(), target / "helpers" / "corpus" / "provided")
    if fonts:
        cache = target / "matplotlib"
        cache.mkdir()
        home = Path(os.path.expanduser("~"))  # importing matplotlib to ask it would take longer
        folders = [os.environ.get("MPLCONFIGDIR"), home / ".matplotlib"]
        folders.append(Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache") / "matplotlib")
        for file in [file for folder in folders if folder for file in Path(folder).glob("fontlist-*.json")]:
            with contextlib.suppress(OSError):
                shutil.copyfile(file, cache / file.name)
    toml = PROJECT / "course.toml"
    if toml.is_file():
        shutil.copyfile(toml, target / "course.toml")
    os.chmod(target, 0o755)
    for path in target.rglob("*"):
        os.chmod(path, 0o755 if path.is_dir() else 0o644)


class SandboxMissing(CourseError):
    """Learner code cannot be isolated on this machine. The message is for a person."""


def find_bubblewrap() -> str:
    """The path of the program bwrap. Raises SandboxMissing if it is not installed."""
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
        "TORCH_COMPILE_DISABLE": "1",  # compiling takes minutes and changes no result
    }
    if site.ENABLE_USER_SITE:
        variables["PYTHONUSERBASE"] = site.getuserbase()
    return variables


def runtime_folders() -> list[str]:
    """The folders of this Python and its packages, except /usr and folders that contain the project."""
    folders = [sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix]
    executable = Path(sys.executable)
    while executable.is_symlink():
        executable = executable.parent / os.readlink(executable)
        folders.append(os.path.normpath(executable.parent.parent))
    folders += [*site.getsitepackages(), site.getusersitepackages()]
    folders = [folder for folder in folders if os.path.isdir(folder)]
    outermost = ["/usr"]
    for folder in sorted({os.path.abspath(folder) for folder in folders}, key=len):
        covered = any(map(Path(folder).is_relative_to, outermost))
        if not covered and folder != "/" and not PROJECT.is_relative_to(folder):
            outermost.append(folder)
    return outermost[1:]


def writable_places() -> list[str]:
    """The folders in which learner code may write, in memory only; without /tmp if Python is installed there."""
    tmp_in_use = any(Path(folder).is_relative_to("/tmp") for folder in runtime_folders())
    return [HOME, "/dev/shm"] + ([] if tmp_in_use else ["/tmp"])


def view(course: Path) -> list[str]:
    """bubblewrap's arguments for the files that learner code sees, all read-only. course: as in `bubblewrap`."""
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
    installed = [os.path.join(folder, "helpers") for folder in [*site.getsitepackages(), site.getusersitepackages()]]
    hidden = [str(PROJECT), *filter(os.path.isdir, installed)]
    mounts = {folder: ["--ro-bind", folder, folder] for folder in folders}
    mounted = [*folders, "/usr"]
    mounts |= {folder: ["--tmpfs", folder] for folder in hidden if any(map(Path(folder).is_relative_to, mounted))}
    for folder in sorted(mounts, key=len):
        arguments += parents(folder) + mounts[folder]
    return arguments + ["--ro-bind", str(course), COURSE]


def parents(folder: str) -> list[str]:
    """Arguments that make the folders above `folder` readable for everyone; bubblewrap would create them private."""
    above = [parent for parent in reversed(Path(folder).parents) if str(parent) != "/"]
    own = [str(parent) for parent in above if not parent.is_relative_to("/usr")]
    return [word for parent in own for word in ("--perms", "0755", "--dir", parent)]


def bubblewrap(course: Path, program: list[str]) -> list[str]:
    """The command that runs `program` in the sandbox. course: the folder that `stage_helpers` has filled.

    If root runs the command, an outer sandbox first makes these files visible, so that an ordinary user can read an
    installation below /root. It then becomes that user and starts the actual sandbox, because limits on processes do
    not apply to root.
    """
    bwrap = find_bubblewrap()
    files = view(course)
    inside = [bwrap, "--unshare-all", "--die-with-parent", "--new-session", "--hostname", "sandbox", "--clearenv"]
    inside += [*files, "--proc", "/proc", "--dev", "/dev"]
    for folder in writable_places():
        inside += ["--tmpfs", folder]
    for name, value in environment_inside().items():
        inside += ["--setenv", name, value]
    inside += ["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", HOME, "--", *program]
    if os.getuid() != 0:
        return inside
    inside[inside.index(str(course))] = COURSE
    outside = [bwrap, "--die-with-parent", *files, *parents(bwrap), "--ro-bind", bwrap, bwrap]
    outside += ["--bind", "/proc", "/proc", "--dev-bind", "/dev", "/dev", "--dir", "/tmp"]
    outside += ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID", "--"]
    return [*outside, sys.executable, "-I", "-S", "-c", DROP_ROOT, *inside]
