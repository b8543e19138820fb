"""The grader's self test: the reference must get full points; a blank and a hostile submission must get none."""

import base64
import socket
import sys
import tempfile
import zlib
from pathlib import Path

from helpers.checking.codec import dumps
from helpers.checking.key import ExerciseKey
from helpers.checking.make_keys import best_outputs
from helpers.checking.vocabulary import Draw
from helpers.grading import reference
from helpers.grading.judge import Judge, Trial
from helpers.grading.sandbox import SandboxFailed
from helpers.grading.sandbox_files import HELPERS
from helpers.grading.submission import Cell, SubmissionReport

HOSTILE_CANARY = """
import os, socket
harm = []
for path in {paths!r}:
    try:
        os.listdir(path) if os.path.isdir(path) else open(path).read()
        harm.append("read " + path)
    except OSError:
        pass
for path in {folders!r}:
    if os.access(path, os.W_OK):
        harm.append("could write to " + path)
try:
    socket.create_connection(("127.0.0.1", {port}), timeout=1).close()
    harm.append("reached the network")
except OSError:
    pass
if os.getuid() == 0:
    harm.append("is root")
harm = ", ".join(harm)
import torch
torch.allclose = torch.equal = torch.testing.assert_close = lambda *a, **k: True
"""


def self_test(judge: Judge) -> None:
    """Judge the reference, a blank submission and a hostile canary. Raises GraderBroken unless the reference gets full
    points and the others none, and the canary could do no harm."""
    answers = "".join(f"\n{key.name} = {key.correct!r}" for key in judge.keys.values() if key.kind == "quiz")
    answers += perfect_answers(judge.lesson, judge.keys, judge.seed)
    solution = Cell("reference", reference.PRELUDE + reference.blocks_source(judge.lesson) + answers)
    try:
        for name, verdict in judge.judge_cells([solution]).verdicts.items():
            if not verdict.passed or verdict.points != verdict.max_points:
                reason = verdict.message.splitlines()[0] if verdict.message else "no reason given"
                scored = f"{verdict.points:g} of {verdict.max_points:g}"
                raise reference.GraderBroken(f"the reference solution scored {scored} in exercise {name}: {reason}")
        _require_no_points(judge.judge_cells([Cell("blank", "")]), "a blank submission")
        _test_canary(judge)
    except SandboxFailed as error:
        raise reference.GraderBroken(f"the sandbox stopped: {error}") from None


def _test_canary(judge: Judge) -> None:
    root = HELPERS.parent
    paths = [root / "solutions", root / "gradebook", root / "course.toml", HELPERS / "grading"]
    paths += [reference.blocks_path(judge.lesson), Path("/course/helpers/blocks") / f"{judge.lesson.name}.py"]
    folders = ["/course", "/usr", "/etc", "/", str(root), sys.prefix]
    exercises = [name for name, key in judge.keys.items() if key.kind == "exercise"]
    wrong = "".join(f"\ndef {name}(*args, **kwargs):\n    return 12345.678\n" for name in exercises)
    with tempfile.NamedTemporaryFile() as secret, socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        canary = HOSTILE_CANARY.format(paths=[*map(str, paths), secret.name], folders=folders, port=port)
        with Trial(judge, [Cell("canary", canary + wrong)]) as trial:
            for name in exercises:
                trial.verdict(name)
            result = trial.result(exercises)
            harm = trial.run.bindings.get("harm")
    _require_no_points(result, "a hostile canary")
    if not judge.unsafe and harm != ("str", ""):
        report = harm[1] if harm and harm[1] else "could not tell what it did"
        raise reference.GraderBroken(f"the sandbox leaks: the canary {report}")


def _require_no_points(result: SubmissionReport, who: str) -> None:
    for name, verdict in result.verdicts.items():
        if verdict.passed and verdict.max_points or verdict.points > 0:
            raise reference.GraderBroken(f"{who} scored {verdict.points:g} in exercise {name}")


PERFECT = """

def {name}(*args, **kwargs):
    import base64, zlib
    from helpers.checking.codec import dumps, loads
    table = loads(zlib.decompress(base64.b64decode({table!r})))
    given = dumps([list(args), kwargs])
    return next((output for inputs, output in table if dumps(inputs) == given), None)  # None for other inputs
"""


def perfect_answers(lesson, keys: dict[str, ExerciseKey], seed: int) -> str:
    """The source of perfect answers to the lesson's measured exercises. They look up the best output for each input,
    because a reference solution would have to be trained for minutes."""
    measured = [name for name, key in keys.items() if key.metric]
    described, source = reference.answer_key(lesson) if measured else {}, ""
    for name in measured:
        cases = described[name].cases(Draw(seed))
        best = best_outputs(described[name], cases)
        # A scenario may return the answer's output together with other observations.
        outputs = [output["said"] if isinstance(output, dict) and "said" in output else output for output in best]
        inputs_of = [[list(case.args), case.kwargs] for case in keys[name].cases]
        table = [[inputs, output] for inputs, output in zip(inputs_of, outputs, strict=True)]
        # Some scenarios also call the answer with the same sentences in reverse order.
        lists = [(args, kwargs, out) for (args, kwargs), out in table if type(args[0]) is type(out) is list]
        table += [[[[args[0][::-1]], kwargs], out[::-1]] for args, kwargs, out in lists]
        # Others call it with the first sentences only, and a model that never produces the end token.
        endless = [out["endless"] if isinstance(out, dict) and "endless" in out else [] for out in best]
        cut = [(inputs, out) for inputs, out in zip(inputs_of, endless, strict=True) if out]
        table += [[[[args[0][: len(out)]], kwargs], out] for (args, kwargs), out in cut]
        source += PERFECT.format(name=name, table=base64.b64encode(zlib.compress(dumps(table))).decode())
    return source
