#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Sessions that sleep (--idle-context): their workers end, and the next command of the program brings them back.  Over programs on the soft GPU."""
import contextlib
import http.client
import json
import os
import random
import re
import socket
import subprocess
import sys
import threading
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import wire  # noqa: E402
from takers import Taker  # noqa: E402
from whole import Whole, runner  # noqa: E402

SLEEP, BYE = 11, 3


class IdleContext(Whole):
    def setUp(self):
        super().setUp()
        self.takers, self.peers = [], []
        self.images = os.path.join(self.dir, "images")

    def tearDown(self):
        for peer in self.peers:
            peer.close()
        for taker in self.takers:
            if not taker.process.stdout.closed:
                try:
                    taker.end()
                except OSError:
                    pass
                # Of a test that has failed.
                except subprocess.TimeoutExpired:
                    taker.process.kill()
        super().tearDown()

    def sleeping(self, name="server", *options, after="1s", env=None):
        # Else an earlier server's file says that this one is ready.
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(self.dir, name, "address"))
        server = self.server(name, "--idle-context", after, "--auto-dir", self.images, *options, env={"CRICKET_SOFT_DEVICES": "12.0:8G", **(env or {})})
        server.tcp, server.address = server.address, "unix:" + server.socket
        return server

    def taker(self, server, mib=1, **env):
        taker = Taker(self, server, **env)
        self.takers.append(taker)
        self.assertEqual(taker.ask("alloc", mib), 0)
        self.assertEqual(taker.ask("fill", 7), 0)
        return taker

    def session(self, server, taker):
        found = [s for s in runner.sessions_of(self.tree, server) if s["pid"] == taker.process.pid]
        return found[0] if found else None

    def asleep(self, server, *takers):
        self.wait(lambda: all((self.session(server, t) or {}).get("state") == "asleep" for t in takers))

    def events(self, server):
        return [json.loads(line) for line in self.ctl(server, "--json", "events").splitlines()]

    def names(self, server):
        return [event["event"] for event in self.events(server)]

    def awake(self, server, taker, seed):
        """Its session, awake for a command.  If it is idle for long before anybody looks, it falls asleep again and is woken once more."""
        found = {}

        def look():
            found.clear()
            self.assertEqual(taker.ask("check", seed), 0)
            found.update(self.session(server, taker) or {})
            return found.get("state") == "running"

        self.wait(look)
        return found

    def images_of(self, taker_session):
        return os.path.join(self.images, taker_session["session"])

    def test_sleeps(self):
        """An idle session's worker ends, and the next command brings it back with what it had, again and again."""
        server = self.sleeping()
        taker = self.taker(server)
        for seed in (7, 8, 9):
            self.asleep(server, taker)
            self.assertEqual(server.workers(), [])
            session = self.session(server, taker)
            self.assertIn("asleep since", session["note"])
            self.assertGreater(session["asleep"]["bytes"], 0)
            self.assertRegex(session["asleep"]["since"], r"^[0-9-]{10}T[0-9:]{8}Z$")
            self.assertNotIn("automatic_image", session)
            self.assertEqual(session["memory_bytes"], 0)
            awake = self.awake(server, taker, seed)
            self.assertEqual(awake["state"], "running")
            self.assertNotIn("asleep", awake)
            self.assertEqual(taker.ask("fill", seed + 1), 0)
        # In turn, as often as it was idle for long; the last sleep may have begun.
        names = self.names(server)
        sleeps = [name for name in names if name in ("asleep", "awake")]
        self.assertEqual(sleeps, (["asleep", "awake"] * len(sleeps))[:len(sleeps)])
        self.assertGreaterEqual(names.count("awake"), 3)
        self.assertNotIn("ended", names)
        self.assertEqual(taker.end(), "")
        self.wait(lambda: os.listdir(self.images) == [])

    def test_tcp(self):
        """Over TCP, where the server sees the client by its connection alone."""
        server = self.sleeping()
        server.address = server.tcp
        taker = self.taker(server)
        server.address = "unix:" + server.socket
        self.asleep(server, taker)
        self.assertEqual(taker.ask("check", 7), 0)
        self.asleep(server, taker)
        taker.process.kill()
        self.wait(lambda: runner.sessions_of(self.tree, server) == [] and os.listdir(self.images) == [])

    def test_metrics(self):
        """A session that sleeps is one of its owner's still."""
        server = self.sleeping("server", "--metrics", f"unix:{self.dir}/metrics")
        taker = self.taker(server)

        def count(state):
            connection = http.client.HTTPConnection("localhost")
            connection.sock = socket.socket(socket.AF_UNIX)
            with contextlib.closing(connection):
                connection.sock.connect(f"{self.dir}/metrics")
                connection.request("GET", "/metrics")
                return re.findall(r'^cricket_sessions\{owner="uid:%d",state="%s"\} (\d+)$' % (os.getuid(), state),
                                  connection.getresponse().read().decode(), re.M)

        self.asleep(server, taker)
        self.wait(lambda: count("asleep") == ["1"])
        self.assertEqual(count("running"), ["0"])

    def test_many(self):
        """Twenty sessions sleep: no worker, two descriptors each, and the host has their images; they wake in random order."""
        server = self.sleeping()
        before = self.descriptors(server)
        takers = [self.taker(server) for _ in range(20)]
        for number, taker in enumerate(takers):
            self.assertEqual(taker.ask("fill", 100 + number), 0)
        self.asleep(server, *takers)
        self.assertEqual(server.workers(), [])
        # It closes cricketctl's connection when it sees its end.
        self.wait(lambda: self.descriptors(server) - before == 2 * len(takers))
        self.assertEqual(len(os.listdir(self.images)), len(takers))
        chosen = list(enumerate(takers))
        random.shuffle(chosen)
        for number, taker in chosen:
            self.assertEqual(taker.ask("check", 100 + number), 0)
        self.asleep(server, *takers)

    def descriptors(self, server):
        return len(os.listdir(f"/proc/{server.process.pid}/fd"))

    def test_threads(self):
        """Calls of two threads at once wake it once."""
        server = self.sleeping()
        taker = self.taker(server)
        self.asleep(server, taker)
        number = self.log_of(server).count(" sleeps: ")
        taker.process.stdin.write("begin 1\ncheck 7\njoin\n")
        taker.process.stdin.flush()
        self.assertEqual([taker.process.stdout.readline() for _ in range(3)], ["0\n"] * 3)
        # Of that sleep: a call that comes late may find the next one.
        self.assertEqual(self.log_of(server).split(" sleeps: ")[number].count("ready, restored"), 1)

    def test_ends_asleep(self):
        """A program that ends while its session sleeps starts no worker; its images are removed."""
        server = self.sleeping()
        taker = self.taker(server)
        self.asleep(server, taker)
        # It may have slept between its first commands, too.
        restored = self.log_of(server).count("restored")
        self.assertEqual(taker.end(), "")
        self.wait(lambda: runner.sessions_of(self.tree, server) == [])
        self.wait(lambda: os.listdir(self.images) == [])
        self.assertEqual(self.log_of(server).count("restored"), restored)

    def test_killed_client(self):
        """So it is with one that is killed."""
        server = self.sleeping()
        taker, other = self.taker(server), self.taker(server)
        self.asleep(server, taker, other)
        taker.process.kill()
        self.wait(lambda: len(os.listdir(self.images)) == 1)
        self.assertEqual(other.ask("check", 7), 0)

    def test_killed_server(self):
        """After kill -9 of the server the next one knows what sleeps, and the program notices nothing."""
        server = self.sleeping()
        taker = self.taker(server)
        self.asleep(server, taker)
        server.kill()
        server = self.sleeping()
        # The client has told the new server that it lives.
        self.asleep(server, taker)
        self.assertEqual(server.workers(), [])
        self.assertEqual(taker.ask("check", 7), 0)
        self.asleep(server, taker)
        server.kill()
        taker.process.kill()
        server = self.sleeping("server", "--claim-timeout", "1")
        self.wait(lambda: os.listdir(self.images) == [])

    def test_killed_by_administrator(self):
        """cricketctl kill ends what sleeps; its program is told at its next call.  Other subcommands say that it sleeps."""
        server = self.sleeping()
        taker = self.taker(server, CRICKET_RECONNECT_TIMEOUT="1")
        self.asleep(server, taker)
        session = self.session(server, taker)["session"]
        for words in (["checkpoint", session, os.path.join(self.dir, "image")], ["pause", session], ["stats", session]):
            code, _, err = self.may_fail(server, *words)
            self.assertNotEqual(code, 0)
            self.assertIn("sleeps", err)
        self.ctl(server, "kill", session)
        self.wait(lambda: os.listdir(self.images) == [])
        taker.process.stdin.write("check 7\n")
        self.assertIn("is lost", taker.end())

    def test_no_room(self):
        """Without room for its image a session stays as it is, and one event says why."""
        # Root's images are not limited.
        token = self.token("alice")
        server = self.sleeping("server", "--image-space", "1M", "--tokens", self.tokens)
        unix, server.address = server.address, server.tcp
        taker = self.taker(server, 64, CRICKET_TOKEN_FILE=token)
        server.address = unix

        def told():
            return [event for event in self.events(server) if event["event"] == "not-asleep" and "image-space" in event["detail"]]

        self.wait(told)
        self.wait(lambda: self.session(server, taker)["state"] == "running")
        self.assertIn("image-space", self.session(server, taker)["note"])
        self.assertEqual(taker.ask("check", 7), 0)
        self.assertEqual(len(told()), 1)

    def asking(self, taker):
        """A thread that asks, and where its answer will be.  It keeps nobody from ending if the answer does not come."""
        answers = []
        thread = threading.Thread(target=lambda: answers.append(taker.ask("check", 7)), daemon=True)
        thread.start()
        return thread, answers

    def test_no_worker(self):
        """What cannot be woken now sleeps on, and its program waits."""
        server = self.sleeping("server", "--max-sessions", "1")
        taker = self.taker(server, CRICKET_RECONNECT_TIMEOUT="1")
        self.asleep(server, taker)
        # It never sleeps.
        other, _, _ = self.client(server)
        asking, answers = self.asking(taker)
        # Over CRICKET_RECONNECT_TIMEOUT: it says so once.
        self.assertIn("cannot be woken yet", taker.process.stderr.readline())
        self.assertEqual(answers, [])
        wire.write_record(other.sock, wire.call_header(1, wire.SESSION, BYE))
        asking.join(60)
        self.assertEqual(answers, [0])

    def test_faults(self):
        """If the last step fails, the session goes on; if the worker dies in it, the session comes back from its image."""
        for fault, state in (("fail:227", "running"), ("227", None)):
            with self.subTest(fault):
                server = self.sleeping("server" + fault.replace(":", ""), env={"CRICKET_FAULT": fault})
                taker = self.taker(server)
                self.wait(lambda s=server, f=fault: ("not-asleep" if f.startswith("fail") else "lost") in self.names(s))
                if state:
                    self.wait(lambda s=server, t=taker, wanted=state: self.session(s, t)["state"] == wanted)
                self.assertEqual(taker.ask("check", 7), 0)
                taker.end()

    def test_swapped(self):
        """What was swapped out before sleeps as well, and its swap memory is given back."""
        server = self.sleeping("server", "--swap-memory", "1G", "--idle-memory", "1s", after="2s")
        taker = self.taker(server, 16)

        def sleeps_swapped():
            self.asleep(server, taker)
            if "swapped-out" in self.names(server):
                return True
            # A server that stood still finds it idle for both times at once, and lets it sleep first.
            self.assertEqual(taker.ask("check", 7), 0)
            return False

        self.wait(sleeps_swapped)
        self.assertEqual(taker.ask("check", 7), 0)
        self.asleep(server, taker)
        self.assertEqual(taker.ask("check", 7), 0)

    def test_full_gpu(self):
        """A GPU without room for what sleeps: its program waits until there is some, and nothing is lost."""
        server = self.sleeping("server", "--gpu-memory", "100M")
        taker = self.taker(server, 60, CRICKET_RECONNECT_TIMEOUT="1")
        self.asleep(server, taker)
        holder = self.taker(server, 60)
        asking, answers = self.asking(taker)
        # The holder falls asleep by and by, and makes room.
        asking.join(60)
        self.assertEqual(answers, [0])
        self.assertEqual(holder.end(), "")

    def test_durable(self):
        """A durable session, and one with automatic images, sleep with the same chain."""
        server = self.sleeping("server", "--auto-checkpoint", "1s", after="2s")
        takers = [self.taker(server), self.taker(server, CRICKET_DURABLE="1")]
        for seed in (7, 8):
            self.asleep(server, *takers)
            for taker in takers:
                self.assertEqual(taker.ask("check", seed), 0)
                self.assertEqual(taker.ask("fill", seed + 1), 0)
        # A crash after that is survived as ever.
        self.asleep(server, *takers)
        self.assertEqual([taker.ask("check", 9) for taker in takers], [0, 0])

    def test_replaced(self):
        """--replace: the next server has what sleeps, and its program notices nothing."""
        server = self.sleeping()
        taker = self.taker(server)
        self.asleep(server, taker)
        os.unlink(os.path.join(self.dir, "server", "address"))
        second = self.server("server", "--replace", "--idle-context", "1s", "--auto-dir", self.images, env={"CRICKET_SOFT_DEVICES": "12.0:8G"})
        second.tcp, second.address = second.address, "unix:" + second.socket
        self.assertEqual(server.process.wait(60), 0)
        self.asleep(second, taker)
        self.assertEqual(taker.ask("check", 7), 0)

    def test_migrated(self):
        """What sleeps stays where it is, and migrate says why; once it is awake, it moves."""
        server, second = self.sleeping(), self.server("second", env={"CRICKET_SOFT_DEVICES": "12.0:8G"})
        taker = self.taker(server)
        self.asleep(server, taker)
        session = self.session(server, taker)["session"]
        to = "unix:" + second.socket
        code, out, err = self.may_fail(server, "migrate", session, "--to", to)
        self.assertNotEqual(code, 0)
        self.assertEqual(out, "")
        self.assertIn(f"session {session} sleeps (--idle-context): wait until its program's next command", err)
        self.assertEqual(self.session(server, taker)["state"], "asleep")
        self.assertEqual(runner.sessions_of(self.tree, second), [])
        # It may fall asleep between the two.
        self.wait(lambda: taker.ask("check", 7) == 0 and self.may_fail(server, "migrate", session, "--to", to)[0] == 0)
        self.assertEqual(taker.ask("check", 7), 0)
        self.assertEqual([s["session"] for s in runner.sessions_of(self.tree, second)], [session])
        self.assertIsNone(self.session(server, taker))
        self.assertEqual(taker.end(), "")

    def test_drained(self):
        """A server that drains does not stop over what sleeps, and wakes it."""
        server = self.sleeping()
        taker = self.taker(server)
        self.asleep(server, taker)
        code, out, err = self.may_fail(server, "drain", "--stop", "--to", "127.0.0.1:1")
        self.assertNotEqual(code, 0)
        self.assertIn("1 session left", out + err)
        self.assertEqual(taker.ask("check", 7), 0)

    # ---- Clients that we play

    def client(self, server, *capabilities):
        """A session of a client of ours, without rings: (its connection, its id, its secret)"""
        peer, secret = wire.Peer(server.socket), os.urandom(16)
        self.peers.append(peer)
        status, session = peer.hello(wire.NEW, secret=secret, capabilities=capabilities)
        self.assertEqual(status, wire.OK)
        return peer, session, secret

    def hello(self, server, secret, session, value):
        """The status of a hello RESUME."""
        peer = wire.Peer(server.socket)
        self.peers.append(peer)
        return peer, peer.hello(wire.RESUME, secret=secret, session=session, capabilities=(("sleep", value),))[0]

    def test_old_client(self):
        """The session of a client that does not know how to sleep stays awake, which is told once."""
        server = self.sleeping()
        self.client(server)
        # A worker whose client has not reached it for long has another reason first.
        self.wait(lambda: [event for event in self.events(server) if event["event"] == "not-asleep" and "earlier version" in event["detail"]])
        (session,) = runner.sessions_of(self.tree, server)
        self.assertEqual(session["state"], "running")
        self.assertIn("earlier version", session["note"])
        told = [event["detail"] for event in self.events(server) if event["event"] == "not-asleep" and event["detail"] != "it has no client"]
        self.assertEqual(len(told), 1, told)

    def test_hellos(self):
        """SLEEP is the last message; nobody without the secret keeps or wakes the session, and who has it does both."""
        server = self.sleeping()
        peer, session, secret = self.client(server, ("sleep", 1))
        procedures = []
        while SLEEP not in procedures:
            procedures.append(wire.parse_call(wire.read_record(peer.sock))[2])
        self.wait(lambda: runner.sessions_of(self.tree, server)[0]["state"] == "asleep")
        for value in (1, 2):
            self.assertEqual(self.hello(server, os.urandom(16), session, value)[1], wire.DENIED)
        self.assertEqual(self.hello(server, secret, "0" * 12, 2)[1], wire.NO_SESSION)
        kept, status = self.hello(server, secret, session, 2)
        self.assertEqual(status, wire.OK)
        # That one counts now.
        with self.assertRaises(wire.Closed):
            wire.read_record(peer.sock)
        self.assertEqual(runner.sessions_of(self.tree, server)[0]["state"], "asleep")
        # What it says means nothing.
        kept.sock.send(b"nonsense")
        self.assertEqual(self.hello(server, secret, session, 1)[1], wire.OK)

        def awake():
            state = runner.sessions_of(self.tree, server)[0]["state"]
            # If it is idle for long before anybody looks, it falls asleep again.
            if state == "asleep":
                self.assertEqual(self.hello(server, secret, session, 1)[1], wire.OK)
            return state == "running"

        self.wait(awake)


if __name__ == "__main__":
    unittest.main()
