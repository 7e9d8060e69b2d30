#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The static probes: those of docs/metrics.md are in the notes of both programs with as many arguments, and no others; the scripts for
bpftrace use no others.  Nothing is traced."""
import os
import re
import subprocess
import unittest

TOP = os.path.join(os.path.dirname(os.path.realpath(__file__)), os.pardir, os.pardir)
PROGRAMS = {"cricket-server": os.environ["CKT_TEST_SERVER"], "cricket-worker": os.environ["CKT_TEST_WORKER"]}


def read(*path):
    with open(os.path.join(TOP, *path), encoding="utf-8") as f:
        return f.read()


def documented():
    """(program, probe): number of arguments"""
    return {(program, probe): len(arguments.split(", ")) for program, probe, arguments in
            re.findall(r"^\| `(cricket-\w+)` \| `(\w+)` \| (.*) \|$", read("docs", "metrics.md"), re.MULTILINE)}


@unittest.skipUnless(os.path.exists("/usr/include/sys/sdt.h") or os.path.exists("/usr/include/x86_64-linux-gnu/sys/sdt.h"),
                     "no <sys/sdt.h> (Debian's package systemtap-sdt-dev)")
class Probes(unittest.TestCase):
    def test_notes(self):
        found = {}
        for program, path in PROGRAMS.items():
            notes = subprocess.run(["readelf", "--wide", "--notes", path], capture_output=True, text=True, check=True).stdout
            for name, arguments in re.findall(r"Provider: cricket\n\s+Name: (\w+)\n.*\n\s+Arguments:(.*)", notes):
                # The compiler may have put one in several places.  An argument is SIZE@PLACE.
                count = len(re.findall(r"-?\d+@", arguments))
                self.assertEqual(found.setdefault((program, name), count), count, name)
        self.assertEqual(found, documented())

    def test_scripts(self):
        names = {probe: arguments for (_, probe), arguments in documented().items()}
        used = set()
        for script in ("sessions.bt", "calls.bt"):
            for probe, body in re.findall(r"usdt:\*:cricket:(\w+)(.*?)(?=\nusdt:|\nEND|\nBEGIN|\Z)", read("share", script), re.DOTALL):
                used.add(probe)
                for argument in re.findall(r"arg(\d)", body):
                    self.assertLess(int(argument), names[probe], probe)
        self.assertEqual(used, set(names))


if __name__ == "__main__":
    unittest.main()
