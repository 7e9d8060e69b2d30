#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What programs are told on stderr: nothing of what works in the end, and each refusal once a process, however often it is asked for."""
import os
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(HERE, os.pardir, "runner"))
import runner  # noqa: E402

CLIENT = os.environ["CKT_TEST_SAID_CLIENT"]
# Device code linked when the program was built, machine code alone, and its parts: as nvcc makes them, and without PTX.
PARTS, CODE = os.environ.get("CKT_TEST_RDC_PARTS"), os.environ.get("CKT_TEST_RDC_CODE")


class Said(unittest.TestCase):
    def setUp(self):
        self.tree = runner.Tree(runner.stage(os.environ["CKT_TEST_BUILD"]))
        self.ways = (["--soft"], ["--server", "local:" + os.path.join(self.tree.soft, "libcuda.so.1")])

    def run_program(self, way, *command, **env):
        """(exit status, stdout, lines of stderr)"""
        done = subprocess.run([self.tree.tool("cricket-run"), *way, *command], env={**runner.clean_environment(None), **env}, capture_output=True, text=True,
                              timeout=120, check=False)
        return done.returncode, done.stdout, done.stderr.splitlines()

    @unittest.skipUnless(PARTS, "no nvcc")
    def test_linked_from_parts(self):
        """-rdc=true -arch=sm_90 on another device: the linked image is for sm_90 alone, its parts have PTX.  That is no error, so nothing is said."""
        for way in self.ways:
            with self.subTest(way=way):
                status, out, said = self.run_program(way, PARTS)
                self.assertEqual((status, said), (0, []), out)

    @unittest.skipUnless(CODE, "no nvcc")
    def test_neither_image_nor_parts(self):
        for way in self.ways:
            with self.subTest(way=way):
                status, out, said = self.run_program(way, CODE)
                self.assertEqual((status, "cudaErrorNoKernelImageForDevice" in out, len(said)), (1, True, 1), (out, said))
                self.assertIn("machine code only", said[0])

    def test_asked_often(self):
        for way in self.ways:
            with self.subTest(way=way):
                status, out, said = self.run_program(way, CLIENT)
                self.assertEqual((status, out), (0, "asked\n"), said)
                for part in ("GreenCtxCreate", "pools of the host", "nonsense", "machine code only", "kernel strange cannot run"):
                    self.assertEqual(sum(part in line for line in said), 1, (part, said))
                self.assertEqual(len(said), 5, said)

    def test_tables(self):
        """Undocumented tables, for which NVIDIA's libraries ask by the dozen: a line for who looks for it, and none otherwise."""
        self.assertEqual(self.run_program(["--soft"], CLIENT, "TABLES"), (0, "asked\n", []))
        status, _, said = self.run_program(["--soft", "--verbose"], CLIENT, "TABLES")
        self.assertEqual((status, sum("undocumented tables" in line for line in said)), (0, 1))


if __name__ == "__main__":
    unittest.main(verbosity=2)
