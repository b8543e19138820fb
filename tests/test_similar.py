"""Similar submissions are found despite renamed variables. Code of the release or the solution does not count."""

import re

from helpers.__main__ import main
from helpers.classroom.similar import as_page, find_pairs
from helpers.grading.folders import load
from tests.sample_class import hand_in
from tests.test_regrade import LESSON, answers

PUBLIC = '''def scale(Q, K):
    """Scores."""
    width = Q.shape[-1]
    return Q @ K.transpose(-2, -1) / width**0.5
'''
OWN = """def scale(Q, K):
    total = torch.zeros(len(Q), len(K))
    for row in range(len(Q)):
        for column in range(len(K)):
            for place in range(Q.shape[1]):
                total[row, column] += Q[row, place] * K[column, place]
    return total / torch.tensor(float(Q.shape[1])).sqrt()
"""
OTHER = """def scale(Q, K):
    first, second = Q.double(), K.double()
    grid = torch.einsum("qd,kd->qk", first, second)
    root = math.exp(0.5 * math.log(first.size(1)))
    if grid.numel() == 0:
        raise ValueError("nothing to scale")
    return torch.stack([line / root for line in grid]).to(Q.dtype)
"""


def renamed(code: str) -> str:
    for name, new in (("total", "s"), ("row", "i"), ("column", "j"), ("place", "d")):
        code = re.sub(rf"\b{name}\b", new, code)
    return code.replace("    for i", "    # my own idea\n    for i")


def pairs(*codes: str) -> list[tuple[str, str]]:
    handed_in = {f"s{number}": {"scale": code} for number, code in enumerate(codes)}
    return [(pair.one, pair.other) for pair in find_pairs(handed_in, {"scale": [PUBLIC]})]


def test_renaming_and_comments_do_not_hide_similarity():
    assert renamed(OWN) != OWN
    assert pairs(OWN, renamed(OWN), OTHER) == [("s0", "s1")]


def test_the_solution_and_widespread_code_do_not_count_as_similar():
    assert pairs(PUBLIC, PUBLIC.replace("width", "d")) == []
    assert pairs(*[OWN] * 4, OTHER) == []  # four of five students have it


def test_text_that_is_not_python_is_ignored():
    assert pairs("def scale(", "def scale(", "(" * 5_000, "\0", OWN) == []


def test_the_command_reports_similar_pairs_side_by_side_without_accusing(tmp_path, lesson, capsys):
    folders, _ = load(tmp_path)
    own = OWN.replace("def scale", "def scaled_scores") + "# <script>alert(1)</script>\n"
    for student, code in (("ada", own), ("ben", renamed(own)), ("cem", lesson.solutions["scaled_scores"])):
        hand_in(folders, lesson, student, answers(lesson, scaled_scores=code))
        (folders.submitted / student / LESSON / "model.safetensors").write_bytes(b"a" if student == "ada" else b"b")
    assert main(["similar", LESSON, "--gradebook", str(tmp_path)]) == 0
    assert "1 pair of submissions" in (output := capsys.readouterr().out) and "ada and ben" in output
    assert "equal byte for byte: ben, cem\n" in output and output.count("cem") == 1
    page = folders.report(f"{LESSON}.similar", "html").read_text(encoding="utf-8")
    assert "proves nothing" in page and page.count("<pre>") == 2 and "<script" not in page
    assert "equal byte for byte: ben, cem." in page
    assert "No two submissions" in as_page(LESSON, [], [])
    assert main(["similar", "99", "--gradebook", str(tmp_path)]) == 2
