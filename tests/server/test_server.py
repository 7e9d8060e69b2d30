#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""cricket-server and cricketctl from outside."""
import contextlib
import json
import os
import re
import select
import signal
import socket
import stat
import struct
import subprocess
import sys
import threading
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import wire  # noqa: E402
from fixture import CTL, GUARD, HERE, SERVER, ServerTest, alive, wait_until  # noqa: E402

ROOT = os.getuid() == 0
TOKEN = b"a token of more than sixteen bytes"


def as_user(uid, function):
    """Runs function in a child with that user id; its return value must be JSON."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
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


def connected(address, count):
    """(peers, their sessions): each connects when it is its turn, because a connection has five seconds for its hello, and a worker takes its time."""
    peers, sessions = [], []
    for _ in range(count):
        peers.append(wire.Peer(address))
        sessions.append(peers[-1].hello(wire.NEW)[1])
    return peers, sessions


class Hello(ServerTest):
    def test_bounds(self):
        self.start("--log-level", "debug")
        for record in (wire.u32(0x80000000 | 4097), wire.u32(40), wire.u32(0x80000000 | 40) + bytes(40), wire.u32(0x80000000),
                       wire.u32(0xFFFFFFFF), b"GET / HTTP/1.0\r\n\r\n"):
            with self.subTest(record=record[:8]), wire.Peer(self.tcp) as peer:
                peer.sock.sendall(record)
                with self.assertRaises(wire.Closed):
                    wire.read_record(peer.sock)
        # A right header with arguments that do not decode, or with something behind them.
        for args in (b"", wire.hello_args(wire.NEW)[:-4], wire.hello_args(wire.NEW) + bytes(4), wire.hello_args(9),
                     wire.hello_args(wire.NEW, session="x" * 13), wire.hello_args(wire.NEW, program="x" * 257)):
            with self.subTest(args=len(args)), wire.Peer(self.tcp) as peer:
                wire.write_record(peer.sock, peer.hello_bytes(0, args=args))
                with self.assertRaises(wire.Closed):
                    wire.read_record(peer.sock)
        whole = wire.hello_args(wire.HELLO_CONTROL)
        for size in range(0, len(whole), 4):
            with wire.Peer(self.socket) as peer:
                wire.write_record(peer.sock, peer.hello_bytes(0, args=whole[:size]))
                with self.assertRaises(wire.Closed):
                    wire.read_record(peer.sock)
        self.assertEqual(self.ps(), [])
        self.assertNotIn("no hello within", self.log(), "all of these were closed for what they said")

    def test_silence(self):
        """Five seconds for a hello, counted from the first moment: what trickles in does not prolong them."""
        self.start("--log-level", "debug")
        with wire.Peer(self.tcp) as slow, wire.Peer(self.tcp) as silent:
            data = iter(b"\x80\x00\x0f\xff" + bytes(4000))
            while not select.select([silent.sock], [], [], 0.1)[0]:
                try:
                    slow.sock.sendall(bytes([next(data)]))
                except OSError:
                    pass
            with self.assertRaises(wire.Closed):
                wire.read_record(silent.sock)
            slow.sock.setblocking(False)
            with self.assertRaises((wire.Closed, ConnectionError), msg="the first to come is the first to go"):
                wire.read_record(slow.sock)
        self.assertEqual(self.log().count("no hello within 5 s"), 2)

    def test_versions_and_sessions(self):
        self.start()
        with wire.Peer(self.socket) as peer:
            status, message = peer.hello(wire.NEW, protocol=2)
            self.assertEqual(status, wire.BAD_VERSION)
            self.assertIn("version", message)
        with wire.Peer(self.socket) as peer:
            self.assertEqual(peer.hello(wire.RESUME, session="0123456789ab")[0], wire.NO_SESSION)
        with wire.Peer(self.tcp) as peer:
            status, session = peer.hello(wire.NEW)
            self.assertEqual(status, wire.OK)
            self.assertRegex(session, "^[0-9a-f]{12}$")
            peer.sock.sendall(b"ping")
            self.assertEqual(peer.sock.recv(4), b"ping", "the worker has the socket")
        with wire.Peer(self.socket) as peer:
            self.assertEqual(peer.hello(wire.RESUME, session=session), (wire.OK, session))
            peer.sock.sendall(b"ping")
            self.assertEqual(peer.sock.recv(4), b"ping")

    def test_many_waiting_peers(self):
        """Whose connections wait most gives way, also where root floods its own server."""
        server = self.start("--max-waiting", "32")
        for address in (self.tcp, self.socket):
            # The server takes all of them in one go: one that has waited for a second gives way to later ones of its source.
            os.kill(server.pid, signal.SIGSTOP)
            try:
                slow = wire.Peer(self.socket, greeting=False)
                crowd = [wire.Peer(address, greeting=False) for _ in range(100)]
            finally:
                os.kill(server.pid, signal.SIGCONT)
            with slow:
                slow.take_greeting()
                with wire.Peer(self.socket if address is self.tcp else self.tcp) as peer:
                    self.assertEqual(peer.hello(wire.HELLO_CONTROL)[0], wire.OK)
                self.assertEqual(slow.hello(wire.HELLO_CONTROL)[0], wire.OK)
                for peer in crowd:
                    peer.close()


class Tokens(ServerTest):
    def token_file(self, content=TOKEN, mode=0o600):
        path = os.path.join(self.dir, "token")
        with open(path, "wb") as f:
            f.write(content + b"\n")
        os.chmod(path, mode)
        return path

    def test_token(self):
        self.start("--token-file", self.token_file())
        with wire.Peer(self.tcp) as peer:
            self.assertEqual(peer.flavours, [wire.AUTH_TOKEN, wire.AUTH_NAMED, wire.AUTH_PROOF])
            status, message = peer.hello(wire.NEW)
            self.assertEqual(status, wire.DENIED)
            self.assertIn("CRICKET_TOKEN_FILE", message)
        with wire.Peer(self.tcp) as peer:
            self.assertEqual(peer.hello(wire.NEW, token=b"another token, also long")[0], wire.DENIED)
        # The token is looked at before anything else: bytes that would not decode are denied, not dropped.
        with wire.Peer(self.tcp) as peer:
            self.assertEqual(peer.hello(wire.NEW, token=b"another token, also long", args=b"garbage!")[0], wire.DENIED)
        with wire.Peer(self.tcp) as peer, wire.Peer(self.tcp) as other:
            peer.nonce = other.nonce
            self.assertEqual(peer.hello(wire.NEW, token=TOKEN)[0], wire.DENIED, "an overheard hello must be worth nothing")
            heard = other.hello_bytes(wire.NEW, proof=TOKEN)
        with wire.Peer(self.tcp) as peer:
            wire.write_record(peer.sock, heard)
            self.assertEqual(wire.parse_reply(wire.read_record(peer.sock), peer.xid)[1].u32(), wire.DENIED, "nor an overheard proof")
        with wire.Peer(self.tcp) as peer:
            self.assertEqual(peer.hello(wire.NEW, proof=b"another token, also long")[0], wire.DENIED)
        with wire.Peer(self.tcp) as peer:
            self.assertEqual(peer.hello(wire.HELLO_CONTROL, proof=TOKEN)[0], wire.OK)
        with wire.Peer(self.tcp) as peer:
            self.assertEqual(peer.hello(wire.NEW, token=TOKEN)[0], wire.OK)
            with wire.Peer(self.socket) as local:
                self.assertEqual(local.flavours, [wire.AUTH_TOKEN, wire.AUTH_NAMED, wire.AUTH_PROOF, 0])
                self.assertEqual(local.hello(wire.NEW)[0], wire.OK)
                address = "%s:%d" % self.tcp
                self.assertEqual(self.ctl("ps", server=address).returncode, 1)
                environment = self.environment(CRICKET_TOKEN_FILE=self.token_file())
                done = subprocess.run([CTL, "ps", "--json", "--server", address], env=environment, capture_output=True, text=True)
                # Of the token's own session, and not of the local user's.
                self.assertEqual([entry["owner"] for entry in json.loads(done.stdout)["sessions"]], ["token:token"])

    def test_bad_files(self):
        for content, mode, word in ((TOKEN, 0o604, "chmod"), (b"short", 0o600, "16"), (b"x" * 2000, 0o600, "1024")):
            server = self.spawn("--token-file", self.token_file(content, mode))
            self.assertEqual(server.wait(GUARD), 2)
            self.assertIn(word, self.log())
        self.assertEqual(self.spawn("--token-file", "/nonexistent").wait(GUARD), 2)

    def test_network_needs_token(self):
        server = self.spawn(listen="0.0.0.0:0")
        self.assertEqual(server.wait(GUARD), 2)
        self.assertIn("--token-file", self.log())
        server = self.spawn("--token-file", self.token_file(), listen="0.0.0.0:0")
        self.assertEqual(server.wait(GUARD), 2)
        self.assertIn("nothing is encrypted: give --tls-certificate", self.log())
        self.start("--token-file", self.token_file(), "--insecure-plaintext", listen="0.0.0.0:0")
        self.assertIn("not encrypted", self.log())
        with open(self.address_file) as f:
            self.assertEqual(f.read().split(":")[0], socket.gethostname())

    def test_insecure(self):
        self.start("--insecure", "--insecure-plaintext", listen="0.0.0.0:0")
        with open(self.address_file) as f:
            port = int(f.read().rsplit(":", 1)[1])
        with wire.Peer(("127.0.0.1", port)) as peer:
            self.assertEqual(peer.hello(wire.NEW)[0], wire.OK)


@unittest.skipUnless(ROOT, "needs root to become several users")
class Users(ServerTest):
    def session_of(self, uid, address):
        """A session of that user's, whose client stays as long as it does."""
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            # Whatever happens, the test goes on in one process.
            try:
                os.setuid(uid)
                peer = wire.Peer(address)
                os.write(write, peer.hello(wire.NEW)[1].encode())
                peer.sock.settimeout(None)
                peer.sock.recv(1)
            finally:
                os._exit(0)
        self.addCleanup(os.waitpid, pid, 0)
        self.addCleanup(os.kill, pid, signal.SIGKILL)
        os.close(write)
        session = os.read(read, 12).decode()
        os.close(read)
        return session

    def test_own_sessions_only(self):
        self.start()
        unix, tcp = "unix:" + self.socket, "%s:%d" % self.tcp

        def listing(address):
            return [s["session"] for s in json.loads(self.ctl("ps", "--json", server=address).stdout)["sessions"]]

        first, second, nobodys = self.session_of(1001, self.socket), self.session_of(1002, self.socket), self.session_of(1002, self.tcp)
        # cricketctl finds the UNIX socket by itself, where the server knows who asks.
        for address in (unix, tcp):
            self.assertEqual(as_user(1001, lambda: listing(address)), [first])
            self.assertEqual(as_user(1002, lambda: listing(address)), [second])
            self.assertEqual(as_user(1003, lambda: listing(address)), [])
            self.assertEqual(sorted(listing(address)), sorted([first, second, nobodys]))
            self.assertEqual(as_user(1002, lambda: self.ctl("kill", first, server=address).returncode), 4)
            self.assertEqual(as_user(1002, lambda: self.ctl("stats", first, server=address).returncode), 4)
        self.assertEqual(as_user(1001, lambda: self.ctl("kill", first[:5], server=tcp).returncode), 0)
        self.assertEqual(sorted(listing(unix)), sorted([second, nobodys]))

    def test_worker_is_nobody_much(self):
        self.start(env={"CRICKET_SOFT_DEVICES": "12.0:1G", "SECRET": "x", "CUDA_CACHE_PATH": "/c"})
        with wire.Peer(self.socket) as peer:
            session = peer.hello(wire.NEW)[1]
            # A worker that stands still is listed without it.
            wait_until(lambda: "env=" in self.ctl("ps").stdout)
            note = self.ctl("ps").stdout
            pid = self.worker_of(session)
            self.assertRegex(note, r"uid=(?!0 )\d+ nnp=1 core=[01] stack=8388608 sid=1 aslr_off=1 fds=0,1,2,3,4,5 ")
            environment = set(re.search(r"env=(\S*)", note).group(1).split(",")) - {"LC_CTYPE", "ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS", "TSAN_OPTIONS", "GCOV_PREFIX"}
            libraries = {"CRICKET_LIBRARY_ROOTS", "CRICKET_LIBRARY_OWNER", "CRICKET_LIBRARY_SOFT", "CRICKET_INSIDE"}
            self.assertEqual(environment - libraries, {"GLIBC_TUNABLES", "CUDA_MODULE_LOADING", "XDG_CACHE_HOME", "CRICKET_CAGE", "CRICKET_COMPILER",
                                                       "CRICKET_SOFT_DEVICES", "CRICKET_GPUS"})
            with open("/proc/%d/status" % pid) as f:
                self.assertNotIn("Uid:\t0", f.read())

    def test_images_of_users(self):
        """An image belongs to who asked for it, though the worker that writes it is another user."""
        self.start()
        home = os.path.join(self.dir, "home")
        os.mkdir(home)
        os.chown(home, 1001, 1001)
        image = os.path.join(home, "image")
        session = self.session_of(1001, self.socket)
        self.assertEqual(as_user(1001, lambda: self.ctl("checkpoint", session, image, "--stop").returncode), 0, self.log())
        for path in (image, image + "/manifest"):
            self.assertEqual(os.stat(path).st_uid, 1001)
        self.assertEqual(os.listdir(home), ["image"])
        self.assertEqual(as_user(1002, lambda: self.ctl("restore", image).returncode), 1, "another user's image")
        # A link to a foreign file in an image changes nothing.
        victim = os.path.join(self.dir, "victim")
        open(victim, "w").close()
        os.link(victim, image + "/planted")
        self.assertEqual(as_user(1001, lambda: self.ctl("restore", image).returncode), 0, self.log())
        self.assertEqual(os.stat(victim).st_uid, 0)
        self.assertEqual([s["session"] for s in self.ps()], [session])
        self.assertEqual(os.stat(image + "/manifest").st_uid, 1001)


LIST, KILL, STATS, STAGE_MAKE, STAGE_LIST, STAGE_KEEP = 2, 3, 4, 7, 8, 21


class Forwarder:
    """What ssh or socat is: a process of root's on this host that speaks for somebody elsewhere."""

    def __init__(self, target):
        self.target, self.listener = target, socket.socket()
        self.listener.bind(("127.0.0.1", 0))
        self.listener.listen(8)
        self.address = self.listener.getsockname()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                here = self.listener.accept()[0]
            except OSError:
                return
            there = socket.create_connection(self.target)
            for one, other in ((here, there), (there, here)):
                threading.Thread(target=self.carry, args=(one, other), daemon=True).start()

    @staticmethod
    def carry(one, other):
        try:
            while data := one.recv(65536):
                other.sendall(data)
            other.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def close(self):
        self.listener.close()


class Anonymous(ServerTest):
    """Over TCP without a token nobody is anybody, whoever runs the process at this host's end."""

    def controls(self, address, session, secret=None):
        """Whether a control connection sees the session, and may ask for its figures."""
        with wire.Peer(address) as peer:
            fields = {} if secret is None else {"session": session, "secret": secret}
            status, message = peer.hello(wire.HELLO_CONTROL, **fields)
            if status == wire.FAILED and "does not answer" in message:
                # A worker that stood still has said nothing about the secret.
                return None
            if status != wire.OK:
                return message
            seen = peer.call(LIST, wire.text("")).u32()
            answer = peer.call(STATS, wire.text(session)).u32()
            self.assertEqual(bool(seen), answer == 0)
            return bool(seen)

    def answer(self, *args):
        """What controls() tells once the worker has answered."""
        answers = []
        wait_until(lambda: answers.append(self.controls(*args)) or answers[-1] is not None)
        return answers[-1]

    def test_only_by_secret(self):
        self.start()
        forwarder = Forwarder(self.tcp)
        self.addCleanup(forwarder.close)
        mine, other = bytes(range(16)), bytes(range(1, 17))
        with contextlib.ExitStack() as stack:
            # Each connects when it is its turn: a connection has five seconds for its hello.
            owned = stack.enter_context(wire.Peer(self.socket)).hello(wire.NEW, secret=mine)[1]
            anonymous = stack.enter_context(wire.Peer(forwarder.address)).hello(wire.NEW, secret=mine)[1]
            strange = stack.enter_context(wire.Peer(self.tcp)).hello(wire.NEW, secret=other)[1]
            for address in (self.tcp, forwarder.address):
                for session in (owned, anonymous, strange):
                    self.assertIs(self.answer(address, session), False, "root's process at this end is no right")
                self.assertIs(self.answer(address, anonymous, mine), True)
                self.assertIn("secret does not match", self.answer(address, anonymous, other))
                self.assertIn("is not on", self.answer(address, "0" * 12, mine))
            with wire.Peer(forwarder.address) as control:
                self.assertEqual(control.hello(wire.HELLO_CONTROL, session=anonymous, secret=mine)[0], wire.OK)
                answer = control.call(KILL, wire.text(strange))
                self.assertEqual(answer.u32(), 2)
                self.assertIn("--token-file", answer.text())
                self.assertEqual(control.call(KILL, wire.text(anonymous)).u32(), 0)
            with wire.Peer(forwarder.address) as control:
                control.hello(wire.HELLO_CONTROL)
                self.assertEqual(control.call(KILL, wire.text(owned)).u32(), 2)
            # The server's own user sees all that is left, over the UNIX socket.
            self.assertEqual(sorted(s["session"] for s in self.ps()), sorted([owned, strange]))

    def test_default_is_the_socket(self):
        server = self.start(listen=None)
        self.assertIsNone(self.tcp)
        with open("/proc/%d/net/tcp" % server.pid) as f:
            inodes = {line.split()[9] for line in f.readlines()[1:] if line.split()[3] == "0A"}
        own = set()
        for fd in os.listdir("/proc/%d/fd" % server.pid):
            with contextlib.suppress(FileNotFoundError):
                own.add(os.readlink("/proc/%d/fd/%s" % (server.pid, fd)))
        self.assertEqual([i for i in inodes if "socket:[%s]" % i in own], [], "nothing listens on TCP that nobody asked for")
        with wire.Peer(self.socket) as peer:
            self.assertEqual(peer.hello(wire.NEW)[0], wire.OK)

    def test_nothing_is_kept_for_nobody(self):
        """What a peer without a name leaves behind would be nobody's, for ever."""
        self.start()
        with wire.Peer(self.tcp) as control:
            control.hello(wire.HELLO_CONTROL)
            answer = control.call(STAGE_MAKE)
            self.assertEqual((answer.u32(), answer.text()), (0, ""))
            stage = answer.text()
            answer = control.call(STAGE_KEEP, wire.text(stage) + wire.text("mine"))
            self.assertEqual(answer.u32(), 1)
            self.assertIn("would have no owner", answer.text())
            # Its name is its secret: another connection that shows it may use it.
            with wire.Peer(self.tcp) as second:
                second.hello(wire.HELLO_CONTROL)
                self.assertEqual(second.call(STAGE_LIST, wire.text(stage)).u32(), 0)
                self.assertEqual(second.call(STAGE_LIST, wire.text("tmp-" + "0" * 32)).u32(), 1)


class Life(ServerTest):
    def test_killed_server(self):
        server = self.start()
        peers, sessions = connected(self.socket, 3)
        sessions.sort()
        workers = {session: self.worker_of(session) for session in sessions}
        self.workers.update(workers.values())
        server.kill()
        server.wait()
        for peer in peers:
            peer.sock.sendall(b"ping")
            self.assertEqual(peer.sock.recv(4), b"ping", "no running session is disturbed")
        os.kill(workers[sessions[0]], signal.SIGKILL)
        wait_until(lambda: not alive(workers[sessions[0]]))
        self.assertTrue(os.path.exists("%s.d/%s.sock" % (self.socket, sessions[0])))
        self.start()
        self.assertEqual([s["session"] for s in self.ps()], sessions[1:])
        self.assertFalse(os.path.exists("%s.d/%s.sock" % (self.socket, sessions[0])))
        self.assertEqual(self.worker_of(sessions[1]), workers[sessions[1]])
        self.assertEqual(self.ctl("kill", sessions[1]).returncode, 0)
        self.assertFalse(alive(workers[sessions[1]]))
        self.assertEqual([s["session"] for s in self.ps()], sessions[2:])
        os.kill(workers[sessions[2]], signal.SIGKILL)
        wait_until(lambda: self.ps() == [], what="the death of an adopted worker is not seen")
        self.assertEqual(os.listdir(self.socket + ".d"), [])
        for peer in peers:
            peer.close()

    def test_group_kill_spares_workers(self):
        server = self.start(start_new_session=True)
        with wire.Peer(self.socket) as peer:
            pid = self.worker_of(peer.hello(wire.NEW)[1])
            self.workers.add(pid)
            os.killpg(server.pid, signal.SIGKILL)
            server.wait()
            peer.sock.sendall(b"ping")
            self.assertEqual(peer.sock.recv(4), b"ping")

    def test_stopped_worker(self):
        """Every request to a worker has a deadline that the server keeps; it goes on serving all others meanwhile."""
        self.start()
        image = os.path.join(self.dir, "image")
        (peer, other), (session, free) = connected(self.socket, 2)
        with peer, other:
            pid = self.worker_of(session)
            self.workers.add(pid)
            os.kill(pid, signal.SIGSTOP)
            # By itself, then among others, which come in any order.
            alone = self.ctl("pause", session, "--deadline", "1")
            self.assertEqual(alone.returncode, 1)
            self.assertIn("does not answer", alone.stderr)
            slow = [subprocess.Popen([self.cricketctl, "--server", "unix:" + self.socket, *words], env=self.environment(), stderr=subprocess.PIPE, text=True)
                    for words in (["checkpoint", session, image, "--deadline", "1"], ["checkpoint", session, "--to-memory", "--deadline", "1"],
                                  ["pause", session, "--deadline", "1"], ["stats", session])]
            self.assertEqual(self.ctl("info").returncode, 0)
            self.assertEqual(sorted(s["session"] for s in self.ps()), sorted([session, free]))
            self.assertEqual(self.ctl("checkpoint", free, image + "2").returncode, 0)
            for done in slow:
                message = done.communicate(timeout=GUARD)[1]
                self.assertEqual(done.returncode, 1, done.args)
                self.assertIn(session, message)
                self.assertIn("does not answer", message)
            self.assertEqual([n for n in os.listdir(self.dir) if n.startswith("image")], ["image2"])
            # What it was asked is not done once it goes on.
            os.kill(pid, signal.SIGCONT)
            wait_until(lambda: self.ctl("stats", session).returncode == 0)
            self.assertEqual({s["session"]: s["state"] for s in self.ps()}[session], "running")
            self.assertEqual(self.ctl("checkpoint", session, image).returncode, 0)
            os.kill(pid, signal.SIGSTOP)
            self.assertEqual(self.ctl("kill", session).returncode, 0)
            self.assertFalse(alive(pid))

    def test_dead_worker(self):
        self.start()
        (peer, other), (session, stays) = connected(self.socket, 2)
        with peer, other:
            os.kill(self.worker_of(session), signal.SIGSEGV)
            with self.assertRaises(wire.Closed):
                wire.read_record(peer.sock)
            wait_until(lambda: [s["session"] for s in self.ps()] == [stays])
            self.assertIn("signal 11", self.log())
            self.assertEqual(sorted(os.listdir(self.socket + ".d")), [stays + ".owner", stays + ".sock"])

    def test_sigterm(self):
        server = self.start("--grace", "1000")
        with wire.Peer(self.socket) as peer:
            session = peer.hello(wire.NEW)[1]
            server.terminate()
            wait_until(lambda: "SIGTERM" in self.log())
            with wire.Peer(self.socket) as late:
                self.assertEqual(late.hello(wire.NEW)[0], wire.SHUTTING_DOWN)
            self.assertEqual([s["session"] for s in self.ps()], [session])
            peer.sock.sendall(b"ping")
            self.assertEqual(peer.sock.recv(4), b"ping", "the grace period is the session's")
            self.assertIsNone(server.poll())
        self.assertEqual(server.wait(GUARD), 0, "its end ends the grace period")
        self.assertEqual(sorted(os.listdir(self.dir)), ["libexec", "log"], "nothing is left over")

    def test_sigterm_grace_over(self):
        server = self.start("--grace", "1")
        with wire.Peer(self.socket) as peer:
            pid = self.worker_of(peer.hello(wire.NEW)[1])
            server.terminate()
            self.assertEqual(server.wait(GUARD), 0)
            self.assertFalse(alive(pid))
            with self.assertRaises(wire.Closed):
                wire.read_record(peer.sock)
        self.assertIn("1 sessions still run after 1 s of grace", self.log())
        self.assertEqual(sorted(os.listdir(self.dir)), ["libexec", "log"], "nothing is left over")

    def test_sigterm_waits_for_nobody_without_client(self):
        server = self.start("--grace", "1000")
        with wire.Peer(self.socket) as peer:
            peer.hello(wire.NEW)
        wait_until(lambda: [s["state"] for s in self.ps()] == ["detached"])
        server.terminate()
        self.assertEqual(server.wait(GUARD), 0)

    def test_sigterm_twice_and_idle(self):
        server = self.start("--grace", "1000")
        with wire.Peer(self.socket) as peer:
            peer.hello(wire.NEW)
            server.terminate()
            wait_until(lambda: "SIGTERM" in self.log())
            server.terminate()
            self.assertEqual(server.wait(GUARD), 0)
        server = self.start("--grace", "1000")
        server.terminate()
        self.assertEqual(server.wait(GUARD), 0)

    def test_deaf_worker_is_killed(self):
        self.start(env={"CRICKET_SOFT_FAKE": "deaf"})
        with wire.Peer(self.socket) as peer:
            session = peer.hello(wire.NEW)[1]
            pid = self.worker_of(session)
            self.assertEqual(self.ctl("kill", session).returncode, 0)
            self.assertFalse(alive(pid))

    def test_failing_workers(self):
        for mode, status, text in (("refuse", wire.FAILED, "on purpose"), ("nodevice", wire.NO_DEVICE, "on purpose"),
                                   ("crash", wire.FAILED, "signal 11")):
            with self.subTest(mode=mode):
                server = self.start(env={"CRICKET_SOFT_FAKE": mode})
                with wire.Peer(self.socket) as peer:
                    got, message = peer.hello(wire.NEW)
                    self.assertEqual(got, status)
                    self.assertIn(text, message)
                wait_until(lambda: self.ps() == [])
                server.terminate()
                self.assertEqual(server.wait(GUARD), 0)

    def test_garbage_from_worker(self):
        self.start(env={"CRICKET_SOFT_FAKE": "garbage"})
        with wire.Peer(self.socket) as peer:
            session = peer.hello(wire.NEW)[1]
            # The server knows that it has taken its client.
            wait_until(lambda: [(s["session"], s["state"], s["answered"]) for s in self.ps()] == [(session, "running", False)])
            top = json.loads(self.ctl("top", "--json", "--delay", "0.1").stdout)["sessions"]
            self.assertEqual([(s["session"], s["state"], s["answered"]) for s in top], [(session, "running", False)])
            image = os.path.join(self.dir, "image")
            self.assertEqual(self.ctl("checkpoint", session, image, "--stop").returncode, 0)
        self.assertEqual(self.ctl("restore", image).returncode, 0)
        self.assertEqual([(s["session"], s["state"], s["answered"]) for s in self.ps()], [(session, "restored", False)])

    def test_slow_start_holds_nobody_up(self):
        go = os.path.join(self.dir, "go")
        self.start("--cage", "off", env={"CRICKET_SOFT_FAKE": "slow", "CRICKET_SOFT_GO": go})
        with wire.Peer(self.socket) as peer:
            wire.write_record(peer.sock, peer.hello_bytes(wire.NEW))
            wait_until(lambda: any(name.endswith(".sock") for name in os.listdir(self.socket + ".d")))
            self.assertEqual([(s["state"], s["answered"]) for s in self.ps()], [("starting", True)])
            open(go, "w").close()
            self.assertEqual(wire.parse_reply(wire.read_record(peer.sock), peer.xid)[1].u32(), wire.OK)
        # One that hangs up while it waits leaves no worker.
        os.unlink(go)
        with wire.Peer(self.socket) as peer:
            wire.write_record(peer.sock, peer.hello_bytes(wire.NEW, program="gone"))
            wait_until(lambda: any(s["program"] == "gone" for s in self.ps()))
        # The server hears of that before it is asked, and of the start after that.
        self.ps()
        open(go, "w").close()
        wait_until(lambda: not any(s["program"] == "gone" for s in self.ps()))

    def test_max_sessions(self):
        server = self.start("--max-sessions", "1")
        with wire.Peer(self.socket) as peer:
            session = peer.hello(wire.NEW)[1]
            with wire.Peer(self.socket) as other:
                status, message = other.hello(wire.NEW)
            self.assertEqual(status, wire.FULL)
            self.assertIn("--max-sessions", message)
            self.assertEqual(self.ctl("kill", session).returncode, 0)
        # One program after the other never meets a full server, though a worker takes its time to end.
        for _ in range(5):
            with wire.Peer(self.socket) as peer:
                session = peer.hello(wire.NEW)[1]
                worker = self.worker_of(session)
                # Its worker does not end before the server has to decide about the next program; but then at once: who waits is told after ten seconds.
                os.kill(worker, signal.SIGSTOP)
                killing = subprocess.Popen([self.cricketctl, "--server", "unix:" + self.socket, "kill", session], env=self.environment())
                wait_until(lambda: [s["state"] for s in self.ps()] in (["ending"], []))
                other = wire.Peer(self.socket)
            with other:
                os.kill(server.pid, signal.SIGSTOP)
                wire.write_record(other.sock, other.hello_bytes(wire.NEW))
                # If the server has killed it by now, there is a place anyway.
                with contextlib.suppress(ProcessLookupError):
                    os.kill(worker, signal.SIGKILL)
                wait_until(lambda: not alive(worker))
                os.kill(server.pid, signal.SIGCONT)
                self.assertEqual(killing.wait(GUARD), 0)
                self.assertEqual(wire.parse_reply(wire.read_record(other.sock), other.xid)[1].u32(), wire.OK)
                self.assertEqual(self.ctl("kill", self.ps()[0]["session"]).returncode, 0)

    def test_one_socket_one_server(self):
        self.start()
        other = self.spawn()
        self.assertEqual(other.wait(GUARD), 1)
        self.assertIn("a running server uses", self.log())
        self.start(socket=self.socket + "2")
        self.assertEqual(self.ps(), [])
        plain = os.path.join(self.dir, "plain")
        open(plain, "w").close()
        self.assertNotEqual(self.spawn(socket=plain).wait(GUARD), 0)
        self.assertTrue(stat.S_ISREG(os.stat(plain).st_mode))

    def test_notify(self):
        path = os.path.join(self.dir, "notify")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
            notify.bind(path)
            notify.settimeout(10)
            server = self.start(env={"NOTIFY_SOCKET": path})
            self.assertEqual(notify.recv(100), b"READY=1")
            server.terminate()
            self.assertEqual(notify.recv(100), b"STOPPING=1")
            server.wait()

    def test_no_tcp(self):
        self.start(listen="none")
        with open(self.address_file) as f:
            self.assertEqual(f.read(), "unix:%s\n" % self.socket)
        self.assertEqual(self.ctl("ps", server="file:" + self.address_file).returncode, 0)


class Configuration(ServerTest):
    def config(self, *options):
        return subprocess.run([SERVER, *options, "--print-config"], env=self.environment(), capture_output=True, text=True)

    def test_round_trip(self):
        path = os.path.join(self.dir, "config")
        options = ["--listen", "127.0.0.1:0", "--listen=[::1]:7000", "--socket", "/tmp/x y", "--driver", "/a/libcuda.so.1", "--gpus", "0,2-3",
                   "--session-memory", "1536M", "--session-host-memory", "3G", "--staging", "9M", "--max-sessions", "7",
                   "--token-file", "t", "--insecure", "--user", "u", "--grace", "3", "--log-level", "debug", "--address-file", "a", "--claim-timeout", "9"]
        for some in ([], options):
            first = self.config(*some)
            self.assertEqual(first.returncode, 0, first.stderr)
            with open(path, "w") as f:
                f.write(first.stdout)
            self.assertEqual(self.config("--config", path).stdout, first.stdout)
        self.assertIn("session-memory = 1536M\n", first.stdout)
        self.assertEqual(first.stdout.count("listen = "), 2)
        # The command line goes before the file, wherever it stands.
        for order in (["--grace", "8", "--config", path], ["--config", path, "--grace", "8"]):
            self.assertIn("grace = 8\n", self.config(*order).stdout)
        self.assertEqual(self.config("--config", path, "--listen", ":1").stdout.count("listen = "), 1)
        # Every long option but those about the configuration itself is a key.
        options = set(re.findall(r"^  --([a-z-]+)", subprocess.run([SERVER, "--help"], capture_output=True, text=True).stdout, re.M))
        keys = set(re.findall(r"^(?:# )?([a-z-]+) =", first.stdout, re.M))
        self.assertEqual(options - keys, {"config", "print-config", "replace", "version", "help"})

    def test_bad_values(self):
        for option, value in (("--max-sessions", "many"), ("--session-memory", "1Q"), ("--staging", "7M"), ("--staging", "5G"),
                              ("--gpus", "3-1"), ("--listen", "a:b"), ("--driver", "rel"),
                              ("--log-level", "loud"), ("--grace", "-1"), ("--socket", "relative"), ("--user", "")):
            done = self.config(option, value)
            self.assertEqual(done.returncode, 2, option)
            self.assertIn(option, done.stderr)
            self.assertIn("'%s'" % value, done.stderr)
        for options in (["--nonsense"], ["--grace"], ["--insecure=maybe"], ["word"], ["-x"]):
            self.assertEqual(self.config(*options).returncode, 2)

    def test_bad_files(self):
        path = os.path.join(self.dir, "config")
        for text, line, word in (("[server]\n\ngrace = 1\ncolour = red\n", 4, "colour"), ("[server]\ngrace = soon\n", 2, "soon"),
                                 ("grace = 1\n[client]\nx = 1\n", 3, "client"), ("[server]\nnonsense\n", 2, ""), ("# x\n%s\n" % ("y" * 300), 2, "longer"),
                                 ("config = x\n", 1, "config")):
            with open(path, "w") as f:
                f.write(text)
            done = self.config("--config", path)
            self.assertEqual(done.returncode, 2, text)
            self.assertIn("%s:%d:" % (path, line), done.stderr)
            self.assertIn(word, done.stderr)
        self.assertEqual(self.config("--config", "/nonexistent").returncode, 2)

    def test_gpus_and_user(self):
        self.assertEqual(self.spawn("--gpus", "2").wait(GUARD), 2)
        self.assertIn("--gpus", self.log())
        self.assertEqual(self.spawn("--user", "no-such-user-here").wait(GUARD), 2)
        self.start("--gpus", "1", "--session-memory", "1G")
        info = json.loads(self.ctl("info", "--json").stdout)
        self.assertEqual([(g["gpu"], g["name"]) for g in info["gpus"]], [(1, "Tiny 1")])
        self.assertEqual(info["session_memory_bytes"], 1 << 30)
        self.assertTrue(info["soft"])

    def test_auto_driver_says_so(self):
        self.start("--driver", "auto")
        if json.loads(self.ctl("info", "--json").stdout)["soft"]:
            self.assertIn("using the soft GPU", self.log())
        self.assertNotEqual(self.spawn("--driver", "/nonexistent/libcuda.so.1", socket=self.socket + "2").wait(GUARD), 0)
        self.assertIn("/nonexistent/libcuda.so.1", self.log())


class Ctl(ServerTest):
    def test_ps_and_exit_codes(self):
        self.start()
        with wire.Peer(self.socket) as peer:
            session = peer.hello(wire.NEW, program="prog\x1b[2J", host="a-host", pid=99)[1]
            # A worker that stands still is listed as it was known last.
            wait_until(lambda: self.ps()[0]["memory_bytes"])
            listing = json.loads(self.ctl("ps", "--json").stdout)
            self.assertEqual(list(listing), ["sessions", "warm"])
            (entry,) = listing["sessions"]
            self.assertEqual(list(entry), ["session", "program", "client", "pid", "gpu", "memory_bytes", "state", "answered", "started", "job", "owner", "project",
                                           "transport", "lanes", "turns", "sharing", "waits", "swapping", "share_percent", "swapped_bytes", "waiting_ms", "switches", "note"])
            self.assertEqual((entry["session"], entry["client"], entry["pid"], entry["gpu"], entry["memory_bytes"], entry["state"]),
                             (session, "a-host", 99, 0, 4096, "running"))
            self.assertNotIn("\x1b", self.ctl("ps").stdout, "a program's name must not reach the terminal raw")
            stats = json.loads(self.ctl("stats", session[:6], "--json").stdout)
            self.assertEqual(stats["calls"][0], {"name": "cuLaunchKernel", "calls": 1000, "batched": 1000, "waited": 0, "bytes": 64000})
            for words, code in ((["kill", "000000000000"], 4), (["stats", "xyz"], 4), (["kill", "0123456789abcdef"], 4), (["kill"], 2),
                                (["ps", "extra"], 2), (["ps", "--stop"], 2), (["nonsense"], 2), ([], 2), (["ps", "--json=x"], 2),
                                (["checkpoint", session, "/nonexistent/dir/image"], 1), (["restore", "/nonexistent"], 1),
                                (["restore", self.dir], 1), (["--help"], 0), (["ps", "--help"], 0), (["--version"], 0),
                                (["checkpoint", session, "x", "--deadline", "0"], 2), (["restore", "x", "--gpu", "a"], 2)):
                self.assertEqual(self.ctl(*words).returncode, code, words)
            self.assertEqual(self.ctl("ps", server="127.0.0.1:1").returncode, 3)
            self.assertEqual(self.ctl("ps", server="unix:/nonexistent").returncode, 3)
            self.assertEqual(self.ctl("ps", server="a:b:c:").returncode, 3)
            self.assertEqual(self.ctl("kill", session[:4]).returncode, 0)
            self.assertEqual(self.ctl("kill", session).returncode, 4)

    def test_silent_worker(self):
        """A worker that stands still is marked, with what was last known; another one is not."""
        self.start()
        peers, (one, other) = connected(self.socket, 2)

        def told():
            return {s["session"]: (s["state"], s["answered"]) for s in self.ps()}

        wait_until(lambda: told() == {one: ("running", True), other: ("running", True)})
        pid = self.worker_of(one)
        os.kill(pid, signal.SIGSTOP)
        try:
            # The machine may make the other one wait, too.
            wait_until(lambda: told() == {one: ("running", False), other: ("running", True)})
            wait_until(lambda: sorted(re.findall(r"^([0-9a-f]{12}) .*  (running\S*) ", self.ctl("ps").stdout, re.M)) ==
                       sorted([(one, "running?"), (other, "running")]))
            top = {s["session"]: s["answered"] for s in json.loads(self.ctl("top", "--json", "--delay", "0.1").stdout)["sessions"]}
            self.assertIs(top[one], False)
        finally:
            os.kill(pid, signal.SIGCONT)
        wait_until(lambda: told() == {one: ("running", True), other: ("running", True)})
        for peer in peers:
            peer.close()

    @unittest.skipUnless(ROOT, "not run as root")
    def test_client_of_silent_worker(self):
        """restore --with-client: nothing goes to a client before the restored worker has said which generation of the session it is."""
        self.start(env={"CRICKET_SOFT_FAKE": "garbage"})
        image, client, state = (os.path.join(self.dir, name) for name in ("image", "image/client", "state"))
        with wire.Peer(self.socket) as peer:
            session = peer.hello(wire.NEW)[1]
            self.assertEqual(self.ctl("checkpoint", session, image, "--stop").returncode, 0)
        for directory in (client, state):
            os.mkdir(directory, 0o700)
        with open(os.path.join(client, "client.json"), "w", encoding="utf-8") as f:
            json.dump({"format": 1, "criu": "4.1", "pid": 4194303, "ids": [4194303], "program": "none", "session": session, "uid": 0, "gid": 0,
                       "state_dir": state, "stdio": ["", "", ""]}, f)
        with open(os.path.join(self.libexec, "criu"), "w", encoding="utf-8") as f:
            f.write("#!/bin/sh\nexec /usr/bin/python3 %s \"$@\"\n" % os.path.join(HERE, "fake_criu.py"))
        os.chmod(f.name, 0o755)
        done = subprocess.run([CTL, "--server", "unix:" + self.socket, "restore", image, "--with-client"], capture_output=True, text=True, timeout=GUARD,
                              env=self.environment(TMPDIR=self.dir, PATH=self.libexec, FAKE_CRIU_VERSION="4.1"), check=False)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("session %s: its worker does not answer: its client was not restored; restore the image again\n" % session, done.stderr)
        self.assertEqual((os.listdir(state), self.ps()), ([], []))

    def test_server_option_and_default(self):
        self.start()
        address = "%s:%d" % self.tcp
        environment = self.environment()
        for command in ([CTL, "--server", address, "ps"], [CTL, "ps", "--server", address], [CTL, "ps", "--server=" + address]):
            self.assertEqual(subprocess.run(command, env=environment, capture_output=True).returncode, 0)
        environment["REMOTE_GPU_ADDRESS"] = "file:" + self.address_file
        self.assertEqual(subprocess.run([CTL, "ps"], env=environment, capture_output=True).returncode, 0)
        self.assertEqual(subprocess.run([CTL, "ps", "--server", "127.0.0.1:1"], env=environment, capture_output=True).returncode, 3)

    def test_ambiguous_prefix(self):
        self.start()
        peers, sessions = connected(self.socket, 17)
        firsts = [session[0] for session in sessions]
        twice = next(first for first in firsts if firsts.count(first) > 1)
        done = self.ctl("stats", twice)
        self.assertEqual(done.returncode, 4)
        self.assertIn(f"is a prefix of {firsts.count(twice)} session IDs", done.stderr)
        for peer in peers:
            peer.close()

    def test_not_a_server(self):
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            listener.listen()
            pid = os.fork()
            if pid == 0:
                client = listener.accept()[0]
                client.sendall(b"220 mail.example.org ESMTP\r\n" * 10)
                client.close()
                os._exit(0)
            self.assertEqual(self.ctl("ps", server="127.0.0.1:%d" % listener.getsockname()[1]).returncode, 3)
            os.waitpid(pid, 0)

    def test_checkpoint(self):
        self.start()
        image = os.path.join(self.dir, "image")
        with wire.Peer(self.socket) as peer:
            session = peer.hello(wire.NEW)[1]
            done = self.ctl("checkpoint", session[:8], image, server="%s:%d" % self.tcp)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(stat.S_IMODE(os.stat(image).st_mode), 0o700)
            self.assertEqual(sorted(os.listdir(image)), ["data-0", "data-1", "manifest"])
            self.assertEqual(self.ctl("checkpoint", session, image).returncode, 1, "an image is not overwritten")
            self.assertEqual([n for n in os.listdir(self.dir) if "partial" in n], [])
            self.assertEqual(self.ctl("restore", image).returncode, 1, "the session still lives here")
            self.assertEqual([s["session"] for s in self.ps()], [session])
            pid = self.worker_of(session)
            self.assertEqual(self.ctl("checkpoint", session, image + "2", "--stop").returncode, 0)
            self.assertFalse(alive(pid))
        done = self.ctl("restore", image + "2/", "--json")
        self.assertEqual(json.loads(done.stdout), {"session": session}, done.stderr)
        # A worker that stands still is listed as it was known last.
        wait_until(lambda: [(s["session"], s["state"]) for s in self.ps()] == [(session, "restored")])
        with wire.Peer(self.tcp) as peer:
            self.assertEqual(peer.hello(wire.RESUME, session=session), (wire.OK, session))
        self.assertEqual(self.ctl("restore", image, "--gpu", "9").returncode, 1)
        self.assertEqual(self.ctl("kill", session).returncode, 0)
        self.assertEqual(self.ctl("restore", image, "--gpu", "1").returncode, 0)

    def test_control_garbage(self):
        self.start()
        for data in (b"", bytes(72), wire.call_header(5, wire.CONTROL, 99), wire.call_header(5, wire.WORKER, 6),
                     wire.call_header(5, wire.CONTROL, 3), wire.call_header(5, wire.CONTROL, 2) + wire.text("x" * 13),
                     wire.call_header(5, wire.CONTROL, 1) + b"more"):
            with wire.Peer(self.socket) as peer:
                self.assertEqual(peer.hello(wire.HELLO_CONTROL)[0], wire.OK)
                wire.write_record(peer.sock, data)
                with self.assertRaises(wire.Closed):
                    wire.read_record(peer.sock)
        with wire.Peer(self.socket) as peer:
            self.assertEqual(peer.hello(wire.HELLO_CONTROL)[0], wire.OK)
            peer.sock.sendall(struct.pack(">I", 0x80000000 | 1 << 20))
            with self.assertRaises(wire.Closed):
                wire.read_record(peer.sock)
        # Descriptors that nobody asked for are not kept.
        server = self.servers[0].pid
        before = len(os.listdir("/proc/%d/fd" % server))
        with wire.Peer(self.socket) as peer:
            peer.hello(wire.HELLO_CONTROL)
            for _ in range(20):
                peer.xid += 1
                wire.write_record(peer.sock, wire.call_header(peer.xid, wire.CONTROL, 1), fd=0)
                wire.parse_reply(wire.read_record(peer.sock), peer.xid)
            # The last one goes behind its call's reply.
            wait_until(lambda: len(os.listdir("/proc/%d/fd" % server)) <= before + 1, what="the server keeps descriptors")

    def test_doctor(self):
        self.start()
        script = os.path.join(self.dir, "script")
        with open(script, "w") as f:
            f.write("#!/usr/bin/env python3\n")
        os.chmod(script, 0o755)
        report = json.loads(self.ctl("doctor", "--json", script, "--version").stdout)
        checks = {check["name"]: check for check in report["checks"]}
        self.assertEqual(checks["server"]["result"], "ok")
        self.assertEqual(checks["script"]["result"], "ok")
        self.assertEqual(checks["program"]["result"], "ok")
        done = self.ctl("doctor", "/nonexistent/program")
        self.assertEqual(done.returncode, 1)
        self.assertIn("not found", done.stdout)
        report = json.loads(self.ctl("doctor", "--json", server="127.0.0.1:1").stdout)
        self.assertFalse(report["ok"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
