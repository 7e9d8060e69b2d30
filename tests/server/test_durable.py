#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Durable sessions: an image at a random moment, more commands, kill -9 of the worker at a random later moment, and the image restored: the
program ends as if nothing had happened.  CKT_TEST_KILLS: how many; CKT_TEST_SEED: which; CKT_TEST_NAMES: of which programs."""
import os
import random
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from durable_relay import Relay  # noqa: E402
from whole import Whole, runner  # noqa: E402

PROGRAMS = os.environ["CKT_TEST_PROGRAMS"]
NAMES = os.environ.get("CKT_TEST_NAMES", "durable training allocations streams pool graph_launches vmm managed memory churn_kinds").split()
KILLS = int(os.environ.get("CKT_TEST_KILLS", "40"))
WIDE = os.environ.get("CKT_TEST_WIDE")  # programs that may lose durability are among them
SEED = int(os.environ.get("CKT_TEST_SEED", "1"))


class Durable(Whole):
    def setUp(self):
        super().setUp()
        self.count = 0
        self.undisturbed = {}

    def launch(self, server, name, unix, stops=(), **env):
        """(program, its relay, its directory)"""
        self.count += 1
        directory = os.path.join(self.dir, "%s%d" % (name, self.count))
        os.mkdir(directory)
        relay = Relay(directory, "unix:" + server.socket if unix else server.address, unix)
        relay.stops = list(stops)
        environment = runner.clean_environment()
        environment.update({"HOME": self.home, "CRICKET_DURABLE": "1", "CRICKET_TRANSPORT": "unix" if unix else "tcp",
                            "CRICKET_RECONNECT_TIMEOUT": "30"}, **env)
        program = runner.Program(directory, [self.tree.tool("cricket-run"), "--server", relay.address, os.path.join(PROGRAMS, name + "-static")],
                                 environment)
        self.programs.append(program)
        return program, relay, directory

    def plain(self, server, name, unix):
        """The output and the bytes of an undisturbed run."""
        if (name, unix) not in self.undisturbed:
            program, relay, _ = self.launch(server, name, unix)
            code, out, err = program.wait(120)
            self.assertEqual(code, 0, (name, out + err))
            relay.close()
            self.undisturbed[name, unix] = out, relay.carried
        return self.undisturbed[name, unix]

    def image(self, server, image):
        # That of the program before may not have ended.
        self.wait(lambda: len(runner.sessions_of(self.tree, server)) == 1)
        (session,) = runner.sessions_of(self.tree, server)
        self.ctl(server, "checkpoint", session["session"], image)

    def kill(self, server):
        workers = server.workers()
        for pid in workers:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        return "cut"

    def restored(self, server, image):
        """The session that died may still be listed for a moment."""
        end = time.monotonic() + 60
        while True:
            done = subprocess.run([self.tree.tool("cricketctl"), "--server", server.address, "restore", image], capture_output=True, text=True,
                                  check=False, timeout=60)
            if done.returncode == 0 or time.monotonic() > end:
                self.assertEqual(done.returncode, 0, done.stderr)
                return
            time.sleep(0.05)

    def run_killed(self, server, name, unix, first, *kills, corrupt=False, **env):
        """An image after `first` bytes of the client's stream, a kill and a restore after each of `kills`: (exit status, stdout, stderr)"""
        image = os.path.join(self.dir, "image%d" % self.count)

        def die():
            self.kill(server)
            self.restored(server, image)
            return "cut"
        program, relay, _ = self.launch(server, name, unix, [(first, lambda: self.image(server, image))] + [(at, die) for at in kills],
                                        **env)
        relay.corrupt = corrupt
        result = program.wait(120)
        relay.close()
        self.assertIsNone(relay.error, (name, relay.error))
        # A program whose last words were cut off has left without a farewell: nobody claims what was restored.
        self.kill(server)
        self.wait(lambda: runner.sessions_of(self.tree, server) == [])
        return result

    def test_kills(self):
        random_ = random.Random(SEED)
        server = self.server("server")
        replayed = 0
        for n in range(KILLS):
            name, unix = NAMES[n % len(NAMES)], n // len(NAMES) % 2 == 1
            out, size = self.plain(server, name, unix)
            # The hello and the first questions come before any session can be saved.
            first = random_.randrange(2000, size - 200) if size > 2500 else size // 2
            second = random_.randrange(first, size)
            code, got, err = self.run_killed(server, name, unix, first, second)
            if WIDE and b"not durable any more" in err:
                continue
            where = (name, "unix" if unix else "tcp", first, second, size)
            self.assertEqual((code, got), (0, out), (where, got, err, server.tail()))
            replayed += b"commands replayed" in err
            if os.environ.get("CKT_TEST_TELL"):
                print(n, where, err.decode().strip()[-300:], flush=True)
        # Where the client had not heard of what the lost worker executed, its ring held everything.
        self.assertGreater(4 * replayed, KILLS)

    def test_again(self):
        """The worker dies in the replay, and again behind it: the image serves each time."""
        server = self.server("server")
        out, _ = self.plain(server, "durable", False)
        code, got, err = self.run_killed(server, "durable", False, 10000, 40000, 55000, 100000)
        self.assertEqual((code, got), (0, out), err)
        self.assertEqual(err.count(b"commands replayed"), 2, err)

    def test_difference(self):
        """What a replay computes otherwise is never given to the program: the error names the call."""
        server = self.server("server")
        out, size = self.plain(server, "training", False)
        code, got, err = self.run_killed(server, "training", False, 12000, size - 2000, corrupt=True)
        self.assertNotEqual(code, 0, got)
        self.assertNotIn(out.splitlines()[0], got)
        self.assertRegex(err.decode(), r"is lost: memcpy_dtoh \(call [0-9]+\) gave other data when it was replayed")

    def test_memory_of_a_file(self):
        """The log is larger than its memory."""
        server = self.server("server")
        out, size = self.plain(server, "memory", False)
        code, got, err = self.run_killed(server, "memory", False, 5000, size - 2000, CRICKET_REPLAY_MEMORY="1M", TMPDIR=self.dir)
        self.assertEqual((code, got), (0, out), err)
        self.assertIn(b"commands replayed", err)

    def test_no_room(self):
        """Without room the session goes on, and says once that it is not durable."""
        server = self.server("server")
        program, relay, _ = self.launch(server, "memory", False, CRICKET_REPLAY_MEMORY="4K", TMPDIR="/nonexistent")
        code, out, err = program.wait(120)
        relay.close()
        self.assertEqual((code, out), (0, self.plain(server, "memory", False)[0]), err)
        self.assertEqual(err.count(b"is not durable any more"), 1, err)


if __name__ == "__main__":
    unittest.main()
