#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Who may open a session's exported memory: programs of its owner, also after a restart of the server, and nobody else."""
import contextlib
import os
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from whole import Whole, runner  # noqa: E402

CLIENT = os.environ["CKT_TEST_SHARE_CLIENT"]
INVALID_VALUE = 1
NCCL_REMOTE_ERROR = 6


def abstract_sockets(pid):
    """Names of the abstract sockets that the process holds."""
    inodes = set()
    for fd in os.listdir("/proc/%d/fd" % pid):
        try:
            target = os.readlink("/proc/%d/fd/%s" % (pid, fd))
        except OSError:
            continue
        if target.startswith("socket:["):
            inodes.add(target[8:-1])
    with open("/proc/net/unix", encoding="utf-8") as f:
        lines = [line.split() for line in f][1:]
    return [words[7][1:].encode() for words in lines if len(words) > 7 and words[6] in inodes and words[7].startswith("@")]


class Shared(Whole):
    def setUp(self):
        super().setUp()
        self.shown = {name: self.token(name) for name in ("alice", "bob")}
        self.givers = []

    def tearDown(self):
        for giver in self.givers:
            giver.kill()
            giver.wait()
            giver.stdin.close()
        super().tearDown()

    def owned(self, name="server"):
        return self.server(name, "--tokens", self.tokens, "--audit", os.path.join(self.dir, "audit"))

    def command(self, server, owner, *words):
        return {"args": [self.tree.tool("cricket-run"), "--server", server.address, CLIENT, *words],
                "env": {**runner.clean_environment(), "HOME": self.home, "CRICKET_TOKEN_FILE": self.shown[owner]}}

    def give(self, server, owner, name):
        """The file with the handle of a program that lives until the test's end."""
        path = os.path.join(self.dir, name)
        self.givers.append(subprocess.Popen(**self.command(server, owner, "give", path), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL))
        self.wait(lambda: os.path.exists(path))
        return path

    def take(self, server, owner, path):
        """The result of cuIpcOpenMemHandle, and a byte of the memory."""
        done = subprocess.run(**self.command(server, owner, "take", path), capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return tuple(int(word) for word in done.stdout.split())

    def refusals(self):
        return [r for r in self.audited(os.path.join(self.dir, "audit")) if r.get("call") == "share"]

    def log_of(self, server):
        with open(server.log, encoding="utf-8") as f:
            return f.read()

    def test_owners(self):
        """The same handle: memory for one owner's programs, CUDA's error for another's, by name in the log and the audit log."""
        server = self.owned()
        path = self.give(server, "alice", "handle")
        self.assertEqual(self.take(server, "alice", path), (0, 7))
        self.assertEqual(self.refusals(), [])
        self.assertEqual(self.take(server, "bob", path), (INVALID_VALUE, 0))
        # A thread writes the audit log.
        self.wait(self.refusals)
        (refusal,) = self.refusals()
        self.assertEqual((refusal["event"], refusal["result"], refusal["owner"]), ("refused", "refused", "token:bob"))
        self.assertRegex(refusal["reason"], r"session [0-9a-f]{12} belongs to token:alice: sessions of different owners share nothing")
        self.assertRegex(self.log_of(server), r"session [0-9a-f]{12} \(token:bob\) may not share memory with session [0-9a-f]{12}: it belongs to token:alice")
        # A handle of nobody's looks the same to the program.
        with open(path, "r+b") as f:
            f.seek(8)
            f.write(b"0123456789ab")
        self.assertEqual(self.take(server, "bob", path), (INVALID_VALUE, 0))
        self.assertEqual(len(self.refusals()), 1)

    def test_wrong_handles(self):
        """One bit of the secret, of the kind, of the magic."""
        server = self.owned()
        path = self.give(server, "alice", "handle")
        with open(path, "rb") as f:
            good = f.read()
        for at in (0, 20, 32, 47):
            with open(path, "wb") as f:
                f.write(good[:at] + bytes([good[at] ^ 1]) + good[at + 1:])
            self.assertEqual(self.take(server, "alice", path), (INVALID_VALUE, 0), at)
        # What earlier builds named a socket in is not read.
        with open(path, "wb") as f:
            f.write(good[:24] + b"12345678" + good[32:])
        self.assertEqual(self.take(server, "alice", path), (0, 7))

    def test_next_server(self):
        """Workers that a new server found again are of the groups they were of, whatever they say of their owners."""
        first = self.owned()
        path = self.give(first, "alice", "handle")
        first.kill()
        os.unlink(os.path.join(first.directory, "address"))
        second = self.owned()
        self.wait(lambda: "found again" in self.log_of(second))
        self.wait(lambda: self.take(second, "alice", path) == (0, 7))
        self.assertEqual(self.take(second, "bob", path), (INVALID_VALUE, 0))

        def of_bob():
            # Alice may have been refused while the new server did not know whose the worker is.
            return [r for r in self.refusals() if r["owner"] == "token:bob"]

        self.wait(of_bob)
        self.assertEqual(len(of_bob()), 1)

    def test_no_names(self):
        """Workers are found by descriptors alone: they listen at no address that others could try."""
        server = self.owned()
        self.give(server, "alice", "handle")
        (worker,) = server.workers()
        self.assertEqual(abstract_sockets(worker), [])


    def join(self, server, owner, path, rank):
        self.givers.append(subprocess.Popen(**self.command(server, owner, "join", path, str(rank)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        return self.givers[-1]

    def test_communicators(self):
        """The same unique id: a communicator for one owner's programs, NCCL's error for another's, by name."""
        server = self.owned()
        path = os.path.join(self.dir, "id")
        first = self.join(server, "alice", path, 0)
        self.wait(lambda: os.path.exists(path))
        # The root listens at no name.
        (root,) = server.workers()
        self.assertEqual(abstract_sockets(root), [])
        self.assertEqual(self.join(server, "bob", path, 1).communicate(timeout=60)[0], "%d\n" % NCCL_REMOTE_ERROR)
        # A thread writes the audit log.
        self.wait(self.refusals)
        (refusal,) = self.refusals()
        self.assertEqual(refusal["owner"], "token:bob")
        self.assertRegex(refusal["reason"], r"session [0-9a-f]{12} belongs to token:alice: sessions of different owners share nothing")
        # The root was not told of the stranger, and goes on waiting.
        second = self.join(server, "alice", path, 1)
        self.assertEqual([program.communicate(timeout=60)[0] for program in (first, second)], ["0\n", "0\n"])


class Leftovers(Whole):
    def test_no_files(self):
        """A worker that shares events has no names for them, so that none are left where it is killed."""
        def names():
            # Fuzz targets and other tests, which may run beside this one, have directories there.
            with os.scandir("/dev/shm") as found:
                return {entry.name for entry in found if entry.is_file(follow_symlinks=False)}

        before = names()
        server = self.server("owner")
        program, _ = self.start(server)
        (worker,) = server.workers()
        shares = False
        for fd in os.listdir("/proc/%d/fd" % worker):
            # One that is closed meanwhile is none.
            with contextlib.suppress(FileNotFoundError):
                shares |= "cricket-shared-event" in os.readlink("/proc/%d/fd/%s" % (worker, fd))
        self.assertTrue(shares, "the program shares events")
        self.assertEqual(names() - before, set())
        self.assertEqual(os.listdir("/proc/%d/root/dev/shm" % worker), [])
        os.kill(worker, signal.SIGKILL)
        program.process.kill()


if __name__ == "__main__":
    unittest.main(verbosity=2)
