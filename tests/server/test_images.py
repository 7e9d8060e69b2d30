#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Images, held sessions, pauses, migrations and events: cricket-server and cricketctl with a worker that has no CUDA."""
import contextlib
import errno
import json
import os
import resource
import signal
import stat
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import wire  # noqa: E402
from fixture import CTL, GUARD, ServerTest, wait_until  # noqa: E402
from wire import text, u32, u64  # noqa: E402

MAKE, LIST, REMOVE, DATA, READ, WRITE, SAVE, RELEASE, KEEP = 7, 8, 9, 10, 11, 12, 13, 14, 21


def save_args(session, stage="", hold=0):
    # The deadline is in milliseconds: soon after it a worker that stands still is given up.
    return text(session) + text(stage) + u32(60000) + u32(0) + u32(0) + bytes(16) + u32(0) + u32(hold) + u32(0)


class Images(ServerTest):
    def setUp(self):
        super().setUp()
        self.home = os.path.join(self.dir, "home")
        os.mkdir(self.home)
        # Without one TCP gives no rights.
        self.token = os.path.join(self.dir, "token")
        with open(self.token, "w", opener=lambda path, flags: os.open(path, flags, 0o600)) as f:
            f.write("a token of more than sixteen bytes")
        # Who comes over TCP is an administrator, whose sessions or not.
        self.tokens = os.path.join(self.dir, "tokens")
        with open(self.tokens, "w", opener=lambda path, flags: os.open(path, flags, 0o600)) as f:
            f.write(f"[chief]\nhash = {wire.stored_key_of(b'a token of more than sixteen bytes').hex()}\nroles = administrator\n")

    def spawn(self, *options, **keywords):
        return super().spawn("--tokens", self.tokens, *options, **keywords)

    def environment(self, **extra):
        environment = super().environment(HOME=os.path.join(self.dir, "home"), CRICKET_TOKEN_FILE=self.token)
        environment.update(extra)
        return environment

    @contextlib.contextmanager
    def far(self, socket=None):
        """cricketctl does not find the server's UNIX socket: as from another host."""
        socket = socket or self.socket
        os.rename(socket, socket + ".hidden")
        try:
            yield "%s:%d" % self.tcp
        finally:
            os.rename(socket + ".hidden", socket)

    def client(self, address=None, kind=wire.NEW, **fields):
        peer = wire.Peer(address or self.socket)
        self.addCleanup(peer.close)
        status, session = peer.hello(kind, **fields)
        self.assertEqual(status, wire.OK, session)
        return peer, session

    def control(self):
        peer = wire.Peer(self.socket)
        self.addCleanup(peer.close)
        self.assertEqual(peer.hello(wire.HELLO_CONTROL)[0], wire.OK)
        return peer

    def ok(self, *words, **keywords):
        done = self.ctl(*words, **keywords)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def images(self, socket=None):
        return sorted(os.listdir((socket or self.socket) + ".images"))

    def state_of(self, session):
        return {s["session"]: s["state"] for s in self.ps()}.get(session)

    def wait_state(self, session, state):
        """A session whose worker does not answer within a second is listed with what was known before."""
        wait_until(lambda: self.state_of(session) == state)

    # ---- over TCP

    def test_from_another_host(self):
        self.start()
        image = os.path.join(self.dir, "image")
        _, session = self.client()
        with self.far() as address:
            done = self.ok("checkpoint", session, image, "--json", server=address)
            self.assertEqual(json.loads(done.stdout)["bytes"], os.path.getsize(image + "/manifest"))
        self.assertEqual(sorted(os.listdir(image)), ["data-0", "data-1", "manifest"])
        self.assertEqual(os.path.getsize(image + "/data-0"), 3 << 20)
        self.assertEqual(os.path.getsize(image + "/data-1"), 0)
        self.assertEqual({stat.S_IMODE(os.stat(os.path.join(image, f)).st_mode) for f in os.listdir(image)}, {0o600})
        self.assertEqual(self.images(), [])
        with self.far() as address:
            self.ok("checkpoint", session, image + "2", "--stop", server=address)
            self.ok("restore", image + "2", server=address)
        self.wait_state(session, "restored")
        wait_until(lambda: self.images() == [])

    def test_server_side(self):
        self.start()
        _, session = self.client()
        for words in (["checkpoint", session], ["checkpoint", session, "dir", "--server-side", "name"], ["restore"]):
            self.assertEqual(self.ctl(*words).returncode, 2, words)
        for name in ("UPPER", "..", "a/b", "tmp-1", "x" * 65, "a.owner"):
            self.assertEqual(self.ctl("checkpoint", session, "--server-side", name).returncode, 2, name)
        wait_until(lambda: self.images() == [])
        self.ok("checkpoint", session, "--server-side", "kept-1")
        self.assertEqual(self.ctl("checkpoint", session, "--server-side", "kept-1").returncode, 1, "it exists")
        wait_until(lambda: self.images() == ["kept-1", "kept-1.owner"])
        self.ok("checkpoint", session, "--server-side", "kept-2", "--stop")
        self.ok("restore", "--server-side", "kept-2")
        self.wait_state(session, "restored")
        self.assertEqual(self.ctl("restore", "--server-side", "kept-3").returncode, 1)

    def test_names_in_the_stream(self):
        self.start()
        control = self.control()
        r = control.call(MAKE)
        self.assertEqual((r.u32(), r.text()), (0, ""))
        stage = r.text()
        data = self.control()
        self.assertEqual(data.call(DATA, text(stage)).u32(), 0)
        for name in ("../x", "/etc/passwd", "a.b", "", ".", "x" * 64 + "y"):
            if len(name) <= 64:
                self.assertEqual(data.call(WRITE, text(name) + u64(0) + text(b"x")).i32(), -22, name)
                self.assertEqual(data.call(READ, text(name) + u64(0) + u32(1)).i32(), -22, name)
        self.assertEqual(data.call(WRITE, text("good") + u64(1 << 62) + text(b"x")).i32(), -22)
        self.assertEqual(data.call(WRITE, text("good") + u64(2) + text(b"abc")).i32(), 0)
        r = data.call(READ, text("good") + u64(0) + u32(100))
        self.assertEqual((r.i32(), r.opaque()), (0, b"\0\0abc"))
        directory = os.path.join(self.socket + ".images", stage)
        os.symlink("/etc/passwd", os.path.join(directory, "link"))
        os.mkfifo(os.path.join(directory, "pipe"))
        self.assertLess(data.call(READ, text("link") + u64(0) + u32(100)).i32(), 0)
        self.assertLess(data.call(READ, text("pipe") + u64(0) + u32(100)).i32(), 0)
        self.assertLess(data.call(WRITE, text("pipe") + u64(0) + text(b"x")).i32(), 0)
        # With the connection that made it goes the stage, and with that those that serve it.
        control.close()
        wait_until(lambda: self.images() == [])
        with self.assertRaises((wire.Closed, OSError)):
            data.call(READ, text("good") + u64(0) + u32(1))
            data.call(READ, text("good") + u64(0) + u32(1))

    def test_server_clears_what_a_dead_one_left(self):
        server = self.start()
        control = self.control()
        control.call(MAKE)
        server.kill()
        server.wait()
        self.assertEqual(len(self.images()), 1)
        self.start()
        self.assertEqual(self.images(), [])

    # ---- held sessions

    def test_stop_parks(self):
        server = self.start()
        peer, session = self.client()
        self.ok("checkpoint", session, os.path.join(self.dir, "image"), "--stop")
        _, prog, proc, r = wire.parse_call(wire.read_record(peer.sock))
        self.assertEqual((prog, proc), (wire.CALLBACK, 4))
        for _ in range(2):
            with wire.Peer(self.socket) as again:
                self.assertEqual(again.hello(wire.RESUME, session=session)[0], wire.PARKED)
            with wire.Peer(self.socket) as other:
                self.assertEqual(other.hello(wire.RESUME, session="0" * 12)[0], wire.NO_SESSION)
            server.kill()
            server.wait()
            server = self.start()
        done = self.ok("restore", os.path.join(self.dir, "image"))
        self.assertIn("cricketctl redirect %s --to " % session, done.stderr)
        self.client(kind=wire.RESUME, session=session)
        self.assertEqual([n for n in os.listdir(self.socket + ".d") if "parked" in n], [])

    def test_old_marks_go(self):
        server = self.start()
        path = os.path.join(self.socket + ".d", "0123456789ab.parked")
        with open(path, "w") as f:
            f.write("x\n")
        os.utime(path, (time.time() - 90000,) * 2)
        server.kill()
        server.wait()
        self.start()
        self.assertFalse(os.path.exists(path))

    def test_held_session_goes_on_when_nobody_holds_it(self):
        server = self.start()
        _, session = self.client()
        control = self.control()
        stage = control.call(MAKE)
        self.assertEqual((stage.u32(), stage.text()), (0, ""))
        stage = stage.text()
        self.assertEqual(control.call(SAVE, save_args(session, stage, hold=1)).u32(), 0)
        self.wait_state(session, "frozen")
        self.assertEqual(self.ctl("checkpoint", session, os.path.join(self.dir, "i")).returncode, 1, "it is held")
        self.assertEqual(self.control().call(RELEASE, text(session) + u32(1) + u32(0) + text("")).u32(), 1, "by another")
        control.close()
        self.wait_state(session, "running")
        # And when the server that held it dies.
        control = self.control()
        stage = control.call(MAKE)
        stage.u32(), stage.text()
        self.assertEqual(control.call(SAVE, save_args(session, stage.text(), hold=1)).u32(), 0)
        server.kill()
        server.wait()
        self.start()
        self.wait_state(session, "running")

    def test_disk_full(self):
        self.start(env={"CRICKET_SOFT_FAKE": "badsave"})
        _, session = self.client()
        done = self.ctl("checkpoint", session, os.path.join(self.dir, "image"), "--stop")
        self.assertEqual(done.returncode, 1)
        self.assertIn("no space on purpose", done.stderr)
        self.assertEqual([n for n in os.listdir(self.dir) if n.startswith("image")], [])
        self.wait_state(session, "running")

    def test_disk_full_where_cricketctl_is(self):
        """The image comes over TCP and has no room here: nothing stays, the session goes on, and with room it is stopped."""
        self.start()
        _, session = self.client()
        image = os.path.join(self.dir, "image")
        with self.far() as address:
            done = subprocess.run([CTL, "--server", address, "checkpoint", session, image, "--stop"], capture_output=True, text=True,
                                  env=self.environment(), timeout=GUARD, check=False, restore_signals=False,
                                  preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20)))
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn(os.strerror(errno.EFBIG), done.stderr)
        self.assertEqual([n for n in os.listdir(self.dir) if n.startswith("image")], [])
        self.wait_state(session, "running")
        # The stage goes with the connection.
        wait_until(lambda: self.images() == [])
        with self.far() as address:
            self.ok("checkpoint", session, image, "--stop", server=address)
        self.assertTrue(os.path.exists(image))

    def test_killed_cricketctl_leaves_nothing_for_long(self):
        server = self.start()
        _, session = self.client()
        image = os.path.join(self.dir, "image")
        for point in (201, 202, 204, 203):
            with self.far() as address:
                done = subprocess.run([CTL, "--server", address, "checkpoint", session, image, "--stop"], capture_output=True,
                                      env=self.environment(CRICKET_FAULT=str(point)), timeout=GUARD, check=False)
            self.assertEqual(done.returncode, -signal.SIGKILL, point)
            wait_until(lambda: self.images() == [])
            self.wait_state(session, "running")
            self.assertEqual(os.path.exists(image), point == 203, point)
        self.assertEqual([n for n in os.listdir(self.dir) if ".partial." in n], [], "each removed what the one before left")
        self.assertIsNone(server.poll())
        self.ok("checkpoint", session, image + "2", "--stop")
        self.assertEqual(self.state_of(session), None)

    def test_interrupted_cricketctl(self):
        # Where the worker, which is another user, may make files; a caged one has a /tmp for itself.
        save = os.path.join(self.dir, "saves", "save")
        os.mkdir(os.path.dirname(save))
        os.chmod(os.path.dirname(save), 0o777)
        self.start("--cage", "off", env={"CRICKET_SOFT_FAKE": "waitsave", "CRICKET_SOFT_SAVE": save})
        socket, _ = self.second()
        _, session = self.client()
        for words in (["checkpoint", session, os.path.join(self.dir, "image"), "--stop"], ["migrate", session, "--to", "unix:" + socket]):
            for number in (signal.SIGINT, signal.SIGTERM):
                ctl = subprocess.Popen([CTL, "--server", "unix:" + self.socket] + words, env=self.environment(TMPDIR=self.dir))
                # The image cannot be done before it is told to go on.
                wait_until(lambda ctl=ctl: os.path.exists(save + ".begun") or ctl.poll() is not None)
                self.assertTrue(any(".partial." in n or "cricket-migrate-" in n for n in os.listdir(self.dir)))
                ctl.send_signal(number)
                self.assertEqual(ctl.wait(GUARD), 128 + number)
                open(save + ".go", "w").close()
                wait_until(lambda: not os.path.exists(save + ".go"))
                self.wait_state(session, "running")
                self.assertEqual([n for n in os.listdir(self.dir) if ".partial." in n or "cricket-migrate-" in n or n == "image"], [])
        self.assertEqual(self.sessions_at(socket), [])

    def test_killed_server(self):
        for point, words in ((101, ["checkpoint", "SESSION", "IMAGE"]), (102, ["checkpoint", "SESSION", "IMAGE", "--stop"]),
                             (104, ["checkpoint", "SESSION", "--server-side", "x"]), (107, ["pause", "SESSION"])):
            server = self.start(env={"CRICKET_FAULT": str(point)})
            peer, session = self.client()
            image = os.path.join(self.dir, "image%d" % point)
            done = self.ctl(*(w.replace("SESSION", session).replace("IMAGE", image) for w in words))
            self.assertEqual(done.returncode, 3, (point, done.stderr))
            self.assertEqual(server.wait(GUARD), -signal.SIGKILL)
            self.start()
            self.assertEqual(self.images(), [])
            if point == 107:
                self.wait_state(session, "paused")
                self.ok("resume", session)
            try:
                self.wait_state(session, "running")
            except AssertionError:
                self.fail("point %d: %s\n%s" % (point, self.ps(), self.log()))
            self.assertEqual(os.path.exists(image), point == 102, "an image that has its name is whole")
            self.ok("checkpoint", session, image + "again", "--stop")
            self.servers[-1].terminate()
            self.assertEqual(self.servers[-1].wait(GUARD), 0)

    def test_killed_on_the_way(self):
        """The server dies while an image travels, in both directions, and where a restore is done but not told."""
        image = os.path.join(self.dir, "image")
        self.start()
        _, session = self.client()
        self.ok("checkpoint", session, image, "--stop")
        self.servers[-1].terminate()
        self.servers[-1].wait()
        for point in (105, 103, 205):
            server = self.start(env={"CRICKET_FAULT": str(point)})
            with self.far() as address:
                done = subprocess.run([CTL, "--server", address, "restore", image], env=self.environment(CRICKET_FAULT=str(point)),
                                      capture_output=True, timeout=GUARD, check=False)
            if point == 205:
                self.assertEqual(done.returncode, -signal.SIGKILL)
                wait_until(lambda: self.images() == [])
                server.terminate()
            else:
                self.assertNotEqual(done.returncode, 0)
            server.wait(GUARD)
            self.start()
            self.assertEqual(self.images(), [])
            for found in self.ps():
                self.assertEqual(point, 103)
                self.wait_state(found["session"], "restored")
                self.ok("kill", found["session"])
            with self.far() as address:
                self.ok("restore", image, server=address)
            self.ok("kill", session)
            self.servers[-1].terminate()
            self.servers[-1].wait(GUARD)
        server = self.start(env={"CRICKET_FAULT": "106"})
        _, session = self.client()
        with self.far() as address:
            self.assertNotEqual(self.ctl("checkpoint", session, image + "2", "--stop", server=address).returncode, 0)
        server.wait(GUARD)
        self.start()
        self.assertEqual((self.images(), os.path.exists(image + "2")), ([], False))
        self.wait_state(session, "running")
        self.ok("checkpoint", session, image + "2", "--stop")

    # ---- pauses

    def test_pause(self):
        server = self.start()
        peer, session = self.client()
        done = json.loads(self.ok("pause", session, "--json").stdout)
        self.assertEqual((done["session"], done["bytes"], done["state"]), (session, 4096, "paused"))
        self.wait_state(session, "paused")
        server.kill()
        server.wait()
        server = self.start()
        self.wait_state(session, "paused")
        self.ok("resume", session[:5])
        self.wait_state(session, "running")
        self.assertEqual(self.ctl("resume", session).returncode, 1)
        self.ok("pause", session, "--for", "1s")
        self.wait_state(session, "running")
        # The worker goes on a moment before the server hears of it, which then takes the mark away: this one, not that of the next pause.
        wait_until(lambda: [n for n in os.listdir(self.socket + ".d") if "paused" in n] == [])
        # The time survives the server.
        self.ok("pause", session, "--for", "2")
        server.kill()
        server.wait()
        time.sleep(1)
        self.start()
        self.wait_state(session, "running")
        wait_until(lambda: [n for n in os.listdir(self.socket + ".d") if "paused" in n] == [])
        for words in (["--for", "soon"], ["--for", "0"], ["--until", "25:00"], ["--until", "x"], ["--for", "1m", "--until", "18:00"]):
            self.assertEqual(self.ctl("pause", session, *words).returncode, 2, words)
        # Half a day away: 00:00 comes while the test runs, at midnight.
        self.ok("pause", session, "--until", time.strftime("%H:%M", time.localtime(time.time() + 12 * 3600)))
        self.wait_state(session, "paused")

    @staticmethod
    def go_on(worker):
        with contextlib.suppress(ProcessLookupError):
            os.kill(worker, signal.SIGCONT)

    def pause_marks(self):
        """For each: until when, in seconds since the epoch."""
        directory = self.socket + ".d"
        marks = []
        for name in os.listdir(directory):
            if name.endswith(".paused"):
                with open(os.path.join(directory, name), encoding="ascii") as f:
                    marks.append(f.read().split()[-1])
        return marks

    def test_pause_again(self):
        """A pause that is refused takes nothing from the one that lasts."""
        server = self.start()
        _, session = self.client()
        self.ok("pause", session, "--for", "3")
        marks = self.pause_marks()
        self.assertIn("already paused", self.ctl("pause", session).stderr)
        self.assertEqual((len(marks), self.pause_marks()), (1, marks))
        server.kill()
        server.wait()
        self.start()
        self.wait_state(session, "running")
        wait_until(lambda: self.pause_marks() == [])

    def test_pause_behind_resume(self):
        """The session goes on, and is paused again at once: the server knows of the second pause, also after a restart."""
        server = self.start()
        _, session = self.client()
        self.ok("pause", session)
        worker = self.worker_of(session)
        os.kill(worker, signal.SIGSTOP)
        self.addCleanup(self.go_on, worker)
        peers = [self.control(), self.control()]
        # In the order in which they are sent: the server reads the first before it answers on any other connection.
        for peer, proc, args in zip(peers, (18, 17), (b"", u32(60000) + u64(1 << 40))):
            peer.xid += 1
            wire.write_record(peer.sock, wire.call_header(peer.xid, wire.CONTROL, proc) + text(session) + args)
            self.control().close()
        os.kill(worker, signal.SIGCONT)
        for peer in peers:
            r = wire.parse_reply(wire.read_record(peer.sock), peer.xid)[1]
            self.assertEqual((r.u32(), r.text()), (0, ""))
        self.assertEqual(self.pause_marks(), [str(1 << 40)])
        server.kill()
        server.wait()
        self.start()
        self.wait_state(session, "paused")
        self.assertEqual(self.pause_marks(), [str(1 << 40)])
        self.ok("resume", session)
        self.assertEqual(self.pause_marks(), [])

    # ---- swaps

    def test_swap(self):
        """One call, one swap; who may not pause a session may not swap it."""
        server = self.start("--swap-memory", "32M")
        _peer, session = self.client()
        self.assertEqual(self.ctl("swap", "away", session).returncode, 2)
        self.assertEqual(self.ctl("swap", "in", session).returncode, 1)
        done = json.loads(self.ok("swap", "out", session, "--json").stdout)
        self.assertEqual((done["session"], done["swapped"], done["bytes"], done["moved_bytes"]), (session, True, 4096, 4096))
        self.assertTrue(json.loads(self.ok("swap", "show", session, "--json").stdout)["swapped"])
        # A server without swap memory brings it in, and takes none out.
        server.kill()
        server.wait()
        self.start()
        refused = self.ctl("swap", "out", session)
        self.assertIn("start it with --swap-memory or --swap", refused.stderr)
        self.assertFalse(json.loads(self.ok("swap", "in", session, "--json").stdout)["swapped"])

    def test_swap_lie(self):
        """A worker that writes more than it was granted loses its session."""
        self.start("--swap-memory", "16M", env={"CRICKET_SOFT_FAKE": "swap-lie"})
        _peer, session = self.client()
        self.ctl("swap", "out", session)
        wait_until(lambda: not self.ps())

    def test_resume_without_memory(self):
        memory = os.path.join(self.dir, "memory")
        # The file lies below /tmp, which a caged worker has for itself.
        self.start("--cage", "off", env={"CRICKET_SOFT_FAKE": "nomemory", "CRICKET_SOFT_MEMORY": memory})
        _, session = self.client()
        self.ok("pause", session)
        done = self.ctl("resume", session)
        self.assertEqual(done.returncode, 1)
        self.assertIn("stays paused: the GPU lacks 1234 bytes of free memory", done.stderr)
        self.wait_state(session, "paused")
        open(memory, "w").close()
        os.chmod(self.dir, 0o755)
        self.ok("resume", session)

    # ---- moves

    def second(self):
        """Another server: (socket, tcp)"""
        tcp, self.saved_file = self.tcp, self.address_file
        self.start(socket=self.socket + "2")
        other, self.tcp = self.tcp, tcp
        return self.socket + "2", other

    def sessions_at(self, socket):
        return [s["session"] for s in json.loads(self.ok("ps", "--json", server="unix:" + socket).stdout)["sessions"]]

    def test_migrate(self):
        self.start()
        socket, tcp = self.second()
        for far in (False, True):
            peer, session = self.client()
            with contextlib.ExitStack() as stack:
                if far:
                    stack.enter_context(self.far())
                    stack.enter_context(self.far(socket))
                done = self.ok("migrate", session, "--to", "%s:%d" % tcp, "--json", server="%s:%d" % self.tcp)
            self.assertGreaterEqual(json.loads(done.stdout)["rounds"], 3)
            _, prog, proc, r = wire.parse_call(wire.read_record(peer.sock))
            self.assertEqual((proc, r.text()), (3, "%s:%d" % tcp))
            self.assertEqual(self.ps(), [])
            self.assertEqual(self.sessions_at(socket), [session])
            with wire.Peer(self.socket) as again:
                self.assertEqual(again.hello(wire.RESUME, session=session)[0], wire.MOVED)
            self.client(address=tcp, kind=wire.RESUME, session=session, proof=b"a token of more than sixteen bytes")
            self.ok("kill", session, server="unix:" + socket)
        self.assertEqual([n for n in os.listdir(self.dir) if n.startswith("cricket-migrate-")], [])
        wait_until(lambda: self.images() + self.images(socket) == [])

    def test_migrate_to_another_gpu(self):
        self.start()
        peer, session = self.client()
        pid = self.worker_of(session)
        self.ok("migrate", session, "--gpu", "1")
        self.assertEqual([s["session"] for s in self.ps()], [session])
        self.wait_state(session, "restored")
        self.assertNotEqual(self.worker_of(session), pid)
        self.client(kind=wire.RESUME, session=session)
        self.assertEqual(self.ctl("migrate", session).returncode, 2)

    def test_failed_migration(self):
        self.start()
        socket, tcp = self.second()
        peer, session = self.client()
        self.assertEqual(self.ctl("migrate", session, "--to", "127.0.0.1:1").returncode, 3)
        self.assertEqual(self.ctl("migrate", session, "--to", "%s:%d" % tcp, "--gpu", "9").returncode, 1)
        for point in (207, 211, 208, 209, 210):
            done = subprocess.run([CTL, "--server", "unix:" + self.socket, "migrate", session, "--to", "unix:" + socket], capture_output=True,
                                  env=self.environment(CRICKET_FAULT=str(point), TMPDIR=self.dir), timeout=GUARD, check=False)
            self.assertEqual(done.returncode, -signal.SIGKILL, point)
            if point != 210:
                self.wait_state(session, "running")
            if point in (207, 208, 211):
                wait_until(lambda: self.sessions_at(socket) == [], what="what the target took ahead goes with the migration")
            self.assertEqual(len([n for n in os.listdir(self.dir) if n.startswith("cricket-migrate-")]), 1, "of the one before nothing is left")
            for found in self.sessions_at(socket) if point == 209 else []:
                self.ok("kill", found, server="unix:" + socket)
        self.assertIsNone(self.state_of(session))
        self.assertEqual(self.sessions_at(socket), [session])

    # ---- events and the end

    def test_events(self):
        self.start()
        follower = subprocess.Popen([CTL, "--server", "unix:" + self.socket, "events", "--follow", "--json"], env=self.environment(),
                                    stdout=subprocess.PIPE, text=True)
        try:
            _, session = self.client()
            self.ok("checkpoint", session, os.path.join(self.dir, "image"))
            self.ok("pause", session)
            self.ok("resume", session)
            os.kill(self.worker_of(session), signal.SIGKILL)
            seen = [json.loads(follower.stdout.readline()) for _ in range(6)]
        finally:
            follower.kill()
            follower.communicate()
        self.assertEqual([e["event"] for e in seen], ["started", "frozen", "saved", "paused", "resumed", "lost"])
        self.assertEqual({e["session"] for e in seen}, {session})
        # It gives the server 0.3 seconds for each answer.
        wait_until(lambda: len(self.ok("events").stdout.splitlines()) >= 6)
        self.assertLessEqual(len(self.ok("events").stdout.splitlines()), 6)

    def test_hooks(self):
        hooks, out = os.path.join(self.dir, "hooks"), os.path.join(self.dir, "out")
        os.mkdir(hooks)
        os.chmod(hooks, 0o755)
        for name, body in (("10-write", 'echo "$CRICKET_EVENT $CRICKET_SESSION $CRICKET_PROGRAM" >> %s' % out), ("20-hang", "exec sleep 60")):
            with open(os.path.join(hooks, name), "w") as f:
                f.write("#!/bin/sh\n%s\n" % body)
            os.chmod(os.path.join(hooks, name), 0o755)
        with open(os.path.join(hooks, "30-no-program"), "w") as f:
            f.write("x")
        self.start("--hooks", hooks)
        _, session = self.client()
        wait_until(lambda: os.path.exists(out) and os.path.getsize(out) > 0)
        with open(out) as f:
            self.assertEqual(f.read(), "started %s test\n" % session)
        self.ok("kill", session)
        self.assertNotIn("20-hang takes longer", self.log(), "a hook that hangs holds nobody up")
        os.chmod(hooks, 0o777)
        self.assertNotEqual(self.spawn("--hooks", hooks, socket=self.socket + "2").wait(GUARD), 0)

    def test_on_term(self):
        images = os.path.join(self.dir, "images", "job")
        # Whose image is not written within the grace period has none.
        server = self.start("--on-term", "checkpoint:" + images, "--grace", "30")
        peers = [self.client() for _ in range(3)]
        server.terminate()
        self.assertEqual(server.wait(GUARD), 0)
        self.assertEqual(sorted(os.listdir(images)), sorted(session for _, session in peers))
        for peer, session in peers:
            _, _, proc, _ = wire.parse_call(wire.read_record(peer.sock))
            self.assertEqual(proc, 4)
            self.assertEqual(stat.S_IMODE(os.stat(os.path.join(images, session)).st_mode), 0o700)
        self.start()
        with wire.Peer(self.socket) as again:
            self.assertEqual(again.hello(wire.RESUME, session=peers[0][1])[0], wire.PARKED)
        self.ok("restore", os.path.join(images, peers[0][1]))

    # ---- redirect

    def test_redirect(self):
        state = os.path.join(self.home, ".local", "state", "cricket")
        for words, code in ((["xyz", "--to", "h:1"], 4), (["0123", "--to", "h:1"], 4), (["0" * 12], 2), (["0" * 12, "--to", "h:99999"], 2),
                            (["0" * 12, "--to", "file:/x"], 2)):
            self.assertEqual(self.ctl("redirect", *words).returncode, code, words)
        self.assertFalse(os.path.exists(os.path.join(self.home, ".local")))
        for address in ("other:7350", "unix:/x"):
            self.ok("redirect", "0" * 12, "--to", address)
            with open(os.path.join(state, "0" * 12)) as f:
                self.assertEqual(f.read(), address + "\n")
        done = subprocess.run([CTL, "redirect", "0" * 12, "--to", "third"], env=self.environment(CRICKET_FAULT="206"), check=False)
        self.assertEqual(done.returncode, -signal.SIGKILL)
        with open(os.path.join(state, "0" * 12)) as f:
            self.assertEqual(f.read(), "unix:/x\n", "half a file is never seen")


if __name__ == "__main__":
    unittest.main(verbosity=2)
