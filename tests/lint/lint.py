#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What ./run lint runs: every check of style and structure, or those that are named.

A check is a row of the table CHECKS; it gets the files of the tree by kind and says what is wrong in lines.  Needed: a build directory
whose targets are made (for compile_commands.json and generated headers), and the tools that ./run installs.
"""

import argparse
import concurrent.futures
import functools
import json
import os
import re
import shlex
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, HERE)
import passed  # noqa: E402

TOP = os.path.dirname(os.path.dirname(HERE))
PRODUCT = ("base/", "rpc/", "cudacommon/", "client/", "server/", "checkpoint/", "softgpu/", "ctl/")
# Generated and committed, or another's format.
NOT_FORMATTED = ("tests/truth/", "cudacommon/static_runtimes.c", "client/cudart/error_table.c")
NOT_SPELLED = ("tests/truth/", "tests/images/", "tests/unit/rpcgen/golden/", "client/cuda/context/error_table.inc", "client/cudart/error_table.c")


class Tree:
    def __init__(self, build):
        self.build = build
        self.files = subprocess.run(["git", "-C", TOP, "ls-files"], check=True, capture_output=True, text=True).stdout.split("\n")[:-1]
        self.files = [path for path in self.files if os.path.isfile(os.path.join(TOP, path))]
        self.jobs = os.cpu_count() or 1
        self.passed, self.contents = passed.Passed(passed.default_path()), passed.Contents(TOP)

    def c_files(self):
        return [path for path in self.files if path.endswith((".c", ".h"))]

    def product(self, suffix):
        return [path for path in self.files if path.startswith(PRODUCT) and path.endswith(suffix)]

    def commands(self):
        """The compiler's arguments for each product file, as the build uses them: what to include and define."""
        with open(os.path.join(self.build, "compile_commands.json"), encoding="utf-8") as f:
            for entry in json.load(f):
                path = os.path.relpath(os.path.join(entry["directory"], entry["file"]), TOP)
                words = shlex.split(entry["command"])
                yield path, entry["directory"], [w for i, w in enumerate(words) if w.startswith(("-I", "-D", "-isystem"))
                                                 or i and words[i - 1] == "-isystem"]


def said(*command, cwd=TOP):
    """What a tool prints where it finds something; its lines.  A failure without a word is one, too."""
    done = subprocess.run(command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return (done.stdout.splitlines() or [f"{command[0]}: exit status {done.returncode}"]) if done.returncode else []


def those(pattern, lines):
    """The lines that matter, or the last where none looks like it."""
    return [line for line in lines if re.search(pattern, line)] or lines[-5:]


def by_parts(tree, files, size, command, is_good=lambda part: None):
    """Runs a tool over the files, some at a time, on all processors."""
    parts = [files[i:i + size] for i in range(0, len(files), size)]
    with concurrent.futures.ThreadPoolExecutor(tree.jobs) as pool:
        found = list(pool.map(lambda part: said(*command, *part), parts))
    for part, lines in zip(parts, found):
        if not lines:
            is_good(part)
    return [line for lines in found for line in lines]


def not_yet(tree, name, files, key):
    """Those of the files that have not passed the check as they are, and who is told of those that do."""
    left, known = tree.passed.without(files, key)
    if known:
        print(f"{name}: {known} of {len(files)} files passed before, as they are", flush=True)
    return left, lambda part: tree.passed.add([key(path) for path in part])


def ours(name, *arguments):
    return said(sys.executable, os.path.join(HERE, name), TOP, *arguments)


def headers(tree):
    """Each header of the product compiles by itself."""
    arguments = {}
    for path, directory, words in tree.commands():
        room = os.path.dirname(path)
        while room:
            arguments.setdefault(room, (directory, words))
            room = os.path.dirname(room)
    bad = []

    def compile_one(path):
        room = os.path.dirname(path)
        while room and room not in arguments:
            room = os.path.dirname(room)
        directory, words = arguments.get(room, next(iter(arguments.values())))
        return said("gcc", "-fsyntax-only", "-std=gnu17", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter",
                    "-Wno-missing-field-initializers",
                    "-D__CUDA_API_VERSION_INTERNAL", *words, "-I", TOP, "-I", tree.build, "-include", os.path.join(TOP, path), "-x", "c", "/dev/null", cwd=directory)

    with concurrent.futures.ThreadPoolExecutor(tree.jobs) as pool:
        for path, lines in zip(tree.product(".h"), pool.map(compile_one, tree.product(".h"))):
            bad += [f"{path} does not compile by itself:", *lines[:4]] if lines else []
    return bad


def clang_format(tree):
    files = [path for path in tree.c_files() if not path.startswith(NOT_FORMATTED)]
    return those(r" error:", by_parts(tree, files, 50, ["clang-format", "--dry-run", "-Werror"]))


def clang_tidy(tree):
    built = passed.compiled(TOP, tree.build)
    files = [path for path in tree.product(".c") if path in built]
    tool = passed.version("clang-tidy")

    @functools.cache
    def key(path):
        return built[path] and tree.contents.key(["clang-tidy", tool, built[path][0]], built[path][1] | {".clang-tidy"})

    left, is_good = not_yet(tree, "clang-tidy", files, key)
    return those(r" (error|warning):", by_parts(tree, left, 20, ["clang-tidy", "-p", tree.build, "--quiet"], is_good))


def cppcheck(tree):
    words = ["cppcheck", "--quiet", "--std=c11", "--enable=warning,portability", "--inline-suppr", "--max-configs=1", "--error-exitcode=1",
             "--suppressions-list=tests/lint/cppcheck.txt", "-I.", "--template={file}:{line}: {message} [{id}]"]
    tool = passed.version("cppcheck")

    @functools.cache
    def key(path):
        return tree.contents.key([tool, words], tree.contents.included(path) | {"tests/lint/cppcheck.txt"})

    left, is_good = not_yet(tree, "cppcheck", tree.product(".c"), key)
    lines = said(*words, f"-j{tree.jobs}", *left) if left else []
    if not lines:
        is_good(left)
    return lines


def shellcheck(tree):
    scripts = []
    for path in tree.files:
        with open(os.path.join(TOP, path), "rb") as f:
            if re.match(rb"#!\s*/\S*\b(env )?(ba|da)?sh\b", f.read(40)):
                scripts.append(path)
    return said("shellcheck", "-S", "warning", "-f", "gcc", *scripts)


def ruff(tree):
    return said(os.path.join(TOP, "build", "venv", "bin", "ruff"), "check", "--quiet", "--output-format", "concise", ".")


def codespell(tree):
    files = [path for path in tree.files if not path.startswith(NOT_SPELLED) and not path.endswith((".png", ".bin", ".zst"))]
    return said("codespell", "-I", os.path.join(HERE, "words.txt"), *files)


def mandoc(tree):
    return said("mandoc", "-T", "lint", "-W", "warning", *[path for path in tree.files if path.startswith("docs/man/")])


CHECKS = {
    "includes": ("rooms include what rooms.txt lets them, no headers go in a circle, and a source includes the header beside it", lambda tree: ours("includes.py")),
    "spdx": ("every source file says its licence first", lambda tree: ours("spdx.py")),
    "names": ("no struct or function is defined twice", lambda tree: ours("names.py")),
    "functions": ("a function has at most 60 lines and 20 branches, but for functions.txt", lambda tree: ours("functions.py")),
    "clocks": ("no thread waits by the clock of the day", lambda tree: ours("clocks.py")),
    "headers": ("each header compiles by itself", headers),
    "clang-format": ("C is formatted", clang_format),
    "clang-tidy": ("what .clang-tidy lists", clang_tidy),
    "cppcheck": ("what cppcheck warns about, but for cppcheck.txt", cppcheck),
    "shellcheck": ("shell scripts", shellcheck),
    "ruff": ("Python, as ruff.toml says", ruff),
    "codespell": ("spelling, but for words.txt", codespell),
    "mandoc": ("manual pages", mandoc),
    "subjects": ("subjects of commits: `dir: imperative`, 72 columns", lambda tree: ours("subjects.py")),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], epilog="checks: " + "; ".join(f"{n}: {what}" for n, (what, _) in CHECKS.items()))
    parser.add_argument("--build", default=os.path.join(TOP, "build", "main"), metavar="DIR")
    parser.add_argument("check", nargs="*", metavar="CHECK")
    arguments = parser.parse_args()
    for name in arguments.check:
        if name not in CHECKS:
            parser.error(f"there is no check {name}; choose from {', '.join(CHECKS)}")
    tree, failed = Tree(os.path.realpath(arguments.build)), []
    for name in arguments.check or CHECKS:
        begin = time.monotonic()
        lines = CHECKS[name][1](tree)
        print(f"{name}: {'ok' if not lines else 'FAILED'} ({time.monotonic() - begin:.0f} s)", flush=True)
        print("".join(f"    {line}\n" for line in lines), end="", flush=True)
        failed += [name] if lines else []
        tree.passed.save()
    print(f"lint: {len(failed)} failed: {', '.join(failed)}" if failed else "lint: all passed")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
