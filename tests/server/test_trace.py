#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""CRICKET_TRACE and CRICKET_STATS of whole programs: every call by name and in order, with kernel, bytes, stream and whether it waited; the
counts agree with what the worker counted (cricketctl stats); a killed program's file can be read; several processes of one file."""
import json
import os
import re
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from whole import PROGRAM, Whole, runner  # noqa: E402

STATIC = os.environ["CKT_TEST_STATIC"]
# saxpy.cu until its mid point, and to its end.
BEFORE = ["cudaMalloc", "cudaMalloc", "cudaMemcpy", "cudaMemcpy", "cudaLaunchKernel", "cudaGetLastError"]
AFTER = ["cudaLaunchKernel", "cudaGetLastError", "cudaMemcpy", "cudaFree", "cudaFree"]


def events(path):
    """The file's events; a file without its end is read as viewers read it."""
    with open(path, encoding="utf-8") as f:
        text = f.read()
    if not text.endswith("]\n"):
        text = text.rstrip().rstrip(",") + "]"
    return json.loads(text)


def calls(path):
    return [e for e in events(path) if e["ph"] == "X"]


class Trace(Whole):
    def path(self, name):
        return os.path.join(self.dir, name)

    def counted(self, server, session):
        """What the worker counted of this session's commands."""
        stats = json.loads(self.ctl(server, "stats", session, "--json"))["calls"]
        return sum(s["calls"] for s in stats if not s["name"].startswith("SESSION_"))

    def test_every_call(self):
        server, file = self.server("s"), self.path("t.json")
        program, session = self.start(server, CRICKET_TRACE=file, CRICKET_STATS="1")
        self.wait(lambda: [c["name"] for c in calls(file)] == BEFORE)
        # Both sides count the same commands.
        self.assertEqual(sum(c["args"]["commands"] for c in calls(file)), self.counted(server, session))
        _, err = self.finish(program)
        with open(file, encoding="utf-8") as f:
            whole = json.load(f)
        seen = [e for e in whole if e["ph"] == "X"]
        self.assertEqual([e["name"] for e in seen], BEFORE + AFTER)
        self.assertEqual({e["cat"] for e in seen}, {"runtime"})
        self.assertEqual([e["ts"] for e in seen], sorted(e["ts"] for e in seen))
        self.assertEqual(len({(e["pid"], e["tid"]) for e in seen}), 1)
        first, second = (e["args"] for e in seen if e["name"] == "cudaLaunchKernel")
        self.assertIn("saxpy", first["kernel"])
        self.assertEqual((first["grid"], first["block"], first["stream"]), ([1172, 1, 1], [256, 1, 1], "0x0"))
        self.assertEqual((second["grid"], second["block"]), ([2344, 1, 1], [128, 1, 1]))
        # The first one loads the module.
        self.assertEqual((first["waited"], second["waited"]), (True, False))
        self.assertEqual({e["args"]["bytes"] for e in seen if e["name"] in ("cudaMalloc", "cudaMemcpy")}, {1200028})
        self.assertEqual([e["args"]["waited"] for e in seen if e["name"] == "cudaGetLastError"], [False, False])
        self.assertTrue(seen[BEFORE.index("cudaMalloc")]["args"]["waited"])
        self.assertEqual(whole[-1]["args"]["dropped_records"], 0)
        # The summary counts what the file holds.
        count, commands, waits = map(int, re.search(r"cricket: (\d+) calls, (\d+) commands sent, (\d+) waits", err).groups())
        self.assertEqual((count, commands), (len(seen), sum(e["args"]["commands"] for e in seen)))
        self.assertGreaterEqual(waits, sum(e["args"]["waited"] for e in seen))
        self.assertRegex(err, r"\n +3 +\S+ +\S+ +\S+  cudaMemcpy\n")

    def test_static_runtime(self):
        server, file = self.server("s"), self.path("t.json")
        program, _ = self.start(server, program=STATIC, CRICKET_TRACE=file)
        self.finish(program)
        self.assertEqual([e["name"] for e in calls(file)], BEFORE + AFTER)

    def test_killed(self):
        server, file = self.server("s"), self.path("t.json")
        program, _ = self.start(server, CRICKET_TRACE=file)
        self.wait(lambda: len(calls(file)) == len(BEFORE))
        program.process.kill()
        program.wait(60)
        self.assertEqual([e["name"] for e in calls(file)], BEFORE)

    def test_two_processes(self):
        """The second writes beside the first; a third, when the first is gone, takes its place."""
        server, file = self.server("s"), self.path("t.json")
        first, _ = self.start(server, CRICKET_TRACE=file)
        environment = {**runner.clean_environment(), "HOME": self.home, "CRICKET_TRACE": file}
        command = [self.tree.tool("cricket-run"), "--server", server.address, PROGRAM]
        second = subprocess.run(command, env=environment, capture_output=True, check=True, timeout=60)
        self.assertIn(b"another process writes", second.stderr)
        (beside,) = [name for name in os.listdir(self.dir) if name.startswith("t.json.")]
        self.assertEqual([e["name"] for e in calls(self.path(beside))], BEFORE + AFTER)
        self.finish(first)
        self.assertEqual([e["name"] for e in calls(file)], BEFORE + AFTER)
        third = subprocess.run(command, env={**environment, "CRICKET_TRACE": self.path("%p.json")}, capture_output=True, check=True, timeout=60)
        self.assertEqual(third.stderr, b"")
        self.assertEqual(len([name for name in os.listdir(self.dir) if re.fullmatch(r"\d+\.json", name)]), 1)

    def test_off(self):
        """Nothing when off: no thread more than ever, no file, no text."""
        server = self.server("s")
        plain, _ = self.start(server, "a")
        traced, _ = self.start(self.server("t"), "b", CRICKET_TRACE=self.path("t.json"))
        threads = [len(os.listdir("/proc/%d/task" % p.process.pid)) for p in (plain, traced)]
        self.assertEqual(threads[0] + 1, threads[1])
        self.go()
        self.finish(traced)
        plain.process.kill()
        self.assertEqual(os.listdir(os.path.join(self.dir, "a")).count("t.json"), 0)

    def test_unwritable(self):
        server = self.server("s")
        program, _ = self.start(server, CRICKET_TRACE=self.path("no/t.json"))
        _, err = self.finish(program)
        self.assertRegex(err, r"^cricket: CRICKET_TRACE: cannot write \S+: No such file or directory; .*\n$")


if __name__ == "__main__":
    unittest.main(verbosity=2)
