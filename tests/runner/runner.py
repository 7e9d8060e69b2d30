#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs one test program in one mode and compares what it prints with what it printed in every other mode.

Modes:
  native      with the machine's own CUDA driver
  local       our runtime over the driver of this machine (or the soft GPU) inside the program's process: no server, no wire
  tcp, unix   through a private cricket-server
  nodes       through two private cricket-servers as one list
  soft        cricket-run --soft
  checkpoint  at the program's mid point the session is checkpointed and stopped, its server killed, the session restored on a
              second server, and the program goes on
  again       the same, and checkpointed, stopped and restored once more on a third server, whose image is then restored on a fourth
  twice       the same image restored on two servers: the first that is claimed owns the client, the other copy goes
  migrate     moved --moves times between two servers while the program works
  pause       paused and resumed 100 times, its memory with the host in between
  memory      stopped with its image in the server's memory, and restored from there, three times
  job         the program's sessions (its processes') are one job, checkpointed and stopped together, their server killed, all restored on a second one
  apart       the same, after one of the sessions was refused by itself, with --refusal in the message
  refused     its checkpoint and its pause must be refused at the mid point, with --refusal in the message, and it goes on
  hop         moved four times between the first two GPUs of one server while the program works
  card        with nothing set, stopped on purpose, its server killed, --pause seconds later restored elsewhere

All from checkpoint on go over --transport: tcp (client over TCP, cricketctl on the server's host), unix, far (everything over TCP, as from
another host: images travel in pieces over several connections), or leave (unix on the first server, tcp on every other).

The programs check themselves against the CPU and exit 1 on a difference; the text they print must also be the same in every mode
on one kind of device.  The first run of a program on a device leaves its text in --expected DIR, later runs compare with it.

Prints one line; exits 0 when all is well, 1 when not, 77 where the mode cannot be run here.
"""

import argparse
import contextlib
import ctypes
import difflib
import fcntl
import functools
import hashlib
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time


GUARD_S = 60  # after which a wait gives up; nothing is measured by it


class Failure(Exception):
    """Something is wrong; the text says what, in one or more lines."""


class Skip(Exception):
    """This cannot be run here."""


# ---------------------------------------------------------------- the tree that is tested

class Tree:
    """An installed or unpacked Cricket: bin/, lib/cricket/, libexec/cricket/ under one prefix."""

    def __init__(self, prefix):
        self.prefix = os.path.abspath(prefix)
        self.bin = os.path.join(self.prefix, "bin")
        self.lib = self._first("lib/cricket", "lib/x86_64-linux-gnu/cricket", "lib64/cricket")
        self.soft = self._first("libexec/cricket/soft", "libexec/soft")

    def _first(self, *names):
        for name in names:
            if os.path.isdir(os.path.join(self.prefix, name)):
                return os.path.join(self.prefix, name)
        return os.path.join(self.prefix, names[0])

    def tool(self, name):
        path = os.path.join(self.bin, name)
        if not os.path.exists(path):
            raise Failure(f"{path} is not there")
        return path

    def library(self, name):
        path = os.path.join(self.lib, name)
        if not os.path.exists(path):
            raise Failure(f"{path} is not there")
        return path


def stage(build):
    """A Meson build directory laid out as if installed, by hard links, so that tests run what would be installed.

    Only what is built is there.  Programs find each other relative to their own path, which a hard link keeps and a symbolic link loses."""
    with open(os.path.join(build, "meson-info", "intro-installed.json"), encoding="utf-8") as f:
        installed = json.load(f)
    with open(os.path.join(build, "meson-info", "intro-buildoptions.json"), encoding="utf-8") as f:
        prefix = next(o["value"] for o in json.load(f) if o["name"] == "prefix")
    root = os.path.join(build, "stage")
    os.makedirs(root, exist_ok=True)
    with open(os.path.join(root, ".lock"), "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        links = []
        for source, target in installed.items():
            if not target.startswith(prefix + "/"):
                continue
            target = os.path.join(root, os.path.relpath(target, prefix))
            if not os.path.isabs(source):
                links.append(target) # a symbolic link, of which Meson tells only the name
                continue
            if not os.path.isfile(source):
                continue
            if os.path.exists(target) and os.path.samefile(source, target):
                continue
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with contextlib.suppress(FileNotFoundError):
                os.unlink(target)
            try:
                os.link(source, target)
            except OSError:
                shutil.copy2(source, target)
        for link in links:
            # libx.so stands for libx.so.N beside it.
            directory, name = os.path.split(link)
            for found in os.listdir(directory) if os.path.isdir(directory) else ():
                if found.startswith(name + ".") and not os.path.lexists(link):
                    os.symlink(found, link)
    return root


# ---------------------------------------------------------------- servers

GIVEN_PORTS = set()


def free_port():
    """A TCP port for a server that is started later: none that the kernel gives to whoever asks for any, and none twice."""
    with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as f:
        first = int(f.read().split()[0])
    while True:
        port = random.randrange(min(10000, first - 1000), first)
        with socket.socket() as s, contextlib.suppress(OSError):
            s.bind(("127.0.0.1", port))
            if port not in GIVEN_PORTS:
                GIVEN_PORTS.add(port)
                return port


def children_of(pid):
    """Direct children of a process, from /proc."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError):
                with open(f"/proc/{entry}/stat", encoding="utf-8", errors="replace") as f:
                    if int(f.read().rsplit(")", 1)[1].split()[1]) == pid:
                        found.append(int(entry))
    return found


def compiles(pid):
    """Whether it is not a worker, but the process that compiles for the workers of a server."""
    with contextlib.suppress(OSError):
        with open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="replace") as f:
            return f.read().split("\0")[1:2] == ["--compiler"]
    return False


def keeps_key(pid):
    """Whether it is the process that holds a server's TLS key, or a child of it that carries a connection."""
    with contextlib.suppress(OSError):
        with open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="replace") as f:
            return f.read().split("\0")[1:2] == ["--tls-process"]
    return False


def shares_gpus(pid):
    """Whether it is a daemon of MPS, or of its stand-in, or asks one."""
    with contextlib.suppress(OSError):
        with open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="replace") as f:
            return "mps" in f.read()
    return False


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
            return f.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def holds_files(pid):
    """Whether any of its threads is left, and so its sockets are open: its first thread may be a zombie before the others have ended."""
    threads = ()
    with contextlib.suppress(OSError):
        threads = os.listdir(f"/proc/{pid}/task")
    for thread in threads:
        with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{thread}/stat", encoding="utf-8", errors="replace") as f:
            if f.read().rsplit(")", 1)[1].split()[0] not in ("Z", "X"):
                return True
    return False


@functools.lru_cache
def knows(tree, option):
    """Whether the server of that tree has the option: it may be an older build's."""
    done = subprocess.run([tree.tool("cricket-server"), "--help"], stdin=subprocess.DEVNULL, capture_output=True, check=False)
    return option.encode() in done.stdout


class Server:
    """A private cricket-server with its socket, address file and log in a directory of its own."""

    def __init__(self, tree, directory, driver="soft", args=(), env=None, **popen):
        self.directory = directory
        os.makedirs(directory, mode=0o755, exist_ok=True)
        self.socket = os.path.join(directory, "socket")
        self.log = os.path.join(directory, "log")
        if os.environ.get("CKT_TEST_SERVER_LOGS"):
            # Kept beyond the test, for whoever looks for a cause.
            descriptor, self.log = tempfile.mkstemp(".log", "server-", os.environ["CKT_TEST_SERVER_LOGS"])
            os.close(descriptor)
        address_file = os.path.join(directory, "address")
        command = [tree.tool("cricket-server"), "--listen", "127.0.0.1:0", "--address-file", address_file, "--socket", self.socket, *args]
        if driver:
            command += ["--driver", driver]
        # Tests count workers, and wait for the end of all.
        if "--warm" not in args and knows(tree, "--warm"):
            command += ["--warm", "0"]
        with open(self.log, "wb") as log:
            environment = {**os.environ, "STATE_DIRECTORY": directory, "CACHE_DIRECTORY": directory, **(env or {})}
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, **popen)
        deadline = time.monotonic() + GUARD_S
        self.address = ""
        while not self.address:
            if self.process.poll() is not None:
                raise Failure(f"cricket-server ended with {self.process.returncode}:\n{self.tail()}")
            if time.monotonic() > deadline:
                self.kill()
                raise Failure(f"cricket-server wrote no address:\n{self.tail()}")
            with contextlib.suppress(OSError):
                with open(address_file, encoding="utf-8") as f:
                    self.address = f.read().strip()
            time.sleep(0.01)

    def tail(self):
        with contextlib.suppress(OSError):
            with open(self.log, encoding="utf-8", errors="replace") as f:
                return "".join(f.readlines()[-30:])
        return ""

    def workers(self):
        return [pid for pid in children_of(self.process.pid) if not compiles(pid) and not keeps_key(pid) and not shares_gpus(pid)]

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def stop(self):
        """The clean end.  Raises when the server or a worker of its stays, or when it died by itself."""
        if self.process.poll() is not None:
            raise Failure(f"cricket-server had ended with {self.process.returncode}:\n{self.tail()}")
        workers = children_of(self.process.pid)
        self.process.terminate()
        try:
            code = self.process.wait(GUARD_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise Failure(f"cricket-server did not end at SIGTERM:\n{self.tail()}") from None
        end_all(workers, f"the server ended ({code})")
        if code != 0:
            raise Failure(f"cricket-server ended with {code} after SIGTERM:\n{self.tail()}")


def end_all(pids, when):
    """Waits until the processes are gone; ends those that stay and says so."""
    deadline = time.monotonic() + GUARD_S
    while any(holds_files(p) for p in pids):
        if time.monotonic() > deadline:
            left = [p for p in pids if holds_files(p)]
            for p in left:
                with contextlib.suppress(OSError):
                    os.kill(p, signal.SIGKILL)
            raise Failure(f"workers {left} were still there {GUARD_S} s after {when}")
        time.sleep(0.02)


@contextlib.contextmanager
def stopped(pids):
    """Processes that stand still meanwhile."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


def cricketctl(tree, *args, timeout=120, env=None):
    done = subprocess.run([tree.tool("cricketctl"), *args], stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout, check=False,
                          env={**os.environ, **(env or {})})
    if done.returncode != 0:
        raise Failure(f"cricketctl {' '.join(args)} exited {done.returncode}: {text(done.stderr) or text(done.stdout)}")
    return text(done.stdout)


def sessions_of(tree, server):
    return json.loads(cricketctl(tree, "--server", server.address, "ps", "--json"))["sessions"]


def sessions_of_socket(tree, server):
    """All sessions, as the user who runs this sees them."""
    return json.loads(cricketctl(tree, "--server", "unix:" + server.socket, "ps", "--json"))["sessions"]


# ---------------------------------------------------------------- the machine's GPU

def gpu_name():
    """The first GPU's name, and how many there are."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None, 0
    count, name = ctypes.c_int(0), ctypes.create_string_buffer(256)
    if cuda.cuInit(0) != 0 or cuda.cuDeviceGetCount(ctypes.byref(count)) != 0 or count.value == 0:
        return None, 0
    cuda.cuDeviceGetName(name, 256, 0)
    return name.value.decode(), count.value


# ---------------------------------------------------------------- programs

def text(data):
    return data.decode("utf-8", "replace")


def clean_environment(visible=None):
    """The caller's environment without anything that would lead a program elsewhere, and the program's CUDA_VISIBLE_DEVICES."""
    env = {k: v for k, v in os.environ.items()
           if (not k.startswith(("CRICKET_", "CKT_TEST_")) or k in ("CRICKET_SOFT_DEVICES", "CRICKET_SOFT_COMPILE", "CRICKET_SOFT_WAITS", "CRICKET_LIBRARIES", "CRICKET_TRANSPORT")) and k not in ("REMOTE_GPU_ADDRESS", "LD_PRELOAD", "LD_AUDIT")}  # noqa: E501
    if visible is not None:
        env["CUDA_VISIBLE_DEVICES"] = visible
    return env


class Program:
    """A started program, its output in files so that no pipe ever fills."""

    def __init__(self, directory, command, env):
        self.command = command
        self.out = os.path.join(directory, "stdout")
        self.err = os.path.join(directory, "stderr")
        with open(self.out, "wb") as out, open(self.err, "wb") as err:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=env)

    def wait(self, timeout):
        """(exit status, stdout, stderr)"""
        try:
            code = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise Failure(f"not done after {timeout:.0f} s:\n{self.output()}") from None
        with open(self.out, "rb") as out, open(self.err, "rb") as err:
            return code, out.read(), err.read()

    def output(self):
        with open(self.out, "rb") as out, open(self.err, "rb") as err:
            return text(out.read()[-3000:]) + text(err.read()[-3000:])

    def wait_ready(self, path, timeout):
        deadline = time.monotonic() + timeout
        while not os.path.exists(path):
            if self.process.poll() is not None:
                raise Failure(f"ended with {self.process.returncode} before its mid point:\n{self.output()}")
            if time.monotonic() > deadline:
                self.process.kill()
                self.process.wait()
                raise Failure(f"not at its mid point after {timeout:.0f} s:\n{self.output()}")
            time.sleep(0.01)


def launch(tree, arg, directory, command, address, extra_env=None):
    env = clean_environment(arg.visible)
    env.update(extra_env or {})
    if arg.launcher == "preload":
        env["REMOTE_GPU_ADDRESS"] = address
        env["LD_PRELOAD"] = tree.library("libcricket-client.so")
        return Program(directory, command, env)
    return Program(directory, [tree.tool("cricket-run"), "--server", address, *command], env)


def judge(arg, done):
    """Raises unless the program ended well and printed what it always prints."""
    code, out, err = done
    if code == 77 and arg.program.endswith(".py"):
        raise Skip(text(err).strip().splitlines()[-1] if err.strip() else "it says so")
    if code != 0:
        how = f"killed by signal {-code}" if code < 0 else f"exited {code}"
        raise Failure(f"{how}:\n{text(out[-3000:])}{text(err[-3000:])}")
    if arg.stderr_has and arg.stderr_has not in text(err):
        raise Failure(f"{arg.stderr_has!r} is not in its stderr:\n{text(err[-3000:])}")
    if arg.ignore:
        out = b"".join(line for line in out.splitlines(True) if not re.search(arg.ignore, text(line)))
    expect(arg, out)


def expect(arg, out):
    """Compares with the first text this program printed on this kind of device, or keeps it as that."""
    if not arg.expected:
        return
    name = re.sub(r"-(static|shared|stripped)$", "", os.path.basename(arg.program))
    name = re.sub(r"_plain$", "", name)
    # The static, the shared and the stripped build of one source print the same; another source, another text.
    source = b""
    if arg.source:
        with open(arg.source, "rb") as f:
            source = f.read()
    key = hashlib.sha256(repr((name, arg.args, arg.ignore, source)).encode()).hexdigest()[:12]
    path = os.path.join(arg.expected, f"{name}-{key}.out")
    os.makedirs(arg.expected, exist_ok=True)
    with open(path, "ab+") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        f.seek(0)
        known = f.read()
        if not known:
            f.write(out)
            return
    if known != out:
        lines = difflib.unified_diff(text(known).splitlines(), text(out).splitlines(), "expected", "printed", lineterm="", n=1)
        raise Failure("its output differs:\n" + "\n".join(list(lines)[:40]))


def interpreter():
    """The Python that has what the Python programs import."""
    path = os.environ.get("CKT_TEST_PYTHON")
    if not path:
        raise Skip("CKT_TEST_PYTHON names no interpreter")
    done = subprocess.run([path, "-c", "import numpy, numba.cuda, cuda.core"], capture_output=True, env=clean_environment(), check=False)
    if done.returncode != 0:
        raise Skip(f"{path} lacks modules: {text(done.stderr).strip().splitlines()[-1]}")
    return path


# ---------------------------------------------------------------- modes

def run_native(tree, arg, directory, command):
    del tree
    judge(arg, Program(directory, command, clean_environment(arg.visible)).wait(arg.timeout))


def run_local(tree, arg, directory, command):
    # On a machine with a GPU its own driver, otherwise the soft GPU; either way our runtime and no wire.
    driver = arg.driver if arg.driver != "soft" else os.path.join(tree.soft, "libcuda.so.1")
    judge(arg, Program(directory, [tree.tool("cricket-run"), "--server", f"local:{driver}", *command], clean_environment(arg.visible)).wait(arg.timeout))


def run_soft(tree, arg, directory, command):
    judge(arg, Program(directory, [tree.tool("cricket-run"), "--soft", *command], clean_environment(arg.visible)).wait(arg.timeout))


def run_remote(tree, arg, directory, command):
    servers = []
    try:
        for i in range(2 if arg.mode == "nodes" else 1):
            servers.append(Server(tree, os.path.join(directory, f"server{i}" if i else "server"), arg.driver, arg.server_arg))
        address = ",".join("unix:" + server.socket if arg.mode == "unix" else server.address for server in servers)
        programs = []
        for i in range(arg.clients):
            own = os.path.join(directory, f"client{i}")
            os.mkdir(own)
            programs.append(launch(tree, arg, own, command, address))
        for program in programs:
            judge(arg, program.wait(arg.timeout))
        # A session is gone with its program: nothing may be left to free.
        for server in servers:
            deadline = time.monotonic() + GUARD_S
            while (left := sessions_of(tree, server)) and time.monotonic() < deadline:
                time.sleep(0.05)
            if left:
                raise Failure(f"{len(left)} sessions were still there after their programs")
            server.stop()
    except Failure as failure:
        logs = "".join(f"\n--- server\n{server.tail()}" for server in servers)
        raise Failure(f"{failure}{logs}") from None
    finally:
        for server in servers:
            workers = server.workers()
            server.kill()
            with contextlib.suppress(Failure):
                end_all(workers, "a failed test")


PHASES_MAX = 16 # no program has more


class Journey:
    """A program whose session is stopped, restored and moved between servers while it waits, or works, at its mid point."""

    def __init__(self, tree, arg, directory, command):
        self.tree, self.arg, self.directory, self.command = tree, arg, directory, command
        self.servers, self.started, self.program = [], [], None
        self.point = os.path.join(directory, "phase")
        # Where the client looks and cricketctl writes.
        self.state = self.written = os.path.join(directory, "state")

    def token(self):
        """Who comes from elsewhere shows a token; the environment of what does, and the server's options."""
        if self.arg.transport != "far":
            return {}, []
        path = os.path.join(self.directory, "token")
        if not os.path.exists(path):
            with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="utf-8") as f:
                f.write("the token of this test\n" * 2)
        return {"CRICKET_TOKEN_FILE": path}, ["--token-file", path]

    def network(self):
        """The soft GPU's NCCL of several servers meets at abstract sockets, as NVIDIA's does over TCP."""
        return ["--worker-network", "on"] if self.arg.spread != "11" and self.arg.driver == "soft" else []

    def server(self, *args):
        server = Server(self.tree, os.path.join(self.directory, f"server{len(self.servers) + 1}"), self.arg.driver,
                        [*self.arg.server_arg, *self.token()[1], *self.network(), *args])
        self.servers.append(server)
        if self.arg.transport == "far":
            os.rename(server.socket, server.socket + ".hidden")
        return server

    def address(self, server):
        at_home = self.arg.transport == "unix" or (self.arg.transport == "leave" and server is self.servers[0])
        return "unix:" + server.socket if at_home else server.address

    def ctl(self, server, *words):
        return cricketctl(self.tree, "--server", self.address(server), *words, env={**self.token()[0], **({"CRICKET_STATE_DIR": self.written} if self.written else {})})

    def ctl_all(self, servers, *words):
        """Of several servers at once."""
        return self.ctl(servers[-1], *[word for server in servers[:-1] for word in ("--server", self.address(server))], *words)

    def sessions(self, server):
        return json.loads(self.ctl(server, "ps", "--json"))["sessions"]

    def start(self, server, standby=()):
        """The program up to its mid point; gives its session."""
        self.start_program(server, standby)
        sessions = self.sessions(server)
        if len(sessions) != 1:
            raise Failure(f"the server lists {len(sessions)} sessions instead of one")
        return sessions[0]["session"]

    def start_program(self, server, standby=(), job=None, others=None):
        """The program up to its mid point; others: the server of the ranks that it starts."""
        env = {"CKT_TEST_PHASE_FILE": self.point, **self.token()[0]}
        if self.state:
            env["CRICKET_STATE_DIR"] = self.state
        if standby:
            env["CRICKET_STANDBY"] = ",".join(self.address(s) for s in standby)
        if job:
            env["CRICKET_JOB"] = job
        if others:
            env["CKT_TEST_OTHER_ADDRESS"] = self.address(others)
        for n in range(1, self.arg.at):
            self.go(n)
        self.program = launch(self.tree, self.arg, self.directory, self.command, self.address(server), env)
        self.program.wait_ready(f"{self.point}.ready{self.suffix(self.arg.at)}", self.arg.timeout)

    @staticmethod
    def suffix(n):
        return "" if n == 1 else str(n)

    def go(self, n):
        """Lets the program go on from its mid point number n, now or when it comes there."""
        with open(f"{self.point}.go{self.suffix(n)}", "w", encoding="utf-8"):
            pass

    def stop(self, server, session, name):
        """Checkpoints, stops and kills the server; gives the image."""
        image = os.path.join(self.directory, name)
        workers = server.workers()
        self.started += workers
        self.ctl(server, "checkpoint", session, image, "--stop")
        server.kill()
        end_all(workers, "its server was killed")
        return image

    def claimed(self, servers, session):
        """Waits until the client has found its session; gives the server that has it."""
        deadline = time.monotonic() + self.arg.timeout
        while time.monotonic() < deadline:
            for server in servers:
                if any(s["session"] == session and s["state"] == "running" for s in self.sessions(server)):
                    return server
            time.sleep(0.05)
        raise Failure(f"nobody claimed the session within {self.arg.timeout:.0f} s")

    def finish(self, server):
        for n in range(self.arg.at, PHASES_MAX + 1):
            self.go(n)
        judge(self.arg, self.program.wait(self.arg.timeout))
        server.stop()

    def run(self, route):
        try:
            route(self)
        except Failure as failure:
            logs = "".join(f"--- server {i}\n{s.tail()}" for i, s in enumerate(self.servers, 1))
            raise Failure(f"{failure}\n{logs}") from None
        finally:
            if self.program and self.program.process.poll() is None:
                self.program.process.kill()
                self.program.process.wait()
            for server in self.servers:
                workers = server.workers()
                server.kill()
                with contextlib.suppress(Failure):
                    end_all(workers + self.started, "a failed test")


def route_checkpoint(j):
    first, second = j.server(), j.server()
    image = j.stop(first, j.start(first), "image")
    j.ctl(second, "restore", image)
    j.finish(second)


def route_job(j):
    """--spread AB: the ranks are at A servers, and go on at B."""
    before, after = ([j.server() for _ in range(int(n))] for n in j.arg.spread)
    j.start_program(before[0], job="test.job", others=before[-1])
    for server in before:
        if not j.sessions(server):
            raise Failure(f"there is no session at {server.address}")
    image = os.path.join(j.directory, "image")
    for n in range(j.arg.running):
        told = json.loads(j.ctl_all(before, "checkpoint", "--job", "test.job", f"{image}-{n}", "--json"))
        if not 0 < told["cut_ms"] <= told["stopped_ms"]:
            raise Failure(f"a job stood still for {told['stopped_ms']} ms, and until its cut {told['cut_ms']} ms")
        shutil.rmtree(f"{image}-{n}")
        if j.arg.running_out:
            with open(j.arg.running_out, "a", encoding="utf-8") as f:
                f.write(json.dumps(told) + "\n")
    workers = [worker for server in before for worker in server.workers()]
    j.started += workers
    j.ctl_all(before, "checkpoint", "--job", "test.job", image, "--stop")
    for server in before:
        server.kill()
    end_all(workers, "their servers were killed")
    j.ctl_all(after, "restore", "--job", image)
    for server in after:
        if not j.sessions(server):
            raise Failure(f"no session was restored at {server.address}")
    j.finish(after[0])


def route_apart(j):
    """One of a job's sessions that share memory does not go on without the others; all of them do."""
    first, second = j.server(), j.server()
    j.start_program(first, job="test.job")
    image = os.path.join(j.directory, "image")
    workers = first.workers()
    j.started += workers
    sessions = [s["session"] for s in j.sessions(first)]
    j.ctl(first, "checkpoint", "--job", "test.job", image, "--stop")
    first.kill()
    end_all(workers, "their server was killed")
    # It waits a while for the others.
    try:
        j.ctl(second, "restore", os.path.join(image, sessions[0]))
    except Failure as failure:
        if j.arg.refusal not in str(failure):
            raise Failure(f"session {sessions[0]} was refused alone for another reason: {failure}") from None
    else:
        raise Failure(f"session {sessions[0]} was restored without the others")
    j.ctl(second, "restore", "--job", image)
    j.finish(second)


def route_again(j):
    servers = [j.server() for _ in range(4)]
    session = j.start(servers[0])
    for i, (here, there) in enumerate(zip(servers, servers[1:])):
        image = j.stop(here, session, f"image{i}")
        j.ctl(there, "restore", image)
        j.claimed([there], session)
    j.finish(servers[-1])


def route_twice(j):
    # The first copy waits in vain, and its time stands still while the second is made; the other one waits as long as the client needs.
    first, copies = j.server(), [j.server("--claim-timeout", "3"), j.server()]
    # It is told of one place only, the last, so that both copies are there before it finds one.
    j.written = os.path.join(j.directory, "elsewhere")
    session = j.start(first, copies[1:])
    image = j.stop(first, session, "image")
    j.ctl(copies[0], "restore", image)
    with stopped(copies[0].workers()):
        try:
            j.ctl(copies[1], "restore", image)
        except Failure as refusal:
            if "--fork" not in str(refusal):
                raise
        else:
            raise Failure("the image was restored a second time, and nobody asked for a further copy")
        j.ctl(copies[1], "restore", image, "--fork")
    owner = j.claimed(copies, session)
    other = copies[copies.index(owner) - 1]
    j.finish(owner)
    # The time runs from its restore on.
    deadline = time.monotonic() + GUARD_S
    while j.sessions(other):
        if time.monotonic() > deadline:
            raise Failure(f"the copy that nobody claimed was still there after {GUARD_S} s")
        time.sleep(0.1)
    # The image stays.
    json.loads(cricketctl(j.tree, "image", "verify", image, "--json"))


def route_migrate(j):
    servers = [j.server(), j.server()]
    session = j.start(servers[0])
    for i in range(j.arg.moves):
        here, there = servers[i % 2], servers[1 - i % 2]
        done = json.loads(j.ctl(here, "migrate", session, "--to", j.address(there), "--json"))
        if done["session"] != session or j.sessions(here):
            raise Failure(f"move {i}: {done}; it is still at the source")
        j.claimed([there], session)
    j.finish(servers[j.arg.moves % 2])


def route_pause(j):
    server = j.server()
    session = j.start(server)
    for i in range(100):
        done = json.loads(j.ctl(server, "pause", session, "--json"))
        if done["state"] != "paused" or done["session"] != session:
            raise Failure(f"pause {i}: {done}")
        j.ctl(server, "resume", session)
    j.finish(server)


def route_memory(j):
    server = j.server()
    session = j.start(server)
    for i in range(3):
        workers = server.workers()
        j.ctl(server, "checkpoint", session, "--to-memory", f"image{i}", "--stop")
        end_all(workers, "it was stopped")
        j.ctl(server, "restore", f"memory:image{i}")
        j.claimed([server], session)
        j.ctl(server, "image", "remove", f"memory:image{i}")
    j.finish(server)


def route_hop(j):
    server = j.server()
    session = j.start(server)
    for i in range(4):
        gpu = 1 - i % 2
        done = json.loads(j.ctl(server, "migrate", session, "--gpu", str(gpu), "--json"))
        j.claimed([server], session)
        now = [s["gpu"] for s in j.sessions(server)]
        if done["session"] != session or now != [gpu]:
            raise Failure(f"move {i}: {done}; the sessions are on GPUs {now}")
    j.finish(server)


def route_refused(j):
    server = j.server()
    j.start_program(server)
    # Of a program of several processes each.
    sessions = [s["session"] for s in j.sessions(server)]
    session = sessions[0]
    refused = [("checkpoint", each, os.path.join(j.directory, "image")) for each in sessions]
    if j.arg.may_pause:
        j.ctl(server, "pause", session)
        j.ctl(server, "resume", session)
        refused.append(("migrate", session, "--to", j.address(server)))
    else:
        refused += [("pause", each) for each in sessions]
    for words in refused:
        try:
            j.ctl(server, *words)
        except Failure as failure:
            if j.arg.refusal not in str(failure):
                raise Failure(f"{words[0]} was refused for another reason: {failure}") from None
        else:
            raise Failure(f"{words[0]} was not refused")
    j.finish(server)


def route_card(j):
    """As a user does it: no variable is set, and the state file lies in the home."""
    home = os.path.join(j.directory, "home")
    os.mkdir(home)
    before, os.environ["HOME"] = os.environ.get("HOME", "/"), home
    try:
        j.state = j.written = None
        first = j.server()
        image = j.stop(first, j.start(first), "image")
        time.sleep(j.arg.pause)
        second = j.server()
        j.ctl(second, "restore", image)
        j.finish(second)
    finally:
        os.environ["HOME"] = before


ROUTES = {"refused": route_refused, "hop": route_hop, "card": route_card, "checkpoint": route_checkpoint, "job": route_job, "apart": route_apart, "again": route_again, "twice": route_twice, "migrate": route_migrate,  # noqa: E501
          "pause": route_pause, "memory": route_memory}


def run_route(tree, arg, directory, command):
    Journey(tree, arg, directory, command).run(ROUTES[arg.mode])


MODES = {"native": run_native, "local": run_local, "soft": run_soft, "tcp": run_remote, "unix": run_remote, "nodes": run_remote, **dict.fromkeys(ROUTES, run_route)}


def arguments(argv):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], formatter_class=argparse.RawDescriptionHelpFormatter,
                                     epilog="\n".join(__doc__.splitlines()[2:]))
    parser.add_argument("--mode", choices=MODES, required=True)
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--build", metavar="DIR", help="a Meson build directory")
    where.add_argument("--prefix", metavar="DIR", help="an installed or unpacked tree")
    parser.add_argument("--driver", default="soft", help="of the servers: soft (default), a path, or an empty text for what the server chooses")
    parser.add_argument("--launcher", choices=("cricket-run", "preload"), default="cricket-run")
    parser.add_argument("--pause", type=float, default=90, metavar="SECONDS", help="of card (default 90)")
    parser.add_argument("--running", type=int, default=0, metavar="N", help="of job: first saved so many times while it runs on")
    parser.add_argument("--running-out", default="", metavar="FILE", help="where what cricketctl said of those goes, a line of JSON each")
    parser.add_argument("--spread", choices=("11", "12", "21", "22"), default="11", help="of job: at how many servers the ranks are, and go on")
    parser.add_argument("--transport", choices=("tcp", "unix", "far", "leave"), default="tcp", help="of checkpoint, job, apart, again, twice and migrate")
    parser.add_argument("--moves", type=int, default=10, metavar="N", help="of migrate (default 10)")
    parser.add_argument("--clients", type=int, default=1, metavar="N", help="so many at once (tcp, unix)")
    parser.add_argument("--at", type=int, default=1, metavar="N", help="the mid point where the checkpoint is taken")
    parser.add_argument("--python", metavar="PATH", help="the interpreter for a program in Python; otherwise $CKT_TEST_PYTHON")
    parser.add_argument("--server-arg", action="append", default=[], metavar="ARG")
    parser.add_argument("--may-pause", action="store_true", help="of refused: a move is refused instead of a pause")
    parser.add_argument("--refusal", default="", metavar="TEXT", help="of refused and apart")
    parser.add_argument("--visible", metavar="LIST", help="the program's CUDA_VISIBLE_DEVICES")
    parser.add_argument("--expected", metavar="DIR", help="where the texts to compare with are kept")
    parser.add_argument("--source", metavar="FILE", help="the program's source: a changed one starts with a new text")
    parser.add_argument("--stderr-has", metavar="TEXT")
    parser.add_argument("--ignore", metavar="REGEX", help="lines not to be compared")
    parser.add_argument("--timeout", type=float, default=60, metavar="SECONDS")
    parser.add_argument("--keep", action="store_true", help="keep the directory with logs and images, and say where it is")
    parser.add_argument("program")
    parser.add_argument("args", nargs=argparse.REMAINDER)
    return parser.parse_args(argv)


def run(arg):
    """Runs one test; returns (0, 1 or 77, text)."""
    name = f"{os.path.basename(arg.program)} {arg.mode}" + (f" over {arg.transport}" if arg.transport != "tcp" else "") + (f" x{arg.clients}" if arg.clients > 1 else "")
    directory = tempfile.mkdtemp(prefix="ckt-")
    os.chmod(directory, 0o755)
    start = time.monotonic()
    try:
        if arg.mode == "native":
            tree = None
        else:
            tree = Tree(stage(arg.build) if arg.build else arg.prefix or ".")
        command = [os.path.abspath(arg.program), *arg.args]
        if arg.program.endswith(".py"):
            command.insert(0, arg.python or interpreter())
        MODES[arg.mode](tree, arg, directory, command)
        return 0, f"ok   {name} ({time.monotonic() - start:.1f} s)"
    except Skip as skip:
        return 77, f"skip {name}: {skip}"
    except Failure as failure:
        return 1, f"FAIL {name}: {failure}"
    finally:
        if arg.keep:
            print(directory)
        else:
            shutil.rmtree(directory, ignore_errors=True)


def main():
    code, line = run(arguments(sys.argv[1:]))
    print(line)
    return code


if __name__ == "__main__":
    sys.exit(main())
