#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a worker that misbehaves can do to another session, the server and the host.

	escape.py --build DIR | --bundle DIR  [--worker FILE] [--driver soft] [--cage on|off] [--as-user] [--uid-range] [--warm] [--agreed]
	          [--worker-network auto|on|off|group] [--verbose]

A real server runs cricket-worker-escape (agent.h) as its worker.  Two owners, alice and bob, each have a session; alice's holds a secret in the
GPU's memory, in an image and in a token's file.  Bob's worker makes the attempts of attempts.h, and what it says of each must be what expected.txt
says.  After each plan the server still answers and alice's session still has its memory.  With --as-user the server is no root.  With --agreed
alice and bob agree to share in space (share-group=), at a stand-in for MPS (tests/server/fake_mps.py).  Needs root.
Prints what differs, and one line; exit status 0, 1, or 77 where this cannot run.
"""
import argparse
import contextlib
import ctypes
import os
import pwd
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "runner"))
import runner  # noqa: E402
import subordinate  # noqa: E402

GUARD_S = 120  # nothing is measured by it
SECRET_BYTES = 1 << 20
# Threads that all workers together may have in this test, beyond those that the user has already.
THREADS = 400
# What the bomb of memory takes beyond the bound.
BEYOND_BYTES = 300 << 20
SYS_LANDLOCK_CREATE_RULESET, LANDLOCK_VERSION = 444, 1
LATER = ("memory-bomb", "thread-bomb")
# Of the workers: the first that exists.  Nobody else starts processes as the first ones, so that the kernel's count of them is ours.
USERS = ("news", "uucp", "nobody")
KINDS = ("soft", "network", "range", "user", "off", "ids", "nvidia", "offline", "group", "agreed")
WARM_TRIES = 20
# Ids of --uid-range, which no package gives to a user.
RANGE = "64600-64615"


# ---------------------------------------------------------------- a program

def client(library):
    """A CUDA program: keeps a secret in a GPU's memory, and says for each line of stdin whether it is still there."""
    cuda = ctypes.CDLL(library)

    def call(name, *arguments):
        result = getattr(cuda, name)(*arguments)
        if result:
            sys.exit(f"{name}: {result}")

    context, address, secret = ctypes.c_void_p(), ctypes.c_uint64(), os.urandom(SECRET_BYTES)
    call("cuInit", 0)
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
    call("cuCtxSetCurrent", context)
    call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(SECRET_BYTES))
    call("cuMemcpyHtoD_v2", address, secret, ctypes.c_size_t(SECRET_BYTES))
    print("ready", flush=True)
    for _ in sys.stdin:
        found = ctypes.create_string_buffer(SECRET_BYTES)
        call("cuMemcpyDtoH_v2", found, address, ctypes.c_size_t(SECRET_BYTES))
        print("there" if found.raw == secret else "changed", flush=True)
    return 0


class Client:
    def __init__(self, test, token):
        env = {**runner.clean_environment(), "REMOTE_GPU_ADDRESS": test.server.address, "CRICKET_TOKEN_FILE": token,
               "CRICKET_RECONNECT_TIMEOUT": "1"}
        before = {session["session"] for session in test.sessions()}
        self.said = tempfile.TemporaryFile(mode="w+", encoding="utf-8", dir="/var/tmp")
        self.process = subprocess.Popen([sys.executable, os.path.abspath(__file__), "--client", test.tree.library("libcuda.so.1")],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.said, text=True, env=env)
        self.ready = self.process.stdout.readline().strip() == "ready"
        self.session = next((s["session"] for s in test.sessions() if s["session"] not in before), None)

    def has_secret(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip() == "there"

    def last_words(self):
        """Of one whose session was ended: it asks for its secret, and says why it has it no more."""
        with contextlib.suppress(BrokenPipeError):
            self.has_secret()
        self.process.wait(timeout=GUARD_S)
        self.said.seek(0)
        return self.said.read()

    def end(self):
        self.process.kill()
        self.process.wait()
        self.said.close()


# ---------------------------------------------------------------- what is expected

def landlock_version():
    return max(0, ctypes.CDLL(None).syscall(SYS_LANDLOCK_CREATE_RULESET, None, 0, LANDLOCK_VERSION))


def read_expected():
    """{attempt: {kind: word}}"""
    rows = {}
    with open(os.path.join(HERE, "expected.txt"), encoding="utf-8") as f:
        for line in f:
            words = line.split("#")[0].split(None, len(KINDS) + 1)
            if words:
                rows[words[0]] = dict(zip(KINDS, words[1:]))
    return rows


def restricted_host():
    """Whether this host keeps more from an ordinary process than Linux does: a container, or a limit of tracing."""
    with open("/proc/self/status", encoding="utf-8") as f:
        if "Seccomp:\t0" not in f.read():
            return True
    with contextlib.suppress(OSError), open("/proc/sys/kernel/yama/ptrace_scope", encoding="utf-8") as f:
        return f.read().strip() != "0"
    return False


def agrees(word, result, landlock):
    """For the words of expected.txt; no result agrees with none."""
    if not result.lstrip("-").isdigit():
        return False
    if word in ("kept@mounts", "kept@network", "kept@proc"):
        word = "kept"
    if word.startswith("kept@"):
        word = "kept" if landlock >= int(word[5:]) else "either"
    return word == "either" or word == ("open" if result == "0" else "kept")


# ---------------------------------------------------------------- who is outside of the worker's network

class Outside:
    """The host, and alice's worker: answer the datagrams of the attacker, and call its listener."""

    def __init__(self, test):
        self.test, self.reached, self.called = test, {}, set()
        self.heard = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.heard.bind(("", 0))
        self.heard.setblocking(False)

    def told(self):
        return {"udp": self.heard.getsockname()[1], "host": self.address(), "host-network": os.readlink("/proc/self/ns/net")}

    @staticmethod
    def address():
        """Of the host in its network, if it has one; nothing is sent."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s, contextlib.suppress(OSError):
            s.connect(("192.0.2.1", 9))
            return s.getsockname()[0]
        return "127.0.0.1"

    def turn(self):
        """While a plan is carried out, again and again."""
        with contextlib.suppress(BlockingIOError):
            text, sender = self.heard.recvfrom(64)
            self.reached["inet-udp"] = "0"
            self.heard.sendto(text, sender)
        for port in set(re.findall(r"escape: listening at (\d+)$", self.test.log(), re.M)) - self.called:
            self.called.add(port)
            self.call(port)

    def call(self, port):
        inside = os.path.join(self.test.tree.prefix, "libexec/cricket/inside")
        write_for_workers(f"{inside}/escape-knock", f"knocker {self.test.victim}\nport {port}\n")
        for host in {"127.0.0.1", self.address()}:
            with contextlib.suppress(OSError), socket.create_connection((host, int(port)), timeout=GUARD_S):
                self.reached["inet-bind"] = "0"
        deadline = time.monotonic() + GUARD_S
        while not (answer := re.search(rf"escape: worker {self.test.victim} knocked at {port}: (-?\d+)$", self.test.log(), re.M)):
            if time.monotonic() > deadline:
                raise runner.Failure(f"the victim's worker did not call port {port}:\n{self.test.server.tail()}")
            time.sleep(0.02)
        if answer.group(1) == "0":
            self.reached["inet-bind"] = "0"
        os.unlink(f"{inside}/escape-knock")
        write_for_workers(f"{inside}/escape-knocked", "yes\n")


def write_for_workers(path, text):
    with open(path + ".tmp", "w", encoding="utf-8") as f:
        f.write(text)
    os.chmod(path + ".tmp", 0o644)
    os.rename(path + ".tmp", path)


# ---------------------------------------------------------------- the test

class Test:
    def __init__(self, arg, programs, directory):
        self.arg, self.directory = arg, directory
        self.plans, self.results, self.problems, self.outside = 0, {}, [], Outside(self)
        network = arg.worker_network if arg.worker_network == "group" else "network" if arg.worker_network == "on" else "soft"
        self.kind = ("offline" if arg.worker_network == "off" else "nvidia") if arg.driver != "soft" else "user" if arg.as_user and not arg.uid_range else \
            ("ids" if arg.uid_range else "off") if arg.cage == "off" else "agreed" if arg.agreed else "range" if arg.uid_range else network
        prefix = arg.bundle or runner.stage(arg.build)
        self.tree = runner.Tree(os.path.join(programs, "tree"))
        for part in ("bin", "lib/cricket", "libexec"):
            shutil.copytree(os.path.join(prefix, part), os.path.join(self.tree.prefix, part), symlinks=True)
        if arg.worker:
            worker = os.path.join(self.tree.prefix, "libexec/cricket/cricket-worker")
            os.unlink(worker)
            shutil.copy(arg.worker, worker)
        self.user = next(entry for name in USERS for entry in pwd.getpwall() if entry.pw_name == name)

    def sessions(self):
        return runner.sessions_of_socket(self.tree, self.server)

    def path(self, *names):
        return os.path.join(self.directory, *names)

    def make_files(self):
        for name in ("run", "state", "images", "tokens.d", "cache"):
            os.mkdir(self.path(name), 0o755 if name in ("run", "cache") else 0o700)
            if self.arg.as_user:
                os.chown(self.path(name), self.user.pw_uid, self.user.pw_gid)
        with open(self.path("public"), "w", encoding="utf-8") as f:
            f.write("for everybody\n")
        os.chmod(self.path("public"), 0o666)
        tokens = {}
        for name in ("alice", "bob"):
            text = runner.cricketctl(self.tree, "token", "add", name, "--tokens", self.path("tokens.d/tokens"))
            tokens[name] = self.path("tokens.d", name)
            with open(tokens[name], "w", encoding="utf-8", opener=lambda path, flags: os.open(path, flags, 0o600)) as f:
                f.write(text.split()[-1] + "\n")
        if self.arg.as_user:
            for name in os.listdir(self.path("tokens.d")):
                os.chown(self.path("tokens.d", name), self.user.pw_uid, self.user.pw_gid)
        return tokens

    def limit(self):
        limit_threads(self.user.pw_uid)

    def more_told(self):
        """What only some tests tell the attempts."""
        return {"memory-bytes": self.worker_memory() + BEYOND_BYTES}

    def more_args(self):
        """Of the server."""
        return ("--worker-memory", str(self.worker_memory()))

    def worker_memory(self):
        """More than a worker needs."""
        return 2 << 30 if self.arg.driver == "soft" else 16 << 30

    def options(self):
        """Of the server's process."""
        if self.arg.as_user and self.arg.uid_range:
            first, last = map(int, RANGE.split("-"))
            with open(self.path("ids"), "w", encoding="utf-8") as f:
                f.write(f"{self.user.pw_name}:{first}:{last - first + 1}\n")
            return {"preexec_fn": lambda: subordinate.become(self.user, self.path("ids"))}
        return {"user": self.user.pw_uid, "group": self.user.pw_gid, "extra_groups": []} if self.arg.as_user else {}

    def agree(self):
        """Options of the server, and what its environment has besides."""
        os.mkdir(self.path("mps"), 0o755)
        os.chmod(self.path("mps"), 0o777)
        program = shutil.copy(os.path.join(HERE, "..", "server", "fake_mps.py"), self.path("mps"))
        with open(self.path("limits"), "w", encoding="utf-8") as f:
            f.write("token=alice share-group=both\ntoken=bob share-group=both\n")
        return ("--share", "space", "--limits", self.path("limits")), {"CRICKET_MPS_CONTROL": program}

    def start(self):
        tokens = self.make_files()
        self.limit()
        agreed, told = self.agree() if self.arg.agreed else ((), {})
        environment = {"STATE_DIRECTORY": self.path("state"), "CACHE_DIRECTORY": self.path("cache"), "CUDA_CACHE_PATH": self.path("cache"), **told}
        self.server = runner.Server(self.tree, self.path("run"), driver=self.arg.driver,
                                    args=(*(() if self.arg.as_user else ("--user", self.user.pw_name)), "--cage", self.arg.cage,
                                          "--worker-network", self.arg.worker_network, "--tokens", self.path("tokens.d/tokens"),
                                          "--audit", self.path("state/audit"), "--image-dir", self.path("images"),
                                          *(("--uid-range", RANGE) if self.arg.uid_range else ()), "--warm", "1" if self.arg.warm else "0",
                                          *agreed, *self.more_args()), env=environment, **self.options())
        self.alice, self.bob = self.client(tokens["alice"]), self.client(tokens["bob"])
        self.token = tokens["alice"]
        if not (self.alice.ready and self.bob.ready):
            raise runner.Failure(f"no sessions:\n{self.server.tail()}")
        runner.cricketctl(self.tree, "--server", "unix:" + self.server.socket, "checkpoint", self.alice.session, "--server-side", "kept")
        self.victim, self.attacker = (self.worker_of(c.session) for c in (self.alice, self.bob))
        # Else they would not be what the attempts are about.
        if self.arg.agreed and os.stat(f"/proc/{self.victim}").st_uid != os.stat(f"/proc/{self.attacker}").st_uid:
            raise runner.Failure(f"the two owners have a user each:\n{self.server.tail()}")

    def client(self, token):
        """A program with a session; with --warm on a warm worker, which the first one of each owner brings."""
        for _ in range(WARM_TRIES if self.arg.warm else 1):
            client = Client(self, token)
            if not self.arg.warm or not client.ready or f"warm worker {self.worker_of(client.session)} started for" in self.log():
                return client
            time.sleep(1)
            client.end()
        raise runner.Failure(f"no session has a warm worker:\n{self.server.tail()}")

    def worker_of(self, session):
        text = runner.cricketctl(self.tree, "--server", "unix:" + self.server.socket, "stats", session, "--json")
        return int(re.search(r'"worker_pid": ?(\d+)', text).group(1))

    def told(self):
        """What the attempts need to know; a real attacker would have to guess it."""
        images = self.path("images")
        image = next((os.path.join(top, files[0]) for top, _, files in os.walk(images) if files), "")
        victim = self.told_by(self.victim)
        return {"victim": self.victim, "server": self.server.process.pid, "address": victim["address"], "token": self.token,
                "tokens": self.path("tokens.d/tokens"), "state": self.path("state"), "key": self.path("state/server-key"),
                "image": image, "images": images, "audit": self.path("state/audit"), "public": self.path("public"),
                "sockets": self.server.socket + ".d", "shm-device": os.stat("/dev/shm").st_dev,
                "driver": victim["driver"], "cache": victim["cache"],
                "port": self.server.address.rsplit(":", 1)[1], "socket": self.server.socket,
                "victim-socket": f"{self.server.socket}.d/{self.alice.session}.sock", "victim-abstract": victim["abstract"], **self.outside.told()}

    def told_by(self, worker):
        """What a worker told of itself: a root without CAP_SYS_PTRACE, as in a container, cannot see it."""
        deadline = time.monotonic() + GUARD_S
        # By a thread of it that nobody waits for.
        while not (said := re.search(rf"escape: worker {worker} (address .*)\n", self.log())):
            if time.monotonic() > deadline:
                raise runner.Failure(f"worker {worker} told nothing of itself:\n{self.server.tail()}")
            time.sleep(0.02)
        words = said.group(1).split()
        return dict(zip(words[::2], words[1::2]))

    def plan(self, attempts, may_end=False):
        """Has bob's worker make the attempts, and waits until it did, or until the server ended it."""
        self.plans += 1
        lines = [f"attacker {self.attacker}", *(f"{key} {value}" for key, value in {**self.told(), **self.more_told()}.items()), *(f"attempt {name}" for name in attempts)]
        # Where workers may read and nobody hides it from them.
        inside = os.path.join(self.tree.prefix, "libexec/cricket/inside")
        path = f"{inside}/escape-plan-{self.plans}"
        write_for_workers(path, "\n".join(lines) + "\n")
        deadline = time.monotonic() + GUARD_S
        while f"escape: plan {self.plans} done," not in self.log():
            self.outside.turn()
            if may_end and not runner.alive(self.attacker):
                break
            if time.monotonic() > deadline or not runner.alive(self.attacker):
                raise runner.Failure(f"plan {self.plans} has no end:\n{self.server.tail()}")
            time.sleep(0.02)
        os.unlink(path)
        self.results.update(re.findall(r"escape: (\S+) (-?\d+|unknown)$", self.log(), re.M))
        self.others_go_on(f"after plan {self.plans} ({', '.join(attempts[-2:])})")

    def log(self):
        with open(self.server.log, encoding="utf-8", errors="replace") as f:
            return f.read()

    def others_go_on(self, when):
        if self.alice.session not in {session["session"] for session in self.sessions()}:
            self.problems.append(f"{when}: the victim's session is gone")
        elif not self.alice.has_secret():
            self.problems.append(f"{when}: the victim's memory changed")
        # The kernel gives the files of a process that cannot be dumped to root.
        if self.arg.cage != "off" and os.stat(f"/proc/{self.victim}/environ").st_uid != 0:
            self.problems.append(f"{when}: the victim can be dumped")

    def run(self):
        expected = read_expected()
        self.start()
        self.know_host(expected)
        attempts = [name for name in expected if expected[name][self.kind] != "-" and name not in LATER and not name.startswith("newcomer-")]
        self.plan(attempts)
        if self.arg.cage != "off":
            self.plan(["memory-bomb"])
            self.throw_threads()
        self.results.update(self.outside.reached)
        known, rows = int(re.search(r"of (\d+) attempts", self.log()).group(1)), sum(not name.startswith("newcomer-") for name in expected)
        if known != rows:
            self.problems.append(f"the tables of attempts.h have {known} attempts, and expected.txt has {rows}")
        landlock = landlock_version()
        for name, row in expected.items():
            if row[self.kind] != "-" and not agrees(row[self.kind], self.results.get(name, "missing"), landlock):
                self.problems.append(f"{name}: expected {row[self.kind]}, but {describe(self.results.get(name))}")
        return landlock

    def throw_threads(self):
        """Another session starts meanwhile, and the culprit alone ends."""
        self.plan(["thread-bomb"], may_end=True)
        newcomer = Client(self, self.token)
        self.results["newcomer-thread-bomb"] = "11" if newcomer.ready else "0"
        newcomer.end()
        deadline = time.monotonic() + GUARD_S
        while runner.alive(self.attacker) and time.monotonic() < deadline:
            time.sleep(0.02)
        if f"session {self.bob.session}: its worker takes too much of the host: its worker has " not in self.log():
            self.problems.append("thread-bomb: the server did not end the worker")
        # Ended before it could say how far it came.
        self.results.setdefault("thread-bomb", "11")
        said = self.bob.last_words()
        if "threads, and " not in said:
            self.problems.append(f"thread-bomb: its client was not told why: {said!r}")
        self.others_go_on("after the bomb of threads")

    def know_host(self, expected):
        """Takes back what this host does not let the test expect."""
        refused = [word for word, said in (("kept@mounts", "no private /tmp"), ("kept@network", "no sockets of IP"), ("kept@network", "the host's network")) if said in self.log()]
        for name, row in expected.items():
            # What ids keep out they keep out with each driver.
            if self.kind == "nvidia" and self.arg.uid_range and row["soft"] != row["range"]:
                row["nvidia"] = row["range"]
            if row[self.kind] == "kept@proc" and not self.hides(name):
                row[self.kind] = "open"
            if row[self.kind] in refused:
                row[self.kind] = "-"
            elif self.arg.cage == "off" and row[self.kind] == "open" and restricted_host():
                row[self.kind] = "either"

    def hides(self, name):
        """Whether workers have a /proc without others; that of a network shows its sockets, which is the host's if they have no other."""
        return "a /proc without others" in self.log() and (name != "socket-names" or re.search(r"a network of the group's own|no network$", self.log(), re.M))

    def stop(self):
        for end in ("alice", "bob"):
            if hasattr(self, end):
                getattr(self, end).end()
        if hasattr(self, "server"):
            workers = self.server.workers()
            self.server.kill()
            for pid in workers:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            # What they left where /dev/shm is the host's.
            for pid in workers:
                with contextlib.suppress(OSError):
                    os.unlink(f"/dev/shm/escape-{pid}")


def describe(result):
    if result in (None, "unknown"):
        return "nobody tried it"
    return "it got in" if result == "0" else f"it was kept out ({os.strerror(int(result))})"


def limit_threads(uid):
    """So that a bomb of threads ends soon: workers get the server's limit where that is less than theirs."""
    count = 0
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if os.stat(f"/proc/{pid}").st_uid == uid or f"Uid:\t{uid}\t" in open(f"/proc/{pid}/status", encoding="utf-8").read():
                count += len(os.listdir(f"/proc/{pid}/task"))
    # Lowered before in this process, perhaps.
    hard = resource.getrlimit(resource.RLIMIT_NPROC)[1]
    count = count + THREADS if hard == resource.RLIM_INFINITY else min(count + THREADS, hard)
    resource.setrlimit(resource.RLIMIT_NPROC, (count, count))


def too_late(*_):
    raise runner.Failure(f"not done after {GUARD_S} s")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build")
    parser.add_argument("--bundle")
    parser.add_argument("--worker")
    parser.add_argument("--driver", default="soft")
    parser.add_argument("--cage", default="on", choices=("on", "off"))
    parser.add_argument("--as-user", action="store_true")
    parser.add_argument("--uid-range", action="store_true", help="a user id for each owner")
    parser.add_argument("--warm", action="store_true", help="both sessions on warm workers")
    parser.add_argument("--agreed", action="store_true", help="the owners share in space")
    parser.add_argument("--worker-network", default="auto", choices=("auto", "on", "off", "group"))
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--client", help=argparse.SUPPRESS)
    arg = parser.parse_args()
    if arg.client:
        return client(arg.client)
    if os.geteuid() != 0:
        print("skipped: needs root, whose server runs workers as another user")
        return 77
    if arg.worker_network == "group" and subprocess.run(["unshare", "--net", "true"], stderr=subprocess.DEVNULL, check=False).returncode:
        print("skipped: this host refuses network namespaces")
        return 77
    if arg.as_user and arg.uid_range and subordinate.lacking():
        print("skipped: " + subordinate.lacking())
        return 77
    arg.worker = arg.worker or os.path.join(arg.build, "tests/escape/cricket-worker-escape")
    signal.signal(signal.SIGALRM, too_late)
    signal.alarm(GUARD_S)
    # The server's files lie where they lie on a host: not below /tmp, which a worker has of its own.
    with tempfile.TemporaryDirectory(prefix="ckt-", dir="/var/tmp") as programs, tempfile.TemporaryDirectory(prefix="ckt-", dir="/run") as directory:
        os.chmod(programs, 0o755)
        os.chmod(directory, 0o755)
        test = Test(arg, programs, directory)
        try:
            landlock = test.run()
        except runner.Failure as problem:
            print(problem)
            return 1
        finally:
            test.stop()
    if arg.verbose:
        for name, result in test.results.items():
            print(f"{name:28} {describe(result)}")
    for problem in test.problems:
        print(problem)
    opened = sum(result == "0" for result in test.results.values())
    print(f"{len(test.results)} attempts ({test.kind}, Landlock {landlock}): {len(test.results) - opened} kept out, {opened} open, "
          f"{len(test.problems)} not as expected")
    return bool(test.problems)


if __name__ == "__main__":
    sys.exit(main())
