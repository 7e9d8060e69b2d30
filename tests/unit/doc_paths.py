#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every file and folder that a document names exists.

A name is a path in backticks whose first part is a folder of the tree, or PATH.md after `docs/`.  Names with capital letters in place
of a part (`rpc/api/NAME.api`), with a star or with braces are patterns: a star must match something, the others are not looked at.

Argument: the source directory.
"""

import glob
import os
import re
import sys

NAMED = re.compile(r"`((?:[\w.-]+/)+[\w.*-]*)`")
PATTERN = re.compile(r"[A-Z]{2,}|[{}$]")
# What a build or a user makes.
ELSEWHERE = ("build/", "lib/", "libexec/", "bin/", "share/", "usr/", "opt/")


def missing(top, text):
    tops = {name for name in os.listdir(top) if os.path.isdir(os.path.join(top, name))}
    for name in NAMED.findall(text):
        if name.split("/")[0] not in tops or name.startswith(ELSEWHERE) or PATTERN.search(re.sub(r"README|HACKING|ARCHITECTURE", "", name)):
            continue
        if not glob.glob(os.path.join(top, name)):
            yield name


def main(top):
    documents = sorted(glob.glob(os.path.join(top, "*.md")) + glob.glob(os.path.join(top, "docs", "*.md")))
    bad = 0
    for path in documents:
        if os.path.basename(path) == "NEWS.md":    # what was true of a release stays
            continue
        with open(path, encoding="utf-8") as f:
            for name in missing(top, f.read()):
                print(f"{os.path.relpath(path, top)}: there is no {name}")
                bad += 1
    return bool(bad) or not documents


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
