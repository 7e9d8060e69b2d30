#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs that look for libcuda, libcudart and libnvrtc find ours, ours and the user's: cuda-pathfinder's documented order of search, tinygrad's, PyCUDA's
and Numba's, each in a whole run on the soft GPU.  Other libraries of the same names lie in every place where they look; what was loaded is read
off /proc/self/maps.

usage: test_search.py --build DIR --cc COMMAND [--cudart FILE]
"""
import argparse
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), os.pardir, 'runner'))
import runner  # noqa: E402

arguments = None
DECOYS = {'libcuda.so': 'libcuda.so.1', 'libcudart.so': 'libcudart.so.13', 'libnvidia-ml.so': 'libnvidia-ml.so.1', 'libnvrtc.so': 'libnvrtc.so.13'}

# What each of them does with what it found: the driver and the runtime answer, on a GPU.
USE = '''
import ctypes, json, os, re, sys
def use_driver(library):
    count = ctypes.c_int(-1)
    return [library.cuInit(0), library.cuDeviceGetCount(ctypes.byref(count)), count.value]
def use_runtime(library):
    count = ctypes.c_int(-1)
    return [library.cudaGetDeviceCount(ctypes.byref(count)), count.value]
def mapped():
    with open('/proc/self/maps') as maps:
        return sorted({line.split()[-1] for line in maps if re.search(r'/lib(cuda|cudart|nvidia-ml|nvrtc)\\.so', line)})
'''

# Wheels and conda's first; what is loaded already before what these found; then the loader; then CUDA_PATH, else CUDA_HOME.  Drivers: no files.
PATHFINDER = USE + '''
def where(library):
    dl, path = ctypes.CDLL(None), ctypes.create_string_buffer(4096)
    assert dl.dlinfo(ctypes.c_void_p(library._handle), 6, path) == 0
    return os.fsdecode(path.value)
def load(sonames, driver=False):
    home = os.environ.get('CUDA_PATH') or os.environ.get('CUDA_HOME')
    early = [] if driver else [os.path.join(d, 'nvidia', 'cu13', 'lib') for d in sys.path] + [os.path.join(os.environ.get('CONDA_PREFIX', '/nowhere'), 'lib')]
    late = [] if driver or not home else [os.path.join(home, d) for d in ('lib64', 'lib')]
    found = [os.path.join(d, name) for d in early for name in sonames if os.path.isfile(os.path.join(d, name))]
    for mode, names in ((os.RTLD_NOLOAD, sonames), (0, found[:1] or sonames), (0, [os.path.join(d, name) for d in late for name in sonames])):
        for name in names:
            try:
                return ctypes.CDLL(name, mode=mode | os.RTLD_NOW)
            except OSError:
                pass
driver, runtime = load(['libcuda.so.1'], True), load(['libcudart.so.13', 'libcudart.so.12'])
result = {'driver': use_driver(driver), 'runtime': use_runtime(runtime), 'nvml': where(load(['libnvidia-ml.so.1'], True)),
          'nvrtc': where(load(['libnvrtc.so.13', 'libnvrtc.so.12'])), 'mapped': mapped()}
try:
    import cuda.pathfinder
except ImportError:
    pass
else:
    result['itself'] = {name: os.path.dirname(cuda.pathfinder.load_nvidia_dynamic_lib(name).abs_path) for name in ('cuda', 'cudart', 'nvml')}
print(json.dumps(result))
'''

# Directories of LD_LIBRARY_PATH, then the system's, for a file of that name (0.10 and later); before, ctypes' search.
TINYGRAD = USE + '''
import ctypes.util
def find(name):
    for directory in [d for d in os.environ.get('LD_LIBRARY_PATH', '').split(':') if d] + ['/usr/lib64', '/usr/lib', '/usr/local/lib', '/lib']:
        if os.path.isdir(directory):
            for file in sorted(os.listdir(directory)):
                path = os.path.join(directory, file)
                if re.fullmatch('lib' + name + r'\\.so\\.?[0-9]*', file) and os.path.isfile(path):
                    return path
found, by_ctypes = {name: find(name) for name in ('cuda', 'nvrtc')}, ctypes.util.find_library('cuda')
result = {'found': found, 'driver': use_driver(ctypes.CDLL(found['cuda'])), 'by ctypes': by_ctypes}
if by_ctypes:
    result['its driver'] = use_driver(ctypes.CDLL(by_ctypes))
ctypes.CDLL(found['nvrtc'])
print(json.dumps({**result, 'mapped': mapped()}))
'''

# An extension that is linked with libcuda.so.1, or a library by its path (Numba's way to the runtime of CUDA_HOME).
EXTENSION = USE + '''
library = ctypes.CDLL(sys.argv[1])
print(json.dumps({'result': use_driver(library) if sys.argv[2] == 'driver' else use_runtime(library), 'mapped': mapped()}))
'''


class Search(unittest.TestCase):
    def setUp(self):
        self.tree = runner.Tree(runner.stage(arguments.build))
        self.ours = os.path.dirname(os.path.realpath(self.tree.library('libcuda.so.1')))
        self.directory = tempfile.mkdtemp(prefix='ckt-')
        self.addCleanup(shutil.rmtree, self.directory)

    def make(self, *path):
        directory = os.path.join(self.directory, *path)
        os.makedirs(directory, exist_ok=True)
        return directory

    def compile(self, output, text, *options):
        subprocess.run([*shlex.split(arguments.cc), '-shared', '-fPIC', '-x', 'c', '-', '-x', 'none', '-o', output, *options], input=text, text=True, check=True)

    def decoys(self, *path):
        """Libraries of all those names that answer nothing."""
        directory = self.make(*path)
        for link, name in DECOYS.items():
            self.compile(os.path.join(directory, name), 'int ckt_decoy;', '-Wl,-soname,' + name)
            os.symlink(name, os.path.join(directory, link))
        return directory

    def result(self, text, *words, **env):
        kept = {k: v for k, v in runner.clean_environment(None).items() if k not in ('CUDA_HOME', 'CUDA_PATH', 'CONDA_PREFIX', 'LD_LIBRARY_PATH', 'PYTHONPATH')}
        done = subprocess.run([self.tree.tool('cricket-run'), '--soft', sys.executable, '-c', text, *words], env={**kept, **env}, capture_output=True,
                              text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return json.loads(done.stdout)

    def assert_ours(self, mapped, *others):
        """Libraries of the driver and the runtime are ours; others are those that may lie elsewhere."""
        self.assertIn(os.path.join(self.ours, 'libcuda.so.1'), mapped)
        for path in mapped:
            if not os.path.basename(path).startswith('libnvrtc') and path not in others:
                self.assertEqual(os.path.dirname(path), self.ours)

    def test_pathfinder(self):
        wheels, conda, home = self.decoys('site', 'nvidia', 'cu13', 'lib'), self.decoys('conda', 'lib'), self.decoys('home', 'lib64')
        site = os.path.join(self.directory, 'site')
        top = {'CONDA_PREFIX': os.path.dirname(conda), 'CUDA_HOME': os.path.dirname(home)}
        places = (({'PYTHONPATH': site, **top}, wheels), (top, conda), ({'CUDA_HOME': top['CUDA_HOME']}, None), ({'CUDA_PATH': top['CUDA_HOME']}, None), ({}, None))
        for env, nvrtc in places:
            # Without a toolkit that the loader knows there is no NVRTC in the last.
            if not env:
                env = {'LD_LIBRARY_PATH': home}
                nvrtc = home
            with self.subTest(env=sorted(env)):
                got = self.result(PATHFINDER, **env)
                self.assertEqual((got['driver'], got['runtime']), ([0, 0, 1], [0, 1]))
                self.assertEqual(got['nvml'], self.ours)
                self.assert_ours(got['mapped'])
                # The user's, whichever comes first.
                self.assertNotEqual(got['nvrtc'], self.ours)
                if nvrtc:
                    self.assertEqual(got['nvrtc'], nvrtc)
                self.assertEqual(set(got.get('itself', {'cuda': self.ours}).values()), {self.ours})

    def test_tinygrad(self):
        mine = self.decoys('mine')
        got = self.result(TINYGRAD, LD_LIBRARY_PATH=mine)
        self.assertEqual(os.path.dirname(got['found']['cuda']), self.ours)
        self.assertEqual(os.path.dirname(got['found']['nvrtc']), mine)
        self.assertEqual(got['driver'], [0, 0, 1])
        # ctypes asks the linker for what the loader's cache does not have.
        if shutil.which('ld') or shutil.which('gcc'):
            self.assertTrue(got['by ctypes'])
            self.assertEqual(got['its driver'], [0, 0, 1])
        self.assert_ours(got['mapped'])

    def test_pycuda(self):
        """Linked with the driver by its SONAME, and told by its own run path where another one is."""
        decoys, extension = self.decoys('driver'), os.path.join(self.directory, 'extension.so')
        self.compile(extension, 'extern int cuInit(unsigned); int (*ckt_uses)(unsigned) = cuInit;', '-Wl,--no-as-needed', os.path.join(self.ours, 'libcuda.so.1'),
                     '-Wl,--allow-shlib-undefined', '-Wl,-rpath,' + decoys)
        got = self.result(EXTENSION, extension, 'driver', LD_LIBRARY_PATH=decoys)
        self.assertEqual(got['result'], [0, 0, 1])
        self.assert_ours(got['mapped'])

    def test_runtime_by_path(self):
        """NVIDIA's own, opened by its path in CUDA_HOME, is redirected to ours."""
        if not arguments.cudart or not os.path.isfile(arguments.cudart):
            self.skipTest('no shared CUDA runtime')
        got = self.result(EXTENSION, arguments.cudart, 'runtime')
        self.assertEqual(got['result'], [0, 1])
        self.assert_ours(got['mapped'], os.path.realpath(arguments.cudart))

    def test_toolkit_is_the_users(self):
        """CUDA_HOME and CUDA_PATH name a toolkit (nvcc, headers, NVRTC), which Cricket has none of: they stay as they are."""
        show = 'import json, os; print(json.dumps([os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH")]))'
        self.assertEqual(self.result(show), [None, None])
        self.assertEqual(self.result(show, CUDA_HOME='/mine', CUDA_PATH='/other'), ['/mine', '/other'])


def main():
    global arguments
    parser = argparse.ArgumentParser()
    parser.add_argument('--build', required=True)
    parser.add_argument('--cc', default='cc')
    parser.add_argument('--cudart')
    arguments, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0]] + rest)


if __name__ == '__main__':
    main()
