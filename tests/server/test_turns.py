#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Sessions that share a GPU in time: shares, caps, classes, and those that do not give it back, on the soft GPU."""
import json
import os
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from whole import Whole, runner  # noqa: E402

CLIENT = os.environ["CKT_TEST_TURN_CLIENT"]
LOOPS = 200000


class Worker:
    """A program that keeps the GPU busy as it is told."""

    def __init__(self, test, server, job):
        environment = {**runner.clean_environment(), "HOME": test.home, "CRICKET_JOB": job}
        self.job = job
        self.process = subprocess.Popen([test.tree.tool("cricket-run"), "--server", server.address, CLIENT], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
        assert self.process.stdout.readline() == "0\n"

    def ask(self, *words):
        self.say(*words)
        return self.hear()

    def say(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()

    def hear(self):
        return int(self.process.stdout.readline())

    def end(self):
        self.process.stdin.close()
        self.process.wait(60)
        self.process.stdout.close()
        self.process.stderr.close()


class Turns(Whole):
    def setUp(self):
        super().setUp()
        self.workers = []

    def tearDown(self):
        for worker in self.workers:
            if not worker.process.stdout.closed:
                worker.end()
        super().tearDown()

    def sharing(self, *rules, options=()):
        self.file = os.path.join(self.dir, "limits.conf")
        with open(self.file, "w", encoding="utf-8") as f:
            f.write("".join(rule + "\n" for rule in rules))
        server = self.server("server", "--limits", self.file, *options, env={"CRICKET_SOFT_DEVICES": "12.0:8G"})
        server.tcp, server.address = server.address, "unix:" + server.socket
        return server

    def worker(self, server, job):
        worker = Worker(self, server, job)
        self.workers.append(worker)
        return worker

    def turns(self, server):
        """By job, as ps tells it."""
        sessions = json.loads(self.ctl(server, "ps", "--json"))["sessions"]
        return {s["job"]: s["turns"][0] for s in sessions if s["turns"]}

    def converges(self, server, **expected):
        """Until each job's part of the time that they used from now on is as expected, in percent: it comes to that, however long a turn is."""
        # A program that is busy has not run anything yet when it says so.
        self.wait(lambda: self.turns(server).keys() >= expected.keys())
        before = self.turns(server)

        def is_there():
            after = self.turns(server)
            used = {job: after[job]["used_us"] - before[job]["used_us"] for job in expected}
            self.said = f"{used} of {expected}"
            # Some turns of each: one alone could be as long as that by chance.
            enough = all(after[job]["turns"] - before[job]["turns"] >= 5 for job in expected)
            return enough and all(abs(100 * used[job] / sum(used.values()) - expected[job]) < 4 for job in expected)

        self.wait(is_there)

    def test_shares(self):
        """Weights divide the time of those that want the GPU; who is alone has all of it."""
        server = self.sharing("job=small share=30", "job=large share=70")
        small, large = self.worker(server, "small"), self.worker(server, "large")
        for worker in (small, large):
            self.assertEqual(worker.ask("busy", LOOPS, 60), 0)
        self.converges(server, small=30, large=70)
        shown = self.turns(server)
        self.assertEqual((shown["small"]["weight_percent"], shown["large"]["weight_percent"]), (30, 70))
        self.assertGreater(large.ask("stop"), 0)
        # Alone, and with so much to run that it never pauses, which would give its turn back: the same turn goes on.
        self.assertGreater(small.ask("stop"), 0)
        self.assertEqual(small.ask("busy", LOOPS, 10000), 0)
        begun = self.turns(server)["small"]

        def goes_on():
            """For many times what a turn lasts where others wait."""
            nonlocal begun
            now = self.turns(server)["small"]
            if now["turns"] != begun["turns"]:
                begun = now
            return now["used_us"] - begun["used_us"] > 200000

        self.wait(goes_on)
        self.assertGreater(small.ask("stop"), 0)

    def test_without_rules(self):
        """A server that shares nothing in time gives no turns; a rule that is set begins them, live."""
        server = self.sharing("job=a memory=1G")
        one, two = self.worker(server, "a"), self.worker(server, "b")
        self.assertEqual(one.ask("run", 3, LOOPS), 0)
        self.assertEqual(self.turns(server), {})
        self.ctl(server, "limit", "set", "job=a", "share=80")
        for worker in (one, two):
            self.assertEqual(worker.ask("busy", LOOPS, 60), 0)
        self.wait(lambda: set(self.turns(server)) == {"a", "b"})
        self.converges(server, a=80, b=20)
        self.ctl(server, "limit", "clear", "job=a")
        self.wait(lambda: self.turns(server) == {})
        self.assertGreater(one.ask("stop"), 0)
        self.assertGreater(two.ask("stop"), 0)

    def test_latency(self):
        """A request of the class latency is served between the kernels of a neighbour that wants all."""
        server = self.sharing("job=serve class=latency", "job=train class=best-effort")
        train, serve = self.worker(server, "train"), self.worker(server, "serve")
        self.assertEqual(serve.ask("run", 1, LOOPS), 0)
        self.assertEqual(train.ask("busy", LOOPS, 100), 0)
        self.wait(lambda: self.turns(server).keys() >= {"serve", "train"})
        before = self.turns(server)

        def both_took_turns():
            self.assertEqual(serve.ask("run", 2, LOOPS), 0)
            after = self.turns(server)
            return all(after[job]["turns"] - before[job]["turns"] >= 10 for job in ("serve", "train"))

        # The neighbour, which wants all, gives its turn back for each of them.
        self.wait(both_took_turns)
        self.assertGreater(train.ask("stop"), 0)

    def test_decided(self):
        """A scheduler gives a turn to a session that its priority would never let run, and ends one."""
        server = self.sharing("job=first priority=10", "job=last priority=1")
        first, last = self.worker(server, "first"), self.worker(server, "last")
        ids = {s["job"]: s["session"] for s in runner.sessions_of(self.tree, server)}
        self.assertEqual(self.may_fail(server, "decide", "session=" + ids["last"], "turn")[0], 1)
        self.assertEqual(first.ask("busy", LOOPS, 60), 0)
        self.wait(lambda: self.turns(server).get("first", {}).get("state") == "runs")
        self.assertEqual(last.ask("busy", LOOPS, 60), 0)
        self.wait(lambda: self.turns(server).get("last", {}).get("state") == "waits")
        before = self.turns(server)

        def goes_on():
            after = self.turns(server)
            return after["first"]["turns"] - before["first"]["turns"] >= 5 and after

        self.wait(goes_on)
        turns = self.turns(server)["last"]["turns"]
        self.ctl(server, "decide", "session=" + ids["last"], "turn")
        self.wait(lambda: self.turns(server)["last"]["turns"] > turns)

        def has_none():
            code, _, err = self.may_fail(server, "decide", "session=" + ids["last"], "end-turn")
            return code == 1 and "has no turn that could end" in err

        # The one that has no turn has none to end; it may still have the one that it was given.
        self.wait(has_none)
        self.wait(lambda: self.may_fail(server, "decide", "session=" + ids["first"], "end-turn")[0] == 0)
        self.assertIn("the next turn of GPU 0, by uid:", self.ctl(server, "events"))
        self.assertGreater(first.ask("stop"), 0)
        self.assertGreater(last.ask("stop"), 0)

    def test_cap(self):
        """A cap holds for one that is alone."""
        server = self.sharing("job=capped cap=20")
        worker = self.worker(server, "capped")
        self.assertEqual(worker.ask("busy", LOOPS, 5), 0)
        self.wait(lambda: "capped" in self.turns(server))
        before, begun = self.turns(server)["capped"], time.monotonic()

        def is_kept():
            """Over many turns: a turn in which the machine stood still counts in full, and is paid back by those behind it."""
            after, seconds = self.turns(server)["capped"], time.monotonic() - begun
            return after["turns"] - before["turns"] >= 10 and (after["used_us"] - before["used_us"]) / 1e6 < 0.25 * seconds

        self.wait(is_kept)
        # It still wants all.
        now = self.turns(server)["capped"]["turns"]
        self.wait(lambda: self.turns(server)["capped"]["turns"] > now)
        self.assertGreater(worker.ask("stop"), 0)

    def test_overdue(self):
        """A kernel that runs on keeps nobody else from the GPU, is shown, and loses nothing."""
        server = self.sharing("job=stuck share=50", options=("--drain", "1s"))
        stuck, other = self.worker(server, "stuck"), self.worker(server, "other")
        self.assertEqual(stuck.ask("long", 20000 * LOOPS), 0)
        self.wait(lambda: self.turns(server).get("stuck", {}).get("state") == "runs")
        other.say("run", 3, LOOPS)
        # As long as the kernel runs: it is looked at while the other one waits and runs.
        self.wait(lambda: self.turns(server)["stuck"]["state"] == "overdue" and "GPU 0 in turns: overdue" in self.ctl(server, "ps"))
        self.assertEqual(other.hear(), 0)
        self.assertIn("does not give GPU 0 back", server.tail())
        stuck.process.kill()
        self.wait(lambda: set(self.turns(server)) == {"other"})
        self.assertEqual(other.ask("run", 3, LOOPS), 0)

    def test_checkpoint(self):
        """A session that waits for its turn is saved, and goes on elsewhere."""
        server = self.sharing("job=a share=50")
        one, two = self.worker(server, "a"), self.worker(server, "b")
        for worker in (one, two):
            self.assertEqual(worker.ask("busy", LOOPS, 5), 0)
        session = next(s["session"] for s in json.loads(self.ctl(server, "ps", "--json"))["sessions"] if s["job"] == "a")
        for number in range(5):
            self.ctl(server, "checkpoint", session, os.path.join(self.dir, f"image{number}"))
        self.assertGreater(one.ask("stop"), 0)
        self.assertGreater(two.ask("stop"), 0)

    def test_server_again(self):
        """Workers run when they like while no server is there, and take turns of the next one."""
        server = self.sharing("job=a share=20")
        one, two = self.worker(server, "a"), self.worker(server, "b")
        for worker in (one, two):
            self.assertEqual(worker.ask("busy", LOOPS, 60), 0)
        server.process.kill()
        server.process.wait()
        time.sleep(0.3)
        server = self.sharing("job=a share=20")
        self.wait(lambda: "found again" in server.tail())
        self.wait(lambda: set(self.turns(server)) == {"a", "b"})
        self.converges(server, a=20, b=80)
        self.assertGreater(one.ask("stop"), 0)
        self.assertGreater(two.ask("stop"), 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
