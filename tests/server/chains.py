# SPDX-License-Identifier: Apache-2.0
"""Servers that keep automatic images, and durable programs whose sessions have them."""
import contextlib
import os
import signal

from takers import Taker
from whole import Whole, runner


class Chains(Whole):
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

    def key(self, name="key"):
        path = os.path.join(self.dir, name)
        runner.cricketctl(self.tree, "image-key", "make", path)
        return path

    def images(self, name):
        return os.path.join(self.dir, "images-" + name)

    def saving(self, name, *options, env=None):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(self.dir, name, "address"))
        server = self.server(name, "--auto-checkpoint", "1s", "--auto-dir", self.images(name), "--claim-timeout", "30", *options,
                             env={"CRICKET_SOFT_DEVICES": "12.0:8G", **(env or {})})
        server.tcp, server.address = server.address, "unix:" + server.socket
        return server

    def sessions(self, server):
        return {s["session"]: s.get("automatic_image") for s in runner.sessions_of(self.tree, server)}

    def taker(self, server, mib=4, **env):
        """A durable program; its session is `taker.session`."""
        before = set(self.sessions(server))
        taker = Taker(self, server, CRICKET_DURABLE="1", CRICKET_RECONNECT_TIMEOUT=env.pop("CRICKET_RECONNECT_TIMEOUT", "2"), **env)
        self.takers.append(taker)
        self.assertEqual(taker.ask("alloc", mib), 0)
        self.assertEqual(taker.ask("fill", 7), 0)
        (taker.session,) = set(self.sessions(server)) - before
        taker.server = server
        return taker

    def saved(self, taker, least=1):
        """Waits until so many images were taken, and the latest has all that the session has done."""
        def whole():
            image = self.sessions(taker.server)[taker.session] or {}
            return image.get("when") and not image["behind"] and image["taken"] >= least
        self.wait(whole)
        return self.sessions(taker.server)[taker.session]["taken"]

    def directory(self, taker, name=None):
        return os.path.join(self.images(name or os.path.basename(os.path.dirname(taker.server.socket))), taker.session)

    def state(self, taker, name=None):
        with open(os.path.join(self.directory(taker, name), "state"), encoding="utf-8") as f:
            return f.read()

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

    def kill_workers(self, server):
        workers = self.workers(server)
        for worker in workers:
            os.kill(worker, signal.SIGKILL)
        runner.end_all(workers, "the test killed it")

    def kill_all(self, server):
        workers = self.workers(server)
        server.kill()
        for worker in workers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(worker, signal.SIGKILL)
        runner.end_all(workers, "the test killed it")

    @contextlib.contextmanager
    def stopped(self, *takers):
        """Programs that do nothing meanwhile: they would come back before the images are changed."""
        for taker in takers:
            os.kill(taker.process.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for taker in takers:
                os.kill(taker.process.pid, signal.SIGCONT)

    def lost(self, *takers):
        """What each of these programs, whose sessions cannot come back, says; they ask at the same time."""
        for taker in takers:
            taker.process.stdin.write("check 7\n")
            taker.process.stdin.flush()
        said = []
        for taker in takers:
            self.assertNotEqual(taker.process.stdout.readline(), "0\n", taker.session)
            said.append(taker.end())
        return said
