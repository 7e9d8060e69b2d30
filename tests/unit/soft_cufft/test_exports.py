#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The soft GPU's cuFFT exports what NVIDIA's does, under the same SONAME and version node; compared with the toolkit's own where it is there.

Arguments: nm, libcufft.so.12, libcufft.so.11, the toolkit.
"""

import glob
import os
import subprocess
import sys


def exports(nm, library):
    text = subprocess.run([nm, "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    return {line.split()[-1] for line in text.splitlines() if " A " not in line}


def main(nm, twelve, eleven, toolkit):
    bad = []
    ours = {"12": exports(nm, twelve), "11": exports(nm, eleven)}
    for major, names in ours.items():
        for name in names:
            function, _, version = name.partition("@@")
            if not function.startswith("cufft") or version != f"libcufft.so.{major}":
                bad.append(f"libcufft.so.{major} exports {name}")
        if len(names) < 55:
            bad.append(f"libcufft.so.{major} exports only {len(names)} functions")
    genuine = glob.glob(os.path.join(toolkit, "lib64", "libcufft.so.12")) + glob.glob(os.path.join(toolkit, "targets", "*", "lib", "libcufft.so.12"))
    if genuine:
        for name in sorted(exports(nm, genuine[0]) ^ ours["12"]):
            # Made for several GPUs of one process, in no header.
            if not name.startswith("cufftXtMakePlanGuru64"):
                bad.append(f"{name} is in one of NVIDIA's and ours only")
    for line in bad:
        print(line, file=sys.stderr)
    return 1 if bad else 0


sys.exit(main(*sys.argv[1:]))
