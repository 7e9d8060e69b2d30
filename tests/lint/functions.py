#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A function of the product has at most 60 lines and 20 branches.

A longer one has two ideas in it. Branches are if, for, while, case, &&, || and ?:. clang-format puts a function's braces at the start of
their lines and nothing else there, so a brace in column 0 begins and ends a body. What is longer today stands in functions.txt with its
size; a line whose function became smaller must be lowered or removed, so that the list only shrinks.

Argument: the source directory.
"""

import os
import re
import subprocess
import sys

ROOMS = ("base", "rpc", "cudacommon", "client", "server", "checkpoint", "softgpu", "ctl")
MAX_LINES, MAX_BRANCHES = 60, 20
SKIPPED = re.compile(r"""/\*.*?\*/|//[^\n]*|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'""", re.S)
BRANCH = re.compile(r"\b(?:if|for|while|case)\b|&&|\|\||\?")
ATTRIBUTE = re.compile(r"__attribute__\s*\(\(.*?\)\)", re.S)


def blank(match):
    """Lines stay where they are."""
    return "\n" * match.group().count("\n")


def name_of(head):
    """The function that a head defines; HANDLER(add) defines add."""
    head = ATTRIBUTE.sub(" ", " ".join(head))
    found = re.search(r"(\w+)\s*\(\s*(\w*)", head)
    if not found:
        return None
    return found.group(2) if re.fullmatch(r"[A-Z_0-9]+", found.group(1)) else found.group(1)


def functions(text):
    """Each function: its name, the lines of its body, its branches."""
    lines = SKIPPED.sub(blank, text).split("\n")
    begin = None
    for at, line in enumerate(lines):
        if line == "{":
            begin = at
        elif line.startswith("}") and begin is not None:
            head = begin
            while head and lines[head - 1] and lines[head - 1][0] not in "}#" and not lines[head - 1].endswith((";", "\\")):
                head -= 1
            name = name_of(lines[head:begin])
            if name:
                yield name, at - begin - 1, len(BRANCH.findall("\n".join(lines[begin:at])))
            begin = None


def read_list(path):
    """(file, function) -> (lines, branches)."""
    listed = {}
    with open(path, encoding="utf-8") as f:
        for line in f:
            if line.strip() and not line.startswith("#"):
                file, name, lines, branches = line.split("#")[0].split()
                listed[file, name] = int(lines), int(branches)
    return listed


def check(files, listed):
    bad, count, left = [], 0, dict(listed)
    for path, text in sorted(files.items()):
        for name, lines, branches in functions(text):
            count += 1
            if lines <= MAX_LINES and branches <= MAX_BRANCHES:
                continue
            allowed = left.pop((path, name), None)
            size = f"{path}: {name} has {lines} lines and {branches} branches"
            if allowed is None:
                bad.append(f"{size}; the most are {MAX_LINES} and {MAX_BRANCHES}: divide it")
            elif lines > allowed[0] or branches > allowed[1]:
                bad.append(f"{size}; it had {allowed[0]} and {allowed[1]}: divide it")
            elif (lines, branches) != allowed:
                bad.append(f"{size}: lower its line in tests/lint/functions.txt from {allowed[0]} {allowed[1]}")
    return bad + [f"tests/lint/functions.txt: {name} in {path} is within the limits or gone: remove its line" for path, name in left], count


def main(top):
    files = {}
    for path in subprocess.run(["git", "-C", top, "ls-files", *ROOMS], check=True, capture_output=True, text=True).stdout.split():
        if path.endswith((".c", ".h")):
            with open(os.path.join(top, path), encoding="utf-8") as f:
                files[path] = f.read()
    bad, count = check(files, read_list(os.path.join(top, "tests", "lint", "functions.txt")))
    print("\n".join(bad + [f"{count} functions, {len(bad)} complaints"]))
    return bool(bad) or not count


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
