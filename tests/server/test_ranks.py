#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Sessions that are ranks of one NCCL communicator: what may be done to one of them alone, and what their workers share."""
import contextlib
import json
import os
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from whole import PROGRAM, Whole, runner  # noqa: E402

# The soft GPU's NCCL of several servers needs it.
NETWORK = ("--worker-network", "on")


class Ranks(Whole):
    def ranks(self, server, job="train", other=None):
        """The program at its mid point, and its sessions at that server."""
        directory = os.path.join(self.dir, "p-%s" % job)
        os.mkdir(directory)
        self.point = os.path.join(directory, "phase")
        environment = runner.clean_environment()
        environment.update({"CKT_TEST_PHASE_FILE": self.point, "HOME": self.home})
        if job:
            environment["CRICKET_JOB"] = job
        if other:
            environment["CKT_TEST_OTHER_ADDRESS"] = other.address
        program = runner.Program(directory, [self.tree.tool("cricket-run"), "--server", server.address, PROGRAM], environment)
        self.programs.append(program)
        program.wait_ready(self.point + ".ready", 60)
        return program, sorted(s["session"] for s in runner.sessions_of(self.tree, server))

    def states(self, server):
        return {s["session"]: s["state"] for s in runner.sessions_of(self.tree, server)}

    def command(self, *words):
        done = subprocess.run([self.tree.tool("cricketctl"), *words], stdin=subprocess.DEVNULL, capture_output=True, timeout=120, check=False)
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    def test_alone(self):
        """Neither saved nor moved without the others: said at once, and nothing is left of it; they go on."""
        server, target = self.server("s"), self.server("t")
        program, sessions = self.ranks(server)
        self.assertEqual(len(sessions), 2)
        image = os.path.join(self.dir, "alone")
        said = set()
        for session in sessions:
            for words in (["checkpoint", session, image], ["checkpoint", session, image, "--stop"], ["checkpoint", session, "--to-memory"],
                          ["checkpoint", session, image, "--every", "1s"], ["migrate", session, "--to", target.address], ["migrate", session, "--gpu", "0"]):
                code, _, err = self.command("--server", server.address, *words)
                self.assertEqual(code, 1, words)
                self.assertIn("of an NCCL communicator with 2 ranks, and other sessions are rank ", err, words)
                self.assertIn("with cricketctl checkpoint --job train DIR and cricketctl restore --job DIR", err, words)
                said.add(err[err.index("the session is"):].split(":")[0])
            # With --every the directory of the chain may be there, without an image.
            shutil.rmtree(image, ignore_errors=True)
        self.assertEqual(said, {"the session is rank %d of an NCCL communicator with 2 ranks, and other sessions are rank %d" % (a, 1 - a) for a in (0, 1)})
        self.assertEqual(runner.sessions_of(self.tree, target), [])
        self.assertEqual(sorted(s["session"] for s in runner.sessions_of(self.tree, server)), sessions)
        # All of them together.
        code, _, err = self.command("--server", server.address, "checkpoint", "--job", "train", os.path.join(self.dir, "all"))
        self.assertEqual(code, 0, err)
        self.finish(program)

    def test_without_job(self):
        server = self.server("s")
        program, sessions = self.ranks(server, job="")
        code, _, err = self.command("--server", server.address, "checkpoint", sessions[0], os.path.join(self.dir, "alone"))
        self.assertEqual(code, 1)
        self.assertIn("the session belongs to no job: start all of them with the same CRICKET_JOB", err)
        # Nothing of their workers lies in /dev/shm, which they need not have.
        for pid in server.workers():
            with open("/proc/%d/maps" % pid, encoding="utf-8") as file:
                self.assertNotIn("/dev/shm", file.read())
            for fd in os.listdir("/proc/%d/fd" % pid):
                # One that is closed meanwhile is none.
                with contextlib.suppress(FileNotFoundError):
                    self.assertFalse(os.readlink("/proc/%d/fd/%s" % (pid, fd)).startswith("/dev/shm"))
        self.finish(program)

    def test_pause(self):
        """One rank's memory goes to the host and comes back: the other one waits for it meanwhile."""
        server = self.server("s")
        for i in range(2):
            program, sessions = self.ranks(server, job="pause%d" % i)
            self.assertEqual(len(sessions), 2)
            code, out, err = self.command("--server", server.address, "pause", sessions[i])
            self.assertEqual(code, 0, err)
            self.go()
            # Neither ends as long as one is not there.
            with self.assertRaises(subprocess.TimeoutExpired):
                program.process.wait(1)
            # ps tells the states that it knows, when a worker does not answer within a second.
            self.wait(lambda i=i, sessions=sessions: self.states(server) == {sessions[i]: "paused", sessions[1 - i]: "running"})
            code, out, err = self.command("--server", server.address, "resume", sessions[i])
            self.assertEqual(code, 0, err)
            self.finish(program)
            # The next program's are counted.
            self.wait(lambda: not self.states(server))

    def test_swap(self):
        """The memory of all ranks leaves the GPU together; the next command of the program brings it back, and the sums are the same."""
        server = self.server("s", "--swap-memory", "1G")
        program, sessions = self.ranks(server)
        code, out, err = self.command("--server", server.address, "--json", "swap", "out", sessions[0])
        self.assertEqual((code, err), (0, ""))
        self.assertTrue(json.loads(out)["swapped"])
        # Both have left with that answer, but a worker may not have said so to ps.
        self.wait(lambda: self.states(server) == dict.fromkeys(sessions, "swapped"))
        self.go()
        self.finish(program)

    def test_missing(self):
        """A rank is at a server that is not named: nothing ends, for it could not be restored."""
        server, other = self.server("s", *NETWORK), self.server("o", *NETWORK)
        program, sessions = self.ranks(server, other=other)
        self.assertEqual(len(sessions), 1)
        path = os.path.join(self.dir, "part")
        code, _, err = self.command("--server", server.address, "checkpoint", "--job", "train", path, "--stop")
        self.assertEqual(code, 1)
        self.assertIn("session %s is rank 0 of an NCCL communicator with 2 ranks, but no session of the job is rank 1" % sessions[0], err)
        self.assertEqual([e for e in os.listdir(self.dir) if e.startswith("part")], [])
        code, _, err = self.command("--server", server.address, "--server", other.address, "checkpoint", "--job", "train", path, "--stop")
        self.assertEqual(code, 0, err)
        # One image of the two is taken away: no server is asked.
        third = self.server("3")
        manifest = os.path.join(path, "job.json")
        with open(manifest, encoding="utf-8") as file:
            whole = file.read()
        data = json.loads(whole)
        data["sessions"] = data["sessions"][:1]
        with open(manifest, "w", encoding="utf-8") as file:
            json.dump(data, file)
        code, _, err = self.command("--server", third.address, "restore", "--job", path)
        self.assertEqual(code, 1)
        self.assertIn("no session of the job is rank ", err)
        self.assertEqual(runner.sessions_of(self.tree, third), [])
        with open(manifest, "w", encoding="utf-8") as file:
            file.write(whole)
        code, _, err = self.command("--server", third.address, "restore", "--job", path)
        self.assertEqual(code, 0, err)
        self.finish(program)

    def test_again(self):
        """Stopped and restored where they were, their GPUs exchanged, and once more: each time of new ids."""
        server, other = self.server("s", *NETWORK), self.server("o", *NETWORK)
        program, sessions = self.ranks(server)
        gpus = {s["session"]: s["gpu"] for s in runner.sessions_of(self.tree, server)}
        places = [[server], [other, server], [server]]
        before = [server]
        for i, after in enumerate(places):
            path = os.path.join(self.dir, "again%d" % i)
            named = [word for one in before for word in ("--server", one.address)]
            code, _, err = self.command(*named, "checkpoint", "--job", "train", path, "--stop")
            self.assertEqual(code, 0, err)
            with open(os.path.join(path, "job.json"), encoding="utf-8") as file:
                order = [s["session"] for s in json.load(file)["sessions"]]
            named = [word for one in after for word in ("--server", one.address)]
            numbers = [1 - gpus[session] for session in order]
            code, _, err = self.command(*named, "restore", "--job", path, "--gpu", ",".join(map(str, numbers)), "--place", ",".join(str(k % len(after)) for k in range(2)))
            self.assertEqual(code, 0, err)
            gpus = dict(zip(order, numbers))
            for k, session in enumerate(order):
                (here,) = [s for s in runner.sessions_of(self.tree, after[k % len(after)]) if s["session"] == session]
                self.assertEqual(here["gpu"], gpus[session])
            before = after
            # Claimed, so that the next checkpoint has its clients.
            self.wait(lambda: all(s["state"] == "running" for one in before for s in runner.sessions_of(self.tree, one)))
        self.finish(program)

    def what_it_has(self, pid):
        """Its user, and the device and inode of what is its /dev/shm."""
        with open("/proc/%d/status" % pid, encoding="ascii") as file:
            (uid,) = [line.split()[1:] for line in file if line.startswith("Uid:")]
        there = os.stat("/proc/%d/root/dev/shm" % pid)
        return tuple(uid), (there.st_dev, there.st_ino)

    def test_shared(self):
        """The workers of a job at one server are one user's and see one /dev/shm, as NCCL needs."""
        server = self.server("s")
        program, _ = self.ranks(server)
        pids = server.workers()
        self.assertEqual(len(pids), 2)
        (has,) = {self.what_it_has(pid) for pid in pids}
        self.assertEqual(len(set(has[0])), 1, "the real, effective and saved user are one")
        self.finish(program)

    def test_two_servers(self):
        """Of another server of the host they are another group: NCCL sees a /dev/shm of another device, and takes the network."""
        server, other = self.server("s", *NETWORK), self.server("o", *NETWORK)
        program, _ = self.ranks(server, other=other)
        (one,), (two,) = server.workers(), other.workers()
        here, there = self.what_it_has(one), self.what_it_has(two)
        self.assertEqual(here[0], there[0])
        self.assertNotEqual(here[1][0], there[1][0])
        self.finish(program)


if __name__ == "__main__":
    unittest.main(verbosity=2)
