# SPDX-License-Identifier: Apache-2.0
"""On PYTHONPATH of Numba's tests and of the interpreters that they start: keeps nvJitLink out.

Where a toolkit is installed, nvJitLink would link to machine code for one model of GPU; without it the driver links the PTX, which is
what any device can run.  The module is changed once somebody imports it, so that interpreters without CUDA pay nothing.
"""

import importlib.abc
import importlib.util
import sys

NAME = "cuda.bindings._internal.nvjitlink"


class Finder(importlib.abc.MetaPathFinder):
    """Finds the one module as the others would, and adds a step to loading it."""

    def find_spec(self, fullname, path, target=None):
        if fullname != NAME:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is None or spec.loader is None:
            return spec
        load = spec.loader.exec_module

        def exec_module(module):
            load(module)
            module._inspect_function_pointer = lambda name: 0

        spec.loader.exec_module = exec_module
        return spec


sys.meta_path.insert(0, Finder())
