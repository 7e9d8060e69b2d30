#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every path that returns CUDA_ERROR_NOT_SUPPORTED names itself: it goes through the helper of its part, which says once what is not supported.

	client/cuda, cudacommon	CKT_CUDACOMMON_UNSUPPORTED, ckt_call_unsupported	client/cudart	ckt_rt_unsupported
	server/worker		CKT_WORKER_UNSUPPORTED				softgpu		CKT_SOFT_UNSUPPORTED

What CUDA itself answers with every driver is CKT_AS_CUDA_NOT_SUPPORTED, and what no program gets CKT_INTERNAL_NOT_SUPPORTED.  The code itself
stands only where these are defined, where it is compared with, and in the lines below.
"""
import pathlib
import re
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
CODE = re.compile(r'\b(CUDA_ERROR_NOT_SUPPORTED|cudaErrorNotSupported)\b')
COMPARED = re.compile(r'[=!]= (\(\w+\))?(CUDA_ERROR_NOT_SUPPORTED|cudaErrorNotSupported)\b')
TEXT = re.compile(r'"(?:[^"\\]|\\.)*"|/\*.*?\*/|^\s*\*.*$|/\*.*$')
# (file, how often): the helpers, tables of names, and what is named in another way.
ALLOWED = {
	'client/conn/conn.c': 1,	# ckt_call_unsupported
	'client/conn/reply.c': 1,	# client and server do not fit together, said for each such call
	'client/cudart/init.c': 1,	# ckt_rt_unsupported
	'client/libs/cublas_status.h': 1,	# translated to cuBLAS's
	'client/libs/nccl/comm.c': 1,	# translated to NCCL's
	'client/patch/compat.c': None,	# refuse(), and adapters over functions that our runtime has
	'cudacommon/interface.h': 1,		# CKT_AS_CUDA_NOT_SUPPORTED
	'server/worker/session/call.c': 1,	# ckt_worker_unsupported
	'server/worker/libs/inside/passthrough.c': 1,	# to a library, about what the driver lacks
	'server/worker/session/metrics.c': 1,	# counts it as a kind of failure
	'softgpu/context/common_hooks.c': 1,	# ckt_cudacommon_unsupported
	'softgpu/context/log.c': 1,		# ckt_soft_unsupported
}


def main():
	bad = 0
	for directory in ('checkpoint', 'client', 'cudacommon', 'server/worker', 'softgpu'):
		for path in sorted((TOP / directory).rglob('*.[ch]')):
			name = str(path.relative_to(TOP))
			if 'client/nvml' in name or name.endswith(('error.c', 'error_table.c')):
				continue
			lines = [(number, line) for number, line in enumerate(path.read_text().splitlines(), 1)
				if CODE.search(COMPARED.sub('', TEXT.sub('', line)))]
			allowed = ALLOWED.get(name, 0)
			if allowed is not None and len(lines) != allowed:
				bad += 1
				for number, line in lines:
					print(f'{name}:{number}: {line.strip()}')
				print(f'{name}: {len(lines)} instead of {allowed}')
	return 1 if bad else 0


if __name__ == '__main__':
	sys.exit(main())
