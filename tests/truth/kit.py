#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes what the recorder runs: the PTX of every listed form, the operands' values and a manifest.

	kit.py FOLDER [--record PROGRAM] [--misuse PROGRAM] [--stamp FILE]

Every form is a kernel of its own: thread k loads the k-th value of each operand, applies the form and stores what came out.  The manifest:

	module FILE
	thing ...		the texture or surface of the next form: forms_texture.py; at its end "back" where its contents are the output
	form KERNEL INPUT_OFFSET OUTPUT_OFFSET OUTPUT_BYTES SCRATCH_BYTES THREADS KEY NAME

where the input offset is into values.bin, the output offset into the recorder's result, and the key tells whether recorded outputs still
answer for the same code and values.
"""
import argparse
import pathlib
import re
import shutil
import zlib

from forms import listed, reg
from values import N, SIZE, columns, encode

FORMS_A_MODULE = 48
BLOCK = 128
LOAD = {2: 'b16', 4: 'b32', 8: 'b64'}


def results_bytes(form):
	return sum(SIZE[k] for k in form.outs) * form.n


def kernel(forms, name):
	"""The text of one or several forms with the same operands; the results of each stand behind those of the one before, then a cell of 16 bytes a thread each."""
	first = forms[0]
	declare = ['.reg %s a%d;' % (reg(k), n) for n, k in enumerate(first.ins)]
	object_param = ', .param .u64 object' if first.thing else ''
	lines = [first.before.replace('#', name[1:])] if first.before else []
	lines += ['.visible .entry %s(.param .u64 in, .param .u64 out%s) %s {' % (name, object_param, first.entry), '.reg .b32 index, lane_word; .reg .pred as_pred;',
		 '.reg .b64 base_in, base_out, step, y0;', ' '.join(declare),
		 'ld.param.u64 base_in, [in]; ld.param.u64 base_out, [out];',
		 'mov.u32 index, %ctaid.x; shl.b32 index, index, 7; mov.u32 lane_word, %tid.x; add.u32 index, index, lane_word;']
	if first.thing:
		lines.append('.reg .b64 t0; ld.param.u64 t0, [object];')
	offset = 0
	for n, kind in enumerate(first.ins):
		size = SIZE[kind]
		lines.append('.reg .b64 x%d; mul.wide.u32 step, index, %d; add.u64 x%d, base_in, step; add.u64 x%d, x%d, %d;' % (n, size, n, n, n, offset))
		if kind == 'pred':
			lines.append('ld.global.b32 lane_word, [x%d]; setp.ne.b32 a%d, lane_word, 0;' % (n, n))
		else:
			lines.append('ld.global.%s a%d, [x%d];' % (LOAD[size], n, n))
		offset += size * N
	cell, at, stores = sum(results_bytes(form) for form in forms), 0, []
	for size in sorted({SIZE[kind] for form in forms for kind in form.outs}):
		lines.append('.reg .b64 out%d; mul.wide.u32 out%d, index, %d; add.u64 out%d, base_out, out%d;' % (size, size, size, size, size))
	for k, form in enumerate(forms):
		mark = 'd%d_' % k if len(forms) > 1 else 'd'
		lines += ['.reg %s %s%d;' % (reg(kind), mark, n) for n, kind in enumerate(form.outs)]
		if len(forms) > 1:
			lines.append('{')
		lines.append(re.sub(r'\bd(\d+)\b', mark + r'\1', form.head))
		if 'y0' in form.body:
			lines.append('mul.wide.u32 step, index, 16; add.u64 y0, base_out, step; add.u64 y0, y0, %d;' % cell)
		lines.append(re.sub(r'\bd(\d+)\b', mark + r'\1', form.body.replace('#', name[1:] if len(forms) == 1 else '%s_%d' % (name[1:], k))))
		if len(forms) > 1:
			lines.append('}')
		for n, kind in enumerate([] if form.back else form.outs):
			size, value = SIZE[kind], '%s%d' % (mark, n)
			if kind == 'pred':
				lines.append('.reg .b32 w%s; selp.b32 w%s, 1, 0, %s;' % (value, value, value))
				value = 'w' + value
			stores.append('st.global.%s [out%d+%d], %s;' % (LOAD[size], size, at, value))
			at += size * form.n
		cell += 16 * form.n
	return '\n'.join(lines + stores + ['ret;', '}'])


def joinable(form):
	"""Whether a kernel may hold it beside others: nothing of it outlives its text, and it leaves its operands as they are."""
	return not (form.thing or form.before or form.entry or re.search(r'\b(exit|ret)\b', form.body) or re.search(r'(^|[;{}]) *(@!?\w+ )?[\w.:]+ \{?a\d+,', form.body))


def join(forms, together):
	"""Lists of forms that share a kernel, in the order of their first ones."""
	if together == 1:
		return [[form] for form in forms]
	out, open_ones = [], {}
	for form in forms:
		key = tuple(form.ins), form.n
		shared = sum(int(n) for n in re.findall(r'\.shared[^;]*\[(\d+)\];', form.head))
		most = min(together, 32768 // (8 * shared)) if shared else together
		group = open_ones.get(key) if joinable(form) else None
		if group is None or len(group) >= most:
			out.append([])
			group = out[-1]
			if joinable(form):
				open_ones[key] = group
		group.append(form)
	return out


def modules(names, together):
	"""(target, version, lists of forms that share a kernel), each of at most FORMS_A_MODULE kernels; those named, or all."""
	groups = {}
	for form, target, version in listed():
		if names is not None and form.name not in names:
			continue
		groups.setdefault((target, version), []).append(form)
	for (target, version), forms in groups.items():
		alone = [f for f in forms if f.name[1:3] in ('xq', 'uq') or f.name.startswith('istypep')]		# the driver's compiler refuses some: a module each
		kernels = join([f for f in forms if f not in alone], together)
		for start in range(0, len(kernels), FORMS_A_MODULE):
			yield target, version, kernels[start:start + FORMS_A_MODULE]
		for form in alone:
			yield target, version, [[form]]


def write(folder, names=None, together=1):
	"""together: forms that share a kernel at most.  Returns (name, key, output offset, bytes) of every form, and how many bytes all outputs and values have."""
	folder = pathlib.Path(folder)
	folder.mkdir(parents=True, exist_ok=True)
	values, manifest, inputs, sums, things, output, number, places = bytearray(), [], {}, {}, {}, 0, 0, []
	for place, (target, version, kernels) in enumerate(modules(names, together)):
		name = 'm%02d.ptx' % place
		text = ['.version ' + version, '.target sm_' + target, '.address_size 64']
		manifest.append('module ' + name)
		for forms in kernels:
			first, start, operands = forms[0], output, tuple(forms[0].ins)
			if operands not in inputs:
				begin = inputs[operands] = len(values)
				for kind, column in zip(operands, columns(operands)):
					values += encode(kind, column)
				sums[operands] = zlib.crc32(values[begin:])
				values += bytes(-len(values) % 256)
			text.append(kernel(forms, 'f%d' % number))
			for form in forms:
				more = (form.before, form.entry, str(form.n), form.thing.key()) if form.thing else (form.before, form.entry, str(form.n))
				more = more if form.thing or form.before or form.entry or form.n != N else ()
				key = zlib.crc32('|'.join((form.body, form.head, *form.outs, *form.ins, *more)).encode(), sums[operands])
				places.append((form.name, '%08x' % key, output, results_bytes(form)))
				output += results_bytes(form)
			if first.thing:
				contents = first.thing.contents()
				if contents not in things:
					things[contents] = len(values)
					values += contents + bytes(-len(contents) % 256)
				manifest.append(first.thing.line(things[contents]) + (' back' if first.back else ' -'))
			told = first.name if len(forms) == 1 else '%s and %d more' % (first.name, len(forms) - 1)
			manifest.append('form f%d %d %d %d %d %d %s %s' % (number, inputs[operands], start, output - start, 16 * first.n * len(forms), first.n, places[-len(forms)][1], told))
			number += 1
		(folder / name).write_text('\n'.join(text) + '\n')
	(folder / 'values.bin').write_bytes(values)
	(folder / 'manifest').write_text('\n'.join(manifest) + '\n')
	return places, output, len(values)


def main():
	parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
	parser.add_argument('folder', type=pathlib.Path)
	parser.add_argument('--stamp', type=pathlib.Path, help='written at the end')
	parser.add_argument('--record', help='the recorder, to go along')
	parser.add_argument('--misuse', help='the program of misuses, to go along')
	args = parser.parse_args()
	shutil.rmtree(args.folder, ignore_errors=True)
	places, results, values = write(args.folder)
	here = pathlib.Path(__file__).resolve().parent
	for source, name in ((args.record, 'record'), (args.misuse, 'misuse'), (here / 'pack.py', 'pack.py'), (here / 'run.sh', 'run.sh')):
		if source:
			shutil.copy(source, args.folder / name)
	if args.stamp:
		args.stamp.write_text('%d forms, %d bytes of results, %d bytes of values\n' % (len(places), results, values))


if __name__ == '__main__':
	main()
