#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Sessions that share memory and leave the GPU together (--when-full swap): over programs on the soft GPU."""
import json
import os
import re
import sys
import threading
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from takers import MIB, Limited  # noqa: E402
from whole import runner  # noqa: E402


class Together(Limited):
    def swapping(self, gpu_memory="100M", fault=None, name="server"):
        env = {"CRICKET_SOFT_DEVICES": f"12.0:{gpu_memory}"}
        if fault:
            env["CRICKET_FAULT"] = fault
        server = self.server(name, "--gpu-memory", gpu_memory, "--when-full", "swap", "--swap-memory", "1G", "--max-wait", "1", env=env)
        server.tcp, server.address = server.address, "unix:" + server.socket
        return server

    def id_of(self, server, taker):
        (session,) = [s["session"] for s in runner.sessions_of(self.tree, server) if s["pid"] == taker.process.pid]
        return session

    def quantum(self, server, taker):
        sessions = json.loads(self.ctl(server, "--json", "ps"))["sessions"]
        return {s["session"]: s["swapping"] for s in sessions}[self.id_of(server, taker)]

    def shown(self, server, taker):
        return json.loads(self.ctl(server, "--json", "swap", "show", self.id_of(server, taker)))

    def group(self, server, name, mib=40, word=1):
        """Two programs; the first shares memory of both kinds, half of it each, and has a block of its own, and so has the second."""
        owner, other = self.taker(server), self.taker(server)
        block, piece = (os.path.join(self.dir, name + kind) for kind in (".block", ".piece"))
        self.assertEqual(owner.ask("alloc", mib), 0)
        self.assertEqual(owner.ask("fill", word), 0)
        self.assertEqual(owner.ask("give", block), 0)
        self.assertEqual(owner.ask("share", piece, mib // 2), 0)
        self.assertEqual(owner.ask("put", word), 0)
        self.assertEqual(other.ask("alloc", mib // 4), 0)
        self.assertEqual(other.ask("fill", word + 5), 0)
        self.assertEqual(other.ask("open", block, mib), 0)
        self.assertEqual(other.ask("import", piece, mib // 2), 0)
        self.assertEqual(other.ask("see", word), 0)
        return owner, other

    def turn(self, owner, other, word):
        """One writes what the other reads, both ways: how often something was wrong."""
        bad = other.ask("put", word) != 0
        bad += owner.ask("check", word) + owner.ask("see", word)
        bad += owner.ask("fill", word + 1) + owner.ask("put", word + 1)
        bad += other.ask("see", word + 1) + other.ask("check", other.word)
        return bad

    def outs(self, server, *takers):
        return [self.shown(server, taker)["outs"] for taker in takers]

    def test_alternate(self):
        """Two groups, and memory for exactly one of them: both have what they wrote, by turns."""
        server = self.swapping()
        groups = [self.group(server, "first", word=1), self.group(server, "second", word=101)]
        for group, word in zip(groups, (6, 106)):
            group[1].word = word
        for number in range(3):
            for group in groups:
                self.assertEqual(self.turn(*group, 1000 * number + 7), 0)
        for group in groups:
            self.assertGreater(min(self.outs(server, *group)), 0)


if __name__ == "__main__":
    unittest.main()
