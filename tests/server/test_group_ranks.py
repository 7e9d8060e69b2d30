#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Ranks of an NCCL communicator: automatic images of all at one moment, and all come back together from them, with a new communicator.

Each rank's first block holds one word, which the test computes as well: the words after a return say whether anything was lost or done twice.
"""
import os
import random
import signal
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from groups import Groups, Member  # noqa: E402
from takers import CLIENT  # noqa: E402
from whole import runner  # noqa: E402

MASK = (1 << 32) - 1
KILLS = int(os.environ.get("CKT_TEST_KILLS", "20"))
SEED = int(os.environ.get("CKT_TEST_SEED", "0")) or random.randrange(1, 1 << 32)


class Rank(Member):
    """A program of its own with two blocks; what it is told, it does (limit_client.c, ranked.h)."""
    client, ready = CLIENT, "0\n"

    def __init__(self, *words, **env):
        self.told = []
        super().__init__(*words, **env)

    def answer(self):
        while "NCCL INFO" in (line := self.process.stdout.readline()):
            self.told.append(line)
        return int(line) if line.lstrip("-").rstrip("\n").isdigit() else line


class RankGroups(Groups):
    def join(self, ranks, name="id", **_):
        """A new communicator of all."""
        path = os.path.join(self.dir, name)
        self.assertEqual(ranks[0].ask("unique", path), 0, self.said())
        for number, rank in enumerate(ranks):
            rank.begin("rank", path, number, len(ranks))
        self.assertEqual([rank.answer() for rank in ranks], [0] * len(ranks), self.said())

    def ranks(self, server, count=2, env=({},) * 8):
        ranks = [Rank(self, server, **env[number]) for number in range(count)]
        for number, rank in enumerate(ranks):
            self.assertEqual([rank.ask("alloc", 1), rank.ask("alloc", 1), rank.ask("fill", number + 1)], [0, 0, 0], self.said())
        self.words = [number + 1 for number in range(count)]
        self.join(ranks)
        return ranks

    def expected(self, loops):
        """What the words are after so many loops more; see ranked.h."""
        for _ in range(loops):
            total = sum(self.words)
            self.words = [(total * 1664525 + 1013904223 + number) & MASK for number in range(len(self.words))]
        return self.words

    def train(self, ranks, loops):
        for rank in ranks:
            rank.begin("train", loops)
        self.assertEqual([rank.answer() for rank in ranks], self.expected(loops), self.said())

    def returned(self, server, times):
        """Both go back: from then on nobody does anything that is not behind the images."""
        self.wait(lambda: self.log_of(server).count("of its group go back to their common images") == times)

    def train_after(self, server, victim, ranks, loops, times=1):
        """The one whose worker died is asked first, and comes for its session; the other one has waited since the cut."""
        victim.begin("train", loops)
        self.returned(server, times)
        for rank in ranks:
            if rank is not victim:
                rank.begin("train", loops)
        self.assertEqual([rank.answer() for rank in ranks], self.expected(loops), self.said())

    def wait_next_cut(self, cut, server, *members):
        """Not that one: what a worker did that stands still is not known yet."""
        self.wait(lambda: self.wait_cut(server, *members) != cut)


class Ranks(RankGroups):
    def test_return(self):
        """A worker dies while both ranks wait and all is in the images: both go on, with a communicator that is made anew; so again after the next cut."""
        server = self.saving("first")
        ranks = self.ranks(server)
        for victim in (0, 1):
            self.train(ranks, 3)
            self.wait_cut(server, *ranks)
            self.kill_worker(server, ranks[victim])
            self.train_after(server, ranks[victim], ranks, 5, victim + 1)
        self.assertEqual(self.said(), "")

    def test_debug(self):
        """What NCCL says with NCCL_DEBUG goes to the program's stdout, again for the new communicator, and the programs stay durable."""
        server = self.saving("first")
        env = {"NCCL_DEBUG": "INFO", "CRICKET_DURABLE": "2"}
        ranks = self.ranks(server, env=(env, env))
        self.train(ranks, 3)
        self.wait_cut(server, *ranks)
        self.kill_worker(server, ranks[0])
        self.train_after(server, ranks[0], ranks, 5)
        for number, rank in enumerate(ranks):
            made = [line.partition("NCCL ")[2] for line in rank.told if "nranks 1 " not in line]
            self.assertEqual(made, [f"INFO rank {number} nranks 2 - Init COMPLETE\n"] * 2)
            self.assertNotIn("not durable", rank.stderr())

    def test_busy(self):
        """Ranks that sum without a pause are brought to a common point; nobody's words change by it."""
        server = self.saving("first")
        ranks = self.ranks(server)
        self.wait_cut(server, *ranks)
        cuts = set()
        while len(cuts) < 4:
            self.train(ranks, 60)
            cuts |= {self.cut_of(rank)[0] for rank in ranks if self.cut_of(rank)}

    def test_waits(self):
        """A rank waits in a collective for one that computes: no cut is taken, ps says why, and once that one has come there is the next."""
        server = self.saving("first")
        ranks = self.ranks(server)
        cut = self.wait_cut(server, *ranks)
        ranks[0].begin("train", 1)
        self.wait(lambda: all("had work left while its group stood still" in ((image or {}).get("problem") or "") for image in self.sessions(server).values()))
        self.assertEqual({self.cut_of(rank)[0] for rank in ranks}, {cut})
        ranks[1].begin("train", 1)
        self.assertEqual([rank.answer() for rank in ranks], self.expected(1), self.said())
        self.wait_next_cut(cut, server, *ranks)

    def test_elsewhere(self):
        """A rank at another server: no cut is taken, and ps says why."""
        servers = [self.saving(name, "--worker-network", "on") for name in ("first", "second")]
        ranks = [Rank(self, server) for server in servers]
        for rank in ranks:
            self.assertEqual([rank.ask("alloc", 1), rank.ask("alloc", 1), rank.ask("fill", 1)], [0, 0, 0])
        self.words = [1, 1]
        self.join(ranks)

        def said(server):
            return next(((image or {}).get("problem") or "" for image in self.sessions(server).values()), "")
        self.wait(lambda: all("of an NCCL communicator with 2 ranks" in said(server) for server in servers))
        self.train(ranks, 2)

    def test_server_and_workers_die(self):
        """Three ranks; server and workers die, and the next server brings all back."""
        server = self.saving("first")
        ranks = self.ranks(server, 3)
        self.train(ranks, 3)
        self.wait_cut(server, *ranks)
        self.end_all(server)
        server = self.saving("first")
        self.train(ranks, 4)
        self.assertIn("of its group go back to their common images", self.log_of(server))

    def test_never_comes(self):
        """A rank whose program does not return: the other one is told its name."""
        self.patience = "20"
        server = self.saving("first", "--claim-timeout", "6")
        ranks = self.ranks(server)
        self.train(ranks, 1)
        self.wait_cut(server, *ranks)
        os.kill(ranks[0].process.pid, signal.SIGSTOP)
        self.kill_worker(server, ranks[1])
        self.assertEqual(ranks[1].ask("train", 1), -1)
        self.assertIn(f"comes back only together with session {ranks[0].session}, which has no images that fit", ranks[1].stderr())

    def cut_short(self, point):
        """Ranks with a cut; the server dies at that point of the next one, and both go on at the server after that."""
        server = self.saving("first")
        ranks = self.ranks(server)
        self.train(ranks, 2)
        cut = self.wait_cut(server, *ranks)
        server = self.again(server)
        self.train(ranks, 2)
        server.kill()
        try:
            server = self.saving("first", "--auto-checkpoint", "1s", env={"CRICKET_FAULT": str(point)})
        except runner.Failure as failure:
            # It was there, before anybody looked.
            self.assertIn("ended with -9", str(failure))
        self.wait(lambda: server.process.poll() is not None)
        for rank in ranks:
            self.assertEqual(self.cut_of(rank)[0], cut)
        return server, ranks, cut

    def test_server_dies(self):
        """At each point of a cut: before all next states are there the cut before counts, and then the new one does."""
        for point in (246, 247, 248):
            with self.subTest(point=point):
                server, ranks, cut = self.cut_short(point)
                if point == 248:
                    self.end_workers()
                    server = self.saving("first", "--auto-checkpoint", "1h")
                else:
                    server = self.again(server, every="1s")
                    self.wait_next_cut(cut, server, *ranks)
                    self.kill_worker(server, ranks[0])
                self.train_after(server, ranks[0], ranks, 3)
                for rank in ranks:
                    self.assertEqual(self.state_of(rank, file="state.next"), "") if point == 248 else None
                self.end_round(server)
                os.unlink(os.path.join(self.dir, "id"))

    def test_worker_dies_again(self):
        """A worker that comes back dies before its communicator is made: nobody goes on with half of it, and without that all go on from the cut."""
        server = self.saving("first")
        ranks = self.ranks(server)
        self.train(ranks, 2)
        self.wait_cut(server, *ranks)
        self.end_all(server)
        server = self.saving("first", env={"CRICKET_FAULT": "216"})
        ranks[0].begin("train", 2)
        self.wait(lambda: self.log_of(server).count("signal 9") >= 2)
        self.end_all(server)
        server = self.saving("first")
        ranks[1].begin("train", 2)
        self.assertEqual([rank.answer() for rank in ranks], self.expected(2), self.said())


class Replays(RankGroups):
    """Each program with CRICKET_DURABLE=2."""

    def setUp(self):
        super().setUp()
        self.durable = {"CRICKET_DURABLE": "2"}

    def group(self, server, count=2):
        ranks = self.ranks(server, count, env=(self.durable,) * count)
        self.train(ranks, 2)
        self.wait_cut(server, *ranks)
        return ranks

    def test_beyond(self):
        """Ranks that have summed beyond the cut, and wait; a worker dies, and all do it again."""
        server = self.saving("first")
        ranks = self.group(server)
        server = self.again(server)
        for victim in (0, 1):
            self.train(ranks, 3)
            self.train(ranks, 2)
            self.kill_worker(server, ranks[victim])
            self.train(ranks, 4)
        self.assertEqual(self.log_of(server).count("and replay what is behind them in one order"), 2)
        for rank in ranks:
            self.assertIn("commands replayed in", rank.stderr())

    def test_while_they_sum(self):
        """A worker dies in the middle of a sum: the other rank's program never hears that it failed."""
        server = self.saving("first")
        ranks = self.group(server)
        server = self.again(server)
        for victim in (0, 1):
            self.train(ranks, 2)
            ranks[1 - victim].begin("train", 1)
            # It waits for the other one's part, or is about to.
            self.wait(lambda one=ranks[1 - victim]: self.behind(server, one))
            self.kill_worker(server, ranks[victim])
            ranks[victim].begin("train", 1)
            self.assertEqual([rank.answer() for rank in ranks], self.expected(1), self.said())
        for rank in ranks:
            self.assertNotIn("returned status", rank.stderr())

    def behind(self, server, rank):
        """How many commands it has executed that are in no images."""
        return (self.sessions(server)[rank.session] or {}).get("behind", 0)

    def test_kills(self):
        """Workers that die at any time, also while they come back or replay, beside cuts: no word is ever another."""
        print("seed %d: CKT_TEST_SEED=%d" % (SEED, SEED), flush=True)
        chance = random.Random(SEED)
        server = self.saving("first", "--auto-checkpoint", "1s")
        ranks = self.group(server, 3)
        for _ in range(KILLS):
            self.train(ranks, chance.randrange(1, 20))
            loops = chance.randrange(1, 60)
            for rank in ranks:
                rank.begin("train", loops)
            self.kill_some(server, chance)
            self.assertEqual([rank.answer() for rank in ranks], self.expected(loops), self.said())
        for rank in ranks:
            self.assertNotIn("returned status", rank.stderr())

    def test_server_dies(self):
        """All workers and the server die; the next server brings all back, with what is behind the images."""
        server = self.saving("first")
        ranks = self.group(server, 3)
        server = self.again(server)
        self.train(ranks, 5)
        self.end_all(server)
        self.saving("first", "--auto-checkpoint", "1h")
        self.train(ranks, 3)

    def test_no_part(self):
        """A rank whose program does not ask: the one whose worker died is told, and nobody is ended for it."""
        self.patience = "8"
        server = self.saving("first")
        ranks = self.ranks(server, env=(self.durable, {}))
        self.train(ranks, 2)
        self.wait_cut(server, *ranks)
        server = self.again(server)
        self.train(ranks, 1)
        other = self.worker_of(server, ranks[1])
        self.kill_worker(server, ranks[0])
        self.assertEqual(ranks[0].ask("train", 1), -1)
        self.assertRegex(ranks[0].stderr(), f"the images of its group end before that|session {ranks[1].session} takes no part in a replay of its group")
        self.assertTrue(runner.alive(other))

    def test_new_communicator(self):
        """What was made behind the images cannot be made again: both programs are told by the name of the call; with images behind it both go on."""
        self.patience = "12"
        server = self.saving("first")
        ranks = self.group(server)
        server = self.again(server)
        self.join(ranks, "second")
        self.train(ranks, 2)
        server = self.again(server, every="1s")
        self.wait_cut(server, *ranks)
        server = self.again(server)
        self.train(ranks, 2)
        self.kill_worker(server, ranks[0])
        self.train(ranks, 2)
        self.join(ranks, "third")
        self.train(ranks, 2)
        self.kill_worker(server, ranks[0])
        for rank in ranks:
            rank.begin("train", 1)
        self.assertEqual([rank.answer() for rank in ranks], [-1, -1])
        self.assertRegex(self.said(), r"nccl_comm \(call [0-9]+\) made a communicator behind the images of its group")


class Replicas(RankGroups):
    """A second server keeps the images, too (--replicate)."""

    def test_server_lost(self):
        """Server and workers are lost after sums beyond the cut: all ranks go on at the second server."""
        second = self.saving("second")
        options = ("--replicate", second.address, "--replicate-lease", "5s")
        first = self.saving("first", *options)
        ranks = self.ranks(first, env=({"CRICKET_DURABLE": "2", "CRICKET_STANDBY": second.address},) * 2)
        self.train(ranks, 2)

        def replicated():
            cut = self.wait_cut(first, *ranks)
            return all((self.cut_of(rank, "second") or ("",))[0] == cut for rank in ranks)
        self.wait(replicated)
        first = self.again(first, *options)
        self.train(ranks, 5)
        self.end_all(first)
        self.train(ranks, 5)
        self.wait(lambda: set(self.sessions(second)) == {rank.session for rank in ranks})
        self.assertIn("and replay what is behind them in one order", self.log_of(second))


if __name__ == "__main__":
    unittest.main(verbosity=2)
