#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every entry point of a static runtime reaches the function of the same name in our libcudart.so.13: executables and shared libraries,
stripped or not, with and without PIE, opened later, and of a release nobody knows.

usage: test_redirect.py --libraries DIR --source DIR --cuda-home DIR --cc CC [--archive FILE]... [--shared FILE]...
Without nvcc or the archive: exit status 77.
"""
import argparse
import ctypes
import os
import re
import subprocess
import sys
import tempfile
import unittest

from stage import Stage, archive_names, run, target_12

arguments = None

CALLER = '''
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
%(externs)s
static const struct { const char *name, *expected; void (*function)(); } calls[] = {
%(rows)s
};
int %(main)s(void)
{
	const char **last = dlsym(RTLD_DEFAULT, "standin_last");
	int *count = dlsym(RTLD_DEFAULT, "standin_calls"), wrong = 0;

	if (!last || !count)
		return 99;
	if (*count != %(early)s)
		printf("calls before main: %%d\\n", *count);
	for (unsigned i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		*last = "nothing";
		calls[i].function(0L, 0L, 0L, 0L, 0L, 0L);
		if (strcmp(*last, calls[i].expected) != 0) {
			printf("%%s reached %%s\\n", calls[i].name, *last);
			wrong = 1;
		}
	}
	printf("%%u\\n", (unsigned)(sizeof(calls) / sizeof(calls[0])));
	return wrong;
}
'''

# A constructor of the program, which runs before main and must already be redirected: this is when nvcc's code registers kernels.
EARLY = '''
void __cudaInitModule(void);
__attribute__((constructor)) static void early(void) { __cudaInitModule(); }
'''

KERNEL = '''
#include <dlfcn.h>
#include <stdio.h>
__global__ void kernel(int *p) { *p = 1; }
%(prefix)s int %(main)s()
{
	int *p = nullptr;
	cudaMalloc(&p, 4);
	kernel<<<1, 1>>>(p);
	cudaDeviceSynchronize();
	const char **last = (const char **)dlsym(RTLD_DEFAULT, "standin_last");
	int *count = (int *)dlsym(RTLD_DEFAULT, "standin_calls");
	printf("%%s %%d\\n", last ? *last : "none", count ? *count : 0);
	return 0;
}
'''


class Redirect(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.stage = Stage(cls.temporary.name, arguments.libraries, arguments.source, arguments.cc)
        cls.stage.make_standins()
        cls.archive = os.path.join(arguments.cuda_home, 'lib64/libcudart_static.a')
        cls.archives = [a for a in [cls.archive] + arguments.archive if os.path.exists(a)]
        cls.nvcc = os.path.join(arguments.cuda_home, 'bin/nvcc')

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def caller(self, name, archive, main='main', flags=(), early=False):
        names = archive_names(archive)
        is_12 = 'cudaGetDeviceProperties_v2' in names
        text = CALLER % {'externs': ''.join('void %s(void);\n' % n for n in names), 'main': main, 'early': '1' if early else '0',
                         'rows': ''.join('\t{"%s", "%s", %s},\n' % (n, target_12(n) if is_12 else n, n) for n in names)}
        source = self.stage.write(name + '.c', text + (EARLY if early else ''))
        output = self.stage.path(name)
        self.stage.compile('-w', '-O1', *flags, source, archive, '-o', output, '-ldl', '-lpthread', '-lrt', '-lm')
        return output, len(names)

    def check(self, program, expected, **options):
        result = subprocess.run([program], env=self.stage.environment(**options), capture_output=True, text=True, timeout=60, check=False)
        refusals = re.sub(r'cricket: \w+, called through a static CUDA runtime, is not supported\n', '', result.stderr)
        self.assertEqual((result.returncode, result.stdout.strip(), refusals), (0, str(expected), ''))

    def test_all_entries(self):
        for archive in self.archives:
            with self.subTest(archive):
                program, count = self.caller('all', archive, early=True)
                self.check(program, count)
                run(['strip', program])
                self.check(program, count)

    def test_not_pie(self):
        program, count = self.caller('nopie', self.archive, flags=['-no-pie'])
        self.check(program, count)

    def test_audit_changes_nothing_at_start(self):
        program, count = self.caller('audited', self.archive)
        self.check(program, count, audit=True)

    def test_not_preloaded(self):
        program, _ = self.caller('alone', self.archive)
        result = subprocess.run([program], env=self.stage.environment(preload=False), check=False)
        self.assertEqual(result.returncode, 99)

    def test_needed_library(self):
        library, count = self.caller('libneeded.so', self.archive, main='library_main', flags=['-shared', '-fPIC', '-Wl,-Bsymbolic'], early=True)
        # Behind two more libraries, so that its constructor would run before that of an ordinary preloaded library.
        last = library
        for depth in (1, 2):
            source = self.stage.write('mid.c', 'int library_main(void); int mid%d(void) { return library_main(); }' % depth)
            middle = self.stage.path('libmid%d.so' % depth)
            self.stage.compile('-shared', '-fPIC', source, last, library, '-Wl,--no-as-needed,-rpath,$ORIGIN', '-o', middle)
            last = middle
        source = self.stage.write('user.c', 'int mid2(void); int main(void) { return mid2(); }')
        program = self.stage.path('user')
        self.stage.compile(source, last, '-Wl,-rpath,' + self.stage.directory, '-o', program)
        self.check(program, count)
        run(['strip', library])
        self.check(program, count)

    def test_opened_library(self):
        library, count = self.caller('libopened.so', self.archive, main='library_main', flags=['-shared', '-fPIC', '-Wl,-Bsymbolic'], early=True)
        run(['strip', library])
        source = self.stage.write('opener.c', '''
            #include <dlfcn.h>
            int main(int argc, char **argv)
            {
                void *library = dlopen(argv[1] ? argv[1] : "%s", RTLD_NOW | RTLD_LOCAL);
                int (*function)(void) = library ? (int (*)(void))dlsym(library, "library_main") : 0;
                return function ? function() : 98;
            }''' % library)
        program = self.stage.path('opener')
        self.stage.compile('-w', source, '-o', program, '-ldl')
        self.check(program, count, audit=True)

    def test_opened_runtime(self):
        """NVIDIA's own shared runtime, opened by path as PyTorch does, leads to ours too."""
        source = self.stage.write('byname.c', '''
            #include <dlfcn.h>
            #include <string.h>
            int main(int argc, char **argv)
            {
                void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
                int (*function)(void *) = library ? (int (*)(void *))dlsym(library, "cudaGetDevice") : 0;
                const char **last = dlsym(RTLD_DEFAULT, "standin_last");
                return !function ? 98 : dlsym(RTLD_DEFAULT, "cudaGetDevice") == function ? 97 : function(0) || strcmp(*last, "cudaGetDevice");
            }''')
        program = self.stage.path('byname')
        self.stage.compile('-w', source, '-o', program, '-ldl')
        libraries = [os.path.join(arguments.cuda_home, 'lib64/libcudart.so.13')] + arguments.shared
        for library in filter(os.path.exists, libraries):
            with self.subTest(library):
                result = subprocess.run([program, os.path.realpath(library)], env=self.stage.environment(audit=True), check=False)
                self.assertEqual(result.returncode, 0)

    def damage(self, program, symbols=True):
        """Changes one byte of one entry's code, as another release would."""
        lines = run(['nm', program]).stdout.splitlines()
        address = next(int(f[0], 16) for f in map(str.split, lines) if f[-1] == 'cudaMalloc')
        with open(program, 'r+b') as file:
            data = file.read()
            offset = address     # the linker gives text the same offset as address in a PIE
            self.assertEqual(data[offset:offset + 4], b'\x55\x48\x89\xe5')
            file.seek(offset + 4)
            file.write(bytes([data[offset + 4] ^ 1]))
        if not symbols:
            run(['strip', program])

    def test_unknown_release_with_symbols(self):
        program, count = self.caller('named', self.archive)
        self.damage(program)
        self.check(program, count)

    def test_unknown_release_stripped(self):
        program, _ = self.caller('unknown', self.archive)
        self.damage(program, symbols=False)
        source = self.stage.write('quiet.c', 'void cudaMalloc(void); int main(int argc, char **argv) { if (argc > 5) cudaMalloc(); return 7; }')
        quiet = self.stage.path('quiet')
        self.stage.compile('-w', source, self.archive, '-o', quiet, '-ldl', '-lpthread', '-lrt', '-lm')
        self.damage(quiet, symbols=False)
        result = subprocess.run([quiet], env=self.stage.environment(), capture_output=True, text=True, check=False)
        self.assertEqual(result.returncode, 7)
        self.assertRegex(result.stderr, r'^cricket: \S+ holds a static CUDA runtime that this Cricket does not know .*\n$')

    def nvcc_program(self, name, *flags, main='main', prefix='', link=()):
        if not os.path.exists(self.nvcc):
            self.skipTest('no nvcc')
        source = self.stage.write(name + '.cu', KERNEL % {'main': main, 'prefix': prefix})
        output = self.stage.path(name)
        run([self.nvcc, *flags, '-o', output, source, *link])
        return output

    def check_kernel(self, program):
        result = run([program], env=self.stage.environment())
        last, count = result.stdout.split()
        # Registration, malloc, push, pop, launch, synchronise at least; the stand-in's answers make the host code skip some.
        self.assertEqual((last, result.stderr), ('cudaDeviceSynchronize', ''))
        self.assertGreaterEqual(int(count), 5)

    def test_nvcc(self):
        program = self.nvcc_program('plain')
        self.check_kernel(program)
        run(['strip', program])
        self.check_kernel(program)

    def test_nvcc_not_pie(self):
        self.check_kernel(self.nvcc_program('nopie_nvcc', '-Xcompiler', '-no-pie', '-Xcompiler', '-fno-pie'))

    def test_nvcc_rdc(self):
        self.check_kernel(self.nvcc_program('rdc', '-rdc=true'))

    def test_nvcc_shared(self):
        """Linked with the shared runtime by a machine that has one; here only ours may be found."""
        self.check_kernel(self.nvcc_program('shared', '-cudart', 'shared'))

    def test_nvcc_shared_rpath(self):
        """Even a path to NVIDIA's own runtime inside the program leads to ours."""
        lib = os.path.join(arguments.cuda_home, 'lib64')
        self.check_kernel(self.nvcc_program('rpath', '-cudart', 'shared', '-Xlinker', '-rpath,' + lib))

    def test_refused_text(self):
        """Where text may not become writable the program is told, and left as it was (prctl MDWE stands for SELinux)."""
        program, _ = self.caller('refused', self.archive)
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(66, 0, 0, 0, 0) < 0:     # PR_GET_MDWE, Linux 6.3
            self.skipTest('this kernel has no PR_SET_MDWE')
        result = subprocess.run([program], env=self.stage.environment(), preexec_fn=lambda: libc.prctl(65, 1, 0, 0, 0), check=False,
                                capture_output=True, text=True)
        self.assertRegex(result.stderr, r'^cricket: cannot redirect the CUDA runtime in \S+: the system refused to change its code .*\n')


def main():
    global arguments
    parser = argparse.ArgumentParser()
    for option in ('--libraries', '--source', '--cuda-home', '--cc'):
        parser.add_argument(option, required=True)
    parser.add_argument('--archive', action='append', default=[])
    parser.add_argument('--shared', action='append', default=[])
    arguments, rest = parser.parse_known_args()
    if not os.path.exists(os.path.join(arguments.cuda_home, 'lib64/libcudart_static.a')):
        print('no libcudart_static.a: skipped')
        sys.exit(77)
    unittest.main(argv=[sys.argv[0]] + rest)


if __name__ == '__main__':
    main()
