#!/usr/bin/python3
"""What one user can do to another's images and sessions, on a server that root started: nothing."""
import json
import os
import signal
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import wire  # noqa: E402
from fixture import ServerTest, wait_until  # noqa: E402

ALICE, MALLORY = 1001, 1002
CHECKPOINT, RESTORE, SAVE, IMAGE, RESTORE2 = 5, 6, 13, 15, 16


def as_user(uid, function):
    """Runs function in a child with that user id; its return value must be JSON."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setgroups([])
            os.setgid(uid)
            os.setuid(uid)
            os.write(write, json.dumps(function()).encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as f:
        text = f.read()
    os.waitpid(pid, 0)
    return json.loads(text)


@unittest.skipUnless(os.getuid() == 0, "needs root, for two users")
class Owners(ServerTest):
    def home(self, uid, name):
        path = os.path.join(self.dir, name)
        os.mkdir(path)
        os.chown(path, uid, uid)
        return path

    def background(self, uid, function):
        """Runs function as that user until the test ends, or it does."""
        pid = os.fork()
        if pid == 0:
            os.setgroups([])
            os.setgid(uid)
            os.setuid(uid)
            try:
                function()
            finally:
                os._exit(0)
        self.addCleanup(os.waitpid, pid, 0)
        self.addCleanup(os.kill, pid, signal.SIGKILL)
        return pid

    def program(self, uid):
        """A program of the user's with a session, which it keeps."""
        read, write = os.pipe()

        def run():
            peer = wire.Peer(self.socket)
            os.write(write, peer.hello(wire.NEW, secret=os.urandom(16))[1].encode())
            time.sleep(100)

        self.background(uid, run)
        return os.read(read, 12).decode()

    def pass_to(self, proc, args, path, flags):
        """Passes a descriptor of a path, or, where that is a socket, itself: (status, message)"""
        fd = os.open(path, flags)
        with wire.Peer(self.socket) as peer:
            self.assertEqual(peer.hello(wire.HELLO_CONTROL)[0], wire.OK)
            if proc == RESTORE2:
                answer = peer.call(IMAGE, wire.u32(0), fd=fd)
                status, message = answer.u32(), answer.text()
                if status == 0:
                    answer = peer.call(RESTORE2, args)
                    status, message = answer.u32(), answer.text()
            else:
                answer = peer.call(proc, args, fd=fd)
                status, message = answer.u32(), answer.text()
        os.close(fd)
        return [status, message]


class Theft(Owners):
    def test_image_in_the_making(self):
        """While a worker writes or reads an image, nobody else gets at it, and its directory stays as it is."""
        self.start("--log-level", "debug", env={"CRICKET_SOFT_FAKE": "slowsave"})
        home = self.home(ALICE, "home")
        image = os.path.join(home, "image")
        session, own = self.program(ALICE), self.program(MALLORY)
        self.background(ALICE, lambda: self.ctl("checkpoint", session, image))
        wait_until(lambda: os.listdir(home))
        (partial,) = os.listdir(home)
        partial = os.path.join(home, partial)
        seen = set()

        def look():
            try:
                st = os.stat(partial)
                seen.add((st.st_uid, oct(st.st_mode & 0o777)))
            except FileNotFoundError:
                pass
            return os.path.exists(image)

        for _ in range(30):
            look()
            time.sleep(0.01)
        thefts = []
        for flags in (os.O_PATH, os.O_PATH | os.O_DIRECTORY):
            thefts += [as_user(MALLORY, lambda: self.pass_to(RESTORE, wire.u32(0xFFFFFFFF), partial, flags)),
                       as_user(MALLORY, lambda: self.pass_to(RESTORE2, wire.u32(0xFFFFFFFF) + wire.u32(0), partial, flags)),
                       as_user(MALLORY, lambda: self.pass_to(CHECKPOINT, wire.text(own) + wire.u32(0) + wire.u32(1000), partial, flags)),
                       as_user(MALLORY, lambda: self.pass_to(SAVE, wire.text(own) + wire.text("") + wire.u32(1000) + wire.u32(0) * 2 + bytes(16) +
                                                             wire.u32(0) * 3, partial, flags))]
        wait_until(look)
        self.assertEqual(seen, {(ALICE, "0o700")}, "the directory changed hands")
        for status, message in thefts:
            self.assertEqual(status, 1)
            self.assertIn("no file broker came along", message)
        for name in sorted(os.listdir(image)):
            self.assertEqual(os.stat(os.path.join(image, name)).st_uid, ALICE)
        with open(os.path.join(image, "manifest")) as f:
            self.assertEqual(f.read(), session, "another session's image stands there")
        # And again while it is read.
        seen.clear()
        partial = image
        as_user(ALICE, lambda: self.ctl("kill", session).returncode)
        self.assertEqual(as_user(ALICE, lambda: self.ctl("restore", image).returncode), 0)
        look()
        self.assertEqual(seen, {(ALICE, "0o700")})

    def test_what_a_worker_may_ask_for(self):
        """cricketctl opens the files of that image and no others, for reading or for making, never both."""
        self.start(env={"CRICKET_SOFT_FAKE": "curious"})
        image = os.path.join(self.home(ALICE, "home"), "image")
        session = self.program(ALICE)
        done = as_user(ALICE, lambda: [self.ctl("checkpoint", session, image, "--stop").returncode, self.ctl("restore", image).returncode])
        self.assertEqual(done, [0, 0])
        log = self.log()
        self.assertIn("curious: make: opened none of", log)
        self.assertIn("curious: read: opened none of", log)
        self.assertNotIn("curious: opened", log)


if __name__ == "__main__":
    unittest.main()
