#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Allocations that wait for memory (--when-full wait): over programs on the soft GPU."""
import json
import os
import signal
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from takers import MIB, OUT_OF_MEMORY, Limited  # noqa: E402
from whole import runner  # noqa: E402


class Later:
    """The answer of a program that waits."""

    def __init__(self, taker, *words):
        self.answer = None
        self.thread = threading.Thread(target=self.run, args=(taker, words))
        self.thread.start()

    def run(self, taker, words):
        self.answer = taker.ask(*words)

    def get(self):
        self.thread.join(60)
        return self.answer


class Waiting(Limited):
    def waiting(self, *options, rules=(), gpu_memory="100M", **more):
        return self.limited(*rules, options=("--gpu-memory", gpu_memory, *options), **more)

    def log(self, server):
        with open(server.log, encoding="utf-8") as f:
            return f.read()

    def wait_for(self, server, text, count=1):
        self.wait(lambda: self.log(server).count(text) >= count)

    def test_frees(self):
        """What another frees, and what a program leaves at its end."""
        server = self.waiting("--when-full", "wait")
        one, two = self.taker(server), self.taker(server)
        self.assertEqual(one.ask("alloc", 60), 0)
        self.assertEqual(two.ask("alloc", 30), 0)
        later = Later(two, "alloc", 40)
        self.wait_for(server, "waits for 40 MiB")
        self.assertIsNone(later.answer)
        self.assertEqual(one.ask("free"), 0)
        self.assertEqual(later.get(), 0)
        self.assertEqual(one.ask("alloc", 30), 0)
        self.assertEqual(one.ask("info")[0], 0)
        later = Later(one, "alloc", 70)
        self.wait_for(server, "waits for 70 MiB")
        two.end()
        self.assertEqual(later.get(), 0)
        self.assertIn("gets 70 MiB", self.log(server))
        self.assertEqual(one.ask("info")[:2], [0, 100 * MIB])


if __name__ == "__main__":
    unittest.main()
