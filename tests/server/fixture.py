# SPDX-License-Identifier: Apache-2.0
"""A cricket-server with a fake worker in a temporary directory."""
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.realpath(__file__))
SERVER, CTL, DRIVER, WORKER, SOFT = (os.environ.get("CKT_TEST_" + name, "") for name in ("SERVER", "CTL", "DRIVER", "WORKER", "SOFT"))

GUARD = 60  # seconds after which a test gives up; nothing is measured by it


def wait_until(condition, timeout=GUARD, what="it did not happen"):
    end = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(what)
        time.sleep(0.02)


def alive(pid):
    try:
        with open("/proc/%d/stat" % pid) as f:
            return f.read().rsplit(")", 1)[1].split()[0] != "Z"
    # It may go between the two calls.
    except (FileNotFoundError, ProcessLookupError):
        return False


class ServerTest(unittest.TestCase):
    real = False  # the real worker on the soft GPU

    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="ckt-")
        os.chmod(self.dir, 0o755)  # workers run as nobody when we are root
        self.libexec = os.path.join(self.dir, "libexec")
        os.makedirs(os.path.join(self.libexec, "soft"))
        if self.real:
            files = ((WORKER, "cricket-worker"), (SOFT, "soft/libcuda.so.1"))
        else:
            files = ((os.path.join(HERE, "wire.py"), "wire.py"), (os.path.join(HERE, "fake_worker.py"), "cricket-worker"),
                     (DRIVER, "soft/libcuda.so.1"))
        for source, target in files:
            shutil.copy(source, os.path.join(self.libexec, target))
        # Other users run it too, and may not enter where it was built.
        self.cricketctl = shutil.copy(CTL, self.libexec)
        self.socket = os.path.join(self.dir, "s")
        self.servers = []
        self.workers = set()

    def tearDown(self):
        for server in self.servers:
            if server.poll() is None:
                self.note_workers()
                server.kill()
            server.wait()
        for pid in self.workers:
            if alive(pid):
                os.kill(pid, signal.SIGKILL)
        shutil.rmtree(self.dir, ignore_errors=True)

    def environment(self, **extra):
        environment = {key: value for key, value in os.environ.items() if not key.startswith(("CRICKET_", "REMOTE_GPU", "CKT_", "LD_LIBRARY_PATH"))}
        environment["CRICKET_LIBEXEC"] = self.libexec
        environment["STATE_DIRECTORY"] = self.libexec  # of the server's key
        environment["CACHE_DIRECTORY"] = self.libexec  # of kernels
        environment.update(extra)
        return environment

    def spawn(self, *options, socket=None, listen=":0", env=None, **popen):
        """Starts a server and does not wait for anything."""
        socket = socket or self.socket
        self.address_file = os.path.join(self.dir, "address")
        command = [SERVER, "--socket", socket, "--address-file", self.address_file, "--driver", "soft"]
        command += ["--listen", listen] if listen else []
        log = open(os.path.join(self.dir, "log"), "a")
        server = subprocess.Popen(command + list(options), env=self.environment(**(env or {})), stderr=log, stdout=log, **popen)
        log.close()
        self.servers.append(server)
        return server

    def start(self, *options, **keywords):
        """Starts a server and waits until it is ready."""
        if os.path.exists(os.path.join(self.dir, "address")):
            os.unlink(os.path.join(self.dir, "address"))
        server = self.spawn(*options, **keywords)
        wait_until(lambda: os.path.exists(self.address_file) or server.poll() is not None, what="the server does not get ready")
        self.assertIsNone(server.poll(), self.log())
        with open(self.address_file) as f:
            host, port = f.readline().strip().rsplit(":", 1)
        self.tcp = (host, int(port)) if host != "unix" else None
        return server

    def log(self):
        with open(os.path.join(self.dir, "log")) as f:
            return f.read()

    def ctl(self, *words, server=None, **keywords):
        command = [self.cricketctl, "--server", server or "unix:" + self.socket] + list(words)
        return subprocess.run(command, env=self.environment(TMPDIR=self.dir), capture_output=True, text=True, timeout=GUARD, **keywords)

    def ps(self):
        done = self.ctl("ps", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)["sessions"]

    def worker_of(self, session):
        return json.loads(self.ctl("stats", session, "--json").stdout)["worker_pid"]

    def note_workers(self):
        """Remembers the workers that exist, so that none is left behind by a test."""
        try:
            for session in json.loads(self.ctl("ps", "--json").stdout)["sessions"]:
                self.workers.add(self.worker_of(session["session"]))
        except (ValueError, KeyError, subprocess.TimeoutExpired):
            pass
