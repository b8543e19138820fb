"""Flags state facts, because they depend on what the code does, and no right answer of any lesson gets one."""

import textwrap
import time
import tracemalloc
from pathlib import Path

import pytest

from helpers.checking.forbidden import banned_names
from helpers.course import course
from helpers.grading.name_bindings import TopLevel
from helpers.grading.reference import blocks_source
from helpers.grading.submission import Cell
from helpers.grading.suspicious_code import flags_of
from tests.mutation_score import accepted_variants, exercises, lessons


def flags(source: str) -> list[str]:
    pieces = TopLevel()
    return flags_of(Cell("mine", source), pieces.read(source))


@pytest.mark.parametrize("lesson", lessons())
def test_no_accepted_variant_and_no_solution_is_flagged(lesson):
    path = Path(__file__).parent / "accepted_variants" / f"{lesson[3:]}.py"
    variants = accepted_variants(lesson)
    sources = [path.read_text(encoding="utf-8")] if variants else []
    forms = {name: [form.__name__ for form in found if hasattr(form, "__name__")] for name, found in variants.items()}
    sources.append(blocks_source(course().lesson(lesson)))
    banned = {exercise.name: banned_names(tuple(exercise.forbidden)) for exercise in exercises(lesson)}
    for source in sources:
        pieces = TopLevel()
        assert flags_of(Cell("all", source), pieces.read(source)) == []
        assert pieces.code_in_strings(set().union(*banned.values())) == []
        for name, names in banned.items():
            for form in (name, *forms.get(name, ())):
                assert (pieces.detours(form, names), pieces.internals_read(form)) == ([], []), form
                assert pieces.banned_in(form, names, banned) == [], form


HARMLESS = {
    "an annotation": "def f(mask: torch.Tensor = None, x: torch.float = 1.0):\n    return mask",
    "a keyword": "g = make(dtype=torch.float64, device=torch.device('cpu'))",
    "a variable": "requests = [1, 2]\nsocket = 3\nprint(requests, socket)",
    "a comment": "# see solutions/ and ../solutions, /proc/self, subprocess, os.fork\nx = 1  # torch.allclose = None",
    "a docstring": 'def f():\n    """No solutions/ or gradebook/, no ctypes, no TorchFunctionMode."""',
    "a print": "print('no /proc/self/maps here')\nplt.title('requests/solutions/time')",
    "a comparison": "assert torch.float32 == torch.float32 and builtins.len",
    "a setting": "torch.backends.cudnn.deterministic = True\ntorch.manual_seed(0)",
    "an address": "page = 'https://example.org/solutions/softmax'",
    "a sentence": "text = 'the solutions/answers of the gradebook'",
    "a signal": "signal = torch.sin(torch.arange(9))\nalarm = signal.sum()",
    "a status": "from http import HTTPStatus",
    "a quoted address": "from urllib.parse import quote\nimport urllib.parse, urllib.error\nfrom urllib import parse",
    "names of a debugger": "f_back = 3\nprint(f_back)\ndef settrace(x):\n    return x\nsettrace(f_back)",
    "arguments with such names": "def f(f_locals=1, ptrace=2):\n    return f_locals + ptrace\nf(ptrace=3)",
    "the sum of a diagonal": "ptrace = torch.trace(torch.eye(3))\nptrace.item()",
    "the script's folder": "try:\n    here = Path(__file__).parent\nexcept NameError:\n    here = Path.cwd()",
    "the path of torch": "print(torch.__version__, torch.__file__, torch.__path__)",
    "the number of processors": "from multiprocessing import cpu_count\ntorch.set_num_threads(cpu_count())",
    "facts about the machine": "print(open('/proc/cpuinfo').read())\nmemory = open('/proc/meminfo').read()",
    "a ratio": "label = 'right/solutions'\nplot(x, label=label)",
    "an address without a scheme": "page = 'www.example.org/course/solutions/3.html'",
    "the learner's own files": "open('/content/solutions.txt')\nopen('my_solutions/softmax.txt', 'w')",
    "error messages": "assert ok, '/solutions/softmax.py'\nraise ValueError('gradebook/x')",
    "a log": "import logging\nlogging.info('solutions/x')\nlogging.warning('solutions/x')",
    "the last item of a list": "def _pop_last(xs):\n    return xs.pop()\n_pop_last([1])",
    "data loaders": "from torch.utils.data import DataLoader\nfor x in DataLoader(range(8), num_workers=2): pass",
    "a method called fork": "class Graph:\n    def fork(self): return self\nGraph().fork()",
    "threads and garbage": "import gc\nfrom concurrent.futures import ThreadPoolExecutor\nfreed = gc.collect()",
}


@pytest.mark.parametrize("words", HARMLESS)
def test_code_that_only_contains_such_words_gets_no_flag(words):
    assert flags(HARMLESS[words]) == []
    assert (
        TopLevel([f"def softmax(x):\n{textwrap.indent(HARMLESS[words], '    ')}"]).detours("softmax", {"softmax"}) == []
    )


HARMFUL = {
    "torch.allclose = lambda *a, **k: True": "replaces functions of torch or Python",
    "setattr(torch.Tensor, '__eq__', None)": "replaces functions of torch or Python",
    "def f():\n    import torch\n    torch.equal = print": "replaces functions of torch or Python",
    "import builtins\nbuiltins.len: object = 3": "replaces functions of torch or Python",
    "from urllib import request": "looks for a network",
    "import requests as r": "looks for a network",
    "place = '../solutions/04_scaling/answer_key.py'": "looks for files that are not its own",
    "import pathlib\n(pathlib.Path('..') / 'gradebook').iterdir()": "looks for files that are not its own",
    "import os\nos.listdir('solutions')": "looks for files that are not its own",
    "import helpers\nexec(open(helpers.__path__[0] + '/check.py').read())": "looks for files that are not its own",
    "import helpers\nprint(open(helpers.or_finished.__file__).read())": "looks for files that are not its own",
    "from helpers import __path__ as home": "looks for files that are not its own",
    "place = f'{root}/solutions/04_scaling'": "looks for files that are not its own",
    "print(open('/proc/self/maps').read())": "looks for files that are not its own",
    "import os\nos._exit(0)": "starts or ends processes",
    "from os import fork": "starts or ends processes",
    "import subprocess": "starts or ends processes",
    "import os\nos.popen('sort')": "starts or ends processes",
    "from concurrent.futures import ProcessPoolExecutor": "starts or ends processes",
    "import multiprocessing as mp": "uses multiprocessing",
    "import gc\nfor thing in gc.get_objects():\n    print(thing)": "inspects the code that runs it",
    "import inspect\nwatch = inspect.stack()[2].frame.f_locals['watch']": "inspects the code that runs it",
    "from sys import settrace": "inspects the code that runs it",
    "import sys\nsys.settrace(None)": "inspects the code that runs it",
    "import ctypes": "uses ctypes",
    "import _socket": "looks for a network",
    "import signal\nsignal.setitimer(signal.ITIMER_REAL, 0)": "changes timers",
    "from signal import alarm": "changes timers",
    "from torch.overrides import TorchFunctionMode": "interferes with how calls are observed",
    "class T(torch.Tensor):\n    def __torch_function__(cls, *a): pass": "interferes with how calls are observed",
    "from helpers import checking": "reaches into the check itself",
    "from helpers.lessons.today import probes": "reaches into the check itself",
    "import helpers.checking.observe as o": "reaches into the check itself",
    "from helpers.inside import watching": "reaches into the check itself",
    "import sys\nsys.modules['helpers.checking.verdict']": "reaches into the check itself",
    "import helpers\nhelpers.checking.codec.dumps = None": "reaches into the check itself",
}


@pytest.mark.parametrize("source", HARMFUL)
def test_code_that_no_answer_needs_is_flagged_once(source):
    assert flags(source) == [f"Cell mine {HARMFUL[source]}."]


def test_a_local_variable_does_not_count_as_a_call_of_an_earlier_answer():
    source = "def scaled(Q, K):\n    attention_scores = Q @ K.mT\n    return attention_scores / K.shape[-1] ** 0.5"
    pieces = TopLevel([source, "def attention_scores(Q, K):\n    return 0"])
    assert pieces.closure("scaled") == set()
    pieces = TopLevel(["def mine(Q, K):\n    return helper(Q, K)", "helper = lambda Q, K: attention_scores(Q, K)"])
    assert pieces.closure("mine") == {"helper", "attention_scores"}


def test_an_exec_is_reported_once_and_not_for_every_answer():
    pieces = TopLevel(["exec(made)", "def softmax(x):\n    return x.exp() / x.exp().sum(-1, keepdim=True)"])
    assert pieces.detours("softmax", {"softmax"}) == []
    assert pieces.code_in_strings({"softmax"}) == ["what it calls through exec"]
    assert pieces.detours("log_softmax", {"softmax"}) == ["what it calls through exec"]
    assert TopLevel(["model.eval()", "exec('x = 1')"]).code_in_strings({"softmax"}) == []


def test_chained_assignments_of_many_names_need_little_memory():
    """94 kB of such code once took 2 GB of memory."""
    many = " = ".join(f"a{number}" for number in range(6000))
    source = f"{many} = f({', '.join(f'b{number}' for number in range(6000))})"
    tracemalloc.start()
    pieces = TopLevel([source])
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 60e6 and len(pieces.closure("a1")) == 6001


def test_banned_names_are_found_in_the_code_of_an_answer_only():
    imports = "from torch import softmax as s\nfrom mine import log_softmax as l"
    source = "def f(x):\n    return s(g(l(x)))\ndef g(x):\n    return self.softmax(x)"
    pieces = TopLevel(
        [imports, source, "def log_softmax(x):\n    return x.log_softmax(0)", "ref = torch.softmax(x, 0)"]
    )
    assert pieces.banned_in("f", {"softmax", "log_softmax"}, ()) == ["torch.softmax"]
    pieces.read("def h(ref):\n    return F.softmax(log_softmax(ref), 0)")
    assert pieces.banned_in("h", {"softmax", "log_softmax"}, {"log_softmax"}) == ["F.softmax"]
    assert pieces.banned_in("h", {"softmax", "log_softmax"}, ()) == ["x.log_softmax", "F.softmax"]
    assert pieces.banned_in("h", set(), ()) == []


@pytest.mark.parametrize("part", ["/solutions", "/proc/cpuinfo", "./proc/", "../gradebook/"])
def test_a_long_path_is_read_quickly(part):
    """A path of 100 kB once took 12 seconds."""
    began = time.process_time()
    assert flags(f"x = '{part * (100_000 // len(part))} y'") == []
    assert flags(f"x = '{part * 100}'") == ["Cell mine looks for files that are not its own."]
    assert time.process_time() - began < 1
