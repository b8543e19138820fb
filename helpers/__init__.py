"""The package that the course's notebooks import: `from helpers import at_work, check, or_finished, progress`.

Importing it is quick, because `check`, `at_work` and the figures import torch only when they are used.
"""

import sys

if sys.version_info < (3, 11):  # noqa: UP036 an older Python would fail at an import, with a confusing error
    raise SystemExit(
        f"The course needs Python 3.11 or newer, and this is Python {sys.version.split()[0]}. "
        "In a terminal, install the course with a newer Python; in a notebook, choose a newer kernel."
    )

COURSE = "attention-course"  # by this, set-up cells recognize the course, because other packages are called helpers too
__version__ = "0.1.0"

from helpers.at_work import at_work  # noqa: E402
from helpers.check import check  # noqa: E402
from helpers.or_finished import or_finished  # noqa: E402
from helpers.progress import progress  # noqa: E402

__all__ = ["at_work", "check", "or_finished", "progress"]
