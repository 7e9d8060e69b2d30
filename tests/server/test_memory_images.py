#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Images in the server's memory: with a worker that has no CUDA, and a program on the real one."""
import json
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import wire  # noqa: E402
from fixture import GUARD, ServerTest, wait_until  # noqa: E402


class Kept(ServerTest):
    def client(self, kind=wire.NEW, **fields):
        peer = wire.Peer(self.socket)
        self.addCleanup(peer.close)
        status, session = peer.hello(kind, **fields)
        self.assertEqual(status, wire.OK, session)
        return peer, session

    def ok(self, *words):
        done = self.ctl(*words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def refused(self, sentence, *words):
        done = self.ctl(*words)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn(sentence, done.stderr)

    def listed(self):
        return json.loads(self.ok("image", "list", "--json").stdout)

    def state_of(self, session):
        return {s["session"]: s["state"] for s in self.ps()}.get(session)

    def descriptors(self, server):
        return len(os.listdir("/proc/%d/fd" % server.pid))

    def test_outlives_the_worker(self):
        server = self.start()
        before = self.descriptors(server)
        _, session = self.client()
        self.assertEqual(self.listed()["images"], [])
        done = json.loads(self.ok("checkpoint", session[:6], "--to-memory", "--json").stdout)
        self.assertEqual((done["directory"], done["stopped"]), ("memory:" + session, False))
        self.assertEqual(self.state_of(session), "running")
        done = json.loads(self.ok("checkpoint", session, "--to-memory", "lunch", "--stop", "--json").stdout)
        self.assertEqual((done["directory"], done["stopped"]), ("memory:lunch", True))
        self.assertEqual(self.ps(), [])
        found = self.listed()
        self.assertEqual(sorted(i["place"] for i in found["images"]), sorted(["memory:lunch", "memory:" + session]))
        self.assertEqual({(i["session"], i["program"]) for i in found["images"]}, {(session, "test")})
        for image in found["images"]:
            self.assertGreaterEqual(image["bytes"], 3 << 20)
        self.assertEqual(found["bytes"], sum(i["bytes"] for i in found["images"]))
        self.assertGreater(found["limit_bytes"], found["bytes"])
        self.assertIn("memory:lunch", self.ok("image", "list").stdout)
        # Twice from the same: it stays.
        for _ in range(2):
            self.assertEqual(json.loads(self.ok("restore", "memory:lunch", "--json").stdout)["session"], session)
            self.assertEqual(self.state_of(session), "restored")
            self.ok("kill", session)
        self.ok("restore", "memory:lunch")
        self.client(kind=wire.RESUME, session=session)
        self.ok("image", "remove", "memory:lunch")
        self.ok("image", "remove", "memory:" + session)
        self.assertEqual(self.listed()["bytes"], 0)
        self.refused("no image 'lunch' in memory", "image", "remove", "memory:lunch")
        self.refused("no image 'lunch' in memory", "restore", "memory:lunch")
        self.ok("kill", session)
        wait_until(lambda: self.descriptors(server) == before)

    def test_replaced_by_its_own_session_only(self):
        self.start()
        (_, one), (_, two) = self.client(), self.client()
        self.ok("checkpoint", one, "--to-memory", "a")
        first = self.listed()["images"]
        self.ok("checkpoint", one, "--to-memory", "a")
        self.assertEqual(len(self.listed()["images"]), 1)
        self.assertEqual(self.listed()["bytes"], first[0]["bytes"])
        self.refused("of another session", "checkpoint", two, "--to-memory", "a")
        self.assertEqual(self.state_of(two), "running")
        self.assertEqual(self.listed()["images"][0]["session"], one)

    def test_usage(self):
        self.start()
        _, session = self.client()
        for words in (["checkpoint", session, "--to-memory", "--server-side", "x"], ["checkpoint", session, "--to-memory", "--every", "1s"],
                      ["checkpoint", session, "--to-memory", "--incremental", self.dir], ["checkpoint", session, "--to-memory", "A"],
                      ["checkpoint", session, "--to-memory", "x" * 58], ["restore", "memory:"], ["restore", "memory:A"],
                      ["image", "remove", "x"], ["image", "remove", "memory:../x"], ["image", "list", "x"], ["image"]):
            self.assertEqual(self.ctl(*words).returncode, 2, words)
        self.ok("checkpoint", session, "--to-memory", "x" * 57)
        self.ok("kill", session)
        self.ok("restore", "memory:" + "x" * 57)

    def test_no_room(self):
        self.start("--image-memory", "4M")
        (_, one), (_, two) = self.client(), self.client()
        self.ok("checkpoint", one, "--to-memory", "a")
        self.ok("checkpoint", one, "--to-memory", "b")  # what it says to have fits; it writes more
        self.refused("--image-memory", "checkpoint", two, "--to-memory", "--stop")
        self.assertEqual(self.state_of(two), "running")
        for image in self.listed()["images"]:
            self.ok("image", "remove", image["place"])
        self.ok("checkpoint", two, "--to-memory", "--stop")

    def test_failed_save_keeps_the_older(self):
        self.start(env={"CRICKET_SOFT_FAKE": "badsave"})
        _, session = self.client()
        self.refused("no space on purpose", "checkpoint", session, "--to-memory", "--stop")
        self.assertEqual(self.listed()["bytes"], 0)
        self.assertEqual(self.state_of(session), "running")

    def test_ends_with_the_server(self):
        server = self.start()
        _, session = self.client()
        self.ok("checkpoint", session, "--to-memory", "gone", "--stop")
        server.terminate()
        server.wait(GUARD)
        self.assertIn("image gone of session %s was in memory" % session, self.log())
        self.start()
        self.assertEqual(self.listed()["images"], [])
        self.refused("no image 'gone'", "restore", "memory:gone")


if __name__ == "__main__":
    unittest.main(verbosity=2)
