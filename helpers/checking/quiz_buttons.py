"""Buttons below the check of a quiz, in JupyterLab: a click writes `quiz_1 = "b"` into the learner's cell.

It edits the line above, as a person would, and presses Shift+Enter twice, for that cell and for the check, because the
grader reads the cell. If there is no such line above, nothing changes, and a sentence says what to type. The buttons
are hidden in Colab and on web pages, where an output cannot change cells, and in notebooks that are not trusted.
"""

import html
from collections.abc import Iterable

STYLE = (
    "<style>.jp-NotebookPanel .course-choices{display:flex!important;gap:.5em;padding:.3em 0 0 2ch}"
    ".course-choices button{font:inherit;color:inherit;background:none;border:1px solid #8c959f;border-radius:6px;"
    "padding:.1em .9em;cursor:pointer}.course-choices button:hover{border-color:currentcolor}"
    ".course-choices button[aria-pressed=true]{background:#ffc94d;border-color:#7a4b00;color:#000}</style>"
)
# Changes the last line above the buttons that begins with NAME =, and keeps its comment.
CLICK = """
const choice = event.target.value, notebook = this.closest('.jp-NotebookPanel'), checks = this.closest('.jp-Cell');
if (!choice || !notebook) return;
for (const one of this.querySelectorAll('button')) one.ariaPressed = String(one === event.target);
const answer = () => [...notebook.querySelectorAll('.jp-CodeCell .cm-line')]
  .filter((one) => /^NAME *=/.test(one.textContent) && one.compareDocumentPosition(checks) & 4).pop();
const run = () => document.activeElement.dispatchEvent(
  new KeyboardEvent('keydown', { key: 'Enter', keyCode: 13, shiftKey: true, bubbles: true, cancelable: true }));
const written = `NAME = "${choice}"`, line = answer();
if (line) {
  const whole = line.textContent.replace(/^NAME *=[^#]*?(?= *(#|$))/, written);
  line.closest('.cm-content').focus();
  getSelection().selectAllChildren(line);
  document.execCommand('insertText', false, whole);
}
setTimeout(() => {
  if (!answer()?.textContent.startsWith(written)) this.lastChild.textContent = `Type ${written} into the cell above.`;
  else { run(); setTimeout(run, 300); }
}, 200);
"""


def buttons(name: str, options: Iterable[str], chosen: str = "") -> str:
    """The HTML of one button per option of the quiz `name`. The option `chosen` is marked."""
    choices = "".join(
        f'<button type="button" value="{option}" aria-pressed="{str(option == chosen).lower()}">{option}</button>'
        for option in map(html.escape, options)
    )
    click = html.escape(" ".join(CLICK.replace("NAME", name).split()))
    return (
        f'{STYLE}<div class="course-choices" style="display:none" role="group" aria-label="Answer {name} with" '
        f'onclick="{click}">{choices}<span role="status"></span></div>'
    )
