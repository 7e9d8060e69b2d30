# SPDX-License-Identifier: Apache-2.0
"""Which version of a driver function came with which CUDA release: read from cudaTypedefs.h, for cuGetProcAddress.

The header has a function type PFN_NAME_vRELEASE for each version of each function, where libcuda exports NAME, NAME_v2, NAME_v3 ...
The versions of a name, in order, are its releases, in order; the parameter types must agree.  A symbol's form for the per-thread
default stream is the symbol with _ptsz or _ptds behind it, where libcuda exports that.
"""

import re
from collections import defaultdict

import clang.cindex as ci

import libclang

_PFN = re.compile(r"^PFN_(cu\w+?)_v(\d+)$")
_EXPORT = re.compile(r"^(cu\w+?)(?:_v(\d+))?$")
PER_THREAD = ("_ptsz", "_ptds")
_SOURCE = "#include <cuda.h>\n#include <cudaTypedefs.h>\n#include <cudaProfilerTypedefs.h>\n"


def _releases(include):
    unit = libclang.parse("cuda_typedefs.c", _SOURCE, include, ["-std=gnu17", "-D__CUDA_API_VERSION_INTERNAL", "-DCUDA_ENABLE_DEPRECATED"])
    found = defaultdict(list)
    for cursor in unit.cursor.get_children():
        match = _PFN.match(cursor.spelling) if cursor.kind == ci.CursorKind.TYPEDEF_DECL else None
        if match:
            function = cursor.underlying_typedef_type.get_canonical().get_pointee()
            found[match.group(1)].append((int(match.group(2)), tuple(a.spelling for a in function.argument_types())))
    return {key: sorted(rows) for key, rows in found.items()}


def _exports(functions):
    found = defaultdict(list)
    for name, function in functions.items():
        if not name.endswith(PER_THREAD):
            match = _EXPORT.match(name)
            found[match.group(1)].append((int(match.group(2) or 1), name, function.signature()[1]))
    return {key: sorted(rows) for key, rows in found.items()}


def symbols(headers):
    """name -> {release: exported symbol}.  Where a newer header's counts disagree, versions are matched by their types."""
    releases, exports = _releases(headers.include), _exports(headers.functions)
    found = {}
    for key, rows in releases.items():
        exported = exports.get(key, [])
        pairs = {}
        if len(rows) == len(exported):
            pairs = {release: name for (release, types), (_, name, own) in zip(rows, exported) if types == own}
        else:
            for release, types in rows:
                fitting = [name for _, name, own in exported if own == types]
                if len(fitting) == 1:
                    pairs[release] = fitting[0]
        found[key] = pairs
    return found


def entry_points(headers):
    """Rows (name, release, symbol, per-thread symbol), sorted."""
    rows = []
    for name, pairs in symbols(headers).items():
        for release, symbol in pairs.items():
            per_thread = next((symbol + suffix for suffix in PER_THREAD if symbol + suffix in headers.functions), symbol)
            rows.append((name, release, symbol, per_thread))
    return sorted(rows)
