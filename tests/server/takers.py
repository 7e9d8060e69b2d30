# SPDX-License-Identifier: Apache-2.0
"""Programs that take memory as they are told (limit_client.c), and servers that limit it."""
import contextlib
import json
import os
import subprocess
import time

from whole import Whole, runner

CLIENT = os.environ["CKT_TEST_LIMIT_CLIENT"]
MIB = 1 << 20
OUT_OF_MEMORY = 2
END_S = 60


class Taker:
    """A program that does what it is told."""

    def __init__(self, test, server, job="", **env):
        environment = {**runner.clean_environment(), "HOME": test.home, **env}
        if job:
            environment["CRICKET_JOB"] = job
        self.process = subprocess.Popen([test.tree.tool("cricket-run"), "--server", server.address, CLIENT], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
        # One that hangs must not keep its server.
        test.addCleanup(self.kill)
        self.first = self.process.stdout.readline()

    def ask(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        answer = [int(word) for word in self.process.stdout.readline().split()]
        return answer[0] if len(answer) == 1 else answer

    def fill(self, step):
        """Takes until it is refused: how often."""
        count = 0
        while self.ask("alloc", step) == 0:
            count += 1
            time.sleep(0.002)
        return count

    def end(self):
        """What it said on its standard error."""
        self.process.stdin.close()
        self.process.wait(END_S)
        said = self.process.stderr.read()
        self.process.stdout.close()
        self.process.stderr.close()
        return said

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            with contextlib.suppress(OSError):
                pipe.close()


class Limited(Whole):
    """Servers with limits, and programs that take memory from them."""

    def setUp(self):
        super().setUp()
        self.takers = []

    def tearDown(self):
        for taker in self.takers:
            if not taker.process.stdout.closed:
                taker.end()
        # Else their workers wait for clients that could come back.
        for server in self.servers:
            if server.process.poll() is None:
                self.wait(lambda server=server: not runner.sessions_of(self.tree, server))
        super().tearDown()

    def limited(self, *rules, name="server", options=(), devices="12.0:8G"):
        self.file = os.path.join(self.dir, "limits.conf")
        self.write(*rules)
        server = self.server(name, "--limits", self.file, *options, env={"CRICKET_SOFT_DEVICES": devices})
        server.tcp, server.address = server.address, "unix:" + server.socket
        return server

    def write(self, *rules):
        with open(self.file, "w", encoding="utf-8") as f:
            f.write("# rules\n" + "".join(rule + "\n" for rule in rules))

    def taker(self, *args, **env):
        taker = Taker(self, *args, **env)
        self.takers.append(taker)
        return taker

    def waits(self, server, **env):
        """Of the sessions that wait for memory."""
        status, out, said = self.may_fail(server, "--json", "ps", **env)
        self.assertEqual(status, 0, said)
        return {s["session"]: s["waits"] for s in json.loads(out)["sessions"] if s["waits"]}

    def shown(self, server):
        done = json.loads(self.ctl(server, "limit", "show", "--json"))
        return {limit["limit"]: limit for limit in done["limits"]}, done["gpus"]
