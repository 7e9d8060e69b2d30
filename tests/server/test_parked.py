#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Where a client looks for its session and how long, with real clients and servers."""
import os
import signal
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from whole import Whole, runner  # noqa: E402


class Parked(Whole):
    def stopped(self, **env):
        """(program, session, image) after --stop, its server killed"""
        first, image = self.server("first"), os.path.join(self.dir, "image")
        program, session = self.start(first, **env)
        self.ctl(first, "checkpoint", session, image, "--stop")
        self.wait(lambda: "stopped on purpose" in self.stderr_of(program))
        workers = first.workers()
        first.kill()
        runner.end_all(workers, "its server was killed")
        return program, session, image

    def gives_up(self, program):
        """It ends by an error that it was told, by no signal, and printed nothing wrong; gives what it said."""
        self.go()
        code, out, err = program.wait(60)
        self.assertGreater(code, 0, out + err)
        self.assertNotIn(b"ok\n", out)
        return err.decode()

    def test_nothing_set(self):
        """Past every limit but that of parking, which is none."""
        program, session, image = self.stopped(CRICKET_RECONNECT_TIMEOUT="1")
        time.sleep(3)
        self.assertIsNone(program.process.poll())
        second = self.server("second")
        self.ctl(second, "restore", image)
        out, err = self.finish(program)
        self.assertEqual(out, self.expected())
        self.assertEqual((err.count("stopped on purpose"), err.count("continues at")), (1, 1), err)

    def test_park_timeout(self):
        program, session, image = self.stopped(CRICKET_PARK_TIMEOUT="1")
        self.wait(lambda: "is lost" in self.stderr_of(program))
        self.gives_up(program)
        self.assertTrue(self.image_is_whole(image))

    def test_reconnect_timeout(self):
        first = self.server("first")
        program, session = self.start(first, CRICKET_RECONNECT_TIMEOUT="1")
        workers = first.workers()
        first.kill()
        for worker in workers:
            os.kill(worker, signal.SIGKILL)
        err = self.gives_up(program)
        self.assertEqual(err.count("is lost"), 1, err)
        self.assertNotIn("on purpose", err)

    def test_standby(self):
        """Its state file tells nothing: the second of the standbys has it."""
        servers = [self.server("standby%d" % i) for i in range(2)]
        program, session, image = self.stopped(CRICKET_STANDBY=",".join(s.address for s in servers))
        code, _, err = self.may_fail(servers[1], "restore", image, HOME=os.path.join(self.dir, "another"))
        self.assertEqual(code, 0, err)
        self.assertEqual(self.finish(program)[0], self.expected())
        self.assertFalse(os.path.exists(os.path.join(self.home, ".local")))

    def test_state_file_that_cannot_be_written(self):
        """The line to run instead is printed, and it is enough."""
        program, session, image = self.stopped()
        second = self.server("second")
        blocked = os.path.join(self.dir, "file")
        open(blocked, "w").close()
        code, _, err = self.may_fail(second, "restore", image, CRICKET_STATE_DIR=os.path.join(blocked, "state"))
        self.assertEqual(code, 0, err)
        (line,) = [line.strip() for line in err.splitlines() if line.strip().startswith("cricketctl redirect")]
        self.assertEqual(line.split()[2], session)
        self.wait(lambda: self.state(second, session) == "restored")
        runner.cricketctl(self.tree, *line.split()[1:])
        self.assertEqual(self.finish(program)[0], self.expected())

    def test_redirect_of_a_move(self):
        """A client that its source could not tell where the session went asks the source's server, or its file."""
        first, second = self.server("first"), self.server("second")
        program, session = self.start(first)
        self.ctl(first, "migrate", session, "--to", second.address)
        self.wait(lambda: self.state(second, session) == "running")
        first.kill()
        self.assertEqual(self.finish(program)[0], self.expected())

    def test_older_copy_is_refused(self):
        """An image that is behind what the program has seen never gets its client."""
        first, image = self.server("first"), os.path.join(self.dir, "image")
        program, session = self.start(first, CRICKET_RECONNECT_TIMEOUT="3")
        self.ctl(first, "checkpoint", session, image)
        self.go()
        self.wait(lambda: program.process.poll() is not None or not runner.sessions_of(self.tree, first))
        self.assertEqual(program.wait(60)[0], 0)
        # The program is gone; nobody claims the copy, which goes.
        # The time runs while cricketctl still restores it.
        second = self.server("second", "--claim-timeout", "5")
        self.ctl(second, "restore", image)
        self.wait(lambda: runner.sessions_of(self.tree, second) == [])
        self.assertEqual(second.workers(), [])
        self.assertTrue(self.image_is_whole(image))


if __name__ == "__main__":
    unittest.main(verbosity=2)
