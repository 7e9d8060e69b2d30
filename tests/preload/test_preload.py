#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A preloaded program without CUDA is left alone: no session, no thread, no changed environment, errno kept, next to no time.

usage: test_preload.py --libraries DIR --source DIR --cuda-home DIR --cc CC
DIR holds libcricket-{client,patch,audit}.so; where it also holds our real libcudart.so.13, libcuda.so.1 and libnvidia-ml.so.1 they are used, otherwise stand-ins.
"""
import argparse
import collections
import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import unittest

from stage import Stage, run

arguments = None

# All that the preloaded library takes libc's place for; the rest of a program's names are left alone.
SYSTEM_CALLS = set('''read __read_chk pread pread64 __pread_chk __pread64_chk readv preadv preadv64 preadv2 preadv64v2
    write pwrite pwrite64 writev pwritev pwritev64 pwritev2 pwritev64v2
    recv __recv_chk recvfrom __recvfrom_chk recvmsg recvmmsg send sendto sendmsg sendmmsg
    fread fread_unlocked __fread_chk __fread_unlocked_chk fwrite fwrite_unlocked process_vm_readv process_vm_writev'''.split())

PROBE = '''
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
static int early = -1;
__attribute__((constructor)) static void constructor(void) { early = errno; }
int main(void)
{
	int main_errno = errno, tasks = -2;
	DIR *directory = opendir("/proc/self/task");
	while (readdir(directory))
		tasks++;
	printf("errno %d %d tasks %d client %d\\n", early, main_errno, tasks, dlsym(RTLD_DEFAULT, "cudaMalloc") != NULL);
	return 0;
}
'''

FORKER = '''
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
int cudaGetDeviceCount(int *count);
int main(void)
{
	int count = 0, status = -1, first = cudaGetDeviceCount(&count);
	pid_t pid = fork();
	if (pid == 0) {
		int result = cudaGetDeviceCount(&count);
		_exit(result ? 3 : 4);
	}
	waitpid(pid, &status, 0);
	printf("%d %d %d\\n", first != 0, WIFEXITED(status), WEXITSTATUS(status));
	return 0;
}
'''


# Kernels are registered before main and unregistered at exit, in the child too; no call needs a device.
IDLE = '''
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
__global__ void kernel(int *p) { *p = 1; }
int main(int argc, char **argv)
{
	int status = 0, version = 0;
	if (argc > 5)
		kernel<<<1, 1>>>(nullptr);
	if (cudaRuntimeGetVersion(&version) != cudaSuccess)
		return 1;
	pid_t pid = fork();
	if (pid == 0)
		exit(4);
	waitpid(pid, &status, 0);
	exit(WIFEXITED(status) && WEXITSTATUS(status) == 4 ? 3 : 2);
}
'''


def dynamic(path, tag):
    return re.findall(r'\(%s\).*?\[(.*?)\]' % tag, run(['readelf', '-dW', path]).stdout)


class Preload(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.stage = Stage(cls.temporary.name, arguments.libraries, arguments.source, arguments.cc)
        real = [os.path.join(os.path.abspath(arguments.libraries), n) for n in ('libcudart.so.13', 'libcuda.so.1', 'libnvidia-ml.so.1')]
        cls.is_real = all(map(os.path.exists, real))
        if cls.is_real:
            for path in real:
                os.symlink(os.path.realpath(path), os.path.join(cls.stage.client, os.path.basename(path)))
        else:
            cls.stage.make_standins()
        print('with', 'our own' if cls.is_real else 'stand-in', 'CUDA libraries', file=sys.stderr)
        cls.probe = cls.stage.path('probe')
        cls.stage.compile('-w', cls.stage.write('probe.c', PROBE), '-o', cls.probe, '-ldl')

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def library(self, name):
        return os.path.join(self.stage.client, name)

    def exported(self, name):
        names = {f[-1] for f in map(str.split, run(['nm', '-D', '--defined-only', self.library(name)]).stdout.splitlines()) if f[-2] != 'A'}
        return {n for n in names if not n.startswith('__gcov_') and n != 'mangle_path'} # libgcov's, in a coverage build

    def test_patch_library(self):
        path = self.library('libcricket-patch.so')
        self.assertEqual(self.exported('libcricket-patch.so'), set())
        self.assertLessEqual(set(dynamic(path, 'NEEDED')), {'libc.so.6', 'ld-linux-x86-64.so.2'})
        self.assertIn('INITFIRST', run(['readelf', '-dW', path]).stdout)

    def test_client_library(self):
        path = self.library('libcricket-client.so')
        self.assertEqual(self.exported('libcricket-client.so'), SYSTEM_CALLS | {'cricket_buffers', 'dlopen', 'cricket_at_exit', '_exit', '_Exit'})
        self.assertEqual(set(dynamic(path, 'NEEDED')),
                         {'libcricket-patch.so', '$ORIGIN/libcudart.so.13', '$ORIGIN/libcuda.so.1', '$ORIGIN/libnvidia-ml.so.1', 'libc.so.6'})
        self.assertTrue(all(p in ('$ORIGIN', '') for p in dynamic(path, 'RUNPATH')[0].split(':')), dynamic(path, 'RUNPATH'))
        self.assertEqual(self.exported('libcricket-audit.so'), {'la_version', 'la_objsearch', 'la_objopen', 'la_objclose', 'la_activity'})

    def test_only_cuda_is_exported(self):
        if not self.is_real:
            self.skipTest('our CUDA libraries are not built')
        self.assertEqual({n for n in self.exported('libcudart.so.13') if not re.match(r'(__)?cuda[A-Z]\w+@@libcudart\.so\.13$', n)}, set())
        self.assertEqual({n for n in self.exported('libnvidia-ml.so.1') if not re.match(r'nvml[A-Z]\w+$', n)}, set())
        # The last is what the shims of forwarded libraries ask for; see client/libs/libs.h.
        self.assertEqual({n for n in self.exported('libcuda.so.1') if not re.match(r'cu([A-Z]|dbg)\w+$', n)}, {'ckt_client_table', 'ckt_trace_table'})
        # As NVIDIA's own: what a toolkit of another release has besides is the generator's to know.
        for name in ('libcudart.so.13', 'libcuda.so.1'):
            with open(os.path.join(arguments.source, 'tests', 'truth', 'exports', name + '.txt'), encoding='utf-8') as file:
                genuine = set(file.read().split())
            self.assertEqual(genuine - {n.split('@')[0] for n in self.exported(name)}, set(), name)
        for name in ('libcudart.so.13', 'libcuda.so.1', 'libnvidia-ml.so.1'):
            self.assertLessEqual(set(dynamic(self.library(name), 'NEEDED')), {'libc.so.6', 'ld-linux-x86-64.so.2', 'libcuda.so.1', 'libm.so.6'})

    def test_glibc_ceiling(self):
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'check_glibc.py')
        files = [self.library(n) for n in os.listdir(self.stage.client)] + [os.path.join(arguments.libraries, 'cricket-run')]
        run([sys.executable, script] + [f for f in files if os.path.exists(f)])
        too_low = subprocess.run([sys.executable, script, '--ceiling', '2.1', self.library('libcricket-patch.so')], check=False, capture_output=True)
        self.assertEqual(too_low.returncode, 1)

    def test_quiet_programs(self):
        """None of these talks to the server that the address names."""
        listener = socket.socket(socket.AF_UNIX)
        address = self.stage.path('listener')
        listener.bind(address)
        listener.listen(8)
        listener.setblocking(False)
        source = self.stage.write('empty.c', 'int main(void) { return 0; }')
        commands = [['bash', '-c', ':'], ['timeout', '5', 'true'], [*arguments.cc.split(), source, '-o', self.stage.path('empty')],
                    ['/usr/bin/python3', '-c', 'pass'], ['python3', '-c', 'pass']]
        for audit in (False, True):
            for command in commands:
                environment = self.stage.environment(audit=audit, REMOTE_GPU_ADDRESS='unix:' + address, CRICKET_NO_SUCH='1')
                result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
                self.assertEqual((command, result.returncode, result.stdout, result.stderr), (command, 0, '', ''))
        with self.assertRaises(BlockingIOError):
            listener.accept()
        listener.close()

    def test_quiet_to_the_kernel(self):
        """Preloaded, they make the sockets, connections, processes and threads that they make by themselves."""
        strace, out = shutil.which('strace'), self.stage.path('strace')
        if not strace or subprocess.run([strace, '-o', out, 'true'], capture_output=True, check=False).returncode != 0:
            self.skipTest('no strace here')
        source = self.stage.write('empty.c', 'int main(void) { return 0; }')
        # Not through ccache, which does less when it meets the file again.
        compiler = [arguments.cc.split()[-1], source, '-o', self.stage.path('empty')]
        for command in (['bash', '-c', ':'], ['timeout', '5', 'true'], compiler, ['python3', '-c', 'pass']):
            counts = []
            for environment in (self.stage.environment(preload=False), self.stage.environment(), self.stage.environment(audit=True)):
                environment['REMOTE_GPU_ADDRESS'] = 'unix:' + self.stage.path('nobody')
                run([strace, '-f', '-qq', '-o', out, '-e', 'trace=socket,connect,clone,clone3,fork,vfork', *command], env=environment)
                with open(out, encoding='utf-8', errors='replace') as file:
                    counts.append(collections.Counter(re.findall(r'^\d+ +(\w+)\(', file.read(), re.M)))
            self.assertEqual((command, counts), (command, counts[:1] * 3))

    def test_errno_and_threads(self):
        for audit in (False, True):
            output = run([self.probe], env=self.stage.environment(audit=audit)).stdout
            self.assertEqual(output, 'errno 0 0 tasks 1 client 1\n')
        self.assertEqual(run([self.probe], env=self.stage.environment(preload=False)).stdout, 'errno 0 0 tasks 1 client 0\n')

    def test_environment(self):
        plain = run(['env'], env=self.stage.environment()).stdout
        self.assertNotIn('TRITON_LIBCUDA_PATH', plain)
        show = ['/usr/bin/python3', '-c', 'import os; print(os.environ.get("TRITON_LIBCUDA_PATH"))']
        found = run(show, env=self.stage.environment()).stdout.strip()
        self.assertTrue(os.path.exists(os.path.join(found, 'libcricket-client.so')), found)
        self.assertEqual(run(show, env=self.stage.environment(TRITON_LIBCUDA_PATH='/mine')).stdout.strip(), '/mine')

    @unittest.skipIf(os.path.exists('/dev/nvidiactl'), 'the machine has a driver')
    def test_device_files(self):
        """Python, and nobody else, finds the two files by which JAX tells whether there is a GPU."""
        names = ['/dev/nvidia0', '/dev/nvidiactl', '/dev/nvidia1', '/dev/null', '/nowhere']
        code = 'import os, sys; print([os.path.exists(n) for n in sys.argv[1:]], "nvidia0" in os.listdir("/dev"))'
        for python in {sys.executable, shutil.which('python3')}:
            done = subprocess.run([python, '-c', code] + names, env=self.stage.environment(), capture_output=True, text=True, check=True)
            self.assertEqual(done.stdout, '[True, True, False, True, False] False\n')
            done = subprocess.run([python, '-c', code] + names, env=self.stage.environment(preload=False), capture_output=True, text=True, check=True)
            self.assertEqual(done.stdout, '[False, False, False, True, False] False\n')
        self.assertEqual(subprocess.run(['test', '-e', '/dev/nvidia0'], env=self.stage.environment(), check=False).returncode, 1)

    def test_fork(self):
        code = 'import os, sys\npid = os.fork()\nif pid == 0: os._exit(5)\nsys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))'
        self.assertEqual(subprocess.run(['python3', '-c', code], env=self.stage.environment(), check=False).returncode, 5)

    def test_fork_after_cuda(self):
        if not self.is_real:
            self.skipTest('our CUDA libraries are not built')
        program = self.stage.path('forker')
        self.stage.compile('-w', self.stage.write('forker.c', FORKER), '-o', program, '-L' + self.stage.client, '-l:libcudart.so.13')
        environment = self.stage.environment(REMOTE_GPU_ADDRESS='unix:' + self.stage.path('nobody'), CRICKET_NO_SUCH='1')
        result = subprocess.run([program], env=environment, capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual((result.returncode, result.stdout), (0, '1 1 3\n'), result.stderr)
        self.assertEqual(result.stderr.count('CRICKET_NO_SUCH'), 1, result.stderr)

    def test_idle_cuda_program(self):
        nvcc = os.path.join(arguments.cuda_home, 'bin/nvcc')
        if not self.is_real or not os.path.exists(nvcc):
            self.skipTest('our CUDA libraries or nvcc are not there')
        with socket.socket(socket.AF_UNIX) as listener:
            address = self.stage.path('idle-listener')
            listener.bind(address)
            listener.listen(8)
            listener.setblocking(False)
            for mode in (['-cudart', 'static'], ['-cudart', 'shared'], ['-rdc=true']):
                program = self.stage.path('idle')
                run([nvcc, *mode, '-o', program, self.stage.write('idle.cu', IDLE)])
                for audit in (False, True):
                    environment = self.stage.environment(audit=audit, REMOTE_GPU_ADDRESS='unix:' + address)
                    result = subprocess.run([program], env=environment, capture_output=True, text=True, timeout=60, check=False)
                    self.assertEqual((mode, result.returncode, result.stdout + result.stderr), (mode, 3, ''))
            with self.assertRaises(BlockingIOError):
                listener.accept()

    def test_cost(self):
        """Printed, not asserted: the machine may be busy.  The goal is below 2 ms."""
        def median(environment):
            times = []
            for _ in range(41):
                start = time.perf_counter()
                subprocess.run(['/bin/true'], env=environment, check=True)
                times.append(time.perf_counter() - start)
            return statistics.median(times) * 1e3
        plain = median(self.stage.environment(preload=False))
        for name, environment in (('preload', self.stage.environment()), ('preload + audit', self.stage.environment(audit=True))):
            print('%s: %.2f ms more than %.2f ms' % (name, median(environment) - plain, plain), file=sys.stderr)


def main():
    global arguments
    parser = argparse.ArgumentParser()
    for option in ('--libraries', '--source', '--cuda-home', '--cc'):
        parser.add_argument(option, required=True)
    arguments, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0]] + rest)


if __name__ == '__main__':
    main()
