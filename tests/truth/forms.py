#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The instruction forms: opcode, modifiers and types, with what each reads and writes.

candidates() spells out more than PTX has; forms.list holds those that ptxas accepts for sm_75 to sm_90 (a machine with an H200 runs them
all), each with the least target and PTX version it needs.  `forms.py --update PTXAS` writes the list anew.

A form counts its memory order, scope and cache advice as no part of it: they cannot change what one thread sees of its own cell.
"""
import argparse
import itertools
import pathlib
import re
import subprocess
import tempfile

from form import Form, optional, simple
from forms_matrix import more_matrix_forms
from forms_memory import memory_forms
from forms_sync import sync_forms
from forms_texture import texture_forms
from forms_video import video_forms
from values import SIZE

HERE = pathlib.Path(__file__).resolve().parent
INTS = ('u16', 's16', 'u32', 's32', 'u64', 's64')
BITS = ('b16', 'b32', 'b64')
FLOATS = ('f16', 'f16x2', 'bf16', 'bf16x2', 'f32', 'f64')
TIERS = (('75', '7.8'), ('80', '7.8'), ('90', '7.8'), ('90', '8.0'), ('90', '8.3'), ('90', '8.6'), ('90', '9.0'))


WIDER = {'u16': 'u32', 's16': 's32', 'u32': 'u64', 's32': 's64', 'u64': 'b128', 's64': 'b128'}


def integer_forms():
	for op in ('add', 'sub'):
		for t in INTS + ('u16x2', 's16x2'):
			for sat in ('', '.sat'):
				yield simple(op + sat + '.' + t, t, t, t)
	for t in INTS:
		for half in ('lo', 'hi'):
			yield simple('mul.%s.%s' % (half, t), t, t, t)
			for sat in ('', '.sat'):
				yield simple('mad.%s%s.%s' % (half, sat, t), t, t, t, t)
		if WIDER[t] != 'b128':
			yield simple('mul.wide.' + t, WIDER[t], t, t)
			yield simple('mad.wide.' + t, WIDER[t], t, t, WIDER[t])
		yield simple('sad.' + t, t, t, t, t)
		yield simple('div.' + t, t, t, t)
		yield simple('rem.' + t, t, t, t)
		yield simple('abs.' + t, t, t)
		yield simple('neg.' + t, t, t)
		for op in ('min', 'max'):
			for relu in ('', '.relu'):
				yield simple(op + relu + '.' + t, t, t, t)
	for op, t, relu in itertools.product(('min', 'max'), ('u16x2', 's16x2'), ('', '.relu')):
		yield simple(op + relu + '.' + t, t, t, t)
	for t, half, sat in itertools.product(('u32', 's32'), ('lo', 'hi'), ('', '.sat')):
		yield simple('mul24.%s%s.%s' % (half, sat, t), t, t, t)
		yield simple('mad24.%s%s.%s' % (half, sat, t), t, t, t, t)
	for ta, tb in itertools.product(('u32', 's32'), repeat=2):
		c = 's32' if 's32' in (ta, tb) else 'u32'
		yield simple('dp4a.%s.%s' % (ta, tb), c, ta, tb, c)
		for half in ('lo', 'hi'):
			yield simple('dp2a.%s.%s.%s' % (half, ta, tb), c, ta, tb, c)
	for t in ('u32', 's32', 'u64', 's64'):
		for op in ('add', 'sub'):
			yield Form('%s.cc.%s %sc.cc.%s' % (op, t, op, t),
				   '{0}.cc.{1} d0, a0, a1; {0}c.cc.{1} d1, a2, a3; {0}c.{1} d2, 0, 0;'.format(op, t), [t] * 3, [t] * 4)
		for half in ('lo', 'hi'):
			yield Form('mad.%s.cc.%s madc.%s.cc.%s' % (half, t, half, t),
				   'mad.{0}.cc.{1} d0, a0, a1, a2; madc.{0}.cc.{1} d1, a3, a1, a2; madc.{0}.{1} d2, a0, a3, a2;'.format(half, t), [t] * 3, [t] * 4)


def bit_forms():
	for op, t in itertools.product(('and', 'or', 'xor'), BITS + ('pred',)):
		yield simple('%s.%s' % (op, t), t, t, t)
	for op, t in itertools.product(('not', 'cnot'), BITS + ('pred',)):
		yield simple('%s.%s' % (op, t), t, t)
	for op, t in itertools.product(('shl', 'shr'), BITS + INTS):
		yield simple('%s.%s' % (op, t), t, t, 'shift')
	for way, mode in itertools.product(('l', 'r'), ('wrap', 'clamp')):
		yield simple('shf.%s.%s.b32' % (way, mode), 'b32', 'b32', 'b32', 'shift')
	for t in ('b32', 'b64'):
		for op in ('popc', 'clz'):
			yield simple('%s.%s' % (op, t), 'u32', t)
		yield simple('brev.' + t, t, t)
		yield simple('bfi.' + t, t, t, t, 'small', 'small')
	for t in ('u32', 's32', 'u64', 's64'):
		yield simple('bfind.' + t, 'u32', t)
		yield simple('bfind.shiftamt.' + t, 'u32', t)
		yield simple('bfe.' + t, t, t, 'small', 'small')
	for mode in ('wrap', 'clamp'):
		yield simple('bmsk.%s.b32' % mode, 'b32', 'shift', 'shift')
		for t in ('u32', 's32'):
			yield simple('szext.%s.%s' % (mode, t), t, t, 'shift')
	yield Form('fns.b32', 'and.b32 a1, a1, 31; fns.b32 d0, a0, a1, a2;', ['b32'], ['b32', 'lanes', 's32'])
	for mode in ('', '.f4e', '.b4e', '.rc8', '.ecl', '.ecr', '.rc16'):
		yield simple('prmt.b32' + mode, 'b32', 'b32', 'b32', 'b32')
	for lut in (0x00, 0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0x96, 0xe8, 0xca, 0xfe, 0x3c, 0xff, 0x1b):
		yield Form('lop3.b32 %#04x' % lut, 'lop3.b32 d0, a0, a1, a2, %d;' % lut, ['b32'], ['b32'] * 3)
	for join in ('and', 'or', 'xor'):
		yield Form('lop3.%s.b32' % join, 'lop3.%s.b32 d0|d1, a0, a1, a2, 0x68, a3;' % join, ['b32', 'pred'], ['b32', 'b32', 'b32', 'pred'])
	for t in BITS + INTS + ('f32', 'f64'):
		yield simple('selp.' + t, t, t, t, 'pred')
		for by in ('s32', 'f32'):
			yield simple('slct.%s.%s' % (t, by), t, t, t, by)
		yield simple('slct.ftz.%s.f32' % t, t, t, t, 'f32')


def move_forms():
	for t in BITS + INTS + ('f32', 'f64', 'pred'):
		yield simple('mov.' + t, t, t)
	for t, each, n in (('b32', 'b16', 2), ('b64', 'b32', 2), ('b64', 'b16', 4), ('b32', 'b8', 4), ('b16', 'b8', 2)):
		if each == 'b8':
			continue
		parts = ', '.join('a%d' % k for k in range(n))
		yield Form('mov.%s {%d}' % (t, n), 'mov.%s d0, {%s};' % (t, parts), [t], [each] * n)
		yield Form('mov.%s %d parts' % (t, n), 'mov.%s {%s}, a0;' % (t, ', '.join('d%d' % k for k in range(n))), [each] * n, [t])
	for t in ('b8', 'u8', 's8') + BITS + INTS + ('f32', 'f64'):
		for wide in ('b16', 'b32', 'b64'):
			if SIZE[wide] >= SIZE[t]:
				yield Form('ld.%s %s' % (t, wide), 'ld.global.%s d0, [x0];' % t, [wide], ['b64'])
				yield Form('st.%s %s' % (t, wide), 'mov.b64 d0, 0; st.global.b64 [y0], d0; st.global.%s [y0], a0; ld.global.b64 d0, [y0];' % t,
					   ['b64'], [wide])


def float_forms():
	rounding = ('', 'rn', 'rz', 'rm', 'rp')
	ftz, sat = ('', 'ftz'), ('', 'sat')
	for t in FLOATS:
		for op in ('add', 'sub', 'mul'):
			for m in optional(rounding, ftz, sat):
				yield simple('%s%s.%s' % (op, m, t), t, t, t)
		for m in optional(rounding, ftz, ('', 'sat', 'relu')):
			yield simple('fma%s.%s' % (m, t), t, t, t, t)
		for m in optional(rounding, ftz, ('oob',), ('', 'sat', 'relu')):
			yield simple('fma%s.%s' % (m, t), t, t, t, t)
		for m in optional(rounding, ftz, sat):
			yield simple('mad%s.%s' % (m, t), t, t, t, t)
		for m in optional(('', 'rn', 'rz', 'rm', 'rp', 'approx', 'full'), ftz):
			yield simple('div%s.%s' % (m, t), t, t, t)
		for m in optional(('', 'rn', 'rz', 'rm', 'rp', 'approx'), ftz):
			for op in ('rcp', 'sqrt', 'rsqrt', 'sin', 'cos', 'lg2', 'ex2', 'tanh'):
				yield simple('%s%s.%s' % (op, m, t), t, t)
		for op in ('min', 'max'):
			for m in optional(ftz, ('', 'NaN'), ('', 'xorsign.abs')):
				yield simple('%s%s.%s' % (op, m, t), t, t, t)
		for op, z in itertools.product(('abs', 'neg'), ('', '.ftz')):
			yield simple('%s%s.%s' % (op, z, t), t, t)
		yield simple('copysign.' + t, t, t, t)
		for test in ('finite', 'infinite', 'number', 'notanumber', 'normal', 'subnormal'):
			yield simple('testp.%s.%s' % (test, t), 'pred', t)


COMPARES = ('eq', 'ne', 'lt', 'le', 'gt', 'ge', 'lo', 'ls', 'hi', 'hs', 'equ', 'neu', 'ltu', 'leu', 'gtu', 'geu', 'num', 'nan')


def compare_forms():
	for c, t, z in itertools.product(COMPARES, BITS + INTS + FLOATS, ('', '.ftz')):
		yield Form('setp.%s%s.%s' % (c, z, t), 'setp.%s%s.%s d0|d1, a0, a1;' % (c, z, t), ['pred', 'pred'], [t, t])
		for d in ('u32', 's32', 'f32') + (('u16', 's16') if '16' in t else ()) + ((t,) if '16' in t else ()):
			yield simple('set.%s%s.%s.%s' % (c, z, d, t), d, t, t)
		if '16' in t and t[-2:] != 'x2' and t[0] in 'bf':		# of halves, one answer only
			yield Form('setp.%s%s.%s one' % (c, z, t), 'setp.%s%s.%s d0, a0, a1;' % (c, z, t), ['pred'], [t, t])
	for c, j, t in itertools.product(('lt', 'ne', 'geu'), ('and', 'or', 'xor'), ('b32', 's32', 'u64', 's16', 'f32', 'f64', 'f16', 'f16x2', 'bf16', 'bf16x2')):
		yield Form('setp.%s.%s.%s' % (c, j, t), 'setp.%s.%s.%s d0|d1, a0, a1, a2;' % (c, j, t), ['pred', 'pred'], [t, t, 'pred'])
		yield Form('setp.%s.%s.%s !' % (c, j, t), 'setp.%s.%s.%s d0, a0, a1, !a2;' % (c, j, t), ['pred'], [t, t, 'pred'])
		yield simple('set.%s.%s.u32.%s' % (c, j, t), 'u32', t, t, 'pred')


def convert_forms():
	types = ('u8', 's8') + INTS + ('f16', 'bf16', 'f32', 'f64')
	rounding = ('', 'rn', 'rz', 'rm', 'rp', 'rna', 'rni', 'rzi', 'rmi', 'rpi')
	for d, a in itertools.product(types, repeat=2):
		out, source = ('u32' if SIZE[d] == 1 else d), ('u32' if SIZE[a] == 1 else a)
		for m in optional(rounding, ('', 'ftz'), ('', 'sat', 'relu', 'satfinite', 'relu.satfinite', 'satfinite.relu')):
			yield Form('cvt%s.%s.%s' % (m, d, a), 'cvt%s.%s.%s d0, a0;' % (m, d, a), [out], [source])
		if d[0] in 'us' and a[0] in 'us' and (SIZE[d] < 4 or SIZE[a] < 4):
			for s in ('', '.sat'):		# registers wider than the types
				yield Form('cvt%s.%s.%s wide' % (s, d, a), 'cvt%s.%s.%s d0, a0;' % (s, d, a), ['u64' if SIZE[d] == 8 else 'u32'],
					   ['u64' if SIZE[a] == 8 else 'u32'])
	for m in optional(('rn', 'rz', 'rna'), ('', 'relu', 'satfinite', 'relu.satfinite', 'satfinite.relu')):
		yield Form('cvt%s.tf32.f32' % m, 'cvt%s.tf32.f32 d0, a0;' % m, ['b32'], ['f32'])
		for d in ('f16x2', 'bf16x2'):
			yield Form('cvt%s.%s.f32' % (m, d), 'cvt%s.%s.f32 d0, a0, a1;' % (m, d), ['b32'], ['f32', 'f32'])
		for d in ('e4m3x2', 'e5m2x2'):
			yield Form('cvt%s.%s.f32' % (m, d), 'cvt%s.%s.f32 d0, a0, a1;' % (m, d), ['b16'], ['f32', 'f32'])
			yield Form('cvt%s.%s.f16x2' % (m, d), 'cvt%s.%s.f16x2 d0, a0;' % (m, d), ['b16'], ['f16x2'])
			yield Form('cvt%s.f16x2.%s' % (m, d), 'cvt%s.f16x2.%s d0, a0;' % (m, d), ['b32'], [d])
	for m, d in itertools.product(('rni', 'rzi', 'rmi', 'rpi'), ('u8', 's8')):
		yield Form('cvt.%s.%s.bf16 byte' % (m, d), '{ .reg .b8 small; cvt.%s.%s.bf16 small, a0; mov.b16 d0, {small, 0}; }' % (m, d), ['b16'], ['bf16'])
	for d, a in itertools.product(('u16', 's16'), ('s32', 'u32')):
		yield Form('cvt.pack.sat.%s.%s' % (d, a), 'cvt.pack.sat.%s.%s d0, a0, a1;' % (d, a), ['b32'], [a, a])
	for d in ('u8', 's8', 'u4', 's4', 'u2', 's2'):
		yield Form('cvt.pack.sat.%s.s32.b32' % d, 'cvt.pack.sat.%s.s32.b32 d0, a0, a1, a2;' % d, ['b32'], ['s32', 's32', 'b32'])


MASKS = {'full': 'mov.b32 m, 0xffffffff;', 'half': 'mov.u32 m, %laneid; setp.lt.u32 q, m, 16; selp.b32 m, 0xffff, 0xffff0000, q;',
	 'odd': 'mov.u32 m, %laneid; and.b32 m, m, 1; setp.eq.u32 q, m, 0; selp.b32 m, 0x55555555, 0xaaaaaaaa, q;',
	 'lone': 'mov.u32 m, %laneid; shl.b32 m, 1, m;'}


def warp_forms():
	head = '.reg .b32 m; .reg .pred q;'
	for mode in ('up', 'down', 'bfly', 'idx'):
		yield Form('shfl.sync.%s.b32' % mode, MASKS['full'] + ' shfl.sync.%s.b32 d0|d1, a0, a1, a2, m;' % mode, ['b32', 'pred'],
			   ['b32', 'lanes', 'segment'], head)
		yield Form('shfl.sync.%s.b32 half' % mode, MASKS['half'] + ' shfl.sync.%s.b32 d0, a0, a1, %d, m;' % (mode, 0x1000 if mode == 'up' else 0x100f),
			   ['b32'], ['b32', 'lanes'], head)
	for which, mask in MASKS.items():
		for mode in ('all', 'any', 'uni'):
			yield Form('vote.sync.%s.pred %s' % (mode, which), mask + ' vote.sync.%s.pred d0, a0, m;' % mode, ['pred'], ['pred'], head)
			yield Form('vote.sync.%s.pred !%s' % (mode, which), mask + ' vote.sync.%s.pred d0, !a0, m;' % mode, ['pred'], ['pred'], head)
		yield Form('vote.sync.ballot.b32 ' + which, mask + ' vote.sync.ballot.b32 d0, a0, m;', ['b32'], ['pred'], head)
		for t, few in (('b32', 'few32'), ('b64', 'few64')):
			yield Form('match.any.sync.%s %s' % (t, which), mask + ' match.any.sync.%s d0, a0, m;' % t, ['b32'], [few], head)
			yield Form('match.all.sync.%s %s' % (t, which), mask + ' match.all.sync.%s d0|d1, a0, m;' % t, ['b32', 'pred'], [few], head)
		for op, t in list(itertools.product(('add', 'min', 'max'), ('u32', 's32'))) + [(op, 'b32') for op in ('and', 'or', 'xor')]:
			yield Form('redux.sync.%s.%s %s' % (op, t, which), mask + ' redux.sync.%s.%s d0, a0, m;' % (op, t), [t], [t], head)
		yield Form('elect.sync ' + which, mask + ' elect.sync d0|d1, m;', ['b32', 'pred'], ['b32'], head)
	yield Form('activemask.b32', 'activemask.b32 d0;', ['b32'], ['b32'])


SPACES = {'global': ('', 'y0'), 'shared': ('.shared .align 16 .b8 cells[2048]; .reg .b32 s;', 's'), 'generic': ('', 'y0')}


def atomic_forms():
	typed = [(op, t) for op in ('add', 'min', 'max') for t in ('u32', 's32', 'u64', 's64', 'f32', 'f64')]
	typed += [(op, t) for op in ('inc', 'dec') for t in ('u32',)]
	typed += [(op, t) for op in ('and', 'or', 'xor', 'exch', 'cas') for t in ('b16', 'b32', 'b64')]
	typed += [('add.noftz', t) for t in ('f16', 'f16x2', 'bf16', 'bf16x2')] + [(op + '.noftz', t) for op in ('min', 'max') for t in ('f16', 'f16x2', 'bf16', 'bf16x2')]
	for space, (op, t) in itertools.product(SPACES, typed):
		head, at = SPACES[space]
		dot = '' if space == 'generic' else '.' + space
		bits = 'b%d' % (8 * SIZE[t])
		start = 'mov.u32 s, %%tid.x; shl.b32 s, s, 4; mov.b32 m, cells; add.u32 s, s, m; ' if space == 'shared' else ''
		values = 'a1, a2' if op == 'cas' else 'a1'
		ins = [t] * (3 if op == 'cas' else 2)
		head += ' .reg .b32 m;'
		body = start + 'st%s.%s [%s], a0; %%s ld%s.%s d%%d, [%s];' % (dot, bits, at, dot, bits, at)
		yield Form('atom%s.%s.%s' % (dot, op, t), body % ('atom%s.%s.%s d0, [%s], %s;' % (dot, op, t, at, values), 1), [t, t], ins, head)
		if op not in ('cas', 'exch'):
			yield Form('red%s.%s.%s' % (dot, op, t), body % ('red%s.%s.%s [%s], a1;' % (dot, op, t, at), 0), [t], ins, head)
	for t, n in (('f32', 2), ('f32', 4), ('f16x2', 2), ('f16x2', 4), ('bf16x2', 2), ('bf16x2', 4)):
		noftz = '' if t == 'f32' else '.noftz'
		cells = ', '.join('a%d' % k for k in range(n))
		more = ', '.join('a%d' % (n + k) for k in range(n))
		olds = ', '.join('d%d' % k for k in range(n))
		news = ', '.join('d%d' % (n + k) for k in range(n))
		kind = t if n == 2 else {'f32': 'near32', 'f16x2': 'near16', 'bf16x2': 'nearb16'}[t]
		yield Form('atom.global.add%s.v%d.%s' % (noftz, n, t),
			   'st.global.v%d.b32 [y0], {%s}; atom.global.add%s.v%d.%s {%s}, [y0], {%s}; ld.global.v%d.b32 {%s}, [y0];'
			   % (n, cells, noftz, n, t, olds, more, n, news), ['b32'] * (2 * n), [kind] * (2 * n))


def matrix_forms():
	for d, a, shape, na, nb, nc, kind in (
			('f32', 'f16', 'm16n8k8', 2, 1, 4, 'near16'), ('f32', 'f16', 'm16n8k16', 4, 2, 4, 'near16'),
			('f16', 'f16', 'm16n8k8', 2, 1, 2, 'near16'), ('f16', 'f16', 'm16n8k16', 4, 2, 2, 'near16'),
			('f32', 'bf16', 'm16n8k8', 2, 1, 4, 'nearb16'), ('f32', 'bf16', 'm16n8k16', 4, 2, 4, 'nearb16'),
			('f32', 'tf32', 'm16n8k4', 2, 1, 4, 'near32'), ('f32', 'tf32', 'm16n8k8', 4, 2, 4, 'near32'),
			('f64', 'f64', 'm8n8k4', 1, 1, 2, 'near64'), ('f64', 'f64', 'm16n8k4', 2, 1, 4, 'near64'), ('f64', 'f64', 'm16n8k8', 4, 2, 4, 'near64'),
			('f64', 'f64', 'm16n8k16', 8, 4, 4, 'near64')) + tuple(
			('s32', t, shape, na, nb, nc, 'b32') for t in ('u8', 's8', 'u8.sat', 's8.sat') for shape, na, nb, nc in
			(('m8n8k16', 1, 1, 2), ('m16n8k16', 2, 1, 4), ('m16n8k32', 4, 2, 4))):
		t, _, sat = a.partition('.')
		ckind = {'f32': 'near32', 'f64': 'near64', 's32': 's32', 'f16': 'near16'}[d]
		name = 'mma.sync.aligned.%s.row.col%s.%s.%s.%s.%s' % (shape, '.satfinite' if sat else '', d, t, t, d)
		ins = [kind] * (na + nb) + [ckind] * nc
		groups = ['d%d' % k for k in range(nc)], ['a%d' % k for k in range(na)], ['a%d' % (na + k) for k in range(nb)], \
			 ['a%d' % (na + nb + k) for k in range(nc)]
		yield Form(name, name + ' ' + ', '.join('{%s}' % ', '.join(g) for g in groups) + ';', ['b64' if d == 'f64' else 'b32'] * nc, ins)


def candidates():
	seen = {}
	for source in (integer_forms, bit_forms, move_forms, float_forms, compare_forms, convert_forms, warp_forms, atomic_forms, matrix_forms,
		       more_matrix_forms, memory_forms, sync_forms, video_forms, texture_forms):
		for form in source():
			seen.setdefault(form.name, form)
	return seen


REG = {'pred': '.pred', 1: '.b16', 2: '.b16', 4: '.b32', 8: '.b64', 16: '.b128'}


def reg(kind):
	return REG['pred'] if kind == 'pred' else REG[SIZE[kind]]


def check_text(form, number):
	"""The instructions of a form alone, for ptxas's opinion."""
	lines = [form.before.replace('#', str(number)),
		 '.entry f%d(.param .u64 p) %s {' % (number, form.entry),
		 form.head + ' .reg .b64 x0, y0, t0; ld.param.u64 x0, [p]; ld.param.u64 y0, [p]; ld.param.u64 t0, [p];'
		 + ' '.join('.reg %s d%d;' % (reg(k), n) for n, k in enumerate(form.outs))
		 + ' '.join('.reg %s a%d;' % (reg(k), n) for n, k in enumerate(form.ins)), form.body.replace('#', str(number)), 'ret; }']
	return lines


AT_ONCE = 1000		# forms that one ptxas looks at


def accepted(ptxas, forms, target, version, folder):
	"""Those of the forms that ptxas takes."""
	forms, out = list(forms), []
	for start in range(0, len(forms), AT_ONCE):
		out += accepted_at_once(ptxas, forms[start:start + AT_ONCE], target, version, folder)
	return out


def accepted_at_once(ptxas, left, target, version, folder):
	while left:
		lines, owner = ['.version ' + version, '.target sm_' + target, '.address_size 64'], {}
		for number, form in enumerate(left):
			for line in check_text(form, number):
				lines.append(line)
				owner[len(lines)] = form
		source = pathlib.Path(folder) / 'check.ptx'
		source.write_text('\n'.join(lines) + '\n')
		ran = subprocess.run([ptxas, '-O0', '-arch', 'sm_' + target, str(source), '-o', str(pathlib.Path(folder) / 'check.cubin')],
				     capture_output=True, text=True)
		bad = {owner[int(n)].name for n in re.findall(r'line (\d+); (?:error|fatal)', ran.stderr)}
		if ran.returncode == 0:
			return left
		if ran.returncode < 0:		# it can crash: whatever it was is not taken
			half = len(left) // 2
			return [f for part in (left[:half], left[half:]) if half for f in accepted_at_once(ptxas, part, target, version, folder)]
		if not bad:
			raise SystemExit('ptxas ended with %d: ' % ran.returncode + '\n'.join([line for line in ran.stderr.splitlines() if 'warning' not in line])[:2000])
		left = [f for f in left if f.name not in bad]
	return []


def update(ptxas):
	forms, place = candidates(), {}
	with tempfile.TemporaryDirectory() as folder:
		rest = accepted(ptxas, forms.values(), *TIERS[-1], folder)
		for tier in TIERS:
			taken = accepted(ptxas, rest, *tier, folder)
			place.update({f.name: tier for f in taken})
			names = {f.name for f in taken}
			rest = [f for f in rest if f.name not in names]
	lines = ['# Instruction forms: sm_ target, PTX version, form.  Written by forms.py --update.']
	lines += ['%s %s %s' % (*place[name], name) for name in forms if name in place]
	(HERE / 'forms.list').write_text('\n'.join(lines) + '\n')
	print('%d forms of %d candidates' % (len(place), len(forms)))


def listed():
	"""(form, target, version) of every form in forms.list."""
	known = candidates()
	out = []
	for line in (HERE / 'forms.list').read_text().splitlines():
		if not line.startswith('#'):
			target, version, name = line.split(' ', 2)
			out.append((known[name], target, version))
	return out


if __name__ == '__main__':
	parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
	parser.add_argument('--update', metavar='PTXAS', required=True)
	update(parser.parse_args().update)
