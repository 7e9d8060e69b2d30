#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The seam of the policies: events of decisions, a scheduler outside of the server, and what it may not do."""
import copy
import json
import os
import re
import signal
import subprocess
import sys
import threading
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import test_waiting  # noqa: E402
from takers import MIB, OUT_OF_MEMORY, Limited  # noqa: E402

EXAMPLE = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "docs", "examples", "scheduler.py")


class Follower:
    """cricketctl events --follow --json."""

    def __init__(self, test, server, **env):
        self.test, self.events = test, []
        self.process = subprocess.Popen([test.tree.tool("cricketctl"), "--server", server.address, "--json", "events", "--follow"],
                                        stdout=subprocess.PIPE, text=True, env={**os.environ, **env})
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()
        test.addCleanup(self.end)

    def read(self):
        for line in self.process.stdout:
            self.events.append(json.loads(line))

    def end(self):
        self.process.kill()
        self.thread.join()
        self.process.wait()
        self.process.stdout.close()

    def named(self, *names):
        return [e for e in list(self.events) if e["event"] in names]

    def follows(self, count):
        """Waits until it has been told of so many waits: without a follower the server asks nobody, and decides itself."""
        self.test.wait(lambda: len(self.named("wait")) >= count)


class Seam(Limited):
    waiting, wait_for = test_waiting.Waiting.waiting, test_waiting.Waiting.wait_for
    begin, id_of = test_waiting.Waiting.begin, test_waiting.Waiting.id_of

    def crowd(self, server, *sizes):
        """One that holds 100 MiB in two blocks, and others that wait for these sizes, in that order."""
        holder = self.taker(server)
        takers = [self.taker(server) for _ in sizes]
        self.assertEqual(holder.ask("alloc", 30), 0)
        self.assertEqual(holder.ask("alloc", 70), 0)
        return holder, takers, [self.begin(taker, server, "alloc", mib) for taker, mib in zip(takers, sizes)]

    def serve(self, holder, takers, laters):
        """In which order they are served as 70 and then the rest come free."""
        self.assertEqual(holder.ask("free"), 0)
        served = []
        while len(served) < len(takers):
            self.wait(lambda: [i for i, later in enumerate(laters) if later.answer is not None and i not in served])
            (i,) = [i for i, later in enumerate(laters) if later.answer is not None and i not in served]
            self.assertEqual(laters[i].get(), 0)
            served.append(i)
            self.assertEqual(takers[i].ask("free"), 0)
        return served

    def decide(self, server, *words, **env):
        status, _, said = self.may_fail(server, "decide", *map(str, words), **env)
        return status, said

    def choice(self, follower, after=0):
        """The next open choice."""
        self.wait(lambda: [e for e in follower.named("choose") if e["number"] > after and e["candidates"]])
        return [e for e in follower.named("choose") if e["number"] > after and e["candidates"]][-1]

    def test_events(self):
        """Every decision in order, with its reason, whom it is of and on whom it depends."""
        server = self.waiting()
        follower = Follower(self, server)
        one, two = self.taker(server), self.taker(server)
        self.assertEqual(one.ask("alloc", 60), 0)
        later = self.begin(two, server, "alloc", 50)
        self.assertEqual(two.ask("info")[0] if later.answer is not None else 0, 0)
        self.assertEqual(one.ask("free"), 0)
        self.assertEqual(later.get(), 0)
        self.assertEqual(one.ask("alloc", 102), OUT_OF_MEMORY)
        first, second = self.id_of(server, one), self.id_of(server, two)
        one.end()
        two.end()
        self.wait(lambda: len(follower.named("left")) == 2)
        # A thread adds to them, and the last end may come after what its session had.
        events = list(follower.events)
        self.assertEqual([e["number"] for e in events], sorted(e["number"] for e in events))
        of = {id: [(e["event"], e["bytes"] // MIB) for e in events if e["session"] == id and e["event"] not in ("started", "ended")]
              for id in (first, second)}
        self.assertEqual(of[first][0], ("came", 0))
        self.assertIn(("refused", 102), of[first])
        self.assertEqual([what for what in of[second] if what[0] in ("wait", "granted")], [("wait", 50), ("granted", 50)])
        (wait,), (granted,), (refused,) = (follower.named(name) for name in ("wait", "granted", "refused"))
        self.assertEqual((wait["session"], wait["gpu"], wait["reason"]), (second, 0, "other sessions hold the memory"))
        self.assertIn(f"{first} holds 60 MiB", wait["detail"])
        self.assertEqual((granted["request"], granted["budget_bytes"]), (wait["request"], 100 * MIB))
        self.assertEqual(refused["reason"], "the GPU's budget or its owner's limit is too small for it")
        # What is leased, granted and freed comes to nothing at the end.
        self.assertEqual([e["used_bytes"] for e in follower.named("freed", "left")][-1] <= 100 * MIB, True)
        # cricketctl gives the server 0.3 seconds for each answer.
        self.wait(lambda: "50 MiB of GPU 0: other sessions hold the memory" in self.ctl(server, "events"))
        self.assertNotIn(" leased ", self.ctl(server, "events"))

    def test_folded(self):
        """A flood of refusals is one event, and one that says how many more there were."""
        server = self.limited("job=small memory=10M", options=("--gpu-memory", "100M"))
        taker = self.taker(server, "small")
        for _ in range(14):
            self.assertEqual(taker.ask("alloc", 20), OUT_OF_MEMORY)
        follower = Follower(self, server)
        self.wait(lambda: follower.named("refused"))
        self.assertEqual(len(follower.named("refused")), 1)
        taker.end()
        self.wait(lambda: len(follower.named("refused")) == 2)
        self.assertEqual(follower.named("refused")[1]["folded"], 12)
        self.assertIn("and 12 more", follower.named("refused")[1]["detail"])

    def test_owners(self):
        """Others' decisions are not seen, nor what all hold together, nor the choices; and nobody else decides."""
        alice, bob = self.token("alice"), self.token("bob")
        server = self.waiting("--tokens", self.tokens, "--wait-policy", "external,1")
        over_tcp = copy.copy(server)
        over_tcp.address = server.tcp
        mine, all_of_them = Follower(self, over_tcp, CRICKET_TOKEN_FILE=bob), Follower(self, server)
        one, two = self.taker(over_tcp, CRICKET_TOKEN_FILE=alice), self.taker(over_tcp, CRICKET_TOKEN_FILE=bob)
        self.assertEqual(one.ask("alloc", 80), 0)
        later = self.begin(two, server, "alloc", 40)
        all_of_them.follows(1)
        status, said = self.decide(over_tcp, f"session={self.id_of(server, two)}", "grant", CRICKET_TOKEN_FILE=bob)
        self.assertEqual(status, 1)
        self.assertIn("decisions are made by administrators", said)
        self.assertEqual(one.ask("free"), 0)
        self.assertEqual(later.get(), 0)
        self.wait(lambda: mine.named("granted") and all_of_them.named("choose"))
        session, other = self.id_of(server, two), self.id_of(server, one)
        self.assertEqual({e["session"] for e in mine.events}, {session})
        self.assertEqual({(e["used_bytes"], e["budget_bytes"]) for e in mine.events}, {(0, 0)})
        self.assertNotIn(other, json.dumps(mine.events))
        self.assertIn("1 other sessions hold some", mine.named("wait")[0]["detail"])
        self.assertIn(other, {e["session"] for e in all_of_them.events})

    def test_example(self):
        """The example's scheduler changes the order of the grants; killed, the fallback decides."""
        server = self.waiting("--wait-policy", "external:fifo,30")
        scheduler = subprocess.Popen([sys.executable, EXAMPLE, "--server", server.address], stdout=subprocess.PIPE, text=True,
                                     env={**os.environ, "CRICKETCTL": self.tree.tool("cricketctl")}, start_new_session=True)
        self.addCleanup(scheduler.stdout.close)
        self.addCleanup(scheduler.wait)
        follower = Follower(self, server)
        crowd = self.crowd(server, 30, 70, 50)
        try:
            # From here on the server asks; the scheduler may come later, and finds the open choice.
            follower.follows(3)
            self.assertEqual(self.serve(*crowd), [1, 2, 0])
        finally:
            os.killpg(scheduler.pid, signal.SIGKILL)
        self.wait(lambda: len(follower.named("decided")) == 3)
        self.assertEqual([e["bytes"] // MIB for e in follower.named("decided")], [70, 50, 30])
        self.assertEqual(follower.named("fallback"), [])
        follower.end()
        for taker in (crowd[0], *crowd[1]):
            taker.end()
        self.assertEqual(self.serve(*self.crowd(server, 30, 60, 50)), [0, 1, 2])

    def test_killed(self):
        """A scheduler that is killed while the server waits for it: the fallback decides at once."""
        server = self.waiting("--wait-policy", "external:fifo,60")
        follower = Follower(self, server)
        holder, _, (later,) = self.crowd(server, 40)
        follower.follows(1)
        self.assertEqual(holder.ask("free"), 0)
        self.choice(follower)
        self.assertIsNone(later.answer)
        follower.process.send_signal(signal.SIGKILL)
        self.assertEqual(later.get(), 0)
        self.assertIn("nobody follows any more, and fifo decided", self.log_of(server))

    def test_silent(self):
        """One that follows and decides nothing costs one timeout; then it is not asked until it decides."""
        server = self.waiting("--wait-policy", "external:best-fit,0.2")
        follower = Follower(self, server)
        crowd = self.crowd(server, 30, 60, 50)
        follower.follows(3)
        self.assertEqual(self.serve(*crowd), [1, 2, 0])
        self.wait(lambda: follower.named("fallback"))
        self.assertEqual(len(follower.named("choose")), 1)
        number = follower.named("choose")[0]["number"]
        self.assertEqual(self.decide(server, number, "grant", 1),
                         (1, f"cricketctl: event {number} is decided: no decision came in time, and best-fit decided\n"))

    def test_decisions(self):
        """Wrong decisions are refused by name, and change nothing; the first of two schedulers wins."""
        server = self.waiting("--wait-policy", "external,60")
        follower = Follower(self, server)
        holder, takers, laters = self.crowd(server, 40, 60, 90)
        follower.follows(3)
        self.assertEqual(holder.ask("free"), 0)
        choice = self.choice(follower)
        number, requests = choice["number"], {c["bytes"] // MIB: c["request"] for c in choice["candidates"]}
        self.assertEqual(sorted(requests), [40, 60])
        ids = [self.id_of(server, taker) for taker in takers]
        self.assertEqual([c["session"] for c in choice["candidates"]], ids[:2])
        too_large = follower.named("wait")[2]["request"]
        for words, status, answer in (
                ((number, "grant", too_large), 1, f"request {too_large} is no candidate of event {number}"),
                ((number, "grant", 4711), 1, f"request 4711 is no candidate of event {number}"),
                ((number + 4711, "grant", requests[40]), 1, f"event {number + 4711} asks nothing"),
                ((f"session={ids[2]}", "grant"), 1, "cannot be granted: other sessions hold the memory"),
                ((f"session={self.id_of(server, holder)}", "grant"), 1, "waits for no memory"),
                (("session=ffffffffffff", "grant"), 4, "there is no session"),
                ((f"session={ids[0]}", "swap-out"), 1, "this server has no swap memory"),
                ((f"session={ids[0]}", "wait"), 1, "answers an event"),
                ((number, "grant"), 2, "this is no decision"),
                ((number, "keep", 1), 2, "this is no decision"),
                (("0", "wait"), 2, "this is no decision")):
            got, said = self.decide(server, *words)
            self.assertEqual((words, got), (words, status), said)
            self.assertIn(answer, said)
        self.assertEqual([later.answer for later in laters], [None] * 3)
        self.assertEqual(self.decide(server, number, "grant", requests[60])[0], 0)
        self.assertEqual(laters[1].get(), 0)
        status, said = self.decide(server, number, "grant", requests[40])
        self.assertEqual(status, 1)
        self.assertRegex(said, rf"event {number} is decided: grant request {requests[60]}, by uid:\d+")
        # What nothing asks for: an administrator ends a wait; the program is out of memory.
        self.assertEqual(self.decide(server, f"session={ids[2]}", "refuse")[0], 0)
        self.assertEqual(laters[2].get(), OUT_OF_MEMORY)
        self.wait(lambda: follower.named("refused"))
        self.assertEqual(follower.named("refused")[-1]["reason"], "an administrator or a scheduler decided so")
        self.assertEqual(takers[1].ask("free"), 0)
        self.assertEqual(self.decide(server, self.choice(follower, number)["number"], "grant", requests[40])[0], 0)
        self.assertEqual(laters[0].get(), 0)

    def test_wait(self):
        """'wait' is asked again after the timeout."""
        # In that time the event and the decision find their way, twice.
        server = self.waiting("--wait-policy", "external,12")
        follower = Follower(self, server)
        holder, _, (later,) = self.crowd(server, 40)
        follower.follows(1)
        self.assertEqual(holder.ask("free"), 0)
        first = self.choice(follower)["number"]
        self.assertEqual(self.decide(server, first, "wait")[0], 0)
        again = self.choice(follower, first)
        self.assertIsNone(later.answer)
        self.assertEqual(self.decide(server, again["number"], "grant", again["candidates"][0]["request"])[0], 0)
        self.assertEqual(later.get(), 0)

    def test_flood(self):
        """Ten thousand decisions while a follower reads nothing: each is accounted for, and the server does not grow."""
        server = self.waiting()
        follower = Follower(self, server)
        holder, waiter, taker = (self.taker(server) for _ in range(3))
        self.assertEqual(holder.ask("alloc", 30), 0)
        self.assertEqual(taker.ask("alloc", 2), 0)
        # While anybody waits, what a program frees is given back at once.
        lost = self.begin(waiter, server, "alloc", 90)
        # The taker's worker may hear of that later.
        self.assertEqual(taker.ask("alloc", 60), 0)
        self.assertEqual(taker.ask("free"), 0)
        self.wait(lambda: self.shown(server)[1][0]["used_bytes"] == 32 * MIB)
        # One that never asked for events is not told how many it missed.
        follower.follows(1)
        follower.process.send_signal(signal.SIGSTOP)
        status = f"/proc/{server.process.pid}/statm"

        def pages():
            with open(status, encoding="ascii") as f:
                return int(f.read().split()[1])

        def flood(count):
            for _ in range(count):
                self.assertEqual(taker.ask("alloc", 60), 0)
                self.assertEqual(taker.ask("free"), 0)

        flood(1000)
        before = pages()
        flood(4000)
        self.assertLess(pages() - before, 512)
        follower.process.send_signal(signal.SIGCONT)
        session = self.id_of(server, taker)
        taker.end()
        self.wait(lambda: [e for e in follower.named("left") if e["session"] == session])
        told = [e for e in follower.named("leased", "freed") if e["session"] == session]
        missed = sum(e["lost"] for e in follower.named("missed"))
        self.assertGreaterEqual(sum(1 + e["folded"] for e in told) + missed, 10000)
        holder.end()
        self.assertEqual(lost.get(), 0)

    def test_option(self):
        for wrong in ("external:", "external:lifo", "external,", "external,0", "external,61", "external:fifo,1e1", "external:fifo,-1", "externally"):
            process = subprocess.run([self.tree.tool("cricket-server"), "--driver", "soft", "--listen", "none", "--socket", os.path.join(self.dir, "s"),
                                      "--wait-policy", wrong], capture_output=True, text=True, timeout=30, check=False)
            self.assertEqual((wrong, process.returncode), (wrong, 2), process.stderr)
            self.assertTrue(re.search(r"--wait-policy.*write fifo, best-fit", process.stderr), process.stderr)


if __name__ == "__main__":
    unittest.main()
