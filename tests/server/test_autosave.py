#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Images that the server takes by itself, and sessions that come back from them.  With CKT_TEST_DURABLE=1 the clients are durable too."""
import contextlib
import fcntl
import os
import random
import shutil
import signal
import struct
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from takers import MIB, Taker  # noqa: E402
from whole import Whole, runner  # noqa: E402

F_OFD_SETLK = 37
MODE = {"CRICKET_DURABLE": "1"} if os.environ.get("CKT_TEST_DURABLE") else {}


class Autosave(Whole):
    def setUp(self):
        super().setUp()
        self.takers = []
        self.images = os.path.join(self.dir, "images")

    def tearDown(self):
        for taker in self.takers:
            if not taker.process.stdout.closed:
                with contextlib.suppress(OSError):
                    taker.process.kill()
                    taker.end()
        super().tearDown()

    def saving(self, name="server", *options, every="1s"):
        # Else an earlier server's file says that this one is ready.
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(self.dir, name, "address"))
        server = self.server(name, "--auto-checkpoint", every, "--auto-dir", self.images, "--claim-timeout", "30", *options,
                             env={"CRICKET_SOFT_DEVICES": "12.0:8G"})
        server.tcp, server.address = server.address, "unix:" + server.socket
        return server

    def taker(self, server, mib, **env):
        taker = Taker(self, server, **{**MODE, **env})
        self.takers.append(taker)
        self.assertEqual(taker.ask("alloc", mib), 0)
        self.assertEqual(taker.ask("fill", 7), 0)
        return taker

    def image(self, server):
        """What ps tells of the images of the only session; None: no session, or no images."""
        sessions = runner.sessions_of(self.tree, server)
        return sessions[0].get("automatic_image") if len(sessions) == 1 else None

    def saved(self, server):
        """Waits until an image has all that the session has done; its description."""
        found = {}

        def whole():
            # The second answer tells what the first one made the server ask its worker.
            self.image(server)
            found.update(self.image(server) or {})
            return found.get("when") and not found["behind"]

        self.wait(whole)
        return found

    def settled(self, server):
        """As saved(), once no other image is to come: one that was taken before the memory was filled is small, and then a whole one
        replaces both."""
        found = {}

        def still():
            found.update(self.saved(server))
            with open(os.path.join(self.directory(), "state"), encoding="utf-8") as f:
                sizes = [int(line.split()[2]) for line in f if line.startswith("image ")]
            return (len(sizes), sum(sizes)) == (found["images"], found["bytes"]) and sum(sizes[1:]) <= sizes[0]

        self.wait(still)
        return found

    def directory(self):
        (name,) = os.listdir(self.images)
        return os.path.join(self.images, name)

    def numbers(self):
        return sorted(int(name) for name in os.listdir(self.directory()) if name.isdigit())

    def bytes(self):
        total = 0
        for path, _, files in os.walk(self.images):
            total += sum(os.stat(os.path.join(path, name)).st_blocks * 512 for name in files)
        return total

    def kill_worker(self, server):
        workers = server.workers()
        for worker in workers:
            # An earlier one that the server has not waited for until now.
            with contextlib.suppress(ProcessLookupError):
                os.kill(worker, signal.SIGKILL)
        runner.end_all(workers, "its worker was killed")

    def kill_all(self, server):
        workers = server.workers()
        server.kill()
        for worker in workers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(worker, signal.SIGKILL)
        runner.end_all(workers, "its server was killed")

    # ---- Images

    def test_chain(self):
        """Images of what changed, one that is whole when these grow, and nothing that remains."""
        server = self.saving()
        taker = self.taker(server, 64)
        first = self.settled(server)
        self.assertGreaterEqual(first["bytes"], 64 * MIB)
        # Contents that stay are not written again.
        for _ in range(3):
            before = self.saved(server)
            self.assertEqual(taker.ask("alloc", 1), 0)
            after = self.saved(server)
            self.assertGreater(after["images"], before["images"])
            self.assertLess(after["bytes"] - before["bytes"], 8 * MIB)
        # Now all is new, several times: one that is whole comes, and the older ones go.
        for word in (8, 9, 10):
            self.assertEqual(taker.ask("fill", word), 0)
            self.saved(server)
        self.wait(lambda: self.settled(server)["bytes"] <= (2 * 68 + 1) * MIB and self.numbers()[0] > 1)
        self.assertLessEqual(self.bytes(), (2 * 68 + 1) * MIB)
        self.assertEqual(len(self.numbers()), self.saved(server)["images"])
        for path, directories, files in os.walk(self.images):
            for name in directories + files:
                self.assertEqual(os.stat(os.path.join(path, name)).st_mode & 0o077, 0, name)
        self.assertEqual(self.image_is_whole(os.path.join(self.directory(), str(self.numbers()[0]))), True)
        taken, begun = self.saved(server)["taken"], time.monotonic()
        self.assertEqual(taker.ask("check", 10), 0)
        # Reading is a command too, and idling is none.  Where it takes long there is one a second.
        self.assertLessEqual(self.saved(server)["taken"], taken + 2 + int(time.monotonic() - begun))
        taker.end()
        self.wait(lambda: not os.listdir(self.images))

    def test_off(self):
        """Without the option nothing is written, and ps says nothing of it."""
        server = self.server("plain")
        server.tcp, server.address = server.address, "unix:" + server.socket
        self.taker(server, 1)
        self.assertNotIn("automatic_image", runner.sessions_of(self.tree, server)[0])
        self.assertFalse(os.path.exists(self.images))

    def test_asked(self):
        """Only the sessions whose client asks."""
        server = self.saving("server", every="1s,asked")
        plain = Taker(self, server)
        self.takers.append(plain)
        self.assertEqual(plain.ask("alloc", 1), 0)
        self.assertIsNone(self.image(server))
        plain.end()

    def test_user_checkpoint(self):
        """An image of the user's in between does not harm the chain, nor the chain that."""
        server = self.saving()
        taker = self.taker(server, 8)
        self.saved(server)
        session = runner.sessions_of(self.tree, server)[0]["session"]
        for word in (8, 9):
            image = os.path.join(self.dir, "image%d" % word)
            self.ctl(server, "checkpoint", session, image)
            self.assertTrue(self.image_is_whole(image))
            self.assertEqual(taker.ask("fill", word), 0)
            self.saved(server)
        self.kill_worker(server)
        self.assertEqual(taker.ask("check", 9), 0)

    # ---- Deaths

    def test_worker_killed(self):
        server = self.saving()
        taker = self.taker(server, 16)
        for word in (7, 8):
            self.assertEqual(taker.ask("fill", word), 0)
            self.saved(server)
            self.kill_worker(server)
            self.assertEqual(taker.ask("check", word), 0)
        # It goes on from a chain of which it wrote only the end.
        self.assertEqual(taker.ask("alloc", 1), 0)
        self.assertEqual(taker.ask("fill", 9), 0)
        self.saved(server)
        self.kill_worker(server)
        self.assertEqual(taker.ask("check", 9), 0)
        taker.end()
        self.wait(lambda: not os.listdir(self.images))

    def test_nothing_between(self):
        """An image in the middle of the chain of which the last one uses nothing."""
        server = self.saving()
        taker = self.taker(server, 16)
        images = self.settled(server)["images"]
        for blocks in (2, 4):
            for _ in range(2):
                # Memory with zeros, which no image holds.
                self.assertEqual(taker.ask("alloc", 1), 0)
                images += 1
                self.wait(lambda: self.saved(server)["images"] >= images)
            self.kill_worker(server)
            self.assertEqual(taker.ask("check", 7), blocks)
            images = self.settled(server)["images"]
        taker.end()

    def test_server_killed(self):
        """Both are dead: the next server finds the session on the disk."""
        server = self.saving()
        taker = self.taker(server, 16)
        for _ in range(2):
            self.saved(server)
            self.kill_all(server)
            server = self.saving()
            self.assertEqual(taker.ask("check", 7), 0)
        taker.end()
        self.wait(lambda: not os.listdir(self.images))

    def test_kills(self):
        """Worker, server or both die at random moments (CKT_TEST_KILLS of them).

        A client that is not durable must not have executed anything since the last image; a durable one may."""
        seed = int(os.environ.get("CKT_TEST_SEED") or random.randrange(1 << 32))
        print(f"CKT_TEST_SEED={seed}", file=sys.stderr)
        chance = random.Random(seed)
        server = self.saving()
        taker = self.taker(server, 8)
        for round_ in range(int(os.environ.get("CKT_TEST_KILLS", "4"))):
            # A durable program begins again from nothing where there is no image.
            if not MODE:
                self.saved(server)
            time.sleep(chance.random() * 1.5)
            who = chance.choice(("worker", "both", "server"))
            if who == "worker":
                self.kill_worker(server)
            elif who == "both":
                self.kill_all(server)
            else:
                server.kill()
            if who != "worker":
                server = self.saving()
            taker.process.stdin.write(f"check {7 + round_}\nfill {8 + round_}\n")
            taker.process.stdin.flush()
            if MODE:
                # Its new worker may be starting, or have begun to compute.
                time.sleep(chance.random() * 0.3)
                self.kill_worker(server)
            answers = [taker.process.stdout.readline() for _ in range(2)]
            if answers != ["0\n", "0\n"]:
                taker.process.kill()
                said = taker.process.communicate()[1]
                self.fail(f"round {round_}, {who}: {answers}\n{said[-2000:]}\n{self.log_of(server)[-4000:]}")
        taker.end()
        self.wait(lambda: not os.listdir(self.images))

    def test_server_alone_killed(self):
        """The session runs on, and so do its images."""
        server = self.saving()
        taker = self.taker(server, 16)
        taken = self.saved(server)
        workers = server.workers()
        server.kill()
        server = self.saving()
        self.assertEqual(taker.ask("fill", 8), 0)
        self.wait(lambda: self.saved(server)["executed"] > taken["executed"])
        for worker in workers:
            os.kill(worker, signal.SIGKILL)
        runner.end_all(workers, "its worker was killed")
        self.assertEqual(taker.ask("check", 8), 0)

    def test_server_stopped(self):
        """A server that is told to end ends its sessions, and the next one has them again."""
        server = self.saving("server", "--grace", "0")
        taker = self.taker(server, 4)
        self.saved(server)
        workers = server.workers()
        server.process.terminate()
        server.process.wait(60)
        runner.end_all(workers, "its server ended")
        server = self.saving()
        self.assertEqual(taker.ask("check", 7), 0)
        taker.end()
        self.wait(lambda: not os.listdir(self.images))

    def test_over_without_server(self):
        """What ended while no server was there leaves nothing to the next one."""
        server = self.saving()
        taker = self.taker(server, 4)
        self.saved(server)
        workers = server.workers()
        server.kill()
        taker.end()
        runner.end_all(workers, "its program ended")
        self.assertEqual(len(os.listdir(self.images)), 1)
        self.saving()
        self.wait(lambda: not os.listdir(self.images))

    def test_standby(self):
        """Another server that shares the directory, once nobody runs the session any more."""
        first, second = self.saving("first"), self.saving("second")
        taker = self.taker(first, 16, CRICKET_STANDBY=first.address + "," + second.address)
        self.saved(first)
        self.kill_all(first)
        self.assertEqual(taker.ask("check", 7), 0)
        self.assertEqual(len(runner.sessions_of(self.tree, second)), 1)
        # And back.
        self.saved(second)
        first = self.saving("first")
        self.kill_all(second)
        self.assertEqual(taker.ask("check", 7), 0)

    def test_lock(self):
        """Whoever has the lock may run the session: it is not started beside that."""
        server = self.saving()
        taker = self.taker(server, 4)
        self.saved(server)
        with open(os.path.join(self.directory(), "lock"), "rb") as lock:
            fcntl.fcntl(lock, F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_RDLCK, os.SEEK_SET, 0, 0, 0))
            self.kill_worker(server)
            taker.process.stdin.write("check 7\n")
            taker.process.stdin.flush()
            self.wait(lambda: "still has a worker" in self.log_of(server))
            self.assertEqual(runner.sessions_of(self.tree, server), [])
        self.assertEqual(taker.process.stdout.readline(), "0\n")

    def test_crashes(self):
        """Three lives from one image, each of which its client accepts; what dies once more is told so."""
        server = self.saving()
        # In that time a server finds that its worker is dead, and starts another one.
        taker = self.taker(server, 4, CRICKET_RECONNECT_TIMEOUT="15")
        image = self.settled(server)
        for restores in range(1, 4):
            self.kill_worker(server)
            # A question, which changes nothing.
            self.assertGreater(taker.ask("info")[1], 0)
            self.wait(lambda: self.image(server))
            now = self.image(server)
            self.assertEqual((now["restores"], now["executed"], now["when"]), (restores, image["executed"], image["when"]))
        self.kill_worker(server)
        self.takers.remove(taker)
        said = taker.process.communicate("check 7\n", 60)[1]
        self.assertIn("is not started again", said)

    def test_progress(self):
        """A newer image begins the count anew."""
        server = self.saving()
        taker = self.taker(server, 4)
        for word in range(5):
            self.assertEqual(taker.ask("fill", word), 0)
            self.assertEqual(self.saved(server)["restores"], 0)
            self.kill_worker(server)
            self.assertEqual(taker.ask("check", word), 0)

    def test_durable_progress(self):
        """A durable program that goes on may lose its worker any number of times without a newer image; the count begins anew each time."""
        server = self.saving()
        taker = self.taker(server, 4, CRICKET_DURABLE="1")
        image = self.saved(server)
        self.kill_all(server)
        server = self.saving(every="1h")
        for word in range(8, 14):
            self.assertEqual(taker.ask("fill", word), 0)
            self.assertEqual(taker.ask("check", word), 0)
            now = self.image(server)
            self.assertEqual((now["restores"], now["executed"]), (1, image["executed"]))
            self.kill_worker(server)

    # ---- What is in the way

    def test_no_room(self):
        """The last image stays, the reason is told once, and the next one comes when there is room."""
        # Root's images are not limited.
        token = self.token("alice")
        server = self.saving("server", "--image-space", "24M", "--tokens", self.tokens)
        unix, server.address = server.address, server.tcp
        taker = self.taker(server, 8, CRICKET_TOKEN_FILE=token)
        server.address = unix
        before = self.settled(server)
        # No image of what fits comes in between: the program needs its worker alone.
        os.kill(server.process.pid, signal.SIGSTOP)
        try:
            self.assertEqual(taker.ask("alloc", 64), 0)
            self.assertEqual(taker.ask("fill", 8), 0)
        finally:
            os.kill(server.process.pid, signal.SIGCONT)
        self.wait(lambda: (self.image(server) or {}).get("problem"))
        after = self.image(server)
        self.assertEqual((after["images"], after["executed"]), (before["images"], before["executed"]))
        self.assertTrue(self.image_is_whole(os.path.join(self.directory(), str(self.numbers()[0]))))
        self.assertEqual(self.log_of(server).count("no automatic image"), 1)
        # cricketctl gives the server 0.3 seconds for each answer.
        self.wait(lambda: " unsaved " in self.ctl(server, "events"))
        self.assertLessEqual(self.ctl(server, "events").count(" unsaved "), 1)
        self.assertEqual(taker.ask("free"), 0)
        self.assertEqual(self.saved(server)["problem"], None)

    # ---- Attacks

    def session_directory(self, server):
        self.settled(server)
        return self.directory()

    def comes_back(self, server, taker, change):
        """Whether the session does after `change` of its directory, while its worker is dead."""
        directory = self.session_directory(server)
        # Else it could come back before that.
        os.kill(taker.process.pid, signal.SIGSTOP)
        try:
            self.kill_worker(server)
            self.wait(lambda: not runner.sessions_of(self.tree, server))
            change(directory)
        finally:
            os.kill(taker.process.pid, signal.SIGCONT)
        said = taker.process.communicate("check 7\n", 60)
        taker.process.stdin.close()
        self.takers.remove(taker)
        return said[0] == "0\n", said[1]

    def test_half_written(self):
        """A state that is cut off is none."""
        server = self.saving()
        taker = self.taker(server, 4, CRICKET_RECONNECT_TIMEOUT="2")

        def cut(directory):
            path = os.path.join(directory, "state")
            with open(path, encoding="utf-8") as f:
                text = f.read()
            with open(path, "w", encoding="utf-8") as f:
                f.write(text[:-6])

        back, said = self.comes_back(server, taker, cut)
        self.assertFalse(back)
        self.assertIn("is lost", said)

    def test_links(self):
        """A link in the place of an image is no image."""
        server = self.saving()
        taker = self.taker(server, 4, CRICKET_RECONNECT_TIMEOUT="2")

        def link(directory):
            for number in self.numbers():
                os.rename(os.path.join(directory, str(number)), os.path.join(self.dir, "elsewhere%d" % number))
                os.symlink(os.path.join(self.dir, "elsewhere%d" % number), os.path.join(directory, str(number)))

        back, _ = self.comes_back(server, taker, link)
        self.assertFalse(back)
        moved = [name for name in os.listdir(self.dir) if name.startswith("elsewhere")]
        self.assertTrue(moved)
        for name in moved:
            self.assertTrue(os.listdir(os.path.join(self.dir, name)))

    def test_others_image(self):
        """The image of another session under this one's name is told from it."""
        server = self.saving()
        other = self.taker(server, 4)
        theirs = self.session_directory(server)
        shutil.copytree(os.path.join(theirs, str(self.numbers()[0])), os.path.join(self.dir, "theirs"))
        other.end()
        self.takers.remove(other)
        self.wait(lambda: not os.listdir(self.images))
        # In that time it must have asked the server, which must have looked at the image.
        taker = self.taker(server, 4, CRICKET_RECONNECT_TIMEOUT="10")

        def replace(directory):
            for own in self.numbers():
                shutil.rmtree(os.path.join(directory, str(own)))
                shutil.copytree(os.path.join(self.dir, "theirs"), os.path.join(directory, str(own)))

        back, _ = self.comes_back(server, taker, replace)
        self.assertFalse(back)
        self.wait(lambda: "another session's" in self.log_of(server))

    def test_open_directory(self):
        """Where others could write, the server does not start."""
        os.mkdir(self.images, 0o777)
        os.chmod(self.images, 0o777)
        with self.assertRaisesRegex(runner.Failure, "mode 0700"):
            self.saving()


if __name__ == "__main__":
    unittest.main(verbosity=2)
