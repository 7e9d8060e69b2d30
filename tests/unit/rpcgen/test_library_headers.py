#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""rpc/gen/library_headers.py: what a toolkit lacks, what is taken out of a wheel, and the toolkit that is made of both.  Nothing is fetched."""
import io
import os
import sys
import tempfile
import unittest
import zipfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.environ["CKT_GENERATOR"])
import library_headers  # noqa: E402


def write(path, text=""):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


class Headers(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.toolkit, self.out = os.path.join(self.folder.name, "cuda"), os.path.join(self.folder.name, "toolkit")
        write(os.path.join(self.toolkit, "include", "cuda.h"), "cuda")
        write(os.path.join(self.toolkit, "bin", "nvcc"), "nvcc")
        write(os.path.join(self.toolkit, "lib", "libcudart.so.13"))

    def wheel(self, names):
        data = io.BytesIO()
        with zipfile.ZipFile(data, "w") as made:
            for name in names:
                made.writestr(name, name)
        return zipfile.ZipFile(data)

    def test_missing(self):
        everything = [wheel for wheel, _ in library_headers.WHEELS]
        self.assertEqual([wheel for wheel, _ in library_headers.missing(self.toolkit)], everything)
        for _, headers in library_headers.WHEELS[1:]:
            for header in headers:
                write(os.path.join(self.toolkit, "include", header))
        self.assertEqual([wheel for wheel, _ in library_headers.missing(self.toolkit)], everything[:1])
        for header in library_headers.WHEELS[0][1][:-1]:
            write(os.path.join(self.toolkit, "include", header))
        self.assertEqual(len(library_headers.missing(self.toolkit)), 1)
        write(os.path.join(self.toolkit, "include", library_headers.WHEELS[0][1][-1]))
        self.assertEqual(library_headers.missing(self.toolkit), [])

    def test_only_headers_are_unpacked(self):
        out = os.path.join(self.folder.name, "headers")
        library_headers.unpack(self.wheel(["nvidia/cu13/include/a.h", "nvidia/nccl/include/deep/b.h", "nvidia/cu13/lib/libx.so", "nvidia/cu13/include/",
                                           "nvidia/cu13/include/../../evil.h", "other/include/c.h"]), out)
        self.assertEqual(sorted(os.path.relpath(os.path.join(path, f), out) for path, _, files in os.walk(out) for f in files), ["a.h", "deep/b.h"])
        self.assertEqual(read(os.path.join(out, "a.h")), "nvidia/cu13/include/a.h")

    def test_overlay(self):
        headers = os.path.join(self.folder.name, "headers")
        write(os.path.join(headers, "nccl.h"), "nccl")
        write(os.path.join(self.toolkit, "targets", "x86_64-linux", "include", "cuda.h"))
        write(os.path.join(self.toolkit, "targets", "x86_64-linux", "lib", "libx.so"), "x")
        for _ in range(2):  # the second in place of the first
            library_headers.overlay(self.toolkit, headers, self.out)
            for name, text in (("include/cuda.h", "cuda"), ("include/nccl.h", "nccl"), ("bin/nvcc", "nvcc"), ("lib64/libcudart.so.13", ""),
                               ("targets/x86_64-linux/include/nccl.h", "nccl"), ("targets/x86_64-linux/lib/libx.so", "x")):
                self.assertEqual(read(os.path.join(self.out, name)), text)
        self.assertFalse(os.path.exists(self.out + ".new"))

    def test_another_way(self):
        """Where parts cannot be read the whole wheels are fetched; where that fails too, nothing is made."""
        wanted, out = library_headers.missing(self.toolkit), os.path.join(self.folder.name, "headers")
        tried = []

        def fails(wheels, folder):
            tried.append("parts")
            raise OSError("no range")

        def works(wheels, folder):
            tried.append("whole")
            for _, headers in wanted:
                for header in headers:
                    write(os.path.join(folder, header))
        parts, whole, said = library_headers.fetch_parts, library_headers.fetch_whole, sys.stderr
        try:
            sys.stderr = io.StringIO()
            library_headers.fetch_parts, library_headers.fetch_whole = fails, works
            for function in (fails, works):
                function.__name__ = "fetch"
            self.assertTrue(library_headers.fetch(wanted, out))
            self.assertEqual(tried, ["parts", "whole"])
            library_headers.fetch_whole = fails
            self.assertFalse(library_headers.fetch(wanted, os.path.join(self.folder.name, "nothing")))
        finally:
            library_headers.fetch_parts, library_headers.fetch_whole, sys.stderr = parts, whole, said


if __name__ == "__main__":
    unittest.main()
