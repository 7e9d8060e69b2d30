#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Sessions that sleep (--idle-context): their workers end, and the next command of the program brings them back.  Over programs on the soft GPU."""
import contextlib
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from takers import Taker  # noqa: E402
from whole import Whole, runner  # noqa: E402


class IdleContext(Whole):
    def setUp(self):
        super().setUp()
        self.takers = []
        self.images = os.path.join(self.dir, "images")

    def tearDown(self):
        for taker in self.takers:
            if not taker.process.stdout.closed:
                with contextlib.suppress(OSError):
                    taker.end()
        super().tearDown()

    def sleeping(self, name="server", *options, after="1s"):
        # Else an earlier server's file says that this one is ready.
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(self.dir, name, "address"))
        server = self.server(name, "--idle-context", after, "--auto-dir", self.images, *options, env={"CRICKET_SOFT_DEVICES": "12.0:8G"})
        server.tcp, server.address = server.address, "unix:" + server.socket
        return server

    def taker(self, server, mib=1, **env):
        taker = Taker(self, server, **env)
        self.takers.append(taker)
        self.assertEqual(taker.ask("alloc", mib), 0)
        self.assertEqual(taker.ask("fill", 7), 0)
        return taker

    def session(self, server, taker):
        found = [s for s in runner.sessions_of(self.tree, server) if s["pid"] == taker.process.pid]
        return found[0] if found else None

    def asleep(self, server, *takers):
        self.wait(lambda: all((self.session(server, t) or {}).get("state") == "asleep" for t in takers))

    def test_sleeps(self):
        """An idle session's worker ends, and the next command brings it back with what it had."""
        server = self.sleeping()
        taker = self.taker(server)
        self.asleep(server, taker)
        self.assertEqual(server.workers(), [])
        self.assertEqual(taker.ask("check", 7), 0)
        self.assertEqual(self.session(server, taker)["state"], "running")
        self.assertEqual(taker.end(), "")


if __name__ == "__main__":
    unittest.main()
