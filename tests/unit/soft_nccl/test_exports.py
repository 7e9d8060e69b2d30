#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The soft GPU's NCCL exports every function of nccl.h under both of its names and nothing that is not NCCL's; compared with NVIDIA's own where that is there.

Arguments: nm, libnccl.so.2, the toolkit.
"""

import os
import re
import subprocess
import sys

# In NVIDIA's alone: parts of nccl_device.h that answer with structures, and what its own tools call.
NOT_HERE = re.compile(r"p?ncclTeam\w+|ncclResetDebugInitInternal")

# How it meets inside of a worker: rpc/nccl_meeting.h.
OWN = "ncclCricketMeetThrough"


def exports(nm, library):
    text = subprocess.run([nm, "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    return {line.split()[-1] for line in text.splitlines()}


def main(nm, library, toolkit):
    ours = exports(nm, library)
    with open(os.path.join(toolkit, "include", "nccl.h"), encoding="utf-8") as f:
        declared = set(re.findall(r"\b(p?nccl[A-Z]\w+)\s*\(", re.sub(r"/\*.*?\*/|//[^\n]*|^#[^\n]*", "", f.read(), flags=re.S | re.M)))
    bad = [f"{name} is declared and not exported" for name in sorted(declared - ours)]
    if OWN not in ours:
        bad.append(f"{OWN} is not exported")
    ours.discard(OWN)
    bad += [f"{name} is not NCCL's" for name in sorted(ours) if not re.fullmatch(r"p?nccl\w+", name)]
    genuine = os.path.join(toolkit, "lib", "libnccl.so.2")
    if os.path.exists(genuine):
        bad += [f"{name} is in one of NVIDIA's and ours only" for name in sorted(exports(nm, genuine) ^ ours) if not NOT_HERE.fullmatch(name)]
    if len(declared) < 80:
        bad.append(f"nccl.h declares only {len(declared)} functions")
    for line in bad:
        print(line, file=sys.stderr)
    return 1 if bad else 0


sys.exit(main(*sys.argv[1:]))
