#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the version script of a cuFFT: all functions of the headers, and cufftDebug.  The version is NVIDIA's SONAME.

Arguments: the SONAME, the output, the headers, and further functions.
"""

import re
import sys


def main(soname, output, *more):
    headers = [path for path in more if path.endswith(".h")]
    names = {"cufftDebug", *(set(more) - set(headers))}
    for header in headers:
        with open(header, encoding="utf-8") as f:
            names.update(re.findall(r"\bcufftResult\s+CUFFTAPI\s+(cufft\w+)\s*\(", f.read()))
    if len(names) < 40:
        sys.exit(f"gen_map.py: only {len(names)} functions in {' '.join(headers)}")
    with open(output, "w", encoding="utf-8") as f:
        f.write(f"{soname} {{\nglobal:\n" + "".join(f"\t{name};\n" for name in sorted(names)) + "local:\n\t*;\n};\n")


main(*sys.argv[1:])
