#!/usr/bin/env python3
"""rpc/gen/nvml.py: mistakes in the table are named with their line; its functions are what libnvidia-ml.so.1 exports; docs/nvml.md is its.

usage: test_nvml.py GENERATOR TABLE LIBRARY SOURCE
"""
import os
import re
import subprocess
import sys
import tempfile
import unittest

GENERATOR, TABLE, LIBRARY, SOURCE = sys.argv[1:5]


def generate(kind, text=None):
    """(status, what was said, what was made)"""
    with tempfile.TemporaryDirectory() as directory:
        table, out = TABLE, os.path.join(directory, "out")
        if text is not None:
            table = os.path.join(directory, "table")
            with open(table, "w", encoding="utf-8") as f:
                f.write(text)
        done = subprocess.run([sys.executable, GENERATOR, kind, table, out], capture_output=True, text=True, check=False)
        made = ""
        if os.path.exists(out):
            with open(out, encoding="utf-8") as f:
                made = f.read()
        return done.returncode, done.stderr, made


class Table(unittest.TestCase):
    def test_mistakes(self):
        for line, says in (("1 nvmlX", "nothing comes back"), ("- nvmlX u32", "it wants a number"), ("1 cuX u32", "expected NUMBER NAME HOW"),
                           ("0 nvmlX u32", "expected NUMBER NAME HOW"), ("1 nvmlX what", "what is 'what'?"), ("1", "index out of range"),
                           ("1 nvmlA u32\n1 nvmlB u32", "the number is taken"), ("1 nvmlA u32\n2 nvmlA u32", "each name once"),
                           ("1 nvmlX block 300", "too much"), ("1 nvmlX select select select select u32", "too much"),
                           ("1 nvmlX system u32", "only texts"), ("1 nvmlX text u32", "nothing comes back")):
            status, said, made = generate("table", "# a comment\n" + line + "\n")
            self.assertEqual((status, made), (1, ""), line)
            self.assertIn(says, said, line)
            self.assertRegex(said, r"table:%d: " % (1 + len(line.split("\n"))))

    def test_shapes(self):
        text = "7 nvmlA select u32 u64\n9 nvmlB hand text\n- nvmlC hand\n- nvmlD\n12 nvmlE device versioned\n"
        made = generate("table", text)[2]
        self.assertIn('[7] = {"nvmlA", CKT_NVML_DATA, 0, 0, 1, 2, {4, 8}},', made)
        self.assertIn('[9] = {"nvmlB", CKT_NVML_TEXT, 0, 0, 0, 0, {0}},', made)
        self.assertIn('[12] = {"nvmlE", CKT_NVML_VERSIONED, 0, 1, 0, 0, {0}},', made)
        self.assertNotIn("nvmlC", made)
        made = generate("client", text)[2]
        self.assertEqual(set(re.findall(r"^int (nvml\w)\(.*\)$", made, re.M)), {"nvmlA", "nvmlD", "nvmlE"})
        self.assertEqual(set(re.findall(r"nvml\w", generate("map", text)[2])), {"nvmlA", "nvmlB", "nvmlC", "nvmlD", "nvmlE"})

    def test_changes_nothing(self):
        """What is passed on asks."""
        names = re.findall(r'= \{"(\w+)"', generate("table")[2])
        self.assertGreater(len(names), 90)
        for name in names:
            self.assertRegex(name, r"^nvml(Device|System)(Get|OnSame)")

    def test_exports(self):
        symbols = subprocess.run(["nm", "-D", "--defined-only", LIBRARY], capture_output=True, text=True, check=True).stdout.split("\n")
        exported = {line.split()[2] for line in symbols if line}
        listed = set(re.findall(r"\t(nvml\w+);", generate("map")[2]))
        self.assertEqual(exported, listed)
        with open(os.path.join(SOURCE, "tests", "truth", "exports", "libnvidia-ml.so.1.txt"), encoding="utf-8") as f:
            self.assertEqual(set(f.read().split()) - exported, set())

    def test_document(self):
        with open(os.path.join(SOURCE, "docs", "nvml.md"), encoding="utf-8") as f:
            self.assertEqual(f.read(), generate("doc")[2], "ninja nvml-doc writes it")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
