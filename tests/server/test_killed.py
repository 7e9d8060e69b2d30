#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""kill -9 at every numbered point, with real workers and a real client: the session goes on where it was, or its image restores and the
program ends as if nothing had happened; nothing half-written looks whole; no process is left."""
import os
import signal
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from whole import Whole, runner  # noqa: E402

KILLED = -signal.SIGKILL


class Killed(Whole):
    def setUp(self):
        super().setUp()
        self.wanted = None
        self.number = 0

    def name(self, what):
        self.number += 1
        return "%s%d" % (what, self.number)

    def ends_well(self, program):
        if self.wanted is None:
            self.wanted = self.expected()
        self.assertEqual(self.finish(program)[0], self.wanted)

    def at_faulty_server(self, point):
        """A program whose session was restored on a server whose worker dies at the point: (program, session, server, image of before)"""
        first, image = self.server(self.name("first")), os.path.join(self.dir, self.name("image"))
        program, session = self.start(first, self.name("p"))
        self.ctl(first, "checkpoint", session, image, "--stop")
        first.kill()
        faulty = self.server(self.name("faulty"), env={"CRICKET_FAULT": str(point)})
        self.ctl(faulty, "restore", image)
        self.wait(lambda: self.state(faulty, session) == "running")
        return program, session, faulty, image

    def goes_on_from(self, program, image):
        second = self.server(self.name("second"))
        self.ctl(second, "restore", image)
        self.ends_well(program)
        self.wait(lambda: runner.sessions_of(self.tree, second) == [])

    def gone(self, server, session):
        self.wait(lambda: self.state(server, session) is None)
        self.assertEqual(server.workers(), [], "a worker is left")

    # ---- Workers

    def test_worker_while_saving(self):
        for point in (1, 2, 3, 4, 5):
            program, session, faulty, image = self.at_faulty_server(point)
            half = os.path.join(self.dir, self.name("half"))
            self.assertNotEqual(self.may_fail(faulty, "checkpoint", session, half)[0], 0, point)
            self.assertFalse(os.path.exists(half), point)
            self.assertEqual([n for n in os.listdir(self.dir) if ".partial." in n], [], point)
            self.gone(faulty, session)
            self.goes_on_from(program, image)

    def test_worker_while_restoring(self):
        first, image = self.server("first"), os.path.join(self.dir, "image")
        program, session = self.start(first)
        self.ctl(first, "checkpoint", session, image, "--stop")
        first.kill()
        for point in (10, 11, 12, 13):
            faulty = self.server(self.name("faulty"), env={"CRICKET_FAULT": str(point)})
            self.assertEqual(self.may_fail(faulty, "restore", image)[0], 1, point)
            self.assertEqual(runner.sessions_of(self.tree, faulty), [], point)
            self.assertEqual(faulty.workers(), [], point)
        self.assertTrue(self.image_is_whole(image))
        self.goes_on_from(program, image)

    def test_worker_of_a_paused_session(self):
        for point in (20, 21, 22, 23):
            program, session, faulty, image = self.at_faulty_server(point)
            code = self.may_fail(faulty, "pause", session)[0]
            self.assertEqual(code == 0, point >= 22, point)
            if point >= 22:
                self.assertNotEqual(self.may_fail(faulty, "resume", session)[0], 0, point)
            self.gone(faulty, session)
            self.goes_on_from(program, image)

    def test_worker_that_is_told_to_end(self):
        program, session, faulty, _ = self.at_faulty_server(30)
        image = os.path.join(self.dir, "whole")
        self.ctl(faulty, "checkpoint", session, image, "--stop")
        self.gone(faulty, session)
        self.assertTrue(self.image_is_whole(image))
        self.goes_on_from(program, image)

    def test_worker_that_is_told_to_end_by_a_move(self):
        program, session, faulty, _ = self.at_faulty_server(30)
        target = self.server("target")
        self.ctl(faulty, "migrate", session, "--to", target.address)
        self.gone(faulty, session)
        # Its server knows where it went, and the copy has everything.
        self.wait(lambda: self.state(target, session) == "running")
        self.ends_well(program)

    def test_worker_that_cannot_end(self):
        program, session, faulty, _ = self.at_faulty_server("fail:30")
        target, image = self.server(self.name("target")), os.path.join(self.dir, self.name("image"))
        self.assertEqual(self.may_fail(faulty, "checkpoint", session, image, "--stop")[0], 1)
        self.assertEqual(self.may_fail(faulty, "migrate", session, "--to", target.address)[0], 1)
        # Where it was, and nowhere else; its client may be on its way back to it.
        self.wait(lambda: self.state(faulty, session) == "running")
        self.wait(lambda: runner.sessions_of(self.tree, target) == [])
        self.ends_well(program)

    def test_worker_that_is_taken_ahead(self):
        first = self.server("first")
        program, session = self.start(first)
        for point in (10, 12, 13, 16):
            faulty = self.server(self.name("faulty"), env={"CRICKET_FAULT": str(point)})
            self.assertEqual(self.may_fail(first, "migrate", session, "--to", faulty.address)[0], 1, point)
            self.wait(lambda: self.state(first, session) == "running")
            # cricketctl may notice the death before that server does.
            self.wait(lambda faulty=faulty: not runner.sessions_of(self.tree, faulty))
            self.assertEqual(faulty.workers(), [], point)
        self.ends_well(program)

    # ---- cricketctl

    def test_cricketctl_of_a_checkpoint(self):
        first, last = self.server("first"), None
        program, session = self.start(first)
        for point in (201, 202, 203):
            image = os.path.join(self.dir, self.name("image"))
            self.assertEqual(self.may_fail(first, "checkpoint", session, image, "--stop", CRICKET_FAULT=str(point))[0], KILLED)
            self.wait(lambda: self.state(first, session) == "running")
            self.assertEqual(os.path.exists(image), point == 203)
            last = image
        self.assertTrue(self.image_is_whole(last))
        self.ends_well(program)

    def test_cricketctl_of_a_move(self):
        """Whatever a killed migration left at the target is behind what the program sees afterwards: the next one replaces it."""
        servers = [self.server("first"), self.server("second")]
        program, session = self.start(servers[0])
        temporary = os.path.join(self.dir, "tmp")
        os.mkdir(temporary)
        for point in (207, 211, 208, 209, 210):
            here, there = servers
            code = self.may_fail(here, "migrate", session, "--to", there.address, CRICKET_FAULT=str(point), TMPDIR=temporary)[0]
            self.assertEqual(code, KILLED, point)
            where = there if point == 210 else here
            self.wait(lambda: self.state(where, session) == "running")
            if point == 210:
                self.assertEqual(self.state(here, session), None)
            elif point == 209:
                self.wait(lambda: self.state(there, session) == "restored")
            else:
                self.wait(lambda: runner.sessions_of(self.tree, there) == [])
            if point == 209:
                # Over it comes the session itself, and goes back.
                for here, there in (servers, servers[::-1]):
                    self.ctl(here, "migrate", session, "--to", there.address)
                    self.wait(lambda: self.state(there, session) == "running")
                    self.wait(lambda: runner.sessions_of(self.tree, here) == [])
        self.ends_well(program)

    # ---- The server

    def test_server(self):
        for point, words in ((101, ["checkpoint", "SESSION", "IMAGE"]), (102, ["checkpoint", "SESSION", "IMAGE", "--stop"])):
            server = self.server(self.name("server"), env={"CRICKET_FAULT": str(point)})
            program, session = self.start(server, self.name("p"))
            workers = server.workers()
            image = os.path.join(self.dir, self.name("image"))
            self.assertNotEqual(self.may_fail(server, *[w.replace("SESSION", session).replace("IMAGE", image) for w in words])[0], 0)
            self.assertEqual(server.process.wait(), KILLED)
            self.assertEqual(os.path.exists(image), point == 102)
            # Its session needs no server to go on, nor one to end.
            self.ends_well(program)
            runner.end_all(workers, "the program")

    def test_server_of_the_source(self):
        source, target = self.server("source", env={"CRICKET_FAULT": "102"}), self.server("target")
        program, session = self.start(source)
        workers = source.workers()
        self.assertNotEqual(self.may_fail(source, "migrate", session, "--to", target.address)[0], 0)
        self.assertEqual(source.process.wait(), KILLED)
        # The copy waits for a claim that does not come; it never gets the program while its own session lives.
        self.ends_well(program)
        self.wait(lambda: self.state(target, session) == "restored")
        runner.end_all(workers, "the program")
        self.ctl(target, "kill", session)

    def test_server_of_the_target(self):
        source, target = self.server("source"), self.server("target", env={"CRICKET_FAULT": "103"})
        program, session = self.start(source)
        workers = target.workers()
        self.assertNotEqual(self.may_fail(source, "migrate", session, "--to", target.address)[0], 0)
        self.assertEqual(target.process.wait(), KILLED)
        self.wait(lambda: self.state(source, session) == "running")
        runner.end_all(workers, "the target's server")
        self.ends_well(program)

    # ---- The client

    def test_client(self):
        server = self.server("server")
        for what in ("running", "frozen", "parked"):
            program, session = self.start(server, self.name("p"))
            image = os.path.join(self.dir, self.name("image"))
            if what == "parked":
                self.ctl(server, "checkpoint", session, image, "--stop")
            program.process.send_signal(signal.SIGKILL)
            program.process.wait()
            if what == "frozen":
                self.may_fail(server, "checkpoint", session, image)
            self.gone(server, session)
            self.assertTrue(what == "running" or not os.path.exists(image) or self.image_is_whole(image))


if __name__ == "__main__":
    unittest.main(verbosity=2)
