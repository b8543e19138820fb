"""`course similar LESSON`: show pairs of submissions with much code in common side by side, for a person to read.

As in MOSS, two answers are compared by their n-grams of tokens, after imports, docstrings and comments have been
removed and all names that the answer defines have been replaced by the same name. N-grams of the release, of the public
solution, or of many submissions don't count.
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

N = 8  # tokens of an n-gram
COMMON = 0.2  # An n-gram that more than this fraction of the class wrote does not count.
MIN_SHARED = 20  # Fewer n-grams in common say nothing.
MIN_SHARE = 0.6  # of the smaller submission's n-grams


@dataclass(frozen=True)
class Pair:
    """Two students. share: the fraction of the smaller submission's n-grams that the other one has too. answers:
    exercise -> the code of both, for exercises with n-grams in common."""

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
    same = identical_weights(folders, lesson)
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
    """Read the answers of all readable submissions, and the code that everybody has.

    Returns student -> exercise -> code, and exercise -> the code of the release and of the solution.
    """
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


def identical_weights(folders: Folders, lesson: str) -> list[list[str]]:
    """Groups of students whose weights files (.safetensors) are identical."""
    students_of: dict[bytes, list[str]] = defaultdict(list)
    for student in find_submissions(folders.submitted, lesson):
        for name, content in read_files_beside(folders.submitted / student / lesson)[0].items():
            if name.endswith(".safetensors"):
                students_of[content].append(student)
    return [students for students in students_of.values() if len(students) > 1]


def find_pairs(handed_in: dict[str, dict[str, str]], public: dict[str, list[str]]) -> list[Pair]:
    """The pairs of students with much code in common, the most similar pair first."""
    ngrams: dict[str, set] = {}  # student -> pairs of exercise and n-gram
    for student, answers in handed_in.items():
        ngrams[student] = {(name, ngram) for name, code in answers.items() for ngram in _ngrams(code)}
        public_code = ((name, code) for name in answers for code in public.get(name, ()))
        ngrams[student] -= {(name, ngram) for name, code in public_code for ngram in _ngrams(code)}
    authors = Counter(ngram for own in ngrams.values() for ngram in own)
    most = max(2, int(COMMON * len(ngrams)))
    students_of: dict[tuple, list[str]] = defaultdict(list)
    for student in sorted(ngrams):
        ngrams[student] = {ngram for ngram in ngrams[student] if authors[ngram] <= most}
        for ngram in ngrams[student]:
            students_of[ngram].append(student)
    shared = Counter(pair for students in students_of.values() for pair in combinations(students, 2))
    pairs = []
    for (first, second), count in shared.items():
        share = count / min(len(ngrams[first]), len(ngrams[second]))
        if count >= MIN_SHARED and share >= MIN_SHARE:
            both = {name for name, _ in ngrams[first] & ngrams[second]}
            answers = {name: (code, handed_in[second][name]) for name, code in handed_in[first].items() if name in both}
            pairs.append(Pair(first, second, share, answers))
    return sorted(pairs, key=lambda pair: (-pair.share, pair.one, pair.other))


def _ngrams(code: str) -> set[tuple[str, ...]]:
    """All n-grams of tokens in the code, without its names, comments and docstrings; empty if it is not Python."""
    try:
        lines = io.StringIO(ast.unparse(_nameless(ast.parse(code)))).readline
        tokens = [token.string for token in tokenize.generate_tokens(lines) if token.string.strip()]
    except (SyntaxError, ValueError, RecursionError, MemoryError, tokenize.TokenError):
        return set()
    return {tuple(tokens[start : start + N]) for start in range(len(tokens) - N + 1)}


def _nameless(tree: ast.Module) -> ast.Module:
    """Remove imports and docstrings, and replace all names that the code defines by the same name. Names from elsewhere
    (torch, len) stay."""
    nodes = list(ast.walk(tree))
    defined = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    defined |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    defined |= {node.name for node in nodes if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    for node in nodes:
        match node:
            case ast.Name():
                node.id = "_" if node.id in defined else node.id
            case ast.arg():
                node.arg, node.annotation = "_", None
            case ast.FunctionDef():
                node.name, node.returns = "_", None
        if isinstance(body := getattr(node, "body", None), list):
            node.body = [item for item in body if not _is_ignored(item)] or [ast.Pass()]
    return tree


def _is_ignored(node: ast.AST) -> bool:
    """Whether it is an import, or a string on its own (such as a docstring)."""
    match node:
        case ast.Import() | ast.ImportFrom() | ast.Expr(ast.Constant(str())):
            return True
    return False


def as_page(lesson: str, pairs: list[Pair], same: list[list[str]]) -> str:
    """The page: pairs side by side, and students with the same weights file. All text of learners is escaped."""
    return template("similar.html.jinja", "helpers.classroom").render(lesson=lesson, pairs=pairs, same=same)
