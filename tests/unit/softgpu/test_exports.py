#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The soft GPU exports the documented driver API and nothing else.  usage: test_exports.py NM LIBRARY CUDA-INCLUDE"""
import re
import subprocess
import sys

nm, library, include = sys.argv[1:]
exported = {line.split()[-1] for line in subprocess.run([nm, '-D', '--defined-only', library], check=True, capture_output=True,
							 text=True).stdout.splitlines()}
# The preprocessor's view of the header, read here with an expression of its own so that a fault of the generator shows.
text = subprocess.run(['cc', '-E', '-P', '-D__CUDA_API_VERSION_INTERNAL', '-I' + include, '-x', 'c', '-'], check=True, capture_output=True,
		      text=True, input='#include <cuda.h>\n#include <cudaProfiler.h>\n').stdout
documented = set(re.findall(r'(?<!static inline )\bCUresult\s+(cu\w+)\s*\(', text))
documented -= set(re.findall(r'static inline CUresult\s+(cu\w+)\s*\(', text))
failures = 0
for what, names in (('documented but not exported', documented - exported), ('exported but not documented', exported - documented)):
	for name in sorted(names):
		print('%s: %s' % (what, name))
		failures += 1
if len(documented) < 600:
	print('only %d names found in the headers: the expression no longer fits them' % len(documented))
	failures += 1
sys.exit(1 if failures else 0)
