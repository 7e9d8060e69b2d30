# SPDX-License-Identifier: Apache-2.0
"""What the comparisons of this folder share: their options, a server for the remote side, and what stands before a command on each side."""

import argparse
import contextlib
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(here, "..", "runner"))
import runner  # noqa: E402
import proc_stacks  # noqa: E402
import wheels  # noqa: E402


def parser(doc, limit, python="the interpreter that has the framework"):
    """The options that every comparison has; `limit` is the default of --limit."""
    beside = os.path.join(here, "..", "..", "cricket")
    bundle = beside if os.path.exists(os.path.join(beside, "bin", "cricket-run")) else os.path.join(here, "..", "..", "build", "bundle", "cricket")
    result = argparse.ArgumentParser(description=doc.splitlines()[0], formatter_class=argparse.RawDescriptionHelpFormatter, epilog="\n".join(doc.splitlines()[2:]))
    result.add_argument("--bundle", default=bundle, metavar="DIR", help="what `./run bundle` made")
    result.add_argument("--driver", default="", help="of the server; empty (default): the real one; with soft, native is cricket-run --soft")
    result.add_argument("--mode", default="tcp", choices=("tcp", "unix"), help="of the remote side (default tcp)")
    result.add_argument("--out", default="gpu-results", metavar="DIR")
    result.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes at once, both sides together")
    result.add_argument("--limit", type=float, default=limit, metavar="SECONDS", help=f"after which what is not done is told as such (default {limit})")
    result.add_argument("--python", default=os.environ.get("CKT_TEST_PYTHON", sys.executable), help=python)
    result.add_argument("--server-arg", action="append", default=[], metavar="ARG", help="of the server; may be given several times")
    result.add_argument("--library-path", metavar="DIR:DIR", help="of the server; by default where the interpreter's wheels have NVIDIA's libraries")
    return result


def no_gpu(arg):
    return not arg.driver and not runner.gpu_name()[1]


class Told:
    """A program that does what a line of words says, and answers with a line of a number; its first one says that it has begun."""

    def __init__(self, command):
        self.said = "its start"
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=runner.clean_environment())
        if self.answer():
            raise SystemExit("a program did not begin")

    def begin(self, *words):
        self.said = f"'{' '.join(map(str, words))}'"
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"a program ended at {self.said}")
        return int(line)

    def has_answered(self):
        return bool(select.select([self.process.stdout], [], [], 0.05)[0])

    def ask(self, *words):
        self.begin(*words)
        return self.answer()

    def end(self):
        self.process.stdin.close()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()


class Sides:
    """A server of its own, and how a command runs on each side."""

    def __init__(self, arg):
        self.arg = arg
        self.began = time.monotonic()
        self.tree = runner.Tree(arg.bundle)
        self.server = None
        self.libraries = ""     # what the server's --library-path names

    def left(self):
        """Seconds until the limit."""
        return self.arg.limit - (time.monotonic() - self.began)

    def seconds(self):
        return time.monotonic() - self.began

    def launcher(self, side):
        """What stands before a command on the side "native" or "remote"."""
        if side == "native":
            return [self.tree.tool("cricket-run"), "--soft"] if self.arg.driver == "soft" else []
        return [self.tree.tool("cricket-run"), "--server", "unix:" + self.server.socket if self.arg.mode == "unix" else self.server.address]

    def stacks(self, path, *pids):
        """Writes what the threads of the workers and of these processes are doing."""
        debugger = shutil.which("gdb") or shutil.which("cuda-gdb")
        with open(path, "w", encoding="utf-8") as out:
            for pid in (*pids, *self.server.workers()):
                print(f"--- process {pid}", file=out, flush=True)
                proc_stacks.describe(pid, out)
                if debugger:
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        subprocess.run([debugger, "-p", str(pid), "-batch", "-nx", "-ex", "thread apply all bt 24"], stdin=subprocess.DEVNULL, stdout=out,
                                       stderr=subprocess.STDOUT, timeout=60, check=False)

    @contextlib.contextmanager
    def serving(self):
        os.makedirs(self.arg.out, exist_ok=True)
        self.libraries = path = self.arg.library_path if self.arg.library_path is not None else wheels.library_paths(self.arg.python)
        if self.arg.driver == "soft":
            os.environ["CRICKET_SOFT_PTX"] = "1"    # as cricket-run --soft: the soft GPU runs no machine code
        # It has libraries of its own.
        options = [*(["--library-path", path] if path and self.arg.driver != "soft" else []), *self.arg.server_arg]
        with tempfile.TemporaryDirectory(prefix="ckt-") as directory:
            os.chmod(directory, 0o755)
            self.server = runner.Server(self.tree, os.path.join(directory, "server"), self.arg.driver, options)
            try:
                yield self
            finally:
                with open(os.path.join(self.arg.out, "server.log"), "w", encoding="utf-8") as log, open(self.server.log, encoding="utf-8", errors="replace") as said:
                    log.write(said.read())
                workers = self.server.workers()
                self.server.kill()
                with contextlib.suppress(runner.Failure):
                    runner.end_all(workers, "the comparison ended")


def expectations(path):
    """{name: reason} of a list with lines "name | reason"."""
    listed = {}
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            if line.strip() and not line.startswith("#"):
                name, _, reason = (part.strip() for part in line.partition("|"))
                if not reason:
                    sys.exit(f"{os.path.basename(path)}: {line.strip()}: not a name and its reason")
                listed[name] = reason
    return listed


def unexpected(good, bad, listed):
    """good: names that agree; bad: {name: why} of those that do not.  A line for each that is not as the list says."""
    wrong = [f"{name}: {why}" for name, why in sorted(bad.items()) if name not in listed]
    return wrong + [f"{name}: agrees, though it is listed: remove it there" for name in sorted(listed) if name in good]
