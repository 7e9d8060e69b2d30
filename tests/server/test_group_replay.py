#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Programs that share memory and go on beyond the images of their group: all replay in the order in which the first time was, or end by name.

The programs' order is the test's: it waits for one's answer before it asks another.
"""
import contextlib
import mmap
import os
import random
import signal
import struct
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from groups import Groups, Member  # noqa: E402
from whole import runner  # noqa: E402

KILLS = int(os.environ.get("CKT_TEST_KILLS", "20"))
SEED = int(os.environ.get("CKT_TEST_SEED", "0")) or random.randrange(1, 1 << 32)
DONE = (1 << 64) - 1  # CKT_STAMPS_DONE


class Replays(Groups):
    def setUp(self):
        super().setUp()
        self.durable = {"CRICKET_DURABLE": "2"}

    def group(self, server, count=2, value=5):
        """Programs that share the first one's memory, and have one cut."""
        members = [Member(self, server, "own", self.handle, **self.durable)]
        members += [Member(self, server, "use", self.handle, **self.durable) for _ in range(count - 1)]
        self.assertEqual(members[-1].ask("set", value), [0])
        self.wait_cut(server, *members)
        return members

    def test_beyond(self):
        """Two programs that take turns; one's worker dies, and both go on with what they had seen."""
        server = self.saving("first")
        first, second = self.group(server)
        server = self.again(server)
        for victim, value in ((first, 6), (second, 10)):
            for writer, reader in ((first, second), (second, first)) * 2:
                self.assertEqual(writer.ask("set", value), [0])
                self.assertEqual(reader.ask("get"), [0, value, value])
                value += 1
            self.kill_worker(server, victim)
            other = second if victim is first else first
            self.assertEqual(victim.ask("get"), [0, value - 1, value - 1], self.said())
            self.assertEqual(other.ask("get"), [0, value - 1, value - 1], self.said())
        self.assertEqual(self.log_of(server).count("and replay what is behind them in one order"), 2)
        for member in (first, second):
            self.assertIn("commands replayed in", member.stderr())

    def test_three(self):
        """Of three, two workers die at one time, and then the third."""
        server = self.saving("first")
        members = self.group(server, 3)
        server = self.again(server)
        for victims, value in ((members[:2], 20), (members[2:], 40)):
            self.take_turns(members, range(value, value + 9))
            # All are named before the first dies: then the server ends the others.
            pids = [self.worker_of(server, victim) for victim in victims]
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            runner.end_all(pids, "the test killed them")
            for member in members:
                member.begin("get")
            for member in members:
                self.assertEqual(member.answer(), [0, value + 8, value + 8], self.said())

    def test_idle(self):
        """Of two that came back one does nothing; the other one's worker dies again."""
        server = self.saving("first")
        first, second = self.group(server)
        server = self.again(server)
        for value in (6, 7, 8):
            self.assertEqual(second.ask("set", value), [0], self.said())
            self.kill_worker(server, second)
            self.assertEqual(second.ask("get"), [0, value, value], self.said())
        self.assertEqual(first.ask("get"), [0, 8, 8], self.said())

    def share(self, number, first, *others):
        """Memory and an event that nobody had shared before."""
        self.assertEqual(first.ask("give", number), [0], self.said())
        for other in others:
            self.assertEqual(other.ask("take", number), [0], self.said())

    def test_shared_behind(self):
        """What is shared for the first time behind the cut is the same in the replay: handles, and where it is mapped."""
        server = self.saving("first")
        members = self.group(server, 3)
        server = self.again(server)
        for number, value in ((1, 20), (2, 40)):
            self.share(number, *members)
            self.take_turns(members, range(value, value + 9))
            self.kill_worker(server, members[number % 3])
            for member in members:
                member.begin("get")
            for member in members:
                self.assertEqual(member.answer(), [0, value + 8, value + 8], self.said())
        self.take_turns(members, range(60, 66))
        self.assertEqual(self.log_of(server).count("and replay what is behind them in one order"), 2)

    def pass_on(self, members, values):
        """Each value is set by one, which does not wait for it; the GPU makes the next one wait."""
        for i, value in enumerate(values):
            self.assertEqual(members[i % len(members)].ask("mark", value), [0], self.said())
            self.assertEqual(members[(i + 1) % len(members)].ask("await"), [0, value, value], self.said())

    def test_events(self):
        """Events that order the work of several programs, in the cut and behind it."""
        server = self.saving("first")
        members = self.group(server, 3)
        self.share(1, *members)
        self.pass_on(members, range(6, 9))
        self.wait_cut(server, *members)
        server = self.again(server)
        self.pass_on(members, range(20, 29))
        self.kill_worker(server, members[0])
        self.assertEqual(members[2].ask("await"), [0, 28, 28], self.said())
        self.share(2, *members)
        self.pass_on(members, range(30, 39))
        self.kill_worker(server, members[1])
        self.assertEqual(members[1].ask("await"), [0, 38, 38], self.said())
        self.pass_on(members, range(40, 46))
        for member in members:
            self.assertNotIn("not durable", member.stderr())

    def test_server_dies(self):
        """All workers and the server die; the next server brings all back."""
        server = self.saving("first")
        members = self.group(server, 3)
        server = self.again(server)
        self.take_turns(members, range(20, 26))
        self.end_all(server)
        self.saving("first", "--auto-checkpoint", "1h")
        for member in members:
            member.begin("get")
        for member in members:
            self.assertEqual(member.answer(), [0, 25, 25], self.said())

    def test_unwaited(self):
        """What nobody was told of runs after all that somebody was."""
        server = self.saving("first")
        first, second = self.group(server)
        server = self.again(server)
        self.take_turns((first, second), range(20, 24))
        self.assertEqual(first.ask("send", 9), [0])
        self.kill_worker(server, second)
        self.assertEqual(first.ask("get"), [0, 9, 9], self.said())
        self.assertEqual(second.ask("get"), [0, 9, 9], self.said())

    def test_kills(self):
        """Workers that die at any time, also while they replay, with images and without: nobody ever sees another value."""
        print("seed %d: CKT_TEST_SEED=%d" % (SEED, SEED), flush=True)
        chance = random.Random(SEED)
        server = self.saving("first", "--auto-checkpoint", "1s")
        members = self.group(server, 3)
        value = 5
        for _ in range(KILLS):
            for _ in range(chance.randrange(1, 12)):
                value = chance.randrange(1, 128)
                self.assertEqual(chance.choice(members).ask("set", value), [0], self.said())
                self.assertEqual(chance.choice(members).ask("get"), [0, value, value], self.said())
            self.kill_some(server, chance)
        for member in members:
            member.begin("get")
        for member in members:
            self.assertEqual(member.answer(), [0, value, value], self.said())

    def half_way(self, patience):
        """Two who took turns: the first has come and replays, and the second has come, too, but does nothing since."""
        self.patience = patience
        server = self.saving("first")
        first, second = self.group(server)
        server = self.again(server)
        self.take_turns((second, first), range(20, 24))
        os.kill(first.process.pid, signal.SIGSTOP)
        other = self.worker_of(server, first)
        self.kill_worker(server, second)
        # The server ends it when the second one has come, and could go on.
        self.wait(lambda: not runner.alive(other))
        os.kill(second.process.pid, signal.SIGSTOP)
        os.kill(first.process.pid, signal.SIGCONT)
        return server, first, second

    def test_late(self):
        """A command whose place never comes ends the session, by its name, within the time of CRICKET_RECONNECT_TIMEOUT."""
        _, first, second = self.half_way("12")
        first.begin("get")
        self.assertRegex(self.lost_by(first), r"\w+ \(call [0-9]+\) cannot have its place in the replay of its group")
        os.kill(second.process.pid, signal.SIGCONT)
        second.begin("get")
        self.lost_by(second)

    def page_of(self, server):
        for name in os.listdir(f"/proc/{server.process.pid}/fd"):
            path = f"/proc/{server.process.pid}/fd/{name}"
            with contextlib.suppress(FileNotFoundError):
                if "cricket-stamps" in os.readlink(path):
                    return path
        return None

    def test_tampered(self):
        """Who writes into the page spoils the replay, which ends by the name of a call: it goes on with no other data."""
        server, first, second = self.half_way("60")
        self.wait(lambda: self.page_of(server))
        with open(self.page_of(server), "r+b") as f, mmap.mmap(f.fileno(), 4096) as page:
            for slot in range(64):
                struct.pack_into("=Q", page, 64 * slot, DONE)
            self.assertRegex(self.lost_by_begun(first), r"\w+ \(call [0-9]+\) gave other data when it was replayed")
        second.close()

    def lost_by_begun(self, member):
        member.begin("get")
        return self.lost_by(member)

    def test_no_part(self):
        """A member whose program does not ask for it: the other one is told, and that one goes on."""
        self.patience = "8"
        server = self.saving("first")
        first = Member(self, server, "own", self.handle, **self.durable)
        second = Member(self, server, "use", self.handle)
        self.assertEqual(second.ask("set", 5), [0])
        self.wait_cut(server, first, second)
        server = self.again(server)
        self.assertEqual(first.ask("set", 9), [0])
        self.kill_worker(server, first)
        first.begin("get")
        self.assertIn(f"session {second.session} takes no part in a replay of its group", self.lost_by(first))
        self.assertEqual(second.ask("get"), [0, 9, 9])

    def test_never_comes(self):
        """A member whose program does not return: the others are told its name."""
        # The images of one that is gone are kept for --claim-timeout after it was asked for last: the second one must ask again meanwhile.
        self.patience = "25"
        server = self.saving("first")
        first, second = self.group(server)
        server = self.again(server, "--claim-timeout", "8")
        self.take_turns((first, second), range(20, 24))
        os.kill(first.process.pid, signal.SIGSTOP)
        self.kill_worker(server, second)
        second.begin("get")
        self.assertIn(f"comes back only together with session {first.session}, which has no images that fit", self.lost_by(second))


if __name__ == "__main__":
    unittest.main(verbosity=2)
