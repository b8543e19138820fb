"""`make bench`, or `python -m bench [FAMILY or PROGRAM ...]`: run the programs that take under ten minutes together.

Each prints ratios of measurements in the same run, and stores them in bench/results. Run nothing else on the computer
meanwhile. The family *training* and the other programs of this folder take longer, so they only run if you name them.
"""

import subprocess
import sys
import time

# Modules in bench/, by subject.
FAMILIES = {
    "truth": ("truth",),
    "course": ("check_time", "setup_time", "redraw_time"),
    "blocks": ("blocks",),
    "grading": ("workers", "grading_time"),
    "training": ("translator_time", "gpt_against_nanogpt"),
}
LONG = FAMILIES["training"]
PROGRAMS = [name for family in FAMILIES.values() for name in family]
ARGUMENTS = {"grading_time": ("--sizes", "1", "24", "120", "--stock", "2")}


def main() -> int:
    chosen = sys.argv[1:] or [name for name in PROGRAMS if name not in LONG]
    if unknown := [name for name in chosen if name not in (*FAMILIES, *PROGRAMS)]:
        families = ", ".join(FAMILIES)
        sys.exit(f"`python -m bench` knows {families}, but not {unknown[0]}. Run others by name: python -m bench.NAME")
    failed = []
    for name in (program for choice in chosen for program in FAMILIES.get(choice, (choice,))):
        began = time.monotonic()
        print(f"== bench.{name}", flush=True)
        if subprocess.run([sys.executable, "-m", f"bench.{name}", *ARGUMENTS.get(name, ())]).returncode:
            failed.append(name)
        print(f"{time.monotonic() - began:.0f} s", flush=True)
    if failed:
        print(f"Not measured: {', '.join(failed)}. Their error messages are above.")
    return int(bool(failed))


if __name__ == "__main__":
    raise SystemExit(main())
