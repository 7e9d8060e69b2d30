#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""check_complete.py SOURCE: nothing that reads bytes of a peer is left without a fuzz target.

- tests/fuzz/fuzz_decode.c decodes every argument and every result of the hand-written protocols;
- every decoder (tests/coverage/decoders.txt) and every file below softgpu/ptx/front stands in tests/fuzz/targets.txt, with a target or with
  the reason why it has none, and nothing else does that is not there;
- every target of that file has its source, its place in meson.build and its corpus, and there are no others.
"""

import glob
import os
import re
import sys

ROOM_OF_DECODERS = "softgpu/ptx/front"


def read(*path):
    with open(os.path.join(sys.argv[1], *path), encoding="utf-8") as file:
        return file.read()


def check_messages():
    fuzzed = set(re.findall(r"\bPROTOCOL\((ckt_\w+)\)", read("tests", "fuzz", "fuzz_decode.c")))
    used = set()
    for name in ("session", "worker", "control"):
        for program in re.findall(r"^program \w+ \{(.*?)^\} = ", read("rpc", name + ".x"), re.M | re.S):
            for types in re.findall(r"^\t\t(\w+) \w+\((\w+)\) = \d+;", program, re.M):
                used.update(t for t in types if t.startswith("ckt_"))
    if len(used) < 40 or used - fuzzed:
        sys.exit("tests/fuzz/fuzz_decode.c does not decode %s" % ", ".join(sorted(used - fuzzed)))
    return len(used)


def lines_of(*path):
    return [line.strip() for line in read(*path).splitlines() if line.strip() and not line.startswith("#")]


def wrong_files(known, decoders):
    """known: {file: target or None}"""
    wrong = [f"{path} decodes bytes of a peer and stands in no line of tests/fuzz/targets.txt" for path in sorted(decoders - set(known))]
    wrong += [f"tests/fuzz/targets.txt names {path}, which does not exist" for path in known if not os.path.exists(os.path.join(sys.argv[1], path))]
    return wrong


def wrong_targets(targets):
    wrong = []
    building = read("tests", "fuzz", "meson.build")
    sources = {os.path.basename(path)[5:-2] for path in glob.glob(os.path.join(sys.argv[1], "tests", "fuzz", "fuzz_*.c"))}
    for name in sorted(sources | set(targets)):
        corpus = os.path.join(sys.argv[1], "tests", "fuzz", "corpus", name + ".tar.xz")
        wrong += [f"tests/fuzz/targets.txt has no line for fuzz_{name}.c"] if name not in targets else []
        wrong += [f"the target {name} has no source: tests/fuzz/fuzz_{name}.c"] if name not in sources else []
        wrong += [f"the target {name} is not built: tests/fuzz/meson.build"] if f"  '{name}': " not in building else []
        wrong += [f"the target {name} has no corpus: {os.path.relpath(corpus, sys.argv[1])}; tests/fuzz/fuzz.py keep makes it"] if not os.path.exists(corpus) else []
    return wrong


def main():
    messages = check_messages()
    known, targets = {}, []
    for line in lines_of("tests", "fuzz", "targets.txt"):
        words = line.split()
        if words[0] == "-":
            known[words[1]] = None
            if len(words) < 6:
                sys.exit(f"tests/fuzz/targets.txt: {words[1]} needs the reason why it has no target")
            continue
        if words[0].isdecimal():
            known[words[1].partition("@")[0]] = targets[-1]
        else:
            targets.append(words[0])
    decoders = set(lines_of("tests", "coverage", "decoders.txt"))
    decoders.update(os.path.relpath(path, sys.argv[1]) for path in glob.glob(os.path.join(sys.argv[1], ROOM_OF_DECODERS, "*.c")))
    wrong = wrong_files(known, decoders) + wrong_targets(targets)
    if wrong or len(decoders) < 20:
        sys.exit("\n".join(wrong or ["tests/coverage/decoders.txt has hardly a decoder"]))
    print("%d messages of the hand-written protocols and %d decoders are fuzzed, by %d targets" % (messages, sum(map(bool, known.values())), len(targets)))


main()
