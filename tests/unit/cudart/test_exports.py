#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What libcudart.so.13 exports and needs, and its error texts, beside NVIDIA's own library where that is installed.

test_exports.py OURS CUDA_HOME LIBCUDA
    LIBCUDA: any library of that SONAME with every function of the driver.
"""
import ctypes
import os
import re
import subprocess
import sys
import unittest

OURS = GENUINE = None


def symbols(path, option):
    """[(type, name, version)] of the dynamic symbols."""
    lines = subprocess.run(["nm", "-D", option, path], check=True, capture_output=True, text=True).stdout.splitlines()
    found = []
    for line in lines:
        kind, name = line.split()[-2:]
        name, _, version = name.partition("@")
        found.append((kind, name, version.lstrip("@")))
    return found


def functions(path):
    return {name: version for kind, name, version in symbols(path, "--defined-only") if kind in "TtWi"}


class Exports(unittest.TestCase):
    def test_nothing_but_the_api(self):
        exported = functions(OURS)
        self.assertEqual([n for n in exported if not re.match(r"(cuda|__cuda)[A-Z]", n)], [])
        self.assertEqual(set(exported.values()), {"libcudart.so.13"})
        objects = [n for k, n, _ in symbols(OURS, "--defined-only") if k not in "TA"]
        self.assertEqual(objects, [])

    def test_the_same_names(self):
        if not os.path.exists(GENUINE):
            self.skipTest("no genuine libcudart.so.13")
        self.assertEqual(functions(OURS), functions(GENUINE))
        self.assertEqual(len(functions(OURS)), 422)

    def test_needs_libc_and_libcuda(self):
        dynamic = subprocess.run(["readelf", "-dW", OURS], check=True, capture_output=True, text=True).stdout
        self.assertEqual(set(re.findall(r"NEEDED.*\[(.*)\]", dynamic)), {"libcuda.so.1", "libc.so.6"})
        self.assertEqual(re.findall(r"SONAME.*\[(.*)\]", dynamic), ["libcudart.so.13"])
        self.assertRegex(dynamic, r"RUNPATH.*\[\$ORIGIN")
        self.assertNotIn("TEXTREL", dynamic)

    def test_undefined_symbols(self):
        driver = {name for _, name, version in symbols(OURS, "--undefined-only") if not version}
        self.assertEqual([n for n in driver if not re.match(r"cu[A-Z]|_ITM_|__gmon_start__", n)], [])
        for _, name, version in symbols(OURS, "--undefined-only"):
            self.assertRegex(version or "GLIBC_2.2", r"GLIBC_2\.\d", name)
            if version:
                self.assertLessEqual(int(version.split(".")[1]), 34, name)


class ErrorTexts(unittest.TestCase):
    def test_as_genuine(self):
        if not os.path.exists(GENUINE):
            self.skipTest("no genuine libcudart.so.13")
        texts = []
        for path in (OURS, GENUINE):
            library = ctypes.CDLL(path)
            for function in (library.cudaGetErrorName, library.cudaGetErrorString):
                function.restype = ctypes.c_char_p
                function.argtypes = [ctypes.c_int]
            texts.append([(i, library.cudaGetErrorName(i), library.cudaGetErrorString(i)) for i in range(-2, 11000)])
        self.assertEqual(*texts)
        self.assertGreater(len({name for _, name, _ in texts[0]}), 130)


if __name__ == "__main__":
    OURS = sys.argv[1]
    GENUINE = os.path.join(sys.argv[2], "lib64", "libcudart.so.13")
    ctypes.CDLL(sys.argv[3], ctypes.RTLD_GLOBAL)
    unittest.main(argv=sys.argv[:1])
