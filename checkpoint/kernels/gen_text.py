#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A kernel's PTX as a C string: gen_text.py NAME.ptx OUTPUT defines NAME_ptx."""
import os
import sys

source, output = sys.argv[1:]
name = os.path.splitext(os.path.basename(source))[0]
with open(source, encoding="ascii") as text, open(output, "w", encoding="ascii") as header:
    header.write(f"/* Made by checkpoint/kernels/gen_text.py. */\nstatic const char {name}_ptx[] =\n")
    for line in text.read().splitlines():
        if not line.startswith("//"):
            header.write('\t"%s\\n"\n' % line.replace("\t", "\\t").replace('"', '\\"'))
    header.write("\t;\n")
