#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gen_inside.py MAP ENTRIES STUBS TABLE SCRIPT: what the pass-through libcuda.so.1 takes from the generated lists.

MAP       libcuda.map of rpc/gen: every name that NVIDIA's libcuda.so.1 exports, declared in a header or not
ENTRIES   cuda_entry_points.inc of rpc/gen: which version of a function cuGetProcAddress gives to whom
STUBS     a jump for each name through its slot of ckt_inside_slots: it touches no argument register, no vector register and nothing on
          the stack, so that no signature needs to be known
TABLE     the names with their stubs, sorted, and the entries with the numbers of their names
SCRIPT    the version script: these names, and the one by which the worker sets the slots
"""
import re
import sys

STUB = """
	.globl %(name)s
	.type %(name)s, @function
	.balign 16
%(name)s:
	endbr64
	jmpq *ckt_inside_slots+%(offset)d(%%rip)
	.size %(name)s, .-%(name)s
"""


def main():
	map_path, entries_path, stubs_path, table_path, script_path = sys.argv[1:]
	with open(map_path, encoding='utf-8') as f:
		names = sorted(re.findall(r'^\t(cu\w+);$', f.read(), re.M))
	with open(entries_path, encoding='utf-8') as f:
		entries = re.findall(r'^CKT_ENTRY_POINT\((\w+), (\d+), (\w+), (\w+)\)$', f.read(), re.M)
	if not names or not entries:
		sys.exit('gen_inside.py: no names in %s, or no entries in %s' % (map_path, entries_path))
	number = {name: i for i, name in enumerate(names)}
	with open(stubs_path, 'w', encoding='utf-8') as f:
		f.write('/* Made by gen_inside.py. */\n#ifndef __x86_64__\n#error "the stubs are written for x86-64"\n#endif\n\t.text\n')
		for name in names:
			f.write(STUB % {'name': name, 'offset': 8 * number[name]})
		f.write('\n\t.bss\n\t.globl ckt_inside_slots\n\t.hidden ckt_inside_slots\n\t.type ckt_inside_slots, @object\n\t.balign 16\n'
			'ckt_inside_slots:\n\t.zero %d\n\t.size ckt_inside_slots, %d\n\t.section .note.GNU-stack,"",@progbits\n' %
			(8 * len(names), 8 * len(names)))
	with open(table_path, 'w', encoding='utf-8') as f:
		f.write('/* Made by gen_inside.py. */\n#include "server/worker/libs/inside/table.h"\n\n')
		f.write(''.join('void %s(void);\n' % name for name in names))
		f.write('\nconst struct ckt_inside_name ckt_inside_names[] = {\n')
		f.write(''.join('\t{"%s", (void *)%s},\n' % (name, name) for name in names))
		f.write('};\nconst unsigned ckt_inside_name_count = %d;\n\nconst struct ckt_inside_entry ckt_inside_entries[] = {\n' % len(names))
		f.write(''.join('\t{"%s", %s, %d, %d},\n' % (name, version, number[legacy], number[per_thread])
				for name, version, legacy, per_thread in entries))
		f.write('};\nconst unsigned ckt_inside_entry_count = %d;\n' % len(entries))
	with open(script_path, 'w', encoding='utf-8') as f:
		f.write('{\nglobal:\n\tckt_inside_set;\n' + ''.join('\t%s;\n' % name for name in names) + 'local:\n\t*;\n};\n')


if __name__ == '__main__':
	main()
