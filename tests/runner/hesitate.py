#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs tests while their processes stand still at any point, as on a busy machine, so that a test which fails by chance fails soon.

    tests/runner/hesitate.py -- meson test -C build/main --suite server

Every process that the command starts, whoever its parent becomes, is stopped now and then for up to --longest seconds.  Each stop wakes all threads
of its process, so a test that counts wake-ups (transport) may fail by that alone.  So may one that stops a process itself, which stands still just
then: that one goes on (test_never_comes of group-return and group-ranks)."""
import argparse
import contextlib
import ctypes
import os
import random
import signal
import subprocess
import sys
import time

PR_SET_CHILD_SUBREAPER = 36
TICK_S = 0.02
# These start tests and are none.
NEVER = {"meson", "ninja"}


def processes():
    """{parent: [(pid, name, state)]} of all that live."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
            before, after = f.read().rsplit(")", 1)
            state, parent = after.split()[:2]
            found.setdefault(int(parent), []).append((int(pid), before.split("(", 1)[1], state))
    return found


def descendants(command, only):
    """The pids that may stand still: a process that a test has stopped itself may not.  Reaps orphans, which are ours."""
    children, left, found = processes(), [os.getpid()], []
    for pid, _, state in children.get(os.getpid(), []):
        if state == "Z" and pid != command:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
    while left:
        for pid, name, state in children.get(left.pop(), []):
            left.append(pid)
            if state in "SRD" and name not in NEVER and only in name:
                found.append(pid)
    return found


def send(pid, number):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--longest", type=float, default=1.0, metavar="SECONDS")
    parser.add_argument("--share", type=float, default=0.05, help="of its time that a process stands still")
    parser.add_argument("--only", default="", metavar="TEXT", help="processes whose name has this in it")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()
    chance = random.Random(options.seed)
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    command = subprocess.Popen(options.command)
    stopped = {}
    stops = 0
    try:
        while command.poll() is None:
            now = time.monotonic()
            for pid in [pid for pid, end in stopped.items() if end <= now]:
                send(pid, signal.SIGCONT)
                del stopped[pid]
            # So often that the share holds, with stops of half the longest on average.
            often = options.share * TICK_S / (options.longest / 2)
            for pid in descendants(command.pid, options.only):
                if pid not in stopped and chance.random() < often:
                    send(pid, signal.SIGSTOP)
                    stopped[pid] = now + chance.uniform(0, options.longest)
                    stops += 1
            time.sleep(TICK_S)
    finally:
        for pid in stopped:
            send(pid, signal.SIGCONT)
    print(f"hesitate: {stops} stops", file=sys.stderr)
    return command.returncode


if __name__ == "__main__":
    sys.exit(main())
