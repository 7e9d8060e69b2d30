# SPDX-License-Identifier: Apache-2.0
"""Reads packages.toml and lays out what each package holds, with its debugging information beside it.

The tree comes from `meson install` of build/release, which ./run package makes first.  Every mode, owner and time is set here, so that nothing of
the machine, the user or the day gets into a package.
"""

import fnmatch
import gzip
import os
import re
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass, field

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
# Notices that meson installs for the bundle; packages have their copyright files instead.
NOTICE = re.compile(r"share/doc/cricket/.*\.copyright$")


# Of one line that neither dpkg nor rpmbuild understands as more than a name.
MAINTAINER = re.compile(r"[^<>@%\x00-\x1f\x7f]*[^<>@%\x00-\x20\x7f] <[A-Za-z0-9.+_-]+@[A-Za-z0-9.-]+>")


class PackagingError(Exception):
    """What is wrong, in words for the user."""


def run(*command, **more):
    done = subprocess.run(command, capture_output=True, text=True, check=False, **more)
    if done.returncode:
        raise PackagingError(f"{command[0]}: {(done.stderr or done.stdout).strip()[-2000:]}")
    return done.stdout


@dataclass
class Package:
    """One package and its files: path in the package (relative to its root) -> (source, mode), or (target, None) for a link."""
    name: str
    about: dict
    files: dict = field(default_factory=dict)
    debug: dict = field(default_factory=dict)   # the same for the package of debugging information
    build_ids: list = field(default_factory=list)


def epoch():
    """The time of everything in a package: SOURCE_DATE_EPOCH, else that of the commit."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    if given:
        return int(given)
    try:
        return int(run("git", "-C", TOP, "log", "-1", "--format=%ct"))
    except (PackagingError, OSError):
        return int(os.stat(os.path.join(TOP, "NEWS.md")).st_mtime)


def load():
    with open(os.path.join(TOP, "packaging", "packages.toml"), "rb") as f:
        description = tomllib.load(f)
    common = description["common"]
    common["maintainer"] = os.environ.get("CRICKET_PACKAGE_MAINTAINER") or common["maintainer"]
    if not MAINTAINER.fullmatch(common["maintainer"]):
        raise PackagingError(f"the maintainer {common['maintainer']!r} is not of the form 'NAME <USER@HOST>'; "
                             "set CRICKET_PACKAGE_MAINTAINER, or maintainer in packaging/packages.toml")
    return description


def release_directory():
    """The build that is packed."""
    return os.path.join(TOP, os.environ.get("CRICKET_PACKAGE_BUILD", "build/release"))


def version():
    """Of the packages: the project's; CRICKET_PACKAGE_VERSION replaces it, for tests of upgrades."""
    with open(os.path.join(TOP, "meson.build"), encoding="utf-8") as f:
        found = re.search(r"^  version: '([0-9.]+)'", f.read(), re.M)
    given = os.environ.get("CRICKET_PACKAGE_VERSION", found.group(1))
    if not re.fullmatch(r"[0-9][0-9.~]*", given):
        raise PackagingError(f"CRICKET_PACKAGE_VERSION={given}: not a version of digits, dots and ~")
    return given


def installed(work):
    """Installs the build below `work`; the tree's top."""
    build = release_directory()
    if not os.path.exists(os.path.join(build, "build.ninja")):
        raise PackagingError(f"{build} is not built; use ./run package")
    tree = os.path.join(work, "tree")
    shutil.rmtree(tree, ignore_errors=True)
    run("meson", "install", "-C", build, "--no-rebuild", "--quiet", env={**os.environ, "DESTDIR": tree})
    shutil.copy(os.path.join(TOP, "README.md"), os.path.join(tree, "share/doc/cricket/README.md"))
    shutil.copy(os.path.join(TOP, "docs/limits.md"), os.path.join(tree, "share/doc/cricket/limits.md"))
    return tree


def matches(path, pattern):
    return path.startswith(pattern[:-2]) if pattern.endswith("/**") else fnmatch.fnmatchcase(path, pattern)


def paths_of(tree):
    for directory, names, files in os.walk(tree):
        names.sort()
        for name in sorted(files):
            yield os.path.relpath(os.path.join(directory, name), tree)


def assign(tree, packages):
    """Which package each installed file belongs to.  A file that none or two want is an error: it would be lost, or refused by dpkg."""
    owners, wanted = {}, set()
    for path in paths_of(tree):
        takers = [(name, pattern) for name, about in packages.items() for pattern in about.get("files", []) if matches(path, pattern)]
        if len({name for name, _ in takers}) != 1:
            if NOTICE.match(path):
                continue
            raise PackagingError(f"packages.toml: {path} is in {len(takers)} packages, not in one")
        owners[path] = takers[0][0]
        wanted.update(takers)
    for name, about in packages.items():
        for pattern in about.get("files", []):
            if (name, pattern) not in wanted:
                raise PackagingError(f"packages.toml: {name}: no file is installed as {pattern}")
    return owners


def is_elf(path):
    with open(path, "rb") as f:
        return f.read(4) == b"\x7fELF"


def build_id(path):
    found = re.search(r"Build ID: ([0-9a-f]{20,})", run("readelf", "-nW", path))
    if not found:
        raise PackagingError(f"{path} has no build ID")
    return found.group(1)


def separate(path, work):
    """(stripped, debugging information, build ID) of an executable or library, as files below `work`."""
    identity = build_id(path)
    stripped, debug = os.path.join(work, "stripped", identity), os.path.join(work, "debug", identity)
    os.makedirs(os.path.dirname(stripped), exist_ok=True)
    os.makedirs(os.path.dirname(debug), exist_ok=True)
    if not os.path.exists(debug):
        run("objcopy", "--only-keep-debug", "--compress-debug-sections", path, debug)
        run("strip", "--strip-unneeded", "--remove-section=.comment", "-o", stripped, path)
    return stripped, debug, identity


def text_file(work, name, text):
    path = os.path.join(work, "texts", name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    return path


def compressed(work, source, name):
    """A copy of the file by gzip, without its name and time."""
    path = os.path.join(work, "texts", name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(source, "rb") as f, open(path, "wb") as raw, gzip.GzipFile("", "wb", 9, raw, 0) as out:
        out.write(f.read())
    return path


def with_values(work, package, path, source):
    """Texts that name the version or the place where programs are."""
    if path.endswith(".service"):
        with open(source, encoding="utf-8") as f:
            text = f.read().replace("ExecStart=/bin/", "ExecStart=/usr/bin/").replace("doc/cricket/", f"/usr/share/doc/{package.name}/")
    elif path.endswith(".pc"):
        with open(source, encoding="utf-8") as f:
            text = f.read().replace("@VERSION@", version())
    else:
        return source
    return text_file(work, f"{package.name}/{os.path.basename(path)}", text)


def add(work, package, path, source, mode=None):
    """One file of a package, `path` as packages.toml names it."""
    place = path[1:] if path.startswith("/") else "usr/" + path
    place = place.replace("usr/share/doc/cricket/", f"usr/share/doc/{package.name}/")
    if os.path.islink(source) and not path.startswith("share/bash-completion/"):
        package.files[place] = (os.readlink(source), None)
        return
    # bash finds a completion by the program's name: the same text in each package.
    source = os.path.realpath(source)
    if is_elf(source):
        stripped, debug, identity = separate(source, work)
        package.files[place] = (stripped, 0o644 if ".so" in path else 0o755)
        package.debug[f"usr/lib/debug/.build-id/{identity[:2]}/{identity[2:]}.debug"] = (debug, 0o644)
        package.build_ids.append(identity)
        return
    if re.search(r"share/man/man\d/", path):
        place, source = place + ".gz", compressed(work, source, os.path.basename(path) + ".gz")
    package.files[place] = (with_values(work, package, path, source), mode or 0o644)


def lay_out(work):
    """(description, packages): what every package holds, with files below `work`."""
    description = load()
    tree = installed(work)
    owners = assign(tree, description["packages"])
    packages = []
    for name, about in description["packages"].items():
        package = Package(name, about)
        for path, owner in owners.items():
            if owner == name:
                add(work, package, path, os.path.join(tree, path))
        for source, path, mode in about.get("extra", []):
            add(work, package, path, os.path.join(TOP, source), int(mode, 8))
        for document in description["common"]["documents"]:
            package.files[f"usr/share/doc/{name}/{document}.gz"] = (compressed(work, os.path.join(TOP, document), document + ".gz"), 0o644)
        package.build_ids.sort()
        packages.append(package)
    return description, packages


def write_tree(files, directories, root, when):
    """Writes files and empty directories below `root`, with their modes, and one time for all of them."""
    shutil.rmtree(root, ignore_errors=True)
    os.makedirs(root)
    os.chmod(root, 0o755)
    for place, (source, mode) in sorted(files.items()):
        path = os.path.join(root, place)
        make_directories(root, os.path.dirname(place))
        if mode is None:
            os.symlink(source, path)
        else:
            shutil.copyfile(source, path)
            os.chmod(path, mode)
    for place, mode in directories:
        make_directories(root, place.lstrip("/"))
        os.chmod(os.path.join(root, place.lstrip("/")), int(mode, 8))
    for directory, _, names in os.walk(root, topdown=False):
        for name in names:
            os.utime(os.path.join(directory, name), (when, when), follow_symlinks=False)
        os.utime(directory, (when, when))


def make_directories(root, path):
    while path and not os.path.isdir(os.path.join(root, path)):
        make_directories(root, os.path.dirname(path))
        os.mkdir(os.path.join(root, path))
        os.chmod(os.path.join(root, path), 0o755)


def main(make):
    """The program of a kind: `make(out, work)`, with an error in words."""
    if len(sys.argv) != 2:
        print(f"usage: {sys.argv[0]} OUT", file=sys.stderr)
        return 2
    out = os.path.abspath(sys.argv[1])
    work = os.path.join(out, ".work")
    os.makedirs(out, exist_ok=True)
    os.environ.update(LC_ALL="C.UTF-8", TZ="UTC", SOURCE_DATE_EPOCH=str(epoch()))
    os.umask(0o022)
    try:
        for path in make(out, work):
            print(f"{path}: {os.path.getsize(path) >> 10} KiB")
    except PackagingError as error:
        print(f"{sys.argv[0]}: {error}", file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return 0
