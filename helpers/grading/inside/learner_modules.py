"""Modules beside the notebook: the learner's code finds them first, as at home, and nobody else's does."""

import importlib.abc
import importlib.util
import os
import sys
import types


class OwnModules(importlib.abc.MetaPathFinder):
    """Finds NAME.py of a folder before a module of Python's with that name (test.py, say) for code of the learner's."""

    def __init__(self, folder: str):
        self.folder = folder

    def find_spec(self, name, path=None, target=None):
        place = os.path.join(self.folder, f"{name}.py")
        if "." in name or not os.path.isfile(place) or not self._is_asked_by_the_learner():
            return None
        return importlib.util.spec_from_file_location(name, place)

    def _is_asked_by_the_learner(self) -> bool:
        frame: types.FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename.startswith(("<frozen importlib", __file__)):
            frame = frame.f_back
        while frame is not None and frame.f_code.co_filename.endswith("helpers/running/time_limit.py"):
            frame = frame.f_back
        while frame is not None and frame.f_code.co_filename.startswith("<frozen importlib"):
            frame = frame.f_back
        return frame is not None and frame.f_code.co_filename.startswith(("<cell ", self.folder))
