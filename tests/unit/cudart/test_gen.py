#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""gen.py with the headers of a CUDA that has a function nobody has heard of: refused loudly, named to who builds, an error with --strict.

usage: test_gen.py CUDART_SOURCE_DIR CUDA_INCLUDE
"""
import glob
import os
import re
import subprocess
import sys
import tempfile
import unittest

SOURCE, INCLUDE = sys.argv.pop(1), sys.argv.pop(1)


class Newer(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        include = self.path("include")
        os.mkdir(include)
        with open(os.path.join(include, "cuda_runtime_api.h"), "w", encoding="utf-8") as f:
            f.write('#include "%s/cuda_runtime_api.h"\n' % INCLUDE)
            f.write("struct cudaNew { int size; union { void *p; float f[3]; } u; };\n"
                    "extern __host__ cudaError_t CUDARTAPI cudaFutureThing(const struct cudaNew *thing, cudaStream_t stream);\n")

    def path(self, name):
        return os.path.join(self.directory.name, name)

    def gen(self, command, *options, include=None):
        lists = ["--names", os.path.join(SOURCE, "names.txt"), "--unsupported", os.path.join(SOURCE, "unsupported.txt")]
        # The directory behind the first is searched for what that one lacks.
        return subprocess.run([sys.executable, os.path.join(SOURCE, "gen.py"), command, "--include", include or self.path("include"), *lists, *options,
                               *glob.glob(os.path.join(SOURCE, "*.c"))], capture_output=True, text=True, env={**os.environ, "CPATH": INCLUDE}, check=False)

    def test_summary(self):
        done = self.gen("summary")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, r"^\d+ functions, \d+ implemented; not known yet: cudaFutureThing\n$")
        known = self.gen("summary", "--strict", include=INCLUDE)
        self.assertEqual(known.returncode, 0, known.stderr)
        numbers = [list(map(int, re.findall(r"\d+", text.split(";")[0]))) for text in (done.stdout, known.stdout)]
        self.assertEqual(numbers[0], [numbers[1][0] + 1, numbers[1][1]])

    def test_strict(self):
        done = self.gen("summary", "--strict")
        self.assertNotEqual(done.returncode, 0)
        self.assertRegex(done.stderr, r"strict-api: .*\bcudaFutureThing\n$")
        self.assertNotIn("Traceback", done.stderr)

    def test_refused(self):
        outputs = [self.path(name) for name in ("map", "variants.c", "refused.c", "traced.h", "traced.c")]
        done = self.gen("cudart", "--map", outputs[0], "--source", outputs[1], "--refused", outputs[2],
                        "--traced-names", outputs[3], "--traced", outputs[4])
        self.assertEqual(done.returncode, 0, done.stderr)
        texts = []
        for path in outputs:
            with open(path, encoding="utf-8") as f:
                texts.append(f.read())
        self.assertIn("\tcudaFutureThing;\n", texts[0])
        self.assertIn('return ckt_rt_unsupported("cudaFutureThing", &once);', texts[2])
        self.assertNotIn("cudaMalloc(", texts[2])


if __name__ == "__main__":
    unittest.main(verbosity=2)
