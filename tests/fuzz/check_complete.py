#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""check_complete.py SOURCE: the fuzzer decodes every argument and every result of the hand-written protocols."""
import os
import re
import sys


def read(*path):
    with open(os.path.join(sys.argv[1], *path), encoding="utf-8") as file:
        return file.read()


def main():
    fuzzed = set(re.findall(r"\bPROTOCOL\((ckt_\w+)\)", read("tests", "fuzz", "fuzz_decode.c")))
    used = set()
    for name in ("session", "worker", "control"):
        for program in re.findall(r"^program \w+ \{(.*?)^\} = ", read("rpc", name + ".x"), re.M | re.S):
            for types in re.findall(r"^\t\t(\w+) \w+\((\w+)\) = \d+;", program, re.M):
                used.update(t for t in types if t.startswith("ckt_"))
    if len(used) < 40 or used - fuzzed:
        sys.exit("tests/fuzz/fuzz_decode.c does not decode %s" % ", ".join(sorted(used - fuzzed)))
    print("%d messages of the hand-written protocols are fuzzed" % len(used))


main()
