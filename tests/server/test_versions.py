#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Neighbouring versions work together: clients, servers, cricketctl and images of an older bundle and of this build, on the soft GPU.

--old DIR, or CKT_OLD_BUNDLE: the older bundle, which `./run test versions` builds from the history.  Without one all is skipped.
A server and its workers are always of one bundle, except after --replace: there the successor meets the workers of the server before it."""
import itertools
import json
import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
if "--old" in sys.argv:
    at = sys.argv.index("--old")
    os.environ["CKT_OLD_BUNDLE"] = sys.argv[at + 1]
    del sys.argv[at:at + 2]
from whole import PROGRAM, Whole, runner  # noqa: E402

OLD = os.environ.get("CKT_OLD_BUNDLE")
NEW = "new"
BOTH = ("old", "new")


def has(tree, words):
    """Whether that cricketctl knows the subcommand."""
    return subprocess.run([tree.tool("cricketctl"), *words, "--help"], capture_output=True, check=False).returncode == 0


class Versions(Whole):
    def setUp(self):
        super().setUp()
        self.trees = {"old": runner.Tree(OLD), NEW: self.tree}
        self.count = 0

    def server_of(self, version, *options):
        self.count += 1
        server = runner.Server(self.trees[version], os.path.join(self.dir, "server-%d" % self.count), "soft", options)
        self.servers.append(server)
        return server

    def program(self, client, server):
        """A program of that client at its mid point: (program, session)"""
        self.count += 1
        directory = os.path.join(self.dir, "p%d" % self.count)
        os.mkdir(directory)
        self.point = os.path.join(directory, "phase")
        environment = runner.clean_environment()
        environment.update({"CKT_TEST_PHASE_FILE": self.point, "HOME": self.home})
        before = {s["session"] for s in runner.sessions_of(self.tree, server)}
        program = runner.Program(directory, [self.trees[client].tool("cricket-run"), "--server", server.address, PROGRAM], environment)
        self.programs.append(program)
        program.wait_ready(self.point + ".ready", 60)
        (session,) = {s["session"] for s in runner.sessions_of(self.tree, server)} - before
        return program, session

    def ctl_of(self, version, server, *words):
        return runner.cricketctl(self.trees[version], "--server", server.address, *words)

    def ends(self, program, expected):
        self.assertEqual(self.finish(program)[0], expected)

    def test_run(self):
        """A program of each client at each server, with what each cricketctl shows of it."""
        expected = self.expected()
        for client, version in itertools.product(BOTH, BOTH):
            with self.subTest(client=client, server=version):
                server = self.server_of(version)
                program, session = self.program(client, server)
                for ctl in BOTH:
                    self.assertEqual([s["session"] for s in json.loads(self.ctl_of(ctl, server, "ps", "--json"))["sessions"]], [session])
                    if (ctl, version) == (NEW, NEW):
                        self.assertIn(json.loads(self.ctl_of(ctl, server, "ps", "--json"))["sessions"][0]["answered"], (False, True))
                    self.assertIn(session, self.ctl_of(ctl, server, "ps"))
                    self.assertTrue(json.loads(self.ctl_of(ctl, server, "stats", session, "--json"))["calls"])
                    json.loads(self.ctl_of(ctl, server, "info", "--json"))
                    self.assertIn("started", self.ctl_of(ctl, server, "events"))
                    if has(self.trees[ctl], ["place"]):
                        self.assertEqual(self.ctl_of(ctl, server, "place", "spread").strip(), server.address)
                    self.ctl_of(ctl, server, "pause", session)
                    self.ctl_of(ctl, server, "resume", session)
                self.ends(program, expected)
                server.stop()

    def test_images(self):
        """An image by each cricketctl at each server comes back at each server by each cricketctl: whole, and in a chain."""
        expected = self.expected()
        for saver, source, restorer, target in itertools.product(BOTH, repeat=4):
            if len({saver, source, restorer, target}) == 1:
                continue
            with self.subTest(saver=saver, source=source, restorer=restorer, target=target):
                first, second = self.server_of(source), self.server_of(target)
                program, session = self.program(source, first)
                base, image = (os.path.join(self.dir, "image-%d-%s" % (self.count, name)) for name in ("base", "last"))
                self.ctl_of(saver, first, "checkpoint", session, base)
                self.ctl_of(saver, first, "checkpoint", session, image, "--incremental", base, "--stop")
                for reader in BOTH:
                    self.assertTrue(json.loads(runner.cricketctl(self.trees[reader], "image", "verify", image, "--json"))["ok"])
                self.ctl_of(restorer, second, "restore", image)
                self.ends(program, expected)
                first.stop()
                second.stop()

    def test_moves(self):
        """A running session moves from each server to each, by each cricketctl, with each client."""
        expected = self.expected()
        for client, ctl, source, target in itertools.product(BOTH, repeat=4):
            if len({client, ctl, source, target}) == 1:
                continue
            with self.subTest(client=client, ctl=ctl, source=source, target=target):
                first, second = self.server_of(source), self.server_of(target)
                program, session = self.program(client, first)
                self.ctl_of(ctl, first, "migrate", session, "--to", second.address)
                self.assertEqual([s["session"] for s in runner.sessions_of(self.tree, second)], [session])
                self.ends(program, expected)
                first.stop()
                second.stop()

    def test_unknown(self):
        """What an older server does not know is refused with a sentence, and the session runs on."""
        expected = self.expected()
        server = self.server_of("old")
        program, session = self.program(NEW, server)
        code, _, err = self.may_fail(server, "drain")
        if code != 0 and not has(self.trees["old"], ["drain"]):
            self.assertIn("earlier version cannot be drained", err)
        elif code == 0:
            self.ctl(server, "drain", "--undo")
        self.assertIn(session, self.ctl(server, "ps"))
        self.ends(program, expected)

    def test_replaced(self):
        """A server of this build takes the place of an older one, if that can be replaced: its sessions, with their older workers, go on, are saved and move."""
        expected = self.expected()
        server = self.server_of("old")
        program, session = self.program("old", server)
        command = [self.tree.tool("cricket-server"), "--replace", "--driver", "soft", "--listen", server.address, "--socket", server.socket, "--warm", "0"]
        with open(os.path.join(self.dir, "successor"), "wb") as log:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                       env={**os.environ, "STATE_DIRECTORY": server.directory, "CACHE_DIRECTORY": server.directory})
        if not runner.knows(self.trees["old"], "--replace"):
            # It is told so, and the other runs on; ended by a crash, it is found again by its sockets.
            self.assertEqual(process.wait(60), 1)
            server.kill()
            process = subprocess.Popen([word for word in command if word != "--replace"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL, env={**os.environ, "STATE_DIRECTORY": server.directory, "CACHE_DIRECTORY": server.directory})
        else:
            self.assertEqual(server.process.wait(60), 0)
        server.process = process
        self.wait(lambda: self.may_fail(server, "ps")[1].count(session) == 1)
        for words in (("ps", "--json"), ("stats", session, "--json"), ("info", "--json"), ("top", "--once", "--json")):
            json.loads(self.ctl(server, *words))
        image = os.path.join(self.dir, "image")
        self.ctl(server, "checkpoint", session, image)
        self.ctl(server, "pause", session)
        self.ctl(server, "resume", session)
        second = self.server_of(NEW)
        code, out, err = self.may_fail(server, "drain", "--to", second.address)
        self.assertEqual(code, 0, out + err)
        self.assertEqual([s["session"] for s in runner.sessions_of(self.tree, second)], [session])
        self.ends(program, expected)


if __name__ == "__main__":
    if not OLD:
        print("no older bundle: give --old DIR, or build one with ./run test versions")
        sys.exit(77)
    unittest.main(verbosity=2)
