"""An IPython shell for the cells of notebooks. Only a sandbox for notebooks imports this module."""

import ast
import gc
import io
import sys

from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from .cell_runner import Outputs, one_line

MOST_RESUMED = 20  # times that the rest of a cell is run behind a statement that raised


class Publisher(DisplayPublisher):
    """Hands what a cell displays to its Outputs."""

    outputs = Outputs()  # of nobody, until a cell is run

    def publish(self, data, *_, **__):
        self.outputs.rich("display_data", data)

    def clear_output(self, wait=False):
        self.outputs.items.clear()


class Hook(DisplayHook):
    """Hands the value of a cell's last expression to its Outputs."""

    outputs = Outputs()  # of nobody, until a cell is run

    def start_displayhook(self):
        pass

    write_output_prompt = finish_displayhook = start_displayhook

    def write_format_data(self, format_dict, *_):
        self.outputs.rich("execute_result", format_dict)


class Shell(InteractiveShell):
    """Writes nothing to disk, hands every output to an Outputs, and can begin a cell at one of its statements."""

    display_pub_class = Publisher
    displayhook_class = Hook
    outputs = Outputs()  # of nobody, until a cell is run
    skipped = begun = 0  # top-level statements of a cell: not to be run; begun, those included
    statements: list[ast.stmt] = []  # all of them
    bare = False  # whether the functions of the first one that is run lose their annotations

    def run_to_end(self, source: str, place: str, outputs: Outputs, resume: bool) -> str:
        """Run a cell, and behind a statement that raises the rest of it, if `resume`. Returns its first error as one
        line, "" for none."""
        self.outputs = self.display_pub.outputs = self.displayhook.outputs = outputs
        self.compile.get_code_name = lambda *_: place
        first, self.skipped, self.bare, result, error = "", 0, False, None, None
        for _ in range(MOST_RESUMED if resume else 1):
            self.begun = self.skipped
            result = self.run_cell(source, store_history=False)
            error = result.error_before_exec or result.error_in_exec
            if error is None:
                break
            first = first or one_line(error, place)
            if result.error_before_exec or not isinstance(error, Exception):
                break
            # An annotation may name a package that is not here: nothing else needs it, so the statement is run bare.
            tried = self.bare and self.begun == self.skipped + 1
            self.bare = isinstance(error, NameError) and not tried and bool(annotated(self.statements[self.begun - 1]))
            self.skipped = self.begun - self.bare
        if first:
            # IPython keeps the error for a debugger, and with it copies of what its functions held.
            self.InteractiveTB.tb = None
            for name in ("last_type", "last_value", "last_traceback", "last_exc"):
                vars(sys).pop(name, None)
            del result, error
            gc.collect()
        return first

    def transform_ast(self, node):
        node = super().transform_ast(node)
        self.statements, node.body = node.body, node.body[self.skipped :]
        if self.bare:
            for holder, field in annotated(node.body[0]):
                setattr(holder, field, None)
        return node

    async def run_code(self, code_obj, result=None, *, async_=False):
        self.begun += 1  # IPython runs each top-level statement by itself
        return await super().run_code(code_obj, result, async_=async_)

    def _showtraceback(self, etype, evalue, stb):
        self.outputs.error(etype.__name__, str(evalue), list(stb))

    def enable_gui(self, gui=None):
        pass


def make_shell() -> Shell:
    """The shell, with everything imported and drawn once that every lesson's first cells would spend their time on."""
    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "NoColor"
    shell = Shell.instance(config=config)
    import matplotlib.pyplot as plt  # the inline backend attaches itself to the shell that exists by now

    import helpers.drawing.style  # noqa: F401
    import helpers.progress  # noqa: F401
    import helpers.widgets.panel  # noqa: F401

    figure = plt.figure()
    figure.text(0, 0, "warm")
    figure.savefig(io.BytesIO())
    plt.close(figure)
    return shell


def annotated(statement: ast.stmt) -> list[tuple[ast.AST, str]]:
    """Where the functions of a statement are annotated: (node, name of its field)."""
    fields = {ast.arg: "annotation", ast.FunctionDef: "returns", ast.AsyncFunctionDef: "returns"}
    return [
        (node, field)
        for node in ast.walk(statement)
        if (field := fields.get(type(node))) is not None and getattr(node, field) is not None
    ]
