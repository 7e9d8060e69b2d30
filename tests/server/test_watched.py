#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Hooks, events, the end by SIGTERM, images under the server's --image-dir and the progress bar, with real workers and clients."""
import json
import os
import pty
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from whole import Whole, runner  # noqa: E402


class Watched(Whole):
    def test_hooks_and_events(self):
        hooks, out = os.path.join(self.dir, "hooks"), os.path.join(self.dir, "out")
        os.mkdir(hooks, 0o755)
        with open(os.path.join(hooks, "10-note"), "w", encoding="utf-8") as f:
            f.write('#!/bin/sh\necho "$CRICKET_EVENT $CRICKET_SESSION" >> %s\n' % out)
        os.chmod(os.path.join(hooks, "10-note"), 0o755)
        first, second = self.server("first", "--hooks", hooks), self.server("second", "--hooks", hooks)
        followers = [subprocess.Popen([self.tree.tool("cricketctl"), "--server", server.address, "events", "--follow", "--json"],
                                      stdout=subprocess.PIPE, text=True) for server in (first, second)]
        try:
            program, session = self.start(first)
            self.ctl(first, "checkpoint", session, os.path.join(self.dir, "image"))
            self.ctl(first, "pause", session)
            self.ctl(first, "resume", session)
            self.ctl(first, "migrate", session, "--to", second.address)
            self.wait(lambda: self.state(second, session) == "running")
            self.assertEqual(self.finish(program)[0], self.expected())
            self.wait(lambda: runner.sessions_of(self.tree, second) == [])

            def until(follower, last):
                seen = []
                while not seen or seen[-1]["event"] != last:
                    seen.append(json.loads(follower.stdout.readline()))
                self.assertEqual({e["session"] for e in seen}, {session})
                return [e["event"] for e in seen]

            source, target = until(followers[0], "ended"), until(followers[1], "ended")
        finally:
            for follower in followers:
                follower.kill()
                follower.communicate()
        self.assertEqual(source[:5], ["started", "frozen", "saved", "paused", "resumed"])
        # As many rounds as it took.
        rounds = source[5:-2]
        self.assertEqual(rounds, ["frozen", "saved"] * (len(rounds) // 2))
        self.assertGreaterEqual(len(rounds), 6)
        self.assertEqual(source[-2:], ["moved", "ended"])
        self.assertEqual(target, ["restored", "ended"])

        def noted():
            with open(out, encoding="utf-8") as f:
                return sorted(f.read().splitlines())

        self.wait(lambda: os.path.exists(out) and len(noted()) == len(source + target))
        self.assertEqual(noted(), sorted("%s %s" % (event, session) for event in source + target))

    def test_on_term(self):
        images = os.path.join(self.dir, "images")
        # Whose image is not written within the grace period has none.
        first = self.server("first", "--on-term", "checkpoint:" + images, "--grace", "30")
        program, session = self.start(first)
        first.process.terminate()
        self.assertEqual(first.process.wait(60), 0)
        self.assertEqual(os.listdir(images), [session])
        self.assertTrue(self.image_is_whole(os.path.join(images, session)))
        self.wait(lambda: "stopped on purpose" in self.stderr_of(program))
        second = self.server("second")
        self.ctl(second, "restore", os.path.join(images, session))
        self.assertEqual(self.finish(program)[0], self.expected())

    def test_server_side(self):
        place = os.path.join(self.dir, "kept")
        first = self.server("first", "--image-dir", place)
        program, session = self.start(first)
        self.ctl(first, "checkpoint", session, "--server-side", "noon", "--stop")
        self.assertTrue(self.image_is_whole(os.path.join(place, "noon")))
        self.assertEqual(self.may_fail(first, "restore", "--server-side", "evening")[0], 1)
        first.kill()
        second = self.server("second", "--image-dir", place)
        self.ctl(second, "restore", "--server-side", "noon")
        self.assertEqual(self.finish(program)[0], self.expected())

    def on_terminal(self, *words):
        """What cricketctl draws."""
        leader, follower = pty.openpty()
        with subprocess.Popen([self.tree.tool("cricketctl"), *words], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=follower) as ctl:
            os.close(follower)
            drawn = b""
            while True:
                try:
                    data = os.read(leader, 4096)
                except OSError:
                    break
                if not data:
                    break
                drawn += data
            os.close(leader)
            self.assertEqual(ctl.wait(60), 0, drawn)
        return drawn.decode()

    def test_bytes_each_way(self):
        """cricketctl top of a real worker: calls and bytes both ways, and what stats told before is as it was."""
        server = self.server("first")
        program, session = self.start(server)
        shown = []

        def has_counts():
            """Null where the worker did not answer in time."""
            shown[:] = json.loads(self.ctl(server, "--json", "top", "--delay", "0.2"))["sessions"]
            return shown[0]["transport"] is not None and shown[0]["calls_per_second"] is not None

        self.wait(has_counts)
        (told,) = shown
        self.assertEqual((told["session"], told["state"], told["transport"]), (session, "running", "tcp"))
        for key in ("received_bytes_per_second", "sent_bytes_per_second", "calls_per_second", "waits_per_second"):
            self.assertGreaterEqual(told[key], 0, key)
        self.assertEqual((told["share_percent"], told["swapped_bytes"], told["waiting_ms"], told["switches"]), (None, None, None, None))
        stats = json.loads(self.ctl(server, "--json", "stats", session))
        self.assertFalse([row for row in stats["calls"] if row["name"].startswith("bytes-")])
        self.assertEqual(self.finish(program)[0], self.expected())

    def test_progress_on_a_terminal(self):
        # As from another host: with a token.
        token = os.path.join(self.dir, "token")
        with open(os.open(token, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="utf-8") as f:
            f.write("the token of this test\n" * 2)
        os.environ["CRICKET_TOKEN_FILE"] = token
        self.addCleanup(os.environ.pop, "CRICKET_TOKEN_FILE", None)
        first, second = self.server("first", "--token-file", token), self.server("second", "--token-file", token)
        program, session = self.start(first, CRICKET_TOKEN_FILE=token)
        image, flat = os.path.join(self.dir, "image"), os.path.join(self.dir, "flat")
        # So what is over within the first period of the bar is counted by cricketctl itself.
        for server in (first, second):
            os.rename(server.socket, server.socket + ".hidden")
        for what, phase, words in (("checkpoint", "fetch", ["--server", first.address, "checkpoint", session, image]),
                                   ("verify", "verify", ["image", "verify", image]),
                                   ("flatten", "flatten", ["image", "flatten", image, flat]),
                                   ("migrate", "fetch|send", ["--server", first.address, "migrate", session, "--to", second.address]),
                                   ("restore", "send", ["--server", first.address, "restore", flat])):
            drawn = self.on_terminal(*words)
            self.assertRegex(drawn, r"(%s) +\[#{30}\] [0-9.]+ [KMG]iB, [0-9.]+ GB/s" % phase, what)
            self.assertTrue(drawn.endswith("\r\x1b[K") or what == "restore", (what, drawn))
        self.ctl(first, "kill", session)
        self.assertEqual(self.finish(program)[0], self.expected())


if __name__ == "__main__":
    unittest.main(verbosity=2)
