#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""How ./run shows the progress of long steps: on a terminal, in a log, and nothing of short ones.  Its own functions, taken out of the file."""
import os
import re
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import shell  # noqa: E402

with open(os.path.join(shell.TOP, "run"), encoding="utf-8") as f:
    PART = re.search(r"(?ms)^with_progress\(\) \{.*?(?=^# -{20,} what must be there)", f.read()).group(0)
TELL = "tell() { printf '%s of 9' \"$1$2\"; }\n"


def bash(script, terminal=None):
    script = "set -euo pipefail\n" + PART + script
    if terminal:
        done = subprocess.run(["bash", "-c", script], stdout=subprocess.PIPE, stderr=terminal.secondary, text=True, check=False, timeout=60)
        return done.returncode, done.stdout, terminal.read()
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False, timeout=60)
    return done.returncode, done.stdout, done.stderr


class Progress(unittest.TestCase):
    def test_short(self):
        self.assertEqual(bash(TELL + "with_progress tell x -- echo done"), (0, "done\n", ""))

    def test_status(self):
        self.assertEqual(bash(TELL + "with_progress tell x -- sh -c 'exit 7' || exit $?")[0], 7)

    def test_log(self):
        """A line after five seconds."""
        status, out, err = bash(TELL + "with_progress tell x -- sleep 6")
        self.assertEqual((status, out), (0, ""))
        self.assertRegex(err, r"^   [56]x of 9\n$")

    def test_terminal(self):
        terminal = shell.Terminal(80)
        status, out, drawn = bash(TELL + "with_progress tell x -- sleep 1.2", terminal)
        self.assertEqual((status, out), (0, ""))
        self.assertRegex(drawn, "\r\x1b\\[K   [01]x of 9")
        self.assertTrue(drawn.endswith("\r\x1b[K"), repr(drawn))

    def test_what_is_told(self):
        log = "/proc/self/fd/0"
        for tell, text, wanted in (("tell_ninja 9", "[40/400] Compiling\n[50/450] Linking", "50 of 450 steps, 5 a second, 72 s left"),
                                   ("tell_ninja 9", "nothing", ""),
                                   ("tell_apt 10", "dlstatus:1:25.8:Retrieving file 1 of 9", "fetching: 25%, 30 s left"),
                                   ("tell_apt 10", "pmstatus:tmux:50.0:Unpacking\nSelecting package tmux", "installing: 50%, 10 s left"),
                                   ("tell_apt 10", "", "")):
            done = subprocess.run(["bash", "-c", f"set -euo pipefail\n{PART}\n{tell} {log}"], input=text, capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, wanted, ""), tell)


if __name__ == "__main__":
    unittest.main()
