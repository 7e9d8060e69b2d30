#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the test suite that Numba's CUDA target brings along (numba-cuda from PyPI) on the soft GPU.

Every module runs in a process of its own, a few at a time, each with its own server (cricket-run --soft).  What fails must be
listed in numba_expected.txt with its reason: "test-id | reason", the id without "numba.cuda.tests."; a trailing * stands for all
that begin so.  The reason "slow" excuses a time-out and nothing else.  An unlisted test that fails makes the run fail, and so does a
line of the list all of whose tests pass, but for those that are slow: how fast a machine is decides over these.

The interpreter is $CKT_TEST_PYTHON; without it, or without numba-cuda in it, the exit code is 77.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import re
import selectors
import shlex
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PREFIX = "numba.cuda.tests."
# What continuous integration runs: a module for each kind of work.
SUBSET = ("cudapy.test_atomics cudapy.test_intrinsics cudapy.test_warp_ops cudapy.test_sm cudapy.test_sync cudapy.test_cooperative_groups "
          "cudapy.test_random cudapy.test_reduction cudapy.test_ufuncs cudapy.test_print cudadrv.test_cuda_ndarray "
          "cudadrv.test_cuda_memory cudadrv.test_events cudadrv.test_streams").split()


def find_tests(python):
    """Where numba-cuda's tests lie, None where that interpreter has none."""
    find = "import numba_cuda, os; print(os.path.join(os.path.dirname(numba_cuda.__file__), 'numba', 'cuda', 'tests'))"
    done = subprocess.run([python, "-c", find], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 and os.path.isdir(done.stdout.strip()) else None


def modules_of(tests):
    names = []
    for directory in ("cudadrv", "cudapy", "doc_examples", "nocuda", "core", "nrt"):
        base = os.path.join(tests, directory)
        if os.path.isdir(base):
            names += [f"{directory}.{f[:-3]}" for f in sorted(os.listdir(base)) if f.startswith("test_") and f.endswith(".py")]
    return names


class Suite:
    """Runs modules of the suite, each in a process of its own behind the launcher, jobs at a time."""

    def __init__(self, python, launcher, log, jobs, timeout, module_timeout, without_nvjitlink=True):
        self.python, self.launcher, self.log, self.jobs = python, launcher, log, jobs
        self.timeout, self.module_timeout = timeout, module_timeout
        self.env = dict(os.environ)
        if without_nvjitlink:
            self.env["PYTHONPATH"] = os.path.join(HERE, "site")

    def run(self, modules):
        """Yields, as modules end, (module, what each of its tests did {its name without PREFIX: (pass, fail or skip, detail)}, seconds)."""
        open(self.log, "wb").close()
        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            for future in concurrent.futures.as_completed([pool.submit(self.run_module, m) for m in modules]):
                module, results, seconds = future.result()
                yield module, {name.removeprefix(PREFIX): result for name, result in results.items()}, seconds

    def run_module(self, module):
        """A module, or what of it is named behind a colon: module:Class.test,Class.test"""
        module, _, only = module.partition(":")
        results = {}
        start = time.monotonic()
        deadline = start + self.module_timeout
        tests = [f"{PREFIX}{module}.{test}" for test in only.split(",") if test] or [PREFIX + module]
        while True:
            done = [name for name in results if name != "(loading)"]
            died = self.run_once([*self.launcher, self.python, os.path.join(HERE, "numba_child.py"), ",".join(tests), *done], results, deadline)
            if died is None or died == "(loading)" or time.monotonic() > deadline:
                break
        if "(loading)" in results:
            results[PREFIX + module] = results.pop("(loading)")
        return module, results, time.monotonic() - start

    def run_once(self, command, results, deadline):
        """One child until its end; answers the test at which it died, None where it ended well."""
        read, write = os.pipe()
        env = dict(self.env, CKT_TEST_CHANNEL=str(write))
        with open(os.devnull, "rb") as nothing, open(self.log, "ab") as log:
            child = subprocess.Popen(command, stdin=nothing, stdout=log, stderr=log, env=env, pass_fds=(write,), start_new_session=True)
        os.close(write)
        current, ended, buffer, last = "(loading)", False, b"", time.monotonic()
        why = "ended without a word"
        with selectors.DefaultSelector() as selector:
            selector.register(read, selectors.EVENT_READ)
            while True:
                now = time.monotonic()
                if now - last > self.timeout or now > deadline:
                    why = f"took longer than {self.timeout} s" if now <= deadline else f"its module took longer than {self.module_timeout} s"
                    break
                if not selector.select(1):
                    continue
                data = os.read(read, 65536)
                if not data:
                    break
                last = time.monotonic()
                *lines, buffer = (buffer + data).split(b"\n")
                for line in lines:
                    what, name, detail = json.loads(line)
                    if what == "start":
                        current = name
                    elif what == "end":
                        ended = True
                    elif results.get(name, ("", ""))[0] != "fail":
                        results[name] = (what, detail)
        os.close(read)
        if not ended:
            end_group(child)
        wait_or_end(child)
        if ended:
            return None
        results[current] = ("fail", f"{why} ({child.returncode})")
        return current


def end_group(child):
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def wait_or_end(child):
    """Its tests are done; an exit that hangs is not waited for."""
    try:
        child.wait(60)
    except subprocess.TimeoutExpired:
        end_group(child)
        child.wait()


def expectations(path):
    """What a list of failures holds: {test, or the beginning of its name with a * behind: reason}"""
    listed = {}
    with open(path, encoding="utf-8") as f:
        for line in f:
            line = line.strip()
            if line and not line.startswith("#"):
                name, _, reason = line.partition("|")
                if not reason.strip():
                    sys.exit(f"{os.path.basename(path)}: no reason for {name}")
                listed[name.strip()] = reason.strip()
    return listed


SLOW = "slow"
TIMED_OUT = re.compile(r"(its module )?took longer than \d+ s")


def fits(key, name):
    return name.startswith(key[:-1]) if key.endswith("*") else name == key


def excuses(key, reason, name, detail):
    """Whether that line of the list is about this failure."""
    return fits(key, name) and (reason != SLOW or bool(TIMED_OUT.match(last_line(detail))))


def reason_for(listed, name, detail=""):
    """Why it may fail in that way; None where it may not."""
    return next((why for key, why in listed.items() if excuses(key, why, name, detail)), None)


def idle_lines(listed, outcomes):
    """What of the list is about tests that ran and did not fail: it has to go."""
    found = []
    for key, why in listed.items():
        ran = [what for name, (what, _) in outcomes.items() if fits(key, name) and what in ("pass", "fail")]
        if ran and "fail" not in ran and why != SLOW:
            found.append(key)
    return found


def last_line(detail):
    return detail.strip().splitlines()[-1] if detail.strip() else ""


def counted(outcomes):
    count = collections.Counter(what for what, _ in outcomes.values())
    return f"{count['pass']} passed, {count['fail']} failed, {count['skip']} skipped"


def write_report(path, outcomes):
    with open(path, "w", encoding="utf-8") as f:
        for name, (what, detail) in sorted(outcomes.items()):
            f.write(f"{what} {name}\n")
            if what == "fail":
                f.writelines(f"    {line}\n" for line in detail.splitlines())


def report(arg, outcomes):
    listed = expectations(os.path.join(HERE, "numba_expected.txt"))
    count = collections.Counter(what for what, _ in outcomes.values())
    bad = [(name, last_line(detail)) for name, (what, detail) in sorted(outcomes.items()) if what == "fail" and not reason_for(listed, name, detail)]
    write_report(arg.report, outcomes)
    ran = count["pass"] + count["fail"]
    print(f"{count['pass']} passed of {ran} ({100 * count['pass'] / max(ran, 1):.1f}%), {count['skip']} skipped by Numba itself, "
          f"{count['fail'] - len(bad)} failures known")
    idle = idle_lines(listed, outcomes)
    for name in idle:
        print(f"FAILED {name}: passes, though numba_expected.txt lists it: remove it there")
    for name, why in bad:
        print(f"FAILED {name}: {why}")
    return 1 if bad or idle or not ran else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build/main", help="the build directory")
    parser.add_argument("--all", action="store_true", help="every module, not only the bounded subset")
    parser.add_argument("--run", help="a command to put before the interpreter, in place of cricket-run --soft")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--timeout", type=int, default=120, help="seconds for one test")
    parser.add_argument("--module-timeout", type=int, default=900)
    parser.add_argument("--report", default="numba-report.txt")
    parser.add_argument("--log", default="numba-output.txt")
    parser.add_argument("modules", nargs="*", metavar="MODULE", help="cudapy.test_sm, or some tests of it: cudapy.test_sm:TestSharedMemory.test_shared_recarray")
    arg = parser.parse_args()
    python = os.environ.get("CKT_TEST_PYTHON")
    if not python:
        print("skipped: CKT_TEST_PYTHON names no interpreter")
        return 77
    tests = find_tests(python)
    if not tests:
        print(f"skipped: {python} has no numba-cuda with its tests")
        return 77
    launcher = shlex.split(arg.run) if arg.run else [os.path.join(arg.build, "client", "preload", "cricket-run"), "--soft"]
    suite = Suite(python, launcher, arg.log, arg.jobs, arg.timeout, arg.module_timeout)
    outcomes = {}
    for module, results, seconds in suite.run(arg.modules or (modules_of(tests) if arg.all else SUBSET)):
        outcomes.update(results)
        print(f"{module}: {counted(results)}, {seconds:.0f} s", flush=True)
    return report(arg, outcomes)


if __name__ == "__main__":
    sys.exit(main())
