#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The .deb packages as users meet them: installed in a system of debootstrap's, used, upgraded while a session runs, removed and purged.

	test_debian.py --packages DIR --programs DIR --cache DIR [--suite CODENAME]

--suite names another release than this machine's.
The version before is the same build with a lower number.  No systemd runs in a chroot, so the server is started by hand as its unit would.
Exit status 77 where the packages are not built, or no such system can be made.
"""

import argparse
import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import chroot  # noqa: E402

BEFORE = "0.0.9"
USER = "1000"
NAMES = ("cricket-server", "cricket-client", "cricketctl", "cricket-soft-gpu", "cricket-dev")
# dpkg, apt and the files of users change with every package; dpkg keeps logs.
MAY_STAY = ("etc/passwd", "etc/group", "etc/shadow", "etc/gshadow", "etc/.pwd.lock", "var/log/", "var/lib/dpkg/", "var/lib/apt/", "var/cache/", "var/lib/systemd")


def fail(words):
    raise SystemExit(f"failed: {words}")


def packages(directory):
    found = {}
    for name in NAMES:
        paths = sorted(glob.glob(os.path.join(directory, f"{name}_[0-9]*.deb")), key=os.path.getmtime)
        if not paths:
            chroot.skip(f"no {name} in {directory}; ./run test packages builds it")
        found[name] = paths[-1]
    return found


def with_version(path, version, out, scratch):
    """The same package with another version, also in its dependencies."""
    tree = os.path.join(scratch, os.path.basename(path))
    subprocess.run(["dpkg-deb", "-R", path, tree], check=True)
    control = os.path.join(tree, "DEBIAN", "control")
    with open(control, encoding="utf-8") as f:
        text = f.read()
    now = next(line.split(" ")[1] for line in text.splitlines() if line.startswith("Version: "))
    with open(control, "w", encoding="utf-8") as f:
        f.write(text.replace(f"Version: {now}", f"Version: {version}").replace(f"(= {now})", f"(= {version})"))
    result = os.path.join(out, os.path.basename(path).replace(f"_{now}_", f"_{version}_"))
    subprocess.run(["dpkg-deb", "--root-owner-group", "-Znone", "-b", tree, result], check=True, stdout=subprocess.DEVNULL)
    return result


class Life:
    def __init__(self, system, before, now):
        self.system, self.before, self.now = system, before, now
        self.server = self.program = None

    def inside(self, paths):
        """The packages where dpkg in the system finds them."""
        for path in paths.values():
            shutil.copy(path, self.system.path("tmp"))
        return [f"/tmp/{os.path.basename(path)}" for path in paths.values()]

    def start_server(self):
        """As the unit does: its user, its directory, its configuration."""
        socket = self.system.path("run/cricket/socket")
        if not os.path.isdir(os.path.dirname(socket)):
            self.system.run("install", "-d", "-o", "cricket", "-g", "cricket", "/run/cricket")
            self.system.run("install", "-d", "-o", "cricket", "-g", "cricket", "-m", "700", "/var/lib/cricket")
        log = self.system.path("tmp/server.log")
        self.server = self.system.start("cricket-server", "--config", "/etc/cricket/server.conf", "--driver", "soft", user="cricket", log="server.log")
        chroot.wait_for("the server", lambda: self.sessions() is not None or self.server.poll() is not None)
        if self.server.poll() is not None:
            fail(f"the server ended:\n{self.system.text(log[len(self.system.root):])}")

    def sessions(self):
        said = self.system.run("cricketctl", "--json", "ps", user=USER, check=False)
        return [session["session"] for session in json.loads(said)["sessions"]] if said.startswith("{") else None

    def apt(self, *words):
        """As docs/packages.md says.  What a package depends on must be there: nothing is fetched."""
        return self.system.run("apt-get", "--yes", "--no-install-recommends", "-o", "Dir::Etc::SourceList=/dev/null", "-o", "Dir::Etc::SourceParts=/dev/null",
                               *words)

    def install(self):
        self.apt("install", *self.inside(self.before))
        for name in NAMES:
            if self.version(name) != BEFORE:
                fail(f"{name} is not installed as {BEFORE}")
        self.system.run("getent", "passwd", "cricket")
        mode = os.stat(self.system.path("etc/cricket/tls")).st_mode & 0o777
        if mode != 0o750:
            fail(f"/etc/cricket/tls has mode {mode:o}")
        if "cricket-soft-gpu" not in self.system.run("dpkg", "-S", "/usr/libexec/cricket/soft/libcuda.so.1"):
            fail("the soft GPU is not its package's")

    def version(self, name):
        return self.system.run("dpkg-query", "-W", "-f=${Version}", name, check=False)

    def use(self):
        """What a user types first: a program on the soft GPU, without a server."""
        self.expected = self.system.run("cricket-run", "--soft", "/tmp/program", user=USER)
        if not self.expected.strip():
            fail("the program printed nothing")
        self.system.run("cricket-run", "--version", user=USER)

    def begin_session(self):
        """A program on the server that stops at its mid point."""
        self.start_server()
        point = "/tmp/home/phase"
        self.program = self.system.start("env", f"CKT_TEST_PHASE_FILE={point}", "cricket-run", "/tmp/program", user=USER, log="program.log")
        chroot.wait_for("the program's mid point", lambda: os.path.exists(self.system.path(point + ".ready")) or self.program.poll() is not None)
        if self.program.poll() is not None:
            fail(f"the program ended early:\n{self.system.text('tmp/program.log')}")
        self.session = self.sessions()
        if len(self.session) != 1:
            fail(f"not one session but {self.session}")

    def upgrade(self):
        with open(self.system.path("etc/cricket/server.conf"), "a", encoding="utf-8") as f:
            f.write("grace = 11\n")
        self.apt("install", *self.inside(self.now))
        if self.version("cricket-server") == BEFORE:
            fail("cricket-server is not upgraded")
        if "grace = 11" not in self.system.text("etc/cricket/server.conf"):
            fail("the administrator's configuration is lost")
        if self.server.poll() is not None or self.program.poll() is not None:
            fail("the upgrade ended the server or the program")
        if self.sessions() != self.session:
            fail(f"after the upgrade the sessions are {self.sessions()}")

    def take_over(self):
        """The new server finds the old one's session, as after systemctl kill --signal=KILL."""
        os.kill(self.server_process(), 9)
        self.server.wait(10)
        self.start_server()
        chroot.wait_for("the session at the new server", lambda: self.sessions() == self.session)

    def server_process(self):
        """setpriv and env are replaced by what they start, and chroot is too."""
        return self.server.pid

    def finish(self):
        for name in ("phase.go", "phase.go2"):
            with open(self.system.path(f"tmp/home/{name}"), "w", encoding="utf-8"):
                pass
        if self.program.wait(60):
            fail(f"the program failed:\n{self.system.text('tmp/program.log')}")
        if self.system.text("tmp/program.log") != self.expected:
            fail(f"the program printed something else:\n{self.system.text('tmp/program.log')}")
        os.kill(self.server_process(), 15)
        self.server.wait(30)

    def verify(self):
        changed = [line for line in self.system.run("dpkg", "-V", *NAMES, check=False).splitlines() if not line.endswith(" /etc/cricket/server.conf")]
        if changed:
            fail(f"dpkg -V: {changed}")

    def remove(self, at_first):
        self.apt("remove", *NAMES)
        if os.path.exists(self.system.path("usr/bin/cricketctl")) or not os.path.exists(self.system.path("etc/cricket/server.conf")):
            fail("a removal takes programs, and leaves the configuration")
        kept = self.system.path("var/lib/cricket/images/kept")
        os.makedirs(kept, exist_ok=True)
        self.system.run("dpkg", "-P", *NAMES)
        for name in ("passwd", "group", "shadow"):
            if "cricket:" in self.system.text("etc/" + name):
                fail(f"after the purge /etc/{name} has the user still")
        left = sorted(path for path in self.system.files() - at_first if not path.startswith(MAY_STAY))
        gone = sorted(path for path in at_first - self.system.files() if not path.startswith(MAY_STAY))
        if left or gone:
            fail(f"after the purge these are left: {left}, and these are gone: {gone}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("--packages", "--programs", "--cache"):
        parser.add_argument(name, required=True)
    parser.add_argument("--suite")
    args = parser.parse_args()
    if args.suite == chroot.wanted(None)[0]:
        chroot.skip(f"packages-debian tests {args.suite} already")
    now = packages(args.packages)
    program = os.path.join(args.programs, "saxpy-static")
    if not os.path.exists(program):
        chroot.skip("no program: it needs nvcc")
    chroot.own_mounts()
    with tempfile.TemporaryDirectory(prefix="cricket-debian-", ignore_cleanup_errors=True) as directory:
        before = {name: with_version(path, BEFORE, directory, directory) for name, path in now.items()}
        system = chroot.System(args.cache, os.path.join(directory, "root"), args.suite)
        try:
            shutil.copy(program, system.path("tmp/program"))
            system.run("install", "-d", "-o", USER, "/tmp/home")
            at_first, release = system.files(), system.release()
            life = Life(system, before, now)
            life.install()
            life.use()
            life.begin_session()
            life.upgrade()
            life.take_over()
            life.finish()
            life.verify()
            life.remove(at_first)
        finally:
            system.stop()
            for name in ("run", "tmp", "dev", "proc"):
                chroot.libc.umount2(system.path(name).encode(), 2)
    print(f"{release}: installed, used, upgraded with a session, taken over, removed and purged")
    return 0


if __name__ == "__main__":
    sys.exit(main())
