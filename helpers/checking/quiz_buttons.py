"""Buttons below the check of a quiz, in JupyterLab: a click writes `quiz_1 = "b"` into the learner's cell.

It types into the line above, as a hand does, and presses Shift+Enter twice, for that cell and the check's: what stands
in the notebook is what is graded. Where no such line is near, nothing changes, and a sentence says what to type. In
Colab and in pages an output does not reach the cells; the buttons are not seen there, nor where a notebook is not
trusted.
"""

import html
from collections.abc import Iterable

STYLE = (
    "<style>.jp-NotebookPanel .course-choices{display:flex!important;gap:.5em;padding:.3em 0 0 2ch}"
    ".course-choices button{font:inherit;color:inherit;background:none;border:1px solid #8c959f;border-radius:6px;"
    "padding:.1em .9em;cursor:pointer}.course-choices button:hover{border-color:currentcolor}"
    ".course-choices button[aria-pressed=true]{background:#ffc94d;border-color:#7a4b00;color:#000}</style>"
)
# Of the lines that begin with NAME =, the last one above the buttons; its comment stays.
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
    """The HTML of a button for each option of a quiz; the chosen one is marked."""
    each = "".join(
        f'<button type="button" value="{one}" aria-pressed="{str(one == chosen).lower()}">{one}</button>'
        for one in map(html.escape, options)
    )
    click = html.escape(" ".join(CLICK.replace("NAME", name).split()))
    return (
        f'{STYLE}<div class="course-choices" style="display:none" role="group" aria-label="Answer {name} with" '
        f'onclick="{click}">{each}<span role="status"></span></div>'
    )
