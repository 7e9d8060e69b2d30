#!/usr/bin/env python3
"""The lists of what may fail in the suites of others: by name, a time-out only where slow is the reason, and never what passes."""
import importlib.machinery
import importlib.util
import os
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
GPU = os.path.join(HERE, "..", "gpu")
sys.dont_write_bytecode = True
sys.path.insert(0, HERE)
import numba_suite  # noqa: E402
import torch_ops  # noqa: E402


def program(name):
    loader = importlib.machinery.SourceFileLoader("gpu_" + name, os.path.join(GPU, name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


class Numba(unittest.TestCase):
    listed = {"a.slow": "slow", "a.broken": "why", "b.*": "why"}

    def test_slow_excuses_a_time_out_only(self):
        self.assertEqual(numba_suite.reason_for(self.listed, "a.slow", "took longer than 120 s (None)"), "slow")
        self.assertEqual(numba_suite.reason_for(self.listed, "a.slow", "its module took longer than 900 s (None)"), "slow")
        for detail in ("ended without a word (-11)", "Traceback:\nAssertionError: took longer", ""):
            self.assertIsNone(numba_suite.reason_for(self.listed, "a.slow", detail))

    def test_other_reasons(self):
        self.assertEqual(numba_suite.reason_for(self.listed, "a.broken", "AssertionError"), "why")
        self.assertEqual(numba_suite.reason_for(self.listed, "b.any", "AssertionError"), "why")
        self.assertIsNone(numba_suite.reason_for(self.listed, "a.other", "AssertionError"))

    def test_what_passes_may_not_be_listed(self):
        passed, failed, skipped = ("pass", ""), ("fail", "AssertionError"), ("skip", "no reason")
        self.assertEqual(numba_suite.idle_lines(self.listed, {"a.slow": passed, "a.broken": failed, "b.one": failed, "b.two": passed}), [])
        self.assertEqual(numba_suite.idle_lines(self.listed, {"a.broken": passed, "b.one": passed}), ["a.broken", "b.*"])
        self.assertEqual(numba_suite.idle_lines(self.listed, {"a.broken": skipped}), [])

    def test_lists_can_be_read(self):
        for path in (os.path.join(HERE, "numba_expected.txt"), os.path.join(GPU, "numba_expected.txt")):
            for reason in numba_suite.expectations(path).values():
                self.assertTrue(reason)


class Torch(unittest.TestCase):
    def test_what_passes_may_not_be_listed(self):
        results = {("sort", "int32"): ("pass", ""), ("sort", "bool"): ("fail", "why"), ("histc", "float16"): ("pass", ""), ("abs", "bool"): ("machine", "")}
        self.assertEqual(torch_ops.idle_lines(["sort *", "histc float16", "abs bool", "never"], results), ["histc float16"])
        self.assertTrue(torch_ops.expectations())


class Operators(unittest.TestCase):
    opdb = program("opdb")

    def test_by_name(self):
        listed = {"mm": "library", "grid": "varies"}
        self.assertEqual(self.opdb.unexpected({"mm": "library", "grid": "varies", "add": "same"}, listed), [])
        self.assertEqual(self.opdb.unexpected({"grid": "same"}, listed), [])
        wrong = self.opdb.unexpected({"mm": "same", "add": "differs", "grid": "differs", "sub": "library"}, listed)
        self.assertEqual([line.split(":")[0] for line in wrong], ["add", "grid", "mm", "sub"])

    def test_one_of_many_counts(self):
        """One difference in a hundred is one too many."""
        same = {f"op{i}": "same" for i in range(1000)}
        self.assertEqual(len(self.opdb.unexpected({**same, "op7": "differs"}, {})), 1)

    def test_compare(self):
        with tempfile.TemporaryDirectory() as folder:
            paths = {}
            for side, hashes in (("native", ["1", "2"]), ("remote", ["1", "3"])):
                paths[side] = os.path.join(folder, side)
                with open(paths[side], "w", encoding="utf-8") as f:
                    for number, digest in enumerate(hashes):
                        f.write('{"number": %d, "op": "op%d", "status": "ok", "hashes": ["%s"], "sizes": [1.0]}\n' % (number, number, digest))
            expected = os.path.join(folder, "expected")
            for text, status in (("", 1), ("op1 | library | why\n", 1), ("op0 | library | why\n", 1)):
                with open(expected, "w", encoding="utf-8") as f:
                    f.write(text)
                arg = type("Arguments", (), {"native": paths["native"], "remote": paths["remote"], "again": None, "list": None, "expected": expected})
                self.assertEqual(self.opdb.compare(arg), status)
            arg.remote = arg.native
            open(expected, "w", encoding="utf-8").close()
            self.assertEqual(self.opdb.compare(arg), 0)

    def test_list_can_be_read(self):
        self.assertEqual(len(self.opdb.expectations(os.path.join(GPU, "opdb_expected.txt"))), 100)


class Samples(unittest.TestCase):
    gpu = program("run")

    def test_numbers(self):
        native = "sum 4096 in 1.25 ms, error = 1.5e-07\n"
        same = self.gpu.text_difference
        self.assertEqual(same(native, "sum 4096 in 3.00 ms, error = 1.5e-07\n", "sum 4096 in 9.10 ms, error = 1.5e-07\n"), "")
        self.assertEqual(same(native, native, "sum 4095 in 1.25 ms, error = 1.5e-07\n"), "numbers, such as 4095 instead of 4096")
        self.assertIn("numbers", same(native, native, native.replace("1.5e-07", "2.5e-07")))
        # Times and rates that happen to be the same twice.
        for text in ("took 1.00 ms", "took 1.00 (ms)", "1.00 GB/s", "1.00 GFlop/s", "1.00 seconds", "1.00 MHz"):
            self.assertEqual(same(text, text, text.replace("1.00", "2.00")), "", text)
        self.assertEqual(same("sum 1 ok", "sum 1 ok", "sum 1 failed"), "words")
        # What varies natively says nothing.
        self.assertEqual(same("at 17", "at 18", "at 19"), "")
        self.assertEqual(same("a", "a b", "c"), "")

    def test_by_name(self):
        listed = {"known": "words"}
        for name, difference, code in (("other", "", 0), ("other", "words", 1), ("known", "words", 0), ("known", "", 1), ("known", "numbers, such as 1", 1)):
            self.assertEqual(self.gpu.text_verdict(name, difference, listed)[0], code)
        self.assertIn("deviceQuery", self.gpu.samples_expected())


if __name__ == "__main__":
    unittest.main()
