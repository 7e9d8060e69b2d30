#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Automatic images that a second server keeps, and sessions that go on there when the first one is lost."""
import contextlib
import os
import random
import signal
import socket
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from takers import Taker  # noqa: E402
from whole import Whole, runner  # noqa: E402

# Within four fifths of it the servers and the process between them must hear of each other, or the session moves.
LEASE = "5s"


class Link:
    """The way between the servers: cut, it carries nothing and closes nothing."""

    def __init__(self, directory, upstream):
        self.upstream = upstream
        self.whole = threading.Event()
        self.whole.set()
        self.address = "unix:" + os.path.join(directory, "link")
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.address[5:])
        self.listener.listen(16)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            near, _ = self.listener.accept()
            far = socket.socket(socket.AF_UNIX)
            try:
                self.whole.wait()
                far.connect(self.upstream)
            except OSError:
                near.close()
                continue
            threading.Thread(target=self.pair, args=(near, far), daemon=True).start()

    def pair(self, near, far):
        with near, far:
            back = threading.Thread(target=self.carry, args=(far, near), daemon=True)
            back.start()
            self.carry(near, far)
            back.join()

    def carry(self, source, target):
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                self.whole.wait()
                target.sendall(data)
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


class Replicate(Whole):
    def setUp(self):
        super().setUp()
        self.takers = []

    def tearDown(self):
        for taker in self.takers:
            if not taker.process.stdout.closed:
                with contextlib.suppress(OSError):
                    taker.process.kill()
                    taker.end()
        super().tearDown()

    def images(self, name):
        return os.path.join(self.dir, "images-" + name)

    def replicas(self, name):
        """The sessions of which a chain counts there."""
        with contextlib.suppress(FileNotFoundError):
            return [d for d in os.listdir(self.images(name)) if os.path.exists(os.path.join(self.images(name), d, "state"))]
        return []

    def saving(self, name, *options, env=None):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(self.dir, name, "address"))
        server = self.server(name, "--auto-checkpoint", "1s", "--auto-dir", self.images(name), "--claim-timeout", "30", *options,
                             env={"CRICKET_SOFT_DEVICES": "12.0:8G", **(env or {})})
        server.tcp, server.address = server.address, "unix:" + server.socket
        return server

    def pair(self, *options):
        """The server that has the session, and the one that has the replica."""
        second = self.saving("second")
        return self.saving("first", "--replicate", second.address, "--replicate-lease", LEASE, *options), second

    def taker(self, first, second, mib=4, **env):
        taker = Taker(self, first, CRICKET_STANDBY=second.address, CRICKET_DURABLE="1", **env)
        self.takers.append(taker)
        self.assertEqual(taker.ask("alloc", mib), 0)
        self.assertEqual(taker.ask("fill", 7), 0)
        return taker

    def image(self, server):
        sessions = runner.sessions_of(self.tree, server)
        return sessions[0].get("automatic_image") if len(sessions) == 1 else None

    def state(self, name, session):
        with contextlib.suppress(FileNotFoundError), open(os.path.join(self.images(name), session, "state"), encoding="utf-8") as f:
            return f.read()
        return None

    def executed(self, name, session):
        text = self.state(name, session) or "executed -1\n"
        return int(text.split("executed ")[1].split()[0])

    def replicated(self, server):
        """Waits until the replica has all that the session has done; the session."""
        found = {}

        def whole():
            sessions = runner.sessions_of(self.tree, server)
            image = sessions[0].get("automatic_image") if len(sessions) == 1 else None
            if image and image.get("when") and not image["behind"]:
                found["session"] = sessions[0]["session"]
                return self.executed("second", found["session"]) >= image["executed"]
            return False

        self.wait(whole)
        return found["session"]

    @staticmethod
    def workers(server):
        """Without the process that sends replicas."""
        found = []
        for pid in server.workers():
            # It may end between the two calls.
            with contextlib.suppress(FileNotFoundError, ProcessLookupError), open(f"/proc/{pid}/comm", encoding="utf-8") as f:
                if f.read().startswith("cricket-worker"):
                    found.append(pid)
        return found

    def kill_all(self, server):
        workers = self.workers(server)
        server.kill()
        for worker in workers:
            # It may have ended with its lease.
            with contextlib.suppress(ProcessLookupError):
                os.kill(worker, signal.SIGKILL)
        runner.end_all(workers, "its server was killed")

    # ---- The first server is lost

    def test_lost(self):
        """Server and worker die, and the session goes on at the replica; it has its own images there."""
        first, second = self.pair()
        taker = self.taker(first, second)
        session = self.replicated(first)
        self.kill_all(first)
        self.assertEqual(taker.ask("check", 7), 0)
        self.assertEqual(runner.sessions_of(self.tree, second)[0]["session"], session)
        self.assertFalse(os.path.exists(os.path.join(self.images("second"), session, "replica")))
        before = self.executed("second", session)
        self.assertEqual(taker.ask("fill", 8), 0)
        self.wait(lambda: self.executed("second", session) > before)
        # The first one comes back with what it had: it must not go on there, and goes away.
        first = self.saving("first", "--replicate", second.address, "--replicate-lease", LEASE)
        self.assertEqual(taker.ask("check", 8), 0)
        self.assertEqual(runner.sessions_of(self.tree, first), [])
        taker.end()
        self.wait(lambda: not self.replicas("second"))

    def test_ended(self):
        """A session's end removes its replica, too."""
        first, second = self.pair()
        taker = self.taker(first, second)
        self.replicated(first)
        taker.end()
        self.wait(lambda: not os.listdir(self.images("second")) and not os.listdir(self.images("first")))

    def test_server_alone_killed(self):
        """The worker of a dead server ends with the lease, and only then its session starts at the replica."""
        first, second = self.pair()
        taker = self.taker(first, second)
        self.replicated(first)
        workers = self.workers(first)
        first.kill()
        # Its client still reaches the worker; nobody moves the worker's deadline.
        runner.end_all(workers, "the lease is over")
        self.assertEqual(taker.ask("check", 7), 0)
        self.assertEqual(len(runner.sessions_of(self.tree, second)), 1)

    def test_server_comes_back(self):
        """A server that was started again within the lease has its session still."""
        first, second = self.pair()
        taker = self.taker(first, second)
        session = self.replicated(first)
        self.kill_all(first)
        first = self.saving("first", "--replicate", second.address, "--replicate-lease", LEASE)
        self.assertEqual(taker.ask("check", 7), 0)
        # At one of the two, and not at both.
        both = runner.sessions_of(self.tree, first) + runner.sessions_of(self.tree, second)
        self.assertEqual([s["session"] for s in both], [session])

    # ---- What is cut off

    def test_replica_killed(self):
        """Without an answer of the other server the worker ends; once that one is back, the session goes on here or there."""
        first, second = self.pair()
        taker = self.taker(first, second)
        session = self.replicated(first)
        workers = self.workers(first)
        second.kill()
        runner.end_all(workers, "the lease is over")
        self.wait(lambda: not runner.sessions_of(self.tree, first))
        second = self.saving("second")
        self.assertEqual(taker.ask("check", 7), 0)
        both = runner.sessions_of(self.tree, first) + runner.sessions_of(self.tree, second)
        self.assertEqual([s["session"] for s in both], [session])

    def test_cut(self):
        """Only the servers do not reach each other: the session goes on at one of them, and its first server drops what it has."""
        second = self.saving("second")
        link = Link(self.dir, second.socket)
        first = self.saving("first", "--replicate", link.address, "--replicate-lease", LEASE)
        taker = self.taker(first, second)
        session = self.replicated(first)
        workers = self.workers(first)
        link.whole.clear()
        # Its client reaches both.
        runner.end_all(workers, "the lease is over")
        self.assertEqual(taker.ask("check", 7), 0)
        self.assertEqual(taker.ask("fill", 8), 0)
        self.wait(lambda: not runner.sessions_of(self.tree, first))
        self.assertEqual(len(runner.sessions_of(self.tree, second)), 1)
        link.whole.set()
        self.wait(lambda: "went on from its replica" in self.log_of(first))
        self.assertEqual(taker.ask("check", 8), 0)
        self.assertIn(session, [s["session"] for s in runner.sessions_of(self.tree, second)])

    def test_cut_healed(self):
        """A cut that is shorter than the lease is not noticed."""
        second = self.saving("second")
        link = Link(self.dir, second.socket)
        first = self.saving("first", "--replicate", link.address, "--replicate-lease", "60s")
        taker = self.taker(first, second)
        self.replicated(first)
        workers = self.workers(first)
        link.whole.clear()
        self.assertEqual(taker.ask("fill", 8), 0)
        self.wait(lambda: not (self.image(first) or {"behind": 1})["behind"])
        link.whole.set()
        self.replicated(first)
        self.assertEqual(self.workers(first), workers)
        self.assertEqual(taker.ask("check", 8), 0)

    def test_never_reached(self):
        """A session without a replica needs no lease; why there is none is told once."""
        absent = os.path.join(self.dir, "absent")
        first = self.saving("first", "--replicate", "unix:" + absent, "--replicate-lease", LEASE)
        taker = Taker(self, first)
        self.takers.append(taker)
        self.assertEqual(taker.ask("alloc", 1), 0)
        self.wait(lambda: "replica" in ((self.image(first) or {}).get("problem") or ""))
        self.wait(lambda: self.image(first)["taken"] >= 1)
        self.assertEqual(taker.ask("fill", 3), 0)
        self.wait(lambda: self.image(first)["taken"] >= 2)
        self.assertEqual(taker.ask("check", 3), 0)
        self.assertEqual(self.log_of(first).count("no replica of its image"), 1)

    def test_faults(self):
        """The process that sends dies at each point: nothing counts that is not whole, and nothing of the session is lost."""
        for point in (224, 225, 226):
            with self.subTest(point=point):
                second = self.saving("second")
                first = self.saving("first", "--replicate", second.address, "--replicate-lease", LEASE, env={"CRICKET_FAULT": str(point)})
                taker = self.taker(first, second)
                self.wait(lambda: "starting another one" in self.log_of(first))
                self.assertEqual(len(self.replicas("second")), point == 226)
                self.assertEqual(taker.ask("check", 7), 0)
                self.kill_all(first)
                first = self.saving("first", "--replicate", second.address, "--replicate-lease", LEASE)
                self.assertEqual(taker.ask("check", 7), 0)
                taker.end()
                self.wait(lambda: not self.replicas("second") and not self.replicas("first"))
                self.kill_all(first)
                self.kill_all(second)

    # ---- Rights and room

    def test_rights(self):
        """Only an administrator's token may keep replicas."""
        user = self.token("alice")
        second = self.saving("second", "--tokens", self.tokens)
        first = self.saving("first", "--replicate", second.tcp, "--replicate-lease", LEASE, "--replicate-token", user)
        taker = Taker(self, first)
        self.takers.append(taker)
        self.assertEqual(taker.ask("alloc", 1), 0)
        self.wait(lambda: "only an administrator" in ((self.image(first) or {}).get("problem") or ""))
        self.assertEqual(os.listdir(self.images("second")), [])
        self.assertEqual(taker.ask("fill", 3), 0)
        self.assertEqual(taker.ask("check", 3), 0)

    def test_no_room(self):
        """The other server has no room: one line there, the older replica and the images here stay."""
        token = self.token("alice", "--role", "administrator")
        user = self.token("bob")
        second = self.saving("second", "--tokens", self.tokens, "--image-space", "24M")
        first = self.saving("first", "--tokens", self.tokens, "--replicate", second.tcp, "--replicate-lease", LEASE, "--replicate-token", token)
        unix, first.address = first.address, first.tcp
        taker = self.taker(first, second, CRICKET_TOKEN_FILE=user)
        first.address = unix
        session = self.replicated(first)
        self.assertEqual(taker.ask("alloc", 64), 0)
        self.assertEqual(taker.ask("fill", 8), 0)
        self.wait(lambda: "replica" in ((self.image(first) or {}).get("problem") or ""))
        before = self.executed("second", session)
        self.wait(lambda: self.image(first)["executed"] > before)
        self.assertEqual(taker.ask("check", 8), 0)
        self.assertEqual(self.log_of(first).count("no replica of its image"), 1)
        # What did not fit has left nothing.
        left = [n for n in os.listdir(os.path.join(self.images("second"), session)) if n.isdigit()]
        self.assertEqual(len(left), self.state("second", session).count("\nimage "))

    def test_forged(self):
        """A replica does not start before the lease is over, and a chain without `replica` is nobody else's to write."""
        first, second = self.pair()
        taker = self.taker(first, second)
        session = self.replicated(first)
        self.kill_all(first)
        self.assertEqual(taker.ask("check", 7), 0)
        self.assertIn("its server may still run it", self.log_of(second))
        state = self.state("second", session)
        first = self.saving("first", "--replicate", second.address, "--replicate-lease", LEASE)
        # Its old server asks, for it has the chain and a client that comes to it first.
        other = Taker(self, first)
        self.takers.append(other)
        self.assertEqual(other.ask("alloc", 1), 0)
        self.wait(lambda: len(self.replicas("second")) == 2)
        self.assertIn("generation", state)
        self.assertEqual(self.state("second", session).split("copy ")[1].split()[0], state.split("copy ")[1].split()[0])
        self.assertEqual(taker.ask("check", 7), 0)

    def test_kills(self):
        """The first server and its worker die at random moments (CKT_TEST_KILLS of them)."""
        seed = int(os.environ.get("CKT_TEST_SEED") or random.randrange(1 << 32))
        print(f"CKT_TEST_SEED={seed}", file=sys.stderr)
        chance = random.Random(seed)
        names = ["first", "second"]
        for round_ in range(int(os.environ.get("CKT_TEST_KILLS", "3"))):
            with self.subTest(round=round_):
                first, second = self.pair()
                taker = self.taker(first, second)
                self.replicated(first)
                self.assertEqual(taker.ask("fill", 9), 0)
                time.sleep(chance.random() * 1.5)
                self.kill_all(first)
                taker.process.stdin.write("check 9\nfill 10\ncheck 10\n")
                taker.process.stdin.flush()
                self.assertEqual([taker.process.stdout.readline() for _ in range(3)], ["0\n"] * 3)
                taker.end()
                self.wait(lambda: not self.replicas(names[1]))
                self.kill_all(second)


if __name__ == "__main__":
    unittest.main()
