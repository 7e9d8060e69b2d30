# SPDX-License-Identifier: Apache-2.0
"""Forms of textures and surfaces, each with the object that its kernel gets: made by record.c from the line that Thing.line() writes."""
import itertools
import random

from form import Form

FORMATS = {'u8': (1, 1), 'u16': (2, 2), 'u32': (3, 4), 's8': (8, 1), 's16': (9, 2), 's32': (10, 4), 'f16': (16, 2), 'f32': (32, 4)}
SHAPES = {'1d': 1, '2d': 2, '3d': 3, 'a1d': 1, 'a2d': 2, 'cube': 3, 'acube': 3}
LAYERED, SURFACE, CUBE, GATHER = 1, 2, 4, 8
AS_INTEGER, NORMALIZED, SRGB = 1, 2, 16
WRAP, CLAMP, MIRROR, BORDER = range(4)
FEW = 256


class Thing:
	"""An array with contents, and how it is read.  what: array, linear, pitch, mipmap or surface."""

	def __init__(self, what, shape, size, fmt, channels, address=CLAMP, linear=False, flags=0, levels=1, mip_linear=False, clamp=(0.0, 10.0), border=0,
		     bias=0.0):
		self.what, self.shape, self.size, self.fmt, self.channels = what, shape, size, fmt, channels
		self.address, self.linear, self.flags, self.levels, self.mip_linear, self.clamp, self.border, self.bias = \
			address, linear, flags, levels, mip_linear, clamp, border, bias

	def texel(self):
		return FORMATS[self.fmt][1] * self.channels

	def line(self, offset):
		"""thing WHAT WIDTH HEIGHT DEPTH FORMAT CHANNELS TEXEL_BYTES ARRAY_FLAGS TEXTURE_FLAGS ADDRESS FILTER LEVELS MIP_FILTER LEAST MOST BIAS BORDER OFFSET"""
		array = (LAYERED if self.shape[0] == 'a' else 0) | (CUBE if 'cube' in self.shape else 0) | (SURFACE if self.what == 'surface' else 0)
		array |= GATHER if self.what == 'gather' else 0
		return 'thing %s %d %d %d %d %d %d %d %d %d %d %d %d %g %g %g %g %d' % (
			{'gather': 'array'}.get(self.what, self.what), *self.size, FORMATS[self.fmt][0], self.channels, self.texel(), array, self.flags, self.address,
			self.linear, self.levels, self.mip_linear, *self.clamp, self.bias, self.border, offset)

	def contents(self):
		"""All levels, one behind the other; floats of moderate size."""
		rng, out = random.Random(repr((self.size, self.fmt, self.channels))), bytearray()
		for level in range(self.levels):
			w, h, d = (max(x >> (0 if n == 2 and self.shape[0] in 'ac' else level), 1) for n, x in enumerate(self.size))
			for _ in range(w * h * d * self.channels):
				bits = rng.getrandbits(8 * FORMATS[self.fmt][1])
				if self.fmt == 'f32':
					bits = rng.getrandbits(1) << 31 | (127 + rng.randint(-4, 4)) << 23 | rng.getrandbits(23)
				elif self.fmt == 'f16':
					bits = rng.getrandbits(1) << 15 | (15 + rng.randint(-4, 4)) << 10 | rng.getrandbits(10)
				out += bits.to_bytes(FORMATS[self.fmt][1], 'little')
		return bytes(out)

	def key(self):
		return self.line(0) + str(len(self.contents()))


SIZES = {'1d': (19, 0, 0), '2d': (16, 9, 0), '3d': (8, 5, 6), 'a1d': (13, 0, 4), 'a2d': (8, 6, 3), 'cube': (8, 8, 6), 'acube': (4, 4, 12)}
EVEN = {'1d': (32, 0, 0), '2d': (16, 16, 0), '3d': (16, 8, 8), 'a1d': (16, 0, 4), 'a2d': (16, 8, 3), 'cube': (16, 16, 6), 'acube': (8, 8, 12)}


def fetch(shape, result, by, first=0, last=''):
	"""The operands of a fetch and the kinds of its coordinates, which are a{first}..."""
	n = SHAPES[shape]
	names = ['a%d' % (first + k) for k in range(n + (shape[0] == 'a'))]
	padded = names + [names[-1]] * {1: 0, 2: 0, 3: 1, 4: 0}[len(names)]
	where = '{%s}' % ', '.join(padded)
	return '{d0, d1, d2, d3}, [t0, %s]%s;' % (where, last), len(names)


def kinds(shape, by, normalized):
	one = 'cell' if by == 's32' else 'direction' if 'cube' in shape else 'unit' if normalized else 'texel'
	return (['layer'] if shape[0] == 'a' else []) + [one] * SHAPES[shape]


def tex(thing, result, by, note, level='', tail='', more=()):
	shape = thing.shape
	ins = kinds(shape, by, thing.flags & NORMALIZED) + list(more)
	text, n = fetch(shape, result, by)
	name = 'tex%s.%s.v4.%s.%s' % (level, shape, result, by)
	return Form('%s %s' % (name, note), '%s %s' % (name, text[:-1] + tail % tuple('a%d' % (n + k) for k in range(tail.count('%s'))) + ';'), ['b32'] * 4, ins,
		    n=FEW, thing=thing)


def point_forms():
	for shape, by in itertools.product(SHAPES, ('f32', 's32')):
		if 'cube' in shape and by == 's32':
			continue
		for fmt, result, flags in (('f32', 'f32', 0), ('u8', 'u32', AS_INTEGER), ('s16', 's32', AS_INTEGER), ('u8', 'f32', 0), ('s16', 'f32', 0), ('f16', 'f32', 0)):
			if 'cube' in shape:
				flags |= NORMALIZED
			channels = 4 if fmt in ('u8', 'f32') else 2 if fmt == 's16' else 1
			yield tex(Thing('array', shape, SIZES[shape], fmt, channels, flags=flags), result, by, 'of %s x%d' % (fmt, channels))
	for fmt, channels in itertools.product(FORMATS, (1, 2, 4)):
		result = {'f': 'f32', 'u': 'u32', 's': 's32'}[fmt[0]]
		flags = 0 if fmt[0] == 'f' else AS_INTEGER
		yield tex(Thing('array', '2d', SIZES['2d'], fmt, channels, flags=flags), result, 's32', 'every %s x%d' % (fmt, channels))
		yield tex(Thing('linear', '1d', (64, 0, 0), fmt, channels, flags=flags), result, 's32', 'linear memory %s x%d' % (fmt, channels))
	for fmt in ('u8', 'f32'):
		yield tex(Thing('pitch', '2d', (32, 9, 0), fmt, 4 if fmt == 'u8' else 1, flags=0), 'f32', 'f32', 'pitched %s' % fmt)
		yield tex(Thing('pitch', '2d', (32, 9, 0), fmt, 4 if fmt == 'u8' else 1, linear=True, flags=NORMALIZED, address=WRAP), 'f32', 'f32', 'pitched linear %s' % fmt)
	for shape, address, normalized, border in itertools.product(('1d', '2d', '3d'), (WRAP, CLAMP, MIRROR, BORDER), (0, NORMALIZED), (0.0, 0.75)):
		if border and address != BORDER:
			continue
		yield tex(Thing('array', shape, SIZES[shape], 'f32', 1, address=address, flags=normalized, border=border), 'f32', 'f32',
			  'address %d%s%s' % (address, ' normalized' if normalized else '', ' border' if border else ''))
	yield tex(Thing('array', '2d', SIZES['2d'], 'u8', 4, flags=SRGB | NORMALIZED), 'f32', 'f32', 'srgb')


def linear_forms():
	for shape, address, normalized in itertools.product(SHAPES, (WRAP, CLAMP, MIRROR, BORDER), (0, NORMALIZED)):
		if 'cube' in shape and (not normalized or address != CLAMP):
			continue
		yield tex(Thing('array', shape, SIZES[shape], 'f32', 1, address=address, linear=True, flags=normalized, border=0.5), 'f32', 'f32',
			  'linear address %d%s' % (address, ' normalized' if normalized else ''))
	for fmt, channels in (('u8', 4), ('s8', 2), ('u16', 1), ('s16', 4), ('f16', 2)):
		yield tex(Thing('array', '2d', SIZES['2d'], fmt, channels, linear=True), 'f32', 'f32', 'linear %s x%d' % (fmt, channels))
	yield tex(Thing('array', '2d', SIZES['2d'], 'u8', 4, linear=True, flags=SRGB | NORMALIZED), 'f32', 'f32', 'linear srgb')


def level_forms():
	for shape, linear, between in itertools.product(('1d', '2d', '3d', 'a2d', 'cube'), (False, True), (False, True)):
		note = 'levels%s%s' % (' linear' if linear else '', ' between' if between else '')
		thing = Thing('mipmap', shape, EVEN[shape], 'f32', 1, linear=linear, mip_linear=between, flags=NORMALIZED, levels=3)
		yield tex(thing, 'f32', 'f32', note)
		yield tex(thing, 'f32', 'f32', note, '.level', ', %s', ['level'])
		if not (shape == 'cube' and linear):		# a direction's slopes
			n = SHAPES[shape]
			slopes = ', {%s}' % ', '.join((['%s'] * n + ['%s'])[:n] if n != 3 else ['%s'] * 3 + ['0f00000000'])
			yield tex(thing, 'f32', 'f32', note, '.grad', slopes * 2, ['slope'] * (2 * n))
	thing = Thing('mipmap', '2d', EVEN['2d'], 'f32', 1, flags=NORMALIZED, levels=4, clamp=(0.5, 1.75), bias=0.5, mip_linear=True)
	yield tex(thing, 'f32', 'f32', 'levels clamped', '.level', ', %s', ['level'])
	thing = Thing('mipmap', '2d', EVEN['2d'], 'u32', 2, flags=NORMALIZED | AS_INTEGER, levels=4)
	yield tex(thing, 'u32', 'f32', 'levels of integers', '.level', ', %s', ['level'])
	yield tex(thing, 'u32', 's32', 'levels by cell', '.level', ', %s', ['layer'])
	for shape in SHAPES:
		thing = Thing('mipmap', shape, EVEN[shape], 'f32', 1, flags=NORMALIZED, levels=2)
		yield tex(thing, 'f32', 'f32', 'levels', '.base')
		if shape in ('a1d', 'acube'):
			yield tex(thing, 'f32', 'f32', 'levels', '.level', ', %s', ['level'])
			n = SHAPES[shape]
			slopes = ', {%s}' % ', '.join(['%s'] * n if n != 3 else ['%s'] * 3 + ['0f00000000']) if n > 1 else ', {%s}'
			yield tex(thing, 'f32', 'f32', 'levels', '.grad', slopes * 2, ['slope'] * (2 * n))


def gather_forms():
	for component, (fmt, channels, result, flags) in itertools.product('rgba', (('f32', 4, 'f32', 0), ('u8', 4, 'u32', AS_INTEGER), ('u8', 4, 'f32', 0), ('s32', 2, 's32', AS_INTEGER))):
		for address, normalized in ((CLAMP, 0), (WRAP, NORMALIZED), (BORDER, NORMALIZED)):
			thing = Thing('gather', '2d', SIZES['2d'], fmt, channels, address=address, flags=flags | normalized, border=0.25 if not flags else 0)
			name = 'tld4.%s.2d.v4.%s.f32' % (component, result)
			yield Form('%s of %s x%d address %d' % (name, fmt, channels, address), name + ' {d0, d1, d2, d3}, [t0, {a0, a1}];', ['b32'] * 4,
				   kinds('2d', 'f32', normalized), n=FEW, thing=thing)


def surface_forms():
	"""Loads go anywhere; a store goes to the thread's own texel, or outside where a value says so."""
	sizes = {'1d': (256, 0, 0), '2d': (16, 16, 0), '3d': (8, 8, 4), 'a1d': (64, 0, 4), 'a2d': (8, 8, 4)}
	shape_of = {'b8': ('u8', 1, 1), 'b16': ('u16', 1, 1), 'b32': ('u32', 1, 1), 'b64': ('u32', 2, 1), 'v2.b8': ('u8', 2, 2), 'v4.b8': ('u8', 4, 4),
		    'v2.b16': ('u16', 2, 2), 'v4.b16': ('u16', 4, 4), 'v2.b32': ('u32', 2, 2), 'v4.b32': ('u32', 4, 4), 'v2.b64': ('u32', 4, 2)}
	for shape, (kind, (fmt, channels, n)), how in itertools.product(sizes, shape_of.items(), ('zero', 'clamp', 'trap')):
		w, h, d = sizes[shape]
		wide, thing = 'b%d' % max(int(kind.rpartition('b')[2]), 16), Thing('surface', shape, sizes[shape], fmt, channels)
		regs = lambda letter, first: '{%s}' % ', '.join('%s%d' % (letter, first + k) for k in range(n))
		inside = {'1d': '{cx}', '2d': '{cx, cy}', '3d': '{cx, cy, cz, cz}', 'a1d': '{cz, cx}', 'a2d': '{cz, cx, cy, cy}'}[shape]
		head = '.reg .b32 cx, cy, cz, k; .reg .pred q;'
		own = 'mov.u32 k, %%ctaid.x; shl.b32 k, k, 7; mov.u32 cx, %%tid.x; add.u32 k, k, cx; rem.u32 cx, k, %d; div.u32 cy, k, %d; div.u32 cz, cy, %d; rem.u32 cy, cy, %d; mul.lo.u32 cx, cx, %d; ' % (
			w, w, max(h, 1), max(h, 1), thing.texel())
		if shape in ('1d', '2d', '3d') or how == 'trap':
			wild = own if how == 'trap' else 'mul.lo.u32 cx, a0, %d; mov.b32 cy, a1; mov.b32 cz, a2; ' % thing.texel()
			name = 'suld.b.%s.%s.%s' % (shape, kind, how)
			yield Form(name, wild + '%s %s, [t0, %s];' % (name, regs('d', 0), inside), [wide] * n, ['cell'] * 3, head, n=FEW, thing=thing)
		else:		# the layer stays inside
			wild = 'mul.lo.u32 cx, a0, %d; mov.b32 cy, a1; and.b32 cz, a2, 3; ' % thing.texel()
			name = 'suld.b.%s.%s.%s' % (shape, kind, how)
			yield Form(name, wild + '%s %s, [t0, %s];' % (name, regs('d', 0), inside), [wide] * n, ['cell'] * 3, head, n=FEW, thing=thing)
		name = 'sust.b.%s.%s.%s' % (shape, kind, how)
		out = 'and.b32 k, a%d, 3; setp.eq.u32 q, k, 0; @q add.u32 cx, cx, 65536; ' % n if how == 'zero' else ''
		yield Form(name, own + out + '%s [t0, %s], %s;' % (name, inside, regs('a', 0)), [{1: 'u8', 2: 'b16', 4: 'b32'}[FORMATS[fmt][1]]] * channels,
			   [wide] * n + ['b32'], head, n=FEW, thing=thing, back=True)


def query_forms():
	"""Of a handle only the size can be asked: the driver refuses a text with any other query (error 801), or its kernel is not found (500)."""
	def asked(op, thing, note, whats):
		for what in whats:
			if not (what == 'height' and thing.shape in ('1d', 'a1d') or what == 'depth' and thing.shape != '3d' or what == 'array_size' and thing.shape[0] != 'a'):
				yield Form('%s.%s.b32 of %s' % (op, what, note), '%s.%s.b32 d0, [t0];' % (op, what), ['b32'], ['b32'], n=128, thing=thing)
	for shape in SHAPES:
		yield from asked('txq', Thing('array', shape, SIZES[shape], 'f32', 2, flags=NORMALIZED if 'cube' in shape else 0), shape, ('width', 'height', 'depth'))
	yield from asked('txq', Thing('mipmap', '2d', EVEN['2d'], 'f32', 1, flags=NORMALIZED, levels=4), 'levels', ('width',))
	for shape, size in (('1d', (32, 0, 0)), ('2d', (16, 8, 0)), ('3d', (8, 4, 6)), ('a1d', (16, 0, 3)), ('a2d', (8, 4, 5))):
		yield from asked('suq', Thing('surface', shape, size, 'u16', 2), shape, ('width', 'height', 'depth', 'array_size'))
	texture, surface = Thing('array', '2d', SIZES['2d'], 'f32', 1), Thing('surface', '2d', (16, 8, 0), 'u16', 2)
	for kind, (note, thing) in itertools.product(('texref', 'samplerref', 'surfref'), (('a texture', texture), ('a surface', surface))):
		yield Form('istypep.%s of %s' % (kind, note), 'istypep.%s d0, t0;' % kind, ['pred'], ['b32'], n=128, thing=thing)
	for kind in ('texref', 'samplerref', 'surfref'):
		yield Form('istypep.%s of a number' % kind, 'istypep.%s d0, a0;' % kind, ['pred'], ['b64'], n=128)


def texture_forms():
	for source in (point_forms, linear_forms, level_forms, gather_forms, surface_forms, query_forms):
		yield from source()
