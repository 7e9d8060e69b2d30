#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cricket-run: options, what it sets, and --soft with a small stand-in for cricket-server.

usage: test_run.py --run PATH
"""
import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

arguments = None

SERVER = '''#!%s
import os, signal, socket, sys, time
path = sys.argv[sys.argv.index('--socket') + 1]
with open(os.environ['SERVER_RECORD'], 'a') as record:
    print(os.getpid(), os.getpgid(0), ' '.join(sys.argv[1:]), file=record)
if os.environ.get('SERVER_FAILS'):
    sys.exit('no such luck')
time.sleep(0.05)
listener = socket.socket(socket.AF_UNIX)
listener.bind(path)
listener.listen()
if os.environ.get('SERVER_STUBBORN'):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
while True:
    listener.accept()[0].close()
''' % sys.executable

SHOW = 'echo "$LD_PRELOAD|$LD_AUDIT|$REMOTE_GPU_ADDRESS|$TRITON_LIBCUDA_PATH|$CRICKET_LOG"'


class Run(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        root = self.temporary.name
        self.bin, self.lib, self.tmp = (os.path.join(root, d) for d in ('bin', 'lib/cricket', 'tmp'))
        for directory in (self.bin, self.lib, self.tmp):
            os.makedirs(directory)
        self.cricket_run = os.path.join(self.bin, 'cricket-run')
        shutil.copy(arguments.run, self.cricket_run)
        server = os.path.join(self.bin, 'cricket-server')
        with open(server, 'w', encoding='utf-8') as file:
            file.write(SERVER)
        os.chmod(server, 0o755)
        # Empty libraries: the loader complains of them on stderr, which the tests that look at it avoid.
        for name in ('libcricket-client.so', 'libcricket-audit.so', 'libcudart.so.13', 'libcuda.so.1', 'libnvidia-ml.so.1'):
            subprocess.run(['gcc', '-shared', '-x', 'c', '/dev/null', '-o', os.path.join(self.lib, name)], check=True)
        self.record = os.path.join(root, 'record')

    def tearDown(self):
        self.assertEqual(os.listdir(self.tmp), [], 'a temporary directory was left')
        self.temporary.cleanup()

    def environment(self, **more):
        result = {k: v for k, v in os.environ.items()
                  if not k.startswith(('LD_', 'CRICKET_', 'REMOTE_GPU', 'TRITON', 'XDG_RUNTIME'))}
        result.update(TMPDIR=self.tmp, SERVER_RECORD=self.record, ASAN_OPTIONS='verify_asan_link_order=0', **more)
        return result

    def start(self, *command, stdin=None, **more):
        return subprocess.Popen([self.cricket_run, *command], stdin=stdin, env=self.environment(**more), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def result(self, *command, **more):
        process = self.start(*command, **more)
        out, error = process.communicate(timeout=60)
        return process.returncode, out, error

    def server_pids(self):
        with open(self.record, encoding='utf-8') as file:
            return [int(line.split()[0]) for line in file]

    def assert_gone(self, pid):
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                os.kill(pid, 0)
            except ProcessLookupError:
                return
            time.sleep(0.02)
        self.fail('process %d still runs' % pid)

    def test_usage(self):
        for command in ([], ['--soft'], ['--nonsense', 'true'], ['--server'], ['--server', '', 'true'], ['--soft', '--server', 'a', 'true']):
            status, out, error = self.result(*command)
            self.assertEqual((command, status, out), (command, 2, ''))
            self.assertTrue(error)
        self.assertEqual(self.result('--version')[0], 0)
        status, out, _ = self.result('--help')
        self.assertEqual((status, 'usage:' in out), (0, True))

    def test_command_not_found(self):
        status, _, error = self.result('no-such-command')
        self.assertEqual((status, error), (127, 'cricket-run: no-such-command: not found in PATH\n'))
        self.assertEqual(self.result('/etc/passwd')[0], 126)
        self.assertEqual(self.result('--soft', 'no-such-command')[0], 127)

    def test_environment(self):
        lib = os.path.realpath(self.lib)
        preload = ':'.join(os.path.join(lib, n) for n in ('libcricket-client.so', 'libcudart.so.13', 'libcuda.so.1', 'libnvidia-ml.so.1'))
        audit = os.path.join(lib, 'libcricket-audit.so')
        out = self.result('--server', 'gpu:1', '--verbose', 'sh', '-c', SHOW)[1]
        self.assertEqual(out, '%s|%s|gpu:1|%s|debug\n' % (preload, audit, lib))
        old = os.path.join(lib, 'libcuda.so.1')
        out = self.result('sh', '-c', SHOW, LD_PRELOAD=old, REMOTE_GPU_ADDRESS='old', TRITON_LIBCUDA_PATH='/mine')[1]
        self.assertEqual(out, '%s:%s|%s|old|/mine|\n' % (preload, old, audit))

    def test_directories(self):
        """What looks for the libraries in directories finds ours, before what the user set."""
        lib, show = os.path.realpath(self.lib), 'echo "$LD_LIBRARY_PATH"'
        self.assertEqual(self.result('sh', '-c', show)[1], lib + '\n')
        self.assertEqual(self.result('sh', '-c', show, LD_LIBRARY_PATH='/mine:/other')[1], lib + ':/mine:/other\n')
        self.assertEqual(self.result('--server', 'local:' + os.path.join(lib, 'libcuda.so.1'), 'sh', '-c', show)[1], '\n')
        # tinygrad's and PyCUDA's way, where the search goes through the linker.
        os.symlink('libcuda.so.1', os.path.join(self.lib, 'libcuda.so'))
        found = self.result(sys.executable, '-c', 'import ctypes.util; print(ctypes.util.find_library("cuda"))')[1]
        if shutil.which('ld'):
            self.assertIn('libcuda.so', found)

    def test_soft_compilers(self):
        show = 'echo "$CRICKET_SOFT_PTX|$TRITON_PTXAS_PATH|$TRITON_PTXAS_BLACKWELL_PATH"'
        ptxas = os.path.join(os.path.realpath(self.lib), 'soft-ptxas')
        self.assertEqual(self.result('--soft', 'sh', '-c', show)[1], '1|%s|%s\n' % (ptxas, ptxas))
        self.assertEqual(self.result('--soft', 'sh', '-c', show, TRITON_PTXAS_PATH='/mine')[1], '1|/mine|%s\n' % ptxas)
        self.assertEqual(self.result('--server', 'gpu:1', 'sh', '-c', show)[1], '||\n')

    def test_soft_ptxas(self):
        ptxas = os.path.join(os.path.dirname(os.path.realpath(arguments.run)), 'soft-ptxas')
        source, output = os.path.join(self.tmp, 'a.ptx'), os.path.join(self.tmp, 'a.o')
        with open(source, 'w', encoding='utf-8') as file:
            file.write('.version 9.0\n' * 20000)
        subprocess.run([ptxas, '-lineinfo', '-v', '--gpu-name=sm_120a', source, '-o', output], check=True, capture_output=True)
        with open(source, 'rb') as file, open(output, 'rb') as copied:
            self.assertEqual(copied.read(), file.read() + b'\0')
        # XLA's files have no ending.
        bare = os.path.join(self.tmp, 'tempfile-1')
        os.rename(source, bare)
        os.remove(output)
        subprocess.run([ptxas, bare, '-o', output, '-arch=sm_120a', '--warn-on-spills'], check=True, capture_output=True)
        self.assertEqual(os.path.getsize(output), os.path.getsize(bare) + 1)
        os.rename(bare, source)
        # Triton reads the PTX version off this.
        self.assertRegex(subprocess.run([ptxas, '--version'], check=True, capture_output=True, text=True).stdout, r'release (13\.0), V')
        for wrong in ([], [source], ['-o', output], [source, '-o'], ['/nonexistent.ptx', '-o', output], ['/nonexistent', '-o', output], [source, '-o', '/nonexistent/a.o']):
            self.assertNotEqual(subprocess.run([ptxas, *wrong], check=False, capture_output=True).returncode, 0)
        os.remove(source)
        os.remove(output)

    def test_local(self):
        lib = os.path.realpath(self.lib)
        ours = ':'.join(os.path.join(lib, n) for n in ('libcudart.so.13', 'libcricket-patch.so'))
        driver = os.path.join(lib, 'libcuda.so.1')
        out = self.result('--server', 'local:' + driver, 'sh', '-c', SHOW)[1]
        self.assertEqual(out.split('|')[0], driver + ':' + ours)
        self.assertEqual(out.split('|')[3], '')
        out = self.result('sh', '-c', SHOW, REMOTE_GPU_ADDRESS='local:')[1]
        self.assertEqual(out.split('|')[0], 'libcuda.so.1:' + ours)

    def test_options_of_the_command(self):
        self.assertEqual(self.result('echo', '--soft', '-v')[1], '--soft -v\n')
        self.assertEqual(self.result('--', 'echo', '--', '-v')[1], '-- -v\n')

    def test_libdir(self):
        status, _, error = self.result('true', CRICKET_LIBDIR='/nowhere')
        self.assertEqual((status, 'CRICKET_LIBDIR=/nowhere' in error), (126, True))
        # A link without a space names a directory with one; another link is resolved.
        spaced, link = os.path.join(self.temporary.name, 'a b'), os.path.join(self.temporary.name, 'link')
        shutil.copytree(self.lib, spaced)
        status, _, error = self.result('true', CRICKET_LIBDIR=spaced)
        self.assertEqual((status, 'LD_PRELOAD cannot hold' in error), (126, True))
        os.symlink(spaced, link)
        status, out, _ = self.result('sh', '-c', SHOW, CRICKET_LIBDIR=link)
        self.assertEqual((status, out.startswith(link + '/libcricket-client.so:')), (0, True))
        os.remove(link)
        os.symlink(self.lib, link)
        status, out, _ = self.result('sh', '-c', SHOW, CRICKET_LIBDIR=link)
        self.assertEqual((status, out.startswith(os.path.realpath(self.lib) + '/')), (0, True))
        shutil.rmtree(self.lib)
        status, _, error = self.result('true')
        self.assertEqual((status, 'client libraries' in error), (126, True))

    def test_soft(self):
        status, out, _ = self.result('--soft', 'sh', '-c', 'd=${REMOTE_GPU_ADDRESS#unix:}; stat -c %a "${d%/*}"; test -S "$d"; echo $?; exit 7')
        self.assertEqual((status, out), (7, '700\n0\n'))
        with open(self.record, encoding='utf-8') as file:
            pid, group, *options = file.read().split()
        self.assertEqual(pid, group)
        self.assertEqual(options[:3], ['--driver', 'soft', '--socket'])
        self.assert_gone(int(pid))

    def test_soft_killed_command(self):
        self.assertEqual(self.result('--soft', 'sh', '-c', 'kill -9 $$')[0], 128 + 9)

    def test_soft_server_fails(self):
        status, _, error = self.result('--soft', 'true', SERVER_FAILS='1')
        self.assertEqual((status, 'no such luck' in error), (125, True))

    def test_soft_without_server(self):
        os.remove(os.path.join(self.bin, 'cricket-server'))
        self.assertEqual(self.result('--soft', 'true')[0], 125)

    def test_soft_signals(self):
        process = self.start('--soft', 'sh', '-c', 'trap "echo got; exit 9" TERM; echo ready; while :; do sleep 0.05; done')
        self.assertEqual(process.stdout.readline(), 'ready\n')
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=30)
        self.assertEqual((process.returncode, out), (9, 'got\n'))
        self.assert_gone(self.server_pids()[0])

    def test_soft_killed_itself(self):
        process = self.start('--soft', 'sh', '-c', 'echo $$; exec sleep 20')
        program = int(process.stdout.readline())
        process.kill()
        process.wait()
        self.assert_gone(self.server_pids()[0])
        os.kill(program, signal.SIGKILL)     # outlives cricket-run, as a child of a shell does
        process.stdout.close()
        process.stderr.close()
        self.assertEqual(len(os.listdir(self.tmp)), 1)
        # The next one removes what was left, and not what another one that lives has.
        other = self.start('--soft', 'sh', '-c', 'echo ready; read line; test -S "${REMOTE_GPU_ADDRESS#unix:}"; echo $?', stdin=subprocess.PIPE)
        self.assertEqual(other.stdout.readline(), 'ready\n')
        self.assertEqual(len(os.listdir(self.tmp)), 1)
        self.assertEqual(self.result('--soft', 'true')[0], 0)
        self.assertEqual(other.communicate('go\n', timeout=60)[0], '0\n')


def main():
    global arguments
    parser = argparse.ArgumentParser()
    parser.add_argument('--run', required=True)
    arguments, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0]] + rest)


if __name__ == '__main__':
    main()
