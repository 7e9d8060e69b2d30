#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""auditwheel agrees with the platform in the wheel's name.

usage: test_wheel_audit.py --packages DIR

auditwheel does not know that the loader expands $ORIGIN in names of libraries.  It takes such names for libraries from outside, so that its
overall verdict is linux_x86_64.  This test looks for them in the wheel itself and allows no other.
"""

import argparse
import json
import os
import sys
import tempfile
import zipfile

import wheel


def wrong(report, names, platform):
    """Yields what does not agree, in lines."""
    if report["sym_tag"] != platform:
        yield f"the symbols are those of {report['sym_tag']}, the wheel says {platform}"
    for library in report["external_libs"]:
        inside = library.replace("$ORIGIN/", "cricket_gpu/lib/cricket/")
        if not library.startswith("$ORIGIN/") or inside not in names:
            yield f"{library} is not in the wheel"
    for problem in ("pyfpe", "ucs2", "unsupported_isa", "pure"):
        if report[problem]:
            yield f"auditwheel: {problem}"
    if "blacklisted_symbols" in report["policy_upgrades"].get(platform, {}):
        yield f"symbols that {platform} forbids"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--packages", required=True)
    path = wheel.find(parser.parse_args().packages)
    with tempfile.TemporaryDirectory(prefix="ckt-wheel-") as directory:
        try:
            venv = wheel.make_venv(os.path.join(directory, "venv"), "auditwheel")
        except OSError as error:
            print(f"auditwheel is not to be had from PyPI: {error}")
            return wheel.SKIP
        status, text = wheel.run(os.path.join(venv, "bin", "auditwheel"), "show", "--json", path)
        if status:
            print(text)
            return 1
        report = json.loads(text[text.index("{"):])
    with zipfile.ZipFile(path) as file:
        names = set(file.namelist())
    platform = os.path.basename(path).removesuffix(".whl").split("-")[-1]
    bad = [*wrong(report, names, platform)]
    # These must be found, or the above looks at nothing.
    for change in ({"sym_tag": "manylinux_2_38_x86_64"}, {"external_libs": {"libcudart.so.13": None}}, {"external_libs": {"$ORIGIN/libnothing.so": None}}):
        if not [*wrong({**report, **change}, names, platform)]:
            bad.append(f"{change} went unnoticed")
    print(*bad, f"{platform}: symbols as auditwheel says, {len(report['external_libs'])} names with $ORIGIN, all in the wheel", sep="\n")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
