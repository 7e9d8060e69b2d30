#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the committed PTX of the worker's kernels from their CUDA C.

	gen_ptx.py --nvcc NVCC [--check]

Writes each X.ptx beside X.cu.  With --check it writes nothing and says what differs.  The build needs neither nvcc nor this script.

nvcc compiles for the oldest GPU that it knows.  The kernels use nothing that is newer than PTX ISA 6.4 and sm_70, so that is what the files declare:
a driver refuses PTX of a later ISA or GPU than its own.  ptxas, which stands beside nvcc, refuses an instruction that the declared ISA or GPU lacks.
The second line of a file names the hash of its code and the compiler, so that a changed source is noticed without nvcc, and texts of two compilers
are not compared.
"""
import argparse
import hashlib
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
LICENCE = "// SPDX-License-Identifier: Apache-2.0"
KERNELS = ("digest", "hash", "scan")
OLDEST = "75"
DECLARED = {".version": ".version 6.4", ".target": ".target sm_70"}


def source_hash(name):
    """Of the code alone: comments and spaces may change."""
    with open(os.path.join(HERE, name + ".cu"), encoding="utf-8") as source:
        code = re.sub(r"/\*.*?\*/|//[^\n]*", " ", source.read(), flags=re.S)
    return hashlib.sha256(" ".join(code.split()).encode()).hexdigest()


def compiler(nvcc):
    text = subprocess.run([nvcc, "--version"], check=True, capture_output=True, text=True).stdout
    return "nvcc " + re.search(r"V(\d+\.\d+\.\d+)", text).group(1)


def compiled(nvcc, name):
    """The lines of the PTX, without comments."""
    with tempfile.TemporaryDirectory() as directory:
        output = os.path.join(directory, name + ".ptx")
        subprocess.run([nvcc, "-ptx", f"-arch=compute_{OLDEST}", os.path.join(HERE, name + ".cu"), "-o", output], check=True)
        with open(output, encoding="ascii") as text:
            lines = [re.sub(r"\s*//.*", "", line).rstrip() for line in text]
    return [DECLARED.get(line.split(" ")[0], line) for line in lines if line]


def assembled(nvcc, path, target):
    ptxas = os.path.join(os.path.dirname(os.path.realpath(nvcc)), "ptxas")
    subprocess.run([ptxas, f"-arch=sm_{target}", path, "-o", os.devnull], check=True)


def second_line(name, made_by):
    return f"// {name}.cu {source_hash(name)}, {made_by}: made by gen_ptx.py"


def entries(lines):
    """The declarations of the kernels: names and types of parameters."""
    return re.findall(r"\.entry (\w+)\(([^)]*)\)", "".join(lines))


def check(nvcc, name, committed):
    """What is wrong with the committed file, or nothing."""
    if committed[:1] != [LICENCE] or committed[1].split(",")[0] != second_line(name, "").split(",")[0]:
        return "it was not made from this source; run checkpoint/kernels/gen_ptx.py --nvcc NVCC"
    if not nvcc:
        return None
    lines = compiled(nvcc, name)
    if committed[1] != second_line(name, compiler(nvcc)):
        print(f"{name}.ptx: of another compiler than {compiler(nvcc)}; only the kernel's parameters are compared")
        lines, committed = entries(lines), entries(committed)
    else:
        committed = committed[2:]
    return None if lines == committed else "nvcc makes other PTX; run checkpoint/kernels/gen_ptx.py --nvcc NVCC"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nvcc", help="without it, --check compares the hashes of the sources only")
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    if not arguments.nvcc and not arguments.check:
        parser.error("which compiler? give --nvcc")
    bad = 0
    for name in KERNELS:
        path = os.path.join(HERE, name + ".ptx")
        if not arguments.check:
            with open(path, "w", encoding="ascii") as output:
                output.write("\n".join([LICENCE, second_line(name, compiler(arguments.nvcc))] + compiled(arguments.nvcc, name)) + "\n")
        if arguments.nvcc:
            assembled(arguments.nvcc, path, OLDEST)
        if arguments.check:
            with open(path, encoding="ascii") as text:
                wrong = check(arguments.nvcc, name, text.read().splitlines())
            if wrong:
                print(f"{name}.ptx: {wrong}", file=sys.stderr)
                bad = 1
    return bad


if __name__ == "__main__":
    sys.exit(main())
