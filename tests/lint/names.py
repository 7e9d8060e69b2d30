#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""No struct, union, enum or function of the product is defined twice, and functions with external linkage have our prefix.

Left out are: static functions, and tags without our prefix in a .c file, which are a file's own; functions with the API's names, which
both our drivers, or a shim and the soft GPU's library, must export; and the hooks that cudacommon/ declares and each driver defines.
What is twice today stands in names.txt with a reason; a line that is no longer needed is an error.

Argument: the source directory.
"""

import collections
import os
import re
import subprocess
import sys

ROOMS = ("base", "rpc", "cudacommon", "client", "server", "checkpoint", "softgpu", "ctl")
API = re.compile(r"(cu|cuda|__cuda|nvml|nccl|pnccl|cublas|cublasLt|cublasXt|cufft|nv|CU)[A-Z]\w*$|(main|unit_\w+)$")
COMMENT = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:[^"\\\n]|\\.)*"', re.S)
TAG = re.compile(r"\b(struct|union|enum)\s+(\w+)\s*\{")
FUNCTION = re.compile(r"^(?!static\b|typedef\b|else\b|return\b|extern\b)(?:[A-Za-z_][\w ]*[ *]+|[A-Z_]+ )(\w+)\([^;{}]*\)\s*(?:__attribute__\s*\(\(.*?\)\)\s*)?\n?\{", re.M)


# Files whose functions have the names that the C library's have, since programs call them.
C_LIBRARY = ("base/glibc.c", "client/preload/process_exit.c", "client/preload/system_calls.c")
NO_FUNCTIONS = {"compress()": "static behind a macro", "ElfW()": "a macro of <link.h>"}


def definitions(path, text):
    """What a file defines: ("struct x", ...) and ("x()", ...)."""
    text = COMMENT.sub(" ", text)
    for kind, tag in TAG.findall(text):
        if path.endswith(".h") or tag.startswith("ckt_"):
            yield f"{kind} {tag}"
    for name in FUNCTION.findall(text):
        if not API.match(name):
            yield f"{name}()"


def is_hook(name, paths, hooks):
    return name in hooks and [path.split("/")[0] for path in paths] == ["client", "softgpu"]


def check(files, listed):
    where = collections.defaultdict(list)
    for path, text in sorted(files.items()):
        for name in definitions(path, text):
            where[name].append(path)
    hooks = {f"{name}()" for path, text in files.items() if path.startswith("cudacommon/") and path.endswith(".h")
             for name in re.findall(r"\b(ckt_\w+)\(", COMMENT.sub(" ", text))}
    twice = {name: paths for name, paths in where.items() if len(paths) > 1 and not is_hook(name, paths, hooks)}
    bad = [f"{name} is defined in {' and '.join(paths)}" for name, paths in sorted(twice.items()) if name not in listed]
    bad += [f"tests/lint/names.txt: {name} is defined once" for name in sorted(listed - twice.keys())]
    bad += [f"{name} in {paths[0]}: external functions begin with ckt_" for name, paths in sorted(where.items())
            if name.endswith("()") and not name.startswith("ckt_") and paths[0] not in C_LIBRARY and name not in NO_FUNCTIONS]
    return bad, len(where)


def main(top):
    files = {}
    for path in subprocess.run(["git", "-C", top, "ls-files", *ROOMS], check=True, capture_output=True, text=True).stdout.split():
        if path.endswith((".c", ".h")):
            with open(os.path.join(top, path), encoding="utf-8") as f:
                files[path] = f.read()
    with open(os.path.join(top, "tests", "lint", "names.txt"), encoding="utf-8") as f:
        listed = {line.split(":")[0].strip() for line in f if line.strip() and not line.startswith("#")}
    bad, count = check(files, listed)
    print("\n".join(bad + [f"{count} names, {len(bad)} complaints"]))
    return bool(bad) or not count


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
