#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Sessions that share memory, whose automatic images a second server keeps: all go on there when the first one is lost, or none does."""
import os
import random
import signal
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from groups import Groups, Member  # noqa: E402
from whole import runner  # noqa: E402

# Within four fifths of it the servers and the process between them must hear of each other, or the sessions move.
LEASE = "5s"
KILLS = int(os.environ.get("CKT_TEST_KILLS", "2"))
SEED = int(os.environ.get("CKT_TEST_SEED", "0")) or random.randrange(1, 1 << 32)


class ReplicateGroup(Groups):
    def setUp(self):
        super().setUp()
        self.keys = ()

    def first_server(self, second, *options, env=None):
        return self.saving("first", "--replicate", second.address, "--replicate-lease", LEASE, *self.keys, *options, env=env)

    def servers_and_group(self, count=2, value=5, **env):
        """The server that has the sessions, the one that has their replicas, and programs that share the first one's memory."""
        second = self.saving("second", *self.keys)
        first = self.first_server(second)
        env = {"CRICKET_STANDBY": second.address, **env}
        members = [Member(self, first, "own", self.handle, **env)]
        members += [Member(self, first, "use", self.handle, **env) for _ in range(count - 1)]
        self.assertEqual(members[-1].ask("set", value), [0])
        self.replicated(first, *members)
        return first, second, members

    def replicated(self, server, *members):
        """Waits until the second server has the latest cut of these, too, and with it all that they have done; the cut."""
        def whole():
            cut = self.wait_cut(server, *members)
            return all((self.cut_of(member, "second") or ("",))[0] == cut for member in members)
        self.wait(whole)
        return self.cut_of(members[0], "second")[0]

    def all_have(self, members, value):
        for member in members:
            member.begin("get")
        for member in members:
            self.assertEqual(member.answer(), [0, value, value], self.said())

    def all_at(self, server, members):
        self.wait(lambda: set(self.sessions(server)) == {member.session for member in members})

    # ---- The first server is lost

    def test_lost(self):
        """Server and workers die while all is at the second one: all go on there, and share again."""
        first, second, members = self.servers_and_group()
        self.end_all(first)
        self.all_have(members, 5)
        self.all_at(second, members)
        self.take_turns(members, range(20, 24))
        # It takes cuts of them, as of its own.
        self.wait_cut(second, *members, name="second")
        self.assertEqual([os.path.exists(os.path.join(self.images("second"), m.session, "replica")) for m in members], [False] * 2)
        # The first one comes back with what it had: nobody goes on there, and it goes away.
        first = self.first_server(second)
        self.all_have(members, 23)
        self.assertEqual(self.sessions(first), {})

    def test_lost_with_a_key(self):
        """The same where a key vouches for the images, which are encrypted."""
        self.keys = ("--image-key", self.key(), "--auto-encrypt")
        first, second, members = self.servers_and_group()
        self.end_all(first)
        self.all_have(members, 5)
        self.take_turns(members, range(20, 24))
        self.wait_cut(second, *members, name="second")
        self.first_server(second)
        self.all_have(members, 23)

    def test_beyond(self):
        """Programs that have seen more than the cut: all replay at the second server what is behind it."""
        first, second, members = self.servers_and_group(3, CRICKET_DURABLE="2")
        first.kill()
        first = self.first_server(second, "--auto-checkpoint", "1h")
        self.wait(lambda: len(self.sessions(first)) == 3)
        self.take_turns(members, range(20, 29))
        self.end_all(first)
        self.all_have(members, 28)
        self.all_at(second, members)
        self.assertIn("and replay what is behind them in one order", self.log_of(second))

    def test_seen_more(self):
        """The same of programs that cannot replay: each is told so."""
        self.patience = "25"
        first, second, members = self.servers_and_group()
        first.kill()
        first = self.first_server(second, "--auto-checkpoint", "1h")
        self.wait(lambda: len(self.sessions(first)) == 2)
        self.take_turns(members, range(20, 23))
        self.end_all(first)
        for member in members:
            member.begin("get")
        for member in members:
            self.assertRegex(self.lost_by(member), "has seen command [0-9]+, and the images of its group end before that")

    def test_server_alone_killed(self):
        """Its workers end with their leases, and only then the sessions start at the second one."""
        first, second, members = self.servers_and_group()
        workers = self.workers(first)
        first.kill()
        runner.end_all(workers, "the lease is over")
        self.all_have(members, 5)
        self.all_at(second, members)

    def test_server_stands_still(self):
        """A server that stood still while its sessions went on at the other one lets all of them go."""
        first, second, members = self.servers_and_group()
        workers = self.workers(first)
        # The process that renews the leases, too.
        others = [pid for pid in first.workers() if pid not in workers]
        for pid in [first.process.pid, *others]:
            os.kill(pid, signal.SIGSTOP)
        runner.end_all(workers, "the lease is over")
        self.all_have(members, 5)
        for pid in [first.process.pid, *others]:
            os.kill(pid, signal.SIGCONT)
        self.take_turns(members, range(20, 23))
        self.wait(lambda: self.sessions(first) == {})
        self.all_at(second, members)

    def test_server_comes_back(self):
        """A server that was started again within the lease has all of them, or the second one has all."""
        first, second, members = self.servers_and_group()
        self.end_all(first)
        first = self.first_server(second)
        self.all_have(members, 5)
        both = [set(self.sessions(server)) for server in (first, second)]
        self.assertIn({member.session for member in members}, both)
        self.assertIn(set(), both)

    # ---- What the second server has is of one moment

    def test_half_there(self):
        """Of the latest cut the second server has one member's images: nobody has forgotten what is behind the cut before, and all replay that."""
        first, second, members = self.servers_and_group(CRICKET_DURABLE="2")
        cut = self.cut_of(members[0], "second")
        first.kill()
        # The process that sends dies each time when it has brought one.
        first = self.first_server(second, env={"CRICKET_FAULT": "226"})
        self.wait(lambda: len(self.sessions(first)) == 2)
        self.take_turns(members, range(20, 26))
        self.wait_cut(first, *members)
        self.wait(lambda: any(self.cut_of(member, "second", "state.next") not in (None, cut) for member in members))
        self.assertEqual([self.cut_of(member, "second") for member in members], [cut] * 2)
        self.take_turns(members, range(30, 33))
        self.end_all(first)
        self.all_have(members, 32)
        self.all_at(second, members)
        self.assertIn("and replay what is behind them in one order", self.log_of(second))

    def test_member_ends(self):
        """The replica of one that ended is removed, and the others' next cut is without it."""
        first, second, members = self.servers_and_group(3)
        gone = members.pop()
        gone.close()
        self.wait(lambda: not os.path.exists(os.path.join(self.images("second"), gone.session)))
        self.assertEqual(members[0].ask("set", 9), [0])
        self.replicated(first, *members)
        self.end_all(first)
        self.all_have(members, 9)

    def test_space(self):
        """What no state names there does not stay."""
        first, second, members = self.servers_and_group()
        for value in (6, 7, 8):
            self.assertEqual(members[value % 2].ask("set", value), [0])
            self.replicated(first, *members)
        for member in members:
            directory = os.path.join(self.images("second"), member.session)

            def named(member=member, directory=directory):
                images = sorted(n for n in os.listdir(directory) if n.isdigit())
                return images == sorted(line.split()[1] for line in self.state_of(member, "second").splitlines() if line.startswith("image "))
            self.wait(named)
            self.assertFalse(os.path.exists(os.path.join(directory, "state.next")))

    def test_kills(self):
        """Server and workers die at random moments while the programs go on, with images and without: nobody ever sees another value."""
        print("seed %d: CKT_TEST_SEED=%d" % (SEED, SEED), flush=True)
        chance = random.Random(SEED)
        for _ in range(KILLS):
            first, second, members = self.servers_and_group(CRICKET_DURABLE="2")
            value = 5
            end = time.monotonic() + 3 * chance.random()
            while time.monotonic() < end:
                value = chance.randrange(1, 128)
                self.assertEqual(chance.choice(members).ask("set", value), [0], self.said())
                self.assertEqual(chance.choice(members).ask("get"), [0, value, value], self.said())
            self.end_all(first)
            self.all_have(members, value)
            for member in members:
                member.close()
            self.wait(lambda server=second: self.sessions(server) == {})
            self.kill_all(second)


if __name__ == "__main__":
    unittest.main()
