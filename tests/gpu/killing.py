# SPDX-License-Identifier: Apache-2.0
"""What tests that kill workers and servers at random share: who is killed, what is told when it went wrong, and a limit that tells it, too."""
import contextlib
import glob
import os
import random
import signal
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.realpath(__file__))
# As modules of tests/server want them.
os.environ.update({"CKT_TEST_" + name: "none" for name in ("PROGRAM", "LIMIT_CLIENT", "SHARE_CLIENT")})
sys.path[:0] = [os.path.join(HERE, "..", "server"), HERE]
import proc_stacks  # noqa: E402
from chains import Chains  # noqa: E402
from whole import runner  # noqa: E402
from wheels import library_paths  # noqa: E402


KINDS = ("worker", "both", "server", "twice", "workers")


class Late(Exception):
    """The limit is over."""


class Killing(Chains):
    """What the parts have in common; not a test of unittest, but made of what its tests use."""
    arg = None

    def setUp(self):
        super().setUp()
        self.driver = self.arg.driver
        self.chance, self.what = random.Random(self.arg.seed), "the start"
        libraries = library_paths(self.arg.python) if self.uses_libraries() and self.driver != "soft" else ""
        self.options = ["--library-path", libraries] if libraries else []
        self.devices = {}
        if self.driver == "soft":
            os.environ["CRICKET_SOFT_PTX"] = "1"
            self.devices = {"CRICKET_SOFT_DEVICES": ",".join(["12.0:8G"] * self.gpus())}

    def gpus(self):
        return 1

    def uses_libraries(self):
        return True

    def saving(self, name, *options, env=None):
        return super().saving(name, *self.options, *options, env={**self.devices, **(env or {})})

    def note(self, what):
        self.what = what
        print(f"{time.monotonic() - self.arg.began:6.1f} s  {what}", flush=True)

    @staticmethod
    def end(pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)

    def kill(self, server, kind, workers):
        """The kinds are those of KINDS.  The server that is there then."""
        dead = {"worker": self.chance.sample(workers, 1), "twice": self.chance.sample(workers, 1), "server": []}.get(kind, workers)
        if kind in ("server", "both"):
            server.kill()
        for pid in dead:
            self.end(pid)
        if kind == "twice":
            # Perhaps one that has begun to come back.
            time.sleep((1 if self.driver == "soft" else 3) * self.chance.random())
            for pid in self.workers(server)[:1]:
                self.end(pid)
        return self.saving("first") if kind in ("server", "both") else server

    # ---- What went wrong

    def logs(self):
        for name in sorted(os.listdir(self.arg.out), key=lambda name: os.path.getmtime(os.path.join(self.arg.out, name))):
            if name.startswith("server-") and name not in self.arg.older:
                with open(os.path.join(self.arg.out, name), encoding="utf-8", errors="replace") as f:
                    yield name, f.read()

    def said_by_programs(self):
        """(title, text) of each."""
        return ()

    def explain(self):
        print("\n---- what the threads do")
        for server in self.servers:
            for pid in server.workers() if server.process.poll() is None else ():
                print(f"process {pid}", flush=True)
                with contextlib.suppress(OSError):
                    proc_stacks.describe(pid, sys.stdout)
        for path in sorted(glob.glob(os.path.join(self.images("*"), "*", "**"), recursive=True)):
            if os.path.isfile(path):
                print(f"{os.path.getsize(path):10} {os.path.relpath(path, self.dir)}")
            if os.path.basename(path).startswith("state"):
                with open(path, encoding="utf-8", errors="replace") as f:
                    print(f.read())
        for name, text in self.logs():
            print(f"---- {name} (servers, and their workers)", *text.splitlines()[-40:], sep="\n")
        for title, text in self.said_by_programs():
            print(f"---- {title}", *text.splitlines()[-15:], sep="\n")

    def verdict(self):
        """None, or what is wrong although all came back."""

    def table(self):
        raise NotImplementedError


def add_options(parser, limit):
    parser.add_argument("--bundle", metavar="DIR", help="without one, the build tree that CKT_TEST_BUILD names")
    parser.add_argument("--driver", default="auto")
    parser.add_argument("--out", metavar="DIR", help="where the servers' logs stay")
    parser.add_argument("--seed", type=int, default=random.randrange(1, 1 << 32))
    parser.add_argument("--limit", type=int, default=limit, metavar="SECONDS", help=f"after which it is told who did not come back (default {limit})")


def play(kind, arg):
    """Runs a class of these to its end; the exit status."""
    arg.began = time.monotonic()
    if arg.bundle:
        os.environ["CKT_TEST_PREFIX"] = os.path.abspath(arg.bundle)
    with tempfile.TemporaryDirectory(prefix="ckt-killed-") as directory:
        arg.out = os.path.abspath(arg.out or directory)
        os.makedirs(arg.out, exist_ok=True)
        arg.older = os.listdir(arg.out)
        os.environ["CKT_TEST_SERVER_LOGS"] = arg.out

        def late(*_):
            # What tells of it may take its time.
            signal.alarm(0)
            raise Late(f"not done after {time.monotonic() - arg.began:.0f} s")
        signal.signal(signal.SIGALRM, late)
        signal.signal(signal.SIGTERM, late)
        signal.alarm(arg.limit)
        print(f"--seed {arg.seed}", flush=True)
        kind.arg = arg
        part = kind("runTest")
        problem = None
        try:
            part.setUp()
            part.runTest()
            problem = part.verdict()
        except (Late, AssertionError, OSError, runner.Failure, ValueError, KeyError) as failure:
            problem = f"{type(failure).__name__}: {failure}"
        signal.alarm(0)
        if problem:
            with contextlib.suppress(OSError, ValueError):
                part.explain()
        part.table()
        if problem:
            print(f"WRONG after {part.what}: {problem}", flush=True)
        signal.alarm(20)
        with contextlib.suppress(Late, runner.Failure, AssertionError):
            part.tearDown()
        signal.alarm(20)
        with contextlib.suppress(Late):
            part.doCleanups()
        signal.alarm(0)
    return 1 if problem else 0
