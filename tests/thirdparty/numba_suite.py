#!/usr/bin/env python3
"""Runs the test suite that Numba's CUDA target brings along (numba-cuda from PyPI) on the soft GPU.

Every module runs in a process of its own, a few at a time, each with its own server (cricket-run --soft).  What fails must be
listed in numba_expected.txt with its reason: "test-id | reason", the id without "numba.cuda.tests."; a trailing * stands for all
that begin so.  A listed test that passes is told, an unlisted one that fails makes the run fail.

The interpreter is $CKT_TEST_PYTHON; without it, or without numba-cuda in it, the exit code is 77.
"""

import argparse
import concurrent.futures
import json
import os
import selectors
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


def interpreter():
    path = os.environ.get("CKT_TEST_PYTHON")
    if not path:
        print("skipped: CKT_TEST_PYTHON names no interpreter")
        sys.exit(77)
    find = "import numba_cuda, os; print(os.path.join(os.path.dirname(numba_cuda.__file__), 'numba', 'cuda', 'tests'))"
    done = subprocess.run([path, "-c", find], capture_output=True, text=True, check=False)
    if done.returncode or not os.path.isdir(done.stdout.strip()):
        print(f"skipped: {path} has no numba-cuda with its tests")
        sys.exit(77)
    return path, done.stdout.strip()


def modules_of(tests):
    names = []
    for directory in ("cudadrv", "cudapy", "doc_examples", "nocuda", "core", "nrt"):
        base = os.path.join(tests, directory)
        if os.path.isdir(base):
            names += [f"{directory}.{f[:-3]}" for f in sorted(os.listdir(base)) if f.startswith("test_") and f.endswith(".py")]
    return names


def run_once(arg, command, results, deadline):
    """One child until its end; answers the test at which it died, None where it ended well."""
    read, write = os.pipe()

    env = dict(os.environ, CKT_TEST_CHANNEL=str(write), PYTHONPATH=os.path.join(HERE, "site"))
    with open(os.devnull, "rb") as nothing, open(arg.log, "ab") as log:
        child = subprocess.Popen(command, stdin=nothing, stdout=log, stderr=log, env=env, pass_fds=(write,), start_new_session=True)
    os.close(write)
    current, ended, buffer, last = "(loading)", False, b"", time.monotonic()
    why = "ended without a word"
    with selectors.DefaultSelector() as selector:
        selector.register(read, selectors.EVENT_READ)
        while True:
            if not selector.select(1):
                if time.monotonic() - last > arg.timeout or time.monotonic() > deadline:
                    why = f"took longer than {arg.timeout} s"
                    break
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
                elif what != "tests" and results.get(name, ("", ""))[0] != "fail":
                    results[name] = (what, detail)
    os.close(read)
    if not ended:
        try:
            os.killpg(child.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    child.wait()
    if ended:
        return None
    results[current] = ("fail", f"{why} ({child.returncode})")
    return current


def run_module(arg, python, module):
    results = {}
    start = time.monotonic()
    deadline = start + arg.module_timeout
    head = [os.path.join(arg.build, "client", "patch", "cricket-run"), "--soft"] if arg.mode == "soft" else []
    if arg.run:
        head = arg.run.split()
    while True:
        done = [name for name in results if name != "(loading)"]
        died = run_once(arg, [*head, python, os.path.join(HERE, "numba_child.py"), PREFIX + module, *done], results, deadline)
        if died is None or died == "(loading)" or time.monotonic() > deadline:
            break
    if "(loading)" in results:
        results[PREFIX + module] = results.pop("(loading)")
    return module, results, time.monotonic() - start


def expectations():
    listed = {}
    with open(os.path.join(HERE, "numba_expected.txt"), encoding="utf-8") as f:
        for line in f:
            line = line.strip()
            if line and not line.startswith("#"):
                name, _, reason = line.partition("|")
                if not reason.strip():
                    sys.exit(f"numba_expected.txt: no reason for {name}")
                listed[name.strip()] = reason.strip()
    return listed


def is_listed(listed, name):
    return name in listed or any(key.endswith("*") and name.startswith(key[:-1]) for key in listed)


def report(arg, all_results):
    listed = expectations()
    count = {"pass": 0, "fail": 0, "skip": 0}
    bad, gone, lines = [], [], []
    for results in all_results:
        for name, (what, detail) in sorted(results.items()):
            short = name.removeprefix(PREFIX)
            count[what] += 1
            lines.append(f"{what} {short}\n")
            if what == "fail":
                lines.append("".join(f"    {line}\n" for line in detail.splitlines()))
                if not is_listed(listed, short):
                    bad.append((short, detail.strip().splitlines()[-1] if detail.strip() else ""))
            elif what == "pass" and short in listed:
                gone.append(short)
    with open(arg.report, "w", encoding="utf-8") as f:
        f.writelines(lines)
    ran = count["pass"] + count["fail"]
    print(f"{count['pass']} passed of {ran} ({100 * count['pass'] / max(ran, 1):.1f}%), {count['skip']} skipped by Numba itself, "
          f"{count['fail'] - len(bad)} failures known")
    for name in gone:
        print(f"passes, though numba_expected.txt lists it: {name}")
    for name, why in bad:
        print(f"FAILED {name}: {why}")
    return 1 if bad or not ran else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build/main", help="the build directory")
    parser.add_argument("--all", action="store_true", help="every module, not only the bounded subset")
    parser.add_argument("--mode", choices=["soft", "native"], default="soft", help="native: whatever GPU is there")
    parser.add_argument("--run", help="a command to put before the interpreter, in place of cricket-run --soft")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--timeout", type=int, default=120, help="seconds for one test")
    parser.add_argument("--module-timeout", type=int, default=900)
    parser.add_argument("--report", default="numba-report.txt")
    parser.add_argument("--log", default="numba-output.txt")
    parser.add_argument("modules", nargs="*")
    arg = parser.parse_args()
    python, tests = interpreter()
    modules = arg.modules or (modules_of(tests) if arg.all else SUBSET)
    open(arg.log, "wb").close()
    gathered = []
    with concurrent.futures.ThreadPoolExecutor(arg.jobs) as pool:
        for future in concurrent.futures.as_completed([pool.submit(run_module, arg, python, m) for m in modules]):
            module, results, seconds = future.result()
            gathered.append(results)
            states = [what for what, _ in results.values()]
            print(f"{module}: {states.count('pass')} passed, {states.count('fail')} failed, {states.count('skip')} skipped, {seconds:.0f} s", flush=True)
    sys.exit(report(arg, gathered))


main()
