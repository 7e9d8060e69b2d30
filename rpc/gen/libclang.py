# SPDX-License-Identifier: Apache-2.0
"""CUDA's headers through libclang, whichever one this machine has."""

import functools
import os
import shlex
import subprocess

import clang.cindex as ci


@functools.lru_cache(maxsize=None)
def _compiler_headers():
    """libclang without clang's own <stddef.h> and the like, as PyPI's is, gets the C compiler's; they come last, so that its own win."""
    for compiler in ([*shlex.split(os.environ["CC"])] if os.environ.get("CC") else [], ["cc"], ["gcc"], ["clang"]):
        try:
            path = subprocess.run([*compiler, "-print-file-name=include"], capture_output=True, text=True, check=True).stdout.strip()
        except (OSError, IndexError, subprocess.CalledProcessError):
            continue
        if os.path.isabs(path):
            return ["-idirafter", path]
    return []


def parse(name, text, include, args, options=0):
    """The translation unit of a source text that is read with CUDA's headers; ci.TranslationUnitLoadError where there is none."""
    return ci.Index.create().parse(name, args=["-I" + include, *args, *_compiler_headers()], unsaved_files=[(name, text)],
                                   options=options)
