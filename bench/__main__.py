"""`make bench`, or `python -m bench [FAMILY or PROGRAM ...]`: the programs that take under ten minutes together.

Each prints ratios of what it measured side by side and keeps them in bench/results. Leave the machine to them. The
family *training*, and the other programs of this folder, take longer and run when they are asked for by name.
"""

import subprocess
import sys
import time

# The names of modules in bench/, by what they are about.
FAMILIES = {
    "truth": ("truth",),
    "course": ("check_time", "setup_time", "redraw_time"),
    "blocks": ("blocks",),
    "grading": ("workers", "grading_time"),
    "training": ("translator_time", "gpt_against_nanogpt"),
}
LONG = FAMILIES["training"]
PROGRAMS = [name for family in FAMILIES.values() for name in family]
ASKED = {"grading_time": ("--sizes", "1", "24", "120", "--stock", "2")}  # what a program is asked besides


def main() -> int:
    asked = sys.argv[1:] or [name for name in PROGRAMS if name not in LONG]
    if unknown := [name for name in asked if name not in (*FAMILIES, *PROGRAMS)]:
        known = ", ".join(FAMILIES)
        sys.exit(f"`python -m bench` knows {known} and not {unknown[0]}. Run others by name: python -m bench.NAME")
    asked = [name for one in asked for name in FAMILIES.get(one, (one,))]
    failed = []
    for name in asked:
        began = time.monotonic()
        print(f"== bench.{name}", flush=True)
        if subprocess.run([sys.executable, "-m", f"bench.{name}", *ASKED.get(name, ())]).returncode:
            failed.append(name)
        print(f"{time.monotonic() - began:.0f} s", flush=True)
    if failed:
        print(f"Not measured: {', '.join(failed)}. Their own words stand above.")
    return int(bool(failed))


if __name__ == "__main__":
    raise SystemExit(main())
