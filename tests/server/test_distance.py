#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""How often a program waits for the network: round trips are counted, over a proxy that makes them long, and no time is compared."""
import os
import unittest

from whole import PROGRAM, Whole, runner
from distance import Proxy  # noqa: E402, I001 - whole says where it lies

# Far above what a busy machine takes between two calls, so that what did not wait is not counted as if it had.
RTT_S = 0.05
# Connection, hello, devices, one for each of two allocations, the module, each of three kernels, and the first result.
START_MAX = 10
RUNS_MAX = 8


class Distance(Whole):
    def least(self, name, enough, *arguments):
        """Round trips of the first run that takes no more than enough, or of the best of many.

        A program that stands still for longer than one hears meanwhile what it does not wait for, which adds to them and never takes any away."""
        counts = []
        while len(counts) < RUNS_MAX and (not counts or counts[-1] > enough):
            counts.append(self.round_trips("%s-%d" % (name, len(counts)), *arguments))
        return min(counts)

    def round_trips(self, name, *arguments, program=PROGRAM):
        """Up to the program's mid point."""
        proxy = Proxy(self.server("server-" + name).address, RTT_S)
        self.addCleanup(proxy.close)
        directory = os.path.join(self.dir, name)
        os.mkdir(directory)
        self.point = os.path.join(directory, "phase")
        environment = runner.clean_environment()
        environment.update({"CKT_TEST_PHASE_FILE": self.point, "HOME": self.home})
        started = runner.Program(directory, [self.tree.tool("cricket-run"), "--server", proxy.address, program, *arguments], environment)
        self.programs.append(started)
        started.wait_ready(self.point + ".ready", 60)
        count = proxy.round_trips
        self.finish(started)
        self.assertEqual(proxy.connections, 1)
        return count

    def test_start(self):
        """From nothing to the first result, of a small CUDA program."""
        self.assertLessEqual(self.least("start", START_MAX, "1", "0"), START_MAX)

    def test_step(self):
        """A step with 21 launches, an event and two waits needs one: for its loss."""
        few = min(self.round_trips("few-%d" % i, "1", "2") for i in range(2))
        self.assertLessEqual(self.least("many", few + 20, "1", "22") - few, 20)


if __name__ == "__main__":
    unittest.main(verbosity=2)
