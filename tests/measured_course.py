"""The small course with an exercise whose answer is a trained model, for tests of what is measured."""

from pathlib import Path

from tests import small_course

LESSON = small_course.LESSON
FILE = "signs.safetensors"
ANSWER = '    return ["plus" if score > 0 else "minus" for score in model(points)[:, 0]]\n'
TRAINING = """
# %%
from torch import nn
from helpers.widgets.checkpoint import checkpoint, quick
torch.manual_seed(0)
model = nn.Linear(3, 1)

def train():
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    for _ in range(2 if quick() else 150):
        points = torch.randn(64, 3)
        wanted = (points.sum(dim=1, keepdim=True) > 0).float()
        loss = nn.functional.binary_cross_entropy_with_logits(model(points), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

model = checkpoint(model, "signs.safetensors", train)

# %% [markdown]
# ### Exercise 4.3 `signs`

# %% nbgrader={"solution": "signs"}
def signs(points):
    \"\"\"points (N, 3) -> list of N strings.\"\"\"
    ### BEGIN SOLUTION
ANSWER    ### END SOLUTION

# %% nbgrader={"grade": "signs"}
check(signs)

# %% [markdown]
# <details><summary>Hint 1</summary>
# On which side is it?
# </details>
# <details><summary>Hint 2</summary>
# What does the model say?
# </details>

# %% [markdown]
# ### Quiz
""".replace("ANSWER", ANSWER)
KEY = """

def cases_signs(draw):
    points = draw.normal(200, 3)
    return [Case((points,), truth=["plus" if row.sum() > 0 else "minus" for row in points])]


def all_plus(points):
    return ["plus"] * len(points)


exercises.append(
    Exercise("signs", cases_signs, metric="right_signs", mistakes=[
        Mistake("all_plus", "every point is called plus", "Does the model see the point?", all_plus),
        Mistake("exchanged", "the two words are exchanged", "What does a score above 0 mean?"),
    ])
)
"""
MEASURE = """
from helpers.checking.metrics import Score, metric


@metric
def right_signs(truths, outputs):
    total = sum(map(len, truths))
    right = sum(a == b for t, o in zip(truths, outputs) for a, b in zip(t, o))
    share = right / total
    full = min(1.0, share / 0.95) if share >= 0.5 else 0.0
    mistake = "exchanged" if share < 0.1 else None
    return Score(full, share >= 0.95, f"{right} of {total} unseen points have the right sign", mistake)
"""


def make_measured_course(root: Path) -> Path:
    """The course with the exercise `signs` in `root`."""
    small_course.make_small_course(root)
    folder = root / "solutions" / LESSON
    text = small_course.TEXT.replace("\n# %% [markdown]\n# ### Quiz\n", TRAINING)
    (folder / f"{LESSON}.py").write_text(text, encoding="utf-8")
    key = small_course.KEY.replace("import Exercise,", "import Case, Exercise,") + KEY
    (folder / "answer_key.py").write_text(key, encoding="utf-8")
    toml = small_course.COURSE.replace("scaled_scores = 83", "scaled_scores = 53\nsigns = 30")
    (root / "course.toml").write_text(toml, encoding="utf-8")
    measures = root / "helpers" / "lessons" / "scaling" / "probes.py"
    measures.write_text(MEASURE, encoding="utf-8")
    return root
