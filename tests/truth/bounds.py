# SPDX-License-Identifier: Apache-2.0
"""How far an approximate instruction may be from the truth, as PTX ISA 9.0 documents it; each with the section it comes from.

A bound holds against the mathematical value, for the GPU and the soft GPU alike, and both are held to it (beyond); where it is hard to
say what that value is, near infinities, zeros and subnormals, the two may lie twice as far from each other (within).
"""
import math
import struct


class Format:
	def __init__(self, code, digits, least):
		self.code, self.digits, self.least = code, digits, least

	def value(self, bits):
		if self.code == 'bf16':
			return struct.unpack('<f', struct.pack('<I', bits << 16))[0]
		return struct.unpack('<' + self.code, struct.pack('<' + {'e': 'H', 'f': 'I', 'd': 'Q'}[self.code], bits))[0]

	def ulp(self, v):
		return 2.0 ** (max(math.frexp(v)[1] - 1, self.least) - self.digits + 1)


FORMATS = {'f16': Format('e', 11, -14), 'bf16': Format('bf16', 8, -126), 'f32': Format('f', 24, -126), 'f64': Format('d', 53, -1022)}


def ulps(n):
	return lambda fmt, v, x: n * fmt.ulp(v)


def relative(exponent):
	"""The last place of a subnormal is all that such a result has."""
	return lambda fmt, v, x: max(abs(v) * 2.0 ** exponent, fmt.ulp(v))


def absolute(exponent):
	return lambda fmt, v, x: 2.0 ** exponent


def circle(fmt, v, x):
	"""Beyond 100 pi nothing is promised but a value that a sine can have."""
	return 2.0 ** -20.5 if abs(x) <= 2 * math.pi else 2.0 ** -14.7 if abs(x) <= 100 * math.pi else 1.0


def logarithm(fmt, v, x):
	return 2.0 ** -22 if 0.5 < x < 2 else max(abs(v) * 2.0 ** -22, fmt.ulp(v))


# Opcode and type of an .approx or .full instruction: (the section, the bound).
BOUNDS = {
	('div', 'f32'): ('9.7.3.8 div: 2 ulp', ulps(2)),
	('rcp', 'f32'): ('9.7.3.13 rcp: 1 ulp', ulps(1)),
	# Gross: the upper word only, and no bound given; what the hardware's 20 bits of fraction can hold.
	('rcp', 'f64'): ('9.7.3.14 rcp.approx.ftz.f64: the upper 20 bits of the fraction', relative(-20)),
	('sqrt', 'f32'): ('9.7.3.15 sqrt: relative 2^-23', relative(-23)),
	('rsqrt', 'f32'): ('9.7.3.16 rsqrt: relative 2^-22.9', relative(-22.9)),
	('rsqrt', 'f64'): ('9.7.3.16 rsqrt, 9.7.3.17 rsqrt.approx.ftz.f64: the upper 20 bits of the fraction', relative(-20)),
	('sin', 'f32'): ('9.7.3.18 sin: 2^-20.5 within 2 pi, 2^-14.7 within 100 pi', circle),
	('cos', 'f32'): ('9.7.3.19 cos: 2^-20.5 within 2 pi, 2^-14.7 within 100 pi', circle),
	('lg2', 'f32'): ('9.7.3.20 lg2: 2^-22 between 0.5 and 2, else relative 2^-22', logarithm),
	('ex2', 'f32'): ('9.7.3.21 ex2: 2 ulp', ulps(2)),
	('tanh', 'f32'): ('9.7.3.22 tanh: relative 2^-11', relative(-11)),
	('tanh', 'f16'): ('9.7.4.9 tanh: 2^-10.987', absolute(-10.987)),
	('tanh', 'bf16'): ('9.7.4.9 tanh: 2^-8', absolute(-8)),
	('ex2', 'f16'): ('9.7.4.10 ex2: relative 2^-9.9', relative(-9.9)),
	('ex2', 'bf16'): ('9.7.4.10 ex2: relative 2^-7', relative(-7)),
}


def divided(x, y):
	"""div.approx promises nothing for divisors beyond these; .full does, and is as close."""
	return x / y if 2.0 ** -126 <= abs(y) <= 2.0 ** 126 else None


def turned(function):
	"""Beyond 100 pi a GPU's sine may have the wrong sign, and has."""
	return lambda x: function(x) if abs(x) <= 100 * math.pi else None


# The mathematical value of each, of doubles: closer by far than any bound.
MATHEMATICAL = {'div': divided, 'rcp': lambda x: 1 / x, 'sqrt': math.sqrt, 'rsqrt': lambda x: 1 / math.sqrt(x), 'sin': turned(math.sin), 'cos': turned(math.cos),
		'lg2': math.log2, 'ex2': lambda x: 2.0 ** x, 'tanh': math.tanh}


# Sums of a matrix product: "9.7.14.5 mma: at least single precision, the order of the additions and their rounding are unspecified".
# What is lost is relative to the largest term: here to the largest result of the warp's whole matrix.
MATRIX = {'f32': 2.0 ** -19, 'f16': 2.0 ** -10}


def approximate(name):
	words = name.split('.')
	return 'approx' in words or 'full' in words


def matrix_sum(name):
	"""The type of d where it is a float that is added up, or None.  mma and wmma name it first."""
	words = name.split(' ')[0].split('.')
	if words[0] not in ('mma', 'wmma'):
		return None
	kinds = [w for w in words if w in FORMATS or w in ('tf32', 's32', 'e4m3', 'e5m2')]
	return kinds[0] if kinds[0] in MATRIX else None


def matrix_within(name, row, mine, real):
	"""The rows are lanes; mine and real hold one list of all rows for each register of d."""
	kind = matrix_sum(name)
	fmt, warp = FORMATS[kind], range(row & ~31, (row & ~31) + 32)
	halves = (0, 16) if kind == 'f16' else (0,)
	value = lambda v, shift: fmt.value(v >> shift & (0xffff if kind == 'f16' else 0xffffffff))
	most = max(abs(value(column[r], s)) for column in real for r in warp for s in halves)
	return all(abs(value(m[row], s) - value(r[row], s)) <= most * MATRIX[kind] for m, r in zip(mine, real) for s in halves)


# A GPU filters with 8 bits of fraction: "CUDA C++ Programming Guide, Texture Fetching, Linear Filtering: alpha, beta and gamma are stored in
# 9-bit fixed point format with 8 bits of fractional value".  How the coordinate is rounded to them is not said: a step of the weight
# is allowed in every direction and between levels, times what two texels can differ.  Which level gradients choose is the GPU's own
# approximation: nine in ten rows must be within.  Of sRGB it has a table of 8 bits.
SPAN = {'f32': 64, 'f16': 64, 'u8': 1, 's8': 2, 'u16': 1, 's16': 2}


def filtered(form):
	"""Whether a fetch computes, and so has a bound."""
	thing = form.thing
	return bool(thing) and form.name.startswith('tex') and (thing.linear or thing.mip_linear or thing.flags & 16 or '.grad' in form.name)


def filtered_bad(form, rows, mine, real):
	"""Of the rows that differ, those too far apart; mine and real hold one list of all rows for each channel."""
	thing, fmt = form.thing, FORMATS['f32']
	steps = (3 if thing.shape == '3d' else 1 if '1d' in thing.shape else 2) * bool(thing.linear) + 2 * bool(thing.mip_linear)
	allowed = steps * SPAN[thing.fmt] / 256 + (2.0 ** -7 if thing.flags & 16 else 0) + 2.0 ** -20
	bad = [row for row in rows if any(abs(fmt.value(m[row]) - fmt.value(r[row])) > allowed for m, r in zip(mine, real))]
	return bad if '.grad' not in form.name or len(bad) > form.n / 10 else []


def beyond(name, inputs, results):
	"""Rows whose result is farther from the mathematical value than the document allows, of those for which it gives a normal number."""
	words = name.split('.')
	kind = words[-1].removesuffix('x2')
	bits, least = (16 if '16' in kind else int(kind[1:])), 2.0 ** FORMATS[kind].least
	fmt, bound, true, n = FORMATS[kind], BOUNDS[words[0], kind][1], MATHEMATICAL[words[0]], 2 if words[0] == 'div' else 1
	rows = set()
	for row, result in enumerate(results):
		for shift in (0, 16) if words[-1].endswith('x2') else (0,):
			cut = lambda v: fmt.value((v >> shift) & ((1 << bits) - 1))
			x, got = [cut(column[row]) for column in inputs[:n]], cut(result)
			if words[0] in ('rcp', 'rsqrt') and kind == 'f64':	# the upper word of the input is all that it looks at
				x = [struct.unpack('<d', struct.pack('<Q', inputs[0][row] & 0xffffffff << 32))[0]]
			if not all(math.isfinite(v) and abs(v) >= least for v in x):
				continue
			try:
				value = true(*x)
			except (ValueError, OverflowError, ZeroDivisionError):
				continue
			most = (2 - 2.0 ** (1 - fmt.digits)) * 2.0 ** (1 - fmt.least)
			if value is None or not least * 2 <= abs(value) <= most / 2:
				continue
			if not math.isfinite(got) or abs(got - value) > bound(fmt, value, x[0]):
				rows.add(row)
	return sorted(rows)


def within(name, row, inputs, mine, real):
	"""Whether one element (or both of a pair) is close enough; infinities, NaN and zeros must be the same."""
	words = name.split('.')
	kind = words[-1].removesuffix('x2')
	bits = 16 if '16' in kind else int(kind[1:])
	fmt, bound = FORMATS[kind], BOUNDS[words[0], kind][1]
	for shift in (0, 16) if words[-1].endswith('x2') else (0,):
		m, r, x = ((v >> shift) & ((1 << bits) - 1) for v in (mine, real, inputs[0][row]))
		if m == r:
			continue
		m, r, x = fmt.value(m), fmt.value(r), fmt.value(x)
		if not math.isfinite(m) or not math.isfinite(r) or (math.copysign(1, m) != math.copysign(1, r) and words[0] not in ('sin', 'cos', 'lg2')):
			return False
		if abs(m - r) > 2 * bound(fmt, r, x):
			return False
	return True
