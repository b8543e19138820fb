"""The course's own package: what its notebooks import. `from helpers import at_work, check, or_finished, progress`.

Light on purpose: importing it imports no torch, which `check`, `at_work` and the figures load when they are used.
"""

import sys

if sys.version_info < (3, 11):  # noqa: UP036 said before an older Python fails at an import
    raise SystemExit(
        f"The course needs Python 3.11 or newer, and this is Python {sys.version.split()[0]}. "
        "Take a newer one: in a terminal to install the course with, in a notebook as its kernel."
    )

COURSE = "attention-course"  # set-up cells look for this name, as other packages are called helpers too
__version__ = "0.1.0"

from helpers.at_work import at_work  # noqa: E402
from helpers.check import check  # noqa: E402
from helpers.or_finished import or_finished  # noqa: E402
from helpers.progress import progress  # noqa: E402

__all__ = ["at_work", "check", "or_finished", "progress"]
