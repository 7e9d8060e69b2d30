#!/usr/bin/env python3
"""Every source file says its licence in its first line, or behind a #! line: SPDX-License-Identifier: Apache-2.0.

	spdx.py DIR		complains of the files that do not
	spdx.py --add DIR	adds the line to them

Left out are documents and data (Markdown, text, JSON, pictures, archives), what has no comments, and generated files of other tools.
"""

import os
import re
import subprocess
import sys

LINE = "SPDX-License-Identifier: Apache-2.0"
BLOCK, HASH, SLASHES, TROFF = "/* %s */", "# %s", "// %s", '.\\" %s'
COMMENTS = {".c": BLOCK, ".h": BLOCK, ".cu": BLOCK, ".x": BLOCK, ".inc": BLOCK, ".map": BLOCK, ".ptx": SLASHES, ".py": HASH, ".sh": HASH, ".build": HASH, ".api": HASH,
            ".yml": HASH, ".toml": HASH, ".supp": HASH, ".1": TROFF, ".7": TROFF, ".8": TROFF}
# What has to be a file's first line: the interpreter, and what man reads of a page's preprocessors.
FIRST = ("#!", "'\\\"")
# Meson's options, whose name says nothing.
NAMED = {"meson_options.txt": HASH}


def comment_of(path, text):
    """The comment that a file needs, or None."""
    name = os.path.basename(path)
    if name in NAMED:
        return NAMED[name]
    form = COMMENTS.get(os.path.splitext(name)[1])
    return form or (HASH if text.startswith("#!") else None)


def has_line(text):
    first = text.splitlines()[:2]
    return LINE in (first[0] if first else "") or len(first) == 2 and first[0].startswith(FIRST) and LINE in first[1]


def with_line(text, form):
    line = form % LINE + "\n"
    end = text.index("\n") + 1 if text.startswith(FIRST) else 0
    return text[:end] + line + text[end:]


def check(files):
    """files: {path: text}.  What is wrong, one line a file."""
    return [f"{path}: the first line does not say {LINE} (tests/lint/spdx.py --add .)" for path, text in sorted(files.items())
            if comment_of(path, text) and not has_line(text)]


def main(args):
    top, files = args[-1], {}
    for path in subprocess.run(["git", "-C", top, "ls-files"], check=True, capture_output=True, text=True).stdout.split("\n"):
        try:
            with open(os.path.join(top, path), encoding="utf-8") as f:
                files[path] = f.read()
        except (UnicodeDecodeError, IsADirectoryError, FileNotFoundError):
            continue
    if args[0] == "--add":
        for path, text in files.items():
            if comment_of(path, text) and not has_line(text):
                with open(os.path.join(top, path), "w", encoding="utf-8") as f:
                    f.write(with_line(text, comment_of(path, text)))
        return 0
    bad = check(files)
    print("\n".join(bad + [f"{len(files)} files, {len(bad)} complaints"]))
    return bool(bad) or not re.search("[1-9]", str(len(files)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
