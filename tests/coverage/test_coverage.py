#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""coverage.py: counters of several objects are added up, files of no room are left out, and the table names what is below its goal."""

import os
import subprocess
import sys
import tempfile
import unittest

import coverage

ROOMS = {"base": [], "server/daemon": [], "server/daemon/policy": []}


def document(name, counts):
    return {"current_working_directory": "/top/build/main",
            "files": [{"file": name, "lines": [{"line_number": number, "count": count} for number, count in counts.items()]}]}


class Merge(unittest.TestCase):
    def test_a_line_counts_in_every_object(self):
        files = coverage.merge([document("../../base/log.h", {1: 0, 2: 3}), document("../../base/log.h", {1: 2, 7: 0})], "/top", ROOMS)
        self.assertEqual(files, {"base/log.h": {1: 2, 2: 3, 7: 0}})

    def test_only_the_product(self):
        some = [document(name, {1: 1}) for name in ("/usr/include/stdlib.h", "../../tests/unit/suite.c", "rpc/cuda_codec.c")]
        self.assertEqual(coverage.merge(some, "/top", ROOMS), {})


class Table(unittest.TestCase):
    def test_rooms_and_goals(self):
        good, bad = dict.fromkeys(range(17), 1) | dict.fromkeys(range(17, 20), 0), dict.fromkeys(range(84), 1) | dict.fromkeys(range(84, 100), 0)
        files = {"base/log.c": good, "server/daemon/main.c": bad, "server/daemon/policy/ask.c": {1: 1}}
        lines, reached = coverage.table(files, ROOMS, ["base/log.c", "server/daemon/policy/ask.c"])
        self.assertIn("| `base` | 20 | 85.0% |  |", lines)
        self.assertIn("| `server/daemon` | 100 | 84.0% | below 85% |", lines)
        self.assertIn("| `server/daemon/policy` | 1 | 100.0% |  |", lines)
        self.assertIn("| all | 121 | 84.3% | below 85% |", lines)
        self.assertIn("| `base/log.c` | 20 | 85.0% | below 95% |", lines)
        self.assertFalse(reached)
        self.assertTrue(coverage.table({"base/log.c": good}, ROOMS, [])[1])

    def test_decoders_exist(self):
        decoders = coverage.read_decoders()
        self.assertGreater(len(decoders), 10)
        for path in decoders:
            self.assertTrue(os.path.isfile(os.path.join(coverage.TOP, path)), path)


class Gcov(unittest.TestCase):
    """The real compiler: counters that a process leaves by _exit() in files that were prepared."""

    def test_exit(self):
        with tempfile.TemporaryDirectory() as top:
            source, program, build, data = (os.path.join(top, name) for name in ("a.c", "build/a", "build", "data"))
            os.mkdir(build)
            with open(source, "w", encoding="utf-8") as f:
                f.write("#include <unistd.h>\nint main(int count, char **words)\n{\n\tif (count > 1)\n\t\t_exit(3);\n\t_exit(4);\n}\n")
            header = os.path.join(coverage.HERE, "exit.h")
            command = ["gcc", "--coverage", "-include", header, "-o", "a", source]
            if subprocess.run(command, cwd=build, check=False).returncode:
                self.skipTest("no gcc with --coverage")
            coverage.prepare(build, data)
            for _ in range(2):
                self.assertEqual(subprocess.run([program], env={**os.environ, "GCOV_PREFIX": data}, check=False).returncode, 4)
            note = next(coverage.notes(build))
            files = coverage.gcov(note, data)[0]["files"]
            counts = {line["line_number"]: line["count"] for file in files if file["file"] == source for line in file["lines"]}
            self.assertEqual((counts[4], counts[5], counts[6]), (2, 0, 2))

    def test_libraries_do_not_share_it(self):
        with tempfile.TemporaryDirectory() as top:
            command = ["gcc", "--coverage", "-shared", "-fPIC", "-include", os.path.join(coverage.HERE, "exit.h")]
            for name, more in (("b", []), ("a", ["libb.so"])):
                with open(os.path.join(top, name + ".c"), "w", encoding="utf-8") as f:
                    f.write(f"#include <unistd.h>\nvoid {name}(void);\nvoid {name}(void)\n{{\n\t_exit(3);\n}}\n")
                if subprocess.run([*command, "-o", f"lib{name}.so", name + ".c", *more], cwd=top, check=False).returncode:
                    self.skipTest("no gcc with --coverage")
                symbols = subprocess.run(["nm", "-D", f"lib{name}.so"], cwd=top, check=True, capture_output=True, text=True).stdout
                self.assertNotIn("__gcov_dump", symbols)


if __name__ == "__main__":
    sys.exit(unittest.main())
