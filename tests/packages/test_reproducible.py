#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Packages are the same bytes when they are built again: in another directory, at another time, with another umask, time zone, language and
order of hashes, by another number of processors' threads.

	test_reproducible.py --packages DIR --release DIR [--cold]

--release is the build that the packages in DIR were made from.  The tracked files are copied to a directory with a longer name and built there.
Some objects, and everything that is generated, linked, stripped and packed, are made anew; the other objects come from the compiler cache,
whose look-up does not depend on the directory.  --cold: all objects are made anew, which takes minutes.
"""

import argparse
import glob
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from datetime import datetime, timezone

HERE = os.path.dirname(os.path.realpath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
KINDS = ("deb", "rpm", "tarball")
MARKS = ("*.deb", "*.rpm", "cricket-[0-9]*.tar.xz", "*.deb.cdx.json", "*.rpm.cdx.json", "*.tar.cdx.json")
# One object of so many is compiled without the cache.
SHARE = 40
LANGUAGE = ("LANG", "LC_ALL", "LC_CTYPE", "LC_MESSAGES")


def run(words, **more):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **more)
    if done.returncode:
        raise SystemExit(f"{' '.join(words)[:200]}: exit status {done.returncode}\n{done.stdout[-3000:]}")
    return done.stdout


def digests(directory):
    found = {}
    for mark in MARKS:
        for path in glob.glob(os.path.join(directory, mark)):
            with open(path, "rb") as f:
                found[os.path.basename(path)] = hashlib.sha256(f.read()).hexdigest()
    return found


def epoch(packages):
    """The time in the packages: there may be a later commit by now."""
    with open(max(glob.glob(os.path.join(packages, "cricketctl_*.deb.cdx.json")), key=os.path.getmtime), encoding="utf-8") as f:
        when = json.load(f)["metadata"]["timestamp"]
    return str(int(datetime.strptime(when, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=timezone.utc).timestamp()))


def copy_sources(to):
    for path in run(["git", "-C", TOP, "ls-files", "-z"]).split("\0")[:-1]:
        source, target = os.path.join(TOP, path), os.path.join(to, path)
        if os.path.lexists(source):
            os.makedirs(os.path.dirname(target), exist_ok=True)
            # Not the times.
            shutil.copyfile(source, target, follow_symlinks=False)
            if not os.path.islink(source):
                os.chmod(target, os.stat(source).st_mode | 0o200)


def options(release):
    """Those of the build that is compared."""
    with open(os.path.join(release, "meson-info", "intro-buildoptions.json"), encoding="utf-8") as f:
        values = {option["name"]: option["value"] for option in json.load(f)}
    cuda = values["cuda-home"]
    return [f"-Dcuda-home={cuda if os.path.isabs(cuda) else os.path.join(TOP, cuda)}", *(f"-D{name}={str(values[name]).lower()}" for name in ("werror", "strict-api")),
            "-Dtests=disabled", "--prefix=/", "--libdir=lib", "--libexecdir=libexec"]


def environment(epoch):
    more = {"TZ": "Pacific/Kiritimati", "LC_ALL": "C", "LANG": "de_DE.UTF-8", "PYTHONHASHSEED": "77", "SOURCE_DATE_EPOCH": epoch, "CC": "ccache gcc",
            "CCACHE_DEPEND": "1", "CCACHE_NOHASHDIR": "1", "USER": "somebody", "XZ_DEFAULTS": "-9"}
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "CCACHE_DIR", "CI")}
    kept.setdefault("CCACHE_DIR", os.path.join(TOP, "build/ccache"))
    return {**kept, **more}


def build(tree, args, values):
    os.umask(0o077)
    build_directory = os.path.join(tree, "build", "release")
    run(["meson", "setup", build_directory, *options(args.release)], cwd=tree, env=values)
    targets = run(["ninja", "-C", build_directory, "-t", "targets", "all"], env=values).splitlines()
    objects = sorted(line.split(": c_COMPILER")[0] for line in targets if line.endswith(": c_COMPILER"))
    sources = [line.split(": CUSTOM_COMMAND")[0] for line in targets if re.search(r"\.(c|h|S|map|inc): CUSTOM_COMMAND", line)]
    anew = objects if args.cold else objects[::SHARE]
    if len(anew) < 10:
        raise SystemExit(f"only {len(objects)} objects")
    run(["ninja", "-C", build_directory, *sources, *anew], env={**values, "CCACHE_DISABLE": "1"})
    # The cache's look-up depends on the language.
    same = {name: value for name, value in os.environ.items() if name in LANGUAGE}
    run(["ninja", "-C", build_directory, "product"], env={name: value for name, value in values.items() if name not in LANGUAGE} | same)
    return len(anew), len(objects)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--packages", required=True)
    parser.add_argument("--release", required=True)
    parser.add_argument("--cold", action="store_true")
    args = parser.parse_args()
    first = digests(args.packages)
    if len([name for name in first if name.endswith(".deb")]) < 9 or not shutil.which("git"):
        print("skipped: the packages are not built; ./run test packages does it")
        return 77
    with tempfile.TemporaryDirectory(prefix="cricket-reproducible-of-another-length-") as directory:
        tree, out = os.path.join(directory, "elsewhere"), os.path.join(directory, "out")
        copy_sources(tree)
        values = environment(epoch(args.packages))
        began = time.monotonic()
        anew, objects = build(tree, args, values)
        print(f"built in {time.monotonic() - began:.0f} s", flush=True)
        os.makedirs(out)
        for kind in KINDS:
            run([os.path.join(tree, "packaging", kind, "build"), out], env=values)
        second = digests(out)
        different = sorted(name for name in first.keys() | second.keys() if first.get(name) != second.get(name))
        if different:
            print("these differ:", *different, sep="\n  ")
            if os.environ.get("CRICKET_KEEP"):
                shutil.copytree(out, os.environ["CRICKET_KEEP"], dirs_exist_ok=True)
            return 1
    print(f"{len(second)} files are the same; {anew} of {objects} objects were compiled anew, the others came from the cache")
    return 0


if __name__ == "__main__":
    sys.exit(main())
