#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The lists of what may fail in the suites of others: by name, a time-out only where slow is the reason, and never what passes."""
import contextlib
import importlib.machinery
import importlib.util
import io
import json
import os
import sys
import tempfile
import types
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
GPU = os.path.join(HERE, "..", "gpu")
sys.dont_write_bytecode = True
sys.path[:0] = [HERE, GPU]
import numba_suite  # noqa: E402
import sides  # noqa: E402
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


class Names(unittest.TestCase):
    """The lists of opdb and of the other comparisons by name."""

    def test_by_name(self):
        listed = {"mm": "why", "grid": "why"}
        self.assertEqual(sides.unexpected({"add"}, {"mm": "differs", "grid": "differs"}, listed), [])
        wrong = sides.unexpected({"mm"}, {"add": "differs", "sub": "fails"}, listed)
        self.assertEqual([line.split(":")[0] for line in wrong], ["add", "sub", "mm"])

    def test_a_name_needs_a_reason(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "list")
            for text, good in (("# comment\n\na | why\n", True), ("a\n", False), ("a |\n", False)):
                with open(path, "w", encoding="utf-8") as f:
                    f.write(text)
                if good:
                    self.assertEqual(sides.expectations(path), {"a": "why"})
                else:
                    self.assertRaises(SystemExit, sides.expectations, path)

    def test_lists_can_be_read(self):
        for name in os.listdir(GPU):
            if name.endswith("_expected.txt") and name not in ("samples_expected.txt", "numba_expected.txt", "librarysamples_expected.txt"):
                sides.expectations(os.path.join(GPU, name))


class Operators(unittest.TestCase):
    opdb = program("opdb")

    def run_of(self, native, remote):
        """What report() needs: lines by number of operators op0, op1, ..."""
        arg = types.SimpleNamespace(mode="tcp", limit=1.0)
        run = self.opdb.Run(arg, types.SimpleNamespace(seconds=lambda: 1.0), "")
        run.ops = [f"op{n}" for n in range(len(native))]
        run.native = {n: {"status": how, "text": ""} for n, how in enumerate(native)}
        run.remote = {n: {"status": how, "text": ""} for n, how in enumerate(remote) if how}
        return run

    def status(self, native, remote, listed):
        run = self.run_of(native, remote)
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
            return self.opdb.report(run, self.opdb.outcomes(run), listed, os.path.join(folder, "out"))

    def test_one_of_many_counts(self):
        """One difference in a thousand is one too many, unless it is listed; more than one in a hundred always are."""
        many = ["ok"] * 1000
        self.assertEqual(self.status(many, ["same"] * 1000, {}), 0)
        self.assertEqual(self.status(many, ["same"] * 999 + ["differs"], {}), 1)
        self.assertEqual(self.status(many, ["within"] * 999 + ["differs"], {"op999": "why"}), 0)
        self.assertEqual(self.status(many, ["same"] * 999 + ["same"], {"op999": "why"}), 1)
        self.assertEqual(self.status(many, ["same"] * 980 + ["error"] * 20, {f"op{n}": "why" for n in range(980, 1000)}), 1)

    def test_what_was_not_reached_does_not_agree(self):
        self.assertEqual(self.status(["ok", "ok"], ["same", None], {}), 1)
        self.assertEqual(self.status([], [], {}), 1)
        self.assertEqual(self.status(["ok", "error"], ["same", None], {}), 0)

    def test_worst_of_one_name(self):
        run = self.run_of(["ok", "ok"], ["differs", "same"])
        run.ops = ["op", "op"]
        self.assertEqual(self.opdb.outcomes(run)["op"][0], "differs")

    def test_values(self):
        try:
            import torch
        except ImportError:
            self.skipTest("no PyTorch here")
        one = torch.ones(4)
        near, far = one + 1e-3, one + 1e-2
        compare = self.opdb.compare_operator
        self.assertEqual(compare([[[one]], [[one]]], [[one.clone()]])[0], "same")
        self.assertEqual(compare([[[one]], [[one]]], [[near]])[0], "differs")
        self.assertEqual(compare([[[one]], [[near]]], [[one - 1e-3]])[0], "within")
        self.assertEqual(compare([[[one]], [[near]]], [[far]])[0], "differs")
        self.assertEqual(compare([[[one]], [[one]]], [[one.double()]])[0], "differs")
        self.assertEqual(compare([["refused: a"], ["refused: a"]], [["refused: b"]])[0], "differs")
        self.assertEqual(compare([[[one], [one]]], [[one]])[0], "differs")
        self.assertEqual(compare([[[one * float("nan")]]], [[one * float("nan")]])[0], "same")


class Cupy(unittest.TestCase):
    cupy = program("cupy")

    def test_report(self):
        passed, failed = ("passed", ""), ("failed", "E   why")
        for native, remote, listed, status in (({"a": passed, "b": failed}, {"a": passed}, {}, 0), ({"a": passed}, {"a": failed}, {}, 1), ({"a": passed}, {}, {}, 1),
                                               ({"a": passed, "b": passed}, {"a": passed, "b": failed}, {"b": "why"}, 0), ({"a": passed}, {"a": passed}, {"a": "why"}, 1),
                                               ({"a": passed, "b": passed}, {"a": passed, "b": ("skipped", "")}, {}, 1), ({}, {}, {}, 1)):
            with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
                self.assertEqual(self.cupy.report(types.SimpleNamespace(out=folder, mode="tcp"), native, remote, listed, 1.0), status, (native, remote, listed))

    def test_outcomes(self):
        """A test fails where any of its stages does; one whose process died is told by a report of its own."""
        sys.path.insert(0, os.path.join(GPU, "workloads"))
        import cupy_report
        with tempfile.TemporaryDirectory() as folder:
            os.environ["CUPY_REPORT"] = path = os.path.join(folder, "report")
            for test, when, outcome in (("a", "setup", "passed"), ("a", "call", "passed"), ("a", "teardown", "passed"), ("b", "call", "passed"), ("b", "teardown", "failed"),
                                        ("c", "setup", "skipped"), ("c", "teardown", "passed"), ("d", "setup", "failed"), ("d", "teardown", "passed"), ("e", "???", "failed")):
                cupy_report.pytest_runtest_logreport(types.SimpleNamespace(nodeid=test, when=when, outcome=outcome, longrepr=""))
            with open(path, encoding="utf-8") as lines:
                self.assertEqual({line["test"]: line["what"] for line in map(json.loads, lines)}, {"a": "passed", "b": "failed", "c": "skipped", "d": "failed", "e": "failed"})


class LibrarySamples(unittest.TestCase):
    samples = program("librarysamples")

    def test_judge(self):
        listed = {"known": "fails"}
        for name, verdict, good in (("other", "ok", True), ("other", "native", True), ("other", "fails", False), ("other", "numbers", False), ("other", "late", False),
                                    ("known", "fails", True), ("known", "words", False), ("known", "ok", False)):
            self.assertEqual(not self.samples.judge(name, verdict, listed), good, (name, verdict))
        self.samples.samples_expected(self.samples.EXPECTED, ("fails", "words", "numbers"))

    def test_programs(self):
        """Each source with a main() is one, with the other sources of its folder."""
        with tempfile.TemporaryDirectory() as top:
            for name, text in (("cuBLAS/a/a.cu", "int main(void)"), ("cuBLAS/a/help.cpp", "void help()"), ("cuFFT/b/one.cpp", "int main ()"), ("cuFFT/b/two.cpp", "int main()"),
                               ("cuFFT/b/note.txt", "main()"), ("NPP/c/c.cu", "int main()")):
                os.makedirs(os.path.dirname(os.path.join(top, name)), exist_ok=True)
                with open(os.path.join(top, name), "w", encoding="utf-8") as f:
                    f.write(text)
            found = {name: [os.path.basename(s) for s in sources] for name, sources in self.samples.find_programs(top).items()}
            self.assertEqual(found, {"cuBLAS.a.a": ["a.cu", "help.cpp"], "cuFFT.b.one": ["one.cpp"], "cuFFT.b.two": ["two.cpp"]})


class Jax(unittest.TestCase):
    jax = program("jax")

    def status(self, native, remote, listed):
        """report()'s, with lines {case: status} of both sides."""
        run = self.jax.Jax(types.SimpleNamespace(only="", out="", mode="tcp"), types.SimpleNamespace(seconds=lambda: 1.0), "")
        for side, lines in (("native", native), ("remote", remote)):
            run.lines[side] = {case: {"case": case, "status": how, "text": ""} for case, how in lines.items()}
        found = {case: ("same" if remote.get(case) == "ok" else "error", "") for case, how in native.items() if how == "ok"}
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
            run.arg.out = folder
            return self.jax.report(run, found, listed)

    def test_report(self):
        self.assertEqual(self.status({"a.x": "ok", "a.y": "error"}, {"a.x": "ok", "a.y": "error"}, {}), 0)
        self.assertEqual(self.status({"a.x": "ok"}, {"a.x": "error"}, {}), 1)
        self.assertEqual(self.status({"a.x": "ok", "a.y": "ok"}, {"a.x": "ok", "a.y": "error"}, {"a.y": "why"}), 0)
        self.assertEqual(self.status({"a.x": "ok"}, {"a.x": "ok"}, {"a.x": "why"}), 1)
        # The process died before its first case.
        self.assertEqual(self.status({"a.x": "ok"}, {"a.x": "ok", "b.start": "error"}, {}), 1)
        self.assertEqual(self.status({}, {}, {}), 1)

    def test_values(self):
        try:
            import numpy
        except ImportError:
            self.skipTest("no NumPy here")
        sys.path.insert(0, os.path.join(GPU, "workloads"))
        import jax_cases
        one, near, far = numpy.ones(4), numpy.ones(4) + 1e-3, numpy.ones(4) + 1e-2
        for natives, remote, how in (((one, one), one, "same"), ((one, one), near, "differs"), ((one, near), one - 1e-3, "within"), ((one, near), far, "differs"),
                                     ((one, one), one[:3], "differs"), ((one, one), one.astype(numpy.float32), "differs")):
            self.assertEqual(jax_cases.judge(*([n] for n in natives), [remote])[0], how)


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
