#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Include lines keep to the table of rooms (rooms.txt), no headers include each other in a circle, and a source includes the header beside it.

Argument: the source directory.
"""

import collections
import os
import re
import subprocess
import sys

INCLUDE = re.compile(r'^#\s*include "([^"]+)"', re.M)


def read_rooms(path):
    """The table, as room -> what it may include; and the exceptions, as (from, to) -> number of lines."""
    rooms, exceptions = {}, {}
    with open(path, encoding="utf-8") as f:
        for line in f.read().splitlines():
            words = line.split()
            if not words or line.startswith("#"):
                continue
            if words[0] == "except":
                if len(words) < 5:
                    raise ValueError(f"no reason: {line}")
                exceptions[words[1], words[2]] = int(words[3])
            else:
                room, _, allowed = line.partition(":")
                rooms[room.strip()] = allowed.split()
    return rooms, exceptions


def room_of(path, rooms):
    """The innermost room of the table that a file is in; None where it is in none."""
    while path:
        path = os.path.dirname(path)
        if path in rooms:
            return path
    return None


def allowed(path, target, rooms):
    room = room_of(path, rooms)
    return any(target == word or target.startswith(word + "/") for word in [room, *rooms[room]])


def circles(graph):
    """Groups of headers that reach each other (Tarjan)."""
    index, low, stack, found = {}, {}, [], []

    def visit(header):
        index[header] = low[header] = len(index)
        stack.append(header)
        for other in graph[header]:
            if other not in index:
                visit(other)
            if other in stack:
                low[header] = min(low[header], low[other])
        if low[header] == index[header]:
            group = stack[stack.index(header):]
            del stack[stack.index(header):]
            if len(group) > 1 or header in graph[header]:
                found.append(sorted(group))

    for header in graph:
        if header not in index:
            visit(header)
    return found


def check(top, files, rooms, exceptions):
    """The complaints, as sentences.  files: those of the product, with their include lines."""
    bad, used = [], collections.Counter()
    outermost = {room.split("/")[0] for room in rooms}
    for path, included in sorted(files.items()):
        if room_of(path, rooms) is None:
            bad.append(f"{path}: its room is not in tests/lint/rooms.txt")
            continue
        for target in included:
            if target.split("/")[0] not in outermost or allowed(path, target, rooms):
                continue
            of = [pair for pair in exceptions if path.startswith(pair[0] + "/") and target.startswith(pair[1] + "/")]
            if of:
                used[of[0]] += 1
            else:
                bad.append(f"{path}: {room_of(path, rooms)} may not include {target}")
    for pair, most in exceptions.items():
        if used[pair] != most:
            bad.append(f"tests/lint/rooms.txt: {pair[0]} includes {pair[1]} {used[pair]} times, not {most}")
    # So the compiler compares what the header says with what the source has.
    beside = {path: os.path.splitext(path)[0] + ".h" for path in files if path.endswith(".c")}
    bad += [f"{path}: does not include {header}, the header beside it" for path, header in beside.items() if header in files and header not in files[path]]
    graph = {path: [target for target in included if target in files] for path, included in files.items() if path.endswith(".h")}
    bad += [f"headers include each other: {' '.join(group)}" for group in circles(graph)]
    return bad


def main(top):
    rooms, exceptions = read_rooms(os.path.join(top, "tests", "lint", "rooms.txt"))
    outermost = sorted({room.split("/")[0] for room in rooms})
    files = {}
    for path in subprocess.run(["git", "-C", top, "ls-files", *outermost], check=True, capture_output=True, text=True).stdout.split():
        if path.endswith((".c", ".h")):
            with open(os.path.join(top, path), encoding="utf-8") as f:
                files[path] = INCLUDE.findall(f.read())
    bad = check(top, files, rooms, exceptions)
    print("\n".join(bad + [f"{len(files)} files, {len(bad)} complaints"]))
    return bool(bad) or not files


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
