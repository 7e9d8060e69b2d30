"""Forms of the video instructions on two and four small integers."""
import itertools

from form import Form


def video_forms():
	n = 512
	for lanes, op in itertools.product('24', ('vadd', 'vsub', 'vavrg', 'vabsdiff', 'vmin', 'vmax')):
		for d, a, b, more in itertools.product(('u32', 's32'), ('u32', 's32'), ('u32', 's32'), ('', '.sat', '.add')):
			name = '%s%s.%s.%s.%s%s' % (op, lanes, d, a, b, more)
			yield Form(name, name + ' d0, a0, a1, a2;', [d], [a, b, d], n=n)
	for lanes, a, b, c, more in itertools.product('24', ('u32', 's32'), ('u32', 's32'), ('eq', 'ne', 'lt', 'le', 'gt', 'ge'), ('', '.add')):
		name = 'vset%s.%s.%s.%s%s' % (lanes, a, b, c, more)
		yield Form(name, name + ' d0, a0, a1, a2;', ['u32'], [a, b, 'u32'], n=n)
