#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Many at one time, and many one after another, at one server on the soft GPU: same bits, and nothing that grows.

--sessions N, --connections N: at one time (16, 200; issue: 256, 2000).  --series N: one after another (200; issue: 20000)."""
import os
import resource
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
NUMBERS = {"--sessions": 16, "--connections": 200, "--series": 200}
for option in NUMBERS:
    if option in sys.argv:
        at = sys.argv.index(option)
        NUMBERS[option] = int(sys.argv[at + 1])
        del sys.argv[at:at + 2]
from whole import PROGRAM, Whole, runner  # noqa: E402
import wire  # noqa: E402

# More than glibc's arenas and caches take after their first use, and less than a leak of 64 bytes a session makes of 20,000.
GROWTH_KIB = 1024
INFO = 1


class Load(Whole):
    def status(self, server, name):
        with open("/proc/%d/status" % server.process.pid, encoding="utf-8") as f:
            return int(next(line for line in f if line.startswith(name + ":")).split()[1])

    def descriptors(self, server):
        return len(os.listdir("/proc/%d/fd" % server.process.pid))

    def files(self, server):
        """Below its directory, where its socket, key and state lie."""
        return sorted(os.path.relpath(os.path.join(root, name), server.directory) for root, _, names in os.walk(server.directory) for name in names)

    def rests(self, server, peer):
        """No worker is left, and what it has stays for a while: it closes its ends of what has ended after that has ended.  It answers the peer
        once it has dealt with what had ended before."""
        if server.workers():
            return False
        peer.call(INFO)
        seen = self.descriptors(server), self.files(server)
        for _ in range(10):
            time.sleep(0.02)
            if server.workers() or (self.descriptors(server), self.files(server)) != seen:
                return False
        return True

    def start_all(self, server, count):
        self.points, programs = [], []
        for number in range(count):
            directory = os.path.join(self.dir, "p%d" % number)
            os.mkdir(directory)
            self.points.append(os.path.join(directory, "phase"))
            environment = runner.clean_environment()
            environment.update({"CKT_TEST_PHASE_FILE": self.points[-1], "HOME": self.home})
            programs.append(runner.Program(directory, [self.tree.tool("cricket-run"), "--server", server.address, PROGRAM], environment))
        self.programs += programs
        for program, point in zip(programs, self.points):
            program.wait_ready(point + ".ready", 60 + count)
        return programs

    def test_at_once(self):
        """Sessions and connections at one time: each session ends with the same bits, each connection gets its answer."""
        resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
        server = self.server("server", "--max-sessions", "0")
        host, port = server.address.rsplit(":", 1)
        # What stays are its caches.
        os.mkdir(os.path.join(self.dir, "first"))
        expected = runner.Program(os.path.join(self.dir, "first"), [self.tree.tool("cricket-run"), "--server", server.address, PROGRAM],
                                  {**runner.clean_environment(), "HOME": self.home}).wait(60)[1]
        self.wait(lambda: not server.workers())
        before, files = self.descriptors(server), self.files(server)
        programs = self.start_all(server, NUMBERS["--sessions"])
        peers = []
        self.addCleanup(lambda: [peer.close() for peer in peers])
        for number in range(NUMBERS["--connections"]):
            # An address of its own each, as that many hosts would have: one host may have fewer.
            peer = wire.Peer.__new__(wire.Peer)
            peer.sock = wire.socket.create_connection((host, int(port)), 60, ("127.1.%d.%d" % (number // 250, number % 250 + 1), 0))
            peer.xid = 100
            peer.take_greeting()
            self.assertEqual(peer.hello(wire.HELLO_CONTROL)[0], wire.OK)
            peers.append(peer)
        self.assertEqual(len(runner.sessions_of(self.tree, server)), NUMBERS["--sessions"])
        for peer in peers:
            peer.call(INFO)
        for point in self.points:
            for suffix in ("", "2", "3"):
                open(point + ".go" + suffix, "w", encoding="utf-8").close()
        for program in programs:
            code, out, err = program.wait(60 + NUMBERS["--sessions"])
            self.assertEqual((code, out), (0, expected), err)
        for peer in peers:
            peer.call(INFO)
            peer.close()
        self.wait(lambda: not runner.sessions_of(self.tree, server) and not server.workers())
        self.wait(lambda: self.descriptors(server) <= before)
        self.wait(lambda: [f for f in self.files(server) if f not in files] == [])

    def figures(self, server, like=None):
        """Once it rests, with these descriptors and files if given: resident memory in KiB, descriptors, files."""
        def found():
            # One is of the connection below.
            return self.descriptors(server) - 1, self.files(server)

        host, port = server.address.rsplit(":", 1)
        with wire.Peer((host, int(port)), 60) as peer:
            self.assertEqual(peer.hello(wire.HELLO_CONTROL)[0], wire.OK)
            self.wait(lambda: self.rests(server, peer) and like in (None, found()))
            return (self.status(server, "VmRSS"), *found())

    def test_one_after_another(self):
        """The server's memory, descriptors and files after a third of the sessions are those after all."""
        server = self.server("server")
        command = [self.tree.tool("cricket-run"), "--server", server.address, os.environ["CKT_TEST_SMALL"]]
        environment = {**runner.clean_environment(), "HOME": self.home}
        first = seen = out = None
        for number in range(NUMBERS["--series"]):
            done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=60, env=environment)
            self.assertEqual(done.returncode, 0, done.stderr)
            out = out or done.stdout
            self.assertEqual(done.stdout, out)
            first = first or self.figures(server)
            if number == NUMBERS["--series"] // 3:
                seen = self.figures(server)
        now = self.figures(server, seen[1:])
        for what, found in (("one session", first), ("a third", seen), ("all %d" % NUMBERS["--series"], now)):
            print("after %s: %d KiB, %d descriptors, %d files" % (what, found[0], found[1], len(found[2])))
        self.assertEqual(now[1:], seen[1:])
        self.assertLess(now[0] - seen[0], GROWTH_KIB)


if __name__ == "__main__":
    unittest.main(verbosity=2)
