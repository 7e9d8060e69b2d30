#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the programs of tests/api print, beside what a GPU's own driver answered to the same calls.

	api.py check MODE BUILD PROGRAM		on the soft GPU (MODE: a mode of the runner), compared with tests/truth/api
	api.py record PROGRAMS OUT [NAME...]	on this machine's own driver, to be kept in tests/truth/api; PROGRAMS holds the programs api-*
	api.py compare PREFIX PROGRAMS OUT [NAME...]	over TCP through an installed Cricket on this machine's own driver, compared with OUT

A call that answers otherwise must stand in tests/truth/api.list with the modes it is meant for and its reason, and a line there that fits
no difference is a failure, too.  A case that is not recorded yet is run and not compared; a recorded one must not change any more.
A case that remarks what it `needs` and has not is counted, not compared, on a machine with a GPU; the soft ones are given all that is needed.
A program that is all such cases is not recorded.
"""
import ctypes
import datetime
import difflib
import fnmatch
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
TRUTH = HERE.parent / 'truth'
sys.path.insert(0, str(HERE.parent / 'runner'))
import runner		# noqa: E402


def cases(text):
	"""{PROGRAM.CASE: its lines}; what was put out before the first call is a remark."""
	found, lines = {}, []
	for line in text.splitlines():
		if line.startswith('#') or not line.strip():
			continue
		if line.startswith('  '):
			lines.append(line[2:])
		else:
			case, _, before = line.strip().partition('; ')
			lines = found[case] = ['- ' + before] if before else []
	return found


def function(line):
	"""The function that a line is about, with what it is called for where the program says so; remarks are about none."""
	return '-' if line.startswith('- ') else line.split(':', 1)[0]


class Row:
	"""A line of api.list: CASE FUNCTION MODES REASON, tabs between; patterns in the first two.  `FUNCTION=END`: that end of the line is meant."""

	def __init__(self, line):
		self.case, function_and_end, modes, self.reason = line.split('\t', 3)
		self.function, _, self.end = function_and_end.partition('=')
		self.sometimes = modes.startswith('?')
		self.modes, self.used = modes.strip('?').split(','), False

	def of(self, mode):
		return 'all' in self.modes or mode in self.modes

	def fits(self, mode, case, name, ours):
		names = (name, name.split('(', 1)[0])
		return (self.of(mode) and fnmatch.fnmatchcase(case, self.case) and any(n == self.function or fnmatch.fnmatchcase(n, self.function) for n in names)
			and (not self.end or (ours is not None and re.search(r'[ =]' + re.escape(self.end) + '$', ours) is not None)))


def rows():
	return [Row(line) for line in (TRUTH / 'api.list').read_text().splitlines() if line and not line.startswith('#')]


def differing(real, ours):
	"""Yields (function, line of the truth or None, our line or None), aligned by the functions called."""
	matcher = difflib.SequenceMatcher(None, [function(line) for line in real], [function(line) for line in ours], autojunk=False)
	for tag, r0, r1, o0, o1 in matcher.get_opcodes():
		if tag == 'equal':
			for r, o in zip(real[r0:r1], ours[o0:o1]):
				if r != o:
					yield function(r), r, o
			continue
		for r in real[r0:r1]:
			yield function(r), r, None
		for o in ours[o0:o1]:
			yield function(o), None, o


def needs(lines):
	return any(line.startswith('- needs ') for line in lines)


def judge(mode, truth, ours):
	"""Prints what differs and is not listed, and what is listed and agrees; returns how much that is."""
	listed, bad, same, unknown, left_out, met = rows(), 0, 0, 0, 0, set()
	for case in sorted(set(truth) | set(ours)):
		if case not in truth:
			unknown += 1
			continue
		if mode == 'gpu' and needs(ours.get(case, [])):
			left_out += 1
			continue
		met.add(case)
		found = list(differing(truth[case], ours.get(case, [])))
		same += len(truth[case]) - sum(1 for _, r, _ in found if r is not None)
		shown = False
		for name, r, o in found:
			fitting = [row for row in listed if row.fits(mode, case, name, o)]
			for row in fitting:
				row.used = True
			if fitting:
				continue
			if not shown:
				print(case)
				shown = True
			bad += 1
			print(f'\t-{r}' if r is not None else f'\t-(not called, {name})')
			print(f'\t+{o}' if o is not None else '\t+(not called)')
	# A line of this mode, of cases that were run, that excuses nothing.
	idle = [row for row in listed if not row.used and not row.sometimes and row.of(mode) and any(fnmatch.fnmatchcase(case, row.case) for case in met)]
	for row in idle:
		print(f'{row.case} {row.function}: stands in api.list for {mode}, and agrees: remove it there')
	print(f'{same} calls agree, {bad} differ and are not listed, {unknown} cases are not recorded'
	      + (f', {left_out} need more than there is here' if left_out else ''))
	return bad + len(idle)


def printed(mode, options, program):
	"""What a program prints in one of the runner's modes."""
	directory, done = tempfile.mkdtemp(prefix='ckt-'), []
	os.chmod(directory, 0o755)
	arg = runner.arguments(['--mode', mode, '--timeout', '300', *options, program])
	runner.judge = lambda _, what: done.append(what)
	tree = None if mode == 'native' else runner.Tree(runner.stage(arg.build) if arg.build else arg.prefix)
	try:
		runner.MODES[mode](tree, arg, directory, [os.path.abspath(program)])
	finally:
		shutil.rmtree(directory, ignore_errors=True)
	status, out, err = done[0]
	if status:
		raise runner.Failure('exited %d: %s' % (status, runner.text(err[-2000:])))
	return runner.text(out)


def recorded(path):
	return cases(path.read_text()) if path.exists() else {}


def check(mode, build, program):
	name = pathlib.Path(program).name.removeprefix('api-')
	try:
		ours = cases(printed(mode, ['--build', build], program))
	except runner.Failure as failure:
		print(failure)
		return 1
	return 1 if judge(mode, recorded(TRUTH / 'api' / (name + '.txt')), ours) else 0


def programs(folder, names):
	for program in sorted(pathlib.Path(folder).glob('api-*')):
		name = program.name.removeprefix('api-')
		if program.is_file() and '.' not in name and (not names or name in names):
			yield name, str(program)


def machine():
	cuda = ctypes.CDLL('libcuda.so.1')
	version, name = ctypes.c_int(0), ctypes.create_string_buffer(256)
	if cuda.cuInit(0):
		sys.exit('no GPU')
	cuda.cuDriverGetVersion(ctypes.byref(version))
	cuda.cuDeviceGetName(name, 256, 0)
	try:
		with open('/proc/driver/nvidia/version', encoding='utf-8') as f:
			driver = f.readline().strip()
	except OSError:
		driver = 'unknown'
	return name.value.decode(), f'{driver}; CUDA {version.value // 1000}.{version.value % 1000 // 10}'


def record(folder, out, *names):
	gpu, driver = machine()
	out = pathlib.Path(out)
	out.mkdir(parents=True, exist_ok=True)
	# The runtime lies beside the programs where the machine has none.
	os.environ['LD_LIBRARY_PATH'] = ':'.join(filter(None, [os.environ.get('LD_LIBRARY_PATH'), os.path.abspath(folder)]))
	status = 0
	for name, program in programs(folder, names):
		done = subprocess.run([program], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
		text = done.stdout.decode(errors='replace')
		found = cases(text)
		if found and all(map(needs, found.values())):
			print(f'{name}: not recorded: {next(iter(found.values()))[-1]}')
			continue
		(out / (name + '.txt')).write_text(f'# program: {name}\n# command: tests/truth/api.sh PROGRAMS OUT\n# gpu: {gpu}\n# driver: {driver}\n'
						   f'# date: {datetime.date.today()}\n{text}')
		lost = [case for case, lines in found.items() if any(line.startswith(('- died', '- exited')) for line in lines)]
		print(f'{name}: {len(found)} cases, {sum(map(len, found.values()))} calls' + (f'; did not end by themselves: {" ".join(lost)}' if lost else ''))
		if done.returncode:
			print(f'{name}: exited {done.returncode}: {done.stderr.decode(errors="replace")[-500:]}')
			status = 1
	return status


def compare(prefix, folder, out, *names):
	bad = 0
	for name, program in programs(folder, names):
		print(name)
		try:
			bad += judge('gpu', recorded(pathlib.Path(out) / (name + '.txt')), cases(printed('tcp', ['--prefix', prefix, '--driver', ''], program)))
		except runner.Failure as failure:
			print(failure)
			bad += 1
	return 1 if bad else 0


if __name__ == '__main__':
	sys.exit({'check': check, 'record': record, 'compare': compare}[sys.argv[1]](*sys.argv[2:]))
