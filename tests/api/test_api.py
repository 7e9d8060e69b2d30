#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How api.py compares: what api.list excuses, by mode, function and end of the line, and that a line which excuses nothing is an error."""
import contextlib
import io
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import api  # noqa: E402

REAL = """a.one
  cuFirst: 0 CUDA_SUCCESS; value=1
  cuOf(NAME): 0 CUDA_SUCCESS; value=7
  cuOf(OTHER): 0 CUDA_SUCCESS; value=8
a.two
  cuFirst: 0 CUDA_SUCCESS
"""


class Compare(unittest.TestCase):
    def judge(self, mode, listed, **changed):
        """What judge() counts where these words of the recording are others, and what it prints."""
        ours = REAL
        for old, new in changed.get("words", {}).items():
            self.assertIn(old, ours)
            ours = ours.replace(old, new)
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "api.list").write_text("# a remark\n" + "".join(line + "\n" for line in listed))
            api.TRUTH, before = pathlib.Path(folder), api.TRUTH
            text = io.StringIO()
            try:
                with contextlib.redirect_stdout(text):
                    return api.judge(mode, api.cases(REAL), api.cases(ours)), text.getvalue()
            finally:
                api.TRUTH = before

    def test_same(self):
        self.assertEqual(self.judge("tcp", [])[0], 0)

    def test_differs(self):
        count, text = self.judge("tcp", [], words={"value=1": "value=2"})
        self.assertEqual(count, 1)
        self.assertIn("+cuFirst: 0 CUDA_SUCCESS; value=2", text)

    def test_nothing_is_excused_by_itself(self):
        for mode in ("local", "tcp", "gpu"):
            self.assertEqual(self.judge(mode, [], words={"cuFirst: 0 CUDA_SUCCESS; value=1": "cuFirst: 801 CUDA_ERROR_NOT_SUPPORTED"})[0], 1)

    def test_listed(self):
        for mode in ("local", "tcp"):
            self.assertEqual(self.judge(mode, ["a.one\tcuFirst\tlocal,tcp\twhy"], words={"value=1": "value=2"})[0], 0)
        self.assertEqual(self.judge("gpu", ["a.one\tcuFirst\tlocal,tcp\twhy"], words={"value=1": "value=2"})[0], 1)
        self.assertEqual(self.judge("gpu", ["a.*\t*\tall\twhy"], words={"value=1": "value=2"})[0], 0)

    def test_listed_by_what_it_is_called_for(self):
        listed = ["a.one\tcuOf(NAME)\ttcp\twhy"]
        self.assertEqual(self.judge("tcp", listed, words={"value=7": "value=5"})[0], 0)
        self.assertEqual(self.judge("tcp", listed, words={"value=7": "value=5", "value=8": "value=5"})[0], 1)
        self.assertEqual(self.judge("tcp", ["a.one\tcuOf\ttcp\twhy"], words={"value=7": "value=5", "value=8": "value=5"})[0], 0)

    def test_listed_with_its_end(self):
        listed = ["a.one\tcuOf(NAME)=5\ttcp\twhy"]
        self.assertEqual(self.judge("tcp", listed, words={"value=7": "value=5"})[0], 0)
        # Neither another value nor one that merely ends so; and then the line excuses nothing.
        for value in ("6", "15", "7"):
            self.assertGreater(self.judge("tcp", listed, words={"value=7": "value=" + value})[0], 0)

    def test_listed_and_agrees(self):
        count, text = self.judge("tcp", ["a.one\tcuFirst\tall\twhy"])
        self.assertEqual(count, 1)
        self.assertIn("a.one cuFirst: stands in api.list for tcp, and agrees: remove it there", text)
        for mode in ("local", "gpu"):
            self.assertEqual(self.judge(mode, ["a.one\tcuFirst\tall\twhy"])[0], 1)
            self.assertEqual(self.judge(mode, ["a.?ne\t*\tall\twhy"])[0], 1)
        # Of another mode, of a case that did not run, or true at times.
        self.assertEqual(self.judge("local", ["a.one\tcuFirst\ttcp\twhy", "b.one\tcuFirst\tall\twhy", "a.one\tcuFirst\t?all\twhy"])[0], 0)

    def test_needs(self):
        needed = {"  cuFirst: 0 CUDA_SUCCESS; value=1\n": "  - needs two GPUs\n"}
        self.assertEqual(self.judge("gpu", [], words=needed)[0], 0)
        self.assertGreater(self.judge("tcp", [], words=needed)[0], 0)

    def test_every_line_has_a_reason(self):
        for row in api.rows():
            self.assertTrue(row.reason.strip(), row.case)
            self.assertTrue(set(row.modes) <= {"all", "local", "tcp", "gpu"}, row.modes)


if __name__ == "__main__":
    unittest.main()
