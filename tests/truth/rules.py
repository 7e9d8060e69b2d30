# SPDX-License-Identifier: Apache-2.0
"""The interpreter's table of legal spellings (softgpu/ptx/front/legal.c), against the instructions that stand in the recorded forms.

Of what computes, every spelling that a rule allows must have been recorded.  Of what moves memory, synchronises or multiplies matrices,
whose modifiers are many and independent, every alternative of every slot.
"""
import itertools
import pathlib
import re

TABLE = pathlib.Path(__file__).resolve().parents[2] / 'softgpu' / 'ptx' / 'front' / 'legal.c'
# Their modifiers choose space, order, scope, shape or layout, each for itself.
BY_ALTERNATIVE = set('ld ldu st atom red cp mbarrier fence membar bar barrier tex tld4 suld sust wmma mma ldmatrix stmatrix prefetch cvta isspacep'.split())
TYPE = re.compile(r'(pred|[bsu](1|2|4|8|16|32|64|128)|[us]16x2|b?f16(x2)?|f32(x2)?|f64|tf32|e[45]m[23](x2)?|ue8m0x2)$')


def table():
	"""[(opcode, target or 0, [slot])]: a slot is a list of alternatives, '' among them where it is optional."""
	text = TABLE.read_text()
	sets = dict(re.findall(r'\{"(\w+)",\s+"([^"]+)"\}', text))
	out = []
	for rule in re.findall(r'"([^"]+)"', text[text.index('const rules[]'):text.index('/* ---- Matching')]):
		target = 0
		if rule[0] == '@':
			target, rule = int(rule[1:rule.index(' ')]), rule.partition(' ')[2]
		opcodes, *slots = rule.split(' ')
		opened = [[w for part in slot.rstrip('?').split('|') for w in sets.get(part, part).split('|')] + ([''] if slot[-1] == '?' else []) for slot in slots]
		out += [(opcode, target, opened) for opcode in opcodes.split(',')]
	return out


def key(opcode, words):
	"""What tells spellings apart: types in their order, the others in any."""
	return opcode, tuple(w for w in words if TYPE.match(w)), tuple(sorted(w for w in words if w and not TYPE.match(w)))


def spellings(forms):
	found = set()
	for form in forms:
		for word in re.findall(r'(?:^|[;{}:]|@!?\w+)\s*([a-z]\w*(?:\.[\w:]+)*)(?=[\s;])', form.before + ';' + form.head + ';' + form.body):
			opcode, *words = re.sub(r'::', '\0', word).replace('.', ' ').replace('\0', '::').split(' ')
			found.add((opcode, *words))
	return found


def unrecorded(forms, elsewhere):
	"""What the table allows and no form has."""
	have = {}
	for opcode, *words in spellings(forms):
		have.setdefault(opcode, set()).add(tuple(words))
	missing = []
	for opcode, target, slots in table():
		if opcode in elsewhere or target:
			continue
		keys = {key(opcode, words) for words in have.get(opcode, ())}
		joins = [slot for slot in slots if 'xor' in slot and '' in slot]
		if opcode not in BY_ALTERNATIVE:
			wanted = [slot if slot not in joins else [''] for slot in slots]
			missing += ['.'.join((opcode, *filter(None, choice))) for choice in itertools.product(*wanted) if key(opcode, choice) not in keys]
			continue
		matched = [fill for fill in (filled(slots, words) for words in have.get(opcode, ())) if fill]
		for place, slot in enumerate(slots):
			missing += ['%s with .%s at slot %d of %s' % (opcode, word or '-', place, ' '.join('|'.join(s) for s in slots)) for word in slot
				    if not any(fill[place] == word for fill in matched)]
	return [what for what in missing if not any(what.startswith(entry) for entry in elsewhere if ' with ' in entry)]


def filled(slots, words):
	"""Which alternative each slot takes, or None where the words are not this rule's: as legal.c does it."""
	left, out = list(words), []
	for slot in slots:
		types = [w for w in left if TYPE.match(w)]
		word = next((w for w in left if w in slot and (not TYPE.match(w) or w == types[0])), None)
		if word is None and '' not in slot:
			return None
		if word is not None:
			left.remove(word)
		out.append(word or '')
	return None if left else out
