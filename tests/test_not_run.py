"""Running a check before its answer, the imports or the set-up cell gives one sentence each (in a real kernel)."""

import os

import pytest
from jupyter_client.manager import start_new_kernel

from helpers.authoring.setup_cell import set_up_source
from helpers.authoring.text import read_lesson
from helpers.course import course

LESSON = course().lesson("00_start_here")


@pytest.fixture(scope="module")
def error_of():
    """error_of(code): name and shown lines of the error with which the cell ends in a kernel, or ("", "")."""
    environment = {**os.environ, "PYTHONPATH": str(course().root)}
    manager, client = start_new_kernel(cwd=str(course().root / "notebooks" / LESSON.name), env=environment)

    def error_of(code: str) -> tuple[str, str]:
        errors = []
        client.execute_interactive(
            code,
            timeout=120,
            output_hook=lambda message: errors.append(message["content"]) if message["msg_type"] == "error" else None,
        )
        return (errors[0]["ename"], "\n".join(errors[0]["traceback"])) if errors else ("", "")

    yield error_of
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def test_a_check_names_the_cell_that_has_to_run_first(error_of):
    check = next(cell.source for cell in read_lesson(course(), LESSON).notebook.cells if cell.id == "check_twice")
    kind, shown = error_of(check)
    assert kind == "NameError" and "Run the set-up cell at the top first." in shown
    assert error_of(set_up_source(course(), LESSON.name)) == ("", "")
    sentence = "check is not defined yet. Run the imports below the set-up cell first, and then this one again."
    assert error_of(check) == ("NameError", sentence)
    assert error_of("from helpers import check") == ("", "")
    sentence = "twice is not defined yet. Run its answer cell first, and then this one again."
    assert error_of(check) == ("NameError", sentence)
    assert error_of("check(quiz_1=quiz_1)")[1].startswith("quiz_1 is not defined yet.")


def test_every_other_undefined_name_gives_an_ordinary_traceback(error_of):
    error_of(set_up_source(course(), LESSON.name))
    assert "Traceback" in error_of("twise(2)")[1]
    assert "Traceback" in error_of("def mine():\n    return twice(2)\nmine()")[1]  # the learner needs the line number


def test_a_platforms_own_error_handler_keeps_working(error_of):
    handler = "lambda shell, kind, error, trace, tb_offset=None: print('theirs', kind.__name__)"
    error_of("vars(get_ipython()).pop('before_the_course', None)")
    error_of(f"get_ipython().set_custom_exc((ImportError, NameError), {handler})")
    for _ in range(2):
        error_of(set_up_source(course(), LESSON.name))
    assert error_of("check(twice)")[1].endswith("and then this one again.")
    assert error_of("import no_such_package") == error_of("twise") == ("", "")  # theirs printed
    assert error_of("1 / 0")[0] == "ZeroDivisionError"
