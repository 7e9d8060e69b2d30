# SPDX-License-Identifier: Apache-2.0
"""Whole programs over real servers and workers on the soft GPU, in a temporary directory, with a home of their own."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(HERE, os.pardir, "runner"))
import runner  # noqa: E402

PROGRAM = os.environ["CKT_TEST_PROGRAM"]


class Whole(unittest.TestCase):
    driver = "soft"

    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="ckt-")
        os.chmod(self.dir, 0o755)
        # A bundle, or what is built.
        self.tree = runner.Tree(os.environ.get("CKT_TEST_PREFIX") or runner.stage(os.environ["CKT_TEST_BUILD"]))
        self.tokens = os.path.join(self.dir, "tokens")
        self.servers = []
        self.programs = []
        # cricketctl looks there as the user's.
        self.home = os.path.join(self.dir, "home")
        os.mkdir(self.home)
        self.saved_home = os.environ.get("HOME")
        os.environ["HOME"] = self.home
        os.environ.pop("CRICKET_STATE_DIR", None)
        # Also if a tearDown fails before it comes to ours.
        self.addCleanup(self.end_processes)

    def tearDown(self):
        self.end_processes()

    def end_processes(self):
        """Once more: nothing."""
        os.environ["HOME"] = self.saved_home or "/"
        while self.programs:
            program = self.programs.pop()
            if program.process.poll() is None:
                program.process.kill()
                program.process.wait()
        while self.servers:
            server = self.servers.pop()
            workers = server.workers() if server.process.poll() is None else []
            server.kill()
            runner.end_all(workers, "the test's end")
        shutil.rmtree(self.dir, ignore_errors=True)

    def own_memory(self):
        """From here on, plain images of --encrypt lie in a directory of the test's own: other tests have some, too.  Its path."""
        memory = tempfile.mkdtemp(prefix="ckt-", dir="/dev/shm")
        self.addCleanup(shutil.rmtree, memory, ignore_errors=True)
        patched = unittest.mock.patch.dict(os.environ, TMPDIR=memory)
        patched.start()
        self.addCleanup(patched.stop)
        return memory

    def server(self, name, *options, env=None):
        server = runner.Server(self.tree, os.path.join(self.dir, name), self.driver, options, env)
        self.servers.append(server)
        return server

    def token(self, name, *options):
        """The file with a new token, which self.tokens then has for servers."""
        made = json.loads(runner.cricketctl(self.tree, "--json", "token", "add", name, "--tokens", self.tokens, *options))
        path = os.path.join(self.dir, name + ".token")
        with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="utf-8") as f:
            f.write(made["token"] + "\n")
        return path

    def wait(self, condition):
        """The limit only keeps a test that fails from hanging."""
        end = time.monotonic() + 60
        while not condition():
            self.assertLess(time.monotonic(), end, "it did not happen")
            time.sleep(0.02)

    def ctl(self, server, *words):
        return runner.cricketctl(self.tree, "--server", server.address, *words)

    def start(self, server, name="p", program=PROGRAM, **env):
        """The program at its mid point: (program, session)"""
        directory = os.path.join(self.dir, name)
        os.mkdir(directory)
        self.point = os.path.join(directory, "phase")
        environment = runner.clean_environment()
        environment.update({"CKT_TEST_PHASE_FILE": self.point, "HOME": self.home}, **env)
        program = runner.Program(directory, [self.tree.tool("cricket-run"), "--server", server.address, program], environment)
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
        # A second call starts a server of that name again, and waits for its file of addresses.
        server.stop()
        return out

    def may_fail(self, server, *words, **env):
        """cricketctl with this environment: (exit status, its stdout, its stderr)"""
        done = subprocess.run([self.tree.tool("cricketctl"), "--server", server.address, *words], stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=120, check=False, env={**os.environ, **env})
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    def state(self, server, session):
        return {s["session"]: s["state"] for s in runner.sessions_of(self.tree, server)}.get(session)

    def log_of(self, server):
        with open(server.log, encoding="utf-8") as f:
            return f.read()

    def audited(self, path):
        """The lines of an audit log, which a thread of the server writes: the last one may be half there."""
        with open(path, encoding="utf-8") as f:
            text = f.read()
        return [json.loads(line) for line in text[:text.rfind("\n") + 1].splitlines()]

    def stderr_of(self, program):
        with open(program.err, encoding="utf-8") as f:
            return f.read()

    def image_is_whole(self, path):
        return os.path.exists(path) and json.loads(runner.cricketctl(self.tree, "image", "verify", path, "--json"))["ok"]
