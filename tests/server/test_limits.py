#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Limits of owners, and budgets of GPUs: over programs on the soft GPU, as they run and as they are shown."""
import copy
import json
import os
import signal
import sys
import unittest
import unittest.mock

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from takers import MIB, OUT_OF_MEMORY, Limited  # noqa: E402
from whole import runner  # noqa: E402

GRANULE = 2


class Hung(Limited):
    """Of Limits.test_hung."""

    def hang(self):
        server = self.limited("job=train memory=300M")
        taker = self.taker(server)
        self.left = [taker.process.pid, server.process.pid, *server.workers()]
        os.kill(taker.process.pid, signal.SIGSTOP)


class Limits(Limited):
    def has_heard(self, taker, mib):
        """Waits until the program's worker, which the server tells of a new limit, has it in force."""
        self.wait(lambda: taker.ask("info")[1] == mib * MIB)

    def test_hung(self):
        """A test whose program hangs fails, and leaves no process."""
        case, result = Hung("hang"), unittest.TestResult()
        with unittest.mock.patch("takers.END_S", 0.1):
            case.run(result)
        self.assertEqual((len(result.errors), len(result.failures)), (1, 0), result)
        self.assertIn("TimeoutExpired", result.errors[0][1])
        self.assertEqual(len(case.left), 3)
        self.assertEqual([pid for pid in case.left if runner.alive(pid)], [])

    def test_sum(self):
        """One limit for all programs of a job, to one granule; what one frees the other may have."""
        server = self.limited("job=train memory=300M")
        one, two, other = (self.taker(server, job) for job in ("train", "train", "eval"))
        self.assertEqual(one.ask("alloc", 100), 0)
        self.assertEqual(two.ask("alloc", 198), 0)
        self.assertEqual(one.ask("alloc", 2 * GRANULE), OUT_OF_MEMORY)
        self.assertEqual(one.ask("alloc", GRANULE), 0)
        self.assertEqual(two.ask("alloc", GRANULE), OUT_OF_MEMORY)
        self.assertEqual(one.ask("alloc", GRANULE), OUT_OF_MEMORY)
        self.assertEqual(other.ask("alloc", 1000), 0)
        # What was freed stays mapped for the same program, until another wants it.
        self.assertEqual(one.ask("free"), 0)
        self.assertEqual(two.ask("alloc", 2 * GRANULE), OUT_OF_MEMORY)
        self.assertEqual(two.ask("alloc", GRANULE), 0)
        # A program that ends leaves everything.
        two.end()
        self.wait(lambda: len(runner.sessions_of(self.tree, server)) == 2)
        self.assertEqual(one.ask("alloc", 200), 0)
        self.assertEqual(one.ask("alloc", GRANULE), OUT_OF_MEMORY)

    def test_left(self):
        """Memory that its owner frees while another has it open counts for that one."""
        server = self.limited("job=train memory=300M")
        giver, taker = self.taker(server, "train"), self.taker(server, "train")
        path = os.path.join(self.dir, "handle")
        self.assertEqual(giver.ask("alloc", 200), 0)
        self.assertEqual(giver.ask("give", path), 0)
        self.assertEqual(taker.ask("open", path, 200), 0)
        # Once, as long as both have it.
        self.assertEqual(taker.ask("alloc", 60), 0)
        self.assertEqual(giver.ask("free"), 0)
        self.assertEqual(taker.ask("put", 7), 0)
        self.assertEqual(giver.ask("alloc", 100), OUT_OF_MEMORY)
        self.assertEqual(taker.ask("see", 7), 0)
        self.assertEqual(taker.ask("close"), 0)
        self.wait(lambda: giver.ask("alloc", 200) == 0)

    def test_left_by_the_dead(self):
        """Also where the owner has ended, whichever way it was opened."""
        server = self.limited("job=train memory=300M")
        for give, take in (("give", "open"), ("share", "import")):
            giver, taker = self.taker(server, "train"), self.taker(server, "train")
            path = os.path.join(self.dir, give)
            if give == "give":
                self.assertEqual(giver.ask("alloc", 200), 0)
                self.assertEqual(giver.ask("give", path), 0)
            else:
                self.assertEqual(giver.ask("share", path, 200), 0)
            self.assertEqual(taker.ask(take, path, 200), 0)
            giver.process.kill()
            giver.end()
            self.wait(lambda: [s["memory_bytes"] >= 200 * MIB for s in runner.sessions_of(self.tree, server)] == [True])
            third = self.taker(server, "train")
            self.assertEqual((give, third.ask("alloc", 120)), (give, OUT_OF_MEMORY))
            taker.end()
            self.wait(lambda third=third: third.ask("alloc", 200) == 0)
            third.end()
            self.wait(lambda: not runner.sessions_of(self.tree, server))

    def test_kinds(self):
        """Every way to take memory counts."""
        server = self.limited("job=kinds memory=64M")
        self.assertEqual(self.taker(server, "kinds").ask("alloc", 16), 0)
        for kind in ("alloc", "async", "vmm", "array"):
            taker = self.taker(server, "kinds")
            self.assertEqual((kind, taker.ask(kind, 50)), (kind, OUT_OF_MEMORY))
            self.assertEqual((kind, taker.ask(kind, 40)), (kind, 0))
            self.assertEqual((kind, self.taker(server, "kinds").ask("alloc", 10)), (kind, OUT_OF_MEMORY))
            taker.end()
            self.wait(lambda: len([s for s in runner.sessions_of(self.tree, server) if s["memory_bytes"] > 16 * MIB]) == 0)

    def test_figures(self):
        """The program sees the owner's slice: in all, and what is left of it, which it can take."""
        server = self.limited("job=train memory=300M", "job=train sessions=9")
        one, two = self.taker(server, "train"), self.taker(server, "train")
        self.assertEqual(one.ask("info"), [300 * MIB] * 3)
        self.assertEqual(one.ask("alloc", 100), 0)
        left, total, _ = two.ask("info")
        self.assertEqual(total, 300 * MIB)
        self.assertLessEqual(left, 200 * MIB)
        self.assertEqual(two.ask("alloc", left // MIB), 0)
        self.assertEqual(two.ask("alloc", 200 - left // MIB), 0)
        for taker in (one, two):
            self.assertEqual(taker.ask("info")[:2], [0, 300 * MIB])
            self.assertEqual(taker.ask("nvml"), [0, 300 * MIB])
        self.assertEqual(self.taker(server).ask("info")[1:], [8 << 30, 8 << 30])
        # What is mapped and free is free for the same program, and for another.
        third = self.taker(server, "train")
        self.assertEqual(one.ask("free"), 0)
        self.assertEqual(one.ask("alloc", 48), 0)
        self.assertEqual(one.ask("free"), 0)
        self.assertEqual(one.ask("info")[0], 100 * MIB)
        self.assertEqual(third.ask("alloc", 100), 0)
        self.assertEqual(one.ask("info")[0], 0)

    def test_convgpu(self):
        """ConVGPU's experiment, ten seconds being two milliseconds: each takes 128 MiB until it is refused."""
        server = self.limited(*("job=c%d memory=1G" % i for i in range(1, 7)), options=("--gpu-memory", "5G"))
        for i in range(1, 4):
            self.assertEqual((i, self.taker(server, "c%d" % i).fill(128)), (i, 8))
        # Three stopped at their boundary, so two more fit, and the next finds the GPU full.
        for i in (4, 5):
            self.assertEqual((i, self.taker(server, "c%d" % i).fill(128)), (i, 8))
        self.assertEqual(self.taker(server, "c6").fill(128), 0)
        limits, (gpu,) = self.shown(server)
        self.assertEqual([limits["job=c%d memory=1G" % i]["sessions"] for i in range(1, 7)], [1] * 6)
        self.assertEqual(gpu, {"gpu": 0, "budget_bytes": 5 << 30, "used_bytes": 5 << 30})
        # Without a boundary the first takes all.
        for taker in self.takers:
            taker.end()
        self.wait(lambda: not runner.sessions_of(self.tree, server))
        self.assertEqual(self.taker(server).fill(128), 40)
        self.assertEqual(self.taker(server).fill(128), 0)

    def test_race(self):
        """Programs of one owner that take granules all at one time: never more than the limit, and all of it."""
        server = self.limited("job=race memory=256M")
        takers = [self.taker(server, "race") for _ in range(4)]
        for taker in takers:
            taker.process.stdin.write("alloc 2\n" * 100)
            taker.process.stdin.flush()
        got = [[int(taker.process.stdout.readline()) for _ in range(100)].count(0) for taker in takers]
        self.assertEqual(sum(got), 128, got)

    def test_live(self):
        """Set, shown, lowered and cleared while programs run; kept over a restart of the server."""
        server = self.limited()
        taker = self.taker(server, "train")
        self.assertEqual(taker.ask("alloc", 100), 0)
        self.ctl(server, "limit", "set", "job=train", "memory=120M", "share=30", "priority=5")
        self.has_heard(taker, 120)
        self.assertEqual(taker.ask("alloc", 30), OUT_OF_MEMORY)
        self.assertEqual(taker.ask("alloc", 10), 0)
        self.assertEqual(taker.ask("info")[:2], [10 * MIB, 120 * MIB])
        (limit,) = self.shown(server)[0].values()
        self.assertEqual((limit["limit"], limit["live"], limit["sessions"]), ("job=train memory=120M share=30 priority=5", True, 1))
        self.assertGreaterEqual(limit["gpus"][0]["leased_bytes"], 110 * MIB)
        # Below what it has: it keeps that, and gets nothing more.
        self.ctl(server, "limit", "set", "job=train", "memory=50M")
        self.has_heard(taker, 50)
        self.assertEqual(taker.ask("alloc", GRANULE), OUT_OF_MEMORY)
        self.assertEqual(taker.ask("info")[:2], [0, 50 * MIB])
        self.ctl(server, "limit", "set", "job=train", "memory=120M")
        server.kill()
        os.unlink(os.path.join(server.directory, "address"))
        again = self.limited()
        self.wait(lambda: "found again" in self.log_of(again))
        self.wait(lambda: taker.ask("info")[:2] == [10 * MIB, 120 * MIB])
        self.assertEqual(taker.ask("alloc", 12), OUT_OF_MEMORY)
        self.assertEqual(self.taker(again, "train").ask("alloc", 10), 0)
        self.assertEqual(taker.ask("alloc", GRANULE), OUT_OF_MEMORY)
        self.ctl(again, "limit", "clear", "job=train")
        self.assertEqual(taker.ask("alloc", 500), 0)
        self.assertEqual(self.shown(again)[0], {})
        status, _, said = self.may_fail(again, "limit", "clear", "job=train")
        self.assertEqual(status, 1)
        self.assertIn("cricketctl limit show", said)

    def test_session(self):
        """A session's own limit, by the beginning of its id."""
        server = self.limited()
        one, two = self.taker(server), self.taker(server)
        (session,) = [s["session"] for s in runner.sessions_of(self.tree, server) if s["pid"] == one.process.pid]
        self.ctl(server, "limit", "set", "session=" + session[:6], "memory=64M")
        self.has_heard(one, 64)
        self.assertEqual(one.ask("alloc", 66), OUT_OF_MEMORY)
        self.assertEqual(one.ask("alloc", 64), 0)
        self.assertEqual(two.ask("alloc", 66), 0)
        self.assertIn("session=%s memory=64M" % session, self.shown(server)[0])

    def test_files(self):
        """SIGHUP reads the file again; a mistake is named by its line, and changes nothing."""
        server = self.limited("job=train memory=100M")
        taker = self.taker(server, "train")
        self.write("job=train memory=200M")
        os.kill(server.process.pid, signal.SIGHUP)
        self.wait(lambda: "limits read" in self.log_of(server))
        self.has_heard(taker, 200)
        self.assertEqual(taker.ask("alloc", 200), 0)
        self.write("job=train memory=400M", "job=train memory=many")
        os.kill(server.process.pid, signal.SIGHUP)
        self.wait(lambda: "the limits stay as they were" in self.log_of(server))
        self.assertIn(self.file + ":3: 'memory=many': write a size", self.log_of(server))
        self.assertEqual(taker.ask("alloc", GRANULE), OUT_OF_MEMORY)
        status, _, said = self.may_fail(server, "limit", "clear", "job=train")
        self.assertEqual(status, 1)
        self.assertIn("SIGHUP", said)

    def test_gpus(self):
        """A GPU that is not assigned does not exist, whatever the client asks."""
        server = self.limited("job=one gpus=1", "job=none gpus=7", devices="12.0:1G,12.0:2G,12.0:3G")
        self.assertEqual(self.taker(server).ask("count"), 3)
        one = self.taker(server, "one")
        self.assertEqual(one.ask("count"), 1)
        self.assertEqual(one.ask("info")[1], 2 << 30)
        self.assertEqual(one.ask("nvml")[1], 2 << 30)
        self.assertEqual(self.taker(server, "one", CUDA_VISIBLE_DEVICES="0").ask("info")[1], 2 << 30)
        for job, visible in (("one", "1"), ("one", "2"), ("none", None)):
            taker = self.taker(server, job, **({"CUDA_VISIBLE_DEVICES": visible} if visible else {}))
            self.assertNotEqual(taker.first, "0\n", (job, visible))

    def test_sessions(self):
        server = self.limited("job=train sessions=2", "user=%d sessions=3" % os.getuid())
        takers = [self.taker(server, "train") for _ in range(2)]
        third = self.taker(server, "train")
        self.assertNotEqual(third.first, "0\n")
        self.assertIn("job=train already has the 2 sessions of its limit", third.end())
        takers.append(self.taker(server, "eval"))
        self.assertEqual([t.first for t in takers], ["0\n"] * 3)
        takers[0].end()
        self.wait(lambda: len(runner.sessions_of(self.tree, server)) == 2)
        self.assertEqual(self.taker(server, "train").first, "0\n")

    def test_users(self):
        """By user, and by the cgroup of the program, for those that the kernel reports."""
        with open("/proc/self/cgroup", encoding="ascii") as f:
            lines = [line.strip().split(":", 2) for line in f]
        cgroup = ([path for _, kinds, path in lines if "memory" in kinds.split(",")] + [path for number, _, path in lines if number == "0"] + ["/"])[0]
        server = self.limited("user=%d memory=100M" % os.getuid())
        remote = copy.copy(server)
        remote.address = server.tcp
        local = self.taker(server)
        self.assertEqual(local.ask("alloc", 102), OUT_OF_MEMORY)
        self.assertEqual(local.ask("alloc", 60), 0)
        self.assertEqual(self.taker(server, "other").ask("alloc", 42), OUT_OF_MEMORY)
        # Over TCP without a token it is nobody's.
        self.assertEqual(self.taker(remote).ask("alloc", 102), 0)
        if cgroup != "/":
            self.ctl(server, "limit", "set", "container=" + cgroup, "memory=70M")
            self.has_heard(local, 70)
            self.assertEqual(local.ask("alloc", 12), OUT_OF_MEMORY)
            self.assertEqual(local.ask("alloc", 10), 0)

    def test_budget(self):
        """Sessions of all owners share the soft GPU's budget; each GPU has its own."""
        server = self.limited(options=("--gpu-memory", "0=256M,1=64M"), devices="12.0:1G,12.0:1G")
        one, two = self.taker(server, "a"), self.taker(server, "b")
        second = self.taker(server, "c", CUDA_VISIBLE_DEVICES="1")
        self.assertEqual(one.ask("alloc", 200), 0)
        self.assertEqual(two.ask("alloc", 58), OUT_OF_MEMORY)
        self.assertEqual(two.ask("info")[1:], [256 * MIB] * 2)
        self.assertEqual(two.ask("alloc", 56), 0)
        self.assertEqual(one.ask("alloc", GRANULE), OUT_OF_MEMORY)
        self.assertEqual(second.ask("alloc", 66), OUT_OF_MEMORY)
        self.assertEqual(second.ask("alloc", 64), 0)

    def test_rights(self):
        """Administrators limit everybody, nobody limits himself, and each sees what concerns him."""
        alice, bob, root = (self.token(name) for name in ("alice", "bob", "boss"))
        runner.cricketctl(self.tree, "token", "revoke", "boss", "--tokens", self.tokens)
        made = json.loads(runner.cricketctl(self.tree, "--json", "token", "add", "boss", "--role", "administrator", "--tokens", self.tokens))
        with open(root, "w", encoding="utf-8") as f:
            f.write(made["token"] + "\n")
        server = self.limited(options=("--tokens", self.tokens))
        over_tcp = copy.copy(server)
        over_tcp.address = server.tcp
        for token, allowed in ((alice, False), (root, True)):
            status, _, said = self.may_fail(over_tcp, "limit", "set", "token=alice", "memory=100M", CRICKET_TOKEN_FILE=token)
            self.assertEqual(status == 0, allowed, said)
            self.assertEqual("administrators" in said, not allowed)
        for token, seen in ((alice, True), (bob, False), (root, True)):
            status, out, said = self.may_fail(over_tcp, "limit", "show", CRICKET_TOKEN_FILE=token)
            self.assertEqual((status, "token=alice memory=100M" in out), (0, seen), said)
        status, _, said = self.may_fail(over_tcp, "limit", "clear", "token=alice", CRICKET_TOKEN_FILE=alice)
        self.assertEqual(status, 1)
        taker = self.taker(over_tcp, CRICKET_TOKEN_FILE=alice)
        self.assertEqual(taker.ask("alloc", 102), OUT_OF_MEMORY)
        self.assertEqual(taker.ask("alloc", 100), 0)
        self.assertEqual(self.taker(over_tcp, CRICKET_TOKEN_FILE=bob).ask("alloc", 102), 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
