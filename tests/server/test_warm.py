#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""--warm: workers that are started before anybody asks for a session; who gets one, and what it may be."""
import glob
import json
import os
import re
import signal
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from test_uids import FIRST, Ranged, ids  # noqa: E402
from whole import PROGRAM, Whole, runner  # noqa: E402

MANY = 3


class Warm(Whole):
    def warm(self, server):
        """The workers that are ready for a session."""
        # Read once: what becomes ready between two looks could have been taken since the first.
        log = self.log_of(server)
        ended = set(re.findall(r"warm worker (\d+)(?: ended|: ending it)", log))
        taken = set(re.findall(r"warm worker (\d+) started for", log))
        ready = re.findall(r"warm worker (\d+): ready", log)
        return [int(pid) for pid in ready if pid not in ended | taken]

    def taken(self, server):
        return [int(pid) for pid in re.findall(r"warm worker (\d+) started for", self.log_of(server))]

    def warm_server(self, *options, name="server", count=1, env=None):
        return self.server(name, "--warm", str(count), "--log-level", "debug", *options, env=env)

    def run_whole(self, server, name):
        program, _ = self.start(server, name)
        done = self.finish(program)
        # The server may hear of its end later, and a warm worker be ready before that.
        self.wait(lambda: runner.sessions_of(self.tree, server) == [])
        return done

    def wait_warm(self, server, count=1):
        self.wait(lambda: len(self.warm(server)) == count)


class OneOwner(Warm):
    """Its workers share a cache of compiled kernels, so that the first session brings the first warm worker."""

    def test_one_after_the_other(self):
        server = self.warm_server("--max-sessions", "1")
        self.assertEqual(server.workers(), [], "nobody's worker would have no cache")
        first, _ = self.run_whole(server, "first")
        for name in ("second", "third"):
            self.wait_warm(server)
            (ready,) = self.warm(server)
            self.assertEqual(runner.sessions_of(self.tree, server), [], "it is no session")
            out, _ = self.run_whole(server, name)
            self.assertEqual(out, first)
            self.assertEqual(self.taken(server)[-1], ready)
        server.stop()
        self.assertEqual(glob.glob(server.socket + ".d/*.sock"), [])

    def test_several_at_once(self):
        server = self.warm_server(count=MANY)
        self.run_whole(server, "first")
        self.wait_warm(server, MANY)
        ready = self.warm(server)
        programs = []
        for i in range(MANY):
            directory = os.path.join(self.dir, str(i))
            os.mkdir(directory)
            programs.append(runner.Program(directory, [self.tree.tool("cricket-run"), "--server", server.address, PROGRAM],
                                           {**runner.clean_environment(), "HOME": self.home}))
        self.programs += programs
        for program in programs:
            code, out, err = program.wait(60)
            self.assertEqual(code, 0, out + err)
        self.assertEqual(sorted(self.taken(server)), sorted(ready))

    def test_dying(self):
        """One that dies is named and replaced; one whose server dies ends itself."""
        server = self.warm_server()
        self.run_whole(server, "first")
        self.wait_warm(server)
        (ready,) = self.warm(server)
        os.kill(ready, signal.SIGKILL)
        self.wait(lambda: "warm worker %d ended (signal 9, Killed)" % ready in self.log_of(server))
        self.wait_warm(server)
        (other,) = self.warm(server)
        self.assertNotEqual(other, ready)
        server.kill()
        self.wait(lambda: not runner.alive(other))
        os.unlink(os.path.join(server.directory, "address"))
        again = self.warm_server()
        self.assertEqual(glob.glob(again.socket + ".d/*.sock"), [])
        self.assertEqual(runner.sessions_of(self.tree, again), [])

    def test_short_memory(self):
        """The warm workers of a GPU end before an allocation fails, and come back with a session's end."""
        server = self.warm_server(count=2, env={"CRICKET_SOFT_DEVICES": "12.0:1G"})
        self.run_whole(server, "first")
        self.wait_warm(server, 2)
        ready = self.warm(server)
        # What finds memory takes none from them.
        self.run_whole(server, "second")
        self.assertNotIn("is short of memory", self.log_of(server))
        self.wait_warm(server, 2)
        left = set(self.warm(server))
        self.fill_memory(server)
        taken = self.taken(server)[-1]
        self.assertIn(taken, left)
        (ended,) = left - {taken}
        self.assertEqual(len(set(ready) & left), 1)
        # It, and another one where the program came so late to its allocation that the taken one had been made up for.
        log = self.log_of(server)
        ending = re.findall(r"warm worker (\d+): ending it: its GPU is short of memory", log)
        self.assertIn(str(ended), ending)
        self.assertIn("GPU 0 is short of memory: ending its %d warm worker%s\n" % (len(ending), "" if len(ending) == 1 else "s"), log)
        self.assertFalse(runner.alive(ended))
        # The session has ended since, and with it the want.
        self.wait_warm(server, 2)

    def fill_memory(self, server):
        directory = os.path.join(self.dir, "full")
        os.mkdir(directory)
        program = runner.Program(directory, [self.tree.tool("cricket-run"), "--server", server.address, os.environ["CKT_TEST_MEMLIMIT"], "1024"],
                                 {**runner.clean_environment(), "HOME": self.home})
        self.programs.append(program)
        code, out, err = program.wait(60)
        self.assertEqual(code, 0, out + err)
        self.assertIn(b"refused below 1024 MiB", out)

    def test_restored(self):
        """A session that moves from a fresh worker to a warm one and back has the same history, also of addresses."""
        server, cold = self.warm_server(), self.server("cold", "--warm", "0")
        for each in server, cold:
            each.address = "unix:" + each.socket
        expected = self.run_whole(cold, "expected")[0]
        self.run_whole(server, "first")
        self.wait_warm(server)
        program, session = self.start(cold, "moving")
        image = os.path.join(self.dir, "image")
        self.ctl(cold, "checkpoint", session, image, "--stop")
        before = len(self.taken(server))
        self.ctl(server, "restore", image)
        self.assertEqual(len(self.taken(server)), before + 1)
        self.ctl(server, "migrate", session, "--to", cold.address)
        self.assertEqual(self.finish(program)[0], expected)


    def test_restored_otherwise(self):
        """An image of a worker that was started in another way takes a fresh worker in the end."""
        server, cold = self.warm_server(), self.server("cold", "--warm", "0", env={"CUDA_MODULE_LOADING": "EAGER"})
        for each in server, cold:
            each.address = "unix:" + each.socket
        expected = self.run_whole(cold, "expected")[0]
        self.run_whole(server, "first")
        program, session = self.start(cold, "moving")
        image = os.path.join(self.dir, "image")

        def file():
            self.ctl(cold, "checkpoint", session, image, "--stop")
            self.ctl(server, "restore", image)

        def memory():
            self.ctl(server, "checkpoint", session, "--to-memory", "image", "--stop")
            self.ctl(server, "restore", "memory:image")

        def preload():
            self.ctl(server, "migrate", session, "--to", cold.address)
            self.wait(lambda: self.state(cold, session) == "running")
            self.ctl(cold, "migrate", session, "--to", server.address)

        for restore in file, memory, preload:
            self.wait_warm(server)
            before, log = len(self.taken(server)), len(self.log_of(server))
            restore()
            self.wait(lambda: self.state(server, session) == "running")
            new = self.log_of(server)[log:]
            self.assertEqual(new.count("a warm worker was started in another way than the image's worker: a fresh one is needed"), 2, restore)
            self.assertEqual(len(self.taken(server)), before + 1)
            worker = json.loads(self.ctl(server, "stats", session, "--json"))["worker_pid"]
            self.assertIn(": worker %d started for a restore" % worker, new)
        self.assertEqual(self.finish(program)[0], expected)


class Owners(Warm, Ranged):
    def ranged(self, count=10):
        server = self.server("server", "--uid-range", "%d-%d" % (FIRST, FIRST + count - 1), "--tokens", self.tokens, "--log-level", "debug",
                             "--warm", "1")
        os.rename(server.socket, server.socket + ".hidden")
        self.root = ["--server", "unix:" + server.socket + ".hidden"]
        return server

    def test_two_owners(self):
        """The first takes nobody's worker with its group; the second has a fresh one, and the next warm one is theirs."""
        server = self.ranged()
        self.wait_warm(server)
        (nobodys,) = self.warm(server)
        uid = ids(nobodys)[0]
        self.assertIn(uid, range(FIRST, FIRST + 10))
        a, _, alice = self.run_to_mid(server, "alice", "a")
        self.assertEqual((alice, ids(alice)[0]), (nobodys, uid))
        self.wait_warm(server)
        (alices,) = self.warm(server)
        self.assertEqual(ids(alices)[0], uid)
        b, _, bob = self.run_to_mid(server, "bob", "b")
        self.assertNotIn(bob, (alices, alice))
        self.assertNotEqual(ids(bob)[0], uid)
        self.wait(lambda: len(self.warm(server)) == 1 and self.warm(server) != [alices])
        (bobs,) = self.warm(server)
        self.assertEqual(ids(bobs)[0], ids(bob)[0])
        c, _, also = self.run_to_mid(server, "bob", "c")
        self.assertEqual(also, bobs)
        shms = [os.stat("/proc/%d/root/dev/shm" % pid).st_dev for pid in (alice, bob, also)]
        self.assertEqual(shms[1], shms[2])
        self.assertNotEqual(shms[0], shms[1])
        for process in (a, b, c):
            self.go_on(process)


    def test_last_id(self):
        """A warm worker keeps no id from an owner."""
        server = self.ranged(1)
        for owner in ("alice", "bob", "alice"):
            self.wait_warm(server)
            self.go_on(self.run_to_mid(server, owner, owner + str(len(self.programs)))[0])
            self.wait(lambda: self.sessions() == {})
            self.wait_warm(server)


if __name__ == "__main__":
    unittest.main(verbosity=2)
