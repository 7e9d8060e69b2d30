#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Whole programs whose session is stopped, restored or moved with cricketctl, with nothing set beforehand but where the server is."""
import json
import os
import re
import shutil
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from whole import Whole, runner  # noqa: E402

KINDS = os.environ["CKT_TEST_KINDS"]


class Moves(Whole):
    def test_parked_and_restored_elsewhere(self):
        expected = None
        for redirect in (False, True):
            name = "redirect" if redirect else "restore"
            first, image = self.server("first-" + name), os.path.join(self.dir, "image-" + name)
            program, session = self.start(first, name, CRICKET_RECONNECT_TIMEOUT="1")
            self.ctl(first, "checkpoint", session, image, "--stop")
            # Whether the program makes a call while its server still lives or only later: what it is told waits for it.
            if not redirect:
                self.go()
            self.wait(lambda: redirect or b"stopped on purpose" in open(program.err, "rb").read())
            first.kill()
            self.go()
            time.sleep(2.5)
            self.assertIsNone(program.process.poll(), "it gave up")
            second = self.server("second-" + name)
            if redirect:
                os.environ["HOME"] = os.path.join(self.dir, "elsewhere")
            self.ctl(second, "restore", image)
            if redirect:
                # Time to come where nobody has told it to go.
                time.sleep(1)
                self.wait(lambda second=second, session=session: self.state(second, session) == "restored")
                os.environ["HOME"] = self.home
                runner.cricketctl(self.tree, "redirect", session, "--to", second.address)
            out, err = self.finish(program)
            self.assertEqual(out, self.expected() if not redirect else expected)
            expected = out
            self.assertEqual(err.count("stopped on purpose"), 1, err)
            self.assertEqual(err.count("continues at"), 1, err)
            state = os.path.join(self.home, ".local", "state", "cricket")
            self.assertEqual(os.stat(state).st_mode & 0o777, 0o700)
            self.assertEqual(os.stat(os.path.join(state, session)).st_mode & 0o777, 0o600)
            self.assertEqual(os.listdir(state), [session])
            shutil.rmtree(os.path.join(self.home, ".local"))


    def image(self, *words):
        return json.loads(runner.cricketctl(self.tree, "image", *words, "--json"))

    def test_chain(self):
        first, names = self.server("first"), [os.path.join(self.dir, "i%d" % i) for i in range(3)]
        program, session = self.start(first)
        self.ctl(first, "checkpoint", session, os.path.join(self.dir, "other"))
        os.mkdir(os.path.join(self.dir, "series"))
        every = subprocess.Popen([self.tree.tool("cricketctl"), "--server", first.address, "checkpoint", session,
                                  os.path.join(self.dir, "series"), "--every", "1s", "--keep", "2"], stdout=subprocess.DEVNULL)

        def latest():
            return max((name for name in os.listdir(os.path.join(self.dir, "series")) if re.fullmatch(r"\d{4}", name)), default="")
        try:
            # The fifth may be gone already.
            self.wait(lambda: latest() >= "0005" or every.poll() is not None)
            self.assertIsNone(every.poll())
        finally:
            every.terminate()
        self.assertEqual(every.wait(60), 0)
        names = sorted(os.listdir(os.path.join(self.dir, "series")))
        self.assertLessEqual(len(names), 4)
        self.assertGreaterEqual(len(names), 2)
        names = [os.path.join(self.dir, "series", name) for name in names]
        shown = [self.image("show", name) for name in names]
        self.assertEqual([s["session"] for s in shown], [session] * len(names))
        self.assertTrue(any(s["ancestors"] for s in shown), shown)
        for name in names:
            self.assertTrue(self.image("verify", name)["ok"])
        self.assertEqual(self.image("diff", names[0], names[-1])["gone_chunks"], 0)
        last = next(name for name, s in reversed(list(zip(names, shown))) if s["ancestors"])
        flat = os.path.join(self.dir, "flat")
        runner.cricketctl(self.tree, "image", "flatten", last, flat)
        self.assertEqual(self.image("show", flat)["ancestors"], [])
        self.assertTrue(self.image("verify", flat)["ok"])
        self.assertEqual([self.image("diff", last, flat)[k] for k in ("changed_chunks", "new_chunks", "gone_chunks")], [0, 0, 0])
        damaged = os.path.join(self.dir, "damaged")
        shutil.copytree(flat, damaged)
        with open(os.path.join(damaged, "data-0"), "r+b") as f:
            f.seek(100)
            byte = f.read(1)
            f.seek(100)
            f.write(bytes([byte[0] ^ 1]))
        done = subprocess.run([self.tree.tool("cricketctl"), "image", "verify", damaged], capture_output=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"damaged", done.stderr)
        stopped = os.path.join(self.dir, "stopped")
        self.ctl(first, "checkpoint", session, stopped, "--incremental", names[-1], "--stop")
        first.kill()
        second = self.server("second")
        self.ctl(second, "restore", stopped)
        self.assertEqual(self.finish(program)[0], self.expected())

    def token(self):
        """Options of a server that wants one; what is started from now on shows it."""
        path = os.path.join(self.dir, "token")
        with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="utf-8") as f:
            f.write("the token of this test\n" * 2)
        os.environ["CRICKET_TOKEN_FILE"] = path
        self.addCleanup(os.environ.pop, "CRICKET_TOKEN_FILE", None)
        return ["--token-file", path]

    def test_any_base(self):
        """As the man page begins: img1, then img2 built on it; also after a restore of img1, and with a plain image in the middle of a series."""
        def path(name):
            return os.path.join(self.dir, name)

        for far in (False, True):
            # As from another host: over TCP, with a token.
            token = self.token() if far else []
            first = self.server("first-%d" % far, *token)
            if far:
                os.rename(first.socket, first.socket + ".hidden")
            shown = {"CRICKET_TOKEN_FILE": token[1]} if far else {}
            program, session = self.start(first, "p%d" % far, **shown)
            names = [path("img%d-%d" % (i, far)) for i in range(5)]
            self.ctl(first, "checkpoint", session, names[0])
            whole = self.image("show", names[0])["stored_bytes"]
            for i, base in ((1, 0), (2, 0), (3, 1)):
                done = json.loads(self.ctl(first, "checkpoint", session, names[i], "--incremental", names[base], "--json"))
                self.assertLess(done["bytes"], whole // 2 + 1, done)
                self.assertTrue(self.image("verify", names[i])["ok"])
            self.ctl(first, "checkpoint", session, path("stopped-%d" % far), "--stop")
            first.kill()
            second = self.server("second-%d" % far, *token)
            if far:
                os.rename(second.socket, second.socket + ".hidden")
            self.ctl(second, "restore", names[0])
            self.wait(lambda: self.state(second, session) == "running")
            done = json.loads(self.ctl(second, "checkpoint", session, names[4], "--incremental", names[0], "--stop", "--json"))
            self.assertLess(done["bytes"], whole // 2 + 1, done)
            # Another program's image is none to build on.
            other, theirs = self.start(second, "other%d" % far, **shown)
            code, _, err = self.may_fail(second, "checkpoint", theirs, path("no"), "--incremental", names[0])
            self.assertEqual(code, 1)
            self.assertIn("belongs to session %s" % session, err)
            self.assertFalse(os.path.exists(path("no")))
            self.finish(other)
            second.kill()
            third = self.server("third-%d" % far, *token)
            self.ctl(third, "restore", names[4])
            self.point = os.path.join(self.dir, "p%d" % far, "phase")
            self.assertEqual(self.finish(program)[0], self.expected())
            shutil.rmtree(path("expected"))
            self.assertEqual(bool(far), "CRICKET_TOKEN_FILE" in os.environ)

    def test_series_with_a_plain_one(self):
        server = self.server("only")
        _, session = self.start(server)
        series = os.path.join(self.dir, "series")
        # More than come: with each so many a new chain begins.
        every = subprocess.Popen([self.tree.tool("cricketctl"), "--server", server.address, "checkpoint", session, series, "--every", "1s", "--keep", "999"],
                                 stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        try:
            for i in range(1, 5):
                self.wait(lambda name="%04d" % i: os.path.exists(os.path.join(series, name)) or every.poll() is not None)
                self.ctl(server, "checkpoint", session, os.path.join(self.dir, "plain%d" % i))
        finally:
            every.terminate()
        self.assertEqual(every.communicate(timeout=60)[1], b"")
        self.assertEqual(every.returncode, 0)
        for name in sorted(os.listdir(series))[1:]:
            self.assertTrue(os.path.exists(os.path.join(series, name, "base")), name + " is no increment")

    def test_migrate_paused(self):
        """The GPU is full: park it, move it.  It goes on where it arrives."""
        servers = [self.server("first"), self.server("second")]
        expected = None
        for i, words in enumerate((("--for", "2h"), ())):
            program, session = self.start(servers[0], "p%d" % i)
            self.ctl(servers[0], "pause", session, *words)
            self.ctl(servers[0], "checkpoint", session, os.path.join(self.dir, "image%d" % i))
            self.ctl(servers[0], "migrate", session, "--to", servers[1].address)
            self.assertEqual(runner.sessions_of(self.tree, servers[0]), [])
            self.wait(lambda: self.state(servers[1], session) == "running")
            self.assertEqual(self.finish(program)[0], expected if i else self.expected())
            with open(program.out, "rb") as f:
                expected = f.read()

    def test_pause(self):
        server = self.server("only")
        program, session = self.start(server)
        for i in range(100):
            paused = json.loads(self.ctl(server, "pause", session, "--json"))
            self.assertGreater(paused["bytes"], 0)
            if i % 10 == 0:
                # A worker that does not answer within a second is listed with what was known before.
                self.wait(lambda: self.state(server, session) == "paused")
            if i == 99:
                self.go()
                time.sleep(0.5)
                self.assertIsNone(program.process.poll(), "calls of a paused session wait")
            self.assertEqual(json.loads(self.ctl(server, "resume", session, "--json"))["bytes"], paused["bytes"])
        self.assertEqual(self.finish(program)[0], self.expected())

    def test_in_memory(self):
        server = self.server("only")
        program, session = self.start(server)
        self.ctl(server, "checkpoint", session, "--to-memory", "lunch", "--stop")
        self.assertEqual(runner.sessions_of(self.tree, server), [])
        (kept,) = json.loads(self.ctl(server, "image", "list", "--json"))["images"]
        self.assertEqual((kept["place"], kept["session"]), ("memory:lunch", session))
        self.ctl(server, "restore", "memory:lunch")
        self.ctl(server, "image", "remove", "memory:lunch")
        self.assertEqual(self.finish(program)[0], self.expected())

    def test_migrate_ahead(self):
        """While the session stands still its target reads what changed, not what the session has."""
        servers = [self.server("first"), self.server("second")]
        program, session = self.start(servers[0])
        done = json.loads(self.ctl(servers[0], "migrate", session, "--to", servers[1].address, "--json"))
        ((there, rest),) = re.findall(r"restore: (\d+) bytes are already loaded, (\d+) are to be read", self.log_of(servers[1]))
        self.assertGreaterEqual(int(there), 2 << 20)
        self.assertLess(int(rest), 1 << 20)
        self.assertGreater(done["stopped_ms"], 0)
        self.assertEqual(self.finish(program)[0], self.expected())

    def test_migrate_every_memory_ahead(self):
        """Arrays, what the program maps itself and variables of modules are taken ahead as well, while some of them come and go."""
        servers = [self.server("first"), self.server("second")]
        program, session = self.start(servers[0], program=KINDS)
        for i in range(4):
            self.ctl(servers[i % 2], "migrate", session, "--to", servers[1 - i % 2].address)
        counts = [re.findall(r"restore: (\d+) bytes are already loaded, (\d+) are to be read", self.log_of(server)) for server in servers]
        self.assertEqual([len(c) for c in counts], [2, 2])
        for there, rest in counts[0] + counts[1]:
            # 8 MiB of each, of which the first piece of 2 MiB changes.
            self.assertGreaterEqual(int(there), 18 << 20)
            self.assertLessEqual(int(rest), 7 << 20)
        self.finish(program)

    def wait_for_gpu(self, server, session, gpu):
        """The only session there is on that GPU, which its worker says."""
        (found,) = runner.sessions_of(self.tree, server)
        self.assertEqual(found["session"], session)
        self.wait(lambda: [s["gpu"] for s in runner.sessions_of(self.tree, server)] == [gpu])

    def test_migrate_to_another_gpu(self):
        """A session has all GPUs of its server; the first of them, which this program uses, moves, and back."""
        os.environ["CRICKET_SOFT_DEVICES"] = "12.0:1G,12.0:1G,12.0:1G"
        self.addCleanup(os.environ.pop, "CRICKET_SOFT_DEVICES", None)
        server = self.server("only")
        subset = self.server("subset", "--gpus", "1-2")
        program, session = self.start(server)
        for gpu in (2, 1, 0, 2):
            self.ctl(server, "migrate", session, "--gpu", str(gpu))
            self.wait_for_gpu(server, session, gpu)
        # As many as the session has must be there: the other server's are too few for it.
        done = subprocess.run([self.tree.tool("cricketctl"), "--server", server.address, "migrate", session, "--to", subset.address],
                              capture_output=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"3 GPUs, but this server gives it 2", done.stderr)
        # What had begun there ends with the call's connection.
        self.wait(lambda: runner.sessions_of(self.tree, subset) == [])
        self.assertEqual(self.finish(program)[0], self.expected())
        program, session = self.start(subset, "of-subset")
        for gpu in (2, 1):
            self.ctl(subset, "migrate", session, "--gpu", str(gpu))
            self.wait_for_gpu(subset, session, gpu)
        self.ctl(subset, "checkpoint", session, os.path.join(self.dir, "image"), "--stop")
        self.ctl(server, "restore", os.path.join(self.dir, "image"), "--gpu", "2")
        self.finish(program)

    def test_migrate(self):
        servers = [self.server("first"), self.server("second", "--image-dir", os.path.join(self.dir, "second", "im"))]
        program, session = self.start(servers[0])
        for i in range(3):
            here, there = servers[i % 2], servers[1 - i % 2]
            done = json.loads(self.ctl(here, "migrate", session, "--to", there.address, "--json"))
            self.assertEqual(done["session"], session)
            self.assertEqual(runner.sessions_of(self.tree, here), [])
            ((found,),) = [runner.sessions_of(self.tree, there)]
            self.assertEqual(found["session"], session)
        out, err = self.finish(program)
        self.assertEqual(out, self.expected())
        self.assertNotIn("on purpose", err)


if __name__ == "__main__":
    unittest.main(verbosity=2)
