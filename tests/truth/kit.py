#!/usr/bin/env python3
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
import shutil
import zlib

from forms import listed, reg
from values import N, SIZE, columns, encode

FORMS_A_MODULE = 48
BLOCK = 128
LOAD = {2: 'b16', 4: 'b32', 8: 'b64'}


def kernel(form, name):
	declare = ['.reg %s %s;' % (reg(k), '%s%d' % (letter, n)) for letter, kinds in (('d', form.outs), ('a', form.ins)) for n, k in enumerate(kinds)]
	object_param = ', .param .u64 object' if form.thing else ''
	lines = [form.before.replace('#', name[1:])] if form.before else []
	lines += ['.visible .entry %s(.param .u64 in, .param .u64 out%s) %s {' % (name, object_param, form.entry), '.reg .b32 index, lane_word; .reg .pred as_pred;',
		 '.reg .b64 base_in, base_out, step, y0;', ' '.join(declare), form.head,
		 'ld.param.u64 base_in, [in]; ld.param.u64 base_out, [out];',
		 'mov.u32 index, %ctaid.x; shl.b32 index, index, 7; mov.u32 lane_word, %tid.x; add.u32 index, index, lane_word;']
	if form.thing:
		lines.append('.reg .b64 t0; ld.param.u64 t0, [object];')
	offset = 0
	for n, kind in enumerate(form.ins):
		size = SIZE[kind]
		lines.append('.reg .b64 x%d; mul.wide.u32 step, index, %d; add.u64 x%d, base_in, step; add.u64 x%d, x%d, %d;' % (n, size, n, n, n, offset))
		if kind == 'pred':
			lines.append('ld.global.b32 lane_word, [x%d]; setp.ne.b32 a%d, lane_word, 0;' % (n, n))
		else:
			lines.append('ld.global.%s a%d, [x%d];' % (LOAD[size], n, n))
		offset += size * N
	results = sum(SIZE[k] for k in form.outs) * form.n
	lines.append('mul.wide.u32 step, index, 16; add.u64 y0, base_out, step; add.u64 y0, y0, %d;' % results)
	lines.append(form.body.replace('#', name[1:]))
	offset = 0
	for n, kind in enumerate([] if form.back else form.outs):
		size = SIZE[kind]
		lines.append('mul.wide.u32 step, index, %d; add.u64 step, base_out, step;' % size)
		if kind == 'pred':
			lines.append('selp.b32 lane_word, 1, 0, d%d; st.global.b32 [step+%d], lane_word;' % (n, offset))
		else:
			lines.append('st.global.%s [step+%d], d%d;' % (LOAD[size], offset, n))
		offset += size * form.n
	return '\n'.join(lines + ['ret;', '}']), results


def modules(names):
	"""(target, version, forms) in the order of the list, each of at most FORMS_A_MODULE; those named, or all."""
	groups = {}
	for form, target, version in listed():
		if names is not None and form.name not in names:
			continue
		groups.setdefault((target, version), []).append(form)
	for (target, version), forms in groups.items():
		alone = [f for f in forms if f.name[1:3] in ('xq', 'uq')]		# the driver's compiler refuses some: a module each
		forms = [f for f in forms if f not in alone]
		for start in range(0, len(forms), FORMS_A_MODULE):
			yield target, version, forms[start:start + FORMS_A_MODULE]
		for form in alone:
			yield target, version, [form]


def write(folder, names=None):
	folder = pathlib.Path(folder)
	folder.mkdir(parents=True, exist_ok=True)
	values, manifest, inputs, sums, things, output, number = bytearray(), [], {}, {}, {}, 0, 0
	for place, (target, version, forms) in enumerate(modules(names)):
		name = 'm%02d.ptx' % place
		text = ['.version ' + version, '.target sm_' + target, '.address_size 64']
		manifest.append('module ' + name)
		for form in forms:
			key = tuple(form.ins)
			if key not in inputs:
				start = inputs[key] = len(values)
				for kind, column in zip(key, columns(key)):
					values += encode(kind, column)
				sums[key] = zlib.crc32(values[start:])
				values += bytes(-len(values) % 256)
			code, size = kernel(form, 'f%d' % number)
			more = (form.before, form.entry, str(form.n), form.thing.key()) if form.thing else (form.before, form.entry, str(form.n))
			more = more if form.thing or form.before or form.entry or form.n != N else ()
			key = zlib.crc32('|'.join((form.body, form.head, *form.outs, *form.ins, *more)).encode(), sums[tuple(form.ins)])
			if form.thing:
				contents = form.thing.contents()
				if contents not in things:
					things[contents] = len(values)
					values += contents + bytes(-len(contents) % 256)
				manifest.append(form.thing.line(things[contents]) + (' back' if form.back else ' -'))
			text.append(code)
			manifest.append('form f%d %d %d %d %d %d %s %s' % (number, inputs[tuple(form.ins)], output, size, 16 * form.n, form.n, '%08x' % key, form.name))
			output += size
			number += 1
		(folder / name).write_text('\n'.join(text) + '\n')
	(folder / 'values.bin').write_bytes(values)
	(folder / 'manifest').write_text('\n'.join(manifest) + '\n')
	return number, output, len(values)


def main():
	parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
	parser.add_argument('folder', type=pathlib.Path)
	parser.add_argument('--stamp', type=pathlib.Path, help='written at the end')
	parser.add_argument('--record', help='the recorder, to go along')
	parser.add_argument('--misuse', help='the program of misuses, to go along')
	args = parser.parse_args()
	shutil.rmtree(args.folder, ignore_errors=True)
	number, results, values = write(args.folder)
	here = pathlib.Path(__file__).resolve().parent
	for source, name in ((args.record, 'record'), (args.misuse, 'misuse'), (here / 'pack.py', 'pack.py'), (here / 'run.sh', 'run.sh')):
		if source:
			shutil.copy(source, args.folder / name)
	if args.stamp:
		args.stamp.write_text('%d forms, %d bytes of results, %d bytes of values\n' % (number, results, values))


if __name__ == '__main__':
	main()
