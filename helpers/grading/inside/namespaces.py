"""Linux namespaces and resource limits of one submission."""

import contextlib
import ctypes
import functools
import os
import signal
import sys

from .protocol import Limits

CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWIPC = 0x00020000, 0x10000000, 0x20000000, 0x08000000
MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REC, MS_PRIVATE = 2, 4, 8, 0x4000, 1 << 18
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 1, 4, 24, 38
CAPABILITY_VERSION_3 = 0x20080522


_libc = functools.partial(ctypes.CDLL, None, use_errno=True)


def _must(result: int, action: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{action}: {os.strerror(number)}")


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)


def die_with_parent() -> None:
    """Let the operating system kill this process when its parent has ended, for whatever reason."""
    if sys.platform == "linux":
        _libc().prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def be_dumpable(yes: bool) -> None:
    """Set whether other processes of the same user may read this one's memory."""
    _libc().prctl(PR_SET_DUMPABLE, int(yes), 0, 0, 0)


def kill(pid: int) -> None:
    with contextlib.suppress(OSError):
        os.kill(pid, signal.SIGKILL)


def unshare() -> None:
    """Give this process new user, mount, process and IPC namespaces. Its next child becomes their first process."""
    uid, gid = os.getuid(), os.getgid()
    _must(_libc().unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC), "new namespaces")
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"{uid} {uid} 1")
    _write("/proc/self/gid_map", f"{gid} {gid} 1")


def isolate(folders: tuple[str, ...], disk_bytes: int) -> None:
    """Mount a private /proc and private writable `folders`, then give up all capabilities and further namespaces."""
    libc = _libc()
    _must(libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None), "private mounts")
    flags = MS_NOSUID | MS_NODEV
    _must(libc.mount(b"proc", b"/proc", b"proc", flags | MS_NOEXEC, None), "a new /proc")
    options = f"size={disk_bytes},nr_inodes=10000,mode=0700".encode()
    for folder in folders:
        _must(libc.mount(b"tmpfs", folder.encode(), b"tmpfs", flags, options), f"a new {folder}")
    with contextlib.suppress(OSError):
        _write("/proc/sys/user/max_user_namespaces", "0")
    for capability in range(64):
        libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION_3, 0)
    _must(libc.capset(header, (ctypes.c_uint32 * 6)()), "dropping capabilities")
    _must(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no new privileges")


def limit_resources(limits: Limits, boxed: bool) -> None:
    """Limit the memory, number of processes and file size of this process; the judge watches the totals."""
    import resource

    def lower(kind, value):
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(kind, (value, value))

    lower(resource.RLIMIT_CORE, 0)
    lower(resource.RLIMIT_FSIZE, limits.disk_bytes)
    lower(resource.RLIMIT_NOFILE, 256)
    if sys.platform == "linux":
        with open("/proc/self/statm") as file:
            in_use = int(file.read().split()[0]) * resource.getpagesize()
        lower(resource.RLIMIT_AS, in_use + limits.memory_bytes)
        with contextlib.suppress(OSError):
            _write("/proc/self/oom_score_adj", "1000")
    if boxed:  # Outside of bubblewrap, all processes of the person who grades would count.
        # Before Linux 5.14, all processes of the user on this computer count and not only those in the namespace.
        release = tuple(map(int, os.uname().release.split(".")[:2]))
        lower(resource.RLIMIT_NPROC, limits.processes if release >= (5, 14) else 4096)
