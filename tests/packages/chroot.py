# SPDX-License-Identifier: Apache-2.0
"""A small system of the build machine's own release or of another, made by debootstrap from the mirror that apt uses here, and used by chroot.

The first one is kept below build/ as a directory; tests copy it.  Everything is mounted in a mount namespace of the test's own.
CKT_PACKAGES_SUITE names another release for all tests, and CKT_PACKAGES_MIRROR the mirror that has it: docs/packages.md, Tests.
"""

import ctypes
import os
import shutil
import subprocess
import sys
import time

CLONE_NEWNS, MS_REC, MS_PRIVATE, MS_BIND = 0x20000, 0x4000, 1 << 18, 0x1000
SKIP = 77
# systemd itself runs in no chroot (test_systemd.py has one that runs); these are its parts that packages call.
INCLUDED = "systemd-standalone-sysusers,systemd-standalone-tmpfiles"
SCRIPTS = "/usr/share/debootstrap/scripts"

libc = ctypes.CDLL(None, use_errno=True)


def skip(why):
    print(f"skipped: {why}")
    sys.exit(SKIP)


def must(result):
    if result:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


def own_mounts():
    """From here on, nothing that this process mounts is seen elsewhere, and all of it goes with the process."""
    if os.geteuid():
        skip("needs root")
    if libc.unshare(CLONE_NEWNS):
        skip("needs mount namespaces")
    must(libc.mount(None, b"/", None, MS_REC | MS_PRIVATE, None))


def release():
    with open("/etc/os-release", encoding="utf-8") as f:
        values = dict(line.rstrip("\n").split("=", 1) for line in f if "=" in line)
    return values.get("VERSION_CODENAME", "").strip('"')


def apt_mirror():
    """Where apt of this machine takes its release from."""
    done = subprocess.run(["apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE) $(COMPONENT)", "Created-By: Packages"],
                          capture_output=True, text=True, check=False)
    for line in done.stdout.splitlines():
        uri, of, component = line.split(" ")
        if of == release() and component == "main":
            return uri
    return None


def wanted(suite):
    """(codename, mirror): what the test asks for, else the environment, else this machine's own."""
    given = os.environ.get("CKT_PACKAGES_SUITE")
    if suite or not given:
        return suite or release(), apt_mirror()
    return given, os.environ.get("CKT_PACKAGES_MIRROR") or apt_mirror()


def debootstrap_command(codename, target, uri, included):
    """An Ubuntu that is later than this debootstrap is made like the Ubuntus it knows, whose scripts are all one; universe has INCLUDED."""
    command = ["debootstrap", "--variant=minbase", f"--include={included}"]
    if os.path.exists(f"{SCRIPTS}/{codename}"):
        is_ubuntu, script = os.path.realpath(f"{SCRIPTS}/{codename}").endswith("/gutsy"), []
    else:
        is_ubuntu, script = True, ["gutsy"]
    return [*command, *(["--components=main,universe"] if is_ubuntu else []), codename, target, uri, *script]


def base(cache, suite=None, included=INCLUDED):
    """The kept system; made at the first call.  One with other packages is another one."""
    codename, uri = wanted(suite)
    kept = os.path.join(cache, codename if included == INCLUDED else f"{codename}-{included.replace(',', '-')}")
    if os.path.exists(os.path.join(kept, "usr/bin/dpkg")):
        return kept
    if not shutil.which("debootstrap") or not uri:
        skip("needs debootstrap, and apt with a mirror of this release")
    partial = kept + ".partial"
    shutil.rmtree(partial, ignore_errors=True)
    os.makedirs(cache, exist_ok=True)
    done = subprocess.run(debootstrap_command(codename, partial, uri, included), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        print(done.stdout[-2000:])
        shutil.rmtree(partial, ignore_errors=True)
        skip(f"debootstrap of {codename} failed; does the mirror have it?")
    # What dpkg does not need to know of.
    shutil.rmtree(os.path.join(partial, "var/cache/apt/archives"), ignore_errors=True)
    os.rename(partial, kept)
    return kept


class System:
    """A copy of the kept system, with /proc, /dev and /tmp."""

    def __init__(self, cache, root, suite=None, included=INCLUDED):
        self.root = root
        subprocess.run(["cp", "-a", "--reflink=auto", base(cache, suite, included), root], check=True)
        for name in ("proc", "dev", "tmp", "run"):
            os.makedirs(self.path(name), exist_ok=True)
        must(libc.mount(b"proc", self.path("proc").encode(), b"proc", 0, None))
        must(libc.mount(b"/dev", self.path("dev").encode(), None, MS_BIND | MS_REC, None))
        for name, mode in (("tmp", b"mode=1777"), ("run", b"mode=755")):
            must(libc.mount(b"tmpfs", self.path(name).encode(), b"tmpfs", 0, mode))
        self.children = []

    def path(self, name):
        return os.path.join(self.root, name.lstrip("/"))

    def command(self, words, user=None):
        identity = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "--"] if user else []
        return ["chroot", self.root, "env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8", "HOME=/tmp", "DEBIAN_FRONTEND=noninteractive",
                *identity, *words]

    def run(self, *words, user=None, check=True):
        done = subprocess.run(self.command(words, user), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=120)
        if check and done.returncode:
            raise SystemExit(f"{' '.join(words)}: exit status {done.returncode}\n{done.stdout[-3000:]}")
        return done.stdout

    def start(self, *words, user=None, log="log"):
        with open(self.path(f"tmp/{log}"), "ab") as out:
            child = subprocess.Popen(self.command(words, user), stdout=out, stderr=subprocess.STDOUT, start_new_session=True)
        self.children.append(child)
        return child

    def text(self, name):
        with open(self.path(name), encoding="utf-8", errors="replace") as f:
            return f.read()

    def release(self):
        """Its own name for itself, and the versions of what packages need from it."""
        name = next(line.split("=", 1)[1].strip('"') for line in self.text("etc/os-release").splitlines() if line.startswith("PRETTY_NAME="))
        versions = self.run("dpkg-query", "-W", "-f=${Package} ${Version}, ", "libc6", "systemd-standalone-sysusers", "dpkg", "apt").strip(", ")
        return f"{name} ({versions})"

    def files(self):
        """Everything that a package could leave."""
        found = set()
        for directory, names, files in os.walk(self.root):
            inside = os.path.relpath(directory, self.root)
            if inside == ".":
                names[:] = [name for name in names if name not in ("proc", "dev", "tmp", "run", "sys")]
            found.update(os.path.normpath(os.path.join(inside, name)) for name in [*names, *files])
        return found

    def stop(self):
        """Ends what runs in the system: all processes whose root it is."""
        for _ in range(50):
            left = [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if self.is_inside(pid)]
            if not left:
                break
            for pid in left:
                try:
                    os.kill(pid, 9)
                except ProcessLookupError:
                    pass
            time.sleep(0.1)
        for child in self.children:
            child.wait(10)

    def is_inside(self, pid):
        try:
            return os.readlink(f"/proc/{pid}/root") == os.path.realpath(self.root)
        except OSError:
            return False


def wait_for(what, condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise SystemExit(f"{what}: not within {seconds} s")
        time.sleep(0.05)
