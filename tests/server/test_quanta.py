#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Sessions that do not fit a GPU together and swap each other out (--when-full swap): over programs on the soft GPU."""
import json
import os
import signal
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from takers import OUT_OF_MEMORY, Limited  # noqa: E402
from whole import runner  # noqa: E402


class Quanta(Limited):
    def swapping(self, gpu_memory="100M", *options, swap_memory="1G", when_full="swap", **more):
        return self.limited(options=("--gpu-memory", gpu_memory, "--when-full", when_full, "--swap-memory", swap_memory, "--max-wait", "1", *options), **more)

    def id_of(self, server, taker):
        (session,) = [s["session"] for s in runner.sessions_of(self.tree, server) if s["pid"] == taker.process.pid]
        return session

    def shown(self, server, taker):
        return json.loads(self.ctl(server, "--json", "swap", "show", self.id_of(server, taker)))

    def both(self, *works):
        """Runs each in a thread of its own: what they return."""
        results = [None] * len(works)

        def run(index, work):
            results[index] = work()

        threads = [threading.Thread(target=run, args=item) for item in enumerate(works)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
        return results

    def cycle(self, taker, rounds, *blocks):
        """Takes blocks, then writes and reads them again and again: how often something was wrong."""
        bad = 0
        for mib in blocks:
            bad += taker.ask("alloc", mib) != 0
        for number in range(rounds):
            bad += taker.ask("fill", 1000 * number + 7) != 0
            bad += taker.ask("check", 1000 * number + 7) != 0
        return bad

    def test_two(self):
        """Two programs that do not fit together both finish with what they wrote, by swapping."""
        server = self.swapping()
        takers = [self.taker(server), self.taker(server)]
        self.assertEqual(self.both(*(lambda t=t: self.cycle(t, 3, 60) for t in takers)), [0, 0])
        shown = [self.shown(server, t) for t in takers]
        self.assertGreater(sum(s["out_bytes"] for s in shown), 0)


if __name__ == "__main__":
    unittest.main()
