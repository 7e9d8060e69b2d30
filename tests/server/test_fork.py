#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A fork while another thread initialises CUDA: the child gets "not initialised" from every call, and never waits for a thread that it does
not have.  Between the client and its server stands a relay that stops after so many messages of the server's, so that the fork comes in the
middle of each wait that there is; then forks at any time."""
import os
import random
import select
import socket
import subprocess
import sys
import threading
import unittest

os.environ.setdefault("CKT_TEST_PROGRAM", "")
sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from whole import Whole, runner  # noqa: E402

CLIENT = os.environ["CKT_TEST_FORK_CLIENT"]
NOT_INITIALISED = {"runtime": "status 0:" + " 3" * 7, "driver": "status 0:" + " 3" * 8}
POINTS_MAX = 60
ROUNDS = 30


class Relay:
    """Passes bytes between one client and the server; holds what comes from the server behind so many pieces, until released."""

    def __init__(self, server, pieces):
        self.server, self.left = server, pieces
        self.stopped, self.go = threading.Event(), threading.Event()
        self.listener = socket.socket()
        self.listener.bind(("127.0.0.1", 0))
        self.listener.listen(1)
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        client, _ = self.listener.accept()
        host, port = self.server.rsplit(":", 1)
        server = socket.create_connection((host, int(port)))
        while True:
            ready, _, _ = select.select([client, server], [], [])
            for end in ready:
                if end is server and not self.left and not self.go.is_set():
                    self.stopped.set()
                    self.go.wait(60)
                try:
                    data = end.recv(1 << 16)
                except ConnectionError:
                    data = b""
                if not data:
                    client.close()
                    server.close()
                    return
                if end is server:
                    self.left = max(self.left - 1, 0)
                try:
                    (client if end is server else server).sendall(data)
                except ConnectionError:
                    pass


class Fork(Whole):
    def client(self, api, address):
        return subprocess.Popen([self.tree.tool("cricket-run"), "--server", address, CLIENT, api], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, env=dict(runner.clean_environment(), HOME=self.home), text=True)

    def ask(self, client):
        client.stdin.write("\n")
        client.stdin.flush()
        return client.stdout.readline().strip()

    def is_done(self, client):
        with open("/proc/%d/comm" % client.pid, encoding="utf-8") as f:
            return f.read() == "done\n"

    def end(self, client):
        out, _ = client.communicate(timeout=60)
        return out.strip()

    def every_point(self, api):
        server = self.server("s")
        points = 0
        while points < POINTS_MAX:
            relay = Relay(server.address, points)
            client = self.client(api, "127.0.0.1:%d" % relay.listener.getsockname()[1])
            ended = threading.Thread(target=client.wait, daemon=True)
            # The thread of the program stands still at the relay, or has done everything.
            self.wait(lambda: relay.stopped.is_set() or self.is_done(client))
            if not relay.stopped.is_set():
                client.communicate(timeout=60)
                break
            with self.subTest(point=points):
                self.assertEqual(self.ask(client), NOT_INITIALISED[api])
            relay.go.set()
            with self.subTest(point=points):
                self.assertEqual(self.end(client), "thread 0")
            del ended
            points += 1
        # The greeting, the hello's answer, the devices, and what the first calls wait for.
        self.assertGreaterEqual(points, 4)
        self.assertLess(points, POINTS_MAX)

    def test_every_point_of_the_runtime(self):
        self.every_point("runtime")

    def test_every_point_of_the_driver(self):
        self.every_point("driver")

    def test_any_time(self):
        server = self.server("s")
        order = random.Random(13)
        for _ in range(ROUNDS):
            api = order.choice(("runtime", "driver"))
            client = self.client(api, server.address)
            for _ in range(order.randrange(1, 5)):
                answer = self.ask(client)
                # Before the thread has come to its first call, the child is the first to call and gets a session of its own.
                self.assertIn(answer, (NOT_INITIALISED[api], NOT_INITIALISED[api].replace("3", "0"), "status 0: 0 0 0 0 201 201 0 201"))
            self.assertEqual(self.end(client), "thread 0")


if __name__ == "__main__":
    unittest.main()
