"""The program of the sandbox: the folder above this one is its only home."""

import gc
import os
import sys

gc.disable()  # what is imported stays: to look for what does not takes a tenth of the time
sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

from inside.fork_server import main  # noqa: E402

main(sys.argv[1])
