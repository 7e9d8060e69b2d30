#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A program's second start does not send its modules again: bytes and round trips are counted, no time is compared."""
import glob
import json
import os
import subprocess
import sys
import threading
import unittest

from whole import HERE, Whole, runner
from distance import Proxy  # noqa: E402, I001 - whole says where it lies

MODULE = 300 << 10
SMALL = 40 << 10
# What a start sends beside its modules.
OTHER_MAX = 16 << 10


class Modules(Whole):
    def setUp(self):
        super().setUp()
        self.cache = os.path.join(self.dir, "modules")
        self.serial = 0
        self.rtt_s = 0.02

    def cached(self, name, *options, cache=None, **kind):
        return self.server(name, "--module-cache", cache or self.cache, *options, **kind)

    def command(self, address, size, seed):
        return [self.tree.tool("cricket-run"), "--server", address, sys.executable, os.path.join(HERE, "modules.py"), str(size), seed]

    def once(self, server, size=MODULE, seed="", **env):
        """One start: (bytes from the program, round trips)"""
        proxy = Proxy(server.address, self.rtt_s)
        self.addCleanup(proxy.close)
        done = subprocess.run(self.command(proxy.address, size, seed), capture_output=True, timeout=120, check=False,
                              env={**runner.clean_environment(), "HOME": self.home, **env})
        self.assertEqual((done.returncode, done.stdout), (0, b"4711\n"), done.stderr)
        # Then the proxy has counted what the program sent last, too, and no other test of the server's sessions meets this one.
        self.wait(lambda: not runner.sessions_of_socket(self.tree, server))
        return proxy.bytes_up, proxy.round_trips

    def agree(self, measure):
        """measure(number of the try) tells round trips that must be the same, each time with another cache.  A machine that stands still for longer
        than the network's round trip splits one into two: each try has a longer one."""
        told = []
        while len(told) < 5:
            self.rtt_s = 0.02 * 2 ** len(told)
            self.cache = os.path.join(self.dir, "modules%d" % len(told))
            told.append(measure(len(told)))
            if len(set(told[-1])) == 1:
                return
        self.fail("round trips differ: %s" % told)

    def files(self, cache=None):
        return glob.glob(os.path.join(cache or self.cache, "*", "*"))

    def wait_kept(self, count):
        self.wait(lambda: len([f for f in self.files() if "new" not in f]) == count)

    def paused(self, server, name, address=None, **env):
        """The program with its module loaded: (program, its session's counts)"""
        directory = os.path.join(self.dir, name)
        os.mkdir(directory)
        self.point = os.path.join(directory, "phase")
        environment = {**runner.clean_environment(), "CKT_TEST_PHASE_FILE": self.point, "HOME": self.home, **env}
        program = runner.Program(directory, self.command(address or server.address, MODULE, ""), environment)
        self.programs.append(program)
        program.wait_ready(self.point + ".ready", 60)
        (session,) = runner.sessions_of(self.tree, server)
        return program, session["session"], json.loads(self.ctl(server, "stats", session["session"], "--json"))["module_cache"]

    def second_start(self, number):
        server = self.cached("server%d" % number)
        first, trips = self.once(server)
        self.assertGreater(first, MODULE)
        self.wait_kept(1)
        second, same = self.once(server)
        self.assertLess(second, OTHER_MAX)
        # A server that is started again has it, too; one without a cache does not.
        server.stop()
        self.assertLess(self.once(self.cached("again%d" % number))[0], OTHER_MAX)
        none, more = self.once(self.server("none%d" % number, "--module-cache", "off"))
        self.assertGreater(none, MODULE)
        # The server has said at the hello what it keeps: nobody asks.
        return trips, same, more - 1

    def test_second_start(self):
        self.agree(self.second_start)

    def test_needed(self):
        """Machine code of other GPUs stays where it is."""
        server = self.cached("server")
        self.assertLess(self.once(server, seed="fat")[0], OTHER_MAX)
        self.assertGreater(self.once(server, seed="fat", CRICKET_WHOLE_MODULES="1")[0], 2 * MODULE)
        self.assertLess(self.once(server, seed="fat", CUDA_FORCE_PTX_JIT="1")[0], OTHER_MAX)

    def small(self, number):
        server, none = self.cached("server%d" % number), self.server("none%d" % number, "--module-cache", "off")
        first, trips = self.once(server, SMALL)
        self.assertGreater(first, SMALL)
        self.wait_kept(1)
        second, same = self.once(server, SMALL)
        self.assertLess(second, OTHER_MAX)
        always, also = self.once(none, SMALL)
        self.assertGreater(always, SMALL)
        return trips, same, also

    def test_small(self):
        """It costs no round trip with or without a cache, and its bytes once with one."""
        self.agree(self.small)

    def owners(self, number):
        alice, bob = (self.token("%s%d" % (name, number)) for name in ("alice", "bob"))
        server = self.cached("server%d" % number, "--tokens", self.tokens)
        self.assertGreater(self.once(server, CRICKET_TOKEN_FILE=alice)[0], MODULE)
        self.wait_kept(1)
        first, trips = self.once(server, seed="unknown to all", CRICKET_TOKEN_FILE=bob)
        again, same = self.once(server, CRICKET_TOKEN_FILE=bob)
        self.assertGreater(again, MODULE)
        self.assertLess(abs(first - again), 64)
        self.assertLess(self.once(server, CRICKET_TOKEN_FILE=alice)[0], OTHER_MAX)
        for path in glob.glob(os.path.join(self.cache, "*")):
            self.assertEqual(os.stat(path).st_mode & 0o7777, 0o700)
        return trips, same

    def test_owners(self):
        """Two owners share nothing, and neither learns what the other has."""
        self.agree(self.owners)

    def test_damaged(self):
        server = self.cached("server")
        self.once(server)
        self.wait_kept(1)
        (path,) = self.files()
        with open(path, "r+b") as f:
            good = f.read()
            f.seek(1000)
            f.write(b"?")

        def is_good():
            if not os.path.exists(path):
                return False
            with open(path, "rb") as f:
                return f.read() == good

        self.assertGreater(self.once(server)[0], MODULE)
        self.wait(lambda: "did not match its hash" in self.log_of(server))
        self.assertEqual(self.log_of(server).count("did not match its hash"), 1)
        # It was sent again and is good again.
        self.wait(is_good)
        self.wait_kept(1)
        self.assertLess(self.once(server)[0], OTHER_MAX)
        # Cut off.
        os.truncate(path, 100)
        self.assertGreater(self.once(server)[0], MODULE)

    def test_bound(self):
        """The one that was not used for longest goes."""
        server = self.cached("server", "--module-cache-size", str(2 * MODULE + 1000))
        for count, seed in enumerate(("first", "second")):
            self.once(server, seed=seed)
            self.wait_kept(count + 1)
        self.assertLess(self.once(server, seed="first")[0], OTHER_MAX)
        self.once(server, seed="third")
        self.wait(lambda: self.once(server, seed="third")[0] < OTHER_MAX)
        self.wait(lambda: len(self.files()) == 2)
        self.assertLess(self.once(server, seed="first")[0], OTHER_MAX)
        self.assertGreater(self.once(server, seed="second")[0], MODULE)
        # One that is larger than all of it is not kept.
        self.once(server, 3 * MODULE)
        self.assertGreater(self.once(server, 3 * MODULE)[0], 3 * MODULE)

    def test_no_directory(self):
        """Where nothing can be kept, programs run, and the log says it once."""
        blocked = os.path.join(self.dir, "file")
        open(blocked, "w").close()
        server = self.cached("server", cache=os.path.join(blocked, "modules"))
        for _ in range(2):
            self.assertGreater(self.once(server)[0], MODULE)
        self.wait(lambda: "modules are not kept" in self.log_of(server))
        self.assertEqual(self.log_of(server).count("modules are not kept"), 1)

    def test_at_one_time(self):
        """Programs that start together store the same module once."""
        server = self.cached("server")
        threads = [threading.Thread(target=self.once, args=(server,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.wait_kept(1)
        self.wait(lambda: len(self.files()) == 1)
        self.assertLess(self.once(server)[0], OTHER_MAX)

    def test_restore(self):
        """An image has the modules that came from the cache; the server that restores it needs none."""
        server = self.cached("server")
        self.once(server)
        self.wait_kept(1)
        program, session, counts = self.paused(server, "paused")
        self.assertEqual(counts, {"hits": 1, "misses": 0, "bytes": MODULE})
        other = self.server("other", "--module-cache", "off")
        image = os.path.join(self.dir, "image")
        self.ctl(server, "checkpoint", session, image, "--stop")
        runner.cricketctl(self.tree, "restore", image, "--server", other.address)
        self.assertEqual(self.finish(program)[0], b"4711\n")

    def test_next_server(self):
        """A session that outlives its server has the next one's cache."""
        server = self.cached("server")
        # Of an anonymous session the next server does not know whose it is.
        program, session, _ = self.paused(server, "paused", "unix:" + server.socket, CKT_TEST_AGAIN="later")
        self.wait_kept(1)
        server.kill()
        os.remove(os.path.join(server.directory, "address"))
        server = self.cached("server")
        self.wait(lambda: self.state(server, session) == "running")
        self.assertEqual(self.finish(program)[0], b"4711\n")
        self.wait_kept(2)

    def test_counts(self):
        program, _, counts = self.paused(self.cached("server"), "paused")
        self.assertEqual(counts, {"hits": 0, "misses": 1, "bytes": 0})
        self.finish(program)


if __name__ == "__main__":
    unittest.main(verbosity=2)
