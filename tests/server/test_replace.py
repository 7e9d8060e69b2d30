#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""cricket-server --replace: another server takes the place of one that runs, under programs and while others come, on the soft GPU."""
import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import wire  # noqa: E402
from whole import Whole, runner  # noqa: E402

STAGE_MAKE = 7


class Replace(Whole):
    def successor(self, server, *options, expect=0, env=None, wait=True):
        """A server with the same sockets, and a log of its own: its predecessor may write into the last one until it ends."""
        descriptor, log = tempfile.mkstemp(prefix="successor-", dir=server.directory)
        command = [self.tree.tool("cricket-server"), "--replace", "--driver", "soft", "--listen", server.listening, "--socket", server.socket, "--warm", "0",
                   *options]
        with open(descriptor, "wb") as f:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=f, stderr=f,
                                       env={**os.environ, "STATE_DIRECTORY": server.directory, "CACHE_DIRECTORY": server.directory, **(env or {})})
        if not wait:
            return process, log
        if expect:
            self.assertEqual(process.wait(60), expect)
        else:
            old = server.process
            self.wait(lambda: old.poll() is not None or process.poll() is not None)
            self.assertIsNone(process.poll(), self.text(log))
            self.assertEqual(old.poll(), 0)
            server.process = process
            server.log = log
            self.wait(lambda: "found again" in self.text(log) or "listening on" in self.text(log) or process.poll() is not None)
            self.assertIsNone(process.poll(), self.text(log))
        return process, log

    def text(self, path):
        with open(path, encoding="utf-8") as f:
            return f.read()

    def begun(self, *options):
        server = self.server("server", *options)
        server.listening = server.address
        return server

    def channels(self, server):
        """How many sockets with packets it has: a successor that asks brings one.  One that has ended has none."""
        count, directory = 0, "/proc/%d/fd" % server.process.pid
        with contextlib.suppress(FileNotFoundError, PermissionError):
            with open("/proc/%d/net/unix" % server.process.pid, encoding="utf-8") as f:
                packets = {"socket:[%s]" % line.split()[6] for line in f if line.split()[4] == "0005"}
            for fd in os.listdir(directory):
                with contextlib.suppress(FileNotFoundError):
                    count += os.readlink(os.path.join(directory, fd)) in packets
        return count

    def taken(self, server):
        """Whether another server takes its place, and it may have ended."""
        return "takes this one's place with" in self.text(server.log)

    def state(self, process):
        with open(f"/proc/{process.pid}/stat", encoding="utf-8") as f:
            return f.read().rsplit(")", 1)[1].split()[0]

    def test_programs(self):
        """Programs go on, before and after, with the same server's address; the sessions are the successor's."""
        server = self.begun()
        program, session = self.start(server)
        listening = self.ctl(server, "info", "--json")
        self.successor(server)
        again = self.ctl(server, "info", "--json")
        self.assertNotEqual(json.loads(listening)["pid"], json.loads(again)["pid"])
        self.assertEqual(json.loads(listening)["listen"], json.loads(again)["listen"])
        self.wait(lambda: [s["session"] for s in runner.sessions_of(self.tree, server)] == [session])
        image = os.path.join(self.dir, "image")
        self.ctl(server, "checkpoint", session, image)
        self.successor(server)
        self.finish(program)
        self.wait(lambda: runner.sessions_of(self.tree, server) == [])
        # Its files are there until it ends by itself.
        self.assertTrue(os.path.exists(server.socket))
        server.process.terminate()
        self.assertEqual(server.process.wait(60), 0)
        self.assertFalse(os.path.exists(server.socket))

    def test_none_refused(self):
        """Programs that come all the time find a server at any moment."""
        server = self.begun()
        failures, count, stop = [], [0], threading.Event()

        def come(address):
            while not stop.is_set():
                done = subprocess.run([self.tree.tool("cricket-run"), "--server", address, os.environ["CKT_TEST_PROGRAM"]], capture_output=True, text=True,
                                      timeout=120, check=False, env={**runner.clean_environment(), "HOME": self.home})
                count[0] += 1
                if done.returncode:
                    failures.append(done.stderr)

        threads = [threading.Thread(target=come, args=(address,)) for address in (server.address, "unix:" + server.socket)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(3):
                before = count[0]
                self.wait(lambda before=before: count[0] >= before + 2)
                self.successor(server)
            before = count[0]
            self.wait(lambda: count[0] >= before + 2)
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        self.assertEqual(failures, [])

    def test_busy(self):
        """While a session is held the server stays, and accepts again once the successor gives up."""
        server = self.begun()
        program, session = self.start(server)
        held = subprocess.Popen([self.tree.tool("cricket-server"), "--replace", "--driver", "soft", "--listen", server.listening, "--socket", server.socket,
                                 "--driver", "/nonexistent"], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
        # One that cannot start asks nobody.
        self.assertIn("/nonexistent", held.communicate(timeout=60)[1])
        self.assertEqual(self.ctl(server, "ps", "--json").count(session), 1)
        # An image that travels holds the successor up, for longer than a hello may; it goes away, and all is as before.
        with wire.Peer(server.socket) as travels:
            self.assertEqual(travels.hello(wire.HELLO_CONTROL)[0], wire.OK)
            self.assertEqual(travels.call(STAGE_MAKE).u32(), 0)
            before = self.channels(server)
            process, _ = self.successor(server, wait=False)
            self.wait(lambda: self.channels(server) > before or process.poll() is not None)
            self.assertIsNone(process.poll())
            self.assertIsNone(server.process.poll())
            process.kill()
            process.wait()
            self.wait(lambda: "does not take this one's place: it has ended" in self.text(server.log))
        self.assertEqual(self.ctl(server, "ps", "--json").count(session), 1)
        self.finish(program)

    def test_stopped(self):
        """A successor that is stopped while it waits, and goes on, still takes the place."""
        server = self.begun()
        begun = time.monotonic()
        half = socket.create_connection(tuple(server.address.rsplit(":", 1)))
        half.recv(4)
        before = self.channels(server)
        process, log = self.successor(server, wait=False)
        # A hello under way holds it up, for five seconds at most: where its own start takes longer, it does not wait any more.
        self.wait(lambda: self.taken(server) or self.channels(server) > before or process.poll() is not None)
        self.wait(lambda: self.state(process) == "S" or process.poll() is not None)
        process.send_signal(signal.SIGSTOP)
        self.wait(lambda: self.state(process) == "T")
        if self.taken(server):
            self.assertGreaterEqual(time.monotonic() - begun, 5)
        process.send_signal(signal.SIGCONT)
        half.close()
        self.wait(lambda: "listening on" in self.text(log) or process.poll() is not None)
        self.assertIsNone(process.poll(), self.text(log))
        self.assertEqual(server.process.wait(60), 0)
        server.process = process

    def test_wrong(self):
        """Nobody is there; another's server; images in memory; two at a time."""
        server = self.begun()
        lone = os.path.join(self.dir, "lone")
        os.mkdir(lone)
        process, log = self.successor(type("Nobody", (), {"directory": lone, "socket": os.path.join(lone, "socket"), "listening": "none"})(), wait=False)
        self.wait(lambda: "this one starts as usual" in self.text(log) and "listening on" in self.text(log))
        process.terminate()
        self.assertEqual(process.wait(60), 0)
        if os.geteuid() == 0:
            state = os.path.join(self.dir, "nobody")
            os.mkdir(state)
            os.chown(state, 65534, 65534)
            # The build tree may be closed to others.
            for part in ("bin", "libexec"):
                shutil.copytree(os.path.join(runner.stage(os.environ["CKT_TEST_BUILD"]), part), os.path.join(self.dir, "copy", part))
            command = [os.path.join(self.dir, "copy", "bin", "cricket-server"), "--replace", "--driver", "soft", "--listen", "none", "--socket", server.socket, "--warm", "0"]
            done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, user=65534, group=65534, extra_groups=[],
                                  env={"PATH": os.environ["PATH"], "HOME": state, "STATE_DIRECTORY": state, "CACHE_DIRECTORY": state})
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("refuse", done.stderr)
        program, session = self.start(server)
        self.ctl(server, "checkpoint", session, "--to-memory", "kept")
        _, log = self.successor(server, expect=1)
        self.assertIn("images in memory", self.text(log))
        self.ctl(server, "image", "remove", "memory:kept")
        self.successor(server)
        self.finish(program)

    def test_systemd(self):
        """A reload: the process that systemd waits for names the successor, and ends once that is ready."""
        server = self.begun()
        program, session = self.start(server)
        path = os.path.join(self.dir, "notify")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
            notify.bind(path)
            notify.settimeout(60)
            process, _ = self.successor(server, wait=False, env={"NOTIFY_SOCKET": path})
            said = [notify.recv(256).decode() for _ in range(2)]
            self.assertEqual(process.wait(60), 0)
        self.assertEqual(server.process.wait(60), 0)
        self.assertIn("READY=1", said)
        (pid,) = [int(word.partition("=")[2]) for word in said if word.startswith("MAINPID=")]
        self.assertEqual(json.loads(self.ctl(server, "info", "--json"))["pid"], pid)
        self.wait(lambda: [s["session"] for s in runner.sessions_of(self.tree, server)] == [session])
        self.finish(program)
        os.kill(pid, 15)
        self.wait(lambda: not os.path.exists(server.socket))


if __name__ == "__main__":
    unittest.main(verbosity=2)
