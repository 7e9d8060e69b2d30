#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Servers of several nodes as one list: what is wrong with a list, who has a session where, a session that moves, and one that is lost."""
import json
import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from whole import PROGRAM, Whole  # noqa: E402
import runner  # noqa: E402


class Nodes(Whole):
    def setUp(self):
        super().setUp()
        one = {"CRICKET_SOFT_DEVICES": "12.0:1G"}
        self.first, self.second = self.server("first", env=one), self.server("second", env=one)
        self.both = self.first.address + "," + self.second.address

    def run_at(self, address, *words, name="p", wait=True, **env):
        directory = os.path.join(self.dir, name)
        os.mkdir(directory)
        environment = {**runner.clean_environment(), "HOME": self.home, **env}
        if not wait:
            self.point = os.path.join(directory, "phase")
            environment["CKT_TEST_PHASE_FILE"] = self.point
        program = runner.Program(directory, [self.tree.tool("cricket-run"), "--server", address, PROGRAM, *words], environment)
        self.programs.append(program)
        if wait:
            code, out, err = program.wait(60)
            return code, out.decode(), err.decode()
        program.wait_ready(self.point + ".ready", 60)
        return program

    def sessions(self, server):
        return [s["session"] for s in runner.sessions_of(self.tree, server)]

    def test_bad_lists(self):
        nobody = "unix:" + os.path.join(self.dir, "nobody")
        many = ",".join("host%d" % i for i in range(9))
        for number, (address, *says) in enumerate([
                (self.first.address + ",", "REMOTE_GPU_ADDRESS", "address 2 of the list", "is empty: remove the extra comma"),
                ("," + self.first.address, "address 1 of the list"),
                (self.first.address + "," + self.first.address, self.first.address, "is in the list twice"),
                (many, "more than 8 addresses"),
                (self.first.address + ",local:", "'local:' is this machine's own driver and cannot be combined with other addresses"),
                (self.first.address + ",host:x", "'host:x': 'x' is not a port number"),
                (self.first.address + "," + nobody, nobody, "every server of REMOTE_GPU_ADDRESS must answer: remove it from the list or repair it")]):
            code, out, err = self.run_at(address, name="bad%d" % number)
            self.assertNotEqual(code, 0, address)
            self.assertEqual(len(err.splitlines()), 1, err)
            for text in says:
                self.assertIn(text, err)
            self.assertNotIn("ok\n", out)
        done = subprocess.run([self.tree.tool("cricket-run"), "--server", "local:," + self.first.address, PROGRAM], capture_output=True, check=False,
                              env=runner.clean_environment(), timeout=60)
        self.assertEqual(done.returncode, 126, done.stderr)
        self.assertIn(b"cannot be combined with other addresses", done.stderr)
        # What had been opened is closed again.
        self.wait(lambda: not self.sessions(self.first))

    def test_full_server(self):
        full = self.server("full", "--max-sessions", "1")
        holder = self.hold(full)
        code, _, err = self.run_at(self.first.address + "," + full.address, name="late")
        self.assertNotEqual(code, 0)
        self.assertEqual(len(err.splitlines()), 1, err)
        self.assertIn(full.address, err)
        self.assertIn("must answer: remove it from the list or repair it", err)
        self.wait(lambda: not self.sessions(self.first))
        holder.process.kill()

    def hold(self, server):
        """A program of two GPUs at that server, at its mid point."""
        return self.run_at(self.second.address + "," + server.address, name="holder", wait=False)

    def test_visible(self):
        code, out, err = self.run_at(self.both, name="none", CUDA_VISIBLE_DEVICES="")
        self.assertNotEqual(code, 0)
        self.assertEqual(err, "")
        self.assertIn("cudaErrorNoDevice", out)
        # A server none of whose GPUs is wanted gets no session, and is asked for one by nobody.
        code, out, err = self.run_at(self.both, name="one", CUDA_VISIBLE_DEVICES="1")
        self.assertEqual((code, out), (0, "1 devices\nok\n"), err)
        code, out, err = self.run_at(self.both, name="twice", CUDA_VISIBLE_DEVICES="1,0,1")
        self.assertNotEqual(code, 0)
        # By what its UUID begins with, where only one of all begins so; the soft GPU's has its capability in it.
        other = self.server("other", env={"CRICKET_SOFT_DEVICES": "9.0:1G"})
        mixed, begins = self.first.address + "," + other.address, "GPU-43524943-4b45-542d-534f-4654"
        code, out, err = self.run_at(mixed, name="uuid", CUDA_VISIBLE_DEVICES=begins + "005a")
        self.assertEqual((code, out), (0, "1 devices\nok\n"), err)
        code, out, err = self.run_at(mixed, name="uuids", CUDA_VISIBLE_DEVICES=begins + "005a," + begins + "0078")
        self.assertEqual((code, out.splitlines()[0]), (0, "2 devices"), err)
        code, out, err = self.run_at(mixed, name="either", CUDA_VISIBLE_DEVICES=begins)
        self.assertNotEqual(code, 0)
        program = self.run_at(self.both, name="turned", wait=False, CUDA_VISIBLE_DEVICES="1,0")
        # Sessions of the programs before may still end.
        self.wait(lambda: [len(self.sessions(s)) for s in (self.first, self.second)] == [1, 1])
        self.finish(program)

    def test_listings(self):
        program = self.run_at(self.both, wait=False)
        (a,), (b,) = self.sessions(self.first), self.sessions(self.second)
        self.assertNotEqual(a, b)
        environment = {**os.environ, "REMOTE_GPU_ADDRESS": self.both}
        done = subprocess.run([self.tree.tool("cricketctl"), "ps"], env=environment, capture_output=True, text=True, check=False, timeout=60)
        self.assertEqual(done.returncode, 2, done.stdout)
        self.assertIn("names several servers: choose one with --server", done.stderr)
        done = subprocess.run([self.tree.tool("cricketctl"), "doctor", "--json"], env=environment, capture_output=True, text=True, check=False, timeout=60)
        servers = [c["message"] for c in json.loads(done.stdout)["checks"] if c["name"] == "server"]
        self.assertEqual([s.split()[-1] for s in servers], [self.first.address, self.second.address])
        environment["REMOTE_GPU_ADDRESS"] = self.first.address + ",unix:" + os.path.join(self.dir, "nobody")
        done = subprocess.run([self.tree.tool("cricketctl"), "doctor", "--json"], env=environment, capture_output=True, text=True, check=False, timeout=60)
        self.assertEqual([c["result"] for c in json.loads(done.stdout)["checks"] if c["name"] == "server"], ["ok", "fail"])
        self.finish(program)

    def test_moved(self):
        """Each of the sessions goes on elsewhere, at its addresses, and the other one never notices."""
        _, expected, _ = self.run_at(self.both, name="expected")
        self.wait(lambda: not self.sessions(self.first) + self.sessions(self.second))
        third = self.server("third", env={"CRICKET_SOFT_DEVICES": "12.0:1G"})
        program = self.run_at(self.both, wait=False)
        (a,), (b,) = self.sessions(self.first), self.sessions(self.second)
        image = os.path.join(self.dir, "image")
        self.ctl(self.second, "checkpoint", b, image, "--stop")
        self.ctl(third, "restore", image)
        runner.cricketctl(self.tree, "redirect", b, "--to", third.address)
        # The other one follows, as an image of which most was there before.
        self.ctl(self.first, "migrate", a, "--to", third.address)
        self.assertEqual(len(self.sessions(third)), 2)
        out, _ = self.finish(program)
        self.assertEqual(out.decode(), expected)
        self.assertEqual(self.sessions(self.first) + self.sessions(self.second), [])

    def test_lost(self):
        program = self.run_at(self.both, "lost", wait=False, CRICKET_RECONNECT_TIMEOUT="0")
        workers = self.second.workers()
        self.second.kill()
        for pid in workers:
            os.kill(pid, 9)
        out, err = self.finish(program)
        lines = out.decode().splitlines()
        self.assertEqual(lines[0], "2 devices")
        self.assertEqual([line.split(": ")[1] for line in lines[1:4]], ["cudaErrorDevicesUnavailable"] * 3, lines)
        self.assertEqual(lines[-1], "ok")
        self.assertEqual(len(err.splitlines()), 1, err)
        self.assertIn("is lost", err)
        self.assertIn(self.second.address, err)
        self.wait(lambda: not self.sessions(self.first))


if __name__ == "__main__":
    unittest.main()
