# SPDX-License-Identifier: Apache-2.0
"""What a form is: for forms.py and its parts."""
import itertools

from values import N


class Form:
	"""body: instructions with d0.. and a0.. for the registers, p0.. for the predicates among them and x0.. for operands' addresses.

	y0 is the address of 16 bytes of the thread's own.  before: what stands before the kernel, entry: directives of it, n: threads (blocks
	of 128), thing: a texture or surface (forms_texture.py) whose handle is in t0; back: its contents are the output.
	"""

	def __init__(self, name, body, outs, ins, head='', before='', entry='', n=N, thing=None, back=False):
		self.name, self.body, self.outs, self.ins, self.head, self.before, self.entry = name, body, outs, ins, head, before, entry
		self.n, self.thing, self.back = n, thing, back

def simple(name, out, *ins):
	return Form(name, name + ' d0' + ''.join(', a%d' % k for k in range(len(ins))) + ';', [out], list(ins))


def optional(*words):
	"""All ways to join modifiers, each given as a tuple of choices."""
	for choice in itertools.product(*words):
		yield ''.join('.' + c for c in choice if c)
