#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Subjects of commits since the rule began: `dir: imperative subject`, 72 columns at most.

A subject is taken for imperative unless its first word has the form of something else (adds, added, adding, is).  Merges are left out, and
a clone without history has nothing to check.

Argument: the source directory.
"""

import re
import subprocess
import sys

# The last commit before the rule.
SINCE = "74caa43538954648c19c8635b3a1a8afc1e86116"
SUBJECT = re.compile(r"[\w./,+{} -]+: \S.*")
# Files of the top have no folder to name.
WITHOUT = re.compile(r"(README|NEWS|HACKING|CONTRIBUTING|SECURITY|Format|Put|Merge|Revert)\b")
VERBS_IN_S = {"pass", "press", "process", "discuss", "miss", "cross", "address", "focus", "guess", "access", "bypass", "dismiss", "express", "less"}
VERBS_IN_ED = {"embed", "need", "feed", "speed", "proceed", "exceed", "shed", "seed"}
VERBS_IN_ING = {"bring", "string", "ring", "ping", "sing"}
OTHERS = {"a", "an", "the", "is", "are", "was", "were", "no", "more", "new", "it", "this", "some"}


def wrong(subject):
    """What is wrong with a subject; None where nothing is."""
    if len(subject) > 72:
        return f"{len(subject)} columns, 72 at most"
    if not SUBJECT.fullmatch(subject):
        return None if WITHOUT.match(subject) else "no `dir: ` before it"
    word = re.match(r"[^\s,]*", subject.split(": ", 1)[1]).group().lower()
    if (word in OTHERS or word.endswith("s") and word not in VERBS_IN_S and not word.endswith("ss") or word.endswith("ed") and word not in VERBS_IN_ED
            or word.endswith("ing") and word not in VERBS_IN_ING):
        return f"'{word}' is no imperative"
    return None


def main(top):
    git = ["git", "-C", top]
    if subprocess.run([*git, "cat-file", "-e", SINCE + "^{commit}"], capture_output=True).returncode:
        print("the commit that the rule began with is not here: nothing to check")
        return False
    bad = 0
    for line in subprocess.run([*git, "log", "--no-merges", "--format=%h %s", SINCE + "..HEAD"], check=True, capture_output=True, text=True).stdout.splitlines():
        commit, _, subject = line.partition(" ")
        why = wrong(subject)
        if why:
            print(f"{commit} {subject}: {why}")
            bad += 1
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
