#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""--metrics: what it says of real sessions, who may ask, clients that misbehave, promtool's opinion, and the table in docs/metrics.md."""
import concurrent.futures
import os
import re
import shutil
import socket
import stat
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from scrape import OPENMETRICS, TOOLS, TOP, Scrape, UnixConnection, families, samples  # noqa: E402
from whole import runner  # noqa: E402


class Metrics(Scrape):
    # ---- What it says

    def test_session(self):
        server = self.serve()
        owner = "uid:%d" % os.getuid()
        self.assertEqual(self.value("cricket_sessions", state="running"), 0)
        program, session = self.start(server)
        self.assertEqual(self.value("cricket_sessions", state="running", owner=owner), 1)
        self.assertEqual(self.value("cricket_sessions"), 1)

        def is_listed():
            """A worker that stands still is listed as it was known last."""
            (listed,) = runner.sessions_of(self.tree, server)
            return self.value("cricket_gpu_memory_held_bytes", owner=owner, gpu="0") == listed["memory_bytes"] > 0

        self.wait(is_listed)
        calls = self.value("cricket_calls_total", owner=owner)
        self.assertGreater(calls, 0)
        # Calls that no driver executes are not timed.
        text = samples(self.scrape())
        timed = sum(v for (name, _), v in text.items() if name == "cricket_waited_call_seconds_count")
        waited = sum(v for (name, _), v in text.items() if name == "cricket_waited_calls_total")
        self.assertTrue(0 < timed <= waited, (timed, waited))
        self.assertGreater(self.value("cricket_received_bytes_total", owner=owner), 100)
        self.assertGreater(self.value("cricket_sent_bytes_total", owner=owner), 100)
        self.ctl(server, "checkpoint", session, os.path.join(self.dir, "image"))
        self.assertEqual(self.value("cricket_checkpoints_total", result="written"), 1)
        self.assertGreater(self.value("cricket_checkpoint_bytes_total"), 0)
        self.assertEqual(self.value("cricket_checkpoint_stop_seconds_count"), 1)
        self.ctl(server, "pause", session)
        self.assertEqual(self.value("cricket_sessions", state="paused"), 1)
        self.ctl(server, "resume", session)
        # Its worker says so, once it has answered.
        self.wait(lambda: self.value("cricket_sessions", state="running") == 1)
        self.finish(program)
        self.wait(lambda: runner.sessions_of(self.tree, server) == [])
        # What a session counted stays when it has ended.
        self.assertEqual(self.value("cricket_sessions"), 0)
        self.assertGreaterEqual(self.value("cricket_calls_total", owner=owner), calls)
        self.assertEqual(self.value("cricket_gpu_memory_held_bytes"), 0)
        self.assertEqual(self.value("cricket_session_events_total", event="ended"), 1)
        self.assertGreater(self.value("cricket_decisions_total", question="session", answer="yes"), 0)

    def test_adopted_and_moved(self):
        """A worker that an earlier server started counts for the next one; a session that moves counts there."""
        first = self.serve()
        program, session = self.start(first)
        first.kill()
        os.unlink(os.path.join(self.dir, "first", "address"))
        first = self.serve()
        self.wait(lambda: self.value("cricket_sessions", state="running") == 1)
        # The worker tells its state first.
        self.wait(lambda: self.value("cricket_gpu_memory_held_bytes") > 0)
        before, address = self.value("cricket_calls_total"), self.address
        second = self.serve(name="second")
        self.ctl(first, "migrate", session, "--to", second.address)
        self.wait(lambda: self.state(second, session) == "running")
        self.finish(program)
        self.wait(lambda: runner.sessions_of(self.tree, second) == [])
        self.assertGreater(self.value("cricket_calls_total"), 0)
        self.assertEqual(self.value("cricket_session_events_total", event="restored"), 1)
        self.address = address
        self.assertEqual(self.value("cricket_migrations_total"), 1)
        self.assertGreaterEqual(self.value("cricket_calls_total"), before)

    def test_turns(self):
        """Where a limit shares the GPU in time."""
        limits = os.path.join(self.dir, "limits")
        with open(limits, "w", encoding="utf-8") as f:
            f.write("job=p share=50\n")
        server = self.serve("--limits", limits)
        program, _ = self.start(server, CRICKET_JOB="p")
        self.assertGreater(self.value("cricket_turns_total", gpu="0", step="given"), 0)
        used = self.value("cricket_turn_seconds_total", gpu="0")
        self.assertGreater(used, 0)
        self.finish(program)
        self.wait(lambda: runner.sessions_of(self.tree, server) == [])
        self.assertGreaterEqual(self.value("cricket_turn_seconds_total", owner="uid:%d" % os.getuid()), used)

    def test_formats(self):
        self.serve()
        old, new = self.both()
        self.assertFalse(old.endswith("# EOF\n"))
        self.assertTrue(new.endswith("\n# EOF\n"))
        self.assertEqual(set(samples(old)), set(samples(new)))
        self.assertEqual([re.sub("_total$", "", name) for name in families(old)], list(families(new)))
        for name, (kind, _) in families(old).items():
            self.assertEqual(kind == "counter", name.endswith("_total"), name)
        _, _, headers = self.get(Accept=OPENMETRICS)
        self.assertTrue(headers["Content-Type"].startswith("application/openmetrics-text"))
        _, _, headers = self.get()
        self.assertTrue(headers["Content-Type"].startswith("text/plain; version=0.0.4"))
        self.assertEqual(headers["Connection"].lower(), "close")
        status, text, _ = self.get(method="HEAD")
        self.assertEqual((status, text), (200, ""))

    def test_promtool(self):
        promtool = shutil.which("promtool", path=TOOLS)
        if not promtool:
            self.skipTest("no promtool (Debian's package prometheus)")
        server = self.serve()
        program, _ = self.start(server)
        done = subprocess.run([promtool, "check", "metrics"], input=self.scrape(), capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual((done.returncode, done.stdout + done.stderr), (0, ""))
        self.finish(program)

    def test_document(self):
        """docs/metrics.md lists the families that there are: names, types and meanings."""
        self.serve()
        with open(os.path.join(TOP, "docs", "metrics.md"), encoding="utf-8") as f:
            table = re.findall(r"^\| `([a-z_]+)` \| (\w+) \| [^|]* \| (.*) \|$", f.read(), re.MULTILINE)
        self.assertEqual([(name, kind, text) for name, (kind, text) in families(self.scrape()).items()], table)
        self.check_labels(self.scrape())

    # ---- Who may ask

    def test_addresses(self):
        def refused(*options):
            directory = os.path.join(self.dir, "refused")
            os.makedirs(directory, exist_ok=True)
            done = subprocess.run([self.tree.tool("cricket-server"), "--socket", os.path.join(directory, "s"), "--listen", "none", "--driver", "soft", *options],
                                  capture_output=True, text=True, timeout=60, check=False)
            return done.returncode, done.stderr

        code, err = refused("--metrics", "0.0.0.0:0")
        self.assertEqual(code, 2)
        self.assertIn("other hosts can reach '0.0.0.0:0'", err)
        self.assertIn("--insecure-plaintext", err)
        code, err = refused("--metrics", "file:/tmp/x")
        self.assertEqual(code, 2)
        plain = os.path.join(self.dir, "file")
        open(plain, "w").close()
        code, err = refused("--metrics", "unix:" + plain)
        self.assertEqual(code, 1)
        self.assertTrue(os.path.isfile(plain))
        self.assertIn("File exists", err)

    def test_unix(self):
        path = os.path.join(self.dir, "metrics")
        server = self.server("first", "--metrics", "unix:" + path)
        self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600)
        status, text, _ = self.get("/healthz", connection=UnixConnection(path))
        self.assertEqual((status, text), (200, "ok\n"))
        status, text, _ = self.get(connection=UnixConnection(path))
        self.assertEqual(status, 200)
        self.assertIn("cricket_build_info", text)
        # The next server removes what a dead one left.
        server.kill()
        os.unlink(os.path.join(self.dir, "first", "address"))
        self.assertTrue(os.path.exists(path))
        server = self.server("first", "--metrics", "unix:" + path)
        self.assertEqual(self.get("/healthz", connection=UnixConnection(path))[0], 200)
        server.stop()
        self.assertFalse(os.path.exists(path))

    def test_health(self):
        server = self.serve("--max-sessions", "1", "--grace", "60")
        self.assertEqual(self.get("/healthz")[:2], (200, "ok\n"))
        self.assertEqual(self.get("/readyz")[:2], (200, "ready\n"))
        program, _ = self.start(server)
        self.assertEqual(self.get("/readyz")[:2], (503, "all sessions of --max-sessions are taken\n"))
        server.process.terminate()
        self.wait(lambda: self.get("/readyz")[1] == "the server ends\n")
        self.assertEqual(self.get("/healthz")[0], 200)
        self.finish(program)
        self.assertEqual(server.process.wait(60), 0)

    def test_requests(self):
        self.serve()
        self.assertEqual(self.get("/")[0], 404)
        self.assertEqual(self.get("/metrics/../metrics")[0], 404)
        for method in ("POST", "PUT", "DELETE", "OPTIONS", "BREW"):
            status, _, headers = self.get(method=method)
            self.assertEqual((status, headers.get("Allow")), (405, "GET, HEAD"), method)

    # ---- Clients that misbehave

    def raw(self, data=b""):
        connection = socket.create_connection(self.address, timeout=30)
        self.addCleanup(connection.close)
        connection.sendall(data)
        return connection

    def works(self, server):
        """The server serves cricketctl, and metrics."""
        self.assertEqual(runner.sessions_of(self.tree, server), [])
        self.assertEqual(self.get("/healthz")[0], 200)

    @staticmethod
    def ended(connection):
        connection.settimeout(60)
        try:
            while connection.recv(65536):
                pass
        except ConnectionResetError:
            pass

    def test_hostile(self):
        server = self.serve()
        self.raw(b"\0" * 100)
        for data in (b"GET", b"GET /metrics\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00", b"GET /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
                     b"POST /metrics HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n", b"GET " + b"/" * 100000 + b" HTTP/1.1\r\n\r\n",
                     b"GET / HTTP/1.1\r\n" + b"".join(b"X-%d: %s\r\n" % (i, b"a" * 1000) for i in range(100))):
            try:
                connection = self.raw(data)
                connection.shutdown(socket.SHUT_WR)
                self.ended(connection)
            except (ConnectionResetError, BrokenPipeError, OSError):
                pass
            self.works(server)
        # Half closed: the answer still comes.
        connection = self.raw(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        connection.shutdown(socket.SHUT_WR)
        connection.settimeout(60)
        self.assertTrue(connection.recv(65536).startswith(b"HTTP/1.1 200"))
        self.ended(connection)
        # One that asks and does not read.
        silent = [self.raw(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n") for _ in range(20)]
        self.works(server)
        del silent

    def test_slow(self):
        """A client that sends a byte now and then is ended by its age, and nobody waits for it."""
        server = self.serve()
        slow = self.raw(b"GET /healthz HTTP/1.1\r\n")
        slow.settimeout(0.5)
        for sent in range(120):
            try:
                slow.sendall(b"X-%d: y\r\n" % sent)
                if slow.recv(1) == b"":
                    break
            except TimeoutError:
                pass
            except (ConnectionResetError, BrokenPipeError):
                break
            if sent % 5 == 0:
                self.works(server)
        else:
            self.fail("it is still connected")

    def test_crowd(self):
        """1,000 connections that say nothing: others are still served, and the server's descriptors stay few."""
        server = self.serve()
        crowd = [socket.create_connection(self.address, timeout=30) for _ in range(900)]
        crowd += [self.raw(b"GET /metrics HTTP/1.1\r\nX: ") for _ in range(100)]
        self.works(server)
        self.assertLess(len(os.listdir("/proc/%d/fd" % server.process.pid)), 200)
        text = self.scrape()
        self.assertLess(samples(text)["process_open_fds", frozenset()], 200)
        for connection in crowd:
            connection.close()
        self.works(server)
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            self.assertEqual({status for status, _, _ in pool.map(lambda _: self.get(), range(200))}, {200})


if __name__ == "__main__":
    unittest.main()
