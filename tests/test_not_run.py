"""A check before its answer, before the imports and before the set-up, in a real kernel: one sentence each."""

import os

import pytest
from jupyter_client.manager import start_new_kernel

from helpers.authoring.setup_cell import set_up_source
from helpers.authoring.text import read_lesson
from helpers.course import course

LESSON = course().lesson("00_start_here")


@pytest.fixture(scope="module")
def said():
    """said(code): name and shown lines of the error that a kernel's cell ends with; ("", "") where it has none."""
    environment = {**os.environ, "PYTHONPATH": str(course().root)}
    manager, client = start_new_kernel(cwd=str(course().root / "notebooks" / LESSON.name), env=environment)

    def said(code: str) -> tuple[str, str]:
        errors = []
        client.execute_interactive(
            code,
            timeout=120,
            output_hook=lambda message: errors.append(message["content"]) if message["msg_type"] == "error" else None,
        )
        return (errors[0]["ename"], "\n".join(errors[0]["traceback"])) if errors else ("", "")

    yield said
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def test_a_cell_that_was_not_run_is_named_in_a_sentence(said):
    check = next(cell.source for cell in read_lesson(course(), LESSON).notebook.cells if cell.id == "check_twice")
    kind, shown = said(check)
    assert kind == "NameError" and "Run the set-up cell at the top first." in shown
    assert said(set_up_source(course(), LESSON.name)) == ("", "")
    sentence = "check is not defined yet. Run the imports below the set-up cell first, and then this one again."
    assert said(check) == ("NameError", sentence)
    assert said("from helpers import check") == ("", "")
    assert said(check) == ("NameError", "twice is not defined yet. Run its answer cell first, and then this one again.")
    assert said("check(quiz_1=quiz_1)")[1].startswith("quiz_1 is not defined yet.")


def test_every_other_name_has_pythons_own_words(said):
    said(set_up_source(course(), LESSON.name))
    assert "Traceback" in said("twise(2)")[1]
    assert "Traceback" in said("def mine():\n    return twice(2)\nmine()")[1]  # here a line number is needed


def test_what_a_platform_explains_it_goes_on_explaining(said):
    handler = "lambda shell, kind, error, trace, tb_offset=None: print('theirs', kind.__name__)"
    said("vars(get_ipython()).pop('before_the_course', None)")
    said(f"get_ipython().set_custom_exc((ImportError, NameError), {handler})")
    for _ in range(2):
        said(set_up_source(course(), LESSON.name))
    assert said("check(twice)")[1].endswith("and then this one again.")
    assert said("import no_such_package") == said("twise") == ("", "")  # theirs printed
    assert said("1 / 0")[0] == "ZeroDivisionError"
