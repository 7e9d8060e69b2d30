#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Programs that share memory: automatic images of all at one moment, and all come back together from them, or none.

A member's state names the cut and all members.  What a program says it has seen decides; the others' workers are ended only if all can go on.
"""
import os
import shutil
import signal
import sys
import types
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from groups import Groups, Member  # noqa: E402
from whole import runner  # noqa: E402

# CKT_FAULT_FROZEN: a worker's image fails.
FROZEN = 1
GROUP_PROGRAM = os.environ["CKT_TEST_GROUP_PROGRAM"]


class Returns(Groups):
    def wait_next_cut(self, cut, server, *members):
        """Not that one: what a worker did that stands still is not known yet."""
        self.wait(lambda: self.wait_cut(server, *members) != cut)

    def test_return(self):
        """One worker dies while all is in the images: both programs go on, and share again; so again after the next cut."""
        server = self.saving("first")
        first, second = self.pair(server)
        self.wait_cut(server, first, second)
        for victim, value in ((first, 6), (second, 7)):
            cut = self.cut_of(first)[0]
            self.kill_worker(server, victim)
            # The one whose worker lived has done nothing since, and is idle: it comes back, too.
            self.assertEqual(victim.ask("get"), [0, value - 1, value - 1], first.stderr() + second.stderr())
            self.assertEqual(first.ask("set", value), [0])
            self.assertEqual(second.ask("get"), [0, value, value])
            self.wait_next_cut(cut, server, first, second)
        self.assertIn("of its group go back to their common images", self.log_of(server))

    def stand(self, server, name, program, count):
        """The program at its mid point, with so many sessions that are all in a cut: it, and its sessions."""
        directory = os.path.join(self.dir, name)
        os.mkdir(directory)
        self.point = os.path.join(directory, "phase")
        environment = {**runner.clean_environment(), "CKT_TEST_PHASE_FILE": self.point, "HOME": self.home, "CRICKET_RECONNECT_TIMEOUT": "60"}
        program = runner.Program(directory, [self.tree.tool("cricket-run"), "--server", server.address, program], environment)
        self.programs.append(program)
        program.wait_ready(self.point + ".ready", 60)
        members = [types.SimpleNamespace(session=session) for session in self.sessions(server)]
        self.assertEqual(len(members), count)
        self.wait_cut(server, *members)
        return program

    def kill_standing(self, server, victims, returns):
        """So many of the workers die at one moment: at the first death the server ends the others."""
        os.kill(server.process.pid, signal.SIGSTOP)
        for pid in self.workers_seen[:victims]:
            os.kill(pid, signal.SIGKILL)
        os.kill(server.process.pid, signal.SIGCONT)
        # From then on nobody goes on with what is not in the images.
        self.wait(lambda: self.log_of(server).count("of its group go back to their common images") == returns)

    def test_program(self):
        """Three processes that share memory and events both ways stand at their mid point while workers die, and find all as it was."""
        server = self.saving("first")
        for returns, victims in enumerate((1, 3), 1):
            with self.subTest(victims=victims):
                program = self.stand(server, "program-%d" % victims, GROUP_PROGRAM, 3)
                self.kill_standing(server, victims, returns)
                self.finish(program)
                self.wait(lambda: not self.sessions(server))

    @unittest.skipUnless("CKT_TEST_RANKS_PROGRAM" in os.environ, "no NCCL")
    def test_ranks(self):
        """The same of processes that are ranks of communicators."""
        server = self.saving("first", env={"CRICKET_SOFT_DEVICES": "12.0:8G,12.0:8G"})
        for returns, victims in enumerate((1, 2), 1):
            with self.subTest(victims=victims):
                program = self.stand(server, "ranks-%d" % victims, os.environ["CKT_TEST_RANKS_PROGRAM"], 2)
                self.kill_standing(server, victims, returns)
                self.finish(program)
                self.wait(lambda: not self.sessions(server))

    def test_dead_has_seen_more(self):
        """The program whose worker died knows of a command that is not in the images: it is told, and the other one goes on."""
        self.patience = "8"
        server, first, second, _ = self.saved_pair()
        self.assertEqual(second.ask("set", 9), [0])
        self.kill_worker(server, second)
        second.begin("get")
        self.assertRegex(self.lost_by(second), f"the program of session {second.session} has seen command [0-9]+, and the images of its group end before that")
        self.assertEqual(first.ask("get"), [0, 9, 9])
        self.assertEqual(first.stderr(), "")

    def test_other_has_seen_more(self):
        """The same of one whose worker lives: it is not ended."""
        self.patience = "8"
        server, first, second, _ = self.saved_pair()
        self.assertEqual(first.ask("set", 9), [0])
        self.kill_worker(server, second)
        second.begin("get")
        self.assertRegex(self.lost_by(second), f"session {first.session} has executed command [0-9]+, and goes on, but the images of its group end before that")
        self.assertEqual(first.ask("get"), [0, 9, 9])
        self.assertEqual(first.stderr(), "")

    def test_unseen(self):
        """What a program sent and saw no answer to runs for the first time after the return."""
        server, first, second, _ = self.saved_pair()
        os.kill(first.process.pid, signal.SIGSTOP)
        self.end_all(server)
        second.begin("set", 8)
        server = self.saving("first")
        os.kill(first.process.pid, signal.SIGCONT)
        self.assertEqual(second.answer(), [0], second.stderr())
        self.assertEqual(first.ask("get"), [0, 8, 8], first.stderr())

    def test_server_and_workers_die(self):
        """Of three that share, also a server that is started again brings all back."""
        server = self.saving("first")
        first, second = self.pair(server)
        third = Member(self, server, "use", self.handle)
        self.wait_cut(server, first, second, third)
        self.end_all(server)
        server = self.saving("first")
        for member in (third, second, first):
            member.begin("get")
        for member in (first, second, third):
            self.assertEqual(member.answer(), [0, 5, 5], member.stderr())
        self.assertEqual(third.ask("set", 6), [0])
        self.assertEqual(first.ask("get"), [0, 6, 6])

    def test_never_comes(self):
        """A member whose program does not return: the others wait for the time of --claim-timeout, and are told its name."""
        # --claim-timeout is longer than one that asks stands still between two questions, and the patience is longer than both.
        self.patience = "20"
        server, first, second, _ = self.saved_pair("--claim-timeout", "6")
        os.kill(first.process.pid, signal.SIGSTOP)
        self.kill_worker(server, second)
        second.begin("get")
        said = self.lost_by(second)
        self.assertIn(f"comes back only together with session {first.session}, which has no images that fit: it has ended, or its client", said)

    def test_encrypted(self):
        """The same with a key, and images that are encrypted."""
        options = ("--image-key", self.key(), "--auto-encrypt")
        server, first, second, _ = self.saved_pair(*options)
        self.end_all(server)
        server = self.saving("first", *options)
        first.begin("get")
        self.assertEqual(second.ask("get"), [0, 5, 5], second.stderr())
        self.assertEqual(first.answer(), [0, 5, 5], first.stderr())

    def test_newcomer(self):
        """From the connection of a third session on the images of two are not enough; with the next cut of all three they are."""
        self.patience = "8"
        server, first, second, _ = self.saved_pair()
        third = Member(self, server, "use", self.handle)
        self.wait(lambda: "\nshared 1\n" in self.state_of(first))
        self.kill_worker(server, first)
        first.begin("get")
        self.assertIn("no images of all of them are there", self.lost_by(first))
        self.assertEqual(second.ask("get"), [0, 5, 5])
        self.assertEqual(third.ask("get"), [0, 5, 5])

    def test_last_one(self):
        """Who is left alone of a group comes back alone."""
        server = self.saving("first")
        first, second = self.pair(server)
        self.wait_cut(server, first, second)
        second.process.stdin.close()
        second.process.wait(60)
        self.wait(lambda: self.state_of(first) and "\nmember " not in self.state_of(first))
        self.assertNotIn("\nshared ", self.state_of(first))
        self.wait(lambda: self.cut_of(second) is None)
        self.kill_worker(server, first)
        self.assertEqual(first.ask("get"), [0, 5, 5], first.stderr())

    # ---- A server that dies during a cut

    def cut_short(self, point):
        """Two programs with a cut, after which one has set 8 and knows it; the server dies at that point of the next cut, and the workers with it."""
        server, first, second, cut = self.saved_pair()
        self.assertEqual(second.ask("set", 8), [0])
        server.kill()
        try:
            server = self.saving("first", "--auto-checkpoint", "1s", env={"CRICKET_FAULT": str(point)})
        except runner.Failure as failure:
            # It was there, before anybody looked.
            self.assertIn("ended with -9", str(failure))
        self.wait(lambda: server.process.poll() is not None)
        return server, first, second, cut

    def test_cut_never_began(self):
        """Until the next states of all are there, the cut before counts."""
        for point in (246, 247):
            with self.subTest(point=point):
                self.handle = os.path.join(self.dir, "handle-%d" % point)
                server, first, second, cut = self.cut_short(point)
                for member in (first, second):
                    self.assertEqual(self.cut_of(member)[0], cut)
                # The workers that live on are not told: all go on, and the next cut is one of all.
                server = self.again(server, every="1s")
                self.assertNotEqual(self.wait_cut(server, first, second), cut)
                self.kill_worker(server, first)
                self.assertEqual(first.ask("get"), [0, 8, 8], first.stderr())
                self.assertEqual(second.ask("get"), [0, 8, 8], second.stderr())
                self.end_round(server)

    def test_cut_before(self):
        """What only the broken cut has was seen: with the workers dead nobody comes back from the cut before, and nobody gets wrong data."""
        self.patience = "8"
        _, first, second, _ = self.cut_short(246)
        # They look for their sessions once there is a server that can tell them.
        for member in (first, second):
            os.kill(member.process.pid, signal.SIGSTOP)
        self.end_workers()
        self.saving("first")
        for member in (first, second):
            os.kill(member.process.pid, signal.SIGCONT)
            member.begin("get")
        self.assertIn("and the images of its group end before that", self.lost_by(second))
        self.lost_by(first)

    def test_cut_counts(self):
        """Once the next states of all are on the disk the cut counts, also where one of them has become the state already."""
        for renamed in (False, True):
            with self.subTest(renamed=renamed):
                self.handle = os.path.join(self.dir, "handle-%d" % renamed)
                server, first, second, cut = self.cut_short(248)
                for member in (first, second):
                    self.assertEqual(self.cut_of(member)[0], cut)
                    self.assertEqual(self.cut_of(member, file="state.next"), self.cut_of(first, file="state.next"))
                    self.assertNotEqual(self.cut_of(member, file="state.next")[0], cut)
                self.end_workers()
                if renamed:
                    directory = os.path.join(self.images("first"), second.session)
                    os.rename(os.path.join(directory, "state.next"), os.path.join(directory, "state"))
                # Without another cut, which has a next state for a while.
                server = self.saving("first", "--auto-checkpoint", "1h")
                first.begin("get")
                self.assertEqual(second.ask("get"), [0, 8, 8], second.stderr())
                self.assertEqual(first.answer(), [0, 8, 8], first.stderr())
                for member in (first, second):
                    self.assertEqual(self.state_of(member, file="state.next"), "")
                self.end_round(server)

    def test_member_not_saved(self):
        """No image of one is no cut: all go on, and the server says why."""
        server = self.saving("first", env={"CRICKET_FAULT": "fail:%d" % FROZEN})
        first, second = self.pair(server)
        self.wait(lambda: all("no image of session" in ((image or {}).get("problem") or "") for image in self.sessions(server).values()))
        self.assertEqual({self.cut_of(member) for member in (first, second)}, {None})
        self.assertEqual(second.ask("set", 3), [0])
        self.assertEqual(first.ask("get"), [0, 3, 3])

    # ---- Somebody who can write to --auto-dir

    def changed(self, change, *options):
        """What both programs say after the images were changed while server and workers were dead."""
        self.patience = "8"
        server = self.saving("first", *options)
        first, second = self.pair(server)
        cut = self.wait_cut(server, first, second)
        # Of the first alone, as it was.
        kept = os.path.join(self.dir, "kept")
        shutil.copytree(os.path.join(self.images("first"), first.session), kept)
        self.assertEqual(first.ask("set", 6), [0])
        self.wait_next_cut(cut, server, first, second)
        for member in (first, second):
            os.kill(member.process.pid, signal.SIGSTOP)
        self.end_all(server)
        change(first, second, kept)
        # They look for their sessions once there is a server that can tell them.
        self.saving("first", *options)
        for member in (first, second):
            os.kill(member.process.pid, signal.SIGCONT)
            member.begin("get")
        return first, second, [self.lost_by(member) for member in (first, second)]

    def older_images(self, first, _second, kept):
        shutil.rmtree(os.path.join(self.images("first"), first.session))
        shutil.copytree(kept, os.path.join(self.images("first"), first.session))

    def test_two_cuts(self):
        """Images of two moments are not put together."""
        _, _, said = self.changed(self.older_images)
        self.assertIn("its images are of another moment, or of another group", said[1])

    def test_two_cuts_with_a_key(self):
        _, _, said = self.changed(self.older_images, "--image-key", self.key())
        self.assertIn("its images are of another moment, or of another group", said[1])

    def left_out(self, first, second, _kept):
        """The first one's state says that it was alone; the second one's stays."""
        path = os.path.join(self.images("first"), first.session, "state")
        with open(path, encoding="utf-8") as f:
            lines = [line for line in f if not line.startswith(("cut ", "member "))]
        with open(path, "w", encoding="utf-8") as f:
            f.writelines(lines)

    def test_member_left_out(self):
        """A state that names no others is alone, and no part of what the others name."""
        first, _, said = self.changed(self.left_out, "--image-key", self.key())
        self.assertIn("was changed", said[0])
        self.assertIn(f"together with session {first.session}, which has no images that fit", said[1])

    def without_images(self, first, _second, _kept):
        shutil.rmtree(os.path.join(self.images("first"), first.session))

    def test_member_gone(self):
        first, _, said = self.changed(self.without_images)
        self.assertIn(f"together with session {first.session}, which has no images that fit: it has ended", said[1])


if __name__ == "__main__":
    unittest.main(verbosity=2)
