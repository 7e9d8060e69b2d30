#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Sessions that do not fit a GPU together and swap each other out (--when-full swap): over programs on the soft GPU."""
import json
import os
import re
import signal
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from takers import MIB, OUT_OF_MEMORY, Limited  # noqa: E402
from whole import runner  # noqa: E402


class Quanta(Limited):
    def swapping(self, gpu_memory="100M", *options, swap_memory="1G", when_full="swap", **more):
        return self.limited(options=("--gpu-memory", gpu_memory, "--when-full", when_full, "--swap-memory", swap_memory, "--max-wait", "1", *options), **more)

    def id_of(self, server, taker):
        (session,) = [s["session"] for s in runner.sessions_of(self.tree, server) if s["pid"] == taker.process.pid]
        return session

    def shown(self, server, taker):
        return json.loads(self.ctl(server, "--json", "swap", "show", self.id_of(server, taker)))

    def quanta(self, server):
        sessions = json.loads(self.ctl(server, "--json", "ps"))["sessions"]
        return {s["session"]: s["swapping"] for s in sessions}

    def wait_swapped(self, server, taker):
        session = self.id_of(server, taker)
        self.wait(lambda: self.quanta(server)[session]["state"] == "swapped")

    def both(self, *works):
        """Runs each in a thread of its own: what they return."""
        results = [None] * len(works)

        def run(index, work):
            results[index] = work()

        # One that hangs is to end with the test.
        threads = [threading.Thread(target=run, args=item, daemon=True) for item in enumerate(works)]
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

    def outs(self, server, *takers):
        return sum(self.shown(server, taker)["outs"] for taker in takers)

    def came_in_behind(self, server):
        """MiB of sessions that came in while others left, by switch."""
        return [int(mib) for mib in re.findall(r"(\d+) of \d+ MiB came in while other sessions left", self.log_of(server))]

    def both_ways(self, happened, *blocks):
        """One comes in while the other leaves, on a GPU with no byte more than the budget."""
        server = self.swapping("340M", devices="12.0:340M")
        takers = [self.taker(server) for _ in range(2)]
        for taker in takers:
            self.assertEqual(self.cycle(taker, 1, *blocks), 0)
        words = iter(range(1000, 1 << 30, 1000))

        def switched():
            # All is new, so that all is written when it leaves.
            word = next(words)
            for taker in takers:
                self.assertEqual(taker.ask("fill", word), 0)
            for taker in takers:
                self.assertEqual(taker.ask("check", word), 0)
            return happened(server)

        self.wait(switched)

    def test_both_ways(self):
        self.both_ways(lambda server: any(self.came_in_behind(server)), *[8] * 40)
        self.assertIn("of them while others left", self.ctl(self.servers[-1], "events"))

    def test_both_ways_large(self):
        """One large allocation leaves whole at first, and in parts when it has come in once."""
        self.both_ways(lambda server: "on its way out" in self.log_of(server), 320)

    def test_ahead(self):
        """Of one that fits in part, this part comes in before the other one leaves."""
        self.both_ways(lambda server: "a part of it fits" in self.log_of(server) and any(self.came_in_behind(server)), *[8] * 25)

    def crowded(self, fault):
        """A server of one fault, and two programs that do not fit together: the second has its memory, the first has not."""
        server = self.server("fault" + fault.replace(":", "-"), "--gpu-memory", "340M", "--when-full", "swap", "--swap-memory", "1G", "--max-wait", "1",
                             env={"CRICKET_SOFT_DEVICES": "12.0:340M", "CRICKET_FAULT": fault})
        server.tcp, server.address = server.address, "unix:" + server.socket
        takers = [self.taker(server) for _ in range(2)]
        self.assertEqual(self.cycle(takers[0], 1, *[8] * 40), 0)
        return server, *takers

    def lost(self, taker):
        """Its worker was killed, and nobody restores it."""
        taker.process.kill()

    def all_is_there(self, server):
        """Whoever else has gone: a new program gets all of the GPU."""
        last = self.taker(server)
        self.assertEqual(self.cycle(last, 1, *[8] * 40), 0)

    def begun(self, taker, *words):
        """A command that waits: what ends the wait for its answer."""
        taker.process.stdin.write(" ".join(map(str, words)) + "\n")
        taker.process.stdin.flush()
        return lambda: int(taker.process.stdout.readline())

    def test_leaving_killed(self):
        """The worker dies when a step has left: all of its memory is the other's."""
        server, first, second = self.crowded("236")
        self.assertEqual([second.ask("alloc", 8) for _ in range(40)], [0] * 40)
        self.lost(first)
        self.wait(lambda: len(runner.sessions_of(self.tree, server)) == 1)
        self.assertEqual(second.ask("fill", 7), 0)
        self.assertEqual(second.ask("check", 7), 0)

    def test_leaving_fails(self):
        """A step cannot leave: what has left comes back, and the session stays."""
        server, first, second = self.crowded("fail:236")
        self.assertEqual([second.ask("alloc", 8) for _ in range(2)], [0] * 2)
        answer = self.begun(second, "alloc", 64)
        self.wait(lambda: "keeps its memory on the GPU" in self.log_of(server))
        self.assertEqual(first.ask("check", 7), 0)
        first.end()
        self.assertEqual(answer(), 0)
        second.end()
        self.all_is_there(server)

    def test_leaving_half(self):
        """Nor can what has left come back at once: it does when there is room, though the program is idle."""
        server, first, second = self.crowded("fail:237")
        self.assertEqual([second.ask("alloc", 8) for _ in range(2)], [0] * 2)
        answer = self.begun(second, "alloc", 64)
        self.wait(lambda: "come back when there is room" in self.log_of(server))
        self.wait(lambda: "swapped in:" in self.log_of(server))
        self.assertEqual(first.ask("check", 7), 0)
        first.end()
        self.assertEqual(answer(), 0)
        second.end()
        self.all_is_there(server)

    def follower(self, fault):
        """The first one comes in behind the second, and meets the fault."""
        server, first, second = self.crowded(fault)
        self.assertEqual(self.cycle(second, 1, *[8] * 40), 0)
        return server, first, second, self.begun(first, "check", 7)

    def test_follower_killed(self):
        """A worker dies that comes in behind another: before a step is there, or after.  The other one leaves, and comes back."""
        for fault in ("238", "239"):
            with self.subTest(fault=fault):
                server, first, second, _ = self.follower(fault)
                self.wait(lambda server=server: "on its way out" in self.log_of(server))
                self.lost(first)
                self.wait(lambda server=server: len(runner.sessions_of(self.tree, server)) == 1)
                if fault == "239":
                    self.assertEqual(second.ask("check", 7), 0)
                    second.end()
                else:
                    self.lost(second)
                self.wait(lambda server=server: not runner.sessions_of(self.tree, server))
                self.all_is_there(server)

    def test_follower_fails(self):
        """It gives back what it took, and comes in when the other one has left."""
        server, first, second, answer = self.follower("fail:239")
        self.assertEqual(answer(), 0)
        self.assertIn("on its way out", self.log_of(server))
        self.assertEqual(second.ask("check", 7), 0)
        first.end()
        second.end()
        self.all_is_there(server)

    def test_four(self):
        """Four of them; the number of switches is bounded by what each did."""
        server = self.swapping()
        takers = [self.taker(server) for _ in range(4)]
        self.assertEqual(self.both(*(lambda t=t: self.cycle(t, 2, 60) for t in takers)), [0] * 4)
        outs = self.outs(server, *takers)
        self.assertGreaterEqual(outs, 3)
        # Each call brings its session in once at most: an allocation, and twice a memset, a wait and a copy.
        self.assertLessEqual(outs, 4 * 7)

    def test_together(self):
        """While all fit, nobody is swapped out."""
        server = self.swapping("200M")
        takers = [self.taker(server) for _ in range(3)]
        self.assertEqual(self.both(*(lambda t=t: self.cycle(t, 2, 60) for t in takers)), [0] * 3)
        self.assertEqual(self.outs(server, *takers), 0)

    def test_deadlock(self):
        """Two programs that hold 2 of 5 and want 2 more both finish, none refused."""
        server = self.swapping()
        takers = [self.taker(server), self.taker(server)]
        for taker in takers:
            self.assertEqual(self.cycle(taker, 1, 40), 0)
        self.assertEqual(self.both(*(lambda t=t: self.cycle(t, 2, 40) for t in takers)), [0, 0])
        self.assertGreater(self.outs(server, *takers), 0)

    def test_mixes(self):
        """Programs that grow by small allocations: no switch for each of them."""
        # What one does between two waits takes less than a quantum, on a slow machine as well: else there would be more switches there.
        server = self.swapping("100M", "--max-wait", "5")
        takers = [self.taker(server) for _ in range(3)]
        self.assertEqual(self.both(*(lambda t=t: self.cycle(t, 1, *[4] * 15) for t in takers)), [0] * 3)
        self.assertLessEqual(self.outs(server, *takers), 3 * 4)

    def test_idle_holder(self):
        """A program that does nothing leaves for one that wants memory, and comes back with what it had."""
        server = self.swapping()
        holder, other = self.taker(server), self.taker(server)
        self.assertEqual(self.cycle(holder, 1, 60), 0)
        self.assertEqual(self.cycle(other, 1, 60), 0)
        # Its worker may have given the memory back, and not have said so yet.
        self.wait_swapped(server, holder)
        quantum = self.quanta(server)[self.id_of(server, holder)]
        self.assertGreaterEqual(quantum["swapped_bytes"], 60 * MIB)
        self.assertIn("another session waits for the memory", quantum["reason"])
        self.assertEqual(holder.ask("check", 7), 0)
        self.wait_swapped(server, other)

    def beside(self, taker, *words):
        """Asks in a thread, which puts the answer into self.results; it does not outlive a test that fails."""
        self.results = []
        begun = threading.Thread(target=lambda: self.results.append(taker.ask(*words)), daemon=True)
        begun.start()
        return begun

    def loops(self, taker, seconds):
        """Of a kernel that takes at least so long on this machine, whatever else runs on it now."""
        few, took = 500000, []
        for _ in range(8):
            begun = time.monotonic()
            self.assertEqual(taker.ask("long", few) + taker.ask("sync"), 0)
            took.append(time.monotonic() - begun)
        return int(few * seconds / min(took))

    def test_spins(self):
        """What does not drain stays, and is shown; others wait until it ends."""
        server = self.swapping("100M", "--drain", "1s")
        holder, other = self.taker(server), self.taker(server)
        self.assertEqual(self.cycle(holder, 1, 60), 0)
        holds, waits = self.id_of(server, holder), self.id_of(server, other)
        # It goes on until both have been looked at.
        self.assertEqual(holder.ask("long", self.loops(holder, 6)), 0)
        begun = self.beside(other, "alloc", 60)
        self.wait(lambda: "keeps its memory on the GPU" in self.log_of(server))
        quanta = {}

        def shown():
            quanta.update(self.quanta(server))
            return (quanta[holds]["state"], quanta[waits]["state"]) == ("stays", "waits")

        # The one moves for a moment whenever that is tried again, and the other waits as long as its worker repeats the wish.
        self.wait(shown)
        self.assertEqual(self.results, [])
        self.assertIn("does not finish", quanta[holds]["reason"])
        begun.join(60)
        self.assertEqual(self.results, [0])
        self.assertEqual(holder.ask("check", 7), 0)

    def test_full(self):
        """Without room in the swap memory a session stays, the log says so, and others wait."""
        server = self.swapping(swap_memory="16M")
        holder, other = self.taker(server), self.taker(server)
        self.assertEqual(self.cycle(holder, 1, 60), 0)
        begun = self.beside(other, "alloc", 60)
        self.wait(lambda: "the swap memory is full" in self.log_of(server))
        self.assertEqual(self.results, [])
        self.assertEqual(holder.ask("free"), 0)
        begun.join(60)
        self.assertEqual(self.results, [0])

    def test_too_large(self):
        """What no swap can make room for is out of memory at once."""
        server = self.swapping()
        taker = self.taker(server)
        self.assertEqual(self.cycle(taker, 1, 60), 0)
        self.assertEqual(taker.ask("alloc", 60), OUT_OF_MEMORY)
        self.assertEqual(taker.ask("check", 7), 0)

    def test_no_swap_memory(self):
        """Then swap waits as wait does, and the log says so once."""
        server = self.limited(options=("--gpu-memory", "100M", "--when-full", "swap"))
        holder, other = self.taker(server), self.taker(server)
        self.assertEqual(self.cycle(holder, 1, 60), 0)
        begun = self.beside(other, "alloc", 60)
        self.wait(lambda: "waits for 60 MiB" in self.log_of(server))
        self.assertEqual(self.log_of(server).count("no swap memory"), 1)
        self.assertEqual(holder.ask("free"), 0)
        begun.join(60)
        self.assertEqual(self.results, [0])

    def test_killed(self):
        """A worker that dies while it is swapped out takes nothing along: the others go on."""
        server = self.swapping()
        holder, other = self.taker(server), self.taker(server)
        self.assertEqual(self.cycle(holder, 1, 60), 0)
        self.assertEqual(self.cycle(other, 1, 60), 0)
        (worker,) = re.findall(rf"session {self.id_of(server, holder)}: worker (\d+) ready", self.log_of(server))
        os.kill(int(worker), signal.SIGKILL)
        holder.process.kill()
        self.wait(lambda: len(runner.sessions_of(self.tree, server)) == 1)
        self.assertEqual(self.cycle(other, 2), 0)

    def test_idle_memory(self):
        """--idle-memory swaps out who has nothing to do, whatever when-full says; the next command brings it back."""
        server = self.limited(options=("--swap-memory", "1G", "--idle-memory", "1s"))
        taker = self.taker(server)
        self.assertEqual(self.cycle(taker, 1, 60), 0)
        self.wait(lambda: runner.sessions_of(self.tree, server)[0]["state"] == "swapped")
        self.assertIn("--idle-memory", self.quanta(server)[self.id_of(server, taker)]["reason"])
        shown = self.shown(server, taker)
        self.assertEqual(shown["ins"], shown["outs"] - 1)
        self.assertEqual(taker.ask("check", 7), 0)
        # After another second it leaves again.
        self.assertGreaterEqual(self.shown(server, taker)["ins"], shown["ins"] + 1)


if __name__ == "__main__":
    unittest.main()
