#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Generates the functions of the soft GPU's cuBLAS and cuBLASLt from the toolkit's headers: see --help.

Reads cublas_v2.h (or cublasLt.h) with libclang, and finds the functions that the library's own sources define.  Writes

  OUT.c    every other function.  If FAMILIES has its name, it fills a struct ckt_blas_job by the names of its parameters and submits
           it.  Otherwise, it refuses and logs its name once.
  OUT.map  the version script: the header's functions under the genuine library's version, and no others
"""
import argparse
import os
import re
import sys

from clang import cindex

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', '..', 'rpc', 'gen'))
import libclang  # noqa: E402

# VECTORS: functions without a type of computation.  RESULT: functions that read or write numbers on the host, so the call waits.
VECTORS = {'execution': '(cudaDataType)-1'}
RESULT = {'flags': ['CKT_CUBLAS_RESULT']}

# A pattern of the name without 'cublas', '_v2' and '_64'; the family (None: the name without its type); the job's other fields.
FAMILIES = [
	(r'[SDCZH]gemm|[CZ]gemm3m|[SDCZH]gemmBatched|[SDCZH]gemmStridedBatched|Cgemm3m(Strided)?Batched', 'gemm', {}),
	(r'GemmEx|GemmBatchedEx|GemmStridedBatchedEx|[SC]gemmEx|Cgemm3mEx', 'gemm', {}),
	(r'([SDCZ]|HSH|HSS|TST|TSS)gemv((Strided)?Batched)?', 'gemv', {}),
	(r'[SDCZ](gbmv|tr[ms]v|tb[ms]v|tp[ms]v)', None, {}),
	(r'[SDCZ]symv', 'symv', {}),
	(r'[CZ]hemv', 'symv', {'hermitian': 'true'}),
	(r'[SD]s[bp]mv', None, {}),
	(r'[CZ]h([bp]mv)', r's\1', {'hermitian': 'true'}),
	(r'[SD]ger|[CZ]geru', 'ger', {}),
	(r'[CZ]gerc', 'ger', {'conjugate': 'true'}),
	(r'[SDCZ](syr2?)|[SD](spr2?)', r'\1\2', {}),
	(r'[CZ]he(r2?)', r'sy\1', {'hermitian': 'true'}),
	(r'[CZ]hp(r2?)', r'sp\1', {'hermitian': 'true'}),
	(r'[SDCZ](syrk|syr2k|syrkx|symm)', r'\1', {}),
	(r'[CZ]he(rk|r2k|rkx)', r'sy\1', {'hermitian': 'true'}),
	(r'[CZ]hemm', 'symm', {'hermitian': 'true'}),
	(r'[SDCZ](trmm|trsm|geam|dgmm|tpttr|trttp)', r'\1', {}),
	(r'[SDCZ]trsmBatched', 'trsm', {}),
	(r'Csyrk(3m)?Ex', 'syrk', {}),
	(r'Cherk(3m)?Ex', 'syrk', {'hermitian': 'true'}),
	(r'[SDCZ](axpy|copy|swap)', r'\1', VECTORS),
	(r'[SDCZ]scal|Csscal|Zdscal', 'scal', VECTORS),
	(r'AxpyEx', 'axpy', {}),
	(r'ScalEx', 'scal', {}),
	(r'CopyEx', 'copy', VECTORS),
	(r'SwapEx', 'swap', VECTORS),
	(r'[SD]dot|[CZ]dotu', 'dot', {**VECTORS, **RESULT}),
	(r'[CZ]dotc', 'dot', {'conjugate': 'true', **VECTORS, **RESULT}),
	(r'DotEx', 'dot', RESULT),
	(r'DotcEx', 'dot', {'conjugate': 'true', **RESULT}),
	(r'([SD]|Sc|Dz)(nrm2|asum)', r'\2', {**VECTORS, **RESULT}),
	(r'Nrm2Ex', 'nrm2', RESULT),
	(r'AsumEx', 'asum', RESULT),
	(r'I[sdcz]amax|IamaxEx', 'iamax', {**VECTORS, **RESULT}),
	(r'I[sdcz]amin|IaminEx', 'iamax', {'minimum': 'true', **VECTORS, **RESULT}),
	(r'[SDCZ]rot|Csrot|Zdrot', 'rot', {'factors': {'c': 'alpha', 's': 'beta'}, **VECTORS}),
	(r'RotEx', 'rot', {'factors': {'c': 'alpha', 's': 'beta'}}),
	(r'[SDCZ]rotg|RotgEx', 'rotg', RESULT),
	(r'[SD]rotm', 'rotm', {**VECTORS, **RESULT}),
	(r'RotmEx', 'rotm', RESULT),
	(r'[SD]rotmg|RotmgEx', 'rotmg', RESULT),
	(r'[SDCZ](getrf|getri|matinv)Batched', r'\1', {}),
	(r'[SDCZ](getrs|geqrf|gels)Batched', r'\1', {'flags': ['CKT_CUBLAS_HOST_INFO']}),
]

# Parameter -> operand of the job.  PARTS: parameter -> field of an operand.
OPERANDS = {'A': 'A', 'Aarray': 'A', 'AP': 'A', 'B': 'B', 'Barray': 'B', 'C': 'C', 'Carray': 'C', 'Ainv': 'C', 'x': 'x', 'xarray': 'x',
	    'y': 'y', 'yarray': 'y', 'TauArray': 'x', 'result': 'result', 'c': 'c', 's': 's', 'a': 'a', 'b': 'b', 'param': 'param',
	    'd1': 'd1', 'd2': 'd2', 'x1': 'x1', 'y1': 'y1'}
PARTS = {'lda': ('A', 'ld'), 'ldb': ('B', 'ld'), 'ldc': ('C', 'ld'), 'lda_inv': ('C', 'ld'), 'incx': ('x', 'ld'), 'incy': ('y', 'ld'),
	 'strideA': ('A', 'stride'), 'strideB': ('B', 'stride'), 'strideC': ('C', 'stride'), 'stridex': ('x', 'stride'),
	 'stridey': ('y', 'stride'), 'Atype': ('A', 'type'), 'Btype': ('B', 'type'), 'Ctype': ('C', 'type'), 'xType': ('x', 'type'),
	 'yType': ('y', 'type'), 'resultType': ('result', 'type'), 'paramType': ('param', 'type'), 'd1Type': ('d1', 'type'),
	 'd2Type': ('d2', 'type'), 'x1Type': ('x1', 'type'), 'y1Type': ('y1', 'type')}
# Parameters that are the type of two operands.
PAIRS = {'abType': ('a', 'b'), 'csType': ('c', 's')}
PLAIN = {'m': 'm', 'n': 'n', 'k': 'k', 'kl': 'kl', 'ku': 'ku', 'nrhs': 'nrhs', 'batchCount': 'batch', 'batchSize': 'batch', 'trans': 'trans',
	 'transa': 'transa', 'transb': 'transb', 'uplo': 'uplo', 'side': 'side', 'mode': 'side', 'diag': 'diag', 'computeType': 'compute',
	 'algo': 'algo', 'executionType': 'execution', 'executiontype': 'execution'}
POINTERS = {'P': 'pivot', 'devIpiv': 'pivot', 'info': 'info', 'devInfoArray': 'pivot'}
TYPES = {'float': 'CUDA_R_32F', 'double': 'CUDA_R_64F', 'cuComplex': 'CUDA_C_32F', 'cuDoubleComplex': 'CUDA_C_64F', '__half': 'CUDA_R_16F',
	 '__nv_bfloat16': 'CUDA_R_16BF', 'int': 'CUDA_R_32I', 'int64_t': 'CUDA_R_64I'}


class Function:
	def __init__(self, cursor):
		self.name = cursor.spelling
		self.result = cursor.result_type.spelling
		self.parameters = [(a.type, a.spelling or 'p%d' % i) for i, a in enumerate(cursor.get_arguments())]

	def declaration(self):
		def declare(kind, name):
			m = re.match(r'(.*)\[\]$', kind.spelling)
			return '%s %s[]' % (m.group(1), name) if m else '%s%s%s' % (kind.spelling, '' if kind.spelling.endswith('*') else ' ', name)
		return '%s %s(%s)' % (self.result, self.name, ', '.join(declare(*p) for p in self.parameters) or 'void')


def pointee(kind):
	"""The type to which a pointer or array parameter points."""
	if kind.kind in (cindex.TypeKind.INCOMPLETEARRAY, cindex.TypeKind.CONSTANTARRAY):
		return kind.element_type
	return kind.get_pointee()


def plain_name(kind):
	return kind.spelling.replace('const ', '').replace(' const', '').strip()


def family_of(name):
	base = re.sub(r'_64$', '', name)
	base = re.sub(r'_v2$', '', base)[len('cublas'):]
	for pattern, family, extra in FAMILIES:
		m = re.fullmatch(pattern, base)
		if m:
			return (m.expand(family) if family else base[1:]), extra
	return None, None


class Job:
	"""The fields of a call's struct ckt_blas_job, in order."""

	def __init__(self, function, factors):
		self.fields, self.parts, self.flags, self.factors = {}, {}, [], factors
		names = [n for _, n in function.parameters]
		for kind, name in function.parameters[1:]:
			self.add(function, kind, name, names)

	def add(self, function, kind, name, names):
		factor = self.factors.get(name, name)
		if factor in ('alpha', 'beta'):
			to = pointee(kind)
			self.flags.append('CKT_CUBLAS_' + factor.upper())
			self.fields[factor] = '{.p = %s, .type = %s}' % (name, self.scalar_type(to, names))
		elif name in OPERANDS:
			to = pointee(kind)
			is_list = to.get_canonical().kind == cindex.TypeKind.POINTER
			if is_list:
				to = to.get_pointee()
			# With a matrix among the parameters, the packed one is operand x.
			part = self.parts.setdefault('x' if name == 'AP' and 'A' in names else OPERANDS[name], {})
			part['p'] = '(void *)(uintptr_t)' + name
			if plain_name(to) != 'void':
				part['type'] = TYPES[plain_name(to)]
			if is_list:
				part['list'] = 'true'
		elif name in PARTS:
			operand, field = PARTS[name]
			self.parts.setdefault(operand, {})[field] = name
		elif name in PAIRS:
			for operand in PAIRS[name] if not self.factors else ():
				self.parts.setdefault(operand, {})['type'] = name
		elif name in PLAIN:
			self.fields[PLAIN[name]] = name if kind.get_canonical().kind in (cindex.TypeKind.INT, cindex.TypeKind.LONG) else '(int)' + name
		elif name in POINTERS:
			self.fields[POINTERS[name]] = '(int *)(uintptr_t)' + name
		elif name != 'alphaType':
			sys.exit('gen_soft_blas.py: %s: what is %s?' % (function.name, name))

	@staticmethod
	def scalar_type(to, names):
		if plain_name(to) != 'void':
			return TYPES[plain_name(to)]
		for name in ('alphaType', 'csType'):
			if name in names:
				return name
		return 'ckt_soft_cublas_scale_type(computeType, Atype)'

	def text(self):
		lines = ['.%s = %s,' % item for item in self.fields.items()]
		for operand, parts in self.parts.items():
			lines.append('.%s = {%s},' % (operand, ', '.join('.%s = %s' % p for p in parts.items())))
		return ''.join('\t\t%s\n' % line for line in lines)


def emit_call(function, family, extra):
	job = Job(function, extra.get('factors', {}))
	lines = job.text() + ''.join('\t\t.%s = %s,\n' % item for item in extra.items() if isinstance(item[1], str))
	# An empty batch does nothing.  A function without batches has one operand.
	early = ''
	if 'batch' in job.fields:
		early = '\tif (handle && !%s)\n\t\treturn CUBLAS_STATUS_SUCCESS;\n' % job.fields['batch']
	flags = ' | '.join(job.flags + extra.get('flags', [])) or '0'
	return ('CKT_CUBLAS_API %s\n{\n%s\tstruct ckt_blas_job job = {\n\t\t.name = "%s",\n%s\t};\n'
		'\treturn ckt_soft_cublas_submit(handle, &job, &ckt_cublas_%s, %s);\n}\n' %
		(function.declaration(), early, function.name, lines, family, flags))


def emit_refusal(function, refuse):
	unused = ''.join('\t(void)%s;\n' % n for _, n in function.parameters)
	value = '%s("%s")' % (refuse, function.name) if function.result == 'cublasStatus_t' else '0'
	if function.result == 'void':
		return 'CKT_CUBLAS_API %s\n{\n%s\t%s("%s");\n}\n' % (function.declaration(), unused, refuse, function.name)
	return 'CKT_CUBLAS_API %s\n{\n%s\treturn %s;\n}\n' % (function.declaration(), unused, value)


def half_text(include):
	"""The functions of halves, which cublas_api.h declares only for C++.  They have pointers to halves, so in C any type of that name works."""
	with open(os.path.join(include, 'cublas_api.h'), encoding='utf-8') as f:
		blocks = re.findall(r'^#if defined\(__cplusplus\)\n(.*?)^#endif', f.read(), re.M | re.S)
	blocks = [b for b in blocks if re.search(r'cublas\w+\(', b) and '__half' in b and 'inline' not in b]
	return 'typedef struct __half __half;\ntypedef struct __nv_bfloat16 __nv_bfloat16;\n' + '\n'.join(blocks)


def functions_of(header, include, more):
	unit = libclang.parse('soft_blas_input.c', '#include <%s>\n%s' % (header, more), include, ['-std=gnu17'])
	errors = [str(d) for d in unit.diagnostics if d.severity >= cindex.Diagnostic.Error]
	if errors:
		sys.exit('gen_soft_blas.py: ' + '\n'.join(errors))
	prefix = 'cublasLt' if header == 'cublasLt.h' else 'cublas'
	return {c.spelling: Function(c) for c in unit.cursor.get_children()
		if c.kind == cindex.CursorKind.FUNCTION_DECL and c.spelling.startswith(prefix) and c.storage_class != cindex.StorageClass.STATIC}


def defined_in(sources):
	names = set()
	for path in sources:
		with open(path, encoding='utf-8') as f:
			text = f.read()
		# A definition, or the first argument of a macro that makes one.
		names |= set(re.findall(r'^CKT_CUBLAS_API .*?\b(cublas\w+)\(', text, re.M))
		names |= set(re.findall(r'^[A-Z_]+\((cublas\w+)[,)]', text, re.M))
	return names


def main():
	parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
	parser.add_argument('--include', required=True, help="the toolkit's include directory")
	parser.add_argument('--header', required=True, help='cublas_v2.h or cublasLt.h')
	parser.add_argument('--version', required=True, help="the genuine library's version of its symbols")
	parser.add_argument('--calls', required=True, help='the C file to write')
	parser.add_argument('--map', required=True, help='the version script to write')
	parser.add_argument('sources', nargs='*')
	args = parser.parse_args()
	more = half_text(args.include) if args.header == 'cublas_v2.h' else ''
	functions, own = functions_of(args.header, args.include, more), defined_in(args.sources)
	out = ['/* Made by softgpu/libs/gen/gen_soft_blas.py: do not edit. */\n#include "softgpu/libs/cublas/handle.h"\n', more]
	if args.header == 'cublasLt.h':
		out[0] = out[0].replace('cublas/handle.h', 'cublasLt/objects.h')
	refuse = 'ckt_soft_cublas_unsupported' if args.header == 'cublas_v2.h' else 'ckt_soft_cublaslt_unsupported'
	for name, function in functions.items():
		if name in own:
			continue
		family, extra = family_of(name) if args.header == 'cublas_v2.h' else (None, None)
		out.append(emit_call(function, family, extra) if family else emit_refusal(function, refuse))
	with open(args.calls, 'w', encoding='utf-8') as f:
		f.write('\n'.join(out))
	with open(args.map, 'w', encoding='utf-8') as f:
		f.write('%s {\nglobal:\n%slocal:\n\t*;\n};\n' % (args.version, ''.join('\t%s;\n' % n for n in sorted(functions))))


if __name__ == '__main__':
	main()
