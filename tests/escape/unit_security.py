#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The systemd unit: it is valid, systemd rates its exposure at 2.0 or less, and a server works under what it forbids.

	unit_security.py --build DIR --unit FILE --root FILE --older FILE

No systemd runs here, so a server is started as an ordinary user, with the unit's capabilities (none), no_new_privs, its filter of system calls,
a file system that is read-only but for the unit's directories, and a /tmp of its own.  A session on the soft GPU then computes, is saved and ends,
and the audit log tells of it.  Then the same with a server of root's, with the drop-in --root, its capabilities and --uid-range.  Exit status 0, 1, or 77 where there is no
systemd-analyze; without root or mount namespaces only the file is looked at.
"""
import argparse
import ctypes
import errno
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import escape  # noqa: E402
runner = escape.runner

THRESHOLD = 20  # tenths
SCMP_ACT_ALLOW = 0x7FFF0000
SCMP_ACT_ERRNO_EPERM = 0x00050000 | errno.EPERM
CLONE_NEWNS, MS_REC, MS_BIND, MS_PRIVATE, MS_NOSUID = 0x20000, 0x4000, 0x1000, 1 << 18, 2
SYS_MOUNT_SETATTR, AT_FDCWD, AT_RECURSIVE, MOUNT_ATTR_RDONLY = 442, -100, 0x8000, 1
PR_SET_NO_NEW_PRIVS, PR_CAPBSET_DROP = 38, 24

libc = ctypes.CDLL(None, use_errno=True)


def analyze(*words):
    return subprocess.run(["systemd-analyze", "--no-pager", *words], capture_output=True, text=True, check=False)


def settings(files):
    """[(key, value)] of all sections."""
    found = []
    for file in files:
        with open(file, encoding="utf-8") as f:
            found += re.findall(r"^(\w+)=(.*)$", f.read(), re.M)
    return found


# ---------------------------------------------------------------- the file

def rate(files, directory):
    """What is wrong with the unit and its drop-ins."""
    copy = os.path.join(directory, "cricket-server.service")
    text = ""
    for file in files:
        with open(file, encoding="utf-8") as f:
            text += re.sub(r"^(ExecStart|ExecReload)=\S+", r"\1=/bin/true", f.read(), flags=re.M)
    with open(copy, "w", encoding="utf-8") as f:
        f.write(re.sub(r"^Documentation=.*\n", "", text, flags=re.M))
    verified = analyze("verify", copy)
    # Before 254; the unit is meant for both.
    said = [line for line in verified.stderr.splitlines() if line and "Unknown key 'DelegateSubgroup'" not in line and "Unknown key name 'DelegateSubgroup'" not in line]
    if verified.returncode or said:
        yield f"systemd-analyze verify: {said}"
    rated = analyze("security", "--offline=true", f"--threshold={THRESHOLD}", copy)
    level = re.search(r"Overall exposure level.*: ([\d.]+)", rated.stdout)
    print(f"exposure {level.group(1) if level else 'unknown'}, at most {THRESHOLD / 10}")
    if rated.returncode or not level:
        yield f"systemd-analyze security: {rated.stdout[-200:]}{rated.stderr}"


# ---------------------------------------------------------------- a server under it

def expand(names):
    """The system calls of a list with groups."""
    found = set()
    for name in names:
        if name.startswith("@"):
            lines = analyze("syscall-filter", name).stdout.splitlines()[1:]
            found |= expand(line.strip() for line in lines if line.strip() and not line.strip().startswith("#"))
        else:
            found.add(name)
    return found


def allowed_calls(files):
    """As systemd reads the lines: the first says that it is a list of what is allowed."""
    allowed = set()
    for key, value in settings(files):
        if key == "SystemCallFilter":
            names = expand(value.lstrip("~").split())
            allowed = allowed - names if value.startswith("~") else allowed | names
    # systemd adds what it needs itself to start a program.
    return allowed | expand(["@default", "execve"])


def make_filter(names):
    seccomp = ctypes.CDLL("libseccomp.so.2")
    seccomp.seccomp_init.restype = ctypes.c_void_p
    seccomp.seccomp_rule_add.argtypes = [ctypes.c_void_p, ctypes.c_uint32, ctypes.c_int, ctypes.c_uint]
    seccomp.seccomp_load.argtypes = [ctypes.c_void_p]
    context = seccomp.seccomp_init(SCMP_ACT_ERRNO_EPERM)
    for name in sorted(names):
        number = seccomp.seccomp_syscall_resolve_name(name.encode())
        if number >= 0 and seccomp.seccomp_rule_add(context, SCMP_ACT_ALLOW, number, 0):
            raise runner.Failure(f"seccomp: no rule for {name}")
    return lambda: must(seccomp.seccomp_load(context), "seccomp_load")


def must(result, what):
    if result:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")


def set_read_only(path, read_only):
    attributes = (ctypes.c_uint64 * 4)(MOUNT_ATTR_RDONLY if read_only else 0, 0 if read_only else MOUNT_ATTR_RDONLY, 0, 0)
    must(libc.syscall(SYS_MOUNT_SETATTR, AT_FDCWD, path.encode(), AT_RECURSIVE, attributes, ctypes.c_size_t(ctypes.sizeof(attributes))), path)


def enter_mounts(writable):
    must(libc.unshare(CLONE_NEWNS), "unshare")
    must(libc.mount(None, b"/", None, MS_REC | MS_PRIVATE, None), "/")
    for path in ("/dev", *writable):
        must(libc.mount(path.encode(), path.encode(), None, MS_BIND | MS_REC, None), path)
    set_read_only("/", True)
    for path in ("/dev", *writable):
        set_read_only(path, False)
    must(libc.mount(b"tmpfs", b"/tmp", b"tmpfs", MS_NOSUID, b"mode=1777"), "/tmp")


def capabilities(files):
    """The numbers of those that the last line names."""
    names = [value for key, value in settings(files) if key == "CapabilityBoundingSet"][-1].split()
    return {int(analyze("capability", name).stdout.split()[-1]) for name in names}


def enter(user, writable, kept, load_filter):
    """The unit's restrictions, in a child that becomes the server; user: None for root."""
    enter_mounts(writable)
    for capability in set(range(64)) - kept:
        libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
    os.setgroups([])
    if user:
        os.setresgid(user.pw_gid, user.pw_gid, user.pw_gid)
        os.setresuid(user.pw_uid, user.pw_uid, user.pw_uid)
    os.umask(0o077)
    must(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
    load_filter()


class Test(escape.Test):
    def options(self):
        files = [self.arg.unit] if self.arg.as_user else [self.arg.unit, self.arg.root]
        load_filter, self.kept = make_filter(allowed_calls(files)), capabilities(files)
        user = self.user if self.arg.as_user else None
        writable = [self.path(name) for name in ("run", "state", "images", "tokens.d", "cache")]
        return {"preexec_fn": lambda: enter(user, writable, self.kept, load_filter)}

    def run(self):
        self.start()
        self.others_go_on("under the unit's restrictions")
        if not any(files for _, _, files in os.walk(self.path("images"))):
            self.problems.append("no image was written")
        with open(self.path("state/audit"), encoding="utf-8") as f:
            events = {json.loads(line)["event"] for line in f}
        if "session" not in events:
            self.problems.append(f"the audit log tells of {events}")
        with open(f"/proc/{self.server.process.pid}/status", encoding="utf-8") as f:
            status = f.read()
        if f"CapBnd:\t{sum(1 << number for number in self.kept):016x}" not in status or "Seccomp:\t2" not in status:
            self.problems.append("the server is not restricted")
        if not self.arg.as_user and "private /tmp and /dev/shm" not in self.log():
            self.problems.append("workers have no mounts of their own")
        if not self.arg.as_user and ", no network" not in self.log():
            self.problems.append("workers have no network namespace of their own")
        # A worker notes there that it may not choose its addresses.
        notes = [session["note"] for session in self.sessions() if session.get("note")]
        if notes:
            self.problems.append(f"workers say: {notes}")
        if "Permission denied" in self.log() or "not permitted" in self.log():
            self.problems.append(f"the server's log: {self.server.tail()}")


def run_server(arg, as_user):
    arg.bundle, arg.worker, arg.driver, arg.cage, arg.as_user, arg.uid_range = None, None, "soft", "on", as_user, not as_user
    arg.worker_network, arg.warm, arg.agreed = "auto", False, False
    with tempfile.TemporaryDirectory(prefix="ckt-", dir="/var/tmp") as programs, tempfile.TemporaryDirectory(prefix="ckt-", dir="/run") as directory:
        os.chmod(programs, 0o755)
        os.chmod(directory, 0o755)
        test = Test(arg, programs, directory)
        try:
            test.run()
        except (runner.Failure, OSError, subprocess.SubprocessError) as problem:
            test.problems.append(str(problem))
        finally:
            test.stop()
        return test.problems


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", required=True)
    parser.add_argument("--unit", required=True)
    parser.add_argument("--root", required=True)
    parser.add_argument("--older", required=True, help="the drop-in for systemd before 254")
    arg = parser.parse_args()
    if not shutil.which("systemd-analyze"):
        print("skipped: no systemd-analyze; apt-get install systemd")
        return 77
    with tempfile.TemporaryDirectory() as directory:
        problems = list(rate([arg.unit], directory)) + list(rate([arg.unit, arg.older], directory))
    if os.geteuid() == 0 and subprocess.run(["unshare", "-m", "true"], check=False, stderr=subprocess.DEVNULL).returncode == 0:
        problems += run_server(arg, True) + run_server(arg, False)
    else:
        print("no server was started: that needs root and mount namespaces")
    for problem in problems:
        print(problem)
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
