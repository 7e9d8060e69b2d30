#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Packs the tree of ./run bundle and the Python package as one wheel.  The same input gives the same bytes.

	SITE-PACKAGES/cricket_gpu/	the Python package: paths, versions, and the plugin of pytest
		bin/, lib/, libexec/, share/	the tree, in which the executables look for the libraries and the worker
	PREFIX/bin/			launchers of the executables (launcher.sh)

The tree is not below PREFIX itself: pip would lose a part of it with --target, and leave empty directories when it removes it.

A wheel holds no links.  The loader would take a copy of libcuda.so.1 for a second driver, so libcuda.so becomes an empty library that needs
libcuda.so.1; other links become copies.
"""

import argparse
import base64
import hashlib
import os
import re
import subprocess
import sys
import time
import zipfile

PLATFORM = "manylinux_2_34_x86_64"
TAG = f"py3-none-{PLATFORM}"
SIZE_MAX = 25 << 20
# More than an empty library takes.
STUB_MAX = 16 << 10
SCRIPTS = ("cricket-run", "cricketctl", "cricket-server")
# The systemd unit belongs to a machine and not to an environment of Python.
LEFT_OUT = ("lib/systemd/",)
# What all executables and libraries of Cricket hold.
OURS = re.compile(rb"(?i)cricket|ckt_")
# What NVIDIA's own files say of themselves: licences and notices of headers, libraries, compilers and their samples.
GENUINE = (
    rb"Copyright (?:\([cC]\)|\xc2\xa9|\xa9)?[ 0-9,-]*NVIDIA",
    rb"(?i:SPDX-FileCopyrightText:[^\n]*NVIDIA)",
    rb"(?i:LicenseRef-NvidiaProprietary)",
    rb"NOTICE TO LICENSEE",
    rb"NVIDIA[^\n]{0,60}All rights reserved",
    rb"(?i:End User License Agreement)",
    rb"/dvs/p4/|Build cuda_\d+\.\d+|nvbuild",
)

METADATA = """Metadata-Version: 2.1
Name: cricket-gpu
Version: {version}
Summary: Runs CUDA programs without a GPU: on a GPU node, or on a CUDA driver for the CPU
License: Apache-2.0
Keywords: CUDA,GPU,remote,testing,pytest
Classifier: Environment :: GPU
Classifier: Framework :: Pytest
Classifier: License :: OSI Approved :: Apache Software License
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: Python :: 3
License-File: LICENSE
Requires-Python: >=3.10
Provides-Extra: numba
Requires-Dist: numba-cuda>=0.30; extra == "numba"
Requires-Dist: cuda-bindings==13.*; extra == "numba"
Requires-Dist: nvidia-nvvm==13.*; extra == "numba"
Requires-Dist: pytest>=7; extra == "numba"
Description-Content-Type: text/markdown

"""
WHEEL = f"Wheel-Version: 1.0\nGenerator: cricket\nRoot-Is-Purelib: false\nTag: {TAG}\n"
ENTRY_POINTS = "[pytest11]\ncricket_gpu = cricket_gpu.pytest_plugin\n"


def fail(text):
    sys.exit(f"make_wheel: {text}")


def read(path):
    with open(path, "rb") as f:
        return f.read()


def stub(directory, name, needed, library_directory):
    """An empty library that needs `needed` in its own directory."""
    path = os.path.join(directory, name)
    command = ["gcc", "-shared", "-nostdlib", "-o", path, "-Wl,-soname," + name, "-Wl,--build-id=none", "-Wl,--no-as-needed", "-Wl,-z,relro,-z,now",
               "-Wl,--allow-shlib-undefined", "-Wl,--unresolved-symbols=ignore-all", "-Wl,-rpath,$ORIGIN", "-Wl,--enable-new-dtags", "-s", "-L" + library_directory, "-l:" + needed]
    subprocess.run(command, check=True)
    return read(path)


def collect(arguments):
    """Yields (name in the wheel, bytes, is executable)."""
    launcher = read(os.path.join(os.path.dirname(os.path.abspath(__file__)), "launcher.sh")).replace(b"@VERSION@", arguments.version.encode())
    for name in sorted(os.listdir(arguments.package)):
        if name.endswith(".py"):
            content = read(os.path.join(arguments.package, name))
            yield f"cricket_gpu/{name}", content.replace(b"@VERSION@", arguments.version.encode()), False
    for directory, _, files in os.walk(arguments.tree):
        for file in files:
            path = os.path.join(directory, file)
            name = os.path.relpath(path, arguments.tree)
            executable = os.access(path, os.X_OK)
            if name.startswith(LEFT_OUT):
                continue
            if name.startswith("bin/"):
                if file not in SCRIPTS:
                    fail(f"{name}: unknown program; add it to SCRIPTS")
                yield f"cricket_gpu-{arguments.version}.data/scripts/{file}", launcher.replace(b"@NAME@", file.encode()), True
            if os.path.islink(path) and file.endswith(".so"):
                yield f"cricket_gpu/{name}", stub(arguments.stubs, file, os.readlink(path), directory), True
            else:
                yield f"cricket_gpu/{name}", read(path), executable


def genuine(name, content):
    """What says that a file is NVIDIA's, or None."""
    for pattern in GENUINE:
        found = re.search(pattern, content)
        if found:
            return f"{name} holds {found.group()[:60]!r}, as files of NVIDIA's do: it must not be in the wheel"
    # A library may say nothing of its owner: libcudart.so does not.
    if content.startswith(b"\x7fELF"):
        return None if OURS.search(content) or len(content) < STUB_MAX else f"{name} is an executable that is not Cricket's: it must not be in the wheel"
    try:
        content.decode()
    except UnicodeDecodeError:
        return f"{name} is neither text nor an executable of Cricket's: it must not be in the wheel"
    return None


def digest(content):
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def write(path, files, epoch):
    # The format knows no time before 1980.
    moment = time.gmtime(max(epoch, 315532800))[:6]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as wheel:
        for name, content, executable in files:
            entry = zipfile.ZipInfo(name, moment)
            entry.create_system = 3
            entry.external_attr = (0o100755 if executable else 0o100644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, content)


def main():
    parser = argparse.ArgumentParser(description="Packs a tree and a Python package as a wheel.")
    for option in ("tree", "package", "license", "readme", "version", "stubs", "out"):
        parser.add_argument(f"--{option}", required=True)
    arguments = parser.parse_args()
    files = sorted(collect(arguments))
    bad = [line for name, content, _ in files if (line := genuine(name, content))]
    if bad:
        fail("\n  ".join(["", *bad]))
    info = f"cricket_gpu-{arguments.version}.dist-info"
    # What installers read last stands last.
    files += [(f"{info}/LICENSE", read(arguments.license), False),
              (f"{info}/METADATA", METADATA.format(version=arguments.version).encode() + read(arguments.readme), False),
              (f"{info}/WHEEL", WHEEL.encode(), False),
              (f"{info}/entry_points.txt", ENTRY_POINTS.encode(), False)]
    record = "".join(f"{name},{digest(content)},{len(content)}\n" for name, content, _ in files) + f"{info}/RECORD,,\n"
    files.append((f"{info}/RECORD", record.encode(), False))
    path = os.path.join(arguments.out, f"cricket_gpu-{arguments.version}-{TAG}.whl")
    write(path + ".new", files, int(os.environ.get("SOURCE_DATE_EPOCH", "0")))
    size = os.path.getsize(path + ".new")
    if size > SIZE_MAX:
        os.unlink(path + ".new")
        fail(f"the wheel has {size >> 10} KiB; {SIZE_MAX >> 10} KiB are allowed")
    os.rename(path + ".new", path)
    print(f"{path}: {size >> 10} KiB, {len(files)} files, none of NVIDIA's")


if __name__ == "__main__":
    main()
