#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What one user can do to another's images and sessions, on a server that root started: nothing."""
import hashlib
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
CHECKPOINT, RESTORE, SAVE, IMAGE, RESTORE2, CONNECTIONS, WATCH = 5, 6, 13, 15, 16, 41, 52


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


def as_user_raises(uid, function):
    def tried():
        try:
            function()
        except OSError as error:
            return error.errno
        return 0

    error = as_user(uid, tried)
    if error:
        raise OSError(error, os.strerror(error))


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

    def program(self, uid, secret=None):
        """A program of the user's with a session, which it keeps."""
        read, write = os.pipe()

        def run():
            peer = wire.Peer(self.socket)
            os.write(write, peer.hello(wire.NEW, secret=secret)[1].encode())
            signal.pause()

        self.background(uid, run)
        # One that fails ends, and then nobody has the other end.
        os.close(write)
        with os.fdopen(read) as f:
            return f.read(12)

    def hello(self, kind, session, secret):
        with wire.Peer(self.socket) as peer:
            return list(peer.hello(kind, session=session, secret=secret))

    def owners(self, only=None):
        """Whose the sessions are: CONTROL LIST tells, and cricketctl does not."""
        with wire.Peer(self.socket) as peer:
            peer.hello(wire.HELLO_CONTROL)
            r = peer.call(2, wire.text(""))
            owners = []
            for _ in range(r.u32()):
                session = r.text()
                r.text(), r.text(), r.u32()
                owners += [r.u32()] if only in (None, session) else [r.u32()][:0]
                r.u32(), r.u32(), r.u64(), r.u32(), r.u64(), r.u64(), r.u64(), r.text()
            return owners

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


class Connections(Owners):
    def test_of_own_sessions(self):
        """What sessions run over: told to their owner and to root, and to nobody else."""
        self.start()
        session = self.program(ALICE)

        def told():
            with wire.Peer(self.socket) as peer:
                peer.hello(wire.HELLO_CONTROL)
                r = peer.call(CONNECTIONS, wire.text(""))
                return [(r.text(), r.text(), r.u32()) for _ in range(r.u32())]
        wait_until(told)
        self.assertEqual(told(), [(session, "unix", 2)])
        self.assertEqual(as_user(ALICE, told), [[session, "unix", 2]])
        self.assertEqual(as_user(MALLORY, told), [])

        def watched():
            with wire.Peer(self.socket) as peer:
                peer.hello(wire.HELLO_CONTROL)
                r = peer.call(WATCH, wire.text(""))
                return [r.text() for _ in range(r.u32())]
        self.assertEqual(watched(), [session])
        self.assertEqual(as_user(ALICE, watched), [session])
        self.assertEqual(as_user(MALLORY, watched), [])


class Theft(Owners):
    def test_image_in_the_making(self):
        """While a worker writes or reads an image, nobody else gets at it, and its directory stays as it is."""
        self.start("--log-level", "debug", env={"CRICKET_SOFT_FAKE": "slowsave"})
        home = self.home(ALICE, "home")
        image = os.path.join(home, "image")
        session, own = self.program(ALICE), self.program(MALLORY)
        # The worker stands still until all has been tried: the image is not whole before.
        worker = self.worker_of(session)
        self.workers.add(worker)
        os.kill(worker, signal.SIGSTOP)
        saves = self.background(ALICE, lambda: self.ctl("checkpoint", session, image, "--deadline", "60"))
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
        os.kill(worker, signal.SIGCONT)
        wait_until(look)
        self.assertEqual(seen, {(ALICE, "0o700")}, "the directory changed hands")
        for status, message in thefts:
            self.assertEqual(status, 1)
            self.assertIn("without a file broker", message)
        for name in sorted(os.listdir(image)):
            self.assertEqual(os.stat(os.path.join(image, name)).st_uid, ALICE)
        with open(os.path.join(image, "manifest")) as f:
            self.assertEqual(f.read().split()[0], session, "another session's image stands there")
        # And again while it is read.  Who saved it has ended, and is a zombie until the test's end.
        wait_until(lambda: os.waitid(os.P_PID, saves, os.WEXITED | os.WNOWAIT | os.WNOHANG))
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


class Squatting(Owners):
    def forge(self, home, session, secret=None, uid=0, name="forged"):
        """A whole image, as the fake worker reads it, of a session with that id."""
        image = os.path.join(home, name)
        os.mkdir(image, 0o700)
        with open(os.path.join(image, "manifest"), "w") as f:
            f.write(" ".join([session, "1", str(uid), hashlib.sha256(secret or os.urandom(16)).hexdigest(), "00" * 16, "00" * 32]))
        for path in (image, image + "/manifest"):
            os.chown(path, MALLORY, MALLORY)
        return image

    def test_id_of_another(self):
        """An image that names another's session gets nobody that session's id, its marks or its end."""
        self.start()
        home, theirs, secret = self.home(ALICE, "home"), self.home(MALLORY, "theirs"), os.urandom(16)
        image = os.path.join(home, "image")
        session = self.program(ALICE, secret)
        self.assertEqual(session, wire.session_id(secret))
        forged = self.forge(theirs, session)
        # While it lives, while it is stopped, and after it was restored.
        done = as_user(MALLORY, lambda: self.ctl("restore", forged).stderr)
        self.assertIn("session %s is already here and belongs to another user" % session, done)
        self.assertEqual(as_user(ALICE, lambda: self.ctl("checkpoint", session, image, "--stop").returncode), 0)
        self.assertEqual(as_user(ALICE, lambda: self.hello(wire.RESUME, session, secret))[0], wire.PARKED)
        done = as_user(MALLORY, lambda: self.ctl("restore", forged).stderr)
        self.assertIn("session %s was last here and belongs to another user" % session, done)
        self.assertEqual(as_user(ALICE, lambda: self.hello(wire.RESUME, session, secret))[0], wire.PARKED, "the owner's mark is gone")
        # Another user learns nothing from it either.
        self.assertEqual(as_user(MALLORY, lambda: self.hello(wire.RESUME, session, secret))[0], wire.NO_SESSION)
        self.assertEqual(as_user(ALICE, lambda: self.ctl("restore", image).returncode), 0, self.log())
        self.assertEqual([s["session"] for s in self.ps()], [session])
        self.assertEqual(as_user(ALICE, lambda: self.hello(wire.RESUME, session, secret))[0], wire.OK)
        self.assertEqual(as_user(MALLORY, lambda: self.ctl("kill", session).returncode), 4)

    def test_id_of_nobody_here(self):
        """Who took an id on its image's word alone gives it back to the session whose it is."""
        self.start()
        home, theirs, secret = self.home(ALICE, "home"), self.home(MALLORY, "theirs"), os.urandom(16)
        image = os.path.join(home, "image")
        session = self.program(ALICE, secret)
        self.assertEqual(as_user(ALICE, lambda: [self.ctl("checkpoint", session, image).returncode, self.ctl("kill", session).returncode]), [0, 0])
        forged = self.forge(theirs, session)
        self.assertEqual(as_user(MALLORY, lambda: self.ctl("restore", forged).returncode), 0)
        self.assertEqual(self.owners(), [MALLORY], "the owner is who restored it")
        self.assertEqual(as_user(ALICE, lambda: self.ctl("restore", image).returncode), 0, self.log())
        wait_until(lambda: self.owners(session) == [ALICE])
        self.assertEqual(as_user(ALICE, lambda: self.hello(wire.RESUME, session, secret))[0], wire.OK)

    def squatted(self, mallory_does):
        """Mallory takes the id of Alice's session, which is not here, on an image's word, and does something with it; then she comes."""
        number = len(os.listdir(self.dir))
        home, theirs, secret = self.home(ALICE, "home%d" % number), self.home(MALLORY, "theirs%d" % number), os.urandom(16)
        image = os.path.join(home, "image")
        session = self.program(ALICE, secret)
        self.assertEqual(as_user(ALICE, lambda: [self.ctl("checkpoint", session, image).returncode, self.ctl("kill", session).returncode]), [0, 0])
        forged = self.forge(theirs, session)
        self.assertEqual(as_user(MALLORY, lambda: self.ctl("restore", forged).returncode), 0)
        mallory_does(session, theirs)
        # Not even over TCP, where a peer has no uid, is she told what Mallory wants.
        with wire.Peer(self.tcp) as peer:
            status, said = peer.hello(wire.RESUME, session=session, secret=secret)[:2]
        self.assertNotIn(status, (wire.PARKED, wire.MOVED), said)
        done = as_user(ALICE, lambda: self.ctl("restore", image).stderr)
        # Mallory's may still be ending.
        wait_until(lambda: self.owners(session) == [ALICE] or "belongs to another user" in done)
        self.assertEqual(self.owners(session), [ALICE], done)
        self.assertEqual(as_user(ALICE, lambda: self.hello(wire.RESUME, session, secret))[0], wire.OK)
        # What is hers is not kept from being stopped either.
        self.assertEqual(as_user(ALICE, lambda: self.ctl("checkpoint", session, image + "2", "--stop").returncode), 0)
        self.assertEqual(as_user(ALICE, lambda: self.hello(wire.RESUME, session, secret))[0], wire.PARKED)

    def test_seal_does_not_prove_what_was_not_proven(self):
        """An id that an image alone names is not sealed into the next image."""
        self.start()

        def wash(session, theirs):
            washed = os.path.join(theirs, "washed")
            self.assertEqual(as_user(MALLORY, lambda: [self.ctl("checkpoint", session, washed).returncode, self.ctl("kill", session).returncode,
                                                       self.ctl("restore", washed).returncode]), [0, 0, 0])

        self.squatted(wash)

    def test_mark_of_what_was_not_proven(self):
        """Nor does a mark under such an id keep its owner away."""
        self.start()
        self.squatted(lambda session, theirs: self.assertEqual(
            as_user(MALLORY, lambda: self.ctl("checkpoint", session, os.path.join(theirs, "stopped"), "--stop").returncode), 0))

    def test_restart_proves_nothing(self):
        self.start()

        def restart(_session, _theirs):
            self.note_workers()
            self.servers[-1].kill()
            self.servers[-1].wait()
            self.start()
            wait_until(lambda: self.owners() == [MALLORY])

        self.squatted(restart)

    def test_held_session(self):
        """A session that is being stopped or moved is not to be replaced by another user's."""
        self.start()
        theirs = self.home(MALLORY, "theirs")
        secret = os.urandom(16)
        session = self.program(ALICE, secret)
        forged = self.forge(theirs, session, secret)
        ready, go = os.pipe()

        def hold():
            directory = os.path.join(self.dir, "held")
            os.mkdir(directory)
            broker = wire.Broker(directory)
            with wire.Peer(self.socket) as peer:
                peer.hello(wire.HELLO_CONTROL)
                answer = peer.call(SAVE, wire.text(session) + wire.text("") + wire.u32(60000) + wire.u32(0) * 2 + bytes(16) + wire.u32(0) +
                                   wire.u32(1) + wire.u32(0), fd=broker.fd)
                os.write(go, bytes([answer.u32()]))
                signal.pause()

        os.chmod(self.dir, 0o777)
        self.background(ALICE, hold)
        # One that fails ends, and then nobody has the other end.
        os.close(go)
        with os.fdopen(ready, "rb") as f:
            self.assertEqual(f.read(1), bytes([0]))
        wait_until(lambda: [s["state"] for s in self.ps()] == ["frozen"])
        done = as_user(MALLORY, lambda: self.ctl("restore", forged).stderr)
        self.assertIn("belongs to another user", done)

    def test_owner_and_seal(self):
        """A restored session is who restored it's; root restores for whom the seal names, and a seal cannot be changed."""
        self.start()
        home = self.home(ALICE, "home")
        image, changed = os.path.join(home, "image"), os.path.join(home, "changed")
        secret = os.urandom(16)
        session = self.program(ALICE, secret)
        self.assertEqual(as_user(ALICE, lambda: self.ctl("checkpoint", session, image, "--stop").returncode), 0)
        self.assertEqual(self.ctl("restore", image).returncode, 0, self.log())
        self.assertEqual(self.owners(), [ALICE])
        # So it stays when the server is started again.
        self.note_workers()
        self.servers[-1].kill()
        self.servers[-1].wait()
        self.start()
        wait_until(lambda: self.owners() == [ALICE])
        self.assertEqual(as_user(ALICE, lambda: self.hello(wire.RESUME, session, secret))[0], wire.OK)
        self.assertEqual(self.ctl("kill", session).returncode, 0)
        os.mkdir(changed)
        with open(image + "/manifest") as f:
            words = f.read().split()
        for at, value in ((1, "7"), (2, "0"), (3, "11" * 32), (5, "22" * 32)):
            with open(changed + "/manifest", "w") as f:
                f.write(" ".join(words[:at] + [value] + words[at + 1:]))
            done = self.ctl("restore", changed)
            self.assertEqual(done.returncode, 1)
            self.assertIn("its seal is wrong: the image was changed", done.stderr)
        # Without the seal, or with another server's, root's restore is for whoever shows the secret first.
        with open(changed + "/manifest", "w") as f:
            f.write(" ".join(words[:2] + ["0", words[3], "33" * 16, words[5]]))
        self.assertEqual(self.ctl("restore", changed).returncode, 0, self.log())
        self.assertEqual(self.owners(), [0])
        self.assertEqual(as_user(ALICE, lambda: self.hello(wire.RESUME, session, secret))[0], wire.OK)
        wait_until(lambda: self.owners() == [ALICE])
        self.assertEqual(as_user(MALLORY, lambda: self.hello(wire.RESUME, session, secret))[0], wire.DENIED)

    def test_names_that_everybody_sees(self):
        self.start()
        session = self.program(ALICE)
        with open("/proc/net/unix") as f:
            names = f.read()
        self.assertIn(self.socket + ".d/", names)
        self.assertNotIn(session, names)
        self.assertEqual(sorted(os.listdir(self.socket + ".d")), [session + ".owner", session + ".sock"])
        self.assertRaises(PermissionError, as_user_raises, MALLORY, lambda: os.listdir(self.socket + ".d"))


class Resuming(Owners):
    def test_another_uid(self):
        """Id and secret are not enough for another user of the host; for root they are, and over TCP nobody has a uid."""
        self.start()
        secret = os.urandom(16)
        session = self.program(ALICE, secret)

        def resume(address):
            with wire.Peer(address) as peer:
                return list(peer.hello(wire.RESUME, session=session, secret=secret))

        self.assertEqual(as_user(MALLORY, lambda: resume(self.socket)), [wire.DENIED, "session %s belongs to another user" % session])
        self.assertEqual(as_user(ALICE, lambda: resume(self.socket))[0], wire.OK)
        self.assertEqual(resume(self.socket)[0], wire.OK)
        self.assertEqual(as_user(MALLORY, lambda: resume(self.tcp))[0], wire.OK)

    def test_after_restart(self):
        """A session of an earlier server is its owner's before its worker has said a word to this one, and when its client comes back then."""
        self.start()
        secret = os.urandom(16)
        session = self.program(ALICE, secret)
        worker = self.worker_of(session)
        self.workers.add(worker)
        self.servers[-1].kill()
        self.servers[-1].wait()
        os.kill(worker, signal.SIGSTOP)
        self.start("--max-sessions-per-user", "1")
        self.assertEqual(self.owners(), [ALICE])
        denied = [wire.DENIED, "session %s belongs to another user" % session]
        self.assertEqual(as_user(MALLORY, lambda: self.hello(wire.RESUME, session, secret)), denied)
        self.assertEqual(as_user(ALICE, lambda: self.hello(wire.NEW, "", None))[0], wire.FULL)
        told, tell = os.pipe()

        def resume():
            with wire.Peer(self.socket) as peer:
                wire.write_record(peer.sock, peer.hello_bytes(wire.RESUME, session=session, secret=secret))
                os.write(tell, b"!")
                os.write(tell, bytes([wire.parse_reply(wire.read_record(peer.sock), peer.xid)[1].u32()]))

        self.background(ALICE, resume)
        # One that fails ends, and then nobody has the other end.
        os.close(tell)
        with os.fdopen(told, "rb", buffering=0) as f:
            self.assertEqual(f.read(1), b"!")
            # The server answers this after it has read that.
            self.assertEqual(self.owners(), [ALICE])
            os.kill(worker, signal.SIGCONT)
            self.assertEqual(f.read(1), bytes([wire.OK]))
        self.assertEqual(self.owners(), [ALICE])
        self.assertEqual(as_user(MALLORY, lambda: self.hello(wire.RESUME, session, secret)), denied)
        with open("%s.d/%s.owner" % (self.socket, session)) as f:
            self.assertEqual(f.readline(), "%d\n" % ALICE)


if __name__ == "__main__":
    unittest.main()
