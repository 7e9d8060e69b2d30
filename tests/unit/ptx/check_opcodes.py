#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/softgpu.md and the table of legal spellings have the instructions that the interpreter's tables hold, no more and no fewer.

Argument: the source directory.
"""

import glob
import os
import re
import sys

top = sys.argv[1]
known = set()
for path in glob.glob(os.path.join(top, "softgpu", "ptx", "execution", "op_*.c")):
    with open(path, encoding="utf-8") as f:
        for table in re.findall(r"ckt_ptx_opcodes_\w+\[\] = \{(.*?)\{NULL", f.read(), re.S):
            known |= {name for name, decode in re.findall(r'\{"(\w+)", (\w+)\}', table) if decode != "ckt_ptx_decode_refused"}
with open(os.path.join(top, "docs", "softgpu.md"), encoding="utf-8") as f:
    listed = set(re.findall(r"`(\w+)`", re.search(r"<!-- opcodes -->(.*?)<!-- end -->", f.read(), re.S)[1]))
for name in sorted(known - listed):
    print(f"docs/softgpu.md does not list {name}")
for name in sorted(listed - known):
    print(f"docs/softgpu.md lists {name}, which nothing executes")
with open(os.path.join(top, "softgpu", "ptx", "front", "legal.c"), encoding="utf-8") as f:
    rules = re.search(r"const rules\[\] = \{(.*?)\n\};", f.read(), re.S)[1]
ruled = {name for rule in re.findall(r'"(?:@\d+ )?([^ "\n]+)[^"\n]*"', rules) for name in rule.split(",")}
for name in sorted(known ^ ruled):
    print(f"legal.c {'has no rule for' if name in known else 'has a rule for the unknown'} {name}")
sys.exit(known != listed or known != ruled or not known)
