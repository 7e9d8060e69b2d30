#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Every function that is not supported, and some calls of others that are refused: each answers 801, and each names itself once on stderr, however
often it is called, before it returns."""
import json
import os
import re
import subprocess
import sys
import unittest

os.environ.setdefault("CKT_TEST_PROGRAM", "")
sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from whole import Whole, runner  # noqa: E402

BUILD = os.environ["CKT_TEST_BUILD"]
NOT_SUPPORTED = 801

# Calls the functions that it is told of, three times each, and says what they returned and how many lines had come to stderr by then.
CALLER = r"""
import ctypes, os, sys, tempfile
library = ctypes.CDLL(sys.argv[1])
log = tempfile.TemporaryFile()
os.dup2(log.fileno(), 2)
zeros = [ctypes.c_void_p(0)] * 12
driver = ctypes.CDLL("libcuda.so.1")
if driver.cuInit(0):
    sys.exit("no session")
for name in sys.argv[2:]:
    results = [getattr(library, name)(*zeros) for _ in range(3)]
    said = os.pread(log.fileno(), 1 << 20, 0).decode().splitlines()
    print(name, *results, sum(1 for line in said if name in line.replace(":", " ").split()))
"""


def driver_functions():
    with open(os.path.join(BUILD, "rpc/gen/cuda_coverage.json"), encoding="utf-8") as f:
        functions = json.load(f)["functions"]
    return sorted(f["name"] for f in functions if f["class"] in ("unsupported", "undeclared"))


def runtime_functions():
    with open(os.path.join(BUILD, "client/cudart/refused.c"), encoding="utf-8") as f:
        return sorted(re.findall(r'ckt_rt_unsupported\("(\w+)"', f.read()))


class Refused(Whole):
    def check(self, library, names):
        server = self.server("s")
        self.assertGreater(len(names), 20)
        done = subprocess.run([self.tree.tool("cricket-run"), "--server", server.address, sys.executable, "-c", CALLER, library, *names],
                              env=dict(runner.clean_environment(), HOME=self.home), stdout=subprocess.PIPE, text=True, timeout=120, check=True)
        wrong = [line for line in done.stdout.splitlines() if line.split()[1:] != [str(NOT_SUPPORTED)] * 3 + ["1"]]
        self.assertEqual(wrong, [])
        self.assertEqual(len(done.stdout.splitlines()), len(names))

    def test_driver(self):
        self.check("libcuda.so.1", driver_functions())

    def test_runtime(self):
        self.check("libcudart.so.13", runtime_functions())


if __name__ == "__main__":
    unittest.main()
