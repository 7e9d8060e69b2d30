#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""cricketctl top in tmux: what stands on the screen, keys, other sizes, and programs whose names try to reach the terminal."""
import json
import os
import shlex
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), os.pardir, "server"))
import wire  # noqa: E402
from fixture import ServerTest, wait_until  # noqa: E402

TMUX = shutil.which("tmux")
# Clears the screen, names the window, and says CSI in another way.
HOSTILE = b"evil\x1b[2J\x1b]0;stolen\x07\xc2\x9b31m"


@unittest.skipUnless(TMUX, "no tmux")
class Top(ServerTest):
    def setUp(self):
        super().setUp()
        self.peers = []

    def tearDown(self):
        self.tmux("kill-server", check=False)
        for peer in self.peers:
            peer.close()
        super().tearDown()

    def tmux(self, *words, check=True):
        environment = self.environment(TERM="screen", LC_ALL="C.UTF-8")
        environment.pop("TMUX", None)
        return subprocess.run([TMUX, "-S", os.path.join(self.dir, "tmux"), "-f", "/dev/null", *words], env=environment,
                              capture_output=True, text=True, check=check).stdout

    def program(self, name):
        peer = wire.Peer(self.socket)
        status, session = peer.hello(wire.NEW, program=name)
        self.assertEqual(status, wire.OK, session)
        self.peers.append(peer)
        return session

    def top(self, *options, width=80, height=24):
        command = [self.cricketctl, "--server", "unix:" + self.socket, "top", "--delay", "0.1", *options]
        # Its exit status stays on the screen.
        self.tmux("new-session", "-d", "-x", str(width), "-y", str(height), "sh", "-c", shlex.join(command) + "; echo status $?; sleep 600")

    def screen(self):
        return self.tmux("capture-pane", "-p")

    def see(self, *parts, missing=()):
        """Waits until the screen has the parts and lacks what is missing; the screen."""
        seen = [""]

        def right():
            seen[0] = self.screen()
            return all(part in seen[0] for part in parts) and not any(part in seen[0] for part in missing)
        try:
            wait_until(right)
        except AssertionError:
            self.fail("%s, without %s: not on the screen:\n%s" % (parts, missing, seen[0]))
        return seen[0]

    def keys(self, *names):
        self.tmux("send-keys", *names)

    def test_screen(self):
        self.start(listen=None)
        ids = sorted(self.program(name) for name in ("alpha", "beta", "gamma"))
        self.top()
        screen = self.see("alpha", "beta", "gamma", "3 sessions")
        lines = screen.splitlines()
        self.assertLessEqual(max(len(line) for line in lines), 80)
        for name in ("SESSION", "PROGRAM", "OWNER", "STATE", "SHARE", "MEMORY", "IN/s", "OUT/s", "CALLS/s", "WAITS/s"):
            self.assertIn(name, lines[2])
        self.assertEqual([line.split()[0] for line in lines[3:6]], [session[:8] for session in ids])
        # By name, and the other way round.
        self.keys("p")
        wait_until(lambda: [line.split()[1] for line in self.screen().splitlines()[3:6]] == ["alpha", "beta", "gamma"])
        self.keys("p")
        wait_until(lambda: [line.split()[1] for line in self.screen().splitlines()[3:6]] == ["gamma", "beta", "alpha"])
        # The details are of the session with the bar.
        self.keys("p", "Down", "Down", "Up", "Up", "Up", "Enter")
        self.see("PROGRAM      alpha", "CLIENT       here", "PID          4711", missing=("gamma",))
        self.keys("Escape")
        self.see("gamma")
        self.keys("h")
        self.see("sort by:", "calls a second that waited for a reply", missing=("gamma",))
        self.keys("h")
        self.see("gamma")
        # What ends while it is paused stays on the screen.
        self.keys("Space")
        self.see("(paused)")
        gamma, = (session["session"] for session in self.ps() if session["program"] == "gamma")
        self.assertEqual(self.ctl("kill", gamma).returncode, 0)
        self.assertIn("gamma", self.see("(paused)"))
        self.keys("Space")
        self.see("2 sessions", missing=("gamma", "(paused)"))
        self.keys("q")
        self.see("status 0", missing=("SESSION",))

    def test_sizes(self):
        self.start(listen=None)
        self.program("alpha")
        self.top(width=160, height=30)
        self.see("alpha", "SWAPPED", "WAITING", "OVER", "GPU")
        self.tmux("resize-window", "-x", "80", "-y", "24")
        self.see("alpha", missing=("SWAPPED",))
        self.tmux("resize-window", "-x", "30", "-y", "5")
        self.see("the terminal is too small", missing=("alpha",))
        self.tmux("resize-window", "-x", "100", "-y", "10")
        self.see("alpha", "GPU")
        self.keys("q")
        self.see("status 0")

    def test_many(self):
        """More sessions than lines: the bar moves the list."""
        self.start(listen=None)
        ids = sorted(self.program("p%02d" % n) for n in range(12))
        self.top(height=10)
        self.see(ids[0][:8], missing=(ids[11][:8],))
        self.keys("NPage", "NPage")
        self.see(ids[11][:8], missing=(ids[0][:8],))
        self.keys("PPage", "PPage")
        self.see(ids[0][:8], missing=(ids[11][:8],))

    def test_hostile(self):
        self.start(listen=None)
        session = self.program(HOSTILE)
        self.top(width=200)
        title = self.tmux("display-message", "-p", "#{pane_title}")
        self.see("evil?[2J?]0;stolen???31m", "1 sessions")
        self.keys("Enter")
        self.see("PROGRAM      evil?[2J?]0;stolen")
        self.assertEqual(self.tmux("display-message", "-p", "#{pane_title}"), title)
        for options in ("--once",), ("--json",):
            done = self.ctl("top", "--delay", "0.1", *options)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("evil?[2J?]0;stolen", done.stdout)
            self.assertFalse([c for c in done.stdout if ord(c) > 126 or ord(c) < 32 and c != "\n"])
        self.assertIn(session, done.stdout)

    def test_server_ends(self):
        """The screen says so, and goes on with the next server there."""
        server = self.start(listen=None)
        self.program("alpha")
        self.top()
        self.see("alpha")
        self.note_workers()
        server.kill()
        server.wait()
        self.see("no server at unix:", missing=("alpha",))
        self.start(listen=None)
        self.program("omega")
        self.see("omega")
        self.keys("q")
        self.see("status 0")

    def test_once(self):
        """For scripts, without a terminal."""
        self.start(listen=None)
        done = self.ctl("top", "--once")
        self.assertEqual((done.returncode, len(done.stdout.splitlines())), (0, 1))
        session = self.program("alpha")
        done = self.ctl("top", "--once", "--delay", "0.1")
        head, line = done.stdout.splitlines()
        self.assertEqual(head.split()[:4], ["SESSION", "PROGRAM", "OWNER", "STATE"])
        self.assertEqual(line.split()[:4], [session, "alpha", "uid:%d" % os.getuid(), "running"])
        (told,) = json.loads(self.ctl("top", "--json", "--delay", "0.1").stdout)["sessions"]
        self.assertEqual((told["session"], told["share_percent"], told["swapped_bytes"], told["waiting_ms"]), (session, None, None, None))
        done = self.ctl("top")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("no terminal; print one sample with --once", done.stderr)


if __name__ == "__main__":
    unittest.main()
