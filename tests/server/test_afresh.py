#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Durable sessions without any image: they begin again from nothing, and their clients send every command again."""
import contextlib
import os
import signal
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from takers import Taker  # noqa: E402
from whole import Whole, runner  # noqa: E402

BEGINS = "it begins again from its first command"


class Afresh(Whole):
    def setUp(self):
        super().setUp()
        self.takers = []

    def tearDown(self):
        for taker in self.takers:
            if not taker.process.stdout.closed:
                with contextlib.suppress(OSError):
                    taker.end()
        super().tearDown()

    def plain(self, name="server", *options):
        # Else an earlier server's file says that this one is ready.
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(self.dir, name, "address"))
        server = self.server(name, *options, env={"CRICKET_SOFT_DEVICES": "12.0:8G"})
        server.tcp, server.address = server.address, "unix:" + server.socket
        return server

    def taker(self, server, **env):
        taker = Taker(self, server, **{"CRICKET_DURABLE": "1", "CRICKET_RECONNECT_TIMEOUT": "20", **env})
        self.takers.append(taker)
        self.assertEqual(taker.ask("alloc", 4), 0)
        self.assertEqual(taker.ask("fill", 7), 0)
        self.assertEqual(taker.ask("check", 7), 0)
        return taker

    def session(self, server):
        (session,) = runner.sessions_of(self.tree, server)
        return session["session"]

    def kill(self, server, also_server=False):
        workers = server.workers()
        if also_server:
            server.kill()
        for worker in workers:
            os.kill(worker, signal.SIGKILL)
        runner.end_all(workers, "its worker was killed")

    def is_lost(self, taker, why=""):
        self.takers.remove(taker)
        out, said = taker.process.communicate("check 7\n", 60)
        self.assertNotEqual(out, "0\n", said)
        self.assertIn("is lost", said)
        self.assertIn(why, said)
        return said

    def test_worker_killed(self):
        """More often than a program may that does not go on: this one does."""
        server = self.plain()
        taker = self.taker(server)
        session = self.session(server)
        for word in range(8, 13):
            self.kill(server)
            self.assertEqual(taker.ask("check", word - 1), 0)
            self.assertEqual(taker.ask("alloc", 1), 0)
            self.assertEqual(taker.ask("fill", word), 0)
            self.assertEqual(self.session(server), session)
            self.assertEqual(len(server.workers()), 1)
        said = taker.end()
        self.assertEqual(said.count(BEGINS), 5, said)
        self.assertEqual(said.count("commands replayed"), 5, said)

    def test_server_killed(self):
        """The next server never heard of the session."""
        server = self.plain()
        taker = self.taker(server)
        self.kill(server, True)
        server = self.plain()
        self.assertEqual(taker.ask("check", 7), 0)

    def test_killed_in_replay(self):
        server = self.plain()
        taker = self.taker(server)
        self.kill(server)
        taker.process.stdin.write("check 7\n")
        taker.process.stdin.flush()
        # Not the one that is dead already, whom its server may not have seen yet.
        self.wait(lambda: any(runner.alive(worker) for worker in server.workers()))
        self.kill(server)
        self.assertEqual(taker.process.stdout.readline(), "0\n")

    def test_no_progress(self):
        """What dies again and again at one place is given up."""
        server = self.plain()
        # It has to come back within that time, three times.
        taker = self.taker(server, CRICKET_RECONNECT_TIMEOUT="10")
        for _ in range(3):
            self.kill(server)
            # A question, which changes nothing.
            self.assertGreater(taker.ask("info")[1], 0)
        self.kill(server)
        self.is_lost(taker, "does not begin again")

    def test_not_durable(self):
        server = self.plain()
        taker = self.taker(server, CRICKET_DURABLE="0", CRICKET_RECONNECT_TIMEOUT="2")
        self.kill(server)
        self.assertNotIn(BEGINS, self.is_lost(taker))

    def test_log_is_full(self):
        """A log without room ends durability, and with it the return."""
        server = self.plain()
        taker = self.taker(server, CRICKET_RECONNECT_TIMEOUT="2", CRICKET_REPLAY_MEMORY="4K", TMPDIR="/nonexistent")
        for word in range(8, 80):
            self.assertEqual(taker.ask("fill", word), 0)
        self.kill(server)
        said = self.is_lost(taker, "is not durable any more")
        self.assertNotIn(BEGINS, said)

    def test_ended_on_purpose(self):
        """Nobody undoes cricketctl kill, not even while the server starts again."""
        server = self.plain()
        taker = self.taker(server, CRICKET_RECONNECT_TIMEOUT="5")
        self.ctl(server, "kill", self.session(server))
        self.takers.remove(taker)
        taker.process.stdin.write("check 7\n")
        taker.process.stdin.flush()
        time.sleep(2)
        server.kill()
        server = self.plain()
        out, said = taker.process.communicate("", 60)
        self.assertNotEqual(out, "0\n", said)
        self.assertNotIn(BEGINS, said)
        self.assertEqual(runner.sessions_of(self.tree, server), [])

    def test_stopped_on_purpose(self):
        """A session that waits for its restore waits."""
        server = self.plain()
        taker = self.taker(server)
        image = os.path.join(self.dir, "image")
        self.ctl(server, "checkpoint", self.session(server), image, "--stop")
        taker.process.stdin.write("check 7\n")
        taker.process.stdin.flush()
        time.sleep(2)
        self.assertEqual(runner.sessions_of(self.tree, server), [])
        self.ctl(server, "restore", image)
        self.assertEqual(taker.process.stdout.readline(), "0\n")
        self.assertNotIn(BEGINS, taker.end())

    def test_moved(self):
        """It begins again where it went, and never where it was."""
        first, second = self.plain("first"), self.plain("second")
        taker = self.taker(first)
        session = self.session(first)
        self.ctl(first, "migrate", session, "--to", second.address)
        self.assertEqual(taker.ask("check", 7), 0)
        self.kill(second)
        self.assertEqual(taker.ask("check", 7), 0)
        self.assertEqual(self.session(second), session)
        # One that began there would stay as long as its program.
        self.wait(lambda: not runner.sessions_of(self.tree, first))

    def test_standby(self):
        """Another server cannot know whether the worker lives: it does not start the session."""
        first, second = self.plain("first"), self.plain("second")
        taker = self.taker(first, CRICKET_STANDBY=second.address, CRICKET_RECONNECT_TIMEOUT="2")
        self.kill(first, True)
        self.assertNotIn(BEGINS, self.is_lost(taker))
        self.assertEqual(runner.sessions_of(self.tree, second), [])

    def test_reasons(self):
        """Who gives up names each place with its reason: what the last one said is not all that the user must know."""
        self.token("alice")
        first, second = self.plain("first"), self.plain("second", "--tokens", self.tokens)
        taker = self.taker(first, CRICKET_STANDBY=second.tcp, CRICKET_RECONNECT_TIMEOUT="5")
        self.may_fail(first, "drain")
        self.kill(first)
        said = self.is_lost(taker, f"{second.tcp}: the server requires a token")
        self.assertIn("is drained for maintenance", said)

    def test_draining(self):
        """It counts as a new session: a server that takes none does not take it."""
        server = self.plain()
        taker = self.taker(server, CRICKET_RECONNECT_TIMEOUT="20")
        self.may_fail(server, "drain")
        self.kill(server)
        taker.process.stdin.write("check 7\n")
        taker.process.stdin.flush()
        time.sleep(2)
        self.assertEqual(runner.sessions_of(self.tree, server), [])
        self.ctl(server, "drain", "--undo")
        self.assertEqual(taker.process.stdout.readline(), "0\n")


if __name__ == "__main__":
    unittest.main(verbosity=2)
