#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every instruction form on the soft GPU, compared with what an H200 answered (vectors.xz).

	soft_forms.py RECORD LIBCUDA FOLDER [FORM...]
	soft_forms.py --compiled RECORD LIBCUDA FOLDER		as machine code, the families that are written out as C
	soft_forms.py --compiled-all RECORD LIBCUDA FOLDER	as machine code, all forms: a quarter of an hour of one core

Exact forms must agree in every bit, approximate ones within bounds.py; what is refused stands in refused.list with its reason, and what
answers as the ISA says though an H200 does not, in differ.list.  A form
that is accepted without a vector is a failure: of all that forms.py can spell, of the opcodes in the interpreter's tables, which have
forms here or stand in elsewhere.list with what tests them, and of what its table of spellings allows (rules.py).  So is a spelling that
it accepts and ptxas does not.  unrecorded.list names the forms that wait for a GPU.

As machine code many forms share a kernel, so that the C compiler runs a few dozen times; what only calls its handler is the same there as interpreted.
"""
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys

import kit
from bounds import approximate, beyond, filtered, filtered_bad, matrix_sum, matrix_within, within
from forms import candidates, check_text, listed
from pack import unpack
from rules import spellings, unrecorded
from values import SIZE, columns

HERE = pathlib.Path(__file__).resolve().parent
TOGETHER = 32		# forms that share a kernel where it becomes machine code
# Opcodes that compiled kernels have a form for.  Of those that move memory, the spellings without order, scope and advice, which make no difference there.
WRITTEN_OUT = set('''abs activemask add and bfe bfi bfind bmsk brev clz cnot copysign cvt div dp2a dp4a elect fma fns lop3 mad mad24 match max min mov mul mul24 neg not or popc prmt rcp redux rem sad selp
	set setp shf shfl shl shr slct sqrt sub szext vote xor'''.split())
MEMORY = {'ld', 'st', 'atom', 'red'}
ADVICE = re.compile(r'\.(volatile|relaxed|acquire|release|acq_rel|mmio|cta|cluster|gpu|sys|c[agsv]|lu|w[bt]|nc|noftz)\b|::')
UNPACK = {1: 'B', 2: 'H', 4: 'I', 8: 'Q'}


def reasons(name):
	"""{entry: reason} of a committed list; entry and reason stand a tab apart."""
	lines = [line for line in (HERE / name).read_text().splitlines() if line and not line.startswith('#')]
	return dict(line.split('\t', 1) for line in lines)


def accepted(record, library, folder, forms):
	texts = folder.resolve() / 'texts'
	lines = ['.version 9.0\n.target sm_90\n.address_size 64\n' + '\n'.join(check_text(form, 0)) for form in forms]
	texts.write_bytes(b''.join(text.encode() + b'\0' for text in lines))
	ran = subprocess.run([record, '--loads', str(texts), library], capture_output=True, text=True, check=False)
	answers = ran.stdout.strip()
	if len(answers) != len(forms):
		raise SystemExit('the recorder loaded %d of %d texts: status %d: %s' % (len(answers), len(forms), ran.returncode, ran.stderr[-2000:]))
	return {form.name for form, answer in zip(forms, answers) if answer == '1'}


def cells(kinds, data, n):
	"""One list of n numbers for each output."""
	out, at = [], 0
	for kind in kinds:
		size = SIZE[kind]
		out.append(struct.unpack('<%d%s' % (n, UNPACK[size]), data[at:at + size * n]))
		at += size * n
	return out


def compare(form, mine, real):
	"""(rows that differ, the first of them told) or None."""
	if mine == real and not approximate(form.name):
		return None
	inputs, ours, theirs = columns(tuple(form.ins)), cells(form.outs, mine, form.n), cells(form.outs, real, form.n)
	bad = [row for row in range(form.n) if any(o[row] != t[row] for o, t in zip(ours, theirs))]
	if approximate(form.name):
		bad = [row for row in bad if not within(form.name, row, inputs, ours[0][row], theirs[0][row])]
		bad = bad or beyond(form.name, inputs, ours[0])
		if not bad and beyond(form.name, inputs, theirs[0]):
			return 1, 'the GPU is beyond the bound of bounds.py in row %d' % beyond(form.name, inputs, theirs[0])[0]
	elif matrix_sum(form.name):
		bad = [row for row in bad if not matrix_within(form.name, row, ours, theirs)]
	elif filtered(form):
		bad = filtered_bad(form, bad, ours, theirs)
	if not bad:
		return None
	hexes = lambda lists: ' '.join('%x' % v[bad[0]] for v in lists)
	return len(bad), 'row %d: of %s: %s instead of %s' % (bad[0], hexes(inputs), hexes(ours), hexes(theirs))


def opcodes():
	"""What the interpreter's tables name."""
	found = set()
	for source in (HERE.parents[1] / 'softgpu' / 'ptx').rglob('*.c'):
		for table in re.findall(r'struct ptx_opcode ckt_ptx_opcodes_\w+\[\] = (\{.*?\});', source.read_text(), re.S):
			found |= set(re.findall(r'\{"(\w+)"', table))
	return found


def written_out(name):
	opcode = re.match(r'[a-z0-9]+', name)[0]
	if opcode in ('atom', 'red') and '.global' not in name and '.shared' not in name:
		return False	# as if of global memory
	return opcode in WRITTEN_OUT or (opcode in MEMORY and not ADVICE.search(name))


def machine_code(folder):
	"""The environment in which kernels become machine code before their first launch, kept in a place that is empty now."""
	shutil.rmtree(folder, ignore_errors=True)
	return dict(os.environ, CRICKET_SOFT_COMPILE='1', XDG_CACHE_HOME=str(folder.resolve()))


def main(record, library, folder, only, compiled=None):
	folder, failures, together = pathlib.Path(folder), [], TOGETHER if compiled else 1
	folder.mkdir(parents=True, exist_ok=True)
	differ = reasons('differ.list')
	vectors, refused, elsewhere, known = unpack(HERE / 'vectors.xz'), reasons('refused.list'), reasons('elsewhere.list'), candidates()
	forms = {form.name: form for form, _, _ in listed()}
	if compiled:
		only = [name for name in forms if name not in refused and (compiled == 'all' or written_out(name))]
	if only:
		known = forms = {name: forms[name] for name in only}
	unrecorded_yet = (HERE / 'unrecorded.list').read_text().splitlines()
	failures += ['%s: stands in unrecorded.list, but has a vector' % name for name in unrecorded_yet if name in vectors]
	takes = accepted(record, library, folder, list(known.values()))
	for name in takes:
		if name in refused:
			failures.append('%s: accepted, but stands in refused.list' % name)
	failures += ['%s: accepted, though no assembler takes it' % name for name in takes if name not in forms]
	failures += ['%s: refused' % name for name in forms if name not in takes and name not in refused]
	if not only:
		tested = {opcode for opcode, *_ in spellings([forms[name] for name in forms if name in vectors or name in unrecorded_yet])}
		failures += ['%s: the interpreter has this opcode, nothing here tests it' % op for op in sorted(opcodes() - tested - set(elsewhere))]
		failures += ['%s: legal.c allows it, nothing here has it' % what for what in unrecorded([forms[name] for name in takes if name in vectors or name in unrecorded_yet], elsewhere)]
		failures += ['%s: in refused.list, but no form' % name for name in refused if name not in forms]
	run = [name for name in forms if name in takes]
	places, _, _ = kit.write(folder / 'kit', set(run), together)
	environment = machine_code(folder / 'cache') if compiled else None
	ran = subprocess.run([record, str(folder / 'kit'), str(folder / 'result'), library] + (['900'] if compiled else []), capture_output=True, text=True, check=False, env=environment)
	told = (folder / 'result.txt').read_text()
	failures += [line for line in told.splitlines() if line.startswith('failed: ')]
	if ran.returncode > 1 or 'done' not in told:
		raise SystemExit('the recorder ended with %d: %s%s' % (ran.returncode, ran.stderr[-2000:], told))
	data = (folder / 'result').read_bytes()
	agree = waiting = 0
	if compiled:
		# Modules of one kernel each may be the same code.
		modules, objects = sum(path.read_text().count('.entry') > 1 for path in (folder / 'kit').glob('*.ptx')), len(list((folder / 'cache').rglob('*.so')))
		if objects < modules:
			failures.append('%d modules became %d objects of machine code' % (modules, objects))
	for name, key, output, size in places:
		if name not in vectors and name in unrecorded_yet:
			waiting += 1
			continue
		if name not in vectors or vectors[name][0] != key:
			failures.append('%s: no vector for this code and these values: record again' % name)
			continue
		difference = compare(forms[name], data[output:output + size], vectors[name][1])
		if bool(difference) != (name in differ):
			failures.append('%s: %s' % (name, '%d rows differ, %s' % difference if difference else 'stands in differ.list, but agrees'))
		else:
			agree += 1
	print('\n'.join(failures))
	print('%d forms agree, %d are refused as listed, %d wait to be recorded, %d failures' % (agree, len([n for n in forms if n in refused and n not in takes]), waiting, len(failures)))
	return 1 if failures else 0


if __name__ == '__main__':
	if sys.argv[1] in ('--compiled', '--compiled-all'):
		sys.exit(main(*sys.argv[2:5], [], 'all' if sys.argv[1] == '--compiled-all' else 'written'))
	sys.exit(main(*sys.argv[1:4], sys.argv[4:]))
