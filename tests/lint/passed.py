# SPDX-License-Identifier: Apache-2.0
"""What the slow checks found nothing in, so that they do not look at the same bytes again.

A file is known by a hash of all that the tool reads for it: the tool's version and settings, the compiler's arguments, the file and every file
that it includes.  The list lies beside the compiler's cache ($CCACHE_DIR/lint-passed), for the same reason.  CCACHE_DISABLE=1: everything is
looked at.
"""

import hashlib
import json
import os
import re
import shlex
import subprocess

LINES_MAX = 20000  # of some runs over all files


class Passed:
    """The hashes that are known; only what passed is added, and kept by save()."""

    def __init__(self, path):
        self.path, self.added = path, []
        self.known = {}
        if path and os.path.exists(path):
            with open(path, encoding="ascii") as f:
                self.known = dict.fromkeys(f.read().split())

    def without(self, files, key):
        """The files that are to be looked at, and how many are not."""
        left = [path for path in files if key(path) is None or key(path) not in self.known]
        self.added += [key(path) for path in files if path not in set(left)]
        return left, len(files) - len(left)

    def add(self, keys):
        self.added += [key for key in keys if key is not None]

    def save(self):
        if not self.path or not os.path.isdir(os.path.dirname(self.path)):
            return
        lines = list(dict.fromkeys(self.added + list(self.known)))[:LINES_MAX]
        temporary = f"{self.path}.{os.getpid()}"
        with open(temporary, "w", encoding="ascii") as f:
            f.write("".join(line + "\n" for line in lines))
        os.replace(temporary, self.path)


def default_path():
    cache = os.environ.get("CCACHE_DIR")
    return os.path.join(cache, "lint-passed") if cache and not os.environ.get("CCACHE_DISABLE") else None


class Contents:
    """Hashes of files, each read once."""

    def __init__(self, top):
        self.top, self.digests, self.closures = top, {}, {}

    def digest(self, path):
        path = os.path.join(self.top, path)
        if path not in self.digests:
            with open(path, "rb") as f:
                self.digests[path] = hashlib.sha256(f.read()).hexdigest()
        return self.digests[path]

    def name(self, path):
        """As every clone has it."""
        inside = os.path.relpath(os.path.join(self.top, path), self.top)
        return path if inside.startswith("..") else inside

    def key(self, words, files):
        """Of a tool's words and the files that it reads."""
        whole = hashlib.sha256(json.dumps(words).encode())
        for name, path in sorted((self.name(path), path) for path in files):
            whole.update(f"\n{name} {self.digest(path)}".encode())
        return whole.hexdigest()

    def included(self, path):
        """The file, and all of the tree that it may include, whatever the preprocessor would leave out."""
        todo, found = [path], set()
        while todo:
            path = os.path.normpath(todo.pop())
            if path in found:
                continue
            found.add(path)
            if path not in self.closures:
                with open(os.path.join(self.top, path), encoding="utf-8", errors="replace") as f:
                    names = re.findall(r'^\s*#\s*include\s*["<]([^">]+)[">]', f.read(), re.MULTILINE)
                places = [os.path.join(where, name) for name in names for where in (os.path.dirname(path), "")]
                self.closures[path] = [place for place in places if os.path.isfile(os.path.join(self.top, place))]
            todo += self.closures[path]
        return found


def version(tool):
    return subprocess.run([tool, "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout


def compiled(top, build):
    """For each source: the compiler's arguments for it, without the tree's own place, and what the compiler read; None where that is not known."""
    read, of = {}, None
    told = subprocess.run(["ninja", "-C", build, "-t", "deps"], stdout=subprocess.PIPE, text=True, check=False).stdout
    for line in told.splitlines():
        if line.startswith("    "):
            read[of].append(os.path.realpath(os.path.join(build, line.strip())))
        elif line:
            of = line.split(":")[0]
            read[of] = []
    found = {}
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as f:
        for entry in json.load(f):
            path = os.path.relpath(os.path.join(entry["directory"], entry["file"]), top)
            words = [word.replace(build, "BUILD").replace(top, "TOP") for word in shlex.split(entry["command"])]
            before = found.setdefault(path, ([], set()))
            files = read.get(entry["output"])
            found[path] = None if before is None or not files else (before[0] + [words], before[1] | set(files))
    return found
