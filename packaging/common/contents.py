# SPDX-License-Identifier: Apache-2.0
"""Which libraries of other projects the linker copied into our files, and from which package of the build machine each came.

The linker takes from an archive only what is needed, often nothing.  So a library counts as contained if the linked file, before it is
stripped, defines a function of the archive's.
"""

import functools
import json
import os
import re
import subprocess
from dataclasses import dataclass

from common.description import PackagingError, is_elf, release_directory, run


@dataclass(frozen=True)
class Library:
    """A library that is contained, as dpkg of the build machine knows it."""
    source: str     # the distribution's name for the source
    package: str    # the package with the archive
    version: str
    license: str    # an SPDX expression
    copyright: str  # the file with the notice


# SPDX expressions for what the copyright files say.  dpkg knows no licences, so a new library needs a line here.
LICENSES = {
    "jansson": "MIT",
    "libinih": "BSD-3-Clause",
    "libmicrohttpd": "LGPL-2.1-or-later",
    "libseccomp": "LGPL-2.1-only",
    "libtirpc": "BSD-3-Clause",
    "libzstd": "BSD-3-Clause OR GPL-2.0-only",
    "lz4": "BSD-2-Clause",
    "ncurses": "X11",
    "nettle": "LGPL-3.0-or-later OR GPL-2.0-or-later",
    "openblas": "BSD-3-Clause",
    "openssl": "Apache-2.0",
    "protobuf-c": "BSD-2-Clause",
    "xxhash": "BSD-2-Clause",
}


@functools.cache
def defined(path):
    """The global functions that an archive or a linked file defines."""
    # Members without symbols make nm complain; that is no error.
    out = subprocess.run(["nm", "--defined-only", path], capture_output=True, text=True, check=False).stdout
    return frozenset(re.findall(r"^[0-9a-f]+ [TtWi] (\w+)$", out, re.M)) if is_elf(path) else \
        frozenset(re.findall(r"^[0-9a-f]+ [TWi] (\w+)$", out, re.M))


@functools.cache
def link_lines():
    """{linked file: the archives outside the build that its command names}"""
    found, target = {}, None
    with open(os.path.join(release_directory(), "build.ninja"), encoding="utf-8") as f:
        for line in f:
            if line.startswith("build "):
                target = line[len("build "):].split(":")[0].split(" ")[0]
            elif line.startswith(" LINK_ARGS ="):
                archives = {os.path.realpath(word) for word in re.findall(r"(?:^|[\s'])(/[^\s']+\.a)(?=[\s']|$)", line)}
                found[target] = sorted(archives)
    return found


@functools.cache
def library_of(archive):
    for name in (archive, archive.removeprefix("/usr")):
        done = subprocess.run(["dpkg-query", "-S", name], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            package = done.stdout.split(":")[0]
            break
    else:
        raise PackagingError(f"{archive} belongs to no package of this machine: its version and licence are not known")
    source, version = run("dpkg-query", "-W", "-f=${source:Package}\t${Version}\n", package).splitlines()[0].split("\t")
    if source not in LICENSES:
        raise PackagingError(f"packaging/common/contents.py has no licence for {source} (of {archive}); see /usr/share/doc/{package}/copyright")
    copyright_file = f"/usr/share/doc/{package}/copyright"
    if not os.path.exists(copyright_file):
        raise PackagingError(f"{copyright_file} is not there: install {package} with its documentation")
    return Library(source, package, version, LICENSES[source], copyright_file)


def libraries():
    """{installed path, as packages.toml names it: the libraries in it, sorted}"""
    build = release_directory()
    with open(os.path.join(build, "meson-info", "intro-installed.json"), encoding="utf-8") as f:
        places = json.load(f)
    result = {}
    for built, place in places.items():
        target = os.path.relpath(built, build)
        if target not in link_lines():
            continue
        ours = defined(built)
        # Names that several archives could define are no evidence.
        contained = {library_of(archive) for archive in link_lines()[target] if len(ours & defined(archive)) > 0}
        result[place.lstrip("/")] = sorted(contained, key=lambda library: library.source)
    return result
