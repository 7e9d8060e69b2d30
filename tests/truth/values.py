# SPDX-License-Identifier: Apache-2.0
"""Operand values for the truth vectors: the edges of each type, every pair of them, and random ones of a fixed seed.

Nothing here may change without recording again: the vectors answer for exactly these inputs.
"""
import random
import struct
import zlib

N = 2048		# elements of one form; a multiple of 128, the block size

SIZE = {'pred': 4, 'b8': 1, 'u8': 1, 's8': 1, 'b16': 2, 'u16': 2, 's16': 2, 'f16': 2, 'bf16': 2, 'b32': 4, 'u32': 4, 's32': 4, 'f32': 4,
	'b64': 8, 'u64': 8, 's64': 8, 'f64': 8, 'f16x2': 4, 'bf16x2': 4, 'u16x2': 4, 's16x2': 4, 'tf32': 4, 'shift': 4, 'small': 4, 'lanes': 4,
	'segment': 4, 'few32': 4, 'few64': 8, 'e4m3x2': 2, 'e5m2x2': 2, 'b128': 16, 'near16': 4, 'nearb16': 4, 'near32': 4, 'near64': 8,
	'near43': 4, 'near52': 4, 'unit': 4, 'texel': 4, 'cell': 4, 'direction': 4, 'layer': 4, 'level': 4, 'slope': 4, 'video': 4}

F32 = [0, 0x80000000, 1, 0x80000001, 0x7fffff, 0x807fffff, 0x800000, 0x80800000, 0x3f800000, 0xbf800000, 0x3f7fffff, 0x3f800001,
       0x7f7fffff, 0xff7fffff, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc00001, 0x7f800001, 0x7fffffff, 0x40000000, 0x3f000000, 0xbf000000,
       0x4b000001, 0x4b7fffff, 0xcf000000, 0x4f000000, 0x5f000000, 0x33800000, 0x7f000000, 0x40490fdb, 0x400000]
F64 = [0, 1 << 63, 1, (1 << 63) + 1, 0xfffffffffffff, 0x800fffffffffffff, 0x10000000000000, 0x8010000000000000, 0x3ff0000000000000,
       0xbff0000000000000, 0x3fefffffffffffff, 0x3ff0000000000001, 0x7fefffffffffffff, 0xffefffffffffffff, 0x7ff0000000000000,
       0xfff0000000000000, 0x7ff8000000000000, 0xfff8000000000001, 0x7ff0000000000001, 0x7fffffffffffffff, 0x4000000000000000,
       0x3fe0000000000000, 0xbfe0000000000000, 0x4330000000000001, 0x433fffffffffffff, 0xc3e0000000000000, 0x41e0000000000000,
       0x43e0000000000000, 0x3ca0000000000000, 0x47efffffffffffff, 0x400921fb54442d18, 0x36a0000000000000]
F16 = [0, 0x8000, 1, 0x8001, 0x3ff, 0x83ff, 0x400, 0x8400, 0x3c00, 0xbc00, 0x3bff, 0x3c01, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e00, 0xfe01,
       0x7c01, 0x7fff, 0x4000, 0x3800, 0xb800, 0x6401, 0x67ff, 0x7800, 0x1400, 0x1000, 0x4248, 0x200, 0x4900, 0xc500]
BF16 = [0, 0x8000, 1, 0x8001, 0x7f, 0x807f, 0x80, 0x8080, 0x3f80, 0xbf80, 0x3f7f, 0x3f81, 0x7f7f, 0xff7f, 0x7f80, 0xff80, 0x7fc0, 0xffc1,
	0x7f81, 0x7fff, 0x4000, 0x3f00, 0xbf00, 0x4301, 0x437f, 0x7f00, 0x3c00, 0x3b80, 0x4049, 0x40, 0x4120, 0xc0a0]


def integers(bits):
	top = 1 << (bits - 1)
	v = [0, 1, 2, 3, 7, 10, 0x7f, 0x80, 0x81, 0xff, 0x100, top, top - 1, top + 1, top - 2, 2 * top - 1, 2 * top - 2, 2 * top - 3, 2 * top - 10,
	     2 * top - 128, 2 * top - 129]
	for k in (15, 16, 24, 31, 32, 33, 53):
		if k < bits:
			v += [(1 << k) - 1, 1 << k]
	v += [int('5' * 16, 16) & (2 * top - 1), int('a' * 16, 16) & (2 * top - 1), 0x123456789abcdef0 >> (64 - bits)]
	return list(dict.fromkeys(x & (2 * top - 1) for x in v))[:32]


SHIFTS = [0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 23, 24, 30, 31, 32, 33, 34, 47, 48, 62, 63, 64, 65, 66, 127, 128, 255, 256, 257, 0x80000000,
	  0xffffffff, 0xffffffe0]
EDGES = {'f32': F32, 'f64': F64, 'f16': F16, 'bf16': BF16, 'shift': SHIFTS, 'small': SHIFTS[:28]}


def edges(kind):
	if kind not in EDGES:
		EDGES[kind] = integers(8 * SIZE[kind])
	return EDGES[kind]


def pack_f32(v):
	try:
		return struct.unpack('<I', struct.pack('<f', v))[0]
	except OverflowError:
		return 0x7f800000 if v > 0 else 0xff800000


def pack_f64(v):
	return struct.unpack('<Q', struct.pack('<d', v))[0]


def boundaries(kind):
	"""Where conversions turn: powers of two and their neighbours, halves, and ties of the narrower formats."""
	if kind not in ('f32', 'f64'):
		return []
	pack, out = (pack_f32, []) if kind == 'f32' else (pack_f64, [])
	for k in (0, 1, 2, 6, 7, 8, 10, 15, 16, 23, 24, 30, 31, 32, 52, 53, 62, 63, 64):
		for d in (-1, -0.75, -0.5, -0.25, 0, 0.25, 0.5, 0.75, 1, 1.5):
			out += [pack(2.0 ** k + d), pack(-(2.0 ** k) + d)]
	for k in (31, 32, 63, 64):
		bits = pack(2.0 ** k)
		out += [bits - 1, bits + 1]
		bits = pack(-2.0 ** k)
		out += [bits - 1, bits + 1]
	for digits, low, high in ((11, -14, 16), (8, -126, 128), (8, -3, 8), (24, -126, 128), (4, -6, 9), (3, -14, 16)):
		for e in (low - digits - 1, low - digits, low - digits + 1, low - 3, low - 1, low, low + 1, -1, 0, 1, 5, high - 2, high - 1, high):
			for m in (0, 1, 2, (1 << digits) - 2, (1 << digits) - 1):
				for tail in (0, 1, 2, 3):		# on it, below the tie, the tie, above
					v = ((1 << digits) + m + (0, 0.46875, 0.5, 0.53125)[tail]) * 2.0 ** (e - digits)
					out.append(pack(v))
	out = [b for n, b in enumerate(out)]
	return [b ^ ((n % 3 == 0) << (8 * SIZE[kind] - 1)) for n, b in enumerate(out)]


def near(rng, kind):
	"""A float of moderate size."""
	if kind == 'f32':
		return rng.getrandbits(1) << 31 | (127 + rng.randint(-9, 9)) << 23 | rng.getrandbits(23)
	if kind == 'f64':
		return rng.getrandbits(1) << 63 | (1023 + rng.randint(-9, 9)) << 52 | rng.getrandbits(52)
	if kind == 'f16':
		return rng.getrandbits(1) << 15 | (15 + rng.randint(-6, 6)) << 10 | rng.getrandbits(10)
	return rng.getrandbits(1) << 15 | (127 + rng.randint(-6, 6)) << 7 | rng.getrandbits(7)


COORDINATES = {'unit': (-1.6, 2.6, 64), 'texel': (-4, 24, 4), 'direction': (-1, 1, 8), 'level': (-1, 4, 8), 'slope': (-0.5, 0.5, 64)}


def coordinate(rng, kind):
	"""Of a texture: now on a boundary or in the middle of a cell, now anywhere."""
	if kind == 'cell':
		return rng.randint(-3, 20) & 0xffffffff
	if kind == 'layer':
		return rng.randint(0, 3)
	least, most, steps = COORDINATES[kind]
	v = rng.randint(int(least * steps), int(most * steps)) / steps if rng.random() < 0.4 else rng.uniform(least, most)
	return pack_f32(v if v or kind != 'direction' else 0.125)


def any_value(rng, kind, others):
	if kind in COORDINATES or kind in ('cell', 'layer'):
		return coordinate(rng, kind)
	if kind in ('near43', 'near52'):		# four floats of 8 bits
		four = [rng.getrandbits(1) << 7 | (rng.randint(4, 10) << 3 | rng.getrandbits(3) if kind == 'near43' else rng.randint(12, 18) << 2 | rng.getrandbits(2))
			for _ in range(4)]
		return sum(v << (8 * k) for k, v in enumerate(four))
	bits = 8 * SIZE[kind]
	which = rng.random()
	if kind == 'video':		# now a word, now bytes that are edges each
		if which < 0.5:
			return sum(rng.choice((0, 1, 2, 7, 0x7f, 0x80, 0x81, 0xff, rng.getrandbits(8))) << (8 * k) for k in range(4))
		return rng.choice(integers(32)) if which < 0.75 else rng.getrandbits(32) >> rng.choice((0, 0, 1, 8, 17, 26))
	if kind == 'pred':
		return rng.getrandbits(1)
	if kind == 'lanes':
		return rng.choice(SHIFTS) if which < 0.2 else rng.randint(0, 31)
	if kind == 'segment':
		return rng.choice((0x1f, 0, 0x1f, 0x1000 | 0x1f, 0x1000, 0x181f, 0x1800, 0x1c1f, 0x1c00, 0x1e1f, 0x1e00, 0x1f1f, 0x0c03, rng.getrandbits(13)))
	if kind in ('few32', 'few64'):
		return rng.choice((0, 0, 0, 1, 1 << 31, 1 << (bits - 1), (1 << bits) - 1))
	if kind in ('near16', 'nearb16'):
		k = 'f16' if kind == 'near16' else 'bf16'
		return near(rng, k) | near(rng, k) << 16
	if kind in ('near32', 'near64'):
		return near(rng, 'f32' if kind == 'near32' else 'f64')
	if kind in ('shift', 'small'):
		return rng.choice(SHIFTS) if which < 0.3 else rng.randint(0, 70) if which < 0.9 or kind == 'small' else rng.getrandbits(32)
	if kind.startswith('e'):
		return rng.getrandbits(16)
	if which < 0.15:
		return rng.choice(edges(kind))
	if kind in ('f16', 'bf16', 'f32', 'f64') and which < 0.6:
		return near(rng, kind)
	if others and which < 0.75:		# close to what it meets: cancellation, equality, ties
		return (rng.choice(others) ^ rng.choice((0, 1, 2, 1 << (bits - 1), (1 << (bits - 1)) + 1))) & ((1 << bits) - 1)
	v = rng.getrandbits(bits)
	return v >> rng.randint(0, bits - 1) if kind[0] in 'bus' and which < 0.9 else v


def columns(kinds):
	"""One list of N values for each operand of the signature."""
	rng = random.Random(zlib.crc32(','.join(kinds).encode()))
	halves = [k[:-2] if k.endswith('x2') and k[0] != 'e' else None for k in kinds]
	if any(halves):
		low = columns([h or k for h, k in zip(halves, kinds)])
		mixed = list(range(N))
		rng.shuffle(mixed)
		return [[v | (column[m] << 16 if h else 0) for v, m in zip(column, mixed)] for column, h in zip(low, halves)]
	plain = [n for n, k in enumerate(kinds) if k in EDGES or (k[0] in 'bus' and k[1:] in ('8', '16', '32', '64'))]
	rows = []
	if len(kinds) == 1 and plain:
		rows = [(v,) for v in (edges(kinds[0]) + boundaries(kinds[0]))[:N * 3 // 4]]
		if SIZE[kinds[0]] == 1:
			rows = [(v % 256,) for v in range(N)]
	elif len(plain) >= 2:
		for x in edges(kinds[plain[0]]):
			for y in edges(kinds[plain[1]]):
				rows.append(tuple(x if n == plain[0] else y if n == plain[1] else rng.choice(edges(k)) if n in plain
						  else any_value(rng, k, []) for n, k in enumerate(kinds)))
		if len(plain) > 2:
			rows += [tuple(rng.choice(edges(k)) if n in plain else any_value(rng, k, []) for n, k in enumerate(kinds)) for _ in range(400)]
	while len(rows) < N:
		row = []
		for k in kinds:
			row.append(any_value(rng, k, [v for v, other in zip(row, kinds) if SIZE[other] == SIZE[k] and k[0] == other[0]]))
		rows.append(tuple(row))
	return [[row[n] for row in rows[:N]] for n in range(len(kinds))]


def encode(kind, column):
	size = SIZE[kind]
	if size == 16:
		return b''.join(v.to_bytes(16, 'little') for v in column)
	return struct.pack('<%d%s' % (len(column), {1: 'B', 2: 'H', 4: 'I', 8: 'Q'}[size]), *column)
