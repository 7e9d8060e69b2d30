#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""No two servers go on with one image unless they are told to: one directory, a shared one, a copied one, and everything that dies in between."""
import json
import os
import shutil
import socket
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from whole import Whole, runner  # noqa: E402


class Claim(Whole):
    def setUp(self):
        super().setUp()
        self.image = os.path.join(self.dir, "image")

    def stopped(self, **env):
        """(program, session) whose image is complete, its first server gone."""
        first = self.server("first")
        program, session = self.start(first, **env)
        self.ctl(first, "checkpoint", session, self.image, "--stop")
        workers = first.workers()
        first.kill()
        runner.end_all(workers, "its server was killed")
        return program, session

    def claim(self, image=None, **changes):
        """What the claim says; with changes, it says that afterwards."""
        with open(os.path.join(image or self.image, "claim.json"), "r+", encoding="utf-8") as f:
            said = json.load(f)
            if changes:
                said.update(changes)
                f.seek(0)
                f.truncate()
                json.dump(said, f)
        return said

    def names(self, server):
        return [session["session"] for session in runner.sessions_of(self.tree, server)]

    def goes_unclaimed(self, server, session):
        """The copy of a session that was restored at the server waits, goes, and no client had it in between."""
        self.wait(lambda: self.state(server, session) is None)

        seen = []

        def told():
            events = [json.loads(line) for line in self.ctl(server, "--json", "events").splitlines()]
            seen[:] = [event["event"] for event in events if event["session"] == session]
            return seen

        # cricketctl does not wait long for the first of them, and may find none the next time.
        self.wait(told)
        self.assertEqual(seen[0], "restored")
        self.assertNotIn("the client is connected", self.log_of(server))

    def refused(self, server, *words, because, image=None):
        before = self.names(server)
        code, out, err = self.may_fail(server, "restore", image or self.image, *words)
        self.assertEqual((code, out), (1, ""), err)
        self.assertIn(because, err)
        self.assertEqual(self.names(server), before)
        return err

    def test_one_server(self):
        """The session is there: its server says so, and the claim stays."""
        program, session = self.stopped()
        second = self.server("second")
        self.ctl(second, "restore", self.image)
        said = self.claim()
        self.assertEqual((said["session"], said["restored"], said["server"]), (session, True, "unix:" + second.socket))
        self.assertEqual(os.stat(self.image + "/claim.json").st_mode & 0o777, 0o600)
        self.refused(second, because="is already here")
        self.assertEqual(self.claim(), said)
        # Once it has ended, the image may be used again.
        self.ctl(second, "kill", session)
        self.ctl(second, "restore", self.image)
        self.assertEqual(self.finish(program)[0], self.expected())

    def test_two_servers(self):
        program, session = self.stopped()
        second, third = self.server("second"), self.server("third")
        self.ctl(second, "restore", self.image)
        err = self.refused(third, because=f"session {session} was restored from it at unix:{second.socket} on ")
        self.assertIn("and goes on there: end it there first, or make a further copy with --fork", err)
        # Its program may be back already, or still on its way.
        self.wait(lambda: self.state(second, session) in ("restored", "running"))
        # It ends there: that is seen, and nobody needs to say so.
        self.ctl(second, "kill", session)
        self.ctl(third, "restore", self.image)
        self.refused(second, because="and goes on there")
        self.assertEqual(self.finish(program)[0], self.expected())

    def test_server_killed(self):
        """Its worker may go on without it; once that is dead too, the image is free."""
        program, session = self.stopped()
        second, third = self.server("second"), self.server("third")
        self.ctl(second, "restore", self.image)
        self.wait(lambda: self.state(second, session) == "running")
        workers = second.workers()
        second.kill()
        # The client is connected to the worker, not to the server.
        self.refused(third, because="and goes on there")
        for worker in workers:
            os.kill(worker, 9)
        runner.end_all(workers, "killed")
        self.wait(lambda: not self.listens(second, session))
        self.ctl(third, "restore", self.image)
        self.assertEqual(self.finish(program)[0], self.expected())

    def listens(self, server, session):
        """Whether the session's worker would take a connection: a process that dies closes its sockets one after the other."""
        with socket.socket(socket.AF_UNIX) as connection:
            return connection.connect_ex(os.path.join(server.socket + ".d", session + ".sock")) == 0

    def test_shared_directory(self):
        """Claimed from another host: nobody here can tell whether that session has ended."""
        program, session = self.stopped()
        second = self.server("second")
        self.ctl(second, "restore", self.image)
        self.ctl(second, "kill", session)
        third = self.server("third")
        self.claim(host="elsewhere")
        err = self.refused(third, because="on elsewhere")
        self.assertIn("and may go on there: if that server has lost it, add --again; for a further copy, --fork", err)
        self.assertEqual(self.claim()["host"], "elsewhere")
        self.refused(third, "--gpu", "63", because="on elsewhere")
        # What fails leaves the claim of the one that had it.
        self.refused(third, "--again", "--gpu", "63", because="GPU")
        self.assertEqual(self.claim()["host"], "elsewhere")
        # A host of the same name, or this one before its last start; and a container, which has another directory under that path.
        said = self.claim(host=os.uname().nodename)
        self.claim(boot="another")
        self.refused(third, because="and may go on there")
        self.claim(boot=said["boot"], place="1:2")
        self.refused(third, because="and may go on there")
        self.claim(place="")
        self.refused(third, because="and may go on there")
        self.claim(place=said["place"], server="127.0.0.1:9")
        self.refused(third, because="and may go on there")
        self.ctl(third, "restore", self.image, "--again")
        self.assertNotEqual(self.claim()["host"], "elsewhere")
        self.assertEqual(self.finish(program)[0], self.expected())

    def test_copied_directory(self):
        """Two servers have a copy each: the client goes on with one, and the other never gets it."""
        program, session = self.stopped()
        copy = self.image + "-copy"
        shutil.copytree(self.image, copy)
        # Only where nobody shall come may the time be short.
        second, third = self.server("second"), self.server("third", "--claim-timeout", "3")
        self.ctl(second, "restore", self.image)
        self.wait(lambda: self.state(second, session) == "running")
        # Its file for the client names the later one, where the client is refused if it ever asks.
        self.ctl(third, "restore", copy)
        self.goes_unclaimed(third, session)
        self.wait(lambda: "the client is connected" in self.log_of(second))
        self.assertEqual(self.state(second, session), "running")
        # A copy that is made later has the claim with it.
        late = self.image + "-late"
        shutil.copytree(self.image, late)
        self.refused(third, because="and goes on there", image=late)
        self.assertEqual(self.finish(program)[0], self.expected())

    def test_both_copies_wait(self):
        """Both are there before the client comes: it takes one, and is refused by the other from then on."""
        program, session = self.stopped(CRICKET_RECONNECT_TIMEOUT="30")
        copy = self.image + "-copy"
        shutil.copytree(self.image, copy)
        # So long that both wait when the client comes, which may be late, and then the other one goes.
        second, third = self.server("second", "--claim-timeout", "20"), self.server("third", "--claim-timeout", "20")
        jobs = [subprocess.Popen([self.tree.tool("cricketctl"), "--server", server.address, "restore", image], stdout=subprocess.DEVNULL)
                for server, image in ((second, self.image), (third, copy))]
        self.assertEqual([job.wait(60) for job in jobs], [0, 0])
        self.wait(lambda: "running" in (self.state(second, session), self.state(third, session)))
        self.wait(lambda: None in (self.state(second, session), self.state(third, session)))
        self.assertEqual(self.finish(program)[0], self.expected())

    def test_at_the_same_time(self):
        """One directory, two servers, two cricketctl: exactly one of them restores."""
        program, session = self.stopped()
        servers = [self.server("second"), self.server("third")]
        jobs = [subprocess.Popen([self.tree.tool("cricketctl"), "--server", server.address, "restore", self.image], stdout=subprocess.DEVNULL,
                                 stderr=subprocess.PIPE, text=True) for server in servers]
        said = [job.communicate(timeout=60)[1] for job in jobs]
        self.assertEqual(sorted(job.returncode for job in jobs), [0, 1], said)
        self.assertTrue(any("another cricketctl is restoring it" in err or "goes on there" in err for err in said), said)
        self.assertEqual(sorted(len(runner.sessions_of(self.tree, server)) for server in servers), [0, 1])
        self.assertEqual(self.finish(program)[0], self.expected())

    def test_killed_in_between(self):
        """cricketctl dies between the claim and the restore: the next one restores, here or elsewhere."""
        program, session = self.stopped()
        second, third = self.server("second"), self.server("third")
        for server in (second, second, third):
            code, _, _ = self.may_fail(server, "restore", self.image, CRICKET_FAULT="215")
            self.assertEqual(code, -9)
            self.assertEqual((self.claim()["restored"], self.claim()["server"]), (False, "unix:" + server.socket))
            self.assertEqual(runner.sessions_of(self.tree, server), [])
        # Before it wrote anything.
        os.truncate(self.image + "/claim.json", 0)
        self.ctl(second, "restore", self.image)
        self.assertEqual(self.finish(program)[0], self.expected())

    def test_files(self):
        """Whatever lies there under the claim's name."""
        program, session = self.stopped()
        second, path = self.server("second"), self.image + "/claim.json"
        for text in ("x", "{}", "[]", '{"format":2}', '{"format":1,"host":1}', "\0" * 5000):
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
            self.refused(second, because="its claim.json cannot be read")
            with open(path, encoding="utf-8") as f:
                self.assertEqual(f.read(), text)
        os.unlink(path)
        os.symlink("/etc/hostname", path)
        self.refused(second, because="cannot write its claim.json")
        os.unlink(path)
        os.mkdir(path)
        self.refused(second, because="cannot write its claim.json")
        # Told to: as if it did not exist, and it is not touched.
        self.ctl(second, "restore", self.image, "--fork")
        self.ctl(second, "kill", session)
        os.rmdir(path)
        # What is refused leaves none.
        self.refused(second, "--gpu", "63", because="GPU")
        self.assertFalse(os.path.exists(path))
        code, _, err = self.may_fail(second, "restore", self.image, "--fork", "--again")
        self.assertEqual(code, 2, err)
        self.ctl(second, "restore", self.image)
        self.assertEqual(self.finish(program)[0], self.expected())

    def test_fork(self):
        """A further copy, on purpose: it is there for a further copy of the program, and the program that has the first one keeps that."""
        program, session = self.stopped()
        second, third = self.server("second"), self.server("third", "--claim-timeout", "3")
        self.ctl(second, "restore", self.image)
        self.wait(lambda: self.state(second, session) == "running")
        said = self.claim()
        self.ctl(third, "restore", self.image, "--fork")
        self.assertEqual(self.claim(), said)
        self.goes_unclaimed(third, session)
        self.assertEqual(self.finish(program)[0], self.expected())


if __name__ == "__main__":
    unittest.main(verbosity=2)
