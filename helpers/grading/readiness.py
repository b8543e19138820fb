"""The part of `course doctor` for teachers: whether this computer can grade."""

import argparse

from helpers import doctor
from helpers.doctor import add_arguments

__all__ = ["add_arguments", "run"]


def run(args: argparse.Namespace) -> int:
    """Report on everything that learners need and that grading needs. Returns 0 if all of it works, otherwise 1."""
    learning = doctor.told(doctor.findings())
    print("\nOnly for grading; learners need none of this:")
    packages = map(doctor.check_package, doctor.GRADING_PACKAGES)
    return max(learning, doctor.told([*packages, check_sandbox()]))


def check_sandbox() -> tuple[bool, str]:
    """Start the sandbox and run one line of code in it. Returns whether that works, and a sentence."""
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
    return True, "bubblewrap works, with separate namespaces for each submission"
