#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""cricket-run --place: one of several servers, by what they report, on the soft GPU."""
import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from whole import Whole, runner  # noqa: E402


class Place(Whole):
    def run_at(self, *options, servers, **env):
        """The program under cricket-run: its exit status and standard error."""
        command = [self.tree.tool("cricket-run"), *(("--server", servers) if servers else ()), *options, os.environ["CKT_TEST_PROGRAM"]]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env={**runner.clean_environment(), "HOME": self.home, **env})
        return done.returncode, done.stderr

    def ended(self, server):
        """Programs that have run there."""
        with open(server.log, encoding="utf-8") as f:
            return f.read().count("ended (")

    def test_choice(self):
        small = self.server("small", env={"CRICKET_SOFT_DEVICES": "12.0:2G"})
        large = self.server("large", env={"CRICKET_SOFT_DEVICES": "12.0:8G"})
        both = ",".join((small.address, large.address))
        for policy, server, other in (("least-loaded", large, small), ("pack", small, large)):
            before = self.ended(server), self.ended(other)
            code, said = self.run_at("--place", policy, servers=both)
            self.assertEqual(code, 0, said)
            self.wait(lambda server=server, before=before: self.ended(server) == before[0] + 1)
            self.assertEqual(self.ended(other), before[1])
        # From the variable, with one that nobody answers at.
        nobody = os.path.join(self.dir, "nobody")
        code, said = self.run_at("--place", "spread", servers=None, REMOTE_GPU_ADDRESS=f"unix:{nobody},unix:{large.socket}")
        self.assertEqual(code, 0, said)
        self.assertIn(f"{nobody}", said)
        self.assertIn("it is left out", said)
        self.wait(lambda: self.ended(large) == 2)

    def test_wrong(self):
        server = self.server("server")
        for options, servers, status, words in ((("--place", "best"), server.address, 125, "least-loaded, pack or spread"),
                                                (("--place", "pack"), None, 125, "no servers to choose from"),
                                                (("--place", "pack", "--soft"), None, 2, "exclude each other"),
                                                (("--place", "pack"), ",".join([server.address] * 17), 125, "more than 16 servers"),
                                                (("--place", "pack"), "unix:" + os.path.join(self.dir, "nobody"), 125, "no server can take a program")):
            code, said = self.run_at(*options, servers=servers)
            self.assertEqual((code, words in said), (status, True), said)


if __name__ == "__main__":
    unittest.main(verbosity=2)
