"""`course similar LESSON`: submissions whose code is alike in what is their own, side by side, for a person to read.

Two answers are compared by their runs of RUN tokens (as MOSS does), with imports, docstrings and comments gone and
every name that the answer itself makes replaced by one. What the release or the public solution contains does not
count, nor what many of the class wrote.
"""

import argparse
import ast
import io
import tokenize
from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import combinations

from helpers.grading.attachments import read_files_beside
from helpers.grading.folders import Folders, load, shown, write_atomically
from helpers.grading.intake import find_submissions, read_submission
from helpers.grading.lesson_release import course_release
from helpers.grading.pool import GradingStopped
from helpers.grading.safe_text import one_line, template

RUN = 8  # tokens
MANY = 0.2  # of the class: what more of them wrote is nobody's own
FEWEST = 20  # runs that two submissions share, fewer of which say nothing
ALIKE = 0.6  # of the smaller one's own runs


@dataclass(frozen=True)
class Pair:
    """Two students. share: of the smaller one's own runs, those that the other has too. answers: exercise -> both
    codes, where something is shared, as they were handed in."""

    one: str
    other: str
    share: float
    answers: dict[str, tuple[str, str]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("lesson", metavar="LESSON", help="such as 04_scaling")
    parser.add_argument("--gradebook", metavar="FOLDER", help="another class's folder (default: gradebook)")


def run(args: argparse.Namespace) -> int:
    folders, _ = load(args.gradebook)
    lesson = folders.lesson(args.lesson)
    pairs = find_pairs(*read_answers(folders, lesson))
    same = same_numbers(folders, lesson)
    page = folders.report(f"{lesson}.similar", "html")
    write_atomically(page, as_page(lesson, pairs, same))
    print(f"{lesson}: {len(pairs)} {'pair' if len(pairs) == 1 else 'pairs'} of submissions with much in common")
    for pair in pairs[:10]:
        print(f"  {one_line(pair.one)} and {one_line(pair.other)}: {pair.share:.0%} ({', '.join(pair.answers)})")
    for students in same:
        print(f"  weights files that are equal byte for byte: {', '.join(map(one_line, students))}")
    print(f"  side by side: {shown(page)}")
    return 0


def read_answers(folders: Folders, lesson: str) -> tuple[dict[str, dict[str, str]], dict[str, list[str]]]:
    """student -> exercise -> code, of every submission that can be read; exercise -> what everybody has: the release's
    code and the solution's."""
    release = course_release(folders.executed(lesson))
    students = find_submissions(folders.submitted, lesson)
    if not students:
        raise GradingStopped(f"Nobody has handed in {lesson}.")
    handed_in: dict[str, dict[str, str]] = {}
    for student in students:
        submission = read_submission(folders.submitted, student, release, folders.source)
        if submission.problem:
            continue
        answers: dict[str, str] = defaultdict(str)
        for cell in submission.cells:
            if cell.kind == "answer" and cell.exercise and not cell.exercise.startswith("quiz_"):
                answers[cell.exercise] += cell.source + "\n"
        handed_in[student] = dict(answers)
    return handed_in, {name: [source, release.graded[name]["source"]] for name, source in release.solved.items()}


def same_numbers(folders: Folders, lesson: str) -> list[list[str]]:
    """Students whose kept numbers (.safetensors) are the same file."""
    who: dict[bytes, list[str]] = defaultdict(list)
    for student in find_submissions(folders.submitted, lesson):
        for name, content in read_files_beside(folders.submitted / student / lesson)[0].items():
            if name.endswith(".safetensors"):
                who[content].append(student)
    return [students for students in who.values() if len(students) > 1]


def find_pairs(handed_in: dict[str, dict[str, str]], public: dict[str, list[str]]) -> list[Pair]:
    """Pairs of students with much in common that is their own, most alike first."""
    runs_of: dict[str, set] = {}
    for student, answers in handed_in.items():
        runs_of[student] = {(name, run) for name, code in answers.items() for run in _runs(code)}
        runs_of[student] -= {(name, run) for name in answers for code in public.get(name, ()) for run in _runs(code)}
    wrote = Counter(run for runs in runs_of.values() for run in runs)
    most = max(2, int(MANY * len(runs_of)))
    who: dict[tuple, list[str]] = defaultdict(list)
    for student in sorted(runs_of):
        runs_of[student] = {run for run in runs_of[student] if wrote[run] <= most}
        for run in runs_of[student]:
            who[run].append(student)
    shared = Counter(pair for students in who.values() for pair in combinations(students, 2))
    pairs = []
    for (first, second), count in shared.items():
        share = count / min(len(runs_of[first]), len(runs_of[second]))
        if count >= FEWEST and share >= ALIKE:
            names = {name for name, _ in runs_of[first] & runs_of[second]}
            both = {name: (code, handed_in[second][name]) for name, code in handed_in[first].items() if name in names}
            pairs.append(Pair(first, second, share, both))
    return sorted(pairs, key=lambda pair: (-pair.share, pair.one, pair.other))


def _runs(code: str) -> set[tuple[str, ...]]:
    """All runs of RUN tokens of a code without its names, comments and docstrings; none where it is no Python."""
    try:
        lines = io.StringIO(ast.unparse(_nameless(ast.parse(code)))).readline
        tokens = [token.string for token in tokenize.generate_tokens(lines) if token.string.strip()]
    except (SyntaxError, ValueError, RecursionError, MemoryError, tokenize.TokenError):
        return set()
    return {tuple(tokens[start : start + RUN]) for start in range(len(tokens) - RUN + 1)}


def _nameless(tree: ast.Module) -> ast.Module:
    """A code without imports and docstrings, in which every name that it makes is one and the same; names that come
    from elsewhere (torch, len) stay."""
    nodes = list(ast.walk(tree))
    made = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    made |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    made |= {node.name for node in nodes if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    for node in nodes:
        match node:
            case ast.Name():
                node.id = "_" if node.id in made else node.id
            case ast.arg():
                node.arg, node.annotation = "_", None
            case ast.FunctionDef():
                node.name, node.returns = "_", None
        if isinstance(body := getattr(node, "body", None), list):
            node.body = [item for item in body if not _says_nothing(item)] or [ast.Pass()]
    return tree


def _says_nothing(node: ast.AST) -> bool:
    """An import, or a text alone in a line: a docstring."""
    match node:
        case ast.Import() | ast.ImportFrom() | ast.Expr(ast.Constant(str())):
            return True
    return False


def as_page(lesson: str, pairs: list[Pair], same: list[list[str]]) -> str:
    """The pairs side by side, and whose kept numbers are the same; all that learners wrote is escaped text."""
    return template("similar.html.jinja", "helpers.classroom").render(lesson=lesson, pairs=pairs, same=same)
