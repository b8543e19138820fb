"""The command line: `course ...`, the same as `python -m helpers ...`. Each command loads its own wing only."""

import argparse
import importlib
import os
import sys
from importlib.util import find_spec

from helpers.course import CourseError

# command: (module with add_arguments(parser) and run(args) -> exit code, what it does)
COMMANDS = {
    "build": ("helpers.authoring.build", "make notebooks, answer keys and blocks from the lesson texts"),
    "book": ("helpers.authoring.book", "write the web edition: the lessons as a static site"),
    "new": ("helpers.authoring.scaffold", "begin an exercise of a lesson"),
    "pack": ("helpers.authoring.pack", "write the learner edition, or an autograder for Gradescope, as one zip"),
    "try": ("helpers.grading.try_answers", "judge loose answer files, without a notebook"),
    "collect": ("helpers.classroom.collect", "take in what a learning platform gave, and say who is missing"),
    "grade": ("helpers.grading.grade", "grade the submissions of a lesson"),
    "report": ("helpers.grading.course_report", "write one page over all lessons"),
    "hand": ("helpers.classroom.grade_by_hand", "grade a lesson's written question by hand, in the browser"),
    "similar": ("helpers.classroom.similar", "show submissions with much code in common side by side"),
    "export": ("helpers.classroom.export", "write totals, and feedback, as a learning platform takes them back"),
    # The teacher's wing looks at the sandbox too; the learner edition does without it.
    "doctor": (
        "helpers.grading.readiness" if find_spec("helpers.grading") else "helpers.doctor",
        "look whether the course can run here, and say what to do where it cannot",
    ),
}


def main(argv: list[str] | None = None) -> int:
    """Run one command and return its exit code: 2 where it could not run, with one sentence on stderr."""
    argv = sys.argv[1:] if argv is None else argv
    try:
        parser = build_parser(argv[0] if argv else None)
        args = parser.parse_args(argv)
        if args.command is None:
            parser.print_help()
            return 2
        code = args.run(args)
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # whoever read this, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + 13  # as a shell says of a program that a closed pipe ended
    except CourseError as error:
        print(error, file=sys.stderr)
    except ModuleNotFoundError as error:
        print(_missing_module(argv[0], error), file=sys.stderr)
    except KeyboardInterrupt:
        print("Stopped.", file=sys.stderr)
        return 130
    return 2


def build_parser(chosen: str | None) -> argparse.ArgumentParser:
    """The parser of all commands; only the chosen one's module is imported, so that --help is quick."""
    parser = argparse.ArgumentParser(prog="course", description="The course's own commands.")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name, (module, help_line) in COMMANDS.items():
        # What this edition lacks is not listed; it still says so to somebody who types it.
        listed = {"help": help_line} if find_spec(module.rpartition(".")[0]) else {}
        command = commands.add_parser(name, description=help_line.capitalize() + ".", **listed)
        if name == chosen:
            wing = importlib.import_module(module)
            wing.add_arguments(command)
            command.set_defaults(run=wing.run)
    return parser


def _missing_module(command: str, error: ModuleNotFoundError) -> str:
    name = error.name or str(error)
    if name.startswith("helpers"):
        return f"`course {command}` needs {name}, which is not in this edition of the course."
    extras = "cluster" if name in ("dask", "distributed", "psycopg") else "author,grade"
    extras = "author,book" if command == "book" else extras
    return f'`course {command}` needs the package {name}. Install with: pip install -e ".[{extras}]"'


if __name__ == "__main__":
    sys.exit(main())
