"""The course's own package: what its notebooks import. `from helpers import at_work, check, or_given, progress`.

Light on purpose: importing it imports no torch, which `check`, `at_work` and the figures load when they are used.
"""

COURSE = "attention-course"  # set-up cells look for this name, as other packages are called helpers too
__version__ = "0.1.0"

from helpers.at_work import at_work  # noqa: E402
from helpers.check import check  # noqa: E402
from helpers.or_given import or_given  # noqa: E402
from helpers.progress import progress  # noqa: E402

__all__ = ["at_work", "check", "or_given", "progress"]
