"""An IPython shell for the cells of notebooks. Loose files are graded without it, so that they need no IPython."""

import ast
import gc
import io
import os
import sys

from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from .cell_runner import Outputs, one_line

MOST_RUNS = 20  # runs of one cell, which is resumed after each statement that raises


class Publisher(DisplayPublisher):
    """Adds what a cell displays to its Outputs."""

    outputs = Outputs()  # replaced in run_to_end

    def publish(self, data, *_, **__):
        self.outputs.rich("display_data", data)

    def clear_output(self, wait=False):
        self.outputs.items.clear()


class Hook(DisplayHook):
    """Adds the value of a cell's last expression to its Outputs."""

    outputs = Outputs()  # replaced in run_to_end

    def start_displayhook(self):
        pass

    write_output_prompt = finish_displayhook = start_displayhook

    def write_format_data(self, format_dict, *_):
        self.outputs.rich("execute_result", format_dict)


class Shell(InteractiveShell):
    """Writes nothing to disk, adds every output to an Outputs, and can start a cell at any of its statements."""

    display_pub_class = Publisher
    displayhook_class = Hook
    outputs = Outputs()  # replaced in run_to_end
    statements: list[ast.stmt] = []  # the cell's top-level statements
    skipped = begun = 0  # how many of them this run of the cell skips, and how many it has skipped or begun
    bare = False  # whether the first statement of this run is run without its annotations

    def run_to_end(self, source: str, filename: str, outputs: Outputs, resume: bool) -> str:
        """Run a cell, and if `resume`, also the statements that follow one that raises.

        filename: the name of the code in tracebacks. Returns the cell's first error as one line, "" for none.
        """
        self.outputs = self.display_pub.outputs = self.displayhook.outputs = outputs
        self.compile.get_code_name = lambda *_: filename
        first_error, self.skipped, self.bare, result, error = "", 0, False, None, None
        for _ in range(MOST_RUNS if resume else 1):
            self.begun = self.skipped
            result = self.run_cell(source, store_history=False)
            error = result.error_before_exec or result.error_in_exec
            if error is None:
                break
            first_error = first_error or one_line(error, filename)
            if result.error_before_exec or not isinstance(error, Exception):
                break
            # An annotation may name a package that is missing here. Nothing else needs it, so run it without.
            was_bare = self.bare and self.begun == self.skipped + 1
            may_be_bare = isinstance(error, NameError) and not was_bare
            self.bare = may_be_bare and bool(annotated(self.statements[self.begun - 1]))
            self.skipped = self.begun - self.bare
        if first_error:
            # IPython keeps the last error for its debugger, and thereby the local variables of all its frames.
            self.InteractiveTB.tb = None
            for name in ("last_type", "last_value", "last_traceback", "last_exc"):
                vars(sys).pop(name, None)
            del result, error
            gc.collect()
        return first_error

    def transform_ast(self, node):
        node = super().transform_ast(node)
        self.statements, node.body = node.body, node.body[self.skipped :]
        if self.bare:
            for holder, field in annotated(node.body[0]):
                setattr(holder, field, None)
        return node

    async def run_code(self, code_obj, result=None, *, async_=False):
        self.begun += 1  # IPython calls this once per top-level statement.
        return await super().run_code(code_obj, result, async_=async_)

    def _get_exc_info(self, exc_tuple=None):
        """Leave the sandbox's own frames, such as those of devices.py, out of the traceback that learners see, and out
        of those of the error's causes."""
        kind, error, trace = super()._get_exc_info(exc_tuple)
        cause, seen = error, set()
        while cause is not None and id(cause) not in seen:
            seen.add(id(cause))
            outer = cause.__traceback__
            while outer is not None and outer.tb_next is not None:
                if outer.tb_next.tb_frame.f_code.co_filename.startswith(os.path.dirname(__file__)):
                    outer.tb_next = outer.tb_next.tb_next
                else:
                    outer = outer.tb_next
            cause = cause.__cause__ or cause.__context__
        return kind, error, trace

    def _showtraceback(self, etype, evalue, stb):
        self.outputs.error(etype.__name__, str(evalue), list(stb))

    def enable_gui(self, gui=None):
        pass


def make_shell() -> Shell:
    """Make the shell, and import and draw once what would otherwise take time in the first cells of every lesson."""
    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "NoColor"
    shell = Shell.instance(config=config)
    import matplotlib.pyplot as plt  # Imported here because its inline backend attaches itself to an existing shell.

    import helpers.drawing.style  # noqa: F401
    import helpers.progress  # noqa: F401
    import helpers.widgets.panel  # noqa: F401

    figure = plt.figure()
    figure.text(0, 0, "warm")
    figure.savefig(io.BytesIO())
    plt.close(figure)
    return shell


def annotated(statement: ast.stmt) -> list[tuple[ast.AST, str]]:
    """The annotations of the functions in a statement, each as the node and the name of its field."""
    fields = {ast.arg: "annotation", ast.FunctionDef: "returns", ast.AsyncFunctionDef: "returns"}
    return [
        (node, field)
        for node in ast.walk(statement)
        if (field := fields.get(type(node))) is not None and getattr(node, field) is not None
    ]
