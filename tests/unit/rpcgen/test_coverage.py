#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""rpc/gen/coverage.py: what counts as implemented, what refuses as CUDA does, and what may not stand in the list of refusals."""
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "rpc" / "gen"))
import coverage  # noqa: E402
import library_coverage  # noqa: E402

RECORDED = """# program: a
a.good
  cuWorks: 0 CUDA_SUCCESS
  cuBoth: 1 CUDA_ERROR_INVALID_VALUE
  cuBoth: 0 CUDA_SUCCESS
  cuOf(NAME): 0 CUDA_SUCCESS; value=1
  cuOf(OTHER): 0 CUDA_SUCCESS; value=2
a.bad
  cuRefuses: 201 CUDA_ERROR_INVALID_CONTEXT
  cuFails: 1 CUDA_ERROR_INVALID_VALUE
a.otherwise
  cuOther: 0 CUDA_SUCCESS
"""


class Coverage(unittest.TestCase):
    def truth(self, refusals):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "api").mkdir()
            (folder / "api" / "a.txt").write_text(RECORDED)
            (folder / "api.list").write_text("a.otherwise\tcuOther=801\tall\twhy\na.good\tcuOf(OTHER)\ttcp\twhy\n")
            (folder / "misuse.list").write_text("")
            (folder / "misuse.txt").write_text("")
            (folder / "refusals.list").write_text("".join(f"{name}\tits reason\n" for name in refusals))
            return coverage.Truth(str(folder))

    def section(self, refusals):
        written = ["cuWorks", "cuBoth", "cuOf", "cuRefuses", "cuFails", "cuOther"]
        lines, reached = coverage.section("Title", written, {"cuNot": "its reason"}, "", self.truth(refusals))
        return "\n".join(lines), reached

    def test_success_counts(self):
        text, reached = self.section([])
        self.assertIn("7 exported functions, 7 of them counted: 3 implemented (42.9%), 0 refuse as CUDA does, 3 written but not proven, 1 not supported.",
                      " ".join(text.split()))
        self.assertEqual([round(percent, 1) for percent in reached], [42.9, 42.9])

    def test_refusal_is_counted_apart(self):
        text, reached = self.section(["cuRefuses"])
        self.assertIn("3 implemented (42.9%), 1 refuses as CUDA does, 2 written but not proven", " ".join(text.split()))
        self.assertIn("| its reason | `cuRefuses` |", text.split("### Refuses as CUDA does")[1].split("###")[0])
        self.assertNotIn("cuRefuses", text.split("### Refuses as CUDA does")[0].split("### Implemented")[1])
        self.assertEqual([round(percent, 1) for percent in reached], [42.9, 57.1])

    def test_idle_refusals(self):
        self.assertEqual(self.truth(["cuRefuses"]).idle(), [])
        self.assertEqual(len(self.truth(["cuRefuses", "cuBoth"]).idle()), 1)
        self.assertEqual(len(self.truth(["cuNever"]).idle()), 1)

    def source(self, **files):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        for path in ("client/conn", "client/cuda", "client/cudart", "cudacommon", "rpc/api", "server/worker/objects", "api"):
            (pathlib.Path(folder.name) / path).mkdir(parents=True)
        for path, text in files.items():
            (pathlib.Path(folder.name) / path).write_text(text)
        return folder.name

    def test_refused_parameters(self):
        source = self.source(**{
            "cudacommon/a.c": 'return ckt_cudacommon_unsupported("one thing", &once);\n\treturn many ? ckt_call_unsupported(f(x) > 1 ? "two" :\n\t"three", &once_more) : 0;',
            "rpc/api/refusals.txt": "# why\none thing\tcuA, cuB\ntwo\tcuB\nthree\tcuC\n"})
        lines, wrong = coverage.refusals_section(source)
        self.assertEqual(wrong, [])
        self.assertIn("| `cuB` | one thing; two |", lines)
        with open(f"{source}/rpc/api/refusals.txt", "w", encoding="utf-8") as f:
            f.write("one thing\tcuA\ntwo\tcuB\nfour\tcuC\n")
        self.assertEqual(len(coverage.refusals_section(source)[1]), 2)

    def test_attributes(self):
        source = self.source(**{
            "server/worker/objects/device.c": '{CU_DEVICE_ATTRIBUTE_SAME, 1, "why"},\n{CU_DEVICE_ATTRIBUTE_OTHER, -1, "because"},',
            "api/attributes.txt": "  cuDeviceGetAttribute(SAME): 0 CUDA_SUCCESS; value=1\n  cuDeviceGetAttribute(OTHER): 0 CUDA_SUCCESS; value=7\n",
            "api.list": "attributes.driver\tcuDeviceGetAttribute(OTHER)=-1\ttcp,gpu\twhy\nattributes.runtime\tcudaDeviceGetAttribute(OTHER)=-1\tgpu\twhy\n"})
        lines, wrong = coverage.attributes_section(source, source)
        self.assertEqual(wrong, [])
        self.assertIn("| `OTHER` | 7 | -1 | because |", lines)
        # One too many, one too few in each.
        with open(f"{source}/api.list", "w", encoding="utf-8") as f:
            f.write("attributes.driver\tcuDeviceGetAttribute(SAME)=1\ttcp,gpu\twhy\nattributes.runtime\tcudaDeviceGetAttribute(OTHER)=-1\ttcp\twhy\n")
        self.assertEqual(len(coverage.attributes_section(source, source)[1]), 3)
        with open(f"{source}/server/worker/objects/device.c", "a", encoding="utf-8") as f:
            f.write('{CU_DEVICE_ATTRIBUTE_NEVER, 1, "why"}')
        self.assertEqual(len(coverage.attributes_section(source, source)[1]), 4)

    def test_bounds(self):
        self.assertEqual(coverage.too_low("driver", (80, 85), (79.9, 85)), [])
        self.assertEqual(len(coverage.too_low("driver", (79, 84), (79.9, 85))), 2)


class Library(unittest.TestCase):
    def test_lines_are_short(self):
        data = {"functions": [{"name": f"cublasNumber{i}", "class": kind, "reason": reason} for i in range(40)
                              for kind, reason in (("batched", None), ("unsupported", "a reason " * 9), ("unsupported", "in no header"))]}
        text = library_coverage.document(data, "cuBLAS", "rpc/api/cublas.api", "CUBLAS_STATUS_NOT_SUPPORTED")
        self.assertEqual([line for line in text.splitlines() if len(line) > 100], [])
        self.assertEqual(text.count("`cublasNumber17`"), 3)
        self.assertIn("120 exported functions: 40 implemented, 80 not supported.", text)
        self.assertIn("In no header:\n\n`cublasNumber0`, `cublasNumber1`,", text)


if __name__ == "__main__":
    unittest.main()
