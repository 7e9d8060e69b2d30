#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What core dumps hold: a server and a worker leave none, and a program's has neither the session's key nor a token."""
import base64
import ctypes
import os
import resource
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from whole import Whole, runner  # noqa: E402

PR_SET_CHILD_SUBREAPER = 36
PAGE, KEY_BYTES = 4096, 32
# In a program's memory twice, so that a dump without it is none: once as it is, and not in this text.
MARK = "mark of a program"[::-1]

CLIENT = """
import ctypes, os, sys
cuda, context = ctypes.CDLL(sys.argv[1]), ctypes.c_void_p()
if cuda.cuInit(0) or cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0):
    sys.exit(1)
mark = ctypes.create_string_buffer(sys.argv[2].encode()[::-1])
print("ready", flush=True)
sys.stdin.readline()
os.abort()
"""


def dump_freely():
    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))


def files_in(directory):
    """Cores of this host's usual patterns."""
    return [os.path.join(directory, name) for name in os.listdir(directory) if name.startswith("core")]


def left_out(pid):
    """The first bytes of each page of its own that its dump leaves out (dd)."""
    found, begin, anonymous = [], 0, False
    with open("/proc/%d/smaps" % pid, encoding="utf-8") as f, open("/proc/%d/mem" % pid, "rb") as memory:
        for line in f:
            words = line.split()
            if "-" in words[0] and not words[0].endswith(":"):
                begin, end = (int(number, 16) for number in words[0].split("-"))
                anonymous = len(words) == 5 and words[1].startswith("rw") and end - begin == PAGE
            elif words[0] == "VmFlags:" and "dd" in words and anonymous:
                memory.seek(begin)
                found.append(memory.read(KEY_BYTES))
    return [key for key in found if any(key)]


class Cores(Whole):
    def setUp(self):
        super().setUp()
        self.cores = os.path.join(self.dir, "cores")
        os.mkdir(self.cores)
        self.plain = os.path.join(self.dir, "plain.token")
        with open(os.open(self.plain, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="utf-8") as f:
            f.write(base64.b64encode(os.urandom(24)).decode() + "\n")

    def can_dump(self):
        """Skips where a process that may dump does not."""
        pid = os.fork()
        if pid == 0:
            os.chdir(self.cores)
            dump_freely()
            os.abort()
        if not os.WCOREDUMP(os.waitpid(pid, 0)[1]) or not files_in(self.cores):
            self.skipTest("this host writes no core dumps into the working directory")
        for path in files_in(self.cores):
            os.unlink(path)

    def started(self, *options):
        server = runner.Server(self.tree, os.path.join(self.dir, "server"), "soft", ("--token-file", self.plain, *options),
                               cwd=self.cores, preexec_fn=dump_freely)
        self.servers.append(server)
        return server

    def client(self, server, **popen):
        environment = {**runner.clean_environment(), "REMOTE_GPU_ADDRESS": server.address, "CRICKET_TOKEN_FILE": self.plain, "PYTHONMALLOC": "malloc"}
        client = subprocess.Popen([sys.executable, "-c", CLIENT, self.tree.library("libcuda.so.1"), MARK], env=environment, stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, text=True, **popen)
        self.addCleanup(client.stdin.close)
        self.addCleanup(client.stdout.close)
        self.addCleanup(client.wait)
        self.addCleanup(client.kill)
        self.assertEqual(client.stdout.readline(), "ready\n")
        return client

    def test_server(self):
        """It holds the token, and its key."""
        self.can_dump()
        server = self.started()
        self.client(server)
        server.process.send_signal(signal.SIGABRT)
        status = os.waitpid(server.process.pid, 0)[1]
        server.process.returncode = -signal.SIGABRT
        self.assertEqual(os.WTERMSIG(status), signal.SIGABRT)
        self.assertFalse(os.WCOREDUMP(status))
        self.assertEqual(files_in(self.cores), [])

    def worker_ends(self, *options):
        """The status of a worker that aborts, which ours becomes when its server ends."""
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self.addCleanup(ctypes.CDLL(None).prctl, PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
        server = self.started(*options)
        self.client(server)
        (worker,) = server.workers()
        with open("/proc/%d/limits" % worker, encoding="utf-8") as f:
            (limit,) = [line.split()[4:6] for line in f if line.startswith("Max core file size")]
        owner = os.stat("/proc/%d/environ" % worker).st_uid
        server.kill()
        os.kill(worker, signal.SIGABRT)
        status = os.waitpid(worker, 0)[1]
        self.assertEqual(os.WTERMSIG(status), signal.SIGABRT)
        self.assertFalse(os.WCOREDUMP(status))
        # 1 is the kernel's word for no dump, not even to a program.
        self.assertIn(limit, (["1", "1"], ["0", "0"]))
        return owner

    def test_worker(self):
        owner = self.worker_ends()
        if os.geteuid() == 0:
            self.assertEqual(owner, 0, "the kernel gives files of a process that cannot be dumped to root")

    def test_worker_without_cage(self):
        self.worker_ends("--cage", "off")

    def test_program(self):
        """Its dump is its user's own, and goes to whoever looks for the program's fault."""
        self.can_dump()
        server = self.started()
        client = self.client(server, cwd=self.cores, preexec_fn=dump_freely)
        keys = left_out(client.pid)
        self.assertEqual(len(keys), 1, "one page that dumps leave out has the session's key")
        client.stdin.write("\n")
        client.stdin.flush()
        self.assertEqual(client.wait(60), -signal.SIGABRT)
        (path,) = files_in(self.cores)
        with open(path, "rb") as f:
            dump = f.read()
        with open(self.plain, "rb") as f:
            token = f.read().strip()
        self.assertIn(MARK.encode()[::-1], dump)
        self.assertNotIn(keys[0], dump, "the session's key")
        self.assertNotIn(token, dump, "the token")


if __name__ == "__main__":
    unittest.main(verbosity=2)
