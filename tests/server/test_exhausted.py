#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A server without descriptors, and a clock that steps, on the soft GPU: clear words, nothing half done, and the sessions that run go on."""
import json
import os
import resource
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from whole import PROGRAM, Whole, runner  # noqa: E402

DAY_S = 86400


def limited(what, value):
    """For preexec_fn: the soft and the hard limit."""
    return lambda: resource.setrlimit(what, (value, value))


class Exhausted(Whole):
    def try_program(self, server):
        return subprocess.run([self.tree.tool("cricket-run"), "--server", server.address, PROGRAM], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=60, check=False, env={**runner.clean_environment(), "HOME": self.home})

    def test_descriptors(self):
        """A server with few descriptors refuses a session with a sentence, and takes one again when there is room."""
        expected = self.expected()
        server = runner.Server(self.tree, os.path.join(self.dir, "server"), "soft", preexec_fn=limited(resource.RLIMIT_NOFILE, 40))
        self.servers.append(server)
        begun, refused = [], None
        while refused is None and len(begun) < 40:
            directory = os.path.join(self.dir, "p%d" % len(begun))
            os.mkdir(directory)
            point = os.path.join(directory, "phase")
            environment = {**runner.clean_environment(), "CKT_TEST_PHASE_FILE": point, "HOME": self.home}
            program = runner.Program(directory, [self.tree.tool("cricket-run"), "--server", server.address, PROGRAM], environment)
            self.programs.append(program)
            self.wait(lambda program=program, point=point: program.process.poll() is not None or os.path.exists(point + ".ready"))
            if program.process.poll() is None:
                begun.append((program, point))
            else:
                refused = self.stderr_of(program)
        self.assertGreater(len(begun), 0)
        self.assertRegex(refused or "", "descriptors|sessions|connections")
        for program, point in begun:
            for suffix in ("", "2", "3"):
                open(point + ".go" + suffix, "w", encoding="utf-8").close()
            code, out, err = program.wait(60)
            self.assertEqual((code, out), (0, expected), err)
        self.wait(lambda: not server.workers())
        self.assertEqual(self.try_program(server).stdout.encode(), expected)

    def test_clock(self):
        """The clock of the day goes back and forth by days under a session that runs, is parked, comes back, and moves."""
        step = os.path.join(self.dir, "step")
        environment = {"LD_PRELOAD": os.environ["CKT_TEST_CLOCK_STEP"], "CKT_CLOCK_STEP": step}
        servers = [self.server(name, env=environment) for name in ("first", "second")]
        program, session = self.start(servers[0], CRICKET_RECONNECT_TIMEOUT="60")
        image = os.path.join(self.dir, "image-%d")
        for number, seconds in enumerate((3 * DAY_S, -3 * DAY_S, 3600, 0)):
            with open(step, "w", encoding="utf-8") as f:
                f.write(str(seconds))
            here, there = servers
            self.wait(lambda here=here: self.state(here, session) == "running")
            self.ctl(here, "checkpoint", session, image % number, "--stop")
            self.assertIsNone(program.process.poll())
            self.ctl(here, "restore", image % number)
            self.wait(lambda here=here: self.state(here, session) == "running")
            self.ctl(here, "pause", session)
            self.ctl(here, "resume", session)
            self.ctl(here, "migrate", session, "--to", there.address)
            self.wait(lambda there=there: self.state(there, session) == "running")
            self.assertTrue(json.loads(self.ctl(there, "info", "--json"))["started"])
            servers.reverse()
        self.assertEqual(self.finish(program)[0], self.expected())


if __name__ == "__main__":
    unittest.main(verbosity=2)
