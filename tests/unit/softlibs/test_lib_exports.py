#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The soft GPU's libraries export what their headers document, under the genuine versions, and find each other where they lie.

usage: test_lib_exports.py NM SOFT-LIBCUDA CUDA-INCLUDE VERSION:HEADER:LIBRARY...
"""
import ctypes
import os
import re
import subprocess
import sys

nm, driver, include = sys.argv[1:4]
failures = 0
for argument in sys.argv[4:]:
	version, header, library = argument.split(':')
	exported = set()
	for line in subprocess.run([nm, '-D', '--defined-only', '--with-symbol-versions', library], check=True, capture_output=True,
				   text=True).stdout.splitlines():
		kind, name = line.split()[-2:]
		if kind != 'A' and not name.endswith('@@' + version):
			print('%s: %s is not of version %s' % (header, name, version))
			failures += 1
		if kind != 'A':
			exported.add(name.split('@')[0])
	# Read here with an expression of its own, so that a fault of the generator shows.
	with open(os.path.join(include, header), encoding='utf-8') as f:
		documented = set(re.findall(r'CUBLASWINAPI\s+(cublas\w+)\s*\(', re.sub(r'//.*', '', f.read())))
	for what, names in (('documented but not exported', documented - exported), ('exported but not documented', exported - documented)):
		for name in sorted(names):
			print('%s: %s: %s' % (header, what, name))
			failures += 1
	if len(documented) < 40:
		print('only %d names found in %s: the expression no longer fits it' % (len(documented), header))
		failures += 1
# Loaded by their paths behind a driver that nobody else sees: they find it by its name.
ctypes.CDLL(driver, mode=os.RTLD_NOW | os.RTLD_LOCAL)
loaded = {argument.split(':')[0]: ctypes.CDLL(argument.split(':')[2], mode=os.RTLD_NOW) for argument in sys.argv[4:]}
handle = ctypes.c_void_p()
for library, create in (('libcublas.so.13', 'cublasCreate_v2'), ('libcublasLt.so.13', 'cublasLtCreate')):
	status = getattr(loaded[library], create)(ctypes.byref(handle))
	if status or not handle.value:
		print('%s: status %d' % (create, status))
		failures += 1
sys.exit(1 if failures else 0)
