"""The course's own package: what its notebooks import. `from helpers import check, progress`.

Light on purpose: importing it imports no torch, which `check` and the figures load when they are used.
"""

COURSE = "attention-course"  # set-up cells look for this name, as other packages are called helpers too
__version__ = "0.1.0"

from helpers.check import check  # noqa: E402
from helpers.progress import progress  # noqa: E402

__all__ = ["check", "progress"]
