#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The table of docs/legal.md against what Meson links into what is installed, and the notices that must go along.

	test_legal.py --build DIR [--print]	--print: the rows as they should be
"""
import argparse
import json
import os
import re
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
# Archives: the project, its licence, the notice in share/doc/cricket.  Parts of glibc are the system's.
PROJECTS = {"tirpc": ("libtirpc", "BSD-3-Clause", "libtirpc"), "nettle": ("nettle", "LGPL-3.0-or-later or GPL-2.0-or-later", "nettle"),
            "crypto": ("OpenSSL's libcrypto", "Apache-2.0", "OpenSSL"), "ssl": ("OpenSSL's libssl", "Apache-2.0", "OpenSSL"),
            "zstd": ("zstd", "BSD-3-Clause", "zstd"), "lz4": ("LZ4", "BSD-2-Clause", "LZ4"),
            "xxhash": ("xxHash", "BSD-2-Clause", "xxHash"),
            "jansson": ("Jansson", "MIT", "Jansson"), "seccomp": ("libseccomp", "LGPL-2.1-only", "libseccomp"), "inih": ("inih", "BSD-3-Clause", "inih"),
            "ncurses": ("ncurses", "X11", "ncurses"), "tinfo": ("ncurses", "X11", "ncurses"), "protobuf-c": ("protobuf-c", "BSD-2-Clause", "protobuf-c"),
            "microhttpd": ("libmicrohttpd", "LGPL-2.1-or-later", "libmicrohttpd"),
            "openblas": ("OpenBLAS", "BSD-3-Clause", "OpenBLAS")}
SYSTEM = {"m", "dl", "c", "pthread"}


def installed(build):
    with open(os.path.join(build, "meson-info", "intro-installed.json"), encoding="utf-8") as f:
        return {os.path.relpath(source, build): target for source, target in json.load(f).items() if os.path.isabs(source)}


def linked(build):
    """{(project, licence, notice): names of the files that contain it}"""
    files, found, unknown = installed(build), {}, set()
    with open(os.path.join(build, "build.ninja"), encoding="utf-8") as f:
        text = f.read()
    for target, arguments in re.findall(r"(?m)^build (\S+): c_LINKER\S*.*\n(?: .*\n)*? LINK_ARGS = (.*)$", text):
        if target not in files:
            continue
        # An archive of the system's, outside of the build directory.
        for name in re.findall(r"(?<!\S)/\S*/lib([\w-]+)\.a\b", arguments):
            if name in PROJECTS:
                found.setdefault(PROJECTS[name], set()).add(re.sub(r"\.so\.\d+$", "", os.path.basename(target)))
            elif name not in SYSTEM:
                unknown.add(name)
    return found, unknown


def rows(found):
    for (project, licence, notice), names in sorted(found.items(), key=lambda item: item[0][0].lower()):
        files = ", ".join(f"`{name}`" for name in sorted(names))
        yield f"| {project} | {licence} | {files} | `{notice}.copyright` |"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", required=True)
    parser.add_argument("--print", action="store_true")
    arg = parser.parse_args()
    build = os.path.abspath(arg.build)
    found, unknown = linked(build)
    wanted = list(rows(found))
    if arg.print:
        print(*wanted, sep="\n")
        return 0
    with open(os.path.join(TOP, "docs", "legal.md"), encoding="utf-8") as f:
        there = re.findall(r"(?m)^\| .*\.copyright` \|$", f.read())
    wrong = [f"docs/legal.md lacks: {row}" for row in wanted if row not in there] + [f"docs/legal.md has one too many: {row}" for row in there if row not in wanted]
    wrong += [f"lib{name}.a is linked, and nobody says whose it is: add it to {os.path.basename(__file__)}" for name in unknown]
    targets = {os.path.basename(target) for target in installed(build).values()}
    wrong += [f"share/doc/cricket/{notice}.copyright is not installed" for _, _, notice in found if f"{notice}.copyright" not in targets]
    if len(wanted) < 8:
        wrong.append(f"only {len(wanted)} libraries were found in build.ninja")
    print(*wrong or [f"{len(wanted)} libraries, as docs/legal.md has them"], sep="\n")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
