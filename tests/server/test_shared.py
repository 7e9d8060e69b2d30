#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Who asks a worker for a session's exported memory: other users, wrong secrets, what is no question; and that the session does not mind."""
import os
import signal
import struct
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from whole import Whole  # noqa: E402

ASK = """
import array, os, socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.settimeout(20)
s.connect(b"\\0" + bytes.fromhex(sys.argv[1]))
if sys.argv[2] != "-":
    try:
        s.send(bytes.fromhex(sys.argv[2]))
    except BrokenPipeError:
        pass
try:
    data, control, _, _ = s.recvmsg(4096, socket.CMSG_SPACE(16))
except ConnectionResetError:
    data, control = b"", []
print(len(data), data[:4].hex() or "-", len(control))
"""
UNKNOWN = 0xFFFFFFFF
# server/worker/ipc/ipc_talk.h: a question, and the size of its answer; rpc/ipc.h: a handle.
QUESTION, ANSWER_BYTES = struct.Struct("=8s16sIIII12s8sI"), 168
HANDLE = struct.Struct("=8s12sI8s16s16s")
FETCH = 1
NOTHING = (ANSWER_BYTES, "00000000")


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
        server = self.server("owner")
        self.program, _ = self.start(server)
        (self.worker,) = server.workers()
        (self.name,) = abstract_sockets(self.worker)
        self.uid = os.stat("/proc/%d" % self.worker).st_uid

    def ask(self, message, uid=None):
        """What comes back: (bytes, how they begin, descriptors)"""
        options = {} if uid is None or os.geteuid() else {"user": uid, "extra_groups": []}
        done = subprocess.run(["/usr/bin/python3", "-c", ASK, self.name.hex(), message.hex() if message else "-"], capture_output=True, check=False,
                              timeout=60, cwd="/", **options)
        self.assertEqual(done.returncode, 0, done.stderr)
        size, begin, descriptors = done.stdout.decode().split()
        return int(size), begin, int(descriptors)

    def question(self, uid, secret=b"\0" * 16, kind=1, magic=b"CKTTALK1"):
        return QUESTION.pack(magic, secret, uid, kind, FETCH, 0, b"0123456789ab", b"", 0)

    def handle(self, wanted):
        """The kind and secret of a handle that the program has."""
        pid = self.client()
        with open("/proc/%d/maps" % pid, encoding="utf-8") as f:
            ranges = [line.split()[0].split("-") for line in f if line.split()[1].startswith("rw")]
        with open("/proc/%d/mem" % pid, "rb", 0) as memory:
            for begin, end in ((int(b, 16), int(e, 16)) for b, e in ranges):
                try:
                    memory.seek(begin)
                    text = memory.read(min(end - begin, 64 << 20))
                except (OSError, ValueError, OverflowError):
                    continue
                at = text.find(b"CKTIPC02")
                while at >= 0 and at + HANDLE.size <= len(text):
                    _, _, kind, _, secret, zeros = HANDLE.unpack_from(text, at)
                    if kind == wanted and any(secret) and not any(zeros):
                        return secret
                    at = text.find(b"CKTIPC02", at + 1)
        return None

    def client(self):
        """The process with the session: cricket-run has become it."""
        return self.program.process.pid

    @unittest.skipIf(os.geteuid() != 0, "needs root to be the worker's user")
    def test_right_secret(self):
        """What the others are refused is there: with the secret, and of the owner, as whom the program came (over TCP nobody)."""
        secret = self.handle(1)
        self.assertTrue(secret, "the program has a handle of memory")
        size, begin, descriptors = self.ask(self.question(UNKNOWN, secret), self.uid)
        self.assertEqual((size, begin), (ANSWER_BYTES, "01000000"))
        self.assertEqual(descriptors, 1)
        wrong = bytes([secret[0] ^ 1]) + secret[1:]
        self.assertEqual(self.ask(self.question(UNKNOWN, wrong), self.uid), (*NOTHING, 0))
        self.assertEqual(self.ask(self.question(UNKNOWN, secret, kind=2), self.uid), (*NOTHING, 0))
        # Another owner's session is not heard, and neither is another user of the host.
        for owner in (0, self.uid, 54321):
            self.assertEqual(self.ask(self.question(owner, secret), self.uid), (0, "-", 0))
        for user in (0, 54321):
            self.assertEqual(self.ask(self.question(UNKNOWN, secret), user), (0, "-", 0))
        self.finish(self.program)

    @unittest.skipIf(os.geteuid() != 0, "needs root to be the worker's user")
    def test_wrong_secret(self):
        """Nothing for it, and no descriptor."""
        for kind in (0, 1, 2, 3):
            self.assertEqual(self.ask(self.question(UNKNOWN, kind=kind), self.uid), (*NOTHING, 0))
        self.finish(self.program)

    def test_killed_worker_leaves_nothing(self):
        """The pages of its events, which others could open by name, go with the session."""
        def pages(worker=None):
            """Inodes of those that are there; of a worker: that it holds a lock on."""
            if worker is None:
                return {os.lstat(os.path.join(path, name)).st_ino for path, _, names in os.walk("/dev/shm") for name in names}
            with open("/proc/locks", encoding="utf-8") as f:
                locks = [line.split() for line in f]
            return {int(words[5].split(":")[2]) for words in locks if words[1] == "FLOCK" and int(words[4]) == worker}

        mine = pages(self.worker) & pages()
        self.assertTrue(mine, "the program shares events")
        os.kill(self.worker, signal.SIGKILL)
        self.wait(lambda: not mine & pages())
        self.program.process.kill()
        # A server that is killed together with its worker: the next one removes what they left.
        server = self.server("second")
        second, _ = self.start(server, name="q")
        (worker,) = server.workers()
        mine = pages(worker) & pages()
        self.assertTrue(mine)
        server.kill()
        os.kill(worker, signal.SIGKILL)
        self.assertTrue(mine & pages())
        self.server("third")
        self.wait(lambda: not mine & pages())
        second.process.kill()

    def test_no_question(self):
        good = self.question(UNKNOWN)
        if os.geteuid() == 0:
            self.assertEqual(self.ask(good, self.uid), (*NOTHING, 0))
        for message in (b"x", good[:-1], good + b"x", b"\xff" * 32, b"\0" * 4096, self.question(UNKNOWN, magic=b"CKTIPC01"), None):
            self.assertEqual(self.ask(message, self.uid), (0, "-", 0))
        self.finish(self.program)

    @unittest.skipIf(os.geteuid() != 0, "needs root to be another user")
    def test_other_user(self):
        """Not even that a question was heard."""
        for uid in (0, 54321):
            self.assertEqual(self.ask(self.question(UNKNOWN), uid), (0, "-", 0))
        self.finish(self.program)


if __name__ == "__main__":
    unittest.main(verbosity=2)
