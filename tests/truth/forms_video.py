# SPDX-License-Identifier: Apache-2.0
"""Forms of the video instructions: on two and four small integers, and on one that selectors take from a byte, half or word."""
import itertools

from form import Form

FEW = 128
# Pairs of selectors for two sources, so that all places of each meet all kinds of the other.
SELECTORS = ('', '.b0', '.b1', '.b2', '.b3', '.h0', '.h1')
TYPES = tuple(itertools.product(('u32', 's32'), repeat=2))


def video_forms():
	n = 512
	for lanes, op in itertools.product('24', ('vadd', 'vsub', 'vavrg', 'vabsdiff', 'vmin', 'vmax')):
		for d, a, b, more in itertools.product(('u32', 's32'), ('u32', 's32'), ('u32', 's32'), ('', '.sat', '.add')):
			name = '%s%s.%s.%s.%s%s' % (op, lanes, d, a, b, more)
			yield Form(name, name + ' d0, a0, a1, a2;', [d], [a, b, d], n=n)
	for lanes, a, b, c, more in itertools.product('24', ('u32', 's32'), ('u32', 's32'), ('eq', 'ne', 'lt', 'le', 'gt', 'ge'), ('', '.add')):
		name = 'vset%s.%s.%s.%s%s' % (lanes, a, b, c, more)
		yield Form(name, name + ' d0, a0, a1, a2;', ['u32'], [a, b, 'u32'], n=n)
	yield from scalar_forms()


def scalar(name, number, negate=('', '', ''), c=True):
	"""Three results: of whole words, and with two pairs of selectors, which the number chooses."""
	pairs = [('', '')] + [(SELECTORS[(number * k + k) % 7], SELECTORS[(number // 7 + 3 * k + number) % 7]) for k in (1, 2)]
	body = ' '.join('%s d%d, %sa0%s, %sa1%s%s;' % (name, n, negate[0], a, negate[1], b, ', %sa2' % negate[2] if c else '') for n, (a, b) in enumerate(pairs))
	return Form(name + ''.join(' -' + x for x, sign in zip('abc', negate) if sign), body, ['b32'] * 3, ['video'] * 3, n=FEW)


def merged(name, number):
	"""The result goes into each part of c."""
	body = ' '.join('%s d%d%s, a0%s, a1%s, a2;' % (name, n, to, SELECTORS[(number + n) % 7], SELECTORS[(number // 7 + 2 * n) % 7])
			for n, to in enumerate(SELECTORS[1:]))
	return Form(name + ' into a part', body, ['b32'] * 6, ['video'] * 3, n=FEW)


def scalar_forms():
	number = 0
	seconds = ('', '.add', '.min', '.max')
	for op, d, (a, b), sat in itertools.product(('vadd', 'vsub', 'vabsdiff', 'vmin', 'vmax'), ('u32', 's32'), TYPES, ('', '.sat')):
		name = '%s.%s.%s.%s%s' % (op, d, a, b, sat)
		for second in seconds:
			yield scalar(name + second, number, c=second != '')
			number += 1
		yield merged(name, number)
	for op, d, a, sat, mode in itertools.product(('vshl', 'vshr'), ('u32', 's32'), ('u32', 's32'), ('', '.sat'), ('.clamp', '.wrap')):
		name = '%s.%s.%s.u32%s%s' % (op, d, a, sat, mode)
		for second in seconds:
			yield scalar(name + second, number, c=second != '')
			number += 1
		yield merged(name, number)
	for (a, b), c in itertools.product(TYPES, ('eq', 'ne', 'lt', 'le', 'gt', 'ge')):
		name = 'vset.%s.%s.%s' % (a, b, c)
		for second in seconds:
			yield scalar(name + second, number, c=second != '')
			number += 1
		yield merged(name, number)
	for d, (a, b), sat, scale in itertools.product(('u32', 's32'), TYPES, ('', '.sat'), ('', '.shr7', '.shr15')):
		name = 'vmad.%s.%s.%s' % (d, a, b)
		yield scalar(name + '.po' + sat + scale, number)
		for negate in (('', '', ''), ('-', '', ''), ('', '-', ''), ('-', '-', ''), ('', '', '-'), ('-', '', '-')):
			yield scalar(name + sat + scale, number, negate=negate)
			number += 1
	for op in ('vadd', 'vsub', 'vabsdiff', 'vmin', 'vmax'):		# constants
		name = op + '.s32.s32.s32'
		yield Form(name + ' of constants', '{0} d0, a0.b1, 77; {0} d1, -5, a1.h1; {0}.max d2, a0, a1, 100; {0} d3.h1, a0.h0, 3, 7;'.format(name), ['b32'] * 4, ['video'] * 2, n=FEW)
