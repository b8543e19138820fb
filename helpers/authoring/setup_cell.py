"""The set-up cell of every notebook, which finds the course's `helpers`, or explains what to do if it cannot."""

from helpers import __version__
from helpers.course import Course

CELL = """\
#@title Set-up: run this first, and again after a restart (it finds the course)
def set_up(lesson, version, clone, tag):
    import importlib.metadata, importlib.util, pathlib, shutil, subprocess, sys, zipfile
    here, home = pathlib.Path.cwd(), pathlib.Path.cwd() / "attention-course"
    installed = version in [d.version for d in importlib.metadata.distributions(name="attention-course")]
    def unpacked(): return [p.parent for p in sorted(home.glob("*/README.txt"), key=lambda p: -p.stat().st_mtime)]
    def places(): return [p for p in (here, *here.parents, *unpacked(), home) if (p / "helpers/blocks").is_dir()]
    def stop(why): raise type("SetUpError", (Exception,), {"_render_traceback_": lambda e: [str(e)]})(why) from None
    for packed in sorted(here.glob("attention-course*.zip"), key=lambda p: (p.stat().st_mtime, p.name))[-1:]:
        try:
            if not installed and (not places() or home.is_dir() and packed.stat().st_mtime > home.stat().st_mtime):
                zipfile.ZipFile(packed).extractall(home), home.touch()  # newer now than what it was made of
        except Exception as error:
            stop(f"{packed.name} cannot be unpacked ({error}). Put a whole one where you can write and run this again.")
    git = clone and shutil.which("git") and not installed and not places() and subprocess.run(
        ["git", "clone", "--quiet", "--depth=1", "--branch", tag, clone, home], capture_output=True, text=True)
    reason = git and git.returncode and f": {git.stderr.strip().rpartition(chr(10))[2]}" or ""
    sys.path[:0] = [str(p) for p in places()[:1] if not installed and str(p) not in sys.path]
    at = importlib.util.find_spec("helpers") or stop(
        f"The course is not here{clone and f' (cloning {clone} failed{reason})'}. Put this notebook into its folder or "
        f"the course's zip, such as attention-course-{lesson}.zip, beside it (Colab: in Files), and run this again.")
    try:
        start = __import__("helpers").COURSE and importlib.import_module("helpers.setup").start
    except (Exception, SystemExit) as e:
        stop(str(e) if isinstance(e, SystemExit) else "Another package named helpers hides the course, or the course "
             f"is damaged: {at.origin or [*at.submodule_search_locations][0]}. Remove it, restart, and run this again.")
    start(lesson, version)
"""


def set_up_source(course: Course, lesson: str) -> str:
    return f"{CELL}set_up({lesson!r}, {__version__!r}, {course.url!r}, {course.tag!r})"
