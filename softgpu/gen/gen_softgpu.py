#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes what the soft GPU takes from the CUDA headers: see --help.

Reads cuda.h and cudaProfiler.h with libclang, every versioned name distinct, and the library's own sources for the names they
define.  Writes

  api.c         for every other documented name a function: a forwarder where it is a per-thread-default-stream variant (_ptsz,
                _ptds) or an older name with the same signature as an implemented one; else a refusal that logs the name once
  tables.c      names of CUresult values, and the table behind cuGetProcAddress
  symbols.map   the version script: the documented names and no others
"""
import argparse
import os
import re
import sys

from clang import cindex

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'rpc', 'gen'))
import libclang  # noqa: E402

VARIANT = re.compile(r'^(cu\w+?)(?:_v(\d+))?(_pt[sd][sz])?$')


def split(name):
	"""'cuMemcpyHtoD_v2_ptds' -> ('cuMemcpyHtoD', 2, '_ptds')"""
	base, version, suffix = VARIANT.match(name).groups()
	return base, int(version or 1), suffix or ''


class Function:
	def __init__(self, cursor):
		self.name = cursor.spelling
		self.result = cursor.result_type.spelling
		self.params = [(a.type.spelling, a.spelling or 'p%d' % i) for i, a in enumerate(cursor.get_arguments())]
		self.signature = (cursor.result_type.get_canonical().spelling,
				  tuple(a.type.get_canonical().spelling for a in cursor.get_arguments()))

	def declaration(self):
		params = ', '.join('%s%s%s' % (t, '' if t.endswith('*') else ' ', n) for t, n in self.params) or 'void'
		return '%s CUDAAPI %s(%s)' % (self.result, self.name, params)

	def arguments(self):
		return ', '.join(n for _, n in self.params)


def parse(include, text, extra=()):
	unit = libclang.parse('softgpu_input.c', text, include, ['-D__CUDA_API_VERSION_INTERNAL', *extra],
			      cindex.TranslationUnit.PARSE_DETAILED_PROCESSING_RECORD)
	errors = [str(d) for d in unit.diagnostics if d.severity >= cindex.Diagnostic.Error]
	if errors:
		sys.exit('gen_softgpu.py: ' + '\n'.join(errors))
	return unit


def functions_of(unit):
	found = {}
	for cursor in unit.cursor.get_children():
		if cursor.kind == cindex.CursorKind.FUNCTION_DECL and cursor.spelling.startswith('cu') and \
		   cursor.storage_class != cindex.StorageClass.STATIC:
			found[cursor.spelling] = Function(cursor)
	return found


def errors_of(unit):
	for cursor in unit.cursor.get_children():
		if cursor.kind == cindex.CursorKind.ENUM_DECL:
			values = [(c.spelling, c.enum_value) for c in cursor.get_children()]
			if any(name == 'CUDA_SUCCESS' for name, _ in values):
				return values
	sys.exit('gen_softgpu.py: no enum with CUDA_SUCCESS in cuda.h')


def versions_of(unit, functions):
	"""[(base, CUDA version, exported name, per-thread name or None)] by matching cudaTypedefs.h's typedefs with the exports: both are
	in order of age, and there are as many of one as of the other."""
	typedefs = {}
	for cursor in unit.cursor.get_children():
		m = re.match(r'^PFN_(cu\w+?)_v(\d+)(_pt[sd][sz])?$', cursor.spelling or '')
		if cursor.kind == cindex.CursorKind.TYPEDEF_DECL and m and not m.group(3):
			typedefs.setdefault(m.group(1), set()).add(int(m.group(2)))
	exports = {}
	for name in functions:
		base, version, suffix = split(name)
		if not suffix:
			exports.setdefault(base, []).append((version, name))
	rows = []
	for base, names in sorted(exports.items()):
		names.sort()
		# cudaProfiler.h has no typedefs; its functions have been there since CUDA 4.0.
		since = sorted(typedefs.get(base, {4000} if base.startswith('cuProfiler') else set()))
		if len(since) != len(names):
			print('gen_softgpu.py: %s: versions %s, exports %s; cuGetProcAddress gets the newest of each' %
			      (base, since, [n for _, n in names]), file=sys.stderr)
			since, names = since[-1:] or [13000], names[-1:]
		for version, (_, name) in zip(since, names):
			per_thread = next((name + s for s in ('_ptsz', '_ptds') if name + s in functions), None)
			rows.append((base, version, name, per_thread))
	return rows


def implemented_in(sources):
	names = set()
	for path in sources:
		with open(path, encoding='utf-8') as f:
			text = f.read()
			names.update(re.findall(r'^(?:CKT_EXPORT )?CUresult (?:CUDAAPI )?(cu\w+)\(', text, re.M))
			# By a macro whose first argument is the name.
			names.update(re.findall(r'^[A-Z_]+\((cu[A-Z]\w+),', text, re.M))
	return names


def write_api(path, functions, implemented):
	missing = []
	with open(path, 'w', encoding='utf-8') as f:
		f.write('/* Made by gen_softgpu.py. */\n#include "softgpu/context/log.h"\n#include "softgpu/cuda_api.h"\n#include "softgpu/stream/stream.h"\n')
		for name in sorted(functions):
			if name in implemented:
				continue
			function = functions[name]
			base, version, suffix = split(name)
			target = name[:-len(suffix)] if suffix else None
			if target in implemented and functions[target].signature == function.signature:
				f.write('\n%s\n{\n\tckt_soft_per_thread_default++;\n\tCUresult result = %s(%s);\n'
					'\tckt_soft_per_thread_default--;\n\treturn result;\n}\n' %
					(function.declaration(), target, function.arguments()))
				continue
			newer = sorted((split(n)[1], n) for n in implemented if n in functions and split(n)[0] == base and not split(n)[2] and
				       split(n)[1] > version and functions[n].signature == function.signature)
			if newer and not suffix:
				f.write('\n%s\n{\n\treturn %s(%s);\n}\n' % (function.declaration(), newer[0][1], function.arguments()))
				continue
			missing.append(name)
			unused = ''.join('\t(void)%s;\n' % n for _, n in function.params)
			f.write('\n%s\n{\n%s\treturn CKT_SOFT_UNSUPPORTED("%s");\n}\n' % (function.declaration(), unused, name))
	return missing


def write_tables(path, errors, versions):
	with open(path, 'w', encoding='utf-8') as f:
		f.write('/* Made by gen_softgpu.py. */\n#include "softgpu/gen.h"\n\nconst struct ckt_soft_error_name ckt_soft_errors[] = {\n')
		for name, _ in errors:
			f.write('\t{%s, "%s"},\n' % (name, name))
		f.write('};\nconst size_t ckt_soft_error_count = sizeof(ckt_soft_errors) / sizeof(*ckt_soft_errors);\n\n'
			'const struct ckt_soft_entry ckt_soft_entries[] = {\n')
		for base, since, name, per_thread in versions:
			f.write('\t{"%s", %d, (void *)%s, %s},\n' % (base, since, name, '(void *)' + per_thread if per_thread else 'NULL'))
		f.write('};\nconst size_t ckt_soft_entry_count = sizeof(ckt_soft_entries) / sizeof(*ckt_soft_entries);\n')


def main():
	parser = argparse.ArgumentParser(description='Generates the soft GPU\'s refusals, tables and version script.')
	parser.add_argument('--include', required=True, help='directory of cuda.h')
	parser.add_argument('--api', required=True)
	parser.add_argument('--tables', required=True)
	parser.add_argument('--map', required=True)
	parser.add_argument('sources', nargs='+', help='the library\'s own files')
	args = parser.parse_args()
	unit = parse(args.include, '#include <cuda.h>\n#include <cudaProfiler.h>\n')
	functions = functions_of(unit)
	# The typedefs need the ordinary view of the headers besides the internal one, for the oldest versions.
	typedefs = parse(args.include, '#include <cudaTypedefs.h>\n')
	implemented = implemented_in(args.sources)
	strange = implemented - set(functions)
	if strange:
		sys.exit('gen_softgpu.py: defined but in no header: ' + ', '.join(sorted(strange)))
	write_api(args.api, functions, implemented)
	write_tables(args.tables, errors_of(unit), versions_of(typedefs, functions))
	with open(args.map, 'w', encoding='utf-8') as f:
		f.write('{\nglobal:\n' + ''.join('\t%s;\n' % name for name in sorted(functions)) + 'local:\n\t*;\n};\n')


if __name__ == '__main__':
	main()
