#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""--share space: sessions of one owner at an MPS of their own, with a stand-in for NVIDIA's control program (fake_mps.py) and the soft GPU."""
import contextlib
import json
import os
import pwd
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from takers import Limited  # noqa: E402
from whole import HERE, runner  # noqa: E402
import subordinate  # noqa: E402

LOST = 46  # CUDA_ERROR_DEVICES_UNAVAILABLE, of a session that is lost


class Space(Limited):
    def setUp(self):
        super().setUp()
        # Daemons of several users write there.
        self.fake = os.path.join(self.dir, "fake")
        os.mkdir(self.fake)
        os.chmod(self.fake, 0o777)
        self.program = shutil.copy(os.path.join(HERE, "fake_mps.py"), self.fake)

    def tearDown(self):
        daemons = self.daemons()
        # One whose kernel runs on does not end by itself, when a test has failed.
        for taker in self.takers:
            if taker.process.poll() is None:
                taker.process.kill()
        super().tearDown()
        # Those of servers that were killed.  The number of one that has ended may be another process's by now.
        for pid, _, _ in daemons:
            with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="replace") as f:
                if self.program in f.read().split("\0"):
                    os.kill(pid, signal.SIGKILL)

    def space(self, *options, share="space", name="server", program=None, rules=None, env=None):
        more = ["--share", share] if share else []
        if rules is not None:
            self.file = os.path.join(self.dir, "limits.conf")
            self.write(*rules)
            more += ["--limits", self.file]
        server = self.server(name, *more, "--log-level", "debug", *options,
                             env={"CRICKET_SOFT_DEVICES": "12.0:8G", "CRICKET_MPS_CONTROL": program or self.program, **(env or {})})
        server.tcp, server.address = server.address, "unix:" + server.socket
        return server

    def lines(self, name):
        with contextlib.suppress(FileNotFoundError):
            with open(os.path.join(self.fake, name), encoding="utf-8") as f:
                return [line.split() for line in f]
        return []

    def daemons(self):
        """(process ID, user, directory) of each that was started."""
        return [(int(line[0]), int(line[1]), line[2]) for line in self.lines("daemons")]

    def told(self, command):
        return [line[3:] for line in self.lines("told") if line[3] == command]

    def sharings(self, server):
        """By session, as ps tells it."""
        return {s["session"]: s["sharing"] for s in runner.sessions_of(self.tree, server)}

    def one(self, server):
        (sharing,) = self.sharings(server).values()
        return sharing

    def directories(self, server):
        return sorted(name for name in os.listdir(server.socket + ".d") if name.startswith("mps-"))

    def worker_of(self, server, session):
        return json.loads(self.ctl(server, "stats", session, "--json"))["worker_pid"]

    def gone(self, server):
        self.wait(lambda: not self.directories(server) and not self.sharings(server))

    def broken_end(self, *takers):
        """Their sessions are lost: what they say is of no interest."""
        for taker in takers:
            taker.process.kill()
            taker.end()


class Daemon(Space):
    def test_life(self):
        """One daemon for two sessions, as the workers' user, in a directory of its own; the last session ends it."""
        server = self.space()
        first, second = self.taker(server), self.taker(server)
        ((pid, user, directory),) = self.daemons()
        self.assertEqual([s["mode"] for s in self.sharings(server).values()], ["space"] * 2)
        self.assertEqual([(s["members"], s["percent"], s["below"], s["reason"]) for s in self.sharings(server).values()], [(2, 100, False, None)] * 2)
        status = os.stat(directory)
        self.assertEqual((status.st_uid, status.st_mode & 0o7777), (user, 0o700))
        self.assertEqual(os.path.dirname(directory), server.socket + ".d")
        if os.geteuid() == 0:
            self.assertNotEqual(user, 0)
        self.assertIn("GPU in space, one of 2", self.ctl(server, "ps"))
        self.assertEqual(json.loads(self.ctl(server, "info", "--json"))["sharing"], {"modes": ["time", "space"], "default": "space", "reason": None})
        self.assertIn("sharing     GPUs in time or in space, without a rule in space\n", self.ctl(server, "info"))
        first.end()
        self.wait(lambda: len(self.sharings(server)) == 1)
        self.assertEqual(self.one(server)["members"], 1)
        self.assertEqual(self.told("quit"), [])
        second.end()
        self.gone(server)
        self.assertEqual(len(self.told("quit")), 1)
        self.wait(lambda: not runner.alive(pid))
        # And again.
        self.taker(server).end()
        self.gone(server)
        self.assertEqual(len(self.daemons()), 2)
        server.stop()

    def test_crash(self):
        """A daemon that dies is started again, in its directory; its sessions go on, and new ones join."""
        server = self.space()
        first = self.taker(server)
        ((pid, _, directory),) = self.daemons()
        os.kill(pid, signal.SIGKILL)
        self.wait(lambda: len(self.daemons()) == 2)
        self.assertEqual(self.daemons()[1][2], directory)
        self.assertIn("MPS of GPU 0: its daemon ended (signal 9); starting it again later", self.log_of(server))
        self.assertEqual(first.ask("alloc", 1), 0)
        self.wait(lambda: os.path.exists(os.path.join(directory, "control")))
        second = self.taker(server)
        self.assertEqual([s["members"] for s in self.sharings(server).values()], [2, 2])
        second.end()
        first.end()
        self.gone(server)
        server.stop()

    def test_server_ends(self):
        """A server that ends takes its daemons along."""
        server = self.space("--grace", "0")
        taker = self.taker(server)
        ((pid, _, _),) = self.daemons()
        server.stop()
        self.assertFalse(runner.alive(pid))
        self.broken_end(taker)

    def test_missing(self):
        """Where there is no control program, or it does not start or answer, sessions are in time, and the log says so once."""
        for name, program, reason, told in (("missing", "/nonexistent", "there is no MPS", "the soft GPU has no MPS"),
                                            ("broken", None, "its MPS does not start", "does not answer: its log is control.log in"),
                                            ("silent", None, "its MPS does not start", "does not answer: its log is control.log in")):
            with self.subTest(name):
                open(os.path.join(self.fake, name), "w", encoding="utf-8").close()
                server = self.space(name=name, program=program)
                takers = [self.taker(server) for _ in range(2)]
                self.assertEqual([(s["mode"], s["reason"]) for s in self.sharings(server).values()], [("time", reason)] * 2)
                self.assertEqual(len(re.findall(r"sessions share GPUs in time, and not in space: .*" + told, self.log_of(server))), 1)
                self.assertIn("GPU in time, not in space: " + reason, self.ctl(server, "ps"))
                # A daemon that does not start is no property of the server.
                lacking = "the soft GPU has no MPS" if name == "missing" else None
                self.assertEqual(json.loads(self.ctl(server, "info", "--json"))["sharing"],
                                 {"modes": ["time"] if lacking else ["time", "space"], "default": "time" if lacking else "space", "reason": lacking})
                for taker in takers:
                    self.assertEqual(taker.ask("alloc", 1), 0)
                    taker.end()
                self.gone(server)
                server.stop()
                os.unlink(os.path.join(self.fake, name))


class Adopted(Space):
    """Sessions in space whose server is another one now."""

    def again(self, server, *options, **more):
        """The next server after one that was killed."""
        server.kill()
        os.unlink(os.path.join(server.directory, "address"))
        return self.space(*options, **more)

    def stopped(self, server, session):
        worker = self.worker_of(server, session)
        os.kill(worker, signal.SIGSTOP)
        return worker

    def test_next_server(self):
        """A daemon outlives its server while a worker uses it; the next server knows its sessions as such, and ends it after the last one."""
        rules = ("job=bulk class=best-effort cap=40",)
        server = self.space(rules=rules)
        first, second = self.taker(server), self.taker(server, "bulk")
        ((pid, _, directory),) = self.daemons()
        before = self.sharings(server)
        self.assertEqual(sorted((s["members"], s["percent"], s["below"]) for s in before.values()), [(2, 40, True), (2, 100, False)])
        server = self.again(server, rules=rules)
        self.wait(lambda: len(self.sharings(server)) == 2)
        self.assertEqual(self.sharings(server), before)
        self.assertIn(f"MPS of GPU 0: found again in {directory}", self.log_of(server))
        self.assertTrue(runner.alive(pid))
        # Nobody takes turns in space.
        self.assertEqual([s["turns"] for s in runner.sessions_of(self.tree, server)], [[], []])
        first.end()
        self.wait(lambda: len(self.sharings(server)) == 1)
        self.assertEqual(self.one(server)["members"], 1)
        self.assertEqual(self.told("quit"), [])
        # Once more.
        server = self.again(server, rules=rules)
        self.wait(lambda: len(self.sharings(server)) == 1)
        self.assertEqual((self.one(server)["mode"], self.one(server)["percent"]), ("space", 40))
        second.end()
        self.gone(server)
        self.wait(lambda: not runner.alive(pid))
        self.assertEqual(len(self.told("quit")), 1)
        server.stop()

    def test_later(self):
        """Who comes later has a daemon inside of what workers share today; where they share nothing, the one that is there."""
        server = self.space()
        first = self.taker(server)
        (session,) = self.sharings(server)
        server = self.again(server)
        second = self.taker(server)
        self.wait(lambda: len(self.sharings(server)) == 2)
        apart = len(self.daemons()) == 2
        self.assertEqual(apart or os.geteuid() != 0, True)
        self.assertEqual([(s["mode"], s["members"]) for s in self.sharings(server).values()], [("space", 1 if apart else 2)] * 2)
        self.assertEqual(first.ask("alloc", 1), 0)
        first.end()
        self.wait(lambda: session not in self.sharings(server))
        self.assertEqual(second.ask("alloc", 1), 0)
        second.end()
        self.gone(server)
        server.stop()

    def test_terminate(self):
        """MPS ends what a worker has on the GPU before it is killed, also if an earlier server started both."""
        server = self.space()
        taker = self.taker(server)
        (session,) = self.sharings(server)
        worker = self.stopped(server, session)
        server = self.again(server)
        self.ctl(server, "kill", session)
        self.wait(lambda: not runner.alive(worker))
        self.assertEqual(self.told("terminate_client"), [["terminate_client", "4000000", str(worker), "True"]])
        self.broken_end(taker)
        self.gone(server)
        server.stop()

    def test_silent(self):
        """A daemon that does not answer keeps no worker alive, and no server."""
        server = self.space()
        taker = self.taker(server)
        (session,) = self.sharings(server)
        worker = self.stopped(server, session)
        server = self.again(server)
        open(os.path.join(self.fake, "silent"), "w", encoding="utf-8").close()
        self.ctl(server, "kill", session)
        self.wait(lambda: not runner.alive(worker))
        self.assertEqual(self.told("terminate_client"), [])
        self.broken_end(taker)
        self.gone(server)
        server.stop()

    def test_full(self):
        """Sessions of the earlier server count among the 48."""
        server = self.space()
        takers = [self.taker(server) for _ in range(46)]
        server = self.again(server)
        self.wait(lambda: len(self.sharings(server)) == 46)
        takers += [self.taker(server) for _ in range(4)]
        modes = [s["mode"] for s in self.sharings(server).values()]
        self.assertEqual((modes.count("space"), modes.count("time")), (48, 2))
        for taker in takers:
            taker.process.stdin.close()
        for taker in takers:
            taker.process.wait(60)
            taker.process.stdout.close()
            taker.process.stderr.close()
        self.gone(server)
        server.stop()

    def test_replace(self):
        """A successor that takes a running server's place knows them, too."""
        server = self.space()
        taker = self.taker(server)
        ((pid, _, _),) = self.daemons()
        before, old = self.sharings(server), server.process
        log = os.path.join(server.directory, "successor.log")
        with open(log, "wb") as f:
            server.process = subprocess.Popen(
                [self.tree.tool("cricket-server"), "--replace", "--driver", "soft", "--listen", server.tcp, "--socket", server.socket, "--warm", "0",
                 "--share", "space"], stdin=subprocess.DEVNULL, stdout=f, stderr=f,
                env={**os.environ, "STATE_DIRECTORY": server.directory, "CACHE_DIRECTORY": server.directory, "CRICKET_MPS_CONTROL": self.program,
                     "CRICKET_SOFT_DEVICES": "12.0:8G"})
        server.log = log
        self.wait(lambda: old.poll() is not None or server.process.poll() is not None)
        self.assertEqual((old.poll(), server.process.poll()), (0, None))
        self.wait(lambda: self.sharings(server) == before)
        self.assertTrue(runner.alive(pid))
        taker.end()
        self.gone(server)
        self.wait(lambda: not runner.alive(pid))
        server.stop()


class Kinds(Space):
    def environment_of(self, pid):
        with open(f"/proc/{pid}/environ", encoding="utf-8") as f:
            return dict(word.split("=", 1) for word in f.read().split("\0") if word)

    def test_rules(self):
        """A rule chooses for its sessions; a cap and a class reach their workers, and another cap the next worker."""
        if os.geteuid() != 0:
            self.skipTest("needs root, to read what a worker in a cage was told")
        server = self.space(share=None, rules=("job=fast share-mode=space class=latency", "job=bulk share-mode=space class=best-effort cap=40"))
        fast, bulk, other = self.taker(server, "fast"), self.taker(server, "bulk"), self.taker(server, "other")
        by_job = {s["job"]: s for s in runner.sessions_of(self.tree, server)}
        self.assertEqual({job: s["sharing"]["mode"] for job, s in by_job.items()}, {"fast": "space", "bulk": "space", "other": "time"})
        self.assertEqual([(by_job[job]["sharing"]["percent"], by_job[job]["sharing"]["below"]) for job in ("fast", "bulk")], [(100, False), (40, True)])
        told = {job: self.environment_of(self.worker_of(server, s["session"])) for job, s in by_job.items()}
        ((_, _, directory),) = self.daemons()
        self.assertEqual([told[job].get("CUDA_MPS_PIPE_DIRECTORY") for job in ("fast", "bulk", "other")], [directory, directory, None])
        self.assertEqual([told[job].get("CUDA_MPS_CLIENT_PRIORITY") for job in ("fast", "bulk")], ["0", "1"])
        self.assertEqual([told[job].get("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE") for job in ("fast", "bulk")], [None, "40"])
        # Nobody takes turns in space.
        self.assertEqual(fast.ask("alloc", 1), 0)
        self.assertEqual(by_job["fast"]["turns"], [])
        self.ctl(server, "limit", "set", "job=bulk", "cap=70")
        again = self.taker(server, "bulk")
        self.assertEqual(sorted(s["sharing"]["percent"] for s in runner.sessions_of(self.tree, server) if s["job"] == "bulk"), [40, 70])
        self.assertIn("share-mode=space", self.ctl(server, "limit", "show"))
        for taker in (fast, bulk, other, again):
            taker.end()
        self.gone(server)
        server.stop()

    def test_warm(self):
        """A warm worker is a member; it becomes a session of its kind alone."""
        server = self.space("--warm", "1", rules=("job=slow share-mode=time",))

        def warm():
            log = self.log_of(server)
            ended = set(re.findall(r"warm worker (\d+)(?: ended|: ending it| started for)", log))
            return [pid for pid in re.findall(r"warm worker (\d+): ready", log) if pid not in ended]

        first = self.taker(server)
        self.wait(lambda: self.one(server)["members"] == 2 and len(warm()) == 1)
        (ready,) = warm()
        slow = self.taker(server, "slow")
        self.assertNotIn(f"warm worker {ready} started for", self.log_of(server))
        slow.end()
        # The next warm one is for who came last, and no member; then for a session in space again.  It is seen last: by then no other one is.
        self.wait(lambda: [s["members"] for s in self.sharings(server).values()] == [1] and len(warm()) == 1)
        second = self.taker(server)
        self.wait(lambda: [s["members"] for s in self.sharings(server).values()] == [3, 3] and len(warm()) == 1)
        (ready,) = warm()
        third = self.taker(server)
        self.assertIn(f"warm worker {ready} started for", self.log_of(server))
        self.assertEqual({s["mode"] for s in self.sharings(server).values()}, {"space"})
        for taker in (first, second, third):
            taker.end()
        server.stop()
        self.assertFalse(os.path.exists(server.socket + ".d") and self.directories(server))

    def test_full(self):
        """More than the 48 of a daemon are in time, and the log says so once."""
        server = self.space()
        takers = [self.taker(server) for _ in range(50)]
        modes = [s["mode"] for s in self.sharings(server).values()]
        self.assertEqual((modes.count("space"), modes.count("time")), (48, 2))
        self.assertEqual({s["reason"] for s in self.sharings(server).values()}, {None, "its MPS has as many sessions as it can"})
        self.assertEqual(self.log_of(server).count("MPS of GPU 0 has 48 sessions"), 1)
        for taker in takers:
            taker.process.stdin.close()
        for taker in takers:
            taker.process.wait(60)
            taker.process.stdout.close()
            taker.process.stderr.close()
        self.gone(server)
        server.stop()

    def test_image(self):
        """A session saved in space goes on in time, and one saved in time in space."""
        servers = {"space": self.space(name="space"), "time": self.space(share="time", name="time")}
        image = os.path.join(self.dir, "image")
        for begun, ended in (("space", "time"), ("time", "space")):
            with self.subTest(begun):
                program, session = self.start(servers[begun], "from-" + begun)
                self.ctl(servers[begun], "checkpoint", session, image + begun, "--stop")
                self.ctl(servers[ended], "restore", image + begun)
                self.wait(lambda server=servers[ended]: len(self.sharings(server)) == 1)
                self.assertEqual(self.one(servers[ended])["mode"], ended)
                self.finish(program)
                # The next program's session is looked for as the only one.
                self.wait(lambda server=servers[ended]: not self.sharings(server))
                self.assertIn(f"it shared its GPU in {begun}, and goes on in {ended}", self.log_of(servers[ended]))


class Owners(Space):
    def setUp(self):
        if os.geteuid() != 0:
            self.skipTest("needs root, to have workers with mounts of their own")
        super().setUp()
        self.shown = {name: self.token(name) for name in ("alice", "bob")}

    def of(self, server, owner, job=""):
        server.address, kept = server.tcp, server.address
        os.rename(server.socket, server.socket + ".hidden")
        try:
            return self.taker(server, job, CRICKET_TOKEN_FILE=self.shown[owner])
        finally:
            os.rename(server.socket + ".hidden", server.socket)
            server.address = kept

    def check(self, server):
        """Two owners, and nothing of the one where the workers of the other are."""
        alice, bob = self.of(server, "alice"), self.of(server, "bob")
        daemons = self.daemons()
        self.assertEqual(len(daemons), 2)
        self.assertEqual(len({directory for _, _, directory in daemons}), 2)
        self.assertEqual([s["members"] for s in self.sharings(server).values()], [1, 1])
        seen = set()
        for session in self.sharings(server):
            pid = self.worker_of(server, session)
            (only,) = os.listdir(f"/proc/{pid}/root{server.socket}.d")
            seen.add(only)
            # What comes to its pipes is the daemon's own.
            self.assertTrue(os.path.exists(f"/proc/{pid}/root{server.socket}.d/{only}/control"))
        self.assertEqual(seen, {os.path.basename(directory) for _, _, directory in daemons})
        return alice, bob, daemons

    def test_mounts(self):
        """One user for all: each worker sees the pipes of its own group alone."""
        server = self.space("--tokens", self.tokens)
        alice, bob, _ = self.check(server)
        for taker in (alice, bob):
            taker.end()
        self.gone(server)
        server.stop()

    def test_users(self):
        """A user each: the daemon is of its owner's, and shares /dev/shm with its workers."""
        first = 210000 + os.getpid() % 1000 * 10
        server = self.space("--tokens", self.tokens, "--uid-range", f"{first}-{first + 9}")
        alice, bob, daemons = self.check(server)
        self.assertEqual(len({user for _, user, _ in daemons}), 2)
        self.assertLessEqual({user for _, user, _ in daemons}, set(range(first, first + 10)))
        places = {os.stat(f"/proc/{pid}/root/dev/shm").st_dev for pid, _, _ in daemons}
        workers = {os.stat(f"/proc/{self.worker_of(server, session)}/root/dev/shm").st_dev for session in self.sharings(server)}
        self.assertEqual(places, workers)
        other = subprocess.run(["/usr/bin/python3", "-c", "import os, sys; os.listdir(sys.argv[1])", daemons[1][2]], user=daemons[0][1], group=daemons[0][1],
                               extra_groups=[], capture_output=True, check=False, cwd="/")
        self.assertIn(b"PermissionError", other.stderr)
        for taker in (alice, bob):
            taker.end()
        self.gone(server)
        self.wait(lambda: not [name for name in os.listdir(server.socket + ".d") if name.startswith("uid-")])
        server.stop()


class Subordinate(Owners):
    """The same with a server of an ordinary user's, which has the range in /etc/subuid."""

    def setUp(self):
        super().setUp()
        if subordinate.lacking():
            self.skipTest(subordinate.lacking())
        self.user = pwd.getpwnam("news")
        # The build may lie where only we can go.
        place = tempfile.mkdtemp(prefix="ckt-home-", dir="/run")
        self.addCleanup(shutil.rmtree, place)
        self.theirs = runner.Tree(os.path.join(place, "tree"))
        for part in ("bin", "lib/cricket", "libexec"):
            shutil.copytree(os.path.join(self.tree.prefix, part), os.path.join(self.theirs.prefix, part), symlinks=True)
        os.chown(place, self.user.pw_uid, self.user.pw_gid)
        os.chown(self.tokens, self.user.pw_uid, self.user.pw_gid)

    def space(self, *options, **_):
        first = int(options[-1].split("-")[0]) if "--uid-range" in options else 0
        if not first:
            self.skipTest("its workers have one user, and no mounts of their own")
        table = os.path.join(self.dir, "subordinate")
        with open(table, "w", encoding="utf-8") as f:
            f.write(f"news:{first}:10\n")
        directory = os.path.join(self.dir, "server")
        os.makedirs(directory)
        os.chown(directory, self.user.pw_uid, self.user.pw_gid)
        server = runner.Server(self.theirs, directory, "soft", ("--share", "space", "--log-level", "debug", *options),
                               {"HOME": directory, "XDG_RUNTIME_DIR": directory, "CRICKET_SOFT_DEVICES": "12.0:8G", "CRICKET_MPS_CONTROL": self.program},
                               preexec_fn=lambda: subordinate.become(self.user, table))
        self.servers.append(server)
        server.tcp, server.address = server.address, "unix:" + server.socket
        return server


class Agreed(Owners):
    """Owners that agree to share in space: an administrator names them with one share-group=."""

    def setUp(self):
        super().setUp()
        self.shown |= {"carol": self.token("carol")}
        self.first = 210000 + os.getpid() % 1000 * 10

    def test_mounts(self):
        """As for owners that did not agree."""

    test_users = test_mounts

    def agreed(self, *options, rules=("token=alice share-group=lab", "token=bob share-group=lab"), uids=True, **more):
        return self.space("--tokens", self.tokens, *(("--uid-range", f"{self.first}-{self.first + 9}") if uids else ()), *options, rules=rules, **more)

    def one_of(self, server, owner, job=""):
        """A program of that owner, its session and its worker's process ID."""
        before = set(self.sharings(server))
        taker = self.of(server, owner, job)
        (session,) = set(self.sharings(server)) - before
        return taker, session, self.worker_of(server, session)

    def user_of(self, pid):
        return os.stat(f"/proc/{pid}").st_uid

    def groups(self, server):
        return {session: (s["mode"], s["members"], s["group"], s["agreed"]) for session, s in self.sharings(server).items()}

    def end_all(self, server, *takers):
        for taker in takers:
            taker.end()
        self.gone(server)
        server.stop()

    def test_one_group(self):
        """One daemon, one user and one /dev/shm for those who are named; who is not named has others, and what is in time, too."""
        for uids in (True, False):
            with self.subTest(uids=uids):
                open(os.path.join(self.fake, "daemons"), "w", encoding="utf-8").close()
                os.chmod(os.path.join(self.fake, "daemons"), 0o666)
                server = self.agreed(uids=uids, name=f"server-{uids}", rules=("token=alice share-group=lab", "token=bob share-group=lab", "job=apart share-mode=time"))
                alice, bob, carol = (self.one_of(server, owner) for owner in ("alice", "bob", "carol"))
                self.assertEqual(self.groups(server), {alice[1]: ("space", 2, "lab", True), bob[1]: ("space", 2, "lab", True), carol[1]: ("space", 1, None, None)})
                self.assertEqual(len(self.daemons()), 2)
                self.assertIn("one of 2 of share-group lab\n", self.ctl(server, "ps"))
                self.assertIn("of owner @lab, a share-group of owners with one user and one fault domain", self.log_of(server))
                places = {name: os.stat(f"/proc/{pid}/root/dev/shm").st_dev for name, (_, _, pid) in zip("abc", (alice, bob, carol))}
                self.assertEqual((places["a"] == places["b"], places["a"] == places["c"]), (True, False))
                slow = self.one_of(server, "bob", "apart")
                self.assertEqual(self.groups(server)[slow[1]], ("time", 0, None, None))
                self.assertNotEqual(os.stat(f"/proc/{slow[2]}/root/dev/shm").st_dev, places["b"])
                users = [self.user_of(pid) for _, _, pid in (alice, bob, carol, slow)]
                self.assertEqual([users.index(user) for user in users], [0, 0, 2, 3] if uids else [0] * 4)
                # Each has its own session alone.
                for taker in (alice[0], bob[0]):
                    self.assertEqual(taker.ask("alloc", 1), 0)
                self.end_all(server, alice[0], bob[0], carol[0], slow[0])

    def test_fault(self):
        """A kernel of one owner ends the others of the group, and nobody else; who comes then is with a new daemon."""
        server = self.agreed()
        kept, self.taker = self.taker, lambda *args, **env: kept(*args, **{"CRICKET_RECONNECT_TIMEOUT": "1", **env})
        alice, bob, carol = (self.one_of(server, owner)[0] for owner in ("alice", "bob", "carol"))
        self.assertNotEqual(alice.ask("fault"), 0)
        self.wait(lambda: len(self.sharings(server)) == 1)
        self.assertNotEqual(bob.ask("alloc", 1), 0)
        self.assertEqual(carol.ask("alloc", 1), 0)
        for taker in (alice, bob):
            self.assertIn("a kernel of a session failed that shares its GPU in space", taker.end())
        again, session, _ = self.one_of(server, "bob")
        self.assertEqual(self.groups(server)[session], ("space", 1, "lab", True))
        self.assertEqual(len({directory for _, _, directory in self.daemons()}), 3)
        self.end_all(server, carol, again)

    def test_withdrawn(self):
        """Who withdraws is apart from then on; sessions that run go on and are shown so, also after a restart."""
        server = self.agreed()
        (alice, a, _), (bob, b, worker) = self.one_of(server, "alice"), self.one_of(server, "bob")
        self.ctl(server, "limit", "set", "token=bob", "share-group=none")
        later, c, own = self.one_of(server, "bob")
        expected = {a: ("space", 2, "lab", True), b: ("space", 2, "lab", False), c: ("space", 1, None, None)}
        self.assertEqual(self.groups(server), expected)
        self.assertIn("one of 2 of share-group lab (new ones are apart)", self.ctl(server, "ps"))
        self.assertNotEqual(self.user_of(worker), self.user_of(own))
        server.kill()
        os.unlink(os.path.join(server.directory, "address"))
        server = self.agreed()
        self.wait(lambda: self.groups(server) == expected)
        # And agrees again: with whoever comes; what ran before the restart has a daemon of its own.
        self.ctl(server, "limit", "clear", "token=bob")
        more, d, again = self.one_of(server, "bob")
        self.assertEqual((self.groups(server)[b], self.groups(server)[d]), (("space", 2, "lab", True), ("space", 1, "lab", True)))
        self.assertEqual(self.user_of(again), self.user_of(worker))
        self.end_all(server, alice, bob, later, more)

    def test_no_space(self):
        """Where no MPS starts, nobody has another owner's user for nothing."""
        server = self.agreed()
        open(os.path.join(self.fake, "broken"), "w", encoding="utf-8").close()
        alice, bob = self.one_of(server, "alice"), self.one_of(server, "bob")
        self.assertEqual(set(self.groups(server).values()), {("time", 0, None, None)})
        self.assertNotEqual(self.user_of(alice[2]), self.user_of(bob[2]))
        self.end_all(server, alice[0], bob[0])

    def test_warm(self):
        """A warm worker of the group is for its owner alone, and for nobody once that one has withdrawn."""
        server = self.agreed("--warm", "1")

        def ready():
            log = self.log_of(server)
            return set(re.findall(r"warm worker (\d+): ready", log)) - set(re.findall(r"warm worker (\d+)(?: ended|: ending it| started for)", log))

        alice = self.one_of(server, "alice")
        self.wait(lambda: self.groups(server)[alice[1]] == ("space", 2, "lab", True) and len(ready()) == 1)
        (worker,) = ready()
        bob = self.one_of(server, "bob")
        self.assertNotEqual(str(bob[2]), worker)
        self.wait(lambda: len(ready() - {worker}) == 1)
        (worker,) = ready()
        self.assertEqual(self.user_of(worker), self.user_of(bob[2]))
        self.ctl(server, "limit", "set", "token=bob", "share-group=none")
        apart = self.one_of(server, "bob")
        self.assertNotEqual(str(apart[2]), worker)
        self.assertNotEqual(self.user_of(apart[2]), self.user_of(bob[2]))
        for taker in (alice[0], bob[0], apart[0]):
            taker.end()
        server.stop()

    def test_who_may(self):
        """Only an owner is named, by an administrator: no operator, no job, and not who has the name of another kind of owner."""
        user = pwd.getpwnam("news")
        self.shown |= {"news": self.token("news"), "olga": self.token("olga", "--role", "operator", "--project", "vision")}
        self.shown |= {"paul": self.token("paul", "--project", "vision")}
        server = self.agreed("--tokens", self.tokens, rules=("token=alice share-group=lab", "user=news share-group=lab", "token=paul share-group=far"))
        alice, news = self.one_of(server, "alice"), self.one_of(server, "news")
        self.assertEqual(self.groups(server)[news[1]], ("space", 1, None, None))
        self.assertNotIn(self.user_of(news[2]), (user.pw_uid, self.user_of(alice[2])))

        def limit(*words, **env):
            return subprocess.run([self.tree.tool("cricketctl"), "--server", server.tcp if env else server.address, "limit", *words], check=False, capture_output=True,
                                  text=True, env={**os.environ, **env})

        olga = {"CRICKET_TOKEN_FILE": self.shown["olga"]}
        self.assertEqual(limit("set", "token=paul", "priority=1", **olga).returncode, 0)
        for words in (("set", "token=paul", "share-group=lab"), ("set", "token=paul", "priority=1", "share-group=lab"), ("clear", "token=paul")):
            said = limit(*words, **olga)
            self.assertNotEqual(said.returncode, 0, words)
            self.assertIn("limits are set by administrators", said.stderr)
        for word in ("job=lab", "container=/lab", "session=0123456789ab"):
            self.assertIn("share-group= names owners: write it for user= or token=", limit("set", word, "share-group=lab").stderr)
        for name in ("", "Lab", "a-name-that-is-too-long", "../lab", "@lab"):
            self.assertIn("write 1 to 14 of a-z", limit("set", "token=carol", "share-group=" + name).stderr)
        said = limit("set", "token=carol", "share-group=lab")
        self.assertEqual(said.returncode, 0)
        self.assertIn("one user and one fault domain", said.stderr)
        carol = self.one_of(server, "carol")
        self.assertEqual(self.groups(server)[carol[1]], ("space", 2, "lab", True))
        self.end_all(server, alice[0], news[0], carol[0])

    def test_restored_for_others(self):
        """What root restores for others is in no group: nobody knows yet whose it is."""
        server = self.agreed(rules=("user=root share-group=lab", "token=alice share-group=lab"), uids=False)
        alice = self.one_of(server, "alice")
        image = os.path.join(self.dir, "image")
        self.ctl(server, "checkpoint", alice[1], image)
        self.broken_end(alice[0])
        self.gone(server)
        self.ctl(server, "restore", image)
        self.wait(lambda: len(self.sharings(server)) == 1)
        self.assertEqual(self.one(server)["group"], None)
        self.ctl(server, "kill", next(iter(self.sharings(server))))
        self.gone(server)
        server.stop()


class Ends(Space):
    def stopped(self, server):
        """A session whose worker does not end by itself: (taker, session, worker)"""
        taker = self.taker(server)
        (session,) = self.sharings(server)
        worker = self.worker_of(server, session)
        os.kill(worker, signal.SIGSTOP)
        return taker, session, worker

    def test_terminate(self):
        """MPS ends what a worker has on the GPU before it is killed."""
        server = self.space()
        taker, session, worker = self.stopped(server)
        self.ctl(server, "kill", session)
        self.wait(lambda: not runner.alive(worker))
        self.assertEqual(self.told("terminate_client"), [["terminate_client", "4000000", str(worker), "True"]])
        self.assertIn(f"killed worker {worker}, which did not end", self.log_of(server))
        self.broken_end(taker)
        self.gone(server)
        server.stop()

    def running(self, server, **env):
        """A session with a kernel that runs on: (taker, session, worker)"""
        taker = self.taker(server, **env)
        self.assertEqual(taker.ask("long", 10**13), 0)
        (session,) = self.sharings(server)
        return taker, session, self.worker_of(server, session)

    def test_kernel_runs(self):
        """A worker whose kernel runs on is terminated before it ends, whoever wants its end; one without is not."""
        server = self.space()
        taker, session, worker = self.running(server)
        self.ctl(server, "kill", session)
        self.wait(lambda: not runner.alive(worker))
        self.assertEqual(self.told("terminate_client"), [["terminate_client", "4000000", str(worker), "True"]])
        self.assertIn(f"session {session}: worker {worker} ended (exit code 0)", self.log_of(server))
        self.broken_end(taker)
        self.gone(server)
        # The program is killed.
        taker, session, worker = self.running(server)
        self.broken_end(taker)
        self.gone(server)
        self.assertEqual(self.told("terminate_client")[1:], [["terminate_client", "4000000", str(worker), "True"]])
        # The program ends by itself.
        taker = self.taker(server)
        self.assertEqual(taker.ask("alloc", 1), 0)
        taker.end()
        self.gone(server)
        self.assertEqual(len(self.told("terminate_client")), 2)
        self.assertNotIn("a kernel failed", self.log_of(server))
        server.stop()

    def test_silent(self):
        """A daemon that does not answer keeps no worker alive, and no server."""
        server = self.space()
        taker, session, worker = self.stopped(server)
        open(os.path.join(self.fake, "silent"), "w", encoding="utf-8").close()
        self.ctl(server, "kill", session)
        self.wait(lambda: not runner.alive(worker))
        self.assertEqual(self.told("terminate_client"), [])
        self.broken_end(taker)
        self.gone(server)
        self.assertIn("MPS of GPU 0: killed its daemon, which did not quit", self.log_of(server))
        server.stop()

    def test_fault(self):
        """A kernel that fails ends all sessions of its daemon; a session in time, and one that comes later, are not concerned."""
        server = self.space(rules=("job=apart share-mode=time",))
        env = {"CRICKET_RECONNECT_TIMEOUT": "1"}
        bad, other, apart = self.taker(server, **env), self.taker(server, **env), self.taker(server, "apart")
        self.assertEqual(other.ask("alloc", 1), 0)
        self.assertNotEqual(bad.ask("fault"), 0)
        self.wait(lambda: len(self.sharings(server)) == 1)
        self.assertIn("a kernel failed, and with it the 2 sessions that share GPU 0 in space: all end", self.log_of(server))
        self.assertNotEqual(other.ask("alloc", 1), 0)
        self.assertEqual(apart.ask("alloc", 1), 0)
        after = self.taker(server)
        self.assertEqual(after.ask("alloc", 1), 0)
        self.assertEqual(len({directory for _, _, directory in self.daemons()}), 2)
        for taker in (bad, other):
            self.assertIn("a kernel of a session failed that shares its GPU in space", taker.end())
        apart.end()
        after.end()
        self.gone(server)
        server.stop()

    def test_fault_with_images(self):
        """Who has an automatic image comes back from it, at another daemon."""
        images = os.path.join(self.dir, "images")
        server = self.space("--auto-checkpoint", "1s", "--auto-dir", images, "--claim-timeout", "30", rules=("job=bad share-mode=space",))
        good = self.taker(server)
        self.assertEqual(good.ask("alloc", 4), 0)
        self.assertEqual(good.ask("fill", 7), 0)
        (session,) = self.sharings(server)

        def saved():
            (found,) = [s.get("automatic_image") or {} for s in runner.sessions_of(self.tree, server) if s["session"] == session]
            return found.get("when") and not found["behind"]

        self.wait(saved)
        bad = self.taker(server, "bad", CRICKET_RECONNECT_TIMEOUT="1")
        worker = self.worker_of(server, session)
        bad.process.stdin.write("fault\n")
        bad.process.stdin.flush()
        self.wait(lambda: not runner.alive(worker))
        self.assertEqual(good.ask("check", 7), 0)
        self.assertEqual(self.sharings(server)[session]["mode"], "space")
        self.assertNotEqual(self.worker_of(server, session), worker)
        self.assertGreaterEqual(len({directory for _, _, directory in self.daemons()}), 2)
        self.broken_end(bad)
        good.end()
        server.kill()


if __name__ == "__main__":
    unittest.main()
