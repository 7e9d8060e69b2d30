#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Allocations that wait for memory (--when-full wait): over programs on the soft GPU."""
import copy
import os
import random
import signal
import sys
import threading
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from takers import MIB, OUT_OF_MEMORY, Limited  # noqa: E402
from whole import runner  # noqa: E402


CUFFT_ALLOC_FAILED = 2
# Whether this build has the soft GPU's.
SOFT_CUFFT = os.path.exists(os.path.join(os.environ["CKT_TEST_BUILD"], "softgpu/libs/cufft/libcufft.so.12"))


class Later:
    """The answer of a program that waits."""

    def __init__(self, taker, *words):
        self.answer = None
        # Of a test that failed it may wait for ever.
        self.thread = threading.Thread(target=self.run, args=(taker, words), daemon=True)
        self.thread.start()

    def run(self, taker, words):
        self.answer = taker.ask(*words)

    def get(self):
        self.thread.join(60)
        return self.answer


class Waiting(Limited):
    def waiting(self, *options, rules=(), gpu_memory="100M", when_full="wait", **more):
        mode = ("--when-full", when_full) if when_full else ()
        return self.limited(*rules, options=("--gpu-memory", gpu_memory, *mode, *options), **more)

    def wait_for(self, server, text, count=1):
        self.wait(lambda: self.log_of(server).count(text) >= count)

    def begin(self, taker, server, kind, mib):
        """An allocation that the server lets wait: Later."""
        count = self.log_of(server).count(f"waits for {mib} MiB")
        later = Later(taker, kind, mib)
        self.wait_for(server, f"waits for {mib} MiB", count + 1)
        self.assertIsNone(later.answer)
        return later

    def id_of(self, server, taker):
        """By the client's process, which cricket-run has become."""
        (session,) = [s["session"] for s in runner.sessions_of(self.tree, server) if s["pid"] == taker.process.pid]
        return session

    def test_frees(self):
        """What another frees, and what a program leaves at its end; the free memory that is shown agrees."""
        server = self.waiting()
        one, two = self.taker(server), self.taker(server)
        self.assertEqual(one.ask("alloc", 60), 0)
        self.assertEqual(two.ask("alloc", 30), 0)
        later = self.begin(two, server, "alloc", 40)
        self.assertEqual(one.ask("info")[:2], [10 * MIB, 100 * MIB])
        self.assertEqual(one.ask("free"), 0)
        self.assertEqual(later.get(), 0)
        self.assertEqual(one.ask("info")[:2], [30 * MIB, 100 * MIB])
        self.assertEqual(one.ask("alloc", 30), 0)
        self.assertEqual(one.ask("info")[0], 0)
        later = self.begin(one, server, "alloc", 70)
        two.end()
        self.assertEqual(later.get(), 0)
        self.assertIn("gets 70 MiB", self.log_of(server))
        self.assertEqual(one.ask("info")[:2], [0, 100 * MIB])
        self.assertEqual(self.shown(server)[1][0]["used_bytes"], 100 * MIB)

    def test_kinds(self):
        """Every way to take memory that the program waits for."""
        server = self.waiting()
        holder = self.taker(server)
        for kind in ("alloc", "async", "vmm", "array"):
            taker = self.taker(server)
            self.assertEqual(holder.ask("alloc", 80), 0)
            later = Later(taker, kind, 60)
            self.wait(lambda: self.waits(server))
            self.assertEqual(holder.ask("free"), 0)
            self.assertEqual((kind, later.get()), (kind, 0))
            taker.end()

    @unittest.skipUnless(SOFT_CUFFT, "this build has no cuFFT")
    def test_library(self):
        """What a library takes for itself in the worker: the work area of a plan of cuFFT."""
        server = self.waiting("--wait-timeout", "60")
        holder, taker = self.taker(server), self.taker(server)
        self.assertEqual(holder.ask("alloc", 80), 0)
        later = Later(taker, "plan", 32)
        self.wait(lambda: self.waits(server))
        self.assertIsNone(later.answer)
        # A session whose library waits is saved, and goes on waiting; so where it is restored.
        session = self.id_of(server, taker)
        self.ctl(server, "checkpoint", session, os.path.join(self.dir, "image"))
        self.wait_for(server, f"{session} waits for", 2)
        self.ctl(server, "checkpoint", session, os.path.join(self.dir, "stopped"), "--stop")
        self.ctl(server, "restore", os.path.join(self.dir, "stopped"))
        self.wait_for(server, f"{session} waits for", 3)
        self.assertIsNone(later.answer)
        self.assertEqual(holder.ask("free"), 0)
        self.assertEqual(later.get(), 0)
        self.assertLess(holder.ask("info")[0], 70 * MIB)
        # It was made once, for images too.
        self.ctl(server, "checkpoint", session, os.path.join(self.dir, "made"), "--stop")
        self.ctl(server, "restore", os.path.join(self.dir, "made"))
        self.assertEqual(taker.ask("unplan"), 0)
        self.wait(lambda: taker.ask("info")[0] == 100 * MIB)

    @unittest.skipUnless(SOFT_CUFFT, "this build has no cuFFT")
    def test_library_refused(self):
        """It gets the library's own status, and may try again."""
        self.too_long("plan", 32, CUFFT_ALLOC_FAILED, 8)

    def test_threads(self):
        """Only the calling thread waits; a free of another thread of the same program ends its wait."""
        server = self.waiting()
        one, two = self.taker(server), self.taker(server)
        self.assertEqual(one.ask("alloc", 30), 0)
        self.assertEqual(one.ask("alloc", 20), 0)
        self.assertEqual(two.ask("alloc", 40), 0)
        self.assertEqual(one.ask("begin", 26), 0)
        self.wait_for(server, "waits for 26 MiB")
        self.assertEqual(one.ask("alloc", 4), 0)
        self.assertEqual(one.ask("info")[0], 6 * MIB)
        self.assertEqual(one.ask("done"), 0)
        self.assertEqual(one.ask("free"), 0)
        self.assertEqual(one.ask("done"), 0)
        self.assertEqual(one.ask("free"), 0)
        self.assertEqual(one.ask("join"), 0)
        self.assertEqual(one.ask("info")[0], 4 * MIB)

    def test_at_once(self):
        """Out of memory where no other session holds what is missing; for those that do not wait; by rules."""
        server = self.waiting(rules=("job=waits when-full=wait", "job=fails when-full=fail memory=60M"), when_full=None)
        one = self.taker(server, "waits")
        self.assertEqual(one.ask("alloc", 102), OUT_OF_MEMORY)
        self.assertEqual(one.ask("alloc", 60), 0)
        self.assertEqual(one.ask("alloc", 60), OUT_OF_MEMORY)
        two, three = self.taker(server, "fails"), self.taker(server)
        self.assertEqual(two.ask("alloc", 50), OUT_OF_MEMORY)
        self.assertEqual(three.ask("alloc", 50), OUT_OF_MEMORY)
        self.assertNotIn("waits for", self.log_of(server))
        self.assertEqual(two.ask("alloc", 20), 0)
        self.ctl(server, "limit", "set", "job=fails", "when-full=wait")
        self.assertEqual(two.ask("alloc", 60), OUT_OF_MEMORY)
        later = self.begin(two, server, "alloc", 40)
        one.end()
        self.assertEqual(later.get(), 0)
        self.assertIn("job=fails memory=60M when-full=wait", self.shown(server)[0])

    def test_two(self):
        """Two programs of 2 + 2 on 5 with declared limits: both finish, and nobody is refused."""
        server = self.waiting("--session-memory", "42M", gpu_memory="52M")
        one, two = self.taker(server), self.taker(server)
        self.assertEqual(one.ask("alloc", 20), 0)
        later = self.begin(two, server, "alloc", 20)
        self.assertEqual(one.ask("alloc", 20), 0)
        one.end()
        self.assertEqual(later.get(), 0)
        self.assertEqual(two.ask("alloc", 20), 0)
        self.assertNotIn("is refused", self.log_of(server))

    def test_circle(self):
        """Without limits the wait that closes the circle is refused, of the one that holds the most."""
        server = self.waiting()
        one, two = self.taker(server), self.taker(server)
        self.assertEqual(one.ask("alloc", 40), 0)
        self.assertEqual(two.ask("alloc", 42), 0)
        later = self.begin(one, server, "alloc", 40)
        self.assertEqual(two.ask("alloc", 40), OUT_OF_MEMORY)
        self.assertIn("sessions wait for each other", self.log_of(server))
        self.assertIsNone(later.answer)
        self.assertEqual(two.ask("free"), 0)
        self.assertEqual(later.get(), 0)

    def too_long(self, word, mib, refused, less_mib):
        """What needs so much is refused in time; what needs less is not."""
        server = self.waiting("--wait-timeout", "1")
        one, two = self.taker(server), self.taker(server)
        self.assertEqual(one.ask("alloc", 80), 0)
        self.assertEqual(two.ask(word, mib), refused)
        self.assertIn("it waited for --wait-timeout", self.log_of(server))
        self.assertEqual(two.ask(word, less_mib), 0)

    def test_timeout(self):
        self.too_long("alloc", 40, OUT_OF_MEMORY, 20)

    def test_swap(self):
        """Without swap memory it waits as wait does, and the log says so once."""
        server = self.waiting(when_full="swap")
        one, two = self.taker(server), self.taker(server)
        self.assertEqual(one.ask("alloc", 80), 0)
        for _ in range(2):
            later = self.begin(two, server, "alloc", 40)
            self.assertEqual(one.ask("free"), 0)
            self.assertEqual(later.get(), 0)
            self.assertEqual(two.ask("free"), 0)
            self.assertEqual(one.ask("alloc", 80), 0)
        self.assertEqual(self.log_of(server).count("has no swap memory"), 1)

    def test_killed(self):
        """A client that dies waits no more, and the next one is served."""
        server = self.waiting()
        one, two, three = (self.taker(server) for _ in range(3))
        self.assertEqual(one.ask("alloc", 80), 0)
        lost = self.begin(two, server, "alloc", 90)
        later = self.begin(three, server, "alloc", 30)
        two.process.send_signal(signal.SIGKILL)
        self.wait_for(server, "no longer waits for 90 MiB")
        lost.get()
        self.assertEqual(one.ask("free"), 0)
        self.assertEqual(later.get(), 0)
        self.assertEqual(self.waits(server), {})

    def test_checkpoint(self):
        """A session that waits is saved and goes on waiting, first as before; and waits where it is restored."""
        server = self.waiting()
        one, two, three = (self.taker(server) for _ in range(3))
        self.assertEqual(one.ask("alloc", 80), 0)
        first = self.begin(two, server, "alloc", 50)
        second = self.begin(three, server, "alloc", 60)
        session = self.id_of(server, two)
        self.ctl(server, "checkpoint", session, os.path.join(self.dir, "image"))
        self.wait_for(server, f"{session} waits for 50 MiB", 2)
        self.assertEqual(list(self.waits(server)[session][0]), ["gpu", "bytes", "waited_ms", "reason", "holders", "others", "others_bytes"])
        self.assertEqual(one.ask("free"), 0)
        self.assertEqual(first.get(), 0)
        self.assertIsNone(second.answer)
        self.assertEqual(two.ask("free"), 0)
        self.assertEqual(second.get(), 0)
        # Ended with its image, and restored: the call is executed once.
        later = self.begin(two, server, "alloc", 70)
        self.ctl(server, "checkpoint", session, os.path.join(self.dir, "stopped"), "--stop")
        self.ctl(server, "restore", os.path.join(self.dir, "stopped"))
        self.wait_for(server, f"{session} waits for 70 MiB", 2)
        self.assertIsNone(later.answer)
        self.assertEqual(three.ask("free"), 0)
        self.assertEqual(later.get(), 0)
        self.assertEqual(two.ask("info")[0], 30 * MIB)
        self.assertEqual(two.ask("free"), 0)
        self.assertEqual(two.ask("info")[0], 100 * MIB)

    def test_job(self):
        """A job is saved while one of its sessions waits, which waits again afterwards."""
        server = self.waiting()
        one, two = self.taker(server, "j"), self.taker(server, "j")
        self.assertEqual(one.ask("alloc", 80), 0)
        later = self.begin(two, server, "alloc", 40)
        self.ctl(server, "checkpoint", "--job", "j", os.path.join(self.dir, "job"))
        self.wait_for(server, "waits for 40 MiB", 2)
        self.assertEqual(one.ask("free"), 0)
        self.assertEqual(later.get(), 0)

    def test_pause(self):
        server = self.waiting()
        one, two = self.taker(server), self.taker(server)
        self.assertEqual(one.ask("alloc", 80), 0)
        later = self.begin(two, server, "alloc", 40)
        self.ctl(server, "pause", self.id_of(server, two))
        self.assertEqual(self.waits(server), {})
        self.ctl(server, "resume", self.id_of(server, two))
        self.wait_for(server, "waits for 40 MiB", 2)
        self.assertEqual(one.ask("free"), 0)
        self.assertEqual(later.get(), 0)

    def test_server_ends(self):
        """A server that is started again is asked again."""
        server = self.waiting()
        one, two = self.taker(server), self.taker(server)
        self.assertEqual(one.ask("alloc", 80), 0)
        later = self.begin(two, server, "alloc", 40)
        server.kill()
        os.unlink(os.path.join(server.directory, "address"))
        again = self.waiting()
        self.wait_for(again, "waits for 40 MiB")
        self.assertIsNone(later.answer)
        self.assertEqual(one.ask("free"), 0)
        self.assertEqual(later.get(), 0)

    def test_ps(self):
        """Who waits for what and on whom; of other owners' sessions only how many and how much."""
        alice, bob = self.token("alice"), self.token("bob")
        server = self.waiting("--tokens", self.tokens)
        over_tcp = copy.copy(server)
        over_tcp.address = server.tcp
        one, two = self.taker(over_tcp, CRICKET_TOKEN_FILE=alice), self.taker(over_tcp, CRICKET_TOKEN_FILE=bob)
        self.assertEqual(one.ask("alloc", 80), 0)
        later = self.begin(two, server, "alloc", 40)
        holder, waiter = self.id_of(server, one), self.id_of(server, two)
        ((session, (wait,)),) = self.waits(server).items()
        self.assertEqual((session, wait["gpu"], wait["bytes"], wait["others"]), (waiter, 0, 40 * MIB, 0))
        self.assertEqual(wait["reason"], "other sessions hold the memory")
        self.assertEqual(wait["holders"], [{"session": holder, "bytes": 80 * MIB}])
        ((session, (wait,)),) = self.waits(over_tcp, CRICKET_TOKEN_FILE=bob).items()
        self.assertEqual((session, wait["holders"], wait["others"], wait["others_bytes"]), (waiter, [], 1, 80 * MIB))
        self.assertEqual(self.waits(over_tcp, CRICKET_TOKEN_FILE=alice), {})
        self.assertIn(f"held by {holder} 80 MiB", self.ctl(server, "ps"))
        self.assertEqual(one.ask("free"), 0)
        self.assertEqual(later.get(), 0)

    def order(self, policy):
        """Of three that wait for 30, 60 and 50, in which order they are served as 70 and then the rest come free."""
        server = self.waiting("--wait-policy", policy, name=policy)
        holder = self.taker(server)
        takers = [self.taker(server) for _ in range(3)]
        self.assertEqual(holder.ask("alloc", 30), 0)
        self.assertEqual(holder.ask("alloc", 70), 0)
        laters = [self.begin(taker, server, "alloc", mib) for taker, mib in zip(takers, (30, 60, 50))]
        self.assertEqual(holder.ask("free"), 0)
        served = []
        while len(served) < 3:
            self.wait(lambda: [i for i, later in enumerate(laters) if later.answer is not None and i not in served])
            (i,) = [i for i, later in enumerate(laters) if later.answer is not None and i not in served]
            self.assertEqual(laters[i].get(), 0)
            served.append(i)
            self.assertEqual(takers[i].ask("free"), 0)
        return served

    def test_policies(self):
        self.assertEqual(self.order("fifo"), [0, 1, 2])
        self.assertEqual(self.order("best-fit"), [1, 2, 0])
        self.assertEqual(self.order("recent-use"), [2, 1, 0])
        self.assertEqual(sorted(self.order("random")), [0, 1, 2])

    def test_mix(self):
        """Seven programs that take up to two thirds of the GPU, all finish under every policy."""
        for policy in ("fifo", "best-fit", "recent-use", "random"):
            draw = random.Random(policy)
            server = self.waiting("--wait-policy", policy, "--session-memory", "70M", name="mix-" + policy)
            refused = []

            def run(taker, sizes):
                for size in sizes:
                    if taker.ask("alloc", size):
                        refused.append(size)
                taker.end()

            threads = []
            for _ in range(7):
                sizes = [2 * draw.randint(1, 10) for _ in range(3)]
                threads.append(threading.Thread(target=run, args=(self.taker(server), sizes), daemon=True))
                threads[-1].start()
            for thread in threads:
                thread.join(60)
            self.assertEqual((policy, refused), (policy, []))
            self.wait(lambda server=server: not runner.sessions_of(self.tree, server))


if __name__ == "__main__":
    unittest.main(verbosity=2)
