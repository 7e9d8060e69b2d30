#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Where an interpreter's wheels have NVIDIA's libraries: what a server's --library-path has to name, so that both sides use one build.

	wheels.py [PYTHON]	prints the directories, with colons between them
"""

import subprocess
import sys

CODE = """import glob, os, sys
files = [f for d in sys.path for p in ('nvidia/*/lib/lib*.so.*', 'nvidia/*/*/lib/lib*.so.*', 'torch/lib/libcublas*') for f in glob.glob(os.path.join(d, p))]
print(*sorted({os.path.dirname(f) for f in files}), sep=':')"""


def library_paths(python=sys.executable):
    """The directories of NVIDIA's wheels, and of PyTorch's own copies."""
    return subprocess.run([python, "-c", CODE], capture_output=True, text=True, check=False).stdout.strip()


if __name__ == "__main__":
    print(library_paths(*sys.argv[1:2]))
