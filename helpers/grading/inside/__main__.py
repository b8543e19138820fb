"""Start the sandbox's program from the folder that holds `helpers`, which is the only place it is imported from."""

import gc
import os
import sys

gc.disable()  # Imported objects stay alive anyway, and searching them for garbage takes a tenth of the import time.
sys.path[0] = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))

from helpers.inside.fork_server import main  # noqa: E402

main(sys.argv[1])
