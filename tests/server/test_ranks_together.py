#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Ranks of NCCL communicators that leave the GPU together (--when-full swap): over programs on the soft GPU."""
import json
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from takers import Limited  # noqa: E402
from whole import runner  # noqa: E402

MASK = (1 << 32) - 1


class Ranks(Limited):
    def swapping(self, *options, gpus=1, fault=None, name="server", gpu_memory="100M"):
        env = {"CRICKET_SOFT_DEVICES": ",".join(["12.0:" + gpu_memory] * gpus)}
        if fault:
            env["CRICKET_FAULT"] = fault
        server = self.server(name, "--gpu-memory", gpu_memory, "--when-full", "swap", "--swap-memory", "1G", "--max-wait", "1", *options, env=env)
        server.tcp, server.address = server.address, "unix:" + server.socket
        return server

    def begun(self, taker, *words):
        """A command that waits: what ends the wait for its answer."""
        taker.process.stdin.write(" ".join(map(str, words)) + "\n")
        taker.process.stdin.flush()
        return lambda: int(taker.process.stdout.readline())

    def ranks(self, server, count=2, mib=10, gpus=1, others=()):
        """Programs with two blocks each, of which the first has its rank's number and one in every word, and a communicator of all; at other servers, too."""
        path = os.path.join(self.dir, "id-%d" % len(self.takers))
        ranks = [self.taker(at) for at in [server] * (count - len(others)) + list(others)]
        for number, rank in enumerate(ranks):
            if gpus > 1:
                self.assertEqual(rank.ask("use", number % gpus), 0)
            self.assertEqual([rank.ask("alloc", mib), rank.ask("alloc", mib), rank.ask("fill", number + 1)], [0, 0, 0])
        self.assertEqual(ranks[0].ask("unique", path), 0)
        joined = [self.begun(rank, "rank", path, number, count) for number, rank in enumerate(ranks)]
        self.assertEqual([answer() for answer in joined], [0] * count)
        self.words = [number + 1 for number in range(count)]
        return ranks

    def expected(self, loops):
        """What all words are after so many loops more; see ranked.h."""
        for _ in range(loops):
            total = sum(self.words)
            self.words = [(total * 1664525 + 1013904223 + number) & MASK for number in range(len(self.words))]
        return self.words

    def train(self, ranks, loops):
        return [self.begun(rank, "train", loops) for rank in ranks]

    def trained(self, ranks, loops):
        answers = self.train(ranks, loops)
        self.assertEqual([answer() for answer in answers], self.expected(loops))

    def sessions(self, server):
        return {s["session"]: s for s in json.loads(self.ctl(server, "--json", "ps"))["sessions"]}

    def id_of(self, server, taker):
        (session,) = [s["session"] for s in runner.sessions_of(self.tree, server) if s["pid"] == taker.process.pid]
        return session

    def swapping_of(self, server, *takers):
        sessions = self.sessions(server)
        return [sessions[self.id_of(server, taker)]["swapping"] for taker in takers]

    def leave(self, server, session):
        """Once all go on: a rank may answer its program before the server knows that it does."""
        def left():
            status, _, said = self.may_fail(server, "swap", "out", session)
            self.assertTrue(status == 0 or "try again when that is over" in said, said)
            return status == 0
        self.wait(left)

    def left_together(self, server, ranks):
        """All as often, and at least once; one may be counted a moment after the other's memory is somebody's."""
        self.wait(lambda: len({one["outs"] for one in self.swapping_of(server, *ranks)}) == 1)
        self.assertGreater(self.swapping_of(server, *ranks)[0]["outs"], 0)

    def test_ten_times(self):
        """Two ranks sum without a pause and are swapped out and in ten times, always together: every word is as without it."""
        server = self.swapping("--drain", "60")
        ranks = self.ranks(server)
        ids = [self.id_of(server, rank) for rank in ranks]
        for turn in range(10):
            answers = self.train(ranks, 40)
            self.leave(server, ids[turn % 2])
            self.assertEqual([one["outs"] for one in self.swapping_of(server, *ranks)], [turn + 1] * 2)
            # What the programs wait for brings both in; or, if it was done before, what they ask for next.
            self.assertEqual([answer() for answer in answers], self.expected(40))
            self.trained(ranks, 1)
        self.assertEqual([one["ins"] for one in self.swapping_of(server, *ranks)], [10] * 2)

    def crowded(self, *options, fault=None, **where):
        """Ranks, and a program that waits for memory which they have: what ends its wait."""
        server = self.swapping(*options, fault=fault, name="fault" + (fault or "").replace(":", "-"))
        ranks = self.ranks(server, mib=20, **where)
        third = self.taker(server)
        return server, ranks, third, self.begun(third, "alloc", 60)

    def test_third(self):
        """A third program gets the memory of two ranks that sum; both come in when their quantum is over for it, and all have what is theirs."""
        server, ranks, third, answer = self.crowded("--drain", "60")
        answers = self.train(ranks, 100)
        self.assertEqual(answer(), 0)
        self.assertEqual(third.ask("fill", 9), 0)
        self.assertEqual([done() for done in answers], self.expected(100))
        self.assertEqual(third.ask("check", 9), 0)
        self.trained(ranks, 10)
        self.left_together(server, ranks)

    def has_begun(self, server, rank):
        """Whether its worker has begun a loop: the kernel comes behind the sum, which waits for the other rank."""
        calls = json.loads(self.ctl(server, "stats", self.id_of(server, rank), "--json"))["calls"]
        return "launch_kernel" in [call["name"] for call in calls]

    def test_waits(self):
        """A rank waits in a collective for one that computes: both stay, and ps says why; once it has come they leave."""
        server = self.swapping("--drain", "1")
        ranks, third = self.ranks(server, mib=20), self.taker(server)
        first = self.begun(ranks[0], "train", 1)
        # Before anybody wants their memory: ranks without work leave at once.
        self.wait(lambda: self.has_begun(server, ranks[0]))
        answer = self.begun(third, "alloc", 60)
        self.wait(lambda: all("waits for a peer or computes" in one["reason"] for one in self.swapping_of(server, *ranks)))
        self.assertEqual([one["outs"] for one in self.swapping_of(server, *ranks)], [0, 0])
        self.assertEqual({s["state"] for s in self.sessions(server).values()}, {"running"})
        second = self.begun(ranks[1], "train", 1)
        self.assertEqual([first(), second()], self.expected(1))
        self.assertEqual(answer(), 0)
        self.assertEqual(third.ask("fill", 9), 0)
        self.trained(ranks, 10)
        self.assertEqual(third.ask("check", 9), 0)

    def test_stays(self):
        """One of them cannot stop, or cannot leave: all go on with what they had, and ps says why."""
        for fault in ("fail:240", "fail:242"):
            with self.subTest(fault=fault):
                server, ranks, third, answer = self.crowded("--drain", "60", fault=fault)
                self.wait(lambda server=server, ranks=ranks: all("CRICKET_FAULT made this step fail" in one["reason"] for one in self.swapping_of(server, *ranks)))
                self.trained(ranks, 5)
                for rank in ranks:
                    rank.end()
                self.assertEqual(answer(), 0)
                third.end()

    def test_killed(self):
        """The worker of a rank dies at each step: its memory is free, and the other one has what is its own, wherever that was."""
        for fault in ("240", "241", "242", "243", "244"):
            with self.subTest(fault=fault):
                server, ranks, third, answer = self.crowded("--drain", "60", fault=fault)
                dead = 1 if fault == "244" else 0
                if fault in ("243", "244"):
                    # They have left, and come in.
                    self.assertEqual(answer(), 0)
                    self.assertEqual(third.ask("fill", 9), 0)
                    last = self.begun(ranks[1 - dead], "check", self.words[1 - dead])
                self.wait(lambda server=server: "signal 9" in self.log_of(server))
                ranks[dead].process.kill()
                if fault in ("243", "244"):
                    self.assertEqual(last(), 0)
                else:
                    self.assertEqual(answer(), 0)
                    self.assertEqual(third.ask("fill", 9), 0)
                    self.assertEqual(ranks[1].ask("check", self.words[1]), 0)
                self.assertEqual(third.ask("check", 9), 0)
                ranks[1 - dead].end()
                third.end()

    def test_server_killed(self):
        """The server dies while it holds the ranks, and before anything has left: they go on, and the next server swaps them."""
        for fault in ("228", "245"):
            with self.subTest(fault=fault):
                server, ranks, third, answer = self.crowded("--drain", "60", fault=fault)
                self.wait(lambda server=server: server.process.poll() is not None)
                server.kill()
                os.unlink(os.path.join(server.directory, "address"))
                again = self.swapping("--drain", "60", name="fault" + fault)
                self.wait(lambda again=again: "found again" in self.log_of(again))
                self.trained(ranks, 5)
                self.assertEqual(answer(), 0)
                self.assertEqual(third.ask("fill", 9), 0)
                self.trained(ranks, 5)
                self.assertEqual(third.ask("check", 9), 0)
                for taker in (*ranks, third):
                    taker.end()

    def test_elsewhere(self):
        """A rank is at another server: the one here stays, and ps says so."""
        other = self.swapping("--worker-network", "on", name="other")
        server = self.swapping("--worker-network", "on", "--drain", "60")
        ranks = self.ranks(server, mib=20, others=(other,))
        third = self.taker(server)
        answer = self.begun(third, "alloc", 80)
        self.wait(lambda: "rank 1 of its NCCL communicator is at another server" in self.swapping_of(server, ranks[0])[0]["reason"])
        self.trained(ranks, 5)
        # Without the communicator it leaves alone.
        self.assertEqual([leave() for leave in [self.begun(rank, "leave") for rank in ranks]], [0, 0])
        self.assertEqual(answer(), 0)
        self.assertEqual(third.ask("fill", 9), 0)
        self.assertEqual(ranks[0].ask("train", 0), self.words[0])
        self.assertEqual(third.ask("check", 9), 0)

    def test_two_gpus(self):
        """Ranks on a GPU each, which two programs have filled: both programs leave for them, and both ranks come in."""
        server = self.swapping("--drain", "60", gpus=2)
        ranks = self.ranks(server, mib=20, gpus=2)
        others = [self.taker(server) for _ in ranks]
        for gpu, other in enumerate(others):
            self.assertEqual([other.ask("use", gpu), other.ask("alloc", 80), other.ask("fill", 50 + gpu)], [0, 0, 0])
        for _ in range(3):
            self.trained(ranks, 5)
            self.assertEqual([other.ask("check", 50 + gpu) for gpu, other in enumerate(others)], [0, 0])
        self.left_together(server, ranks)


if __name__ == "__main__":
    unittest.main()
