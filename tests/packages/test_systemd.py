#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The unit of cricket-server under a systemd that is the first process of a system of its own: docs/operations.md, Install.

	test_systemd.py --packages DIR --programs DIR --cache DIR

The system is debootstrap's, with the packages, in namespaces of its own for processes, mounts, cgroups and its name.  Its network is the host's,
which nothing here uses.  The commands are those of the document.  Exit status 77, and the reason, where that cannot be.
"""

import argparse
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import chroot  # noqa: E402
from test_debian import USER, fail, packages  # noqa: E402

TOP = os.path.realpath(os.path.join(os.path.dirname(os.path.realpath(__file__)), os.pardir, os.pardir))
sys.path.insert(0, os.path.join(TOP, "tests", "showcase"))
import documents  # noqa: E402

EXPOSURE = 2.0
# It takes two seconds.
START_S = 180
# As a container's engine makes it: systemd mounts the rest.
BOOT = """
set -e
mount --bind "$1" "$1"
cd "$1"
mount -t proc proc proc
mount -t tmpfs tmpfs sys
mkdir -p sys/fs/cgroup
mount -t cgroup2 none sys/fs/cgroup
for directory in run tmp dev; do mount -t tmpfs -o mode=755 tmpfs $directory; done
chmod 1777 tmp
for device in null zero full random urandom tty; do touch dev/$device; mount --bind /dev/$device dev/$device; done
mkdir dev/shm
mount -t tmpfs -o mode=1777 tmpfs dev/shm
ln -s /proc/self/fd dev/fd
hostname cricket-test
exec env -i container=test PATH=/usr/sbin:/usr/bin:/sbin:/bin chroot . /lib/systemd/systemd --unit=multi-user.target
"""


class Cgroup:
    """One of version 2, for this process and what it starts; it goes with all below it."""

    def __init__(self, directory):
        self.mount = os.path.join(directory, "cgroup2")
        os.mkdir(self.mount)
        if chroot.libc.mount(b"none", self.mount.encode(), b"cgroup2", 0, None):
            chroot.skip("needs cgroups of version 2")
        with open("/proc/self/cgroup", encoding="utf-8") as f:
            self.home = next(line.split("::", 1)[1].strip() for line in f if line.startswith("0::"))
        self.path = f"{self.mount}/cricket-systemd-{os.getpid()}"
        os.mkdir(self.path)
        self.enter(self.path)

    def enter(self, path):
        with open(f"{path}/cgroup.procs", "w", encoding="utf-8") as f:
            f.write(str(os.getpid()))

    def is_empty(self):
        with open(f"{self.path}/cgroup.events", encoding="utf-8") as f:
            return "populated 0" in f.read()

    def remove(self):
        self.enter(self.mount + self.home)
        chroot.wait_for("the end of the system", self.is_empty)
        for directory, _, _ in os.walk(self.path, topdown=False):
            with contextlib.suppress(OSError):
                os.rmdir(directory)


class Booted:
    """The system with systemd as its first process."""

    def __init__(self, root, log):
        namespaces = ["--mount", "--pid", "--fork", "--cgroup", "--uts", "--ipc", "--kill-child"]
        with open(log, "wb") as out:
            self.unshare = subprocess.Popen(["unshare", *namespaces, "sh", "-c", BOOT, "boot", root], stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        self.log = log
        self.pid = None
        chroot.wait_for("systemd", lambda: self.first() or self.unshare.poll() is not None)
        chroot.wait_for("the start of the system", lambda: self.said("systemctl", "is-system-running").strip() in ("running", "degraded") or
                        self.unshare.poll() is not None, START_S)
        if self.unshare.poll() is not None:
            with open(log, encoding="utf-8", errors="replace") as f:
                chroot.skip(f"systemd does not start here: {f.read()[-500:]}")

    def first(self):
        with contextlib.suppress(OSError), open(f"/proc/{self.unshare.pid}/task/{self.unshare.pid}/children", encoding="utf-8") as f:
            for pid in f.read().split():
                with open(f"/proc/{pid}/comm", encoding="utf-8") as name:
                    if name.read().strip() == "systemd":
                        self.pid = pid
        return self.pid

    def command(self, words, user=None):
        identity = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "--"] if user else []
        return ["nsenter", "-t", self.pid, "--mount", "--pid", "--cgroup", "--uts", "--ipc", "--root", "--wd", "env", "-i",
                "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8", "HOME=/tmp", *identity, *words]

    def said(self, *words, user=None):
        return subprocess.run(self.command(words, user), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                              timeout=120).stdout

    def must(self, *words, user=None):
        done = subprocess.run(self.command(words, user), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False,
                              timeout=120)
        if done.returncode:
            fail(f"{' '.join(words)}: exit status {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}{self.journal()[-3000:]}")
        return done.stdout

    def journal(self):
        return self.said("journalctl", "--no-pager", "--unit", "cricket-server")

    def shown(self, name):
        return self.must("systemctl", "show", "--value", "--property", name, "cricket-server").strip()

    def end(self):
        self.unshare.kill()
        self.unshare.wait()


def document_commands(name):
    """Of the block about systemd in the document."""
    with open(os.path.join(TOP, "docs", name), encoding="utf-8") as f:
        for block in documents.blocks(f.read()):
            if block.marker == "skip" and "test_systemd.py" in block.reason:
                return [command for command, _ in block.commands]
    return fail(f"docs/{name} has no block that this test runs")


def prepare(system, program, debs):
    """All that happens before the machine starts."""
    useradd, *rest = document_commands("operations.md")
    system.run("sh", "-c", useradd)
    for path in debs.values():
        shutil.copy(path, system.path("tmp"))
    system.run("dpkg", "-i", *(f"/tmp/{os.path.basename(path)}" for path in debs.values()))
    with open(system.path("etc/cricket/server.conf"), "a", encoding="utf-8") as f:
        f.write("driver = soft\n")
    shutil.copy(program, system.path("usr/local/bin/program"))
    return rest


class Life:
    def __init__(self, machine):
        self.machine = machine

    def sessions(self):
        said = self.machine.said("cricketctl", "--json", "ps", user=USER)
        return [session["session"] for session in json.loads(said)["sessions"]] if said.startswith("{") else None

    def begin(self, commands):
        for command in commands:
            self.machine.must("sh", "-c", command)
        if self.machine.said("systemctl", "is-active", "cricket-server").strip() != "active":
            fail(f"the unit is not active:\n{self.machine.journal()}")
        if self.machine.said("systemctl", "is-enabled", "cricket-server").strip() != "enabled":
            fail("the unit is not enabled")

    def exposure(self):
        found = re.search(r"Overall exposure level for \S+: ([0-9.]+)", self.machine.must("systemd-analyze", "security", "--no-pager", "cricket-server"))
        if not found or float(found.group(1)) > EXPOSURE:
            fail(f"systemd-analyze security: {found and found.group(1)}")
        return found.group(1)

    def session(self):
        """A program at its mid point."""
        self.expected = self.machine.must("cricket-run", "/usr/local/bin/program", user=USER)
        self.machine.must("install", "-d", "-o", USER, "/tmp/home")
        words = ["sh", "-c", "CKT_TEST_PHASE_FILE=/tmp/home/phase exec cricket-run /usr/local/bin/program >/tmp/home/out 2>&1"]
        self.program = subprocess.Popen(self.machine.command(words, USER), stdin=subprocess.DEVNULL)
        chroot.wait_for("the program's mid point", lambda: not self.machine.said("ls", "/tmp/home/phase.ready").startswith("ls:") or
                        self.program.poll() is not None)
        self.begun = self.sessions()
        if self.program.poll() is not None or len(self.begun) != 1:
            fail(f"the program ended early, or has not one session but {self.begun}:\n{self.machine.said('cat', '/tmp/home/out')}")

    def same_session(self, after, before):
        """Another process of the server has the session."""
        chroot.wait_for(f"another server, {after}", lambda: self.machine.shown("MainPID") not in ("0", before))
        chroot.wait_for(f"the session, {after}", lambda: self.sessions() == self.begun)
        return self.machine.shown("MainPID")

    def finish(self):
        self.machine.must("touch", "/tmp/home/phase.go", "/tmp/home/phase.go2", user=USER)
        code = self.program.wait(60)
        said = self.machine.said("cat", "/tmp/home/out")
        if code or said != self.expected:
            fail(f"the program: exit status {code}\n{said}")

    def fields(self):
        """The journal knows whose a line is."""
        def known():
            # journald writes them in its own time.
            lines = self.machine.must("journalctl", "--no-pager", "--output", "json", f"CRICKET_SESSION={self.begun[0]}").splitlines()
            return any(json.loads(line).get("CRICKET_OWNER") == f"uid:{USER}" for line in lines)

        chroot.wait_for("a line of the session with its owner in the journal", known)

    def stop(self):
        self.machine.must("systemctl", "stop", "cricket-server")
        if self.machine.shown("Result") != "success":
            fail(f"after systemctl stop: {self.machine.shown('Result')}\n{self.machine.journal()}")
        chroot.wait_for("the end of all processes of the server's user", lambda: not self.machine.said("ps", "-u", "cricket", "-o", "pid=").strip())


def live(machine, commands):
    life = Life(machine)
    life.begin(commands)
    exposure = life.exposure()
    life.session()
    first = machine.shown("MainPID")
    machine.must("systemctl", "reload", "cricket-server")
    second = life.same_session("after systemctl reload", first)
    machine.must("systemctl", "kill", "--kill-whom=main", "--signal=KILL", "cricket-server")
    life.same_session("after its server was killed", second)
    life.finish()
    life.fields()
    life.stop()
    return f"enabled, reloaded and killed with a session, stopped; exposure {exposure}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("--packages", "--programs", "--cache"):
        parser.add_argument(name, required=True)
    args = parser.parse_args()
    debs = packages(args.packages)
    program = os.path.join(args.programs, "saxpy-static")
    if not os.path.exists(program):
        chroot.skip("no program: it needs nvcc")
    chroot.own_mounts()
    with tempfile.TemporaryDirectory(prefix="cricket-systemd-", ignore_cleanup_errors=True) as directory:
        cgroup = Cgroup(directory)
        system = chroot.System(args.cache, os.path.join(directory, "root"), included="systemd,procps")
        machine = None
        try:
            commands = prepare(system, program, debs)
            version = system.run("dpkg-query", "-W", "-f=${Version}", "systemd")
            for name in ("run", "tmp", "dev", "proc"):
                chroot.libc.umount2(system.path(name).encode(), 2)
            machine = Booted(system.root, os.path.join(directory, "boot.log"))
            done = live(machine, commands)
        finally:
            if machine:
                machine.end()
            cgroup.remove()
            chroot.libc.umount2(cgroup.mount.encode(), 2)
    print(f"{done}; systemd {version}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
