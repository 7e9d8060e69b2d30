#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The head of compiled kernels as a C string: gen_head.py kernel_head.in lane.h OUTPUT."""
import sys

head, lane, output = sys.argv[1:]
text = open(head).read().replace('@LANE@', open(lane).read())
with open(output, 'w') as f:
	f.write('#include "softgpu/ptx/compiled/compile.h"\n\nconst char ckt_ptx_kernel_head[] =\n')
	for line in text.splitlines():
		f.write('\t"%s\\n"\n' % line.replace('\\', '\\\\').replace('"', '\\"'))
	f.write('\t;\n')
