# SPDX-License-Identifier: Apache-2.0
"""Programs that share memory, at a server that takes automatic images of all of them at one moment."""
import contextlib
import json
import os
import re
import signal
import subprocess
import time

from chains import Chains
from whole import runner

CLIENT = os.environ["CKT_TEST_SHARE_CLIENT"]


class Member:
    """A program that owns memory, or uses another's; what it is told, it does."""
    client, ready = CLIENT, "ready\n"

    def __init__(self, test, server, *words, **env):
        before = set(test.sessions(server))
        # Into files: a pipe that nobody reads would stop it.
        self.said = open(os.path.join(test.dir, "said-%d" % len(test.members)), "w+", encoding="utf-8")
        self.process = subprocess.Popen([test.tree.tool("cricket-run"), "--server", server.address, self.client, *words], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=self.said, text=True,
                                        env={**runner.clean_environment(), "HOME": test.home, "CRICKET_RECONNECT_TIMEOUT": test.patience, **env})
        test.members.append(self)
        test.assertEqual(self.process.stdout.readline(), self.ready, self.stderr())
        (self.session,) = set(test.sessions(server)) - before

    def begin(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()

    def answer(self):
        return [int(word) for word in self.process.stdout.readline().split()]

    def ask(self, *words):
        self.begin(*words)
        return self.answer()

    def stderr(self):
        with open(self.said.name, encoding="utf-8") as f:
            return f.read()

    def close(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        self.said.close()


class Groups(Chains):
    def setUp(self):
        super().setUp()
        self.members = []
        self.handle = os.path.join(self.dir, "handle")
        # Seconds; of programs that are to be told that they do not come back: less.
        self.patience = "60"

    def tearDown(self):
        for member in self.members:
            member.close()
        super().tearDown()

    def pair(self, server, value=5, **env):
        """Two programs; the first owns the memory, and the second has set it."""
        first = Member(self, server, "own", self.handle, **env)
        second = Member(self, server, "use", self.handle, **env)
        self.assertEqual(second.ask("set", value), [0])
        self.assertEqual(first.ask("get"), [0, value, value])
        return first, second

    def state_of(self, member, name="first", file="state"):
        try:
            with open(os.path.join(self.images(name), member.session, file), encoding="utf-8") as f:
                return f.read()
        except FileNotFoundError:
            return ""

    def cut_of(self, member, name="first", file="state"):
        state = self.state_of(member, name, file)
        found = re.search("^cut ([0-9a-f]{32})$", state, re.M)
        return (found.group(1), tuple(re.findall("^member ([0-9a-f]{12})$", state, re.M))) if found and "\nshared 1\n" not in state else None

    def wait_cut(self, server, *members, name="first"):
        """A cut of exactly these, with all that they have done."""
        wanted = tuple(sorted(member.session for member in members))

        def whole():
            # What the server says of images comes from the workers' last answers: the first call asks them.
            self.sessions(server)
            images = self.sessions(server)
            cuts = {self.cut_of(member, name) for member in members}
            return len(cuts) == 1 and None not in cuts and cuts.pop()[1] == wanted and \
                all((images.get(member.session) or {}).get("behind", 1) == 0 for member in members)
        self.wait(whole)
        self.workers_seen = [self.worker_of(server, member) for member in members]
        return self.cut_of(members[0], name)[0]

    def worker_of(self, server, member):
        return json.loads(runner.cricketctl(self.tree, "--server", server.address, "--json", "stats", member.session))["worker_pid"]

    def kill_worker(self, server, member):
        pid = self.worker_of(server, member)
        os.kill(pid, signal.SIGKILL)
        runner.end_all([pid], "the test killed it")

    def saved_pair(self, *options, name="first", value=5, **env):
        """Two programs whose images are of one cut, at a server that takes no other images for now."""
        server = self.saving(name, *options, **env)
        first, second = self.pair(server, value)
        cut = self.wait_cut(server, first, second, name=name)
        return self.again(server, *options, name=name), first, second, cut

    def again(self, server, *options, name="first", every="1h", env=None):
        """The next server, which finds the workers again."""
        if server.process.poll() is None:
            server.kill()
        server = self.saving(name, "--auto-checkpoint", every, *options, env=env)
        self.wait(lambda: all(member.session in self.sessions(server) for member in self.members))
        return server

    def said(self):
        return "".join(member.stderr() for member in self.members)

    def take_turns(self, members, values):
        """Each value is set by one, and read by the next one."""
        for i, value in enumerate(values):
            self.assertEqual(members[i % len(members)].ask("set", value), [0], self.said())
            self.assertEqual(members[(i + 1) % len(members)].ask("get"), [0, value, value], self.said())

    def kill_some(self, server, chance):
        """A worker or two at random, one soon after the other."""
        for _ in range(chance.choice((1, 1, 2))):
            where, pause = chance.random(), chance.choice((0, 0.3 * chance.random()))
            workers = self.workers(server)
            for pid in workers[int(where * len(workers)):][:1]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(pause)

    def end_round(self, server):
        """Another server of that name follows."""
        self.end_all(server)
        for member in self.members:
            member.close()
        self.members = []

    def end_all(self, server):
        server.kill()
        self.end_workers()

    def end_workers(self):
        """Those that lived at the last cut; a server that has died cannot name them."""
        for pid in self.workers_seen:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        runner.end_all(self.workers_seen, "the test killed it")

    def lost_by(self, member):
        """What a program says whose session does not come back."""
        self.assertNotEqual(member.answer()[0], 0)
        return member.stderr()
