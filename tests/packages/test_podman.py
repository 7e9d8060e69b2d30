#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs in containers of a real podman, with the specification of cricketctl cdi, and a server outside: docs/packages.md, CDI.

	test_podman.py --packages DIR --programs DIR --cache DIR

The container's files are those of a system of debootstrap's, which has nothing of Cricket's and is not changed (--rootfs DIR:O); no image is
fetched.  podman's state and the specification lie in file systems of this process's own.  Exit status 77, and the reason, where podman cannot run.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import chroot  # noqa: E402

CGROUP2 = "cgroup2fs"
DEVICES = "9.0:2G,12.0:1G"


class Podman:
    """Commands of podman with a store of their own."""

    def __init__(self, directory, rootfs):
        self.options = ["--root", f"{directory}/store", "--runroot", "/run/podman", "--tmpdir", "/run/podman-tmp", "--storage-driver", "vfs",
                        "--cgroup-manager", "cgroupfs"]
        self.rootfs = rootfs
        # podman wants a million descriptors, which takes a capability that not every root has.
        self.limits = ["--ulimit=nofile=1024:1024", "--ulimit=nproc=4096:4096"]

    def run(self, *words, options=()):
        """(exit status, its stdout, its stderr)"""
        done = subprocess.run(["podman", *self.options, "run", "--rm", "--cgroups=disabled", "--network=none", *self.limits, *options, "--rootfs",
                               f"{self.rootfs}:O", *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=120)
        return done.returncode, done.stdout, done.stderr

    def must(self, *words, options=()):
        code, out, err = self.run(*words, options=options)
        if code:
            raise SystemExit(f"podman run {' '.join(words)}: exit status {code}\n{out[-2000:]}{err[-2000:]}")
        return out


def one_cgroup_tree():
    """crun refuses hosts with both kinds of cgroups; here it sees one."""
    kind = subprocess.run(["stat", "-f", "-c", "%T", "/sys/fs/cgroup"], capture_output=True, text=True, check=False).stdout.strip()
    if kind != CGROUP2 and chroot.libc.mount(b"none", b"/sys/fs/cgroup", b"cgroup2", 0, None):
        chroot.skip("podman needs cgroups of version 2")


def prepare(args):
    """The program, and the system of debootstrap's; skips where something is missing."""
    program = os.path.abspath(os.path.join(args.programs, "saxpy-static"))
    if not os.path.exists(program):
        chroot.skip("no program: it needs nvcc")
    if not shutil.which("podman"):
        chroot.skip("no podman (Debian's package podman)")
    if not any(name.startswith("cricket-server_") for name in os.listdir(args.packages)):
        chroot.skip("needs packages; ./run test packages makes them")
    chroot.own_mounts()
    one_cgroup_tree()
    chroot.must(chroot.libc.mount(b"tmpfs", b"/run", b"tmpfs", 0, b"mode=755"))
    return program, chroot.base(args.cache)


def unpack(packages, directory):
    """The newest of each package, as it would be installed."""
    for name in ("cricket-server", "cricket-client", "cricketctl", "cricket-soft-gpu"):
        found = [os.path.join(packages, each) for each in os.listdir(packages) if each.startswith(name + "_") and each.endswith(".deb")]
        subprocess.run(["dpkg-deb", "-x", max(found, key=os.path.getmtime), f"{directory}/host"], check=True)
    return f"{directory}/host/usr"


def check(podman, usr, sockets, program):
    environment = {**os.environ, "CRICKET_LIBDIR": f"{usr}/lib/cricket"}
    environment.pop("REMOTE_GPU_ADDRESS", None)
    server = f"unix:{sockets}/socket"
    # Before there is a specification, the device is none.
    code, _, err = podman.run("/bin/true", options=["--device=cricket/gpu=all"])
    assert code != 0 and "cricket/gpu=all" in err, (code, err)
    os.mkdir("/run/cdi")
    subprocess.run([f"{usr}/bin/cricketctl", "--server", server, "cdi", "-o", "/run/cdi/cricket.json"], check=True, env=environment)
    with open("/run/cdi/cricket.json", encoding="utf-8") as f:
        assert {each["name"] for each in json.load(f)["devices"]} == {"0", "1", "all"}
    expected = subprocess.run([f"{usr}/bin/cricket-run", "--server", server, program], capture_output=True, text=True, check=True, env=environment).stdout
    assert expected.strip()
    mount = f"--volume={program}:/program:ro"
    for device, visible in (("all", None), ("1", "1")):
        options = [f"--device=cricket/gpu={device}", mount]
        assert podman.must("/program", options=options) == expected
        variables = dict(line.split("=", 1) for line in podman.must("/usr/bin/env", options=options).splitlines() if "=" in line)
        assert variables["REMOTE_GPU_ADDRESS"] == "unix:/run/cricket/socket", variables
        assert variables.get("CUDA_VISIBLE_DEVICES") == visible, variables
    # A user without rights in the container, whose session is that user's.
    assert podman.must("/program", options=["--device=cricket/gpu=all", "--user=1234:1234", mount]) == expected
    # Also with no rights at all, and with files that cannot be written.
    assert podman.must("/program", options=["--device=cricket/gpu=0", "--cap-drop=all", "--read-only", mount]) == expected
    # What it is given, it cannot change.
    for path in ("/usr/lib/cricket/x", "/usr/bin/cricket-run", "/run/cricket/x"):
        code, _, err = podman.run("/bin/sh", "-c", f"echo >{path}", options=["--device=cricket/gpu=all"])
        assert code != 0 and "Read-only" in err, (path, code, err)
    assert podman.must("/bin/ls", "/run/cricket", options=["--device=cricket/gpu=all"]).split() == sorted(os.listdir(sockets))
    # A GPU that the server does not have, and a container that is given none.
    code, _, err = podman.run("/program", options=["--device=cricket/gpu=2", mount])
    assert code != 0 and "cricket/gpu=2" in err, (code, err)
    code, out, _ = podman.run("/program", options=[mount])
    assert code != 0 and out != expected, (code, out)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("--packages", "--programs", "--cache"):
        parser.add_argument(name, required=True)
    args = parser.parse_args()
    program, rootfs = prepare(args)
    with tempfile.TemporaryDirectory(prefix="cricket-podman-", ignore_cleanup_errors=True) as directory:
        os.chmod(directory, 0o755)
        podman = Podman(directory, rootfs)
        code, _, err = podman.run("/bin/true")
        if code:
            chroot.skip("podman cannot run a container here: " + err.strip())
        usr, sockets = unpack(args.packages, directory), os.path.join(directory, "sockets")
        os.mkdir(sockets)
        with open(f"{directory}/log", "wb") as log:
            server = subprocess.Popen([f"{usr}/bin/cricket-server", "--socket", f"{sockets}/socket", "--driver", "soft"], stdout=log, stderr=log,
                                      env={**os.environ, "CRICKET_SOFT_DEVICES": DEVICES, "STATE_DIRECTORY": directory, "CACHE_DIRECTORY": directory})
        try:
            chroot.wait_for("the server", lambda: os.path.exists(f"{sockets}/socket") or server.poll() is not None)
            if server.poll() is not None:
                raise SystemExit("the server ended: " + open(f"{directory}/log", encoding="utf-8", errors="replace").read())
            check(podman, usr, sockets, program)
        finally:
            server.terminate()
            try:
                server.wait(20)
            except subprocess.TimeoutExpired:
                server.kill()
    version = subprocess.run(["podman", "--version"], capture_output=True, text=True, check=True).stdout.strip()
    print(f"{version}: programs in containers by the specification, and refusals")
    return 0


if __name__ == "__main__":
    sys.exit(main())
