#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Both scripts of share/ for bpftrace, run by a real one: on a server with sessions, and on a worker that executes calls.

Exit status 77, and the reason, where bpftrace is missing or may not trace."""
import ctypes
import os
import re
import shutil
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from whole import HERE, Whole, runner  # noqa: E402

SHARE = os.path.join(HERE, os.pardir, os.pardir, "share")
SITE = re.compile(r"Provider: cricket\n\s+Name: (\w+)\n\s+Location: 0x([0-9a-f]+)")
NOP, BREAKPOINT = 0x90, 0xcc


def own_tracefs():
    """bpftrace 0.17 detaches through tracefs; it is mounted for this process alone, where it can be."""
    libc = ctypes.CDLL(None)
    if libc.unshare(0x20000) == 0 and libc.mount(None, b"/", None, 0x4000 | 1 << 18, None) == 0:
        libc.mount(b"tracefs", b"/sys/kernel/tracing", b"tracefs", 0, None)


def why_not():
    if not shutil.which("bpftrace"):
        return "no bpftrace (Debian's package bpftrace)"
    if os.geteuid():
        return "bpftrace needs root"
    if not any(os.path.exists("/usr/include/%ssys/sdt.h" % directory) for directory in ("", "x86_64-linux-gnu/")):
        return "no <sys/sdt.h> (Debian's package systemtap-sdt-dev), so that the programs have no probes"
    # BEGIN is a probe in bpftrace itself, as ours are in our programs.
    done = subprocess.run(["bpftrace", "-e", 'BEGIN { printf("works\\n"); exit(); }'], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=60, check=False)
    return None if "works" in done.stdout else "bpftrace may not trace here: " + (done.stdout + done.stderr).strip()


class Bpftrace(Whole):
    def sites(self, pid):
        """{address in the process: probe}"""
        path = "/proc/%d/exe" % pid
        notes = subprocess.run(["readelf", "--wide", "--notes", path], capture_output=True, text=True, check=True).stdout
        with open("/proc/%d/maps" % pid, encoding="utf-8") as f:
            mapped = [line.split() for line in f]
        (base,) = [int(words[0].split("-")[0], 16) for words in mapped if words[2] == "00000000" and words[4] == str(os.stat(path).st_ino)]
        found = {base + int(place, 16): name for name, place in SITE.findall(notes)}
        self.assertTrue(found)
        return found

    def traced(self, pid, sites):
        """The probes whose instruction the kernel has replaced."""
        with open("/proc/%d/mem" % pid, "rb") as f:
            found = {}
            for address, name in sites.items():
                f.seek(address)
                (found[address, name],) = f.read(1)
        self.assertLessEqual(set(found.values()), {NOP, BREAKPOINT})
        return {key for key, value in found.items() if value == BREAKPOINT}

    def trace(self, script, pid, *probes):
        """bpftrace with the script, once each of its probes is in the process."""
        sites = {address: name for address, name in self.sites(pid).items() if name in probes}
        self.assertEqual(set(sites.values()), set(probes))
        self.out = os.path.join(self.dir, script + ".out")
        with open(self.out, "wb") as out:
            process = subprocess.Popen(["bpftrace", "-B", "line", "-p", str(pid), os.path.join(SHARE, script)], stdin=subprocess.DEVNULL, stdout=out,
                                       stderr=subprocess.STDOUT)
        self.addCleanup(lambda: (process.kill(), process.wait()))

        def all_there():
            self.assertIsNone(process.poll(), self.said())
            return len(self.traced(pid, sites)) == len(sites)

        self.wait(all_there)
        return process

    def said(self):
        with open(self.out, encoding="utf-8", errors="replace") as f:
            return f.read()

    def finish_trace(self, process):
        """Its text; it prints maps at its end."""
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(60), 0, self.said())
        return self.said()

    def test_sessions(self):
        limits = os.path.join(self.dir, "limits")
        with open(limits, "w", encoding="utf-8") as f:
            f.write("job=p share=50\n")
        server = self.server("first", "--max-sessions", "1", "--limits", limits)
        server.address = "unix:" + server.socket
        # bpftrace has a buffer for each processor, and reads one after another: lines of several may change places.
        os.sched_setaffinity(server.process.pid, {min(os.sched_getaffinity(0))})
        tracer = self.trace("sessions.bt", server.process.pid, "session_event", "checkpoint", "decision", "turn")
        program, session = self.start(server, CRICKET_JOB="p")
        refused = subprocess.run([self.tree.tool("cricket-run"), "--server", server.address, os.environ["CKT_TEST_PROGRAM"]], stdin=subprocess.DEVNULL,
                                 capture_output=True, timeout=60, check=False, env={**runner.clean_environment(), "HOME": self.home})
        self.assertNotEqual(refused.returncode, 0)
        self.ctl(server, "checkpoint", session, os.path.join(self.dir, "image"))
        self.finish(program)
        self.wait(lambda: re.search(r"ended +%d" % os.getuid(), self.said()))
        text = self.finish_trace(tracer)
        self.assertRegex(text, r"TIME +SESSION +EVENT +OWNER +DETAIL")
        lines = re.findall(r"(?m)^\d\d:\d\d:\d\d (\S+) +(\S+) +(.*)$", text)
        events = [event for who, event, _ in lines if who == session]
        self.assertEqual(events[0], "started", text)
        self.assertEqual(events[-1], "ended", text)
        (image,) = [detail for who, event, detail in lines if (who, event) == (session, "image")]
        written, size, stopped = map(int, re.fullmatch(r"written=(\d) bytes=(\d+) stopped_us=(\d+)", image).groups())
        self.assertEqual(written, 1)
        self.assertGreater(size, 0)
        self.assertGreater(stopped, 0)
        (decision,) = [detail for who, event, detail in lines if (who, event) == ("-", "session")]
        self.assertRegex(decision, r"^answer=\d ")
        self.assertRegex(text, r"(?m)^@refused\[session\]: 1$")
        self.assertRegex(text, r"(?m)^@turns\[0, given\]: [1-9]\d*$")
        for name in ("stopped_us", r"length_us\[0\]"):
            self.assertRegex(text, r"(?m)^@%s: \n(?:[\[(].*\n)+" % name)

    def test_calls(self):
        server = self.server("first")
        server.address = "unix:" + server.socket
        program, session = self.start(server, program=os.environ["CKT_TEST_ERRORS"])
        (worker,) = server.workers()
        tracer = self.trace("calls.bt", worker, "call_begin", "call_end", "freeze_begin", "freeze_end")
        self.ctl(server, "checkpoint", session, os.path.join(self.dir, "image"))
        self.finish(program)
        self.wait(lambda: not server.workers())
        text = self.finish_trace(tracer)
        self.assertRegex(text, r"(?m)^stood still for [1-9]\d* us$")
        calls = {name: int(count) for name, count in re.findall(r"(?m)^@calls\[(\w+)\]: (\d+)$", text)}
        # Out of memory, and then an allocation that there is room for.
        self.assertGreaterEqual(calls.get("mem_alloc", 0), 2, text)
        self.assertRegex(text, r"(?m)^@failed\[mem_alloc, 2\]: 1$")
        self.assertRegex(text, r"(?m)^@us\[mem_alloc\]: \n(?:[\[(].*\n)+")
        # What it keeps for itself is not printed.
        self.assertNotRegex(text, "@begun|@frozen")


if __name__ == "__main__":
    reason = why_not()
    if reason:
        print("the scripts for bpftrace are not run: " + reason)
        sys.exit(77)
    own_tracefs()
    unittest.main(verbosity=2)
