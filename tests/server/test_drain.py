#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""cricketctl drain: all sessions leave a server that takes no new ones, on the soft GPU."""
import json
import os
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from whole import PROGRAM, Whole, runner  # noqa: E402

RANKS = os.environ["CKT_TEST_RANKS"]


class Drain(Whole):
    def points(self, server, names, **env):
        """Programs at their mid points: {name: (program, session)}"""
        begun, self.all_points = {}, []
        for name in names:
            before = {s["session"] for s in runner.sessions_of(self.tree, server)}
            directory = os.path.join(self.dir, name)
            os.mkdir(directory)
            point = os.path.join(directory, "phase")
            self.all_points.append(point)
            environment = runner.clean_environment()
            environment.update({"CKT_TEST_PHASE_FILE": point, "HOME": self.home}, **env)
            program = runner.Program(directory, [self.tree.tool("cricket-run"), "--server", server.address, PROGRAM], environment)
            self.programs.append(program)
            program.wait_ready(point + ".ready", 60)
            (session,) = {s["session"] for s in runner.sessions_of(self.tree, server)} - before
            begun[name] = program, session
        return begun

    def go_all(self):
        for point in self.all_points:
            for suffix in ("", "2", "3"):
                open(point + ".go" + suffix, "w", encoding="utf-8").close()

    def all_right(self, begun, expected):
        self.go_all()
        for program, _ in begun.values():
            code, out, err = program.wait(60)
            self.assertEqual(code, 0, out + err)
            self.assertEqual(out, expected)

    def drain(self, server, *words, **env):
        code, out, err = self.may_fail(server, "--json", "drain", *words, **env)
        return code, json.loads(out) if out else None, err

    def at(self, server):
        return {s["session"] for s in runner.sessions_of(self.tree, server)}

    def outcomes(self, told):
        return {u["job"] or u["session"]: u["outcome"] for u in told["units"]}

    def refused(self, server, says):
        done = subprocess.run([self.tree.tool("cricket-run"), "--server", server.address, PROGRAM], capture_output=True, text=True, timeout=60, check=False,
                              env={**runner.clean_environment(), "HOME": self.home})
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(says, done.stderr)

    def test_moved(self):
        """Three programs go to two servers and end as they would have; the first server ends."""
        expected = self.expected()
        first, second, third = (self.server(name) for name in ("first", "second", "third"))
        begun = self.points(first, ("a", "b", "c"))
        to = second.address + "," + third.address
        code, told, err = self.drain(first, "--to", to, "--stop")
        self.assertEqual((code, told["left"], told["stopped"]), (0, 0, True), err)
        self.assertEqual(self.outcomes(told), {session: "moved" for _, session in begun.values()})
        self.assertEqual(self.at(second) | self.at(third), {session for _, session in begun.values()})
        self.assertEqual(first.process.wait(60), 0)
        self.all_right(begun, expected)

    def test_shown(self):
        """What a server that drains refuses and says, and that it takes programs again."""
        first, second = self.server("first", "--audit", os.path.join(self.dir, "audit")), self.server("second")
        begun = self.points(first, ("a",))
        program, session = begun["a"]
        self.assertNotIn("draining", self.ctl(first, "info"))
        self.assertNotIn("draining", json.loads(self.ctl(first, "info", "--json")))
        code, told, err = self.drain(first)
        self.assertEqual((code, told["left"]), (11, 1), err)
        self.assertEqual(told["units"][0]["reason"], "no other server is named: give --to, or --save")
        self.refused(first, "is drained for maintenance and takes no new sessions: use another server")
        # It may be told where to go later; the time stays.
        since = json.loads(self.ctl(first, "info", "--json"))["draining"]["since"]
        code, told, err = self.drain(first, "--to", "unix:/nowhere/socket")
        self.assertEqual((code, told["left"]), (11, 1), err)
        self.assertEqual(told["units"][0]["reason"], "none of the servers of --to can take it now")
        self.refused(first, "use one of the servers unix:/nowhere/socket")
        self.assertEqual(json.loads(self.ctl(first, "info", "--json"))["draining"], {"since": since, "to": "unix:/nowhere/socket"})
        self.assertIn("draining    since ", self.ctl(first, "info"))
        self.assertEqual(json.loads(self.ctl(first, "ps", "--json"))["draining"]["since"], since)
        doctor = json.loads(self.may_fail(first, "--json", "doctor")[1])
        self.assertIn("draining", [check["name"] for check in doctor["checks"]])
        code, out, err = self.may_fail(first, "place", "least-loaded", "--server", second.address)
        self.assertEqual((code, out.strip()), (0, second.address), err)
        self.assertIn("it is drained for maintenance; it is left out", err)
        # A client that reconnects is no new one.
        self.assertEqual(self.state(first, session), "running")
        # Images of others are refused, its own are not.
        image = os.path.join(self.dir, "image")
        self.ctl(first, "checkpoint", session, image, "--stop")
        other, theirs = self.start(second, "theirs")
        far = os.path.join(self.dir, "far")
        self.ctl(second, "checkpoint", theirs, far)
        code, _, err = self.may_fail(first, "restore", far)
        self.assertEqual(code, 1)
        self.assertIn("is drained for maintenance", err)
        self.finish(other)
        self.ctl(first, "restore", image)
        self.ctl(first, "drain", "--undo")
        self.assertNotIn("draining", self.ctl(first, "info"))
        self.all_right({"a": (program, session)}, self.expected())
        # The next program's session is looked for as the only one.
        self.wait(lambda: not self.at(first))
        late, _ = self.start(first, "late")
        self.finish(late)

        def drained():
            lines = self.audited(os.path.join(self.dir, "audit"))
            return [(line["object"], line["result"]) for line in lines if line.get("call") == "drain" and line["object"] != "look"]

        self.wait(lambda: len(drained()) >= 3)
        self.assertEqual(drained(), [("on", "ok"), ("on", "ok"), ("off", "ok")])

    def test_saved(self):
        """No server would have them: they are saved, and come back with the server after it."""
        expected = self.expected()
        first = self.server("first")
        begun = self.points(first, ("a", "b"))
        images = os.path.join(self.dir, "images")
        os.mkdir(images)
        code, told, err = self.drain(first, "--save", images, "--stop")
        self.assertEqual((code, told["left"]), (0, 0), err)
        self.assertEqual(sorted(self.outcomes(told).values()), ["saved", "saved"])
        self.assertEqual(first.process.wait(60), 0)
        second = self.server("second")
        for _, session in begun.values():
            self.ctl(second, "restore", os.path.join(images, session))
        self.all_right(begun, expected)

    def test_wrong(self):
        """Command lines that are none; a server that is not told anything by them."""
        server = self.server("s")
        for words, says in ((("--jobs", "0"), "--jobs"), (("--jobs", "65"), "--jobs"), (("--to", "a,,b"), "--to"), (("--to", "x" * 300), "--to"),
                            (("--undo", "--stop"), "--undo"), (("--deadline", "x"), "--deadline"),
                            (("--to", "a,b", "--client-address", "c"), "--client-address")):
            code, _, err = self.may_fail(server, "drain", *words)
            self.assertEqual(code, 2, err)
            self.assertIn(says, err)
        self.assertNotIn("draining", self.ctl(server, "info"))
        for words in ((), ("--job", "x"), ("x", "--job", "x", "--to", "y"), ("--job", "a b", "--to", "y")):
            self.assertEqual(self.may_fail(server, "migrate", *words)[0], 2)

    def test_may(self):
        """Only an administrator drains; a token's user learns of it."""
        token = self.token("alice")
        server = self.server("s", "--tokens", self.tokens)
        os.rename(server.socket, server.socket + ".hidden")
        code, _, err = self.may_fail(server, "drain", CRICKET_TOKEN_FILE=token)
        self.assertEqual(code, 1)
        self.assertIn("only an administrator may drain a server", err)
        os.rename(server.socket + ".hidden", server.socket)
        runner.cricketctl(self.tree, "--server", "unix:" + server.socket, "drain")
        code, out, _ = self.may_fail(server, "info", CRICKET_TOKEN_FILE=token)
        self.assertIn("draining", out)

    def test_kept(self):
        """A crash of the server keeps it draining, and an orderly end does not."""
        first = self.server("first")
        options = ("--socket", first.socket)
        self.assertEqual(self.drain(first, "--to", "elsewhere:7350")[0], 0)
        first.process.kill()
        first.process.wait()
        second = self.server("second", *options)
        second.socket = first.socket
        # So does a successor.
        log = os.path.join(self.dir, "successor")
        with open(log, "wb") as f:
            process = subprocess.Popen([self.tree.tool("cricket-server"), "--replace", "--driver", "soft", "--listen", second.address, "--socket",
                                        second.socket, "--warm", "0"], stdin=subprocess.DEVNULL, stdout=f, stderr=f,
                                       env={**os.environ, "STATE_DIRECTORY": second.directory, "CACHE_DIRECTORY": second.directory})
        self.assertEqual(second.process.wait(60), 0)
        second.process = process
        self.assertEqual(json.loads(self.ctl(second, "info", "--json"))["draining"]["to"], "elsewhere:7350")
        second.process.terminate()
        self.assertEqual(second.process.wait(60), 0)
        third = self.server("third", *options)
        self.assertNotIn("draining", self.ctl(third, "info"))
        # A file that is no such one: somebody meant to drain.
        third.process.kill()
        third.process.wait()
        for text in (b"", b"v1 x y\n", b"v1 5 " + b"a" * 400 + b"\n", b"v1 5 a\x1b[2J\n", bytes(5000)):
            with open(os.path.join(first.socket + ".d", "draining"), "wb") as f:
                f.write(text)
            fourth = self.server("fourth-%d" % len(text), *options)
            self.assertEqual(json.loads(self.ctl(fourth, "info", "--json"))["draining"]["to"], "")
            fourth.process.kill()
            fourth.process.wait()

    def ranks(self, server, name):
        """Two programs of a job that wait for each other's work."""
        self.work = os.path.join(self.dir, "work-" + name)
        self.enough = os.path.join(self.work, "enough")
        os.mkdir(self.work)
        for pipe in ("0.1", "1.0"):
            os.mkfifo(os.path.join(self.work, pipe))
        programs = []
        for rank in range(2):
            directory = os.path.join(self.dir, "%s-%d" % (name, rank))
            os.mkdir(directory)
            environment = runner.clean_environment()
            environment.update({"HOME": self.home, "CRICKET_JOB": name})
            programs.append(runner.Program(directory, [self.tree.tool("cricket-run"), "--server", server.address, RANKS, str(rank), "2", self.work, "run",
                                                       self.enough], environment))
        self.programs += programs
        self.wait(lambda: all(os.path.exists(os.path.join(self.work, "%d.going" % r)) for r in range(2)))
        return programs

    def ranks_end(self, programs):
        for name in (self.enough, self.enough + ".on"):
            open(name, "w", encoding="utf-8").close()
        for program in programs:
            code, out, err = program.wait(60)
            self.assertEqual((code, out), (0, b"ok\n"), err)

    def test_job(self):
        """A job of two ranks that wait for each other's work moves as a whole, or not at all."""
        first, small, second = self.server("first"), self.server("small", "--max-sessions", "1"), self.server("second")
        programs = self.ranks(first, "train")
        before = self.at(first)
        code, told, err = self.drain(first, "--to", small.address, TMPDIR=self.dir)
        self.assertEqual((code, self.outcomes(told)), (12, {"train": "stays"}), (told, err))
        self.assertIn("has reached its limit of 1 sessions", told["units"][0]["reason"])
        self.assertEqual((self.at(first), self.at(small)), (before, set()))
        self.wait(lambda: all(s["state"] == "running" for s in runner.sessions_of(self.tree, first)))
        code, told, err = self.drain(first, "--to", second.address, TMPDIR=self.dir)
        self.assertEqual((code, self.outcomes(told)), (0, {"train": "moved"}), (told, err))
        self.assertEqual(told["units"][0]["sessions"], 2)
        self.assertEqual(self.at(second), before)
        self.ranks_end(programs)
        self.assertEqual([e for e in os.listdir(self.dir) if "migrate" in e], [])

    def test_job_killed(self):
        """The cricketctl that moves a job is killed between its restore and the ends at the source."""
        for point in (220, 221):
            first, second = self.server("first-%d" % point), self.server("second-%d" % point)
            programs = self.ranks(first, "train%d" % point)
            before = self.at(first)
            code, told, err = self.drain(first, "--to", second.address, CRICKET_FAULT=str(point), TMPDIR=self.dir)
            # Of 221, what the dead one left behind may already have moved by itself.
            self.assertIn(code, {220: (12,), 221: (11, 0)}[point], (told, err))
            self.wait(lambda: all(s["state"] == "running" for s in runner.sessions_of(self.tree, first)))
            code, told, err = self.drain(first, "--to", second.address, TMPDIR=self.dir)
            self.assertEqual(code, 0, (told, err))
            self.assertEqual(self.at(second), before)
            self.ranks_end(programs)
            # The next one has removed what the killed one left.
            self.assertEqual([e for e in os.listdir(self.dir) if "migrate" in e], [] if point == 220 else
                             [e for e in os.listdir(self.dir) if "cricket-migrate-job" in e][:1])
            first.stop()
            second.stop()

    def test_killed(self):
        """cricketctl is killed at its points, at any of a migration's, and called again: nothing is lost, and nothing is left."""
        expected = self.expected()
        for point in (222, 223, 207, 208, 209, 210, 211):
            first, second = self.server("first-%d" % point), self.server("second-%d" % point)
            begun = self.points(first, ("a-%d" % point, "b-%d" % point))
            own = {session for _, session in begun.values()}
            code, told, err = self.drain(first, "--to", second.address, "--jobs", "1", CRICKET_FAULT=str(point))
            if point in (222, 223):
                self.assertEqual(code, -signal.SIGKILL, err)
            else:
                self.assertIn("was ended by signal 9", " ".join(u["reason"] or "" for u in told["units"]))
            # Of 209 both have it, and the next one replaces what is unclaimed.  A copy that was taken ahead ends by itself.
            self.wait(lambda own=own: self.at(first) | self.at(second) == own)
            # What the dead one froze goes on before it can move.
            self.wait(lambda: all(s["state"] == "running" for s in runner.sessions_of(self.tree, first)))
            code, told, err = self.drain(first, "--to", second.address, "--stop")
            self.assertEqual((code, told["left"]), (0, 0), (point, told, err))
            self.assertEqual(self.at(second), own)
            self.all_right(begun, expected)
            self.assertEqual(first.process.wait(60), 0)
            second.stop()

    def test_deadline(self):
        """A move that takes too long is ended, and its session goes on where it was."""
        expected = self.expected()
        first, second = self.server("first"), self.server("second")
        begun = self.points(first, ("a",))
        # The target does not answer: the move cannot end by itself.
        os.kill(second.process.pid, signal.SIGSTOP)
        try:
            code, told, err = self.drain(first, "--to", second.address, "--deadline", "1")
        finally:
            os.kill(second.process.pid, signal.SIGCONT)
        self.assertEqual((code, told["left"]), (11, 1), err)
        self.wait(lambda: self.state(first, begun["a"][1]) == "running")
        self.all_right(begun, expected)
        # What ends by itself in time is no longer left.
        self.ctl(first, "drain", "--undo")
        begun = self.points(first, ("b",))
        waiting = subprocess.Popen([self.tree.tool("cricketctl"), "--server", first.address, "drain", "--deadline", "60"], stdout=subprocess.PIPE, text=True,
                                   stderr=subprocess.DEVNULL)
        self.wait(lambda: "draining" in json.loads(self.ctl(first, "info", "--json")))
        self.all_right(begun, expected)
        out = waiting.communicate(timeout=60)[0]
        self.assertEqual(waiting.returncode, 0, out)
        self.assertIn("0 sessions left", out)


if __name__ == "__main__":
    unittest.main(verbosity=2)
