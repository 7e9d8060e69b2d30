#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""No thread waits by the clock of the day, whose steps end a wait early or make it last for days: base/timed_wait.h has the other way.

	clocks.py DIR
"""

import os
import re
import subprocess
import sys

ROOMS = ("base/", "rpc/", "cudacommon/", "client/", "server/", "checkpoint/", "softgpu/", "ctl/")
WAITS = re.compile(r"\b(pthread_cond_timedwait|pthread_timedjoin_np|pthread_mutex_timedlock|pthread_rwlock_timed\w+|sem_timedwait|mtx_timedlock|cnd_timedwait)\s*\(")


def check(files):
    """files: {path: text}.  What is wrong, one line a wait."""
    return [f"{path}:{number}: {found[1]} waits by the clock of the day; see base/timed_wait.h" for path, text in sorted(files.items())
            for number, line in enumerate(text.splitlines(), 1) for found in WAITS.finditer(line)]


def main(top):
    files = {}
    for path in subprocess.run(["git", "-C", top, "ls-files"], check=True, capture_output=True, text=True).stdout.split("\n"):
        if path.startswith(ROOMS) and path.endswith((".c", ".h")) and os.path.isfile(os.path.join(top, path)):
            with open(os.path.join(top, path), encoding="utf-8") as f:
                files[path] = f.read()
    bad = check(files)
    print("\n".join(bad + [f"{len(files)} files, {len(bad)} complaints"]))
    return bool(bad) or not files


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
