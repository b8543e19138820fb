"""Whether this machine can grade: the part of `course doctor` that needs the teacher's wing."""

import argparse

from helpers import doctor
from helpers.doctor import add_arguments

__all__ = ["add_arguments", "run"]


def run(args: argparse.Namespace) -> int:
    """Print what a learner needs and what grading needs; exit code 0 when everything works, 1 otherwise."""
    learning = doctor.told(doctor.findings())
    print("\nOnly to grade; learners need none of this:")
    packages = map(doctor.look_at_package, doctor.GRADING_PACKAGES)
    return max(learning, doctor.told([*packages, look_at_sandbox()]))


def look_at_sandbox() -> tuple[bool, str]:
    """Start the sandbox for real, and run one line in it."""
    try:
        from helpers.grading import sandbox, sandbox_files
    except ModuleNotFoundError as error:
        return False, f"the sandbox was not tried: {error.name} is not installed"
    try:
        with sandbox.Sandbox("99_none", notebook=False) as box, box.submission() as submission:
            reply = submission.ask({"do": "cell", "id": "doctor", "source": "1 + 1", "seconds": 20}, 30)
            nested = box.nested
    except (sandbox_files.SandboxMissing, sandbox.SandboxFailed) as error:
        return False, str(error)
    except sandbox.Lost as lost:
        return False, f"the sandbox starts, but code in it gives no answer ({lost.reason})."
    if reply.get("error"):
        return False, f"the sandbox starts, but code in it fails: {reply['error']}"
    if not nested:
        return True, "bubblewrap works, but not one sandbox inside another: each submission starts its own (slower)"
    return True, "bubblewrap works, with namespaces of its own for each submission"
