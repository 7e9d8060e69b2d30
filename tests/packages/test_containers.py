#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The images of packaging/containers, built from the .deb packages on a system of debootstrap's, and the specification of cricketctl cdi.

	test_containers.py --packages DIR --programs DIR --ctl FILE --cache DIR

A server runs in its image.  A program runs in the client's image, and then in an image without anything of Cricket's, with the mounts and variables
that the specification asks for, as a container engine would apply them.  buildah runs them by chroot, because CI may have no cgroups for podman;
no image is fetched.  Exit status 77 where that is not possible.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, HERE)
import chroot  # noqa: E402

FILES = os.path.join(HERE, "..", "..", "packaging", "containers")
BASE = "localhost/cricket-test-base"


class Buildah:
    def __init__(self, directory):
        self.options = ["--storage-driver", "vfs", "--root", f"{directory}/storage", "--runroot", f"{directory}/run"]
        self.environment = {**os.environ, "BUILDAH_ISOLATION": "chroot", "TMPDIR": directory}
        self.environment.pop("REMOTE_GPU_ADDRESS", None)

    def words(self, *words):
        return ["buildah", *self.options, *words]

    def run(self, *words):
        done = subprocess.run(self.words(*words), capture_output=True, text=True, check=False, env=self.environment, timeout=120)
        if done.returncode:
            raise SystemExit(f"buildah {' '.join(words)}: exit status {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-3000:]}")
        return done.stdout

    def build(self, name, file, context, *more):
        self.run("bud", "--isolation", "chroot", *more, "-t", name, "-f", file, context)

    def container(self, image):
        return self.run("from", "--isolation", "chroot", "--pull-never", image).strip().splitlines()[-1]

    def run_in(self, container, options, *words):
        return self.run("run", "--isolation", "chroot", *options, container, "--", *words)


def make_images(buildah, base, packages, directory):
    subprocess.run(["tar", "-C", base, "--exclude=./dev", "-cf", f"{directory}/base.tar", "."], check=True)
    with open(f"{directory}/Base", "w", encoding="utf-8") as f:
        f.write("FROM scratch\nADD base.tar /\n")
    buildah.build(BASE, f"{directory}/Base", directory)
    for name in ("server", "client"):
        buildah.build(f"localhost/cricket-{name}", os.path.join(FILES, f"{name}.Containerfile"), packages, "--build-arg", f"BASE={BASE}")


def as_an_engine(specification, device):
    """buildah's options for what a device of the specification asks for."""
    chosen = next(each for each in specification["devices"] if each["name"] == device)
    options = []
    for edits in (specification["containerEdits"], chosen["containerEdits"]):
        for mount in edits.get("mounts", []):
            options += ["-v", f"{mount['hostPath']}:{mount['containerPath']}:ro"]
        for variable in edits.get("env", []):
            options += ["--env", variable]
    return options


def check_server(buildah, sockets, program, args, libraries):
    expected = None
    mounts = ["-v", f"{program}:/program:ro"]
    for image, options in (("localhost/cricket-client", ["-v", f"{sockets}:/run/cricket", "--env", "REMOTE_GPU_ADDRESS=unix:/run/cricket/socket"]), (BASE, None)):
        command = ["cricket-run", "/program"]
        if options is None:
            # As cdi runs on a host where the client is installed.
            said = subprocess.run([args.ctl, "--server", f"unix:{sockets}/socket", "cdi"], capture_output=True, text=True, check=False,
                                  env={**os.environ, "CRICKET_LIBDIR": libraries})
            if said.returncode:
                raise SystemExit(f"cricketctl cdi: {said.stderr}")
            options, command = as_an_engine(json.loads(said.stdout), "all"), ["/program"]
        printed = buildah.run_in(buildah.container(image), [*mounts, *options], *command)
        if not printed.strip() or expected not in (None, printed):
            raise SystemExit(f"in {image} the program printed {printed!r}, not {expected!r}")
        expected = printed


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("--packages", "--programs", "--ctl", "--cache"):
        parser.add_argument(name, required=True)
    args = parser.parse_args()
    program = os.path.abspath(os.path.join(args.programs, "saxpy-static"))
    if not os.path.exists(program):
        chroot.skip("no program: it needs nvcc")
    if not shutil.which("buildah") or not any(name.startswith("cricket-server_") for name in os.listdir(args.packages)):
        chroot.skip("needs buildah and packages; ./run test packages has both")
    chroot.own_mounts()
    with tempfile.TemporaryDirectory(prefix="cricket-containers-", ignore_cleanup_errors=True) as directory:
        packages, sockets = os.path.join(directory, "packages"), os.path.join(directory, "sockets")
        os.makedirs(packages)
        os.makedirs(sockets, 0o777)
        os.chmod(directory, 0o755)
        os.chmod(sockets, 0o777)
        # The newest of each, in case that an older version is there, too.
        for name in ("cricket-server", "cricket-client", "cricketctl", "cricket-soft-gpu"):
            found = [os.path.join(args.packages, each) for each in os.listdir(args.packages) if each.startswith(name + "_") and each.endswith(".deb")]
            shutil.copy(max(found, key=os.path.getmtime), packages)
        buildah = Buildah(directory)
        make_images(buildah, chroot.base(args.cache), packages, directory)
        with open(f"{directory}/log", "wb") as log:
            # By its user, as the image says.
            container = buildah.container("localhost/cricket-server")
            server = subprocess.Popen(buildah.words("run", "--isolation", "chroot", "-v", f"{sockets}:/run/cricket", container, "--", "cricket-server",
                                                    "--socket", "/run/cricket/socket", "--driver", "soft"), stdout=log, stderr=log, env=buildah.environment)
        try:
            chroot.wait_for("the server", lambda: os.path.exists(f"{sockets}/socket") or server.poll() is not None)
            if server.poll() is not None:
                raise SystemExit("the server ended: " + open(f"{directory}/log", encoding="utf-8", errors="replace").read())
            subprocess.run(f"dpkg-deb -x {packages}/cricket-client_*.deb {directory}/host", shell=True, check=True)
            check_server(buildah, sockets, program, args, f"{directory}/host/usr/lib/cricket")
        finally:
            server.terminate()
            try:
                server.wait(20)
            except subprocess.TimeoutExpired:
                server.kill()
    print("built, served, used as an image and by a specification")
    return 0


if __name__ == "__main__":
    sys.exit(main())
