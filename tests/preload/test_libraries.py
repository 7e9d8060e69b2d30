#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A program gets the shim of a forwarded library however it finds the genuine one: linked with it, opened by path or by name, needed by a library
that it opens, looked up by symbol, probed; with cricket-run's environment (LD_PRELOAD and LD_AUDIT) and with LD_PRELOAD alone.

Shims and genuine libraries are stand-ins whose functions say which of them they are.  usage: test_libraries.py --libraries DIR --source DIR --cc CC
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from stage import Stage, run

arguments = None

# Every library has these; cublas stands for the name of the library in them.
LIBRARY = '''
#include <stdio.h>
const char *cublasWho(void) { return WHO; }
const char *cublasWhoElse(void) __attribute__((alias("cublasWho")));
/* All registers that arguments come in. */
const char *cublasArguments(long a, long b, long c, long d, long e, long f, double g, double h, double i, double j, double k, double l, double m, double n, long o)
{
	static char text[256];
	snprintf(text, sizeof(text), "%s %ld %ld %ld %ld %ld %ld %g %g %g %g %g %g %g %g %ld", WHO, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o);
	return text;
}
#ifdef GENUINE
const char *cublasPrivate(void) { return WHO; }
#endif
'''

# A library that is not forwarded and calls one that is.
USER = '''
const char *cublasWho(void);
const char *USER(void) { return cublasWho(); }
'''

# As many words, as many lines.
PROBE = '''
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
const char *cublasWho(void), *cublasArguments(long, long, long, long, long, long, double, double, double, double, double, double, double, double, long),
	   *cublasPrivate(void);
#ifdef EARLY
/* Runs before main, as global objects of C++ do. */
static const char *early;
__attribute__((constructor)) static void constructor(void) { early = cublasWho(); }
#endif
static const char *call(void *handle, const char *name)
{
	const char *(*function)(void) = (const char *(*)(void))dlsym(handle, name);
	return function ? function() : "no function";
}
int main(int argc, char **argv)
{
	char *name;
	for (int i = 1; i < argc; i++) {
		char *word = argv[i], *rest = strchr(word, ':');
		if (rest)
			*rest++ = 0;
		if (strcmp(word, "open") == 0 || strcmp(word, "global") == 0 || strcmp(word, "probe") == 0) {
			void *handle = dlopen(rest, RTLD_NOW | (*word == 'g' ? RTLD_GLOBAL : *word == 'p' ? RTLD_NOLOAD : 0));
			puts(handle ? call(handle, "cublasWho") : *word == 'p' ? "not loaded" : dlerror());
		} else if (strcmp(word, "use") == 0 && (name = strchr(rest, '='))) {
			*name++ = 0;
			void *handle = dlopen(name, RTLD_NOW);
			puts(handle ? call(handle, rest) : dlerror());
		} else if (strcmp(word, "default") == 0) {
			puts(call(RTLD_DEFAULT, "cublasWho"));
		} else if (strcmp(word, "version") == 0) {
			const char *(*function)(void) = (const char *(*)(void))dlvsym(RTLD_DEFAULT, "cublasWho", rest);
			puts(function ? function() : "no function");
		} else if (strcmp(word, "cd") == 0) {
			puts(chdir(rest) == 0 ? "there" : "not there");
		}
#ifdef LINKED
		else if (strcmp(word, "call") == 0)
			puts(cublasWho());
		else if (strcmp(word, "arguments") == 0)
			puts(cublasArguments(1, 2, 3, 4, 5, 6, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5, 7));
#endif
#ifdef PRIVATE
		else if (strcmp(word, "private") == 0)
			printf("%d\\n", ((int (*)(void))cublasPrivate)());
#endif
#ifdef EARLY
		else if (strcmp(word, "early") == 0)
			puts(early);
#endif
	}
	return 0;
}
'''

ARGUMENTS = ' 1 2 3 4 5 6 1.5 2.5 3.5 4.5 5.5 6.5 7.5 8.5 7'
MODES = ('run', 'preload')


class Libraries(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)
        self.stage = Stage(self.temporary.name, arguments.libraries, arguments.source, arguments.cc)
        self.stage.make_standins()
        self.client = self.stage.client
        for name in ('cublas', 'cublasLt'):
            for major in (12, 13):
                self.library(self.client, name, major, 'shim')
        self.library(self.client, 'cufft', 12, 'shim')
        self.genuine = self.make('genuine')
        self.library(self.genuine, 'cublas', 13)
        self.probe = self.program('probe')

    def make(self, *path):
        directory = self.stage.path(os.path.join(*path))
        os.makedirs(directory, exist_ok=True)
        return directory

    def library(self, directory, name, major, who='genuine', file=None):
        soname = f'lib{name}.so.{major}'
        text = LIBRARY.replace('cublas', name)
        source = self.stage.write(f'{who}-{name}.c', text)
        version = self.stage.write(f'{name}.{major}.map', '%s { *; };\n' % soname)
        output = os.path.join(directory, file or soname)
        self.stage.compile('-shared', '-fPIC', '-w', '-O1', f'-DWHO="{who} {name} {major}"', *(['-DGENUINE'] if who == 'genuine' else []), source, '-o', output,
                           '-Wl,-soname,' + soname, '-Wl,--version-script=' + version)
        return output

    def user(self, path, function, *needs, rpath=None, runpath=None):
        """A library that uses libcublas and is linked with the others."""
        name = os.path.basename(path)
        paths = [f'-Wl,-rpath,{rpath or runpath}', '-Wl,--disable-new-dtags' if rpath else '-Wl,--enable-new-dtags'] if rpath or runpath else []
        self.stage.compile('-shared', '-fPIC', '-w', f'-DUSER={function}', self.stage.write('user.c', USER), '-o', path, '-Wl,-soname,' + name,
                           '-Wl,--no-as-needed', *needs, *paths, '-Wl,--allow-shlib-undefined')
        return path

    def program(self, name, *options):
        output = self.stage.path(name)
        self.stage.compile('-w', self.stage.write('probe.c', PROBE), '-o', output, *options, '-ldl')
        return output

    def linked(self, name, *options, paths=()):
        return self.program(name, '-DLINKED', *options, os.path.join(self.genuine, 'libcublas.so.13'), *paths)

    def lines(self, mode, program, *words, status=0, **env):
        environment = self.stage.environment(audit=mode == 'run', preload=mode != 'plain')
        for name in ('REMOTE_GPU_ADDRESS', 'LD_LIBRARY_PATH'):
            environment.pop(name, None)
        done = subprocess.run([program, *words], env={**environment, **env}, capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        self.errors = done.stderr
        return done.stdout.splitlines()

    def both(self, program, words, expected, **env):
        for mode in MODES:
            with self.subTest(mode=mode, words=words):
                self.assertEqual(self.lines(mode, program, *words, **env), expected)

    # ---- linked with it

    def test_needed(self):
        """By run path of both kinds and by LD_LIBRARY_PATH, where NVIDIA's is; constructors call it, too."""
        for kind in ('rpath', 'runpath', 'environment'):
            tags = '-Wl,--disable-new-dtags' if kind == 'rpath' else '-Wl,--enable-new-dtags'
            program = self.linked('linked-' + kind, '-DEARLY', paths=() if kind == 'environment' else ('-Wl,-rpath,' + self.genuine, tags))
            env = {'LD_LIBRARY_PATH': self.genuine} if kind == 'environment' else {}
            self.assertEqual(self.lines('plain', program, 'call', **env), ['genuine cublas 13'])
            self.both(program, ['early', 'call', 'call', 'default', 'arguments', 'version:libcublas.so.13'],
                      ['shim cublas 13'] * 4 + ['shim cublas 13' + ARGUMENTS, 'shim cublas 13'], **env)
            # The first call with all registers in use.
            self.both(self.linked('first-' + kind, paths=('-Wl,-rpath,' + self.genuine, tags)), ['arguments'], ['shim cublas 13' + ARGUMENTS])

    def test_needed_and_absent(self):
        program = self.linked('absent')
        self.assertEqual(self.lines('run', program, 'call', 'open:libcublas.so.13'), ['shim cublas 13'] * 2)
        # The loader stops before anything of ours runs; with our directory in its path it finds the shim.
        self.lines('preload', program, 'call', status=127)
        self.assertIn('libcublas.so.13', self.errors)
        self.both(program, ['call', 'open:libcublas.so.13', 'probe:libcublas.so.13'], ['shim cublas 13'] * 3, LD_LIBRARY_PATH=self.client)

    def test_needed_by_a_needed_library(self):
        """libcusolver.so.12 is not forwarded, and brings NVIDIA's libcublas.so.13 along."""
        solver = self.user(os.path.join(self.genuine, 'libcusolver.so.12'), 'cusolverUser', os.path.join(self.genuine, 'libcublas.so.13'), runpath='$ORIGIN')
        program = self.program('with-solver', '-Wl,--no-as-needed', solver, '-Wl,-rpath,' + self.genuine, '-Wl,--allow-shlib-undefined')
        self.both(program, ['use:cusolverUser=libcusolver.so.12', 'default'], ['shim cublas 13'] * 2)

    def test_function_without_a_shim(self):
        """An export of NVIDIA's that the shim lacks is refused with the library's own status, and named once."""
        program = self.linked('private', '-DPRIVATE', '-Wl,-z,lazy', paths=('-Wl,-rpath,' + self.genuine,))
        self.assertEqual(self.lines('preload', program, 'private', 'call', 'private'), ['15', 'shim cublas 13', '15'])
        self.assertEqual(self.errors.count('cublasPrivate of libcublas.so.13 is not supported'), 1, self.errors)

    # ---- opened

    def test_path(self):
        wheel, twelve = self.make('site', 'nvidia', 'cu13', 'lib'), self.make('site', 'nvidia', 'cublas', 'lib')
        long = self.library(wheel, 'cublas', 13, file='libcublas.so.13.1.2.3')
        self.library(wheel, 'cublas', 13, file='libcublas-1a2b3c4d.so.13')
        os.symlink('libcublas.so.13.1.2.3', os.path.join(wheel, 'libcublas.so.13'))
        os.symlink('libcublas.so.12', os.path.join(twelve, 'libcublas.so'))
        self.library(twelve, 'cublas', 12)
        for path in (os.path.join(wheel, 'libcublas.so.13'), long, os.path.join(wheel, 'libcublas-1a2b3c4d.so.13'), '/nowhere/libcublas.so.13'):
            self.both(self.probe, ['open:' + path, 'global:' + path, 'default', 'open:' + path], ['shim cublas 13'] * 4)
        # A link without a version in its name is of the version that it leads to.
        self.both(self.probe, ['open:' + os.path.join(twelve, 'libcublas.so')], ['shim cublas 12'])

    def test_name(self):
        for env in ({}, {'LD_LIBRARY_PATH': self.genuine}):
            self.both(self.probe, ['open:libcublas.so.13', 'open:libcublas.so.12', 'open:libcublasLt.so.13'],
                      ['shim cublas 13', 'shim cublas 12', 'no function'], **env)
            # Without a version: the newest, or the one that is there.
            self.both(self.probe, ['open:libcublas.so'], ['shim cublas 13'], **env)
            self.both(self.probe, ['open:libcublas.so.12', 'open:libcublas.so', 'cd:/', 'open:libcublas.so.13'],
                      ['shim cublas 12', 'shim cublas 12', 'there', 'shim cublas 13'], **env)

    def test_needed_by_an_opened_library(self):
        """As libtorch_cuda.so and cupy_backends/*.so: by path and by name, with run paths of their own, at any depth."""
        torch, nvidia = self.make('torch', 'lib'), self.make('torch', 'nvidia')
        cublas = self.library(nvidia, 'cublas', 13)
        path = self.user(os.path.join(torch, 'libtorch_cuda.so'), 'torchUser', cublas, runpath='$ORIGIN/../nvidia')
        # NVIDIA's own solver, found by a run path that the library behind it has inherited.
        solver = self.user(os.path.join(nvidia, 'libcusolver.so.12'), 'solverUser', cublas)
        deep = self.user(os.path.join(torch, 'libdeep.so'), 'deepUser', solver, rpath=nvidia)
        top = self.user(os.path.join(torch, 'libtop.so'), 'topUser', deep, runpath='${ORIGIN}')
        caller = self.program('caller', '-Wl,-rpath,' + torch, '-Wl,--enable-new-dtags')
        old_caller = self.program('old-caller', '-Wl,-rpath,' + torch, '-Wl,--disable-new-dtags')
        for there in (True, False):
            if not there:
                os.unlink(cublas)
            for name, function in ((path, 'torchUser'), (deep, 'deepUser'), (solver, 'solverUser'), (top, 'topUser')):
                self.both(self.probe, [f'use:{function}={name}', 'probe:libcublas.so.13'], ['shim cublas 13'] * 2)
            for program in (caller, old_caller):
                self.both(program, ['use:torchUser=libtorch_cuda.so'], ['shim cublas 13'])
                self.both(program, ['use:topUser=libtop.so'], ['shim cublas 13'])
            self.both(self.probe, ['use:torchUser=libtorch_cuda.so', 'use:deepUser=libdeep.so'], ['shim cublas 13'] * 2, LD_LIBRARY_PATH=torch)

    def test_caller_counts(self):
        """A library that opens another by name is the one whose run path is searched, as without us."""
        plugins = self.make('plugins')
        self.stage.compile('-shared', '-fPIC', '-w', '-x', 'c', self.stage.write('plugin.c', 'const char *plugin(void) { return "plugin"; }'), '-o',
                           os.path.join(plugins, 'libplugin.so'))
        opener = os.path.join(self.make('opener'), 'libopener.so')
        text = '#include <dlfcn.h>\nconst char *opener(void) { void *h = dlopen("libplugin.so", RTLD_NOW); return h ? ((const char *(*)(void))dlsym(h, "plugin"))() : dlerror(); }'
        self.stage.compile('-shared', '-fPIC', '-w', self.stage.write('opener.c', text), '-o', opener, '-Wl,-rpath,' + plugins)
        self.assertEqual(self.lines('plain', self.probe, 'use:opener=' + opener), ['plugin'])
        self.both(self.probe, ['use:opener=' + opener], ['plugin'])

    def test_errors_are_the_loaders(self):
        words = ['open:libnowhere.so', 'open:/nowhere/libtorch.so', 'open:/dev/null', 'open:/etc/passwd', 'open:']
        self.both(self.probe, words, self.lines('plain', self.probe, *words))

    def test_probes(self):
        """RTLD_NOLOAD, as cuda-pathfinder asks."""
        path = os.path.join(self.genuine, 'libcublas.so.13')
        self.both(self.probe, ['probe:libcublas.so.13', 'probe:' + path, 'probe:libcublas.so', 'open:' + path, 'probe:libcublas.so.13', 'probe:' + path,
                               'probe:libcublas.so', 'probe:libcublas.so.12'],
                  ['not loaded'] * 3 + ['shim cublas 13'] * 4 + ['not loaded'])
        # Linked with NVIDIA's: it is found there before its first call, and answers as ours.
        self.both(self.linked('prober', paths=('-Wl,-rpath,' + self.genuine,)), ['probe:libcublas.so.13', 'probe:' + path, 'call', 'probe:libcublas.so.13'],
                  ['shim cublas 13'] * 4)

    def test_two_majors(self):
        twelve = self.make('twelve')
        cublas = self.library(twelve, 'cublas', 12)
        old = self.user(os.path.join(twelve, 'libold.so'), 'oldUser', cublas, runpath='$ORIGIN')
        new = self.user(os.path.join(twelve, 'libnew.so'), 'newUser', os.path.join(self.genuine, 'libcublas.so.13'), runpath=self.genuine)
        words, expected = ['use:oldUser=' + old, 'use:newUser=' + new, 'open:' + cublas, 'open:libcublas.so.13'], \
            ['shim cublas 12', 'shim cublas 13', 'shim cublas 12', 'shim cublas 13']
        self.both(self.probe, words, expected)
        self.both(self.probe, words[::-1], expected[::-1])
        # Linked with one, opens the other.
        self.both(self.linked('two', paths=('-Wl,-rpath,' + self.genuine,)), ['call', *words], ['shim cublas 13', *expected])

    def test_global_scope(self):
        """A handle's scope and the program's."""
        self.both(self.probe, ['default', 'open:libcublas.so.13', 'default', 'global:libcublas.so.13', 'default', 'version:libcublas.so.13', 'version:libcublas.so.12'],
                  ['no function', 'shim cublas 13', 'no function', 'shim cublas 13', 'shim cublas 13', 'shim cublas 13', 'no function'])

    def test_python(self):
        """ctypes by full path, RTLD_GLOBAL, as torch/__init__.py and CuPy's wheels do it, and cuda-pathfinder itself where it is installed."""
        wheel = self.make('site', 'nvidia', 'cu13', 'lib')
        path = self.library(wheel, 'cublas', 13)
        for package in ('nvidia', os.path.join('nvidia', 'cu13')):
            open(os.path.join(self.stage.path('site'), package, '__init__.py'), 'w', encoding='utf-8').close()
        text = f'''
import ctypes
library = ctypes.CDLL({path!r}, mode=ctypes.RTLD_GLOBAL)
library.cublasWho.restype = ctypes.c_char_p
print(library.cublasWho().decode())
try:
    from cuda.pathfinder import load_nvidia_dynamic_lib
except ImportError:
    print('shim cublas 13')
else:
    found = ctypes.CDLL(None)
    loaded = load_nvidia_dynamic_lib('cublas')
    dlsym = found.dlsym
    dlsym.restype, dlsym.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_char_p]
    print(ctypes.CFUNCTYPE(ctypes.c_char_p)(dlsym(loaded._handle_uint, b'cublasWho'))().decode())
'''
        for python in {sys.executable, os.environ.get('CKT_TEST_PYTHON') or sys.executable}:
            self.both(python, ['-c', text], ['shim cublas 13'] * 2, PYTHONPATH=self.stage.path('site'))

    # ---- left alone

    def test_not_forwarded(self):
        """What has no shim is NVIDIA's: another library, another version, one that is switched off."""
        other, eleven, lt = self.library(self.genuine, 'curand', 10), self.library(self.genuine, 'cublas', 11), self.library(self.genuine, 'cublasLt', 13)
        cublas = os.path.join(self.genuine, 'libcublas.so.13')
        fft = self.library(self.genuine, 'cufft', 12)
        words = ['use:curandWho=' + other, 'open:' + eleven, 'open:' + cublas, 'use:cublasLtWho=' + lt, 'use:cufftWho=' + fft]
        kept, all_genuine = ['genuine curand 10', 'genuine cublas 11'], ['genuine cublas 13', 'genuine cublasLt 13', 'genuine cufft 12']
        all_shims = [line.replace('genuine', 'shim') for line in all_genuine]
        self.both(self.probe, words, kept + all_shims)
        self.both(self.probe, words, kept + all_shims[:2] + all_genuine[2:], CRICKET_LIBRARIES='-cufft')
        self.both(self.probe, words, kept + all_genuine[:2] + all_shims[2:], CRICKET_LIBRARIES='cufft')
        # cuBLASLt's shim does not go with NVIDIA's cuBLAS.
        self.both(self.probe, words, kept + all_genuine[:2] + all_shims[2:], CRICKET_LIBRARIES='-cublas')
        self.both(self.probe, words, kept + all_genuine, CRICKET_LIBRARIES='none')
        self.both(self.probe, words, kept + all_genuine, REMOTE_GPU_ADDRESS='local:')
        linked = self.linked('switched-off', paths=('-Wl,-rpath,' + self.genuine,))
        self.both(linked, ['call'], ['genuine cublas 13'], CRICKET_LIBRARIES='none')
        self.both(linked, ['call'], ['genuine cublas 13'], REMOTE_GPU_ADDRESS='local:/x/libcuda.so.1')

    def test_said(self):
        """With CRICKET_LOG=debug, which file stands for which."""
        for mode in MODES:
            self.lines(mode, self.probe, 'open:/nowhere/libcublas.so.13', CRICKET_LOG='debug')
            self.assertIn(f'{self.client}/libcublas.so.13 is taken for /nowhere/libcublas.so.13', self.errors)
            self.lines(mode, self.probe, 'open:/nowhere/libcublas.so.13')
            self.assertEqual(self.errors, '')

    def test_relative_preload(self):
        """Named by a relative path, the libraries are found from wherever the program goes."""
        environment = {**self.stage.environment(), 'LD_PRELOAD': './libcricket-client.so'}
        done = subprocess.run([self.probe, 'cd:/', 'open:libcublas.so.13'], env=environment, cwd=self.client, capture_output=True, text=True, check=True)
        self.assertEqual(done.stdout.splitlines(), ['there', 'shim cublas 13'])

    def test_programs_that_need_none(self):
        """No shim is looked for, opened or mapped, and the kernel is asked nothing more than without shims."""
        strace, out = shutil.which('strace'), self.stage.path('strace')
        if not strace or subprocess.run([strace, '-o', out, 'true'], capture_output=True, check=False).returncode != 0:
            self.skipTest('no strace here')
        bare = tempfile.TemporaryDirectory()
        self.addCleanup(bare.cleanup)
        without = Stage(bare.name, arguments.libraries, arguments.source, arguments.cc)
        without.make_standins()
        for command in (['/bin/true'], ['sh', '-c', ':'], [sys.executable, '-c', 'import hashlib, json, socket']):
            for audit in (False, True):
                counts = []
                for stage in (self.stage, without):
                    run([strace, '-f', '-qq', '-o', out, *command], env=stage.environment(audit=audit))
                    with open(out, encoding='utf-8', errors='replace') as file:
                        text = file.read()
                    self.assertNotRegex(text, r'lib(cublas|cublasLt|cufft)\.so')
                    counts.append(len(re.findall(r'^\d+ +(?:open|openat|access|readlink|stat|newfstatat|mmap|mprotect)\(', text, re.M)))
                self.assertEqual(counts[0], counts[1], (command, audit))


def main():
    global arguments
    parser = argparse.ArgumentParser()
    for option in ('--libraries', '--source', '--cc'):
        parser.add_argument(option, required=True)
    arguments, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0]] + rest)


if __name__ == '__main__':
    main()
