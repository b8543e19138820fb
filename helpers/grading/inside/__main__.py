"""Start the sandbox's program. Modules are imported from the folder that contains the copy of helpers."""

import gc
import os
import sys

gc.disable()  # Searching imported objects for garbage finds none, and takes a tenth of the import time.
sys.path[0] = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))

from helpers.inside.fork_server import main  # noqa: E402

main(sys.argv[1])
