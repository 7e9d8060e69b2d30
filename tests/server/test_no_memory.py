#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Every allocation of cricket-server's own code fails once, one after another: a call may fail, the server goes on."""
import os
import shutil
import struct
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import wire  # noqa: E402
from fixture import ServerTest, wait_until  # noqa: E402

FAULT = os.environ.get("CKT_TEST_ALLOC_FAULT", "")
PS, GUESS_MAX = 1, 600


class NoMemory(ServerTest):
    def setUp(self):
        super().setUp()
        self.file = os.path.join(self.dir, "fault")
        self.arm(-1)
        self.server = self.start(env={"LD_PRELOAD": FAULT, "CKT_ALLOC_FAULT": self.file})

    def arm(self, number):
        with open(self.file, "r+b" if os.path.exists(self.file) else "w+b") as f:
            f.write(struct.pack("qq", number, 0))

    def disarm(self):
        """True where an allocation has failed."""
        with open(self.file, "rb") as f:
            failed = struct.unpack("qq", f.read(16))[1]
        self.arm(-1)
        return failed > 0

    def each_fault(self, action):
        for number in range(GUESS_MAX):
            self.arm(number)
            try:
                good = action()
            except (wire.Closed, OSError, ValueError):
                good = False
            fired = self.disarm()
            self.assertIsNone(self.server.poll(), "allocation %d ended the server:\n%s" % (number, self.log()[-2000:]))
            if not fired:
                # What the fault before has left is over soon: a connection that ends lets its session go.
                wait_until(lambda: good or action(), what="without a fault it fails")
                return number
        self.fail("no end of allocations")

    def session(self):
        with wire.Peer(self.socket, timeout=10) as peer:
            return peer.hello(wire.NEW)[0] == wire.OK

    def test_hello_and_listing(self):
        def listing():
            with wire.Peer(self.socket, timeout=10) as peer:
                if peer.hello(wire.HELLO_CONTROL)[0] != wire.OK:
                    return False
                peer.call(PS)
                return True
        self.assertGreater(self.each_fault(listing), 3)
        self.assertEqual(self.ps(), [])

    def test_sessions(self):
        self.assertGreater(self.each_fault(self.session), 10)
        self.assertTrue(self.session())

    def test_checkpoint(self):
        peer = wire.Peer(self.socket)
        self.addCleanup(peer.close)
        status, session = peer.hello(wire.NEW)
        self.assertEqual(status, wire.OK)
        # A fault while a session is handed over ends its start; this is about one that runs.
        self.assertIn(session, [s["session"] for s in self.ps()])
        image = os.path.join(self.dir, "image")

        def checkpoint():
            shutil.rmtree(image, ignore_errors=True)
            done = self.ctl("checkpoint", session, image)
            if done.returncode:
                self.assertNotEqual(done.stderr, "")
            return done.returncode == 0
        self.each_fault(checkpoint)
        self.assertIn(session, [s["session"] for s in self.ps()])


if __name__ == "__main__":
    unittest.main()
