#!/usr/bin/python3
"""Whole programs whose session is stopped, restored or moved with cricketctl, with nothing set beforehand but where the server is."""
import json
import os
import shutil
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(HERE, os.pardir, "runner"))
import runner  # noqa: E402

PROGRAM = os.environ["CKT_TEST_PROGRAM"]


class Moves(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="ckt-")
        os.chmod(self.dir, 0o755)
        root = runner.stage(os.environ["CKT_TEST_BUILD"])
        self.tree = runner.Tree(root)
        self.servers = []
        self.programs = []
        # cricketctl looks there as the user's.
        self.home = os.path.join(self.dir, "home")
        os.mkdir(self.home)
        self.saved_home = os.environ.get("HOME")
        os.environ["HOME"] = self.home
        os.environ.pop("CRICKET_STATE_DIR", None)

    def tearDown(self):
        os.environ["HOME"] = self.saved_home or "/"
        for program in self.programs:
            if program.process.poll() is None:
                program.process.kill()
                program.process.wait()
        for server in self.servers:
            workers = server.workers() if server.process.poll() is None else []
            server.kill()
            runner.end_all(workers, 11, "the test's end")
        shutil.rmtree(self.dir, ignore_errors=True)

    def server(self, name, *options):
        server = runner.Server(self.tree, os.path.join(self.dir, name), "soft", options)
        self.servers.append(server)
        return server

    def ctl(self, server, *words):
        return runner.cricketctl(self.tree, "--server", server.address, *words)

    def start(self, server, name="p", **env):
        """The program at its mid point: (program, session)"""
        directory = os.path.join(self.dir, name)
        os.mkdir(directory)
        self.point = os.path.join(directory, "phase")
        environment = runner.clean_environment()
        environment.update({"CKT_TEST_PHASE_FILE": self.point, "HOME": self.home}, **env)
        program = runner.Program(directory, [self.tree.tool("cricket-run"), "--server", server.address, PROGRAM], environment)
        self.programs.append(program)
        program.wait_ready(self.point + ".ready", 60)
        (session,) = runner.sessions_of(self.tree, server)
        return program, session["session"]

    def go(self):
        for suffix in ("", "2", "3"):
            open(self.point + ".go" + suffix, "w").close()

    def finish(self, program):
        self.go()
        code, out, err = program.wait(60)
        self.assertEqual(code, 0, out + err)
        return out, err.decode()

    def expected(self):
        server = self.server("plain")
        environment = runner.clean_environment()
        directory = os.path.join(self.dir, "expected")
        os.mkdir(directory)
        program = runner.Program(directory, [self.tree.tool("cricket-run"), "--server", server.address, PROGRAM], environment)
        self.programs.append(program)
        code, out, err = program.wait(60)
        self.assertEqual(code, 0, out + err)
        return out

    def test_parked_and_restored_elsewhere(self):
        for redirect in (False, True):
            name = "redirect" if redirect else "restore"
            first, image = self.server("first-" + name), os.path.join(self.dir, "image-" + name)
            program, session = self.start(first, name, CRICKET_RECONNECT_TIMEOUT="1")
            self.ctl(first, "checkpoint", session, image, "--stop")
            self.go()
            deadline = time.monotonic() + 10
            while b"stopped on purpose" not in open(program.err, "rb").read():
                self.assertLess(time.monotonic(), deadline)
                time.sleep(0.02)
            first.kill()
            time.sleep(2.5)
            self.assertIsNone(program.process.poll(), "it gave up")
            second = self.server("second-" + name)
            if redirect:
                os.environ["HOME"] = os.path.join(self.dir, "elsewhere")
            self.ctl(second, "restore", image)
            if redirect:
                time.sleep(1)
                self.assertEqual(json.loads(self.ctl(second, "ps", "--json"))["sessions"][0]["state"], "restored")
                os.environ["HOME"] = self.home
                runner.cricketctl(self.tree, "redirect", session, "--to", second.address)
            out, err = self.finish(program)
            self.assertEqual(out, self.expected() if not redirect else expected)
            expected = out
            self.assertEqual(err.count("stopped on purpose"), 1, err)
            self.assertEqual(err.count("goes on at"), 1, err)
            state = os.path.join(self.home, ".local", "state", "cricket")
            self.assertEqual(os.stat(state).st_mode & 0o777, 0o700)
            self.assertEqual(os.stat(os.path.join(state, session)).st_mode & 0o777, 0o600)
            self.assertEqual(os.listdir(state), [session])
            shutil.rmtree(os.path.join(self.home, ".local"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
