#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every source file of the product has its unit test.

The test of DIR/FILE.c is tests/unit/UNIT/test_FILE.c, where UNIT belongs to DIR by the table below, and

- it is built: tests/unit/UNIT/meson.build has 'test_FILE.c' or 'FILE' in quotes;
- it is about that file: somewhere in it stands DIR/FILE.c (in its head comment, say) or DIR/FILE.h (an #include);
- it asserts something.

A file without one stands in tests/unit/every_file.txt with the reason, one a line; a line that is no longer needed is an error too.  Other files
test_THEME.c beside them are welcome.

Argument: the source directory.
"""

import glob
import os
import re
import sys

UNIT = {
    "base": "base",
    "checkpoint": "worker",
    "checkpoint/format": "checkpoint",
    "checkpoint/freeze": "worker",
    "checkpoint/kernels": "worker",
    "checkpoint/load": "worker",
    "checkpoint/save": "worker",
    "client/conn": "client",
    "client/cuda/context": "client",
    "client/cuda/graph": "client",
    "client/cuda/memory": "client",
    "client/cuda/module": "client",
    "client/cuda/stream": "client",
    "client/cudart": "cudart",
    "client/libs": "libs",
    "client/libs/cublas": "libs",
    "client/libs/cublasLt": "cublaslt",
    "client/libs/cufft": "client_cufft",
    "client/libs/nccl": "nccl",
    "client/nvml": "nvml",
    "client/patch": "patch",
    "client/preload": "patch",
    "client/run": "patch",
    "client/trace": "trace",
    "ctl": "ctl",
    "ctl/certificate": "ctl",
    "ctl/client": "ctl",
    "ctl/doctor": "ctl",
    "ctl/drain": "ctl",
    "ctl/job": "ctl",
    "ctl/top": "ctl",
    "cudacommon": "cudacommon",
    "rpc": "rpc",
    "rpc/transport": "rpc",
    "server/daemon": "daemon",
    "server/daemon/audit": "daemon",
    "server/daemon/durable": "daemon",
    "server/daemon/image": "daemon",
    "server/daemon/metrics": "daemon",
    "server/daemon/nvml": "daemon",
    "server/daemon/peer": "daemon",
    "server/daemon/policy": "daemon",
    "server/daemon/session": "daemon",
    "server/daemon/tls": "daemon",
    "server/worker": "worker",
    "server/worker/cage": "worker",
    "server/worker/compiler": "worker",
    "server/worker/graph": "worker",
    "server/worker/ipc": "worker",
    "server/worker/libs": "worker",
    "server/worker/libs/code": "worker",
    "server/worker/libs/cublas": "worker",
    "server/worker/libs/cublasLt": "worker",
    "server/worker/libs/cufft": "worker",
    "server/worker/libs/inside": "worker",
    "server/worker/libs/nccl": "worker",
    "server/worker/memory": "worker",
    "server/worker/module": "worker",
    "server/worker/objects": "worker",
    "server/worker/session": "worker",
    "softgpu/context": "softgpu",
    "softgpu/libs/blas": "softlibs",
    "softgpu/libs/common": "softlibs",
    "softgpu/libs/cublas": "softlibs",
    "softgpu/libs/cublasLt": "softlibs",
    "softgpu/libs/cufft": "soft_cufft",
    "softgpu/libs/nccl": "soft_nccl",
    "softgpu/memory": "softgpu",
    "softgpu/module": "softgpu",
    "softgpu/ptx": "ptx",
    "softgpu/ptx/compiled": "ptx",
    "softgpu/ptx/execution": "ptx",
    "softgpu/ptx/front": "ptx",
    "softgpu/stream": "softgpu",
}
ASSERTION = re.compile(r"CU_(ASSERT|TEST|FAIL)|\b(IS|MUST|YES|NO|TEXT|HAS|OK|CHECK_RESULT|ASK|ROWS|REFUSED|unit_check\w*)\(")


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def missing(top, source):
    """What the test of a source file lacks; None when nothing."""
    folder, name = os.path.split(source[: -len(".c")])
    if folder not in UNIT:
        return f"{folder} has no directory under tests/unit"
    unit = os.path.join("tests", "unit", UNIT[folder])
    test = os.path.join(unit, f"test_{name}.c")
    if not os.path.exists(os.path.join(top, test)):
        return f"no {test}"
    if not re.search(rf"'(test_)?{name}(\.c)?'", read(os.path.join(top, unit, "meson.build"))):
        return f"{test} is not built"
    text = read(os.path.join(top, test))
    if not re.search(rf"(?<![\w/]){re.escape(folder)}/{name}\.[ch]\b", text):
        return f"{test} does not say that it is about {source}"
    if not ASSERTION.search(text):
        return f"{test} asserts nothing"
    return None


def main(top):
    bad = []
    sources = sorted(os.path.relpath(path, top) for layer in ("base", "cudacommon", "rpc", "client", "server", "softgpu", "checkpoint", "ctl")
                     for path in glob.glob(os.path.join(top, layer, "**", "*.c"), recursive=True))
    listed = {}
    for number, line in enumerate(read(os.path.join(top, "tests", "unit", "every_file.txt")).splitlines(), 1):
        path, _, reason = line.partition(" ")
        if not line or path == "#":
            continue
        if not reason.strip() or path in listed:
            bad.append(f"tests/unit/every_file.txt:{number}: {'twice' if path in listed else 'no reason'}: {line}")
        listed[path] = number
    owners = {}
    for source in sources:
        folder, name = os.path.split(source)
        other = owners.setdefault((UNIT.get(folder), name), source)
        if other != source:
            bad.append(f"{source} and {other} would have the same test")
        lack = missing(top, source)
        if lack and source not in listed:
            bad.append(f"{source}: {lack}")
        if not lack and source in listed:
            bad.append(f"tests/unit/every_file.txt:{listed[source]}: {source} has its test now")
    for path in listed.keys() - set(sources):
        bad.append(f"tests/unit/every_file.txt:{listed[path]}: there is no {path}")
    for line in bad:
        print(line)
    print(f"{len(sources) - len(listed)} of {len(sources)} source files have their unit test")
    return bool(bad) or not sources


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
