"""The sandbox: what learner code can see and use, and that no trace passes from one submission to the next."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from helpers.grading import sandbox_files as boxes
from helpers.grading.learner_process import Lost
from helpers.grading.sandbox import Sandbox
from helpers.grading.sandbox_files import HELPERS, SandboxMissing, stage_helpers
from tests.sandboxes import LESSON, SMALL, need_sandbox

LOOK = """
import json, os, glob
found = {
    "uid": os.getuid(),
    "environment": sorted(os.environ),
    "descriptors": len(os.listdir("/proc/self/fd")),
    "processes": sorted(int(p) for p in os.listdir("/proc") if p.isdigit()),
    "home": os.listdir("."),
    "interfaces": [line.split(":")[0].strip() for line in open("/proc/net/dev").readlines()[2:]],
    "capabilities": [line.split()[1] for line in open("/proc/self/status") if line.startswith("Cap")],
    "modules": sorted(os.listdir("/course") + os.listdir("/course/helpers")),
    "blocks": sorted(os.path.basename(p) for p in glob.glob("/course/helpers/blocks/[0-9]*")),
    "keys": sorted(os.path.basename(p) for p in glob.glob("/course/helpers/answer_keys/*.npz")),
}
print(json.dumps(found))
"""


def ask(submission, source: str, seconds: float = 10.0) -> str:
    """The printed text of a cell, followed by its error."""
    reply = submission.ask({"do": "cell", "id": "cell", "source": source, "seconds": seconds}, seconds + 5)
    return "".join(output.get("text", "") for output in reply["outputs"]) + reply["error"]


def tell(sandbox, source: str) -> str:
    with sandbox.submission() as submission:
        return ask(submission, source)


@pytest.fixture(scope="module")
def box():
    need_sandbox()
    with Sandbox(LESSON, notebook=False, limits=SMALL) as box:
        yield box


@pytest.fixture(scope="module")
def single_box():
    """A sandbox as on a system that refuses nested sandboxes."""
    need_sandbox()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Sandbox, "try_nested", False)
        with Sandbox(LESSON, notebook=False, limits=SMALL) as box:
            yield box


def look(box) -> dict:
    return json.loads(tell(box, LOOK))


def test_learner_code_sees_only_its_own_environment(box):
    found = look(box)
    assert found["uid"] != 0
    assert found["processes"] == [1, 2]
    assert found["home"] == []
    assert found["interfaces"] in ([], ["lo"])
    assert set(found["capabilities"]) == {"0" * 16}
    assert not {"authoring", "grading", "classroom", "solutions"} & set(found["modules"])
    assert {"checking", "drawing", "blocks"} <= set(found["modules"])
    assert all(name < LESSON for name in found["blocks"])
    assert all(name < LESSON for name in found["keys"])
    assert found["descriptors"] < 10
    set_by_libraries = {"PWD", "KMP_INIT_AT_FORK", "KMP_DUPLICATE_LIB_OK", "LC_CTYPE", "TORCHINDUCTOR_CACHE_DIR"}
    assert set(found["environment"]) <= set(boxes.environment_inside()) | set_by_libraries


def test_the_teachers_environment_and_files_are_invisible(monkeypatch, tmp_path):
    need_sandbox()
    monkeypatch.setenv("TEACHERS_TOKEN", "hush")
    secret = tmp_path / "secret"
    secret.write_text("hush")
    source = f"""
import glob, os
text = str(os.environ)
for path in glob.glob("/proc/*/environ") + glob.glob("/proc/*/cmdline"):
    try:
        text += open(path, "rb").read().decode(errors="replace")
    except OSError:
        pass
print("hush" in text, "TEACHERS" in text, os.path.exists({str(secret)!r}), os.path.exists({str(HELPERS)!r}))
"""
    with Sandbox(LESSON, notebook=False, limits=SMALL) as box:
        assert tell(box, source) == "False False False False\n"


LEAVE = """
import os, socket, time
for folder in (".", "/tmp", "/dev/shm"):
    try:
        open(os.path.join(folder, "trace"), "w").write("trace")
    except OSError:
        pass
if os.fork() == 0:
    s = socket.socket(socket.AF_UNIX)
    s.bind("\\0trace")
    s.listen()
    os.setsid()
    time.sleep(1000)
import torch, builtins
torch.left_behind = builtins.left_behind = 1
time.sleep(0.2)
"""
FIND = """
import os, socket, torch, builtins
found = [f for f in (".", "/tmp", "/dev/shm", "/var/tmp") if os.path.exists(os.path.join(f, "trace"))]
try:
    socket.socket(socket.AF_UNIX).connect("\\0trace")
    found.append("socket")
except OSError:
    pass
found += [p for p in os.listdir("/proc") if p.isdigit() and int(p) > os.getpid()]
found += [name for name, home in (("torch", torch), ("builtins", builtins)) if hasattr(home, "left_behind")]
print(found)
"""


def test_no_trace_passes_from_one_submission_to_the_next(box):
    tell(box, LEAVE)
    assert tell(box, FIND) == "[]\n"


@pytest.mark.full
def test_each_submission_has_its_own_sandbox_if_nesting_is_refused(single_box):
    assert not single_box.nested
    tell(single_box, LEAVE)
    assert tell(single_box, FIND) == "[]\n"
    found = look(single_box)
    assert found["uid"] != 0 and found["home"] == []
    assert not {"authoring", "grading", "classroom", "solutions"} & set(found["modules"])


def test_everything_except_the_submissions_folder_is_read_only(box):
    source = """
import os, sys
wrote = []
for root in ("/", "/course", "/course/helpers", "/etc", "/usr", "/usr/lib", "/dev", sys.prefix, sys.base_prefix):
    try:
        open(os.path.join(root, "written"), "w")
        wrote.append(root)
    except OSError:
        pass
open("written", "w").write("mine")
print(wrote, open("written").read())
"""
    assert tell(box, source) == "[] mine\n"


def test_processes_memory_and_disk_space_are_limited(box):
    forks = """
import os, time
count = 0
try:
    for _ in range(500):
        if os.fork() == 0:
            time.sleep(100)
            os._exit(0)
        count += 1
except OSError:
    pass
print(count)
"""
    assert 0 < int(tell(box, forks)) <= SMALL.processes
    assert "MemoryError" in tell(box, f"x = bytearray({2 * SMALL.memory_bytes})")
    assert "OSError" in tell(box, f"open('x', 'wb').write(b'x' * {2 * SMALL.disk_bytes})")
    many = "for n in range(100): open(str(n), 'wb').write(b'x' * (1 << 20))"
    assert "No space left" in tell(box, many)


@pytest.mark.full
def test_memory_of_all_processes_together_is_limited(box):
    hog = """
import os, time
for _ in range(10):
    if os.fork() == 0:
        x = bytearray(b"x") * (300 << 20)
        time.sleep(100)
time.sleep(100)
"""
    with box.submission() as submission:
        with pytest.raises(Lost) as lost:
            ask(submission, hog, seconds=60)
    assert lost.value.reason == "memory"
    assert tell(box, "print('well')") == "well\n"


@pytest.mark.full
def test_a_dead_and_a_silent_submission_are_distinguished(box):
    for source, reason in [
        ("import os; os._exit(0)", "died"),
        (
            "import signal, time\nsignal.alarm = None\nsignal.setitimer(signal.ITIMER_REAL, 0)\ntime.sleep(100)",
            "too slow",
        ),
    ]:
        with box.submission() as submission:
            with pytest.raises(Lost) as lost:
                submission.ask({"do": "cell", "id": "cell", "source": source, "seconds": 1}, 3)
        assert lost.value.reason == reason


def test_an_invalid_reply_is_recognized_as_garbage(box):
    for words in ("b'x' * 100", "(1 << 60).to_bytes(8, 'little') + b'x' * 16", "b'\\x00' * 24"):
        source = f"import os\nfor fd in range(3, 40):\n    try: os.write(fd, {words})\n    except OSError: pass"
        with box.submission() as submission:
            with pytest.raises(Lost) as lost:
                submission.ask({"do": "cell", "id": "cell", "source": source, "seconds": 5}, 8)
        assert lost.value.reason == "garbage"


STARTED = {
    "a sandbox": f"from helpers.grading.sandbox import Sandbox\nbox = Sandbox({LESSON!r}, notebook=False)\n"
    "submission = box.submission()\n",
    "a busy judge": "from helpers.grading.pool import Batch, JudgeProcess\n"
    f"box = JudgeProcess(Batch({LESSON!r}, 1), '/tmp')\n",
}


@pytest.mark.full
@pytest.mark.parametrize("what", STARTED)
def test_processes_that_the_grader_started_end_with_it(what):
    need_sandbox()
    program = f"{STARTED[what]}print(box.process.pid, flush=True)\nimport time\ntime.sleep(100)"
    grader = subprocess.Popen([sys.executable, "-c", program], cwd=HELPERS.parent, stdout=subprocess.PIPE, text=True)
    first = psutil.Process(int(grader.stdout.readline()))
    family = [first, *first.children(recursive=True)]
    if "judge" in what:
        while "libtorch" not in Path(f"/proc/{first.pid}/maps").read_text():
            time.sleep(0.05)
        first.suspend()  # so that it cannot notice the end of the grader by itself
    else:
        assert len(family) > 1
    grader.kill()
    grader.wait()
    assert not psutil.wait_procs(family, timeout=20)[1]


def test_the_staged_package_has_no_answers_of_this_lesson_or_a_later_one(tmp_path):
    stage_helpers(tmp_path / "course", LESSON)
    files = {path.relative_to(tmp_path / "course").as_posix() for path in (tmp_path / "course").rglob("*")}
    assert "helpers/inside/fork_server.py" in files and "helpers/checking/observe.py" in files
    assert not [name for name in files if name.startswith(("helpers/grading", "helpers/authoring", "solutions"))]
    for name in files:
        if name.startswith("helpers/blocks/") and Path(name).stem[:2].isdigit():
            assert Path(name).stem[:2] < LESSON[:2]
        if name.startswith("helpers/answer_keys/") and name.endswith(".npz"):
            assert Path(name).stem[:2] < LESSON[:2]


def test_a_course_inside_a_system_folder_is_hidden(monkeypatch, tmp_path):
    monkeypatch.setattr(boxes, "PROJECT", Path("/usr/src/course"))
    arguments = boxes.view(tmp_path)
    assert arguments[arguments.index("/usr/src/course") - 1] == "--tmpfs"


def test_a_missing_bubblewrap_gives_one_clear_error(monkeypatch):
    monkeypatch.setattr(boxes.shutil, "which", lambda *args, **kwargs: None)
    with pytest.raises(SandboxMissing, match="bubblewrap is not installed.*or use --unsafe"):
        Sandbox(LESSON)


def test_refused_namespaces_give_one_clear_error(monkeypatch, tmp_path):
    fake = tmp_path / "bwrap"
    fake.write_text("#!/bin/sh\necho 'bwrap: No permissions to create a new namespace' >&2\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setattr(boxes, "find_bubblewrap", lambda: str(fake))
    with pytest.raises(SandboxMissing, match="cannot be isolated here .bwrap: No permissions"):
        Sandbox(LESSON)


@pytest.mark.full
def test_the_unsafe_mode_runs_the_same_worker_in_a_plain_process():
    with Sandbox(LESSON, notebook=False, unsafe=True, limits=SMALL) as box:
        assert tell(box, "open('trace', 'w').write('x')\nprint(6 * 7)") == "42\n"
        assert tell(box, "import os; print(os.listdir('.'))") == "[]\n"
        folder = box.folder
    assert not os.path.exists(folder)
