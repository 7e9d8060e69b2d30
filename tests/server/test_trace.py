#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""CRICKET_TRACE and CRICKET_STATS of whole programs: every call by name and in order, with kernel, bytes, stream and whether it waited; the
counts agree with what the worker counted (cricketctl stats); a killed program's file can be read; several processes of one file."""
import contextlib
import itertools
import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from whole import PROGRAM, Whole, runner  # noqa: E402

STATIC = os.environ["CKT_TEST_STATIC"]
# saxpy.cu until its mid point, and to its end.
BEFORE = ["cudaMalloc", "cudaMalloc", "cudaMemcpy", "cudaMemcpy", "cudaLaunchKernel", "cudaGetLastError"]
AFTER = ["cudaLaunchKernel", "cudaGetLastError", "cudaMemcpy", "cudaFree", "cudaFree"]


def events(path):
    """The file's events; a file without its end is read as viewers read it, but for a line that is still being written."""
    with open(path, encoding="utf-8") as f:
        text = f.read()
    if not text.endswith("]\n"):
        text = text[:text.rfind("\n") + 1]
        if not text:
            return []
        text = text.rstrip().rstrip(",") + "]"
    return json.loads(text)


def calls(path):
    return [e for e in events(path) if e["ph"] == "X"]


def stands(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
        return f.read().rsplit(")", 1)[1].split()[0] == "T"


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
        # Both sides count the same commands; the worker may not have come to the last one, for which nobody waits.
        sent = sum(c["args"]["commands"] for c in calls(file))
        self.wait(lambda: self.counted(server, session) >= sent)
        self.assertEqual(self.counted(server, session), sent)
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

    def test_gpu_time(self):
        """CRICKET_TRACE_GPU=1: kernels and copies on tracks of their streams, with durations; the calls are as without it."""
        server, file = self.server("s"), self.path("t.json")
        program, session = self.start(server, CRICKET_TRACE=file, CRICKET_TRACE_GPU="1", CRICKET_STATS="1")
        self.wait(lambda: [e for e in calls(file) if e["cat"] == "gpu" and "kernel" in e["args"]])
        # While it runs the session has its trace.
        code, _, err = self.may_fail(server, "trace", session, "-o", self.path("x"), "--seconds", "1")
        self.assertEqual(code, 1, err)
        self.assertIn("CRICKET_TRACE_GPU=1", err)
        # Null where the worker did not answer in time.
        self.wait(lambda: runner.sessions_of(self.tree, server)[0]["lanes"])
        _, err = self.finish(program)
        with open(file, encoding="utf-8") as f:
            whole = json.load(f)
        gpu = [e for e in whole if e.get("cat") == "gpu"]
        seen = [e for e in whole if e["ph"] == "X" and e["cat"] != "gpu"]
        self.assertEqual([e["name"] for e in seen], BEFORE + AFTER)
        # Copies to the GPU travel in pieces.  The first large copy opens lanes, which the one at the end finds, and the second one by chance.
        done = ["kernel" if "kernel" in e["args"] else e["name"] for e in gpu]
        self.assertEqual(done[0], "memcpy_htod")
        self.assertEqual([name for name, _ in itertools.groupby(name.replace("lane_htod", "memcpy_htod") for name in done)],
                         ["memcpy_htod", "kernel", "lane_dtoh"])
        for e in gpu:
            self.assertGreater(e["dur"], 0, e)
        self.assertEqual([e["ts"] for e in gpu], sorted(e["ts"] for e in gpu))
        # One stream, whose track has a name, of a process that is not the program's.
        ((pid, tid),) = {(e["pid"], e["tid"]) for e in gpu}
        self.assertNotEqual(pid, seen[0]["pid"])
        names = {(e["name"], e["pid"], e["tid"]): e["args"]["name"] for e in whole if e["ph"] == "M" and "name" in e["args"]}
        self.assertRegex(names["thread_name", pid, tid], r"^stream 0x[0-9a-f]+$")
        self.assertRegex(names["process_name", pid, 0], "^GPU of ")
        first, second = (e for e in gpu if "kernel" in e["args"])
        self.assertIn("saxpy", first["name"])
        self.assertEqual((first["args"]["grid"], second["args"]["block"]), ([1172, 1, 1], [128, 1, 1]))
        self.assertEqual(sum(e["args"]["bytes"] for e in gpu if "kernel" not in e["args"]), 3 * 1200028)
        # Both clocks are this host's: what the GPU did ends after its call began.
        for call, e in zip([e for e in seen if "kernel" in e["args"]], (first, second)):
            self.assertGreater(e["ts"] + e["dur"], call["ts"])
        self.assertEqual(len([e for e in gpu if "kernel" in e["args"]]), 2)
        self.assertEqual((whole[-1]["args"]["dropped_records"], whole[-1]["args"]["dropped_gpu_records"]), (0, 0))
        # The requests for it are no calls and no commands of the program's.
        count, commands = map(int, re.search(r"cricket: (\d+) calls, (\d+) commands sent", err).groups())
        self.assertEqual((count, commands), (len(seen), sum(e["args"]["commands"] for e in seen)))

    def test_gpu_time_without_file(self):
        server = self.server("s")
        program, _ = self.start(server, CRICKET_TRACE_GPU="1")
        _, err = self.finish(program)
        self.assertRegex(err, r"^cricket: CRICKET_TRACE_GPU=1 has no effect without CRICKET_TRACE: .*\n$")

    def test_gpu_time_after_restore(self):
        """Another worker has another clock and knows of no trace: the thread begins one there."""
        server, other, file = self.server("s"), self.server("t"), self.path("t.json")
        program, session = self.start(server, CRICKET_TRACE=file, CRICKET_TRACE_GPU="1", CRICKET_STANDBY=other.address)
        self.wait(lambda: [e for e in calls(file) if e["cat"] == "gpu" and "kernel" in e["args"]])
        self.ctl(server, "migrate", session, "--to", other.address)
        # The thread's own question shows that it has found the session again: the refusal names its trace, and no other reason.
        self.wait(lambda: "CRICKET_TRACE_GPU=1" in self.may_fail(other, "trace", session, "-o", self.path("x"), "--seconds", "1")[2])
        self.finish(program)
        gpu = [e for e in calls(file) if e["cat"] == "gpu"]
        self.assertEqual(len([e for e in gpu if "kernel" in e["args"]]), 2)

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

        def threads():
            return [len(os.listdir("/proc/%d/task" % p.process.pid)) for p in (plain, traced)]

        # A thread that opens lanes ends by itself.
        self.wait(lambda: threads()[0] + 1 == threads()[1])
        self.go()
        self.finish(traced)
        plain.process.kill()
        self.assertEqual(os.listdir(os.path.join(self.dir, "a")).count("t.json"), 0)

    def test_ends_without_destructors(self):
        """_exit, _Exit and quick_exit end the file and print the summary; children that fork or vfork made do neither."""
        server = self.server("s")
        for number, end in enumerate(("os._exit(3)", "libc._exit(3)", "libc._Exit(3)", "libc.quick_exit(3)")):
            file = self.path("e%d.json" % number)
            code = textwrap.dedent("""
                import ctypes, os, subprocess, sys
                libc, cuda = ctypes.CDLL(None), ctypes.CDLL("libcuda.so.1")
                memory, context = ctypes.c_uint64(), ctypes.c_void_p()
                assert cuda.cuInit(0) == 0
                assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0 and cuda.cuCtxSetCurrent(context) == 0
                if os.fork() == 0:
                    %s
                os.wait()
                try:
                    subprocess.run(["/no/such/program"])  # vfork, and _exit in the child
                except FileNotFoundError:
                    pass
                print("children are gone", file=sys.stderr, flush=True)
                assert cuda.cuMemAlloc_v2(ctypes.byref(memory), 4096) == 0
                %s""") % (end, end)
            done = subprocess.run([self.tree.tool("cricket-run"), "--server", server.address, sys.executable, "-c", code], capture_output=True, text=True,
                                  env={**runner.clean_environment(), "HOME": self.home, "CRICKET_TRACE": file, "CRICKET_STATS": "1"}, timeout=60)
            self.assertEqual(done.returncode, 3, end + done.stderr)
            with open(file, encoding="utf-8") as f:
                whole = json.load(f)
            self.assertEqual([e["name"] for e in whole if e["ph"] == "X"][-1], "cuMemAlloc_v2")
            self.assertEqual(whole[-1]["name"], "cricket_trace_end")
            before, after = done.stderr.split("children are gone\n")
            self.assertEqual((before.count("calls, "), after.count("calls, ")), (0, 1), end + done.stderr)
            self.assertIn("  cuMemAlloc_v2\n", after)

    def test_unwritable(self):
        server = self.server("s")
        program, _ = self.start(server, CRICKET_TRACE=self.path("no/t.json"))
        _, err = self.finish(program)
        self.assertRegex(err, r"^cricket: CRICKET_TRACE: cannot write \S+: No such file or directory; .*\n$")

    def trace(self, server, session, *options, env=None):
        """cricketctl trace that has begun: (process, its file).  That it has is seen by a second one, which is refused."""
        file, refusal = self.path("ctl.json"), "being traced already"
        while True:
            process = subprocess.Popen([self.tree.tool("cricketctl"), "--server", server.address, "trace", session, "-o", file, *options],
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
            self.addCleanup(process.kill)
            # Two that begin at one time: one of them is refused.
            self.wait(lambda: process.poll() is not None or
                      refusal in self.may_fail(server, "trace", session, "-o", self.path("second"), "--seconds", "1")[2])
            if process.poll() is None:
                break
            self.assertIn(refusal, process.communicate()[1])
        self.assertEqual([name for name in os.listdir(self.dir) if name.startswith("second") and not name == "second"], [])
        return process, file

    def test_running_session(self):
        server = self.server("s", "--audit", self.path("audit"))
        program, session = self.start(server)
        tracer, file = self.trace(server, session, "--gpu-time")
        before = self.counted(server, session)
        self.finish(program)
        out, err = tracer.communicate(timeout=60)
        self.assertEqual(tracer.returncode, 0, err)
        self.assertIn("the trace ends here", err)
        self.assertRegex(out, r"^session \w+: \d+ records in \S+, 0 dropped\n$")
        with open(file, encoding="utf-8") as f:
            whole = json.load(f)
        commands = [e for e in whole if e.get("cat") == "command"]
        gpu = [e for e in whole if e.get("cat") == "gpu"]
        (launch,) = [e for e in commands if e["name"] == "launch_kernel"]
        self.assertIn("saxpy", launch["args"]["kernel"])
        self.assertEqual((launch["args"]["grid"], launch["args"]["block"], launch["args"]["waited"]), ([2344, 1, 1], [128, 1, 1], False))
        # All that came after the trace began, and nothing else.
        self.assertGreater(before, 0)
        self.assertEqual({e["pid"] for e in commands}, {1})
        names = [e["name"] for e in commands]
        self.assertLess(names.index("launch_kernel"), names.index("mem_free"))
        self.assertEqual(names.count("mem_free"), 2)
        (on_gpu,) = [e for e in gpu if "saxpy" in e["name"]]
        self.assertEqual(on_gpu["pid"], 2)
        self.assertGreaterEqual(on_gpu["dur"], 0)
        self.assertGreaterEqual(on_gpu["ts"] + on_gpu["dur"], launch["ts"])
        self.assertEqual(whole[-1]["args"]["dropped_records"], 0)
        self.assertFalse([name for name in os.listdir(self.dir) if name.endswith(".partial")])

        def traced():
            return [line for line in self.audited(self.path("audit")) if line.get("call", "").startswith("trace")]

        # While it ends it is refused for another reason.
        self.wait(lambda: runner.sessions_of(self.tree, server) == [])
        # The tracer may have asked once more when the session had ended, or been told of that by the answer before.
        self.assertEqual(self.may_fail(server, "trace", session, "-o", self.path("late"), "--seconds", "1")[0], 4)
        self.wait(lambda: ("trace", "refused") in {(line["call"], line["result"]) for line in traced()})
        mine = traced()
        self.assertEqual((mine[0]["call"], mine[0]["result"], mine[0]["session"]), ("trace", "ok", session))
        # Reads have no lines; what is refused has, and what was on its way to the worker when that ended.
        self.assertEqual({line["result"] for line in mine if line["call"] == "trace_read"} - {"refused", "failed"}, set())

    def test_stalled(self):
        """A tracer that stands still when the program ends is told how much it has missed, also if the worker dies of a signal."""
        for name in "end", "kill":
            with self.subTest(name):
                server = self.server(name)
                program, session = self.start(server, "program-" + name)
                tracer, file = self.trace(server, session)
                (worker,) = server.workers()
                with runner.stopped([tracer.pid]):
                    self.wait(lambda tracer=tracer: stands(tracer.pid))
                    self.finish(program)
                    # The other one waits for the tracer, but not for ever.
                    if name == "kill":
                        with contextlib.suppress(ProcessLookupError):
                            os.kill(worker, signal.SIGKILL)
                    self.wait(lambda server=server: runner.sessions_of(self.tree, server) == [])
                out, err = tracer.communicate(timeout=60)
                self.assertEqual(tracer.returncode, 0, err)
                self.assertIn("the trace ends here", err)
                # All after the mid point: a launch, a copy, two that free, and the end.
                dropped = int(re.search(r"(\d+) dropped\n$", out).group(1))
                self.assertGreaterEqual(dropped, 4)
                self.assertEqual(events(file)[-1]["args"]["dropped_records"], dropped)
                self.assertNotIn("mem_free", [e["name"] for e in calls(file)])

    def test_server_gone(self):
        """What the tracer has read by then stays."""
        server = self.server("s")
        program, session = self.start(server)
        tracer, file = self.trace(server, session)
        server.kill()
        out, err = tracer.communicate(timeout=60)
        self.assertEqual(tracer.returncode, 3, err)
        self.assertIn("its last records are missing", err)
        self.assertRegex(out, r"^session \w+: \d+ records in \S+, \d+ dropped\n$")
        self.assertEqual(events(file)[-1]["name"], "cricket_trace_end")
        self.finish(program)

    def test_interrupted(self):
        """Ctrl-C ends it with a whole file; the next one can begin; the program notices nothing."""
        server = self.server("s")
        program, session = self.start(server)
        for _ in range(2):
            tracer, file = self.trace(server, session)
            tracer.send_signal(2)
            _, err = tracer.communicate(timeout=60)
            self.assertEqual((tracer.returncode, err), (0, ""))
            self.assertEqual(events(file)[-1]["name"], "cricket_trace_end")
            os.unlink(file)
        self.assertEqual(self.may_fail(server, "trace", session, "-o", file, "--seconds", "1")[0], 0)
        self.finish(program)

    def test_who_may(self):
        """Another user's session is none."""
        alice, bob = self.token("alice"), self.token("bob")
        server = self.server("s", "--tokens", self.tokens)
        os.environ["CRICKET_TOKEN_FILE"] = alice
        self.addCleanup(os.environ.pop, "CRICKET_TOKEN_FILE")
        program, session = self.start(server, CRICKET_TOKEN_FILE=alice)
        words = ("trace", session, "-o", self.path("x"), "--seconds", "1")
        code, _, err = self.may_fail(server, *words, CRICKET_TOKEN_FILE=bob)
        self.assertEqual(code, 4, err)
        self.assertIn("or it belongs to another user", err)
        self.assertFalse(os.path.exists(self.path("x")))
        self.assertEqual(self.may_fail(server, *words)[0], 0)
        self.assertTrue(os.path.exists(self.path("x")))
        self.finish(program)

    def test_wrong_words(self):
        server = self.server("s")
        program, session = self.start(server)
        self.assertEqual(self.may_fail(server, "trace", session)[0], 2)
        self.assertEqual(self.may_fail(server, "trace", session, "-o", self.path("x"), "--seconds", "0")[0], 2)
        code, _, err = self.may_fail(server, "trace", session, "-o", self.path("no/x"))
        self.assertEqual(code, 1)
        self.assertIn("No such file or directory", err)
        self.assertEqual(self.may_fail(server, "trace", "ffffffffffff", "-o", self.path("x"))[0], 4)
        self.assertFalse([name for name in os.listdir(self.dir) if name.startswith("x")])
        self.finish(program)


if __name__ == "__main__":
    unittest.main(verbosity=2)
