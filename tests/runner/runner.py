#!/usr/bin/env python3
"""Runs one test program in one mode and compares what it prints with what it printed in every other mode.

Modes:
  native      with the machine's own CUDA driver
  local       our runtime over the driver of this machine (or the soft GPU) inside the program's process: no server, no wire
  tcp, unix   through a private cricket-server
  soft        cricket-run --soft
  checkpoint  over TCP; at the program's mid point the session is checkpointed and stopped, its server killed, the session
              restored on a second server, and the program goes on

The programs check themselves against the CPU and exit 1 on a difference; the text they print must also be the same in every mode
on one kind of device.  The first run of a program on a device leaves its text in --expected DIR, later runs compare with it.

Prints one line; exits 0 when all is well, 1 when not, 77 where the mode cannot be run here.
"""

import argparse
import contextlib
import difflib
import fcntl
import hashlib
import json
import os
import re
import shutil
import signal
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


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
            return f.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


class Server:
    """A private cricket-server with its socket, address file and log in a directory of its own."""

    def __init__(self, tree, directory, driver="soft", args=(), env=None):
        self.directory = directory
        os.makedirs(directory, mode=0o755, exist_ok=True)
        self.socket = os.path.join(directory, "socket")
        self.log = os.path.join(directory, "log")
        address_file = os.path.join(directory, "address")
        command = [tree.tool("cricket-server"), "--listen", "127.0.0.1:0", "--address-file", address_file, "--socket", self.socket, *args]
        if driver:
            command += ["--driver", driver]
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env={**os.environ, **(env or {})})
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
        return children_of(self.process.pid)

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def stop(self):
        """The clean end.  Raises when the server or a worker of its stays, or when it died by itself."""
        if self.process.poll() is not None:
            raise Failure(f"cricket-server had ended with {self.process.returncode}:\n{self.tail()}")
        workers = self.workers()
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
    while any(alive(p) for p in pids):
        if time.monotonic() > deadline:
            left = [p for p in pids if alive(p)]
            for p in left:
                with contextlib.suppress(OSError):
                    os.kill(p, signal.SIGKILL)
            raise Failure(f"workers {left} were still there {GUARD_S} s after {when}")
        time.sleep(0.02)


def cricketctl(tree, *args, timeout=120):
    done = subprocess.run([tree.tool("cricketctl"), *args], stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout, check=False)
    if done.returncode != 0:
        raise Failure(f"cricketctl {' '.join(args)} exited {done.returncode}: {text(done.stderr) or text(done.stdout)}")
    return text(done.stdout)


def sessions_of(tree, server):
    return json.loads(cricketctl(tree, "--server", server.address, "ps", "--json"))["sessions"]


# ---------------------------------------------------------------- programs

def text(data):
    return data.decode("utf-8", "replace")


def clean_environment():
    """The caller's environment without anything that would lead a program elsewhere."""
    return {k: v for k, v in os.environ.items()
            if not k.startswith(("CRICKET_", "CKT_TEST_")) and k not in ("REMOTE_GPU_ADDRESS", "LD_PRELOAD", "LD_AUDIT")}


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
    env = clean_environment()
    env.update(extra_env or {})
    if arg.launcher == "preload":
        env["REMOTE_GPU_ADDRESS"] = address
        env["LD_PRELOAD"] = tree.library("libcricket-client.so")
        return Program(directory, command, env)
    return Program(directory, [tree.tool("cricket-run"), "--server", address, *command], env)


def judge(arg, done):
    """Raises unless the program ended well and printed what it always prints."""
    code, out, err = done
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
    judge(arg, Program(directory, command, clean_environment()).wait(arg.timeout))


def run_local(tree, arg, directory, command):
    # On a machine with a GPU its own driver, otherwise the soft GPU; either way our runtime and no wire.
    driver = arg.driver if arg.driver != "soft" else os.path.join(tree.soft, "libcuda.so.1")
    judge(arg, Program(directory, [tree.tool("cricket-run"), "--server", f"local:{driver}", *command], clean_environment()).wait(arg.timeout))


def run_soft(tree, arg, directory, command):
    judge(arg, Program(directory, [tree.tool("cricket-run"), "--soft", *command], clean_environment()).wait(arg.timeout))


def run_remote(tree, arg, directory, command):
    server = Server(tree, os.path.join(directory, "server"), arg.driver, arg.server_arg)
    address = server.address if arg.mode == "tcp" else "unix:" + server.socket
    try:
        programs = []
        for i in range(arg.clients):
            own = os.path.join(directory, f"client{i}")
            os.mkdir(own)
            programs.append(launch(tree, arg, own, command, address))
        for program in programs:
            judge(arg, program.wait(arg.timeout))
        # A session is gone with its program: nothing may be left to free.
        deadline = time.monotonic() + GUARD_S
        while (left := sessions_of(tree, server)) and time.monotonic() < deadline:
            time.sleep(0.05)
        if left:
            raise Failure(f"{len(left)} sessions were still there after their programs")
        server.stop()
    except Failure as failure:
        raise Failure(f"{failure}\n--- server\n{server.tail()}") from None
    finally:
        workers = server.workers()
        server.kill()
        with contextlib.suppress(Failure):
            end_all(workers, "a failed test")


PHASES_MAX = 16 # no program has more


def run_checkpoint(tree, arg, directory, command):
    first = Server(tree, os.path.join(directory, "first"), arg.driver, arg.server_arg)
    second = None
    program = None
    image = os.path.join(directory, "image")
    point = os.path.join(directory, "phase")
    started = []
    try:
        second = Server(tree, os.path.join(directory, "second"), arg.driver, arg.server_arg)
        suffix = lambda n: "" if n == 1 else str(n)
        for n in range(1, arg.at):
            with open(f"{point}.go{suffix(n)}", "w", encoding="utf-8"):
                pass
        program = launch(tree, arg, directory, command, first.address,
                         {"CKT_TEST_PHASE_FILE": point, "CRICKET_STANDBY": second.address})
        program.wait_ready(f"{point}.ready{suffix(arg.at)}", arg.timeout)
        started = first.workers()
        sessions = sessions_of(tree, first)
        if len(sessions) != 1:
            raise Failure(f"the server lists {len(sessions)} sessions instead of one")
        cricketctl(tree, "--server", first.address, "checkpoint", sessions[0]["session"], image, "--stop")
        first.kill()
        end_all(started, "its server was killed")
        cricketctl(tree, "restore", image, "--server", second.address)
        for n in range(arg.at, PHASES_MAX + 1):
            with open(f"{point}.go{suffix(n)}", "w", encoding="utf-8"):
                pass
        judge(arg, program.wait(arg.timeout))
        second.stop()
    except Failure as failure:
        logs = f"--- first server\n{first.tail()}" + (f"--- second server\n{second.tail()}" if second else "")
        raise Failure(f"{failure}\n{logs}") from None
    finally:
        if program and program.process.poll() is None:
            program.process.kill()
            program.process.wait()
        for server in (first, second):
            if server:
                workers = server.workers()
                server.kill()
                with contextlib.suppress(Failure):
                    end_all(workers + started, "a failed test")


MODES = {"native": run_native, "local": run_local, "soft": run_soft, "tcp": run_remote, "unix": run_remote, "checkpoint": run_checkpoint}


def arguments(argv):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], formatter_class=argparse.RawDescriptionHelpFormatter,
                                     epilog="\n".join(__doc__.splitlines()[2:]))
    parser.add_argument("--mode", choices=MODES, required=True)
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--build", metavar="DIR", help="a Meson build directory")
    where.add_argument("--prefix", metavar="DIR", help="an installed or unpacked tree")
    parser.add_argument("--driver", default="soft", help="of the servers: soft (default), a path, or an empty text for what the server chooses")
    parser.add_argument("--launcher", choices=("cricket-run", "preload"), default="cricket-run")
    parser.add_argument("--clients", type=int, default=1, metavar="N", help="so many at once (tcp, unix)")
    parser.add_argument("--at", type=int, default=1, metavar="N", help="the mid point where the checkpoint is taken")
    parser.add_argument("--server-arg", action="append", default=[], metavar="ARG")
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
    name = f"{os.path.basename(arg.program)} {arg.mode}" + (f" x{arg.clients}" if arg.clients > 1 else "")
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
            command.insert(0, interpreter())
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
