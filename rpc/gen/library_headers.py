#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The headers of the libraries that Cricket forwards, for a CUDA toolkit that lacks some.

	library_headers.py --toolkit DIR --out DIR [--missing]

Those that the toolkit lacks come from NVIDIA's wheels, of which only the folder include/ is fetched (about 1 MB of 800); where pip cannot read a part
of a wheel, the whole wheel.  OUT then is a toolkit: links to everything in --toolkit, and in include/ its headers and the fetched ones.  The interpreter
is one that has pip, and pip's own settings say where packages come from.  --missing: only prints what is missing, a line for each library.
Exit status: 0 and OUT is ready, or (--missing) there is something to fetch; 3 where nothing is missing; 1 where it could not be fetched.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile

# A wheel of the release that the tables in rpc/api were read from, and what the build reads of it.
WHEELS = (("nvidia-cublas==13.1.0.3", ("cublas_api.h", "cublas_v2.h", "cublas.h", "cublasXt.h", "cublasLt.h")),
          ("nvidia-cufft==12.0.0.61", ("cufft.h", "cufftXt.h")),
          ("nvidia-nccl-cu13==2.28.9", ("nccl.h",)))


def missing(toolkit):
    """[(wheel, headers)] of what the toolkit lacks."""
    return [(wheel, headers) for wheel, headers in WHEELS if not all(os.path.isfile(os.path.join(toolkit, "include", header)) for header in headers)]


def unpack(wheel, out):
    """What lies in the include folders of an opened wheel, below OUT."""
    for name in wheel.namelist():
        before, found, inside = name.partition("/include/")
        if found and inside and not inside.endswith("/") and ".." not in inside.split("/") and before.startswith("nvidia"):
            path = os.path.join(out, inside)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with wheel.open(name) as source, open(path, "wb") as target:
                shutil.copyfileobj(source, target)


def fetch_parts(wheels, out):
    """By pip's own reading of parts of a remote file, which is no promise of pip's."""
    from pip._internal.commands import create_command
    from pip._internal.network.lazy_wheel import LazyZipOverHTTP
    from pip._vendor.packaging.specifiers import SpecifierSet
    command = create_command("download")
    options, _ = command.parse_args(["--quiet", "--no-deps", "--only-binary=:all:"])
    with command.main_context():
        session = command.get_default_session(options)
        finder = command._build_package_finder(options, session)  # pylint: disable=protected-access
        for wheel in wheels:
            name, _, version = wheel.partition("==")
            link = finder.find_best_candidate(name, SpecifierSet("==" + version)).best_candidate.link
            with LazyZipOverHTTP(link.url_without_fragment, session) as remote, zipfile.ZipFile(remote) as opened:
                unpack(opened, out)


def fetch_whole(wheels, out):
    for wheel in wheels:
        with tempfile.TemporaryDirectory() as directory:
            subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-cache-dir", "--no-deps", "--only-binary=:all:",
                            "--dest", directory, wheel], check=True)
            for file in os.listdir(directory):
                with zipfile.ZipFile(os.path.join(directory, file)) as opened:
                    unpack(opened, out)


def fetch(wanted, out):
    """True when all that is wanted lies in OUT."""
    wheels = [wheel for wheel, _ in wanted]
    for way in (fetch_parts, fetch_whole):
        try:
            way(wheels, out)
        except Exception as problem:  # whatever pip, the network or the file says: there is another way, or none
            print(f"{way.__name__}: {type(problem).__name__}: {problem}", file=sys.stderr)
        if all(os.path.isfile(os.path.join(out, header)) for _, headers in wanted for header in headers):
            return True
    return False


def link_all(source, target, besides=()):
    """Links in the folder `target` to all that is in `source`."""
    os.makedirs(target, exist_ok=True)
    for name in os.listdir(source):
        if name not in besides and not os.path.lexists(os.path.join(target, name)):
            os.symlink(os.path.join(source, name), os.path.join(target, name))


def overlay(toolkit, headers, out):
    """OUT, made anew: the toolkit with more headers.  nvcc finds its parts from where it was called, so it takes them from there, too."""
    made = out + ".new"
    shutil.rmtree(made, ignore_errors=True)
    toolkit = os.path.realpath(toolkit)
    shutil.copytree(headers, os.path.join(made, "include"))
    link_all(os.path.join(toolkit, "include"), os.path.join(made, "include"))
    link_all(toolkit, made, besides=("include", "targets"))
    if not os.path.lexists(os.path.join(made, "lib64")):
        os.symlink("lib", os.path.join(made, "lib64"))
    targets = os.path.join(toolkit, "targets")
    for target in os.listdir(targets) if os.path.isdir(targets) else ():
        folder = os.path.join(made, "targets", target)
        link_all(os.path.join(targets, target), folder, besides=("include",))
        os.symlink(os.path.join("..", "..", "include"), os.path.join(folder, "include"))
    shutil.rmtree(out, ignore_errors=True)
    os.rename(made, out)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--toolkit", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--missing", action="store_true")
    arg = parser.parse_args()
    wanted = missing(arg.toolkit)
    if not wanted:
        return 3
    if arg.missing:
        print(*(wheel for wheel, _ in wanted), sep="\n")
        return 0
    with tempfile.TemporaryDirectory() as headers:
        if not fetch(wanted, headers):
            return 1
        overlay(arg.toolkit, headers, arg.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
