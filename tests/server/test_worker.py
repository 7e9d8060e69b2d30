#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""cricket-server with the real cricket-worker on the soft GPU, spoken to without a client library."""
import hashlib
import json
import os
import re
import shutil
import signal
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import wire  # noqa: E402
from fixture import ServerTest, alive, wait_until  # noqa: E402

SECRET = hashlib.md5(b"the client's own").digest()
DEVICES, ACK = 2, 4
STAGE_MAKE, SAVE = 7, 13


class RealWorker(ServerTest):
    real = True

    def start(self, *options, **keywords):
        # What a worker says unasked, this client does not tell from a reply.
        return super().start("--module-cache", "off", *options, **keywords)

    def peer(self, kind=wire.NEW, address=None, **fields):
        peer = wire.Peer(address or self.socket)
        self.addCleanup(peer.close)
        status, session = peer.hello(kind, secret=SECRET, **fields)
        self.assertEqual(status, wire.OK, session)
        return peer, session

    def devices(self, peer):
        """[(name, bytes)]"""
        r = peer.call(DEVICES, prog=wire.SESSION)
        r.u32()
        found = []
        for _ in range(r.u32()):
            name, _, memory = r.text(), r.take(16), r.u64()
            r.take(8 * r.u32())
            r.text(), r.u32(), r.u32(), r.u64()
            found.append((name, memory))
        r.done()
        return found

    def test_devices_and_limit(self):
        self.start("--session-memory", "1G", "--gpus", "1", env={"CRICKET_SOFT_DEVICES": "12.0:8G,9.0:2G"})
        for address in (self.socket, self.tcp):
            peer, session = self.peer(address=address)
            ((name, memory),) = self.devices(peer)
            self.assertIn("Soft GPU", name)
            self.assertEqual(memory, 1 << 30)
        self.assertEqual({s["gpu"] for s in self.ps()}, {1})

    @unittest.skipUnless(os.geteuid() == 0, "needs root")
    def test_files_that_only_root_reaches(self):
        """Installed below /root: the workers, which are not root, run copies."""
        os.chmod(self.dir, 0o700)
        self.start()
        peer, session = self.peer()
        self.assertIn("Soft GPU", self.devices(peer)[0][0])
        with open("/proc/%d/status" % self.worker_of(session)) as f:
            self.assertNotIn("Uid:\t0", f.read())

    def test_vanished_client(self):
        self.start("--log-level", "info")
        peer, session = self.peer()
        pid = self.worker_of(session)
        peer.close()
        wait_until(lambda: not alive(pid))
        within = re.search(r"the client did not come back within (\d+) ms", self.log())
        self.assertLessEqual(int(within.group(1)), 9000)
        wait_until(lambda: self.ps() == [])

    def client_process(self, before=None, pid=None):
        """A process with a session, over the UNIX socket: its number and the session's."""
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                peer = wire.Peer(self.socket)
                if before:
                    before()
                os.write(write, peer.hello(wire.NEW, secret=SECRET, pid=pid or os.getpid())[1].encode())
                if before:
                    os.close(write)
                    peer.close()
                time.sleep(600)
            finally:
                os._exit(0)
        os.close(write)
        with os.fdopen(read) as f:
            return child, f.read(12)

    def end(self, child):
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)

    def ends(self, session):
        wait_until(lambda: session not in [s["session"] for s in self.ps()])
        return re.findall(r"the client's process is dead|the client did not come back", self.log())

    def test_killed_client(self):
        """On one host the worker knows at once that its client was killed, and does not wait for it to come back."""
        self.start("--log-level", "info")
        child, session = self.client_process()
        self.assertEqual([s["session"] for s in self.ps()], [session])
        self.end(child)
        self.assertEqual(self.ends(session), ["the client's process is dead"])

    def test_killed_client_with_child(self):
        """A child that was forked holds the socket open: the session ends with the process that it belongs to."""
        self.start("--log-level", "info")
        read, write = os.pipe()

        def fork():
            if os.fork() == 0:
                os.write(write, str(os.getpid()).encode())
                time.sleep(600)
                os._exit(0)

        child, session = self.client_process(before=fork)
        grandchild = int(os.read(read, 20))
        self.addCleanup(os.kill, grandchild, signal.SIGKILL)
        # The process has closed its own end of the socket: neither is the child's end a client's.
        self.end(child)
        self.assertEqual(self.ends(session), ["the client's process is dead"])
        os.close(read)
        os.close(write)

    def test_client_that_lives(self):
        """A process that lost its connection, one that another connects for, and TCP: each has time to come back."""
        self.start("--log-level", "info")
        sessions = []
        for address, pid in ((self.socket, os.getpid()), (self.socket, 1), (self.tcp, os.getpid())):
            peer, session = self.peer(address=address, pid=pid)
            sessions.append(session)
            peer.close()
        child, forwarded = self.client_process(pid=1)
        self.end(child)
        for session in [*sessions, forwarded]:
            found = self.ends(session)
        self.assertEqual(found, ["the client did not come back"] * 4)

    def test_killed_client_that_is_held(self):
        """What is being saved is not ended: its process may be on its way into the image."""
        self.start("--log-level", "info")
        child, session = self.client_process()
        with wire.Peer(self.socket) as control:
            control.hello(wire.HELLO_CONTROL)
            answer = control.call(STAGE_MAKE)
            self.assertEqual((answer.u32(), answer.text()), (0, ""))
            stage = answer.text()
            self.assertEqual(control.call(SAVE, wire.text(session) + wire.text(stage) + wire.u32(60000) + wire.u32(0) + wire.u32(0) + bytes(16) + wire.u32(0) +
                                          wire.u32(1) + wire.u32(0)).u32(), 0)
            self.end(child)
            # ps tells the state that it knows, when a worker does not answer within a second.
            wait_until(lambda: [s["state"] for s in self.ps()] == ["frozen"])
            for _ in range(10):
                time.sleep(0.1)
                self.assertEqual([(s["session"], s["state"]) for s in self.ps()], [(session, "frozen")])
        self.assertEqual(self.ends(session), ["the client's process is dead"])

    def test_resume_needs_the_secret(self):
        self.start()
        peer, session = self.peer()
        peer.close()
        with wire.Peer(self.socket) as thief:
            self.assertEqual(thief.hello(wire.RESUME, session=session, secret=bytes(16))[0], wire.DENIED)
        with wire.Peer(self.socket) as thief:
            self.assertEqual(thief.hello(wire.RESUME, session=session, secret=SECRET[:-1] + b"?")[0], wire.DENIED)
        again, same = self.peer(wire.RESUME, session=session)
        self.assertEqual(same, session)
        self.devices(again)

    def test_killed_server(self):
        server = self.start()
        peer, session = self.peer()
        other, second = self.peer(address=self.tcp)
        pids = [self.worker_of(session), self.worker_of(second)]
        self.workers.update(pids)
        server.kill()
        server.wait()
        self.devices(peer)
        self.devices(other)
        self.start()
        self.assertEqual([s["session"] for s in self.ps()], sorted([session, second]))
        # Known once the workers have answered.
        wait_until(lambda: [s["state"] for s in self.ps()] == ["running"] * 2)
        self.devices(peer)
        for name in (session, second):
            self.assertEqual(self.ctl("kill", name).returncode, 0)
        self.assertFalse(any(alive(pid) for pid in pids))
        self.assertEqual(self.ps(), [])

    def test_killed_worker(self):
        self.start()
        peer, session = self.peer()
        os.kill(self.worker_of(session), signal.SIGKILL)
        with self.assertRaises(wire.Closed):
            wire.read_record(peer.sock)
        wait_until(lambda: self.ps() == [])

    def test_stopped_worker(self):
        """A worker that was stopped for longer than the server waits does not do behind its back what it was asked."""
        self.start()
        peer, session = self.peer()
        self.devices(peer)
        pid = self.worker_of(session)
        self.workers.add(pid)
        for words in (["pause", session, "--deadline", "1"], ["checkpoint", session, os.path.join(self.dir, "image"), "--deadline", "1"],
                      ["checkpoint", session, os.path.join(self.dir, "image"), "--stop", "--deadline", "1"]):
            os.kill(pid, signal.SIGSTOP)
            done = self.ctl(*words)
            self.assertEqual(done.returncode, 1)
            self.assertIn("does not answer", done.stderr)
            os.kill(pid, signal.SIGCONT)
            wait_until(lambda: self.ctl("stats", session).returncode == 0)
            self.devices(peer)
            # What it does behind its back stays done: it would not run again.
            wait_until(lambda: [s["state"] for s in self.ps()] == ["running"], what="not running after " + words[0])
        self.assertEqual(self.ctl("checkpoint", session, os.path.join(self.dir, "image")).returncode, 0)

    def test_checkpoint_on_two_servers(self):
        first = self.start()
        image = os.path.join(self.dir, "image")
        peer, session = self.peer()
        self.devices(peer)
        done = self.ctl("checkpoint", session, image)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.devices(peer)
        done = self.ctl("checkpoint", session, image + "2", "--stop")
        self.assertEqual(done.returncode, 0, done.stderr)
        first.kill()
        first.wait()
        self.start(socket=self.socket + "2")
        address = "unix:" + self.socket + "2"
        done = self.ctl("restore", image + "2", server=address)
        self.assertEqual(done.returncode, 0, done.stderr)
        peer, same = self.peer(wire.RESUME, address=self.socket + "2", session=session)
        self.assertGreaterEqual(peer.generation, 2, "a restore raises the generation")
        self.devices(peer)
        self.assertEqual(json.loads(self.ctl("ps", "--json", server=address).stdout)["sessions"][0]["session"], session)
        os.truncate(image + "/manifest", 100)
        self.assertEqual(self.ctl("kill", session, server=address).returncode, 0)
        self.assertEqual(self.ctl("restore", image, server=address).returncode, 1)
        self.assertEqual(json.loads(self.ctl("ps", "--json", server=address).stdout)["sessions"], [])


class RefusedCalls(ServerTest):
    """Its worker makes one call twice that the cage refuses (caged_worker.c)."""
    real = True

    def setUp(self):
        super().setUp()
        shutil.copy(os.environ["CKT_TEST_CAGED"], os.path.join(self.libexec, "cricket-worker"))

    def hello(self):
        with wire.Peer(self.socket) as peer:
            self.assertEqual(peer.hello(wire.NEW)[0], wire.FAILED)
        wait_until(lambda: self.ps() == [])
        self.assertIn("ended (exit code 0)", self.log(), "both calls got EPERM")

    def test_named_once(self):
        """Once for each session, with its name, and what to do about it."""
        self.start()
        for turn in (1, 2):
            self.hello()
            lines = [line for line in self.log().splitlines() if "mq_unlink" in line]
            self.assertEqual(len(lines), turn, lines)
            self.assertRegex(lines[-1], r"session [0-9a-f]{12}: .*system call mq_unlink \([0-9]+\) with EPERM; .*report it.*--cage off")


if __name__ == "__main__":
    unittest.main(verbosity=2)
