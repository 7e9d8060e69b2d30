# SPDX-License-Identifier: Apache-2.0
"""What the tests of the wheel share: the wheel, environments to install it in, and how to run in them."""

import glob
import os
import resource
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
SKIP = 77
# pip's own settings and the programs' surroundings are no part of a test.
CLEAN = {name: value for name, value in os.environ.items()
         if not name.startswith(("CRICKET_", "PYTEST_", "VIRTUAL_ENV", "PYTHON")) and name not in ("LD_PRELOAD", "REMOTE_GPU_ADDRESS", "CUDA_VISIBLE_DEVICES")}


def find(packages):
    """The wheel's path; ends the test as skipped where it was not built."""
    found = glob.glob(os.path.join(packages, "cricket_gpu-*.whl"))
    if not found:
        print(f"no wheel in {packages}: ./run package wheel builds it")
        sys.exit(SKIP)
    return os.path.abspath(found[0])


def run(*command, cwd=None, **variables):
    """(status, all that it printed)"""
    done = subprocess.run(command, cwd=cwd, env={**CLEAN, **variables}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, errors="replace", timeout=280, check=False)
    return done.returncode, done.stdout


def make_venv(path, *packages, python=sys.executable):
    """A fresh environment with these packages.  OSError: pip could not get them."""
    status, text = run(python, "-m", "venv", path)
    if status:
        raise OSError(text[-1000:])
    if packages:
        pip(path, "install", "--no-compile", *packages)
    return path


def pip(path, command, *arguments):
    status, text = run(os.path.join(path, "bin", "python"), "-m", "pip", "--quiet", "--disable-pip-version-check", command, *arguments)
    if status:
        raise OSError(text[-1000:])
    return text


def cpu_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def files_below(path):
    return {os.path.relpath(os.path.join(directory, name), path) for directory, _, names in os.walk(path) for name in names if not name.endswith(".pyc")}
