# SPDX-License-Identifier: Apache-2.0
"""What a sample says natively and remotely: run it, and compare the words and the numbers of its output."""

import os
import re
import subprocess
import sys

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(here, "..", "runner"))
import runner  # noqa: E402


def run_sample(command, path, env, timeout=120):
    try:
        done = subprocess.run(command, cwd=path, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=timeout, check=False)
        return done.returncode, runner.text(done.stdout)
    except subprocess.TimeoutExpired:
        return -1, f"not done after {timeout} s"


NUMBER = re.compile(r"[0-9][0-9.,e+-]*")
# What stands behind a number that tells how fast something was, or when, or where in memory.
MEASURED = re.compile(r"\s*(\(?\[?(m|u|n|micro|milli)?(s|sec|secs|seconds?)\b|[KMGT]i?B(ytes)?/s|[KMGT]?(flops?|ops|elements|options|verts)\b|/s\b|[KMG]?Hz|fps|%)", re.I)


def shape(output):
    """Text without its numbers: times and rates differ from run to run."""
    return NUMBER.sub("#", output).split()


def computed(output):
    """The numbers of a text, None for those that are measured."""
    return [None if MEASURED.match(output, found.end()) else found.group() for found in NUMBER.finditer(output)]


def text_difference(native, again, remote):
    """What of a sample's output is not the same remotely, though two native runs have it so: "", or "words", or "numbers" and the first of them."""
    if shape(native) != shape(again):
        return ""
    if shape(native) != shape(remote):
        return "words"
    different = [(a, c) for a, b, c in zip(computed(native), computed(again), computed(remote)) if a is not None and a == b and c is not None and a != c]
    return "numbers, such as {} instead of {}".format(*reversed(different[0])) if different else ""


def samples_expected(file="samples_expected.txt", kinds=("words", "numbers")):
    """{sample: words or numbers} of a list beside this file."""
    listed = {}
    with open(os.path.join(here, file), encoding="utf-8") as f:
        for line in f:
            if line.strip() and not line.startswith("#"):
                name, what, reason = (part.strip() for part in line.split("|"))
                if what not in kinds or not reason:
                    sys.exit(f"{file}: {line.strip()}: not a sample, {' or '.join(kinds)}, and its reason")
                listed[name] = what
    return listed


def text_verdict(name, difference, listed, file="samples_expected.txt"):
    """The result for column text: 0 where it is the same or listed so, 1 where it is not, or listed and the same."""
    what = difference.split(",")[0]
    if what == listed.get(name, ""):
        return 0, ""
    if not what:
        return 1, f"FAIL {name}: its text is the same, though {file} lists it: remove it there"
    return 1, f"FAIL {name}: its text differs from native in {difference}"
