#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""One peer that takes all it can get from a cricket-server, and others that still get in.  Counts only; no clock is compared."""
import errno
import json
import os
import re
import resource
import select
import signal
import socket
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import wire  # noqa: E402
from fixture import GUARD, ServerTest, wait_until  # noqa: E402

ROOT = os.getuid() == 0
TOKEN = b"a token of more than sixteen bytes"
STAGE_MAKE, STAGE_REMOVE, STAGE_DATA, WRITE, EVENTS, STAGE_KEEP = 7, 9, 10, 12, 20, 21
DESCRIPTORS = 1024
EVENTS_MAX = 64  # calls of a user that wait for events


def peer_from(host, address, greeting=True):
    """A connection from another address of this host."""
    peer = wire.Peer.__new__(wire.Peer)
    peer.sock = socket.socket()
    peer.sock.settimeout(20)
    peer.sock.bind((host, 0))
    peer.sock.connect(address)
    peer.xid = 100
    if greeting:
        peer.take_greeting()
    return peer


class Attacks(ServerTest):
    def holding(self, uid, function):
        """Runs it in a process of that user, which goes on holding what it opened; its answer."""
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                resource.setrlimit(resource.RLIMIT_NOFILE, (8192, 8192))
                os.setgid(uid)
                os.setuid(uid)
                answer, kept = function()
                os.write(write, json.dumps(answer).encode())
                os.close(write)
                time.sleep(600 if kept else 0)
            finally:
                os._exit(0)
        os.close(write)
        self.addCleanup(os.waitpid, pid, 0)
        self.addCleanup(os.kill, pid, signal.SIGKILL)
        with os.fdopen(read) as f:
            return json.loads(f.read())

    def start_limited(self, *options, **keywords):
        """A server that may open few descriptors."""
        return self.start(*options, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS)), **keywords)

    def end_server(self):
        """It then tells at once what it would tell of after ten seconds."""
        self.servers[-1].terminate()
        self.assertEqual(self.servers[-1].wait(GUARD), 0)

    def gets_in(self, uid, address=None):
        """Whether that user can run a session and control it."""
        def function():
            with wire.Peer(address or self.socket) as peer, wire.Peer(self.socket) as control:
                return [peer.hello(wire.NEW)[0], control.hello(wire.HELLO_CONTROL)[0]], ()
        return self.holding(uid, function) == [wire.OK, wire.OK]

    def test_connections_without_hello(self):
        """127.0.0.2 floods; who came before from 127.0.0.3, and is slow, and who comes after it, get in."""
        resource.setrlimit(resource.RLIMIT_NOFILE, (4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        self.start()
        slow = peer_from("127.0.0.3", self.tcp)
        flood = [peer_from("127.0.0.2", self.tcp, greeting=False) for _ in range(1500)]
        with peer_from("127.0.0.3", self.tcp) as late:
            self.assertEqual(late.hello(wire.HELLO_CONTROL)[0], wire.OK)
        self.assertEqual(slow.hello(wire.HELLO_CONTROL)[0], wire.OK)
        self.assertEqual(self.ps(), [])
        # Some messages tell of it, and one how many more there were.
        self.end_server()
        self.assertIn("left out", self.log())
        self.assertLess(self.log().count("dropped before its hello"), 100)
        for peer in flood + [slow]:
            peer.close()

    @unittest.skipUnless(ROOT, "needs root to become several users")
    def test_stages(self):
        self.start_limited()

        def make():
            made, refused, peers = 0, set(), []
            for _ in range(40):
                peers.append(wire.Peer(self.socket))
                if peers[-1].hello(wire.HELLO_CONTROL)[0] != wire.OK:
                    break
                for _ in range(40):
                    answer = peers[-1].call(STAGE_MAKE)
                    status, message = answer.u32(), answer.text()
                    made += status == 0
                    if status:
                        refused.add(message)
            return [made, sorted(refused)], peers

        made, refused = self.holding(1001, make)
        self.assertLessEqual(made, 128)
        self.assertIn("--max-stages-per-user", refused[0])
        self.assertTrue(self.gets_in(1002))
        self.assertTrue(self.gets_in(1001), "its own sessions are no images")

    @unittest.skipUnless(ROOT, "needs root to become several users")
    def test_pending_events(self):
        self.start_limited()

        def wait():
            peers = []
            for _ in range(1100):
                peer = wire.Peer(self.socket)
                status, message = peer.hello(wire.HELLO_CONTROL)
                if status != wire.OK:
                    return [len(peers), message], peers
                wire.write_record(peer.sock, wire.call_header(7, wire.CONTROL, EVENTS) + wire.u64(0xFFFFFFFF))
                peers.append(peer)
                # Once it has all that it may have, the server ends one of them.
                ended = select.select([each.sock for each in peers], [], [], GUARD if len(peers) > EVENTS_MAX else 0)[0]
                for each in [each for each in peers if each.sock in ended]:
                    peers.remove(each)
                    each.close()
                if len(peers) > EVENTS_MAX:
                    break
            return [len(peers), ""], peers

        # Those over the limit were ended, so the attacker can go on for ever: what it holds is bounded.
        waiting, message = self.holding(1001, wait)
        self.assertEqual(message, "")
        self.assertLessEqual(waiting, EVENTS_MAX)
        self.assertTrue(self.gets_in(1002))
        self.assertEqual(self.ctl("info").returncode, 0)

    @unittest.skipUnless(ROOT, "needs root to become several users")
    def test_control_connections(self):
        self.start_limited()

        def connect():
            peers, answers = [], []
            for _ in range(300):
                peers.append(wire.Peer(self.socket))
                answers.append(peers[-1].hello(wire.HELLO_CONTROL))
            return [sum(status == wire.OK for status, _ in answers), answers[-1][1]], peers

        held, message = self.holding(1001, connect)
        self.assertEqual(held, 128)
        self.assertIn("--max-connections-per-user", message)
        self.assertTrue(self.gets_in(1002))

    @unittest.skipUnless(ROOT, "needs root to become several users")
    def test_sessions(self):
        """One user has three quarters of them, and one anonymous address too."""
        self.start("--max-sessions", "8")

        def run():
            # One after another: a connection without a hello is dropped after five seconds, and workers may start slowly.
            peers, answers = [], []
            for _ in range(8):
                peers.append(wire.Peer(self.socket))
                answers.append(peers[-1].hello(wire.NEW))
            return [sum(status == wire.OK for status, _ in answers), answers[-1][1]], peers

        held, message = self.holding(1001, run)
        self.assertEqual(held, 6)
        self.assertIn("--max-sessions-per-user", message)
        with peer_from("127.0.0.2", self.tcp) as peer:
            self.assertEqual(peer.hello(wire.NEW)[0], wire.OK)
        self.assertTrue(self.gets_in(1002))

    def test_bytes_of_images(self):
        """What one may write into --image-dir is bounded, and comes back when it goes."""
        self.start("--image-space", "1M")
        piece = bytes(256 << 10)

        def write(host, pieces):
            control, data = peer_from(host, self.tcp), peer_from(host, self.tcp)
            self.assertEqual((control.hello(wire.HELLO_CONTROL)[0], data.hello(wire.HELLO_CONTROL)[0]), (wire.OK, wire.OK))
            answer = control.call(STAGE_MAKE)
            self.assertEqual((answer.u32(), answer.text()), (0, ""))
            stage = answer.text()
            self.assertEqual(data.call(STAGE_DATA, wire.text(stage)).u32(), 0)
            return control, data, [data.call(WRITE, wire.text("data-0") + wire.u64(n * len(piece)) + wire.text(piece)).i32() for n in range(pieces)]

        control, data, results = write("127.0.0.2", 6)
        self.assertEqual(results, [0] * 4 + [-errno.EDQUOT] * 2)
        second = write("127.0.0.2", 1)
        self.assertEqual(second[2], [-errno.EDQUOT], "by address, not by connection")
        other = write("127.0.0.3", 4)
        self.assertEqual(other[2], [0] * 4)
        for peer in (control, data, *second[:2]):
            peer.close()
        wait_until(lambda: len(os.listdir(self.socket + ".images")) == 1)
        again = []

        def has_room():
            again.append(write("127.0.0.2", 4))
            return again[-1][2] == [0] * 4 or any(peer.close() for peer in again[-1][:2])

        wait_until(has_room)
        for peer in (*other[:2], *again[-1][:2]):
            peer.close()

    def test_wrong_tokens(self):
        """Answers to wrong ones wait longer and longer; the right one from the same address is taken at once."""
        token = os.path.join(self.dir, "token")
        with open(token, "wb", opener=lambda path, flags: os.open(path, flags, 0o600)) as f:
            f.write(TOKEN)
        self.start("--token-file", token, "--max-delay", "300")
        peers = [peer_from("127.0.0.2", self.tcp) for _ in range(30)]
        for peer in peers:
            wire.write_record(peer.sock, peer.hello_bytes(wire.HELLO_CONTROL, token=b"another token, also long"))
        with peer_from("127.0.0.2", self.tcp) as right:
            self.assertEqual(right.hello(wire.HELLO_CONTROL, token=TOKEN)[0], wire.OK)
        wait_until(lambda: len(select.select([peer.sock for peer in peers], [], [], 0)[0]) >= 3)
        answered = select.select([peer.sock for peer in peers], [], [], 0)[0]
        self.assertLess(len(answered), 20)
        # A path that was mistyped is told at once.
        with peer_from("127.0.0.3", self.tcp) as other:
            self.assertEqual(other.hello(wire.HELLO_CONTROL, token=b"another token, also long")[0], wire.DENIED)
        for peer in peers:
            peer.close()

    def test_log_of_strangers(self):
        self.start()
        for _ in range(200):
            with wire.Peer(self.tcp) as peer:
                self.assertEqual(peer.hello(wire.RESUME, session="0123456789ab")[0], wire.NO_SESSION)
        self.end_server()
        told = self.log().count("is not on")
        self.assertLess(told, 150)
        # A slow crowd is told of more than once.
        self.assertEqual(told + sum(int(n) for n in re.findall(r"(\d+) more messages about refused hellos", self.log())), 200)


if __name__ == "__main__":
    unittest.main(verbosity=2)
