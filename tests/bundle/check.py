#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks a packed tree: what must be in it, no symbol above glibc 2.34, no library that a bare machine lacks, no path of this build,
every file hardened (position-independent, RELRO, bound at its start, stack protector, FORTIFY).

	check.py DIR	prints one line; exit status 1 and the list of what is wrong otherwise
"""

import os
import re
import subprocess
import sys

CEILING = (2, 34)
MUST = ("bin/cricket-server", "bin/cricketctl", "bin/cricket-run", "lib/cricket/libcricket-client.so", "lib/cricket/libcuda.so.1",
        "lib/cricket/libcudart.so.13", "lib/cricket/libnvidia-ml.so.1", "libexec/cricket/cricket-worker", "libexec/cricket/inside/libcuda.so.1", "libexec/cricket/soft/libcuda.so.1")  # noqa: E501
# Completions; zsh's are one file for all programs.
MUST += ("share/zsh/site-functions/_cricketctl",)
# For Prometheus, Grafana and bpftrace.
MUST += tuple(f"share/cricket/{name}" for name in ("alerts.yml", "prometheus.yml", "dashboard.json", "sessions.bt", "calls.bt"))
MUST += tuple(f"share/{place}" for program in ("cricket-run", "cricket-server", "cricketctl")
              for place in (f"bash-completion/completions/{program}", f"fish/vendor_completions.d/{program}.fish"))
# glibc's own, and ours.
ALLOWED = re.compile(r"^(libc|libm|libdl|libpthread|librt|ld-linux-x86-64|ld-linux-aarch64)\.so|^libcu(da|dart)\.so|^libnvidia-ml\.so|^libcricket-")
# Names that stay open until they are called: an older driver lacks functions that our runtime would call of a newer one.
LAZY = ("lib/cricket/libcudart.so.13",)
# Copies and formats of sizes that the compiler knows are checked in these at least.
FORTIFIED = ("bin/cricket-server", "bin/cricketctl", "bin/cricket-run", "libexec/cricket/cricket-worker", "lib/cricket/libcuda.so.1",
             "libexec/cricket/soft/libcuda.so.1")

# A worker that misbehaves (tests/escape), and other programs that only tests may start.
FOR_TESTS = ("cricket-worker-", "record_syscalls")

# The notice of what a file contains, and words of its licence.
BSD = r"Redistributions\s+in\s+binary\s+form"
NOTICES = (("bin/cricketctl", "share/doc/cricket/protobuf-c.copyright", BSD),
           ("bin/cricketctl", "share/doc/cricket/ncurses.copyright", r"Permission\s+is\s+hereby\s+granted"),
           ("bin/cricketctl", "share/doc/cricket/libtirpc.copyright", BSD),
           ("bin/cricketctl", "share/doc/cricket/zstd.copyright", BSD),
           ("bin/cricketctl", "share/doc/cricket/nettle.copyright", r"LGPL-3\+"),
           ("bin/cricketctl", "share/doc/cricket/Jansson.copyright", r"Permission\s+is\s+hereby\s+granted"),
           ("bin/cricketctl", "share/doc/cricket/OpenSSL.copyright", r"Apache\s+License"),
           ("bin/cricket-server", "share/doc/cricket/inih.copyright", BSD),
           ("lib/cricket/libcuda.so.1", "share/doc/cricket/LZ4.copyright", BSD),
           ("bin/cricket-server", "share/doc/cricket/OpenSSL.copyright", r"Apache\s+License"),
           ("bin/cricket-server", "share/doc/cricket/libmicrohttpd.copyright", r"Lesser\s+General\s+Public"),
           ("lib/cricket/libcuda.so.1", "share/doc/cricket/OpenSSL.copyright", r"Apache\s+License"),
           ("libexec/cricket/cricket-worker", "share/doc/cricket/libseccomp.copyright", r"Lesser\s+General\s+Public"),
           ("libexec/cricket/soft/libcricket-softblas.so", "share/doc/cricket/OpenBLAS.copyright", BSD))


def readelf(option, path):
    return subprocess.run(["readelf", "-W", option, path], capture_output=True, text=True, check=True).stdout


def check_file(root, path):
    name = os.path.relpath(path, root)
    with open(path, "rb") as f:
        if f.read(4) != b"\x7fELF":
            return
    # What the file needs of glibc, by version; what it defines itself carries no such version.
    for version in sorted(set(re.findall(r"GLIBC_(2\.[0-9.]+)", readelf("--version-info", path)))):
        if tuple(int(n) for n in version.split(".")[:2]) > CEILING:
            yield f"{name} needs GLIBC_{version}"
    dynamic = readelf("--dynamic", path)
    for needed in re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic):
        if not ALLOWED.match(needed.removeprefix("$ORIGIN/")):
            yield f"{name} needs {needed}"
    for runpath in re.findall(r"\(R(?:UN)?PATH\).*\[(.*)\]", dynamic):
        if any(not part.startswith("$ORIGIN") for part in runpath.split(":")):
            yield f"{name} looks for libraries in {runpath}"
    yield from not_hardened(name, path, dynamic)
    if re.search(r"\s\.(symtab|debug_info)\s", readelf("--sections", path)):
        yield f"{name} is not stripped"


def not_hardened(name, path, dynamic):
    if "Type:                              DYN" not in readelf("--file-header", path):
        yield f"{name} is not position-independent"
    if "GNU_RELRO" not in readelf("--program-headers", path):
        yield f"{name} has no RELRO"
    if "BIND_NOW" not in dynamic and name not in LAZY:
        yield f"{name} is not bound at its start (BIND_NOW)"
    symbols = readelf("--dyn-syms", path)
    # A library of a few calls has no function with an array.
    if name in FORTIFIED and "__stack_chk_fail" not in symbols:
        yield f"{name} has no stack protector"
    if name in FORTIFIED and not re.search(r"__\w+_chk@", symbols.replace("__stack_chk", "")):
        yield f"{name} was built without _FORTIFY_SOURCE"


def main():
    root = sys.argv[1]
    wrong = [f"{name} is not there" for name in MUST if not os.path.exists(os.path.join(root, name))]
    # A file with another's code in it comes with that code's notice.
    for file, notice, words in NOTICES:
        path = os.path.join(root, notice)
        text = open(path, encoding="utf-8").read() if os.path.exists(path) else ""
        if os.path.exists(os.path.join(root, file)) and not re.search(words, text):
            wrong.append(f"{notice} is not there, or is no notice for {file}")
    count = 0
    for directory, _, files in os.walk(root):
        for file in files:
            path = os.path.join(directory, file)
            if file.startswith(FOR_TESTS):
                wrong.append(f"{os.path.relpath(path, root)} is for tests alone")
            if not os.path.islink(path):
                wrong += check_file(root, path)
                count += 1
    if wrong:
        print(f"{root}:", *wrong, sep="\n  ", file=sys.stderr)
        return 1
    print(f"{root}: {count} files, nothing above GLIBC_{CEILING[0]}.{CEILING[1]}, all hardened")
    return 0


if __name__ == "__main__":
    sys.exit(main())
