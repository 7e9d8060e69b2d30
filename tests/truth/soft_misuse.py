#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The misuses of misuse.cu on the soft GPU, each compared with what an H200 answered (misuse.txt).

	soft_misuse.py MODE BUILD PROGRAM

MODE is one of the runner's: local, tcp, ...  A case that answers otherwise must stand in misuse.list with the modes it is meant for and
its reason, and one that stands there and agrees is a failure, too.
"""
import difflib
import os
import pathlib
import shutil
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / 'runner'))
import runner		# noqa: E402


def cases(text):
	"""{case: its lines}"""
	found, lines = {}, []
	for line in text.splitlines():
		if line.startswith('  '):
			lines.append(line)
		else:
			lines = found[line] = []
	return found


def excused(mode):
	"""{case: whether it differs only at times} of those that may differ in this mode."""
	lines = [line for line in (HERE / 'misuse.list').read_text().splitlines() if line and not line.startswith('#')]
	rows = [line.split('\t', 2) for line in lines]
	return {case: modes[0] == '?' for case, modes, _ in rows if modes.strip('?') == 'all' or mode in modes.strip('?').split(',')}


def run(mode, build, program, directory):
	tree = runner.Tree(runner.stage(build))
	arg = runner.arguments(['--mode', mode, program])
	printed = []
	runner.judge = lambda _, done: printed.append(done)
	runner.MODES[mode](tree, arg, directory, [os.path.abspath(program)])
	status, out, err = printed[0]
	if status:
		raise runner.Failure('exited %d: %s' % (status, runner.text(err[-2000:])))
	return runner.text(out)


def main(mode, build, program):
	directory = tempfile.mkdtemp(prefix='ckt-')
	os.chmod(directory, 0o755)
	try:
		ours = cases(run(mode, build, program, directory))
	except runner.Failure as failure:
		print(failure)
		return 1
	finally:
		shutil.rmtree(directory, ignore_errors=True)
	real, may, bad, differ = cases((HERE / 'misuse.txt').read_text()), excused(mode), 0, 0
	for case in sorted(set(real) | set(ours)):
		same = real.get(case) == ours.get(case)
		differ += not same
		if same == (case not in may) or may.get(case):
			continue
		bad += 1
		print(case + (': agrees, but stands in misuse.list' if same else ''))
		for line in difflib.unified_diff(real.get(case, ['  not recorded']), ours.get(case, ['  not run']), lineterm='', n=0):
			if not line.startswith(('---', '+++', '@@')):
				print('\t' + line)
	print('%d misuses agree, %d differ, %d of them not as listed' % (len(real) - differ, differ, bad))
	return 1 if bad else 0


if __name__ == '__main__':
	sys.exit(main(*sys.argv[1:]))
