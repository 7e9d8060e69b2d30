#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What a session's connection runs over: chosen by itself, forced, and told; and how often an idle session wakes up."""
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from whole import PROGRAM, Whole, runner  # noqa: E402

# Of the session's own threads, on both sides together.
IDLE_S, WAKES_A_SECOND = 6, 5


def switches(pid, own):
    """How often threads of the process went to sleep by themselves; own: of the library's threads alone."""
    count = 0
    for task in os.listdir("/proc/%d/task" % pid):
        if own and int(task) == pid:
            continue
        # A thread that opened lanes may end between the two.
        with contextlib.suppress(FileNotFoundError, ProcessLookupError), open("/proc/%d/task/%s/status" % (pid, task), encoding="utf-8") as f:
            count += next(int(line.split()[1]) for line in f if line.startswith("voluntary_ctxt_switches"))
    return count


class Transport(Whole):
    def unix(self, server):
        return "unix:" + server.socket

    def start_at(self, server, address, name="p", **env):
        """The program at its mid point, from this address of the server: (program, session)"""
        directory = os.path.join(self.dir, name)
        os.mkdir(directory)
        self.point = os.path.join(directory, "phase")
        environment = runner.clean_environment()
        environment.update({"CKT_TEST_PHASE_FILE": self.point, "HOME": self.home}, **env)
        program = runner.Program(directory, [self.tree.tool("cricket-run"), "--server", address, PROGRAM], environment)
        self.programs.append(program)
        program.wait_ready(self.point + ".ready", 60)
        (session,) = runner.sessions_of(self.tree, server)
        return program, session["session"]

    def stats(self, server, session):
        return json.loads(self.ctl(server, "stats", session, "--json"))

    def listed(self, server):
        """(transport, lanes) of the only session, as cricketctl ps has them: null where the worker did not answer in time."""
        (session,) = json.loads(self.ctl(server, "ps", "--json"))["sessions"]
        return session["transport"], session["lanes"]

    def test_lanes_are_listed(self):
        """With lanes, which a large copy opens."""
        server = self.server("one")
        code = textwrap.dedent("""
            import ctypes, sys
            cuda = ctypes.CDLL("libcuda.so.1")
            memory, context, size = ctypes.c_uint64(), ctypes.c_void_p(), 64 << 20
            assert cuda.cuInit(0) == 0
            assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0 and cuda.cuCtxSetCurrent(context) == 0
            assert cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(size)) == 0
            assert cuda.cuMemcpyHtoD_v2(memory, ctypes.create_string_buffer(size), ctypes.c_size_t(size)) == 0
            print("copied", flush=True)
            sys.stdin.read()""")
        program = subprocess.Popen([self.tree.tool("cricket-run"), "--server", server.address, sys.executable, "-c", code], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, text=True, env={**runner.clean_environment(), "HOME": self.home, "CRICKET_LANES": "3"})
        self.addCleanup(program.kill)
        self.assertEqual(program.stdout.readline(), "copied\n")
        self.wait(lambda: self.listed(server) == ("tcp", 3))
        self.wait(lambda: "  tcp+3 " in self.ctl(server, "ps"))
        program.communicate()

    def refused(self, address, **env):
        """What the program says when it finds no GPU."""
        done = subprocess.run([self.tree.tool("cricket-run"), "--server", address, PROGRAM], env={**runner.clean_environment(), "HOME": self.home, **env},
                              capture_output=True, text=True, timeout=120, check=False)
        self.assertNotEqual(done.returncode, 0)
        (line,) = [line for line in done.stderr.splitlines() if line.startswith("cricket: ")]
        return line

    def test_choice(self):
        server = self.server("one", "--log-level", "info")
        expected = self.expected()
        rows = ((self.unix(server), None, "shm"), (self.unix(server), "unix", "unix"), (self.unix(server), "shm", "shm"), (server.address, None, "tcp"),
                (server.address, "tcp", "tcp"))
        for number, (address, forced, over) in enumerate(rows):
            with self.subTest(address=address, forced=forced):
                program, session = self.start_at(server, address, "p%d" % number, **({"CRICKET_TRANSPORT": forced} if forced else {}))
                self.assertEqual(self.stats(server, session)["transport"], over)
                self.wait(lambda over=over: self.listed(server) == (over, 0))
                self.wait(lambda over=over: re.search(r"Z  %s +(uid:\d+|nobody)" % over, self.ctl(server, "ps")))
                self.assertEqual(self.finish(program), (expected, ""))
                self.wait(lambda: runner.sessions_of(self.tree, server) == [])
                self.assertIn("the client is connected over " + over, self.log_of(server))

    def test_forced_in_vain(self):
        server = self.server("one")
        unix, tcp = self.unix(server), server.address
        for address, forced, words in ((unix, "tcp", "CRICKET_TRANSPORT=tcp, but %s is a UNIX socket" % unix), (tcp, "unix", "CRICKET_TRANSPORT=unix, but "),
                                       (tcp, "shm", "CRICKET_TRANSPORT=shm, but "), (unix, "UNIX", "CRICKET_TRANSPORT=UNIX is no transport")):
            with self.subTest(address=address, forced=forced):
                self.assertIn(words, self.refused(address, CRICKET_TRANSPORT=forced))
        self.assertEqual(runner.sessions_of(self.tree, server), [])

    def test_moves(self):
        """A worker elsewhere makes rings of its own, and the client that is moved takes them."""
        first, second = self.server("first"), self.server("second")
        expected = self.expected()
        program, session = self.start_at(first, self.unix(first))
        runner.cricketctl(self.tree, "--server", self.unix(first), "migrate", session, "--to", self.unix(second))
        self.wait(lambda: self.state(second, session) == "running")
        # The session runs before its client's hello is answered, and the rings begin after that.
        self.wait(lambda: self.stats(second, session)["transport"] == "shm")
        # Over a network, and back.
        runner.cricketctl(self.tree, "--server", self.unix(second), "migrate", session, "--to", first.address)
        self.wait(lambda: self.state(first, session) == "running")
        self.wait(lambda: self.stats(first, session)["transport"] == "tcp")
        self.assertEqual(self.finish(program)[0], expected)

    def test_worker_dies(self):
        """While the rings are used: the program ends with an error, and does not wait for ever."""
        server = self.server("one")
        program, session = self.start_at(server, self.unix(server), CRICKET_RECONNECT_TIMEOUT="1")
        os.kill(self.stats(server, session)["worker_pid"], signal.SIGKILL)
        self.go()
        code, _, err = program.wait(60)
        self.assertNotEqual(code, 0)
        self.assertIn(b"session %s on %s is lost" % (session.encode(), self.unix(server).encode()), err)

    def test_idle(self):
        begun = []
        for over in ("shm", "tcp"):
            server = self.server(over)
            program, session = self.start_at(server, self.unix(server) if over == "shm" else server.address, "p-" + over)
            self.assertEqual(self.stats(server, session)["transport"], over)
            (client,) = [s["pid"] for s in runner.sessions_of(self.tree, server)]
            begun.append((over, program, self.point, client, self.stats(server, session)["worker_pid"]))

        def wakes():
            return {over: switches(client, True) + switches(worker, False) for over, _, _, client, worker in begun}

        def rates():
            """How often each woke up in a second."""
            before, began = wakes(), time.monotonic()
            time.sleep(IDLE_S)
            after = wakes()
            return {over: (after[over] - before[over]) / (time.monotonic() - began) for over in before}

        # An idle client looks less often after two seconds of its own, which a busy machine may give it late.
        self.wait(lambda: max(rates().values()) < WAKES_A_SECOND)
        for over, program, self.point, _, _ in begun:
            with self.subTest(over=over):
                self.finish(program)


if __name__ == "__main__":
    unittest.main(verbosity=2)
