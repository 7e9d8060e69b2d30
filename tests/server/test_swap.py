#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Sessions whose memory leaves the soft GPU for the host's memory, or for a file, and comes back."""
import contextlib
import json
import os
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from takers import MIB, Taker  # noqa: E402
from whole import Whole, runner  # noqa: E402


class Swap(Whole):
    def setUp(self):
        super().setUp()
        self.takers = []

    def tearDown(self):
        for taker in self.takers:
            if not taker.process.stdout.closed:
                taker.end()
        super().tearDown()

    def swapping(self, *options):
        server = self.server("server", *options, env={"CRICKET_SOFT_DEVICES": "12.0:8G"})
        server.tcp, server.address = server.address, "unix:" + server.socket
        return server

    def taker(self, server, mib, **env):
        taker = Taker(self, server, **env)
        self.takers.append(taker)
        self.assertEqual(taker.ask("alloc", mib), 0)
        self.assertEqual(taker.ask("fill", 7), 0)
        return taker

    def session(self, server):
        return runner.sessions_of(self.tree, server)[0]["session"]

    def shows(self, server, session, state):
        """ps says what the worker last said of itself, which may be older if that does not answer within a second."""
        self.wait(lambda: self.state(server, session) == state)

    def swap(self, server, way, session):
        return json.loads(self.ctl(server, "--json", "swap", way, session))

    def refused(self, server, *words):
        done = subprocess.run([self.tree.tool("cricketctl"), "--server", server.address, *words], capture_output=True, text=True, check=False)
        self.assertNotEqual(done.returncode, 0)
        return done.stderr

    def test_cycles(self):
        """What comes back is what left; only what changed is written; the next command brings all back."""
        server = self.swapping("--swap-memory", "1G")
        taker = self.taker(server, 64)
        session = self.session(server)
        out = self.swap(server, "out", session)
        self.assertTrue(out["swapped"])
        self.assertGreaterEqual(out["bytes"], 64 * MIB)
        self.assertGreaterEqual(out["moved_bytes"], 64 * MIB)
        self.shows(server, session, "swapped")
        self.assertIn("already swapped", self.refused(server, "swap", "out", session))
        self.assertEqual(taker.ask("check", 7), 0)
        self.shows(server, session, "running")
        # Nothing has changed: nothing is written.
        self.assertEqual(self.swap(server, "out", session)["moved_bytes"], 0)
        back = self.swap(server, "in", session)
        self.assertFalse(back["swapped"])
        self.assertIn("not swapped", self.refused(server, "swap", "in", session))
        self.assertEqual(taker.ask("fill", 0), 0)
        self.assertEqual(self.swap(server, "out", session)["swapped_bytes"], 0)
        self.assertEqual(taker.ask("check", 0), 0)
        shown = self.swap(server, "show", session)
        self.assertEqual((shown["outs"], shown["ins"]), (3, 3))

    def test_refused(self):
        """Without swap memory the remedy is named; a full one leaves the session as it is."""
        server = self.swapping()
        taker = self.taker(server, 8)
        self.assertIn("--swap-memory", self.refused(server, "swap", "out", self.session(server)))
        self.assertEqual(taker.ask("check", 7), 0)

    def test_full(self):
        server = self.swapping("--swap-memory", "16M")
        taker = self.taker(server, 64)
        session = self.session(server)
        self.assertIn("the swap memory is full", self.refused(server, "swap", "out", session))
        self.shows(server, session, "running")
        self.assertEqual(taker.ask("check", 7), 0)

    def test_file(self):
        """What does not fit into the memory goes to a file that has no name."""
        directory = os.path.join(self.dir, "swap")
        os.mkdir(directory)
        server = self.swapping("--swap-memory", "16M", "--swap", directory)
        taker = self.taker(server, 64)
        self.assertTrue(self.swap(server, "out", self.session(server))["swapped"])
        self.assertEqual(os.listdir(directory), [])
        self.assertEqual(taker.ask("check", 7), 0)

    def test_owner(self):
        """swap= bounds what an owner's sessions hold together, in memory and in files; other owners have theirs."""
        directory = os.path.join(self.dir, "swap")
        os.mkdir(directory)
        server = self.swapping("--swap-memory", "40M", "--swap", directory)
        self.ctl(server, "limit", "set", "job=train", "swap=100M")
        trains = [self.taker(server, 32, CRICKET_JOB="train") for _ in range(4)]
        other = self.taker(server, 32)
        by_pid = {s["pid"]: s["session"] for s in runner.sessions_of(self.tree, server)}
        sessions = [by_pid[t.process.pid] for t in trains]
        for session in sessions[:3]:
            self.assertTrue(self.swap(server, "out", session)["swapped"])
        said = self.refused(server, "swap", "out", sessions[3])
        self.assertIn("its owner's limit of swap memory is reached", said)
        self.shows(server, sessions[3], "running")
        self.assertTrue(self.swap(server, "out", by_pid[other.process.pid])["swapped"])
        # What an ended session had is there for the next.
        self.assertEqual(trains[0].ask("check", 7), 0)
        trains[0].end()
        self.wait(lambda: len(runner.sessions_of(self.tree, server)) == 4)
        self.assertTrue(self.swap(server, "out", sessions[3])["swapped"])
        self.ctl(server, "limit", "set", "job=train", "swap=0")
        self.assertEqual(trains[1].ask("check", 7), 0)
        self.assertEqual(trains[1].ask("fill", 3), 0)
        self.assertIn("owner's limit", self.refused(server, "swap", "out", sessions[1]))
        for taker in (trains[2], trains[3], other):
            self.assertEqual(taker.ask("check", 7), 0)

    def test_two_at_once(self):
        """Two sessions leave at the same time: neither takes the other's part of the swap memory."""
        server = self.swapping("--swap-memory", "1G", "--gpu-memory", "8G")
        takers = [self.taker(server, 128) for _ in range(2)]
        calls = [subprocess.Popen([self.tree.tool("cricketctl"), "--server", server.address, "swap", "out", s["session"]],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) for s in runner.sessions_of(self.tree, server)]
        for call in calls:
            said = call.communicate(timeout=60)[1]
            self.assertEqual(call.returncode, 0, said)
        for taker in takers:
            self.assertEqual(taker.ask("check", 7), 0)

    def test_lease(self):
        """Two programs that do not fit together: the memory of the swapped one is the other's."""
        server = self.swapping("--swap-memory", "1G", "--gpu-memory", "1G")
        one = self.taker(server, 600)
        session = self.session(server)
        self.swap(server, "out", session)
        two = Taker(self, server)
        self.takers.append(two)
        self.assertEqual(two.ask("alloc", 600), 0)
        self.assertIn("does not grant", self.refused(server, "swap", "in", session))
        # The command waits until there is room.
        one.process.stdin.write("check 7\n")
        one.process.stdin.flush()
        two.end()
        self.assertEqual(one.process.stdout.readline(), "0\n")

    def test_checkpoint(self):
        """A swapped session is saved where it is, and stays there."""
        server = self.swapping("--swap-memory", "1G")
        taker = self.taker(server, 16)
        session = self.session(server)
        self.swap(server, "out", session)
        image = os.path.join(self.dir, "image")
        self.ctl(server, "checkpoint", session, image)
        self.shows(server, session, "swapped")
        self.ctl(server, "image", "verify", image)
        self.assertEqual(taker.ask("check", 7), 0)

    def test_checkpoint_and_restore(self):
        """Saved while swapped, ended, restored: the contents are there, and an image on top of that one is small."""
        server = self.swapping("--swap-memory", "1G")
        taker = self.taker(server, 16)
        session = self.session(server)
        base, image = (os.path.join(self.dir, name) for name in ("base", "image"))
        self.ctl(server, "checkpoint", session, base)
        self.swap(server, "out", session)
        done = json.loads(self.ctl(server, "--json", "checkpoint", session, image, "--incremental", base))
        self.assertLess(done["bytes"], 4 * MIB)
        self.shows(server, session, "swapped")
        self.ctl(server, "checkpoint", session, os.path.join(self.dir, "last"), "--stop")
        self.ctl(server, "restore", os.path.join(self.dir, "last"))
        self.assertEqual(taker.ask("check", 7), 0)

    def test_pause(self):
        """A swapped session is paused where it is: then no command brings it back, only `resume`."""
        server = self.swapping("--swap-memory", "1G")
        taker = self.taker(server, 16)
        session = self.session(server)
        self.swap(server, "out", session)
        self.ctl(server, "pause", session)
        self.shows(server, session, "paused")
        taker.process.stdin.write("check 7\n")
        taker.process.stdin.flush()
        self.assertEqual(self.swap(server, "show", session)["ins"], 0)
        self.ctl(server, "resume", session)
        self.assertEqual(taker.process.stdout.readline(), "0\n")

    def test_migrate(self):
        """A swapped session moves without coming in, and runs where it arrives."""
        servers = [self.swapping("--swap-memory", "1G"), self.server("other", env={"CRICKET_SOFT_DEVICES": "12.0:8G"})]
        taker = self.taker(servers[0], 48)
        session = self.session(servers[0])
        self.swap(servers[0], "out", session)
        self.ctl(servers[0], "migrate", session, "--to", servers[1].address)
        self.assertEqual(runner.sessions_of(self.tree, servers[0]), [])
        self.assertEqual(taker.ask("check", 7), 0)
        self.shows(servers[1], session, "running")

    def test_lost_connection(self):
        """A client that comes back finds its session swapped, and its next command brings it in."""
        server = self.swapping("--swap-memory", "1G")
        taker = self.taker(server, 16)
        session = self.session(server)
        self.swap(server, "out", session)
        server.kill()
        os.unlink(os.path.join(server.directory, "address"))
        again = self.swapping("--swap-memory", "1G")
        self.wait(lambda: "found again" in self.log_of(again))
        self.assertEqual(taker.ask("check", 7), 0)
        self.assertTrue(self.swap(again, "out", session)["swapped"])
        self.assertEqual(taker.ask("check", 7), 0)

    def test_others(self):
        """Nobody swaps another owner's session."""
        tokens = [self.token(name) for name in ("alice", "bob")]
        server = self.server("server", "--swap-memory", "1G", "--tokens", self.tokens)
        taker = Taker(self, server, CRICKET_TOKEN_FILE=tokens[0])
        self.takers.append(taker)
        self.assertEqual(taker.ask("alloc", 8), 0)
        session = self.may_fail(server, "ps", "--json", CRICKET_TOKEN_FILE=tokens[0])[1]
        session = json.loads(session)["sessions"][0]["session"]
        for way in ("out", "in", "show"):
            status, _, said = self.may_fail(server, "swap", way, session, CRICKET_TOKEN_FILE=tokens[1])
            self.assertNotEqual(status, 0)
            self.assertIn("no session", said)
        self.assertEqual(self.may_fail(server, "swap", "out", session, CRICKET_TOKEN_FILE=tokens[0])[0], 0)
        self.assertEqual(taker.ask("free"), 0)

    def test_killed(self):
        """A worker that dies takes its swap memory along: the next session has all of it."""
        server = self.swapping("--swap-memory", "80M")
        self.taker(server, 64)
        session = runner.sessions_of(self.tree, server)[0]
        self.swap(server, "out", session["session"])
        gone = self.takers.pop()
        gone.process.kill()
        for worker in server.workers():
            # It may have ended with its client.
            with contextlib.suppress(ProcessLookupError):
                os.kill(worker, signal.SIGKILL)
        gone.end()
        self.wait(lambda: not runner.sessions_of(self.tree, server))
        taker = self.taker(server, 64)
        self.assertTrue(self.swap(server, "out", self.session(server))["swapped"])
        self.assertEqual(taker.ask("check", 7), 0)

    def test_faults(self):
        """A step that fails leaves the session as it was."""
        for point in (20, 21, 24):
            with self.subTest(point=point):
                server = self.server("fault%d" % point, "--swap-memory", "1G", env={"CRICKET_FAULT": "fail:%d" % point})
                server.tcp, server.address = server.address, "unix:" + server.socket
                taker = self.taker(server, 16)
                self.refused(server, "swap", "out", self.session(server))
                self.assertEqual(taker.ask("check", 7), 0)


if __name__ == "__main__":
    unittest.main()
