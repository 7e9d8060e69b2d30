#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Jobs: ranks whose GPU work waits for each other's, saved as one cut and restored together, at one server and at two."""
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from whole import PROGRAM, Whole, runner  # noqa: E402


class Jobs(Whole):
    def setUp(self):
        super().setUp()
        self.memory = self.own_memory()

    def ranks(self, servers, job="train", how="run", **env):
        """Programs of a job, rank i at server i mod their number, all at work."""
        self.work = os.path.join(self.dir, "work-" + job)
        os.mkdir(self.work)
        self.enough = os.path.join(self.work, "enough")
        count = max(2, len(servers))
        for a in range(count):
            for b in range(count):
                if a != b:
                    os.mkfifo(os.path.join(self.work, "%d.%d" % (a, b)))
        programs = []
        for rank in range(count):
            directory = os.path.join(self.dir, "%s-%d" % (job, rank))
            os.mkdir(directory)
            environment = runner.clean_environment()
            environment.update({"HOME": self.home, "CRICKET_JOB": job}, **env)
            command = [self.tree.tool("cricket-run"), "--server", servers[rank % len(servers)].address, PROGRAM, str(rank), str(count), self.work, how, self.enough]
            programs.append(runner.Program(directory, command, environment))
        self.programs += programs
        self.wait(lambda: all(os.path.exists(os.path.join(self.work, "%d.going" % r)) for r in range(count)) or any(p.process.poll() is not None for p in programs))
        for program in programs:
            self.assertIsNone(program.process.poll(), self.stderr_of(program))
        return programs

    def all_end(self, programs):
        for name in (self.enough, self.enough + ".on"):
            open(name, "w", encoding="utf-8").close()
        for program in programs:
            code, out, err = program.wait(60)
            self.assertEqual((code, out), (0, b"ok\n"), err)

    def job_of(self, server):
        return {s["session"]: s["job"] for s in runner.sessions_of(self.tree, server)}

    def checkpoint(self, servers, *words):
        options = [word for server in servers for word in ("--server", server.address)]
        done = subprocess.run([self.tree.tool("cricketctl"), "checkpoint", *options, *words], stdin=subprocess.DEVNULL, capture_output=True, timeout=120,
                              check=False)
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    def nothing_left(self, name):
        self.assertEqual([e for e in os.listdir(self.dir) if e.startswith(name)], [])

    def test_names(self):
        """Which job a session says, and which names are none."""
        server = self.server("s")
        rows = [({"CRICKET_JOB": "mine", "SLURM_JOB_ID": "7"}, "mine"), ({"SLURM_JOB_ID": "7"}, "7"), ({"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "2"}, "7.2"),
                ({"TORCHELASTIC_RUN_ID": "none"}, None), ({"TORCHELASTIC_RUN_ID": "4f-a"}, "4f-a"), ({"CRICKET_JOB": "a b"}, None),
                ({"CRICKET_JOB": "x" * 49}, None), ({}, None)]
        for i, (env, expected) in enumerate(rows):
            directory = os.path.join(self.dir, "n%d" % i)
            os.mkdir(directory)
            for a, b in ((0, 1), (1, 0)):
                os.mkfifo(os.path.join(directory, "%d.%d" % (a, b)))
            environment = runner.clean_environment()
            for name in ("SLURM_JOB_ID", "SLURM_STEP_ID", "TORCHELASTIC_RUN_ID"):
                environment.pop(name, None)
            environment.update({"HOME": self.home}, **env)
            program = runner.Program(directory, [self.tree.tool("cricket-run"), "--server", server.address, PROGRAM, "0", "2", directory, "run", "x"], environment)
            self.programs.append(program)
            self.wait(lambda: any(s["pid"] == program.process.pid for s in runner.sessions_of(self.tree, server)))
            (session,) = [s for s in runner.sessions_of(self.tree, server) if s["pid"] == program.process.pid]
            self.assertEqual(session["job"], expected, env)
            if expected:
                self.assertIn("  " + expected + "\n", self.ctl(server, "ps"))
            elif "CRICKET_JOB" in env:
                self.assertIn("belongs to no job", self.stderr_of(program))
            program.process.kill()

    def test_running(self):
        """Saved while they run on, again and again; nobody is named by another job's."""
        server = self.server("s")
        programs = self.ranks([server])
        for i in range(3):
            path = os.path.join(self.dir, "image%d" % i)
            code, out, err = self.checkpoint([server], "--job", "train", path, "--json")
            self.assertEqual(code, 0, err)
            told = json.loads(out)
            self.assertEqual(sorted(told["sessions"]), sorted(self.job_of(server)))
            self.assertEqual(sorted(os.listdir(path)), sorted(told["sessions"] + ["job.json"]))
            for session in told["sessions"]:
                self.assertTrue(self.image_is_whole(os.path.join(path, session)))
        code, out, err = self.checkpoint([server], "--job", "other", os.path.join(self.dir, "no"))
        self.assertEqual(code, 1, out)
        self.assertIn("there is no session of a job 'other'", err)
        self.nothing_left("no")
        self.all_end(programs)

    def moved(self, before, after):
        programs = self.ranks(before)
        path = os.path.join(self.dir, "image")
        code, out, err = self.checkpoint(before, "--job", "train", path, "--stop")
        self.assertEqual(code, 0, err)
        for server in before:
            self.assertEqual(runner.sessions_of(self.tree, server), [])
            server.kill()
        options = [word for server in after for word in ("--server", server.address)]
        told = json.loads(runner.cricketctl(self.tree, "restore", *options, "--job", path, "--json"))
        self.assertEqual(told["job"], "train")
        self.assertEqual(len(told["sessions"]), 2)
        self.wait(lambda: all(job == "train" for server in after for job in self.job_of(server).values()))
        # Once more, where they are now.
        code, out, err = self.checkpoint(after, "--job", "train", path + "2")
        self.assertEqual(code, 0, err)
        self.all_end(programs)

    def test_restored(self):
        self.moved([self.server("first")], [self.server("second")])

    def test_two_servers(self):
        self.moved([self.server("a"), self.server("b")], [self.server("c"), self.server("d")])

    def test_two_servers_to_one(self):
        self.moved([self.server("a"), self.server("b")], [self.server("c")])

    def test_all_or_none(self):
        """One image is damaged: the other session is not restored either, and once it is mended both are."""
        first = self.server("first")
        programs = self.ranks([first])
        path = os.path.join(self.dir, "image")
        self.assertEqual(self.checkpoint([first], "--job", "train", path, "--stop")[0], 0)
        second = self.server("second")
        victim = os.path.join(path, sorted(e for e in os.listdir(path) if e != "job.json")[0], "manifest")
        os.rename(victim, victim + ".away")
        code, _, err = self.may_fail(second, "restore", "--job", path)
        self.assertEqual(code, 1, err)
        self.assertIn("1 of 2 sessions could not be restored, so none was", err)
        self.none_there(second)
        os.rename(victim + ".away", victim)
        first.kill()
        self.assertEqual(self.may_fail(second, "restore", "--job", path)[0], 0)
        self.all_end(programs)

    def refused(self, server, path, *words, because):
        """The restore is refused with that reason, and no session is there."""
        code, out, err = self.may_fail(server, "restore", "--job", path, *words)
        self.assertEqual((code, out), (1, ""), err)
        self.assertIn(because, err)
        self.none_there(server)
        self.assertEqual(self.plain_left(), [])

    def none_there(self, server):
        """What was preloaded ends with cricketctl's connection, when the server sees its end."""
        self.wait(lambda: runner.sessions_of(self.tree, server) == [])

    def plain_left(self):
        return [n for n in os.listdir(self.memory) if n.startswith("cricket-plain-")]

    def bad_copy(self, path, change):
        """A copy of the job's image that somebody has changed."""
        bad = os.path.join(self.dir, "bad")
        shutil.rmtree(bad, ignore_errors=True)
        shutil.copytree(path, bad)
        change(bad)
        return bad

    def encrypted(self, servers, programs):
        """Two encrypted cuts, the second of which has ended the job; and the key."""
        key, older, newer = (os.path.join(self.dir, n) for n in ("key", "older", "newer"))
        runner.cricketctl(self.tree, "image-key", "make", key)
        for words in (("--encrypt",), ("--encrypt", "--image-key", key + "-none")):
            code, _, err = self.checkpoint(servers, "--job", "train", newer, *words)
            self.assertIn(code, (1, 2), err)
            self.nothing_left("newer")
        for path, words in ((older, ()), (newer, ("--stop",))):
            code, _, err = self.checkpoint(servers, "--job", "train", path, "--image-key", key, "--encrypt", *words)
            self.assertEqual(code, 0, err)
        self.assertEqual(self.plain_left(), [])
        for directory, _, files in os.walk(newer):
            for name in files:
                with open(os.path.join(directory, name), "rb") as f:
                    data = f.read()
                self.assertEqual(data[:4], b"CkE1", name)
                self.assertNotIn(os.path.basename(PROGRAM).encode(), data)
        self.assertTrue(all(p.process.poll() is None for p in programs))
        return key, older, newer

    def test_encrypted(self):
        """A job of which nothing is readable: its key restores it whole, and nothing that somebody has exchanged."""
        before = [self.server("a"), self.server("b")]
        programs = self.ranks(before)
        key, older, newer = self.encrypted(before, programs)
        sessions = sorted(n for n in os.listdir(newer) if n != "job.json")
        self.assertEqual(len(sessions), 2)
        first = sessions[0]
        after = self.server("c")
        opened = os.path.join(self.dir, "opened")
        runner.cricketctl(self.tree, "image", "decrypt", newer, opened, "--image-key", key)
        with open(os.path.join(opened, "job.json"), encoding="utf-8") as f:
            plain = json.load(f)
        self.assertEqual(sorted(s["session"] for s in plain["sessions"]), sessions)
        for session in sessions:
            self.assertTrue(self.image_is_whole(os.path.join(opened, session)))
            self.assertTrue(json.loads(runner.cricketctl(self.tree, "image", "verify", os.path.join(newer, session), "--image-key", key, "--json"))["ok"])
            shown = json.loads(runner.cricketctl(self.tree, "image", "show", os.path.join(newer, session), "--image-key", key, "--json"))
            self.assertEqual(shown["session"], session)
        other = os.path.join(self.dir, "other-key")
        runner.cricketctl(self.tree, "image-key", "make", other)
        self.refused(after, newer, because="is encrypted: give its key with --image-key")
        self.refused(after, newer, "--image-key", other, because="job.json: it is encrypted with key ")

        def older_image(bad):
            shutil.rmtree(os.path.join(bad, first))
            shutil.copytree(os.path.join(older, first), os.path.join(bad, first))

        def plain_image(bad):
            shutil.rmtree(os.path.join(bad, first))
            shutil.copytree(os.path.join(opened, first), os.path.join(bad, first))

        def older_list(bad):
            shutil.copy(os.path.join(older, "job.json"), bad)

        def plain_list(bad):
            with open(os.path.join(bad, "job.json"), "w", encoding="utf-8") as f:
                json.dump({**plain, "sessions": plain["sessions"][:1]}, f)

        def left_out(bad):
            shutil.rmtree(os.path.join(bad, first))

        def changed_list(bad):
            with open(os.path.join(bad, "job.json"), "r+b") as f:
                f.seek(60)
                byte = f.read(1)[0]
                f.seek(60)
                f.write(bytes([byte ^ 1]))

        changed = "it was changed since it was encrypted: restore the image from another copy"
        for change, says in ((older_image, changed), (plain_image, changed), (older_list, changed), (changed_list, "job.json: " + changed),
                             (plain_list, "is encrypted, and job.json is not: restore the job from another copy"), (left_out, "No such file or directory")):
            self.refused(after, self.bad_copy(newer, change), "--image-key", key, because=says)
        runner.cricketctl(self.tree, "--server", after.address, "restore", "--job", newer, "--image-key", key)
        self.assertTrue(os.path.exists(os.path.join(newer, first, "claim.json")))
        self.assertEqual(self.plain_left(), [])
        self.all_end(programs)

    def test_deadline(self):
        """A host function and a kernel that wait for what does not come: named, nothing is left, all go on."""
        server = self.server("s")
        for how, says in (("hang", "a host function of the program does not return"), ("spin", "a kernel or copy on stream 0x")):
            programs = self.ranks([server], job=how, how=how)
            open(self.enough, "w", encoding="utf-8").close()
            self.wait(lambda: os.path.exists(os.path.join(self.work, "stuck")))

            def named(how=how, says=says, stuck=programs[-1]):
                code, _, err = self.checkpoint([server], "--job", how, os.path.join(self.dir, "late"), "--deadline", "1")
                self.assertEqual(code, 1)
                self.nothing_left("late")
                return "did not drain within 1 s: " + says in err and "process %d on " % stuck.process.pid in err

            # A worker that stands still for the second and one more says nothing, or another one is named.
            self.wait(named)
            self.all_end(programs)

    def test_killed(self):
        """cricketctl dies or stops while it holds them: they go on by themselves."""
        server = self.server("s")
        programs = self.ranks([server], how="hang")
        open(self.enough, "w", encoding="utf-8").close()
        self.wait(lambda: os.path.exists(os.path.join(self.work, "stuck")))
        command = [self.tree.tool("cricketctl"), "--server", server.address, "checkpoint", "--job", "train", os.path.join(self.dir, "dead")]

        def begin():
            ctl = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            self.addCleanup(ctl.wait)
            self.addCleanup(ctl.kill)
            return ctl

        for number in (signal.SIGKILL, signal.SIGSTOP):
            ctl = begin()
            code, err = 0, ""
            # Another one is refused as long as the first has them.
            end = time.monotonic() + 60
            while code != 1 or "held by another checkpoint" not in err:
                self.assertLess(time.monotonic(), end, "it never held them")
                # Where the other one came first, the first was refused.
                if ctl.poll() is not None:
                    ctl = begin()
                code, _, err = self.checkpoint([server], "--job", "nobody" if not os.path.exists("/proc/%d/fd/4" % ctl.pid) else "train", os.path.join(self.dir, "second"), "--deadline", "1")  # noqa: E501
            session = next(iter(self.job_of(server)))
            self.assertIn("held by a checkpoint of its job", self.may_fail(server, "checkpoint", session, os.path.join(self.dir, "one"))[2])
            ctl.send_signal(number)
            self.wait(lambda: "did not drain" in self.checkpoint([server], "--job", "train", os.path.join(self.dir, "third"), "--deadline", "1")[2])
        self.nothing_left("second")
        self.nothing_left("third")
        self.all_end(programs)

    def test_interrupted(self):
        """A signal removes what was begun, and what of it is plain in memory."""
        server = self.server("s")
        key = os.path.join(self.dir, "key")
        runner.cricketctl(self.tree, "image-key", "make", key)
        programs = self.ranks([server], how="hang")
        open(self.enough, "w", encoding="utf-8").close()
        self.wait(lambda: os.path.exists(os.path.join(self.work, "stuck")))
        ctl = subprocess.Popen([self.tree.tool("cricketctl"), "--server", server.address, "checkpoint", "--job", "train", os.path.join(self.dir, "gone"), "--image-key", key,
                                "--encrypt"],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.wait(lambda: any(e.startswith("gone.partial.") for e in os.listdir(self.dir)) and self.plain_left())
        ctl.terminate()
        ctl.wait(60)
        self.nothing_left("gone")
        self.assertEqual(self.plain_left(), [])
        self.all_end(programs)


if __name__ == "__main__":
    unittest.main(verbosity=2)
