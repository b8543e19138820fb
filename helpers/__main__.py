"""The command line `course ...`, also `python -m helpers ...`. Each command imports only the module that it needs."""

import argparse
import importlib
import os
import sys
from importlib.util import find_spec

from helpers.course import CourseError

# command: (module with add_arguments(parser) and run(args) -> exit code, help text)
COMMANDS = {
    "build": ("helpers.authoring.build", "make notebooks, answer keys and blocks from the lesson texts"),
    "book": ("helpers.authoring.book", "write the web edition: the lessons as a static site"),
    "new": ("helpers.authoring.scaffold", "add a new exercise to a lesson"),
    "pack": ("helpers.authoring.pack", "write the learner edition, or an autograder for Gradescope, as one zip"),
    "try": ("helpers.grading.try_answers", "judge single answer files, without a notebook"),
    "collect": ("helpers.classroom.collect", "read the submissions from a learning platform, and list who is missing"),
    "grade": ("helpers.grading.grade", "grade the submissions of a lesson"),
    "report": ("helpers.grading.course_report", "write one page over all lessons"),
    "hand": ("helpers.classroom.grade_by_hand", "grade a lesson's written question by hand, in the browser"),
    "similar": ("helpers.classroom.similar", "show submissions that share much code side by side"),
    "export": ("helpers.classroom.export", "write totals and feedback in a format that a learning platform can import"),
    # The teacher's edition also checks the sandbox; the learner edition lacks helpers.grading.
    "doctor": (
        "helpers.grading.readiness" if find_spec("helpers.grading") else "helpers.doctor",
        "check whether the course can run here, and say how to fix what is missing",
    ),
}


def main(argv: list[str] | None = None) -> int:
    """Run one command and return its exit code, which is 2, with one sentence on stderr, if it could not run."""
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
    except BrokenPipeError:  # the reader, such as `head`, has closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + 13  # the exit code that shells report for a program ended by SIGPIPE
    except CourseError as error:
        print(error, file=sys.stderr)
    except ModuleNotFoundError as error:
        print(_missing_module(argv[0], error), file=sys.stderr)
    except KeyboardInterrupt:
        print("Stopped.", file=sys.stderr)
        return 130
    return 2


def build_parser(chosen: str | None) -> argparse.ArgumentParser:
    """The parser of all commands. Only the module of the `chosen` command is imported, so that --help is quick."""
    parser = argparse.ArgumentParser(prog="course", description="The course's own commands.")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name, (module, help_line) in COMMANDS.items():
        # A command that this edition lacks is not listed, but typing it gives a sentence that says so.
        shown = {"help": help_line} if find_spec(module.rpartition(".")[0]) else {}
        command = commands.add_parser(name, description=help_line.capitalize() + ".", **shown)
        if name == chosen:
            implementation = importlib.import_module(module)
            implementation.add_arguments(command)
            command.set_defaults(run=implementation.run)
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
