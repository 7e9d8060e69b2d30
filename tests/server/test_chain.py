#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Automatic images for which a key vouches, and encrypted ones: what comes back, and what is refused by name."""
import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from chains import Chains  # noqa: E402
from whole import runner  # noqa: E402


class Chain(Chains):
    # ---- A key vouches

    def test_comes_back(self):
        """Chains of which a key vouches for state and manifest come back: after the worker's death, and at the server's successor."""
        key = self.key()
        server = self.saving("first", "--image-key", key)
        taker = self.taker(server, CRICKET_RECONNECT_TIMEOUT="60")
        taken = self.saved(taker)
        self.assertEqual(taker.ask("fill", 8), 0)
        self.saved(taker, taken + 1)
        self.assertRegex(self.state(taker), "\nmanifest [0-9a-f]{64}\nmac [0-9a-f]{16} [0-9a-f]{64}\nend\n$")
        for number in re.findall("\nimage ([0-9]+) ", self.state(taker)):
            # As cricketctl's own, so that its commands know them.
            with open(os.path.join(self.directory(taker), number, "manifest-mac"), "rb") as f:
                self.assertIn(bytes.fromhex(self.state(taker).split("\nmac ")[1].split()[0]), f.read())
        self.kill_workers(server)
        self.assertEqual(taker.ask("check", 8), 0)
        before = self.state(taker)
        self.kill_all(server)
        # An older key reads, a newer one writes.
        server = taker.server = self.saving("first", "--image-key", self.key("newer"), "--image-key", key)
        self.assertEqual(taker.ask("check", 8), 0)
        self.assertEqual(taker.ask("fill", 9), 0)
        self.wait(lambda: self.state(taker).split("mac ")[1].split()[0] != before.split("mac ")[1].split()[0])
        self.kill_workers(server)
        self.assertEqual(taker.ask("check", 9), 0)

    def change(self, path, at):
        with open(path, "r+b") as f:
            f.seek(at, os.SEEK_SET if at >= 0 else os.SEEK_END)
            byte = f.read(1)[0]
            f.seek(-1, os.SEEK_CUR)
            f.write(bytes([byte ^ 1]))

    def edit(self, taker, pattern, text):
        path = os.path.join(self.directory(taker), "state")
        with open(path, encoding="utf-8") as f:
            before = f.read()
        after = re.sub(pattern, text, before)
        self.assertNotEqual(after, before)
        with open(path, "w", encoding="utf-8") as f:
            f.write(after)

    def newest(self, taker):
        return os.path.join(self.directory(taker), re.findall("\nimage ([0-9]+) ", self.state(taker))[-1])

    def data(self, taker):
        """The largest data file of the first image, which the later ones need."""
        first = os.path.join(self.directory(taker), re.findall("\nimage ([0-9]+) ", self.state(taker))[0])
        return max((os.path.join(first, name) for name in os.listdir(first) if name.startswith("data-")), key=os.path.getsize)

    def swap_images(self, taker):
        """The newest image becomes a copy of the first, under its own name."""
        first, last = (os.path.join(self.directory(taker), re.findall("\nimage ([0-9]+) ", self.state(taker))[i]) for i in (0, -1))
        self.assertNotEqual(first, last)
        shutil.rmtree(last)
        shutil.copytree(first, last)

    def attacks(self):
        """What is done with a chain, and a word of what its program is told."""
        return {
            "an owner changed": (lambda t: self.edit(t, "\nowner [0-9]+", "\nowner 0123"), "its state was changed"),
            "a command changed": (lambda t: self.edit(t, "\nexecuted ([0-9]+)", r"\nexecuted \g<1>0"), "its state was changed"),
            "no sum": (lambda t: self.edit(t, "\nmac .*", ""), "no key of --image-key vouches"),
            "another key's sum": (lambda t: self.edit(t, "\nmac [0-9a-f]{4}", "\nmac ffff"), "no key of --image-key vouches"),
            "a state cut off": (lambda t: os.truncate(os.path.join(self.directory(t), "state"), 100), "no key of --image-key vouches"),
            "a manifest changed": (lambda t: self.change(os.path.join(self.newest(t), "manifest"), -1), "its manifest is not the one"),
            "a manifest cut off": (lambda t: os.truncate(os.path.join(self.newest(t), "manifest"), 100), "its manifest is not the one"),
            "an image gone": (lambda t: shutil.rmtree(self.newest(t)), "its manifest is not the one"),
            "images exchanged": (self.swap_images, "its manifest is not the one"),
            "data changed": (lambda t: self.change(self.data(t), 0), "the image is damaged|data-[0-9]+ of that image"),
            "data cut off": (lambda t: os.truncate(self.data(t), 10), "data-"),
        }

    def test_changed(self):
        """Each change of a chain is refused by name, its program is told what is wrong, and nothing starts."""
        self.change_all()

    def test_changed_encrypted(self):
        """The same of an encrypted one."""
        self.change_all("--auto-encrypt")

    def change_all(self, *options):
        server = self.saving("first", "--image-key", self.key(), *options)
        attacks = self.attacks()
        takers = [self.taker(server, 1) for _ in attacks]
        taken = [self.saved(taker) for taker in takers]
        for taker in takers:
            self.assertEqual(taker.ask("alloc", 1), 0)
        for taker, least in zip(takers, taken):
            self.saved(taker, least + 1)
        with self.stopped(*takers):
            self.kill_workers(server)
            # The server writes nothing there any more.
            self.wait(lambda: not self.sessions(server))
            for taker, (attack, _) in zip(takers, attacks.values()):
                attack(taker)
        for said, (name, (_, wanted)) in zip(self.lost(*takers), attacks.items()):
            with self.subTest(name):
                self.assertRegex(said, wanted)
        # Of a worker that found damage its session may still end; none became ready.
        self.wait(lambda: not self.sessions(server))
        self.assertNotIn(" ready, restored", self.log_of(server))

    def keep(self, taker):
        shutil.copytree(self.directory(taker), os.path.join(self.dir, "old-" + taker.session))

    def roll_back(self, taker):
        shutil.rmtree(self.directory(taker))
        shutil.copytree(os.path.join(self.dir, "old-" + taker.session), self.directory(taker))

    def test_rolled_back(self):
        """An older whole chain in place of the newest: the server knows its own, and a successor is told by the program what that has."""
        key = self.key()
        server = self.saving("first", "--image-key", key)
        # Within that time the second one comes back.
        takers = [self.taker(server, CRICKET_RECONNECT_TIMEOUT="8") for _ in range(2)]
        for taker in takers:
            taken = self.saved(taker)
            self.keep(taker)
            self.assertEqual(taker.ask("fill", 8), 0)
            self.saved(taker, taken + 1)
            # The program has been told, and forgets the commands before.
            self.assertEqual(taker.ask("fill", 9), 0)
            self.saved(taker, taken + 2)
        with self.stopped(*takers):
            self.kill_workers(server)
            self.wait(lambda: not self.sessions(server))
            self.roll_back(takers[0])
        (said,) = self.lost(takers[0])
        self.assertIn("older than those that this server has seen", said)
        # The other one has come back: it does not look for its session when its server dies.
        self.assertEqual(takers[1].ask("check", 9), 0)
        with self.stopped(takers[1]):
            self.kill_all(server)
            self.roll_back(takers[1])
            server = self.saving("first", "--image-key", key)
        (said,) = self.lost(takers[1])
        self.assertIn("older than its program", said)
        self.assertEqual(self.sessions(server), {})

    def test_keys(self):
        """Images of before the key, and of another key, do not come back; a server that lives on takes new ones."""
        server = self.saving("first")
        old, other = self.taker(server), self.taker(server, CRICKET_RECONNECT_TIMEOUT="60")
        self.saved(old)
        self.saved(other)
        self.assertNotIn("mac", self.state(old))
        workers = self.workers(server)
        server.kill()
        # The workers live on: what they are saved as next has the key.
        key = self.key()
        server = other.server = self.saving("first", "--image-key", key)
        self.wait(lambda: len(self.sessions(server)) == 2)
        # Once the workers have answered.
        self.wait(lambda: "no key of --image-key vouches" in self.log_of(server))
        self.wait(lambda: "\nmac " in self.state(other))
        for worker in workers:
            os.kill(worker, signal.SIGKILL)
        runner.end_all(workers, "the test killed it")
        self.assertEqual(other.ask("check", 7), 0)
        self.kill_all(server)
        server = self.saving("first", "--image-key", self.key("second"))
        (said,) = self.lost(other)
        self.assertIn("no key of --image-key vouches", said)

    # ---- The files of a replica

    def replicating(self, second, *options):
        return self.saving("first", "--replicate", second.address, "--replicate-lease", "1h", *options)

    def replicated(self, *takers):
        for taker in takers:
            self.saved(taker)
            executed = self.sessions(taker.server)[taker.session]["executed"]
            self.wait(lambda taker=taker, executed=executed: os.path.exists(os.path.join(self.directory(taker, "second"), "state")) and
                      int(self.state(taker, "second").split("executed ")[1].split()[0]) >= executed)

    def mark(self, taker, text):
        """The file that says that the chain at the second server is a replica, and for how long."""
        path = os.path.join(self.directory(taker, "second"), "replica")
        os.unlink(path)
        if text is not None:
            with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="utf-8") as f:
                f.write(text)

    def link_mark(self, taker):
        self.mark(taker, None)
        os.symlink("nowhere", os.path.join(self.directory(taker, "second"), "replica"))

    def test_replica_marks(self):
        """Nobody who can write there makes a replica start before its lease is over, also where its server was started again since."""
        options = ["--image-key", self.key()]
        second = self.saving("second", *options)
        first = self.replicating(second, *options)
        attacks = [lambda t: None, lambda t: self.mark(t, None), self.link_mark, lambda t: self.mark(t, ""), lambda t: self.mark(t, "2000\n"),
                   lambda t: self.mark(t, marks[t].replace("lease 3600000\n", "lease 2000\n")), lambda t: self.mark(t, marks[takers[0]])]
        takers = [self.taker(first, 1, CRICKET_STANDBY=second.address, CRICKET_RECONNECT_TIMEOUT="6") for _ in attacks]
        self.replicated(*takers)
        marks = {}
        for taker in takers:
            self.assertIn("\nreplica 3600000\n", self.state(taker, "second"))
            self.assertNotIn("\nreplicated ", self.state(taker, "second"))
            with open(os.path.join(self.directory(taker, "second"), "replica"), encoding="utf-8") as f:
                marks[taker] = f.read()
            self.assertRegex(marks[taker], "^mark replica %s\nlease 3600000\nmac [0-9a-f]{16} [0-9a-f]{64}\nend\n$" % taker.session)
        with self.stopped(*takers):
            self.kill_all(first)
            second.kill()
            for taker, attack in zip(takers, attacks):
                attack(taker)
            second = self.saving("second", *options)
        for said in self.lost(*takers):
            self.assertIn("is a replica, and its server may still run it", said)
        self.assertEqual(self.sessions(second), {})

    def test_replicated_marks(self):
        """A session whose replica may have started does not start again, whoever removed the file that says so."""
        options = ["--image-key", self.key()]
        second = self.saving("second", *options)
        first = self.replicating(second, *options)
        takers = [self.taker(first, 1, CRICKET_RECONNECT_TIMEOUT="6") for _ in range(2)]
        self.replicated(*takers)
        for taker in takers:
            self.assertIn("\nreplicated 1\n", self.state(taker))
        with self.stopped(*takers):
            self.kill_all(first)
            second.kill()
            os.unlink(os.path.join(self.directory(takers[0]), "replicated"))
            first = self.replicating(second, *options)
        for said in self.lost(*takers):
            self.assertIn("may have gone on from its replica", said)
        self.assertEqual(self.sessions(first), {})

    # ---- Encrypted

    def files(self, taker):
        """Path and beginning of every file of its images."""
        found = {}
        for path, _, names in os.walk(self.directory(taker)):
            for name in names:
                # An older image may go meanwhile.
                if path != self.directory(taker):
                    with contextlib.suppress(FileNotFoundError), open(os.path.join(path, name), "rb") as f:
                        found[os.path.join(path, name)] = f.read(4)
        return found

    def test_encrypted(self):
        """No file of an image is plain; the session comes back where a server has the key, also without the option."""
        key = self.key()
        server = self.saving("first", "--image-key", key, "--auto-encrypt")
        taker = self.taker(server, CRICKET_RECONNECT_TIMEOUT="60")
        taken = self.saved(taker)
        self.assertEqual(taker.ask("alloc", 1), 0)
        self.assertEqual(taker.ask("fill", 7), 0)
        self.saved(taker, taken + 1)
        files = self.files(taker)
        self.assertGreaterEqual(len(files), 6)
        self.assertEqual(set(files.values()), {b"CkE1"})
        self.assertIn("is encrypted", self.may_fail(server, "image", "show", self.newest(taker))[2])
        # The key decrypts one that builds on no other, as cricketctl's own.
        first = os.path.dirname(self.data(taker))
        plain = os.path.join(self.dir, "plain")
        runner.cricketctl(self.tree, "image", "decrypt", first, plain, "--image-key", key)
        self.assertTrue(self.image_is_whole(plain))
        self.kill_workers(server)
        self.assertEqual(taker.ask("check", 7), 0)
        self.kill_all(server)
        server = taker.server = self.saving("first", "--image-key", self.key("newer"), "--image-key", key)
        self.assertEqual(taker.ask("check", 7), 0)
        # Now it writes plain ones again, and the next server encrypted ones: no such image builds on a plain one.
        self.assertEqual(taker.ask("alloc", 1), 0)
        self.wait(lambda: b"CkE1" not in self.files(taker).values() or (self.sessions(server)[taker.session] or {}).get("taken"))
        self.kill_all(server)
        server = taker.server = self.saving("first", "--image-key", key, "--image-key", os.path.join(self.dir, "newer"), "--auto-encrypt")
        self.assertEqual(taker.ask("fill", 8), 0)
        self.wait(lambda: self.saved(taker) and set(self.files(taker).values()) == {b"CkE1"})
        self.kill_workers(server)
        self.assertEqual(taker.ask("check", 8), 0)

    def test_nothing_between(self):
        """Images of which the last one uses nothing, so that it does not name them: with a key, and encrypted."""
        for name, options in (("vouched", ()), ("encrypted", ("--auto-encrypt",))):
            with self.subTest(name):
                server = self.saving(name, "--image-key", self.key(name + "-key"), *options)
                taker = self.taker(server, 16, CRICKET_RECONNECT_TIMEOUT="60")
                taken, blocks = self.saved(taker), 0
                while len(re.findall("\nimage ", self.state(taker))) < 3:
                    # Memory with zeros, which no image holds.
                    self.assertEqual(taker.ask("alloc", 1), 0)
                    taken, blocks = self.saved(taker, taken + 1), blocks + 1
                self.kill_workers(server)
                self.assertEqual(taker.ask("check", 7), blocks)

    def test_without_key(self):
        """Without the key the program is told so; --auto-encrypt alone says what it needs."""
        server = self.saving("first", "--image-key", self.key(), "--auto-encrypt")
        taker = self.taker(server)
        self.saved(taker)
        with self.stopped(taker):
            self.kill_all(server)
            server = self.saving("first")
        (said,) = self.lost(taker)
        self.assertIn("encrypted", said)
        server.kill()
        with self.assertRaisesRegex(runner.Failure, "give --image-key"):
            self.saving("first", "--auto-encrypt")

    # ---- Sessions that share

    def share(self, server, *words, **env):
        program = subprocess.Popen([self.tree.tool("cricket-run"), "--server", server.address, os.environ["CKT_TEST_SHARE_CLIENT"], *words],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   env={**runner.clean_environment(), "HOME": self.home, **env})
        self.addCleanup(lambda: (program.kill(), program.communicate()))
        return program

    def test_shared(self):
        """A session whose memory another one uses that has no images has none any more; those that it had do not count, here and at a replica."""
        second = self.saving("second")
        options = ("--auto-checkpoint", "1s,asked", "--replicate", second.address, "--replicate-lease", "1h")
        server = self.saving("first", *options)
        path = os.path.join(self.dir, "handle")
        self.share(server, "give", path, CRICKET_DURABLE="1")
        self.wait(lambda: os.path.exists(path))
        (session,) = self.sessions(server)
        # Who only offers its memory has images still.
        self.wait(lambda: (self.sessions(server)[session] or {}).get("when") and os.path.exists(os.path.join(self.images("second"), session, "state")))
        self.assertEqual(self.sessions(server)[session]["problem"], None)
        user = self.share(server, "use", path)
        self.assertEqual(user.stdout.readline(), "ready\n")
        (other,) = set(self.sessions(server)) - {session}
        self.wait(lambda: f"the client of session {other} does not ask for images" in (self.sessions(server)[session]["problem"] or ""))

        def read(name):
            with open(os.path.join(self.images(name), session, "state"), encoding="utf-8") as f:
                return f.read()

        self.wait(lambda: all("\nshared 1\n" in read(name) for name in ("first", "second")))
        # A server that is started again knows it, too.
        workers = self.workers(server)
        server.kill()
        server = self.saving("first", *options)
        self.wait(lambda: "does not ask for images" in ((self.sessions(server).get(session) or {}).get("problem") or ""))
        for worker in workers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(worker, signal.SIGKILL)
        # Its program comes for it, and is told.
        self.wait(lambda: "does not come back alone" in self.log_of(server))
        # One that came back would stay as long as its program.
        self.wait(lambda: not self.sessions(server))


if __name__ == "__main__":
    unittest.main(verbosity=2)
